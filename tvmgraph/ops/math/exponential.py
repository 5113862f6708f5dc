"""Exponentials, logarithms, roots and powers, elementwise."""

from __future__ import annotations

import numpy as np

from tvmgraph.core.columns import OnnxNamed, OnnxOps
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import CHEAP
from tvmgraph.ops.common.pointwise import (
    NUMBERS,
    float_samples,
    number_samples,
    pointwise,
    unary,
)

__all__ = [
    "exp", "exp2", "expm1", "inv", "log", "log1p", "log2", "log10", "reciprocal", "rsqrt", "sqrt",
    "square", "tensor_exp", "tensor_expm1",
]  # fmt: skip

LN2, LN10 = float(np.log(2.0)), float(np.log(10.0))


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
    r"""Reciprocal, elementwise; the same as :func:`reciprocal`: :math:`y = 1 / x`.

    Args:
        x: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``x``'s shape.

    Example:
        >>> ops.inv(Tensor([2.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 5.00000000e-01])
    """
    return F.reciprocal(x)
