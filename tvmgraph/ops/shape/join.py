"""Joining tensors: concat, stack and their relatives."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.symbols import being_sizes
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Layout, Pattern, along_axis
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from tvmgraph.ops.common.arguments import bad, describe, named, wrap_axis
from tvmgraph.ops.shape.rows import shape_text

__all__ = [
    "cat", "column_stack", "concat", "dstack", "hstack", "row_stack", "stack", "vstack",
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
        raise bad(ArgumentError, f"{name} is empty", op, f"{name}={tensors!r}")
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
