"""Batches of rows whose lengths differ: padded, and gathered by length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsInt

import numpy as np

from tvmgraph.dataset.base import Dataset, Row, names_of
from tvmgraph.dataset.checks import count_of, flag_of
from tvmgraph.dataset.stages import BatchDataset, _Stage
from tvmgraph.errors import ArgumentError, ShapeError, reject

Padding = dict[str, tuple[Any, Any]]


def pad(name: str, values: Sequence[object], shape: Any, fill: Any) -> list[np.ndarray]:
    """Pads arrays at the end of every axis.

    Args:
        name: The column, for errors.
        values: The arrays.
        shape: Their common shape afterwards; None, and None for an axis, is the largest of them.
            What is longer is cut.
        fill: What is put there; 0 for None.

    Raises:
        ShapeError: if an array has another number of axes.
    """
    arrays = [np.asarray(v) for v in values]
    ranks = {a.ndim for a in arrays}
    if len(ranks) > 1 or (shape is not None and len(shape) not in ranks):
        reject(ShapeError, "padded_batch", f"column {name!r}: {sorted(ranks)} axes, shape {shape}")
    largest = np.max([a.shape for a in arrays], axis=0, initial=0) if max(ranks) else []
    wanted = [m if s is None else s for m, s in zip(largest, shape or [None] * len(largest))]
    arrays = [a[tuple(slice(w) for w in wanted)] for a in arrays]
    return [
        np.pad(a, [(0, w - s) for s, w in zip(a.shape, wanted)], constant_values=fill or 0)
        if a.ndim else a
        for a in arrays
    ]  # fmt: skip


class PaddedBatchDataset(BatchDataset):
    """Pads rows to one shape and stacks them; see :meth:`Dataset.padded_batch`."""

    _stacks = False

    def __init__(
        self, child: Dataset, size: int, drop_remainder: bool, pad_info: Padding | None
    ) -> None:
        super().__init__(child, size, drop_remainder)
        self.pad_info = _padding("padded_batch", child, pad_info)

    def _stack_column(self, name: str, values: Sequence[object]) -> object:
        if name in self.pad_info:
            values = pad(name, values, *self.pad_info[name])
        return super()._stack_column(name, values)


def _padding(op: str, child: Dataset, pad_info: Padding | None) -> Padding:
    if not pad_info:
        return dict.fromkeys(child.columns, (None, 0))
    child._columns_at(op, list(pad_info))
    return pad_info


class BucketDataset(_Stage):
    """Batches of rows of similar length; see :meth:`Dataset.bucket_batch_by_length`."""

    def __init__(
        self,
        child: Dataset,
        columns: object,
        boundaries: Sequence[int],
        sizes: Sequence[int],
        length: Callable[..., SupportsInt] | None,
        pad_info: Padding | None,
        pad_to_boundary: bool,
        drop_remainder: bool,
    ) -> None:
        super().__init__(child)
        op = "bucket_batch_by_length"
        self.where = child._columns_at(op, names_of(op, columns))
        self.bounds = [count_of(op, "bucket_boundaries", b, 1) for b in boundaries]
        self.sizes = [count_of(op, "bucket_batch_sizes", s, 1) for s in sizes]
        if not self.bounds or sorted(set(self.bounds)) != self.bounds:
            reject(ArgumentError, op, f"bucket_boundaries must increase: {list(boundaries)}")
        if len(self.sizes) != len(self.bounds) + 1:
            reject(ArgumentError, op, "there must be one batch size more than boundaries")
        if length is None and len(self.where) != 1:
            reject(ArgumentError, op, "the length of several columns needs element_length_function")
        self.length = length
        self.drop = flag_of("bucket_batch_by_length", "drop_remainder", drop_remainder)
        self.to_boundary = bool(pad_to_boundary)
        self.pad_info = _padding(op, child, pad_info)
        self._count: int | None = None

    def _bucket(self, row: Row) -> int:
        given = [row[w] for w in self.where]
        length = len(given[0]) if self.length is None else int(self.length(*given))
        return int(np.searchsorted(self.bounds, length, "right"))

    def _stack(self, bucket: int, rows: list[Row]) -> Row:
        result = []
        for name, values in zip(self.columns, zip(*rows)):
            arrays: Sequence[object] = values
            if name in self.pad_info:
                shape, fill = self.pad_info[name]
                if self.to_boundary and bucket < len(self.bounds) and shape is not None:
                    shape = [self.bounds[bucket] - 1 if s is None else s for s in shape]
                arrays = pad(name, values, shape, fill)
            result.append(BatchDataset._stack_column(self, name, arrays))  # pyright: ignore
        return tuple(result)

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the batches of one pass, each when its bucket is full."""
        buckets: list[list[Row]] = [[] for _ in self.sizes]
        for row in self.child.rows(epoch):
            i = self._bucket(row)
            buckets[i].append(row)
            if len(buckets[i]) == self.sizes[i]:
                yield self._stack(i, buckets[i])
                buckets[i] = []
        for i, rest in enumerate(buckets):
            if rest and not self.drop:
                yield self._stack(i, rest)

    def get_dataset_size(self) -> int:
        """Returns the number of batches of one pass, which takes a pass to find out."""
        if self._count is None:
            self._count = sum(1 for _ in self.rows(0))
        return self._count


class FlatMapDataset(_Stage):
    """The rows of the datasets that a function makes of every row; see :meth:`Dataset.flat_map`."""

    def __init__(self, child: Dataset, function: Callable[..., Dataset]) -> None:
        super().__init__(child)
        self.function = function
        first = next(iter(child.rows(0)), None)
        self.columns = [] if first is None else function(*first).columns

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        for row in self.child.rows(epoch):
            yield from self.function(*row).rows(epoch)

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        return sum(self.function(*row).get_dataset_size() for row in self.child.rows(0))
