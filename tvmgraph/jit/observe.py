"""Observed calls: time and bytes of every kernel, and the comparison with NumPy.

Taken instead of the quick path while ``TVMGRAPH_DEBUG=2``, ``TVMGRAPH_CHECK=3`` or
:meth:`JitFunction.profile` ask for it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.eager import evaluate
from tvmgraph.errors import CompileError
from tvmgraph.flag_registry import active
from tvmgraph.graph import Graph, Node, Value
from tvmgraph.jit.frozen import FrozenExecutable
from tvmgraph.view import Kernel

if TYPE_CHECKING:
    from tvmgraph.jit.compiled import CompiledGraph


@dataclass(frozen=True)
class KernelTime:
    """What one kernel took.

    Attributes:
        name: The kernel's name.
        seconds: Wall time.
        bytes: Bytes of the tensors it was given, read or written once.
    """

    name: str
    seconds: float
    bytes: int


@dataclass(frozen=True)
class Profile:
    """What one call took.

    Attributes:
        name: The graph's name.
        kernels: Every kernel in the order of the call.
        seconds: Wall time of the call without instruments.
        path: How the graph runs.
    """

    name: str
    kernels: tuple[KernelTime, ...]
    seconds: float
    path: str

    @property
    def kernel_seconds(self) -> float:
        """Time in kernels."""
        return sum(k.seconds for k in self.kernels)

    @property
    def overhead_seconds(self) -> float:
        """Time of the call outside of kernels: arguments, allocation, the calls themselves."""
        return max(0.0, self.seconds - self.kernel_seconds)

    def table(self) -> str:
        """Returns a table with one line per kernel."""
        total = max(self.seconds, self.kernel_seconds, 1e-12)
        width = max([len(k.name) for k in self.kernels] + [len("overhead of the host")])
        lines = [f"{'kernel':<{width}} {'us':>10} {'share':>6} {'KiB':>10} {'GB/s':>7}"]
        for k in self.kernels:
            rate = k.bytes / max(k.seconds, 1e-9) / 1e9
            lines.append(
                f"{k.name:<{width}} {k.seconds * 1e6:>10.1f} {k.seconds / total:>6.1%} "
                f"{k.bytes / 1024:>10.1f} {rate:>7.1f}"
            )
        spent = self.overhead_seconds
        lines.append(
            f"{'overhead of the host':<{width}} {spent * 1e6:>10.1f} {spent / total:>6.1%}"
        )
        lines.append(f"{'call':<{width}} {self.seconds * 1e6:>10.1f}  {self.path}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table()


class _Collector(threading.local):
    def __init__(self) -> None:
        self.found: list[Profile] | None = None
        self.repeat = 1


_collector = _Collector()


@contextmanager
def collecting(repeat: int) -> Iterator[list[Profile]]:
    """Collects the profile of every compiled call of this thread in a ``with`` block."""
    before = (_collector.found, _collector.repeat)
    found: list[Profile] = []
    _collector.found, _collector.repeat = found, max(1, repeat)
    watched, active.watched = active.watched, True
    try:
        yield found
    finally:
        active.watched = watched
        _collector.found, _collector.repeat = before


def call(compiled: CompiledGraph, args: Sequence[Tensor]) -> list[Tensor]:
    """Runs a compiled graph and does what the flags ask for."""
    held = [tensor_from_numpy(a.array.copy()) for a in args] if active.check >= 3 else []
    outputs = run(compiled, args)
    if active.check >= 3:
        compare(compiled, held, outputs)
    if active.debug >= 2 or _collector.found is not None:
        profile = measure(compiled, args, _collector.repeat)
        if _collector.found is not None:
            _collector.found.append(profile)
        if active.debug >= 2:
            print(f"[tvmgraph] {profile.name}\n{profile.table()}", file=sys.stderr)
    return outputs


def run(compiled: CompiledGraph, args: Sequence[Tensor]) -> list[Tensor]:
    """Runs a compiled graph the way it always runs."""
    if compiled.steps is not None:
        return compiled.steps.run(args)
    outputs = compiled.executable.run(args, [v.type for v in compiled.graph.outputs])
    compiled.own_constants(outputs)
    return outputs


def measure(compiled: CompiledGraph, args: Sequence[Tensor], repeat: int = 1) -> Profile:
    """Times a compiled graph: the whole call, then every kernel (the shortest of ``repeat``)."""
    whole, best = float("inf"), None
    for _ in range(repeat):
        start = time.perf_counter()
        run(compiled, args)
        whole = min(whole, time.perf_counter() - start)
        kernels = _kernels(compiled, args)
        if best is None or _total(kernels) < _total(best):
            best = kernels
    return Profile(compiled.graph.name, tuple(best or ()), whole, str(compiled.path))


def _total(kernels: Sequence[KernelTime]) -> float:
    return sum(k.seconds for k in kernels)


def _kernels(compiled: CompiledGraph, args: Sequence[Tensor]) -> list[KernelTime]:
    if compiled.steps is not None:
        return _step_times(compiled, args)
    executable: Any = compiled.executable
    if isinstance(executable, FrozenExecutable):
        executable, args = executable.resolve(args)
    if compiled.stats.native:  # machine code has no place to measure at; bytecode runs the same
        executable = _bytecode(compiled, _compiled_graph(compiled))
    return [KernelTime(*row) for row in executable.profile(args)]


def _compiled_graph(compiled: CompiledGraph) -> Graph:
    """The graph that the executable was made of: with weights prepared, if they are."""
    executable = compiled.executable
    frozen = executable.graph if isinstance(executable, FrozenExecutable) else None
    return frozen or compiled.graph


def _bytecode(compiled: CompiledGraph, graph: Graph) -> Any:
    from tvmgraph.compiler import compile_graph
    from tvmgraph.jit.compiled import compile_options

    return compile_graph(graph, options=compile_options(compiled.config, False))[0]


def _step_times(compiled: CompiledGraph, args: Sequence[Tensor]) -> list[KernelTime]:
    rows: list[KernelTime] = []
    last = time.perf_counter()

    def watch(node: Node, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        nonlocal last
        now = time.perf_counter()
        size = sum(t.array.nbytes for t in (*inputs, *outputs))
        rows.append(KernelTime(f"{node.op.name} {node.source}".strip(), now - last, size))
        last = time.perf_counter()

    assert compiled.steps is not None
    compiled.steps.run(args, watch)
    return rows


def kernels_of(
    compiled: CompiledGraph, profile: Profile | None = None
) -> tuple[Graph, list[Kernel]]:
    """Returns the graph that was lowered, and which of its nodes each kernel computes."""
    graph = compiled.graph
    if compiled.steps is not None:
        found = [Kernel(node.op.name, (i,)) for i, node in enumerate(graph.nodes)]
    else:
        from tvmgraph.compiler.origins import trace_kernels
        from tvmgraph.jit.compiled import compile_options

        graph = _compiled_graph(compiled)
        graph, traced = trace_kernels(graph, compile_options(compiled.config, False))
        found = [Kernel(site.kernel, site.nodes) for site in traced]
    times = [k.seconds for k in profile.kernels] if profile is not None else []
    if len(times) == len(found):
        found = [Kernel(k.name, k.nodes, t) for k, t in zip(found, times)]
    return graph, found


# ---- comparison with NumPy ----------------------------------------------------------------------

#: Largest difference that counts as rounding, relative to the largest element: operations are
#: ordered otherwise in kernels, and errors add up over a graph.
_TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2}


def compare(compiled: CompiledGraph, args: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Compares the outputs of a call with NumPy.

    Raises:
        CompileError: naming the first node whose compiled result differs.
    """
    graph = compiled.graph
    expected = evaluate(graph, [a.array for a in args])
    if all(_agrees(o.array, e) for o, e in zip(outputs, expected)):
        return
    node = _first_difference(compiled, args)
    where = f"%{node.outputs[0].name} = ops.{node.op.name}" if node else "the graph as a whole"
    raise CompileError(
        f"compiled and eager results differ, first at {where}", op=graph.name,
        got=", ".join(str(a.type) for a in args), at=node.source if node else None,
        fix="please report it; exec_mode='no_sink' runs node by node meanwhile",
    )  # fmt: skip


def _agrees(actual: np.ndarray, expected: np.ndarray) -> bool:
    if actual.shape != expected.shape:
        return False
    tolerance = _TOLERANCE.get(str(actual.dtype))
    if tolerance is None or not actual.size:
        return bool(np.array_equal(actual, expected))
    a, e = actual.astype(np.float64), np.asarray(expected).astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(e)):
        return False
    finite = np.isfinite(e)
    scale = max(1.0, float(np.max(np.abs(e[finite]), initial=0.0)))
    return bool(np.all(np.abs(a[finite] - e[finite]) <= tolerance * scale))


def _first_difference(compiled: CompiledGraph, args: Sequence[Tensor]) -> Node | None:
    """Finds the first node by compiling the graph up to every node, in order."""
    from tvmgraph.compiler import compile_graph
    from tvmgraph.jit.compiled import compile_options

    graph, options = compiled.graph, compile_options(compiled.config, False)
    low, high = 0, len(graph.nodes) - 1
    if high < 0:
        return None
    while low < high:  # once a node differs, what is computed from it does too
        middle = (low + high) // 2
        part = _prefix(graph, middle + 1)
        executable, _ = compile_graph(part, options=options)
        found = executable.run(args, [v.type for v in part.outputs])
        wanted = evaluate(part, [a.array for a in args])
        if all(_agrees(o.array, e) for o, e in zip(found, wanted)):
            low = middle + 1
        else:
            high = middle
    return graph.nodes[low]


def _prefix(graph: Graph, count: int) -> Graph:
    """Returns the graph of the first ``count`` nodes; what nothing reads yet is its output."""
    nodes = graph.nodes[:count]
    read: set[Value] = {v for n in nodes for v in n.inputs}
    outputs = tuple(v for n in nodes for v in n.outputs if v not in read)
    return Graph(graph.name, graph.params, graph.consts, nodes, outputs)
