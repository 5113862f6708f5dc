"""MindSpore's import path for the context: ``from tvmgraph import context``."""

from typing import Any

from tvmgraph.compat.parallel import ParallelMode
from tvmgraph.compat.paths import look
from tvmgraph.config import (
    COMPATIBLE,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    STRICT,
    get_context,
    reset_context,
    set_context,
)


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "COMPATIBLE", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "ParallelMode", "get_context",
    "reset_context", "set_context",
]  # fmt: skip
