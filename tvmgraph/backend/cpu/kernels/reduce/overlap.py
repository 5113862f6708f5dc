"""Row kernels that write the results of a row while they reduce the next one.

Memory reads and writes at the same time as fast as it does either, arithmetic hides behind both,
and a processor loads, computes and stores at once. Taken in turns, the passes over a row leave
some of that idle: softmax reads a row, computes exponentials, then writes. Here the pass that
writes is part of the last one that reduces, one row behind it: an element of the row before is
computed, its place in the scratch buffer takes the same element of this row, then it is stored
(last, because a load waits for earlier stores to addresses with the same lowest 12 bits). Each
worker sweeps neighbouring rows.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.reduce.tile import Local, RowTile, is_reduced_in_order
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.reducer import match_reducer
from tvmgraph.backend.loop_ir.rows import IsOutput, RowPlan, RowStage
from tvmgraph.backend.loop_ir.types import Expr

#: Rows per worker from which on the row that is left over at the end does not count.
_MIN_ROWS = 32


def can_overlap(plan: RowPlan, workers: int, is_output: IsOutput) -> bool:
    """Whether the last stage of a plan, its only row of results, can run one row behind.

    Args:
        plan: The stages of a function row by row.
        workers: Threads that share the rows; each must get several.
        is_output: Tells the function's results from its temporaries.
    """
    *early, late = plan.stages
    if late.stage.is_reduction or not is_output(late.stage.buffer) or not early:
        return False
    if plan.rows < _MIN_ROWS * workers:
        return False
    last = max(i for i, row in enumerate(early) if row.stage.is_reduction)
    reduction = early[last]
    if match_reducer(reduction.stage) is None or _extents(late) != _extents(reduction):
        return False
    if not len(late.loops) == len(reduction.loops) == 1:
        return False
    fits = all(
        row is early[last - 1]
        and is_reduced_in_order(row, reduction)
        and _is_in_place(late, row)
        and not is_output(row.stage.buffer)
        for row in early
        if row.inner and not row.stage.is_reduction
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
        for load in late.stage.loads
        if load.source.same_as(row.stage.buffer)
    )


def emit_overlapped(plan: RowPlan, every: RowTile, workers: int, is_output: IsOutput) -> None:
    """Writes a plan that :func:`can_overlap`.

    Args:
        plan: What is computed.
        every: A tile of one row, whichever, with all stages of the plan.
        workers: How many divide the rows.
        is_output: Whether a buffer is a result.
    """
    *early, late = plan.stages

    def behind(row: Expr, locals: list[Local]) -> RowTile:
        rows = emit.unfuse(row, plan.extents)
        return replace(every, stages=[late], rows=rows, large=False, locals=locals)

    with emit.parallel(workers, workers > 1) as worker:
        first, end = (
            tirx.floordiv((worker + step) * plan.rows, emit.i64(workers)) for step in (0, 1)
        )
        tile = replace(every, stages=early, locals=[])
        tile.declare(is_output)
        kept = [_copy(local, late) for local in tile.locals]
        with emit.serial(end - first) as step:
            for local, copy in zip(tile.locals, kept):
                if copy is not local:
                    emit.store(copy.scratch, local.scratch[0], [0])
            # There is nothing before the first row. What is written then, from scratch buffers
            # without values, is in its own place and written again in the next step.
            tile.beside = behind(tirx.max(first + step - 1, first), kept).vector_of(late)
            tile.rows = emit.unfuse(first + step, plan.extents)
            tile.write()
        behind(end - 1, tile.locals).write()


def _copy(local: Local, late: RowStage) -> Local:
    """The same intermediate of the row before: a number is copied, a row is read just in time."""
    read = any(load.source.same_as(local.original) for load in late.stage.loads)
    if not read or (local.row.inner and not local.row.stage.is_reduction):
        return local
    return replace(local, scratch=emit.stack(1, str(local.original.dtype)))
