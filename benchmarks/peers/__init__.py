"""One adapter per framework, each loaded only inside its own worker process."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.workloads import Workload

Call = Callable[[], Any]


class Peer(Protocol):
    """What an adapter offers to the worker."""

    def version(self) -> str:
        """Return the version of the framework."""
        ...

    def build(self, work: Workload) -> Call:
        """Return a function without arguments that runs the row and waits for the result."""
        ...

    def to_numpy(self, result: Any) -> np.ndarray:
        """Return the result of a call as an array."""
        ...


@dataclass(frozen=True)
class PeerSpec:
    """Where an adapter lives and which of its forms to use.

    Attributes:
        module: Module below ``benchmarks.peers``.
        package: Import name; when it is absent the column reads 'not installed'.
        variant: Form of the framework, given to the adapter's ``create``.
        title: Text of the column in the report.
    """

    module: str
    package: str
    variant: str
    title: str


PEERS: dict[str, PeerSpec] = {
    "tvmgraph": PeerSpec("tvmgraph_peer", "tvmgraph", "jit", "tvmgraph (jit)"),
    "torch": PeerSpec("torch_peer", "torch", "eager", "PyTorch (eager)"),
    "torch-compile": PeerSpec("torch_peer", "torch", "compile", "PyTorch (torch.compile)"),
    "onnxruntime": PeerSpec("onnxruntime_peer", "onnxruntime", "session", "ONNX Runtime"),
    "jax": PeerSpec("jax_peer", "jax", "jit", "JAX (jit)"),
    "mindspore": PeerSpec("mindspore_peer", "mindspore", "graph", "MindSpore (graph mode)"),
    "mindspore-fusion": PeerSpec(
        "mindspore_peer", "mindspore", "fusion", "MindSpore (graph kernel fusion)"
    ),
}
OURS = "tvmgraph"


def load(name: str, threads: int) -> Peer:
    """Import the adapter of a peer and create it.

    Args:
        name: Key of ``PEERS``.
        threads: Number of threads the framework may use.

    Returns:
        The adapter, ready to build rows.
    """
    spec = PEERS[name]
    module = importlib.import_module(f"benchmarks.peers.{spec.module}")
    return module.create(spec.variant, threads)
