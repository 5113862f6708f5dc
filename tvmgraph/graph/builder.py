"""GraphBuilder: the only way graphs come into being."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph.core.op import Op
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.graph.ir import CustomCall, Graph, Node, Param, Role, Value


class GraphBuilder:
    """Appends parameters, constants and nodes, then freezes them into a :class:`Graph`.

    Args:
        name: Name of the graph.
    """

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.params: list[Param] = []
        self.consts: dict[Value, np.ndarray] = {}
        self.nodes: list[Node] = []
        self.customs: list[CustomCall] = []
        self._count = 0

    def value(self, type: TensorType) -> Value:
        """Returns a fresh value that the caller will define.

        Args:
            type: Its type.
        """
        v = Value(str(self._count), type)
        self._count += 1
        return v

    def param(self, type: TensorType, role: Role = Role.INPUT, label: str = "") -> Value:
        """Adds a parameter and returns its value.

        Args:
            type: Type of the value.
            role: What it is for: an input, a parameter, a state.
            label: Its name for users; by default the number of the argument.
        """
        v = self.value(type)
        self.params.append(Param(v, role, label or f"arg{len(self.params)}"))
        return v

    def const(self, array: np.ndarray) -> Value:
        """Adds a constant and returns its value.

        Args:
            array: Its elements.
        """
        v = self.value(tensor_type(array.shape, array.dtype))
        self.consts[v] = array
        return v

    def node(
        self,
        op: Op,
        inputs: Iterable[Value],
        attrs: Mapping[str, Any],
        types: Iterable[TensorType],
        source: str = "",
        scope: str = "",
        regions: tuple[Graph, ...] = (),
    ) -> tuple[Value, ...]:
        """Adds a node whose output types are already known and returns its outputs.

        The sub-graphs of a control-flow row are in ``regions`` or among ``attrs``.

        Args:
            op: The operator.
            inputs: What it reads.
            attrs: Its attributes by name.
            types: Types of its outputs.
            source: Line of the user, ``file.py:12``.
            scope: The Cell around it, ``net.dense1``.
            regions: Sub-graphs of control flow, in the order of ``op.regions``.
        """
        regions = regions or tuple([attrs[r] for r in op.regions])
        own = {k: v for k, v in attrs.items() if k not in op.regions}
        outputs = tuple([self.value(t) for t in types])
        self.nodes.append(Node(op, tuple(inputs), own, outputs, source, scope, regions))
        return outputs

    def call(self, op: Op, inputs: Iterable[Value], **attrs: object) -> tuple[Value, ...]:
        """Adds a node, inferring its output types from the operator's rule.

        Args:
            op: The operator.
            inputs: What it reads.
            attrs: Its attributes by name.
        """
        inputs = tuple(inputs)
        return self.node(op, inputs, attrs, op.types(*[v.type for v in inputs], **attrs))

    def build(self, outputs: Iterable[Value], writes: Iterable[str] = ()) -> Graph:
        """Freezes everything into a graph with these outputs.

        Args:
            outputs: What the graph returns, new values of written parameters last.
            writes: Labels of the parameters that those are written to.
        """
        return Graph(
            self.name, tuple(self.params), dict(self.consts), tuple(self.nodes),
            tuple(outputs), tuple(writes), tuple(self.customs),
        )  # fmt: skip


def one_node(
    op: Op,
    inputs: Sequence[TensorType],
    attrs: Mapping[str, object],
    outputs: Sequence[TensorType],
    regions: tuple[Graph, ...] = (),
) -> Graph:
    """Returns the graph of a single operator.

    Args:
        op: The operator.
        inputs: Types of its operands.
        attrs: Its attributes.
        outputs: Types of its results.
        regions: Its sub-graphs.
    """
    builder = GraphBuilder("node")
    operands = [builder.param(t) for t in inputs]
    return builder.build(builder.node(op, operands, attrs, outputs, regions=regions))
