"""First calls that eager operators answer while compiled code is made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Parameter, Tensor, jit, nn, ops
from tvmgraph.errors import CompileError
from tvmgraph.jit import tiered

TIERED = JitConfig(options={"tiered": True})


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Nothing is compiled before it is set."""
    opened, real = threading.Event(), tiered.CompiledGraph

    def late(*args: object) -> object:
        assert opened.wait(60)
        return real(*args)  # pyright: ignore

    with mock.patch.object(tiered, "CompiledGraph", late):
        yield opened
        opened.set()


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(8, 4)
        self.calls = Parameter(Tensor(0.0), requires_grad=False)

    def construct(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        return ops.dropout(ops.tanh(self.dense(x)), 0.5, True, 7).sum()


def test_both_tiers_give_the_same(gate: threading.Event) -> None:
    net = Net()
    x = Tensor(np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8))
    expected = net(x).asnumpy()
    fast = jit(net, jit_config=TIERED)
    for _ in range(2):
        np.testing.assert_allclose(fast(x).asnumpy(), expected, rtol=1e-5)
    assert "eager operators, until" in str(fast.explain())
    gate.set()
    assert fast.kernels()
    np.testing.assert_allclose(fast(x).asnumpy(), expected, rtol=1e-5)
    assert "after 2 call(s) in eager operators" in str(fast.explain())
    assert fast.compile_count == 1
    assert net.calls.asnumpy() == 4


def test_training_steps_of_both_tiers(gate: threading.Event) -> None:
    losses = []
    for config in (None, TIERED):
        ms.set_seed(3)
        net = nn.Dense(6, 2)
        optimizer = nn.Adam(net.trainable_params(), 0.1)
        step = ms.value_and_grad(lambda x, n=net: (n(x) ** 2).mean(), None, optimizer.parameters)

        def train(x: Tensor, step=step, optimizer=optimizer) -> Tensor:
            loss, gradients = step(x)
            optimizer(gradients)
            return loss

        run = jit(train, jit_config=config)
        x = Tensor(np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6))
        found = [float(run(x)) for _ in range(3)]
        gate.set()
        run.kernels()
        losses.append([*found, *(float(run(x)) for _ in range(3))])
        gate.clear()
    gate.set()
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_gradients_around_the_first_tier(gate: threading.Event) -> None:
    x = Tensor(np.linspace(-1, 1, 5, dtype=np.float32))
    fast = jit(lambda x: ops.sin(x) * x, jit_config=TIERED)
    found = [ms.grad(lambda x: fast(x).sum())(x).asnumpy() for _ in range(2)]
    gate.set()
    fast.kernels()
    found.append(ms.grad(lambda x: fast(x).sum())(x).asnumpy())
    for g in found:
        np.testing.assert_allclose(
            g, np.cos(x.asnumpy()) * x.asnumpy() + np.sin(x.asnumpy()), rtol=1e-5
        )


def test_what_fails_to_compile_fails_in_the_next_call() -> None:
    refused = CompileError("no code", op="jit")
    with mock.patch.object(tiered, "CompiledGraph", side_effect=refused):
        fast = jit(lambda x: x * 3, jit_config=TIERED)
        x = ops.ones(3)
        with pytest.raises(CompileError, match="no code"):
            for _ in range(1000):
                fast(x)
