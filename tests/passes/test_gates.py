"""Passes that make later kernels fast: gates, images in blocks, constants computed once."""

from __future__ import annotations

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.machine.processor import cpu_model


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gates_have_no_subnormal_results(dtype: str) -> None:
    x = np.array([-1e30, -1e3, -740, -705, -95, -86, -1, -0.0, 0, 1, 50, 100, 1e30] * 3, dtype)
    gate = ms.jit(lambda x: x * ops.sigmoid(x))
    got = gate(Tensor(x)).asnumpy()
    assert [n.op.name for n in gate.fused_graph()[0].nodes] == ["silu"]
    np.testing.assert_array_equal(got, ms.jit(ops.silu)(Tensor(x)).asnumpy())
    least = np.finfo(x.dtype).tiny
    assert ((got == 0) | (np.abs(got) >= least)).all()
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(got, x / (1 + np.exp(-x)), rtol=1e-6, atol=1e4 * least)


@pytest.mark.parametrize("size", [32, 33])
def test_channels_a_page_apart_are_read_in_blocks(size: int) -> None:
    net = nn.SequentialCell(nn.Conv2d(128, 32, 1), nn.ReLU(), nn.Conv2d(32, 32, 3))
    net.set_train(False)
    x = Tensor(np.random.default_rng(0).standard_normal((1, 128, size, size)).astype(np.float32))
    compiled = ms.jit(net)
    np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-4)
    first = next(n for n in compiled.fused_graph()[0].nodes if n.op.name == "conv_nchwc")
    blocks = size == 32 or cpu_model().has_few_registers
    assert (first.inputs[0].type.ndim == 5) is blocks


def test_large_constants_are_combined_once() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(Tensor(np.ones((64, 64), np.float32)), name="w")

        def construct(self, x: Tensor) -> Tensor:
            places = ops.concat([Tensor(np.arange(4096)), Tensor(np.arange(4096)[::-1].copy())])
            return ops.matmul(x, self.weight) + places.astype(ms.float32).reshape(128, 64)

    compiled, x = ms.jit(Net().set_train(False)), Tensor(np.ones((128, 64), np.float32))
    want = 64 + np.concatenate([np.arange(4096), np.arange(4096)[::-1]]).reshape(128, 64)
    np.testing.assert_allclose(compiled(x).asnumpy(), want)
    assert "concat" not in [n.op.name for n in compiled.fused_graph()[0].nodes]


def test_long_concatenations_start_with_shorter_ones() -> None:
    def dense(x: Tensor) -> Tensor:
        features = [x]
        for i in range(20):
            features.append(ops.tanh(ops.concat(features, 1)).mean(1, keep_dims=True) + i)
        return ops.concat(features, 1)

    x = Tensor(np.random.default_rng(0).standard_normal((2, 3, 40)).astype(np.float32))
    compiled = ms.jit(dense)
    np.testing.assert_allclose(compiled(x).asnumpy(), dense(x).asnumpy(), rtol=1e-5, atol=1e-5)
    nodes = [n for n in compiled.fused_graph()[0].nodes if n.op.name == "concat"]
    assert len(nodes) == 21
    assert max(len(n.inputs) for n in nodes) == 9
