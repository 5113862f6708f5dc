"""How a reduction stage accumulates: registers, the terms it adds, and its final value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tvm import tirx

from tvmgraph.backend.cpu.kernels.reduce.arg import ArgReducer, combine_arg, match_arg_reducer
from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.device import i32
from tvmgraph.backend.loop_ir.program import Stage
from tvmgraph.backend.loop_ir.reducer import Reducer, match_reducer
from tvmgraph.backend.loop_ir.types import Buffer, Expr, as_dtype, dtype_of


@dataclass(frozen=True)
class Reduction:
    """A reduction whose order is free: sums, products, extrema, or the position of an extremum.

    Attributes:
        stage: The stage.
        reducers: Its form: one of several results side by side, or the position.
    """

    stage: Stage
    reducers: tuple[Reducer, ...] | ArgReducer

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """Types of the accumulators."""
        if isinstance(self.reducers, ArgReducer):
            return tuple(str(buffer.dtype) for buffer in self.stage.buffers)
        return tuple(reducer.dtype for reducer in self.reducers)

    @cached_property
    def terms(self) -> Stage:
        """A stage whose values are what every iteration contributes."""
        if isinstance(self.reducers, ArgReducer):
            position = tirx.Cast(self.dtypes[0], self.reducers.position)
            return replace(self.stage, values=(position, self.reducers.element))
        return replace(self.stage, values=tuple(reducer.term for reducer in self.reducers))

    def start(self) -> list[Expr]:
        """What an accumulator holds before anything was added."""
        if isinstance(self.reducers, ArgReducer):
            return list(self.stage.inits or ())
        return [reducer.identity for reducer in self.reducers]

    def combine(self, kept: Sequence[Expr], other: Sequence[Expr]) -> list[Expr]:
        """What two accumulators hold together.

        Args:
            kept: The values of an accumulator, one per result.
            other: Those of another one.
        """
        if isinstance(self.reducers, ArgReducer):
            position = as_dtype(other[0], dtype_of(self.reducers.position))
            return combine_arg(self.reducers, (kept[0], kept[1]), (position, other[1]))
        return [r.combine(mine, theirs) for r, mine, theirs in zip(self.reducers, kept, other)]

    def term(self, values: Sequence[Expr]) -> list[Expr]:
        """A contribution in the accumulators' types.

        Args:
            values: What an iteration contributes, one value per result.
        """
        return [as_dtype(v, dtype) for v, dtype in zip(values, self.dtypes)]

    def finish(self, values: Sequence[Expr]) -> list[Expr]:
        """What is stored, given the accumulators.

        Args:
            values: The accumulators, one per result.

        Returns:
            One value per buffer of the stage, of its dtype.
        """
        if not isinstance(self.reducers, ArgReducer):
            pairs = zip(self.reducers, values)
            values = [v if r.start is None else r.combine(r.start, v) for r, v in pairs]
        return [as_dtype(v, str(b.dtype)) for v, b in zip(values, self.stage.buffers)]

    def registers(self, count: int = 1) -> list[Buffer]:
        """``count`` accumulators, holding their starts.

        Args:
            count: How many sets of accumulators a thread has.
        """
        pairs = zip(self.dtypes, self.start())
        return [device.fill(device.registers(count, dtype), value) for dtype, value in pairs]

    def add(self, held: Sequence[Buffer], position: int, values: Sequence[Expr]) -> None:
        """Adds a contribution to an accumulator.

        Args:
            held: The registers of all accumulators, one buffer per result.
            position: Number of the accumulator.
            values: The contribution, one value per result.
        """
        own = [register[i32(position)] for register in held]
        results = self.combine(own, self.term(values))
        if len(results) > 1:
            results = [device.let(value) for value in results]
        for register, value in zip(held, results):
            device.store(register, value, [position])

    def join(self, held: Sequence[Buffer], count: int) -> None:
        """Combines a thread's own accumulators into the first one.

        Args:
            held: One buffer per accumulator.
            count: How many sets of accumulators it holds, a power of two.
        """
        while count > 1:
            count //= 2
            for position in range(count):
                self.add(held, position, [register[i32(position + count)] for register in held])


def match_reduction(stage: Stage) -> Reduction | None:
    """How a stage is reduced, or None if its iterations must keep their order.

    Args:
        stage: A reduction stage.
    """
    reducer = match_reducer(stage)
    found = match_arg_reducer(stage) if reducer is None else (reducer,)
    return None if found is None else Reduction(stage, found)


def side_by_side(stages: Sequence[Stage]) -> Reduction | None:
    """Several sums over the same loops as one reduction, or None where one is no sum.

    Args:
        stages: The sums, which have the same loops and indices.
    """
    reducers = [reducer for reducer in map(match_reducer, stages) if reducer is not None]
    if len(reducers) < max(2, len(stages)):
        return None
    stage = replace(
        stages[0],
        buffers=tuple(s.buffer for s in stages),
        values=tuple(s.value for s in stages),
        inits=tuple(init for s in stages for init in s.inits or ()),
        lets=tuple(pair for s in stages for pair in s.lets),
    )
    return Reduction(stage, tuple(reducers))
