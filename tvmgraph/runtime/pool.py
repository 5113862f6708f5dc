"""The pool of workers that TVM keeps for the calling thread, after a fork.

A forked child inherits the pool of the thread that forked, but none of its workers: a parallel
kernel would wait for them for ever, and so would the pool's destructor when the thread ends. So the
child forgets the queues and threads of that pool at once, which leaves the kernels of that thread
to the thread itself, and starts new ones when it next calls compiled code.

TVM has no function that forgets a pool. Its pool is the value of a variable of the thread, found
here by its form; where there is none of that form, :func:`start` is an error.

Source:
    https://github.com/apache/tvm/blob/v0.27.0/src/runtime/thread_pool.cc
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvmgraph.errors import DeviceError

_BIG_CORES = 1  # TVM's word for "as the environment says"
_RESET = "_ZN3tvm7runtime9threading15ResetThreadPoolEv"
_WORD = 8
_LINK_MAP, _THREAD_DATA = 2, 10  # RTLD_DL_LINKMAP, RTLD_DI_TLS_DATA
_THREAD_SEGMENT = 7  # PT_TLS
_HEADER = struct.Struct("<32xQ14xHH")  # e_phoff, e_phentsize, e_phnum
_SEGMENT = struct.Struct("<I36xQ8x")  # p_type, p_memsz
_MOST_WORKERS = 1 << 12
_PAIR = (1 << 32) - 1
#: The pool in words: (workers, workers in use), whether the caller is one of them, then first, end
#: and limit of the vector of queues, and the group of threads.
_COUNTS, _FIRST, _END, _LIMIT, _GROUP, _WORDS = 0, 2, 3, 4, 5, 6


class _Known(threading.local):
    """What is known of the calling thread's pool.

    Attributes:
        started: Whether it was started here.
        lost: Whether its workers were lost in a fork and not replaced yet.
        forgotten: Whether it can have new ones.
    """

    started = False
    lost = False
    forgotten = False


_this = _Known()


class _Symbol(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p), ("address", ctypes.c_void_p),
    ]  # fmt: skip


def start() -> int:
    """Starts the calling thread's workers, again after a fork.

    Returns:
        How many threads its kernels use, the thread itself among them; 0 if that is not known.

    Raises:
        DeviceError: if they were lost in a fork, and this build of TVM cannot start others.
    """
    import tvm_ffi

    _library()  # found now: another thread may hold the loader's lock while this one forks
    if _this.lost:
        _renew()
    count = int(os.environ.get("TVM_NUM_THREADS") or 0)  # what TVM will see
    start_pool = tvm_ffi.get_global_func("runtime.config_threadpool", allow_missing=True)
    if start_pool is None or count == 1:
        return 1
    start_pool(_BIG_CORES, count)
    _this.started = True
    return count


def lost() -> bool:
    """Whether the calling thread's workers were lost in a fork; :func:`start` starts others."""
    return _this.lost


def _forget() -> None:
    """Forgets the calling thread's pool, in a forked child, before anything else."""
    found = _pool() if _library.cache_info().currsize else None
    if found is not None:
        workers = found[_COUNTS] & _PAIR
        found[_COUNTS] = workers | 1 << 32  # the thread alone, until there are new workers
        for word in (_FIRST, _END, _LIMIT, _GROUP):
            found[word] = 0
        _this.forgotten = True
    _this.lost = _this.started or _this.forgotten


def _renew() -> None:
    library = _library()
    if library is None or not _this.forgotten:
        raise DeviceError(
            "parallel kernels ran before this process was forked, and the workers of this build of "
            "TVM cannot be started again",
            op="fork", got=f"process {os.getpid()}",
            fix="start processes with multiprocessing.get_context('spawn'), fork before the first "
            "compiled call, or set TVM_NUM_THREADS=1",
        )  # fmt: skip
    library.reset()
    _this.lost = _this.forgotten = False


def _pool() -> Any:
    """The words of the calling thread's pool, ``None`` if it has none or it is not found."""
    words = _thread_words()
    places = [i for i in range(len(words) - _WORDS + 1) if _has_form(words[i : i + _WORDS])]
    if len(places) != 1:
        return None
    return (ctypes.c_uint64 * _WORDS).from_address(ctypes.addressof(words) + places[0] * _WORD)


def _has_form(words: list[int]) -> bool:
    workers, used = words[_COUNTS] & _PAIR, words[_COUNTS] >> 32
    first, end, limit, group = words[_FIRST:]
    return (
        0 < used <= workers <= _MOST_WORKERS
        and first > 0
        and end - first == workers * _WORD
        and limit >= end
        and group > 0
        and not (first | group) % _WORD
    )


def _thread_words() -> Any:
    """The variables of TVM's runtime that the calling thread has of its own, as words."""
    found = _library()
    place = ctypes.c_void_p()
    if found is None or found.process.dlinfo(found.handle, _THREAD_DATA, ctypes.byref(place)):
        return (ctypes.c_uint64 * 0)()
    count = found.thread_bytes // _WORD if place.value else 0
    return (ctypes.c_uint64 * count).from_address(place.value or ctypes.addressof(place))


@dataclass(frozen=True)
class _Library:
    """TVM's runtime library in memory.

    Attributes:
        process: All libraries.
        handle: Its own.
        reset: Its function that ends the workers of the calling thread and starts new ones.
        thread_bytes: Size of the variables that every thread has of its own.
    """

    process: Any
    handle: Any
    reset: Callable[[], None]
    thread_bytes: int


@functools.cache
def _library() -> _Library | None:
    process, handle, symbol = ctypes.CDLL(None), ctypes.c_void_p(), _Symbol()
    reset = getattr(process, _RESET, None)
    if reset is None or not hasattr(process, "dladdr1") or ctypes.sizeof(handle) != _WORD:
        return None
    address = ctypes.cast(reset, ctypes.c_void_p)
    if not process.dladdr1(address, ctypes.byref(symbol), ctypes.byref(handle), _LINK_MAP):
        return None
    return _Library(process, handle, reset, _thread_bytes(symbol.base))


def _thread_bytes(base: int) -> int:
    """The size of a library's segment of thread-local variables, which are all zero at first."""
    header = ctypes.string_at(base, _HEADER.size)
    table, width, count = _HEADER.unpack(header)
    for i in range(count):
        kind, size = _SEGMENT.unpack(ctypes.string_at(base + table + i * width, _SEGMENT.size))
        if kind == _THREAD_SEGMENT:
            return size
    return 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

__all__ = ["lost", "start"]
