"""Depthwise convolution of plain images: every channel of every image is a plane of its own.

Blocking: a work item copies the part of one plane that it needs into a buffer that stays in the
first-level cache. The register tile is one vector along a row times several rows of the result: a
vector that was read counts for all rows it is a tap of. Where a channel has several results, these
read the same copy. Images, channels and bands of rows are divided among the workers.
"""

from __future__ import annotations

from tvmgraph.backend.cpu.kernels.conv.plane import Plane, PlaneCopy, find_plane, is_element
from tvmgraph.backend.cpu.kernels.gemm.epilogue import Epilogue, Place
from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile
from tvmgraph.backend.cpu.kernels.gemm.plan import MAX_IMBALANCE, imbalance
from tvmgraph.backend.cpu.kernels.product import contraction_of
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.point import Bound, nest, vectors
from tvmgraph.backend.loop_ir.program import Axis, product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Rows of a tile, multiply-adds written out for one, taps of a window, and results of a channel.
_MAX_ROWS, _MAX_TERMS, _MAX_TAPS, _MAX_RESULTS = 8, 256, 128, 8
#: Cycles of reading a vector that begins anywhere, and of starting a tile, in multiply-adds.
_READ, _START = 1.5, 4
#: Below this many operations the calling thread works alone.
_MIN_PARALLEL_FLOPS = 100_000


def _plane(contraction: Contraction) -> Plane | None:
    results = product(axis.extent for axis in contraction.rows)
    if not contraction.batch or not is_element(contraction.left.expr) or results > _MAX_RESULTS:
        return None
    plane = find_plane(contraction, contraction.columns, contraction.reduce)
    small = plane is not None and plane.row.taps * plane.column.taps <= _MAX_TAPS
    return plane if small else None


class _PlaneDepthwise:
    def __init__(self, contraction: Contraction, plane: Plane, model: CpuModel) -> None:
        self.contraction = contraction
        self.row, self.column, self.outer = plane.row, plane.column, plane.outer
        lanes = model.lanes_of(dtype_bytes(contraction.dtype))
        while lanes > 4 and self.column.positions <= lanes // 2:
            lanes //= 2
        self.lanes = lanes
        self.copy = PlaneCopy(contraction, plane, lanes)
        self.parallel = contraction.flops >= _MIN_PARALLEL_FLOPS and model.threads > 1
        self.tile = self._tile_rows()
        self.band = self._band_rows(model)

    def _tile_rows(self) -> int:
        """The rows of a tile with the fewest cycles per row."""
        height, taps = self.row.positions, self.row.taps * self.column.taps

        def cost(rows: int) -> float:
            reads = _READ * self.copy.rows_read(rows) * self.column.taps
            return -(-height // rows) * (max(rows * taps, reads) + _START)

        most = max(1, min(height, _MAX_ROWS, _MAX_TERMS // taps))
        return min(range(1, most + 1), key=cost)

    def _band_rows(self, model: CpuModel) -> int:
        """Rows of the result of a work item: as many as there are, in whole tiles if fewer."""
        height, planes = self.row.positions, product(axis.extent for axis in self.outer)
        for bands in range(1, -(-height // self.tile) + 1):
            band = -(-height // (bands * self.tile)) * self.tile
            items = planes * -(-height // band)
            fits = self.copy.size(band) * dtype_bytes(self.contraction.dtype) <= model.l2_bytes // 4
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
            copy = emit.stack(self.copy.size(self.band), self.contraction.dtype)
            emit.peel_last(
                (band, bands, self.band, height),
                lambda rows: self._band(bound, copy, band * self.band, rows),
            )

    def _band(self, bound: Bound, copy: Buffer, first: Expr, rows: int) -> None:
        self.copy.fill(copy, bound, first, rows)
        full, rest = divmod(rows, self.tile)

        def result(member: Bound) -> None:
            here = bound | member
            if full:
                with emit.serial(full) as tile:
                    self._tiles(here, copy, first, tile * self.tile, self.tile)
            if rest:
                self._tiles(here, copy, first, emit.i64(full * self.tile), rest)

        nest([[axis] for axis in self.contraction.rows], result)

    def _tiles(self, bound: Bound, copy: Buffer, first: Expr, top: Expr, rows: int) -> None:
        """All tiles next to each other; ``top`` counts from the ``first`` row of the band."""

        def place(row: Expr) -> Bound:
            return bound | ({self.row.axis.var: first + top + row} if self.row.axis else {})

        def vector(at: Expr, lanes: int, _slot: int) -> None:
            tile = Tile(rows, 1, self.lanes, self.contraction.dtype)
            total = self._sums(tile, bound, copy, top, at)
            epilogue = Epilogue(self.contraction, [self._column])
            epilogue.write_vectors(tile, total, place, [Place({}, at, lanes)])

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
        for line in range(self.copy.rows_read(tile.rows)):
            taps = self.copy.taps_of(line, tile.rows)
            for along in range(self.column.taps) if taps else ():
                at = self.copy.at(top * self.row.stride + line, along, left)
                emit.store(seen, copy[at], [emit.ramp(0, lanes)])
                for r, tap in taps:
                    weight = emit.broadcast(self._weight(bound, tap, along), lanes)
                    place = tile.at(r, 0)
                    emit.store(total, total[place] + seen[emit.ramp(0, lanes)] * weight, [place])
        return total

    def _weight(self, bound: Bound, row: int, column: int) -> Expr:
        taps: Bound = {
            line.tap.var: emit.i64(value)
            for line, value in ((self.row, row), (self.column, column))
            if line.tap
        }
        return substitute(self.contraction.left.expr, bound | taps)


def _match(nest: Nest, _model: CpuModel) -> tuple[Contraction, Plane] | Refused:
    found = contraction_of(nest)
    if isinstance(found, Refused):
        return found
    plane = _plane(found)
    return Refused("no depthwise convolution of planes") if plane is None else (found, plane)


def _emit(found: tuple[Contraction, Plane], _plan: None, writer: Writer[CpuModel]) -> None:
    """Writes the kernel; a stage that pads the image becomes part of it."""
    _PlaneDepthwise(*found, writer.model).write()


KERNEL = Kernel(
    "conv_depthwise", _match, _emit, "depthwise convolution, vectors along rows of the image"
)
