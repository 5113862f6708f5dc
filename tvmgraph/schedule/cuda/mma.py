"""Matrix products on tensor cores by ``mma.sync``, for compute capability 8.0 and later.

A block of threads computes a tile of the result. Tiles of the factors come through a ring of slots
in shared memory, several steps ahead of the products; each warp multiplies its part of them with
fragments that ``ldmatrix`` reads, and keeps its sums, in f32 or s32, in registers. They go through
shared memory once more, so that the epilogue sees neighbouring columns in one thread and stores
them 16 bytes at a time.

All types move alike: an ``mma`` takes 32 bytes of depth of 16 rows and 8 columns (PTX ISA, 9.7.14),
which are 16 steps of f16 and bf16, 8 of tf32 and 32 of int8.
"""

from __future__ import annotations

from functools import cached_property

from tvm import tirx

from tvmgraph.schedule.cuda import device
from tvmgraph.schedule.cuda.device import WARP, div, i32, mod
from tvmgraph.schedule.cuda.output import Sink
from tvmgraph.schedule.cuda.product_plan import WarpGrid
from tvmgraph.schedule.cuda.shared_tile import SharedTile
from tvmgraph.schedule.types import Buffer, Expr

#: Columns of a strip that a warp stores at once, and floats between two rows of it: a half-warp
#: writes four rows of eight floats, which then lie in different banks.
_STRIP, _STRIP_GAP = 64, 8
#: Rows and columns of one instruction, and the bytes of depth that it takes.
ROWS, COLUMNS, DEPTH_BYTES = 16, 8, 32

#: The instruction for factors of a type.
INSTRUCTIONS = {
    "float16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "bfloat16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "float32": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "int8": "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
    "uint8": "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
}
#: Types whose fragments can be read from tiles with the lines of a step side by side.
TRANSPOSABLE = frozenset({"float16", "bfloat16"})


class MmaCore:
    """The products of one warp.

    Args:
        grid: How the tile is divided.
        dtype: Type that is multiplied.
        left: Tile of rows in shared memory.
        right: Tile of columns.
        memory: Shared memory, as bytes.
        thread: Index of the thread.
    """

    def __init__(
        self, grid: WarpGrid, dtype: str, left: SharedTile, right: SharedTile, memory: Buffer,
        thread: Expr,
    ) -> None:  # fmt: skip
        self.grid, self.dtype, self.memory = grid, dtype, memory
        self.left, self.right = left, right
        self.lane = device.let(mod(thread, WARP))
        warp = device.let(div(thread, WARP))
        self._own = device.let(warp * i32(4 * ROWS * _strip_pitch(grid)))
        self.first_row = device.let(div(warp, grid.across) * i32(grid.warp_rows))
        self.first_column = device.let(mod(warp, grid.across) * i32(grid.warp_columns))
        self.down = grid.warp_rows // ROWS
        self.across = grid.warp_columns // COLUMNS
        self.sum_type = "int32" if dtype in ("int8", "uint8") else "float32"
        # PTX names the integer sums by their bits.
        held = self.sum_type.replace("int32", "uint32")
        self.sums = device.registers(self.down * self.across * 4, held)
        self._rows = device.registers(2 * self.down * 4, "uint32")
        self._columns = device.registers(2 * self.across * 2, "uint32")

    def clear(self) -> None:
        """Starts all sums at zero."""
        for at in range(self.down * self.across * 4):
            device.store(self.sums, tirx.const(0, str(self.sums.dtype)), [at])

    @cached_property
    def _steps(self) -> int:
        return self.left.depth * self.left.itemsize // DEPTH_BYTES

    def multiply(self, left: Expr, right: Expr) -> None:
        """Adds the products of the tiles at bytes ``left`` and ``right`` of the shared memory.

        The fragments of a step are read while the products of the step before are under way.
        """
        self._read(left, right, 0)
        for step in range(self._steps):
            if step + 1 < self._steps:
                self._read(left, right, step + 1)
            self._multiply(step % 2)

    def _read(self, left: Expr, right: Expr, step: int) -> None:
        half = step % 2
        for block in range(self.down):
            to = [self._rows[i32((half * self.down + block) * 4 + i)] for i in range(4)]
            where = row_fragments(self.left, self.lane, self.first_row + i32(block * ROWS), step)
            load_fragments(to, self.memory[left + where], transposed=not self.left.by_line)
        for block in range(0, self.across, 2):
            to = [
                self._columns[i32((half * self.across + block) * 2 + i)]
                for i in range(4 if block + 1 < self.across else 2)
            ]
            first = self.first_column + i32(block * COLUMNS)
            where = column_fragments(self.right, self.lane, first, step)
            load_fragments(to, self.memory[right + where], transposed=not self.right.by_line)
        if self.dtype == "float32":
            self._round(half)

    def _round(self, half: int) -> None:
        """Rounds f32 to the nearest tf32; the instruction itself would cut the lower bits off."""
        for fragments, count in ((self._rows, self.down * 4), (self._columns, self.across * 2)):
            for at in range(half * count, (half + 1) * count):
                value = fragments[i32(at)]
                device.ptx("cvt.rna.tf32.f32", value, tirx.reinterpret("float32", value))

    def _multiply(self, half: int) -> None:
        for row in range(self.down):
            a = [self._rows[i32((half * self.down + row) * 4 + i)] for i in range(4)]
            for position in range(self.across):
                # Back and forth, so that neighbouring products share a fragment of columns.
                column = position if row % 2 == 0 else self.across - 1 - position
                b = [self._columns[i32((half * self.across + column) * 2 + i)] for i in range(2)]
                c = [self.sums[i32(self.at(row, column) + i)] for i in range(4)]
                device.ptx(INSTRUCTIONS[self.dtype], *c, *a, *b, *c)

    def at(self, row: int, column: int) -> int:
        """First of the four sums that a lane holds of a block of 16 x 8.

        They are those of row ``lane / 4`` and columns ``2 (lane % 4)`` and the next, and of the
        same columns eight rows below.
        """
        return (row * self.across + column) * 4

    # From registers to memory

    @staticmethod
    def scratch(grid: WarpGrid) -> int:
        """Bytes of shared memory that storing takes, when the tiles are no longer needed."""
        return grid.threads // WARP * ROWS * _strip_pitch(grid) * 4

    def store(self, sink: Sink) -> None:
        """Stores the sums of every warp, strip by strip of 16 rows."""
        device.barrier()  # all warps have read the last tiles
        strip = _strip(self.grid)
        for row in range(self.down):
            for first in range(0, self.grid.warp_columns, strip):
                self._fill_strip(row, first)
                device.warp_barrier()
                self._store_strip(sink, row * ROWS, first)
                device.warp_barrier()

    def _fill_strip(self, row: int, first: int) -> None:
        pitch = _strip_pitch(self.grid)
        for column in range(_strip(self.grid) // COLUMNS):
            at = self.at(row, first // COLUMNS + column)
            for half in range(2):
                line = div(self.lane, 4) + i32(8 * half)
                place = line * i32(pitch) + mod(self.lane, 4) * i32(2) + i32(column * COLUMNS)
                to = self.memory[self._own + (place << i32(2))]
                device.put(to, [self.sums[i32(at + 2 * half + i)] for i in range(2)])

    def _store_strip(self, sink: Sink, row: int, first: int) -> None:
        strip, lanes = _strip(self.grid), min(sink.lanes, _strip(self.grid))
        across = min(WARP, strip // lanes)
        down, sweeps = WARP // across, strip // (across * lanes)
        with device.loop(ROWS // down * sweeps) as turn:
            line = device.let(div(self.lane, across) + div(turn, sweeps) * i32(down))
            column = mod(self.lane, across) + mod(turn, sweeps) * i32(across)
            column = device.let(column * i32(lanes))
            source = self._own + ((line * i32(_strip_pitch(self.grid)) + column) << i32(2))
            row_at = sink.row + self.first_row + i32(row) + line
            column_at = sink.column + self.first_column + i32(first) + column

            def load(source: Expr = source) -> Buffer:
                sums = device.registers(lanes, self.sum_type)
                width = min(lanes, 4)
                for lane in range(0, lanes, width):
                    held = [sums[i32(lane + i)] for i in range(width)]
                    device.get(self.memory[source + i32(4 * lane)], held)
                return sums

            sink.write(row_at, column_at, lanes, load)


def load_fragments(to: list[Expr], element: Expr, transposed: bool) -> None:
    """Reads two or four matrices of 8 x 8 words of 2 bytes; ``element`` is this lane's row of one.

    Transposed ones are those of tiles with the lines of a step side by side.
    """
    name = f"ldmatrix.sync.aligned.m8n8.x{len(to)}.{'trans.' if transposed else ''}shared.b16"
    device.ptx(name, *to, device.address(element))


def row_fragments(tile: SharedTile, lane: Expr, first: Expr, step: int) -> Expr:
    """Where a lane's row of the fragments of 16 rows lies: rows 0-7, 8-15, then deeper ones.

    Args:
        tile: The tile.
        lane: The lane.
        first: First row, a multiple of 8.
        step: Which 32 bytes of the depth.
    """
    low, high = lane & i32(15), lane >> i32(4)
    if tile.by_line:
        byte = i32(step * DEPTH_BYTES) + (high << i32(4))
        return tile.offset(first + low, byte, tile.phase(low))
    deep = (lane & i32(7)) + (high << i32(3))
    byte = (first + (lane & i32(8))) << i32(1)
    return tile.offset(i32(step * 16) + deep, byte, tile.phase(lane & i32(7)))


def column_fragments(tile: SharedTile, lane: Expr, first: Expr, step: int) -> Expr:
    """The same for 16 columns: the two halves of the depth of eight of them, then of the others."""
    if tile.by_line:
        line = (lane & i32(7)) + ((lane >> i32(4)) << i32(3))
        byte = i32(step * DEPTH_BYTES) + ((lane & i32(8)) << i32(1))
        return tile.offset(first + line, byte, tile.phase(lane & i32(7)))
    byte = (first + ((lane >> i32(4)) << i32(3))) << i32(1)
    return tile.offset(i32(step * 16) + (lane & i32(15)), byte, tile.phase(lane & i32(7)))


def _strip(grid: WarpGrid) -> int:
    return min(grid.warp_columns, _STRIP)


def _strip_pitch(grid: WarpGrid) -> int:
    return _strip(grid) + _STRIP_GAP
