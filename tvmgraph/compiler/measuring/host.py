"""What the compiler knows about this machine, for people to read."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from tvmgraph.backend.target import host_cpu
from tvmgraph.machine.processor import cpu_model, host_features
from tvmgraph.machine.targets import target_row
from tvmgraph.runtime import host

#: Rows of ``configs/targets.toml`` by architecture, the one with the most features first.
_CLASSES = {"x86_64": ("x86-64-v4", "x86-64-v3", "x86-64-v2"), "aarch64": ("aarch64",)}


def describe_host() -> dict[str, str]:
    """Returns the processor, its vector features, threads and caches as text."""
    model = cpu_model("host")
    wanted = ("avx2", "fma", "avx512f", "avx512vnni", "avx512bf16", "amx-bf16", "neon")
    found = [f for f in wanted if f in host_features()]
    caches = (model.l1_bytes, model.l2_bytes, model.l3_bytes)
    name, tested = processor_class(host.architecture(), host_features())
    return {
        "processor": host_cpu(),
        "processor class": f"{name} ({tested})",
        "vector features": " ".join(found) or "none",
        "vector width": f"{model.vector_bytes * 8} bits, {model.registers} registers",
        "threads": str(model.threads),
        "caches": " / ".join(f"{c >> 10} KiB" for c in caches),
    }


def processor_class(architecture: str, features: AbstractSet[str]) -> tuple[str, str]:
    """Returns the class of a processor, and how far it is tested.

    Args:
        architecture: Such as ``x86_64``.
        features: LLVM's names of what it can do.
    """
    for name in _CLASSES.get(architecture, ()):
        row = target_row(name)
        if features >= set(row["features"]):
            return name, row["tested"]
    return architecture.replace("_", "-"), "not tested"
