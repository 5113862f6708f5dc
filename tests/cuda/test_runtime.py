"""Tensors, operators and compiled functions on a GPU, emulated."""

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops


@pytest.fixture
def on_gpu(gpu):
    ms.set_context(device_target="GPU")
    return gpu


def test_a_tensor_moves_there_and_back(gpu):
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    moved = x.to("GPU")
    assert (x.device, moved.device) == ("CPU", "GPU:0")
    assert np.array_equal(moved.asnumpy(), x.asnumpy())
    assert moved.to("CPU").device == "CPU"
    assert gpu.get("to_device") == gpu.get("to_host") - 24 == 24


def test_operators_run_where_their_operands_are(gpu):
    x = Tensor(np.linspace(-2, 2, 50, dtype=np.float32)).to("GPU")
    y = ops.relu(x * 2 + 1)
    assert y.device == "GPU:0"
    assert np.allclose(y.asnumpy(), np.maximum(np.linspace(-2, 2, 50) * 2 + 1, 0), atol=1e-6)
    assert [launch.name for launch in gpu.launches] != []


def test_a_compiled_network_agrees_with_the_host(on_gpu):
    net = nn.SequentialCell(nn.Dense(20, 30), nn.ReLU(), nn.Dense(30, 10))
    x = Tensor(np.random.default_rng(0).standard_normal((4, 20)).astype(np.float32))
    compiled = ms.jit(net)
    found = compiled(x)
    assert found.device == "GPU:0"
    again = compiled(x)
    ms.set_context(device_target="CPU")
    expected = net(Tensor(x.asnumpy()))
    assert np.allclose(found.asnumpy(), expected.asnumpy(), atol=1e-5)
    assert np.array_equal(again.asnumpy(), found.asnumpy())


def _train(steps: int) -> tuple[list[float], list[np.ndarray]]:
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 4))
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    loss_of = nn.CrossEntropyLoss()
    step = ms.jit(nn.TrainOneStepCell(nn.WithLossCell(net, loss_of), optimizer))
    data = np.random.default_rng(0)
    x, y = data.standard_normal((6, 8), np.float32), data.integers(0, 4, 6).astype(np.int32)
    losses = [float(step(Tensor(x), Tensor(y)).asnumpy()) for _ in range(steps)]
    return losses, [p.asnumpy() for p in net.trainable_params()]


def test_training_agrees_with_the_host_and_keeps_its_weights_there(on_gpu):
    losses, weights = _train(4)
    copied = ms.runtime.copy_counts()
    ms.set_context(device_target="CPU")
    expected, expected_weights = _train(4)
    assert np.allclose(losses, expected, atol=1e-5)
    for found, wanted in zip(weights, expected_weights):
        assert np.allclose(found, wanted, atol=1e-5)
    assert copied.to_host > 0


def test_an_exported_module_runs_with_arrays_and_with_tensors_there(gpu, tmp_path):
    net = nn.SequentialCell(nn.Dense(20, 30), nn.ReLU(), nn.Dense(30, 10))
    x = np.random.default_rng(0).standard_normal((4, 20)).astype(np.float32)
    ms.export(net, Tensor(x), file_name=tmp_path / "net.tvm", file_format="TVM", target="sm_90")
    module = ms.load(tmp_path / "net.tvm")
    found = module(x)
    assert np.allclose(found, net(Tensor(x)).asnumpy(), atol=1e-5)
    there = module(Tensor(x).to("GPU"))
    assert np.array_equal(ms.from_dlpack(there).asnumpy(), found)
