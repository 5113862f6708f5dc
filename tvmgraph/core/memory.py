"""Whether there is memory for a result, asked before it is allocated.

Systems that overcommit give out more than they have and end the process when it is used.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

from tvmgraph.core.types import TensorType
from tvmgraph.errors import OutOfMemoryError

_SMALL = 1 << 28  # bytes that nobody asks about
_LARGEST = 1 << 62  # elements that can be counted


def require_memory(types: Iterable[TensorType]) -> None:
    """Makes sure that results fit the memory that is free.

    Args:
        types: Types of the results; those of unknown size are left out.

    Raises:
        OutOfMemoryError: if one of them does not.
    """
    for t in types:
        if t.is_static:
            require_bytes(math.prod(t.shape) * t.dtype.itemsize, f"a result of type {t}")


def require_bytes(count: int, what: str) -> None:
    """Raises :class:`OutOfMemoryError` if there is no memory for something.

    Args:
        count: Its bytes.
        what: What the message calls it.
    """
    if count > _SMALL and count > (free := _available()):
        size = f"{count / 2**30:,.1f} GiB" if count < _LARGEST else "more than any memory"
        raise OutOfMemoryError(f"{what} needs {size}; {free / 2**30:.1f} GiB are free")


def _available() -> int:
    """Returns how many bytes can be used without ending a process."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines)
        return int(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
