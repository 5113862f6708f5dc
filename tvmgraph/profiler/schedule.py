"""Which steps of a long run are recorded."""

from __future__ import annotations

import enum
from collections.abc import Callable

from tvmgraph.errors import ArgumentError


class ProfilerAction(enum.Enum):
    """What a profiler does during a step."""

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class schedule:  # noqa: N801 (MindSpore's name)
    """Records some steps and skips the others: wait, warm up, record, and again.

    Args:
        wait: Steps that are skipped in every cycle.
        active: Steps that are recorded.
        warmup: Steps between them that are recorded and thrown away.
        repeat: Number of cycles; 0 repeats until the end.
        skip_first: Steps before the first cycle.

    Raises:
        ArgumentError: if a number is negative or nothing would be recorded.

    Example:
        >>> ms.profiler.schedule(wait=1, active=2, warmup=1)(2)
        <ProfilerAction.RECORD: 2>
    """

    def __init__(
        self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0
    ) -> None:
        given = {"wait": wait, "active": active, "warmup": warmup, "repeat": repeat,
                 "skip_first": skip_first}  # fmt: skip
        for name, value in given.items():
            smallest = 1 if name == "active" else 0
            if not isinstance(value, int) or isinstance(value, bool) or value < smallest:
                raise ArgumentError(
                    f"{name} must be an int of at least {smallest}, not {value!r}",
                    op="profiler.schedule",
                )
        self.wait, self.active, self.warmup = wait, active, warmup
        self.repeat, self.skip_first = repeat, skip_first

    def __call__(self, step: int) -> ProfilerAction:
        """Returns what is done during a step, counted from 0."""
        step -= self.skip_first
        cycle = self.wait + self.warmup + self.active
        if step < 0 or (self.repeat and step >= self.repeat * cycle):
            return ProfilerAction.NONE
        place = step % cycle
        if place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARM_UP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE


def always(_: int) -> ProfilerAction:
    """Records every step, whatever its number.

    Args:
        _: Number of the step.
    """
    return ProfilerAction.RECORD


Schedule = Callable[[int], ProfilerAction]

__all__ = ["ProfilerAction", "Schedule", "always", "schedule"]
