"""Arrays that MindSpore's initializers fill with random numbers, by the names of its C++ part."""

from __future__ import annotations

import numpy as np


def _random_normal(seed: int, data: np.ndarray, mean: float, sigma: float) -> None:
    """Fills an array with normally distributed numbers.

    Args:
        seed: What they depend on.
        data: The array.
        mean: Their mean.
        sigma: Their standard deviation.
    """
    data[...] = np.random.default_rng(seed).normal(mean, sigma, data.shape)


def _random_uniform(seed: int, data: np.ndarray, a: float, b: float) -> None:
    """Fills an array with numbers between two limits.

    Args:
        seed: What they depend on.
        data: The array.
        a: The lower limit.
        b: The upper limit.
    """
    data[...] = np.random.default_rng(seed).uniform(a, b, data.shape)


def _truncated_normal(
    seed: int, data: np.ndarray, a: float, b: float, mean: float, sigma: float
) -> None:
    """Fills an array with normally distributed numbers, drawn anew where they are out of limits.

    Args:
        seed: What they depend on.
        data: The array.
        a: The lower limit, in standard deviations from the mean.
        b: The upper limit, likewise.
        mean: Mean of the numbers without limits.
        sigma: Their standard deviation.
    """
    generator = np.random.default_rng(seed)
    found = generator.normal(size=data.shape)
    while (outside := (found < a) | (found > b)).any():
        found[outside] = generator.normal(size=int(outside.sum()))
    data[...] = mean + sigma * found
