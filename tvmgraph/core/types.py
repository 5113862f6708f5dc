"""Tensor types: a shape and a dtype, interned so that equality is identity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.limits import Symbol
from tvmgraph.core.sizes import Dim
from tvmgraph.core.state import state
from tvmgraph.core.symbols import needed, scope, text_of
from tvmgraph.dtypes import DType
from tvmgraph.errors import ArgumentError, ShapeError

Shape = tuple[int | Dim, ...]
ANY_RANK = Dim("any_rank")  # stands alone for axes of any number


class TensorType:
    """Shape and dtype of a tensor; build it with :func:`tensor_type`.

    Attributes:
        shape: One entry per axis: an ``int``, or a :class:`Dim` when symbolic.
        dtype: The element type.
        device: Where the elements live, such as ``"cpu"``.
        is_static: Whether every dimension is an integer.
    """

    __slots__ = ("__weakref__", "_size", "device", "dtype", "is_static", "shape")

    def __init__(self, shape: Shape, dtype: DType, device: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device
        sizes = [d for d in shape if isinstance(d, int)]
        self.is_static = len(sizes) == len(shape)
        self._size = math.prod(sizes) if self.is_static else None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements.

        Raises:
            ShapeError: if a dimension is symbolic.
        """
        return math.prod(self.static_shape) if self._size is None else self._size

    @property
    def roots(self) -> frozenset[str]:
        """Names of the sizes that its shape depends on."""
        return frozenset[str]().union(*[d.roots for d in self.shape if isinstance(d, Dim)])

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as integers.

        Raises:
            ShapeError: if a dimension is symbolic.
        """
        if not self.is_static:
            if scope() is not None:  # captured once more, for this size
                raise needed(self.roots)
            raise ShapeError(f"a static shape is needed, but {self} has a symbolic dimension")
        return self.shape  # pyright: ignore[reportReturnType]

    def with_dtype(self, dtype: DType) -> TensorType:
        """Returns the same shape with another dtype.

        Args:
            dtype: dtype of the result.
        """
        return tensor_type(self.shape, dtype, self.device)

    def with_shape(self, shape: Iterable[int | Dim]) -> TensorType:
        """Returns the same dtype with another shape.

        Args:
            shape: Shape of the result.
        """
        return tensor_type(tuple(shape), self.dtype, self.device)

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(text_of, self.shape))}]"

    def __reduce__(self) -> tuple[object, ...]:
        return (tensor_type, (self.shape, self.dtype, self.device))


# by the text of symbolic sizes: while a function is captured they cannot be keys
_INTERNED: dict[tuple[tuple[object, ...], DType | np.dtype, str], TensorType] = {}


def tensor_type(shape: Iterable[int | Dim], dtype: DTypeLike, device: str = "cpu") -> TensorType:
    """Returns the one :class:`TensorType` of this shape, dtype and device.

    Args:
        shape: Sizes of the axes, outermost first.
        dtype: dtype of the elements.
        device: ``"cpu"``, or a GPU's name.
    """
    if shape.__class__ is tuple and state.interpreter is None:  # nearly always known
        found = _INTERNED.get((shape, dtype, device))  # pyright: ignore[reportArgumentType]
        if found is not None:
            return found
    asked = dtype
    shape = tuple([d if d.__class__ is int or isinstance(d, Dim) else int(d) for d in shape])
    dtype = dtypes.dtype_of(dtype)
    sizes = tuple([d if isinstance(d, int) else d.text for d in shape])
    key = (sizes, dtype, device)
    found = _INTERNED.get(key)
    if found is None:
        # setdefault is atomic, so two threads agree on one object
        found = _INTERNED.setdefault(key, TensorType(shape, dtype, device))
    if isinstance(asked, np.dtype) and found.is_static:  # of an array: found at once next time
        _INTERNED[sizes, asked, device] = found
    return found


def placeholder_size(d: Any, axis: int) -> int | Dim:
    """Returns the size of an axis of a placeholder.

    Args:
        d: ``None`` or -1 for any, a name, a :class:`tvmgraph.Symbol`, or an int.
        axis: Number of the axis.

    Raises:
        ArgumentError: for a negative size, or text that is no name.
    """
    if d is None or (d.__class__ is int and d == -1):
        return Dim(f"any_{axis}")
    if isinstance(d, Symbol):
        return Dim(d.name_at(axis))
    if isinstance(d, str):
        if not d.isidentifier():
            raise ArgumentError(f"{d!r} is no name of an axis", op="Tensor")
        return Dim(d)
    if isinstance(d, Dim):
        return d
    if d.__index__() < 0:
        raise ArgumentError(f"shape holds the negative size {d}", op="Tensor")
    return d.__index__()
