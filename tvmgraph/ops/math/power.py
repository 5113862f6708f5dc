"""Exponentials, logarithms, roots and powers.

Powers have a general row, and one for the number exponents that need no power function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, Formulas, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import CHEAP, ELEMENTWISE
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DTypeError
from tvmgraph.ops.common.pointwise import (
    NUMBERS,
    TirMath,
    float_samples,
    number_samples,
    numpy_formula,
    onnx_wide,
    pointwise,
    unary,
)
from tvmgraph.ops.common.repeated import lower_repeated
from tvmgraph.ops.common.rows import binary_samples, sum_to

__all__ = [
    "exp", "exp2", "expm1", "float_power", "inv", "log", "log1p", "log2", "log10", "pow", "power",
    "power_scalar", "reciprocal", "rsqrt", "sqrt", "square", "tensor_exp", "tensor_expm1",
    "tensor_pow",
]  # fmt: skip

#: Integer exponents up to here become multiplications.
_MAX_CHAIN = 16
#: Integers whose reciprocal is one, too, under the name `inv`.
_WHOLE = (dtypes.int16, dtypes.int32, dtypes.int64)


def _integer_power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a ** b of integers; a negative exponent gives the reciprocal rounded towards zero."""
    if a.dtype.kind == "u":
        return np.power(a, b)
    positive = np.power(a, np.maximum(b, 0))
    odd = np.where(b % 2 == 1, a, a * a)
    return np.where(b < 0, np.where((a == 1) | (a == -1), odd, 0), positive)


def _eager_power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind in "iu":
        return np.asarray(_integer_power(a, b), a.dtype)
    return np.power(a, b)


def _power(m: TirMath, a: Expr, b: Expr) -> Expr:
    return m.pow(a, b)


_float_power_kernel = pointwise("power", _power)


def _lower_power(R: Builder, a: Expr, b: Expr) -> Expr:
    if R.type(a).dtype.is_float:
        return _float_power_kernel(R, a, b)
    return lower_repeated(R, "power", a, b)


def _vjp_power(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor | None, ...]:
    ga = F.where(b == 0, 0, g * b * F.power(a, b - 1))
    zero = a == 0
    gb = F.where(zero, 0, g * y * F.log(F.where(zero, 1, a)))
    return sum_to(ga, a), sum_to(gb, b)


_onnx_wide_power = onnx_wide("Pow", dtypes.int32, dtypes.int64)


def _onnx_power(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
    """ONNX leaves a negative integer exponent open."""
    d = a.type.dtype
    if d not in (dtypes.int32, dtypes.int64):
        return _onnx_wide_power(O, a, b)
    zero, one, two = (O.const(v, d) for v in (0, 1, 2))
    sign = O.Pow(a, O.Mod(b, two))  # of -1 and 1; any other reciprocal is rounded to 0
    small = O.Where(O.Equal(O.Abs(a), one), sign, zero)
    return O.Where(O.Less(b, zero), small, O.Pow(a, O.Max(b, zero)))


@precise
@primitive(
    infer=rules.elementwise(NUMBERS),
    promote="no_bool",
    eager=_eager_power,
    lower=_lower_power,
    vjp=_vjp_power,
    onnx=_onnx_power,
    samples=[
        *binary_samples(low=0.3, high=2.0),
        sample((6,), (6,), dtype="int32", low=0, high=6),
        sample((6,), (6,), dtype="int64", low=0, high=9),
        sample((6,), (6,), dtype="uint8", low=0, high=3),
        sample((9,), (9,), dtype="int32", low=-2, high=2),
        sample((6,), (6,), dtype="float16", low=0.3, high=2, grad=False),
        sample((6,), (6,), dtype="bfloat16", low=0.3, high=2, grad=False),
        sample((5,), (5,), dtype=("int64", "float32"), low=1, high=3),
        sample(
            np.array([0, 0, -2, -2, 0, np.inf, np.nan, 1], np.float32),
            np.array([0, 2, 3, 0.5, -1, 2, 0, np.nan], np.float32),
            grad=False,
        ),
    ],
)
def power(input: Tensor, exponent: Tensor) -> Tensor:
    r"""Power of two tensors, elementwise: :math:`y_i = input_i^{exponent_i}`.

    Args:
        input: Tensor or number.
        exponent: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype. Integers wrap around as sums do; a
        negative power of one is the reciprocal rounded towards zero.
    """
    ...


def _chain(x: Expr, n: int) -> Any:
    """x ** n by repeated squaring."""
    result = None
    while n:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        x = x * x if n else x
    return result


def _power_scalar(m: Formulas, x: Expr, *, exponent: float) -> Any:
    """x ** exponent without a power function where a few operations do."""
    if exponent == 0.5:
        return m.sqrt(x)
    if exponent == -0.5:
        return 1 / m.sqrt(x)
    if exponent == int(exponent) and 1 <= abs(exponent) <= _MAX_CHAIN:
        y = _chain(x, abs(int(exponent)))
        return y if exponent > 0 else 1 / y
    return None


def _is_short(exponent: float) -> bool:
    whole = np.isfinite(exponent) and exponent == int(exponent)
    return abs(exponent) == 0.5 or (whole and 1 <= abs(exponent) <= _MAX_CHAIN)


_eager_short = numpy_formula(_power_scalar)


def _infer_scalar(x: TensorType, *, exponent: float) -> TensorType:
    result = rules.elementwise(NUMBERS)(x)
    if not x.dtype.is_float and exponent != int(exponent):
        raise DTypeError(
            f"an integer to the power {exponent} is no integer", fix="cast it to float32 before"
        )
    return result


def _eager_scalar(x: np.ndarray, *, exponent: float) -> np.ndarray:
    whole = x.dtype.kind in "iu"
    if _is_short(exponent) and not (whole and exponent < 0):
        return _eager_short(x, exponent=exponent)
    return _eager_power(x, np.asarray(exponent, x.dtype))


def _lower_scalar(R: Builder, x: Expr, *, exponent: float) -> Expr:
    d = R.type(x).dtype
    if _is_short(exponent) and (d.is_float or exponent > 0):
        return pointwise("power_scalar", _power_scalar)(R, x, exponent=exponent)
    return _lower_power(R, x, R.const(exponent, d.name))


def _vjp_scalar(g: Tensor, y: Tensor, x: Tensor, *, exponent: float) -> tuple[Tensor | None, ...]:
    if exponent == 0:
        return (F.zeros_like(x),)
    if exponent == 1:
        return (g,)
    return (g * (F.power_scalar(x, exponent - 1) * exponent),)


def _onnx_scalar(O: OnnxOps, x: OnnxNamed, *, exponent: float) -> OnnxNamed:
    if abs(exponent) == 0.5:  # Pow has other results for -inf and -0
        root = O.Sqrt(x)
        return root if exponent > 0 else O.Reciprocal(root)
    return _onnx_power(O, x, O.const(exponent, x.type.dtype))


@precise
@primitive(
    infer=_infer_scalar,
    promote="each",
    traits=ELEMENTWISE,
    eager=_eager_scalar,
    lower=_lower_scalar,
    vjp=_vjp_scalar,
    onnx=_onnx_scalar,
    samples=[
        sample((3, 4), exponent=2),
        sample((3, 4), exponent=3.0),
        sample((0, 3), exponent=3.0),
        sample((), exponent=7),
        sample((3,), exponent=0),
        sample((3, 4), low=0.3, exponent=0.5),
        sample((3, 4), low=0.3, exponent=-0.5),
        sample((3, 4), low=0.3, exponent=-3),
        sample((3, 4), low=0.3, exponent=2.7),
        sample((3,), dtype="float16", exponent=3, grad=False),
        sample((3,), dtype="bfloat16", exponent=2, grad=False),
        sample((3, 4), dtype="int32", low=-5, high=5, exponent=3),
        sample((9,), dtype="int64", low=-2, high=2, exponent=-1),
        sample((9,), dtype="uint8", low=0, high=15, exponent=2),
        sample((9,), dtype="int32", exponent=0.5, raises=DTypeError),
    ],
)
def power_scalar(input: Tensor, exponent: float) -> Tensor:
    r"""Power with a number as exponent: :math:`y_i = input_i^{exponent}`.

    Args:
        input: Tensor of any shape.
        exponent: A number; small whole numbers become multiplications.

    Returns:
        Tensor of ``input``'s shape and dtype.
    """
    ...


def pow(input: object, exponent: object) -> Tensor:
    r"""Power, elementwise: :math:`out_i = input_i^{exponent_i}`.

    Args:
        input: Tensor or number.
        exponent: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype. An integer to a negative power is
        rounded towards zero.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.pow(Tensor([1.0, 3.0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  9.00000000e+00])
    """
    if isinstance(exponent, (int, float)) and isinstance(input, Tensor):
        dtype = input.aval.dtype
        wanted = dtypes.promote_scalar(dtype, exponent)
        if wanted is dtypes.bool_:
            wanted = dtypes.int64
        return F.power_scalar(input if wanted is dtype else F.cast(input, wanted), exponent)
    return F.power(input, exponent)


tensor_pow = pow


def float_power(input: object, exponent: object) -> Tensor:
    r"""Power computed in float64: :math:`out_i = input_i^{exponent_i}`.

    Args:
        input: Tensor or number; one of the two must be a Tensor.
        exponent: Tensor or number; the shapes broadcast.

    Returns:
        float64 or complex128 tensor of the broadcast shape.

    Example:
        >>> ops.float_power(Tensor([-1.5, 0.0, 2.0]), 2)
        Tensor(shape=[3], dtype=Float64, value= [ 2.25000000e+00,  0.00000000e+00,  4.00000000e+00])
    """

    def wide(x: object) -> Any:
        if not isinstance(x, Tensor):
            return x
        return F.cast(x, dtypes.complex128 if x.dtype.kind == "c" else dtypes.float64)

    return F.pow(wide(input), wide(exponent))


# ---- exponentials, logarithms, roots and powers, elementwise -------------------------------------

LN2, LN10 = float(np.log(2.0)), float(np.log(10.0))


@precise
@unary(np.exp, "exp", lambda g, y, x: (g * y,), "Exp")
def exp(input: Tensor) -> Tensor:
    r"""Exponential, elementwise: :math:`y = e^x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.exp(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.71828198e+00])
    """
    ...


@unary(
    np.exp2,
    pointwise("exp2", lambda m, x: m.exp2(x)),
    lambda g, y, x: (g * y * LN2,),
    lambda O, x: O.Pow(np.array(2, x.type.dtype.numpy), x),
)
def exp2(input: Tensor) -> Tensor:
    r"""Power of two, elementwise: :math:`y = 2^x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.exp2(Tensor([0.0, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  8.00000000e+00])
    """
    ...


def _onnx_expm1(O: OnnxOps, x: OnnxNamed) -> OnnxNamed:
    """2t / (1 - t) with t = tanh(x / 2) for small x; ONNX has no expm1."""
    one, two, half = (np.array(v, x.type.dtype.numpy) for v in (1, 2, 0.5))
    t = O.Tanh(O.Mul(O.Min(x, one), half))
    small = O.Div(O.Mul(two, t), O.Sub(one, t))
    return O.Where(O.Less(x, one), small, O.Sub(O.Exp(x), one))


@precise
@unary(
    np.expm1,
    pointwise("expm1", lambda m, x: m.expm1(x)),
    lambda g, y, x: (g * (y + 1),),
    _onnx_expm1,
)
def expm1(input: Tensor) -> Tensor:
    r"""Exponential minus one, elementwise and exact near zero: :math:`y = e^x - 1`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.expm1(Tensor([0.0, 1e-5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.00000498e-05])
    """
    ...


tensor_exp, tensor_expm1 = exp, expm1
_LOG_SAMPLES = float_samples(0.2, 4.0)


@precise
@unary(np.log, "log", lambda g, y, x: (g / x,), "Log", samples=_LOG_SAMPLES)
def log(input: Tensor) -> Tensor:
    r"""Natural logarithm, elementwise: :math:`y = \ln x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape; NaN where the input is negative, -inf where it is 0.

    Example:
        >>> ops.log(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  6.93147182e-01])
    """
    ...


@precise
@unary(
    np.log2,
    pointwise("log2", lambda m, x: m.log2(x)),
    lambda g, y, x: (g / (x * LN2),),
    lambda O, x: O.Div(O.Log(x), np.array(LN2, x.type.dtype.numpy)),
    samples=_LOG_SAMPLES,
)
def log2(input: Tensor) -> Tensor:
    r"""Logarithm to base 2, elementwise: :math:`y = \log_2 x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.log2(Tensor([1.0, 8.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  3.00000000e+00])
    """
    ...


@precise
@unary(
    np.log10,
    pointwise("log10", lambda m, x: m.log10(x)),
    lambda g, y, x: (g / (x * LN10),),
    lambda O, x: O.Div(O.Log(x), np.array(LN10, x.type.dtype.numpy)),
    samples=_LOG_SAMPLES,
)
def log10(input: Tensor) -> Tensor:
    r"""Logarithm to base 10, elementwise: :math:`y = \log_{10} x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.log10(Tensor([1.0, 100.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  2.00000024e+00])
    """
    ...


def _onnx_log1p(O: OnnxOps, x: OnnxNamed) -> OnnxNamed:
    """Kahan's form log(u) (x / (u - 1)) with u = 1 + x; ONNX has no log1p."""
    one = np.array(1, x.type.dtype.numpy)
    u = O.Add(x, one)
    exact = O.Or(O.Equal(u, one), O.IsInf(u, detect_negative=0))
    ratio = O.Mul(O.Log(u), O.Div(x, O.Sub(u, one)))
    return O.Where(exact, x, ratio)


@precise
@unary(
    np.log1p,
    pointwise("log1p", lambda m, x: m.log1p(x)),
    lambda g, y, x: (g / (x + 1),),
    _onnx_log1p,
    samples=float_samples(-0.5, 4.0),
)
def log1p(input: Tensor) -> Tensor:
    r"""Logarithm of one plus the input, elementwise and exact near zero: :math:`y = \ln(1 + x)`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.log1p(Tensor([0.0, 1e-5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  9.99994973e-06])
    """
    ...


@unary(np.sqrt, "sqrt", lambda g, y, x: (g * 0.5 / y,), "Sqrt", samples=float_samples(0.2, 4.0))
def sqrt(x: Tensor) -> Tensor:
    r"""Square root, elementwise: :math:`y = \sqrt{x}`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape; NaN where ``x`` is negative.

    Example:
        >>> ops.sqrt(Tensor([1.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    ...


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return np.reciprocal(np.sqrt(x))


@precise
@unary(
    _rsqrt,
    "rsqrt",
    lambda g, y, x: (g * -0.5 * y / x,),
    lambda O, x: O.Reciprocal(O.Sqrt(x)),
    samples=float_samples(0.2, 4.0),
)
def rsqrt(input: Tensor) -> Tensor:
    r"""Reciprocal of the square root, elementwise: :math:`y = 1 / \sqrt{x}`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.rsqrt(Tensor([1.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  5.00000000e-01])
    """
    ...


@unary(
    np.square,
    "square",
    lambda g, y, x: (g * x * 2,),
    lambda O, x: O.Mul(x, x),
    allowed=NUMBERS,
    promote="no_bool",
    samples=number_samples(),
    traits=CHEAP,
)
def square(input: Tensor) -> Tensor:
    r"""Square, elementwise: :math:`y = x^2`.

    Args:
        input: Tensor of any shape and dtype.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.square(Tensor([1.0, -3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  9.00000000e+00])
    """
    ...


def _reciprocal(x: np.ndarray) -> np.ndarray:
    return np.divide(x.dtype.type(1), x)


@precise
@unary(
    _reciprocal,
    lambda R, x: R.op.divide(R.const(1, R.type(x).dtype.name), x),
    lambda g, y, x: (-g * y * y,),
    "Reciprocal",
    samples=float_samples(0.5, 3.0),
)
def reciprocal(input: Tensor) -> Tensor:
    r"""Reciprocal, elementwise: :math:`y = 1 / x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.reciprocal(Tensor([1.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.50000000e-01])
    """
    ...


def inv(x: Tensor) -> Tensor:
    r"""Reciprocal, elementwise: :math:`y = 1 / x`; that of integers is rounded towards zero.

    Args:
        x: Tensor of any shape; int16, int32 and int64 stay what they are, where zero gives zero;
            other integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape.

    Example:
        >>> ops.inv(Tensor([2.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 5.00000000e-01])
    """
    if x.dtype not in _WHOLE:
        return F.reciprocal(x)
    return F.where(F.equal(F.abs(x), 1), x, F.zeros_like(x))
