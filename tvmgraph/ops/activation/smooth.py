"""Smooth activation functions: the GELUs, the exponential units and the soft rectifiers."""

from __future__ import annotations

import math

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Expr, Formulas, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import ELEMENTWISE
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.common.numpy_math import polynomial
from tvmgraph.ops.common.pointwise import (
    float_samples,
    formula_row,
    numpy_formula,
    onnx_float32,
    pointwise,
)

__all__ = ["celu", "elu", "fast_gelu", "gelu", "logsigmoid", "mish", "selu", "softplus"]

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_PI = math.sqrt(2 / math.pi)
_GELU_CUBE = 0.044715


def _infer_gelu(x: object, *, approximate: str) -> TensorType:
    if approximate not in ("none", "tanh"):
        raise ArgumentError(
            f"approximate must be 'none' or 'tanh', not {approximate!r}", fix="use one of the two"
        )
    return rules.elementwise(dtypes.FLOATS)(x)


def _gelu(m: Formulas, x: Expr, *, approximate: str) -> Expr:
    """GELU; where x is negative nothing cancels, so that small results of halves are right.

    With Q the normal distribution function at -|x| it is x Q, or x (1 - Q) from 0 on.
    """
    if approximate == "tanh":  # (1 + tanh u) / 2 = sigmoid(2u)
        return x * m.sigmoid((x + x * x * x * _GELU_CUBE) * (2 * _SQRT_2_PI))
    if m.dtype == "float64":  # whose 1 + erf is more exact than any smaller type
        return x * 0.5 * (1 + m.erf(x * _SQRT_HALF))
    size = m.let(m.abs(x), lambda a: m.where(a < _NO_TAIL, a, _NO_TAIL))
    tail = m.let(size, lambda a: _normal_tail(m, a))
    return x * m.let(tail, lambda q: m.where(x < 0, q, 1 - q))


#: From here on the normal distribution function at -x is 0 in float32.
_NO_TAIL = 14.5
#: The normal distribution function at -a times exp(a^2 / 2), highest power first: a minimax
#: quotient for 0 <= a <= 14.5 with a relative error of 2^-22.6.
_TAIL = (
    1.9589973021538754e-07, 0.01471218466758728, 0.10918736457824707, 0.34285610914230347,
    0.49999991059303284,
)  # fmt: skip
_TAIL_DENOMINATOR = (
    0.036902252584695816, 0.27318793535232544, 0.9021769165992737, 1.4835885763168335, 1.0,
)  # fmt: skip


def _normal_tail(m: Formulas, a: Expr) -> Expr:
    """The normal distribution function at -a, in float32: no difference of large numbers."""
    return polynomial(a, _TAIL) / polynomial(a, _TAIL_DENOMINATOR) * m.exp(a * a * -0.5)


def _vjp_gelu(g: Tensor, y: Tensor, x: Tensor, *, approximate: str) -> tuple[Tensor]:
    if approximate == "none":
        cdf = 0.5 * (1 + F.erf(x * _SQRT_HALF))
        pdf = F.exp(x * x * -0.5) * (0.5 * _SQRT_2_PI)
        return (g * (cdf + x * pdf),)
    square = x * x
    t = F.tanh((x + x * square * _GELU_CUBE) * _SQRT_2_PI)
    slope = (1 - t * t) * (1 + square * (3 * _GELU_CUBE)) * _SQRT_2_PI
    return (g * 0.5 * (1 + t + x * slope),)


def _onnx_gelu(O: OnnxOps, x: OnnxNamed, *, approximate: str) -> OnnxNamed:
    if approximate == "none" or x.type.dtype is not dtypes.float64:
        return O.Gelu(x, approximate=approximate)
    # ONNX Runtime's own tanh form uses float32 constants
    half, one, cube, scale = (
        O.const(v, dtypes.float64) for v in (0.5, 1.0, _GELU_CUBE, _SQRT_2_PI)
    )
    inner = O.Mul(O.Add(x, O.Mul(cube, O.Mul(x, O.Mul(x, x)))), scale)
    return O.Mul(O.Mul(x, half), O.Add(one, O.Tanh(inner)))


@primitive(
    infer=_infer_gelu,
    traits=ELEMENTWISE,
    promote="float",
    eager=numpy_formula(_gelu, long=True),
    lower=pointwise("gelu", _gelu),
    vjp=_vjp_gelu,
    onnx=onnx_float32(_onnx_gelu),
    samples=[
        *float_samples(),
        *float_samples(approximate="tanh"),
        sample((3, 4), low=-8, high=8, approximate="none"),
        sample((2,), approximate="erf", raises=ArgumentError),
    ],
)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    r"""Gaussian error linear unit, elementwise: :math:`y = x \Phi(x)`.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        approximate: ``"none"`` for the normal distribution function itself, ``"tanh"`` for
            :math:`\frac{x}{2} (1 + \tanh(\sqrt{2/\pi} (x + 0.044715 x^3)))`.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        ArgumentError: if ``approximate`` is neither.

    Example:
        >>> ops.gelu(Tensor([-1.0, 0.0, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.58655241e-01,  0.00000000e+00,  8.41344774e-01])
    """
    ...


def fast_gelu(x: Tensor) -> Tensor:
    r"""GELU by one sigmoid, elementwise: :math:`y = x \sigma(1.702 x)`.

    Args:
        x: Tensor of any shape.

    Returns:
        Tensor of ``x``'s shape.

    Example:
        >>> ops.fast_gelu(Tensor([-1.0, 0.0, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.54204234e-01,  0.00000000e+00,  8.45795751e-01])
    """
    return x * F.sigmoid(x * 1.702)


def _elu(m: Formulas, x: Expr, *, alpha: float) -> Expr:
    return m.where(x > 0, x, m.expm1(m.where(x > 0, 0, x)) * alpha)


def _vjp_elu(g: Tensor, y: Tensor, x: Tensor, *, alpha: float) -> tuple[Tensor]:
    return (F.where(x > 0, g, g * (y + alpha)),)


def _onnx_elu(O: OnnxOps, x: OnnxNamed, *, alpha: float) -> OnnxNamed:
    return O.Elu(x, alpha=float(alpha))


@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    promote="float",
    eager=numpy_formula(_elu),
    lower=pointwise("elu", _elu),
    vjp=_vjp_elu,
    onnx=onnx_float32(_onnx_elu),
    samples=[*float_samples(), sample((3, 4), alpha=0.5), sample((3, 4), low=-1e-4, high=1e-4)],
)
def elu(input_x: Tensor, alpha: float = 1.0) -> Tensor:
    r"""Exponential linear unit, elementwise: :math:`x` above zero, :math:`\alpha (e^x - 1)` below.

    Args:
        input_x: Tensor of any shape; integers are computed in float32.
        alpha: Depth of the negative part.

    Returns:
        Tensor of ``input_x``'s shape.

    Example:
        >>> ops.elu(Tensor([-1.0, 0.0, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-6.32120550e-01,  0.00000000e+00,  1.00000000e+00])
    """
    ...


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _onnx_selu(O: OnnxOps, x: OnnxNamed) -> OnnxNamed:
    """ONNX's operator has attributes of float32, which round its factors."""
    d = x.type.dtype
    if d is not dtypes.float64:
        return O.Selu(x, alpha=_SELU_ALPHA, gamma=_SELU_SCALE)
    zero, one = O.const(0, d), O.const(1, d)
    below = O.Mul(O.Sub(O.Exp(O.Min(x, zero)), one), O.const(_SELU_ALPHA * _SELU_SCALE, d))
    return O.Where(O.Greater(x, zero), O.Mul(x, O.const(_SELU_SCALE, d)), below)


@formula_row(
    "selu",
    lambda m, x: _elu(m, x, alpha=_SELU_ALPHA) * _SELU_SCALE,
    lambda g, y, x: (F.where(x > 0, g * _SELU_SCALE, g * (y + _SELU_ALPHA * _SELU_SCALE)),),
    _onnx_selu,
)
def selu(input_x: Tensor) -> Tensor:
    r"""Scaled exponential linear unit, elementwise: :math:`s \cdot elu(x, \alpha)`.

    Args:
        input_x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input_x``'s shape; :math:`s \approx 1.0507`, :math:`\alpha \approx 1.6733`.

    Example:
        >>> ops.selu(Tensor([-1.0, 0.0, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.11133075e+00,  0.00000000e+00,  1.05070102e+00])
    """
    ...


def _infer_celu(x: object, *, alpha: float) -> TensorType:
    if alpha == 0:
        raise ArgumentError("alpha must not be 0", fix="give the scale of the negative part")
    return rules.elementwise(dtypes.FLOATS)(x)


def _celu(m: Formulas, x: Expr, *, alpha: float) -> Expr:
    return m.where(x > 0, x, m.expm1(m.where(x > 0, 0, x) / alpha) * alpha)


def _onnx_celu(O: OnnxOps, x: OnnxNamed, *, alpha: float) -> OnnxNamed:
    """ONNX's Celu takes float32 only."""
    one, scale, zero = (O.const(v, x.type.dtype) for v in (1, alpha, 0))
    below = O.Mul(scale, O.Sub(O.Exp(O.Div(x, scale)), one))
    return O.Where(O.Greater(x, zero), x, below)


def _vjp_celu(g: Tensor, y: Tensor, x: Tensor, *, alpha: float) -> tuple[Tensor]:
    return (F.where(x > 0, g, g * (y / alpha + 1)),)


@primitive(
    infer=_infer_celu,
    traits=ELEMENTWISE,
    promote="float",
    eager=numpy_formula(_celu),
    lower=pointwise("celu", _celu),
    vjp=_vjp_celu,
    onnx=onnx_float32(_onnx_celu),
    samples=[
        *float_samples(),
        sample((3, 4), alpha=0.5),
        sample((2,), alpha=0, raises=ArgumentError),
    ],
)
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    r"""Smooth exponential unit: :math:`x` above zero, :math:`\alpha (e^{x/\alpha} - 1)` below.

    Args:
        x: Tensor of any shape; integers are computed in float32.
        alpha: Scale of the negative part, not 0.

    Returns:
        Tensor of ``x``'s shape.

    Raises:
        ArgumentError: if ``alpha`` is 0.

    Example:
        >>> ops.celu(Tensor([-1.0, 0.0, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-6.32120550e-01,  0.00000000e+00,  1.00000000e+00])
    """
    ...


def _softplus(m: Formulas, x: Expr) -> Expr:
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which never overflows."""
    return m.where(x > 0, x, 0) + m.log1p(m.exp(m.where(x > 0, -x, x)))


def _scaled_softplus(m: Formulas, x: Expr, *, beta: float, threshold: float) -> Expr:
    z = x * beta
    return m.where(z > threshold, x, _softplus(m, z) / beta)


def _vjp_softplus(
    g: Tensor, y: Tensor, x: Tensor, *, beta: float, threshold: float
) -> tuple[Tensor]:
    z = x * beta
    return (F.where(z > threshold, g, g * F.sigmoid(z)),)


def _onnx_softplus(O: OnnxOps, x: OnnxNamed, *, beta: float, threshold: float) -> OnnxNamed:
    """ONNX's Softplus has no scale; it may overflow beyond the threshold, which Where hides."""
    b = O.const(beta, x.type.dtype)
    z = O.Mul(x, b)
    linear = O.Greater(z, O.const(threshold, x.type.dtype))
    return O.Where(linear, x, O.Div(O.Softplus(z), b))


@precise
@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    promote="float",
    eager=numpy_formula(_scaled_softplus, long=True),
    lower=pointwise("softplus", _scaled_softplus),
    vjp=_vjp_softplus,
    onnx=onnx_float32(_onnx_softplus),
    samples=[
        *float_samples(),
        sample((3, 4), low=-9, high=9, beta=2, threshold=4),
        sample((3, 4), low=-40, high=40, beta=1, threshold=20, grad=False),
    ],
)
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    r"""Smooth rectifier, elementwise: :math:`y = \frac{1}{\beta} \ln(1 + e^{\beta x})`.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        beta: Sharpness :math:`\beta`.
        threshold: Beyond :math:`\beta x` = threshold the result is :math:`x` itself.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.softplus(Tensor([-1.0, 0.0, 30.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 3.13261628e-01,  6.93147182e-01,  3.00000000e+01])
    """
    ...


@precise
@formula_row(
    "logsigmoid",
    lambda m, x: -_softplus(m, -x),
    lambda g, y, x: (g * F.sigmoid(-x),),
    lambda O, x: O.Neg(O.Softplus(O.Neg(x))),
    long=True,
)
def logsigmoid(x: Tensor) -> Tensor:
    r"""Logarithm of the sigmoid, elementwise and without overflow: :math:`y = \ln \sigma(x)`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.logsigmoid(Tensor([-1.0, 0.0, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.31326163e+00, -6.93147182e-01, -3.13261628e-01])
    """
    ...


def _vjp_mish(g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor]:
    t = F.tanh(softplus(x))
    return (g * (t + x * (1 - t * t) * F.sigmoid(x)),)


def _mish(m: Formulas, x: Expr) -> Expr:
    """x tanh(log(1 + exp(x))) as a quotient of polynomials in e = exp(-|x|), at most 1."""
    e = m.exp(m.where(x > 0, -x, x))
    up = m.where(x > 0, 1 + 2 * e, e * e + 2 * e)
    return x * (up / (up + m.where(x > 0, 2 * e * e, 2)))


@formula_row("mish", _mish, _vjp_mish, "Mish", long=True)
def mish(x: Tensor) -> Tensor:
    r"""Mish, elementwise: :math:`y = x \tanh(\ln(1 + e^x))`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.mish(Tensor([-1.0, 0.0, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-3.03401411e-01,  0.00000000e+00,  8.65098417e-01])
    """
    ...
