"""``mindspore._checkparam``: checks of arguments that model zoos call in their constructors.

In MindSpore 1.x they are static methods of ``Validator`` and relations are members of ``Rel``; in
2.x both are names of the module.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import NoReturn, TypeVar

from tvmgraph.errors import ArgumentError, DTypeError, TvmgraphError

R = TypeVar("R")


class Rel(IntEnum):
    """How a value is compared with one limit, or whether a range includes its two limits."""

    EQ, NE, LT, LE, GT, GE = 1, 2, 3, 4, 5, 6
    INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = 7, 8, 9, 10
    IN, NOT_IN = 11, 12


EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = Rel

_COMPARE: dict[Rel, tuple[Callable[..., object], str]] = {
    EQ: (operator.eq, "equal to"), NE: (operator.ne, "not equal to"),
    LT: (operator.lt, "less than"), LE: (operator.le, "less than or equal to"),
    GT: (operator.gt, "greater than"), GE: (operator.ge, "greater than or equal to"),
    IN: (lambda arg_value, valid: arg_value in valid, "one of"),
    NOT_IN: (lambda arg_value, valid: arg_value not in valid, "none of"),
}  # fmt: skip
_RANGES = {
    INC_NEITHER: (operator.gt, operator.lt, "()"), INC_LEFT: (operator.ge, operator.lt, "[)"),
    INC_RIGHT: (operator.gt, operator.le, "(]"), INC_BOTH: (operator.ge, operator.le, "[]"),
}  # fmt: skip
T = TypeVar("T")


def _reject(
    kind: type[TvmgraphError], name: str | None, op: str | None, rule: str, arg_value: object
) -> NoReturn:
    raise kind(f"{name or 'the value'} must be {rule}", op=op, got=repr(arg_value))


def _related(
    arg_value: T, value: object, rel: Rel, name: str | None, op: str | None, shown: str,
    kind: type[TvmgraphError] = ArgumentError,
) -> T:  # fmt: skip
    compare, text = _COMPARE[Rel(rel)]
    if not compare(arg_value, value):
        _reject(kind, name, op, f"{text} {shown}", arg_value)
    return arg_value


def check_is_number(
    arg_value: object, arg_type: type[T], arg_name: str | None = None, prim_name: str | None = None
) -> T:
    """Returns an ``int`` or ``float``.

    Args:
        arg_value: The value that is checked.
        arg_type: ``int`` or ``float``.
        arg_name: Name of the argument in messages.
        prim_name: Name of what was called in messages.

    Raises:
        DTypeError: if it is something else; ``bool`` is no number here.
    """
    if isinstance(arg_value, bool) or not isinstance(arg_value, arg_type):
        _reject(DTypeError, arg_name, prim_name, f"of type {arg_type.__name__}", arg_value)
    return arg_value


def check(
    arg_name: str, arg_value: T, value_name: str, value: object, rel: Rel = EQ,
    prim_name: str | None = None, excp_cls: type[Exception] = ArgumentError,
) -> T:  # fmt: skip
    """Returns a value that stands in a relation to another one.

    Args:
        arg_name: Name of the argument in messages.
        arg_value: The value that is checked.
        value_name: What the limit is called in messages.
        value: What the value is compared with.
        rel: The relation.
        prim_name: Name of what was called in messages.
        excp_cls: Class of the error.

    Raises:
        ArgumentError: if it does not; a DTypeError where ``excp_cls`` is a TypeError.
    """
    kind = DTypeError if issubclass(excp_cls, TypeError) else ArgumentError
    return _related(arg_value, value, rel, arg_name, prim_name, f"{value_name} ({value})", kind)


def check_number(arg_name: str, arg_value: T, value: object, rel: Rel, prim_name: str | None) -> T:
    """Returns a number that stands in a relation to a limit.

    Args:
        arg_name: Name of the argument in messages.
        arg_value: The value that is checked.
        value: What the value is compared with.
        rel: The relation.
        prim_name: Name of what was called in messages.

    Raises:
        ArgumentError: if it does not.
    """
    return _related(arg_value, value, rel, arg_name, prim_name, str(value))


def _compared(
    arg_value: object,
    value: object,
    rel: Rel,
    arg_name: str | None = None,
    prim_name: str | None = None,
    *,
    kind: type[T],
) -> T:
    found = check_is_number(arg_value, kind, arg_name, prim_name)
    return check_number(arg_name or "the value", found, value, rel, prim_name)


def _signed(
    arg_value: object,
    arg_name: str | None = None,
    prim_name: str | None = None,
    *,
    kind: type[T],
    rel: Rel,
) -> T:
    return _compared(arg_value, 0, rel, arg_name, prim_name, kind=kind)


def _in_range(
    arg_value: float, lower_limit: float, upper_limit: float, rel: Rel, arg_name: str | None = None,
    prim_name: str | None = None, *, kind: type,
) -> float:  # fmt: skip
    check_is_number(arg_value, kind, arg_name, prim_name)
    above, below, (left, right) = _RANGES[Rel(rel)]
    if not (above(arg_value, lower_limit) and below(arg_value, upper_limit)):
        _reject(
            ArgumentError,
            arg_name,
            prim_name,
            f"in {left}{lower_limit}, {upper_limit}{right}",
            arg_value,
        )
    return arg_value


def _each(
    sequence: Iterable[object], arg_name: str | None = None, prim_name: str | None = None,
    *, one: Callable[..., object],
) -> Iterable[object]:  # fmt: skip
    for i, arg_value in enumerate(sequence):
        one(arg_value, f"{arg_name or 'the sequence'}[{i}]", prim_name)
    return sequence


check_int = functools.partial(_compared, kind=int)
check_float = functools.partial(_compared, kind=float)
check_int_range = functools.partial(_in_range, kind=int)
check_float_range = functools.partial(_in_range, kind=float)
check_positive_int = functools.partial(_signed, kind=int, rel=GT)
check_negative_int = functools.partial(_signed, kind=int, rel=LT)
check_non_positive_int = functools.partial(_signed, kind=int, rel=LE)
check_non_negative_int = functools.partial(_signed, kind=int, rel=GE)
check_positive_float = functools.partial(_signed, kind=float, rel=GT)
check_negative_float = functools.partial(_signed, kind=float, rel=LT)
check_non_positive_float = functools.partial(_signed, kind=float, rel=LE)
check_non_negative_float = functools.partial(_signed, kind=float, rel=GE)
check_positive_int_sequence = functools.partial(_each, one=check_positive_int)
check_non_negative_int_sequence = functools.partial(_each, one=check_non_negative_int)
check_positive_float_sequence = functools.partial(_each, one=check_positive_float)


def check_is_int(
    arg_value: object, arg_name: str | None = None, prim_name: str | None = None
) -> int:
    """Returns an integer; see :func:`check_is_number`.

    Args:
        arg_value: The value that is checked.
        arg_name: Name of the argument in messages.
        prim_name: Name of what was called in messages.
    """
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_is_float(
    arg_value: object, arg_name: str | None = None, prim_name: str | None = None
) -> float:
    """Returns a float; see :func:`check_is_number`.

    Args:
        arg_value: The value that is checked.
        arg_name: Name of the argument in messages.
        prim_name: Name of what was called in messages.
    """
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_equal_int(
    arg_value: object, value: int, arg_name: str | None = None, prim_name: str | None = None
) -> int:
    """Returns an integer that equals another one; see :func:`check_int`.

    Args:
        arg_value: The value that is checked.
        value: What the value must equal.
        arg_name: Name of the argument in messages.
        prim_name: Name of what was called in messages.
    """
    return _compared(arg_value, value, EQ, arg_name, prim_name, kind=int)


def check_bool(
    arg_value: object, arg_name: str | None = None, prim_name: str | None = None
) -> bool:
    """Returns a ``bool``.

    Args:
        arg_value: The value that is checked.
        arg_name: Name of the argument in messages.
        prim_name: Name of what was called in messages.

    Raises:
        DTypeError: if it is something else.
    """
    if not isinstance(arg_value, bool):
        _reject(DTypeError, arg_name, prim_name, "of type bool", arg_value)
    return arg_value


def check_string(
    arg_value: object, valid_values: Iterable[str], arg_name: str | None = None,
    prim_name: str | None = None,
) -> str:  # fmt: skip
    """Returns a string that is one of several.

    Args:
        arg_value: The value that is checked.
        valid_values: The strings that are accepted.
        arg_name: Name of the argument in messages.
        prim_name: Name of what was called in messages.

    Raises:
        ArgumentError: if it is not.
    """
    valid = tuple(valid_values)
    if not isinstance(arg_value, str) or arg_value not in valid:
        _reject(ArgumentError, arg_name, prim_name, f"one of {valid}", arg_value)
    return arg_value


def check_isinstance(arg_name: str, arg_value: T, classes: type | Iterable[type]) -> T:
    """Returns an instance of one of some classes; see :func:`check_value_type`.

    Args:
        arg_name: Name of the argument in messages.
        arg_value: The value that is checked.
        classes: A class or several.
    """
    return check_value_type(arg_name, arg_value, classes)


def check_value_type(
    arg_name: str, arg_value: T, valid_types: type | Iterable[type], prim_name: str | None = None
) -> T:
    """Returns a value of one of some types; ``bool`` counts only where it is one of them.

    Args:
        arg_name: Name of the argument in messages.
        arg_value: The value that is checked.
        valid_types: A type or several.
        prim_name: Name of what was called in messages.

    Raises:
        DTypeError: if it is of another type.
    """
    types = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    if not isinstance(arg_value, types) or (isinstance(arg_value, bool) and bool not in types):
        names = " or ".join(getattr(t, "__name__", str(t)) for t in types)
        _reject(DTypeError, arg_name, prim_name, f"of type {names}", arg_value)
    return arg_value


def check_subclass(
    arg_name: str, type_: object, template_types: object, prim_name: str | None = None,
    addition_error_info: str | None = None,
) -> None:  # fmt: skip
    """Accepts a subclass, or dtype, of one of some.

    Args:
        arg_name: Name of the argument in messages.
        type_: The class or dtype that is checked.
        template_types: A class or dtype, or several.
        prim_name: Name of what was called in messages.
        addition_error_info: What follows in the message.

    Raises:
        DTypeError: if it is something else.
    """
    templates = tuple(template_types) if isinstance(template_types, Iterable) else (template_types,)
    fits = [type_ is t or (isinstance(t, type) and isinstance(type_, type) and issubclass(type_, t))
            for t in templates]  # fmt: skip
    if not any(fits):
        more = f" {addition_error_info}" if addition_error_info else ""
        _reject(DTypeError, arg_name, prim_name, f"a kind of {templates}{more}", type_)


def check_type_name(
    arg_name: str, arg_type: object, valid_types: object, prim_name: str | None = None
) -> object:
    """Returns a type that is one of some.

    Args:
        arg_name: Name of the argument in messages.
        arg_type: The type that is checked.
        valid_types: A type or several.
        prim_name: Name of what was called in messages.

    Raises:
        DTypeError: if it is not.
    """
    types = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    if arg_type not in types:
        _reject(DTypeError, arg_name, prim_name, f"one of {', '.join(map(str, types))}", arg_type)
    return arg_type


def args_type_check(
    **types: type | Iterable[type],
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorates a function whose arguments must be of some types; see :func:`check_value_type`.

    Args:
        types: The type of an argument, or several, by its name.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def checked(*args: object, **kwargs: object) -> R:
            given = signature.bind(*args, **kwargs).arguments
            for name in given.keys() & types.keys():
                check_value_type(name, given[name], types[name], function.__name__)
            return function(*args, **kwargs)

        return checked

    return decorate


def check_input_format(input_param: str) -> str:
    """Returns the layout of images, which is ``"NCHW"``.

    Args:
        input_param: The layout.

    Raises:
        ArgumentError: if it is another one.
    """
    return check_string(input_param, ("NCHW",), "data format")


def _expand_tuple(n_dimensions: int) -> Callable[[object], tuple[object, ...]]:
    """Returns a function that makes a tuple of this length of an int, and checks other tuples."""

    def convert(m: object) -> tuple[object, ...]:
        items: tuple[object, ...] = (
            tuple(m) if isinstance(m, (tuple, list)) else (m,) * n_dimensions
        )
        if len(items) != n_dimensions or any(type(i) is not int for i in items):
            _reject(DTypeError, "value", None, f"an int or {n_dimensions} of them", m)
        return items

    return convert


twice = _expand_tuple(2)


def _make_directory(path: str, arg_name: str = "path") -> str:
    """Makes a folder, and those above it, where there is none; returns its full path.

    Args:
        path: The folder.
        arg_name: Name of the argument.

    Raises:
        DTypeError: if the path is no str.
        ArgumentError: if it is blank.
        FileExistsError: if it is a file.
    """
    if not isinstance(path, str):
        _reject(DTypeError, arg_name, None, "a str", path)
    if not path.strip():
        _reject(ArgumentError, arg_name, None, "the name of a folder", path)
    folder = Path(path).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


class _Checks(type):
    """Finds every check and relation of the module as an attribute of the class."""

    def __getattr__(cls, name: str) -> object:
        if name.startswith("check") or (name.isupper() and name in globals()):
            return globals()[name]
        raise AttributeError(f"Validator has no check {name!r}")


class Validator(metaclass=_Checks):
    """The checks of this module as MindSpore 1.x names them."""
