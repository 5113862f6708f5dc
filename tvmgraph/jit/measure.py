"""Timing a compiled graph kernel by kernel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tvmgraph.config import context
from tvmgraph.core.op import Reason
from tvmgraph.core.tensor import Tensor
from tvmgraph.debug import Phases, recorder
from tvmgraph.debug.profile import KernelTime, Memory, Peaks, Profile
from tvmgraph.debug.recorder import Event, Recorder
from tvmgraph.graph import Graph, Node
from tvmgraph.jit.frozen import FrozenExecutable
from tvmgraph.runtime.stream import synchronize
from tvmgraph.view import Kernel

if TYPE_CHECKING:
    from tvmgraph.compiler.provenance import Site
    from tvmgraph.jit.compiled import CompiledGraph
    from tvmgraph.runtime import Executable

_UNCACHED = 96 << 20  # bytes of a kernel whose data does not stay in caches
_NAMED = 3  # operators that a kernel is described by


def measure(
    compiled: CompiledGraph,
    args: Sequence[Tensor],
    repeat: int = 1,
    whole: Callable[[], object] | None = None,
    facts: bool = True,
) -> Profile:
    """Times a compiled graph: the whole call, then every kernel (the shortest of ``repeat``).

    Args:
        compiled: The compiled graph.
        args: One tensor per parameter.
        repeat: How often it is run.
        whole: The call whose time counts; the compiled graph alone by default.
        facts: Find out what the kernels compute and compare with the machine's peaks, too.
    """
    whole = _finished(compiled, whole or _quick_call(compiled, args))
    seconds, memory = float("inf"), Memory()
    runs: list[list[Event]] = []
    for _ in range(max(1, repeat)):
        start = time.perf_counter()
        whole()
        seconds = min(seconds, time.perf_counter() - start)
        heard = Recorder()
        _, memory = run_recorded(compiled, args, heard)
        runs.append(heard.events)
    best = min(runs, key=_kernel_seconds)
    rows = _shortest(runs, best)
    name, path = compiled.graph.name, str(compiled.path)
    if not facts:
        return Profile(name, tuple(rows), seconds, path, memory, None, tuple(best))
    known = described(rows, *sites_of(compiled))
    top = _peaks_for(compiled, known)
    return Profile(name, tuple(known), seconds, path, memory, top, tuple(best))


def _kernel_seconds(events: Sequence[Event]) -> float:
    return sum(e.seconds for e in events if e.kind == recorder.KERNEL)


def _quick_call(compiled: CompiledGraph, args: Sequence[Tensor]) -> Callable[[], object]:
    """A call as in a loop of calls, where parameters that nobody looks at are written in place."""
    if compiled.steps is not None or not compiled.overwritten:
        return lambda: compiled.run(args)
    executable = compiled.executable
    assert not isinstance(executable, FrozenExecutable)  # which writes to nothing
    own = executable.for_writing(args, compiled.overwritten, False)
    types = [v.type for v in compiled.graph.outputs]
    return lambda: executable.run(own, types)


def _finished(compiled: CompiledGraph, call: Callable[[], object]) -> Callable[[], object]:
    """A call that returns when its results are there: those of a GPU are only on their way."""
    if _on_host(compiled):
        return call

    def waiting() -> None:
        call()
        synchronize()

    return waiting


def _on_host(compiled: CompiledGraph) -> bool:
    steps = compiled.steps
    made = [compiled.executable] if steps is None else steps.executables
    return all(e is None or e.on_host for e in made)


def _wait_for(outputs: Sequence[Tensor]) -> None:
    if outputs and outputs[-1].on_gpu:
        synchronize(outputs[-1]._device.index)


def _peaks_for(compiled: CompiledGraph, known: Sequence[KernelTime]) -> Peaks:
    """What the machine that the kernels ran on can do."""
    if not _on_host(compiled):
        from tvmgraph.backend.cuda.peaks import device_peaks

        return device_peaks(context.device_id)
    from tvmgraph.compiler.measuring.machine import peaks

    top = peaks()
    # they may have been measured while the machine did other work
    return peaks(again=True) if any(_exceeds(k, top) for k in known) else top


def _exceeds(k: KernelTime, top: Peaks) -> bool:
    """Whether a kernel is faster than the machine was thought to be."""
    computes = k.gflops is not None and k.gflops > top.flops(k.dtype)
    return computes or (k.bytes > _UNCACHED and k.gbps > top.bandwidth)


def _shortest(runs: Sequence[Sequence[Event]], best: Sequence[Event]) -> list[KernelTime]:
    """The kernels of the shortest run, each with its shortest time over all runs of equal length.

    Other work on the machine delays single kernels, rarely the same one in every run.
    """
    kernels = [[e for e in events if e.kind == recorder.KERNEL] for events in runs]
    found = [e for e in best if e.kind == recorder.KERNEL]
    alike = [k for k in kernels if [e.name for e in k] == [e.name for e in found]]
    return [replace(_row(e), seconds=min(k[i].seconds for k in alike)) for i, e in enumerate(found)]


def _row(e: Event) -> KernelTime:
    return KernelTime(e.name, e.seconds, e.facts["bytes"], dtype=e.facts["dtype"])


# ---- one instrumented call ----------------------------------------------------------------------


def run_recorded(
    compiled: CompiledGraph, args: Sequence[Tensor], heard: Recorder
) -> tuple[list[Tensor], Memory]:
    """Runs a compiled graph with instruments.

    Args:
        compiled: The graph with its executable.
        args: One tensor per parameter.
        heard: Gets the times of kernels, in seconds, and their bytes.

    Returns:
        Its results, and the memory of the call.
    """
    given = sum(a.nbytes for a in args)
    if compiled.steps is not None:
        return _run_steps(compiled, args, heard), Memory(given)
    from tvmgraph.runtime import instrument

    executable = compiled.executable
    if isinstance(executable, FrozenExecutable):
        executable, args = executable.resolve(args)
    if compiled.overwritten:  # others may see what it writes to
        args = executable.for_writing(args, compiled.overwritten, False)
    if compiled.stats.native:  # machine code has no place to measure at; bytecode runs the same
        executable = bytecode(compiled)
    found = instrument.run(executable, args, [v.type for v in compiled.graph.outputs])
    compiled.own_constants(found.outputs)
    heard.add(compiled.graph.name, recorder.CALL, found.start, found.seconds,
              path=str(compiled.path))  # fmt: skip
    for k in found.calls:
        heard.add(k.name, recorder.KERNEL, k.start, k.seconds, bytes=k.bytes, dtype=k.dtype,
                  graph=compiled.graph.name, number=id(compiled))  # fmt: skip
    heard.graphs[id(compiled)] = compiled
    return found.outputs, Memory(given, found.planned, found.unplanned)


def _run_steps(compiled: CompiledGraph, args: Sequence[Tensor], heard: Recorder) -> list[Tensor]:
    assert compiled.steps is not None
    begun = last = time.perf_counter()

    def watch(node: Node, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        nonlocal last
        _wait_for(outputs)
        now = time.perf_counter()
        size = sum(t.nbytes for t in (*inputs, *outputs))
        dtype = outputs[-1].aval.dtype.name if outputs else "float32"
        heard.add(node.op.name, recorder.KERNEL, last, now - last, bytes=size, dtype=dtype,
                  graph=compiled.graph.name, number=id(compiled))  # fmt: skip
        last = time.perf_counter()

    outputs = compiled.steps.run(args, watch)
    heard.add(compiled.graph.name, recorder.CALL, begun, time.perf_counter() - begun,
              path=str(compiled.path))  # fmt: skip
    heard.graphs[id(compiled)] = compiled
    return outputs


def lowered_graph(compiled: CompiledGraph) -> Graph:
    """The graph that the executable was made of: with weights prepared, if they are.

    Args:
        compiled: A compiled graph.
    """
    executable = compiled.executable
    frozen = executable.graph if isinstance(executable, FrozenExecutable) else None
    return frozen or compiled.unfrozen


def bytecode(compiled: CompiledGraph) -> Executable:
    """The executable with host code that can be instrumented.

    Args:
        compiled: A compiled graph.
    """
    from tvmgraph.compiler import compile_graph
    from tvmgraph.jit.compiled import compile_options

    options = compile_options(compiled.config, False)
    return compile_graph(lowered_graph(compiled), options=options)[0]


# ---- what the kernels compute -------------------------------------------------------------------


def sites_of(compiled: CompiledGraph) -> tuple[Graph, list[Site]]:
    """Returns the graph that was lowered, and every call of a kernel with its nodes.

    Args:
        compiled: A compiled graph; without one executable (``exec_mode="no_sink"``) a node is one
            call.
    """
    from tvmgraph.compiler.build import import_compiler, isolate

    import_compiler(Phases("kernels", quiet=True))
    from tvmgraph.compiler.provenance import Site, trace_kernels
    from tvmgraph.jit.compiled import compile_options

    options = compile_options(compiled.config, False)
    if compiled.steps is None:
        return trace_kernels(lowered_graph(compiled), options)
    sites: list[Site] = []
    positions = {id(n): i for i, n in enumerate(compiled.graph.walk())}
    for node in compiled.graph.nodes:
        flops: float | None = None
        if not isinstance(node.op.lower, Reason):
            parts = [s.flops for s in trace_kernels(isolate(node), options)[1]]
            flops = None if None in parts else sum(p for p in parts if p is not None)
        sites.append(Site(node.op.name, (positions[id(node)],), flops))
    return compiled.graph, sites


def described(rows: Sequence[KernelTime], graph: Graph, sites: Sequence[Site]) -> list[KernelTime]:
    """Adds to every kernel what it computes; calls in branches and loops are added up.

    Args:
        rows: Time and bytes of every kernel that ran.
        graph: The graph that was lowered.
        sites: The calls of kernels in it, with their operations and nodes.
    """
    nodes = list(graph.walk())
    straight = len(nodes) == len(graph.nodes)
    if straight and [r.name for r in rows] == [s.kernel for s in sites]:
        return [replace(r, flops=s.flops, where=_where(nodes, s.nodes))
                for r, s in zip(rows, sites)]  # fmt: skip
    found: dict[str, KernelTime] = {}
    for r in rows:
        places = [s for s in sites if s.kernel == r.name]
        flops = places[0].flops if places else None
        known = found.get(r.name)
        if known is None:
            at = dict.fromkeys(n for s in places for n in s.nodes)
            found[r.name] = replace(r, flops=flops, where=_where(nodes, tuple(at)))
        else:
            found[r.name] = replace(
                known, seconds=known.seconds + r.seconds, bytes=known.bytes + r.bytes,
                flops=None if known.flops is None or flops is None else known.flops + flops,
                calls=known.calls + 1,
            )  # fmt: skip
    return list(found.values())


def _where(nodes: Sequence[Node], positions: Sequence[int]) -> str:
    """Names a kernel's operators, grouped by the user's line."""
    lines: dict[str, list[str]] = {}
    for i in positions:
        lines.setdefault(nodes[i].source, []).append(nodes[i].op.name)
    parts = []
    for source, names in lines.items():
        more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
        parts.append(f"{', '.join(names[:_NAMED])}{more} {source}".strip())
    return "; ".join(parts)


def kernels_of(
    compiled: CompiledGraph, profile: Profile | None = None
) -> tuple[Graph, list[Kernel]]:
    """Returns the graph that was lowered, and which of its nodes each kernel computes.

    Args:
        compiled: The compiled graph.
        profile: Gives the kernels their times.
    """
    graph, sites = sites_of(compiled)
    times = _site_times(sites, profile) if profile is not None else [None] * len(sites)
    return graph, [Kernel(s.kernel, s.nodes, t) for s, t in zip(sites, times)]


def _site_times(sites: Sequence[Site], profile: Profile) -> list[float | None]:
    """The time of every site; sites of one kernel that cannot be told apart share its time."""
    if [k.name for k in profile.kernels] == [s.kernel for s in sites]:
        return [k.seconds for k in profile.kernels]
    total = {k.name: 0.0 for k in profile.kernels}
    for k in profile.kernels:
        total[k.name] += k.seconds
    count = {s.kernel: sum(o.kernel == s.kernel for o in sites) for s in sites}
    return [total[s.kernel] / count[s.kernel] if s.kernel in total else None for s in sites]
