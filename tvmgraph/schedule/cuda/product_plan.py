"""Shapes of the kernels for matrix products.

The model counts what a tile costs on one multiprocessor: products at the rate of its tensor cores,
against the bytes of its factors through the second-level cache; a launch takes as many waves as the
blocks need. Where the tiles of a result do not fill the device, the depth is divided among blocks
too, which costs writing and reading the partial sums once.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvmgraph.schedule.cuda.mma import WarpGrid
from tvmgraph.schedule.target import GpuModel

#: Tiles tried, largest first: rows, columns, warps down, warps across.
_TILES = (
    (128, 256, 2, 4), (256, 128, 4, 2), (128, 128, 2, 2), (128, 64, 2, 2), (64, 128, 2, 2),
    (64, 64, 2, 2), (32, 128, 1, 4), (128, 32, 4, 1), (32, 64, 1, 4), (16, 128, 1, 4),
    (64, 16, 4, 1), (16, 64, 1, 4),
)  # fmt: skip
#: Bytes of depth of a tile, and slots of the ring at most.
_DEPTH_BYTES, _MAX_STAGES = 128, 4
#: Multiply-adds per clock of a multiprocessor through ``mma.sync``, by bytes of an element, and
#: the bytes that it gets from the second-level cache per clock.
_RATE = {1: 2048, 2: 1024, 4: 512}
_CACHE_BYTES = 48
#: Clocks that a block takes besides its products: to start, to fill the ring, to store.
_START = 1500
_MAX_SPLITS = 32


@dataclass(frozen=True)
class Extents:
    """Sizes of the products: ``batch`` times (rows, depth) x (depth, columns)."""

    batch: int
    rows: int
    columns: int
    depth: int


@dataclass(frozen=True)
class ProductPlan:
    """Shape of a kernel.

    Attributes:
        grid: Tile of a block and its division among warps.
        depth: Steps of the sums per slot.
        stages: Slots of the ring.
        splits: Blocks that share the sums of a tile.
    """

    grid: WarpGrid
    depth: int
    stages: int
    splits: int

    def tiles(self, extents: Extents) -> tuple[int, int]:
        """Tiles down and across one result."""
        return -(-extents.rows // self.grid.rows), -(-extents.columns // self.grid.columns)

    def slots(self, extents: Extents) -> int:
        """Steps of the ring that one block goes through, at most."""
        return -(-(-(-extents.depth // self.depth)) // self.splits)


def plan_product(extents: Extents, itemsize: int, model: GpuModel) -> ProductPlan:
    """The plan with the fewest clocks by the model."""
    plans = [
        plan
        for tile in _TILES
        for plan in _plans(WarpGrid(*tile), extents, itemsize, model)
    ]  # fmt: skip
    return min(plans, key=lambda plan: clocks(plan, extents, itemsize, model))


def _plans(
    grid: WarpGrid, extents: Extents, itemsize: int, model: GpuModel
) -> list[ProductPlan]:
    depth = _DEPTH_BYTES // itemsize
    if extents.depth * itemsize <= _DEPTH_BYTES // 2:
        depth //= 2
    slot = (grid.rows + grid.columns) * depth * itemsize
    slots = -(-extents.depth // depth)
    stages = min(_MAX_STAGES, model.shared_per_block // slot, max(2, slots))
    if stages < 2:
        return []
    found, splits = [], 1
    while splits <= min(_MAX_SPLITS, max(1, slots // 4)):
        whole = -(-slots // splits)
        found.append(ProductPlan(grid, depth, stages, -(-slots // whole)))
        splits *= 2
    return found


def resident(plan: ProductPlan, itemsize: int, model: GpuModel) -> int:
    """Blocks that a multiprocessor holds at once."""
    grid = plan.grid
    shared = plan.stages * (grid.rows + grid.columns) * plan.depth * itemsize
    registers = min(255, grid.warp_rows * grid.warp_columns // 32 + 96) * grid.threads
    return max(
        1,
        min(
            model.shared_per_sm // (shared + 1024),
            model.registers_per_sm // registers,
            model.threads_per_sm // grid.threads,
        ),
    )


def clocks(plan: ProductPlan, extents: Extents, itemsize: int, model: GpuModel) -> float:
    """Estimated clocks of a launch."""
    grid = plan.grid
    down, across = plan.tiles(extents)
    blocks = extents.batch * down * across * plan.splits
    together = min(resident(plan, itemsize, model), -(-blocks // model.sms))
    waves = -(-blocks // (model.sms * together))
    depth = plan.slots(extents) * plan.depth
    products = grid.rows * grid.columns * depth / (_RATE[itemsize] * _efficiency(grid, together))
    cache = (grid.rows + grid.columns) * depth * itemsize / _CACHE_BYTES
    total = waves * (together * max(products, cache) + _START)
    if plan.splits > 1:
        moved = 8 * extents.batch * extents.rows * extents.columns * (plan.splits + 1)
        total += _START + moved / (_CACHE_BYTES * model.sms)
    return total


def _efficiency(grid: WarpGrid, together: int) -> float:
    """Share of the rate that warps of this size reach.

    A fragment that is read from shared memory serves a whole side of a warp's tile, so small ones
    wait for shared memory; and one warp per scheduler cannot hide what it waits for.
    """
    reads = (grid.warp_rows + grid.warp_columns) / (grid.warp_rows * grid.warp_columns)
    warps = grid.threads // 32 * together
    return min(1.0, 1 / (32 * reads)) * min(1.0, 0.5 + warps / 16)
