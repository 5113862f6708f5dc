"""Activation functions made of one kink or one sigmoid: the rectifiers and their relatives."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Expr, Formulas, OnnxNamed, OnnxOps
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, sample
from tvmgraph.core.precision import short
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import CHEAP
from tvmgraph.errors import ArgumentError, reject
from tvmgraph.ops.common.pointwise import (
    TirMath,
    float_samples,
    formula_row,
    number_samples,
    numpy_formula,
    pointwise,
    unary,
)
from tvmgraph.ops.common.rows import extreme_values

__all__ = [
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "prelu", "relu", "relu6",
    "sigmoid", "silu", "soft_shrink", "softshrink", "softsign", "swish", "tanhshrink", "threshold",
]  # fmt: skip


def _rectified(x: np.ndarray) -> np.ndarray:
    zero = x.dtype.type(0)
    y = np.maximum(x, zero)
    return y + zero if x.dtype.itemsize == 2 else y  # NumPy keeps -0 of half precision


@unary(
    _rectified,
    pointwise("relu", lambda m, x: m.where(x <= 0, 0, x)),  # 0 for -0; NaN is not below 0
    lambda g, y, x: (F.where(y > 0, g, 0),),
    lambda O, x: O.Relu(x) if x.type.dtype.kind in "fi" else O.Identity(x),
    allowed=dtypes.ALL,
    promote=None,
    samples=[*number_samples(), sample((4,), dtype="bool")],
    name="relu",
    traits=CHEAP,
)
def _relu(input: Tensor) -> Tensor:
    r"""Rectified linear unit: :math:`y = \max(0, x)`."""
    ...


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    r"""Rectified linear unit, elementwise: :math:`y = \max(0, x)`.

    Args:
        input: Tensor of any shape.
        inplace: Whether ``input`` itself takes the new values.

    Returns:
        Tensor of ``input``'s shape and dtype; NaN stays NaN.

    Example:
        >>> ops.relu(Tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  2.00000000e+00])
    """
    return input.rebind(_relu(input)) if inplace else _relu(input)


def _between(g: Tensor, x: Tensor, low: float, high: float) -> Tensor:
    return F.where(F.logical_and(x > low, x < high), g, 0)


@formula_row(
    "relu6",
    lambda m, x: m.where(x < 0, 0, m.where(x > 6, 6, x)),
    lambda g, y, x: (F.where(F.logical_and(x > 0, x <= 6), g, 0),),  # MindSpore's slope at 6
    lambda O, x: O.Clip(x, O.const(0, x.type.dtype), O.const(6, x.type.dtype)),
    samples=float_samples(-3, 9),
)
def relu6(x: Tensor) -> Tensor:
    r"""Rectified linear unit with an upper bound, elementwise: :math:`y = \min(\max(0, x), 6)`.

    Args:
        x: Tensor of any shape.

    Example:
        >>> ops.relu6(Tensor([-1.0, 2.0, 9.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  2.00000000e+00,  6.00000000e+00])
    """
    ...


def _leaky(m: Formulas, x: Expr, *, alpha: float) -> Expr:
    return m.where(x < 0, x * alpha, x)


def _vjp_leaky(g: Tensor, y: Tensor, x: Tensor, *, alpha: float) -> tuple[Tensor]:
    """At 0 the mean of both slopes, as at any tie of a maximum."""
    return (F.where(x == 0, g * ((1 + alpha) / 2), F.where(x < 0, g * alpha, g)),)


def _onnx_leaky(O: OnnxOps, x: OnnxNamed, *, alpha: float) -> OnnxNamed:
    return O.LeakyRelu(x, alpha=float(alpha))


@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    eager=numpy_formula(_leaky),
    lower=pointwise("leaky_relu", _leaky),
    vjp=_vjp_leaky,
    onnx=_onnx_leaky,
    samples=[
        sample((3, 4), alpha=0.2),
        sample((), alpha=0.01),
        sample((0, 2), alpha=0.2, grad=False),
        sample((17, 1, 3), alpha=-1.5),
        sample((5,), dtype="float16", alpha=0.2, grad=False),
        sample((5,), dtype="bfloat16", alpha=0.2, grad=False),
        sample(extreme_values(), alpha=0.2, grad=False),
    ],
)
def leaky_rectifier(input: Tensor, alpha: float) -> Tensor:
    r"""Rectified linear unit of slope ``alpha`` below zero.

    Args:
        input: Floating-point tensor of any shape.
        alpha: Slope of the negative part.

    Returns:
        Tensor of ``input``'s shape and dtype.
    """
    ...


def leaky_relu(input: Tensor, alpha: float = 0.2) -> Tensor:
    r"""Leaky rectified linear unit, elementwise: :math:`x` above zero, :math:`\alpha x` below.

    Args:
        input: Tensor of any shape; on integers the result keeps their dtype.
        alpha: Slope of the negative part.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.leaky_relu(Tensor([-1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [-2.00000003e-01,  2.00000000e+00])
    """
    if input.dtype.is_float:
        return leaky_rectifier(input, alpha)
    wide = leaky_rectifier(F.cast(input, dtypes.float32), alpha)
    return F.where(F.cast(input, dtypes.float32) < 0, F.cast(wide, input.dtype), input)


@short
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    r"""Rectified linear unit with a learned slope: :math:`\max(0, x) + w \min(0, x)`.

    Args:
        input: Tensor; its axis 1 holds the channels.
        weight: Tensor of shape ``(channels,)``, or of one element.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Raises:
        ArgumentError: if ``weight`` has neither one element nor one for every channel.

    Example:
        >>> ops.prelu(Tensor([[-1.0, -1.0]]), Tensor([0.1, 0.2]))
        Tensor(shape=[1, 2], dtype=Float32, value=
        [[-1.00000001e-01, -2.00000003e-01]])
    """
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.size not in (1, channels):
        reject(ArgumentError, "ops.prelu", f"weight must have 1 or {channels} elements on one axis",
               f"input={input.aval}, weight={weight.aval}",
               "give one slope for every channel (axis 1)")  # fmt: skip
    return _with_slopes(input, weight)


@fusible
def _with_slopes(input: Tensor, weight: Tensor) -> Tensor:
    tail = (1,) * max(input.ndim - 2, 0) if weight.size > 1 else ()
    slope = F.reshape(weight, (weight.size, *tail) if tail or weight.size > 1 else ())
    # at 0 the slope is the weight, as in MindSpore and PyTorch; NaN is not above 0 and stays NaN
    return F.where(input > 0, input, F.cast(input * slope, input.dtype))


@formula_row("sigmoid", lambda m, x: m.sigmoid(x), lambda g, y, x: (g * y * (1 - y),), "Sigmoid")
def sigmoid(input: Tensor) -> Tensor:
    r"""Logistic function, elementwise: :math:`y = 1 / (1 + e^{-x})`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.sigmoid(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01,  7.31058598e-01])
    """
    ...


def _vjp_silu(g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor]:
    s = sigmoid(x)
    return (g * (s + y * (1 - s)),)


#: Where x times the logistic function of x is below the normal numbers, or almost, and where that
#: function is 0.
_SILU_ENDS = {"float64": (-708.0, -746.0)}


def _silu(m: TirMath, x: Expr) -> Expr:
    """x sigmoid(x), but -0 where that is nearly subnormal: what reads such numbers is slow."""
    low, zero = map(m.const, _SILU_ENDS.get(m.dtype, (-87.0, -104.0)))
    return x * m.sigmoid(m.where(x < low, zero, x))


@formula_row("silu", _silu, _vjp_silu, lambda O, x: O.Mul(x, O.Sigmoid(x)))
def silu(input: Tensor) -> Tensor:
    r"""Sigmoid linear unit (swish), elementwise: :math:`y = x \sigma(x)`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.silu(Tensor([0.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  7.31058598e-01])
    """
    ...


swish = silu


def _ramp(m: Formulas, x: Expr) -> Expr:
    """(x + 3) / 6 limited to [0, 1]; processors divide several times slower than they multiply."""
    return m.where(x < -3, 0, m.where(x > 3, 1, (x + 3) * (1 / 6)))


@formula_row(
    "hardsigmoid",
    _ramp,
    lambda g, y, x: (_between(g * (1 / 6), x, -3, 3),),
    lambda O, x: O.HardSigmoid(x, alpha=1 / 6, beta=0.5),
    samples=float_samples(-5, 5),
)
def hardsigmoid(input: Tensor) -> Tensor:
    r"""Piecewise linear sigmoid, elementwise: :math:`y = \max(0, \min(1, x/6 + 1/2))`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.hardsigmoid(Tensor([-4.0, 0.0, 4.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  5.00000000e-01,  1.00000000e+00])
    """
    ...


@formula_row(
    "hardswish",
    lambda m, x: x * _ramp(m, x),
    lambda g, y, x: (F.where(x > 3, g, F.where(x < -3, 0, g * (x * (1 / 3) + 0.5))),),
    "HardSwish",
    samples=float_samples(-5, 5),
)
def hardswish(input: Tensor) -> Tensor:
    r"""Piecewise swish, elementwise: :math:`y = x \max(0, \min(1, x/6 + 1/2))`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.hardswish(Tensor([-4.0, 1.0, 4.0]))
        Tensor(shape=[3], dtype=Float32, value= [-0.00000000e+00,  6.66666687e-01,  4.00000000e+00])
    """
    ...


@fusible
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    r"""Limits elements to an interval: :math:`y = \min(\max(x, min\_val), max\_val)`.

    Args:
        input: Tensor of any shape.
        min_val: Lower bound.
        max_val: Upper bound.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.hardtanh(Tensor([-2.0, 0.5, 2.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.00000000e+00,  5.00000000e-01,  1.00000000e+00])
    """
    return F.cast(F.minimum(F.maximum(input, min_val), max_val), input.dtype)


@fusible
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    r"""Sets small elements to zero: :math:`y = x` where :math:`|x| > \lambda`, else 0.

    Args:
        input: Floating-point tensor of any shape.
        lambd: Threshold :math:`\lambda`.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.hardshrink(Tensor([-1.0, 0.2, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-1.00000000e+00,  0.00000000e+00,  1.00000000e+00])
    """
    return F.where(F.abs(input) <= lambd, 0, input)


@fusible
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    r"""Moves elements towards zero by :math:`\lambda` at most, elementwise.

    Args:
        input: Floating-point tensor of any shape.
        lambd: Largest move :math:`\lambda`.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.softshrink(Tensor([-1.0, 0.2, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-5.00000000e-01,  0.00000000e+00,  5.00000000e-01])
    """
    return F.where(F.abs(input) <= lambd, 0, input - F.sign(input) * lambd)


soft_shrink = softshrink


@fusible
def softsign(x: Tensor) -> Tensor:
    r"""Soft sign, elementwise: :math:`y = x / (1 + |x|)`.

    Args:
        x: Tensor of any shape.

    Returns:
        Tensor of ``x``'s shape.

    Example:
        >>> ops.softsign(Tensor([-1.0, 0.0, 3.0]))
        Tensor(shape=[3], dtype=Float32, value= [-5.00000000e-01,  0.00000000e+00,  7.50000000e-01])
    """
    return x / (F.abs(x) + 1)


@fusible
def tanhshrink(input: Tensor) -> Tensor:
    r"""What tanh leaves over, elementwise: :math:`y = x - \tanh(x)`.

    Args:
        input: Tensor of any shape.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.tanhshrink(Tensor([-1.0, 0.0, 1.0]))
        Tensor(shape=[3], dtype=Float32, value= [-2.38405824e-01,  0.00000000e+00,  2.38405824e-01])
    """
    return input - F.tanh(input)


@fusible
def threshold(input: Tensor, thr: float, value: float) -> Tensor:
    r"""Replaces elements that are not above a threshold: :math:`y = x` if :math:`x > thr`.

    Args:
        input: Tensor of any shape.
        thr: The threshold.
        value: What replaces the other elements.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.threshold(Tensor([0.0, 2.0, 3.0]), 1, 100)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+02,  2.00000000e+00,  3.00000000e+00])
    """
    return F.where(input <= thr, F.cast(F.full_like(input, value), input.dtype), input)
