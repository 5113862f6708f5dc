"""Lists, dicts, sets and deques, and classes made of them, without running code of these classes.

A class may override what such a container does: ``copy``, ``__iter__``, ``__setitem__``. What a
capture does for itself must not call that, and what captured code calls must run it once.
"""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

_Made = TypeVar("_Made")
Container = list[object] | dict[object, object] | set[object] | deque[object]
Method = Callable[..., object]
Pairs = Iterable[tuple[object, object]]
#: Classes whose methods are C code that is known; those of a class come before those of its bases.
_KNOWN: tuple[type, ...] = (OrderedDict, defaultdict, list, dict, set)
_BASES: tuple[type, ...] = (OrderedDict, list, dict, set, deque, tuple, frozenset)
_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType)


def _base(container: object) -> Any:
    """Returns the class that holds the contents."""
    return next(base for base in _BASES if isinstance(container, base))


def method_of(function: object, args: Sequence[object]) -> tuple[object, Method] | None:
    """Returns the container and the C function that a call of a method means.

    Args:
        function: What is called: ``o.append``, ``super().append``, or ``list.append`` with the
            container as its first argument.
        args: The arguments.
    """
    if isinstance(function, _DESCRIPTORS):
        kind, owner = function.__objclass__, args[0] if args else None
        return (owner, function) if kind in _KNOWN and isinstance(owner, kind) else None
    if not isinstance(function, (types.BuiltinMethodType, types.MethodWrapperType)):
        return None
    owner = function.__self__
    for kind in type(owner).__mro__:
        found = vars(kind).get(function.__name__) if kind in _KNOWN else None
        if isinstance(found, _DESCRIPTORS):
            return owner, found
    return None


def inherited(owner: object, method: str) -> Method | None:
    """Returns the C function that is a method of a container, ``None`` for other methods.

    Args:
        owner: What it belongs to.
        method: Name of the method.
    """
    function = getattr(type(owner), method, None)
    known = isinstance(function, _DESCRIPTORS) and function.__objclass__ in _KNOWN
    return function if known else None


def owners(value: object) -> Iterator[object]:
    """Yields an object and those whose memory it shows: of a view of an array the array.

    Args:
        value: Any object.
    """
    while value is not None:
        yield value
        if isinstance(value, memoryview):
            value = value.obj
        else:
            value = value.base if isinstance(value, np.ndarray) else None


def item_of(container: object, key: object) -> object:
    """Returns an item of a list, tuple or dict.

    Args:
        container: A list, dict or set.
        key: Index or key.
    """
    if isinstance(container, dict):
        return dict.__getitem__(container, key)
    base = list if isinstance(container, list) else tuple
    return base.__getitem__(container, key)  # pyright: ignore


def pairs(value: Mapping[Any, object]) -> Iterable[tuple[Any, object]]:
    """Returns the items of a dict in its order.

    Args:
        value: The dict.
    """
    return _base(value).items(value)


def items_in(value: object) -> Iterable[object]:
    """Returns the items of a container, the values of a dict.

    Args:
        value: Any object.
    """
    base = _base(value)
    return base.values(value) if issubclass(base, dict) else base.__iter__(value)  # pyright: ignore


def count_of(value: object) -> int:
    """Returns how many items a container has.

    Args:
        value: Any object.
    """
    return _base(value).__len__(value)


def plain_copy(value: object) -> Any:
    """Returns what a container holds as a dict or a list.

    Args:
        value: Any object.
    """
    base = _base(value)
    return dict(base.items(value)) if issubclass(base, dict) else [*base.__iter__(value)]  # pyright: ignore


def copy_of(container: Container) -> Container:
    """Returns a shallow copy of the same class, with the same attributes.

    Args:
        container: A list, dict or set.
    """
    if isinstance(container, dict):
        return dict_like(container)(pairs(container))
    base, kind = _base(container), type(container)
    if kind is base:
        return container.copy()
    new = kind.__new__(kind)
    if isinstance(container, deque):
        deque.__init__(new, (), container.maxlen)  # pyright: ignore
    _fill(new, base.__iter__(container))
    return _with_attributes(new, container)


def refill(container: Container, contents: Iterable[object]) -> None:
    """Gives a container the contents of a copy.

    Args:
        container: A list, dict or set.
        contents: The items, or the pairs of a dict.
    """
    _base(container).clear(container)
    _fill(container, pairs(contents) if isinstance(contents, dict) else items_in(contents))


def _fill(container: object, contents: Iterable[object]) -> None:
    base = _base(container)
    if isinstance(container, dict):
        for pair in contents:
            base.__setitem__(container, *pair)  # pyright: ignore
    else:
        for item in contents:
            (base.add if base is set else base.append)(container, item)  # pyright: ignore


def same_contents(a: object, b: object) -> bool:
    """Whether two containers hold the same objects in the same order.

    Args:
        a: A container.
        b: Another one.
    """
    if isinstance(a, set):
        return set.__eq__(a, b)
    base = _base(a)
    if base.__len__(a) != base.__len__(b):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return all(k is j and v is w for (k, v), (j, w) in zip(pairs(a), pairs(b)))
    return all(x is y for x, y in zip(base.__iter__(a), base.__iter__(b)))


def dict_like(value: Mapping[object, object]) -> Callable[[Pairs], Any]:
    """Returns what makes a dict of the same class from pairs, without running anything of it.

    Args:
        value: A dict of the class.
    """
    if type(value) is dict:
        return dict
    factory = value.default_factory if isinstance(value, defaultdict) else None
    attributes = getattr(value, "__dict__", {})
    shared = attributes is value  # its items are its attributes
    own = None if shared else attributes.copy()
    return partial(_dict_of_kind, type(value), factory, own)  # pyright: ignore


def _dict_of_kind(
    kind: type[dict[object, object]], factory: object, attributes: dict[str, object] | None,
    items: Pairs,
) -> object:  # fmt: skip
    new = kind.__new__(kind)
    if factory is not None:
        vars(defaultdict)["default_factory"].__set__(new, factory)
    _fill(new, items)
    if attributes is None:
        object.__setattr__(new, "__dict__", new)
    elif attributes:
        new.__dict__.update(attributes)
    return new


def list_like(value: object, items: Sequence[object]) -> object:
    """Returns a list or tuple of the same class with other items.

    Args:
        value: A list or tuple of the class.
        items: The items.
    """
    if hasattr(value, "_fields"):  # a named tuple
        return type(value)(*items)  # pyright: ignore
    return _with_attributes(of_kind(type(value), items), value)


def of_kind(kind: type, items: Sequence[object]) -> object:
    """Makes a list or tuple of a class without running anything of it.

    Args:
        kind: The class.
        items: The items.
    """
    if kind in (list, tuple):
        return kind(items)
    if issubclass(kind, tuple):
        return tuple.__new__(kind, items)
    new = list.__new__(kind)
    list.extend(new, items)
    return new


def _with_attributes(new: _Made, like: object) -> _Made:
    attributes = getattr(like, "__dict__", None)
    if attributes:
        new.__dict__.update(attributes)
    return new
