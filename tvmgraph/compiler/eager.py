"""Machine code for single eager operators of the CPU, made aside while NumPy computes them.

One thread loads what is on disk, and asks the compiler's process for the rest, one operator after
the other; TVM's compiler never comes into this process. An operator that cannot be compiled stays
with NumPy. Which operators are worth it is decided in :mod:`tvmgraph.core.costly`.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time

import numpy as np

from tvmgraph.compiler import worker
from tvmgraph.compiler.compile import compile_graph
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.costly import Code, Costly
from tvmgraph.core.tensor import Tensor, has_array, tensor_from_numpy
from tvmgraph.core.traits import Pattern
from tvmgraph.core.types import TensorType
from tvmgraph.graph import Graph

_OPTIONS = CompileOptions("O2", "host", native=False)


class _Maker:
    """The thread that makes code, and what it is still to make."""

    def __init__(self) -> None:
        self.wanted: queue.SimpleQueue[Costly] = queue.SimpleQueue()
        self.open: list[Costly] = []
        self.thread: threading.Thread | None = None
        self.ended = False

    def ask(self, costly: Costly) -> None:
        self.open.append(costly)
        self.wanted.put(costly)
        if self.thread is None:
            self.thread = threading.Thread(
                target=self._work, args=(self.wanted,), name="tvmgraph-eager", daemon=True
            )
            self.thread.start()

    def _work(self, wanted: queue.SimpleQueue[Costly]) -> None:
        while not self.ended:
            costly = wanted.get()
            if self.ended or worker.why_here() is not None:
                return
            try:
                costly.code = _code(costly)
            except Exception:  # NumPy computes it as before
                continue
            finally:
                self.open.remove(costly)

    def end(self) -> None:
        self.ended = True


_maker = _Maker()


def make(costly: Costly) -> None:
    """Lets code be made for an operator; it gets it when it is there.

    Args:
        costly: The operator with the types of its operands.
    """
    _maker.ask(costly)


def wait(seconds: float = 60.0) -> bool:
    """Waits until no code is being made; for measurements.

    Args:
        seconds: At most.

    Returns:
        Whether all is made.
    """
    end = time.monotonic() + seconds
    while _maker.open and time.monotonic() < end:
        time.sleep(0.01)
    return not _maker.open


def _code(costly: Costly) -> Code:
    graph: Graph = costly.graph()
    executable, _ = compile_graph(graph, options=_OPTIONS)
    types = [v.type for v in graph.outputs]

    def code(args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(executable.run(args, types))

    return _in_memory_order(code, types) if _is_pointwise(graph) else code


def _is_pointwise(graph: Graph) -> bool:
    """Whether every element of the results depends on one element of every parameter, no more."""
    operators = [node.op.traits for node in graph.nodes]
    values = [*(p.value for p in graph.params), *(v for node in graph.nodes for v in node.outputs)]
    return (
        all(t.pattern is Pattern.ELEMENTWISE and not t.effect for t in operators)
        and len({v.type.shape for v in values}) == 1
        and all(array.size == 1 for array in graph.consts.values())
    )


def _in_memory_order(code: Code, types: list[TensorType]) -> Code:
    """Lets pointwise code read transposed operands as they lie in memory, instead of copies.

    Args:
        code: Computes tensors of one shape element by element.
        types: Of its results.
    """

    def run(args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if not has_array(args[0]) or args[0].array.flags.c_contiguous:
            return code(args)
        strides = args[0].array.strides
        order = sorted(range(len(strides)), key=lambda axis: -strides[axis])
        stored = [a.array.transpose(order) for a in args]
        if not all([s.flags.c_contiguous for s in stored]):
            return code(args)
        shape, back = stored[0].shape, np.argsort(order)
        operands = [tensor_from_numpy(s.reshape(a.shape), a.aval) for s, a in zip(stored, args)]
        results = [y.array.reshape(shape).transpose(back) for y in code(tuple(operands))]
        return tuple([tensor_from_numpy(y, t) for y, t in zip(results, types)])

    return run


def _forked() -> None:
    """The child has no such thread; what it was to make is asked for again when it is needed."""
    for costly in _maker.open:
        costly.asked = False
    _maker.__init__()


os.register_at_fork(after_in_child=_forked)
atexit.register(lambda: _maker.end())
