"""A graph under construction: the function itself, or a region of control flow inside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tvmgraph.core.op import Op
from tvmgraph.core.state import scope_text
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import CaptureError, user_source
from tvmgraph.graph import Graph, GraphBuilder, Node, Role, Value
from tvmgraph.graph.simplify import fold
from tvmgraph.graph.text import format_attr

Given = Callable[[Value], np.ndarray | None]


def nothing(value: Value) -> np.ndarray | None:
    """Returns no elements: parameters of the function are not known.

    Args:
        value: A parameter.
    """


class Region:
    """Nodes being recorded, and what they read from further out.

    A region is closed: a value of an enclosing region comes in as a parameter.

    Args:
        name: Name of the graph.
        parent: The enclosing region, ``None`` for the function itself.

    Attributes:
        imports: Values of the parent by the parameter that brings them in.
        assigned: Tensors that were assigned here, with what they denoted before.
        made: Objects of the user that came into being here, by ``id``: what is written to them is
            seen nowhere else.
        random: The value that holds the random position, once something was drawn.
        blocks: Random blocks drawn since then.
    """

    def __init__(self, name: str, parent: Region | None = None) -> None:
        self.builder = GraphBuilder(name)
        self.parent = parent
        self.imports: dict[Value, Value] = {}
        self.assigned: dict[int, tuple[Tensor, Value | None]] = {}
        self.made: dict[int, object] = {}
        self.random: Value | None = None
        self.blocks = 0
        self._own: set[Value] = set()
        self._makers: dict[Value, tuple[int, Node]] = {}  # with the place among the nodes
        self._outer: dict[Value, Value] = {}  # what imports bring in
        self._consts: dict[int, Value] = {}

    def adopt(self, *values: Value) -> None:
        """Notes values that are defined here.

        Args:
            *values: The values.
        """
        self._own.update(values)

    def node(
        self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, object],
        types: Sequence[TensorType],
    ) -> tuple[Value, ...]:  # fmt: skip
        """Adds the node of an operator; returns its results.

        Args:
            op: The row of the operator.
            inputs: Its operands.
            attrs: Its attributes.
            types: Types of its results.
        """
        nodes = self.builder.nodes
        outputs = self.builder.node(op, inputs, attrs, types, user_source(), scope_text())
        self._makers.update(dict.fromkeys(outputs, (len(nodes), nodes[-1])))
        self.adopt(*outputs)
        return outputs

    def defines(self, value: Value) -> bool:
        """Whether a value is defined here.

        Args:
            value: A value of the graph.
        """
        return value in self._own

    def localise(self, value: Value) -> Value:
        """Returns the name a value has here, bringing it in if need be.

        Args:
            value: A value of the graph.

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
            self._outer[found] = outer
            self.adopt(found)
        return found

    def equal(
        self, op: Op, inputs: Sequence[Value], attrs: Mapping[str, object]
    ) -> tuple[Value, ...] | None:
        """Returns the results of an equal operator that binds a size, so that sizes are equal.

        Args:
            op: The row of the operator.
            inputs: Its operands.
            attrs: Its attributes.
        """
        for node in self.builder.nodes:
            alike = node.op is op and _same(node.attrs, attrs, op.traits.binds)
            if alike and all(self._are_equal(*p) for p in zip(node.inputs, inputs)):
                return node.outputs
        return None

    def _are_equal(self, a: Value, b: Value) -> bool:
        """Whether two values are the same, or computed in the same way."""
        todo, seen = [(a, b)], set[tuple[Value, Value]]()
        while todo:
            a, b = todo.pop()
            if a is b or (a, b) in seen:
                continue
            seen.add((a, b))
            consts = [self.builder.consts.get(v) for v in (a, b)]
            if consts[0] is not None and consts[1] is not None:
                if a.type is not b.type or consts[0].tobytes() != consts[1].tobytes():
                    return False
                continue
            if a not in self._makers or b not in self._makers:
                return False
            (_, first), (_, second) = self._makers[a], self._makers[b]
            if first.op is not second.op or first.regions:
                return False
            if first.op.traits.effect or first.outputs.index(a) != second.outputs.index(b):
                return False
            if len(first.inputs) != len(second.inputs) or not _same(first.attrs, second.attrs):
                return False
            todo += zip(first.inputs, second.inputs)
        return True

    def constant(self, tensor: Tensor) -> Value:
        """Returns the constant of a tensor that was built from host data.

        Args:
            tensor: A tensor of the capture, or of the outside.
        """
        found = self._consts.get(id(tensor))
        if found is None:
            found = self._consts[id(tensor)] = self.builder.const(tensor.array)
            self.adopt(found)
        return found

    def elements(self, value: Value, given: Given = nothing) -> np.ndarray | None:
        """Returns the elements of a small value that constants alone decide, ``None`` of others.

        Args:
            value: A value that is defined here.
            given: Returns the elements of a parameter of the function if they count as constants.
        """
        needed: dict[int, Node] = {}  # by their place, so that they can be put in order
        known: dict[Value, np.ndarray] = {}
        todo = [value]
        while todo:
            v = todo.pop()
            found = self.builder.consts.get(v)
            if found is None and v in self._outer and self.parent is not None:
                found = self.parent.elements(self._outer[v], given)
            if found is None and v not in self._makers:
                found = given(v)
                if found is None:
                    return None
            if found is not None:
                known[v] = found
                continue
            place, node = self._makers[v]
            if place not in needed:
                needed[place] = node
                todo += node.inputs
        nodes = [needed[place] for place in sorted(needed)]
        graph = Graph("constant", (), known, tuple(nodes), (value,))
        return fold(graph, certain=False).consts.get(value)

    def maker_of(self, value: object) -> Region | None:
        """Returns the region, this one or one around it, in which an object came into being.

        Args:
            value: Any object.
        """
        region: Region | None = self
        while region is not None and id(value) not in region.made:
            region = region.parent
        return region

    def state(self, type: TensorType, label: str) -> Value:
        """Adds a parameter that is no value of the parent: the state of a loop.

        Args:
            type: Its type.
            label: What it is called in messages.
        """
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


def _same(a: Mapping[str, object], b: Mapping[str, object], but: str = "") -> bool:
    """Whether attributes are equal; symbolic sizes are if they are written alike."""
    return all(n == but or format_attr(v) == format_attr(b[n]) for n, v in a.items())
