"""Graph files: there and back, a stored file, damaged files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tvmgraph as ms
from tests.export.helpers import eager, relative_error, run_onnxruntime
from tests.models import MODELS, Model
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import ExportError, LoadError
from tvmgraph.export.graph_file import load_graph
from tvmgraph.export.onnx_file import onnx_model

STORED = Path(__file__).parent / "stored_v1.graph"


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_there_and_back(model: Model, tmp_path: Path) -> None:
    net, args = model.build(), model.inputs(2)
    expected = eager(net, args)
    path = ms.export(net, *args, file_name=tmp_path / "net", file_format="GRAPH")
    assert path.suffix == ".graph"
    back = load_graph(path)
    found = back(*args)
    found = found if isinstance(found, tuple) else (found,)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(f.asnumpy(), e)
    assert {p.name for p in net.trainable_params()} <= {p.name for p in back.get_parameters()}
    again = ms.export(back, *args, file_name=tmp_path / "again", file_format="GRAPH")
    assert load_graph(again).graph.structural_hash() == back.graph.structural_hash()


def test_a_loaded_graph_compiles_differentiates_and_exports(tmp_path: Path) -> None:
    net, x = nn.Dense(4, 3, activation="tanh"), Tensor(np.ones((2, 4), np.float32))
    back = load_graph(ms.export(net, x, file_name=tmp_path / "n", file_format="GRAPH"))
    expected = eager(net, (x,))
    assert relative_error([ms.jit(back)(x)], expected) <= 1e-5
    assert relative_error(run_onnxruntime(onnx_model(back, (x,)), (x,)), expected) <= 1e-5
    for a, b in zip(ms.grad(net)(x).asnumpy(), ms.grad(back)(x).asnumpy()):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def _with_sizes(x: Tensor) -> tuple[Tensor, ...]:
    """Operators whose attributes hold the size that varies."""
    n = x.shape[0]
    flat = x.reshape(n * 5)
    return (
        ops.ones((n, 2)),
        flat,
        ops.arange(n),
        ops.einsum("ij,kj->ik", x, x),
    )


def test_sizes_that_vary(tmp_path: Path) -> None:
    class Net(nn.Cell):
        def construct(self, x: Tensor) -> tuple[Tensor, ...]:
            return _with_sizes(x)

    file = tmp_path / "sizes.graph"
    ms.export(
        Net(), Tensor(shape=["n", 5], dtype=ms.float32), file_name=str(file), file_format="GRAPH"
    )
    loaded = ms.load(str(file))
    for run in (loaded, ms.jit(loaded)):
        for n in (3, 7):
            x = Tensor(np.random.default_rng(n).standard_normal((n, 5)).astype(np.float32))
            for actual, expected in zip(run(x), _with_sizes(x), strict=True):
                np.testing.assert_allclose(actual.asnumpy(), expected.asnumpy(), rtol=1e-5)


def test_stored_file() -> None:
    """A file that version 1 wrote is read by every later version."""
    net = load_graph(STORED)
    x = Tensor(np.linspace(-1, 1, 2 * 64, dtype=np.float32).reshape(2, 1, 8, 8))
    with np.load(STORED.with_suffix(".npz")) as stored:
        np.testing.assert_allclose(net(x).asnumpy(), stored["y"], rtol=1e-5, atol=1e-6)


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no such file"):
        load_graph(tmp_path / "absent.graph")
    (tmp_path / "a.graph").write_bytes(b"hello")
    with pytest.raises(LoadError, match="no graph file, or it is damaged"):
        load_graph(tmp_path / "a.graph")
    with zipfile.ZipFile(tmp_path / "new.graph", "w") as z:
        z.writestr("format.json", json.dumps({"format": "tvmgraph-graph", "version": 2}))
    with pytest.raises(LoadError, match="its format is version 2, this package reads 1"):
        load_graph(tmp_path / "new.graph")
    changed = tmp_path / "operator.graph"
    with zipfile.ZipFile(STORED) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"relu(", b"frobnicate("))
    with pytest.raises(LoadError, match="no operator 'frobnicate'"):
        load_graph(changed)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files_give_errors(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Changes of the text end in a LoadError or in a graph that was checked."""
    with zipfile.ZipFile(STORED) as old:
        members = {name: bytearray(old.read(name)) for name in old.namelist()}
    content = members[data.draw(st.sampled_from(sorted(members)))]
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "net.graph"
    with zipfile.ZipFile(path, "w") as new:
        for name, member in members.items():
            new.writestr(name, bytes(member))
    try:
        assert load_graph(path).graph.outputs
    except LoadError as e:
        assert str(path) in str(e)


def test_load_chooses_by_suffix(tmp_path: Path) -> None:
    net, x = nn.Dense(4, 3), Tensor(np.ones((2, 4), np.float32))
    for kind in ("GRAPH", "ONNX", "TVM"):
        found = ms.load(ms.export(net, x, file_name=tmp_path / "n", file_format=kind))(x)
        assert relative_error([found], eager(net, (x,))) <= 1e-5
    with pytest.raises(ms.errors.ArgumentError, match=r"'n\.txt' has the suffix of no format"):
        ms.load(tmp_path / "n.txt")


@pytest.mark.parametrize("file_format", ["GRAPH", "TVM"])
def test_sizes_that_vary_are_not_asked_for_in_vain(tmp_path: Path, file_format: str) -> None:
    def code(x: Tensor) -> tuple[Tensor, ...]:
        return x[1:] - x[:-1], x[:1] * x[-1], ops.topk(x, 2, dim=0)[0]

    file = tmp_path / "sizes"
    placeholder = Tensor(shape=["n", 5], dtype=ms.float32)
    ms.export(code, placeholder, file_name=str(file), file_format=file_format)
    loaded = ms.load(str(next(tmp_path.iterdir())))
    for n in (3, 7):
        x = Tensor(np.random.default_rng(n).standard_normal((n, 5)).astype(np.float32))
        for actual, expected in zip(loaded(x), code(x), strict=True):
            np.testing.assert_array_equal(np.asarray(actual), expected.asnumpy())


def test_a_size_that_decides_is_said() -> None:
    placeholder = Tensor(shape=["n", 5], dtype=ms.float32)
    with pytest.raises(ExportError, match=r"depends on the value of n: \(n < 40\)") as e:
        ms.export(lambda x: x[:40], placeholder, file_name="never", file_format="GRAPH")
    assert "export once for every size" in str(e.value)
