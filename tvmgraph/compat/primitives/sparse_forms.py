"""What the operator classes of sparse matrices compute.

A matrix is a triple of places [N, D], values [N] and shape [D], or five parts in rows: shape,
where matrices of a batch begin, where rows begin, columns, and values. Places are looked at, so
they are known before values are computed with; gradients are those of the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import DType

Triple = tuple[Tensor, Tensor, Tensor]
Parts = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def sizes(shape: object) -> tuple[int, ...]:
    """Returns a shape that is a tensor, a tuple or a list.

    Args:
        shape: The shape.
    """
    return tuple(int(v) for v in (shape.tolist() if isinstance(shape, Tensor) else shape))  # pyright: ignore


def _flat(places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the numbers that places have when a tensor is read row by row."""
    return np.asarray(np.ravel_multi_index(tuple(places.T), shape))


def union(
    one: Triple, other: Triple, combine: Callable[[Tensor, Tensor], Tensor]
) -> tuple[np.ndarray, Tensor]:
    """Returns the places of two matrices in order, and their values combined; none is 0.

    Args:
        one, other: A matrix by the places of its values.
        combine: The function of both values of a place.
    """
    shape = sizes(one[2])
    flat = [_flat(m[0].asnumpy(), shape) for m in (one, other)]
    known, where = np.unique(np.concatenate(flat), return_inverse=True)
    ends = np.split(where, [len(flat[0])])
    spread = [
        F.unsorted_segment_sum(m[1], Tensor(w), len(known)) for m, w in zip((one, other), ends)
    ]
    return np.stack(np.unravel_index(known, shape), -1), combine(*spread)


def sparse_add(one: Triple, other: Triple, least: Tensor) -> Triple:
    """Adds; sums nearer to 0 than ``least`` are left out.

    Args:
        one, other: A matrix by the places of its values.
        least: Tensor of one number.
    """
    places, values = union(one, other, F.add)
    kept = np.flatnonzero(np.abs(values.asnumpy()) >= least.asnumpy())
    return (
        F.cast(Tensor(places[kept]), one[0].dtype), F.gather(values, Tensor(kept), 0), one[2]
    )  # fmt: skip


def sparse_extreme(
    one: Triple, other: Triple, choose: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """Returns the greater or the smaller values; what one matrix lacks counts as 0.

    Args:
        one, other: A matrix by the places of its values.
        choose: ``ops.maximum`` or ``ops.minimum``.
    """
    places, values = union(one, other, choose)
    return F.cast(Tensor(places), one[0].dtype), values


def beside_dense(indices: Tensor, shape: Tensor, dense: Tensor) -> Tensor:
    """Returns the elements of a dense tensor, broadcast to ``shape``, at places of a matrix.

    Args:
        indices: Places [N, D].
        shape: Shape of the matrix, a tensor [D] of integers.
        dense: Tensor of a shape that can be broadcast to that of the matrix.
    """
    return F.gather_nd(F.broadcast_to(dense, sizes(shape)), indices)


def sparse_product(indices: Tensor, values: Tensor, shape: Tensor, dense: Tensor) -> Tensor:
    """Multiplies a matrix by a dense one.

    Args:
        indices: Places [N, D].
        values: Values [N].
        shape: Shape of the matrix, a tensor [D] of integers.
        dense: Matrix [columns, K].
    """
    taken = F.gather(dense, indices[:, 1], 0) * F.expand_dims(values, -1)
    return F.unsorted_segment_sum(taken, indices[:, 0], sizes(shape)[0])


def sparse_reorder(indices: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Sorts by rows, then by columns.

    Args:
        indices: Places [N, D].
        values: Values [N].
    """
    order = Tensor(np.lexsort(indices.asnumpy().T[::-1]))
    return F.gather(indices, order, 0), F.gather(values, order, 0)


def sparse_reshape(indices: Tensor, shape: Tensor, new_shape: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the places in another shape, in which one size may be -1, and that shape.

    Args:
        indices: Places [N, D].
        shape: Shape of the matrix, a tensor [D] of integers.
        new_shape: The other shape, a tensor of integers.
    """
    before, after = sizes(shape), list(sizes(new_shape))
    if -1 in after:
        after[after.index(-1)] = math.prod(before) // -math.prod(after)
    flat = _flat(indices.asnumpy(), before)
    places = np.stack(np.unravel_index(flat, after), -1)
    return F.cast(Tensor(places), indices.dtype), Tensor(after, shape.dtype)


def sparse_segment(
    how: str, x: Tensor, indices: Tensor, segment_ids: Tensor, count: Tensor | int | None = None
) -> Tensor:
    """Adds rows of ``x`` per segment; ``"mean"`` and ``"sqrtn"`` divide by their number.

    Args:
        how: ``"sum"``, ``"mean"`` or ``"sqrtn"``.
        x: Rows [M, ...].
        indices: Numbers of rows of ``x`` [N].
        segment_ids: The segment of every index [N], ascending.
        count: Number of segments; by default one more than the last.
    """
    if count is None:
        ids = segment_ids.asnumpy()
        count = int(ids[-1]) + 1 if len(ids) else 0
    total = F.unsorted_segment_sum(F.gather(x, indices, 0), segment_ids, int(count))
    if how == "sum":
        return total
    number = F.unsorted_segment_sum(F.ones_like(segment_ids), segment_ids, int(count))
    number = F.cast(F.maximum(number, 1), x.dtype)
    by = F.sqrt(number) if how == "sqrtn" else number
    return total / F.reshape(by, (-1,) + (1,) * (x.ndim - 1))


def count_sparse(
    indices: Tensor, values: Tensor, shape: Tensor, weights: Tensor, binary: bool, least: int,
    most: int,
) -> Triple:  # fmt: skip
    """Counts per row how often each value is there, or adds its weights.

    Args:
        indices: Places [N, 2].
        values: Integers [N], not negative.
        shape: Shape of the matrix, a tensor [D] of integers.
        weights: Weights [N]; an empty tensor counts.
        binary: Whether it is only said whether a value is there.
        least: Number of columns at least.
        most: Values from here on do not count, unless it is negative.
    """
    numbers, rows = values.asnumpy(), indices.asnumpy()[:, 0]
    within = numbers < most if most >= 0 else np.ones(len(numbers), bool)
    width = max(int(numbers[within].max(initial=-1)) + 1, least)
    flat, where = np.unique(rows[within] * width + numbers[within], return_inverse=True)
    if binary or not weights.size:
        found = np.bincount(where, minlength=len(flat))
        counts = F.cast(Tensor(np.minimum(found, 1) if binary else found), weights.dtype)
    else:
        counts = F.unsorted_segment_sum(weights[np.flatnonzero(within)], Tensor(where), len(flat))
    places = np.stack(np.divmod(flat, width), -1).astype(np.int64)
    return Tensor(places), counts, Tensor([sizes(shape)[0], width], indices.dtype)


# ---- matrices in rows ----------------------------------------------------------------------------


def places_of(parts: Parts) -> np.ndarray:
    """Returns the places of a matrix in rows, or of a batch of them.

    Args:
        parts: A matrix in rows, or a batch of them.
    """
    shape, _, pointers, columns, _ = parts
    *batch, height, _ = sizes(shape)
    lengths = np.diff(pointers.asnumpy().reshape(-1, height + 1), axis=1)
    rows = np.repeat(np.arange(lengths.size), lengths.ravel())
    places = (*np.divmod(rows, height)[0 if batch else 1 :], columns.asnumpy())
    return np.stack(places, -1)


def rows_of(places: np.ndarray, values: Tensor, shape: Tensor, dtype: DType) -> Parts:
    """Returns a matrix in rows of sorted places.

    Args:
        places: The places [N, D], sorted.
        values: Values [N].
        shape: Shape of the matrix, a tensor [D] of integers.
        dtype: dtype of the indices.
    """
    *batch, height, _ = sizes(shape)
    count = batch[0] if batch else 1
    number = places[:, 0] if batch else np.zeros(len(places), np.int64)
    lengths = np.bincount(number * height + places[:, -2], minlength=count * height)
    begins = np.zeros((count, height + 1), np.int64)
    begins[:, 1:] = lengths.reshape(count, height).cumsum(1)
    batches = np.append(0, np.bincount(number, minlength=count).cumsum())
    made = (batches, begins.ravel(), places[:, -1])
    first, rows, columns = (F.cast(Tensor(a), dtype) for a in made)
    return shape, first, rows, columns, values


def dense_of(parts: Parts) -> Tensor:
    """Returns the dense matrix.

    Args:
        parts: A matrix in rows, or a batch of them.
    """
    empty = F.zeros(sizes(parts[0]), parts[4].dtype)
    return F.tensor_scatter_add(empty, Tensor(places_of(parts)), parts[4])


def matrix_product(
    parts: Parts, dense: Tensor, turn: bool, turn_dense: bool, turn_result: bool
) -> Tensor:
    """Multiplies a matrix in rows, or a batch, by a dense one; each may be transposed.

    Args:
        parts: A matrix in rows, or a batch of them.
        dense: Dense matrix, or a batch of them.
        turn: Whether the matrix in rows is transposed.
        turn_dense: Whether the dense one is.
        turn_result: Whether the product is.
    """
    y = F.matmul(*(F.swapaxes(m, -1, -2) if t else m
                   for m, t in ((dense_of(parts), turn), (dense, turn_dense))))  # fmt: skip
    return F.swapaxes(y, -1, -2) if turn_result else y


def matrix_sum(one: Parts, other: Parts, alpha: Tensor, beta: Tensor) -> Parts:
    """Returns ``alpha`` times a matrix in rows and ``beta`` times another one.

    Args:
        one, other: A matrix in rows.
        alpha, beta: Tensor of one number.
    """
    first = Tensor(places_of(one)), one[4] * alpha, one[0]
    second = Tensor(places_of(other)), other[4] * beta, other[0]
    places, values = union(first, second, F.add)
    return rows_of(places, values, one[0], one[2].dtype)


def matrix_softmax(parts: Parts) -> Parts:
    """Softmax over what is there of every row.

    Args:
        parts: A matrix in rows, or a batch of them.
    """
    _, found = np.unique(places_of(parts)[:, :-1], axis=0, return_inverse=True)
    row, count = Tensor(found.reshape(-1)), int(found.max(initial=-1)) + 1
    greatest = F.gather(F.unsorted_segment_max(parts[4], row, count), row, 0)
    e = F.exp(parts[4] - F.stop_gradient(greatest))
    return (*parts[:4], e / F.gather(F.unsorted_segment_sum(e, row, count), row, 0))


def matrix_transpose(parts: Parts) -> Parts:
    """Returns the transposed matrix, or batch.

    Args:
        parts: A matrix in rows, or a batch of them.
    """
    places = places_of(parts)
    places[:, -2:] = places[:, :-3:-1].copy()
    order = np.lexsort(places.T[::-1])
    *batch, height, width = sizes(parts[0])
    turned = Tensor([*batch, width, height], parts[0].dtype)
    return rows_of(places[order], F.gather(parts[4], Tensor(order), 0), turned, parts[2].dtype)
