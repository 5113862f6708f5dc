"""Gives every PrimFunc of a module the kernel that the table of CUDA devices chooses.

The compiler calls :func:`schedule_for_cuda` with a module after ``FuseTIR``. A function that no
kernel takes gets TVM's own GPU rules (``dlight``), whose last one binds any loop nest to threads.
"""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.cuda.kernels.padding import merge_padding
from tvmgraph.backend.cuda.table import KERNELS
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.types import FINAL, IN_PLACE, NAMED, SCHEDULED, Func, Module
from tvmgraph.backend.table import Writer, naming
from tvmgraph.backend.target import GpuModel


def schedule_for_cuda(mod: Module, model: GpuModel, target: tvm.target.Target) -> Module:
    """Schedules every loop nest of a module for a CUDA device.

    Args:
        mod: A module after ``FuseTIR``; functions marked ``tirx.is_scheduled`` stay.
        model: The device.
        target: TVM's target, for ``dlight``.

    Raises:
        NotImplementedError: if no kernel takes a nest.
    """
    changed: dict[ir.GlobalVar, tirx.PrimFunc] = {}
    for var, func in mod.functions.items():
        if isinstance(func, Func) and not func.attrs.get(SCHEDULED, False):
            with naming(var.name_hint):
                scheduled = schedule_function(func, model)
            if scheduled is not None:
                changed[var] = scheduled
            if IN_PLACE in func.attrs and len((scheduled or func).params) == len(func.params):
                changed[var] = (scheduled or func).without_attr(IN_PLACE)  # nobody did it
    for var, func in changed.items():
        mod[var] = func
    with target:
        mod = _dlight()(mod)
    for var, func in mod.functions.items():
        if isinstance(func, Func) and _runs_on_host(func):
            name = var.name_hint
            raise NotImplementedError(f"no kernel for GPUs is written for {name!r}")
    return mod


def _runs_on_host(func: Func) -> bool:
    """Whether loops were bound to no threads: the processor would read the device's memory."""
    stores: list[object] = []
    threads: list[object] = []

    def bound(node: tirx.For) -> None:
        if (
            getattr(node, "attr_key", "") == "thread_extent"
            or getattr(node, "thread_binding", None) is not None
        ):
            threads.append(node)

    walked = [(tirx.For, bound), (tirx.AttrStmt, bound), (tirx.BufferStore, stores.append)]
    tvm_ffi.structural_walk(func.body, walked)
    return bool(stores) and not threads


def schedule_function(func: Func, model: GpuModel) -> Func | None:
    """The kernels of a function, or None where it is left to TVM's rules.

    Args:
        func: A function that is not scheduled.
        model: The device.
    """
    writer = Writer(KERNELS, model)
    made, _ = writer.function(
        Nest(func, arrange=merge_padding), lambda body: emit.kernel(func, body)
    )
    if made is None:
        return None
    return made.without_attr(NAMED).with_attrs({SCHEDULED: True, FINAL: True})


def _dlight() -> Any:
    from tvm.s_tir.dlight import gpu
    from tvm.s_tir.dlight.base import ApplyDefaultSchedule

    return ApplyDefaultSchedule(
        gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback()
    )
