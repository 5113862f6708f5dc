"""Random programs over the operator table give the same in every way that they can run.

What runs in NumPy (eager, captured, rewritten, differentiated, through ONNX and text) are other
programs in every run. What is compiled are the same ones, unless ``TVMGRAPH_FUZZ_SEED=fresh``: of a
thousand fresh compiled ones about one still showed something, so that a run of 300 would fail for
no change of its own. A failure prints the seed with the least program that still fails; again with
``TVMGRAPH_FUZZ_SEED=<seed>``.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

import numpy as np
import pytest

from tests.fuzz import coverage
from tests.fuzz.campaign import BATCH, WAYS, Way, generated, report, run_batch
from tests.fuzz.generate import Generator
from tests.fuzz.programs import TEMPLATES
from tvmgraph.passes import rules

#: Batches of a run: 300 programs, and half as many that are compiled.
BATCHES = 12
COMPILED = BATCH // 2
#: Programs that are compiled at O3, which measures several kernels of each.
MEASURED = 4
_GIVEN = os.environ.get("TVMGRAPH_FUZZ_SEED", "")
FRESH = int(_GIVEN) if _GIVEN.isdigit() else secrets.randbelow(10**9) * BATCH
SEED = FRESH if _GIVEN else 0


def check(seed: int, number: int, way: Way | None) -> None:
    first = seed + number * BATCH
    count = BATCH if way is None else MEASURED if way.level == "O3" else COMPILED
    findings = run_batch(map(generated, range(first, first + count)), way)
    if findings:
        rest = "\n".join(f"also seed {f.seed}: {f.kind}: {f.text}" for f in findings[1:])
        pytest.fail(f"TVMGRAPH_FUZZ_SEED={seed}, {report(findings[0], way)}\n{rest}")


@pytest.mark.parametrize("number", range(BATCHES))
def test_fresh_programs(number: int) -> None:
    check(FRESH, number, None)


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_compiled_programs(number: int) -> None:
    check(SEED, number, WAYS[number])


def test_a_seed_gives_one_program() -> None:
    a, b = generated(7), generated(7)
    assert a.source() == b.source()
    assert all(np.array_equal(a.inputs[n], b.inputs[n], equal_nan=True) for n in a.inputs)


def test_a_program_that_only_writes_has_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Generator(0)
    p = generator.weight(3)
    monkeypatch.setattr(generator, "given", lambda *_, **__: p)
    monkeypatch.setattr(generator, "step", lambda: generator.attempt(f"{p} *= 2", (p,), (p,)))
    program = generator.run()
    assert not program.inputs and program.steps
    (result,) = program.net()()
    assert result.shape == (3,)


def test_no_search_is_for_more_pairs_than_memory_holds() -> None:
    """ONNX's form compares every value with every element, which may take gigabytes."""
    generator, case = Generator(1, large=True), TEMPLATES["search_sorted"][0]
    few, many = (generator.given(np.zeros(n, np.float32), True) for n in (1 << 10, 1 << 17))
    assert generator.call(case, (few, few))
    assert not generator.call(case, (many, many))


# ---- what the programs reach --------------------------------------------------------------------


@pytest.fixture(scope="module")
def graphs() -> list[Any]:
    """The graphs of some programs that are the same every time."""
    return coverage.graphs()


def test_every_row_is_used() -> None:
    missed = set(TEMPLATES) - set(coverage.rows())
    assert not missed, f"never used: {sorted(missed)}"


def test_every_rule_fires(graphs: list[Any]) -> None:
    counts = coverage.fired(graphs)
    missed = [r for r in rules.RULES if not counts[r] and r != "part_of_complex"]
    assert not missed, f"the rules: {dict(counts)}"  # the programs hold real numbers


def test_every_decision_is_made(graphs: list[Any]) -> None:
    counts = coverage.decided(graphs)
    assert not [d for d in coverage.DECISIONS if not counts[d]], f"the decisions: {dict(counts)}"


def test_programs_reach_the_kernels_that_they_are_aimed_at() -> None:
    counts = coverage.aimed_at()
    assert not [k for k in coverage.AIMED_AT if not counts[k]], f"the kernels: {dict(counts)}"


def test_large_programs_reach_parallel_kernels() -> None:
    counts = coverage.parallel(coverage.large_graphs())
    assert not [k for k in coverage.PARALLEL if not counts[k]], f"the kernels: {dict(counts)}"


def test_a_large_program_is_shown_without_its_elements() -> None:
    program = next(p for p in map(generated, range(3, 100, 10)) if p.inputs)
    text = program.script()
    assert f"generated({program.seed}).all()[" in text and len(text) < 100_000
