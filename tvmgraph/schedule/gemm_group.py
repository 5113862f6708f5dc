"""Matrix products of bfloat16 and int8 with instructions that sum several products per lane.

``vdpbf16ps`` adds two products of bfloat16 to a float32 lane, ``vpdpbusd`` four of bytes to an
int32 lane. Both want the operands in groups along the depth: a group of the row operand lies in
memory as it is (32 bits, broadcast), the column operand is packed into panels of such groups.

``vpdpbusd`` multiplies unsigned with signed bytes. Packing adds 128 to the column operand (it flips
the sign bits), and the sums of a row start from -128 times the sum of the row operand's row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.schedule import emit
from tvmgraph.schedule.columns import Columns, is_transposed
from tvmgraph.schedule.contraction import Contraction, Operand
from tvmgraph.schedule.epilogue import Epilogue
from tvmgraph.schedule.gemm_plan import GemmPlan, GemmShape, Packing, plan_gemm
from tvmgraph.schedule.microkernel import Tile, transpose
from tvmgraph.schedule.point import bind_group
from tvmgraph.schedule.program import substitute
from tvmgraph.schedule.reducer import horizontal
from tvmgraph.schedule.target import CpuModel
from tvmgraph.schedule.types import Buffer, Expr

_LANES = 16  # the instructions are used on registers of 512 bits
#: Products with fewer rows do not repay packing the column operand.
_MIN_ROWS = 8
#: Elements per group by type.
_GROUPS = {"bfloat16": 2, "int8": 4}

_any: Any = T

#: The instructions, and loads of groups. Their place in TVM's tree of aliases (tbaa) says that they
#: never read what the kernel writes, so that the sums stay in registers.
_LLVM = """
declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)
declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <16 x i32>, <16 x i32>)
define internal <16 x float> @tvmgraph_dot_bfloat16(<16 x float> %c, <16 x i32> %a, <16 x i32> %b)
    alwaysinline {
  %x = bitcast <16 x i32> %a to <32 x bfloat>
  %y = bitcast <16 x i32> %b to <32 x bfloat>
  %r = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(
      <16 x float> %c, <32 x bfloat> %x, <32 x bfloat> %y)
  ret <16 x float> %r
}
define internal <16 x i32> @tvmgraph_dot_int8(<16 x i32> %c, <16 x i32> %a, <16 x i32> %b)
    alwaysinline {
  %r = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %c, <16 x i32> %a, <16 x i32> %b)
  ret <16 x i32> %r
}
define internal i32 @tvmgraph_group(ptr %at) alwaysinline {
  %r = load i32, ptr %at, align 1, !tbaa !2
  ret i32 %r
}
define internal <16 x i32> @tvmgraph_groups(ptr %at) alwaysinline {
  %r = load <16 x i32>, ptr %at, align 1, !tbaa !2
  ret <16 x i32> %r
}
define internal <16 x i32> @tvmgraph_widen_bfloat16(ptr %at) alwaysinline {
  %v = load <16 x i16>, ptr %at, align 1, !tbaa !2
  %r = zext <16 x i16> %v to <16 x i32>
  ret <16 x i32> %r
}
define internal <16 x i32> @tvmgraph_widen_int8(ptr %at) alwaysinline {
  %v = load <16 x i8>, ptr %at, align 1, !tbaa !2
  %r = zext <16 x i8> %v to <16 x i32>
  ret <16 x i32> %r
}
!0 = !{!"tvm-tbaa"}
!1 = !{!"operand", !0, i64 0}
!2 = !{!1, !1, i64 0}
"""


def emit_grouped_gemm(
    contraction: Contraction, columns: Columns, shape: GemmShape, model: CpuModel
) -> bool:
    """Writes the kernel where it applies.

    Returns:
        Whether it does; if not, nothing has been written.
    """
    dtype = str(contraction.left.load.source.dtype)
    same = dtype == str(contraction.right.load.source.dtype) and dtype in model.dot_types
    if not same or shape.outer != 1 or shape.rows < _MIN_ROWS or len(contraction.reduce) != 1:
        return False
    group = _GROUPS[dtype]
    if shape.depth % group or shape.columns < _LANES or not _is_cast(contraction):
        return False
    depth = contraction.reduce[0].var
    left, right = (contraction.strides(o) for o in (contraction.left, contraction.right))
    if left is None or right is None or left[depth] != 1:
        return False
    turned = is_transposed(contraction, columns)
    if turned and shape.depth // group < _LANES:
        return False
    if not turned and (len(columns.inner) != 1 or right[columns.inner[0].var] != 1):
        return False
    plan = plan_gemm(shape, model, direct=False)
    with T.attr(0, "pragma_import_llvm", _LLVM):
        _Grouped(contraction, columns, shape, plan, dtype, turned).write()
    return True


def _is_cast(contraction: Contraction) -> bool:
    """Whether both factors are elements that are only cast."""
    factors = (contraction.left.expr, contraction.right.expr)
    return all(isinstance(f, tirx.Cast) and f.value.same_as(o.load)
               for f, o in zip(factors, (contraction.left, contraction.right)))  # fmt: skip


def _call(dtype: str, name: str, *args: Expr) -> Expr:
    return _any.call_pure_extern(dtype, f"tvmgraph_{name}", *args)


@dataclass(frozen=True)
class _Grouped:
    contraction: Contraction
    columns: Columns
    shape: GemmShape
    plan: GemmPlan
    dtype: str
    turned: bool

    @property
    def _group(self) -> int:
        return _GROUPS[self.dtype]

    @property
    def _depth(self) -> int:
        """Groups along the depth."""
        return self.shape.depth // self._group

    @property
    def _panels(self) -> int:
        return -(-self.shape.columns // self.plan.panel)

    def write(self) -> None:
        """Packs all panels, then divides panels and blocks of rows among the workers."""
        plan, size = self.plan, self._depth * self.plan.panel
        packed = emit.workspace([self._panels * size], "int32")
        with emit.parallel(self._panels, plan.parallel) as panel:
            self._pack(panel, packed, panel * size)
        start = self._corrections() if self.dtype == "int8" else None
        block = plan.row_block if plan.packing is Packing.SHARED else self._row_block()
        blocks = -(-self.shape.rows // block)
        with emit.parallel(self._panels * blocks, plan.parallel) as item:
            panel, number = emit.unfuse(item, [self._panels, blocks])
            emit.pieces(
                (panel, self._panels, plan.panel, self.shape.columns),
                lambda columns: emit.pieces(
                    (number, blocks, block, self.shape.rows),
                    lambda rows: self._rows(packed, panel, columns, number * block, rows, start),
                ),
            )

    def _row_block(self) -> int:
        """Rows of a work item: enough items that no worker waits long for another."""
        tile, wanted = self.plan.tile_rows, 4 * self.plan.threads
        pieces = max(1, wanted // self._panels)
        return -(-self.shape.rows // (pieces * tile)) * tile

    # Packing

    def _place(self, operand: Operand, line: Expr, depth: Expr) -> Expr:
        """Address of an element of an operand."""
        axes = self.contraction.rows if operand is self.contraction.left else self.columns.inner
        bound = bind_group(axes, line) | bind_group(self.contraction.reduce, depth)
        indices = tuple(substitute(index, bound) for index in operand.load.indices)
        return _any.address_of(operand.load.source[indices])

    def _pack(self, panel: Expr, packed: Buffer, base: Expr) -> None:
        """Copies a panel: one row of vectors of groups per step of the depth."""
        plan = self.plan
        step = _LANES if self.turned else 1
        full = self._depth - self._depth % step
        with emit.serial(full // step) as k:
            for vector in range(plan.vectors):
                column = panel * plan.panel + vector * _LANES
                to = base + k * (step * plan.panel) + vector * _LANES
                pack = self._turn if self.turned else self._interleave
                pack(column, k * step, packed, to)
        if full < self._depth:
            with emit.serial(self._depth - full) as k, emit.serial(plan.panel) as lane:
                column = tirx.min(panel * plan.panel + lane, emit.i64(self.shape.columns - 1))
                place = self._place(self.contraction.right, column, (k + full) * self._group)
                value = self._unsigned(_call("int32", "group", place), 1)
                emit.store(packed, value, [base + (k + full) * plan.panel + lane])

    def _turn(self, column: Expr, k: Expr, packed: Buffer, to: Expr) -> None:
        """Sixteen steps of sixteen columns that are contiguous along the depth."""
        square = emit.stack(_LANES * _LANES, "int32")
        for row in range(_LANES):
            at = tirx.min(column + row, emit.i64(self.shape.columns - 1))
            place = self._place(self.contraction.right, at, k * self._group)
            value = self._unsigned(_call(f"int32x{_LANES}", "groups", place), _LANES)
            emit.store(square, value, [emit.ramp(row * _LANES, _LANES)])
        turned = transpose(square, _LANES, "int32")
        for step in range(_LANES):
            value = turned[emit.ramp(step * _LANES, _LANES)]
            emit.store(packed, value, [emit.ramp(to + step * self.plan.panel, _LANES)])

    def _interleave(self, column: Expr, k: Expr, packed: Buffer, to: Expr) -> None:
        """One step of sixteen columns that lie side by side; the last ones may repeat others."""
        bits = 32 // self._group
        at = tirx.min(column, emit.i64(self.shape.columns - _LANES))
        value: Expr | None = None
        for member in range(self._group):
            place = self._place(self.contraction.right, at, k * self._group + member)
            part = _call(f"int32x{_LANES}", f"widen_{self.dtype}", place)
            shift = emit.broadcast(tirx.const(member * bits, "int32"), _LANES)
            part = tirx.shift_left(part, shift) if member else part
            value = part if value is None else tirx.bitwise_or(value, part)
        emit.store(packed, self._unsigned(value, _LANES), [emit.ramp(to, _LANES)])

    def _unsigned(self, value: Expr | None, lanes: int) -> Expr:
        """Groups of bytes with 128 added to each; other groups as they are."""
        if self.dtype != "int8":
            return value
        flip = emit.broadcast(tirx.const(-0x7F7F7F80, "int32"), lanes)
        return tirx.bitwise_xor(value, flip)

    # Products

    def _rows(
        self,
        packed: Buffer,
        panel: Expr,
        columns: int,
        first: Expr,
        rows: int,
        start: Buffer | None,
    ) -> None:
        plan = self.plan
        base = panel * (self._depth * plan.panel)

        def right(k: Expr, vector: int) -> Expr:
            return packed[emit.ramp(base + k * plan.panel + vector * _LANES, _LANES)]

        full, rest = divmod(rows, plan.tile_rows)
        if full:
            with emit.serial(full) as number:
                row = first + number * plan.tile_rows
                self._tile(panel, columns, row, plan.tile_rows, right, start)
        if rest:
            self._tile(panel, columns, first + full * plan.tile_rows, rest, right, start)

    def _corrections(self) -> Buffer:
        """-128 times the sum of every row of the left operand."""
        sums = emit.workspace([self.shape.rows], "int32")
        left, kind = self.contraction.left, f"int32x{_LANES}"
        ones = emit.broadcast(tirx.const(0x01010101, "int32"), _LANES)
        full, rest = divmod(self._depth, _LANES)
        with emit.parallel(self.shape.rows, self.plan.parallel) as row:
            total, single = emit.stack(_LANES, "int32"), emit.stack(_LANES, "int32")
            for buffer in (total, single):
                zero = emit.broadcast(emit.zero("int32"), _LANES)
                emit.store(buffer, zero, [emit.ramp(0, _LANES)])
            for count, step, buffer in ((full, _LANES, total), (rest, 1, single)):
                if count:
                    with emit.serial(count) as k:
                        at = k * step + (0 if step > 1 else full * _LANES)
                        place = self._place(left, row, at * self._group)
                        value = (
                            _call(kind, "groups", place)
                            if step > 1
                            else emit.broadcast(_call("int32", "group", place), _LANES)
                        )
                        old = buffer[emit.ramp(0, _LANES)]
                        emit.store(
                            buffer, _call(kind, "dot_int8", old, ones, value),
                            [emit.ramp(0, _LANES)],
                        )  # fmt: skip
            value = horizontal(lambda x, y: x + y, total, _LANES, _LANES, "int32") + single[0]
            emit.store(sums, value * tirx.const(-128, "int32"), [row])
        return sums

    def _tile(
        self,
        panel: Expr,
        columns: int,
        row: Expr,
        rows: int,
        right: Callable[[Expr, int], Expr],
        start: Buffer | None,
    ) -> None:
        sum_type = self.contraction.dtype
        vectors = -(-columns // _LANES)
        tile = Tile(rows, vectors, _LANES, sum_type)
        total = emit.stack(tile.size, sum_type)
        for r in range(rows):
            for v in range(vectors):
                zero = emit.broadcast(emit.zero(sum_type), _LANES)
                first = zero if start is None else emit.broadcast(start[row + r], _LANES)
                emit.store(total, first, [tile.at(r, v)])
        with emit.serial(self._depth) as k:
            for r in range(rows):
                factor = self._left(row + r, k)
                for v in range(vectors):
                    place = tile.at(r, v)
                    factors = (right(k, v), factor)
                    value = _call(
                        f"{sum_type}x{_LANES}", f"dot_{self.dtype}", total[place], *factors
                    )
                    emit.store(total, value, [place])
        epilogue = Epilogue(self.contraction, self.columns.inner)
        column = panel * self.plan.panel
        shift = 0 if self.turned else -columns % _LANES
        epilogue.write(tile, total, {}, row, column, columns, shift)

    def _left(self, row: Expr, k: Expr) -> Expr:
        """A group of the row operand in all lanes."""
        place = self._place(self.contraction.left, row, k * self._group)
        return emit.broadcast(_call("int32", "group", place), _LANES)
