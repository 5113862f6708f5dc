"""Samplers: which rows of a source one pass takes, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tvmgraph.dataset import config
from tvmgraph.dataset.checks import count_of
from tvmgraph.errors import ArgumentError, DTypeError, either, reject


class Sampler:
    """Base of samplers; a subclass writes :meth:`indices`, or ``__iter__`` yielding numbers.

    Args:
        num_samples: How many rows are taken at most.

    Example:
        >>> class Last(dataset.Sampler):
        ...     def __iter__(self):
        ...         yield from range(self.dataset_size - 2, self.dataset_size)
        >>> [int(x) for (x,) in dataset.NumpySlicesDataset([1, 2, 3], sampler=Last())]
        [2, 3]
    """

    dataset_size = 0

    def __init__(self, num_samples: int | None = None) -> None:
        self.num_samples = None if num_samples is None else count_of(
            type(self).__name__, "num_samples", num_samples, 0
        )  # fmt: skip
        self.child_sampler: Sampler | None = None

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices(self.dataset_size, 0).tolist())

    def indices(self, rows: int, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass.

        Args:
            rows: How many rows the source has.
            epoch: Number of the pass.
        """
        self.dataset_size = rows
        return np.fromiter(self, np.int64)

    def drawn(self, rows: int, epoch: int) -> np.ndarray:
        """Returns :meth:`indices`, at most ``num_samples`` of them.

        Args:
            rows: How many rows the source has.
            epoch: Number of the pass.

        Raises:
            ArgumentError: if a number is outside the source.
        """
        child = getattr(self, "child_sampler", None)  # subclasses may not call __init__
        if child is not None:
            below = child.drawn(rows, epoch)
            return below[self._own(len(below), epoch)]
        return self._own(rows, epoch)

    def chain(self) -> Iterator[Sampler]:
        """Yields this sampler, its child, the child's child and so on."""
        found: Sampler | None = self
        while found is not None:
            yield found
            found = getattr(found, "child_sampler", None)

    def _own(self, rows: int, epoch: int) -> np.ndarray:
        found = self.indices(rows, epoch)[: self.num_samples or None]
        if found.size and not 0 <= found.min() <= found.max() < rows:
            reject(either(ArgumentError, RuntimeError), type(self).__name__,
                   f"row {found.min() if found.min() < 0 else found.max()} is outside the "
                   f"{rows} rows of the source")  # fmt: skip
        return found

    def add_child(self, sampler: Sampler) -> None:
        """Lets this sampler choose among the rows that another one draws.

        Args:
            sampler: The other sampler.

        Raises:
            DTypeError: if it is no sampler.
            ArgumentError: if there is a child already.
        """
        if not isinstance(sampler, Sampler):
            reject(DTypeError, type(self).__name__,
                   f"the child is a {type(sampler).__name__}, no Sampler")  # fmt: skip
        if getattr(self, "child_sampler", None) is not None:
            reject(ArgumentError, type(self).__name__, "the sampler has a child already")
        self.child_sampler = sampler

    def get_child(self) -> Sampler | None:
        """Returns the sampler that :meth:`add_child` has set."""
        return self.child_sampler

    def get_num_samples(self) -> int | None:
        """Returns how many rows are drawn at most, as far as that is known before reading."""
        known = [self.num_samples, self.child_sampler and self.child_sampler.get_num_samples()]
        return min((k for k in known if k is not None), default=None)


def generator_of(epoch: int) -> np.random.Generator:
    """Returns the random numbers of one pass.

    Args:
        epoch: Number of the pass.
    """
    return np.random.default_rng((config.get_seed(), epoch))


class SequentialSampler(Sampler):
    """Takes the rows in order.

    Args:
        start_index: The first row.
        num_samples: How many rows are taken.

    Example:
        >>> dataset.SequentialSampler(2).drawn(4, 0).tolist()
        [2, 3]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start = count_of("SequentialSampler", "start_index", start_index or 0, 0)

    def indices(self, rows: int, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        if self.start >= max(rows, 1):
            reject(either(ArgumentError, RuntimeError), "SequentialSampler",
                   f"row {self.start} is outside the {rows} rows of the source")  # fmt: skip
        return np.arange(self.start, rows)


class RandomSampler(Sampler):
    """Takes rows at random.

    Args:
        replacement: Whether a row may come several times.
        num_samples: How many rows are taken; all by default.
        shuffle: Kept for MindSpore programs: rows are drawn from all of them.

    Example:
        >>> sorted(dataset.RandomSampler().drawn(3, 0).tolist())
        [0, 1, 2]
    """

    def __init__(
        self, replacement: bool = False, num_samples: int | None = None,
        shuffle: object = "global",
    ) -> None:  # fmt: skip
        super().__init__(num_samples)
        self.replacement = bool(replacement)

    def indices(self, rows: int, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        if self.replacement:
            return generator_of(epoch).integers(0, rows, self.num_samples or rows)
        return generator_of(epoch).permutation(rows)


class SubsetSampler(Sampler):
    """Takes given rows in the given order.

    Args:
        indices: Their numbers.
        num_samples: How many are taken.

    Example:
        >>> dataset.SubsetSampler([3, 1]).drawn(4, 0).tolist()
        [3, 1]
    """

    def __init__(self, indices: Iterable[int] | int, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        given = indices if isinstance(indices, Iterable) else [indices]
        self.numbers = np.asarray(list(given))
        if self.numbers.dtype.kind not in "iu":
            reject(DTypeError, type(self).__name__, f"indices must be integers: {given!r:.60}")

    def get_num_samples(self) -> int | None:
        """Returns how many rows are drawn at most."""
        return min(super().get_num_samples() or len(self.numbers), len(self.numbers))

    def indices(self, rows: int, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        return self.numbers


class SubsetRandomSampler(SubsetSampler):
    """Takes given rows in random order; arguments as :class:`SubsetSampler`.

    Example:
        >>> sorted(dataset.SubsetRandomSampler([3, 1]).drawn(4, 0).tolist())
        [1, 3]
    """

    def indices(self, rows: int, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        return generator_of(epoch).permutation(self.numbers)


class WeightedRandomSampler(Sampler):
    """Takes rows at random, each with its own weight.

    Args:
        weights: One number per row, at least 0; rows beyond them are never taken.
        num_samples: How many rows are taken; as many as there are weights by default.
        replacement: Whether a row may come several times.

    Raises:
        ArgumentError: if a weight is negative or all are 0.

    Example:
        >>> dataset.WeightedRandomSampler([0, 1, 0], 2).drawn(3, 0).tolist()
        [1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True
    ) -> None:
        super().__init__(num_samples)
        self.weights = np.asarray(weights, np.float64).reshape(-1)
        if not self.weights.size or self.weights.min() < 0 or self.weights.sum() == 0:
            reject(ArgumentError, "WeightedRandomSampler",
                   "weights must be at least 0, and one of them positive")  # fmt: skip
        self.replacement = bool(replacement)

    def indices(self, rows: int, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        share = self.weights / self.weights.sum()
        count = self.num_samples or len(share)
        if not self.replacement:
            count = min(count, int((share > 0).sum()))
        return generator_of(epoch).choice(len(share), count, self.replacement, share)


class DistributedSampler(Sampler):
    """Takes one of several parts; the last rows wrap around to make them equal.

    Args:
        num_shards: How many parts there are.
        shard_id: Which shard this is.
        shuffle: Whether the rows are dealt in random order.
        num_samples: How many rows are taken.
        offset: The part that gets the first row, and nothing wraps around; -1 for the first one.

    Raises:
        ArgumentError: if the numbers do not fit.

    Example:
        >>> dataset.DistributedSampler(2, 1, shuffle=False).drawn(5, 0).tolist()
        [1, 3, 0]
    """

    def __init__(
        self,
        num_shards: int,
        shard_id: int,
        shuffle: bool = True,
        num_samples: int | None = None,
        offset: int = -1,
    ) -> None:
        super().__init__(num_samples)
        self.shards = count_of("DistributedSampler", "num_shards", num_shards, 1)
        self.shard = count_of("DistributedSampler", "shard_id", shard_id, 0)
        self.offset = count_of("DistributedSampler", "offset", offset, -1)
        if self.shard >= self.shards or self.offset > self.shards:
            reject(ArgumentError, "DistributedSampler",
                   f"shard_id {shard_id}, offset {offset}: {num_shards} shards")  # fmt: skip
        self.shuffle = bool(shuffle)

    def indices(self, rows: int, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        order = generator_of(epoch).permutation(rows) if self.shuffle else np.arange(rows)
        if self.offset >= 0:
            return order[(self.shard - self.offset) % self.shards :: self.shards]
        return np.resize(order, -(-rows // self.shards) * self.shards)[self.shard :: self.shards]


class PKSampler(Sampler):
    """Takes ``num_val`` rows of every class, as metric learning needs them.

    Args:
        num_val: Rows per class.
        num_class: Number of classes; only all of them (None) is possible.
        shuffle: Whether the rows of a class are chosen and ordered at random.
        class_column: The column with the class of a row.
        num_samples: How many rows are taken.

    Raises:
        ArgumentError: if ``num_class`` is given.

    Example:
        >>> data = dataset.NumpySlicesDataset({"label": [0, 1, 0, 1]}, sampler=dataset.PKSampler(1))
        >>> [int(label) for (label,) in data]
        [0, 1]
    """

    def __init__(
        self,
        num_val: int,
        num_class: int | None = None,
        shuffle: bool = False,
        class_column: str = "label",
        num_samples: int | None = None,
    ) -> None:
        super().__init__(num_samples)
        self.num_val = count_of("PKSampler", "num_val", num_val, 1)
        if num_class is not None:
            reject(ArgumentError, "PKSampler", "num_class must be None: all classes are taken")
        if not isinstance(class_column, str):
            reject(DTypeError, "PKSampler", f"class_column must be a str, not {class_column!r}")
        self.shuffle, self.class_column = bool(shuffle), class_column
        self.labels = np.zeros(0, np.int64)  # of the source, which sets it

    def indices(self, rows: int, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        random = generator_of(epoch)
        found = []
        for label in np.unique(self.labels):
            own = np.flatnonzero(self.labels == label)
            found.append((random.permutation(own) if self.shuffle else own)[: self.num_val])
        return np.concatenate(found)


class IterSampler(Sampler):
    """Takes the rows that an iterable numbers.

    Args:
        sampler: The iterable.
        num_samples: How many rows are taken at most.

    Example:
        >>> sampler = dataset.IterSampler([2, 0])
        >>> [int(x) for (x,) in dataset.NumpySlicesDataset([1, 2, 3], sampler=sampler)]
        [3, 1]
    """

    def __init__(self, sampler: Iterable[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.numbers = sampler

    def __iter__(self) -> Iterator[int]:
        return (int(i) for i in self.numbers)


def sampler_of(
    op: str, value: Sampler | Iterable[int] | None, shuffle: bool | None, num_shards: int | None
) -> Sampler | None:
    """Returns what users give as ``sampler``; any iterable of numbers is one.

    Args:
        op: Name of the dataset.
        value: The argument ``sampler``.
        shuffle: The argument ``shuffle``.
        num_shards: The argument ``num_shards``.

    Raises:
        DTypeError: if it is none.
        ArgumentError: if it comes with ``shuffle`` or ``num_shards``.
    """
    if value is None:
        return None
    if shuffle is not None or num_shards is not None:
        reject(either(ArgumentError, RuntimeError), op,
               "a sampler already decides about order and shards",
               fix="leave out shuffle, num_shards and shard_id")  # fmt: skip
    if isinstance(value, Sampler):
        return value
    if not hasattr(value, "__iter__") and not hasattr(value, "__getitem__"):
        reject(DTypeError, op, f"sampler cannot be a {type(value).__name__}",
               fix="give a Sampler or an iterable of row numbers")  # fmt: skip
    return IterSampler(value)


__all__ = [
    "DistributedSampler", "IterSampler", "PKSampler", "RandomSampler", "Sampler",
    "SequentialSampler", "SubsetRandomSampler", "SubsetSampler", "WeightedRandomSampler",
]  # fmt: skip
