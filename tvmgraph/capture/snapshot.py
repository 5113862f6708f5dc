"""What a piece of interpreted code may change: local variables and the containers they reach."""

from __future__ import annotations

from typing import Any

from tvmgraph.capture.checks import is_iterator
from tvmgraph.capture.containers import Container, copy_of, refill, same_contents
from tvmgraph.capture.frame import Frame
from tvmgraph.capture.nested import NestedFunction


class Snapshot:
    """The variables that a frame can see and the containers reachable through them.

    Args:
        frame: The frame about to run something.
        hoisted: The frame of what lives outside and is a variable of the capture.

    Attributes:
        names: The variables of every frame, as they were.
        contents: Every container with a copy of what it held, by ``id``.
        iterators: The iterators, by ``id``: an item that is taken cannot be put back.
    """

    def __init__(self, frame: Frame, hoisted: Frame) -> None:
        self.names: list[tuple[Frame, dict[str, object]]] = []
        self.contents: dict[int, tuple[Container, Container]] = {}
        self.iterators: dict[int, object] = {}
        self._seen: set[int] = set()
        self._add_frame(frame)
        self._add_frame(hoisted)

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
