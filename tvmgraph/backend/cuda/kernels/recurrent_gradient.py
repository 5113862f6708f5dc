"""The derivative of recurrent layers: one launch for every step of a sequence, from the last.

A thread computes the cotangents of all gates of one unit of one row of the batch. It reads the
cotangents of the gates of the step after, which are a result, for its row, and the weights of its
unit, whose neighbours are those of the next thread. One more launch computes the second state of an
LSTM again, a unit of a row per thread.

Expected on a device: as for the steps themselves, the bytes of the weights from the second-level
cache for every step and tile of rows, and one launch per step.
"""

from __future__ import annotations

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import div, i32, mod
from tvmgraph.backend.cuda.kernels.recurrent import every_unit
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.types import Buffer, Expr
from tvmgraph.backend.recurrent import Gradient, new_cell


class _Gradient(Gradient):
    def write(self) -> None:
        """Writes the steps; the last one reads no step after it."""
        steps, batch, units = self.shape
        cells = None
        if self.mode == "lstm":
            cells = emit.workspace([steps + 1, batch, units], self.dtype)
            self._cells(cells)
        self._step(i32(steps - 1), cells, first=True)
        with emit.serial(steps - 1) as number:
            self._step(i32(steps - 2) - tirx.Cast("int32", number), cells, first=False)

    def _cells(self, cells: Buffer) -> None:
        """The second state before every step and after the last."""

        def unit(row: Expr, unit: Expr) -> None:
            state = device.registers(1, self.dtype)
            device.store(state, self.operands[1][row, unit], [0])
            device.store(cells, state[i32(0)], [i32(0), row, unit])
            with device.loop(self.shape[0]) as step:
                i, f, g = (self.gate((step, row, unit), gate) for gate in range(3))
                device.store(state, new_cell(i, f, g, state[i32(0)]), [0])
                device.store(cells, state[i32(0)], [step + i32(1), row, unit])

        every_unit(self.shape, unit)

    def _step(self, step: Expr, cells: Buffer | None, first: bool) -> None:
        def unit(row: Expr, unit: Expr) -> None:
            slope = self.outputs[self.time(step), row, unit]
            if first:
                slope = slope + self.last[row, unit]
            else:
                slope = slope + self._product(step, row, unit)
                if self.mode == "gru":
                    slope = slope + self.results[1][row, unit]
            at, slope, carried = (step, row, unit), device.let(slope), None
            if cells is not None:
                carried = (self.operands[0] if first else self.results[1])[row, unit]
                carried = device.let(carried)

            def cell(step: Expr) -> Expr:
                assert cells is not None
                return cells[step, row, unit]

            passed, found = self.cotangents(device.let, at, slope, carried, cell)
            if passed is not None:
                device.store(self.results[1], passed, [row, unit])
            for gate, value in enumerate(found):
                device.store(self.results[0], value, self.place(at, gate))

        every_unit(self.shape, unit)

    def _product(self, step: Expr, row: Expr, unit: Expr) -> Expr:
        """What the step after gives to a unit: its gates' cotangents times the weights."""
        _, k_size, width = (int(extent) for extent in self.panels.shape)
        after = device.let(self.time(step + i32(1)))
        panel, member = device.let(div(unit, width)), device.let(mod(unit, width))
        total = device.registers(1, self.dtype)
        device.store(total, tirx.const(0, self.dtype), [0])
        with device.loop(k_size) as k:
            product = self.results[0][after, row, k] * self.panels[panel, k, member]
            device.store(total, total[i32(0)] + product, [0])
        return total[i32(0)]


emit_recurrent_gradient = _Gradient.emit
