"""Running compiled code: executables of this process, and compiled modules from files.

``load`` needs NumPy, tvm-ffi and TVM's runtime library only; the front end and TVM's compiler are
not imported. The rest is what MindSpore's ``runtime`` offers: memory, streams and events of GPUs.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tvmgraph.compat.paths import look
from tvmgraph.runtime.module import Module, load

if TYPE_CHECKING:
    from tvmgraph.runtime.device_memory import *  # noqa: F403
    from tvmgraph.runtime.executable import Executable as Executable
    from tvmgraph.runtime.stream import *  # noqa: F403

#: What is found when it is used: its tensors are the front end's.
_HOMES = {
    "Executable": "executable",
    **dict.fromkeys(
        (
            "copy_counts", "device_count", "empty_cache", "is_available", "max_memory_allocated",
            "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
            "memory_summary", "reset_copy_counts", "reset_max_memory_allocated",
            "reset_max_memory_reserved", "reset_peak_memory_stats",
        ),
        "device_memory",
    ),
    **dict.fromkeys(
        (
            "Event", "Stream", "StreamCtx", "current_stream", "default_stream", "launch_blocking",
            "set_cur_stream", "synchronize",
        ),
        "stream",
    ),
}  # fmt: skip

__all__ = ["Module", "load", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return look(__name__, name, __all__)


def __dir__() -> list[str]:
    return list(__all__)
