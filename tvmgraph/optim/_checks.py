"""Checks of optimizer arguments."""

from __future__ import annotations

from tvmgraph.errors import TypeOrValueError
from tvmgraph.nn._checks import boolean, integer, is_real, positive, real, reject


def fraction(op: str, name: str, value: object, bounds: str = "()") -> float:
    """Returns a number between 0 and 1.

    Args:
        op: Name of the optimizer.
        name: Name of the argument.
        value: What was given.
        bounds: ``"["`` or ``"("``, then ``"]"`` or ``")"``: which ends belong to the interval.

    Raises:
        DTypeError: if it is not a number.
        ArgumentError: if it lies outside.
    """
    return float(real(op, name, value, 0.0, 1.0, bounds))


def non_negative(op: str, name: str, value: object) -> float:
    """Returns a number that is at least 0, or raises as :func:`fraction` does.

    Args:
        op: Name of the optimizer.
        name: Name of the argument.
        value: What was given.
    """
    return float(real(op, name, value, 0.0))


def above_zero(op: str, name: str, value: object) -> float:
    """Returns a number greater than 0, or raises as :func:`fraction` does.

    Args:
        op: Name of the optimizer.
        name: Name of the argument.
        value: What was given.
    """
    return float(real(op, name, value, 0.0, bounds="(]"))


def pair(op: str, name: str, value: object) -> tuple[float, float]:
    """Returns a tuple of two numbers.

    Args:
        op: Name of the optimizer.
        name: Name of the argument.
        value: What was given.

    Raises:
        TypeOrValueError: if it is something else.
    """
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        reject(TypeOrValueError, op, f"{name} must be a tuple of two numbers", f"{name}={value!r}")
    return (float(real(op, name, value[0])), float(real(op, name, value[1])))


is_number = is_real

__all__ = [
    "above_zero", "boolean", "fraction", "integer", "is_number", "non_negative", "pair", "positive",
    "real", "reject",
]  # fmt: skip
