"""Compiles a module for a CUDA device: threads, machine code for the GPU, host code around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tvm

from tvmgraph.compiler import device_code, nvcc, parts
from tvmgraph.compiler.cleanup import drop_scope_pragmas
from tvmgraph.compiler.device_search import schedule_by_search_on_gpu
from tvmgraph.compiler.fusion import fuse_kernels
from tvmgraph.compiler.in_place import bind_updates, mark_updates
from tvmgraph.compiler.order import order_updates
from tvmgraph.compiler.pipeline import (
    NATIVE_FROM,
    Level,
    count_kernels,
    fusion_passes,
    name_views,
    phases_of,
)
from tvmgraph.config import context
from tvmgraph.debug import Phases
from tvmgraph.graph_kernel import GraphKernel, at_level
from tvmgraph.runtime.device_image import DeviceImage
from tvmgraph.schedule import configure_threads, gpu_model, make_target, schedule_for_cuda
from tvmgraph.schedule.cuda.rows import joining_model
from tvmgraph.schedule.half_rounding import keep_wide


@dataclass(frozen=True)
class DeviceBuild:
    """What the compiler made for a device.

    Attributes:
        executable: TVM's executable: the program and the host's code.
        images: The device's code.
        kernels: Names of the functions that the program calls.
        native: Whether the program is machine code.
    """

    executable: Any
    images: tuple[DeviceImage, ...]
    kernels: tuple[str, ...]
    native: bool


def build(
    mod: tvm.IRModule,
    level: Level,
    target_name: str,
    phases: Phases | None = None,
    native: bool | None = None,
    objects: Path | None = None,
    checked: bool = False,
    fast_math: bool = False,
    host: str = "",
    tf32: bool = False,
    kernels: GraphKernel | None = None,
    trials: int = 0,
) -> DeviceBuild:
    """Compiles a module for a CUDA device, which need not be in this machine.

    Args:
        mod: The module, as lowered.
        level: The settings of the ``jit_level``.
        target_name: A CUDA row of ``configs/targets.toml``, or several with commas between them:
            kernels are scheduled for the first one, and machine code is made for all.
        phases: Who watches.
        native: As for the CPU, see :func:`tvmgraph.compiler.pipeline.build`.
        objects: A folder for the host's object files, if they shall be linked later.
        checked: Whether the compiled functions check their arguments.
        fast_math: Whether the device's arithmetic may be inexact.
        host: The row of the processor beside the device, by default this machine's.
        tf32: Whether products of float32 may round their factors to tf32.
        kernels: Graph-kernel settings beyond TVM's own fusion, by default those of ``O2``.
        trials: Kernels that a search may build and time per kernel, where the level searches.
    """
    phases = phases or Phases("module", quiet=True)
    threads = configure_threads(context.thread_num or None)
    first, *others = target_name.split(",")
    target, model = make_target(first, 1, host), replace(gpu_model(first), tf32=tf32)
    phases.text(2, "Relax", "py", mod.script)
    with target, tvm.transform.PassContext(opt_level=3 if level.fuse else 0):
        with phases.time("fuse"):
            mod = drop_scope_pragmas(tvm.transform.Sequential(fusion_passes(level))(mod))
            if level.fuse:
                mod = fuse_kernels(mod, kernels or at_level(2), joining_model())
                mod = tvm.relax.transform.DeadCodeElimination()(name_views(mod))
        if level.fuse:
            mod = mark_updates(order_updates(mod))
        names = count_kernels(mod)
        phases.text(2, "Relax fused", "py", mod.script)
        with phases.time("search" if level.search else "schedule"):
            if level.search:
                mod = schedule_by_search_on_gpu(mod, model, target, trials)
            else:
                mod = schedule_for_cuda(mod, model, target)
        mod = bind_updates(mod)
        if kernels is not None and kernels.fast_rounding:
            mod = keep_wide(mod)
        phases.text(3, "TIR scheduled", "py", mod.script)
        native = len(names) > NATIVE_FROM if native is None else native
        with phases.time("codegen"):
            program = parts.prepare(mod, target, phases_of(target, checked), native)
            launchers, device = device_code.split(program.kernels, target)
            sources = _sources(device, target, threads)
    phases.text(3, "CUDA", "cu", lambda: "\n".join(s.text for s in sources))
    with phases.time("nvcc"):
        images = nvcc.compile_all(sources, (model.arch, *others), threads, fast_math)
    with phases.time("host code"):
        executable = _link(program, launchers, target, objects)
    return DeviceBuild(executable, images, names, native)


def _sources(device: tvm.IRModule, target: Any, workers: int) -> list[device_code.DeviceSource]:
    """Writes the kernels as about as many translation units as compilers run at once."""
    if not device.functions:
        return []
    units = parts.deal(device, workers)
    return [device_code.generate_source(unit, target) for unit in units]


def _link(program: parts.Program, host: Any, target: Any, objects: Path | None) -> Any:
    libraries = [device_code.generate_host(host, target)] if host.functions else []
    executable = parts.join(program, target, libraries)
    if objects is not None and program.portable:
        for number, library in enumerate(libraries):
            parts.write_object(library, objects / f"part{number}.o")
        parts.write_program(executable, target.host, objects)
    return executable
