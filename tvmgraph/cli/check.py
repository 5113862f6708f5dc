"""``tvmgraph check``: conformance of compiled operators on the user's own machine."""

from __future__ import annotations

from rich.console import Console
from rich.progress import track

from tvmgraph.compiler.library import describe_target
from tvmgraph.config import JitConfig
from tvmgraph.errors import NotFoundError
from tvmgraph.processor import missing_features
from tvmgraph.runtime import host
from tvmgraph.testing.conformance import compile_case, run_case
from tvmgraph.testing.samples import all_cases, has_column


def run_check(name: str = "", target: str = "host", level: str = "O2") -> bool:
    """Checks every sample whose operator contains ``name``; returns whether all agree.

    Args:
        name: Part of an operator's name.
        target: A name from ``configs/targets.toml``.
        level: ``"O0"`` to ``"O3"``.

    Raises:
        NotFoundError: if no operator has such a name.
        ArgumentError: for an unknown target.
        ConfigError: for an unknown level.
    """
    config = JitConfig(jit_level=level, options={"target": target})
    runs = _runs_here(target)
    console = Console()
    cases = [c for c in all_cases() if name in c.op.name and has_column(c.op, "lower")]
    if not cases:
        raise NotFoundError(f"no operator is called like {name!r}", op="tvmgraph check",
                            fix="`tvmgraph ops` lists them")  # fmt: skip
    failures: list[tuple[str, str]] = []
    for case in track(cases, "checking", console=Console(stderr=True)):
        problem = run_case(case, config) if runs else compile_case(case, config)
        if problem is not None:
            failures.append((case.name, problem))
    for label, problem in failures:
        console.print(f"[red]{label}[/]: {problem}", highlight=False)
    what = "agree with NumPy" if runs else f"compile for {target}, which this machine cannot run"
    console.print(f"{len(cases) - len(failures)} of {len(cases)} samples {what}")
    return not failures


def _runs_here(target: str) -> bool:
    """Whether this machine can run what is compiled for a target."""
    arch, system, features = describe_target(target)
    same = (arch, system) == (host.architecture(), host.system())
    return same and not missing_features(features)
