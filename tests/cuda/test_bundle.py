"""The check for a machine with a GPU, made and run here on an emulated one."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gpu_bundle
from benchmarks.gpu_cases import ROWS, item_of, network_item
from benchmarks.gpu_inputs import Recipe
from tests.archives import unpack
from tests.cuda import emulator
from tvmgraph import nn
from tvmgraph.testing.samples import all_cases

_SCRIPT = Path(gpu_bundle.__file__).with_name("gpu.sh")


@pytest.fixture
def bundle(gpu, tmp_path, monkeypatch):
    """A bundle of a few operators and a timed network."""
    net = nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 4))
    inputs = [Recipe("normal", (3, 6), "float32", 1)]
    few = [item_of("few", [c for c in all_cases() if c.name in ("relu-0", "exp-0")])]
    few.append(network_item("small", net.set_train(False), inputs, 1e-4, flops=1.0))
    monkeypatch.setattr(gpu_bundle, "operator_items", lambda *_: few)
    path = tmp_path / "bundle.tar"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    gpu_bundle.main(path, target="sm_90", samples=1, size=12, python=python, only="none")
    return path


def _run(tmp_path, *arguments):
    """Runs the script where the only Python is this one, and TVM cannot be imported."""
    (tmp_path / "bin").mkdir(exist_ok=True)
    python = tmp_path / "bin" / "python3"  # no link: it would not find its environment everywhere
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin"
    return subprocess.run(
        ["bash", str(_SCRIPT), *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PATH": path},
    )  # fmt: skip


def test_it_finds_everything_right_and_says_when_there_is_no_gpu(bundle, tmp_path):
    out = tmp_path / "out"
    done = _run(tmp_path, bundle, out, "--emulator", emulator.libraries())
    report = json.loads((out / "results.json").read_text())
    assert done.returncode == 0, (out / "results.md").read_text()
    assert "Emulated NVIDIA H100" in report["device"]
    found = [(r["name"], r["checked"], r["wrong"]) for r in report["results"].values()]
    assert found == [("small", 1, []), ("few", 2, [])]
    assert report["results"]["small"]["seconds"]["tvmgraph"] > 0
    if not Path("/dev/nvidia0").exists():
        done = _run(tmp_path, bundle, out)
        assert done.returncode == 1
        assert "no NVIDIA driver was found" in done.stdout


def test_a_wrong_result_is_a_problem(bundle, tmp_path):
    folder = tmp_path / "changed"
    unpack(bundle, folder)
    data = folder / "gpu-check" / "items" / "few.npz"
    arrays = dict(np.load(data))
    arrays["out0"] = arrays["out0"] + 1
    np.savez(data, **arrays)
    with tarfile.open(bundle, "w") as archive:
        archive.add(folder / "gpu-check", arcname="gpu-check")
    done = _run(tmp_path, bundle, tmp_path / "out", "--emulator", emulator.libraries())
    assert done.returncode == 1
    assert "largest error 1," in done.stdout


def test_what_ends_early_costs_one_item(bundle, tmp_path):
    folder = tmp_path / "crashing"
    unpack(bundle, folder)
    program = folder / "gpu-check" / "gpu_item.py"
    text = program.read_text().replace("    _say(result, done=True)", (
        "    if entry['name'] == 'small' and phase == 'own': import os; os._exit(7)\n"
        "    if entry['name'] == 'small' and phase == 'torch': time.sleep(60)\n"
        "    _say(result, done=True)"
    ))  # fmt: skip
    program.write_text(text)
    runner = folder / "gpu-check" / "gpu_run.py"
    runner.write_text(runner.read_text().replace('"timed", 90, 45', '"timed", 6, 6'))
    with tarfile.open(bundle, "w") as archive:
        archive.add(folder / "gpu-check", arcname="gpu-check")
    out = tmp_path / "out"
    done = _run(tmp_path, bundle, out, "--emulator", emulator.libraries())
    small, few = json.loads((out / "results.json").read_text())["results"].values()
    assert done.returncode == 1, done.stdout
    assert small["seconds"]["tvmgraph"] > 0 and few["checked"] == 2
    assert small["notes"]["own"].startswith("exit status 7")
    assert small["notes"]["torch"] == "its time was over"


def test_a_bundle_for_another_python_says_so(bundle, tmp_path):
    folder = tmp_path / "other"
    unpack(bundle, folder)
    items = folder / "gpu-check" / "items.json"
    items.write_text(json.dumps({**json.loads(items.read_text()), "python": "3.99"}))
    with tarfile.open(bundle, "w") as archive:
        archive.add(folder / "gpu-check", arcname="gpu-check")
    done = _run(tmp_path, bundle, tmp_path / "out")
    assert done.returncode == 2
    assert "the bundle is for Python 3.99" in done.stdout


def test_every_row_makes_its_inputs():
    for name in ("lenet", "mlp", "training_step"):
        item = ROWS.makers[name]()
        graph = item.program.graph
        assert len(item.outputs) == len(graph.outputs) == len(item.rtol) == len(item.expected)
        assert item.program.outputs == item.outputs
        made = [recipe.make() for recipe in item.inputs]
        kinds = [p.value.type for p in item.program.graph.params]
        assert [m.shape for m in made] == [k.static_shape for k in kinds]
        assert all(np.array_equal(r.make(), m) for r, m in zip(item.inputs, made))
