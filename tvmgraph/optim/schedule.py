"""Learning rates as functions of the step: schedules as Cells, and lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, reject
from tvmgraph.nn.cell import Cell
from tvmgraph.optim._checks import above_zero, boolean, integer, non_negative, positive, real


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


# ---- learning rates as lists, one entry per step -------------------------------------------------


def _by_epoch(
    op: str, total_step: int, step_per_epoch: int, rate: Callable[[int], float]
) -> list[float]:
    """Returns ``rate(epoch)`` for every step."""
    positive(op, "total_step", total_step)
    positive(op, "step_per_epoch", step_per_epoch)
    return [float(rate(i // step_per_epoch)) for i in range(total_step)]


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """Returns ``learning_rates[i]`` for the steps before ``milestone[i]``.

    Args:
        milestone: Increasing step numbers.
        learning_rates: One rate per milestone.

    Raises:
        DTypeError: if an argument is no list or holds something else than numbers.
        ArgumentError: if the lengths differ or the milestones do not increase.

    Example:
        >>> nn.piecewise_constant_lr([2, 4], [0.1, 0.01])
        [0.1, 0.1, 0.01, 0.01]
    """
    op = "piecewise_constant_lr"
    for name, value in (("milestone", milestone), ("learning_rates", learning_rates)):
        if not isinstance(value, (tuple, list)):
            reject(DTypeError, op, f"{name} must be a list, not {type(value).__name__}")
    if len(milestone) != len(learning_rates):
        reject(ArgumentError, op, "milestone and learning_rates must have the same length",
               f"{len(milestone)} milestones, {len(learning_rates)} rates")  # fmt: skip
    result: list[float] = []
    for end, rate in zip(milestone, learning_rates):
        integer(op, "milestone", end, 1)
        if end <= len(result):
            reject(ArgumentError, op, "milestones must increase", f"milestone={list(milestone)}")
        result += [float(real(op, "learning_rates", rate))] * (end - len(result))
    return result


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    r"""Exponential decay by epoch: :math:`lr \cdot rate^{epoch / decay\_epoch}`.

    Args:
        learning_rate: The first rate, positive.
        decay_rate: Factor per period, positive.
        total_step: Number of steps.
        step_per_epoch: Steps of one epoch.
        decay_epoch: Epochs of one period.
        is_stair: Whether the exponent is rounded down.

    Raises:
        ArgumentError: if an argument is not positive.

    Example:
        >>> nn.exponential_decay_lr(0.5, 0.5, 3, 1, 1)
        [0.5, 0.25, 0.125]
    """
    op = "exponential_decay_lr"
    periods = _periods(op, learning_rate, decay_rate, decay_epoch, is_stair)
    return _by_epoch(op, total_step, step_per_epoch,
                     lambda e: learning_rate * decay_rate ** periods(e))  # fmt: skip


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    r"""Natural exponential decay by epoch: :math:`lr \cdot e^{-rate \cdot epoch}`.

    Args:
        learning_rate: The first rate, positive.
        decay_rate: The exponent's factor, positive.
        total_step: Number of steps.
        step_per_epoch: Steps of one epoch.
        decay_epoch: Epochs of one stair.
        is_stair: Whether the epoch is rounded down to a multiple of ``decay_epoch``.

    Raises:
        ArgumentError: if an argument is not positive.

    Example:
        >>> len(nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 1))
        6
    """
    op = "natural_exp_decay_lr"
    _periods(op, learning_rate, decay_rate, decay_epoch, is_stair)

    def rate(epoch: int) -> float:
        passed = epoch // decay_epoch * decay_epoch if is_stair else epoch
        return learning_rate * math.exp(-decay_rate * passed)

    return _by_epoch(op, total_step, step_per_epoch, rate)


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    r"""Inverse decay by epoch: :math:`lr / (1 + rate \cdot epoch / decay\_epoch)`.

    Args:
        learning_rate: The first rate, positive.
        decay_rate: Growth of the divisor, positive.
        total_step: Number of steps.
        step_per_epoch: Steps of one epoch.
        decay_epoch: Epochs of one period.
        is_stair: Whether the quotient is rounded down.

    Raises:
        ArgumentError: if an argument is not positive.

    Example:
        >>> nn.inverse_decay_lr(0.5, 1.0, 2, 1, 1)
        [0.5, 0.25]
    """
    op = "inverse_decay_lr"
    periods = _periods(op, learning_rate, decay_rate, decay_epoch, is_stair)
    return _by_epoch(op, total_step, step_per_epoch,
                     lambda e: learning_rate / (1 + decay_rate * periods(e)))  # fmt: skip


def _periods(
    op: str, learning_rate: float, decay_rate: float, decay_epoch: int, is_stair: bool
) -> Callable[[int], float]:
    """Checks the arguments of a decay; returns the number of periods before an epoch."""
    above_zero(op, "learning_rate", learning_rate)
    above_zero(op, "decay_rate", decay_rate)
    positive(op, "decay_epoch", decay_epoch)
    boolean(op, "is_stair", is_stair)
    return lambda e: e // decay_epoch if is_stair else e / decay_epoch


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    r"""Half a cosine by epoch:
    :math:`min + (max - min)(1 + \cos(\pi \min(epoch, n) / n)) / 2`.

    Args:
        min_lr: The last rate, at least 0.
        max_lr: The first rate, greater than ``min_lr``.
        total_step: Number of steps.
        step_per_epoch: Steps of one epoch.
        decay_epoch: :math:`n`.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> nn.cosine_decay_lr(0.0, 0.5, 3, 1, 2)
        [0.5, 0.25, 0.0]
    """
    op = "cosine_decay_lr"
    non_negative(op, "min_lr", min_lr)
    above_zero(op, "max_lr", max_lr)
    positive(op, "decay_epoch", decay_epoch)
    if min_lr >= max_lr:
        reject(ArgumentError, op, f"min_lr {min_lr} must be below max_lr {max_lr}")
    half = 0.5 * (max_lr - min_lr)

    def rate(epoch: int) -> float:
        return min_lr + half * (1 + math.cos(math.pi * min(epoch, decay_epoch) / decay_epoch))

    return _by_epoch(op, total_step, step_per_epoch, rate)


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    r"""Polynomial decay by epoch:
    :math:`(lr - end)(1 - \min(epoch, n) / n)^{power} + end`.

    Args:
        learning_rate: The first rate, positive.
        end_learning_rate: The last rate, at least 0.
        total_step: Number of steps.
        step_per_epoch: Steps of one epoch.
        decay_epoch: :math:`n`.
        power: The exponent, positive.
        update_decay_epoch: Whether :math:`n` grows to the next multiple once it is passed.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> nn.polynomial_decay_lr(0.5, 0.0, 3, 1, 2, 1.0)
        [0.5, 0.25, 0.0]
    """
    op = "polynomial_decay_lr"
    above_zero(op, "learning_rate", learning_rate)
    non_negative(op, "end_learning_rate", end_learning_rate)
    positive(op, "decay_epoch", decay_epoch)
    above_zero(op, "power", power)
    boolean(op, "update_decay_epoch", update_decay_epoch)

    def rate(epoch: int) -> float:
        length, passed = decay_epoch, epoch
        if update_decay_epoch:
            length *= max(math.ceil(epoch / decay_epoch), 1)
        else:
            passed = min(epoch, decay_epoch)
        span = learning_rate - end_learning_rate
        return span * (1 - passed / length) ** power + end_learning_rate

    return _by_epoch(op, total_step, step_per_epoch, rate)


def warmup_lr(
    learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int
) -> list[float]:
    r"""Linear warm-up by epoch: :math:`lr \cdot \min(epoch, n) / n`.

    Args:
        learning_rate: The rate after the warm-up, at least 0.
        total_step: Number of steps.
        step_per_epoch: Steps of one epoch.
        warmup_epoch: :math:`n`.

    Raises:
        ArgumentError: if an argument is negative.

    Example:
        >>> nn.warmup_lr(0.5, 3, 1, 2)
        [0.0, 0.25, 0.5]
    """
    non_negative("warmup_lr", "learning_rate", learning_rate)
    positive("warmup_lr", "warmup_epoch", warmup_epoch)
    return _by_epoch("warmup_lr", total_step, step_per_epoch,
                     lambda e: learning_rate * min(e, warmup_epoch) / warmup_epoch)  # fmt: skip


__all__ = [
    "CosineDecayLR", "ExponentialDecayLR", "InverseDecayLR", "LearningRateSchedule",
    "NaturalExpDecayLR", "PolynomialDecayLR", "WarmUpLR", "cosine_decay_lr", "exponential_decay_lr",
    "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr", "polynomial_decay_lr",
    "warmup_lr",
]  # fmt: skip
