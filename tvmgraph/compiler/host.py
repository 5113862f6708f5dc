"""What the compiler knows about this machine, for people to read."""

from __future__ import annotations

from tvmgraph.processor import cpu_model, host_features
from tvmgraph.schedule.target import host_cpu


def describe_host() -> dict[str, str]:
    """Returns the processor, its vector features, threads and caches as text."""
    model = cpu_model("host")
    wanted = ("avx2", "fma", "avx512f", "avx512vnni", "avx512bf16", "amx-bf16", "neon")
    found = [f for f in wanted if f in host_features()]
    caches = (model.l1_bytes, model.l2_bytes, model.l3_bytes)
    return {
        "processor": host_cpu(),
        "vector features": " ".join(found) or "none",
        "vector width": f"{model.vector_bytes * 8} bits, {model.registers} registers",
        "threads": str(model.threads),
        "caches": " / ".join(f"{c >> 10} KiB" for c in caches),
    }
