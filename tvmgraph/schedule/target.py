"""Which processor is compiled for, and the few numbers about it that kernels are shaped by.

:func:`make_target` gives TVM a target by name, :func:`cpu_model` the :class:`CpuModel` of the same
name. Kernels take the model as an argument and read nothing else, so a module can be scheduled for
a machine other than this one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import tvm
import tvm_ffi

from tvmgraph.errors import TvmgraphError
from tvmgraph.targets import target_names, target_row
from tvmgraph.threads import thread_count
from tvmgraph.tiles import permit_tiles

_CPU_DIR = Path("/sys/devices/system/cpu")
_DEFAULT_CACHES = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}
_SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class CpuModel:
    """What a kernel needs to know about the processor.

    Attributes:
        vector_bytes: Width of a vector register.
        registers: Number of vector registers.
        l1_bytes: Data cache next to one core.
        l2_bytes: Second-level cache of one core.
        l3_bytes: Last-level cache, shared.
        threads: Workers of a parallel region.
        fma_per_cycle: Fused multiply-adds on full vectors one core starts per cycle.
        dot_types: Narrow types of which one instruction sums several products per lane.
        tile_types: Narrow types that the processor multiplies as tiles of 16 rows (AMX).
        apart: Elements of a row up to which kernels are joined over rows whose elements lie apart.
    """

    vector_bytes: int
    registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    threads: int
    fma_per_cycle: int = 2
    dot_types: frozenset[str] = frozenset()
    tile_types: frozenset[str] = frozenset()
    apart: int = 0

    @property
    def lanes(self) -> int:
        """float32 elements of one vector."""
        return self.lanes_of(4)

    def lanes_of(self, itemsize: int) -> int:
        """Elements of ``itemsize`` bytes that fit one vector."""
        return max(1, self.vector_bytes // max(1, itemsize))

    @property
    def flops_per_cycle(self) -> int:
        """Peak float32 operations per cycle of one core (a multiply-add counts two)."""
        return 2 * self.lanes * self.fma_per_cycle


#: Threads of one block on every CUDA device.
MAX_THREADS = 1024


@functools.cache
def host_features() -> frozenset[str]:
    """LLVM's names of the features this processor reports and its system permits."""
    query = tvm_ffi.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")
    return _permitted(frozenset(str(name) for name, on in dict(query()).items() if bool(on)))


def _permitted(features: frozenset[str]) -> frozenset[str]:
    """Leaves AMX out where the system refuses its registers."""
    tiles = frozenset(name for name in features if name.startswith("amx-"))
    return features - tiles if tiles and not permit_tiles() else features


@functools.cache
def host_cpu() -> str:
    """LLVM's name of this processor, such as ``znver4``."""
    return str(tvm_ffi.get_global_func("tvm.codegen.llvm.GetHostCPUName")())


@functools.cache
def cache_sizes() -> tuple[int, int, int]:
    """Bytes of the first, second and third level data cache seen by one core."""
    sizes = dict(_DEFAULT_CACHES)
    for index in sorted((_CPU_DIR / "cpu0" / "cache").glob("index*")):
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind != "Instruction" and match and level.isdigit():
            sizes[int(level)] = int(match[1]) * _SIZE_UNITS[match[2]]
    return sizes[1], sizes[2], sizes[3]


def make_target(name: str = "host", opt_level: int = 3, host: str = "") -> tvm.target.Target:
    """The TVM target called ``name`` in ``configs/targets.toml``.

    Args:
        name: Row of the table.
        opt_level: LLVM's own optimization level, 0 to 3.
        host: For a GPU: the row of the processor beside it, by default the one the table says.

    ``host`` lists every feature of this processor explicitly: on virtual machines with a masked
    processor id LLVM's name alone loses some of them.

    Raises:
        TvmgraphError: There is no such target.
    """
    row = target_row(name)
    if row["kind"] == "cuda":
        return _cuda_target(row, make_target(host or row["host"], opt_level))
    fields: dict[str, Any] = {"kind": row["kind"], "opt-level": opt_level}
    if row.get("mcpu") == "host":
        fields["mcpu"] = host_cpu()
        # LLVM would split wide vectors on processors that clock down for them.
        narrow = ["-prefer-256-bit"] if "avx512f" in host_features() else []
        fields["mattr"] = [f"+{feature}" for feature in sorted(host_features())] + narrow
    else:
        fields |= {key: row[key] for key in ("mcpu", "mattr", "mtriple") if key in row}
    return tvm.target.Target(fields)


def _cuda_target(row: Mapping[str, Any], host: tvm.target.Target) -> tvm.target.Target:
    fields = {
        "kind": "cuda", "arch": row["arch"], "max_num_threads": MAX_THREADS, "thread_warp_size": 32,
        "max_shared_memory_per_block": row["shared_per_block"],
    }  # fmt: skip
    return tvm.target.Target(fields, host=host)


def cpu_model(name: str = "host", threads: int | None = None) -> CpuModel:
    """The :class:`CpuModel` of target ``name`` (of its host) with ``threads`` workers.

    Raises:
        TvmgraphError: There is no such target.
    """
    row = target_row(name)
    if row["kind"] != "llvm":
        return cpu_model(row["host"], threads)
    if row.get("mcpu") == "host":
        return _host_model(thread_count(threads))
    keys = ("vector_bytes", "registers", "fma_per_cycle", "l1_bytes", "l2_bytes", "l3_bytes")
    narrow = {key: frozenset(row.get(key, ())) for key in ("dot_types", "tile_types")}
    return CpuModel(threads=thread_count(threads), **{key: row[key] for key in keys}, **narrow)


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
        max_blocks_per_sm: Blocks resident at once.
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
    max_blocks_per_sm: int
    tf32: bool = False

    @property
    def capability(self) -> int:
        """Compute capability as one number, 90 for 9.0."""
        return int(self.arch.removeprefix("sm_").rstrip("af"))


def gpu_model(name: str) -> GpuModel:
    """The :class:`GpuModel` of target ``name``.

    Raises:
        TvmgraphError: There is no such target, or it is a processor.
    """
    row = target_row(name)
    if row["kind"] != "cuda":
        known = ", ".join(target_names("cuda"))
        raise TvmgraphError(f"target {name!r} is no CUDA device", fix=f"use one of {known}")
    return GpuModel(**{f.name: row[f.name] for f in fields(GpuModel) if f.name in row})


def is_cuda(name: str) -> bool:
    """Whether target ``name`` is a CUDA device."""
    return target_row(name)["kind"] == "cuda"


def _host_model(threads: int) -> CpuModel:
    features = host_features()
    wide, avx = "avx512f" in features, "avx2" in features
    arm = "neon" in features
    l1, l2, l3 = cache_sizes()
    # AMD's cores up to Zen 4 execute a 512-bit instruction as two halves.
    halved = wide and host_cpu().startswith("znver4")
    return CpuModel(
        vector_bytes=64 if wide else 32 if avx else 16,
        registers=32 if wide or arm else 16,
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
        threads=threads,
        fma_per_cycle=1 if halved or not (wide or avx or arm) else 2,
        dot_types=frozenset(
            dtype
            for dtype, feature in (("bfloat16", "avx512bf16"), ("int8", "avx512vnni"))
            if wide and feature in features
        ),
        tile_types=frozenset(
            dtype
            for dtype, feature in (("bfloat16", "amx-bf16"), ("int8", "amx-int8"))
            if feature in features
        ),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
