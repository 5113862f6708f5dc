"""Ctrl-C and other signals at the wrong moment: held back while things change that belong together,
never lost.

Handlers of signals run in the main thread alone, so nothing here does anything elsewhere.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: Those whose handlers programs set; that of Ctrl-C raises unless one is.
_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGALRM", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGVTALRM",
                 "SIGPROF")
    if hasattr(signal, name)
)  # fmt: skip
#: What the library's functions call: these make members of an enumeration of all handlers, which
#: takes longer than the rest.
_plain = importlib.import_module("_signal")
_getsignal, _setsignal = _plain.getsignal, _plain.signal
_noticing: list[list[BaseException]] = []  # what came in each block of the main thread
_PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BORDERS = ("__enter__", "__exit__")  # of ``with`` blocks


def _handlers() -> dict[int, Any]:
    """What handles signals in this thread, of those that something in Python handles."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: h for number in _SIGNALS if callable(h := _getsignal(number))}


def _replace(handlers: list[tuple[int, Any]], only: object) -> None:
    """Sets handlers where ``only`` handles a signal now; all of them, even if one raises."""
    if handlers:
        number, handler = handlers[0]
        try:
            if _getsignal(number) is only:
                _setsignal(number, handler)
        finally:
            _replace(handlers[1:], only)


def _make_up(calls: list[tuple[Any, int, Any]]) -> None:
    """Calls handlers with what came, all of them even if one raises."""
    with contextlib.ExitStack() as stack:
        for handler, number, frame in reversed(calls):
            stack.callback(handler, number, frame)


@contextmanager
def held_back() -> Iterator[None]:
    """A ``with`` block that Ctrl-C and other signals interrupt at its end only."""
    handlers = _handlers()
    if not handlers:
        yield
        return
    came: dict[int, object] = {}
    remember = came.__setitem__
    try:
        for number in handlers:
            _setsignal(number, remember)
        yield
    finally:
        try:
            _replace([*handlers.items()], remember)
        finally:
            if came:
                _make_up([(handlers[number], number, frame) for number, frame in came.items()])


@contextmanager
def noticed() -> Iterator[None]:
    """A ``with`` block that Ctrl-C, or another signal whose handler raises (an alarm at the end of
    some time), leaves as the exception that the handler raised.

    Code in between cannot turn it into another error, nor lose it: Python drops exceptions in
    finalizers and in callbacks of C++, and TVM reports those of callbacks as its own. Where a
    ``with`` block of this package begins or ends it waits, for :func:`raise_noticed` or the end:
    what such a block puts in place for a while would stay.
    """
    handlers = _handlers()
    if not handlers:
        yield
        return
    came: list[BaseException] = []
    outside = sys._getframe(2)

    def remember(number: int, frame: FrameType | None) -> Any:
        try:
            return handlers[number](number, frame)
        except BaseException as e:
            came.append(e)
            if not _is_at_border(frame, outside):
                raise

    _noticing.append(came)
    try:
        for number in handlers:
            _setsignal(number, remember)
        yield
    except BaseException as e:
        if came and e is not came[-1]:
            raise came[-1].with_traceback(None) from None
        raise
    finally:
        _noticing.pop()
        _replace([*handlers.items()], remember)
    if came:
        raise came[-1].with_traceback(None)


def _is_at_border(frame: FrameType | None, outside: FrameType) -> bool:
    """Whether a ``with`` block of this package begins or ends, further in than a frame."""
    while frame is not None and frame is not outside:
        code = frame.f_code
        if code.co_name in _BORDERS:
            file = code.co_filename
            if file == contextlib.__file__:
                file = _generator_file(frame.f_locals.get("self"))
            if file.startswith(_PACKAGE_DIR):
                return True
        frame = frame.f_back
    return False


def _generator_file(manager: object) -> str:
    code = getattr(getattr(manager, "gen", None), "gi_code", None)
    return code.co_filename if code is not None else ""


def raise_noticed() -> None:
    """Raises what Ctrl-C raised in the innermost :func:`noticed`, if somebody has caught it."""
    if _noticing and _noticing[-1] and threading.current_thread() is threading.main_thread():
        raise _noticing[-1][-1].with_traceback(None)
