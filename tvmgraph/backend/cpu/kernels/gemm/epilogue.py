"""What happens to a tile of finished sums: bias, activation, residual, and the store."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import access, variables_in
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.point import Bound, Point, bind_group
from tvmgraph.backend.loop_ir.program import Axis, map_loads, node_count, product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, dtype_of

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
            self._write_runs(tile, sums, outer, row, places)
            return
        self.write_vectors(tile, sums, lambda r: bind_group(rows, row + r), places, adjacent=True)

    @functools.cached_property
    def _run(self) -> int:
        """How many columns lie side by side in the result, if some but not all of them do, and what
        becomes of the sums does not depend on the column; else 0."""
        stage = self.contraction.epilogue
        strides = access(stage.buffer, stage.indices, self.columns).strides
        if strides is None or self._depends_on_columns:
            return 0
        extents = [(stride, axis.extent) for stride, axis in zip(strides, self.columns)]
        run = 1
        while extents and extents[-1][0] == run:
            run *= extents.pop()[1]
        written_out = node_count(*stage.exprs) <= _MAX_WRITTEN_OUT
        return run if extents and run > 1 and written_out else 0

    @property
    def _depends_on_columns(self) -> bool:
        """Whether something else than its sum differs from column to column."""

        def without_sums(load: Load) -> Expr:
            return tirx.const(0, dtype_of(load)) if self._is_sum(load) else load

        others = [map_loads(expr, without_sums) for expr in self.contraction.epilogue.exprs]
        return any(variables_in(others, [axis.var for axis in self.columns]))

    def _is_sum(self, load: Load) -> bool:
        return load.source.same_as(self.contraction.sums)

    def _write_runs(
        self, tile: Tile, sums: Buffer, outer: Bound, row: Expr, places: Sequence[Place]
    ) -> None:
        """Stores a tile of which some vectors end in another run of columns.

        Images of 7 x 7, for instance, one after the other: most vectors lie in one image. Of the
        others every column is stored by itself, in a loop: the addresses of all of them would be
        more code than the product. The results are computed before, apart from these loops:
        constants of a loop would take registers from the sums.

        Args:
            tile: Its shape.
            sums: The accumulators.
            outer: Values of the batch and outer column axes.
            row: The first row.
            places: Where each vector of a row goes.
        """
        rows, stage = self.contraction.rows, self.contraction.epilogue
        results = emit.stack(tile.size, str(stage.buffer.dtype))
        width = tile.vectors * tile.lanes
        for r in range(tile.rows):
            for place in places:
                first = emit.i64(r * width + place.vector * tile.lanes + place.skipped)
                self.vector(
                    place.outer | bind_group(rows, row + r),
                    place.column, place.lanes,
                    lambda lane, first=first: sums[first + lane], (results, first),
                )  # fmt: skip
        with emit.rolled(tile.rows) as r:
            bound = outer | bind_group(rows, row + r)
            for place in _joined(places, tile.lanes):
                first = r * width + place.vector * tile.lanes + place.skipped
                self._copy(bound, place, results, first)

    def _copy(self, bound: Bound, place: Place, results: Buffer, first: Expr) -> None:
        """Copies neighbouring results of a row to where they are stored."""
        run, stage = self._run, self.contraction.epilogue
        inside = tirx.floormod(place.column, emit.i64(run))
        image = tirx.floordiv(place.column, emit.i64(run))
        parts, inner = list(self.columns), list[Axis]()
        while product(axis.extent for axis in inner) < run:
            inner.insert(0, parts.pop())

        def store(lane: Expr, here: Bound) -> None:
            at = [substitute(index, bound | here) for index in stage.indices]
            emit.store(stage.buffer, results[first + lane], at)

        def together() -> None:
            with emit.lanes_loop(place.lanes) as lane:
                store(lane, bind_group(parts, image) | bind_group(inner, inside + lane))

        def singly() -> None:
            with emit.rolled(place.lanes) as lane:
                store(lane, bind_group(self.columns, place.column + lane))

        emit.when(inside + place.lanes <= run, together, singly)

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
        spilled = emit.stack(tile.size, tile.dtype)
        for r in range(tile.rows):
            for v in range(tile.vectors):
                emit.store(spilled, sums[tile.at(r, v)], [tile.at(r, v)])
        self.write_rows(tile, spilled, tile.rows, rows, places, adjacent)

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

    def vector(
        self,
        bound: Bound,
        column: Expr,
        lanes: int,
        value: Callable[[Expr], Expr],
        to: tuple[Buffer, Expr] | None = None,
    ) -> None:
        """Stores neighbouring columns of one row.

        Args:
            bound: Values of all axes of the result but the columns.
            column: The first column.
            lanes: How many columns.
            value: Gives the finished sum of a lane, counted from ``column``.
            to: A flat buffer, and the first place in it, that takes them instead of the result.
        """
        stage = self.contraction.epilogue
        point = Point(stage, lanes)
        with emit.lanes_loop(lanes) as lane:

            def visit(load: Load) -> Expr:
                return self._sum(value(lane)) if self._is_sum(load) else load

            here = bound | bind_group(self.columns, column + lane)
            stored = point.values(here, lane, lambda expr: map_loads(expr, visit))[0]
            buffer, at = (to[0], [to[1] + lane]) if to else (stage.buffer, point.indices(here))
            emit.store(buffer, stored, at)

    def _sum(self, value: Expr) -> Expr:
        """A sum in the type that the epilogue expects."""
        dtype = str(self.contraction.sums.dtype)
        return value if dtype == self.contraction.dtype else tirx.Cast(dtype, value)


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
