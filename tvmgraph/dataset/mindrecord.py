"""Rows of MindSpore's MindRecord files.

A file begins with eight bytes that count those of a JSON header; pages follow, all of one size. A
raw page holds the numbers and texts of rows as MessagePack, a blob page their bytes and arrays,
each row after eight bytes that count its own. Arrays of integers take as few bytes per element as
each needs. An SQLite file beside it, ``.db``, says where every row is.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from tvmgraph.core.arguments import PathLike, Workers
from tvmgraph.dataset.base import Row, names_of
from tvmgraph.dataset.files import is_shuffled
from tvmgraph.dataset.samplers import Sampler
from tvmgraph.dataset.sources import Source
from tvmgraph.errors import ArgumentError, LoadError, either, reject

COUNT = 8  # bytes of a length
#: The columns that say where a row is: page, first and last byte of either kind of its parts.
PLACES = (
    "ROW_ID", "PAGE_ID_RAW", "PAGE_OFFSET_RAW", "PAGE_OFFSET_RAW_END", "ROW_GROUP_ID",
    "PAGE_ID_BLOB", "PAGE_OFFSET_BLOB", "PAGE_OFFSET_BLOB_END",
)  # fmt: skip


def _unpack(data: bytes, at: int = 0) -> tuple[Any, int]:
    """Decodes one MessagePack value; returns it and where it ends."""
    kind, at = data[at], at + 1
    if kind < 0x80 or kind >= 0xE0:
        return (kind if kind < 0x80 else kind - 256), at
    if kind in _SCALARS:
        code = struct.Struct(_SCALARS[kind])
        return code.unpack_from(data, at)[0], at + code.size
    if kind in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[kind], at
    if 0xA0 <= kind < 0xC0 or kind in (0xD9, 0xDA, 0xDB):
        count, at = _count(data, at, kind, 0xA0, 0x1F, 0xD9)
        return data[at : at + count].decode(), at + count
    if 0x80 <= kind < 0x90 or kind in (0xDE, 0xDF):
        count, at = _count(data, at, kind, 0x80, 0x0F, 0xDD)
        found = {}
        for _ in range(count):
            key, at = _unpack(data, at)
            found[key], at = _unpack(data, at)
        return found, at
    raise ValueError(f"unknown code {kind:#x}")


_SCALARS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b",
    0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip


def _count(data: bytes, at: int, kind: int, short: int, mask: int, long: int) -> tuple[int, int]:
    """Reads how many bytes or entries a MessagePack text or map has."""
    if short <= kind <= short + mask:
        return kind & mask, at
    size = 1 << kind - long
    return int.from_bytes(data[at : at + size], "big"), at + size


def _integers(data: bytes) -> np.ndarray:
    """Decodes an array of integers: their number, two bits with the size of each, the elements."""
    count = int.from_bytes(data[:4], "big")
    packed = np.frombuffer(data, np.uint8, -(-count // 4), 4)
    codes = (packed[:, None] >> np.array([6, 4, 2, 0]) & 3).reshape(-1)[:count]
    body, sizes = np.frombuffer(data, np.uint8, -1, 4 + packed.size), 1 << codes
    starts, found = np.cumsum(sizes) - sizes, np.zeros(count, np.int64)
    for code in np.unique(codes):
        here = codes == code
        elements = body[starts[here][:, None] + np.arange(1 << code)]
        found[here] = np.ascontiguousarray(elements).view(f"<i{1 << code}")[:, 0]
    return found


class Shard:
    """One file.

    Args:
        path: The file.

    Raises:
        ArgumentError: if it or its ``.db`` is missing.
        LoadError: if it is encrypted or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        for file in (path, path.with_name(path.name + ".db")):
            if not file.is_file():
                kind = either(ArgumentError, RuntimeError)
                reject(kind, "MindRecord", f"there is no file {str(file)!r}")
        try:
            with path.open("rb") as file:
                size = int.from_bytes(file.read(COUNT), "little")
                self.header = json.loads(file.read(min(size, 1 << 30)))
            schema = self.header["schema"][0]
            self.fields: dict[str, dict[str, Any]] = schema["schema"]
            self.blobs: list[str] = schema["blob_fields"]
            self.addresses = [Path(name).name for name in self.header["shard_addresses"]]
            self._sizes = self.header["header_size"], self.header["page_size"]
            self.places = np.array(self.index(", ".join(PLACES)), np.int64).reshape(-1, 8)
        except (ValueError, KeyError, LookupError, TypeError, sqlite3.Error) as e:
            self._damaged(f"{type(e).__name__}: {e}")

    def _damaged(self, why: str) -> NoReturn:
        why = f"{self.path.name} is encrypted, damaged, or was not committed ({why})"
        reject(LoadError, "MindRecord", why, fix="write it again, without a key")

    def __len__(self) -> int:
        return len(self.places)

    def index(self, columns: str = "*") -> list[tuple[object, ...]]:
        """Returns columns of the index for all rows.

        Args:
            columns: Their names as SQL has them.
        """
        path = self.path.with_name(self.path.name + ".db").resolve()
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            return db.execute(f"SELECT {columns} FROM INDEXES ORDER BY ROW_ID").fetchall()

    def row(self, i: int) -> dict[str, Any]:
        """Returns one row: numbers, texts, ``bytes`` and arrays by column.

        Args:
            i: Number of the row in this file.
        """
        place = self.places[i].tolist()
        try:
            with self.path.open("rb") as file:
                found, _ = _unpack(self._read(file, *place[1:4]))
                blob = self._read(file, *place[5:]) if self.blobs else b""
            for name, data in zip(self.blobs, self._parts(blob)):
                found[name] = self._blob(name, data)
            return {name: self._typed(name, found[name]) for name in self.fields}
        except (ValueError, LookupError, TypeError, struct.error) as e:
            self._damaged(f"row {i}: {type(e).__name__}: {e}")

    def _read(self, file: BinaryIO, page: int, at: int, end: int) -> bytes:
        header, size = self._sizes
        file.seek(header + page * size + at + COUNT)
        return file.read(end - at - COUNT)

    def _parts(self, blob: bytes) -> Iterator[bytes]:
        if len(self.blobs) == 1:
            yield blob
            return
        at = 0
        for _ in self.blobs:
            size = int.from_bytes(blob[at : at + COUNT], "big")
            yield blob[at + COUNT : at + COUNT + size]
            at += COUNT + size

    def _blob(self, name: str, data: bytes) -> np.ndarray | bytes:
        kind, shape = self.fields[name]["type"], self.fields[name].get("shape")
        if shape is None:
            return data
        array = _integers(data) if kind.startswith("int") else np.frombuffer(data, kind)
        return array.astype(kind).reshape(shape)

    def _typed(self, name: str, value: object) -> object:
        is_float = self.fields[name]["type"].startswith("float")
        return float(value) if isinstance(value, int) and is_float else value


def shards_of(op: str, dataset_files: Any) -> list[Shard]:
    """Returns the files that a path or a list of them stands for; a path for all of its set.

    Args:
        op: Name of the dataset.
        dataset_files: The path or paths.

    Raises:
        ArgumentError: if one is missing, or their columns differ.
    """
    if isinstance(dataset_files, (str, Path)):
        first = Shard(Path(dataset_files))
        names = first.addresses if first.path.name in first.addresses else [first.path.name]
        others = (Shard(first.path.with_name(n)) for n in names if n != first.path.name)
        by_name = {s.path.name: s for s in (first, *others)}
        found = [by_name[n] for n in names]
    else:
        found = [Shard(Path(f)) for f in dataset_files]
    if not found or any(s.fields != found[0].fields for s in found):
        reject(ArgumentError, op, "there are no files, or their columns differ",
               fix="give files of one schema")  # fmt: skip
    return found


class MindDataset(Source):
    """Rows of MindRecord files.

    Args:
        dataset_files: A path, which stands for all files that were written together, or a list
            of paths, which are read alone.
        columns_list: Columns that are read; by default all, in the order of their names.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order (default), or a :class:`Shuffle`.
        num_shards: How many shards of equal size the rows are dealt to; the last ones take rows
            from the beginning again.
        shard_id: Which shard this is.
        sampler: A :class:`Sampler`, or an iterable of row numbers.
        padded_sample: A row, as a dict, that is added at the end.
        num_padded: How many times.
        num_samples: How many rows are used.
        cache: Kept for MindSpore programs.

    Raises:
        ArgumentError: if a file or column is missing.
        LoadError: if a file is encrypted or damaged.

    Note:
        Numbers have the column's dtype, texts are strings, and bytes are one element of NumPy's
        ``S``, as in MindSpore; ``vision.Decode`` takes them.

    Example:
        >>> dataset.MindDataset("no such file")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    def __init__(
        self,
        dataset_files: PathLike | Sequence[PathLike],
        columns_list: object = None,
        num_parallel_workers: Workers | None = None,
        shuffle: object = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sampler: Sampler | Iterable[int] | None = None,
        padded_sample: Mapping[str, object] | None = None,
        num_padded: int | None = None,
        num_samples: int | None = None,
        cache: object = None,
    ) -> None:
        self.files = shards_of("MindDataset", dataset_files)
        self.fields = self.files[0].fields
        wanted = None if columns_list is None else names_of("MindDataset", columns_list)
        self.columns = wanted or sorted(self.fields)
        self.padded = dict(padded_sample or {})
        for where in (self.fields, self.padded) if num_padded else (self.fields,):
            if missing := [c for c in self.columns if c not in where]:
                reject(ArgumentError, "MindDataset", f"there is no column {missing[0]!r}",
                       fix=f"choose from {', '.join(where)}")  # fmt: skip
        self._ends = np.cumsum([len(f) for f in self.files])
        self.count = int(self._ends[-1]) + (num_padded or 0)
        super().__init__(
            self.count, num_samples,
            None if shuffle is None else is_shuffled(shuffle), num_shards, shard_id, sampler,
        )  # fmt: skip
        self.shuffle_files(shuffle, [*map(len, self.files), num_padded or 0])

    def row(self, i: int) -> Row:
        """Returns one row.

        Args:
            i: Number of the row in all files.
        """
        file = int(np.searchsorted(self._ends, i, "right"))
        if file == len(self.files):
            found = self.padded
        else:
            shard = self.files[file]
            found = shard.row(i - int(self._ends[file]) + len(shard))
        return tuple(self._entry(name, found[name]) for name in self.columns)

    def _entry(self, name: str, value: Any) -> np.ndarray:
        kind, shape = self.fields[name]["type"], self.fields[name].get("shape")
        if kind == "string":
            return np.asarray(value, np.str_)
        if kind == "bytes":
            return np.frombuffer(value, f"S{len(value)}") if value else np.array([b""])
        return np.asarray(value, kind) if shape is None else np.asarray(value, kind).reshape(shape)


class FileReader:
    """Reads the rows of MindRecord files as dicts.

    Args:
        file_name: A path, which stands for all files that were written together, or a list.
        num_consumer: Kept for MindSpore programs.
        columns: Columns that are read; by default all.
        operator: Kept for MindSpore programs.

    Raises:
        ArgumentError: if a file or column is missing.
        LoadError: if a file is encrypted or damaged.

    Example:
        >>> mindrecord.FileReader("no such file")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    def __init__(
        self,
        file_name: object,
        num_consumer: int = 4,
        columns: object = None,
        operator: object = None,
    ) -> None:
        self._files = shards_of("FileReader", file_name)
        self._columns = None if columns is None else names_of("FileReader", columns)
        for name in self._columns or ():
            if name not in self.schema():
                reject(ArgumentError, "FileReader", f"there is no column {name!r}",
                       fix=f"choose from {', '.join(self.schema())}")  # fmt: skip

    def get_next(self) -> Iterator[dict[str, object]]:
        """Yields the rows: numbers, texts, ``bytes`` and arrays by column."""
        for file in self._files:
            for i in range(len(file)):
                row = file.row(i)
                yield row if self._columns is None else {c: row[c] for c in self._columns}

    def len(self) -> int:
        """Returns the number of rows."""
        return sum(len(file) for file in self._files)

    def schema(self) -> dict[str, Any]:
        """Returns the columns with their types and shapes."""
        return self._files[0].fields

    def close(self) -> None:
        """Kept for MindSpore programs; files are open while a row is read only."""


__all__ = ["FileReader", "MindDataset"]
