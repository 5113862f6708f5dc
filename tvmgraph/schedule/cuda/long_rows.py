"""Reductions of few, long rows: several blocks share a row.

Every block reduces a stretch of the row, a second kernel combines their results in a fixed order.

Expected on a device: the bytes of the operands at the speed of a copy, and one more launch.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from tvmgraph.schedule import emit
from tvmgraph.schedule.analysis.program import Stage, product
from tvmgraph.schedule.choice import choose
from tvmgraph.schedule.cuda import device
from tvmgraph.schedule.cuda.across import Team
from tvmgraph.schedule.cuda.body import Body
from tvmgraph.schedule.cuda.columns import emit_combined
from tvmgraph.schedule.cuda.device import div, i32, mod
from tvmgraph.schedule.cuda.fold import Fold, match_fold
from tvmgraph.schedule.cuda.place import Loops, Place
from tvmgraph.schedule.target import GpuModel
from tvmgraph.schedule.types import Buffer, Expr, dtype_of

_THREADS = 256
#: Vectors of a thread: more blocks than this leaves no work for the second kernel to be small.
_MIN_VECTORS = 4
#: Blocks per multiprocessor that together keep memory busy.
_BLOCKS_PER_SM = 8


def wants_parts(stage: Stage, model: GpuModel) -> int:
    """How many blocks should share a row of a reduction; 1 if a block should have one alone."""
    size = product(axis.extent for axis in stage.reduce)
    wanted = model.sms * choose("blocks per multiprocessor", _BLOCKS_PER_SM, (2, 4, 8, 16))
    if stage.points * 2 >= model.sms or size < 4 * _THREADS * _MIN_VECTORS:
        return 1
    return max(1, min(-(-wanted // stage.points), size // (_THREADS * _MIN_VECTORS)))


def emit_long_rows(stage: Stage, parts: int) -> bool:
    """Writes the kernels of a reduction whose rows ``parts`` blocks share.

    Returns:
        Whether it could be written; if not, nothing has been.
    """
    fold = match_fold(stage)
    if fold is None:
        return False
    body = Body(fold.terms, stage.reduce, stage.axes)
    size, lanes = product(axis.extent for axis in stage.reduce), body.lanes
    turns = -(-size // (parts * _THREADS * lanes))
    stretch = turns * _THREADS * lanes
    parts = -(-size // stretch)
    partial = [emit.workspace([parts * stage.points], dtype) for dtype in fold.dtypes]
    with device.launch(parts * stage.points, _THREADS) as (block, thread):
        row = device.let(mod(block, stage.points))
        part = device.let(device.wide(div(block, stage.points), size))
        held = fold.registers(lanes)
        start = device.let(part * i32(stretch) + thread * i32(lanes))
        with device.loop(turns) as turn:
            first = device.let(start + turn * i32(_THREADS * lanes))
            _add(stage, fold, body, held, row, first, size)
        fold.join(held, lanes)
        Team(_THREADS, thread).combine(held, fold.combine)

        def store() -> None:
            for memory, register in zip(partial, held):
                device.store(memory, register[i32(0)], [part * i32(stage.points) + row])

        device.only_if(thread < i32(1), store)
    emit_combined(stage, fold, partial, parts)
    return True


def _add(
    stage: Stage,
    fold: Fold,
    body: Body,
    held: Sequence[Buffer],
    row: Expr,
    first: Expr,
    size: int,
) -> None:
    """Adds the vector that starts at ``first``, as far as the row goes."""
    rows, steps, lanes = Loops(body.stage, stage.axes), Loops(body.stage, stage.reduce), body.lanes

    def add(count: int) -> None:
        place = Place((rows.at(row), steps.at(first)))
        for lane, values in enumerate(body.values(place, count)):
            fold.add(held, lane, values)

    dtype = dtype_of(first)
    device.only_if(first + i32(lanes) <= tirx.const(size, dtype), lambda: add(lanes))
    rest = size % lanes
    if rest:
        device.only_if(tirx.EQ(first, tirx.const(size - rest, dtype)), lambda: add(rest))
