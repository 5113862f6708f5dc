"""``tvmgraph cache``: the executables kept on disk."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from tvmgraph.cli.options import print_json
from tvmgraph.compiler.cache import disk
from tvmgraph.compiler.tuning import database as tuning


@dataclass(frozen=True)
class CacheInfo:
    """Where executables are kept, how many, their size and its limit."""

    folder: str
    executables: int
    kernels: int
    prepared_weights: int
    bytes: int
    limit_bytes: int
    searched_kernels: int
    searched_folder: str
    linker: tuple[str, ...] | None
    off_because: str | None


def info() -> CacheInfo:
    """Asks the disk and the database of measurements."""
    usage = disk.store().usage()
    return CacheInfo(
        folder=str(disk.folder()),
        executables=usage.executables,
        kernels=usage.kernels,
        prepared_weights=usage.weights,
        bytes=usage.bytes,
        limit_bytes=disk.limit(),
        searched_kernels=len(tuning.records()),
        searched_folder=str(tuning.folder()),
        linker=disk.linker(),
        off_because=disk.why_not(),
    )


def show_info(as_json: bool = False) -> None:
    """Prints :func:`info`.

    Args:
        as_json: Whether it is printed as JSON.
    """
    found = info()
    if as_json:
        print_json(asdict(found))
        return
    table = Table("what", "value", show_header=False)
    table.add_row("folder", found.folder)
    table.add_row("executables", str(found.executables))
    table.add_row("kernels", str(found.kernels))
    table.add_row("prepared weights", str(found.prepared_weights))
    table.add_row("size", f"{found.bytes / 2**20:.1f} MiB of {found.limit_bytes >> 20} MiB")
    table.add_row("searched kernels", f"{found.searched_kernels} in {found.searched_folder}")
    table.add_row("linker", " ".join(found.linker or ("none",)))
    table.add_row("state", found.off_because or "on")
    Console().print(table)


def show_kernels(as_json: bool = False) -> None:
    """Prints what the search of O3 found for every kernel.

    Args:
        as_json: Whether it is printed as JSON.
    """
    records = list(tuning.records())
    if as_json:
        print_json([
            {"kernel": r.kernel, "threads": r.threads, "decisions": dict(r.decisions),
             "us": r.best_us, "us_before": r.default_us, "tried": r.trials}
            for r in records
        ])  # fmt: skip
        return
    table = Table(
        "kernel", "threads", "decided otherwise than the model", "us", "instead of", "tried"
    )
    for r in records:
        decided = ", ".join(f"{name}: {value}" for name, value in r.decisions.items())
        times = (f"{r.best_us:.1f}", f"{r.default_us:.1f}")
        table.add_row(r.kernel, str(r.threads), decided or "nothing", *times, str(r.trials))
    Console().print(table)


def clear_all(as_json: bool = False) -> None:
    """Deletes every executable and kernel and all prepared weights and says how much that was.

    Args:
        as_json: Whether it is printed as JSON.
    """
    usage = disk.store().clear()
    found = {
        "executables": usage.executables, "kernels": usage.kernels,
        "prepared_weights": usage.weights,
    }  # fmt: skip
    if as_json:
        print_json({**found, "bytes": usage.bytes})
        return
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found.items())
    print(f"deleted {counts}, {usage.bytes / 2**20:.1f} MiB")
