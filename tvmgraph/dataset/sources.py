"""Where rows come from: generators, arrays, files."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import Workers
from tvmgraph.core.tensor import Tensor
from tvmgraph.dataset.base import Dataset, Row, as_row, kept, names_of, on_host
from tvmgraph.dataset.checks import count_of
from tvmgraph.dataset.samplers import (
    DistributedSampler,
    PKSampler,
    Sampler,
    generator_of,
    sampler_of,
)
from tvmgraph.dataset.schema import Schema
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    either,
    reject,
    require_offered,
    warn_user,
)


def _row(value: object) -> Row:
    return tuple(map(on_host, as_row(value)))


class Source(Dataset):
    """A source whose rows have numbers, so that they can be shuffled and sharded.

    Args:
        rows: How many there are; None if that is only found by going through them.
        num_samples: How many of them are used.
        shuffle: Whether every epoch has another order; true by default.
        num_shards: How many shards of equal size the rows are dealt to; the last ones take rows
            from the beginning again, so that no process waits for another's batch.
        shard_id: Which shard this is.
        sampler: Decides about the rows instead of the three before.
    """

    scope = "global"  # or "files" or "infile": what is shuffled, see shuffle_files
    counts: Sequence[int] = ()
    in_blocks = False  # whether a shard is a run of rows (lines of files), not every n-th

    def __init__(
        self,
        rows: int | None,
        num_samples: int | None,
        shuffle: bool | None,
        num_shards: int | None,
        shard_id: int | None,
        sampler: Sampler | Iterable[int] | None = None,
    ) -> None:
        self.sampler = sampler_of(type(self).__name__, sampler, shuffle, num_shards)
        if (num_shards is None) != (shard_id is None):
            reject(either(ArgumentError, RuntimeError), type(self).__name__,
                   "num_shards and shard_id belong together")  # fmt: skip
        self.shuffled = shuffle is None or bool(shuffle)
        self.shards, self.shard = num_shards or 1, shard_id or 0
        if not 0 <= self.shard < self.shards:
            reject(ArgumentError, type(self).__name__,
                   f"shard_id {self.shard} is outside the {self.shards} shards")  # fmt: skip
        self.limit = 0 if num_samples is None else count_of(
            type(self).__name__, "num_samples", num_samples, 0
        )  # fmt: skip
        if rows is not None:
            self.total = rows

    @functools.cached_property
    def total(self) -> int:
        """Number of all rows, which most sources know when they are made."""
        raise NotImplementedError

    @functools.cached_property
    def size(self) -> int:
        """Number of the rows of this shard that are used."""
        own = -(-self.total // self.shards)
        return min(own, self.limit or own)

    def order(self, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass.

        Args:
            epoch: Number of the pass.
        """
        if self.sampler is not None:
            for sampler in self.sampler.chain():
                if isinstance(sampler, PKSampler):
                    (where,) = self._columns_at("PKSampler", sampler.class_column)
                    sampler.labels = self.column(where)
            return self.sampler.drawn(self.total, epoch)[: self.size]
        numbers = self._shuffled(epoch) if self.shuffled else np.arange(self.total)
        own = -(-self.total // self.shards)
        shares = np.resize(numbers, own * self.shards)
        parts = shares.reshape(self.shards, own) if self.in_blocks else shares.reshape(own, -1).T
        return parts[self.shard][: self.size]

    def shuffle_files(self, shuffle: object, counts: Sequence[int]) -> None:
        """Shuffles only files as wholes, or rows within their files, where that is asked for.

        Args:
            shuffle: ``Shuffle.FILES`` or ``Shuffle.INFILE``; anything else changes nothing.
            counts: Rows of every file.
        """
        if shuffle in ("files", "infile"):
            self.scope, self.counts = str(shuffle), counts

    def rows_by_file(self) -> list[np.ndarray]:
        """Returns the numbers of the rows of every file."""
        return np.split(np.arange(self.total), np.cumsum(self.counts)[:-1])

    def _shuffled(self, epoch: int) -> np.ndarray:
        """The numbers of all rows in the order of one pass."""
        random = generator_of(epoch)
        if self.scope == "global":
            return random.permutation(self.total)
        parts = self.rows_by_file()
        if self.scope == "files":
            return np.concatenate([parts[i] for i in random.permutation(len(parts))])
        return np.concatenate([random.permutation(part) for part in parts])

    def use_sampler(self, new_sampler: object) -> None:
        """Draws the rows by another sampler than before.

        Args:
            new_sampler: The sampler.

        Raises:
            DTypeError: if it is no sampler.
        """
        if not isinstance(new_sampler, Sampler):
            reject(DTypeError, "use_sampler",
                   f"new_sampler is a {type(new_sampler).__name__}, no Sampler")  # fmt: skip
        self.sampler, self.size = new_sampler, self.total

    def add_sampler(self, new_sampler: Sampler) -> None:
        """Draws by another sampler among the rows drawn so far.

        Args:
            new_sampler: The sampler.

        Raises:
            DTypeError: if it is no sampler.
            ArgumentError: if it has a child already.
        """
        old = self.sampler or DistributedSampler(self.shards, self.shard, self.shuffled, self.size)
        self.use_sampler(new_sampler)
        new_sampler.add_child(old)

    def column(self, where: int) -> np.ndarray:
        """Returns one column of all rows.

        Args:
            where: Number of the column.
        """
        return np.asarray([self.row(i)[where] for i in range(self.total)])

    def row(self, i: int) -> Row:
        """Returns one row.

        Args:
            i: Number of the row.
        """
        raise NotImplementedError

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        return (self.row(int(i)) for i in self.order(epoch))

    def rows_at(self, numbers: np.ndarray) -> Iterator[Row]:
        """Yields rows of the first pass, and reads no others."""
        return (self.row(int(i)) for i in self.order(0)[numbers])

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        return self.size if self.sampler is None else len(self.order(0))


class _Kept:
    """Rows of an iterator, which come only once: they are kept for the passes after the first."""

    def __init__(self, rows: Iterator[object]) -> None:
        self._rows, self._turn = rows, threading.Lock()
        self._kept: list[object] = []

    def __reduce__(self) -> tuple[object, ...]:
        return _Kept, (iter(list(self)),)

    def __iter__(self) -> Iterator[object]:
        for i in itertools.count():
            with self._turn:  # of passes in several threads
                if i == len(self._kept):
                    self._kept += itertools.islice(self._rows, 1)
            if i >= len(self._kept):
                return
            yield self._kept[i]


class GeneratorDataset(Source):
    """Rows from Python.

    Args:
        source: An object with ``__getitem__`` and ``__len__`` (its rows are shuffled by default),
            an iterable, or a function that returns an iterator; the rows of an iterator itself
            are kept, as they come only once. A row is a tuple or list with one entry
            per column; where there is one column, also what is neither.
        column_names: Names of the columns.
        column_types: dtypes the columns are converted to.
        schema: A :class:`Schema` with the names and types of columns, instead of the two before.
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs; use ``map`` for work in threads.
        shuffle: Whether every epoch has another order; only for iterators, and sources with
            ``__getitem__``.
        sampler: A :class:`Sampler`, or an iterable of row numbers; only for sources with
            ``__getitem__``.
        num_shards: How many shards the rows are dealt to.
        shard_id: Which shard this is.
        options: ``python_multiprocessing`` and ``max_rowsize``, kept for MindSpore programs.

    Raises:
        ArgumentError: if column names are missing, or for any other option.
        DTypeError: if the source is none of these.

    Example:
        >>> data = dataset.GeneratorDataset([(1, 2), (3, 4)], ["a", "b"], shuffle=False)
        >>> [int(a) for a, _ in data]
        [1, 3]
    """

    def __init__(
        self,
        source: Any,
        column_names: str | Sequence[str] | None = None,
        column_types: Iterable[object] | None = None,
        schema: object = None,
        num_samples: int | None = None,
        num_parallel_workers: Workers | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        **options: object,
    ) -> None:
        require_offered("GeneratorDataset", options, ("max_rowsize", "python_multiprocessing"))
        if schema is not None:
            if not isinstance(schema, Schema):
                reject(DTypeError, "GeneratorDataset", f"schema is a {type(schema).__name__}",
                       fix="give a dataset.Schema")  # fmt: skip
            column_names = list(schema.columns)
            column_types = [dtype for dtype, _ in schema.columns.values()]
        if column_names is None:
            reject(ArgumentError, "GeneratorDataset", "column_names is missing",
                   fix='pass for example ["image", "label"]')  # fmt: skip
        self.source: Any = source
        self.columns = names_of("GeneratorDataset", column_names)
        types = None if column_types is None else list(column_types)
        self.types = None if types is None else [dtypes.dtype_of(t).numpy for t in types]
        if shuffle and isinstance(source, Iterator):  # its rows come once and are kept anyway
            self.source = source = list(source)
        self.random_access = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self.random_access and not callable(source) and not hasattr(source, "__iter__"):
            reject(
                DTypeError,
                "GeneratorDataset",
                f"source cannot be a {type(source).__name__}",
                fix="give an iterable, a function that returns an iterator, or __getitem__",
            )
        if not self.random_access and shuffle:  # MindSpore's program goes on, too
            warn_user("GeneratorDataset: an iterator is not shuffled; give the source __getitem__ "
                      "and __len__, or call .shuffle(buffer)")  # fmt: skip
        if not self.random_access and sampler is not None:
            reject(ArgumentError, "GeneratorDataset", "an iterator has no row numbers to sample",
                   fix="give the source __getitem__ and __len__")  # fmt: skip
        if not self.random_access and isinstance(source, Iterator):  # its rows come only once
            self.source = _Kept(itertools.islice(source, num_samples or None))
        rows = len(self.source) if self.random_access else num_samples or None
        super().__init__(rows, num_samples, shuffle, num_shards, shard_id, sampler)

    @functools.cached_property
    def total(self) -> int:
        """Number of all rows. An iterator, which may be endless, is run when somebody asks."""
        return sum(1 for _ in self._iterate())

    def _iterate(self) -> Iterator[object]:
        source: Any = self.source() if callable(self.source) else self.source
        return iter(source)

    def _typed(self, row: Row) -> Row:
        if len(row) != len(self.columns):
            reject(either(ArgumentError, RuntimeError), "GeneratorDataset",
                   f"a row has {len(row)} entries for {len(self.columns)} columns",
                   fix="return a tuple with one entry per column")  # fmt: skip
        if self.types is None:
            return tuple(kept(v) for v in row)
        return tuple(np.asarray(v).astype(t) for v, t in zip(row, self.types))

    def row(self, i: int) -> Row:
        """Returns one row."""
        return self._typed(_row(self.source[i]))

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        if self.random_access:
            return super().rows(epoch)
        end = self.size * self.shards if self.limit else None
        mine = itertools.islice(self._iterate(), self.shard, end, self.shards)
        return (self._typed(_row(r)) for r in mine)

    def rows_at(self, numbers: np.ndarray) -> Iterator[Row]:
        """Yields rows of the first pass."""
        return super().rows_at(numbers) if self.random_access else Dataset.rows_at(self, numbers)


def _column(rows: object) -> np.ndarray:
    """Returns rows as one array; one of arrays where their shapes differ."""
    if isinstance(rows, Tensor):
        return rows.asnumpy()
    try:
        return np.asarray(rows)
    except ValueError:
        if not isinstance(rows, Sequence):
            raise
        found = np.empty(len(rows), object)
        found[:] = [np.asarray(r) for r in rows]
        return found


class NumpySlicesDataset(Source):
    """Rows of arrays: the first axis counts them.

    Args:
        data: An array, a tuple of arrays or lists, or a dict of them by column name; the rows of a
            list may differ in shape.
        column_names: Names of the columns; ``column_0`` and so on by default.
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order; true by default.
        sampler: A :class:`Sampler`, or an iterable of row numbers.
        num_shards: How many shards the rows are dealt to.
        shard_id: Which shard this is.

    Raises:
        ArgumentError: if the columns have different lengths or names are missing.

    Example:
        >>> data = dataset.NumpySlicesDataset({"x": [1, 2], "y": [3, 4]}, shuffle=False)
        >>> data.get_col_names(), len(data)
        (['x', 'y'], 2)
    """

    def __init__(
        self,
        data: object,
        column_names: object = None,
        num_samples: int | None = None,
        num_parallel_workers: Workers | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        names = None if column_names is None else names_of("NumpySlicesDataset", column_names)
        if isinstance(data, (list, tuple, dict)) and not data:
            reject(ArgumentError, "NumpySlicesDataset", "data must not be empty")
        if isinstance(data, dict):
            names, data = names or list(data), tuple(data.values())
        columns = data if isinstance(data, tuple) else (data,)
        self.arrays = tuple(_column(c) for c in columns)
        self.ragged = any(a.dtype == object for a in self.arrays)
        self.columns = names or [f"column_{i}" for i in range(len(self.arrays))]
        lengths = {len(a) for a in self.arrays}
        if len(self.columns) != len(self.arrays) or len(lengths) != 1:
            reject(ArgumentError, "NumpySlicesDataset",
                   f"{len(self.arrays)} columns of lengths {sorted(lengths)}, "
                   f"names {self.columns}", fix="give equal lengths and one name each")  # fmt: skip
        super().__init__(lengths.pop(), num_samples, shuffle, num_shards, shard_id, sampler)

    def column(self, where: int) -> np.ndarray:
        """Returns one column of all rows."""
        return self.arrays[where]

    def row(self, i: int) -> Row:
        """Returns one row."""
        return tuple(a[i] for a in self.arrays)

    def gather(self, numbers: np.ndarray) -> Row:
        """Returns several rows, stacked.

        Args:
            numbers: Numbers of the rows.
        """
        return tuple(a[numbers] for a in self.arrays)


class PaddedDataset(GeneratorDataset):
    """Given rows, which stand behind those of another dataset.

    Args:
        padded_samples: Rows as dicts by column name.

    Example:
        >>> len(dataset.PaddedDataset([{"x": np.zeros(2)}]))
        1
    """

    def __init__(self, padded_samples: Sequence[Mapping[str, object]]) -> None:
        rows = list(padded_samples)
        if not rows or not all(isinstance(r, dict) and r.keys() == rows[0].keys() for r in rows):
            reject(ArgumentError, "PaddedDataset", "padded_samples must be dicts of equal keys")
        names = list(rows[0])
        super().__init__([tuple(r[n] for n in names) for r in rows], names, shuffle=False)


__all__ = ["GeneratorDataset", "NumpySlicesDataset", "PaddedDataset"]
