"""Transforms of any column: conversion, one-hot, composition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.compat.paths import look
from tvmgraph.core.tensor import Tensor
from tvmgraph.dataset.base import reject
from tvmgraph.dataset.config import generator
from tvmgraph.errors import ArgumentError, DTypeError


def as_array(value: Any) -> np.ndarray:
    """Returns a Tensor, image or number as an array."""
    return value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)


class TypeCast:
    """Converts to another dtype.

    Args:
        output_type: A dtype of this package or of NumPy.

    Example:
        >>> transforms.TypeCast(ms.int32)(np.array([1.7]))
        array([1], dtype=int32)
    """

    def __init__(self, output_type: Any) -> None:
        self.output_type = dtypes.dtype_of(output_type).numpy

    def __call__(self, value: Any) -> np.ndarray:
        return as_array(value).astype(self.output_type)


class OneHot:
    """Turns class numbers into rows with a one: :math:`(...) \\to (..., classes)`.

    Args:
        num_classes: Number of classes.
        smoothing_rate: Share taken from the one and spread over all classes.

    Raises:
        ArgumentError: if an argument is outside its range, or (when called) a label is.

    Example:
        >>> transforms.OneHot(3)(np.array(1))
        array([0., 1., 0.], dtype=float32)
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

    def __call__(self, value: Any) -> np.ndarray:
        label = as_array(value).astype(np.int64)
        if label.size and (label.min() < 0 or label.max() >= self.num_classes):
            reject(ArgumentError, "OneHot",
                   f"a label is outside the {self.num_classes} classes: "
                   f"{label.min()} to {label.max()}")  # fmt: skip
        found = np.eye(self.num_classes, dtype=np.float32)[label]
        return (found * (1 - self.smoothing_rate) + self.smoothing_rate / self.num_classes).astype(
            np.float32
        )


def _apply(operation: Callable[..., Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    result = operation(*values)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


class Compose:
    """Applies transforms one after the other.

    Args:
        transforms: The transforms.

    Raises:
        DTypeError: if one cannot be called.

    Example:
        >>> transforms.Compose([np.abs, transforms.TypeCast(ms.int32)])(np.array([-1.5]))
        array([1], dtype=int32)
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        for t in transforms:
            if not callable(t):
                reject(DTypeError, "Compose", f"a transform must be callable, not {t!r}")
        self.transforms = list(transforms)

    def __call__(self, *values: Any) -> Any:
        for t in self.transforms:
            values = _apply(t, values)
        return values[0] if len(values) == 1 else values


class RandomApply(Compose):
    """Applies all transforms with a probability, or none.

    Args:
        transforms: The transforms.
        prob: The probability.

    Example:
        >>> transforms.RandomApply([np.negative], prob=1.0)(np.array([1]))
        array([-1])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], prob: float = 0.5) -> None:
        super().__init__(transforms)
        self.prob = prob

    def __call__(self, *values: Any) -> Any:
        if generator().random() < self.prob:
            return super().__call__(*values)
        return values[0] if len(values) == 1 else values


class RandomChoice(Compose):
    """Applies one of several transforms.

    Args:
        transforms: The transforms.

    Example:
        >>> transforms.RandomChoice([np.negative])(np.array([1]))
        array([-1])
    """

    def __call__(self, *values: Any) -> Any:
        values = _apply(self.transforms[int(generator().integers(len(self.transforms)))], values)
        return values[0] if len(values) == 1 else values


class Duplicate:
    """Returns a value twice.

    Example:
        >>> transforms.Duplicate()(1)
        (1, 1)
    """

    def __call__(self, value: Any) -> tuple[Any, Any]:
        return value, value


class Fill:
    """Replaces every element by one number.

    Args:
        fill_value: The number.

    Example:
        >>> transforms.Fill(7)(np.array([1, 2]))
        array([7, 7])
    """

    def __init__(self, fill_value: Any) -> None:
        self.fill_value = fill_value

    def __call__(self, value: Any) -> np.ndarray:
        return np.full_like(as_array(value), self.fill_value)


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "Compose", "Duplicate", "Fill", "OneHot", "RandomApply", "RandomChoice", "TypeCast",
]  # fmt: skip
