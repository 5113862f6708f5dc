"""The programs of :mod:`tests.capture.graph_mode_programs`: eager, LAX and strict code agree."""

from __future__ import annotations

import linecache
import sys
import types
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.capture.graph_mode_programs import ARGUMENTS, CELLS, PRELUDE, PROGRAMS, REFUSED
from tests.capture.test_fuzz import assert_same, plain
from tvmgraph import Tensor, jit
from tvmgraph.errors import CaptureError

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 1
LEVELS = ("LAX", "STRICT")


def _module(about: str) -> dict[str, Any]:
    source = PRELUDE + "\n\n" + PROGRAMS.get(about, "")
    name = f"graph_mode_{about.replace(' ', '_')}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = sys.modules[name] = types.ModuleType(name)  # dataclasses ask for it
    exec(compile(source, name, "exec"), module.__dict__)
    return module.__dict__


def _seen(value: Any) -> Any:
    fields = vars(value) if type(value).__name__ == "D" else value
    return plain(fields)


def _observed(function: Any, about: str, scope: dict[str, Any]) -> list[Any]:
    """Results, or exceptions, of three calls."""
    found = []
    for x in (X, -X, X):
        args = eval(ARGUMENTS.get(about, "(x,)"), scope, {"x": Tensor(x)})
        try:
            found.append(_seen(function(*args)))
        except (ValueError, AssertionError) as e:
            if isinstance(e, CaptureError):
                raise
            found.append([type(e).__name__, str(e)])
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("about", PROGRAMS)
def test_program_equals_eager(about: str, level: str) -> None:
    """Results, exceptions and their order are those of eager code."""
    scope = _module(about)
    run = jit(scope["f"], jit_config=ms.JitConfig(jit_syntax_level=level))
    if level == "STRICT" and about in REFUSED:
        with pytest.raises(CaptureError) as info:
            _observed(run, about, scope)
        assert REFUSED[about] in str(info.value) and "fix: " in str(info.value)
        return
    assert_same(_observed(scope["f"], about, scope), _observed(run, about, scope), about)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("about", CELLS)
def test_cell_equals_eager(about: str, level: str) -> None:
    """So are the attributes and Parameters that a Cell has afterwards."""
    scope = _module(about)
    nets = [scope[CELLS[about]]() for _ in range(2)]
    config = ms.JitConfig(jit_syntax_level=level)
    results = [_observed(f, about, scope) for f in (nets[0], jit(nets[1], jit_config=config))]
    assert_same(results[0], results[1], about)
    states = [plain([n.w.value(), n.c.value(), n.k, n.last]) for n in nets]
    assert_same(states[0], states[1], about)
