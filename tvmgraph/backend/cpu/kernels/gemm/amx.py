"""Matrix products of bfloat16 and int8 with AMX, instructions that multiply tiles of registers.

A tile has 16 rows of 64 bytes; one instruction multiplies 16 rows with 16 words along K
of 16 columns. Two tiles of rows and two of columns make four of sums, so that every tile that is
loaded is used twice.

Blocking: the column operand is copied into panels of two tiles. A work item is a block of rows, as
much of the row operand as fills half of L2, and one panel. It goes through K in blocks, of
which the panel's share stays in L1 while all rows are multiplied with it; between the blocks the
sums are kept in memory.

Few rows and a transposed matrix of many columns are multiplied the other way around: what is packed
are the rows, and the matrix is read in place, as rows of tiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import transpose
from tvmgraph.backend.cpu.kernels.gemm.plan import LANES, MIN_PARALLEL_FLOPS
from tvmgraph.backend.cpu.kernels.gemm.problem import vnni_operands_of
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import PackedOperands, Side, VnniKernel
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.columns import Columns
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.items import Range, Split, write_items
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group, vectors
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Rows of a tile, and words along K that one instruction takes.
_SIDE = 16
#: Bytes of a row of a tile.
_ROW_BYTES = 64
#: Products with fewer rows leave most of a tile empty, which costs more than reading the columns.
_MIN_ROWS = 5
#: Columns for each row from which on the rows are packed in place of the columns.
_MANY_COLUMNS = 2
#: The sums of row tile r and column tile c are tile 2 r + c; operands come after them.
_ROWS, _COLUMNS = 4, 6
_DOTS = {"bfloat16": "tdpbf16ps", "int8": "tdpbssd"}

_any: Any = T


def _llvm() -> str:
    """Functions for every use of a tile: its number must be a constant of the instruction."""
    shape = [1, *[0] * 15, *[_ROW_BYTES, 0] * 8, *[0] * 16, *[_SIDE] * 8, *[0] * 8]
    lines = [
        "@tvmgraph_tile_shape = internal constant [64 x i8] ["
        + ", ".join(f"i8 {value}" for value in shape) + "]",
        "declare void @llvm.x86.ldtilecfg(ptr)",
        "declare void @llvm.x86.tilerelease()",
        "declare void @llvm.x86.tilezero(i8 immarg)",
        "declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)",
        "declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)",
        *(f"declare void @llvm.x86.{dot}(i8 immarg, i8 immarg, i8 immarg)"
          for dot in _DOTS.values()),
        _function("tile_begin()", "call void @llvm.x86.ldtilecfg(ptr @tvmgraph_tile_shape)"),
        _function("tile_end()", "call void @llvm.x86.tilerelease()"),
    ]  # fmt: skip
    for tile in range(8):
        for name, instruction in (("load", "tileloadd64"), ("store", "tilestored64")):
            lines.append(_function(
                f"tile_{name}{tile}(ptr %at, i64 %step)",
                f"call void @llvm.x86.{instruction}(i8 {tile}, ptr %at, i64 %step)",
            ))  # fmt: skip
    for tile in range(4):
        lines.append(_function(f"tile_zero{tile}()", f"call void @llvm.x86.tilezero(i8 {tile})"))
        rows, columns = _ROWS + tile // 2, _COLUMNS + tile % 2
        for dtype, dot in _DOTS.items():
            lines.append(_function(
                f"tile_dot_{dtype}{tile}()",
                f"call void @llvm.x86.{dot}(i8 {tile}, i8 {rows}, i8 {columns})",
            ))  # fmt: skip
    return "\n".join(lines)


def _function(signature: str, body: str) -> str:
    return f"define internal i32 @tvmgraph_{signature} alwaysinline {{ {body}\n ret i32 0 }}"


#: What ``tile_...`` functions do.
INSTRUCTIONS = _llvm()


def _tile(name: str, *args: Expr) -> None:
    T.evaluate(_any.call_extern("int32", f"tvmgraph_tile_{name}", *args))


def _address(buffer: Buffer, place: Expr) -> Expr:
    return _any.address_of(buffer[place])


def _whole(buffer: Buffer) -> Buffer:
    """A buffer of which every element is kept, though tiles are moved by their first address.

    TVM cuts buffers down to the elements that it sees accessed.
    """
    last = [extent - 1 for extent in buffer.shape]
    for place in ([emit.i64(0)], last):
        emit.store(buffer, emit.zero(str(buffer.dtype)), place)
    return buffer


@dataclass(frozen=True)
class _Plan:
    """Blocks of a product.

    Attributes:
        rows: Rows of a work item, whole pairs of tiles.
        steps: Instructions along K of a block.
        parallel: Whether the workers share the product.
    """

    rows: int
    steps: int
    parallel: bool


def _plan(tiled: _Tiled, model: CpuModel) -> _Plan:
    """Blocks that fill 5/8 of L1 and half of L2."""
    operands, pair = tiled.operands, 2 * _SIDE
    shape = operands.shape
    steps = operands.k_size // _SIDE
    longest = max(1, model.l1_bytes * 5 // 8 // (2 * _SIDE * _ROW_BYTES))
    blocks = -(-steps // longest) if steps > longest * 5 // 4 else 1
    block_steps = choose(
        "tile steps", -(-steps // blocks), [-(-steps // n) for n in (1, blocks, 4)]
    )
    parallel = shape.flops >= MIN_PARALLEL_FLOPS and model.threads > 1
    most = max(pair, model.l2_bytes // 2 // (4 * operands.k_size) // pair * pair)
    panels = -(-shape.columns // pair)
    wanted = -(-4 * model.threads // panels) if parallel else 1
    rows = min(most, -(-shape.rows // (wanted * pair)) * pair)
    return _Plan(rows, block_steps, parallel)


@dataclass(frozen=True)
class _Block:
    """The tiles at hand: ``rows`` x ``columns`` of them from a row and a column on.

    The copy of their panel begins at ``base``.
    """

    row: Expr
    column: Expr
    base: Expr
    rows: int
    columns: int
    sums: Buffer | None
    kept: Expr


@dataclass(frozen=True)
class _Tiled:
    """A product in tiles.

    Attributes:
        operands: Its operands, rows first.
        result: The product as it is stored.
        columns: Its columns.
        is_swapped: Whether the rows of ``operands`` are the columns of the result.
    """

    operands: PackedOperands
    result: Contraction
    columns: Columns
    is_swapped: bool = False

    def swapped(self) -> _Tiled:
        """The same product with its operands exchanged."""
        other = self.result.swapped()
        columns = Columns((), other.columns)
        operands = replace(self.operands, contraction=other, columns=columns)
        return replace(self, operands=operands, is_swapped=True)

    @property
    def row_step(self) -> int | None:
        """Elements from one row to the next in memory, None where it is not always the same."""
        contraction = self.operands.contraction
        strides = contraction.strides(contraction.left)
        if strides is None:
            return None
        step = strides[contraction.rows[-1].var]
        expected = step
        for axis in reversed(contraction.rows):
            if strides[axis.var] != expected:
                return None
            expected *= axis.extent
        return step

    @property
    def is_read_in_place(self) -> bool:
        """Whether tiles of rows are loaded from where they lie."""
        operands = self.operands
        along = operands.runs_along_k(operands.contraction.left) and operands.is_exact
        return along and operands.shape.rows % _SIDE == 0 and self.row_step is not None


@dataclass(frozen=True)
class _Kernel(VnniKernel):
    tiled: _Tiled
    plan: _Plan

    @property
    def reads_rows(self) -> bool:
        """Whether rows are read where they lie."""
        return self.tiled.is_read_in_place

    def product(self, outer: Bound, left: Buffer | None, parallel: bool) -> None:
        """Copies columns if need be, then divides blocks of rows and panels.

        Args:
            outer: Values of the batch and outer column axes.
            left: The rows in VNNI layout, or None where they are read in place.
            parallel: Whether the workers share this product.
        """
        shape = self.operands.shape
        blocks = Split(shape.rows, self.plan.rows), Split(shape.columns, self.panel)
        apart = blocks[0].items == 1 and not self.operands.stored  # every panel is used once
        packed = None if apart else self.packed_columns(outer, parallel)

        def item(_bound: Bound, ranges: list[Range]) -> None:
            (column, _), right, base = ranges[1], packed, ranges[1][0] * self.operands.k_size
            if apart:
                right, base = self.packed_buffer(self.panel_size), emit.i64(0)
                self.operands.pack_columns(outer, column, self.panel // LANES, right, base)
            _tile("begin")
            self._item(Side(outer, right, left, None), ranges[0], ranges[1], base)
            _tile("end")

        write_items(blocks, parallel, item)

    def packed_buffer(self, size: int) -> Buffer:
        """A temporary for packed operands, of which every element is kept.

        Args:
            size: Its words.
        """
        return _whole(super().packed_buffer(size))

    # Work items

    def _item(self, side: Side, row_range: Range, columns: Range, base: Expr) -> None:
        """Multiplies a block of rows with a panel, one block of K after the other."""
        (first, count), (column, width) = row_range, columns
        steps, total = self.plan.steps, self.operands.k_size // _SIDE
        blocks, panel_vectors = -(-total // steps), -(-width // LANES)
        sums = None
        if blocks > 1:
            rows = -(-count // _SIDE) * _SIDE
            size, dtype = rows * panel_vectors * LANES, self.operands.contraction.dtype
            sums = _whole(emit.workspace([size], dtype))

        def rows_from(start: Expr, block_steps: int, is_first: bool, is_last: bool) -> None:
            def tiles(row: Expr, rows: int, _slot: int) -> None:
                block = _Block(first + row, column, base, -(-rows // _SIDE), panel_vectors, sums,
                               row * (panel_vectors * LANES))  # fmt: skip
                self._multiply(side, block, start, block_steps, is_first)
                if is_last:
                    self._finish(side, block, rows, width)
                else:
                    self._move("store", block, sums, block.kept)

            vectors(emit.i64(0), count, 2 * _SIDE, tiles)

        if blocks == 1:
            rows_from(emit.i64(0), total, True, True)
            return
        rows_from(emit.i64(0), steps, True, False)
        if blocks > 2:
            with emit.serial(blocks - 2) as middle:
                rows_from((middle + 1) * steps, steps, False, False)
        done = (blocks - 1) * steps
        rows_from(emit.i64(done), total - done, False, True)

    def _multiply(
        self, side: Side, block: _Block, start: Expr, block_steps: int, is_first: bool
    ) -> None:
        """Adds ``block_steps`` instructions to every tile of sums."""
        tiles = [(r, c) for r in range(block.rows) for c in range(block.columns)]
        if is_first:
            for r, c in tiles:
                _tile(f"zero{2 * r + c}")
        else:
            self._move("load", block, block.sums, block.kept)
        with emit.serial(block_steps) as k:
            step = start + k
            for r in range(block.rows):
                self._load_rows(side, block.row + r * _SIDE, r, step)
            for c in range(block.columns):
                self._load_columns(side, block, c, step)
            for r, c in tiles:
                _tile(f"dot_{self.operands.dtype}{2 * r + c}")

    def _load_columns(self, side: Side, block: _Block, number: int, step: Expr) -> None:
        """Loads a tile of columns."""
        if side.right is None:
            first = block.column + number * LANES
            place, width = self.operands.stored_address(first, step * _SIDE), self.operands.stored
        else:
            first = block.base + step * (_SIDE * self.panel) + number * LANES
            place, width = _address(side.right, first), self.panel
        _tile(f"load{_COLUMNS + number}", place, emit.i64((width or 0) * 4))

    def _load_rows(self, side: Side, row: Expr, number: int, step: Expr) -> None:
        """Loads a tile of rows."""
        operands = self.operands
        if side.left is not None:
            place = _address(side.left, row * operands.k_size + step * (_SIDE * _SIDE))
            _tile(f"load{_ROWS + number}", place, emit.i64(_ROW_BYTES))
            return
        place = operands.address(
            operands.contraction.left, side.outer, row, step * (_SIDE * operands.vnni_size)
        )
        apart = (self.tiled.row_step or 0) * 4 // operands.vnni_size
        _tile(f"load{_ROWS + number}", place, emit.i64(apart))

    def _move(self, name: str, block: _Block, buffer: Buffer | None, base: Expr) -> None:
        """Loads the tiles of sums from rows in memory, or stores them there."""
        assert buffer is not None
        width = block.columns * LANES
        for r in range(block.rows):
            for c in range(block.columns):
                place = base + (r * _SIDE * width + c * LANES)
                _tile(f"{name}{2 * r + c}", _address(buffer, place), emit.i64(width * 4))

    def _finish(self, side: Side, block: _Block, rows: int, columns: int) -> None:
        """Stores the result of finished sums."""
        if self.tiled.is_swapped:
            self._finish_swapped(side, block, rows, columns)
            return
        contraction = self.operands.contraction
        width = block.columns * LANES
        total = _whole(emit.stack(block.rows * _SIDE * width, contraction.dtype))
        self._move("store", block, total, emit.i64(0))
        with emit.serial(rows) as row:
            bound = side.outer | bind_group(contraction.rows, block.row + row)
            for c in range(block.columns):
                lanes = min(LANES, columns - c * LANES)
                first = row * width + c * LANES + (self.operands.shift if lanes < LANES else 0)
                self._store(bound, block.column + c * LANES, lanes, total, first)

    def _finish_swapped(self, side: Side, block: _Block, rows: int, columns: int) -> None:
        """Stores finished sums whose rows are columns of the result."""
        dtype = self.operands.contraction.dtype
        for r in range(block.rows):
            for c in range(block.columns):
                square = _whole(emit.stack(_SIDE * LANES, dtype))
                _tile(f"store{2 * r + c}", _address(square, emit.i64(0)), emit.i64(_ROW_BYTES))
                transposed = transpose(square, LANES, dtype)
                first = block.column + c * LANES
                lanes = min(_SIDE, rows - r * _SIDE)
                with emit.serial(min(LANES, columns - c * LANES)) as row:
                    bound = side.outer | bind_group(self.tiled.result.rows, first + row)
                    self._store(bound, block.row + r * _SIDE, lanes, transposed, row * LANES)

    def _store(self, bound: Bound, column: Expr, lanes: int, sums: Buffer, first: Expr) -> None:
        """Stores a vector of finished sums, from ``sums[first]`` on."""
        epilogue = Epilogue(self.tiled.result, self.tiled.columns.inner)
        epilogue.vector(bound, column, lanes, lambda lane: sums[first + lane])


def _match(nest: Nest, model: CpuModel) -> _Tiled | Refused:
    operands = nest.once(vnni_operands_of, model)
    if isinstance(operands, Refused):
        return operands
    if operands.dtype not in model.tile_types:
        return Refused(f"the processor does not multiply tiles of {operands.dtype}")
    if operands.shape.rows < _MIN_ROWS:
        return Refused("too few rows for a tile")
    operands = replace(operands, step=_SIDE, tiled=True)
    if operands.stored and (operands.stored % (2 * LANES) or operands.stored_k_size % _SIDE):
        return Refused("a tile would reach beyond its panel")
    tiled = _Tiled(operands, operands.contraction, operands.columns)
    if _prefers_rows_packed(operands) and (swapped := tiled.swapped()).is_read_in_place:
        return swapped
    if not operands.stored and operands.shape.rows < _SIDE:
        return Refused("the columns would be packed for too few rows")
    return tiled


def _prefers_rows_packed(operands: PackedOperands) -> bool:
    """Whether there are so few rows that copying them is cheaper than copying the columns."""
    left, right = operands.contraction.left, operands.contraction.right
    if operands.stored or operands.columns.outer or not operands.contraction.rows:
        return False
    along = operands.runs_along_k(left) and operands.runs_along_k(right)
    return along and operands.shape.columns >= _MANY_COLUMNS * operands.shape.rows


def emit_tiles(operands: PackedOperands, model: CpuModel) -> None:
    """Writes the kernel for a product that another kernel made.

    Args:
        operands: The product.
        model: The processor.
    """
    operands = replace(operands, step=_SIDE, tiled=True)
    tiled = _Tiled(operands, operands.contraction, operands.columns)
    _write(tiled, _plan(tiled, model), model)


def _write(tiled: _Tiled, plan: _Plan, model: CpuModel) -> None:
    panel = min(2, -(-tiled.operands.shape.columns // LANES)) * LANES
    with T.attr(0, "pragma_import_llvm", INSTRUCTIONS + tiled.operands.functions):
        _Kernel(tiled.operands, panel, plan.parallel, model.threads, tiled, plan).write()


def _emit(tiled: _Tiled, plan: _Plan, writer: Writer[CpuModel]) -> None:
    _write(tiled, plan, writer.model)


KERNEL = Kernel(
    "gemm_amx", _match, _emit, "matrix product of bfloat16 or int8 with AMX tiles", _plan,
    ("tile steps",),
)  # fmt: skip
