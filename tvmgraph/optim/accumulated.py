"""Optimizers that divide by accumulated squares: Adagrad, RMSProp, Adadelta, FTRL."""

from __future__ import annotations

from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.optim._checks import above_zero, boolean, fraction, non_negative, real, reject
from tvmgraph.optim.base import Optimizer


class RMSProp(Optimizer):
    r"""RMSProp: :math:`s \leftarrow \rho s + (1-\rho) g^2`,
    :math:`v \leftarrow \mu v + \frac{lr}{\sqrt{s + \epsilon}} g`, :math:`w \leftarrow w - v`.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        decay: :math:`\rho` in [0, 1].
        momentum: :math:`\mu`, at least 0.
        epsilon: :math:`\epsilon`, positive.
        use_locking: Kept for MindSpore programs; updates are always exclusive.
        centered: Uses the variance :math:`s - \bar g^2` instead of :math:`s`.
        loss_scale: Divides the gradients.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Example:
        >>> nn.RMSProp([ms.Parameter(Tensor([1.0]), name="p")]).ms[0].asnumpy()
        array([1.], dtype=float32)
    """

    def __init__(
        self,
        params: object,
        learning_rate: object = 0.1,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        loss_scale: float = 1.0,
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay = fraction("RMSProp", "decay", decay, "[]")
        self.momentum = non_negative("RMSProp", "momentum", momentum)
        self.epsilon = above_zero("RMSProp", "epsilon", epsilon)
        boolean("RMSProp", "use_locking", use_locking)
        self.centered = boolean("RMSProp", "centered", centered)
        self.mg = self.new_state("mean_grad") if centered else None
        self.ms = self.new_state("mean_square", "ones")
        self.moment = self.new_state("moment")

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        square, moment, rest = self.ms[index], self.moment[index], 1.0 - self.decay
        new_square = square * self.decay + F.square(gradient) * rest
        spread = new_square
        if self.mg is not None:
            mean = self.mg[index] * self.decay + gradient * rest
            spread = new_square - F.square(mean)
            F.assign(self.mg[index], mean)
        step = moment * self.momentum + gradient * lr / F.sqrt(spread + self.epsilon)
        F.assign_sub(param, step)
        F.assign(moment, step)
        F.assign(square, new_square)


class Adagrad(Optimizer):
    r"""Adagrad: :math:`a \leftarrow a + g^2`, :math:`w \leftarrow w - lr \cdot g / \sqrt{a}`.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        accum: First value of :math:`a`, at least 0.
        learning_rate: A number, Tensor, list or schedule.
        update_slots: Whether :math:`a` changes.
        loss_scale: Divides the gradients.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Example:
        >>> nn.Adagrad([ms.Parameter(Tensor([1.0]), name="p")], learning_rate=0.1).update_slots
        True
    """

    def __init__(
        self,
        params: object,
        accum: float = 0.1,
        learning_rate: object = 1e-3,
        update_slots: bool = True,
        loss_scale: float = 1.0,
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.update_slots = boolean("Adagrad", "update_slots", update_slots)
        self.accum = self.new_state("accum", non_negative("Adagrad", "accum", accum))

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        total: Tensor = self.accum[index]
        if self.update_slots:
            total = total + F.square(gradient)
            F.assign(self.accum[index], total)
        F.assign_sub(param, gradient * lr / F.sqrt(total))


class Adadelta(Optimizer):
    r"""Adadelta: :math:`a \leftarrow \rho a + (1-\rho) g^2`,
    :math:`u = \sqrt{\frac{b + \epsilon}{a + \epsilon}} g`,
    :math:`b \leftarrow \rho b + (1-\rho) u^2`, :math:`w \leftarrow w - lr \cdot u`.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        rho: :math:`\rho` in [0, 1].
        epsilon: :math:`\epsilon`, at least 0.
        loss_scale: Divides the gradients.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Example:
        >>> nn.Adadelta([ms.Parameter(Tensor([1.0]), name="p")]).rho
        0.9
    """

    def __init__(
        self,
        params: object,
        learning_rate: object = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: float = 1.0,
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = fraction("Adadelta", "rho", rho, "[]")
        self.epsilon = non_negative("Adadelta", "epsilon", epsilon)
        self.accum = self.new_state("accum")
        self.accum_update = self.new_state("accum_update")

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        steps, rest = self.accum_update[index], 1.0 - self.rho
        total = self.accum[index] * self.rho + F.square(gradient) * rest
        step = F.sqrt(steps + self.epsilon) / F.sqrt(total + self.epsilon) * gradient
        F.assign_sub(param, step * lr)
        F.assign(self.accum[index], total)
        F.assign(steps, steps * self.rho + F.square(step) * rest)


class ProximalAdagrad(Optimizer):
    r"""Adagrad with regularization: :math:`a \leftarrow a + g^2`, :math:`\eta = lr / \sqrt a`,
    :math:`v = w - \eta g`,
    :math:`w \leftarrow sign(v) \max(|v| - \eta l_1, 0) / (1 + \eta l_2)`.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        accum: First value of :math:`a`, at least 0.
        learning_rate: A number, Tensor, list or schedule.
        l1: :math:`l_1`, at least 0.
        l2: :math:`l_2`, at least 0.
        use_locking: Kept for MindSpore programs; updates are always exclusive.
        loss_scale: Divides the gradients.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is negative.

    Example:
        >>> nn.ProximalAdagrad([ms.Parameter(Tensor([1.0]), name="p")]).accum[0].name
        'accum.p'
    """

    def __init__(
        self,
        params: object,
        accum: float = 0.1,
        learning_rate: object = 1e-3,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.l1 = non_negative("ProximalAdagrad", "l1", l1)
        self.l2 = non_negative("ProximalAdagrad", "l2", l2)
        boolean("ProximalAdagrad", "use_locking", use_locking)
        self.accum = self.new_state("accum", non_negative("ProximalAdagrad", "accum", accum))

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        total = self.accum[index] + F.square(gradient)
        rate = lr * F.rsqrt(total)
        moved = param - gradient * rate
        shrunk = F.sign(moved) * F.maximum(F.abs(moved) - rate * self.l1, 0.0)
        F.assign(param, shrunk / (1.0 + rate * self.l2))
        F.assign(self.accum[index], total)


class FTRL(Optimizer):
    r"""Follow the regularized leader: keeps :math:`n = \sum g^2` and a linear term :math:`z`, and
    sets :math:`w = \frac{\mathrm{sign}(z) l_1 - z}{n^{-p} / lr + 2 l_2}` where
    :math:`|z| > l_1`, else 0.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        initial_accum: First value of :math:`n`, at least 0.
        learning_rate: A number, Tensor, list or schedule.
        lr_power: :math:`p`, at most 0.
        l1: :math:`l_1`, at least 0.
        l2: :math:`l_2`, at least 0.
        use_locking: Kept for MindSpore programs; updates are always exclusive.
        loss_scale: Divides the gradients.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Example:
        >>> nn.FTRL([ms.Parameter(Tensor([1.0]), name="p")]).lr_power
        -0.5
    """

    def __init__(
        self,
        params: object,
        initial_accum: float = 0.1,
        learning_rate: object = 1e-3,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.lr_power = float(real("FTRL", "lr_power", lr_power))
        if self.lr_power > 0:
            reject(ArgumentError, "FTRL", f"lr_power must be at most 0, not {lr_power}")
        self.l1 = non_negative("FTRL", "l1", l1)
        self.l2 = non_negative("FTRL", "l2", l2)
        boolean("FTRL", "use_locking", use_locking)
        first = non_negative("FTRL", "initial_accum", initial_accum)
        self.moments = self.new_state("moments", first)
        self.linear = self.new_state("linear")

    def decays_weight(self, index: int) -> bool:
        """Whether weight decay applies to a parameter; without groups it applies to all."""
        decay = self._settings[index].weight_decay
        if self.is_group or not self.exec_weight_decay:
            return super().decays_weight(index)
        return not (isinstance(decay, float) and decay == 0.0)

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        total, linear = self.moments[index], self.linear[index]
        new_total = total + F.square(gradient)
        root = F.pow(new_total, -self.lr_power)
        sigma = (root - F.pow(total, -self.lr_power)) / lr
        new_linear = linear + gradient - param * sigma
        solved = (F.sign(new_linear) * self.l1 - new_linear) / (root / lr + 2.0 * self.l2)
        active = F.greater(F.abs(new_linear), self.l1)
        F.assign(param, F.where(active, solved, F.zeros_like(solved)))
        F.assign(total, new_total)
        F.assign(linear, new_linear)


__all__ = ["FTRL", "Adadelta", "Adagrad", "ProximalAdagrad", "RMSProp"]
