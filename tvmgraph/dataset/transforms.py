"""Transforms of any column: conversion, one-hot, composition."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from types import EllipsisType, ModuleType
from typing import TypeVar

import numpy as np

from tvmgraph import dtypes
from tvmgraph.compat.paths import look
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.shown import Shown
from tvmgraph.core.tensor import Tensor
from tvmgraph.dataset.checks import of_one_value as _of_one_value
from tvmgraph.dataset.config import generator
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject

T = TypeVar("T")

__path__: list[str] = []  # a package in MindSpore


def as_array(value: object) -> np.ndarray:
    """Returns a Tensor, image or number as an array.

    Args:
        value: A Tensor, image of Pillow, array or number.
    """
    return value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)


class TypeCast:
    """Converts to another dtype.

    Args:
        data_type: A dtype of this package or of NumPy.

    Example:
        >>> transforms.TypeCast(ms.int32)(np.array([1.7]))
        array([1], dtype=int32)
    """

    def __init__(self, data_type: object) -> None:
        self.data_type = dtypes.dtype_of(data_type).numpy

    def __call__(self, value: object) -> np.ndarray:
        return as_array(value).astype(self.data_type)


class OneHot:
    """Turns class numbers into rows with a one: :math:`(n) \\to (n, classes)`.

    Axes of one label are left out, so that :math:`(n, 1)` is :math:`(n)`. The dtype stays; with a
    smoothing rate it is float64.

    Args:
        num_classes: Number of classes.
        smoothing_rate: Share taken from the one and spread over all classes.

    Raises:
        ArgumentError: if an argument is outside its range, or (when called) a label is.

    Example:
        >>> transforms.OneHot(3)(np.array(1, np.int32))
        array([0, 1, 0], dtype=int32)
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        if num_classes < 1 or not 0 <= smoothing_rate <= 1:
            reject(
                ArgumentError,
                "OneHot",
                f"num_classes={num_classes}, smoothing_rate={smoothing_rate} is out of range",
            )
        self.num_classes = num_classes
        self.smoothing_rate = smoothing_rate

    def __call__(self, value: object) -> np.ndarray:
        label = as_array(value)
        shape = label.shape
        label = label.squeeze()
        if label.ndim > 1:
            reject(
                ShapeError,
                "OneHot",
                f"labels of shape {shape} are more than one row",
            )
        if label.dtype.kind not in "iu":
            reject(
                either(DTypeError, RuntimeError),
                "OneHot",
                f"labels must be integers, not {label.dtype}",
            )
        if label.size and (label.min() < 0 or label.max() >= self.num_classes):
            reject(either(ArgumentError, RuntimeError), "OneHot",
                   f"a label is outside the {self.num_classes} classes: "
                   f"{label.min()} to {label.max()}")  # fmt: skip
        found = np.eye(self.num_classes, dtype=label.dtype)[label]
        if not self.smoothing_rate:
            return found
        return found * (1 - self.smoothing_rate) + self.smoothing_rate / self.num_classes


def _apply(operation: Callable[..., object], values: tuple[object, ...]) -> tuple[object, ...]:
    result = operation(*values)
    if isinstance(result, tuple):
        return result
    return (np.asarray(result) if isinstance(result, list) else result,)  # a list is one value


#: Transforms that MindSpore runs in Python, whatever they are given.
IN_PYTHON = frozenset(
    {
        "FiveCrop", "Grayscale", "HsvToRgb", "LinearTransformation", "MixUp", "RandomErasing",
        "RandomGrayscale", "RandomOrder", "RandomPerspective", "RgbToHsv", "TenCrop", "ToPIL",
    }
)  # fmt: skip


def in_python(operation: object) -> bool:
    """Returns whether MindSpore runs a transform in Python.

    Args:
        operation: A transform or a function.
    """
    name = type(operation).__name__
    if isinstance(operation, Compose) and name not in IN_PYTHON:
        return (any if name == "Compose" else all)(map(in_python, operation.transforms))
    return name in IN_PYTHON or getattr(operation, "to_pil", False) is True


def _of_pillow(value: object) -> bool:
    return type(value).__module__.startswith("PIL.")


def operations_of(op: str, operations: Iterable[object]) -> list[Callable[..., object]]:
    """Returns what can be called with a value of a row.

    Args:
        op: Name of what calls them.
        operations: Functions and transforms.

    Raises:
        DTypeError: if one cannot be called, or is a transform without its parentheses.
    """
    found = []
    for operation in operations:
        if not callable(operation):
            reject(either(DTypeError, ValueError), op,
                   f"an operation must be callable, not {type(operation).__name__}")  # fmt: skip
        if isinstance(operation, type) and operation.__module__.startswith("tvmgraph.dataset"):
            reject(either(DTypeError, ValueError), op,
                   f"{operation.__name__} is the class of a transform",
                   fix=f"write {operation.__name__}(...)")  # fmt: skip
        found.append(operation)
    return found


class Compose(Shown):
    """Applies transforms one after the other.

    As in MindSpore, a call outside of a pipeline returns a tuple, also of one value, where it is
    given an image of Pillow or one of the transforms works in Python (``ToPIL``, ``Grayscale``).

    Args:
        transforms: The transforms.

    Raises:
        DTypeError: if one cannot be called.

    Example:
        >>> transforms.Compose([np.abs, transforms.TypeCast(ms.int32)])(np.array([-1.5]))
        array([1], dtype=int32)
    """

    def __init__(self, transforms: Sequence[Callable[..., object]]) -> None:
        if not transforms:
            reject(ArgumentError, "Compose", "there is no transform")
        self.transforms = operations_of(type(self).__name__, transforms)

    def __call__(self, *values: object) -> object:
        if any(map(_of_pillow, values)) or any(map(in_python, self.transforms)):
            return self._applied(values)
        for t in self.transforms:  # what functions make of arrays are arrays again
            values = tuple(np.asarray(v) if _of_pillow(v) else v for v in _apply(t, values))
        return values[0] if len(values) == 1 else values

    def _applied(self, values: tuple[object, ...]) -> tuple[object, ...]:
        for t in self.transforms:
            values = _apply(t, values)
        return values


class RandomApply(Compose):
    """Applies all transforms with a probability, or none.

    Args:
        transforms: The transforms.
        prob: The probability.

    Example:
        >>> transforms.RandomApply([np.negative], prob=1.0)(np.array([1]))
        array([-1])
    """

    def __init__(self, transforms: Sequence[Callable[..., object]], prob: float = 0.5) -> None:
        super().__init__(transforms)
        if not 0 <= prob <= 1:
            reject(ArgumentError, "RandomApply", f"prob must be in [0, 1], not {prob}")
        self.prob = prob

    def __call__(self, *values: object) -> object:
        if generator().random() < self.prob:
            values = self._applied(values)
        return values[0] if len(values) == 1 else values


class RandomChoice(Compose):
    """Applies one of several transforms.

    Args:
        transforms: The transforms.

    Example:
        >>> transforms.RandomChoice([np.negative])(np.array([1]))
        array([-1])
    """

    def __call__(self, *values: object) -> object:
        values = _apply(self.transforms[int(generator().integers(len(self.transforms)))], values)
        return values[0] if len(values) == 1 else values


class Duplicate:
    """Returns a value twice.

    Example:
        >>> transforms.Duplicate()(1)
        (1, 1)
    """

    def __call__(self, value: T) -> tuple[T, T]:
        return value, value


class Fill:
    """Replaces every element by one number.

    Args:
        fill_value: The number.

    Example:
        >>> transforms.Fill(7)(np.array([1, 2]))
        array([7, 7])
    """

    def __init__(self, fill_value: object) -> None:
        self.fill_value = fill_value

    def __call__(self, value: object) -> np.ndarray:
        array = as_array(value)
        if (array.dtype.kind in "US") != isinstance(self.fill_value, (str, bytes)):
            reject(either(ArgumentError, RuntimeError), "Fill",
                   f"{self.fill_value!r} does not fit elements of {array.dtype}")  # fmt: skip
        return np.full_like(array, self.fill_value)


class RandomOrder(Compose):
    """Applies all transforms in random order.

    Args:
        transforms: The transforms.

    Example:
        >>> transforms.RandomOrder([np.negative, np.abs])(np.array([0]))
        array([0])
    """

    def __call__(self, *values: object) -> object:
        for i in generator().permutation(len(self.transforms)):
            values = _apply(self.transforms[i], values)
        return values[0] if len(values) == 1 else values


class Concatenate:
    """Puts arrays of one axis before and behind an array.

    Args:
        axis: The axis along which they are joined, 0 or -1.
        prepend: What comes before.
        append: What comes behind.

    Raises:
        ArgumentError: for another axis.
        ShapeError: for arrays with more axes.
        DTypeError: when called, if the dtypes differ.

    Example:
        >>> transforms.Concatenate(append=np.array([3]))(np.array([1, 2]))
        array([1, 2, 3])
    """

    def __init__(self, axis: int = 0, prepend: object = None, append: object = None) -> None:
        if axis not in (0, -1):
            reject(ArgumentError, "Concatenate", f"axis must be 0 or -1, not {axis}")
        for name, part in (("prepend", prepend), ("append", append)):
            if part is not None and as_array(part).ndim != 1:
                reject(ShapeError, "Concatenate", f"{name} must have one axis")
        self.axis, self.prepend, self.append = axis, prepend, append

    def __call__(self, *values: object) -> np.ndarray:
        found = [self.prepend, *values, self.append]
        parts = [as_array(v) for v in found if v is not None]
        if any(p.ndim != 1 for p in parts):
            reject(ShapeError, "Concatenate", "arrays must have one axis")
        if len({p.dtype if p.dtype.kind not in "US" else "text" for p in parts}) > 1:
            reject(either(DTypeError, RuntimeError), "Concatenate",
                   f"dtypes differ: {', '.join(str(p.dtype) for p in parts)}")  # fmt: skip
        return np.concatenate(parts, self.axis)


class Relational(enum.IntEnum):
    """How :class:`Mask` compares."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class Mask:
    """Compares every element with a constant.

    Args:
        operator: A member of :class:`Relational`.
        constant: What the elements are compared with.
        dtype: dtype of the result.

    Example:
        >>> transforms.Mask(transforms.Relational.GE, 2)(np.array([1, 2]))
        array([False,  True])
    """

    def __init__(
        self, operator: Relational, constant: object, dtype: DTypeLike = dtypes.bool_
    ) -> None:
        names = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
        self.compare, self.constant = getattr(np, names[Relational(operator)]), constant
        self.dtype = dtypes.dtype_of(dtype).numpy

    def __call__(self, value: object) -> np.ndarray:
        return self.compare(as_array(value), self.constant).astype(self.dtype)


class PadEnd:
    """Cuts or pads the end of every axis to a shape; a single value stays as it is.

    Args:
        pad_shape: The shape; axes of None stay.
        pad_value: What is put there; 0 or the empty text by default.

    Raises:
        DTypeError: if the shape is no list of ints and None.
        ShapeError: when called, if the number of axes differs.

    Example:
        >>> transforms.PadEnd([3], 9)(np.array([1, 2]))
        array([1, 2, 9])
    """

    def __init__(self, pad_shape: Sequence[int | None], pad_value: object = None) -> None:
        if not isinstance(pad_shape, (list, tuple)) or not all(
            s is None or isinstance(s, (int, np.integer)) for s in pad_shape
        ):
            reject(DTypeError, "PadEnd", f"pad_shape is a list of ints and None, not {pad_shape!r}")
        self.pad_shape, self.pad_value = list(pad_shape), pad_value

    def __call__(self, value: object) -> np.ndarray:
        array = as_array(value)
        if not array.ndim:
            return array  # no axis to pad
        if array.ndim != len(self.pad_shape):
            reject(ShapeError, "PadEnd",
                   f"an array of shape {array.shape} for {self.pad_shape}")  # fmt: skip
        shape = [n if s is None else s for n, s in zip(array.shape, self.pad_shape)]
        kept = tuple(slice(min(n, s)) for n, s in zip(array.shape, shape))
        text = array.dtype.kind in "US"
        if text != isinstance(self.pad_value, (str, bytes)) and self.pad_value is not None:
            reject(either(ArgumentError, RuntimeError), "PadEnd",
                   f"{self.pad_value!r} does not fit elements of {array.dtype}")  # fmt: skip
        fill = self.pad_value if self.pad_value is not None else array.dtype.type()
        dtype = np.result_type(array, np.asarray(fill)) if text else array.dtype
        found = np.full(shape, fill, dtype)
        found[kept] = array[kept]
        return found


class Slice:
    """Takes parts of an array.

    Args:
        slices: One per axis: a number, a list of numbers, a slice, or None or ``...`` for all.

    Example:
        >>> transforms.Slice(slice(1, 3))(np.array([1, 2, 3]))
        array([2, 3])
    """

    def __init__(self, *slices: int | Iterable[int] | slice | EllipsisType | None) -> None:
        for part in slices:
            if isinstance(part, (str, bytes, float)):
                reject(DTypeError, "Slice", f"{part!r} takes no part of an axis")
        self.slices = [slice(s, s + 1 or None) if isinstance(s, int) else s for s in slices]

    def __call__(self, value: object) -> np.ndarray:
        found = as_array(value)
        for axis, part in enumerate(self.slices):
            if part is not None and part is not ...:
                where = part if isinstance(part, slice) else list(part)
                found = found[(slice(None),) * axis + (where,)]
        return found


class Unique:
    """Returns the different elements, where each one is among them, and how often it comes.

    Example:
        >>> transforms.Unique()(np.array([3, 1, 3], np.int32))
        (array([3, 1], dtype=int32), array([0, 1, 0], dtype=int32), array([2, 1], dtype=int32))
    """

    def __call__(self, value: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        array = as_array(value).reshape(-1)
        found, first, where, count = np.unique(
            array, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rank = np.argsort(order).astype(np.int32)
        return found[order], rank[where.reshape(-1)], count[order].astype(np.int32)


class PyTensorOperation:
    """What transforms of one's own derive from in MindSpore programs; any function is one, too.

    A class with ``_execute_py`` is called by it; others have a ``__call__`` of their own.
    """

    def __call__(self, *inputs: object) -> object:
        return self._execute_py(*inputs)  # pyright: ignore[reportAttributeAccessIssue]


TensorOperation = PyTensorOperation


def not_random(function: object) -> object:
    """Returns a function as it is; MindSpore wants to be told which ones are not random.

    Args:
        function: The function.
    """
    return function


def __getattr__(name: str) -> ModuleType:
    return look(__name__, name, __all__)


__all__ = [
    "Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd", "RandomApply",
    "RandomChoice", "RandomOrder", "Relational", "Slice", "TypeCast", "Unique", "not_random",
]  # fmt: skip

_of_one_value(globals())
_guard_module(globals(), "dataset.transforms")


def __dir__() -> list[str]:
    return list(__all__)
