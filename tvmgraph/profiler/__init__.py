"""The profiler with MindSpore's names, for eager and compiled code on the CPU."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.profiler.session import *  # noqa: F403
from tvmgraph.profiler.summary import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = _public_names(globals())

_guard_module(globals(), "profiler")


def __dir__() -> list[str]:
    return list(__all__)
