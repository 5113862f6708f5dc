"""What a piece of interpreted code may change: local variables and the containers they reach."""

from __future__ import annotations

from collections import deque
from typing import Any

from tvmgraph.capture.expect import is_iterator
from tvmgraph.capture.frame import Frame
from tvmgraph.capture.nested import NestedFunction

Container = list[object] | dict[object, object] | set[object] | deque[object]


def copy_of(container: Container) -> object:
    """Returns a shallow copy of a container."""
    return container.copy()


def refill(container: Container, contents: Any) -> None:
    """Gives a container the contents of a copy."""
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(contents)
    else:
        container.update(contents)


def same_contents(a: Any, b: Any) -> bool:
    """Whether two containers hold the same objects in the same order."""
    if isinstance(a, set):
        return a == b
    if isinstance(a, dict):
        pairs = zip(a.items(), b.items())
        return len(a) == len(b) and all(k is j and v is w for (k, v), (j, w) in pairs)
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


class Snapshot:
    """The variables that a frame can see and the containers reachable through them.

    Args:
        frame: The frame about to run something.
        places: The frame of places outside that are variables.

    Attributes:
        names: The variables of every frame, as they were.
        contents: Every container with a copy of what it held, by ``id``.
        iterators: The iterators, by ``id``: an item that is taken cannot be put back.
    """

    def __init__(self, frame: Frame, places: Frame) -> None:
        self.names: list[tuple[Frame, dict[str, object]]] = []
        self.contents: dict[int, tuple[Container, object]] = {}
        self.iterators: dict[int, object] = {}
        self._seen: set[int] = set()
        self._add_frame(frame)
        self._add_frame(places)

    def _add_frame(self, frame: Frame) -> None:
        for f in frame.chain():
            if id(f) not in self._seen:
                self._seen.add(id(f))
                self.names.append((f, dict(f.names)))
                for value in f.names.values():
                    self._add(value)

    def _add(self, value: object) -> None:
        if isinstance(value, NestedFunction):
            self._add_frame(value.frame)
        elif isinstance(value, tuple):
            for v in value:
                self._add(v)
        elif isinstance(value, (list, dict, set)) and id(value) not in self.contents:
            self.contents[id(value)] = (value, copy_of(value))
            for v in value.values() if isinstance(value, dict) else value:
                self._add(v)
        elif is_iterator(value):
            self.iterators[id(value)] = value

    def now(self) -> tuple[list[dict[str, Any]], dict[int, Any]]:
        """Returns what the variables and the changed containers hold now."""
        names = [dict(f.names) for f, _ in self.names]
        changed = {
            k: copy_of(c) for k, (c, old) in self.contents.items() if not same_contents(c, old)
        }
        return names, changed

    def restore(self) -> None:
        """Puts everything back."""
        for f, names in self.names:
            f.names = dict(names)
        for container, old in self.contents.values():
            if not same_contents(container, old):
                refill(container, old)
