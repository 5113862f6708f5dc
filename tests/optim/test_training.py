"""Whole training steps: one graph, no recompile, eager and compiled alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops, value_and_grad
from tvmgraph.data import load_digits
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError


def digits(count: int, size: int) -> list[tuple[Tensor, Tensor]]:
    images, labels = load_digits()
    x = (images[:, None].astype(np.float32) - 8) / 8
    return [
        (Tensor(x[i * size : (i + 1) * size]), Tensor(labels[i * size : (i + 1) * size]))
        for i in range(count)
    ]


def make_net(seed: int = 0) -> nn.Cell:
    ms.set_seed(seed)
    net = nn.SequentialCell(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        nn.Dropout(p=0.2), nn.Dense(64, 10),
    )  # fmt: skip
    return net.set_train()


def run(
    optimizer: Any, compiled: bool, steps: int, seed: int = 0
) -> tuple[list[float], nn.Cell, Any]:
    net = make_net(seed)
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer(net))
    step = jit(cell) if compiled else cell
    batches = digits(10, 16)
    return [step(*batches[i % 10]).item() for i in range(steps)], net, step


def momentum(net: nn.Cell) -> Any:
    return nn.Momentum(net.trainable_params(), 0.02, 0.9, weight_decay=1e-4)


def test_eager_and_compiled_agree_over_50_steps() -> None:
    eager, net, _ = run(momentum, False, 50)
    compiled, other, step = run(momentum, True, 50)
    np.testing.assert_allclose(compiled, eager, rtol=1e-5, atol=1e-5)
    for a, b in zip(net.get_parameters(), other.get_parameters()):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)
    assert step.compile_count == 1
    assert eager[-1] < 0.7 * eager[0]
    assert not np.array_equal(net[1].moving_mean.asnumpy(), np.zeros(4))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_one_seed_gives_identical_bits(compiled: bool) -> None:
    first, net, _ = run(lambda n: nn.Adam(n.trainable_params(), 0.01), compiled, 10)
    again, other, _ = run(lambda n: nn.Adam(n.trainable_params(), 0.01), compiled, 10)
    assert first == again
    for a, b in zip(net.get_parameters(), other.get_parameters()):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_a_step_is_one_graph_and_follows_the_learning_rate() -> None:
    net = make_net()
    optimizer = momentum(net)
    loss_fn = nn.CrossEntropyLoss()
    gradient = value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

    @jit
    def train_step(x: Tensor, y: Tensor) -> Tensor:
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    x, y = digits(1, 16)[0]
    train_step(x, y)
    graph = train_step.graph()
    written = set(graph.writes)
    assert {p.name for p in net.trainable_params()} <= written
    assert {p.name for p in optimizer.moments} <= written
    assert {"1.moving_mean", "1.moving_variance", "global_step"} <= written
    before = net[6].weight.asnumpy().copy()
    optimizer.learning_rate.set_data(Tensor(0.0))
    train_step(x, y)
    np.testing.assert_array_equal(net[6].weight.asnumpy(), before)
    optimizer.set_lr(0.5)
    train_step(x, y)
    assert not np.array_equal(net[6].weight.asnumpy(), before)
    assert train_step.compile_count == 1
    assert int(optimizer.global_step.asnumpy()[0]) == 3


def quadratic(make: Any, steps: int, compiled: bool = False) -> np.ndarray:
    p = Parameter(Tensor([1.0, -2.0]), name="p")
    optimizer = make([p])
    call = jit(optimizer) if compiled else optimizer
    values = []
    for _ in range(steps):
        call((p.value() * 1.0,))
        values.append(p.asnumpy().copy())
    return np.array(values)


SCHEDULES = {
    "list": ([0.1, 0.2], [0.1, 0.2, 0.2]),
    "tensor": (Tensor([0.1, 0.2]), [0.1, 0.2, 0.2]),
    "exponential": (nn.ExponentialDecayLR(0.1, 0.5, 1), [0.1, 0.05, 0.025]),
    "warm-up": (nn.WarmUpLR(0.1, 2), [0.0, 0.05, 0.1]),
    "cosine": (nn.CosineDecayLR(0.0, 0.1, 2), [0.1, 0.05, 0.0]),
    "polynomial": (nn.PolynomialDecayLR(0.1, 0.0, 2, 1.0), [0.1, 0.05, 0.0]),
    "growing polynomial": (nn.PolynomialDecayLR(0.1, 0.0, 2, 1.0, True), [0.1, 0.05, 0.0]),
    "inverse": (nn.InverseDecayLR(0.1, 1.0, 1), [0.1, 0.05, 0.1 / 3]),
    "natural": (nn.NaturalExpDecayLR(0.1, 1.0, 1), [0.1, 0.1 / np.e, 0.1 / np.e**2]),
    "stairs": (nn.ExponentialDecayLR(0.1, 0.5, 2, True), [0.1, 0.1, 0.05]),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str, compiled: bool) -> None:
    rate, expected = SCHEDULES[name]
    found = quadratic(lambda p: nn.SGD(p, rate), 3, compiled)
    np.testing.assert_allclose(found[:, 0], np.cumprod(1 - np.array(expected)), rtol=1e-5)


def test_lists_of_rates() -> None:
    np.testing.assert_allclose(
        nn.piecewise_constant_lr([2, 4], [0.1, 0.01]), [0.1, 0.1, 0.01, 0.01]
    )
    np.testing.assert_allclose(nn.cosine_decay_lr(0.01, 1.0, 4, 2, 2), [1, 1, 0.505, 0.505])
    np.testing.assert_allclose(nn.exponential_decay_lr(0.1, 0.9, 4, 2, 1), [0.1, 0.1, 0.09, 0.09])
    np.testing.assert_allclose(nn.exponential_decay_lr(0.1, 0.9, 4, 2, 2, True), [0.1] * 4)
    natural = nn.natural_exp_decay_lr(0.1, 0.9, 4, 2, 1)
    np.testing.assert_allclose(natural, [0.1, 0.1, 0.040657, 0.040657], rtol=1e-5)
    inverse = nn.inverse_decay_lr(0.1, 0.5, 4, 1, 1)
    np.testing.assert_allclose(inverse, [0.1, 0.066667, 0.05, 0.04], rtol=1e-5)
    np.testing.assert_allclose(nn.warmup_lr(0.1, 4, 2, 2), [0, 0, 0.05, 0.05])
    polynomial = nn.polynomial_decay_lr(0.5, 0.1, 4, 1, 2, 1.0)
    np.testing.assert_allclose(polynomial, [0.5, 0.3, 0.1, 0.1])
    with pytest.raises(ArgumentError, match="increase"):
        nn.piecewise_constant_lr([4, 2], [0.1, 0.01])


def test_rates_of_groups_are_of_one_length() -> None:
    a, b = (Parameter(Tensor([1.0]), name=n) for n in "ab")
    groups = [{"params": [a], "lr": 0.5}, {"params": [b]}]
    optimizer = nn.Momentum(groups, (0.1, 0.2, 0.3), 0.9)
    rates = [lr.learning_rate.asnumpy().tolist() for lr in optimizer.learning_rate]
    np.testing.assert_allclose(rates, [[0.5] * 3, [0.1, 0.2, 0.3]], rtol=1e-6)
    np.testing.assert_allclose(optimizer.get_lr_parameter([b])[0].asnumpy(), [0.1, 0.2, 0.3])
    with pytest.raises(ArgumentError, match="same length"):
        nn.SGD([{"params": [a], "lr": (0.1, 0.2)}, {"params": [b]}], (0.1, 0.2, 0.3))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_groups(compiled: bool) -> None:
    a = Parameter(Tensor([1.0]), name="a")
    start = np.linspace(1.0, 3.0, 16)
    b = Parameter(Tensor([start.astype(np.float32)]), name="b")
    c = Parameter(Tensor([1.0]), name="c.beta")
    groups = [
        {"params": [a], "lr": 0.5},
        {"params": [b, c], "weight_decay": 0.1, "grad_centralization": True},
        {"order_params": [c, b, a]},
    ]
    optimizer = nn.SGD(groups, learning_rate=nn.ExponentialDecayLR(0.1, 0.5, 1))
    assert [p.name for p in optimizer.parameters] == ["c.beta", "b", "a"]
    assert float(optimizer.get_lr_parameter(a)) == 0.5
    step = jit(optimizer) if compiled else optimizer
    for _ in range(2):
        step((Tensor([1.0]), Tensor([start.astype(np.float32)]), Tensor([1.0])))
    np.testing.assert_allclose(a.asnumpy(), [0.0])
    first = 1 - 0.1 * (1 + 0.1)  # weight decay reaches names with beta when groups ask for it
    np.testing.assert_allclose(c.asnumpy(), [first - 0.05 * (1 + 0.1 * first)], rtol=1e-6)
    w = start
    for rate in (0.1, 0.05):
        g = start + 0.1 * w
        w = w - rate * (g - g.mean())
    np.testing.assert_allclose(b.asnumpy()[0], w, rtol=1e-6)


def test_arguments_are_checked() -> None:
    p = Parameter(Tensor([1.0]), name="p")
    for call, kind, text in (
        (lambda: nn.SGD([], 0.1), ArgumentError, "empty"),
        (lambda: nn.SGD([p], -1.0), ArgumentError, "learning_rate"),
        (lambda: nn.SGD([p], "fast"), DTypeError, "learning_rate"),
        (lambda: nn.SGD([p, p], 0.1), ArgumentError, "twice"),
        (lambda: nn.SGD([{"params": [p], "rate": 1}], 0.1), ArgumentError, "rate"),
        (lambda: nn.SGD([p], 0.1, nesterov=True), ArgumentError, "nesterov"),
        (lambda: nn.Adam([p], beta1=1.0), ArgumentError, "beta1"),
        (lambda: nn.SGD([p], 0.1)((Tensor([1.0]), Tensor([1.0]))), ShapeError, "one gradient"),
        (lambda: nn.SGD([p], 0.1)((Tensor([1.0, 2.0]),)), ShapeError, "'p'"),
        (lambda: nn.SGD([p], 0.1)((3,)), DTypeError, "'p'"),
        (lambda: nn.TrainOneStepCell(3, 4), DTypeError, "network"),
    ):
        with pytest.raises(kind, match=text):
            call()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("clip", [False, True], ids=["", "clip"])
@pytest.mark.parametrize("make", [nn.Momentum, nn.AdamWeightDecay], ids=lambda c: c.__name__)
def test_lars_scales_layer_by_layer(make: Any, clip: bool, compiled: bool) -> None:
    w, g, decay = np.array([3.0, -4.0]), np.array([0.6, 0.8]), 0.1
    weight, bias = (Parameter(Tensor(w.astype(np.float32)), name=n) for n in ("w", "bias"))
    args = (0.01, 0.9, decay) if make is nn.Momentum else (0.01, 0.9, 0.999, 1e-6, decay)
    optimizer = nn.LARS(make([weight, bias], *args), 1e-3, 0.02, clip)
    assert float(optimizer.get_lr()) == pytest.approx(0.01)
    assert float(optimizer.get_weight_decay()) == pytest.approx(decay)
    trust = 0.02 * 5 / (1 + decay * 5 + 1e-3)
    trust = min(trust / 0.01, 1) if clip else trust
    twins = [Parameter(Tensor(w.astype(np.float32)), name=n) for n in ("w", "bias")]
    plain = make(twins, 0.01, 0.9)
    plain((Tensor((trust * (g + decay * w)).astype(np.float32)), Tensor(g.astype(np.float32))))
    gradient = Tensor(g.astype(np.float32))
    (jit(optimizer) if compiled else optimizer)((gradient, gradient))
    for found, expected in zip((weight, bias), twins):
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5)
    with pytest.raises(DTypeError, match="optimizer is a list"):
        nn.LARS([weight])


def test_lars_has_the_parameters_of_mindspores() -> None:
    """A checkpoint of one's training step loads into the other's."""
    network = nn.Dense(2, 2)
    optimizer = nn.LARS(nn.Momentum(network.trainable_params(), 0.1, 0.9))
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), optimizer)
    assert list(step.parameters_dict()) == [
        "weight", "bias", "global_step", "fake_lr", "fake_param", "learning_rate", "momentum",
        "moments.weight", "moments.bias",
    ]  # fmt: skip
    assert step.optimizer.learning_rate.name == "fake_lr"


class _Descent(nn.Optimizer):
    """A program's own optimizer, written as for MindSpore."""

    def construct(self, gradients: Any) -> bool:
        gradients = self.scale_grad(self.decay_weight(self.flatten_gradients(gradients)))
        for p, g in zip(self.parameters, gradients):
            ms.ops.assign(p, p - self.get_lr() * g)
        return True


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_lars_takes_optimizers_that_have_a_construct_of_their_own(compiled: bool) -> None:
    gradient, weights = Tensor(np.array([0.6, 0.8], np.float32)), []
    for make in (_Descent, nn.Momentum):
        pair = [Parameter(Tensor([3.0, -4.0]), name=n) for n in ("w", "bias")]
        rest = {"momentum": 0.0} if make is nn.Momentum else {}
        inner = make(learning_rate=0.01, **{"params" if rest else "parameters": pair}, **rest,
                     weight_decay=0.1, loss_scale=4.0)  # fmt: skip
        optimizer = nn.LARS(inner, 1e-3, 0.02)
        step = jit(optimizer) if compiled else optimizer
        for _ in range(2):
            step((gradient, gradient))
        weights.append([p.asnumpy() for p in pair])
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-6)
    assert (weights[0][0] != weights[0][1]).all()  # the bias is not scaled


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_nesterov_momentum_follows_its_formula(compiled: bool) -> None:
    """MindSpore's kernel on the CPU leaves ``use_nesterov`` out."""
    w, velocity, rates = np.array([1.0, -2.0]), 0.0, [0.1, 0.05, 0.02]
    p = Parameter(Tensor(w.astype(np.float32)), name="p")
    group = {"params": [p], "lr": rates}
    optimizer = nn.Momentum([group], rates, 0.9, use_nesterov=True)
    step = jit(optimizer) if compiled else optimizer
    for t, rate in enumerate(rates):
        g = np.array([0.3, 0.1]) * (t + 1)
        step((Tensor(g.astype(np.float32)),))
        velocity = 0.9 * velocity + g
        w = w - rate * (g + 0.9 * velocity)
        np.testing.assert_allclose(p.asnumpy(), w, rtol=1e-6)


def test_lamb_follows_its_formula() -> None:
    w, m, v = np.array([1.0, -2.0]), 0.0, 0.0
    p = Parameter(Tensor(w.astype(np.float32)), name="p")
    optimizer = nn.Lamb([p], 0.1, weight_decay=0.01)
    for t in range(1, 4):
        g = np.array([0.3, 0.1]) * t
        optimizer((Tensor(g.astype(np.float32)),))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.01 * w
        w = w - 0.1 * np.linalg.norm(w) / np.linalg.norm(u) * u
        np.testing.assert_allclose(p.asnumpy(), w, rtol=1e-5)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_clipping(compiled: bool) -> None:
    g = (Tensor([3.0, 0.0]), Tensor([[4.0]]))

    def scaled(a: Tensor, b: Tensor) -> Any:
        return ops.clip_by_global_norm((a, b), 1.0), ops.clip_by_norm([a, b], 1.0, 1.0)

    both, by_one = (jit(scaled) if compiled else scaled)(*g)
    np.testing.assert_allclose(both[0].asnumpy(), [0.6, 0], rtol=1e-6)
    np.testing.assert_allclose(both[1].asnumpy(), [[0.8]], rtol=1e-6)
    np.testing.assert_allclose(by_one[0].asnumpy(), [3 / 7, 0], rtol=1e-5)
    np.testing.assert_allclose(ops.clip_by_global_norm(g, 10.0)[0].asnumpy(), [3, 0])
    with pytest.raises(ArgumentError):
        ops.clip_by_global_norm(g, 0.0)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_an_overflow_skips_the_step_and_lowers_the_scale(compiled: bool) -> None:
    p = nn.Dense(2, 1)
    optimizer = nn.Adam(p.trainable_params(), 0.1)
    scale = nn.DynamicLossScaleUpdateCell(2.0**10, 2, 2)
    cell = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(p, nn.MSELoss()), optimizer, scale)
    step = jit(cell) if compiled else cell
    y = Tensor([[1.0]])
    loss, overflow, used = step(Tensor([[1.0, 2.0]]), y)
    assert not overflow.item() and used.item() == 1024
    before = [q.asnumpy().copy() for q in optimizer.get_parameters()]
    loss, overflow, used = step(Tensor([[np.inf, 2.0]]), y)
    assert overflow.item() and cell.scale_sense.item() == 512
    for old, q in zip(before, optimizer.get_parameters()):
        np.testing.assert_array_equal(old, q.asnumpy())
    for _ in range(2):
        loss, overflow, used = step(Tensor([[1.0, 2.0]]), y)
    assert np.isfinite(loss.item()) and cell.scale_sense.item() == 1024


def test_the_other_cells() -> None:
    net = nn.WithLossCell(nn.Dense(3, 2), nn.MSELoss())
    x, y = ops.ones((4, 3)), ops.ones((4, 2))
    weights = net.trainable_params()
    expected = value_and_grad(net, (0, 1), weights)(x, y)
    loss, (dx, dw) = nn.ForwardValueAndGrad(net, get_all=True, get_by_list=True)(x, y)
    np.testing.assert_array_equal(loss.asnumpy(), expected[0].asnumpy())
    for a, b in zip((*dx, *dw), (*expected[1][0], *expected[1][1])):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    _, first = nn.ForwardValueAndGrad(net, sens_param=True)(x, y, Tensor(2.0))
    np.testing.assert_allclose(first.asnumpy(), 2 * expected[1][0][0].asnumpy(), rtol=1e-6)
    optimizer = nn.SGD(weights, 0.1, loss_scale=4.0)
    loss, named = nn.TrainOneStepCell(net, optimizer, sens=4.0, return_grad=True)(x, y)
    np.testing.assert_allclose(named[weights[0].name].asnumpy(), 4 * dw[0].asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("kind", [nn.AdamWeightDecay, nn.Lamb, nn.Momentum])
def test_a_schedule_of_weight_decay_begins_at_step_0(kind: Any) -> None:
    seen: list[int] = []

    class Schedule(nn.Cell):
        def construct(self, global_step: Tensor) -> Tensor:
            seen.append(int(global_step.asnumpy().item()))
            return Tensor(0.1)

    net = nn.Dense(2, 1)
    more = {"momentum": 0.9} if kind is nn.Momentum else {}
    optimizer = kind(net.trainable_params(), learning_rate=0.1, weight_decay=Schedule(), **more)
    for _ in range(2):
        optimizer(tuple(p * 0 for p in optimizer.parameters))
    assert set(seen) == {0, 1}


@pytest.mark.parametrize("compiled", [False, True])
def test_decay_rates_may_be_tensors_of_one_element(compiled: bool) -> None:
    """MindFormers' AdamWeightDecay sets them so, as MindSpore's own does."""

    class Rates(nn.AdamWeightDecay):
        def __init__(self, params: Any) -> None:
            super().__init__(params, 0.1)
            for name, rate in {"beta1": 0.9, "beta2": 0.999, "eps": 1e-6}.items():
                setattr(self, name, Tensor(np.array([rate], np.float32)))

    results = []
    for kind in (nn.AdamWeightDecay, Rates):
        p = ms.Parameter(Tensor(np.array([[1.0, -2.0]], np.float32)), name="p")
        optimizer = Rates([p]) if kind is Rates else nn.AdamWeightDecay([p], 0.1)
        step = ms.jit(optimizer) if compiled else optimizer
        for _ in range(3):
            step((Tensor(np.array([[0.5, 0.25]], np.float32)),))
        results.append(p.asnumpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)
    assert np.abs(results[0] - [[1.0, -2.0]]).min() > 0.05
