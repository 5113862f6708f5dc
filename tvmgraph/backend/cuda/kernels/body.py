"""The body of a stage for a few neighbouring iterations of one thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm import tirx

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
from tvmgraph.backend.loop_ir.program import Axis, Stage, map_loads, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var, dtype_of

#: Gives the value of an element that is not read from memory, or None.
Known = Callable[[Load, int], Expr | None]


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
    def _guarded(self) -> list[Load]:
        """What may be read only where a condition holds: padding, joined tensors."""
        own = self.stage.buffers
        return [
            load
            for load in self.stage.loads
            if not any(same(load, other) for other, _ in self._runs)
            and not any(load.source.same_as(buffer) for buffer in own)
        ]

    @cached_property
    def lanes(self) -> int:
        """Elements of a vector: as many as fill 16 bytes of the narrowest type that can be moved
        so, and no more than the innermost group holds without a rest."""
        loops = Loops(self.stage, self.axes)
        moved = [(load, run) for load, run in [*self._runs, *self._stores] if run > 1]
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
        return [self._lane(place.next(lane), lane, held, known) for lane in range(lanes)]

    def _lane(
        self, place: Place, lane: int, ahead: Sequence[tuple[Load, Buffer]], known: Known | None
    ) -> list[Expr]:
        def from_registers(load: Load) -> Expr:
            found = next((held for other, held in ahead if same(load, other)), None)
            return load if found is None else found[i32(lane)]

        def visit(load: Load) -> Expr:
            value = known(load, lane) if known else None
            return place.element(load) if value is None else value

        names: dict[Var, Expr] = {}

        def resolve(expr: Expr) -> Expr:
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


def _is_fixed(load: Load, axes: Sequence[Axis]) -> bool:
    """Whether an element stays the same along the innermost loop."""
    return not axes or not any(uses(index, [axes[-1].var]) for index in load.indices)


def _as(value: Expr, dtype: str) -> Expr:
    return value if dtype_of(value) == dtype else tirx.Cast(dtype, value)
