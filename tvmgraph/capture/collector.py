"""Holding back the garbage collector while a function is captured.

Finalizers and weak-reference callbacks would run inside the captured function and be recorded as
part of it. The collector belongs to the process, so captures in several threads share one hold, and
the last one to end gives back what the first one found.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_holders = 0
_was_enabled = False


@contextmanager
def no_collection() -> Iterator[None]:
    """Collects no garbage within a ``with`` block, in any thread."""
    global _holders, _was_enabled
    with _lock:
        if not _holders:
            _was_enabled = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if not _holders and _was_enabled:
                gc.enable()
