"""Matrix products of few rows with a matrix that does not fit the caches, such as x W.

Every element of the matrix is needed once, so what counts is the order in which memory is read. A
panel of a few vectors would touch another page at every step of K. Instead a work item is a
long stretch of columns, whose sums stay in the first cache: for a few steps of K at a time
it reads that many rows of the matrix side by side from end to end, streams that the processor
recognizes and fetches ahead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.plan import is_worth_sharing
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.columns import MatrixProduct
from tvmgraph.backend.loop_ir.gemm_shape import GemmShape
from tvmgraph.backend.loop_ir.items import Split, write_items
from tvmgraph.backend.loop_ir.point import Bound, bind_group, fill, vectors
from tvmgraph.backend.loop_ir.program import substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.machine.processor import CpuModel

#: Rows up to which reading the matrix takes longer than adding to the sums in the first cache.
_MAX_ROWS = 2
#: Rows of the matrix that are read at once.
_STREAMS = 8
#: Bytes of a page: shorter stretches of a row are no streams.
_PAGE = 4096


def wants_weight_streaming(shape: GemmShape, model: CpuModel) -> bool:
    """Whether a matrix that can be read in place is so large that its order in memory counts.

    Args:
        shape: Extents of the product.
        model: The processor: the matrix must be larger than its second-level cache, and a row a
            page.
    """
    row = shape.columns * shape.itemsize
    large = shape.outer * shape.k_size * row > model.l2_bytes
    return shape.rows <= _MAX_ROWS and row >= _PAGE and large


def emit_weight_streaming(product: MatrixProduct, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        product: A matrix product of few rows whose column operand is read in place.
        model: The processor: the sums of a stretch take a quarter of its first-level cache.
    """
    shape = product.shape
    lanes = model.lanes_of(shape.itemsize)
    most = model.l1_bytes // 4 // (shape.rows * shape.itemsize)
    parallel = model.threads > 1 and is_worth_sharing(shape)
    chunks = -(-shape.columns // most)
    if parallel and shape.outer < model.threads:
        chunks = -(-chunks // model.threads) * model.threads
    width = -(-shape.columns // (chunks * lanes)) * lanes
    kernel = _WeightStreaming(product.contraction, product.columns, lanes, width)
    write_items(
        [*product.around, Split(shape.columns, width)], parallel,
        lambda bound, ranges: kernel.stretch(bound, *ranges[0]),
    )  # fmt: skip


@dataclass(frozen=True)
class _WeightStreaming(MatrixProduct):
    lanes: int
    width: int

    def stretch(self, outer: Bound, first: Expr, size: int) -> None:
        """All rows times ``size`` columns from ``first`` on."""
        rows, dtype = self.shape.rows, self.contraction.dtype
        sums = emit.workspace([rows * self.width], dtype)

        fill(sums, emit.zero(dtype), emit.i64(0), rows * self.width, self.lanes)
        vectors(
            emit.i64(0), self.shape.k_size, _STREAMS,
            lambda start, steps, _slot: self._add(sums, outer, first, size, (start, steps)),
        )  # fmt: skip
        epilogue = Epilogue(self.contraction, self.columns.inner)
        for row in range(rows):
            bound = outer | bind_group(self.contraction.rows, emit.i64(row))
            base = row * self.width

            def store(at: Expr, width: int, _slot: int, bound: Bound, base: int) -> None:
                epilogue.vector(bound, first + at, width, _from(sums, base + at))

            vectors(
                emit.i64(0), size, self.lanes,
                lambda at, n, slot, bound=bound, base=base: store(at, n, slot, bound, base),
            )  # fmt: skip

    def _add(
        self, sums: Buffer, outer: Bound, first: Expr, size: int, span: tuple[Expr, int]
    ) -> None:
        """Adds a few steps of K to all sums."""
        start, steps = span

        def add(at: Expr, width: int, _slot: int) -> None:
            for row in range(self.shape.rows):
                place = [emit.ramp(at + row * self.width, width)]
                total: Expr = sums[place[0]]
                for k in (start + step for step in range(steps)):
                    factor = self.element_at(self.contraction.left, outer, emit.i64(row), k)
                    factor = emit.broadcast(factor, width)
                    total += factor * self._vector(outer, first + at, k, width)
                emit.store(sums, total, place)

        vectors(emit.i64(0), size, self.lanes, add)

    def _vector(self, outer: Bound, column: Expr, k: Expr, width: int) -> Expr:
        """Columns that lie side by side, whichever axes they come from."""
        right = self.contraction.right
        bound = self.bound_at(right, outer, column, k)
        *lead, last = (substitute(index, bound) for index in right.load.indices)
        return right.at(*lead, emit.ramp(last, width))


def _from(sums: Buffer, start: Expr) -> Callable[[Expr], Expr]:
    return lambda lane: sums[start + lane]
