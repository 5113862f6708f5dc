"""Choosing a kernel for functions without matrix products: elementwise, rows, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from tvm.tirx.script import builder as T

from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.access import group_extent
from tvmgraph.schedule.analysis.inline import has_identity_store, inline
from tvmgraph.schedule.analysis.joining import join_points, join_sums
from tvmgraph.schedule.analysis.program import (
    Program,
    Stage,
    map_loads,
    parse,
    product,
    static_shape,
)
from tvmgraph.schedule.cuda.columns import emit_columns, emit_columns_together
from tvmgraph.schedule.cuda.elementwise import emit_elementwise
from tvmgraph.schedule.cuda.long_rows import emit_long_rows, wants_parts
from tvmgraph.schedule.cuda.pool_grad import emit_max_pool_grad
from tvmgraph.schedule.cuda.recurrent import emit_recurrent
from tvmgraph.schedule.cuda.recurrent_gradient import emit_recurrent_gradient
from tvmgraph.schedule.cuda.rows import emit_rows, emit_rows_across, joining_model
from tvmgraph.schedule.cuda.scan import emit_scan
from tvmgraph.schedule.cuda.single import emit_repeated, emit_search
from tvmgraph.schedule.cuda.top import emit_top
from tvmgraph.schedule.cuda.transposed import emit_transposed, find_turned
from tvmgraph.schedule.elementwise.in_place import write_in_place
from tvmgraph.schedule.rows.plan import RowPlan, plan_rows
from tvmgraph.schedule.target import GpuModel
from tvmgraph.schedule.types import IN_PLACE, WRITTEN, Buffer, Expr, Func, Load

#: Kernels that rows of the operator table ask for by name, see :data:`WRITTEN`. Others are written
#: as loops too, which have kernels like any loops.
_WRITERS: dict[str, Callable[[Func, Any, GpuModel], None]] = {
    "max_pool_grad": emit_max_pool_grad,
    "recurrent": emit_recurrent,
    "recurrent_gradient": emit_recurrent_gradient,
    "repeated": emit_repeated,
    "scan": emit_scan,
    "search": emit_search,
    "top": emit_top,
}


def simt_rule(func: Func, model: GpuModel) -> Func | None:
    """The kernels of a function of loop nests, else None."""
    if func.attrs and IN_PLACE in func.attrs:
        return write_in_place(func, lambda stage: emit_elementwise(stage, model))
    if func.attrs and WRITTEN in func.attrs:
        name, settings = func.attrs[WRITTEN]
        writer = _WRITERS.get(str(name))
        if writer is not None:
            return emit.kernel(func, lambda: writer(func, settings, model))
    parsed = parse(func)
    if parsed is None:
        if func.attrs and WRITTEN in func.attrs:  # its loops are a processor's
            name = func.attrs[WRITTEN][0]
            raise NotImplementedError(f"no kernel for GPUs is written for {name!r}")
        return None
    program = inline(parsed)
    if not all(has_identity_store(stage) for stage in program.stages if stage.is_reduction):
        return None
    return emit.kernel(func, lambda: emit_program(program, model))


def emit_program(program: Program, model: GpuModel) -> None:
    """Writes a program as one kernel where its stages allow it, else a kernel for each stage."""
    plan = plan_rows(program.stages)
    if plan is not None and _is_busy(plan, model) and emit_rows(plan, model, program.is_parameter):
        return
    if _are_long_columns(plan) and emit_columns_together(join_sums(program) or (), model):
        return
    if _shares_columns(plan) and emit_rows_across(plan, model, program.is_parameter):
        return
    joined = join_points(program)
    stages = (joined,) if joined is not None else program.stages
    for position, stage in enumerate(stages):
        if not all(program.is_parameter(buffer) for buffer in stage.buffers):
            stages = materialize(stages, position)
        _emit_stage(stages[position], model)


def _is_busy(plan: RowPlan, model: GpuModel) -> bool:
    """Whether there are rows enough, contiguous ones, for a kernel that takes them one by one."""
    if not plan.along_rows or not plan.rows:
        return False
    return all(wants_parts(row.stage, model) == 1 for row in plan.stages if row.stage.is_reduction)


def _shares_columns(plan: RowPlan | None) -> TypeGuard[RowPlan]:
    """Whether several stages go through the same rows, whose elements lie apart in memory."""
    return plan is not None and not plan.along_rows and plan.rows > 0 and len(plan.stages) > 1


def _are_long_columns(plan: RowPlan | None) -> bool:
    """The same where the rows are longer than a block can hold."""
    if not _shares_columns(plan):
        return False
    depths = [group_extent(row.inner) for row in plan.stages if row.stage.is_reduction]
    return bool(depths) and max(depths) > joining_model().apart


def _emit_stage(stage: Stage, model: GpuModel) -> None:
    if not stage.points:
        return
    if not stage.is_reduction:
        turned = find_turned(stage)
        if turned is not None:
            emit_transposed(stage, turned)
        else:
            emit_elementwise(stage, model)
        return
    plan = plan_rows([stage])
    if plan is not None and plan.along_rows:
        parts = wants_parts(stage, model)
        if parts > 1 and emit_long_rows(stage, parts):
            return
        if emit_rows(plan, model, lambda _: True):
            return
    emit_columns(stage, model)


def materialize(stages: Sequence[Stage], position: int) -> tuple[Stage, ...]:
    """Gives the results of a stage memory of their own."""
    renamed = list(stages)
    for buffer in stages[position].buffers:
        shape, dtype = static_shape(buffer) or (1,), str(buffer.dtype)
        # TVM shrinks what it allocates to the region that indices seem to touch: not through a view
        memory = emit.workspace([product(shape)], dtype)
        memory = T.decl_buffer(buffer.shape, dtype, data=memory.data)
        renamed = [_rename(stage, buffer, memory) for stage in renamed]
    return tuple(renamed)


def _rename(stage: Stage, old: Buffer, new: Buffer) -> Stage:
    def visit(load: Load) -> Expr:
        return new[tuple(load.indices)] if load.source.same_as(old) else load

    return replace(
        stage,
        buffers=tuple(new if buffer.same_as(old) else buffer for buffer in stage.buffers),
        values=tuple(map_loads(value, visit) for value in stage.values),
        lets=tuple((var, map_loads(value, visit)) for var, value in stage.lets),
    )
