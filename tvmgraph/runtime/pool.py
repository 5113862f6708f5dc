"""The threads that parallel loops of compiled code are divided among, one pool for a process.

Every compiled module brings the code of a pool, ``backend/cpu/codegen/thread_pool.ll``, which says
how it works; that of the first one serves the process. Where none does, TVM's own pool has to do.

A forked child has the state of the pool but none of its workers. It forgets them at once, which
leaves every loop to the thread that comes to it, and starts others when it next calls compiled
code.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from typing import Any

from tvmgraph import forking

_MOST_THREADS = 1024
_LINE = 64  # bytes
#: Turns of a worker that waits for the next loop before it sleeps: 0.3 to 1 ms.
_SPINS = 20_000
_CODE = "tvmgraph_thread_pool"
_LAUNCH = "__TVMBackendParallelLaunch"  # generated code calls what the loader puts there


class _Line(ctypes.Structure):
    _fields_ = [("value", ctypes.c_int32), ("tid", ctypes.c_int32),
                ("_", ctypes.c_byte * (_LINE - 8))]  # fmt: skip


class _State(ctypes.Structure):
    """What ``thread_pool.ll`` calls ``%State``."""

    _fields_ = [
        ("tasks", ctypes.c_uint32), ("job", ctypes.c_int32), ("_", ctypes.c_byte * (_LINE - 8)),
        ("sleeping", _Line), ("done", _Line),
        ("body", ctypes.c_void_p), ("data", ctypes.c_void_p), ("held", ctypes.c_int32),
        ("failed", ctypes.c_int32), ("threads", ctypes.c_int32), ("spins", ctypes.c_int32),
        ("_rest", ctypes.c_byte * (_LINE // 2)),
        ("claims", _Line * _MOST_THREADS),
    ]  # fmt: skip


class _Pool:
    """The pool of this process.

    Its memory and its code are never given back: workers use them until the process ends.

    Attributes:
        state: What its code works on.
        worker: The address of what its threads run.
        workers: How many there are.
        lost: Whether there were some before this process was forked.
    """

    def __init__(self, code: Any) -> None:
        allocate = ctypes.CDLL(None).calloc
        allocate.restype, allocate.argtypes = ctypes.c_size_t, (ctypes.c_size_t,) * 2
        memory = allocate(1, ctypes.sizeof(_State) + _LINE)
        self.state = _State.from_address(-(-memory // _LINE) * _LINE)
        self.state.spins, self.state.threads = _SPINS, 1
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
        functions = (ctypes.c_void_p * 2).from_address(code(ctypes.addressof(self.state)))
        self.launch, self.worker = functions
        self.workers = 0
        self.lost = False

    def grow(self, count: int) -> None:
        """Divides loops among ``count`` threads from now on, the calling one among them."""
        state, count = self.state, min(count, _MOST_THREADS)
        for i in range(state.threads, count):  # tasks that no loop has had for long, or ever
            state.claims[i].value = state.job
        start_thread = ctypes.CDLL(None).pthread_create
        start_thread.argtypes = (ctypes.c_void_p,) * 4
        while self.workers < count - 1:
            handle = ctypes.c_uint64()
            number = self.workers + 1
            if start_thread(ctypes.addressof(handle), None, self.worker, number):
                break  # the system has no more threads to give
            self.workers = number
        state.threads = min(count, self.workers + 1)
        self.lost = False

    def forget(self) -> None:
        """Goes on without the workers, in a forked child."""
        spins = self.state.spins
        ctypes.memset(ctypes.addressof(self.state), 0, _State.claims.offset)
        for i in range(self.workers + 1):
            self.state.claims[i].value = self.state.claims[i].tid = 0
        self.state.spins, self.state.threads = spins, 1
        self.lost, self.workers = self.lost or self.workers > 0, 0


_pool: _Pool | None = None
_turn = forking.lock()


def load(path: str) -> Any:
    """Loads a module, whose pool becomes that of the process if there is none yet.

    Args:
        path: A shared library.
    """
    import tvm_ffi

    module = tvm_ffi.load_module(path)
    with _turn:
        adopted = _adopt(module) if _pool is None else None
    if adopted is not None:
        with contextlib.suppress(ValueError):  # it has no parallel loops
            ctypes.c_void_p.in_dll(ctypes.CDLL(path), _LAUNCH).value = adopted.launch
    return module


def adopt(module: object) -> None:
    """Makes a module's pool that of the process if there is none yet; later modules use it.

    Args:
        module: A loaded module.
    """
    with _turn:
        if _pool is None:
            _adopt(module)


def _adopt(module: Any) -> _Pool | None:
    global _pool
    register = getattr(_ffi_library(), "TVMFFIEnvModRegisterContextSymbol", None)
    if register is None or not module.implements_function(_CODE, query_imports=True):
        return None
    made = _Pool(module.get_function(_CODE, query_imports=True))
    if register(_LAUNCH.encode(), ctypes.c_void_p(made.launch)):
        return None
    _pool = made
    return made


@functools.cache
def _ffi_library() -> ctypes.CDLL:
    from tvm_ffi.libinfo import find_libtvm_ffi

    return ctypes.CDLL(find_libtvm_ffi())


def start() -> int:
    """Starts as many workers as ``TVM_NUM_THREADS`` asks for, again after a fork.

    Returns:
        How many threads loops are divided among, the calling one among them; 0 without a pool.
    """
    with _turn:
        if _pool is None:
            return 0
        _pool.grow(int(os.environ.get("TVM_NUM_THREADS") or 1))
        return _pool.state.threads


def threads() -> list[int]:
    """The system's numbers of the workers, of those that have begun to run."""
    if _pool is None:
        return []
    return [line.tid for line in _pool.state.claims[1 : _pool.workers + 1] if line.tid]


def lost() -> bool:
    """Whether the workers were lost in a fork; :func:`start` starts others."""
    return _pool is not None and _pool.lost


def _forget() -> None:
    if _pool is not None:
        _pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
