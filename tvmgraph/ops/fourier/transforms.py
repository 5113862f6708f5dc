"""Discrete Fourier transforms: fast ones in eager code, products with matrices in compiled code.

``norm`` says where the factor 1/n is: "backward" (the default) in the inverse, "forward" in the
other direction, "ortho" as a square root in both.
Complex tensors exist eagerly only: compiled code transforms with :func:`stft`.
"""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, either
from tvmgraph.ops.common.arguments import bad


def _scale(n: int, norm: str | None, inverse: bool) -> float:
    if norm not in (None, "backward", "forward", "ortho"):
        raise bad(ArgumentError, 'norm must be "backward", "forward" or "ortho"', "fft",
                  f"norm={norm!r}")  # fmt: skip
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse != (norm == "forward") else 1.0


def _wide(x: Tensor) -> Tensor:
    known = x.dtype.kind == "c" or x.dtype in (dtypes.float32, dtypes.float64)
    return x if known else F.cast(x, dtypes.float32)


def _sized(x: Tensor, n: int, axis: int) -> Tensor:
    """Returns ``x`` cut or padded with zeros to ``n`` elements along an axis."""
    size = x.shape[axis]
    if size >= n:
        return x if size == n else F.narrow(x, axis, 0, n)
    pads = tuple((0, n - size if i == axis else 0) for i in range(x.ndim))
    if x.dtype.kind != "c":
        return F.pad_constant(x, pads, 0.0)
    return F.complex(*(F.pad_constant(part(x), pads, 0.0) for part in (F.real, F.imag)))


def _transform(input: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool,
               half: bool = False, scaled_as: bool | None = None) -> Tensor:  # fmt: skip
    x, axis = _wide(input), rules.normalize_axis(dim, input.ndim)
    n = operator.index(x.shape[axis] if n is None else n)
    scale = _scale(n, norm, inverse if scaled_as is None else scaled_as)
    x = _sized(x, n, axis)
    if half and x.dtype.kind == "c":  # the other half is no mirror image, but cut off anyway
        whole = F.spectrum(x, axis=axis, inverse=inverse, of="complex", scale=scale)
        return F.narrow(whole, axis, 0, n // 2 + 1)
    of = "half" if half else "complex" if x.dtype.kind == "c" else "real"
    return F.spectrum(x, axis=axis, inverse=inverse, of=of, scale=scale)


def _real_inverse(input: Tensor, n: int | None, dim: int, norm: str | None,
                  conjugate: bool = False) -> Tensor:  # fmt: skip
    """Returns the real signal of half a spectrum; the other half is its mirror image."""
    x, axis = _wide(input), rules.normalize_axis(dim, input.ndim)
    n = operator.index(2 * (x.shape[axis] - 1) if n is None else n)
    scale = _scale(n, norm, not conjugate)
    x = _sized(x, n // 2 + 1, axis)
    if x.dtype.kind != "c":
        x = F.complex(x, F.zeros_like(x))
    elif conjugate:
        x = F.conj(x)
    return F.signal_of_half(x, axis=axis, size=n, scale=scale)


def _axes(input: Tensor, s: Any, dim: AxisLike | None) -> list[tuple[int, int | None]]:
    """Returns the axes with the sizes wanted of them."""
    if dim is None:
        dim = range(-len(s), 0) if s is not None else range(-input.ndim, 0)
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    sizes: Sequence[int | None] = [None] * len(dims) if s is None else (
        (s,) if isinstance(s, int) else tuple(s))  # fmt: skip
    if len(sizes) != len(dims):
        raise bad(either(ArgumentError, TypeError), "s and dim must be of one length", "fft",
                  f"s={s}, dim={dim}")  # fmt: skip
    return list(zip(dims, sizes))


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    r"""Discrete Fourier transform along an axis: :math:`X_k = \sum_j x_j e^{-2 \pi i jk/n}`.

    Args:
        input: Real or complex tensor.
        n: Elements taken of the axis, which is cut or padded with zeros; all by default.
        dim: The axis.
        norm: Where the factor is: ``"backward"`` (the default) in the inverse, ``"forward"`` in the
            other direction, ``"ortho"`` as a square root in both.

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
        norm: As in :func:`fft`.
    """
    return _transform(input, n, dim, norm, True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """First half, ``n // 2 + 1`` elements, of the :func:`fft`: all there is of a real tensor.

    Args:
        input: Real tensor; of a complex one the rest is lost.
        n: Elements taken of the axis, which is cut or padded with zeros; all by default.
        dim: The axis.
        norm: As in :func:`fft`.
    """
    return _transform(input, n, dim, norm, False, half=True)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of :func:`rfft`: a real tensor of ``n`` elements, by default twice as many less 2.

    Args:
        input: Real or complex tensor.
        n: Elements along the axis of the result; twice as many less 2 by default.
        dim: The axis.
        norm: As in :func:`fft`.
    """
    return _real_inverse(input, n, dim, norm)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """:func:`fft` of a signal that is the mirror image of its own conjugate: a real tensor.

    Args:
        input: Real or complex tensor.
        n: Elements along the axis of the result; twice as many less 2 by default.
        dim: The axis.
        norm: As in :func:`fft`.
    """
    return _real_inverse(input, n, dim, norm, conjugate=True)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of :func:`hfft`.

    Args:
        input: Real tensor.
        n: Elements taken of the axis, which is cut or padded with zeros; all by default.
        dim: The axis.
        norm: As in :func:`fft`.
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
        norm: As in :func:`fft`.

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
        norm: As in :func:`fft`.
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
        norm: As in :func:`fft`.
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
        norm: As in :func:`fft`.
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
        norm: As in :func:`fft`.
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
        norm: As in :func:`fft`.
    """
    *others, (axis, n) = _axes(input, s, dim)
    input = ihfft(input, n, axis, norm)
    for place, size in others:
        input = ifft(input, size, place, norm)
    return input


class _Transform2(Protocol):
    """A transform along two axes."""

    def __call__(
        self,
        input: Tensor,
        s: object = None,
        dim: AxisLike = (-2, -1),
        norm: str | None = None,
    ) -> Tensor: ...


def _along_two_axes(transform: Callable[..., Tensor]) -> _Transform2:
    """Returns a transform along all axes as one along the last two, with its documentation."""

    def along_two(
        input: Tensor, s: object = None, dim: AxisLike = (-2, -1), norm: str | None = None
    ) -> Tensor:
        return transform(input, s, dim, norm)

    along_two.__name__ = along_two.__qualname__ = f"{transform.__name__[:-1]}2"
    arguments = inspect.getdoc(transform) or ""
    arguments = re.sub(r"dim: .*", "dim: The two axes.", arguments[arguments.index("Args:") :])
    along_two.__doc__ = f":func:`{transform.__name__}` along the last two axes.\n\n{arguments}"
    return along_two


fft2 = _along_two_axes(fftn)
ifft2 = _along_two_axes(ifftn)
rfft2 = _along_two_axes(rfftn)
irfft2 = _along_two_axes(irfftn)
hfft2 = _along_two_axes(hfftn)
ihfft2 = _along_two_axes(ihfftn)

__all__ = [
    "fft", "fft2", "fftn", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ihfft", "ihfft2",
    "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip
