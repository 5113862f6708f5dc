"""Activations against NumPy formulas, and their arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.nn.helpers import close
from tvmgraph import Tensor, nn
from tvmgraph.common import set_seed
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

X = np.linspace(-7, 7, 30).reshape(5, 6).astype(np.float32)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(x))


ERF = np.vectorize(math.erf)
CASES: list[tuple[Callable[[], nn.Cell], Callable[[np.ndarray], Any]]] = [
    (nn.ReLU, lambda x: np.maximum(x, 0)),
    (nn.ReLU6, lambda x: np.clip(x, 0, 6)),
    (nn.LeakyReLU, lambda x: np.where(x >= 0, x, 0.2 * x)),
    (lambda: nn.LeakyReLU(0.1), lambda x: np.where(x >= 0, x, 0.1 * x)),
    (nn.ELU, elu),
    (lambda: nn.ELU(0.5), lambda x: elu(x, 0.5)),
    (lambda: nn.CELU(2.0), lambda x: np.maximum(x, 0) + np.minimum(0, 2 * np.expm1(x / 2))),
    (nn.SeLU, lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772)),
    (nn.GELU,
     lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    (lambda: nn.GELU(False), lambda x: 0.5 * x * (1 + ERF(x / math.sqrt(2)))),
    (nn.FastGelu,
     lambda x: x / (1 + np.exp(-1.702 * abs(x))) * np.exp(0.851 * (x - abs(x)))),
    (nn.SiLU, lambda x: x * sigmoid(x)),
    (nn.Sigmoid, sigmoid),
    (nn.LogSigmoid, lambda x: -np.log1p(np.exp(-x))),
    (nn.Tanh, np.tanh),
    (nn.Tanhshrink, lambda x: x - np.tanh(x)),
    (nn.Softmax, softmax),
    (lambda: nn.Softmax(0), lambda x: softmax(x, 0)),
    (lambda: nn.LogSoftmax(0), lambda x: np.log(softmax(x, 0))),
    (nn.Softmin, lambda x: softmax(-x)),
    (nn.Softsign, lambda x: x / (1 + abs(x))),
    (nn.SoftShrink, lambda x: np.sign(x) * np.maximum(abs(x) - 0.5, 0)),
    (lambda: nn.HShrink(2.0), lambda x: np.where(abs(x) > 2, x, 0)),
    (nn.Hardtanh, lambda x: np.clip(x, -1, 1)),
    (lambda: nn.Hardtanh(-2, 0.5), lambda x: np.clip(x, -2, 0.5)),
    (nn.HSwish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    (nn.HSigmoid, lambda x: np.clip(x + 3, 0, 6) / 6),
    (nn.Mish, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    (lambda: nn.Threshold(1.0, 9.0), lambda x: np.where(x > 1, x, 9)),
    (nn.GLU, lambda x: x[:, :3] * sigmoid(x[:, 3:])),
    (nn.PReLU, lambda x: np.where(x > 0, x, 0.25 * x)),
    (lambda: nn.PReLU(6, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
     lambda x: np.where(x > 0, x, x * np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))),
    (lambda: nn.RReLU(0.1, 0.3), lambda x: np.where(x >= 0, x, 0.2 * x)),
]  # fmt: skip


@pytest.mark.parametrize(("build", "expected"), CASES)
def test_formula(build: Callable[[], nn.Cell], expected: Callable[[np.ndarray], Any]) -> None:
    close(build()(Tensor(X)), expected(X.astype(np.float64)), rtol=2e-5, atol=2e-6)


def test_softmax2d_normalises_channels() -> None:
    x = X.reshape(1, 5, 2, 3)
    close(nn.Softmax2d()(Tensor(x)), softmax(x, 1))
    close(nn.Softmax2d()(Tensor(x[0])), softmax(x[0], 0))
    with pytest.raises(ShapeError, match="3 or 4 axes, not 2"):
        nn.Softmax2d()(Tensor(X))


def test_rrelu_draws_slopes_in_training() -> None:
    set_seed(0)
    x = np.full(10000, -1.0, np.float32)
    y = -nn.RReLU(0.1, 0.3).set_train()(Tensor(x)).asnumpy()
    assert y.min() >= 0.1
    assert y.max() <= 0.3
    assert y.mean() == pytest.approx(0.2, abs=0.002)


def test_prelu_parameter() -> None:
    net = nn.PReLU(3, 0.1)
    assert [(path, p.shape) for path, p in net.parameters_and_names()] == [("w", (3,))]
    close(net.w, np.full(3, 0.1))


@pytest.mark.parametrize("name", ["relu", "gelu", "leakyrelu", "logsoftmax", "hswish", "fast_gelu"])
def test_activation_by_name(name: str) -> None:
    layer = nn.get_activation(name)
    assert layer is not None
    assert type(layer).__name__.lower() == name.replace("_", "")
    assert nn.get_activation(None) is None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.get_activation("foo"), ArgumentError, "relu6"),
        (lambda: nn.Dense(1, 1, activation="foo"), ArgumentError, "Dense: there is no activation"),
        (lambda: nn.PReLU(0), ArgumentError, "channel must be at least 1"),
        (lambda: nn.PReLU(3, [1.0]), ArgumentError, "channel=3 elements"),
        (lambda: nn.PReLU(3, "a"), DTypeError, "not str"),
        (lambda: nn.RReLU(1.0, 0.0), ArgumentError, "must not exceed"),
        (lambda: nn.CELU(0.0), ArgumentError, "alpha must not be 0"),
        (lambda: nn.Hardtanh(1.0, 0.0), ArgumentError, "min_val=1.0"),
        (lambda: nn.Softmax("a"), DTypeError, "axis must be an int"),
        (lambda: nn.GELU("tanh"), DTypeError, "approximate must be a bool"),
        (lambda: nn.LeakyReLU("a"), DTypeError, "alpha must be a number"),
        (lambda: nn.SoftShrink(-1.0), ArgumentError, "lambd must be in"),
        (lambda: nn.LRN(norm_region="foo"), ArgumentError, "ACROSS_CHANNELS"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_activations.py" in str(e.value)
