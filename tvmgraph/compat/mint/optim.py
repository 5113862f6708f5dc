"""MindSpore's ``mindspore.mint.optim``: optimizers with PyTorch's arguments and arithmetic."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.experimental import optim


class SGD(optim.SGD):
    """Stochastic gradient descent; ``maximize`` climbs instead."""


class Adam(optim.Adam):
    """Adam; the decay is added to the gradient."""

    def update(
        self, index: int, param: Parameter, gradient: Tensor, step: Tensor, group: dict[str, Any]
    ) -> None:
        """Changes one parameter: ``m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)``."""
        mean, square = self.moments(index, gradient, group)
        beta1, beta2 = group["betas"]
        root = self.root(index, square, group) / F.sqrt(1 - F.pow(beta2, step)) + group["eps"]
        F.assign_sub(param, mean * group["lr"] / (1 - F.pow(beta1, step)) / root)


class AdamW(optim.AdamW):
    """Adam with decoupled weight decay: ``p <- p (1 - lr decay)`` before the step."""


class FusedAdamW(AdamW):
    """:class:`AdamW`; compiled code fuses either."""


def __getattr__(name: str) -> ModuleType:
    return look("tvmgraph.mint.optim", name, __all__)


__all__ = ["SGD", "Adam", "AdamW", "FusedAdamW"]

_guard_module(globals(), "mint.optim")


def __dir__() -> list[str]:
    return list(__all__)
