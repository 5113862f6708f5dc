"""The order of a graph's nodes: ONNX demands a topological one, not every program writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from tvmgraph.core.onnx_library import onnx
from tvmgraph.errors import LoadError

_NAMED = 6  # nodes of a cycle that an error lists


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yields the nodes of a graph and of those inside it.

    Args:
        graph: A graph of a model.
    """
    for node in graph.node:
        yield node
        for inner in graphs_of(node):
            yield from all_nodes(inner)


def in_order(nodes: Sequence[onnx.NodeProto]) -> Sequence[onnx.NodeProto]:
    """Returns nodes such that each comes after those that it reads, as far as possible in place.

    Args:
        nodes: All nodes of a graph, or of the body of a function.

    Raises:
        LoadError: if some read their own results, directly or by way of others.
    """
    makers = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    reads = [{makers[n] for n in names_read(node) if n in makers} for node in nodes]
    if all(i > max(needed, default=-1) for i, needed in enumerate(reads)):
        return nodes
    readers: list[list[int]] = [[] for _ in nodes]
    for i, needed in enumerate(reads):
        for j in needed:
            readers[j].append(i)
    missing = [len(needed) for needed in reads]
    ready = [i for i, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heappop(ready))
        for i in readers[order[-1]]:
            missing[i] -= 1
            if not missing[i]:
                heappush(ready, i)
    if len(order) < len(nodes):
        raise _cycle(nodes, reads, set(range(len(nodes))) - set(order))
    return [nodes[i] for i in order]


def require_order(graph: onnx.GraphProto) -> None:
    """Makes sure that the nodes of a graph, and of those inside it, form no cycle.

    Args:
        graph: A graph of a model.

    Raises:
        LoadError: if they do.
    """
    in_order(graph.node)
    for node in graph.node:
        for inner in graphs_of(node):
            require_order(inner)


def graphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yields the graphs among a node's attributes.

    Args:
        node: A node, as an ``If`` or ``Loop``.
    """
    for a in node.attribute:
        yield from [a.g, *a.graphs] if a.HasField("g") else a.graphs


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Yields what a node reads, and what the graphs inside it read from around it.

    Args:
        node: A node.
    """
    yield from filter(None, node.input)
    for graph in graphs_of(node):
        own = {v.name for v in (*graph.input, *graph.initializer)}
        own.update(name for inner in graph.node for name in inner.output)
        read = {name for inner in graph.node for name in names_read(inner)}
        yield from (read | {v.name for v in graph.output}) - own


def _cycle(nodes: Sequence[onnx.NodeProto], reads: Sequence[set[int]], left: set[int]) -> LoadError:
    """Describes a cycle: from any node that is left, every step back stays among those left."""
    at, seen = min(left), []
    while at not in seen:
        seen.append(at)
        at = min(reads[at] & left)
    cycle = seen[seen.index(at) :][::-1]
    return LoadError(
        f"{len(cycle)} nodes read their own results", op="onnx.load",
        got=_listed(nodes[i] for i in cycle[:_NAMED]) + (", ..." if len(cycle) > _NAMED else ""),
        fix="onnx.checker names the rule that is broken",
    )  # fmt: skip


def _listed(nodes: Iterable[onnx.NodeProto]) -> str:
    return ", ".join(f"{n.op_type}({n.name or n.output[0]})" for n in nodes)
