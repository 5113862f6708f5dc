"""Runs the passes of the table that take graphs."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.graph.ir import Graph
from tvmgraph.graph.simplify import simplify
from tvmgraph.passes.table import Options, Pass, Stage, chosen, function_of

#: Called with the name of a pass and the graph after it; returns the graph.
Show = Callable[[str, Graph], Graph]


def run_graph_passes(graph: Graph, options: Options, show: Show = lambda _, g: g) -> Graph:
    """Returns a graph as it is lowered.

    Args:
        graph: The captured graph, or the half of it that runs in every call.
        options: How it is compiled.
        show: Called after every pass that changed the graph.

    Raises:
        TvmgraphError: An operator refuses its constants, such as an index out of range.
    """
    for row in chosen(Stage.GRAPH, options):
        for _ in range(row.rounds):
            changed = run_pass(row, graph, options)
            if changed is graph:
                break
            graph = show(row.name, changed)
    return graph


def run_pass(row: Pass, graph: Graph, options: Options) -> Graph:
    """Returns what a pass makes of a graph, without what it left behind; or the graph itself.

    Args:
        row: The pass.
        graph: What it gets.
        options: What the compile may depend on.
    """
    changed = graph
    for path in row.run:
        function = function_of(path)
        changed = function(changed, options) if row.reads_options else function(changed)
    return simplify(changed) if row.cleans and changed is not graph else changed
