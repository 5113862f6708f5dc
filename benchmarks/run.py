"""Command line of the benchmarks: ``python -m benchmarks.run``."""

import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.kernel_rows import SHAPES
from benchmarks.measure import RESTRICTIONS, Coordinator, RowTimings, busy_processes
from benchmarks.peers import OURS, PEERS
from benchmarks.report import format_seconds, machine_description, processor_class, render
from benchmarks.results import AVX512, Results, Row
from benchmarks.rows import GROUPS, ROWS

app = typer.Typer(add_completion=False)
#: Frameworks of the table of GFLOP/s by shape, and seconds of one of its samples by threads: while
#: two run, other work must leave both cores alone.
RATED, _SHORT_SECONDS = (OURS, "torch"), {1: 0.02, 2: 0.002}

Rows = Annotated[
    str,
    typer.Option(help=f"Comma-separated groups ({', '.join(GROUPS)}) or rows ({', '.join(ROWS)})."),
]
Peers = Annotated[str, typer.Option(help=f"Comma-separated frameworks: {', '.join(PEERS)}.")]
Out = Annotated[Path | None, typer.Option(help="Markdown file to write; none prints only.")]
Data = Annotated[
    Path | None,
    typer.Option(help="JSON file of results: rows measured now replace those in it, others stay."),
]
Repeats = Annotated[int, typer.Option(min=1, help="Samples per framework and row.")]
Threads = Annotated[int, typer.Option(min=1, help="Threads per framework.")]
Quiet = Annotated[
    float, typer.Option(min=0.0, help="Retake samples while others use more than this many cores.")
]
Cpu = Annotated[
    str,
    typer.Option(
        help="Processor whose instructions all frameworks do with, instead of those of this one: "
        f"{', '.join(RESTRICTIONS)}. The results go into a section of their own."
    ),
]
Neighbours = Annotated[
    int,
    typer.Option(min=0, help="Other processes that compute all the time; a section of its own."),
]
Rates = Annotated[
    bool,
    typer.Option(
        "--rates", help="Only the table of GFLOP/s by shape: tvmgraph and PyTorch on one and two "
        "threads, with all instructions and with those of lesser processors.",
    ),
]  # fmt: skip
Pythons = Annotated[
    list[str] | None,
    typer.Option("--python", help="PEER=INTERPRETER, or INTERPRETER for all; repeatable."),
]


def select(text: str, known: dict[str, object], what: str) -> list[str]:
    """Split a comma-separated list and reject names that do not exist."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"unknown {what} {unknown}; known: {', '.join(known)}")
    return names or list(known)


def interpreters(options: list[str], peers: list[str]) -> dict[str, str]:
    """Map each peer to the interpreter that runs it.

    Args:
        options: Values of ``--python``. ``torch=...`` also serves ``torch-compile`` unless that
            is named itself, because both need the same package.
        peers: Selected peers.

    Returns:
        One interpreter per peer.
    """
    default, chosen = sys.executable, dict[str, str]()
    for option in options:
        name, found, path = option.partition("=")
        if not found:
            default = option
        elif name not in PEERS:
            raise typer.BadParameter(f"unknown peer {name!r}; known: {', '.join(PEERS)}")
        else:
            chosen[name] = path
    return {p: chosen.get(p) or chosen.get(PEERS[p].package) or default for p in peers}


def _log(text: str) -> None:
    typer.echo(text, err=True)


def _print_row(row: str, timings: RowTimings) -> None:
    for name, timing in timings.items():
        if timing.samples:
            text = f"{format_seconds(timing.median):>10} {format_seconds(timing.minimum):>10}"
        else:
            text = timing.note
        typer.echo(f"{row:12s} {name:18s} {text}")


@app.command()
def main(
    rows: Rows = "",
    peers: Peers = "",
    out: Out = None,
    data: Data = None,
    repeats: Repeats = 15,
    threads: Threads = 2,
    quiet: Quiet = 0.15,
    cpu: Cpu = "",
    neighbours: Neighbours = 0,
    rates: Rates = False,
    python: Pythons = None,
) -> None:
    """Measure tvmgraph and its peers, interleaved, and write the report."""
    report = Results.load(data) if data is not None else Results()

    def save() -> None:
        if data is not None:
            report.save(data)

    if rates:
        _measure_rates(report, interpreters(python or [], list(RATED)), repeats, save)
        _write(report, out)
        return
    named = select(rows, {**GROUPS, **ROWS}, "row") if rows else list(GROUPS)
    row_names = list(dict.fromkeys(row for name in named for row in GROUPS.get(name, [name])))
    peer_names = select(peers, dict(PEERS), "peer")
    if cpu:
        select(cpu, dict(RESTRICTIONS), "processor")
    machine = machine_description(threads, cpu)
    pythons = interpreters(python or [], peer_names)
    if cpu and neighbours:
        raise typer.BadParameter("measure --neighbours without --cpu")
    coordinator = Coordinator(
        peer_names, pythons, threads, math.inf if neighbours else quiet, _log, cpu
    )
    results = report
    kept = processor_class(cpu)
    if kept != AVX512 or neighbours:
        part, key = (report.busy, str(neighbours)) if neighbours else (report.cpus, kept)
        results = part.setdefault(key, Results())
    results.machine, results.info = machine, results.info | coordinator.info
    try:
        if not cpu and not neighbours:  # what is found is remembered as this processor's own
            results.peaks = coordinator.peaks() or results.peaks
        with busy_processes(neighbours):
            _measure(coordinator, results, row_names, repeats, save)
    finally:
        coordinator.close()
    _write(report, out)


def _measure(
    coordinator: Coordinator,
    results: Results,
    rows: list[str],
    repeats: int,
    save: Callable[[], None],
) -> None:
    for row in rows:
        _log(row)
        timings = coordinator.measure(row, repeats)
        facts = coordinator.facts.get(row, {"title": row, "flops": 0, "bytes": 0})
        results.rows[row] = Row(**facts, timings=timings)
        _print_row(row, timings)
        save()


def _measure_rates(
    report: Results, pythons: dict[str, str], repeats: int, save: Callable[[], None]
) -> None:
    """Measure products by shape; the fastest of many short samples counts, so none is retaken."""
    rows = [row for pair in SHAPES.values() for row in pair]
    for cpu, threads in itertools.product(("", *RESTRICTIONS), _SHORT_SECONDS):
        results = report.rates[f"{cpu or 'host'}, {threads}"] = Results()
        results.machine = machine_description(threads, cpu)
        coordinator = Coordinator(
            RATED, pythons, threads, math.inf, _log, cpu, sample=_SHORT_SECONDS[threads]
        )
        try:
            results.peaks = {} if cpu else coordinator.peaks()
            _measure(coordinator, results, rows, repeats, save)
        finally:
            coordinator.close()


def _write(report: Results, out: Path | None) -> None:
    if out is None:
        return
    for part in (report, *report.cpus.values(), *report.busy.values()):
        part.rows = {row: part.rows[row] for row in ROWS if row in part.rows}
    out.write_text(render(report))
    _log(f"wrote {out}")


if __name__ == "__main__":
    app()
