"""Convolutions of bfloat16, and the gradients of their weights, on tiles of registers (AMX).

Rows of the padded image are read in place where they fill tiles well. Windows of narrower images
are copied, in bfloat16, one line per (input channel, tap) with the positions of all images in it,
and a product of tiles runs over the lines: it is so much faster than other products that the copy
pays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.emitter import vector_at
from tvmgraph.backend.cpu.kernels.conv.window import Window, rearrange
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.amx import emit_tiles
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import word, words_of
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import (
    LANES,
    VNNI_SIZES,
    PackedOperands,
    dot_type,
)
from tvmgraph.backend.cpu.kernels.operands import emit_copy
from tvmgraph.backend.loop_ir import emit, program
from tvmgraph.backend.loop_ir.access import group_extent
from tvmgraph.backend.loop_ir.columns import Columns, runs_on, split_columns
from tvmgraph.backend.loop_ir.contraction import Contraction, Operand, operand_of
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

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

    return Kernel(name, match, _emit, f"{what}: tiles (AMX) of rows or copied windows")


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


def _emit(found: Window, _plan: None, writer: Writer[CpuModel]) -> None:
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
