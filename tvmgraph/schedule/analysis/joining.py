"""Which kernels may become one: those that run over the same rows or the same elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tvm_ffi

from tvmgraph.processor import CpuModel
from tvmgraph.schedule.analysis.access import group_extent
from tvmgraph.schedule.analysis.contraction import is_window, match_contraction, prepare_first
from tvmgraph.schedule.analysis.inline import has_identity_store, inline, inline_into
from tvmgraph.schedule.analysis.program import (
    Axis,
    Program,
    Stage,
    parse,
    product,
    static_shape,
    substitute,
)
from tvmgraph.schedule.analysis.reducer import match_reducer
from tvmgraph.schedule.convolution.depthwise import is_depthwise
from tvmgraph.schedule.rows.kernel import wants_split
from tvmgraph.schedule.rows.plan import plan_rows
from tvmgraph.schedule.types import SCHEDULED, WRITTEN, Expr, Func, Var

#: Sums that one kernel computes at most: a block keeps a vector of each per thread.
_MOST_SUMS = 4
#: Reductions over fewer elements are windows, which have kernels of their own.
_SHORTEST_ROW = 16


@dataclass(frozen=True)
class Shape:
    """What a kernel runs over.

    Attributes:
        rows: Extents of the rows, or ``None`` for an elementwise kernel.
        axes: Extents of an elementwise kernel's loops, or ``None`` where stages differ in them, as
            when something is computed once per row first.
        points: Elements of its largest output.
        columns: Extents of results and of what they are summed over, of a kernel that does nothing
            else, whose results lie side by side.
    """

    rows: tuple[int, ...] | None
    axes: tuple[int, ...] | None
    points: int
    columns: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    def may_join(self, other: Shape) -> bool:
        """Whether it is worth trying to join two kernels."""
        if self.columns is not None or other.columns is not None:
            return self.columns == other.columns
        if self.rows is not None and other.rows is not None:
            return self.rows == other.rows
        if self.rows is None and other.rows is None:
            return self.axes is not None and self.axes == other.axes
        rows = product((self.rows or ()) + (other.rows or ()))
        points = self.points if self.rows is None else other.points
        return rows > 0 and points % rows == 0


def shape_of(func: Func, model: CpuModel) -> Shape | None:
    """What a function runs over, or None when it cannot be joined with others."""
    program = _program(func)
    if program is None or _is_product(program):
        return None
    return _row_shape(program, model) or _point_shape(program) or _mixed_shape(program)


def joined_shape(func: Func, parts: tuple[Shape, ...], model: CpuModel) -> Shape | None:
    """What a joined kernel runs over, or None if it would not run in one pass over memory."""
    program = _program(func)
    if program is None:
        return None
    if any(part.columns is not None for part in parts):
        return _row_shape(program, model)
    rows = next((part.rows for part in parts if part.rows is not None), None)
    if rows is None:
        return _point_shape(program)
    shape = _row_shape(program, model)
    return shape if shape is not None and shape.rows == rows else None


def _program(func: Func) -> Program | None:
    if func.attrs and (SCHEDULED in func.attrs or WRITTEN in func.attrs):
        return None
    parsed = parse(func)
    if parsed is None or any(0 in (static_shape(p) or ()) for p in func.params):
        return None
    program = inline(parsed)
    if not all(has_identity_store(stage) for stage in program.stages):
        return None
    return program


def _is_product(program: Program) -> bool:
    contraction = match_contraction(prepare_first(program))
    if contraction is None:
        return False
    if not contraction.columns:
        return is_depthwise(contraction)
    return bool(contraction.rows) or not is_window(contraction)


def _row_shape(program: Program, model: CpuModel) -> Shape | None:
    plan = plan_rows(program.stages)
    if plan is None or wants_split(plan, model):
        return None
    depths = [group_extent(row.inner) for row in plan.stages if row.stage.is_reduction]
    if not plan.along_rows and max(depths) > model.apart:
        return _column_shape(program) if model.apart else None
    shortest = min(depths)
    kept = sum(
        4 * group_extent(row.inner)
        for row in plan.stages
        if not row.stage.is_reduction and not program.is_parameter(row.stage.buffer)
    )
    if shortest < _SHORTEST_ROW or kept > model.l2_bytes // 2:
        return None
    return Shape(plan.extents, (), max(stage.points for stage in program.stages))


def _column_shape(program: Program) -> Shape | None:
    """Sums of columns that are too long to be held."""
    sums = join_sums(program)
    if sums is None or len(sums) > _MOST_SUMS:
        return None
    return Shape(None, None, sums[0].points, (_extents(sums[0].axes), _extents(sums[0].reduce)))


def _extents(axes: Sequence[Axis]) -> tuple[int, ...]:
    return tuple(axis.extent for axis in axes)


def _point_shape(program: Program) -> Shape | None:
    first = program.stages[0]
    extents = tuple(axis.extent for axis in first.axes)
    for stage in program.stages:
        same = tuple(axis.extent for axis in stage.axes) == extents
        shapes = static_shape(stage.buffer) == static_shape(first.buffer)
        if stage.is_reduction or not same or not shapes or not program.is_parameter(stage.buffer):
            return None
    return Shape(None, extents, first.points)


def _mixed_shape(program: Program) -> Shape | None:
    """An elementwise kernel whose stages run over different loops: rows may take it in."""
    if any(stage.is_reduction for stage in program.stages):
        return None
    return Shape(None, None, max(stage.points for stage in program.stages))


def join_sums(program: Program) -> list[Stage] | None:
    """The stages of a program that is nothing but sums over the same loops, with these in common.

    Sums, products and extrema count; none reads another's result.
    """
    first, found = program.stages[0], []
    for stage in program.stages:
        alike = all(
            _extents(one) == _extents(other)
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


def join_points(program: Program) -> Stage | None:
    """The stages of an elementwise program as one that stores several results, if they match."""
    if len(program.stages) < 2 or _point_shape(program) is None:
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
