"""Weighted sums of the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DTypeError, OutOfRangeError, ShapeError, either
from tvmgraph.ops.common.rows import lower_full
from tvmgraph.ops.indexing.advanced import check_range, require_indices, wrapped

__all__: list[str] = []


def _infer(table: TensorType, index: TensorType, weights: TensorType) -> TensorType:
    require_indices(index)
    rules.require_ndim(table, (2,), "table")
    rules.require_same_dtype(table, weights)
    if not table.dtype.is_float:
        raise DTypeError(f"a table of floats is summed, not of {table.dtype.name}")
    if index.ndim < 1 or not rules.same_shape(index.shape, weights.shape):
        raise ShapeError(f"every index needs a weight, but index={index} and weights={weights}")
    if table.shape[0] == 0 and 0 not in index.shape:
        raise either(OutOfRangeError, RuntimeError)("a table of size 0 cannot be indexed")
    return table.with_shape((*index.shape[:-1], table.shape[1]))


def _check(table: np.ndarray, index: np.ndarray, *_: object) -> None:
    check_range(index, table.shape[0], 0)


def _eager(table: np.ndarray, index: np.ndarray, weights: np.ndarray) -> np.ndarray:
    from scipy.sparse import csr_matrix  # here, as it takes a tenth of a second

    _check(table, index)
    *rows, count = index.shape
    wide = np.result_type(table, np.float32)  # SciPy has no sparse matrices of float16
    first = np.arange(int(np.prod(rows)) + 1) * count
    places = np.where(index < 0, index + table.shape[0], index).ravel()
    matrix = csr_matrix((weights.ravel().astype(wide), places, first), (len(first) - 1, len(table)))
    sums = matrix @ table.astype(wide, copy=False)
    return sums.astype(table.dtype, copy=False).reshape(*rows, table.shape[1])


def _lower(R: Builder, table: Expr, index: Expr, weights: Expr) -> Expr:
    result = _infer(*map(R.type, (table, index, weights)))
    if 0 in result.shape or 0 in R.type(index).shape:
        return lower_full(R, table, result)
    kind = "float32" if result.dtype is dtypes.float16 else result.dtype.name

    def sums(shape: Expr, table: Expr, index: Expr, weights: Expr) -> Expr:
        k = R.te.reduce_axis((0, index.shape[-1]), name="k")

        def element(*i: Expr) -> Expr:
            at = (*i[:-1], k)
            row = table[wrapped(R, index[at], table.shape[0]), i[-1]]
            return R.te.sum(R.tir.Cast(kind, weights[at]) * R.tir.Cast(kind, row), axis=k)

        total = R.te.compute(shape, element, name="embedding_bag")
        if kind == table.dtype:
            return total
        return R.te.compute(shape, lambda *i: R.tir.Cast(table.dtype, total[i]), name="narrow")

    return R.emit_te(sums, [*R.shape(result.shape)], table, index, weights)


def _vjp(
    g: Tensor, y: Tensor, table: Tensor, index: Tensor, weights: Tensor
) -> tuple[Tensor | None, ...]:
    wide, each = F.expand_dims(g, -2), F.expand_dims(weights, -1)
    rows = F.index_get(table, index, axes=(0,))
    zeros = F.zeros_like(table)
    return (
        F.index_update(zeros, wide * each, index, axes=(0,), mode="add"),
        None,
        F.sum(rows * wide, -1),
    )


def _onnx(O: OnnxOps, table: OnnxNamed, index: OnnxNamed, weights: OnnxNamed) -> OnnxNamed:
    last = np.array([-1], np.int64)
    rows = O.Gather(table, O.Cast(index, to=O.dtype(dtypes.int64)), axis=0)
    return O.ReduceSum(
        O.Mul(rows, O.Unsqueeze(weights, last)), np.array([-2], np.int64), keepdims=0
    )


def _factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """The sums, what is summed, and the columns; rows are read anywhere."""
    rows = [f"i{i}" for i in range(types[1].ndim - 1)]
    each = [*rows, "k"]
    return equation([[".", "c"], each, each], [[*rows, "c"]])


_I = np.array([[2, -1, 0, 0], [1, 1, -3, 2]])


@primitive(
    infer=_infer,
    traits=Traits(Pattern.OPAQUE, _factors),
    eager=_eager,
    check_values=_check,
    lower=_lower,
    vjp=_vjp,
    onnx=_onnx,
    samples=[
        sample((3, 4), _I, (2, 4)),
        sample((3, 17), _I.astype(np.int32), (2, 4), dtype="float64"),
        sample((9, 40), np.arange(42).reshape(7, 2, 3) % 9, (7, 2, 3)),
        sample((5, 33), np.array([4, 0, 4]), (3,), dtype="float16", grad=False),
        sample((3, 4), np.zeros((0, 2), np.int64), (0, 2), grad=False),
        sample((3, 4), np.array([[3]]), (1, 1), raises=OutOfRangeError),
        sample((3, 4), _I, (2, 3), raises=ShapeError),
        sample((3, 4), (2, 4), (2, 4), raises=DTypeError),
    ],
)
def embedding_bag(table: Tensor, index: Tensor, weights: Tensor) -> Tensor:
    r"""Sums rows of a table, :math:`y_{i c} = \sum_k w_{i k} x_{index_{i k} c}`.

    A product with a sparse matrix that has as many elements in every row.

    Args:
        table: Tensor ``x`` of floats, shape [M, C].
        index: Integer Tensor [..., K]; negative entries count from the end.
        weights: Tensor ``w`` of ``index``'s shape and ``table``'s dtype.

    Returns:
        Tensor of shape [..., C].

    Raises:
        OutOfRangeError: if an index lies outside of the table (outside compiled code).
        ShapeError: if ``weights`` is not of ``index``'s shape.
        DTypeError: if ``index`` holds no integers.
    """
    ...
