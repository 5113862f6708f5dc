"""Matrix products of bfloat16 and int8 with instructions that sum several products per lane.

``vdpbf16ps`` adds two products of bfloat16 to a float32 lane, ``vpdpbusd`` four of bytes to an
int32 lane. Both want the operands in VNNI layout, neighbours along K in a word: a word of the row
operand is broadcast, in place where it lies in memory as it must, the column operand is packed into
panels.

``vpdpbusd`` multiplies unsigned with signed bytes. Packing adds 128 to the column operand (it flips
the sign bits), and the sums of a row start from -128 times the sum of the row operand's row.

AVX2 has neither: there both operands of int8 are copied as numbers of 16 bits, and ``vpmaddwd``
adds the products of two to a lane, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile
from tvmgraph.backend.cpu.kernels.gemm.plan import (
    LANES,
    VNNI_VECTORS,
    GemmPlan,
    Packing,
    plan_gemm,
    plan_panels,
)
from tvmgraph.backend.cpu.kernels.gemm.problem import vnni_operands_of
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import (
    PAIRS_OF_BYTES,
    PackedOperands,
    Side,
    VnniKernel,
    call,
    vnni_type,
)
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.gemm_shape import GemmShape
from tvmgraph.backend.loop_ir.items import Range, Split, write_items
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, vectors
from tvmgraph.backend.loop_ir.reducer import horizontal
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: So many wide panels hide that the last one is not full.
_MANY = 12
#: Products with fewer rows do not repay packing the column operand.
_MIN_ROWS = 8


def _plan_panels(operands: PackedOperands, model: CpuModel) -> GemmPlan | None:
    """The kernel for an operand that is stored as panels, or that will be copied into them."""
    shape, wide = operands.shape, VNNI_VECTORS * LANES
    if operands.stored:
        return plan_panels(shape, model, operands.stored)
    fits = wide * 4 * operands.k_size <= model.l2_bytes // 4
    if choose("group wide panels", fits and shape.columns >= _MANY * wide, (True, False)):
        return plan_panels(shape, model, wide)
    return plan_gemm(shape, model, direct=False)


@dataclass(frozen=True)
class _Kernel(VnniKernel):
    plan: GemmPlan

    @property
    def _shape(self) -> GemmShape:
        return self.operands.shape

    @property
    def reads_rows(self) -> bool:
        """Whether rows are read where they lie."""
        operands = self.operands
        return operands.runs_along_k(operands.contraction.left) and operands.reads_in_place

    def product(self, outer: Bound, left: Buffer | None, parallel: bool) -> None:
        """Packs all panels, then divides panels and blocks of rows.

        Args:
            outer: Values of the batch and outer column axes.
            left: The rows in VNNI layout, or None where they are read in place.
            parallel: Whether the workers share this product.
        """
        plan, rows = self.plan, self._shape.rows
        right = self.packed_columns(outer, parallel)
        side = Side(outer, right, left, None)
        if self.operands.dtype == "int8":
            side = Side(outer, right, left, self._corrections(side, parallel))
        block = plan.row_block if plan.packing is Packing.SHARED else self._row_block()
        write_items(
            [Split(self._shape.columns, plan.panel), Split(rows, block)], parallel,
            lambda _, ranges: self._rows(side, *ranges),
        )  # fmt: skip

    def _row_block(self) -> int:
        """Rows of a work item: enough items that no worker waits long for another."""
        tile, wanted = self.plan.tile_rows, 4 * self.plan.threads
        blocks = max(1, wanted // self.panels)
        return -(-self._shape.rows // (blocks * tile)) * tile

    # Products

    def _rows(self, side: Side, columns: Range, rows: Range) -> None:
        plan, (first, _) = self.plan, columns

        def right(k: Expr, vector: int) -> Expr:
            if side.right is None:
                place = self.operands.stored_address(first + vector * LANES, k)
                return self.operands.unsigned(call(f"int32x{LANES}", "packed_vector", place), LANES)
            base = first * self.operands.k_size
            return side.right[emit.ramp(base + k * plan.panel + vector * LANES, LANES)]

        vectors(
            *rows, plan.tile_rows,
            lambda row, count, _slot: self._tile(side, columns, (row, count), right),
        )  # fmt: skip

    def _corrections(self, side: Side, parallel: bool) -> Buffer:
        """-128 times the sum of every row of the left operand."""
        sums = emit.workspace([self._shape.rows], "int32")
        kind = f"int32x{LANES}"
        ones = emit.broadcast(tirx.const(0x01010101, "int32"), LANES)
        full, rest = divmod(self.operands.k_size, LANES)
        with emit.parallel(self._shape.rows, parallel) as row:
            total, single = emit.stack(LANES, "int32"), emit.stack(LANES, "int32")
            for count, step, buffer in ((full, LANES, total), (rest, 1, single)):
                emit.clear(buffer, 0, LANES)
                with emit.serial(count) as k:
                    at = k * step + (0 if step > 1 else full * LANES)
                    value = self._left(side, row, at, step)
                    value = value if step > 1 else emit.broadcast(value, LANES)
                    old = buffer[emit.ramp(0, LANES)]
                    emit.store(
                        buffer, call(kind, "dot_int8", old, ones, value), [emit.ramp(0, LANES)]
                    )
            value = horizontal(lambda x, y: x + y, total, LANES, LANES, "int32") + single[0]
            emit.store(sums, value * tirx.const(-128, "int32"), [row])
        return sums

    def _left(self, side: Side, row: Expr, k: Expr, count: int = 1) -> Expr:
        """One word of the row operand, or a vector of them."""
        if side.left is not None:
            return side.left[emit.ramp(row * self.operands.k_size + k, count)]
        left = self.operands.contraction.left
        place = self.operands.address(left, side.outer, row, k * self.operands.vnni_size)
        return (
            call(f"int32x{LANES}", "packed_vector", place)
            if count > 1
            else call("int32", "packed_lane", place)
        )

    def _tile(
        self, side: Side, columns: Range, row_range: Range, right: Callable[[Expr, int], Expr]
    ) -> None:
        (column, width), (row, rows) = columns, row_range
        contraction = self.operands.contraction
        sum_type, panel_vectors = contraction.dtype, -(-width // LANES)
        tile = Tile(rows, panel_vectors, LANES, sum_type)
        total = emit.stack(tile.size, sum_type)
        for r in range(rows):
            first = emit.zero(sum_type) if side.start is None else side.start[row + r]
            for v in range(panel_vectors):
                emit.store(total, emit.broadcast(first, LANES), [tile.at(r, v)])
        name = f"dot_{self.operands.dtype}"
        with emit.serial(self.operands.k_size) as k:
            for r in range(rows):
                factor = emit.broadcast(self._left(side, row + r, k), LANES)
                for v in range(panel_vectors):
                    old = total[tile.at(r, v)]
                    value = call(f"{sum_type}x{LANES}", name, old, right(k, v), factor)
                    emit.store(total, value, [tile.at(r, v)])
        epilogue = Epilogue(contraction, self.operands.columns.inner)
        epilogue.write(tile, total, side.outer, row, column, width, self.operands.shift)


def _match(nest: Nest, model: CpuModel) -> tuple[PackedOperands, GemmPlan] | Refused:
    operands = nest.once(vnni_operands_of, model)
    if isinstance(operands, Refused):
        return operands
    dtype = vnni_type(operands.contraction, model)
    if dtype is None:
        return Refused(f"the processor has no dot products of {operands.dtype}")
    if dtype == PAIRS_OF_BYTES and operands.stored:
        return Refused("panels hold words of four bytes, of which the processor multiplies pairs")
    if dtype == PAIRS_OF_BYTES:  # a vector of words takes two registers
        operands = replace(operands, dtype=dtype)
        model = replace(model, vector_bytes=4 * LANES, registers=model.registers // 2)
    if operands.shape.rows < _MIN_ROWS and not operands.stored:
        return Refused("too few rows to repay packing the column operand")
    plan = _plan_panels(operands, model)
    if plan is None or operands.shape.k_size < operands.vnni_size:
        return Refused("panels do not fit the registers, or K fills no word")
    return operands, plan


def _emit(
    found: tuple[PackedOperands, GemmPlan], plan: GemmPlan, _writer: Writer[CpuModel]
) -> None:
    with T.attr(0, "pragma_import_llvm", found[0].functions):
        _Kernel(found[0], plan.panel, plan.parallel, plan.threads, plan).write()


KERNEL = Kernel(
    "gemm_vnni", _match, _emit, "matrix product of bfloat16 or int8 with dot-product instructions",
    lambda found, _model: found[1],
    ("group wide panels", "panel rows", "panel row block", "panel K block", "gemm unroll",
     "gemm rows first", "gemm parallel", "gemm tile", "gemm K block", "gemm shared panels",
     "gemm row block"),
)  # fmt: skip
