"""The rule for functions no kernel matches: whatever their shape, use the workers and vectors.

Works on the loops as they are, with TVM's schedule primitives, which check every step: a function
that one of them refuses keeps its serial loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm_ffi
from tvm import s_tir, tirx

from tvmgraph.backend.loop_ir.access import variables_in
from tvmgraph.backend.loop_ir.program import product
from tvmgraph.backend.loop_ir.types import Func, Load
from tvmgraph.machine.processor import CpuModel

#: Below this many iterations a loop nest stays serial.
_MIN_PARALLEL_WORK = 32 * 1024
_SPATIAL, _REDUCE = 0, 2


def schedule_fallback(func: Func, model: CpuModel) -> Func:
    """Divides outer spatial loops among the workers, and vectorizes inner ones, where allowed.

    Args:
        func: A function that no kernel of the table takes.
        model: The processor: its threads and lanes.

    Returns:
        The function with other loops, or as it is where TVM's schedule refuses it.
    """
    try:
        schedule = s_tir.Schedule(func)
        blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    except (s_tir.ScheduleError, RuntimeError):
        return func
    for block in blocks:
        _hoist_init(schedule, block)
        _parallelize(schedule, block, model)
    return schedule.mod["main"].with_attrs(func.attrs) if func.attrs else schedule.mod["main"]


def hoist_inits(func: Func) -> Func:
    """Initializes reductions over a size that only a call knows, which may be zero.

    Args:
        func: A function with symbolic sizes.
    """
    try:
        schedule = s_tir.Schedule(func)
        for block in schedule.get_child_blocks(schedule.get_sblock("root")):
            if not all(
                isinstance(_extent(schedule, loop), tirx.IntImm)
                for loop in schedule.get_loops(block)
            ):
                _hoist_init(schedule, block)
    except (s_tir.ScheduleError, RuntimeError):
        return func
    return schedule.mod["main"].with_attrs(func.attrs) if func.attrs else schedule.mod["main"]


def _hoist_init(schedule: s_tir.Schedule, block: object) -> None:
    """Initializes a reduction ahead of its loops, so that a sum over nothing is initialized too."""
    try:
        loops = schedule.get_loops(block)
        kinds = _iteration_kinds(schedule, block)
        if len(kinds) == len(loops) and _REDUCE in kinds:
            inner = kinds.index(_REDUCE) - _adds_rows(schedule, block, kinds)
            schedule.decompose_reduction(block, loops[inner])
    except (s_tir.ScheduleError, RuntimeError):
        return


def _parallelize(schedule: s_tir.Schedule, block: object, model: CpuModel) -> None:
    try:
        loops = schedule.get_loops(block)
        kinds = _iteration_kinds(schedule, block)
        if not loops or len(kinds) != len(loops):
            return
        spatial = next((i for i, kind in enumerate(kinds) if kind != _SPATIAL), len(kinds))
        if _adds_rows(schedule, block, kinds):
            schedule.reorder(loops[-1], loops[-2])
            spatial -= 1
        if model.threads == 1:
            return
        if not spatial or _known_small([_extent(schedule, loop) for loop in loops]):
            return
        inner = spatial == len(kinds) and spatial > 1
        outer = loops[: spatial - 1] if inner else loops[:spatial]
        schedule.parallel(_fuse(schedule, outer))
        if inner:
            _vectorize(schedule, loops[-1], model)
    except (s_tir.ScheduleError, RuntimeError):
        return


def _adds_rows(schedule: s_tir.Schedule, block: object, kinds: Sequence[int]) -> bool:
    """Whether a sum may add rows, which are vectors, instead of numbers, as a product may."""
    if list(kinds[-2:]) != [_SPATIAL, _REDUCE] or kinds.count(_REDUCE) > 1:
        return False
    statement: Any = schedule.get(block)
    store = statement.body
    column = statement.iter_vars[-2].var
    if not isinstance(store, tirx.BufferStore) or not store.indices[-1].same_as(column):
        return False
    loads: list[Load] = []
    tvm_ffi.structural_walk(store.value, [(Load, loads.append)])
    operands = [load.indices for load in loads if not load.source.same_as(store.buffer)]
    if any(variables_in(indices[:-1], [column])[0] for indices in operands):
        return False
    return any(variables_in(indices, [column])[0] for indices in operands)


def _fuse(
    schedule: s_tir.Schedule, loops: Sequence[s_tir.schedule.LoopRV]
) -> s_tir.schedule.LoopRV:
    return schedule.fuse(*loops) if len(loops) > 1 else loops[0]


def _vectorize(schedule: s_tir.Schedule, loop: object, model: CpuModel) -> None:
    extent = _extent(schedule, loop)
    if isinstance(extent, tirx.IntImm) and int(extent) % model.lanes == 0:
        _, lanes = schedule.split(loop, [None, model.lanes])
        schedule.vectorize(lanes)


def _iteration_kinds(schedule: s_tir.Schedule, block: object) -> list[int]:
    statement: Any = schedule.get(block)
    return [int(var.iter_type) for var in statement.iter_vars]


def _extent(schedule: s_tir.Schedule, loop: object) -> Any:
    statement: Any = schedule.get(loop)
    return statement.extent


def _known_small(extents: Sequence[object]) -> bool:
    if not all(isinstance(extent, tirx.IntImm) for extent in extents):
        return False
    return product(int(extent) for extent in extents) < _MIN_PARALLEL_WORK
