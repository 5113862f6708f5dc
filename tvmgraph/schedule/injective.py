"""Elementwise, broadcast and layout kernels: one output element from any input elements.

Blocking: neighbouring loops over which all buffers run on are merged, the innermost merged loop is
cut into vectors, and an outer loop (or chunks of the only loop) is divided among the workers when
the kernel is large enough to pay for waking them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from tvmgraph.schedule import emit
from tvmgraph.schedule.access import accesses, group_extent, groups
from tvmgraph.schedule.point import Bound, Point, bind_group, vectors
from tvmgraph.schedule.program import Axis, Stage, product
from tvmgraph.schedule.target import CpuModel

Expr = ir.Expr

#: Below this many elements waking the workers costs more than they save.
MIN_PARALLEL_ELEMENTS = 32 * 1024
#: Pieces per worker, so that one slow worker does not hold up a whole share.
_PIECES_PER_THREAD = 4
#: Elements of one piece when a single long loop is divided: a few pages of each buffer.
_CHUNK = 4096


@dataclass(frozen=True)
class _Loop:
    """A group of merged axes, and how its index gives back theirs."""

    axes: tuple[Axis, ...]
    extent: int

    def bind(self, value: Expr) -> Bound:
        return bind_group(self.axes, value)


def emit_injective(stage: Stage, model: CpuModel) -> None:
    """Writes the loops of an elementwise stage."""
    found = accesses(stage, stage.axes)
    merged = groups(stage, stage.axes, found)
    loops = [_Loop(tuple(group), group_extent(group)) for group in merged]
    if not loops:
        point = Point(stage, 1)
        emit.store(stage.buffer, point.values({}, emit.i64(0))[0], stage.indices)
        return
    widest = max(item.itemsize for item in found)
    _Writer(stage, model, loops, model.lanes_of(max(widest, 2))).write()


@dataclass(frozen=True)
class _Writer:
    stage: Stage
    model: CpuModel
    loops: Sequence[_Loop]
    lanes: int

    def write(self) -> None:
        outer, inner = self.loops[:-1], self.loops[-1]
        points = product(loop.extent for loop in self.loops)
        wanted = self.model.threads * _PIECES_PER_THREAD
        if points < MIN_PARALLEL_ELEMENTS or self.model.threads == 1:
            self._rows(outer, 0, {})
        elif product(loop.extent for loop in outer) >= wanted:
            self._parallel_rows(outer, wanted)
        else:
            self._parallel_chunks(outer, inner)

    def _parallel_rows(self, outer: Sequence[_Loop], wanted: int) -> None:
        """Divides the shortest prefix of the outer loops that has enough iterations."""
        count = next(
            n for n in range(1, len(outer) + 1) if product(l.extent for l in outer[:n]) >= wanted
        )
        extents = [loop.extent for loop in outer[:count]]
        with emit.parallel(product(extents)) as fused:
            bound: Bound = {}
            for loop, value in zip(outer[:count], emit.unfuse(fused, extents)):
                bound |= loop.bind(value)
            self._rows(outer[count:], 0, bound)

    def _parallel_chunks(self, outer: Sequence[_Loop], inner: _Loop) -> None:
        """Divides the innermost loop into chunks; what is left over runs after them."""
        chunk = min(_CHUNK, max(self.lanes, inner.extent // self.model.threads))
        chunk -= chunk % self.lanes
        full = inner.extent // chunk
        extents = [*(loop.extent for loop in outer), full]
        with emit.parallel(product(extents)) as fused:
            values = emit.unfuse(fused, extents)
            bound: Bound = {}
            for loop, value in zip(outer, values):
                bound |= loop.bind(value)
            self._vectors(bound, values[-1] * chunk, chunk)
        if inner.extent > full * chunk:
            self._rows(outer, full * chunk, {})

    def _rows(self, outer: Sequence[_Loop], start: int, bound: Bound) -> None:
        """Serial outer loops around the innermost loop from ``start`` on."""
        if outer:
            with emit.serial(outer[0].extent) as value:
                self._rows(outer[1:], start, bound | outer[0].bind(value))
        else:
            self._vectors(bound, emit.i64(start), self.loops[-1].extent - start)

    def _vectors(self, bound: Bound, start: Expr, length: int) -> None:
        vectors(start, length, self.lanes, lambda at, lanes, _: self._vector(bound, at, lanes))

    def _vector(self, bound: Bound, start: Expr, lanes: int) -> None:
        point = Point(self.stage, lanes)
        with emit.lanes_loop(lanes) as lane:
            mapping = bound | self.loops[-1].bind(start + lane)
            emit.store(
                self.stage.buffer, point.values(mapping, lane)[0], point.indices(mapping)
            )
