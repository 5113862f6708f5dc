"""Planes of images, one channel of one image each, copied to where windows read them quickly.

The copy has zeros around the plane, and its columns are taken apart by their residue modulo the
stride: neighbouring positions of a window read neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import ir, tirx

from tvmgraph.backend.cpu.kernels.conv.image_axis import Line, image_of, line_of, unguarded
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.point import Bound, vectors
from tvmgraph.backend.loop_ir.program import Axis, product, static_shape, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load

#: Vectors with fewer lanes are not put together by shuffles.
_MIN_SHUFFLED = 4


@dataclass(frozen=True)
class Plane:
    """The two axes of an image along which windows move.

    Attributes:
        row: From top to bottom; one position where the image has one dimension.
        column: From left to right.
        outer: The loops over positions of neither: images and channels.
    """

    row: Line
    column: Line
    outer: tuple[Axis, ...]


def find_plane(
    contraction: Contraction, positions: Sequence[Axis], taps: Sequence[Axis]
) -> Plane | None:
    """The plane that windows move over in the right operand, or None if it is none.

    Args:
        contraction: Sums over the window, or over its positions.
        positions: Loops over positions, and over images.
        taps: Loops over taps; all of them must move along the plane.
    """
    window = contraction.right
    if not is_element(window.expr) or not _is_zero_padded(contraction):
        return None
    source, before = image_of(window, contraction.before)
    extents = static_shape(source.source)
    if extents is None or len(extents) != len(window.load.indices):
        return None
    lines = [
        line_of(index, positions, taps, *rest)
        for index, *rest in zip(window.load.indices, before, extents)
    ]
    column, row = lines[-1], lines[-2] if len(lines) > 2 else None
    if column is None or column.axis is None or column.tap is None:
        return None
    rest = lines[:-1] if row is None else lines[:-2]
    row = row or Line(None, None, 1, 1, 0, 1)  # a channel, or there is none
    seen = sum(line.tap is not None for line in (row, column))
    if seen != len(taps) or any(line and line.before for line in rest):
        return None
    own = (row.axis, column.axis)
    outer = (*contraction.batch, *positions)
    return Plane(row, column, tuple(a for a in outer if not any(a is axis for axis in own)))


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
    return is_element(image)


def is_element(expr: Expr) -> bool:
    """Whether an expression is an element of memory, in whatever type."""
    return isinstance(expr.value if isinstance(expr, tirx.Cast) else expr, Load)


class PlaneCopy:
    """Copies of planes, in the order in which windows read them.

    Args:
        contraction: What reads them, as its right operand.
        plane: The plane.
        lanes: Elements of a vector.

    Attributes:
        phases: Residues of the columns that some tap sees.
        width: Elements of a row of one residue, up to whole vectors of positions.
    """

    def __init__(self, contraction: Contraction, plane: Plane, lanes: int) -> None:
        self.row, self.column = plane.row, plane.column
        self.lanes = lanes
        self.dtype = contraction.dtype
        self._indices = contraction.right.load.indices
        self._image = image_of(contraction.right, contraction.before)[0].source
        reach = (self.column.taps - 1) * self.column.dilation
        self.phases = min(self.column.stride, reach + 1)
        self.width = -(-self.column.positions // lanes) * lanes + reach // self.column.stride

    def rows_read(self, rows: int) -> int:
        """Rows of the padded image that so many rows of positions need."""
        return (rows - 1) * self.row.stride + (self.row.taps - 1) * self.row.dilation + 1

    def taps_of(self, line: int, rows: int) -> list[tuple[int, int]]:
        """Which of the first ``rows`` rows of positions see a row of the copy, and by which tap."""
        found = [(r, divmod(line - r * self.row.stride, self.row.dilation)) for r in range(rows)]
        return [(r, tap) for r, (tap, rest) in found if not rest and 0 <= tap < self.row.taps]

    def size(self, rows: int) -> int:
        """Elements of the copy for so many rows of positions."""
        return product((self.rows_read(rows), self.phases, self.width))

    def at(self, line: Expr, along: int, left: Expr) -> Expr:
        """Where the vector lies that a tap of a column sees from position ``left`` on."""
        reach, phase = divmod(along * self.column.dilation, self.column.stride)
        at = (line * self.phases + phase) * self.width + left + reach
        return emit.ramp(at, self.lanes)

    def fill(self, copy: Buffer, bound: Bound, first: Expr, rows: int) -> None:
        """Writes the copy for ``rows`` rows of positions from row ``first`` on."""
        with emit.serial(self.rows_read(rows)) as line:
            pixel = emit.index(first * self.row.stride - self.row.before) + line
            start = line * (self.phases * self.width)
            if self.row.inside:
                self._row(copy, bound, start, pixel)
                return
            emit.when(
                tirx.all(pixel >= 0, pixel < emit.i64(self.row.extent)),
                lambda: self._row(copy, bound, start, pixel),
                lambda: self._clear(copy, start, self.phases * self.width),
            )

    def _row(self, copy: Buffer, bound: Bound, start: Expr, row: Expr) -> None:
        """One row of the image: its columns residue by residue, with zeros at both ends."""
        stride, before, extent = self.column.stride, self.column.before, self.column.extent
        done = 0
        if stride == 2 and self.phases == 2 and before >= 0:
            done = self._pairs(copy, bound, start, row)
        for phase in range(self.phases):
            # element q of the phase is column q * stride + phase - before
            low = min(max(0, -((phase - before) // stride)), self.width)
            high = min(max(low, -(-(extent + before - phase) // stride)), self.width)
            at = start + phase * self.width
            self._clear(copy, at, low)
            self._clear(copy, at + high, self.width - high)

            def vector(q: Expr, lanes: int, _slot: int, at: Expr = at, phase: int = phase) -> None:
                with emit.lanes_loop(lanes) as lane:
                    column = (q + lane) * stride + (phase - before)
                    emit.store(
                        copy, self._cast(self._pixels(bound, row, column), 1), [at + q + lane]
                    )

            vectors(emit.i64(low + done), max(0, high - low - done), self.lanes, vector)

    def _pairs(self, copy: Buffer, bound: Bound, start: Expr, row: Expr) -> int:
        """Takes even and odd columns apart by shuffles; returns how many pairs."""
        before, lanes, done = self.column.before, self.lanes, 0
        count = min(self.column.extent // 2, self.width - (before + 1) // 2)

        def pairs(first: Expr, lanes: int, _slot: int) -> None:
            halves = [
                self._pixels(bound, row, emit.ramp(first * 2 + offset, lanes))
                for offset in (0, lanes)
            ]
            for odd in range(2):
                phase, skipped = (before + odd) % 2, (before + odd) // 2
                to = start + phase * self.width + skipped + first
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
            zero = emit.broadcast(emit.zero(self.dtype), lanes)
            emit.store(copy, zero, [emit.ramp(at, lanes)])

        vectors(start, count, self.lanes, vector)

    def _pixels(self, bound: Bound, row: Expr, column: Expr) -> Expr:
        """Pixels as they lie in memory."""
        indices = [substitute(index, bound) for index in self._indices]
        if self.row.axis or self.row.tap:
            indices[-2] = row
        indices[-1] = column
        return self._image[tuple(indices)]

    def _cast(self, value: Expr, lanes: int) -> Expr:
        if str(self._image.dtype) == self.dtype:
            return value
        return tirx.Cast(self.dtype + (f"x{lanes}" if lanes > 1 else ""), value)
