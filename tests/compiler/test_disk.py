"""Executables on disk: found again by other processes, never wrong, never in the way."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.compiler import worker
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.compile import clear_cache, compile_graph
from tvmgraph.errors import ConfigError
from tvmgraph.runtime.store import Store

needs_linker = pytest.mark.skipif(disk.linker() is None, reason="there is no linker here")

PROGRAM = """
    import sys
    import numpy as np
    import tvmgraph as ms
    from tvmgraph import nn, Tensor
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(12, 40), nn.ReLU(), nn.Dense(40, 3)).set_train(False)
    f = ms.jit(net)
    y = f(Tensor(np.linspace(-1, 1, 60, dtype=np.float32).reshape(5, 12)))
    print(f.history[0].disk, "tvm" in sys.modules, y.asnumpy().tobytes().hex())
"""


def start(**environment):
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    return subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    return out.decode().split()


def graph_of(scale=2.0):
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    return ms.jit(lambda x: ops.exp(x) * scale).graph(x), x


def run(graph, x):
    clear_cache()
    executable, stats = compile_graph(graph)
    return executable.run([x], [v.type for v in graph.outputs])[0].asnumpy(), stats.disk


@needs_linker
def test_a_second_process_needs_no_compiler(folder, monkeypatch):
    monkeypatch.setenv(worker.WORKER_VARIABLE, "0")
    first, second = finish(start()), finish(start())
    assert first[:2] == ["kept", "True"]
    assert second[:2] == ["loaded", "False"]
    assert first[2] == second[2]


@needs_linker
def test_two_processes_at_once(folder):
    results = [finish(p) for p in [start(), start(), start()]]
    assert len({r[-1] for r in results}) == 1
    assert disk.store().usage().entries == 1
    assert not list(folder.glob(".part-*"))
    assert finish(start())[0] == "loaded"


@needs_linker
def test_graph_settings_and_surroundings_have_entries_of_their_own(folder, monkeypatch):
    graph, x = graph_of()
    assert run(graph, x)[1] == "kept"
    assert run(graph, x)[1] == "loaded"
    other, _ = graph_of(3.0)
    got, what = run(other, x)
    assert what == "kept"
    np.testing.assert_allclose(got, np.exp(x.asnumpy()) * 3, rtol=1e-6)
    clear_cache()
    assert compile_graph(graph, "O1")[1].disk == "kept"
    monkeypatch.setattr(disk, "_surroundings", lambda: ("another version",))
    assert run(graph, x)[1] == "kept"


@needs_linker
def test_every_file_that_decides_what_is_compiled_is_in_the_key():
    files = {line.split(" ")[0] for line in disk._sources().splitlines()}
    assert {
        "backend/cpu/schedule.py", "passes/rules.py", "machine/processor.py", "ops/conv/rows.py",
        "compiler/cache/disk.py", "configs/targets.toml", "dtypes.py",
    } <= files  # fmt: skip


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "no library"])
def test_a_damaged_entry_is_compiled_again(folder, damage):
    graph, x = graph_of()
    expected, _ = run(graph, x)
    (entry,) = folder.glob("*.so")
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    other = {
        "truncated": content[: len(content) // 2], "changed": content,
        "empty": b"", "no library": b"hello",
    }[damage]  # fmt: skip
    entry.unlink()  # the old file is in use by this process
    entry.write_bytes(bytes(other))
    got, what = run(graph, x)
    assert what == "kept"
    np.testing.assert_array_equal(got, expected)
    assert run(graph, x)[1] == "loaded"


@needs_linker
def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv(disk.FOLDER_VARIABLE, str(blocked / "cache"))
    graph, x = graph_of()
    got, what = run(graph, x)
    assert what.startswith("not kept: ")
    np.testing.assert_allclose(got, np.exp(x.asnumpy()) * 2, rtol=1e-6)


def test_reasons_not_to_keep(folder, monkeypatch):
    graph, x = graph_of()
    ms.set_context(enable_compile_cache=False)
    try:
        assert run(graph, x)[1] == "not kept: set_context(enable_compile_cache=False)"
    finally:
        ms.set_context(enable_compile_cache=True)
    monkeypatch.setenv(disk.LIMIT_VARIABLE, "0")
    assert run(graph, x)[1] == f"not kept: {disk.LIMIT_VARIABLE}=0"
    monkeypatch.setenv(disk.LIMIT_VARIABLE, "much")
    with pytest.raises(ConfigError, match="number of MiB"):
        disk.limit()
    monkeypatch.delenv(disk.LIMIT_VARIABLE)
    monkeypatch.setattr(disk, "linker", lambda: None)
    function = ms.jit(lambda x: x + 1)
    function(x)
    assert "not kept: no linker was found" in function.explain()
    assert not folder.exists() or disk.store().usage().entries == 0


def test_the_least_recently_used_go_first(tmp_path):
    store = Store(tmp_path, limit=250)
    for position, key in enumerate("abc"):
        with store.workspace() as work:
            (work / "x").write_bytes(bytes(100))
            path = store.put(key, work / "x")
        os.utime(path, (position, position))
        if key == "b":
            assert store.find("a") is not None  # now the newest
    assert [p.stem for p in sorted(tmp_path.glob("*.so"))] == ["a", "c"]
    assert store.usage().bytes == 200
    assert store.clear().entries == 2
    assert store.find("a") is None


def test_command_line(folder):
    from typer.testing import CliRunner

    from tvmgraph.cli.app import app

    if disk.linker() is not None:
        run(*graph_of())
    info = CliRunner().invoke(app, ["cache", "info"])
    assert info.exit_code == 0
    assert "executables" in info.output
    cleared = CliRunner().invoke(app, ["cache", "clear"])
    assert cleared.exit_code == 0
    assert f"deleted {int(disk.linker() is not None)} executables" in cleared.output


@needs_linker
def test_the_compiler_may_come_later(folder, monkeypatch):
    monkeypatch.setenv(worker.WORKER_VARIABLE, "0")
    text = """
        import numpy as np, sys
        import tvmgraph as ms
        from tvmgraph import Tensor, ops
        x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
        f = ms.jit(lambda x: ops.softmax(x * 0.5, -1))
        first = f(x)
        loaded = "tvm" not in sys.modules
        g = ms.jit(lambda x, n=NUMBER: ops.exp(x) - n)
        second = g(x)
        assert np.allclose(second.asnumpy(), np.exp(x.asnumpy()) - NUMBER, rtol=1e-5)
        low = ms.jit(lambda x: x + 1)(x.astype(ms.bfloat16))
        assert np.array_equal(low.astype(ms.float32).asnumpy(), x.asnumpy() + 1)
        assert np.array_equal(f(x).asnumpy(), first.asnumpy())
        print(loaded, f.history[0].disk, g.history[0].disk)
    """
    outputs = []
    for number in ("1.5", "2.5"):
        command = [sys.executable, "-c", textwrap.dedent(text).replace("NUMBER", number)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.split())
    assert outputs == [["False", "kept", "kept"], ["True", "loaded", "kept"]]


@needs_linker
def test_low_precision_without_the_compiler(folder, monkeypatch):
    monkeypatch.setenv(worker.WORKER_VARIABLE, "0")
    text = """
        import numpy as np, sys
        import tvmgraph as ms
        from tvmgraph import Tensor
        x = Tensor(np.arange(70, dtype=np.float32)).astype(ms.bfloat16)
        y = ms.jit(lambda x: x * 2)(x)
        assert np.array_equal(y.astype(ms.float32).asnumpy(), np.arange(70) * 2)
        print("tvm" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(text)]
    seen = [
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
        for _ in range(2)
    ]
    assert [s.strip() for s in seen] == ["True", "False"]
