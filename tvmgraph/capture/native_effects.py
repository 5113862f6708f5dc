"""What objects held before code that is not interpreted could change them.

Interpreted code is known step by step, so a capture that fails takes it back step by step. What a
function in C, or one without source, does to the objects it gets is not known: they are copied
first. A capture that fails may be tried again, or run with graph breaks; either must not find it
done.
"""

from __future__ import annotations

import array
import builtins
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tvmgraph.capture.checks import attributes, is_plain_object
from tvmgraph.capture.containers import copy_of, count_of, items_in, refill, same_contents

_MAX_DEPTH = 5  # of objects in objects
_MAX_ITEMS = 4096  # of containers whose items are looked at
_MAX_BYTES = 1 << 26  # of arrays: a data set that a function reads is not copied

_NOTED = (list, dict, set)  # whose changes by interpreted code are known
_FILLED = (*_NOTED, deque)


class NativeEffects:
    """The objects that were handed to code which is not interpreted, and those of the outside."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[object, object]] = {}
        self._entered: dict[int, object] = {}
        self._outside: set[int] = set()

    def note(self, value: object) -> None:
        """Copies what an object from outside holds, if that is not done yet.

        Args:
            value: Any object.
        """
        if self._note(value) is not None:
            self._outside.add(id(value))

    def _note(self, value: object) -> object:
        if id(value) not in self._kept:
            content = _content(value)
            if content is None:
                return None
            self._kept[id(value)] = value, content
        return self._kept[id(value)][1]

    def keep(self, *values: object, depth: int = 0, outside: bool = False) -> None:
        """Copies what some objects hold, and the objects in them.

        Args:
            values: The objects.
            depth: How many objects enclose them.
            outside: Whether they are known to be from outside, or held by attributes: interpreted
                code that changes such a container says so.
        """
        for value in values:
            if isinstance(value, memoryview):
                value = value.obj
            if id(value) in self._entered or depth > _MAX_DEPTH:
                continue
            content = value if isinstance(value, tuple) else self._note(value)
            if content is not None:
                self._entered[id(value)] = value
                if outside:
                    self._outside.add(id(value))
                known = id(value) in self._outside or not isinstance(value, (*_FILLED, tuple))
                self.keep(*_inside(content), depth=depth + 1, outside=known)

    def put_back(self) -> None:
        """Gives every object what it held; those that hold it still are not touched."""
        for value, content in self._kept.values():
            if not _holds(value, content):
                _refill(value, content)

    def changed(self, is_old: Callable[[object], bool]) -> Iterator[tuple[object, object]]:
        """Yields objects from outside that hold something else by now, with what they hold.

        Args:
            is_old: Whether an object is known to be from before the call.
        """
        for key, (value, content) in self._kept.items():
            outside = key in self._outside or is_old(value)
            if (
                outside
                and not isinstance(content, (bytes, np.ndarray))
                and not _holds(value, content)
            ):
                yield value, _content(value)

    @contextlib.contextmanager
    def taking(self) -> Iterator[None]:
        """What code changes meanwhile that runs outside of the capture, once, is not put back."""
        before = self.moment()
        try:
            yield
        finally:
            for key, (value, content) in before.items():
                if not _holds(value, content):
                    self._kept[key] = value, _content(value)

    def moment(self) -> dict[int, tuple[object, object]]:
        """Returns what the objects hold now, for :meth:`rewind`."""
        return {key: (value, _content(value)) for key, (value, _) in self._kept.items()}

    def rewind(
        self, moment: Mapping[int, tuple[object, object]], is_outside: Callable[[object], bool]
    ) -> object:
        """Gives every object what it held at a moment; returns one that held something else.

        What came into being since then does not count, nor do containers of the captured function,
        which interpreted code changes.

        Args:
            moment: From :meth:`moment`.
            is_outside: Whether a container existed before the capture.
        """
        found: Any = None
        for key, (value, before) in self._kept.items():
            inner = key not in self._outside and not is_outside(value)
            if inner and (key not in moment or isinstance(value, _NOTED)):
                continue
            before = moment.get(key, (value, before))[1]
            if not _holds(value, before):
                _refill(value, before)
                found = value if found is None else found
        return found


def contents_of(
    values: Iterable[object], is_old: Callable[[object], bool]
) -> list[tuple[object, object]]:
    """Returns the objects from before the call that values lead to, with what they hold.

    Args:
        values: What is handed to code that is not interpreted.
        is_old: Whether an object is known to be from before the call; what it holds is, too.
    """
    found: dict[int, tuple[object, object]] = {}
    todo = [(v, False, 0) for v in values]
    while todo:
        value, old, depth = todo.pop()
        if isinstance(value, memoryview):
            value = value.obj
        content = value if isinstance(value, tuple) else _content(value)
        if content is None or id(value) in found or depth > _MAX_DEPTH:
            continue
        old = old or is_old(value)
        if old and value is not content:
            found[id(value)] = value, content
        todo += [(v, old, depth + 1) for v in _inside(content)]
    return [*found.values()]


def first_changed(contents: Iterable[tuple[object, object]]) -> object:
    """Returns the first object that does not hold what it held, ``None`` without one.

    Args:
        contents: Objects, each with a copy of what it held.
    """
    return next((value for value, content in contents if not _holds(value, content)), None)


def _content(value: object) -> Any:
    """Returns a copy of what an object holds; ``None`` for one that does not change."""
    if value is vars(builtins):  # in the globals of every module; this code cannot run without it
        return None
    if isinstance(value, _FILLED):
        return copy_of(value)
    if isinstance(value, np.ndarray):
        small = value.nbytes <= _MAX_BYTES
        return value.copy() if small and value.flags.writeable else None
    if isinstance(value, (bytearray, array.array)):
        return bytes(value)
    return attributes(value) if is_plain_object(value) else None


def _inside(content: object) -> tuple[object, ...]:
    if not isinstance(content, (*_FILLED, tuple)) or count_of(content) > _MAX_ITEMS:
        return ()
    return (*items_in(content),)


def _holds(value: Any, content: Any) -> bool:
    """Whether an object holds what it held."""
    if isinstance(value, _FILLED):
        return same_contents(value, content)
    now = _content(value)
    if isinstance(value, np.ndarray):
        return now.tobytes() == content.tobytes()
    return now == content if isinstance(now, bytes) else same_contents(now, content)


def _refill(value: Any, content: Any) -> None:
    if isinstance(value, _FILLED):
        refill(value, content)
    elif isinstance(value, np.ndarray):
        np.copyto(value, content)
    elif isinstance(value, array.array):
        del value[:]
        value.frombytes(content)
    elif isinstance(value, bytearray):
        with contextlib.suppress(BufferError):  # a view holds it at its new size
            value[:] = content
    else:
        _set_attributes(value, content)


def _set_attributes(value: object, before: dict[str, Any]) -> None:
    now = attributes(value)
    for name in now.keys() - before.keys():
        object.__delattr__(value, name)
    for name, held in before.items():
        if now.get(name, value) is not held:
            object.__setattr__(value, name, held)
