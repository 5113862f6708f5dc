"""Callbacks: what happens besides training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph.core.notebook import fragment, heading, table
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.shown import Shown
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, reject
from tvmgraph.train.plots import curves

if TYPE_CHECKING:
    from tvmgraph.nn.cell import Cell

EVENTS = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")


class RunContext(Shown):
    """What a callback is given.

    Attributes:
        original: The parameters of the run as attributes (``cur_epoch_num``, ``net_outputs`` ...).
    """

    def __init__(self, original_args: object) -> None:
        self.original = original_args
        self.stop_requested = False

    def original_args(self) -> Any:
        """Returns the parameters of the run."""
        return self.original

    def request_stop(self) -> None:
        """Ends the run after this step or epoch."""
        self.stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether the run ends after this step."""
        return self.stop_requested


class Callback(Shown):
    """Base class: write any of ``on_train_begin``, ``on_train_epoch_begin``,
    ``on_train_step_begin``, ``on_train_step_end``, ``on_train_epoch_end``, ``on_train_end``, the
    same with ``eval``, or the older ``begin`` ... ``end``, which both modes call.

    A run is inside of ``with callback:``, so ``__enter__`` and ``__exit__`` may open and close
    files.

    Example:
        >>> class Print(ms.train.Callback):
        ...     def on_train_epoch_end(self, run_context):
        ...         print(run_context.original_args().cur_epoch_num)
    """

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, mode: str, event: str, run_context: RunContext) -> None:
        """Calls the method of an event.

        Args:
            mode: ``"train"`` or ``"eval"``.
            event: One of :data:`EVENTS`.
            run_context: What the method gets.
        """
        getattr(self, f"on_{mode}_{event}")(run_context)

    def on_train_failed(self, run_context: RunContext) -> None:
        """Called instead of ``on_train_end`` when an error, or an interruption, ends the training.

        Args:
            run_context: What it had reached.
        """

    # the methods of events are made below: on_train_begin calls begin, which does nothing


def _event(name: str, older: str = "") -> Callable[[Callback, RunContext], None]:
    def method(self: Callback, run_context: RunContext) -> None:
        if older:
            getattr(self, older)(run_context)

    method.__name__, method.__qualname__ = name, f"Callback.{name}"
    method.__doc__ = f"Calls ``{older}``." if older else f"What happens at an event: {name}."
    return method


for _name in EVENTS:
    setattr(Callback, _name, _event(_name))
    for _mode in ("train", "eval"):
        setattr(Callback, f"on_{_mode}_{_name}", _event(f"on_{_mode}_{_name}", _name))


class RunArguments(dict[str, Any]):
    """What :meth:`RunContext.original_args` returns: a dict whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"the run has no {name!r}")
        return self[name]

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


class Callbacks(Callback):
    """Several callbacks as one, which hands every event on to all of them.

    Args:
        callbacks: One, several, or another Callbacks whose run this is a part of.
    """

    def __init__(self, callbacks: Any) -> None:
        self.inside = isinstance(callbacks, Callbacks)
        items = callbacks.items if isinstance(callbacks, Callbacks) else callbacks or []
        items = list(items) if isinstance(items, (tuple, list)) else [items]
        for c in items:
            if not isinstance(c, Callback):
                reject(DTypeError, "Model", f"a {type(c).__name__} is no Callback",
                       fix="derive the class from ms.train.Callback")  # fmt: skip
        self.items: list[Callback] = items
        self._stack = ExitStack()

    def __enter__(self) -> Callbacks:
        for c in self.items:
            self._stack.enter_context(c)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @contextmanager
    def around(self, mode: str, event: str, run_context: RunContext) -> Iterator[None]:
        """Calls ``<event>begin`` and ``<event>end`` around a block.

        Args:
            mode: ``"train"`` or ``"eval"``.
            event: ``"epoch_"``, ``"step_"``, or ``""`` for the whole run.
            run_context: What the callbacks are told.
        """
        with nullcontext() if event or self.inside else self:
            self.call(mode, f"{event}begin", run_context)
            try:
                yield
            except BaseException:
                if mode == "train" and not event:
                    self.on_train_failed(run_context)
                raise
            self.call(mode, f"{event}end", run_context)

    def on_train_failed(self, run_context: RunContext) -> None:
        """Tells the callbacks that an error, or an interruption, ends the training."""
        for c in self.items:
            c.on_train_failed(run_context)


def _for_all(name: str) -> Callable[[Callbacks, RunContext], None]:
    def method(self: Callbacks, run_context: RunContext) -> None:
        for c in self.items:
            getattr(c, name)(run_context)

    method.__name__, method.__qualname__ = name, f"Callbacks.{name}"
    method.__doc__ = f"Calls ``{name}`` of every callback."
    return method


for _name in EVENTS:
    for _mode in ("", "on_train_", "on_eval_"):
        setattr(Callbacks, _mode + _name, _for_all(_mode + _name))


def loss_value(outputs: Any) -> float:
    """Returns the loss among the outputs of a step: the first of them.

    Args:
        outputs: A tensor or number, or a tuple that begins with one.
    """
    first = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
    return float(np.mean(first.asnumpy() if isinstance(first, Tensor) else first))


class LossMonitor(Callback):
    """Prints the loss.

    Args:
        per_print_times: Every how many steps; 0 for once per epoch.

    Raises:
        ArgumentError: if it is negative.

    Example:
        >>> ms.train.LossMonitor(100).per_print_times
        100
    """

    def __init__(self, per_print_times: int = 1) -> None:
        if isinstance(per_print_times, bool) or per_print_times < 0:
            reject(ArgumentError, "LossMonitor", f"per_print_times is {per_print_times}, below 0")
        self.per_print_times = per_print_times

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Prints, and stops a run whose loss is not a number.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        step = (p.cur_step_num - 1) % p.batch_num + 1
        last = step == p.batch_num
        if last if self.per_print_times == 0 else p.cur_step_num % self.per_print_times == 0:
            loss = loss_value(p.net_outputs)
            print(f"epoch: {p.cur_epoch_num} step: {step}, loss is {loss}", flush=True)
            if not np.isfinite(loss):
                reject(ArgumentError, "LossMonitor",
                       f"the loss is {loss} in epoch {p.cur_epoch_num}, step {step}",
                       fix="lower the learning rate, or clip the gradients")  # fmt: skip

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Prints what the evaluation of an epoch found.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        if p.get("eval_results"):
            print(f"Eval result: epoch {p.cur_epoch_num}, metrics: {p.eval_results}")


class TimeMonitor(Callback):
    """Prints the time of every epoch.

    Args:
        data_size: Steps per epoch; by default those of the dataset.

    Example:
        >>> ms.train.TimeMonitor().data_size is None
        True
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        self.data_size = data_size
        self._start = 0.0

    def epoch_begin(self, run_context: RunContext) -> None:
        """Starts the clock.

        Args:
            run_context: What is known of the run.
        """
        self._start = time.perf_counter()

    def epoch_end(self, run_context: RunContext) -> None:
        """Prints.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        spent = (time.perf_counter() - self._start) * 1e3
        steps = self.data_size or p.batch_num
        print(f"{p.mode.capitalize()} epoch time: {spent:.3f} ms, "
              f"per step time: {spent / max(steps, 1):.3f} ms", flush=True)  # fmt: skip


class LambdaCallback(Callback):
    """Calls functions.

    Args:
        given: Functions of a RunContext, for the events of training in the order of MindSpore:
            epoch begins, ends, step begins, ends, training begins, ends; then of evaluation.
        functions: The same by name: ``on_train_epoch_end=...`` and so on.

    Raises:
        ArgumentError: if there is no such event.

    Example:
        >>> ms.train.LambdaCallback(on_train_end=lambda run_context: print("done"))
        LambdaCallback()
    """

    def __init__(self, *given: Callable[..., object], **functions: Callable[..., object]) -> None:
        places = ("epoch_begin", "epoch_end", "step_begin", "step_end", "begin", "end")
        valid = [f"on_{m}_{e}" for m in ("train", "eval") for e in places]
        for name, function in (dict(zip(valid, given)) | functions).items():
            if name not in valid:
                reject(ArgumentError, "LambdaCallback", f"there is no event {name!r}",
                       fix=f"use one of {', '.join(valid)}")  # fmt: skip
            if function is not None:
                setattr(self, name, function)


class History(Callback):
    """Keeps losses and metrics of every epoch.

    Attributes:
        epoch: Numbers of the epochs, under ``"epoch"``.
        history: Values by name: ``loss`` (the last of the epoch) and the metrics of ``fit``.

    Example:
        >>> ms.train.History().epoch
        {'epoch': []}
    """

    def __init__(self) -> None:
        self.epoch: dict[str, list[int]] = {"epoch": []}
        self.history: dict[str, list[float]] = {}

    def plot(self, *names: str, ax: object = None) -> Any:
        """Draws values over epochs by matplotlib.

        Args:
            *names: Which values; all by default.
            ax: Axes of matplotlib to draw into; new ones by default.

        Returns:
            The axes.

        Raises:
            NotFoundError: if matplotlib is not installed.
            ArgumentError: if no value has such a name.

        Example:
            >>> ms.train.History().plot()  # doctest: +SKIP
        """
        return curves(self.epoch["epoch"], self.history, names, ax)

    def _repr_html_(self) -> str:
        names = list(self.history)
        rows = list(zip(self.epoch["epoch"], *self.history.values()))
        head = heading("History", f"{len(rows)} epochs", "plot() draws the curves")
        return fragment(head + table(("epoch", *names), rows))

    def on_train_begin(self, run_context: RunContext) -> None:
        """Forgets an earlier run.

        Args:
            run_context: What is known of the run.
        """
        self.epoch, self.history = {"epoch": []}, {}

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Notes the values.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        self.epoch["epoch"].append(p.cur_epoch_num)
        values = {"net_output": loss_value(p.net_outputs), **(p.eval_results or {})}
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)


class LearningRateScheduler(Callback):
    """Sets the learning rate of the next step after every step.

    Args:
        learning_rate_function: ``(current rate, number of the step) -> rate``.

    Raises:
        DTypeError: if it cannot be called.

    Example:
        >>> halve = ms.train.LearningRateScheduler(lambda lr, step: lr * 0.5)
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        if not callable(learning_rate_function):
            reject(DTypeError, "LearningRateScheduler", "learning_rate_function must be callable")
        self.learning_rate_function = learning_rate_function

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Sets the rate.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        now = current_rate("LearningRateScheduler", p.optimizer)
        p.optimizer.set_lr(self.learning_rate_function(now, p.cur_step_num))


def current_rate(op: str, optimizer: Cell) -> float:
    """Returns the constant learning rate of an optimizer.

    Args:
        op: Name of the callback, for errors.
        optimizer: The optimizer.

    Raises:
        ArgumentError: if there is no optimizer or its rate follows a schedule.
    """
    rate: object = None if optimizer is None else optimizer.learning_rate
    if isinstance(rate, Sequence):
        rate = rate[0]
    if not isinstance(rate, Parameter):
        reject(ArgumentError, op, "the learning rate must be one number that can be changed",
               fix="create the optimizer with learning_rate=<number>")  # fmt: skip
    return float(rate)


__all__ = [
    "Callback", "History", "LambdaCallback", "LearningRateScheduler", "LossMonitor", "RunContext",
    "TimeMonitor",
]  # fmt: skip
