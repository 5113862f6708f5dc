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

from tvmgraph.compiler import worker
from tvmgraph.compiler.compile import compile_graph
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.costly import Code, Costly
from tvmgraph.core.tensor import Tensor
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

    return code


def _forked() -> None:
    """The child has no such thread; what it was to make is asked for again when it is needed."""
    for costly in _maker.open:
        costly.asked = False
    _maker.__init__()


os.register_at_fork(after_in_child=_forked)
atexit.register(lambda: _maker.end())

__all__ = ["make", "wait"]
