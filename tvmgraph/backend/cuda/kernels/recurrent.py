"""Recurrent layers: one launch for every step of a sequence.

A thread computes all gates of one unit of one row of the batch. The threads of a warp share rows of
the state, which they read from the first-level cache, and read neighbouring weights.

Expected on a device: the bytes of the weights from the second-level cache for every step and tile
of rows, and one launch per step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import div, i32, mod
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.reducer import accumulator_dtype
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Index
from tvmgraph.backend.recurrent import Gradient, Sweep, new_cell

_THREADS = 128
#: TVM's annotations admit less than its functions do.
_any: Any = tirx


def every_unit(shape: tuple[int, Index, int], body: Callable[[Expr, Expr], None]) -> None:
    """Launches ``body(row, unit)`` for every unit of every row of a step.

    Args:
        shape: Steps, rows of the batch, units.
        body: What a thread does.
    """
    _, batch, units = shape
    device.each_thread(
        batch * units, _THREADS,
        lambda at: body(device.let(div(at, units)), device.let(mod(at, units))),
    )  # fmt: skip


class _Sweep(Sweep):
    @property
    def _wide(self) -> str:
        return accumulator_dtype(self.dtype)

    def write(self) -> None:
        """Writes the steps: the first reads the initial state, the others what was stored."""
        steps = self.shape[0]
        order = range(steps)[::-1] if self.reverse else range(steps)
        first, last = i32(order[0]), i32(order[-1])
        cell = self.last[1] if len(self.first) == 2 else None
        self._step(first, self.first[0], None, self.first[-1])
        with emit.serial(steps - 1) as number:
            number = tirx.Cast("int32", number)
            step = i32(steps - 2) - number if self.reverse else number + i32(1)
            before = step + i32(1) if self.reverse else step - i32(1)
            self._step(step, self.outputs, before, cell)

        def copy(row: Expr, unit: Expr) -> None:
            device.store(self.last[0], self.outputs[last, row, unit], [row, unit])

        every_unit(self.shape, copy)

    def _step(self, step: Expr, state: Buffer, before: Expr | None, cell: Buffer | None) -> None:
        """One step.

        Args:
            step: Which one.
            state: The state, (batch, units) or, with ``before``, (steps, batch, units).
            before: The step whose state is read.
            cell: Where the second state of an LSTM lies.
        """

        def unit(row: Expr, column: Expr) -> None:
            def old(k: Expr) -> Expr:
                place = (row, k) if before is None else (before, row, k)
                return tirx.Cast(self._wide, state[place])

            self._unit(step, row, column, old, cell)

        every_unit(self.shape, unit)

    def _unit(
        self, step: Expr, row: Expr, unit: Expr, old: Callable[[Expr], Expr], cell: Buffer | None
    ) -> None:
        units = self.shape[2]
        gates, width = (int(extent) for extent in self.panels.shape[2:])
        sums = device.fill(device.registers(gates, self._wide))
        panel, member = device.let(div(unit, width)), device.let(mod(unit, width))
        with device.loop(units) as k:
            value = device.let(old(k))
            for gate in range(gates):
                weight = tirx.Cast(self._wide, self.panels[panel, k, i32(gate), member])
                device.store(sums, sums[i32(gate)] + value * weight, [gate])
        places = [unit + i32(gate * units) for gate in range(gates)]
        x = [tirx.Cast(self._wide, self.projected[step, row, place]) for place in places]
        h = [
            sums[i32(gate)] + tirx.Cast(self._wide, self.bias[place])
            for gate, place in enumerate(places)
        ]
        gate_values = self.gates(x, h)
        if self.kept is not None:
            gate_values = [device.let(value) for value in gate_values]
            for gate, value in enumerate(gate_values):
                place = [step, row, unit + i32(gate * units)]
                device.store(self.kept, self._narrow(value), place)
        if len(self.first) == 2:
            assert cell is not None
            i, f, g, o = gate_values
            carried = tirx.Cast(self._wide, cell[row, unit])
            fresh = device.let(new_cell(i, f, g, carried))
            device.store(self.last[1], self._narrow(fresh), [row, unit])
            result = _any.sigmoid(o) * _any.tanh(fresh)
        else:
            result = self.result(gate_values, old(unit), device.let)
        device.store(self.outputs, self._narrow(result), [step, row, unit])

    def _narrow(self, value: Expr) -> Expr:
        return tirx.Cast(self.dtype, value)


emit_recurrent = _Sweep.emit


# ---- The derivative of recurrent layers: one launch for every step of a sequence, from the last
# A thread computes the cotangents of all gates of one unit of one row of the batch. It reads the
# cotangents of the gates of the step after, which are a result, for its row, and the weights of its
# unit, whose neighbours are those of the next thread. One more launch computes the second state of
# an LSTM again, a unit of a row per thread.
#
# Expected on a device: as for the steps themselves, the bytes of the weights from the second-level
# cache for every step and tile of rows, and one launch per step.


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
        total = device.fill(device.registers(1, self.dtype))
        with device.loop(k_size) as k:
            product = self.results[0][after, row, k] * self.panels[panel, k, member]
            device.store(total, total[i32(0)] + product, [0])
        return total[i32(0)]


emit_recurrent_gradient = _Gradient.emit
