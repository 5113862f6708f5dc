"""Recurrent layers and cells against a NumPy loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.nn.helpers import close, rand, randomize, t
from tvmgraph import Tensor, nn
from tvmgraph.common import set_seed
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn import recurrent

Arrays = tuple[np.ndarray, ...]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step(mode: str, x: np.ndarray, state: Arrays, w: dict[str, np.ndarray]) -> Arrays:
    """One time step, straight from the definitions."""
    h = state[0]
    a = x @ w["weight_ih"].T + w.get("bias_ih", 0)
    b = h @ w["weight_hh"].T + w.get("bias_hh", 0)
    if mode == "tanh":
        return (np.tanh(a + b),)
    if mode == "relu":
        return (np.maximum(a + b, 0),)
    if mode == "lstm":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    a_r, a_z, a_n = np.split(a, 3, -1)
    b_r, b_z, b_n = np.split(b, 3, -1)
    r, z = sigmoid(a_r + b_r), sigmoid(a_z + b_z)
    return ((1 - z) * np.tanh(a_n + r * b_n) + z * h,)


def reference(net: Any, mode: str, x: np.ndarray, hx: Any = None, lengths: Any = None) -> Any:
    """The whole layer: time first; a sequence stops at its length."""
    weights = {path: p.asnumpy() for path, p in net.parameters_and_names()}
    ways = 2 if net.bidirectional else 1
    count = 2 if mode == "lstm" else 1
    steps, batch = x.shape[:2]
    lengths = [steps] * batch if lengths is None else lengths
    last: list[Arrays] = []
    for layer in range(net.num_layers):
        outputs = np.zeros((steps, batch, ways * net.hidden_size), np.float64)
        for way in range(ways):
            suffix = f"_l{layer}" + "_reverse" * way
            w = {k[: -len(suffix)]: v for k, v in weights.items() if k.endswith(suffix)}
            ends = [np.zeros((batch, net.hidden_size)) for _ in range(count)]
            for n in range(batch):
                index = layer * ways + way
                state: Arrays = tuple(np.zeros(net.hidden_size) for _ in range(count))
                if hx is not None:
                    state = tuple(s[index, n] for s in hx)
                order = range(lengths[n])
                for i in reversed(order) if way else order:
                    state = step(mode, x[i, n], state, w)
                    outputs[i, n, way * net.hidden_size : (way + 1) * net.hidden_size] = state[0]
                for end, s in zip(ends, state):
                    end[n] = s
            last.append(tuple(ends))
        x = outputs
    states = tuple(np.stack(s) for s in zip(*last))
    return x, states


BUILD = {
    "tanh": lambda **k: nn.RNN(3, 4, **k),
    "relu": lambda **k: nn.RNN(3, 4, nonlinearity="relu", **k),
    "lstm": lambda **k: nn.LSTM(3, 4, **k),
    "gru": lambda **k: nn.GRU(3, 4, **k),
}
OPTIONS: list[dict[str, Any]] = [
    {}, {"has_bias": False}, {"num_layers": 2}, {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True},
]  # fmt: skip


def compare(actual: Any, expected: Any) -> None:
    y, states = actual
    states = states if isinstance(states, tuple) else (states,)
    close(y, expected[0], rtol=1e-4, atol=1e-5)
    for s, e in zip(states, expected[1], strict=True):
        close(s, e, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", BUILD)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sequences(mode: str, options: dict[str, Any]) -> None:
    net = randomize(BUILD[mode](**options))
    x = rand(5, 2, 3)
    compare(net(Tensor(x)), reference(net, mode, x))


@pytest.mark.parametrize("mode", BUILD)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_lengths_and_initial_state(mode: str, bidirectional: bool) -> None:
    net = randomize(BUILD[mode](num_layers=2, bidirectional=bidirectional))
    x = rand(4, 3, 3)
    count = 2 if mode == "lstm" else 1
    first = tuple(rand(4 if bidirectional else 2, 3, 4, seed=i) for i in range(count))
    hx = tuple(Tensor(s) for s in first)
    lengths = [4, 1, 3]
    actual = net(Tensor(x), hx if count == 2 else hx[0], Tensor(np.array(lengths, np.int32)))
    compare(actual, reference(net, mode, x, first, lengths))


@pytest.mark.parametrize("mode", BUILD)
def test_lengths_end_with_the_tensor(mode: str) -> None:
    net, x = randomize(BUILD[mode](bidirectional=True)), rand(4, 3, 3)
    actual = net(Tensor(x), None, Tensor(np.array([9, -1, 3], np.int32)))
    compare(actual, reference(net, mode, x, None, [4, 0, 3]))


@pytest.mark.parametrize("mode", ["relu", "lstm", "gru"])
def test_derivatives_end_with_the_sequences(mode: str) -> None:
    """A compiled batch gives what its sequences give one by one; what pads them does not matter."""
    net = randomize(BUILD[mode](bidirectional=True))
    x, weight = rand(5, 3, 3), rand(5, 3, 8)
    lengths, hx = [5, 0, 3], [rand(2, 3, 4, seed=i) for i in range(2 if mode == "lstm" else 1)]

    def loss(x: Tensor, weight: Tensor, lengths: Any, *first: Tensor) -> Tensor:
        y, states = net(x, first if mode == "lstm" else first[0], lengths)
        states = states if isinstance(states, tuple) else (states,)
        return (y * weight).sum() + sum((s * s).sum() for s in states)

    parameters = net.trainable_params()
    gradient = ms.value_and_grad(loss, (0, 3), parameters)
    padded = x.copy()
    for n, length in enumerate(lengths):
        padded[length:, n] = 1e9
    given = map(Tensor, (padded, weight, np.array(lengths, np.int32), *hx))
    value, ((by_x, by_first), by_weights) = ms.jit(gradient)(*given)
    total, sums = 0.0, [np.zeros(p.shape) for p in parameters]
    for n, length in enumerate(lengths):
        first = [Tensor(s[:, n : n + 1]) for s in hx]
        if length == 0:  # the first states are the last ones
            total += sum(float((s * s).sum()) for s in first)
            close(by_first[:, n : n + 1], 2 * first[0].asnumpy())
            continue
        one = [Tensor(a[:length, n : n + 1]) for a in (x, weight)]
        alone, ((a, b), more) = gradient(*one, None, *first)
        total += float(alone)
        close(by_x[:length, n : n + 1], a.asnumpy(), rtol=1e-4, atol=1e-5)
        close(by_first[:, n : n + 1], b.asnumpy(), rtol=1e-4, atol=1e-5)
        sums = [s + m.asnumpy() for s, m in zip(sums, more, strict=True)]
    assert math.isclose(float(value), total, rel_tol=1e-5)
    for actual, expected in zip(by_weights, sums, strict=True):
        close(actual, expected, rtol=1e-4, atol=1e-4)
    assert all(not by_x.asnumpy()[length:, n].any() for n, length in enumerate(lengths))


@pytest.mark.parametrize("mode", BUILD)
def test_batch_first(mode: str) -> None:
    net = randomize(BUILD[mode](batch_first=True))
    x = rand(2, 5, 3)
    y, states = reference(net, mode, x.transpose(1, 0, 2))
    compare(net(Tensor(x)), (y.transpose(1, 0, 2), states))


def test_parameters_in_order() -> None:
    net = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    suffixes = ("l0", "l0_reverse", "l1", "l1_reverse")
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    names = [path for path, _ in net.parameters_and_names()]
    assert names == [f"{kind}_{s}" for kind in kinds for s in suffixes]
    assert [p.shape for p in net.w_ih_list] == [(16, 3), (16, 3), (16, 8), (16, 8)]
    assert [p.name for p in net.b_hh_list] == [f"bias_hh_{s}" for s in suffixes]
    assert nn.GRU(3, 4, has_bias=False).b_ih_list == []
    assert [p.shape for p in nn.GRU(3, 4).w_hh_list] == [(12, 4)]
    set_seed(0)
    weights = nn.RNN(30, 50).weight_ih_l0.asnumpy()
    assert 0.99 / math.sqrt(50) < np.abs(weights).max() <= 1 / math.sqrt(50)


def test_dropout_between_layers_in_training_only() -> None:
    net = randomize(nn.GRU(3, 4, num_layers=2, dropout=0.5))
    x = rand(5, 2, 3)
    compare(net(Tensor(x)), reference(net, "gru", x))
    set_seed(0)
    y = net.set_train()(Tensor(x))[0].asnumpy()
    assert not np.allclose(y, reference(net, "gru", x)[0])
    assert repr(net) == "GRU(\n  (rnn): _DynamicGRUCPUGPU()\n  (dropout_op): Dropout(p=0.5)\n)"


@pytest.mark.parametrize(
    ("cell", "mode"),
    [
        (lambda: nn.RNNCell(3, 4), "tanh"),
        (lambda: nn.RNNCell(3, 4, nonlinearity="relu"), "relu"),
        (lambda: nn.LSTMCell(3, 4, has_bias=False), "lstm"),
        (lambda: nn.LSTMCell(3, 4), "lstm"),
        (lambda: nn.GRUCell(3, 4), "gru"),
    ],
)
def test_cells(cell: Any, mode: str) -> None:
    net = randomize(cell())
    w = {path: p.asnumpy() for path, p in net.parameters_and_names()}
    x, h, c = rand(2, 3), rand(2, 4, seed=1), rand(2, 4, seed=2)
    if mode == "lstm":
        actual = net(Tensor(x), (Tensor(h), Tensor(c)))
        for a, e in zip(actual, step(mode, x, (h, c), w), strict=True):
            close(a, e, rtol=1e-4)
    else:
        close(net(Tensor(x), Tensor(h)), step(mode, x, (h,), w)[0], rtol=1e-4)


def test_half_precision() -> None:
    net = nn.LSTM(3, 4).to_float(ms.float16)
    y, (h, c) = net(t(5, 2, 3))
    assert {y.dtype, h.dtype, c.dtype} == {ms.float16}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.LSTM(0, 3), ArgumentError, "input_size must be at least 1"),
        (lambda: nn.LSTM(2, 3, num_layers=0), ArgumentError, "num_layers must be at least 1"),
        (lambda: nn.LSTM(2, 3, dropout=1.0), ArgumentError, "dropout must be in [0, 1)"),
        (lambda: nn.LSTM(2, 3, bidirectional=1), DTypeError, "bidirectional must be a bool"),
        (lambda: nn.RNN(2, 3, nonlinearity="foo"), ArgumentError, "'tanh', 'relu'"),
        (lambda: nn.RNNCell(2, 3, nonlinearity="foo"), ArgumentError, "'tanh', 'relu'"),
        (lambda: nn.LSTM(3, 2)(t(2, 3)), ShapeError, "3 axes (time, batch, size), not 2"),
        (lambda: nn.GRU(3, 2)(t(4, 2, 5)), ShapeError, "input_size=3 elements, not 5"),
        (lambda: nn.GRU(3, 2)(t(0, 2, 3)), ShapeError, "at least one time step"),
        (lambda: nn.GRU(3, 2)(t(4, 2, 3), t(1, 2, 3)), ShapeError, "shape (1, 2, 2)"),
        (lambda: nn.LSTM(3, 2)(t(4, 2, 3), t(1, 2, 2)), DTypeError, "a tuple of two tensors"),
        (lambda: nn.GRU(3, 2)(t(4, 2, 3), None, t(2)), ShapeError, "2 integers"),
        (lambda: nn.LSTMCell(3, 2)(t(1, 3), t(1, 2)), DTypeError, "(h, c)"),
        (lambda: nn.GRUCell(3, 2)(t(1, 4), t(1, 2)), ShapeError, "input_size=3"),
        (lambda: nn.GRUCell(3, 2)(t(1, 3), t(2, 2)), ShapeError, "shape (1, 2)"),
        (lambda: nn.GRUCell(3, 2)(t(1, 3)), TypeError, "hx"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_recurrent.py" in str(e.value)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("size", [7, 40])
def test_derivative_of_all_steps_at_once(
    kind: Any, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, batch = 5, 3
    net = kind(4, size, num_layers=2, bidirectional=True)
    net.set_train()
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((steps, batch, 4)).astype(np.float32))
    weights = Tensor(rng.standard_normal((steps, batch, 2 * size)).astype(np.float32))

    def loss(x: Tensor) -> Tensor:
        y, last = net(x)
        last = last if isinstance(last, tuple) else (last,)
        return (y * weights).sum() + sum((s * s).sum() for s in last)

    gradient = ms.value_and_grad(loss, 0, net.trainable_params())
    found_at_once = gradient(x), ms.jit(gradient)(x)
    monkeypatch.setattr(recurrent, "_has_sweep", lambda projected: False)
    _, (dx, dw) = gradient(x)  # step by step
    for found in found_at_once:
        for a, b in zip((found[1][0], *found[1][1]), (dx, *dw)):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_second_derivatives_pass_the_kept_gates(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    net = kind(2, 3, bidirectional=True, dtype=ms.float64)
    net.set_train()
    rng = np.random.default_rng(0)
    x, way = (Tensor(rng.standard_normal((4, 2, 2))) for _ in range(2))

    def slope(x: Tensor) -> Tensor:
        return (ms.grad(lambda x: (net(x)[0] ** 3).sum())(x) * way).sum()

    gradient = ms.grad(slope, 0, net.trainable_params())
    at_once = gradient(x)
    monkeypatch.setattr(recurrent, "_has_sweep", lambda projected: False)
    step_by_step = gradient(x)
    for a, b in zip((at_once[0], *at_once[1]), (step_by_step[0], *step_by_step[1])):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-9, atol=1e-12)


def test_the_derivative_computes_no_gates_again() -> None:
    net = nn.LSTM(4, 8)

    def products(function: Any) -> int:
        compiled = ms.jit(function)
        compiled(Tensor(np.ones((3, 2, 4), np.float32)))
        names = [node.op.name for node in compiled.fused_graph()[0].nodes]
        return sum(name.startswith(("matmul", "dense")) for name in names)

    def loss(x: Tensor) -> Tensor:
        return net(x)[0].sum()

    by_weights = ms.grad(loss, None, [net.weight_hh_l0])
    assert (products(loss), products(by_weights)) == (1, 2)  # of the inputs, and by the weights


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("size", [7, 40])
def test_batches_that_vary_are_one_compile(kind: Any, size: int) -> None:
    net = kind(4, size, bidirectional=True)
    gradient = ms.value_and_grad(lambda x: (net(x)[0] ** 2).sum(), 0, net.trainable_params())
    compiled = ms.jit(gradient, dynamic=1)
    with ms.assert_max_compiles(1):
        for batch in (2, 6, 17, 64):
            x = t(3, batch, 4)
            value, (by_x, by_weights) = compiled(x)
            expected, (dx, dw) = gradient(x)
            for a, b in zip((value, by_x, *by_weights), (expected, dx, *dw), strict=True):
                close(a, b.asnumpy(), rtol=2e-4, atol=1e-4)


@pytest.mark.parametrize("dynamic", [0, 1])
def test_steps_add_no_operators(dynamic: int) -> None:
    net = nn.LSTM(4, 8)

    def operators(steps: int) -> int:
        gradient = ms.value_and_grad(lambda x: net(x)[0].sum(), 0, net.trainable_params())
        compiled = ms.jit(gradient, dynamic=dynamic)
        compiled(Tensor(np.ones((steps, 2, 4), np.float32)))
        return compiled.history[-1].operators

    assert operators(3) == operators(30)
