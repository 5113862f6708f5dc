"""Executing the stages of a row plan for one row, or for a vector of neighbouring rows.

Memory is asked for the next row while one is computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.elementwise.nontemporal import compute_vector
from tvmgraph.backend.cpu.kernels.reduce.arg import emit_arg_row, match_arg_reducer
from tvmgraph.backend.cpu.kernels.reduce.sums import RowSum, reduce_blocks
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import access, accesses, dtype_bytes, group_extent, groups
from tvmgraph.backend.loop_ir.point import Bound, Point, bind_group, fill, nest, vectors
from tvmgraph.backend.loop_ir.program import Axis, map_loads, substitute
from tvmgraph.backend.loop_ir.reducer import Reducer, match_reducer
from tvmgraph.backend.loop_ir.rows import IsOutput, RowStage, row_dims
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, as_dtype
from tvmgraph.backend.walks import elements

#: Accumulators that are in memory are read and written once for so many terms.
_STEPS = 4
#: Intermediates up to this many bytes live on the stack.
_MAX_STACK = 64 * 1024
#: Computes a vector, given its first position in the row and its lanes; returns what stores it.
_Vector = Callable[[Expr, int], Callable[[], None]]


@dataclass(frozen=True)
class Local:
    """An intermediate and the scratch buffer that holds it for the rows of a tile."""

    original: Buffer
    scratch: Buffer
    row: RowStage

    def element(self, indices: Sequence[Expr], slot: Expr, width: int) -> Load:
        """The element at ``indices`` in row ``slot`` of a tile of ``width`` rows.

        Args:
            indices: Indices in the original buffer.
            slot: Number of the row in the tile.
            width: Rows of the tile.
        """
        address: Expr = emit.i64(0)
        if not self.row.stage.is_reduction:
            for axis, index in zip(row_dims(self.row.stage), indices):
                if axis is not None and axis in self.row.inner:
                    address = address * axis.extent + index
        return self.scratch[address * width + slot]


@dataclass
class RowTile:
    """``width`` neighbouring rows: 1 (vectors run along the row) or several (a lane for every row).

    Attributes:
        stages: What is computed.
        rows: Outer indices of the first row.
        lanes: Elements of a vector.
        width: Number of rows; they differ in the last outer axis.
        held: Vectors of accumulators that stay in registers; more are in memory.
        large: Whether the operands come from memory rather than from a cache.
        nontemporal: Whether results may be stored around the caches.
        beside: Written into the last pass that reduces, before every vector of it.
        locals: What is no output.
    """

    stages: Sequence[RowStage]
    rows: Sequence[Expr]
    lanes: int
    width: int
    held: int
    large: bool = False
    nontemporal: bool = False
    beside: _Vector | None = None
    locals: list[Local] = field(default_factory=list)
    _fetches: list[Fetch] = field(default_factory=list)

    def run(self, is_output: IsOutput) -> None:
        """Writes all stages; what is no output stays in scratch buffers of the tile.

        Args:
            is_output: Whether a buffer is a result of the kernel.
        """
        self.declare(is_output)
        self.write()

    def declare(self, is_output: IsOutput) -> None:
        """Makes the scratch buffers for what is no output.

        Args:
            is_output: Whether a buffer is a result of the kernel.
        """
        for row in self.stages:
            for buffer in row.stage.buffers:
                if not is_output(buffer):
                    self.locals.append(self._declare(buffer, row))

    def write(self) -> None:
        """Writes all stages, after :meth:`declare`."""
        if self.large and self.width == 1:
            self._fetches = self._plan_fetches()
        waiting: RowStage | None = None
        left = list(self.stages)
        while left:
            row = left.pop(0)
            if row.stage.is_reduction:
                siblings = [row]
                while left and self._are_siblings(siblings, left[0]):
                    siblings.append(left.pop(0))
                before = [self.vector_of(waiting)] if waiting else []
                if self.beside and not any(row.stage.is_reduction for row in left):
                    before.insert(0, self.beside)
                self._reduction(siblings, before)
                waiting = None
            elif left and self._is_reduced_at_once(row, left[0]):
                waiting = row
            else:
                self._elementwise(row)

    def _are_siblings(self, rows: Sequence[RowStage], other: RowStage) -> bool:
        """Whether one pass over a row serves another reduction too."""
        if self.width > 1 or not all(match_reducer(row.stage) for row in (*rows, other)):
            return False
        extents = [[axis.extent for axis in row.inner] for row in (*rows, other)]
        single = all(len(row.loops) == 1 for row in (*rows, other))
        reads = any(other.stage.reads(row.stage.buffer) for row in rows)
        return single and extents.count(extents[0]) == len(extents) and not reads

    def _is_reduced_at_once(self, row: RowStage, following: RowStage) -> bool:
        """Whether a reduction can run with the stage that computes what it takes."""
        kept = any(local.original.same_as(row.stage.buffer) for local in self.locals)
        return kept and self.width == 1 and is_reduced_in_order(row, following)

    def partial(self, row: RowStage, reducer: Reducer, start: Expr, length: int) -> Buffer:
        """Reduces over part of the first reduction loop.

        Args:
            row: A reduction.
            reducer: Its form.
            start: Where the part starts in the first of ``RowStage.loops``.
            length: How many iterations it has.

        Returns:
            ``width`` accumulators.
        """
        if self.width == 1:
            return self._horizontal([(_terms(row, reducer), reducer)], start, length, ())[0]
        return self._vertical(_terms(row, reducer), reducer, start, length)

    def _declare(self, buffer: Buffer, row: RowStage) -> Local:
        size = self.width * (1 if row.stage.is_reduction else group_extent(row.inner))
        dtype = str(buffer.dtype)
        small = size * dtype_bytes(dtype) <= _MAX_STACK
        scratch = emit.stack(size, dtype) if small else emit.workspace([size], dtype)
        return Local(buffer, scratch, row)

    def _bound(self, row: RowStage, slot: Expr) -> Bound:
        bound = {axis.var: value for axis, value in zip(row.outer, self.rows)}
        if self.width > 1:
            bound[row.outer[-1].var] = self.rows[-1] + slot
        return bound

    def _redirect(self, slot: Expr) -> Callable[[Expr], Expr]:
        """Redirects reads of intermediates to their scratch buffers."""

        def visit(load: Load) -> Expr:
            for local in self.locals:
                if load.source.same_as(local.original):
                    return local.element(list(load.indices), slot, self.width)
            return load

        return lambda expr: map_loads(expr, visit)

    def _store(self, buffer: Buffer, value: Expr, indices: Sequence[Expr], slot: Expr) -> None:
        value = as_dtype(value, str(buffer.dtype))
        for local in self.locals:
            if buffer.same_as(local.original):
                element = local.element(indices, slot, self.width)
                buffer, indices = element.source, list(element.indices)
        emit.store(buffer, value, indices)

    def _elementwise(self, row: RowStage) -> None:
        if self.width > 1:
            loops: list[list[Axis]] = [[axis] for axis in row.inner]
            last: list[Axis] = []
        else:
            loops = groups(row.stage, row.inner, accesses(row.stage, row.inner))
            last = loops.pop() if loops else []

        def body(inner: Bound) -> None:
            def vector(start: Expr, lanes: int, _slot: int) -> None:
                self._vector(row, inner, last, start, lanes)()

            length = self.width if self.width > 1 else group_extent(last)
            vectors(emit.i64(0), length, self.lanes, vector)

        nest(loops, body)

    def _vector(
        self, row: RowStage, inner: Bound, last: Sequence[Axis], start: Expr, lanes: int
    ) -> Callable[[], None]:
        """Computes a vector of a stage; what it returns stores it, if it is a result."""
        point = Point(row.stage, lanes)
        if row.inner:
            self._fetch(row, inner, last, start)
        buffer = row.stage.buffer
        kept = any(buffer.same_as(local.original) for local in self.locals)
        if not kept and self.width == 1:

            def bound_at(lane: Expr) -> Bound:
                return self._position(row, inner, last, start + lane)[1]

            def value_at(lane: Expr) -> list[Expr]:
                value = point.values(bound_at(lane), lane, self._redirect(emit.i64(0)))[0]
                return [as_dtype(value, str(buffer.dtype))]

            def indices(lane: Expr) -> list[Expr]:
                return point.indices(bound_at(lane))

            nontemporal = self.nontemporal and lanes == self.lanes
            return compute_vector([buffer], lanes, value_at, indices, nontemporal=nontemporal)
        with emit.lanes_loop(lanes) as lane:
            slot, bound = self._position(row, inner, last, start + lane)
            value = point.values(bound, lane, self._redirect(slot))[0]
            self._store(buffer, value, point.indices(bound), slot)
        return lambda: None

    def _position(
        self, row: RowStage, inner: Bound, last: Sequence[Axis], at: Expr
    ) -> tuple[Expr, Bound]:
        """The row within the tile and the values of all axes, at position ``at`` of a vector."""
        if self.width > 1:
            return at, self._bound(row, at) | inner
        slot = emit.i64(0)
        return slot, self._bound(row, slot) | inner | (bind_group(last, at) if last else {})

    def vector_of(self, row: RowStage) -> _Vector:
        """Writes vectors of a stage with a single loop along the row.

        Args:
            row: A stage that is not a reduction.

        Returns:
            Computes a vector, given its first position in the row and its lanes; returns what
            stores it.
        """
        return lambda at, lanes: self._vector(row, {}, row.inner, at, lanes)

    def _reduction(self, rows: Sequence[RowStage], before: Sequence[_Vector]) -> None:
        """Reductions in one pass; ``before`` computes what the first takes, vector by vector."""
        reducers = [reducer for row in rows if (reducer := match_reducer(row.stage))]
        length = group_extent(rows[0].loops[0])
        if not reducers:
            self._generic_reduction(rows[0])
        elif self.width > 1:
            self.finish(
                rows[0], reducers[0], self.partial(rows[0], reducers[0], emit.i64(0), length)
            )
        else:
            terms = [(_terms(row, reducer), reducer) for row, reducer in zip(rows, reducers)]
            results = self._horizontal(terms, emit.i64(0), length, before)
            for row, reducer, result in zip(rows, reducers, results):
                self.finish(row, reducer, result)

    def finish(self, row: RowStage, reducer: Reducer, accumulators: Buffer) -> None:
        """Stores the accumulators of the tile as the result of a reduction.

        Args:
            row: A reduction.
            reducer: Its form.
            accumulators: One per row of the tile.
        """

        def vector(start: Expr, lanes: int, _slot: int) -> None:
            point = Point(replace(row.stage, lets=()), lanes)
            with emit.lanes_loop(lanes) as lane:
                slot, bound = self._position(row, {}, (), start + lane)
                value = accumulators[start + lane]
                if reducer.start is not None:
                    value = reducer.combine(reducer.start, value)
                self._store(row.stage.buffer, value, point.indices(bound), slot)

        vectors(emit.i64(0), self.width, self.lanes, vector)

    def _horizontal(
        self,
        rows: Sequence[tuple[RowStage, Reducer]],
        start: Expr,
        length: int,
        before: Sequence[_Vector],
    ) -> list[Buffer]:
        """One row: vectors of accumulators along the innermost reduction loop."""
        loops = rows[0][0].loops
        extent = length if len(loops) == 1 else group_extent(loops[-1])
        sums = [RowSum(reducer, extent, self.lanes) for _, reducer in rows]

        def body(inner: Bound) -> None:
            def vector(at: Expr, lanes: int, part: int) -> None:
                left = [write(at, lanes) for write in before]
                for row, _ in rows:
                    self._fetch(row, inner, row.loops[-1], at)
                points = [Point(row.stage, lanes) for row, _ in rows]
                with emit.lanes_loop(lanes) as lane:
                    for (row, _), point, total in zip(rows, points, sums):
                        last = row.loops[-1]
                        slot, bound = self._position(row, inner, last, at + lane)
                        total.add(point.values(bound, lane, self._redirect(slot))[0], part, lane)
                for finish in left:
                    finish()

            reduce_blocks(sums, start if len(loops) == 1 else emit.i64(0), extent, vector)

        _nest_from(loops[:-1], start, length, body)
        return [total.result() for total in sums]

    def _plan_fetches(self) -> list[Fetch]:
        kept = [local.original for local in self.locals]
        rows = (row.stage.buffer for row in self.stages if row.inner and not row.stage.is_reduction)
        writes = any(not any(buffer.same_as(own) for own in kept) for buffer in rows)
        return plan_fetches(self.stages, kept, writes or self.beside is not None)

    def _fetch(self, row: RowStage, inner: Bound, last: Sequence[Axis], at: Expr) -> None:
        write_fetches(self._fetches, row, self._bound(row, emit.i64(0)) | inner, last, at)

    def _vertical(self, row: RowStage, reducer: Reducer, start: Expr, length: int) -> Buffer:
        """Several rows: one accumulator lane per row."""
        total = emit.stack(self.width, reducer.dtype)
        unroll = self._written_out()
        fill(total, reducer.identity, emit.i64(0), self.width, self.lanes, unroll)

        def body(*steps: Bound) -> None:
            def vector(at: Expr, lanes: int, _part: int) -> None:
                points = [Point(row.stage, lanes) for _ in steps]
                with emit.lanes_loop(lanes) as lane:
                    terms: list[Expr] = []
                    for point, inner in zip(points, steps):
                        slot, bound = self._position(row, inner, (), at + lane)
                        value = point.values(bound, lane, self._redirect(slot))[0]
                        terms.append(reducer.contribution(value))
                    value = functools.reduce(reducer.combine, terms)
                    emit.store(total, reducer.combine(total[at + lane], value), [at + lane])

            vectors(emit.i64(0), self.width, self.lanes, vector, unroll)

        loops = row.loops
        if len(loops) == 1 and self.width > self.held * self.lanes:
            _several_at_once(loops[0], start, length, body)
        else:
            _nest_from(loops, start, length, body)
        return total

    def _written_out(self) -> int:
        """Vectors that are written out one after the other: all that are in registers."""
        count = max(1, self.width // self.lanes)
        return count if count <= self.held else _STEPS

    def _generic_reduction(self, row: RowStage) -> None:
        """A reduction of unknown form: serial over the reduced axes, a lane for every row."""
        stage = row.stage
        assert stage.inits is not None
        arg = match_arg_reducer(stage) if self.width == 1 else None
        if arg is not None and stage.reduce[0].extent < 2 * self.lanes:
            arg = None
        size = self.width if arg is None else self.lanes
        totals = [emit.stack(size, str(buffer.dtype)) for buffer in stage.buffers]
        for total, init in zip(totals, stage.inits):
            with emit.lanes_loop(size) as slot:
                emit.store(total, init, [slot])

        def body(inner: Bound) -> None:
            vectors(
                emit.i64(0),
                self.width,
                self.lanes,
                lambda *at: self._update(row, totals, inner, *at),
            )

        if arg is None:
            nest([[axis] for axis in row.inner], body)
        else:
            zero = emit.i64(0)
            emit_arg_row(arg, totals, self._bound(row, zero), self.lanes, self._redirect(zero))
        for total, buffer in zip(totals, stage.buffers):
            with emit.lanes_loop(self.width) as slot:
                indices = Point(replace(stage, lets=()), 1).indices(self._bound(row, slot))
                self._store(buffer, total[slot], indices, slot)

    def _update(
        self,
        row: RowStage,
        totals: Sequence[Buffer],
        inner: Bound,
        start: Expr,
        lanes: int,
        _part: int,
    ) -> None:
        point = Point(row.stage, lanes)
        fresh = [emit.stack(lanes, str(total.dtype)) for total in totals]

        def own(slot: Expr) -> Callable[[Expr], Expr]:
            outside = self._redirect(slot)

            def visit(load: Load) -> Expr:
                for buffer, total in zip(row.stage.buffers, totals):
                    if load.source.same_as(buffer):
                        return total[slot]
                return load

            return lambda expr: outside(map_loads(expr, visit))

        with emit.lanes_loop(lanes) as lane:
            slot, bound = self._position(row, inner, (), start + lane)
            for register, value in zip(fresh, point.values(bound, lane, own(slot))):
                emit.store(register, value, [lane])
        with emit.lanes_loop(lanes) as lane:
            for register, total in zip(fresh, totals):
                emit.store(total, register[lane], [start + lane])


def is_reduced_in_order(row: RowStage, following: RowStage) -> bool:
    """Whether a reduction takes a row of results of the stage before it one by one, in order.

    Args:
        row: A stage that computes a row.
        following: The stage after it.
    """
    reducer = match_reducer(following.stage)
    if reducer is None or not isinstance(term := reducer.term, Load):
        return False
    if not term.source.same_as(row.stage.buffer):
        return False
    indices = dict(zip((id(axis) for axis in row_dims(row.stage)), term.indices))
    return (
        len(row.inner) == len(following.inner)
        and all(
            mine.extent == theirs.extent and theirs.var.same_as(indices[id(mine)])
            for mine, theirs in zip(row.inner, following.inner)
        )
        and len(row.loops) == len(following.loops) == 1
    )


def _terms(row: RowStage, reducer: Reducer) -> RowStage:
    """The stage that computes what is reduced."""
    return replace(row, stage=replace(row.stage, values=(reducer.term,)))


def _nest_from(
    loops: Sequence[Sequence[Axis]], start: Expr, length: int, body: Callable[[Bound], None]
) -> None:
    """Loops over groups, the first one from ``start`` on."""
    if not loops:
        body({})
        return
    with emit.serial(length) as value:
        first = bind_group(loops[0], start + value) if loops[0] else {}
        nest(loops[1:], body, first)


def _several_at_once(
    loop: Sequence[Axis], start: Expr, length: int, body: Callable[..., None]
) -> None:
    """A loop that gives ``body`` some iterations at a time, so that accumulators rest meanwhile."""
    full, rest = divmod(length, _STEPS)
    for first, count, steps in ((0, full, _STEPS), (full * _STEPS, rest, 1)):
        if count:
            with emit.serial(count) as block:
                at = start + block * steps + first
                body(*[bind_group(loop, at + step) for step in range(steps)])


# ---- fetching ahead -----------------------------------------------------------------------------


#: Bytes between what is read and what is asked for in a single pass: a page.
_AHEAD = 4096


@dataclass(frozen=True)
class Fetch:
    """What a stage asks for early.

    Attributes:
        stage: Name of the stage.
        load: What it reads itself.
        share: Which share of the next row it asks for, and of how many; None for what is a page
            further in its own row.
    """

    stage: str
    load: Load
    share: tuple[int, int] | None


def plan_fetches(stages: Sequence[RowStage], kept: Sequence[Buffer], writes: bool) -> list[Fetch]:
    """Decides which pass asks for which share of the next row.

    The first pass over a row waits for memory. Later ones over the same elements find them in the
    cache; meanwhile those of the next row can come. Best is a pass that computes much, else the
    last one if it writes, since memory reads and writes at the same time as fast as it does
    either, else every pass asks for a share. A single pass asks for what lies a page ahead, where
    the processor itself does not look.

    Args:
        stages: What is computed.
        kept: Intermediates in scratch buffers.
        writes: Whether rows of results are written.
    """
    passes: dict[Buffer, list[tuple[RowStage, Load]]] = {}
    for row in stages:
        rows = {x.source: x for x in row.stage.loads if _is_row_of(x, row, kept)}
        for buffer, load in rows.items():
            passes.setdefault(buffer, []).append((row, load))
    found: list[Fetch] = []
    for every in passes.values():
        computing = [which for which in every[1:] if which[0].stage.has_calls]
        asking = computing[:1] or (every[-1:] if writes else every)
        for share, (row, load) in enumerate(asking):
            if len(every) > 1:
                found.append(Fetch(row.stage.name, load, (share, len(asking))))
            elif _is_contiguous(load, row):
                found.append(Fetch(row.stage.name, load, None))
    return found


def write_fetches(
    fetches: Sequence[Fetch], row: RowStage, bound: Bound, last: Sequence[Axis], at: Expr
) -> None:
    """Asks for what was planned, at position ``at`` of the loop over the axes ``last``.

    Args:
        fetches: What was planned.
        row: The stage being written.
        bound: Values of all other axes.
        last: The merged axes of the innermost loop.
        at: Where in it.
    """
    for fetch in fetches:
        if fetch.stage != row.stage.name:
            continue
        position, here = at, dict(bound)
        if fetch.share is None:
            position = at + _AHEAD // dtype_bytes(str(fetch.load.source.dtype))
        else:
            share, count = fetch.share
            if count > 1:
                position = tirx.floordiv(at, emit.i64(count)) + group_extent(last) * share // count
            here[row.outer[-1].var] += 1
        here |= bind_group(last, position)
        emit.prefetch(fetch.load.source, [substitute(index, here) for index in fetch.load.indices])


def _is_row_of(load: Load, row: RowStage, kept: Sequence[Buffer]) -> bool:
    """Whether a stage reads a row of an operand, not of an intermediate."""
    own = (*kept, *row.stage.buffers)
    if any(load.source.same_as(buffer) for buffer in own) or not row.outer:
        return False
    used = access(load.source, elements(load.indices), [*row.outer, *row.inner]).used
    return used[len(row.outer) - 1] and any(used[len(row.outer) :])


def _is_contiguous(load: Load, row: RowStage) -> bool:
    strides = access(load.source, elements(load.indices), row.inner).strides
    return strides is not None and strides[-1] == 1
