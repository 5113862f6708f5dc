"""A folder of files by key, shared by processes, with a limit on its size.

Every entry is one file. It is written under another name first and then renamed, so readers see all
of it or nothing; an entry that cannot be used is deleted and made again. When the files together
exceed the limit, those that were not used for the longest time go first: prepared weights, which
are large and quick to make, then kernels, then executables.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tvmgraph import partial
from tvmgraph.runtime import trust

#: Endings of the file names: compiled graphs, their kernels, and weights prepared for them.
EXECUTABLE, OBJECT, WEIGHTS = ".so", ".o", ".weights"
_KINDS = (WEIGHTS, OBJECT, EXECUTABLE)  # in the order in which they go
#: Files are counted again when a process has added this part of the limit since it last did.
#: Listing thousands of them takes longer than many a compile; what other processes add meanwhile
#: may exceed the limit by as much.
_SHARE = 16


@dataclass(frozen=True)
class Usage:
    """What a store holds.

    Attributes:
        executables: Compiled graphs.
        kernels: Object files of kernels.
        weights: Files of prepared weights.
        bytes: The size of all.
    """

    executables: int
    kernels: int
    weights: int
    bytes: int

    @property
    def entries(self) -> int:
        """Number of files."""
        return self.executables + self.kernels + self.weights


@dataclass(frozen=True)
class _Known:
    """What is known of a folder: bytes in it, and those of them added since they were counted."""

    bytes: int
    added: int


_known: dict[Path, _Known] = {}


class Store:
    """Files by key.

    Args:
        folder: Where; made when something is written.
        limit: Bytes that the files of all kinds may take together.
        suffix: :data:`EXECUTABLE`, :data:`OBJECT` or :data:`WEIGHTS`, the kind that keys stand for.
    """

    def __init__(self, folder: Path, limit: int, suffix: str = EXECUTABLE) -> None:
        self.folder = folder
        self.limit = limit
        self.suffix = suffix

    def path(self, key: str) -> Path:
        """Where the entry of a key is or would be.

        Args:
            key: Hexadecimal digest of what the entry depends on.
        """
        return self.folder / f"{key}{self.suffix}"

    def find(self, key: str) -> Path | None:
        """Returns the entry of a key, unless others may have written it, and marks it as used.

        Args:
            key: Hexadecimal digest of what the entry depends on.
        """
        path = self.path(key)
        if not trust.is_trusted(path):
            return None
        try:
            os.utime(path)
        except OSError:
            return None
        return path

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """A folder for the files that an entry is made from, on the same disk."""
        trust.make_folder(self.folder)
        with partial.workspace(self.folder) as folder:
            yield folder

    def put(self, key: str, file: Path) -> Path:
        """Moves a finished file from the workspace into the store and makes room for it.

        Args:
            key: Hexadecimal digest of what the entry depends on.
            file: A file of the store's workspace; gone afterwards.
        """
        path = self.path(key)
        size = file.stat().st_size
        trust.make_private(file)
        os.replace(file, path)
        known = _known.get(self.folder)
        if known is not None:
            known = _Known(known.bytes + size, known.added + size)
        if known is None or known.bytes > self.limit or known.added > self.limit // _SHARE:
            known = _Known(self._make_room(path), 0)
        _known[self.folder] = known
        return path

    def discard(self, key: str) -> None:
        """Deletes the entry of a key, if there is one.

        Args:
            key: Hexadecimal digest of what the entry depends on.
        """
        with contextlib.suppress(OSError):
            self.path(key).unlink()

    def clear(self) -> Usage:
        """Deletes all entries; returns what there was."""
        usage = self.usage()
        for path, _ in self._files():
            with contextlib.suppress(OSError):
                os.unlink(path)
        _known.pop(self.folder, None)
        return usage

    def usage(self) -> Usage:
        """Counts the entries of all kinds."""
        found = self._files()
        counts = Counter(Path(path).suffix for path, _ in found)
        size = sum(stat.st_size for _, stat in found)
        return Usage(counts[EXECUTABLE], counts[OBJECT], counts[WEIGHTS], size)

    def _files(self) -> list[tuple[str, os.stat_result]]:
        found: list[tuple[str, os.stat_result]] = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in [e for e in entries if e.name.endswith(_KINDS)]:
                with contextlib.suppress(OSError):  # another process may delete it meanwhile
                    found.append((entry.path, entry.stat()))
        return found

    def _make_room(self, newest: Path) -> int:
        """Deletes what exceeds the limit; returns what there is."""
        files = self._files()
        files.sort(key=lambda item: (_KINDS.index(Path(item[0]).suffix), item[1].st_mtime))
        total = sum(stat.st_size for _, stat in files)
        for path, stat in files:
            if total <= self.limit:
                break
            if path != str(newest):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                total -= stat.st_size
        return total
