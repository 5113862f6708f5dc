"""``tvmgraph check`` and ``tvmgraph doctor``: what ends or stops a process is one failure."""

from __future__ import annotations

import sys

import pytest

from tvmgraph.compiler.measuring.host import describe_host, processor_class
from tvmgraph.testing.isolated import Isolated
from tvmgraph.testing.samples import Case, all_cases, has_column

#: A worker whose compiler aborts at one operator, before anything runs; running another crashes, a
#: third one never ends, and a fourth differs.
_PLANTED = """
import json, os, sys, time
names = json.load(sys.stdin)["cases"]
if any(name.startswith("sinh") for name in names):
    print("LLVM ERROR: planted", file=sys.stderr, flush=True)
    os.abort()
for name in names:
    if name.startswith("cosh"):
        os.kill(os.getpid(), 11)
    if name.startswith("asinh"):
        time.sleep(1000)
    print(json.dumps([name, "planted" if name.startswith("atanh") else None]), flush=True)
"""


def test_crashes_and_hangs_are_failures_of_one_operator() -> None:
    names = ("abs", "asinh", "atanh", "cosh", "sinh")
    cases = [c for c in all_cases() if c.op.name in names and has_column(c.op, "lower")]
    cases = [c for c in cases if c.index < (1 if c.op.name == "asinh" else 2)]
    found: dict[str, str | None] = {}

    def report(case: Case, problem: str | None) -> None:
        assert case.name not in found
        found[case.name] = problem

    how = Isolated(level="O1", limit=5.0, command=(sys.executable, "-c", _PLANTED))
    how.check(cases, report)
    assert set(found) == {c.name for c in cases}
    failed = {name: problem for name, problem in found.items() if problem is not None}
    why = {
        "asinh": "it took more than 5 s",
        "atanh": "planted",
        "cosh": "the process was ended by SIGSEGV",
        "sinh": "the process was ended by SIGABRT: LLVM ERROR: planted",
    }
    assert failed == {c.name: why[c.op.name] for c in cases if c.op.name in why}


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
