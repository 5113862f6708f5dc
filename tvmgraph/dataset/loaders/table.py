"""Sources of well-known sets of data, each a row: its parameters and a function that lists rows."""

from __future__ import annotations

import ast
import functools
import inspect
import wave
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tvmgraph import data
from tvmgraph.core.arguments import Attrs
from tvmgraph.dataset.base import Row
from tvmgraph.dataset.checks import count_of
from tvmgraph.dataset.files import Shuffle, file_bytes, is_shuffled
from tvmgraph.dataset.sources import Source
from tvmgraph.dataset.vision import Decode
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, reject

#: Parameters that many sources end with.
SAMPLED = "num_samples num_parallel_workers shuffle sampler num_shards shard_id cache"
DECODED = "num_samples num_parallel_workers shuffle decode=False sampler num_shards shard_id cache"
LINES = "num_samples num_parallel_workers shuffle='global' num_shards shard_id cache"
LINES_LAST = "num_samples shuffle='global' num_shards shard_id num_parallel_workers cache"


class Listing(NamedTuple):
    """What a source holds.

    Attributes:
        columns: dtype by name; None for strings and files.
        rows: Their entries: values, files of images, or functions that read them.
        classes: Labels by the names of classes, where they have names.
        counts: Rows of every file, where there are several.
    """

    columns: Mapping[str, object]
    rows: list[tuple[Any, ...]]
    classes: Mapping[str, Any] = {}
    counts: Sequence[int] = ()


class Loaded(Source):
    """A source of a table of files; subclasses are made by :func:`loader`."""

    signature: inspect.Signature
    read: Callable[..., Listing]

    def __init__(self, *args: object, **given: object) -> None:
        op = type(self).__name__
        try:
            bound = self.signature.bind(*args, **given)
        except TypeError as e:
            reject(DTypeError, op, f"{e}", fix=f"the parameters are {self.signature}")
        bound.apply_defaults()
        options = dict(bound.arguments)
        if (workers := options.get("num_parallel_workers")) is not None:
            count_of(op, "num_parallel_workers", workers, 1)
        found = type(self).read(op, options)
        if not found.rows:
            reject(ArgumentError, op, "there are no rows",
                   fix="download the files first; this class reads local files only")  # fmt: skip
        self.columns, self.kinds = list(found.columns), list(found.columns.values())
        self.listed, self.classes = found.rows, dict(found.classes)
        self.decode = Decode() if options.get("decode") else None
        self.decrypt = options.get("decrypt")
        shuffle = options.get("shuffle")
        super().__init__(
            len(found.rows), options.get("num_samples"),
            is_shuffled(shuffle) if isinstance(shuffle, (str, Shuffle)) else shuffle,
            options.get("num_shards"), options.get("shard_id"), options.get("sampler"),
        )  # fmt: skip
        self.shuffle_files(shuffle, found.counts or [len(found.rows)])

    def num_classes(self) -> int | None:
        """Returns the number of classes, None where they have no names."""
        return len(self.classes) or None

    def get_class_indexing(self) -> dict[str, Any]:
        """Returns the labels of classes by their names."""
        return dict(self.classes)

    def row(self, i: int) -> Row:
        """Returns one row."""
        return tuple(self._entry(v, kind) for v, kind in zip(self.listed[i], self.kinds))

    def column(self, where: int) -> np.ndarray:
        """Returns one column of all rows, without reading the others."""
        return np.asarray([self._entry(row[where], self.kinds[where]) for row in self.listed])

    def _entry(self, value: Any, kind: Any) -> np.ndarray:
        if isinstance(value, Path):
            raw = file_bytes(value, self.decrypt)
            return raw if self.decode is None else np.asarray(self.decode(raw))
        if callable(value):
            value = value()
        # -1, for nothing, is the largest number of an unsigned type
        return np.asarray(value) if kind is None else np.asarray(value).astype(kind)


def loader(parameters: str) -> Callable[[Callable[..., Listing]], type[Loaded]]:
    """Makes a source class of the function that reads it, which has its name and description.

    :data:`SOURCES` has it, too. The function gets the name and the arguments by name.

    Args:
        parameters: Their names: ``name!`` is required, ``name=value`` has a default, others None.
    """
    signature = inspect.Signature([_parameter(word) for word in parameters.split()])
    described = "\n".join(f"    {name}: {_MEANINGS[name]}" for name in signature.parameters)

    def made(read: Callable[..., Listing]) -> type[Loaded]:
        text = " ".join((read.__doc__ or "").split())
        body = {
            "signature": signature, "read": staticmethod(read), "__module__": read.__module__,
            "__doc__": f"{text}\n\nArgs:\n{described}", "__signature__": signature,
        }  # fmt: skip
        found = SOURCES[read.__name__] = type(read.__name__, (Loaded,), body)
        return found

    return made


#: Every source by its name.
SOURCES: dict[str, type[Loaded]] = {}


#: What arguments mean that several sources have.
_MEANINGS: dict[str, str] = data.table("dataset/loaders/parameters.toml")


def _parameter(word: str) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if word.endswith("!"):
        return inspect.Parameter(word[:-1], kind)
    name, _, default = word.partition("=")
    value = ast.literal_eval(default) if default else None
    return inspect.Parameter(name, kind, default=Shuffle.GLOBAL if value == "global" else value)


def folder_of(op: str, given: Attrs, name: str = "dataset_dir") -> Path:
    """Returns the folder that an argument names.

    Args:
        op: Name of the dataset.
        given: Arguments by name.
        name: Name of the argument.

    Raises:
        ArgumentError: if it does not exist.
    """
    folder = Path(given[name])
    if not folder.is_dir():
        reject(ArgumentError, op, f"{name}: there is no folder {folder}",
               fix="download the files there first; this class reads local files only")  # fmt: skip
    return folder


def existing(op: str, path: Path) -> Path:
    """Returns the path of a file that is there.

    Args:
        op: The source.
        path: The file.

    Raises:
        ArgumentError: if there is none.
    """
    if not path.is_file():
        reject(ArgumentError, op, f"there is no file {path}",
               fix="download the files first; this class reads local files only")  # fmt: skip
    return path


def lines_of(op: str, path: Path) -> list[str]:
    """Returns the lines of a file, without the empty ones.

    Args:
        op: Name of the dataset.
        path: The file, of UTF-8.

    Raises:
        ArgumentError: if it does not exist.
    """
    if not path.is_file():
        reject(ArgumentError, op, f"there is no file {path}",
               fix="download the files there first; this class reads local files only")  # fmt: skip
    return [line for line in path.read_text("utf-8").split("\n") if line]


def pictures(folder: Path, endings: Iterable[str] = (".jpg", ".jpeg", ".png")) -> list[Path]:
    """Returns the images of a folder and of those below it, in the order of their names.

    Args:
        folder: The folder.
        endings: Their suffixes, in lower case.
    """
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in endings)


def folders(folder: Path) -> list[Path]:
    """Returns the folders of a folder in the order of their names.

    Args:
        folder: The folder; one that does not exist has none.
    """
    return sorted(p for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []


def sound(path: Path) -> tuple[Callable[[], np.ndarray], int]:
    """Returns a function that reads a WAV file as (channels, length) in [-1, 1], and its rate.

    Args:
        path: The file.

    Raises:
        ShapeError: when read, if its samples are not of 16 bits.
    """
    with wave.open(str(path)) as file:
        return functools.partial(_samples, path), file.getframerate()


def _samples(path: Path) -> np.ndarray:
    with wave.open(str(path)) as file:
        if file.getsampwidth() != 2:
            reject(ShapeError, path.name, f"{8 * file.getsampwidth()} bits, not 16")
        raw = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return (raw.reshape(-1, file.getnchannels()).T / np.float32(32767)).astype("f4")
