"""Matrix products of few rows with a transposed operand, such as a dense layer at a small batch.

Packing the weights would cost more than the product. Instead a tile of rows and columns keeps one
vector of partial sums per (row, column) and runs along K, where both operands are
contiguous. The vectors of a tile are summed together at the end, by a tree of shuffles.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import sum_each
from tvmgraph.backend.cpu.kernels.gemm.plan import LANES, is_worth_sharing
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import PackedOperands, call, vnni_type
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.columns import MatrixProduct
from tvmgraph.backend.loop_ir.contraction import Operand
from tvmgraph.backend.loop_ir.items import Split, write_items
from tvmgraph.backend.loop_ir.point import Bound, bind_group, vectors
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.machine.processor import CpuModel

#: Most columns of a tile: streams that run at once.
_MAX_COLUMNS = 8
_MAX_ROWS = 4


def emit_dot_products(product: MatrixProduct, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        product: A matrix product whose column operand is contiguous along K.
        model: The processor: registers limit the sums of a tile, and its threads share the columns.
    """
    packed, shape = vnni_operands_in_place(product, model), product.shape
    lanes = model.lanes_of(shape.itemsize)
    sums = max(4, min(16, model.registers // 2))
    if packed and lanes < LANES:  # a vector of words takes several registers
        lanes, sums = LANES, sums * lanes // LANES
    height = min(_MAX_ROWS, shape.rows)
    width = max(1, min(_MAX_COLUMNS, sums // height, shape.columns))
    kernel = _Dot(product.contraction, product.columns, lanes, height, packed)
    parallel = model.threads > 1 and is_worth_sharing(shape)
    functions = T.attr(0, "pragma_import_llvm", packed.functions) if packed else None
    with functions or contextlib.nullcontext():
        if packed:
            packed.follow_copies()
        write_items(
            [*product.around, Split(shape.columns, width)], parallel,
            lambda bound, ranges: kernel.columns_block(bound, *ranges[0]),
        )  # fmt: skip


def vnni_operands_in_place(product: MatrixProduct, model: CpuModel) -> PackedOperands | None:
    """The operands in VNNI layout, if the processor has an instruction that multiplies those.

    Args:
        product: A matrix product.
        model: The processor and its dot-product instructions.

    Returns:
        None where K is several axes or shorter than a vector, or an operand is not contiguous along
        it.
    """
    contraction = product.contraction
    dtype = vnni_type(contraction, model)
    if dtype is None:
        return None
    packed = PackedOperands(contraction, product.columns, dtype)
    sides = (contraction.left, contraction.right)
    along = len(contraction.reduce) == 1 and all(map(packed.runs_along_k, sides))
    return packed if along and packed.shape.k_size >= LANES * packed.vnni_size else None


@dataclass(frozen=True)
class _Dot(MatrixProduct):
    lanes: int
    height: int
    packed: PackedOperands | None

    def columns_block(self, outer: Bound, first: Expr, count: int) -> None:
        """All rows times ``count`` columns, tile after tile."""
        vectors(
            emit.i64(0), self.shape.rows, self.height,
            lambda row, rows, _slot: self._tile(outer, row, rows, first, count),
        )  # fmt: skip

    def _tile(self, outer: Bound, row: Expr, rows: int, column: Expr, columns: int) -> None:
        lanes, dtype = self.lanes, self.contraction.dtype
        sums = [emit.stack(lanes, dtype) for _ in range(rows * columns)]
        for buffer in sums:
            emit.clear(buffer, 0, lanes)

        def step(k: Expr, width: int, _part: int) -> None:
            for position, buffer in enumerate(sums):
                r, c = divmod(position, columns)
                self._accumulate(buffer, outer, row + r, column + c, k, width)

        done = self._grouped(sums, outer, row, column, columns)
        vectors(emit.i64(done), self.shape.k_size - done, lanes, step)
        totals = sum_each(sums, lanes, dtype)
        epilogue = Epilogue(self.contraction, self.columns.inner)
        with emit.serial(rows) as r:
            bound = outer | bind_group(self.contraction.rows, row + r)
            epilogue.vector(bound, column, columns, _element_of(totals, r * columns))

    def _grouped(
        self, sums: list[Buffer], outer: Bound, row: Expr, column: Expr, columns: int
    ) -> int:
        """Adds products of a few neighbours at a time where that is one instruction.

        The one for bytes wants one factor without a sign: 128 is added to the columns, and 128
        times the sum of the row's bytes taken off in the end.

        Returns:
            How many steps of K have been taken.
        """
        packed = self.packed
        if packed is None:
            return 0
        width, whole = LANES * packed.vnni_size, [emit.ramp(0, LANES)]
        rows = range(len(sums) // columns)
        is_signed = packed.dtype == "int8"
        excess = [emit.stack(LANES, "int32") for _ in rows] if is_signed else []
        for buffer in excess:
            emit.clear(buffer, 0, LANES)
        with emit.serial(self.shape.k_size // width) as block:
            for buffer, r in zip(excess, rows):
                ones = emit.broadcast(tirx.const(0x01010101, "int32"), LANES)
                left = self._words(packed, outer, self.contraction.left, row + r, block * width)
                emit.store(buffer, self._dot(packed, buffer, ones, left), whole)
            for position, total in enumerate(sums):
                r, c = divmod(position, columns)
                left = self._words(packed, outer, self.contraction.left, row + r, block * width)
                right = self._words(
                    packed, outer, self.contraction.right, column + c, block * width
                )
                value = self._dot(packed, total, packed.unsigned(right, LANES), left)
                emit.store(total, value, whole)
        for position, total in enumerate(sums if is_signed else ()):
            extra = excess[position // columns][whole[0]]
            scale = emit.broadcast(tirx.const(128, "int32"), LANES)
            emit.store(total, total[whole[0]] - extra * scale, whole)
        return self.shape.k_size // width * width

    def _words(
        self, packed: PackedOperands, outer: Bound, operand: Operand, mn: Expr, k: Expr
    ) -> Expr:
        """A vector of words of an operand."""
        return call(f"int32x{LANES}", packed.load, packed.address(operand, outer, mn, k))

    def _dot(self, packed: PackedOperands, total: Buffer, unsigned: Expr, signed: Expr) -> Expr:
        kind, name = f"{self.contraction.dtype}x{LANES}", f"dot_{packed.dtype}"
        return call(kind, name, total[emit.ramp(0, LANES)], unsigned, signed)

    def _accumulate(
        self, total: Buffer, outer: Bound, row: Expr, column: Expr, k: Expr, width: int
    ) -> None:
        left, right = self.contraction.left, self.contraction.right
        with emit.lanes_loop(width) as lane:
            a = self.element_at(left, outer, row, k + lane)
            b = self.element_at(right, outer, column, k + lane)
            emit.store(total, total[lane] + a * b, [lane])


def _element_of(totals: Buffer, base: Expr) -> Callable[[Expr], Expr]:
    return lambda lane: totals[base + lane]
