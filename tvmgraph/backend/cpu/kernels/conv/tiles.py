"""Convolutions of bfloat16, and the gradients of their weights, on tiles of registers (AMX).

All windows are copied, in bfloat16, one line per (input channel, tap) with the positions of all
images in it, and a product of tiles runs over the lines: it is so much faster than other products
that the copy pays for images of any width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.emitter import vector_at
from tvmgraph.backend.cpu.kernels.conv.window import Window, rearrange
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.amx import emit_tiles
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import as_words, word
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import PackedOperands, dot_type
from tvmgraph.backend.cpu.kernels.product import emit_copy
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.columns import gemm_shape, runs_on, split_columns
from tvmgraph.backend.loop_ir.contraction import Contraction, operand_of
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.program import Axis, product, static_shape, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

_DTYPE, _ITEM_BYTES = "bfloat16", 2
#: Bytes of the copy at most, and rows and columns of the product from which on it pays.
_MAX_BYTES, _MIN_ROWS, _MIN_COLUMNS = 128 << 20, 8, 16
#: Elements that are copied at once at most.
_MAX_LANES = 32


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

    return Kernel(name, match, _emit, f"{what}: windows are copied, and tiles (AMX) multiplied")


def _wanted(found: Window, model: CpuModel) -> Window | Refused:
    """What was found, if tiles multiply it and the copy pays."""
    contraction = found.contraction
    rows, columns, depth = (
        _extent(axes) for axes in (contraction.rows, contraction.columns, contraction.reduce)
    )
    if _DTYPE not in model.tile_types or dot_type(contraction) != _DTYPE or contraction.batch:
        return Refused("no convolution of bfloat16 without groups, or a processor without tiles")
    if found.dimensions[-1].axis is not found.positions[-1]:
        return Refused("the innermost axis is no row of the image")
    if rows < _MIN_ROWS or columns < _MIN_COLUMNS or columns * depth * _ITEM_BYTES > _MAX_BYTES:
        return Refused("too few channels or positions for tiles, or too many windows to copy")
    return found


def _emit(found: Window, _plan: None, writer: Writer[CpuModel]) -> None:
    """Copies windows, and whatever does not lie in lines already, and multiplies tiles."""
    old, model = found.contraction, writer.model
    k = Axis(tirx.Var("k", "int64"), _extent(old.reduce))
    new = replace(old, reduce=(k,), before=())
    column, row, width = _place(old.columns), _place(old.rows), _extent(old.columns)
    left = _in_lines(old, model)
    right = _windows(found, old.reduce if found.by_taps else old.columns, model)
    at = k.var * width + column if found.by_taps else column * k.extent + k.var
    loads = left[row * k.extent + k.var], right[at]
    factors = [operand_of(tirx.Cast(old.dtype, load), load, new.axes) for load in loads]
    new = replace(new, left=factors[0], right=factors[1])
    columns = split_columns(new)
    emit_tiles(PackedOperands(new, columns, gemm_shape(new, columns), _DTYPE), model)


def _extent(axes: Sequence[Axis]) -> int:
    return product(axis.extent for axis in axes)


def _place(axes: Sequence[Axis]) -> Expr:
    """The position of an element of a dense array with some axes."""
    place: Expr = emit.i64(0)
    for axis in axes:
        place = place * axis.extent + axis.var
    return place


def _in_lines(contraction: Contraction, model: CpuModel) -> Buffer:
    """The left operand as a dense array of rows."""
    left, axes = contraction.left, (*contraction.rows, *contraction.reduce)
    strides, shape = contraction.strides(left), static_shape(left.load.source) or ()
    if strides and runs_on(axes, strides) and product(shape) == _extent(axes):
        return emit.flat(left.load.source)
    copy = emit_copy(lambda at: word(substitute(left.load, at)), axes, model)
    return emit.flat(copy.source)


def _windows(found: Window, lines: Sequence[Axis], model: CpuModel) -> Buffer:
    """The windows, a line with all positions for every value of the axes ``lines``.

    Whole vectors are copied from rows of the padded image. What they hold beyond the end of a row
    is where the next row of positions comes to lie after it.
    """
    source, padding = found.contraction.right.load.source, found.padding
    read: Callable[..., Expr] = lambda *at: word(source[at])  # noqa: E731
    if padding:
        words, padding = as_words(padding)
        read = lambda *at: words[at]  # noqa: E731
    *outer, along = found.positions
    width, rows = along.extent, _extent(outer)
    lanes = min(_MAX_LANES, 1 << (width - 1).bit_length())
    slack = -width % lanes
    copied, stage = rearrange(replace(found, padding=padding), slack, read)
    emit_injective(stage, model)
    buffer = emit.workspace([_extent(lines) * rows * width], "uint16")
    exact = min(rows, -(-slack // width))  # after these rows there are none of the same line

    def copy_row(bound: Bound, base: Expr, count: int) -> None:
        for at in range(0, width, lanes):
            taken = min(lanes, count - at)
            value = vector_at(copied.right.load, bound | {along.var: emit.i64(at)}, taken)
            emit.store(buffer, value, [emit.ramp(base + at, taken)])

    pieces = ((0, rows - exact, width + slack), (rows - exact, exact, width))
    with emit.parallel(_extent(lines), model.threads > 1) as line:
        for first, number, count in pieces:
            if number:
                with emit.serial(number) as row:
                    bound = bind_group(lines, line) | bind_group(outer, row + first)
                    copy_row(bound, (line * rows + row + first) * width, count)
    return buffer
