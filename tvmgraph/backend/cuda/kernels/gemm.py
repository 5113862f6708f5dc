"""The kernel of a contraction: matrix products and convolutions of any layout.

Blocks are numbered so that those that run together share rows and columns in the second-level
cache. A convolution is the product of a matrix that is never stored, whose rows are the positions
of the image and whose columns are channels and taps of the window: its elements are found when
tiles are copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device, wgmma
from tvmgraph.backend.cuda.kernels.copies import Copier, SharedTile, preferred_orientation
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, WARP, div, i32, mod, split
from tvmgraph.backend.cuda.kernels.gemm_operand import GemmOperand
from tvmgraph.backend.cuda.kernels.gemm_plan import Extents, GemmPlan, ThreadGrid
from tvmgraph.backend.cuda.kernels.mma import TRANSPOSABLE, MmaCore
from tvmgraph.backend.cuda.kernels.output import Output, Sink
from tvmgraph.backend.cuda.kernels.thread_group import SplitResults
from tvmgraph.backend.cuda.kernels.warp_sums import Core, WarpSums
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var

#: Rows of tiles that are worked on together, to share what they read.
_TOGETHER = 8
#: Threads of a block that only adds partial sums.
_ADDERS = 256
#: Partial sums that one of them adds while there are threads for the others.
_PER_ADDER = 8


def extents_of(contraction: Contraction) -> Extents:
    """Sizes of the products.

    Args:
        contraction: A matrix product or convolution.

    Returns:
        Batch, M, N and K, and the bytes that are read and written.
    """
    batch, rows, columns, k_size = contraction.extents
    read = sum(_bytes(side.load.source) for side in (contraction.left, contraction.right))
    end = contraction.epilogue
    moved = sum(dtype_bytes(str(buffer.dtype)) for buffer in end.buffers)
    sources = {hash(load.source): load.source for load in end.loads}
    sources.pop(hash(contraction.sums), None)
    whole = [source for source in sources.values() if _elements(source) >= batch * rows * columns]
    moved += sum(dtype_bytes(str(source.dtype)) for source in whole)
    return Extents(batch, rows, columns, k_size, read, moved)


def _elements(buffer: Buffer) -> int:
    return product(static_shape(buffer) or ())


def _bytes(buffer: Buffer) -> int:
    return _elements(buffer) * dtype_bytes(str(buffer.dtype))


@dataclass(frozen=True)
class Block:
    """What a block of threads computes.

    Attributes:
        batch: Values of the batch axes.
        matrix: Index of the product.
        row: First row.
        column: First column.
        split_index: Which split of K.
    """

    batch: dict[Var, Expr]
    matrix: Expr
    row: Expr
    column: Expr
    split_index: Expr


@dataclass(frozen=True)
class Gemm:
    """Writes the kernel.

    Attributes:
        contraction: What is computed.
        left: The operand of the rows.
        right: The operand of the columns.
        plan: Shape of the kernel.
    """

    contraction: Contraction
    left: GemmOperand
    right: GemmOperand
    plan: GemmPlan

    @cached_property
    def extents(self) -> Extents:
        """Sizes of the products."""
        return extents_of(self.contraction)

    def write(self) -> None:
        """Writes the kernel, and one that adds partial sums where K is divided."""
        plan, extents = self.plan, self.extents
        m_tiles, n_tiles = plan.tiles(extents)
        output, partial = Output(self.contraction), None
        if plan.splits > 1:
            size = plan.splits * extents.batch * extents.rows * extents.columns
            partial = emit.workspace([size], self.contraction.dtype)
        blocks = extents.batch * m_tiles * n_tiles * plan.splits
        with device.launch(blocks, plan.grid.threads) as (number, thread):
            block = block_of(self.contraction, plan, extents, number)
            self._block(block, thread, output, partial)
        if partial is not None:
            add_partials(self.contraction, output, extents, plan.splits, partial)

    def _block(self, block: Block, thread: Expr, output: Output, partial: Buffer | None) -> None:
        grid = self.plan.grid
        left, right = self._tile(self.left, grid.rows), self._tile(self.right, grid.columns)
        core, memory = self._core(left, right, thread)
        core.clear()
        copiers = [
            Copier(factor, tile, memory, grid.threads, thread, block.batch, first)
            for factor, tile, first in (
                (self.left, left, block.row),
                (self.right, right, block.column),
            )
        ]
        MultistagePipeline(copiers, self.plan, self.extents, core.start).run(
            block.split_index, core
        )
        place = self._partials_offset(block) if partial is not None else None
        core.store(
            Sink(output, self.extents, grid, block.batch, block.row, block.column, partial, place)
        )

    def _core(
        self, left: SharedTile, right: SharedTile, thread: Expr
    ) -> tuple[SimtCore | WarpSums, Buffer]:
        """What multiplies, and the shared memory of the block."""
        grid, dtype = self.plan.grid, self.left.dtype
        size = (left.size + right.size) * self.plan.stages
        if isinstance(grid, ThreadGrid):
            memory = device.shared(size)
            return SimtCore(grid, dtype, left, right, memory, thread), memory
        if grid.is_grouped:
            memory = device.shared(max(size, WarpSums.scratch(grid)) + wgmma.ALIGNMENT)
            return wgmma.GroupCore(grid, dtype, left, right, memory, thread), memory
        memory = device.shared(max(size, WarpSums.scratch(grid)))
        return MmaCore(grid, dtype, left, right, memory, thread), memory

    def _tile(self, factor: GemmOperand, mn_size: int) -> SharedTile:
        if isinstance(self.plan.grid, ThreadGrid):
            k_major = False
        else:
            k_major = factor.dtype not in TRANSPOSABLE or preferred_orientation(factor)
        return SharedTile(mn_size, self.plan.k_block, factor.itemsize, k_major)

    def _partials_offset(self, block: Block) -> Expr:
        """Where the partial sums of this split of this product begin."""
        matrix = block.split_index * i32(self.extents.batch) + block.matrix
        return device.let(matrix * i32(self.extents.rows * self.extents.columns))


def block_of(contraction: Contraction, plan: GemmPlan, extents: Extents, number: Expr) -> Block:
    """What block ``number`` computes.

    Tiles are numbered along strips of ``_TOGETHER`` rows of tiles: blocks that run at the same time
    then need about as many rows as columns, which the second-level cache holds.

    Args:
        contraction: The contraction.
        plan: The tile and how many blocks share its K.
        extents: Batch, M, N and K.
        number: Index of the block.
    """
    m_tiles, n_tiles = plan.tiles(extents)
    tile = mod(number, m_tiles * n_tiles)
    rest = div(number, m_tiles * n_tiles)
    strip = _TOGETHER * n_tiles
    top = device.let(div(tile, strip) * i32(_TOGETHER))
    inner = device.let(mod(tile, strip) if strip < m_tiles * n_tiles else tile)
    height: Expr = i32(_TOGETHER)
    if m_tiles % _TOGETHER:
        height = device.let(tirx.min(i32(m_tiles) - top, i32(_TOGETHER)))
    row = device.let((top + tirx.truncmod(inner, height)) * i32(plan.grid.rows))
    column = device.let(tirx.truncdiv(inner, height) * i32(plan.grid.columns))
    split_index, matrix = div(rest, extents.batch), device.let(mod(rest, extents.batch))
    batch = {var: device.let(v) for var, v in split(matrix, contraction.batch).items()}
    return Block(batch, matrix, row, column, device.let(split_index))


def add_partials(
    contraction: Contraction, output: Output, extents: Extents, splits: int, partial: Buffer
) -> None:
    """Writes the kernel that adds partial sums, always in the same order, and finishes them.

    Where there are many splits, several threads share those of a vector of results.

    Args:
        contraction: The contraction, which has the stage after the sums.
        output: Where results go, and how many are neighbours.
        extents: Batch, M, N and K.
        splits: Partial sums of a result.
        partial: ``[splits, batch, M, N]``, flat.
    """
    lanes = min(4, output.lanes)
    per_row = extents.columns // lanes
    results = extents.batch * extents.rows * per_row
    threads_y = 1
    while threads_y < _ADDERS // WARP and threads_y * _PER_ADDER < splits:
        threads_y *= 2

    def registers() -> list[Buffer]:
        return [device.fill(device.registers(1, contraction.dtype)) for _ in range(lanes)]

    def add(sums: Sequence[Buffer], split_index: Expr, at: Expr) -> None:
        held = device.registers(lanes, contraction.dtype)
        device.move(held, 0, partial, (split_index * i32(results) + at) * i32(lanes), lanes)
        for lane, register in enumerate(sums):
            device.store(register, register[i32(0)] + held[i32(lane)], [0])

    def write(sums: Sequence[Buffer], at: Expr) -> None:
        matrix_row = device.let(div(at, per_row))
        batch = split(div(matrix_row, extents.rows), contraction.batch)
        place = mod(at, per_row) * i32(lanes)
        output.write(
            batch, mod(matrix_row, extents.rows), place, lanes, lambda lane: sums[lane][i32(0)]
        )

    SplitResults(results, splits, _ADDERS // threads_y, threads_y).write(
        registers, add, lambda kept, other: [a + b for a, b in zip(kept, other)], write
    )


# ---- the pipeline of stages in shared memory through which tiles reach the products --------------


@dataclass(frozen=True)
class MultistagePipeline:
    """Slots of shared memory that tiles pass through.

    Attributes:
        copiers: Fill the slots, one per factor.
        plan: Says how many there are, and how deep.
        extents: Sizes of the products.
        start: Where the first slot lies.
    """

    copiers: list[Copier]
    plan: GemmPlan
    extents: Extents
    start: Expr

    def run(self, split_index: Expr, core: Core) -> None:
        """Multiplies all steps of a split of K.

        One barrier per step does for two: when all threads have passed it, the tile is there, and
        the slot whose products were complete before it is free to be filled again.

        Args:
            split_index: Which split of K.
            core: Multiplies tiles that are in shared memory.
        """
        for copier in self.copiers:
            copier.prepare()
        ahead = self.plan.stages - 1 - core.lag
        total = -(-self.extents.k_size // self.plan.k_block)
        whole = self.plan.slots(self.extents)
        first = split_index * i32(whole)
        count: Expr = i32(total)
        if self.plan.splits > 1:
            count = device.let(tirx.min(i32(whole), i32(total) - first))
        for step in range(ahead):
            self._fetch(first, i32(step), count, finish=True)
        with device.loop(count) as step:
            device.await_copies(ahead - 1)
            core.publish()
            device.barrier()
            if core.lag:
                core.multiply(*self._slots(step))
            self._fetch(first, step + i32(ahead), count)
            if not core.lag:
                core.multiply(*self._slots(step))
            core.settle()
            self._finish(step + i32(ahead), count)
        core.complete()
        device.await_copies(0)

    def _slots(self, step: Expr) -> list[Expr]:
        """Where the tiles of a step begin."""
        slot = device.let(mod(step, self.plan.stages))
        places, start = [], self.start
        for copier in self.copiers:
            places.append(slot * i32(copier.tile.size) + start)
            start = start + i32(copier.tile.size * self.plan.stages)
        return places

    def _fetch(self, first: Expr, step: Expr, count: Expr, finish: bool = False) -> None:
        def start() -> None:
            k = device.let((first + step) * i32(self.plan.k_block))
            for copier, slot in zip(self.copiers, self._slots(step)):
                copier.start(k, slot)
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


# ---- matrix products without tensor cores: exact f32, and f64 and int32 --------------------------
# A thread keeps the sums of one or four blocks of 4 x 4. Per step of K it reads four neighbouring
# rows and columns of each block at once; the threads of a warp read neighbouring columns and two or
# four groups of rows, which are broadcast.

_SIDE = 4


class SimtCore(Core):
    """The products of one thread.

    Args:
        grid: How the tile is divided.
        dtype: Type of factors and sums.
        left: Tile of rows in shared memory, contiguous along M.
        right: Tile of columns, contiguous along N.
        memory: Shared memory, as bytes.
        thread: Index of the thread.
    """

    def __init__(
        self, grid: ThreadGrid, dtype: str, left: SharedTile, right: SharedTile, memory: Buffer,
        thread: Expr,
    ) -> None:  # fmt: skip
        self.grid, self.dtype, self.memory = grid, dtype, memory
        self.left, self.right = left, right
        self.start, self.steps = i32(0), left.k_size
        threads_x = grid.columns // (_SIDE * grid.block)
        self.first_row = device.let(div(thread, threads_x) * i32(_SIDE))
        self.first_column = device.let(mod(thread, threads_x) * i32(_SIDE))
        self.side = _SIDE * grid.block
        self.sums = device.registers(self.side * self.side, dtype)
        self._rows = device.registers(2 * self.side, dtype)
        self._columns = device.registers(2 * self.side, dtype)

    def _read(self, left: Expr, right: Expr, step: int) -> None:
        half = step % 2 * self.side
        sides = (
            (self._rows, self.left, left, self.first_row, self.grid.rows),
            (self._columns, self.right, right, self.first_column, self.grid.columns),
        )
        for held, tile, start, first, extent in sides:
            for block in range(self.grid.block):
                mn = first + i32(block * (extent // self.grid.block))
                self._read_four(held, half + block * _SIDE, tile, start, step, mn)

    def _read_four(
        self, held: Buffer, at: int, tile: SharedTile, start: Expr, step: int, mn: Expr
    ) -> None:
        size = dtype_bytes(self.dtype)
        lanes = min(_SIDE, VECTOR_BYTES // size)
        for lane in range(0, _SIDE, lanes):
            byte = (mn + i32(lane)) * i32(size)
            place = start + tile.offset(step, byte, tile.phase(step & 7))
            device.get(self.memory[place], [held[i32(at + lane + i)] for i in range(lanes)])

    def _multiply(self, half: int) -> None:
        for row in range(self.side):
            for column in range(self.side):
                at = i32(row * self.side + column)
                left = self._rows[i32(half * self.side + row)]
                right = self._columns[i32(half * self.side + column)]
                device.store(self.sums, self.sums[at] + left * right, [at])

    def store(self, sink: Sink) -> None:
        """Stores the sums, up to four neighbouring columns at once.

        Args:
            sink: Takes the sums, by row and column.
        """
        lanes = min(sink.lanes, _SIDE)
        for row in range(self.side):
            for column in range(0, self.side, lanes):
                self._store_run(sink, row, column, lanes)

    def _store_run(self, sink: Sink, row: int, column: int, lanes: int) -> None:
        def load() -> Buffer:
            held = device.registers(lanes, self.dtype)
            for lane in range(lanes):
                value = self.sums[i32(row * self.side + column + lane)]
                device.store(held, value, [lane])
            return held

        row_at = self._line(row, self.grid.rows) + sink.row + self.first_row
        column_at = self._line(column, self.grid.columns) + sink.column + self.first_column
        sink.write(row_at, column_at, lanes, load)

    def _line(self, number: int, extent: int) -> Expr:
        """Distance of a thread's row or column from its first one."""
        block, inner = divmod(number, _SIDE)
        return i32(block * (extent // self.grid.block) + inner)
