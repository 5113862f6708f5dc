"""Shapes of the kernels for matrix products.

The model counts what a tile costs on one multiprocessor: products at the rate of its tensor cores,
the bytes of its factors through the second-level cache, and those that come from memory and go
there. A block that is alone does one after the other; several fill each other's waits. A launch
takes as many waves as the blocks need. Where the tiles of a result do not fill the device, K
is divided among blocks too, which costs writing and reading the partial sums once.

Its constants were fitted to 60 kernels of ResNet-50 and BERT-base on an H100, each with one or two
tiles, 2026-11-27: 10 % from what was measured on average, at most 35 %.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.target import GpuModel

#: Tiles tried, largest first: rows, columns, warps over M, warps over N.
_TILES = (
    (128, 256, 2, 4), (256, 128, 4, 2), (128, 128, 2, 2), (128, 64, 2, 2), (64, 128, 2, 2),
    (64, 64, 2, 2), (32, 128, 1, 4), (128, 32, 4, 1), (32, 64, 1, 4), (16, 128, 1, 4),
    (64, 16, 4, 1), (16, 64, 1, 4),
)  # fmt: skip
#: Tiles of ``wgmma``: 64 rows for every four warps.
GROUP_ROWS = 64
GROUP_TILES = (
    (128, 256, 8, 1), (256, 128, 16, 1), (128, 192, 8, 1), (128, 128, 8, 1), (64, 256, 4, 1),
    (128, 64, 8, 1), (64, 128, 4, 1), (64, 64, 4, 1),
)  # fmt: skip
#: Columns that ``wgmma`` of factors of one byte takes at most, as TVM knows it.
_BYTE_COLUMNS = 224
_THREAD_TILES = ((128, 128, 2), (128, 64, 2), (64, 64, 2), (64, 64, 1), (32, 64, 1), (16, 64, 1))
_WARP = 32
#: Bytes of K of a tile, and slots of the pipeline at most.
_K_BYTES, _MAX_STAGES = 128, 4
#: Multiply-adds of 2-byte factors per clock of a multiprocessor: through ``mma.sync`` on Ampere and
#: on Hopper, and through ``wgmma``.
_AMPERE, _HOPPER, _GROUPED = 1024, 900, 2048
#: Share of that rate that ``wgmma`` reaches by the columns of its tile: shared memory is written
#: and read at the same time, and small tiles read it more often for a product.
_GROUPED_SHARE = {256: 1.0, 224: 0.97, 192: 0.95, 128: 0.45, 64: 0.36}
_ONE_GROUP = 0.75  # which waits for itself
#: Bytes that a multiprocessor gets from the second-level cache per clock.
_CACHE_BYTES = 48
#: Stages of the pipeline at least, where there is memory for them: one is read, two are on the way.
_FEW_STAGES = 3
#: Share of the rate that is left when tiles are copied without being ahead of the products.
_NEAR = 0.7
#: Clocks that a block takes besides its products: to start, to fill the pipeline, to store.
_START = 1500
#: Parts of K at most, and steps of the pipeline that one has at least.
_MAX_SPLITS, _MIN_SLOTS = 256, 4
#: Partial sums at most: offsets of them are int32.
_MAX_PARTIAL = (1 << 31) - 1
#: Steps of the sums per slot without tensor cores.
_THREAD_K = 16
#: Registers of a thread besides its sums: of 36 kernels on tensor cores 40 to 60, by nvcc 13.0.
_OTHER_REGISTERS = 56
#: What the copies of a window cost beyond those of a matrix (3 x 3 convolutions of ResNet-50).
_WINDOW = 1.5
#: Clock of an H100 under load in GHz, and the share of its bandwidth that a copy reaches.
_CLOCK, _COPIED = 1.755, 0.9
#: A block that is alone waits so much longer for what its end reads and writes than it takes.
_END = 1.5
#: Clocks that every block takes from the others beside it, and the share of the shorter one of two
#: costs that the longer one does not hide.
_TURN, _HIDDEN = 800, 0.2
#: Compute capabilities with as many units for f64 as half of those for f32.
_FULL_DOUBLE = (80, 90, 100)


@dataclass(frozen=True)
class WarpGrid:
    """Warps side by side over a tile of the result.

    Attributes:
        rows: Rows of the tile.
        columns: Columns of the tile.
        m_warps: Warps over the rows.
        n_warps: Warps over the columns.
        is_grouped: Whether four warps multiply together, by ``wgmma``.
    """

    rows: int
    columns: int
    m_warps: int
    n_warps: int
    is_grouped: bool = False

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.m_warps * self.n_warps * _WARP

    @property
    def warp_rows(self) -> int:
        """Rows of one warp."""
        return self.rows // self.m_warps

    @property
    def warp_columns(self) -> int:
        """Columns of one warp."""
        return self.columns // self.n_warps


@dataclass(frozen=True)
class ThreadGrid:
    """Threads side by side over a tile of the result, without tensor cores.

    Attributes:
        rows: Rows of the tile.
        columns: Columns of the tile.
        block: A thread computes ``block`` times ``block`` blocks of 4 x 4.
    """

    rows: int
    columns: int
    block: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows * self.columns // (16 * self.block * self.block)


Grid = WarpGrid | ThreadGrid


@dataclass(frozen=True)
class Extents:
    """Sizes of the products: ``batch`` times M x K times K x N.

    Attributes:
        batch: Products.
        rows: Rows of one, M.
        columns: Columns, N.
        k_size: What is summed over, K.
        read: Bytes of both operands in memory, where they are known.
        moved: Bytes that the end reads and writes for an element of the result.
    """

    batch: int
    rows: int
    columns: int
    k_size: int
    read: int = 0
    moved: int = 0


@dataclass(frozen=True)
class GemmPlan:
    """Shape of a kernel.

    Attributes:
        grid: Tile of a block and its division among warps.
        k_block: Steps of the sums per slot.
        stages: Slots of the pipeline.
        splits: Blocks that share the sums of a tile.
    """

    grid: Grid
    k_block: int
    stages: int
    splits: int

    @property
    def key(self) -> tuple[int, ...]:
        """The plan as numbers, as the tuning database keeps it."""
        return (*astuple(self.grid), self.k_block, self.stages, self.splits)

    def tiles(self, extents: Extents) -> tuple[int, int]:
        """Tiles of one result, along M and N.

        Args:
            extents: M, N and K of the product.
        """
        return -(-extents.rows // self.grid.rows), -(-extents.columns // self.grid.columns)

    def slots(self, extents: Extents) -> int:
        """Steps of the pipeline that one block goes through, at most.

        Args:
            extents: M, N and K of the product.
        """
        steps = -(-extents.k_size // self.k_block)
        return -(-steps // self.splits)


@dataclass(frozen=True)
class Engine:
    """What multiplies.

    Attributes:
        itemsize: Bytes of a factor.
        rate: Multiply-adds per clock of a multiprocessor.
        is_threads: Whether they are those of single threads rather than tensor cores.
        is_grouped: Whether ``wgmma`` can be had too.
    """

    itemsize: int
    rate: int
    is_threads: bool = False
    is_grouped: bool = False

    def rate_of(self, grid: Grid) -> int:
        """Multiply-adds per clock with tiles of a kind.

        Args:
            grid: How a tile is divided among warps.
        """
        grouped = isinstance(grid, WarpGrid) and grid.is_grouped
        return _GROUPED * 2 // self.itemsize if grouped else self.rate


def tensor_cores(itemsize: int, model: GpuModel) -> Engine:
    """Tensor cores on factors of ``itemsize`` bytes.

    Args:
        itemsize: Bytes of an element of the operands.
        model: The device, whose compute capability decides the multiply-adds per clock.
    """
    rate = _HOPPER if model.capability >= 90 else _AMPERE
    grouped = itemsize <= 2 and model.arch == "sm_90a"  # it would cut the lower bits of f32 off
    return Engine(itemsize, rate * 2 // itemsize, is_grouped=grouped)


def threads(dtype: str, model: GpuModel) -> Engine:
    """Multiply-adds of threads.

    Args:
        dtype: TVM's name of the type that is accumulated.
        model: The device.
    """
    if dtype == "float64":
        return Engine(8, 64 if model.capability in _FULL_DOUBLE else 2, is_threads=True)
    return Engine(4, 128 if dtype == "float32" else 64, is_threads=True)


def plan_gemm(extents: Extents, engine: Engine, model: GpuModel) -> GemmPlan:
    """The plan with the fewest clocks by the model, or what a search found to be faster.

    Args:
        extents: Batch, M, N and K.
        engine: What multiplies.
        model: The device.
    """
    grids: list[Grid] = [WarpGrid(*tile) for tile in _TILES]
    if engine.is_grouped:
        most = _BYTE_COLUMNS if engine.itemsize == 1 else 256
        grids += [WarpGrid(*tile, is_grouped=True) for tile in GROUP_TILES if tile[1] <= most]
    if engine.is_threads:
        grids = [ThreadGrid(*tile) for tile in _THREAD_TILES]
    plans = [plan for grid in grids for plan in _plans(grid, extents, engine, model)]
    costs = {plan: clocks(plan, extents, engine, model) for plan in plans}
    options = {plan.key: plan for plan in ranked(costs)}
    return options[choose("product tile", next(iter(options)), tuple(options))]


def _plans(grid: Grid, extents: Extents, engine: Engine, model: GpuModel) -> list[GemmPlan]:
    is_grouped = isinstance(grid, WarpGrid) and grid.is_grouped
    k_block = _THREAD_K if engine.is_threads else _K_BYTES // engine.itemsize
    if not (engine.is_threads or is_grouped) and extents.k_size <= k_block // 2:
        k_block //= 2
    slot = (grid.rows + grid.columns) * k_block * engine.itemsize
    slots = -(-extents.k_size // k_block)
    least = 3 if is_grouped else 2  # products under way keep one slot more
    most = min(_MAX_STAGES, (model.shared_per_block - 1024) // slot, max(least, slots))
    fewest = max(least, min(most, _FEW_STAGES))
    found, splits = [], 1
    results = extents.batch * extents.rows * extents.columns
    limit = min(_MAX_SPLITS, slots // _MIN_SLOTS, _MAX_PARTIAL // results)
    while splits <= max(1, limit):
        even = -(-slots // -(-slots // splits))
        found += [GemmPlan(grid, k_block, stages, even) for stages in range(most, fewest - 1, -1)]
        splits *= 2
    return found


def resident(plan: GemmPlan, engine: Engine, model: GpuModel) -> int:
    """Blocks that a multiprocessor holds at once.

    Args:
        plan: The tile and the stages of its pipeline, which take shared memory.
        engine: What multiplies.
        model: The device: shared memory, registers and threads of a multiprocessor.
    """
    grid = plan.grid
    shared = plan.stages * (grid.rows + grid.columns) * plan.k_block * engine.itemsize
    per_thread = min(255, grid.rows * grid.columns // grid.threads + _OTHER_REGISTERS)
    return max(
        1,
        min(
            model.shared_per_sm // (shared + 1024),
            model.registers_per_sm // (per_thread * grid.threads),
            model.threads_per_sm // grid.threads,
        ),
    )


def clocks(plan: GemmPlan, extents: Extents, engine: Engine, model: GpuModel) -> float:
    """Estimated clocks of a launch.

    Args:
        plan: The tile and the stages of its pipeline.
        extents: Batch, M, N and K.
        engine: What multiplies, at so many products per clock.
        model: The device.
    """
    m_tiles, n_tiles = plan.tiles(extents)
    blocks = extents.batch * m_tiles * n_tiles * plan.splits
    together = min(resident(plan, engine, model), -(-blocks // model.sms))
    waves, rest = divmod(blocks, model.sms * together)
    total = waves * _wave(plan, together, blocks, extents, engine, model)
    if rest:
        total += _wave(plan, -(-rest // model.sms), blocks, extents, engine, model)
    if plan.splits > 1:
        moved = 8 * extents.batch * extents.rows * extents.columns * (plan.splits + 1)
        total += _START + moved / (_memory_rate(model) * model.sms)
    return total


def _memory_rate(model: GpuModel) -> float:
    """Bytes that a multiprocessor gets from memory in a clock."""
    return model.bandwidth * _COPIED / (model.sms * _CLOCK)


def _wave(
    plan: GemmPlan, together: int, blocks: int, extents: Extents, engine: Engine, model: GpuModel
) -> float:
    """Clocks in which every multiprocessor finishes ``together`` blocks of ``blocks``."""
    grid, k_size = plan.grid, plan.slots(extents) * plan.k_block
    ahead = min(1.0, _NEAR + (1 - _NEAR) / _MAX_STAGES * plan.stages * together)
    rate = engine.rate_of(grid) * _efficiency(grid, together) * ahead
    plain = (extents.rows + extents.columns) * extents.k_size * extents.batch * engine.itemsize
    window = _WINDOW if 2 * extents.read < plain and extents.read else 1.0
    cache = window * (grid.rows + grid.columns) * k_size * engine.itemsize / _CACHE_BYTES
    inner = max(grid.rows * grid.columns * k_size / rate, cache)
    memory = _memory_rate(model)
    first = extents.read / blocks / memory
    last = grid.rows * grid.columns * extents.moved / memory if plan.splits == 1 else 0.0
    alone = max(inner, first) + _END * last + _START
    busy = together * (max(inner, first + last) + _TURN)
    return max(alone, busy) + _HIDDEN * min(alone, busy)


def _efficiency(grid: Grid, together: int) -> float:
    """Share of the rate that a tile reaches.

    What is read from shared memory serves a whole side of a warp's or a thread's tile, so small
    ones wait for shared memory; and one warp per scheduler cannot hide what it waits for.
    """
    if isinstance(grid, ThreadGrid):
        intensity = grid.block / 2
    elif grid.is_grouped:
        intensity = _GROUPED_SHARE[grid.columns] * (_ONE_GROUP if grid.rows == GROUP_ROWS else 1)
    else:
        reads = (grid.warp_rows + grid.warp_columns) / (grid.warp_rows * grid.warp_columns)
        intensity = 1 / (32 * reads)
    warps = grid.threads // _WARP * together
    return min(1.0, intensity) * min(1.0, 0.5 + warps / 16)
