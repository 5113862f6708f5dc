"""``tvmgraph check``: conformance of compiled operators on the user's own machine."""

from __future__ import annotations

from rich.console import Console
from rich.progress import track

from tvmgraph.testing.conformance import run_case
from tvmgraph.testing.samples import all_cases, has_column


def run_check(name: str = "") -> bool:
    """Checks every sample whose operator contains ``name``; returns whether all agree."""
    console = Console()
    cases = [c for c in all_cases() if name in c.op.name and has_column(c.op, "lower")]
    failures: list[tuple[str, str]] = []
    for case in track(cases, "checking", console=console):
        problem = run_case(case)
        if problem is not None:
            failures.append((case.name, problem))
    for label, problem in failures:
        console.print(f"[red]{label}[/]: {problem}")
    console.print(f"{len(cases) - len(failures)} of {len(cases)} samples agree with NumPy")
    return bool(cases) and not failures
