"""Operands of bfloat16 and int8 in VNNI layout.

Instructions that sum several products per lane want neighbours along K side by side: two
bfloat16 or four bytes make a word of 32 bits. Where an operand is not stored like that it is
copied: the column operand into panels, one row of vectors of words per step of K, the row
operand into rows of words. What lies beyond K is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import dot_function
from tvmgraph.backend.cpu.kernels.gemm.microkernel import transpose
from tvmgraph.backend.cpu.kernels.gemm.plan import LANES
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.columns import MatrixProduct, runs_on
from tvmgraph.backend.loop_ir.contraction import Contraction, Operand
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.program import substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index
from tvmgraph.machine.processor import CpuModel

#: Elements of a word by type: neighbours along K. Where no instruction sums products of four bytes,
#: pairs of them are multiplied as numbers of 16 bits.
PAIRS_OF_BYTES = "int8_pairs"
VNNI_SIZES = {"bfloat16": 2, "int8": 4, PAIRS_OF_BYTES: 2}

_any: Any = T

#: Sums of products of words, per lane, of AVX-512.
DOTS = f"""{dot_function("tvmgraph_dot_bfloat16", LANES, native=True)}
declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <16 x i32>, <16 x i32>)
define internal <16 x i32> @tvmgraph_dot_int8(<16 x i32> %c, <16 x i32> %a, <16 x i32> %b)
    alwaysinline {{
  %r = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %c, <16 x i32> %a, <16 x i32> %b)
  ret <16 x i32> %r
}}
"""

_HERE = Path(__file__)
#: The same of AVX2, which has one for pairs of 16 bits.
PAIR_DOTS = _HERE.with_name("vnni_pair_dots.ll").read_text()
#: Loads of elements and words, and what says that a copy of an operand has been written.
LOADS = _HERE.with_name("vnni_loads.ll").read_text()


def tail_load(name: str, dtype: str, count: int) -> str:
    """A load of the first ``count`` elements of a vector of words; the others are 0.

    Args:
        name: Name of the function without its prefix.
        dtype: How elements are packed: a key of :data:`VNNI_SIZES`.
        count: Elements that are read; nothing behind them is touched.

    Returns:
        The function in the language of LLVM.
    """
    pairs = dtype == PAIRS_OF_BYTES
    size, bits = LANES * VNNI_SIZES[dtype], 8 if pairs else 32 // VNNI_SIZES[dtype]
    kind, flags = f"<{size} x i{bits}>", f"<{size} x i1>"
    mask = ", ".join(f"i1 {int(n < count)}" for n in range(size))
    function = f"@llvm.masked.load.v{size}i{bits}.p0"
    declaration, wide = f"declare {kind} {function}(ptr, i32, {flags}, {kind})", kind
    body = (
        f"  %v = call {kind} {function}(ptr %at, i32 1, {flags} <{mask}>, {kind} zeroinitializer)"
    )
    if pairs:  # AVX2 has no such instruction
        declaration, body, wide = "", _load_in_chunks(count, size), f"<{size} x i16>"
    value = f"sext {kind} %v to {wide}" if pairs else f"bitcast {kind} %v to {wide}"
    return f"""
{declaration}
define internal <{LANES} x i32> @tvmgraph_{name}(ptr %at) alwaysinline {{
{body}
  %w = {value}
  %r = bitcast {wide} %w to <{LANES} x i32>
  ret <{LANES} x i32> %r
}}
"""


def _load_in_chunks(count: int, size: int) -> str:
    """The body of a load of ``count`` bytes, as many at a time as powers of two allow."""
    lines, done = [f"  %v{0} = bitcast <{size} x i8> zeroinitializer to <{size} x i8>"], 0
    sizes = [1 << bit for bit in reversed(range(size.bit_length())) if count >> bit & 1]
    for number, chunk in enumerate(sizes):
        order = ", ".join(
            f"i32 {n - done if done <= n < done + chunk else chunk}" for n in range(size)
        )
        lines += [
            f"  %a{number} = getelementptr i8, ptr %at, i64 {done}",
            f"  %l{number} = load <{chunk} x i8>, ptr %a{number}, align 1, !tbaa !2",
            f"  %s{number} = shufflevector <{chunk} x i8> %l{number}, "
            f"<{chunk} x i8> zeroinitializer, <{size} x i32> <{order}>",
            f"  %v{number + 1} = or <{size} x i8> %v{number}, %s{number}",
        ]
        done += chunk
    return "\n".join([*lines, f"  %v = bitcast <{size} x i8> %v{len(sizes)} to <{size} x i8>"])


def call(dtype: str, name: str, *args: Expr) -> Expr:
    """A call of one of the functions of :data:`LOADS` and its like.

    Args:
        dtype: TVM's name of the result's type.
        name: Name of the function without its prefix.
        *args: What it is called with.
    """
    return _any.call_pure_extern(dtype, f"tvmgraph_{name}", *args)


def vnni_type(contraction: Contraction, model: CpuModel) -> str | None:
    """The VNNI layout that a processor's instructions multiply of these operands, if any.

    Args:
        contraction: A matrix product.
        model: The processor.

    Returns:
        A key of :data:`VNNI_SIZES`.
    """
    dtype = dot_type(contraction)
    if dtype == "int8" and dtype not in model.dot_types and model.sums_pairs_of_bytes:
        return PAIRS_OF_BYTES
    return dtype if dtype in model.dot_types else None


def dot_type(contraction: Contraction) -> str | None:
    """The type of both operands, if it has a VNNI layout and both are only cast.

    Args:
        contraction: A matrix product.
    """
    dtype = str(contraction.left.load.source.dtype)
    factors = (contraction.left, contraction.right)
    same = all(str(o.load.source.dtype) == dtype for o in factors)
    cast = all(isinstance(o.expr, tirx.Cast) and o.expr.value.same_as(o.load) for o in factors)
    return dtype if same and cast and dtype in VNNI_SIZES else None


@dataclass(frozen=True)
class Side:
    """The operands of one product as its tiles read them.

    Attributes:
        outer: Values of the batch and outer column axes.
        right: Panels of the column operand, or None where it is stored as panels.
        left: Rows of words, or None where they are read in place.
        start: What the sums of each row start from, or None for 0.
    """

    outer: Bound
    right: Buffer | None
    left: Buffer | None
    start: Buffer | None


@dataclass(frozen=True)
class PackedOperands(MatrixProduct):
    """A product over one axis whose operands are packed for dot-product instructions.

    Attributes:
        dtype: Type of the operands.
        step: Words that K is rounded up to a multiple of.
        tiled: Whether the operands are copied for tiles: ``LANES`` rows and words form one, one
            comes behind the other along K, and bytes keep their signs.
        stored: Columns per panel where the column operand is stored as panels in VNNI layout.
    """

    dtype: str
    step: int = 1
    stored: int | None = None
    tiled: bool = False

    @property
    def vnni_size(self) -> int:
        """Elements of a word: neighbours along K that one lane multiplies and sums."""
        return VNNI_SIZES[self.dtype]

    @property
    def k_size(self) -> int:
        """Words along K, those that are 0 included."""
        words = -(-self.shape.k_size // self.vnni_size)
        return -(-words // self.step) * self.step

    @property
    def _whole(self) -> int:
        """Words that exist in full."""
        return self.shape.k_size // self.vnni_size

    @property
    def _tail(self) -> str:
        """The load of what is left of a row or column after whole vectors of words."""
        return f"tail_{self.dtype}_{self.shape.k_size % (LANES * self.vnni_size)}"

    @property
    def functions(self) -> str:
        """The functions that copying, reading and multiplying the operands call."""
        rest = self.shape.k_size % (LANES * self.vnni_size)
        dots = PAIR_DOTS if self.dtype == PAIRS_OF_BYTES else DOTS
        return dots + LOADS + tail_load(self._tail, self.dtype, rest)

    def follow_copies(self) -> None:
        """Says that operands which the kernel has copied are written before they are read."""
        for operand in (self.contraction.left, self.contraction.right):
            source = operand.load.source
            if emit.is_workspace(source):
                address = _any.address_of(source[tuple(emit.i64(0) for _ in source.shape)])
                T.evaluate(_any.call_extern("int32", "tvmgraph_written", address))

    @property
    def load(self) -> str:
        """The load of a vector of words."""
        return "packed_vector_int8_pairs" if self.dtype == PAIRS_OF_BYTES else "packed_vector"

    @property
    def reads_in_place(self) -> bool:
        """Whether rows along K are in VNNI layout as they lie."""
        return self.dtype != PAIRS_OF_BYTES and self.is_exact

    @property
    def is_exact(self) -> bool:
        """Whether K is a whole number of words and steps."""
        return self._whole == self.k_size

    @property
    def stored_k_size(self) -> int:
        """Groups along K of a column operand that is stored as panels."""
        return int(self.contraction.right.load.source.shape[1])

    def runs_along_k(self, operand: Operand) -> bool:
        """Whether neighbours along K are neighbours in memory.

        Args:
            operand: One of the two operands.
        """
        if operand is self.contraction.right:
            return self.is_transposed
        strides = self.contraction.strides(operand)
        return strides is not None and strides[self.contraction.reduce[0].var] == 1

    def runs_along_mn(self, operand: Operand) -> bool:
        """Whether neighbouring rows or columns are neighbours in memory, and there is a vector of
        them.

        Args:
            operand: One of the two operands.
        """
        strides, axes = self.contraction.strides(operand), self._axes(operand)
        return strides is not None and self._mn_extent(operand) >= LANES and runs_on(axes, strides)

    def _axes(self, operand: Operand) -> Any:
        return self.contraction.rows if operand is self.contraction.left else self.columns.inner

    def _mn_extent(self, operand: Operand) -> int:
        rows = operand is self.contraction.left
        return self.shape.rows if rows else self.shape.columns

    def address(self, operand: Operand, outer: Bound, mn: Expr, k: Expr) -> Expr:
        """Address of an element of an operand.

        Args:
            operand: One of the two operands.
            outer: Values of the batch and outer column axes.
            mn: Row of the left operand, column of the right one.
            k: Index along K, in elements.
        """
        bound = self.bound_at(operand, outer, mn, k)
        indices = tuple(substitute(index, bound) for index in operand.load.indices)
        return _any.address_of(operand.load.source[indices])

    def stored_address(self, column: Expr, k: Expr) -> Expr:
        """Address of a word of a column operand that is stored as panels.

        Args:
            column: The column.
            k: Index along K, in words.
        """
        assert self.stored is not None
        width = emit.i64(self.stored)
        panel, member = tirx.floordiv(column, width), tirx.floormod(column, width)
        return _any.address_of(self.contraction.right.load.source[panel, k, member, emit.i64(0)])

    # Copies

    def pack_columns(
        self, outer: Bound, first: Expr, vectors: int, packed: Buffer, base: Expr
    ) -> None:
        """Copies columns into a panel: one row of vectors per step of K.

        Columns that do not exist repeat the last one.

        Args:
            outer: Values of the batch and outer column axes.
            first: The first column.
            vectors: Vectors of columns in the panel.
            packed: Where to, as words.
            base: Index in ``packed`` of the panel's first word.
        """
        operand, width = self.contraction.right, vectors * LANES
        blocks = self._whole // LANES
        if self.runs_along_k(operand):

            def block_of(load: str, block: Expr, vector: Expr, steps: int) -> None:
                column = first + vector * LANES
                square = self._square(operand, outer, column, block * LANES, load)
                transposed = transpose(square, LANES, "int32")
                for step in range(steps):
                    to = base + (block * LANES + step) * width + vector * LANES
                    value = transposed[emit.ramp(step * LANES, LANES)]
                    emit.store(packed, self.unsigned(value, LANES), [emit.ramp(to, LANES)])

            if blocks:
                with emit.serial(blocks) as block, emit.serial(vectors) as vector:
                    block_of(self.load, block, vector, LANES)
            if steps := self.k_size - blocks * LANES:
                with emit.serial(vectors) as vector:
                    block_of(self._tail, emit.i64(blocks), vector, steps)
        else:

            def step_of(k: Expr, members: int) -> None:
                with emit.serial(vectors) as vector:
                    column = self._clamped(first + vector * LANES)
                    value = self._side_by_side(operand, outer, column, k, members)
                    to = base + k * width + vector * LANES
                    emit.store(packed, self.unsigned(value, LANES), [emit.ramp(to, LANES)])

            with emit.serial(self._whole) as k:
                step_of(k, self.vnni_size)
            for k in range(self._whole, self.k_size):
                step_of(emit.i64(k), self._members(k))

    def pack_rows(self, outer: Bound, first: Expr, count: int, packed: Buffer, base: Expr) -> None:
        """Copies rows into rows of words; those that do not exist repeat the last one.

        Args:
            outer: Values of the batch and outer column axes.
            first: The first row.
            count: How many rows.
            packed: Where to, as words.
            base: Index in ``packed`` of the first row's first word.
        """
        operand, done, blocks = self.contraction.left, 0, self._whole // LANES
        last = emit.i64(self.shape.rows - 1)
        rest = self.k_size - blocks * LANES
        if self.runs_along_k(operand):
            done = self.k_size

            def block_of(load: str, row: Expr, block: Expr, count: int) -> None:
                at = tirx.min(first + row, last)
                address = self.address(operand, outer, at, block * (LANES * self.vnni_size))
                value = call(f"int32x{LANES}", load, address)
                value = value if count == LANES else emit.shuffle([value], range(count))
                emit.store(packed, value, [emit.ramp(base + self._copied(row, block), count)])

            with emit.serial(count) as row:
                if blocks:
                    with emit.serial(blocks) as block:
                        block_of(self.load, row, block, LANES)
                if rest:
                    block_of(self._tail, row, emit.i64(blocks), rest)
        elif self.runs_along_mn(operand) and count % LANES == 0:
            done = self.k_size if self.tiled or not rest else blocks * LANES
            with emit.serial(count // LANES) as chunk:
                if blocks:
                    with emit.serial(blocks) as block:
                        self._transpose_rows(outer, first, chunk * LANES, block, packed, base)
                if done > blocks * LANES:
                    self._transpose_rows(outer, first, chunk * LANES, blocks, packed, base)
        if done < self.k_size:
            with emit.serial(count) as row, emit.serial(self.k_size - done) as rest:
                k = rest + done
                value = self._single(operand, outer, tirx.min(first + row, last), k)
                block, lane = tirx.floordiv(k, LANES), tirx.floormod(k, LANES)
                emit.store(packed, value, [base + self._copied(row, block) + lane])

    def _copied(self, row: Expr, block: Expr) -> Expr:
        """Where 16 words of a copied row begin."""
        if self.tiled:
            return block * (LANES * LANES) + row * LANES
        return row * self.k_size + block * LANES

    def _transpose_rows(
        self, outer: Bound, first: Expr, row: Expr, block: Index, packed: Buffer, base: Expr
    ) -> None:
        """Sixteen steps of sixteen rows that lie side by side; of the last ones some may be 0."""
        square = emit.stack(LANES * LANES, "int32")
        start = tirx.min(first + row, emit.i64(self.shape.rows - LANES))
        for step in range(LANES):
            k = block * LANES + step
            members = self._members(k) if isinstance(k, int) else self.vnni_size
            value = self._side_by_side(self.contraction.left, outer, start, emit.index(k), members)
            emit.store(square, value, [emit.ramp(step * LANES, LANES)])
        transposed = transpose(square, LANES, "int32")
        for line in range(LANES):
            # the last rows may have come a little early: every row goes where it belongs
            own = tirx.max(start - first + line, emit.i64(0))
            to = base + self._copied(own, emit.index(block))
            value = transposed[emit.ramp(line * LANES, LANES)]
            emit.store(packed, value, [emit.ramp(to, LANES)])

    def _clamped(self, column: Expr) -> Expr:
        return tirx.min(column, emit.i64(self.shape.columns - LANES))

    @property
    def shift(self) -> int:
        """Lanes of the last vector of columns that repeat columns of the one before it."""
        whole = self.stored or not self.runs_along_mn(self.contraction.right)
        return 0 if whole else -self.shape.columns % LANES

    def _square(self, operand: Operand, outer: Bound, mn: Expr, k: Expr, load: str) -> Buffer:
        """Sixteen steps of sixteen rows or columns that are contiguous along K."""
        square = emit.stack(LANES * LANES, "int32")
        for row in range(LANES):
            at = tirx.min(mn + row, emit.i64(self._mn_extent(operand) - 1))
            address = self.address(operand, outer, at, k * self.vnni_size)
            value = call(f"int32x{LANES}", load, address)
            emit.store(square, value, [emit.ramp(row * LANES, LANES)])
        return square

    def _side_by_side(
        self, operand: Operand, outer: Bound, mn: Expr, k: Expr, members: int
    ) -> Expr:
        """One step of sixteen rows or columns side by side, of which so many members exist."""
        value: Expr | None = None
        for member in range(members):
            address = self.address(operand, outer, mn, k * self.vnni_size + member)
            chunk = call(f"int32x{LANES}", f"widen_{self.dtype}", address)
            shift = emit.broadcast(tirx.const(member * 32 // self.vnni_size, "int32"), LANES)
            chunk = tirx.shift_left(chunk, shift) if member else chunk
            value = chunk if value is None else tirx.bitwise_or(value, chunk)
        return emit.broadcast(emit.zero("int32"), LANES) if value is None else value

    def _members(self, k: int) -> int:
        """Elements of a word that exist."""
        return max(0, min(self.vnni_size, self.shape.k_size - k * self.vnni_size))

    def _single(self, operand: Operand, outer: Bound, mn: Expr, k: Expr) -> Expr:
        """One word, element by element; what does not exist is 0."""
        value: Expr = tirx.const(0, "int32")
        for member in range(self.vnni_size):
            at = k * self.vnni_size + member
            known = tirx.min(at, emit.i64(self.shape.k_size - 1))
            chunk = call("int32", f"element_{self.dtype}", self.address(operand, outer, mn, known))
            chunk = tirx.Select(at < self.shape.k_size, chunk, tirx.const(0, "int32"))
            chunk = tirx.shift_left(chunk, tirx.const(member * 32 // self.vnni_size, "int32"))
            value = tirx.bitwise_or(value, chunk)
        return value

    def unsigned(self, value: Expr, lanes: int) -> Expr:
        """Words of bytes with 128 added to each, unless for tiles; others as they are.

        Args:
            value: Words, int32.
            lanes: How many.
        """
        if self.dtype != "int8" or self.tiled:
            return value
        flip = emit.broadcast(tirx.const(-0x7F7F7F80, "int32"), lanes)
        return tirx.bitwise_xor(value, flip)


@dataclass(frozen=True)
class VnniKernel:
    """What kernels that multiply packed operands share: batches, panels, copies of operands.

    Attributes:
        operands: The operands.
        panel: Columns of a panel.
        parallel: Whether workers share the product.
        threads: How many there are.
    """

    operands: PackedOperands
    panel: int
    parallel: bool
    threads: int

    @property
    def panels(self) -> int:
        """Number of panels."""
        return -(-self.operands.shape.columns // self.panel)

    @property
    def panel_size(self) -> int:
        """Groups of a panel."""
        return self.operands.k_size * self.panel

    def write(self) -> None:
        """Divides the products of a batch among the workers, or else each of them."""
        self.operands.follow_copies()
        batch, shape = self.operands.contraction.batch, self.operands.shape
        by_product = self.parallel and shape.outer >= 2 * self.threads
        # rows that all products share are copied once
        shared = None if batch else self.packed_rows({}, self.parallel)
        with emit.parallel(shape.outer, by_product) as item:
            outer, parallel = (
                bind_group(self.operands.around, item),
                self.parallel and not by_product,
            )
            left = self.packed_rows(outer, parallel) if batch else shared
            self.product(outer, left, parallel)

    @property
    def reads_rows(self) -> bool:
        """Whether rows are read where they lie."""
        raise NotImplementedError

    def product(self, outer: Bound, left: Buffer | None, parallel: bool) -> None:
        """Writes one product of the batch, whose rows are copied in ``left`` if anywhere.

        Args:
            outer: Values of the batch and outer column axes.
            left: The rows in VNNI layout, or None where they are read in place.
            parallel: Whether the workers share this product.
        """
        raise NotImplementedError

    def packed_buffer(self, size: int) -> Buffer:
        """A temporary for packed operands.

        Args:
            size: Its words.
        """
        return emit.workspace([size], "int32")

    def packed_columns(self, outer: Bound, parallel: bool) -> Buffer | None:
        """The columns in panels in VNNI layout, where they are not stored like that.

        Args:
            outer: Values of the batch and outer column axes.
            parallel: Whether the workers share the panels.

        Returns:
            ``panels * panel_size`` words, panel by panel.
        """
        if self.operands.stored:
            return None
        right = self.packed_buffer(self.panels * self.panel_size)
        with emit.parallel(self.panels, parallel) as panel:
            self.operands.pack_columns(
                outer, panel * self.panel, self.panel // LANES, right, panel * self.panel_size
            )
        return right

    def packed_rows(self, outer: Bound, parallel: bool) -> Buffer | None:
        """The rows in VNNI layout, where they are not read in place.

        Args:
            outer: Values of the batch and outer column axes.
            parallel: Whether the workers share the rows.

        Returns:
            Blocks of ``LANES`` rows of ``k_size`` words.
        """
        if self.reads_rows:
            return None
        blocks = -(-self.operands.shape.rows // LANES)
        left = self.packed_buffer(blocks * LANES * self.operands.k_size)
        with emit.parallel(blocks, parallel) as block:
            base = block * (LANES * self.operands.k_size)
            self.operands.pack_rows(outer, block * LANES, LANES, left, base)
        return left
