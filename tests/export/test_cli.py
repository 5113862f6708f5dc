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


_COMMANDS = (
    "compile", "export", "run", "bench", "bundle", "demo", "ops", "check", "doctor", "flags",
    "show", "explain", "cache",
)  # fmt: skip


def call(*args: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.mark.parametrize("command", _COMMANDS)
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
    for given in (tmp_path / "x.npy", f"x={tmp_path}/x.npy", f"x:{tmp_path}/x.npy"):
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
    for what in ((tmp_path / "net.tvm", "--onnx", model), (model, "--config", "fast-compile")):
        found = call("bench", *what, "--repeat", 3, "--vs", "onnxruntime")
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
    assert call("bundle", tmp_path / "runtime").exit_code == 2


def test_config(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    (tmp_path / "own.toml").write_text('[slow]\njit_level = "O0"\n')
    kernels = []
    for config in (f"{tmp_path}/own.toml:slow", "release"):
        out = tmp_path / "net.tvm"
        args = ("compile", f"{tmp_path}/net.py:Net", "--input", "x:2x4", "-o", out)
        found = call(*args, "--config", config)
        assert found.exit_code == 0, found.output
        kernels.append(ms.load(out).manifest.options)
    assert [k["jit_level"] for k in kernels] == ["O0", "O2"]
    found = call("compile", f"{tmp_path}/net.py:Net", "--input", "x:2x4", "--config", "debug")
    assert found.exit_code == 2
    assert "exec_mode cannot be 'no_sink'" in found.output


def test_variable_sizes(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(NETWORK)
    out = tmp_path / "net.tvm"
    net = (f"{tmp_path}/net.py:Net", "--input", "x:2x4", "--dynamic", "x:0=batch")
    found = call("compile", *net, "-o", out)
    assert found.exit_code == 0, found.output
    for rows in (1, 5):
        np.save(tmp_path / "x.npy", np.ones((rows, 4), np.float32))
        assert "output0: float32[batch,3]" in call("run", out, "--input", tmp_path / "x.npy").output
    found = call("bench", out, "--repeat", 2)
    assert found.exit_code == 2
    assert "inputs of variable size (x: float32[batch,4])" in found.output
    assert call("bench", out, "--repeat", 2, "--input", "x:3x4").exit_code == 0
    found = call("bench", net[0], "--input", "x:batchx4")
    assert found.exit_code == 2
    assert "a size of an input is not a number" in found.output


def test_check_for_another_machine() -> None:
    found = call("check", "tanh", "--target", "aarch64", "--level", "O1")
    assert found.exit_code == 0, found.output
    assert "compile for aarch64" in found.output
    assert call("check", "tanh", "--target", "z80").exit_code == 2
    assert call("check", "no_such_operator").exit_code == 2


BAD = """
from tvmgraph import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        raise KeyError("boom")

number = 3
"""
NET = ("net.py:Net", "--input", "x:2x4")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("compile", "absent.onnx"), "no such file"),
        (("compile", "broken.onnx"), "it is no ONNX model"),
        (("compile", "absent.txt"), "has the suffix of no format"),
        (("compile", "absent.py:Net"), "there is no file absent.py"),
        (("compile", "syntax.py:Net", "--input", "x:2"), "syntax.py:1"),
        (("compile", "bad.py:Net", "--input", "x:2"), "KeyError: 'boom'"),
        (("compile", "bad.py:number", "--input", "x:2"), "is a int, no network"),
        (("run", "absent.tvm"), "no such file"),
        (("run", "net.py"), "it is no compiled module"),
        (("bench", "absent.tvm"), "no such file"),
        (("bench", *NET, "--vs", "fastai"), "unknown runtime 'fastai'"),
        (("bench", "net.tvm", "--vs", "onnxruntime"), "there is no such file"),
        (("export", "net.py:Absent"), "has no 'Absent'"),
        (("export", "net.py:Net"), "no inputs are given"),
        (("export", "net.py:Net", "--input", "x:2x-3"), "is no input"),
        (("export", "net.py:Net", "--input", "x:2x4:float3"), "is no input"),
        (("export", "net.py:Net", "--input", "x:2x5"), "Dense"),
        (("export", *NET, "--dynamic", "x"), "name:axis=label"),
        (("export", *NET, "--opset", "3"), "opset 3 is not offered"),
        (("compile", *NET, "--level", "O9"), "jit_level cannot be 'O9'"),
        (("compile", *NET, "--target", "z80"), "unknown target"),
        (("compile", *NET, "--config", "fast"), "unknown key 'fast'"),
        (("compile", *NET, "--config", "net.py:x"), "is no preset file"),
        (("compile", *NET, "-o", "net.py/x.tvm"), "net.py"),
        (("compile",), "Missing argument"),
        (("show", "net.py"), "is not file.py:name"),
        (("explain", "net.py"), "is not file.py:name"),
    ],
)
def test_mistakes(
    args: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong input: a message, exit status 2, no traceback, no file left behind."""
    monkeypatch.chdir(tmp_path)
    files = {"net.py": NETWORK, "bad.py": BAD, "syntax.py": "def", "broken.onnx": "nonsense"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = call(*args)
    assert found.exit_code == 2, found.output
    assert message in found.output
    assert "Traceback" not in found.output
    assert {p.name for p in tmp_path.iterdir()} <= {*files, "__pycache__"}


def test_what_cannot_be_done(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from tvmgraph import ops\n\ndef net(x):\n    return ops.lgamma(x)\n"
    )
    out = tmp_path / "x.onnx"
    found = call("export", f"{tmp_path}/net.py:net", "--input", "x:3", "-o", out)
    assert found.exit_code == 1
    assert "ONNX has no gamma function" in found.output
    assert "net.py:4" in found.output
    assert not out.exists()
