"""Where the workers of compiled code run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tvmgraph.runtime.workers import core_word

_PROGRAM = """
import os
import tvmgraph as ms
from tvmgraph import jit, ops
free = os.sched_getaffinity(0)
jit(lambda a: ops.matmul(a, a))(ops.ones((300, 300)))
masks = [os.sched_getaffinity(int(t)) for t in os.listdir("/proc/self/task")]
print(os.sched_getaffinity(0) == free, sum(len(m) == 1 for m in masks))
"""

_MOVING = """
import os
import time
from tvmgraph import jit, ops
product = jit(lambda a: ops.matmul(a, a))
a = ops.ones((300, 300))
product(a)
me = os.getpid()
for _ in range(3):
    time.sleep(2e-3)  # a worker moves once in a millisecond at most
    [bound] = [m for t in os.listdir("/proc/self/task")
               if int(t) != me and len(m := os.sched_getaffinity(int(t))) == 1]
    os.sched_setaffinity(0, bound)
    product(a)
    print(*bound)
"""

can_bind = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="threads cannot be bound here"
)


@can_bind
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


@can_bind
@pytest.mark.skipif(core_word() is None, reason="the core of a thread cannot be read here")
def test_a_worker_leaves_the_core_that_the_caller_comes_to() -> None:
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        pytest.skip("one core")
    env = {**os.environ, "TVMGRAPH_BIND_WORKERS": "1", "TVM_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", _MOVING], env=env, capture_output=True, text=True, check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )  # fmt: skip
    seen = [int(core) for core in done.stdout.split()]
    assert seen in ([cores[0], cores[1], cores[0]], [cores[1], cores[0], cores[1]])
