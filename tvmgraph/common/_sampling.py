"""Random numbers for initializers, drawn with NumPy from the default generator's state."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from tvmgraph.core.random import default_generator


class _Place(threading.local):
    """Where in the random stream this thread draws, if not where the default generator stands."""

    at: list[int] | None = None  # seed and counter


_place = _Place()


def generator(size: int) -> np.random.Generator:
    """Returns the NumPy stream of the next draw; ``set_seed`` restarts the sequence of them.

    Args:
        size: How many numbers are drawn; the next draw begins behind them.
    """
    blocks = max(1, -(-size // 4))
    if _place.at is None:
        seed, offset = default_generator.advance(blocks).array
    else:
        seed, offset = _place.at
        _place.at[1] += blocks
    return np.random.default_rng((int(seed), int(offset)))


@contextmanager
def drawing_at(seed: int, offset: int) -> Iterator[list[int]]:
    """Draws from a place of the stream for a while; gives a list whose last entry moves on.

    Args:
        seed: Seed of the stream.
        offset: Where in it the first draw begins, in Philox blocks.
    """
    outer, _place.at = _place.at, [seed, offset]
    try:
        yield _place.at
    finally:
        _place.at = outer


class Window:
    """Stands for an array that an initializer fills, of which only a part is kept.

    Args:
        shape: Shape of the whole.
        where: A slice per dimension.
        part: What is filled; None counts the random numbers and draws none.
    """

    def __init__(
        self, shape: tuple[int, ...], where: tuple[slice, ...] = (), part: np.ndarray | None = None
    ) -> None:
        self.shape, self.where, self.part = shape, where, part
        self.ndim, self.size = len(shape), math.prod(shape)

    def __setitem__(self, _: object, value: object) -> None:
        """Fills all of it: the index is an ellipsis."""
        if self.part is not None:
            self.part[...] = np.broadcast_to(np.asarray(value), self.shape)[self.where]


_CHUNK = 1 << 20  # elements that are drawn at once


def _fill(arr: np.ndarray | Window, draw: Callable[[np.random.Generator, int], np.ndarray]) -> None:
    """Fills an array with the numbers of one stream, of which few are in memory at a time."""
    rng = generator(arr.size)
    window = arr if isinstance(arr, Window) else Window(arr.shape, (slice(None),) * arr.ndim, arr)
    part = window.part
    if part is None:
        return
    if not arr.ndim or not arr.size:
        part[...] = draw(rng, arr.size).reshape(part.shape)
        return
    length, row = arr.shape[0], arr.size // arr.shape[0]
    first, last, _ = window.where[0].indices(length)
    step = max(1, _CHUNK // row)
    for start in range(0, last, step):
        stop = min(start + step, last)
        values = draw(rng, (stop - start) * row).reshape((stop - start, *arr.shape[1:]))
        skipped = max(0, first - start)
        if skipped < stop - start:
            to = start + skipped - first
            part[to : stop - first] = values[(slice(skipped, None), *window.where[1:])]


def fill_uniform(arr: np.ndarray | Window, scale: float) -> None:
    """Fills with the uniform distribution on ``[-scale, scale]``.

    Args:
        arr: The array, or a part of one.
        scale: End of the interval.
    """
    _fill(arr, lambda rng, n: rng.uniform(-scale, scale, n))


def fill_normal(arr: np.ndarray | Window, sigma: float, mean: float = 0.0) -> None:
    """Fills with a normal distribution.

    Args:
        arr: The array, or a part of one.
        sigma: The standard deviation.
        mean: The mean.
    """
    _fill(arr, lambda rng, n: rng.normal(mean, sigma, n))


def fill_truncated(
    arr: np.ndarray | Window, low: float, high: float, sigma: float, mean: float = 0.0
) -> None:
    """Fills with a normal distribution of which only ``[low, high]``, in sigmas, is kept.

    Args:
        arr: The array, or a part of one.
        low: Lower end, in sigmas from the mean.
        high: Upper end, in sigmas from the mean.
        sigma: The standard deviation of the whole distribution.
        mean: Its mean.
    """
    if _kept(low, high) > 0.25:
        _fill(arr, lambda rng, n: mean + sigma * _accepted(rng, n, low, high))
    else:
        rng = generator(arr.size)
        if not isinstance(arr, Window) or arr.part is not None:
            arr[...] = (mean + sigma * _from_tail(rng, arr.size, low, high)).reshape(arr.shape)


def _kept(low: float, high: float) -> float:
    """How much of the standard normal distribution is in an interval."""
    return 0.5 * (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2)))


def _accepted(rng: np.random.Generator, size: int, low: float, high: float) -> np.ndarray:
    """The next numbers of the standard normal distribution that are in an interval."""

    def draw(count: int) -> np.ndarray:
        drawn = rng.standard_normal(count)
        return drawn[(drawn >= low) & (drawn <= high)]

    return _collected(draw, size)


def _from_tail(rng: np.random.Generator, size: int, low: float, high: float) -> np.ndarray:
    """The same for an interval that is rarely met."""
    mode = min(max(0.0, low), high)  # the most likely value of the interval
    # proposals far out in the tail are never accepted, so infinite and huge intervals are cut
    low, high = max(low, mode - 10), min(high, mode + 10)

    def draw(count: int) -> np.ndarray:
        drawn = rng.uniform(low, high, count)
        return drawn[rng.random(count) <= np.exp((mode * mode - drawn * drawn) / 2)]

    return _collected(draw, size)


def _collected(draw: Callable[[int], np.ndarray], size: int) -> np.ndarray:
    """Draws until there are enough numbers; a draw may give fewer than it is asked for."""
    out, filled = np.empty(size), 0
    while filled < size:
        drawn = draw(size - filled)
        out[filled : filled + drawn.size] = drawn
        filled += drawn.size
    return out
