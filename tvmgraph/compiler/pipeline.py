"""What every ``jit_level`` means: the TVM passes it runs, in one place.

| level | fusion | schedules | LLVM |
|---|---|---|---|
| O0 | none: one operator, one kernel | none | opt-level 1 |
| O1 | FuseOps, FuseTIR | parallel, vectorized loops | opt-level 2 |
| O2 | FuseOps, FuseTIR | O1 and register-tiled GEMM, convolution | opt-level 3 |
| O3 | as O2 | as O2 | opt-level 3 |

The levels are this project's; TVM has none of that meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import relax
from tvm.relax.backend.cpu_generic import pipeline as phases

from tvmgraph.compiler.cleanup import drop_scope_pragmas
from tvmgraph.config import context
from tvmgraph.schedule import configure_threads, cpu_model, make_target, schedule_cpu

_T = relax.transform


@dataclass(frozen=True)
class Level:
    """Settings of one ``jit_level``."""

    fuse: bool
    schedule: int
    llvm_opt: int


LEVELS = {
    "O0": Level(fuse=False, schedule=0, llvm_opt=1),
    "O1": Level(fuse=True, schedule=1, llvm_opt=2),
    "O2": Level(fuse=True, schedule=2, llvm_opt=3),
    "O3": Level(fuse=True, schedule=2, llvm_opt=3),
}


def count_kernels(mod: tvm.IRModule) -> tuple[str, ...]:
    """Returns the names of the kernels a module holds."""
    return tuple(
        gv.name_hint for gv, f in mod.functions.items() if isinstance(f, tvm.tirx.PrimFunc)
    )


def fusion_passes(level: Level) -> list[Any]:
    """Returns the passes from Relax operators to (fused) loop nests."""
    passes: list[Any] = [_T.CanonicalizeBindings()]
    if level.fuse:
        # lets a product with a transposed weight read the weight in place
        passes += [_T.FuseTransposeMatmul()]
    passes += [relax.backend.DispatchSortScan()]  # sorts and scans have no legalization
    passes += [_T.LegalizeOps(), _T.AnnotateTIROpPattern(), _T.FoldConstant()]
    if level.fuse:
        passes += [_T.FuseOps(), _T.FuseTIR()]
    return [*passes, _T.DeadCodeElimination()]


def build(mod: tvm.IRModule, level: Level, target_name: str) -> tuple[Any, tuple[str, ...]]:
    """Compiles a module; returns the TVM executable and the names of its kernels."""
    threads = configure_threads(context.thread_num or None)
    target = make_target(target_name, level.llvm_opt)
    with target, tvm.transform.PassContext(opt_level=3 if level.fuse else 0):
        mod = drop_scope_pragmas(tvm.transform.Sequential(fusion_passes(level))(mod))
        kernels = count_kernels(mod)
        mod = schedule_cpu(mod, cpu_model(target_name, threads), level.schedule)
        lower_calls = [*phases.dataflow_lower_passes(target), *phases.finalize_passes(target)]
        executable = relax.build(
            mod, target=target, relax_pipeline=tvm.transform.Sequential(lower_calls)
        )
    return executable, kernels
