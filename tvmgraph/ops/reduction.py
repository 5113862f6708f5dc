"""Reductions over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.op import F, primitive, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import OutOfRangeError

__all__ = ["reduce_sum"]

LOW_PRECISION = (dtypes.float16, dtypes.bfloat16)


def expand_reduced(g: Tensor, x: Tensor, axis: tuple[int, ...], keep_dims: bool) -> Tensor:
    """Broadcasts the cotangent of a reduction back to the shape of its input."""
    if not keep_dims:
        g = F.reshape(g, tuple(1 if i in axis else d for i, d in enumerate(x.shape)))
    return F.broadcast_to(g, x.shape)


def _numpy_sum(x: np.ndarray, *, axis: tuple[int, ...], keep_dims: bool) -> Any:
    wide = np.float32 if dtypes.dtype_of(x.dtype) in LOW_PRECISION else x.dtype
    return np.sum(x, axis=axis, keepdims=keep_dims, dtype=wide).astype(x.dtype)


def _lower_sum(R: Any, x: Any, *, axis: tuple[int, ...], keep_dims: bool) -> Any:
    if not axis:
        return x
    low = R.type(x).dtype in LOW_PRECISION
    wide = R.emit(R.op.astype(x, "float32")) if low else x
    y = R.emit(R.op.sum(wide, axis=list(axis), keepdims=keep_dims))
    return R.op.astype(y, R.type(x).dtype.name) if low else y


def _onnx_sum(O: Any, x: Any, *, axis: tuple[int, ...], keep_dims: bool) -> Any:
    axes = np.array(axis, np.int64)
    return O.ReduceSum(x, axes, keepdims=int(keep_dims), noop_with_empty_axes=1)


@primitive(
    infer=rules.reduction(dtypes.INTEGERS + dtypes.FLOATS),
    eager=_numpy_sum,
    lower=_lower_sum,
    vjp=lambda g, y, x, *, axis, keep_dims: (expand_reduced(g, x, axis, keep_dims),),
    onnx=_onnx_sum,
    samples=[
        sample((3, 4), axis=(1,), keep_dims=False),
        sample((3, 1, 5), axis=(0, 2), keep_dims=True),
        sample((2, 3), axis=(), keep_dims=False),
        sample((), axis=(), keep_dims=False),
        sample((0, 3), axis=(0,), keep_dims=False, grad=False),
        sample((5, 3000), dtype="float16", low=0, high=1, axis=(1,), keep_dims=False, grad=False),
        sample((4, 3), dtype="int64", low=-9, high=9, axis=(0,), keep_dims=False),
        sample((3, 4), axis=(2,), keep_dims=False, raises=OutOfRangeError),
    ],
)
def reduce_sum(x: Tensor, axis: tuple[int, ...], keep_dims: bool) -> Tensor:
    r"""Sums over ``axis``; float16 and bfloat16 accumulate in float32.

    Args:
        x: Tensor of any shape.
        axis: Sorted non-negative axes; an empty tuple sums over none.
        keep_dims: Whether reduced axes stay with size 1.

    Returns:
        Tensor of ``x``'s shape without (or with 1 in) the reduced axes.
    """
    ...
