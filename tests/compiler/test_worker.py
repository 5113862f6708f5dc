"""The compiler in a process of its own: what ends it, and what the user sees of that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, ops
from tvmgraph.compiler import remote, worker
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.compile import clear_cache
from tvmgraph.compiler.worker import CompilerEnded
from tvmgraph.errors import CompileError, ConfigError
from tvmgraph.machine.targets import HOST, resolve

pytestmark = pytest.mark.skipif(disk.linker() is None, reason="there is no linker here")

#: An intrinsic of another processor: LLVM ends its process when it has to find an instruction.
NO_SUCH_INSTRUCTION = "llvm.amdgcn.rcp"


@pytest.fixture(autouse=True)
def own_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is found on disk or in memory, and a worker is what compiles."""
    monkeypatch.setenv(disk.FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(worker.WORKER_VARIABLE, raising=False)
    clear_cache()
    yield
    clear_cache()
    ms.reset_context()


def worker_id() -> int:
    return worker.call(os.getpid)


def gone(pid: int) -> bool:
    """Whether a process has ended, or does within some seconds."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def run(program: str, *options: str) -> str:
    command = [sys.executable, *options, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def doubled(x: Tensor, shift: float = 0.25) -> Tensor:
    return ops.exp(x) * 2 - shift


def check_compiles(number: float) -> None:
    """A graph that was never compiled before compiles and runs."""
    x = np.linspace(-1, 1, 12, dtype=np.float32)
    y = jit(lambda t: doubled(t, number))(Tensor(x)).asnumpy()
    np.testing.assert_allclose(y, np.exp(x) * 2 - np.float32(number), rtol=1e-5, atol=1e-6)


def test_this_process_never_loads_the_compiler() -> None:
    seen = run("""
        import sys
        import numpy as np
        import tvmgraph as ms
        from tvmgraph import Tensor, nn, ops
        net = nn.SequentialCell(nn.Dense(8, 4), nn.ReLU())
        def loss(x):
            return ops.mean(net(x) ** 2)
        step = ms.jit(ms.value_and_grad(loss, None, net.trainable_params()))
        value, grads = step(Tensor(np.ones((2, 8), np.float32)))
        print("tvm" in sys.modules, len(grads), np.isfinite(value.asnumpy()), step.history[0].disk)
    """)
    assert seen.split() == ["False", "2", "True", "kept"]


def test_a_program_that_is_about_to_compile_starts_it() -> None:
    """It has time to start before the first call, and ends if that finds its code on disk."""
    program = """
        import tvmgraph as ms
        from tvmgraph.compiler import worker
        function = ms.jit(lambda x: ms.ops.tanh(x) - 0.375)
        early = bool(worker._state.workers)
        function(ms.Tensor([1.0]))
        print(early, bool(worker._state.workers), function.history[0].disk)
    """
    assert run(program).split() == ["True", "True", "kept"]
    assert run(program).split() == ["True", "False", "loaded"]


def test_an_abort_of_llvm_is_an_error() -> None:
    tvm = pytest.importorskip("tvm")

    def body(x):
        call = tvm.tirx.call_llvm_pure_intrin
        return tvm.te.compute(x.shape, lambda *i: call("float32", NO_SUCH_INSTRUCTION, x(*i)))

    own = ops.Custom(body, out_shape=lambda s: s, out_dtype=lambda d: d, name="reciprocal")
    function = jit(lambda x: ops.matmul(own(ops.matmul(x, x)), x))
    line = function.fn.__code__.co_firstlineno
    with pytest.raises(CompileError) as caught:
        function(Tensor(np.ones((16, 16), np.float32)))
    error = caught.value
    assert "LLVM ERROR: Cannot select: intrinsic" in error.message
    assert "at kernel" in error.message
    assert resolve(HOST) in error.message
    assert "ops.reciprocal" in str(error.op)
    assert error.at == f"test_worker.py:{line}"
    assert "float32[16,16]" in str(error.got)
    assert error.fix
    check_compiles(0.5)  # the process goes on


def test_errors_of_the_worker_are_those_of_the_project() -> None:
    with pytest.raises(CompileError, match="matrix") as caught:
        worker.call(refuse, "matrix")
    assert (caught.value.op, caught.value.fix) == ("ops.matmul", "transpose it")
    assert isinstance(caught.value.__cause__, worker.RemoteError)
    assert "ZeroDivisionError" in str(caught.value.__cause__)
    with pytest.raises(RuntimeError, match="Unpicklable: no"):
        worker.call(refuse_strangely)


def refuse(word: str) -> None:
    try:
        print(1 / 0)
    except ZeroDivisionError as e:
        raise CompileError(word, op="ops.matmul", fix="transpose it") from e


def refuse_strangely() -> None:
    class Unpicklable(Exception):
        pass

    raise Unpicklable("no")


@pytest.mark.parametrize(("end", "how"), [(os.abort, "SIGABRT"), (os._exit, "status 3")])
def test_a_worker_that_ends_is_started_again(end, how: str) -> None:
    before = worker_id()
    with pytest.raises(CompilerEnded, match=how):
        worker.call(end, *([3] if end is os._exit else []))
    assert gone(before)
    assert worker.call(os.getpid) != before


def test_a_worker_killed_between_calls() -> None:
    before = worker.call(os.getpid)
    os.kill(before, signal.SIGKILL)
    assert gone(before)
    check_compiles(0.75)
    assert worker.call(os.getpid) != before


def test_a_hang_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(worker.TIMEOUT_VARIABLE, "1")
    stuck = worker.call(os.getpid)
    os.kill(stuck, signal.SIGSTOP)
    with pytest.raises(CompileError, match="nothing was heard of it for 1 s") as caught:
        check_compiles(0.125)
    assert worker.TIMEOUT_VARIABLE in str(caught.value.fix)
    assert gone(stuck)
    monkeypatch.delenv(worker.TIMEOUT_VARIABLE)
    check_compiles(0.125)


def test_an_interrupt_ends_the_compile_at_once() -> None:
    before = worker.call(os.getpid)
    assert os.getsid(before) != os.getsid(0)  # the terminal's interrupt does not reach it
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        worker.call(time.sleep, 60)
    assert time.monotonic() - start < 10
    assert gone(before)
    check_compiles(1.25)


def test_it_ends_with_its_user() -> None:
    program = """
        import os, time
        from tvmgraph.compiler import worker
        if __name__ == "__main__":
            print(worker.call(os.getpid), flush=True)
            worker.call(time.sleep, 60)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    user = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert user.stdout is not None
    pid = int(user.stdout.readline())
    time.sleep(0.2)
    user.kill()
    user.communicate()
    assert gone(pid)


def test_a_forked_process_has_a_worker_of_its_own() -> None:
    seen = run(
        """
        import os
        import tvmgraph as ms
        from tvmgraph.compiler import worker
        before = worker.call(os.getpid)
        child = os.fork()
        if not child:
            own = worker.call(os.getpid)
            ms.jit(lambda x: x * 3 - 1)(ms.Tensor([1.0]))
            worker.stop()
            os._exit(0 if own != before else 1)
        print(os.waitpid(child, 0)[1], worker.call(os.getpid) == before)
        """,
        "-W", "ignore::DeprecationWarning",
    )  # fmt: skip
    assert seen.split() == ["0", "True"]


def test_without_processes_this_one_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    worker.stop()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    try:
        check_compiles(2.5)
        assert "cannot be started" in (worker.why_here() or "")
    finally:
        worker._state.refused = None


@pytest.mark.parametrize("how", ["setting", "variable"])
def test_compiling_here_is_a_setting(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(remote, "ask", None)  # is not called
    if how == "setting":
        ms.set_context(compile_worker=False)
    else:
        monkeypatch.setenv(worker.WORKER_VARIABLE, "0")
    check_compiles(4.5 if how == "setting" else 5.5)


def test_an_idle_worker_ends_and_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    worker.stop()
    monkeypatch.setattr(worker, "_IDLE", 1)
    before = worker.call(os.getpid)
    assert gone(before)
    monkeypatch.undo()
    assert worker.call(os.getpid) != before


def test_threads_have_a_worker_each() -> None:
    both = threading.Barrier(2)
    seen: dict[int, list[float]] = {}

    def ask() -> None:
        both.wait()
        start = time.monotonic()
        worker.call(time.sleep, 1.5)
        seen[threading.get_ident()] = [start, time.monotonic()]

    worker.call(os.getpid)
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (first, second) = seen.values()
    assert max(first[0], second[0]) < min(first[1], second[1]), "one waited for the other"


def test_threads_that_compile_different_graphs_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, both = remote._ask, threading.Barrier(2, timeout=60)

    def ask(*args, **kwargs):
        both.wait()  # only passes if the other thread is about to ask, too
        return asked(*args, **kwargs)

    monkeypatch.setattr(remote, "_ask", ask)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(check_compiles, (0.015625, 0.0078125)))


def test_threads_that_want_the_same_graph_compile_it_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, calls = remote._ask, []

    def ask(source, *args, **kwargs):
        calls.append(source.name)
        time.sleep(0.2)
        return asked(source, *args, **kwargs)

    monkeypatch.setattr(remote, "_ask", ask)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check_compiles, [1.0625] * 8))
    assert len(calls) == 1


def test_stopping_ends_what_other_threads_wait_for() -> None:
    with ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(worker.call, time.sleep, 60)
        time.sleep(0.5)
        worker.stop()
        with pytest.raises(CompilerEnded, match="SIGKILL"):
            stuck.result(20)
    check_compiles(1.125)


def test_deep_expressions_do_not_exhaust_the_stack() -> None:
    """The main thread's stack of 8 MiB ends at about a third of this depth."""
    assert worker.call(simplify_deep, 10_000)


def simplify_deep(depth: int) -> bool:
    from tvm import sym, tirx

    x = total = tirx.Var("x", "float32")
    for i in range(depth):
        total = total + x * tirx.const(float(i + 1), "float32")
    return sym.Analyzer().simplify(total) is not None


def test_memory_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    worker.stop()
    monkeypatch.setenv(worker.MEMORY_VARIABLE, "1500")
    with pytest.raises(MemoryError):
        worker.call(bytearray, 2 << 30)
    worker.stop()


def test_a_limit_that_it_cannot_start_in_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    worker.stop()
    monkeypatch.setenv(worker.MEMORY_VARIABLE, "1")
    with pytest.raises(ConfigError, match=worker.MEMORY_VARIABLE):
        check_compiles(1.375)
    monkeypatch.delenv(worker.MEMORY_VARIABLE)
    check_compiles(1.375)


def test_an_interrupt_of_the_worker_alone_changes_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    os.kill(worker_id(), signal.SIGINT)
    before = worker_id()
    check_compiles(1.4375)
    assert worker_id() == before
    assert "Traceback" not in capfd.readouterr().err


def test_the_surroundings_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_VARIABLE", "here")
    monkeypatch.chdir(tmp_path)
    assert worker.call(os.getenv, "A_VARIABLE") == "here"
    assert worker.call(os.getcwd) == str(tmp_path)
    monkeypatch.delenv("A_VARIABLE")
    assert worker.call(os.getenv, "A_VARIABLE") is None
    ms.set_context(thread_num=3)
    assert worker.call(ms.get_context, "thread_num") == 3
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert worker.call(is_terminal)


def is_terminal() -> bool:
    return sys.stderr.isatty()


def test_what_is_watched_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for here in (False, True):
        path = tmp_path / str(here)
        ms.set_context(save_graphs=3, save_graphs_path=str(path), compile_worker=not here)
        clear_cache()
        check_compiles(0.0625)
        (folder,) = (p for p in path.iterdir() if p.is_dir())
        found.append({p.name for p in folder.iterdir()})
    assert found[0] == found[1]
    assert any(name.endswith(".ll") for name in found[0])
    ms.reset_context()
    clear_cache()
    ms.set_context(save_graphs_path=str(tmp_path / "debug"))
    with ms.flags(debug=4):
        check_compiles(0.03125)
    assert "---- LLVM" in capsys.readouterr().err


def test_a_phase_that_ends_it_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = remote._ask

    def ask(source, *args, **kwargs):
        if any(node.op.name == "tanh" for node in source.nodes):
            worker.call(os.abort)
        return asked(source, *args, **kwargs)

    monkeypatch.setattr(remote, "_ask", ask)
    function = jit(lambda x: ops.exp(ops.tanh(x)))
    with pytest.raises(CompileError, match="SIGABRT") as caught:
        function(Tensor(np.ones(5, np.float32)))
    assert caught.value.op == "ops.tanh"
    assert str(caught.value.at).startswith("test_worker.py:")


def test_functions_of_tvm_are_listed_where_there_are_more() -> None:
    """Not once per module that is imported; and as before afterwards, whatever failed."""
    program = """
    from tvm_ffi import registry

    from tvmgraph.compiler.build import import_compiler
    from tvmgraph.debug import Phases

    make, calls = registry.list_global_func_names, []
    registry.list_global_func_names = count = lambda: calls.append(1) or make()
    import_compiler(Phases("module", quiet=True))
    from tvm.relax.transform import _ffi_api

    assert registry.list_global_func_names is count
    assert 0 < len(calls) < 30, len(calls)
    assert _ffi_api.FuseOps is not None
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
