"""Discrete Fourier transforms, as products with matrices of cosines and sines.

``norm`` says where the factor 1/n is: "backward" (the default) in the inverse, "forward" in the
other direction, "ortho" as a square root in both.
Complex tensors exist eagerly only: compiled code transforms with :func:`stft`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.common.arguments import bad


def _scale(n: int, norm: str | None, inverse: bool) -> float:
    if norm not in (None, "backward", "forward", "ortho"):
        raise bad(ArgumentError, 'norm must be "backward", "forward" or "ortho"', "fft",
                  f"norm={norm!r}")  # fmt: skip
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse != (norm == "forward") else 1.0


def _parts(input: Tensor) -> tuple[Tensor, Tensor | None]:
    """Returns the real part, and the imaginary one of complex tensors."""
    if input.dtype.kind == "c":
        return F.real(input), F.imag(input)
    wide = input.dtype in (dtypes.float32, dtypes.float64)
    return (input if wide else F.cast(input, dtypes.float32)), None


def _sized(x: Tensor, n: int, dim: int) -> Tensor:
    """Returns ``x`` cut or padded with zeros to ``n`` elements, with the axis at the end."""
    x = F.moveaxis(x, dim, -1)
    size = x.shape[-1]
    return F.narrow(x, -1, 0, n) if size >= n else F.pad(x, (0, n - size))


def _waves(rows: int, columns: int, n: int, like: Tensor, factor: object) -> tuple[Tensor, Tensor]:
    """Returns matrices of cosines and sines, with exact angles."""
    angle = np.outer(np.arange(rows), np.arange(columns)) % n * (2 * math.pi / n)
    kind = like.dtype.numpy
    return Tensor((np.cos(angle) * factor).astype(kind)), Tensor(
        (np.sin(angle) * factor).astype(kind)
    )


def _transform(input: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool,
               half: bool = False, scaled_as: bool | None = None) -> Tensor:  # fmt: skip
    real, imag = _parts(input)
    n = input.shape[dim] if n is None else n
    scale = _scale(n, norm, inverse if scaled_as is None else scaled_as)
    count = n // 2 + 1 if half else n
    cos, sin = _waves(n, count, n, real, scale)
    sin = sin if inverse else F.neg(sin)
    x = _sized(real, n, dim)
    re, im = F.matmul(x, cos), F.matmul(x, sin)
    if imag is not None:
        y = _sized(imag, n, dim)
        re, im = re - F.matmul(y, sin), im + F.matmul(y, cos)
    return F.moveaxis(F.complex(re, im), -1, dim)


def _real_inverse(input: Tensor, n: int | None, dim: int, norm: str | None,
                  conjugate: bool = False) -> Tensor:  # fmt: skip
    """Returns the real signal of half a spectrum; the other half is its mirror image."""
    real, imag = _parts(input)
    n = 2 * (input.shape[dim] - 1) if n is None else n
    count = n // 2 + 1
    weight = np.full((count, 1), 2.0)
    weight[0] = 1
    if n % 2 == 0:
        weight[-1] = 1
    cos, sin = _waves(count, n, n, real, weight * _scale(n, norm, not conjugate))
    found = F.matmul(_sized(real, count, dim), cos)
    if imag is not None:
        sine = F.matmul(_sized(imag, count, dim), sin)
        found = found + sine if conjugate else found - sine
    return F.moveaxis(found, -1, dim)


def _axes(input: Tensor, s: Any, dim: AxisLike | None) -> list[tuple[int, int | None]]:
    """Returns the axes with the sizes wanted of them."""
    if dim is None:
        dim = range(-len(s), 0) if s is not None else range(-input.ndim, 0)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    sizes: Sequence[int | None] = [None] * len(dims) if s is None else (
        (s,) if isinstance(s, int) else tuple(s))  # fmt: skip
    if len(sizes) != len(dims):
        raise bad(ArgumentError, "s and dim must be of one length", "fft", f"s={s}, dim={dim}")
    return list(zip(dims, sizes))


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    r"""Discrete Fourier transform along an axis: :math:`X_k = \sum_j x_j e^{-2 \pi i jk/n}`.

    Args:
        input: Real or complex tensor.
        n: Elements taken of the axis, which is cut or padded with zeros; all by default.
        dim: The axis.
        norm: See :mod:`tvmgraph.ops.fourier.transforms`.

    Returns:
        Complex tensor with ``n`` elements along the axis.

    Example:
        >>> ops.fft(Tensor([1.0, 0.0])).asnumpy().tolist()
        [(1+0j), (1+0j)]
    """
    return _transform(input, n, dim, norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of :func:`fft`, with its arguments.

    Args:
        input: Real or complex tensor.
        n: Elements taken of the axis, which is cut or padded with zeros; all by default.
        dim: The axis.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return _transform(input, n, dim, norm, True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """First half, ``n // 2 + 1`` elements, of the :func:`fft` of a real tensor.

    Args:
        input: Real tensor.
        n: Elements taken of the axis, which is cut or padded with zeros; all by default.
        dim: The axis.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return _transform(input, n, dim, norm, False, half=True)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of :func:`rfft`: a real tensor of ``n`` elements, by default twice as many less 2.

    Args:
        input: Real or complex tensor.
        n: Elements along the axis of the result; twice as many less 2 by default.
        dim: The axis.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return _real_inverse(input, n, dim, norm)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """:func:`fft` of a signal that is the mirror image of its own conjugate: a real tensor.

    Args:
        input: Real or complex tensor.
        n: Elements along the axis of the result; twice as many less 2 by default.
        dim: The axis.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return _real_inverse(input, n, dim, norm, conjugate=True)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of :func:`hfft`.

    Args:
        input: Real tensor.
        n: Elements taken of the axis, which is cut or padded with zeros; all by default.
        dim: The axis.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return _transform(input, n, dim, norm, True, half=True)


def fftn(
    input: Tensor, s: object = None, dim: AxisLike | None = None, norm: str | None = None
) -> Tensor:
    """:func:`fft` along several axes, by default along all.

    Args:
        input: Real or complex tensor.
        s: Elements taken of each axis.
        dim: The axes.
        norm: See :mod:`tvmgraph.ops.fourier.transforms`.

    Returns:
        Complex tensor.
    """
    for axis, n in _axes(input, s, dim):
        input = fft(input, n, axis, norm)
    return input


def ifftn(
    input: Tensor, s: object = None, dim: AxisLike | None = None, norm: str | None = None
) -> Tensor:
    """Inverse of :func:`fftn`, with its arguments.

    Args:
        input: Real or complex tensor.
        s: Elements taken of each axis; all by default.
        dim: The axes; all by default, or the last of them that ``s`` has.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    for axis, n in _axes(input, s, dim):
        input = ifft(input, n, axis, norm)
    return input


def rfftn(
    input: Tensor, s: object = None, dim: AxisLike | None = None, norm: str | None = None
) -> Tensor:
    """:func:`rfft` along the last of several axes, then :func:`fft` along the others.

    Args:
        input: Real tensor.
        s: Elements taken of each axis; all by default.
        dim: The axes; all by default, or the last of them that ``s`` has.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    *others, (axis, n) = _axes(input, s, dim)
    input = rfft(input, n, axis, norm)
    for place, size in others:
        input = fft(input, size, place, norm)
    return input


def irfftn(
    input: Tensor, s: object = None, dim: AxisLike | None = None, norm: str | None = None
) -> Tensor:
    """Inverse of :func:`rfftn`, with its arguments.

    Args:
        input: Real or complex tensor.
        s: Elements of each axis of the result; by default those of the input, of the last axis
            twice as many less 2.
        dim: The axes; all by default, or the last of them that ``s`` has.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    *others, (axis, n) = _axes(input, s, dim)
    for place, size in others:
        input = ifft(input, size, place, norm)
    return irfft(input, n, axis, norm)


def hfftn(
    input: Tensor, s: object = None, dim: AxisLike | None = None, norm: str | None = None
) -> Tensor:
    """:func:`fft` along several axes, then :func:`hfft` along the last of them.

    Args:
        input: Real or complex tensor.
        s: Elements of each axis of the result; by default those of the input, of the last axis
            twice as many less 2.
        dim: The axes; all by default, or the last of them that ``s`` has.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    *others, (axis, n) = _axes(input, s, dim)
    for place, size in others:
        input = fft(input, size, place, norm)
    return hfft(input, n, axis, norm)


def ihfftn(
    input: Tensor, s: object = None, dim: AxisLike | None = None, norm: str | None = None
) -> Tensor:
    """Inverse of :func:`hfftn`, with its arguments.

    Args:
        input: Real tensor.
        s: Elements taken of each axis; all by default.
        dim: The axes; all by default, or the last of them that ``s`` has.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    *others, (axis, n) = _axes(input, s, dim)
    input = ihfft(input, n, axis, norm)
    for place, size in others:
        input = ifft(input, size, place, norm)
    return input


def fft2(
    input: Tensor, s: object = None, dim: AxisLike = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`fftn` along the last two axes.

    Args:
        input: Real or complex tensor.
        s: Elements taken of each axis; all by default.
        dim: The two axes.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return fftn(input, s, dim, norm)


def ifft2(
    input: Tensor, s: object = None, dim: AxisLike = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`ifftn` along the last two axes.

    Args:
        input: Real or complex tensor.
        s: Elements taken of each axis; all by default.
        dim: The two axes.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return ifftn(input, s, dim, norm)


def rfft2(
    input: Tensor, s: object = None, dim: AxisLike = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`rfftn` along the last two axes.

    Args:
        input: Real tensor.
        s: Elements taken of each axis; all by default.
        dim: The two axes.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return rfftn(input, s, dim, norm)


def irfft2(
    input: Tensor, s: object = None, dim: AxisLike = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`irfftn` along the last two axes.

    Args:
        input: Real or complex tensor.
        s: Elements of each axis of the result; by default those of the input, of the last axis
            twice as many less 2.
        dim: The two axes.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return irfftn(input, s, dim, norm)


def hfft2(
    input: Tensor, s: object = None, dim: AxisLike = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`hfftn` along the last two axes.

    Args:
        input: Real or complex tensor.
        s: Elements of each axis of the result; by default those of the input, of the last axis
            twice as many less 2.
        dim: The two axes.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return hfftn(input, s, dim, norm)


def ihfft2(
    input: Tensor, s: object = None, dim: AxisLike = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`ihfftn` along the last two axes.

    Args:
        input: Real tensor.
        s: Elements taken of each axis; all by default.
        dim: The two axes.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.
    """
    return ihfftn(input, s, dim, norm)


__all__ = [
    "fft", "fft2", "fftn", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ihfft", "ihfft2",
    "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip
