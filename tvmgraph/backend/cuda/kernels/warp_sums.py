"""Sums of products in the registers of warps, as tensor cores leave them.

A warp holds blocks of 16 rows and 8 columns. Before they are stored they go through shared memory,
so that one thread sees neighbouring columns and the epilogue reads and writes 16 bytes at a time.
"""

from __future__ import annotations

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import WARP, div, i32, mod
from tvmgraph.backend.cuda.kernels.gemm_plan import WarpGrid
from tvmgraph.backend.cuda.kernels.output import Early, Sink
from tvmgraph.backend.loop_ir.types import Buffer, Expr

#: Rows and columns of a block.
ROWS, COLUMNS = 16, 8
#: Columns of a strip that a warp stores at once, and floats between two rows of it: a half-warp
#: writes four rows of eight floats, which then lie in different banks.
_STRIP, _STRIP_GAP = 64, 8


class Core:
    """What multiplies tiles in shared memory, and adds to what it holds.

    Attributes:
        sums: The registers of the sums.
        start: Where the first tile lies in the shared memory.
        steps: Steps of a tile, each read while the products of the one before are under way.
    """

    #: Products that are still under way when :meth:`multiply` of the next tiles is called.
    lag = 0
    sums: Buffer
    start: Expr
    steps: int

    def clear(self) -> None:
        """Starts all sums at zero."""
        device.fill(self.sums)

    def publish(self) -> None:
        """Lets what this thread has copied be seen by the products, after the next barrier."""

    def multiply(self, left: Expr, right: Expr) -> None:
        """Adds the products of the tiles at two places in shared memory.

        Args:
            left: Offset of the left tile in shared memory, in bytes.
            right: Offset of the right one.
        """
        self._read(left, right, 0)
        for step in range(self.steps):
            if step + 1 < self.steps:
                self._read(left, right, step + 1)
            self._multiply(step % 2)

    def settle(self) -> None:
        """Waits until no more than ``lag`` products are under way."""

    def complete(self) -> None:
        """Waits for products that are under way."""

    def _read(self, left: Expr, right: Expr, step: int) -> None:
        """Reads a step into one half of the registers for factors."""
        raise NotImplementedError

    def _multiply(self, half: int) -> None:
        """Adds the products of one half."""
        raise NotImplementedError


class WarpSums(Core):
    """The sums of one warp.

    Args:
        grid: How the tile is divided.
        dtype: Type that is multiplied.
        memory: Shared memory, as bytes.
        thread: Index of the thread.

    Attributes:
        strip_start: Where the warp's sums go through the shared memory.
    """

    def __init__(self, grid: WarpGrid, dtype: str, memory: Buffer, thread: Expr) -> None:
        self.grid, self.dtype, self.memory = grid, dtype, memory
        self.start = i32(0)
        self.lane = device.let(mod(thread, WARP))
        warp = device.let(div(thread, WARP))
        self.strip_start = device.let(warp * i32(4 * ROWS * _strip_pitch(grid)))
        self.first_row = device.let(div(warp, grid.n_warps) * i32(grid.warp_rows))
        self.first_column = device.let(mod(warp, grid.n_warps) * i32(grid.warp_columns))
        self.m_tiles = grid.warp_rows // ROWS
        self.n_tiles = grid.warp_columns // COLUMNS
        self.sum_type = "int32" if dtype in ("int8", "uint8") else "float32"
        # PTX names the integer sums by their bits.
        held = self.sum_type.replace("int32", "uint32")
        self.sums = device.registers(self.m_tiles * self.n_tiles * 4, held)

    def at(self, row: int, column: int) -> int:
        """First of the four sums that a lane holds of a block.

        They are those of row ``lane / 4`` and columns ``2 (lane % 4)`` and the next, and of the
        same columns eight rows below.

        Args:
            row: Which 16 rows of the warp's tile.
            column: Which 8 columns of it.
        """
        return (row * self.n_tiles + column) * 4

    @staticmethod
    def scratch(grid: WarpGrid) -> int:
        """Bytes of shared memory that storing takes, when the tiles are no longer needed.

        Args:
            grid: How a tile is divided among warps.
        """
        return grid.threads // WARP * ROWS * _strip_pitch(grid) * 4

    def store(self, sink: Sink) -> None:
        """Stores the sums of every warp, strip by strip of 16 rows.

        What the epilogue of a strip reads by rows is asked for before the strip ahead of it is
        worked on: a block of all registers has no other to fill the time that memory takes.

        Args:
            sink: Takes the sums, by row and column.
        """
        device.barrier()  # all warps have read the last tiles
        strip = _strip(self.grid)
        firsts = range(0, self.grid.warp_columns, strip)
        strips = [_Strip(self, sink, row, first) for row in range(self.m_tiles) for first in firsts]
        early = strips[0].early()
        for at, this in enumerate(strips):
            following = strips[at + 1].early() if at + 1 < len(strips) else ()
            self._fill_strip(this.row, this.first)
            device.warp_barrier()
            this.store(early)
            device.warp_barrier()
            early = following

    def _fill_strip(self, row: int, first: int) -> None:
        pitch = _strip_pitch(self.grid)
        for column in range(_strip(self.grid) // COLUMNS):
            at = self.at(row, first // COLUMNS + column)
            for half in range(2):
                line = div(self.lane, 4) + i32(8 * half)
                place = line * i32(pitch) + mod(self.lane, 4) * i32(2) + i32(column * COLUMNS)
                to = self.memory[self.strip_start + (place << i32(2))]
                device.put(to, [self.sums[i32(at + 2 * half + i)] for i in range(2)])


class _Strip:
    """Sixteen rows of some columns of a warp, on their way through shared memory.

    Args:
        sums: The sums.
        sink: Where they go.
        row: Which sixteen rows of the warp's.
        first: The first column.
    """

    def __init__(self, sums: WarpSums, sink: Sink, row: int, first: int) -> None:
        self.sums, self.sink, self.row, self.first = sums, sink, row, first
        strip = _strip(sums.grid)
        self._lanes = min(sink.lanes, strip)
        self._row_threads = min(WARP, strip // self._lanes)
        self._sweeps = strip // (self._row_threads * self._lanes)
        self._turns = ROWS // (WARP // self._row_threads) * self._sweeps

    def early(self) -> Early:
        """Reads what the epilogue needs of every row."""
        early = self.sink.early(self._lanes, self._turns)
        if early:
            with device.loop(self._turns) as turn:
                row, column, _ = self._place(turn)
                self.sink.read(row, column, self._lanes, early, turn)
        return early

    def store(self, early: Early) -> None:
        """Finishes the sums and stores them."""
        with device.loop(self._turns) as turn:
            row, column, source = self._place(turn)

            def load() -> Buffer:
                sums = device.registers(self._lanes, self.sums.sum_type)
                width = min(self._lanes, 4)
                for lane in range(0, self._lanes, width):
                    held = [sums[i32(lane + i)] for i in range(width)]
                    device.get(self.sums.memory[source + i32(4 * lane)], held)
                return sums

            self.sink.write(row, column, self._lanes, load, early, turn if early else None)

    def _place(self, turn: Expr) -> tuple[Expr, Expr, Expr]:
        """Row and column of a thread's elements, and where they are in shared memory."""
        sums, rows = self.sums, WARP // self._row_threads
        row = device.let(div(sums.lane, self._row_threads) + div(turn, self._sweeps) * i32(rows))
        sweep = mod(turn, self._sweeps) * i32(self._row_threads)
        column = device.let((mod(sums.lane, self._row_threads) + sweep) * i32(self._lanes))
        source = sums.strip_start + ((row * i32(_strip_pitch(sums.grid)) + column) << i32(2))
        row = self.sink.row + sums.first_row + i32(self.row * ROWS) + row
        return row, self.sink.column + sums.first_column + i32(self.first) + column, source


def _strip(grid: WarpGrid) -> int:
    return min(grid.warp_columns, _STRIP)


def _strip_pitch(grid: WarpGrid) -> int:
    return _strip(grid) + _STRIP_GAP
