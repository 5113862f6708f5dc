"""Convolution of images and weights that are cut into blocks of channels.

Blocking: the register tile holds several positions of the image times a few vectors of output
channels. Per tap and input channel it loads one vector of weights per vector of channels and
broadcasts one pixel per position, so that no lane is wasted whatever the image's size is. A work
item is one band of rows and one group of channel blocks, whose weights stay in the second-level
cache; the larger of the two operands is the one that is walked through only once. Groups of a
grouped convolution are independent of each other, like images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvmgraph.backend.cpu.kernels.elementwise.injective import emit_injective
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue, Place
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile, multiply_tile
from tvmgraph.backend.cpu.kernels.gemm.plan import step_cycles
from tvmgraph.backend.cpu.kernels.product import contraction_of
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.choice import choose, ranked
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound
from tvmgraph.backend.loop_ir.program import Stage, product, static_shape, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Operations from which workers share a convolution: below, to hand over its image costs more.
_MIN_PARALLEL_FLOPS = 800_000
#: Elements of a padded image from which workers share the copy.
_MIN_PADDED = 4096
#: Positions, and vectors of channels, of a tile where registers hold more: for shorter code.
_MAX_POSITIONS, _MAX_VECTORS = 28, 4


@dataclass(frozen=True)
class NchwcPlan:
    """Shape of the kernel.

    Attributes:
        lanes: Elements of a vector.
        vectors: Vectors of output channels in a tile.
        across: Positions of a tile along a row of the image.
        down: Rows of the image in a tile.
        weights_outside: Whether work items run over the image first and over channels last.
        parallel: Whether workers share the convolution.
        convolution: What is known of the convolution, as text.
    """

    lanes: int
    vectors: int
    across: int
    down: int
    weights_outside: bool
    parallel: bool
    convolution: str = ""


def is_packed_conv(contraction: Contraction) -> bool:
    """Whether a contraction is a convolution of an NCHWc image with a packed weight."""
    known = contraction.convolution
    return known is not None and known.dot == 1 and bool(contraction.columns)


def emit_padding(stage: Stage, contraction: Contraction, model: CpuModel) -> None:
    """Writes the stage that puts zeros around the image of a blocked convolution.

    It is divided among the workers as the convolution is, by groups of channels or by rows, so that
    a worker finds most of what it reads in its own cache.

    Args:
        stage: The stage, whose result is the image with its zeros.
        contraction: The convolution.
        model: The processor.
    """
    divided = (0, 1 if contraction.batch else 2)
    outer = [a for a in stage.axes if any(a.var.same_as(stage.indices[d]) for d in divided)]
    extents = [axis.extent for axis in outer]
    elements = product(axis.extent for axis in stage.axes)
    if not outer or elements < _MIN_PADDED or contraction.flops < _MIN_PARALLEL_FLOPS:
        emit_injective(stage, model)
        return
    with emit.parallel(product(extents), model.threads > 1) as item:
        bound = {axis.var: at for axis, at in zip(outer, emit.unfuse(item, extents))}
        inner = replace(
            stage,
            axes=tuple(axis for axis in stage.axes if axis not in outer),
            indices=tuple(substitute(index, bound) for index in stage.indices),
            values=tuple(substitute(value, bound) for value in stage.values),
        )
        emit_injective(inner, replace(model, threads=1))


def _extents(contraction: Contraction) -> tuple[int, int]:
    """Rows and columns of the image; both 1 where there are no such loops."""
    rows = contraction.rows
    return rows[-2].extent if len(rows) > 1 else 1, rows[-1].extent if rows else 1


def plan_blocks(contraction: Contraction, model: CpuModel) -> NchwcPlan:
    """The kernel for the extents of a convolution."""
    height, width = _extents(contraction)
    block = contraction.columns[-1].extent
    lanes = min(block, model.lanes_of(dtype_bytes(contraction.dtype)))
    channels = product(axis.extent for axis in contraction.columns) // lanes
    costs: dict[tuple[int, int, int], float] = {}
    for vectors in range(1, min(_MAX_VECTORS if height * width > 1 else 8, channels) + 1):
        limit = min((model.registers - 1 - vectors) // vectors, _MAX_POSITIONS)
        for across in range(1, min(width, limit) + 1):
            for down in range(1, (min(height, limit // across) if across == width else 1) + 1):
                cost = _cost((height, width, channels), (down, across, vectors), model)
                costs[vectors, across, down] = cost
    best = ranked(costs)
    vectors, across, down = choose("conv tile", best[0], best)
    pixels = product(static_shape(contraction.left.load.source) or (1,))
    weights = product(static_shape(contraction.right.load.source) or (1,))
    enough = contraction.flops >= _MIN_PARALLEL_FLOPS
    parallel = model.threads > 1 and choose("conv parallel", enough, (True, False))
    outside = choose("conv weights outside", weights > pixels, (True, False))
    known = str(contraction.convolution or "")
    return NchwcPlan(lanes, vectors, across, down, outside, parallel, known)


def _cost(extents: tuple[int, int, int], tile: tuple[int, int, int], model: CpuModel) -> float:
    """Cycles per tap and input channel of all tiles of an image."""
    height, width, channels = extents
    down, across, vectors = tile
    total = 0.0
    for rows, bands in ((down, height // down), (height % down, 1)):
        for columns, tiles in ((across, width // across), (width % across, 1)):
            for group, groups in ((vectors, channels // vectors), (channels % vectors, 1)):
                if rows and columns and group:
                    total += bands * tiles * groups * step_cycles(rows * columns, group, model)
    return total * (1 + 0.02 * bool(width % across) + 0.1 / (down * across * vectors))


@dataclass(frozen=True)
class NchwcConv:
    """The kernel.

    Attributes:
        contraction: The convolution.
        plan: Shape of the kernel.
    """

    contraction: Contraction
    plan: NchwcPlan

    def write(self) -> None:
        """Writes the loops over work items."""
        plan = self.plan
        height, _ = _extents(self.contraction)
        bands = -(-height // plan.down)
        channels = product(axis.extent for axis in self.contraction.columns) // plan.lanes
        groups = -(-channels // plan.vectors)
        outer = (*self.contraction.batch, *self.contraction.rows[:-2])
        images = [axis.extent for axis in outer]
        extents = [groups, *images, bands] if plan.weights_outside else [*images, bands, groups]
        with emit.parallel(product(extents), plan.parallel) as item:
            values = emit.unfuse(item, extents)
            group = values.pop(0 if plan.weights_outside else -1)
            *values, band = values
            bound = {axis.var: value for axis, value in zip(outer, values)}
            emit.peel_last(
                (band, bands, plan.down, height),
                lambda down: emit.peel_last(
                    (group, groups, plan.vectors, channels),
                    lambda vectors: self._band(bound, band * plan.down, down, group, vectors),
                ),
            )

    def _band(self, outer: Bound, row: Expr, down: int, group: Expr, vectors: int) -> None:
        """All tiles of a work item, from left to right."""
        across = self.plan.across
        full, rest = divmod(_extents(self.contraction)[1], across)
        first = group * self.plan.vectors
        if full > 1:
            with emit.serial(full) as tile:
                self._tile(outer, (row, tile * across), (down, across), first, vectors)
        elif full:
            self._tile(outer, (row, emit.i64(0)), (down, across), first, vectors)
        if rest:
            self._tile(outer, (row, emit.i64(full * across)), (down, rest), first, vectors)

    def _tile(
        self,
        outer: Bound,
        corner: tuple[Expr, Expr],
        size: tuple[int, int],
        first: Expr,
        vectors: int,
    ) -> None:
        contraction, lanes = self.contraction, self.plan.lanes
        tile = Tile(size[0] * size[1], vectors, lanes, contraction.dtype)

        def position(number: Expr | int) -> Bound:
            down, along = emit.unfuse(emit.index(number), size)
            return outer | self._position(corner[0] + down, corner[1] + along)

        total = self._sums(
            tile, position, [outer | self._channel(first + vector) for vector in range(vectors)]
        )
        places = [self._channel(first + vector) for vector in range(vectors)]
        inner = contraction.columns[-1]
        Epilogue(contraction, [inner]).write_vectors(
            tile, total, position, [Place(place, place[inner.var], lanes) for place in places]
        )

    def _sums(
        self, tile: Tile, position: Callable[[int], Bound], channels: Sequence[Bound]
    ) -> Buffer:
        """The sums of a tile, given its positions and where its vectors of channels start."""
        contraction = self.contraction
        right = contraction.right.load

        def pixel(number: int, taps: Sequence[Expr]) -> Expr:
            return substitute(contraction.left.expr, position(number) | self._taps(taps))

        def weight(taps: Sequence[Expr], vector: int, lanes: int) -> Expr:
            bound = channels[vector] | self._taps(taps)
            indices = [substitute(index, bound) for index in right.indices]
            indices[-1] = emit.ramp(indices[-1], lanes)
            return right.source[tuple(indices)]

        depth = [axis.extent for axis in contraction.reduce] or [1]
        return multiply_tile(tile, depth, 1, pixel, weight)

    def _channel(self, vector: Expr) -> Bound:
        """Where a vector of output channels starts."""
        columns = self.contraction.columns
        steps = [*(axis.extent for axis in columns[:-1]), columns[-1].extent // self.plan.lanes]
        *outer, part = emit.unfuse(vector, steps)
        bound = {axis.var: value for axis, value in zip(columns, outer)}
        return bound | {columns[-1].var: part * self.plan.lanes}

    def _position(self, row: Expr, column: Expr) -> Bound:
        axes = self.contraction.rows[-2:]
        return {axis.var: value for axis, value in zip(axes[::-1], (column, row))}

    def _taps(self, values: Sequence[Expr]) -> Bound:
        return {axis.var: value for axis, value in zip(self.contraction.reduce, values)}


def match_packed(nest: Nest, _model: CpuModel) -> Contraction | Refused:
    """A convolution of an NCHWc image before which nothing is left to do."""
    found = contraction_of(nest)
    if isinstance(found, Refused):
        return found
    if not is_packed_conv(found):
        return Refused("no convolution of an NCHWc image with a packed weight")
    return Refused("stages come before the sums") if found.before else found


def _emit(contraction: Contraction, plan: NchwcPlan, _writer: Writer[CpuModel]) -> None:
    NchwcConv(contraction, plan).write()


KERNEL = Kernel(
    "conv_nchwc", match_packed, _emit, "convolution of an NCHWc image with a packed weight",
    plan_blocks, ("conv tile", "conv parallel", "conv weights outside"),
)  # fmt: skip
