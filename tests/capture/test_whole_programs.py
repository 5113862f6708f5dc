"""Whole programs of users: eager = LAX = PIJit, with most of their operators compiled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.any_python import seen
from tests.capture.test_fuzz import assert_same, in_numpy
from tests.capture.whole_programs import PROGRAMS
from tvmgraph import jit
from tvmgraph.core import dispatch

#: The least share of a program's operators that runs compiled. The optimizer of the training script
#: is not wrapped.
SHARES = {
    "training_script": 0.55, "beam_search": 0.8, "dynamic_recurrence": 0.95, "detection": 0.95,
    "tokenizer_loop": 0.8, "rollout": 0.85,
}  # fmt: skip


class Eager:
    """Counts operators that run eagerly."""

    def __init__(self, monkeypatch: Any) -> None:
        self.count = 0
        run = dispatch._run_eager

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return run(*args, **kwargs)

        monkeypatch.setattr(dispatch, "_run_eager", counted)

    def of(self, program: Any, wrap: Any) -> tuple[Any, int]:
        """Returns a program's result and how many operators ran eagerly."""
        before = self.count
        return seen(program(wrap)), self.count - before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_whole_programs_equal_eager_and_are_compiled(
    name: str, monkeypatch: Any, record_property: Any
) -> None:
    eager = Eager(monkeypatch)
    with in_numpy():
        expected, operators = eager.of(PROGRAMS[name], lambda f: f)
        for mode in ("PSJit", "PIJit"):
            found, left = eager.of(PROGRAMS[name], lambda f, mode=mode: jit(f, mode=mode))
            assert_same(expected, found, f"{name}, {mode}")
            share = 1 - left / operators
            record_property(mode, round(share, 3))
            assert share >= SHARES[name], f"{name}, {mode}: {left} of {operators} ran eagerly"
