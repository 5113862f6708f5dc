"""Event files of TensorBoard: what is recorded while a network trains.

The files are written by the package ``tensorboardX`` (``pip install tvmgraph[summary]``). Graphs
and lineages, which MindSpore writes for MindInsight besides, are not recorded.
"""

from __future__ import annotations

import importlib
import re
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tvmgraph.compat.paths import as_package
from tvmgraph.compat.primitives.base import Primitive
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, NotFoundError, reject
from tvmgraph.nn import Cell
from tvmgraph.nn._checks import boolean, positive
from tvmgraph.train.callback.base import Callback, RunArguments, RunContext, loss_value

PLUGINS = ("scalar", "image", "tensor", "histogram")
#: What networks recorded last, by plugin and name: the next :meth:`SummaryRecord.record` takes it.
PENDING: dict[tuple[str, str], Tensor] = {}


class _Summary(Primitive):
    """Records a tensor; the next :meth:`.SummaryRecord.record` writes it.

    Compiled code records in every call.

    Example:
        >>> ops.ScalarSummary()("loss", Tensor(0.5))
    """

    def __init__(self) -> None:
        super().__init__(type(self).__name__)

    @property
    def plugin(self) -> str:
        """Which part of TensorBoard shows it."""
        return self.name.removesuffix("Summary").lower()

    def as_effect(self, name: str, value: Tensor) -> tuple[Callable[..., None], tuple[object, ...]]:
        """Returns what a call does besides computing, as a function and its arguments."""
        _check(self.plugin, name, value)
        return PENDING.update, ({(self.plugin, name): value},)

    def __call__(self, name: str, value: Tensor) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Records ``value`` as ``name``."""
        function, args = self.as_effect(name, value)
        function(*args)


class ScalarSummary(_Summary):
    """Records a number; see :class:`SummaryRecord`."""


class ImageSummary(_Summary):
    """Records images (N, C, H, W) with elements from 0 to 1."""


class TensorSummary(_Summary):
    """Records the elements of a tensor."""


class HistogramSummary(_Summary):
    """Records how often the elements of a tensor lie where."""


def _check(plugin: str, name: object, value: object) -> None:
    if not isinstance(name, str) or not name:
        kind = ArgumentError if name == "" else DTypeError
        reject(kind, f"{plugin} summary", f"name must be a text, not {name!r:.60}")
    if not isinstance(value, Tensor):
        reject(DTypeError, f"{plugin} summary", f"value must be a Tensor, not {value!r:.60}")
    if plugin == "image" and (value.ndim != 4 or value.shape[1] not in (1, 3)):
        reject(ArgumentError, "image summary", f"{value.aval} are no images (N, 1 or 3, H, W)")


def _get_summary_tensor_data() -> dict[str, Tensor]:
    """Takes what networks recorded, by MindSpore's names such as ``x[:Tensor]``."""
    found = {f"{name}[:{plugin.title()}]": value for (plugin, name), value in PENDING.items()}
    PENDING.clear()
    return found


def _library(part: str) -> ModuleType:
    try:
        return importlib.import_module(f"tensorboardX.{part}")
    except ImportError as error:
        raise NotFoundError(
            "event files need the package tensorboardX", op="SummaryRecord",
            fix="pip install tvmgraph[summary]",
        ) from error  # fmt: skip


def _event(plugin: str, name: str, value: np.ndarray) -> Any:
    """Returns what TensorBoard reads of an array."""
    summary = _library("summary")
    if plugin == "scalar":
        return summary.scalar(name, float(value.reshape(-1)[0]))
    if plugin == "histogram":
        return summary.histogram(name, value[np.isfinite(value)], 30)
    if plugin == "image":
        return summary.image(name, np.clip(value, 0, 1).astype(np.float32), dataformats="NCHW")
    shapes = _library("proto.tensor_shape_pb2").TensorShapeProto
    tensor = _library("proto.tensor_pb2").TensorProto(
        dtype="DT_DOUBLE", double_val=value.astype(float).reshape(-1).tolist(),
        tensor_shape=shapes(dim=[shapes.Dim(size=n) for n in value.shape]),
    )  # fmt: skip
    kind = _library("proto.summary_pb2").Summary
    return kind(value=[kind.Value(tag=name, tensor=tensor)])


class SummaryRecord:
    """Writes event files that TensorBoard reads.

    Args:
        log_dir: Folder of the files; it is made.
        file_prefix: First part of the file's name.
        file_suffix: Its last part.
        num_process: Accepted for MindSpore's sake: the caller's process writes.
        network: A network whose graph MindInsight would show; it is not written.
        max_file_size: Bytes after which nothing more is written, with a warning.
        raise_exception: Whether a disk that cannot be written to is an error, not a warning.
        export_options: ``{"tensor_format": "npy"}`` also writes tensors as NumPy's files.

    Raises:
        NotFoundError: if ``tensorboardX`` is not installed.
        ArgumentError: for other options.

    Example:
        >>> with ms.SummaryRecord("./summary") as record:
        ...     record.add_value("scalar", "loss", Tensor(0.5))
        ...     record.record(step=1)
        True
    """

    def __init__(
        self, log_dir: str, file_prefix: str = "events", file_suffix: str = "_MS",
        num_process: int = 32, network: object = None, max_file_size: int | None = None,
        raise_exception: bool = False, export_options: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(log_dir, (str, Path)) or log_dir == "":
            self._reject(f"log_dir is {log_dir!r}", "the path of a folder")
        for name, part in (("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            if not isinstance(part, str):
                self._reject(f"{name} is {part!r}", "a str")
        positive("SummaryRecord", "num_process", num_process)
        if not isinstance(raise_exception, bool):
            self._reject(f"raise_exception is {raise_exception!r}", "a bool")
        if export_options not in (None, {}, {"tensor_format": "npy"}):
            self._reject(f"export_options is {export_options!r}", '{"tensor_format": "npy"}')
        self.log_dir = str(Path(log_dir).resolve())
        self._arrays = Path(self.log_dir) / f"export_{time.strftime('%Y%m%d%H%M%S')}" / "tensor"
        self._exports = bool(export_options)
        Path(self.log_dir).mkdir(parents=True, exist_ok=True)
        writer = _library("event_file_writer").EventsWriter
        self._writer: Any = writer(str(Path(self.log_dir) / file_prefix), file_suffix)
        self._values: dict[tuple[str, str], Tensor] = {}
        self._left = max_file_size
        self._strict = raise_exception
        self._mode = "train"

    def _reject(self, text: str, fix: str) -> None:
        reject(ArgumentError, "SummaryRecord", text, fix=f"use {fix}")

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def set_mode(self, mode: str) -> None:
        """Says what is recorded, ``"train"`` or ``"eval"``: the latter is part of the names.

        Args:
            mode: The word.

        Raises:
            ArgumentError: if it is another one.
        """
        if mode not in ("train", "eval"):
            self._reject(f"mode is {mode!r}", "'train' or 'eval'")
        self._mode = mode

    def add_value(self, plugin: str, name: str, value: Tensor) -> None:
        """Keeps a value for the next :meth:`record`.

        Args:
            plugin: ``"scalar"``, ``"image"``, ``"tensor"`` or ``"histogram"``.
            name: What TensorBoard calls it.
            value: A Tensor; images are (N, C, H, W).

        Raises:
            ArgumentError: for another plugin, or an empty name.
            DTypeError: if ``value`` is no Tensor.
        """
        if plugin not in PLUGINS:
            self._reject(f"plugin is {plugin!r}", f"one of {', '.join(PLUGINS)}")
        _check(plugin, name, value)
        self._values[plugin, name] = value

    def record(
        self, step: int, train_network: Cell | None = None,
        plugin_filter: Callable[[str], bool] | None = None,
    ) -> bool:  # fmt: skip
        """Writes the values that were added, or that networks recorded, since the last time.

        Args:
            step: Number of the step.
            train_network: A network whose graph MindInsight would show; it is not written.
            plugin_filter: Whether a plugin's values are written.

        Returns:
            Whether something was written.
        """
        if self._writer is None:
            self._reject("the record is closed", "another one")
        if isinstance(step, bool) or not isinstance(step, int):
            reject(DTypeError, "SummaryRecord.record", f"step must be an int, not {step!r}")
        found = PENDING | self._values
        PENDING.clear()
        self._values = {}
        chosen = {k: v for k, v in found.items() if plugin_filter is None or plugin_filter(k[0])}
        for (plugin, name), value in chosen.items():
            array = value.asnumpy()
            if self._exports and plugin == "tensor":
                self._arrays.mkdir(parents=True, exist_ok=True)
                np.save(self._arrays / f"{re.sub('[^A-Za-z0-9_]', '_', name)}_{step}.npy", array)
            shown = name if self._mode == "train" else f"eval/{name}"
            self._write(_event(plugin, shown, array), step)
        self.flush()
        return bool(chosen)

    def _write(self, summary: object, step: int) -> None:
        event = _library("proto.event_pb2").Event(summary=summary, step=step, wall_time=time.time())
        if self._left is not None:
            size = event.ByteSize()
            if size > self._left:
                if self._left:
                    warnings.warn(
                        "max_file_size is reached: nothing more is recorded", stacklevel=4
                    )
                self._left = 0
                return
            self._left -= size
        try:
            self._writer.write_event(event)
        except OSError as error:
            if self._strict:
                raise
            warnings.warn(f"the event file cannot be written: {error}", stacklevel=4)

    def flush(self) -> None:
        """Writes to the disk what is still in memory."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Writes what is left and closes the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


_COLLECTED: dict[str, object] = {
    "collect_metric": True, "collect_graph": True, "collect_train_lineage": True,
    "collect_eval_lineage": True, "collect_input_data": True, "collect_dataset_graph": True,
    "histogram_regular": None, "collect_landscape": None,
}  # fmt: skip


class SummaryCollector(Callback):
    """Records loss, learning rate, parameters and images of a training run.

    Args:
        summary_dir: Folder of the event files.
        collect_freq: Every how many steps.
        num_process: See :class:`SummaryRecord`.
        collect_specified_data: What is recorded: ``collect_metric`` (loss and learning rate),
            ``histogram_regular`` (parameters whose names match; by default the first five) and
            ``collect_input_data`` (images). Graphs, lineages and landscapes, which only MindInsight
            shows, are not recorded whatever it says.
        keep_default_action: Whether what it does not name is recorded as by default.
        custom_lineage_data: Of MindInsight; not recorded.
        collect_tensor_freq: Every how many steps parameters are recorded; by default
            ``collect_freq``.
        max_file_size: See :class:`SummaryRecord`.
        export_options: See :class:`SummaryRecord`.

    Raises:
        ArgumentError: for an unknown key or a frequency below 1.

    Example:
        >>> net = nn.Dense(2, 1)
        >>> model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
        >>> rows = (np.ones((4, 2), np.float32), np.ones((4, 1), np.float32))
        >>> data = dataset.NumpySlicesDataset(rows, ["x", "y"]).batch(2)
        >>> model.train(1, data, callbacks=[ms.SummaryCollector("summary", collect_freq=1)])
    """

    def __init__(
        self,
        summary_dir: str,
        collect_freq: int = 10,
        num_process: int = 32,
        collect_specified_data: dict[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: Mapping[str, object] | None = None,
        collect_tensor_freq: int | None = None,
        max_file_size: int | None = None,
        export_options: dict[str, str] | None = None,
    ) -> None:
        op = "SummaryCollector"
        for name, value in (("collect_freq", collect_freq), ("num_process", num_process)):
            positive(op, name, value)
        if collect_tensor_freq is not None:
            positive(op, "collect_tensor_freq", collect_tensor_freq)
        boolean(op, "keep_default_action", keep_default_action)
        given = collect_specified_data or {}
        if not isinstance(given, dict):
            reject(DTypeError, op, f"collect_specified_data must be a dict, not {given!r}")
        unknown = set(given) - set(_COLLECTED)
        if unknown:
            reject(ArgumentError, op,
                   f"collect_specified_data has no {sorted(unknown)[0]!r}",
                   fix=f"use some of {', '.join(_COLLECTED)}")  # fmt: skip
        defaults: dict[str, Any] = (
            _COLLECTED if keep_default_action else dict.fromkeys(_COLLECTED, False)
        )
        self._wanted = defaults | given
        self._options = (summary_dir, max_file_size, export_options)
        self._every, self._every_tensor = collect_freq, collect_tensor_freq or collect_freq
        self._record: SummaryRecord | None = None

    def begin(self, run_context: RunContext) -> None:
        """Opens the file.

        Args:
            run_context: What is known of the run.
        """
        folder, size, options = self._options
        self._record = SummaryRecord(folder, max_file_size=size, export_options=options)
        self._record.set_mode(getattr(run_context.original_args(), "mode", "train") or "train")

    def step_end(self, run_context: RunContext) -> None:
        """Records a step.

        Args:
            run_context: What is known of the run.
        """
        p, record = run_context.original_args(), self._record
        if record is None or getattr(p, "mode", "train") == "eval":
            return
        step = p.cur_step_num
        if self._every_tensor and (step == 1 or step % self._every_tensor == 0):
            for name, value in self._parameters(p.train_network):
                record.add_value("histogram", name, value)
        if step == 1 or step % self._every == 0:
            self._collect(record, p)
            record.record(step)

    def _collect(self, record: SummaryRecord, p: RunArguments) -> None:
        if self._wanted["collect_metric"]:
            record.add_value("scalar", "loss", Tensor(float(loss_value(p.net_outputs))))
            rate = getattr(p.optimizer, "learning_rate", None)
            if isinstance(rate, Parameter):
                record.add_value("scalar", "learning_rate", rate)
        data = getattr(p, "train_dataset_element", None)
        data = data[0] if isinstance(data, (tuple, list)) and data else data
        if not self._wanted["collect_input_data"] or not isinstance(data, Tensor):
            return
        if data.ndim == 4 and data.shape[1] in (1, 3):
            low, high = float(data.min()), float(data.max())
            scaled = (data.astype("float32") - low) / max(high - low, 1e-12)
            record.add_value("image", "input_data", scaled)

    def _parameters(self, network: Any) -> list[tuple[str, Tensor]]:
        pattern = self._wanted["histogram_regular"]
        if pattern is False or network is None:
            return []
        every = [(p.name, p) for p in network.trainable_params()]
        return every[:5] if pattern is None else [e for e in every if re.match(pattern, e[0])]

    def end(self, run_context: RunContext) -> None:
        """Closes the file.

        Args:
            run_context: What is known of the run.
        """
        if self._record is not None:
            self._record.close()


__all__ = [
    "HistogramSummary", "ImageSummary", "ScalarSummary", "SummaryCollector", "SummaryRecord",
    "TensorSummary",
]  # fmt: skip

__path__, __getattr__ = as_package(__name__)  # a package in MindSpore
