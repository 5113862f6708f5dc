"""Convolution, directly on a rearranged copy of the input.

Blocking: the register tile holds several output channels times a few vectors of output positions:
vectors lie along the rows of the image, and a tile may span several rows when these are short. Per
tap and input channel the tile loads one vector per position vector (neighbouring positions are
neighbouring elements of the copy, for any stride) and broadcasts one weight per channel; weights
are read in place. Images, bands of rows and blocks of channels are divided among the workers.
Of bfloat16, both operands are copied in pairs of input channels, two of which an instruction
multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.conv.emitter import ConvPlan, ConvTiles
from tvmgraph.backend.cpu.kernels.conv.im2col import im2col_kernels
from tvmgraph.backend.cpu.kernels.conv.tiles import tiles_kernel
from tvmgraph.backend.cpu.kernels.conv.window import (
    Dimension,
    Window,
    find_convolution,
    lanes_along,
    rearrange,
)
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import dot_functions, pair, word, words_of
from tvmgraph.backend.cpu.kernels.gemm.plan import (
    MAX_IMBALANCE,
    MIN_PARALLEL_FLOPS,
    imbalance,
    in_tiles,
    step_cycles,
)
from tvmgraph.backend.cpu.kernels.gemm.vnni_packing import dot_type
from tvmgraph.backend.cpu.kernels.operands import emit_copy, with_left, with_plain_left
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.items import Split
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Axis, product, substitute
from tvmgraph.backend.loop_ir.types import Expr, Var
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
