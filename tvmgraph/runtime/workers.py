"""Keeps each worker of TVM's thread pool on a core of its own, where there are as many as cores.

A worker that wakes up is often put on the core of the thread that woke it, and may stay there for
many calls, which then take twice as long. TVM's own binding would pin the calling thread, too, and
with it the pools that other libraries start from it; that thread stays free here. When it comes to
a core of one of its workers, that worker goes to the core that it left.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Sequence
from pathlib import Path

from tvmgraph.runtime import pool

_TASKS = Path("/proc/self/task")
_NOWHERE = -1  # the home of a thread whose workers were lost in a fork
_CPU_ID = 4  # bytes from the beginning of Linux's `struct rseq` to `cpu_id`

_this = threading.local()


class Affinity:
    """The cores of a calling thread and of its workers.

    Before a call whose kernels share their work: ``if own.core[0] != own.home: own.move()``.

    Attributes:
        core: Its first element is the core that the thread runs on, at any time.
        home: The core that no worker is bound to.
    """

    def __init__(self, core: Sequence[int], home: int, workers: dict[int, int]) -> None:
        self.core = core
        self.home = home
        self._workers = workers

    def move(self) -> None:
        """Lets the worker of the core that the thread came to have the core that it left.

        Raises:
            DeviceError: if the workers were lost in a fork and cannot be started again.
        """
        if self.home == _NOWHERE:
            self._take(_bound())
            return
        here, left = self.core[0], self.home
        worker = self._workers.get(here)
        if worker is None:
            return  # the thread was bound to other cores since
        self._workers[left] = self._workers.pop(here)
        self.home = here
        try:
            os.sched_setaffinity(worker, {left})
        except OSError:
            self.core, self._workers = [here], {}  # not allowed any more: do not ask again

    def leave(self) -> None:
        """Notes that the workers were lost; the next call starts others."""
        self.home, self._workers = _NOWHERE, {}

    def _take(self, other: Affinity | None) -> None:
        """Becomes another one of the same thread; ``core`` stays what calls have kept of it."""
        if other is None or isinstance(self.core, list):
            self.home = self.core[0]
        else:
            self.home, self._workers = other.home, other._workers


def affinity() -> Affinity:
    """Returns that of the calling thread; the first call starts its pool and binds its workers.

    Nothing is bound if there are more cores than threads (which would put the workers of several
    processes on the same cores), or with ``TVMGRAPH_BIND_WORKERS=0``. Nothing moves then.
    """
    found = getattr(_this, "affinity", None)
    if found is None:
        found = _this.affinity = _bound() or Affinity([0], 0, {})
    return found


def _bound() -> Affinity | None:
    before = _tasks()
    count = pool.start()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    wanted = os.environ.get("TVMGRAPH_BIND_WORKERS", "1") != "0"
    if not wanted or count < 2 or count != len(cores):
        return None
    tasks = sorted(_tasks() - before)
    here = ctypes.CDLL(None).sched_getcpu()  # the caller mostly stays where it is
    free = [c for c in cores if c != here]
    if len(tasks) != count - 1 or len(free) != len(tasks):
        return None  # another library started threads at the same moment
    workers = dict(zip(free, tasks))
    try:
        for core, worker in workers.items():
            os.sched_setaffinity(worker, {core})
    except OSError:
        return None  # not allowed here
    return Affinity(core_word() or [here], here, workers)


def _tasks() -> set[int]:
    """The threads of this process."""
    return {int(task.name) for task in _TASKS.iterdir()} if _TASKS.is_dir() else set()


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
    found = getattr(_this, "affinity", None)
    if pool.lost() and found is not None:
        found.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)  # after that of the pool

__all__ = ["Affinity", "affinity", "core_word"]
