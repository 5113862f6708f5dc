"""The gradient of a convolution's weights: sums over images and positions of ``grad * input``.

The result is small and the sums are long. Bands of rows of the images come one after the other:
they stay in the cache while all tiles of a work item pass over them, with the partial sums of the
tiles in memory in between.

Where the output channels fill vectors, those run along them. The cotangent is copied so that the
channels of a position are neighbours; the register tile holds a few taps of one input channel times
a few vectors of output channels. Per position it loads the vectors and broadcasts one pixel per
tap, so that no lane is wasted whatever the image's size and the stride are. A work item is a group
of output channels times a range of input channels.

Images too narrow for vectors become matrix products, see :mod:`.im2col`. For the rest, vectors run
along the summed positions of a row of the image, where both operands are contiguous once the input
has been rearranged; a tile keeps the partial sums of a few output channels times a few (input
channel, tap) pairs in registers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.direct import tiles_kernel
from tvmgraph.backend.cpu.kernels.conv.emitter import Vectors, vector_at
from tvmgraph.backend.cpu.kernels.conv.im2col import im2col_kernels
from tvmgraph.backend.cpu.kernels.conv.window import (
    Window,
    find_weight_gradient,
    lanes_along,
    rearrange,
)
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile, multiply_tile, store_tile, transpose
from tvmgraph.backend.cpu.kernels.gemm.plan import MIN_PARALLEL_FLOPS, step_cycles
from tvmgraph.backend.cpu.kernels.operands import emit_copy, with_left
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.items import Range, Split, tiled, write_items
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.point import vectors as each_vector
from tvmgraph.backend.loop_ir.program import Axis, Stage, product, substitute
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
#: Idle lanes of the last vector of output channels, as a share of all lanes, at most.
_MAX_IDLE = 0.25
#: Taps of all input channels from which copying the cotangent costs little beside the sums.
_MIN_COLUMNS = 256
#: Vectors of output channels, and taps, of a tile.
_MAX_VECTORS, _MAX_TAPS = 6, 9
#: Work items per worker, so that one slow worker does not hold up a whole share.
_ITEMS_PER_THREAD = 3


@dataclass(frozen=True)
class _ByRows:
    """The kernel with vectors along rows of the image.

    Attributes:
        contraction: What is computed, of copies in which vectors along a row may read beyond it.
        summed: The summed axes, those of images before those of positions.
        lanes: Elements of a vector.
        model: The processor.
    """

    contraction: Contraction
    summed: Sequence[Axis]
    lanes: int
    model: CpuModel

    def write(self) -> None:
        """Writes the loops over work items: a block of rows times several blocks of columns."""
        groups, rows, columns, _ = self.contraction.extents
        row_blocks, column_blocks = -(-rows // _TILE_ROWS), -(-columns // self._tile_columns)
        batch = self.contraction.batch
        tiles = max(1, column_blocks // -(-2 * self.model.threads // (row_blocks * groups)))
        tiles = min(_MAX_TILES, tiles)
        chunks = -(-column_blocks // tiles)
        parallel = self.contraction.flops >= MIN_PARALLEL_FLOPS and self.model.threads > 1
        extents = [*(axis.extent for axis in batch), row_blocks, chunks]
        with emit.parallel(product(extents), parallel) as item:
            *group, block, chunk = emit.unfuse(item, extents)
            bound = {axis.var: value for axis, value in zip(batch, group)}
            self._item(bound, block * _TILE_ROWS, chunk * tiles, tiles)

    @property
    def _tile_columns(self) -> int:
        """Pairs of a tile: registers hold its sums, a factor per pair and one of a channel."""
        columns = _MAX_TILE_COLUMNS
        while columns > 1 and (_TILE_ROWS + 1) * columns + 1 >= self.model.registers:
            columns //= 2
        return columns

    def _item(self, bound: Bound, row: Expr, first: Expr, tiles: int) -> None:
        """One block of rows times ``tiles`` blocks of columns, of one group of channels."""
        size = _TILE_ROWS * self._tile_columns
        buffer = emit.workspace([tiles * size * self.lanes], self.contraction.dtype)
        sums = Vectors(buffer, self.lanes)
        sums.clear(tiles * size)
        images, inner = self.summed[:-2], self.summed[-2:]
        band = self._band(inner)
        bands = inner[0].extent // band
        count = product(axis.extent for axis in images) * bands
        with emit.serial(count) as part, emit.serial(tiles) as tile:
            here = bound | bind_group(images, part // bands)
            start = part % bands * band if bands > 1 else emit.i64(0)
            column = (first + tile) * self._tile_columns
            held = sums.load(tile * size, size)
            self._accumulate(held, here, row, column, (start, band))
            sums.store(held, tile * size)
        with emit.serial(tiles) as tile:
            totals = sums.totals(tile * size, size)
            self._finish(bound, row, (first + tile) * self._tile_columns, totals)

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
        self, tile: Sequence[Buffer], bound: Bound, row: Expr, column: Expr, band: Range
    ) -> None:
        """Adds a band of an image to the partial sums of a tile."""
        contraction, lanes, whole = self.contraction, self.lanes, [emit.ramp(0, self.lanes)]
        _, rows, columns, _ = self.contraction.extents
        *outer, along = self.summed[-2:]
        with contextlib.ExitStack() as loops:
            here = dict(bound)
            for axis in outer:
                here[axis.var] = loops.enter_context(emit.serial(band[1])) + band[0]
            here[along.var] = loops.enter_context(emit.serial(-(-along.extent // lanes))) * lanes
            for number, buffer in enumerate(tile):
                r, c = divmod(number, self._tile_columns)
                at = bind_group(contraction.rows, _clamp(row + r, rows, _TILE_ROWS))
                seen = bind_group(
                    contraction.columns, _clamp(column + c, columns, self._tile_columns)
                )
                term = vector_at(contraction.left.load, here | at, lanes)
                term = term * vector_at(contraction.right.load, here | seen, lanes)
                emit.store(buffer, buffer[whole[0]] + term, whole)

    def _finish(self, bound: Bound, row: Expr, column: Expr, totals: Buffer) -> None:
        """Stores what exists of a tile."""
        _, rows, columns, _ = self.contraction.extents
        epilogue = Epilogue(self.contraction, self.contraction.columns)
        with emit.serial(_TILE_ROWS) as r, emit.serial(self._tile_columns) as c:

            def element() -> None:
                here = bound | bind_group(self.contraction.rows, row + r)
                epilogue.vector(here, column + c, 1, lambda _: totals[r * self._tile_columns + c])

            exists = tirx.all(row + r < emit.i64(rows), column + c < emit.i64(columns))
            emit.only_if(exists, element)


def _clamp(index: Expr, extent: int, step: int) -> Expr:
    """Lets tiles at the border repeat the last row or column; nobody stores those sums."""
    return tirx.min(index, emit.i64(extent - 1)) if extent % step else index


@dataclass(frozen=True)
class _Plan:
    """Shape of the kernel.

    Attributes:
        lanes: Elements of a vector.
        blocks: Vectors that hold the output channels of a group.
        taps: Taps of a tile.
        band: Rows of the image between two passes over the partial sums.
        channels: Input channels.
        parallel: Whether workers share the work items.
    """

    lanes: int
    blocks: Split
    taps: int
    band: int
    channels: Split
    parallel: bool


class _ByChannels:
    """The kernel with vectors along output channels, of an image in the type of the sums."""

    def __init__(self, found: Window, model: CpuModel) -> None:
        contraction, dimensions = found.contraction, found.dimensions
        self.contraction = contraction
        self.model = model
        windows = [d for d in dimensions if d.tap is not None]
        taps = [d.tap for d in windows]
        self.positions = [a for a in contraction.reduce if any(a is d.axis for d in windows)]
        self.images = [a for a in contraction.reduce if not any(a is p for p in self.positions)]
        self.taps = [a for a in contraction.columns if any(a is tap for tap in taps)]
        self.channels = [a for a in contraction.columns if not any(a is tap for tap in self.taps)]
        _, self.rows, _, _ = contraction.extents
        self.plan = self._plan()

    def _plan(self) -> _Plan:
        model, size = self.model, dtype_bytes(self.contraction.dtype)
        lanes = _lanes(self.rows, model.lanes_of(size))
        blocks, taps = -(-self.rows // lanes), product(axis.extent for axis in self.taps)
        costs: dict[tuple[int, int], float] = {}
        for vectors in range(1, min(_MAX_VECTORS, blocks) + 1):
            for count in range(1, min(_MAX_TAPS, taps) + 1):
                if count * vectors + vectors < model.registers:
                    costs[vectors, count] = tiled(
                        (blocks, taps), (vectors, count), lambda v, n: step_cycles(n, v, model)
                    )
        best = ranked(costs)
        vectors, count = choose("weight gradient tile", best[0], best)
        height, *rest = [axis.extent for axis in self.positions]
        line = product(rest) * vectors * lanes * size
        band = max(1, min(height, model.l2_bytes // 2 // line))
        groups = product(axis.extent for axis in self.contraction.batch) * -(-blocks // vectors)
        inputs = product(axis.extent for axis in self.channels)
        chunks = min(inputs, -(-_ITEMS_PER_THREAD * model.threads // groups))
        parallel = self.contraction.flops >= MIN_PARALLEL_FLOPS and model.threads > 1
        channels = Split(inputs, -(-inputs // chunks))
        return _Plan(lanes, Split(blocks, vectors), count, band, channels, parallel)

    def _copy_grad(self) -> Buffer:
        """The cotangent as (groups, images, blocks of channels, positions, channels of a block).

        Lanes beyond the last channel are 0: nobody stores what they sum up, but numbers that lay
        there could be subnormal, which Intel's processors take a hundred times as long to multiply.
        """
        plan = self.plan
        outer = [*self.contraction.batch, *self.images]
        shape = [axis.extent for axis in (*outer, *self.positions)]
        shape[len(outer) : len(outer)] = [plan.blocks.extent]
        buffer = emit.workspace([*shape, plan.lanes], self.contraction.dtype)
        full, rest = divmod(self.rows, plan.lanes)
        value, zero = self.contraction.left.expr, emit.zero(self.contraction.dtype)
        chunks = [(value, 0, full, plan.lanes)] if full else []
        chunks += [(zero, full, 1, plan.lanes), (value, full, 1, rest)] if rest else []
        for chunk in chunks:
            emit_injective(self._grad_blocks(buffer, outer, *chunk), self.model)
        return buffer

    def _grad_blocks(
        self, buffer: Buffer, outer: Sequence[Axis], value: Expr, first: int, count: int, lanes: int
    ) -> Stage:
        old = (*outer, *self.positions)
        fresh = [Axis(tirx.Var("at", "int64"), axis.extent) for axis in old]
        block, lane = (Axis(tirx.Var("block", "int64"), n) for n in (count, lanes))
        mapping: dict[Var, Expr] = {a.var: b.var for a, b in zip(old, fresh)}
        row = (block.var + first) * self.plan.lanes + lane.var
        mapping |= bind_group(self.contraction.rows, row)
        axes = [*fresh[: len(outer)], block, *fresh[len(outer) :], lane]
        unit = {axis.var: emit.i64(0) for axis in axes if axis.extent == 1}
        indices = [axis.var + first if axis is block else axis.var for axis in axes]
        return Stage(
            "by_channels", tuple(axis for axis in axes if axis.extent > 1), (), (buffer,),
            tuple(substitute(index, unit) for index in indices),
            (substitute(substitute(value, mapping), unit),), None,
        )  # fmt: skip

    def write(self) -> None:
        """Writes the copy of the cotangent and the loops over work items."""
        grad = self._copy_grad()
        write_items(
            [*self.contraction.batch, self.plan.blocks, self.plan.channels], self.plan.parallel,
            lambda bound, ranges: self._item(grad, bound, *ranges),
        )  # fmt: skip

    def _item(self, grad: Buffer, bound: Bound, blocks: Range, channels: Range) -> None:
        """Some vectors of output channels times some input channels."""
        plan = self.plan
        taps = product(axis.extent for axis in self.taps)
        columns = channels[1] * taps
        # whole squares are transposed at the end
        size = (columns + -columns % plan.lanes) * blocks[1] * plan.lanes
        sums = Vectors(emit.workspace([size], self.contraction.dtype), plan.lanes)
        sums.clear(columns * blocks[1])
        images = product(axis.extent for axis in self.images)
        height = self.positions[0].extent
        bands = -(-height // plan.band)
        with emit.serial(images * bands) as part:
            here = bound | bind_group(self.images, part // bands)
            band = part % bands

            def rows(count: int) -> None:
                with emit.serial(channels[1]) as channel:
                    at = here | bind_group(self.channels, channels[0] + channel)
                    for first in range(0, taps, plan.taps):
                        size = min(plan.taps, taps - first)
                        base = (channel * taps + first) * blocks[1]
                        top = band * plan.band, count
                        self._tile(grad, at, blocks, (first, size), top, (sums, base))

            emit.peel_last((band, bands, plan.band, height), rows)
        self._store(sums, bound, blocks, channels[0] * taps, columns)

    def _tile(
        self,
        grad: Buffer,
        bound: Bound,
        blocks: Range,
        taps: tuple[int, int],
        rows: Range,
        sums: tuple[Vectors, Expr],
    ) -> None:
        """Adds a band of an image to the partial sums of some taps of an input channel."""
        plan, contraction = self.plan, self.contraction
        tile = Tile(taps[1], blocks[1], plan.lanes, contraction.dtype)
        outer = [bound[axis.var] for axis in (*contraction.batch, *self.images)]

        def moved(at: Sequence[Expr]) -> list[Expr]:
            return [at[0] + rows[0], *at[1:]]

        def pixel(tap: int, at: Sequence[Expr]) -> Expr:
            values = bound | {a.var: v for a, v in zip(self.positions, moved(at))}
            values |= bind_group(self.taps, emit.i64(taps[0] + tap))
            return substitute(contraction.right.expr, values)

        def vector(at: Sequence[Expr], number: int, lanes: int) -> Expr:
            return grad[(*outer, blocks[0] + number, *moved(at), emit.ramp(0, lanes))]

        def place(row: int, number: int, _lanes: int) -> Expr:
            return sums[0].at(sums[1] + (row * blocks[1] + number))

        k_extents = [rows[1], *(axis.extent for axis in self.positions[1:])]
        total = multiply_tile(
            tile,
            k_extents,
            1,
            pixel,
            vector,
            lambda row, *strip: sums[0].buffer[place(row, *strip)],
        )
        store_tile(tile, total, sums[0].buffer, place)

    def _store(self, sums: Vectors, bound: Bound, blocks: Range, first: Expr, columns: int) -> None:
        """Turns the sums of a work item, square by square, into rows of the result."""
        lanes, dtype = self.plan.lanes, self.contraction.dtype
        epilogue = Epilogue(self.contraction, self.contraction.columns)

        def square(column: Expr, count: int, _slot: int) -> None:
            read = Vectors(emit.stack(lanes * lanes, dtype), lanes)
            for line in range(lanes):
                read.put(line, sums.get((column + line) * blocks[1] + block))
            kept = Vectors(emit.stack(lanes * lanes, dtype), lanes)
            transposed = Vectors(transpose(read.buffer, lanes, dtype), lanes)
            for line in range(lanes):
                kept.put(line, transposed.get(line))
            with emit.serial(lanes) as line:
                row = (blocks[0] + block) * lanes + line

                def store() -> None:
                    here = bound | bind_group(self.contraction.rows, row)
                    epilogue.vector(
                        here, first + column, count, lambda lane: kept.buffer[line * lanes + lane]
                    )

                if self.rows % lanes:
                    emit.only_if(row < emit.i64(self.rows), store)
                else:
                    store()

        with emit.serial(blocks[1]) as block:
            each_vector(emit.i64(0), columns, lanes, square)


def _lanes(rows: int, widest: int) -> int:
    """The widest vectors, or narrower ones where those leave fewer lanes idle."""
    sizes = [n for n in (widest, widest // 2) if n >= 4] or [widest]
    return min(sizes, key=lambda lanes: (-(-rows // lanes) * lanes, -lanes))


def _wants_channels(found: Window, model: CpuModel) -> bool:
    """Whether the output channels fill vectors well enough, and better than rows of the image."""
    contraction, width = found.contraction, found.column.extent
    _, rows, columns, _ = contraction.extents
    widest = model.lanes_of(dtype_bytes(contraction.dtype))
    lanes = _lanes(rows, widest)
    fits = -rows % lanes <= _MAX_IDLE * (rows + -rows % lanes)
    return fits and (columns >= _MIN_COLUMNS or bool(width % widest))


def _wants_im2col(found: Window, model: CpuModel) -> Refused | None:
    half = 2 * found.column.extent >= model.lanes_of(dtype_bytes(found.contraction.dtype))
    if half and _wants_channels(found, model):
        return Refused("vectors of channels are full, and copying windows a row at a time is slow")
    return None


def _match_channels(nest: Nest, model: CpuModel) -> Window | Refused:
    found = nest.once(find_weight_gradient)
    if isinstance(found, Refused) or _wants_channels(found, model):
        return found
    return Refused("output channels fill vectors no better than rows of the image do")


def _emit_rows(found: Window, _plan: None, writer: Writer[CpuModel]) -> None:
    model, along = writer.model, found.column
    found = found.widened(model)
    lanes = lanes_along(along.extent, found.contraction.dtype, model)
    slack = -along.extent % lanes
    contraction, fill = rearrange(found, slack)
    emit_injective(fill, model)
    summed = (*(axis for axis in contraction.reduce if axis is not along), along)
    order = (*contraction.batch, *contraction.rows, *summed)
    left = contraction.left.expr
    grad = emit_copy(lambda at: substitute(left, at), order, model, slack)
    contraction = with_left(contraction, grad)
    _ByRows(contraction, summed, lanes, model).write()


TILES = tiles_kernel(
    "conv_weight_gradient_tiles", "gradient of a bfloat16 convolution's weights",
    find_weight_gradient,
)  # fmt: skip
IM2COL_DOT, IM2COL = im2col_kernels(
    "conv_weight_gradient_im2col", "gradient of a convolution's weights", find_weight_gradient,
    _NARROW, _wants_im2col,
)  # fmt: skip
CHANNELS = Kernel(
    "conv_weight_gradient_channels", _match_channels,
    lambda found, _plan, writer: _ByChannels(found.copied(writer.model), writer.model).write(),
    "gradient of a convolution's weights, vectors along output channels",
    knobs=("weight gradient tile",),
)  # fmt: skip
ROWS = Kernel(
    "conv_weight_gradient", lambda nest, _model: nest.once(find_weight_gradient), _emit_rows,
    "gradient of a convolution's weights, vectors along rows of the image",
)  # fmt: skip
