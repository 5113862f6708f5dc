"""The stages of a pipeline."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph.dataset import config
from tvmgraph.dataset.base import Dataset, Row, as_row, names_of, on_host
from tvmgraph.dataset.checks import count_of, flag_of
from tvmgraph.dataset.samplers import Sampler
from tvmgraph.dataset.transforms import operations_of
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    LoadError,
    ShapeError,
    either,
    reject,
    require_offered,
)

_stage_numbers = itertools.count(1)
_GOOD = 16  # rows that are waited for before one replaces another


class _Pass(int):
    """Number of a pass of a stage below ``repeat``, with that of the whole pipeline's pass."""

    whole: int


@dataclass(frozen=True)
class BatchInfo:
    """What ``per_batch_map`` learns about a batch.

    Attributes:
        batch_num: Number of the batch in its epoch.
        epoch_num: Number of the epoch.
    """

    batch_num: int
    epoch_num: int

    def get_batch_num(self) -> int:
        """Returns the number of the batch in its epoch."""
        return self.batch_num

    def get_epoch_num(self) -> int:
        """Returns the number of the epoch."""
        return self.epoch_num


class _Stage(Dataset):
    """A stage with one dataset before it."""

    def __init__(self, child: Dataset) -> None:
        self.child = child
        self.columns = list(child.columns)

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        return self.child.get_dataset_size()

    def get_batch_size(self) -> int:
        """Returns the rows per batch."""
        return self.child.get_batch_size()

    def get_repeat_count(self) -> int:
        """Returns how often ``repeat`` repeats."""
        return self.child.get_repeat_count()

    def num_classes(self) -> int | None:
        """Returns the number of classes of the source, None if it does not know it."""
        return self.child.num_classes()

    def get_class_indexing(self) -> dict[str, int]:
        """Returns the labels by name of the source."""
        return self.child.get_class_indexing()


def _results(value: object) -> tuple[object, ...]:
    """Returns what a function of the user gave, column by column; a list is one value."""
    return value if isinstance(value, tuple) else (value,)


def _require_alike(names: Sequence[str], columns: Sequence[object], rows: int) -> None:
    """Makes sure that what a ``per_batch_map`` gave is batches, or the rows of one batch.

    Dicts are batches, lists are rows, arrays are either.
    """
    made = [isinstance(c, dict) for c in columns]
    if any(made) and not all(m or isinstance(c, np.ndarray) for m, c in zip(made, columns)):
        reject(either(DTypeError, RuntimeError), "batch",
               "mismatched types returned from per_batch_map: a dict beside rows")  # fmt: skip
    if any(isinstance(c, list) for c in columns):
        for name, column in zip(names, columns):
            if isinstance(column, (list, np.ndarray)) and len(column) != rows:
                reject(ShapeError, "batch",
                       f"per_batch_map returned {len(column)} rows for column {name!r}, "
                       f"not {rows}")  # fmt: skip


def _columns_after(columns: list[str], given: list[str], results: list[str]) -> list[str]:
    """The columns when a function has made ``results`` of the ``given`` ones.

    As many as before take their places; otherwise they come first, and the others follow.
    """
    if len(results) == len(given):
        return [dict(zip(given, results)).get(c, c) for c in columns]
    return results + [c for c in columns if c not in given]


def _with_results(
    row: Sequence[object], where: Sequence[int], values: Sequence[object]
) -> list[object]:
    """A row, or columns, when a function has made ``values`` of those at ``where``."""
    if len(values) == len(where):
        made = dict(zip(where, values))
        return [made.get(i, v) for i, v in enumerate(row)]
    return [*values, *(v for i, v in enumerate(row) if i not in where)]


def _replaced(rows: Iterator[Row | None]) -> Iterator[Row]:
    """Yields rows, and one of the good ones in turn for each of those missing.

    They come after good rows once there are sixteen, the rest at the end.
    """
    good: list[Row] = []
    missing, turn = 0, itertools.count()
    for row in rows:
        if row is None:
            missing += 1
        else:
            yield row
            if missing or len(good) < _GOOD:
                good.append(row)
            if missing and len(good) >= _GOOD:
                yield good[next(turn) % len(good)]
                missing -= 1
    if missing and not good:
        reject(either(ArgumentError, RuntimeError), "map", "the operations raised for every row")
    yield from (good[next(turn) % len(good)] for _ in range(missing))


class MapDataset(_Stage):
    """Transforms columns; see :meth:`Dataset.map`."""

    def __init__(
        self,
        child: Dataset,
        operations: object,
        inputs: object,
        outputs: object,
        workers: int | None,
    ) -> None:
        super().__init__(child)
        self.operations = operations_of("map", as_row(operations))
        given = [child.columns[0]] if inputs is None else names_of("map", inputs)
        self.where = child._columns_at("map", given)
        self.results = given if outputs is None else names_of("map", outputs)
        self.columns = _columns_after(child.columns, given, self.results)
        self.workers = config.get_num_parallel_workers() if workers is None else workers
        self.number = next(_stage_numbers)

    def _one(self, epoch: int, i: int, row: Row) -> Row:
        with config.row_randomness(epoch, i, len(self.operations)):
            values = tuple(row[w] for w in self.where)
            for operation in self.operations:
                values = _results(operation(*values))
        values = tuple(map(on_host, values))
        if len(values) != len(self.results):
            reject(either(ArgumentError, RuntimeError), "map",
                   f"the operations returned {len(values)} values for {len(self.results)} columns",
                   fix=f"output_columns are {self.results}")  # fmt: skip
        for name, value in zip(self.results, values):
            if value is None:
                reject(either(DTypeError, RuntimeError), "map",
                       f"the operations returned None for column {name!r}")  # fmt: skip
        return tuple(_with_results(row, self.where, values))

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        mode = config.get_error_samples_mode()
        made = self._made(epoch, mode is not config.ErrorSamplesMode.RETURN)
        if mode is config.ErrorSamplesMode.REPLACE:
            return _replaced(made)
        return (row for row in made if row is not None)

    def _tried(self, epoch: int, i: int, row: Row) -> Row | None:
        try:
            return self._one(epoch, i, row)
        except Exception:
            return None

    def _made(self, epoch: int, spares: bool) -> Iterator[Row | None]:
        """Yields transformed rows, or None in the place of those that fail if that is allowed."""
        one = self._tried if spares else self._one
        source = enumerate(self.child.rows(epoch))
        if self.workers == 1:
            yield from (one(epoch, i, row) for i, row in source)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            waiting: deque[Future[Row | None]] = deque()
            try:
                for i, row in source:
                    waiting.append(pool.submit(one, epoch, i, row))
                    if len(waiting) > 2 * self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:  # the reader stopped early
                for future in waiting:
                    future.cancel()


class BatchDataset(_Stage):
    """Stacks rows; see :meth:`Dataset.batch`."""

    _stacks = True  # rows as they are, so that a source may gather them

    def __init__(
        self,
        child: Dataset,
        size: int | Callable[[BatchInfo], int],
        drop_remainder: bool,
        per_batch_map: Callable[..., object] | None = None,
        input_columns: object = None,
        output_columns: str | Sequence[str] | None = None,
        **options: object,
    ) -> None:
        require_offered("batch", options, ("max_rowsize", "python_multiprocessing"))
        super().__init__(child)
        given = int(size) if isinstance(size, bool) else size
        self.size = size if callable(size) else count_of("batch", "batch_size", given, 1)
        self.drop = flag_of("batch", "drop_remainder", drop_remainder)
        self.per_batch_map = per_batch_map
        if per_batch_map is None and input_columns is not None:
            reject(ArgumentError, "batch", "input_columns is for a per_batch_map")
        given = child.columns if input_columns is None else names_of("batch", input_columns)
        self.where = child._columns_at("batch", given)
        self.results = given if output_columns is None else names_of("batch", output_columns)
        self.columns = _columns_after(child.columns, given, self.results)

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the batches of one pass."""
        gather = getattr(self.child, "gather", None)
        plain = self._stacks and self.per_batch_map is None
        plain = plain and not getattr(self.child, "ragged", False)
        if gather is not None and plain and not callable(self.size):
            order = self.child.order(epoch)  # pyright: ignore[reportAttributeAccessIssue]
            for i in range(0, len(order), self.size):
                chosen = order[i : i + self.size]
                if len(chosen) == self.size or not self.drop:
                    yield gather(chosen)
            return
        source = self.child.rows(epoch)
        for number in itertools.count():
            info = BatchInfo(number, getattr(epoch, "whole", epoch))
            size = self._size_of(info)
            rows = list(itertools.islice(source, size))
            if not rows or (len(rows) < size and self.drop):
                return
            yield self._stack(rows, info)

    def _size_of(self, info: BatchInfo) -> int:
        """Returns the rows of one batch."""
        if callable(self.size):
            return count_of("batch", "batch_size", self.size(info), 1)
        return self.size

    def _stack(self, rows: list[Row], info: BatchInfo) -> Row:
        columns: list[object] = [list(c) for c in zip(*rows)]
        if self.per_batch_map is not None:
            found = _results(self.per_batch_map(*(columns[w] for w in self.where), info))
            if len(found) != len(self.results):
                reject(either(ArgumentError, RuntimeError), "batch",
                       f"per_batch_map returned {len(found)} values for {len(self.results)} "
                       "columns", fix=f"output_columns are {self.results}")  # fmt: skip
            _require_alike(self.results, found, len(rows))
            columns = _with_results(columns, self.where, found)
        return tuple(self._stack_column(n, c) for n, c in zip(self.columns, columns))

    def _stack_column(self, name: str, values: Any) -> object:
        if isinstance(values, (dict, np.ndarray)):  # a batch already
            return values
        if isinstance(values[0], dict):
            columns = {k: [v[k] for v in values] for k in values[0]}
            if self.per_batch_map is not None:
                return columns
            return {k: self._stack_column(f"{name}[{k!r}]", c) for k, c in columns.items()}
        arrays = [np.asarray(on_host(v)) for v in values]
        shapes = {a.shape for a in arrays}
        if len(shapes) > 1:
            reject(ShapeError, "batch",
                   f"column {name!r} has rows of different shapes: {sorted(shapes)[:3]}",
                   fix="make them equal with map, or pad them in per_batch_map")  # fmt: skip
        return np.stack(arrays)

    def get_dataset_size(self) -> int:
        """Returns the number of batches of one pass."""
        rows = self.child.get_dataset_size()
        if not callable(self.size):
            return rows // self.size if self.drop else -(-rows // self.size)
        for number in itertools.count():
            if rows <= 0:
                return number - (rows < 0 and self.drop)
            rows -= self._size_of(BatchInfo(number, 0))
        raise AssertionError

    def get_batch_size(self) -> int:
        """Returns the rows per batch; -1 if a function decides."""
        return -1 if callable(self.size) else self.size


class ShuffleDataset(_Stage):
    """Shuffles within a window; see :meth:`Dataset.shuffle`."""

    def __init__(self, child: Dataset, buffer_size: int) -> None:
        super().__init__(child)
        self.buffer_size = count_of("shuffle", "buffer_size", buffer_size, 2)

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        rng = np.random.default_rng((config.get_seed(), epoch, self.buffer_size))
        window: list[Row] = []
        for row in self.child.rows(epoch):
            if len(window) < self.buffer_size:
                window.append(row)
                continue
            i = int(rng.integers(self.buffer_size))
            window[i], row = row, window[i]
            yield row
        for i in rng.permutation(len(window)):
            yield window[i]


class RepeatDataset(_Stage):
    """Repeats rows; see :meth:`Dataset.repeat`."""

    def __init__(self, child: Dataset, count: int | None) -> None:
        super().__init__(child)
        self.count = None if count in (None, -1) else count_of("repeat", "count", count, 1)

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass; every repetition is shuffled anew."""
        passes = itertools.count() if self.count is None else range(self.count)
        for i in passes:
            number = _Pass(i if self.count is None else epoch * self.count + i)
            number.whole = getattr(epoch, "whole", epoch)
            yield from self.child.rows(number)

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass; that of one repetition if there is no end."""
        return self.child.get_dataset_size() * (self.count or 1)

    def get_repeat_count(self) -> int:
        """Returns how often the rows repeat, -1 without end."""
        return -1 if self.count is None else self.count


class WindowDataset(_Stage):
    """Keeps a range of rows; see :meth:`Dataset.take` and :meth:`Dataset.skip`."""

    def __init__(self, child: Dataset, start: int, count: int | None) -> None:
        super().__init__(child)
        self.start, self.count = start, count

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        stop = None if self.count is None else self.start + self.count
        return itertools.islice(self.child.rows(epoch), self.start, stop)

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        rest = max(self.child.get_dataset_size() - self.start, 0)
        return rest if self.count is None else min(rest, self.count)


class SyncWaitDataset(_Stage):
    """Tells a callback what the training found; see :meth:`Dataset.sync_wait`."""

    def __init__(
        self, child: Dataset, name: str, callback: Callable[[object], object] | None
    ) -> None:
        super().__init__(child)
        if any(stage.name == name for stage in conditions(child)):
            reject(LoadError, "sync_wait", f"there is a condition {name!r} already")
        self.name, self.callback = name, callback

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        return self.child.rows(epoch)


def conditions(dataset: Dataset) -> list[SyncWaitDataset]:
    """Returns the conditions of :meth:`Dataset.sync_wait` in a pipeline.

    Args:
        dataset: The last stage of the pipeline.
    """
    before = [v for v in (getattr(dataset, "child", None),) if v is not None]
    found = [c for d in (*before, *getattr(dataset, "children", ())) for c in conditions(d)]
    return [dataset, *found] if isinstance(dataset, SyncWaitDataset) else found


class ZipDataset(Dataset):
    """Joins columns; see :meth:`Dataset.zip`."""

    def __init__(self, children: list[Dataset]) -> None:
        self.children = children
        self.columns = [c for d in children for c in d.columns]
        if len(set(self.columns)) != len(self.columns):
            reject(either(ArgumentError, RuntimeError), "zip",
                   f"column names must differ: {self.columns}",
                   fix="rename the columns first")  # fmt: skip

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        for parts in zip(*(d.rows(epoch) for d in self.children)):
            yield tuple(v for part in parts for v in part)

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        return min(d.get_dataset_size() for d in self.children)


class _Drawn(Dataset):
    """Rows that a sampler may draw."""

    sampler: Sampler | None = None

    def use_sampler(self, sampler: object) -> None:
        """Draws the rows by a sampler.

        Args:
            sampler: The sampler.

        Raises:
            DTypeError: if it is no sampler.
        """
        if not isinstance(sampler, Sampler):
            reject(DTypeError, "use_sampler", f"sampler is a {type(sampler).__name__}, no Sampler")
        self.sampler = sampler


class ConcatDataset(_Drawn):
    """Appends rows; see :meth:`Dataset.concat`."""

    def __init__(self, children: list[Dataset]) -> None:
        self.children = children
        self.columns = list(children[0].columns)
        for d in children:
            if d.columns != self.columns:
                reject(either(ArgumentError, RuntimeError), "concat",
                       f"columns differ: {self.columns} and {d.columns}")  # fmt: skip

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        rows = itertools.chain.from_iterable(d.rows(epoch) for d in self.children)
        if self.sampler is None:
            return rows
        kept = list(rows)
        return (kept[i] for i in self.sampler.drawn(len(kept), epoch))

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        size = sum(d.get_dataset_size() for d in self.children)
        return size if self.sampler is None else len(self.sampler.drawn(size, 0))


class FilterDataset(_Stage):
    """Keeps some rows; see :meth:`Dataset.filter`."""

    def __init__(self, child: Dataset, predicate: Callable[..., object], inputs: object) -> None:
        super().__init__(child)
        if not callable(predicate):
            reject(DTypeError, "filter", "predicate must be callable")
        self.predicate = predicate
        self.where = child._columns_at("filter", child.columns if inputs is None else inputs)

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        for row in self.child.rows(epoch):
            if bool(on_host(self.predicate(*(row[w] for w in self.where)))):
                yield row

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass, which takes one pass to count."""
        return sum(1 for _ in self.rows(0))


class ProjectDataset(_Stage):
    """Chooses, orders and renames columns."""

    def __init__(self, child: Dataset, columns: object, names: Sequence[str]) -> None:
        super().__init__(child)
        self.where = child._columns_at("project", columns)
        self.columns = list(names)
        twice = [c for c in self.columns if self.columns.count(c) > 1]
        if twice:
            reject(either(ArgumentError, RuntimeError), "rename", f"two columns are {twice[0]!r}")

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        return (tuple(row[w] for w in self.where) for row in self.child.rows(epoch))


class _Subset(_Stage, _Drawn):
    """Some rows of a dataset, by number."""

    def __init__(self, child: Dataset, numbers: np.ndarray) -> None:
        super().__init__(child)
        self.numbers = numbers

    def order(self, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass.

        Args:
            epoch: Number of the pass.
        """
        if self.sampler is None:
            return self.numbers
        return self.numbers[self.sampler.drawn(len(self.numbers), epoch)]

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass, of those in the child's first order, so parts differ."""
        return self.child.rows_at(self.order(epoch))

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        return len(self.order(0))


def split(dataset: Dataset, sizes: Sequence[Any], randomize: bool) -> tuple[Dataset, ...]:
    """Splits a dataset; see :meth:`Dataset.split`.

    Args:
        dataset: The dataset.
        sizes: Numbers of rows, or fractions that sum to 1.
        randomize: Whether the rows are shuffled first.

    Raises:
        ArgumentError: if the sizes do not sum to the number of rows.
    """
    rows = dataset.get_dataset_size()
    counts = list(sizes)
    if all(isinstance(s, float) for s in counts):
        if abs(sum(counts) - 1) >= 1e-6:
            reject(ArgumentError, "split", f"fractions {counts} sum to {sum(counts):g}",
                   "use fractions that sum to 1")  # fmt: skip
        counts = [round(s * rows) for s in counts]
        rest = rows - sum(counts)  # the first part that can takes it, as in MindSpore
        counts[next((i for i, c in enumerate(counts) if c + rest > 0), 0)] += rest
    if any(c <= 0 for c in counts) or sum(counts) != rows:
        reject(either(ArgumentError, RuntimeError), "split",
               f"sizes {list(sizes)} do not sum to {rows} rows",
               fix="use positive numbers of rows, or fractions that sum to 1")  # fmt: skip
    order = np.arange(rows)
    if randomize:
        order = np.random.default_rng(config.get_seed()).permutation(rows)
    ends = np.cumsum(counts)
    return tuple(_Subset(dataset, order[e - c : e]) for c, e in zip(counts, ends))
