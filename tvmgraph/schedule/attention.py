"""Attention, softmax(scale Q K^T + mask) V, without the matrix of all scores.

Blocking: a work item is one head of one batch entry (or some of its queries, when there are fewer
heads than workers). It copies the keys into panels, transposed, and goes through its queries in
blocks that fit the first-level cache. For every block of keys it computes a block of scores, their
exponentials, and adds the product with the values to the results so far; running maxima and sums
per query rescale what was added before (Milakov and Gimelshein 2018). Blocks of keys that no query
of the block sees are skipped. With very few queries the keys are read in place, by dot products.

Nothing is kept per pair of a query and a key, so memory is linear in both lengths.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.schedule import emit
from tvmgraph.schedule.gemm_plan import MAX_IMBALANCE, MIN_PARALLEL_FLOPS, imbalance, step_cycles
from tvmgraph.schedule.microkernel import Tile, multiply_tile, sum_each, transpose
from tvmgraph.schedule.program import static_shape
from tvmgraph.schedule.reducer import horizontal
from tvmgraph.schedule.target import CpuModel
from tvmgraph.schedule.types import Buffer, Expr, Func, Index

_AXES = "BNSD"
#: Queries of a block (at most about) and keys of a block: their scores stay in the first cache.
_QUERIES, _KEYS = 48, 128
#: Up to this many queries the keys are read in place.
_FEW_QUERIES = 2
#: Where running maxima start: finite, so that a difference of two is never NaN.
_LOWEST = {"float32": -3.0e38, "float64": -1.0e308}


@dataclass(frozen=True)
class _Operand:
    """A tensor with its axes in any order."""

    buffer: Buffer
    layout: str

    def extent(self, axis: str) -> int:
        return (static_shape(self.buffer) or ())[self.layout.index(axis)]

    def at(self, batch: Expr, head: Expr, row: Expr, column: Expr) -> tuple[Expr, ...]:
        """Indices of an element."""
        named = dict(zip(_AXES, (batch, head, row, column)))
        return tuple(named[axis] for axis in self.layout)


@dataclass(frozen=True)
class _Problem:
    """What is computed."""

    query: _Operand
    key: _Operand
    value: _Operand
    out: _Operand
    mask: Buffer | None
    scale: float
    diagonal: int | None
    fill: float | None

    @property
    def dtype(self) -> str:
        """Type of the sums."""
        return "float64" if str(self.query.buffer.dtype) == "float64" else "float32"


@dataclass(frozen=True)
class _Plan:
    """Shape of the kernel.

    Attributes:
        lanes: Elements of a vector.
        vectors: Vectors of a panel of keys.
        tile: Queries of a register tile.
        queries: Queries of a block.
        blocks: Blocks of queries; the last one may overlap the one before it.
        groups: Work items per head.
        parallel: Whether the workers share them.
    """

    lanes: int
    vectors: int
    tile: int
    queries: int
    blocks: int
    groups: int
    parallel: bool

    @property
    def panel(self) -> int:
        """Keys of a panel."""
        return self.vectors * self.lanes


def emit_attention(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes query, key, value, perhaps a mask, and the result.
        settings: The attributes of ``ops.fused_attention`` as JSON.
        model: The processor.
    """
    said = json.loads(str(settings))
    buffers = list(func.params)
    query, key, value, out = (
        _Operand(buffer, layout)
        for buffer, layout in zip((*buffers[:3], buffers[-1]), said["layouts"])
    )
    mask = buffers[3] if len(buffers) == 5 else None
    problem = _Problem(
        query, key, value, out, mask, said["scale"], said["diagonal"], said["fill"]
    )  # fmt: skip
    _Writer(problem, _plan(problem, model)).write()


def _plan(problem: _Problem, model: CpuModel) -> _Plan:
    rows, keys = problem.query.extent("S"), problem.key.extent("S")
    heads = problem.query.extent("B") * problem.query.extent("N")
    lanes = model.lanes_of(8 if problem.dtype == "float64" else 4)
    vectors = 4 if model.registers >= 32 else 2
    limit = (model.registers - 2 - vectors) // vectors
    tile = min(
        range(1, min(limit, rows) + 1),
        key=lambda r: -(-rows // r) * step_cycles(r, vectors, model),
    )
    tiles = -(-rows // tile)
    blocks = -(-tiles // max(1, _QUERIES // tile))
    queries = min(rows, tile * -(-tiles // blocks))
    blocks = -(-rows // queries)
    flops = 4 * heads * rows * keys * problem.query.extent("D")
    parallel = flops >= MIN_PARALLEL_FLOPS and model.threads > 1
    groups = 1
    while parallel and groups < blocks and imbalance(heads * groups, model.threads) > MAX_IMBALANCE:
        groups += 1
    return _Plan(lanes, vectors, tile, queries, blocks, groups, parallel)


@dataclass(frozen=True)
class _Head:
    """The head at hand: its indices, and its keys and values as the products read them."""

    batch: Expr
    head: Expr
    shared: Expr
    keys: Buffer | None
    values: Buffer | None


@dataclass(frozen=True)
class _Block:
    """A block of queries and what is known about their results so far.

    Attributes:
        first: The first query.
        query: The queries, scaled, one after the other.
        scores: Scores, then exponentials, of the block of keys at hand.
        mixed: Sums of values so far, a padded row per query.
        top: Running maximum per query.
        total: Running sum of exponentials per query.
    """

    first: Expr
    query: Buffer
    scores: Buffer
    mixed: Buffer
    top: Buffer
    total: Buffer


@dataclass(frozen=True)
class _Writer:
    problem: _Problem
    plan: _Plan

    # Extents

    @property
    def _depth(self) -> int:
        return self.problem.query.extent("D")

    @property
    def _keys(self) -> int:
        return self.problem.key.extent("S")

    @property
    def _size(self) -> int:
        return self.problem.value.extent("D")

    @property
    def _padded_size(self) -> int:
        return -(-self._size // self.plan.lanes) * self.plan.lanes

    @property
    def _panels(self) -> int:
        return -(-self._keys // self.plan.panel)

    @property
    def _block_keys(self) -> int:
        wanted = -(-_KEYS // self.plan.panel) * self.plan.panel
        return min(wanted, self._panels * self.plan.panel)

    @property
    def _is_few(self) -> bool:
        strides = self.problem.key.layout
        return self.problem.query.extent("S") <= _FEW_QUERIES and strides[-1] == "D"

    def write(self) -> None:
        """Writes the loops over heads and blocks of queries."""
        problem, plan = self.problem, self.plan
        heads = problem.query.extent("N")
        extents = [problem.query.extent("B"), heads, plan.groups]
        with emit.parallel(extents[0] * heads * plan.groups, plan.parallel) as item:
            batch, head, group = emit.unfuse(item, extents)
            shared = tirx.floordiv(head, emit.i64(heads // problem.key.extent("N")))
            at = _Head(batch, head, shared, None, None)
            at = _Head(batch, head, shared, self._packed_keys(at), self._packed_values(at))
            size = -(-plan.blocks // plan.groups)
            with emit.serial(size) as position:
                number = group * size + position
                last = problem.query.extent("S") - plan.queries
                self._block(at, tirx.min(number * plan.queries, emit.i64(last)))

    # Keys and values

    def _wide(self, value: Expr) -> Expr:
        return tirx.Cast(self.problem.dtype, value)

    def _packed_keys(self, at: _Head) -> Buffer | None:
        """Panels of the transposed keys: depth-major, one row of vectors per element of depth."""
        if self._is_few:
            return None
        plan, key = self.plan, self.problem.key
        size, lanes = self._depth * plan.panel, plan.lanes
        packed = emit.workspace([self._panels * size], self.problem.dtype)

        def element(row: Expr, depth: Expr) -> Expr:
            row = tirx.min(row, emit.i64(self._keys - 1))  # the rest is hidden later
            return self._wide(key.buffer[key.at(at.batch, at.shared, row, depth)])

        done = self._depth - self._depth % lanes if lanes > 1 else 0
        with emit.serial(self._panels) as panel:
            if done:
                with emit.serial(plan.vectors * (done // lanes)) as part:
                    vector, block = emit.unfuse(part, [plan.vectors, done // lanes])
                    self._turn(element, panel, vector, block * lanes, packed)
            with emit.serial(self._depth - done) as rest, emit.serial(plan.vectors) as vector:
                with emit.lanes_loop(lanes) as lane:
                    depth, row = rest + done, vector * lanes + lane
                    value = element(panel * plan.panel + row, depth)
                    emit.store(packed, value, [panel * size + depth * plan.panel + row])
        return packed

    def _turn(
        self,
        element: Callable[[Expr, Expr], Expr],
        panel: Expr,
        vector: Expr,
        depth: Expr,
        packed: Buffer,
    ) -> None:
        """Transposes a square of ``lanes`` keys and as many elements of depth in registers."""
        plan, lanes, dtype = self.plan, self.plan.lanes, self.problem.dtype
        square = emit.stack(lanes * lanes, dtype)
        for row in range(lanes):
            with emit.vectorized(lanes) as lane:
                key = panel * plan.panel + vector * lanes + row
                emit.store(square, element(key, depth + lane), [row * lanes + lane])
        turned = transpose(square, lanes, dtype)
        for step in range(lanes):
            to = (panel * self._depth + depth + step) * plan.panel + vector * lanes
            emit.store(packed, turned[emit.ramp(step * lanes, lanes)], [emit.ramp(to, lanes)])

    def _packed_values(self, at: _Head) -> Buffer | None:
        """Rows of the values in the type of the sums, padded to whole vectors, if need be."""
        value, lanes = self.problem.value, self.plan.lanes
        direct = value.layout[-1] == "D" and self._size % lanes == 0
        if direct and str(value.buffer.dtype) == self.problem.dtype:
            return None
        packed = emit.workspace([self._keys * self._padded_size], self.problem.dtype)
        with emit.serial(self._keys) as row, emit.serial(self._padded_size // lanes) as vector:
            with emit.lanes_loop(lanes) as lane:
                column = tirx.min(vector * lanes + lane, emit.i64(self._size - 1))
                element = value.buffer[value.at(at.batch, at.shared, row, column)]
                place = row * self._padded_size + vector * lanes + lane
                emit.store(packed, self._wide(element), [place])
        return packed

    def _value_vector(self, at: _Head, row: Expr, first: Index) -> Expr:
        lanes, value = self.plan.lanes, self.problem.value
        if at.values is not None:
            return at.values[emit.ramp(row * self._padded_size + first, lanes)]
        place = value.at(at.batch, at.shared, row, emit.ramp(emit.index(first), lanes))
        return value.buffer[place]

    # Blocks of queries

    def _block(self, at: _Head, first: Expr) -> None:
        """Goes through the blocks of keys that a block of queries sees, and stores its results."""
        plan, dtype = self.plan, self.problem.dtype
        block = _Block(
            first,
            self._scaled_queries(at, first),
            emit.workspace([plan.queries * self._block_keys], dtype),
            emit.workspace([plan.queries * self._padded_size], dtype),
            emit.stack(plan.queries, dtype),
            emit.stack(plan.queries, dtype),
        )
        with emit.serial(plan.queries) as row:
            emit.store(block.top, tirx.const(_LOWEST[dtype], dtype), [row])
            emit.store(block.total, emit.zero(dtype), [row])
        self._vectors_of(
            plan.queries * self._padded_size,
            lambda i, n: emit.store(
                block.mixed, emit.broadcast(emit.zero(dtype), n), [emit.ramp(i, n)]
            ),
        )
        size = self._block_keys
        seen: Expr = emit.i64(self._keys)
        if self.problem.diagonal is not None:
            seen = tirx.min(seen, first + (plan.queries + self.problem.diagonal))
            seen = tirx.max(seen, emit.i64(0))
        with emit.serial(tirx.floordiv(seen + (size - 1), emit.i64(size))) as number:
            start = number * size
            count = tirx.min(seen - start, emit.i64(size))
            self._scores(at, block, start, count)
            with emit.serial(plan.queries) as row:
                self._exponentials(at, block, row, start, count)
            self._mix(at, block, start, count)
        self._store(at, block)

    def _scaled_queries(self, at: _Head, first: Expr) -> Buffer:
        query, dtype = self.problem.query, self.problem.dtype
        rows = emit.workspace([self.plan.queries * self._depth], dtype)
        scale = tirx.const(self.problem.scale, dtype)
        with emit.serial(self.plan.queries) as row, emit.serial(self._depth) as depth:
            element = query.buffer[query.at(at.batch, at.head, first + row, depth)]
            emit.store(rows, self._wide(element) * scale, [row * self._depth + depth])
        return rows

    def _vectors_of(self, size: int, body: Callable[[Expr, int], None]) -> None:
        """Calls ``body`` with the first index of every vector of ``size`` elements."""
        full, rest = divmod(size, self.plan.lanes)
        if full:
            with emit.serial(full) as position:
                body(position * self.plan.lanes, self.plan.lanes)
        if rest:
            body(emit.i64(full * self.plan.lanes), rest)

    def _row_tiles(self, body: Callable[[Expr, int], None]) -> None:
        """Calls ``body`` with the first query and the number of queries of every register tile."""
        full, rest = divmod(self.plan.queries, self.plan.tile)
        if full:
            with emit.serial(full) as position:
                body(position * self.plan.tile, self.plan.tile)
        if rest:
            body(emit.i64(full * self.plan.tile), rest)

    # Scores

    def _scores(self, at: _Head, block: _Block, start: Expr, count: Expr) -> None:
        """Scaled products of the queries with the keys from ``start`` on, in whole panels."""
        if at.keys is None:
            self._dot_scores(at, block, start, count)
            return
        plan = self.plan
        first_panel = tirx.floordiv(start, emit.i64(plan.panel))
        with emit.serial(tirx.floordiv(count + (plan.panel - 1), emit.i64(plan.panel))) as panel:
            base = (first_panel + panel) * (self._depth * plan.panel)

            def tile(row: Expr, rows: int) -> None:
                shape = Tile(rows, plan.vectors, plan.lanes, self.problem.dtype)
                total = multiply_tile(
                    shape,
                    [self._depth],
                    1,
                    lambda r, k: block.query[(row + r) * self._depth + k[0]],
                    lambda k, v: at.keys[  # type: ignore[index]
                        emit.ramp(base + k[0] * plan.panel + v * plan.lanes, plan.lanes)
                    ],
                )
                self._keep(shape, total, block.scores, row, self._block_keys, panel * plan.panel)

            self._row_tiles(tile)

    def _keep(
        self, tile: Tile, total: Buffer, to: Buffer, row: Expr, stride: int, column: Index
    ) -> None:
        for r in range(tile.rows):
            for v in range(tile.vectors):
                place = (row + r) * stride + column + v * tile.lanes
                emit.store(to, total[tile.at(r, v)], [emit.ramp(place, tile.lanes)])

    def _dot_scores(self, at: _Head, block: _Block, start: Expr, count: Expr) -> None:
        """Scores of ``lanes`` keys at a time; those beyond the last key repeat it."""
        plan, key, dtype, lanes = self.plan, self.problem.key, self.problem.dtype, self.plan.lanes
        groups = tirx.floordiv(count + (lanes - 1), emit.i64(lanes))
        with emit.serial(groups) as group, emit.serial(plan.queries) as row:
            sums = [emit.stack(lanes, dtype) for _ in range(lanes)]
            rows = [
                tirx.min(start + group * lanes + i, emit.i64(self._keys - 1)) for i in range(lanes)
            ]
            for total in sums:
                zero = emit.broadcast(emit.zero(dtype), lanes)
                emit.store(total, zero, [emit.ramp(0, lanes)])

            def add(depth: Expr, width: int) -> None:
                for total, of in zip(sums, rows):
                    with emit.lanes_loop(width) as lane:
                        element = key.buffer[key.at(at.batch, at.shared, of, depth + lane)]
                        factor = block.query[row * self._depth + depth + lane]
                        emit.store(total, total[lane] + self._wide(element) * factor, [lane])

            self._vectors_of(self._depth, add)
            totals = sum_each(sums, lanes, dtype)
            place = row * self._block_keys + group * lanes
            emit.store(block.scores, totals[emit.ramp(0, lanes)], [emit.ramp(place, lanes)])

    # Softmax

    def _exponentials(self, at: _Head, block: _Block, row: Expr, start: Expr, count: Expr) -> None:
        """Replaces a row of scores by exponentials and brings the running figures up to date."""
        plan, dtype, lanes = self.plan, self.problem.dtype, self.plan.lanes
        groups = tirx.floordiv(count + (lanes - 1), emit.i64(lanes))
        base = row * self._block_keys
        top = self._reduce(
            groups, base, block, tirx.max, _LOWEST[dtype],
            lambda score, column: self._hide(score, at, block.first + row, start, count, column),
        )  # fmt: skip
        old, new = emit.stack(1, dtype), emit.stack(1, dtype)
        emit.store(old, block.top[row], [0])
        emit.store(new, tirx.max(old[0], top), [0])
        emit.store(block.top, new[0], [row])
        total = self._reduce(
            groups, base, block, lambda a, b: a + b, 0.0,
            lambda score, _column: tirx.exp(score - new[0]),
        )  # fmt: skip
        shrink = emit.stack(1, dtype)
        emit.store(shrink, tirx.exp(old[0] - new[0]), [0])
        emit.store(block.total, block.total[row] * shrink[0] + total, [row])
        for v in range(self._padded_size // plan.lanes):
            place = [emit.ramp(row * self._padded_size + v * lanes, lanes)]
            factor = emit.broadcast(shrink[0], lanes)
            emit.store(block.mixed, block.mixed[place[0]] * factor, place)

    def _reduce(
        self,
        groups: Expr,
        base: Expr,
        block: _Block,
        combine: Callable[[Expr, Expr], Expr],
        identity: float,
        change: Callable[[Expr, Expr], Expr],
    ) -> Expr:
        """Applies ``change(score, column)`` to a row and combines the results."""
        dtype, lanes = self.problem.dtype, self.plan.lanes
        kept = emit.stack(lanes, dtype)
        start = emit.broadcast(tirx.const(identity, dtype), lanes)
        emit.store(kept, start, [emit.ramp(0, lanes)])
        fresh = emit.stack(lanes, dtype)
        with emit.serial(groups) as group:
            with emit.lanes_loop(lanes) as lane:
                place = base + group * lanes + lane
                emit.store(fresh, change(block.scores[place], group * lanes + lane), [lane])
                emit.store(block.scores, fresh[lane], [place])
                emit.store(kept, combine(kept[lane], fresh[lane]), [lane])
        return horizontal(combine, kept, lanes, lanes, dtype)

    def _hide(
        self, score: Expr, at: _Head, row: Expr, start: Expr, count: Expr, column: Expr
    ) -> Expr:
        """A score under the mask; minus infinity for keys that do not count."""
        problem, dtype = self.problem, self.problem.dtype
        if problem.mask is not None:
            key = tirx.min(start + column, emit.i64(self._keys - 1))
            extents = static_shape(problem.mask) or ()
            index = (at.batch, at.head, row, key)
            value = problem.mask[
                tuple(i if extent > 1 else emit.i64(0) for i, extent in zip(index, extents))
            ]
            if problem.fill is None:
                score = score + self._wide(value)
            else:
                score = tirx.Select(value, tirx.const(problem.fill, dtype), score)
        seen = column < count
        if problem.diagonal is not None:
            seen = tirx.And(seen, start + column <= row + problem.diagonal)
        elif self._keys % self.plan.lanes == 0:
            return score
        return tirx.Select(seen, score, tirx.const(float("-inf"), dtype))

    # Values

    def _mix(self, at: _Head, block: _Block, start: Expr, count: Expr) -> None:
        """Adds the values, weighted by the exponentials."""
        plan, size = self.plan, self._padded_size
        vectors = size // plan.lanes

        def tile(row: Expr, rows: int) -> None:
            for first in range(0, vectors, plan.vectors):
                shape = Tile(
                    rows, min(plan.vectors, vectors - first), plan.lanes, self.problem.dtype
                )

                def place(r: int, v: int, first: int = first) -> Expr:
                    return emit.ramp((row + r) * size + (first + v) * plan.lanes, plan.lanes)

                def value(k: Sequence[Expr], v: int, first: int = first) -> Expr:
                    return self._value_vector(at, start + k[0], (first + v) * plan.lanes)

                total = multiply_tile(
                    shape,
                    [count],
                    1,
                    lambda r, k: block.scores[(row + r) * self._block_keys + k[0]],
                    value,
                    lambda r, v, place=place: block.mixed[place(r, v)],
                )
                self._keep(shape, total, block.mixed, row, size, first * plan.lanes)

        self._row_tiles(tile)

    def _store(self, at: _Head, block: _Block) -> None:
        out, dtype = self.problem.out, self.problem.dtype
        with emit.serial(self.plan.queries) as row:
            factor = emit.stack(1, dtype)
            emit.store(factor, tirx.const(1.0, dtype) / block.total[row], [0])

            def vector(column: Expr, lanes: int) -> None:
                with emit.lanes_loop(lanes) as lane:
                    value = block.mixed[row * self._padded_size + column + lane] * factor[0]
                    value = tirx.Cast(str(out.buffer.dtype), value)
                    place = out.at(at.batch, at.head, block.first + row, column + lane)
                    emit.store(out.buffer, value, place)

            self._vectors_of(self._size, vector)
