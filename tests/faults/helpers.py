"""Programs that run in a process of their own and must end in time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).parents[2])  # for programs that import from the tests
_START = """
import os, random, signal, sys, threading, time
import numpy as np
import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops
"""


def run(program: str, *arguments: object, timeout: float = 60, **variables: str) -> str:
    """Runs a program in a process and returns what it printed.

    Args:
        program: Its text, after the usual imports.
        arguments: Its ``sys.argv[1:]``.
        timeout: Seconds after which it counts as hanging.
        variables: Environment variables.
    """
    threads = {"TVM_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    env: dict[str, Any] = {**os.environ, **threads, **variables}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.py"  # captures read the source of functions
        file.write_text(_START + textwrap.dedent(program))
        done = subprocess.run(
            [sys.executable, str(file), *map(str, arguments)], env=env, timeout=timeout,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert not done.returncode, f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout
