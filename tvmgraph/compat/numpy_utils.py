"""MindSpore's ``numpy.utils`` and ``numpy.utils_const``, of which zoos take helpers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tvmgraph.core.op import F
from tvmgraph.core.rules import broadcast_shapes
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Shape
from tvmgraph.dtypes import DType, promote
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.numpy.helpers import array_of, axis_of


def _to_tensor(*args: object) -> Tensor | tuple[Tensor, ...]:
    """Returns tensors of what is given: integers become int32, fractions float32.

    Args:
        *args: Tensors, numbers, or (nested) lists of numbers.
    """
    made = tuple(array_of(a) for a in args)
    return made[0] if len(made) == 1 else made


def _broadcast_to_shape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Returns a tensor grown to a shape.

    Args:
        x: The tensor.
        shape: The shape.
    """
    return F.broadcast_to(x, tuple(shape))


def _expand(x: Tensor, ndim: int, axis: int = 0) -> Tensor:
    """Returns a tensor with axes of size one inserted until it has a number of them.

    Args:
        x: The tensor.
        ndim: How many axes it shall have.
        axis: Where they are inserted.
    """
    while x.ndim < ndim:
        x = F.expand_dims(x, axis)
    return x


def _canonicalize_axis(axis: int | Sequence[int], ndim: int) -> int | tuple[int, ...]:
    """Returns axes counted from the first one.

    Args:
        axis: One or several, of which negative ones count from the last axis.
        ndim: How many axes there are.
    """
    if isinstance(axis, int):
        return axis_of(axis, ndim)
    return tuple(axis_of(a, ndim) for a in axis)


def _infer_out_shape(*shapes: Sequence[int]) -> Shape:
    """Returns the shape that tensors of some shapes broadcast to.

    Args:
        *shapes: The shapes.
    """
    return broadcast_shapes(*(tuple(s) for s in shapes))


def _promote(dtype1: DType, dtype2: DType) -> DType:
    """Returns the dtype of an operation on two dtypes.

    Args:
        dtype1, dtype2: The dtypes.
    """
    return promote(dtype1, dtype2)


def _raise_type_error(info: str, param: object = None) -> NoReturn:
    raise DTypeError(info if param is None else f"{info}{param}")


def _raise_value_error(info: str, param: object = None) -> NoReturn:
    raise ArgumentError(info if param is None else f"{info}{param}")
