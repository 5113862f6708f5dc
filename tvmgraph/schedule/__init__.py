"""What makes compiled graphs fast on the CPU: targets, intrinsics and kernels.

The compiler calls, in this order::

    configure_threads(n)                       # before anything runs
    target, model = make_target(), cpu_model()
    mod = schedule_cpu(mod, model, level)      # mod after FuseTIR
"""

from tvmgraph.schedule.cpu import schedule_cpu
from tvmgraph.schedule.intrinsics import install as install_intrinsics
from tvmgraph.schedule.joining import Shape, joined_shape, shape_of
from tvmgraph.schedule.target import (
    CpuModel,
    cache_sizes,
    cpu_model,
    host_features,
    make_target,
    target_names,
)
from tvmgraph.threads import configure_threads, thread_count

__all__ = [
    "CpuModel",
    "Shape",
    "cache_sizes",
    "configure_threads",
    "cpu_model",
    "host_features",
    "install_intrinsics",
    "joined_shape",
    "make_target",
    "schedule_cpu",
    "shape_of",
    "target_names",
    "thread_count",
]
