"""Matrix products by ``wgmma``, the tensor core instructions of Hopper (target ``sm_90a``).

Four warps multiply 64 rows with up to 256 columns at once, straight from shared memory, while they
go on with other work. They reach twice the rate of ``mma.sync``. A tile is described to them by its
address and the distances between its parts (PTX ISA, 9.7.15.5).
"""

from __future__ import annotations

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.copies import SharedTile
from tvmgraph.backend.cuda.kernels.device import WARP, i32
from tvmgraph.backend.cuda.kernels.gemm_plan import GROUP_ROWS, WarpGrid
from tvmgraph.backend.cuda.kernels.mma import K_BYTES, TRANSPOSABLE
from tvmgraph.backend.cuda.kernels.warp_sums import WarpSums
from tvmgraph.backend.loop_ir.types import Buffer, Expr

#: Tiles begin at multiples of the bytes after which their layout repeats: eight rows of 128.
ALIGNMENT = 1024
_SWIZZLE_128 = 1 << 62
#: The instruction for factors of a type.
_INSTRUCTIONS = {
    "float16": "k16.f32.f16.f16",
    "bfloat16": "k16.f32.bf16.bf16",
    "int8": "k32.s32.s8.s8",
    "uint8": "k32.s32.u8.u8",
}


class GroupCore(WarpSums):
    """The products of four warps.

    Args:
        grid: How the tile is divided: warps of 16 rows and all columns.
        dtype: Type that is multiplied.
        left: Tile of rows in shared memory.
        right: Tile of columns.
        memory: Shared memory, as bytes, with :data:`ALIGNMENT` more than the tiles need.
        thread: Index of the thread.
    """

    lag = 1

    def __init__(
        self, grid: WarpGrid, dtype: str, left: SharedTile, right: SharedTile, memory: Buffer,
        thread: Expr,
    ) -> None:  # fmt: skip
        super().__init__(grid, dtype, memory, thread)
        self.left, self.right = left, right
        self._bottom, self.start = aligned(memory)
        group = tirx.truncdiv(thread, i32(4 * WARP))
        # Both layouts of the rows have 64 of them in 64 times 128 bytes.
        self._group = device.let(group * i32(GROUP_ROWS * left.pitch))

    def publish(self) -> None:
        """Copies are visible to the tensor cores, which read shared memory by another way."""
        device.ptx("fence.proxy.async.shared::cta")

    def multiply(self, left: Expr, right: Expr) -> None:
        """Starts the products of two tiles.

        Args:
            left: Where the tile of the left factor begins in shared memory, in bytes.
            right: Where that of the right factor begins.
        """
        rows = device.let(description(self.left, self._bottom, left + self._group))
        columns = device.let(description(self.right, self._bottom, right))
        name = instruction(self.dtype, self.grid.columns)
        # Factors of floats may be negated and transposed.
        transposed = [1, 1, *(int(not tile.k_major) for tile in (self.left, self.right))]
        how = transposed if self.dtype in TRANSPOSABLE else []
        sums = [self.sums[i32(at)] for at in range(int(self.sums.shape[0]))]
        device.ptx("wgmma.fence.sync.aligned")
        for step in range(self.left.k_size * self.left.itemsize // K_BYTES):
            a = rows + tirx.const(advance(self.left, step), "uint64")
            b = columns + tirx.const(advance(self.right, step), "uint64")
            device.ptx(name, *sums, a, b, True, *how)
        device.ptx("wgmma.commit_group.sync.aligned")

    def settle(self) -> None:
        """Waits for the products of the tiles before, so that the next ones may replace those."""
        device.ptx("wgmma.wait_group.sync.aligned", self.lag)

    def complete(self) -> None:
        """Waits for the last products."""
        device.ptx("wgmma.wait_group.sync.aligned", 0)


def instruction(dtype: str, columns: int) -> str:
    """The name of the instruction.

    Args:
        dtype: Type of the factors.
        columns: Columns of the tile.
    """
    return f"wgmma.mma_async.sync.aligned.m64n{columns}{_INSTRUCTIONS[dtype]}"


def aligned(memory: Buffer) -> tuple[Expr, Expr]:
    """The address of the shared memory, and the first byte of it where a tile can lie.

    Args:
        memory: Shared memory, as bytes.
    """
    bottom = device.let(device.shared_address(memory[i32(0)]))
    return bottom, device.let(
        tirx.Cast("int32", (device.u32(0) - bottom) & device.u32(ALIGNMENT - 1))
    )


def description(tile: SharedTile, bottom: Expr, place: Expr) -> Expr:
    """What ``wgmma`` is told about a tile.

    Eight rows (along M or N, or along K) follow eight others after 1024 bytes; panels of 64
    elements, where the tile is not K-major, after the size of a panel.

    Args:
        tile: The tile.
        bottom: The address of the shared memory.
        place: The byte of it where the tile begins.
    """
    panel = tile.rows * tile.pitch
    fixed = _SWIZZLE_128 | (ALIGNMENT >> 4) << 32 | (panel >> 4) << 16
    address = bottom + tirx.Cast("uint32", place)
    units = (address & device.u32((1 << 18) - 1)) >> device.u32(4)
    return tirx.const(fixed, "uint64") | tirx.Cast("uint64", units)


def advance(tile: SharedTile, step: int) -> int:
    """Units of 16 bytes from the first steps of the sums, 32 bytes of them, to later ones.

    Args:
        tile: The tile.
        step: How many instructions later.
    """
    if not tile.k_major:
        return step * 16 * tile.pitch // 16
    panel, inner = divmod(step * K_BYTES, tile.pitch)
    return (panel * tile.rows * tile.pitch + inner) // 16
