"""Streams and events: the order of what runs on a device, and its times."""

from __future__ import annotations

import weakref
from ctypes import byref, c_float, c_uint, c_void_p

from tvmgraph.config import context
from tvmgraph.errors import DeviceError, reject
from tvmgraph.runtime import cuda
from tvmgraph.runtime.device_copy import current_handle, set_current

_TIMELESS = 2  # cudaEventDisableTiming
_NOT_READY = 600


class Stream:
    """A queue of work on a device; work of different queues may overlap.

    Args:
        priority: Accepted for MindSpore programs; all streams have the default priority.
        stream: The handle of a stream that exists already, 0 for the default stream.
        device_id: The device, by default the context's.

    Raises:
        DeviceError: if there is no such device.
    """

    def __init__(
        self, priority: int = 0, stream: int | None = None, device_id: int | None = None
    ) -> None:
        self.device_id = context.device_id if device_id is None else device_id
        cuda.device(self.device_id)
        if stream is not None:
            self.handle = stream
            return
        made = c_void_p()
        cuda.select(self.device_id)
        cuda.call("cudaStreamCreateWithFlags", byref(made), c_uint(cuda.NON_BLOCKING))
        self.handle = made.value or 0
        weakref.finalize(self, _destroy, "cudaStreamDestroy", self.handle).atexit = False

    def synchronize(self) -> None:
        """Waits for everything that was given to the stream.

        Raises:
            DeviceError: if some of it failed.
        """
        cuda.call("cudaStreamSynchronize", c_void_p(self.handle))

    def query(self) -> bool:
        """Whether everything that was given to the stream is done."""
        return _is_done("cudaStreamQuery", self.handle)

    def wait_event(self, event: Event) -> None:
        """Makes later work of this stream wait for an event; not for one that nobody recorded.

        Args:
            event: The event.
        """
        if not event.handle:
            return
        cuda.call("cudaStreamWaitEvent", c_void_p(self.handle), c_void_p(event.handle), c_uint(0))

    def wait_stream(self, stream: Stream) -> None:
        """Makes later work of this stream wait for the present work of another.

        Args:
            stream: The other stream.
        """
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Marks the present end of the stream's work.

        Args:
            event: The event to mark; a new one by default.
        """
        event = event or Event()
        event.record(self)
        return event

    @property
    def id(self) -> int:
        """The handle of the stream, for other libraries."""
        return self.handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.handle, self.device_id) == (
            other.handle, other.device_id,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.handle, self.device_id))

    def __repr__(self) -> str:
        return f"Stream(device=GPU:{self.device_id}, handle={self.handle:#x})"


class StreamCtx:
    """Work of this thread inside a ``with`` block goes to a stream.

    Args:
        ctx_stream: The stream; with ``None`` the block changes nothing.
    """

    def __init__(self, ctx_stream: Stream | None) -> None:
        self.stream = ctx_stream
        self._before = 0

    def __enter__(self) -> Stream | None:
        if self.stream is not None:
            self._before = set_current(self.stream.device_id, self.stream.handle)
        return self.stream

    def __exit__(self, *_: object) -> None:
        if self.stream is not None:
            set_current(self.stream.device_id, self._before)


class Event:
    """A place in a stream's work.

    Args:
        enable_timing: Whether :meth:`elapsed_time` may be asked.
        blocking: Accepted for MindSpore programs.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.timed = enable_timing
        self.handle = 0
        cuda.device(context.device_id)

    def record(self, stream: Stream | None = None) -> None:
        """Marks the present end of a stream's work, by default the current one's.

        Args:
            stream: The stream; the current one of this thread by default.
        """
        stream = stream or current_stream()
        if not self.handle:  # an event is one of the device that it is recorded on first
            self._make(stream.device_id)
        cuda.call("cudaEventRecord", c_void_p(self.handle), c_void_p(stream.handle))

    def _make(self, index: int) -> None:
        made = c_void_p()
        cuda.select(index)
        flags = 0 if self.timed else _TIMELESS
        cuda.call("cudaEventCreateWithFlags", byref(made), c_uint(flags))
        self.handle = made.value or 0
        weakref.finalize(self, _destroy, "cudaEventDestroy", self.handle).atexit = False

    def wait(self, stream: Stream | None = None) -> None:
        """Makes later work of a stream, by default the current one, wait for the event.

        Args:
            stream: The stream; the current one of this thread by default.
        """
        (stream or current_stream()).wait_event(self)

    def synchronize(self) -> None:
        """Waits for the event; not if nobody recorded it."""
        if self.handle:
            cuda.call("cudaEventSynchronize", c_void_p(self.handle))

    def query(self) -> bool:
        """Whether the event has happened, or was never recorded."""
        return not self.handle or _is_done("cudaEventQuery", self.handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Returns the milliseconds between this event and a later one.

        Args:
            end_event: An event recorded after this one.

        Raises:
            DeviceError: if an event was made without ``enable_timing``, or not recorded.
        """
        if not (self.timed and end_event.timed):
            reject(DeviceError, "Event.elapsed_time",
                   "an event that measures no time has no elapsed time",
                   fix="make both events with enable_timing=True")  # fmt: skip
        if not (self.handle and end_event.handle):
            reject(DeviceError, "Event.elapsed_time", "an event that was not recorded has no time",
                   fix="record both events first")  # fmt: skip
        found = c_float()
        end_event.synchronize()
        cuda.call(
            "cudaEventElapsedTime", byref(found), c_void_p(self.handle), c_void_p(end_event.handle)
        )
        return found.value


def current_stream(device_id: int | None = None) -> Stream:
    """Returns the stream that this thread's work goes to.

    Args:
        device_id: Which GPU; the context's by default.
    """
    index = context.device_id if device_id is None else device_id
    return Stream(stream=current_handle(index), device_id=index)


def default_stream(device_id: int | None = None) -> Stream:
    """Returns the device's default stream.

    Args:
        device_id: Which GPU; the context's by default.
    """
    return Stream(stream=0, device_id=device_id)


def set_cur_stream(stream: Stream) -> None:
    """Sends the later work of this thread to a stream.

    Args:
        stream: The stream, of any GPU.
    """
    set_current(stream.device_id, stream.handle)


def synchronize(device_id: int | None = None) -> None:
    """Waits for all work of a device; on a machine without GPU it is done already.

    Args:
        device_id: Which GPU; the context's by default.

    Raises:
        DeviceError: if some of it failed.
    """
    if device_id is None and context.device_target == "CPU" and not cuda.is_available():
        return
    index = context.device_id if device_id is None else device_id
    cuda.device(index)
    cuda.select(index)
    cuda.call("cudaDeviceSynchronize")


def launch_blocking() -> None:
    """Asks that errors are raised at the call that makes them, as they always are."""


def wait_for_reader(index: int, reader: int | None) -> None:
    """Makes a stream of another library wait for this thread's work (DLPack's protocol).

    Args:
        index: The device.
        reader: The other stream: its address, 1 for the default stream, -1 not to wait, or
            ``None`` when it is unknown, for which the work is waited for here.
    """
    mine = current_handle(index)
    if reader == -1 or (reader == 1 and mine == 0) or reader == mine:
        return
    stream = Stream(stream=mine, device_id=index)
    if reader is None:
        stream.synchronize()
    else:
        Stream(stream=0 if reader == 1 else reader, device_id=index).wait_stream(stream)


def _is_done(query: str, handle: int) -> bool:
    library = cuda.runtime()
    status = getattr(library, query)(c_void_p(handle))
    if status:
        library.cudaGetLastError()  # "not ready" would be reported again, as somebody else's error
    if status not in (0, _NOT_READY):
        raise cuda.failure(query, status)
    return status == 0


def _destroy(function: str, handle: int) -> None:
    getattr(cuda.runtime(), function)(c_void_p(handle))


__all__ = [
    "Event", "Stream", "StreamCtx", "current_stream", "default_stream", "launch_blocking",
    "set_cur_stream", "synchronize",
]  # fmt: skip
