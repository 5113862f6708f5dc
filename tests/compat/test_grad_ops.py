"""MindSpore's operators of gradients are the gradients of the operators they belong to."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops

P = Tensor(np.array([[0.2, 0.5, 0.8], [0.3, 0.6, 0.7]], np.float32))
X = Tensor(np.array([[-1.5, -0.2, 0.1], [0.4, 1.2, 7.0]], np.float32))
DY = Tensor(np.array([[1.0, -2, 3], [0.5, 0.1, -1]], np.float32))
G: Any = importlib.import_module("tvmgraph.ops.operations._grad_ops")
#: Name, forward function, its operand, and arguments of the operator from operand and result.
CASES: list[tuple[str, Any, Tensor, Any]] = [
    *((f"{n}Grad", f, P, lambda x, y: (x, DY)) for n, f in
      (("Abs", ops.abs), ("ACos", ops.acos), ("Asin", ops.asin), ("Atan", ops.atan))),
    *((f"{n}Grad", f, P, lambda x, y: (y, DY)) for n, f in
      (("Acosh", lambda x: ops.acosh(x + 1)), ("Asinh", ops.asinh), ("Inv", ops.reciprocal),
       ("Reciprocal", ops.reciprocal), ("Rsqrt", ops.rsqrt), ("Sigmoid", ops.sigmoid),
       ("Sqrt", ops.sqrt), ("Tanh", ops.tanh), ("Softmax", lambda x: ops.softmax(x, -1)),
       ("LogSoftmax", lambda x: ops.log_softmax(x, -1)))),
    *((f"{n}Grad", f, X, lambda x, y: (DY, x)) for n, f in
      (("FastGeLU", ops.fast_gelu), ("Relu", ops.relu), ("ReLU6", ops.relu6),
       ("HSigmoid", ops.hardsigmoid), ("HSwish", ops.hardswish), ("SiLU", ops.silu),
       ("Softplus", ops.softplus), ("HShrink", ops.hardshrink), ("SoftShrink", ops.softshrink))),
    ("EluGrad", ops.elu, X, lambda x, y: (DY, y)),
    ("GeLUGrad", lambda x: ops.gelu(x, "tanh"), X, lambda x, y: (DY, x, y)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "forward", "x", "args"), CASES, ids=[c[0] for c in CASES])
def test_gradient(name: str, forward: Any, x: Tensor, args: Any) -> None:
    want = ms.grad(lambda t: (forward(t) * DY).sum())(x)
    found = getattr(G, name)()(*args(x, forward(x)))
    np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
def test_pools(kind: str) -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32))
    pool = getattr(ops, kind)(2, 2)
    y = pool(x)
    want = ms.grad(lambda t: (pool(t) * y).sum())(x)
    found = getattr(G, f"{kind}Grad")(2, 2)(x, y, y)
    np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=2e-6)


def test_inputs_may_be_declared_without_a_number_of_axes() -> None:
    class Sum(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x.sum()

    declared = Tensor(shape=None, dtype=ms.float32)
    assert declared.shape == (-2,)
    net = Sum()
    net.set_inputs(declared)
    function = ms.jit(net)
    found = [function(ops.ones(shape)).item() for shape in ((2, 3), (4,), (2, 2, 2))]
    assert found == [6.0, 4.0, 8.0]
    with pytest.raises(TypeError):
        function(ops.ones((2, 3), ms.float64))
