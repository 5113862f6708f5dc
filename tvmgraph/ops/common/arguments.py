"""Helpers that bring arguments of public functions into the canonical form of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike, Unknown, is_sequence
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.dispatch import describe as described
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import Dim
from tvmgraph.dtypes import DType
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    NoTensorError,
    ShapeError,
    TvmgraphError,
    TypeOrValueError,
    user_source,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs

F = TypeVar("F", bound=Callable[..., object])


def named(name: str) -> Callable[[F], F]:
    """Gives a row the name of the public function that prepares its arguments.

    Errors then name the function that the user called.

    Args:
        name: The name without ``ops.``.
    """

    def rename(function: F) -> F:
        function.__name__ = name
        return function

    return rename


def bad(
    error: type[TvmgraphError], message: str, op: str, got: object = "", fix: str = ""
) -> TvmgraphError:
    """Returns an error of a public function with all parts of its message.

    Args:
        error: Class of the error.
        message: What is wrong.
        op: Name of the function without ``ops.``.
        got: What it was given.
        fix: What the user may do.
    """
    return error(message, op=f"ops.{op}", got=str(got), fix=fix or None)


class Described:
    """Arguments for the ``got`` line of an error, put into words when one is raised.

    Args:
        arguments: By name.
    """

    __slots__ = ("arguments",)

    def __init__(self, arguments: dict[str, object]) -> None:
        self.arguments = arguments

    def __str__(self) -> str:
        return ", ".join(f"{k}={described(v)}" for k, v in self.arguments.items())


def describe(**arguments: object) -> Described:
    """Returns what describes arguments in the ``got`` line of an error."""
    return Described(arguments)


def require(
    rule: object, message: str, op: str, error: type[TvmgraphError] = ShapeError, fix: str = "",
    **got: object,
) -> None:  # fmt: skip
    """Makes sure that a rule about the arguments of a public function holds.

    Args:
        rule: Whether it does.
        message: What is wrong otherwise.
        op: Name of the function without ``ops.``.
        error: Class of the error.
        fix: What the user may do.
        **got: The arguments in question, by name.
    """
    if not rule:
        raise bad(error, message, op, describe(**got), fix)


def require_tensor(name: str, x: object, argument: str = "input") -> Tensor:
    """Returns ``x``.

    Args:
        name: Name of the function.
        x: What it was given.
        argument: Name of the argument.

    Raises:
        NoTensorError: if it is not a Tensor.
    """
    if not isinstance(x, Tensor):
        raise bad(
            NoTensorError, f"argument {argument!r} must be a Tensor, not {type(x).__name__}", name,
            f"{argument}={x!r:.60}", "wrap it in Tensor(...)",
        )  # fmt: skip
    return x


_KINDS = "biufc"  # of dtypes, from the narrowest on


def require_same_kind(name: str, value: object, into: Tensor, argument: str = "value") -> None:
    """Refuses values of which a tensor cannot keep the kind: floats in integers, for example.

    Args:
        name: Name of the function.
        value: A tensor, array or number that is converted to the dtype of ``into``.
        into: The tensor.
        argument: Name of the argument.

    Raises:
        DTypeError: if ``into`` would cut the values.
    """
    if isinstance(value, Tensor):
        given: DType | np.dtype = value.aval.dtype
    elif isinstance(value, (int, float, complex, np.ndarray, np.generic)):
        given = np.asarray(value).dtype
    else:
        return
    kind, kept = given.kind.replace("u", "i"), into.aval.dtype.kind.replace("u", "i")
    if kind in _KINDS and _KINDS.index(kind) > _KINDS.index(kept):
        dtype = into.aval.dtype.name
        raise bad(
            DTypeError, f"{argument} is {given.name}, which does not fit {dtype}", name,
            f"{argument}={value!r:.60}", f"write {argument}.astype({dtype!r}) to cut it",
        )  # fmt: skip


_ALL = tuple(tuple(range(n)) for n in range(8))  # by number of axes


def resolve_axes(name: str, x: Tensor, axis: Any, argument: str = "axis") -> tuple[int, ...]:
    """Returns ``axis`` (None and ``()`` mean all) as sorted non-negative axes of ``x``.

    Args:
        name: Name of the function.
        x: Its tensor.
        axis: Axis or axes, which may be a tensor; negative ones count from the last.
        argument: Name of the argument.

    Raises:
        OutOfRangeError: if an axis does not exist.
        ArgumentError: if an axis occurs twice.
    """
    require_tensor(name, x)
    ndim = len(x.aval.shape)
    if axis is None:
        return _ALL[ndim] if ndim < len(_ALL) else tuple(range(ndim))
    if axis.__class__ is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    try:
        return rules.normalize_axes(axis.tolist() if isinstance(axis, Tensor) else axis, ndim)
    except TvmgraphError as e:
        got = f"input={x.aval}, {argument}={axis!r}"
        raise e.locate(f"ops.{name}", got, user_source()) from None


def resolve_axis(name: str, x: Tensor, axis: AxisLike, argument: str = "axis") -> int:
    """Returns ``axis`` as a non-negative axis of ``x`` (0 when ``x`` is 0-d).

    Args:
        name: Name of the function.
        x: Its tensor.
        axis: The axis; a negative one counts from the last.
        argument: Name of the argument.

    Raises:
        OutOfRangeError: if it does not exist.
    """
    require_tensor(name, x)
    try:
        return rules.normalize_axis(axis, x.ndim, argument)
    except TvmgraphError as e:
        got = f"input={x.aval}, {argument}={axis!r}"
        raise e.locate(f"ops.{name}", got, user_source()) from None


def int_tuple(value: Any, op: str, name: str = "shape") -> tuple[Any, ...]:
    """Returns an int, a sequence of ints (or 0-d tensors) or an integer tensor as a tuple.

    Args:
        value: The argument.
        op: Name of the function.
        name: Name of the argument.

    Raises:
        DTypeError: if an entry is not an integer.
    """
    if value.__class__ is tuple and all([v.__class__ is int for v in value]):
        return value
    if isinstance(value, Tensor):
        if value.ndim > 1:
            raise bad(DTypeError, f"{name} has one axis, not {value.ndim}", op,
                      f"{name}={value.aval}")  # fmt: skip
        value = value.asnumpy().reshape(-1).tolist()
    items = value if is_sequence(value) else (value,)
    kind = TypeOrValueError  # MindSpore's are either, by function
    return tuple([v if isinstance(v, Dim) else as_int(v, op, name, kind) for v in items])


_KNOWN = frozenset((int, float, bool, str, tuple, list, type(None)))  # asking a protocol is slow


def is_unknown(value: object) -> TypeIs[Unknown]:
    """Whether a value is a tensor that is not known before the graph runs.

    Args:
        value: Any object.
    """
    if state.interpreter is None or value.__class__ in _KNOWN:
        return False
    return isinstance(value, Unknown)


def tensor_in(value: Unknown) -> Tensor:
    """Returns the tensor that holds a value which is not known before the graph runs.

    Args:
        value: A tensor, or a number that one holds.
    """
    tensor = value.as_tensor()
    assert isinstance(tensor, Tensor)
    return tensor


def split_up(value: object) -> object:
    """Returns sizes one by one where they are a tensor that is not known before the graph runs.

    Args:
        value: Ints, tensors, or one tensor of them.
    """
    if isinstance(value, Tensor) and value.ndim == 1 and is_unknown(value):
        return tuple(value)
    return value


def has_unknown(value: object) -> bool:
    """Whether one of some sizes is not known before the graph runs.

    Args:
        value: Ints, tensors, or one tensor of them.
    """
    if state.interpreter is None:
        return False
    return any(map(is_unknown, value if is_sequence(value) else (value,)))


def sizes(value: object, op: str, name: str = "shape") -> tuple[int | Dim, ...]:
    """Returns sizes as :func:`int_tuple` does; in a graph tensors of it give symbolic ones.

    Args:
        value: The argument.
        op: Name of the function.
        name: Name of the argument.

    Raises:
        DTypeError: if an entry is not an integer.
    """
    if has_unknown(value):
        value = split_up(value)
        items = value if is_sequence(value) else (value,)
        value = tuple([v.as_size() if isinstance(v, Unknown) else v for v in items])
    return int_tuple(value, op, name)


def as_tensor(x: NumberLike) -> Tensor:
    """Returns a number as a tensor without axes, and a tensor as it is.

    Args:
        x: A number or tensor.
    """
    return x if isinstance(x, Tensor) else Tensor(x)


def as_int(value: Any, op: str, name: str, kind: type[DTypeError] = DTypeError) -> int:
    """Returns an integer argument as a Python int.

    Args:
        value: The argument.
        op: Name of the function.
        name: Name of the argument.
        kind: Class of the error.

    Raises:
        DTypeError: if it is not an integer.
    """
    if value.__class__ is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise bad(
            kind, f"{name} must hold integers, not {type(value).__name__}", op,
            f"{name}={value!r}"[:80],
        )  # fmt: skip
    return value.__index__()


_MOST = 1 << 16


def countable(value: int, op: str, name: str) -> int:
    """Returns a number of operators or results that a call makes.

    Args:
        value: The number.
        op: Name of the function.
        name: Name of the argument.

    Raises:
        ArgumentError: if it is more than any program means.
    """
    if value > _MOST:
        raise bad(ArgumentError, f"{name} must be at most {_MOST}", op, f"{name}={value}")
    return value


def wrap_axis(axis: Any, ndim: int) -> Any:
    """Makes a negative axis non-negative; what is no valid axis is left to the row's rule.

    Args:
        axis: The axis.
        ndim: Number of axes.
    """
    if axis.__class__ is int and -ndim <= axis < 0:
        return axis + ndim
    return axis


def wrap_axes(axes: tuple[object, ...], ndim: int) -> tuple[int, ...]:
    """Makes every negative axis of a tuple non-negative.

    Args:
        axes: The axes.
        ndim: Number of axes.
    """
    return tuple([wrap_axis(a, ndim) for a in axes])
