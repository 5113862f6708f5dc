"""The optimizers: Adam and its variants, and those that scale the gradient by its history."""

from __future__ import annotations

from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.experimental.optim.base import Optimizer, check_betas
from tvmgraph.optim._checks import above_zero, fraction, non_negative, pair, reject

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop",
    "Rprop",
]  # fmt: skip

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


class SGD(Optimizer):
    """Gradient descent with momentum; see :class:`tvmgraph.nn.SGD`."""

    def __init__(self, params: object, lr: Any, momentum: float = 0, dampening: float = 0,
                 weight_decay: float = 0.0, nesterov: bool = False, *,
                 maximize: bool = False) -> None:  # fmt: skip
        momentum = non_negative("SGD", "momentum", momentum)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": float(dampening),
            "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
            "grad_centralization": False,
        })  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            reject(ArgumentError, "SGD", "nesterov needs momentum above 0 and no dampening")
        self.accum = self.state_of("accum")
        self.stat = self.state_of("stat", "ones")

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        momentum, accum = group["momentum"], self.accum[index]
        if momentum:
            slowed = accum * momentum + gradient * (1 - group["dampening"])
            velocity = F.where(F.greater(self.stat[index], 0), gradient, slowed)
            F.assign(self.stat[index], F.zeros_like(gradient))
            F.assign(accum, velocity)
            gradient = gradient + velocity * momentum if group["nesterov"] else velocity
        F.assign_sub(param, gradient * group["lr"])


class RMSprop(Optimizer):
    """The gradient over the root of its mean square, of its variance where ``centered``."""

    def __init__(self, params: object, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False,
                 maximize: bool = False) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "momentum": non_negative("RMSprop", "momentum", momentum),
            "alpha": non_negative("RMSprop", "alpha", alpha),
            "eps": above_zero("RMSprop", "eps", eps), "centered": centered,
            "weight_decay": weight_decay, "maximize": maximize,
        })  # fmt: skip
        self.mean_grad = self.state_of("mean_grad")
        self.mean_square = self.state_of("mean_square")
        self.moment = self.state_of("moment")

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        alpha, square, mean = group["alpha"], self.mean_square[index], self.mean_grad[index]
        size = square * alpha + gradient * gradient * (1 - alpha)
        F.assign(square, size)
        if group["centered"]:
            centre = mean * alpha + gradient * (1 - alpha)
            F.assign(mean, centre)
            size = size - centre * centre
        gradient = gradient / (F.sqrt(size) + group["eps"])
        if group["momentum"] > 0:
            gradient = self.moment[index] * group["momentum"] + gradient
            F.assign(self.moment[index], gradient)
        F.assign_sub(param, gradient * group["lr"])


class Adagrad(Optimizer):
    """The gradient over the root of the sum of its squares."""

    def __init__(self, params: object, lr: Any = 1e-2, lr_decay: float = 0.0,
                 weight_decay: float = 0.0, initial_accumulator_value: float = 0.0,
                 eps: float = 1e-10, *, maximize: bool = False) -> None:  # fmt: skip
        start = non_negative("Adagrad", "initial_accumulator_value", initial_accumulator_value)
        super().__init__(params, {
            "lr": lr, "lr_decay": non_negative("Adagrad", "lr_decay", lr_decay),
            "eps": above_zero("Adagrad", "eps", eps), "weight_decay": weight_decay,
            "initial_accumulator_value": start, "maximize": maximize,
        })  # fmt: skip
        self.accum = self.state_of("accum", start)
        self.count_steps()

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        size = self.accum[index] + gradient * gradient
        F.assign(self.accum[index], size)
        F.assign_sub(param, gradient * rate / (F.sqrt(size) + group["eps"]))


class Adadelta(Optimizer):
    """The gradient times the ratio of the mean sizes of steps and gradients."""

    def __init__(self, params: object, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0.0, *, maximize: bool = False) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "rho": fraction("Adadelta", "rho", rho, "[]"),
            "eps": above_zero("Adadelta", "eps", eps), "weight_decay": weight_decay,
            "maximize": maximize,
        })  # fmt: skip
        self.accum = self.state_of("accum")
        self.accum_update = self.state_of("accum_update")

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        rho, eps, steps = group["rho"], group["eps"], self.accum_update[index]
        size = self.accum[index] * rho + gradient * gradient * (1 - rho)
        move = F.sqrt(steps + eps) / F.sqrt(size + eps) * gradient
        F.assign(self.accum[index], size)
        F.assign(steps, steps * rho + move * move * (1 - rho))
        F.assign_sub(param, move * group["lr"])


class Rprop(Optimizer):
    """Every element has its own step, which grows while the gradient's sign stays."""

    def __init__(self, params: object, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-06, 50), *,
                 maximize: bool = False) -> None:  # fmt: skip
        less, more = pair("Rprop", "etas", etas)
        if not 0 < less < 1 < more:
            reject(ArgumentError, "Rprop", "0 < etas[0] < 1 < etas[1] is needed", f"etas={etas}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize,
        })  # fmt: skip
        self.prev = self.state_of("prev")
        self.step_size = self.state_of("step_size")
        self.count_steps()

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        size, (less, more) = self.step_size[index], group["etas"]
        size = F.where(F.equal(step, 1), F.ones_like(size) * group["lr"], size)
        agreement = gradient * self.prev[index]
        size = F.where(F.greater(agreement, 0), size * more, size)
        size = F.where(F.less(agreement, 0), size * less, size)
        size = F.clip_by_value(size, *group["step_sizes"])
        kept = F.where(F.less(agreement, 0), F.zeros_like(gradient), gradient)
        F.assign(self.step_size[index], size)
        F.assign(self.prev[index], kept)
        F.assign_sub(param, F.sign(kept) * size)


class ASGD(Optimizer):
    """Gradient descent that also keeps the mean of the weights; see :class:`tvmgraph.nn.ASGD`."""

    def __init__(self, params: object, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0.0,
                 maximize: bool = False) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "maximize": maximize,
        })  # fmt: skip
        self.mu = self.scalars_of("mu_", 1.0)
        self.eta = self.scalars_of("eta_", 0.0)
        self.ax = self.state_of("ax")
        self.count_steps()

    def update(self, index: int, param: Parameter, gradient: Tensor, step: Tensor,
               group: Group) -> None:  # fmt: skip
        """Changes one parameter."""
        lr, lambd, ax, mu = group["lr"], group["lambd"], self.ax[index], self.mu[index]
        eta = F.where(F.equal(step, 1), lr, self.eta[index])
        new = param * (1 - eta * lambd) - gradient * eta
        F.assign(ax, F.where(F.equal(mu, 1), new, ax + (new - ax) * mu))
        F.assign(param, new)
        F.assign(self.eta[index], lr / F.pow(1 + step * lr * lambd, group["alpha"]))
        F.assign(mu, 1 / F.maximum(step - group["t0"], 1.0))
