"""Symbolic sizes of a graph: their values in a call, and the graph for fixed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tvmgraph.core.types import Dim, TensorType
from tvmgraph.graph.ir import Graph, Node, Param, Value


def is_symbolic(graph: Graph) -> bool:
    """Whether a parameter has a symbolic size.

    Args:
        graph: The graph.
    """
    return not all(p.value.type.is_static for p in graph.params)


def sizes_of(values: Iterable[Value], shapes: Iterable[Sequence[int]]) -> dict[str, int]:
    """Returns the number that every root stands for when values have these shapes.

    Args:
        values: Values whose types have symbolic sizes.
        shapes: The shape of each, in numbers.
    """
    found: dict[str, int] = {}
    for v, shape in zip(values, shapes):
        for d, size in zip(v.type.shape, shape):
            if isinstance(d, Dim) and d.is_root:
                found.setdefault(d.text, size)
    return found


def fixed_keywords(node: Node, sizes: Mapping[str, int | Dim]) -> dict[str, object]:
    """Returns a node's attributes and regions with symbolic sizes replaced.

    Args:
        node: The node.
        sizes: A number, or another size, for the name of every symbolic size at a root, such as
            ``{"n": 4}``.
    """
    return {
        name: with_sizes(value, sizes) if isinstance(value, Graph) else _fixed(value, sizes)
        for name, value in node.keywords.items()
    }


def with_sizes(graph: Graph, sizes: Mapping[str, int | Dim]) -> Graph:
    """Returns the graph with symbolic sizes replaced, regions included.

    Args:
        graph: The graph.
        sizes: A number, or another size, for the name of every symbolic size at a root, such as
            ``{"n": 4}``.
    """
    renamed: dict[Value, Value] = {}

    def value(v: Value) -> Value:
        found = renamed.get(v)
        if found is None:
            found = renamed[v] = Value(v.name, fixed_type(v.type, sizes))
        return found

    def node(n: Node) -> Node:
        attrs = {k: _fixed(a, sizes) for k, a in n.attrs.items()}
        regions = tuple(with_sizes(r, sizes) for r in n.regions)
        inputs, outputs = (tuple(map(value, vs)) for vs in (n.inputs, n.outputs))
        return Node(n.op, inputs, attrs, outputs, n.source, n.scope, regions)

    params = tuple(Param(value(p.value), p.role, p.label) for p in graph.params)
    consts = {value(v): a for v, a in graph.consts.items()}
    nodes = tuple(map(node, graph.nodes))
    outputs = tuple(map(value, graph.outputs))
    return Graph(graph.name, params, consts, nodes, outputs, graph.writes)


def fixed_type(type: TensorType, sizes: Mapping[str, int | Dim]) -> TensorType:
    """Returns a type with symbolic sizes replaced.

    Args:
        type: A type, perhaps with symbolic sizes.
        sizes: A number, or another size, for the name of every symbolic size at a root, such as
            ``{"n": 4}``.
    """
    return type if type.is_static else type.with_shape(_fixed(type.shape, sizes))


def _fixed(value: object, sizes: Mapping[str, int | Dim]) -> Any:
    if isinstance(value, Dim):
        return value.substitute(sizes)
    if isinstance(value, tuple):
        return tuple(_fixed(v, sizes) for v in cast("tuple[Any, ...]", value))
    return value
