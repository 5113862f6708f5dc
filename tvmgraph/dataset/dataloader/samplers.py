"""Which rows of a collection one pass takes, and in which order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sized

import numpy as np

from tvmgraph.compat.communication import get_group_size, get_rank
from tvmgraph.dataset.base import count_of, reject
from tvmgraph.dataset.samplers import generator_of
from tvmgraph.errors import ArgumentError, DTypeError


def length(rows: object) -> int:
    """Returns the number of rows.

    Args:
        rows: The collection.

    Raises:
        DTypeError: if it is not known.
    """
    if not isinstance(rows, Sized):
        reject(DTypeError, "DataLoader", f"{type(rows).__name__} has no length")
    return len(rows)


def batches(rows: int, size: int, drop_last: bool) -> int:
    """Returns the number of batches.

    Args:
        rows: Number of rows.
        size: Rows of a batch.
        drop_last: Whether a last batch of fewer rows is left out.
    """
    return rows // size if drop_last else -(-rows // size)


def of_type(op: str, name: str, value: object, kind: type | tuple[type, ...]) -> None:
    """Makes sure that an argument has a type; a bool is no int.

    Args:
        op: Name of the class.
        name: Name of the argument.
        value: What was given.
        kind: The type or types.

    Raises:
        DTypeError: if it has another one.
    """
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        reject(DTypeError, op, f"{name} cannot be a {type(value).__name__}")


class Sampler:
    """Base of samplers: derive a class whose ``__iter__`` yields numbers of rows.

    Args:
        data_source: The collection.
    """

    def __init__(self, data_source: object = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__} needs __iter__")


class SequentialSampler(Sampler):
    """Takes the rows in order.

    Args:
        data_source: The collection, which has a length.
    """

    def __init__(self, data_source: Sized) -> None:
        super().__init__(data_source)
        self.rows = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.rows)))

    def __len__(self) -> int:
        return len(self.rows)


class RandomSampler(Sampler):
    """Takes the rows in random order.

    Args:
        data_source: The collection, which has a length.
        replacement: Whether a row may come several times.
        num_samples: How many rows are taken; all by default.
        generator: Where the random numbers come from; by default ``set_seed`` decides.

    Raises:
        DTypeError: if ``replacement`` is no bool or ``generator`` no generator of NumPy's.
        ArgumentError: if ``num_samples`` is not positive.
    """

    def __init__(self, data_source: Sized, replacement: bool = False,
                 num_samples: int | None = None,
                 generator: np.random.Generator | None = None) -> None:  # fmt: skip
        super().__init__(data_source)
        of_type("RandomSampler", "replacement", replacement, bool)
        of_type("RandomSampler", "generator", generator, (np.random.Generator, type(None)))
        if num_samples is not None:
            count_of("RandomSampler", "num_samples", num_samples, 1)
        self.rows, self.replacement, self._count = data_source, replacement, num_samples
        self.generator = generator or generator_of(0)

    @property
    def num_samples(self) -> int:
        """How many rows are taken."""
        return len(self.rows) if self._count is None else self._count

    def __iter__(self) -> Iterator[int]:
        rows, count = len(self.rows), self.num_samples
        if self.replacement:
            return iter(self.generator.integers(0, rows, count).tolist())
        orders = (self.generator.permutation(rows).tolist() for _ in range(-(-count // rows)))
        return itertools.islice(itertools.chain.from_iterable(orders), count)

    def __len__(self) -> int:
        return self.num_samples


class DistributedSampler(Sampler):
    """Takes one of several parts; the first rows come again to make them equal.

    Args:
        dataset: The collection, which has a length.
        num_replicas: How many parts there are; by default one for each process.
        rank: Which part this is.
        shuffle: Whether every epoch (:meth:`set_epoch`) deals the rows in another order.
        seed: Of that order, the same in all processes.
        drop_last: Whether the last rows are left out instead of making the parts equal.

    Raises:
        ArgumentError: if there is no such part.
        DTypeError: if a setting has another type.

    Example:
        >>> list(dataset.dataloader.DistributedSampler(range(5), 2, 1, shuffle=False))
        [1, 3, 0]
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None,
                 shuffle: bool = True, seed: int = 0, drop_last: bool = False) -> None:  # fmt: skip
        op = type(self).__name__
        super().__init__(dataset)
        of_type(op, "shuffle", shuffle, bool)
        of_type(op, "drop_last", drop_last, bool)
        of_type(op, "seed", seed, int)
        self.rows, self.shuffle, self.seed, self.epoch = dataset, shuffle, seed, 0
        parts = get_group_size() if num_replicas is None else num_replicas
        self.num_replicas = count_of(op, "num_replicas", parts, 1)
        self.rank = count_of(op, "rank", get_rank() if rank is None else rank, 0)
        if self.rank >= self.num_replicas:
            reject(ArgumentError, op, f"rank {self.rank} is outside the {self.num_replicas} parts")
        rows = len(dataset)
        self.num_samples = rows // parts if drop_last else -(-rows // parts)

    def __iter__(self) -> Iterator[int]:
        rows = np.arange(len(self.rows))
        if self.shuffle:
            rows = np.random.default_rng(self.seed + self.epoch).permutation(len(rows))
        return iter(np.resize(rows, self.num_samples * self.num_replicas)
                    [self.rank :: self.num_replicas].tolist())  # fmt: skip

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the coming pass.

        Args:
            epoch: Its number.
        """
        of_type("set_epoch", "epoch", epoch, int)
        self.epoch = epoch


class BatchSampler:
    """Joins the numbers that a sampler yields to lists.

    Args:
        sampler: Any iterable of numbers.
        batch_size: Their length.
        drop_last: Whether a last, shorter list is left out.

    Raises:
        DTypeError: if ``drop_last`` is no bool.
        ArgumentError: if ``batch_size`` is not positive.

    Example:
        >>> list(dataset.dataloader.BatchSampler(range(5), 2, False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        of_type("BatchSampler", "drop_last", drop_last, bool)
        self.sampler, self.drop_last = sampler, drop_last
        self.batch_size = count_of("BatchSampler", "batch_size", batch_size, 1)

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if not self.drop_last or len(batch) == self.batch_size:
                yield batch

    def __len__(self) -> int:
        return batches(length(self.sampler), self.batch_size, self.drop_last)


__all__ = [
    "BatchSampler", "DistributedSampler", "RandomSampler", "Sampler", "SequentialSampler",
]  # fmt: skip
