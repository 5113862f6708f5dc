"""Settings of the data pipeline and its random numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tvmgraph.core.random import default_generator
from tvmgraph.errors import ArgumentError, user_source


class _Settings:
    seed: int | None = None
    prefetch: int = 8
    workers: int = 1


_settings = _Settings()
_local = threading.local()


def set_seed(seed: int) -> None:
    """Sets the seed of shuffling and random transforms.

    Args:
        seed: A non-negative integer.

    Raises:
        ArgumentError: if it is negative.
    """
    _settings.seed = _checked("set_seed", "seed", seed, 0)


def get_seed() -> int:
    """Returns the seed of the pipeline; that of :func:`tvmgraph.set_seed` unless one is set."""
    return default_generator.initial_seed() if _settings.seed is None else _settings.seed


def set_prefetch_size(size: int) -> None:
    """Sets how many rows (or batches) are prepared ahead; 0 prepares them when they are asked for.

    Args:
        size: At least 0.

    Raises:
        ArgumentError: if it is negative.
    """
    _settings.prefetch = _checked("set_prefetch_size", "size", size, 0)


def get_prefetch_size() -> int:
    """Returns how many rows are prepared ahead."""
    return _settings.prefetch


def set_num_parallel_workers(num: int) -> None:
    """Sets how many threads ``map`` uses unless it is told otherwise.

    Args:
        num: At least 1.

    Raises:
        ArgumentError: if it is smaller.
    """
    _settings.workers = _checked("set_num_parallel_workers", "num", num, 1)


def get_num_parallel_workers() -> int:
    """Returns how many threads ``map`` uses by default."""
    return _settings.workers


def _checked(op: str, name: str, value: Any, low: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise ArgumentError(f"{name} must be an int of at least {low}, not {value!r}",
                            op=f"dataset.config.{op}", at=user_source())  # fmt: skip
    return int(value)


@contextmanager
def row_randomness(*key: int) -> Iterator[None]:
    """Makes random transforms of this thread draw from a stream that ``key`` names."""
    _local.key, _local.generator = key, None
    try:
        yield
    finally:
        _local.key = _local.generator = None


def generator() -> np.random.Generator:
    """Returns the random numbers of the row being transformed.

    The same seed, epoch and row give the same numbers, whatever the number of threads. Outside a
    pipeline, a stream of its own continues from call to call.
    """
    found = getattr(_local, "generator", None)
    if found is None:
        key = getattr(_local, "key", None)
        found = _local.generator = np.random.default_rng((get_seed(), *(key or ())))
    return found
