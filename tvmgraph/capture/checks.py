"""Predicates that tell whether a value read from outside still counts as the same."""

from __future__ import annotations

import argparse
import array
import functools
import itertools
import math
import operator
import sys
import threading
import types
import weakref
from collections import ChainMap, UserDict, UserList, UserString, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeGuard, TypeVar

import numpy as np

from tvmgraph import dtypes
from tvmgraph.capture.containers import items_in, plain_copy
from tvmgraph.capture.sources import ABSENT, Reference, contents, has_references, reference
from tvmgraph.core.arguments import literal
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.symbols import Scalar, Symbol
from tvmgraph.core.tensor import Tensor

Check = Callable[[Any], bool]
Value = TypeVar("Value")

_ATOMS = (bool, int, str, bytes, type(None), complex, type(...), dtypes.DType, slice, range)
_OPAQUE = (
    types.ModuleType, type, types.BuiltinFunctionType, types.MethodType, Tensor, property,
    np.dtype, np.generic, types.GeneratorType, weakref.ref,
)  # fmt: skip
# plain data holders of the standard library: their attributes count like a user's own object
HOLDERS = (
    types.SimpleNamespace, argparse.Namespace, ChainMap, UserDict, UserList, UserString,
    threading.local,
)  # fmt: skip
_VIEWED = (
    types.MappingProxyType, functools.partial, type({}.keys()), type({}.values()),
    type({}.items()),
)  # fmt: skip
_BUFFERS = (bytearray, memoryview, array.array)
_MAX_DEPTH = 5
_BRIEF_ITEMS, _BRIEF_LENGTH = 8, 60  # how much of a value a message shows
_MAX_ITEMS = 4096
_WATCHED_ITEMS = 64  # of a container that are asked whether their end is noticed
_SMALL = 64  # elements of a tensor that are compared one by one, should NumPy code write to them
BOUND = "_jit_bound_"  # attributes in which an object keeps its compiled methods
LIBRARIES = frozenset(sys.stdlib_module_names) | {
    "tvmgraph", "numpy", "ml_dtypes", "tvm", "tvm_ffi", "pytest", "_pytest", "pluggy", "IPython",
}  # fmt: skip


class CellLike(Protocol):
    """A Cell, which lives in a room above this one, as far as it is known here."""

    construct: Callable[..., object]
    training: bool
    _cells: dict[str, CellLike]
    _params: dict[str, Parameter]
    _buffers: dict[str, object]
    _flags: dict[str, object]

    def __call__(self, *args: object, **kwargs: object) -> object: ...

    def get_parameters(self) -> Iterator[Parameter]:
        """Yields the Parameters of the Cell and of those inside it."""
        ...

    def parameters_dict(self) -> dict[str, Parameter]:
        """Returns them by name."""
        ...


def is_cell(value: object) -> TypeGuard[CellLike]:
    """Whether a value is a Cell.

    Args:
        value: Any object.
    """
    return getattr(type(value), "_is_cell", False) is True


def is_cell_class(value: object) -> TypeGuard[type[CellLike]]:
    """Whether a value is a class of Cells.

    Args:
        value: Any object.
    """
    return isinstance(value, type) and getattr(value, "_is_cell", False) is True


def _same_float(a: float, b: float) -> bool:
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


def check_of(value: Any, objects: bool = True, depth: int = 0) -> Check:
    """Returns a predicate that tells whether another value counts as the same.

    Args:
        value: The value as it is now; containers are copied.
        objects: Whether the attributes of plain objects count, or only which object it is.
        depth: How many containers enclose it.
    """
    kind = type(value)
    if isinstance(value, Scalar):  # a number that differs from call to call
        return lambda v: v.__class__ is value.kind
    if isinstance(value, float) and kind is float:
        return lambda v: v.__class__ is float and _same_float(v, value)
    if isinstance(value, slice):  # its parts may be tensors
        parts = check_of((value.start, value.stop, value.step), objects, depth + 1)
        return lambda v: v.__class__ is slice and parts((v.start, v.stop, v.step))
    if isinstance(value, _ATOMS):
        return lambda v: v is value or (v.__class__ is kind and v == value)
    if isinstance(value, np.ndarray):
        return _check_of_array(value)
    if isinstance(value, np.generic):
        raw = value.tobytes()
        return lambda v: v.__class__ is kind and v.tobytes() == raw
    if isinstance(value, _BUFFERS):
        content = bytes(value)
        return lambda v: v.__class__ is kind and bytes(v) == content
    if isinstance(value, (set, frozenset)):
        kept = frozenset(plain_copy(value))
        equal = (set if isinstance(value, set) else frozenset).__eq__  # a class may override it
        return lambda v: v.__class__ is kind and equal(v, kept)
    if isinstance(value, (list, tuple, dict, deque)):
        inside = _check_of_container(value, objects, depth)
        return _and_attributes(value, inside, depth) if hasattr(value, "__dict__") else inside
    if isinstance(value, _VIEWED):
        return _check_of_view(value, objects, depth)
    if isinstance(value, types.FunctionType) and depth < _MAX_DEPTH and not is_fixed(value):
        return _check_of_function(value, depth)
    if not is_mortal(value):
        return lambda v: v is value
    ref = reference(value)
    if objects and not is_cell(value) and depth < _MAX_DEPTH:
        inner = _check_of_dict(attributes(value), objects, depth)
        return lambda v: v is ref() is not None and inner(attributes(v))
    return lambda v: v is ref() is not None


def _and_attributes(value: object, inside: Check, depth: int) -> Check:
    """Expects the attributes of a container of a user's class, too."""
    if value.__dict__ is value:  # its items are its attributes
        return inside
    own = _check_of_dict(attributes(value), False, depth + 1)
    return lambda v: inside(v) and own(attributes(v))


def _check_of_view(value: object, objects: bool, depth: int) -> Check:
    """Expects what a view of a dict shows, or what a ``partial`` calls."""
    kind, shown = type(value), _shown(value)
    inside = check_of(shown, objects, depth + 1)
    return lambda v: v.__class__ is kind and inside(_shown(v))


def _shown(value: object) -> object:
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, types.MappingProxyType):
        return dict(value)
    return [*value] if isinstance(value, Iterable) else None


def is_immutable(value: object) -> bool:
    """Whether being the same object is enough for counting as the same.

    Args:
        value: Any object.
    """
    if isinstance(value, tuple):
        return all(map(is_immutable, value))
    if isinstance(value, Symbol):
        return False
    if isinstance(value, (*_ATOMS, float, np.generic, Tensor)):
        return True
    if isinstance(value, types.FunctionType):
        return is_fixed(value)
    return not is_mutable(value)


def _check_of_container(value: Any, objects: bool, depth: int) -> Check:
    kind = type(value)
    if kind not in (list, tuple, dict, deque):  # which may override what it does
        inside = _check_of_container(plain_copy(value), objects, depth)
        return lambda v: v.__class__ is kind and inside(plain_copy(v))
    if depth >= _MAX_DEPTH or len(value) > _MAX_ITEMS:  # many: only which items
        items = [*value.items()] if isinstance(value, dict) else list(value)
        return lambda v: v.__class__ is kind and _same_items(v, items)
    if isinstance(value, dict):
        return _check_of_dict(value, objects, depth)
    return _check_of_sequence(value, objects, depth)


def _same_items(value: Any, items: list[Any]) -> bool:
    if len(value) != len(items):
        return False
    if isinstance(value, dict):
        return all(k is a and v is b for (k, v), (a, b) in zip(value.items(), items))
    return all(map(operator.is_, value, items))


def is_plain_object(value: object) -> bool:
    """Whether an object is a user's instance whose attributes count.

    Args:
        value: Any object.
    """
    if isinstance(value, HOLDERS):
        return True
    if isinstance(value, (*_OPAQUE, types.FunctionType)) or is_cell(value):
        return False
    module = getattr(type(value), "__module__", "") or ""
    has_attributes = hasattr(value, "__dict__") or hasattr(type(value), "__slots__")
    return has_attributes and module.partition(".")[0] not in LIBRARIES


def is_mortal(value: object) -> bool:
    """Whether a value is an object of the user, which a capture must not keep alive.

    Args:
        value: Any object.
    """
    return is_plain_object(value) or is_cell(value)


def ends_by_itself(value: object) -> bool:
    """Whether code may run when nobody holds a value any more.

    Args:
        value: Any object.
    """
    return hasattr(type(value), "__next__") or hasattr(type(value), "__del__")


def is_lifetime_observed(value: object, depth: int = 0) -> bool:
    """Whether code runs, or a weak reference changes, when nobody holds a value any more.

    Args:
        value: The value.
        depth: How many objects enclose it.
    """
    if isinstance(value, Tensor):
        return has_references(value)
    if isinstance(value, (*_ATOMS, float, *_OPAQUE, types.FunctionType)):
        return isinstance(value, types.GeneratorType)
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        inside = items_in(value)
    elif ends_by_itself(value) or has_references(value):
        return not is_cell(value)
    else:
        inside = attributes(value).values() if is_plain_object(value) else ()
    return depth < _MAX_DEPTH and any(
        is_lifetime_observed(v, depth + 1) for v in itertools.islice(inside, _WATCHED_ITEMS)
    )


def objects_in(value: object) -> list[Any]:
    """Returns the objects of the user in nested arguments, which a capture must not keep alive.

    Args:
        value: Arguments, in containers or not.
    """
    if isinstance(value, (dict, list, tuple)) and not hasattr(type(value), "_fields"):
        return [o for v in items_in(value) for o in objects_in(v)]
    return [value] if is_mortal(value) else []


class MortalKeys(dict[Any, Value]):
    """A table that forgets a key when one of the objects is gone whose ids the key holds.

    The table holds the weak references itself: in a registry of the process, such as that of
    ``weakref.finalize``, they keep what keys hold alive, which are classes, with the modules where
    these are all that is global there, and so the object and the table.
    """

    def __init__(self) -> None:
        super().__init__()
        self._watched: dict[int, Reference] = {}

    def forget_with(self, value: object, key: object) -> None:
        """Lets the table forget a key when an object is gone.

        Args:
            value: Arguments that may hold objects of the user.
            key: The key.
        """
        table = weakref.ref(self)

        def forget(reference: Reference) -> None:
            if (found := table()) is not None:
                found.pop(key, None)
                found._watched.pop(id(reference), None)

        for o in objects_in(value):
            if type(o).__weakrefoffset__:
                watched = Reference(o, forget)
                self._watched[id(watched)] = watched


def is_iterator(value: object) -> bool:
    """Whether a value is an iterator of Python or a library, which taking an item changes.

    Args:
        value: Any object.
    """
    return hasattr(type(value), "__next__") and not is_plain_object(value)


def attributes(value: object) -> dict[str, Any]:
    """Returns the attributes of a plain object, those in slots included.

    Args:
        value: Any object.
    """
    own = getattr(value, "__dict__", {})
    found = {k: v for k, v in own.items() if not k.startswith(BOUND)}
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                found[name] = getattr(value, name)
    return found


def _check_of_array(array: np.ndarray) -> Check:
    dtype, shape, content = array.dtype, array.shape, array.tobytes()

    def same(v: object) -> bool:
        return (
            isinstance(v, np.ndarray) and v.dtype == dtype and v.shape == shape
            and v.tobytes() == content
        )  # fmt: skip

    return same


def _check_of_sequence(value: Any, objects: bool, depth: int) -> Check:
    kind, checks = type(value), [check_of(v, objects, depth + 1) for v in value]
    count = len(checks)

    def same(v: Any) -> bool:
        return v.__class__ is kind and len(v) == count and all(c(x) for c, x in zip(checks, v))

    return same


def _check_of_dict(value: dict[Any, Any], objects: bool, depth: int) -> Check:
    kind, checks = type(value), {k: check_of(v, objects, depth + 1) for k, v in value.items()}
    keys = list(checks)

    def same(v: Any) -> bool:
        return v.__class__ is kind and list(v) == keys and all(c(v[k]) for k, c in checks.items())

    def same_objects(v: dict[object, object]) -> bool:  # tensors compare element by element
        keyed = v.__class__ is kind and list(map(hash, v)) == hashes and v.keys() == checks.keys()
        return keyed and list(map(type, v)) == kinds and all(c(v[k]) for k, c in checks.items())

    if all(type(k) is str for k in keys):
        return same
    kinds = list(map(type, keys))  # 1, True and 1.0 are equal
    if all(isinstance(k, _ATOMS) for k in keys):
        return lambda v: same(v) and list(map(type, v)) == kinds
    hashes = list(map(hash, keys))
    return same_objects


def _check_of_function(value: types.FunctionType, depth: int) -> Check:
    """Expects the same code, defaults and closure."""
    code = value.__code__
    checks = [check_of(contents(c), True, depth + 1) for c in value.__closure__ or ()]
    defaults = check_of((value.__defaults__, value.__kwdefaults__), True, depth + 1)

    def same(v: Any) -> bool:
        return (
            v is value
            and v.__code__ is code
            and defaults((v.__defaults__, v.__kwdefaults__))
            and all(c(contents(x)) for c, x in zip(checks, v.__closure__ or ()))
        )

    return same


def has_contents(value: object) -> bool:
    """Whether a value holds what its methods and items can change.

    Args:
        value: Any object.
    """
    return isinstance(value, (list, dict, set, deque, np.ndarray, *_BUFFERS, *_VIEWED))


def identified(value: object) -> tuple[object, ...]:
    """Returns what is equal while an argument is the same object and has the same contents.

    Lists, dicts and arrays are compared by what they hold, so no capture asks this of them.

    Args:
        value: An argument.
    """
    kind = type(value)
    if isinstance(value, (set, deque)):
        return (kind, id(value), getattr(value, "maxlen", None), *map(_item, plain_copy(value)))
    if isinstance(value, _BUFFERS):
        return (kind, id(value), bytes(value))
    return (kind, id(value))


def own_attributes(container: object) -> tuple[object, ...]:
    """Returns what is equal while the attributes of a container of a user's class are the same.

    Args:
        container: A list, dict or set.
    """
    own = getattr(container, "__dict__", None)
    found = () if not own or own is container else _item(own)
    return (*found, id(container.default_factory)) if isinstance(container, defaultdict) else found


def _item(value: object) -> tuple[object, ...]:
    """Returns what is equal while an item of a container counts as the same."""
    kind = type(value)
    if isinstance(value, dict):
        return (kind, *[(_item(k), _item(v)) for k, v in plain_copy(value).items()])
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return (kind, *map(_item, plain_copy(value)))
    if isinstance(value, (*_BUFFERS, np.ndarray)):
        return (kind, id(value), bytes(value))
    return (kind, literal(value)) if isinstance(value, (*_ATOMS, float)) else (kind, id(value))


def is_mutable(value: object) -> bool:
    """Whether a value can change without an attribute being assigned.

    Args:
        value: Any object.
    """
    if has_contents(value):
        return True
    if isinstance(value, tuple):
        return any(is_mutable(v) for v in value)
    return is_plain_object(value)


def brief(value: object) -> str:
    """Returns plain data as short text for a message; ``""`` for anything else.

    Args:
        value: Any object.
    """
    if isinstance(value, (*_ATOMS, float)) or value is ABSENT:
        text = literal(value)
    elif isinstance(value, (list, tuple)) and len(value) <= _BRIEF_ITEMS:
        parts = [brief(v) for v in value]
        text = f"[{', '.join(parts)}]" if all(parts) else ""
    else:
        return ""
    return text if len(text) <= _BRIEF_LENGTH else f"{text[:_BRIEF_LENGTH]}..."


def changed(label: str, before: str, now: str) -> str:
    """Returns ``label changed: before -> now``, as far as the values can be shown.

    Args:
        label: What it is called in messages.
        before: The value before, as text.
        now: The value now, as text.
    """
    values = f": {before or 'something else'} -> {now or 'something else'}"
    return f"{label} changed" + (values if before != now else "")


def is_fixed(value: object) -> bool:
    """Whether a global is a library module or function, which nobody rebinds in practice.

    Args:
        value: The value of the global.
    """
    root = getattr(value, "__module__", None) or getattr(value, "__name__", None)
    if not isinstance(root, str):
        return False
    kinds = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)
    return isinstance(value, kinds) and root.partition(".")[0] in LIBRARIES


def is_function(value: object) -> bool:
    """Whether something is a function or Cell that was there before the code that is read.

    Args:
        value: What a variable holds.
    """
    return isinstance(value, types.FunctionType) or is_cell(value)


def is_library(module: object) -> bool:
    """Whether a module (its name) is no user code.

    Args:
        module: Name of the module.
    """
    return _is_in_library(str(module or ""))


@functools.lru_cache(maxsize=4096)  # asked at every call of library code
def _is_in_library(module: str) -> bool:
    return module.partition(".")[0] in LIBRARIES
