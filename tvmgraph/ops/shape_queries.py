"""Python-level questions about a tensor's type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError
from tvmgraph.ops._arguments import bad

__all__ = ["dyn_shape", "numel", "rank", "shape", "shape_", "size", "type_as"]


def _tensor(value: Any, op: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise bad(DTypeError, f"the argument must be a Tensor, not {type(value).__name__}", op,
                  repr(value)[:80])  # fmt: skip
    return value


def shape(input_x: Tensor) -> tuple[int, ...]:
    """Returns the shape as a tuple of ints.

    Args:
        input_x: Tensor of any shape.

    Returns:
        The size of every axis.

    Example:
        >>> ops.shape(Tensor([[1, 2]]))
        (1, 2)
    """
    return _tensor(input_x, "shape").shape


shape_ = shape


def dyn_shape(input_x: Tensor) -> Tensor:
    """Returns the shape as a tensor.

    Args:
        input_x: Tensor of any shape.

    Returns:
        int64 tensor with one element per axis.

    Example:
        >>> ops.dyn_shape(Tensor([[1, 2]]))
    """
    return Tensor(np.array(_tensor(input_x, "dyn_shape").type.static_shape, np.int64))


def rank(input_x: Tensor) -> int:
    """Returns the number of axes.

    Args:
        input_x: Tensor of any shape.

    Returns:
        The number of axes.

    Example:
        >>> ops.rank(Tensor([[1, 2]]))
        2
    """
    return _tensor(input_x, "rank").ndim


def size(input_x: Tensor) -> int:
    """Returns the number of elements.

    Args:
        input_x: Tensor of any shape.

    Returns:
        The number of elements.

    Example:
        >>> ops.size(Tensor([[1, 2]]))
        2
    """
    return _tensor(input_x, "size").size


def numel(input: Tensor) -> int:
    """Returns the number of elements.

    Args:
        input: Tensor of any shape.

    Returns:
        The number of elements.

    Example:
        >>> ops.numel(Tensor([[1, 2]]))
        2
    """
    return _tensor(input, "numel").size


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Converts ``input`` to the dtype of ``other``.

    Args:
        input: Tensor of any shape.
        other: Tensor that gives the dtype.

    Returns:
        Tensor of ``input``'s shape and ``other``'s dtype.

    Example:
        >>> ops.type_as(Tensor([1.5]), Tensor([1]))
    """
    return F.cast(_tensor(input, "type_as"), _tensor(other, "type_as").dtype)
