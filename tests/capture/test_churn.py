"""Arguments that differ at every call are left to Python, instead of captured every time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.capture.test_fuzz import in_numpy
from tvmgraph import JitConfig, Tensor, jit
from tvmgraph.jit import churn

CALLS = 60
#: A function, and its argument of a call.
DIFFERING: dict[str, tuple[Callable[..., Any], Callable[[int], Any]]] = {
    "an object made for the call": (lambda x, v: x * v.k, lambda i: SimpleNamespace(k=i)),
    "a function made for the call": (lambda x, v: v(x) + 1, lambda i: lambda t: t * i),
    "a string": (lambda x, v: x * len(v), lambda i: f"step {i}" + "s" * i),
    "an array": (lambda x, v: x * v, lambda i: np.array([i, 2], np.float32)),
    "a NumPy number": (lambda x, v: x * v, lambda i: np.float32(i)),
    "a list that grows": (lambda x, v: x * len(v), lambda i: [1] * i),
    "a set": (lambda x, v: x * len(v), lambda i: {i, 1}),
}


def _tensor() -> Tensor:
    return Tensor(np.array([1, 2], np.float32))


@pytest.mark.parametrize("name", DIFFERING)
def test_captures_end_where_every_call_needs_another(name: str) -> None:
    plain, make = DIFFERING[name]
    function = jit(plain)
    counts = []
    with in_numpy():
        for i in range(CALLS):
            value = make(i)
            expected = plain(_tensor(), value)
            np.testing.assert_allclose(function(_tensor(), value).asnumpy(), expected.asnumpy())
            counts.append(function.compile_count)
    assert 0 < counts[-1] == counts[-CALLS // 2] <= 25


def test_captures_that_serve_many_calls_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(churn, "_WORTH", 0)  # however fast the machine: one more call is many
    function = jit(lambda x, v: x * len(v))
    with in_numpy():
        for i in range(30):
            for _ in range(2):
                function(_tensor(), "s" * i)
    assert function.compile_count == 30


def test_a_number_of_shapes_is_no_churn() -> None:
    function = jit(lambda x: x.sum())
    with in_numpy():
        for rank in range(1, 6):
            for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8):
                function(Tensor(np.ones((2,) * rank, dtype)))
    assert function.churned is None


def test_strict_functions_are_captured_for_every_object() -> None:
    function = jit(lambda x, v: x * v.k, jit_config=JitConfig(jit_syntax_level="STRICT"))
    with in_numpy():
        for i in range(30):
            assert function(_tensor(), SimpleNamespace(k=i)).asnumpy()[0] == i
    assert function.compile_count == 30
