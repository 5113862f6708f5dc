"""MindSpore's names for feeding a function or network from a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tvmgraph.compat.checkparam import check_bool, check_is_int
from tvmgraph.config.settings import JitConfig
from tvmgraph.dataset.base import Dataset
from tvmgraph.errors import ArgumentError


def data_sink(
    fn: Callable[..., object],
    dataset: Dataset,
    sink_size: int = 1,
    jit_config: JitConfig | None = None,
    input_signature: object = None,
) -> Callable[[], object]:
    """Returns a function that calls ``fn`` with the next batches of a data set.

    Args:
        fn: Function of the columns, such as a training step.
        dataset: Where the batches come from; it begins again when it has ended.
        sink_size: How many batches a call takes.
        jit_config: Compiles ``fn`` with these settings.
        input_signature: Not used: shapes are those of the batches.

    Returns:
        A function without arguments that returns the result of the last batch.

    Raises:
        ArgumentError: if ``sink_size`` is below 1 or the data set is empty.
    """
    if sink_size < 1:
        raise ArgumentError("sink_size must be at least 1", op="data_sink")
    if jit_config is not None:
        from tvmgraph.jit import jit

        fn = jit(fn, jit_config=jit_config)
    batches = _endless(dataset)

    def sink() -> object:
        result = None
        for _ in range(sink_size):
            result = fn(*next(batches))
        return result

    return sink


def _endless(dataset: Dataset) -> Iterator[list[object]]:
    while True:
        count = 0
        for batch in dataset.create_tuple_iterator(num_epochs=1):
            count += 1
            yield batch
        if count == 0:
            raise ArgumentError("the data set is empty", op="data_sink")


class DatasetHelper:
    """Iterates over a data set as ``Model`` does.

    Args:
        dataset: The data set.
        dataset_sink_mode: Kept for MindSpore programs: batches are handed over one by one.
        sink_size: Batches of an epoch; -1 takes all.
        epoch_num: Number of epochs, kept for MindSpore programs.

    Raises:
        DTypeError: if ``dataset_sink_mode`` is no bool or ``sink_size`` no int.
        ArgumentError: if ``sink_size`` is neither -1 nor positive.
    """

    def __init__(self, dataset: Dataset, dataset_sink_mode: bool = True, sink_size: int = -1,
                 epoch_num: int = 1) -> None:  # fmt: skip
        check_bool(dataset_sink_mode, "dataset_sink_mode", "DatasetHelper")
        if check_is_int(sink_size, "sink_size", "DatasetHelper") < -1 or sink_size == 0:
            raise ArgumentError(f"sink_size must be -1 or positive, not {sink_size}",
                                op="DatasetHelper")  # fmt: skip
        self.dataset, self._sink, self._size = dataset, dataset_sink_mode, sink_size
        self.epoch_num = epoch_num

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self.dataset.create_tuple_iterator(num_epochs=1)):
            if number == self._size:
                return
            yield batch

    def sink_size(self) -> int:
        """Returns how many batches each item stands for: 1."""
        return 1

    def types_shapes(self) -> tuple[list[Any], list[Any]]:
        """Returns the dtypes and shapes of a batch."""
        return self.dataset.output_types(), self.dataset.output_shapes()

    def get_data_info(self) -> tuple[list[object], list[object]]:
        """Returns the dtypes and shapes of a batch."""
        return self.types_shapes()

    def stop_send(self) -> None:
        """Does nothing: batches are not sent ahead."""

    def release(self) -> None:
        """Does nothing: nothing is held between batches."""

    def continue_send(self) -> None:
        """Does nothing: batches are not sent ahead."""


def connect_network_with_dataset(network: object, dataset_helper: DatasetHelper) -> Any:
    """Returns the network: it is given the batches by whoever iterates over the helper.

    Args:
        network: The network.
        dataset_helper: What its batches come from.
    """
    return network


__all__ = ["DatasetHelper", "connect_network_with_dataset", "data_sink"]
