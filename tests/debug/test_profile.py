"""fn.profile and the profiler: times, rates, memory, files, traces, schedules, misuse."""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.config.flag_registry import active
from tvmgraph.debug.profile import Profile
from tvmgraph.errors import ArgumentError, CompileError
from tvmgraph.profiler import ProfilerAction


def normal(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def valid_trace(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks a Chrome trace the way its readers depend on it, and returns its spans."""
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    json.dumps(trace)
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {e["ph"] for e in trace["traceEvents"]} <= {"X", "M"}
    for e in spans:
        assert {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"} == set(e)
        assert e["ts"] >= 0 and e["dur"] >= 0 and isinstance(e["tid"], int)
    for track in {e["tid"] for e in spans}:  # spans of a track nest or follow each other
        ends: list[float] = []
        for e in sorted(
            (e for e in spans if e["tid"] == track), key=lambda e: (e["ts"], -e["dur"])
        ):
            while ends and ends[-1] <= e["ts"] + 1e-3:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1] + 1e-2, e
            ends.append(e["ts"] + e["dur"])
    return spans


def test_rates_of_a_matrix_product_are_exact() -> None:
    f = jit(lambda a, b: ops.matmul(a, b))
    profile = f.profile(normal(32, 48), normal(48, 64), repeat=2)
    (k,) = profile.kernels
    assert k.flops == 2 * 32 * 48 * 64
    assert k.bytes == 4 * (32 * 48 + 48 * 64 + 32 * 64)
    assert k.gflops == pytest.approx(k.flops / k.seconds / 1e9)
    assert "matmul test_profile.py:" in k.where
    assert profile.peaks is not None
    assert min(profile.peaks.float32, profile.peaks.float64, profile.peaks.bandwidth) > 0.1
    assert profile.peaks.float32 > profile.peaks.float64
    assert profile.seconds >= profile.overhead_seconds >= 0
    for word in ("GFLOP/s", "of peak", "GB/s", "of memory", "overhead of the host", "planned"):
        assert word in str(profile)


def test_memory_is_planned() -> None:
    def chain(x: Tensor) -> Tensor:
        for _ in range(6):
            x = ops.matmul(x, x)
        return x

    m = jit(chain).profile(normal(64, 64), repeat=1).memory
    one = 64 * 64 * 4
    assert m.arguments == one
    assert m.unplanned == 6 * one
    assert one * 2 <= m.planned < m.unplanned
    assert m.peak == m.arguments + m.planned


def branchy(x: Tensor) -> Tensor:
    y = ops.tanh(x) * 2 if x.sum() > 0 else ops.exp(x)
    i = Tensor(0)
    while i < 5:
        y = ops.matmul(y, y) * 0.5
        i = i + 1
    return y + 1


def test_branches_and_loops() -> None:
    profile = jit(branchy).profile(Tensor(np.full((8, 8), 0.1, np.float32)), repeat=1)
    calls = {k.where.split(" test")[0]: k.calls for k in profile.kernels}
    products = [n for where, n in calls.items() if "matmul" in where]
    assert products == [5]
    assert any("tanh" in where for where in calls)
    assert not any("exp" in where for where in calls)  # the other branch did not run
    (flops,) = (k.flops for k in profile.kernels if "matmul" in k.where)
    assert flops is not None
    assert flops >= 5 * 2 * 8**3


def make_step() -> tuple[Callable[..., Any], nn.Cell]:
    net = nn.SequentialCell(nn.Dropout(p=0.2), nn.Dense(4, 2))
    net.set_train()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    both = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    @jit
    def step(x: Tensor) -> Tensor:
        loss, grads = both(x)
        optimizer(grads)
        return loss

    return step, net


def test_a_training_step_takes_effect_once() -> None:
    x = normal(16, 4)
    weights = []
    for profiled in (False, True):
        ms.set_seed(3)
        step, net = make_step()
        for p in net.get_parameters():
            p.set_data(Tensor(np.full(p.shape, 0.1, np.float32)))
        step(x)
        profile = step.profile(x, repeat=3) if profiled else step(x)  # pyright: ignore
        weights.append([p.asnumpy() for p in net.get_parameters()])
    for plain, seen in zip(*weights):
        np.testing.assert_allclose(seen, plain, rtol=1e-6)
    assert len(profile.kernels) > 3
    assert all(k.where for k in profile.kernels)


@pytest.mark.parametrize("suffix", [".html", ".json", ".csv", ".txt"])
def test_files(suffix: str, tmp_path: Path, profile: Profile) -> None:
    path = profile.save(tmp_path / "new" / f"profile{suffix}")
    text = path.read_text()
    if suffix == ".json":
        spans = valid_trace(json.loads(text))
        assert [e["name"] for e in spans if e["cat"] == "kernel"] == [
            k.name for k in profile.kernels
        ]
        assert [e["cat"] for e in spans].count("call") == 1
    elif suffix == ".csv":
        rows = list(csv.DictReader(text.splitlines()))
        assert [r["kernel"] for r in rows] == [k.name for k in profile.kernels]
    else:
        assert all(k.name[:10] in text for k in profile.kernels)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.fixture(scope="module")
def profile() -> Profile:
    net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 4))
    return jit(net).profile(normal(8, 16), repeat=2)


def test_misuse_of_profile(tmp_path: Path, profile: Profile) -> None:
    with pytest.raises(ArgumentError, match=r"\.json \(a trace for Perfetto\)"):
        profile.save(tmp_path / "p.doc")
    with pytest.raises(ArgumentError, match="repeat must be an int from 1"):
        jit(lambda x: x + 1).profile(normal(2), repeat=0)
    with pytest.raises(CompileError, match="computes nothing"):
        jit(lambda x: 3).profile(normal(2))


# ---- ms.Profiler --------------------------------------------------------------------------------


def test_profiler_hears_eager_compiled_and_compiles(tmp_path: Path) -> None:
    f = jit(lambda x: ops.tanh(x) * 3.375)
    profiler = ms.Profiler(output_path=tmp_path / "out")
    x = normal(8, 8)
    ops.exp(x)
    f(x), f(x)
    summary = profiler.analyse()
    ops.exp(x)  # nobody hears this
    assert [(k.name, k.calls) for k in summary.operators] == [("exp", 1)]
    assert [k.calls for k in summary.kernels] == [2]
    assert summary.kernels[0].flops == 2 * 2 * 64
    assert [name.rpartition(".")[2] for name, _ in summary.compiles] == ["<lambda>"]
    assert not active.watched
    (folder,) = (tmp_path / "out").iterdir()
    assert {p.name for p in folder.iterdir()} == {
        "trace_view.json", "report.html", "report.txt", "kernels.csv", "operators.csv"
    }  # fmt: skip
    spans = valid_trace(json.loads((folder / "trace_view.json").read_text()))
    kinds = [e["cat"] for e in spans]
    assert (kinds.count("call"), kinds.count("kernel"), kinds.count("operator")) == (2, 2, 1)
    assert "codegen" in [e["name"] for e in spans] or "disk" in [e["name"] for e in spans]
    assert json.loads(profiler.op_analyse("exp"))[0]["count"] == 1


def test_profiler_as_a_context(tmp_path: Path) -> None:
    with ms.Profiler(output_path=tmp_path) as profiler:
        ops.exp(normal(3))
    assert profiler.folder == tmp_path / "profile_1"
    assert profiler.analyse() is profiler.summary  # written once
    assert [p.name for p in tmp_path.iterdir()] == ["profile_1"]
    profiler.start()
    ops.tanh(normal(3))
    profiler.stop()
    assert [k.name for k in profiler.analyse().operators] == ["tanh"]
    assert profiler.folder == tmp_path / "profile_2"


@pytest.mark.parametrize("mode", ["sink", "no_sink", "auto"])
def test_results_are_the_same_while_profiling(mode: str) -> None:
    x = normal(4, 8)
    f = jit(lambda x: ops.softmax(ops.matmul(x, x.T), -1), jit_config=JitConfig(exec_mode=mode))
    expected = f(x).asnumpy()
    with ms.profiler.profile() as p:
        np.testing.assert_allclose(f(x).asnumpy(), expected, rtol=1e-6)
    assert any("matmul" in k.where for k in p.summary.kernels)


def test_schedule_chooses_steps() -> None:
    plan = ms.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    letters = {ProfilerAction.NONE: "-", ProfilerAction.WARM_UP: "w", ProfilerAction.RECORD: "r",
               ProfilerAction.RECORD_AND_SAVE: "s"}  # fmt: skip
    assert "".join(letters[plan(i)] for i in range(12)) == "--wrs-wrs---"


def test_steps_are_recorded_as_scheduled() -> None:
    found: list[Any] = []
    x = normal(4)
    with ms.profiler.profile(
        schedule=ms.profiler.schedule(wait=1, active=2, repeat=2),
        on_trace_ready=lambda p: found.append(p.summary),
    ) as p:
        for i in range(8):
            for _ in range(i):
                ops.exp(x)
            p.step()
    assert [len(s.steps) for s in found] == [2, 2]
    assert [s.operators[0].calls for s in found] == [1 + 2, 4 + 5]
    assert [e["name"] for e in valid_trace(found[0].trace()) if e["cat"] == "step"] == [
        "step 1", "step 2"
    ]  # fmt: skip


def test_trace_handler_writes_folders(tmp_path: Path) -> None:
    handler = ms.profiler.tensorboard_trace_handler(str(tmp_path), worker_name="worker")
    for _ in range(2):
        with ms.profiler.profile(on_trace_ready=handler):
            ops.exp(normal(3))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["worker_1", "worker_2"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: ms.profiler.profile(color=1), "unknown option 'color'"),
        (lambda: ms.profiler.profile(schedule=3), "schedule must be callable"),
        (lambda: ms.profiler.profile(activities=[ms.profiler.ProfilerActivity.GPU]), "CPU only"),
        (lambda: ms.profiler.schedule(wait=0, active=0), "active must be an int of at least 1"),
        (lambda: ms.profiler.profile().step(), "it does not run"),
        (lambda: ms.profiler.profile().stop(), "it does not run"),
        (lambda: ms.profiler.profile().summary, "nothing was recorded"),
        (lambda: ms.Profiler(start_profile=False).analyse(), "nothing was recorded"),
    ],
)
def test_misuse_of_the_profiler(act: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        act()
    assert not active.watched


def test_options_of_other_devices_warn() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ms.profiler.profile(profile_memory=True, with_stack=True)
    assert [str(w.message) for w in caught] == [
        "profiler: profile_memory has no effect on the CPU",
        "profiler: with_stack has no effect on the CPU",
    ]


def test_document_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parent.parent.parent / "docs" / "seeing.md"
    text = page.read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, page.name, "exec"), {})
    assert "eager operators" in capsys.readouterr().out
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).exists(), link


def test_operations_of_unknown_sizes_are_not_counted() -> None:
    """Loops whose length is a symbol have no rate, rather than that of a single round."""
    double = ms.jit(lambda x: ops.exp(x) * 2.0, dynamic=1)
    (kernel,) = double.profile(Tensor(np.ones((64, 33), np.float32)), repeat=1).kernels
    assert kernel.flops is None
