"""Finishing sums: the elementwise epilogue, and wide stores of what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, at_point, i32, split
from tvmgraph.backend.cuda.kernels.gemm_operand import run_of
from tvmgraph.backend.cuda.kernels.gemm_plan import Extents, Grid
from tvmgraph.backend.cuda.kernels.iteration import has_choice, uses
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.contraction import Contraction
from tvmgraph.backend.loop_ir.program import map_loads, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var, as_dtype, dtype_of

#: What an epilogue reads, with registers for as many turns as are read ahead.
Early = Sequence[tuple[Load, Buffer]]


@dataclass(frozen=True)
class Output:
    """What a contraction stores.

    Attributes:
        contraction: The contraction.
    """

    contraction: Contraction

    @cached_property
    def lanes(self) -> int:
        """Neighbouring columns that one store can write."""
        stage = self.contraction.epilogue
        size = dtype_bytes(str(stage.buffer.dtype))
        return min(self._run(stage.buffer[tuple(stage.indices)]), VECTOR_BYTES // size)

    def _run(self, load: Load) -> int:
        found = self.contraction
        return run_of(load, found.columns, (*found.batch, *found.rows))

    @cached_property
    def _wide(self) -> list[Load]:
        """What the epilogue reads along the columns."""
        stage = self.contraction.epilogue
        if any(map(has_choice, stage.exprs)):
            return []
        return [
            load
            for load in stage.loads
            if not load.source.same_as(self.contraction.sums) and self._run(load) >= self.lanes
        ]

    @cached_property
    def by_row(self) -> list[Load]:
        """Those of them that every row has its own of, such as the side of a residual block."""
        rows = [axis.var for axis in (*self.contraction.batch, *self.contraction.rows)]
        return [load for load in self._wide if any(uses(index, rows) for index in load.indices)]

    def read(
        self, batch: dict[Var, Expr], row: Expr, column: Expr, lanes: int, early: Early, turn: Expr
    ) -> None:
        """Reads what :meth:`write` will need of :attr:`by_row` into registers.

        Args:
            batch: Values of the batch axes.
            row: The row.
            column: The first column.
            lanes: How many.
            early: The registers.
            turn: Which ones of them.
        """
        at = batch | split(row, self.contraction.rows) | split(column, self.contraction.columns)
        for load, held in early:
            *outer, last = (device.to_int32(index, at) for index in load.indices)
            with device.vector(lanes) as lane:
                element = load.source[(*outer, last + lane)]
                device.store(held, element, [turn * i32(lanes) + lane])

    def write(
        self,
        batch: dict[Var, Expr],
        row: Expr,
        column: Expr,
        lanes: int,
        sums: Callable[[int], Expr],
        early: Early = (),
        turn: Expr | None = None,
    ) -> None:
        """Stores ``lanes`` neighbouring columns of a row.

        Args:
            batch: Values of the batch axes.
            row: The row.
            column: The first column.
            lanes: How many, at most :attr:`lanes`.
            sums: Gives the sum of a column.
            early: What :meth:`read` was given.
            turn: Likewise.
        """
        stage, found = self.contraction.epilogue, self.contraction
        at_row = batch | split(row, found.rows)
        first = at_row | split(column, found.columns)
        start = i32(0) if turn is None else turn * i32(lanes)
        ahead = [(load, held, start) for load, held in early]
        ahead += self._read_ahead(first, lanes, early) if lanes > 1 else []
        results = device.registers(lanes, str(stage.buffer.dtype))
        for lane in range(lanes):
            here = at_row | split(column + i32(lane), found.columns) if lane else first
            device.store(results, self._value(here, lane, sums(lane), ahead), [lane])
        indices = [device.to_int32(index, first) for index in stage.indices]
        with device.vector(lanes) as lane:
            *outer, last = indices
            device.store(stage.buffer, results[lane], [*outer, last + lane])

    def _read_ahead(
        self, first: dict[Var, Expr], lanes: int, early: Early
    ) -> list[tuple[Load, Buffer, Expr]]:
        ahead: list[tuple[Load, Buffer, Expr]] = []
        for load in self._wide:
            if any(load is known for known, _ in early):
                continue
            held = device.registers(lanes, str(load.source.dtype))
            *outer, last = (device.to_int32(index, first) for index in load.indices)
            with device.vector(lanes) as lane:
                device.store(held, load.source[(*outer, last + lane)], [lane])
            ahead.append((load, held, i32(0)))
        return ahead

    def _value(
        self, here: dict[Var, Expr], lane: int, total: Expr, ahead: list[tuple[Load, Buffer, Expr]]
    ) -> Expr:
        """What is stored at one point."""
        found, names = self.contraction, {}

        def visit(load: Load) -> Expr:
            if load.source.same_as(found.sums):
                return as_dtype(total, str(found.sums.dtype))
            held = next(
                (regs[at + i32(lane)] for known, regs, at in ahead if known.same_as(load)), None
            )
            return load if held is None else held

        def resolve(expr: Expr) -> Expr:
            return at_point(substitute(map_loads(expr, visit), names), here)

        for var, value in found.epilogue.lets:
            register = device.registers(1, dtype_of(var))
            device.store(register, resolve(value), [0])
            names[var] = register[i32(0)]
        return resolve(found.epilogue.value)


@dataclass(frozen=True)
class Sink:
    """Where the sums of a block of threads go: to the epilogue, or among the partial sums.

    Attributes:
        output: The epilogue.
        extents: Sizes of the products.
        grid: Size of the tile.
        batch: Values of the batch axes.
        row: First row of the tile.
        column: First column.
        partial: Partial sums, where blocks share K.
        place: Where those of this block's product begin.
    """

    output: Output
    extents: Extents
    grid: Grid
    batch: dict[Var, Expr]
    row: Expr
    column: Expr
    partial: Buffer | None
    place: Expr | None

    @property
    def lanes(self) -> int:
        """Neighbouring columns that are stored at once, at best."""
        if self.partial is None:
            return self.output.lanes
        return next(lanes for lanes in (4, 2, 1) if self.extents.columns % lanes == 0)

    def early(self, lanes: int, turns: int) -> Early:
        """Registers for what the epilogue of some turns reads, to be read ahead of them.

        Args:
            lanes: How many neighbouring columns a turn reads.
            turns: How many turns are read ahead.
        """
        if self.partial is not None or lanes == 1:
            return ()
        return [
            (load, device.registers(lanes * turns, str(load.source.dtype)))
            for load in self.output.by_row
        ]

    def read(self, row: Expr, column: Expr, lanes: int, early: Early, turn: Expr) -> None:
        """Reads what :meth:`write` will need, see :meth:`Output.read`.

        Args:
            row: The row of the result.
            column: The first column.
            lanes: How many neighbouring columns.
            early: The registers of :meth:`early`.
            turn: Which of its turns.
        """
        device.only_if(
            self._inside(row, column),
            lambda: self.output.read(self.batch, row, column, lanes, early, turn),
        )

    def write(
        self, row: Expr, column: Expr, lanes: int, load: Callable[[], Buffer], early: Early = (),
        turn: Expr | None = None,
    ) -> None:  # fmt: skip
        """Stores the sums that ``load`` puts into registers, if they are part of the result.

        Args:
            row: The row of the result.
            column: The first column.
            lanes: How many neighbouring columns.
            load: Returns the registers with the sums.
            early: The registers of :meth:`early`.
            turn: Which of its turns was read ahead; None where none was.
        """
        device.only_if(
            self._inside(row, column), lambda: self._write(row, column, lanes, load(), early, turn)
        )

    def _inside(self, row: Expr, column: Expr) -> Expr | None:
        inside = (row < i32(self.extents.rows)) if self.extents.rows % self.grid.rows else None
        if self.extents.columns % self.grid.columns:
            inside = device.both(inside, column < i32(self.extents.columns))
        return inside

    def _write(
        self, row: Expr, column: Expr, lanes: int, sums: Buffer, early: Early, turn: Expr | None
    ) -> None:
        if self.partial is None or self.place is None:
            self.output.write(
                self.batch, row, column, lanes, lambda lane: sums[i32(lane)], early, turn
            )
            return
        at = self.place + row * i32(self.extents.columns) + column
        device.move(self.partial, at, sums, 0, lanes)
