"""Convolution, directly on a rearranged copy of the input.

Blocking: the register tile holds several output channels times a few vectors of output positions:
vectors lie along the rows of the image, and a tile may span several rows when these are short. Per
tap and input channel the tile loads one vector per position vector (neighbouring positions are
neighbouring elements of the copy, for any stride) and broadcasts one weight per channel; weights
are read in place. Images, bands of rows and blocks of channels are divided among the workers.
Of bfloat16, both operands are copied in pairs of input channels, see :mod:`.paired`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.tirx.script import builder as T

from tvmgraph.backend.cpu.kernels.conv.dot_packing import dot_axis, pack_for_dot
from tvmgraph.backend.cpu.kernels.conv.im2col import (
    Im2col,
    emit_im2col,
    emit_im2col_dot,
    is_fuller_as_product,
    only_deep,
    wants_im2col,
)
from tvmgraph.backend.cpu.kernels.conv.tiles import (
    TiledWindows,
    emit_tiled_windows,
    tiled_windows,
)
from tvmgraph.backend.cpu.kernels.conv.window import (
    Dimension,
    Rearranged,
    rearrange,
    window_dimensions,
)
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.bf16_dot import dot_functions
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue, Place
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile, multiply_tile
from tvmgraph.backend.cpu.kernels.gemm.plan import (
    MAX_IMBALANCE,
    MIN_PARALLEL_FLOPS,
    imbalance,
    step_cycles,
)
from tvmgraph.backend.cpu.kernels.product import contraction_of, padding_of, with_plain_left
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.program import Axis, Stage, product, substitute
from tvmgraph.backend.loop_ir.types import Expr
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Rows of the image up to this many eighths of a vector are joined to longer ones.
_NARROW = 3
#: Position vectors, and channels, of a tile: more only make the code longer.
_MAX_VECTORS, _MAX_CHANNELS = 8, 14


@dataclass(frozen=True)
class ConvPlan:
    """Shape of the kernel.

    Attributes:
        lanes: Elements of a vector.
        across: Vectors along a row.
        down: Rows of the image in a tile.
        channels: Output channels in a tile.
        channel_block: Output channels of one work item.
        parallel: Whether workers share the convolution.
    """

    lanes: int
    across: int
    down: int
    channels: int
    channel_block: int
    parallel: bool


@dataclass(frozen=True)
class _Shape:
    """Loops of a convolution: ``row`` runs down the image (None in one dimension)."""

    outer: tuple[Axis, ...]
    row: Axis | None
    column: Axis

    @property
    def height(self) -> int:
        return self.row.extent if self.row else 1


def _loops(contraction: Contraction, dimensions: Sequence[Dimension]) -> _Shape:
    windows = [d.axis for d in dimensions if d.tap is not None and d.axis is not None]
    column = windows[-1]
    row = windows[-2] if len(windows) > 1 else None
    rest = (*contraction.batch, *contraction.columns)
    return _Shape(tuple(a for a in rest if a is not column and a is not row), row, column)


def _plan_shape(contraction: Contraction, shape: _Shape, model: CpuModel) -> ConvPlan:
    lanes = model.lanes_of(dtype_bytes(contraction.dtype))
    while lanes > 4 and shape.column.extent <= lanes // 2:
        lanes //= 2
    channels = product(axis.extent for axis in contraction.rows)
    across = min(-(-shape.column.extent // lanes), 4)
    costs: dict[tuple[int, int], float] = {}
    for down in range(1, min(shape.height, _MAX_VECTORS // across) + 1):
        vectors = across * down
        limit = min(channels, (model.registers - 2 - vectors) // vectors, _MAX_CHANNELS)
        for rows in range(1, limit + 1):
            full, rest = divmod(channels, rows)
            cycles = full * step_cycles(rows, vectors, model)
            cycles += step_cycles(rest, vectors, model) if rest else 0
            cost = cycles * -(-shape.height // down)
            cost *= 1 + 0.02 * bool(rest) + 0.02 * bool(shape.height % down)
            costs[down, rows] = cost
    best = ranked(costs)
    down, rows = choose("conv tile", best[0], best)
    enough = contraction.flops >= MIN_PARALLEL_FLOPS
    parallel = model.threads > 1 and choose("conv parallel", enough, (True, False))
    segments = -(-shape.column.extent // (across * lanes))
    items = product(a.extent for a in shape.outer) * -(-shape.height // down) * segments
    block = channels
    while (
        parallel
        and block > rows
        and (imbalance(items * -(-channels // block), model.threads) > MAX_IMBALANCE)
    ):
        block = -(-block // 2 // rows) * rows
    return ConvPlan(lanes, across, down, rows, block, parallel)


@dataclass(frozen=True)
class _Conv:
    contraction: Contraction
    shape: _Shape
    plan: ConvPlan
    copy: Rearranged
    pairs: bool = False

    def write(self) -> None:
        plan, shape = self.plan, self.shape
        width = plan.across * plan.lanes
        channels = product(axis.extent for axis in self.contraction.rows)
        bands = -(-shape.height // plan.down)
        segments = -(-shape.column.extent // width)
        blocks = -(-channels // plan.channel_block)
        extents = [*(axis.extent for axis in shape.outer), blocks, bands, segments]
        with emit.parallel(product(extents), plan.parallel) as item:
            *outer, block, band, segment = emit.unfuse(item, extents)
            bound = {axis.var: value for axis, value in zip(shape.outer, outer)}

            def body(down: int, columns: int, count: int) -> None:
                first = block * plan.channel_block
                self._channels(
                    bound, first, count, (band * plan.down, down), (segment * width, columns)
                )

            emit.peel_last(
                (band, bands, plan.down, shape.height),
                lambda down: emit.peel_last(
                    (segment, segments, width, shape.column.extent),
                    lambda columns: emit.peel_last(
                        (block, blocks, plan.channel_block, channels),
                        lambda count: body(down, columns, count),
                    ),
                ),
            )

    def _channels(
        self, outer: Bound, first: Expr, count: int, rows: _Range, columns: _Range
    ) -> None:
        """All tiles of a work item: ``count`` channels for one band of positions."""
        step = self.plan.channels
        full, rest = divmod(count, step)
        if full > 1:
            with emit.serial(full) as block:
                self._tile(outer, first + block * step, step, rows, columns)
        elif full:
            self._tile(outer, first, step, rows, columns)
        if rest:
            self._tile(outer, first + full * step, rest, rows, columns)

    def _tile(
        self, outer: Bound, channel: Expr, channels: int, rows: _Range, columns: _Range
    ) -> None:
        lanes = self.plan.lanes
        across = -(-columns[1] // lanes)
        tile = Tile(channels, across * rows[1], lanes, self.contraction.dtype)

        def place(vector: int) -> Bound:
            down, right = divmod(vector, across)
            return outer | self._position(rows[0] + down, columns[0] + right * lanes)

        def weight(number: int, taps: Sequence[Expr]) -> Expr:
            bound = outer | self._taps(taps) | bind_group(self.contraction.rows, channel + number)
            return substitute(self.contraction.left.expr, bound)

        def pixels(taps: Sequence[Expr], vector: int, lanes: int) -> Expr:
            indices = self.copy.indices(place(vector) | self._taps(taps))
            indices[-1] = emit.ramp(indices[-1], lanes)
            return self.copy.buffer[tuple(indices)]

        depth = [axis.extent for axis in self.contraction.reduce]
        total = multiply_tile(tile, depth, 1, weight, pixels, pairs=self.pairs)
        epilogue = Epilogue(self.contraction, (self.shape.column,))
        epilogue.write_vectors(
            tile,
            total,
            lambda number: bind_group(self.contraction.rows, channel + number),
            [
                Place(place(v), columns[0] + at, min(lanes, columns[1] - at))
                for v in range(tile.vectors)
                for at in (v % across * lanes,)
            ],
        )

    def _position(self, row: Expr, column: Expr) -> Bound:
        bound: Bound = {self.shape.column.var: column}
        return bound | {self.shape.row.var: row} if self.shape.row else bound

    def _taps(self, values: Sequence[Expr]) -> Bound:
        return {axis.var: value for axis, value in zip(self.contraction.reduce, values)}


#: First index and number of indices.
_Range = tuple[Expr, int]


@dataclass(frozen=True)
class _Found:
    contraction: Contraction
    padding: Stage | None
    dimensions: list[Dimension]
    shape: _Shape


def _find(nest: Nest) -> _Found | Refused:
    contraction = contraction_of(nest)
    if isinstance(contraction, Refused):
        return contraction
    dimensions = window_dimensions(contraction, contraction.columns)
    if dimensions is None or not contraction.rows:
        return Refused("no window slides over its column operand")
    padding = padding_of(contraction, contraction.right)
    if isinstance(padding, Refused):
        return padding
    return _Found(contraction, padding, dimensions, _loops(contraction, dimensions))


def _match_im2col(nest: Nest, model: CpuModel) -> Im2col | Refused:
    found = nest.once(_find)
    if isinstance(found, Refused):
        return found
    product, width = found.contraction, found.shape.column.extent
    narrow = wants_im2col(product, width, _NARROW, model)
    if not narrow and not is_fuller_as_product(product, width, model):
        return Refused("rows of the image fill vectors, or their windows are too many to copy")
    return Im2col(nest, found.contraction, found.padding, by_taps=True)


def _match_tiles(nest: Nest, model: CpuModel) -> TiledWindows | Refused:
    found = nest.once(_find)
    if isinstance(found, Refused):
        return found
    return tiled_windows(TiledWindows(found.contraction, found.padding, by_taps=True), model)


def _match_vnni(nest: Nest, _model: CpuModel) -> _Found | Refused:
    found = nest.once(_find)
    if isinstance(found, Refused):
        return found
    if dot_axis(found.contraction, found.dimensions) is None:
        return Refused("no convolution of bfloat16 with an axis of input channels")
    return found


def _plan(found: _Found, model: CpuModel) -> ConvPlan:
    return _plan_shape(found.contraction, found.shape, model)


def _emit_vnni(found: _Found, plan: ConvPlan, writer: Writer[CpuModel]) -> None:
    channel = dot_axis(found.contraction, found.dimensions)
    assert channel is not None
    slack, model = -found.shape.column.extent % plan.lanes, writer.model
    contraction, copy = pack_for_dot(
        found.contraction, found.dimensions, found.padding, slack, channel, model
    )
    with T.attr(0, "pragma_import_llvm", dot_functions(plan.lanes, model)):
        _Conv(contraction, found.shape, plan, copy, pairs=True).write()


def _emit(found: _Found, plan: ConvPlan, writer: Writer[CpuModel]) -> None:
    slack = -found.shape.column.extent % plan.lanes
    copy, stage = rearrange(found.contraction, found.dimensions, found.padding, slack)
    emit_injective(stage, writer.model)
    _Conv(with_plain_left(found.contraction, writer.model), found.shape, plan, copy).write()


_KNOBS = ("conv tile", "conv parallel")
TILES = Kernel(
    "conv_tiles", _match_tiles, emit_tiled_windows,
    "convolution of bfloat16: windows are copied, and tiles (AMX) multiplied",
)  # fmt: skip
IM2COL_DOT = Kernel(
    "conv_im2col_dot", only_deep(_match_im2col), emit_im2col_dot,
    "convolution with long sums at few positions: windows are copied, vectors along the sums",
)  # fmt: skip
IM2COL = Kernel(
    "conv_im2col", _match_im2col, emit_im2col,
    "convolution of a narrow image: windows are copied, and a matrix product runs over them",
)  # fmt: skip
DIRECT_VNNI = Kernel(
    "conv_direct_vnni", _match_vnni, _emit_vnni,
    "convolution of bfloat16, dot products of pairs of input channels", _plan, _KNOBS,
)  # fmt: skip
DIRECT = Kernel(
    "conv_direct", lambda nest, _model: nest.once(_find), _emit,
    "convolution, vectors along rows of the image", _plan, _KNOBS,
)  # fmt: skip
