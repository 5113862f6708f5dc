"""Networks of many kinds: eager = compiled = ONNX Runtime, and compiled gradients = eager ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import tvmgraph as ms
from tests.networks import sequence, vision
from tvmgraph import Tensor, nn


def image(*shape: int) -> Tensor:
    """A random tensor."""
    return Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def ids(high: int, *shape: int) -> Tensor:
    """Random indices."""
    return Tensor(np.random.default_rng(0).integers(0, high, shape).astype(np.int32))


NETWORKS: dict[str, Callable[[], tuple[nn.Cell, tuple[Tensor, ...]]]] = {
    "vgg": lambda: (vision.Vgg(8), (image(2, 3, 32, 32),)),
    "mobilenet_v2": lambda: (vision.MobileNetV2(16, depth=1), (image(1, 3, 64, 64),)),
    "mobilenet_v3": lambda: (vision.MobileNetV3(16), (image(2, 3, 24, 24),)),
    "densenet": lambda: (vision.DenseNet(8, 3), (image(2, 3, 16, 16),)),
    "inception": lambda: (vision.Inception(12, 8), (image(2, 12, 14, 14),)),
    "shufflenet": lambda: (vision.ShuffleUnit(24), (image(2, 24, 10, 10),)),
    "unet": lambda: (vision.UNet(8), (image(1, 3, 16, 16),)),
    "convnext": lambda: (vision.ConvNeXtBlock(16), (image(2, 16, 12, 12),)),
    "mixer": lambda: (vision.Mixer(16, 24), (image(2, 16, 24),)),
    "vit": lambda: (vision.Vit(), (image(2, 3, 32, 32),)),
    "yolo": lambda: (vision.Yolo(8), (image(1, 3, 32, 32),)),
    "dcgan": lambda: (vision.Generator(8, 8), (image(2, 8, 1, 1),)),
    "llama": lambda: (sequence.Llama(), (image(2, 9, 32),)),
    "seq2seq": lambda: (sequence.Seq2Seq(), (ids(40, 2, 6), ids(40, 2, 5))),
    "tcn": lambda: (sequence.Tcn(), (image(2, 16, 20),)),
    "vae": lambda: (sequence.Vae(), (image(3, 64), image(3, 8))),
    "wide_deep": lambda: (sequence.WideDeep(), (ids(50, 4, 6),)),
    "graph_attention": lambda: (sequence.GraphAttention(), (image(7, 8), image(7, 7))),
    "lstm": lambda: (sequence.Lstm(), (ids(50, 3, 7),)),
    "mixture_of_experts": lambda: (sequence.MixtureOfExperts(), (image(6, 16),)),
}


@pytest.fixture(params=sorted(NETWORKS))
def network(request: pytest.FixtureRequest) -> tuple[nn.Cell, tuple[Tensor, ...]]:
    """A network with reproducible weights and its inputs."""
    ms.set_seed(1)
    return NETWORKS[request.param]()


def close(got: Any, want: Any, tolerance: float = 2e-4) -> None:
    """Compares relative to the largest element."""
    scale = max(1.0, float(np.abs(want).max()))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


def test_eager_compiled_and_exported_agree(network: Any, tmp_path: Path) -> None:
    net, inputs = network
    eager = net(*inputs).asnumpy()
    close(ms.jit(net)(*inputs).asnumpy(), eager)
    path = tmp_path / "net.onnx"
    ms.export(net, *inputs, file_name=str(path), file_format="ONNX")
    session = onnxruntime.InferenceSession(path)
    feed = {i.name: x.asnumpy() for i, x in zip(session.get_inputs(), inputs)}
    close(session.run(None, feed)[0], eager)  # pyright: ignore


def test_gradients_agree(network: Any) -> None:
    net, inputs = network
    net.set_train()
    for _, cell in net.cells_and_names():
        if isinstance(cell, nn.Dropout):
            cell.set_train(False)
    weights = net.trainable_params()
    step = ms.value_and_grad(lambda *x: (net(*x) ** 2).mean(), None, weights)
    before = [p.asnumpy().copy() for p in net.get_parameters()]
    value, gradients = step(*inputs)
    for p, old in zip(net.get_parameters(), before):
        p.set_data(Tensor(old))  # batch norm moved its statistics
    compiled_value, compiled = ms.jit(step)(*inputs)
    close(compiled_value.asnumpy(), value.asnumpy())
    for p, got, want in zip(weights, compiled, gradients):
        try:
            close(got.asnumpy(), want.asnumpy(), 1e-3)
        except AssertionError as e:
            raise AssertionError(f"gradient of {p.name}: {e}") from None
