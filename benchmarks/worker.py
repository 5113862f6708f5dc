"""One framework in one process: builds rows, checks them, times calls when asked.

The coordinator writes one JSON command per line to stdin and reads one JSON reply per line from
the process's original stdout; whatever a framework prints goes to stderr instead.
"""

import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import numpy as np

from benchmarks.peers import OURS, PEERS, Peer, load
from benchmarks.rows import ROWS
from benchmarks.workloads import Workload

WARM_CALLS = 3


def _private_stdout() -> TextIO:
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


def _busy_seconds() -> float:
    """CPU seconds that all processes together have used since boot (0 where /proc is absent)."""
    if not os.path.exists("/proc/stat"):
        return 0.0
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK")


def _limit_cpus(threads: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


class Worker:
    """Answers the coordinator's commands for one peer."""

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.threads = threads
        self.peer: Peer | None = None
        self.call: Any = None
        self.memory: Callable[[], None] | None = None

    def hello(self) -> dict[str, Any]:
        """Import the framework and say which version it is, or that it is absent."""
        if importlib.util.find_spec(PEERS[self.name].package) is None:
            return {"installed": False}
        _limit_cpus(self.threads)
        self.peer = load(self.name, self.threads)
        return {
            "installed": True,
            "version": self.peer.version(),
            "python": platform.python_version(),
            "numpy": np.__version__,
        }

    def peaks(self) -> dict[str, Any]:
        """Measure what this machine can do: GFLOP/s of float32 and GB/s from memory."""
        from tvmgraph.compiler.measuring.machine import peaks

        found = peaks(again=True)
        return {"flops": found.float32 * 1e9, "bandwidth": found.bandwidth * 1e9}

    def setup(self, row: str) -> dict[str, Any]:
        """Build a row, compare one call with the NumPy reference and warm up."""
        assert self.peer is not None
        self.call = self.memory = None
        work = ROWS[row]()
        start = time.perf_counter()
        call = self.peer.build(work)
        results = [call()]
        first = time.perf_counter() - start
        results += [call() for _ in range(work.calls - 1)]
        arrays = [np.asarray(self.peer.to_numpy(result)) for result in results]
        got = arrays[0] if work.calls == 1 else np.stack(arrays)
        np.testing.assert_allclose(got, work.expected(), rtol=work.rtol, atol=work.atol)
        for _ in range(WARM_CALLS):
            call()
        start = time.perf_counter()
        call()
        once = time.perf_counter() - start
        self.call, self.memory = call, self._memory_pass(work)
        facts = {"title": work.title, "flops": work.flops, "bytes": work.bytes}
        return {"first": first, "once": once, "facts": facts}

    def measure(self, calls: int) -> dict[str, Any]:
        """Time a number of calls after one that wakes the thread pool.

        Of a single thread it is the processor's time, which others' work does not stretch.

        Returns the seconds per call, how many cores other processes used meanwhile, and the seconds
        of a pass over as much memory (0 for other peers and rows).
        """
        call = self.call
        call()
        busy, own, start = _busy_seconds(), time.process_time(), time.perf_counter()
        for _ in range(calls):
            call()
        elapsed, own = time.perf_counter() - start, time.process_time() - own
        others = _busy_seconds() - busy - own
        return {
            "seconds": (own if self.threads == 1 else elapsed) / calls,
            "others": max(0.0, others / elapsed),
            "memory": self._memory_seconds(calls),
        }

    def _memory_pass(self, work: Workload) -> Callable[[], None] | None:
        """What is compared with the bandwidth of memory: a pass over as many bytes as the row."""
        if self.name != OURS or not work.bytes:
            return None
        from tvmgraph.compiler.measuring.machine import memory_pass

        return memory_pass(work.bytes - work.written, work.written, self.threads)

    def _memory_seconds(self, calls: int) -> float:
        """Seconds of a pass over memory at this moment: a shared machine's bandwidth changes."""
        if self.memory is None:
            return 0.0
        self.memory()
        start = time.perf_counter()
        for _ in range(calls):
            self.memory()
        return (time.perf_counter() - start) / calls

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run one command; an exception becomes an ``error`` reply."""
        try:
            kind = command.pop("command")
            return getattr(self, kind)(**command)
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return {"error": f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]}


def main() -> None:
    """Serve commands until stdin closes."""
    channel = _private_stdout()
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        channel.write(json.dumps(worker.answer(json.loads(line))) + "\n")
        channel.flush()


if __name__ == "__main__":
    main()
