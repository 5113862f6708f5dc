"""Evaluates a graph with the NumPy column of the table: the reference for every other room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmgraph.errors import ArgumentError
from tvmgraph.graph.ir import Graph, Value


def evaluate(graph: Graph, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Runs ``graph`` on NumPy arrays, one per parameter, and returns its outputs.

    Raises:
        ArgumentError: if the number of arguments differs from the number of parameters.
    """
    if len(arguments) != len(graph.params):
        raise ArgumentError(f"{graph!r} takes {len(graph.params)} arrays, not {len(arguments)}")
    known: dict[Value, np.ndarray] = dict(graph.consts)
    known.update((p.value, np.asarray(a)) for p, a in zip(graph.params, arguments))
    for node in graph.nodes:
        result = node.op.eager(*[known[v] for v in node.inputs], **node.keywords)
        results = result if node.op.multi else (result,)
        known.update((v, np.asarray(r)) for v, r in zip(node.outputs, results))
    return [known[v] for v in graph.outputs]
