"""MINDIR files of MindSpore: the networks of ``record_mindir.py`` give MindSpore's results."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tvmgraph as ms
from tests.archives import unpack
from tvmgraph import Tensor, mint, nn, ops
from tvmgraph.errors import ArgumentError, CaptureError, DTypeError, LoadError, TvmgraphError

RECORDED = Path(__file__).with_name("mindir.tar.xz")
NETWORKS = (
    "lenet", "residual", "tokens", "recurrent", "attention", "branch", "loop", "loop_of_branches",
    "count_if", "counter", "values",
    "images", "parts_graph",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mindir")
    unpack(RECORDED, path)
    return path


def load(folder: Path, name: str) -> tuple[Any, list[Tensor], list[np.ndarray]]:
    with np.load(folder / f"{name}.npz") as stored:
        inputs = [Tensor(stored[n]) for n in stored.files if n.startswith("in")]
        outputs = [stored[n] for n in stored.files if n.startswith("out")]
    return ms.load(folder / f"{name}.mindir"), inputs, outputs


def arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in arrays(v)]
    return [value.asnumpy()]


def require_equal(found: Any, expected: list[np.ndarray]) -> None:
    for f, e in zip(arrays(found), expected, strict=True):
        assert f.dtype == e.dtype
        np.testing.assert_allclose(f, e, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_results_are_those_of_mindspore(folder: Path, name: str) -> None:
    graph, inputs, expected = load(folder, name)
    require_equal(nn.GraphCell(graph)(*inputs), expected)
    compiled = ms.jit(nn.GraphCell(load(folder, name)[0]), fullgraph=True)
    require_equal(compiled(*inputs), expected)


def test_a_compiled_branch_and_loop_are_part_of_the_graph(folder: Path) -> None:
    for name, op in (("branch", "if_"), ("loop", "while_")):
        graph, inputs, _ = load(folder, name)
        compiled = ms.jit(graph)
        for sign in (1.0, -1.0):
            x = inputs[0] * sign
            require_equal(compiled(x), arrays(graph(x)))
        assert op in str(compiled.graph())


def test_a_loop_that_ends_in_the_middle_runs_eagerly(folder: Path) -> None:
    graph, inputs, expected = load(folder, "break")
    require_equal(graph(*inputs), expected)
    with pytest.raises(CaptureError, match="no form that can be compiled"):
        ms.jit(graph, fullgraph=True)(*inputs)
    require_equal(ms.jit(graph)(*inputs), expected)


class Mint(nn.Cell):
    """The network of the same name in ``record_mindir.py``."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = mint.nn.Conv2d(3, 4, 3, padding=1), mint.nn.BatchNorm2d(4)
        self.max, self.avg = mint.nn.MaxPool2d(2), mint.nn.AvgPool2d(2)
        self.groups, self.mean = mint.nn.GroupNorm(2, 4), mint.nn.AdaptiveAvgPool2d(1)
        self.layer, self.dropout = mint.nn.LayerNorm(4), mint.nn.Dropout(0.5)
        self.linear = mint.nn.Linear(4, 2)

    def construct(self, x: Tensor) -> Tensor:
        x = self.avg(self.groups(self.max(ops.relu(self.norm(self.conv(x))))))
        x = self.layer(mint.flatten(self.mean(x), 1))
        x = mint.nn.functional.gelu(mint.nn.functional.silu(x))
        return mint.nn.functional.softmax(self.linear(self.dropout(x)), dim=-1)


def test_layers_of_mint_are_those_of_this_package(folder: Path) -> None:
    graph, net = ms.load(folder / "mint.mindir"), Mint().set_train(False)
    missing, extra = ms.load_param_into_net(net, {p.name: p for p in graph.get_parameters()})
    assert not extra
    assert not [name for name in missing if "num_batches" not in name]
    x = Tensor(np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32))
    require_equal(graph(x), arrays(net(x)))
    require_equal(ms.jit(graph, fullgraph=True)(x), arrays(net(x)))


def test_parameters_keep_their_names_and_are_written(folder: Path) -> None:
    graph, (x,), _ = load(folder, "counter")
    assert [p.name for p in graph.get_parameters()] == ["n"]
    for run in (graph, ms.jit(graph)):
        before = graph.get_parameters().__next__().asnumpy().item()
        require_equal(run(x), [x.asnumpy() * (before + 1), np.asarray(2 * before, np.float32)])


def test_params_init_replaces_values(folder: Path) -> None:
    graph, (x,), _ = load(folder, "branch")
    net = nn.GraphCell(graph, {"w": Tensor([5.0]), "other": Tensor([1.0])})
    require_equal(net(x), [x.asnumpy() * 5])


def test_a_loaded_network_trains_exports_and_pickles(folder: Path, tmp_path: Path) -> None:
    net, (x,), expected = load(folder, "lenet")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()))
    assert np.isfinite(step(x, Tensor(np.zeros((2, 10), np.float32))).asnumpy())
    net = load(folder, "lenet")[0]
    require_equal(pickle.loads(pickle.dumps(net))(x), expected)
    path = ms.export(net, *net.example_inputs(), file_name=tmp_path / "lenet", file_format="ONNX")
    require_equal(ms.load(path)(x), expected)


def test_files_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="encrypted or damaged"):
        ms.load(folder / "encrypted.mindir")
    with pytest.raises(ArgumentError, match="encrypted files are not read"):
        ms.load(folder / "encrypted.mindir", dec_key=b"0123456789ABCDEF")
    with pytest.raises(LoadError, match="no such file"):
        ms.load(folder / "missing.mindir")
    content = (folder / "lenet.mindir").read_bytes()
    (tmp_path / "part.mindir").write_bytes(content[: len(content) // 2])
    with pytest.raises(LoadError, match="damaged"):
        ms.load(tmp_path / "part.mindir")
    (tmp_path / "alone_graph.mindir").write_bytes((folder / "parts_graph.mindir").read_bytes())
    with pytest.raises(LoadError, match=r"weight '.*' is missing"):
        ms.load(tmp_path / "alone_graph.mindir")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damaged_files_are_errors_of_this_package(folder: Path, data: st.DataObject) -> None:
    content = bytearray((folder / "lenet.mindir").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = folder / "mutated.mindir"
    path.write_bytes(content)
    with contextlib.suppress(TvmgraphError):
        ms.load(path)(Tensor(np.zeros((2, 1, 16, 16), np.float32)))


def test_unknown_operators_are_named(folder: Path, tmp_path: Path) -> None:
    model = ms.load_mindir(folder / "lenet.mindir")
    for primitive in model.primitives:
        if primitive.op_type == "MaxPool":
            primitive.op_type = "MaxPoolOfTheFuture"
    ms.save_mindir(model, tmp_path / "new")
    with pytest.raises(LoadError, match=r"2 nodes use operators") as caught:
        ms.load(tmp_path / "new.mindir")
    assert "MaxPoolOfTheFuture (2)" in str(caught.value)


def test_the_message_is_read_changed_and_written(folder: Path, tmp_path: Path) -> None:
    _, (x,), expected = load(folder, "lenet")
    model = ms.load_mindir(folder / "lenet.mindir")
    model.user_info["version"] = "2"
    ms.save_mindir(model, tmp_path / "again")
    assert ms.load_mindir(tmp_path / "again.mindir").user_info["version"] == "2"
    require_equal(ms.load(tmp_path / "again.mindir")(x), expected)
    with pytest.raises(DTypeError, match="what load_mindir returns"):
        ms.save_mindir("text", tmp_path / "text")


def test_export_writes_a_graph_file_and_says_so(tmp_path: Path) -> None:
    net, x = nn.Dense(3, 2), Tensor(np.ones((1, 3), np.float32))
    with pytest.warns(UserWarning, match="graph file of this package"):
        path = ms.export(net, x, file_name=tmp_path / "net", file_format="MINDIR")
    assert path.name == "net.mindir"
    require_equal(nn.GraphCell(ms.load(path))(x), arrays(net(x)))
