"""Functions of functions: ``from tvmgraph.ops import composite as C``.

The gradient functions and every operator function are reachable here too, as in MindSpore
(``C.GradOperation``, ``C.clip_by_value``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.shown import Shown
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, NotFoundError, ShapeError, either, reject

__all__ = ["HyperMap", "Map", "MultitypeFuncGraph", "Partial", "partial"]

_FAMILIES: dict[str, Callable[[object], bool]] = {
    "Tensor": lambda v: isinstance(v, Tensor),
    "Number": lambda v: dtypes.is_number(v),
    "Bool": lambda v: isinstance(v, bool),
    "Int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "Float": lambda v: isinstance(v, float),
    "String": lambda v: isinstance(v, str),
    "Tuple": lambda v: isinstance(v, tuple),
    "List": lambda v: isinstance(v, list),
    "Dictionary": lambda v: isinstance(v, dict),
    "Slice": lambda v: isinstance(v, slice),
    "Ellipsis": lambda v: v is ...,
    "None": lambda v: v is None,
    "TypeNone": lambda v: v is None,
    "Function": callable,
}


def _matcher(name: object) -> Callable[[object], bool]:
    """Returns the test of one entry of a signature: a family name, a dtype, or a Python type."""
    if name is TensorType:  # what MindSpore's dtypes call tensors
        return _FAMILIES["Tensor"]
    if isinstance(name, type):
        return lambda v: isinstance(v, name)
    found = _FAMILIES.get(str(name))
    if found is not None:
        return found
    try:
        dtype = dtypes.dtype_of(name)
    except DTypeError:
        if not isinstance(name, str):
            raise
        return lambda v: type(v).__name__ == name  # a class that only its name is known of
    python = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype.kind]
    return lambda v: type(v) is python and dtypes.scalar_dtype(v).kind == dtype.kind


class MultitypeFuncGraph:
    """A function with one implementation per combination of argument types.

    Args:
        name: Its name, for error messages.
        read_value: Whether a Parameter is passed on as a plain Tensor.

    Raises:
        DTypeError: if ``name`` is no str; in a call, if no implementation fits the arguments.

    Example:
        >>> double = ops.MultitypeFuncGraph("double")
        >>> @double.register("Tensor")
        ... def double_tensor(x):
        ...     return x + x
        >>> double(Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00])
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        if not isinstance(name, str):
            reject(DTypeError, "ops.MultitypeFuncGraph",
                   f"name must be a str, not {type(name).__name__}")  # fmt: skip
        self.name = name
        self.read_value = read_value
        self.entries: list[
            tuple[tuple[str, ...], list[Callable[[object], bool]], Callable[..., object]]
        ] = []

    def register(
        self, *type_names: object
    ) -> Callable[[Callable[..., object]], Callable[..., object]]:
        """Returns a decorator that adds an implementation.

        Args:
            type_names: One per argument: "Tensor", "Number", "Int", "Float", "Bool", "Tuple",
                "List", "String", "Function", "None", a dtype, a Python type, or a class's name.
        """
        matchers = [_matcher(n) for n in type_names]

        def add(fn: Callable[..., object]) -> Callable[..., object]:
            self.entries.append((tuple(map(str, type_names)), matchers, fn))
            return fn

        return add

    def __call__(self, *args: object) -> Any:
        """Calls the first implementation whose types fit the arguments."""
        for _, matchers, fn in self.entries:
            if len(matchers) == len(args) and all(m(a) for m, a in zip(matchers, args)):
                if self.read_value:
                    args = tuple(a.value() if isinstance(a, Parameter) else a for a in args)
                return fn(*args)
        known = ", ".join(f"({', '.join(names)})" for names, _, _ in self.entries)
        reject(either(DTypeError, ValueError), self.name,
               "no implementation takes these argument types",
               ", ".join(type(a).__name__ for a in args),
               f"register one; there are {known or 'none'}")  # fmt: skip

    def __repr__(self) -> str:
        return f"MultitypeFuncGraph({self.name}, {len(self.entries)} implementations)"


class _Mapper(Shown):
    def __init__(self, ops: Callable[..., object] | None = None, reverse: bool = False) -> None:
        if ops is not None and not callable(ops):
            reject(DTypeError, f"ops.{type(self).__name__}",
                   f"ops must be callable, not {type(ops).__name__}")  # fmt: skip
        self.ops = ops
        self.reverse = reverse

    def _split(self, args: tuple[object, ...]) -> tuple[Callable[..., object], tuple[object, ...]]:
        if self.ops is not None:
            return self.ops, args
        if not args or not callable(args[0]):
            reject(DTypeError, f"ops.{type(self).__name__}",
                   "the first argument must be the function to map")  # fmt: skip
        return args[0], args[1:]

    def _zip(self, sequences: tuple[Any, ...]) -> list[tuple[object, ...]]:
        lengths = [len(s) for s in sequences]
        if len(set(lengths)) > 1:
            reject(ShapeError, f"ops.{type(self).__name__}",
                   f"the sequences have different lengths {lengths}")  # fmt: skip
        rows = list(zip(*sequences))
        return rows[::-1] if self.reverse else rows

    def _collect(self, results: Sequence[object]) -> tuple[object, ...]:
        return tuple(results[::-1] if self.reverse else results)


class HyperMap(_Mapper):
    """Applies a function to corresponding items of sequences, also nested ones.

    Args:
        ops: The function; if None, it is the first argument of the call.
        reverse: Whether the items are visited from last to first (the result keeps their order).

    Raises:
        ShapeError: in a call, if the sequences differ in length.

    Example:
        >>> ops.HyperMap()(ops.add, (Tensor(1), [Tensor(2), Tensor(3)]), (4, (5, 6)))
        (Tensor(shape=[], dtype=Int64, value= 5), (Tensor(shape=[], dtype=Int64, value= 7),
         Tensor(shape=[], dtype=Int64, value= 9)))
    """

    def __call__(self, *args: object) -> Any:
        """Maps over the sequences and returns (nested) tuples."""
        fn, sequences = self._split(args)
        return self._map(fn, sequences)

    def _map(self, fn: Callable[..., object], items: tuple[object, ...]) -> object:
        if not items or not isinstance(items[0], (tuple, list)):
            return fn(*items)
        return self._collect([self._map(fn, row) for row in self._zip(items)])


class Map(_Mapper):
    """Applies a function to corresponding items of sequences, one level deep.

    Args:
        ops: The function; if None, it is the first argument of the call.
        reverse: Whether the items are visited from last to first (the result keeps their order).

    Example:
        >>> ops.Map()(ops.add, (Tensor(1), Tensor(2)), (3, 4))
        (Tensor(shape=[], dtype=Int64, value= 4), Tensor(shape=[], dtype=Int64, value= 6))
    """

    def __call__(self, *args: object) -> tuple[Any, ...]:
        """Maps over the sequences and returns a tuple."""
        fn, sequences = self._split(args)
        return self._collect([fn(*row) for row in self._zip(sequences)])


def partial(fn: Callable[..., object], *args: object, **kwargs: object) -> Callable[..., Any]:
    """Returns ``fn`` with its first arguments fixed.

    Args:
        fn: Function, Cell or operator.
        args: Leading arguments.
        kwargs: Keyword arguments.

    Raises:
        ArgumentError: if ``fn`` cannot be called.

    Example:
        >>> ops.partial(ops.sub, Tensor([5.0]))(Tensor([3.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00])
    """
    if not callable(fn):
        reject(ArgumentError, "ops.partial", "the first argument must be callable", repr(fn)[:80])
    return functools.partial(fn, *args, **kwargs)


class Partial(Shown):
    """Class form of :func:`partial`.

    Example:
        >>> ops.Partial()(ops.sub, Tensor([5.0]))(Tensor([3.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00])
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Returns the function ``args[0]`` with the other arguments fixed."""
        return partial(*args, **kwargs)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise NotFoundError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(F, name)


_guard_module(globals(), "ops")
