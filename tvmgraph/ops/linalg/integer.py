"""Products of bytes, summed as 32-bit integers."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.ops.internal.rows import NO_ONNX
from tvmgraph.ops.linalg.matmul import contraction, infer_matmul, matmul_factors

__all__ = ["matmul_integer"]


def _infer(
    input: TensorType, other: TensorType, *, transpose_a: bool, transpose_b: bool
) -> TensorType:
    rules.require_dtype(input, (dtypes.int8,))
    result = infer_matmul(input, other, transpose_a=transpose_a, transpose_b=transpose_b)
    return result.with_dtype(dtypes.int32)


def _eager(
    input: np.ndarray, other: np.ndarray, *, transpose_a: bool, transpose_b: bool
) -> np.ndarray:
    a, b = input.astype(np.int32), other.astype(np.int32)
    a = np.swapaxes(a, -1, -2) if transpose_a and a.ndim > 1 else a
    b = np.swapaxes(b, -1, -2) if transpose_b and b.ndim > 1 else b
    return np.asarray(np.matmul(a, b))


def _lower(R: Builder, input: Expr, other: Expr, *, transpose_a: bool, transpose_b: bool) -> Expr:
    a, b = R.type(input), R.type(other)
    flags = transpose_a and a.ndim > 1, transpose_b and b.ndim > 1
    if 0 in (*a.shape, *b.shape):  # a sum of nothing
        out = _infer(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return R.op.full(R.shape(out.shape), R.const(0, "int32"), "int32")
    return R.emit_te(contraction(R, *flags, "int32"), input, other)


@primitive(
    infer=_infer,
    traits=Traits(Pattern.CONTRACTION, matmul_factors),
    eager=_eager,
    lower=_lower,
    vjp=Reason("integers have no derivative"),
    onnx=NO_ONNX,
    samples=[
        sample((9, 8), (8, 17), dtype="int8", low=-128, high=128,
               transpose_a=False, transpose_b=False, grad=False),
        sample((2, 9, 6), (20, 6), dtype="int8", low=-128, high=128,
               transpose_a=False, transpose_b=True, grad=False),
        sample((5, 3), (5, 4), dtype="int8", transpose_a=True, transpose_b=False, grad=False),
    ],
)  # fmt: skip
def matmul_integer(
    input: Tensor, other: Tensor, *, transpose_a: bool = False, transpose_b: bool = False
) -> Tensor:
    r"""Matrix product of int8 tensors with sums in int32, :math:`y_{ij} = \sum_k x_{ik} w_{kj}`.

    Compiled graphs use it for products of operands that were cast from int8 to int32; processors
    have instructions for it.

    Args:
        input: int8, (..., M, K).
        other: int8, (..., K, N).
        transpose_a: Whether the last two axes of ``input`` are swapped first.
        transpose_b: Whether those of ``other`` are.

    Returns:
        int32 Tensor of shape (..., M, N).

    Raises:
        DTypeError: if an operand is not int8.
        ShapeError: if the inner extents differ.

    Example:
        >>> x = ops.ones((2, 3), ms.int8)
        >>> ops.matmul_integer(x, x, transpose_b=True).asnumpy()
        array([[3, 3],
               [3, 3]], dtype=int32)
    """
    ...
