"""Makes one stage of several that run over the same loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import tvm_ffi

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.inline import inline_into
from tvmgraph.backend.loop_ir.program import (
    Axis,
    Program,
    Stage,
    rename_buffers,
    static_shape,
    substitute,
)
from tvmgraph.backend.loop_ir.reducer import match_reducer
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var

#: Makes a temporary of a shape and a type.
Allocate = Callable[[Sequence[int], str], Buffer]


def extents_of(axes: Sequence[Axis]) -> tuple[int, ...]:
    """The extents of loops.

    Args:
        axes: The loops, outermost first.
    """
    return tuple(axis.extent for axis in axes)


def visits_same_points(program: Program) -> bool:
    """Whether every stage stores a parameter, elementwise and in the loops of the first stage.

    Args:
        program: Stages that might become one loop nest with several results.
    """
    first = program.stages[0]
    return not any(
        stage.is_reduction
        or extents_of(stage.axes) != extents_of(first.axes)
        or static_shape(stage.buffer) != static_shape(first.buffer)
        or not program.is_parameter(stage.buffer)
        for stage in program.stages
    )


def fuse_sums(program: Program) -> list[Stage] | None:
    """The stages of a program that is nothing but sums over the same loops, with these in common.

    Sums, products and extrema count; none reads another's result.

    Args:
        program: A function such as mean and mean of squares, whose reductions read the same
            elements.

    Returns:
        The stages with the loop variables of the first one, or None where extents, reducers or
        indices of the results differ, or one reads another.
    """
    first = program.stages[0]
    found: list[Stage] = []
    for stage in program.stages:
        alike = all(
            extents_of(one) == extents_of(other)
            for one, other in ((stage.axes, first.axes), (stage.reduce, first.reduce))
        )
        if not alike or match_reducer(stage) is None or not program.is_parameter(stage.buffer):
            return None
        if any(stage.reads(other.buffer) for other in program.stages if other is not stage):
            return None
        pairs = [*zip(stage.axes, first.axes), *zip(stage.reduce, first.reduce)]
        renamed: dict[Var, Expr] = {a.var: b.var for a, b in pairs}
        indices = tuple(substitute(index, renamed) for index in stage.indices)
        if not tvm_ffi.structural_equal(list(indices), list(first.indices)):
            return None
        found.append(
            replace(
                stage,
                axes=first.axes,
                reduce=first.reduce,
                indices=indices,
                values=tuple(substitute(value, renamed) for value in stage.values),
                lets=tuple((v, substitute(value, renamed)) for v, value in stage.lets),
            )
        )
    return found


def fuse_points(program: Program) -> Stage | None:
    """The stages of an elementwise program as one that stores several results, if they match.

    Args:
        program: Two elementwise stages or more over loops of the same extents.

    Returns:
        One stage that stores all results, each computed from the inputs alone; None if the loops
        differ.
    """
    if len(program.stages) < 2 or not visits_same_points(program):
        return None
    first, *others = program.stages
    for stage in others:
        # the last ones first: what they bring in may read results of earlier stages
        for done in reversed(program.stages):
            if done is not stage and stage.reads(done.buffer):
                stage = inline_into(stage, done)
        renamed: dict[Var, Expr] = {a.var: b.var for a, b in zip(stage.axes, first.axes)}
        first = replace(
            first,
            buffers=(*first.buffers, *stage.buffers),
            values=(*first.values, *(substitute(value, renamed) for value in stage.values)),
            lets=(*first.lets, *((v, substitute(value, renamed)) for v, value in stage.lets)),
        )
    return first


def materialize(
    stages: Sequence[Stage], position: int, allocate: Allocate = emit.workspace
) -> tuple[Stage, ...]:
    """Gives the results of a stage memory of the kernel that is being written.

    Args:
        stages: Stages in execution order.
        position: Which of them stores what others read.
        allocate: Makes the memory.

    Returns:
        The stages, storing to and reading from that memory.
    """
    renamed = list(stages)
    for buffer in stages[position].buffers:
        memory = allocate(static_shape(buffer) or (), str(buffer.dtype))
        renamed = [rename_buffers(stage, {hash(buffer): memory}) for stage in renamed]
    return tuple(renamed)
