"""Reductions of few, long rows: several blocks share a row.

Every block reduces a stretch of the row, a second kernel combines their results in a fixed order.

Expected on a device: the bytes of the operands at the speed of a copy, and one more launch.
"""

from __future__ import annotations

from tvmgraph.backend.cuda.kernels import device
from tvmgraph.backend.cuda.kernels.body import Body
from tvmgraph.backend.cuda.kernels.device import div, i32, mod
from tvmgraph.backend.cuda.kernels.iteration import Iteration, Loops, run_within
from tvmgraph.backend.cuda.kernels.reduce_columns import emit_combined
from tvmgraph.backend.cuda.kernels.reduction import Reduction, match_reduction
from tvmgraph.backend.cuda.kernels.thread_group import ThreadGroup
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.choice import choose
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.program import Stage, product
from tvmgraph.backend.table import Kernel, Refused
from tvmgraph.backend.target import GpuModel

_THREADS = 256
#: Vectors of a thread: more blocks than this leaves no work for the second kernel to be small.
_MIN_VECTORS = 4
#: Blocks per multiprocessor that together keep memory busy.
_BLOCKS_PER_SM = 8


def split_count(stage: Stage, model: GpuModel) -> int:
    """How many blocks should share a row of a reduction; 1 if a block should have one alone.

    Args:
        stage: A reduction along contiguous rows.
        model: The device, whose multiprocessors are to be kept busy.
    """
    size = product(axis.extent for axis in stage.reduce)
    wanted = model.sms * choose("blocks per multiprocessor", _BLOCKS_PER_SM, (2, 4, 8, 16))
    if stage.points * 2 >= model.sms or size < 4 * _THREADS * _MIN_VECTORS:
        return 1
    return max(1, min(-(-wanted // stage.points), size // (_THREADS * _MIN_VECTORS)))


def _write(stage: Stage, reduction: Reduction, splits: int) -> None:
    """Writes the kernels of a reduction whose rows ``splits`` blocks share."""
    body = Body(reduction.terms, stage.reduce, stage.axes)
    rows, steps, lanes = Loops(body.stage, stage.axes), Loops(body.stage, stage.reduce), body.lanes
    size = product(axis.extent for axis in stage.reduce)
    turns = -(-size // (splits * _THREADS * lanes))
    stretch = turns * _THREADS * lanes
    splits = -(-size // stretch)
    partial = [emit.workspace([splits * stage.points], dtype) for dtype in reduction.dtypes]
    with device.launch(splits * stage.points, _THREADS) as (block, thread):
        row = device.let(mod(block, stage.points))
        split = device.let(device.wide(div(block, stage.points), size))
        held = reduction.registers(lanes)
        start = device.let(split * i32(stretch) + thread * i32(lanes))
        with device.loop(turns) as turn:
            first = device.let(start + turn * i32(_THREADS * lanes))

            def add(count: int) -> None:
                iteration = Iteration((rows.at(row), steps.at(first)))
                for lane, values in enumerate(body.values(iteration, count)):
                    reduction.add(held, lane, values)

            run_within(size, first, lanes, add)
        reduction.join(held, lanes)
        ThreadGroup(_THREADS, thread).combine(held, reduction.combine)

        def store() -> None:
            for memory, register in zip(partial, held):
                device.store(memory, register[i32(0)], [split * i32(stage.points) + row])

        device.only_if(thread < i32(1), store)
    emit_combined(stage, reduction, partial, splits)


def _match(nest: Nest, model: GpuModel) -> tuple[Stage, Reduction, int] | Refused:
    if nest.stage is None or nest.rows is None or not nest.rows.along_rows:
        return Refused("no single reduction of rows that are contiguous")
    splits = split_count(nest.stage, model)
    if splits < 2:
        return Refused("there are rows enough for the blocks")
    reduction = match_reduction(nest.stage)
    if reduction is None:
        return Refused("what is reduced cannot be combined from partial results")
    return nest.stage, reduction, splits


KERNEL = Kernel(
    "reduce_long_rows", _match, lambda found, _plan, _writer: _write(*found),
    "a reduction of few long rows, each shared by several blocks",
    lambda found, _model: f"splits={found[2]}", ("blocks per multiprocessor",),
)  # fmt: skip
