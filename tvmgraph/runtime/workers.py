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

import tvm_ffi

_TASKS = Path("/proc/self/task")
_BIG_CORES = 1  # TVM's word for "as the environment says"
_CPU_ID = 4  # bytes from the beginning of Linux's `struct rseq` to `cpu_id`

_this = threading.local()


class Seat:
    """The cores of a calling thread and of its workers.

    Before a call whose kernels share their work: ``if seat.core[0] != seat.home: seat.move()``.

    Attributes:
        core: Its first element is the core that the thread runs on, at any time.
        home: The core that no worker is bound to.
    """

    def __init__(self, core: Sequence[int], home: int, workers: dict[int, int]) -> None:
        self.core = core
        self.home = home
        self._workers = workers

    def move(self) -> None:
        """Lets the worker of the core that the thread came to have the core that it left."""
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


def seat() -> Seat:
    """Returns the seat of the calling thread; the first call starts its pool and binds its workers.

    Nothing is bound if there are more cores than threads (which would put the workers of several
    processes on the same cores), or with ``TVMGRAPH_BIND_WORKERS=0``. The seat never moves then.
    """
    found = getattr(_this, "seat", None)
    if found is None:
        found = _this.seat = _bound() or Seat([0], 0, {})
    return found


def _bound() -> Seat | None:
    count = int(os.environ.get("TVM_NUM_THREADS") or 0)  # what TVM will see
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    wanted = os.environ.get("TVMGRAPH_BIND_WORKERS", "1") != "0"
    if not wanted or count < 2 or count != len(cores) or not _TASKS.is_dir():
        return None
    before = _tasks()
    start_pool = tvm_ffi.get_global_func("runtime.config_threadpool", allow_missing=True)
    if start_pool is None:
        return None
    start_pool(_BIG_CORES, count)
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
    return Seat(core_word() or [here], here, workers)


def _tasks() -> set[int]:
    """The threads of this process."""
    return {int(task.name) for task in _TASKS.iterdir()}


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


__all__ = ["Seat", "core_word", "seat"]
