"""Choosing the shape of a matrix-product kernel: register tile, panels, and what to divide."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.loop_ir.gemm_shape import GemmShape
from tvmgraph.machine.processor import CpuModel

# "Measured" is the least of many times of a thread (CLOCK_THREAD_CPUTIME_ID) on one core of an AMD
# EPYC with AVX-512, 32 KiB of L1 and 1 MiB of L2; a cycle is that of a chain of additions. Numbers
# without a measurement are rules of thumb.

#: VNNI groups of a vector: dot-product instructions are used on registers of 512 bits.
LANES = 16
#: Floating-point operations below which the calling thread works alone: some 2 us of a core.
MIN_PARALLEL_FLOPS = 200_000
#: Bytes of the column operand, which few rows wait for, below which it does, too: one core reads
#: its L2 half as fast as two read theirs.
_MIN_PARALLEL_BYTES = 150_000
#: Cycles of a dependent fused multiply-add; measured: 4.00.
_FMA_LATENCY = 4
#: Bytes that a core reads from L2 in a cycle; measured: 32 of half of it, 27 beyond. Less is
#: assumed, because rows of the other operand come through it, too.
_L2_BYTES_PER_CYCLE = 24
#: Cycles that a k-step of the register tile takes beyond its multiply-adds: the loop's end, once in
#: four steps. Measured with packing and stores: 1.04 cycles a multiply-add, of 28 in a step.
_STEP_OVERHEAD = 0.3
#: Multiply-adds written out per iteration of the k loop; more only costs compile time.
_MAX_STEP_FMAS = 24
#: Rows up to which dot products use transposed weights in place: always, where K has at least
#: ``_DOT_K`` steps to pay for the sums over the lanes at its end, and where K is no whole number of
#: vectors, so that most of them lie across two lines of the cache. Beyond, packing is faster.
_MAX_DOT_ROWS, _MAX_DEEP_DOT_ROWS, _MAX_UNEVEN_DOT_ROWS, _DOT_K = 4, 40, 20, 256
#: The same rows for types with VNNI instructions: packing takes as long as for others, the products
#: a fraction of the time.
_MAX_VNNI_DOT_ROWS = {"bfloat16": 128, "int8": 32, "int8_pairs": 8}
#: Share of its rows that the busiest worker may have more than with the best division, for larger
#: blocks.
_MAX_EXCESS = 0.05
#: Bytes that a core reads from memory in a cycle while the others do so, too. Measured with the
#: others idle: 6.
_MEMORY_BYTES_PER_CYCLE = 2
#: Steps of K, about, that a product runs over at a time if it has more rows than caches hold: sums
#: are read and written once per block, and L2 holds the more rows the shorter it is.
_K_BLOCK = 512
#: Time of panels that all workers pack together, relative to panels that each packs for itself, and
#: cycles per worker of the second parallel region that this takes. Measured with two workers and
#: AVX-512: 1.01 to 1.11 for 256 to 512 rows, K and columns; 2.9 us, 10,100 cycles, a region.
_SHARED_COST, _REGION_CYCLES = 1.1, 10_000
#: Bytes after which addresses fall into the same set of L1 again (the size of one of its ways),
#: those of a line, and the share by which a k-step takes longer for every row too many. Measured
#: with 8 ways of L1 and K of 1024 against 1008 and 1040: 1 % for 2 rows too many, 9 % for 4, 28 %
#: for 6. The cost is above that, so that of two tiles the one that fits is taken.
_SETS_BYTES, _LINE_BYTES, _CROWDED_COST = 4096, 64, 0.08
#: Idle share of the workers that makes a second parallel region worth while.
MAX_IMBALANCE = 0.15
#: Cycles per multiply-add of a tile of a wide panel, relative to those of the best tile, at most.
_MAX_WIDE_COST = 1.01
#: Vectors, and rows, of the largest register tile where registers hold more, for shorter code; with
#: a single row more vectors hide the latency.
_MAX_VECTORS, _MAX_ROW_VECTORS, _MAX_ROWS = 4, 8, 14
#: Vectors of a panel in VNNI layout, and of one that AMX tiles read: what they do not use would
#: come into the caches beside what they do.
VNNI_VECTORS, AMX_VECTORS = 4, 2
#: Rows that a product is taken to have whose rows vary.
USUAL_ROWS = 64


class Packing(enum.Enum):
    """Where the column operand is read from."""

    NONE = "in place: a single block of rows uses every element once"
    LOCAL = "every worker packs the panels it uses"
    SHARED = "all workers pack all panels first, then divide panels and rows"
    DONE = "the operand is stored as panels; workers divide panels and rows"


@dataclass(frozen=True)
class GemmPlan:
    """Parameters of the kernel.

    Attributes:
        tile_rows: Rows of the register tile.
        vectors: Vectors of columns of the register tile; with the lanes, the width of a panel.
        lanes: Elements of a vector.
        unroll: k-steps written out per loop iteration.
        k_block: k-steps per panel.
        row_block: Rows of one work item.
        packing: Where panels come from.
        parallel: Whether workers share the product.
        threads: Number of workers.
        rows_first: Whether a worker goes through all panels with a block of rows, instead of all
            rows with a panel.
    """

    tile_rows: int
    vectors: int
    lanes: int
    unroll: int
    k_block: int
    row_block: int
    packing: Packing
    parallel: bool
    threads: int
    rows_first: bool = False

    @property
    def panel(self) -> int:
        """Columns of a panel."""
        return self.vectors * self.lanes


def plan_gemm(shape: GemmShape, model: CpuModel, *, direct: bool) -> GemmPlan:
    """The kernel for a shape.

    Args:
        shape: The extents.
        model: The processor.
        direct: Whether rows of the column operand are contiguous, so that it can stay in place.
    """
    lanes = model.lanes_of(shape.itemsize)
    tile_rows, vectors = _register_tile(shape, model, lanes)
    k_block = _k_block(shape, model, vectors * lanes)
    k_block = choose("gemm K block", k_block, [k_block, *_shorter_k_blocks(k_block)])
    parallel = _parallel(shape, model)
    one_block = shape.rows <= tile_rows
    items = shape.outer * -(-shape.columns // (vectors * lanes))
    row_block, packing = shape.rows, Packing.LOCAL
    if direct and one_block:
        packing, k_block = Packing.NONE, shape.k_size
    elif parallel and not one_block:
        shared = _shared_cost(shape, model) < _local_cost(shape, vectors * lanes, lanes, model)
        if choose("gemm shared panels", shared, (True, False)):
            packing, k_block = Packing.SHARED, shape.k_size
    if packing is Packing.SHARED:
        row_block = _row_block(shape.rows, tile_rows, items, model.threads)
        blocks = _row_blocks(shape.rows, tile_rows, row_block)
        row_block = choose("gemm row block", row_block, blocks)
    return GemmPlan(
        tile_rows, vectors, lanes, _unroll(tile_rows * vectors), k_block, row_block, packing,
        parallel, model.threads, packing is Packing.SHARED and _rows_first(),
    )  # fmt: skip


def panel_columns(shape: GemmShape, model: CpuModel, vnni_type: str | None = None) -> int:
    """Columns of the panels in which the weights of a product are stored best.

    They are those of the register tile with which :func:`plan_panels` takes the least time.

    Args:
        shape: The extents.
        model: The processor.
        vnni_type: The type of the elements if they are stored in VNNI layout.
    """
    lanes = model.lanes_of(shape.itemsize)
    if vnni_type:
        return (AMX_VECTORS if vnni_type in model.tile_types else VNNI_VECTORS) * lanes
    costs = _tile_costs(shape, model, lanes)
    return min(costs, key=lambda tile: costs[tile])[1] * lanes


def plan_panels(shape: GemmShape, model: CpuModel, panel: int) -> GemmPlan | None:
    """The kernel for an operand that is stored as panels of ``panel`` columns.

    Args:
        shape: Extents of the product.
        model: The processor: registers, cycles of a step, caches, threads.
        panel: Columns of a stored panel.

    Returns:
        None when such panels are no whole number of vectors, or too wide for the registers.
    """
    lanes = model.lanes_of(shape.itemsize)
    vectors = panel // lanes
    if panel % lanes or not 1 <= vectors <= _MAX_ROW_VECTORS:
        return None
    most = min(shape.rows, max_tile_rows(vectors, model))
    costs = {r: _rows_cycles(shape, r, vectors, model) for r in range(1, most + 1)}
    best = ranked(costs)
    rows = choose("panel rows", best[0], best)
    items = shape.outer * -(-shape.columns // panel)
    parallel = _parallel(shape, model)
    row_block = shape.rows
    k_block = _stored_k_block(shape, (rows, vectors), model)
    if k_block < shape.k_size:
        held = model.l2_bytes // 2 // (k_block * shape.itemsize * rows)
        row_block = min(shape.rows, max(1, held) * rows)
    elif parallel and _idle(shape, panel, lanes, model.threads) > MAX_IMBALANCE:
        row_block = _row_block(shape.rows, rows, items, model.threads)
    row_block = choose("panel row block", row_block, _row_blocks(shape.rows, rows, row_block))
    return GemmPlan(
        rows, vectors, lanes, _unroll(rows * vectors), k_block, row_block, Packing.DONE,
        parallel, model.threads, _rows_first(k_block < shape.k_size),
    )  # fmt: skip


def wants_dot_products(shape: GemmShape, model: CpuModel, vnni_type: str | None) -> bool:
    """Whether there are so few rows that packing a transposed operand costs more than using it.

    Args:
        shape: The extents.
        model: The processor.
        vnni_type: The type of the elements if there are VNNI instructions for it.
    """
    if vnni_type and shape.columns < LANES:  # too few for panels in VNNI layout
        return True
    lanes = model.lanes_of(shape.itemsize)
    even = shape.k_size % lanes == 0 or shape.columns < lanes  # for so few packing is no better
    most = _MAX_DEEP_DOT_ROWS if even else _MAX_UNEVEN_DOT_ROWS
    most = _MAX_VNNI_DOT_ROWS[vnni_type] if vnni_type else most
    deep = shape.k_size >= _DOT_K and shape.rows <= most
    deep = deep and shape.rows * shape.k_size * shape.itemsize <= model.l2_bytes // 2
    return shape.rows <= _MAX_DOT_ROWS or deep


def _register_tile(shape: GemmShape, model: CpuModel, lanes: int) -> tuple[int, int]:
    """The tile with the fewest cycles when panels have to be packed."""
    costs = _tile_costs(shape, model, lanes)
    if is_worth_sharing(shape):
        shared = _shared_cost(shape, model)
        for tile in costs:
            costs[tile] *= min(shared, _local_cost(shape, tile[1] * lanes, lanes, model))
    best = ranked(costs)
    return choose("gemm tile", best[0], best)


def _tile_costs(shape: GemmShape, model: CpuModel, lanes: int) -> dict[tuple[int, int], float]:
    """Cycles of all rows and columns, leftovers included, by rows and vectors of the tile."""
    costs: dict[tuple[int, int], float] = {}
    available = -(-shape.columns // lanes)
    widest = _MAX_ROW_VECTORS if shape.rows == 1 else _MAX_VECTORS
    for vectors in range(min(widest, available), 0, -1):
        panels, rest_vectors = divmod(available, vectors)
        for rows in range(1, min(shape.rows, max_tile_rows(vectors, model)) + 1):
            cost = _rows_cycles(shape, rows, vectors, model)
            cost *= panels + (rest_vectors / vectors * 1.1 if rest_vectors else 0)
            cost *= 1 + 0.02 * bool(shape.rows % rows) + 0.05 / (rows * vectors)
            costs[rows, vectors] = cost
    return costs


def tile_of_panel(rows: int, vectors: int, model: CpuModel) -> tuple[int, int]:
    """Rows and vectors of the register tile that goes through a panel in steps of its width.

    For panels whose width is not for the kernel to choose.

    Args:
        rows: All rows.
        vectors: Those of the panel, a multiple of those of the tile.
        model: The processor.
    """
    costs: dict[tuple[int, int], float] = {}
    widths = [v for v in range(min(vectors, _MAX_ROW_VECTORS), 0, -1) if vectors % v == 0]
    for width in widths:
        for height in range(1, min(rows, max_tile_rows(width, model)) + 1):
            cycles = in_tiles(rows, height, lambda r, width=width: step_cycles(r, width, model))
            costs[height, width] = cycles * (vectors // width)
    return min(costs, key=lambda tile: costs[tile])


def panel_vectors(model: CpuModel) -> int:
    """Vectors of a panel that many rows meet: wide ones are read less often, as long as registers
    hold a tile that is about as fast as any.

    Args:
        model: The processor.
    """

    def cycles(vectors: int) -> float:
        rows = max_tile_rows(vectors, model)
        return step_cycles(rows, vectors, model) / (rows * vectors)

    widths = range(1, _MAX_VECTORS + 1)
    best = min(map(cycles, widths))
    return max(v for v in widths if cycles(v) <= _MAX_WIDE_COST * best)


def in_tiles(rows: int, height: int, cycles: Callable[[int], float]) -> float:
    """Cycles of all rows in tiles of ``height``, the last of which may have fewer.

    Args:
        rows: All rows.
        height: Rows of a tile.
        cycles: Takes the rows of a tile.
    """
    full, rest = divmod(rows, height)
    return full * cycles(height) + (cycles(rest) if rest else 0)


def max_tile_rows(vectors: int, model: CpuModel) -> int:
    """Rows of the highest register tile of so many vectors: what else a step needs is a row of
    columns, a broadcast element and a register to spare. A single row takes columns from memory.

    Args:
        vectors: Vectors of a row of the tile.
        model: The processor, whose number of vector registers limits it.
    """
    return max(1, min(_MAX_ROWS, (model.registers - 2 - vectors) // vectors))


def _rows_cycles(shape: GemmShape, rows: int, vectors: int, model: CpuModel) -> float:
    """Cycles of one k-step of all rows of a panel, in tiles of ``rows``."""
    panel = shape.k_size * vectors * model.vector_bytes
    read = vectors * model.vector_bytes / _L2_BYTES_PER_CYCLE if panel > model.l1_bytes // 2 else 0
    cycles = in_tiles(shape.rows, rows, lambda r: max(step_cycles(r, vectors, model), read))
    return cycles * (1 + _CROWDED_COST * _crowded(rows, shape.row_bytes, model))


def _crowded(rows: int, row_bytes: int, model: CpuModel) -> int:
    """Rows of a tile that L1 has no room for, because their elements fall into the same set."""
    sets = Counter(row * row_bytes % _SETS_BYTES // _LINE_BYTES for row in range(rows))
    return max(0, max(sets.values()) - model.l1_bytes // _SETS_BYTES) if row_bytes else 0


def _local_cost(shape: GemmShape, panel: int, lanes: int, model: CpuModel) -> float:
    """Time when workers divide the panels, relative to equal shares."""
    return 1 / (1 - _idle(shape, panel, lanes, model.threads))


def _shared_cost(shape: GemmShape, model: CpuModel) -> float:
    """The same when they pack all panels together, and then divide the rows."""
    cycles = shape.flops / (model.flops_per_cycle * 4 / shape.itemsize)
    return _SHARED_COST + _REGION_CYCLES * model.threads / cycles


def _idle(shape: GemmShape, panel: int, lanes: int, threads: int) -> float:
    """Idle share of the workers when they divide the panels, of which the last may be narrower."""
    wide, every = panel // lanes, -(-shape.columns // lanes)
    panels = -(-every // wide)
    items = shape.outer * panels
    step = -(-items // threads)

    def vectors(count: int) -> int:
        whole, rest = divmod(min(count, items), panels)
        return whole * every + min(rest * wide, every)

    busiest = max(vectors((t + 1) * step) - vectors(t * step) for t in range(threads))
    return 1 - shape.outer * every / (busiest * threads)


def _unroll(fmas: int) -> int:
    """Steps of K that are written out per iteration, for so many multiply-adds each."""
    usual = max(1, min(4, _MAX_STEP_FMAS // fmas))
    return choose("gemm unroll", usual, tuple(dict.fromkeys((usual, 1, 2, 4))))


def _rows_first(usual: bool = False) -> bool:
    return choose("gemm rows first", usual, (False, True))


def _row_blocks(rows: int, tile_rows: int, block: int) -> tuple[int, ...]:
    """Other numbers of rows for a work item: whole tiles, from few items to many."""
    sizes = (min(rows, -(-rows // (n * tile_rows)) * tile_rows) for n in (1, 2, 4, 8))
    return tuple(dict.fromkeys((block, *sizes)))


def is_worth_sharing(shape: GemmShape) -> bool:
    """Whether a product takes longer than starting the workers does.

    Args:
        shape: Extents of the product.
    """
    read = shape.outer * shape.k_size * shape.columns * shape.itemsize
    return shape.flops >= MIN_PARALLEL_FLOPS or read >= _MIN_PARALLEL_BYTES


def _parallel(shape: GemmShape, model: CpuModel) -> bool:
    return model.threads > 1 and choose("gemm parallel", is_worth_sharing(shape), (True, False))


def _shorter_k_blocks(k_block: int) -> list[int]:
    """Half and a quarter of a block of K that is long enough to be cut."""
    return [-(-k_block // n) for n in (2, 4) if k_block >= 256 * n]


def step_cycles(rows: int, vectors: int, model: CpuModel) -> float:
    """Cycles of one k-step of a register tile: multiply-adds, loads, or latency, as is slowest.

    Args:
        rows: Rows of the register tile.
        vectors: Vectors of one of its rows.
        model: The processor: fused multiply-adds per cycle; two loads per cycle are assumed.
    """
    arithmetic = rows * vectors / model.fma_per_cycle
    loads = (rows + 2 * vectors / model.fma_per_cycle) / 2
    return max(arithmetic, loads, _FMA_LATENCY) + _STEP_OVERHEAD


def _stored_k_block(shape: GemmShape, tile: tuple[int, int], model: CpuModel) -> int:
    """Block of K by which stored panels are gone through.

    Every panel meets all rows. If they are more than L3 keeps beside what else is in it, and panels
    so narrow that rows would be wanted faster than memory delivers, a block of rows that L2 holds
    meets all panels instead, of a part of K, so that it has rows enough.
    """
    width = -(-shape.k_size // max(1, -(-shape.k_size // _K_BLOCK)))
    large = shape.rows * shape.k_size * shape.itemsize > model.l3_bytes // 2
    fast = tile[0] * shape.itemsize / step_cycles(*tile, model) > _MEMORY_BYTES_PER_CYCLE
    usual = width if large and fast else shape.k_size
    return choose("panel K block", usual, (shape.k_size, width))


def _k_block(shape: GemmShape, model: CpuModel, panel: int) -> int:
    """The largest block of K whose panel fills half of L2, in equal blocks."""
    longest = max(256, model.l2_bytes // 2 // (panel * shape.itemsize))
    if shape.k_size <= longest * 5 // 4:
        return shape.k_size
    blocks = -(-shape.k_size // longest)
    return -(-shape.k_size // blocks)


def imbalance(items: int, threads: int) -> float:
    """Idle share of the workers when equal items are divided among them.

    Args:
        items: Equal work items.
        threads: Workers.

    Returns:
        0 when every worker gets as many, towards 1 when most wait for the last.
    """
    return 1 - items / (-(-items // threads) * threads)


def _row_block(rows: int, tile_rows: int, items: int, threads: int) -> int:
    """The largest multiple of the tile's rows with which the busiest worker has hardly more rows
    than it must; the last block may be much smaller than the others."""
    blocks = range(rows // tile_rows * tile_rows, 0, -tile_rows)

    def share(block: int) -> int:
        return -(-items * -(-rows // block) // threads) * block

    least = min(map(share, blocks), default=tile_rows)
    return next((b for b in blocks if share(b) <= least * (1 + _MAX_EXCESS)), tile_rows)
