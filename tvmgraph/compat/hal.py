"""Devices as MindSpore's ``hal`` names them; :mod:`tvmgraph.runtime` holds the implementation."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.runtime import device_memory
from tvmgraph.runtime.device_memory import device_count, empty_cache, is_available
from tvmgraph.runtime.stream import (
    Event,
    Stream,
    StreamCtx,
    current_stream,
    default_stream,
    set_cur_stream,
    synchronize,
)

T = TypeVar("T")


def _of_target(function: Callable[[int | None], T]) -> Callable[[int | str | None], T]:
    """A function of the memory of a device, which is named by its kind, or a GPU by its number."""

    def of_target(device_target: int | str | None = None) -> T:
        if isinstance(device_target, int):
            return function(device_target)
        return function(device_memory.HOST if _is_cpu(device_target) else None)

    of_target.__name__ = of_target.__qualname__ = function.__name__
    of_target.__doc__ = (function.__doc__ or "").replace(
        "device_id: Which GPU; the context's by default.",
        'device_target: ``"CPU"``, ``"GPU"`` or the number of a GPU; the context\'s by default.',
    )
    return of_target


max_memory_allocated = _of_target(device_memory.max_memory_allocated)
max_memory_reserved = _of_target(device_memory.max_memory_reserved)
memory_allocated = _of_target(device_memory.memory_allocated)
memory_reserved = _of_target(device_memory.memory_reserved)
memory_stats = _of_target(device_memory.memory_stats)
memory_summary = _of_target(device_memory.memory_summary)
reset_max_memory_allocated = _of_target(device_memory.reset_max_memory_allocated)
reset_max_memory_reserved = _of_target(device_memory.reset_max_memory_reserved)
reset_peak_memory_stats = _of_target(device_memory.reset_peak_memory_stats)


def _is_cpu(device_target: str | None) -> bool:
    return device_target is not None and device_target.upper() == "CPU"


def get_arch_list(device_target: str | None = None) -> list[str] | None:
    """Returns the GPU architectures that code can be made for; None for the CPU.

    Args:
        device_target: ``"CPU"`` or ``"GPU"``; GPUs by default.
    """
    return None if _is_cpu(device_target) else device_memory.get_arch_list()


def get_device_capability(
    device_id: int = 0, device_target: str | None = None
) -> tuple[int, int] | None:
    """Returns the compute capability of a GPU, such as ``(9, 0)``; None for the CPU.

    Args:
        device_id: Number of the GPU.
        device_target: ``"CPU"`` or ``"GPU"``; GPUs by default.
    """
    return None if _is_cpu(device_target) else device_memory.get_device_capability(device_id)


def get_device_name(device_id: int = 0, device_target: str | None = None) -> str:
    """Returns the product name of a GPU; ``"CPU"`` for the CPU.

    Args:
        device_id: Number of the GPU.
        device_target: ``"CPU"`` or ``"GPU"``; GPUs by default.
    """
    return "CPU" if _is_cpu(device_target) else device_memory.get_device_name(device_id)


def get_device_properties(device_id: int = 0, device_target: str | None = None) -> Any:
    """Returns what is known about a GPU; None for the CPU.

    Args:
        device_id: Number of the GPU.
        device_target: ``"CPU"`` or ``"GPU"``; GPUs by default.
    """
    return None if _is_cpu(device_target) else device_memory.get_device_properties(device_id)


def is_initialized(device_target: str = "GPU") -> bool:
    """Whether a kind of device was used by this process.

    Args:
        device_target: ``"CPU"`` or ``"GPU"``; GPUs by default.
    """
    from tvmgraph.runtime import cuda

    return device_target.upper() == "CPU" or cuda.devices.cache_info().currsize > 0


def __getattr__(name: str) -> ModuleType:
    return look("tvmgraph.hal", name, __all__)


__all__ = [
    "Event", "Stream", "StreamCtx", "current_stream", "default_stream", "device_count",
    "empty_cache", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "is_available", "is_initialized", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_max_memory_allocated", "reset_max_memory_reserved", "reset_peak_memory_stats",
    "set_cur_stream", "synchronize",
]  # fmt: skip

_guard_module(globals(), "hal")
