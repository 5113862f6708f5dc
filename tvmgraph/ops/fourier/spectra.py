"""Frequencies of discrete spectra, and the short-time Fourier transform."""

from __future__ import annotations

import math

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, describe, int_tuple

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq", "stft"]


def _frequencies(k: np.ndarray, n: int, d: float, dtype: DTypeLike | None) -> Tensor:
    wanted = dtypes.float32 if dtype is None else dtypes.dtype_of(dtype)
    return Tensor((k / (n * d)).astype(wanted.numpy))


def _window_length(n: object, op: str) -> int:
    n = as_int(n, op, "n")
    if n < 1:
        raise bad(ArgumentError, f"n must be at least 1, not {n}", op, f"n={n}")
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
    product = np.outer(np.arange(n_fft), np.arange(count)) % n_fft  # exact angles
    angle = product * (2 * math.pi / n_fft)
    return Tensor(np.concatenate([np.cos(angle), -np.sin(angle)], 1).astype(dtype.numpy))


def _check_stft(x: Tensor, n_fft: int, hop: int, length: int, window: Tensor | None) -> None:
    got = describe(x=x, n_fft=n_fft, hop_length=hop, win_length=length)
    if x.ndim not in (1, 2):
        raise bad(ShapeError, f"x must have 1 or 2 axes, not {x.ndim}", "stft", got)
    if n_fft < 1 or hop < 1 or not 0 < length <= n_fft:
        rule = "n_fft and hop_length must be positive and win_length in [1, n_fft]"
        raise bad(ArgumentError, rule, "stft", got)
    if window is not None and window.shape != (length,):
        raise bad(ShapeError, f"window must have shape ({length},)", "stft",
                  f"{got}, window={window.type}")  # fmt: skip


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
    if signal.shape[-1] < n_fft:
        raise bad(ShapeError, f"the signal has fewer than n_fft = {n_fft} samples", "stft",
                  describe(x=x))  # fmt: skip
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
