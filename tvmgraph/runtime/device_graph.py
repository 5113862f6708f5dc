"""CUDA graphs: the kernels of a call are recorded once and then given to the GPU all at once.

Launching a kernel takes the host some microseconds, as long as a small kernel runs. A recorded call
is one launch, whatever the number of its kernels, and needs nothing of TVM's virtual machine.

A recording reads and writes the addresses that it was made with, so that it may only run again with
arguments that lie where they lay then. From the second call with the same addresses on there is a
recording of them. Inputs that lie somewhere else in every call are copied to a place of their own
first; a parameter with new storage is recorded again. Workspace stays reserved as long as there are
recordings. What a recording returns is handed out without a copy, and is not written to again while
somebody holds it: another recording, with other memory for its results, is used meanwhile.
"""

from __future__ import annotations

import ctypes
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass, field
from typing import Any

import tvm_ffi

from tvmgraph.runtime import cuda
from tvmgraph.runtime.device_copy import allocate, duplicate, set_current

_STORAGE = "vm.builtin.alloc_storage"
_RELAXED = 2  # cudaStreamCaptureModeRelaxed: memory may be allocated meanwhile
#: Recordings kept of a function, and how many of them hand out the results of the same arguments.
_RECORDINGS, _LENDING = 4, 2
#: So many calls in a row with arguments at new addresses, and inputs that move are copied.
_MOVES = 4
_SEEN = 8  # sets of addresses that were met once
#: References to a result that nobody was given: the list of results, and `getrefcount` itself.
_UNLENT = 2

Keep = Callable[[Any], Callable[..., Any]]


@dataclass
class _Recording:
    """One recorded call.

    Attributes:
        key: Addresses of the arguments, 0 where an argument is copied.
        handle: CUDA's executable graph.
        results: The memory of every result; ``None`` for one that is an argument.
        arguments: Which argument a result is, and its shape where that differs.
        single: Whether the function returns one tensor, not a tuple.
        lends: Whether results are handed out; otherwise copies of them are.
    """

    key: tuple[int, ...]
    handle: c_void_p
    results: list[tvm_ffi.Tensor | None]
    arguments: list[tuple[int, tuple[int, ...] | None]]
    single: bool
    lends: bool

    def __del__(self) -> None:
        if self.handle.value:
            cuda.runtime().cudaGraphExecDestroy(self.handle)

    def is_free(self) -> bool:
        """Whether nobody holds a result."""
        results = self.results
        for i in range(len(results)):
            if results[i] is not None and (
                sys.getrefcount(results[i]) > _UNLENT or _references(results[i]) > 1
            ):
                return False
        return True

    def outputs(self, given: Sequence[tvm_ffi.Tensor]) -> object:
        """Returns the results of a replay."""
        found = []
        for result, (position, shape) in zip(self.results, self.arguments):
            if result is None:
                result = given[position]
                result = result if shape is None else _view(result, shape, str(result.dtype))
            elif not self.lends:
                result = duplicate(result)
            found.append(result)
        return found[0] if self.single else found


@dataclass
class _OnStream:
    """The recordings of a function for one stream.

    Attributes:
        recordings: The recordings; the one that was used last comes last.
        copied: The places that inputs which move are copied to, by their positions.
        seen: Addresses that were met once.
        moves: Calls in a row with arguments at new addresses.
        workspace: What the recordings need beside arguments and results, and where it lies.
    """

    recordings: list[_Recording] = field(default_factory=list)
    copied: dict[int, tvm_ffi.Tensor] = field(default_factory=dict)
    seen: OrderedDict[tuple[int, ...], None] = field(default_factory=OrderedDict)
    moves: int = 0
    workspace: tuple[list[object], list[int]] = field(default_factory=lambda: ([], []))


class Replay:
    """A compiled function that is replayed as a CUDA graph; for one thread.

    Args:
        plain: The function; it launches its kernels one by one.
        instrumented: Takes an instrument and returns the same function on a machine that reports
            every call to it.
        index: The GPU.
        inputs: Positions of the arguments that may lie somewhere else in every call.

    Attributes:
        recorded: How often a call was recorded.
    """

    def __init__(
        self, plain: Callable[..., object], instrumented: Keep, index: int, inputs: Sequence[int]
    ) -> None:
        self._plain, self._instrumented = plain, instrumented
        self._index, self._inputs = index, frozenset(inputs)
        self._device = tvm_ffi.device("cuda", index)
        self._streams: dict[int, _OnStream] = {}
        self._last: tuple[tuple[object, ...], int, _Recording] | None = None
        self._launch = cuda.runtime().cudaGraphLaunch
        self._is_one_of_many = len(cuda.devices()) > 1
        self.recorded = 0

    def __call__(self, *given: tvm_ffi.Tensor) -> object:
        """Calls the function with tensors on the GPU; returns what it returns.

        Raises:
            DeviceError: if the GPU fails, or a call cannot be recorded.
        """
        if self._is_one_of_many:  # the default stream is that of the thread's device
            cuda.select(self._index)
        stream = int(tvm_ffi.get_raw_stream(self._device) or 0)
        last = self._last
        if last is not None and given == last[0] and stream == last[1] and last[2].is_free():
            return self._run(last[2], given, stream)
        self._last = None  # lets go of arguments that nobody else holds
        on = self._streams.setdefault(stream, _OnStream())
        recording = self._find(on, given)
        if recording is None:
            return self._plain(*given)
        if not on.copied:
            self._last = given, stream, recording
        for position, place in on.copied.items():
            _copy(place, given[position], stream)
        return self._run(recording, given, stream)

    def _run(self, recording: _Recording, given: Sequence[tvm_ffi.Tensor], stream: int) -> object:
        status = self._launch(recording.handle, c_void_p(stream))
        if status:
            raise cuda.failure("cudaGraphLaunch", status)
        return recording.outputs(given)

    def _find(self, on: _OnStream, given: Sequence[tvm_ffi.Tensor]) -> _Recording | None:
        """Returns a recording of these arguments, making it if they were met before."""
        key = self._key(on, given)
        alike = [r for r in on.recordings if r.key == key]
        for recording in alike:
            if not recording.lends or recording.is_free():
                on.recordings.remove(recording)
                on.recordings.append(recording)
                on.moves = 0
                return recording
        if alike or key in on.seen:
            on.moves = 0
            lends = sum(r.lends for r in alike) < _LENDING
            return self._record(on, key, given, lends)
        on.moves += 1
        if on.moves > _MOVES and self._hold_still(on, key, given):
            return None
        on.seen[key] = None
        if len(on.seen) > _SEEN:
            on.seen.popitem(last=False)
        return None

    def _key(self, on: _OnStream, given: Sequence[tvm_ffi.Tensor]) -> tuple[int, ...]:
        return tuple([0 if i in on.copied else h.data_ptr() for i, h in enumerate(given)])

    def _hold_still(
        self, on: _OnStream, key: tuple[int, ...], given: Sequence[tvm_ffi.Tensor]
    ) -> bool:
        """Gives the inputs that move places of their own; returns whether there are any."""
        known = [*on.seen, *(r.key for r in on.recordings)]
        moving = [i for i in self._inputs if any(k[i] != key[i] for k in known)]
        for i in moving:
            on.copied[i] = allocate(tuple(given[i].shape), str(given[i].dtype), self._index)
        if moving:
            on.recordings.clear()
            on.seen.clear()
            on.seen[self._key(on, given)] = None
        on.moves = 0
        return bool(moving)

    def _record(
        self, on: _OnStream, key: tuple[int, ...], given: Sequence[tvm_ffi.Tensor], lends: bool
    ) -> _Recording:
        """Records a call, which does not run it, and keeps the memory that it needs."""
        args = [on.copied.get(i, h) for i, h in enumerate(given)]
        storages: list[object] = []
        call = self._instrumented(_keeping(storages))
        before, on.workspace = on.workspace[1], ([], [])  # the next recording shall take the same
        handle, result = _capture(lambda: call(*args), self._index)
        recording = _recording(key, handle, result, args, lends)
        del result
        own = {r.data_ptr() for r in recording.results if r is not None}
        held = [(s, _address(s)) for s in storages]
        held = [(s, address) for s, address in held if address not in own]
        on.workspace = [s for s, _ in held], [address for _, address in held]
        if on.workspace[1] != before:  # the memory of the others may be somebody else's now
            on.recordings.clear()
        on.recordings.append(recording)
        del on.recordings[:-_RECORDINGS]
        self.recorded += 1
        return recording


def _keeping(storages: list[object]) -> Callable[..., None]:
    """Returns an instrument that keeps all memory which the machine asks for."""

    def keep(_: object, called: str, before: bool, result: object, *_given: object) -> None:
        if called == _STORAGE and not before:
            storages.append(result)

    return keep


def _capture(call: Callable[[], object], index: int) -> tuple[c_void_p, object]:
    """Records what a function gives to the GPU; returns the executable graph and its result."""
    stream, graph, made = c_void_p(), c_void_p(), c_void_p()
    cuda.select(index)
    cuda.call("cudaStreamCreateWithFlags", byref(stream), c_uint(cuda.NON_BLOCKING))
    before = set_current(index, stream.value or 0)
    try:
        result = _captured(call, stream, graph)
        cuda.call("cudaGraphInstantiate", byref(made), graph, c_ulonglong(0))
    finally:
        set_current(index, before)
        cuda.runtime().cudaStreamDestroy(stream)
        if graph.value:
            cuda.runtime().cudaGraphDestroy(graph)
    return made, result


def _captured(call: Callable[[], object], stream: c_void_p, graph: c_void_p) -> object:
    cuda.call("cudaStreamBeginCapture", stream, c_int(_RELAXED))
    try:
        result = call()
    except Exception as e:
        cuda.runtime().cudaStreamEndCapture(stream, byref(graph))
        cuda.runtime().cudaGetLastError()
        raise _unrecordable(str(e)) from e
    cuda.call("cudaStreamEndCapture", stream, byref(graph))
    return result


def _unrecordable(text: str) -> Exception:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return cuda.fail(
        "the call cannot be recorded as a CUDA graph",
        "use exec_mode='auto', which launches kernels one by one", lines[-1] if lines else None,
    )  # fmt: skip


def _recording(
    key: tuple[int, ...], handle: c_void_p, result: Any, args: Sequence[tvm_ffi.Tensor], lends: bool
) -> _Recording:
    """Sorts results into those that are arguments and those with memory of their own."""
    single = isinstance(result, tvm_ffi.Tensor)
    where = {a.data_ptr(): i for i, a in reversed(list(enumerate(args))) if a.data_ptr()}
    results: list[tvm_ffi.Tensor | None] = []
    arguments: list[tuple[int, tuple[int, ...] | None]] = []
    for found in [result] if single else result:
        shape = tuple(found.shape)
        position = where.get(found.data_ptr(), -1) if 0 not in shape else -1
        same = position >= 0 and tuple(args[position].shape) == shape
        arguments.append((position, None if same else shape))
        # a view of its own: the machine keeps what it returned last
        results.append(None if position >= 0 else _view(found, shape, str(found.dtype)))
    return _Recording(key, handle, results, arguments, single, lends)


def _view(tensor: tvm_ffi.Tensor, shape: tuple[int, ...], dtype: str) -> tvm_ffi.Tensor:
    view = tvm_ffi.get_global_func("runtime.TVMTensorCreateView")
    return view(tensor, tvm_ffi.Shape(shape), tvm_ffi.dtype(dtype), 0)


def _address(storage: object) -> int:
    make = tvm_ffi.get_global_func("vm.builtin.alloc_tensor")
    return make(storage, 0, tvm_ffi.Shape((1,)), tvm_ffi.dtype("uint8")).data_ptr()


def _references(handle: tvm_ffi.Tensor) -> int:
    # the object starts with its reference count, see TVMFFIObject in tvm/ffi/c_api.h
    return ctypes.c_uint32.from_address(handle.__chandle__()).value


def _copy(target: tvm_ffi.Tensor, source: tvm_ffi.Tensor, stream: int) -> None:
    nbytes = target.numel() * target.dtype.itemsize
    if nbytes:
        cuda.copy(target.data_ptr(), source.data_ptr(), nbytes, cuda.ON_DEVICE, stream)
