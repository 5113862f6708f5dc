"""Checks of layer arguments: one-line rules, raised with the layer's name and the user's line."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, no_scalar, reject

if TYPE_CHECKING:
    from tvmgraph.core.tensor import Tensor

Cls = str  # name of the layer that checks


def is_int(value: object) -> bool:
    """Whether ``value`` is an integer (bool excluded).

    Args:
        value: Any object.
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    """Whether ``value`` is a real number (bool excluded).

    Args:
        value: Any object.
    """
    return isinstance(value, (numbers.Real, np.number)) and not isinstance(value, bool)


def integer(op: Cls, name: str, value: Any, low: int | None = None) -> int:
    """Returns an integer that is at least ``low``.

    Args:
        op: Name of the layer, or its class.
        name: Name of the argument.
        value: What was given.
        low: The least integer that is allowed; ``None`` allows all.

    Raises:
        DTypeError: if it is not an integer.
        ArgumentError: if it is smaller than ``low``.
    """
    if not is_int(value):
        reject(no_scalar(value), op, f"{name} must be an int, not {type(value).__name__}",
               f"{name}={value!r}")  # fmt: skip
    if low is not None and value < low:
        reject(ArgumentError, op, f"{name} must be at least {low}, not {value}")
    return int(value)


def positive(op: Cls, name: str, value: object) -> int:
    """Returns a positive integer, or raises as :func:`integer` does.

    Args:
        op: Name of the layer, or its class.
        name: Name of the argument.
        value: What was given.
    """
    return integer(op, name, value, 1)


_MOST_LAYERS = 1 << 12


def layers(op: Cls, name: str, value: Any) -> int:
    """Returns a number of layers.

    Args:
        op: Name of the layer, or its class.
        name: Name of the argument.
        value: What was given.

    Raises:
        DTypeError: if it is not an integer.
        ArgumentError: if it is not positive, or more than any network has.
    """
    if positive(op, name, value) > _MOST_LAYERS:
        reject(ArgumentError, op, f"{name} must be at most {_MOST_LAYERS}, not {value}")
    return int(value)


def real(
    op: Cls, name: str, value: Any, low: float = -np.inf, high: float = np.inf, bounds: str = "[]"
) -> float:
    """Returns a real number in an interval; ``bounds`` says which ends belong to it.

    Args:
        op: Name of the layer, or its class.
        name: Name of the argument.
        value: What was given.
        low: Lower end of the interval.
        high: Upper end of the interval.
        bounds: ``"["`` or ``"("``, then ``"]"`` or ``")"``: which ends belong to it.

    Raises:
        DTypeError: if it is not a number.
        ArgumentError: if it lies outside; for an int it is also a TypeError, which MindSpore
            raises that takes only floats for most of these.
    """
    if not is_real(value):
        reject(no_scalar(value), op, f"{name} must be a number, not {type(value).__name__}",
               f"{name}={value!r}")  # fmt: skip
    above = value >= low if bounds[0] == "[" else value > low
    below = value <= high if bounds[1] == "]" else value < high
    if not (above and below):
        span = f"{bounds[0]}{low:g}, {high:g}{bounds[1]}"
        kind = either(ArgumentError, TypeError) if isinstance(value, int) else ArgumentError
        reject(kind, op, f"{name} must be in {span}, not {value}")
    return value


def boolean(op: Cls, name: str, value: object) -> bool:
    """Returns a bool.

    Args:
        op: Name of the layer, or its class.
        name: Name of the argument.
        value: What was given.

    Raises:
        DTypeError: if it is something else.
    """
    if not isinstance(value, (bool, np.bool_)):
        reject(no_scalar(value), op, f"{name} must be a bool, not {type(value).__name__}",
               f"{name}={value!r}")  # fmt: skip
    return bool(value)


def choice(op: Cls, name: str, value: object, valid: tuple[str, ...]) -> str:
    """Returns one of the valid words.

    Args:
        op: Name of the layer, or its class.
        name: Name of the argument.
        value: What was given.
        valid: The words.

    Raises:
        ArgumentError: if it is none of them.
    """
    if not isinstance(value, str) or value not in valid:
        words = ", ".join(map(repr, valid))
        kind = ArgumentError if isinstance(value, str) else either(ArgumentError, TypeError)
        reject(kind, op, f"{name} must be one of {words}, not {value!r}")
    return value


def int_tuple(op: Cls, name: str, value: object, count: int, low: int = 1) -> tuple[int, ...]:
    """Returns ``count`` integers; one integer is repeated.

    Args:
        op: Name of the layer, or its class.
        name: Name of the argument.
        value: What was given.
        count: How many integers are wanted.
        low: The least integer that is allowed.

    Raises:
        DTypeError: if ``value`` is neither an integer nor a tuple of integers.
        ArgumentError: if there are more or fewer (which is a TypeError, too), or one is smaller
            than ``low``.
    """
    items = (value,) * count if is_int(value) else value
    if not isinstance(items, (tuple, list)):
        kind = type(value).__name__
        reject(no_scalar(value, True), op, f"{name} must be an int or a tuple, not {kind}",
               f"{name}={value!r}")  # fmt: skip
    if len(items) != count:
        reject(either(ArgumentError, TypeError), op,
               f"{name} must have {count} elements, not {len(items)}",
               f"{name}={value!r}")  # fmt: skip
    return tuple(integer(op, name, v, low) for v in items)


def require_axes(op: Cls, x: Tensor, *ranks: int) -> None:
    """Makes sure that an input has one of the allowed numbers of axes.

    Args:
        op: Name of the layer, or its class.
        x: The input.
        *ranks: The allowed numbers of axes, the usual one first.

    Raises:
        ShapeError: if it has another number of axes.
    """
    if x.ndim not in ranks:
        allowed = " or ".join(map(str, ranks))
        reject(ShapeError, op, f"the input must have {allowed} axes, not {x.ndim}", f"x={x.aval}")


def float_dtype(op: Cls, value: object) -> dtypes.DType:
    """Returns the dtype of a layer's parameters.

    Args:
        op: Name of the layer, or its class.
        value: A dtype or its name.

    Raises:
        DTypeError: if it is not a floating-point dtype.
    """
    found = dtypes.dtype_of(value)
    if not found.is_float:
        reject(DTypeError, op, f"dtype must be a float type, not {found.name}",
               fix="use float16, bfloat16, float32 or float64")  # fmt: skip
    return found


def same_images(op: Cls, img1: Tensor, img2: Tensor) -> None:
    """Checks two batches of images that are compared.

    Args:
        op: Name of the layer, or its class.
        img1: Images of shape :math:`(N, C, H, W)`.
        img2: Images of the same shape.

    Raises:
        ShapeError: if they have not the same four axes; it is a type error, too.
        DTypeError: if they have not the same dtype.
    """
    if img1.dtype != img2.dtype:
        reject(DTypeError, op, "both images must have the same dtype",
               f"img1={img1.aval}, img2={img2.aval}")  # fmt: skip
    if img1.ndim != 4 or img1.shape != img2.shape:
        reject(either(ShapeError, TypeError), op, "both images must have the same 4 axes",
               f"img1={img1.aval}, img2={img2.aval}")  # fmt: skip
