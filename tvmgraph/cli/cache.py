"""``tvmgraph cache``: the executables kept on disk."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.tuning import database as tuning


def show_info() -> None:
    """Prints where executables are kept, how many, their size and its limit."""
    usage = disk.store().usage()
    table = Table("what", "value", show_header=False)
    table.add_row("folder", str(disk.folder()))
    table.add_row("executables", str(usage.entries - usage.weights))
    table.add_row("prepared weights", str(usage.weights))
    table.add_row("size", f"{usage.bytes / 2**20:.1f} MiB of {disk.limit() >> 20} MiB")
    table.add_row("searched kernels", f"{len(tuning.records())} in {tuning.folder()}")
    table.add_row("linker", " ".join(disk.linker() or ("none",)))
    table.add_row("state", disk.why_not() or "on")
    Console().print(table)


def show_kernels() -> None:
    """Prints what the search of O3 found for every kernel."""
    table = Table(
        "kernel", "threads", "decided otherwise than the model", "us", "instead of", "tried"
    )
    for record in tuning.records():
        decided = ", ".join(f"{name}: {value}" for name, value in record.decisions.items())
        times = (f"{record.best_us:.1f}", f"{record.default_us:.1f}")
        table.add_row(
            record.kernel, str(record.threads), decided or "nothing", *times, str(record.trials)
        )
    Console().print(table)


def clear_all() -> None:
    """Deletes every executable and all prepared weights and says how much that was."""
    usage = disk.store().clear()
    executables = usage.entries - usage.weights
    size = f"{usage.bytes / 2**20:.1f} MiB"
    print(f"deleted {executables} executables, {usage.weights} prepared weights, {size}")
