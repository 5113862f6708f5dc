"""Adapter for tvmgraph: a jitted function around the shared Cells."""

from typing import Any

import numpy as np

import tvmgraph
from benchmarks.peers import Call
from benchmarks.peers.cells import build_cell
from benchmarks.workloads import Workload
from tvmgraph import jit


class TvmgraphPeer:
    """Runs a row through ``tvmgraph.jit``; a call returns when the kernel has finished."""

    def version(self) -> str:
        """Return the version of tvmgraph."""
        return tvmgraph.__version__

    def build(self, work: Workload) -> Call:
        """Compile the row and bind its arguments."""
        cell = build_cell(tvmgraph, work)
        run = jit(cell)
        args = [tvmgraph.Tensor(a) for a in work.args]
        return lambda: run(*args)

    def to_numpy(self, result: Any) -> np.ndarray:
        """Copy a Tensor to NumPy."""
        return result.asnumpy()


def create(variant: str, threads: int) -> TvmgraphPeer:
    """Create the adapter; the thread count comes from ``TVM_NUM_THREADS``."""
    return TvmgraphPeer()
