"""Combining the slices of every segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, require, require_tensor
from tvmgraph.ops.indexing.advanced import index_get, index_update
from tvmgraph.ops.indexing.basic import basic_index
from tvmgraph.ops.indexing.gather import as_index

__all__ = [
    "sparse_segment_mean", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sum",
]  # fmt: skip


def _segments(
    name: str, x: Tensor, segment_ids: object, num_segments: Any, how: str, start: object
) -> Tensor:
    """Combines the slices of every segment; negative segments are left out."""
    require_tensor(name, x, "x")
    ids = as_index(name, segment_ids, "segment_ids")
    count = int(num_segments)
    got = f"x={x.aval}, segment_ids={ids.aval}, num_segments={count}"
    if count < 1:
        raise bad(ArgumentError, "num_segments must be positive", name, got)
    if x.aval.shape[: ids.ndim] != ids.aval.shape:
        raise bad(ShapeError, "segment_ids must have the leading axes of x", name, got)
    shape = (count + 1, *x.shape[ids.ndim :])  # the last one collects what is left out
    base = F.broadcast_to(tensor_from_numpy(np.array(start, x.aval.dtype.numpy)), shape)
    slots = F.where(F.less(ids, 0), count, ids) if ids.aval.dtype.kind == "i" else ids
    y = index_update(base, x, slots, axes=(0,), mode=how)
    return basic_index(y, ((0, count, 1),))


def _limit(x: Tensor, largest: bool) -> float:
    """Returns the largest or smallest finite number of ``x``'s dtype."""
    d = require_tensor("unsorted_segment_max", x, "x").aval.dtype
    require(d is not dtypes.bool_, "x must hold numbers", "unsorted_segment_max", DTypeError, x=x)
    if d.is_integer:
        info: Any = np.iinfo(d.numpy)
    else:
        info = dtypes.float_limits(d)
    return (int if d.is_integer else float)(info.max if largest else info.min)


def unsorted_segment_sum(input_x: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor:
    r"""Sums the slices of every segment: :math:`out_s = \sum_{ids_i = s} x_i`.

    Args:
        input_x: Tensor whose leading axes are ``segment_ids``' axes.
        segment_ids: Integer Tensor: the segment of every slice; negative ones are left out.
        num_segments: Number of segments.

    Returns:
        Tensor of shape ``(num_segments,) + input_x.shape[segment_ids.ndim:]``; 0 for a segment
        without slices.

    Raises:
        ShapeError: if the shapes do not fit.
        OutOfRangeError: if a segment exceeds ``num_segments``.

    Example:
        >>> ops.unsorted_segment_sum(Tensor([1.0, 2.0, 3.0]), Tensor([0, 1, 0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 4.00000000e+00,  2.00000000e+00])
    """
    return _segments("unsorted_segment_sum", input_x, segment_ids, num_segments, "add", 0)


def unsorted_segment_prod(x: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor:
    r"""Multiplies the slices of every segment: :math:`out_s = \prod_{ids_i = s} x_i`.

    Args:
        x: Tensor whose leading axes are ``segment_ids``' axes.
        segment_ids: Integer Tensor: the segment of every slice; negative ones are left out.
        num_segments: Number of segments.

    Returns:
        Tensor of shape ``(num_segments,) + x.shape[segment_ids.ndim:]``; 1 for a segment without
        slices.

    Raises:
        ShapeError: if the shapes do not fit.
        OutOfRangeError: if a segment exceeds ``num_segments``.

    Example:
        >>> ops.unsorted_segment_prod(Tensor([1.0, 2.0, 3.0]), Tensor([0, 1, 0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  2.00000000e+00])
    """
    return _segments("unsorted_segment_prod", x, segment_ids, num_segments, "mul", 1)


def unsorted_segment_max(x: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor:
    r"""Returns the largest elements of every segment: :math:`out_s = \max_{ids_i = s} x_i`.

    Args:
        x: Tensor whose leading axes are ``segment_ids``' axes.
        segment_ids: Integer Tensor: the segment of every slice; negative ones are left out.
        num_segments: Number of segments.

    Returns:
        Tensor of shape ``(num_segments,) + x.shape[segment_ids.ndim:]``; the dtype's smallest
        number for a segment without slices.

    Raises:
        ShapeError: if the shapes do not fit.
        OutOfRangeError: if a segment exceeds ``num_segments``.

    Example:
        >>> ops.unsorted_segment_max(Tensor([1.0, 2.0, 3.0]), Tensor([0, 1, 0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  2.00000000e+00])
    """
    low = _limit(x, False)
    return _segments("unsorted_segment_max", x, segment_ids, num_segments, "max", low)


def unsorted_segment_min(x: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor:
    r"""Returns the smallest elements of every segment: :math:`out_s = \min_{ids_i = s} x_i`.

    Args:
        x: Tensor whose leading axes are ``segment_ids``' axes.
        segment_ids: Integer Tensor: the segment of every slice; negative ones are left out.
        num_segments: Number of segments.

    Returns:
        Tensor of shape ``(num_segments,) + x.shape[segment_ids.ndim:]``; the dtype's largest
        number for a segment without slices.

    Raises:
        ShapeError: if the shapes do not fit.
        OutOfRangeError: if a segment exceeds ``num_segments``.

    Example:
        >>> ops.unsorted_segment_min(Tensor([1.0, 2.0, 3.0]), Tensor([0, 1, 0]), 2)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    high = _limit(x, True)
    return _segments("unsorted_segment_min", x, segment_ids, num_segments, "min", high)


def sparse_segment_mean(x: Tensor, indices: Tensor, segment_ids: Tensor) -> Tensor:
    r"""Averages selected slices of every segment: :math:`out_s = mean_{ids_i = s} x_{indices_i}`.

    The number of segments is read from the last id, so this runs outside compiled code only.

    Args:
        x: Float Tensor of at least one axis.
        indices: 1-d integer Tensor: the slices taken from the first axis.
        segment_ids: 1-d integer Tensor of the same size that does not decrease.

    Returns:
        Tensor with one slice per segment; 0 for a segment without slices.

    Raises:
        ShapeError: if ``indices`` and ``segment_ids`` differ in shape.

    Example:
        >>> ops.sparse_segment_mean(Tensor([[1.0], [3.0]]), Tensor([0, 1]), Tensor([0, 0]))
        Tensor(shape=[1, 1], dtype=Float32, value=
        [[ 2.00000000e+00]])
    """
    name = "sparse_segment_mean"
    index, ids = as_index(name, indices, "indices"), as_index(name, segment_ids, "segment_ids")
    if index.aval.shape != ids.aval.shape or ids.ndim != 1:
        raise bad(ShapeError, "indices and segment_ids must be 1-d and of one size", name,
                  f"indices={index.aval}, segment_ids={ids.aval}")  # fmt: skip
    count = int(F.amax(ids)) + 1 if ids.size else 0
    if not count:
        return F.zeros((0, *x.shape[1:]), x.aval.dtype)
    total = unsorted_segment_sum(index_get(x, index, axes=(0,)), ids, count)
    sizes = unsorted_segment_sum(F.ones_like(ids, dtype=x.aval.dtype), ids, count)
    return total / F.reshape(F.maximum(sizes, 1), (count,) + (1,) * (x.ndim - 1))
