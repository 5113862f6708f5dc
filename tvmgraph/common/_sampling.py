"""Random numbers for initializers, drawn with NumPy from the default generator's state."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tvmgraph.core.random import default_generator


class _Place(threading.local):
    """Where in the random stream this thread draws, if not where the default generator stands."""

    at: list[int] | None = None  # seed and counter


_place = _Place()


def generator(size: int) -> np.random.Generator:
    """Returns the NumPy stream of the next draw; ``set_seed`` restarts the sequence of them."""
    blocks = max(1, -(-size // 4))
    if _place.at is None:
        seed, offset = default_generator.advance(blocks).array
    else:
        seed, offset = _place.at
        _place.at[1] += blocks
    return np.random.default_rng((int(seed), int(offset)))


@contextmanager
def drawing_at(seed: int, offset: int) -> Iterator[list[int]]:
    """Draws from a place of the stream for a while; gives a list whose last entry moves on."""
    outer, _place.at = _place.at, [seed, offset]
    try:
        yield _place.at
    finally:
        _place.at = outer


def fill_uniform(arr: np.ndarray, scale: float) -> None:
    """Fills with the uniform distribution on ``[-scale, scale]``."""
    arr[...] = generator(arr.size).uniform(-scale, scale, arr.shape)


def fill_normal(arr: np.ndarray, sigma: float, mean: float = 0.0) -> None:
    """Fills with a normal distribution."""
    arr[...] = generator(arr.size).normal(mean, sigma, arr.shape)


def truncated(shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Samples the standard normal distribution restricted to ``[low, high]`` by rejection."""
    size = math.prod(shape)
    rng = generator(size)
    kept = 0.5 * (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))
    mode = min(max(0.0, low), high)  # the most likely value of the interval
    # proposals far out in the tail are never accepted, so infinite and huge intervals are cut
    low, high = max(low, mode - 10), min(high, mode + 10)
    out = np.empty(size)
    filled = 0
    while filled < size:
        n = size - filled
        if kept > 0.25:
            draw = rng.standard_normal(n)
            draw = draw[(draw >= low) & (draw <= high)]
        else:
            draw = rng.uniform(low, high, n)
            draw = draw[rng.random(n) <= np.exp((mode * mode - draw * draw) / 2)]
        out[filled : filled + draw.size] = draw
        filled += draw.size
    return out.reshape(shape)
