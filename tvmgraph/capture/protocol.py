"""What the helpers of a capture see of the interpreter that holds them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tvmgraph.capture.frame import Frame

if TYPE_CHECKING:
    from tvmgraph.capture.recorder import Recorder
    from tvmgraph.capture.settings import Settings
    from tvmgraph.core.tensor import Tensor


class Outside(Protocol):
    """What of :class:`tvmgraph.capture.effects.Effects` other helpers ask."""

    def is_outside(self, container: object) -> bool:
        """Whether a container existed before the call.

        Args:
            container: A list, dict or set.
        """
        ...

    def existed(self, value: object) -> bool:
        """Whether an object is known to have been there before the call.

        Args:
            value: Any object.
        """
        ...

    def seen(self, value: object, owner: object = None) -> object:
        """Notes a value that existed before the call, and returns it.

        Args:
            value: Any object.
            owner: What it belongs to.
        """
        ...


class ItemWrites(Protocol):
    """What of :class:`tvmgraph.capture.impure.ImpureCalls` other helpers ask."""

    def write_item(self, owner: object) -> None:
        """Deals with an assignment to an item of an object.

        Args:
            owner: What it belongs to.
        """
        ...


class Restorable(Protocol):
    """A state that can come back, see :class:`tvmgraph.capture.snapshot.Snapshot`."""

    def restore(self) -> None:
        """Makes everything what it was."""
        ...


class Interpreting(Protocol):
    """The interpreter of one capture, see :class:`tvmgraph.capture.interpreter.Interpreter`."""

    recorder: Recorder
    settings: Settings
    depth: int

    @property
    def effects(self) -> Outside:
        """The side effects so far."""
        ...

    @property
    def impure(self) -> ItemWrites:
        """What deals with code that does not only compute."""
        ...

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        """Calls anything that captured code calls.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        ...

    def run_unchanging(
        self, function: Any, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> object:
        """Runs code that is not interpreted, which may not change what is older than the call.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
            kwargs: Its arguments by name.
        """
        ...

    def iterate(self, value: object, node: ast.AST, frame: Frame) -> Iterator[Any]:
        """Iterates over the items of something.

        Args:
            value: What is iterated over.
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
        """
        ...

    def refuse_change(self, function: object, args: tuple[object, ...]) -> None:
        """Leaves it to Python to change what is outside by code that cannot be read.

        Args:
            function: What is called, or looked at.
            args: Its arguments by position.
        """
        ...

    def snapshot(self, frame: Frame) -> Restorable:
        """Remembers everything that code running in a frame may change.

        Args:
            frame: The frame.
        """
        ...

    def is_symbolic(self, value: Any) -> bool:
        """Whether a value is a tensor whose elements differ from call to call.

        Args:
            value: Any object.
        """
        ...

    def token(self) -> Tensor:
        """Returns the tensor that orders the prints of the graph."""
        ...

    def refuse(
        self, node: ast.AST, frame: Frame, what: str, fix: str = "",
        verb: str = "is not supported",
    ) -> NoReturn:  # fmt: skip
        """Raises the error for something that cannot be part of a graph.

        Args:
            node: The code that does it, for messages.
            frame: The frame in which that code runs.
            what: What cannot be part of a graph.
            fix: What the user may do.
            verb: What follows ``what`` in the message.
        """
        ...

    def refuse_here(self, what: str, fix: str = "", verb: str = "is not supported") -> NoReturn:
        """Raises it for what the running code does.

        Args:
            what: What cannot be part of a graph.
            fix: What the user may do.
            verb: What follows ``what`` in the message.
        """
        ...
