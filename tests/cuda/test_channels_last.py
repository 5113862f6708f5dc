"""Convolutional networks on the device keep their channels last."""

import numpy as np

import tvmgraph as ms
from tvmgraph import nn, ops
from tvmgraph.compiler.channels_last import channels_last
from tvmgraph.compiler.freeze import freeze
from tvmgraph.graph.ir import Role


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
    net.norm.moving_variance.set_data(ms.ops.full((16,), 2.0))
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
    frozen = freeze(ms.jit(net).graph(ms.ops.ones((1, 3, 8, 8))), on_gpu=True)
    assert frozen is not None
    names = [node.op.name for node in frozen.main.nodes]
    assert names.count("conv_blocked") == 2 and not {"mul", "rsqrt", "convolution"} & set(names)
    parameters = {p.value for p in frozen.main.params if p.role is Role.PARAMETER}
    turned = [n for n in frozen.main.nodes if n.op.name == "transpose"]
    assert not [n for n in turned if n.inputs[0] in parameters]


def test_images_are_turned_once():
    net = _Net().set_train(False)
    graph = ms.jit(net).graph(ms.ops.ones((1, 3, 8, 8)))
    turned = channels_last(graph)
    names = [node.op.name for node in turned.nodes]
    assert names.count("conv_blocked") == 2 and names.count("depthwise_blocked") == 1
    assert "convolution" not in names
    images = [n for n in turned.nodes if n.op.name == "transpose" and n.inputs[0].type.ndim == 5]
    assert not images, "an image was put into another order on the way"
