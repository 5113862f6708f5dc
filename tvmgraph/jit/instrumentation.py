"""Observed calls: what is done instead of the quick path while somebody watches.

``TVMGRAPH_DEBUG=2`` prints a table, ``TVMGRAPH_CHECK=3`` compares with NumPy,
``TVMGRAPH_NUMERICS=1`` looks for NaN and infinities, and a profiler records the kernels.
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
from tvmgraph.graph import Node
from tvmgraph.jit.compare import compare
from tvmgraph.jit.frozen import FrozenExecutable
from tvmgraph.jit.measure import measure, run_recorded

if TYPE_CHECKING:
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
