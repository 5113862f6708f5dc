"""DataLoader: batches of a collection, read by threads."""

from __future__ import annotations

import functools
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tvmgraph.compat.communication import get_group_size, get_rank
from tvmgraph.core.tensor import Tensor
from tvmgraph.dataset.checks import count_of
from tvmgraph.dataset.samplers import generator_of
from tvmgraph.errors import ArgumentError, DeviceError, DTypeError, ShapeError, reject

_END = object()  # what a worker returns when its rows are over


class _Numbered(Protocol):
    def __getitem__(self, index: int, /) -> object: ...


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself.

    Attributes:
        id: Its number.
        num_workers: How many there are.
        seed: A number of its own.
        dataset: The collection that it reads.
    """

    id: int
    num_workers: int
    seed: int
    dataset: object


_here = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """Returns which worker runs this, None outside workers."""
    return getattr(_here, "info", None)


class _Worker:
    """One thread, or none, that reads rows of a loader."""

    def __init__(self, loader: DataLoader, info: WorkerInfo | None) -> None:
        self.loader = loader
        self.pool = None
        self._rows: Iterator[object] | None = None
        if info is not None:
            self.pool = ThreadPoolExecutor(1, "tvmgraph-loader", self._begin, (info,))

    def _begin(self, info: WorkerInfo) -> None:
        _here.info = info
        if self.loader.worker_init_fn is not None:
            self.loader.worker_init_fn(info.id)

    def read(self, place: object) -> object:
        """Returns the rows of a place, made tensors, or the end."""
        loader, data = self.loader, self.loader.dataset
        if not loader.iterable:
            rows = [data[i] for i in place] if loader.batched else data[place]  # pyright: ignore
            return loader.collate(rows)
        if self._rows is None:
            self._rows = iter(data)  # pyright: ignore[reportArgumentType]
        if not loader.batched:
            row = next(self._rows, _END)
            return row if row is _END else loader.collate(row)
        rows = list(itertools.islice(self._rows, loader.batch_size))
        whole = len(rows) == loader.batch_size or not loader.drop_last
        return loader.collate(rows) if rows and whole else _END


def _require_fitting(given: dict[str, bool | None], iterable: bool, num_workers: int) -> None:
    """Rejects settings that say the same twice, or nothing."""
    for reason, together, others in (
        ("of an IterableDataset", iterable, ("shuffle", "sampler", "batch_sampler")),
        ("beside sampler", given["sampler"], ("shuffle",)),
        ("beside batch_sampler", given["batch_sampler"],
         ("batch_size", "shuffle", "sampler", "drop_last")),
        ("without workers", not num_workers,
         ("prefetch_factor", "multiprocessing_context", "persistent_workers")),
    ):  # fmt: skip
        for name in others if together else ():
            if given[name]:
                reject(ArgumentError, "DataLoader", f"{name} cannot be given {reason}")


class DataLoader:
    """Batches of a collection, as an iterable.

    Args:
        dataset: What has ``__getitem__`` (and ``__len__``), or an :class:`IterableDataset`.
        batch_size: Rows per batch; None for single rows.
        shuffle: Whether every pass has another order.
        sampler: Numbers of the rows instead.
        batch_sampler: Lists of such numbers, one per batch.
        num_workers: Threads that read ahead; batches keep their order.
        collate_fn: Makes a batch of a list of rows; :func:`default_collate` by default, of single
            rows :func:`default_convert`.
        pin_memory: Kept for MindSpore programs: tensors lie where kernels read them.
        drop_last: Whether a last, smaller batch is left out.
        timeout: Seconds that a batch may take in a worker; any number for 0.
        worker_init_fn: Called with its number by every worker before it reads.
        multiprocessing_context: Kept for MindSpore programs, as workers are threads.
        generator: Random numbers of the order; by default ``set_seed`` decides.
        prefetch_factor: Batches that every worker reads ahead, 2 by default.
        persistent_workers: Kept for MindSpore programs: threads start at once.
        in_order: Kept for MindSpore programs: batches are always in order.

    Raises:
        ArgumentError: if settings contradict each other.
        DTypeError: if a setting has another type.
        DeviceError: while iterating, if a batch takes longer than ``timeout``.

    Example:
        >>> [x.tolist() for x in dataset.dataloader.DataLoader([1, 2, 3], batch_size=2)]
        [[1, 2], [3]]
    """

    def __init__(
        self,
        dataset: _Numbered | Iterable[object],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[..., object] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0.0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: object = None,
        generator: np.random.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        in_order: bool = True,
    ) -> None:
        self.iterable = isinstance(dataset, IterableDataset)
        if not self.iterable and not hasattr(dataset, "__getitem__"):
            raise NotImplementedError(f"{type(dataset).__name__} needs __getitem__")
        flags = {"shuffle": shuffle or False, "pin_memory": pin_memory, "drop_last": drop_last,
                 "persistent_workers": persistent_workers, "in_order": in_order}  # fmt: skip
        for name, flag in flags.items():
            of_type("DataLoader", name, flag, bool)
        of_type("DataLoader", "generator", generator, (np.random.Generator, type(None)))
        if batch_size is not None:
            count_of("DataLoader", "batch_size", batch_size, 1)
        given = {"shuffle": shuffle, "sampler": sampler is not None, "drop_last": drop_last,
                 "batch_sampler": batch_sampler is not None, "batch_size": batch_size != 1,
                 "prefetch_factor": prefetch_factor is not None,
                 "multiprocessing_context": multiprocessing_context is not None,
                 "persistent_workers": persistent_workers}  # fmt: skip
        self.num_workers = count_of("DataLoader", "num_workers", num_workers, 0)
        _require_fitting(given, self.iterable, num_workers)
        of_type("DataLoader", "timeout", timeout, (int, float))
        if timeout < 0:
            reject(ArgumentError, "DataLoader", f"timeout must not be negative, but is {timeout}")
        self.dataset, self.drop_last, self.timeout = dataset, drop_last, timeout
        self.prefetch_factor = count_of("DataLoader", "prefetch_factor", prefetch_factor or 2, 1)
        self.worker_init_fn = worker_init_fn
        self.generator = generator or generator_of(0)
        if self.iterable:
            sampler = itertools.repeat(0)
        elif sampler is None:
            order = functools.partial(RandomSampler, generator=self.generator)
            sampler = (order if shuffle else SequentialSampler)(dataset)  # pyright: ignore
        self.sampler: Iterable[int] = sampler
        self.batch_size = None if batch_sampler is not None else batch_size
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.batched = batch_sampler is not None
        self.collate_fn = collate_fn
        ours = default_collate if self.batched else default_convert
        self.collate: Callable[..., object] = collate_fn or ours

    def __iter__(self) -> Iterator[object]:
        places = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        if self.num_workers:
            return self._ahead(places)
        worker = _Worker(self, None)
        return itertools.takewhile(lambda batch: batch is not _END, map(worker.read, places))

    def _ahead(self, places: Iterator[object]) -> Iterator[object]:
        """Yields batches that workers read, each of them every n-th."""
        seed = int(self.generator.integers(2**62))
        infos = [WorkerInfo(i, self.num_workers, seed + i, self.dataset)
                 for i in range(self.num_workers)]  # fmt: skip
        workers = deque(_Worker(self, info) for info in infos)
        pools = [w.pool for w in workers if w.pool is not None]
        waiting: deque[tuple[_Worker, Future[object]]] = deque()
        try:
            while True:
                while workers and len(waiting) < self.num_workers * self.prefetch_factor:
                    place = next(places, _END)
                    worker = workers.popleft()
                    if place is _END or worker.pool is None:
                        break
                    workers.append(worker)
                    waiting.append((worker, worker.pool.submit(worker.read, place)))
                if not waiting:
                    return
                worker, future = waiting.popleft()
                batch = self._result(future)
                if batch is not _END:
                    yield batch
                elif worker in workers:
                    workers.remove(worker)
        finally:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)

    def _result(self, future: Future[object]) -> object:
        try:
            return future.result(self.timeout or None)
        except TimeoutError:
            reject(DeviceError, "DataLoader", f"no batch came within {self.timeout} seconds")

    def __len__(self) -> int:
        if self.batch_sampler is None or self.batch_size is None:
            return length(self.batch_sampler or (self.dataset if self.iterable else self.sampler))
        rows = length(self.dataset if self.iterable else self.sampler)
        return batches(rows, self.batch_size, self.drop_last)


# ---- collections of rows, and rows made tensors --------------------------------------------------


class Dataset:
    """Base of collections whose rows have numbers: derive a class, write ``__getitem__`` (and
    ``__len__``)."""

    def __getitem__(self, index: int) -> object:
        raise NotImplementedError(f"{type(self).__name__} needs __getitem__")


class IterableDataset(Dataset):
    """Base of collections that can only be iterated: derive a class and write ``__iter__``.

    Every worker iterates the whole; :func:`get_worker_info` tells it which share to yield.
    """

    def __iter__(self) -> Iterator[object]:
        raise NotImplementedError(f"{type(self).__name__} needs __iter__")


class TensorDataset(Dataset):
    """Rows of tensors: the first axis counts them.

    Args:
        tensors: Tensors of one length.

    Raises:
        ArgumentError: if the lengths differ.

    Example:
        >>> rows = dataset.dataloader.TensorDataset(Tensor([0, 1]), Tensor([2, 3]))
        >>> [int(a) + int(b) for a, b in rows]
        [2, 4]
    """

    def __init__(self, *tensors: Tensor) -> None:
        if len({t.shape[0] for t in tensors}) > 1:
            reject(ArgumentError, "TensorDataset", "the tensors must have one length")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} is outside the {len(self)} rows")
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


def default_convert(data: object) -> object:
    """Makes tensors of the arrays and NumPy numbers in a row, also inside lists and dicts.

    Args:
        data: A row; a tuple becomes a list, what is not numeric stays.

    Example:
        >>> dataset.dataloader.default_convert({"x": np.arange(2), "name": "a"})
        {'x': Tensor(shape=[2], dtype=Int64, value= [0, 1]), 'name': 'a'}
    """
    if isinstance(data, (np.number, np.bool_)):
        return Tensor(data)
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind in "SUO" else Tensor(data)
    if isinstance(data, Mapping):
        return {k: default_convert(v) for k, v in data.items()}
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        return data
    parts = [default_convert(v) for v in data]
    return type(data)(*parts) if hasattr(data, "_fields") else parts


def default_collate(batch: Sequence[object]) -> object:
    """Stacks rows of one kind: arrays and numbers to tensors, tuples and dicts entry by entry.

    Args:
        batch: The rows.

    Raises:
        ShapeError: if tuples or lists differ in length.
        DTypeError: if there is no rule for such rows.

    Example:
        >>> dataset.dataloader.default_collate([(1, "a"), (2, "b")])
        [Tensor(shape=[2], dtype=Int64, value= [1, 2]), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, float) and not isinstance(first, np.floating):
        return Tensor(np.asarray(batch, np.float64))
    if isinstance(first, (int, np.number, np.bool_)):
        return Tensor(np.asarray(batch))
    if isinstance(first, Tensor) or (isinstance(first, np.ndarray) and first.dtype.kind in "biufc"):
        return Tensor(np.stack([np.asarray(row) for row in batch]))
    if isinstance(first, Mapping):
        return {k: default_collate([row[k] for row in batch]) for k in first}  # pyright: ignore
    if not isinstance(first, Sequence):
        reject(DTypeError, "default_collate", f"{type(first).__name__} cannot be stacked",
               fix="pass collate_fn")  # fmt: skip
    if len({len(row) for row in batch}) > 1:  # pyright: ignore[reportArgumentType]
        reject(ShapeError, "default_collate", "rows differ in length")
    parts = [default_collate(column) for column in zip(*batch)]  # pyright: ignore
    return type(first)(*parts) if hasattr(first, "_fields") else parts


# ---- which rows of a collection one pass takes, and in which order -------------------------------


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
    "BatchSampler", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "TensorDataset", "default_collate",
    "default_convert", "get_worker_info",
]  # fmt: skip
