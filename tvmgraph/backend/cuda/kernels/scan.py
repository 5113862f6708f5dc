"""Running sums, products and extremes along an axis.

Along the last axis a block, or a warp, takes a row: every thread scans a vector, the threads scan
their totals, and what came before is carried from stretch to stretch. Few long rows are cut into
chunks for a block each: first the blocks add up their chunks, then they scan them, starting from
the total of the chunks before. Along any other axis every thread follows one sequence.

Expected on a device: twice the bytes of the operand at the speed of a copy; three times in chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, WARP, div, flat, i32, mod
from tvmgraph.backend.cuda.kernels.thread_group import ThreadGroup
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.scan import Combine, running
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, dtype_of
from tvmgraph.backend.target import GpuModel

_THREADS = 256
#: Elements of a chunk at least.
_MIN_CHUNK = 8192
#: Blocks per multiprocessor that together keep memory busy.
_BLOCKS_PER_SM = 4


def emit_scan(func: Func, settings: str, model: GpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes a tensor and its scan, of one type.
        settings: A name of :func:`~tvmgraph.backend.loop_ir.scan.running`, the axis, 1 if an
            element itself is left out, and 1 to scan from the end.
        model: The device.
    """
    name, *numbers = str(settings).split()
    axis, exclusive, reverse = map(int, numbers)
    source, target = func.params
    shape = static_shape(source) or ()
    combine, start = running(name, str(source.dtype))
    scan = _Scan(source, target, combine, start, bool(exclusive), bool(reverse), shape[axis])
    if axis == len(shape) - 1:
        scan.rows(product(shape[:axis]), model)
    else:
        scan.outer_axis(product(shape[:axis]), product(shape[axis + 1 :]))


@dataclass(frozen=True)
class _Scan:
    source: Buffer
    target: Buffer
    combine: Combine
    identity: Expr
    exclusive: bool
    reverse: bool
    size: int

    @property
    def _dtype(self) -> str:
        return dtype_of(self.identity)

    @property
    def _lanes(self) -> int:
        """Elements of a vector that lie in the row as they do in memory."""
        widest = VECTOR_BYTES // max(4, dtype_bytes(str(self.source.dtype)))
        return next(n for n in (4, 2, 1) if n <= widest and self.size % n == 0)

    def rows(self, count: int, model: GpuModel) -> None:
        """Rows that lie in memory one after the other."""
        group = _THREADS if self.size > WARP * self._lanes * 2 else WARP
        chunks = 1
        if count * 2 < model.sms:
            wanted = -(-model.sms * _BLOCKS_PER_SM // count)
            chunks = max(1, min(wanted, self.size // _MIN_CHUNK))
        stretch = group * self._lanes
        turns = -(-self.size // (chunks * stretch))
        chunks = -(-self.size // (turns * stretch))
        totals = None
        if chunks > 1:
            totals = emit.workspace([count * chunks], self._dtype)
            with device.launch(count * chunks, group) as (block, thread):
                self._total(block, thread, (group, turns, chunks), totals)
        with device.launch(count * chunks, group) as (block, thread):
            self._row(block, thread, (group, turns, chunks), totals)

    def _total(self, block: Expr, thread: Expr, cut: tuple[int, int, int], totals: Buffer) -> None:
        """Combines a chunk of a row."""
        group, turns, chunks = cut
        sums = device.fill(device.registers(1, self._dtype), self.identity)
        row, first = device.let(div(block, chunks)), device.let(mod(block, chunks) * i32(turns))
        with device.loop(turns) as turn:
            place = device.let(((first + turn) * i32(group) + thread) * i32(self._lanes))

            def add() -> None:
                for value in self._vector(row, place):
                    device.store(sums, self.combine(sums[i32(0)], value), [0])

            device.only_if(place < i32(self.size), add)
        ThreadGroup(group, thread).combine([sums], lambda a, b: [self.combine(a[0], b[0])])
        device.only_if(thread < i32(1), lambda: device.store(totals, sums[i32(0)], [block]))

    def _row(
        self, block: Expr, thread: Expr, cut: tuple[int, int, int], totals: Buffer | None
    ) -> None:
        """Scans a chunk of a row."""
        group, turns, chunks = cut
        carry = device.fill(device.registers(1, self._dtype), self.identity)
        own = device.registers(1, self._dtype)
        row, chunk = device.let(div(block, chunks)), device.let(mod(block, chunks))
        if totals is not None:
            self._combine_earlier(carry, totals, row, chunk, chunks, group, thread)
        with device.loop(turns) as turn:
            index = chunk * i32(turns) + turn
            place = device.let((index * i32(group) + thread) * i32(self._lanes))
            inside = device.let(place < i32(self.size))
            values = device.registers(self._lanes, self._dtype)
            device.store(own, self.identity, [0])

            def read() -> None:
                for lane, value in enumerate(self._vector(row, place)):
                    device.store(values, value, [lane])
                    device.store(own, self.combine(own[i32(0)], value), [0])

            device.only_if(inside, read)
            before, every = ThreadGroup(group, thread).scan(own, self.combine, self.identity)
            start = device.let(self.combine(carry[i32(0)], before))
            device.only_if(inside, lambda: self._store(row, place, start, values))
            device.store(carry, self.combine(carry[i32(0)], every), [0])

    def _combine_earlier(
        self, carry: Buffer, totals: Buffer, row: Expr, chunk: Expr, chunks: int, group: int,
        thread: Expr,
    ) -> None:  # fmt: skip
        """Leaves the combination of the chunks of a row before this one in every thread."""
        with device.loop(-(-chunks // group)) as turn:
            before = device.let(turn * i32(group) + thread)

            def add() -> None:
                whole = totals[row * i32(chunks) + before]
                device.store(carry, self.combine(carry[i32(0)], whole), [0])

            device.only_if(before < chunk, add)
        ThreadGroup(group, thread).combine([carry], lambda a, b: [self.combine(a[0], b[0])])

    def _at(self, row: Expr, place: Expr) -> Expr:
        """Offset of the vector at a place of a row, counted in the order of the scan."""
        if self.reverse:
            place = i32(self.size - self._lanes) - place
        return device.let(row * i32(self.size) + place)

    def _order(self) -> list[int]:
        """The elements of a vector in the order of the scan."""
        order = list(range(self._lanes))
        return order[::-1] if self.reverse else order

    def _vector(self, row: Expr, place: Expr) -> list[Expr]:
        """The elements of a vector, in the order of the scan."""
        held = device.registers(self._lanes, str(self.source.dtype))
        first = self._at(row, place)
        with device.vector(self._lanes) as lane:
            device.store(held, flat(self.source, first + lane), [lane])
        return [tirx.Cast(self._dtype, held[i32(lane)]) for lane in self._order()]

    def _store(self, row: Expr, place: Expr, start: Expr, values: Buffer) -> None:
        held = device.registers(self._lanes, str(self.target.dtype))
        total = device.fill(device.registers(1, self._dtype), start)
        for number, lane in enumerate(self._order()):
            self._advance(
                total, values[i32(number)], lambda v, lane=lane: self._keep(held, lane, v)
            )
        first = self._at(row, place)
        outer = [i32(0)] * (len(self.target.shape) - 1)
        with device.vector(self._lanes) as lane:
            device.store(self.target, held[lane], [*outer, first + lane])

    def _keep(self, held: Buffer, lane: int, value: Expr) -> None:
        device.store(held, tirx.Cast(str(self.target.dtype), value), [lane])

    def _advance(self, total: Buffer, value: Expr, keep: Callable[[Expr], None]) -> None:
        """Adds an element to what came before, and keeps the sum with or without it."""
        if self.exclusive:
            keep(total[i32(0)])
        device.store(total, self.combine(total[i32(0)], value), [0])
        if not self.exclusive:
            keep(total[i32(0)])

    def outer_axis(self, outer: int, inner: int) -> None:
        """Scans along an outer axis: neighbouring threads take neighbouring elements."""
        device.each_thread(outer * inner, _THREADS, lambda at: self._sequence(at, inner))

    def _sequence(self, sequence: Expr, inner: int) -> None:
        total = device.fill(device.registers(1, self._dtype), self.identity)
        first = device.let(div(sequence, inner) * i32(self.size * inner) + mod(sequence, inner))
        zeros = [i32(0)] * (len(self.target.shape) - 1)
        with device.loop(self.size) as step:
            step = i32(self.size - 1) - step if self.reverse else step
            at = device.let(first + step * i32(inner))

            def keep(value: Expr) -> None:
                value = tirx.Cast(str(self.target.dtype), value)
                device.store(self.target, value, [*zeros, at])

            self._advance(total, tirx.Cast(self._dtype, flat(self.source, at)), keep)
