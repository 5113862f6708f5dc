"""Computing values again instead of writing them to memory, where that moves fewer bytes.

A kernel that reads ``x`` in half precision may as well compute ``float32(x) - mean`` itself as read
it from memory: that is half the bytes, and nobody has to write them. Statistics of a batch norm and
their derivatives are full of such values, each with several readers, which fusion alone keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from tvmgraph.core.op import Op
from tvmgraph.core.traits import Pattern
from tvmgraph.graph.ir import Graph, Node, Value

#: Elements from which a value is worth it, and how much smaller operands are that cost nothing.
_LEAST, _SMALLER = 1 << 18, 16
#: Operators that one value may be computed by.
_MOST = 12


def recompute_cheap(graph: Graph, least: int = _LEAST) -> Graph:
    """Returns the graph with cheap values computed by everyone who reads them.

    A value is cheap if few elementwise operators compute it from values that have no more bytes
    together than it has, and if no reader needs it in memory. Only those are looked at that sums
    over the first axis lead to, as those of channels do: kernels of whole rows hold rows in
    registers anyway.

    Args:
        graph: The graph.
        least: Elements of the smallest value that is computed again.
    """
    cheap = _Cheap(graph, least)
    readers = Counter(v for node in graph.nodes for v in node.inputs)
    if not any(readers[v] > 1 for v in cheap.made_by):
        return graph
    nodes = [n for node in graph.nodes for n in cheap.with_operands(node)]
    return Graph(graph.name, graph.params, graph.consts, tuple(nodes), graph.outputs, graph.writes)


class _Cheap:
    """The cheap values of a graph.

    Attributes:
        made_by: Cheap values, with their nodes.
    """

    def __init__(self, graph: Graph, least: int) -> None:
        self.made_by: dict[Value, Node] = {}
        self._sources: dict[Value, frozenset[Value]] = {}
        self._steps: dict[Value, int] = {}
        self._count = 0
        kept, wanted = set(graph.outputs), set[Value]()
        for node in reversed(graph.nodes):
            if not _computes_operands(node.op):
                kept.update(node.inputs)
            elif node.outputs[0] in wanted or 0 in node.attrs.get("axis", ()):
                wanted.update(node.inputs)
        for node in graph.nodes:
            if node.op.traits.cheap and node.outputs[0] in wanted - kept:
                self._consider(node, least)

    def _consider(self, node: Node, least: int) -> None:
        result = node.outputs[0]
        if not all(v.type.is_static for v in (*node.inputs, result)) or result.type.size < least:
            return
        large = [v for v in node.inputs if v.type.size * _SMALLER > result.type.size]
        sources = frozenset(s for v in large for s in self._sources.get(v, {v}))
        steps = 1 + sum(self._steps.get(v, 0) for v in node.inputs)
        if sum(map(_bytes, sources)) <= _bytes(result) and steps <= _MOST:
            self.made_by[result] = node
            self._sources[result], self._steps[result] = sources, steps

    def with_operands(self, node: Node) -> Iterator[Node]:
        """Yields what computes the cheap operands of a node for it alone, and the node."""
        if node.outputs[0] in self.made_by:
            return
        own: dict[Value, Value] = {}
        for value in node.inputs:
            yield from self._computed(value, own)
        yield replace(node, inputs=tuple(own.get(v, v) for v in node.inputs))

    def _computed(self, value: Value, own: dict[Value, Value]) -> Iterator[Node]:
        node = self.made_by.get(value)
        if node is None or value in own:
            return
        for operand in node.inputs:
            yield from self._computed(operand, own)
        self._count += 1
        own[value] = Value(f"again{self._count}", value.type)
        inputs = tuple(own.get(v, v) for v in node.inputs)
        yield replace(node, inputs=inputs, outputs=(own[value],))


def _computes_operands(op: Op) -> bool:
    """Whether kernels of an operator compute their elementwise operands themselves."""
    return op.traits.cheap or op.traits.pattern is Pattern.REDUCTION


def _bytes(value: Value) -> int:
    return value.type.size * value.type.dtype.itemsize
