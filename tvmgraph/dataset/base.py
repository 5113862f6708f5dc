"""Dataset: a pipeline of rows; every method adds a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, SupportsInt

import numpy as np

from tvmgraph import hooks
from tvmgraph.core.arguments import Workers
from tvmgraph.core.notebook import fragment, heading, table
from tvmgraph.core.shown import Shown
from tvmgraph.core.tensor import Tensor
from tvmgraph.dataset.checks import count_of
from tvmgraph.errors import ArgumentError, DTypeError, LoadError, either, reject, require_offered

if TYPE_CHECKING:
    from tvmgraph.dataset.iterator import DatasetIterator
    from tvmgraph.dataset.stages import BatchInfo

Row = tuple[Any, ...]


def names_of(op: str, value: object) -> list[str]:
    """Returns column names as a list.

    Args:
        op: Name of the stage.
        value: A name, or a list of names.

    Raises:
        DTypeError: if they are not strings.
    """
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(v, str) for v in items):
        reject(DTypeError, op, f"column names must be strings, not {value!r}")
    if not items or len(set(items)) < len(items):
        reject(ArgumentError, op, f"column names must be different ones, not {value!r}")
    return list(items)


def kept(value: object) -> object:
    """Returns an entry of a row as an array; a dict stays one, as in MindSpore.

    Args:
        value: The entry.
    """
    return value if isinstance(value, dict) else np.asarray(value)


def as_row(value: object) -> Row:
    """Returns what stands for the entries of a row: several in a tuple or list, or one.

    Args:
        value: The entries, or the only one.
    """
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def on_host(value: object) -> object:
    """Returns an entry, as an array if it is a tensor.

    Args:
        value: Any entry of a row.
    """
    return value.asnumpy() if isinstance(value, Tensor) else value


class Dataset(Shown):
    """Rows with named columns; the base of every source and stage.

    Subclasses give ``columns``, :meth:`rows` and :meth:`get_dataset_size`.
    """

    columns: list[str]
    _epoch = 0
    _rows_over = 0  # of the coming pass

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass.

        Args:
            epoch: Number of the pass; another number gives another shuffling.
        """
        raise NotImplementedError

    def rows_at(self, numbers: np.ndarray) -> Iterator[Row]:
        """Yields rows of the first pass.

        Args:
            numbers: Their numbers in it, in the order wanted.
        """
        everything = list(self.rows(0))
        return (everything[i] for i in numbers)

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        raise NotImplementedError

    @property
    def dataset_size(self) -> int:
        """The number of rows of one pass."""
        return self.get_dataset_size()

    def __len__(self) -> int:
        return self.get_dataset_size()

    def _repr_html_(self) -> str:
        stages: list[tuple[str, str]] = []
        stage: Any = self
        while stage is not None:
            stages.append((repr(stage), ", ".join(map(str, stage.columns))))
            following = getattr(stage, "children", None)
            stage = getattr(stage, "child", None)
            if following:
                stages += [(f"from {one!r}", ", ".join(map(str, one.columns))) for one in following]
        head = heading(type(self).__name__, f"{len(stages)} stages, the source first")
        rows = [(i, *row) for i, row in enumerate(reversed(stages), 1)]
        return fragment(head + table(("", "stage", "columns"), rows))

    def __iter__(self) -> Iterator[list[Any]]:
        return iter(self.create_tuple_iterator(num_epochs=1))

    def __add__(self, other: Dataset) -> Dataset:
        return self.concat(other)

    # ---- stages -----------------------------------------------------------------------------

    def map(
        self,
        operations: object,
        input_columns: object = None,
        output_columns: object = None,
        num_parallel_workers: Workers | None = None,
        **options: object,
    ) -> Dataset:
        """Transforms columns.

        Args:
            operations: A callable, or a list of them applied in order; each takes the input
                columns and returns the output columns.
            input_columns: The columns given to the first operation; the first by default.
            output_columns: Names of the results; the input names by default.
            num_parallel_workers: Threads; rows keep their order.
            options: ``python_multiprocessing``, ``max_rowsize`` and ``offload``, kept for
                MindSpore programs.

        Raises:
            ArgumentError: if a column does not exist, or for any other option.
            DTypeError: if an operation cannot be called.
        """
        from tvmgraph.dataset.stages import MapDataset

        require_offered("map", options, ("max_rowsize", "offload", "python_multiprocessing"))
        return MapDataset(self, operations, input_columns, output_columns, num_parallel_workers)

    def batch(
        self,
        batch_size: int | Callable[[BatchInfo], int],
        drop_remainder: bool = False,
        num_parallel_workers: Workers | None = None,
        **options: Any,
    ) -> Dataset:
        """Stacks rows.

        Args:
            batch_size: Rows per batch, or a function of a :class:`BatchInfo` that returns it.
            drop_remainder: Whether a last, smaller batch is dropped.
            num_parallel_workers: Kept for MindSpore programs; stacking needs one thread.
            options: ``per_batch_map`` with ``input_columns`` and ``output_columns``: a function of
                lists of the batch's rows and a :class:`BatchInfo`, applied before stacking.
                ``python_multiprocessing`` and ``max_rowsize`` are kept for MindSpore programs.

        Raises:
            ArgumentError: if the batch size is not positive, or for any other option.
        """
        from tvmgraph.dataset.stages import BatchDataset

        return BatchDataset(self, batch_size, drop_remainder, **options)

    def padded_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_workers: Workers | None = None,
        pad_info: dict[str, tuple[object, object]] | None = None,
    ) -> Dataset:
        """Pads rows to one shape and stacks them.

        Args:
            batch_size: Rows per batch.
            drop_remainder: Whether a last, smaller batch is dropped.
            num_parallel_workers: Kept for MindSpore programs; stacking needs one thread.
            pad_info: ``{column: (shape, value)}``; None for a shape or an axis is the largest of
                the batch, and what is longer is cut. Without it, all columns are padded with 0.

        Raises:
            ArgumentError: if a column does not exist or the batch size is not positive.
            ShapeError: when read, if a row has another number of axes than its shape.
        """
        from tvmgraph.dataset.buckets import PaddedBatchDataset

        return PaddedBatchDataset(self, batch_size, drop_remainder, pad_info)

    def bucket_batch_by_length(
        self,
        column_names: object,
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        element_length_function: Callable[..., SupportsInt] | None = None,
        pad_info: dict[str, tuple[object, object]] | None = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batches rows of similar length together.

        Args:
            column_names: The columns that have the length.
            bucket_boundaries: Increasing lengths; a bucket holds those below its boundary, the
                last one the rest.
            bucket_batch_sizes: Rows per batch of every bucket, one more than boundaries.
            element_length_function: Length of the columns; by default that of the only one.
            pad_info: As of :meth:`padded_batch`.
            pad_to_bucket_boundary: Whether axes without a size are padded to the boundary less 1.
            drop_remainder: Whether batches that are not full at the end are dropped.

        Raises:
            ArgumentError: if boundaries and sizes do not fit.
        """
        from tvmgraph.dataset.buckets import BucketDataset

        return BucketDataset(
            self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function,
            pad_info, pad_to_bucket_boundary, drop_remainder,
        )  # fmt: skip

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """Joins the rows of the datasets that ``func(*row)`` makes of every row.

        Args:
            func: Makes a dataset of the entries of a row.
        """
        from tvmgraph.dataset.buckets import FlatMapDataset

        return FlatMapDataset(self, func)

    def shuffle(self, buffer_size: int) -> Dataset:
        """Shuffles within a window of ``buffer_size`` rows, differently in every epoch.

        Args:
            buffer_size: Rows of the window, at least 2.
        """
        from tvmgraph.dataset.stages import ShuffleDataset

        return ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Repeats the rows ``count`` times within one pass; without end for None or -1.

        Args:
            count: How often.
        """
        from tvmgraph.dataset.stages import RepeatDataset

        return RepeatDataset(self, count)

    def take(self, count: int = -1) -> Dataset:
        """Keeps the first ``count`` rows; all for -1.

        Args:
            count: How many rows.
        """
        from tvmgraph.dataset.stages import WindowDataset

        return WindowDataset(self, 0, None if count == -1 else count_of("take", "count", count, 1))

    def skip(self, count: int) -> Dataset:
        """Leaves out the first ``count`` rows.

        Args:
            count: How many rows.
        """
        from tvmgraph.dataset.stages import WindowDataset

        return WindowDataset(self, count_of("skip", "count", count, 0), None)

    def sync_wait(
        self,
        condition_name: str,
        num_batch: int = 1,
        callback: Callable[[object], object] | None = None,
    ) -> Dataset:
        """Prepares every row when it is asked for, so that :meth:`sync_update` decides about it.

        Args:
            condition_name: What :meth:`sync_update` names.
            num_batch: Kept for MindSpore programs: rows that are prepared before the first update.
            callback: Called with the data of every update.

        Raises:
            LoadError: if the pipeline has a condition of this name.
        """
        from tvmgraph.dataset.stages import SyncWaitDataset

        count_of("sync_wait", "num_batch", num_batch, 1)
        return SyncWaitDataset(self, condition_name, callback)

    def sync_update(
        self, condition_name: str, num_batch: int | None = None, data: object = None
    ) -> None:
        """Calls the callback of a condition; see :meth:`sync_wait`.

        Args:
            condition_name: The condition.
            num_batch: Kept for MindSpore programs: rows that may be prepared from now on.
            data: What the callback is given.

        Raises:
            LoadError: if there is no such condition.
        """
        from tvmgraph.dataset.stages import conditions

        if num_batch is not None:
            count_of("sync_update", "num_batch", num_batch, 1)
        known = {c.name: c for c in conditions(self)}
        if condition_name not in known:
            reject(LoadError, "sync_update", f"there is no condition {condition_name!r}",
                   fix=f"use one of {sorted(known)}, or add it by sync_wait")  # fmt: skip
        callback = known[condition_name].callback
        if callback is not None:
            callback(data)

    def zip(self, datasets: Dataset | tuple[Dataset, ...] | list[Dataset]) -> Dataset:
        """Joins the columns of several datasets row by row, up to the shortest.

        Args:
            datasets: The other dataset or datasets; no two have a column of one name.
        """
        from tvmgraph.dataset.stages import ZipDataset

        others = [*datasets] if isinstance(datasets, (tuple, list)) else [datasets]
        return ZipDataset([self, *others])

    def concat(self, datasets: Dataset | tuple[Dataset, ...] | list[Dataset]) -> Dataset:
        """Appends the rows of other datasets with the same columns.

        Args:
            datasets: The other dataset or datasets.
        """
        from tvmgraph.dataset.stages import ConcatDataset

        others = [*datasets] if isinstance(datasets, (tuple, list)) else [datasets]
        return ConcatDataset([self, *others])

    def filter(
        self,
        predicate: Callable[..., object],
        input_columns: object = None,
        num_parallel_workers: Workers | None = None,
    ) -> Dataset:
        """Keeps the rows for which ``predicate(*input_columns)`` is true.

        Args:
            predicate: A function of elements that says whether their row is kept.
            input_columns: Names of the columns that it is given; all by default.
            num_parallel_workers: Kept for MindSpore programs.
        """
        from tvmgraph.dataset.stages import FilterDataset

        return FilterDataset(self, predicate, input_columns)

    def project(self, columns: object) -> Dataset:
        """Keeps the named columns, in this order.

        Args:
            columns: A name or a list of names.
        """
        from tvmgraph.dataset.stages import ProjectDataset

        return ProjectDataset(self, columns, names_of("project", columns))

    def rename(self, input_columns: object, output_columns: object) -> Dataset:
        """Gives columns other names.

        Args:
            input_columns: A name or a list of names.
            output_columns: As many other ones.
        """
        from tvmgraph.dataset.stages import ProjectDataset

        old, new = names_of("rename", input_columns), names_of("rename", output_columns)
        if len(old) != len(new):
            reject(ArgumentError, "rename", "input_columns and output_columns differ in length")
        self._columns_at("rename", old)
        renamed = dict(zip(old, new))
        return ProjectDataset(self, self.columns, [renamed.get(c, c) for c in self.columns])

    def split(self, sizes: Sequence[object], randomize: bool = True) -> tuple[Dataset, ...]:
        """Splits the rows into parts.

        Args:
            sizes: Numbers of rows, or fractions that sum to 1.
            randomize: Whether the rows are shuffled (once, by the seed) before.

        Raises:
            ArgumentError: if the sizes do not sum to the number of rows.
        """
        from tvmgraph.dataset.stages import split

        return split(self, sizes, randomize)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Returns ``apply_func(self)``.

        Args:
            apply_func: Makes a dataset of this one.

        Raises:
            DTypeError: if it does not return a Dataset.
        """
        found = apply_func(self)
        if not isinstance(found, Dataset):
            reject(DTypeError, "apply", f"apply_func returned {type(found).__name__}, no Dataset")
        return found

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Writes the rows of one pass into MindRecord files.

        Args:
            file_name: The file; with several of them their numbers are added to its name.
            num_files: Over how many files the rows are divided.
            file_type: ``"mindrecord"``.

        Raises:
            ArgumentError: if a file exists, or ``file_type`` is another one.
        """
        if file_type != "mindrecord":
            reject(ArgumentError, "save", f'file_type must be "mindrecord", not {file_type!r}')
        hooks.write_rows(self, file_name, num_files)

    # ---- reading ----------------------------------------------------------------------------

    def create_tuple_iterator(
        self,
        columns: object = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> DatasetIterator:
        """Returns an iterator of lists with one Tensor per column; each loop over it is one epoch.

        Args:
            columns: The columns to return; all by default.
            num_epochs: How many loops are allowed; any number for -1.
            output_numpy: Whether arrays come instead of Tensors.
            do_copy: Whether every Tensor gets storage of its own.

        Raises:
            ArgumentError: if a column does not exist.
        """
        from tvmgraph.dataset.iterator import DatasetIterator

        chosen = self if columns is None else self.project(columns)
        return DatasetIterator(chosen, num_epochs, output_numpy, do_copy, as_dict=False)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DatasetIterator:
        """Returns an iterator of dicts by column name; see :meth:`create_tuple_iterator`.

        Args:
            num_epochs: How often it may be begun; -1 is without end.
            output_numpy: Whether elements are arrays, not tensors.
            do_copy: Whether tensors own their memory.
        """
        from tvmgraph.dataset.iterator import DatasetIterator

        return DatasetIterator(self, num_epochs, output_numpy, do_copy, as_dict=True)

    # ---- facts ------------------------------------------------------------------------------

    def num_classes(self) -> int | None:
        """Returns the number of classes of a source that knows it, None of others."""
        return None

    def get_class_indexing(self) -> dict[str, int]:
        """Returns the labels by name of a source whose labels have names."""
        return {}

    def _columns_at(self, op: str, columns: object) -> list[int]:
        """Returns where columns are.

        Raises:
            ArgumentError: if one does not exist.
        """
        found = []
        for name in names_of(op, columns):
            if name not in self.columns:
                reject(either(ArgumentError, RuntimeError), op, f"there is no column {name!r}",
                       fix=f"use one of {', '.join(self.columns)}")  # fmt: skip
            found.append(self.columns.index(name))
        return found

    def get_col_names(self) -> list[str]:
        """Returns the column names."""
        return list(self.columns)

    def get_batch_size(self) -> int:
        """Returns the rows per batch; 1 before ``batch``."""
        return 1

    def get_repeat_count(self) -> int:
        """Returns how often ``repeat`` repeats; 1 without."""
        return 1

    def _first(self) -> list[np.ndarray]:
        for row in self.rows(0):
            return [np.asarray(v) for v in row]
        reject(ArgumentError, "Dataset", "the dataset has no row")

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """Returns the shape of every column.

        Args:
            estimate: Whether all rows are read, not the first one only; sizes that differ between
                them are None then.
        """
        shapes = [[list(v.shape) for v in self._first()]]
        if estimate:
            shapes = [[list(np.shape(v)) for v in row] for row in self.rows(0)]
        return [
            [sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*column, strict=True)]
            for column in zip(*shapes)
        ]

    def output_types(self) -> list[np.dtype | type]:
        """Returns the dtype of every column, from the first row; of text its class."""
        return [v.dtype.type if v.dtype.kind in "US" else v.dtype for v in self._first()]

    def next_epoch(self) -> int:
        """Returns the number of the coming pass."""
        self._epoch += 1
        return self._epoch - 1

    def reset(self) -> None:
        """Starts again with the first epoch's order."""
        self._epoch = self._rows_over = 0

    def set_init_step(self, init_step: int) -> None:
        """Lets the next iterator begin where a run of ``init_step`` steps ended.

        Args:
            init_step: How many rows, counted over the epochs, are over.

        Raises:
            ArgumentError: if it is negative.
        """
        step = count_of("set_init_step", "init_step", init_step, 0)
        self._epoch, self._rows_over = divmod(step, max(1, self.get_dataset_size()))

    def get_init_step(self) -> int:
        """Returns how many rows, counted over the epochs, the next iterator finds over."""
        return self._epoch * self.get_dataset_size() + self._rows_over

    def take_rows_over(self) -> int:
        """Returns how many rows the coming pass leaves out, which the pass after it does not."""
        rows, self._rows_over = self._rows_over, 0
        return rows
