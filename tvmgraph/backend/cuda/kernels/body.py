"""The body of a stage for a few neighbouring iterations of one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import tvm_ffi
from tvm import ir, tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import VECTOR_BYTES, i32
from tvmgraph.backend.cuda.kernels.iteration import (
    MAX_LANES,
    Iteration,
    Loops,
    aligned_run,
    has_choice,
    read_run,
    readable,
    same,
    uses,
    write_run,
)
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.program import Axis, Stage, is_choice, loads_of, map_loads, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var, as_dtype, dtype_of

#: Gives the value of an element that is not read from memory, or None.
Known = Callable[[Load, int], Expr | None]


@dataclass(frozen=True)
class _Guarded:
    """An expression of elements that are there or not, such as those of an image with padding.

    Attributes:
        choice: The expression: a condition, what is computed where it holds, and a constant.
        loads: What it reads, with the neighbours that can be read at once.
    """

    choice: ir.Call
    loads: tuple[tuple[Load, int], ...]

    def read(self, iteration: Iteration, lanes: int) -> tuple[Expr, Var]:
        """Reads ``lanes`` neighbours; returns the expression with them, and their number in it."""
        inside, value, otherwise = self.choice.args
        held = [
            (load, device.registers(lanes if run > 1 else 1, str(load.source.dtype)))
            for load, run in self.loads
        ]
        with T.If(iteration.value(inside)), T.Then():
            for load, registers in held:
                read_run(load, iteration, int(registers.shape[0]), registers)
        lane = tirx.Var("lane", "int32")

        def visit(load: Load) -> Expr:
            registers = next(r for known, r in held if same(known, load))
            return registers[lane if int(registers.shape[0]) > 1 else i32(0)]

        return tirx.call_intrin(
            dtype_of(self.choice), self.choice.op, inside, map_loads(value, visit), otherwise
        ), lane


@dataclass(frozen=True)
class Body:
    """A stage whose innermost loops are divided into vectors.

    Attributes:
        stage: The stage.
        axes: The loops that vectors run along, the last one fastest.
        others: The loops around them.
    """

    stage: Stage
    axes: tuple[Axis, ...]
    others: tuple[Axis, ...] = ()

    @cached_property
    def _runs(self) -> list[tuple[Load, int]]:
        return [(load, aligned_run(load, self.axes, self.others)) for load in readable(self.stage)]

    @cached_property
    def _stores(self) -> list[tuple[Load, int]]:
        if self.stage.is_reduction:
            return []
        written = [buffer[tuple(self.stage.indices)] for buffer in self.stage.buffers]
        return [(load, aligned_run(load, self.axes, self.others)) for load in written]

    @cached_property
    def _choices(self) -> list[_Guarded]:
        """Guarded expressions whose neighbours along the last loop are there or not alike."""
        found: list[_Guarded] = []

        def visit(call: ir.Call) -> None:
            guarded = _guarded(call, self.stage, self.axes, self.others)
            if guarded and not any(_equal(call, other.choice) for other in found):
                found.append(guarded)

        for expr in self.stage.exprs if self.axes else ():
            tvm_ffi.structural_walk(expr, (ir.Call, visit))
        return found

    @cached_property
    def _guarded(self) -> list[Load]:
        """What else may be read only where a condition holds: joined tensors."""
        own = self.stage.buffers
        known = [load for load, _ in self._runs]
        known += [load for choice in self._choices for load, _ in choice.loads]
        return [
            load
            for load in self.stage.loads
            if not any(same(load, other) for other in known)
            and not any(load.source.same_as(buffer) for buffer in own)
        ]

    @cached_property
    def lanes(self) -> int:
        """Elements of a vector: as many as fill 16 bytes of the narrowest type that can be moved
        so, and no more than the innermost group holds without a rest."""
        loops = Loops(self.stage, self.axes)
        guarded = [pair for choice in self._choices for pair in choice.loads]
        moved = [(load, run) for load, run in [*self._runs, *self._stores, *guarded] if run > 1]
        scattered = [
            load for load, run in self._runs if run == 1 and not _is_fixed(load, self.axes)
        ]
        if not moved or len(scattered) + len(self._guarded) >= len(moved):
            return 1
        wanted = max(
            min(run, VECTOR_BYTES // dtype_bytes(str(load.source.dtype))) for load, run in moved
        )
        wanted = min(wanted, MAX_LANES)
        while wanted > 1 and len(loops.groups) > 1 and loops.last % wanted:
            wanted //= 2
        return wanted

    def wide(self, lanes: int) -> list[Load]:
        """What is read as vectors of ``lanes``.

        Args:
            lanes: Elements of a vector.
        """
        return [load for load, run in self._runs if lanes > 1 and run % lanes == 0]

    def values(
        self, iteration: Iteration, lanes: int, known: Known | None = None
    ) -> list[list[Expr]]:
        """Computes ``lanes`` iterations from ``iteration`` on.

        Args:
            iteration: The first of them.
            lanes: How many there are.
            known: Values of loads that are in registers already, if any.

        Returns:
            For every lane the values that the stage stores.
        """
        held = [
            (load, read_run(load, iteration, lanes))
            for load in self.wide(lanes)
            if known is None or known(load, 0) is None
        ]
        choices = [
            (guarded.choice, *guarded.read(iteration, lanes))
            for guarded in self._choices
            if lanes > 1 and self.axes[-1].extent % lanes == 0
            if all(run == 1 or run % lanes == 0 for _, run in guarded.loads)
            if known is None or not any(known(load, 0) for load, _ in guarded.loads)
        ]
        return [
            self._lane(iteration.next(lane), lane, held, choices, known) for lane in range(lanes)
        ]

    def _lane(
        self, iteration: Iteration, lane: int, ahead: Sequence[tuple[Load, Buffer]],
        choices: Sequence[tuple[ir.Call, Expr, Var]], known: Known | None,
    ) -> list[Expr]:  # fmt: skip
        def chosen(call: ir.Call) -> Expr:
            for other, value, number in choices:
                if _equal(call, other):
                    return substitute(value, {number: i32(lane)})
            return call

        def from_registers(load: Load) -> Expr:
            found = next((held for other, held in ahead if same(load, other)), None)
            return load if found is None else found[i32(lane)]

        def visit(load: Load) -> Expr:
            value = known(load, lane) if known else None
            return iteration.element(load) if value is None else value

        names: dict[Var, Expr] = {}

        def resolve(expr: Expr) -> Expr:
            if choices:
                expr = tvm_ffi.structural_map(expr, (ir.Call, chosen))
            expr = map_loads(map_loads(expr, from_registers), visit)
            return iteration.value(substitute(expr, names))

        for var, value in self.stage.lets:
            names[var] = device.let(resolve(value))
        return [resolve(value) for value in self.stage.values]

    def store(self, iteration: Iteration, results: Sequence[Sequence[Expr]]) -> None:
        """Stores what :meth:`values` gave.

        Args:
            iteration: The first iteration.
            results: For every lane its values.
        """
        lanes = len(results)
        for position, (to, run) in enumerate(self._stores):
            column = [as_dtype(values[position], str(to.source.dtype)) for values in results]
            if lanes > 1 and run % lanes == 0:
                held = device.registers(lanes, str(to.source.dtype))
                for lane, value in enumerate(column):
                    device.store(held, value, [lane])
                write_run(held, to, iteration, lanes)
                continue
            for lane, value in enumerate(column):
                element = iteration.next(lane).element(to)
                device.store(to.source, value, list(element.indices))


def _guarded(
    call: ir.Call, stage: Stage, axes: Sequence[Axis], others: Sequence[Axis]
) -> _Guarded | None:
    """An expression with a condition that is alike along the last loop; None for any other."""
    if not is_choice(call):
        return None
    inside, value, otherwise = call.args
    loads: list[Load] = []
    for load in loads_of(value):
        if not any(same(load, other) for other in loads):
            loads.append(load)
    if not loads or not isinstance(otherwise, (tirx.FloatImm, tirx.IntImm)) or has_choice(value):
        return None
    names = [var for var, _ in stage.lets]
    indices = [index for load in loads for index in load.indices]
    if loads_of(inside, *indices) or uses(inside, [axes[-1].var]):
        return None
    if any(load.source.same_as(b) for load in loads for b in stage.buffers):
        return None
    if any(uses(expr, names) for expr in (inside, value, *indices)):
        return None
    runs = [(load, aligned_run(load, axes, others)) for load in loads]
    scattered = [load for load, run in runs if run == 1 and not _is_fixed(load, axes)]
    if scattered or all(run == 1 for _, run in runs):
        return None
    return _Guarded(call, tuple(runs))


def _equal(left: Expr, right: Expr) -> bool:
    return left.same_as(right) or tvm_ffi.structural_equal(left, right)


def _is_fixed(load: Load, axes: Sequence[Axis]) -> bool:
    """Whether an element stays the same along the innermost loop."""
    return not axes or not any(uses(index, [axes[-1].var]) for index in load.indices)
