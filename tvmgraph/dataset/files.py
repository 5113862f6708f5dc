"""Sources that read local files in well-known formats."""

from __future__ import annotations

import csv
import enum
import glob
import gzip
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from tvmgraph.core.arguments import PathLike, Workers
from tvmgraph.dataset.base import Row, names_of
from tvmgraph.dataset.samplers import Sampler
from tvmgraph.dataset.sources import NumpySlicesDataset, Source
from tvmgraph.dataset.vision import Decode
from tvmgraph.errors import ArgumentError, either, reject, require_offered

R = TypeVar("R")


def _splits(op: str, usage: str | None, splits: dict[str, list[str]]) -> list[str]:
    """Returns the names of the files that a ``usage`` stands for; all for None."""
    return [name for names in splits_of(op, usage, splits) for name in names]


def splits_of(
    op: str, value: Any, splits: Mapping[str, object], all_of: object = None
) -> list[Any]:
    """Returns what a ``usage`` stands for; everything for None or ``"all"``.

    Args:
        op: Name of the dataset.
        value: The argument ``usage``.
        splits: What every word stands for.
        all_of: What stands for all of them, if it is not each of them in turn.

    Raises:
        ArgumentError: if it is unknown.
    """
    if value in (None, "all"):
        return list(splits.values()) if all_of is None else [all_of]
    if value not in splits:
        reject(ArgumentError, op, f"usage cannot be {value!r}",
               fix=f"use {', '.join(map(repr, splits))} or 'all'")  # fmt: skip
    return [splits[value]]


def _missing(op: str, folder: Path, names: list[str]) -> NoReturn:
    reject(either(ArgumentError, RuntimeError), op, f"{folder} holds none of {', '.join(names)}",
           fix="download the files there first; this class reads local files only")  # fmt: skip


def read_idx(path: Path) -> np.ndarray:
    """Returns the bytes of a file of MNIST's format.

    Args:
        path: The file, possibly compressed (``.gz``).

    Raises:
        ArgumentError: if it does not exist or is damaged.
    """
    if not path.is_file():
        _missing("MnistDataset", path.parent, [path.name])
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rank = raw[3]
    shape = np.frombuffer(raw, ">u4", rank, 4).astype(int)
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * rank)
    if values.size != shape.prod():
        reject(ArgumentError, "MnistDataset",
               f"{path.name} holds {values.size} bytes where its header promises {shape.prod()}",
               fix="the file is damaged: download it again")  # fmt: skip
    return values.reshape(shape)


class MnistDataset(NumpySlicesDataset):
    """Handwritten digits from local files in MNIST's format (also Fashion-MNIST).

    Args:
        dataset_dir: Folder with ``train-images-idx3-ubyte`` and so on, plain or ``.gz``.
        usage: ``"train"``, ``"test"`` or ``"all"``; without it, what the folder holds.
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order; true by default.
        sampler: A :class:`Sampler`, or an iterable of row numbers.
        num_shards: How many shards the rows are dealt to.
        shard_id: Which shard this is.

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
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: Workers | None = None,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        **options: object,
    ) -> None:
        require_offered(type(self).__name__, options)
        folder = Path(dataset_dir)
        splits = _splits(type(self).__name__, usage, {"train": ["train"], "test": ["t10k"]})
        if usage is None:
            splits = [s for s in splits if any(folder.glob(f"{s}-images-idx3-ubyte*"))] or splits
        images = [self._find(folder, f"{s}-images-idx3-ubyte") for s in splits]
        labels = [self._find(folder, f"{s}-labels-idx1-ubyte") for s in splits]
        columns = (
            np.concatenate([read_idx(p) for p in images])[..., None],
            np.concatenate([read_idx(p) for p in labels]).astype(np.uint32),
        )
        super().__init__(columns, ["image", "label"], num_samples, 1, shuffle, sampler, num_shards,
                         shard_id)  # fmt: skip

    @staticmethod
    def _find(folder: Path, name: str) -> Path:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
        _missing("MnistDataset", folder, [name, f"{name}.gz"])


class Cifar10Dataset(NumpySlicesDataset):
    """CIFAR-10 images from local files, binary or Python version.

    Args:
        dataset_dir: Folder with ``data_batch_1.bin`` ... ``test_batch.bin``, or the files without
            ``.bin`` of the Python version.
        usage: ``"train"``, ``"test"`` or ``"all"`` (default).
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order; true by default.
        sampler: A :class:`Sampler`, or an iterable of row numbers.
        num_shards: How many shards the rows are dealt to.
        shard_id: Which shard this is.

    Raises:
        ArgumentError: if files are missing or damaged.

    Note:
        Columns: ``image`` uint8 (32, 32, 3) and ``label`` uint32.

    Example:
        >>> dataset.Cifar10Dataset("no such folder")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    files = {  # noqa: RUF012
        "train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"],
    }  # fmt: skip
    labels: tuple[str, ...] = ("label",)
    keys: tuple[bytes, ...] = (b"labels",)

    def __init__(
        self,
        dataset_dir: PathLike,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: Workers | None = None,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        **options: object,
    ) -> None:
        require_offered(type(self).__name__, options)
        op, folder = type(self).__name__, Path(dataset_dir)
        wanted = _splits(op, usage, self.files)
        found = [self._read(folder, name) for name in wanted]
        present = [f for f in found if f is not None]
        if not present:
            _missing(op, folder, [f"{n}.bin" for n in wanted])
        pixels, *labels = (np.concatenate(c) for c in zip(*present))
        images = np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        columns = (images, *(c.astype(np.uint32) for c in labels))
        super().__init__(columns, ["image", *self.labels], num_samples, 1, shuffle, sampler,
                         num_shards, shard_id)  # fmt: skip

    def _read(self, folder: Path, name: str) -> tuple[np.ndarray, ...] | None:
        """Returns the pixels and labels of one file; None if there is no such file."""
        binary, python = folder / f"{name}.bin", folder / name
        if binary.is_file():
            raw, kinds = np.fromfile(binary, np.uint8), len(self.labels)
            if raw.size % (3072 + kinds):
                reject(ArgumentError, type(self).__name__, f"{binary.name} has a broken last row",
                       fix="the file is damaged: download it again")  # fmt: skip
            rows = raw.reshape(-1, 3072 + kinds)
            return rows[:, kinds:], *(rows[:, i] for i in range(kinds))
        if python.is_file():
            content = _read_pickle(type(self).__name__, python)
            return np.asarray(content[b"data"], np.uint8), *(
                np.asarray(content[key]) for key in self.keys
            )
        return None


class Cifar100Dataset(Cifar10Dataset):
    """CIFAR-100 images from local files, binary or Python version.

    Args:
        dataset_dir: Folder with ``train.bin`` and ``test.bin``, or the files without ``.bin`` of
            the Python version. The other arguments are those of :class:`Cifar10Dataset`.

    Raises:
        ArgumentError: if files are missing or damaged.

    Note:
        Columns: ``image`` uint8 (32, 32, 3), ``coarse_label`` and ``fine_label`` uint32.

    Example:
        >>> dataset.Cifar100Dataset("no such folder")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    files = {"train": ["train"], "test": ["test"]}  # noqa: RUF012
    labels = ("coarse_label", "fine_label")
    keys = (b"coarse_labels", b"fine_labels")


class _ArraysOnly(pickle.Unpickler):
    """Unpickles arrays and plain containers, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> type:
        allowed = {"_reconstruct", "ndarray", "dtype", "scalar", "encode"}
        if module.partition(".")[0] in ("numpy", "_codecs") and name in allowed:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


def _read_pickle(op: str, path: Path) -> dict[bytes, object]:
    with path.open("rb") as file:
        try:
            return _ArraysOnly(file, encoding="bytes").load()
        except (pickle.UnpicklingError, EOFError) as e:
            reject(ArgumentError, op, f"{path.name} cannot be read: {e}",
                   fix="the file is damaged: download it again")  # fmt: skip


class FashionMnistDataset(MnistDataset):
    """Pictures of clothes from local files in MNIST's format; see :class:`MnistDataset`.

    Example:
        >>> dataset.FashionMnistDataset("no such folder")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """


class KMnistDataset(MnistDataset):
    """Japanese characters from local files in MNIST's format; see :class:`MnistDataset`.

    Example:
        >>> dataset.KMnistDataset("no such folder")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """


def file_bytes(path: Path, decrypt: Callable[[str], bytes] | None) -> np.ndarray:
    """Returns what a file holds as uint8.

    Args:
        path: The file.
        decrypt: Function of the user that returns the content of an encrypted file.
    """
    content = path.read_bytes() if decrypt is None else decrypt(str(path))
    return np.frombuffer(content, np.uint8)


class ImageFolderDataset(Source):
    """Image files in one folder per class.

    Args:
        dataset_dir: Folder whose folders are the classes.
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs; use ``map`` for work in threads.
        shuffle: Whether every epoch has another order; true by default.
        sampler: A :class:`Sampler`, or an iterable of row numbers.
        extensions: Endings of the files that count, such as ``[".png"]``; all by default.
        class_indexing: Labels by name of the folder; folders that it lacks are left out. By
            default the folders are numbered from 0 in the order of their names.
        decode: Whether images are decoded; otherwise the column holds the bytes of the file.
        num_shards: How many shards the rows are dealt to.
        shard_id: Which shard this is.
        cache: Kept for MindSpore programs.
        decrypt: Function of a path that returns the bytes of the image; else files are read.

    Raises:
        ArgumentError: if there are no such files.

    Note:
        Columns: ``image`` uint8 and ``label`` int32.

    Example:
        >>> dataset.ImageFolderDataset("no such folder")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    def __init__(
        self,
        dataset_dir: PathLike,
        num_samples: int | None = None,
        num_parallel_workers: Workers | None = None,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        extensions: Sequence[str] | None = None,
        class_indexing: dict[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
        decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        self.decrypt = decrypt
        folder = Path(dataset_dir)
        classes = sorted(d.name for d in folder.iterdir() if d.is_dir()) if folder.is_dir() else []
        self.classes = class_indexing or {name: i for i, name in enumerate(classes)}
        endings = None if extensions is None else {e.lower() for e in extensions}
        self.files = [
            (path, self.classes[name])
            for name in classes if name in self.classes
            for path in sorted((folder / name).iterdir())
            if path.is_file() and (endings is None or path.suffix.lower() in endings)
        ]  # fmt: skip
        if not self.files:
            kind = either(ArgumentError, RuntimeError)
            reject(kind, "ImageFolderDataset", f"{folder} holds no folder with images",
                   fix="put the images of every class into a folder of its own")  # fmt: skip
        self.decode = Decode() if decode else None
        self.columns = ["image", "label"]
        super().__init__(len(self.files), num_samples, shuffle, num_shards, shard_id, sampler)

    def num_classes(self) -> int:
        """Returns the number of classes."""
        return len(self.classes)

    def get_class_indexing(self) -> dict[str, int]:
        """Returns the label of every class by the name of its folder."""
        return dict(self.classes)

    def column(self, where: int) -> np.ndarray:
        """Returns one column of all rows; labels without reading the images."""
        return np.asarray([label for _, label in self.files]) if where else super().column(where)

    def row(self, i: int) -> Row:
        """Returns one row."""
        path, label = self.files[i]
        raw = file_bytes(path, self.decrypt)
        return raw if self.decode is None else self.decode(raw), np.int32(label)


class Shuffle(enum.StrEnum):
    """What is shuffled: nothing, files as wholes, rows within their files, or all rows."""

    FALSE = "false"
    FILES = "files"
    INFILE = "infile"
    GLOBAL = "global"


def is_shuffled(shuffle: object) -> bool:
    """Whether a :class:`Shuffle` or a boolean means that rows are shuffled.

    Args:
        shuffle: What was given.
    """
    return shuffle not in (False, Shuffle.FALSE)


def files_of(op: str, dataset_files: Any) -> list[Path]:
    """Returns the files that names and patterns stand for, sorted.

    Args:
        op: Name of the dataset.
        dataset_files: A file, a pattern such as ``"*.txt"``, or a list of them.

    Raises:
        ArgumentError: if one of them stands for none.
    """
    patterns = [dataset_files] if isinstance(dataset_files, (str, Path)) else list(dataset_files)
    found = []
    for pattern in patterns:
        files = [Path(f) for f in glob.glob(str(pattern)) if Path(f).is_file()]
        if not files:
            reject(ArgumentError, op, f"there is no file {pattern}")
        found += files
    return sorted(found, key=str)


def joined(files: Iterable[list[R]]) -> tuple[list[R], list[int]]:
    """Returns the rows of files one after the other, and how many each file has.

    Args:
        files: The rows of every file.
    """
    found = list(files)
    return [row for rows in found for row in rows], [*map(len, found)]


class TextFileDataset(NumpySlicesDataset):
    """Lines of text files; empty ones are left out.

    Args:
        dataset_files: A file, a pattern such as ``"*.txt"``, or a list of them.
        num_samples: How many lines are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order (default), or a :class:`Shuffle`.
        num_shards: How many shards the lines are dealt to.
        shard_id: Which shard this is.

    Raises:
        ArgumentError: if a file does not exist.

    Note:
        Column: ``text``, a string.

    Example:
        >>> dataset.TextFileDataset("no such file")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    in_blocks = True

    def __init__(
        self,
        dataset_files: object,
        num_samples: int | None = None,
        num_parallel_workers: Workers | None = None,
        shuffle: object = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        every, counts = joined(
            [line for line in path.read_text("utf-8").split("\n") if line]
            for path in files_of("TextFileDataset", dataset_files)
        )
        super().__init__(np.asarray(every, np.str_), ["text"], num_samples, 1,
                         is_shuffled(shuffle), None, num_shards, shard_id)  # fmt: skip
        self.shuffle_files(shuffle, counts)


class CSVDataset(NumpySlicesDataset):
    """Rows of files of separated values.

    Args:
        dataset_files: A file, a pattern such as ``"*.csv"``, or a list of them.
        field_delim: What separates the values.
        column_defaults: What empty values stand for, one per column; its kind (int, float or
            str) is that of the column. All columns are strings by default.
        column_names: Names of the columns; the first line of every file holds them by default.
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order (default), or a :class:`Shuffle`.
        num_shards: How many shards the rows are dealt to.
        shard_id: Which shard this is.

    Raises:
        ArgumentError: if a file does not exist, or a row has another number of values.

    Note:
        Columns of ints are int32, of floats float32.

    Example:
        >>> dataset.CSVDataset("no such file")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    in_blocks = True

    def __init__(
        self,
        dataset_files: object,
        field_delim: str = ",",
        column_defaults: Sequence[object] | None = None,
        column_names: object = None,
        num_samples: int | None = None,
        num_parallel_workers: Workers | None = None,
        shuffle: object = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        names = None if column_names is None else names_of("CSVDataset", column_names)
        files: list[list[list[str]]] = []
        for path in files_of("CSVDataset", dataset_files):
            with path.open(newline="", encoding="utf-8") as file:
                own = [r for r in csv.reader(file, delimiter=field_delim) if r]
            if column_names is None:
                names, own = (own[0] if own else names), own[1:]
            _check_widths(path, own, names or [])
            files.append(own)
        rows, counts = joined(files)
        names = names or []
        defaults = list(column_defaults or [""] * len(names))
        if len(defaults) != len(names):
            reject(ArgumentError, "CSVDataset",
                   f"{len(defaults)} column_defaults for {len(names)} columns")  # fmt: skip
        columns = tuple(
            _typed_column(name, [r[i] for r in rows], default)
            for i, (name, default) in enumerate(zip(names, defaults))
        )
        super().__init__(columns, names, num_samples, 1, is_shuffled(shuffle), None, num_shards,
                         shard_id)  # fmt: skip
        self.shuffle_files(shuffle, counts)


def _check_widths(path: Path, rows: list[list[str]], names: list[str]) -> None:
    for number, row in enumerate(rows, 1):
        if len(row) != len(names):
            found = f"{len(row)} values for {len(names)} columns"
            reject(ArgumentError, "CSVDataset", f"row {number} of {path.name} has {found}")


def _typed_column(name: str, values: list[str], default: object) -> np.ndarray:
    kind = next((k for k in (int, float) if type(default) is k), str)
    dtype = {int: np.int32, float: np.float32, str: np.str_}[kind]
    try:
        return np.asarray([kind(v) if v else default for v in values], dtype)
    except ValueError as e:
        reject(ArgumentError, "CSVDataset", f"column {name!r}: {e}",
               fix="give column_defaults of the kind that the file holds")  # fmt: skip


__all__ = [
    "CSVDataset", "Cifar10Dataset", "Cifar100Dataset", "FashionMnistDataset",
    "ImageFolderDataset", "KMnistDataset", "MnistDataset", "Shuffle", "TextFileDataset",
]  # fmt: skip
