"""Matrix products of few rows with a transposed operand, such as a dense layer at batch size 1.

Every weight is used once per row, so packing would double the memory traffic. Instead a block of
columns keeps one vector of partial sums per (row, column) and runs along the depth, where both
operands are contiguous: as many independent streams as there are columns in the block.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvmgraph.schedule import emit
from tvmgraph.schedule.columns import Columns
from tvmgraph.schedule.contraction import Contraction, Operand
from tvmgraph.schedule.epilogue import Epilogue
from tvmgraph.schedule.gemm_plan import MIN_PARALLEL_FLOPS, GemmShape
from tvmgraph.schedule.point import Bound, bind_group, vectors
from tvmgraph.schedule.program import substitute
from tvmgraph.schedule.reducer import horizontal
from tvmgraph.schedule.target import CpuModel
from tvmgraph.schedule.types import Buffer, Expr

#: Columns of a block: streams that run at once.
_MAX_COLUMNS = 8
#: Partial-sum vectors of a block that fit the registers beside the operands.
_MAX_SUMS = 16


def emit_dot_products(
    contraction: Contraction, columns: Columns, shape: GemmShape, model: CpuModel
) -> None:
    """Writes the kernel."""
    block = max(1, min(_MAX_COLUMNS, _MAX_SUMS // shape.rows, shape.columns))
    while block > 1 and block & (block - 1):
        block -= 1
    kernel = _Dot(contraction, columns, shape, model.lanes_of(shape.itemsize))
    full, rest = divmod(shape.columns, block)
    axes = (*contraction.batch, *columns.outer)
    extents = [axis.extent for axis in axes]
    parallel = shape.flops >= MIN_PARALLEL_FLOPS and model.threads > 1
    with emit.parallel(shape.outer * full, parallel) as item:
        *outer, position = emit.unfuse(item, [*extents, full])
        bound = {axis.var: value for axis, value in zip(axes, outer)}
        kernel.block(bound, position * block, block)
    if rest:
        with emit.serial(shape.outer) as item:
            bound = {axis.var: value for axis, value in zip(axes, emit.unfuse(item, extents))}
            kernel.block(bound, emit.i64(full * block), rest)


@dataclass(frozen=True)
class _Dot:
    contraction: Contraction
    columns: Columns
    shape: GemmShape
    lanes: int

    def block(self, outer: Bound, first: Expr, count: int) -> None:
        """All rows times ``count`` columns."""
        rows, lanes, dtype = self.shape.rows, self.lanes, self.contraction.dtype
        sums = [[emit.stack(lanes, dtype) for _ in range(count)] for _ in range(rows)]
        for buffer in (buffer for line in sums for buffer in line):
            emit.store(buffer, emit.broadcast(emit.zero(dtype), lanes), [emit.ramp(0, lanes)])

        def step(k: Expr, width: int, _part: int) -> None:
            for row in range(rows):
                for column in range(count):
                    self._accumulate(
                        sums[row][column], outer, emit.i64(row), first + column, k, width
                    )

        vectors(emit.i64(0), self.shape.depth, lanes, step)
        totals = emit.stack(rows * count, dtype)
        for row in range(rows):
            for column in range(count):
                total = horizontal(_add, sums[row][column], lanes, lanes, dtype)
                emit.store(totals, total, [row * count + column])
        epilogue = Epilogue(self.contraction, self.columns.inner)
        with emit.serial(rows) as row:
            bound = outer | bind_group(self.contraction.rows, row)
            epilogue.vector(bound, first, count, lambda lane: totals[row * count + lane])

    def _accumulate(
        self, total: Buffer, outer: Bound, row: Expr, column: Expr, k: Expr, width: int
    ) -> None:
        left, right = self.contraction.left, self.contraction.right
        with emit.lanes_loop(width) as lane:
            a = self._element(left, outer, row, k + lane)
            b = self._element(right, outer, column, k + lane)
            emit.store(total, total[lane] + a * b, [lane])

    def _element(self, operand: Operand, outer: Bound, line: Expr, k: Expr) -> Expr:
        axes = self.contraction.rows if operand is self.contraction.left else self.columns.inner
        bound = outer | bind_group(axes, line) | bind_group(self.contraction.reduce, k)
        return substitute(operand.expr, bound)


def _add(left: Expr, right: Expr) -> Expr:
    return left + right
