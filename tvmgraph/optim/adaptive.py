"""Optimizers with a step size per element: Adam and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.optim._checks import above_zero, boolean, fraction, reject
from tvmgraph.optim.base import Optimizer, new_scalar


class _Moments(Optimizer):
    """Checks and stores the two decay rates and epsilon."""

    def _set_betas(self, beta1: float, beta2: float, eps: float) -> None:
        self.beta1 = fraction(self.cls_name, "beta1", beta1)
        self.beta2 = fraction(self.cls_name, "beta2", beta2)
        self.eps = above_zero(self.cls_name, "eps", eps)

    def _averages(self, m: Tensor, v: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the running means of the gradient and of its square after this step."""
        new_m = m * self.beta1 + g * _rest(self.beta1)
        return new_m, v * self.beta2 + F.square(g) * _rest(self.beta2)


def _rest(beta: float | Tensor) -> float | Tensor:
    """Returns one minus a decay rate as MindSpore's kernels have it, which know it as float32.

    Zoos' optimizers set their rates to tensors of one element, as MindSpore's own do.
    """
    if isinstance(beta, Tensor):
        return 1.0 - beta
    return float(np.float32(1) - np.float32(beta))


class Adam(_Moments):
    r"""Adam: :math:`m \leftarrow \beta_1 m + (1-\beta_1) g`,
    :math:`v \leftarrow \beta_2 v + (1-\beta_2) g^2`,
    :math:`w \leftarrow w - lr \frac{\sqrt{1-\beta_2^t}}{1-\beta_1^t}
    \frac{m}{\sqrt{v} + \epsilon}`.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        beta1: :math:`\beta_1` in (0, 1).
        beta2: :math:`\beta_2` in (0, 1).
        eps: :math:`\epsilon`, positive.
        use_locking: Kept for MindSpore programs; updates are always exclusive.
        use_nesterov: Uses :math:`\beta_1 m + (1-\beta_1) g` in place of :math:`m`.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.
        loss_scale: Divides the gradients.
        use_amsgrad: Divides by the largest :math:`v` so far.
        use_lazy: Kept for MindSpore programs; it differs for sparse gradients only, and all
            gradients are dense here.
        use_offload: Kept for MindSpore programs; updates run on the host anyway.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Example:
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
        >>> optimizer((ops.ones((1, 2)), ops.ones((1,))))
        True
    """

    _power_shape: tuple[int, ...] = ()  # of the powers of the betas in checkpoints

    def __init__(
        self,
        params: object,
        learning_rate: object = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: object = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
        use_lazy: bool = False,
        use_offload: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._set_betas(beta1, beta2, eps)
        for name, flag in (
            ("use_locking", use_locking), ("use_lazy", use_lazy), ("use_offload", use_offload),
        ):  # fmt: skip
            boolean("Adam", name, flag)
        self.use_nesterov = boolean("Adam", "use_nesterov", use_nesterov)
        self.use_amsgrad = boolean("Adam", "use_amsgrad", use_amsgrad)
        if use_nesterov and use_amsgrad:
            reject(ArgumentError, "Adam", "use_nesterov and use_amsgrad exclude each other")
        if use_lazy + use_offload + use_amsgrad > 1:
            reject(ArgumentError, "Adam", "use_lazy, use_offload, use_amsgrad exclude each other")
        self.beta1_power = new_scalar("beta1_power", 1.0, self._power_shape)
        self.beta2_power = new_scalar("beta2_power", 1.0, self._power_shape)
        self.moment1 = self.new_state("moment1")
        self.moment2 = self.new_state("moment2")
        self.vhat = self.new_state("vhat") if use_amsgrad else None

    def begin_step(self) -> None:
        """Advances the powers of the decay rates."""
        F.assign(self.beta1_power, self.beta1_power * self.beta1)
        F.assign(self.beta2_power, self.beta2_power * self.beta2)

    def effective_rate(self, rate: Tensor) -> Tensor:
        """Returns the learning rate with both bias corrections."""
        scale = F.sqrt(1.0 - self.beta2_power) / (1.0 - self.beta1_power)
        return rate * F.reshape(scale, ())

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        m, v = self.moment1[index], self.moment2[index]
        new_m, new_v = self._averages(m, v, gradient)
        largest = new_v
        if self.vhat is not None:
            largest = F.maximum(self.vhat[index], new_v)
            F.assign(self.vhat[index], largest)
        ahead = new_m
        if self.use_nesterov:
            ahead = new_m * self.beta1 + gradient * _rest(self.beta1)
        F.assign_sub(param, ahead * lr / (F.sqrt(largest) + self.eps))
        F.assign(m, new_m)
        F.assign(v, new_v)


class LazyAdam(Adam):
    """Adam under the name that MindSpore uses for sparse gradients.

    Gradients are dense here, and for dense ones it is :class:`Adam`, without AMSGrad.

    Example:
        >>> nn.LazyAdam(nn.Dense(2, 1).trainable_params(), 0.01).cls_name
        'LazyAdam'
    """

    _power_shape = (1,)

    def __init__(
        self,
        params: object,
        learning_rate: object = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: object = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(
            params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay,
            loss_scale,
        )  # fmt: skip


class AdamOffload(LazyAdam):
    """Adam under the name that MindSpore uses for updates on the host, where all run here.

    Example:
        >>> nn.AdamOffload(nn.Dense(2, 1).trainable_params(), 0.01).cls_name
        'AdamOffload'
    """


class AdamWeightDecay(_Moments):
    r"""Adam with decoupled weight decay and without bias correction:
    :math:`w \leftarrow w - lr (\frac{m}{\sqrt{v} + \epsilon} + \lambda w)`.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        beta1: Decay rate of the mean, in (0, 1).
        beta2: Decay rate of the mean of squares, in (0, 1).
        eps: :math:`\epsilon`, positive.
        weight_decay: :math:`\lambda`, at least 0.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Note:
        As in MindSpore, the moments are not corrected for their start at zero.

    Example:
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.AdamWeightDecay(net.trainable_params(), weight_decay=0.01)
        >>> optimizer.eps
        1e-06
    """

    def __init__(
        self,
        params: object,
        learning_rate: object = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self._set_betas(beta1, beta2, eps)
        self.moments1 = self.new_state("adam_m")
        self.moments2 = self.new_state("adam_v")

    def decay_weight(self, gradients: object) -> Any:
        """Leaves the gradients alone: the decay is part of the update."""
        return gradients

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        m, v = self.moments1[index], self.moments2[index]
        new_m, new_v = self._averages(m, v, gradient)
        step = new_m / (F.sqrt(new_v) + self.eps)
        if self.decays_weight(index):
            step = step + param * self.running_decay(index)
        F.assign_sub(param, step * lr)
        F.assign(m, new_m)
        F.assign(v, new_v)


class Lamb(_Moments):
    r"""Layer-wise adaptive moments: :math:`w \leftarrow w - lr \frac{\|w\|}{\|u\|} u` with
    :math:`u = \frac{\hat m}{\sqrt{\hat v} + \epsilon} + \lambda w` and bias-corrected moments; the
    ratio is 1 where a norm is 0.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        beta1: Decay rate of the mean, in (0, 1).
        beta2: Decay rate of the mean of squares, in (0, 1).
        eps: :math:`\epsilon`, positive.
        weight_decay: :math:`\lambda`, at least 0.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Reference:
        You et al., Large Batch Optimization for Deep Learning, https://arxiv.org/abs/1904.00962

    Example:
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.Lamb(net.trainable_params(), learning_rate=0.1)
        >>> optimizer((ops.ones((1, 2)), ops.ones((1,))))
        True
    """

    def __init__(
        self,
        params: object,
        learning_rate: object,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: object = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self._set_betas(beta1, beta2, eps)
        self.moments1 = self.new_state("lamb_m")
        self.moments2 = self.new_state("lamb_v")

    def decay_weight(self, gradients: object) -> Any:
        """Leaves the gradients alone: the decay is part of the update."""
        return gradients

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        m, v = self.moments1[index], self.moments2[index]
        new_m, new_v = self._averages(m, v, gradient)
        step = self.step_count()
        mean = new_m / (1.0 - F.pow(self.beta1, step))
        spread = F.sqrt(new_v / (1.0 - F.pow(self.beta2, step)))
        u = mean / (spread + self.eps)
        if self.decays_weight(index):
            u = u + param * self.running_decay(index)
        size, length = F.sqrt(F.sum(F.square(param))), F.sqrt(F.sum(F.square(u)))
        usable = F.logical_and(F.greater(size, 0), F.greater(length, 0))
        ratio = F.where(usable, size / length, F.ones_like(size))
        F.assign_sub(param, u * (ratio * lr))
        F.assign(m, new_m)
        F.assign(v, new_v)


class AdaMax(_Moments):
    r"""Adam with the maximum norm: :math:`v \leftarrow \max(\beta_2 v, |g|)`,
    :math:`w \leftarrow w - \frac{lr}{1-\beta_1^t} \frac{m}{v + \epsilon}`.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, Tensor, list or schedule.
        beta1: Decay rate of the mean, in (0, 1).
        beta2: Decay rate of the maximum, in (0, 1).
        eps: :math:`\epsilon`, positive.
        weight_decay: :math:`\lambda`; adds :math:`\lambda w` to the gradient.
        loss_scale: Divides the gradients.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range.

    Example:
        >>> nn.AdaMax([ms.Parameter(Tensor([1.0]), name="p")]).beta2
        0.999
    """

    def __init__(
        self,
        params: object,
        learning_rate: object = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: object = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self._set_betas(beta1, beta2, eps)
        self.beta1_power = new_scalar("beta1_power", 1.0, (1,))
        self.moment1 = self.new_state("moment1")
        self.moment2 = self.new_state("moment2")

    def begin_step(self) -> None:
        """Advances the power of the decay rate."""
        F.assign(self.beta1_power, self.beta1_power * self.beta1)

    def effective_rate(self, rate: Tensor) -> Tensor:
        """Returns the learning rate with the bias correction."""
        return rate / (1.0 - F.reshape(self.beta1_power, ()))

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        m, v = self.moment1[index], self.moment2[index]
        new_m = m * self.beta1 + gradient * (1.0 - self.beta1)
        new_v = F.maximum(v * self.beta2, F.abs(gradient))
        F.assign_sub(param, new_m * lr / (new_v + self.eps))
        F.assign(m, new_m)
        F.assign(v, new_v)


AdamW = AdamWeightDecay

__all__ = ["AdaMax", "Adam", "AdamOffload", "AdamW", "AdamWeightDecay", "Lamb", "LazyAdam"]
