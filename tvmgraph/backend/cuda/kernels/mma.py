"""Matrix products on tensor cores by ``mma.sync``, for compute capability 8.0 and later.

A block of threads computes a tile of the result. Tiles of the factors come through a multistage
pipeline in shared memory, several steps ahead of the products; each warp multiplies its part of
them with fragments that ``ldmatrix`` reads, and keeps its sums, in f32 or s32, in registers.

All types move alike: an ``mma`` takes 32 bytes of K of 16 rows and 8 columns (PTX ISA, 9.7.14),
which are 16 steps of f16 and bf16, 8 of tf32 and 32 of int8.
"""

from __future__ import annotations

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.copies import SharedTile
from tvmgraph.backend.cuda.kernels.device import i32
from tvmgraph.backend.cuda.kernels.gemm_plan import WarpGrid
from tvmgraph.backend.cuda.kernels.warp_sums import COLUMNS, ROWS, WarpSums
from tvmgraph.backend.loop_ir.types import Buffer, Expr

#: Bytes of K that one instruction takes.
K_BYTES = 32

#: The instruction for factors of a type.
INSTRUCTIONS = {
    "float16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "bfloat16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "float32": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "int8": "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
    "uint8": "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32",
}
#: Types whose fragments can be read from tiles that are not K-major.
TRANSPOSABLE = frozenset({"float16", "bfloat16"})


class MmaCore(WarpSums):
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
        super().__init__(grid, dtype, memory, thread)
        self.left, self.right = left, right
        self.steps = left.k_size * left.itemsize // K_BYTES
        self._rows = device.registers(2 * self.m_tiles * 4, "uint32")
        self._columns = device.registers(2 * self.n_tiles * 2, "uint32")

    def _read(self, left: Expr, right: Expr, step: int) -> None:
        half = step % 2
        for block in range(self.m_tiles):
            to = [self._rows[i32((half * self.m_tiles + block) * 4 + i)] for i in range(4)]
            where = row_fragments(self.left, self.lane, self.first_row + i32(block * ROWS), step)
            load_fragments(to, self.memory[left + where], transposed=not self.left.k_major)
        for block in range(0, self.n_tiles, 2):
            to = [
                self._columns[i32((half * self.n_tiles + block) * 2 + i)]
                for i in range(4 if block + 1 < self.n_tiles else 2)
            ]
            first = self.first_column + i32(block * COLUMNS)
            where = column_fragments(self.right, self.lane, first, step)
            load_fragments(to, self.memory[right + where], transposed=not self.right.k_major)
        if self.dtype == "float32":
            self._round(half)

    def _round(self, half: int) -> None:
        """Rounds f32 to the nearest tf32; the instruction itself would cut the lower bits off."""
        for fragments, count in ((self._rows, self.m_tiles * 4), (self._columns, self.n_tiles * 2)):
            for at in range(half * count, (half + 1) * count):
                value = fragments[i32(at)]
                device.ptx("cvt.rna.tf32.f32", value, tirx.reinterpret("float32", value))

    def _multiply(self, half: int) -> None:
        for row in range(self.m_tiles):
            a = [self._rows[i32((half * self.m_tiles + row) * 4 + i)] for i in range(4)]
            for position in range(self.n_tiles):
                # Back and forth, so that neighbouring products share a fragment of columns.
                column = position if row % 2 == 0 else self.n_tiles - 1 - position
                b = [self._columns[i32((half * self.n_tiles + column) * 2 + i)] for i in range(2)]
                c = [self.sums[i32(self.at(row, column) + i)] for i in range(4)]
                device.ptx(INSTRUCTIONS[self.dtype], *c, *a, *b, *c)


def load_fragments(to: list[Expr], element: Expr, transposed: bool) -> None:
    """Reads two or four matrices of 8 x 8 words of 2 bytes; ``element`` is this lane's row of one.

    Transposed ones are those of tiles that are not K-major.

    Args:
        to: Two or four registers of 32 bits, which are written.
        element: This lane's row in shared memory.
        transposed: Whether the matrices are transposed on the way.
    """
    name = f"ldmatrix.sync.aligned.m8n8.x{len(to)}.{'trans.' if transposed else ''}shared.b16"
    device.ptx(name, *to, device.address(element))


def row_fragments(tile: SharedTile, lane: Expr, first: Expr, step: int) -> Expr:
    """Where a lane's row of the fragments of 16 rows lies: rows 0-7, 8-15, then deeper ones.

    Args:
        tile: The tile.
        lane: The lane.
        first: First row, a multiple of 8.
        step: Which 32 bytes of K.
    """
    low, high = lane & i32(15), lane >> i32(4)
    if tile.k_major:
        byte = i32(step * K_BYTES) + (high << i32(4))
        return tile.offset(first + low, byte, tile.phase(low))
    deep = (lane & i32(7)) + (high << i32(3))
    byte = (first + (lane & i32(8))) << i32(1)
    return tile.offset(i32(step * 16) + deep, byte, tile.phase(lane & i32(7)))


def column_fragments(tile: SharedTile, lane: Expr, first: Expr, step: int) -> Expr:
    """The same for 16 columns: the two halves of K of eight of them, then of the others.

    Args:
        tile: The tile of the column operand in shared memory.
        lane: Number of the lane in its warp.
        first: First of the 16 columns.
        step: Which 32 bytes of K.

    Returns:
        Offset of this lane's row in the tile.
    """
    if tile.k_major:
        row = (lane & i32(7)) + ((lane >> i32(4)) << i32(3))
        byte = i32(step * K_BYTES) + ((lane & i32(8)) << i32(1))
        return tile.offset(first + row, byte, tile.phase(lane & i32(7)))
    byte = (first + ((lane >> i32(4)) << i32(3))) << i32(1)
    return tile.offset(i32(step * 16) + (lane & i32(15)), byte, tile.phase(lane & i32(7)))
