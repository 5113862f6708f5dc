"""Handlers of signals are no part of the function whose capture they interrupt.

Python runs them in the main thread, between two instructions of whatever it is doing there. Inside
of a capture their tensors would be nodes of its graph and what they read its guards.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvmgraph.core.state import state

_SIGNALS = tuple(map(int, signal.valid_signals()))
_handler_of = _signal.getsignal  # that of `signal` makes members of enums of its results
_HAS_NO_TENSORS = (signal.default_int_handler,)


@contextmanager
def outside_capture() -> Iterator[None]:
    """A ``with`` block in which handlers of signals run as they do outside of a capture."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    placed: dict[int, tuple[Any, Any]] = {}
    try:
        for number in _SIGNALS:
            handler = _handler_of(number)
            if callable(handler) and handler not in _HAS_NO_TENSORS:
                placed[number] = handler, _outside_capture(handler)
                signal.signal(number, placed[number][1])
        yield
    finally:
        for number, (handler, ours) in placed.items():
            if signal.getsignal(number) is ours:
                signal.signal(number, handler)


def _outside_capture(handler: Callable[..., object]) -> Callable[..., object]:
    """Returns a handler that leaves the capture for as long as another one runs."""

    def handle(number: int, frame: object) -> object:
        profiler, outer = sys.getprofile(), (state.interpreter, state.tapes, state.scope)
        sys.setprofile(None)
        state.interpreter, state.tapes, state.scope = None, (), ()
        try:
            return handler(number, frame)
        finally:
            state.interpreter, state.tapes, state.scope = outer
            sys.setprofile(profiler)

    return handle
