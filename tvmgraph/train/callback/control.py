"""Callbacks that save, stop, slow down and show progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph.core.arguments import PathLike
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.train.callback.base import Callback, RunContext, current_rate, loss_value
from tvmgraph.train.metrics.basic import reject
from tvmgraph.train.serialization import save_checkpoint


class CheckpointConfig:
    """When checkpoints are saved and how many are kept.

    Args:
        save_checkpoint_steps: Every how many steps; 0 for not by steps.
        save_checkpoint_seconds: Every how many seconds; counts only without steps.
        keep_checkpoint_max: How many files stay; 0 for all.
        append_info: Values to save as well: a dict, or a list with ``"epoch_num"`` and
            ``"step_num"`` and dicts.
        saved_network: A Cell to save instead of the trained one.

    Raises:
        ArgumentError: if a number is negative, neither steps nor seconds are given, or
            ``append_info`` names something else.

    Example:
        >>> ms.train.CheckpointConfig(save_checkpoint_steps=100).keep_checkpoint_max
        5
    """

    def __init__(
        self,
        save_checkpoint_steps: int = 1,
        save_checkpoint_seconds: float = 0,
        keep_checkpoint_max: int = 5,
        keep_checkpoint_per_n_minutes: float = 0,
        integrated_save: bool = True,
        async_save: bool = False,
        saved_network: object = None,
        append_info: Any = None,
        **_: object,
    ) -> None:
        for name, value in (
            ("save_checkpoint_steps", save_checkpoint_steps),
            ("save_checkpoint_seconds", save_checkpoint_seconds),
            ("keep_checkpoint_max", keep_checkpoint_max),
        ):
            if value < 0:
                reject(ArgumentError, "CheckpointConfig", f"{name} is {value}, below 0")
        if not save_checkpoint_steps and not save_checkpoint_seconds:
            reject(ArgumentError, "CheckpointConfig",
                   "save_checkpoint_steps or save_checkpoint_seconds is needed")  # fmt: skip
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = save_checkpoint_seconds
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_per_n_minutes = keep_checkpoint_per_n_minutes
        self.integrated_save, self.async_save = integrated_save, async_save
        self.saved_network = saved_network
        self.append_info = [append_info] if isinstance(append_info, Mapping) else append_info or []
        for item in self.append_info:
            if not isinstance(item, Mapping) and item not in ("epoch_num", "step_num"):
                kind = ArgumentError if isinstance(item, str) else DTypeError
                reject(kind, "CheckpointConfig", f"append_info cannot hold {item!r}")

    def get_checkpoint_policy(self) -> dict[str, object]:
        """Returns when checkpoints are saved and how many are kept."""
        names = ("save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max",
                 "keep_checkpoint_per_n_minutes", "saved_network")  # fmt: skip
        return {name: getattr(self, name) for name in names}


class ModelCheckpoint(Callback):
    """Saves the network with the optimizer's state as ``prefix-epoch_step.ckpt``.

    Args:
        prefix: First part of the file names, or a function of the run that returns it.
        directory: Where to, or a function of the run that returns it; the current folder by
            default.
        config: A :class:`CheckpointConfig`.

    Raises:
        DTypeError: if ``config`` is something else.
        ArgumentError: if the prefix contains ``/``.

    Example:
        >>> config = ms.train.CheckpointConfig(save_checkpoint_steps=100)
        >>> ms.train.ModelCheckpoint("lenet", "/tmp/checkpoints", config).prefix
        'lenet'
    """

    def __init__(
        self,
        prefix: str | Callable[..., str] = "CKP",
        directory: PathLike | Callable[..., PathLike] | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        if not callable(prefix) and (not isinstance(prefix, str) or "/" in prefix):
            reject(ArgumentError, "ModelCheckpoint", f"prefix cannot be {prefix!r}")
        if config is not None and not isinstance(config, CheckpointConfig):
            reject(DTypeError, "ModelCheckpoint", f"config is a {type(config).__name__}")
        self.prefix = prefix
        self.directory: Path | Callable[..., PathLike] = (
            directory if callable(directory) else Path(directory or Path.cwd())
        )
        self.config = CheckpointConfig() if config is None else config
        self.files: list[Path] = []
        self._last_time = 0.0
        self._last_step = 0

    @property
    def latest_ckpt_file_name(self) -> str:
        """The newest file."""
        return str(self.files[-1]) if self.files else ""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Starts the clock."""
        self._last_time = time.monotonic()
        self._last_step = 0

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Saves if it is time."""
        p, c = run_context.original_args(), self.config
        if c.save_checkpoint_steps:
            due = p.cur_step_num - self._last_step >= c.save_checkpoint_steps
        else:
            due = time.monotonic() - self._last_time >= c.save_checkpoint_seconds
        if due:
            self._save(p)

    def on_train_end(self, run_context: RunContext) -> None:
        """Saves the last state."""
        p = run_context.original_args()
        if p.cur_step_num > self._last_step:
            self._save(p)

    def _appendix(self, p: object) -> dict[str, object]:
        result: dict[str, object] = {}
        for item in self.config.append_info:
            result |= item if isinstance(item, Mapping) else {item: getattr(p, f"cur_{item}")}
        return result

    def _save(self, p: Any) -> None:
        step = (p.cur_step_num - 1) % p.batch_num + 1
        prefix = self.prefix(p) if callable(self.prefix) else self.prefix
        folder: PathLike = self.directory(p) if callable(self.directory) else self.directory
        file = Path(folder) / f"{prefix}-{p.cur_epoch_num}_{step}.ckpt"
        network = self.config.saved_network or p.train_network
        save_checkpoint(network, file, append_dict=self._appendix(p))
        self._last_step, self._last_time = p.cur_step_num, time.monotonic()
        self.files = [f for f in self.files if f != file] + [file]
        while 0 < self.config.keep_checkpoint_max < len(self.files):
            self.files.pop(0).unlink(missing_ok=True)


class _Watch(Callback):
    """Follows one value over epochs and tells whether it improves."""

    def __init__(self, monitor: str, mode: str, min_delta: float, patience: int) -> None:
        op = type(self).__name__
        if mode not in ("auto", "min", "max"):
            reject(ArgumentError, op, f"mode cannot be {mode!r}", "use auto, min or max")
        if patience < 0 or min_delta < 0:
            reject(ArgumentError, op, f"patience {patience} and min_delta {min_delta} must be >= 0")
        self.monitor, self.patience = monitor, patience
        growing = mode == "max" or (mode == "auto" and "acc" in monitor.lower())
        self.sign = 1.0 if growing else -1.0
        self.min_delta = float(min_delta)
        self.best = -np.inf
        self.waited = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Forgets an earlier run."""
        self.best, self.waited = -np.inf, 0

    def value(self, run_context: RunContext) -> float | None:
        """Returns the followed value, None before the first evaluation."""
        p = run_context.original_args()
        results = p.eval_results or {}
        if self.monitor in ("loss", "train_loss"):
            return loss_value(p.net_outputs)
        short = self.monitor.removeprefix("eval_")
        for name in (self.monitor, short):
            if name in results:
                return float(results[name])
        if results:
            reject(ArgumentError, type(self).__name__, f"there is no metric {self.monitor!r}",
                   f"monitor 'loss' or one of {', '.join(results)}")  # fmt: skip
        return None

    def improves(self, value: float) -> bool:
        """Notes a value; returns whether it is better than all before."""
        if self.sign * value > self.best + self.min_delta:
            self.best, self.waited = self.sign * value, 0
            return True
        self.waited += 1
        return False


class EarlyStopping(_Watch):
    """Stops when a value no longer improves.

    Args:
        monitor: ``"loss"`` (of training) or the name of a metric of ``fit``, with or without
            ``eval_``.
        min_delta: What counts as an improvement.
        patience: It stops after that many epochs without improvement, and at least one.
        verbose: Whether stopping is printed.
        mode: ``"min"``, ``"max"``, or ``"auto"``: by whether the name contains ``acc``.
        baseline: A value that must be reached to count as an improvement.
        restore_best_weights: Whether the network ends with the weights of the best epoch.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> ms.train.EarlyStopping("eval_loss", patience=3).patience
        3
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, min_delta, patience)
        self.verbose, self.baseline = verbose, baseline
        self.restore_best_weights = restore_best_weights
        self._weights: dict[Any, Any] = {}
        self.stopped_epoch = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Forgets an earlier run."""
        super().on_train_begin(run_context)
        if self.baseline is not None:
            self.best = self.sign * self.baseline
        self._weights, self.stopped_epoch = {}, 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Looks at the value."""
        value, p = self.value(run_context), run_context.original_args()
        if value is None:
            return
        if self.improves(value):
            if self.restore_best_weights:
                self._weights = {q: q.snapshot() for q in p.train_network.get_parameters()}
        elif self.waited >= self.patience:
            self.stopped_epoch = p.cur_epoch_num
            run_context.request_stop()
            self.on_train_end(run_context)
            if self.verbose:
                print(f"stopped in epoch {p.cur_epoch_num}: {self.monitor} does not improve")

    def on_train_end(self, run_context: RunContext) -> None:
        """Restores the best weights."""
        for parameter, value in self._weights.items():
            parameter.set_data(value)


class ReduceLROnPlateau(_Watch):
    """Lowers the learning rate when a value no longer improves.

    Args:
        monitor: See :class:`EarlyStopping`.
        factor: Factor on the rate, in (0, 1).
        patience: Epochs without improvement that are allowed.
        verbose: Whether changes are printed.
        mode: See :class:`EarlyStopping`.
        min_delta: What counts as an improvement.
        cooldown: Epochs after a change that do not count.
        min_lr: The rate does not go below.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> ms.train.ReduceLROnPlateau(factor=0.5).factor
        0.5
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta, patience)
        if not 0 < factor < 1:
            reject(ArgumentError, "ReduceLROnPlateau", f"factor must be in (0, 1), not {factor}")
        self.factor, self.verbose, self.cooldown, self.min_lr = factor, verbose, cooldown, min_lr
        self._resting = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Looks at the value."""
        value, p = self.value(run_context), run_context.original_args()
        if value is None:
            return
        if self._resting:
            self._resting, self.waited = self._resting - 1, 0
        better = self.improves(value)
        if self._resting:
            self.waited = 0
        elif not better and self.waited >= self.patience:
            old = current_rate("ReduceLROnPlateau", p.optimizer)
            new = max(old * self.factor, self.min_lr)
            if new < old:
                p.optimizer.set_lr(new)
                self._resting, self.waited = self.cooldown, 0
                if self.verbose:
                    print(f"epoch {p.cur_epoch_num}: the learning rate is now {new:g}")


class ProgressBar(Callback):
    """Shows a progress bar with epoch, loss and metrics.

    Args:
        every: Every how many steps the loss is read.

    Example:
        >>> ms.train.ProgressBar().every
        10
    """

    def __init__(self, every: int = 10) -> None:
        self.every = max(int(every), 1)
        self._bar: Any = None
        self._task: Any = None

    def on_train_begin(self, run_context: RunContext) -> None:
        """Shows the bar."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        p = run_context.original_args()
        self._bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[values]}"), TimeElapsedColumn(), TimeRemainingColumn(),
        )  # fmt: skip
        self._bar.start()
        epoch = f"{p.cur_epoch_num}/{p.epoch_num}"
        total = p.batch_num * p.epoch_num
        self._task = self._bar.add_task("", total=total, epoch=epoch, values="")

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Moves the bar."""
        p = run_context.original_args()
        fields = {"epoch": f"{p.cur_epoch_num}/{p.epoch_num}"}
        if p.cur_step_num % self.every == 0:
            values = {"loss": loss_value(p.net_outputs), **(p.eval_results or {})}
            fields["values"] = "  ".join(
                f"{k} {v:.4f}" for k, v in values.items() if isinstance(v, float)
            )
        self._bar.update(self._task, advance=1, **fields)

    def on_train_end(self, run_context: RunContext) -> None:
        """Leaves the bar."""
        self._bar.stop()


__all__ = [
    "CheckpointConfig", "EarlyStopping", "ModelCheckpoint", "ProgressBar", "ReduceLROnPlateau",
]  # fmt: skip
