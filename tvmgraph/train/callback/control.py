"""Callbacks that stop, slow down and show progress."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph.errors import ArgumentError, either, reject
from tvmgraph.train.callback.base import Callback, RunContext, current_rate, loss_value

#: Metrics that are better when they are smaller; so is whatever is called a loss.
_SMALLER = frozenset((
    "hausdorff_distance", "mae", "mean_surface_distance", "mse", "perplexity",
    "root_mean_square_distance",
))  # fmt: skip


class _Watch(Callback):
    """Follows one value over epochs and tells whether it improves."""

    def __init__(self, monitor: str, mode: str, min_delta: float, patience: int) -> None:
        op = type(self).__name__
        if mode not in ("auto", "min", "max"):
            reject(ArgumentError, op, f"mode cannot be {mode!r}", fix="use auto, min or max")
        if patience < 0:
            reject(ArgumentError, op, f"patience must be at least 0, not {patience}")
        self.monitor, self.patience = monitor, patience
        followed = monitor.removeprefix("eval_")
        falls = followed in _SMALLER or "loss" in followed if mode == "auto" else mode == "min"
        self.sign = -1.0 if falls else 1.0
        self.min_delta = abs(float(min_delta))
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
                   fix=f"monitor 'loss' or one of {', '.join(results)}")  # fmt: skip
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
        mode: ``"min"``, ``"max"``, or ``"auto"``: losses, distances, errors and the perplexity
            are better when they are smaller, other metrics when they are larger.
        baseline: A value that must be reached to count as an improvement.
        restore_best_weights: Whether a network that is stopped gets the weights of its best epoch.

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
        """Forgets an earlier run.

        Args:
            run_context: What is known of the run.
        """
        super().on_train_begin(run_context)
        if self.baseline is not None:
            self.best = self.sign * self.baseline
        self._weights, self.stopped_epoch = {}, 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Looks at the value.

        Args:
            run_context: What is known of the run.
        """
        value, p = self.value(run_context), run_context.original_args()
        if value is None:
            return
        if self.improves(value):
            if self.restore_best_weights:
                self._weights = {q: q.snapshot() for q in p.train_network.get_parameters()}
        elif self.waited >= self.patience:
            self.stopped_epoch = p.cur_epoch_num
            run_context.request_stop()
            if self._weights and self.verbose:
                print("Restoring model weights from the end of the best epoch.")
            for parameter, weight in self._weights.items():
                parameter.set_data(weight)

    def on_train_end(self, run_context: RunContext) -> None:
        """Says that it has stopped.

        Args:
            run_context: What is known of the run.
        """
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping")


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
            kind = ArgumentError if isinstance(factor, float) else either(ArgumentError, TypeError)
            reject(kind, "ReduceLROnPlateau", f"factor must be in (0, 1), not {factor}")
        self.factor, self.verbose, self.cooldown, self.min_lr = factor, verbose, cooldown, min_lr
        self._resting = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Looks at the value.

        Args:
            run_context: What is known of the run.
        """
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
                    epoch = f"Epoch {p.cur_epoch_num:05d}"
                    print(f"{epoch}: ReduceLROnPlateau reducing learning rate to {new:g}.")


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
        """Shows the bar.

        Args:
            run_context: What is known of the run.
        """
        from rich import progress

        p = run_context.original_args()
        self._bar = progress.Progress(
            progress.TextColumn("epoch {task.fields[epoch]}"), progress.BarColumn(),
            progress.MofNCompleteColumn(), progress.TextColumn("{task.fields[values]}"),
            progress.TimeElapsedColumn(), progress.TimeRemainingColumn(),
        )  # fmt: skip
        self._bar.start()
        epoch = f"{p.cur_epoch_num}/{p.epoch_num}"
        total = p.batch_num * p.epoch_num
        self._task = self._bar.add_task("", total=total, epoch=epoch, values="")

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Moves the bar.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        fields = {"epoch": f"{p.cur_epoch_num}/{p.epoch_num}"}
        if p.cur_step_num % self.every == 0:
            values = {"loss": loss_value(p.net_outputs), **(p.eval_results or {})}
            fields["values"] = "  ".join(
                f"{k} {v:.4f}" for k, v in values.items() if isinstance(v, float)
            )
        self._bar.update(self._task, advance=1, **fields)

    def on_train_end(self, run_context: RunContext) -> None:
        """Leaves the bar.

        Args:
            run_context: What is known of the run.
        """
        self._bar.stop()


__all__ = ["EarlyStopping", "ProgressBar", "ReduceLROnPlateau"]
