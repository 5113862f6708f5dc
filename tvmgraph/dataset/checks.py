"""What sources, stages and transforms of data sets refuse."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from inspect import CO_VARARGS
from types import FunctionType

import numpy as np

from tvmgraph.errors import ArgumentError, DTypeError, TypeOrValueError, either, reject


def count_of(op: str, name: str, value: object, low: int) -> int:
    """Returns an integer that is at least ``low``.

    Args:
        op: Name of the stage.
        name: Name of the argument.
        value: What was given.
        low: The least integer that is allowed.

    Raises:
        ArgumentError: if it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        reject(TypeOrValueError, op, f"{name} must be an int of at least {low}, not {value!r}")
    if value < low:
        reject(ArgumentError, op, f"{name} must be an int of at least {low}, not {value!r}")
    return int(value)


def flag_of(op: str, name: str, value: object) -> bool:
    """Returns a bool.

    Args:
        op: Name of the stage.
        name: Name of the argument.
        value: What was given.

    Raises:
        DTypeError: if it is something else.
    """
    if not isinstance(value, bool):
        reject(DTypeError, op, f"{name} must be a bool, not {value!r}")
    return value


def of_one_value(namespace: Mapping[str, object]) -> None:
    """Lets transforms that take one value refuse others as MindSpore's pipeline does.

    Args:
        namespace: The ``globals()`` of a module of transforms.
    """
    classes = {c for v in namespace.values() if isinstance(v, type) for c in v.__mro__}
    for cls in classes:
        call = vars(cls).get("__call__")
        if not isinstance(call, FunctionType) or not cls.__module__.startswith("tvmgraph.dataset."):
            continue
        if call.__code__.co_argcount == 2 and not call.__code__.co_flags & CO_VARARGS:
            cls.__call__ = _of_one(call)


def _of_one(call: Callable[[object, object], object]) -> Callable[..., object]:
    @functools.wraps(call)
    def checked(self: object, *values: object) -> object:
        if len(values) != 1:
            reject(either(DTypeError, RuntimeError), type(self).__name__,
                   f"it takes one value, not {len(values)}")  # fmt: skip
        return call(self, values[0])

    return checked
