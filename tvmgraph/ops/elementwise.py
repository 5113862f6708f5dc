"""Arithmetic and unary mathematics, elementwise."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.op import F, primitive, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.ops._shared import binary_samples, sum_to, unary_samples

__all__ = ["add", "cast", "div", "identity", "mul", "neg", "sub", "tanh"]


def _infer_cast(x: TensorType, *, dtype: dtypes.DType) -> TensorType:
    return x.with_dtype(dtypes.dtype_of(dtype))


@primitive(
    infer=_infer_cast,
    eager=lambda x, *, dtype: x.astype(dtype.numpy),
    lower=lambda R, x, *, dtype: R.op.astype(x, dtype.name),
    vjp=lambda g, y, x, *, dtype: (F.cast(g, x.dtype) if x.dtype.is_float else None,),
    onnx=lambda O, x, *, dtype: O.Cast(x, to=O.dtype(dtype)),
    samples=[
        sample((3, 4), attrs={"dtype": dtypes.float64}),
        sample((3,), attrs={"dtype": dtypes.int32}),
        sample((2, 2), attrs={"dtype": dtypes.bool_}),
        sample((), attrs={"dtype": dtypes.float16}),
        sample((5,), dtype="int64", attrs={"dtype": dtypes.float32}),
    ],
)
def cast(input: Tensor, dtype: dtypes.DType) -> Tensor:
    r"""Converts every element to ``dtype``.

    Args:
        input: Tensor of any shape.
        dtype: The new dtype.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.cast(Tensor([1.7]), ms.int32)
    """
    ...


@primitive(
    infer=rules.elementwise(dtypes.ALL),
    promote="common",
    eager=np.add,
    lower="add",
    vjp=lambda g, y, a, b: (sum_to(g, a), sum_to(g, b)),
    onnx="Add",
    samples=binary_samples(),
)
def add(input: Tensor, other: Tensor) -> Tensor:
    r"""Adds elementwise: :math:`out_i = input_i + other_i`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the two shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.add(Tensor([1.0, 2.0]), 1)
    """
    ...


@primitive(
    infer=rules.elementwise(dtypes.ALL),
    promote="no_bool",
    eager=np.subtract,
    lower="subtract",
    vjp=lambda g, y, a, b: (sum_to(g, a), sum_to(-g, b)),
    onnx="Sub",
    samples=binary_samples(),
)
def sub(input: Tensor, other: Tensor) -> Tensor:
    r"""Subtracts elementwise: :math:`out_i = input_i - other_i`."""
    ...


@primitive(
    infer=rules.elementwise(dtypes.ALL),
    promote="common",
    eager=np.multiply,
    lower="multiply",
    vjp=lambda g, y, a, b: (sum_to(g * b, a), sum_to(g * a, b)),
    onnx="Mul",
    samples=binary_samples(),
)
def mul(input: Tensor, other: Tensor) -> Tensor:
    r"""Multiplies elementwise: :math:`out_i = input_i \cdot other_i`."""
    ...


@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    promote="common_float",
    eager=np.divide,
    lower="divide",
    vjp=lambda g, y, a, b: (sum_to(g / b, a), sum_to(-g * y / b, b)),
    onnx="Div",
    samples=binary_samples(low=0.5, high=2.0),
)
def div(input: Tensor, other: Tensor) -> Tensor:
    r"""Divides elementwise: :math:`out_i = input_i / other_i`."""
    ...


@primitive(
    infer=rules.elementwise(dtypes.ALL),
    promote="no_bool",
    eager=np.negative,
    lower="negative",
    vjp=lambda g, y, x: (-g,),
    onnx="Neg",
    samples=unary_samples(),
)
def neg(input: Tensor) -> Tensor:
    r"""Negates elementwise."""
    ...


@primitive(
    infer=rules.same_as_first(),
    eager=lambda x: x,
    lower=lambda R, x: x,
    vjp=lambda g, y, x: (g,),
    onnx="Identity",
    samples=unary_samples(),
)
def identity(input: Tensor) -> Tensor:
    """Returns its input as a value of its own."""
    ...


@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    promote="float",
    eager=np.tanh,
    lower="tanh",
    vjp=lambda g, y, x: (g * (1 - y * y),),
    onnx="Tanh",
    samples=unary_samples(),
)
def tanh(input: Tensor) -> Tensor:
    r"""Hyperbolic tangent, elementwise: :math:`y = \tanh(x)`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.tanh(Tensor([0.0, 1.0]))
    """
    ...
