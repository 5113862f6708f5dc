"""Compiled programs of every kind, each with what it gives eagerly.

Every kind is a function that makes a new program: what compiles and runs it on an input, and what
computes the same without compiling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, nn, ops

Program = tuple[Callable[[Tensor], Any], Callable[[Tensor], Any]]
SHAPE = (6, 4)


def inputs(count: int, seed: int = 0) -> list[Tensor]:
    """Returns tensors of one type; some make a branch take each side."""
    rng = np.random.default_rng(seed)
    return [Tensor(rng.normal(size=SHAPE).astype(np.float32)) for _ in range(count)]


class Network(nn.Cell):
    """Two layers with fixed weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(4, 8), nn.Dense(8, 1)
        rng = np.random.default_rng(3)
        for p in self.get_parameters():
            p.set_data(Tensor(rng.normal(size=p.shape).astype(np.float32)))

    def construct(self, x: Tensor) -> Tensor:
        return self.second(ops.tanh(self.first(x)))


def decided(x: Tensor) -> Tensor:
    """A branch and a loop that a tensor decides about."""
    y = ops.sin(x) if x.sum() > 0 else x * x
    n = 0
    while ops.abs(y).sum() > 3 and n < 20:
        y = y * 0.7
        n += 1
    return y + n


def forward() -> Program:
    net = Network()
    return jit(net), net


def gradient() -> Program:
    """Of a compiled function, taken outside of it."""
    net = Network()
    compiled = jit(lambda x: (net(x) ** 2).mean())
    around = ms.value_and_grad(compiled, 0, net.trainable_params())
    return around, ms.value_and_grad(lambda x: (net(x) ** 2).mean(), 0, net.trainable_params())


def gradient_inside() -> Program:
    """Compiled as a whole."""
    net = Network()
    inner = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), 0, net.trainable_params())
    return jit(lambda x: inner(x)), inner


def control_flow() -> Program:
    return jit(decided), decided


def gradient_of_control_flow() -> Program:
    compiled = jit(decided)
    return (
        ms.value_and_grad(lambda x: compiled(x).sum()),
        ms.value_and_grad(lambda x: decided(x).sum()),
    )


def numbers(result: Any) -> np.ndarray:
    """Returns all elements of a nested result, one after the other."""
    if isinstance(result, (tuple, list)):
        return np.concatenate([numbers(r) for r in result])
    return np.asarray(result.asnumpy(), np.float64).ravel()


KINDS: dict[str, Callable[[], Program]] = {
    f.__name__: f
    for f in (forward, gradient, gradient_inside, control_flow, gradient_of_control_flow)
}


def check(kind: str, run: Callable[[Tensor], Any], given: list[Tensor], wanted: list[Any]) -> None:
    """Raises where a compiled program gives anything but the wanted numbers."""
    for x, right in zip(given, wanted):
        np.testing.assert_allclose(numbers(run(x)), right, rtol=1e-4, atol=1e-5, err_msg=kind)


class Training:
    """Training steps of which any order gives the same: all take one input.

    Attributes:
        step: Takes one step, compiled.
        plain: Takes one step eagerly.
    """

    def __init__(self) -> None:
        self.net = Network()
        self.optimizer = nn.Momentum(self.net.trainable_params(), 1e-3, 0.9)
        self.count = Parameter(Tensor(np.zeros((), np.int32)), name="count", requires_grad=False)
        gradients = ms.value_and_grad(self._loss, None, self.optimizer.parameters)

        def plain(x: Tensor) -> Tensor:
            loss, found = gradients(x)
            self.optimizer(found)
            if loss > 0:  # where a tensor decides
                ops.assign_add(self.count, 1)
            return loss

        self.plain, self.step = plain, jit(plain)

    def _loss(self, x: Tensor) -> Tensor:
        return (self.net(x) ** 2).mean()

    def state(self) -> np.ndarray:
        """Returns the elements of all parameters, those of the optimizer included."""
        return numbers([self.count, *self.net.get_parameters(), *self.optimizer.get_parameters()])
