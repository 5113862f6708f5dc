"""Convolutional networks on the device keep their channels last."""

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import nn, ops
from tvmgraph.config.options import CompileOptions
from tvmgraph.eager.evaluate import evaluate
from tvmgraph.graph.ir import Role
from tvmgraph.graph.simplify import dce
from tvmgraph.passes.channels_last import channels_last
from tvmgraph.passes.freeze import freeze
from tvmgraph.passes.recompute import recompute_cheap


class _Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, stride=2)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.each = nn.Conv2d(8, 8, 3, group=8)
        self.pool = nn.MaxPool2d(2, 2)

    def construct(self, x):
        y = ops.relu(self.norm(self.first(x)))
        return ops.mean(ops.concat((self.pool(self.each(self.second(y))), self.pool(y)), 1), (2, 3))


def test_network_in_half_precision(gpu):
    net = _Net().set_train(False).to_float(ms.float16)
    net.norm.moving_variance.set_data(ms.ops.full((16,), 2.0, dtype=ms.float32))
    x = ms.Tensor(np.random.default_rng(0).uniform(-1, 1, (2, 3, 12, 10)).astype(np.float32))
    ms.set_context(device_target="CPU", mode=ms.GRAPH_MODE)
    expected = net(x).asnumpy()
    ms.set_context(device_target="GPU", mode=ms.GRAPH_MODE)
    found = net(x).asnumpy()
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=2e-3)
    ms.runtime.reset_copy_counts()
    net(x)
    assert ms.runtime.copy_counts().to_device == 0, "weights are prepared once"
    net.second.bias.set_data(net.second.bias + 1)
    assert not np.allclose(net(x).asnumpy(), found, atol=0.1)


def test_a_frozen_network_prepares_its_weights_ahead():
    net = _Net().set_train(False)
    frozen = freeze(ms.jit(net).graph(ms.ops.ones((1, 3, 8, 8))), CompileOptions(target="sm_90"))
    assert frozen is not None
    names = [node.op.name for node in frozen.main.nodes]
    assert names.count("conv_nchwc") == 2 and not {"mul", "rsqrt", "convolution"} & set(names)
    parameters = {p.value for p in frozen.main.params if p.role is Role.PARAMETER}
    turned = [n for n in frozen.main.nodes if n.op.name == "transpose"]
    assert not [n for n in turned if n.inputs[0] in parameters]


def test_images_are_turned_once():
    net = _Net().set_train(False)
    graph = ms.jit(net).graph(ms.ops.ones((1, 3, 8, 8)))
    turned = channels_last(graph)
    names = [node.op.name for node in turned.nodes]
    assert names.count("conv_nchwc") == 2 and names.count("depthwise_nchwc") == 1
    assert "convolution" not in names
    assert len(_put_in_order(turned)) == 1, "an image was put into another order on the way"
    assert names.count("pad_constant") == 2, "the camera's image and its weight get a channel"


def _put_in_order(graph):
    return [n for n in graph.nodes if n.op.name == "transpose" and n.inputs[0].type.ndim == 5]


class _Trained(nn.Cell):
    def __init__(self, images: int, channels: int):
        super().__init__()
        self.first = nn.Conv2d(images, channels, 3, stride=2, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.pool = nn.MaxPool2d(2, 2)
        self.second = nn.Conv2d(channels, 16, 3, pad_mode="pad", padding=1, stride=2)
        self.other = nn.Conv2d(channels, 16, 1, stride=2)
        self.third = nn.Conv2d(16, 8, 3, pad_mode="valid")
        self.head = nn.Dense(8, 3)

    def construct(self, x):
        y = self.pool(ops.relu(self.norm(self.first(x))))
        y = ops.relu(self.second(y) + self.other(y))
        return self.head(ops.mean(self.third(y), (2, 3)))


def _step(images: int = 3, dtype=None):
    ms.set_seed(3)
    net = _Trained(images, 8)
    if dtype is not None:
        net.to_float(dtype)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    cell = nn.WithLossCell(net, nn.CrossEntropyLoss())
    return nn.TrainOneStepCell(cell, optimizer).set_train(), net


def _batch(images: int = 3) -> tuple[ms.Tensor, ms.Tensor]:
    x = np.random.default_rng(1).standard_normal((2, images, 32, 32)).astype(np.float32)
    return ms.Tensor(x), ms.Tensor(np.array([1, 2], np.int32))


@pytest.mark.parametrize("images", [3, 8])
def test_a_training_graph_means_the_same(images):
    step, _ = _step(images)
    graph = dce(ms.jit(step).graph(*_batch(images)))
    turned = channels_last(graph)
    rng = np.random.default_rng(2)
    arguments = [
        np.asarray(rng.uniform(0.1, 1, t.static_shape), t.dtype.numpy)
        for t in (p.value.type for p in graph.params)
    ]
    for found, wanted in zip(evaluate(turned, arguments), evaluate(graph, arguments)):
        np.testing.assert_allclose(found, wanted, atol=1e-4 * max(1, np.abs(wanted).max()))
    names = [node.op.name for node in turned.nodes]
    assert not {"convolution", "conv_transpose", "conv_weight_grad"} & set(names)
    assert len(_put_in_order(turned)) == 1, "an image was put into another order on the way"


def test_derivatives_of_groups_read_plain_images():
    net = nn.Conv2d(16, 16, 3, group=16)
    step = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
    graph = ms.jit(step).graph(ms.ops.ones((2, 16, 9, 9)))
    gpu = CompileOptions(target="sm_90")
    assert channels_last(graph) is graph
    frozen = freeze(graph, gpu)
    found = graph if frozen is None else frozen.main
    assert "conv_nchwc" not in found.op_counts()


def test_a_frozen_graph_is_put_in_order_once():
    graph = freeze(ms.jit(_Net()).graph(ms.ops.ones((1, 3, 8, 8))), CompileOptions(target="sm_90"))
    assert graph.main.op_counts()["conv_nchwc"] == 2
    assert channels_last(graph.main) is graph.main


def test_a_training_step_in_half_precision(gpu, monkeypatch):
    monkeypatch.setattr(recompute_cheap, "__defaults__", (1,))
    losses, weights = [], []
    for target in ("CPU", "GPU"):
        ms.set_context(device_target=target)
        step, net = _step(dtype=ms.float16)
        run = ms.jit(step)
        losses.append([float(run(*_batch()).asnumpy()) for _ in range(2)])
        weights.append([p.asnumpy() for p in net.get_parameters()])
    np.testing.assert_allclose(losses[1], losses[0], atol=4e-3)
    for found, wanted in zip(weights[1], weights[0]):
        np.testing.assert_allclose(found, wanted, atol=4e-3)
    names = " ".join(launch.name for launch in gpu.launches)
    assert "conv_nchwc_weight_grad" in names and "conv2d" not in names
