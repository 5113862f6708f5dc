"""What a benchmark run found, as a file: parts can be measured at different times."""

import dataclasses
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import RowTimings, Timing

#: Classes of processors that have tables of their own, and what these are called.
AVX512, AVX2 = "host", "avx2"
CLASSES = {AVX512: "With AVX-512", AVX2: "Without AVX-512"}


@dataclass
class Row:
    """One measured row.

    Attributes:
        title: Text of the row in the report.
        flops: Floating-point operations of a call where they bound its time, else 0.
        bytes: Memory traffic of a call where it bounds its time, else 0.
        timings: What every framework did.
    """

    title: str
    flops: int
    bytes: int
    timings: RowTimings


@dataclass
class Results:
    """Rows by name with what belongs to all of them.

    Attributes:
        machine: The pairs of ``machine_description``.
        info: What each worker said about itself.
        peaks: ``flops`` and ``bandwidth`` per second that this machine was measured to reach.
        rows: The rows, in the order of the report.
        memory: Peak bytes of training steps by row and framework.
        cpus: What was found on another class of processors than :data:`AVX512`, or when all
            frameworks did with the instructions of another processor, by its name.
        rates: Products by shape, by processor and number of threads: ``"host, 1"``.
        busy: What was found while so many other processes computed, by their number.
        language: Steps of generated text by the size of the network: bytes per second that a thread
            ``read``, and ``rows`` of seconds, bytes of weights and the first tokens.
        networks: Networks that others wrote, by the class of the processor, or that whose
            instructions were used: the ``machine``, and ``rows`` as ``benchmarks.architectures``
            measures them.
        eager: Eager mode beside PyTorch's, by the class of the processor: the ``machine``, and
            ``rows`` of microseconds of both.
        cold_steps: First calls of training steps beside torch.compile's, by the class of the
            processor: the ``machine``, and ``rows`` as ``benchmarks.cold_steps`` measures them.
        gpus: By device: the ``date``, and ``rows`` of seconds, operations or bytes, and a note.
    """

    machine: list[tuple[str, str]] = field(default_factory=list)
    info: dict[str, dict[str, Any]] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    memory: dict[str, dict[str, int]] = field(default_factory=dict)
    cpus: "dict[str, Results]" = field(default_factory=dict)
    rates: "dict[str, Results]" = field(default_factory=dict)
    busy: "dict[str, Results]" = field(default_factory=dict)
    language: dict[str, dict[str, Any]] = field(default_factory=dict)
    gpus: dict[str, dict[str, Any]] = field(default_factory=dict)
    networks: dict[str, dict[str, Any]] = field(default_factory=dict)
    eager: dict[str, dict[str, Any]] = field(default_factory=dict)
    cold_steps: dict[str, dict[str, Any]] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the file; a reader never sees half of it."""
        part = path.with_name(f"{path.name}.part")
        part.write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Results":
        """Read a file; one that does not exist holds no rows."""
        if not path.exists():
            return cls()
        return cls.of(json.loads(path.read_text()))

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Results":
        """Make results of what a file holds."""
        rows = {
            name: Row(
                row["title"], row["flops"], row["bytes"],
                {peer: Timing(**timing) for peer, timing in row["timings"].items()},
            )
            for name, row in data["rows"].items()
        }  # fmt: skip
        machine = [(name, value) for name, value in data["machine"]]
        parts = (
            {name: cls.of(found) for name, found in data.get(part, {}).items()}
            for part in ("cpus", "rates", "busy")
        )
        later = ("language", "gpus", "networks", "eager", "cold_steps")
        rest = (data.get(part, {}) for part in later)
        return cls(machine, data["info"], data["peaks"], rows, data.get("memory", {}), *parts,
                   *rest)  # fmt: skip


def summary(rows: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """Returns the geometric mean, and the largest, of our times in those of the peer beside them.

    Args:
        rows: By name: our time, the peer's, and what else was measured.
    """
    quotients = [ours / theirs for ours, theirs, *_ in rows.values()]
    return statistics.geometric_mean(quotients), max(quotients)
