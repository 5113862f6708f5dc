"""Elementwise, broadcast and layout kernels: one output element from any input elements.

Blocking: neighbouring loops over which all buffers run on are merged, the innermost merged loop is
cut into vectors, and an outer loop (or chunks of the only loop) is divided among the workers when
the kernel is large enough to pay for waking them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cpu.intrinsics import formula_count
from tvmgraph.backend.cpu.kernels.elementwise.nontemporal import (
    is_nontemporal,
    nontemporal_stores,
    write_vector,
)
from tvmgraph.backend.cpu.kernels.elementwise.strided import (
    spread_loads,
    strided_loads,
    with_shuffles,
    with_spreads,
)
from tvmgraph.backend.cpu.kernels.elementwise.transposed import emit_transposed, find_transposed
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import accesses, group_extent, groups
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.fuse import fuse_points
from tvmgraph.backend.loop_ir.guards import breakpoints, resolve
from tvmgraph.backend.loop_ir.loops import along_addresses
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, Point, bind_group, vectors
from tvmgraph.backend.loop_ir.program import (
    Axis,
    Stage,
    loads_of,
    node_count,
    product,
    static_shape,
    substitute,
)
from tvmgraph.backend.loop_ir.types import Expr, Load, Var
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Below this many elements waking the workers costs more than they save.
MIN_PARALLEL_ELEMENTS = 32 * 1024
#: Chunks per worker, so that one slow worker does not hold up a whole share.
_CHUNKS_PER_THREAD = 4
#: Elements of one chunk when a single long loop is divided: a few pages of each buffer.
_CHUNK = 4096
#: Rows at least as long are asked for ahead if their places are scattered.
_MIN_ROW_BYTES = 256
#: Vectors of float32 that are computed at a time where elementary functions are: the terms of one
#: wait for each other, and constants are loaded once for all. With AVX2 sigmoid takes 0.83 of the
#: time of one at a time, tanh 0.80, cos 0.60; with AVX-512 0.89, 0.91 and mish 0.80. Two at a time
#: are up to 0.05 better for the longest functions with AVX2, and worse for all others.
_TOGETHER = 4
#: Functions beyond which registers do not hold what several vectors need.
_MAX_FORMULAS = 6
#: Nodes of a formula from which on it is written once: the incomplete gamma function takes LLVM
#: 4 s, and as long again for the shorter vector at the end of a row.
_LONG_FORMULA = 400
#: Segments of the innermost loop that get code of their own.
_MAX_SEGMENTS = 8


@dataclass(frozen=True)
class _Loop:
    """A group of merged axes, and how its index gives back theirs."""

    axes: tuple[Axis, ...]
    extent: int
    #: Stands for the loop's own index among the values of axes.
    position: Var

    def bind(self, value: Expr) -> Bound:
        return bind_group(self.axes, value) | {self.position: value}

    def bind_next(self, bound: Bound) -> Bound:
        """The axes one iteration further, or in the last iteration once more."""
        return self.bind(tirx.min(bound[self.position] + 1, emit.i64(self.extent - 1)))


def emit_injective(stage: Stage, model: CpuModel) -> None:
    """Writes the loops of an elementwise stage.

    Args:
        stage: An elementwise stage of any number of results over the same loops.
        model: The processor: lanes, threads, sizes of the caches.
    """
    stage = along_addresses(stage)
    found = accesses(stage, stage.axes)
    merged = groups(stage, stage.axes, found)
    loops = [
        _Loop(tuple(group), group_extent(group), tirx.Var("position", "int64")) for group in merged
    ]
    if not loops:
        point = Point(stage, 1)
        for buffer, value in zip(stage.buffers, point.values({}, emit.i64(0))):
            emit.store(buffer, value, stage.indices)
        return
    transposed = find_transposed(stage, merged, model) if len(stage.buffers) == 1 else None
    if transposed is not None:
        emit_transposed(stage, transposed, model)
        return
    lanes = model.lanes_of(max(2, *(item.itemsize for item in found)))
    nontemporal = is_nontemporal(stage, loops[-1].extent, lanes, model)
    with nontemporal_stores(stage.buffers if nontemporal else (), lanes):
        segments = _segments(stage, loops[-1])
        _Writer(stage, model, loops, lanes, segments, nontemporal).write()


@dataclass(frozen=True)
class _Segment:
    """A range of the innermost loop within which the stage has no conditions on its index."""

    start: int
    length: int
    stage: Stage


def _segments(stage: Stage, inner: _Loop) -> list[_Segment]:
    """Cuts the innermost loop where a condition on its index changes (padding, concatenation).

    A condition that differs from lane to lane would make TVM give up vectors altogether.
    """
    cuts = breakpoints(stage, inner.axes[0]) if len(inner.axes) == 1 else []
    if len(cuts) >= _MAX_SEGMENTS:
        cuts = []
    bounds = [0, *cuts, inner.extent]
    return [
        _Segment(start, end - start, resolve(stage, inner.axes[0], start, end) if cuts else stage)
        for start, end in itertools.pairwise(bounds)
    ]


@dataclass(frozen=True)
class _Writer:
    stage: Stage
    model: CpuModel
    loops: Sequence[_Loop]
    lanes: int
    segments: Sequence[_Segment]
    nontemporal: bool

    def write(self) -> None:
        outer = self.loops[:-1]
        points = product(loop.extent for loop in self.loops)
        wanted = self.model.threads * _CHUNKS_PER_THREAD
        enough = points >= MIN_PARALLEL_ELEMENTS
        if self.model.threads == 1 or not choose("elements parallel", enough, (True, False)):
            self._rows(outer, self.segments, {})
        elif product(loop.extent for loop in outer) >= wanted:
            self._parallel_rows(outer, wanted)
        else:
            for segment in self.segments:
                self._parallel_chunks(outer, segment)

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
            self._rows(outer[count:], self.segments, bound)

    def _parallel_chunks(self, outer: Sequence[_Loop], segment: _Segment) -> None:
        """Divides the innermost loop into chunks; what is left over runs after them."""
        chunk = min(_CHUNK, max(self.lanes, segment.length // self.model.threads))
        chunk -= chunk % self.lanes
        full = segment.length // chunk
        extents = [*(loop.extent for loop in outer), full]
        if full:
            with emit.parallel(product(extents)) as fused:
                *values, position = emit.unfuse(fused, extents)
                bound: Bound = {}
                for loop, value in zip(outer, values):
                    bound |= loop.bind(value)
                self._vectors(bound, position * chunk + segment.start, chunk, segment.stage)
        rest = segment.length - full * chunk
        if rest:
            left = _Segment(segment.start + full * chunk, rest, segment.stage)
            self._rows(outer, [left], {})

    def _rows(self, outer: Sequence[_Loop], segments: Sequence[_Segment], bound: Bound) -> None:
        """Serial outer loops around segments of the innermost loop."""
        if outer:
            with emit.serial(outer[0].extent) as value:
                self._rows(outer[1:], segments, bound | outer[0].bind(value))
            return
        for segment in segments:
            self._vectors(bound, emit.i64(segment.start), segment.length, segment.stage)

    def _vectors(self, bound: Bound, start: Expr, length: int, stage: Stage) -> None:
        aligned = self.nontemporal and all(s.start % self.lanes == 0 for s in self.segments)
        inner = self.loops[-1].axes
        strided = strided_loads(stage, inner[0]) if len(inner) == 1 else []
        spread = spread_loads(stage, inner[0]) if len(inner) == 1 else []
        scattered = self._scattered()

        def vector(at: Expr, lanes: int, _part: int) -> None:
            body = stage
            for load in scattered:
                further = bound | self.loops[-1].bind(at) | self.loops[-2].bind_next(bound)
                emit.prefetch(load.source, [substitute(index, further) for index in load.indices])
            if strided and lanes > 1:
                body = with_shuffles(stage, strided, inner[0], bound, at, lanes)
            if spread and lanes > 1:
                body = with_spreads(body, spread, inner[0], bound, at, lanes)
            point = Point(body, lanes)
            write_vector(
                stage.buffers,
                lanes,
                lambda lane: point.values(bound | self.loops[-1].bind(at + lane), lane),
                lambda lane: point.indices(bound | self.loops[-1].bind(at + lane)),
                nontemporal=aligned and lanes == self.lanes,
            )

        if length > self.lanes and length % self.lanes and self._is_written_once(stage):
            # the last vector repeats elements of the one before it
            with emit.serial(-(-length // self.lanes)) as number:
                last = emit.i64(length - self.lanes)
                vector(start + tirx.min(number * self.lanes, last), self.lanes, 0)
            return
        alone = self.nontemporal or strided or spread or scattered
        wide = self.lanes if alone else self._lanes_together(stage)
        done = length - length % wide
        vectors(start, done, wide, vector)
        vectors(start + done, length - done, self.lanes, vector)

    def _is_written_once(self, stage: Stage) -> bool:
        """Whether a formula is long, and no element that it reads may be overwritten by then.

        TVM lets two temporaries of a kernel share memory where one is made of the other.
        """
        if self.nontemporal or node_count(*stage.exprs) < _LONG_FORMULA:
            return False
        reads = [load.source for load in stage.loads]
        shared = any(map(emit.is_workspace, reads)) and any(map(emit.is_workspace, stage.buffers))
        return not shared and not any(r.same_as(b) for r in reads for b in stage.buffers)

    def _lanes_together(self, stage: Stage) -> int:
        """Lanes of the vectors that are computed at a time."""
        wide = _TOGETHER * self.model.lanes
        if self.lanes < self.model.lanes or self.loops[-1].extent < wide:
            return self.lanes
        return wide if 0 < formula_count(stage.exprs) <= _MAX_FORMULAS else self.lanes

    def _scattered(self) -> list[Load]:
        """Reads of whole rows from places that are read from memory themselves, as in a lookup.

        No processor foresees where the next row is, so it is asked for a row ahead.
        """
        if len(self.loops) < 2 or self.loops[-1].extent * 4 < _MIN_ROW_BYTES:
            return []
        (inner,) = self.loops[-1].axes[-1:]
        found: list[Load] = []
        for load in self.stage.loads:
            if not load.indices:
                continue  # a number
            large = product(static_shape(load.source) or ()) * 4 > self.model.l2_bytes
            along = large and load.indices[-1].same_as(inner.var)
            if along and loads_of(*load.indices[:-1]):
                found.append(load)
        return found


def _match_fused(nest: Nest, _model: CpuModel) -> Stage | Refused:
    fused = None if nest.loops is None else fuse_points(nest.loops)
    return Refused("no several elementwise stages over the same loops") if fused is None else fused


def _match(nest: Nest, _model: CpuModel) -> Stage | Refused:
    if nest.stage is None or nest.stage.is_reduction:
        return Refused("no single elementwise stage")
    return nest.stage


def _emit(stage: Stage, _plan: None, writer: Writer[CpuModel]) -> None:
    emit_injective(stage, writer.model)


_KNOBS = ("elements parallel", "stores around caches")
FUSED = Kernel(
    "elementwise_fused", _match_fused, _emit, "several elementwise results in one pass",
    knobs=_KNOBS,
)  # fmt: skip
KERNEL = Kernel(
    "elementwise", _match, _emit, "elementwise, broadcast, gather, transposition and layout",
    knobs=_KNOBS,
)  # fmt: skip
