"""Keeps each worker on a core of its own, where there are as many threads as cores.

A worker that wakes up is often put on the core of the thread that woke it, and may stay there for
many calls, which then take twice as long. Calling threads stay free. When one comes to the core of
a worker, that worker goes to the core that is left.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import time
from collections.abc import Sequence

from tvmgraph import forking
from tvmgraph.runtime import pool

_NOWHERE = -1  # the home after a fork, until there are workers again
_FREE = (0,)  # the core of all threads while nothing is bound
_CPU_ID = 4  # bytes from the beginning of Linux's `struct rseq` to `cpu_id`
#: Seconds between two moves at least: threads that call in turns from two cores must not drive the
#: worker to and fro.
_REST = 1e-3
_PATIENCE = 0.2  # seconds in which new workers begin to run

_this = threading.local()
_turn = forking.lock()


class Affinity:
    """The cores of the workers of this process.

    Before a call whose kernels share their work: ``if core[0] != own.home: own.move()``.

    Attributes:
        home: The core that no worker is bound to.
        started: Whether there is a pool.
    """

    home: int = _FREE[0]
    started = False

    def __init__(self) -> None:
        self._workers: dict[int, int] = {}
        self._rested = 0.0

    @property
    def core(self) -> Sequence[int]:
        """For the asking thread: its first element is the core that it runs on, at any time."""
        if not self._workers:
            return _FREE
        found = getattr(_this, "core", None)
        if found is None:
            found = _this.core = core_word() or [self.home]
        return found

    def move(self) -> None:
        """Lets the worker of the core that the thread came to have the core that it left."""
        if self.home == _NOWHERE:
            self.bind()
            return
        here, left, now = self.core[0], self.home, time.monotonic()
        if here not in self._workers or now < self._rested:
            return
        self._rested = now + _REST
        worker = self._workers[left] = self._workers.pop(here)
        self.home = here
        try:
            os.sched_setaffinity(worker, {left})
        except OSError:
            self._workers = {}  # not allowed any more: do not ask again

    def leave(self) -> None:
        """Notes that the workers were lost; the next call starts others."""
        self.home, self._workers = _NOWHERE, {}

    def bind(self) -> None:
        """Starts the workers, and binds them where there are as many threads as cores."""
        with _turn:
            if self.started and self.home != _NOWHERE:
                return  # another thread was here before
            count = pool.start()
            self.started, self.home = count > 0, _FREE[0]
            if count < 2 or os.environ.get("TVMGRAPH_BIND_WORKERS", "1") == "0":
                return
            cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
            if count != len(cores):
                return
            end = time.monotonic() + _PATIENCE
            while len(tasks := pool.threads()) < count - 1 and time.monotonic() < end:
                time.sleep(1e-4)
            here = ctypes.CDLL(None).sched_getcpu()  # the caller mostly stays where it is
            workers = dict(zip((c for c in cores if c != here), tasks))
            try:
                for core, worker in workers.items():
                    os.sched_setaffinity(worker, {core})
            except OSError:
                return  # not allowed here
            self.home, self._workers = here, workers


_affinity = Affinity()


def affinity() -> Affinity:
    """Returns that of the process; the first call starts the workers and binds them.

    Nothing is bound if there are more cores than threads (which would put the workers of several
    processes on the same cores), or with ``TVMGRAPH_BIND_WORKERS=0``. Nothing moves then.
    """
    if not _affinity.started:
        _affinity.bind()
    return _affinity


def core_word() -> Sequence[int] | None:
    """The word in which Linux keeps the core that the calling thread runs on, ``None`` if unknown.

    glibc registers it for restartable sequences: a read takes 20 ns, a call of ``sched_getcpu``
    four times as long.

    Source:
        https://www.gnu.org/software/libc/manual/html_node/Restartable-Sequences.html
    """
    libc = ctypes.CDLL(None)
    if platform.machine() != "x86_64":  # elsewhere the thread pointer is not `pthread_self`
        return None
    try:
        offset = ctypes.c_ssize_t.in_dll(libc, "__rseq_offset").value
        size = ctypes.c_uint.in_dll(libc, "__rseq_size").value
    except ValueError:
        return None  # an older or another C library
    if not size:
        return None  # not registered
    libc.pthread_self.restype = ctypes.c_void_p
    word = (ctypes.c_uint32 * 1).from_address(libc.pthread_self() + offset + _CPU_ID)
    return memoryview(word).cast("B").cast("I")


def _forked() -> None:
    if pool.lost():
        _affinity.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)  # after that of the pool
