"""Starts the programs of this folder on several processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent


def run(
    program: str, count: int, *args: str, status: int = 0, timeout: float = 300, limit: float = 60,
    before: Sequence[str] = (), options: Sequence[str] = (),
) -> str:  # fmt: skip
    """Runs a program on ``count`` processes and returns what it wrote.

    Args:
        program: File in ``programs``, or any path.
        count: Number of processes.
        *args: Its arguments.
        status: The exit status that it shall have.
        timeout: Seconds that it may take.
        limit: Seconds that a collective may take.
        before: What stands before the launcher.
        options: Its other options.
    """
    command = [*before, sys.executable, "-m", "tvmgraph.distributed.launch", "-n", str(count)]
    command += ["--timeout", str(timeout), "--collective-timeout", str(limit)]
    command += [*options, str(HERE / "programs" / program), *args]
    paths = [str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=timeout + 30, check=False
    )
    text = done.stdout + done.stderr
    assert done.returncode == status, text
    return text


_ENTER = """#!/bin/sh
# In place of ssh: enters the network namespace that stands for a host.
while [ "${{1#-}}" != "$1" ]; do shift; done
case $1 in {hosts[0]}) space={spaces[0]};; *) space={spaces[1]};; esac
shift
exec ip netns exec $space sh -c "$*"
"""
_CLUSTER = """[launch]
hosts = ["{hosts[0]}", "{hosts[1]}"]
ranks_per_host = 1
launcher_exec = "{enter}"
[launch.env]
UCX_TLS = "tcp"  # shared memory would reach from one namespace to the other
UCX_NET_DEVICES = "{cable}"
"""


CABLE = "cable"  # the device at either end


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Two network namespaces with a cable between them, which stand for two machines.

    Args:
        folder: Where their files are written.

    Yields:
        What runs a command on the first, and options of the launcher that starts one process on
        each. Both are empty where this process may not make namespaces.
    """
    hosts, end = ("10.99.0.1", "10.99.0.2"), f"tg{os.getpid()}"
    spaces = [f"{end}a", f"{end}b"]
    enter, cluster = folder / "enter", folder / "cluster.toml"
    enter.write_text(_ENTER.format(hosts=hosts, spaces=spaces))
    enter.chmod(0o755)
    cluster.write_text(_CLUSTER.format(hosts=hosts, enter=enter, cable=CABLE))
    commands = [f"netns add {s}" for s in spaces]
    near, far = spaces
    commands += [f"-n {near} link add {CABLE} type veth peer name {CABLE} netns {far}"]
    for space, host in zip(spaces, hosts):
        commands += [f"-n {space} addr add {host}/24 dev {CABLE}"]
        commands += [f"-n {space} link set {device} up" for device in (CABLE, "lo")]
    try:
        allowed = all(_ip(command) is not None for command in commands)
        end = time.monotonic() + 10  # the system tells a moment later that a cable is plugged in
        while allowed and not all("state UP" in (_ip(f"-n {s} link show {CABLE}") or "")
                                  for s in spaces):  # fmt: skip
            assert time.monotonic() < end, "the cable has no carrier"
            time.sleep(0.05)
        before = ["ip", "netns", "exec", near]
        yield (before, ["--config", str(cluster)]) if allowed else ([], [])
    finally:
        for space in spaces:
            _ip(f"netns del {space}")


def _ip(command: str) -> str | None:
    """What ``ip`` wrote, ``None`` where it failed."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["ip", *command.split()], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None
    return None
