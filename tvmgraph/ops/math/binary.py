"""Functions of two or three tensors made of simpler ones, elementwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Array
from tvmgraph.core.columns import (
    Builder,
    Expr,
    Formulas,
    LowerColumn,
    NumberLike,
    OnnxColumn,
    OnnxNamed,
    OnnxOps,
    VjpColumn,
)
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import RowDecorator, primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.ops.common.arguments import as_tensor
from tvmgraph.ops.common.pointwise import TirMath, numpy_formula, onnx_float32, pointwise
from tvmgraph.ops.common.rows import binary_samples, sum_to

__all__ = [
    "addcdiv", "addcmul", "copysign", "heaviside", "hypot", "ldexp", "lerp", "logaddexp",
    "logaddexp2", "nextafter", "xdivy", "xlogy",
]  # fmt: skip

_LN2 = math.log(2)
_INF, _NAN = math.inf, math.nan


@fusible
def lerp(input: Tensor, end: Tensor, weight: NumberLike) -> Tensor:
    r"""Interpolates linearly: :math:`out_i = input_i + weight_i (end_i - input_i)`.

    Args:
        input: Tensor of any shape.
        end: Tensor; the shapes broadcast.
        weight: Number, or tensor that broadcasts, which a float ``input`` casts.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.lerp(Tensor([1.0, 2.0]), Tensor([10.0, 10.0]), 0.5)
        Tensor(shape=[2], dtype=Float32, value= [ 5.50000000e+00,  6.00000000e+00])
    """
    given = isinstance(weight, Tensor) and isinstance(input, Tensor)  # pyright: ignore
    if given and input.dtype.is_float:
        weight = F.cast(weight, input.dtype)
    return input + (end - input) * weight


@fusible
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: object = 1) -> Tensor:
    r"""Adds a scaled product: :math:`out_i = input_i + value \cdot tensor1_i \cdot tensor2_i`.

    Args:
        input: Tensor of any shape.
        tensor1: Tensor; the shapes broadcast.
        tensor2: Tensor; the shapes broadcast.
        value: Number or tensor.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.addcmul(Tensor([1.0]), Tensor([2.0]), Tensor([3.0]), 0.5)
        Tensor(shape=[1], dtype=Float32, value= [ 4.00000000e+00])
    """
    return _plus_times(input, tensor1 * tensor2, value)


@fusible
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: object = 1) -> Tensor:
    r"""Adds a scaled quotient: :math:`out_i = input_i + value \cdot tensor1_i / tensor2_i`.

    Args:
        input: Tensor of any shape.
        tensor1: Tensor; the shapes broadcast.
        tensor2: Tensor; the shapes broadcast.
        value: Number or tensor.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.addcdiv(Tensor([1.0]), Tensor([2.0]), Tensor([4.0]), 0.5)
        Tensor(shape=[1], dtype=Float32, value= [ 1.25000000e+00])
    """
    return _plus_times(input, tensor1 / tensor2, value)


def _plus_times(x: Tensor, change: Tensor, value: object) -> Tensor:
    return x + (change if isinstance(value, (int, float)) and value == 1 else change * value)


_BINARY_SAMPLES = [
    *binary_samples(),
    sample((5,), (5,), dtype="float16", grad=False),
    sample((5,), (5,), dtype="bfloat16", grad=False),
    sample((5,), (5,), dtype="float64"),
    sample((5,), (5,), dtype="int32", low=1, high=5),
]


def _row(
    eager: Callable[..., Array],
    lower: LowerColumn | str | Reason,
    vjp: VjpColumn | str | Reason,
    onnx: OnnxColumn | str | Reason,
    samples: Sequence[Sample] | None = None,
    promote: str = "common_float",
) -> RowDecorator:
    return primitive(
        infer=rules.elementwise(dtypes.FLOATS),
        promote=promote,
        eager=eager,
        lower=lower,
        vjp=vjp,
        onnx=onnx if isinstance(onnx, Reason) else onnx_float32(onnx),
        samples=_BINARY_SAMPLES if samples is None else [*_BINARY_SAMPLES, *samples],
    )


def _hypot_wide(m: Formulas, a: Expr, b: Expr) -> Expr:
    """In float64 no square of a float32 overflows; an infinity outweighs a NaN."""
    infinite = m.isinf(a) | m.isinf(b)
    return m.where(infinite, math.inf, m.sqrt(a * a + b * b))


def _hypot_scaled(m: TirMath, a: Expr, b: Expr) -> Expr:
    """With numbers taken where their squares neither overflow nor vanish, by powers of two."""

    def body(a: Expr, b: Expr, scale: Expr) -> Expr:
        return _hypot_wide(m, a * scale, b * scale) / scale

    above = m.tir.max(m.tir.abs(a), m.tir.abs(b))
    small = m.where(above < m.const(2.0**-500), 2.0**600, 1.0)
    scale = m.where(above > m.const(2.0**500), 2.0**-600, small)
    return m.let(scale, lambda scale: body(a, b, scale))


def _lower_hypot(R: Builder, a: Expr, b: Expr) -> Expr:
    if R.type(a).dtype is dtypes.float64:
        return pointwise("hypot", _hypot_scaled)(R, a, b)
    return pointwise("hypot", _hypot_wide, wide="float64")(R, a, b)


def _vjp_hypot(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    g = F.where(F.equal(y, 0), 0, g / y)  # where both are 0, the middle of all slopes
    return sum_to(g * a, a), sum_to(g * b, b)


@_row(
    np.hypot,
    _lower_hypot,
    _vjp_hypot,
    lambda O, a, b: O.Sqrt(O.Add(O.Mul(a, a), O.Mul(b, b))),
    [sample(np.array([3e30, 3, _INF], np.float64), np.array([4e30, 4, 0], np.float64), grad=False)],
)
def hypot(input: Tensor, other: Tensor) -> Tensor:
    r"""Length of the hypotenuse: :math:`out_i = \sqrt{input_i^2 + other_i^2}`, without overflow.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast, and two integers are computed in float32.

    Example:
        >>> ops.hypot(Tensor([3.0, 5.0]), Tensor([4.0, 12.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  1.30000000e+01])
    """
    ...


def _logaddexp(m: Formulas, a: Expr, b: Expr) -> Expr:
    """Equal infinities must not be subtracted, and NaN passes through the sum."""
    high = m.where(a < b, b, a)
    distance = m.where(a < b, a - b, b - a)
    return m.where(a == b, a + _LN2, high + m.log1p(m.exp(distance)))


def _onnx_logaddexp(O: OnnxOps, a: OnnxNamed, b: OnnxNamed, base: float = math.e) -> OnnxNamed:
    high = O.Max(a, b)
    far = O.Neg(O.Abs(O.Sub(a, b)))
    one, ln2, scale = (O.const(v, a.type.dtype) for v in (1, math.log(2, base), math.log(base)))
    sums = O.Add(one, O.Exp(far if base == math.e else O.Mul(far, scale)))
    rest = O.Log(sums) if base == math.e else O.Div(O.Log(sums), scale)
    return O.Where(O.Equal(a, b), O.Add(a, ln2), O.Add(high, rest))


_LOG_SAMPLES = [
    sample(
        np.array([_INF, -_INF, -_INF, 1e4, _NAN, 1], np.float32),
        np.array([_INF, -_INF, 1, -1e4, 1, _INF], np.float32), grad=False,
    )
]  # fmt: skip


@_row(
    np.logaddexp,
    pointwise("logaddexp", _logaddexp),
    lambda g, y, a, b: (sum_to(g * F.exp(a - y), a), sum_to(g * F.exp(b - y), b)),
    _onnx_logaddexp,
    _LOG_SAMPLES,
)
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    r"""Adds numbers given by their logarithms: :math:`\ln(e^{input_i} + e^{other_i})`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast, and two integers are computed in float32.

    Example:
        >>> ops.logaddexp(Tensor([1.0, 2.0]), Tensor([2.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.31326175e+00,  2.69314718e+00])
    """
    ...


def _logaddexp2(m: Formulas, a: Expr, b: Expr) -> Expr:
    high = m.where(a < b, b, a)
    distance = m.where(a < b, a - b, b - a)
    return m.where(a == b, a + 1, high + m.log1p(m.exp(distance * _LN2)) * (1 / _LN2))


@_row(
    np.logaddexp2,
    pointwise("logaddexp2", _logaddexp2),
    lambda g, y, a, b: (
        sum_to(g * F.exp((a - y) * _LN2), a), sum_to(g * F.exp((b - y) * _LN2), b)
    ),
    lambda O, a, b: _onnx_logaddexp(O, a, b, 2.0),
    _LOG_SAMPLES,
)  # fmt: skip
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    r"""Adds numbers given by their binary logarithms: :math:`\log_2(2^{input_i} + 2^{other_i})`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast, and two integers are computed in float32.

    Example:
        >>> ops.logaddexp2(Tensor([1.0, 2.0]), Tensor([2.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.58496261e+00,  3.00000000e+00])
    """
    ...


_NO_SIGN_BIT = Reason("ONNX cannot tell -0.0 from 0.0")


@_row(
    np.copysign,
    pointwise("copysign", lambda m, a, b: m.copysign(a, b)),
    lambda g, y, a, b: (sum_to(F.where(y == a, g, -g), a), None),
    _NO_SIGN_BIT,
    [
        sample(
            np.array([1, 1, _INF, 0], np.float32),
            np.array([-0.0, 0, -1, -1], np.float32),
            grad=False,
        )
    ],
    promote="first_float",
)
def copysign(x: Tensor, other: Tensor) -> Tensor:
    r"""Gives elements another sign: :math:`out_i = |x_i| \cdot sign(other_i)`.

    Args:
        x: Tensor or number, which decides the dtype; integers are computed in float32.
        other: Tensor or number whose sign bit is taken (that of -0.0 too); the shapes broadcast.

    Example:
        >>> ops.copysign(Tensor([1.0, -2.0]), Tensor([-1.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [-1.00000000e+00,  2.00000000e+00])
    """
    ...


@primitive(
    infer=rules.elementwise((dtypes.float32, dtypes.float64)),
    promote="common_float",
    eager=np.nextafter,
    lower=pointwise("nextafter", lambda m, a, b: m.nextafter(a, b)),
    vjp=lambda g, y, a, b: (sum_to(g, a), None),
    onnx=Reason("ONNX has no operator on the bits of floating-point numbers"),
    samples=[
        sample((3, 4), (3, 4), grad=False),
        sample((4, 1, 3), (5, 1), grad=False),
        sample((), (3,), dtype="float64", grad=False),
        sample((0, 3), (1, 3), grad=False),
        sample(np.array([0, 1, _INF, 1], np.float32), np.array([1, 1, 0, _NAN], np.float32),
               grad=False),
    ],
)  # fmt: skip
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next representable number from ``input`` towards ``other``, elementwise.

    Args:
        input: float32 or float64 tensor, or a number.
        other: Tensor or number; the two shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape.

    Example:
        >>> ops.nextafter(Tensor([0.0]), Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.40129846e-45])
    """
    ...


@fusible
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    r"""Heaviside step: 0 below zero, ``values`` at zero and 1 above.

    Args:
        input: Tensor of any shape.
        values: Tensor of the values at zero; the two shapes broadcast.

    Returns:
        Tensor of the broadcast shape and promoted dtype.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.heaviside(Tensor([-2.0, 0.0, 3.0]), Tensor(0.5))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  5.00000000e-01,  1.00000000e+00])
    """
    return F.where(input == 0, values, F.where(input < 0, 0, F.where(input > 0, 1, input)))


def ldexp(x: Tensor, other: Tensor) -> Tensor:
    r"""Scales by a power of two: :math:`out_i = x_i \cdot 2^{other_i}`.

    Args:
        x: Tensor of any shape.
        other: Tensor of exponents; the two shapes broadcast.

    Returns:
        Floating-point tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.ldexp(Tensor([1.0]), Tensor([1, 2, 3]))
        Tensor(shape=[3], dtype=Float32, value= [ 2.00000000e+00,  4.00000000e+00,  8.00000000e+00])
    """
    return x * F.exp2(as_tensor(other))


def _where_nonzero(m: Formulas, x: Expr, value: Expr, y: Expr) -> Expr:
    """0 where x is 0 and y a number, whatever the formula gives there."""
    return m.where((x == 0) & m.logical_not(m.isnan(y)), 0, value)


def _xlogy(m: Formulas, x: Expr, y: Expr) -> Expr:
    return _where_nonzero(m, x, x * m.log(y), y)


def _vjp_xlogy(g: Tensor, out: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    nothing = F.logical_and(x == 0, y <= 0)  # where 0 log(y) is 0 by agreement, not by continuity
    gx = F.where(nothing, 0, g * F.log(F.where(nothing, 1, y)))
    return sum_to(gx, x), sum_to(g * x / y, y)


def _onnx_nonzero(O: OnnxOps, x: OnnxNamed, value: OnnxNamed, y: OnnxNamed) -> OnnxNamed:
    zero = O.const(0, x.type.dtype)
    return O.Where(O.And(O.Equal(x, zero), O.Not(O.IsNaN(y))), zero, value)


_AT_ZERO = [
    sample(np.array([0, 0, 0, 1, _NAN], np.float32), np.array([0, -1, _NAN, 0, 1], np.float32),
           grad=False)
]  # fmt: skip


@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    promote="common_float",
    eager=numpy_formula(_xlogy),
    lower=pointwise("xlogy", _xlogy),
    vjp=_vjp_xlogy,
    onnx=onnx_float32(lambda O, x, y: _onnx_nonzero(O, x, O.Mul(x, O.Log(y)), y)),
    samples=[
        *binary_samples(low=0.3, high=3.0),
        sample((5,), (5,), dtype="float16", low=0.3, high=3, grad=False),
        sample((5,), (5,), dtype="bfloat16", low=0.3, high=3, grad=False),
        *_AT_ZERO,
    ],
)
def xlogy(input: Tensor, other: Tensor) -> Tensor:
    r"""Product with a logarithm: :math:`out_i = input_i \ln(other_i)`, 0 where ``input`` is 0.

    Args:
        input: Tensor or number, the factor.
        other: Tensor or number, of which the logarithm is taken; the shapes broadcast.

    Example:
        >>> ops.xlogy(Tensor([0.0, 2.0]), Tensor([0.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.38629436e+00])
    """
    ...


def xdivy(x: object, y: object) -> Tensor:
    r"""Quotient that is 0 where the dividend is: :math:`out_i = x_i / y_i`.

    Args:
        x: Tensor or number; integers are computed in float32.
        y: Tensor or number; the two shapes broadcast and the dtypes are promoted.

    Returns:
        Floating-point tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.xdivy(Tensor([0.0, 4.0]), Tensor([0.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  2.00000000e+00])
    """
    both = F.logical_and(F.equal(x, 0), F.equal(y, 0))
    return F.div(x, F.where(both, 1, y))  # a divisor of 1 keeps the cotangents finite too
