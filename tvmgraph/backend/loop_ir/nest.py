"""What kernels are offered: loops, and what the analyses say about them, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from tvmgraph.backend.loop_ir.columns import Columns
from tvmgraph.backend.loop_ir.contraction import Contraction, prepare_first
from tvmgraph.backend.loop_ir.inline import has_identity_store, inline
from tvmgraph.backend.loop_ir.program import Program, Stage, parse, static_shape
from tvmgraph.backend.loop_ir.rows import IsOutput, RowPlan, plan_rows
from tvmgraph.backend.loop_ir.types import Func

Fact = TypeVar("Fact")


@dataclass(frozen=True, eq=False)
class Nest:
    """Loops that want a kernel.

    Attributes:
        func: The function they come from.
        contracts: Whether kernels for sums of products may take them.
        remaining: The stages that a kernel left and handed back; None for a whole function.
        contraction: A sum of products that a kernel handed back in the place of the stages.
        columns: The columns of ``contraction``.
        arrange: What a backend does to the stages of a function unless they are a product.
    """

    func: Func
    contracts: bool = True
    remaining: Program | None = None
    contraction: Contraction | None = None
    columns: Columns | None = None
    arrange: Callable[[Program], Program] | None = None
    _facts: dict[Hashable, object] = field(default_factory=dict, repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether the loops are the whole function."""
        return self.remaining is None and self.contraction is None

    @cached_property
    def parsed(self) -> Program | None:
        """The loops as stages, as they were written; None where they are no list of nests."""
        return self.remaining or (parse(self.func) if self.is_whole else None)

    @cached_property
    def is_empty(self) -> bool:
        """Whether a buffer has no elements."""
        if self.parsed is None:
            return False
        written = (b for stage in self.parsed.stages for b in stage.buffers)
        buffers = [*self.parsed.params, *written]
        return any(0 in (static_shape(buffer) or ()) for buffer in buffers)

    @cached_property
    def program(self) -> Program | None:
        """The stages, merged where that costs nothing; None where no kernel knows them."""
        if self.parsed is None or not self.is_whole:
            return self.parsed
        program = inline(self.parsed)
        known = all(has_identity_store(s) for s in program.stages if s.is_reduction)
        return program if known else None

    @cached_property
    def ordered(self) -> Program | None:
        """The stages, those first that need no sums."""
        return None if self.program is None else prepare_first(self.program)

    @cached_property
    def loops(self) -> Program | None:
        """The stages as kernels see them that know no products."""
        if self.program is None or not self.is_whole or self.arrange is None:
            return self.program
        return self.arrange(self.program)

    @cached_property
    def rows(self) -> RowPlan | None:
        """The stages row by row; None where they do not share their rows."""
        return None if self.loops is None else plan_rows(self.loops.stages)

    @cached_property
    def stage(self) -> Stage | None:
        """The only stage, if it stores what is not a temporary of the function."""
        if self.loops is None or len(self.loops.stages) != 1:
            return None
        (stage,) = self.loops.stages
        return stage if all(map(self.is_output, stage.buffers)) else None

    @property
    def is_output(self) -> IsOutput:
        """Whether a buffer is stored for others than the nest itself.

        What a single stage stores that a kernel handed back always is: that kernel made it memory.
        """
        if self.loops is None or (not self.is_whole and len(self.loops.stages) == 1):
            return lambda _: True
        return self.loops.is_parameter

    def once(self, compute: Callable[..., Fact], *others: Hashable) -> Fact:
        """``compute(nest, *others)``, computed at the first call: a fact that kernels share.

        Args:
            compute: A function of the nest and ``others``; it is the key, so it must be one object.
            others: What else it depends on; hashable.
        """
        key = (compute, *others)
        if key not in self._facts:
            self._facts[key] = compute(self, *others)
        return self._facts[key]  # pyright: ignore[reportReturnType]

    def subnest(self, stages: Sequence[Stage], contracts: bool = False) -> Nest:
        """Some stages, perhaps with other buffers, as what is left to write.

        Args:
            stages: The stages.
            contracts: Whether kernels for sums of products may take them.
        """
        return Nest(self.func, contracts, Program(tuple(self.func.params), tuple(stages)))

    def product(self, contraction: Contraction, columns: Columns) -> Nest:
        """A sum of products with the columns that form panels, as what is left to write.

        Args:
            contraction: The sum; what comes before it is written already.
            columns: Its column axes.
        """
        return Nest(self.func, contraction=replace(contraction, before=()), columns=columns)
