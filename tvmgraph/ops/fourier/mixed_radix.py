"""Fast Fourier transforms of compiled code, as products with small matrices.

A transform of :math:`n = a b` elements is ``b`` transforms of ``a`` elements, a factor per element
(the twiddle), and ``a`` transforms of ``b`` elements: :math:`n (a + b)` products instead of
:math:`n^2`. Each of the two is divided again until a matrix of at most :data:`DIRECT` rows does it.
A prime that is larger becomes a circular convolution, whose length can be chosen.

TVM has no complex dtype: both parts of an element lie along a last axis.

Sources: Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series",
1965; Bluestein, "A linear filtering approach to the computation of discrete Fourier transform",
1970.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.types import Shape
from tvmgraph.ops.fourier.stockham import transform_by_kernel

#: Elements up to which one product is faster than two with copies between them. Measured: of 64
#: rows of 128 elements two take 0.1 ms, of 512 0.4 ms where one takes 3.1 (AVX2, Zen 3).
DIRECT = 64
#: Primes up to which the matrix is faster than three transforms of twice the length and more.
_DIRECT_PRIME = 256


def fourier_matrix(rows: int, columns: int, n: int) -> np.ndarray:
    """Returns :math:`e^{2 \\pi i jk/n}`, ``complex128[rows, columns]``.

    Args:
        rows: Values of j.
        columns: Values of k.
        n: Elements of the transform. Products are reduced by it while they are still integers.
    """
    return np.exp(np.outer(np.arange(rows), np.arange(columns)) % n * (2j * math.pi / n))


def transform(
    R: Builder, x: Expr, n: int, sign: int, given: int, parts: int, kernel: bool = False
) -> Expr:
    """Transforms the last axis: :math:`X_k = \\sum_j x_j e^{\\pm 2 \\pi i jk/n}`.

    Args:
        R: The builder.
        x: Shape (..., n) of reals, or (..., n, 2).
        n: Elements.
        sign: That of the exponent, 1 or -1.
        given: Parts of an element of ``x``.
        parts: Parts of an element that are wanted: 1 for the real one only.
        kernel: Whether the backend has the kernel of :mod:`.stockham`, for transforms within this.

    Returns:
        Shape (..., n) or (..., n, 2).
    """
    a, lead = _divisor(n), _lead(R, x, given)
    if kernel:
        found = transform_by_kernel(R, x, len(lead), n, sign, 1.0, given, n, parts)
        if found is not None:
            return found
    if n <= DIRECT or (a == 1 and n <= _DIRECT_PRIME):
        return product(R, x, _signed(fourier_matrix(n, n, n), sign), given, parts)
    if a == 1:
        return _convolved(R, x, n, sign, given, parts, kernel)
    b = n // a
    y = _swapped(R, _reshaped(R, x, (*lead, a, b), given), given)
    y = transform(R, y, a, sign, given, 2, kernel)
    y = _swapped(R, _times(R, y, _signed(fourier_matrix(b, a, n), sign)), 2)
    y = transform(R, y, b, sign, 2, parts, kernel)
    return _reshaped(R, _swapped(R, y, parts), (*lead, n), parts)


def product(R: Builder, x: Expr, matrix: np.ndarray, given: int, parts: int) -> Expr:
    """Multiplies the last axis, and the parts of its elements, by a complex matrix.

    Args:
        R: The builder.
        x: Shape (..., n) of reals, or (..., n, 2).
        matrix: ``complex128[n, m]``.
        given: Parts of an element of ``x``.
        parts: Parts of an element of the result.

    Returns:
        Shape (..., m) or (..., m, 2).
    """
    real, imag = np.real(matrix), np.imag(matrix)
    blocks = [[real, imag], [-imag, real]]  # what a part adds to both parts of the result
    table = np.stack([np.stack(block[:parts], -1) for block in blocks[:given]], 1)
    lead, (n, m) = _lead(R, x, given), matrix.shape
    kind = R.type(x).dtype
    rows = _reshaped(R, x, (*lead, n * given), 1)
    numbers = table.reshape(n * given, m * parts).astype(kind.numpy)
    y = R.emit(R.op.matmul(rows, R.const(numbers, kind.name)))
    return _reshaped(R, y, (*lead, m), parts)


def _convolved(
    R: Builder, x: Expr, n: int, sign: int, given: int, parts: int, kernel: bool
) -> Expr:
    """Bluestein's: 2 jk is j^2 + k^2 - (k - j)^2, so that sums over j are a convolution."""
    from scipy.fft import next_fast_len  # here, as it takes a tenth of a second

    size = cast("int", next_fast_len(2 * n - 1))
    chirp = _signed(np.exp(1j * math.pi * (np.arange(n) ** 2 % (2 * n)) / n), sign)
    filtered = np.zeros(size, complex)
    filtered[:n] = np.conj(chirp)
    filtered[size - n + 1 :] = np.conj(chirp[:0:-1])
    kind = R.type(x).dtype.name
    if given == 1:
        nothing = R.op.zeros(R.shape(R.type(x).shape), kind)
        x = R.emit(R.op.stack([x, R.emit(nothing)], -1))
    lead = _lead(R, x, 2)
    at = len(lead)
    rest = R.emit(R.op.zeros(R.shape((*lead, size - n, 2)), kind))
    y = R.emit(R.op.concat([_times(R, x, chirp), rest], at))
    y = _times(R, transform(R, y, size, -1, 2, 2, kernel), np.fft.fft(filtered) / size)
    y = transform(R, y, size, 1, 2, 2, kernel)
    y = R.emit(R.op.strided_slice(y, [at], [0], [n]))
    y = _times(R, y, chirp)
    if parts == 2:
        return y
    return R.emit(R.op.squeeze(R.emit(R.op.strided_slice(y, [at + 1], [0], [1])), [at + 1]))


def _divisor(n: int) -> int:
    """The largest divisor that is not above the square root."""
    return next(a for a in range(math.isqrt(n), 0, -1) if n % a == 0)


def _signed(numbers: np.ndarray, sign: int) -> np.ndarray:
    return numbers if sign > 0 else np.conj(numbers)


def _lead(R: Builder, x: Expr, given: int) -> Shape:
    return R.type(x).shape[: -2 if given == 2 else -1]


def _reshaped(R: Builder, x: Expr, shape: Shape, parts: int) -> Expr:
    """Gives elements another shape."""
    return R.emit(R.op.reshape(x, R.shape((*shape, *([2] if parts == 2 else [])))))


def _swapped(R: Builder, x: Expr, parts: int) -> Expr:
    """Swaps the last two axes of elements."""
    last = len(R.type(x).shape) - parts
    order = [*range(last - 1), last, last - 1, *([last + 1] if parts == 2 else [])]
    return R.emit(R.op.permute_dims(x, order))


def _times(R: Builder, x: Expr, factors: np.ndarray) -> Expr:
    """Multiplies complex elements, shape (..., 2), by constant ones along the axes before."""
    kind = R.type(x).dtype
    real, imag = np.real(factors), np.imag(factors)
    same = np.stack((real, real), -1).astype(kind.numpy)
    other = np.stack((-imag, imag), -1).astype(kind.numpy)
    flipped = R.emit(R.op.flip(x, len(R.type(x).shape) - 1))
    straight = R.emit(R.op.multiply(x, R.const(same, kind.name)))
    return R.emit(R.op.add(straight, R.emit(R.op.multiply(flipped, R.const(other, kind.name)))))
