r"""The derivative of attention on tensor cores, without the matrix of all scores.

With weights :math:`P`, cotangent :math:`G` of the result :math:`O` and :math:`d = \sum G \circ O`
per query: :math:`dV = P^T G`, :math:`dS = P \circ (G V^T - d)`, :math:`dQ = s \cdot dS\, K`,
:math:`dK = s \cdot dS^T Q` (Dao, "FlashAttention-2", 2023). P is computed again, tile by tile, from
what was kept per query.

Three kernels, none of which adds to what another block adds to, so that results are the same every
time: one for what is needed per query; one whose blocks own queries and go through the keys, for
dQ; one whose blocks own keys and go through the queries, for dK and dV. The price is two more
products than with sums in memory, seven for five. Both passes are one piece of code: a warp owns
rows of two operands (queries and cotangents, or keys and values), tiles of the other two pass by,
and P and dS leave the products in the shape of the factors that the next ones take.

Expected on a device: seven products at about 60 % of the rate of ``mma.sync``, as the forward pass.

What the derivative of attention needs per query, besides its operands.

Expected on a device: result and cotangent are read once, at the speed of a copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx

from tvmgraph.backend.attention import Derivative, Operand, Problem
from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.copies import Copier, SharedTile
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, WARP, both, div, i32, mod
from tvmgraph.backend.cuda.kernels.thread_group import ThreadGroup
from tvmgraph.backend.cuda.kernels.warp_sums import COLUMNS, ROWS
from tvmgraph.backend.cuda.kernels.warp_tiles import (
    TileView,
    WarpTiles,
    copier_of,
    match_named,
    padded,
    takes,
    tile_of,
)
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused
from tvmgraph.backend.target import GpuModel

_WARPS = 4
#: Largest size of a head; the sums of a warp fill its registers.
MAX_SIZE = 128
#: Up to this size a warp owns 32 keys, above 16.
_SMALL = 64
#: Rows of a tile that passes by.
_PASSING = 32


class AttentionGradient(Derivative):
    """The kernels of one derivative."""

    def fits(self, model: GpuModel) -> bool:
        """Whether the kernels take it: known sizes, whole vectors, enough shared memory.

        Args:
            model: The GPU, whose shared memory a block may use.
        """
        problem = self.problem
        operands = (problem.query, problem.key, problem.value, problem.out)
        if not takes(operands) or any(side.fixed("D") > MAX_SIZE for side in operands):
            return False
        passes = (self._over_keys(), self._over_queries())
        return max(p.shared_bytes for p in passes) <= model.shared_per_block

    def write(self) -> None:
        """Writes the kernels."""
        row_statistics = write_row_statistics(self.problem, self.cotangent)
        for one in (self._over_keys(), self._over_queries()):
            one.write(row_statistics)

    def _over_keys(self) -> _Pass:
        problem = self.problem
        return _Pass(
            problem, (problem.query, self.cotangent), (problem.key, problem.value),
            self.results[:1], owns_keys=False,
        )  # fmt: skip

    def _over_queries(self) -> _Pass:
        problem = self.problem
        return _Pass(
            problem, (problem.key, problem.value), (problem.query, self.cotangent),
            self.results[1:], owns_keys=True,
        )  # fmt: skip


@dataclass(frozen=True)
class _Pass:
    """One pass: blocks own rows of two operands, and tiles of the other two pass by.

    Attributes:
        problem: The attention.
        own: What blocks own: queries and cotangents, or keys and values.
        passing: The other two.
        results: Cotangents of what is owned: of the queries, or of keys and values.
        owns_keys: Which of the two it is.
    """

    problem: Problem
    own: tuple[Operand, Operand]
    passing: tuple[Operand, Operand]
    results: tuple[Operand, ...]
    owns_keys: bool

    @cached_property
    def dtype(self) -> str:
        """Type that is multiplied."""
        return str(self.problem.query.buffer.dtype)

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Elements of rows of the first and of the second operand, in shared memory."""
        return padded(self.own[0].fixed("D")), padded(self.own[1].fixed("D"))

    @cached_property
    def m_tiles(self) -> int:
        """Blocks of 16 rows that a warp owns; two sums for each of them must fit."""
        return 1 if self.owns_keys and max(self.sizes) > _SMALL else 2

    @cached_property
    def rows(self) -> int:
        """Rows of a block; those of queries have statistics, whether they exist or not."""
        rows = _WARPS * self.m_tiles * ROWS
        assert ALIGNED % rows == 0
        return rows

    @cached_property
    def own_tiles(self) -> list[SharedTile]:
        """Where owned rows lie, and later the results."""
        return [tile_of(self.rows, size) for size in self.sizes]

    @cached_property
    def passing_tiles(self) -> list[SharedTile]:
        """What passes by, two at a time of each."""
        return [tile_of(_PASSING, size) for size in self.sizes]

    @cached_property
    def shared_bytes(self) -> int:
        """Bytes of shared memory."""
        return sum(t.size for t in self.own_tiles) + 2 * sum(t.size for t in self.passing_tiles)

    @cached_property
    def tiles(self) -> int:
        """Tiles that pass by, of one head."""
        return -(-self.passing[0].fixed("S") // _PASSING)

    def write(self, row_statistics: Buffer) -> None:
        """Writes the kernel."""
        batch, heads = self.own[0].fixed("B"), self.own[0].fixed("N")
        blocks = -(-self.own[0].fixed("S") // self.rows)
        with device.launch(batch * heads * blocks, _WARPS * WARP) as (number, thread):
            part = mod(number, blocks)
            if not self.owns_keys:  # the last queries see the most keys: they go first
                part = i32(blocks - 1) - part
            head = device.let(mod(div(number, blocks), heads))
            entry = device.let(div(number, blocks * heads))
            memory = device.shared(self.shared_bytes)
            first = device.let(part * i32(self.rows))
            _Block(self, memory, row_statistics, thread, entry, head, first).write()


class _Block:
    """The work of one block of threads.

    Args:
        plan: The pass.
        memory: Shared memory, as bytes.
        row_statistics: What is kept per query.
        thread: Index of the thread.
        entry: Index in the batch.
        head: Head of the rows that the block owns.
        first: First of these rows.
    """

    def __init__(
        self, plan: _Pass, memory: Buffer, row_statistics: Buffer, thread: Expr, entry: Expr,
        head: Expr, first: Expr,
    ) -> None:  # fmt: skip
        self.plan, self.problem, self.row_statistics = plan, plan.problem, row_statistics
        self.memory, self.thread = memory, thread
        self.entry, self.head, self.first = entry, head, first
        lane, row = mod(thread, WARP), div(thread, WARP) * i32(plan.m_tiles * ROWS)
        self.warp = WarpTiles(plan.dtype, memory, device.let(lane), device.let(row), plan.m_tiles)
        #: Head of the queries at hand; those that share keys are gone through in turn.
        self.query_head = self.head
        self.scores, self.slopes = (self.warp.sums(_PASSING) for _ in range(2))
        self.packed = device.registers(plan.m_tiles * _PASSING // COLUMNS * 2, "uint32")
        self.sums = [self.warp.sums(size) for size, _ in zip(plan.sizes, plan.results)]
        self.held = device.registers(self._row_statistics_held, "float32")

    @cached_property
    def _row_statistics_held(self) -> int:
        """Figures that a lane holds: of its own queries, or of those that pass by."""
        return _PASSING // COLUMNS * 4 if self.plan.owns_keys else self.plan.m_tiles * 4

    def write(self) -> None:
        """Writes the loops over heads and tiles, and what comes before and after them."""
        plan, starts = self.plan, self._own_starts()
        own = [self._copier(o, t, self.head) for o, t in zip(plan.own, plan.own_tiles)]
        for copier, start in zip(own, starts):
            copier.start(self.first, start)
            copier.finish(start)
        for sums in self.sums:
            device.fill(sums)
        share = self.problem.query.fixed("N") // self.problem.key.fixed("N")
        if not plan.owns_keys:
            self._pass(div(self.head, share))
        elif share == 1:
            self._pass(self.head)
        else:
            with device.loop(share) as which:
                self.query_head = device.let(self.head * i32(share) + which)
                device.barrier()  # everybody is done with the tiles of the head before
                self._pass(self.query_head)
        self._finish()

    def _own_starts(self) -> list[Expr]:
        return [i32(0), i32(self.plan.own_tiles[0].size)]

    def _copier(self, operand: Operand, tile: SharedTile, head: Expr) -> Copier:
        threads = _WARPS * WARP
        return copier_of(operand, tile, self.memory, threads, self.thread, self.entry, head)

    # Tiles that pass by

    def _pass(self, head: Expr) -> None:
        """Goes through the tiles of one head of the operands that pass by."""
        plan = self.plan
        head = device.let(head)
        copiers = [self._copier(o, t, head) for o, t in zip(plan.passing, plan.passing_tiles)]
        start, end = self._visible()
        self._fetch(copiers, start, end)
        self._finish_copies(copiers, start, end)
        with device.loop(device.let(tirx.max(end - start, i32(0)))) as turn:
            tile = device.let(start + turn)
            device.await_copies(0)
            device.barrier()  # the tile is there, and everybody is done with the one before
            self._fetch(copiers, tile + i32(1), end)
            places = [
                TileView(t, device.let(self._slot(which, tile)))
                for which, t in enumerate(plan.passing_tiles)
            ]
            self._multiply(places, tile)
            self._finish_copies(copiers, tile + i32(1), end)
        device.await_copies(0)

    def _visible(self) -> tuple[Expr, Expr]:
        """The first tile of which the block sees something, and the one after the last."""
        diagonal, every = self.problem.diagonal, i32(self.plan.tiles)
        if diagonal is None:
            return i32(0), every
        if self.plan.owns_keys:  # from the query on that sees the first key
            start = div(tirx.max(i32(0), self.first - i32(diagonal)), _PASSING)
            return device.let(tirx.min(start, every)), every
        last = self.first + i32(self.plan.rows + diagonal + _PASSING - 1)
        return i32(0), device.let(tirx.min(every, div(tirx.max(i32(0), last), _PASSING)))

    def _slot(self, which: int, tile: Expr) -> Expr:
        """Where a tile lies: behind what the block owns."""
        plan = self.plan
        start = sum(t.size for t in plan.own_tiles)
        start += 2 * plan.passing_tiles[0].size if which else 0
        return i32(start) + mod(tile, 2) * i32(plan.passing_tiles[which].size)

    def _fetch(self, copiers: list[Copier], tile: Expr, end: Expr) -> None:
        def start() -> None:
            for which, copier in enumerate(copiers):
                copier.start(device.let(tile * i32(_PASSING)), self._slot(which, tile))

        device.only_if(tile < end, start)
        device.close_copies()

    def _finish_copies(self, copiers: list[Copier], tile: Expr, end: Expr) -> None:
        if all(copier.route.is_async for copier in copiers):
            return

        def finish() -> None:
            for which, copier in enumerate(copiers):
                copier.finish(self._slot(which, tile))

        device.only_if(tile < end, finish)

    def _multiply(self, places: list[TileView], tile: Expr) -> None:
        """All products of a tile."""
        own = [TileView(t, at) for t, at in zip(self.plan.own_tiles, self._own_starts())]
        if self.plan.owns_keys:
            self._read_passing_row_statistics(tile)
        device.fill(self.scores)
        device.fill(self.slopes)
        self.warp.add_products(self.scores, own[0], places[0])
        self.warp.add_products(self.slopes, own[1], places[1])
        if not self.plan.owns_keys:
            self._read_own_row_statistics()  # every time: kept, they would spill others
        partial = self._partial(tile)
        if partial is None or self.problem.mask is not None:
            self._weigh(tile, masked=partial is not None)
        else:
            emit.when(partial, lambda: self._weigh(tile, True), lambda: self._weigh(tile, False))
        if self.plan.owns_keys:
            self.warp.pack(self.scores, self.packed)
            self.warp.add_rows(self.sums[1], self.packed, places[1])
        self.warp.pack(self.slopes, self.packed)
        self.warp.add_rows(self.sums[0], self.packed, places[0])

    # Weights

    def _read_own_row_statistics(self) -> None:
        """Figures of the lane's queries."""
        for number in range(2 * self.plan.m_tiles):
            query = self.first + self.warp.row_of(number)
            self._read_row_statistics(query, 2 * number, 2)

    def _read_passing_row_statistics(self, tile: Expr) -> None:
        """Figures of the queries of a tile that the lane has columns of."""
        for column in range(_PASSING // COLUMNS):
            query = tile * i32(_PASSING) + self.warp.column_of(column, 0)
            self._read_row_statistics(query, 4 * column, VECTOR_BYTES // 4)

    def _read_row_statistics(self, query: Expr, to: int, count: int) -> None:
        place = self.row_statistics[self.entry, self.query_head, query, i32(0)]
        device.get_global(place, [self.held[i32(to + i)] for i in range(count)])

    def _row_statistics(self, at: int) -> tuple[Expr, Expr]:
        """The logarithm and ``d`` of the query of a sum."""
        n_tiles = _PASSING // COLUMNS
        block, i = divmod(at, 4)
        if self.plan.owns_keys:
            start = 4 * (block % n_tiles) + 2 * (i % 2)
        else:
            start = 2 * (block // n_tiles * 2 + i // 2)
        return self.held[i32(start)], self.held[i32(start + 1)]

    def _point(self, at: int, tile: Expr) -> tuple[Expr, Expr]:
        """Query and key of a sum."""
        row, column = self.warp.point_of(at, _PASSING)
        own, other = self.first + row, tile * i32(_PASSING) + column
        return (other, own) if self.plan.owns_keys else (own, other)

    def _partial(self, tile: Expr) -> Expr | None:
        """Whether some weight of the warp is hidden or does not exist; None where none ever is."""
        problem, found = self.problem, []
        ours = self.first + self.warp.row
        theirs = tile * i32(_PASSING)
        if problem.diagonal is not None:
            if self.plan.owns_keys:
                last_key, query = ours + i32(self.plan.m_tiles * ROWS - 1), theirs
            else:
                last_key, query = theirs + i32(_PASSING - 1), ours
            found.append(last_key > query + i32(problem.diagonal))
        keys = problem.key.fixed("S")
        if not self.plan.owns_keys and keys % _PASSING:
            found.append(theirs + i32(_PASSING) > i32(keys))
        return tirx.any(*found) if found else None

    def _weigh(self, tile: Expr, masked: bool) -> None:
        """Turns scores into weights and slopes into those of the scores."""
        problem, scale = self.problem, math.log2(math.e)
        if problem.mask is None:
            scale *= problem.scale
        for at in range(int(self.scores.shape[0])):
            query, key = self._point(at, tile)
            logarithm, mean = self._row_statistics(at)
            score, fixed = self.scores[i32(at)], None
            if problem.mask is not None:
                score, fixed = self._masked(score, query, key)
            exponent = score * tirx.const(scale, "float32") - logarithm
            device.ptx("ex2.approx.ftz.f32", self.scores[i32(at)], exponent)
            if masked:
                self._apply_mask(at, query, key)
            slope = self.scores[i32(at)] * (self.slopes[i32(at)] - mean)
            if fixed is not None:
                slope = tirx.Select(fixed, tirx.const(0.0, "float32"), slope)
            device.store(self.slopes, slope, [at])

    def _masked(self, score: Expr, query: Expr, key: Expr) -> tuple[Expr, Expr | None]:
        """A scaled score under the mask, and where it does not depend on query and key.

        Queries and keys that do not exist read the mask's last element.
        """
        problem = self.problem
        query = tirx.min(query, i32(problem.query.fixed("S") - 1))
        key = tirx.min(key, i32(problem.key.fixed("S") - 1))
        place = (self.entry, self.query_head, query, key)
        value = problem.mask_at(*(tirx.Cast("int64", index) for index in place))
        scaled = score * tirx.const(problem.scale, "float32")
        if problem.fill is None:
            return scaled + tirx.Cast("float32", value), None
        fixed = device.let(value)
        return tirx.Select(fixed, tirx.const(problem.fill, "float32"), scaled), fixed

    def _apply_mask(self, at: int, query: Expr, key: Expr) -> None:
        """Weights are zero where a query does not see a key, and for keys that do not exist."""
        visible, keys = None, self.problem.key.fixed("S")
        if not self.plan.owns_keys and keys % _PASSING:
            visible = key < i32(keys)
        if self.problem.diagonal is not None:
            visible = both(visible, key <= query + i32(self.problem.diagonal))
        if visible is not None:
            zero = tirx.const(0.0, "float32")
            device.store(self.scores, tirx.Select(visible, self.scores[i32(at)], zero), [at])

    # The results

    def _finish(self) -> None:
        """Scales what belongs to the scores, and stores the results."""
        first = self.sums[0]
        for at in range(int(first.shape[0])):
            scaled = first[i32(at)] * tirx.const(self.problem.scale, "float32")
            device.store(first, scaled, [at])
        device.barrier()  # what the block owned is no longer needed
        at = (self.entry, self.head, self.first)
        for sums, tile, start, out in zip(
            self.sums, self.plan.own_tiles, self._own_starts(), self.plan.results
        ):
            self.warp.store(sums, TileView(tile, start), out, at)


def _match(nest: Nest, model: GpuModel) -> AttentionGradient | Refused:
    name, what = "attention_gradient", "gradient of attention"
    return match_named(nest, name, what, AttentionGradient.of, lambda found: found.fits(model))


KERNEL = Kernel(
    "attention_gradient", _match, lambda gradient, _plan, _writer: gradient.write(),
    "gradient of attention on tensor cores, scores again",
)  # fmt: skip


# ---- statistics of rows -------------------------------------------------------------------------


#: Figures are kept for a multiple of this many queries, so that tiles read whole ones.
ALIGNED = 128
_LANES, _THREADS = 8, 256


def write_row_statistics(problem: Problem, cotangent: Operand) -> Buffer:
    """Writes the kernel.

    Args:
        problem: The attention.
        cotangent: That of its result.

    Returns:
        Two numbers per query, [batch, heads, queries, 2], for a multiple of :data:`ALIGNED`
        queries: the logarithm to the base 2 of the sum of its exponentials, infinite for those
        that do not exist, so that their weights are zero; and the sum of result times cotangent.
    """
    query = problem.query
    length = -(-query.fixed("S") // ALIGNED) * ALIGNED
    shape = [query.fixed("B"), query.fixed("N"), length, 2]
    row_statistics = device.device_memory(shape, problem.dtype)
    _write(problem, cotangent, row_statistics)
    return row_statistics


def _write(problem: Problem, cotangent: Operand, row_statistics: Buffer) -> None:
    out = problem.out
    lanes = max(2, 1 << (-(-out.fixed("D") // _LANES) - 1).bit_length())
    batch, heads, length = (int(extent) for extent in row_statistics.shape[:3])
    groups = _THREADS // lanes
    assert problem.statistics is not None
    with device.launch(batch * heads * length // groups, _THREADS) as (block, thread):
        number = device.let(block * i32(groups) + div(thread, lanes))
        query = device.let(mod(number, length))
        entry = device.let(div(number, length * heads))
        head = device.let(mod(div(number, length), heads))
        first = device.let(mod(thread, lanes) * i32(_LANES))
        mean = device.fill(device.registers(1, problem.dtype))
        exists = query < i32(problem.query.fixed("S"))
        inside = (first < i32(out.fixed("D"))) if out.fixed("D") != lanes * _LANES else None

        def add() -> None:
            left, right = (
                _read_vector(side, (entry, head, query), first) for side in (out, cotangent)
            )
            for i in range(_LANES):
                one, other = (tirx.Cast(problem.dtype, side[i32(i)]) for side in (left, right))
                device.store(mean, mean[i32(0)] + one * other, [0])

        device.only_if(both(exists, inside), add)
        ThreadGroup(lanes, mod(thread, lanes), groups).combine([mean], lambda a, b: [a[0] + b[0]])
        _keep_row_statistics(
            problem.statistics, row_statistics, (entry, head, query), exists, mean, first
        )


def _keep_row_statistics(
    statistics: Buffer, row_statistics: Buffer, at: tuple[Expr, Expr, Expr], exists: Expr,
    mean: Buffer, first: Expr,
) -> None:  # fmt: skip
    """Stores what one query needs, by the first of its lanes."""

    def keep() -> None:
        found = device.registers(2, "float32")
        device.store(found, tirx.const(math.inf, "float32"), [0])

        def read() -> None:
            logarithm = tirx.log2(statistics[(*at, i32(1))])
            top = statistics[(*at, i32(0))] * tirx.const(math.log2(math.e), "float32")
            device.store(found, top - logarithm, [0])

        device.only_if(exists, read)
        device.store(found, mean[i32(0)], [1])
        device.put_global(row_statistics[(*at, i32(0))], [found[i32(i)] for i in range(2)])

    device.only_if(first < i32(1), keep)


def _read_vector(operand: Operand, at: tuple[Expr, Expr, Expr], first: Expr) -> Buffer:
    """Eight neighbouring elements of a row."""
    held = device.registers(_LANES, str(operand.buffer.dtype))

    def read(lane: Expr) -> None:
        device.store(held, operand.buffer[operand.at(*at, first + lane)], [lane])

    if operand.layout[-1] == "D":
        with device.vector(_LANES) as lane:
            read(lane)
    else:
        for number in range(_LANES):
            read(i32(number))
    return held
