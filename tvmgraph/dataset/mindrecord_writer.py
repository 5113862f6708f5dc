"""Writes MindSpore's MindRecord files; :mod:`.mindrecord` describes and reads them."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph.core.arguments import PathLike
from tvmgraph.core.shown import Shown
from tvmgraph.dataset.base import Dataset
from tvmgraph.dataset.mindrecord import COUNT, PLACES, Shard
from tvmgraph.errors import ArgumentError, reject

SUCCESS, FAILED = 0, -1
_NUMBERS = ("int32", "int64", "float32", "float64")
_KINDS = (*_NUMBERS, "string", "bytes")
_INDEXED = {"int": "INTEGER", "flo": "REAL", "str": "TEXT"}  # SQLite's types of columns
_HEADER_BYTES, _PAGE_BYTES = (16 << 10, 128 << 20), (32 << 10, 256 << 20)
_MAX_SHARDS = 1000


def _pack(value: Any) -> bytes:
    """Encodes a number, a text or a dict of them as MessagePack."""
    if isinstance(value, dict):
        parts = b"".join(_pack(k) + _pack(v) for k, v in value.items())
        return struct.pack(">BI", 0xDF, len(value)) + parts
    if isinstance(value, str):
        data = value.encode()
        return struct.pack(">BI", 0xDB, len(data)) + data
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    return struct.pack(">BQ", 0xCF, value) if value >= 0 else struct.pack(">Bq", 0xD3, value)


def _pack_integers(array: np.ndarray) -> bytes:
    """Encodes integers with as few bytes as each needs, after two bits with the size of each."""
    values = array.reshape(-1).astype(np.int64)
    codes = np.zeros(values.size, np.uint8)
    for code, bits in enumerate((8, 16, 32)):
        codes[(values < -(1 << bits - 1)) | (values >= 1 << bits - 1)] = code + 1
    quads = np.resize(np.append(codes, [0, 0, 0]), (-(-codes.size // 4), 4))
    packed = (quads << np.array([6, 4, 2, 0], np.uint8)).sum(1).astype(np.uint8)
    sizes = 1 << codes.astype(int)
    body = values.astype("<i8").view(np.uint8).reshape(-1, 8)[np.arange(8) < sizes[:, None]]
    return struct.pack(">I", values.size) + packed.tobytes() + body.tobytes()


class _Pages:
    """One file while it is written: the last page of either kind is in memory.

    All rows of a blob page are in one raw page, in which they are a group.
    """

    def __init__(
        self, path: Path, shard: int, sizes: tuple[int, int], old: Shard | None = None
    ) -> None:
        self.path, self.shard, self.sizes = path, shard, sizes
        self.file = path.open("wb" if old is None else "r+b")
        self.pages: list[dict[str, Any]] = [] if old is None else old.header["page"]
        self.open: dict[str, tuple[dict[str, Any], bytearray]] = {}
        self.rows: list[tuple[object, ...]] = [] if old is None else old.index()

    def add(self, raw: bytes, blob: bytes, indexed: Sequence[object]) -> None:
        """Adds a row."""
        parts = {"RAW_DATA": raw, "BLOB_DATA": blob}
        parts = {k: len(p).to_bytes(COUNT, "little") + p for k, p in parts.items()}
        if max(map(len, parts.values())) > self.sizes[1]:
            reject(ArgumentError, "FileWriter", f"a row has more than {self.sizes[1]} bytes",
                   fix="call set_page_size before the first row")  # fmt: skip
        full = {
            k for k, p in parts.items()
            if k not in self.open or len(self.open[k][1]) + len(p) > self.sizes[1]
        }  # fmt: skip
        for kind in sorted(full | ({"BLOB_DATA"} if full else set())):
            self._next(kind)
        (page, data), (blobs, blob_data) = self.open["RAW_DATA"], self.open["BLOB_DATA"]
        if not blob_data:
            group = {"id": blobs["page_type_id"], "offset": len(data)}
            page["row_group_ids"].append(group)
        ends = {}
        for kind, part in parts.items():
            self.open[kind][1].extend(part)
            self.open[kind][0]["page_size"] = ends[kind] = len(self.open[kind][1])
        blobs["end_row_id"] = len(self.rows) + 1
        self.rows.append((
            len(self.rows), page["page_id"], ends["RAW_DATA"] - len(parts["RAW_DATA"]),
            ends["RAW_DATA"], blobs["page_type_id"], blobs["page_id"],
            ends["BLOB_DATA"] - len(parts["BLOB_DATA"]), ends["BLOB_DATA"], *indexed,
        ))  # fmt: skip

    def _next(self, kind: str) -> None:
        """Begins a page."""
        self._flush(kind)
        blob = kind == "BLOB_DATA"
        page = {
            "end_row_id": 0, "page_id": len(self.pages), "page_size": 0, "page_type": kind,
            "page_type_id": sum(p["page_type"] == kind for p in self.pages),
            "row_group_ids": [{"id": 0, "offset": 0}] if blob else [], "shard_id": self.shard,
            "start_row_id": len(self.rows) if blob else 0,
        }  # fmt: skip
        self.pages.append(page)
        self.open[kind] = page, bytearray()

    def _flush(self, kind: str) -> None:
        if kind in self.open:
            page, data = self.open.pop(kind)
            self.file.seek(self.sizes[0] + page["page_id"] * self.sizes[1])
            self.file.write(data)

    def finish(self, facts: dict[str, object], indexed: Mapping[str, str]) -> None:
        """Writes what is in memory, the header and the index.

        Args:
            facts: The part of the header that all files of a set share.
            indexed: SQLite's types of the indexed columns.
        """
        for kind in list(self.open):
            self._flush(kind)
        header = json.dumps({**facts, "page": self.pages, "shard_id": self.shard}).encode()
        if len(header) + COUNT > self.sizes[0]:
            reject(ArgumentError, "FileWriter", f"the header has {len(header)} bytes",
                   fix="call set_header_size or set_page_size before the first row")  # fmt: skip
        self.file.seek(0)
        self.file.write(len(header).to_bytes(COUNT, "little") + header)
        self.file.close()
        columns = [f"{name} INT NOT NULL" for name in PLACES]
        for i, (name, kind) in enumerate(indexed.items()):
            columns += [f"INC_{i} INT", f"{name}_0 {kind}"]
        keys = ", ".join(["ROW_ID", *(f"INC_{i}" for i in range(len(indexed)))])
        index = self.path.with_name(self.path.name + ".db")
        index.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(index)) as db, db:
            db.execute(f"CREATE TABLE INDEXES({', '.join(columns)}, PRIMARY KEY({keys}))")
            db.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
            db.execute("INSERT INTO SHARD_NAME VALUES(?)", (self.path.name,))
            marks = ", ".join("?" * len(columns))
            db.executemany(f"INSERT INTO INDEXES VALUES({marks})", self.rows)


class FileWriter(Shown):
    """Writes rows into MindRecord files, as MindSpore reads them.

    Args:
        file_name: The file; with several of them their numbers are added to its name.
        shard_num: Over how many files the rows of every call are divided.
        overwrite: Whether files that exist are replaced.

    Raises:
        ArgumentError: if an argument is out of range, a file exists, or a row does not fit.

    Example:
        >>> writer = mindrecord.FileWriter("numbers.mindrecord", overwrite=True)
        >>> writer.add_schema({"label": {"type": "int32"}, "data": {"type": "bytes"}})
        >>> writer.write_raw_data([{"label": 1, "data": b"one"}])
        >>> writer.commit()
        >>> list(mindrecord.FileReader("numbers.mindrecord").get_next())
        [{'data': b'one', 'label': 1}]
    """

    def __init__(self, file_name: PathLike, shard_num: int = 1, overwrite: bool = False) -> None:
        if not isinstance(shard_num, int) or not 1 <= shard_num <= _MAX_SHARDS:
            reject(ArgumentError, "FileWriter", f"shard_num={shard_num!r} is not in 1 to 1000")
        path, digits = Path(file_name), len(str(shard_num - 1))
        names = [path.name + str(i).zfill(digits) for i in range(shard_num)]
        self.paths = [path.with_name(n) for n in (names if shard_num > 1 else [path.name])]
        for p in self.paths if not overwrite else ():
            if p.exists():
                reject(ArgumentError, "FileWriter", f"{p} exists", fix="pass overwrite=True")
        self.fields: dict[str, dict[str, Any]] = {}
        self.indexed: list[str] | None = None
        self.sizes = 16 << 20, 32 << 20
        self._desc = ""
        self._shards: list[_Pages] | None = None
        self._done = False

    def add_schema(self, content: Mapping[str, Any], desc: str | None = None) -> None:
        """Says what columns there are.

        Args:
            content: For every column its type, ``{"label": {"type": "int32"}}``, and for arrays
                of numbers the shape, with -1 for one open size.
            desc: A description.
        """
        for name, field in content.items():
            kind, shape = dict(field).get("type"), dict(field).get("shape")
            if not re.fullmatch(r"\w+", name, re.ASCII) or kind not in _KINDS:
                reject(ArgumentError, "FileWriter", f"column {name!r} has the type {kind!r}",
                       fix=f"use letters, digits and _ for names, and {', '.join(_KINDS)}",
                       )  # fmt: skip
            if shape is not None and kind not in _NUMBERS:
                reject(ArgumentError, "FileWriter", f"column {name!r}: {kind} has no shape")
        self.fields = {name: dict(content[name]) for name in sorted(content)}
        self._desc = desc or ""

    def add_index(self, index_fields: list[str]) -> None:
        """Chooses columns of numbers or texts that the ``.db`` file holds, too; all by default.

        Args:
            index_fields: Names of the columns.

        Raises:
            ArgumentError: if there is no such column, or it holds bytes or arrays.
        """
        for name in index_fields:
            if name not in self.fields or name in self._blobs():
                reject(ArgumentError, "FileWriter", f"column {name!r} cannot be an index",
                       fix="choose columns of numbers or texts, after add_schema")  # fmt: skip
        self.indexed = list(index_fields)

    def set_header_size(self, header_size: int) -> None:
        """Sets the bytes of the header, a multiple of four from 16 KB to 128 MB.

        Args:
            header_size: The bytes.

        Raises:
            ArgumentError: if they are out of range.
        """
        self._check_size("header_size", header_size, _HEADER_BYTES)
        self.sizes = header_size, self.sizes[1]

    def set_page_size(self, page_size: int) -> None:
        """Sets the bytes of a page, which a row must fit into, from 32 KB to 256 MB.

        Args:
            page_size: The bytes.

        Raises:
            ArgumentError: if they are out of range.
        """
        self._check_size("page_size", page_size, _PAGE_BYTES)
        self.sizes = self.sizes[0], page_size

    def _check_size(self, name: str, size: int, limits: tuple[int, int]) -> None:
        if self._shards is not None or size % 4 or not limits[0] <= size <= limits[1]:
            reject(ArgumentError, "FileWriter", f"{name}={size} is out of range, or too late",
                   fix=f"give a multiple of 4 from {limits[0]} to {limits[1]} before rows",
                   )  # fmt: skip

    def _blobs(self) -> list[str]:
        return [n for n, f in self.fields.items() if f["type"] == "bytes" or "shape" in f]

    def write_raw_data(
        self, raw_data: Sequence[dict[str, object]], parallel_writer: bool = False
    ) -> None:
        """Writes rows.

        Args:
            raw_data: A list of dicts with a value for every column.
            parallel_writer: Kept for MindSpore programs.

        Raises:
            ArgumentError: naming the row and the column that do not fit.
        """
        if not self.fields or self._done:
            reject(ArgumentError, "FileWriter", "rows need columns, and come before commit",
                   fix="call add_schema first, and write all rows before commit")  # fmt: skip
        rows = [self._encoded(i, row) for i, row in enumerate(raw_data)]
        count = len(self.paths)
        for s, part in enumerate(np.array_split(np.arange(len(rows)), count)):
            for i in part:
                self._opened()[s].add(*rows[i])

    def _opened(self) -> list[_Pages]:
        if self._shards is None:
            self._shards = [_Pages(p, i, self.sizes) for i, p in enumerate(self.paths)]
        return self._shards

    @classmethod
    def open_for_append(cls, file_name: PathLike) -> FileWriter:
        """Returns a writer that adds rows to a file.

        Args:
            file_name: A file that was written alone.

        Raises:
            ArgumentError: if it is one of several.
        """
        old = Shard(Path(file_name))
        if len(old.addresses) > 1:
            reject(ArgumentError, "FileWriter", f"{file_name} is one of several files",
                   fix="write all of them again")  # fmt: skip
        writer = cls(file_name, overwrite=True)
        header = old.header
        writer.add_schema(old.fields, header["schema"][0].get("desc"))
        writer.add_index([f["index_field"] for f in header["index_fields"] or ()])
        sizes = writer.sizes = header["header_size"], header["page_size"]
        writer._shards = [_Pages(writer.paths[0], 0, sizes, old)]
        return writer

    def _encoded(self, i: int, row: Mapping[str, object]) -> tuple[bytes, bytes, list[Any]]:
        values = {}
        for name, field in self.fields.items():
            try:
                values[name] = _converted(field["type"], field.get("shape"), row[name])
            except (KeyError, TypeError, ValueError) as e:
                shown = f"{type(e).__name__}: {e}"
                reject(ArgumentError, "FileWriter", f"row {i}, column {name!r}: {shown}",
                       fix=f"give it as {field['type']} of the column's shape")  # fmt: skip
        blobs = self._blobs()
        raw = {n: v for n, v in values.items() if n not in blobs} or {"id": 0}
        parts = [values[n] for n in blobs]
        if len(parts) > 1:
            parts = [len(p).to_bytes(COUNT, "big") + p for p in parts]
        keys = [v for n in self._indexes() for v in (0, values[n])]
        return _pack(raw), b"".join(parts) if blobs else bytes(4), keys

    def _indexes(self) -> list[str]:
        blobs = self._blobs()
        return [n for n in self.fields if n not in blobs] if self.indexed is None else self.indexed

    def commit(self) -> None:
        """Writes what is still in memory, the headers and the index files."""
        if self._done or not self.fields:
            reject(ArgumentError, "FileWriter", "there is nothing to write",
                   fix="call add_schema and write_raw_data first, and commit once")  # fmt: skip
        indexes = {n: _INDEXED[self.fields[n]["type"][:3]] for n in self._indexes()}
        schema = {"blob_fields": self._blobs(), "desc": self._desc, "schema": self.fields}
        facts = {
            "header_size": self.sizes[0], "page_size": self.sizes[1], "compression_size": 0,
            "index_fields": [{"index_field": n, "schema_id": 0} for n in indexes] or None,
            "schema": [schema], "shard_addresses": [p.name for p in self.paths],
            "statistics": None, "version": "3.0",
        }  # fmt: skip
        for shard in self._opened():
            shard.finish(facts, indexes)
        self._done = True


def _converted(kind: str, shape: Sequence[int] | None, value: object) -> str | bytes | float | int:
    """Returns a value of a column: a number, a text, or the bytes of a blob.

    Raises:
        TypeError: if it is of another type.
        ValueError: if it does not fit.
    """
    if kind in ("string", "bytes"):
        if not isinstance(value, str if kind == "string" else bytes):
            raise TypeError(f"it is a {type(value).__name__}")
        return value
    array = np.asarray(value)
    if shape is not None:
        if array.dtype != kind:
            raise TypeError(f"it is an array of {array.dtype}")
        array = array.reshape(shape)
        little = array.astype(array.dtype.newbyteorder("<"))
        return _pack_integers(array) if kind.startswith("int") else little.tobytes()
    if array.ndim or array.dtype.kind not in ("iu" if kind.startswith("int") else "iuf"):
        raise TypeError(f"it is a {type(value).__name__}")
    if kind.startswith("float"):
        return float(array)
    limits = np.iinfo(kind)
    if not limits.min <= int(array) <= limits.max:
        raise ValueError(f"{value} is out of range")
    return int(array)


def _field(value: np.ndarray) -> dict[str, object]:
    """Returns the entry of a schema for values like this one."""
    if value.dtype.kind in "US":
        return {"type": "string" if value.dtype.kind == "U" else "bytes"}
    wide = value.dtype.itemsize > 4 or value.dtype == np.uint32
    kind = ("float" if value.dtype.kind == "f" else "int") + ("64" if wide else "32")
    return {"type": kind, "shape": [-1, *value.shape[1:]]} if value.ndim else {"type": kind}


def write_rows(data: Dataset, file_name: str, count: int) -> None:
    """Writes the rows of one pass of a dataset into ``count`` files.

    Args:
        data: The dataset.
        file_name: Name of the file, of several the beginning of their names.
        count: Number of files.

    Raises:
        ArgumentError: if a file exists, or a column has a kind that MindRecord files lack.
    """
    writer = FileWriter(file_name, count)
    rows = [dict(zip(data.columns, map(np.asarray, row))) for row in data.rows(data.next_epoch())]
    writer.add_schema({name: _field(value) for name, value in rows[0].items()} if rows else {})
    writer.write_raw_data([{n: v if v.ndim else v.item() for n, v in r.items()} for r in rows])
    writer.commit()


__all__ = ["FAILED", "SUCCESS", "FileWriter", "write_rows"]
