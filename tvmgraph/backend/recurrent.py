"""Recurrent layers and their derivatives, as far as they are alike on every backend.

A backend writes the loops and the products with the weights; operands, indices and the arithmetic
of the gates are here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvmgraph.backend.loop_ir.program import integers
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Func, Index

#: Step, row of the batch, unit.
At = tuple[Expr, Expr, Expr]
#: Computes a value once, here, and returns how it is read.
Keep = Callable[[Expr], Expr]
#: TVM's annotations admit less than its functions do.
_any: Any = tirx


@dataclass(frozen=True)
class Steps:
    """What a recurrent layer and its derivative have in common.

    Attributes:
        mode: ``"lstm"``, ``"gru"``, ``"rnn_tanh"`` or ``"rnn_relu"``.
        reverse: Whether the layer's steps run from the last.
        outputs: The state after every step, (steps, batch, units), or its cotangent.
        model: The machine.
    """

    mode: str
    reverse: bool
    outputs: Buffer
    model: Any

    @classmethod
    def emit(cls, func: Func, settings: str, model: Any) -> None:
        """Writes the kernel.

        Args:
            func: Takes the operands of the operator and its results.
            settings: The mode, and 1 if the layer's steps run backwards, else 0.
            model: The machine.
        """
        mode, reverse = str(settings).split()
        operands = cls.operands_of(mode, func.params)
        cls(mode=mode, reverse=reverse == "1", model=model, **operands).write()

    @classmethod
    def operands_of(cls, mode: str, params: Sequence[Buffer]) -> dict[str, Any]:
        """The operands and results, by their names, among the parameters of a function.

        Args:
            mode: The cell, see :class:`Steps`.
            params: The operands and results of the operator, in its order.

        Returns:
            The fields of the class that are buffers.
        """
        raise NotImplementedError

    def write(self) -> None:
        """Writes the loops."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, Index, int]:
        """Steps, batch, units; the batch may be known at the call only."""
        steps, batch, units = self.outputs.shape
        known = integers([batch])
        return int(steps), known[0] if known else batch, int(units)

    @property
    def dtype(self) -> str:
        """Type of the states and their cotangents."""
        return str(self.outputs.dtype)


@dataclass(frozen=True)
class Sweep(Steps):
    """Operands and results of ``ops.recurrent_sweep``.

    Attributes:
        projected: Inputs times their weights, (steps, batch, gates * units).
        panels: Weights of the state in panels.
        bias: Bias of the gates.
        first: The initial states, (batch, units) each.
        last: The final states.
        kept: Gates before their activations, (steps, batch, parts * units), if they are kept.
    """

    projected: Buffer
    panels: Buffer
    bias: Buffer
    first: tuple[Buffer, ...]
    last: tuple[Buffer, ...]
    kept: Buffer | None

    @classmethod
    def operands_of(cls, mode: str, params: Sequence[Buffer]) -> dict[str, Any]:
        """The operands of ``ops.recurrent_sweep`` and its results.

        Args:
            mode: The cell, see :class:`Steps`.
            params: Projected inputs, panels, bias, the initial states; then the outputs, the final
                states and, if they are kept, the gates.
        """
        states = 2 if mode == "lstm" else 1
        projected, panels, bias, *others = params
        first, outputs, results = tuple(others[:states]), others[states], others[states + 1 :]
        return {
            "outputs": outputs, "projected": projected, "panels": panels, "bias": bias,
            "first": first, "last": tuple(results[:states]),
            "kept": results[states] if len(results) > states else None,
        }  # fmt: skip

    def gates(self, x: list[Expr], h: list[Expr]) -> list[Expr]:
        """The gates before their activations; those of a GRU's n apart.

        Args:
            x: What the input gives to every gate.
            h: What the state gives to every gate.
        """
        if self.mode == "gru":
            return [x[0] + h[0], x[1] + h[1], x[2], h[2]]
        return [a + b for a, b in zip(x, h)]

    def result(self, gates: list[Expr], before: Expr, keep: Keep) -> Expr:
        """The new state of cells without a second one.

        Args:
            gates: What :meth:`gates` returned.
            before: The state of the unit.
            keep: Keeps a value.
        """
        if self.mode == "gru":
            reset, update, *parts = gates
            fresh = keep(_any.tanh(parts[0] + _any.sigmoid(reset) * parts[1]))
            return fresh + _any.sigmoid(update) * (before - fresh)
        if self.mode == "rnn_tanh":
            return _any.tanh(gates[0])
        total = keep(gates[0])
        zero = tirx.const(0, str(total.ty.dtype))
        return tirx.Select(total < zero, zero, total)


def new_cell(i: Expr, f: Expr, g: Expr, before: Expr) -> Expr:
    """The second state of an LSTM: what it forgets of the old one, and what it takes in.

    Args:
        i: Input gate before its sigmoid.
        f: Forget gate before its sigmoid.
        g: Candidate before its tanh.
        before: The cell state of the step before.
    """
    return _any.sigmoid(f) * before + _any.sigmoid(i) * _any.tanh(g)


@dataclass(frozen=True)
class Gradient(Steps):
    """Operands and results of ``ops.recurrent_gradient``.

    Attributes:
        gates: Gates before their activations, (steps, batch, gates * units).
        panels: Weights of the state in panels, transposed.
        last: Cotangent of the final state.
        operands: Of an LSTM the cotangent of the final second state and the initial one, of a GRU
            the states before every step.
        results: Cotangents of the gates and what a step passes on without weights.
    """

    gates: Buffer
    panels: Buffer
    last: Buffer
    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]

    @classmethod
    def operands_of(cls, mode: str, params: Sequence[Buffer]) -> dict[str, Any]:
        """The operands of ``ops.recurrent_gradient`` and its results.

        Args:
            mode: The cell, see :class:`Steps`.
            params: Gates, panels, the cotangents of the outputs and of the final state, what else
                the cell takes; then the results.
        """
        gates, panels, outputs, last, *others = params
        more = {"lstm": 2, "gru": 1}.get(mode, 0)
        return {
            "outputs": outputs, "gates": gates, "panels": panels, "last": last,
            "operands": tuple(others[:more]), "results": tuple(others[more:]),
        }  # fmt: skip

    def time(self, step: Expr) -> Expr:
        """Where a step lies: steps count in the order in which they ran.

        Args:
            step: Number of the step in the order in which they ran.
        """
        return self.shape[0] - 1 - step if self.reverse else step

    def gate(self, at: At, gate: int) -> Expr:
        """A gate before its activation.

        Args:
            at: Step, row of the batch and unit.
            gate: Number of the gate.
        """
        step, row, unit = at
        return self.gates[self.time(step), row, unit + gate * self.shape[2]]

    def place(self, at: At, gate: int) -> list[Expr]:
        """Where the cotangent of a gate is stored.

        Args:
            at: Step, row of the batch and unit.
            gate: Number of the gate.
        """
        step, row, unit = at
        return [self.time(step), row, unit + gate * self.shape[2]]

    def cotangents(
        self, keep: Keep, at: At, slope: Expr, carried: Expr | None, cell: Callable[[Expr], Expr]
    ) -> tuple[Expr | None, list[Expr]]:
        """What is passed on to the step before without weights, and the cotangents of the gates.

        Args:
            keep: Keeps a value.
            at: Step, row and unit.
            slope: Cotangent of the state.
            carried: Of an LSTM, the cotangent of the second state.
            cell: The second state before a step.
        """
        if carried is not None:
            return self._lstm(keep, at, slope, carried, cell)
        return self._gru(keep, at, slope) if self.mode == "gru" else (
            None, [self._plain(keep, at, slope)]
        )  # fmt: skip

    def _lstm(
        self, keep: Keep, at: At, slope: Expr, carried: Expr, cell: Callable[[Expr], Expr]
    ) -> tuple[Expr, list[Expr]]:
        i, f, o = (keep(_any.sigmoid(self.gate(at, gate))) for gate in (0, 1, 3))
        g = keep(_any.tanh(self.gate(at, 2)))
        out = keep(_any.tanh(cell(at[0] + 1)))
        inner = keep(carried + slope * o * (1 - out * out))
        return inner * f, [
            inner * g * i * (1 - i), inner * cell(at[0]) * f * (1 - f), inner * i * (1 - g * g),
            slope * out * o * (1 - o),
        ]  # fmt: skip

    def _gru(self, keep: Keep, at: At, slope: Expr) -> tuple[Expr, list[Expr]]:
        step, row, unit = at
        r, z = (keep(_any.sigmoid(self.gate(at, gate))) for gate in (0, 1))
        hidden = self.gate(at, 3)
        n = keep(_any.tanh(self.gate(at, 2) + r * hidden))
        before = self.operands[0][self.time(step), row, unit]
        new = keep(slope * (1 - z) * (1 - n * n))
        update = slope * (before - n) * z * (1 - z)
        return slope * z, [new * hidden * r * (1 - r), update, new * r, new]

    def _plain(self, keep: Keep, at: At, slope: Expr) -> Expr:
        total = keep(self.gate(at, 0))
        if self.mode == "rnn_tanh":
            y = keep(_any.tanh(total))
            return slope * (1 - y * y)
        nothing = tirx.const(0, self.dtype)
        return tirx.Select(total > nothing, slope, nothing)
