"""Ctrl-C at the wrong moment: held back while things change that belong together, never lost.

Handlers of signals run in the main thread alone, so nothing here does anything elsewhere.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_noticing: list[list[BaseException]] = []  # what came in each block of the main thread


def _handler() -> Any:
    """What handles Ctrl-C in this thread, ``None`` if nothing in Python does."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None


@contextmanager
def held_back() -> Iterator[None]:
    """A ``with`` block that Ctrl-C interrupts at its end only."""
    handler = _handler()
    if handler is None:
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda *call: came.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[-1])


@contextmanager
def noticed() -> Iterator[None]:
    """A ``with`` block that Ctrl-C leaves as the exception that its handler raised.

    Code in between cannot turn it into another error, nor lose it: Python drops exceptions in
    finalizers and in callbacks of C++, and TVM reports those of callbacks as its own.
    """
    handler = _handler()
    if handler is None:
        yield
        return
    came: list[BaseException] = []
    _noticing.append(came)

    def remember(*call: Any) -> Any:
        try:
            return handler(*call)
        except BaseException as e:
            came.append(e)
            raise

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    except BaseException as e:
        if came and e is not came[-1]:
            raise came[-1].with_traceback(None) from None
        raise
    finally:
        _noticing.pop()
        if signal.getsignal(signal.SIGINT) is remember:
            signal.signal(signal.SIGINT, handler)
    if came:
        raise came[-1].with_traceback(None)


def raise_noticed() -> None:
    """Raises what Ctrl-C raised in the innermost :func:`noticed`, if somebody has caught it."""
    if _noticing and _noticing[-1] and threading.current_thread() is threading.main_thread():
        raise _noticing[-1][-1].with_traceback(None)


__all__ = ["held_back", "noticed", "raise_noticed"]
