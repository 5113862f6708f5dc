"""What makes compiled graphs fast on the CPU: targets, intrinsics and kernels.

The compiler calls, in this order::

    configure_threads(n)                       # before anything runs
    target, model = make_target(), cpu_model()
    mod = schedule_cpu(mod, model, level)      # mod after FuseTIR

Names are loaded when they are first used, so that what needs no TVM can be read without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tvmgraph.processor import CpuModel, cache_sizes, cpu_model, host_features
from tvmgraph.threads import configure_threads, thread_count

if TYPE_CHECKING:
    from tvmgraph.schedule.analysis.joining import Shape, joined_shape, shape_of
    from tvmgraph.schedule.cpu import schedule_cpu
    from tvmgraph.schedule.cuda import schedule_for_cuda
    from tvmgraph.schedule.intrinsics import install as install_intrinsics
    from tvmgraph.schedule.target import GpuModel, gpu_model, is_cuda, make_target, target_names

_HOMES = {
    "schedule_for_cuda": "cuda",
    "schedule_cpu": "cpu",
    "install_intrinsics": "intrinsics",
    **dict.fromkeys(("Shape", "joined_shape", "shape_of"), "analysis.joining"),
    **dict.fromkeys(("GpuModel", "gpu_model", "is_cuda", "make_target", "target_names"), "target"),
}

__all__ = [
    "CpuModel",
    "GpuModel",
    "Shape",
    "cache_sizes",
    "configure_threads",
    "cpu_model",
    "gpu_model",
    "host_features",
    "install_intrinsics",
    "is_cuda",
    "joined_shape",
    "make_target",
    "schedule_cpu",
    "schedule_for_cuda",
    "shape_of",
    "target_names",
    "thread_count",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    return getattr(home, "install" if name == "install_intrinsics" else name)
