"""Attributes, closure variables and globals that are written where a tensor decides.

Such a place becomes a variable of the capture: reads and writes of it go to a frame that every
branch and loop sees, so it is merged and carried like any local variable. What the variable holds
at the end is written to the place after every call. The outermost branch or loop is recorded again
once a place turns out to need this.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tvmgraph.capture.frame import Frame, Unset
from tvmgraph.capture.function_source import FunctionSource
from tvmgraph.capture.protocol import Interpreting
from tvmgraph.capture.sources import ABSENT, Source

T = TypeVar("T")


class Hoist(BaseException):
    """Asks for recording the outermost branch or loop again; no error of user code.

    Attributes:
        source: The place that must become a variable.
        value: What it holds before.
        write: Writes its final value, unconditionally.
        what: What writing it is called in messages.
    """

    def __init__(
        self, source: Source, value: object, write: Callable[[object], None], what: str
    ) -> None:
        super().__init__(source.label)
        self.source, self.value, self.write, self.what = source, value, write, what


@dataclass
class _Variable:
    """What is read and written outside, as a variable."""

    hoist: Hoist
    name: str
    initial: object
    node: ast.AST
    frame: Frame


_NOWHERE = ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.Constant(None))


class Hoisted:
    """The places that are variables of a capture.

    Attributes:
        frame: The frame that holds them.
    """

    def __init__(self) -> None:
        self.frame = Frame(FunctionSource(_NOWHERE, "", "places"), {})
        self._variables: dict[object, _Variable] = {}

    def __bool__(self) -> bool:
        return bool(self._variables)

    def __contains__(self, key: object) -> bool:
        return key in self._variables

    def add(self, hoist: Hoist, node: ast.AST, frame: Frame) -> None:
        """Makes a place a variable that starts with what the place holds.

        Args:
            hoist: The place.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        key, value = hoist.source.key, hoist.value
        name = f"{hoist.source.label} #{len(self._variables)}"
        if value is ABSENT:
            value = Unset(f"{hoist.source.label} has no value before")
        self._variables[key] = _Variable(hoist, name, value, node, frame)
        self.frame.names[name] = value

    def read(self, key: object) -> Any:
        """Returns what a place holds at this point of the capture.

        Args:
            key: What identifies the place.
        """
        return self.frame.names[self._variables[key].name]

    def write(self, key: object, value: object) -> None:
        """Notes what a place holds from here on.

        Args:
            key: What identifies the place.
            value: What it holds.
        """
        self.frame.names[self._variables[key].name] = value

    def finish(self, interpreter: Interpreting) -> None:
        """Writes what the places hold at the end of the capture.

        Args:
            interpreter: The interpreter of the capture.
        """
        for v in self._variables.values():
            value = self.frame.names.get(v.name, v.initial)
            if value is v.initial:
                continue
            if isinstance(value, Unset):
                interpreter.refuse(
                    v.node, v.frame, f"{v.hoist.what} where a tensor decides: {value.why}",
                    "give it a value of one shape and dtype before, and on every path", verb="",
                )  # fmt: skip
            v.hoist.write(value)


# that one branch or loop may write: an object that code which is not interpreted makes is another
# one, with other places, each time
_MAX_PLACES = 64


class Recording(Interpreting, Protocol):
    """An interpreter that knows what it hoists."""

    @property
    def hoisted(self) -> Hoisted:
        """The places that are variables while a branch or loop is recorded."""
        ...


def recorded_again(
    interpreter: Recording, node: ast.AST, frame: Frame, record: Callable[[], T]
) -> T:
    """Records a branch or loop, again for every place that it turns out to write.

    Args:
        interpreter: Who records.
        node: The statement, for messages.
        frame: The frame that runs it.
        record: Records it; called with everything as it was before.
    """
    if interpreter.depth:  # the outermost one does it
        return record()
    for _ in range(_MAX_PLACES):
        snapshot = interpreter.snapshot(frame)
        try:
            return record()
        except Hoist as hoist:
            snapshot.restore()
            interpreter.hoisted.add(hoist.with_traceback(None), node, frame)  # holds no frames
    interpreter.refuse(
        node, frame, f"writing more than {_MAX_PLACES} places where a tensor decides",
        "write fewer attributes and variables there",
    )  # fmt: skip
