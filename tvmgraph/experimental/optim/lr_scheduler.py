"""Schedules that change the learning rates of an optimizer's groups at every ``step()``.

The epoch and the rates are Parameters and are computed as tensors, so ``step()`` also compiles.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float32
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.experimental.optim.base import Optimizer
from tvmgraph.optim._checks import reject
from tvmgraph.optim.base import new_scalar


def _per_group(op: str, name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """Returns a value per group, of one value or a list of them."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        reject(ArgumentError, op, f"{count} values of {name} are needed, one per group",
               f"{len(value)}")  # fmt: skip
    return list(value)


class LRScheduler:
    """Base of the schedules: derive a class and write ``get_lr()``.

    Args:
        optimizer: An optimizer of :mod:`tvmgraph.experimental.optim`.
        last_epoch: Epoch before the first; -1 starts anew.

    Raises:
        DTypeError: if it is no such optimizer.
        ArgumentError: if ``last_epoch`` is below -1.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            reject(DTypeError, name, "an optimizer of tvmgraph.experimental.optim is needed",
                   type(optimizer).__name__)  # fmt: skip
        if last_epoch < -1:
            reject(ArgumentError, name, "last_epoch must be at least -1", f"{last_epoch}")
        for group in optimizer.param_groups:
            if last_epoch != -1 and "initial_lr" not in group:
                reject(ArgumentError, name, "a group that is resumed needs 'initial_lr'")
            group.setdefault("initial_lr", group["lr"].snapshot())
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._last_lr = list(optimizer.lrs)
        self.groups_num = len(optimizer.param_groups)
        self.last_epoch = new_scalar(f"last_epoch_{name}", last_epoch)
        self.step()

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun.

        Raises:
            NotImplementedError: in the base class.
        """
        raise NotImplementedError(f"{type(self).__name__} needs get_lr()")

    def get_last_lr(self) -> list[Tensor]:
        """Returns the present rates of the groups."""
        return [lr.snapshot() for lr in self._last_lr]

    def step(self, epoch: Any = None) -> bool | None:
        """Begins the next epoch, or ``epoch``, and sets the rates.

        Args:
            epoch: Number of the epoch; by default the next.
        """
        if epoch is None:
            F.assign_add(self.last_epoch, 1.0)
            values = self.get_lr()
        else:
            F.assign(self.last_epoch, F.cast(Tensor(epoch), float32))
            values = getattr(self, "_get_closed_form_lr", self.get_lr)()
        self._assign(values)
        return True

    def _assign(self, values: list[Tensor]) -> None:
        for lr, value in zip(self._last_lr, values):
            value = value if isinstance(value, Tensor) else Tensor(value, float32)
            F.assign(lr, F.cast(F.reshape(value, ()), float32))

    def _scaled(self, factor: Any) -> list[Tensor]:
        return [lr * factor for lr in self._last_lr]

    def _from_base(self, factor: Any) -> list[Tensor]:
        return [lr * factor for lr in self.base_lrs]


class StepLR(LRScheduler):
    """Multiplies the rates by ``gamma`` every ``step_size`` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1,
                 last_epoch: int = -1) -> None:  # fmt: skip
        if step_size < 1:
            raise ArgumentError("step_size must be positive", got=f"step_size={step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        whole = F.equal(F.floor_mod(self.last_epoch, self.step_size), 0)
        now = F.logical_and(self.last_epoch > 0, whole)
        return self._scaled(F.where(now, self.gamma, 1.0))

    def _get_closed_form_lr(self) -> list[Tensor]:
        return self._from_base(F.pow(self.gamma, F.floor(self.last_epoch / self.step_size)))


class MultiStepLR(LRScheduler):
    """Multiplies the rates by ``gamma`` at each of the ``milestones``."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1,
                 last_epoch: int = -1) -> None:  # fmt: skip
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        here = F.equal(Tensor(np.array(self.milestones, np.float32)), self.last_epoch)
        return self._scaled(F.pow(self.gamma, F.sum(F.cast(here, float32))))

    def _get_closed_form_lr(self) -> list[Tensor]:
        past = Tensor(np.array(self.milestones, np.float32)) <= self.last_epoch
        return self._from_base(F.pow(self.gamma, F.sum(F.cast(past, float32))))


class ConstantLR(LRScheduler):
    """Multiplies the rates by ``factor`` until ``total_iters`` epochs have passed."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
                 last_epoch: int = -1) -> None:  # fmt: skip
        if not 0 <= factor <= 1:
            reject(ArgumentError, "ConstantLR", "factor must be between 0 and 1", f"{factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        end = F.where(F.equal(self.last_epoch, self.total_iters), 1 / self.factor, 1.0)
        return self._scaled(F.where(F.equal(self.last_epoch, 0), self.factor, end))

    def _get_closed_form_lr(self) -> list[Tensor]:
        return self._from_base(F.where(self.last_epoch >= self.total_iters, 1.0, self.factor))


class LinearLR(LRScheduler):
    """Multiplies the rates by a factor that goes evenly from ``start_factor`` to ``end_factor``."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3,
                 end_factor: float = 1.0, total_iters: int = 5,
                 last_epoch: int = -1) -> None:  # fmt: skip
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            reject(ArgumentError, "LinearLR", "the factors must be between 0 and 1",
                   f"{start_factor}, {end_factor}")  # fmt: skip
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        factor = F.where(self.last_epoch > self.total_iters, 1.0, 1.0 + rise / before)
        return self._scaled(F.where(F.equal(self.last_epoch, 0), self.start_factor, factor))

    def _get_closed_form_lr(self) -> list[Tensor]:
        share = F.minimum(self.last_epoch, self.total_iters) / self.total_iters
        return self._from_base(self.start_factor + (self.end_factor - self.start_factor) * share)


class ExponentialLR(LRScheduler):
    """Multiplies the rates by ``gamma`` at every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        return self._scaled(F.where(F.equal(self.last_epoch, 0), 1.0, self.gamma))

    def _get_closed_form_lr(self) -> list[Tensor]:
        return self._from_base(F.pow(self.gamma, self.last_epoch))


class PolynomialLR(LRScheduler):
    """Lets the rates fall to 0 as a power of what is left of ``total_iters`` epochs."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0,
                 last_epoch: int = -1) -> None:  # fmt: skip
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        epoch = self.last_epoch
        running = F.logical_and(epoch > 0, epoch <= self.total_iters)
        share = (1.0 - epoch / self.total_iters) / (1.0 - (epoch - 1) / self.total_iters)
        return self._scaled(F.where(running, F.pow(F.where(running, share, 1.0), self.power), 1.0))

    def _get_closed_form_lr(self) -> list[Tensor]:
        left = 1.0 - F.minimum(self.last_epoch, self.total_iters) / self.total_iters
        return self._from_base(F.pow(left, self.power))


class LambdaLR(LRScheduler):
    """Multiplies the first rates by a function of the epoch, or by one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _per_group("LambdaLR", "lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(LRScheduler):
    """Multiplies the rates at every epoch by a function of it, or by one per group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _per_group("MultiplicativeLR", "lr_lambda", lr_lambda, optimizer)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        first = F.equal(self.last_epoch, 0)
        return [lr * F.where(first, 1.0, f(self.last_epoch))
                for f, lr in zip(self.lr_lambdas, self._last_lr)]  # fmt: skip


class CosineAnnealingLR(LRScheduler):
    """Lets the rates fall to ``eta_min`` along half a cosine of ``T_max`` epochs and rise again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0,  # noqa: N803
                 last_epoch: int = -1) -> None:  # fmt: skip
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        epoch, low, turn = self.last_epoch, self.eta_min, math.pi / self.T_max
        restart = F.equal(F.floor_mod(epoch - 1 - self.T_max, 2 * self.T_max), 0)
        below = F.where(restart, 1.0, 1 + F.cos((epoch - 1) * turn))
        share = (1 + F.cos(epoch * turn)) / below
        found = []
        for base, lr in zip(self.base_lrs, self._last_lr):
            up = lr + (base - low) * ((1 - math.cos(turn)) / 2)
            now = F.where(restart, up, share * (lr - low) + low)
            found.append(F.where(F.equal(epoch, 0), lr, now))
        return found

    def _get_closed_form_lr(self) -> list[Tensor]:
        share = (1 + F.cos(self.last_epoch * (math.pi / self.T_max))) / 2
        return [self.eta_min + (lr - self.eta_min) * share for lr in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines down to ``eta_min``, each ``T_mult`` times as long as the one before.

    Args:
        optimizer: The optimizer.
        T_0: Epochs of the first.
        T_mult: How much longer the next is.
        eta_min: Smallest rate.
        last_epoch: Epoch before the first.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1,  # noqa: N803
                 eta_min: float = 0, last_epoch: int = -1) -> None:  # fmt: skip
        if T_0 <= 0 or T_mult < 1:
            reject(ArgumentError, "CosineAnnealingWarmRestarts", "T_0 and T_mult must be above 0",
                   f"T_0={T_0}, T_mult={T_mult}")  # fmt: skip
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i = new_scalar("T_i", T_0)
        self.T_cur = new_scalar("T_cur", last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the epoch that has begun."""
        share = (1 + F.cos(self.T_cur / self.T_i * math.pi)) / 2
        return [self.eta_min + (lr - self.eta_min) * share for lr in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Begins the next epoch, or ``epoch`` (a number, which may have a fraction).

        Args:
            epoch: Number of the epoch; by default the next.
        """
        if epoch is None:
            past = self.T_cur + 1
            over = past >= self.T_i
            F.assign(self.T_cur, F.where(over, past - self.T_i, past))
            F.assign(self.T_i, F.where(over, self.T_i * self.T_mult, self.T_i.snapshot()))
            F.assign_add(self.last_epoch, 1.0)
        else:
            self._jump(float(epoch))
        self._assign(self.get_lr())

    def _jump(self, epoch: float) -> None:
        if epoch < 0:
            reject(ArgumentError, "CosineAnnealingWarmRestarts", "epoch must not be negative")
        length, past = float(self.T_0), epoch
        while past >= length:
            past -= length
            length *= self.T_mult
        for place, value in ((self.T_cur, past), (self.T_i, length),
                             (self.last_epoch, math.floor(epoch))):  # fmt: skip
            F.assign(place, Tensor(value, float32))


class CyclicLR(LRScheduler):
    """Lets the rates rise and fall evenly between two bounds.

    Args:
        optimizer: The optimizer.
        base_lr: Lower bound, or one per group.
        max_lr: Upper bound, or one per group.
        step_size_up: Steps of the rise.
        step_size_down: Steps of the fall; as many unless told.
        mode: "triangular", "triangular2" (halved at every cycle), "exp_range" (``gamma ** step``).
        gamma: See ``mode``.
        scale_fn: Function of the cycle or step that replaces ``mode``.
        scale_mode: What ``scale_fn`` is given: "cycle" or "iterations".
        last_epoch: Step before the first.
    """

    def __init__(self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[Any], Any] | None = None, scale_mode: str = "cycle",
                 last_epoch: int = -1) -> None:  # fmt: skip
        base = _per_group("CyclicLR", "base_lr", base_lr, optimizer)
        self.max_lrs = _per_group("CyclicLR", "max_lr", max_lr, optimizer)
        scales = {
            "triangular": lambda _: 1.0, "triangular2": lambda c: F.pow(2.0, 1 - c),
            "exp_range": lambda n: F.pow(gamma, n),
        }  # fmt: skip
        if scale_fn is None and mode not in scales:
            reject(ArgumentError, "CyclicLR", f"mode must be one of {list(scales)}", repr(mode))
        self.scale_fn = scales[mode] if scale_fn is None else scale_fn
        by_step = scale_mode != "cycle" if scale_fn is not None else mode == "exp_range"
        self.mode, self.gamma, self._by_step = mode, gamma, by_step
        self.total_step_size = step_size_up + (step_size_down or step_size_up)
        self.step_up_ratio = step_size_up / self.total_step_size
        if last_epoch == -1:
            for lr, group in zip(base, optimizer.param_groups):
                F.assign(group["lr"], Tensor(lr, float32))
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base
        self._assign(self.get_lr())

    def get_lr(self) -> list[Tensor]:
        """Returns the rates of the step that has begun."""
        cycle = F.floor(1 + self.last_epoch / self.total_step_size)
        x = 1 + self.last_epoch / self.total_step_size - cycle
        up = self.step_up_ratio
        height = F.where(x <= up, x / up, (x - 1) / (up - 1) if up < 1 else x)
        scale = self.scale_fn(self.last_epoch if self._by_step else cycle)
        return [low + (high - low) * height * scale
                for low, high in zip(self.base_lrs, self.max_lrs)]  # fmt: skip


class SequentialLR:
    """Schedules that follow one another.

    Args:
        optimizer: Their optimizer.
        schedulers: The schedules.
        milestones: Epochs at which the next one begins.
        last_epoch: Epoch before the first.
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler],
                 milestones: Sequence[int], last_epoch: int = -1) -> None:  # fmt: skip
        if any(s.optimizer is not optimizer for s in schedulers):
            reject(ArgumentError, "SequentialLR", "all schedules must be of the same optimizer")
        if len(milestones) != len(schedulers) - 1:
            reject(ArgumentError, "SequentialLR", "one milestone less than schedules is needed",
                   f"{len(milestones)} milestones, {len(schedulers)} schedules")  # fmt: skip
        self._schedulers, self.milestones, self.optimizer = schedulers, milestones, optimizer
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            F.assign(group["lr"], group["initial_lr"])
        for scheduler in schedulers:
            F.assign_sub(scheduler.last_epoch, 1.0)
        schedulers[0].step()

    def step(self) -> None:
        """Begins the next epoch with the schedule whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self.milestones, self.last_epoch)
        begins = turn > 0 and self.milestones[turn - 1] == self.last_epoch
        self._schedulers[turn].step(*(0,) if begins else ())

    def get_last_lr(self) -> list[Tensor]:
        """Returns the present rates of the groups."""
        return self._schedulers[0].get_last_lr()


class ReduceLROnPlateau:
    """Lets the rates fall when a number has not become better for some epochs.

    Args:
        optimizer: The optimizer.
        mode: "min" where smaller is better, or "max".
        factor: What the rates are multiplied by, below 1.
        patience: Epochs without anything better that are waited for.
        threshold: How much better counts.
        threshold_mode: "rel": a share of the best; "abs": a difference.
        cooldown: Epochs to wait after a change.
        min_lr: Smallest rate, or one per group.
        eps: Changes below this are left out.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1,
                 patience: int = 10, threshold: float = 1e-4, threshold_mode: str = "rel",
                 cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8) -> None:  # fmt: skip
        name = "ReduceLROnPlateau"
        if factor >= 1.0:
            reject(ArgumentError, name, "factor must be below 1", f"{factor}")
        for what, value, words in (("mode", mode, ("min", "max")),
                                   ("threshold_mode", threshold_mode, ("rel", "abs"))):  # fmt: skip
            if value not in words:
                reject(ArgumentError, name, f"{what} must be one of {words}", repr(value))
        self.optimizer, self.factor, self.patience, self.eps = optimizer, factor, patience, eps
        self.mode, self.cooldown = mode, cooldown
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.min_lrs = _per_group(name, "min_lr", min_lr, optimizer)
        self.best = new_scalar("best", math.inf if mode == "min" else -math.inf)
        self.wait = new_scalar("wait", 0)
        self.cooldown_counter = new_scalar("cooldown_counter", 0)
        self._last_lr = list(optimizer.lrs)

    def step(self, metrics: Any) -> bool:
        """Takes the number of an epoch and changes the rates when it is time.

        Args:
            metrics: What is watched, a number or a tensor of one.
        """
        now = F.cast(metrics if isinstance(metrics, Tensor) else Tensor(metrics), float32)
        better = self._is_improvement(now, self.best)
        F.assign(self.best, F.where(better, now, self.best))
        resting = self.in_cooldown()
        rest = self.cooldown_counter - F.cast(resting, float32)
        wait = F.where(F.logical_or(better, resting), 0.0, self.wait + 1)
        due = wait > self.patience
        for lr, least in zip(self._last_lr, self.min_lrs):
            new = F.maximum(lr * self.factor, float(least))
            F.assign(lr, F.where(F.logical_and(due, lr > new + self.eps), new, lr))
        F.assign(self.cooldown_counter, F.where(due, float(self.cooldown), rest))
        F.assign(self.wait, F.where(due, 0.0, wait))
        return True

    def in_cooldown(self) -> Tensor:
        """Whether a change is so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def _is_improvement(self, current: Tensor, best: Tensor) -> Tensor:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            goal = best * (1 + sign * self.threshold)
        else:
            goal = best + sign * self.threshold
        return current > goal if self.mode == "max" else current < goal

    def get_last_lr(self) -> list[Tensor]:
        """Returns the present rates of the groups."""
        return [lr.snapshot() for lr in self._last_lr]


__all__ = _public_names(globals())

_guard_module(globals(), "experimental.optim.lr_scheduler")


def __dir__() -> list[str]:
    return list(__all__)
