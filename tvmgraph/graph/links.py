"""Who makes and who reads the values of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tvmgraph.graph.ir import Graph, Node, Value


class Links:
    """The nodes of a graph by the values they make and read.

    Attributes:
        graph: The graph.
        makers: The node that makes a value.
        users: The nodes that read a value, once for every time they do.
        uses: How often a value is read, as an output of the graph too.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers: dict[Value, Node] = {v: node for node in graph.nodes for v in node.outputs}
        self.users: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for v in node.inputs:
                self.users.setdefault(v, []).append(node)
        self.uses = Counter(v for node in graph.nodes for v in node.inputs)
        self.uses.update(graph.outputs)

    def maker(self, value: Value, *names: str) -> Node | None:
        """The maker of a value that is read once, if it is one of ``names``.

        Args:
            value: A value of the graph.
            names: Names of operators.
        """
        node = self.makers.get(value)
        return node if node and node.op.name in names and self.uses[value] == 1 else None

    def readers(self, value: Value) -> Sequence[Node]:
        """The nodes that read a value; none if it is an output of the graph too.

        Args:
            value: A value of the graph.
        """
        found = self.users.get(value, [])
        return found if len(found) == self.uses[value] else ()

    def reader(self, value: Value, name: str) -> Node | None:
        """The only reader of a value, if it is a ``name``.

        Args:
            value: The value.
            name: Name of an operator.
        """
        found = self.readers(value)
        return found[0] if len(found) == 1 and found[0].op.name == name else None

    def number(self, value: Value) -> float | None:
        """The value of a constant of one element.

        Args:
            value: A value of the graph.
        """
        array = self.graph.consts.get(value)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None
