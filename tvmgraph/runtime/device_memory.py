"""What MindSpore's ``runtime`` and ``hal`` offer about devices: memory, copies, properties."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import tvm_ffi

from tvmgraph.config import context
from tvmgraph.errors import DeviceError
from tvmgraph.runtime import cuda, native
from tvmgraph.runtime.device_tensor import CopyCounts, copies, use_of

#: What MindSpore calls the parts of :func:`memory_stats`.
_NAMES = (
    "total_reserved_memory", "total_allocated_memory", "total_idle_memory",
    "total_eager_free_memory", "max_reserved_memory", "max_allocated_memory",
)  # fmt: skip


#: Stands for the host among the numbers of GPUs.
HOST = -1


def _no_gpu(device_id: int | None) -> bool:
    """Whether the question is about the host, or about the memory of a GPU where there is none."""
    if device_id is None:
        return context.device_target == "CPU" and not cuda.is_available()
    return device_id == HOST


def _index(device_id: int | None) -> int:
    index = context.device_id if device_id is None else device_id
    return cuda.device(index).index


def memory_allocated(device_id: int | None = None) -> int:
    """Returns the bytes that tensors hold on a GPU now.

    Args:
        device_id: Which GPU; the context's by default.
    """
    if _no_gpu(device_id):
        return 0
    return use_of(_index(device_id)).now


def max_memory_allocated(device_id: int | None = None) -> int:
    """Returns the most bytes that tensors held on a GPU at once.

    Args:
        device_id: Which GPU; the context's by default.
    """
    if _no_gpu(device_id):
        return 0
    return use_of(_index(device_id)).peak


def reset_peak_memory_stats(device_id: int | None = None) -> None:
    """Lets :func:`max_memory_allocated` begin again with what is held now.

    Args:
        device_id: Which GPU; the context's by default.
    """
    if _no_gpu(device_id):
        return
    use = use_of(_index(device_id))
    use.peak = use.now


reset_max_memory_allocated = reset_peak_memory_stats
reset_max_memory_reserved = reset_peak_memory_stats


def max_memory_reserved(device_id: int | None = None) -> int:
    """Returns what :func:`max_memory_allocated` does: only what tensors hold is kept.

    Args:
        device_id: Which GPU; the context's by default.
    """
    return max_memory_allocated(device_id)


def memory_reserved(device_id: int | None = None) -> int:
    """Returns the bytes of a GPU that are in use, by tensors, workspaces, code and others.

    Args:
        device_id: Which GPU; the context's by default.
    """
    if _no_gpu(device_id):
        return 0
    free, total = cuda.memory_info(_index(device_id))
    return total - free


def memory_stats(device_id: int | None = None) -> dict[str, Any]:
    """Returns all that is known about a GPU's memory, and the copies to and from it.

    Args:
        device_id: Which GPU; the context's by default.
    """
    if _no_gpu(device_id):
        pools = {"common_mem_pool_stats": {}, "persistent_mem_pool_stats": {}}
        return dict.fromkeys(_NAMES, 0) | pools
    index = _index(device_id)
    free, total = cuda.memory_info(index)
    now, peak, used = use_of(index).now, use_of(index).peak, total - free
    sizes = (used, now, used - now, 0, peak, peak)
    return dict(zip(_NAMES, sizes)) | {
        "allocated": now, "max_allocated": peak, "reserved": used, "total": total,
        "copies": asdict(copies),
    }  # fmt: skip


def memory_summary(device_id: int | None = None) -> str:
    """Returns :func:`memory_stats` as text for people.

    Args:
        device_id: Which GPU; the context's by default.
    """
    if _no_gpu(device_id):
        return "CPU: tensors are in the memory of the process"
    index = _index(device_id)
    stats = memory_stats(index)
    count = stats.pop("copies")
    mib = {name: f"{value / 2**20:.1f} MiB" for name, value in stats.items()}
    return "\n".join(
        [
            str(cuda.device(index)),
            f"  tensors    {mib['allocated']}, at most {mib['max_allocated']}",
            f"  in use     {mib['reserved']} of {mib['total']}, workspaces and code included",
            f"  to GPU     {count['to_device']} copies, {count['to_device_bytes']} bytes",
            f"  to host    {count['to_host']} copies, {count['to_host_bytes']} bytes",
            f"  implicit   {count['implicit']} of these copies",
        ]
    )


def copy_counts() -> CopyCounts:
    """Returns the copies between host and GPUs so far."""
    return replace(copies)


def reset_copy_counts() -> None:
    """Lets :func:`copy_counts` begin again."""
    for name, value in asdict(CopyCounts()).items():
        setattr(copies, name, value)


def empty_cache() -> None:
    """Returns memory that is kept for reuse to the driver."""
    if not cuda.is_available():
        return
    native.use_cuda_runtime()
    tvm_ffi.get_global_func("vm.builtin.memory_manager.clear")()


def device_count(device_target: str | None = None) -> int:
    """Returns the number of usable devices of a kind, by default the context's.

    Args:
        device_target: ``"CPU"`` or ``"GPU"``; the context's by default.
    """
    kind = (device_target or context.device_target).upper()
    if kind == "CPU":
        return 1
    if kind not in ("GPU", "CUDA"):
        raise DeviceError(f"there is no kind of device {kind!r}", fix="use 'CPU' or 'GPU'")
    return len(cuda.devices()) if cuda.is_available() else 0


def is_available(device_target: str = "GPU") -> bool:
    """Whether a kind of device can be used.

    Args:
        device_target: ``"CPU"``, ``"GPU"`` or ``"Ascend"``, which never can.
    """
    return device_target.upper() != "ASCEND" and device_count(device_target) > 0


def get_device_capability(device_id: int | None = None) -> tuple[int, int]:
    """Returns the compute capability of a GPU, such as ``(9, 0)``.

    Args:
        device_id: Which GPU; the context's by default.
    """
    return cuda.device(_index(device_id)).capability


def get_device_name(device_id: int | None = None) -> str:
    """Returns the product name of a GPU.

    Args:
        device_id: Which GPU; the context's by default.
    """
    return cuda.device(_index(device_id)).name


def get_device_properties(device_id: int | None = None) -> cuda.Device:
    """Returns what is known about a GPU.

    Args:
        device_id: Which GPU; the context's by default.
    """
    return cuda.device(_index(device_id))


def get_arch_list() -> list[str]:
    """Returns the GPU architectures that code can be made for."""
    return list(cuda.rows())
