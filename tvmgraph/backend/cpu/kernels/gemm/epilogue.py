"""What happens to a tile of finished sums: bias, activation, residual, and the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.point import Bound, Point, bind_group
from tvmgraph.backend.loop_ir.program import Axis, map_loads
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
    """

    outer: Bound
    column: Expr
    lanes: int
    skipped: int = 0


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
            places.append(Place(outer, column + v * tile.lanes, lanes, skipped))
        self.write_vectors(tile, sums, lambda r: bind_group(self.contraction.rows, row + r), places)

    def write_vectors(
        self,
        tile: Tile,
        sums: Buffer,
        rows: Callable[[Expr], Bound],
        places: Sequence[Place],
    ) -> None:
        """Stores a tile whose vectors lie anywhere.

        Args:
            tile: Its shape.
            sums: The accumulators.
            rows: Values of the row axes for a row of the tile.
            places: Where each vector of a row goes.
        """
        if self._is_small():
            for r in range(tile.rows):
                self._row(tile, sums, rows(emit.i64(r)), places, emit.i64(r))
            return
        spilled = emit.stack(tile.size, tile.dtype)
        for r in range(tile.rows):
            for v in range(tile.vectors):
                emit.store(spilled, sums[tile.at(r, v)], [tile.at(r, v)])
        with emit.serial(tile.rows) as r:
            self._row(tile, spilled, rows(r), places, r)

    def _row(
        self,
        tile: Tile,
        sums: Buffer,
        row: Bound,
        places: Sequence[Place],
        position: Expr,
    ) -> None:
        for v, place in enumerate(places):
            start = position * (tile.vectors * tile.lanes) + v * tile.lanes + place.skipped
            self.vector(
                place.outer | row,
                place.column,
                place.lanes,
                lambda lane, start=start: sums[start + lane],
            )

    def vector(self, bound: Bound, column: Expr, lanes: int, value: Callable[[Expr], Expr]) -> None:
        """Stores ``lanes`` neighbouring columns; ``value`` gives the sum in a lane."""
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

    def _is_small(self) -> bool:
        nodes = 0

        def visit(_node: Expr) -> None:
            nonlocal nodes
            nodes += 1

        for expr in self.contraction.epilogue.exprs:
            tvm_ffi.structural_walk(expr, (ir.Expr, visit))
        return nodes <= _MAX_WRITTEN_OUT
