"""Convolution, directly on a rearranged copy of the input.

Blocking: the register tile holds several output channels times a few vectors of output positions:
vectors lie along the rows of the image, and a tile may span several rows when these are short. Per
tap and input channel the tile loads one vector per position vector (neighbouring positions are
neighbouring elements of the copy, for any stride) and broadcasts one weight per channel; weights
are read in place. Images, bands of rows and blocks of channels are divided among the workers.
Of bfloat16, both operands are copied in pairs of input channels, two of which an instruction
multiplies.

Convolutions of bfloat16, and the gradients of their weights, on tiles of registers (AMX).

Rows of the padded image are read in place where they fill tiles well. Windows of narrower images
are copied, in bfloat16, one line per (input channel, tap) with the positions of all images in it,
and a product of tiles runs over the lines: it is so much faster than other products that the copy
pays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.conv.emitter import ConvPlan, ConvTiles, vector_at
from tvmgraph.backend.cpu.kernels.conv.im2col import im2col_kernels
from tvmgraph.backend.cpu.kernels.conv.window import (
    Dimension,
    Window,
    find_convolution,
    lanes_along,
    rearrange,
)
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.amx import emit_tiles
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import dot_functions, pair, word, words_of
from tvmgraph.backend.cpu.kernels.gemm.plan import (
    MAX_IMBALANCE,
    MIN_PARALLEL_FLOPS,
    imbalance,
    in_tiles,
    step_cycles,
)
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import (
    LANES,
    VNNI_SIZES,
    PackedOperands,
    dot_type,
)
from tvmgraph.backend.cpu.kernels.operands import emit_copy, with_left, with_plain_left
from tvmgraph.backend.loop_ir import emit, program
from tvmgraph.backend.loop_ir.access import group_extent
from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.loop_ir.columns import Columns, runs_on, split_columns
from tvmgraph.backend.loop_ir.contraction import Contraction, Operand, operand_of
from tvmgraph.backend.loop_ir.items import Split
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.program import Axis, product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Rows of the image up to this many eighths of a vector are joined to longer ones.
_NARROW = 3
#: Position vectors, and channels, of a tile: more only make the code longer.
_MAX_VECTORS, _MAX_CHANNELS = 8, 14


def _plan(found: Window, model: CpuModel) -> ConvPlan:
    contraction, width = found.contraction, found.column.extent
    height = found.row.extent if found.row else 1
    lanes = lanes_along(width, contraction.dtype, model)
    _, channels, _, _ = contraction.extents
    row_vectors = min(-(-width // lanes), 4)
    costs: dict[tuple[int, int], float] = {}
    for tile_h in range(1, min(height, _MAX_VECTORS // row_vectors) + 1):
        vectors = row_vectors * tile_h
        limit = min(channels, (model.registers - 2 - vectors) // vectors, _MAX_CHANNELS)
        for rows in range(1, limit + 1):
            cycles = in_tiles(channels, rows, lambda n, v=vectors: step_cycles(n, v, model))
            cost = cycles * -(-height // tile_h)
            cost *= 1 + 0.02 * bool(channels % rows) + 0.02 * bool(height % tile_h)
            costs[tile_h, rows] = cost
    best = ranked(costs)
    tile_h, rows = choose("conv tile", best[0], best)
    enough = contraction.flops >= MIN_PARALLEL_FLOPS
    parallel = model.threads > 1 and choose("conv parallel", enough, (True, False))
    columns = Split(width, row_vectors * lanes, row_vectors * lanes)
    bands = Split(height, tile_h, tile_h)
    outer = product(a.extent for a in (*contraction.batch, *contraction.columns))
    items = outer // (height * width) * bands.items * columns.items
    block = channels
    while (
        parallel
        and block > rows
        and (imbalance(items * -(-channels // block), model.threads) > MAX_IMBALANCE)
    ):
        block = -(-block // 2 // rows) * rows
    return ConvPlan(lanes, Split(channels, block, rows), bands, columns, parallel)


def _dot_axis(found: Window) -> Axis | None:
    """The axis of the input channels, where pairs of them can be multiplied."""
    if dot_type(found.contraction) != "bfloat16":
        return None
    alone = [d.axis for d in found.dimensions if d.axis and not d.tap and d.index is None]
    axes = [axis for axis in found.contraction.reduce if any(axis is each for each in alone)]
    return axes[0] if len(axes) == 1 and axes[0].extent > 1 else None


def _match_vnni(nest: Nest, _model: CpuModel) -> Window | Refused:
    found = nest.once(find_convolution)
    if isinstance(found, Refused) or _dot_axis(found):
        return found
    return Refused("no convolution of bfloat16 with an axis of input channels")


def _emit_vnni(found: Window, plan: ConvPlan, writer: Writer[CpuModel]) -> None:
    packed = _pack_for_dot(found, -found.column.extent % plan.lanes, writer.model)
    with T.attr(0, "pragma_import_llvm", dot_functions(plan.lanes, writer.model)):
        ConvTiles(packed, plan, found.row, found.column, words=True).write()


def _pack_for_dot(found: Window, slack: int, model: CpuModel) -> Contraction:
    """Writes both operands in pairs of neighbouring input channels, and returns their convolution.

    A pair is a number of 32 bits; an odd number of channels is filled up with 0.
    """
    contraction, channel = found.contraction, _dot_axis(found)
    assert channel is not None
    pairs = Axis(tirx.Var("pair", "int64"), -(-channel.extent // 2))
    read, padding = words_of(contraction.right.load.source, found.padding)
    place = next(i for i, d in enumerate(found.dimensions) if d.axis is channel)

    def element(*at: Expr) -> Expr:
        def member(number: Expr) -> Expr:
            return read(*at[:place], number, *at[place + 1 :])

        return _members(member, at[place], channel.extent)

    halved = [Dimension(pairs.extent, pairs) if d.axis is channel else d for d in found.dimensions]
    reduce = tuple(pairs if axis is channel else axis for axis in contraction.reduce)
    contraction = replace(contraction, reduce=reduce)
    copied, stage = rearrange(
        replace(found, contraction=contraction, padding=padding, dimensions=halved), slack, element
    )
    emit_injective(stage, model)

    def weights(bound: dict[Var, Expr]) -> Expr:
        load = contraction.left.load

        def member(number: Expr) -> Expr:
            there = bound | {channel.var: number}
            return word(load.source[tuple(substitute(index, there) for index in load.indices)])

        return _members(member, bound[pairs.var], channel.extent)

    axes = (*copied.batch, *copied.rows, *copied.reduce)
    return with_left(copied, emit_copy(weights, axes, model))


def _members(member: Callable[[Expr], Expr], number: Expr, extent: int) -> Expr:
    """A pair of the members ``2 * number`` and the next one, if that exists."""
    first, second = number * 2, number * 2 + 1
    if extent % 2 == 0:
        return pair(member(first), member(second))
    there = member(tirx.min(second, emit.i64(extent - 1)))
    zero = tirx.const(0, "uint16")
    return pair(member(first), tirx.Select(second < extent, there, zero))


def _emit(found: Window, plan: ConvPlan, writer: Writer[CpuModel]) -> None:
    slack = -found.column.extent % plan.lanes
    copied, stage = rearrange(found, slack)
    emit_injective(stage, writer.model)
    copied = with_plain_left(copied, writer.model)
    ConvTiles(copied, plan, found.row, found.column).write()


# ---- tiles --------------------------------------------------------------------------------------


_DTYPE, _ITEM_BYTES = "bfloat16", 2
#: Bytes of the copy at most, and rows and columns of the product from which on it pays.
_MAX_BYTES, _MIN_ROWS, _MIN_COLUMNS = 128 << 20, 8, 16
#: Elements that are copied at once at most.
_MAX_LANES = 32
#: Share of a tile that positions of a row must fill, so that windows are not copied.
_MIN_FULL = 0.5


def tiles_kernel(
    name: str, what: str, find: Callable[[Nest], Window | Refused]
) -> Kernel[CpuModel]:
    """The kernel for convolutions, or for gradients of weights.

    Args:
        name: Its name.
        what: What it is for.
        find: Finds the convolution, or the gradient of weights.
    """

    def match(nest: Nest, model: CpuModel) -> Window | Refused:
        found = nest.once(find)
        return found if isinstance(found, Refused) else _wanted(found, model)

    return Kernel(name, match, _emit_tiles, f"{what}: tiles (AMX) of rows or copied windows")


def _wanted(found: Window, model: CpuModel) -> Window | Refused:
    """What was found, if tiles multiply it and the copy pays."""
    contraction = found.contraction
    _, rows, columns, k_size = contraction.extents
    if _DTYPE not in model.tile_types or dot_type(contraction) != _DTYPE or contraction.batch:
        return Refused("no convolution of bfloat16 without groups, or a processor without tiles")
    if found.dimensions[-1].axis is not found.positions[-1]:
        return Refused("the innermost axis is no row of the image")
    fits = _in_rows(found) or columns * k_size * _ITEM_BYTES <= _MAX_BYTES
    if rows < _MIN_ROWS or columns < _MIN_COLUMNS or not fits:
        return Refused("too few channels or positions for tiles, or too many windows to copy")
    return found


def _slack(found: Window) -> int:
    """Positions that fill a row up, to whole tiles or whole steps of K of a tile."""
    return -found.positions[-1].extent % (LANES if found.by_taps else LANES * VNNI_SIZES[_DTYPE])


def _in_rows(found: Window) -> bool:
    """Whether rows are long enough to be read in place, filled up, instead of copied."""
    width = found.positions[-1].extent
    return width >= _MIN_FULL * (width + _slack(found))


def _emit_tiles(found: Window, _plan: None, writer: Writer[CpuModel]) -> None:
    """Copies whatever does not lie in lines already, and multiplies tiles."""
    if _in_rows(found):
        _emit_rows(found, writer.model)
    else:
        _emit_windows(found, writer.model)


def _emit_windows(found: Window, model: CpuModel) -> None:
    """Multiplies copies of the windows."""
    old = found.contraction
    k = program.Axis(tirx.Var("k", "int64"), group_extent(old.reduce))
    left = _in_lines(old, 0, model)
    windows = _windows(found, old.reduce if found.by_taps else old.columns, model)
    place = _place((k, *old.columns) if found.by_taps else (*old.columns, k))
    new = _product(old, k, left[_place((*old.rows, k))], windows[place])
    emit_tiles(PackedOperands(new, split_columns(new), _DTYPE), model)


def _emit_rows(found: Window, model: CpuModel) -> None:
    """Multiplies rows of the image, for gradients of weights image by image if they are large."""
    old, slack, reduce = found.contraction, _slack(found), found.contraction.reduce
    filled = 0 if found.by_taps else slack
    *outer, along = reduce
    reduce = (*outer, program.Axis(along.var, along.extent + filled))
    left, pixel = _in_lines(old, filled, model), _image(found, slack, model)

    def rows_of_image(target: Contraction, part: Bound, steps: Sequence[program.Axis]) -> None:
        k = program.Axis(tirx.Var("k", "int64"), group_extent(steps))
        at = part | bind_group(steps, k.var)
        row = program.substitute(_place((*old.rows, *reduce)), at)
        indices = tuple(program.substitute(index, at) for index in pixel.indices)
        new = _product(target, k, left[row], pixel.source[indices])
        kind, columns = _StepsOfImage, split_columns(new)
        if found.by_taps:
            kind, columns = _ColumnsOfImage, Columns(new.columns[:-1], new.columns[-1:])
        emit_tiles(kind(new, columns, _DTYPE), model)

    images = reduce[0]
    large = group_extent((*old.rows, *reduce)) * _ITEM_BYTES > model.l2_bytes // 2
    if found.by_taps or not large or not outer or old.epilogue.lets:
        rows_of_image(old, {}, reduce)
        return
    partial, finish = _accumulated(old, model)
    with emit.serial(images.extent) as image:
        rows_of_image(partial, {images.var: image}, reduce[1:])
    emit_injective(finish, model)


def _product(contraction: Contraction, k: program.Axis, left: Load, right: Load) -> Contraction:
    """The sums over one axis of other operands."""
    new = replace(contraction, reduce=(k,), before=())
    factors = [operand_of(tirx.Cast(new.dtype, load), load, new.axes) for load in (left, right)]
    return replace(new, left=factors[0], right=factors[1])


def _accumulated(contraction: Contraction, model: CpuModel) -> tuple[Contraction, program.Stage]:
    """The contraction that adds to sums in memory, which are 0 first, and what ends them."""
    stage, sums = contraction.epilogue, contraction.sums
    own = next(load for load in stage.loads if load.source.same_as(sums))
    total = emit.workspace(program.static_shape(sums) or (), contraction.dtype)
    indices, zero = tuple(own.indices), emit.zero(contraction.dtype)
    at = total[indices]
    to_total = replace(stage, buffers=(total,), indices=indices)
    emit_injective(replace(to_total, values=(zero,)), model)

    def visit(load: Load) -> Expr:
        return at if load.source.same_as(sums) else load

    finish = replace(stage, values=tuple(program.map_loads(value, visit) for value in stage.values))
    return replace(contraction, epilogue=replace(to_total, values=(at + own,))), finish


class _StepsOfImage(PackedOperands):
    """Operands of which K goes through rows of the image."""

    def runs_along_k(self, operand: Operand) -> bool:
        """See there."""
        return operand is self.contraction.right or super().runs_along_k(operand)


class _ColumnsOfImage(PackedOperands):
    """Operands whose columns are positions of a row of the image, which goes on after the last."""

    def runs_along_k(self, operand: Operand) -> bool:
        """See there."""
        return operand is not self.contraction.right and super().runs_along_k(operand)

    @property
    def shift(self) -> int:
        """None repeats another."""
        return 0

    def _clamped(self, column: Expr) -> Expr:
        return column


def _place(axes: Sequence[program.Axis]) -> Expr:
    """The position of an element of a dense array with some axes."""
    place: Expr = emit.i64(0)
    for axis in axes:
        place = place * axis.extent + axis.var
    return place


def _in_lines(contraction: Contraction, slack: int, model: CpuModel) -> Buffer:
    """The left operand as a dense array of rows, with so many zeros after the last axis."""
    left, axes = contraction.left, (*contraction.rows, *contraction.reduce)
    strides, shape = contraction.strides(left), program.static_shape(left.load.source) or ()
    whole = not slack and program.product(shape) == group_extent(axes)
    if whole and strides and runs_on(axes, strides):
        return emit.flat(left.load.source)
    copy = emit_copy(lambda at: word(program.substitute(left.load, at)), axes, model, slack)
    return emit.flat(copy.source)


def _image(found: Window, slack: int, model: CpuModel) -> Load:
    """A pixel of a copy of the padded image, with so many more elements at the end of rows."""
    read, padding = words_of(found.contraction.right.load.source, found.padding)
    copied, stage = rearrange(replace(found, padding=padding), slack, read)
    emit_injective(stage, model)
    return copied.right.load


def _windows(found: Window, lines: Sequence[program.Axis], model: CpuModel) -> Buffer:
    """The windows, a line with all positions for every value of the axes ``lines``.

    Whole vectors are copied from rows of the padded image. What they hold beyond the end of a row
    is where the next row of positions comes to lie after it.
    """
    *outer, along = found.positions
    width, rows = along.extent, group_extent(outer)
    lanes = min(_MAX_LANES, 1 << (width - 1).bit_length())
    slack = -width % lanes
    pixel = _image(found, slack, model)
    buffer = emit.workspace([group_extent(lines) * rows * width], "uint16")
    exact = min(rows, -(-slack // width))  # after these rows there are none of the same line

    def copy_row(bound: Bound, base: Expr, count: int) -> None:
        for at in range(0, width, lanes):
            taken = min(lanes, count - at)
            value = vector_at(pixel, bound | {along.var: emit.i64(at)}, taken)
            emit.store(buffer, value, [emit.ramp(base + at, taken)])

    segments = ((0, rows - exact, width + slack), (rows - exact, exact, width))
    with emit.parallel(group_extent(lines), model.threads > 1) as line:
        for first, number, count in segments:
            if number:
                with emit.serial(number) as row:
                    bound = bind_group(lines, line) | bind_group(outer, row + first)
                    copy_row(bound, (line * rows + row + first) * width, count)
    return buffer


_KNOBS = ("conv tile", "conv parallel")
TILES = tiles_kernel("conv_tiles", "convolution of bfloat16", find_convolution)
IM2COL_DOT, IM2COL = im2col_kernels(
    "conv_im2col", "convolution", find_convolution, _NARROW, fuller=True
)
DIRECT_VNNI = Kernel(
    "conv_direct_vnni", _match_vnni, _emit_vnni,
    "convolution of bfloat16, dot products of pairs of input channels", _plan, _KNOBS,
)  # fmt: skip
DIRECT = Kernel(
    "conv_direct", lambda nest, _model: nest.once(find_convolution), _emit,
    "convolution, vectors along rows of the image", _plan, _KNOBS,
)  # fmt: skip
