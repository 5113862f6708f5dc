"""Arg-reductions (argmax, argmin) along a contiguous row.

Every lane keeps the best of its own positions, by the rule of the stage itself; the lanes are
combined by the same rule at the end of the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tvm_ffi

from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.point import Bound, vectors
from tvmgraph.backend.loop_ir.program import Stage, loads_of, map_loads, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var


@dataclass(frozen=True)
class ArgReducer:
    """A reduction that keeps a position and the value found there, such as argmax.

    Attributes:
        stage: The stage; its first buffer holds positions, its second one values.
        element: The value met in an iteration.
        position: The position of an iteration.
    """

    stage: Stage
    element: Load
    position: Var


def match_arg_reducer(stage: Stage) -> ArgReducer | None:
    """The reducer of an arg-reduction along one axis of a tensor that is read as it is.

    Args:
        stage: A reduction with two results, a position and a value.
    """
    if len(stage.buffers) != 2 or len(stage.reduce) != 1 or stage.lets:
        return None
    own = [load for load in loads_of(*stage.values) if _is_own(stage, load)]
    met = [load for load in loads_of(*stage.values) if not _is_own(stage, load)]
    if not own or not met:
        return None
    if not all(tvm_ffi.structural_equal(load, met[0]) for load in met):
        return None
    return ArgReducer(stage, met[0], stage.reduce[0].var)


def combine_arg(
    reducer: ArgReducer, kept: tuple[Expr, Expr], other: tuple[Expr, Expr]
) -> list[Expr]:
    """What is kept of two (position, value) pairs, by the rule of the stage itself.

    Args:
        reducer: The reducer.
        kept: Position and value of what was best.
        other: Position and value of what it is compared with.
    """

    def visit(load: Load) -> Expr:
        for buffer, value in zip(reducer.stage.buffers, kept):
            if load.source.same_as(buffer):
                return value
        return other[1]

    values = [map_loads(value, visit) for value in reducer.stage.values]
    return [substitute(value, {reducer.position: other[0]}) for value in values]


def _is_own(stage: Stage, load: Load) -> bool:
    return any(load.source.same_as(buffer) for buffer in stage.buffers)


def emit_arg_row(
    reducer: ArgReducer,
    totals: Sequence[Buffer],
    bound: Bound,
    lanes: int,
    redirect: Callable[[Expr], Expr],
) -> None:
    """Writes the reduction of one row.

    Args:
        reducer: The reduction.
        totals: One position and one value per lane, holding their initial values. The result is
            left in the first lane.
        bound: Values of the axes over rows.
        lanes: Elements of a vector.
        redirect: Redirects reads of intermediates.
    """
    stage = reducer.stage

    def step(start: Expr, count: int, _part: int) -> None:
        fresh = [emit.stack(count, str(total.dtype)) for total in totals]
        with emit.lanes_loop(count) as lane:
            here = bound | {reducer.position: start + lane}
            element = redirect(substitute(reducer.element, here))
            kept = (totals[0][lane], totals[1][lane])
            for register, value in zip(fresh, combine_arg(reducer, kept, (start + lane, element))):
                emit.store(register, value, [lane])
        with emit.lanes_loop(count) as lane:
            for register, total in zip(fresh, totals):
                emit.store(total, register[lane], [lane])

    vectors(emit.i64(0), stage.reduce[0].extent, lanes, step)
    with emit.serial(lanes - 1) as lane:
        kept = (totals[0][0], totals[1][0])
        other = (totals[0][lane + 1], totals[1][lane + 1])
        fresh = [emit.stack(1, str(total.dtype)) for total in totals]
        for register, value in zip(fresh, combine_arg(reducer, kept, other)):
            emit.store(register, value, [0])
        for register, total in zip(fresh, totals):
            emit.store(total, register[0], [0])
