"""Joining and splitting tensors: concat, stack, split, chunk, unstack and their relatives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs, AxisLike
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.symbols import being_sizes
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Layout, Pattern, Traits, along_axis, equation, letters
from tvmgraph.core.types import Dim, TensorType
from tvmgraph.core.unfollowed import each_by_numpy
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError, either
from tvmgraph.ops.common.arguments import (
    as_int,
    bad,
    countable,
    describe,
    int_tuple,
    named,
    require,
    wrap_axis,
)
from tvmgraph.ops.shape.rows import shape_text

__all__ = [
    "cat", "chunk", "column_stack", "concat", "dsplit", "dstack", "hsplit", "hstack", "row_stack",
    "split", "split_at", "stack", "tensor_split", "unbind", "unstack", "vsplit", "vstack",
]  # fmt: skip


def _infer_concat(*types: TensorType, axis: int) -> TensorType:
    if not types:
        raise ShapeError("there is nothing to concatenate")
    first = types[0]
    if first.ndim == 0:
        raise ShapeError("0-d tensors cannot be concatenated", fix="use ops.stack")
    axis = rules.normalize_axis(axis, first.ndim)
    rest = [(*t.shape[:axis], *t.shape[axis + 1 :]) for t in types]
    for t, r in zip(types, rest):
        if t.ndim != first.ndim or not rules.same_shape(r, rest[0]):
            raise ShapeError(
                f"shapes {shape_text(first.shape)} and {shape_text(t.shape)} differ outside "
                f"axis {axis}", fix="make all other axes equal",
            )  # fmt: skip
    size: Any = sum(t.shape[axis] for t in types)  # pyright: ignore[reportArgumentType]
    return first.with_shape((*first.shape[:axis], size, *first.shape[axis + 1 :]))


def _lower_concat(R: Builder, *xs: Expr, axis: int) -> Expr:
    full = [x for x in xs if 0 not in R.type(x).shape]
    return R.op.concat(full, axis) if len(full) > 1 else full[0]


def _vjp_concat(g: Tensor, y: Tensor, *xs: Tensor, axis: int) -> tuple[Tensor, ...]:
    if len(xs) == 1:
        return (g,)
    sizes = [x.aval.shape[axis] for x in xs]
    with being_sizes(*sizes):
        return F.split_at(g, tuple(itertools.accumulate(sizes[:-1])), axis)


@primitive(
    infer=_infer_concat,
    traits=replace(along_axis(Pattern.GATHER), layout=Layout.CONCAT),
    promote="common",
    eager=lambda *xs, axis: np.concatenate(xs, axis),
    lower=_lower_concat,
    vjp=_vjp_concat,
    onnx=lambda O, *xs, axis: O.Concat(*xs, axis=axis),
    samples=[
        sample((2, 3), (2, 3), axis=0),
        sample((2, 3), (2, 1), (2, 17), axis=1),
        sample((4,), axis=0),
        sample((2, 0), (2, 3), axis=1, grad=False),
        sample((0, 3), (0, 3), axis=0, grad=False),
        sample((2,), (3,), dtype=("float16", "int32"), axis=0, grad=False),
        sample((2,), (3,), dtype="bool", axis=0),
        sample((2, 3), (3, 3), axis=1, raises=ShapeError),
        sample((), (), axis=0, raises=ShapeError),
        sample((2,), (2,), axis=1, raises=OutOfRangeError),
    ],
)
@named("concat")
def _concat(*tensors: Tensor, axis: int) -> Tensor:
    """Joins tensors along an existing axis.

    Args:
        tensors: Tensors whose shapes agree outside ``axis``; dtypes are promoted.
        axis: Non-negative axis.

    Returns:
        Tensor whose size along ``axis`` is the sum of the sizes.
    """
    ...


def _sequence(tensors: object, op: str, name: str = "tensors") -> list[Tensor]:
    """Checks a list or tuple of tensors."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise bad(DTypeError, f"{name} must be a tuple or list of Tensors", op,
                  describe(**{name: tensors}))  # fmt: skip
    if not tensors:
        raise bad(either(ArgumentError, TypeError), f"{name} is empty", op, f"{name}={tensors!r}")
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise bad(DTypeError, f"{name}[{i}] must be a Tensor, not {type(t).__name__}", op,
                      repr(t)[:80])  # fmt: skip
    return list(tensors)


def concat(tensors: object, axis: int = 0) -> Tensor:
    """Joins tensors along an existing axis.

    Args:
        tensors: Tuple or list of tensors whose shapes agree outside ``axis``; their dtypes are
            promoted.
        axis: The axis to join along.

    Returns:
        Tensor whose size along ``axis`` is the sum of the sizes.

    Raises:
        ShapeError: if the shapes differ outside ``axis``.
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.concat((Tensor([1, 2]), Tensor([3])))
        Tensor(shape=[3], dtype=Int64, value= [1, 2, 3])
    """
    items = _sequence(tensors, "concat")
    return _concat(*items, axis=wrap_axis(axis, items[0].ndim))


cat = concat


def stack(tensors: object, axis: int = 0) -> Tensor:
    """Joins tensors of one shape along a new axis.

    Args:
        tensors: Tuple or list of tensors of equal shape.
        axis: Position of the new axis in the result.

    Returns:
        Tensor with one more axis, of size ``len(tensors)``.

    Raises:
        ShapeError: if the shapes differ.
        OutOfRangeError: if ``axis`` lies outside :math:`[-n-1, n]`.

    Example:
        >>> ops.stack((Tensor([1, 2]), Tensor([3, 4])), 1)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 3],
         [2, 4]])
    """
    items = _sequence(tensors, "stack")
    shape = items[0].aval.shape
    for t in items:
        if t.aval.shape != shape:
            raise bad(
                ShapeError, f"shapes {shape_text(shape)} and {shape_text(t.aval.shape)} differ",
                "stack", describe(axis=axis),
            )  # fmt: skip
    axis = wrap_axis(axis, len(shape) + 1)
    return _concat(*[F.expand_dims(t, axis) for t in items], axis=axis)


def hstack(tensors: object) -> Tensor:
    """Joins tensors along axis 1 (along axis 0 when they have one axis).

    Args:
        tensors: Tuple or list of tensors.

    Returns:
        The joined tensor.

    Example:
        >>> ops.hstack((Tensor([1, 2]), Tensor([3])))
        Tensor(shape=[3], dtype=Int64, value= [1, 2, 3])
    """
    items = [F.atleast_1d(t) for t in _sequence(tensors, "hstack")]
    return concat(items, 0 if items[0].ndim == 1 else 1)


def vstack(inputs: object) -> Tensor:
    """Joins tensors along axis 0 after giving them at least two axes.

    Args:
        inputs: Tuple or list of tensors.

    Returns:
        The joined tensor.

    Example:
        >>> ops.vstack((Tensor([1, 2]), Tensor([3, 4])))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 4]])
    """
    return concat([F.atleast_2d(t) for t in _sequence(inputs, "vstack", "inputs")], 0)


def row_stack(tensors: object) -> Tensor:
    """Joins tensors along axis 0; another name of :func:`vstack`.

    Args:
        tensors: Tuple or list of tensors.

    Returns:
        The joined tensor.

    Example:
        >>> ops.row_stack((Tensor([1, 2]), Tensor([3, 4])))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [3, 4]])
    """
    return vstack(tensors)


def dstack(tensors: object) -> Tensor:
    """Joins tensors along axis 2 after giving them at least three axes.

    Args:
        tensors: Tuple or list of tensors.

    Returns:
        The joined tensor.

    Example:
        >>> ops.dstack((Tensor([1, 2]), Tensor([3, 4])))
        Tensor(shape=[1, 2, 2], dtype=Int64, value=
        [[[1, 3],
          [2, 4]]])
    """
    return concat([F.atleast_3d(t) for t in _sequence(tensors, "dstack")], 2)


def column_stack(tensors: object) -> Tensor:
    """Joins tensors along axis 1, vectors as columns.

    Args:
        tensors: Tuple or list of tensors.

    Returns:
        The joined tensor.

    Example:
        >>> ops.column_stack((Tensor([1, 2]), Tensor([3, 4])))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 3],
         [2, 4]])
    """
    items = _sequence(tensors, "column_stack")
    return concat([F.reshape(t, (-1, 1)) if t.ndim < 2 else t for t in items], 1)


# ---- splitting ----------------------------------------------------------------------------------


def _infer_split(
    input: TensorType, *, indices: tuple[int, ...], axis: int
) -> tuple[TensorType, ...]:
    axis = rules.normalize_axis(axis, input.ndim)
    if input.ndim == 0:
        raise ShapeError("a 0-d tensor cannot be split")
    size: Any = input.shape[axis]
    edges = (0, *indices, size)
    if any(a > b for a, b in itertools.pairwise(edges)):
        raise OutOfRangeError(f"cuts {list(indices)} are not increasing within [0, {size}]")
    shape = input.shape
    return tuple(
        input.with_shape((*shape[:axis], b - a, *shape[axis + 1 :]))
        for a, b in itertools.pairwise(edges)
    )


def _lower_split(R: Builder, x: Expr, *, indices: tuple[int, ...], axis: int) -> list[Expr]:
    """One slice per piece, so that each fuses into its own consumer."""
    shape = R.type(x).shape
    edges = (0, *indices, shape[axis])
    if any(isinstance(d, Dim) for d in edges):
        return [_lower_piece(R, x, axis, a, b - a) for a, b in itertools.pairwise(edges)]
    return [R.op.strided_slice(x, [axis], [a], [b]) for a, b in itertools.pairwise(edges)]


def _lower_piece(R: Builder, x: Expr, axis: int, first: int | Dim, count: int | Dim) -> Expr:
    """Cuts one piece out of an axis of symbolic size."""

    def piece(x: Expr, first: Expr, count: Expr) -> Expr:
        shape = [R.int64(count) if i == axis else d for i, d in enumerate(x.shape)]
        return R.te.compute(
            shape, lambda *at: x[(*at[:axis], at[axis] + first, *at[axis + 1 :])], name="piece"
        )

    return R.emit_te(piece, x, R.extent(first), R.extent(count))


def _eager_split(x: np.ndarray, *, indices: tuple[int, ...], axis: int) -> tuple[np.ndarray, ...]:
    before = (slice(None),) * axis
    edges = itertools.pairwise((0, *indices, x.shape[axis]))
    return tuple([x[(*before, slice(a, b))] for a, b in edges])


def _onnx_split(
    O: OnnxOps, x: OnnxNamed, *, indices: tuple[int, ...], axis: int
) -> Sequence[OnnxNamed]:
    if not indices:
        return (O.Identity(x),)
    edges = (0, *indices, x.type.shape[axis])
    sizes = [b - a for a, b in itertools.pairwise(edges)]
    return O.Split(x, O.shape(sizes), axis=axis, outputs=len(sizes))


def _split_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """All axes but the one that is split."""
    words = letters(types[0].ndim)
    words[attrs["axis"] % types[0].ndim] = "."
    return equation([words], [words] * (len(attrs["indices"]) + 1))


@primitive(
    infer=_infer_split,
    traits=Traits(Pattern.GATHER, _split_factors, batch=Batch.AXIS),
    eager=_eager_split,
    lower=_lower_split,
    vjp=lambda g, y, x, *, indices, axis: (F.concat(g, axis),),
    onnx=_onnx_split,
    multi=True,
    samples=[
        sample((6, 3), indices=(2, 3), axis=0),
        sample((2, 17), indices=(5,), axis=1),
        sample((4,), indices=(), axis=0),
        sample((4, 2), indices=(0, 4), axis=0, grad=False),
        sample((0, 2), indices=(0,), axis=0, grad=False),
        sample((4, 4), indices=(3, 1), axis=0, raises=OutOfRangeError),
        sample((4, 4), indices=(5,), axis=0, raises=OutOfRangeError),
        sample((4,), indices=(1,), axis=1, raises=OutOfRangeError),
    ],
)
def split_at(input: Tensor, indices: tuple[int, ...], axis: int) -> tuple[Tensor, ...]:
    """Cuts a tensor before every index.

    Args:
        input: Tensor with at least one axis.
        indices: Increasing positions of the cuts.
        axis: Non-negative axis to cut.

    Returns:
        ``len(indices) + 1`` tensors.
    """
    ...


def _axis_size(input: Tensor, axis: object, op: str) -> tuple[int, int | Dim]:
    axis = as_int(axis, op, "axis")
    if not -input.ndim <= axis < input.ndim:
        raise bad(rules.AxisError, f"axis {axis} is outside [{-input.ndim}, {input.ndim})", op,
                  describe(input=input, axis=axis))  # fmt: skip
    axis %= input.ndim
    return axis, input.aval.shape[axis]


def split(tensor: Tensor, split_size_or_sections: object, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits a tensor into pieces of given sizes.

    Args:
        tensor: Tensor with at least one axis.
        split_size_or_sections: The size of every piece (the last one may be smaller), or a list
            with the size of each.
        axis: The axis to split.

    Returns:
        Tuple of tensors.

    Raises:
        ArgumentError: if a size is not positive, or the sizes do not add up.

    Example:
        >>> ops.split(ops.arange(5), 2)
        (Tensor(shape=[2], dtype=Int64, value= [0, 1]), Tensor(shape=[2], dtype=Int64, value= [2,
         3]), Tensor(shape=[1], dtype=Int64, value= [4]))
    """
    axis, size = _axis_size(tensor, axis, "split")
    sizes = split_size_or_sections
    got = describe(tensor=tensor, split_size_or_sections=sizes, axis=axis)
    if isinstance(sizes, (tuple, list)):
        parts = int_tuple(sizes, "split", "split_size_or_sections")
        if any(p < 0 for p in parts) or sum(parts) != size:
            raise bad(ArgumentError, f"the sizes must not be negative and add up to {size}",
                      "split", got)  # fmt: skip
        return split_at(tensor, tuple(itertools.accumulate(parts[:-1])), axis)
    step = as_int(sizes, "split", "split_size_or_sections")
    if step <= 0:
        raise bad(ArgumentError, "the size of a piece must be positive", "split", got)
    return split_at(tensor, tuple(range(step, size, step)), axis)


def chunk(input: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    r"""Splits a tensor into at most ``chunks`` pieces of size :math:`\lceil d / chunks \rceil`.

    Args:
        input: Tensor with at least one axis.
        chunks: Number of pieces wanted.
        axis: The axis to split.

    Returns:
        Tuple of tensors; fewer than ``chunks`` where the pieces run out.

    Raises:
        ArgumentError: if ``chunks`` is not positive.

    Example:
        >>> ops.chunk(ops.arange(5), 2)
        (Tensor(shape=[3], dtype=Int64, value= [0, 1, 2]), Tensor(shape=[2], dtype=Int64, value= [3,
         4]))
    """
    axis, size = _axis_size(input, axis, "chunk")
    count = as_int(chunks, "chunk", "chunks")
    require(count > 0, "chunks must be positive", "chunk", ArgumentError, input=input,
            chunks=chunks)  # fmt: skip
    step = max(-(-size // count), 1)
    if isinstance(size, Dim):
        edges = (step * i for i in range(1, countable(count, "chunk", "chunks")))
        return split_at(input, tuple(e for e in edges if e < size), axis)
    return split_at(input, tuple(range(step, size, step)), axis)


def tensor_split(input: Tensor, indices_or_sections: object, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits a tensor at indices, or into sections whose sizes differ by at most one.

    Args:
        input: Tensor with at least one axis.
        indices_or_sections: Number of sections, or the indices to cut before.
        axis: The axis to split.

    Returns:
        Tuple of tensors.

    Raises:
        ArgumentError: if the number of sections is not positive.

    Example:
        >>> ops.tensor_split(ops.arange(5), 3)
        (Tensor(shape=[2], dtype=Int64, value= [0, 1]), Tensor(shape=[2], dtype=Int64, value= [2,
         3]), Tensor(shape=[1], dtype=Int64, value= [4]))
    """
    return _tensor_split(input, indices_or_sections, axis, "tensor_split")


def _tensor_split(input: Tensor, where: object, axis: AxisLike, op: str) -> tuple[Tensor, ...]:
    axis, size = _axis_size(input, axis, op)
    if isinstance(where, (tuple, list)):
        cuts = [
            min(max(i + size if i < 0 else i, 0), size)
            for i in int_tuple(where, op, "indices_or_sections")
        ]
        edges = list(itertools.accumulate(cuts, max))
        if edges == cuts:
            return split_at(input, tuple(cuts), axis)
        # an index that lies before its predecessor gives an empty piece
        bounds = [0, *cuts, size]
        return tuple(
            split_at(input, (a, max(a, b)), axis)[1] for a, b in itertools.pairwise(bounds)
        )
    count = countable(as_int(where, op, "indices_or_sections"), op, "indices_or_sections")
    require(count > 0, "the number of sections must be positive", op, ArgumentError, input=input,
            indices_or_sections=where)  # fmt: skip
    small, larger = divmod(size, count)
    sizes = [small + (i < larger) for i in range(count)]
    return split_at(input, tuple(itertools.accumulate(sizes[:-1])), axis)


def _split_along(input: Tensor, where: object, axis: int, op: str) -> tuple[Tensor, ...]:
    require(input.ndim > axis, f"input must have at least {axis + 1} axes", op, input=input)
    return _tensor_split(input, where, axis, op)


def hsplit(input: Tensor, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Splits along axis 1 (along axis 0 when there is only one axis).

    Args:
        input: Tensor with at least one axis.
        indices_or_sections: Number of sections, or the indices to cut before.

    Returns:
        Tuple of tensors.

    Example:
        >>> ops.hsplit(Tensor([[1, 2], [3, 4]]), 2)
        (Tensor(shape=[2, 1], dtype=Int64, value=
        [[1],
         [3]]), Tensor(shape=[2, 1], dtype=Int64, value=
        [[2],
         [4]]))
    """
    return _split_along(input, indices_or_sections, 0 if input.ndim == 1 else 1, "hsplit")


def vsplit(input: Tensor, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Splits along axis 0.

    Args:
        input: Tensor with at least two axes.
        indices_or_sections: Number of sections, or the indices to cut before.

    Returns:
        Tuple of tensors.

    Example:
        >>> ops.vsplit(Tensor([[1, 2], [3, 4]]), 2)
        (Tensor(shape=[1, 2], dtype=Int64, value=
        [[1, 2]]), Tensor(shape=[1, 2], dtype=Int64, value=
        [[3, 4]]))
    """
    return _split_along(input, indices_or_sections, 0, "vsplit")


def dsplit(input: Tensor, indices_or_sections: object) -> tuple[Tensor, ...]:
    """Splits along axis 2.

    Args:
        input: Tensor with at least three axes.
        indices_or_sections: Number of sections, or the indices to cut before.

    Returns:
        Tuple of tensors.

    Example:
        >>> ops.dsplit(Tensor([[[1, 2], [3, 4]]]), 2)
        (Tensor(shape=[1, 2, 1], dtype=Int64, value=
        [[[1],
          [3]]]), Tensor(shape=[1, 2, 1], dtype=Int64, value=
        [[[2],
          [4]]]))
    """
    return _split_along(input, indices_or_sections, 2, "dsplit")


def unstack(input_x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """Takes a tensor apart along an axis, which disappears.

    Args:
        input_x: Tensor with at least one axis.
        axis: The axis to take apart.

    Returns:
        One tensor per index of ``axis``.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.unstack(Tensor([[1, 2], [3, 4]]))
        (Tensor(shape=[2], dtype=Int64, value= [1, 2]), Tensor(shape=[2], dtype=Int64, value= [3,
         4]))
    """
    axis, size = _axis_size(input_x, axis, "unstack")
    if size == 0:
        return ()
    shape = input_x.aval.shape
    rest = (*shape[:axis], *shape[axis + 1 :])
    found = each_by_numpy(lambda a: np.moveaxis(a, axis, 0), input_x, rest)
    if found is not None:
        return found
    return tuple(F.reshape(p, rest) for p in split_at(input_x, tuple(range(1, size)), axis))


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Takes a tensor apart along ``dim``; another name of :func:`unstack`.

    Args:
        input: Tensor with at least one axis.
        dim: The axis to take apart.

    Returns:
        One tensor per index of ``dim``.

    Example:
        >>> ops.unbind(Tensor([[1, 2], [3, 4]]))
        (Tensor(shape=[2], dtype=Int64, value= [1, 2]), Tensor(shape=[2], dtype=Int64, value= [3,
         4]))
    """
    return unstack(input, dim)
