"""Whole programs whose kernels are fused into groups."""

from __future__ import annotations

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops


class _Block(nn.Cell):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Dense(width, width)

    def construct(self, x: Tensor) -> Tensor:
        return ops.tanh(self.dense(x) + x)


@pytest.mark.slow
def test_no_group_reads_another_that_reads_it() -> None:
    """A step of Burgers' equation: its residual has second derivatives, its loss one more."""
    ms.set_seed(0)
    net = nn.SequentialCell(nn.Dense(2, 16), nn.Tanh(), _Block(16), _Block(16), nn.Dense(16, 1))
    slope = ms.grad(lambda x: net(x).sum())
    curvature = ms.grad(lambda x: slope(x)[:, 0].sum())

    def loss(x: Tensor) -> Tensor:
        d = slope(x)
        y = d[:, 1:2] + net(x) * d[:, 0:1] - 0.01 * curvature(x)[:, 0:1]
        return (y * y).mean() + 0.1 * y.mean()

    params = net.trainable_params()
    optimizer = nn.Momentum(params, 1e-2, 0.9)
    gradients = ms.value_and_grad(loss, None, params)

    @jit
    def step(x: Tensor) -> Tensor:
        value, slopes = gradients(x)
        optimizer(slopes)
        return value

    x = Tensor(np.random.default_rng(0).standard_normal((16, 2)).astype("float32"))
    want = [gradients(x)[0].asnumpy()]
    got = [step(x).asnumpy()]
    want.append(gradients(x)[0].asnumpy())
    got.append(step(x).asnumpy())
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-7)
