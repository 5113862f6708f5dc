"""Distinct elements; how many there are depends on the values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.columns import OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import Dim, TensorType, tensor_type
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, describe, require, require_tensor, resolve_axis
from tvmgraph.ops.common.rows import composed
from tvmgraph.ops.indexing.advanced import index_get, index_update
from tvmgraph.ops.reduction.scan import running_arg_extreme, running_sum
from tvmgraph.ops.sort.rows import arg_sort

__all__ = ["unique", "unique_consecutive", "unique_with_pad"]


def _infer_unique(x: TensorType, *, size: str) -> tuple[TensorType, TensorType]:
    if x.ndim != 1:
        raise ShapeError(f"x must be 1-d, not of shape {list(x.shape)}")
    index = dtypes.int64 if x.dtype is dtypes.int64 else dtypes.int32
    return x.with_shape((Dim(size),)), x.with_dtype(index)


def _eager_unique(x: np.ndarray, *, size: str) -> tuple[np.ndarray, np.ndarray]:
    _, first, inverse = np.unique(x, return_index=True, return_inverse=True, equal_nan=False)
    order = np.argsort(first, kind="stable")  # by first occurrence
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    index = np.int64 if x.dtype == np.int64 else np.int32
    return x[first[order]], rank[inverse.reshape(-1)].astype(index)


def _by_first_occurrence(x: Tensor, pad_num: object) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the distinct elements with what follows, every element's place, and ranks."""
    count = x.size
    past = count if isinstance(count, int) else F.size_value(x, size=count, dtype=dtypes.int64)
    d = dtypes.int64 if x.aval.dtype is dtypes.int64 else dtypes.int32
    fill = F.full((count + 1,), pad_num, dtype=x.aval.dtype)
    # equal elements lie next to each other once sorted, the first occurrence first
    order = F.cast(arg_sort(x, 0, False), dtypes.int64)
    ordered = index_get(x, order, axes=(0,))
    position = running_sum(F.ones((count,), dtypes.int64), 0, False, False) - 1
    before = index_get(ordered, F.maximum(position - 1, 0), axes=(0,))
    starts = F.logical_or(F.equal(position, 0), F.not_equal(ordered, before))
    group = running_sum(F.cast(starts, dtypes.int64), 0, False, False) - 1
    slots = F.where(starts, group, past)  # only the start of a group leaves its position
    firsts = index_update(F.zeros((count + 1,), dtypes.int64), order, slots, axes=(0,), mode="set")
    first = index_update(
        F.zeros((count,), dtypes.int64), index_get(firsts, group, axes=(0,)), order,
        axes=(0,), mode="set",
    )  # fmt: skip
    is_first = F.equal(first, position)
    rank = running_sum(F.cast(is_first, dtypes.int64), 0, False, False) - 1
    values = index_update(fill, x, F.where(is_first, rank, past), axes=(0,), mode="set")
    inverse = F.cast(index_get(rank, first, axes=(0,)), d)
    return F.basic_index(values, index=((0, count, 1),)), inverse, is_first


def _distinct(x: Tensor, size: str) -> tuple[Tensor, Tensor]:
    if x.shape == (0,):
        none = F.cast(F.count_up(F.zeros((), dtypes.int64), size), x.aval.dtype)
        return none, F.zeros((0,), dtypes.int64 if x.aval.dtype is dtypes.int64 else dtypes.int32)
    values, inverse, is_first = _by_first_occurrence(x, 0)
    count = F.reduce_sum(F.cast(is_first, dtypes.int64), axis=(0,), keep_dims=False)
    return index_get(values, F.count_up(count, size), axes=(0,)), inverse


def _to_first(g: Tensor, group: Tensor, axis: int) -> Tensor:
    """Takes what reaches a group to its first member, of which the result is a copy.

    Args:
        g: What reaches the groups, along ``axis``.
        group: 1-d, non-decreasing: a group starts where it grows.
        axis: Axis of the groups.
    """
    position = running_sum(F.ones(group.shape, dtypes.int64), 0, False, False) - 1
    before = index_get(group, F.maximum(position - 1, 0), axes=(0,))
    starts = F.logical_or(F.equal(position, 0), F.not_equal(group, before))
    starts = F.reshape(starts, (*group.shape, *[1] * (g.ndim - axis - 1)))
    return F.where(starts, index_get(g, group, axes=(axis,)), 0)


def _is_empty(size: object) -> bool:
    return isinstance(size, int) and size == 0  # a size that only values decide is not compared


def _vjp_unique(g: Any, y: Any, x: Tensor, *, size: str) -> tuple[Tensor]:
    if _is_empty(x.shape[0]):
        return (F.zeros_like(x),)
    highest = running_arg_extreme(y[1], 0, True)  # ranks grow with every first occurrence
    return (_to_first(g[0], index_get(y[1], highest, axes=(0,)), 0),)


def _onnx_unique(O: OnnxOps, x: OnnxNamed, *, size: str) -> Sequence[OnnxNamed]:
    index = dtypes.int64 if x.type.dtype is dtypes.int64 else dtypes.int32
    plain = x.type.dtype in (dtypes.int64, dtypes.float32, dtypes.float64)
    wide = dtypes.float32 if x.type.dtype.is_float else dtypes.int64  # what runtimes have
    given = x if plain else O.Cast(x, to=O.dtype(wide))
    values, _, inverse, _ = O.Unique(given, sorted=0, outputs=4)
    values = values if plain else O.Cast(values, to=O.dtype(x.type.dtype))
    return values, O.Cast(inverse, to=O.dtype(index))


@primitive(
    infer=_infer_unique,
    traits=Traits(Pattern.OPAQUE, Reason("how many there are depends on the values"), binds="size"),
    eager=_eager_unique,
    lower=composed(_distinct),
    vjp=_vjp_unique,
    onnx=_onnx_unique,
    multi=True,
    samples=[
        sample((9,), dtype="int64", low=-2, high=2, grad=False),
        sample((9,), dtype="int32", low=-2, high=2, grad=False),
        sample(np.array([2.0, 1, 2, 0.5], np.float32), grad=False),
        sample((0,), dtype="float32", grad=False),
        sample((3, 4), dtype="int64", raises=ShapeError),
    ],
)
def distinct(x: Tensor, size: str = "distinct") -> tuple[Tensor, Tensor]:
    """Returns the distinct elements by first occurrence, and for every element its place there.

    Args:
        x: 1-d tensor.
        size: What their number is called in a graph.
    """
    ...


def unique(input: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the distinct elements in the order of their first occurrence.

    A distinct element is a copy of its first occurrence, and the derivative goes there; JAX has the
    same, MindSpore gives it to every occurrence, PyTorch has none.

    Args:
        input: Tensor of any shape.

    Returns:
        Tuple of a 1-d tensor of distinct elements, and a tensor of ``input``'s shape with the
        position of every element among them (int64 for int64 elements, else int32).

    Example:
        >>> ops.unique(Tensor([2, 1, 2]))
        (Tensor(shape=[2], dtype=Int64, value= [2, 1]), Tensor(shape=[3], dtype=Int64, value= [0, 1,
         0]))
    """
    require_tensor("unique", input)
    values, inverse = distinct(F.reshape(input, (-1,)))
    return values, F.reshape(inverse, input.shape)


def unique_with_pad(x: Tensor, pad_num: float) -> tuple[Tensor, Tensor]:
    r"""Returns the distinct elements, filled up with ``pad_num`` to the size of the input.

    Args:
        x: 1-d Tensor.
        pad_num: What follows the distinct elements; an int for elements that are integers.

    Returns:
        Tuple of two tensors of ``x``'s shape: the distinct elements in the order of their first
        occurrence, and the position of every element among them.

    Raises:
        ShapeError: if ``x`` is not 1-d.
        DTypeError: if ``pad_num`` is a float and the elements are integers.

    Example:
        >>> ops.unique_with_pad(Tensor([3, 1, 3, 2]), 0)
        (Tensor(shape=[4], dtype=Int64, value= [3, 1, 2, 0]), Tensor(shape=[4], dtype=Int64, value=
         [0, 1, 0, 2]))
    """
    require_tensor("unique_with_pad", x, "x")
    require(x.ndim == 1, "x must be 1-d", "unique_with_pad", x=x)
    if isinstance(pad_num, float) and x.dtype.is_integer:
        raise bad(DTypeError, "pad_num must be an int for elements that are integers",
                  "unique_with_pad", describe(x=x, pad_num=pad_num))  # fmt: skip
    if x.shape == (0,):
        return x, F.zeros((0,), dtypes.int64 if x.aval.dtype is dtypes.int64 else dtypes.int32)
    values, inverse, _ = _by_first_occurrence(x, pad_num)
    return values, inverse


def _infer_runs(x: TensorType, *, axis: int, size: str) -> tuple[TensorType, ...]:
    runs = Dim(size)
    shape = tuple(runs if a == axis else d for a, d in enumerate(x.shape))
    inverse = tensor_type((x.shape[axis],), dtypes.int64)
    return x.with_shape(shape), inverse, tensor_type((runs,), dtypes.int64)


def _eager_runs(x: np.ndarray, *, axis: int, size: str) -> tuple[np.ndarray, ...]:
    rows = np.moveaxis(x, axis, 0)
    count = len(rows)
    starts = np.ones(count, bool)
    if count > 1:
        starts[1:] = (rows[1:] != rows[:-1]).reshape(count - 1, -1).any(axis=1)
    at = np.flatnonzero(starts)
    sizes = np.diff(at, append=count).astype(np.int64)
    return np.take(x, at, axis), (np.cumsum(starts) - 1).astype(np.int64), sizes


def _vjp_runs(g: Any, y: Any, x: Tensor, *, axis: int, size: str) -> tuple[Tensor]:
    return (F.zeros_like(x) if _is_empty(x.shape[axis]) else _to_first(g[0], y[1], axis),)


def _runs(x: Tensor, axis: int, size: str) -> tuple[Tensor, Tensor, Tensor]:
    rows = F.moveaxis(x, axis, 0)
    count = rows.shape[0]
    rows = F.reshape(rows, (count, math.prod(rows.shape[1:])))
    position = running_sum(F.ones((count,), dtypes.int64), 0, False, False) - 1
    before = index_get(rows, F.maximum(position - 1, 0), axes=(0,))
    differs = F.cast(F.not_equal(rows, before), dtypes.int64)
    differs = F.greater(F.reduce_sum(differs, axis=(1,), keep_dims=False), 0)
    starts = F.logical_or(differs, F.equal(position, 0))
    group = F.cumsum(F.cast(starts, dtypes.int64), 0) - 1
    (first,) = F.nonzero_positions(starts, size)
    ends = F.search_sorted(group, index_get(group, first, axes=(0,)), True)
    return index_get(x, first, axes=(axis,)), group, ends - first


@primitive(
    infer=_infer_runs,
    traits=Traits(Pattern.OPAQUE, Reason("how many there are depends on the values"), binds="size"),
    eager=_eager_runs,
    lower=composed(_runs),
    vjp=_vjp_runs,
    onnx=Reason("ONNX has no run-length operator"),
    multi=True,
    samples=[
        sample((9,), dtype="int64", low=0, high=1, axis=0, grad=False),
        sample((5, 2), dtype="int32", low=0, high=1, axis=0, grad=False),
        sample((2, 6), dtype="int32", low=0, high=1, axis=1, grad=False),
        sample((0,), axis=0, grad=False),
    ],
)
def runs_of_equal(x: Tensor, axis: int, size: str = "runs") -> tuple[Tensor, Tensor, Tensor]:
    """Returns the first slice of every run of equal slices, each slice's run, and run lengths.

    Args:
        x: Tensor with at least one axis.
        axis: Axis of the slices.
        size: What the number of runs is called in a graph.
    """
    ...


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    r"""Removes repetitions of neighbours.

    What is kept is the first of its run, and the derivative goes there.

    Args:
        input: Tensor of any shape.
        return_inverse: Whether to also return, for every element, its place in the result.
        return_counts: Whether to also return how often every element was repeated.
        dim: Axis whose slices are compared; ``None`` compares elements in row-major order.

    Returns:
        Tensor, or a tuple of it and the int64 tensors that were asked for.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.unique_consecutive(Tensor([1, 1, 2, 1]))
        Tensor(shape=[3], dtype=Int64, value= [1, 2, 1])
    """
    require_tensor("unique_consecutive", input)
    flat = dim is None
    axis = 0 if flat else resolve_axis("unique_consecutive", input, dim, "dim")
    values, inverse, counts = runs_of_equal(F.reshape(input, (-1,)) if flat else input, axis)
    if flat:
        inverse = F.reshape(inverse, input.shape)
    extra = [t for t, asked in ((inverse, return_inverse), (counts, return_counts)) if asked]
    return (values, *extra) if extra else values
