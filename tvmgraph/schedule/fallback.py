"""The rule for functions no kernel matches: whatever their shape, use the workers and vectors.

Works on the loops as they are, with TVM's schedule primitives, which check every step: a function
that one of them refuses keeps its serial loops.
"""

from __future__ import annotations

from tvm import s_tir, tirx

from tvmgraph.schedule.program import product
from tvmgraph.schedule.target import CpuModel

#: Below this many iterations a loop nest stays serial.
_MIN_PARALLEL_WORK = 32 * 1024
_SPATIAL = 0


def schedule_fallback(func: tirx.PrimFunc, model: CpuModel) -> tirx.PrimFunc:
    """Divides outer spatial loops among the workers, and vectorizes inner ones, where allowed."""
    try:
        schedule = s_tir.Schedule(func)
        blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    except (s_tir.ScheduleError, RuntimeError):
        return func
    for block in blocks:
        _parallelize(schedule, block, model)
    return schedule.mod["main"].with_attrs(func.attrs) if func.attrs else schedule.mod["main"]


def _parallelize(schedule: s_tir.Schedule, block: object, model: CpuModel) -> None:
    try:
        loops = schedule.get_loops(block)
        kinds = [int(var.iter_type) for var in schedule.get(block).iter_vars]
        if not loops or len(kinds) != len(loops) or model.threads == 1:
            return
        spatial = next((i for i, kind in enumerate(kinds) if kind != _SPATIAL), len(kinds))
        if not spatial or _known_small([schedule.get(loop).extent for loop in loops]):
            return
        inner = spatial == len(kinds) and spatial > 1
        outer = loops[: spatial - 1] if inner else loops[:spatial]
        schedule.parallel(schedule.fuse(*outer) if len(outer) > 1 else outer[0])
        if inner:
            _vectorize(schedule, loops[-1], model)
    except (s_tir.ScheduleError, RuntimeError):
        return


def _vectorize(schedule: s_tir.Schedule, loop: object, model: CpuModel) -> None:
    extent = schedule.get(loop).extent
    if isinstance(extent, tirx.IntImm) and int(extent) % model.lanes == 0:
        _, lanes = schedule.split(loop, [None, model.lanes])
        schedule.vectorize(lanes)


def _known_small(extents: list[object]) -> bool:
    if not all(isinstance(extent, tirx.IntImm) for extent in extents):
        return False
    return product(int(extent) for extent in extents) < _MIN_PARALLEL_WORK
