"""Permission to use the tile registers of AMX.

Linux saves these registers, 8 KiB of them, only for processes that ask, once. Threads that start
later inherit the answer. Apart from the compiler, because a process that only runs compiled code
needs it too.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

#: ``arch_prctl`` on x86-64, the request for a state component, and that of the tiles.
_ARCH_PRCTL, _REQUEST, _TILE_DATA = 158, 0x1023, 18


@functools.cache
def permit_tiles() -> bool:
    """Asks the kernel for the tile registers; later calls only repeat the answer.

    Returns:
        Whether this process may use them: not without AMX, not before Linux 5.16, and not where a
        sandbox forbids the question.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None, use_errno=True).syscall(_ARCH_PRCTL, _REQUEST, _TILE_DATA) == 0
