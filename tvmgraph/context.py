"""MindSpore's import path for the context: ``from tvmgraph import context``."""

import importlib
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

_PARALLEL = (
    "get_auto_parallel_context", "reset_auto_parallel_context", "set_auto_parallel_context",
)  # fmt: skip


RELEASE, DEBUG = 0, 1  # for set_context(debug_level=...)


def _get_mode() -> int:
    return get_context("mode")


def get_jit_config() -> dict[str, object]:
    """Returns what ``set_context(jit_config=...)`` was given; nothing is an empty dict."""
    return get_context("jit_config")


def __getattr__(name: str) -> Any:
    if name in _PARALLEL:
        return getattr(importlib.import_module("tvmgraph.distributed.context"), name)
    return look(__name__, name, __all__)


__all__ = [
    "COMPATIBLE", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "ParallelMode", "get_context",
    "reset_context", "set_context", *_PARALLEL,
]  # fmt: skip


def __dir__() -> list[str]:
    return list(__all__)
