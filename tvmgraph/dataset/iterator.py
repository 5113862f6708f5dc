"""Reading a pipeline: a thread prepares rows ahead while the program uses the last one."""

from __future__ import annotations

import itertools
import os
import queue
import threading
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from tvmgraph.core.shown import Shown
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.dataset import config
from tvmgraph.dataset.base import Dataset, Row
from tvmgraph.dataset.checks import count_of
from tvmgraph.dataset.stages import conditions
from tvmgraph.errors import (
    ArgumentError,
    DeviceError,
    TvmgraphError,
    also_runtime,
    either,
    reject,
    user_source,
)


class _End:
    """The last thing a producer puts: no more rows, or what went wrong."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def _put(target: queue.Queue[object], item: object, stop: threading.Event) -> bool:
    """Puts an item unless the reader has gone."""
    while not stop.is_set():
        try:
            target.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False


def _produce(
    dataset: Dataset, epoch: int, target: queue.Queue[object], stop: threading.Event
) -> None:
    end = _End()
    try:
        for row in dataset.rows(epoch):
            if not _put(target, row, stop):
                return
    except BaseException as e:  # raised again where the rows are read
        end = _End(e)
    _put(target, end, stop)


def prefetch(dataset: Dataset, epoch: int) -> Iterator[Row]:
    """Yields the rows of one pass, prepared ahead by a thread.

    An error in the pipeline is raised here, with the pipeline's own traceback.

    Args:
        dataset: The pipeline.
        epoch: Number of the pass.

    Raises:
        DeviceError: if the process was forked in the middle of the pass.
    """
    size = config.get_prefetch_size()
    if size == 0 or conditions(dataset):  # rows that wait for an update are not prepared ahead
        yield from dataset.rows(epoch)
        return
    ready: queue.Queue[Row | _End] = queue.Queue(size)
    stop = threading.Event()
    thread = threading.Thread(
        target=_produce, args=(dataset, epoch, ready, stop), daemon=True, name="tvmgraph-dataset"
    )
    thread.start()
    process = os.getpid()
    try:
        while True:
            if os.getpid() != process:
                reject(
                    DeviceError, "DatasetIterator",
                    "the thread that prepares its rows stayed behind when this process was forked",
                    fix="create the iterator in the process that reads it, or set_prefetch_size(0)",
                )  # fmt: skip
            item = ready.get()
            if isinstance(item, _End):
                if isinstance(item.error, TvmgraphError):  # its thread knew no line of the user's
                    raise item.error.locate("", "", user_source())
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        if os.getpid() == process:
            stop.set()
            if thread is not threading.current_thread():  # which may collect this generator, too
                thread.join()


class DatasetIterator(Shown):
    """Loops over a dataset; every ``for`` loop is one epoch.

    Args:
        dataset: The pipeline.
        num_epochs: How many loops are allowed; any number for -1.
        output_numpy: Whether arrays come instead of Tensors.
        do_copy: Whether every Tensor gets storage of its own.
        as_dict: Whether rows come as dicts by column name.
    """

    def __init__(
        self, dataset: Dataset, num_epochs: int, output_numpy: bool, do_copy: bool, as_dict: bool
    ) -> None:
        if num_epochs != -1:
            count_of("create_iterator", "num_epochs", num_epochs, 1)
        self.dataset = dataset
        self.left = num_epochs
        self.output_numpy = output_numpy
        self.do_copy = do_copy
        self.as_dict = as_dict
        names = dataset.columns  # what is known of a file is seen once it is renamed
        self.kept = [i for i, name in enumerate(names) if not name.startswith("_meta-")]
        self.names = [names[i] for i in self.kept]
        self._running: Iterator[object] | None = None

    def __iter__(self) -> Iterator[Any]:
        if self.left == 0:
            reject(either(ArgumentError, RuntimeError), "DatasetIterator",
                   "all epochs of this iterator are over",
                   fix="create another one, or give it more num_epochs")  # fmt: skip
        if self.left > 0:
            self.left -= 1
        return self._rows(self.dataset.next_epoch())

    def __next__(self) -> Any:
        if self._running is None:
            self._running = iter(self)
        return next(self._running)

    def stop(self) -> None:
        """Ends what this iterator does ahead; no loop may be begun any more."""
        self.left, running = 0, self._running
        self._running = None
        if isinstance(running, Generator):
            running.close()

    def _rows(self, epoch: int) -> Iterator[object]:
        rows = itertools.islice(prefetch(self.dataset, epoch), self.dataset.take_rows_over(), None)
        while True:
            try:
                row = next(rows, None)
            except Exception as e:
                raise also_runtime(e) from e.__cause__
            if row is None:
                return
            values = [self._convert(row[i]) for i in self.kept]
            yield dict(zip(self.names, values)) if self.as_dict else values

    def _convert(self, value: object, inside: bool = False) -> object:
        if isinstance(value, Tensor):
            value = value.asnumpy()
        if isinstance(value, dict):
            return {k: self._convert(v, True) for k, v in value.items()}
        if inside and isinstance(value, (tuple, list)):
            return type(value)(self._convert(v, True) for v in value)
        array = np.asarray(value, order="C")  # as other packages want it
        if self.output_numpy or array.dtype.kind in "USO":  # text has no Tensor form
            return array
        return Tensor(array) if self.do_copy else tensor_from_numpy(array)
