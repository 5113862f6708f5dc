"""Depthwise convolution of NCHWc images.

Blocking: the register tile holds several neighbouring positions of a row of the result, one vector
of channels each. Per tap it loads one vector of weights; the pixels of neighbouring positions are
the same vectors, moved along. Borders of the image are no memory: taps above and below it are left
out by a condition on the row, taps beside it are left out of the code of the first and last tile.
Images, blocks of channels and rows are divided among the workers.

Depthwise convolution of plain images, and the gradient of its weights.

Every channel of every image is a plane of its own. A work item copies what it needs of one to a
buffer that stays in the first-level cache: with zeros around the plane, and with its columns taken
apart by their residue modulo the stride, so that neighbouring positions of a window read
neighbouring elements.

The register tile of a convolution is one vector along a row times several rows of the result: a
vector that was read counts for all rows it is a tap of. Where a channel has several results, these
read the same copy. Images, channels and bands of rows are divided among the workers.

A work item of the gradient is one channel. Image after image, its plane and its cotangent are
copied; then vectors run along the rows of both, and every tap keeps a vector of partial sums in
registers. Several rows at a time share the pixels that they read. Windows with many taps take
several passes, a few rows of taps each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from tvmgraph.backend.cpu.kernels.conv.emitter import Vectors, vector_at
from tvmgraph.backend.cpu.kernels.conv.window import (
    Dimension,
    dimension_of,
    image_of,
    lanes_along,
    place_at,
    tap_at,
    unguarded,
)
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue, Place
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile
from tvmgraph.backend.cpu.kernels.gemm.plan import MAX_IMBALANCE, imbalance
from tvmgraph.backend.cpu.kernels.operands import contraction_of
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.items import Range, Split, write_items
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, bind_group, fill, nest, vectors
from tvmgraph.backend.loop_ir.program import Axis, product, static_shape, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load
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


# ---- planes -------------------------------------------------------------------------------------


#: Vectors with fewer lanes are not put together by shuffles.
_MIN_SHUFFLED = 4
#: Rows of a tile, multiply-adds written out for one, taps of a window, and results of a channel.
_MAX_ROWS, _MAX_TERMS, _MAX_TAPS, _MAX_RESULTS = 8, 256, 128, 8
#: Cycles of reading a vector that begins anywhere, and of starting a tile, in multiply-adds.
_READ, _START = 1.5, 4
#: Taps in a row of a window of a gradient, and rows that share pixels.
_MAX_COLUMNS, _MAX_SHARED = 25, 4
#: Registers beside those of the partial sums: a pixel, and a few rows of the cotangent.
_OTHERS = 7


@dataclass(frozen=True)
class _Plane:
    """The two axes of an image along which windows move.

    Attributes:
        row: From top to bottom; one position where the image has one dimension.
        column: From left to right.
        outer: The loops over positions of neither: images and channels.
    """

    row: Dimension
    column: Dimension
    outer: tuple[Axis, ...]


def _find_plane(
    contraction: Contraction, positions: Sequence[Axis], taps: Sequence[Axis]
) -> _Plane | None:
    """The plane along which all taps move in the right operand, or None if it is none."""
    window = contraction.right
    if not _is_element(window.expr) or not _is_zero_padded(contraction):
        return None
    source, before = image_of(window, contraction.before)
    extents = static_shape(source.source)
    if extents is None or len(extents) != len(window.load.indices):
        return None
    lines = [
        dimension_of(index, positions, taps, *rest)
        for index, *rest in zip(window.load.indices, before, extents)
    ]
    column, row = lines[-1], lines[-2] if len(lines) > 2 else None
    if column is None or column.axis is None or column.tap is None:
        return None
    rest = lines[:-1] if row is None else lines[:-2]
    row = row or Dimension(1, None)  # a channel, or there is none
    seen = sum(line.tap is not None for line in (row, column))
    if seen != len(taps) or any(line and line.before for line in rest):
        return None
    own = (row.axis, column.axis)
    outer = (*contraction.batch, *positions)
    return _Plane(row, column, tuple(a for a in outer if not any(a is axis for axis in own)))


def _is_zero_padded(contraction: Contraction) -> bool:
    """Whether at most one stage comes before the sums, and puts zeros around the image."""
    if not contraction.before:
        return True
    padding = contraction.before[0]
    if len(contraction.before) > 1 or not padding.buffer.same_as(contraction.right.load.source):
        return False
    value = padding.value
    image = unguarded(value)
    if not isinstance(value, ir.Call) or image.same_as(value):
        return False
    if float(getattr(value.args[2], "value", 1)) != 0:
        return False
    return _is_element(image)


def _is_element(expr: Expr) -> bool:
    """Whether an expression is an element of memory, in whatever type."""
    return isinstance(expr.value if isinstance(expr, tirx.Cast) else expr, Load)


def _match_plane(
    find: Callable[[Contraction], _Plane | None], why: str
) -> Callable[[Nest, CpuModel], tuple[Contraction, _Plane] | Refused]:
    """The match of a kernel for sums in which ``find`` finds planes; ``why`` it refuses others."""

    def match(nest: Nest, _model: CpuModel) -> tuple[Contraction, _Plane] | Refused:
        found = contraction_of(nest)
        if isinstance(found, Refused):
            return found
        plane = find(found)
        return Refused(why) if plane is None else (found, plane)

    return match


class _Kernel:
    """A kernel that copies planes in the order in which its windows read them.

    Args:
        contraction: What is computed.
        plane: The planes of its right operand.
        model: The processor.

    Attributes:
        lanes: Elements of a vector.
        parallel: Whether workers share the planes.
    """

    def __init__(self, contraction: Contraction, plane: _Plane, model: CpuModel) -> None:
        self.contraction, self.dtype = contraction, contraction.dtype
        self.row, self.column, self.outer = plane.row, plane.column, plane.outer
        self.lanes = lanes_along(self.column.positions, self.dtype, model)
        self.parallel = contraction.flops >= _MIN_PARALLEL_FLOPS and model.threads > 1
        self._image = image_of(contraction.right, contraction.before)[0].source
        reach = (self.column.taps - 1) * self.column.dilation
        # residues of the columns that some tap sees, and elements of a row of one residue
        self._phases = min(self.column.stride, reach + 1)
        whole = -(-self.column.positions // self.lanes) * self.lanes
        self._width = whole + reach // self.column.stride

    def position(self, row: Expr, column: Expr) -> Bound:
        """The loops over positions at one of them."""
        return place_at((self.row, row), (self.column, column))

    def rows_read(self, rows: int) -> int:
        """Rows of the padded image that so many rows of positions need."""
        return (rows - 1) * self.row.stride + (self.row.taps - 1) * self.row.dilation + 1

    def taps_of(self, line: int, rows: int) -> list[tuple[int, int]]:
        """Which of the first ``rows`` rows of positions see a row of the copy, and by which tap."""
        found = [(r, divmod(line - r * self.row.stride, self.row.dilation)) for r in range(rows)]
        return [(r, tap) for r, (tap, rest) in found if not rest and 0 <= tap < self.row.taps]

    def copy_size(self, rows: int) -> int:
        """Elements of the copy for so many rows of positions."""
        return product((self.rows_read(rows), self._phases, self._width))

    def seen_at(self, line: Expr, along: int, left: Expr) -> Expr:
        """Where the vector lies that a tap of a column sees from position ``left`` on."""
        reach, phase = divmod(along * self.column.dilation, self.column.stride)
        at = (line * self._phases + phase) * self._width + left + reach
        return emit.ramp(at, self.lanes)

    def fill(self, copy: Buffer, bound: Bound, first: Expr, rows: int) -> None:
        """Writes the copy for ``rows`` rows of positions from row ``first`` on."""
        with emit.serial(self.rows_read(rows)) as line:
            pixel = emit.index(first * self.row.stride - self.row.before) + line
            start = line * (self._phases * self._width)
            if self.row.inside:
                self._row(copy, bound, start, pixel)
                return
            emit.when(
                tirx.all(pixel >= 0, pixel < emit.i64(self.row.extent)),
                lambda: self._row(copy, bound, start, pixel),
                lambda: self._clear(copy, start, self._phases * self._width),
            )

    def _row(self, copy: Buffer, bound: Bound, start: Expr, row: Expr) -> None:
        """One row of the image: its columns residue by residue, with zeros at both ends."""
        stride, before, extent = self.column.stride, self.column.before, self.column.extent
        done = 0
        if stride == 2 and self._phases == 2 and before >= 0:
            done = self._deinterleave(copy, bound, start, row)
        for phase in range(self._phases):
            # element q of the phase is column q * stride + phase - before
            low = min(max(0, -((phase - before) // stride)), self._width)
            high = min(max(low, -(-(extent + before - phase) // stride)), self._width)
            at = start + phase * self._width
            self._clear(copy, at, low)
            self._clear(copy, at + high, self._width - high)

            def vector(q: Expr, lanes: int, _slot: int, at: Expr = at, phase: int = phase) -> None:
                with emit.lanes_loop(lanes) as lane:
                    column = (q + lane) * stride + (phase - before)
                    emit.store(
                        copy, self._cast(self._pixels(bound, row, column), 1), [at + q + lane]
                    )

            vectors(emit.i64(low + done), max(0, high - low - done), self.lanes, vector)

    def _deinterleave(self, copy: Buffer, bound: Bound, start: Expr, row: Expr) -> int:
        """Deinterleaves even and odd columns by shuffles; returns how many of each."""
        before, lanes, done = self.column.before, self.lanes, 0
        count = min(self.column.extent // 2, self._width - (before + 1) // 2)

        def vector_pair(first: Expr, lanes: int, _slot: int) -> None:
            halves = [
                self._pixels(bound, row, emit.ramp(first * 2 + offset, lanes))
                for offset in (0, lanes)
            ]
            for odd in range(2):
                phase, skipped = (before + odd) % 2, (before + odd) // 2
                to = start + phase * self._width + skipped + first
                order = [2 * lane + odd for lane in range(lanes)]
                value = self._cast(emit.shuffle(halves, order), lanes)
                emit.store(copy, value, [emit.ramp(to, lanes)])

        while lanes >= _MIN_SHUFFLED:
            length = (count - done) // lanes * lanes
            vectors(emit.i64(done), length, lanes, vector_pair)
            done, lanes = done + length, lanes // 2
        return done

    def _clear(self, copy: Buffer, start: Expr, count: int) -> None:
        fill(copy, emit.zero(self.dtype), start, count, self.lanes)

    def _pixels(self, bound: Bound, row: Expr, column: Expr) -> Expr:
        """Pixels as they lie in memory."""
        indices = [substitute(index, bound) for index in self.contraction.right.load.indices]
        if self.row.axis or self.row.tap:
            indices[-2] = row
        indices[-1] = column
        return self._image[tuple(indices)]

    def _cast(self, value: Expr, lanes: int) -> Expr:
        if str(self._image.dtype) == self.dtype:
            return value
        return tirx.Cast(self.dtype + (f"x{lanes}" if lanes > 1 else ""), value)


def _convolved(contraction: Contraction) -> _Plane | None:
    results = product(axis.extent for axis in contraction.rows)
    if not contraction.batch or not _is_element(contraction.left.expr) or results > _MAX_RESULTS:
        return None
    plane = _find_plane(contraction, contraction.columns, contraction.reduce)
    small = plane is not None and plane.row.taps * plane.column.taps <= _MAX_TAPS
    return plane if small else None


class _Convolution(_Kernel):
    def __init__(self, contraction: Contraction, plane: _Plane, model: CpuModel) -> None:
        super().__init__(contraction, plane, model)
        self.tile = self._tile_rows()
        self.band = self._band_rows(model)

    def _tile_rows(self) -> int:
        """The rows of a tile with the fewest cycles per row."""
        height, taps = self.row.positions, self.row.taps * self.column.taps

        def cost(rows: int) -> float:
            reads = _READ * self.rows_read(rows) * self.column.taps
            return -(-height // rows) * (max(rows * taps, reads) + _START)

        most = max(1, min(height, _MAX_ROWS, _MAX_TERMS // taps))
        return min(range(1, most + 1), key=cost)

    def _band_rows(self, model: CpuModel) -> int:
        """Rows of the result of a work item: as many as there are, in whole tiles if fewer."""
        height, planes = self.row.positions, product(axis.extent for axis in self.outer)
        for bands in range(1, -(-height // self.tile) + 1):
            band = -(-height // (bands * self.tile)) * self.tile
            items = planes * -(-height // band)
            fits = self.copy_size(band) * dtype_bytes(self.dtype) <= model.l2_bytes // 4
            if fits and (not self.parallel or imbalance(items, model.threads) <= MAX_IMBALANCE):
                return min(band, height)
        return min(self.tile, height)

    def write(self) -> None:
        """Writes the loops over work items: bands of rows of planes."""

        def item(bound: Bound, ranges: list[Range]) -> None:
            ((first, rows),) = ranges
            copy = emit.stack(self.copy_size(rows), self.dtype)
            self._band(bound, copy, first, rows)

        write_items([*self.outer, Split(self.row.positions, self.band)], self.parallel, item)

    def _band(self, bound: Bound, copy: Buffer, first: Expr, rows: int) -> None:
        self.fill(copy, bound, first, rows)

        def result(member: Bound) -> None:
            vectors(
                emit.i64(0), rows, self.tile,
                lambda top, rows, _slot: self._tiles(bound | member, copy, first, top, rows),
            )  # fmt: skip

        nest([[axis] for axis in self.contraction.rows], result)

    def _tiles(self, bound: Bound, copy: Buffer, first: Expr, top: Expr, rows: int) -> None:
        """All tiles next to each other; ``top`` counts from the ``first`` row of the band."""

        assert self.column.axis is not None
        epilogue = Epilogue(self.contraction, [self.column.axis])

        def vector(at: Expr, lanes: int, _slot: int) -> None:
            tile = Tile(rows, 1, self.lanes, self.dtype)
            total = self._sums(tile, bound, copy, top, at)
            epilogue.write_vectors(
                tile, total, lambda row: bound | self.position(first + top + row, at),
                [Place({}, at, lanes)],
            )  # fmt: skip

        vectors(emit.i64(0), self.column.positions, self.lanes, vector)

    def _sums(self, tile: Tile, bound: Bound, copy: Buffer, top: Expr, left: Expr) -> Buffer:
        lanes, dtype = tile.lanes, tile.dtype
        total = emit.stack(tile.size, dtype)
        for r in range(tile.rows):
            emit.store(total, emit.broadcast(emit.zero(dtype), lanes), [tile.at(r, 0)])
        seen = emit.stack(lanes, dtype)
        for line in range(self.rows_read(tile.rows)):
            taps = self.taps_of(line, tile.rows)
            for along in range(self.column.taps) if taps else ():
                at = self.seen_at(top * self.row.stride + line, along, left)
                emit.store(seen, copy[at], [emit.ramp(0, lanes)])
                for r, tap in taps:
                    weight = emit.broadcast(self._weight(bound, tap, along), lanes)
                    place = tile.at(r, 0)
                    emit.store(total, total[place] + seen[emit.ramp(0, lanes)] * weight, [place])
        return total

    def _weight(self, bound: Bound, row: int, column: int) -> Expr:
        taps = tap_at((self.row, row), (self.column, column))
        return substitute(self.contraction.left.expr, bound | taps)


def _differentiated(contraction: Contraction) -> _Plane | None:
    if contraction.rows or not contraction.batch or not _is_element(contraction.left.expr):
        return None
    plane = _find_plane(contraction, contraction.reduce, contraction.columns)
    if plane is None or plane.column.taps > _MAX_COLUMNS:
        return None
    return plane if plane.row.taps * plane.column.taps <= _MAX_TAPS else None


def rows_of_taps(rows: int, columns: int, model: CpuModel) -> int:
    """Rows of a window of ``rows`` x ``columns`` taps whose sums registers hold, at least one.

    Args:
        rows: Rows of the window.
        columns: Taps of a row.
        model: The processor.
    """
    return max(1, min(rows, (model.registers - _OTHERS) // columns))


class _WeightGradient(_Kernel):
    def __init__(self, contraction: Contraction, plane: _Plane, model: CpuModel) -> None:
        super().__init__(contraction, plane, model)
        lanes, batch = self.lanes, contraction.batch
        self.images = [a for a in self.outer if not any(a is each for each in batch)]
        self.width = -(-self.column.positions // lanes) * lanes
        self.tap_rows = rows_of_taps(self.row.taps, self.column.taps, model)
        spare = max(1, model.registers - 3 - self.tap_rows * self.column.taps)
        self.rows = min(_MAX_SHARED, spare, self.row.positions)

    def write(self) -> None:
        """Writes the loop over channels."""
        dtype, height = self.dtype, self.row.positions
        taps = self.row.taps * self.column.taps
        batch = self.contraction.batch
        with emit.parallel(product(axis.extent for axis in batch), self.parallel) as item:
            bound = bind_group(batch, item)
            copy = emit.workspace([self.copy_size(height)], dtype)
            grad = emit.workspace([height * self.width], dtype)
            sums = Vectors(emit.stack(taps * self.lanes, dtype), self.lanes)
            sums.clear(taps)

            def image(number: Bound) -> None:
                here = bound | number
                self.fill(copy, here, emit.i64(0), height)
                self._copy_grad(grad, here)
                for first in range(0, self.row.taps, self.tap_rows):
                    count = min(self.tap_rows, self.row.taps - first)
                    self._pass(copy, grad, sums, first, count)

            nest([[axis] for axis in self.images], image)
            totals = sums.totals(0, taps)
            epilogue = Epilogue(self.contraction, self.contraction.columns)
            with emit.serial(taps) as tap:
                epilogue.vector(bound, tap, 1, lambda _: totals[tap])

    def _copy_grad(self, grad: Buffer, bound: Bound) -> None:
        """The cotangent of a plane, with zeros up to whole vectors."""
        width = self.column.positions
        with emit.serial(self.row.positions) as row:

            def vector(at: Expr, lanes: int, _slot: int) -> None:
                start = row * self.width + at
                if lanes < self.lanes:
                    emit.clear(grad, start, self.lanes)
                with emit.lanes_loop(lanes) as lane:
                    place = bound | self.position(row, at + lane)
                    emit.store(grad, substitute(self.contraction.left.expr, place), [start + lane])

            vectors(emit.i64(0), width, self.lanes, vector)

    def _pass(self, copy: Buffer, grad: Buffer, sums: Vectors, first: int, count: int) -> None:
        """Adds a plane to the sums of ``count`` rows of taps."""
        lanes, row_taps, here = self.lanes, self.column.taps, emit.ramp(0, self.lanes)
        held = sums.load(first * row_taps, count * row_taps)

        def rows(top: Expr, number: int, _slot: int) -> None:
            def vector(left: Expr, _lanes: int, _slot: int) -> None:
                for line in range(self.rows_read(number)):
                    taps = self.taps_of(line, number)
                    taps = [(r, tap - first) for r, tap in taps if 0 <= tap - first < count]
                    for along in range(row_taps) if taps else ():
                        pixels = copy[self.seen_at(top * self.row.stride + line, along, left)]
                        for r, tap in taps:
                            other = grad[emit.ramp((top + r) * self.width + left, lanes)]
                            buffer = held[tap * row_taps + along]
                            emit.store(buffer, buffer[here] + pixels * other, [here])

            vectors(emit.i64(0), self.width, lanes, vector)

        vectors(emit.i64(0), self.row.positions, self.rows, rows)
        sums.store(held, first * row_taps)


CONVOLUTION = Kernel(
    "conv_depthwise", _match_plane(_convolved, "no depthwise convolution of planes"),
    lambda found, _plan, writer: _Convolution(found[0], found[1], writer.model).write(),
    "depthwise convolution, vectors along rows of the image",
)  # fmt: skip
WEIGHT_GRADIENT = Kernel(
    "conv_depthwise_weight_gradient",
    _match_plane(_differentiated, "no gradient of the weights of a depthwise convolution"),
    lambda found, _plan, writer: _WeightGradient(found[0], found[1], writer.model).write(),
    "gradient of the weights of a depthwise convolution",
)  # fmt: skip
