"""Settings of the data pipeline and its random numbers."""

from __future__ import annotations

import enum
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph.compat.paths import look
from tvmgraph.core.random import default_generator
from tvmgraph.dataset.checks import count_of, flag_of
from tvmgraph.errors import ArgumentError, DTypeError, LoadError, reject


class ErrorSamplesMode(enum.IntEnum):
    """What becomes of a row whose transforms raise: an error, another row in its place, nothing."""

    RETURN = 0
    REPLACE = 1
    SKIP = 2


class _Settings:
    seed: int | None = None
    debug: bool = False
    error_samples: ErrorSamplesMode = ErrorSamplesMode.RETURN
    prefetch: int = 16
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
    _settings.seed = count_of("dataset.config.set_seed", "seed", seed, 0)


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
    _settings.prefetch = count_of("dataset.config.set_prefetch_size", "size", size, 0)


def get_prefetch_size() -> int:
    """Returns how many rows are prepared ahead."""
    return 0 if _settings.debug else _settings.prefetch


def set_num_parallel_workers(num: int) -> None:
    """Sets how many threads ``map`` uses unless it is told otherwise.

    Args:
        num: At least 1.

    Raises:
        ArgumentError: if it is smaller.
    """
    _settings.workers = count_of("dataset.config.set_num_parallel_workers", "num", num, 1)


def get_num_parallel_workers() -> int:
    """Returns how many threads ``map`` uses by default."""
    return 1 if _settings.debug else _settings.workers


def set_debug_mode(debug_mode_flag: bool) -> None:
    """Prepares every row when it is asked for, in the thread that asks, as debuggers need it.

    A ``map`` with a number of threads of its own keeps them.

    Args:
        debug_mode_flag: Whether to.

    Raises:
        DTypeError: if it is no bool.
    """
    op = "dataset.config.set_debug_mode"
    _settings.debug = flag_of(op, "debug_mode_flag", debug_mode_flag)


def get_debug_mode() -> bool:
    """Returns whether rows are prepared when they are asked for."""
    return _settings.debug


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """Sets what becomes of rows whose transforms in ``map`` raise.

    Args:
        error_samples_mode: ``RETURN`` raises the error; ``REPLACE`` gives good rows again, as many,
            once there are sixteen or no more rows; ``SKIP`` leaves them out.

    Raises:
        DTypeError: if it is no ErrorSamplesMode.
    """
    if not isinstance(error_samples_mode, ErrorSamplesMode):
        raise DTypeError(f"error_samples_mode must be an ErrorSamplesMode: {error_samples_mode!r}",
                         op="dataset.config.set_error_samples_mode")  # fmt: skip
    _settings.error_samples = error_samples_mode


def get_error_samples_mode() -> ErrorSamplesMode:
    """Returns what becomes of rows whose transforms raise."""
    return ErrorSamplesMode.RETURN if _settings.debug else _settings.error_samples


#: Settings of MindSpore's pipelines that choose nothing here, by their last given value.
_KEPT: dict[str, object] = {
    "auto_num_workers": False, "auto_offload": False, "autotune_interval": 0,
    "callback_timeout": 60, "dynamic_shape": False, "enable_autotune": False,
    "enable_shared_mem": True, "enable_watchdog": True, "fast_recovery": True,
    "monitor_sampling_interval": 1000, "multiprocessing_timeout_interval": 300,
    "numa_enable": False, "sending_batches": 0,
}  # fmt: skip
#: What their values are called where they are given by name, unless it is ``enable``.
_CALLED = {
    "auto_offload": "offload", "autotune_interval": "interval", "callback_timeout": "timeout",
    "dynamic_shape": "is_dynamic", "fast_recovery": "fast_recovery",
    "monitor_sampling_interval": "interval", "multiprocessing_timeout_interval": "interval",
    "numa_enable": "numa_enable", "sending_batches": "batch_num",
}  # fmt: skip


def _keep(setting: str, *values: object, filepath_prefix: object = None, **named: object) -> None:
    """Notes a setting that has no meaning here, checked as those that have one.

    Raises:
        DTypeError: if a bool is needed and not given.
        ArgumentError: if a number is needed and not given.
        TypeError: if no value is given, or one by another name.
    """
    value = values[0] if values else named.pop(_CALLED.get(setting, "enable"), None)
    if named:
        raise TypeError(f"set_{setting}() got an unexpected keyword argument {min(named)!r}")
    op, is_flag = f"dataset.config.set_{setting}", isinstance(_KEPT[setting], bool)
    _KEPT[setting] = flag_of(op, setting, value) if is_flag else count_of(op, setting, value, 0)


_iterator_mode = {"do_copy": False, "parallel_convert": False}
_start_method = "fork"


def set_iterator_mode(do_copy: bool = False, parallel_convert: bool = False) -> None:
    """Kept for MindSpore programs: rows become tensors without copies, in the thread that asks.

    Args:
        do_copy: Noted.
        parallel_convert: Noted.

    Raises:
        DTypeError: if one is no bool.
    """
    op = "dataset.config.set_iterator_mode"
    _iterator_mode.update(
        do_copy=flag_of(op, "do_copy", do_copy),
        parallel_convert=flag_of(op, "parallel_convert", parallel_convert),
    )


def get_iterator_mode() -> dict[str, bool]:
    """Returns what :func:`set_iterator_mode` noted."""
    return dict(_iterator_mode)


def set_multiprocessing_start_method(start_method: str = "fork") -> None:
    """Kept for MindSpore programs: rows are prepared by threads of this process.

    Args:
        start_method: ``"fork"`` or ``"spawn"``.

    Raises:
        DTypeError: if it is no string.
        ArgumentError: if it is another one.
    """
    global _start_method
    op, got = "dataset.config.set_multiprocessing_start_method", f"start_method={start_method!r}"
    if not isinstance(start_method, str):
        reject(DTypeError, op, "start_method must be a string", got)
    if start_method not in ("fork", "spawn"):
        reject(ArgumentError, op, "start_method must be 'fork' or 'spawn'", got)
    _start_method = start_method


def get_multiprocessing_start_method() -> str:
    """Returns what :func:`set_multiprocessing_start_method` noted."""
    return _start_method


def load(file: str) -> None:
    """Sets what a file in JSON names: ``seed``, ``numParallelWorkers``, ``prefetchSize``,
    ``monitorSamplingInterval`` and others of MindSpore's, of which those without a meaning here
    are passed over.

    Args:
        file: Path of the file.

    Raises:
        LoadError: if it cannot be read, or holds no such settings.
    """
    op, got = "dataset.config.load", f"file={file!r}"
    known = {
        "seed": set_seed, "numParallelWorkers": set_num_parallel_workers,
        "prefetchSize": set_prefetch_size,
        "monitorSamplingInterval": partial(_keep, "monitor_sampling_interval"),
    }  # fmt: skip
    try:
        settings = json.loads(Path(file).read_text("utf-8"))
        for name, value in settings.items():
            if name in known:
                known[name](value)
    except (OSError, ValueError, AttributeError, TypeError) as e:
        reject(LoadError, op, f"the settings cannot be read ({e})", got)


@contextmanager
def row_randomness(*key: int) -> Iterator[None]:
    """Makes random transforms of this thread draw from a stream that ``key`` names.

    Args:
        *key: The numbers that name it, such as pass and row.
    """
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


def __getattr__(name: str) -> Any:
    kind, _, setting = name.partition("_")
    if setting in _KEPT and kind in ("get", "set"):
        return partial(_KEPT.__getitem__ if kind == "get" else _keep, setting)
    return look(__name__, name, [n for n in globals() if n.startswith(("get_", "set_"))])


def __dir__() -> list[str]:
    kept = [f"{kind}_{setting}" for setting in _KEPT for kind in ("get", "set")]
    own = [n for n in globals() if n.startswith(("get_", "set_"))]
    return sorted(["ErrorSamplesMode", *own, *kept])
