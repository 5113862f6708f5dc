"""Targets as TVM takes them, and what kernels need to know of CUDA devices.

:func:`make_target` gives TVM a target by name; :func:`tvmgraph.machine.processor.cpu_model` has
the numbers of the same name that kernels for processors are shaped by.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields

import tvm

from tvmgraph.backend.tvm_private import private
from tvmgraph.errors import TvmgraphError
from tvmgraph.machine.processor import FEATURES, host_features
from tvmgraph.machine.targets import target_names, target_row

#: Threads of one block on every CUDA device.
MAX_THREADS = 1024
#: Features that others, whose names start alike, cannot do without.
_FAMILIES = {"avx512f": "avx512", "amx-tile": "amx-"}


@functools.cache
def _asked_features() -> dict[str, bool]:
    """Whether this processor has each feature that LLVM asks it for, by LLVM's names."""
    query = private("tvm.codegen.llvm.GetHostCPUFeatures")
    return {str(name): bool(on) for name, on in dict(query()).items()}


def llvm_features() -> frozenset[str]:
    """All features of this processor that LLVM finds, by its names."""
    return frozenset(name for name, on in _asked_features().items() if on)


def usable_features() -> frozenset[str]:
    """The features that code for this processor uses: those that the system permits, too.

    Half precision is computed in float32 and rounded; LLVM would compute single elements with the
    arithmetic of ``avx512fp16``, and join a product with a sum without the rounding between them.
    """
    barred = (FEATURES.keys() - host_features()) | {"avx512fp16"}
    families = tuple(family for root, family in _FAMILIES.items() if root in barred)
    return frozenset(f for f in llvm_features() - barred if not f.startswith(families))


@functools.cache
def host_cpu() -> str:
    """LLVM's name of this processor, such as ``znver4``."""
    return str(private("tvm.codegen.llvm.GetHostCPUName")())


def make_target(name: str = "host", opt_level: int = 3, host: str = "") -> tvm.target.Target:
    """The TVM target called ``name`` in ``configs/targets.toml``.

    Args:
        name: Row of the table.
        opt_level: LLVM's own optimization level, 0 to 3.
        host: For a GPU: the row of the processor beside it, by default the one the table says.

    ``host`` says of every feature explicitly whether this processor has it: a virtual machine may
    mask its processor's, so that LLVM's name alone would imply too few of them or too many.

    Raises:
        TvmgraphError: There is no such target.
    """
    row = target_row(name)
    if row["kind"] == "cuda":
        return _cuda_target(row, make_target(host or row["host"], opt_level))
    fields: dict[str, object] = {"kind": row["kind"], "opt-level": opt_level}
    if row.get("mcpu") == "host":
        fields["mcpu"] = host_cpu()
        have = usable_features()
        # LLVM would split wide vectors on processors that clock down for them.
        narrow = ["-prefer-256-bit"] if "avx512f" in have else []
        off = [f"-{feature}" for feature in sorted(_asked_features().keys() - have)]
        fields["mattr"] = [f"+{feature}" for feature in sorted(have)] + off + narrow
    else:
        fields |= {key: row[key] for key in ("mcpu", "mtriple") if key in row}
        fields["mattr"] = [f"+{name}" for name in row["features"]] + list(row.get("mattr", ()))
    return tvm.target.Target(fields)


def has_feature(name: str) -> bool:
    """Whether the processor whose code is being generated has a feature, by LLVM's name.

    The processor is the target in force (``with target``); without one it has none.

    Args:
        name: Such as ``"avx512f"``, ``"f16c"`` or ``"neon"``.
    """
    target = tvm.target.Target.current(allow_none=True)
    return target is not None and f"+{name}" in target.attrs.get("mattr", ())


def _cuda_target(row: Mapping[str, object], host: tvm.target.Target) -> tvm.target.Target:
    fields = {
        "kind": "cuda", "arch": row["arch"], "max_num_threads": MAX_THREADS, "thread_warp_size": 32,
        "max_shared_memory_per_block": row["shared_per_block"],
    }  # fmt: skip
    return tvm.target.Target(fields, host=host)


@dataclass(frozen=True)
class GpuModel:
    """What a kernel needs to know about a CUDA device; see ``configs/targets.toml``.

    Attributes:
        arch: Architecture, such as ``sm_90``.
        sms: Streaming multiprocessors.
        threads_per_sm: Threads resident on one of them at once.
        registers_per_sm: 32-bit registers of one of them.
        shared_per_sm: Bytes of its shared memory.
        shared_per_block: Bytes of shared memory that one block may ask for.
        l2_bytes: Second-level cache.
        bandwidth: Of the device memory, GB/s.
        tf32: Whether products of f32 may round their factors to tf32, which tensor cores take.
    """

    arch: str
    sms: int
    threads_per_sm: int
    registers_per_sm: int
    shared_per_sm: int
    shared_per_block: int
    l2_bytes: int
    bandwidth: int
    tf32: bool = False

    @property
    def capability(self) -> int:
        """Compute capability as one number, 90 for 9.0."""
        return int(self.arch.removeprefix("sm_").rstrip("af"))


def gpu_model(name: str) -> GpuModel:
    """The :class:`GpuModel` of target ``name``.

    Args:
        name: A name in ``configs/targets.toml``.

    Raises:
        TvmgraphError: There is no such target, or it is a processor.
    """
    row = target_row(name)
    if row["kind"] != "cuda":
        known = ", ".join(target_names("cuda"))
        raise TvmgraphError(f"target {name!r} is no CUDA device", fix=f"use one of {known}")
    return GpuModel(**{f.name: row[f.name] for f in fields(GpuModel) if f.name in row})
