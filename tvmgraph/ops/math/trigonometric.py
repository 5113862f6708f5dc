"""Trigonometric and hyperbolic functions, elementwise."""

from __future__ import annotations

import math

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Expr, Formulas, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.ops.common.pointwise import (
    float_samples,
    formula_row,
    in_float32,
    onnx_float32,
    pointwise,
    unary,
)
from tvmgraph.ops.common.rows import binary_samples, sum_to

__all__ = [
    "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "deg2rad", "rad2deg", "sin", "sinc",
    "sinh", "tan", "tanh",
]  # fmt: skip

# ONNX Runtime reduces angles beyond 1e4 with little care, so those are not compared
_ANGLES = [
    *float_samples(-9.0, 9.0, extremes=False),
    sample(np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e3], np.float32), grad=False),
]
_UNIT = float_samples(-0.9, 0.9)


@unary(np.sin, "sin", lambda g, y, x: (g * F.cos(x),), "Sin", samples=_ANGLES)
def sin(input: Tensor) -> Tensor:
    r"""Sine, elementwise: :math:`y = \sin x`.

    Args:
        input: Angles in radians, of any shape; integers are computed in float32.

    Example:
        >>> ops.sin(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  8.41471016e-01])
    """
    ...


@unary(np.cos, "cos", lambda g, y, x: (-g * F.sin(x),), "Cos", samples=_ANGLES)
def cos(input: Tensor) -> Tensor:
    r"""Cosine, elementwise: :math:`y = \cos x`.

    Args:
        input: Angles in radians, of any shape; integers are computed in float32.

    Example:
        >>> ops.cos(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  5.40302277e-01])
    """
    ...


@precise
@unary(
    np.tan,
    "tan",
    lambda g, y, x: (g * (1 + y * y),),
    "Tan",
    samples=float_samples(-1.2, 1.2, extremes=False),
)
def tan(input: Tensor) -> Tensor:
    r"""Tangent, elementwise: :math:`y = \tan x`.

    Args:
        input: Angles in radians, of any shape; integers are computed in float32.

    Example:
        >>> ops.tan(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.55740774e+00])
    """
    ...


@precise
@unary(np.arcsin, "asin", lambda g, y, x: (g * F.rsqrt(1 - x * x),), "Asin", samples=_UNIT)
def asin(input: Tensor) -> Tensor:
    r"""Inverse sine, elementwise: :math:`y = \arcsin x`.

    Args:
        input: Tensor of any shape with elements in :math:`[-1, 1]`; others give NaN.

    Example:
        >>> ops.asin(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.57079637e+00])
    """
    ...


@precise
@unary(np.arccos, "acos", lambda g, y, x: (-g * F.rsqrt(1 - x * x),), "Acos", samples=_UNIT)
def acos(input: Tensor) -> Tensor:
    r"""Inverse cosine, elementwise: :math:`y = \arccos x`.

    Args:
        input: Tensor of any shape with elements in :math:`[-1, 1]`; others give NaN.

    Example:
        >>> ops.acos(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.57079637e+00,  0.00000000e+00])
    """
    ...


@unary(np.arctan, "atan", lambda g, y, x: (g / (1 + x * x),), "Atan")
def atan(input: Tensor) -> Tensor:
    r"""Inverse tangent, elementwise: :math:`y = \arctan x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.atan(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  7.85398185e-01])
    """
    ...


@precise
@unary(np.sinh, pointwise("sinh", lambda m, x: m.sinh(x)), lambda g, y, x: (g * F.cosh(x),), "Sinh")
def sinh(input: Tensor) -> Tensor:
    r"""Hyperbolic sine, elementwise: :math:`y = \sinh x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.sinh(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.17520118e+00])
    """
    ...


@precise
@unary(np.cosh, pointwise("cosh", lambda m, x: m.cosh(x)), lambda g, y, x: (g * F.sinh(x),), "Cosh")
def cosh(input: Tensor) -> Tensor:
    r"""Hyperbolic cosine, elementwise: :math:`y = \cosh x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.cosh(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  1.54308069e+00])
    """
    ...


@unary(
    np.tanh, pointwise("tanh", lambda m, x: m.tanh(x)), lambda g, y, x: (g * (1 - y * y),), "Tanh"
)
def tanh(input: Tensor) -> Tensor:
    r"""Hyperbolic tangent, elementwise: :math:`y = \tanh x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.tanh(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  7.61594176e-01])
    """
    ...


@unary(
    np.arcsinh,
    pointwise("asinh", lambda m, x: m.arcsinh(x)),
    lambda g, y, x: (g * F.rsqrt(x * x + 1),),
    "Asinh",
)
def asinh(input: Tensor) -> Tensor:
    r"""Inverse hyperbolic sine, elementwise: :math:`y = \operatorname{arsinh} x`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.asinh(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  8.81373584e-01])
    """
    ...


@unary(
    np.arccosh,
    pointwise("acosh", lambda m, x: m.arccosh(x)),
    lambda g, y, x: (g * F.rsqrt(x * x - 1),),
    "Acosh",
    samples=float_samples(1.2, 4.0),
)
def acosh(input: Tensor) -> Tensor:
    r"""Inverse hyperbolic cosine, elementwise: :math:`y = \operatorname{arcosh} x`.

    Args:
        input: Tensor of any shape with elements of at least 1; others give NaN.

    Example:
        >>> ops.acosh(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.31695795e+00])
    """
    ...


@unary(
    np.arctanh,
    pointwise("atanh", lambda m, x: m.arctanh(x)),
    lambda g, y, x: (g / (1 - x * x),),
    "Atanh",
    samples=_UNIT,
)
def atanh(input: Tensor) -> Tensor:
    r"""Inverse hyperbolic tangent, elementwise: :math:`y = \operatorname{artanh} x`.

    Args:
        input: Tensor of any shape with elements in :math:`[-1, 1]`; others give NaN.

    Example:
        >>> ops.atanh(Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  5.49306154e-01])
    """
    ...


arccos, arctan = acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh


def arcsin(x: Tensor) -> Tensor:
    r"""Inverse sine; the same as :func:`asin`: :math:`y = \arcsin x`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape.

    Example:
        >>> ops.arcsin(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.57079637e+00])
    """
    return asin(x)


def _vjp_atan2(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    total = a * a + b * b
    scaled = F.where(F.equal(total, 0), 0, g / total)  # the origin has no angle
    return sum_to(scaled * b, a), sum_to(-scaled * a, b)


def _onnx_atan2(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
    """The angle of the half plane b > 0, moved by a half turn for b < 0; zeros have signs."""
    zero, pi = (O.const(v, a.type.dtype) for v in (0, math.pi))
    below, left = (_is_negative(O, v, zero) for v in (a, b))
    turn = O.Where(below, O.Neg(pi), pi)
    diagonal = O.And(O.IsInf(a), O.IsInf(b))
    base = O.Atan(O.Where(diagonal, O.Mul(O.Sign(a), O.Sign(b)), O.Div(a, b)))
    moved = O.Where(left, O.Add(base, turn), base)
    origin = O.And(O.Equal(a, zero), O.Equal(b, zero))
    return O.Where(origin, O.Where(left, turn, a), moved)


def _is_negative(O: OnnxOps, x: OnnxNamed, zero: OnnxNamed) -> OnnxNamed:
    """Whether the sign bit is set, which a comparison does not see of a zero."""
    inverse = O.Div(O.const(1, x.type.dtype), x)
    return O.Less(O.Where(O.Equal(x, zero), inverse, x), zero)


@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    promote="common_float",
    eager=np.arctan2,
    lower=in_float32("atan2"),
    vjp=_vjp_atan2,
    onnx=onnx_float32(_onnx_atan2),
    samples=[
        *binary_samples(),
        sample((9,), (9,), dtype="int32", low=-1, high=1),
        sample((5,), (5,), dtype="float16", grad=False),
        sample((5,), (5,), dtype="bfloat16", grad=False),
        sample((5,), (5,), dtype="float64"),
    ],
)
def atan2(input: Tensor, other: Tensor) -> Tensor:
    r"""Angle of a point, elementwise: :math:`\arctan(input_i / other_i)` in the right quadrant.

    Args:
        input: Tensor or number, the second coordinate.
        other: Tensor or number, the first coordinate; the shapes broadcast.

    Returns:
        Floating-point tensor of the broadcast shape, in :math:`[-\pi, \pi]`.

    Example:
        >>> ops.atan2(Tensor([0.0, 1.0]), Tensor([1.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  7.85398126e-01])
    """
    ...


arctan2 = atan2


def _sinc(m: Formulas, x: Expr) -> Expr:
    angle = m.where(x == 0, 1, x) * math.pi
    return m.where(x == 0, 1, m.sin(angle) / angle)


def _vjp_sinc(g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor]:
    zero = x == 0
    safe = F.where(zero, 1, x)
    return (g * F.where(zero, 0, (F.cos(safe * math.pi) - y) / safe),)


def _onnx_sinc(O: OnnxOps, x: OnnxNamed) -> OnnxNamed:
    zero, one, pi = (O.const(v, x.type.dtype) for v in (0, 1, math.pi))
    at_zero = O.Equal(x, zero)
    angle = O.Mul(O.Where(at_zero, one, x), pi)
    return O.Where(at_zero, one, O.Div(O.Sin(angle), angle))


@formula_row("sinc", _sinc, _vjp_sinc, _onnx_sinc, samples=_ANGLES)
def sinc(input: Tensor) -> Tensor:
    r"""Normalised cardinal sine, elementwise: :math:`y = \sin(\pi x) / (\pi x)`, 1 at 0.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.sinc(Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  6.36619747e-01])
    """
    ...


def deg2rad(x: Tensor) -> Tensor:
    r"""Degrees to radians, elementwise: :math:`y = x \pi / 180`.

    Args:
        x: Tensor of any shape.

    Returns:
        Tensor of ``x``'s shape; integers become float32.

    Example:
        >>> ops.deg2rad(Tensor([180.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 3.14159274e+00])
    """
    return x * (math.pi / 180)


def rad2deg(x: Tensor) -> Tensor:
    r"""Radians to degrees, elementwise: :math:`y = 180 x / \pi`.

    Args:
        x: Tensor of any shape.

    Returns:
        Tensor of ``x``'s shape; integers become float32.

    Example:
        >>> ops.rad2deg(Tensor([3.1415927]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.80000000e+02])
    """
    return x * (180 / math.pi)
