"""What makes compiled graphs fast on CUDA devices.

The compiler calls :func:`schedule_for_cuda` with a module after ``FuseTIR``. Every function is
given to the kernels of this package in turn; one that none of them takes gets TVM's own GPU rules
(``dlight``), whose last one binds any loop nest to threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import dlight

from tvmgraph.schedule.cuda.flash import attention_rule
from tvmgraph.schedule.cuda.flash_grad import attention_gradient_rule
from tvmgraph.schedule.cuda.products import product_rule
from tvmgraph.schedule.cuda.simt import simt_rule
from tvmgraph.schedule.target import GpuModel
from tvmgraph.schedule.types import IN_PLACE, WRITTEN_OUT

#: Takes a function and the device; returns a scheduled function, or None if it is not of its kind.
Rule = Callable[[tirx.PrimFunc, GpuModel], tirx.PrimFunc | None]

#: The kernels of this package, most special first.
RULES: list[Rule] = [attention_rule, attention_gradient_rule, product_rule, simt_rule]


def schedule_for_cuda(mod: tvm.IRModule, model: GpuModel, target: Any) -> tvm.IRModule:
    """Schedules every loop nest of a module for a CUDA device.

    Args:
        mod: A module after ``FuseTIR``; functions marked ``tirx.is_scheduled`` stay.
        model: The device.
        target: TVM's target, for ``dlight``.
    """
    changed: dict[Any, Any] = {}
    for var, func in mod.functions.items():
        if isinstance(func, tirx.PrimFunc) and not func.attrs.get("tirx.is_scheduled", False):
            scheduled = next((s for s in (rule(func, model) for rule in RULES) if s), None)
            if scheduled is not None:
                marks = {"tirx.is_scheduled": True, WRITTEN_OUT: True}
                changed[var] = scheduled.with_attrs(marks)
            if IN_PLACE in func.attrs and len((scheduled or func).params) == len(func.params):
                changed[var] = changed.get(var, func).without_attr(IN_PLACE)  # nobody did it
    for var, func in changed.items():
        mod[var] = func
    with target:
        return _fallback()(mod)


def _fallback() -> Any:
    gpu = dlight.gpu
    return dlight.ApplyDefaultSchedule(
        gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback()
    )


__all__ = ["RULES", "Rule", "schedule_for_cuda"]
