"""The coordinator: worker processes, interleaved rounds, statistics.

Frameworks never run at the same time. In every round each of them is timed once, in a rotating
order, so that all see the same background load; medians and minima are taken over rounds. A
sample during which other processes kept the machine busy is retaken a few times.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import OURS, PEERS

ROOT = Path(__file__).resolve().parent.parent
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TVM_NUM_THREADS",
)
SAMPLE_SECONDS = 0.1
MAX_CALLS = 20_000
SETTLE_SECONDS = 0.03
ATTEMPTS = 5

Log = Callable[[str], None]


class WorkerDied(RuntimeError):
    """A worker process ended without answering."""


#: What keeps frameworks from instructions beyond those of a processor; ONNX Runtime has no such
#: setting, and MKL heeds it on Intel's processors only.
RESTRICTIONS: dict[str, dict[str, str]] = {
    "x86-64-v3": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    },
}


def worker_environment(threads: int, cpu: str = "") -> dict[str, str]:
    """Return the environment that limits every framework to ``threads`` threads.

    Args:
        threads: Threads per framework.
        cpu: A key of ``RESTRICTIONS`` whose instructions all frameworks shall do with.
    """
    env = dict(os.environ)
    limits = dict(RESTRICTIONS[cpu]) if cpu else {}
    xla = limits.pop("XLA_FLAGS", "")
    env.update(limits | ({"TVMGRAPH_CPU": cpu} if cpu else {}))
    env.update({name: str(threads) for name in THREAD_VARIABLES})
    threading = f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={threads}"
    env["XLA_FLAGS"] = f"{threading} {xla}".strip()
    env["JAX_PLATFORMS"] = "cpu"
    env["GLOG_v"] = "4"
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), env.get("PYTHONPATH")]))
    return env


class WorkerProcess:
    """A framework running in its own interpreter and its own empty directory."""

    def __init__(self, name: str, python: str, threads: int, cpu: str = "") -> None:
        self.name = name
        self.directory = tempfile.TemporaryDirectory(
            prefix="benchmark-", ignore_cleanup_errors=True
        )
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self.directory.name,
            env=worker_environment(threads, cpu),
        )

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and wait for its reply."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerDied(f"process ended with status {self.process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process and remove its directory."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.directory.cleanup()


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keeps so many other processes computing meanwhile."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@dataclass
class Timing:
    """What one framework did on one row.

    Attributes:
        note: Why there is no timing ('not installed', the error), or an empty string.
        first: Seconds for building the function and the first call.
        samples: Seconds per call, one entry per round.
        others: Cores that other processes used during each sample.
        memory: Seconds of a plain pass over as many bytes, right after each sample; tvmgraph only,
            and only where memory bounds a row.
    """

    note: str = ""
    first: float = 0.0
    samples: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median seconds per call."""
        return statistics.median(self.samples)

    @property
    def minimum(self) -> float:
        """Smallest seconds per call."""
        return min(self.samples)


RowTimings = dict[str, Timing]


class Coordinator:
    """Starts the workers and measures rows over them."""

    def __init__(
        self,
        peers: Iterable[str],
        pythons: Mapping[str, str],
        threads: int,
        quiet: float,
        log: Log,
        cpu: str = "",
        sample: float = SAMPLE_SECONDS,
    ) -> None:
        self.log = log
        self.sample = sample
        self.quiet = quiet
        self.info: dict[str, dict[str, Any]] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        self.workers: dict[str, WorkerProcess] = {}
        self._start = lambda name: WorkerProcess(name, pythons[name], threads, cpu)
        for name in peers:
            self._open(name)

    def _open(self, name: str) -> None:
        try:
            worker = self._start(name)
        except OSError as error:
            self.info[name] = {"installed": True, "error": f"no interpreter: {error.strerror}"}
        else:
            self._greet(name, worker)
        self.log(f"{PEERS[name].title}: {self.state(name) or self.info[name]['version']}")

    def _greet(self, name: str, worker: WorkerProcess) -> None:
        try:
            self.info[name] = worker.ask("hello")
        except WorkerDied as error:
            self.info[name] = {"installed": True, "error": f"did not start: {error}"}
        if self.state(name):
            worker.close()
        else:
            self.workers[name] = worker

    def state(self, name: str) -> str:
        """Return why a peer cannot be measured, or an empty string."""
        if not self.info[name].get("installed"):
            return "not installed"
        return self.info[name].get("error", "")

    def peaks(self) -> dict[str, float]:
        """Return what the machine was measured to reach, or nothing without tvmgraph."""
        if OURS not in self.workers:
            return {}
        reply = self.workers[OURS].ask("peaks")
        return {} if "error" in reply else reply

    def _setup(self, name: str, row: str) -> tuple[Timing, float]:
        if name not in self.workers:
            return Timing(self.state(name)), 0.0
        try:
            reply = self.workers[name].ask("setup", row=row)
        except WorkerDied as error:
            self._restart(name)
            return Timing(f"failed: {error}"), 0.0
        if "error" in reply:
            return Timing(f"failed: {reply['error']}"), 0.0
        self.facts[row] = reply["facts"]
        return Timing(first=reply["first"]), reply["once"]

    def _restart(self, name: str) -> None:
        self.workers.pop(name).close()
        self._open(name)

    def measure(self, row: str, rounds: int) -> RowTimings:
        """Measure one row on every peer.

        Args:
            row: Key of ``benchmarks.workloads.ROWS``.
            rounds: Number of samples per peer.

        Returns:
            A timing, or the reason why there is none, for each peer.
        """
        timings: RowTimings = {}
        calls: dict[str, int] = {}
        for name in self.info:
            timings[name], once = self._setup(name, row)
            if not timings[name].note:
                calls[name] = max(1, min(MAX_CALLS, int(self.sample / max(once, 1e-7))))
            self.log(f"  {name}: {timings[name].note or 'ready'}")
        for i in range(rounds):
            names = list(calls)
            for name in names[i % len(names) :] + names[: i % len(names)] if names else []:
                self._sample(name, calls, timings[name])
        return timings

    def _sample(self, name: str, calls: dict[str, int], timing: Timing) -> None:
        reply = self._quietest(name, calls[name])
        if "error" in reply:
            calls.pop(name)
            timing.note, timing.samples = f"failed: {reply['error']}", []
        else:
            timing.samples.append(reply["seconds"])
            timing.others.append(reply["others"])
            if reply["memory"]:
                timing.memory.append(reply["memory"])

    def _quietest(self, name: str, calls: int) -> dict[str, Any]:
        best: dict[str, Any] = {}
        for _ in range(ATTEMPTS):
            time.sleep(SETTLE_SECONDS)  # thread pools of the previous framework stop spinning
            try:
                reply = self.workers[name].ask("measure", calls=calls)
            except WorkerDied as error:
                self._restart(name)
                return {"error": str(error)}
            if "error" in reply:
                return reply
            if not best or reply["others"] < best["others"]:
                best = reply
            if best["others"] <= self.quiet:
                break
        return best

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers.values():
            worker.close()


def best_peer(timings: RowTimings, key: Callable[[Timing], float]) -> str | None:
    """Return the fastest framework other than tvmgraph, or None when there is none."""
    names = [n for n, t in timings.items() if n != OURS and t.samples]
    return min(names, key=lambda n: key(timings[n])) if names else None
