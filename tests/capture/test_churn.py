"""Arguments that differ at every call are left to Python, instead of captured every time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.capture.test_fuzz import in_numpy
from tvmgraph import JitConfig, Parameter, Tensor, jit, nn, ops
from tvmgraph.jit import JitFunction, churn
from tvmgraph.jit import function as function_module

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


class Scale(nn.Cell):
    def __init__(self, k: int) -> None:
        super().__init__()
        self.k, self.w = k, Parameter(Tensor([1.0, 2.0]), name="w")

    def construct(self, x: Tensor) -> Tensor:
        return x * self.w + self.k


class Scaled:
    def __init__(self, k: int) -> None:
        self.k = k

    @jit
    def run(self, x: Tensor) -> Tensor:
        return x * Tensor([1.0, 2.0]) + self.k


def _defined(k: int) -> JitFunction:
    return jit(lambda x: x * Tensor([1.0, 2.0]) + k)


def _decided(k: int) -> JitFunction:
    def function(x: Tensor) -> Tensor:
        return x * Tensor([1.0, 2.0]) + (k if x.sum() > 0 else x.sum().item())

    return jit(function)


#: What makes a compiled function for one call or a few.
SHORT_LIVED: dict[str, Callable[[int], Any]] = {
    "a Cell": lambda k: jit(Scale(k)),
    "a method": lambda k: Scaled(k).run,
    "a function that is defined inside another": _defined,
    "one with a graph break": _decided,
}


@pytest.mark.parametrize("name", SHORT_LIVED)
def test_functions_that_serve_one_call_each_are_left_to_python(name: str) -> None:
    with in_numpy():
        for k in range(CALLS):
            function = SHORT_LIVED[name](k)
            np.testing.assert_allclose(function(_tensor()).asnumpy(), [1 + k, 4 + k])
            captured = bool(function.history or function.refused)
            assert captured is (k < 24)
        assert "in Python: its first 1 call(s)" in function.explain()
        for _ in range(10):
            np.testing.assert_allclose(function(_tensor()).asnumpy(), [1 + k, 4 + k])
        assert function.history or function.refused


def test_functions_that_serve_many_calls_each_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(churn, "_WORTH", 0)
    with in_numpy():
        for k in range(CALLS):
            function = _defined(k)
            for _ in range(3):
                function(_tensor())
            assert function.compile_count == 1


@pytest.mark.parametrize("functions", [[ops.exp], [ops.abs, ops.exp, ops.sin]])
def test_functions_of_one_definition_that_compute_other_things_are_captured(
    functions: list[Callable[..., Any]],
) -> None:
    with in_numpy():
        for k in range(CALLS):
            inner, x = functions[k % len(functions)], Tensor(np.ones(k // len(functions) + 1, "f"))
            function = jit(lambda x, inner=inner: inner(x))
            np.testing.assert_allclose(function(x), inner(x))
            assert function.compile_count == 1


def test_strict_functions_are_captured_at_once() -> None:
    with in_numpy():
        for k in range(CALLS):
            function = jit(Scale(k), jit_config=JitConfig(jit_syntax_level="STRICT"))
            function(_tensor())
            assert function.compile_count == 1


def test_a_new_cell_for_every_call_is_left_to_python() -> None:
    function = jit(lambda net, x: net(x))
    cells = [Scale(k) for k in range(CALLS)]
    with in_numpy():
        for k, cell in enumerate(cells):
            np.testing.assert_allclose(function(cell, _tensor()).asnumpy(), [1 + k, 4 + k])
    assert function.compile_count == 24
    assert not any(vars(c)["_jit_bound_compiled"].history for c in cells[-10:])


def _checked(x: Tensor, limits: SimpleNamespace) -> Tensor:
    if limits.most < 2:
        raise ValueError(f"{limits.most} is too few")
    return x * limits.most


class Checked(nn.Cell):
    def construct(self, x: Tensor, limits: SimpleNamespace) -> Tensor:
        return _checked(x, limits) + 1


@pytest.mark.parametrize("called", [_checked, Checked()], ids=["function", "Cell"])
def test_a_call_in_which_other_code_raises_is_captured_a_few_times(
    called: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    captures = []
    whole = function_module.capture
    monkeypatch.setattr(function_module, "capture", lambda *a: captures.append(a) or whole(*a))
    function = jit(lambda x, limits: called(x, limits) * 2)
    limits = SimpleNamespace(most=1)
    expected = called(_tensor(), SimpleNamespace(most=3)) * 2
    with in_numpy():
        for _ in range(10):
            with pytest.raises(ValueError, match="1 is too few") as raised:
                function(_tensor(), limits)
            assert raised.value.__context__ is raised.value.__cause__ is None
        assert len(captures) == 3
        assert "it raises ValueError again and again" in function.explain()
        limits.most = 3
        for _ in range(3):
            np.testing.assert_allclose(function(_tensor(), limits).asnumpy(), expected.asnumpy())
    assert function.compile_count == 1


def test_code_that_raises_for_every_other_number_is_left_to_python() -> None:
    function = jit(lambda x, n: _checked(x, SimpleNamespace(most=-n)) * 2)
    with in_numpy():
        for n in range(40):
            with pytest.raises(ValueError, match="is too few"):
                function(_tensor(), n)
        assert len(function.raising) == 1
        assert function(_tensor(), -3).asnumpy().tolist() == [6, 12]
        assert function(_tensor(), -3).asnumpy().tolist() == [6, 12]
    assert function.compile_count == 1 and not function.raising


def _in_a_table(x: Tensor, n: int) -> Tensor:
    rows = [[x * 0 for _ in range(n)] for _ in range(n)]
    for i in range(1, n):
        for j in range(1, n):
            rows[i][j] = rows[i - 1][j - 1] + x if float(x[0]) * i > j else rows[i - 1][j] - x
    return rows[-1][-1]


def test_items_of_a_table_are_looked_up_by_python() -> None:
    function = jit(_in_a_table)
    with in_numpy():
        for _ in range(6):
            expected = _in_a_table(_tensor(), 7)
            np.testing.assert_allclose(function(_tensor(), 7).asnumpy(), expected.asnumpy())
    assert "rows[i - 1]  because other items of rows are read" in function.explain()
    made = [s for name, s in function.region.program.segments.values() if name in _used(function)]
    assert max(len(s.history) for s in made) <= 8


def _used(function: Any) -> set[str]:
    return function.region.program.used


class Cache:
    """What a generation keeps; the next one makes another."""

    def __init__(self) -> None:
        self.rows: list[Tensor] = []


class Layer(nn.Cell):
    def construct(self, x: Tensor, cache: Cache) -> Tensor:
        cache.rows.append(x)
        return x * len(cache.rows)


class Layers(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Layer()

    def construct(self, x: Tensor, cache: Cache) -> Tensor:
        return self.inner(x + 1, cache)


def test_objects_that_one_function_was_given_anew_are_known_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A function, the Cell that it calls and the Cell in that one do not learn it one by one."""
    net = Layers()
    function = jit(lambda x, cache: net(x, cache) + 1)
    captures: list[int] = []
    original = function_module.capture

    def counted(*args: Any) -> Any:
        captures.append(1)
        return original(*args)

    monkeypatch.setattr(function_module, "capture", counted)
    counts = []
    with in_numpy():
        for _ in range(CALLS):
            cache = Cache()
            assert function(_tensor(), cache).tolist() == [3, 4]
            assert len(cache.rows) == 1
            counts.append(len(captures))
    assert counts[-1] == counts[-8]


def test_what_else_of_a_function_differs_at_every_call_is_found_sooner() -> None:
    cache: Any = SimpleNamespace(keys=[], values=[])
    x = Tensor([0.5, 1.0])

    def attend(q: Tensor, k: Tensor, v: Tensor, window: int | None = None) -> Any:
        cache.keys.append(k)
        cache.values.append(v)
        keys, values = ops.stack(cache.keys), ops.stack(cache.values)
        if window and len(cache.keys) > window:
            keys, values = keys[-window:], values[-window:]
        return ops.matmul(ops.softmax(ops.matmul(keys, q), axis=0), values), len(cache.keys)

    with in_numpy():
        compiled = jit(attend)
        for i in range(45):
            assert compiled(x, x, x)[1] == i + 1
        assert compiled.region is not None
        segments = compiled.region.program.segments.values()
        captures = [len(s.history) for _, s in segments]
        for _ in range(5):
            compiled(x, x, x)
    assert compiled.compile_count == 12 and sum(captures) < 36
    assert [len(s.history) for _, s in segments] == captures
