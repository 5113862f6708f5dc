"""What an attention kernel computes, and the shape that it gets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm import tirx

from tvmgraph.processor import CpuModel
from tvmgraph.schedule.products.plan import (
    MAX_IMBALANCE,
    MIN_PARALLEL_FLOPS,
    imbalance,
    panel_vectors,
    step_cycles,
)
from tvmgraph.schedule.types import Buffer, Expr, Index

_AXES = "BNSD"
#: Queries of a block, at most about.
QUERIES = 48
#: Queries of a register tile, at most.
_MAX_TILE = 14
#: How much longer register tiles that leave no remainder may take.
_MAX_SLOWDOWN = 1.02


@dataclass(frozen=True)
class Operand:
    """A tensor with its axes in any order.

    Attributes:
        buffer: The tensor.
        layout: The order.
        joined: Heads of one row each that are taken as the rows of one head.
    """

    buffer: Buffer
    layout: str
    joined: int = 1

    def extent(self, axis: str) -> Index:
        """Extent of the axis B, N, S or D, an expression where it is symbolic."""
        extent = self.buffer.shape[self.layout.index(axis)]
        if not isinstance(extent, tirx.IntImm):
            return extent
        size = int(extent)
        if axis == "S":
            return size * self.joined
        return size // self.joined if axis == "N" else size

    def fixed(self, axis: str) -> int:
        """Extent of an axis that is never symbolic: N or D."""
        extent = self.extent(axis)
        assert isinstance(extent, int)
        return extent

    def line(self, head: Expr, row: Expr) -> tuple[Expr, Expr]:
        """The head and the row of it as they are stored."""
        if self.joined == 1:
            return head, row
        return head * self.joined + row, tirx.IntImm("int64", 0)

    def at(self, batch: Expr, head: Expr, row: Expr, column: Expr) -> tuple[Expr, ...]:
        """Indices of an element."""
        head, row = self.line(head, row)
        named = dict(zip(_AXES, (batch, head, row, column)))
        return tuple(named[axis] for axis in self.layout)


@dataclass(frozen=True)
class Problem:
    """What is computed, see ``ops.fused_attention``.

    Attributes:
        query: Queries.
        key: Keys.
        value: Values.
        out: Results.
        mask: What is added to the scores, or where they are replaced.
        scale: Factor of the scores.
        diagonal: Query i sees the keys up to i + ``diagonal``.
        fill: What replaces a score under a bool mask.
        statistics: Largest score and one over the sum of exponentials of every query, B N S 2.
    """

    query: Operand
    key: Operand
    value: Operand
    out: Operand
    mask: Buffer | None
    scale: float
    diagonal: int | None
    fill: float | None
    statistics: Buffer | None = None

    def with_joined_heads(self) -> Problem:
        """The same with the heads of a single query that share keys as queries of one head."""
        sharing, rows = self.query.fixed("N") // self.key.fixed("N"), self.query.extent("S")
        if sharing == 1 or not isinstance(rows, int) or rows > 1:
            return self
        query, out = (replace(operand, joined=sharing) for operand in (self.query, self.out))
        return replace(self, query=query, out=out)

    @property
    def dtype(self) -> str:
        """Type of the sums."""
        return "float64" if str(self.query.buffer.dtype) == "float64" else "float32"

    def masked(self, score: Expr, batch: Expr, head: Expr, row: Expr, key: Expr) -> Expr:
        """A scaled score under the mask; the diagonal is another matter."""
        if self.mask is None:
            return score
        value = self.mask_at(batch, head, row, key)
        if self.fill is None:
            return score + tirx.Cast(self.dtype, value)
        return tirx.Select(value, tirx.const(self.fill, self.dtype), score)

    def mask_at(self, batch: Expr, head: Expr, row: Expr, key: Expr) -> Expr:
        """The element of the mask that belongs to a query and a key, both of which exist."""
        assert self.mask is not None
        index = (batch, *self.query.line(head, row), key)
        return self.mask[
            tuple(
                tirx.IntImm("int64", 0) if isinstance(e, tirx.IntImm) and int(e) == 1 else i
                for i, e in zip(index, self.mask.shape)
            )
        ]


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
    """The register tile with the fewest cycles, and blocks of queries of about equal size."""
    rows, batch = problem.query.extent("S"), problem.query.extent("B")
    heads, keys = problem.key.fixed("N"), problem.key.extent("S")
    lanes = model.lanes_of(8 if problem.dtype == "float64" else 4)
    vectors = panel_vectors(model)
    if isinstance(keys, int):
        vectors = min(vectors, -(-keys // lanes))
    limit = min(_MAX_TILE, (model.registers - 2 - vectors) // vectors)
    if not isinstance(rows, int):
        queries = QUERIES // limit * limit
        blocks = tirx.floordiv(rows + (queries - 1), tirx.IntImm("int64", queries))
        groups = 1 if imbalance(heads, model.threads) <= MAX_IMBALANCE else model.threads
        return Plan(lanes, vectors, limit, queries, blocks, groups, model.threads > 1)
    tile = min(
        range(1, min(limit, rows) + 1),
        key=lambda r: -(-rows // r) * step_cycles(r, vectors, model),
    )
    sharing = problem.query.fixed("N") // heads
    tiles = -(-rows // tile)
    blocks = -(-tiles // max(1, QUERIES // tile))
    queries = min(rows, tile * -(-tiles // blocks))
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


def rounded_up(count: Index, size: int) -> Index:
    """How many times ``size`` it takes to hold ``count``."""
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
    """
    most = max(1, min(rows, (plan.model.registers - 2 - vectors) // vectors))

    def cycles(tile: int) -> float:
        full, rest = divmod(rows, tile)
        steps = full * step_cycles(tile, vectors, plan.model)
        return steps + (step_cycles(rest, vectors, plan.model) if rest else 0)

    fastest = min(range(1, most + 1), key=cycles)
    even = [tile for tile in range(1, most + 1) if rows % tile == 0]
    best = min(even, key=cycles)
    return best if cycles(best) <= _MAX_SLOWDOWN * cycles(fastest) else fastest


def plan_gradient(problem: Problem, model: CpuModel) -> GradPlan:
    """Blocks that waste little beyond the last query and key, shared out evenly."""
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
