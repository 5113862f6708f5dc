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
from tvmgraph.backend.cuda.kernels.place import (
    MAX_LANES,
    Loops,
    Place,
    aligned_run,
    read_run,
    readable,
    same,
    uses,
    write_run,
)
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.program import (
    Axis,
    Stage,
    is_choice,
    loads_of,
    map_loads,
    substitute,
)
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var, dtype_of

#: Gives the value of an element that is not read from memory, or None.
Known = Callable[[Load, int], Expr | None]


@dataclass(frozen=True)
class _Padded:
    """An element of an image with padding around it: read where it lies inside, else a constant.

    Attributes:
        choice: The expression.
        run: Neighbours that can be read at once, of which all are inside or none.
    """

    choice: ir.Call
    run: int

    @property
    def inside(self) -> Expr:
        """The condition."""
        return self.choice.args[0]

    @property
    def load(self) -> Load:
        """The read."""
        return self.choice.args[1]

    @property
    def fill(self) -> Expr:
        """The constant."""
        return self.choice.args[2]

    def read(self, place: Place, lanes: int) -> Buffer:
        """Reads ``lanes`` neighbours into registers."""
        held = device.registers(lanes, str(self.load.source.dtype))
        for lane in range(lanes):
            device.store(held, self.fill, [lane])
        with T.If(place.value(self.inside)), T.Then():
            read_run(self.load, place, lanes, held)
        return held


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
    def _padded(self) -> list[_Padded]:
        """Padded elements whose neighbours along the innermost loop are inside or outside alike."""
        found: list[_Padded] = []

        def visit(call: ir.Call) -> None:
            if _is_padded(call, self.stage, self.axes):
                run = aligned_run(call.args[1], self.axes, self.others)
                if run > 1 and not any(_equal(call, other.choice) for other in found):
                    found.append(_Padded(call, run))

        for expr in self.stage.exprs if self.axes else ():
            tvm_ffi.structural_walk(expr, (ir.Call, visit))
        return found

    @cached_property
    def _guarded(self) -> list[Load]:
        """What else may be read only where a condition holds: joined tensors."""
        own = self.stage.buffers
        known = [load for load, _ in self._runs] + [padded.load for padded in self._padded]
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
        padded = [(padded.load, padded.run) for padded in self._padded]
        moved = [(load, run) for load, run in [*self._runs, *self._stores, *padded] if run > 1]
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
        """What is read as vectors of ``lanes``."""
        return [load for load, run in self._runs if lanes > 1 and run % lanes == 0]

    def values(self, place: Place, lanes: int, known: Known | None = None) -> list[list[Expr]]:
        """Computes ``lanes`` iterations from ``place`` on.

        Returns:
            For every lane the values that the stage stores.
        """
        held = [
            (load, read_run(load, place, lanes))
            for load in self.wide(lanes)
            if known is None or known(load, 0) is None
        ]
        padded = [
            (padded.choice, padded.read(place, lanes))
            for padded in self._padded
            if lanes > 1 and padded.run % lanes == 0 and self.axes[-1].extent % lanes == 0
            if known is None or known(padded.load, 0) is None
        ]
        lines = range(lanes)
        return [self._lane(place.next(lane), lane, held, padded, known) for lane in lines]

    def _lane(
        self, place: Place, lane: int, ahead: Sequence[tuple[Load, Buffer]],
        padded: Sequence[tuple[ir.Call, Buffer]], known: Known | None,
    ) -> list[Expr]:  # fmt: skip
        def inside(call: ir.Call) -> Expr:
            found = next((held for other, held in padded if _equal(call, other)), None)
            return call if found is None else found[i32(lane)]

        def from_registers(load: Load) -> Expr:
            found = next((held for other, held in ahead if same(load, other)), None)
            return load if found is None else found[i32(lane)]

        def visit(load: Load) -> Expr:
            value = known(load, lane) if known else None
            return place.element(load) if value is None else value

        names: dict[Var, Expr] = {}

        def resolve(expr: Expr) -> Expr:
            if padded:
                expr = tvm_ffi.structural_map(expr, (ir.Call, inside))
            expr = map_loads(map_loads(expr, from_registers), visit)
            return place.value(substitute(expr, names))

        for var, value in self.stage.lets:
            names[var] = device.let(resolve(value))
        return [resolve(value) for value in self.stage.values]

    def store(self, place: Place, results: Sequence[Sequence[Expr]]) -> None:
        """Stores what :meth:`values` gave."""
        lanes = len(results)
        for position, (to, run) in enumerate(self._stores):
            column = [_as(values[position], str(to.source.dtype)) for values in results]
            if lanes > 1 and run % lanes == 0:
                held = device.registers(lanes, str(to.source.dtype))
                for lane, value in enumerate(column):
                    device.store(held, value, [lane])
                write_run(held, to, place, lanes)
                continue
            for lane, value in enumerate(column):
                element = place.next(lane).element(to)
                device.store(to.source, value, list(element.indices))


def _is_padded(call: ir.Call, stage: Stage, axes: Sequence[Axis]) -> bool:
    """Whether an expression reads an element or gives a constant, alike along the last loop."""
    if not is_choice(call):
        return False
    inside, element, fill = call.args
    if not isinstance(element, Load) or not isinstance(fill, (tirx.FloatImm, tirx.IntImm)):
        return False
    if loads_of(inside, *element.indices) or any(element.source.same_as(b) for b in stage.buffers):
        return False
    names = [var for var, _ in stage.lets]
    fixed = not uses(inside, [axes[-1].var])
    return fixed and not any(uses(expr, names) for expr in (inside, *element.indices))


def _equal(left: Expr, right: Expr) -> bool:
    return left.same_as(right) or tvm_ffi.structural_equal(left, right)


def _is_fixed(load: Load, axes: Sequence[Axis]) -> bool:
    """Whether an element stays the same along the innermost loop."""
    return not axes or not any(uses(index, [axes[-1].var]) for index in load.indices)


def _as(value: Expr, dtype: str) -> Expr:
    return value if dtype_of(value) == dtype else tirx.Cast(dtype, value)
