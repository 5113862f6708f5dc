"""The threads that loops of compiled code are divided among."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tvmgraph import Tensor, jit, ops
from tvmgraph.runtime import pool, workers

X = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)


class _Environment(ctypes.Structure):
    _fields_ = [("lock", ctypes.c_void_p), ("tasks", ctypes.c_int32)]


_BODY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(_Environment), ctypes.c_void_p
)
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int32, _BODY, ctypes.c_void_p, ctypes.c_int32)


@pytest.fixture
def state() -> Iterator[Any]:
    """The pool's state; as it was afterwards."""
    jit(lambda x: ops.matmul(x, x))(Tensor(X))  # brings its code
    workers.affinity()
    if pool._pool is None:
        pytest.skip("TVM's own pool is in use here")
    threads = pool._pool.state.threads
    yield pool._pool.state
    pool._pool.state.threads = threads


def launch(body: Any) -> int:
    assert pool._pool is not None
    return _LAUNCH(pool._pool.launch)(_BODY(body), None, 0)


def test_every_task_is_done_once(state: Any) -> None:
    pool._pool.grow(5)
    seen: Counter[tuple[int, int]] = Counter()

    def body(task: int, environment: Any, data: Any) -> int:
        seen[task, environment.contents.tasks] += 1
        return 0

    for i in range(1, 300):
        assert launch(body) == 0
        assert seen == {(task, 5): i for task in range(5)}


def test_the_caller_does_what_no_worker_begins(state: Any) -> None:
    """A call does not wait for workers that get no core."""
    state.threads = pool._pool.workers + 40  # nobody will come for these
    done: Counter[int] = Counter()

    def body(task: int, environment: Any, data: Any) -> int:
        done[task] += 1
        return 0

    assert launch(body) == 0
    assert done == dict.fromkeys(range(state.threads), 1)


def test_a_loop_in_a_loop_and_of_another_thread_is_done_alone(state: Any) -> None:
    inner: list[int] = []

    def count(task: int, environment: Any, data: Any) -> int:
        inner.append(environment.contents.tasks)
        return 0

    def body(task: int, environment: Any, data: Any) -> int:
        if task == 0:
            launch(count)
            other = threading.Thread(target=launch, args=(count,))
            other.start()
            other.join()
        return 0

    pool._pool.grow(2)
    assert launch(body) == 0
    assert inner == [1, 1]


def test_a_task_that_fails_is_reported_in_the_thread_that_called(state: Any) -> None:
    pool._pool.grow(3)
    alone: list[int] = []

    def body(task: int, environment: Any, data: Any) -> int:
        if environment.contents.tasks == 1:
            alone.append(threading.get_ident())
        return -1 if task == environment.contents.tasks - 1 else 0

    assert launch(body) == -1
    assert alone == [threading.get_ident()]
    assert launch(lambda *_: 0) == 0


def test_calls_of_many_threads_are_exact(state: Any) -> None:
    product = jit(lambda x: ops.matmul(x, x) + 1)
    right = product(Tensor(X)).asnumpy()
    wrong: list[int] = []

    def call(_: int) -> None:
        for i in range(100):
            if not np.array_equal(product(Tensor(X)).asnumpy(), right):
                wrong.append(i)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


_MANY = """
import os, sys
import numpy as np
from tvmgraph import Tensor, jit, ops
from tvmgraph.runtime import pool
x = np.random.default_rng(0).normal(size=(211, 173)).astype(np.float32)
f = jit(lambda x: ops.softmax(ops.matmul(x, x.T) + 1).sum(0))
for _ in range(50):
    y = f(Tensor(x)).asnumpy()
assert len(pool.threads()) == int(os.environ["TVM_NUM_THREADS"]) - 1
z = x @ x.T + 1
z = np.exp(z - z.max(1, keepdims=True))
assert np.allclose(y, (z / z.sum(1, keepdims=True)).sum(0), atol=1e-4)
"""


def test_more_threads_than_cores_compute_the_same() -> None:
    """And the process ends well: neither the pool's memory nor its code goes before its threads."""
    count = 4 * (os.cpu_count() or 1) + 3
    env = {**os.environ, "TVM_NUM_THREADS": str(count), "TVMGRAPH_CACHE_MB": "0"}
    done = subprocess.run([sys.executable, "-c", _MANY], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
