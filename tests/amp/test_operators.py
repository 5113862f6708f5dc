"""Mixed precision operator by operator, and networks that are changed in place."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, amp, jit, nn, ops
from tvmgraph.dtypes import DType
from tvmgraph.errors import DTypeError

SHORT, FULL = ms.float16, ms.float32
X = Tensor(np.random.default_rng(0).uniform(0.2, 0.8, (4, 4)).astype(np.float32))
H = X.astype(SHORT)

#: dtypes of the result for operands in float32 and in float16, as MindSpore's
CASES: dict[str, tuple[Callable[[Tensor], Tensor], object, object]] = {
    "matmul": (lambda x: ops.matmul(x, x), SHORT, SHORT),
    "mixed operands": (lambda x: ops.matmul(x, H), SHORT, SHORT),
    "convolution": (lambda x: ops.conv2d(x[None, None], x[None, None]), SHORT, SHORT),
    "prelu": (lambda x: ops.prelu(x, x[0]), SHORT, SHORT),
    "exp": (ops.exp, FULL, FULL),
    "power": (lambda x: x**2, FULL, FULL),
    "sum": (ops.sum, FULL, FULL),
    "softmax": (ops.softmax, FULL, FULL),
    "layer_norm": (lambda x: ops.layer_norm(x, (4,), x[0], x[0]), FULL, FULL),
    "smooth_l1_loss": (lambda x: ops.smooth_l1_loss(x, x), FULL, FULL),
    "bias_add": (lambda x: ops.bias_add(x, H[0]), FULL, SHORT),
    "relu": (ops.relu, FULL, SHORT),
    "mean": (ops.mean, FULL, SHORT),
    "add": (lambda x: x + H, FULL, SHORT),
    "integers": (lambda x: ops.matmul(x.astype(ms.int32), x.astype(ms.int32)), ms.int32, ms.int32),
}


@pytest.mark.parametrize("name", CASES)
def test_operators_choose_their_type(name: str) -> None:
    function, of_full, of_short = CASES[name]
    for given, wanted in ((X, of_full), (H, of_short)):
        eager = amp.auto_mixed_precision(function, "auto")(given)
        compiled = jit(amp.auto_mixed_precision(function, "auto"))(given)
        assert (eager.dtype, compiled.dtype) == (wanted, wanted)
        np.testing.assert_allclose(
            eager.asnumpy().astype(np.float32), compiled.asnumpy().astype(np.float32), rtol=2e-3
        )


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("given", [ms.float32, ms.float16, ms.bfloat16])
def test_recurrent_layers_return_what_they_are_given(
    layer: Callable[[int, int], nn.Cell], given: DType
) -> None:
    ms.set_seed(0)
    x = Tensor(np.random.default_rng(1).normal(size=(3, 2, 4)).astype(np.float32)).astype(given)
    wanted = layer(4, 3)
    for level, short in (("auto", SHORT), ("auto", ms.bfloat16), ("O1", SHORT)):
        net = layer(4, 3)
        ms.load_param_into_net(net, wanted.parameters_dict())
        net = amp.auto_mixed_precision(net, level, short)
        for call in (net, jit(net)):
            y, last = call(x)
            states = last if isinstance(last, tuple) else (last,)
            assert {y.dtype, *(s.dtype for s in states)} == {given}
            np.testing.assert_allclose(
                y.astype(FULL).asnumpy(), wanted(x)[0].astype(FULL).asnumpy(), atol=2e-2
            )


def make_net() -> nn.Cell:
    ms.set_seed(0)
    return nn.SequentialCell(nn.Dense(4, 8, has_bias=False), nn.LayerNorm((8,)), nn.Dense(8, 2))


def gradients(function: Callable[[Tensor], Tensor], net: nn.Cell, compiled: bool) -> list[Tensor]:
    step = ms.value_and_grad(function, None, net.trainable_params())
    value, found = (jit(step) if compiled else step)(X)
    return [value, *found]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_gradients_arrive_in_the_weights_type(compiled: bool) -> None:
    net = make_net()

    def loss(x: Tensor) -> Tensor:
        return ops.square(net(x)).sum()

    exact = gradients(loss, net, compiled)
    found = gradients(amp.auto_mixed_precision(loss, "auto"), net, compiled)
    amp.auto_mixed_precision(net, "auto")
    inside = gradients(loss, net, compiled)
    for e, f, i in zip(exact, found, inside):
        assert f.dtype is i.dtype is FULL
        scale = np.abs(e.asnumpy()).max()
        assert 0 < np.abs(e.asnumpy() - f.asnumpy()).max() < 0.01 * scale
        np.testing.assert_allclose(f.asnumpy(), i.asnumpy(), atol=0.01 * scale)


def test_a_jitted_function_is_compiled_for_the_precision_around_it() -> None:
    product = jit(lambda x: ops.matmul(x, x))
    short = amp.auto_mixed_precision(lambda x: product(x), "auto")
    bfloat = amp.auto_mixed_precision(product, "auto", ms.bfloat16)
    for _ in range(2):
        assert product(X).dtype is FULL
        assert short(X).dtype is SHORT
        assert bfloat(X).dtype is ms.bfloat16


def test_the_type_of_a_cell_counts_more() -> None:
    net = nn.SequentialCell(nn.Dense(4, 4, has_bias=False).to_float(ms.float32))
    assert amp.auto_mixed_precision(net, "auto")(H).dtype is FULL
    assert jit(net)(H).dtype is FULL


def test_recomputed_code_is_computed_in_the_same_types() -> None:
    net = nn.Dense(4, 4, has_bias=False)
    net.recompute()
    function = amp.auto_mixed_precision(lambda x: net(x).sum(), "auto")
    step = ms.value_and_grad(function, None, net.trainable_params())
    (_, (first,)), (_, (second,)) = step(X), jit(step)(X)
    rounded = H.asnumpy().astype(np.float32).sum(0)
    np.testing.assert_allclose(first.asnumpy(), np.tile(rounded, (4, 1)), rtol=1e-3)
    np.testing.assert_allclose(first.asnumpy(), second.asnumpy(), rtol=1e-3)


class OwnWeight(nn.Cell):
    """A product, a sum and normalization, each seen outside."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = ms.Parameter(np.ones((4, 4), np.float32))
        self.norm = nn.BatchNorm1d(4)

    def construct(self, x: Tensor) -> tuple[Tensor, ...]:
        y = ops.matmul(x, self.weight)
        return y, y * self.weight, self.norm(y)


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_the_network_itself_computes_in_the_short_type(level: str) -> None:
    net = OwnWeight()
    returned = amp.auto_mixed_precision(net, level)
    for call in (net, jit(net)):
        assert [y.dtype for y in call(X)] == [SHORT] * 3
    assert [y.dtype for y in returned(X)] == [FULL] * 3
    assert all(p.dtype is FULL for p in returned.get_parameters())
    assert [p.name for p in returned.get_parameters()] == [p.name for p in net.get_parameters()]
    assert returned.weight is net.weight
    with pytest.raises(AttributeError):
        _ = returned.absent


def test_functions_have_the_level_auto_only() -> None:
    for level in ("O0", "O1", "O2", "O3"):
        with pytest.raises(DTypeError, match="must be a Cell"):
            amp.auto_mixed_precision(ops.matmul, level)
    with pytest.raises(DTypeError, match="a Cell or a function"):
        amp.auto_mixed_precision(3, "auto")


class _Counting(nn.Cell):
    def __init__(self, way: int) -> None:
        super().__init__()
        self.seen = ms.Parameter(ops.zeros(3), name="seen", requires_grad=False)
        self.way = way

    def construct(self, x: Tensor) -> Tensor:
        if self.way == 0:
            ops.assign(self.seen, self.seen * 0.5 + x)
        elif self.way == 1:
            ops.assign_add(self.seen, x)
        elif self.way == 2:
            self.seen = self.seen + x
        else:
            self.seen[0] = 1.0
        return x + 1


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("way", range(4))
def test_what_a_cell_in_a_short_type_stores_keeps_its_type(way: int, compiled: bool) -> None:
    net = _Counting(way).to_float(ms.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of code that could not be compiled
        assert (jit(net) if compiled else net)(ops.ones(3)).dtype == ms.float16
    assert net.seen.dtype == ms.float32
    assert net.seen.asnumpy().tolist() == ([1, 0, 0] if way == 3 else [1, 1, 1])


@pytest.mark.parametrize("layer", [nn.BatchNorm2d, nn.InstanceNorm2d])
def test_running_statistics_of_a_compiled_layer_in_a_short_type(layer: type[nn.Cell]) -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((2, 4, 3, 3)), ms.float32)
    moved = []
    for short, call in ((None, lambda n: n), (ms.float16, lambda n: n), (ms.float16, jit)):
        net = layer(4).set_train()
        if short is not None:
            net.to_float(short)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(net)(x)
        moved.append(net.moving_mean.asnumpy())
    np.testing.assert_allclose(moved[1:], [moved[0]] * 2, atol=1e-3)
