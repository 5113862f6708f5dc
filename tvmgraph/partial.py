"""Files that are being written: beside their place, and renamed when they are whole.

A process that is killed leaves its partial files. Their names say whose they are, and a later
writer in the same folder deletes those that are old and whose process is gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

#: Seconds since the last write after which a partial file of a dead process is deleted. Processes
#: in other containers look dead, too, so it is longer than any of them goes without writing.
AGE = 3600.0

_HOST = f"{zlib.crc32(platform.node().encode()):08x}"
#: Characters that a partial file's name has of the file's, which may be as long as may be.
_NAME = 40
_OURS = re.compile(rf"\.part-{_HOST}-(\d+)-")
_swept: dict[str, float] = {}  # folders, and when


def prefix(name: str = "") -> str:
    """Returns the start, not much longer, of the name of this process's partial file or folder.

    Args:
        name: Name of the file that it becomes; ``""`` for a folder.
    """
    return f"{'.' + name[:_NAME] if name else ''}.part-{_HOST}-{os.getpid()}-"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: int = 0o644) -> Iterator[Path]:
    """Yields an empty file beside ``path`` that takes its place at the end of the block.

    Args:
        path: The file to write; after an error in the block it is as before.
        mode: Its permissions.
    """
    try:
        folder, name = os.path.split(os.path.abspath(path))
    except FileNotFoundError:
        why = "the working folder was deleted; give a full path"
        raise FileNotFoundError(errno.ENOENT, why, os.fspath(path)) from None
    os.makedirs(folder, exist_ok=True)
    sweep(folder)
    handle, part = tempfile.mkstemp(dir=folder, prefix=prefix(name))
    os.close(handle)
    try:
        yield Path(part)
        os.chmod(part, mode)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise


@contextlib.contextmanager
def workspace(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a folder inside ``folder`` that is deleted at the end of the block.

    Args:
        folder: The folder, which must exist.
    """
    sweep(folder)
    with tempfile.TemporaryDirectory(prefix=prefix(), dir=folder) as made:
        yield Path(made)


def sweep(folder: str | os.PathLike[str]) -> None:
    """Deletes what killed writers left in a folder; looks once in a while.

    Args:
        folder: The folder; one that does not exist has nothing.
    """
    key, now = os.fspath(folder), time.time()
    if now - _swept.get(key, 0.0) < AGE:
        return
    _swept[key] = now
    with contextlib.suppress(OSError), os.scandir(key) as entries:
        for entry in [e for e in entries if ".part-" in e.name]:
            if _is_abandoned(entry, now):
                _delete(entry)


def _is_abandoned(entry: os.DirEntry[str], now: float) -> bool:
    found = _OURS.search(entry.name)
    if found is None:
        return False
    try:
        if now - entry.stat(follow_symlinks=False).st_mtime < AGE:
            return False
        os.kill(int(found[1]), 0)  # asks whether there is such a process
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _delete(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(entry.path)
