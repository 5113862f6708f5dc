"""Attention's operands on the device: how they are copied, multiplied by warps, and stored.

Rows of a head (queries, keys or values) lie in shared memory as rows of up to 256 elements. Every
warp multiplies rows of its own with all rows of a tile that passes by; what such a product leaves
in registers has the shape of the factor that the next product takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tvm import tirx

from tvmgraph.backend.attention import Operand
from tvmgraph.backend.cuda.kernels import device, wgmma
from tvmgraph.backend.cuda.kernels.copies import Copier, SharedTile
from tvmgraph.backend.cuda.kernels.device import WARP, both, div, i32, mod
from tvmgraph.backend.cuda.kernels.gemm_operand import GemmOperand
from tvmgraph.backend.cuda.kernels.mma import (
    INSTRUCTIONS,
    column_fragments,
    load_fragments,
    row_fragments,
)
from tvmgraph.backend.cuda.kernels.warp_sums import COLUMNS, ROWS
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Axis
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, Index, Var
from tvmgraph.backend.named import name_of
from tvmgraph.backend.table import Refused

P = TypeVar("P")
#: Packs two sums into the type that is multiplied.
PACK = {"float16": "cvt.rn.f16x2.f32", "bfloat16": "cvt.rn.bf16x2.f32"}
_ITEM = 2
#: Elements of 16 bytes.
_LANES = 8


def padded(size: int) -> int:
    """Elements of a row in shared memory: a power of two, or panels of 128 bytes.

    Args:
        size: Elements of a head.
    """
    return 1 << max(4, (size - 1).bit_length()) if size <= 64 else -(-size // 64) * 64


def tile_of(rows: int, size: int) -> SharedTile:
    """Rows of ``size`` elements; multiplied row by row, or, transposed, step by step.

    Args:
        rows: Rows of the tile.
        size: Elements of a row, padded.
    """
    return SharedTile(rows, size, _ITEM, k_major=True)


def copier_of(
    operand: Operand, tile: SharedTile, memory: Buffer, threads: int, thread: Expr, batch: Expr,
    head: Expr,
) -> Copier:  # fmt: skip
    """Copies rows of one head of an operand to a tile.

    As an operand, M or N runs over the elements of a head and K along the sequence, whether
    they are summed or not: that is the direction in which tiles follow each other.

    Args:
        operand: Query, key, value or their derivatives in device memory.
        tile: Where rows go in shared memory.
        memory: That shared memory.
        threads: Threads that copy.
        thread: Number of this one.
        batch: Index of the batch.
        head: Index of the head.
    """
    found = [Axis(tirx.Var(name, "int64"), operand.fixed(name)) for name in "BNSD"]
    batches, heads, sequence, size = found
    load = operand.buffer[operand.at(*(axis.var for axis in found))]
    factor = GemmOperand(load, load, (), (batches, heads), (size,), (sequence,))
    transposed_tile = SharedTile(tile.k_size, tile.mn_size, _ITEM, k_major=False)
    values: dict[Var, Expr] = {batches.var: batch, heads.var: head}
    copier = Copier(factor, transposed_tile, memory, threads, thread, values, i32(0))
    copier.prepare()
    return copier


def takes(operands: Sequence[Operand]) -> bool:
    """Whether warps multiply the heads of some operands: of halves, known sizes, whole vectors.

    Args:
        operands: Operands and results of an attention.
    """
    sized = all(isinstance(side.extent(axis), int) for side in operands for axis in "BNSD")
    halves = str(operands[0].buffer.dtype) in PACK
    return halves and sized and all(side.fixed("D") % _LANES == 0 for side in operands)


def match_named(
    nest: Nest, name: str, what: str, read: Callable[[Func, str], P], fits: Callable[[P], bool]
) -> P | Refused:
    """What a nest asks for by the name of a kernel of attention, if that takes it.

    Args:
        nest: The nest.
        name: The name.
        what: The same in words.
        read: Reads the function that asks.
        fits: Whether the kernel takes what it asks for.
    """
    asked, settings = name_of(nest)
    if asked != name:
        return Refused(f"it asks for no {what}")
    if not all(map(tirx.is_buffer_var, nest.func.params)):
        return Refused("an extent is only known when it is called")
    problem = read(nest.func, str(settings))
    if not fits(problem):
        return Refused("not float16 or bfloat16, a large head, or tiles larger than shared memory")
    return problem


@dataclass(frozen=True)
class TileView:
    """A tile and the byte of the shared memory where it begins."""

    tile: SharedTile
    start: Expr


@dataclass(frozen=True)
class WarpTiles:
    """What one warp multiplies and stores.

    Attributes:
        dtype: Type that is multiplied.
        memory: Shared memory, as bytes.
        lane: The lane.
        row: First row of the warp in its block.
        m_tiles: Blocks of 16 rows of the warp.
    """

    dtype: str
    memory: Buffer
    lane: Expr
    row: Expr
    m_tiles: int

    def sums(self, columns: int) -> Buffer:
        """Registers for the products of the warp's rows with ``columns`` columns.

        Args:
            columns: A multiple of 8.
        """
        return device.registers(self.m_tiles * columns // COLUMNS * 4, "float32")

    def add_products(self, sums: Buffer, own: TileView, other: TileView) -> None:
        """Adds the products of the warp's rows of a tile with all rows of another one.

        Args:
            sums: Registers of :meth:`sums`.
            own: The tile whose rows are divided among the warps.
            other: The tile of which all rows are used.
        """
        a = device.registers(self.m_tiles * 4, "uint32")
        b = device.registers(4, "uint32")
        n_tiles = other.tile.mn_size // COLUMNS
        for step in range(own.tile.k_size // 16):
            for block in range(self.m_tiles):
                first = self.row + i32(block * ROWS)
                where = own.start + row_fragments(own.tile, self.lane, first, step)
                to = [a[i32(4 * block + i)] for i in range(4)]
                load_fragments(to, self.memory[where], transposed=False)
            for column in range(0, n_tiles, 2):
                where = column_fragments(other.tile, self.lane, i32(column * COLUMNS), step)
                to = [b[i32(i)] for i in range(4)]
                load_fragments(to, self.memory[other.start + where], transposed=False)
                self._multiply(sums, a, b, column, n_tiles)

    def add_rows(self, sums: Buffer, weights: Buffer, other: TileView) -> None:
        """Adds the rows of a tile, weighed by packed factors of the warp's rows.

        Args:
            sums: Registers of :meth:`sums`.
            weights: The factors, as :meth:`pack` packs them.
            other: The tile whose rows are added.
        """
        a = device.registers(self.m_tiles * 4, "uint32")
        b = device.registers(4, "uint32")
        transposed_tile = SharedTile(other.tile.k_size, other.tile.mn_size, _ITEM, k_major=False)
        n_tiles, steps = other.tile.k_size // COLUMNS, other.tile.mn_size // 16
        for step in range(steps):
            for block in range(self.m_tiles):
                start = (block * steps + step) * 4
                for i in range(4):
                    device.store(a, weights[i32(start + i)], [4 * block + i])
            for column in range(0, n_tiles, 2):
                where = column_fragments(transposed_tile, self.lane, i32(column * COLUMNS), step)
                to = [b[i32(i)] for i in range(4)]
                load_fragments(to, self.memory[other.start + where], transposed=True)
                self._multiply(sums, a, b, column, n_tiles)

    def _multiply(self, sums: Buffer, a: Buffer, b: Buffer, column: int, n_tiles: int) -> None:
        """Adds the products of this step with two neighbouring blocks of eight columns."""
        for half in range(2):
            for block in range(self.m_tiles):
                at = (block * n_tiles + column + half) * 4
                c = [sums[i32(at + i)] for i in range(4)]
                rows = [a[i32(4 * block + i)] for i in range(4)]
                columns = [b[i32(2 * half + i)] for i in range(2)]
                device.ptx(INSTRUCTIONS[self.dtype], *c, *rows, *columns, *c)

    def pack(self, sums: Buffer, packed: Buffer) -> None:
        """Packs pairs of sums, in the order of the factors of :meth:`add_rows`.

        Args:
            sums: Registers of :meth:`sums`.
            packed: Registers of 32 bits, one per pair.
        """
        for at in range(int(packed.shape[0])):
            low, high = sums[i32(2 * at)], sums[i32(2 * at + 1)]
            device.ptx(PACK[self.dtype], packed[i32(at)], high, low)

    def row_of(self, number: int) -> Expr:
        """Row of the block that is the lane's row ``number``: two of every 16, eight apart.

        Args:
            number: Which of the lane's rows, from 0.
        """
        block, half = divmod(number, 2)
        return self.row + i32(block * ROWS + 8 * half) + div(self.lane, 4)

    def column_of(self, column: int, which: int) -> Expr:
        """Column of the lane's sum ``which``, 0 or 1, of a row in a block of eight columns.

        Args:
            column: Which block of eight columns.
            which: Which of the two sums.
        """
        return mod(self.lane, 4) * i32(2) + i32(column * COLUMNS + which)

    def point_of(self, at: int, columns: int) -> tuple[Expr, Expr]:
        """Row of the block and column of one of the lane's sums.

        Args:
            at: Its place in the registers.
            columns: Columns of the sums.
        """
        (block, i), n_tiles = divmod(at, 4), columns // COLUMNS
        row = self.row_of(block // n_tiles * 2 + i // 2)
        return row, self.column_of(block % n_tiles, i % 2)

    def store(
        self, sums: Buffer, through: TileView, out: Operand, indices: tuple[Expr, Expr, Expr]
    ) -> None:
        """Stores the warp's rows of results, 16 bytes at a time where memory allows.

        Args:
            sums: The results.
            through: A tile of shared memory that the other warps do not need.
            out: Where they go.
            indices: Batch, head, and first row of the block.
        """
        packed = device.registers(1, "uint32")
        for at in range(0, int(sums.shape[0]), 2):
            row, column = self.point_of(at, through.tile.k_size)
            device.ptx(PACK[self.dtype], packed[i32(0)], sums[i32(at + 1)], sums[i32(at)])
            to = self.memory[through.start + through.tile.offset(row, column * i32(_ITEM))]
            device.put(to, [packed[i32(0)]])
        device.warp_barrier()
        self._store_rows(through, out, indices)

    def _store_rows(
        self, through: TileView, out: Operand, indices: tuple[Expr, Expr, Expr]
    ) -> None:
        tile, (batch, head, first) = through.tile, indices
        per_row = tile.k_size // _LANES
        m_tiles, sweeps = max(1, WARP // per_row), -(-per_row // WARP)
        held = device.registers(_LANES // 2, "uint32")
        with device.loop(self.m_tiles * ROWS // m_tiles * sweeps) as turn:
            row = self.row + div(turn, sweeps) * i32(m_tiles) + div(self.lane, min(per_row, WARP))
            column = mod(self.lane, min(per_row, WARP)) + mod(turn, sweeps) * i32(WARP)
            row, column = device.let(row), device.let(column * i32(_LANES))
            inside = (column < i32(out.fixed("D"))) if out.fixed("D") % tile.k_size else None
            if out.fixed("S") % tile.mn_size:
                inside = both(inside, first + row < i32(out.fixed("S")))

            def store() -> None:
                address = self.memory[through.start + tile.offset(row, column * i32(_ITEM))]
                device.get(address, [held[i32(i)] for i in range(_LANES // 2)])
                _put_row(out, held, lambda i: out.at(batch, head, first + row, column + i32(i)))

            device.only_if(inside, store)


@dataclass(frozen=True)
class GroupTiles(WarpTiles):
    """What four warps multiply together by ``wgmma``, 16 rows each, and each warp stores.

    The left factors are in registers, in the shape in which products leave them; the right ones are
    read from shared memory once for 64 rows.

    Attributes:
        bottom: Address of the shared memory.
        own: The warp's rows of the first factor, as :meth:`hold` leaves them.
    """

    bottom: Expr
    own: Buffer

    @staticmethod
    def registers(tile: SharedTile) -> Buffer:
        """Registers for the warp's rows of a tile.

        Args:
            tile: The tile whose rows are divided among the warps.
        """
        return device.registers(tile.k_size // 16 * 4, "uint32")

    def hold(self, own: TileView) -> None:
        """Reads the warp's rows of the first factor, which is the same for all tiles.

        Args:
            own: The tile whose rows are divided among the warps.
        """
        for step in range(own.tile.k_size // 16):
            where = own.start + row_fragments(own.tile, self.lane, self.row, step)
            to = [self.own[i32(4 * step + i)] for i in range(4)]
            load_fragments(to, self.memory[where], transposed=False)

    def add_products(self, sums: Buffer, own: TileView, other: TileView) -> None:
        """Leaves the products of what :meth:`hold` read with all rows of a tile, and waits.

        Args:
            sums: Registers of :meth:`sums`, which are overwritten.
            own: The tile that :meth:`hold` read.
            other: The tile of which all rows are used.
        """
        self._multiply_group(sums, self.own, other, other.tile, starts=True)
        device.ptx("wgmma.wait_group.sync.aligned", 0)

    def add_rows(self, sums: Buffer, weights: Buffer, other: TileView) -> None:
        """Starts adding the rows of a tile; what comes next waits for them.

        Args:
            sums: Registers of :meth:`sums`, with a column per element of a row.
            weights: The factor of every row, as products leave them in registers.
            other: The tile whose rows are added.
        """
        transposed_tile = SharedTile(other.tile.k_size, other.tile.mn_size, _ITEM, k_major=False)
        self._multiply_group(sums, weights, other, transposed_tile, starts=False)

    def _multiply_group(
        self, sums: Buffer, factors: Buffer, other: TileView, tile: SharedTile, starts: bool
    ) -> None:
        first = device.let(wgmma.description(tile, self.bottom, other.start))
        name = wgmma.instruction(self.dtype, tile.mn_size)
        held = [sums[i32(at)] for at in range(int(sums.shape[0]))]
        device.ptx("wgmma.fence.sync.aligned")
        for step in range(tile.k_size // 16):
            left = [factors[i32(4 * step + i)] for i in range(4)]
            right = first + tirx.const(wgmma.advance(tile, step), "uint64")
            adds = not (starts and step == 0)
            device.ptx(name, *held, *left, right, adds, 1, 1, int(not tile.k_major))
        device.ptx("wgmma.commit_group.sync.aligned")


def _put_row(out: Operand, held: Buffer, at: Callable[[int], tuple[Index, ...]]) -> None:
    """Stores neighbouring elements of a row, two in a register."""
    if out.layout[-1] == "D":
        words = [held[i32(i)] for i in range(_LANES // 2)]
        device.put_global(out.buffer[at(0)], words)
        return
    for i in range(_LANES):
        word = held[i32(i // 2)] >> device.u32(16 * (i % 2))
        device.put_global(out.buffer[at(i)], [tirx.Cast("uint16", word)])
