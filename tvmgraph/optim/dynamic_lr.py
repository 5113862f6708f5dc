"""Learning rates as lists, one entry per step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.optim._checks import (
    above_zero,
    boolean,
    integer,
    non_negative,
    positive,
    real,
    reject,
)


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
    "cosine_decay_lr", "exponential_decay_lr", "inverse_decay_lr", "natural_exp_decay_lr",
    "piecewise_constant_lr", "polynomial_decay_lr", "warmup_lr",
]  # fmt: skip
