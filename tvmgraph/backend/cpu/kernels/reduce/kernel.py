"""Row kernels: reductions and everything built on them, one row (or vector of rows) at a time.

Blocking, with L lanes per vector:

* rows contiguous (``along_rows``): one row at a time. A reduction keeps up to four vectors of
  accumulators and combines them at the end of the row. The pass that writes runs one row behind
  where there are rows enough.
* rows interleaved (a reduction over any but the last axis): a tile of up to eight vectors of
  neighbouring rows at a time, one accumulator lane per row.

Rows are divided among the workers. When there are fewer rows than workers, a reduction is divided
along its first reduced axis instead, and the partial results are combined.

Why the results of a row are written while the next one is reduced: memory reads and writes at the
same time as fast as it does either, arithmetic hides behind both, and a processor loads, computes
and stores at once. Taken in turns, the passes over a row leave some of that idle: softmax reads a
row, computes exponentials, then writes. Here the pass that writes is part of the last one that
reduces, one row behind it: an element of the row before is computed, its place in the scratch
buffer takes the same element of this row, then it is stored (last, because a load waits for
earlier stores to addresses with the same lowest 12 bits). Each worker sweeps neighbouring rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tvm import tirx

from tvmgraph.backend.cpu.kernels.elementwise.nontemporal import is_nontemporal, nontemporal_stores
from tvmgraph.backend.cpu.kernels.reduce.softmax import simplify_softmax
from tvmgraph.backend.cpu.kernels.reduce.tile import Local, RowTile, is_reduced_in_order
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import accesses, group_extent
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import product, static_shape
from tvmgraph.backend.loop_ir.reducer import Reducer, match_reducer
from tvmgraph.backend.loop_ir.rows import IsOutput, RowPlan, RowStage
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Var
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.machine.processor import CpuModel

#: Below this many iterations a kernel stays on the calling thread.
MIN_PARALLEL_WORK = 32 * 1024
#: Vectors in a tile of interleaved rows.
_TILE_VECTORS = 8
#: Bytes of results, and rows per worker, from which on a matrix is swept row by row.
_MIN_SWEEP, _MIN_SWEEP_LENGTH = 2048, 64


def emit_rows(plan: RowPlan, model: CpuModel, is_output: IsOutput) -> None:
    """Writes the loops of a row plan.

    Args:
        plan: The stages of a function row by row.
        model: The processor: lanes, registers, threads, caches.
        is_output: Tells the function's results from its temporaries.
    """
    plan = simplify_softmax(plan)
    enough = plan.work >= MIN_PARALLEL_WORK
    parallel = model.threads > 1 and choose("rows parallel", enough, (True, False))
    lanes, held = _lanes(plan, model), _held(model)
    if plan.along_rows or not plan.extents:
        results = _nontemporal_results(plan, lanes, model, is_output)
        shared = parallel and plan.rows > 1
        large = _is_large(plan, model)
        workers = model.threads if shared else 1
        if can_overlap(plan, workers, is_output):
            with nontemporal_stores(results, lanes):
                tile = RowTile(plan.stages, [], lanes, 1, held, large, bool(results))
                emit_overlapped(plan, tile, workers, is_output)
            return
        with nontemporal_stores(results, lanes), emit.parallel(plan.rows, shared) as row:
            rows = emit.unfuse(row, plan.extents)
            RowTile(plan.stages, rows, lanes, 1, held, large, bool(results)).run(is_output)
        return
    *outer, last = plan.extents
    width = min(_tile_width(plan, model, lanes), last)
    full = last // width
    with emit.parallel(product(outer) * full, parallel) as tile:
        *rows, position = emit.unfuse(tile, [*outer, full])
        RowTile(plan.stages, [*rows, position * width], lanes, width, held).run(is_output)
    if last % width:
        with emit.parallel(product(outer), parallel and product(outer) > 1) as rest:
            rows = [*emit.unfuse(rest, outer), emit.i64(full * width)]
            RowTile(plan.stages, rows, lanes, last % width, held).run(is_output)


def _nontemporal_results(
    plan: RowPlan, lanes: int, model: CpuModel, is_output: IsOutput
) -> list[Buffer]:
    """The results of full rows, if all of them are large enough to be stored around the caches."""
    rows = [
        row
        for row in plan.stages
        if not row.stage.is_reduction and is_output(row.stage.buffer) and row.inner
    ]
    if all(is_nontemporal(row.stage, group_extent(row.loops[-1]), lanes, model) for row in rows):
        return [row.stage.buffer for row in rows]
    return []


def _is_large(plan: RowPlan, model: CpuModel) -> bool:
    """Whether an operand does not fit the last-level cache beside others."""
    sizes = (
        item.itemsize * product(static_shape(item.buffer) or ())
        for row in plan.stages
        for item in accesses(row.stage, ())
    )
    return max(sizes) >= model.l3_bytes // 2


def wants_split(plan: RowPlan, model: CpuModel) -> bool:
    """Whether to divide the reduced axis: too few rows for the workers, or a sweep of columns.

    Args:
        plan: The stages of a function row by row.
        model: The processor: its threads and lanes.
    """
    if plan.work < 2 * MIN_PARALLEL_WORK:
        return False
    if _is_sweep(plan, model):
        return True
    if model.threads == 1:
        return False
    lanes = _lanes(plan, model)
    if plan.along_rows or not plan.extents:
        return plan.rows < model.threads
    return product(plan.extents[:-1]) * -(-plan.extents[-1] // lanes) < model.threads


def _is_sweep(plan: RowPlan, model: CpuModel) -> bool:
    """Whether columns of a large matrix are reduced to so few results that they stay in the cache.

    Each worker then reads its chunk of the matrix from one end to the other, as memory likes it:
    on one thread of Zen 3 4096 x 4096 take 4 ms, 8 ms in tiles that go down the columns.
    """
    if plan.along_rows or not plan.extents or not _is_large(plan, model):
        return False
    if any(not row.stage.is_reduction and row.inner for row in plan.stages):
        return False
    length = min(group_extent(row.inner) for row in plan.stages if row.stage.is_reduction)
    results = product(plan.extents)
    fits = len(plan.extents) == 1 and _MIN_SWEEP <= results * 8 <= model.l1_bytes * 2
    return fits and length >= _MIN_SWEEP_LENGTH * model.threads


def _write_partial(
    plan: RowPlan,
    reducer: Reducer,
    partial: Buffer,
    chunk: Var,
    stride: int,
    length: int,
    model: CpuModel,
) -> None:
    """Reduces iterations ``chunk * stride`` to ``+ length`` of every row."""
    row, lanes = plan.stages[0], _lanes(plan, model)
    width = 1 if plan.along_rows or not plan.extents else plan.extents[-1]
    with emit.serial(plan.rows // width) as position:
        rows = emit.unfuse(position, plan.extents if width == 1 else plan.extents[:-1])
        rows = rows if width == 1 else [*rows, emit.i64(0)]
        tile = RowTile(plan.stages, rows, lanes, width, _held(model))
        total = tile.partial(row, reducer, chunk * stride, length)
        with emit.serial(width) as slot:
            emit.store(partial, total[slot], [chunk, position * width + slot])


def _combine_partials(plan: RowPlan, reducer: Reducer, partial: Buffer, chunks: int) -> None:
    row = plan.stages[0]
    with emit.serial(plan.rows) as position:
        total = emit.stack(1, reducer.dtype)
        emit.store(total, partial[0, position], [0])
        with emit.serial(chunks - 1) as chunk:
            emit.store(total, reducer.combine(total[0], partial[chunk + 1, position]), [0])
        tile = RowTile(plan.stages, emit.unfuse(position, plan.extents), 1, 1, 1)
        tile.finish(replace(row, inner=()), reducer, total)


def _held(model: CpuModel) -> int:
    """Vectors of accumulators that stay in registers, beside as many of what they take."""
    return model.registers // 2


def _lanes(plan: RowPlan, model: CpuModel) -> int:
    """Elements of a vector, by the widest type; what a row has one of needs no vector."""
    widest = 4
    for row in plan.stages:
        if row.inner or not plan.along_rows:
            stored = len(row.stage.buffers)
            for i, item in enumerate(accesses(row.stage, row.inner)):
                if i < stored or not plan.along_rows or any(item.used):
                    widest = max(widest, item.itemsize)
    return model.lanes_of(widest)


def _tile_width(plan: RowPlan, model: CpuModel, lanes: int) -> int:
    """Rows of a tile: as many as give every worker a tile and keep intermediates in L2."""
    width = lanes * choose("row tile vectors", _TILE_VECTORS, (4, _TILE_VECTORS, 16))
    kept = sum(
        4 * group_extent(row.inner)
        for row in plan.stages
        if row.inner and not row.stage.is_reduction
    )
    others, last = product(plan.extents[:-1]), plan.extents[-1]
    while width > lanes and (
        kept * width > model.l2_bytes // 2 or others * -(-last // width) < model.threads
    ):
        width //= 2
    return width


@dataclass(frozen=True)
class SplitPlan:
    """A reduction whose reduced axis is divided among the workers.

    Attributes:
        chunks: Work items.
        length: Iterations of one, of the first reduced loop.
        extent: Iterations of that loop.
    """

    chunks: int
    length: int
    extent: int


def _match_split(nest: Nest, model: CpuModel) -> tuple[RowPlan, Reducer, SplitPlan] | Refused:
    plan = nest.rows
    if nest.stage is None or plan is None:
        return Refused("no single reduction")
    if not wants_split(plan, model):
        return Refused("there are rows enough for the workers, or too little work to share")
    row = plan.stages[0]
    reducer = match_reducer(row.stage)
    if reducer is None:
        return Refused("what is reduced cannot be combined from partial results")
    loops = row.loops
    extent = group_extent(loops[0])
    step = _lanes(plan, model) if len(loops) == 1 else 1
    length = -(-extent // (model.threads * step)) * step
    chunks = -(-extent // length)
    if chunks < 2 and not _is_sweep(plan, model):
        return Refused("the reduced axis is too short")
    return plan, reducer, SplitPlan(chunks, length, extent)


def _emit_split(
    found: tuple[RowPlan, Reducer, SplitPlan], split: SplitPlan, writer: Writer[CpuModel]
) -> None:
    plan, reducer, _ = found
    chunks, length, rest, model = (
        split.chunks,
        split.length,
        split.extent % split.length,
        writer.model,
    )
    partial = emit.workspace([chunks, plan.rows], reducer.dtype)
    with emit.parallel(chunks) as chunk:
        if not rest:
            _write_partial(plan, reducer, partial, chunk, length, length, model)
        else:
            emit.when(
                chunk < chunks - 1,
                lambda: _write_partial(plan, reducer, partial, chunk, length, length, model),
                lambda: _write_partial(plan, reducer, partial, chunk, length, rest, model),
            )
    _combine_partials(plan, reducer, partial, chunks)


def _match(nest: Nest, model: CpuModel) -> tuple[RowPlan, IsOutput] | Refused:
    if nest.rows is None:
        return Refused("no reduction, or stages do not share their rows")
    if nest.stage is None and wants_split(nest.rows, model):
        return Refused("too few rows for the workers: stages one by one")
    return nest.rows, nest.is_output


def _emit(found: tuple[RowPlan, IsOutput], _plan: None, writer: Writer[CpuModel]) -> None:
    emit_rows(found[0], writer.model, found[1])


SPLIT = Kernel(
    "reduce_split", _match_split, _emit_split,
    "a reduction of few rows, divided along the reduced axis", lambda found, _model: found[2],
)  # fmt: skip
ROWS = Kernel(
    "reduce_rows", _match, _emit, "reductions and what is built on them, row by row",
    knobs=("rows parallel", "rows overlapped", "row tile vectors", "stores around caches"),
)  # fmt: skip


# ---- overlapping --------------------------------------------------------------------------------


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
