"""What the compiler's process does: it calls the functions that it is asked to call.

Messages go both ways as pickles with their length before them: from :mod:`.worker` a function, its
arguments and the surroundings; back what is begun and ended, what is shown, and the answer.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import queue
import resource
import signal
import sys
import threading
import traceback
from pathlib import Path

from tvmgraph.compiler import worker
from tvmgraph.compiler.build import import_compiler
from tvmgraph.compiler.worker import HEADER
from tvmgraph.debug import Phases, announce
from tvmgraph.runtime.native import use_runtime

#: Threads of the compiler recurse over expressions; this is address space, not memory.
_STACK = 256 << 20
#: How much sooner than its user's process this one is ended when memory is short.
_OOM_SCORE = "500"

Requests = queue.SimpleQueue[bytes]


def serve(memory: int, idle: int) -> None:
    """Answers calls until the other end is closed, or nobody asks for long.

    Args:
        memory: MiB that this process may take, 0 for as much as there is.
        idle: Seconds without a call after which it ends.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who is interrupted ends this process
    replies = _Replies(os.dup(1))
    os.dup2(2, 1)  # whatever C++ code prints is no message
    requests: Requests = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    _limit(memory)
    threading.stack_size(_STACK)
    work = threading.Thread(target=_work, args=(requests, replies, idle), daemon=True)
    work.start()
    work.join()


def _limit(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an abort shall not fill the user's folder
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory << 20, memory << 20))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)


def _read(requests: Requests) -> None:
    """Receives requests; ends this process with the one that asks."""
    with open(0, "rb", closefd=False) as stream:
        while head := stream.read(HEADER.size):
            requests.put(stream.read(*HEADER.unpack(head)))
    os._exit(0)


def _work(requests: Requests, replies: _Replies, idle: float) -> None:
    sys.stdout = sys.stderr = _Screen(replies)
    worker.serve_here()
    announce.listen(replies.send)
    _import_compiler()
    replies.send("ready")
    while True:
        try:
            message = requests.get(timeout=idle)
        except queue.Empty:
            replies.send("retires")
            return
        replies.answer(message)


def _import_compiler() -> None:
    """Imports TVM in half the time: what others ask of it and this process does not is left out.

    Backends of devices are not loaded. The library that sorts comes first: where TVM does not find
    what is in it, the first of the errors that it catches takes 0.2 s, for its backtrace. What is
    imported stays, so the garbage collector need not look at it.
    """
    os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"] = "0"
    use_runtime()
    gc.disable()
    import_compiler(Phases("worker", quiet=True))
    gc.freeze()
    gc.enable()


class _Replies:
    """The way back.

    Args:
        pipe: A file descriptor.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def send(self, kind: str, *content: object) -> None:
        """Sends a message."""
        message = pickle.dumps((kind, *content), protocol=5)
        data = memoryview(HEADER.pack(len(message)) + message)
        with self._lock:
            while data:
                data = data[os.write(self._pipe, data) :]

    def answer(self, message: bytes) -> None:
        """Does what a message asks for, and sends what came of it."""
        try:
            function, args, surroundings = pickle.loads(message)
            surroundings.apply()
            _Screen.terminal = surroundings.terminal
            self.send("returned", function(*args))
        except Exception as e:
            cause = e.__cause__ or e.__context__
            why = "".join(traceback.format_exception(cause)) if cause is not None else ""
            self.send("raised", _portable(e), why)


def _portable(error: Exception) -> Exception:
    """An error that can be sent: itself, or one of a class of Python's own."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class _Screen(io.TextIOBase):
    """What is printed here is shown by the process that asks."""

    terminal = False  # of the process that asks

    def __init__(self, replies: _Replies) -> None:
        self._replies = replies

    def isatty(self) -> bool:
        """Whether progress bars make sense."""
        return _Screen.terminal

    def write(self, text: str, /) -> int:
        """Sends a text."""
        self._replies.send("shows", text)
        return len(text)
