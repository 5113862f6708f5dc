"""The watch for NaN and infinities, and the comparison of compiled calls with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.config.flag_registry import active
from tvmgraph.errors import CompileError, ConfigError, NumericsError

LINES = Path(__file__).read_text().splitlines()


def line(text: str) -> str:
    """Returns ``file.py:line`` of the first line that holds a text."""
    return f"test_numerics.py:{next(i for i, t in enumerate(LINES, 1) if text in t)}"


@pytest.fixture(autouse=True)
def fresh_context() -> Iterator[None]:
    yield
    ms.reset_context()


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.SequentialCell(nn.Tanh())

    def construct(self, x: Tensor) -> Tensor:
        return ops.log(self.inner(x)) + 1.0


BAD = Tensor(np.array([[0.5, 1.0], [-2.0, 3.0]], np.float32))


@pytest.mark.parametrize("compiled", [False, True])
def test_node_line_scope_and_operands_are_named(compiled: bool) -> None:
    ms.set_context(check_numerics=True)
    net = jit(Net()) if compiled else Net()
    with pytest.raises(NumericsError) as info:
        net(BAD)
    first, got, at, fix = str(info.value).splitlines()
    assert first == "ops.log: the result holds NaN: 1 of 4 elements, the first at [1, 0]"
    assert "float32[2,2] from -0.9640276 to 0.9950548, there -0.9640276" in got
    assert f"{line('ops.log(self')}   (in Net" in at
    assert "domain" in fix
    ms.set_context(check_numerics=False)
    assert np.isnan(net(BAD).asnumpy()).sum() == 1
    assert not active.watched


def hidden(x: Tensor) -> Tensor:
    return ops.where(x > 0, ops.log(x), 0.0)


def test_values_that_reach_no_result_are_seen_at_level_2() -> None:
    f = jit(hidden)
    with ms.flags(numerics=1):
        f(BAD)
    with ms.flags(numerics=2), pytest.raises(NumericsError, match=r"ops\.log"):
        f(BAD)
    with ms.flags(numerics=1), pytest.raises(NumericsError, match=r"ops\.log"):
        hidden(BAD)


def test_branches_and_loops_are_looked_into() -> None:
    @jit
    def grow(x: Tensor) -> Tensor:
        while x.sum() < 1e30:
            x = ops.exp(x) if x.max() > 100 else x * x
        return x

    with ms.flags(numerics=1), pytest.raises(NumericsError, match=r"ops\.exp.*an infinity") as info:
        grow(Tensor([1.0, 3.0]))
    assert line("if x.max() > 100") in str(info.value)


def test_training_step_stops_before_the_weights_are_spoilt() -> None:
    net = nn.Dense(3, 2)
    optimizer = nn.SGD(net.trainable_params(), 1e25)
    both = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    @jit
    def step(x: Tensor) -> Tensor:
        loss, grads = both(x)
        optimizer(grads)
        return loss

    x = Tensor(np.ones((4, 3), np.float32))
    with ms.flags(numerics=1), pytest.raises(NumericsError, match=line("net(x) ** 2")):
        for _ in range(4):
            step(x)
    assert all(np.isfinite(p.asnumpy()).all() for p in net.get_parameters())


@pytest.mark.parametrize(
    "wanted",
    [
        lambda x: ops.softmax(ops.masked_fill(x, x > 0.7, float("-inf")), -1),
        lambda x: ops.full((2,), float("inf"), dtype=ms.float32) + x,
        lambda x: ops.clamp(x, min=float("-inf")),
        lambda x: ops.argmax(x / 1.0),
    ],
)
def test_infinities_that_were_asked_for_pass(wanted: Callable[[Tensor], Any]) -> None:
    x = Tensor([0.5, 1.0])
    with ms.flags(numerics=2):
        wanted(x), jit(wanted)(x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_every_float(dtype: str) -> None:
    x = Tensor(np.array([0.0, 1.0]), getattr(ms, dtype))
    with ms.flags(numerics=1), pytest.raises(NumericsError, match=r"ops\.real_div"):
        x / (x * 0)


def test_wrong_levels() -> None:
    with pytest.raises(ConfigError, match="False, True, 0, 1 or 2"):
        ms.set_context(check_numerics=3)


# ---- TVMGRAPH_CHECK=3 ---------------------------------------------------------------------------


def inside_branch(x: Tensor) -> Tensor:
    while x.sum() < 10:
        x = ops.exp(x) * 2 if x.max() > 2 else x + 1
    return x


def test_the_node_inside_a_loop_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = jit(inside_branch), Tensor([0.1, 0.2])
    with ms.flags(check=3):
        f(x)
        monkeypatch.setattr(ops.exp.op, "eager", lambda x: np.exp(x) + 0.5)
        with pytest.raises(CompileError, match=r"ops\.exp") as info:
            f(x)
    assert line("if x.max() > 2") in str(info.value)


def test_random_operators_and_steps_agree() -> None:
    net = nn.SequentialCell(nn.Dense(4, 4), nn.Dropout(p=0.5))
    net.set_train()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    both = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)

    @jit
    def step(x: Tensor) -> Tensor:
        loss, grads = both(x)
        optimizer(grads)
        return loss

    with ms.flags(check=3):
        for _ in range(3):
            step(Tensor(np.ones((2, 4), np.float32)))


def test_nan_is_not_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: ops.tanh(x) * 1.5)
    x = Tensor([np.inf, np.nan, 1.0])
    with ms.flags(check=3):
        f(x)
        monkeypatch.setattr(
            ops.tanh.op, "eager", lambda x: np.where(np.isinf(x), np.nan, np.tanh(x))
        )
        with pytest.raises(CompileError, match=r"ops\.tanh"):
            f(x)
