"""Tensor types: a shape and a dtype, interned so that equality is identity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from tvmgraph import dtypes
from tvmgraph.dtypes import DType
from tvmgraph.errors import ShapeError


class Dim:
    """A named symbolic dimension; two dims with the same name are the same dim.

    A dim is no integer on purpose: arithmetic on it must be asked of the shape rules, so that a
    value seen while capturing can never be baked into a graph by accident.
    """

    __slots__ = ("name",)
    _interned: ClassVar[dict[str, Dim]] = {}

    def __new__(cls, name: str) -> Dim:
        found = cls._interned.get(name)
        if found is None:
            found = super().__new__(cls)
            found.name = name
            cls._interned[name] = found
        return found

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return (Dim, (self.name,))


Shape = tuple[int | Dim, ...]


class TensorType:
    """Shape and dtype of a tensor; build it with :func:`tensor_type`.

    Attributes:
        shape: One entry per axis: an ``int``, or a :class:`Dim` when symbolic.
        dtype: The element type.
        device: Where the elements live, such as ``"cpu"``.
    """

    __slots__ = ("__weakref__", "device", "dtype", "shape")

    def __init__(self, shape: Shape, dtype: DType, device: str) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every dimension is an integer."""
        return all(isinstance(d, int) for d in self.shape)

    @property
    def size(self) -> int:
        """Number of elements.

        Raises:
            ShapeError: if a dimension is symbolic.
        """
        return math.prod(self.static_shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as integers.

        Raises:
            ShapeError: if a dimension is symbolic.
        """
        for d in self.shape:
            if isinstance(d, Dim):
                raise ShapeError(f"a static shape is needed, but {self} has a symbolic dimension")
        return self.shape  # pyright: ignore[reportReturnType]

    def with_dtype(self, dtype: DType) -> TensorType:
        """Returns the same shape with another dtype."""
        return tensor_type(self.shape, dtype, self.device)

    def with_shape(self, shape: Iterable[int | Dim]) -> TensorType:
        """Returns the same dtype with another shape."""
        return tensor_type(tuple(shape), self.dtype, self.device)

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __reduce__(self) -> tuple[object, ...]:
        return (tensor_type, (self.shape, self.dtype, self.device))


_INTERNED: dict[tuple[Shape, DType, str], TensorType] = {}


def tensor_type(shape: Iterable[int | Dim], dtype: Any, device: str = "cpu") -> TensorType:
    """Returns the one :class:`TensorType` of this shape, dtype and device."""
    shape = tuple(d if isinstance(d, Dim) else int(d) for d in shape)
    key = (shape, dtypes.dtype_of(dtype), device)
    found = _INTERNED.get(key)
    if found is None:
        # setdefault is atomic, so two threads agree on one object
        found = _INTERNED.setdefault(key, TensorType(*key))
    return found
