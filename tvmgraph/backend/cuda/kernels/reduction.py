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
    """A reduction whose order is free: a sum, product, extremum, or the position of one.

    Attributes:
        stage: The stage.
        reducer: Its form.
    """

    stage: Stage
    reducer: Reducer | ArgReducer

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """Types of the accumulators."""
        if isinstance(self.reducer, Reducer):
            return (self.reducer.dtype,)
        return tuple(str(buffer.dtype) for buffer in self.stage.buffers)

    @cached_property
    def terms(self) -> Stage:
        """A stage whose values are what every iteration contributes."""
        if isinstance(self.reducer, Reducer):
            return replace(self.stage, values=(self.reducer.term,))
        position = tirx.Cast(self.dtypes[0], self.reducer.position)
        return replace(self.stage, values=(position, self.reducer.element))

    def start(self) -> list[Expr]:
        """What an accumulator holds before anything was added."""
        if isinstance(self.reducer, Reducer):
            return [self.reducer.identity]
        assert self.stage.inits is not None
        return list(self.stage.inits)

    def combine(self, kept: Sequence[Expr], other: Sequence[Expr]) -> list[Expr]:
        """What two accumulators hold together.

        Args:
            kept: The values of an accumulator, one per result.
            other: Those of another one.
        """
        if isinstance(self.reducer, Reducer):
            return [self.reducer.combine(kept[0], other[0])]
        position = as_dtype(other[0], dtype_of(self.reducer.position))
        return combine_arg(self.reducer, (kept[0], kept[1]), (position, other[1]))

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
        if isinstance(self.reducer, Reducer) and self.reducer.start is not None:
            values = [self.reducer.combine(self.reducer.start, values[0])]
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


class FusedReductions(Reduction):
    """Several sums over the same loops, side by side.

    Args:
        reductions: The sums; their stages have the same loops and indices.

    Attributes:
        reductions: The sums.
    """

    def __init__(self, reductions: Sequence[Reduction]) -> None:
        stages = [reduction.stage for reduction in reductions]
        stage = replace(
            stages[0],
            buffers=tuple(s.buffer for s in stages),
            values=tuple(s.value for s in stages),
            inits=tuple(init for s in stages for init in s.inits or ()),
            lets=tuple(pair for s in stages for pair in s.lets),
        )
        super().__init__(stage, reductions[0].reducer)
        object.__setattr__(self, "reductions", tuple(reductions))

    reductions: tuple[Reduction, ...]

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """Types of the accumulators, one per sum."""
        return tuple(reduction.dtypes[0] for reduction in self.reductions)

    @cached_property
    def terms(self) -> Stage:
        """A stage whose values are what every iteration contributes to each sum."""
        return replace(
            self.stage, values=tuple(reduction.terms.value for reduction in self.reductions)
        )

    def start(self) -> list[Expr]:
        """What every accumulator holds before anything was added."""
        return [reduction.start()[0] for reduction in self.reductions]

    def combine(self, kept: Sequence[Expr], other: Sequence[Expr]) -> list[Expr]:
        """What two sets of accumulators hold together.

        Args:
            kept: The accumulators, one per sum.
            other: Others, one per sum.
        """
        pairs = zip(self.reductions, kept, other)
        return [reduction.combine([k], [o])[0] for reduction, k, o in pairs]

    def finish(self, values: Sequence[Expr]) -> list[Expr]:
        """What is stored, one value per sum.

        Args:
            values: The accumulators, one per sum.
        """
        return [reduction.finish([value])[0] for reduction, value in zip(self.reductions, values)]


def match_reduction(stage: Stage) -> Reduction | None:
    """How a stage is reduced, or None if its iterations must keep their order.

    Args:
        stage: A reduction stage.
    """
    reducer = match_reducer(stage) or match_arg_reducer(stage)
    return None if reducer is None else Reduction(stage, reducer)
