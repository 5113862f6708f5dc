"""Evaluates a graph with the NumPy column of the table: the reference for every other room."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph.errors import ArgumentError
from tvmgraph.graph.ir import Graph, Node, Value
from tvmgraph.graph.sizes import fixed_keywords, sizes_of

#: Sees every node with its inputs and results.
Watch = Callable[[Node, list[np.ndarray], list[np.ndarray]], None]


class _Watching(threading.local):
    """Who watches in this thread: nodes of branches and loops are evaluated by their operator."""

    watch: Watch | None = None


_watching = _Watching()


def evaluate(
    graph: Graph, arguments: Sequence[np.ndarray], watch: Watch | None = None
) -> list[np.ndarray]:
    """Runs ``graph`` on NumPy arrays, one per parameter, and returns its outputs.

    Args:
        graph: The graph.
        arguments: One array per parameter.
        watch: Called after every node, also of branches and loops.

    Raises:
        ArgumentError: if the number of arguments differs from the number of parameters.
    """
    if len(arguments) != len(graph.params):
        raise ArgumentError(f"{graph!r} takes {len(graph.params)} arrays, not {len(arguments)}")
    before = _watching.watch
    _watching.watch = watch = watch or before
    try:
        return _run(graph, arguments, watch)
    finally:
        _watching.watch = before


def _run(graph: Graph, arguments: Sequence[np.ndarray], watch: Watch | None) -> list[np.ndarray]:
    known: dict[Value, Any] = dict(graph.consts)
    known.update((p.value, np.asarray(a)) for p, a in zip(graph.params, arguments))
    sizes: dict[str, int] = {}  # those that only values decide, once they are known
    for node in graph.nodes:
        inputs = [known[v] for v in node.inputs]
        keywords = fixed_keywords(node, sizes) if sizes else node.keywords
        result = node.op.eager(*inputs, **keywords)
        results = [np.asarray(r) for r in (result if node.op.multi else (result,))]
        if node.op.traits.binds:
            sizes |= sizes_of(node.outputs, [r.shape for r in results])
        if watch is not None:
            watch(node, inputs, results)
        known.update(zip(node.outputs, results))
    return [known[v] for v in graph.outputs]
