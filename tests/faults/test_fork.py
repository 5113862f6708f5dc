"""A forked child computes, whatever the process did before."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.faults import helpers

#: ``child(f)`` forks, runs ``f`` in the child, and waits. Without ``f`` the child ends as programs
#: do; that takes the interpreter long, so the others just stop.
_FORK = """
import traceback

def child(f=None):
    pid = os.fork()
    if pid == 0:
        if f is None:
            sys.exit(0)
        try:
            f()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    for _ in range(3000):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, status
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")

product = jit(lambda x: ops.matmul(x, x) + 1)
numbers = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)
x = Tensor(numbers)

right = numbers @ numbers + 1

def check():
    assert np.allclose(product(x).asnumpy(), right, atol=1e-3)
"""


def run(program: str, *arguments: object, **variables: str) -> None:
    helpers.run(_FORK + textwrap.dedent(program), *arguments, timeout=120, **variables)


@pytest.mark.parametrize("bind", ["0", "1"])
def test_a_forked_child_runs_parallel_kernels(bind: str) -> None:
    """Right after a kernel, while its workers still spin, and later, when they sleep."""
    program = """
    def workers():
        return len(os.listdir("/proc/self/task")) - 1

    def grandchild():
        check()
        assert workers() == 1
        child(check)

    check()
    for pause in (0, 0.003, 0.1):
        time.sleep(pause)
        child(grandchild)
    child()  # ends without having computed
    check()
    assert workers() == 1
    """
    run(program, TVMGRAPH_BIND_WORKERS=bind)


def test_a_child_of_another_thread() -> None:
    """The thread that forks is the child's only one."""
    program = """
    def in_thread(f):
        thread = threading.Thread(target=f)
        thread.start()
        thread.join()

    check()
    in_thread(lambda: (check(), child(lambda: (check(), in_thread(check)))))
    child(lambda: (in_thread(check), check()))
    """
    run(program)


def test_multiprocessing_and_loaded_modules(tmp_path: Path) -> None:
    program = """
    import multiprocessing
    import tvmgraph.runtime
    from concurrent.futures import ProcessPoolExecutor

    class Net(nn.Cell):
        def construct(self, x):
            return ops.matmul(x, x) + 1

    def times(n):
        return float(product(x * n).asnumpy().sum())

    path = sys.argv[1] + "/net.tvm"
    ms.export(Net(), x, file_name=path, file_format="TVM")
    module = tvmgraph.runtime.load(path)
    assert np.allclose(module(numbers), right, atol=1e-3)

    def again(_):
        return np.allclose(module(numbers), right, atol=1e-3)

    check()
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        assert np.allclose(pool.map(times, [1, 2, 3]), list(map(times, [1, 2, 3])))
        assert all(pool.map(again, range(4)))
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert all(pool.map(again, range(2)))
    """
    run(program, tmp_path)


def test_a_fork_during_a_compile_of_another_thread() -> None:
    """The child can compile and call; nothing is locked for ever."""
    program = """
    rng = random.Random(5)
    functions = []

    def compile_all():
        for i in range(3):
            f = jit(lambda x, i=i: ops.tanh(ops.matmul(x, x) * (i + 0.5)) + i)
            functions.append(f)
            f(x)

    def compute():
        check()
        y = jit(lambda x: ops.exp(x * 0.25) - 3)(x).asnumpy()  # compiles here
        assert np.allclose(y, np.exp(numbers * 0.25) - 3, atol=1e-4)
        functions[-1](x)

    check()
    thread = threading.Thread(target=compile_all)
    thread.start()
    forks = 0
    while thread.is_alive() and forks < 3:
        time.sleep(rng.uniform(0, 0.3))
        if functions:
            child(compute)
            forks += 1
    thread.join()
    assert forks
    """
    run(program, TVMGRAPH_CACHE_MB="0")


def test_forks_while_other_threads_run_kernels() -> None:
    """Also of a process whose threads allocate, free and start machines at that moment."""
    program = """
    stop = threading.Event()
    sizes = jit(lambda x: ops.exp(x * 0.25) - 3, dynamic=True)

    def call(seed):
        rng = random.Random(seed)
        while not stop.is_set():
            check()
            sizes(Tensor(numbers[: rng.randint(1, 256)]))

    def compute():
        assert sys.getswitchinterval() == 0.005
        check()
        sizes(x)

    check(), sizes(x)
    threads = [threading.Thread(target=call, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(12):
        child(compute)
    assert sys.getswitchinterval() == 0.005
    stop.set()
    for thread in threads:
        thread.join()
    """
    run(program)


def test_a_fork_while_rows_of_a_dataset_are_prepared() -> None:
    program = """
    from tvmgraph import dataset as ds

    rows = ds.NumpySlicesDataset(numbers, ["x"], shuffle=False).map(lambda v: v + 1, ["x"])
    reading = iter(rows.create_tuple_iterator(output_numpy=True))
    next(reading)

    def refused():
        try:
            next(reading)
        except ms.errors.DeviceError as e:
            assert "forked" in str(e)
        else:
            raise AssertionError("not refused")
        whole = [row for [row] in rows.create_tuple_iterator(output_numpy=True)]
        assert np.array_equal(whole, numbers + 1)
        check()

    check()
    child(refused)
    assert len(list(reading)) == 255
    """
    run(program)


IMPORTING = """
import os, sys, threading, time
from tvmgraph import Tensor

thread = threading.Thread(target=lambda: __import__("slow"))
thread.start()
while "slow" not in sys.modules:
    time.sleep(0.001)
child = os.fork()
if not child:
    import slow
    os._exit(slow.answer)
end = time.monotonic() + 60
while not (done := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
    time.sleep(0.01)
if not done[0]:
    os.kill(child, 9)
thread.join()
print(os.waitstatus_to_exitcode(done[1]) if done[0] else "hangs")
"""


def test_a_fork_during_an_import_of_another_thread(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.3)\nanswer = 7\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    found = subprocess.run(
        [sys.executable, "-c", IMPORTING], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert found.stdout.strip() == "7", found.stderr
