"""Attention, softmax(scale Q K^T + mask) V, without the matrix of all scores.

Blocking: a work item is one head of keys of one batch entry (or some of its queries, when there are
fewer heads than workers). It copies the keys into panels, transposed, and goes through the queries
of all heads that share them in blocks that fit the first-level cache. For every block of keys it
computes a block of scores, their exponentials, and adds the product with the values to the results
so far; running maxima and sums per query rescale what was added before (Milakov and Gimelshein
2018). Blocks of keys that no query of the block sees are skipped. With very few queries keys and
values are read in place, the keys by dot products; single queries of several heads that share their
keys count as queries of one head.

Nothing is kept per pair of a query and a key, so memory is linear in both lengths.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from tvm import tirx

from tvmgraph.backend.attention import Problem
from tvmgraph.backend.cpu.intrinsics import exp_nonpositive
from tvmgraph.backend.cpu.kernels.attention.plan import Plan, plan_attention, rounded_up
from tvmgraph.backend.cpu.kernels.gemm import microkernel
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.point import vectors as each_vector
from tvmgraph.backend.loop_ir.reducer import horizontal
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, Index
from tvmgraph.machine.processor import CpuModel

#: Keys of a block; their scores with a block of queries, 24 KiB, stay in the first cache of any
#: processor of ``configs/targets.toml``.
KEYS = 128
#: Up to this many queries the keys are read in place.
_FEW_QUERIES = 8
#: Where running maxima start: finite, so that a difference of two is never NaN, and no more than
#: any finite score: a mask of that number that hides all keys of a query hides none.
_LOWEST = {name: float(np.finfo(name).min) for name in ("float32", "float64")}
#: Up to this many parts of the values are written out: heads of 256 numbers, and as many as that
#: of register tiles. A head of 3,871 took minutes to compile when all were.
_MAX_WRITTEN_OUT = 16


def emit_attention(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes query, key, value, perhaps a mask, the result, and perhaps its statistics.
        settings: The attributes of ``ops.fused_attention`` as JSON, and whether there are
            ``statistics``: the largest score of every query, and one over the sum of exponentials.
        model: The processor.
    """
    problem = Problem.of(func, str(settings)).with_merged_heads()
    _Writer(problem, plan_attention(problem, model)).write()


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
    problem: Problem
    plan: Plan

    # Extents

    @property
    def _head_dim(self) -> int:
        return self.problem.query.fixed("D")

    @property
    def _value_dim(self) -> int:
        return self.problem.value.fixed("D")

    @property
    def _padded_size(self) -> int:
        return -(-self._value_dim // self.plan.lanes) * self.plan.lanes

    @property
    def _panels(self) -> Index:
        return rounded_up(self.problem.keys, self.plan.panel)

    @property
    def _last_vectors(self) -> int:
        """Vectors of the last panel if it needs fewer than the others, else 0."""
        keys, plan = self.problem.keys, self.plan
        rest = keys % plan.panel if isinstance(keys, int) else 0
        vectors = -(-rest // plan.lanes)
        return vectors if vectors < plan.vectors else 0

    @property
    def _block_keys(self) -> int:
        wanted = -(-KEYS // self.plan.panel) * self.plan.panel
        panels = self._panels
        return min(wanted, panels * self.plan.panel) if isinstance(panels, int) else wanted

    @property
    def _is_few(self) -> bool:
        rows = self.problem.queries
        few = isinstance(rows, int) and rows <= _FEW_QUERIES
        return few and self.problem.key.layout[-1] == "D"

    def write(self) -> None:
        """Writes the loops over heads and blocks of queries."""
        problem, plan = self.problem, self.plan
        heads = problem.key.fixed("N")
        sharing = problem.query.fixed("N") // heads
        extents = [problem.query.extent("B"), heads, plan.groups]
        with emit.parallel(extents[0] * heads * plan.groups, plan.parallel) as item:
            batch, shared, group = emit.unfuse(item, extents)
            at = _Head(batch, shared, shared, None, None)
            at = replace(at, keys=self._packed_keys(at), values=self._packed_values(at))
            size = rounded_up(plan.blocks, plan.groups)
            with emit.serial(sharing) as member, emit.serial(size) as position:
                at = replace(at, head=shared * sharing + member)
                first = (group * size + position) * plan.queries
                if isinstance(self.problem.queries, int):
                    self._block(at, tirx.min(first, emit.i64(self.problem.queries - plan.queries)))
                else:
                    emit.only_if(first < self.problem.queries, lambda: self._block(at, first))

    # Keys and values

    def _wide(self, value: Expr) -> Expr:
        return tirx.Cast(self.problem.dtype, value)

    def _packed_keys(self, at: _Head) -> Buffer | None:
        """Panels of the transposed keys: one row of vectors per element of a head."""
        if self._is_few:
            return None
        plan, key = self.plan, self.problem.key
        size, lanes = self._head_dim * plan.panel, plan.lanes
        packed = emit.workspace([self._panels * size], self.problem.dtype)

        def element(row: Expr, dim: Expr) -> Expr:
            row = tirx.min(row, emit.index(self.problem.keys) - 1)  # the rest is hidden later
            return self._wide(key.buffer[key.at(at.batch, at.shared, row, dim)])

        done = self._head_dim - self._head_dim % lanes if lanes > 1 else 0
        with emit.serial(self._panels) as panel:
            if done:
                with emit.serial(plan.vectors * (done // lanes)) as part:
                    vector, block = emit.unfuse(part, [plan.vectors, done // lanes])
                    self._transpose(element, panel, vector, block * lanes, packed)
            if done == self._head_dim:
                return packed
            rests, vectors = emit.serial(self._head_dim - done), emit.serial(plan.vectors)
            with rests as rest, vectors as vector, emit.lanes_loop(lanes) as lane:
                dim, row = rest + done, vector * lanes + lane
                value = element(panel * plan.panel + row, dim)
                emit.store(packed, value, [panel * size + dim * plan.panel + row])
        return packed

    def _transpose(
        self,
        element: Callable[[Expr, Expr], Expr],
        panel: Expr,
        vector: Expr,
        dim: Expr,
        packed: Buffer,
    ) -> None:
        """Transposes a square of ``lanes`` keys and as many elements of a head in registers."""
        plan, lanes, dtype = self.plan, self.plan.lanes, self.problem.dtype
        square = emit.stack(lanes * lanes, dtype)
        first = panel * plan.panel + vector * lanes
        with emit.serial(lanes) as row, emit.vectorized(lanes) as lane:
            emit.store(square, element(first + row, dim + lane), [row * lanes + lane])
        transposed = microkernel.transpose(square, lanes, dtype)
        for step in range(lanes):
            to = (panel * self._head_dim + dim + step) * plan.panel + vector * lanes
            emit.store(packed, transposed[emit.ramp(step * lanes, lanes)], [emit.ramp(to, lanes)])

    def _packed_values(self, at: _Head) -> Buffer | None:
        """Rows of the values in the type of the sums, padded to whole vectors, if need be."""
        value, lanes = self.problem.value, self.plan.lanes
        direct = value.layout[-1] == "D" and self._value_dim % lanes == 0
        if direct and (self._is_few or str(value.buffer.dtype) == self.problem.dtype):
            return None
        packed = emit.workspace([self.problem.keys * self._padded_size], self.problem.dtype)
        rows, vectors = emit.serial(self.problem.keys), emit.serial(self._padded_size // lanes)
        with rows as row, vectors as vector, emit.lanes_loop(lanes) as lane:
            column = tirx.min(vector * lanes + lane, emit.i64(self._value_dim - 1))
            element = value.buffer[value.at(at.batch, at.shared, row, column)]
            place = row * self._padded_size + vector * lanes + lane
            emit.store(packed, self._wide(element), [place])
        return packed

    def _values(self, at: _Head, row: Expr, first: Index, lanes: int) -> Expr:
        """Elements of a row of the values."""
        value = self.problem.value
        if at.values is not None:
            return at.values[emit.ramp(row * self._padded_size + first, lanes)]
        place = value.at(at.batch, at.shared, row, emit.ramp(emit.index(first), lanes))
        kind = f"{self.problem.dtype}x{lanes}" if lanes > 1 else self.problem.dtype
        return tirx.Cast(kind, value.buffer[place])

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
            plan.queries * self._padded_size, lambda i, n: emit.clear(block.mixed, i, n)
        )
        size = self._block_keys
        seen: Expr = emit.index(self.problem.keys)
        if self.problem.diagonal is not None:
            seen = tirx.min(
                seen, self._line(first + (plan.queries - 1)) + self.problem.diagonal + 1
            )
            seen = tirx.max(seen, emit.i64(0))
        with emit.serial(tirx.floordiv(seen + (size - 1), emit.i64(size))) as number:
            start = number * size
            count = tirx.min(seen - start, emit.i64(size))
            self._scores(at, block, start, count)
            with emit.serial(plan.queries) as row:
                self._exponentials(at, block, row, start, count)
            self._add_values(at, block, start, count)
        self._store(at, block)

    def _scaled_queries(self, at: _Head, first: Expr) -> Buffer:
        query, dtype = self.problem.query, self.problem.dtype
        rows = emit.workspace([self.plan.queries * self._head_dim], dtype)
        scale = tirx.const(self.problem.scale, dtype)
        with emit.serial(self.plan.queries) as row:

            def copy(dim: Expr, lanes: int) -> None:
                with emit.lanes_loop(lanes) as lane:
                    place = query.at(at.batch, at.head, self._existing(first + row), dim + lane)
                    value = self._wide(query.buffer[place]) * scale
                    emit.store(rows, value, [row * self._head_dim + dim + lane])

            if query.layout[-1] == "D":
                self._vectors_of(self._head_dim, copy)
            else:
                with emit.serial(self._head_dim) as dim:
                    copy(dim, 1)
        return rows

    def _existing(self, row: Expr) -> Expr:
        """A query that exists in place of one that does not."""
        if isinstance(self.problem.queries, int):
            return row
        return tirx.min(row, self.problem.queries - 1)

    def _line(self, row: Expr) -> Expr:
        """The position of a query among those of its own head."""
        return self.problem.query.line(emit.i64(0), row)[1]

    def _vectors_of(self, size: int, body: Callable[[Expr, int], None]) -> None:
        """Calls ``body`` with the first index of every vector of ``size`` elements."""
        each_vector(emit.i64(0), size, self.plan.lanes, lambda first, n, _: body(first, n))

    def _row_tiles(self, body: Callable[[Expr, int], None]) -> None:
        """Calls ``body`` with the first query and the number of queries of every register tile."""
        queries, tile = self.plan.queries, self.plan.tile
        each_vector(emit.i64(0), queries, tile, lambda first, n, _: body(first, n))

    # Scores

    def _scores(self, at: _Head, block: _Block, start: Expr, count: Expr) -> None:
        """Scaled products of the queries with the keys from ``start`` on, in whole panels."""
        if at.keys is None:
            self._dot_scores(at, block, start, count)
            return
        plan = self.plan
        first = tirx.floordiv(start, emit.i64(plan.panel))
        end = first + tirx.floordiv(count + (plan.panel - 1), emit.i64(plan.panel))
        if self._last_vectors:
            whole = tirx.floordiv(emit.index(self.problem.keys), emit.i64(plan.panel))
            emit.only_if(
                end > whole, lambda: self._panel_scores(at, block, start, whole, self._last_vectors)
            )
            end = tirx.min(end, whole)
        with emit.serial(end - first) as panel:
            self._panel_scores(at, block, start, first + panel, plan.vectors)

    def _panel_scores(
        self, at: _Head, block: _Block, start: Expr, panel: Expr, vectors: int
    ) -> None:
        """Scores of the first vectors of a panel of keys."""
        plan, keys = self.plan, at.keys
        assert keys is not None
        base = panel * (self._head_dim * plan.panel)

        def tile(row: Expr, rows: int) -> None:
            shape = microkernel.Tile(rows, vectors, plan.lanes, self.problem.dtype, adjacent=True)
            total = microkernel.multiply_tile(
                shape,
                [self._head_dim],
                shape.unroll,
                lambda r, k: block.query[(row + r) * self._head_dim + k[0]],
                lambda k, v, lanes: keys[
                    emit.ramp(base + k[0] * plan.panel + v * plan.lanes, lanes)
                ],
            )
            microkernel.store_tile(
                shape, total, block.scores,
                lambda r, v, lanes: emit.ramp(
                    (row + r) * self._block_keys + panel * plan.panel - start + v * plan.lanes,
                    lanes,
                ),
            )  # fmt: skip

        self._row_tiles(tile)

    def _dot_scores(self, at: _Head, block: _Block, start: Expr, count: Expr) -> None:
        """Scores of ``lanes`` keys at a time; those beyond the last key repeat it."""
        plan, key, dtype, lanes = self.plan, self.problem.key, self.problem.dtype, self.plan.lanes
        groups = tirx.floordiv(count + (lanes - 1), emit.i64(lanes))
        with emit.serial(groups) as group, emit.serial(plan.queries) as row:
            sums = [emit.stack(lanes, dtype) for _ in range(lanes)]
            rows = [
                tirx.min(start + group * lanes + i, emit.index(self.problem.keys) - 1)
                for i in range(lanes)
            ]
            for total in sums:
                emit.clear(total, 0, lanes)

            def add(dim: Expr, width: int) -> None:
                for total, of in zip(sums, rows):
                    with emit.lanes_loop(width) as lane:
                        element = key.buffer[key.at(at.batch, at.shared, of, dim + lane)]
                        factor = block.query[row * self._head_dim + dim + lane]
                        emit.store(total, total[lane] + self._wide(element) * factor, [lane])

            self._vectors_of(self._head_dim, add)
            totals = microkernel.sum_each(sums, lanes, dtype)
            place = row * self._block_keys + group * lanes
            emit.store(block.scores, totals[emit.ramp(0, lanes)], [emit.ramp(place, lanes)])

    # Softmax

    def _exponentials(self, at: _Head, block: _Block, row: Expr, start: Expr, count: Expr) -> None:
        """Replaces a row of scores by exponentials and brings the running figures up to date."""
        dtype, lanes = self.problem.dtype, self.plan.lanes
        groups = tirx.floordiv(count + (lanes - 1), emit.i64(lanes))
        base = row * self._block_keys
        top = self._reduce(
            groups, base, block, tirx.max, _LOWEST[dtype],
            lambda score, column: self._masked(score, at, block.first + row, start, count, column),
        )  # fmt: skip
        old, new = emit.stack(1, dtype), emit.stack(1, dtype)
        emit.store(old, block.top[row], [0])
        emit.store(new, tirx.max(old[0], top), [0])
        emit.store(block.top, new[0], [row])
        total = self._reduce(
            groups, base, block, lambda a, b: a + b, 0.0,
            lambda score, _column: exp_nonpositive(score - new[0]),
        )  # fmt: skip
        shrink = emit.stack(1, dtype)
        emit.store(shrink, tirx.exp(old[0] - new[0]), [0])
        emit.store(block.total, block.total[row] * shrink[0] + total, [row])

        def rescale(first: Index, _: int) -> None:
            place = [emit.ramp(row * self._padded_size + first * lanes, lanes)]
            factor = emit.broadcast(shrink[0], lanes)
            emit.store(block.mixed, block.mixed[place[0]] * factor, place)

        self._strips(1, rescale)

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
        with emit.serial(groups) as group, emit.lanes_loop(lanes) as lane:
            place = base + group * lanes + lane
            emit.store(fresh, change(block.scores[place], group * lanes + lane), [lane])
            emit.store(block.scores, fresh[lane], [place])
            emit.store(kept, combine(kept[lane], fresh[lane]), [lane])
        return horizontal(combine, kept, lanes, lanes, dtype)

    def _masked(
        self, score: Expr, at: _Head, row: Expr, start: Expr, count: Expr, column: Expr
    ) -> Expr:
        """A score under the mask; minus infinity for keys that do not count."""
        problem, dtype = self.problem, self.problem.dtype
        key = tirx.min(start + column, emit.index(self.problem.keys) - 1)
        score = problem.masked(score, at.batch, at.head, self._existing(row), key)
        seen = column < count
        if problem.diagonal is not None:
            seen = tirx.And(seen, start + column <= self._line(row) + problem.diagonal)
        elif isinstance(self.problem.keys, int) and self.problem.keys % self.plan.lanes == 0:
            return score
        return tirx.Select(seen, score, tirx.const(float("-inf"), dtype))

    # Values

    def _add_values(self, at: _Head, block: _Block, start: Expr, count: Expr) -> None:
        """Adds the values, weighted by the exponentials."""
        plan, size = self.plan, self._padded_size

        def tile(row: Expr, rows: int, first: Index, vectors: int) -> None:
            shape = microkernel.Tile(rows, vectors, plan.lanes, self.problem.dtype, adjacent=True)

            def place(r: int, v: int, lanes: int) -> Expr:
                return emit.ramp((row + r) * size + (first + v) * plan.lanes, lanes)

            total = microkernel.multiply_tile(
                shape,
                [count],
                1,
                lambda r, k: block.scores[(row + r) * self._block_keys + k[0]],
                lambda k, v, lanes: self._values(at, start + k[0], (first + v) * plan.lanes, lanes),
                lambda r, *strip: block.mixed[place(r, *strip)],
            )
            microkernel.store_tile(shape, total, block.mixed, place)

        self._row_tiles(
            lambda row, rows: self._strips(plan.vectors, functools.partial(tile, row, rows))
        )

    def _strips(self, width: int, body: Callable[[Index, int], None]) -> None:
        """Calls ``body`` with the first vector and the number of vectors of parts of the values.

        Few are written out, many are a loop: code must not grow with the head.
        """
        full, rest = divmod(self._padded_size // self.plan.lanes, width)
        if full > _MAX_WRITTEN_OUT:
            with emit.serial(full) as number:
                body(number * width, width)
        else:
            for number in range(full):
                body(number * width, width)
        if rest:
            body(full * width, rest)

    def _store(self, at: _Head, block: _Block) -> None:
        out, dtype = self.problem.out, self.problem.dtype
        count: Index = self.plan.queries
        if not isinstance(self.problem.queries, int):
            count = tirx.min(emit.i64(count), self.problem.queries - block.first)
        with emit.serial(count) as row:
            factor = emit.stack(1, dtype)
            emit.store(factor, tirx.const(1.0, dtype) / block.total[row], [0])
            if self.problem.statistics is not None:
                for place, figure in enumerate((block.top[row], factor[0])):
                    line = self.problem.query.line(at.head, block.first + row)
                    where = (at.batch, *line, emit.i64(place))
                    emit.store(self.problem.statistics, figure, where)

            def vector(column: Expr, lanes: int) -> None:
                with emit.lanes_loop(lanes) as lane:
                    value = block.mixed[row * self._padded_size + column + lane] * factor[0]
                    value = tirx.Cast(str(out.buffer.dtype), value)
                    place = out.at(at.batch, at.head, block.first + row, column + lane)
                    emit.store(out.buffer, value, place)

            self._vectors_of(self._value_dim, vector)
