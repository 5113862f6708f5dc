"""Depthwise convolution of plain images: every channel of every image is a plane of its own.

Blocking: a work item copies the part of one plane that it needs, with zeros around it, into a
buffer that stays in the first-level cache. Columns are taken apart by their residue modulo the
stride on the way, so that neighbouring positions read neighbouring elements. The register tile is
one vector along a row times several rows of the result: a vector that was read counts for all rows
it is a tap of. Images, channels and bands of rows are divided among the workers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import ir, tirx

from tvmgraph.schedule import emit
from tvmgraph.schedule.access import dtype_bytes
from tvmgraph.schedule.contraction import Contraction
from tvmgraph.schedule.epilogue import Epilogue, Place
from tvmgraph.schedule.gemm_plan import MAX_IMBALANCE, imbalance
from tvmgraph.schedule.lines import Line, image_of, line_of, unguarded
from tvmgraph.schedule.microkernel import Tile
from tvmgraph.schedule.point import Bound, vectors
from tvmgraph.schedule.program import Axis, product, static_shape, substitute
from tvmgraph.schedule.target import CpuModel
from tvmgraph.schedule.types import Buffer, Expr, Load

#: Rows of a tile, multiply-adds written out for one, and taps of a window.
_MAX_ROWS, _MAX_TERMS, _MAX_TAPS = 8, 256, 128
#: Cycles of reading a vector that begins anywhere, and of starting a tile, in multiply-adds.
_READ, _START = 1.5, 4
#: Vectors with fewer lanes are not put together by shuffles.
_MIN_SHUFFLED = 4
#: Below this many operations the calling thread works alone.
_MIN_PARALLEL_FLOPS = 100_000


@dataclass(frozen=True)
class _Plane:
    """The two axes of the image along which windows move.

    Attributes:
        row: From top to bottom; one position where the image has one dimension.
        column: From left to right.
        outer: The loops over images and channels.
    """

    row: Line
    column: Line
    outer: tuple[Axis, ...]


def is_plane_depthwise(contraction: Contraction) -> bool:
    """Whether :func:`emit_plane_depthwise` applies."""
    return _plane(contraction) is not None


def emit_plane_depthwise(contraction: Contraction, model: CpuModel) -> None:
    """Writes the kernel; a stage that pads the image becomes part of it."""
    plane = _plane(contraction)
    assert plane is not None
    _PlaneDepthwise(contraction, plane, model).write()


def _plane(contraction: Contraction) -> _Plane | None:
    window = contraction.right
    plain = window.is_plain and contraction.left.is_plain
    if contraction.rows or not contraction.batch or not plain or not _is_zero_padded(contraction):
        return None
    source, before = image_of(window, contraction.before)
    extents = static_shape(source.source)
    if extents is None or len(extents) != len(window.load.indices):
        return None
    axes = zip(window.load.indices, before, extents)
    lines = [line_of(i, contraction.columns, contraction.reduce, *rest) for i, *rest in axes]
    if lines[-1] is None or lines[-1].axis is None or lines[-1].tap is None:
        return None
    column, row = lines[-1], lines[-2] if len(lines) > 2 else None
    rest = lines[:-1] if row is None else lines[:-2]
    if row is None:  # a batch axis, or there is none
        row = Line(None, None, 1, 1, 0, 1)
    found = sum(line.tap is not None for line in (row, column))
    if found != len(contraction.reduce) or any(line and line.before for line in rest):
        return None
    own = (row.axis, column.axis)
    outer = [a for a in (*contraction.batch, *contraction.columns) if not any(a is o for o in own)]
    return _Plane(row, column, tuple(outer)) if row.taps * column.taps <= _MAX_TAPS else None


def _is_zero_padded(contraction: Contraction) -> bool:
    """Whether at most one stage comes before the sums, and puts zeros around the image."""
    if not contraction.before:
        return True
    value = contraction.before[0].value
    if len(contraction.before) > 1 or not isinstance(value, ir.Call):
        return False
    image = unguarded(value)
    if image.same_as(value) or float(getattr(value.args[2], "value", 1)) != 0:
        return False
    return isinstance(image.value if isinstance(image, tirx.Cast) else image, Load)


class _PlaneDepthwise:
    def __init__(self, contraction: Contraction, plane: _Plane, model: CpuModel) -> None:
        self.contraction = contraction
        self.row, self.column, self.outer = plane.row, plane.column, plane.outer
        self.image = image_of(contraction.right, contraction.before)[0]
        lanes = model.lanes_of(dtype_bytes(contraction.dtype))
        while lanes > 4 and self.column.positions <= lanes // 2:
            lanes //= 2
        self.lanes = lanes
        self.parallel = contraction.flops >= _MIN_PARALLEL_FLOPS and model.threads > 1
        self.tile = self._tile_rows()
        self.band = self._band_rows(model)
        reach = (self.column.taps - 1) * self.column.dilation
        self.phases = min(self.column.stride, reach + 1)
        self.width = -(-self.column.positions // lanes) * lanes + reach // self.column.stride

    def _tile_rows(self) -> int:
        """The rows of a tile with the fewest cycles per row."""
        height, taps = self.row.positions, self.row.taps * self.column.taps

        def cost(rows: int) -> float:
            reads = _READ * self._rows_read(rows) * self.column.taps
            return -(-height // rows) * (max(rows * taps, reads) + _START)

        most = max(1, min(height, _MAX_ROWS, _MAX_TERMS // taps))
        return min(range(1, most + 1), key=cost)

    def _rows_read(self, rows: int) -> int:
        """Rows of the padded image that so many rows of the result need."""
        return (rows - 1) * self.row.stride + (self.row.taps - 1) * self.row.dilation + 1

    def _band_rows(self, model: CpuModel) -> int:
        """Rows of the result of a work item: as many as there are, in whole tiles if fewer."""
        height, planes = self.row.positions, product(axis.extent for axis in self.outer)
        for bands in range(1, -(-height // self.tile) + 1):
            band = -(-height // (bands * self.tile)) * self.tile
            items = planes * -(-height // band)
            size = self._rows_read(band) * self.column.positions * self.column.stride
            fits = size * dtype_bytes(self.contraction.dtype) <= model.l2_bytes // 4
            if fits and (not self.parallel or imbalance(items, model.threads) <= MAX_IMBALANCE):
                return min(band, height)
        return min(self.tile, height)

    def write(self) -> None:
        """Writes the loops over work items."""
        height = self.row.positions
        bands = -(-height // self.band)
        extents = [*(axis.extent for axis in self.outer), bands]
        with emit.parallel(product(extents), self.parallel) as item:
            *outer, band = emit.unfuse(item, extents)
            bound: Bound = {axis.var: value for axis, value in zip(self.outer, outer)}
            shape = [self._rows_read(self.band), self.phases, self.width]
            copy = emit.stack(product(shape), self.contraction.dtype)
            emit.pieces(
                (band, bands, self.band, height),
                lambda rows: self._band(bound, copy, band * self.band, rows),
            )

    def _band(self, bound: Bound, copy: Buffer, first: Expr, rows: int) -> None:
        with emit.serial(self._rows_read(rows)) as line:
            pixel = emit.index(first * self.row.stride - self.row.before) + line
            start = line * (self.phases * self.width)
            inside = tirx.all(pixel >= 0, pixel < emit.i64(self.row.extent))
            if self.row.inside:
                self._copy_row(bound, copy, start, pixel)
            else:
                emit.when(
                    inside,
                    lambda: self._copy_row(bound, copy, start, pixel),
                    lambda: self._clear(copy, start, self.phases * self.width),
                )
        full, rest = divmod(rows, self.tile)
        if full:
            with emit.serial(full) as tile:
                self._tiles(bound, copy, first, tile * self.tile, self.tile)
        if rest:
            self._tiles(bound, copy, first, emit.i64(full * self.tile), rest)

    # ---- the copy ---------------------------------------------------------------------------

    def _copy_row(self, bound: Bound, copy: Buffer, start: Expr, row: Expr) -> None:
        """One row of the image: its columns residue by residue, with zeros at both ends."""
        stride, before, extent = self.column.stride, self.column.before, self.column.extent
        done = 0
        if stride == 2 and self.phases == 2 and before >= 0:
            done = self._copy_pairs(bound, copy, start, row)
        for phase in range(self.phases):
            # element q of the phase is column q * stride + phase - before
            low = min(max(0, -((phase - before) // stride)), self.width)
            high = min(max(low, -(-(extent + before - phase) // stride)), self.width)
            at = start + phase * self.width
            self._clear(copy, at, low)
            self._clear(copy, at + high, self.width - high)

            def vector(q: Expr, lanes: int, _slot: int, at: Expr = at, phase: int = phase) -> None:
                with emit.lanes_loop(lanes) as lane:
                    value = self._pixel(bound, row, (q + lane) * stride + (phase - before))
                    emit.store(copy, value, [at + q + lane])

            vectors(emit.i64(low + done), max(0, high - low - done), self.lanes, vector)

    def _copy_pairs(self, bound: Bound, copy: Buffer, start: Expr, row: Expr) -> int:
        """Takes even and odd columns apart by shuffles; returns how many pairs."""
        before, lanes, done = self.column.before, self.lanes, 0
        count = min(self.column.extent // 2, self.width - (before + 1) // 2)

        def pairs(first: Expr, lanes: int, _slot: int) -> None:
            at = first * 2
            halves = [
                self._vector(bound, row, emit.ramp(at + offset, lanes)) for offset in (0, lanes)
            ]
            for odd in range(2):
                phase, before_phase = (before + odd) % 2, (before + odd) // 2
                to = start + phase * self.width + before_phase + first
                order = [2 * lane + odd for lane in range(lanes)]
                value = self._cast(emit.shuffle(halves, order), lanes)
                emit.store(copy, value, [emit.ramp(to, lanes)])

        while lanes >= _MIN_SHUFFLED:
            length = (count - done) // lanes * lanes
            vectors(emit.i64(done), length, lanes, pairs)
            done, lanes = done + length, lanes // 2
        return done

    def _clear(self, copy: Buffer, start: Expr, count: int) -> None:
        def vector(at: Expr, lanes: int, _slot: int) -> None:
            zero = emit.broadcast(emit.zero(self.contraction.dtype), lanes)
            emit.store(copy, zero, [emit.ramp(at, lanes)])

        vectors(start, count, self.lanes, vector)

    def _pixel(self, bound: Bound, row: Expr, column: Expr) -> Expr:
        return self._cast(self._vector(bound, row, column), 1)

    def _vector(self, bound: Bound, row: Expr, column: Expr) -> Expr:
        """Pixels as they lie in memory."""
        indices = [substitute(index, bound) for index in self.contraction.right.load.indices]
        if self.row.axis or self.row.tap:
            indices[-2] = row
        indices[-1] = column
        return self.image.source[tuple(indices)]

    def _cast(self, value: Expr, lanes: int) -> Expr:
        if str(self.image.source.dtype) == self.contraction.dtype:
            return value
        return tirx.Cast(self.contraction.dtype + (f"x{lanes}" if lanes > 1 else ""), value)

    # ---- the sums ---------------------------------------------------------------------------

    def _tiles(self, bound: Bound, copy: Buffer, first: Expr, top: Expr, rows: int) -> None:
        """All tiles next to each other; ``top`` counts from the ``first`` row of the band."""

        def vector(at: Expr, lanes: int, _slot: int) -> None:
            tile = Tile(rows, 1, self.lanes, self.contraction.dtype)
            total = self._sums(tile, bound, copy, top, at)
            Epilogue(self.contraction, [self._column]).write_vectors(
                tile,
                total,
                lambda r: bound | ({self.row.axis.var: first + top + r} if self.row.axis else {}),
                [Place({}, at, lanes)],
            )

        vectors(emit.i64(0), self.column.positions, self.lanes, vector)

    @property
    def _column(self) -> Axis:
        assert self.column.axis is not None
        return self.column.axis

    def _sums(self, tile: Tile, bound: Bound, copy: Buffer, top: Expr, left: Expr) -> Buffer:
        lanes, dtype = tile.lanes, tile.dtype
        total = emit.stack(tile.size, dtype)
        for r in range(tile.rows):
            emit.store(total, emit.broadcast(emit.zero(dtype), lanes), [tile.at(r, 0)])
        seen = emit.stack(lanes, dtype)
        base = top * (self.row.stride * self.phases * self.width) + left
        for line in range(self._rows_read(tile.rows)):
            taps = self._taps_of(line, tile.rows)
            for along in range(self.column.taps) if taps else ():
                reach, phase = divmod(along * self.column.dilation, self.column.stride)
                at = base + (line * self.phases + phase) * self.width + reach
                emit.store(seen, copy[emit.ramp(at, lanes)], [emit.ramp(0, lanes)])
                for r, tap in taps:
                    weight = emit.broadcast(self._weight(bound, tap, along), lanes)
                    place = tile.at(r, 0)
                    emit.store(total, total[place] + seen[emit.ramp(0, lanes)] * weight, [place])
        return total

    def _taps_of(self, line: int, rows: int) -> list[tuple[int, int]]:
        """The rows of a tile that see a row of the image, each with the tap it is for them."""
        found = [(r, divmod(line - r * self.row.stride, self.row.dilation)) for r in range(rows)]
        return [(r, tap) for r, (tap, rest) in found if not rest and 0 <= tap < self.row.taps]

    def _weight(self, bound: Bound, row: int, column: int) -> Expr:
        taps: Bound = {
            line.tap.var: emit.i64(value)
            for line, value in ((self.row, row), (self.column, column))
            if line.tap
        }
        return substitute(self.contraction.left.expr, bound | taps)
