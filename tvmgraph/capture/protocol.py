"""What the helpers of a capture see of the interpreter that holds them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tvmgraph.capture.frame import Frame

if TYPE_CHECKING:
    from tvmgraph.capture.recorder import Recorder
    from tvmgraph.capture.settings import Settings
    from tvmgraph.core.tensor import Tensor


class Interpreting(Protocol):
    """The interpreter of one capture, see :class:`tvmgraph.capture.interpreter.Interpreter`."""

    recorder: Recorder
    settings: Settings
    depth: int
    effects: Any
    hoisted: Any
    impure: Any
    current: Any

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls anything that captured code calls."""
        ...

    def run_nested(self, function: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        """Calls a function that is defined inside interpreted code."""
        ...

    def refuse_change(self, function: Any, args: tuple[Any, ...]) -> None:
        """Leaves it to Python to change what is outside by code that cannot be read."""
        ...

    def snapshot(self, frame: Frame) -> Any:
        """Remembers everything that code running in a frame may change."""
        ...

    def is_symbolic(self, value: Any) -> bool:
        """Whether a value is a tensor whose elements differ from call to call."""
        ...

    def token(self) -> Tensor:
        """Returns the tensor that orders the prints of the graph."""
        ...

    def refuse(
        self, node: ast.AST, frame: Frame, what: str, fix: str = "",
        verb: str = "is not supported",
    ) -> NoReturn:  # fmt: skip
        """Raises the error for something that cannot be part of a graph."""
        ...
