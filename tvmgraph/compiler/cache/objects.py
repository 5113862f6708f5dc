"""Machine code of single kernels on disk: a graph translates only those that no graph had before.

Networks are changed a little and compiled again, and those of one family have most of their kernels
in common. A kernel's symbol tells what it computes (:mod:`tvmgraph.backend.cpu.codegen.sharing`),
so its object file is found by the symbol, the processor, and the state of this package.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from tvmgraph.compiler.cache import disk
from tvmgraph.runtime.store import OBJECT, Store

_DIGEST = 16  # bytes


class KernelObjects:
    """Object files of kernels by symbol; a :class:`~.parallel.ObjectCache`.

    Args:
        target: TVM's target, as text.

    Attributes:
        taken: Kernels that were there.
    """

    def __init__(self, target: str) -> None:
        self.taken = 0
        self._target = target
        self._store = Store(disk.folder(), disk.limit(), OBJECT)

    def take(self, symbol: str, path: Path) -> bool:
        """Writes the object file of a kernel if it is there; a damaged one is deleted.

        Args:
            symbol: The kernel's.
            path: The file to write.

        Returns:
            Whether it was there.

        Raises:
            OSError: if the disk is full.
        """
        key = self._key(symbol)
        if (kept := self._store.find(key)) is None:
            return False
        try:
            content = kept.read_bytes()
        except OSError:  # another process deleted it
            return False
        code, digest = content[:-_DIGEST], content[-_DIGEST:]
        if digest != disk.digest_of(code, key):
            self._store.discard(key)
            return False
        path.write_bytes(code)
        self.taken += 1
        return True

    def keep(self, symbol: str, path: Path) -> None:
        """Keeps a copy of an object file; where that is not possible, it is made again.

        Args:
            symbol: The kernel's.
            path: The file, in a workspace of the store.
        """
        key = self._key(symbol)
        code = path.read_bytes()
        copy = path.with_suffix(".kept")
        with contextlib.suppress(OSError):
            copy.write_bytes(code + disk.digest_of(code, key))
            self._store.put(key, copy)

    def _key(self, symbol: str) -> str:
        return disk.key_of_text(f"kernel {symbol}", self._target)
