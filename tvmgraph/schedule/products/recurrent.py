"""Recurrent layers: all steps of a sequence in one kernel.

Blocking: a work item of a step is one panel of units (all gates of 16 units) and a tile of the
batch. It multiplies the state with the panel, as many of its vectors at a time as registers hold,
goes on to the gates, and stores the new state of its units. Steps are separated by the end of a
parallel region; two copies of the state take turns. The weights come in panels and stay in the
caches of the workers that use them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tirx

from tvmgraph.processor import CpuModel
from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.access import dtype_bytes
from tvmgraph.schedule.analysis.program import static_shape
from tvmgraph.schedule.products.microkernel import Tile, multiply_panel
from tvmgraph.schedule.products.plan import MIN_PARALLEL_FLOPS, part_of_panel
from tvmgraph.schedule.types import Buffer, Expr, Func

_Gates = list[Expr]


def emit_recurrent(func: Func, settings: str, model: CpuModel) -> None:
    """Writes the kernel.

    Args:
        func: Takes the operands of ``ops.recurrent_sweep`` and its results.
        settings: The mode, and 1 if the steps run backwards, else 0.
        model: The processor.
    """
    mode, backwards = str(settings).split()
    states = 2 if mode == "lstm" else 1
    projected, panels, bias, *others = func.params
    first, outputs, last = tuple(others[:states]), others[states], tuple(others[states + 1 :])
    _Sweep(mode, backwards == "1", projected, panels, bias, first, outputs, last, model).write()


@dataclass(frozen=True)
class _Sweep:
    mode: str
    backwards: bool
    projected: Buffer
    panels: Buffer
    bias: Buffer
    first: tuple[Buffer, ...]
    outputs: Buffer
    last: tuple[Buffer, ...]
    model: CpuModel

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Steps, batch, units."""
        steps, batch, units = static_shape(self.outputs) or (0, 0, 0)
        return steps, batch, units

    @property
    def _panel_shape(self) -> tuple[int, int, int, int]:
        """Panels, units, gates, units of a panel."""
        blocks, units, gates, width = static_shape(self.panels) or (0, 0, 0, 0)
        return blocks, units, gates, width

    @property
    def _dtype(self) -> str:
        return str(self.outputs.dtype)

    def write(self) -> None:
        """Writes the loop over the steps."""
        steps, batch, units = self._shape
        size = batch * units
        state = emit.workspace([2 * size], self._dtype)
        cell = emit.workspace([size], self._dtype) if len(self.first) == 2 else None
        self._copy(self.first[0], state)
        if cell is not None:
            self._copy(self.first[1], cell)
        with emit.serial(steps) as number:
            step = (steps - 1 - number) if self.backwards else number
            old = tirx.floormod(number, emit.i64(2)) * size
            self._step(step, state, old, size - old, cell)
        with emit.serial(batch) as row, emit.serial(units) as unit:
            at = row * units + unit
            emit.store(self.last[0], state[at + steps % 2 * size], [row, unit])
            if cell is not None:
                emit.store(self.last[1], cell[at], [row, unit])

    def _copy(self, source: Buffer, to: Buffer) -> None:
        _, batch, units = self._shape
        with emit.serial(batch) as row, emit.serial(units) as unit:
            emit.store(to, source[row, unit], [row * units + unit])

    def _step(self, step: Expr, state: Buffer, old: Expr, new: Expr, cell: Buffer | None) -> None:
        _, batch, units = self._shape
        blocks, _, gates, width = self._panel_shape
        lanes = min(width, self.model.lanes_of(dtype_bytes(self._dtype)))
        vectors = gates * width // lanes
        height, part = part_of_panel(batch, vectors, self.model)
        tiles = -(-batch // height)
        flops = 2 * batch * units * units * gates
        parallel = flops >= MIN_PARALLEL_FLOPS and self.model.threads > 1

        panels = emit.flat(self.panels)

        def multiply(block: Expr, row: Expr, rows: int, sums: Buffer) -> None:
            shape = Tile(rows, vectors, lanes, self._dtype, adjacent=True)
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
            first, sums = number * height, emit.stack(height * vectors * lanes, self._dtype)
            emit.pieces(
                (number, tiles, height, batch),
                lambda rows: multiply(block, first, rows, sums),
            )
            with emit.serial(tirx.min(emit.i64(height), batch - first)) as r:
                emit.pieces(
                    (block, blocks, width, units),
                    lambda count: finish(block, first + r, sums, r * (gates * width), count),
                )

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
        units, gates = self._shape[2], self._panel_shape[2]
        fresh = emit.stack(lanes, self._dtype)
        with emit.lanes_loop(lanes) as lane:
            unit = first + lane
            at = row * units + unit
            x = [self.projected[step, row, unit + gate * units] for gate in range(gates)]
            h = [
                total[base + gate * width + lane] + self.bias[unit + gate * units]
                for gate in range(gates)
            ]
            if cell is not None:
                i, f, g, o = (a + b for a, b in zip(x, h))
                carried = tirx.sigmoid(f) * cell[at] + tirx.sigmoid(i) * tirx.tanh(g)
                emit.store(fresh, carried, [lane])
                emit.store(cell, fresh[lane], [at])
                result = tirx.sigmoid(o) * tirx.tanh(fresh[lane])
            else:
                result = self._result(x, h, state[old + at], fresh, lane)
            emit.store(fresh, result, [lane])
            emit.store(state, fresh[lane], [new + at])
            emit.store(self.outputs, fresh[lane], [step, row, unit])

    def _result(self, x: _Gates, h: _Gates, before: Expr, fresh: Buffer, lane: Expr) -> Expr:
        """The new state of cells without a second one."""
        if self.mode == "gru":
            reset = tirx.sigmoid(x[0] + h[0])
            emit.store(fresh, tirx.tanh(x[2] + reset * h[2]), [lane])
            return fresh[lane] + tirx.sigmoid(x[1] + h[1]) * (before - fresh[lane])
        if self.mode == "rnn_tanh":
            return tirx.tanh(x[0] + h[0])
        total = x[0] + h[0]
        return tirx.Select(total < emit.zero(self._dtype), emit.zero(self._dtype), total)
