"""Applies every node of a graph through the dispatch point: eagerly, traced or on a tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph.core.dispatch import apply
from tvmgraph.core.sizes import Dim
from tvmgraph.core.state import state
from tvmgraph.core.symbols import being_sizes
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.errors import ArgumentError
from tvmgraph.graph.ir import CustomCall, Graph, Node, Role, Value
from tvmgraph.graph.sizes import fixed_keywords, sizes_of


def replay(graph: Graph, inputs: Sequence[Tensor], others: Sequence[Tensor] = ()) -> list[Tensor]:
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
    sizes: dict[str, int | Dim] = {}
    _learn(sizes, [p.value for p in graph.params], known)
    ends: dict[int, CustomCall] = {}
    for c in graph.customs:  # of nested calls the outermost counts
        if c.start not in ends or c.end > ends[c.start].end:
            ends[c.start] = c
    i = 0
    with state.computing_in(None):
        while i < len(graph.nodes):
            custom = ends.get(i) if state.tapes else None
            end = i + 1 if custom is None else custom.end
            if custom is not None and custom.end > i:
                _run_custom(graph, custom, known, sizes)
            else:
                _run_nodes(graph.nodes[i:end], known, sizes)
            i = max(end, i + 1)
    return [known[v] for v in graph.outputs]


def _learn(
    sizes: dict[str, int | Dim], values: Sequence[Value], known: dict[Value, Tensor]
) -> None:
    """Notes what symbols of the graph are by now: numbers, or sizes of the capture this is in."""
    symbolic = [v for v in values if not v.type.is_static]
    if symbolic:
        shapes: list[Any] = [known[v].aval.shape for v in symbolic]
        sizes.update(sizes_of(symbolic, shapes))


def _run_nodes(
    nodes: Sequence[Node], known: dict[Value, Tensor], sizes: dict[str, int | Dim]
) -> None:
    for node in nodes:
        args = tuple(known[v] for v in node.inputs)
        # attributes and types in regions have symbols of the graph
        keywords = fixed_keywords(node, sizes) if sizes else node.keywords
        with being_sizes(*[d for v in node.outputs if v.type.roots for d in v.type.shape]):
            result = apply(node.op, args, keywords)
        known.update(zip(node.outputs, result if node.op.multi else (result,)))
        _learn(sizes, node.outputs, known)


def _run_custom(
    graph: Graph, custom: CustomCall, known: dict[Value, Tensor], sizes: dict[str, int | Dim]
) -> None:
    """Runs a call with a derivative of its own: the tapes see it as one entry."""
    tapes, state.tapes = state.tapes, ()
    try:
        _run_nodes(graph.nodes[custom.start : custom.end], known, sizes)
    finally:
        state.tapes = tapes
    for node in graph.nodes[custom.start : custom.end]:
        if node.op.name == "leaf_value":  # what is read of a Parameter later is the Parameter's
            read, written = (tuple([known[v] for v in vs]) for vs in (node.inputs, node.outputs))
            for tape in tapes:
                tape.record(node.op, read, {}, written)
    inputs = tuple(known[v].snapshot() for v in custom.inputs)
    outputs = tuple(known[v] for v in custom.outputs)
    kept = [o.snapshot() for o in outputs]
    for tape in tapes:
        tape.record_call(  # pyright: ignore[reportAttributeAccessIssue]
            custom.name, inputs, outputs, lambda g: custom.pull_back(inputs, kept, g),
            custom.partial,
        )  # fmt: skip
