"""Random programs of any Python run with graph breaks exactly as in plain Python."""

from __future__ import annotations

import os

import pytest

from tests.capture import any_programs
from tests.capture.any_python import run_many

COUNT = int(os.environ.get("TVMGRAPH_FUZZ_ANY", "500"))
STEP = 125
#: Programs beyond those in which something differed once.
MENDED = (1000620, 1000707, 1052569)


@pytest.mark.parametrize("start", range(0, COUNT, STEP))
def test_programs_of_any_python_equal_plain_python(start: int) -> None:
    found = run_many(range(start, start + STEP))
    assert not found.differences, "\n\n".join(found.differences.values())
    assert found.broken > STEP // 2  # otherwise the programs prove nothing about graph breaks
    assert found.operators > STEP


def test_programs_that_differed_once_do_not() -> None:
    found = run_many(MENDED)
    assert not found.differences, "\n\n".join(found.differences.values())


def test_programs_use_every_feature() -> None:
    used: set[str] = set()
    for seed in range(2 * len(any_programs.FEATURES)):
        program = any_programs.AnyProgram(seed)
        compile(program.source(), "<program>", "exec")
        used |= program.used
    assert used == set(any_programs.FEATURES)
