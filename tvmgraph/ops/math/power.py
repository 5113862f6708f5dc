"""Powers: a general row, and one for the number exponents that need no power function."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, Formulas, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import ELEMENTWISE
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DTypeError
from tvmgraph.ops.common.pointwise import NUMBERS, TirMath, numpy_formula, onnx_wide, pointwise
from tvmgraph.ops.common.repeated import lower_repeated
from tvmgraph.ops.common.rows import binary_samples, sum_to

__all__ = ["float_power", "pow", "power", "power_scalar", "tensor_pow"]

#: Integer exponents up to here become multiplications.
_MAX_CHAIN = 16


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
        dtype = input.type.dtype
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
