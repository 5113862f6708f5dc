"""Processors: what this one can do, and the few numbers that kernels are shaped by.

:func:`cpu_model` gives the :class:`CpuModel` of a target. Kernels, and what is prepared ahead of
them, take the model as an argument and read nothing else, so code can be made for a machine other
than this one. Apart from the compiler, because a process that only runs compiled code prepares its
weights too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tvmgraph import hooks
from tvmgraph.machine.targets import HOST, resolve, target_row
from tvmgraph.machine.threads import read, thread_count
from tvmgraph.machine.tiles import permit_tiles

_CPUINFO = Path("/proc/cpuinfo")
_CPU_DIR = Path("/sys/devices/system/cpu")
_DEFAULT_CACHES = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}
#: Bytes of weights that one core reads in a cycle: 28 GB/s at 3.2 GHz on Zen 4; where vectors have
#: 256 bits 18 GB/s at 3 GHz on Zen 3, whose Winograd convolutions of 7 x 7 pixels read 11 to 20.
_MEMORY_BYTES_PER_CYCLE = {64: 9}
_LESS_BYTES_PER_CYCLE = 6
_SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
#: Features that decide which instructions generated code uses: LLVM's name, Linux' name.
FEATURES = {
    "sse4.1": "sse4_1", "sse4.2": "sse4_2", "popcnt": "popcnt", "avx": "avx", "avx2": "avx2",
    "fma": "fma", "f16c": "f16c", "bmi": "bmi1", "bmi2": "bmi2", "lzcnt": "abm",
    "movbe": "movbe", "avxvnni": "avx_vnni", "avx512f": "avx512f", "avx512bw": "avx512bw",
    "avx512cd": "avx512cd", "avx512dq": "avx512dq", "avx512vl": "avx512vl",
    "avx512vnni": "avx512_vnni", "avx512vbmi": "avx512vbmi", "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16", "amx-tile": "amx_tile", "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16", "neon": "asimd", "sve": "sve", "sve2": "sve2", "dotprod": "asimddp",
    "fullfp16": "asimdhp", "bf16": "bf16", "i8mm": "i8mm",
}  # fmt: skip
#: Those that tell processors apart in messages.
_TELLING = ("sse4.2", "avx2", "avx512f", "avx512fp16", "amx-tile", "neon", "sve")
#: AMD's families whose cores execute instructions on the widest vectors as two halves: Zen and Zen+
#: (Zen 2 has the same number, with models from here on) those on 256 bits, Zen 4 those on 512.
_ZEN, _ZEN2_MODELS, _ZEN4 = (23, 24), 0x30, 25
_AMD = ("AuthenticAMD", "HygonGenuine")


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
        max_strided_row: Elements of a row whose elements are strided in memory, up to which kernels
            that run over such rows are fused.
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
    max_strided_row: int = 0

    @property
    def lanes(self) -> int:
        """float32 elements of one vector."""
        return self.lanes_of(4)

    def lanes_of(self, itemsize: int) -> int:
        """Elements of ``itemsize`` bytes that fit one vector.

        Args:
            itemsize: Bytes of an element.
        """
        return max(1, self.vector_bytes // max(1, itemsize))

    @property
    def flops_per_cycle(self) -> int:
        """Peak float32 operations per cycle of one core (a multiply-add counts two)."""
        return 2 * self.lanes * self.fma_per_cycle

    @property
    def sums_pairs_of_bytes(self) -> bool:
        """Whether it has AVX2 and nothing wider."""
        return self.vector_bytes == 32  # only x86 has rows of that

    @property
    def has_few_registers(self) -> bool:
        """Whether tiles are as low as 16 registers make them; AVX-512 and NEON have 32."""
        return self.registers <= 16

    @property
    def flops_per_byte(self) -> float:
        """float32 operations that one core can do while it reads a byte of weights."""
        bytes_per_cycle = _MEMORY_BYTES_PER_CYCLE.get(self.vector_bytes, _LESS_BYTES_PER_CYCLE)
        return self.flops_per_cycle / bytes_per_cycle


def cpu_model(name: str = "host", threads: int | None = None) -> CpuModel:
    """The :class:`CpuModel` of target ``name`` (of its host) with ``threads`` workers.

    Args:
        name: A target of ``configs/targets.toml``; of a GPU's its host counts.
        threads: Workers; as many as the process has by default.

    Raises:
        TvmgraphError: There is no such target.
    """
    row = target_row(name)
    if row["kind"] != "llvm":
        return cpu_model(row["host"], threads)
    if row.get("mcpu") == "host":
        return _host_model(thread_count(threads))
    facts: dict[str, Any] = {f.name: row[f.name] for f in fields(CpuModel) if f.name in row}
    kinds = ("dot_types", "tile_types")
    narrow: dict[str, Any] = {key: frozenset(row.get(key, ())) for key in kinds}
    return CpuModel(**facts | narrow, threads=thread_count(threads))


def _host_model(threads: int) -> CpuModel:
    has = host_features()
    wide, avx, arm = "avx512f" in has, "avx2" in has, "neon" in has
    l1, l2, l3 = cache_sizes()
    pairs = (arm or "fma" in has) and not _halves_vectors(wide)
    # The kernels that sum groups of a narrow type per lane are written for 512 bits.
    dots = {"bfloat16": "avx512bf16", "int8": "avx512vnni"} if wide else {}
    tiles = {"bfloat16": "amx-bf16", "int8": "amx-int8"}
    return CpuModel(
        vector_bytes=64 if wide else 32 if avx else 16,
        registers=32 if wide or arm else 16,
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
        threads=threads,
        fma_per_cycle=2 if pairs else 1,
        dot_types=frozenset(t for t, feature in dots.items() if feature in has),
        tile_types=frozenset(t for t, feature in tiles.items() if feature in has),
    )


def _halves_vectors(wide: bool) -> bool:
    """Whether this processor executes its widest instructions as two halves."""
    facts = _cpuinfo()
    family, model = (int(facts.get(key, "0")) for key in ("cpu family", "model"))
    if facts.get("vendor_id") not in _AMD:
        return False
    return family == _ZEN4 if wide else family in _ZEN and model < _ZEN2_MODELS


# ---- this processor ---------------------------------------------------------------------------


def host_features() -> frozenset[str]:
    """LLVM's names of those of :data:`FEATURES` that this processor has and its system permits."""
    have = linux_flags()
    if have:
        return frozenset(f for f in FEATURES if _is_usable(f, have))
    return hooks.llvm_features() & FEATURES.keys()


def described_target(name: str) -> str:
    """Returns a target by name, with what vectors the processor at hand has if it is that.

    Args:
        name: A target, or ``"host"``.
    """
    name = resolve(name)
    found = " ".join(f for f in _TELLING if f in host_features())
    return f"{name} ({found})" if name == HOST and found else name


def missing_features(wanted: Iterable[str]) -> list[str]:
    """Returns the features a module uses and this processor lacks, or its system refuses.

    A system that does not list its features is taken to have them all. Tile registers have to be
    asked for, which is done here: without permission their first use ends the process.

    Args:
        wanted: Names of LLVM's features, such as ``"avx512f"``.
    """
    have = linux_flags()
    return [f for f in wanted if have and f in FEATURES and not _is_usable(f, have)]


def _is_usable(feature: str, have: frozenset[str]) -> bool:
    return FEATURES[feature] in have and (not feature.startswith("amx-") or permit_tiles())


@functools.cache
def linux_flags() -> frozenset[str]:
    """Returns the processor's features as Linux lists them; empty elsewhere."""
    facts = _cpuinfo()
    return frozenset((facts.get("flags") or facts.get("features") or "").split())


@functools.cache
def _cpuinfo() -> Mapping[str, str]:
    """What Linux says of the first processor, by lower-case name; empty elsewhere."""
    try:
        first = _CPUINFO.read_text().split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


@functools.cache
def cache_sizes() -> tuple[int, int, int]:
    """Bytes of the first, second and third level data cache seen by one core."""
    sizes = dict(_DEFAULT_CACHES)
    for index in sorted((_CPU_DIR / "cpu0" / "cache").glob("index*")):
        level, kind, size = (read(index / name) for name in ("level", "type", "size"))
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind != "Instruction" and match and level.isdigit():
            sizes[int(level)] = int(match[1]) * _SIZE_UNITS[match[2]]
    return sizes[1], sizes[2], sizes[3]
