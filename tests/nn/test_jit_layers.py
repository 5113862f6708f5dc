"""Every layer gives the same results, states and gradients compiled as it does eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.nn.helpers import LAYERS, LOSSES, Layer, seeded, set_up
from tvmgraph import Tensor, nn, ops


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in flat(v)]
    return [value.asnumpy()]


def same(actual: Any, expected: Any) -> None:
    for a, e in zip(flat(actual), flat(expected), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("layer", LAYERS + LOSSES, ids=lambda x: x.name)
def test_compiled_is_eager(layer: Layer) -> None:
    eager, compiled = set_up(layer), set_up(layer)
    expected = seeded(3, eager, *layer.inputs())
    fast = ms.jit(compiled)
    same(seeded(3, fast, *layer.inputs()), expected)
    for p, q in zip(compiled.get_parameters(), eager.get_parameters(), strict=True):
        same(p, q)  # running statistics move the same way
    same(seeded(3, fast, *layer.inputs()), seeded(3, eager, *layer.inputs()))  # and go on moving


DIFFERENTIABLE = [
    "Dense", "Conv2d", "Conv2dTranspose", "BatchNorm2d-train", "LayerNorm", "GroupNorm",
    "Embedding", "MaxPool2d", "AvgPool2d", "LSTM", "GRU", "MultiheadAttention",
    "TransformerEncoderLayer", "CrossEntropyLoss", "MSELoss",
]  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_compiled_gradient_is_eager_gradient(name: str) -> None:
    layer = next(x for x in LAYERS + LOSSES if x.name == name)
    net = set_up(layer)
    weights = net.trainable_params()
    inputs = layer.inputs()

    def loss(*args: Tensor) -> Tensor:
        outputs = flat_tensors(net(*args))
        return sum((ops.sum(o * o) for o in outputs[1:]), ops.sum(outputs[0] * outputs[0]))

    position = None if weights else 0
    gradient = ms.grad(loss, position, weights or None)
    expected = gradient(*inputs)
    same(ms.jit(gradient)(*inputs), expected)
    assert any(np.abs(a).max() > 0 for a in flat(expected))


def flat_tensors(value: Any) -> list[Tensor]:
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in flat_tensors(v)]
    return [value]


def test_table_covers_every_layer() -> None:
    """A new layer must be put into the table above."""
    built = {type(x.build()).__name__ for x in LAYERS + LOSSES}
    base = {"Cell", "GraphCell", "CellDict", "CellList", "LossBase"}
    twins = {
        "Dropout1d", "Dropout3d", "ConstantPad2d", "MaxUnpool1d", "MaxUnpool3d",
        "FractionalMaxPool3d", "SampledSoftmaxLoss", "ZeroPad1d", "ZeroPad3d",
        "ReflectionPad3d", "ReplicationPad1d", "BatchNorm2d", "MultilabelMarginLoss",
        "SparseToDense", "SparseTensorDenseMatmul",  # of matrices: tests/compat/test_sparse.py
        # of batches in parts: tests/compat/test_whole_parameters.py
        "GradAccumulationCell", "MicroBatchInterleaved", "PipelineCell",
    }  # fmt: skip
    public = {
        n for n in nn.__all__
        if isinstance(getattr(nn, n), type) and issubclass(getattr(nn, n), nn.Cell)
    }  # fmt: skip
    assert public - built - base - twins == set()
