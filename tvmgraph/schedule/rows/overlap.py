"""Row kernels that write the results of a row while they reduce the next one.

Memory reads and writes at the same time as fast as it does either, and arithmetic hides behind
both. Taken in turns, the passes over a row leave the one or the other idle: softmax reads a row,
computes exponentials, then writes. Here the pass that writes is part of the last one that reduces,
one row behind it: an element of the row before is stored, then its place in the scratch buffer
takes the same element of this row. Each worker sweeps neighbouring rows.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import tirx

from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.access import accesses, groups
from tvmgraph.schedule.analysis.program import loads_of
from tvmgraph.schedule.analysis.reducer import match_reducer
from tvmgraph.schedule.choice import choose
from tvmgraph.schedule.rows.plan import IsOutput, RowPlan, RowStage
from tvmgraph.schedule.rows.tile import Local, RowTile, is_reduced_in_order
from tvmgraph.schedule.target import CpuModel
from tvmgraph.schedule.types import Expr

#: Rows per worker from which on the row that is left over at the end does not count.
_MIN_ROWS = 32


def can_overlap(plan: RowPlan, model: CpuModel) -> bool:
    """Whether the last stage of a plan, its only row of results, can run one row behind."""
    *early, late = plan.stages
    if late.stage.is_reduction or not early or plan.rows < _MIN_ROWS * model.threads:
        return False
    last = max(i for i, row in enumerate(early) if row.stage.is_reduction)
    reduction = early[last]
    if match_reducer(reduction.stage) is None or _extents(late) != _extents(reduction):
        return False
    merged = groups(late.stage, late.inner, accesses(late.stage, late.inner))
    if not len(merged) == len(reduction.loops) == 1:
        return False
    rows = [row for row in early if row.inner and not row.stage.is_reduction]
    fits = all(
        row is early[last - 1] and is_reduced_in_order(row, reduction) and _is_in_place(late, row)
        for row in rows
    )
    return fits and choose("rows overlapped", True, (True, False))


def _extents(row: RowStage) -> list[int]:
    return [axis.extent for axis in row.inner]


def _is_in_place(late: RowStage, row: RowStage) -> bool:
    """Whether a stage reads a row of intermediates at its own positions only."""
    own = [*late.outer, *late.inner]
    return all(
        len(load.indices) == len(own)
        and all(axis.var.same_as(index) for axis, index in zip(own, load.indices))
        for load in loads_of(*late.stage.exprs)
        if load.source.same_as(row.stage.buffer)
    )


def emit_overlapped(plan: RowPlan, model: CpuModel, lanes: int, is_output: IsOutput) -> None:
    """Writes a plan that :func:`can_overlap`, with streamed results."""
    *early, late = plan.stages
    with emit.parallel(model.threads) as worker:
        first, end = (
            tirx.floordiv((worker + step) * plan.rows, emit.i64(model.threads)) for step in (0, 1)
        )
        tile = RowTile(early, [], lanes, 1, large=True)
        tile.declare(is_output)
        kept = [_copy(local, late) for local in tile.locals]
        with emit.serial(end - first) as step:
            for local, copy in zip(tile.locals, kept):
                if copy is not local:
                    emit.store(copy.scratch, local.scratch[0], [0])
            # There is nothing before the first row. What is written then, from scratch buffers
            # without values, is in its own place and written again in the next step.
            before = tirx.max(first + step - 1, first)
            behind = _behind(plan, before, late, kept, lanes)
            tile.rows = emit.unfuse(first + step, plan.extents)
            tile.beside = behind.vector_of(late)
            tile.write()
        _behind(plan, end - 1, late, tile.locals, lanes).write()


def _behind(plan: RowPlan, row: Expr, late: RowStage, locals: list[Local], lanes: int) -> RowTile:
    rows = emit.unfuse(row, plan.extents)
    return RowTile([late], rows, lanes, 1, streamed=True, locals=locals)


def _copy(local: Local, late: RowStage) -> Local:
    """The same intermediate of the row before: a number is copied, a row is read just in time."""
    read = any(load.source.same_as(local.original) for load in loads_of(*late.stage.exprs))
    if not read or (local.row.inner and not local.row.stage.is_reduction):
        return local
    return replace(local, scratch=emit.stack(1, str(local.original.dtype)))
