"""The derivative of recurrent layers: one launch for every step of a sequence, from the last.

A thread computes the cotangents of all gates of one unit of one row of the batch. It reads the
cotangents of the gates of the step after, which are a result, for its row, and the weights of its
unit, whose neighbours are those of the next thread. One more launch computes the second state of an
LSTM again, a unit of a row per thread.

Expected on a device: as for the steps themselves, the bytes of the weights from the second-level
cache for every step and tile of rows, and one launch per step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.program import static_shape
from tvmgraph.schedule.cuda import device
from tvmgraph.schedule.cuda.device import div, i32, mod
from tvmgraph.schedule.target import GpuModel
from tvmgraph.schedule.types import Buffer, Expr, Func

_THREADS = 128
#: TVM's annotations admit less than its functions do.
_any: Any = tirx

_At = tuple[Expr, Expr, Expr]


def emit_recurrent_gradient(func: Func, settings: str, _model: GpuModel) -> None:
    """Writes the kernels.

    Args:
        func: Takes the operands of ``ops.recurrent_gradient`` and its results.
        settings: The mode, and 1 if the steps ran backwards, else 0.
    """
    mode, reverse = str(settings).split()
    gates, panels, outputs, last, *others = func.params
    more = {"lstm": 2, "gru": 1}.get(mode, 0)
    operands, results = tuple(others[:more]), tuple(others[more:])
    _Gradient(mode, reverse == "1", gates, panels, outputs, last, operands, results).write()


@dataclass(frozen=True)
class _Gradient:
    mode: str
    reverse: bool
    gates: Buffer
    panels: Buffer
    outputs: Buffer
    last: Buffer
    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]

    @property
    def _shape(self) -> tuple[int, int, int]:
        """Steps, batch, units."""
        steps, batch, units = static_shape(self.outputs) or (0, 0, 0)
        return steps, batch, units

    @property
    def _dtype(self) -> str:
        return str(self.outputs.dtype)

    def write(self) -> None:
        """Writes the steps; the last one reads no step after it."""
        steps, batch, units = self._shape
        cells = None
        if self.mode == "lstm":
            cells = emit.workspace([steps + 1, batch, units], self._dtype)
            self._cells(cells)
        self._step(i32(steps - 1), cells, first=True)
        with emit.serial(steps - 1) as number:
            self._step(i32(steps - 2) - tirx.Cast("int32", number), cells, first=False)

    def _time(self, step: Expr) -> Expr:
        """Where a step lies: steps count in the order in which they ran."""
        return i32(self._shape[0] - 1) - step if self.reverse else step

    def _gate(self, at: _At, gate: int) -> Expr:
        step, row, unit = at
        return self.gates[self._time(step), row, unit + i32(gate * self._shape[2])]

    def _every_unit(self, body: Any) -> None:
        """Launches ``body(row, unit)`` for every unit of every row."""
        _, batch, units = self._shape
        count = batch * units
        with device.launch(-(-count // _THREADS), _THREADS) as (block, thread):
            at = device.let(block * i32(_THREADS) + thread)
            device.only_if(
                at < i32(count),
                lambda: body(device.let(div(at, units)), device.let(mod(at, units))),
            )

    def _cells(self, cells: Buffer) -> None:
        """The second state before every step and after the last."""

        def unit(row: Expr, unit: Expr) -> None:
            state = device.registers(1, self._dtype)
            device.store(state, self.operands[1][row, unit], [0])
            device.store(cells, state[i32(0)], [i32(0), row, unit])
            with device.loop(self._shape[0]) as step:
                i, f, g = (self._gate((step, row, unit), gate) for gate in range(3))
                new = _any.sigmoid(f) * state[i32(0)] + _any.sigmoid(i) * _any.tanh(g)
                device.store(state, new, [0])
                device.store(cells, state[i32(0)], [step + i32(1), row, unit])

        self._every_unit(unit)

    def _step(self, step: Expr, cells: Buffer | None, first: bool) -> None:
        def unit(row: Expr, unit: Expr) -> None:
            slope = self.outputs[self._time(step), row, unit]
            if first:
                slope = slope + self.last[row, unit]
            else:
                slope = slope + self._product(step, row, unit)
                if self.mode == "gru":
                    slope = slope + self.results[1][row, unit]
            at, slope = (step, row, unit), device.let(slope)
            if cells is not None:
                carried = (self.operands[0] if first else self.results[1])[row, unit]
                found = self._lstm(at, slope, device.let(carried), cells)
            elif self.mode == "gru":
                found = self._gru(at, slope)
            else:
                found = [self._plain(at, slope)]
            for gate, value in enumerate(found):
                place = [self._time(step), row, unit + i32(gate * self._shape[2])]
                device.store(self.results[0], value, place)

        self._every_unit(unit)

    def _product(self, step: Expr, row: Expr, unit: Expr) -> Expr:
        """What the step after gives to a unit: its gates' cotangents times the weights."""
        _, depth, width = (int(extent) for extent in self.panels.shape)
        after = device.let(self._time(step + i32(1)))
        panel, member = device.let(div(unit, width)), device.let(mod(unit, width))
        total = device.registers(1, self._dtype)
        device.store(total, tirx.const(0, self._dtype), [0])
        with device.loop(depth) as k:
            product = self.results[0][after, row, k] * self.panels[panel, k, member]
            device.store(total, total[i32(0)] + product, [0])
        return total[i32(0)]

    def _lstm(self, at: _At, slope: Expr, carried: Expr, cells: Buffer) -> list[Expr]:
        step, row, unit = at
        i, f, o = (device.let(_any.sigmoid(self._gate(at, gate))) for gate in (0, 1, 3))
        g = device.let(_any.tanh(self._gate(at, 2)))
        out = device.let(_any.tanh(cells[step + i32(1), row, unit]))
        inner = device.let(carried + slope * o * (1 - out * out))
        device.store(self.results[1], inner * f, [row, unit])
        return [
            inner * g * i * (1 - i), inner * cells[step, row, unit] * f * (1 - f),
            inner * i * (1 - g * g), slope * out * o * (1 - o),
        ]  # fmt: skip

    def _gru(self, at: _At, slope: Expr) -> list[Expr]:
        step, row, unit = at
        r, z = (device.let(_any.sigmoid(self._gate(at, gate))) for gate in (0, 1))
        hidden = device.let(self._gate(at, 3))
        n = device.let(_any.tanh(self._gate(at, 2) + r * hidden))
        new = device.let(slope * (1 - z) * (1 - n * n))
        device.store(self.results[1], slope * z, [row, unit])
        update = slope * (self.operands[0][self._time(step), row, unit] - n) * z * (1 - z)
        return [new * hidden * r * (1 - r), update, new * r, new]

    def _plain(self, at: _At, slope: Expr) -> Expr:
        total = device.let(self._gate(at, 0))
        if self.mode == "rnn_tanh":
            y = device.let(_any.tanh(total))
            return slope * (1 - y * y)
        nothing = tirx.const(0, self._dtype)
        return tirx.Select(total > nothing, slope, nothing)
