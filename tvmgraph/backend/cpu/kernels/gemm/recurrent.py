"""Recurrent layers: all steps of a sequence in one kernel.

Blocking: a work item of a step is one panel of units (all gates of 16 units) and a tile of the
batch. It multiplies the state with the panel, as many of its vectors at a time as registers hold,
goes on to the gates, and stores the new state of its units. Steps are separated by the end of a
parallel region; two copies of the state take turns. The weights come in panels and stay in the
caches of the workers that use them.
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
from tvmgraph.backend.recurrent import Sweep, new_cell
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
