"""The profiler with MindSpore's names, for eager and compiled code on the CPU."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.profiler.session import (
    Profiler,
    ProfilerAction,
    ProfilerActivity,
    ProfilerLevel,
    profile,
    schedule,
    tensorboard_trace_handler,
)
from tvmgraph.profiler.summary import Summary


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "Profiler", "ProfilerAction", "ProfilerActivity", "ProfilerLevel", "Summary", "profile",
    "schedule", "tensorboard_trace_handler",
]  # fmt: skip

_guard_module(globals(), "profiler")
