"""Matrix products.

Blocking: the columns are cut into panels of a few vectors. A worker packs one panel of the column
operand into contiguous memory that stays in its L2 cache, then sweeps all rows over it, a register
tile at a time: per k-step the tile loads one vector per panel vector and one scalar per row, which
it broadcasts. Where columns lie side by side in memory already, the first tile reads them there
and writes the panel on the way. The row operand is read in place. A K whose panel would not fit
is cut into blocks, with the sums of a panel kept aside in between; one loop goes through equal
blocks, and the last one finishes the sums. The elementwise epilogue runs on the tile while it is in
registers.

Steps of K are counted twice: along the axes that operands run on along, where an address is a
multiple of the step, and along those around them, such as the images of a batch whose pixels are
summed. A single count would be divided again for the address of every element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tvm import tirx

from tvmgraph.backend.cpu.kernels.gemm.dot import emit_dot_products
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import (
    Tile,
    kept,
    multiply_tile,
    store_tile,
    transpose,
)
from tvmgraph.backend.cpu.kernels.gemm.plan import GemmPlan, Packing, plan_gemm, plan_panels
from tvmgraph.backend.cpu.kernels.gemm.problem import GemmProblem, gemm_of
from tvmgraph.backend.cpu.kernels.gemm.weight_streaming import (
    emit_weight_streaming,
    wants_weight_streaming,
)
from tvmgraph.backend.cpu.kernels.operands import with_plain_left
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.columns import MatrixProduct, stored_panel
from tvmgraph.backend.loop_ir.contraction import Operand
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group, vectors
from tvmgraph.backend.loop_ir.program import Axis, product, static_shape, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: A step of a span of K: its positions along the outer axes of K and along the inner ones.
_Step = tuple[Expr, Expr]
#: So many elements of the column operand at a step, from a vector of the panel on.
_Columns = Callable[[_Step, int, int], Expr]
#: Where sums are kept between parts of K: the buffer, and its element for row 0.
_Sums = tuple[Buffer, Expr]


#: Panels from which on rows of another type are converted once, instead of again for each.
_MANY_PANELS = 4
#: One in so many rows or columns may be computed twice, so that the last tile is as large as the
#: others: a smaller one is as much code again, and saves less than its share, as it waits for sums.
#: Ten products and convolutions with AVX2 take 0.96 to 1.05 of the time (a copy of the former code
#: 0.99 to 1.02).
_REPEATED = 64
#: Steps of K from which on a tile takes so long that it does not count how its rows are found:
#: with 64 steps 512 rows take 5 % longer if the last tile reaches back, with 512 1 %.
_LONG_SUMS = 256
#: Bytes of a vector from which on the first rows copy the column operand on the way.
_MIN_COPIED_BYTES = 32


@dataclass(frozen=True)
class _Panel:
    """One panel of columns of one product.

    Attributes:
        outer: Values of the batch and outer column axes.
        first: First column.
        columns: Number of columns that exist.
        vectors: Vectors that hold them.
    """

    outer: Bound
    first: Expr
    columns: int
    vectors: int


@dataclass(frozen=True)
class _Span:
    """Steps ``start`` to ``start + steps`` of the sums, for each of some outer positions.

    Attributes:
        start: The first step along the inner axes of K.
        steps: How many.
        outer: The first position along the outer axes.
        outer_steps: How many.
    """

    start: Expr
    steps: int
    outer: Expr | int = 0
    outer_steps: int = 1

    @property
    def extents(self) -> list[int]:
        """Of the loops over the steps."""
        return [self.outer_steps, self.steps] if self.outer_steps > 1 else [self.steps]

    def step(self, at: Sequence[Expr]) -> _Step:
        """A step, given the indices of those loops."""
        return (at[0] if len(at) > 1 else emit.i64(0), at[-1])

    def flat(self, step: _Step) -> Expr:
        """The number of a step among all."""
        return step[1] if self.outer_steps == 1 else step[0] * self.steps + step[1]


@dataclass(frozen=True)
class _Gemm(MatrixProduct):
    plan: GemmPlan
    is_direct: bool = False

    @cached_property
    def _k_axes(self) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """The outer axes of K, and the inner ones along which both operands run on."""
        axes = self.contraction.reduce
        left = self.contraction.strides(self.contraction.left)
        right = self.contraction.strides(self.contraction.right)
        if left is None or right is None:
            return (), axes
        first = len(axes) - 1
        while first > 0 and all(_is_one(axes[first - 1], axes[first], s) for s in (left, right)):
            first -= 1
        if product(axis.extent for axis in axes[first:]) < self.plan.lanes:
            return (), axes  # too short to be worth a loop
        return axes[:first], axes[first:]

    @property
    def _k_extents(self) -> tuple[int, int]:
        outer, inner = (product(axis.extent for axis in axes) for axes in self._k_axes)
        return outer, inner

    @property
    def _whole(self) -> _Span:
        outer, inner = self._k_extents
        return _Span(emit.i64(0), inner, outer_steps=outer)

    @property
    def _copies_on_the_way(self) -> bool:
        """Whether the first rows read the column operand in place, and copy it to its panel.

        Short vectors take so many registers that none is left for what is copied.
        """
        lanes = self.plan.lanes
        wide = self.shape.columns >= lanes and lanes * self.shape.itemsize >= _MIN_COPIED_BYTES
        return self.is_direct and wide and self.plan.packing is Packing.LOCAL

    def write(self) -> None:
        if self.plan.packing in (Packing.SHARED, Packing.DONE):
            self._write_shared()
            return
        with emit.parallel(self._items(), self.plan.parallel) as item:
            self._panel_alone(item)

    # Work items

    def _items(self) -> int:
        return self.shape.outer * self._panels()

    def _panels(self) -> int:
        return -(-self.shape.columns // self.plan.panel)

    def _outer(self, item: Expr) -> tuple[Bound, Expr]:
        """The batch and outer column axes of a work item, and the first column of its panel."""
        extents = [axis.extent for axis in self.around]
        *outer, panel = emit.unfuse(item, [*extents, self._panels()])
        bound = {axis.var: value for axis, value in zip(self.around, outer)}
        first, last = panel * self.plan.panel, self.shape.columns - self.plan.panel
        return bound, tirx.min(first, emit.i64(last)) if self._repeats_columns else first

    @cached_property
    def _repeats_columns(self) -> bool:
        """Whether the last panel is as wide as the others, with columns of the one before it."""
        apart = self.plan.packing is not Packing.DONE
        little = _repeats_little(self.shape.columns, self.plan.panel)
        return apart and self._may_repeat and little

    def _for_panel(self, item: Expr, body: Callable[[_Panel], None]) -> None:
        """Calls ``body`` for a work item; a last, narrower panel gets code of its own."""
        bound, first = self._outer(item)
        width, lanes = self.plan.panel, self.plan.lanes
        rest = 0 if self._repeats_columns else self.shape.columns % width
        full = _Panel(bound, first, width, self.plan.vectors)
        last_first = emit.i64(self.shape.columns - rest)
        last = _Panel(bound, last_first, rest, -(-rest // lanes))
        if not rest:
            body(full)
        elif self._panels() == 1:
            body(last)
        else:
            emit.when(first < last_first, lambda: body(full), lambda: body(last))

    def _panel_alone(self, item: Expr) -> None:
        """Packs a panel and multiplies all rows with it, one block of K after the other."""
        plan, dtype = self.plan, self.contraction.dtype
        if plan.packing is Packing.NONE:
            self._for_panel(item, lambda p: self._rows(p, self._whole, self._in_place(p)))
            return
        block = _block_of(*self._k_extents, plan.k_block)
        packed = emit.workspace([block.outer_steps * block.steps * plan.panel], dtype)
        sums = None
        if block != self._whole:
            sums = emit.workspace([self.shape.rows * plan.panel], dtype), emit.i64(0)
            with emit.serial(self.shape.rows * plan.panel) as at:
                emit.store(sums[0], emit.zero(dtype), [at])
        self._blocks(block, lambda *part: self._part_alone(item, packed, sums, *part))

    def _blocks(self, block: _Span, part: Callable[[_Span, Expr | bool], None]) -> None:
        """Goes through all blocks of K.

        Args:
            block: The first one.
            part: Writes one of them. It is told which, and whether it finishes the sums.
        """
        outer, inner = self._k_extents
        if block == self._whole:
            part(block, True)
            return
        groups, parts = outer // block.outer_steps, inner // block.steps
        rest = inner % block.steps
        if not rest:
            with emit.serial(groups) as group, emit.serial(parts) as number:
                last = tirx.all(group == groups - 1, number == parts - 1)
                part(_block_at(block, group, number), last)
            return
        with emit.serial(groups) as group:
            with emit.serial(parts) as number:
                part(_block_at(block, group, number), False)
            last = replace(_block_at(block, group, emit.i64(parts)), steps=rest)
            part(last, group == groups - 1 if groups > 1 else True)

    def _part_alone(
        self, item: Expr, packed: Buffer, sums: _Sums | None, span: _Span, finish: Expr | bool
    ) -> None:
        """Packs a span of K of a panel, and multiplies all rows with it."""
        right = self._packed(packed, emit.i64(0), span)
        rows, first = self.shape.rows, self.plan.tile_rows
        if not self._copies_on_the_way:
            self._pack(item, packed, emit.i64(0), span)
            self._for_panel(item, lambda p: self._rows(p, span, right, sums, finish))
            return

        def all_rows(panel: _Panel) -> None:
            copying = self._copying(panel, packed, span)
            self._rows(panel, span, copying, sums, finish, (0, min(first, rows)))
            if rows > first:
                self._rows(panel, span, right, sums, finish, (first, rows - first))

        self._for_panel(item, all_rows)

    def _write_shared(self) -> None:
        """Packs everything if it must, then divides panels and blocks of rows."""
        plan, k_size = self.plan, self.shape.k_size
        packed = None
        if plan.packing is Packing.SHARED:
            size = k_size * plan.panel
            packed = emit.workspace([self._items() * size], self.contraction.dtype)
            self._pack_all(packed, size)
        block = _block_of(*self._k_extents, plan.k_block)
        if block == self._whole:
            self._divided(block, packed)
            return
        dtype = self.contraction.dtype
        sums = emit.workspace([self._items() * self.shape.rows * plan.panel], dtype)
        self._clear(sums)
        self._blocks(block, lambda span, finish: self._divided(span, packed, sums, finish))

    def _clear(self, sums: Buffer) -> None:
        size = self.shape.rows * self.plan.panel
        with emit.parallel(self._items(), self.plan.parallel) as item, emit.serial(size) as at:
            emit.store(sums, emit.zero(self.contraction.dtype), [item * size + at])

    def _divided(
        self,
        span: _Span,
        packed: Buffer | None,
        sums: Buffer | None = None,
        finish: Expr | bool = True,
    ) -> None:
        """Adds a span of K; a work item is a block of rows of a panel."""
        plan = self.plan
        blocks = -(-self.shape.rows // plan.row_block)
        with emit.parallel(self._items() * blocks, plan.parallel) as work:
            extents = [self._items(), blocks]
            if plan.rows_first:
                block, item = emit.unfuse(work, extents[::-1])
            else:
                item, block = emit.unfuse(work, extents)
            kept = (sums, item * (self.shape.rows * plan.panel)) if sums is not None else None

            def rows(panel: _Panel, count: int) -> None:
                right = self._stored(panel, span.start)
                if packed is not None:
                    inner = self._k_extents[1]
                    first = item * self.shape.k_size + span.outer * inner + span.start
                    right = self._packed(packed, first * plan.panel, span)
                self._rows(panel, span, right, kept, finish, (block * plan.row_block, count))

            self._for_panel(
                item,
                lambda panel: emit.peel_last(
                    (block, blocks, plan.row_block, self.shape.rows), lambda n: rows(panel, n)
                ),
            )

    def _pack_all(self, packed: Buffer, size: int) -> None:
        """Packs all panels; with fewer panels than workers, chunks of K of each."""
        (outer, inner), lanes = self._k_extents, self.plan.lanes
        chunk = -(-self.shape.k_size * self._items() // self.plan.threads)
        chunk = min(inner, -(-chunk // lanes) * lanes) if self.plan.parallel else inner
        chunks = -(-inner // chunk)
        with emit.parallel(self._items() * outer * chunks, self.plan.parallel) as at:
            item, position, index = emit.unfuse(at, [self._items(), outer, chunks])

            def pack(length: int) -> None:
                start = index * chunk
                to = item * size + (position * inner + start) * self.plan.panel
                self._pack(item, packed, to, _Span(start, length, position))

            emit.peel_last((index, chunks, chunk, inner), pack)

    # Rows of one panel

    def _rows(
        self,
        panel: _Panel,
        span: _Span,
        right: _Columns,
        sums: _Sums | None = None,
        finish: Expr | bool = True,
        rows: tuple[Expr | int, int] | None = None,
    ) -> None:
        """Multiplies rows (first, count), or all, with a panel over a span of K."""
        first, count = rows or (0, self.shape.rows)
        height = self.plan.tile_rows
        long = self.shape.k_size >= _LONG_SUMS
        if sums is None and long and self._may_repeat and _repeats_little(count, height):
            with emit.serial(-(-count // height)) as tile:
                row = first + tirx.min(tile * height, emit.i64(count - height))
                self._tile(panel, row, height, span, right, sums, finish)
            return
        vectors(
            emit.index(first), count, height,
            lambda row, height, _slot: self._tile(panel, row, height, span, right, sums, finish),
        )  # fmt: skip

    @cached_property
    def _may_repeat(self) -> bool:
        """Whether elements may be stored twice: nothing is read that the result may be put over."""
        stage = self.contraction.epilogue
        return not any(
            static_shape(load.source) == static_shape(stage.buffer)
            and load.source.dtype == stage.buffer.dtype
            and not load.source.same_as(self.contraction.sums)
            for load in stage.loads
        )

    def _tile(
        self,
        panel: _Panel,
        first: Expr,
        rows: int,
        span: _Span,
        right: _Columns,
        sums: _Sums | None,
        finish: Expr | bool,
    ) -> None:
        plan = self.plan
        # In place, a panel narrower than a vector must not be read beyond its end.
        lanes = panel.columns if self._is_narrow(panel) else plan.lanes
        adjacent = not self._shift(panel)
        tile = Tile(rows, panel.vectors, lanes, self.contraction.dtype, adjacent)

        def place(row: int, vector: int, count: int) -> Expr:
            base = sums[1] if sums else 0
            return emit.ramp(base + (first + row) * plan.panel + vector * lanes, count)

        initial = None if sums is None else lambda row, *strip: sums[0][place(row, *strip)]
        total = multiply_tile(
            tile,
            span.extents,
            plan.unroll,
            lambda row, at: self._element(
                self.contraction.left, panel.outer, first + row, span, span.step(at)
            ),
            lambda at, vector, count: right(span.step(at), vector, count),
            initial,
        )

        def write() -> None:
            self._epilogue.write(
                tile, total, panel.outer, first, panel.first, panel.columns, self._shift(panel)
            )

        def keep() -> None:
            assert sums is not None
            store_tile(tile, total, sums[0], place)

        if isinstance(finish, bool):
            (write if finish else keep)()
        else:
            emit.when(finish, write, keep)

    @cached_property
    def _epilogue(self) -> Epilogue:
        return Epilogue(self.contraction, self.columns.inner)

    # The column operand

    def _is_narrow(self, panel: _Panel) -> bool:
        return self.plan.packing is Packing.NONE and panel.columns < self.plan.lanes

    def _shift(self, panel: _Panel) -> int:
        in_place = self._copies_on_the_way or self.plan.packing is Packing.NONE
        return -panel.columns % self.plan.lanes if in_place and not self._is_narrow(panel) else 0

    def _in_place(self, panel: _Panel, span: _Span | None = None) -> _Columns:
        """Vectors of the operand itself. The last one may overlap the one before it."""
        lanes = panel.columns if self._is_narrow(panel) else self.plan.lanes
        right, within = self.contraction.right, span or self._whole

        def columns(step: _Step, position: int, count: int) -> Expr:
            first = panel.first + min(position * lanes, panel.columns - lanes)
            bound = panel.outer | self._k_bound(within, step)
            bound |= bind_group(self.columns.inner, first)
            *lead, last = (substitute(index, bound) for index in right.load.indices)
            return right.at(*lead, emit.ramp(last, count))

        return columns

    def _copying(self, panel: _Panel, packed: Buffer, span: _Span) -> _Columns:
        """Vectors of the operand itself, which are copied to a panel for later rows."""
        in_place, plan, dtype = self._in_place(panel, span), self.plan, self.contraction.dtype

        def columns(step: _Step, position: int, count: int) -> Expr:
            value = kept(in_place(step, position, count), count, dtype)
            to = span.flat(step) * plan.panel + position * plan.lanes
            emit.store(packed, value, [emit.ramp(to, count)])
            return value

        return columns

    def _stored(self, panel: _Panel, start: Expr) -> _Columns:
        """Vectors of an operand that is stored as panels, from a step of K on."""
        right, lanes = self.contraction.right, self.plan.lanes
        number = tirx.floordiv(panel.first, emit.i64(self.plan.panel))

        def columns(step: _Step, position: int, count: int) -> Expr:
            lane = emit.ramp(emit.i64(position * lanes), count)
            return right.at(number, start + step[1], lane)

        return columns

    def _packed(self, packed: Buffer, base: Expr, span: _Span) -> _Columns:
        plan = self.plan

        def columns(step: _Step, position: int, count: int) -> Expr:
            at = base + span.flat(step) * plan.panel + position * plan.lanes
            return packed[emit.ramp(at, count)]

        return columns

    def _k_bound(self, span: _Span, step: _Step) -> Bound:
        outer, inner = self._k_axes
        around = bind_group(outer, span.outer + step[0]) if outer else {}
        return around | bind_group(inner, span.start + step[1])

    def _element(self, operand: Operand, outer: Bound, mn: Expr, span: _Span, step: _Step) -> Expr:
        """The value of an operand in a row or column of the product, at a step of K."""
        bound = self._k_bound(span, step)
        return self.element_at(operand, outer, mn, bound)

    def _pack(self, item: Expr, packed: Buffer, base: Expr, span: _Span) -> None:
        """Copies a span of a panel: k-major, one row of vectors per step."""
        lanes, steps = self.plan.lanes, span.steps
        transposed = self.is_transposed and lanes & (lanes - 1) == 0
        if not transposed or not 1 < lanes <= steps:
            self._for_panel(item, lambda panel: self._pack_steps(panel, packed, base, span))
            return
        outer, first = self._outer(item)
        blocks, vectors = -(-steps // lanes), self.plan.vectors
        with emit.serial(span.outer_steps * blocks * vectors) as at:
            position, block, vector = emit.unfuse(at, [span.outer_steps, blocks, vectors])
            k = block * lanes
            if steps % lanes:  # the last steps are copied with some before them, again
                k = tirx.min(k, emit.i64(steps - lanes))
            step = (position, k)
            to = base + span.flat(step) * self.plan.panel + vector * lanes
            self._pack_transposed(outer, first + vector * lanes, packed, span, step, to)

    def _pack_steps(self, panel: _Panel, packed: Buffer, base: Expr, span: _Span) -> None:
        right, lanes = self.contraction.right, self.plan.lanes
        with emit.serial(span.outer_steps) as outer, emit.serial(span.steps) as k:
            row = base + span.flat((outer, k)) * self.plan.panel
            for position in range(panel.vectors):
                count = min(lanes, panel.columns - position * lanes)
                if count < lanes:  # what lay there could be subnormal, at which Intel's slow down
                    emit.clear(packed, row + position * lanes, lanes)
                with emit.lanes_loop(count) as lane:
                    offset = position * lanes + lane
                    column = panel.first + offset
                    value = self._element(right, panel.outer, column, span, (outer, k))
                    emit.store(packed, value, [row + offset])

    def _pack_transposed(
        self, outer: Bound, column: Expr, packed: Buffer, span: _Span, step: _Step, to: Expr
    ) -> None:
        """Packs ``lanes`` steps of a vector of columns that is contiguous along K."""
        right, lanes, dtype = self.contraction.right, self.plan.lanes, self.contraction.dtype
        square = emit.stack(lanes * lanes, dtype)
        ragged = self.shape.columns % self.plan.panel and not self._repeats_columns
        for row in range(lanes):
            at = column + row
            if ragged:  # columns that do not exist repeat the last one; nobody reads the products
                at = tirx.min(at, emit.i64(self.shape.columns - 1))
            with emit.vectorized(lanes) as lane:
                here = (step[0], step[1] + lane)
                value = self._element(right, outer, at, span, here)
                emit.store(square, value, [row * lanes + lane])
        transposed = transpose(square, lanes, dtype)
        for number in range(lanes):
            value = transposed[emit.ramp(number * lanes, lanes)]
            emit.store(packed, value, [emit.ramp(to + number * self.plan.panel, lanes)])


def _repeats_little(extent: int, size: int) -> bool:
    """Whether the last of many tiles may reach back into the one before it."""
    return extent > size and 0 < -extent % size <= extent // _REPEATED


def _is_one(around: Axis, within: Axis, strides: dict[Var, int]) -> bool:
    """Whether an operand moves along two axes as along a single one."""
    return strides[around.var] == strides[within.var] * within.extent


def _block_of(outer: int, inner: int, size: int) -> _Span:
    """The first of equal blocks of K of about ``size`` steps; unequal ones where none are.

    Args:
        outer: Positions along the outer axes of K.
        inner: Steps along the inner ones.
        size: Steps that a block may have.
    """
    if size >= inner:
        most = max(1, size // inner)
        return _Span(
            emit.i64(0), inner, outer_steps=max(n for n in range(1, most + 1) if outer % n == 0)
        )
    parts = -(-inner // size)
    equal = next((n for n in range(parts, 2 * parts) if inner % n == 0), None)
    return _Span(emit.i64(0), inner // equal if equal else size)


def _block_at(first: _Span, group: Expr, number: Expr) -> _Span:
    """A block of K, by its number along the outer axes and along the inner ones."""
    return replace(first, start=number * first.steps, outer=group * first.outer_steps)


def _match_panels(nest: Nest, model: CpuModel) -> tuple[GemmProblem, GemmPlan] | Refused:
    found = nest.once(gemm_of, model)
    if isinstance(found, Refused):
        return found
    panel = stored_panel(found)
    if not panel:
        return Refused("the column operand is not stored as panels")
    plan = plan_panels(found.shape, model, panel)
    return Refused("panels do not fit the registers") if plan is None else (found, plan)


def _match_in_place(nest: Nest, model: CpuModel) -> GemmProblem | Refused:
    found = nest.once(gemm_of, model)
    if isinstance(found, Refused):
        return found
    if not found.is_direct:
        return Refused("neighbouring columns of the column operand are not neighbours in memory")
    if not choose("gemm streams", wants_weight_streaming(found.shape, model), (True, False)):
        return Refused("rows are many, or the column operand fits the caches")
    return found


def _match_dot(nest: Nest, model: CpuModel) -> GemmProblem | Refused:
    found = nest.once(gemm_of, model)
    if isinstance(found, Refused) or found.wants_dots:
        return found
    return Refused("the column operand is not transposed, or rows are enough to repay packing it")


def _plan(found: GemmProblem, model: CpuModel) -> GemmPlan:
    return plan_gemm(found.shape, model, direct=found.is_direct)


def _emit(found: GemmProblem, plan: GemmPlan, writer: Writer[CpuModel]) -> None:
    contraction = found.contraction
    if found.shape.columns >= _MANY_PANELS * plan.panel:
        contraction = with_plain_left(contraction, writer.model)
    _Gemm(contraction, found.columns, plan, found.is_direct).write()


def _emit_panels(
    found: tuple[GemmProblem, GemmPlan], plan: GemmPlan, writer: Writer[CpuModel]
) -> None:
    _emit(found[0], plan, writer)


PANELS = Kernel(
    "gemm_packed_weight", _match_panels, _emit_panels,
    "matrix product with a weight that was packed into panels ahead",
    lambda found, _model: found[1],
    ("panel rows", "panel row block", "panel K block", "gemm unroll", "gemm rows first",
     "gemm parallel"),
)  # fmt: skip
DOT = Kernel(
    "gemm_dot", _match_dot, lambda found, _plan, writer: emit_dot_products(found, writer.model),
    "few rows times a transposed matrix: vectors along K, summed at the end",
)  # fmt: skip
STREAMED = Kernel(
    "gemv_streamed", _match_in_place,
    lambda found, _plan, writer: emit_weight_streaming(found, writer.model),
    "a row or two times a matrix larger than the caches, read in the order of memory",
    knobs=("gemm streams",),
)  # fmt: skip
GEMM = Kernel(
    "gemm", lambda nest, model: nest.once(gemm_of, model), _emit,
    "matrix product, register tiles over packed panels", _plan,
    ("gemm tile", "gemm K block", "gemm shared panels", "gemm row block", "gemm unroll",
     "gemm rows first", "gemm parallel"),
)  # fmt: skip
