"""Where the workers of compiled code run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import os
import tvmgraph as ms
from tvmgraph import jit, ops
free = os.sched_getaffinity(0)
jit(lambda a: ops.matmul(a, a))(ops.ones((300, 300)))
masks = [os.sched_getaffinity(int(t)) for t in os.listdir("/proc/self/task")]
print(os.sched_getaffinity(0) == free, sum(len(m) == 1 for m in masks))
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be bound here")
@pytest.mark.parametrize("bind, threads", [("1", "all"), ("0", "all"), ("1", "1")])
def test_workers_have_a_core_each_and_the_caller_stays_free(bind: str, threads: str) -> None:
    cores = len(os.sched_getaffinity(0))
    count = cores if threads == "all" else int(threads)
    env = {**os.environ, "TVMGRAPH_BIND_WORKERS": bind, "TVM_NUM_THREADS": str(count)}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    free, bound = done.stdout.split()
    assert free == "True"
    assert int(bound) == (count - 1 if bind == "1" and count == cores > 1 else 0)
