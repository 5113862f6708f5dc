"""DataLoader: batches of a collection, read by threads."""

from __future__ import annotations

import functools
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tvmgraph.dataset.base import count_of, reject
from tvmgraph.dataset.dataloader.rows import IterableDataset, default_collate, default_convert
from tvmgraph.dataset.dataloader.samplers import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    batches,
    length,
    of_type,
)
from tvmgraph.dataset.samplers import generator_of
from tvmgraph.errors import ArgumentError, DeviceError

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


__all__ = ["DataLoader", "get_worker_info"]
