"""The kernel of a contraction on tensor cores: matrix products and convolutions of any layout.

Blocks are numbered so that those that run together share rows and columns in the second-level
cache. A convolution is the product of a matrix that is never stored, whose lines are the positions
of the image and whose steps are channels and taps of the window: its elements are found when tiles
are copied. The sums of a warp go through shared memory once, so that the epilogue sees neighbouring
columns in one thread and stores them 16 bytes at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.schedule import emit
from tvmgraph.schedule.contraction import Contraction
from tvmgraph.schedule.cuda import device
from tvmgraph.schedule.cuda.copies import Copier, preferred_orientation
from tvmgraph.schedule.cuda.device import WARP, div, i32, mod, split
from tvmgraph.schedule.cuda.factor import Factor
from tvmgraph.schedule.cuda.mma import COLUMNS, ROWS, TRANSPOSABLE, MmaCore
from tvmgraph.schedule.cuda.output import Output
from tvmgraph.schedule.cuda.product_plan import Extents, ProductPlan
from tvmgraph.schedule.cuda.shared_tile import SharedTile
from tvmgraph.schedule.program import product
from tvmgraph.schedule.types import Buffer, Expr, Var

#: Rows of tiles that are worked on together, to share what they read.
_TOGETHER = 8
#: Columns of a strip that a warp stores at once, and floats between two rows of it: a half-warp
#: writes four rows of eight floats, which then lie in different banks.
_STRIP, _STRIP_GAP = 64, 8
#: Threads of a block that only adds partial sums.
_ADDERS = 256


def extents_of(contraction: Contraction) -> Extents:
    """Sizes of the products."""
    groups = (contraction.batch, contraction.rows, contraction.columns, contraction.reduce)
    return Extents(*(product(axis.extent for axis in group) for group in groups))


@dataclass(frozen=True)
class Block:
    """What a block of threads computes.

    Attributes:
        thread: Index of the thread.
        batch: Values of the batch axes.
        matrix: Index of the product.
        row: First row.
        column: First column.
        part: Which part of the depth.
    """

    thread: Expr
    batch: dict[Var, Expr]
    matrix: Expr
    row: Expr
    column: Expr
    part: Expr


@dataclass(frozen=True)
class TensorCoreGemm:
    """Writes the kernel.

    Attributes:
        contraction: What is computed.
        left: The operand of the rows.
        right: The operand of the columns.
        plan: Shape of the kernel.
    """

    contraction: Contraction
    left: Factor
    right: Factor
    plan: ProductPlan

    @cached_property
    def extents(self) -> Extents:
        """Sizes of the products."""
        return extents_of(self.contraction)

    @cached_property
    def output(self) -> Output:
        """What is stored."""
        return Output(self.contraction)

    def write(self) -> None:
        """Writes the kernel, and one that adds partial sums where the depth is divided."""
        plan, extents = self.plan, self.extents
        down, across = plan.tiles(extents)
        partial = None
        if plan.splits > 1:
            size = plan.splits * extents.batch * extents.rows * extents.columns
            partial = emit.workspace([size], self.contraction.dtype)
        blocks = extents.batch * down * across * plan.splits
        with device.launch(blocks, plan.grid.threads) as (number, thread):
            self._block(block_of(self.contraction, plan, extents, number, thread), partial)
        if partial is not None:
            add_parts(self.contraction, self.output, extents, plan.splits, partial)

    def _block(self, block: Block, partial: Buffer | None) -> None:
        tiles = [self._tile(self.left, self.plan.grid.rows)]
        tiles.append(self._tile(self.right, self.plan.grid.columns))
        ring = sum(tile.size for tile in tiles) * self.plan.stages
        strips = (self.plan.grid.threads // WARP) * ROWS * self._strip_pitch * 4
        memory = device.shared(max(ring, strips))
        core = MmaCore(self.plan.grid, self.left.dtype, *tiles, memory, block.thread)
        core.clear()
        copiers = [
            Copier(factor, tile, memory, self.plan.grid.threads, block.thread, block.batch, first)
            for factor, tile, first in zip(
                (self.left, self.right), tiles, (block.row, block.column)
            )
        ]
        pipeline = Ring(copiers, self.plan, self.extents)
        pipeline.run(block.part, core.multiply)
        self._store(core, block, memory, partial)

    def _tile(self, factor: Factor, lines: int) -> SharedTile:
        by_line = factor.dtype not in TRANSPOSABLE or preferred_orientation(factor)
        return SharedTile(lines, self.plan.depth, factor.itemsize, by_line)

    # From registers to memory

    @property
    def _strip(self) -> int:
        return min(self.plan.grid.warp_columns, _STRIP)

    @property
    def _strip_pitch(self) -> int:
        return self._strip + _STRIP_GAP

    def _store(self, core: MmaCore, block: Block, memory: Buffer, partial: Buffer | None) -> None:
        """Stores the sums of every warp, strip by strip of 16 rows."""
        device.barrier()  # all warps have read the last tiles
        dtype = self.contraction.dtype
        floats = device.view(memory, dtype, int(memory.shape[0]) // 4)
        warp = div(block.thread, WARP)
        own = device.let(warp * i32(ROWS * self._strip_pitch))
        for row in range(core.down):
            for first in range(0, core.across * COLUMNS, self._strip):
                self._fill_strip(core, floats, own, row, first)
                device.warp_barrier()
                self._store_strip(core, floats, own, (row, first), block, partial)
                device.warp_barrier()

    def _fill_strip(
        self, core: MmaCore, floats: Buffer, own: Expr, row: int, first: int
    ) -> None:
        lane = core.lane
        for column in range(self._strip // COLUMNS):
            at = core.at(row, first // COLUMNS + column)
            for half in range(2):
                line = div(lane, 4) + i32(8 * half)
                to = own + line * i32(self._strip_pitch) + mod(lane, 4) * i32(2)
                device.move(floats, to + i32(column * COLUMNS), core.sums, at + 2 * half, 2)

    def _store_strip(
        self,
        core: MmaCore,
        floats: Buffer,
        own: Expr,
        place: tuple[int, int],
        block: Block,
        partial: Buffer | None,
    ) -> None:
        lanes = 4 if partial is not None and self.extents.columns % 4 == 0 else 1
        lanes = self.output.lanes if partial is None else lanes
        lanes = min(lanes, self._strip)
        across = min(WARP, self._strip // lanes)
        down = WARP // across
        sweeps = self._strip // (across * lanes)
        with device.loop(ROWS // down * sweeps) as turn:
            line = device.let(div(core.lane, across) + div(turn, sweeps) * i32(down))
            column = mod(core.lane, across) + mod(turn, sweeps) * i32(across)
            column = device.let(column * i32(lanes))
            source = own + line * i32(self._strip_pitch) + column
            row_at = block.row + core.first_row + i32(place[0] * ROWS) + line
            column_at = block.column + core.first_column + i32(place[1]) + column
            self._store_run(floats, source, lanes, row_at, column_at, block, partial)

    def _store_run(
        self,
        floats: Buffer,
        source: Expr,
        lanes: int,
        row: Expr,
        column: Expr,
        block: Block,
        partial: Buffer | None,
    ) -> None:
        def store() -> None:
            if partial is not None:
                matrix = block.part * i32(self.extents.batch) + block.matrix
                at = (matrix * i32(self.extents.rows) + row) * i32(self.extents.columns) + column
                device.move(partial, at, floats, source, lanes)
                return
            sums = device.registers(lanes, self.contraction.dtype)
            width = min(lanes, 4)
            for first in range(0, lanes, width):
                device.move(sums, first, floats, source + i32(first), width)
            self.output.write(block.batch, row, column, lanes, lambda lane: sums[i32(lane)])

        device.only_if(self._inside(row, column), store)

    def _inside(self, row: Expr, column: Expr) -> Expr | None:
        grid, extents = self.plan.grid, self.extents
        inside = (row < i32(extents.rows)) if extents.rows % grid.rows else None
        if extents.columns % grid.columns:
            inside = device.both(inside, column < i32(extents.columns))
        return inside


@dataclass(frozen=True)
class Ring:
    """Slots of shared memory that tiles pass through.

    Attributes:
        copiers: Fill the slots, one per factor.
        plan: Says how many there are, and how deep.
        extents: Sizes of the products.
    """

    copiers: list[Copier]
    plan: ProductPlan
    extents: Extents

    def run(self, part: Expr, multiply: Callable[[Expr, Expr], None]) -> None:
        """Calls ``multiply`` with the places of both tiles, for all steps of a part of the depth.

        One barrier per step does for two: when all threads have passed it, the tile is there, and
        the slot of the step before is free to be filled again.
        """
        for copier in self.copiers:
            copier.prepare()
        stages = self.plan.stages
        total = -(-self.extents.depth // self.plan.depth)
        whole = self.plan.slots(self.extents)
        first = part * i32(whole)
        count: Expr = i32(total)
        if self.plan.splits > 1:
            count = device.let(tirx.min(i32(whole), i32(total) - first))
        for ahead in range(stages - 1):
            self._fetch(first, i32(ahead), count, finish=True)
        with device.loop(count) as step:
            device.await_copies(stages - 2)
            device.barrier()
            self._fetch(first, step + i32(stages - 1), count)
            multiply(*self._slots(step))
            self._finish(step + i32(stages - 1), count)
        device.await_copies(0)

    def _slots(self, step: Expr) -> list[Expr]:
        """Where the tiles of a step begin."""
        slot = device.let(mod(step, self.plan.stages))
        places, start = [], 0
        for copier in self.copiers:
            places.append(slot * i32(copier.tile.size) + i32(start))
            start += copier.tile.size * self.plan.stages
        return places

    def _fetch(self, first: Expr, step: Expr, count: Expr, finish: bool = False) -> None:
        def start() -> None:
            depth = device.let((first + step) * i32(self.plan.depth))
            for copier, slot in zip(self.copiers, self._slots(step)):
                copier.start(depth, slot)
                if finish:
                    copier.finish(slot)

        device.only_if(step < count, start)
        device.close_copies()  # an empty group too: the number of groups counts the steps

    def _finish(self, step: Expr, count: Expr) -> None:
        if all(copier.route.is_async for copier in self.copiers):
            return

        def finish() -> None:
            for copier, slot in zip(self.copiers, self._slots(step)):
                copier.finish(slot)

        device.only_if(step < count, finish)


def block_of(
    contraction: Contraction, plan: ProductPlan, extents: Extents, number: Expr, thread: Expr
) -> Block:
    """What block ``number`` computes.

    Tiles are numbered down strips of ``_TOGETHER`` rows of tiles: blocks that run at the same time
    then need about as many rows as columns, which the second-level cache holds.
    """
    down, across = plan.tiles(extents)
    tile = mod(number, down * across)
    rest = div(number, down * across)
    strip = _TOGETHER * across
    top = device.let(div(tile, strip) * i32(_TOGETHER))
    inner = device.let(mod(tile, strip) if strip < down * across else tile)
    height: Expr = i32(_TOGETHER)
    if down % _TOGETHER:
        height = device.let(tirx.min(i32(down) - top, i32(_TOGETHER)))
    row = device.let((top + tirx.truncmod(inner, height)) * i32(plan.grid.rows))
    column = device.let(tirx.truncdiv(inner, height) * i32(plan.grid.columns))
    part, matrix = div(rest, extents.batch), device.let(mod(rest, extents.batch))
    batch = {var: device.let(v) for var, v in split(matrix, contraction.batch).items()}
    return Block(thread, batch, matrix, row, column, device.let(part))


def add_parts(
    contraction: Contraction, output: Output, extents: Extents, parts: int, partial: Buffer
) -> None:
    """Writes the kernel that adds partial sums, always in the same order, and finishes them."""
    lanes = min(4, output.lanes)
    per_row = extents.columns // lanes
    results = extents.batch * extents.rows * per_row
    with device.launch(-(-results // _ADDERS), _ADDERS) as (number, thread):
        at = device.let(number * i32(_ADDERS) + thread)

        def add() -> None:
            sums = device.registers(lanes, contraction.dtype)
            held = device.registers(lanes, contraction.dtype)
            device.move(sums, 0, partial, at * i32(lanes), lanes)
            with device.loop(parts - 1) as part:
                start = (part + i32(1)) * i32(results * lanes) + at * i32(lanes)
                device.move(held, 0, partial, start, lanes)
                for lane in range(lanes):
                    device.store(sums, sums[i32(lane)] + held[i32(lane)], [lane])
            line = device.let(div(at, per_row))
            batch = split(div(line, extents.rows), contraction.batch)
            row = mod(line, extents.rows)
            column = mod(at, per_row) * i32(lanes)
            output.write(batch, row, column, lanes, lambda lane: sums[i32(lane)])

        device.only_if(None if results % _ADDERS == 0 else at < i32(results), add)


__all__ = ["Block", "Ring", "TensorCoreGemm", "add_parts", "block_of", "extents_of"]
