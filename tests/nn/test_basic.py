"""Dense, embedding, dropout, reshaping and arithmetic layers against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.nn.helpers import close, rand, t
from tvmgraph import Tensor, nn, ops
from tvmgraph.common import set_seed
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError


def parameters(net: nn.Cell) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(path, p.shape, p.requires_grad) for path, p in net.parameters_and_names()]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 5, 3), (0, 3)])
def test_dense(shape: tuple[int, ...]) -> None:
    net = nn.Dense(3, 4)
    x = rand(*shape)
    close(net(Tensor(x)), x @ net.weight.asnumpy().T + net.bias.asnumpy())


def test_dense_parameters_and_defaults() -> None:
    set_seed(0)
    net = nn.Dense(400, 300)
    assert parameters(net) == [("weight", (300, 400), True), ("bias", (300,), True)]
    bound = 1 / math.sqrt(400)
    for p in net.get_parameters():
        assert 0.98 * bound < np.abs(p.asnumpy()).max() <= bound
    assert nn.Dense(2, 3, has_bias=False).bias is None
    ones = nn.Dense(2, 1, "ones", "zeros")
    close(ones(Tensor([[1.0, 2.0]])), [[3.0]])
    given = nn.Dense(2, 1, Tensor([[1.0, 2.0]]), Tensor([3.0]), activation=nn.ReLU())
    close(given(Tensor([[1.0, -4.0]])), [[0.0]])


def test_dense_prints_its_arguments() -> None:
    assert repr(nn.Dense(3, 4, has_bias=False)) == "Dense(input_channels=3, output_channels=4)"
    assert repr(nn.Dense(3, 4, activation="relu")) == (
        "Dense(\n"
        "  input_channels=3, output_channels=4, has_bias=True, activation=ReLU()\n"
        "  (activation): ReLU()\n"
        ")"
    )
    assert repr(nn.Linear(2, 3)) == "Linear(input_features=2, output_features=3, has_bias=True)"
    assert repr(nn.Dropout()) == "Dropout(keep_prob=0.5)"
    assert repr(nn.Dropout(p=0.3)) == "Dropout(p=0.3)"


def test_to_float_computes_in_half_precision() -> None:
    net = nn.Dense(3, 4).to_float(ms.float16)
    y = net(t(2, 3))
    assert y.dtype is ms.float16
    assert net.weight.dtype is ms.float32
    expected = rand(2, 3) @ net.weight.asnumpy().T + net.bias.asnumpy()
    close(y.asnumpy().astype(np.float32), expected, rtol=1e-2, atol=1e-3)


def test_an_activation_is_a_cell_or_an_operator() -> None:
    for activation in ("relu", nn.ReLU(), ops.ReLU()):
        net = nn.Dense(2, 1, Tensor([[1.0, 2.0]]), activation=activation)
        assert net(Tensor([[1.0, -3.0]])).item() == 0.0


def test_flags_choose_what_a_cell_computes_in() -> None:
    net = nn.SequentialCell(nn.Dense(3, 4), nn.Dense(4, 2)).add_flags_recursive(fp16=True)
    assert net(t(2, 3)).dtype is ms.float16 and net[0].weight.dtype is ms.float32
    assert net.get_flags()["fp16"]
    net[1].add_flags(fp16=False, fp32=True)
    assert net(t(2, 3)).dtype is ms.float32


def test_linear_and_bidense() -> None:
    net = nn.Linear(3, 4, bias=False)
    close(net(t(2, 3)), rand(2, 3) @ net.weight.asnumpy().T)
    bi = nn.BiDense(2, 3, 4)
    assert parameters(bi) == [("weight", (4, 2, 3), True), ("bias", (4,), True)]
    a, b = rand(5, 6, 2), rand(5, 6, 3, seed=1)
    expected = np.einsum("xyi,oij,xyj->xyo", a, bi.weight.asnumpy(), b) + bi.bias.asnumpy()
    close(bi(Tensor(a), Tensor(b)), expected, rtol=1e-4)


def test_flatten_and_unflatten() -> None:
    x = rand(2, 3, 4, 5)
    close(nn.Flatten()(Tensor(x)), x.reshape(2, 60))
    close(nn.Flatten(1, 2)(Tensor(x)), x.reshape(2, 12, 5))
    close(nn.Unflatten(-1, (5, -1))(Tensor(x)), x.reshape(2, 3, 4, 5, 1))
    assert nn.Identity(1, a=2)(x) is x


def test_embedding() -> None:
    ids = np.array([[0, 4], [1, -1]], np.int32)
    net = nn.Embedding(5, 3, padding_idx=4)
    assert parameters(net) == [("embedding_table", (5, 3), True)]
    table = net.embedding_table.asnumpy()
    np.testing.assert_array_equal(table[4], 0)
    close(net(Tensor(ids)), table[ids])
    hot = nn.Embedding(5, 3, True, Tensor(table))
    close(hot(Tensor(ids.clip(0))), table[ids.clip(0)])
    with pytest.raises(OutOfRangeError):
        net(Tensor(np.array([7], np.int32)))
    set_seed(0)
    assert nn.Embedding(500, 40).embedding_table.asnumpy().std() == pytest.approx(0.01, rel=0.02)


def test_embedding_lookup_limits_the_norm() -> None:
    net = nn.EmbeddingLookup(3, 2, "ones", max_norm=1.0)
    close(net(Tensor(np.array([0, 2]))), np.full((2, 2), math.sqrt(0.5)))


def test_one_hot() -> None:
    ids = Tensor(np.array([0, 2], np.int32))
    close(nn.OneHot(depth=3)(ids), np.eye(3)[[0, 2]])
    wide = nn.OneHot(0, 3, 5.0, -1.0, ms.float64)(ids)
    assert wide.dtype is ms.float64
    close(wide, np.array([[5, -1], [-1, -1], [-1, 5]]))


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Dense(3, 2, has_bias=False), (1, 3)),
        (lambda: nn.Conv1d(3, 2, 1), (1, 3, 4)),
        (lambda: nn.Conv2d(3, 2, 1), (1, 3, 4, 4)),
        (lambda: nn.Conv2dTranspose(3, 2, 1), (1, 3, 4, 4)),
    ],
)
def test_a_bias_counts_with_has_bias(layer: Callable[[], Any], shape: tuple[int, ...]) -> None:
    net = layer()
    x = Tensor(rand(*shape))
    compiled, plain = ms.jit(net), net(x).asnumpy()
    net.bias = ms.Parameter(Tensor(np.full(2, 3, np.float32)), name="b")
    close(net(x), plain)
    close(compiled(x), plain)
    net.has_bias = True
    close(net(x), plain + 3)
    close(compiled(x), plain + 3)


@pytest.mark.parametrize(("kwargs", "rate"), [({"p": 0.2}, 0.2), ({"keep_prob": 0.3}, 0.7)])
def test_dropout(kwargs: dict[str, float], rate: float) -> None:
    set_seed(0)
    net = nn.Dropout(**kwargs)
    x = Tensor(np.ones(20000, np.float32))
    assert net(x) is x
    y = net.set_train()(x).asnumpy()
    kept = np.float32(1 / (1 - rate))
    assert set(np.unique(y)) == {0, kept}
    assert (y == 0).mean() == pytest.approx(rate, abs=0.01)
    assert not np.array_equal(y, net(x).asnumpy())  # the next draw
    set_seed(0)
    np.testing.assert_array_equal(y, net(x).asnumpy())


@pytest.mark.parametrize("attribute", [{"p": 0.0}, {"keep_prob": 1.0}])
def test_dropout_is_switched_off_by_its_attributes(attribute: dict[str, float]) -> None:
    net = nn.Dropout(p=0.5).set_train()
    compiled = ms.jit(net)
    x = Tensor(np.ones(1000, np.float32))
    assert (compiled(x).asnumpy() == 0).any()
    for name, value in attribute.items():
        setattr(net, name, value)
    assert net(x) is x
    np.testing.assert_array_equal(compiled(x).asnumpy(), x.asnumpy())


@pytest.mark.parametrize(
    ("layer", "shape"),
    [(nn.Dropout1d, (8, 50, 3)), (nn.Dropout2d, (8, 50, 2, 2)), (nn.Dropout3d, (8, 50, 2, 1, 2))],
)
def test_channel_dropout(layer: Any, shape: tuple[int, ...]) -> None:
    set_seed(0)
    x = Tensor(np.ones(shape, np.float32))
    y = layer(0.25).set_train()(x).asnumpy().reshape(400, -1)
    assert (y == y[:, :1]).all()  # whole channels
    assert (y[:, 0] == 0).mean() == pytest.approx(0.25, abs=0.07)
    np.testing.assert_allclose(y.max(), 1 / 0.75, rtol=1e-6)
    assert layer(0.25)(x) is x


def test_arithmetic_layers() -> None:
    x = rand(3, 4)
    close(nn.Norm()(Tensor(x)), np.sqrt((x * x).sum()))
    close(nn.Norm(1, True)(Tensor(x)), np.sqrt((x * x).sum(1, keepdims=True)))
    norm = np.sqrt((x * x).sum())
    close(nn.ClipByNorm()(Tensor(x), Tensor([0.5])), x * 0.5 / norm)
    close(nn.ClipByNorm()(Tensor(x), 100.0), x)
    close(nn.L1Regularizer(0.5)(Tensor(x)), 0.5 * abs(x).sum())
    assert nn.L1Regularizer(0.5)(Tensor(x, ms.float16)).dtype is ms.float32
    close(nn.ReduceLogSumExp(1)(Tensor(x)), np.log(np.exp(x).sum(1)))
    close(nn.ReduceLogSumExp(())(Tensor(x)), np.log(np.exp(x).sum()))
    mean, variance = nn.Moments(0, True)(Tensor(x))
    close(mean, x.mean(0, keepdims=True))
    close(variance, x.var(0, keepdims=True))
    close(nn.Tril()(Tensor(x), -1), np.tril(x, -1))
    close(nn.Triu()(Tensor(x), 1), np.triu(x, 1))
    close(nn.Roll((1, -2), (0, 1))(Tensor(x)), np.roll(x, (1, -2), (0, 1)))
    np.testing.assert_array_equal(nn.Range(5)().asnumpy(), np.arange(5, dtype=np.int32))
    close(nn.Range(1, 2, 0.25)(), np.arange(1, 2, 0.25))


def test_call_errors_name_the_layer_and_the_line() -> None:
    with pytest.raises(ShapeError) as e:
        nn.Dense(3, 4)(t(2, 5))
    text = str(e.value)
    assert text.startswith("Dense: the last axis must have in_channels=3 elements, not 5")
    assert "got: x=float32[2,5]" in text
    assert "at:  test_basic.py:" in text
    assert "fix:" in text


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.Dense(0, 2), ArgumentError, "in_channels must be at least 1, not 0"),
        (lambda: nn.Dense(3, 2.5), DTypeError, "out_channels must be an int, not float"),
        (lambda: nn.Dense(True, 2), DTypeError, "in_channels must be an int, not bool"),
        (lambda: nn.Dense(3, 2, has_bias=1), DTypeError, "has_bias must be a bool"),
        (lambda: nn.Dense(3, 2, Tensor([[1.0]])), ShapeError, "Dense: weight: the given tensor"),
        (lambda: nn.Dense(3, 2, "foo"), ArgumentError, "Dense: weight: there is no initializer"),
        (lambda: nn.Dense(3, 2, activation=3), DTypeError, "a name or a Cell"),
        (lambda: nn.Dense(3, 2, dtype=ms.int32), DTypeError, "a float type, not int32"),
        (lambda: nn.Linear(3, 0), ArgumentError, "out_features must be at least 1"),
        (lambda: nn.BiDense(3, 2, 1)(t(2, 3), t(2, 3)), ShapeError, "in2_channels=2"),
        (lambda: nn.Flatten("a"), DTypeError, "start_dim must be an int"),
        (lambda: nn.Unflatten(0, 3), DTypeError, "tuple of ints"),
        (lambda: nn.Unflatten(2, (1,))(t(2)), ArgumentError, "axis 2 is out of range"),
        (lambda: nn.Dropout(p=1.0), ArgumentError, "p must be in [0, 1), not 1.0"),
        (lambda: nn.Dropout(p="a"), DTypeError, "p must be a number"),
        (lambda: nn.Dropout(keep_prob=0.0), ArgumentError, "keep_prob must be in (0, 1]"),
        (lambda: nn.Dropout2d(2.0), ArgumentError, "p must be in [0, 1]"),
        (lambda: nn.Dropout2d().set_train()(t(2)), ShapeError, "4 axes, not 1"),
        (lambda: nn.Embedding(0, 3), ArgumentError, "vocab_size"),
        (lambda: nn.Embedding(3, 2, padding_idx=5), ArgumentError, "below vocab_size=3"),
        (lambda: nn.Embedding(3, 2)(t(2)), DTypeError, "integer tensor"),
        (lambda: nn.EmbeddingLookup(3, 2, target="GPU"), ArgumentError, "'DEVICE'"),
        (lambda: nn.L1Regularizer(0.0), ArgumentError, "scale must be in (0, inf)"),
        (lambda: nn.Norm("a"), DTypeError, "axis must be"),
        (lambda: nn.Roll((1, 2), 0), ArgumentError, "one shift per axis"),
        (lambda: nn.Range(1, 2, 0), ArgumentError, "delta must not be 0"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_basic.py" in str(e.value)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_layer_names_what_it_cannot_work_with_in_both_modes(mode: int) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        with pytest.raises(DTypeError) as e:
            nn.L1Regularizer(0.1)(2)
    finally:
        ms.set_context(mode=before)
    assert "L1Regularizer: cannot work with these arguments" in str(e.value)
    assert "weights=2" in str(e.value)
    assert "test_basic.py" in str(e.value)


def test_comm_fusion_is_set_for_trainable_parameters() -> None:
    net = nn.SequentialCell(nn.Dense(2, 3), nn.BatchNorm1d(3))
    assert net.set_comm_fusion(4) is net
    assert {p.name: p.comm_fusion for p in net.get_parameters()} == {
        "0.weight": 4, "0.bias": 4, "1.gamma": 4, "1.beta": 4,
        "1.moving_mean": 1, "1.moving_variance": 1,
    }  # fmt: skip
    net.set_comm_fusion(5, recurse=False)
    assert next(net.get_parameters()).comm_fusion == 4
    with pytest.raises(ArgumentError, match="must be an int of at least 0"):
        net.set_comm_fusion(-1)
