"""Every supported construct equals plain Python; every refused one explains itself."""

from __future__ import annotations

import contextlib
import io
import linecache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.capture.syntax_cases import REFUSED, SUPPORTED
from tests.capture.syntax_page import define, message, page
from tests.capture.test_fuzz import assert_same, plain
from tvmgraph import Tensor, jit
from tvmgraph.errors import CaptureError

INPUTS = ([0.5, 0.25], [-3.0, 1.0], [4.0, 3.0], [0.0, 0.0])
PAGE = Path(__file__).parents[2] / "docs" / "static_graph_syntax.md"


def observe(function: Any, values: list[float]) -> list[Any]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = plain(function(Tensor(np.array(values, np.float32))))
    return [result, out.getvalue()]


@pytest.mark.parametrize("name", SUPPORTED)
def test_supported_equals_python(name: str) -> None:
    function = define(name, SUPPORTED[name])
    compiled = jit(function)
    for values in INPUTS:
        assert_same(normal(observe(function, values)), normal(observe(compiled, values)), name)
    assert compiled.compile_count == 1


def normal(value: Any) -> Any:
    if isinstance(value, dict):
        return [list(value), *map(normal, map(plain, value.values()))]
    return [normal(v) for v in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", REFUSED)
def test_refused_names_line_and_remedy(name: str) -> None:
    text = message(name, REFUSED[name])
    assert "fix:" in text
    at = next(line for line in text.splitlines() if line.strip().startswith("at:"))
    assert name.replace(" ", "_")[:5] in at
    assert f"```\n{text}\n```" in PAGE.read_text()


def test_the_page_is_in_step() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.capture.syntax_page"


def test_error_points_at_the_expression() -> None:
    function = define("caret", "\ndef f(x):\n    y = x + 1\n    return eval('y')\n")
    with pytest.raises(CaptureError) as info:
        jit(function, fullgraph=True)(Tensor([1.0]))
    lines = str(info.value).splitlines()
    shown = next(i for i, line in enumerate(lines) if "return eval('y')" in line)
    start = lines[shown].index("eval('y')")
    assert lines[shown + 1] == " " * start + "^" * len("eval('y')")
    linecache.clearcache()
