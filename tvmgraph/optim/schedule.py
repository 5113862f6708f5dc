"""Learning-rate schedules as Cells: the learning rate as a function of the step."""

from __future__ import annotations

import math

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError
from tvmgraph.nn.cell import Cell
from tvmgraph.optim._checks import above_zero, boolean, non_negative, positive, reject


class LearningRateSchedule(Cell):
    r"""Base class of schedules: write ``construct(self, global_step)`` in a subclass.

    An optimizer that is given a schedule calls it with the number of steps taken so far, an int32
    Tensor of shape (1,). Inside a compiled step it is part of the graph.

    Example:
        >>> class Linear(nn.LearningRateSchedule):
        ...     def construct(self, global_step):
        ...         return 0.1 / (1 + ops.cast(global_step, ms.float32))
        >>> float(Linear()(Tensor(1)))
        0.05000000074505806
    """

    def construct(self, global_step: Tensor) -> Tensor:
        """Returns the learning rate of a step; every subclass writes its own.

        Args:
            global_step: Steps taken so far, an int32 Tensor of shape (1,).

        Returns:
            The rate, a Tensor of one element.

        Raises:
            NotImplementedError: in the base class.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a construct(self, global_step)")


def as_float(global_step: object) -> Tensor:
    """Returns the step as a float32 tensor.

    Args:
        global_step: A number or tensor.
    """
    step = global_step if isinstance(global_step, Tensor) else Tensor(global_step)
    return F.cast(step, dtypes.float32)


class _Decay(LearningRateSchedule):
    """A rate that decays by ``decay_rate`` every ``decay_steps`` steps."""

    def __init__(
        self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.learning_rate = above_zero(name, "learning_rate", learning_rate)
        self.decay_rate = above_zero(name, "decay_rate", decay_rate)
        self.decay_steps = positive(name, "decay_steps", decay_steps)
        self.is_stair = boolean(name, "is_stair", is_stair)

    def periods(self, global_step: Tensor) -> Tensor:
        """Returns :math:`p`, how many decay periods have passed."""
        p = as_float(global_step) / self.decay_steps
        return F.floor(p) if self.is_stair else p


class ExponentialDecayLR(_Decay):
    r"""Exponential decay: :math:`lr \cdot rate^{p}` with :math:`p = step / decay\_steps`.

    Args:
        learning_rate: The rate at step 0, positive.
        decay_rate: Factor per period, positive.
        decay_steps: Steps of one period.
        is_stair: Whether :math:`p` is rounded down.

    Raises:
        ArgumentError: if an argument is not positive.

    Example:
        >>> float(nn.ExponentialDecayLR(0.5, 0.5, 4)(Tensor(8)))
        0.125
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return F.pow(self.decay_rate, self.periods(global_step)) * self.learning_rate


class NaturalExpDecayLR(_Decay):
    r"""Natural exponential decay: :math:`lr \cdot e^{-rate \cdot p}` with :math:`p = step`.

    Args:
        learning_rate: The rate at step 0, positive.
        decay_rate: The exponent's factor per step, positive.
        decay_steps: Steps of one stair.
        is_stair: Whether :math:`p` is rounded down to a multiple of ``decay_steps``.

    Raises:
        ArgumentError: if an argument is not positive.

    Example:
        >>> float(nn.NaturalExpDecayLR(0.5, 0.9, 4)(Tensor(0)))
        0.5
    """

    def construct(self, global_step: Tensor) -> Tensor:
        step = as_float(global_step)
        if self.is_stair:
            step = F.floor(step / self.decay_steps) * self.decay_steps
        return F.exp(step * -self.decay_rate) * self.learning_rate


class InverseDecayLR(_Decay):
    r"""Inverse decay: :math:`lr / (1 + rate \cdot p)` with :math:`p = step / decay\_steps`.

    Args:
        learning_rate: The rate at step 0, positive.
        decay_rate: Growth of the divisor per period, positive.
        decay_steps: Steps of one period.
        is_stair: Whether :math:`p` is rounded down.

    Raises:
        ArgumentError: if an argument is not positive.

    Example:
        >>> float(nn.InverseDecayLR(0.5, 1.0, 4)(Tensor(4)))
        0.25
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate / (self.periods(global_step) * self.decay_rate + 1.0)


class CosineDecayLR(LearningRateSchedule):
    r"""Half a cosine from ``max_lr`` to ``min_lr``:
    :math:`min + (max - min)(1 + \cos(\pi \min(step, n) / n)) / 2`.

    Args:
        min_lr: The rate from step ``decay_steps`` on, at least 0.
        max_lr: The rate at step 0, greater than ``min_lr``.
        decay_steps: :math:`n`.

    Raises:
        ArgumentError: if ``min_lr`` is not smaller than ``max_lr`` or an argument is negative.

    Example:
        >>> float(nn.CosineDecayLR(0.0, 0.5, 4)(Tensor(4)))
        0.0
    """

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        self.min_lr = non_negative("CosineDecayLR", "min_lr", min_lr)
        self.max_lr = above_zero("CosineDecayLR", "max_lr", max_lr)
        self.decay_steps = positive("CosineDecayLR", "decay_steps", decay_steps)
        if min_lr >= max_lr:
            reject(ArgumentError, "CosineDecayLR", f"min_lr {min_lr} must be below max_lr {max_lr}")

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.minimum(as_float(global_step), float(self.decay_steps))
        half = 0.5 * (self.max_lr - self.min_lr)
        return (F.cos(step * (math.pi / self.decay_steps)) + 1.0) * half + self.min_lr


class PolynomialDecayLR(LearningRateSchedule):
    r"""Polynomial decay: :math:`(lr - end)(1 - \min(step, n) / n)^{power} + end`.

    Args:
        learning_rate: The rate at step 0, positive.
        end_learning_rate: The rate at the end, at least 0.
        decay_steps: :math:`n`.
        power: The exponent, positive.
        update_decay_steps: Whether :math:`n` grows to the next multiple once it is passed.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> float(nn.PolynomialDecayLR(0.5, 0.0, 4, 1.0)(Tensor(2)))
        0.25
    """

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        name = "PolynomialDecayLR"
        self.learning_rate = above_zero(name, "learning_rate", learning_rate)
        self.end_learning_rate = non_negative(name, "end_learning_rate", end_learning_rate)
        self.decay_steps = positive(name, "decay_steps", decay_steps)
        self.power = above_zero(name, "power", power)
        self.update_decay_steps = boolean(name, "update_decay_steps", update_decay_steps)

    def construct(self, global_step: Tensor) -> Tensor:
        step = as_float(global_step)
        if self.update_decay_steps:
            rounds = F.maximum(F.ceil(step / self.decay_steps), 1.0)
            share = step / (rounds * float(self.decay_steps))
        else:
            share = F.minimum(step, float(self.decay_steps)) / self.decay_steps
        span = self.learning_rate - self.end_learning_rate
        return F.pow(1.0 - share, self.power) * span + self.end_learning_rate


class WarmUpLR(LearningRateSchedule):
    r"""Linear warm-up: :math:`lr \cdot \min(step, n) / n`.

    Args:
        learning_rate: The rate after the warm-up, at least 0.
        warmup_steps: :math:`n`.

    Raises:
        ArgumentError: if an argument is negative.

    Example:
        >>> float(nn.WarmUpLR(0.5, 4)(Tensor(2)))
        0.25
    """

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self.learning_rate = non_negative("WarmUpLR", "learning_rate", learning_rate)
        self.warmup_steps = positive("WarmUpLR", "warmup_steps", warmup_steps)

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.minimum(as_float(global_step), float(self.warmup_steps))
        return step * (self.learning_rate / self.warmup_steps)


__all__ = [
    "CosineDecayLR", "ExponentialDecayLR", "InverseDecayLR", "LearningRateSchedule",
    "NaturalExpDecayLR", "PolynomialDecayLR", "WarmUpLR",
]  # fmt: skip
