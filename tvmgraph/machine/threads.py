"""How many workers kernels use, and the settings of TVM's thread pool.

Apart from the compiler, because a process that only runs compiled code needs them too.
"""

from __future__ import annotations

import os
from pathlib import Path

from tvmgraph.errors import TvmgraphError

_CPU_DIR = Path("/sys/devices/system/cpu")
_CGROUP_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
#: Turns of a waiting worker's loop before it sleeps: about 5 ms. TVM's own default burns 50 ms of a
#: core after every parallel region.
_SPIN_COUNT = 20000


#: Says how many threads kernels use; TVM's own ``TVM_NUM_THREADS`` does where it is not set.
VARIABLE = "TVMGRAPH_NUM_THREADS"
# What the user had in TVM_NUM_THREADS, and what was written there for TVM since.
_given, _written = "", None


def _wish() -> str:
    """Returns the user's TVM_NUM_THREADS, also after :func:`configure_threads` wrote its own."""
    now = os.environ.get("TVM_NUM_THREADS", "")
    return _given if now == _written else now


def thread_count(requested: int | None = None) -> int:
    """Number of workers: the argument, else :data:`VARIABLE`, else ``TVM_NUM_THREADS``, else the
    usable physical cores.

    Args:
        requested: A positive number, or None.

    Raises:
        TvmgraphError: The number is not positive.
    """
    if requested is None:
        text = os.environ.get(VARIABLE) or _wish()
        requested = int(text) if text.isdigit() else _physical_cores()
    if requested < 1:
        raise TvmgraphError("the number of threads must be positive", got=str(requested))
    return requested


def configure_threads(count: int | None = None) -> int:
    """Sets up TVM's thread pool and returns its number of workers.

    TVM reads these variables when a thread runs its first parallel region, so this must come
    before any kernel is called. Workers are not bound to cores, because binding also pins the
    calling thread and whatever pools other libraries create from it.

    Args:
        count: Workers that are wished for; without one what the environment says, or the physical
            cores.
    """
    global _given, _written
    threads = thread_count(count)
    _given, _written = _wish(), str(threads)
    os.environ["TVM_NUM_THREADS"] = _written
    os.environ["TVM_BIND_THREADS"] = "0"
    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", str(_SPIN_COUNT))
    return threads


def read(path: Path) -> str:
    """A file of the system without the end of its line; empty where there is none.

    Args:
        path: The file.
    """
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _physical_cores() -> int:
    """Cores this process may use: hyperthreads counted once, a container's quota respected."""
    usable = (
        os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )
    siblings = {read(_CPU_DIR / f"cpu{cpu}" / "topology/thread_siblings_list") for cpu in usable}
    cores = len(siblings) if "" not in siblings else len(usable)
    quota, _, period = read(_CGROUP_CPU_MAX).partition(" ")
    if quota.isdigit() and period.isdigit():
        cores = min(cores, -(-int(quota) // int(period)))
    return max(1, cores)
