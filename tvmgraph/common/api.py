"""MindSpore's ``mindspore.common.api``: the compiling decorators, loaded at first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tvmgraph.compat import hal

_COMPILING = ("jit", "jit_class", "ms_class", "ms_function")


def __getattr__(name: str) -> Any:
    if name not in _COMPILING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # the package's attribute of that name is the function, so the module comes by its full name
    rooms = import_module("tvmgraph.jit")
    return rooms.jit_class if name == "ms_class" else getattr(rooms, name)


class _Executor:
    """What MindSpore programs ask to wait for; eager calls on the CPU have finished already."""

    sync = staticmethod(hal.synchronize)


_pynative_executor = _Executor()

__all__ = ["jit", "jit_class", "ms_class", "ms_function"]  # noqa: F822
