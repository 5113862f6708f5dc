"""What makes ``os.fork`` safe: nothing in the child waits for a thread that stayed behind.

Only the thread that forks goes on in the child. A lock that another one held stays locked there
for ever unless it is made anew (:func:`lock`, :func:`rlock`); that is right for locks around state
that is replaced in one step. What other threads may leave half changed in the memory of TVM and
LLVM, which have locks of their own, is waited for: compiles (:func:`whole`) and running calls of
compiled code (:func:`enters_compiled`). Calls need not be counted for that, which would slow each
of them: what a thread is in shows in its frames, and none can enter while this one has the GIL. So
do imports: a child that imports the same module would wait for their end.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Name of the file that functions written for one kind of call seem to come from.
CALL_FILE = "<call of compiled code>"
_TASKS, _STAT_BYTES = "/proc/self/task", 512
_PATIENCE = 60.0  # seconds
_IMPORT_PATIENCE = 5.0  # seconds: an import may wait for what the forking thread holds
_IMPORTS = ("<frozen importlib._bootstrap>", "_find_and_load")  # file and function of every import
_PAUSE, _CALM = 200, 3  # microseconds between two looks, and how many must show nothing
_NO_SWITCH = 5.0  # seconds in which no other thread asks for the GIL

_renewed: weakref.WeakSet[Any] = weakref.WeakSet()
_whole: list[threading.RLock] = []
_held: list[Any] = []  # while this thread forks
_entering: set[CodeType] = set()
_switch_interval = 0.0  # while this thread forks


def lock() -> threading.Lock:
    """Returns a ``threading.Lock`` that is free in a forked child."""
    return _kept(threading.Lock())


def rlock() -> Any:
    """Returns a ``threading.RLock`` that is free in a forked child."""
    return _kept(threading.RLock())


def whole() -> Any:
    """Returns a ``threading.RLock`` that no other thread holds when a process forks.

    ``os.fork`` waits for it. To be called once, for a module.
    """
    made = threading.RLock()
    _whole.append(made)
    return made


def enters_compiled(function: F) -> F:
    """Decorates a function that calls compiled code itself; ``os.fork`` waits for its end.

    Args:
        function: The function.
    """
    _entering.add(function.__code__)
    return function


def _kept(made: object) -> Any:
    _renewed.add(made)
    return made


def _before() -> None:
    end = time.monotonic() + _IMPORT_PATIENCE
    while True:
        for each in _whole:
            each.acquire()
            _held.append(each)
        _wait_for_calls()
        if not _others_import() or time.monotonic() >= end:
            return
        _after()
        time.sleep(_PAUSE * 1e-6)


def _others_import() -> bool:
    """Whether another thread is importing, and not waiting for an import of this one."""
    frames, here = sys._current_frames(), threading.get_ident()
    return not _imports(frames.pop(here)) and any(map(_imports, frames.values()))


def _imports(frame: FrameType | None) -> bool:
    """Whether a thread whose newest frame this is has begun an import."""
    while frame is not None:
        if (frame.f_code.co_filename, frame.f_code.co_name) == _IMPORTS:
            return True
        frame = frame.f_back
    return False


def _wait_for_calls() -> None:
    """Keeps the GIL from here to the end of the fork, and waits for calls of compiled code.

    A thread whose call has ended then sleeps until it gets the GIL. One whose call goes on does
    not sleep, but for a lock that another one holds, which does not sleep then.
    """
    global _switch_interval
    _switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(_NO_SWITCH)
    calling = _calling()
    if not calling or not os.path.isdir(_TASKS):
        return
    libc, end, calm = ctypes.PyDLL(None), time.monotonic() + _PATIENCE, 0  # it keeps the GIL
    while calm < _CALM and time.monotonic() < end:
        libc.usleep(_PAUSE)
        calm = calm + 1 if all(_sleeps(libc, task) for task in calling) else 0


def _calling() -> list[int]:
    """The other threads that call compiled code, as Linux numbers them."""
    here, frames = threading.get_ident(), sys._current_frames()
    codes = {t.native_id: frames[t.ident].f_code for t in threading.enumerate()
             if t.ident in frames and t.ident != here}  # fmt: skip
    return [
        task for task, code in codes.items()
        if task and (code in _entering or code.co_filename == CALL_FILE)
    ]  # fmt: skip


def _sleeps(libc: ctypes.PyDLL, task: int) -> bool:
    file = libc.open(f"{_TASKS}/{task}/stat".encode(), os.O_RDONLY)
    if file < 0:
        return True  # it has ended
    text = ctypes.create_string_buffer(_STAT_BYTES)
    libc.read(file, text, _STAT_BYTES)
    libc.close(file)
    return text.value.rpartition(b")")[2].split()[:1] == [b"S"]


def _after() -> None:
    sys.setswitchinterval(_switch_interval)
    while _held:
        _held.pop().release()


def _in_child() -> None:
    _after()
    for each in _renewed:
        each._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
