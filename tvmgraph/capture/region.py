"""A graph under construction: the function itself, or a region of control flow inside it."""

from __future__ import annotations

from typing import Any

from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import CaptureError, user_source
from tvmgraph.graph import Graph, GraphBuilder, Role, Value


class Region:
    """Nodes being recorded, and what they read from further out.

    A region is closed: a value of an enclosing region comes in as a parameter.

    Args:
        name: Name of the graph.
        parent: The enclosing region, ``None`` for the function itself.

    Attributes:
        imports: Values of the parent by the parameter that brings them in.
        assigned: Tensors that were assigned here, with what they denoted before.
        random: The value that holds the random position, once something was drawn.
        blocks: Random blocks drawn since then.
    """

    def __init__(self, name: str, parent: Region | None = None) -> None:
        self.builder = GraphBuilder(name)
        self.parent = parent
        self.imports: dict[Value, Value] = {}
        self.assigned: dict[int, tuple[Tensor, Value | None]] = {}
        self.random: Value | None = None
        self.blocks = 0
        self._own: set[Value] = set()
        self._consts: dict[int, Value] = {}

    def adopt(self, *values: Value) -> None:
        """Notes values that are defined here."""
        self._own.update(values)

    def defines(self, value: Value) -> bool:
        """Whether a value is defined here."""
        return value in self._own

    def localise(self, value: Value) -> Value:
        """Returns the name a value has here, bringing it in if need be.

        Raises:
            CaptureError: if the value was computed in a region that is over.
        """
        if value in self._own:
            return value
        if self.parent is None:
            raise CaptureError(
                "a tensor that only exists inside one branch or loop is used outside of it",
                op="jit", at=user_source(), fix="return it from the branch on both sides",
            )  # fmt: skip
        outer = self.parent.localise(value)
        found = self.imports.get(outer)
        if found is None:
            label = f"x{len(self.builder.params)}"
            found = self.imports[outer] = self.builder.param(value.type, Role.INPUT, label)
            self.adopt(found)
        return found

    def constant(self, tensor: Tensor) -> Value:
        """Returns the constant of a tensor that was built from host data."""
        found = self._consts.get(id(tensor))
        if found is None:
            found = self._consts[id(tensor)] = self.builder.const(tensor.array)
            self.adopt(found)
        return found

    def state(self, type: Any, label: str) -> Value:
        """Adds a parameter that is no value of the parent: the state of a loop."""
        value = self.builder.param(type, Role.INPUT, label)
        self.adopt(value)
        return value

    def close(self, outputs: list[Value], operands: list[Value], states: int = 0) -> Graph:
        """Finishes the region.

        Args:
            outputs: Its results.
            operands: Values of the parent in the order in which they are passed.
            states: How many parameters come before those.
        """
        builder = self.builder
        for v in operands:
            self.localise(v)
        by_value = {p.value: p for p in builder.params}
        order = [by_value[self.imports[v]] for v in operands]
        builder.params[:] = [*builder.params[:states], *order]
        return builder.build(outputs)
