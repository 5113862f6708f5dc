"""Graph passes: folds from one graph to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tvmgraph.core.op import Reason
from tvmgraph.errors import TvmgraphError
from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.graph.text import format_attr

Pass = Callable[[Graph], Graph]

_LEAF = "leaf_value"  # the value of a Parameter that was assigned: (before, value)
_FOLD_LIMIT = 1 << 16  # elements; larger results are cheaper to compute than to store


def _rebuild(graph: Graph, nodes: list[Node], outputs: tuple[Value, ...], **changes: Any) -> Graph:
    consts = changes.get("consts", graph.consts)
    return Graph(graph.name, graph.params, consts, tuple(nodes), outputs, graph.writes)


def dce(graph: Graph) -> Graph:
    """Removes nodes and constants whose results nothing reads.

    Args:
        graph: The graph; written parameters and effects count as read.
    """
    live = set(graph.outputs)
    kept: list[Node] = []
    sizes = set[str]().union(*[v.type.roots for v in graph.outputs])
    for node in reversed(graph.nodes):
        binds = node.op.traits.binds
        if any(v in live for v in node.outputs) or (binds and node.attrs[binds] in sizes):
            kept.append(node)
            live.update(node.inputs)
            sizes.update(*[v.type.roots for v in node.outputs if not v.type.is_static])
    consts = {v: a for v, a in graph.consts.items() if v in live}
    return _rebuild(graph, kept[::-1], graph.outputs, consts=consts)


def cse(graph: Graph) -> Graph:
    """Computes equal expressions once (operators with regions and collectives are left alone).

    Args:
        graph: The graph.
    """
    seen: dict[object, Node] = {}
    renamed: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        node = with_inputs(node, renamed)
        key = (node.op.name, node.inputs, tuple(map(format_attr, node.attrs.values())))
        alone = node.regions or node.op.traits.collective  # what is gathered twice is freed between
        twin = None if alone else seen.setdefault(key, node)
        if twin is None or twin is node:
            nodes.append(node)
        else:
            renamed.update(zip(node.outputs, twin.outputs))
    return _rebuild(graph, nodes, tuple(renamed.get(v, v) for v in graph.outputs))


def with_inputs(node: Node, renamed: dict[Value, Value]) -> Node:
    """Returns a node with values replaced where it reads them (its regions are closed).

    Args:
        node: The node.
        renamed: What stands for a value, by the value; others stay.
    """
    inputs = tuple(renamed.get(v, v) for v in node.inputs)
    if inputs == node.inputs:
        return node
    return Node(node.op, inputs, node.attrs, node.outputs, node.source, node.scope, node.regions)


def substitute(graph: Graph, renamed: dict[Value, Value]) -> Graph:
    """Returns the graph with values replaced wherever they are read.

    Args:
        graph: The graph; its regions are closed and stay as they are.
        renamed: What stands for a value, by the value; others stay.
    """
    nodes = [with_inputs(n, renamed) for n in graph.nodes]
    return _rebuild(graph, nodes, tuple(renamed.get(v, v) for v in graph.outputs))


def fold(graph: Graph, certain: bool = True) -> Graph:
    """Evaluates nodes with constant inputs, or none, with the operators' NumPy column.

    Args:
        graph: A graph.
        certain: Whether a call runs all nodes. If not, those that cannot be evaluated are kept.

    Raises:
        TvmgraphError: An operator refuses its constants, such as an index out of range.
    """
    consts = dict(graph.consts)
    nodes: list[Node] = []
    for node in graph.nodes:
        if not _is_foldable(node, consts):
            nodes.append(node)
            continue
        try:
            result = node.op.eager(*[consts[v] for v in node.inputs], **node.attrs)
        except TvmgraphError as error:
            if certain:
                got = ", ".join(str(v.type) for v in node.inputs)
                raise error.locate(f"ops.{node.op.name}", got, node.source) from error.__cause__
            nodes.append(node)
            continue
        results = result if node.op.multi else (result,)
        consts.update((v, np.asarray(r)) for v, r in zip(node.outputs, results))
    return _rebuild(graph, nodes, graph.outputs, consts=consts)


def _is_foldable(node: Node, consts: dict[Value, np.ndarray]) -> bool:
    small = all(v.type.is_static and v.type.size <= _FOLD_LIMIT for v in node.outputs)
    known = all(v in consts for v in node.inputs)
    if node.op.traits.effect or node.op.traits.collective:
        return False
    return known and small and not node.regions and not isinstance(node.op.lower, Reason)


def absorb_transposes(graph: Graph) -> Graph:
    """Lets matrix products read transposed operands in place: ``x @ w.T`` copies no ``w.T``.

    Args:
        graph: The graph.
    """
    sources: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op.name == "transpose" and _swaps_last_two(node.attrs["dims"]):
            sources[node.outputs[0]] = node.inputs[0]
        if node.op.reads_transposed and any(v in sources for v in node.inputs):
            node = _absorb(node, sources)
        nodes.append(node)
    return _rebuild(graph, nodes, graph.outputs)


def _swaps_last_two(dims: tuple[int, ...]) -> bool:
    n = len(dims)
    return n >= 2 and dims == (*range(n - 2), n - 1, n - 2)


def _absorb(node: Node, sources: dict[Value, Value]) -> Node:
    attrs = dict(node.attrs)
    inputs = list(node.inputs)
    for i, flag in enumerate(("transpose_a", "transpose_b")):
        if inputs[i] in sources:
            inputs[i] = sources[inputs[i]]
            attrs[flag] = not attrs[flag]
    return replace(node, inputs=tuple(inputs), attrs=attrs)


def simplify(graph: Graph, certain: bool = True) -> Graph:
    """Runs the passes every compile starts with, in regions too: fold, transposes into products,
    cse, dce.

    Args:
        graph: A graph.
        certain: Whether a call runs all nodes: those of a region may belong to another branch.
    """
    return dce(cse(absorb_transposes(fold(_simplify_regions(graph), certain))))


def _simplify_regions(graph: Graph) -> Graph:
    if not any(n.regions for n in graph.nodes):
        return graph
    nodes = [
        replace(n, regions=tuple(simplify(r, certain=False) for r in n.regions))
        for n in graph.nodes
    ]
    return _rebuild(graph, nodes, graph.outputs)


def quiet(graph: Graph) -> Graph:
    """Returns the graph without its prints: for computing it again, backwards or elsewhere.

    Args:
        graph: The graph.
    """
    if not any(node.op.traits.effect for node in graph.walk()):
        return graph
    renamed: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op.traits.effect:
            token = node.inputs[0]
            renamed[node.outputs[0]] = renamed.get(token, token)
            continue
        changed = with_inputs(node, renamed)
        nodes.append(replace(changed, regions=tuple(map(quiet, node.regions))))
    return _rebuild(graph, nodes, tuple([renamed.get(v, v) for v in graph.outputs]))


def read_by(node: Node) -> tuple[Value, ...]:
    """Returns the inputs that a node computes with.

    What a Parameter was before it is assigned only says where its cotangent goes.

    Args:
        node: A node of a graph.
    """
    return node.inputs[1:] if node.op.name == _LEAF else node.inputs


def pulled_back_to(node: Node) -> tuple[Value, ...]:
    """Returns the inputs that cotangents of a node may go to; see :func:`read_by`.

    Args:
        node: A node of a graph.
    """
    return node.inputs[:1] if node.op.name == _LEAF else node.inputs
