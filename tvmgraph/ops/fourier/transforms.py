"""Discrete Fourier transforms: SciPy's in eager code, kernels or small matrices in compiled code.

``norm`` says where the factor 1/n is: "backward" (the default) in the inverse, "forward" in the
other direction, "ortho" as a square root in both.
"""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError, either
from tvmgraph.ops.common.arguments import as_int, bad, describe, int_tuple, require
from tvmgraph.ops.fourier.mixed_radix import fourier_matrix


def _scale(n: int, norm: str | None, inverse: bool) -> float:
    norm = norm.lower() if isinstance(norm, str) else norm
    require(norm in (None, "backward", "forward", "ortho"),
            'norm must be "backward", "forward" or "ortho"', "fft", ArgumentError,
            norm=norm)  # fmt: skip
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
        >>> ops.fft(Tensor([1.0, 0.0])).abs().tolist()
        [1.0, 1.0]
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


def _along(
    transform: Callable[..., Tensor],
    x: Tensor,
    axes: list[tuple[int, int | None]],
    norm: str | None,
) -> Tensor:
    for axis, n in axes:
        x = transform(x, n, axis, norm)
    return x


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
    return _along(fft, input, _axes(input, s, dim), norm)


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
    return _along(ifft, input, _axes(input, s, dim), norm)


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
    *others, last = _axes(input, s, dim)
    return _along(fft, _along(rfft, input, [last], norm), others, norm)


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
    *others, last = _axes(input, s, dim)
    return _along(irfft, _along(ifft, input, others, norm), [last], norm)


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
    *others, last = _axes(input, s, dim)
    return _along(hfft, _along(fft, input, others, norm), [last], norm)


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
    *others, last = _axes(input, s, dim)
    return _along(ifft, _along(ihfft, input, [last], norm), others, norm)


class _Transform2(Protocol):
    """A transform along two axes."""

    def __call__(
        self, input: Tensor, s: object = None, dim: AxisLike = (-2, -1), norm: str | None = None
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


# ---- frequencies of discrete spectra, and the short-time Fourier transform -----------------------


def _frequencies(k: np.ndarray, n: int, d: float, dtype: DTypeLike | None) -> Tensor:
    wanted = dtypes.float32 if dtype is None else dtypes.dtype_of(dtype)
    return Tensor((k / (n * d)).astype(wanted.numpy))


def _window_length(n: object, op: str) -> int:
    n = as_int(n, op, "n")
    require(n >= 1, f"n must be at least 1, not {n}", op, ArgumentError, n=n)
    return n


def fftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    r"""Frequencies of the discrete Fourier transform: 0, 1, ..., -1 over :math:`n d`.

    Args:
        n: Number of samples.
        d: Time between two samples.
        dtype: A float dtype, float32 by default.

    Returns:
        Tensor of shape (n,), the negative frequencies last.

    Raises:
        ArgumentError: if ``n`` is less than 1.

    Example:
        >>> ops.fftfreq(4)
        Tensor(shape=[4], dtype=Float32, value= [ 0.00000000e+00,  2.50000000e-01, -5.00000000e-01,
        -2.50000000e-01])
    """
    n = _window_length(n, "fftfreq")
    k = np.arange(n)
    return _frequencies(np.where(k < (n + 1) // 2, k, k - n), n, d, dtype)


def rfftfreq(n: int, d: float = 1.0, dtype: DTypeLike | None = None) -> Tensor:
    r"""Frequencies of the Fourier transform of real samples: :math:`0, 1, ..., n / 2` over n d.

    Args:
        n: Number of samples.
        d: Time between two samples.
        dtype: A float dtype, float32 by default.

    Returns:
        Tensor of shape (n // 2 + 1,).

    Raises:
        ArgumentError: if ``n`` is less than 1.

    Example:
        >>> ops.rfftfreq(4)
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  2.50000000e-01,  5.00000000e-01])
    """
    n = _window_length(n, "rfftfreq")
    return _frequencies(np.arange(n // 2 + 1), n, d, dtype)


def _shift(input: Tensor, dim: AxisLike | None, back: bool, op: str) -> Tensor:
    axes = tuple(range(input.ndim)) if dim is None else int_tuple(dim, op, "dim")
    sign = -1 if back else 1
    if not axes:
        return input
    return F.roll(input, tuple(sign * (input.shape[a] // 2) for a in axes), axes)


def fftshift(input: Tensor, dim: AxisLike | None = None) -> Tensor:
    r"""Moves the zero frequency to the middle: a cyclic shift by half of every axis.

    Args:
        input: Tensor of any shape.
        dim: The axis or axes; ``None`` for all.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.fftshift(ops.fftfreq(4))
        Tensor(shape=[4], dtype=Float32, value= [-5.00000000e-01, -2.50000000e-01,  0.00000000e+00,
        2.50000000e-01])
    """
    return _shift(input, dim, False, "fftshift")


def ifftshift(input: Tensor, dim: AxisLike | None = None) -> Tensor:
    r"""Undoes :func:`fftshift`: moves the middle of every axis to its start.

    Args:
        input: Tensor of any shape.
        dim: The axis or axes; ``None`` for all.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.ifftshift(ops.fftshift(ops.fftfreq(5)))
        Tensor(shape=[5], dtype=Float32, value= [ 0.00000000e+00,  2.00000003e-01,  4.00000006e-01,
        -4.00000006e-01, -2.00000003e-01])
    """
    return _shift(input, dim, True, "ifftshift")


def _window(window: Tensor | None, length: int, n_fft: int, like: Tensor) -> Tensor:
    """The window in the middle of a frame."""
    w = F.ones((length,), like.dtype) if window is None else window
    w = w if w.dtype.kind == "c" else F.cast(w, like.dtype)
    left = (n_fft - length) // 2
    return F.pad(w, (left, n_fft - length - left)) if length < n_fft else w


def _fourier_matrix(n_fft: int, count: int, dtype: dtypes.DType) -> Tensor:
    """Columns of cosines, then of negative sines."""
    matrix = fourier_matrix(n_fft, count, n_fft)
    columns = np.concatenate([np.real(matrix), -np.imag(matrix)], 1)
    return Tensor(columns.astype(dtype.numpy))


def _check_stft(x: Tensor, n_fft: int, hop: int, length: int, window: Tensor | None) -> None:
    got = describe(x=x, n_fft=n_fft, hop_length=hop, win_length=length)
    if x.ndim not in (1, 2):
        raise bad(ShapeError, f"x must have 1 or 2 axes, not {x.ndim}", "stft", got)
    if n_fft < 1 or hop < 1 or not 0 < length <= n_fft:
        rule = "n_fft and hop_length must be positive and win_length in [1, n_fft]"
        raise bad(ArgumentError, rule, "stft", got)
    if window is not None and window.shape != (length,):
        raise bad(ShapeError, f"window must have shape ({length},)", "stft",
                  f"{got}, window={window.aval}")  # fmt: skip


def stft(
    x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "REFLECT",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    r"""Short-time Fourier transform: the spectra of overlapping windowed pieces of a signal.

    .. math::
        X_{k,t} = \sum_{j} window_j \cdot x_{t \cdot hop + j} \cdot e^{-2 \pi i j k / n\_fft}

    Args:
        x: Signal of shape (n,) or (batch, n).
        n_fft: Length of a piece.
        hop_length: Distance of two pieces, ``n_fft // 4`` by default.
        win_length: Length of the window, ``n_fft`` by default; a shorter one is centred.
        window: Its values; ones by default.
        center: Whether the signal is padded so that piece t is centred at ``t * hop_length``.
        pad_mode: How: "REFLECT" or "CONSTANT".
        normalized: Whether to divide by the square root of ``n_fft``.
        onesided: Whether to return the non-negative frequencies only, by default if neither the
            signal nor the window is complex.
        return_complex: Whether to return complex numbers, by default if one of them is complex.

    Returns:
        Tensor of shape (..., frequencies, pieces, 2) with real and imaginary parts last, or a
        complex tensor without that axis.

    Raises:
        ShapeError: if ``x`` or ``window`` has a wrong shape, or the signal is too short.
        ArgumentError: if a length is not positive.

    Note:
        The transform is a matrix product, which is fast for the usual ``n_fft`` up to 1024.

    Example:
        >>> ops.stft(Tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]), 4).shape
        (1, 3, 6, 2)
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    _check_stft(x, n_fft, hop, length, window)
    x = x if x.dtype.kind in "fc" else F.cast(x, dtypes.float32)
    signal = F.reshape(x, (-1, x.shape[-1]))
    if center:
        signal = F.pad(signal, (n_fft // 2, n_fft // 2), pad_mode.lower())
    pieces = 1 + (signal.shape[-1] - n_fft) // hop
    require(signal.shape[-1] >= n_fft, f"the signal has fewer than n_fft = {n_fft} samples", "stft",
            x=x)  # fmt: skip
    index = np.arange(pieces)[:, None] * hop + np.arange(n_fft)
    frames = F.gather(signal, Tensor(index), 1) * _window(window, length, n_fft, x)
    is_complex = frames.dtype.kind == "c"
    onesided = not is_complex if onesided is None else onesided
    count = n_fft // 2 + 1 if onesided else n_fft
    scale = math.sqrt(n_fft) if normalized else 1.0
    if is_complex:
        values = F.swapaxes(F.fft(frames)[..., :count], 1, 2) / scale
        values = F.reshape(values, (*x.shape[:-1], count, pieces))
        return values if return_complex is not False else F.view_as_real(values)
    spectrum = F.matmul(frames, _fourier_matrix(n_fft, count, x.dtype))
    parts = F.reshape(spectrum / scale if normalized else spectrum, (-1, pieces, 2, count))
    result = F.reshape(F.permute(parts, (0, 3, 1, 2)), (*x.shape[:-1], count, pieces, 2))
    return F.complex(result[..., 0], result[..., 1]) if return_complex else result


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
    "rfftfreq", "rfftn", "stft",
]  # fmt: skip
