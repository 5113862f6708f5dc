"""Starts the programs of this folder on several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run(
    program: str, count: int, *args: str, status: int = 0, timeout: float = 300, limit: float = 60
) -> str:
    """Runs a program on ``count`` processes and returns what it wrote.

    Args:
        program: File in ``programs``, or any path.
        count: Number of processes.
        *args: Its arguments.
        status: The exit status that it shall have.
        timeout: Seconds that it may take.
        limit: Seconds that a collective may take.
    """
    command = [sys.executable, "-m", "tvmgraph.distributed.launch", "-n", str(count)]
    command += ["--timeout", str(timeout), "--collective-timeout", str(limit)]
    command += [str(HERE / "programs" / program), *args]
    paths = [str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=timeout + 30, check=False
    )
    text = done.stdout + done.stderr
    assert done.returncode == status, text
    return text
