"""Applies every node of a graph through the dispatch point: eagerly, traced or on a tape."""

from __future__ import annotations

from collections.abc import Sequence

from tvmgraph.core.dispatch import apply
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.errors import ArgumentError
from tvmgraph.graph.ir import Graph, Role, Value


def replay(
    graph: Graph, inputs: Sequence[Tensor], others: Sequence[Tensor] = ()
) -> list[Tensor]:
    """Runs a graph with the current interpreter.

    Args:
        graph: The graph.
        inputs: Tensors for its INPUT parameters, in order.
        others: Tensors for its remaining parameters, in order.

    Returns:
        One tensor per output.
    """
    given, rest = iter(inputs), iter(others)
    expected = sum(p.role is Role.INPUT for p in graph.params)
    if len(inputs) != expected:
        raise ArgumentError(f"{graph.name} takes {expected} inputs, not {len(inputs)}", op="replay")
    known: dict[Value, Tensor] = {
        p.value: next(given) if p.role is Role.INPUT else next(rest) for p in graph.params
    }
    known.update((v, tensor_from_numpy(a)) for v, a in graph.consts.items())
    for node in graph.nodes:
        result = apply(node.op, tuple(known[v] for v in node.inputs), node.keywords)
        known.update(zip(node.outputs, result if node.op.multi else (result,)))
    return [known[v] for v in graph.outputs]
