"""Keeps each worker of TVM's thread pool on a core of its own, where there are as many as cores.

A worker that wakes up is often put on the core of the thread that woke it, and may stay there for
many calls, which then take twice as long. TVM's own binding would pin the calling thread, too, and
with it the pools that other libraries start from it; that thread stays free here.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import tvm_ffi

_TASKS = Path("/proc/self/task")
_BIG_CORES = 1  # TVM's word for "as the environment says"

_settled = threading.local()


def settle() -> None:
    """Starts the calling thread's pool and binds its workers; later calls do nothing.

    Nothing is bound if there are more cores than threads (which would put the workers of several
    processes on the same cores), or with ``TVMGRAPH_BIND_WORKERS=0``.
    """
    if getattr(_settled, "done", False):
        return
    _settled.done = True
    count = int(os.environ.get("TVM_NUM_THREADS") or 0)  # what TVM will see
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    wanted = os.environ.get("TVMGRAPH_BIND_WORKERS", "1") != "0"
    if not wanted or count < 2 or count != len(cores) or not _TASKS.is_dir():
        return
    before = _tasks()
    start_pool = tvm_ffi.get_global_func("runtime.config_threadpool", allow_missing=True)
    if start_pool is None:
        return
    start_pool(_BIG_CORES, count)
    here = ctypes.CDLL(None).sched_getcpu()  # the caller mostly stays where it is
    _bind(sorted(_tasks() - before), [c for c in cores if c != here][: count - 1])


def _tasks() -> set[int]:
    """The threads of this process."""
    return {int(task.name) for task in _TASKS.iterdir()}


def _bind(workers: Sequence[int], cores: Sequence[int]) -> None:
    if len(workers) != len(cores):
        return  # another library started threads at the same moment
    for worker, core in zip(workers, cores):
        try:
            os.sched_setaffinity(worker, {core})
        except OSError:
            return  # not allowed here


__all__ = ["settle"]
