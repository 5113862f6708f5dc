"""The commands that write, run and time files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import tvmgraph as ms
from tests.export.helpers import relative_error
from tvmgraph import Tensor, nn
from tvmgraph.cli import app

NETWORK = """
from tvmgraph import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 3, weight_init="ones", bias_init="zeros")

    def construct(self, x):
        return self.dense(x)
"""


def call(*args: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.mark.parametrize("command", ["compile", "export", "run", "bench", "bundle"])
def test_help(command: str) -> None:
    found = call(command, "--help")
    assert found.exit_code == 0
    assert "Usage" in found.output


def test_from_source_to_result(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    out, x = tmp_path / "net.tvm", np.arange(8, dtype=np.float32).reshape(2, 4)
    found = call("compile", f"{tmp_path}/net.py:Net", "--input", "x:2x4", "-o", out)
    assert found.exit_code == 0, found.output
    np.save(tmp_path / "x.npy", x)
    for given in (tmp_path / "x.npy", f"x={tmp_path}/x.npy"):
        found = call("run", out, "--input", given, "-o", tmp_path / "y.npz")
        assert found.exit_code == 0, found.output
        with np.load(tmp_path / "y.npz") as y:
            np.testing.assert_allclose(y["output0"], np.repeat(x.sum(1, keepdims=True), 3, 1))
    assert "output0: float32[2,3]" in call("run", out, "--input", tmp_path / "x.npy").output


def test_from_onnx(tmp_path: Path) -> None:
    net, x = nn.Dense(4, 3), Tensor(np.ones((2, 4), np.float32))
    model = ms.export(net, x, file_name=tmp_path / "net")
    found = call("compile", model, "-o", tmp_path / "net.tvm")  # the model knows its input
    assert found.exit_code == 0, found.output
    assert relative_error([ms.load(tmp_path / "net.tvm")(x)], [net(x).asnumpy()]) <= 1e-5
    found = call("bench", tmp_path / "net.tvm", "--repeat", 3, "--vs", model)
    assert found.exit_code == 0, found.output
    assert "tvmgraph" in found.output
    assert "onnxruntime" in found.output
    found = call("export", model, "--input", "x:2x4", "--dynamic", "x:0=batch", "-o",
                 tmp_path / "wide.onnx")  # fmt: skip
    assert found.exit_code == 0, found.output
    wide = Tensor(np.ones((5, 4), np.float32))
    assert ms.load(tmp_path / "wide.onnx")(wide).shape == (5, 3)
    found = call("export", model, "--input", "x:2x4", "-o", tmp_path / "net.graph")
    assert found.exit_code == 0, found.output
    assert ms.load(tmp_path / "net.graph")(x).shape == (2, 3)


def test_bundle(tmp_path: Path) -> None:
    found = call("bundle", tmp_path / "runtime")
    assert found.exit_code == 0
    assert (tmp_path / "runtime" / "tvmgraph" / "runtime" / "module.py").is_file()
    assert call("bundle", tmp_path / "runtime").exit_code == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("compile", "absent.onnx"), "no such file"),
        (("compile", "absent.txt"), "no format writes"),
        (("compile", "absent.py:Net"), "there is no file absent.py"),
        (("run", "absent.tvm"), "no such file"),
        (("bench", "absent.tvm"), "no such file"),
        (("export", "net.py:Absent"), "has no 'Absent'"),
        (("export", "net.py:Net"), "no inputs are given"),
        (("export", "net.py:Net", "--input", "x:2xb"), "is no input"),
        (("export", "net.py:Net", "--input", "x:2x4", "--dynamic", "x"), "name:axis=label"),
        (("export", "net.py:Net", "--input", "x:2x4", "--opset", "3"), "opset 3 is not offered"),
        (("compile", "net.py:Net", "--input", "x:2x4", "--level", "O9"), "unknown jit_level"),
        (("compile", "net.py:Net", "--input", "x:2x4", "--target", "z80"), "unknown target"),
    ],
)
def test_mistakes(
    args: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NETWORK)
    found = call(*args)
    assert found.exit_code == 1
    assert message in found.output
    assert "Traceback" not in found.output
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".py"] in ([], ["__pycache__"])
