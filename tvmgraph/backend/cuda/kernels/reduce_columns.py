"""Reductions whose results are neighbours in memory: sums over first axes, pooling, any window.

A thread accumulates a vector of neighbouring results, so that neighbouring threads read
neighbouring memory. Where there are few results, several threads of a block share the iterations of
one, and several blocks do; their partial results are combined in a fixed order.

Expected on a device: the bytes of the operands at the speed of a copy, if neighbouring results
overlap little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx.script import builder as T

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.body import Body
from tvmgraph.backend.cuda.kernels.device import WARP, div, i32, mod
from tvmgraph.backend.cuda.kernels.iteration import Iteration, Loops, run_within
from tvmgraph.backend.cuda.kernels.reduction import Reduction, match_reduction, side_by_side
from tvmgraph.backend.cuda.kernels.thread_group import SplitResults
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.access import dtype_bytes
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Stage, map_loads, product, substitute
from tvmgraph.backend.loop_ir.types import Buffer, Expr, Load, Var
from tvmgraph.backend.table import Kernel, Refused, Writer
from tvmgraph.backend.target import GpuModel

_THREADS, _THREADS_X = 256, 32
_SHARED_BYTES = 48 << 10  # that a block has without asking for more
#: Iterations that are worth a thread, and a block, of their own: with fewer, the threads that are
#: there do not ask for enough memory at once (sums for batch norms on an H100: a third of it).
_PER_THREAD, _PER_BLOCK = 8, 64
#: Blocks for every multiprocessor that keep its memory busy.
_BLOCKS_PER_SM = 4
#: Partial results that one thread combines while there are threads for the others.
_PER_COMBINER = 4


@dataclass(frozen=True)
class Sharing:
    """How the iterations of a result are shared.

    Attributes:
        lanes: Results of a thread.
        threads_x: Threads of a block that have results of their own.
        threads_y: Threads of a block that share them.
        splits: Blocks that share them.
    """

    lanes: int
    threads_x: int
    threads_y: int
    splits: int


def share(stage: Stage, lanes: int, model: GpuModel) -> Sharing:
    """The sharing for a stage.

    Args:
        stage: A reduction.
        lanes: Neighbouring results of one thread.
        model: The device: multiprocessors and threads of one.

    Returns:
        Threads over the results, threads over the iterations, and blocks that share a result;
        more of them where results alone would leave multiprocessors idle.
    """
    length = product(axis.extent for axis in stage.reduce)
    units = -(-stage.points // lanes)
    wanted = model.sms * model.threads_per_sm // 2
    threads_x, threads_y = _THREADS, 1
    fewest = min(_THREADS_X, 1 << (units - 1).bit_length())  # results that there are
    shortest = 2 * _PER_THREAD
    while threads_x > fewest and units * threads_y < wanted and length >= threads_y * shortest:
        threads_x, threads_y = threads_x // 2, threads_y * 2
    blocks = -(-units // threads_x)
    splits, least = 1, max(_PER_BLOCK, threads_y * _PER_THREAD)
    while blocks * splits < _BLOCKS_PER_SM * model.sms and length >= 2 * splits * least:
        splits *= 2
    return Sharing(lanes, threads_x, threads_y, splits)


def emit_reduction(reduction: Reduction, model: GpuModel) -> None:
    """Writes the kernels of a reduction that can be combined from partial results.

    Args:
        reduction: The reduction, or several of the same loops.
        model: The device.
    """
    stage = reduction.stage
    body = Body(reduction.terms, stage.axes, stage.reduce)
    sharing = share(stage, body.lanes, model)
    partial: Sequence[Buffer] = ()
    if sharing.splits > 1:
        partial = [
            emit.workspace([sharing.splits * stage.points], dtype) for dtype in reduction.dtypes
        ]
    _Columns(stage, reduction, body, sharing, partial).write()
    if partial:
        emit_combined(stage, reduction, partial, sharing.splits)


@dataclass(frozen=True)
class _Columns:
    stage: Stage
    reduction: Reduction
    body: Body
    sharing: Sharing
    partial: Sequence[Buffer]

    def write(self) -> None:
        plan, points = self.sharing, self.stage.points
        units = -(-points // plan.lanes)
        result_blocks = -(-units // plan.threads_x)
        threads = plan.threads_x * plan.threads_y
        with device.launch(result_blocks * plan.splits, threads) as (block, thread):
            split = device.let(div(block, result_blocks)) if plan.splits > 1 else i32(0)
            first = mod(block, result_blocks) if plan.splits > 1 else block
            unit = device.let(first * i32(plan.threads_x) + mod(thread, plan.threads_x))
            row = device.let(div(thread, plan.threads_x)) if plan.threads_y > 1 else i32(0)
            whole = points % (plan.lanes * plan.threads_x) == 0
            start = device.let(unit * i32(plan.lanes))
            inside = None if whole else start < i32(points)
            held = self.reduction.registers(plan.lanes)
            if points % plan.lanes == 0:
                device.only_if(
                    inside, lambda: self._accumulate(held, start, split, row, plan.lanes)
                )
            else:
                run_within(
                    points, start, plan.lanes,
                    lambda count: self._accumulate(held, start, split, row, count),
                )  # fmt: skip
            if plan.threads_y > 1:
                self._join(held, thread)
                inside = device.both(inside, tirx.EQ(row, i32(0)))
            device.only_if(inside, lambda: self._store(held, start, split))

    def _accumulate(
        self, held: Sequence[Buffer], start: Expr, split: Expr, row: Expr, count: int
    ) -> None:
        """Adds this thread's share of the iterations."""
        plan, length = self.sharing, product(axis.extent for axis in self.stage.reduce)
        steps = Loops(self.body.stage, self.stage.reduce)
        where = Loops(self.body.stage, self.stage.axes).at(start)
        stride = plan.threads_y * plan.splits
        turns = -(-length // stride)
        first = device.let(split * i32(plan.threads_y) + row)
        with device.loop(turns) as turn:
            step = device.let(turn * i32(stride) + first) if stride > 1 else turn

            def add() -> None:
                iteration = Iteration((steps.at(step), where))
                for lane, values in enumerate(self.body.values(iteration, count)):
                    self.reduction.add(held, lane, values)

            device.only_if(None if length % stride == 0 else step < i32(length), add)

    def _join(self, held: Sequence[Buffer], thread: Expr) -> None:
        """The first row of threads adds what the others have."""
        plan = self.sharing
        threads = plan.threads_x * plan.threads_y
        kept = [
            T.alloc_buffer((i32(threads * plan.lanes),), str(register.dtype), scope="shared")
            for register in held
        ]
        for memory, register in zip(kept, held):
            for lane in range(plan.lanes):
                device.store(memory, register[i32(lane)], [thread + i32(lane * threads)])
        T.evaluate(T.tvm_storage_sync("shared"))

        def add() -> None:
            with device.loop(plan.threads_y - 1) as other:
                at = thread + (other + i32(1)) * i32(plan.threads_x)
                for lane in range(plan.lanes):
                    values = [memory[at + i32(lane * threads)] for memory in kept]
                    self.reduction.add(held, lane, values)

        device.only_if(thread < i32(plan.threads_x), add)

    def _store(self, held: Sequence[Buffer], start: Expr, split: Expr) -> None:
        points = self.stage.points
        for lane in range(self.sharing.lanes):
            values = [register[i32(lane)] for register in held]

            def store(lane: int = lane, values: Sequence[Expr] = values) -> None:
                if self.partial:
                    for memory, value in zip(self.partial, values):
                        device.store(memory, value, [split * i32(points) + start + i32(lane)])
                else:
                    store_result(self.stage, self.reduction, start + i32(lane), values)

            beyond = lane and points % self.sharing.lanes
            device.only_if(start + i32(lane) < i32(points) if beyond else None, store)


def store_result(stage: Stage, reduction: Reduction, point: Expr, values: Sequence[Expr]) -> None:
    """Stores the result at one point of a reduction.

    Args:
        stage: The reduction stage, which has the buffers.
        reduction: How its sums become results.
        point: Which result, counted over all its axes.
        values: Its accumulated sums.
    """
    loops = Loops(stage, stage.axes)
    iteration = Iteration((loops.at(point),))
    for buffer, value in zip(stage.buffers, reduction.finish(values)):
        element = iteration.element(buffer[tuple(stage.indices)])
        device.store(buffer, value, list(element.indices))


def emit_combined(
    stage: Stage, reduction: Reduction, partial: Sequence[Buffer], splits: int
) -> None:
    """Writes a kernel that combines the partial results [split, point] and stores them.

    Several threads share those of a point, as reading one after the other would take longer than
    computing them did: a block has those of few points each, or those of a warp of points.

    Args:
        stage: The reduction stage.
        reduction: How its sums are combined.
        partial: One buffer per sum, ``[splits * points]``.
        splits: Partial results of a point.
    """
    points = stage.points
    threads_x = WARP if points >= WARP else 1
    threads_y = 1 if threads_x > 1 else WARP
    while threads_x * threads_y < _THREADS and threads_y * _PER_COMBINER < splits:
        threads_y *= 2

    def add(held: Sequence[Buffer], split: Expr, point: Expr) -> None:
        at = device.let(split * i32(points) + point)
        reduction.add(held, 0, [memory[at] for memory in partial])

    def store(held: Sequence[Buffer], point: Expr) -> None:
        store_result(stage, reduction, point, [register[i32(0)] for register in held])

    SplitResults(points, splits, threads_x, threads_y).write(
        reduction.registers, add, reduction.combine, store
    )


def _emit_ordered(stage: Stage) -> None:
    """A reduction that nothing is known about: a thread for each result, in the order written."""
    threads = min(_THREADS, -(-stage.points // 32) * 32)
    results, steps = Loops(stage, stage.axes), Loops(stage, stage.reduce)

    def reduce(point: Expr) -> None:
        where = results.at(point)
        first = Iteration((where,))
        held = [
            device.fill(device.registers(1, str(buffer.dtype)), first.value(value))
            for buffer, value in zip(stage.buffers, stage.inits or ())
        ]
        with device.loop(steps.extent) as step:
            iteration = Iteration((where, steps.at(step)))

            def own(load: Load) -> Expr:
                for buffer, register in zip(stage.buffers, held):
                    if load.source.same_as(buffer):
                        return register[i32(0)]
                return iteration.element(load)

            names: dict[Var, Expr] = {}

            def resolve(value: Expr) -> Expr:
                return iteration.value(substitute(map_loads(value, own), names))

            for var, value in stage.lets:
                names[var] = device.let(resolve(value))
            values = [device.let(resolve(value)) for value in stage.values]
            for register, value in zip(held, values):
                device.store(register, value, [0])
        for buffer, register in zip(stage.buffers, held):
            element = first.element(buffer[tuple(stage.indices)])
            device.store(buffer, register[i32(0)], list(element.indices))

    device.each_thread(stage.points, threads, reduce)


def fuse_reductions(stages: Sequence[Stage]) -> Reduction | Refused:
    """Several sums over the same loops as one, which reads their operands once.

    Args:
        stages: Sums over the same loops.

    Returns:
        Refused where one is no sum, or the partial sums of a block take more than 48 KiB of shared
        memory.
    """
    reduction = side_by_side(stages)
    if reduction is None:
        return Refused("they are no sums of their own")
    lanes = Body(reduction.terms, reduction.stage.axes, reduction.stage.reduce).lanes
    if _THREADS * lanes * sum(map(dtype_bytes, reduction.dtypes)) > _SHARED_BYTES:
        return Refused("their sums do not fit the shared memory of a block")
    return reduction


def _match(nest: Nest, _model: GpuModel) -> Stage | Refused:
    if nest.stage is None or not nest.stage.is_reduction:
        return Refused("no single reduction")
    return nest.stage


def _emit(stage: Stage, _plan: None, writer: Writer[GpuModel]) -> None:
    reduction = match_reduction(stage)
    if reduction is None:
        _emit_ordered(stage)
    else:
        emit_reduction(reduction, writer.model)


KERNEL = Kernel("reduce_columns", _match, _emit, "a reduction whose elements lie apart in memory")
