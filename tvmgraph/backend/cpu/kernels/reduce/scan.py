"""Running sums, products and extremes along an axis.

Along the last axis a vector is scanned in registers in log2(lanes) steps: blocks of 1, 2, 4 ...
scanned lanes are joined in pairs, the second one going on from the last lane of the first. What
came before the vector is carried from vector to vector. Along any other axis the lanes of a vector
are scans of their own, and a worker carries a stretch of neighbouring positions at once.

Rows, or stretches, are divided among the workers. A single long row is cut into one chunk for each:
first they combine their chunks, then they scan them, starting from what those before came to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cpu.kernels.elementwise.nontemporal import (
    are_nontemporal,
    nontemporal_stores,
    store_nontemporal,
)
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.items import Range, Split, write_items
from tvmgraph.backend.loop_ir.point import Bound, fill, vectors
from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.reducer import accumulator_dtype, horizontal
from tvmgraph.backend.loop_ir.scan import Combine, running
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, dtype_of
from tvmgraph.machine.processor import CpuModel

#: Below this many elements a kernel stays on the calling thread.
_MIN_PARALLEL = 32 * 1024
#: Bytes that are carried at once along an outer axis: a part of the nearest cache.
_CARRIED = 8192


def emit_scan(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes a tensor and its scan, of one type.
        settings: A name of :func:`~tvmgraph.backend.loop_ir.scan.running`, the axis, 1 if an
            element itself is left out, and 1 to scan from the end.
        model: The processor.
    """
    name, *numbers = str(settings).split()
    axis, exclusive, reverse = map(int, numbers)
    source, target = func.params
    shape = list(static_shape(source) or ())
    wide = accumulator_dtype(str(source.dtype))
    lanes = model.lanes_of(max(4, dtype_bytes(wide)))
    along = axis == len(shape) - 1
    nontemporal = along and shape[-1] % lanes == 0 and are_nontemporal([target], model)
    combine, identity = running(name, str(source.dtype))
    if name == "sum" and not exclusive:  # it starts with the first element, whatever its sign
        identity = tirx.const(-0.0, wide)
    scan = _Scan(
        source, target, axis, shape, combine, identity, bool(exclusive), bool(reverse), lanes,
        nontemporal,
    )  # fmt: skip
    threads = model.threads if product(shape) >= _MIN_PARALLEL else 1
    with nontemporal_stores([target] if nontemporal else [], lanes):
        if not along:
            scan.outer_axis(threads)
        elif product(shape[:-1]) < threads:
            scan.in_chunks(threads)
        else:
            scan.rows(threads)


@dataclass(frozen=True)
class _Scan:
    source: Buffer
    target: Buffer
    axis: int
    shape: Sequence[int]
    combine: Combine
    identity: Expr
    exclusive: bool
    reverse: bool
    lanes: int
    nontemporal: bool

    @property
    def _dtype(self) -> str:
        return dtype_of(self.identity)

    def rows(self, threads: int) -> None:
        """Whole rows, one after the other."""
        count = product(self.shape[:-1])
        with emit.parallel(count, threads > 1 and count > 1) as row:
            carry = self._start()
            self._row(emit.unfuse(row, self.shape[:-1]), emit.i64(0), self.shape[-1], carry)

    def in_chunks(self, threads: int) -> None:
        """Rows one after the other, each by all workers."""
        size = self.shape[-1]
        length = -(-size // (threads * self.lanes)) * self.lanes
        chunks = -(-size // length)
        totals = emit.workspace([chunks], self._dtype)
        with emit.serial(product(self.shape[:-1])) as position:
            row = emit.unfuse(position, self.shape[:-1])
            with emit.parallel(chunks) as chunk:
                place = chunks - 1 - chunk if self.reverse else chunk
                split = (place, chunks, length, size)
                emit.peel_last(split, lambda n: self._total(row, place * length, n, totals, chunk))
            with emit.parallel(chunks) as chunk:
                carry = self._start()
                with emit.serial(chunk) as before:
                    whole = emit.broadcast(totals[before], self.lanes)
                    emit.store(carry, self.combine(carry[self._every], whole), [self._every])
                place = chunks - 1 - chunk if self.reverse else chunk
                split = (place, chunks, length, size)
                emit.peel_last(split, lambda n: self._row(row, place * length, n, carry))

    def outer_axis(self, threads: int) -> None:
        """Scans along an axis that is not the last: stretches of neighbouring positions."""
        *outer, last = [extent for i, extent in enumerate(self.shape) if i != self.axis]
        width = min(last, _CARRIED // dtype_bytes(self._dtype))
        while width > self.lanes and product(outer) * -(-last // width) < threads:
            width = -(-width // (2 * self.lanes)) * self.lanes
        loops = [*(Split(extent, 1) for extent in outer), Split(last, width)]

        def item(_bound: Bound, ranges: list[Range]) -> None:
            *others, (first, count) = ranges
            self._stretch([at for at, _ in others], first, count)

        write_items(loops, threads > 1, item)

    def _start(self) -> Buffer:
        carry = emit.stack(self.lanes, self._dtype)
        emit.store(carry, emit.broadcast(self.identity, self.lanes), [self._every])
        return carry

    @property
    def _every(self) -> Expr:
        return emit.ramp(0, self.lanes)

    def _load(self, indices: Sequence[Expr], lanes: int) -> Expr:
        value = self.source[tuple(indices)]
        if dtype_of(value).partition("x")[0] == self._dtype:
            return value
        return tirx.Cast(self._dtype if lanes == 1 else f"{self._dtype}x{lanes}", value)

    def _store(self, value: Expr, indices: Sequence[Expr], lanes: int) -> None:
        dtype = str(self.target.dtype)
        if dtype != self._dtype:
            value = tirx.Cast(dtype if lanes == 1 else f"{dtype}x{lanes}", value)
        if self.nontemporal:
            *outer, last = indices
            assert isinstance(last, tirx.Ramp)
            store_nontemporal(self.target, value, [*outer, last.base], lanes)
        else:
            emit.store(self.target, value, indices)

    def _at(self, first: Expr, done: Expr, count: int, length: int) -> Expr:
        """Where ``count`` elements start when ``done`` of a chunk were scanned."""
        return first + (length - count - done) if self.reverse else first + done

    def _row(self, row: Sequence[Expr], first: Expr, length: int, carry: Buffer) -> None:
        """Scans a chunk of a row, from and into ``carry``."""
        full, rest = divmod(length, self.lanes)
        with emit.serial(full) as block:
            start = self._at(first, block * self.lanes, self.lanes, length)
            self._vector([*row, emit.ramp(start, self.lanes)], carry)
        if not rest:
            return
        with emit.serial(rest) as position:
            place = [*row, self._at(first, position + full * self.lanes, 1, length)]
            before = emit.stack(1, self._dtype)
            emit.store(before, carry[0], [0])
            emit.store(carry, self.combine(carry[0], self._load(place, 1)), [0])
            self._store(before[0] if self.exclusive else carry[0], place, 1)

    def _vector(self, place: Sequence[Expr], carry: Buffer) -> None:
        lanes = self.lanes
        scanned = emit.stack(lanes, self._dtype)
        emit.store(scanned, self._load(place, lanes), [self._every])
        shift = 1
        while shift < lanes:
            before = self._before(scanned[self._every], shift)
            emit.store(scanned, self.combine(scanned[self._every], before), [self._every])
            shift *= 2
        result = emit.stack(lanes, self._dtype)
        emit.store(result, self.combine(carry[self._every], scanned[self._every]), [self._every])
        if self.exclusive:
            pair = [carry[self._every], result[self._every]]
            order = [lanes + at if 0 <= at < lanes else 0 for at in self._neighbours()]
            emit.store(result, emit.shuffle(pair, order), [self._every])
        last = [0 if self.reverse else lanes - 1] * lanes
        whole = emit.shuffle([scanned[self._every]], last)
        emit.store(carry, self.combine(carry[self._every], whole), [self._every])
        self._store(result[self._every], place, lanes)

    def _neighbours(self) -> list[int]:
        """The lane that comes before each in the order of the scan."""
        return [lane + (1 if self.reverse else -1) for lane in range(self.lanes)]

    def _before(self, scanned: Expr, size: int) -> Expr:
        """What the blocks of ``size`` lanes came to that end just before those of odd number."""
        lanes = range(self.lanes)
        ends = [lane // size * size - 1 if lane & size else None for lane in lanes]
        if self.reverse:
            ends = [None if at is None else self.lanes - 1 - at for at in reversed(ends)]
        order = [0 if at is None else self.lanes + at for at in ends]
        return emit.shuffle([emit.broadcast(self.identity, self.lanes), scanned], order)

    def _total(
        self, row: Sequence[Expr], first: Expr, length: int, totals: Buffer, chunk: Expr
    ) -> None:
        """Combines the elements of a chunk, and puts them where the scan of later chunks looks."""
        sums = self._start()

        def vector(at: Expr, lanes: int, _slot: int) -> None:
            some = emit.ramp(0, lanes)
            element = self._load([*row, emit.ramp(at, lanes)], lanes)
            emit.store(sums, self.combine(sums[some], element), [some])

        vectors(first, length, self.lanes, vector)
        total = horizontal(self.combine, sums, self.lanes, self.lanes, self._dtype)
        emit.store(totals, total, [chunk])

    def _stretch(self, others: Sequence[Expr], start: Expr, width: int) -> None:
        carry = emit.stack(width, self._dtype)
        fill(carry, self.identity, emit.i64(0), width, self.lanes)
        size = self.shape[self.axis]
        with emit.serial(size) as step:
            at = self._at(emit.i64(0), step, 1, size)

            def vector(offset: Expr, lanes: int, _slot: int) -> None:
                place = [*others[: self.axis], at, *others[self.axis :]]
                place.append(emit.ramp(start + offset, lanes))
                held = emit.ramp(offset, lanes)
                fresh = emit.stack(lanes, self._dtype)
                value = self.combine(carry[held], self._load(place, lanes))
                emit.store(fresh, value, [emit.ramp(0, lanes)])
                shown = carry[held] if self.exclusive else fresh[emit.ramp(0, lanes)]
                self._store(shown, place, lanes)
                emit.store(carry, fresh[emit.ramp(0, lanes)], [held])

            vectors(emit.i64(0), width, self.lanes, vector)
