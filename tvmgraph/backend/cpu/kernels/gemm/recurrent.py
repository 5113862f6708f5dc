"""Recurrent layers: all steps of a sequence in one kernel.

Blocking: a work item of a step is one panel of units (all gates of 16 units) and a tile of the
batch. It multiplies the state with the panel, as many of its vectors at a time as registers hold,
goes on to the gates, and stores the new state of its units. Steps are separated by the end of a
parallel region; two copies of the state take turns. The weights come in panels and stay in the
caches of the workers that use them.

The derivative of recurrent layers: all steps of a sequence, from the last, in one kernel.

Blocking: a work item of a step is one panel of units and a tile of the batch. It multiplies the
cotangents of the gates of the step after, which are a result and are read from there, with the
panel in registers, and goes on to the cotangents of the gates of its units. Steps are separated by
the end of a parallel region. The second state of an LSTM is computed again before, unit by unit.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx

from tvmgraph.backend.cpu.kernels.gemm.microkernel import Tile, multiply_panel
from tvmgraph.backend.cpu.kernels.gemm.plan import MIN_PARALLEL_FLOPS, USUAL_ROWS, tile_of_panel
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.program import static_shape
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index
from tvmgraph.backend.recurrent import At, Gradient, Sweep, new_cell
from tvmgraph.machine.processor import CpuModel

#: Writes a tile of the batch: its first row, its rows, and what calls a product with their number.
Body = Callable[[Expr, Index, Callable[[Callable[[int], None]], None]], None]


def usual(batch: Index) -> int:
    """The rows that a batch is taken to have.

    Args:
        batch: Its rows, which may be known at the call only.
    """
    return batch if isinstance(batch, int) else USUAL_ROWS


def is_shared(flops: int, batch: Index, model: CpuModel) -> bool:
    """Whether a loop is worth waking the workers.

    Args:
        flops: Operations for a row of the batch.
        batch: All rows.
        model: The machine.
    """
    return flops * usual(batch) >= MIN_PARALLEL_FLOPS and model.threads > 1


def write_tile(number: Expr, tiles: Index, height: int, batch: Index, body: Body) -> None:
    """Writes a tile of the batch; of one known at the call only, the rows of the last one by one.

    Args:
        number: Index of the tile.
        tiles: How many there are.
        height: Rows of all but the last.
        batch: All rows.
        body: Writes a tile.
    """
    first = number * height
    if isinstance(batch, int) and isinstance(tiles, int):
        split = (number, tiles, height, batch)
        rows = tirx.min(emit.i64(height), batch - first)
        body(first, rows, lambda product: emit.peel_last(split, product))
        return

    def rest() -> None:
        with emit.serial(batch - first) as r:
            body(first + r, 1, lambda product: product(1))

    whole = first + height <= batch
    emit.when(whole, lambda: body(first, height, lambda product: product(height)), rest)


class _Sweep(Sweep):
    @property
    def _panel_shape(self) -> tuple[int, int, int, int]:
        """Panels, units, gates, units of a panel."""
        blocks, units, gates, width = static_shape(self.panels) or (0, 0, 0, 0)
        return blocks, units, gates, width

    def write(self) -> None:
        """Writes the loop over the steps."""
        steps, batch, units = self.shape
        size = batch * units
        state = emit.workspace([2 * size], self.dtype)
        cell = emit.workspace([size], self.dtype) if len(self.first) == 2 else None
        self._copy(self.first[0], state)
        if cell is not None:
            self._copy(self.first[1], cell)
        with emit.serial(steps) as number:
            step = (steps - 1 - number) if self.reverse else number
            old = tirx.floormod(number, emit.i64(2)) * size
            self._step(step, state, old, size - old, cell)
        with emit.serial(batch) as row, emit.serial(units) as unit:
            at = row * units + unit
            emit.store(self.last[0], state[at + steps % 2 * size], [row, unit])
            if cell is not None:
                emit.store(self.last[1], cell[at], [row, unit])

    def _copy(self, source: Buffer, to: Buffer) -> None:
        _, batch, units = self.shape
        with emit.serial(batch) as row, emit.serial(units) as unit:
            emit.store(to, source[row, unit], [row * units + unit])

    def _step(self, step: Expr, state: Buffer, old: Expr, new: Expr, cell: Buffer | None) -> None:
        _, batch, units = self.shape
        blocks, _, gates, width = self._panel_shape
        lanes = min(width, self.model.lanes_of(dtype_bytes(self.dtype)))
        vectors = gates * width // lanes
        height, part = tile_of_panel(usual(batch), vectors, self.model)
        tiles = (batch + height - 1) // height
        parallel = is_shared(2 * units * units * gates, batch, self.model)
        panels = emit.flat(self.panels)

        def multiply(block: Expr, row: Expr, rows: int, sums: Buffer) -> None:
            shape = Tile(rows, vectors, lanes, self.dtype, adjacent=True)
            multiply_panel(
                shape, part, [units], max(1, 24 // (rows * part)),
                lambda r, k: state[old + (row + r) * units + k[0]],
                lambda k, v, count: panels[
                    emit.ramp((block * units + k[0]) * (gates * width) + v * lanes, count)
                ],
                sums,
            )  # fmt: skip

        def finish(block: Expr, row: Expr, sums: Buffer, base: Expr, count: int) -> None:
            for first in range(0, count, lanes):
                part = min(lanes, count - first)
                place = (step, row, block * width + first)
                self._finish(sums, base + first, width, place, part, state, old, new, cell)

        with emit.parallel(blocks * tiles, parallel) as item:
            block, number = emit.unfuse(item, [blocks, tiles])
            sums = emit.stack(height * vectors * lanes, self.dtype)

            def tile(first: Expr, rows: Index, product: Callable[..., None]) -> None:
                product(lambda count: multiply(block, first, count, sums))
                with emit.serial(rows) as r:
                    emit.peel_last(
                        (block, blocks, width, units),
                        lambda count: finish(block, first + r, sums, r * (gates * width), count),
                    )

            write_tile(number, tiles, height, batch, tile)

    def _finish(
        self,
        total: Buffer,
        base: Expr,
        width: int,
        place: tuple[Expr, Expr, Expr],
        lanes: int,
        state: Buffer,
        old: Expr,
        new: Expr,
        cell: Buffer | None,
    ) -> None:
        """The gates of a vector of units, and their new state."""
        step, row, first = place
        units, gates = self.shape[2], self._panel_shape[2]
        fresh = emit.stack(lanes, self.dtype)
        with emit.lanes_loop(lanes) as lane:
            unit = first + lane

            def keep(value: Expr) -> Expr:
                emit.store(fresh, value, [lane])
                return fresh[lane]

            at = row * units + unit
            x = [self.projected[step, row, unit + gate * units] for gate in range(gates)]
            h = [
                total[base + gate * width + lane] + self.bias[unit + gate * units]
                for gate in range(gates)
            ]
            gate_values = self.gates(x, h)
            if self.kept is not None:
                for gate, value in enumerate(gate_values):
                    emit.store(self.kept, value, [step, row, unit + gate * units])
            if cell is not None:
                i, f, g, o = gate_values
                emit.store(cell, keep(new_cell(i, f, g, cell[at])), [at])
                result = tirx.sigmoid(o) * tirx.tanh(fresh[lane])
            else:
                result = self.result(gate_values, state[old + at], keep)
            emit.store(state, keep(result), [new + at])
            emit.store(self.outputs, fresh[lane], [step, row, unit])


emit_recurrent = _Sweep.emit


# ---- the derivative -----------------------------------------------------------------------------


#: Vector multiplications in flight that hide the time one takes.
_IN_FLIGHT = 8
#: Values of a vector of units that are kept in registers.
_KEPT = 7


class _Gradient(Gradient):
    @property
    def _panel_shape(self) -> tuple[int, int, int]:
        """Panels, K of the products, units of a panel."""
        blocks, k_size, width = static_shape(self.panels) or (0, 0, 0)
        return blocks, k_size, width

    @property
    def _lanes(self) -> int:
        return min(self._panel_shape[2], self.model.lanes_of(dtype_bytes(self.dtype)))

    @property
    def _vectors(self) -> int:
        return self._panel_shape[2] // self._lanes

    def write(self) -> None:
        """Writes the loop over the steps."""
        steps, batch, units = self.shape
        cells = self._cells() if self.mode == "lstm" else None
        if len(self.results) > 1:  # what a step passes on without weights
            with emit.serial(batch) as row, emit.serial(units) as unit:
                given = self.operands[0][row, unit] if cells is not None else emit.zero(self.dtype)
                emit.store(self.results[1], given, [row, unit])
        with emit.serial(steps) as number:
            self._step(steps - 1 - number, cells)

    def _cells(self) -> Buffer:
        """The second state before every step and after the last."""
        steps, batch, units = self.shape
        cells = emit.workspace([(steps + 1) * batch * units], self.dtype)
        size = batch * units

        def block(row: Expr, first: Expr, lanes: int) -> None:
            at = row * units + first
            with emit.lanes_loop(lanes) as lane:
                emit.store(cells, self.operands[1][row, first + lane], [at + lane])
            with emit.serial(steps) as step, emit.lanes_loop(lanes) as lane:
                i, f, g = (self.gate((step, row, first + lane), k) for k in range(3))
                before = cells[step * size + at + lane]
                emit.store(cells, new_cell(i, f, g, before), [(step + 1) * size + at + lane])

        lanes = self._lanes
        parts = -(-units // lanes)
        parallel = is_shared(100 * steps * units, batch, self.model)
        with emit.parallel(batch * parts, parallel) as item:
            row, number = emit.unfuse(item, [batch, parts])
            split = (number, parts, lanes, units)
            emit.peel_last(split, lambda count: block(row, number * lanes, count))
        return cells

    def _step(self, step: Expr, cells: Buffer | None) -> None:
        steps, batch, units = self.shape
        blocks, k_size, width = self._panel_shape
        vectors = self._vectors
        height, part = tile_of_panel(usual(batch), vectors, self.model)
        tiles = (batch + height - 1) // height
        parallel = is_shared(2 * units * k_size, batch, self.model)
        with emit.parallel(blocks * tiles, parallel) as item:
            block, number = emit.unfuse(item, [blocks, tiles])
            slopes, first = emit.stack(height * width, self.dtype), block * width
            columns = tirx.min(emit.i64(width), units - first)

            def tile(row: Expr, rows: Index, product: Callable[..., None]) -> None:
                emit.when(
                    step == steps - 1,
                    lambda: self._from_last(slopes, row, rows, first, columns),
                    lambda: product(
                        lambda count: self._from_step_after(step, slopes, block, row, (count, part))
                    ),
                )
                with emit.serial(rows) as r:
                    at = (step, row + r, first)
                    self._finish_row(at, slopes, r * width, cells, (block == blocks - 1, columns))

            write_tile(number, tiles, height, batch, tile)

    def _finish_row(
        self, at: At, slopes: Buffer, base: Expr, cells: Buffer | None, end: tuple[Expr, Expr]
    ) -> None:
        """The cotangents of the gates of a row of a panel.

        Args:
            at: Step, row and first unit of the panel.
            slopes: What a tile of states gets from the step after.
            base: Where the row begins in it.
            cells: Second states.
            end: Whether this is the last panel, and the units that it has.
        """
        (step, row, first), (is_last, columns), units = at, end, self.shape[2]
        full, rest = tirx.floordiv(columns, emit.i64(self._lanes)), units % self._lanes
        with emit.serial(full) as c:
            begin = c * self._lanes
            self._finish((step, row, first + begin), self._lanes, slopes, base + begin, cells)
        if rest:
            begin = units // self._lanes % self._vectors * self._lanes
            place = (step, row, first + begin)
            emit.only_if(is_last, lambda: self._finish(place, rest, slopes, base + begin, cells))

    def _from_last(
        self, slopes: Buffer, row: Expr, rows: Index, first: Expr, columns: Expr
    ) -> None:
        """The last state's cotangent, for the step that nothing comes after."""
        width = self._panel_shape[2]
        with emit.serial(rows) as r, emit.serial(columns) as c:
            emit.store(slopes, self.last[row + r, first + c], [r * width + c])

    def _from_step_after(
        self, step: Expr, slopes: Buffer, block: Expr, row: Expr, tile: tuple[int, int]
    ) -> None:
        """What the step after gives to the state: its gates' cotangents times the weights."""
        after, k_size, (rows, part) = self.time(step + 1), self._panel_shape[1], tile
        multiply_panel(
            Tile(rows, self._vectors, self._lanes, self.dtype, adjacent=True),
            part,
            [k_size],
            max(1, 3 * _IN_FLIGHT // (rows * part)),
            lambda r, k: self.results[0][after, row + r, k[0]],
            lambda k, v, lanes: self.panels[block, k[0], emit.ramp(v * self._lanes, lanes)],
            slopes,
        )

    def _finish(self, at: At, lanes: int, slopes: Buffer, base: Expr, cells: Buffer | None) -> None:
        """The cotangents of the gates of a vector of units.

        Args:
            at: Step, row and first unit.
            lanes: Units.
            slopes: What a tile of states gets from the step after.
            base: The first of these units in it.
            cells: Second states.
        """
        step, row, begin = at
        places = [emit.stack(lanes, self.dtype) for _ in range(_KEPT)]
        with emit.lanes_loop(lanes) as lane:
            unit, free = begin + lane, iter(places)

            def kept(value: Expr) -> Expr:
                place = next(free)
                emit.store(place, value, [lane])
                return place[lane]

            slope = self.outputs[self.time(step), row, unit] + slopes[base + lane]
            if self.mode == "gru":
                slope = slope + self.results[1][row, unit]
            slope, where = kept(slope), (step, row, unit)

            def cell(step: Expr, unit: Expr = unit) -> Expr:
                assert cells is not None
                _, batch, units = self.shape
                return cells[step * (batch * units) + (row * units + unit)]

            carried = None if cells is None else self.results[1][row, unit]
            passed, found = self.cotangents(kept, where, slope, carried, cell)
            if passed is not None:
                emit.store(self.results[1], passed, [row, unit])
            for gate, value in enumerate(found):
                emit.store(self.results[0], value, self.place(where, gate))


emit_recurrent_gradient = _Gradient.emit
