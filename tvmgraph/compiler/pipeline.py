"""What every ``jit_level`` means: the passes it runs, in one place.

| level | graph rules | fusion | schedules | LLVM |
|---|---|---|---|---|
| O0 | none | none: one operator, one kernel | none | opt-level 1 |
| O1 | exact | FuseOps, FuseTIR | parallel, vectorized loops | opt-level 2 |
| O2 | exact | O1, then whole rows and siblings | O1 and tiled GEMM, convolution | opt-level 2 |
| O3 | also those that change rounding | as O2 | O2's, each searched around | opt-level 3 |

The levels are this project's; TVM has none of that meaning. LLVM's own level 3 makes O2's kernels
no faster, since they are unrolled and vectorized when it gets them, but takes up to a third longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tvm
from tvm import relax
from tvm.relax.backend.cpu_generic import pipeline as vm_passes

from tvmgraph.compiler import parts
from tvmgraph.compiler.cleanup import drop_scope_pragmas
from tvmgraph.compiler.entry import drop_entry_checks
from tvmgraph.compiler.fusion import fuse_kernels
from tvmgraph.compiler.in_place import bind_updates, mark_updates
from tvmgraph.compiler.legalize import legalize_operators
from tvmgraph.compiler.memory import PlanMemory
from tvmgraph.compiler.order import order_updates
from tvmgraph.compiler.scatters import write_scatters
from tvmgraph.compiler.search import schedule_by_search
from tvmgraph.compiler.sorting import write_sorts
from tvmgraph.compiler.sources import show_code
from tvmgraph.config import context
from tvmgraph.debug import Phases
from tvmgraph.graph_kernel import GraphKernel
from tvmgraph.schedule import configure_threads, cpu_model, make_target, schedule_cpu
from tvmgraph.schedule.half_rounding import keep_wide

_T = relax.transform


@dataclass(frozen=True)
class Level:
    """Settings of one ``jit_level``.

    ``planned_threads`` is the number of workers that kernels are shaped for where it is not that
    of this process.
    """

    fuse: bool
    schedule: int
    llvm_opt: int
    search: bool = False
    planned_threads: int | None = None


LEVELS = {
    "O0": Level(fuse=False, schedule=0, llvm_opt=1),
    "O1": Level(fuse=True, schedule=1, llvm_opt=2),
    "O2": Level(fuse=True, schedule=2, llvm_opt=2),
    "O3": Level(fuse=True, schedule=2, llvm_opt=3, search=True),
}


#: Workers that deterministic kernels are shaped for: partial sums are as many, whoever adds them.
_DETERMINISTIC_THREADS = 8


def level_of(name: str, deterministic: bool = False) -> Level:
    """The settings of a level.

    Args:
        name: ``"O0"`` to ``"O3"``.
        deterministic: Whether kernels are the same for any number of threads, and none is chosen
            by its time.
    """
    level = LEVELS[name]
    if not deterministic:
        return level
    return replace(level, search=False, planned_threads=_DETERMINISTIC_THREADS)


#: Interpreting the bytecode of a call costs about as much as two kernels' launch per ten kernels;
#: graphs with more kernels than this are worth the longer compile of native host code.
NATIVE_FROM = 8


def count_kernels(mod: tvm.IRModule) -> tuple[str, ...]:
    """Returns the names of the kernels a module holds."""
    return tuple(
        gv.name_hint for gv, f in mod.functions.items() if isinstance(f, tvm.tirx.PrimFunc)
    )


def fusion_passes(level: Level) -> list[Any]:
    """Returns the passes from Relax operators to (fused) loop nests."""
    fusion = [_T.FuseOps(), _T.FuseTIR()] if level.fuse else []
    return [*operator_passes(), *fusion, _T.DeadCodeElimination()]


def operator_passes() -> list[Any]:
    """Returns the passes from Relax operators to one loop nest each."""
    return [
        _T.CanonicalizeBindings(),
        write_sorts, write_scatters,
        relax.backend.DispatchSortScan(),  # sorts and scans have no legalization
        legalize_operators(), _T.AnnotateTIROpPattern(),
    ]  # fmt: skip


def name_views(mod: tvm.IRModule) -> tvm.IRModule:
    """Makes kernels that only copy a tensor into another shape names for its memory.

    They must be recognized by their loops, so this comes before those are scheduled.
    """
    return _T.RewriteDataflowReshape()(mod)


def build(
    mod: tvm.IRModule,
    level: Level,
    target_name: str,
    phases: Phases | None = None,
    kernels: GraphKernel | None = None,
    native: bool | None = False,
    objects: Path | None = None,
    checked: bool = False,
    trials: int = 0,
    singly: bool = False,
    portable: bool = True,
) -> tuple[Any, tuple[str, ...], bool]:
    """Compiles a module.

    Args:
        mod: The module, as lowered.
        level: The settings of the ``jit_level``.
        target_name: A name from ``configs/targets.toml`` or ``"host"``.
        phases: Who watches.
        kernels: Graph-kernel settings beyond TVM's own fusion.
        native: Whether the function that calls the kernels becomes machine code too, instead of
            bytecode for TVM's virtual machine; ``None`` decides by the number of kernels.
        objects: A folder for object files, which are written instead of machine code in memory.
        checked: Whether the compiled functions check their arguments at every call, for callers
            that do not.
        trials: Kernels that a search may build and time per kernel, where the level searches.
        singly: Whether one kernel after the other is translated, see :func:`.parts.write_objects`.
        portable: Whether object files are wanted only if they are of use in any process.

    Returns:
        The TVM executable, the names of its kernels, and whether its host code is native.
    """
    phases = phases or Phases("module", quiet=True)
    threads = configure_threads(context.thread_num or None)
    target = make_target(target_name, level.llvm_opt)
    model = cpu_model(target_name, level.planned_threads or threads)
    phases.text(2, "Relax", "py", mod.script)
    with target, tvm.transform.PassContext(opt_level=3 if level.fuse else 0):
        with phases.time("fuse"):
            mod = drop_scope_pragmas(tvm.transform.Sequential(fusion_passes(level))(mod))
            if level.fuse and kernels is not None:
                mod = fuse_kernels(mod, kernels, model)
            if level.fuse:
                mod = _T.DeadCodeElimination()(name_views(mod))
        if level.fuse and not level.search:
            mod = mark_updates(order_updates(mod))
        names = count_kernels(mod)
        phases.text(2, "Relax fused", "py", mod.script)
        with phases.time("search" if level.search else "schedule"):
            if level.search:
                mod = schedule_by_search(mod, model, level.schedule, target, trials)
            else:
                mod = schedule_cpu(mod, model, level.schedule)
        mod = bind_updates(mod)
        if kernels is not None and kernels.fast_rounding:
            mod = keep_wide(mod)
        phases.text(3, "TIR scheduled", "py", mod.script)
        native = len(names) > NATIVE_FROM if native is None else native
        with phases.time("codegen"):
            program = parts.prepare(mod, target, phases_of(target, checked), native)
            if objects is not None and (program.portable or not portable):
                executable = parts.write_objects(program, target, threads, objects, singly)
            else:
                executable = parts.translate(program, target, threads, checked)
    show_code(executable, phases)
    return executable, names, native


def phases_of(target: Any, checked: bool = True) -> list[Any]:
    """Returns the passes from fused Relax to calls of the virtual machine."""
    trusting = [] if checked else [drop_entry_checks]
    explicit = vm_passes.dataflow_lower_passes(target)
    return [*explicit, PlanMemory(), *vm_passes.finalize_passes(target), *trusting]
