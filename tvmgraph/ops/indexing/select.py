"""Choosing by a condition, and the positions where a condition holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import OnnxNamed, OnnxOps
from tvmgraph.core.dispatch import lift
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.storage import require_bytes
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.core.traits import CHEAP, Pattern, Traits
from tvmgraph.core.types import Dim, TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, require, require_tensor, resolve_axis, sizes
from tvmgraph.ops.common.numpy_math import select as select_elements
from tvmgraph.ops.common.rows import NOT_DIFFERENTIABLE, composed, sum_to
from tvmgraph.ops.reduction.rows import lower_truth

__all__ = [
    "argwhere", "masked_fill", "masked_scatter", "masked_select", "nonzero", "one_hot", "select",
    "sequence_mask", "where",
]  # fmt: skip


def _infer_where(condition: TensorType, input: TensorType, other: TensorType) -> TensorType:
    rules.require_same_dtype(input, other)
    return input.with_shape(rules.broadcast_shapes(condition.shape, input.shape, other.shape))


def _onnx_where(O: OnnxOps, condition: OnnxNamed, input: OnnxNamed, other: OnnxNamed) -> OnnxNamed:
    if condition.type.dtype is not dtypes.bool_:
        condition = O.Cast(condition, to=O.dtype(dtypes.bool_))
    return O.Where(condition, input, other)


@primitive(
    infer=_infer_where,
    traits=CHEAP,
    promote="after_first",
    eager=select_elements,
    lower=lambda R, condition, input, other: R.op.where(lower_truth(R, condition), input, other),
    vjp=lambda g, y, c, a, b: (None, sum_to(F.where(c, g, 0), a), sum_to(F.where(c, 0, g), b)),
    onnx=_onnx_where,
    samples=[
        sample((3, 4), (3, 4), (3, 4), dtype=("bool", "float32", "float32")),
        sample((3, 1), (4,), (), dtype=("bool", "float32", "float32")),
        sample((), (), (), dtype=("float32", "float32", "float32")),
        sample((0, 3), (3,), (1, 3), dtype=("bool", "float32", "float32"), grad=False),
        sample((17,), (17,), (1,), dtype=("int32", "int64", "int16"), low=0, high=2),
        sample((3,), (3,), (3,), dtype=("bool", "float16", "float32"), grad=False),
        sample(np.array([True, False]), np.array([1.0, np.nan], np.float32), (), grad=False,
               dtype=("bool", "float32", "float32")),
        sample((2,), (3,), (3,), dtype=("bool", "float32", "float32"), raises=ShapeError),
    ],
)  # fmt: skip
def where(condition: Tensor, input: Tensor, other: Tensor) -> Tensor:
    r"""Chooses elementwise: :math:`input_i` where ``condition`` holds, else :math:`other_i`.

    Args:
        condition: Tensor; anything but zero counts as true.
        input: Tensor or number taken where the condition holds.
        other: Tensor or number taken elsewhere; the three shapes broadcast, the dtypes of
            ``input`` and ``other`` are promoted.

    Example:
        >>> ops.where(Tensor([True, False]), Tensor([1.0, 2.0]), 0.0)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  0.00000000e+00])
    """
    ...


def select(condition: Tensor, input: object, other: object) -> Tensor:
    r"""Chooses elementwise: :math:`input_i` where ``condition`` holds, else :math:`other_i`.

    Args:
        condition: bool Tensor.
        input: Tensor or number taken where the condition holds.
        other: Tensor or number taken elsewhere.

    Returns:
        Tensor of the broadcast shape and promoted dtype.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.select(Tensor([True, False]), 1, Tensor([2, 3]))
        Tensor(shape=[2], dtype=Int64, value= [1, 3])
    """
    return where(condition, input, other)


def _require_mask(name: str, mask: Tensor) -> Tensor:
    require_tensor(name, mask, "mask")
    require(mask.aval.dtype is dtypes.bool_, f"mask must be bool, not {mask.aval.dtype.name}", name,
            DTypeError, mask=mask, fix="compare it, as in mask != 0")  # fmt: skip
    return mask


def masked_fill(input_x: Tensor, mask: Tensor, value: object) -> Tensor:
    r"""Replaces elements where ``mask`` is true by ``value``.

    Args:
        input_x: Tensor of any shape.
        mask: bool Tensor whose shape broadcasts with ``input_x``'s.
        value: Number or 0-d Tensor; it is converted to ``input_x``'s dtype.

    Returns:
        Tensor of the broadcast shape and ``input_x``'s dtype.

    Raises:
        DTypeError: if ``mask`` is not bool.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.masked_fill(Tensor([1.0, 2.0]), Tensor([True, False]), 0.5)
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e-01,  2.00000000e+00])
    """
    require_tensor("masked_fill", input_x, "input_x")
    return where(_require_mask("masked_fill", mask), like(value, input_x), input_x)


def like(value: object, x: Tensor) -> Tensor:
    """Returns a number or tensor as a tensor of ``x``'s dtype.

    Args:
        value: A tensor, number or array.
        x: The tensor whose dtype it takes.

    Raises:
        DTypeError: if it holds no numbers.
    """
    d = x.aval.dtype
    if isinstance(value, Tensor):
        return value if value.aval.dtype is d else F.cast(value, d)
    if isinstance(value, Symbol):
        return lift(value, d)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise DTypeError(f"the values must be a Tensor or numbers, not {type(value).__name__}")
    return tensor_from_numpy(array.astype(d.numpy))


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    r"""Returns the elements where ``mask`` is true, in row-major order.

    Args:
        input: Tensor of any shape.
        mask: bool Tensor; the two shapes broadcast.

    Returns:
        1-d Tensor of ``input``'s dtype.

    Raises:
        DTypeError: if ``mask`` is not bool.

    Example:
        >>> ops.masked_select(Tensor([1, 2, 3]), Tensor([True, False, True]))
        Tensor(shape=[2], dtype=Int64, value= [1, 3])
    """
    require_tensor("masked_select", input)
    _require_mask("masked_select", mask)
    shape = rules.broadcast_shapes(input.aval.shape, mask.aval.shape)
    flat = F.reshape(F.broadcast_to(input, shape), (-1,))
    return F.getitem(flat, F.reshape(F.broadcast_to(mask, shape), (-1,)))


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    r"""Replaces the elements where ``mask`` is true by consecutive elements of ``source``.

    Args:
        input: Tensor of any shape.
        mask: bool Tensor whose shape broadcasts to ``input``'s.
        source: Tensor with at least as many elements as ``mask`` selects.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        DTypeError: if ``mask`` is not bool.

    Example:
        >>> ops.masked_scatter(Tensor([1, 2, 3]), Tensor([True, False, True]), Tensor([8, 9]))
        Tensor(shape=[3], dtype=Int64, value= [8, 2, 9])
    """
    require_tensor("masked_scatter", input)
    mask = F.broadcast_to(_require_mask("masked_scatter", mask), input.shape)
    flat = F.reshape(mask, (-1,))
    # the k-th selected position takes element k; positions that are not selected read element 0
    rank = F.cumsum(F.cast(flat, dtypes.int64), 0) - 1
    taken = F.index_get(F.reshape(like(source, input), (-1,)), where(flat, rank, 0), axes=(0,))
    return where(mask, F.reshape(taken, input.shape), input)


# ---- positions ----------------------------------------------------------------------------------


def _find_positions(x: Tensor, size: str) -> tuple[Tensor, ...]:
    """The k-th position is the first up to which k elements are not zero."""
    flags = F.cast(F.cast(F.reshape(x, (-1,)), dtypes.bool_), dtypes.int64)
    taken = F.count_up(F.reduce_sum(flags, axis=(0,), keep_dims=False), size)
    flat = F.search_sorted(F.cumsum(flags, 0), taken, True)
    if x.ndim == 1:
        return (flat,)
    found: list[Tensor] = []
    for d in x.shape[::-1]:
        if isinstance(d, Dim):
            d = F.size_value(x, size=d, dtype=dtypes.int64)
        found.append(F.floor_mod(flat, d))
        flat = F.floor_div(flat, d)
    return tuple(found[::-1])


def _onnx_positions(O: OnnxOps, x: OnnxNamed, *, size: str) -> tuple[OnnxNamed, ...]:
    found = O.NonZero(x)
    return tuple([O.Gather(found, O.const(np.asarray(a)), axis=0) for a in range(x.type.ndim)])


@primitive(
    infer=lambda x, *, size: (tensor_type((Dim(size),), dtypes.int64),) * x.ndim,
    traits=Traits(Pattern.OPAQUE, Reason("how many there are depends on the values"), binds="size"),
    eager=lambda x, *, size: tuple(i.astype(np.int64, copy=False) for i in np.nonzero(x)),
    lower=composed(_find_positions),
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=_onnx_positions,
    multi=True,
    samples=[
        sample((3, 4), dtype="bool"),
        sample((7,), dtype="int64", low=0, high=1),
        sample((2, 0), dtype="float32"),
    ],
)
def nonzero_positions(x: Tensor, size: str = "nonzero") -> tuple[Tensor, ...]:
    """Returns, per axis, the int64 coordinates of all elements that are not zero.

    Args:
        x: Tensor with at least one axis.
        size: What their number is called in a graph.
    """
    ...


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    r"""Returns the coordinates of all elements that are not zero.

    Args:
        input: Tensor of any shape.
        as_tuple: Whether to return one 1-d tensor per axis instead of one matrix.

    Returns:
        int64 Tensor of shape :math:`(count, ndim)`, or a tuple of tensors of shape
        :math:`(count,)`.

    Example:
        >>> ops.nonzero(Tensor([0, 3, 4]))
        Tensor(shape=[2, 1], dtype=Int64, value=
        [[1],
         [2]])
    """
    require_tensor("nonzero", input)
    if as_tuple:
        return nonzero_positions(F.reshape(input, (1,)) if input.ndim == 0 else input)
    if input.ndim == 0:
        count = nonzero_positions(F.reshape(input, (1,)))[0].size
        return F.zeros((count, 0), dtypes.int64)
    return F.stack(list(nonzero_positions(input)), 1)


def argwhere(input: Tensor) -> Tensor:
    r"""Returns the coordinates of all elements that are not zero, one row each.

    Args:
        input: Tensor of any shape.

    Returns:
        int64 Tensor of shape :math:`(count, ndim)`.

    Example:
        >>> ops.argwhere(Tensor([[0, 3], [4, 0]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[0, 1],
         [1, 0]])
    """
    return nonzero(input)


# ---- made from indices --------------------------------------------------------------------------


def one_hot(
    indices: Tensor,
    depth: int | Tensor,
    on_value: object = 1,
    off_value: object = 0,
    axis: int = -1,
) -> Tensor:
    r"""Marks positions along a new axis: ``on_value`` at ``indices``, ``off_value`` elsewhere.

    Args:
        indices: Integer Tensor; entries outside ``[0, depth)`` mark nothing.
        depth: Size of the new axis.
        on_value: Number or 0-d Tensor; its dtype is the result's.
        off_value: Number or 0-d Tensor.
        axis: Where the new axis stands in the result.

    Returns:
        Tensor with the axis of size ``depth`` added.

    Raises:
        ArgumentError: if ``depth`` is negative.
        DTypeError: if ``indices`` are no integers.

    Example:
        >>> ops.one_hot(Tensor([0, 2]), 3)
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[1, 0, 0],
         [0, 0, 1]])
    """
    require_tensor("one_hot", indices, "indices")
    if not indices.aval.dtype.is_integer:
        raise bad(DTypeError, "indices must be integers", "one_hot", f"indices={indices.aval}")
    (count,) = sizes(depth, "one_hot", "depth")
    if count.__class__ is int and count < 0:
        raise bad(ArgumentError, "depth must not be negative", "one_hot", f"depth={depth}")
    axis = resolve_axis("one_hot", F.expand_dims(indices, -1), axis)
    if indices.aval.is_static and isinstance(count, int):
        all = indices.aval.size * count
        kept = on_value if isinstance(on_value, Tensor) else Tensor(on_value)
        require_bytes(all * kept.dtype.itemsize, f"a result of {all} elements")
    if not (isinstance(on_value, Tensor) or isinstance(off_value, Tensor)):
        on_value = Tensor(on_value)
    return _marked(indices, count, on_value, off_value, axis)


@fusible
def _marked(indices: Tensor, depth: int | Dim, on: object, off: object, axis: int) -> Tensor:
    d = indices.aval.dtype
    d = dtypes.int64 if d.kind == "u" else d
    classes = F.arange(0, depth, 1, dtype=d)
    classes = F.reshape(classes, (depth,) + (1,) * (indices.ndim - axis))
    return where(F.equal(F.expand_dims(F.cast(indices, d), axis), classes), on, off)


def sequence_mask(lengths: Tensor, maxlen: int | None = None) -> Tensor:
    r"""Marks the first positions of a new last axis: :math:`out_{..j} = j < lengths_{..}`.

    Args:
        lengths: Integer Tensor of shape :math:`(d_1, ..., d_n)`.
        maxlen: Size of the new axis; the largest length when not given, which must then be known
            outside compiled code.

    Returns:
        bool Tensor of shape :math:`(d_1, ..., d_n, maxlen)`.

    Raises:
        ArgumentError: if ``maxlen`` is not positive.

    Example:
        >>> ops.sequence_mask(Tensor([1, 3]), 4)
        Tensor(shape=[2, 4], dtype=Bool, value=
        [[ True, False, False, False],
         [ True,  True,  True, False]])
    """
    require_tensor("sequence_mask", lengths, "lengths")
    if maxlen is None:
        maxlen = int(F.amax(lengths)) if lengths.size else 1
    elif isinstance(maxlen, bool) or maxlen < 1:
        raise bad(ArgumentError, "maxlen must be positive", "sequence_mask", f"maxlen={maxlen}")
    return F.less(F.arange(0, maxlen, 1, dtype=lengths.dtype), F.expand_dims(lengths, -1))
