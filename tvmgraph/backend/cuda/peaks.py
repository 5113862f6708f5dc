"""What a GPU can do, which profiles compare with."""

from __future__ import annotations

from tvmgraph.debug.profile import Peaks
from tvmgraph.runtime import cuda
from tvmgraph.runtime.device_copy import allocate, duplicate
from tvmgraph.runtime.device_timing import seconds_of

_BYTES = 128 << 20  # more than any second-level cache holds
_ROUNDS = 3
#: Multiply-adds per clock and multiprocessor: float32, float64, f16 on tensor cores.
_UNITS = {(8, 0): (64, 32, 1024), (8, 6): (128, 2, 512), (8, 9): (128, 2, 512)}
_UNITS |= {(9, 0): (128, 64, 2048)}
_OTHER_UNITS = (128, 2, 0)

_known: dict[int, Peaks] = {}


def device_peaks(index: int) -> Peaks:
    """Returns what a GPU can do: arithmetic by its units and clock, bandwidth by a copy.

    Args:
        index: Number of the device.

    Returns:
        GFLOP/s and GB/s; the bandwidth is measured once per process and device.
    """
    found = _known.get(index)
    if found is None:
        found = _known[index] = _peaks(cuda.device(index))
    return found


def _peaks(device: cuda.Device) -> Peaks:
    space = allocate((_BYTES,), "uint8", device.index)
    copy = min(seconds_of(lambda: duplicate(space), device.index) for _ in range(_ROUNDS))
    single, double, half = (
        2e-9 * units * device.multiprocessors * device.clock
        for units in _UNITS.get(device.capability, _OTHER_UNITS)
    )
    bandwidth = 2 * _BYTES / max(copy, 1e-9) / 1e9
    return Peaks(single, double, bandwidth, 0, device.name, half)
