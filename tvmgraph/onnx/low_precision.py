"""Element types narrower than a byte, and 8-bit floats, which this package's tensors do not have.

Their values are held in the next wider type: float32 for floats, int8 or uint8 for integers. They
are rounded as the low-precision type is, so that only its name is lost where a model hands a value
out.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, TypeGuard

import ml_dtypes
import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.onnx_library import TensorProto
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor

_FLOATS: dict[int, type] = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}
_INTEGERS: dict[int, tuple[int, bool]] = {  # bits, and whether there is a sign
    TensorProto.INT4: (4, True),
    TensorProto.UINT4: (4, False),
    TensorProto.INT2: (2, True),
    TensorProto.UINT2: (2, False),
}
_FOUR_BIT_FLOATS = (TensorProto.FLOAT4E2M1,)  # without infinities and NaN


@dataclass(frozen=True)
class LowPrecision:
    """A value of a low-precision type.

    Attributes:
        wide: Its elements in the wider type: a tensor, or an array when they are known.
        kind: ONNX' number of the low-precision type.
    """

    wide: Any
    kind: int

    @property
    def aval(self) -> Any:
        """Type of the wider tensor."""
        return self.wide.aval


def is_low_precision(kind: int | None) -> TypeGuard[int]:
    """Whether ONNX' number of an element type is that of a low-precision type.

    Args:
        kind: ONNX' number of an element type.
    """
    return kind in _FLOATS or kind in _INTEGERS


def wide_dtype(kind: int) -> dtypes.DType:
    """Returns the type that holds the values of a low-precision one.

    Args:
        kind: ONNX' number of a low-precision type.
    """
    if kind in _FLOATS:
        return dtypes.float32
    return dtypes.int8 if _INTEGERS[kind][1] else dtypes.uint8


def limits(kind: int) -> tuple[float, float]:
    """Returns the least and the largest finite value of a low-precision type.

    Args:
        kind: ONNX' number of a low-precision type.
    """
    if kind in _FLOATS:
        largest = float(_values(kind)[-1])
        return -largest, largest
    bits, signed = _INTEGERS[kind]
    return (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if signed else (0.0, 2.0**bits - 1)


def to_low_precision(
    x: Tensor, kind: int, saturate: bool = True, mode: str = "nearest"
) -> LowPrecision:
    """Converts a tensor to a low-precision type.

    Args:
        x: Any numbers.
        kind: ONNX' number of the type.
        saturate: Whether what is too large becomes the largest value (8-bit floats).
        mode: For powers of two (float8e8m0) ``"nearest"``, ``"up"`` or ``"down"``; the others
            are rounded to the nearest, halves to even.
    """
    if kind in _INTEGERS:
        return LowPrecision(_wrapped(x, *_INTEGERS[kind]), kind)
    return LowPrecision(_rounded(F.cast(x, dtypes.float32), kind, saturate, mode), kind)


def _wrapped(x: Tensor, bits: int, signed: bool) -> Tensor:
    """Keeps the lowest bits of an integer; a fraction is cut off."""
    low = F.bitwise_and(F.cast(x, dtypes.int32), 2**bits - 1)
    if signed:
        low = F.where(low >= 2 ** (bits - 1), low - 2**bits, low)
    return F.cast(low, dtypes.int8 if signed else dtypes.uint8)


@functools.cache
def _values(kind: int) -> np.ndarray:
    """Returns the finite values that are not negative, by their code."""
    kind_of = np.dtype(_FLOATS[kind])
    codes = np.arange(256 if kind == TensorProto.FLOAT8E8M0 else 128, dtype=np.uint8)
    values = codes[: 8 if kind in _FOUR_BIT_FLOATS else None].view(kind_of).astype(np.float32)
    return values[np.isfinite(values)]


def _rounded(x: Tensor, kind: int, saturate: bool, mode: str) -> Tensor:
    """Rounds to the values of a type: counts the borders between them that lie below."""
    values = _values(kind)
    mode = mode if kind == TensorProto.FLOAT8E8M0 else "nearest"
    beyond = 2 * values[-1:].astype(np.float64) - values[-2:-1]
    grid = np.concatenate([values, np.minimum(beyond, np.finfo(np.float32).max)])
    low, high = grid[:-1].astype(np.float64), grid[1:].astype(np.float64)
    borders = {"up": low, "down": high}.get(mode, (low + high) / 2)
    # on a border the even code wins; up and down, a value lies on a border only if it is exact
    even = np.arange(len(borders)) % 2 == 0
    stays = {"up": np.full_like(even, True), "down": np.full_like(even, False)}.get(mode, even)
    size = F.abs(x)
    code = _count(size, borders[stays], False)
    code = code + _count(size, borders[~stays], True)
    found = F.gather(Tensor(values), F.minimum(code, len(values) - 1), 0)
    if not saturate and kind not in _FOUR_BIT_FLOATS:
        infinite = kind == TensorProto.FLOAT8E5M2
        found = F.where(code >= len(values), np.inf if infinite else np.nan, found)
    signed = F.where(x < 0, -found, found)
    return F.where(F.isnan(x), 0.0 if kind in _FOUR_BIT_FLOATS else np.nan, signed)


def _count(x: Tensor, borders: np.ndarray, including: bool) -> Tensor:
    """Returns how many borders lie below every element, or at it too."""
    if not borders.size:
        return F.zeros(x.shape, dtypes.int64)
    line = Tensor(borders.astype(np.float32))
    return F.cast(F.searchsorted(line, x, right=including), dtypes.int64)
