"""The ``onnx`` package, imported as a whole.

Its C++ part cannot be loaded twice: an import that Ctrl-C breaks off could not be repeated in the
same process, so Ctrl-C waits until the import is over.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Holds Ctrl-C back, which Python only ever gives to the main thread, until the end."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if arrived:
            before(*arrived[0])


with ctrl_c_waits():
    import onnx
    from onnx import TensorProto, helper, numpy_helper

__all__ = ["TensorProto", "ctrl_c_waits", "helper", "numpy_helper", "onnx"]
