"""Depthwise convolution of NCHWc images.

Blocking: the register tile holds several neighbouring positions of a row of the result, one vector
of channels each. Per tap it loads one vector of weights; the pixels of neighbouring positions are
the same vectors, moved along. Borders of the image are no memory: taps above and below it are left
out by a condition on the row, taps beside it are left out of the code of the first and last tile.
Images, blocks of channels and rows are divided among the workers.
"""

from __future__ import annotations

from tvm import tirx

from tvmgraph.backend.cpu.kernels.conv.emitter import vector_at
from tvmgraph.backend.cpu.kernels.conv.window import (
    Dimension,
    dimension_of,
    image_of,
    place_at,
    tap_at,
    unguarded,
)
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue, Place
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile
from tvmgraph.backend.cpu.kernels.operands import contraction_of
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.items import Range, Split, write_items
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound
from tvmgraph.backend.loop_ir.program import static_shape, substitute
from tvmgraph.backend.loop_ir.types import Expr
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Positions of a tile.
_MAX_POSITIONS = 14
#: Below this many operations the calling thread works alone.
_MIN_PARALLEL_FLOPS = 100_000


def is_depthwise(contraction: Contraction) -> bool:
    """Whether the kernel applies.

    Args:
        contraction: Sums of products.
    """
    if contraction.columns or not contraction.rows or not contraction.batch:
        return False
    image, weight = contraction.left.load, contraction.right.load
    channel = contraction.batch[-1].var
    if (len(image.indices), len(weight.indices)) != (5, 4) or not contraction.right.is_plain:
        return False
    if not (image.indices[-1].same_as(channel) and weight.indices[-1].same_as(channel)):
        return False
    return len(contraction.before) < 2 and _lines(contraction) is not None


def _lines(contraction: Contraction) -> tuple[Dimension, Dimension] | None:
    load = contraction.left.load
    source, before = image_of(contraction.left, contraction.before)
    extents = static_shape(source.source)
    if extents is None or len(extents) != 5:
        return None
    row, column = (
        dimension_of(load.indices[d], contraction.rows, contraction.reduce, before[d], extents[d])
        for d in (2, 3)
    )
    if row is None or column is None or any(before[d] for d in (0, 1, 4)):
        return None
    return row, column


class _Depthwise:
    def __init__(
        self, contraction: Contraction, lines: tuple[Dimension, Dimension], model: CpuModel
    ) -> None:
        self.contraction = contraction
        self.row, self.column = lines
        self.image = image_of(contraction.left, contraction.before)[0].source
        self.channel = contraction.batch[-1]
        self.lanes = min(self.channel.extent, model.lanes_of(dtype_bytes(contraction.dtype)))
        self.parallel = contraction.flops >= _MIN_PARALLEL_FLOPS and model.threads > 1
        limit = min(_MAX_POSITIONS, model.registers // 2)
        tiles = -(-self.column.positions // limit)
        self.tile_columns = -(-self.column.positions // tiles)
        own = (self.row.axis, self.column.axis, self.channel)
        axes = (*contraction.rows, *contraction.batch)
        self.outer = [axis for axis in axes if not any(axis is each for each in own)]

    def write(self) -> None:
        """Writes the loops over work items: one vector of channels of one row."""
        channels = Split(self.channel.extent, self.lanes)

        def item(bound: Bound, ranges: list[Range]) -> None:
            (channel, _), (row, _) = ranges
            self._tiles(bound | {self.channel.var: channel}, row)

        write_items([*self.outer, channels, Split(self.row.positions, 1)], self.parallel, item)

    def _tiles(self, bound: Bound, row: Expr) -> None:
        """All tiles of a row; those that touch a border get code of their own."""
        width, tile_columns = self.column.positions, self.tile_columns
        starts = list(range(0, width, tile_columns))
        inner = [s for s in starts if s + tile_columns <= width and self._is_inner(s)]
        for start in starts:
            if start not in inner:
                self._tile(bound, row, start, min(tile_columns, width - start))
        if len(inner) > 1:
            with emit.serial(len(inner)) as number:
                self._tile(bound, row, number * tile_columns + inner[0], tile_columns)
        elif inner:
            self._tile(bound, row, inner[0], tile_columns)

    def _is_inner(self, start: int) -> bool:
        first = self.column.pixel(start, 0)
        last = self.column.pixel(start + self.tile_columns - 1, self.column.taps - 1)
        return first >= 0 and last < self.column.extent

    def _tile(self, bound: Bound, row: Expr, start: Expr | int, positions: int) -> None:
        lanes, dtype = self.lanes, self.contraction.dtype
        tile = Tile(positions, 1, lanes, dtype)
        total = emit.stack(tile.size, dtype)
        for position in range(positions):
            zero = emit.broadcast(emit.zero(dtype), lanes)
            emit.store(total, zero, [tile.at(position, 0)])

        def taps(tap: Expr) -> None:
            for along in range(self.column.taps):
                for position in range(positions):
                    pixel = self.column.pixel(start + position, along)
                    if isinstance(pixel, int) and not 0 <= pixel < self.column.extent:
                        continue
                    place = tile.at(position, 0)
                    product = self._pixel(bound, self.row.pixel(row, tap), pixel)
                    product = product * self._weight(bound, tap, along)
                    emit.store(total, total[place] + product, [place])

        with emit.serial(self.row.taps) as tap:
            if self.row.inside:
                taps(tap)
            else:
                pixel = self.row.pixel(row, tap)
                inside = tirx.all(pixel >= 0, pixel < emit.i64(self.row.extent))
                emit.only_if(inside, lambda: taps(tap))
        channel = bound[self.channel.var]

        def place_of(number: Expr) -> Bound:
            return bound | place_at((self.row, row), (self.column, number + start))

        Epilogue(self.contraction, [self.channel]).write_vectors(
            tile, total, place_of, [Place({}, channel, lanes)]
        )

    def _pixel(self, bound: Bound, row: Expr | int, column: Expr | int) -> Expr:
        """A vector of channels of a pixel."""
        contraction = self.contraction
        indices = [substitute(index, bound) for index in contraction.left.load.indices]
        indices[2:4] = emit.index(row), emit.index(column)
        stages = contraction.before
        value = unguarded(stages[0].value if stages else contraction.left.expr)
        vector = self.image[(*indices[:-1], emit.ramp(indices[-1], self.lanes))]
        if not isinstance(value, tirx.Cast):
            return vector
        return tirx.Cast(f"{contraction.dtype}x{self.lanes}", vector)

    def _weight(self, bound: Bound, row: Expr, column: int) -> Expr:
        taps = tap_at((self.row, row), (self.column, column))
        return vector_at(self.contraction.right.load, bound | taps, self.lanes)


def _match(nest: Nest, _model: CpuModel) -> Contraction | Refused:
    found = contraction_of(nest)
    if isinstance(found, Refused) or is_depthwise(found):
        return found
    return Refused("no depthwise convolution of an NCHWc image")


def _emit(contraction: Contraction, _plan: None, writer: Writer[CpuModel]) -> None:
    """Writes the kernel; a stage that pads the image becomes part of it."""
    lines = _lines(contraction)
    assert lines is not None
    _Depthwise(contraction, lines, writer.model).write()


KERNEL = Kernel(
    "conv_depthwise_nchwc", _match, _emit, "depthwise convolution, vectors along blocks of channels"
)
