"""Running a compiled module with instruments: time, operands and memory of every kernel call.

The virtual machine calls back before and after every call of its program. Only bytecode has such
places; host code that is machine code has to be compiled as bytecode for this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmgraph import dtypes
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.runtime.executable import Executable

if TYPE_CHECKING:
    from tvmgraph.runtime.device_timing import KernelClock

_STORAGE, _TENSOR = "vm.builtin.alloc_storage", "vm.builtin.alloc_tensor"
_NOTHING = "vm.builtin.null_value"  # does nothing to speak of: what it takes is the instrument


@dataclass(frozen=True)
class KernelCall:
    """One call of a kernel.

    Attributes:
        name: The kernel.
        start: When it began (on a GPU: was launched), on the clock of ``time.perf_counter``.
        seconds: Wall time, less what the instrument takes.
        bytes: Bytes of the tensors it was given, read or written once.
        dtype: dtype of its last tensor, the (last) result.
    """

    name: str
    start: float
    seconds: float
    bytes: int
    dtype: str


@dataclass(frozen=True)
class Run:
    """What one instrumented call did.

    Attributes:
        outputs: Its results.
        start: When it began.
        seconds: Wall time with the instruments.
        calls: Its kernels in order.
        planned: Bytes of storage that it asked for.
        unplanned: Bytes of the tensors that live in that storage, were each one alone.
    """

    outputs: list[Tensor]
    start: float
    seconds: float
    calls: tuple[KernelCall, ...]
    planned: int
    unplanned: int


class _Instrument:
    """Notes every call of the virtual machine."""

    def __init__(self, kernels: Sequence[str], clock: KernelClock | None = None) -> None:
        self.kernels = set(kernels)
        self.clock = clock
        self.rows: list[tuple[str, float, float, int, str]] = []
        self.begun = self.planned = self.unplanned = 0
        self.floor = float("inf")

    def __call__(self, _: object, called: str, before: bool, result: object, *given: Any) -> None:
        now = time.perf_counter()
        if called in self.kernels:
            if self.clock is not None:
                self.clock.begin() if before else self.clock.end()
            if not before:
                size = sum(_bytes_of(g) for g in given)
                dtype = next((str(g.dtype) for g in given[::-1] if hasattr(g, "dtype")), "float32")
                self.rows.append((called, self.begun, now, size, dtype))
        elif called == _NOTHING and not before:
            self.floor = min(self.floor, now - self.begun)
        elif called == _STORAGE and before:
            self.planned += next(math.prod(g) for g in given if not isinstance(g, (int, str))
                                 and hasattr(g, "__len__"))  # fmt: skip
        elif called == _TENSOR and not before:
            self.unplanned += _bytes_of(result)
        if before:
            self.begun = time.perf_counter()


def run(
    executable: Executable, args: Sequence[Tensor], types: Sequence[TensorType], name: str = "main"
) -> Run:
    """Runs a function whose host code is bytecode; on a GPU its kernels are timed there.

    Args:
        executable: What to run.
        args: One tensor per parameter.
        types: The output types.
        name: Which function.
    """
    executable.function(name)  # loads the code
    given = [executable.handle(a) for a in args]
    clock = None if executable.on_host else _device_clock(executable)
    instrument = _Instrument(executable.kernels, clock)
    function = executable.instrumented(instrument, name)
    start = time.perf_counter()
    result = function(*given)
    seconds = time.perf_counter() - start
    outputs = [result] if len(types) == 1 else list(result)
    floor = instrument.floor if math.isfinite(instrument.floor) else 0.0
    times = [end - begun - floor for _, begun, end, _, _ in instrument.rows]
    if clock is not None:
        times = clock.seconds()
    calls = [
        KernelCall(kernel, begun, max(taken, 1e-9), size, dtype)
        for (kernel, begun, _, size, dtype), taken in zip(instrument.rows, times)
    ]
    return Run(
        [executable.wrapped(o, t) for o, t in zip(outputs, types)], start, seconds, tuple(calls),
        instrument.planned, instrument.unplanned,
    )  # fmt: skip


def _device_clock(executable: Any) -> KernelClock:
    from tvmgraph.runtime.device_timing import KernelClock

    return KernelClock(executable.device_id, len(executable.kernels))


def _bytes_of(value: object) -> int:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return 0
    return math.prod(shape) * dtypes.dtype_of(str(dtype)).numpy.itemsize
