"""Sums of products in the registers of warps, as tensor cores leave them.

A warp holds blocks of 16 rows and 8 columns. Before they are stored they go through shared memory,
so that one thread sees neighbouring columns and the epilogue reads and writes 16 bytes at a time.
"""

from __future__ import annotations

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import WARP, div, i32, mod
from tvmgraph.backend.cuda.kernels.output import Sink
from tvmgraph.backend.cuda.kernels.product_plan import WarpGrid
from tvmgraph.backend.loop_ir.types import Buffer, Expr

#: Rows and columns of a block.
ROWS, COLUMNS = 16, 8
#: Columns of a strip that a warp stores at once, and floats between two rows of it: a half-warp
#: writes four rows of eight floats, which then lie in different banks.
_STRIP, _STRIP_GAP = 64, 8


class WarpSums:
    """The sums of one warp.

    Args:
        grid: How the tile is divided.
        dtype: Type that is multiplied.
        memory: Shared memory, as bytes.
        thread: Index of the thread.

    Attributes:
        start: Where the first tile lies in the shared memory.
    """

    #: Products that are still under way when :meth:`multiply` of the next tiles is called.
    lag = 0

    def __init__(self, grid: WarpGrid, dtype: str, memory: Buffer, thread: Expr) -> None:
        self.grid, self.dtype, self.memory = grid, dtype, memory
        self.start: Expr = i32(0)
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

    def clear(self) -> None:
        """Starts all sums at zero."""
        for at in range(self.down * self.across * 4):
            device.store(self.sums, tirx.const(0, str(self.sums.dtype)), [at])

    def publish(self) -> None:
        """Nothing: ordinary reads see what ordinary copies wrote."""

    def settle(self) -> None:
        """Nothing: products are complete when they have been asked for."""

    def complete(self) -> None:
        """Nothing, likewise."""

    def at(self, row: int, column: int) -> int:
        """First of the four sums that a lane holds of a block.

        They are those of row ``lane / 4`` and columns ``2 (lane % 4)`` and the next, and of the
        same columns eight rows below.
        """
        return (row * self.across + column) * 4

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


def _strip(grid: WarpGrid) -> int:
    return min(grid.warp_columns, _STRIP)


def _strip_pitch(grid: WarpGrid) -> int:
    return _strip(grid) + _STRIP_GAP
