"""Window functions for signal processing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.ops.common.arguments import as_int, bad

__all__ = [
    "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window",
]  # fmt: skip


def _window(
    op: str,
    length: object,
    periodic: bool,
    dtype: DTypeLike | None,
    default: dtypes.DType,
    curve: Callable[[np.ndarray], np.ndarray],
) -> Tensor:
    """Samples a curve over [0, 1]; a periodic window leaves the last sample out."""
    count = as_int(length.item() if isinstance(length, Tensor) else length, op, "window_length")
    wanted = default if dtype is None else dtypes.dtype_of(dtype)
    if count < 0:
        raise bad(ArgumentError, "window_length must not be negative", op, f"window_length={count}")
    if not wanted.is_float:
        raise bad(DTypeError, f"dtype must be a float, not {wanted.name}", op, f"dtype={dtype}")
    if count <= 1:
        return Tensor(np.ones(count, wanted.numpy))
    position = np.arange(count) / (count if periodic else count - 1)
    return Tensor(np.asarray(curve(position)).astype(wanted.numpy))


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Hann window: :math:`\frac12 - \frac12 \cos(2 \pi n / (N - 1))`.

    Args:
        window_length: Number of samples.
        periodic: Whether the window is one period of a longer signal: :math:`N` is one more.
        dtype: A float dtype, float64 by default.

    Returns:
        Tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: if the length is negative.

    Example:
        >>> ops.hann_window(5)
        Tensor(shape=[5], dtype=Float64, value= [ 0.00000000e+00,  3.45491503e-01,  9.04508497e-01,
        9.04508497e-01,  3.45491503e-01])
    """

    def curve(t: np.ndarray) -> np.ndarray:
        return 0.5 - 0.5 * np.cos(2 * math.pi * t)

    return _window("hann_window", window_length, periodic, dtype, dtypes.float64, curve)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: DTypeLike | None = None,
) -> Tensor:  # fmt: skip
    r"""Hamming window: :math:`\alpha - \beta \cos(2 \pi n / (N - 1))`.

    Args:
        window_length: Number of samples.
        periodic: Whether the window is one period of a longer signal: :math:`N` is one more.
        alpha: The constant part.
        beta: The amplitude of the cosine.
        dtype: A float dtype, float32 by default.

    Returns:
        Tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: if the length is negative.

    Example:
        >>> ops.hamming_window(5)
        Tensor(shape=[5], dtype=Float32, value= [ 7.99999982e-02,  3.97852182e-01,  9.12147820e-01,
        9.12147820e-01,  3.97852182e-01])
    """

    def curve(t: np.ndarray) -> np.ndarray:
        return alpha - beta * np.cos(2 * math.pi * t)

    return _window("hamming_window", window_length, periodic, dtype, dtypes.float32, curve)


def blackman_window(
    window_length: object, periodic: bool = True, *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Blackman window: :math:`0.42 - 0.5 \cos(2 \pi n / (N-1)) + 0.08 \cos(4 \pi n / (N-1))`.

    Args:
        window_length: Number of samples, an int or a one-element tensor.
        periodic: Whether the window is one period of a longer signal: :math:`N` is one more.
        dtype: A float dtype, float32 by default.

    Returns:
        Tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: if the length is negative.

    Example:
        >>> ops.blackman_window(5)
        Tensor(shape=[5], dtype=Float32, value= [-1.38777878e-17,  2.00770140e-01,  8.49229872e-01,
        8.49229872e-01,  2.00770140e-01])
    """

    def curve(t: np.ndarray) -> np.ndarray:
        return 0.42 - 0.5 * np.cos(2 * math.pi * t) + 0.08 * np.cos(4 * math.pi * t)

    return _window("blackman_window", window_length, periodic, dtype, dtypes.float32, curve)


def bartlett_window(
    window_length: object, periodic: bool = True, *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Bartlett (triangular) window: :math:`1 - |2 n / (N - 1) - 1|`.

    Args:
        window_length: Number of samples, an int or a one-element tensor.
        periodic: Whether the window is one period of a longer signal: :math:`N` is one more.
        dtype: A float dtype, float32 by default.

    Returns:
        Tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: if the length is negative.

    Example:
        >>> ops.bartlett_window(5)
        Tensor(shape=[5], dtype=Float32, value= [ 0.00000000e+00,  4.00000006e-01,  8.00000012e-01,
        8.00000012e-01,  4.00000006e-01])
    """

    def curve(t: np.ndarray) -> np.ndarray:
        return 1 - np.abs(2 * t - 1)

    return _window("bartlett_window", window_length, periodic, dtype, dtypes.float32, curve)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Kaiser window: :math:`I_0(\beta \sqrt{1 - (2n/(N-1) - 1)^2}) / I_0(\beta)`.

    Args:
        window_length: Number of samples.
        periodic: Whether the window is one period of a longer signal: :math:`N` is one more.
        beta: Shape; larger is narrower.
        dtype: A float dtype, float64 by default.

    Returns:
        Tensor of shape ``(window_length,)``.

    Raises:
        ArgumentError: if the length is negative.

    Example:
        >>> ops.kaiser_window(5)
        Tensor(shape=[5], dtype=Float64, value= [ 5.27734413e-05,  1.01719688e-01,  7.92939834e-01,
        7.92939834e-01,  1.01719688e-01])
    """

    def curve(t: np.ndarray) -> np.ndarray:
        return np.i0(beta * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(np.array([beta]))

    return _window("kaiser_window", window_length, periodic, dtype, dtypes.float64, curve)
