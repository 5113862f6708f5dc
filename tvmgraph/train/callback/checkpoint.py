"""Callbacks that save checkpoints and go on from them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tvmgraph.core.arguments import PathLike
from tvmgraph.errors import ArgumentError, DTypeError, reject, require_offered
from tvmgraph.train.callback.base import Callback, RunArguments, RunContext
from tvmgraph.train.serialization import load_checkpoint, save_checkpoint


class CheckpointConfig:
    """When checkpoints are saved and how many are kept.

    Args:
        save_checkpoint_steps: Every how many steps; 0 or None for not by steps.
        save_checkpoint_seconds: Every how many seconds; counts only without steps. With neither
            nothing is saved.
        keep_checkpoint_max: How many files stay; 0 or None for not by number.
        keep_checkpoint_per_n_minutes: Of the files of so many minutes the first and the newest
            stay; counts only without ``keep_checkpoint_max``. With neither the newest stays.
        integrated_save: Kept for MindSpore programs; files are whole.
        async_save: Kept for MindSpore programs; a file is complete when the step ends.
        saved_network: A Cell to save instead of the trained one.
        append_info: Values to save as well: a dict, or a list with ``"epoch_num"`` and
            ``"step_num"`` and dicts.
        enc_key: Must be None; files are not encrypted.
        enc_mode: Kept for MindSpore programs.
        exception_save: Whether an error during training leaves a file
            ``prefix-epoch_step_breakpoint.ckpt``.
        crc_check: Kept for MindSpore programs; files always have a checksum.
        remove_redundancy: Must be False; one file has all parts of a parameter.
        format: ``"ckpt"`` or ``"safetensors"``.

    Raises:
        ArgumentError: if a number is negative, all of them are 0 or None, the format or an
            argument is unknown, or ``append_info`` names something else.

    Example:
        >>> ms.train.CheckpointConfig(save_checkpoint_steps=100).keep_checkpoint_max
        5
    """

    def __init__(
        self,
        save_checkpoint_steps: int | None = 1,
        save_checkpoint_seconds: float | None = 0,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_per_n_minutes: float | None = 0,
        integrated_save: bool = True,
        async_save: bool | str = False,
        saved_network: object = None,
        append_info: Any = None,
        enc_key: bytes | None = None,
        enc_mode: str = "AES-GCM",
        exception_save: bool = False,
        crc_check: bool = False,
        remove_redundancy: bool = False,
        format: str = "ckpt",
        **options: object,
    ) -> None:
        require_offered("CheckpointConfig", options)
        for name, value in (
            ("save_checkpoint_steps", save_checkpoint_steps),
            ("save_checkpoint_seconds", save_checkpoint_seconds),
            ("keep_checkpoint_max", keep_checkpoint_max),
            ("keep_checkpoint_per_n_minutes", keep_checkpoint_per_n_minutes),
        ):
            if value is not None and value < 0:
                reject(ArgumentError, "CheckpointConfig", f"{name} is {value}, below 0")
        numbers = save_checkpoint_steps, save_checkpoint_seconds, keep_checkpoint_max
        if not any((*numbers, keep_checkpoint_per_n_minutes)):
            reject(ArgumentError, "CheckpointConfig",
                   "save_checkpoint_steps or save_checkpoint_seconds is needed")  # fmt: skip
        if format not in ("ckpt", "safetensors"):
            reject(ArgumentError, "CheckpointConfig", f"format cannot be {format!r}",
                   fix="use ckpt or safetensors")  # fmt: skip
        for name, value in (("enc_key", enc_key), ("remove_redundancy", remove_redundancy)):
            if value:
                reject(ArgumentError, "CheckpointConfig", f"{name} is not supported")
        self.save_checkpoint_steps = save_checkpoint_steps
        self.save_checkpoint_seconds = None if save_checkpoint_steps else save_checkpoint_seconds
        per_minutes = None if keep_checkpoint_max else keep_checkpoint_per_n_minutes
        self.keep_checkpoint_max = keep_checkpoint_max or (0 if per_minutes else 1)
        self.keep_checkpoint_per_n_minutes = per_minutes
        self.integrated_save, self.async_save = integrated_save, async_save
        self.saved_network = saved_network
        self.exception_save, self.format = exception_save, format
        self.enc_key, self.enc_mode, self.crc_check = enc_key, enc_mode, crc_check
        self.append_info = [append_info] if isinstance(append_info, Mapping) else append_info or []
        for item in self.append_info:
            if not isinstance(item, Mapping) and item not in ("epoch_num", "step_num"):
                kind = ArgumentError if isinstance(item, str) else DTypeError
                reject(kind, "CheckpointConfig", f"append_info cannot hold {item!r}")

    @property
    def append_dict(self) -> dict[str, object] | None:
        """What is saved as well; numbers of epoch and step are 0 here."""
        found: dict[str, object] = {}
        for item in self.append_info:
            found |= item if isinstance(item, Mapping) else {item: 0}
        return found or None

    def get_checkpoint_policy(self) -> dict[str, object]:
        """Returns when checkpoints are saved and how many are kept."""
        names = ("save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max",
                 "keep_checkpoint_per_n_minutes", "saved_network")  # fmt: skip
        return {name: getattr(self, name) for name in names}


class ModelCheckpoint(Callback):
    """Saves the network with the optimizer's state as ``prefix-epoch_step.ckpt``.

    Where the folder has files of that prefix from an earlier run, the prefix gets a number:
    ``prefix_1``.

    Args:
        prefix: First part of the file names, or a function of the run that returns the whole
            name without suffix.
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
        self.directory: Path | Callable[..., PathLike] = (
            directory if callable(directory) else Path(directory or Path.cwd())
        )
        self.prefix = prefix
        if isinstance(prefix, str) and isinstance(self.directory, Path):
            self.prefix = _unused_prefix(self.directory, prefix)
        self.config = CheckpointConfig() if config is None else config
        self.files: list[Path] = []
        self._times: dict[Path, float] = {}
        self._last_time = 0.0
        self._last_step = 0

    @property
    def latest_ckpt_file_name(self) -> str:
        """The newest file."""
        return str(self.files[-1]) if self.files else ""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Starts the clock.

        Args:
            run_context: What is known of the run.
        """
        self._last_time = time.monotonic()
        self._last_step = 0

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Saves if it is time.

        Args:
            run_context: What is known of the run.
        """
        p, c = run_context.original_args(), self.config
        if c.save_checkpoint_steps:
            due = p.cur_step_num - self._last_step >= c.save_checkpoint_steps
        else:
            every = c.save_checkpoint_seconds
            due = bool(every) and time.monotonic() - self._last_time >= every
        if due:
            self._save(p)

    def on_train_end(self, run_context: RunContext) -> None:
        """Saves the last state.

        Args:
            run_context: What is known of the run.
        """
        p, c = run_context.original_args(), self.config
        saves = c.save_checkpoint_steps or c.save_checkpoint_seconds
        if saves and p.cur_step_num > self._last_step:
            self._save(p)

    def on_train_failed(self, run_context: RunContext) -> None:
        """Saves what was reached before an error, with ``exception_save``.

        Args:
            run_context: What is known of the run.
        """
        if self.config.exception_save:
            p = run_context.original_args()
            save_checkpoint(p.train_network, self._file(p, "_breakpoint", "ckpt"),
                            append_dict=self._appendix(p))  # fmt: skip

    def _appendix(self, p: object) -> dict[str, object]:
        result: dict[str, object] = {}
        for item in self.config.append_info:
            result |= item if isinstance(item, Mapping) else {item: getattr(p, f"cur_{item}")}
        return result

    def _file(self, p: RunArguments, after: str, suffix: str) -> Path:
        step = (p.cur_step_num - 1) % p.batch_num + 1
        folder: PathLike = self.directory(p) if callable(self.directory) else self.directory
        if callable(self.prefix):
            return Path(folder) / f"{self.prefix(p)}{after}.{suffix}"
        return Path(folder) / f"{self.prefix}-{p.cur_epoch_num}_{step}{after}.{suffix}"

    def _save(self, p: RunArguments) -> None:
        c = self.config
        file = self._file(p, "", c.format)
        network = c.saved_network or p.train_network
        save_checkpoint(network, file, append_dict=self._appendix(p), format=c.format)
        now = time.monotonic()
        self._last_step, self._last_time, self._times[file] = p.cur_step_num, now, now
        self.files = [f for f in self.files if f != file] + [file]
        while 0 < c.keep_checkpoint_max < len(self.files):
            self.files.pop(0).unlink(missing_ok=True)
        if c.keep_checkpoint_per_n_minutes:
            start = now - 60 * c.keep_checkpoint_per_n_minutes
            for f in [f for f in self.files if self._times[f] > start][1:-1]:
                self.files.remove(f)
                f.unlink(missing_ok=True)


class CheckpointManager:
    """Knows the checkpoints of a folder, for callbacks of one's own that keep some of them.

    Args:
        format: ``"ckpt"`` or ``"safetensors"``.
    """

    def __init__(self, format: str = "ckpt") -> None:
        self._format = format
        self.ckpoint_filelist: list[str] = []

    @property
    def ckpoint_num(self) -> int:
        """How many there are."""
        return len(self.ckpoint_filelist)

    def update_ckpoint_filelist(self, directory: PathLike, prefix: str) -> None:
        """Looks for them.

        Args:
            directory: The folder.
            prefix: What their names begin with; a number of epoch and step follows.
        """
        named = re.compile(rf"{re.escape(prefix)}-[^a-zA-Z]*\.{self._format}")
        found = Path(directory).iterdir()
        self.ckpoint_filelist = [str(f) for f in found if named.fullmatch(f.name)]

    def remove_ckpoint_file(self, file_name: str) -> None:
        """Deletes one; one that is gone already is only forgotten.

        Args:
            file_name: Its path.
        """
        Path(file_name).unlink(missing_ok=True)
        self.ckpoint_filelist = [f for f in self.ckpoint_filelist if f != file_name]

    def remove_oldest_ckpoint_file(self) -> None:
        """Deletes the one that was written first."""
        self.remove_ckpoint_file(min(self.ckpoint_filelist, key=lambda f: Path(f).stat().st_mtime))

    def keep_one_ckpoint_per_minutes(self, minutes: float, cur_time: float) -> None:
        """Deletes those of the last minutes except the first of them.

        Args:
            minutes: How many.
            cur_time: Until when, as ``time.time()`` counts.
        """
        times = {f: Path(f).stat().st_mtime for f in self.ckpoint_filelist}
        late = [f for f in times if cur_time - times[f] < 60 * minutes]
        for file in sorted(late, key=times.__getitem__)[1:]:
            self.remove_ckpoint_file(file)


def _unused_prefix(folder: Path, prefix: str) -> str:
    """The prefix, or the first ``prefix_n`` above those that checkpoints in a folder have."""
    named = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-.*(?<!_breakpoint)\.(?:ckpt|safetensors)")
    found = [named.fullmatch(f.name) for f in (folder.iterdir() if folder.is_dir() else ())]
    numbers = [int(match[1] or 0) for match in found if match]
    return f"{prefix}_{max(numbers) + 1}" if numbers else prefix


class BackupAndRestore(Callback):
    """Keeps a checkpoint of training that goes on where an earlier run was interrupted.

    Args:
        backup_dir: Folder of the file ``backup.ckpt``, which is loaded when training begins.
        save_freq: Every how many epochs it is written; ``"epoch"`` is 1.
        delete_checkpoint: Whether it is deleted when training is over.

    Raises:
        ArgumentError: if ``save_freq`` is neither ``"epoch"`` nor positive.

    Example:
        >>> ms.train.BackupAndRestore("/tmp/backup", save_freq=2).save_freq
        2
    """

    def __init__(
        self, backup_dir: str, save_freq: int | str = "epoch", delete_checkpoint: bool = True
    ) -> None:
        frequency = 1 if save_freq == "epoch" else save_freq
        if isinstance(frequency, str) or frequency < 1:
            reject(ArgumentError, "BackupAndRestore", f"save_freq cannot be {save_freq!r}",
                   fix="use 'epoch' or a positive int")  # fmt: skip
        self.backup_file = str(Path(backup_dir, "backup.ckpt"))
        self.save_freq, self.delete_checkpoint = frequency, delete_checkpoint

    def on_train_begin(self, run_context: RunContext) -> None:
        """Loads the file, if there is one.

        Args:
            run_context: What is known of the run.
        """
        if Path(self.backup_file).is_file():
            load_checkpoint(self.backup_file, run_context.original_args().train_network)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Writes the file.

        Args:
            run_context: What is known of the run.
        """
        p = run_context.original_args()
        if p.cur_epoch_num % self.save_freq == 0:
            save_checkpoint(p.train_network, self.backup_file)

    def on_train_end(self, run_context: RunContext) -> None:
        """Deletes the file.

        Args:
            run_context: What is known of the run.
        """
        if self.delete_checkpoint:
            Path(self.backup_file).unlink(missing_ok=True)


__all__ = ["BackupAndRestore", "CheckpointConfig", "CheckpointManager", "ModelCheckpoint"]
