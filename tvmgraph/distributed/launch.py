"""``tvmgraph-run``: starts a script on several processes with the launcher of an installed MPI.

It adds what launchers lack: an error in one process ends all of them, processes share the cores,
a time limit, and an end when the launcher itself stays behind after a failure.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Mapping
from io import BufferedReader
from typing import Any, TextIO

from tvmgraph.distributed.engine import JOB, TIMEOUT
from tvmgraph.errors import ConfigError
from tvmgraph.machine.threads import VARIABLE as THREADS

_KEYS = {
    "launch": {"hosts", "ranks_per_host", "threads_per_rank", "bind", "timeout_s",
               "collective_timeout_s", "kill_grace_s", "mpiexec", "launcher", "launcher_exec",
               "env"},
    "mesh": {"shape", "names"},
}  # fmt: skip
_SIGNS = ("Ending the job", "Abort(", "MPI_ABORT")  # what failing processes write
_GAVE_UP = 71


def read_config(path: str | None) -> dict[str, Any]:
    """Reads ``cluster.toml``: tables ``[launch]`` and ``[mesh]``.

    Args:
        path: The file; ``None`` gives an empty table.

    Raises:
        ConfigError: for an unknown table or key.
    """
    if path is None:
        return {}
    with open(path, "rb") as file:
        found = tomllib.load(file)
    for table, values in found.items():
        unknown = set(values) - _KEYS.get(table, set())
        if table not in _KEYS or unknown:
            what = ", ".join(sorted(unknown)) or f"[{table}]"
            raise ConfigError(
                f"{path}: unknown {what}", op="tvmgraph-run",
                fix="; ".join(f"[{t}] takes {', '.join(sorted(k))}" for t, k in _KEYS.items()),
            )  # fmt: skip
    return found


def _find_launcher(named: str | None) -> str:
    beside = os.path.dirname(sys.executable)
    found = named or shutil.which("mpiexec", path=beside + os.pathsep + os.environ.get("PATH", ""))
    if found is None:
        raise ConfigError("no mpiexec was found", op="tvmgraph-run",
                          fix="pip install 'tvmgraph[mpi]', or install an MPI")  # fmt: skip
    return found


def command_of(options: argparse.Namespace, config: Mapping[str, Any], folder: str) -> list[str]:
    """Returns the command that starts the processes.

    Args:
        options: What the user asked for.
        config: What :func:`read_config` returned.
        folder: Where processes of a host note their progress.
    """
    launch = config.get("launch", {})
    hosts = launch.get("hosts", [])
    count = options.n or math.prod(config.get("mesh", {}).get("shape", [1]))
    each = launch.get("ranks_per_host") or (math.ceil(count / len(hosts)) if hosts else count)
    cores = os.cpu_count() or 1
    threads = launch.get("threads_per_rank") or max(1, cores // each)
    variables = {THREADS: threads, JOB: folder, **launch.get("env", {})}
    if "collective_timeout_s" in launch:
        variables[TIMEOUT] = launch["collective_timeout_s"]
    if options.collective_timeout:
        variables[TIMEOUT] = options.collective_timeout
    launcher = _find_launcher(launch.get("mpiexec"))
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    command, version = [launcher], said.stdout
    if "Open MPI" in version or "OpenRTE" in version:
        if hosts:
            command += ["--host", ",".join(f"{h}:{each}" for h in hosts)]
        command += ["--oversubscribe"]
        for name, value in variables.items():
            command += ["-x", f"{name}={value}"]
    else:
        if hosts:
            command += ["-hosts", ",".join(hosts), "-ppn", str(each)]
        if "launcher_exec" in launch:
            command += ["-launcher", launch.get("launcher", "ssh")]
            command += ["-launcher-exec", launch["launcher_exec"]]
        # A process that waits for others yields its core again and again, and Linux then leaves
        # two of them on one core for seconds: a step took 8 ms instead of 3.
        if launch.get("bind", each * threads <= cores) and "hwloc" in version:
            command += ["-bind-to", f"core:{threads}"]
        for name, value in variables.items():
            command += ["-genv", name, str(value)]
    program = [sys.executable, "-m", "tvmgraph.distributed.script", *options.script]
    return [*command, "-n", str(count), *program]


def whose(line: str, folder: str) -> str | None:
    """Returns which rank ended by what a launcher says of a process, and how far it was.

    Args:
        line: What the launcher wrote.
        folder: Where processes of this host note their progress.
    """
    found = re.search(r"\bPID (\d+)", line)
    path = os.path.join(folder, found[1]) if found else ""
    if not found or not os.path.isfile(path):
        return None
    with open(path) as file:
        rank = int(file.read())
    with open(os.path.join(folder, "progress"), "rb") as file:
        number = int.from_bytes(file.read()[8 * rank : 8 * rank + 8], sys.byteorder)
    return f"rank {rank} (PID {found[1]}) ended, after {number} collectives"


class _Job:
    """The launcher as a process group of its own, which is ended as a whole."""

    def __init__(self, command: list[str], grace: float, limit: float | None, folder: str) -> None:
        self.grace, self.limit, self.failed_at, self.folder = grace, limit, 0.0, folder
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        pairs = ((self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr))
        self.readers = [threading.Thread(target=self._pass_on, args=p, daemon=True) for p in pairs]
        for reader in self.readers:
            reader.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._end(signal.SIGTERM))

    def _pass_on(self, source: BufferedReader, target: TextIO) -> None:
        """Writes what the processes write, and looks for signs of a failure."""
        left = ""
        while chunk := source.read1(1 << 16):
            text = chunk.decode(errors="replace")
            target.write(text)
            target.flush()
            *lines, left = (left + text).split("\n")
            for line in lines:
                ended = whose(line, self.folder)
                if ended is not None:
                    sys.stderr.write(f"tvmgraph-run: {ended}\n")
                if any(sign in line for sign in _SIGNS):
                    self.failed_at = self.failed_at or time.monotonic()

    def _end(self, number: int) -> None:
        self.failed_at = self.failed_at or time.monotonic()
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return

    def wait(self) -> int:
        """Waits for the end; returns the exit status."""
        start = time.monotonic()
        while self.process.poll() is None:
            time.sleep(0.05)
            now = time.monotonic()
            if self.limit and now - start > self.limit and not self.failed_at:
                sys.stderr.write(f"tvmgraph-run: the time limit of {self.limit:g} s is over\n")
                self._end(signal.SIGTERM)
            if self.failed_at and now - self.failed_at > self.grace:
                sys.stderr.write(
                    f"tvmgraph-run: still running {self.grace:g} s after a failure: killed\n"
                )
                self._end(signal.SIGKILL)
                self.process.wait()
                return _GAVE_UP
        for reader in self.readers:
            reader.join(1)
        code = self.process.returncode
        return code if code >= 0 else 128 - code


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status.

    Args:
        arguments: The arguments; by default those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="tvmgraph-run", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("-n", type=int, help="number of processes")
    parser.add_argument("--config", help="cluster.toml with [launch] and [mesh]")
    parser.add_argument("--timeout", type=float, help="seconds the whole job may take")
    parser.add_argument("--collective-timeout", type=float, help="seconds a collective may take")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="script and its arguments")
    options = parser.parse_args(arguments)
    if not options.script:
        parser.error("which script?")
    try:
        config = read_config(options.config)
        with tempfile.TemporaryDirectory(prefix="tvmgraph-run-") as folder:
            launch = config.get("launch", {})
            job = _Job(
                command_of(options, config, folder), launch.get("kill_grace_s", 10),
                options.timeout or launch.get("timeout_s"), folder,
            )  # fmt: skip
            return job.wait()
    except ConfigError as e:
        sys.stderr.write(f"{e}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
