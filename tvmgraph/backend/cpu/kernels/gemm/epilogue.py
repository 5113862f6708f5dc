"""What happens to a tile of finished sums: bias, activation, residual, and the store."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import access
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.point import Bound, Point, bind_group
from tvmgraph.backend.loop_ir.program import Axis, map_loads, node_count, product
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load

#: Expressions up to this many nodes are written out for every vector of the tile; larger ones go
#: into a loop, through memory, because their code would dominate the compile time.
_MAX_WRITTEN_OUT = 24


@dataclass(frozen=True)
class Place:
    """Where a vector of sums is stored.

    Attributes:
        outer: Values of all axes but the rows' and the columns'.
        column: The first column.
        lanes: Columns to store.
        skipped: Lanes before the first one stored.
        vector: The first vector of the tile's row.
    """

    outer: Bound
    column: Expr
    lanes: int
    skipped: int = 0
    vector: int = 0


@dataclass(frozen=True)
class Epilogue:
    """The last stage of a contraction.

    Attributes:
        contraction: The contraction.
        columns: The column axes that panels are cut from.
    """

    contraction: Contraction
    columns: Sequence[Axis]

    def write(
        self,
        tile: Tile,
        sums: Buffer,
        outer: Bound,
        row: Expr,
        column: Expr,
        columns: int,
        shift: int = 0,
    ) -> None:
        """Stores a tile of a matrix.

        Args:
            tile: Its shape.
            sums: The accumulators.
            outer: Values of the batch and outer column axes.
            row: The first row.
            column: The first column.
            columns: Number of columns that exist.
            shift: Lanes of the last vector that repeat columns of the one before it.
        """
        places: list[Place] = []
        for v in range(tile.vectors):
            lanes = min(tile.lanes, columns - v * tile.lanes)
            skipped = shift if lanes < tile.lanes else 0
            places.append(Place(outer, column + v * tile.lanes, lanes, skipped, v))
        rows = self.contraction.rows
        if self._run % tile.lanes:
            spilled = _spilled(tile, sums)
            with emit.rolled(tile.rows) as r:
                bound = outer | bind_group(rows, row + r)
                for place in _joined(places, tile.lanes):
                    first = r * (tile.vectors * tile.lanes) + place.vector * tile.lanes
                    self._across(bound, place, spilled, first + place.skipped)
            return
        self.write_vectors(tile, sums, lambda r: bind_group(rows, row + r), places, adjacent=True)

    @functools.cached_property
    def _run(self) -> int:
        """How many columns lie side by side in the result, 0 if all of them do or it is unknown."""
        stage = self.contraction.epilogue
        strides = access(stage.buffer, stage.indices, self.columns).strides
        if strides is None:
            return 0
        extents = [(stride, axis.extent) for stride, axis in zip(strides, self.columns)]
        run = 1
        while extents and extents[-1][0] == run:
            run *= extents.pop()[1]
        return run if extents else 0

    def _across(self, bound: Bound, place: Place, sums: Buffer, first: Expr) -> None:
        """Stores a vector of columns of which some may lie elsewhere than the others.

        Images of 7 x 7, for instance, one after the other: most vectors lie in one image. Of the
        others every column is stored by itself, in a loop: the addresses of all of them would be
        more code than the product.

        Args:
            bound: Values of all axes but the columns'.
            place: Which columns.
            sums: The finished sums, in memory.
            first: The place of the first one.
        """
        inside = tirx.floormod(place.column, emit.i64(self._run))
        image = tirx.floordiv(place.column, emit.i64(self._run))
        parts = list(self.columns)
        inner: list[Axis] = []
        while product(axis.extent for axis in inner) < self._run:
            inner.insert(0, parts.pop())

        def together() -> None:
            whole = Epilogue(self.contraction, inner)
            here = bound | bind_group(parts, image)
            whole.vector(here, inside, place.lanes, lambda lane: sums[first + lane])

        def singly() -> None:
            with emit.rolled(place.lanes) as lane:
                self.vector(bound, place.column + lane, 1, lambda _: sums[first + lane])

        emit.when(inside + place.lanes <= self._run, together, singly)

    def write_vectors(
        self,
        tile: Tile,
        sums: Buffer,
        rows: Callable[[Expr], Bound],
        places: Sequence[Place],
        adjacent: bool = False,
    ) -> None:
        """Stores a tile whose vectors lie anywhere.

        Args:
            tile: Its shape.
            sums: The accumulators.
            rows: Values of the row axes for a row of the tile.
            places: Where each vector of a row goes.
            adjacent: Whether every second vector goes beside the one before it.
        """
        if node_count(*self.contraction.epilogue.exprs) <= _MAX_WRITTEN_OUT:
            for r in range(tile.rows):
                self._row(tile, sums, rows(emit.i64(r)), places, emit.i64(r))
            return
        self.write_rows(tile, _spilled(tile, sums), tile.rows, rows, places, adjacent)

    def write_rows(
        self,
        tile: Tile,
        sums: Buffer,
        count: int,
        rows: Callable[[Expr], Bound],
        places: Sequence[Place],
        adjacent: bool = False,
    ) -> None:
        """Stores rows of sums that lie in memory, in a loop.

        Args:
            tile: Vectors of a row, and lanes.
            sums: The rows, one after the other.
            count: How many.
            rows: Values of the row axes for one of them.
            places: Where each vector of a row goes.
            adjacent: Whether every second vector goes beside the one before it.
        """
        joined = _joined(places, tile.lanes) if adjacent else places
        with emit.serial(count) as r:
            self._row(tile, sums, rows(r), joined, r)

    def _row(
        self, tile: Tile, sums: Buffer, row: Bound, places: Sequence[Place], position: Expr
    ) -> None:
        for place in places:
            first = place.vector * tile.lanes + place.skipped
            start = position * (tile.vectors * tile.lanes) + first
            self.vector(
                place.outer | row,
                place.column,
                place.lanes,
                lambda lane, start=start: sums[start + lane],
            )

    def vector(self, bound: Bound, column: Expr, lanes: int, value: Callable[[Expr], Expr]) -> None:
        """Stores neighbouring columns of one row.

        Args:
            bound: Values of all axes of the result but the columns.
            column: The first column.
            lanes: How many columns.
            value: Gives the finished sum of a lane, counted from ``column``.
        """
        stage, sums = self.contraction.epilogue, self.contraction.sums
        point = Point(stage, lanes)
        with emit.lanes_loop(lanes) as lane:

            def visit(load: Load) -> Expr:
                return self._sum(value(lane)) if load.source.same_as(sums) else load

            here = bound | bind_group(self.columns, column + lane)
            stored = point.values(here, lane, lambda expr: map_loads(expr, visit))[0]
            emit.store(stage.buffer, stored, point.indices(here))

    def _sum(self, value: Expr) -> Expr:
        """A sum in the type that the epilogue expects."""
        dtype = str(self.contraction.sums.dtype)
        return value if dtype == self.contraction.dtype else tirx.Cast(dtype, value)


def _spilled(tile: Tile, sums: Buffer) -> Buffer:
    """The sums of a tile in memory."""
    spilled = emit.stack(tile.size, tile.dtype)
    for r in range(tile.rows):
        for v in range(tile.vectors):
            emit.store(spilled, sums[tile.at(r, v)], [tile.at(r, v)])
    return spilled


def _joined(places: Sequence[Place], lanes: int) -> list[Place]:
    """Whole vectors in pairs: a long formula waits for its own terms half of the time, and loads
    its constants once for both."""
    found: list[Place] = []
    for place in places:
        pair = bool(found) and place.vector % 2 == 1
        if pair and found[-1].lanes == place.lanes == lanes and not place.skipped:
            found[-1] = replace(found[-1], lanes=2 * lanes)
        else:
            found.append(place)
    return found
