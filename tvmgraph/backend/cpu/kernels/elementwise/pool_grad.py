"""The gradient of maximum pooling: every window adds its cotangent where its maximum lies.

Blocking: planes are divided among the workers. The lanes of a vector are neighbouring windows of a
row. What tap ``j`` of such windows reads lies ``stride`` elements apart, so a plane is first copied
with every row taken apart into ``stride`` phases, in which the taps of neighbouring windows are
neighbours; the gradient is summed in the same layout and put together at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func
from tvmgraph.machine.processor import CpuModel

#: Below this many elements waking the workers costs more than they save.
_MIN_PARALLEL_ELEMENTS = 16 * 1024

_any: Any = tirx


@dataclass(frozen=True)
class _Pool:
    """The geometry of a pooling; tuples have one entry per spatial axis.

    Attributes:
        spatial: Sizes of the input.
        out: Numbers of windows.
        kernel: Sizes of a window.
        stride: Steps of the window.
        before: Padding before the input.
        dilation: Distances between taps.
    """

    spatial: tuple[int, ...]
    out: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    dilation: tuple[int, ...]

    def padded(self, axis: int) -> int:
        """Extent of an axis with all its padding."""
        last = (self.out[axis] - 1) * self.stride[axis]
        last += self.dilation[axis] * (self.kernel[axis] - 1)
        return max(self.spatial[axis] + self.before[axis], last + 1)

    @property
    def phases(self) -> int:
        """Into how many phases a row is taken apart."""
        return self.stride[-1]

    @property
    def length(self) -> int:
        """Elements of a phase."""
        return -(-self.padded(-1) // self.phases)

    @property
    def layout(self) -> tuple[int, ...]:
        """Shape of a plane taken apart."""
        return (*(self.padded(a) for a in range(len(self.out) - 1)), self.phases, self.length)

    def phase_of(self, column: int) -> tuple[int, int]:
        """Phase and position of a column of the input."""
        position, phase = divmod(column + self.before[-1], self.phases)
        return phase, position

    @property
    def whole(self) -> range:
        """Positions at which every phase lies inside the input."""
        first = -(-self.before[-1] // self.phases)
        return range(first, max(first, (self.spatial[-1] + self.before[-1]) // self.phases))

    @property
    def edges(self) -> list[int]:
        """Columns of the input outside of :attr:`whole`."""
        return [c for c in range(self.spatial[-1]) if self.phase_of(c)[1] not in self.whole]


def emit_max_pool_grad(func: Func, window: Sequence[Sequence[int]], model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Its parameters are the cotangent, the pooling's input and the result.
        window: Kernel, stride, padding before and dilation, one number per spatial axis.
        model: The processor.
    """
    grad, data, result = func.params
    shape, out = static_shape(data), static_shape(grad)
    assert shape is not None
    assert out is not None
    pool = _Pool(shape[2:], out[2:], *(tuple(int(v) for v in row) for row in window))
    dtype = str(data.dtype)
    with emit.parallel(shape[0] * shape[1], product(shape) >= _MIN_PARALLEL_ELEMENTS) as plane:
        lead = emit.unfuse(plane, shape[:2])
        values, sums = emit.workspace(pool.layout, dtype), emit.workspace(pool.layout, dtype)
        _fill(values, tirx.const(float("-inf"), dtype), model)
        _fill(sums, emit.zero(dtype), model)
        lanes = model.lanes_of(dtype_bytes(dtype))
        _take_apart(pool, data, lead, values, lanes)
        with _nest(pool.out[:-1]) as rows:
            for start, count, width in _blocks(pool.out[-1], lanes):
                with emit.serial(count) as block:
                    column = block * emit.i64(width) + emit.i64(start)
                    cotangent = grad[(*lead, *rows, emit.ramp(column, width))]
                    _Windows(pool, rows, column, width).send(cotangent, values, sums)
        _put_together(pool, sums, result, lead, lanes)


@contextmanager
def _nest(extents: Sequence[int]) -> Iterator[list[Expr]]:
    """Nested serial loops; entering them gives their variables."""
    with ExitStack() as loops:
        yield [loops.enter_context(emit.serial(n)) for n in extents]


def _blocks(extent: int, lanes: int) -> list[tuple[int, int, int]]:
    """Cuts a range into vectors: start, number and lanes of equal ones, the longest first."""
    found, start = [], 0
    while start < extent:
        while lanes > extent - start:
            lanes //= 2
        count = (extent - start) // lanes
        found.append((start, count, lanes))
        start += count * lanes
    return found


def _fill(buffer: Buffer, value: Expr, model: CpuModel) -> None:
    shape = static_shape(buffer)
    assert shape
    *outer, length = shape
    with _nest(outer) as rows:
        for start, count, lanes in _blocks(length, model.lanes_of(dtype_bytes(str(buffer.dtype)))):
            with emit.serial(count) as block:
                place = emit.ramp(block * emit.i64(lanes) + emit.i64(start), lanes)
                emit.store(buffer, emit.broadcast(value, lanes), [*rows, place])


def _take_apart(pool: _Pool, data: Buffer, lead: list[Expr], values: Buffer, lanes: int) -> None:
    """Copies a plane phase by phase. Elements of minus infinity are raised above the padding's."""

    def raised(value: Expr, lanes: int) -> Expr:
        lowest = emit.broadcast(tirx.min_value(str(data.dtype)), lanes)
        return _any.Select(value < lowest, lowest, value)

    with _nest(pool.spatial[:-1]) as rows:
        moved = [r + emit.i64(lo) for r, lo in zip(rows, pool.before)]
        for position, width in _positions(pool, lanes):
            column = position * emit.i64(pool.phases) - emit.i64(pool.before[-1])
            read = [
                data[(*lead, *rows, emit.ramp(column + emit.i64(i * width), width))]
                for i in range(pool.phases)
            ]
            for phase in range(pool.phases):
                value = _pick(read, range(phase, width * pool.phases, pool.phases))
                place = [*moved, phase, emit.ramp(position, width)]
                emit.store(values, raised(value, width), place)
        for column in pool.edges:
            value = data[(*lead, *rows, emit.i64(column))]
            emit.store(values, raised(value, 1), [*moved, *pool.phase_of(column)])


def _put_together(pool: _Pool, sums: Buffer, result: Buffer, lead: list[Expr], lanes: int) -> None:
    """Copies the sums of the elements that are no padding to the result."""
    with _nest(pool.spatial[:-1]) as rows:
        moved = [r + emit.i64(lo) for r, lo in zip(rows, pool.before)]
        for position, width in _positions(pool, lanes):
            column = position * emit.i64(pool.phases) - emit.i64(pool.before[-1])
            read = [
                sums[(*moved, emit.i64(phase), emit.ramp(position, width))]
                for phase in range(pool.phases)
            ]
            for i in range(pool.phases):
                columns = range(i * width, (i + 1) * width)
                order = [c % pool.phases * width + c // pool.phases for c in columns]
                place = emit.ramp(column + emit.i64(i * width), width)
                emit.store(result, _pick(read, order), [*lead, *rows, place])
        for column in pool.edges:
            phase, position = pool.phase_of(column)
            value = sums[(*moved, emit.i64(phase), emit.i64(position))]
            emit.store(result, value, [*lead, *rows, emit.i64(column)])


def _positions(pool: _Pool, lanes: int) -> Iterator[tuple[Expr, int]]:
    """Writes loops over the positions of :attr:`_Pool.whole`; gives the first and the lanes."""
    for start, count, width in _blocks(len(pool.whole), lanes):
        with emit.serial(count) as block:
            yield block * emit.i64(width) + emit.i64(pool.whole.start + start), width


def _pick(vectors: Sequence[Expr], order: Sequence[int]) -> Expr:
    """The lanes ``order`` of the concatenated ``vectors``, each of ``len(order)`` lanes."""
    if len(order) == 1:
        return vectors[order[0]]
    return vectors[0] if len(vectors) == 1 else emit.shuffle(vectors, order)


@dataclass(frozen=True)
class _Windows:
    """Neighbouring windows of a row, one per lane."""

    pool: _Pool
    rows: list[Expr]
    column: Expr
    lanes: int

    def send(self, cotangent: Expr, values: Buffer, sums: Buffer) -> None:
        """Adds the cotangents where the first maxima lie; NaN exceeds everything."""
        taps = list(itertools.product(*map(range, self.pool.kernel)))
        dtype = str(values.dtype)
        best, winner = emit.stack(self.lanes, dtype), emit.stack(self.lanes, "int32")
        whole = [emit.ramp(0, self.lanes)]
        for number, tap in enumerate(taps):
            value = values[self._place(tap)]
            wins = self._exceeds(value, best[tuple(whole)]) if number else None
            this = emit.broadcast(tirx.const(number, "int32"), self.lanes)
            kept = [value, this]
            if wins is not None:  # the winner first: it reads the best so far
                kept = [
                    _any.Select(wins, value, best[tuple(whole)]),
                    _any.Select(wins, this, winner[tuple(whole)]),
                ]
            emit.store(winner, kept[1], whole)
            emit.store(best, kept[0], whole)
        none = emit.broadcast(emit.zero(dtype), self.lanes)
        for number, tap in enumerate(taps):
            place = self._place(tap)
            this = emit.broadcast(tirx.const(number, "int32"), self.lanes)
            share = _any.Select(winner[tuple(whole)] == this, cotangent, none)
            emit.store(sums, sums[place] + share, place)

    def _exceeds(self, value: Expr, best: Expr) -> Expr:
        spoiled = tirx.all(_any.isnan(value), tirx.Not(_any.isnan(best)))
        return tirx.any(value > best, spoiled)

    def _place(self, tap: Sequence[int]) -> tuple[Expr, ...]:
        """Where a tap of the windows lies in a plane taken apart."""
        pool = self.pool
        offsets = [t * d for t, d in zip(tap, pool.dilation)]
        rows = [r * emit.i64(s) + emit.i64(o) for r, s, o in zip(self.rows, pool.stride, offsets)]
        position, phase = divmod(offsets[-1], pool.phases)
        column = emit.ramp(self.column + emit.i64(position), self.lanes)
        return (*rows, emit.i64(phase), column)
