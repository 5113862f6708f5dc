"""Slow, obvious NumPy definitions of convolution, pooling, resampling and CTC."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray


def padded(x: Array, pads: Sequence[tuple[int, int]], value: float = 0.0) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *pads], constant_values=value)


def conv(x: Array, w: Array, stride: int = 1, pads: Any = None, dilation: int = 1,
         groups: int = 1) -> Array:  # fmt: skip
    """Every output point is the sum of a window times the weight."""
    nd = x.ndim - 2
    x = padded(x, pads or [(0, 0)] * nd)
    kernel = w.shape[2:]
    out = [(n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], kernel)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for at in np.ndindex(*out):
        window = tuple(
            slice(a * stride, a * stride + dilation * (k - 1) + 1, dilation)
            for a, k in zip(at, kernel)
        )
        for o in range(w.shape[0]):
            first = o // per_out * per_in
            part = x[(slice(None), slice(first, first + per_in), *window)]
            y[(slice(None), o, *at)] = (part * w[o]).sum(tuple(range(1, x.ndim)))
    return y


def conv_transpose(x: Array, w: Array, stride: int = 1, cut: int = 0, extra: int = 0,
                   dilation: int = 1, groups: int = 1) -> Array:  # fmt: skip
    """Every input point adds itself times the weight to a window of the output."""
    kernel = w.shape[2:]
    full = [(n - 1) * stride + dilation * (k - 1) + 1 + extra for n, k in zip(x.shape[2:], kernel)]
    per_in, per_out = x.shape[1] // groups, w.shape[1]
    y = np.zeros((x.shape[0], groups * per_out, *full))
    for at in np.ndindex(*x.shape[2:]):
        window = tuple(
            slice(a * stride, a * stride + dilation * (k - 1) + 1, dilation)
            for a, k in zip(at, kernel)
        )
        for i in range(x.shape[1]):
            first = i // per_in * per_out
            value = x[(slice(None), i, *at)].reshape(-1, *(1,) * (x.ndim - 1))
            y[(slice(None), slice(first, first + per_out), *window)] += value * w[i]
    return y[(slice(None), slice(None), *(slice(cut, n - cut) for n in full))]


def pool(x: Array, kernel: int, stride: int, reduce: Callable[[Array], Any],
         ceil: bool = False) -> Array:  # fmt: skip
    """Reduces every window; with ``ceil`` also the partial ones that start inside."""
    sizes = x.shape[2:]
    out = [(n - kernel) // stride + 1 for n in sizes]
    if ceil:
        starts = [[s for s in range(0, n, stride) if s == 0 or s - stride + kernel < n]
                  for n in sizes]  # fmt: skip
        out = [len(s) for s in starts]
    y = np.zeros((*x.shape[:2], *out))
    for at in np.ndindex(*out):
        window = tuple(slice(a * stride, a * stride + kernel) for a in at)
        for n, c in np.ndindex(*x.shape[:2]):
            y[(n, c, *at)] = reduce(x[(n, c, *window)])
    return y


def adaptive(x: Array, out: Sequence[int], reduce: Callable[[Array], Any]) -> Array:
    y = np.zeros((*x.shape[:2], *out))
    for at in np.ndindex(*out):
        window = tuple(
            slice(i * n // o, -(-(i + 1) * n // o)) for i, n, o in zip(at, x.shape[2:], out)
        )
        for n, c in np.ndindex(*x.shape[:2]):
            y[(n, c, *at)] = reduce(x[(n, c, *window)])
    return y


def linear(x: Array, sizes: Sequence[int], align: bool) -> Array:
    """Resizes the last axes one by one with ``np.interp``, which repeats the edges."""
    for axis, size in zip(range(x.ndim - len(sizes), x.ndim), sizes):
        n = x.shape[axis]
        at = np.linspace(0, n - 1, size) if align else (np.arange(size) + 0.5) * n / size - 0.5
        x = np.apply_along_axis(lambda v, at=at, n=n: np.interp(at, np.arange(n), v), axis, x)
    return x


def grid_sample(x: Array, grid: Array) -> Array:
    """Bilinear, zeros outside, pixels as areas; one image."""
    _, channels, height, width = x.shape
    y = np.zeros((1, channels, *grid.shape[1:3]))
    for i, j in np.ndindex(*grid.shape[1:3]):
        column = (grid[0, i, j, 0] + 1) * width / 2 - 0.5
        row = (grid[0, i, j, 1] + 1) * height / 2 - 0.5
        for r, c in itertools.product((0, 1), (0, 1)):
            a, b = int(np.floor(row)) + r, int(np.floor(column)) + c
            if 0 <= a < height and 0 <= b < width:
                weight = (1 - abs(row - a)) * (1 - abs(column - b))
                y[0, :, i, j] += x[0, :, a, b] * weight
    return y


def ctc(log_probs: Array, target: Sequence[int], blank: int) -> float:
    """Sums the probabilities of all paths that collapse to the target; one sequence."""
    steps, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        merged = [k for k, _ in itertools.groupby(path)]
        if [k for k in merged if k != blank] == list(target):
            total += np.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return -np.log(total) if total else np.inf


def log_softmax(x: Array, axis: int) -> Array:
    return (
        x
        - x.max(axis, keepdims=True)
        - np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True))
    )


def normalized(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
