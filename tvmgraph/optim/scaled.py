"""Optimizers that scale steps by the size of the weights: AdaFactor and LARS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph.core.columns import NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter, ParameterTuple
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.nn.cell import Cell
from tvmgraph.optim._checks import boolean, fraction, non_negative, pair, reject
from tvmgraph.optim.base import Optimizer, new_scalar


def _root_mean_square(x: Tensor) -> Tensor:
    return F.sqrt(F.mean(F.square(x)))


class AdaFactor(Optimizer):
    r"""AdaFactor: the second moment of a matrix is kept as its row and column means only.

    With :math:`\beta = 1 - t^{-r}`, rows :math:`R \leftarrow \beta R + (1-\beta)\,mean_{-1}(g^2 +
    \epsilon_1)` and columns :math:`C` likewise, the step is
    :math:`u = g / \sqrt{R C / mean(R)}`, divided by :math:`\max(1, rms(u) / d)` and multiplied by
    the learning rate.

    Args:
        params: Parameters or groups, see :class:`Optimizer`.
        learning_rate: A number, list or schedule; None with ``relative_step``.
        eps: :math:`\epsilon_1`, and the smallest size of the weights that counts.
        clip_threshold: :math:`d`.
        decay_rate: :math:`r` in (0, 1).
        beta1: Decay of the mean of the steps; 0 keeps none.
        weight_decay: :math:`\lambda`; subtracts :math:`lr \lambda w`.
        scale_parameter: Multiplies the learning rate by the root mean square of the weights.
        relative_step: Uses :math:`\min(10^{-2}, 1/\sqrt t)` as learning rate.
        warmup_init: Starts that at :math:`10^{-6} t`.
        compression: Keeps the second moment of vectors in float16.
        loss_scale: Divides the gradients.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        ArgumentError: if a number is outside its range or the learning rate is given twice.

    Reference:
        Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018.

    Example:
        >>> optimizer = nn.AdaFactor(nn.Dense(4, 3).trainable_params())
        >>> [s.shape for s in optimizer.exp_avg_sq_row]
        [(3,), (1,)]
    """

    def __init__(
        self,
        params: object,
        learning_rate: object = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = 0.8,
        beta1: float | None = 0.9,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
        compression: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        self.__check_rate(learning_rate, relative_step, warmup_init)
        rate = 0.0 if learning_rate is None else learning_rate
        super().__init__(rate, params, weight_decay, loss_scale)
        self.eps = pair("AdaFactor", "eps", eps)
        self.clip_threshold = non_negative("AdaFactor", "clip_threshold", clip_threshold)
        self.decay_rate = fraction("AdaFactor", "decay_rate", decay_rate)
        self.beta1 = non_negative("AdaFactor", "beta1", beta1 or 0.0)
        self.scale_parameter = boolean("AdaFactor", "scale_parameter", scale_parameter)
        self.relative_step, self.warmup_init = relative_step, warmup_init
        self.compression = boolean("AdaFactor", "compression", compression)
        self.exp_avg = self.new_state("exp_avg") if self.beta1 else None
        self.exp_avg_sq_row = self.__means("row", lambda s: s[:-1])
        self.exp_avg_sq_col = self.__means("col", lambda s: (*s[:-2], s[-1]))
        self.exp_avg_sq = self.__second_moments()
        self.step = new_scalar("afactor_step", 0.0, (1,))

    @staticmethod
    def __check_rate(learning_rate: object, relative_step: bool, warmup_init: bool) -> None:
        boolean("AdaFactor", "relative_step", relative_step)
        boolean("AdaFactor", "warmup_init", warmup_init)
        if (learning_rate is None) != relative_step:
            reject(ArgumentError, "AdaFactor", "give learning_rate or relative_step=True, not both",
                   f"learning_rate={learning_rate}, relative_step={relative_step}")  # fmt: skip
        if warmup_init and not relative_step:
            reject(ArgumentError, "AdaFactor", "warmup_init needs relative_step=True")

    def __register(self, kind: str, states: list[Parameter]) -> ParameterTuple:
        for i, s in enumerate(states):
            self.insert_param_to_cell(f"{kind}.{i}", s, check_name_contain_dot=False)
        return ParameterTuple(states)

    def __means(
        self, axis: str, shape: Callable[[tuple[int, ...]], tuple[int, ...]]
    ) -> ParameterTuple:
        states = [
            _zeros(f"exp_avg_sq_{axis}_{p.name}", shape(p.shape) if p.ndim > 1 else (1,), p)
            for p in self.parameters
        ]
        return self.__register(f"exp_avg_sq_{axis}", states)

    def __second_moments(self) -> ParameterTuple:
        half = np.dtype(np.float16) if self.compression else None
        states = [
            _zeros(f"exp_avg_sq_{p.name}", (1,), p)
            if p.ndim > 1
            else _zeros(f"exp_avg_sq_{p.name}", p.shape, p, half)
            for p in self.parameters
        ]
        return self.__register("exp_avg_sq", states)

    def decay_weight(self, gradients: object) -> Any:
        """Leaves the gradients alone: the decay is part of the update."""
        return gradients

    def begin_step(self) -> None:
        """Counts the step in the state that checkpoints of MindSpore have for it."""
        F.assign_add(self.step, 1.0)

    def update(self, index: int, param: Parameter, gradient: Tensor, lr: Tensor) -> None:
        """Changes one parameter."""
        step = F.reshape(self.step.value(), ())
        if self.relative_step:
            lr = F.minimum(step * 1e-6 if self.warmup_init else 1e-2, F.rsqrt(step))
        if self.scale_parameter:
            lr = lr * F.maximum(_root_mean_square(param), self.eps[1])
        move = gradient * self.__inverse_root(index, gradient, F.pow(step, -self.decay_rate))
        move = move / F.maximum(_root_mean_square(move) / self.clip_threshold, 1.0) * lr
        if self.exp_avg is not None:
            mean = self.exp_avg[index] * self.beta1 + move * (1 - self.beta1)
            F.assign(self.exp_avg[index], mean)
            move = mean
        if self.decays_weight(index):
            move = move + param * (lr * self.running_decay(index))
        F.assign_sub(param, move)

    def __inverse_root(self, index: int, gradient: Tensor, rest: Tensor) -> Tensor:
        """Moves the second moment by the share ``rest``; returns one over its root."""
        square = F.square(gradient) + self.eps[0]
        if gradient.ndim < 2:
            return F.rsqrt(_blend(self.exp_avg_sq[index], square, rest))
        row = _blend(self.exp_avg_sq_row[index], F.mean(square, -1), rest)
        col = _blend(self.exp_avg_sq_col[index], F.mean(square, -2), rest)
        row = F.rsqrt(row / F.mean(row, -1, keep_dims=True))
        return F.expand_dims(row, -1) * F.expand_dims(F.rsqrt(col), -2)


def _zeros(name: str, shape: tuple[int, ...], like: Parameter, dtype: Any = None) -> Parameter:
    return Parameter(Tensor(np.zeros(shape, dtype or like.dtype.numpy)), name)


def _blend(state: Parameter, new: Tensor, rest: Tensor) -> Tensor:
    """Moves a running mean by the share ``rest`` towards ``new``."""
    mixed = state * (1.0 - rest) + new * rest
    F.assign(state, F.cast(mixed, state.dtype))
    return F.cast(state.value(), new.dtype)


def _is_scaled(param: Parameter) -> bool:
    return "LayerNorm" not in param.name and "bias" not in param.name


class LARS(Optimizer):
    r"""Layer-wise adaptive rates around another optimizer: it is given
    :math:`\lambda (g + \delta w)` with :math:`\lambda = \theta \frac{\|w\|}{\|g\| + \delta \|w\| +
    \epsilon}` instead of :math:`g`; :math:`\delta` is its weight decay.

    Args:
        optimizer: The optimizer that takes the step.
        epsilon: :math:`\epsilon`.
        coefficient: :math:`\theta`.
        use_clip: Whether :math:`\lambda` is bounded by the learning rate:
            :math:`\min(\lambda / lr, 1)`.
        lars_filter: Says of a Parameter whether it is scaled; the others keep :math:`g`.

    Inputs:
        - **gradients** (tuple[Tensor]) - One gradient per parameter.

    Outputs:
        bool, True.

    Raises:
        DTypeError: if ``optimizer`` is not an optimizer.

    Reference:
        You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", 2017.

    Example:
        >>> inner = nn.Momentum(nn.Dense(4, 3).trainable_params(), 0.1, 0.9)
        >>> nn.LARS(inner, coefficient=0.02).lars_flag
        (True, False)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        epsilon: float = 1e-5,
        coefficient: float = 1e-3,
        use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = _is_scaled,
    ) -> None:
        Cell.__init__(self, auto_prefix=False)  # what is read is the state of the optimizer inside
        if not isinstance(optimizer, Optimizer):
            reject(DTypeError, "LARS", f"optimizer is a {type(optimizer).__name__}",
                   fix="pass an optimizer, such as nn.Momentum(params, 0.1, 0.9)")  # fmt: skip
        self.epsilon = non_negative("LARS", "epsilon", epsilon)
        self.coefficient = non_negative("LARS", "coefficient", coefficient)
        self.use_clip = boolean("LARS", "use_clip", use_clip)
        self.global_step = optimizer.global_step
        # MindSpore's has these of a base class, and so its checkpoints do; nothing reads them
        self.learning_rate = Parameter(Tensor(0.0), "fake_lr")
        self.fake_param = Parameter(Tensor(0.0), "fake_param")
        self.opt = optimizer
        optimizer.exec_weight_decay = False  # it is part of the scaled gradients
        self.lars_flag = tuple(bool(lars_filter(p)) for p in optimizer.parameters)
        for name in ("parameters", "loss_scale", "is_group", "is_group_lr", "dynamic_lr"):
            object.__setattr__(self, name, getattr(optimizer, name))

    def construct(self, gradients: Sequence[Tensor]) -> Any:
        inner = self.opt
        gradients = inner.scale_grad(inner.check_gradients(gradients))
        rates, decays = inner.rates(), inner.decays()
        scaled = [
            self.__scale(p, g, decay if decays_here else 0.0, rate) if wanted else g
            for p, g, rate, decay, wanted, decays_here in zip(
                self.parameters, gradients, rates, decays, self.lars_flag, inner.decay_flags
            )
        ]
        if self.__has_only_construct(type(inner)):  # which divides by the loss scale itself
            return inner(tuple(g * inner.loss_scale for g in scaled))
        return inner.apply_gradients(scaled)

    @staticmethod
    def __has_only_construct(kind: type[Optimizer]) -> bool:
        """Whether a program's own optimizer takes gradients as MindSpore's do."""
        own = kind.update is not Optimizer.update
        own = own or kind.apply_gradients is not Optimizer.apply_gradients
        return kind.construct is not Optimizer.construct and not own

    def __scale(
        self, param: Parameter, gradient: Tensor, decay: NumberLike, rate: Tensor
    ) -> Tensor:
        size = F.sqrt(F.sum(F.square(param)))
        other = F.sqrt(F.sum(F.square(gradient)))
        trust = size * self.coefficient / (other + size * decay + self.epsilon)
        if self.use_clip:
            trust = F.minimum(trust / rate, 1.0)
        return (gradient + param * decay) * trust

    def get_lr(self) -> Any:
        """Returns the learning rate of the optimizer inside."""
        return self.opt.get_lr()

    def get_weight_decay(self) -> object:
        """Returns the weight decay of the optimizer inside."""
        return self.opt.get_weight_decay()


__all__ = ["LARS", "AdaFactor"]
