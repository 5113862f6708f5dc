"""Attention on tensor cores, without the matrix of all scores.

A block of threads takes some queries of one head and goes through the keys in tiles. Every warp
multiplies its queries with a tile of keys, turns the scores into exponentials where they lie, in
registers, and multiplies those with the tile of values: the sums that ``mma`` leaves behind have
the shape of the factors that it takes next. Running maxima and sums per query rescale what was
added before (Dao, "FlashAttention-2", 2023; Milakov and Gimelshein, 2018). The next tiles arrive in
the meantime. Tiles that no query of the block sees are skipped, and only those that some query does
not see in full are masked.

On Hopper (``sm_90a``) four warps multiply 64 queries together by ``wgmma``, which reads keys and
values for all of them at once; the products with the values go on while the next keys are awaited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx

from tvmgraph.backend.attention import Operand, Problem
from tvmgraph.backend.cuda.kernels import device, wgmma
from tvmgraph.backend.cuda.kernels.copies import Copier, SharedTile
from tvmgraph.backend.cuda.kernels.device import WARP, both, div, i32, mod
from tvmgraph.backend.cuda.kernels.warp_sums import COLUMNS, ROWS
from tvmgraph.backend.cuda.kernels.warp_tiles import (
    GroupTiles,
    TileView,
    WarpTiles,
    copier_of,
    match_named,
    padded,
    takes,
    tile_of,
)
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused
from tvmgraph.backend.target import GpuModel

_WARPS = 4
#: With ``wgmma``: two groups of four, each with 64 queries.
_GROUP_WARPS = 8
#: Queries of a warp where the head is at most this large, and where it is larger.
_ROWS_BY_SIZE = ((128, 32), (256, 16))
#: Keys of a tile.
_KEYS = 64
#: Where running maxima start: finite, so that a difference of two is never NaN.
_LOWEST = -3.0e38


def fits(problem: Problem, model: GpuModel) -> bool:
    """Whether the kernel takes a problem: known sizes, vectors along the heads, enough memory.

    Args:
        problem: The operands of an attention.
        model: The device, whose shared memory limits the tiles.
    """
    operands = (problem.query, problem.key, problem.value, problem.out)
    if not takes(operands) or any(side.layout[-1] != "D" for side in operands):
        return False
    sizes = [padded(side.fixed("D")) for side in (problem.key, problem.value)]
    if max(sizes) > _ROWS_BY_SIZE[-1][0]:
        return False
    return FlashAttention(problem, model).shared_bytes <= model.shared_per_block


def _is_grouped(problem: Problem, model: GpuModel) -> bool:
    """Whether ``wgmma`` takes the heads: rows of one or two panels of 128 bytes."""
    sizes = {padded(side.fixed("D")) for side in (problem.query, problem.value)}
    fits_panels = model.arch == "sm_90a" and sizes <= {64, 128}
    return fits_panels and choose("attention by wgmma", True, (True, False))


@dataclass(frozen=True)
class _Rows:
    """What a lane knows about its queries: two of every 16, eight apart.

    Attributes:
        top: Largest score so far.
        total: Sum of exponentials so far, of the columns that this lane holds.
        mixed: Sums of values so far.
        scores: Scores of the tile at hand, then their exponentials.
        weights: The exponentials in the type of the values.
    """

    top: Buffer
    total: Buffer
    mixed: Buffer
    scores: Buffer
    weights: Buffer


class FlashAttention:
    """Writes the kernel.

    Args:
        problem: What is computed.
        model: The device.
    """

    def __init__(self, problem: Problem, model: GpuModel) -> None:
        self.problem = problem
        self.is_grouped = _is_grouped(problem, model)
        self.warps = _GROUP_WARPS if self.is_grouped else _WARPS
        self.dtype = str(problem.query.buffer.dtype)
        self.k_size = padded(problem.query.fixed("D"))
        self.size = padded(problem.value.fixed("D"))
        widest = max(self.k_size, self.size)
        rows = next(rows for limit, rows in _ROWS_BY_SIZE if widest <= limit)
        if self.is_grouped:
            rows = ROWS
        self.warp_rows = choose("queries of a warp", rows, (16, rows) if rows > 16 else (16,))
        self.queries = self.warps * self.warp_rows
        self.m_tiles = self.warp_rows // ROWS
        self.length, self.keys = problem.query.fixed("S"), problem.key.fixed("S")
        self.query_rows = tile_of(self.queries, self.k_size)
        self.key_rows = tile_of(_KEYS, self.k_size)
        self.value_rows = tile_of(_KEYS, self.size)
        # Scores stay in the units of the products, unless a mask must be added to them.
        self.is_scaled = problem.mask is not None or problem.scale <= 0

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory: queries (later results), two tiles of keys and of values."""
        rest = 2 * (self.key_rows.size + self.value_rows.size)
        room = wgmma.ALIGNMENT if self.is_grouped else 0
        return max(self.query_rows.size, self.results.size) + rest + room

    @property
    def results(self) -> SharedTile:
        """Where the results pass through on their way to memory."""
        return tile_of(self.queries, self.size)

    def write(self) -> None:
        """Writes the kernel."""
        batch, heads = self.problem.query.fixed("B"), self.problem.query.fixed("N")
        tiles = -(-self.length // self.queries)
        with device.launch(batch * heads * tiles, self.warps * WARP) as (number, thread):
            # The last queries see the most keys: they go first.
            tile = i32(tiles - 1) - mod(number, tiles)
            head = device.let(mod(div(number, tiles), heads))
            entry = device.let(div(number, tiles * heads))
            memory = device.shared(self.shared_bytes)
            _Block(self, memory, thread, entry, head, device.let(tile * i32(self.queries))).write()

    @cached_property
    def tiles(self) -> int:
        """Tiles of keys."""
        return -(-self.keys // _KEYS)


class _Block:
    """The work of one block of threads.

    Args:
        kernel: The kernel.
        memory: Shared memory, as bytes.
        thread: Index of the thread.
        entry: Index in the batch.
        head: Head of the queries.
        first: First query.
    """

    def __init__(
        self, kernel: FlashAttention, memory: Buffer, thread: Expr, entry: Expr, head: Expr,
        first: Expr,
    ) -> None:  # fmt: skip
        self.kernel, self.problem, self.memory = kernel, kernel.problem, memory
        self.entry, self.head, self.first = entry, head, first
        self.lane = device.let(mod(thread, WARP))
        self.row = device.let(div(thread, WARP) * i32(kernel.warp_rows))
        self.start: Expr = i32(0)
        warp = (kernel.dtype, memory, self.lane, self.row, kernel.m_tiles)
        if kernel.is_grouped:
            bottom, self.start = wgmma.aligned(memory)
            self.warp = GroupTiles(*warp, bottom, GroupTiles.registers(kernel.query_rows))
        else:
            self.warp = WarpTiles(*warp)
        shared = div(head, self.problem.query.fixed("N") // self.problem.key.fixed("N"))
        self.query = self._copier(self.problem.query, kernel.query_rows, thread, head)
        self.key = self._copier(self.problem.key, kernel.key_rows, thread, shared)
        self.value = self._copier(self.problem.value, kernel.value_rows, thread, shared)
        m_tiles = kernel.m_tiles
        self.rows = _Rows(
            top=device.registers(2 * m_tiles, "float32"),
            total=device.registers(2 * m_tiles, "float32"),
            mixed=self.warp.sums(kernel.size),
            scores=self.warp.sums(_KEYS),
            weights=device.registers(m_tiles * _KEYS // COLUMNS * 2, "uint32"),
        )

    def _copier(self, operand: Operand, tile: SharedTile, thread: Expr, head: Expr) -> Copier:
        return copier_of(
            operand, tile, self.memory, self.kernel.warps * WARP, thread, self.entry, head
        )

    def write(self) -> None:
        """Writes the loop over tiles of keys, and what comes before and after it."""
        count = self._visible_tiles()
        self.query.start(self.first, self.start)
        self._fetch(self.key, i32(0), count)
        self._fetch(self.value, i32(0), count)
        self._clear()
        self._hold_queries()
        with device.loop(count) as tile:
            self._await_tile()
            self._fetch(self.key, tile + i32(1), count)
            self._score(tile)
            self._apply_mask(tile)
            self._exponentiate()
            self._await_tile()
            self._fetch(self.value, tile + i32(1), count)
            self._add_values(tile)
        device.await_copies(0)
        if self.kernel.is_grouped:
            device.ptx("wgmma.wait_group.sync.aligned", 0)
        self._finish()

    def _await_tile(self) -> None:
        """Waits until all but the last copies have arrived, for every thread."""
        device.await_copies(1)
        if self.kernel.is_grouped:  # the tensor cores see them by another way
            device.ptx("fence.proxy.async.shared::cta")
        device.barrier()

    def _hold_queries(self) -> None:
        if isinstance(self.warp, GroupTiles):
            device.await_copies(1)  # they came with the first keys
            device.barrier()
            self.warp.hold(TileView(self.kernel.query_rows, self.start))

    def _visible_tiles(self) -> Expr:
        """Tiles of keys of which some query of the block sees a key."""
        diagonal, every = self.problem.diagonal, self.kernel.tiles
        if diagonal is None:
            return i32(every)
        last = self.first + i32(self.kernel.queries + diagonal + _KEYS - 1)
        return device.let(tirx.max(i32(0), tirx.min(i32(every), div(last, _KEYS))))

    def _slot(self, copier: Copier, tile: Expr) -> Expr:
        """Where a tile lies: after the queries, keys before values."""
        start = max(self.kernel.query_rows.size, self.kernel.results.size)
        if copier is self.value:
            start += 2 * self.kernel.key_rows.size
        return self.start + i32(start) + mod(tile, 2) * i32(copier.tile.size)

    def _fetch(self, copier: Copier, tile: Expr, count: Expr) -> None:
        def start() -> None:
            copier.start(device.let(tile * i32(_KEYS)), self._slot(copier, tile))

        device.only_if(tile < count, start)
        device.close_copies()

    def _clear(self) -> None:
        device.fill(self.rows.top, _LOWEST)
        device.fill(self.rows.total)
        device.fill(self.rows.mixed)

    # One tile

    def _score(self, tile: Expr) -> None:
        """The products of the queries with a tile of keys."""
        kernel, scores = self.kernel, self.rows.scores
        if not kernel.is_grouped:
            device.fill(scores)
        keys = TileView(kernel.key_rows, device.let(self._slot(self.key, tile)))
        self.warp.add_products(scores, TileView(kernel.query_rows, self.start), keys)

    def _apply_mask(self, tile: Expr) -> None:
        """Masks the scores of a tile, where some query does not see it in full."""
        kernel, problem = self.kernel, self.problem
        if self.kernel.is_scaled:
            for at in range(int(self.rows.scores.shape[0])):
                scaled = self.rows.scores[i32(at)] * tirx.const(problem.scale, "float32")
                device.store(self.rows.scores, scaled, [at])
        ends = (tile + i32(1)) * i32(_KEYS)
        partial: list[Expr] = []
        if problem.diagonal is not None:
            partial.append(ends - i32(1) > self.first + self.row + i32(problem.diagonal))
        if kernel.keys % _KEYS:
            partial.append(ends > i32(kernel.keys))
        if problem.mask is not None:
            self._mask(tile)
        elif partial:
            device.only_if(tirx.any(*partial), lambda: self._mask(tile))

    def _mask(self, tile: Expr) -> None:
        scores, problem = self.rows.scores, self.problem
        for at in range(int(scores.shape[0])):
            row, column = self.warp.point_of(at, _KEYS)
            row, key = self.first + row, tile * i32(_KEYS) + column
            score = self._masked(scores[i32(at)], row, key)
            visible = (key < i32(self.kernel.keys)) if self.kernel.keys % _KEYS else None
            if problem.diagonal is not None:
                visible = both(visible, key <= row + i32(problem.diagonal))
            if visible is not None:
                score = tirx.Select(visible, score, tirx.const(-math.inf, "float32"))
            device.store(scores, score, [at])

    def _masked(self, score: Expr, row: Expr, key: Expr) -> Expr:
        """A score under the mask; queries and keys that do not exist read its last element."""
        if self.problem.mask is None:
            return score
        row = tirx.min(row, i32(self.kernel.length - 1))
        key = tirx.min(key, i32(self.kernel.keys - 1))
        wide = [tirx.Cast("int64", i) for i in (self.entry, self.head, row, key)]
        return self.problem.masked(score, *wide)

    def _exponentiate(self) -> None:
        """Turns scores into exponentials, with new maxima, and rescales what was added before."""
        factor = math.log2(math.e) * (1 if self.kernel.is_scaled else self.problem.scale)
        fresh = device.registers(1, "float32")
        shrink = device.registers(1, "float32")
        for number in range(2 * self.kernel.m_tiles):
            places = self._of_row(number, _KEYS)
            top = self.rows.top[i32(number)]
            device.store(fresh, top, [0])
            for at in places:
                device.store(fresh, tirx.max(fresh[i32(0)], self.rows.scores[i32(at)]), [0])
            for mask in (1, 2):
                other = device.shuffle("xor", fresh[i32(0)], mask)
                device.store(fresh, tirx.max(fresh[i32(0)], other), [0])
            self._exp2(shrink, 0, (top - fresh[i32(0)]) * tirx.const(factor, "float32"))
            device.store(self.rows.top, fresh[i32(0)], [number])
            offset = device.let(fresh[i32(0)] * tirx.const(-factor, "float32"))
            total = self.rows.total[i32(number)]
            device.store(self.rows.total, total * shrink[i32(0)], [number])
            for at in places:
                score = self.rows.scores[i32(at)]
                self._exp2(self.rows.scores, at, score * tirx.const(factor, "float32") + offset)
                device.store(self.rows.total, total + score, [number])
            self._rescale(number, shrink[i32(0)])
        self.warp.pack(self.rows.scores, self.rows.weights)

    def _of_row(self, number: int, columns: int) -> list[int]:
        """Places of the sums of the lane's row ``number``, which has so many columns."""
        n_tiles = columns // COLUMNS
        block, half = divmod(number, 2)
        return [(block * n_tiles + c) * 4 + 2 * half + i for c in range(n_tiles) for i in range(2)]

    def _exp2(self, to: Buffer, at: int, value: Expr) -> None:
        device.ptx("ex2.approx.ftz.f32", to[i32(at)], value)

    def _rescale(self, number: int, factor: Expr) -> None:
        for at in self._of_row(number, self.kernel.size):
            device.store(self.rows.mixed, self.rows.mixed[i32(at)] * factor, [at])

    def _add_values(self, tile: Expr) -> None:
        """Adds the values of a tile, weighed by the exponentials."""
        values = TileView(self.kernel.value_rows, device.let(self._slot(self.value, tile)))
        self.warp.add_rows(self.rows.mixed, self.rows.weights, values)

    # The results

    def _finish(self) -> None:
        """Divides by the sums, and stores the results through shared memory, 16 bytes at a time."""
        device.barrier()  # the queries are no longer needed
        for number in range(2 * self.kernel.m_tiles):
            total = self.rows.total[i32(number)]
            for mask in (1, 2):
                device.store(self.rows.total, total + device.shuffle("xor", total, mask), [number])
            device.store(self.rows.total, tirx.const(1.0, "float32") / total, [number])
            self._rescale(number, total)
        self._save_statistics()
        through = TileView(self.kernel.results, self.start)
        out = (self.entry, self.head, self.first)
        self.warp.store(self.rows.mixed, through, self.problem.out, out)

    def _save_statistics(self) -> None:
        """Stores the largest score of every query and one over its sum of exponentials."""
        statistics = self.problem.statistics
        if statistics is None:
            return
        unit = tirx.const(1.0 if self.kernel.is_scaled else self.problem.scale, "float32")
        for number in range(2 * self.kernel.m_tiles):
            row = self.first + self.warp.row_of(number)

            def store(number: int = number, row: Expr = row) -> None:
                place = (self.entry, self.head, row)
                device.store(statistics, self.rows.top[i32(number)] * unit, [*place, 0])
                device.store(statistics, self.rows.total[i32(number)], [*place, 1])

            first_lane = mod(self.lane, 4).equal(i32(0))
            device.only_if(both(first_lane, row < i32(self.kernel.length)), store)


def _match(nest: Nest, model: GpuModel) -> Problem | Refused:
    return match_named(nest, "attention", "attention", Problem.of, lambda p: fits(p, model))


KERNEL = Kernel(
    "attention", _match,
    lambda problem, _plan, writer: FlashAttention(problem, writer.model).write(),
    "attention on tensor cores, scores stay in registers",
    knobs=("queries of a warp", "attention by wgmma"),
)  # fmt: skip
