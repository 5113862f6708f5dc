"""Matrix products without tensor cores: exact f32, and f64 and int32.

A thread keeps the sums of one or four blocks of 4 x 4. Per step of K it reads four
neighbouring rows and columns of each block at once; the threads of a warp read neighbouring columns
and two or four groups of rows, which are broadcast.
"""

from __future__ import annotations

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, div, i32, mod
from tvmgraph.backend.cuda.kernels.gemm_plan import ThreadGrid
from tvmgraph.backend.cuda.kernels.output import Sink
from tvmgraph.backend.cuda.kernels.shared_tile import SharedTile
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.types import Buffer, Expr

_SIDE = 4


class SimtCore:
    """The products of one thread.

    Args:
        grid: How the tile is divided.
        dtype: Type of factors and sums.
        left: Tile of rows in shared memory, contiguous along M.
        right: Tile of columns, contiguous along N.
        memory: Shared memory, as bytes.
        thread: Index of the thread.
    """

    lag = 0

    def __init__(
        self, grid: ThreadGrid, dtype: str, left: SharedTile, right: SharedTile, memory: Buffer,
        thread: Expr,
    ) -> None:  # fmt: skip
        self.grid, self.dtype, self.memory = grid, dtype, memory
        self.left, self.right = left, right
        self.start = i32(0)
        threads_x = grid.columns // (_SIDE * grid.block)
        self.first_row = device.let(div(thread, threads_x) * i32(_SIDE))
        self.first_column = device.let(mod(thread, threads_x) * i32(_SIDE))
        self.side = _SIDE * grid.block
        self.sums = device.registers(self.side * self.side, dtype)
        self._rows = device.registers(2 * self.side, dtype)
        self._columns = device.registers(2 * self.side, dtype)

    def publish(self) -> None:
        """Nothing: ordinary reads see what ordinary copies wrote."""

    def settle(self) -> None:
        """Nothing: products are complete when they have been asked for."""

    def complete(self) -> None:
        """Nothing, likewise."""

    def clear(self) -> None:
        """Starts all sums at zero."""
        for at in range(self.side * self.side):
            device.store(self.sums, tirx.const(0, self.dtype), [at])

    def multiply(self, left: Expr, right: Expr) -> None:
        """Adds the products of the tiles at bytes ``left`` and ``right`` of the shared memory.

        Args:
            left: Offset of the left tile in shared memory, in bytes.
            right: Offset of the right one.
        """
        self._read(left, right, 0)
        for step in range(self.left.k_size):
            if step + 1 < self.left.k_size:
                self._read(left, right, step + 1)
            self._multiply(step % 2)

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
