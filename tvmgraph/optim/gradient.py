"""Gradient descent with and without momentum."""

from __future__ import annotations

from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.optim._checks import boolean, non_negative, pair, real, reject
from tvmgraph.optim.base import Optimizer, new_scalar


@fusible
def _descended(param: Tensor, gradient: Tensor, lr: Tensor) -> Tensor:
    """Returns a parameter after a step along its gradient."""
    return F.cast(param - gradient * lr, param.dtype)


@fusible
def _with_momentum(
    param: Tensor, gradient: Tensor, lr: Tensor, velocity: Tensor, momentum: Tensor, ahead: bool
) -> tuple[Tensor, Tensor]:
    """Returns a parameter and its velocity after a step."""
    velocity = velocity * momentum + gradient
    step = gradient + velocity * momentum if ahead else velocity
    return F.cast(param - step * lr, param.dtype), velocity


class SGD(Optimizer):
    r"""Stochastic gradient descent: :math:`w \leftarrow w - lr \cdot v` with
    :math:`v \leftarrow \mu v + (1 - d) g` (:math:`v = g` at the first step).

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        momentum: :math:`\mu`, at least 0. With 0 the state stays as it is.
        dampening: :math:`d`, at least 0.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.
        nesterov: Steps along :math:`g + \mu v`; needs momentum and no dampening.
        loss_scale: Divides the gradients.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is negative, or nesterov comes without momentum.

    Example:
        >>> net = nn.Dense(2, 1)
        >>> nn.SGD(net.trainable_params(), learning_rate=0.1, momentum=0.9).cls_name
        'SGD'
    """

    def __init__(
        self,
        params: object,
        learning_rate: object = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: object = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.dampening = non_negative("SGD", "dampening", dampening)
        self.nesterov = boolean("SGD", "nesterov", nesterov)
        momentum = non_negative("SGD", "momentum", momentum)
        if nesterov and (momentum == 0 or dampening != 0):
            reject(ArgumentError, "SGD", "nesterov needs a momentum and no dampening",
                   f"momentum={momentum}, dampening={dampening}")  # fmt: skip
        self.momentum = new_scalar("momentum", momentum)
        self.moving = momentum > 0
        self.accum = self.new_state("accum")  # also without momentum: checkpoints are MindSpore's
        # tells the first step, which is not dampened, also to MindSpore that loads a checkpoint
        self.stat = self.new_state("stat", "ones")

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        if not self.moving:
            F.assign(param, _descended(param, gradient, lr))
            return
        accum = self.accum[index]
        velocity = accum * self.momentum + gradient * (1.0 - self.dampening)
        stat = self.stat[index]
        if self.dampening:
            velocity = F.where(F.greater(stat, 0), gradient, velocity)
        F.assign(stat, F.zeros_like(stat))
        step = gradient + velocity * self.momentum if self.nesterov else velocity
        F.assign_sub(param, step * lr)
        F.assign(accum, velocity)


class Momentum(Optimizer):
    r"""Momentum: :math:`v \leftarrow \mu v + g`, :math:`w \leftarrow w - lr \cdot v`.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        momentum: :math:`\mu`, at least 0.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.
        loss_scale: Divides the gradients.
        use_nesterov: Steps along :math:`g + \mu v` instead of :math:`v`.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is negative.

    Example:
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        >>> [s.name for s in optimizer.moments]
        ['moments.weight', 'moments.bias']
    """

    def __init__(
        self,
        params: object,
        learning_rate: object,
        momentum: float,
        weight_decay: object = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        momentum = non_negative("Momentum", "momentum", momentum)
        self.use_nesterov = boolean("Momentum", "use_nesterov", use_nesterov)
        self.momentum = new_scalar("momentum", momentum)
        self.moments = self.new_state("moments")

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        new, velocity = _with_momentum(
            param, gradient, lr, self.moments[index], self.momentum, self.use_nesterov
        )
        F.assign(param, new)
        F.assign(self.moments[index], velocity)


class Rprop(Optimizer):
    r"""Resilient propagation: only the sign of the gradient counts; every element has its own step,
    which grows while the sign stays and shrinks when it changes.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: The first step size.
        etas: Factors for shrinking (in (0, 1)) and growing (above 1).
        step_sizes: Smallest and largest step size.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Example:
        >>> nn.Rprop([ms.Parameter(Tensor([1.0]), name="p")]).etaplus
        1.2
    """

    def __init__(
        self,
        params: object,
        learning_rate: object = 0.1,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.etaminus, self.etaplus = pair("Rprop", "etas", etas)
        self.step_size_min, self.step_size_max = pair("Rprop", "step_sizes", step_sizes)
        if not 0 < self.etaminus < 1 < self.etaplus:
            reject(ArgumentError, "Rprop", "etas must satisfy 0 < etas[0] < 1 < etas[1]",
                   f"etas={etas}")  # fmt: skip
        if self.step_size_min > self.step_size_max:
            reject(ArgumentError, "Rprop", "step_sizes[0] must not exceed step_sizes[1]",
                   f"step_sizes={step_sizes}")  # fmt: skip
        self.prev = self.new_state("prev")
        self.step_size = self.new_state("step_size")

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        prev, size = self.prev[index], self.step_size[index]
        first = F.equal(self.global_step, 1)
        size_now = F.where(first, F.ones_like(size) * lr, size)
        agreement = gradient * prev
        shrink, grow = F.less(agreement, 0), F.greater(agreement, 0)
        size_now = F.where(grow, size_now * self.etaplus, size_now)
        size_now = F.where(shrink, size_now * self.etaminus, size_now)
        size_now = F.clip_by_value(size_now, self.step_size_min, self.step_size_max)
        kept = F.where(shrink, F.zeros_like(gradient), gradient)
        F.assign_sub(param, F.sign(kept) * size_now)
        F.assign(prev, kept)
        F.assign(size, size_now)


class ASGD(Optimizer):
    r"""Averaged gradient descent: also keeps the mean of the weights of all steps.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        lambd: Decay term.
        alpha: Exponent of the decay of the step size.
        t0: The step at which averaging starts.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        DTypeError: if an argument is not a number.

    Example:
        >>> nn.ASGD([ms.Parameter(Tensor([1.0]), name="p")]).t0
        1000000.0
    """

    def __init__(
        self,
        params: object,
        learning_rate: object = 0.1,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.lambd = float(real("ASGD", "lambd", lambd))
        self.alpha = float(real("ASGD", "alpha", alpha))
        self.t0 = float(real("ASGD", "t0", t0))
        self.mu = self.new_scalars("mu_", 1.0)
        self.eta = self.new_scalars("eta_", 0.0)
        self.ax = self.new_state("ax_")

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        step, mu, ax = self.step_count(), self.mu[index], self.ax[index]
        eta = F.where(F.equal(step, 1.0), lr, self.eta[index])
        new = param * (1.0 - eta * self.lambd) - gradient * eta
        F.assign(ax, F.where(F.equal(mu, 1.0), new, ax + (new - ax) * mu))
        F.assign(param, new)
        F.assign(self.eta[index], lr / F.pow(step * lr * self.lambd + 1.0, self.alpha))
        F.assign(mu, 1.0 / F.maximum(step - self.t0, 1.0))


__all__ = ["ASGD", "SGD", "Momentum", "Rprop"]
