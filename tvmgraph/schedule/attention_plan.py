"""What an attention kernel computes, and the shape that it gets."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from tvmgraph.schedule.gemm_plan import MAX_IMBALANCE, MIN_PARALLEL_FLOPS, imbalance, step_cycles
from tvmgraph.schedule.target import CpuModel
from tvmgraph.schedule.types import Buffer, Expr, Index

_AXES = "BNSD"
#: Queries of a block, at most about.
_QUERIES = 48


@dataclass(frozen=True)
class Operand:
    """A tensor with its axes in any order."""

    buffer: Buffer
    layout: str

    def extent(self, axis: str) -> Index:
        """Extent of the axis B, N, S or D, an expression where it is symbolic."""
        extent = self.buffer.shape[self.layout.index(axis)]
        return int(extent) if isinstance(extent, tirx.IntImm) else extent

    def fixed(self, axis: str) -> int:
        """Extent of an axis that is never symbolic: N or D."""
        extent = self.extent(axis)
        assert isinstance(extent, int)
        return extent

    def at(self, batch: Expr, head: Expr, row: Expr, column: Expr) -> tuple[Expr, ...]:
        """Indices of an element."""
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
    """

    query: Operand
    key: Operand
    value: Operand
    out: Operand
    mask: Buffer | None
    scale: float
    diagonal: int | None
    fill: float | None

    @property
    def dtype(self) -> str:
        """Type of the sums."""
        return "float64" if str(self.query.buffer.dtype) == "float64" else "float32"


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
        groups: Work items per head.
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
    heads = problem.query.fixed("N")
    lanes = model.lanes_of(8 if problem.dtype == "float64" else 4)
    vectors = 4 if model.registers >= 32 else 2
    limit = (model.registers - 2 - vectors) // vectors
    if not isinstance(rows, int):
        queries = _QUERIES // limit * limit
        blocks = tirx.floordiv(rows + (queries - 1), tirx.IntImm("int64", queries))
        groups = 1 if imbalance(heads, model.threads) <= MAX_IMBALANCE else model.threads
        return Plan(lanes, vectors, limit, queries, blocks, groups, model.threads > 1)
    tile = min(
        range(1, min(limit, rows) + 1),
        key=lambda r: -(-rows // r) * step_cycles(r, vectors, model),
    )
    tiles = -(-rows // tile)
    blocks = -(-tiles // max(1, _QUERIES // tile))
    queries = min(rows, tile * -(-tiles // blocks))
    blocks = -(-rows // queries)
    heads *= batch if isinstance(batch, int) else 1
    keys = problem.key.extent("S")
    known = isinstance(keys, int) and isinstance(batch, int)
    flops = 4 * heads * rows * keys * problem.query.fixed("D") if known else MIN_PARALLEL_FLOPS
    parallel = flops >= MIN_PARALLEL_FLOPS and model.threads > 1
    groups = 1
    while parallel and groups < blocks and imbalance(heads * groups, model.threads) > MAX_IMBALANCE:
        groups += 1
    return Plan(lanes, vectors, tile, queries, blocks, groups, parallel)
