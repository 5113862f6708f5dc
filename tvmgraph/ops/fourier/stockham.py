"""Fourier transforms of compiled code on processors: what their kernel is given."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tvmgraph.core.columns import Builder, Expr

#: Odd radices whose butterflies the kernel holds in registers.
_PRIMES = (13, 11, 7, 5, 3)
#: Elements from which the kernel is faster than a product with the matrix.
_LEAST = 16


def radices_of(n: int, itemsize: int, is_last_axis: bool) -> list[int]:
    """The radices of the passes, in order; empty if a prime factor is too large.

    Along the last axis the first pass transposes squares of vectors of 32 bytes where it can.

    Args:
        n: Elements of the transform.
        itemsize: Bytes of a real part.
        is_last_axis: Whether elements lie beside each other.
    """
    odd: list[int] = []
    for prime in _PRIMES:
        while n % prime == 0:
            odd.append(prime)
            n //= prime
    if n & (n - 1):
        return []
    first = 32 // itemsize if is_last_axis else 1
    start = [first] if first > 1 and n % first == 0 else []
    twos = (n // first if start else n).bit_length() - 1
    fours = min(-twos % 3, twos // 2)  # few passes: 8, 8, 4 rather than 4, 4, 4, 4
    rest = twos - 2 * fours
    return [*start, *[8] * (rest // 3), *[4] * fours, *odd, *[2] * (rest % 3)]


def twiddles(radices: Sequence[int], sign: int, is_last_axis: bool) -> np.ndarray:
    """The roots of unity of all passes, both parts of each, ``float64[2 n']``.

    Those of the first pass along the last axis are ordered by their power k, part and p, as vectors
    read them; all others by p, k and part.

    Args:
        radices: Of the passes.
        sign: Of the exponent.
        is_last_axis: Whether elements lie beside each other.
    """
    found: list[np.ndarray] = []
    steps = math.prod(radices)
    for number, radix in enumerate(radices):
        order, steps = steps, steps // radix
        angles = np.outer(np.arange(steps), np.arange(1, radix)) * (2 * math.pi * sign / order)
        parts = np.stack((np.cos(angles), np.sin(angles)), -1)
        along = number == 0 and is_last_axis
        found.append((np.moveaxis(parts, 0, -1) if along else parts).ravel())
    return np.concatenate(found)


def transform_by_kernel(
    R: Builder, x: Expr, axis: int, n: int, sign: int, scale: float, given: int, count: int,
    parts: int,
) -> Expr | None:  # fmt: skip
    """Transforms an axis: :math:`X_k = scale \\sum_j x_j e^{\\pm 2 \\pi i jk/n}`.

    Args:
        R: The builder.
        x: Reals, or complex elements whose parts lie along a last axis; where the axis has fewer
            than n, half a spectrum.
        axis: Non-negative axis of elements.
        n: Elements of the transform.
        sign: Of the exponent, 1 or -1.
        scale: Factor.
        given: Parts of an element of ``x``, 1 or 2.
        count: Elements of the result.
        parts: Parts of an element of the result; 1 for the real one.

    Returns:
        Elements as ``x`` has them, with ``count`` along the axis; None where the kernel is no help:
        a short transform, which a product does faster, one without radices, or one of symbols.
    """
    t = R.type(x)
    if n < _LEAST or not t.is_static:
        return None
    shape = t.static_shape if given == 1 else t.static_shape[:-1]
    is_last, kind = math.prod(shape[axis + 1 :]) == 1, t.dtype
    radices = radices_of(n, kind.itemsize, is_last)
    if not radices:
        return None
    table = R.const(twiddles(radices, sign, is_last).astype(kind.numpy), kind.name)
    whole = (*shape[:axis], count, *shape[axis + 1 :], *([2] if parts == 2 else []))
    settings = " ".join(map(str, [axis, given, parts, sign, scale, *radices]))
    return R.write("fourier", settings, [x, table], [t.with_shape(whole)])
