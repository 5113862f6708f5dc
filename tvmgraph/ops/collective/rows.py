"""Collectives: rows whose results depend on what other processes compute.

``group`` names the processes (see :mod:`tvmgraph.distributed.engine`), ``parts`` says how many they
are, so that types need no processes. Compiled code calls the NumPy column, which calls MPI.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr, VjpColumn
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import Result, RowDecorator, primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import ELEMENTWISE, Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.distributed import engine
from tvmgraph.errors import ArgumentError, ShapeError

__all__: list[str] = []

_TRAITS = Traits(Pattern.OPAQUE, Reason("it is what puts parts together"), collective=True)
_NO_ONNX = Reason("ONNX files describe the program of one process")
_HERE = {"group": "world", "parts": 1}


def _divided(t: TensorType, axis: int, parts: int) -> TensorType:
    size = t.shape[axis] if axis < t.ndim else 0
    if axis >= t.ndim or not isinstance(size, int) or size % parts:
        raise ShapeError(f"axis {axis} of {t} cannot be cut into {parts} equal parts")
    return t.with_shape((*t.shape[:axis], size // parts, *t.shape[axis + 1 :]))


def _times(t: TensorType, axis: int, parts: int) -> TensorType:
    rules.normalize_axis(axis, t.ndim)
    return t.with_shape((*t.shape[:axis], t.shape[axis] * parts, *t.shape[axis + 1 :]))


def _cut(x: np.ndarray, axis: int, parts: int) -> np.ndarray:
    """The parts of an array along a new first axis."""
    shape = (*x.shape[:axis], parts, x.shape[axis] // parts, *x.shape[axis + 1 :])
    return np.moveaxis(x.reshape(shape), axis, 0)


def _glue(parts: np.ndarray, axis: int) -> np.ndarray:
    """The inverse of :func:`_cut`."""
    moved = np.moveaxis(parts, 0, axis)
    size = moved.shape[axis] * moved.shape[axis + 1]
    return moved.reshape((*moved.shape[:axis], size, *moved.shape[axis + 2 :]))


def _row(
    infer: Callable[..., Any], exchange: Callable[..., object], vjp: VjpColumn | Reason,
    samples: Sequence[Sample], multi: bool = False,
) -> RowDecorator:  # fmt: skip
    """Adds a row in which the processes of a group take part: ``exchange`` is the NumPy column."""

    def add_row(function: Callable[..., Result]) -> Callable[..., Result]:
        def eager(*arrays: np.ndarray, group: str, parts: int, **attrs: object) -> object:
            found = engine.get_group(group).size
            if found != parts:
                raise ArgumentError(
                    f"the group {group!r} has {found} processes, and {parts} are expected"
                )
            return exchange(*arrays, group=group, parts=parts, **attrs)

        def lower(R: Builder, *args: Expr, **attrs: object) -> Expr:
            found = infer(*[R.type(a) for a in args], **attrs)
            return R.numpy_column(function.__name__, attrs, args, found if multi else (found,))

        return primitive(
            infer=infer, eager=eager, lower=lower, vjp=vjp, onnx=_NO_ONNX, traits=_TRAITS,
            samples=samples, multi=multi,
        )(function)  # fmt: skip

    return add_row


def _infer_all_reduced(*types: TensorType, how: str, **_: object) -> tuple[TensorType, ...]:
    if not types:
        raise ShapeError("there is nothing to reduce")
    if how not in ("sum", "mean", "prod", "max", "min"):
        raise ArgumentError(f"how must be 'sum', 'mean', 'prod', 'max' or 'min', not {how!r}")
    return types


def _eager_all_reduced(
    *arrays: np.ndarray, how: str, group: str, parts: int
) -> tuple[np.ndarray, ...]:
    if len(arrays) == 1:
        return (engine.all_reduce(arrays[0], group, how),)
    packed = np.concatenate([a.reshape(-1) for a in arrays])
    ends = np.cumsum([a.size for a in arrays])[:-1]
    found = np.split(engine.all_reduce(packed, group, how), ends)
    return tuple(f.reshape(a.shape) for f, a in zip(found, arrays))


def _vjp_all_reduced(
    g: Sequence[Tensor], y: Sequence[Tensor], *xs: Tensor, how: str, group: str, parts: int
) -> tuple[Tensor, ...]:
    total = F.all_reduced(*g, how="mean" if how == "mean" else "sum", group=group, parts=parts)
    if how in ("sum", "mean"):
        return tuple(total)
    if how == "prod":
        return tuple(t * b / a for t, b, a in zip(total, y, xs))
    return tuple(t * F.cast(F.equal(a, b), t.dtype) for t, b, a in zip(total, y, xs))


@_row(
    _infer_all_reduced, _eager_all_reduced, _vjp_all_reduced, multi=True,
    samples=[
        sample((3, 4), how="sum", **_HERE),
        sample((2,), (3, 1), how="max", **_HERE),
        sample((2, 2), how="mean", **_HERE),
        sample((), how="prod", low=0.5, **_HERE),
        sample((2,), how="median", **_HERE, raises=ArgumentError),
    ],
)  # fmt: skip
def all_reduced(*operands: Tensor, how: str, group: str, parts: int) -> tuple[Tensor, ...]:
    r"""Reductions over processes: every one gets :math:`y = \sum_r x_r`; several tensors travel
    together.

    Args:
        *operands: Tensors of one dtype.
        how: ``"sum"``, ``"mean"``, ``"prod"``, ``"max"`` or ``"min"``.
        group: The processes.
        parts: How many they are.

    Returns:
        One tensor per operand, of its shape.

    Raises:
        ArgumentError: if ``how`` is none of those, or the group has another size.
    """
    ...


@_row(
    lambda t, *, axis, parts, **_: _times(t, axis, parts),
    lambda x, *, axis, group, parts: _glue(engine.all_gather(x, group), axis),
    lambda g, y, x, axis, group, parts: (
        F.reduce_scattered(g, axis=axis, how="sum", group=group, parts=parts),
    ),
    samples=[sample((3, 4), axis=1, **_HERE), sample((2,), axis=0, **_HERE)],
)  # fmt: skip
def all_gathered(input: Tensor, axis: int, group: str, parts: int) -> Tensor:
    """Concatenates the tensors of all processes along an axis.

    Args:
        input: Tensor of the same shape everywhere.
        axis: The axis.
        group: The processes.
        parts: How many they are.

    Returns:
        Tensor whose ``axis`` is ``parts`` times as long.

    Raises:
        ArgumentError: if the group has another size.
    """
    ...


def _infer_divided(t: TensorType, *, axis: int, parts: int, **_: object) -> TensorType:
    return _divided(t, axis, parts)


def _vjp_scattered(
    g: Tensor, y: Tensor, x: Tensor, *, axis: int, how: str, group: str, parts: int
) -> tuple[Tensor]:
    found = F.all_gathered(g, axis=axis, group=group, parts=parts)
    if how in ("sum", "mean"):
        return (found if how == "sum" else found / parts,)
    whole = F.all_gathered(y, axis=axis, group=group, parts=parts)
    if how == "prod":
        return (found * whole / x,)
    return (found * F.cast(F.equal(x, whole), g.dtype),)


@_row(
    _infer_divided,
    lambda x, *, axis, how, group, parts: engine.reduce_scatter(_cut(x, axis, parts), group, how),
    _vjp_scattered,
    samples=[
        sample((3, 4), axis=1, how="sum", **_HERE),
        sample((2,), axis=0, how="max", **_HERE),
        sample((3, 4), axis=0, how="sum", group="world", parts=2, raises=ShapeError),
    ],
)  # fmt: skip
def reduce_scattered(input: Tensor, axis: int, how: str, group: str, parts: int) -> Tensor:
    """Reduces tensors over processes, of which each gets its part along an axis.

    Args:
        input: Tensor of the same shape everywhere.
        axis: The axis, whose length is a multiple of ``parts``.
        how: As in :func:`all_reduced`.
        group: The processes.
        parts: How many they are.

    Returns:
        Tensor whose ``axis`` is shorter by the factor ``parts``.

    Raises:
        ShapeError: if the axis cannot be cut into equal parts.
    """
    ...


@_row(
    _infer_divided,
    lambda x, *, axis, group, parts: _cut(x, axis, parts)[engine.get_group(group).rank],
    Reason("programs are differentiated before they are split"),
    samples=[sample((3, 4), axis=1, **_HERE), sample((2,), axis=0, **_HERE)],
)  # fmt: skip
def own_part(input: Tensor, axis: int, group: str, parts: int) -> Tensor:
    """Takes this process's part of a tensor that all have.

    Args:
        input: Tensor, the same everywhere.
        axis: The axis along which it is cut.
        group: The processes.
        parts: How many they are.

    Returns:
        Tensor whose ``axis`` is shorter by the factor ``parts``.

    Raises:
        ShapeError: if the axis cannot be cut into equal parts.
    """
    ...


@_row(
    lambda t, *, split, concat, parts, **_: _times(_divided(t, split, parts), concat, parts),
    lambda x, *, split, concat, group, parts: _glue(
        engine.all_to_all(_cut(x, split, parts), group), concat
    ),
    lambda g, y, x, split, concat, group, parts: (
        F.parts_exchanged(g, split=concat, concat=split, group=group, parts=parts),
    ),
    samples=[sample((3, 4), split=0, concat=1, **_HERE), sample((2,), split=0, concat=0, **_HERE)],
)  # fmt: skip
def parts_exchanged(input: Tensor, split: int, concat: int, group: str, parts: int) -> Tensor:
    """Sends every process its part along one axis; what comes is concatenated along another.

    Args:
        input: Tensor of the same shape everywhere.
        split: The axis that is cut.
        concat: The axis that grows.
        group: The processes.
        parts: How many they are.

    Returns:
        Tensor of as many elements.

    Raises:
        ShapeError: if the axis cannot be cut into equal parts.
    """
    ...


def _vjp_sent(
    g: Tensor, y: Tensor, x: Tensor, *, root: int, group: str, parts: int
) -> tuple[Tensor]:
    (total,) = F.all_reduced(g, how="sum", group=group, parts=parts)
    rows = [total if i == root else F.zeros_like(total) for i in range(parts)]
    return (F.reshape(F.own_part(F.stack(rows), axis=0, group=group, parts=parts), x.shape),)


@_row(
    lambda t, **_: t, lambda x, *, root, group, parts: engine.broadcast(x, group, root), _vjp_sent,
    samples=[sample((3, 4), root=0, **_HERE), sample((), root=0, **_HERE)],
)  # fmt: skip
def root_sent(input: Tensor, root: int, group: str, parts: int) -> Tensor:
    """Gives every process the tensor of one of them.

    Args:
        input: Tensor of the same shape everywhere.
        root: Whose elements all get.
        group: The processes.
        parts: How many they are.

    Returns:
        Tensor of this shape.

    Raises:
        ArgumentError: if the group has another size.
    """
    ...


Shapes = tuple[tuple[int, ...], ...]
Ranks = tuple[int, ...]


def _infer_swapped(
    *types: TensorType, send: Ranks, receive: Ranks, shapes: Shapes, **_: object
) -> tuple[TensorType, ...]:
    if len(types) != len(send) or len(shapes) != len(receive) or not types:
        raise ShapeError(
            f"{len(types)} tensors for {len(send)} receivers, {len(shapes)} shapes for "
            f"{len(receive)} senders"
        )
    return tuple(types[0].with_shape(s) for s in shapes)


def _eager_swapped(
    *arrays: np.ndarray, send: Ranks, receive: Ranks, shapes: Shapes, group: str, parts: int
) -> tuple[np.ndarray, ...]:
    found = tuple(np.empty(s, arrays[0].dtype) for s in shapes)
    engine.exchange(list(zip(send, arrays)), list(zip(receive, found)), group)
    return found


def _vjp_swapped(
    g: Sequence[Tensor], y: object, *xs: Tensor, send: Ranks, receive: Ranks, shapes: Shapes,
    group: str, parts: int,
) -> tuple[Tensor, ...]:  # fmt: skip
    back = tuple(x.shape for x in xs)
    return F.neighbors_exchanged(
        *g, send=receive, receive=send, shapes=back, group=group, parts=parts
    )


@_row(
    _infer_swapped, _eager_swapped, _vjp_swapped, multi=True,
    samples=[
        sample((3, 4), send=(0,), receive=(0,), shapes=((3, 4),), **_HERE),
        sample((3,), send=(0, 0), receive=(0,), shapes=((3,),), **_HERE, raises=ShapeError),
    ],
)  # fmt: skip
def neighbors_exchanged(
    *operands: Tensor, send: Ranks, receive: Ranks, shapes: Shapes, group: str, parts: int
) -> tuple[Tensor, ...]:
    """Sends tensors to some processes while receiving from some.

    Args:
        *operands: What is sent; one dtype.
        send: Who gets every operand.
        receive: Who sends every result.
        shapes: Shapes of the results.
        group: The processes.
        parts: How many they are.

    Returns:
        What came, a tuple.

    Raises:
        ShapeError: if there are not as many tensors and shapes as processes.
    """
    ...


@primitive(
    infer=rules.elementwise(), traits=replace(ELEMENTWISE, places=True, alias=True),
    eager=lambda x, layout: x, lower=lambda R, x, layout: x,
    vjp=lambda g, y, x, layout: (F.placed_as(g, layout=layout),),
    onnx=lambda O, x, layout: O.Identity(x),
    samples=[sample((3, 4), layout="a=2,b=2: a ."), sample((), layout="a=2:")],
)  # fmt: skip
def placed_as(input: Tensor, layout: str) -> Tensor:
    """Asks that a tensor be split among processes in a certain way; elements stay as they are.

    Args:
        input: Tensor.
        layout: Text of a :class:`tvmgraph.distributed.Layout`.

    Returns:
        The tensor.
    """
    ...
