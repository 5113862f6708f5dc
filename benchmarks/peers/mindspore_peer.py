"""Adapter for MindSpore: Cells in graph mode, with or without graph-kernel fusion."""

from typing import Any

import mindspore
import numpy as np

from benchmarks.peers import Call
from benchmarks.peers.cells import build_cell
from benchmarks.workloads import Workload


class MindSporePeer:
    """Runs a row as a Cell in ``GRAPH_MODE``, MindSpore's fastest form on the CPU."""

    def __init__(self, fusion: bool, threads: int) -> None:
        mindspore.set_context(mode=mindspore.GRAPH_MODE, device_target="CPU")
        mindspore.set_context(runtime_num_threads=threads)
        if fusion:
            mindspore.set_context(enable_graph_kernel=True)

    def version(self) -> str:
        """Return the version of MindSpore."""
        return mindspore.__version__

    def build(self, work: Workload) -> Call:
        """Build the Cell and bind its arguments."""
        cell = build_cell(mindspore, work)
        args = [mindspore.Tensor(a) for a in work.args]
        wait = mindspore.runtime.synchronize

        def call() -> Any:
            result = cell(*args)
            wait()
            return result

        return call

    def to_numpy(self, result: Any) -> np.ndarray:
        """Copy a Tensor to NumPy."""
        return result.asnumpy()


def create(variant: str, threads: int) -> MindSporePeer:
    """Create the adapter for variant ``graph`` or ``fusion``."""
    return MindSporePeer(variant == "fusion", threads)
