"""The shapes that the kernels of attention get."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.attention import Problem
from tvmgraph.backend.cpu.kernels.gemm.plan import (
    MAX_IMBALANCE,
    MIN_PARALLEL_FLOPS,
    imbalance,
    in_tiles,
    max_tile_rows,
    panel_vectors,
    step_cycles,
)
from tvmgraph.backend.loop_ir.types import Index
from tvmgraph.machine.processor import CpuModel

#: Queries of a block, at most about.
QUERIES = 48
#: How many times smaller than the largest blocks of queries may be: each reads all keys and values.
_MAX_SPLIT = 4
#: How much longer register tiles that leave no remainder may take.
_MAX_SLOWDOWN = 1.02


@dataclass(frozen=True)
class Plan:
    """Shape of the kernel.

    Attributes:
        lanes: Elements of a vector.
        vectors: Vectors of a panel of keys.
        tile: Queries of a register tile.
        queries: Queries of a block.
        blocks: Blocks of queries; the last one may overlap the one before it, or, where their
            number is symbolic, hold queries that do not exist.
        groups: Work items per head of keys.
        parallel: Whether the workers share them.
    """

    lanes: int
    vectors: int
    tile: int
    queries: int
    blocks: Index
    groups: int
    parallel: bool

    @property
    def panel(self) -> int:
        """Keys of a panel."""
        return self.vectors * self.lanes


def plan_attention(problem: Problem, model: CpuModel) -> Plan:
    """The register tile with the fewest cycles, and blocks of queries of about equal size.

    Args:
        problem: Operands of the attention with their extents, which may be symbolic.
        model: The processor: registers, lanes, threads.

    Returns:
        The shapes of tiles and blocks in queries and lanes, and in how many parts the heads'
        queries are shared out among the threads.
    """
    rows, batch = problem.query.extent("S"), problem.query.extent("B")
    heads, keys = problem.key.fixed("N"), problem.key.extent("S")
    lanes = model.lanes_of(8 if problem.dtype == "float64" else 4)
    vectors = panel_vectors(model)
    if isinstance(keys, int):
        vectors = min(vectors, -(-keys // lanes))
    limit = max_tile_rows(vectors, model)
    if not isinstance(rows, int):
        queries = QUERIES // limit * limit
        blocks = tirx.floordiv(rows + (queries - 1), tirx.IntImm("int64", queries))
        groups = 1 if imbalance(heads, model.threads) <= MAX_IMBALANCE else model.threads
        return Plan(lanes, vectors, limit, queries, blocks, groups, model.threads > 1)
    tile = min(
        range(1, min(limit, rows) + 1), key=lambda r: -(-rows // r) * step_cycles(r, vectors, model)
    )
    sharing = problem.query.fixed("N") // heads
    queries = min(rows, tile * _tiles_per_block(-(-rows // tile), max(1, QUERIES // tile)))
    blocks = -(-rows // queries)
    heads *= batch if isinstance(batch, int) else 1
    known = isinstance(keys, int) and isinstance(batch, int)
    flops = (
        4 * heads * sharing * rows * keys * problem.query.fixed("D")
        if known
        else MIN_PARALLEL_FLOPS
    )
    parallel = flops >= MIN_PARALLEL_FLOPS and model.threads > 1
    groups = 1
    while parallel and groups < blocks and imbalance(heads * groups, model.threads) > MAX_IMBALANCE:
        groups += 1
    return Plan(lanes, vectors, tile, queries, blocks, groups, parallel)


def _tiles_per_block(tiles: int, most: int) -> int:
    """Register tiles of a block of queries: as many as leave the last block nearly full.

    Args:
        tiles: Those of all queries.
        most: What the first cache holds the scores of.
    """
    sizes = range(-(-most // _MAX_SPLIT), most + 1)
    return min(sizes, key=lambda size: (-(-tiles // size) * size, -size))


def rounded_up(count: Index, size: int) -> Index:
    """How many times ``size`` it takes to hold ``count``.

    Args:
        count: A number, or an expression where it is known at the call only.
        size: What it is divided by.
    """
    if isinstance(count, int):
        return -(-count // size)
    step = tirx.IntImm("int64", size)
    return tirx.floordiv(count + (size - 1), step)


@dataclass(frozen=True)
class GradPlan:
    """Shape of the kernel of the derivative.

    Attributes:
        lanes: Elements of a vector.
        vectors: Most vectors of columns of a register tile.
        queries: Queries of a block.
        keys: Keys of a block, whole vectors.
        groups: Work items per head of keys.
        parallel: Whether the workers share them.
        model: The processor.
    """

    lanes: int
    vectors: int
    queries: int
    keys: int
    groups: int
    parallel: bool
    model: CpuModel


def even_tile(rows: int, vectors: int, plan: GradPlan) -> int:
    """Rows of a register tile of so many vectors.

    Of one that leaves no remainder, for which the product would be written once more, unless that
    is slower.

    Args:
        rows: Rows of the product.
        vectors: Vectors of a row of the tile.
        plan: Has the processor, whose registers limit the tile.
    """
    most = max(1, min(rows, (plan.model.registers - 2 - vectors) // vectors))

    def cycles(tile: int) -> float:
        return in_tiles(rows, tile, lambda r: step_cycles(r, vectors, plan.model))

    fastest = min(range(1, most + 1), key=cycles)
    even = [tile for tile in range(1, most + 1) if rows % tile == 0]
    best = min(even, key=cycles)
    return best if cycles(best) <= _MAX_SLOWDOWN * cycles(fastest) else fastest


def plan_gradient(problem: Problem, model: CpuModel) -> GradPlan:
    """Blocks that waste little beyond the last query and key, shared out evenly.

    Args:
        problem: Operands of the attention with their extents, which may be symbolic.
        model: The processor: registers, lanes, threads.

    Returns:
        Queries and keys of a block, and whether the keys of a head are shared out among the
        threads, which costs a sum at the end.
    """
    lanes = model.lanes_of(8 if problem.dtype == "float64" else 4)
    vectors = panel_vectors(model)
    rows, length, batch = (
        operand.extent(axis)
        for operand, axis in ((problem.query, "S"), (problem.key, "S"), (problem.query, "B"))
    )
    queries = _block(rows, 24, 64, 1)
    keys = _block(length, -(-48 // lanes) * lanes, -(-128 // lanes) * lanes, lanes)
    heads, parallel, longer = problem.key.fixed("N"), model.threads > 1, True
    if isinstance(rows, int) and isinstance(length, int) and isinstance(batch, int):
        heads *= batch
        pairs = batch * problem.query.fixed("N") * rows * length
        parallel = parallel and 10 * pairs * problem.query.fixed("D") >= MIN_PARALLEL_FLOPS
        longer = length > keys
    split = parallel and longer and imbalance(heads, model.threads) > MAX_IMBALANCE
    groups = model.threads if split else 1
    return GradPlan(lanes, vectors, queries, keys, groups, parallel, model)


def _block(length: Index, least: int, most: int, step: int) -> int:
    """The size of blocks that cover ``length`` with the fewest steps; a block costs a few."""
    per_block = 4 * step
    sizes = range(least, most + 1, step)
    if not isinstance(length, int):
        return sizes[len(sizes) // 2]
    if length <= most:
        return -(-length // step) * step
    return min(sizes, key=lambda size: -(-length // size) * (size + per_block))
