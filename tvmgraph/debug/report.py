"""Profiles for people at a terminal: tables by rich, and the files a profile is written to."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tvmgraph.core.notebook import size
from tvmgraph.debug.dump import write_atomically
from tvmgraph.debug.profile import KernelTime, Peaks, Profile
from tvmgraph.debug.recorder import trace_text

_NAME = 40  # characters of a kernel's name in a table; a fused kernel is named after all it does
_RESOLUTION = 1e-7  # seconds; rates of shorter calls would be noise of the clock
_NUMBERS = {"us": 9, "share": 6, "calls": 5, "GFLOP/s": 7, "of peak": 7, "GB/s": 6, "of memory": 9}


def as_text(renderable: RenderableType, width: int = 120) -> str:
    """Returns what rich prints, without colours.

    Args:
        renderable: What is printed.
        width: Characters per line.
    """
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, force_terminal=False).print(renderable)
    return out.getvalue().rstrip()


def profile_table(profile: Profile, limit: int | None = None) -> Group:
    """Returns the table of one call.

    Args:
        profile: The profile.
        limit: Show only this many kernels, the longest first; all in order by default.
    """
    total = max(profile.seconds, profile.kernel_seconds, 1e-12)
    rows = list(profile.kernels)
    if limit is not None and len(rows) > limit:
        rows = sorted(rows, key=lambda k: -k.seconds)[:limit]
    table = kernel_table(rows, total, profile.peaks, f"{profile.name}: one call")
    if len(rows) < len(profile.kernels):
        rest = profile.kernel_seconds - sum(k.seconds for k in rows)
        table.add_row(f"{len(profile.kernels) - len(rows)} shorter kernels", micro(rest),
                      share(rest, total))  # fmt: skip
    spent = profile.overhead_seconds
    table.add_section()
    table.add_row("overhead of the host", micro(spent), share(spent, total))
    table.add_row("call", micro(profile.seconds), "100.0%")
    m = profile.memory
    lines = [f"runs as: {profile.path}"]
    if m.peak:
        lines.append(
            f"memory: {size(m.arguments)} arguments, {size(m.planned)} planned for other values "
            f"({size(m.unplanned)} unshared), peak {size(m.peak)}"
        )
    if profile.peaks is not None:
        lines.append(f"machine: {profile.peaks}")
    return Group(table, Text("\n".join(lines)))


def kernel_table(
    rows: Sequence[KernelTime], total: float, peaks: Peaks | None, title: str
) -> Table:
    """Returns a table of kernels or operators.

    Args:
        rows: What to show.
        total: Seconds that shares refer to.
        peaks: What rates are compared with.
        title: Heading.
    """
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("kernel", no_wrap=True)
    for name, width in _NUMBERS.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    table.add_column("computes", no_wrap=True, overflow="ellipsis")
    for k in rows:
        table.add_row(
            shortened(k.name), micro(k.seconds), share(k.seconds, total), str(k.calls),
            *rates(k, peaks), k.where,
        )  # fmt: skip
    return table


def rates(k: KernelTime, peaks: Peaks | None) -> tuple[str, str, str, str]:
    """GFLOP/s and GB/s of a kernel, each followed by its part of the machine's peak.

    Args:
        k: The kernel with its time.
        peaks: What the machine can do at most; parts are left out without.
    """
    if k.seconds < k.calls * _RESOLUTION:
        return "", "", "", ""
    known = k.gflops is not None and peaks is not None and peaks.flops(k.dtype) > 0
    return (
        "" if k.gflops is None else f"{k.gflops:.1f}",
        f"{k.gflops / peaks.flops(k.dtype):.0%}" if known else "",  # pyright: ignore
        f"{k.gbps:.1f}",
        "" if peaks is None or peaks.bandwidth <= 0 else f"{k.gbps / peaks.bandwidth:.0%}",
    )


def shortened(name: str) -> str:
    """Leaves out the middle of a long name.

    Args:
        name: The name.
    """
    half = (_NAME - 1) // 2
    return name if len(name) <= _NAME else f"{name[:half]}…{name[-half:]}"


def micro(seconds: float) -> str:
    """Seconds as microseconds.

    Args:
        seconds: Seconds.
    """
    return f"{seconds * 1e6:,.1f}"


def share(seconds: float, total: float) -> str:
    """A part of a total in per cent.

    Args:
        seconds: Seconds.
        total: Seconds of the whole.
    """
    return f"{seconds / max(total, 1e-12):.1%}"


def kernel_csv(rows: Sequence[KernelTime]) -> str:
    """Returns kernels as CSV, one line each.

    Args:
        rows: The kernels with their times.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["kernel", "calls", "seconds", "bytes", "flops", "gflops", "gbps", "computes"])
    for k in rows:
        writer.writerow([k.name, k.calls, k.seconds, k.bytes, k.flops, k.gflops, k.gbps, k.where])
    return out.getvalue()


def write_profile(profile: Profile, path: Path) -> Path:
    """Writes a profile in the format of the path's suffix.

    Args:
        profile: The profile.
        path: The file: ``.html``, ``.json``, ``.csv`` or ``.txt``.
    """
    write = {
        ".html": profile.html,
        ".json": lambda: trace_text(profile.events),
        ".csv": lambda: kernel_csv(profile.kernels),
        ".txt": profile.table,
    }[path.suffix]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path.absolute(), write() + ("" if path.suffix == ".csv" else "\n"))
    return path
