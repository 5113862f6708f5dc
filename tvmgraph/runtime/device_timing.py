"""Times of kernels on a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from ctypes import c_int, c_size_t, c_void_p

from tvmgraph.runtime import cuda
from tvmgraph.runtime.device_copy import allocate, current_handle
from tvmgraph.runtime.stream import Event, synchronize

#: Bytes that are filled: more than any second-level cache holds.
_LARGE = 128 << 20
#: Seconds that the host takes between two kernels of an instrumented call, generously.
_PER_LAUNCH = 40e-6
_MOST_FILLS = 500


class KernelClock:
    """Measures kernels of one call by events around them, on this thread's stream.

    A GPU that waits for the host would count the host's time, too. So it is given other work first,
    which takes as long as the host needs to launch the kernels.

    Args:
        index: The GPU.
        launches: How many kernels there will be.
    """

    def __init__(self, index: int, launches: int) -> None:
        self._index = index
        self._pairs: list[tuple[Event, Event]] = []
        space = allocate((_LARGE,), "uint8", index)

        def fill() -> None:
            cuda.call(
                "cudaMemsetAsync", c_void_p(space.data_ptr()), c_int(0), c_size_t(_LARGE),
                c_void_p(current_handle(index)),
            )  # fmt: skip

        fill()  # whatever is only done once
        one = seconds_of(fill, index)
        for _ in range(min(_MOST_FILLS, math.ceil(_PER_LAUNCH * launches / max(one, 1e-6)))):
            fill()

    def begin(self) -> None:
        """Marks the start of a kernel that is launched next."""
        start = Event(enable_timing=True)
        self._pairs.append((start, Event(enable_timing=True)))
        start.record()

    def end(self) -> None:
        """Marks the end of the kernel that was launched last."""
        self._pairs[-1][1].record()

    def seconds(self) -> list[float]:
        """Waits for the kernels; returns the time of each.

        Raises:
            DeviceError: if one of them failed.
        """
        synchronize(self._index)
        return [start.elapsed_time(end) / 1e3 for start, end in self._pairs]


def seconds_of(work: Callable[[], object], index: int) -> float:
    """Returns the time that a GPU takes for some work, on this thread's stream.

    Args:
        work: Starts the work; it need not wait for its end.
        index: Which GPU.
    """
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    start.record()
    work()
    end.record()
    synchronize(index)
    return start.elapsed_time(end) / 1e3
