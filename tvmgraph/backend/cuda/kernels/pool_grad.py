"""The gradient of maximum pooling: what every element gets from the windows whose maximum it is.

A thread takes an element of the input and looks through the windows that hold it. Nothing is added
by several threads, so that the result is the same every time.

Expected on a device: the bytes of operands and results at the speed of a copy as long as windows
are small; neighbouring threads find the taps of their windows in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import div, i32, mod
from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.reducer import accumulator_dtype
from tvmgraph.backend.loop_ir.types import Expr, Func
from tvmgraph.backend.target import GpuModel

_THREADS = 256
_any: Any = tirx


def emit_max_pool_grad(func: Func, window: Sequence[Sequence[int]], _model: GpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Its parameters are the cotangent, the pooling's input and the result.
        window: Kernel, stride, padding before and dilation, one number per spatial axis.
    """
    shape = static_shape(func.params[1]) or ()
    rows = [tuple(int(v) for v in row) for row in window]
    device.each_thread(product(shape), _THREADS, lambda at: _Element(func, *rows).write(at, shape))


@dataclass(frozen=True)
class _Element:
    """One element of the input; tuples have one entry per spatial axis."""

    func: Func
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    dilation: tuple[int, ...]

    def write(self, at: Expr, shape: Sequence[int]) -> None:
        """Adds the cotangents of the windows whose first maximum the element is."""
        grad, _, result = self.func.params
        place = _places(at, shape)
        lead, here = place[:2], place[2:]
        total = device.fill(device.registers(1, accumulator_dtype(str(grad.dtype))))

        def tap(taps: list[Expr]) -> None:
            """The window in which the element is the tap ``taps``."""
            starts = [
                h + i32(b) - t * i32(d)
                for h, b, t, d in zip(here, self.before, taps, self.dilation)
            ]
            extents = static_shape(grad) or ()
            windows = [tirx.truncdiv(s, i32(n)) for s, n in zip(starts, self.stride)]
            inside: Expr | None = None
            for start, index, step, extent in zip(starts, windows, self.stride, extents[2:]):
                exact = tirx.EQ(index * i32(step), start)
                inside = device.both(inside, device.both(start >= i32(0), exact))
                inside = device.both(inside, index < i32(extent))

            def window() -> None:
                places = [device.let(index) for index in windows]
                number = _flat(taps, self.kernel)

                def add() -> None:
                    share = tirx.Cast(str(total.dtype), grad[(*lead, *places)])
                    device.store(total, total[i32(0)] + share, [0])

                device.only_if(tirx.EQ(self._winner(lead, places, shape), number), add)

            device.only_if(inside, window)

        # windows in their order: the largest tap belongs to the first window
        _nest(self.kernel, lambda taps: tap([i32(k - 1) - t for k, t in zip(self.kernel, taps)]))
        device.store(result, tirx.Cast(str(result.dtype), total[i32(0)]), [*lead, *here])

    def _winner(self, lead: Sequence[Expr], window: Sequence[Expr], shape: Sequence[int]) -> Expr:
        """The number of the tap that holds the first maximum; NaN exceeds everything."""
        data = self.func.params[1]
        best = device.registers(1, str(data.dtype))
        winner = device.fill(device.registers(1, "int32"), -1)

        def tap(taps: list[Expr]) -> None:
            offsets = zip(window, self.stride, taps, self.dilation, self.before)
            places = [device.let(w * i32(s) + t * i32(d) - i32(b)) for w, s, t, d, b in offsets]
            inside: Expr | None = None
            for place, extent in zip(places, shape[2:]):
                inside = device.both(inside, tirx.And(place >= i32(0), place < i32(extent)))

            def meet() -> None:
                value = device.let(data[(*lead, *places)])
                kept = best[i32(0)]
                spoiled = tirx.And(_any.isnan(value), tirx.Not(_any.isnan(kept)))
                better = tirx.Or(value > kept, spoiled)

                def keep() -> None:
                    device.store(best, value, [0])
                    device.store(winner, _flat(taps, self.kernel), [0])

                device.only_if(tirx.Or(winner[i32(0)] < i32(0), better), keep)

            device.only_if(inside, meet)

        _nest(self.kernel, tap)
        return winner[i32(0)]


def _nest(extents: Sequence[int], body: Callable[[list[Expr]], None]) -> None:
    """Loops around ``body(indices)``."""
    if not extents:
        body([])
        return
    with device.loop(extents[0]) as index:
        _nest(extents[1:], lambda rest: body([index, *rest]))


def _places(at: Expr, shape: Sequence[int]) -> list[Expr]:
    """The indices of an element, given its position in memory."""
    found: list[Expr] = []
    for position, extent in reversed(list(enumerate(shape))):
        found.insert(0, device.let(mod(at, extent) if position else at))
        at = div(at, extent)
    return found


def _flat(indices: Sequence[Expr], extents: Sequence[int]) -> Expr:
    total: Expr = i32(0)
    for index, extent in zip(indices, extents):
        total = total * i32(extent) + index
    return total
