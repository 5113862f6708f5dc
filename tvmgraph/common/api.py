"""MindSpore's ``mindspore.common.api``: the compiling decorators, loaded at first use."""

from __future__ import annotations

from typing import Any

_COMPILING = ("jit", "jit_class", "ms_class", "ms_function")


def __getattr__(name: str) -> Any:
    if name not in _COMPILING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import tvmgraph.jit

    return getattr(tvmgraph.jit, name)


__all__ = ["jit", "jit_class", "ms_class", "ms_function"]  # noqa: F822
