"""Modules, ONNX models and command lines with axes of variable size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from typer.testing import CliRunner

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.cli.app import app
from tvmgraph.errors import ExportError
from tvmgraph.runtime import load

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def network() -> nn.Cell:
    net = nn.SequentialCell(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        nn.Dense(64, 70), nn.GELU(), nn.Dense(70, 3),
    )  # fmt: skip
    net.set_train(False)
    return net


def test_a_module_runs_every_batch_size(tmp_path: Path) -> None:
    net = network()
    spec = Tensor(shape=["batch", 1, 8, 8], dtype=ms.float32)
    module = load(ms.export(net, spec, file_name=tmp_path / "net", file_format="TVM"))
    assert module.manifest.inputs[0].shape == ("batch", 1, 8, 8)
    assert module.manifest.outputs[0].shape == ("batch", 3)
    for b in (1, 2, 5, 64, 37):
        x = normal(b, 1, 8, 8)
        np.testing.assert_allclose(module(x), net(Tensor(x)).asnumpy(), rtol=1e-4, atol=1e-5)


def test_batch_and_length_vary(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    layer.set_train(False)
    example = Tensor(normal(2, 3, 16))
    path = ms.export(
        layer, example, file_name=tmp_path / "layer", file_format="TVM",
        dynamic={"src": {0: "n", 1: "t"}},
    )  # fmt: skip
    module = load(path)
    for n, t in ((1, 5), (3, 7), (2, 1), (4, 37)):
        x = normal(n, t, 16)
        np.testing.assert_allclose(module(x), layer(Tensor(x)).asnumpy(), rtol=1e-3, atol=1e-4)


def test_results_may_have_computed_sizes(tmp_path: Path) -> None:
    specs = [Tensor(shape=["n", 4], dtype=ms.float32), Tensor(shape=[None, 4], dtype=ms.float32)]
    path = ms.export(
        lambda a, b: (ops.concat((a, b, a)).reshape(-1, 2), a[1:]), *specs,
        file_name=tmp_path / "join", file_format="TVM",
    )  # fmt: skip
    module = load(path)
    assert [e.shape for e in module.manifest.outputs] == [("2*b_0+4*n", 2), ("n-1", 4)]
    a, b = normal(3, 4), normal(5, 4)
    joined, rest = module(a, b)
    np.testing.assert_array_equal(joined, np.concatenate((a, b, a)).reshape(-1, 2))
    np.testing.assert_array_equal(rest, a[1:])


def test_wrong_sizes_are_named(tmp_path: Path) -> None:
    specs = [Tensor(shape=["n", 4], dtype=ms.float32), Tensor(shape=["n"], dtype=ms.float32)]
    path = ms.export(
        lambda a, b: a * b[:, None], *specs, file_name=tmp_path / "f", file_format="TVM"
    )  # fmt: skip
    module = load(path)
    for a, b, text in (
        (normal(3, 5), normal(3), r"'a' must be float32\[n,4\]"),
        (normal(3, 4), normal(2), r"'b' must be float32\[n\] with n=3"),
        (normal(0, 4), normal(0), r"'a' must be float32\[n,4\]"),
        (normal(3), normal(3), r"'a' must be float32\[n,4\]"),
    ):
        with pytest.raises(ValueError, match=text):
            module(a, b)


def test_code_that_needs_a_size_is_refused(tmp_path: Path) -> None:
    def decides(x: Tensor) -> Tensor:
        return x if x.shape[0] > 10 else x * 2

    def unrolls(x: Tensor) -> Tensor:
        return sum([x[i] for i in range(x.shape[0])], x[0])

    for fn in (decides, unrolls):
        with pytest.raises(ExportError, match="depends on the value of n"):
            spec = Tensor(shape=["n", 2], dtype=ms.float32)
            ms.export(fn, spec, file_name=tmp_path / "f", file_format="TVM")


#: Code that slices an axis of variable size, and the smallest size that a file takes then.
SLICES: dict[str, tuple[Any, int]] = {
    "first three": (lambda x: x[:3], 3),
    "last three": (lambda x: x[-3:], 3),
    "between": (lambda x: x[1:4], 4),
    "without the last three": (lambda x: x[:-3], 3),
    "without both ends": (lambda x: x[1 : x.shape[0] - 1], 2),
    "first half": (lambda x: x[: x.shape[0] // 2], 1),
    "second half": (lambda x: x[x.shape[0] // 2 :], 1),
    "last half": (lambda x: x[-(x.shape[0] // 2) :], 2),
    "two thirds": (lambda x: x[: x.shape[0] // 3 * 2], 1),
    "half and one more": (lambda x: x[: x.shape[0] // 2 + 1], 1),
    "beyond": (lambda x: x[: 2 * x.shape[0]], 1),
    "element": (lambda x: x[5], 6),
    "middle": (lambda x: x[x.shape[0] // 2], 1),
    "as an operator": (lambda x: ops.strided_slice(x, (0, 0), (3, 2), (1, 1)), 3),
    "a branch by size 1": (lambda x: x if x.shape[0] > 1 else x * 3, 2),
    "axes of size 1": (lambda x: ops.squeeze(x), 2),
    "broadcast": (lambda x: x + x.sum(0, keepdims=True), 1),
    "half of the half": (lambda x: x[: (x.shape[0] + 1) // 2 // 2], 1),
    "by a sum of sizes": (lambda x: x * (3.0 / (2 * x.shape[0] - 1)), 1),
}


@pytest.mark.parametrize("file_format", ["TVM", "GRAPH"])
@pytest.mark.parametrize("name", SLICES)
def test_slices_are_right_or_refused(tmp_path: Path, name: str, file_format: str) -> None:
    part, least = SLICES[name]

    def code(x: Tensor) -> Tensor:
        return part(x) * 2

    spec = Tensor(shape=["n", 2], dtype=ms.float32)
    path = ms.export(code, spec, file_name=tmp_path / "f", file_format=file_format)
    loaded: Any = ms.load(path)
    for n in (1, 2, 3, 4, 5, 6, 7, 50):
        x = Tensor(normal(n, 2))
        if n < least:
            with pytest.raises(ValueError, match=f"n must be at least {least}"):
                loaded(x)
        else:
            np.testing.assert_array_equal(np.asarray(loaded(x)), code(x).asnumpy())


@pytest.mark.parametrize("file_format", ["TVM", "GRAPH"])
def test_a_table_ends_the_sizes(tmp_path: Path, file_format: str) -> None:
    """As positions of words are embedded: no more rows than the table has."""
    table = Tensor(normal(50, 2))

    def code(x: Tensor) -> Tensor:
        return x + table[: x.shape[0]]

    spec = Tensor(shape=["n", 2], dtype=ms.float32)
    path = ms.export(code, spec, file_name=tmp_path / "f", file_format=file_format)
    loaded: Any = ms.load(path)
    for n in (1, 2, 37, 50):
        x = Tensor(normal(n, 2))
        np.testing.assert_array_equal(np.asarray(loaded(x)), code(x).asnumpy())
    with pytest.raises(ValueError, match="n must be at most 50"):
        loaded(Tensor(normal(51, 2)))


def test_sizes_begin_at_one(tmp_path: Path) -> None:
    spec = Tensor(shape=["n", 2], dtype=ms.float32)
    module = load(ms.export(nn.Dense(2, 3), spec, file_name=tmp_path / "f", file_format="TVM"))
    with pytest.raises(ValueError, match=r"float32\[n,2\] with n of at least 1"):
        module(normal(0, 2))


def test_set_inputs_is_enough(tmp_path: Path) -> None:
    net = nn.Dense(3, 4)
    net.set_inputs(Tensor(shape=["batch", 3], dtype=ms.float32))
    module = load(ms.export(net, file_name=tmp_path / "net", file_format="TVM"))
    assert module(normal(7, 3)).shape == (7, 4)
    path = ms.export(net, file_name=tmp_path / "net", file_format="ONNX")
    session = onnxruntime.InferenceSession(str(path))
    assert session.get_inputs()[0].shape == ["batch", 3]
    x = normal(5, 3)
    found = session.run(None, {session.get_inputs()[0].name: x})[0]
    np.testing.assert_allclose(found, net(Tensor(x)).asnumpy(), rtol=1e-5, atol=1e-6)


def test_the_command_line_takes_variable_sizes(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("from tvmgraph import nn\n\n\ndef make():\n    return nn.Dense(3, 4)\n\n\n"
                    "net = make()\n")  # fmt: skip
    for size, name in (("?", "x_0"), ("batch", "batch")):
        out = str(tmp_path / "net.tvm")
        given = ["compile", f"{file}:net", "--input", f"x:{size}x3", "-o", out]
        result = CliRunner().invoke(app, given)
        assert result.exit_code == 0, result.output
        assert load(out).manifest.inputs[0].shape == (name, 3)
    result = CliRunner().invoke(app, ["compile", f"{file}:net", "--input", "x:-?x3", "-o", out])
    assert result.exit_code == 2


def test_sizes_in_a_manifest_are_checked() -> None:
    from tvmgraph.runtime.archive import _entry

    assert _entry({"name": "x", "dtype": "float32", "shape": ["2*n+1", 3]}).shape == ("2*n+1", 3)
    for bad in ("", "n;m", "__import__('os')", "n" * 300, -1, True, None, 1.5):
        with pytest.raises((ValueError, TypeError)):
            _entry({"name": "x", "dtype": "float32", "shape": [bad]})
