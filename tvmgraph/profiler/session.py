"""Starting and stopping a profiler, with MindSpore's two interfaces.

:class:`profile` is a context with ``step()`` and a schedule, :class:`Profiler` is started and
stopped by hand and writes its results with ``analyse()``. What MindSpore offers for other devices
is accepted with a warning.
"""

from __future__ import annotations

import enum
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tvmgraph.debug import recorder
from tvmgraph.debug.dump import new_folder, write_atomically
from tvmgraph.debug.recorder import Recorder, trace_text
from tvmgraph.errors import ArgumentError, DTypeError, reject, warn_user
from tvmgraph.profiler.summary import Summary

_OTHER_DEVICES = (
    "with_stack", "profile_memory", "data_process", "parallel_strategy", "hbm_ddr", "pcie",
    "sync_enable", "record_shapes", "experimental_config", "profiler_level", "aic_metrics",
    "l2_cache", "data_simplification", "mstx", "sys_ddr", "sys_interconnection", "sys_io",
)  # fmt: skip
_DEFAULT_FOLDER = "./data"  # MindSpore's


class ProfilerActivity(enum.Enum):
    """What is recorded; only the CPU is here."""

    CPU = "CPU"
    NPU = "NPU"
    GPU = "GPU"


class ProfilerLevel(enum.Enum):
    """How much is recorded on other devices; on the CPU everything is."""

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class profile:  # noqa: N801 (MindSpore's name)
    """Records kernels, calls of compiled graphs, eager operators and compiles in a block.

    Args:
        activities: Must contain ``ProfilerActivity.CPU`` if given.
        schedule: Which steps are recorded, see :class:`tvmgraph.profiler.session`; all by
            default.
        on_trace_ready: Called with this object when a stretch of steps is complete, such as
            :func:`tensorboard_trace_handler`.
        start_profile: Start with the block; otherwise :meth:`start` does.
        **options: Options for other devices; they have no effect.

    Raises:
        ArgumentError: for an unknown option, or activities without the CPU.

    Example:
        >>> with ms.profiler.profile() as p:
        ...     ms.ops.tanh(Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 7.61594176e-01])
        >>> p.summary.operators[0].name
        'tanh'
    """

    def __init__(
        self,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[object], object] | None = None,
        start_profile: bool = True,
        **options: object,
    ) -> None:
        _check(activities, schedule, on_trace_ready, options)
        self._schedule = schedule or always
        self._ready = on_trace_ready
        self._start_now = start_profile
        self._heard: Recorder | None = None
        self._on = self._taken = False
        self._number = 0
        self._begun = 0.0
        self._action = ProfilerAction.NONE
        self._summary: Summary | None = None

    # ---- in MindSpore's words ---------------------------------------------------------------

    def start(self) -> None:
        """Begins with step 0.

        Raises:
            ArgumentError: if it runs already.
        """
        if self._on:
            raise _misuse("start", "it runs already", "call stop() first")
        self._on, self._number = True, 0
        self._enter_step()

    def step(self) -> None:
        """Ends a step and begins the next.

        Raises:
            ArgumentError: if it does not run.
        """
        if not self._on:
            raise _misuse("step", "it does not run", "call start(), or use it as a context")
        self._leave_step()
        self._number += 1
        self._enter_step()

    def stop(self) -> None:
        """Ends recording.

        Raises:
            ArgumentError: if it does not run.
        """
        if not self._on:
            raise _misuse("stop", "it does not run", "call start() first")
        self._leave_step(last=True)
        self._on = False

    def __enter__(self) -> profile:
        if self._start_now and not self._on:
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._on:
            self.stop()

    # ---- results ----------------------------------------------------------------------------

    @property
    def summary(self) -> Summary:
        """What was recorded last.

        Raises:
            ArgumentError: if nothing was.
        """
        if self._on and self._heard is not None:
            return Summary(self._heard)
        if self._summary is None:
            raise _misuse("summary", "nothing was recorded", "run the profiler around some calls")
        return self._summary

    # ---- steps ------------------------------------------------------------------------------

    def _enter_step(self) -> None:
        action = self._schedule(self._number)
        if action in (ProfilerAction.NONE, ProfilerAction.WARM_UP):
            self._forget()
        if action is not ProfilerAction.NONE and self._heard is None:
            self._heard = Recorder()
            recorder.switch_on(self._heard)
        self._begun, self._action = time.perf_counter(), action

    def _leave_step(self, last: bool = False) -> None:
        heard, action = self._heard, self._action
        if heard is None:
            return
        if not last or self._number:  # a block without steps is no step
            spent = time.perf_counter() - self._begun
            heard.add(f"step {self._number}", recorder.STEP, self._begun, spent)
        if action is ProfilerAction.WARM_UP:
            self._forget()
        elif last or action is ProfilerAction.RECORD_AND_SAVE:
            recorder.switch_off(heard)
            self._heard = None
            self._summary = Summary(heard)
            if self._ready is not None:
                self._ready(self)

    def _forget(self) -> None:
        if self._heard is not None:
            recorder.switch_off(self._heard)
            self._heard = None


class Profiler(profile):
    """Records from its creation on; :meth:`analyse`, or the end of a ``with`` block, writes.

    Args:
        start_profile: Start at once.
        output_path: Folder for the results, ``./data`` by default.
        **options: As for :class:`profile`.

    Attributes:
        output_path: Where results go.
        folder: The folder that the last results were written to.

    Example:
        >>> with ms.Profiler(output_path="profile") as profiler:
        ...     ms.ops.tanh(Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 7.61594176e-01])
        >>> print(profiler.summary)  # doctest: +ELLIPSIS
        eager operators
        ...
        tanh...
    """

    def __init__(
        self, *, start_profile: bool = True, output_path: str | os.PathLike[str] = _DEFAULT_FOLDER,
        **options: Any,
    ) -> None:  # fmt: skip
        if not isinstance(output_path, (str, os.PathLike)):
            raise DTypeError(f"output_path must be a path, not {type(output_path).__name__}",
                             op="Profiler")  # fmt: skip
        super().__init__(**options)
        self.output_path = Path(output_path).absolute()
        self.folder: Path | None = None
        self._written: Summary | None = None
        if start_profile:
            self.start()

    def __exit__(self, *_: object) -> None:
        if self._on:
            self.analyse()

    def analyse(self, *_: object, **__: object) -> Summary:
        """Stops, writes the results to a new folder of ``output_path``, and returns them.

        Args:
            *_: Left aside, as the keyword arguments are.

        Raises:
            ArgumentError: if nothing was recorded.
        """
        if self._on:
            self.stop()
        found = self.summary
        if found is not self._written:
            self.folder = found.save(_numbered(self.output_path))
            self._written = found
        return found

    def op_analyse(self, op_name: str | list[str], device_id: object = None) -> str:
        """Returns count, total and mean time of eager operators or kernels as JSON.

        Args:
            op_name: An operator's name, or several.
            device_id: No effect.
        """
        names = [op_name] if isinstance(op_name, str) else list(op_name)
        rows = (*self.summary.operators, *self.summary.kernels)
        found = []
        for name in names:
            calls = sum(k.calls for k in rows if k.name == name)
            total = sum(k.seconds for k in rows if k.name == name) * 1e6
            if calls:
                found.append({"name": name, "count": calls, "total_us": total,
                              "avg_us": total / calls})  # fmt: skip
        return json.dumps(found)


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str] | None = None, worker_name: str | None = None,
    analyse_flag: bool = True, async_mode: bool = False,
) -> Callable[[profile], None]:  # fmt: skip
    """Returns an ``on_trace_ready`` that writes every stretch of steps to a folder of its own.

    Args:
        dir_name: Parent of the folders, ``./data`` by default.
        worker_name: Beginning of their names.
        analyse_flag: Write the tables too, not only the trace.
        async_mode: No effect: writing takes milliseconds.
    """
    root = Path(dir_name or _DEFAULT_FOLDER).absolute()

    def write(ready: profile) -> None:
        folder = _numbered(root, worker_name or "profile")
        if analyse_flag:
            ready.summary.save(folder)
            return
        write_atomically(folder / "trace_view.json", trace_text(ready.summary.events))

    return write


def _numbered(root: Path, prefix: str = "profile") -> Path:
    return new_folder(root / f"{prefix}_{i}" for i in itertools.count(1))


def _misuse(what: str, message: str, fix: str) -> ArgumentError:
    return ArgumentError(message, op=f"profiler.{what}", fix=fix)


def _check(activities: Any, schedule: object, ready: object, options: Mapping[str, object]) -> None:
    for name in options:
        if name not in _OTHER_DEVICES:
            known = "activities, schedule, on_trace_ready, start_profile, output_path (Profiler)"
            raise _misuse("profile", f"unknown option {name!r}", f"use one of {known}")
        warn_user(f"profiler: {name} has no effect on the CPU")
    if activities is not None and ProfilerActivity.CPU not in list(activities):
        raise _misuse("profile", "activities hold no ProfilerActivity.CPU",
                      "this release records the CPU only")  # fmt: skip
    for name, value in (("schedule", schedule), ("on_trace_ready", ready)):
        if value is not None and not callable(value):
            raise _misuse("profile", f"{name} must be callable, not {type(value).__name__}",
                          "see ms.profiler.schedule and tensorboard_trace_handler")  # fmt: skip


# ---- which steps of a long run are recorded ------------------------------------------------------


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
                reject(ArgumentError, "profiler.schedule",
                       f"{name} must be an int of at least {smallest}, not {value!r}")  # fmt: skip
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


__all__ = [
    "Profiler", "ProfilerAction", "ProfilerActivity", "ProfilerLevel", "profile", "schedule",
    "tensorboard_trace_handler",
]  # fmt: skip
