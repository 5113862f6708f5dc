"""explain(), flags, per-call tables, execution paths: each setting changes what it claims."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.config.flag_registry import REGISTRY, active
from tvmgraph.errors import ArgumentError, CompileError, ConfigError
from tvmgraph.jit import function


@pytest.fixture(autouse=True)
def fresh_context() -> Iterator[None]:
    yield
    ms.reset_context()


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


# ---- why a function was compiled ----------------------------------------------------------------


def test_a_miss_names_the_argument_and_both_values() -> None:
    def scaled(x: Tensor, k: float = 1.0, options: dict[str, int] | None = None) -> Tensor:
        return x * k

    f = jit(scaled)
    f(ones(2, 3), 2.0)
    f(ones(4, 3), 2.0)
    f(ones(4, 3), 2.5)
    f(ones(4, 3), 2.5, {"a": 1})
    f(ones(4, 3), 2.5, {"a": 2})
    why = [r.why for r in f.history]
    assert why[0] == "first call"
    assert why[1] == "argument 'x': float32[2,3] -> float32[4,3]"
    assert why[2] == "argument 'k': 2.0 -> 2.5"
    assert why[3] == "argument 'options.a': absent -> 1"
    assert why[4] == "argument 'options.a': 1 -> 2"
    for reason in why:
        assert reason in f.explain()


FACTOR = 2.0


def test_a_changed_guard_names_both_values(monkeypatch: pytest.MonkeyPatch) -> None:
    class Scale(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.k, self.axes = 1.5, [0, 1]

        def construct(self, x: Tensor) -> Tensor:
            return x * self.k * FACTOR + len(self.axes)

    net = Scale()
    f = jit(net)
    f(ones(3))
    net.k = 2.5
    f(ones(3))
    net.axes.append(2)
    f(ones(3))
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    f(ones(3))
    why = [r.why for r in f.history[1:]]
    assert why == [
        "Scale.k changed: 1.5 -> 2.5",
        "Scale.axes changed: [0, 1] -> [0, 1, 2]",
        "global 'FACTOR' changed: 2.0 -> 4.0",
    ]


def test_guards_are_listed() -> None:
    k = 3
    f = jit(lambda x: ops.exp(x) * k)
    f(ones(1))
    assert "guards: code of <lambda>, global 'ops', closure variable 'k'" in f.explain()


def test_the_least_recently_used_capture_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function, "_MAX_KEYS", 4)
    f = jit(lambda x, name: x + len(name))
    for name in ("a", "bb", "a", "ccc", "a", "dddd", "a", "eeeee", "a"):
        f(ones(1), name)
    assert (f.compile_count, f.evicted) == (5, 1)
    assert "forgotten: 1 capture(s), the least recently used first" in f.explain()
    f(ones(1), "bb")  # the one that is gone
    assert (f.compile_count, f.evicted) == (6, 2)


def test_time_is_split_by_phase() -> None:
    f = jit(lambda x: ops.tanh(x) * 3.25 + 0.125)
    f(ones(3, 7))
    record = f.history[0]
    names = [name for name, _ in record.phases if name != "start worker"]
    assert names == ["simplify", "lower", "fuse", "schedule", "codegen", "link", "load"]
    assert all(spent > 0 for _, spent in record.phases)
    assert sum(spent for _, spent in record.phases) <= record.compile_seconds * 1.01
    assert "phases (ms): simplify" in f.explain()


def test_an_equal_graph_is_not_compiled_again() -> None:
    def body(x: Tensor) -> Tensor:
        return ops.tanh(x) * 3.5 + 0.375

    jit(body)(ones(3, 5))
    twin = jit(lambda x: ops.tanh(x) * 3.5 + 0.375)
    twin(ones(3, 5))
    assert twin.history[0].cached
    assert "an equal graph was there" in twin.explain()


def test_assert_max_compiles() -> None:
    f, g = jit(lambda x: x + 1), jit(lambda x: x + 2)
    with ms.assert_max_compiles(2):
        f(ones(2)), f(ones(2)), g(ones(2))
    with ms.assert_max_compiles(0, f):
        f(ones(2)), g(ones(5))
    with (
        pytest.raises(
            CompileError, match=r"2 compiles, at most 1.*\n.*float32\[2\] -> float32\[3,4\]"
        ),
        ms.assert_max_compiles(1),
    ):
        f(ones(3, 4)), f(ones(2, 3, 4))
    f(ones(9))  # outside of any block nothing is counted
    for arguments, message in (((-1,), "at least 0"), (("1",), "at least 0"), ((1, 3), "ms.jit")):
        with (
            pytest.raises(ArgumentError, match=message),
            ms.assert_max_compiles(*arguments),  # pyright: ignore[reportArgumentType]
        ):
            pass


# ---- flags --------------------------------------------------------------------------------------


def test_flags_nest_and_are_checked() -> None:
    assert (active.debug, active.watched) == (0, False)
    with ms.flags(debug=1, check="2"):
        assert (active.debug, active.check) == (1, 2)
        with ms.flags(debug=2):
            assert active.watched
        assert (active.debug, active.watched) == (1, False)
    assert (active.debug, active.check) == (0, 0)
    with pytest.raises(ConfigError, match="0, 1, 2, 3, 4"), ms.flags(debug=9):
        pass
    with pytest.raises(ConfigError, match="debug, check, save_graphs"), ms.flags(debgu=1):
        pass


@pytest.mark.parametrize(("value", "status"), [("1", 0), ("7", 1)])
def test_environment_sets_flags(value: str, status: int) -> None:
    code = "import tvmgraph as ms; ms.jit(lambda x: x + 1)(ms.Tensor([1.0]))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env={
            "PATH": "", "PYTHONPATH": ":".join(sys.path), "TVMGRAPH_DEBUG": value,
            "TVMGRAPH_CACHE_MB": "0", "TVMGRAPH_COMPILE_WORKER": "0",
        },
    )  # fmt: skip
    assert result.returncode == status, result.stderr
    expected = "first call [float32[1]]" if status == 0 else "TVMGRAPH_DEBUG cannot be '7'"
    assert expected in result.stderr
    assert ("import TVM" in result.stderr) == (status == 0)  # the first compile of a process


def test_debug_1_prints_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    f = jit(lambda x: x * 2)
    with ms.flags(debug=1):
        f(ones(2)), f(ones(3)), f(ones(3))
    err = capsys.readouterr().err
    assert err.count("[tvmgraph]") == 2
    assert "argument 'x': float32[2] -> float32[3]" in err


def test_debug_2_prints_a_table_per_call(capsys: pytest.CaptureFixture[str]) -> None:
    f = jit(lambda x: ops.matmul(ops.tanh(x), x))
    f(ones(8, 8))
    with ms.flags(debug=2):
        f(ones(8, 8)), f(ones(8, 8))
    err = capsys.readouterr().err
    assert err.count("overhead of the host") == 2
    assert err.count("matmul") >= 2


def test_debug_4_prints_passes_and_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ms.set_context(save_graphs_path=str(tmp_path))
    with ms.flags(debug=4):
        jit(lambda x: x * 2.125)(ones(2))
    err = capsys.readouterr().err
    assert "---- captured graph\ngraph" in err
    assert "---- LLVM" in err
    assert "define" in err
    assert list(tmp_path.glob("*/*.ll"))


def test_check_3_names_the_first_wrong_node(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: ops.exp(ops.tanh(ops.sin(x)) * 2))
    with ms.flags(check=3):
        f(ones(4))
        row = ops.tanh.op
        monkeypatch.setattr(row, "eager", lambda x: np.tanh(x) + 0.5)
        with pytest.raises(CompileError, match=r"ops\.tanh(.|\n)*test_explain\.py:\d+"):
            f(ones(4))
    f(ones(4))  # nobody checks now


def test_flags_are_listed() -> None:
    from typer.testing import CliRunner

    from tvmgraph.cli import app

    result = CliRunner().invoke(app, ["flags"])
    assert result.exit_code == 0
    for flag in REGISTRY.values():
        assert flag.variable in result.stdout


# ---- profile ------------------------------------------------------------------------------------


def test_profile_names_kernels_and_counts_bytes() -> None:
    f = jit(lambda x: ops.tanh(x) + 1)
    profile = f.profile(ones(256, 256), repeat=3)
    (kernel,) = profile.kernels
    assert kernel.name == f.kernels()[0]
    assert kernel.bytes == 2 * 256 * 256 * 4
    assert kernel.seconds > 0
    assert profile.kernel_seconds + profile.overhead_seconds >= profile.kernel_seconds
    assert kernel.name in str(profile)


def test_profile_times_the_kernels_of_a_frozen_call() -> None:
    """With weights prepared, in the profile as in every call before and after."""
    net = nn.SequentialCell(nn.Conv2d(32, 32, 1), nn.Conv2d(32, 32, 1))
    f = jit(net)
    f(ones(1, 32, 9, 9))
    profile = f.profile(ones(1, 32, 9, 9), repeat=2)
    assert {k.name for k in profile.kernels} == set(f.kernels())
    assert any("nchwc" in k.name for k in profile.kernels)


def test_profile_of_native_and_stepwise_code() -> None:
    for mode, count in (("sink", 1), ("no_sink", 2)):
        f = jit(lambda x: ops.tanh(x) + 1.5, jit_config=JitConfig(exec_mode=mode))
        assert len(f.profile(ones(16)).kernels) == count


# ---- execution paths ----------------------------------------------------------------------------


def chain(x: Tensor) -> Tensor:
    for _ in range(12):
        x = ops.matmul(x, x)
    return x


def test_exec_modes_run_differently() -> None:
    x = Tensor(np.eye(4, dtype=np.float32))
    seen = {}
    for mode in ("sink", "no_sink", "auto"):
        f = jit(chain, jit_config=JitConfig(exec_mode=mode))
        np.testing.assert_allclose(f(x).asnumpy(), np.eye(4), rtol=1e-6)
        seen[mode] = f.history[0]
    assert seen["sink"].path == "sink, native host code (as configured)"
    assert seen["no_sink"].path == "no_sink (as configured)"
    assert seen["auto"].path.startswith("sink, native host code (auto: 12 operators")
    assert seen["no_sink"].kernels == 12


def test_auto_says_what_it_chose() -> None:
    small = jit(lambda x: x + 1)
    small(ones(3))
    assert "sink, bytecode (auto: only 1 operators)" in small.explain()
    large = jit(chain)
    large(ones(256, 256))
    assert "bytecode (auto: 12 operators of 65536 elements" in large.explain()


@pytest.mark.usefixtures("compiled_here")
def test_auto_steps_where_only_numpy_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvmgraph.core.op import Reason

    monkeypatch.setattr(ops.sinh.op, "lower", Reason("taken away for this test"))

    def f(x: Tensor) -> Tensor:
        return ops.sinh(x) + 1

    g = jit(f)
    np.testing.assert_allclose(g(ones(2)).asnumpy(), np.sinh(1) + 1, rtol=1e-6)
    assert "no_sink (auto: ops.sinh at test_explain.py" in g.explain()
    strict = jit(f, jit_config=JitConfig(jit_syntax_level="STRICT"))
    with pytest.raises(CompileError, match=r"test_explain\.py:\d+"):
        strict(ones(2))


def test_native_host_code_is_no_bytecode() -> None:
    programs = {}
    for mode in ("sink", "auto"):
        f = jit(lambda x: x * 3.0625, jit_config=JitConfig(exec_mode=mode))
        f(ones(5))
        compiled = next(iter(f.entries.values()))[0].compiled
        assert compiled is not None
        programs[mode] = compiled.executable._module.as_text()
    assert "call  " in programs["auto"]
    assert "call  " not in programs["sink"]


def test_a_failing_step_names_operator_and_line(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: ops.tanh(ops.exp(x)), jit_config="debug")
    f(ones(2))
    steps = next(iter(f.entries.values()))[0].compiled.steps  # pyright: ignore

    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(steps.executables[1], "run", fail)
    with pytest.raises(CompileError, match=r"ops\.tanh: running it failed(.|\n)*test_explain\.py"):
        f(ones(2))


def test_gradients_on_every_path() -> None:
    for mode in ("sink", "no_sink", "auto"):
        f = jit(lambda x: (ops.tanh(x) ** 2).sum(), jit_config=JitConfig(exec_mode=mode))
        g = ms.grad(f)(ones(3))
        t = np.tanh(1.0)
        np.testing.assert_allclose(g.asnumpy(), 2 * t * (1 - t * t), rtol=1e-5)


def test_cells_on_every_path() -> None:
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
    x = Tensor(np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))
    expected = net(x).asnumpy()
    for mode in ("sink", "no_sink", "auto"):
        f = jit(net, jit_config=JitConfig(exec_mode=mode))
        np.testing.assert_allclose(f(x).asnumpy(), expected, rtol=1e-4, atol=1e-6)
