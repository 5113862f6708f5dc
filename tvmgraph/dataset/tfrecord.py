"""Rows of TFRecord files: messages ``tf.train.Example``, each with its length before it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import PathLike, Workers
from tvmgraph.core.protobuf import message_classes
from tvmgraph.dataset.base import Row, names_of
from tvmgraph.dataset.files import Shuffle, files_of, is_shuffled, joined
from tvmgraph.dataset.samplers import generator_of
from tvmgraph.dataset.schema import Schema
from tvmgraph.dataset.sources import Source
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject

_HEAD, _TAIL = 12, 4  # bytes of the length with its checksum, and of the message's checksum


_DECLARATION = """
message BytesList { repeated bytes value = 1; }
message FloatList { repeated float value = 1; }
message Int64List { repeated int64 value = 1; }
message Feature { oneof kind { BytesList bytes = 1; FloatList float = 2; Int64List int64 = 3; } }
message Features { map<string, Feature> feature = 1; }
message Example { Features features = 1; }
"""


def _example() -> Any:
    """The class of the message ``tf.train.Example``."""
    return message_classes(_DECLARATION)["Example"]


def _records(path: str, content: bytes) -> list[bytes]:
    """Splits a file into its messages."""
    found, at = [], 0
    while at < len(content):
        start = at + _HEAD
        end = start + int.from_bytes(content[at : at + 8], "little")
        if len(content) < end + _TAIL:
            reject(
                either(ArgumentError, RuntimeError),
                "TFRecordDataset",
                f"{path} breaks off in row {len(found)}",
            )
        found.append(content[start:end])
        at = end + _TAIL
    return found


class TFRecordDataset(Source):
    """Rows of TFRecord files, which are read in the order of their paths.

    Whole numbers are int64, others float32, and bytes uint8, all with one axis, unless a schema
    says otherwise: with the type ``"string"``, bytes are text.

    Args:
        dataset_files: A path or a pattern such as ``"*.data"``, or a list of them.
        schema: A :class:`Schema`, or the path of its JSON file.
        columns_list: Columns that are read; by default those of the schema, or of the first row.
        num_samples: How many rows are used.
        num_parallel_workers: Kept for MindSpore programs.
        shuffle: Whether every epoch has another order (default), or a :class:`Shuffle`.
        num_shards: How many shards the files are dealt to.
        shard_id: Which shard this is.
        shard_equal_rows: Whether rows are dealt instead, as many to every shard.
        cache: Kept for MindSpore programs.
        compression_type: ``"GZIP"`` or ``"ZLIB"``.

    Raises:
        ArgumentError: if there is no such file, it breaks off, or a row lacks a column.
        DTypeError: when read, if a column holds something else than its schema says.
        ShapeError: when read, if it has another shape.
    """

    def __init__(
        self,
        dataset_files: PathLike | Iterable[PathLike],
        schema: Schema | str | None = None,
        columns_list: object = None,
        num_samples: int | None = None,
        num_parallel_workers: Workers | None = None,
        shuffle: object = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        shard_equal_rows: bool = False,
        cache: object = None,
        compression_type: str | None = None,
    ) -> None:
        unpack = {None: bytes, "": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}
        if compression_type not in unpack:
            reject(ArgumentError, "TFRecordDataset", f"compression_type is {compression_type!r}",
                   fix="use 'GZIP' or 'ZLIB'")  # fmt: skip
        self.records, counts = joined(
            _records(str(path), unpack[compression_type](path.read_bytes()))
            for path in files_of("TFRecordDataset", dataset_files)
        )
        known = Schema(schema) if isinstance(schema, (str, Path)) else schema  # pyright: ignore
        self.schema = known.columns if known is not None else {}
        first = _example().FromString(self.records[0]).features.feature if self.records else {}
        wanted = None if columns_list is None else names_of("TFRecordDataset", columns_list)
        self.columns = wanted or list(self.schema) or sorted(first)
        if num_samples is None and known is not None:
            num_samples = known.num_rows
        super().__init__(
            len(self.records), num_samples, is_shuffled(shuffle), num_shards, shard_id, None
        )
        self.shuffle_files(shuffle, counts)
        self.deals_files = self.shards > 1 and not shard_equal_rows
        if self.deals_files:
            self.counts = counts
            own = sum(counts[self.shard :: self.shards])
            self.limit = num_samples or None
            self.size = min(own, self.limit or own)

    def order(self, epoch: int) -> np.ndarray:
        """Returns the numbers of the rows of one pass.

        Args:
            epoch: Number of the pass.
        """
        if not self.deals_files:
            return super().order(epoch)
        files = self.rows_by_file()
        random = generator_of(epoch)
        if self.shuffled and self.scope != "infile":
            files = [files[i] for i in random.permutation(len(files))]
        own = files[self.shard :: self.shards]
        if self.shuffled and self.scope == "infile":
            own = [random.permutation(part) for part in own]
        rows = np.concatenate([np.zeros(0, np.int64), *own])
        whole = self.shuffled and self.scope == "global"
        return (random.permutation(rows) if whole else rows)[: self.limit]

    def row(self, i: int) -> Row:
        """Returns one row."""
        features = _example().FromString(self.records[i]).features.feature
        return tuple(self._entry(name, features, i) for name in self.columns)

    def _entry(self, name: str, features: Any, row: int) -> np.ndarray:
        if name not in features:
            reject(either(ArgumentError, RuntimeError), "TFRecordDataset",
                   f"row {row} has no column {name!r}",
                   fix=f"it has {', '.join(sorted(features))}")  # fmt: skip
        feature = features[name]
        kind = feature.WhichOneof("kind") or "bytes"
        values = list(getattr(feature, kind).value)
        dtype, shape = self.schema.get(name, (None, None))
        if dtype is dtypes.string and kind != "bytes":
            reject(DTypeError, "TFRecordDataset", f"column {name!r} holds numbers, not text")
        if dtype is dtypes.string:
            array = np.array([v.decode(errors="surrogateescape") for v in values], np.str_)
        elif kind == "bytes":
            content, kept = b"".join(values), np.uint8 if dtype is None else dtype.numpy
            if len(content) % np.dtype(kept).itemsize:
                reject(DTypeError, "TFRecordDataset", f"column {name!r} holds bytes, not {kept}")
            array = np.frombuffer(content, kept)
        else:
            array = np.array(values, np.int64 if kind == "int64" else np.float32)
            array = array if dtype is None else array.astype(dtype.numpy)
        try:
            return array if shape is None else array.reshape(shape)
        except ValueError:
            reject(
                ShapeError,
                "TFRecordDataset",
                f"row {row} of column {name!r} has {array.size} elements, not {shape}",
            )


__all__ = ["TFRecordDataset"]
