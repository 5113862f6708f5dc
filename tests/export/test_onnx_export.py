"""Networks as ONNX files: checked, run elsewhere, compared with eager."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tvmgraph as ms
from tests.export.helpers import (
    MAX_ERROR,
    eager,
    relative_error,
    run_onnxruntime,
    run_reference,
)
from tests.models import MODELS, Model
from tests.nn import helpers as layers
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import ArgumentError, ExportError
from tvmgraph.export.onnx_file import onnx_model
from tvmgraph.models import Gpt2

LAYERS = [
    layer
    for table in vars(layers).values()
    if isinstance(table, list) and table and isinstance(table[0], layers.Layer)
    for layer in table
    if not layer.train
]
NEWEST = 25  # the newest opset that ONNX Runtime runs


#: Layers of operators that ONNX does not have.
WITHOUT_ONNX = ("LGamma", "DiGamma", "IGamma", "LBeta", "MatInverse")


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
@pytest.mark.parametrize("opset", [17, 20, NEWEST])
def test_layer(layer: Any, opset: int) -> None:
    if layer.name in WITHOUT_ONNX:
        with pytest.raises(ExportError, match="has no ONNX form"):
            onnx_model(layer.build(), layer.inputs(), opset)
        return
    net, args = layer.build(), layer.inputs()
    expected = eager(net, args)
    model = onnx_model(net, args, opset)
    assert relative_error(run_onnxruntime(model, args), expected) <= MAX_ERROR


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_model(model: Model, tmp_path: Path) -> None:
    net, args = model.build(), model.inputs(2)
    expected = eager(net, args)
    path = ms.export(net, *args, file_name=tmp_path / model.name, file_format="ONNX")
    onnx.checker.check_model(str(path), full_check=True)
    assert relative_error(run_onnxruntime(path, args), expected) <= MAX_ERROR
    proto = onnx.load(path)
    assert relative_error(run_reference(proto, args), expected) <= MAX_ERROR
    weights = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    for name, p in net.parameters_dict().items():
        if name in weights:
            np.testing.assert_array_equal(weights[name], p.asnumpy())
    assert set(weights) >= {p.name for p in net.trainable_params()}


_AXES = {"lstm": {"ids": {0: "batch"}}}
for _name in ("bert", "gpt2"):
    _AXES[_name] = {"input_ids": {0: "batch", 1: "time"}}


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_variable_axes(model: Model) -> None:
    net = model.build()
    axes = _AXES.get(model.name, {"x": {0: "batch"}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of sizes that the model does not take
        proto = onnx_model(net, model.inputs(1), dynamic=axes)
    dims = [d.dim_param for d in proto.graph.input[0].type.tensor_type.shape.dim]
    named = list(next(iter(axes.values())).values())
    assert dims[: len(named)] == named
    assert proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    for n in (1, 5):
        args = model.inputs(n)
        if len(named) == 2:
            ids = np.random.default_rng(1).integers(0, 100, (n, 17), np.int32)
            args = (Tensor(ids),)
        assert relative_error(run_onnxruntime(proto, args), eager(net, args)) <= MAX_ERROR


def test_axes_that_cannot_vary() -> None:
    net = nn.LSTM(3, 4, batch_first=True)
    x = Tensor(np.ones((2, 5, 3), np.float32))
    with pytest.raises(ExportError, match="the code depends on the value of time, which is needed"):
        onnx_model(lambda x: [x + i for i in range(x.shape[1])], (x,), dynamic={"x": {1: "time"}})
    with pytest.raises(ArgumentError, match="there is no input 'y'"):
        onnx_model(net, (x,), dynamic={"y": {1: "time"}})
    with pytest.raises(ArgumentError, match="has no axis 3"):
        onnx_model(net, (x,), dynamic={"x": {3: "time"}})


def test_code_that_decides_by_a_size_of_one_is_said() -> None:
    def halves(x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] > 1 else x - 1

    with pytest.warns(UserWarning, match="sizes of at least 2 of n only: the code decides"):
        onnx_model(halves, (Tensor(np.ones((3, 2), np.float32)),), dynamic={"x": {0: "n"}})


def test_external_data(tmp_path: Path) -> None:
    model = next(m for m in MODELS if m.name == "gpt2")
    net, args = model.build(), model.inputs(1)
    assert isinstance(net, Gpt2)
    path = ms.export(net, *args, file_name=tmp_path / "net.onnx", external_data_bytes=1000)
    data = tmp_path / "net.onnx.data"
    assert data.stat().st_size > path.stat().st_size
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    assert relative_error(run_onnxruntime(path, args), eager(net, args)) <= MAX_ERROR


def test_inference_mode_is_used_and_restored() -> None:
    net = nn.SequentialCell(nn.Dense(3, 3), nn.BatchNorm1d(3), nn.Dropout(p=0.5))
    net.set_train(True)
    net[2].set_train(False)
    args = (Tensor(np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)),)
    proto = onnx_model(net, args)
    assert [c.training for c in (net, net[0], net[1], net[2])] == [True, True, True, False]
    assert len(proto.graph.output) == 1
    assert relative_error(run_onnxruntime(proto, args), eager(net, args)) <= MAX_ERROR


def test_errors_name_the_line() -> None:
    def median(x: Tensor) -> Tensor:
        return ops.bitwise_and(x, x)

    x = Tensor(np.array([1, 2], np.int32))
    with pytest.raises(ExportError) as caught:
        onnx_model(median, (x,), 17)
    assert "opset 17 has no BitwiseAnd" in str(caught.value)
    assert "test_onnx_export.py:" in str(caught.value)
    assert "opset=18" in str(caught.value)


def test_random_networks_are_refused() -> None:
    net = nn.Dropout(p=0.5)
    with pytest.raises(ExportError, match="draws random numbers"):
        onnx_model(net, (Tensor(np.ones(3, np.float32)),), training=True)


def test_bad_arguments(tmp_path: Path) -> None:
    x = Tensor(np.ones(3, np.float32))
    with pytest.raises(ArgumentError, match="unknown file_format 'AIR'"):
        ms.export(nn.ReLU(), x, file_name=tmp_path / "a", file_format="AIR")
    with pytest.raises(ArgumentError, match="no such option"):
        ms.export(nn.ReLU(), x, file_name=tmp_path / "a", colour=1)
    with pytest.raises(ArgumentError, match="opset 16 is not offered"):
        ms.export(nn.ReLU(), x, file_name=tmp_path / "a", opset=16)
    assert not list(tmp_path.iterdir())


def test_jit_function(tmp_path: Path) -> None:
    @ms.jit
    def f(x: Tensor) -> Tensor:
        return x * 2 + 1

    x = Tensor(np.arange(3, dtype=np.float32))
    f(x)
    path = f.export(tmp_path / "f.onnx")
    np.testing.assert_array_equal(run_onnxruntime(path, (x,))[0], [1, 3, 5])
    other = Tensor(np.ones((2, 2), np.float32))
    assert run_onnxruntime(f.export(tmp_path / "g.onnx", other), (other,))[0].shape == (2, 2)
    with pytest.raises(ms.errors.CompileError, match="nothing was compiled yet"):
        ms.jit(lambda x: x).export(tmp_path / "h.onnx")


class Returned(nn.Cell):
    """Returns its weight, as it is or after an update."""

    def __init__(self, updates: bool) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor([1.0, 2.0]), name="weight")
        self.updates = updates

    def construct(self, x: Tensor) -> tuple[Tensor, ...]:
        product = self.weight * x
        if self.updates:
            self.weight += x
        return self.weight, product, self.weight


@pytest.mark.filterwarnings("ignore:export. weight would change")
@pytest.mark.parametrize("updates", [False, True])
def test_a_weight_is_a_result(updates: bool, tmp_path: Path) -> None:
    x = Tensor([10.0, 20.0])
    expected = eager(Returned(updates), (x,))
    onnx_result = run_onnxruntime(onnx_model(Returned(updates), (x,)), (x,))
    assert [r.tolist() for r in onnx_result] == [e.tolist() for e in expected]
    for kind in ("TVM", "GRAPH"):
        path = ms.export(Returned(updates), x, file_name=tmp_path / "net", file_format=kind)
        results = ms.load(path)(x)
        assert [np.asarray(r).tolist() for r in results] == [e.tolist() for e in expected], kind
