"""Normalisation layers against NumPy, and their running statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.nn.helpers import close, rand, randomize, t
from tvmgraph import Tensor, nn
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

SHAPES = {
    nn.BatchNorm1d: [(5, 3), (5, 3, 4)],
    nn.BatchNorm2d: [(2, 3, 4, 4)],
    nn.BatchNorm3d: [(2, 3, 2, 3, 2)],
    nn.SyncBatchNorm: [(5, 3), (2, 3, 2, 2)],
}
CASES = [(layer, shape) for layer, shapes in SHAPES.items() for shape in shapes]


def column(values: Any, rank: int) -> np.ndarray:
    """Per-channel values, shaped to broadcast along axis 1."""
    array = values.asnumpy() if isinstance(values, Tensor) else np.asarray(values)
    return array.reshape((1, -1, *(1,) * (rank - 2)))


def normalized(x: np.ndarray, axes: Any, eps: float) -> np.ndarray:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(x.var(axes, keepdims=True) + eps)


@pytest.mark.parametrize(("layer", "shape"), CASES)
@pytest.mark.parametrize("train", [False, True])
def test_batch_norm(layer: Any, shape: tuple[int, ...], train: bool) -> None:
    net = randomize(layer(3, eps=1e-3, momentum=0.7)).set_train(train)
    inner = net.bn2d if layer is nn.BatchNorm3d else net
    x, rank = rand(*shape), len(shape)
    gamma, beta = column(inner.gamma, rank), column(inner.beta, rank)
    mean, var = inner.moving_mean.asnumpy(), inner.moving_variance.asnumpy()
    y = net(Tensor(x))
    axes = (0, *range(2, rank))
    if train:
        close(y, normalized(x, axes, 1e-3) * gamma + beta, rtol=1e-4, atol=1e-5)
        mean = 0.7 * mean + 0.3 * x.mean(axes)
        var = 0.7 * var + 0.3 * x.var(axes, ddof=1)
    else:
        plain = (x - column(mean, rank)) / np.sqrt(column(var, rank) + 1e-3)
        close(y, plain * gamma + beta, rtol=1e-4, atol=1e-5)
    close(inner.moving_mean, mean)
    close(inner.moving_variance, var)


def test_use_batch_statistics_overrides_the_mode() -> None:
    x = rand(4, 3)
    always = nn.BatchNorm1d(3, use_batch_statistics=True)
    close(always(Tensor(x)), normalized(x, 0, 1e-5), rtol=1e-4, atol=1e-5)
    assert np.abs(always.moving_mean.asnumpy()).max() > 0
    never = nn.BatchNorm1d(3, use_batch_statistics=False).set_train()
    close(never(Tensor(x)), x / np.sqrt(1 + 1e-5))
    close(never.moving_mean, np.zeros(3))


def test_channels_last() -> None:
    x = rand(2, 4, 4, 3)
    net = nn.BatchNorm2d(3, data_format="NHWC").set_train()
    close(net(Tensor(x)), normalized(x, (0, 1, 2), 1e-5), rtol=1e-4, atol=1e-5)


def test_batch_norm_parameters_in_order() -> None:
    net = nn.SequentialCell(nn.BatchNorm2d(3))
    assert [(p.name, p.requires_grad) for p in net.get_parameters()] == [
        ("0.moving_mean", False), ("0.moving_variance", False), ("0.gamma", True), ("0.beta", True),
    ]  # fmt: skip
    plain = nn.BatchNorm2d(3, affine=False)
    assert plain.trainable_params() == []
    names = [path for path, _ in nn.BatchNorm3d(2).parameters_and_names()]
    assert names == ["bn2d.moving_mean", "bn2d.moving_variance", "bn2d.gamma", "bn2d.beta"]
    assert repr(nn.BatchNorm1d(3)).startswith(
        "BatchNorm1d(num_features=3, eps=1e-05, momentum=0.9, gamma=Parameter (name=gamma, "
    )


def test_gradient_flows_through_the_batch_statistics() -> None:
    net = nn.BatchNorm1d(2).set_train()
    x = rand(4, 2)
    weights = rand(4, 2, seed=1)

    def value(a: np.ndarray) -> float:
        return float((normalized(a, 0, 1e-5) * weights).sum())

    found = ms.grad(lambda a: (net(a) * Tensor(weights)).sum())(Tensor(x)).asnumpy()
    for i, j in np.ndindex(x.shape):
        step = np.zeros((4, 2))
        step[i, j] = 1e-4
        slope = (value(x + step) - value(x - step)) / 2e-4
        assert found[i, j] == pytest.approx(slope, abs=2e-3)


def test_half_precision_keeps_float32_statistics() -> None:
    net = nn.BatchNorm1d(2).set_train()
    x = (1000 + rand(64, 2)).astype(np.float16)
    y = net(Tensor(x))
    assert y.dtype is ms.float16
    assert net.moving_mean.dtype is ms.float32
    close(net.moving_mean, 0.1 * x.astype(np.float64).mean(0), rtol=1e-4)


@pytest.mark.parametrize(
    ("args", "kwargs", "axes", "shape"),
    [
        (((4,),), {}, (2,), (2, 3, 4)),
        (((3, 4), 1, 1), {"epsilon": 1e-3}, (1, 2), (2, 3, 4)),
        (((4,), 1, -1), {}, (1, 2), (2, 3, 4)),
        (((3, 4), -1, 1), {}, (2,), (2, 3, 4)),
    ],
)
def test_layer_norm(args: Any, kwargs: Any, axes: Any, shape: Any) -> None:
    net = randomize(nn.LayerNorm(*args, **kwargs))
    x = rand(*shape)
    expected = normalized(x, axes, net.epsilon) * net.gamma.asnumpy() + net.beta.asnumpy()
    close(net(Tensor(x)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 4, 3, 3), (1, 4, 2, 2, 2)])
def test_group_norm(shape: tuple[int, ...]) -> None:
    net = randomize(nn.GroupNorm(2, 4, eps=1e-3))
    x = rand(*shape)
    plain = normalized(x.reshape(shape[0], 2, -1), 2, 1e-3).reshape(shape)
    rank = len(shape)
    expected = plain * column(net.gamma, rank) + column(net.beta, rank)
    close(net(Tensor(x)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [(nn.InstanceNorm1d, (2, 3, 5)), (nn.InstanceNorm2d, (2, 3, 4, 4)),
     (nn.InstanceNorm3d, (2, 3, 2, 2, 2))],
)  # fmt: skip
def test_instance_norm(layer: Any, shape: tuple[int, ...]) -> None:
    net = randomize(layer(3, momentum=0.25))
    x, rank = rand(*shape), len(shape)
    axes = tuple(range(2, rank))
    expected = normalized(x, axes, 1e-5) * column(net.gamma, rank) + column(net.beta, rank)
    mean, var = net.moving_mean.asnumpy(), net.moving_variance.asnumpy()
    close(net(Tensor(x)), expected, rtol=1e-4, atol=1e-5)
    close(net.moving_mean, mean)
    close(net.set_train()(Tensor(x)), expected, rtol=1e-4, atol=1e-5)
    close(net.moving_mean, 0.25 * mean + 0.75 * x.mean(axes).mean(0))
    close(net.moving_variance, 0.25 * var + 0.75 * x.var(axes).mean(0))


def test_local_response_norm() -> None:
    x = rand(1, 7, 2, 2)
    square = np.pad(x * x, [(0, 0), (2, 2), (0, 0), (0, 0)])
    total = sum(square[:, i : i + 7] for i in range(5))
    close(nn.LRN(2, 2.0, 0.5, 0.75)(Tensor(x)), x / (2 + 0.5 * total) ** 0.75, rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.BatchNorm2d(0), ArgumentError, "num_features must be at least 1"),
        (lambda: nn.BatchNorm2d(2, momentum=2.0), ArgumentError, "momentum must be in [0, 1]"),
        (lambda: nn.BatchNorm2d(2, eps=-1.0), ArgumentError, "eps must be in"),
        (lambda: nn.BatchNorm2d(3)(t(2, 2, 2, 2)), ShapeError, "num_features=3 channels, not 2"),
        (lambda: nn.BatchNorm2d(3)(t(2, 3)), ShapeError, "4 axes, not 2"),
        (lambda: nn.BatchNorm1d(3)(Tensor(np.ones((2, 3), np.int32))), DTypeError, "float dtype"),
        (lambda: nn.BatchNorm3d(3)(t(2, 3)), ShapeError, "5 axes, not 2"),
        (lambda: nn.LayerNorm(3), DTypeError, "a tuple of ints"),
        (lambda: nn.LayerNorm(()), ArgumentError, "must not be empty"),
        (lambda: nn.LayerNorm((3,))(t(2, 4)), ShapeError, "must be (3,), not (4,)"),
        (lambda: nn.LayerNorm((3,), 2, 2)(t(2, 3)), ShapeError, "begin_norm_axis=2 is no axis"),
        (lambda: nn.GroupNorm(3, 4), ArgumentError, "num_groups=3 must divide"),
        (lambda: nn.GroupNorm(2, 4)(t(1, 3, 2)), ShapeError, "num_channels=4 channels, not 3"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_normalization.py" in str(e.value)
