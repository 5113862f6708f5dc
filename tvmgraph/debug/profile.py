"""What a call took: times, rates and memory, as data, which :mod:`.report` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tvmgraph.errors import ArgumentError, reject

if TYPE_CHECKING:
    from rich.console import Group

    from tvmgraph.debug.recorder import Event


@dataclass(frozen=True)
class Peaks:
    """Peaks of a machine: measured, or of a GPU's arithmetic units at its highest clock.

    Attributes:
        float32: Multiply-adds on full vectors by all threads, in GFLOP/s (one counts two).
        float64: The same in double precision.
        bandwidth: ``a = b + s * c`` over arrays beyond all caches, in GB/s; every array counts
            once.
        threads: Workers that were measured; 0 of a GPU.
        processor: LLVM's name of the processor, or the GPU's product name.
        half: float16 and bfloat16 on a GPU's tensor cores; 0 where there are none.
    """

    float32: float
    float64: float
    bandwidth: float
    threads: int
    processor: str
    half: float = 0.0

    def flops(self, dtype: str) -> float:
        """Peak arithmetic of a dtype in GFLOP/s; narrow floats and integers count as float32.

        Args:
            dtype: Name of the dtype.
        """
        if dtype in ("float16", "bfloat16") and self.half:
            return self.half
        return self.float64 if dtype in ("float64", "complex128") else self.float32

    def __str__(self) -> str:
        if not self.threads:
            return (
                f"{self.processor}: {self.float32:.0f} GFLOP/s float32, {self.half:.0f} float16 "
                f"(its units at the highest clock), {self.bandwidth:.0f} GB/s from memory (a copy)"
            )
        return (
            f"{self.processor}, {self.threads} threads: {self.float32:.0f} GFLOP/s float32, "
            f"{self.bandwidth:.1f} GB/s from memory (measured)"
        )


@dataclass(frozen=True)
class KernelTime:
    """What one kernel took, in one place of the graph.

    Attributes:
        name: The kernel's name, or the operator's in eager code.
        seconds: Wall time of all its calls here; on a GPU the time between events around them.
        bytes: Bytes of the tensors it was given, read or written once, over all calls.
        flops: Arithmetic operations over all calls, None if they are not known.
        calls: How often it was called.
        where: The operators it computes, with the user's lines.
        dtype: dtype of its result.
    """

    name: str
    seconds: float
    bytes: int
    flops: float | None = None
    calls: int = 1
    where: str = ""
    dtype: str = "float32"

    @property
    def gflops(self) -> float | None:
        """Achieved arithmetic in GFLOP/s, None if its operations are not known."""
        return None if self.flops is None else self.flops / max(self.seconds, 1e-12) / 1e9

    @property
    def gbps(self) -> float:
        """Achieved traffic in GB/s; above the machine's bandwidth when data stays in caches."""
        return self.bytes / max(self.seconds, 1e-12) / 1e9


@dataclass(frozen=True)
class Memory:
    """Bytes of one call.

    Attributes:
        arguments: Inputs and parameters.
        planned: Storage that the memory plan asks for: results and intermediate values, which
            share it when they do not live at the same time.
        unplanned: The same if every value had storage of its own.
    """

    arguments: int = 0
    planned: int = 0
    unplanned: int = 0

    @property
    def peak(self) -> int:
        """The most that the call's tensors take at a time."""
        return self.arguments + self.planned

    def __str__(self) -> str:
        mib = 2**20
        return (
            f"peak {self.peak / mib:.2f} MiB: arguments {self.arguments / mib:.2f} MiB, planned "
            f"{self.planned / mib:.2f} MiB ({self.unplanned / mib:.2f} MiB without sharing)"
        )


@dataclass(frozen=True)
class Profile:
    """What one call took.

    Attributes:
        name: The graph's name.
        kernels: Every kernel in the order of the call.
        seconds: Wall time of the call without instruments.
        path: How the graph runs.
        memory: What its tensors take.
        peaks: What the machine can do.
        events: One instrumented call as a timeline, see :class:`~tvmgraph.debug.recorder.Event`.
    """

    name: str
    kernels: tuple[KernelTime, ...]
    seconds: float
    path: str
    memory: Memory = Memory()
    peaks: Peaks | None = None
    events: tuple[Event, ...] = field(default=(), repr=False)

    @property
    def kernel_seconds(self) -> float:
        """Time in kernels."""
        return sum(k.seconds for k in self.kernels)

    @property
    def overhead_seconds(self) -> float:
        """Time of the call outside of kernels: arguments, allocation, the calls themselves."""
        return max(0.0, self.seconds - self.kernel_seconds)

    def table(self, width: int = 120, limit: int | None = None) -> str:
        """Returns a table with one line per kernel.

        Args:
            width: Characters of a line.
            limit: Show only this many kernels, the longest first; all in order by default.
        """
        from tvmgraph.debug.report import as_text, profile_table

        return as_text(profile_table(self, limit), width)

    def html(self) -> str:
        """Returns a page of its own with the table and a timeline."""
        from tvmgraph.debug.report_page import profile_page

        return profile_page(self)

    def trace(self) -> dict[str, object]:
        """Returns one call as a Chrome trace, which Perfetto and chrome://tracing open."""
        from tvmgraph.debug.recorder import chrome_trace

        return chrome_trace(self.events)

    def save(self, path: str | Path) -> Path:
        """Writes ``.html`` (the page), ``.json`` (the Chrome trace), ``.csv`` or ``.txt``.

        Args:
            path: The file, whose suffix is the format.

        Raises:
            ArgumentError: for another suffix.
        """
        from tvmgraph.debug.report import write_profile

        path = Path(path)
        if path.suffix not in (".html", ".json", ".csv", ".txt"):
            reject(ArgumentError, "Profile.save",
                   f"a profile cannot be written as {path.suffix or path.name!r}",
                   fix="use .html, .json (a trace for Perfetto), .csv or .txt")  # fmt: skip
        return write_profile(self, path)

    def __str__(self) -> str:
        return self.table()

    def __rich__(self) -> Group:
        from tvmgraph.debug.report import profile_table

        return profile_table(self)

    def _repr_html_(self) -> str:
        from tvmgraph.debug.report_page import profile_fragment

        return profile_fragment(self)


def merged(kernels: Sequence[KernelTime]) -> tuple[KernelTime, ...]:
    """Adds up the calls of every kernel that computes the same; the longest first.

    Args:
        kernels: The calls.
    """
    found: dict[tuple[str, str], KernelTime] = {}
    for k in kernels:
        key = (k.name, k.where)  # kernels of different graphs may have one name
        known = found.get(key)
        if known is None:
            found[key] = k
            continue
        both = None if known.flops is None or k.flops is None else known.flops + k.flops
        found[key] = replace(
            known, seconds=known.seconds + k.seconds, bytes=known.bytes + k.bytes, flops=both,
            calls=known.calls + k.calls,
        )  # fmt: skip
    return tuple(sorted(found.values(), key=lambda k: -k.seconds))
