"""Random programs over the operator table give the same in every way that they can run.

The same programs every time; ``TVMGRAPH_FUZZ_SEED=fresh`` makes others. A failure prints the seed
with the least program that still fails; again with ``TVMGRAPH_FUZZ_SEED=<seed>``.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

import numpy as np
import pytest

from tests.fuzz import coverage
from tests.fuzz.campaign import BATCH, WAYS, generated, report, run_batch
from tests.fuzz.programs import TEMPLATES
from tvmgraph.graph import rules

#: Batches of a run: 300 programs, every way to compile at least once.
BATCHES = 12
_GIVEN = os.environ.get("TVMGRAPH_FUZZ_SEED", "0")
SEED = secrets.randbelow(10**9) * BATCH if _GIVEN == "fresh" else int(_GIVEN)


@pytest.mark.parametrize("number", range(BATCHES))
def test_random_programs(number: int) -> None:
    way = WAYS[number % len(WAYS)]
    first = SEED + number * BATCH
    findings = run_batch(map(generated, range(first, first + BATCH)), way)
    if findings:
        rest = "\n".join(f"also seed {f.seed}: {f.kind}: {f.text}" for f in findings[1:])
        pytest.fail(f"TVMGRAPH_FUZZ_SEED={SEED}, {report(findings[0], way)}\n{rest}")


def test_a_seed_gives_one_program() -> None:
    a, b = generated(7), generated(7)
    assert a.source() == b.source()
    assert all(np.array_equal(a.inputs[n], b.inputs[n], equal_nan=True) for n in a.inputs)


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
    assert not [r for r in rules.RULES if not counts[r]], f"the rules: {dict(counts)}"


def test_every_decision_is_made(graphs: list[Any]) -> None:
    counts = coverage.decided(graphs)
    assert not [d for d in coverage.DECISIONS if not counts[d]], f"the decisions: {dict(counts)}"
