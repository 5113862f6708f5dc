"""Which way a graph runs: what ``exec_mode`` means, and what ``auto`` chooses.

| path | what happens at a call |
|---|---|
| no_sink | every node is an executable of its own, called from Python in order |
| sink | one call; the function that calls the kernels is machine code. On a GPU the call is \
replayed as a CUDA graph |
| auto | as sink, but kernels are called by bytecode where that costs nothing to speak of; no_sink \
for graphs with an operator that only NumPy can run |
"""

from __future__ import annotations

from dataclasses import dataclass

from tvmgraph.backend.base import backend_of
from tvmgraph.config import JitConfig
from tvmgraph.core.op import Reason
from tvmgraph.errors import DeviceError
from tvmgraph.graph import Graph

#: Native host code saves 0.06 microseconds per kernel (measured on chains of products and
#: softmaxes): a third of a call where kernels write 64 elements, 6 % at 1024, nothing to be seen
#: from 4096 on. It takes a millisecond per kernel to compile.
_LONG_KERNEL = 1 << 11
#: Fewer nodes than this are called by bytecode in less time than Python needs for the call.
_FEW_NODES = 8


@dataclass(frozen=True)
class Path:
    """How a graph runs.

    Attributes:
        mode: ``"sink"`` or ``"no_sink"``.
        native: Whether the function that calls the kernels becomes machine code.
        why: The reason, one phrase.
        replay: Whether a GPU is given all kernels at once, as a CUDA graph.
    """

    mode: str
    native: bool
    why: str
    replay: bool = False

    def __str__(self) -> str:
        if self.replay:
            return f"{self.mode}, CUDA graph ({self.why})"
        host = "" if self.mode == "no_sink" else (", native host code" if self.native else
                                                  ", bytecode")  # fmt: skip
        return f"{self.mode}{host} ({self.why})"


def choose_path(graph: Graph, config: JitConfig) -> Path:
    """Returns the path of a graph under ``config``.

    Args:
        graph: The captured graph.
        config: The settings of the function.

    Raises:
        DeviceError: if the graph is for a GPU and an operator can only run in NumPy.
    """
    numpy_only = [n for n in graph.nodes if isinstance(n.op.lower, Reason)]
    backend = backend_of(config.target)
    calls_mpi = [n for n in graph.walk() if n.op.traits.collective]
    if (numpy_only or calls_mpi) and not backend.runs_numpy:
        node = (numpy_only or calls_mpi)[0]
        why = node.op.lower if numpy_only else "MPI moves data of the host only"
        raise DeviceError(
            f"it has no code for GPUs: {why}", op=f"ops.{node.op.name}", at=node.source,
            fix="call it outside the compiled function on tensors moved with .to('CPU')",
        )  # fmt: skip
    if config.exec_mode == "no_sink":
        return Path("no_sink", False, "as configured")
    if config.exec_mode == "sink" and backend.replays:
        return _replayed(graph)
    if config.exec_mode == "sink":
        return Path("sink", True, "as configured")
    if config.debug_level == "DEBUG":
        return Path("no_sink", False, "auto: debug_level DEBUG")
    if numpy_only and config.jit_syntax_level == "LAX":
        node = numpy_only[0]
        return Path("no_sink", False, f"auto: ops.{node.op.name} at {node.source} runs in NumPy")
    if any(node.regions for node in graph.nodes):  # many small host functions compile slowly
        return Path("sink", False, "auto: branches and loops")
    count = len(graph.nodes)
    if count < _FEW_NODES:
        return Path("sink", False, f"auto: only {count} operators")
    sizes = [v.type.size for n in graph.nodes for v in n.outputs if v.type.is_static]
    mean = sum(sizes) / max(1, len(sizes))
    if mean > _LONG_KERNEL or len(sizes) < count:
        return Path("sink", False, f"auto: {count} operators of {mean:.0f} elements on average")
    return Path("sink", True, f"auto: {count} operators of only {mean:.0f} elements on average")


def _replayed(graph: Graph) -> Path:
    """The path of a graph whose kernels shall be given to the GPU at once."""
    nodes = list(graph.walk())
    if any(node.regions for node in nodes):
        return Path("sink", True, "as configured; branches and loops are decided on the host")
    if any(node.op.traits.effect or node.op.traits.collective for node in nodes):
        return Path("sink", True, "as configured; it calls Python")
    values = [*(p.value for p in graph.params), *(v for n in nodes for v in n.outputs)]
    if not all(v.type.is_static for v in values):
        return Path("sink", True, "as configured; sizes vary")
    return Path("sink", False, "as configured", replay=True)
