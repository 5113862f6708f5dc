"""Checks samples in other processes, so that what ends a process is one operator's failure."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

from tvmgraph.config import JitConfig
from tvmgraph.testing.conformance import compile_case, run_cases
from tvmgraph.testing.samples import Case, all_cases

#: Samples that one process compiles as one module.
BATCH = 32
_WORKER = (sys.executable, "-m", "tvmgraph.testing.isolated")
_ERRORS_KEPT = 2000  # characters of what a worker wrote before it ended

#: Called with a sample and its problem or ``None``.
Report = Callable[[Case, str | None], None]


@dataclass(frozen=True)
class Isolated:
    """How samples are checked in other processes.

    Attributes:
        target: A name from ``configs/targets.toml``.
        level: ``"O0"`` to ``"O3"``.
        runs: Whether this machine can run what is compiled.
        limit: Seconds without a result after which a process counts as hanging.
        workers: Processes at a time.
        command: What starts a worker.
    """

    target: str = "host"
    level: str = "O2"
    runs: bool = True
    limit: float = 300.0
    workers: int = min(4, os.cpu_count() or 1)
    command: Sequence[str] = _WORKER

    def check(self, cases: Sequence[Case], report: Report) -> None:
        """Checks samples; reports come from several threads, one for every sample.

        Args:
            cases: The samples.
            report: Gets a sample and what is wrong with it, or None.
        """
        batches = [cases[i : i + BATCH] for i in range(0, len(cases), BATCH)]
        stop = threading.Event()  # an interruption ends the workers too: nothing is to be retried
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                for _ in pool.map(lambda batch: self._check_batch(batch, report, stop), batches):
                    pass
            except BaseException:
                stop.set()
                raise

    def _check_batch(self, batch: Sequence[Case], report: Report, stop: threading.Event) -> None:
        """Checks samples together; where the process ends, those left are halved and tried again.

        A process that gave some results ended at the next sample, so that one is tried alone.
        """
        waiting = deque([list(batch)])
        while waiting and not stop.is_set():
            cases = waiting.popleft()
            left, end = self._run(cases, report)
            hung = end == self._too_long and len(left) < len(cases)  # at the next sample
            if left and (hung or len(cases) == 1):
                report(left.pop(0), end)
                waiting.extendleft([left] if left else [])
            elif left:
                cut = max(1, len(left) // 2) if len(left) == len(cases) else 1
                waiting.extendleft(part for part in (left[cut:], left[:cut]) if part)

    @property
    def _too_long(self) -> str:
        return f"it took more than {self.limit:g} s"

    def _run(self, cases: list[Case], report: Report) -> tuple[list[Case], str]:
        """Checks samples in a process; returns those without a result and how it ended."""
        worker = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        errors: deque[str] = deque(maxlen=20)
        listener = threading.Thread(target=lambda: errors.extend(worker.stderr or ()))
        listener.start()
        task = {"cases": [c.name for c in cases], "target": self.target, "level": self.level,
                "runs": self.runs}  # fmt: skip
        by_name = {c.name: c for c in cases}
        hangs = False

        def end() -> None:
            nonlocal hangs
            hangs = True
            worker.kill()

        assert worker.stdin is not None and worker.stdout is not None
        with contextlib.suppress(BrokenPipeError), worker.stdin as to_worker:
            json.dump(task, to_worker)
        for name, problem in _answers(worker.stdout, self.limit, end):
            report(by_name.pop(name), problem)
        status = worker.wait()
        listener.join()
        for stream in (worker.stdout, worker.stderr):
            if stream is not None:
                stream.close()
        why = self._too_long if hangs else _end_of(status, errors)
        return list(by_name.values()), why


def _answers(lines: IO[str], limit: float, end: Callable[[], None]) -> Iterator[list[Any]]:
    """Yields what a worker writes; ends it where nothing comes for ``limit`` seconds."""
    while True:
        timer = threading.Timer(limit, end)
        timer.start()
        line = lines.readline()
        timer.cancel()
        if not line:
            return
        if line.startswith("["):
            yield json.loads(line)


def _end_of(status: int, errors: Sequence[str]) -> str:
    """How a process ended, with the first error that it wrote at the end."""
    text = next((line.strip() for line in errors if "error" in line.lower()), "")
    text = f": {text[:_ERRORS_KEPT]}" if text else ""
    if status < 0:
        return f"the process was ended by {signal.Signals(-status).name}{text}"
    return f"the process ended with status {status}{text}"


def work() -> None:
    """Checks the samples that standard input names, and writes a line for each."""
    task = json.load(sys.stdin)
    wanted = set(task["cases"])
    cases = [case for case in all_cases() if case.name in wanted]
    config = JitConfig(jit_level=task["level"], options={"target": task["target"]})
    found: Iterator[tuple[Case, str | None]]
    if task["runs"]:
        found = run_cases(cases, config)
    else:
        found = ((case, compile_case(case, config)) for case in cases)
    for case, problem in found:
        print(json.dumps([case.name, problem]), flush=True)


if __name__ == "__main__":
    work()
