"""``tvmgraph check``: conformance of compiled operators on the user's own machine."""

from __future__ import annotations

import threading

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tvmgraph.cli.options import print_json
from tvmgraph.compiler.library import describe_target
from tvmgraph.config import JitConfig
from tvmgraph.errors import NotFoundError
from tvmgraph.machine.processor import missing_features
from tvmgraph.runtime import host
from tvmgraph.testing.isolated import Isolated
from tvmgraph.testing.samples import Case, all_cases, has_column


def run_check(
    name: str = "", target: str = "host", level: str = "O2", as_json: bool = False
) -> bool:
    """Checks every sample whose operator contains ``name``; returns whether all agree.

    Samples are compiled and run in other processes: an operator that ends one, or never ends, is a
    failure like any other, and the rest is checked all the same.

    Args:
        name: Part of an operator's name.
        target: A name from ``configs/targets.toml``.
        level: ``"O0"`` to ``"O3"``.
        as_json: Print JSON.

    Raises:
        NotFoundError: if no operator has such a name.
        ArgumentError: for an unknown target.
        ConfigError: for an unknown level.
    """
    JitConfig(jit_level=level, options={"target": target})
    runs = _runs_here(target)
    cases = [c for c in all_cases() if name in c.op.name and has_column(c.op, "lower")]
    if not cases:
        raise NotFoundError(f"no operator is called like {name!r}", op="tvmgraph check",
                            fix="`tvmgraph ops` lists them")  # fmt: skip
    failures = _failures(cases, Isolated(target, level, runs))
    if as_json:
        told = [{"sample": label, "problem": problem} for label, problem in failures]
        print_json({"target": target, "level": level, "ran": runs, "samples": len(cases),
                    "failures": told})  # fmt: skip
        return not failures
    console = Console()
    for label, problem in failures:
        console.print(f"[red]{label}[/]: {problem}", highlight=False)
    what = "agree with NumPy" if runs else f"compile for {target}, which this machine cannot run"
    console.print(f"{len(cases) - len(failures)} of {len(cases)} samples {what}")
    return not failures


def _failures(cases: list[Case], how: Isolated) -> list[tuple[str, str]]:
    """Names of the samples that fail, with the reasons, while a bar shows how far it got."""
    failures: list[tuple[str, str]] = []
    lock = threading.Lock()
    columns = (
        TextColumn("checking {task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(cases))

        def report(case: Case, problem: str | None) -> None:
            with lock:
                progress.update(bar, advance=1, description=case.op.name)
                if problem is not None:
                    failures.append((case.name, problem))

        how.check(cases, report)
    return sorted(failures)


def _runs_here(target: str) -> bool:
    """Whether this machine can run what is compiled for a target."""
    arch, system, features = describe_target(target)
    same = (arch, system) == (host.architecture(), host.system())
    return same and not missing_features(features)
