"""The positions of the first few elements of the sorted order, without sorting all."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import along_axis
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.common.rows import NOT_DIFFERENTIABLE
from tvmgraph.ops.sort.rows import eager_sort, integer_keys, onnx_order

__all__ = ["arg_top"]

#: Elements that are selected at most.
MOST = 256


def _infer(x: TensorType, *, k: int, axis: int, descending: bool) -> TensorType:
    rules.require_ndim(x, range(1, 65))
    axis = rules.normalize_axis(axis, x.ndim)
    size = x.shape[axis]
    if not 1 <= k <= min(MOST, size):  # pyright: ignore[reportArgumentType]
        raise ArgumentError(f"k must lie in [1, {min(MOST, size)}]", got=f"k={k}")  # pyright: ignore[reportArgumentType]
    return x.with_shape((*x.shape[:axis], k, *x.shape[axis + 1 :])).with_dtype(dtypes.int32)


def _eager(x: np.ndarray, *, k: int, axis: int, descending: bool) -> np.ndarray:
    order = eager_sort(x, axis=axis, descending=descending)
    return np.ascontiguousarray(order.take(range(k), axis))


def _lower(R: Builder, x: Expr, *, k: int, axis: int, descending: bool) -> Expr:
    t = R.type(x)
    axis %= t.ndim
    last = [*(i for i in range(t.ndim) if i != axis), axis]
    keys = integer_keys(R, x)
    if axis != t.ndim - 1:
        keys = R.emit(R.op.permute_dims(keys, last))
    shape = [t.static_shape[i] for i in last]
    rows = int(np.prod(shape[:-1]))
    keys = R.emit(R.op.reshape(keys, (rows, shape[-1])))
    kind = tensor_type((rows, k), dtypes.int32)
    found = R.write("topk", f"{k} {int(descending)}", [keys], [kind])
    found = R.emit(R.op.reshape(found, (*shape[:-1], k)))
    if axis == t.ndim - 1:
        return found
    return R.op.permute_dims(found, [last.index(i) for i in range(t.ndim)])


def _onnx(O: OnnxOps, x: OnnxNamed, *, k: int, axis: int, descending: bool) -> OnnxNamed:
    return onnx_order(O, x, np.array([k], np.int64), axis, descending)


@primitive(
    infer=_infer,
    traits=along_axis(),
    eager=_eager,
    lower=_lower,
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=_onnx,
    samples=[
        sample((3, 50), k=4, axis=1, descending=True),
        sample((3, 50, 2), k=5, axis=1, descending=False),
        sample((2, 7), k=7, axis=-1, descending=True),
        sample((40,), k=3, axis=0, descending=True, dtype="int64", low=-3, high=3),
        sample((40,), k=9, axis=0, descending=False, dtype="uint8", low=0, high=9),
        sample((40,), k=2, axis=0, descending=True, dtype="bfloat16"),
        sample((33,), k=33, axis=0, descending=False, dtype="float64"),
        sample(np.array([0.0, -np.inf, 1e-45, -0.0, np.inf, -3]), k=5, axis=0,
               descending=True),
        sample(np.array([-(2**63), 5, -(2**63), 7] * 9, np.int64), k=30, axis=0,
               descending=True),
        sample((4,), k=5, axis=0, descending=True, raises=ArgumentError),
    ],
)  # fmt: skip
def arg_top(x: Tensor, k: int, axis: int, descending: bool) -> Tensor:
    """Returns the first ``k`` int32 positions of those that sort ``x`` along an axis.

    Equal elements come in their order, and NaN counts as larger than every number.

    Args:
        x: Tensor of any shape.
        k: How many, up to 256.
        axis: Axis.
        descending: Whether the largest element comes first.

    Returns:
        int32 Tensor of ``x``'s shape with ``k`` on the axis.

    Raises:
        ArgumentError: if ``k`` exceeds the size of the axis or 256.
    """
    ...
