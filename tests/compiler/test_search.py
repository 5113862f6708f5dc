"""The search of O3: every option is correct, winners are kept, reused and shipped, never slower."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.compiler.compile import clear_cache
from tvmgraph.compiler.tuning import database as tuning
from tvmgraph.compiler.tuning import search
from tvmgraph.errors import ConfigError

pytestmark = pytest.mark.usefixtures("compiled_here")

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv(tuning.FOLDER_VARIABLE, str(tmp_path / "tuning"))
    monkeypatch.setenv("TVMGRAPH_CACHE_MB", "0")
    clear_cache()
    yield
    clear_cache()


def tensor(*shape: int) -> Tensor:
    return Tensor(rng.standard_normal(shape).astype(np.float32))


def frozen(cell: nn.Cell) -> nn.Cell:
    return cell.set_train(False)


KERNELS = {
    "product": (ops.matmul, tensor(37, 700), tensor(700, 129)),
    "panels": (frozen(nn.Dense(70, 130)), tensor(33, 70)),
    "panels, in parts of the depth": (frozen(nn.Dense(1100, 70)), tensor(33, 1100)),
    "convolution": (lambda x, w: ops.conv2d(x, w), tensor(2, 5, 13, 17), tensor(9, 5, 3, 3)),
    "blocked": (frozen(nn.Conv2d(16, 32, 1)), tensor(1, 16, 11, 13)),
    "softmax": (ops.softmax, tensor(300, 130)),
    "columns": (lambda x: x.sum(0), tensor(200, 700)),
    "elements": (lambda x: ops.exp(x) * 2, tensor(64, 1024)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_every_option_computes_the_same(name, monkeypatch):
    function, *inputs = KERNELS[name]
    expected = function(*inputs).asnumpy()
    found = {}

    def collect(mod, model, level, target, trials):
        for var, func in mod.functions.items():
            if hasattr(func, "body") and var.name_hint != "main":
                found.update(search.KernelSearch(var, func, model, level, target).schedule({})[1])
        return schedule_cpu(mod, model, level)

    monkeypatch.setattr(search, "schedule_by_search", collect)
    jit(function, jit_config=JitConfig(jit_level="O3")).compile(*inputs)
    assert any(len(decision.options) > 1 for decision in found.values())
    for decided, decision in found.items():
        assert decision.taken == decision.default
        for option in decision.options:
            clear_cache()

            def force(mod, model, level, target, trials, given=(decided, option)):
                with search.deciding(dict([given])):
                    return schedule_cpu(mod, model, level)

            monkeypatch.setattr(search, "schedule_by_search", force)
            result = jit(lambda *a: function(*a), jit_config=JitConfig(jit_level="O3"))(*inputs)
            assert np.allclose(result.asnumpy(), expected, rtol=1e-4, atol=1e-4), (decided, option)


def faked(monkeypatch, seconds):
    """Lets a search believe that its n-th kernel takes ``seconds[n]``; counts kernels."""
    built = []

    def build(self, kernel, arguments):
        built.append(self.trials)
        self.trials += 1
        return lambda: seconds[min(self.trials - 1, len(seconds) - 1)]

    monkeypatch.setattr(search.KernelSearch, "_build", build)
    monkeypatch.setattr(search, "_seconds", lambda run, limit=0.0: run())
    return built


def o3(trials: int = 4) -> JitConfig:
    return JitConfig(jit_level="O3", options={"search_trials": trials})


def test_a_winner_is_kept_and_used_again(monkeypatch):
    x = tensor(100, 130)
    built = faked(monkeypatch, [100e-6, 50e-6])
    monkeypatch.setattr(search, "_compare", lambda a, b: (100e-6, 50e-6))
    jit(ops.softmax, jit_config=o3())(x)
    (record,) = tuning.records()
    assert record.decisions
    assert (record.default_us, record.best_us) == (pytest.approx(100), pytest.approx(50))
    assert 2 <= len(built) <= 6
    count = len(built)
    clear_cache()
    found = jit(lambda x: ops.softmax(x), jit_config=o3())(x)
    assert len(built) == count
    assert np.allclose(found.asnumpy(), ops.softmax(x).asnumpy(), atol=1e-6)


def test_never_slower(monkeypatch):
    """What a second look does not confirm is not used."""
    faked(monkeypatch, [100e-6, 50e-6])
    monkeypatch.setattr(search, "_compare", lambda a, b: (100e-6, 99e-6))
    jit(ops.softmax, jit_config=o3())(tensor(100, 130))
    (record,) = tuning.records()
    assert not record.decisions
    assert record.best_us == record.default_us


def test_searching_for_real(capfd):
    x, w = tensor(64, 96), tensor(96, 80)
    run = jit(lambda x, w: ops.relu(ops.matmul(x, w)), jit_config=o3(3))
    assert np.allclose(run(x, w).asnumpy(), ops.relu(ops.matmul(x, w)).asnumpy(), atol=1e-4)
    assert "search" in dict(run.history[0].phases)
    assert "search" in capfd.readouterr().err  # the progress bar
    (record,) = tuning.records()
    assert 1 <= record.trials <= 4
    assert record.best_us <= record.default_us


def test_without_trials_nothing_is_tried(monkeypatch):
    built = faked(monkeypatch, [1.0])
    jit(ops.softmax, jit_config=o3(0))(tensor(100, 130))
    assert not built
    assert not tuning.records()


def test_a_database_can_be_shipped(monkeypatch, tmp_path):
    faked(monkeypatch, [100e-6, 50e-6])
    monkeypatch.setattr(search, "_compare", lambda a, b: (100e-6, 50e-6))
    jit(ops.softmax, jit_config=o3())(tensor(100, 130))
    shipped = tmp_path / "shipped"
    shutil.copytree(tuning.folder(), shipped)
    (damaged,) = [shipped / "0.json"]
    damaged.write_text("{")
    program = (
        "import numpy as np, tvmgraph as ms\n"
        "from tvmgraph import ops\n"
        "from tvmgraph.compiler.tuning import search\n"
        "def fail(*_): raise SystemExit('searched again')\n"
        "search.KernelSearch.run = fail\n"
        "x = ms.Tensor(np.ones((100, 130), np.float32))\n"
        "print(ms.jit(lambda x: ops.softmax(x), jit_config={'jit_level': 'O3'})(x).shape)\n"
    )
    monkeypatch.setenv(tuning.FOLDER_VARIABLE, str(shipped))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "(100, 130)", done.stderr
    assert len(tuning.records()) == 1


def test_an_old_decision_is_not_heeded():
    with search.deciding({"rows parallel": "sideways", "no such thing": 1}) as decisions:
        assert choose("rows parallel", True, (True, False)) is True
        assert choose("tile", (6, 4), [(6, 4), (4, 4)]) == (6, 4)
    assert set(decisions.found) == {"rows parallel", "tile"}
    given = json.loads(json.dumps({"tile": (4, 4)}))
    with search.deciding(given):
        assert choose("tile", (6, 4), [(6, 4), (4, 4)]) == (4, 4)
    assert choose("tile", (6, 4), [(6, 4), (4, 4)]) == (6, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"jit_level": "O2", "options": {"search_trials": 4}}, "search_trials contradicts .*'O2'"),
        ({"jit_level": "O3", "options": {"search_trials": -1}}, "search_trials cannot be -1"),
        ({"jit_level": "O3", "options": {"search_trials": True}}, "search_trials cannot be True"),
        (
            {"jit_level": "O0", "options": {"graph_kernel_flags": "--opt_level=2"}},
            "graph_kernel_flags contradicts jit_level='O0'",
        ),
    ],
)
def test_contradictions_are_errors(settings, message):
    with pytest.raises(ConfigError, match=message):
        JitConfig(**settings)
    assert ms.JitConfig(jit_level="O0", options={"graph_kernel_flags": "--opt_level=1"})
