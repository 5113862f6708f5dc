"""The gradient of a convolution's weights: sums over images and positions of ``grad * input``.

Where the output channels fill vectors, those run along them, see :mod:`.channel_gradient`; images
too narrow for vectors become matrix products, see :mod:`.narrow`. The kernel of this module is for
the rest. The result is small and the sums are long, so vectors run along the summed positions of a
row of the image, where both operands are contiguous once the input has been rearranged. A tile
keeps the partial sums of a few output channels times a few (input channel, tap) pairs in registers.
Bands of rows of the images come one after the other: they stay in the cache while all tiles of a
work item pass over them, with the partial sums of the tiles in memory in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.channel_gradient import emit_channel_gradient, wants_channels
from tvmgraph.backend.cpu.kernels.conv.im2col import (
    Im2col,
    emit_im2col,
    emit_im2col_dot,
    only_deep,
    wants_im2col,
)
from tvmgraph.backend.cpu.kernels.conv.image_axis import unguarded
from tvmgraph.backend.cpu.kernels.conv.tiles import (
    TiledWindows,
    emit_tiled_windows,
    tiled_windows,
)
from tvmgraph.backend.cpu.kernels.conv.window import Rearranged, rearrange, window_dimensions
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import sum_each
from tvmgraph.backend.cpu.kernels.gemm.plan import MIN_PARALLEL_FLOPS
from tvmgraph.backend.cpu.kernels.product import contraction_of, padding_of
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.columns import split_columns
from tvmgraph.backend.loop_ir.contraction import Contraction, operand_of
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.program import (
    Axis,
    Stage,
    is_choice,
    product,
    static_shape,
    substitute,
)
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Rows of the image up to this many eighths of a vector are joined to longer ones.
_NARROW = 4
#: Output channels of a tile, and (input channel, tap) pairs where registers hold so many sums.
_TILE_ROWS, _MAX_TILE_COLUMNS = 4, 4
#: Vectors along the sums between two passes over the partial sums, at least.
_MIN_BAND = 16
#: Tiles of one work item at most: their partial sums take part of the second-level cache.
_MAX_TILES = 64


def _is_weight_gradient(contraction: Contraction) -> bool:
    """Whether the sums run over more window positions than there are taps.

    The result of a convolution of images smaller than the window would be one as well, were its
    columns, images and positions, not apart in memory.
    """
    dimensions = window_dimensions(contraction, contraction.reduce)
    if dimensions is None or not contraction.rows:
        return False
    last = dimensions[-1]
    if last.axis is None or last.tap is None or not contraction.left.is_direct:
        return False
    strides = contraction.strides(contraction.left)
    along = last.axis.extent > last.tap.extent and not split_columns(contraction).outer
    return along and strides is not None and strides[last.axis.var] == 1


def _widened(contraction: Contraction, padding: Stage | None, model: CpuModel) -> Contraction:
    """Writes the input, padded, in the type of the sums; returns the contraction that reads it."""
    right, dtype = contraction.right, contraction.dtype
    copy = emit.workspace(static_shape(right.load.source) or (), dtype)
    if padding is None:
        axes = tuple(Axis(tirx.Var("at", "int64"), int(extent)) for extent in copy.shape)
        at = tuple(axis.var for axis in axes)
        padding = Stage("widen", axes, (), (copy,), at, (right.load.source[at],), None)
    value = padding.value
    wide = tirx.Cast(dtype, unguarded(value))
    if is_choice(value):
        wide = tirx.if_then_else(value.args[0], wide, emit.zero(dtype))
    emit_injective(replace(padding, buffers=(copy,), values=(wide,)), model)
    load = copy[tuple(right.load.indices)]
    return replace(contraction, right=operand_of(load, load, contraction.axes))


def _padded_rows(
    contraction: Contraction, order: Sequence[Axis], slack: int
) -> tuple[Buffer, Stage]:
    """A copy of the left operand, rows first, whose innermost axis is filled up with zeros."""
    fresh = [Axis(tirx.Var("at", "int64"), axis.extent) for axis in order]
    fresh[-1] = Axis(fresh[-1].var, order[-1].extent + slack)
    buffer = emit.workspace([axis.extent for axis in fresh], contraction.dtype)
    mapping: dict[Var, Expr] = {old.var: new.var for old, new in zip(order, fresh)}
    value = substitute(contraction.left.expr, mapping)
    if slack:
        inside = fresh[-1].var < emit.i64(order[-1].extent)
        value = tirx.if_then_else(inside, value, emit.zero(contraction.dtype))
    indices = tuple(axis.var for axis in fresh)
    return buffer, Stage("pad_rows", tuple(fresh), (), (buffer,), indices, (value,), None)


#: Length and first index.
_Loop = tuple[int, Expr | int]


@dataclass(frozen=True)
class _WeightGradient:
    """The kernel.

    Attributes:
        contraction: What is computed.
        copy: The rearranged input.
        grad: The other operand: batch, row and summed axes, the last filled up to whole vectors.
        summed: The summed axes in that order.
        lanes: Elements of a vector.
        model: The processor.
    """

    contraction: Contraction
    copy: Rearranged
    grad: Buffer
    summed: Sequence[Axis]
    lanes: int
    model: CpuModel

    def write(self) -> None:
        """Writes the loops over work items: a block of rows times several blocks of columns."""
        rows, columns = self._extents()
        row_blocks, column_blocks = -(-rows // _TILE_ROWS), -(-columns // self._tile_columns)
        groups = [axis.extent for axis in self.contraction.batch]
        wanted = -(-2 * self.model.threads // (row_blocks * product(groups)))
        tiles = max(1, min(_MAX_TILES, column_blocks // wanted))
        pieces = -(-column_blocks // tiles)
        parallel = self.contraction.flops >= MIN_PARALLEL_FLOPS and self.model.threads > 1
        extents = [*groups, row_blocks, pieces]
        with emit.parallel(product(extents), parallel) as item:
            *group, block, piece = emit.unfuse(item, extents)
            self._item(group, block * _TILE_ROWS, piece * tiles, tiles)

    @property
    def _tile_columns(self) -> int:
        """Pairs of a tile: registers hold its sums, a factor per pair and one of a channel."""
        columns = _MAX_TILE_COLUMNS
        while columns > 1 and (_TILE_ROWS + 1) * columns + 1 >= self.model.registers:
            columns //= 2
        return columns

    def _extents(self) -> tuple[int, int]:
        rows = product(axis.extent for axis in self.contraction.rows)
        return rows, product(axis.extent for axis in self.contraction.columns)

    def _item(self, group: Sequence[Expr], row: Expr, first: Expr, tiles: int) -> None:
        """One block of rows times ``tiles`` blocks of columns, of one group of channels."""
        size = _TILE_ROWS * self._tile_columns * self.lanes
        sums = emit.workspace([tiles * size], self.contraction.dtype)
        with emit.serial(tiles * size // self.lanes) as at:
            zeros = emit.broadcast(emit.zero(self.contraction.dtype), self.lanes)
            emit.store(sums, zeros, [emit.ramp(at * self.lanes, self.lanes)])
        images, inner = [axis.extent for axis in self.summed[:-2]], self.summed[-2:]
        band = self._band(inner)
        bands = inner[0].extent // band
        with emit.serial(product(images) * bands) as part, emit.serial(tiles) as tile:
            lead = emit.unfuse(part // bands, images)
            loops: list[_Loop] = [(axis.extent, 0) for axis in inner]
            if bands > 1:
                loops[0] = band, part % bands * band
            column = (first + tile) * self._tile_columns
            self._accumulate(group, row, column, lead, loops, sums, tile * size)
        with emit.serial(tiles) as tile:
            self._finish(group, row, (first + tile) * self._tile_columns, sums, tile * size)

    def _band(self, loops: Sequence[Axis]) -> int:
        """Iterations of the first loop over an image during which all tiles of a work item pass:
        the rows of the left operand stay in the first-level cache meanwhile."""
        extent, inner = loops[0].extent, product(axis.extent for axis in loops[1:])
        if len(loops) == 1:
            return extent
        line = _TILE_ROWS * inner * dtype_bytes(self.contraction.dtype)
        fitting = (n for n in range(extent, 0, -1) if extent % n == 0)
        band = next((n for n in fitting if n * line <= self.model.l1_bytes // 2), 1)
        return band if band * inner >= _MIN_BAND * self.lanes else extent

    def _accumulate(
        self,
        group: Sequence[Expr],
        row: Expr,
        column: Expr,
        lead: Sequence[Expr],
        loops: Sequence[_Loop],
        sums: Buffer,
        base: Expr,
    ) -> None:
        """Adds part of an image to the partial sums of a tile.

        Args:
            group: The group of channels, if there are several.
            row: The first row of the tile.
            column: Its first column.
            lead: The image, if there are several.
            loops: Length and first index of the loops over its positions, outermost first.
            sums: The partial sums of all tiles.
            base: Where those of this tile begin.
        """
        lanes = self.lanes
        tile = [
            emit.stack(lanes, self.contraction.dtype)
            for _ in range(_TILE_ROWS * self._tile_columns)
        ]
        for number, buffer in enumerate(tile):
            at = emit.ramp(base + number * lanes, lanes)
            emit.store(buffer, sums[at], [emit.ramp(0, lanes)])

        def step(at: Sequence[Expr]) -> None:
            for number, buffer in enumerate(tile):
                r, c = divmod(number, self._tile_columns)
                term = self._grad(group, row + r, at) * self._input(group, column + c, at)
                here = emit.ramp(0, lanes)
                emit.store(buffer, buffer[here] + term, [here])

        def nest(outer: list[Expr], loops: Sequence[_Loop]) -> None:
            (extent, start), *inner = loops
            if not inner:
                with emit.serial(-(-extent // lanes)) as part:
                    step([*outer, part * lanes + start])
                return
            with emit.serial(extent) as value:
                nest([*outer, value + start], inner)

        nest([*lead], loops)
        for number, buffer in enumerate(tile):
            at = emit.ramp(base + number * lanes, lanes)
            emit.store(sums, buffer[emit.ramp(0, lanes)], [at])

    def _grad(self, group: Sequence[Expr], row: Expr, at: Sequence[Expr]) -> Expr:
        rows, _ = self._extents()
        extents = [axis.extent for axis in self.contraction.rows]
        indices = [*group, *emit.unfuse(_clamp(row, rows, _TILE_ROWS), extents), *at]
        indices[-1] = emit.ramp(indices[-1], self.lanes)
        return self.grad[tuple(indices)]

    def _input(self, group: Sequence[Expr], column: Expr, at: Sequence[Expr]) -> Expr:
        _, columns = self._extents()
        values: Bound = bind_group(
            self.contraction.columns, _clamp(column, columns, self._tile_columns)
        )
        values |= {axis.var: value for axis, value in zip(self.summed, at)}
        values |= self._group(group)
        indices = self.copy.indices(values)
        indices[-1] = emit.ramp(indices[-1], self.lanes)
        return self.copy.buffer[tuple(indices)]

    def _group(self, values: Sequence[Expr]) -> Bound:
        return {axis.var: value for axis, value in zip(self.contraction.batch, values)}

    def _finish(
        self, group: Sequence[Expr], row: Expr, column: Expr, sums: Buffer, base: Expr
    ) -> None:
        """Sums the lanes of a tile and stores what exists of it."""
        rows, columns = self._extents()
        count = _TILE_ROWS * self._tile_columns
        tile = [emit.stack(self.lanes, self.contraction.dtype) for _ in range(count)]
        for number, buffer in enumerate(tile):
            at = emit.ramp(base + number * self.lanes, self.lanes)
            emit.store(buffer, sums[at], [emit.ramp(0, self.lanes)])
        totals = sum_each(tile, self.lanes, self.contraction.dtype)
        epilogue = Epilogue(self.contraction, self.contraction.columns)
        with emit.serial(_TILE_ROWS) as r, emit.serial(self._tile_columns) as c:

            def element() -> None:
                bound = self._group(group) | bind_group(self.contraction.rows, row + r)
                epilogue.vector(bound, column + c, 1, lambda _: totals[r * self._tile_columns + c])

            exists = tirx.all(row + r < emit.i64(rows), column + c < emit.i64(columns))
            emit.only_if(exists, element)


def _clamp(index: Expr, extent: int, step: int) -> Expr:
    """Lets tiles at the border repeat the last row or column; nobody stores those sums."""
    return tirx.min(index, emit.i64(extent - 1)) if extent % step else index


@dataclass(frozen=True)
class _Found:
    nest: Nest
    contraction: Contraction
    padding: Stage | None
    #: Positions of a row of the image.
    width: int

    def widened(self, model: CpuModel) -> tuple[Contraction, Stage | None]:
        """The gradient and its padding, of an input in the type of the sums."""
        if self.contraction.right.is_plain:
            return self.contraction, self.padding
        return _widened(self.contraction, self.padding, model), None


def _find(nest: Nest) -> _Found | Refused:
    contraction = contraction_of(nest)
    if isinstance(contraction, Refused):
        return contraction
    if not _is_weight_gradient(contraction):
        return Refused("no gradient of a convolution's weights")
    padding = padding_of(contraction, contraction.right)
    if isinstance(padding, Refused):
        return padding
    dimensions = window_dimensions(contraction, contraction.reduce)
    assert dimensions is not None and dimensions[-1].axis is not None
    return _Found(nest, contraction, padding, dimensions[-1].axis.extent)


def _match_im2col(nest: Nest, model: CpuModel) -> Im2col | Refused:
    found = nest.once(_find)
    if isinstance(found, Refused):
        return found
    if not wants_im2col(found.contraction, found.width, _NARROW, model):
        return Refused("the image is not narrow, or its windows are too many to copy")
    half = 2 * found.width >= model.lanes_of(dtype_bytes(found.contraction.dtype))
    if half and wants_channels(found.contraction, found.width, model):
        return Refused("vectors of channels are full, and copying windows a row at a time is slow")
    return Im2col(nest, found.contraction, found.padding, by_taps=False, widen=found.widened)


def _match_tiles(nest: Nest, model: CpuModel) -> TiledWindows | Refused:
    found = nest.once(_find)
    if isinstance(found, Refused):
        return found
    return tiled_windows(TiledWindows(found.contraction, found.padding, by_taps=False), model)


def _match_channels(nest: Nest, model: CpuModel) -> _Found | Refused:
    found = nest.once(_find)
    if isinstance(found, Refused) or wants_channels(found.contraction, found.width, model):
        return found
    return Refused("output channels fill vectors no better than rows of the image do")


def _emit_channels(found: _Found, _plan: None, writer: Writer[CpuModel]) -> None:
    contraction, padding = found.widened(writer.model)
    dimensions = window_dimensions(contraction, contraction.reduce)
    assert dimensions is not None
    emit_channel_gradient(contraction, padding, dimensions, writer.model)


def _emit(found: _Found, _plan: None, writer: Writer[CpuModel]) -> None:
    model = writer.model
    contraction, padding = found.widened(model)
    dimensions = window_dimensions(contraction, contraction.reduce)
    assert dimensions is not None
    along = dimensions[-1].axis
    assert along is not None
    lanes = model.lanes_of(dtype_bytes(contraction.dtype))
    while lanes > 4 and along.extent <= lanes // 2:
        lanes //= 2
    slack = -along.extent % lanes
    copy, fill = rearrange(contraction, dimensions, padding, slack)
    emit_injective(fill, model)
    summed = (*(axis for axis in contraction.reduce if axis is not along), along)
    order = (*contraction.batch, *contraction.rows, *summed)
    grad, fill = _padded_rows(contraction, order, slack)
    emit_injective(fill, model)
    _WeightGradient(contraction, copy, grad, summed, lanes, model).write()


TILES = Kernel(
    "conv_weight_gradient_tiles", _match_tiles, emit_tiled_windows,
    "gradient of a bfloat16 convolution's weights: windows are copied, and tiles (AMX) multiplied",
)  # fmt: skip
IM2COL_DOT = Kernel(
    "conv_weight_gradient_im2col_dot", only_deep(_match_im2col), emit_im2col_dot,
    "gradient of a convolution's weights with long sums and few results: vectors along the sums",
)  # fmt: skip
IM2COL = Kernel(
    "conv_weight_gradient_im2col", _match_im2col, emit_im2col,
    "gradient of a convolution's weights at a narrow image: windows are copied, a matrix product",
)  # fmt: skip
CHANNELS = Kernel(
    "conv_weight_gradient_channels", _match_channels, _emit_channels,
    "gradient of a convolution's weights, vectors along output channels",
    knobs=("weight gradient tile",),
)  # fmt: skip
ROWS = Kernel(
    "conv_weight_gradient", lambda nest, _model: nest.once(_find), _emit,
    "gradient of a convolution's weights, vectors along rows of the image",
)  # fmt: skip
