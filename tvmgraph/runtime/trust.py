"""Whether files may be believed: those that only this user (or root) can have written.

A cache holds machine code, which runs as this user. Checksums find accidents; they say nothing
about who wrote a file. So a folder or a file counts only if nobody else can write to it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from tvmgraph.errors import warn_user

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_said: set[str] = set()


def why_not(path: Path) -> str | None:
    """Returns why a folder or file is not believed; None if it is, or is not there.

    Args:
        path: The folder or file.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return f"{path} is a symbolic link"
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        return f"{path} is neither a file nor a folder"  # a pipe would be waited for
    if not hasattr(os, "geteuid"):
        return None
    if found.st_uid not in (os.geteuid(), _ROOT):
        return f"{path} belongs to another user"
    if found.st_mode & _OTHERS:
        return f"others may write to {path} (chmod go-w, after a look at what is in it)"
    return None


def is_trusted(path: Path) -> bool:
    """Whether a folder or file is believed; says once in a process that one is not.

    Args:
        path: The folder or file.
    """
    reason = why_not(path)
    if reason is not None and reason not in _said:
        _said.add(reason)
        warn_user(f"not used: {reason}")
    return reason is None


def make_folder(path: Path) -> None:
    """Makes a folder that only this user may look into, whatever the umask, and those it is in.

    Args:
        path: The folder.

    Raises:
        OSError: if it cannot be made.
    """
    if not path.parent.exists():
        make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, _PRIVATE_FOLDER)
        os.chmod(path, _PRIVATE_FOLDER)  # the umask may have taken the user's own rights away


def make_private(path: Path) -> None:
    """Leaves a file to this user alone.

    Args:
        path: The file.
    """
    os.chmod(path, _PRIVATE_FILE)


__all__ = ["is_trusted", "make_folder", "make_private", "why_not"]
