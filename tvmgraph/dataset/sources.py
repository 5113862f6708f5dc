"""Where rows come from: generators, arrays, files."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.tensor import Tensor
from tvmgraph.dataset import config
from tvmgraph.dataset.base import Dataset, Row, count_of, names_of, reject
from tvmgraph.errors import ArgumentError, DTypeError


def _row(value: Any) -> Row:
    items = value if isinstance(value, tuple) else (value,)
    return tuple(v.asnumpy() if isinstance(v, Tensor) else v for v in items)


class _Source(Dataset):
    """A source whose rows have numbers, so that they can be shuffled and sharded.

    Args:
        rows: How many there are.
        num_samples: How many of them are used.
        shuffle: Whether every epoch has another order; true by default.
        num_shards: Into how many parts the rows are dealt.
        shard_id: Which part this is.
    """

    def __init__(
        self,
        rows: int,
        num_samples: int | None,
        shuffle: bool | None,
        num_shards: int | None,
        shard_id: int | None,
    ) -> None:
        if (num_shards is None) != (shard_id is None):
            reject(ArgumentError, type(self).__name__, "num_shards and shard_id belong together")
        self.total = rows
        self.shuffled = shuffle is None or bool(shuffle)
        self.shards, self.shard = num_shards or 1, shard_id or 0
        if not 0 <= self.shard < self.shards:
            reject(ArgumentError, type(self).__name__,
                   f"shard_id {self.shard} is outside the {self.shards} shards")  # fmt: skip
        own = len(range(self.shard, rows, self.shards))
        limit = own if num_samples is None else count_of(
            type(self).__name__, "num_samples", num_samples, 0
        )  # fmt: skip
        self.size = min(own, limit or own)

    def order(self, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        numbers = np.arange(self.total)
        if self.shuffled:
            numbers = np.random.default_rng((config.get_seed(), epoch)).permutation(self.total)
        return numbers[self.shard :: self.shards][: self.size]

    def row(self, i: int) -> Row:
        """Returns one row."""
        raise NotImplementedError

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        return (self.row(int(i)) for i in self.order(epoch))

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        return self.size


class GeneratorDataset(_Source):
    """Rows from Python.

    Args:
        source: An object with ``__getitem__`` and ``__len__`` (its rows are shuffled by default),
            an iterable, or a function that returns an iterator. A row is a tuple with one entry
            per column.
        column_names: Names of the columns.
        column_types: dtypes the columns are converted to.
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs; use ``map`` for work in threads.
        shuffle: Whether every epoch has another order; only for sources with ``__getitem__``.
        sampler: Numbers of the rows to use, or an iterable of them, in order.
        num_shards: Into how many parts the rows are dealt.
        shard_id: Which part this is.

    Raises:
        ArgumentError: if column names are missing.
        DTypeError: if the source is none of these.

    Example:
        >>> data = dataset.GeneratorDataset([(1, 2), (3, 4)], ["a", "b"], shuffle=False)
        >>> [int(a) for a, _ in data]
        [1, 3]
    """

    def __init__(
        self,
        source: Any,
        column_names: Any = None,
        column_types: Any = None,
        schema: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        **_: Any,
    ) -> None:
        if column_names is None:
            reject(ArgumentError, "GeneratorDataset", "column_names is missing",
                   'pass for example ["image", "label"]')  # fmt: skip
        self.source: Any = source
        self.columns = names_of("GeneratorDataset", column_names)
        types = None if column_types is None else list(column_types)
        self.types = None if types is None else [dtypes.dtype_of(t).numpy for t in types]
        self.random_access = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self.random_access and not callable(source) and not hasattr(source, "__iter__"):
            reject(
                DTypeError,
                "GeneratorDataset",
                f"source cannot be a {type(source).__name__}",
                "give an iterable, a function that returns an iterator, or __getitem__",
            )
        if not self.random_access and shuffle:
            reject(ArgumentError, "GeneratorDataset", "an iterator cannot be shuffled",
                   "give the source __getitem__ and __len__, or call .shuffle(buffer)")  # fmt: skip
        self.sampler = sampler
        rows = len(self.source) if self.random_access else self._counted(num_samples)
        super().__init__(rows, num_samples, shuffle, num_shards, shard_id)

    def _counted(self, num_samples: int | None) -> int:
        return sum(1 for _ in self._iterate()) if num_samples is None else num_samples

    def _iterate(self) -> Iterator[Any]:
        source: Any = self.source() if callable(self.source) else self.source
        return iter(source)

    def order(self, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass."""
        if self.sampler is None:
            return super().order(epoch)
        return np.fromiter((int(i) for i in self.sampler), np.int64)

    def get_dataset_size(self) -> int:
        """Returns the number of rows of one pass."""
        return self.size if self.sampler is None else len(self.order(0))

    def _typed(self, row: Row) -> Row:
        if len(row) != len(self.columns):
            reject(ArgumentError, "GeneratorDataset",
                   f"a row has {len(row)} entries for {len(self.columns)} columns",
                   "return a tuple with one entry per column")  # fmt: skip
        if self.types is None:
            return tuple(np.asarray(v) for v in row)
        return tuple(np.asarray(v).astype(t) for v, t in zip(row, self.types))

    def row(self, i: int) -> Row:
        """Returns one row."""
        return self._typed(_row(self.source[i]))

    def rows(self, epoch: int) -> Iterator[Row]:
        """Yields the rows of one pass."""
        if self.random_access:
            return super().rows(epoch)
        return (
            self._typed(_row(r)) for i, r in enumerate(self._iterate())
            if i % self.shards == self.shard and i < self.size * self.shards
        )  # fmt: skip


class NumpySlicesDataset(_Source):
    """Rows of arrays: the first axis counts them.

    Args:
        data: An array, a tuple of arrays or lists, or a dict of them by column name.
        column_names: Names of the columns; ``column_0`` and so on by default.
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order; true by default.
        sampler: Not supported here; use :class:`GeneratorDataset`.
        num_shards: Into how many parts the rows are dealt.
        shard_id: Which part this is.

    Raises:
        ArgumentError: if the columns have different lengths or names are missing.

    Example:
        >>> data = dataset.NumpySlicesDataset({"x": [1, 2], "y": [3, 4]}, shuffle=False)
        >>> data.get_col_names(), len(data)
        (['x', 'y'], 2)
    """

    def __init__(
        self,
        data: Any,
        column_names: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        if sampler is not None:
            reject(ArgumentError, "NumpySlicesDataset", "a sampler is not supported here",
                   "use GeneratorDataset")  # fmt: skip
        names = None if column_names is None else names_of("NumpySlicesDataset", column_names)
        if isinstance(data, dict):
            names, data = names or list(data), tuple(data.values())
        columns = data if isinstance(data, tuple) else (data,)
        self.arrays = tuple(np.asarray(_row(c)[0]) for c in columns)
        self.columns = names or [f"column_{i}" for i in range(len(self.arrays))]
        lengths = {len(a) for a in self.arrays}
        if len(self.columns) != len(self.arrays) or len(lengths) != 1:
            reject(ArgumentError, "NumpySlicesDataset",
                   f"{len(self.arrays)} columns of lengths {sorted(lengths)}, "
                   f"names {self.columns}", "give equal lengths and one name each")  # fmt: skip
        super().__init__(lengths.pop(), num_samples, shuffle, num_shards, shard_id)

    def row(self, i: int) -> Row:
        """Returns one row."""
        return tuple(a[i] for a in self.arrays)

    def gather(self, numbers: np.ndarray) -> Row:
        """Returns several rows, stacked."""
        return tuple(a[numbers] for a in self.arrays)


def _missing(op: str, folder: Path, names: list[str]) -> None:
    reject(ArgumentError, op, f"{folder} holds none of {', '.join(names)}",
           "download the files there first; this class reads local files only")  # fmt: skip


def _read_idx(path: Path) -> np.ndarray:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rank = raw[3]
    shape = np.frombuffer(raw, ">u4", rank, 4).astype(int)
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * rank)
    if values.size != shape.prod():
        reject(ArgumentError, "MnistDataset",
               f"{path.name} holds {values.size} bytes where its header promises {shape.prod()}",
               "the file is damaged: download it again")  # fmt: skip
    return values.reshape(shape)


class MnistDataset(NumpySlicesDataset):
    """Handwritten digits from local files in MNIST's format (also Fashion-MNIST).

    Args:
        dataset_dir: Folder with ``train-images-idx3-ubyte`` and so on, plain or ``.gz``.
        usage: ``"train"``, ``"test"`` or ``"all"`` (default).
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order; true by default.

    Raises:
        ArgumentError: if a file is missing or damaged.

    Note:
        Columns: ``image`` uint8 (28, 28, 1) and ``label`` uint32.

    Example:
        >>> dataset.MnistDataset("no such folder")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    def __init__(
        self,
        dataset_dir: Any,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        **_: Any,
    ) -> None:
        if usage not in (None, "train", "test", "all"):
            reject(ArgumentError, "MnistDataset", f"usage cannot be {usage!r}",
                   'use "train", "test" or "all"')  # fmt: skip
        parts = {"train": ["train"], "test": ["t10k"]}.get(usage or "all", ["train", "t10k"])
        images = [self._find(Path(dataset_dir), f"{p}-images-idx3-ubyte") for p in parts]
        labels = [self._find(Path(dataset_dir), f"{p}-labels-idx1-ubyte") for p in parts]
        columns = (
            np.concatenate([_read_idx(p) for p in images])[..., None],
            np.concatenate([_read_idx(p) for p in labels]).astype(np.uint32),
        )
        super().__init__(columns, ["image", "label"], num_samples, 1, shuffle, None, num_shards,
                         shard_id)  # fmt: skip

    @staticmethod
    def _find(folder: Path, name: str) -> Path:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
        _missing("MnistDataset", folder, [name, f"{name}.gz"])
        raise AssertionError


class Cifar10Dataset(NumpySlicesDataset):
    """CIFAR-10 images from local files, binary or Python version.

    Args:
        dataset_dir: Folder with ``data_batch_1.bin`` ... ``test_batch.bin``, or the files without
            ``.bin`` of the Python version.
        usage: ``"train"``, ``"test"`` or ``"all"`` (default).
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order; true by default.

    Raises:
        ArgumentError: if files are missing or damaged.

    Note:
        Columns: ``image`` uint8 (32, 32, 3) and ``label`` uint32.

    Example:
        >>> dataset.Cifar10Dataset("no such folder")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    def __init__(
        self,
        dataset_dir: Any,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        **_: Any,
    ) -> None:
        if usage not in (None, "train", "test", "all"):
            reject(ArgumentError, "Cifar10Dataset", f"usage cannot be {usage!r}",
                   'use "train", "test" or "all"')  # fmt: skip
        train = [f"data_batch_{i}" for i in range(1, 6)]
        wanted = {"train": train, "test": ["test_batch"]}.get(
            usage or "all", [*train, "test_batch"]
        )
        found = [self._read(Path(dataset_dir), name) for name in wanted]
        present = [f for f in found if f is not None]
        if not present:
            _missing("Cifar10Dataset", Path(dataset_dir), [f"{n}.bin" for n in wanted])
        pixels = np.concatenate([p for p, _ in present]).reshape(-1, 3, 32, 32)
        labels = np.concatenate([l for _, l in present]).astype(np.uint32)
        super().__init__((np.ascontiguousarray(pixels.transpose(0, 2, 3, 1)), labels),
                         ["image", "label"], num_samples, 1, shuffle, None, num_shards,
                         shard_id)  # fmt: skip

    @staticmethod
    def _read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray] | None:
        binary, python = folder / f"{name}.bin", folder / name
        if binary.is_file():
            raw = np.fromfile(binary, np.uint8)
            if raw.size % 3073:
                reject(ArgumentError, "Cifar10Dataset", f"{binary.name} has a broken last row",
                       "the file is damaged: download it again")  # fmt: skip
            rows = raw.reshape(-1, 3073)
            return rows[:, 1:], rows[:, 0]
        if python.is_file():
            return _read_pickle(python)
        return None


class _ArraysOnly(pickle.Unpickler):
    """Unpickles arrays and plain containers, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {"_reconstruct", "ndarray", "dtype", "scalar", "encode"}
        if module.partition(".")[0] in ("numpy", "_codecs") and name in allowed:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


def _read_pickle(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with path.open("rb") as file:
        try:
            content = _ArraysOnly(file, encoding="bytes").load()
        except (pickle.UnpicklingError, EOFError) as e:
            reject(ArgumentError, "Cifar10Dataset", f"{path.name} cannot be read: {e}",
                   "the file is damaged: download it again")  # fmt: skip
    return np.asarray(content[b"data"], np.uint8), np.asarray(content[b"labels"])
