"""The database of what a search found: decisions by kernel, in files that can be shipped.

A record belongs to one kernel (its loops before scheduling), one target, one number of threads and
one version of TVM and of this package. It is a small JSON file of its own, so a database is a
folder: copy it to ship it, or several into one to join them. A record that no longer fits (a
decision or an option that does not exist any more) is heeded as far as it does.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tvmgraph.compiler.cache import disk
from tvmgraph.runtime import trust

#: Environment variable that names the folder.
FOLDER_VARIABLE = "TVMGRAPH_TUNING_DIR"
_FORMAT = 1


@dataclass(frozen=True)
class Record:
    """What a search found for one kernel.

    Attributes:
        kernel: Its name, for people.
        threads: Workers it was measured with.
        decisions: What is decided otherwise than by the model; empty when the model was best.
        default_us: Microseconds of the kernel that the model shapes.
        best_us: Microseconds of the kernel with ``decisions``.
        trials: Kernels that were tried.
    """

    kernel: str
    threads: int
    decisions: Mapping[str, object]
    default_us: float
    best_us: float
    trials: int


def folder() -> Path:
    """Where the database is: ``TVMGRAPH_TUNING_DIR``, else beside the executables."""
    given = os.environ.get(FOLDER_VARIABLE)
    return Path(given) if given else disk.folder() / "tuning"


def key_of(kernel_hash: int, target: str, threads: int) -> str:
    """The name of a record.

    Args:
        kernel_hash: Structural hash of the kernel's loops.
        target: The target in full.
        threads: Number of workers.
    """
    names = ("apache-tvm", "tvmgraph")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in names]
    parts = (str(_FORMAT), str(kernel_hash), target, str(threads), *versions)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def find(key: str) -> Record | None:
    """Returns a record, or None when there is none that can be read.

    Args:
        key: Digest of kernel, target, threads and versions.
    """
    path = folder() / f"{key}.json"
    if not (trust.is_trusted(folder()) and trust.is_trusted(path)):
        return None
    try:
        return Record(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def keep(key: str, record: Record) -> None:
    """Writes a record; a folder that cannot be written to is no error.

    Args:
        key: Digest of kernel, target, threads and versions.
        record: What a search found.
    """
    with contextlib.suppress(OSError):
        disk.write_private(folder() / f"{key}.json", json.dumps(asdict(record), indent=1))


def records() -> list[Record]:
    """Every record that can be read."""
    keys = sorted(path.stem for path in folder().glob("*.json"))
    return [found for key in keys if (found := find(key)) is not None]


def clear() -> int:
    """Deletes every record; returns how many."""
    paths = list(folder().glob("*.json"))
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(paths)
