"""Observed calls: what is done instead of the quick path while somebody watches.

``TVMGRAPH_DEBUG=2`` prints a table, ``TVMGRAPH_CHECK=3`` compares with NumPy,
``TVMGRAPH_NUMERICS=1`` looks for NaN and infinities, and a profiler records the kernels.
A comparison finds the first node that differs.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.config.flag_registry import active
from tvmgraph.core import numerics
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.debug import recorder
from tvmgraph.eager import evaluate
from tvmgraph.errors import CompileError, NumericsError, reject
from tvmgraph.graph import Graph, Node, Value
from tvmgraph.jit.frozen import FrozenExecutable
from tvmgraph.jit.measure import measure, run_recorded

if TYPE_CHECKING:
    from tvmgraph.config.options import CompileOptions
    from tvmgraph.jit.compiled import CompiledGraph


class _Asked(threading.local):
    """The calls of this thread that :meth:`JitFunction.profile` wants to know of."""

    seen: list[tuple[CompiledGraph, Sequence[Tensor]]] | None = None


_asked = _Asked()


@contextmanager
def asked() -> Iterator[list[tuple[CompiledGraph, Sequence[Tensor]]]]:
    """Collects the compiled graphs that this thread calls in a ``with`` block, and on what."""
    before = _asked.seen
    _asked.seen = seen = []
    watched, active.watched = active.watched, True
    try:
        yield seen
    finally:
        active.watched = watched
        _asked.seen = before


def call(compiled: CompiledGraph, args: Sequence[Tensor]) -> list[Tensor]:
    """Runs a compiled graph and does what the flags ask for.

    Args:
        compiled: The graph with its executable.
        args: One tensor per parameter.
    """
    if _asked.seen is not None:
        _asked.seen.append((compiled, _held(compiled, args)))
    kept = active.check >= 3 or active.numerics >= 1 or active.debug >= 2
    held = _held(compiled, args) if kept else []
    heard = recorder.current()
    if heard is None:
        outputs = compiled.run(args)
    else:
        outputs, _ = run_recorded(compiled, args, heard)
    if active.numerics:
        check_numerics(compiled, held, outputs)
    if active.check >= 3:
        compare(compiled, held, outputs)
    if active.debug >= 2:
        profile = measure(compiled, held, facts=False)
        print(f"[tvmgraph] {profile.table()}", file=sys.stderr)
    return outputs


def _held(compiled: CompiledGraph, args: Sequence[Tensor]) -> list[Tensor]:
    """The arguments of a call for running it again, whatever it writes to.

    A frozen graph writes to none, and has to see the parameters themselves to know their version.
    """
    if compiled.steps is None and isinstance(compiled.executable, FrozenExecutable):
        return list(args)
    return [_copy(a) for a in args]


def _copy(tensor: Tensor) -> Tensor:
    if tensor.on_gpu:
        from tvmgraph.runtime.device_tensor import copy_on

        return copy_on(tensor, tensor._device.index)
    return tensor_from_numpy(tensor.array.copy())


def check_numerics(
    compiled: CompiledGraph, args: Sequence[Tensor], outputs: Sequence[Tensor]
) -> None:
    """Looks for the operator that made a NaN or an infinity in a compiled call.

    Results that hold one are traced back by running the graph again in NumPy, node by node.

    Args:
        compiled: The graph with its executable.
        args: The arguments of the call, as they were before it.
        outputs: What the call returned.

    Raises:
        NumericsError: naming the node and its operands.
    """
    clean = numerics.is_finite(o.array for o in outputs)
    if clean and active.numerics < 2:
        return

    def watch(node: Node, inputs: list[np.ndarray], results: list[np.ndarray]) -> None:
        if node.regions:  # its own nodes were looked at
            return
        try:
            numerics.check(node.op, inputs, node.attrs, results)
        except NumericsError as e:
            at = node.source + (f"   (in {node.scope})" if node.scope else "")
            raise e.locate(f"ops.{node.op.name}", "", at) from None

    found = evaluate(compiled.graph, [a.array for a in args], watch)
    if not clean and numerics.is_finite(found):
        reject(CompileError, compiled.graph.name,
               "compiled code gives NaN or infinities that NumPy does not",
               ", ".join(str(a.aval) for a in args),
               "TVMGRAPH_CHECK=3 finds the first node that differs")  # fmt: skip


# ---- comparing with eager code ------------------------------------------------------------------


#: Largest difference that counts as rounding, relative to the largest element: operations are
#: ordered otherwise in kernels, and errors add up over a graph.
_TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2,
              "complex64": 1e-3, "complex128": 1e-9}  # fmt: skip
_IF, _WHILE = ("then", "orelse"), ("cond", "body")  # the regions of branches and loops
_TURNS = 1000  # iterations of a loop that are looked at

Arrays = Sequence[np.ndarray]


def compare(compiled: CompiledGraph, args: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Compares the outputs of a call with NumPy.

    Args:
        compiled: The graph with its executable.
        args: The arguments of the call, as they were before it.
        outputs: What the call returned.

    Raises:
        CompileError: naming the first node whose compiled result differs.
    """
    from tvmgraph.jit.compiled import compile_options

    graph, arrays = compiled.graph, [a.array for a in args]
    expected = evaluate(graph, arrays)
    if all(agrees(o.array, e) for o, e in zip(outputs, expected)):
        return
    node = _first_difference(graph, arrays, compile_options(compiled.config, False))
    where = f"%{node.outputs[0].name} = ops.{node.op.name}" if node else "the graph as a whole"
    scope = f"   (in {node.scope})" if node and node.scope else ""
    raise CompileError(
        f"compiled and eager results differ, first at {where}", op=graph.name,
        got=", ".join(str(a.aval) for a in args), at=f"{node.source}{scope}" if node else None,
        fix="please report it; exec_mode='no_sink' runs node by node meanwhile",
    )  # fmt: skip


def agrees(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two results are equal up to rounding; NaN and infinities must be in the same places.

    Args:
        actual: The compiled result.
        expected: NumPy's.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return False
    tolerance = _TOLERANCE.get(str(actual.dtype))
    if tolerance is None or not actual.size:
        return bool(np.array_equal(actual, expected))
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    a, e = actual.astype(wide), expected.astype(wide)
    finite = np.isfinite(e)
    if not np.array_equal(np.isfinite(a), finite):
        return False
    if not np.array_equal(a[~finite], e[~finite], equal_nan=True):
        return False
    scale = max(1.0, float(np.max(np.abs(e[finite]), initial=0.0)))
    return bool(np.all(np.abs(a[finite] - e[finite]) <= tolerance * scale))


def _first_difference(graph: Graph, arrays: Arrays, options: CompileOptions) -> Node | None:
    """Finds the first node by compiling the graph up to every node, halving the range."""
    low, high = 0, len(graph.nodes) - 1
    if high < 0:
        return None
    while low < high:  # once a node differs, what is computed from it does too
        middle = (low + high) // 2
        if _same(_prefix(graph, middle + 1), arrays, options):
            low = middle + 1
        else:
            high = middle
    node = graph.nodes[low]
    return _inside(graph, node, arrays, options) or node


def _same(graph: Graph, arrays: Arrays, options: CompileOptions) -> bool:
    """Whether a graph gives compiled what it gives in NumPy."""
    from tvmgraph.compiler import compile_graph

    executable, _ = compile_graph(graph, options=options)
    args = [tensor_from_numpy(np.array(a)) for a in arrays]
    found = executable.run(args, [v.type for v in graph.outputs])
    return all(agrees(o.array, e) for o, e in zip(found, evaluate(graph, arrays)))


def _prefix(graph: Graph, count: int) -> Graph:
    """Returns the graph of the first ``count`` nodes; what nothing reads yet is its output."""
    nodes = graph.nodes[:count]
    read: set[Value] = {v for n in nodes for v in n.inputs}
    outputs = tuple(v for n in nodes for v in n.outputs if v not in read)
    return Graph(graph.name, graph.params, graph.consts, nodes, outputs)


def _inside(graph: Graph, node: Node, arrays: Arrays, options: CompileOptions) -> Node | None:
    """Looks into a branch or loop for the node that differs."""
    if node.op.regions not in (_IF, _WHILE):
        return None
    known: dict[Value, np.ndarray] = dict(graph.consts)
    known.update((p.value, a) for p, a in zip(graph.params, arrays))

    def keep(seen: Node, _: list[np.ndarray], results: list[np.ndarray]) -> None:
        known.update(zip(seen.outputs, results))

    evaluate(_prefix(graph, graph.nodes.index(node)), arrays, keep)
    for region, given in _entered(node, [known[v] for v in node.inputs]):
        if not _same(region, given, options):
            return _first_difference(region, given, options)
    return None


def _entered(node: Node, inputs: list[np.ndarray]) -> Iterator[tuple[Graph, list[np.ndarray]]]:
    """Yields the regions that run, with what they are given."""
    regions = dict(zip(node.op.regions, node.regions))
    if node.op.regions == _IF:
        yield regions["then" if inputs[0].item() else "orelse"], inputs[1:]
        return
    cond, body = regions["cond"], regions["body"]
    count = len(body.outputs)
    for _ in range(_TURNS):
        yield cond, inputs
        if not evaluate(cond, inputs)[0].item():
            return
        yield body, inputs
        inputs = [*evaluate(body, inputs), *inputs[count:]]
