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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tvmgraph import forking
from tvmgraph.compiler import disk, nvcc, remote, worker
from tvmgraph.compiler.build import build, in_tvm, link
from tvmgraph.compiler.channels_last import channels_last
from tvmgraph.compiler.recompute import recompute_cheap
from tvmgraph.debug import Phases
from tvmgraph.errors import TvmgraphError
from tvmgraph.graph import Graph, Role
from tvmgraph.graph.rewrite import Show, optimize
from tvmgraph.graph_kernel import GraphKernel, at_level
from tvmgraph.interruption import noticed
from tvmgraph.runtime.device_image import assemble
from tvmgraph.runtime.executable import Executable, cpu
from tvmgraph.runtime.host import runnable

_MEMORY_LIMIT = 512  # executables kept per process


@dataclass(frozen=True)
class CompileOptions:
    """How a graph is compiled; part of the key of its executable.

    Attributes:
        level: ``"O0"`` to ``"O3"``, see :mod:`tvmgraph.compiler.pipeline`.
        target: A name from ``configs/targets.toml`` or ``"host"``.
        native: Whether host code is machine code (``True``), bytecode (``False``) or whatever
            suits the number of kernels (``None``).
        kernels: Graph-kernel settings, ``None`` for those of the level.
        trials: Kernels that the search of ``O3`` may build and time per kernel; with 0 it uses what
            was found before.
        fast_math: Whether a GPU's arithmetic may be inexact (``--use_fast_math``).
        device_id: Which GPU runs the code; the code does not depend on it.
        tf32: Whether a GPU's products of float32 may round their factors to tf32.
        replay: Whether a GPU replays the calls as a CUDA graph; the code does not depend on it.
        library: Whether a GPU's products go to cuBLASLt where that was measured to be faster.
        deterministic: Whether a processor's kernels are the same for any number of threads.
    """

    level: str = "O2"
    target: str = "host"
    native: bool | None = None
    kernels: GraphKernel | None = None
    trials: int = 0
    fast_math: bool = False
    device_id: int = field(default=0, repr=False)
    tf32: bool = False
    replay: bool = field(default=False, repr=False)
    library: bool = False
    deterministic: bool = False

    @property
    def on_gpu(self) -> bool:
        """Whether the code is for a GPU."""
        return self.target.startswith("sm_")

    @property
    def settings(self) -> GraphKernel:
        """The graph-kernel settings in force."""
        return self.kernels or at_level(int(self.level[1]))


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
    """

    seconds: float
    cached: bool
    operators: int
    kernels: int
    phases: tuple[tuple[str, float], ...] = ()
    native: bool = False
    disk: str = ""


_Key = tuple[str, CompileOptions]
_cache: OrderedDict[_Key, tuple[Executable, CompileStats]] = OrderedDict()
#: Held while a graph is compiled that was not before, by what it will be found under.
_turns: weakref.WeakValueDictionary[_Key, Any] = weakref.WeakValueDictionary()
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
        level: ``"O0"`` to ``"O3"``, see :mod:`tvmgraph.compiler.pipeline`.
        target: A name from ``configs/targets.toml`` or ``"host"``.
        options: All settings at once, instead of level and target.

    Raises:
        CompileError: if an operator has no lowering or TVM rejects it.
        DeviceError: if this machine cannot run code for the target.
    """
    options = options or CompileOptions(level, target)
    options = replace(options, target=runnable(options.target))
    key = (graph.structural_hash(), options)
    with _turn(key), _searching if options.trials else contextlib.nullcontext():
        phases = Phases(graph.name)
        found = None if phases.wanted else _recall(key)
        if found is not None:
            executable, stats = found
            return executable, replace(stats, seconds=0.0, cached=True, phases=())
        start = time.perf_counter()
        try:
            with noticed():
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
            tuple(phases.seconds.items()), native, kept,
        )  # fmt: skip
        phases.finish(_facts(stats, options))
        _remember(key, executable, stats)
        return executable, stats


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
        "graph kernel passes": ", ".join(sorted(options.settings.passes)) or "none",
        "operators": str(stats.operators),
        "kernels": str(stats.kernels),
        "host code": "native" if stats.native else "bytecode",
        "compile time": f"{stats.seconds * 1e3:.1f} ms",
    }


def compile_many(graphs: dict[str, Graph], level: str = "O2", target: str = "host") -> Executable:
    """Compiles several graphs into one executable with one function per name."""
    from tvmgraph.compiler import pipeline
    from tvmgraph.lowering import lower_many

    settings = CompileOptions(level).settings
    module, kernels, _ = pipeline.build(
        lower_many(graphs), pipeline.LEVELS[level], target, kernels=settings
    )
    return Executable(module, cpu(), kernels)


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
    if reason is not None:
        return *build_aside(graph, options, phases), f"not kept: {reason}"
    key = disk.key_of(graph, options, nvcc.fingerprint() if options.on_gpu else "")
    start = time.perf_counter()
    with in_tvm:
        found = disk.load(key)
    if found is not None:
        phases.seconds["disk"] = time.perf_counter() - start
        worker.stop_unused()
        module, facts, payload = found
        return executable_of(module, facts, payload, options), facts["native"], "loaded"
    try:
        with disk.store().workspace() as folder:
            executable, native = _build(graph, options, phases, folder, key)
            kept = disk.store().path(key).exists()
            return executable, native, "kept" if kept else "not kept: it calls Python"
    except OSError as e:  # a full or read-only disk is no reason not to run
        return *build_aside(graph, options, phases), f"not kept: {e}"


def build_aside(graph: Graph, options: CompileOptions, phases: Phases) -> tuple[Executable, bool]:
    """Compiles a graph for this process alone.

    With a linker, all the same: several object files are made at once, one in memory is not.
    """
    if disk.linker() is not None:
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory() as folder:
            return _build(graph, options, phases, Path(folder))
    return _build(graph, options, phases)


def simplify(graph: Graph, options: CompileOptions, show: Show) -> Graph:
    """The graph as it is lowered, each pass shown to ``show``."""
    graph = optimize(graph, options.settings, show, options.on_gpu)
    if options.on_gpu and options.level not in ("O0", "O1"):
        graph = show("channels last", channels_last(graph))
        graph = show("computed again", recompute_cheap(graph))
    if options.library and options.on_gpu:
        from tvmgraph.compiler.library_products import use_library

        graph = show("products by cuBLASLt", use_library(graph, options))
    return graph


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
        simplified = simplify(graph, options, phases.graph)
    phases.graph("simplified graph", simplified)
    library, built = None, None
    if folder is not None and apart:
        library = remote.ask(simplified, options, phases, folder, key is not None)
    if library is None:
        built = build(simplified, options, phases, folder, key is not None)
        library = None if folder is None else link(built, graph.name, phases, folder)
    with in_tvm, phases.time("load"):
        if library is not None:
            library = library if key is None else disk.store().put(key, library)
            built = disk.opened(library)
        assert built is not None
        module, facts, payload = built
        executable = executable_of(module, facts, payload, options)
        if not options.on_gpu:  # whose code may be for another machine
            executable.function()  # loads the code now, so that the first call does not pay for it
    return executable, facts["native"]


def executable_of(
    module: Any, facts: dict[str, Any], payload: bytes, options: CompileOptions
) -> Executable:
    """Makes what :func:`generate` returned, or what was read from the disk, callable."""
    kernels = tuple(facts["kernels"])
    if not options.on_gpu:
        return Executable(module, cpu(), kernels)
    from tvmgraph.runtime.device_executable import DeviceExecutable

    images = assemble(facts["images"], payload)
    return DeviceExecutable(module, images, options.target, kernels, options.device_id)
