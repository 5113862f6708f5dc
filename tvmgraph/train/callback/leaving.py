"""A callback that ends a run when it is asked to from outside, and keeps what it has reached."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path

from tvmgraph import hooks
from tvmgraph.core.arguments import PathLike
from tvmgraph.errors import ArgumentError, DTypeError, reject
from tvmgraph.nn.cell import Cell
from tvmgraph.train.callback.base import Callback, RunContext
from tvmgraph.train.serialization import load_checkpoint, save_checkpoint


class OnRequestExit(Callback):
    """Ends a run after the step in which a signal comes or a file asks for it; saves the network.

    The next run starts from the checkpoint, if it is given the same names.

    Args:
        save_ckpt: Whether ``directory/rank_0/<file_name>_train.ckpt`` is written (``_eval`` for
            :meth:`Model.eval`) and read when a run begins.
        save_mindir: Whether ``<file_name>_train.mindir`` is written as by ``ms.export``.
        file_name: First part of the names of files.
        directory: Where they are written; None is the current folder.
        config_file: A JSON file that ends the run as soon as it says ``{"GracefulExit": 1}``.
        sig: The signal that ends it.

    Raises:
        DTypeError: if an argument is of another kind.
        ArgumentError: if ``sig`` cannot be caught.

    Example:
        >>> ms.train.OnRequestExit(file_name="LeNet5").sig
        <Signals.SIGTERM: 15>
    """

    def __init__(
        self, save_ckpt: bool = True, save_mindir: bool = True, file_name: str = "Net",
        directory: PathLike | None = "./", config_file: PathLike | None = None,
        sig: int = signal.SIGTERM,
    ) -> None:  # fmt: skip
        kinds = (("save_ckpt", save_ckpt, bool), ("save_mindir", save_mindir, bool),
                 ("sig", sig, int))  # fmt: skip
        for name, value, kind in kinds:
            if not isinstance(value, kind):
                reject(DTypeError, "OnRequestExit",
                       f"{name} must be of {kind.__name__}, not {value!r}")  # fmt: skip
        if sig in (signal.SIGKILL, signal.SIGSTOP):
            reject(ArgumentError, "OnRequestExit", f"signal {sig} ends a process at once",
                   fix="use signal.SIGTERM, signal.SIGINT or signal.SIGUSR1")  # fmt: skip
        self.save_ckpt, self.save_mindir, self.sig = save_ckpt, save_mindir, sig
        self.config_file = None if config_file is None else Path(config_file)
        start = Path(directory or ".", "rank_0", file_name)
        self.train_name, self.eval_name = f"{start}_train", f"{start}_eval"
        self.exit = False

    def on_train_begin(self, run_context: RunContext) -> None:
        """Waits for the signal; loads what an earlier run has saved.

        Args:
            run_context: What is known of the run.
        """
        self._begin(run_context.original_args().train_network, self.train_name)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Ends the run if that was asked for.

        Args:
            run_context: What is known of the run.
        """
        if self.exit or self._asked():
            self.exit = True
            run_context.request_stop()

    def on_train_end(self, run_context: RunContext) -> None:
        """Saves the network if the run was to end.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        self._end(p.train_network, p.train_dataset_element, self.train_name)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Waits for the signal; loads what an earlier run has saved.

        Args:
            run_context: What is known of the run.
        """
        saved = Path(f"{self.eval_name}.ckpt").is_file()
        network = run_context.original_args().eval_network
        self._begin(network, self.eval_name if saved else self.train_name)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Ends the run if that was asked for.

        Args:
            run_context: What is known of the run.
        """
        self.on_train_step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Saves the network if the run was to end.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        self._end(p.eval_network, p.eval_dataset_element, self.eval_name)

    def _begin(self, network: Cell, name: str) -> None:
        signal.signal(self.sig, self._signalled)
        if self.save_ckpt and Path(f"{name}.ckpt").is_file():
            load_checkpoint(f"{name}.ckpt", network)

    def _signalled(self, *_: object) -> None:
        self.exit = True

    def _asked(self) -> bool:
        if self.config_file is None or not self.config_file.is_file():
            return False
        try:
            return json.loads(self.config_file.read_text("utf-8")).get("GracefulExit") == 1
        except json.JSONDecodeError:  # it is being written
            return False

    def _end(self, network: Cell, inputs: Iterable[object], name: str) -> None:
        if not self.exit:
            return
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        if self.save_ckpt:
            save_checkpoint(network, f"{name}.ckpt")
        if self.save_mindir:
            hooks.export(network, *inputs, file_name=f"{name}.mindir", file_format="MINDIR")


__all__ = ["OnRequestExit"]
