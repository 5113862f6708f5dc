"""Compiles graphs, and remembers what it compiled.

The key of an executable is the structural hash of its graph with the level and the target: equal
layers, re-captures and different Python functions with the same graph share one executable.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from tvmgraph.compiler import pipeline
from tvmgraph.errors import CompileError, TvmgraphError
from tvmgraph.graph import Graph, passes
from tvmgraph.lowering import lower, lower_many
from tvmgraph.lowering.relax import lowering_error
from tvmgraph.runtime.executable import Executable, cpu

_MEMORY_LIMIT = 512  # executables kept per process


@dataclass(frozen=True)
class CompileStats:
    """What one compile did.

    Attributes:
        seconds: Wall time from graph to callable code.
        cached: Whether an equal graph was compiled before in this process.
        operators: Operators of the graph.
        kernels: Kernels generated for them.
    """

    seconds: float
    cached: bool
    operators: int
    kernels: int


_cache: OrderedDict[tuple[str, str, str], tuple[Executable, CompileStats]] = OrderedDict()
_lock = threading.Lock()


def compile_graph(
    graph: Graph, level: str = "O2", target: str = "host"
) -> tuple[Executable, CompileStats]:
    """Compiles a graph, or returns the executable of an equal one.

    Args:
        graph: The graph; its outputs come back in order.
        level: ``"O0"`` to ``"O3"``, see :mod:`tvmgraph.compiler.pipeline`.
        target: A name from ``configs/targets.toml`` or ``"host"``.

    Raises:
        CompileError: if an operator has no lowering or TVM rejects it.
    """
    key = (graph.structural_hash(), level, target)
    with _lock:  # TVM releases the GIL while compiling; one compile per graph is enough
        found = _cache.get(key)
        if found is not None:
            _cache.move_to_end(key)
            executable, stats = found
            return executable, CompileStats(0.0, True, stats.operators, stats.kernels)
        start = time.perf_counter()
        executable = _build(graph, level, target)
        seconds = time.perf_counter() - start
        stats = CompileStats(seconds, False, len(graph.nodes), len(executable.kernels))
        _cache[key] = (executable, stats)
        if len(_cache) > _MEMORY_LIMIT:
            _cache.popitem(last=False)
        return executable, stats


def compile_many(
    graphs: dict[str, Graph], level: str = "O2", target: str = "host"
) -> Executable:
    """Compiles several graphs into one executable with one function per name."""
    module, kernels = pipeline.build(lower_many(graphs), pipeline.LEVELS[level], target)
    return Executable(module, cpu(), kernels)


def clear_cache() -> None:
    """Forgets every executable of this process."""
    with _lock:
        _cache.clear()


def _build(graph: Graph, level: str, target: str) -> Executable:
    simplified = passes.simplify(graph)
    try:
        module, kernels = pipeline.build(lower(simplified), pipeline.LEVELS[level], target)
    except TvmgraphError:
        raise
    except Exception as e:
        raise _blame(simplified, level, target, e) from e
    executable = Executable(module, cpu(), kernels)
    executable.function()  # loads the code now, so that the first call does not pay for it
    return executable


def _blame(graph: Graph, level: str, target: str, cause: Exception) -> CompileError:
    """Finds the node that TVM cannot compile by compiling the nodes one at a time."""
    for node in graph.nodes:
        alone = isolate(node)
        try:
            pipeline.build(lower(alone), pipeline.LEVELS[level], target)
        except Exception as e:
            return lowering_error(node, e)
    first = next((line for line in str(cause).splitlines()[::-1] if line.strip()), "unknown")
    return CompileError(
        f"TVM rejected the graph: {first.strip()}", op=graph.name,
        fix="every operator compiles alone; try jit_level='O0' and please report it",
    )  # fmt: skip


def isolate(node: object) -> Graph:
    """Returns a graph that holds only ``node``."""
    from tvmgraph.graph import GraphBuilder, Node

    assert isinstance(node, Node)
    builder = GraphBuilder("node")
    inputs = [builder.param(v.type) for v in node.inputs]
    outputs = builder.node(
        node.op, inputs, node.attrs, [v.type for v in node.outputs], regions=node.regions
    )
    return builder.build(outputs)
