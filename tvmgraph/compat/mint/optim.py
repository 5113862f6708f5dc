"""MindSpore's ``mindspore.mint.optim``: optimizers with PyTorch's arguments and arithmetic."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tvmgraph import optim
from tvmgraph.compat.paths import look
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor


class SGD(optim.SGD):
    """Stochastic gradient descent; ``maximize`` climbs instead."""

    def __init__(
        self,
        params: object,
        lr: NumberLike = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov)
        self.maximize = maximize

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        super().update(index, param, -gradient if self.maximize else gradient, lr)


class Adam(optim.Adam):
    """Adam; the decay is added to the gradient."""

    def __init__(
        self,
        params: object,
        lr: NumberLike = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, *betas, eps, weight_decay=weight_decay, use_amsgrad=amsgrad)
        self.maximize = maximize

    def effective_rate(self, rate: Tensor) -> Tensor:
        """Returns the learning rate as it is: epsilon is added after the bias correction."""
        return rate

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter: ``m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)``."""
        if self.maximize:
            gradient = -gradient
        m, v = self._averages(self.moment1[index], self.moment2[index], gradient)
        F.assign(self.moment1[index], m)
        F.assign(self.moment2[index], v)
        if self.vhat is not None:
            v = F.maximum(self.vhat[index], v)
            F.assign(self.vhat[index], v)
        root = F.sqrt(v) / F.sqrt(1.0 - self.beta2_power) + self.eps
        F.assign_sub(param, lr / (1.0 - self.beta1_power) * m / root)


class AdamW(Adam):
    """Adam with decoupled weight decay: ``p <- p (1 - lr decay)`` before the step."""

    def __init__(
        self,
        params: object,
        lr: NumberLike = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def decay_weight(self, gradients: object) -> Any:
        """Leaves the gradients alone: the decay is part of the update."""
        return gradients

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        if self.decays_weight(index):
            F.assign_sub(param, param * (lr * self.decays()[index]))
        super().update(index, param, gradient, lr)


class FusedAdamW(AdamW):
    """:class:`AdamW`; compiled code fuses either."""


def __getattr__(name: str) -> ModuleType:
    return look("tvmgraph.mint.optim", name, __all__)


__all__ = ["SGD", "Adam", "AdamW", "FusedAdamW"]

_guard_module(globals(), "mint.optim")
