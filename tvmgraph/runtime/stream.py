"""Streams and events: the order of what runs on a device, and its times."""

from __future__ import annotations

import weakref
from ctypes import byref, c_float, c_uint, c_void_p

from tvmgraph.config import context
from tvmgraph.errors import DeviceError
from tvmgraph.runtime import cuda
from tvmgraph.runtime.device_copy import current_handle, set_current

_TIMELESS = 2  # cudaEventDisableTiming


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
        library = cuda.runtime()
        return library.cudaStreamQuery(c_void_p(self.handle)) == 0

    def wait_event(self, event: Event) -> None:
        """Makes later work of this stream wait for an event."""
        cuda.call("cudaStreamWaitEvent", c_void_p(self.handle), c_void_p(event.handle), c_uint(0))

    def wait_stream(self, stream: Stream) -> None:
        """Makes later work of this stream wait for the present work of another."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Marks the present end of the stream's work."""
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
        made = c_void_p()
        cuda.select(context.device_id)
        if enable_timing:
            cuda.call("cudaEventCreate", byref(made))
        else:
            cuda.call("cudaEventCreateWithFlags", byref(made), c_uint(_TIMELESS))
        self.handle = made.value or 0
        weakref.finalize(self, _destroy, "cudaEventDestroy", self.handle).atexit = False

    def record(self, stream: Stream | None = None) -> None:
        """Marks the present end of a stream's work, by default the current one's."""
        where = current_handle(context.device_id) if stream is None else stream.handle
        cuda.call("cudaEventRecord", c_void_p(self.handle), c_void_p(where))

    def wait(self, stream: Stream | None = None) -> None:
        """Makes later work of a stream, by default the current one, wait for the event."""
        (stream or current_stream()).wait_event(self)

    def synchronize(self) -> None:
        """Waits for the event."""
        cuda.call("cudaEventSynchronize", c_void_p(self.handle))

    def query(self) -> bool:
        """Whether the event has happened."""
        return cuda.runtime().cudaEventQuery(c_void_p(self.handle)) == 0

    def elapsed_time(self, end_event: Event) -> float:
        """Returns the milliseconds between this event and a later one.

        Raises:
            DeviceError: if an event was made without ``enable_timing``.
        """
        if not (self.timed and end_event.timed):
            raise DeviceError(
                "an event that measures no time has no elapsed time", op="Event.elapsed_time",
                fix="make both events with enable_timing=True",
            )  # fmt: skip
        found = c_float()
        end_event.synchronize()
        cuda.call(
            "cudaEventElapsedTime", byref(found), c_void_p(self.handle), c_void_p(end_event.handle)
        )
        return found.value


def current_stream(device_id: int | None = None) -> Stream:
    """Returns the stream that this thread's work goes to."""
    index = context.device_id if device_id is None else device_id
    return Stream(stream=current_handle(index), device_id=index)


def default_stream(device_id: int | None = None) -> Stream:
    """Returns the device's default stream."""
    return Stream(stream=0, device_id=device_id)


def set_cur_stream(stream: Stream) -> None:
    """Sends the later work of this thread to a stream."""
    set_current(stream.device_id, stream.handle)


def synchronize(device_id: int | None = None) -> None:
    """Waits for all work of a device.

    Raises:
        DeviceError: if some of it failed.
    """
    index = context.device_id if device_id is None else device_id
    cuda.device(index)
    cuda.select(index)
    cuda.call("cudaDeviceSynchronize")


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


def _destroy(function: str, handle: int) -> None:
    getattr(cuda.runtime(), function)(c_void_p(handle))


__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "current_stream",
    "default_stream",
    "set_cur_stream",
    "synchronize",
]
