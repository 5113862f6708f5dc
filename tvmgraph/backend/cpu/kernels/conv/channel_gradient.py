"""The gradient of a convolution's weights with vectors along the output channels.

Blocking: the cotangent is copied so that the channels of a position are neighbours. The register
tile holds a few taps of one input channel times a few vectors of output channels; per position it
loads the vectors and broadcasts one pixel per tap, so that no lane is wasted whatever the image's
size and the stride are. A work item is a group of output channels times a range of input channels.
Bands of rows whose cotangent fits into the second-level cache come one after the other, with the
partial sums in memory in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.window import Dimension
from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue
from tvmgraph.backend.cpu.kernels.gemm.microkernel import (
    Tile,
    multiply_tile,
    store_tile,
    transpose,
)
from tvmgraph.backend.cpu.kernels.gemm.plan import MIN_PARALLEL_FLOPS, step_cycles
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.point import Bound, bind_group
from tvmgraph.backend.loop_ir.program import Axis, Stage, map_loads, product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var
from tvmgraph.machine.processor import CpuModel

#: Idle lanes of the last vector of output channels, as a share of all lanes, at most.
_MAX_IDLE = 0.25
#: Taps of all input channels from which copying the cotangent costs little beside the sums.
_MIN_COLUMNS = 256
#: Vectors of output channels, and taps, of a tile.
_MAX_VECTORS, _MAX_TAPS = 6, 9
#: Work items per worker, so that one slow worker does not hold up a whole share.
_ITEMS_PER_THREAD = 3


@dataclass(frozen=True)
class _Plan:
    """Shape of the kernel.

    Attributes:
        lanes: Elements of a vector.
        blocks: Vectors that hold the output channels of a group.
        vectors: Vectors of a tile.
        taps: Taps of a tile.
        band: Rows of the image between two passes over the partial sums.
        channels: Input channels of a work item.
        parallel: Whether workers share the work items.
    """

    lanes: int
    blocks: int
    vectors: int
    taps: int
    band: int
    channels: int
    parallel: bool


def wants_channels(contraction: Contraction, width: int, model: CpuModel) -> bool:
    """Whether the output channels fill vectors well enough, and better than rows of the image.

    Args:
        contraction: The gradient.
        width: Positions of a row of the image.
        model: The processor.
    """
    rows, columns = (
        product(axis.extent for axis in axes) for axes in (contraction.rows, contraction.columns)
    )
    widest = model.lanes_of(dtype_bytes(contraction.dtype))
    lanes = _lanes(rows, widest)
    fits = -rows % lanes <= _MAX_IDLE * (rows + -rows % lanes)
    return fits and (columns >= _MIN_COLUMNS or bool(width % widest))


def emit_channel_gradient(
    contraction: Contraction,
    padding: Stage | None,
    dimensions: Sequence[Dimension],
    model: CpuModel,
) -> None:
    """Writes the kernel; ``padding`` is the stage that pads the input, if there is one."""
    if padding is not None:
        image = emit.workspace(padding.buffer.shape, contraction.dtype)
        emit_injective(replace(padding, buffers=(image,)), model)
        contraction = _reading(contraction, padding.buffer, image)
    _ChannelGradient(contraction, dimensions, model).write()


def _reading(contraction: Contraction, old: Buffer, new: Buffer) -> Contraction:
    def visit(load: Load) -> Expr:
        return new[tuple(load.indices)] if load.source.same_as(old) else load

    return replace(
        contraction,
        right=replace(contraction.right, expr=map_loads(contraction.right.expr, visit)),
    )


def _lanes(rows: int, widest: int) -> int:
    """The widest vectors, or narrower ones where those leave fewer lanes idle."""
    sizes = [n for n in (widest, widest // 2) if n >= 4] or [widest]
    return min(sizes, key=lambda lanes: (-(-rows // lanes) * lanes, -lanes))


class _ChannelGradient:
    def __init__(
        self, contraction: Contraction, dimensions: Sequence[Dimension], model: CpuModel
    ) -> None:
        self.contraction = contraction
        self.model = model
        windows = [d for d in dimensions if d.tap is not None]
        taps = [d.tap for d in windows]
        self.positions = [a for a in contraction.reduce if any(a is d.axis for d in windows)]
        self.images = [a for a in contraction.reduce if not any(a is p for p in self.positions)]
        self.taps = [a for a in contraction.columns if any(a is tap for tap in taps)]
        self.channels = [a for a in contraction.columns if not any(a is tap for tap in self.taps)]
        self.rows = product(axis.extent for axis in contraction.rows)
        self.plan = self._plan()

    # ---- the plan -----------------------------------------------------------------------------

    def _plan(self) -> _Plan:
        model, size = self.model, dtype_bytes(self.contraction.dtype)
        lanes = _lanes(self.rows, model.lanes_of(size))
        blocks, taps = -(-self.rows // lanes), product(axis.extent for axis in self.taps)
        costs: dict[tuple[int, int], float] = {}
        for vectors in range(1, min(_MAX_VECTORS, blocks) + 1):
            for count in range(1, min(_MAX_TAPS, taps) + 1):
                if count * vectors + vectors < model.registers:
                    costs[vectors, count] = _cost((blocks, taps), (vectors, count), model)
        best = ranked(costs)
        vectors, count = choose("weight gradient tile", best[0], best)
        height, *rest = [axis.extent for axis in self.positions]
        line = product(rest) * vectors * lanes * size
        band = max(1, min(height, model.l2_bytes // 2 // line))
        groups = product(axis.extent for axis in self.contraction.batch) * -(-blocks // vectors)
        inputs = product(axis.extent for axis in self.channels)
        pieces = min(inputs, -(-_ITEMS_PER_THREAD * model.threads // groups))
        parallel = self.contraction.flops >= MIN_PARALLEL_FLOPS and model.threads > 1
        return _Plan(lanes, blocks, vectors, count, band, -(-inputs // pieces), parallel)

    # ---- the cotangent ------------------------------------------------------------------------

    def _copy_grad(self) -> Buffer:
        """The cotangent as (groups, images, blocks of channels, positions, channels of a block).

        Lanes beyond the last channel are 0: nobody stores what they sum up, but numbers that lay
        there could be subnormal, which Intel's processors take a hundred times as long to multiply.
        """
        plan = self.plan
        outer = [*self.contraction.batch, *self.images]
        shape = [axis.extent for axis in (*outer, *self.positions)]
        shape[len(outer) : len(outer)] = [plan.blocks]
        buffer = emit.workspace([*shape, plan.lanes], self.contraction.dtype)
        full, rest = divmod(self.rows, plan.lanes)
        value, zero = self.contraction.left.expr, emit.zero(self.contraction.dtype)
        pieces = [(value, 0, full, plan.lanes)] if full else []
        pieces += [(zero, full, 1, plan.lanes), (value, full, 1, rest)] if rest else []
        for piece in pieces:
            emit_injective(self._grad_blocks(buffer, outer, *piece), self.model)
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

    # ---- the kernel ---------------------------------------------------------------------------

    def write(self) -> None:
        """Writes the copy of the cotangent and the loops over work items."""
        plan = self.plan
        grad = self._copy_grad()
        batch = self.contraction.batch
        inputs = product(axis.extent for axis in self.channels)
        pieces = -(-inputs // plan.channels)
        groups = -(-plan.blocks // plan.vectors)
        extents = [*(axis.extent for axis in batch), groups, pieces]
        with emit.parallel(product(extents), plan.parallel) as item:
            *values, group, piece = emit.unfuse(item, extents)
            bound: Bound = {axis.var: value for axis, value in zip(batch, values)}
            emit.peel_last(
                (group, groups, plan.vectors, plan.blocks),
                lambda vectors: emit.peel_last(
                    (piece, pieces, plan.channels, inputs),
                    lambda channels: self._item(
                        grad, bound, (group * plan.vectors, vectors),
                        (piece * plan.channels, channels),
                    ),
                ),
            )  # fmt: skip

    def _item(
        self, grad: Buffer, bound: Bound, blocks: tuple[Expr, int], channels: tuple[Expr, int]
    ) -> None:
        """Some vectors of output channels times some input channels; first and number of both."""
        plan, dtype = self.plan, self.contraction.dtype
        taps = product(axis.extent for axis in self.taps)
        width = blocks[1] * plan.lanes
        columns = channels[1] * taps
        # whole squares are transposed at the end
        sums = emit.workspace([(columns + -columns % plan.lanes) * width], dtype)
        with emit.serial(columns * blocks[1]) as at:
            zero = emit.broadcast(emit.zero(dtype), plan.lanes)
            emit.store(sums, zero, [emit.ramp(at * plan.lanes, plan.lanes)])
        images = [axis.extent for axis in self.images]
        height = self.positions[0].extent
        bands = -(-height // plan.band)
        with emit.serial(product(images) * bands) as part:
            here = bound | {
                axis.var: value
                for axis, value in zip(self.images, emit.unfuse(part // bands, images))
            }
            band = part % bands

            def rows(count: int) -> None:
                with emit.serial(channels[1]) as channel:
                    at = here | bind_group(self.channels, channels[0] + channel)
                    for first in range(0, taps, plan.taps):
                        size = min(plan.taps, taps - first)
                        base = (channel * taps + first) * width
                        self._tile(grad, at, blocks, (first, size), (band, count), (sums, base))

            emit.peel_last((band, bands, plan.band, height), rows)
        self._store(sums, bound, blocks, channels[0] * taps, columns)

    def _tile(
        self,
        grad: Buffer,
        bound: Bound,
        blocks: tuple[Expr, int],
        taps: tuple[int, int],
        rows: tuple[Expr, int],
        sums: tuple[Buffer, Expr],
    ) -> None:
        """Adds a band of an image to the partial sums of some taps of an input channel."""
        plan, contraction = self.plan, self.contraction
        tile = Tile(taps[1], blocks[1], plan.lanes, contraction.dtype)
        extents = [axis.extent for axis in self.taps]
        top = rows[0] * plan.band
        outer = [bound[axis.var] for axis in (*contraction.batch, *self.images)]

        def moved(at: Sequence[Expr]) -> list[Expr]:
            return [at[0] + top, *at[1:]]

        def pixel(tap: int, at: Sequence[Expr]) -> Expr:
            values = bound | {a.var: v for a, v in zip(self.positions, moved(at))}
            number = emit.i64(taps[0] + tap)
            values |= {a.var: v for a, v in zip(self.taps, emit.unfuse(number, extents))}
            return substitute(contraction.right.expr, values)

        def vector(at: Sequence[Expr], number: int, lanes: int) -> Expr:
            return grad[(*outer, blocks[0] + number, *moved(at), emit.ramp(0, lanes))]

        def place(row: int, number: int, lanes: int) -> Expr:
            return emit.ramp(sums[1] + (row * blocks[1] + number) * plan.lanes, lanes)

        depth = [rows[1], *(axis.extent for axis in self.positions[1:])]
        total = multiply_tile(
            tile, depth, 1, pixel, vector, lambda row, *strip: sums[0][place(row, *strip)]
        )
        store_tile(tile, total, sums[0], place)

    def _store(
        self, sums: Buffer, bound: Bound, blocks: tuple[Expr, int], first: Expr, columns: int
    ) -> None:
        """Turns the sums of a work item, square by square, into rows of the result."""
        lanes, dtype = self.plan.lanes, self.contraction.dtype
        epilogue = Epilogue(self.contraction, self.contraction.columns)

        def square(column: Expr, block: Expr, count: int) -> None:
            read = emit.stack(lanes * lanes, dtype)
            for line in range(lanes):
                at = ((column + line) * blocks[1] + block) * lanes
                emit.store(read, sums[emit.ramp(at, lanes)], [emit.ramp(line * lanes, lanes)])
            transposed = emit.stack(lanes * lanes, dtype)
            for line, value in enumerate(_lines(transpose(read, lanes, dtype), lanes)):
                emit.store(transposed, value, [emit.ramp(line * lanes, lanes)])
            with emit.serial(lanes) as line:
                row = (blocks[0] + block) * lanes + line

                def store() -> None:
                    here = bound | bind_group(self.contraction.rows, row)
                    epilogue.vector(
                        here, first + column, count, lambda lane: transposed[line * lanes + lane]
                    )

                if self.rows % lanes:
                    emit.only_if(row < emit.i64(self.rows), store)
                else:
                    store()

        full, rest = divmod(columns, lanes)
        with emit.serial(blocks[1]) as block:
            if full:
                with emit.serial(full) as number:
                    square(number * lanes, block, lanes)
            if rest:
                square(emit.i64(full * lanes), block, rest)


def _lines(square: Buffer, lanes: int) -> list[Expr]:
    return [square[emit.ramp(line * lanes, lanes)] for line in range(lanes)]


def _cost(extents: tuple[int, int], tile: tuple[int, int], model: CpuModel) -> float:
    """Cycles per position of all tiles of an input channel."""
    total = 0.0
    pieces = [divmod(extent, size) for extent, size in zip(extents, tile)]
    for vectors, groups in ((tile[0], pieces[0][0]), (pieces[0][1], 1)):
        for taps, passes in ((tile[1], pieces[1][0]), (pieces[1][1], 1)):
            if vectors and taps:
                total += groups * passes * step_cycles(taps, vectors, model)
    return total
