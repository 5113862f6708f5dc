"""Compiles graphs, and remembers what it compiled.

The key of an executable is the structural hash of its graph with the level and the target: equal
layers, re-captures and different Python functions with the same graph share one executable.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
import weakref
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvmgraph import forking
from tvmgraph.backend.base import backend_of
from tvmgraph.backend.table import Choice, Kernel, registered
from tvmgraph.compiler import remote, worker
from tvmgraph.compiler.build import build, in_tvm, link, lowered
from tvmgraph.compiler.cache import disk
from tvmgraph.config.options import CompileOptions
from tvmgraph.debug import Phases
from tvmgraph.debug.progress import looked_at, watched
from tvmgraph.errors import TvmgraphError
from tvmgraph.graph import Graph, Role
from tvmgraph.interruption import noticed, raise_noticed
from tvmgraph.passes import table
from tvmgraph.passes.run import run_graph_passes
from tvmgraph.runtime.executable import Executable, cpu
from tvmgraph.runtime.host import runnable

_MEMORY_LIMIT = 512  # executables kept per process


@dataclass(frozen=True)
class CompileStats:
    """What one compile did.

    Attributes:
        seconds: Wall time from graph to callable code.
        cached: Whether an equal graph was compiled before in this process.
        operators: Operators of the graph.
        kernels: Kernels generated for them.
        phases: Wall time by phase; empty when cached.
        native: Whether the calls of the kernels are machine code too.
        disk: What the cache on disk did: ``"loaded"``, ``"kept"``, or why it did nothing.
        passes: The passes that could have been left out, by their names in the table.
        reused: Kernels whose machine code other graphs had left on disk.
    """

    seconds: float
    cached: bool
    operators: int
    kernels: int
    phases: tuple[tuple[str, float], ...] = ()
    native: bool = False
    disk: str = ""
    passes: str = ""
    reused: int = 0


_Key = tuple[str, CompileOptions, tuple[table.Pass, ...], tuple[Kernel[Any], ...]]
_cache: OrderedDict[_Key, tuple[Executable, CompileStats]] = OrderedDict()
#: Held while a graph is compiled that was not before, by what it will be found under.
_turns: weakref.WeakValueDictionary[_Key, object] = weakref.WeakValueDictionary()
_tables = forking.lock()
#: Kernels that are timed have the machine to themselves.
_searching = forking.lock()


def compile_graph(
    graph: Graph, level: str = "O2", target: str = "host", options: CompileOptions | None = None
) -> tuple[Executable, CompileStats]:
    """Compiles a graph, or returns the executable of an equal one.

    While somebody watches (``save_graphs``, ``TVMGRAPH_DEBUG=3``) an equal graph is compiled
    again, so that its phases can be shown.

    Args:
        graph: The graph; its outputs come back in order.
        level: ``"O0"`` to ``"O3"``, see :data:`tvmgraph.passes.table.LEVELS`.
        target: A name from ``configs/targets.toml`` or ``"host"``.
        options: All settings at once, instead of level and target.

    Raises:
        CompileError: if an operator has no lowering or TVM rejects it.
        DeviceError: if this machine cannot run code for the target.
    """
    options = options or CompileOptions(level, target)
    options = replace(options, target=runnable(options.target))
    key = (graph.structural_hash(), options, table.added(), registered())
    with _turn(key), _searching if options.trials else contextlib.nullcontext():
        phases = Phases(graph.name)
        found = None if phases.wanted else _recall(key)
        if found is not None:
            executable, stats = found
            return executable, replace(stats, seconds=0.0, cached=True, phases=())
        start = time.perf_counter()
        try:
            with noticed(), _progress(graph, options):
                executable, native, kept = _obtain(graph, options, phases)
        except TvmgraphError as e:
            phases.finish({"failed": e.message, "jit_level": options.level})
            raise
        if options.replay:
            inputs = [i for i, p in enumerate(graph.params) if p.role is Role.INPUT]
            executable.moving = tuple(inputs)  # pyright: ignore[reportAttributeAccessIssue]
        seconds = time.perf_counter() - start
        stats = CompileStats(
            seconds, False, len(graph.nodes), len(executable.kernels),
            tuple(phases.seconds.items()), native, kept, table.described(options), phases.reused,
        )  # fmt: skip
        phases.finish(_facts(stats, options))
        _remember(key, executable, stats)
        return executable, stats


def _progress(graph: Graph, options: CompileOptions) -> contextlib.AbstractContextManager[None]:
    """Shows what happens to whoever waits; a search shows that itself."""
    if options.trials or not looked_at():
        return contextlib.nullcontext()
    reason = disk.why_not(graph)
    advice = [
        "an interrupt stops it",
        "the next process finds it on disk" if reason is None else f"not kept on disk: {reason}",
    ]
    if options.level > "O1":
        advice.append('jit_level="O1" compiles in less time')
    return watched(graph.name, len(graph.nodes), advice)


def _turn(key: _Key) -> Any:
    """The lock of a graph: threads that want the same one wait for the first of them."""
    with _tables:
        return _turns.setdefault(key, forking.rlock())


def _recall(key: _Key) -> tuple[Executable, CompileStats] | None:
    with _tables:
        if key in _cache:
            _cache.move_to_end(key)
        return _cache.get(key)


def _remember(key: _Key, executable: Executable, stats: CompileStats) -> None:
    with _tables:
        _cache[key] = (executable, stats)
        if len(_cache) > _MEMORY_LIMIT:
            _cache.popitem(last=False)


def _facts(stats: CompileStats, options: CompileOptions) -> dict[str, str]:
    return {
        "jit_level": options.level,
        "target": options.target,
        "passes": stats.passes,
        "operators": str(stats.operators),
        "kernels": str(stats.kernels),
        "host code": "native" if stats.native else "bytecode",
        "compile time": f"{stats.seconds * 1e3:.1f} ms",
    }


def compile_many(graphs: dict[str, Graph], level: str = "O2", target: str = "host") -> Executable:
    """Compiles several graphs into one executable with one function per name.

    Args:
        graphs: The graphs by the name of their function.
        level: Level of the compile, ``"O0"`` to ``"O3"``.
        target: A name in ``configs/targets.toml``.
    """
    from tvmgraph.compiler import pipeline
    from tvmgraph.lowering import lower_many

    options = CompileOptions(level, target, native=False)
    made = pipeline.build(lower_many(graphs), options)
    return Executable(made.executable, cpu(), made.kernels)


def explain_kernels(graph: Graph, options: CompileOptions) -> list[Choice]:
    """Which kernel takes each loop nest of a graph, what others said, and how it is shaped.

    Args:
        graph: The graph, as it is compiled.
        options: How.
    """
    from tvmgraph.compiler import pipeline

    simplified = run_graph_passes(graph, options)
    with in_tvm:
        return pipeline.choices(lowered(simplified, options), options)


def clear_cache() -> None:
    """Forgets every executable of this process."""
    with _tables:
        _cache.clear()


def _obtain(graph: Graph, options: CompileOptions, phases: Phases) -> tuple[Executable, bool, str]:
    """Loads an executable from the disk, or compiles it and puts it there.

    Returns:
        The executable, whether its host code is native, and what the cache on disk did.
    """
    reason = "somebody watches the compile" if phases.wanted else disk.why_not(graph)
    if reason is None and table.added():
        reason = "it takes passes of your own, which may change at any time"
    if reason is None and registered():
        reason = "it may take kernels of your own, which may change at any time"
    if reason is not None:
        return *build_aside(graph, options, phases), f"not kept: {reason}"
    key = disk.key_of(graph, options, backend_of(options.target).compiler())
    start = time.perf_counter()
    with in_tvm:
        found = disk.load(key)
    if found is not None:
        phases.seconds["disk"] = time.perf_counter() - start
        worker.stop_unused()
        module, facts, payload = found
        return (
            backend_of(options.target).executable(module, facts, payload, options),
            bool(facts["native"]),
            "loaded",
        )
    try:
        with disk.store().workspace() as folder:
            executable, native = _build(graph, options, phases, folder, key)
            kept = disk.store().path(key).exists()
            return executable, native, "kept" if kept else "not kept: it calls Python"
    except OSError as e:  # a full or read-only disk is no reason not to run
        raise_noticed()
        return *build_aside(graph, options, phases), f"not kept: {e}"


def build_aside(graph: Graph, options: CompileOptions, phases: Phases) -> tuple[Executable, bool]:
    """Compiles a graph for this process alone.

    With a linker, all the same: several object files are made at once, one in memory is not.

    Args:
        graph: A captured graph.
        options: What the compile may depend on.
        phases: Gets the time of every step, and the graph after every pass.

    Returns:
        The executable, and whether the calls of its kernels are machine code.
    """
    if disk.linker() is not None:
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as folder:
            return _build(graph, options, phases, Path(folder))
        raise_noticed()
    return _build(graph, options, phases)


def _build(
    graph: Graph,
    options: CompileOptions,
    phases: Phases,
    folder: Path | None = None,
    key: str | None = None,
) -> tuple[Executable, bool]:
    """Compiles a graph, by an entry made in ``folder`` if there is one, and keeps it under a key.

    The compiler's process makes the entry; this one compiles itself where that is not possible.
    """
    phases.graph("captured graph", graph)
    apart = folder is not None and remote.why_here(options) is None
    if apart:
        worker.start()  # it imports TVM meanwhile
    with phases.time("simplify"):
        simplified = run_graph_passes(graph, options, phases.graph)
    phases.graph("simplified graph", simplified)
    library, built = None, None
    if folder is not None and apart:
        library = remote.ask(simplified, options, phases, folder, key is not None)
    if library is None:
        built = build(simplified, options, phases, folder, key is not None)
        library = None if folder is None else link(built, graph.name, phases, folder)
    with in_tvm, phases.time("load"):
        if library is not None:
            library = library if key is None else disk.keep(key, library)
            built = disk.opened(library, key)
        assert built is not None
        module, facts, payload = built
        executable = backend_of(options.target).executable(module, facts, payload, options)
        if executable.on_host:  # a GPU's may be for another machine
            executable.function()  # loads the code now, so that the first call does not pay for it
    return executable, bool(facts["native"])
