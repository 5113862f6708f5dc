"""``tvmgraph check`` and ``tvmgraph doctor``: what ends or stops a process is one failure."""

from __future__ import annotations

import sys

import pytest

from tvmgraph.compiler.host import describe_host, processor_class
from tvmgraph.testing.isolated import Isolated
from tvmgraph.testing.samples import Case, all_cases, has_column

#: A worker in which the compiler aborts at one operator, running another crashes, and a third one
#: never ends.
_PLANTED = """
import faulthandler, os, time
import tvmgraph.testing.conformance as conformance
import tvmgraph.compiler as compiler
from tvmgraph.testing import isolated

compile_many, difference = compiler.compile_many, conformance._difference

def compile_planted(graphs, *rest):
    if any(g.name == "sinh" for g in graphs.values()):
        print("LLVM ERROR: planted", file=__import__("sys").stderr, flush=True)
        os.abort()
    return compile_many(graphs, *rest)

def run_planted(case, run):
    if case.op.name == "cosh":
        os.kill(os.getpid(), 11)
    if case.op.name == "asinh":
        time.sleep(1000)
    if case.op.name == "atanh":
        return "planted difference"
    return difference(case, run)

compiler.compile_many, conformance._difference = compile_planted, run_planted
isolated.work()
"""


def test_crashes_and_hangs_are_failures_of_one_operator() -> None:
    names = ("abs", "asinh", "atanh", "cosh", "sinh")
    cases = [c for c in all_cases() if c.op.name in names and has_column(c.op, "lower")]
    cases = [c for c in cases if c.index == 0]
    found: dict[str, str | None] = {}

    def report(case: Case, problem: str | None) -> None:
        assert case.name not in found
        found[case.name] = problem

    how = Isolated(level="O1", limit=30.0, command=(sys.executable, "-c", _PLANTED))
    how.check(cases, report)
    assert set(found) == {c.name for c in cases}
    failed = {name: problem for name, problem in found.items() if problem is not None}
    assert failed == {
        "asinh-0": "it took more than 30 s",
        "atanh-0": "planted difference",
        "cosh-0": "the process was ended by SIGSEGV",
        "sinh-0": "the process was ended by SIGABRT: LLVM ERROR: planted",
    }


@pytest.mark.parametrize(("arch", "features", "expected"), [
    ("x86_64", (), "x86-64"),
    ("x86_64", ("sse4.1", "sse4.2", "popcnt"), "x86-64-v2"),
    ("aarch64", ("neon",), "aarch64"),
    ("riscv64", (), "riscv64"),
])  # fmt: skip
def test_processor_classes(arch: str, features: tuple[str, ...], expected: str) -> None:
    name, note = processor_class(arch, frozenset(features))
    assert name == expected
    assert note
    assert describe_host()["processor class"].endswith(")")
