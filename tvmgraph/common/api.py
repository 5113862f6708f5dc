"""MindSpore's ``mindspore.common.api``: the compiling decorators, loaded at first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_COMPILING = ("jit", "jit_class", "ms_class", "ms_function")
_PRIVATE = (
    "_CellGraphExecutor", "_cell_graph_executor", "_function_forbid_reuse", "_no_grad",
    "_pynative_executor", "cells_compile_cache",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PRIVATE:
        return getattr(import_module("tvmgraph.compat.private"), name)
    if name == "flops_collection":
        return import_module("tvmgraph.compat.whole").flops_collection
    if name not in _COMPILING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # the package's attribute of that name is the function, so the module comes by its full name
    rooms = import_module("tvmgraph.jit")
    return rooms.jit_class if name == "ms_class" else getattr(rooms, name)


__all__ = ["jit", "jit_class", "ms_class", "ms_function"]  # noqa: F822
