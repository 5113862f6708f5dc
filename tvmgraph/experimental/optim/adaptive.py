"""Adam and its variants."""

from __future__ import annotations

from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.experimental.optim.base import Optimizer, check_betas
from tvmgraph.optim._checks import above_zero, non_negative

Group = dict[str, Any]
Betas = tuple[float, float]


class _Moments(Optimizer):
    """Keeps running means of the gradient and of its square."""

    _counts_first = True  # whether the number of steps stands before the means in checkpoints

    def __init__(self, params: object, lr: Any, betas: Betas, eps: float, weight_decay: float,
                 **settings: object) -> None:  # fmt: skip
        check_betas(self.__class__.__name__, betas)
        eps = above_zero(self.__class__.__name__, "eps", eps)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, **settings,
        })  # fmt: skip
        if self._counts_first:
            self.count_steps()
        self.exp_avg = self.state_of("exp_avg")
        self.exp_avg_sq = self.state_of("exp_avg_sq")

    def moments(self, index: int, gradient: Tensor, group: Group) -> tuple[Tensor, Tensor]:
        """Advances the means and returns them."""
        beta1, beta2 = group["betas"]
        mean = self.exp_avg[index] * beta1 + gradient * (1 - beta1)
        square = self.exp_avg_sq[index] * beta2 + gradient * gradient * (1 - beta2)
        F.assign(self.exp_avg[index], mean)
        F.assign(self.exp_avg_sq[index], square)
        return mean, square


class Adam(_Moments):
    """Adam; see :class:`tvmgraph.nn.Adam`."""

    _counts_first = False

    def __init__(self, params: object, lr: Any = 1e-3, betas: Betas = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False, *,
                 maximize: bool = False) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad=amsgrad, maximize=maximize)
        self.max_exp_avg_sq = self.state_of("max_exp_avg_sq")
        self.count_steps("state_step")

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        mean, square = self.moments(index, gradient, group)
        beta1, beta2 = group["betas"]
        correction = F.sqrt(1 - F.pow(beta2, step))
        rate = group["lr"] * correction / (1 - F.pow(beta1, step))
        F.assign_sub(param, mean * rate / (self.root(index, square, group) + group["eps"]))

    def root(self, index: int, square: Tensor, group: Group) -> Tensor:
        """Returns the root of the mean square, with ``amsgrad`` of the largest so far.

        Args:
            index: Number of the parameter.
            square: Mean of its squared gradient, of its shape.
            group: Settings of the parameter's group.
        """
        if group["amsgrad"]:
            square = F.maximum(self.max_exp_avg_sq[index], square)
            F.assign(self.max_exp_avg_sq[index], square)
        return F.sqrt(square)


class AdamW(Adam):
    """Adam whose weights decay apart from the gradient: ``p <- p (1 - lr decay)``."""

    def __init__(self, params: object, lr: Any = 1e-3, betas: Betas = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
                 maximize: bool = False) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def decayed(self, gradient: Tensor, param: Parameter, group: Group) -> Tensor:
        """Returns the gradient as it is.

        Args:
            gradient: The gradient, of the shape of the parameter.
            param: The parameter.
            group: Settings of its group.
        """
        return gradient

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        mean, square = self.moments(index, gradient, group)
        beta1, beta2 = group["betas"]
        root = self.root(index, square, group) / F.sqrt(1 - F.pow(beta2, step)) + group["eps"]
        kept = param * (1 - group["lr"] * group["weight_decay"])
        F.assign(param, kept - mean * group["lr"] / (1 - F.pow(beta1, step)) / root)


class Adamax(Optimizer):
    """Adam with the largest gradient instead of the mean square."""

    def __init__(self, params: object, lr: Any = 2e-3, betas: Betas = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0, *,
                 maximize: bool = False) -> None:  # fmt: skip
        check_betas("Adamax", betas)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": above_zero("Adamax", "eps", eps),
            "weight_decay": weight_decay, "maximize": maximize,
        })  # fmt: skip
        self.count_steps()
        self.exp_avg = self.state_of("exp_avg")
        self.exp_inf = self.state_of("exp_inf")

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        beta1, beta2 = group["betas"]
        mean = self.exp_avg[index] * beta1 + gradient * (1 - beta1)
        size = F.maximum(self.exp_inf[index] * beta2, F.abs(gradient) + group["eps"])
        F.assign(self.exp_avg[index], mean)
        F.assign(self.exp_inf[index], size)
        F.assign_sub(param, mean / size * (group["lr"] / (1 - F.pow(beta1, step))))


class NAdam(_Moments):
    """Adam with Nesterov's momentum."""

    def __init__(self, params: object, lr: Any = 2e-3, betas: Betas = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0,
                 momentum_decay: float = 4e-3) -> None:  # fmt: skip
        decay = non_negative("NAdam", "momentum_decay", momentum_decay)
        super().__init__(params, lr, betas, eps, weight_decay, momentum_decay=decay)
        self.mu_product = self.scalars_of("mu_product_", 1.0)

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        (beta1, beta2), decay, lr = group["betas"], group["momentum_decay"], group["lr"]
        mu, ahead = (beta1 * (1 - 0.5 * F.pow(0.96, s * decay)) for s in (step, step + 1))
        product = self.mu_product[index] * mu
        F.assign(self.mu_product[index], product)
        mean, square = self.moments(index, gradient, group)
        root = F.sqrt(square / (1 - F.pow(beta2, step))) + group["eps"]
        now, then = lr * (1 - mu) / (1 - product), lr * ahead / (1 - product * ahead)
        F.assign_sub(param, (gradient * now + mean * then) / root)


class RAdam(_Moments):
    """Adam whose adaptive rate waits until its variance is known well enough."""

    def __init__(self, params: object, lr: Any = 1e-3, betas: Betas = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay)

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        beta1, beta2 = group["betas"]
        mean, square = self.moments(index, gradient, group)
        correction = 1 - F.pow(beta2, step)
        most = 2 / (1 - beta2) - 1
        length = most - 2 * step * F.pow(beta2, step) / correction
        share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        rect = F.sqrt(F.where(length > 5, share, 1.0))
        adaptive = F.sqrt(correction) * rect / (F.sqrt(square) + group["eps"])
        rate = F.where(length > 5, adaptive, F.ones_like(adaptive))
        F.assign_sub(param, mean / (1 - F.pow(beta1, step)) * group["lr"] * rate)


__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]
