"""Frames of interpreted functions: where names live."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Mapping
from dataclasses import dataclass, field

from tvmgraph.capture.function_source import FunctionSource
from tvmgraph.core.tensor import Tensor

Flag = bool | Tensor  #: a tensor where one decides


class Unset:
    """What a name holds that has no value on some path.

    Args:
        why: What to tell whoever reads it.
        node: The branch or loop after which it has no value.
        kind: What Python, or MindSpore, raises for that.
    """

    def __init__(
        self, why: str, node: ast.AST | None = None, kind: type[Exception] = UnboundLocalError
    ) -> None:
        self.why, self.node, self.kind = why, node, kind


class Chosen(Unset):
    """One of several functions, as tensors decide: it can be called, and no more is known of it.

    Args:
        why: What to tell whoever reads it.
        node: The branch that set it.
        condition: Whether it is ``then``.
        then: A function or Cell that was there before the branch, or one that was chosen in it.
        orelse: Another one.
    """

    def __init__(
        self, why: str, node: ast.AST | None, condition: Tensor, then: object, orelse: object
    ) -> None:
        super().__init__(why, node)
        self.condition, self.then, self.orelse = condition, then, orelse


@dataclass(eq=False)
class Frame:
    """One activation of an interpreted function.

    Attributes:
        source: Its definition.
        globals: Its module's names.
        names: Local variables.
        cells: Closure cells of a real function.
        parent: The frame a nested function was defined in.
        node: What is being evaluated, for locations.
        given: The values of its parameters when it was called.
        caller: The frame that called it, ``None`` for that of the captured function.
    """

    source: FunctionSource
    globals: dict[str, object]
    names: dict[str, object] = field(default_factory=dict)
    cells: dict[str, types.CellType] = field(default_factory=dict)
    parent: Frame | None = None
    node: ast.AST | None = None
    given: tuple[object, ...] = ()
    caller: Frame | None = None

    def chain(self) -> list[Frame]:
        """Returns this frame and those it can see, innermost first."""
        return [self, *(self.parent.chain() if self.parent is not None else [])]

    def owner(self, name: str) -> Frame | None:
        """Returns the frame in which a name is local, or ``None``.

        Args:
            name: Name of a variable.
        """
        if name in self.source.globals:
            return None
        if name in self.source.assigned:
            return self
        return self.parent.owner(name) if self.parent is not None else None

    def cell(self, name: str) -> types.CellType | None:
        """Returns the closure cell of a name, or ``None``.

        Args:
            name: Name of a variable.
        """
        for frame in self.chain():
            if name in frame.source.globals:
                return None
            if name in frame.cells:
                return frame.cells[name]
        return None

    def outside(self, name: str, overlay: Mapping[tuple[int, str], object]) -> object:
        """Looks a name up in globals and builtins.

        Args:
            name: Name of a variable.
            overlay: What the capture has written, by the id of the globals and the name.

        Raises:
            NameError: if there is no such name.
        """
        found = overlay.get((id(self.globals), name), self.globals.get(name, _MISSING))
        if found is _MISSING:
            found = getattr(builtins, name, _MISSING)
        if found is _MISSING:
            raise NameError(f"name {name!r} is not defined")
        return found


_MISSING = object()


@dataclass
class Completion:
    """How a statement ended.

    Every flag is ``False``, ``True`` or, where a tensor decides, a ``bool[]`` tensor.

    Attributes:
        returned: A ``return`` was executed.
        broke: A ``break`` was executed.
        continued: A ``continue`` was executed.
        value: A one-tuple with what was returned, where something may have been.
        gone: Whether it left for sure, although a tensor decides which way.
    """

    returned: Flag = False
    broke: Flag = False
    continued: Flag = False
    value: tuple[object] | None = None
    gone: bool = False

    def flags(self) -> tuple[Flag, Flag, Flag]:
        """Returns the three flags."""
        return self.returned, self.broke, self.continued

    @property
    def normal(self) -> bool:
        """Whether the next statement runs for sure."""
        return all(f is False for f in self.flags())

    @property
    def left(self) -> bool:
        """Whether the next statement is skipped for sure."""
        return self.gone or any(f is True for f in self.flags())
