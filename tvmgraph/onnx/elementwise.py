"""Elementwise ONNX operators."""

from __future__ import annotations

import functools
import math

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.low_precision import (
    LowPrecision,
    is_low_precision,
    limits,
    to_low_precision,
    wide_dtype,
)
from tvmgraph.onnx.table import CONVERTERS, NodeCall, converter, dtype_of

_SAME_NAME = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp",
    "Floor", "IsNaN", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign",
    "Sin", "Sinh", "Softsign", "Sqrt", "Tan", "Tanh",
)  # fmt: skip
_TWO = {
    "Equal": "equal", "Less": "less", "LessOrEqual": "less_equal", "Greater": "greater",
    "GreaterOrEqual": "greater_equal", "And": "logical_and", "Or": "logical_or",
    "Xor": "logical_xor", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "MatMul": "matmul",
}  # fmt: skip
_OTHERS = {"Not": "logical_not", "BitwiseNot": "bitwise_not", "Where": "where", "Det": "det"}
_FOLDED = {"Max": "maximum", "Min": "minimum", "Sum": "add"}
#: Terms of the cosines of windows.
_WINDOWS = {
    "HannWindow": (0.5, -0.5), "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}  # fmt: skip


def _call(name: str, n: NodeCall, *xs: Tensor) -> object:
    return getattr(F, name)(*xs)


def _fold(name: str, n: NodeCall, *xs: Tensor) -> Tensor:
    return functools.reduce(getattr(F, name), xs)


CONVERTERS.update((name, functools.partial(_call, name.lower())) for name in _SAME_NAME)
CONVERTERS.update((k, functools.partial(_call, own)) for k, own in (_TWO | _OTHERS).items())
CONVERTERS.update((k, functools.partial(_fold, own)) for k, own in _FOLDED.items())
# one formula each
CONVERTERS |= {
    "BitCast": lambda n, x: n.known(0).view(dtype_of(n.get("to"), n.where).numpy),
    "Cast": lambda n, x: _converted(n, x, n.get("to")),
    "Gelu": lambda n, x: F.gelu(x, n.get("approximate")),
    "HardSigmoid": lambda n, x: F.minimum(F.maximum(x * n.get("alpha") + n.get("beta"), 0.0), 1.0),
    "HardSwish": lambda n, x: F.hardswish(x),
    "Identity": lambda n, x: n.values[0],
    "LeakyRelu": lambda n, x: F.where(x >= 0, x, x * n.get("alpha")),
    "Mean": lambda n, *xs: _fold("add", n, *xs) / len(xs),
    "Mod": lambda n, a, b: F.fmod(a, b) if n.get("fmod") else F.floor_mod(a, b),
    "PRelu": lambda n, x, slope: F.where(x >= 0, x, x * slope),
    "Selu": lambda n, x: n.get("gamma") * _elu(n, x),
    "Softplus": lambda n, x: F.maximum(x, 0.0) + F.log1p(F.exp(-F.abs(x))),
    "Swish": lambda n, x: x * F.sigmoid(x * n.get("alpha")),
    "ThresholdedRelu": lambda n, x: F.where(x > n.get("alpha"), x, F.zeros_like(x)),
}


@converter("Add", "Sub", "Mul")
def _arithmetic(n: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    return getattr(F, n.node.op_type.lower())(a, _legacy(n, a, b))


def _legacy(n: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    """Broadcasting as before opset 7: ``b`` is aligned at ``axis``."""
    if n.opset < 7 and n.get("broadcast") and n.get("axis") is not None:
        trailing = a.ndim - n.get("axis") - b.ndim
        return F.reshape(b, (*b.shape, *(1,) * trailing))
    return b


@converter("Div")
def _div(n: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    b = _legacy(n, a, b)
    return F.div(a, b) if a.dtype.is_float else F.trunc_div(a, b)


@converter("Pow")
def _pow(n: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    e = n.values[1]
    if isinstance(e, np.ndarray) and e.size == 1 and e.ndim <= a.ndim and a.dtype.is_float:
        return F.power_scalar(a, exponent=float(e.item()))  # squares need no power function
    if a.dtype.is_float is not b.dtype.is_float:
        wide = dtypes.float64 if not a.dtype.is_float else a.dtype
        return F.cast(F.pow(F.cast(a, wide), F.cast(b, wide)), a.dtype)
    return F.cast(F.pow(a, F.cast(b, a.dtype)), a.dtype)


@converter("BitShift")
def _bit_shift(n: NodeCall, a: Tensor, b: Tensor) -> Tensor:
    left = n.get("direction") == "LEFT"
    return (F.bitwise_left_shift if left else F.bitwise_right_shift)(a, b)


@converter("CastLike")
def _cast_like(n: NodeCall, x: Tensor, like: Tensor) -> Tensor | LowPrecision:
    kind = n.low_precision_kind(1)
    return F.cast(x, like.dtype) if kind is None else _converted(n, x, kind)


def _converted(n: NodeCall, x: Tensor, kind: int) -> LowPrecision | Tensor:
    if not is_low_precision(kind):
        return F.cast(x, dtype_of(kind, n.where))
    return to_low_precision(x, kind, bool(n.get("saturate", 1)), n.get("round_mode", "nearest"))


@converter("Clip")
def _clip(n: NodeCall, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    if n.opset < 11:
        low, high = n.get("min"), n.get("max")  # pyright: ignore[reportAssignmentType]
    if low is not None:
        x = F.maximum(x, low)
    return x if high is None else F.minimum(x, high)


@converter("IsInf")
def _is_inf(n: NodeCall, x: Tensor) -> Tensor:
    up, down = n.get("detect_positive"), n.get("detect_negative")
    if up and down:
        return F.isinf(x)
    if not up and not down:
        return F.zeros(x.shape, dtypes.bool_)
    return F.logical_and(F.isinf(x), x > 0 if up else x < 0)


@converter("Elu")
def _elu(n: NodeCall, x: Tensor) -> Tensor:
    return F.where(x > 0, x, n.get("alpha") * F.expm1(F.minimum(x, 0.0)))


@converter("Celu")
def _celu(n: NodeCall, x: Tensor) -> Tensor:
    alpha = n.get("alpha")
    return F.maximum(x, 0.0) + F.minimum(alpha * F.expm1(F.minimum(x, 0.0) / alpha), 0.0)


@converter("Shrink")
def _shrink(n: NodeCall, x: Tensor) -> Tensor:
    lambd, bias = n.get("lambd"), n.get("bias")
    zero = F.zeros_like(x)
    small = F.where(x > lambd, F.cast(x - bias, x.dtype), zero)
    return F.where(x < -lambd, F.cast(x + bias, x.dtype), small)


@converter("QuantizeLinear")
def _quantize(
    n: NodeCall, x: Tensor, scale: Tensor, zero: Tensor | None = None
) -> LowPrecision | Tensor:
    small = n.low_precision_kind(2) if zero is not None else n.get("output_dtype")
    y = F.cast(x, dtypes.float32) / F.cast(_along(n, scale, x), dtypes.float32)
    if small is not None and is_low_precision(small) and wide_dtype(small).is_float:
        return to_low_precision(y, small, bool(n.get("saturate", 1)))
    kind = zero.dtype if zero is not None else n.dtype("output_dtype", dtypes.uint8)
    if kind.is_float:
        raise n.fail(f"quantizing to {kind.name} is not supported")
    y = F.round(y)
    if zero is not None:
        y = y + F.cast(_along(n, zero, x), dtypes.float32)
    info = np.iinfo(kind.numpy)
    low, high = limits(small) if is_low_precision(small) else (float(info.min), float(info.max))
    y = F.cast(F.minimum(F.maximum(y, low), high), kind)
    return LowPrecision(y, small) if is_low_precision(small) else y


@converter("DequantizeLinear")
def _dequantize(n: NodeCall, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    y = F.cast(x, dtypes.int32 if not x.dtype.is_float else scale.dtype)
    if zero is not None:
        y = y - F.cast(_along(n, zero, x), y.dtype)
    result = F.cast(y, scale.dtype) * _along(n, scale, x)
    return F.cast(result, n.dtype("output_dtype", scale.dtype))


def _along(n: NodeCall, scale: Tensor, x: Tensor) -> Tensor:
    """Aligns a scale with its axis; a scale per block is repeated."""
    block = n.get("block_size", 0)
    if block:
        axis = n.get("axis") % x.ndim
        wide = F.repeat_elements(scale, block, axis)
        return wide[(slice(None),) * axis + (slice(0, x.shape[axis]),)]
    if scale.ndim == 1 and x.ndim > 1 and scale.shape[0] != 1:
        return F.reshape(scale, (-1, *(1,) * (x.ndim - 1 - n.get("axis") % x.ndim)))
    return scale


@converter("DynamicQuantizeLinear")
def _dynamic_quantize(n: NodeCall, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    low = F.minimum(F.amin(x), 0.0)
    scale = (F.maximum(F.amax(x), 0.0) - low) / 255.0
    zero = F.round(F.minimum(F.maximum(-low / scale, 0.0), 255.0))
    y = F.minimum(F.maximum(F.round(x / scale) + zero, 0.0), 255.0)
    return F.cast(y, dtypes.uint8), scale, F.cast(zero, dtypes.uint8)


@converter(*_WINDOWS)
def _window(n: NodeCall, _: object) -> np.ndarray:
    size, terms = n.number(0), _WINDOWS[n.node.op_type]
    n.require_memory((size,))
    kind = n.dtype("output_datatype", dtypes.float32)
    with np.errstate(invalid="ignore"):  # one step has no length
        steps = np.arange(size) * 2 * math.pi / (size if n.get("periodic") else size - 1)
    return sum(t * np.cos(i * steps) for i, t in enumerate(terms)).astype(kind.numpy)  # pyright: ignore
