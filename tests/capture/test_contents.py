"""What a function does to outside objects with contents, and what it warns of, happens every call.

Lists, dicts and sets are changed by noted effects; anything else by code that runs natively, which
a capture must not do once for all calls.
"""

from __future__ import annotations

import array
import collections
import contextlib
import gc
import io
import random
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.capture.test_fuzz import define, in_numpy
from tvmgraph import Tensor, jit
from tvmgraph.errors import CaptureError

CALLS = 4  # more than the states that some of the changes go round in
MODES = ("ast", "bytecode")


class Total:
    """A user's own class with an operator in place."""

    def __init__(self) -> None:
        self.value = 0

    def __iadd__(self, other: Any) -> Total:
        self.value += other
        return self

    def __setitem__(self, key: int, value: int) -> None:
        self.value = self.value * key + value

    def __repr__(self) -> str:
        return str(self.value)


#: What is changed, and how.
CHANGES: dict[str, tuple[Callable[[], Any], str]] = {
    "bytearray.append": (lambda: bytearray(b"a"), "s.append(1)"),
    "bytearray +=": (lambda: bytearray(b"a"), "s += b'x'"),
    "bytearray[0] +=": (lambda: bytearray(b"a"), "s[0] += 1"),
    "bytearray[:1]": (lambda: bytearray(b"abc"), "s[:1] = b'xy'"),
    "memoryview": (lambda: memoryview(bytearray(b"a")), "s[0] += 1"),
    "deque.append": (collections.deque, "s.append(1)"),
    "deque.rotate": (lambda: collections.deque([1, 2]), "s.rotate(1)"),
    "deque +=": (collections.deque, "s += [1]"),
    "array.append": (lambda: array.array("i", [1]), "s.append(2)"),
    "ndarray[0] +=": (lambda: np.zeros(3), "s[0] += 2"),
    "ndarray +=": (lambda: np.zeros(3), "s += 2"),
    "ndarray *= to and fro": (lambda: np.ones(3), "s *= -1"),
    "np.add out": (lambda: np.zeros(3), "np.add(s, 1, out=s)"),
    "Counter.update": (lambda: collections.Counter("ab"), "s.update('a')"),
    "defaultdict": (lambda: collections.defaultdict(int), "s['a'] += 1"),
    "OrderedDict": (lambda: collections.OrderedDict(a=1, b=2), "s.move_to_end(next(iter([*s])))"),
    "ChainMap": (lambda: collections.ChainMap({}), "s[len(s)] = 1"),
    "UserList": (collections.UserList, "s.append(1)"),
    "SimpleNamespace": (lambda: types.SimpleNamespace(a=1), "s.a += 1"),
    "a user's +=": (Total, "s += 3"),
    "a user's item": (Total, "s[2] = 3"),
}


@pytest.fixture(autouse=True)
def evaluated() -> Iterator[None]:
    with in_numpy():
        yield


def after_calls(code: str, value: Any, mode: str | None) -> str:
    source = f"def f(x):\n    s = STATE[0]\n    {code}\n    return x + 1\n"
    names = define(source, f"<contents {code}>")
    names["STATE"] = (value,)
    function = names["f"] if mode is None else jit(names["f"], capture_mode=mode)
    for _ in range(CALLS):
        assert function(Tensor([1.0])).asnumpy() == 2
    return repr(value.tolist() if isinstance(value, memoryview) else value)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CHANGES)
def test_every_call_changes_contents(name: str, mode: str) -> None:
    make, code = CHANGES[name]
    assert after_calls(code, make(), mode) == after_calls(code, make(), None)


#: What makes a capture fail or begin anew after the change, and what a call then ends with.
FAILING = {
    "a print that a tensor decides": "if x.sum() > 0:\n        print(1)",
    "an exception": "raise ValueError",
    "what cannot be compiled": "x.asnumpy()",
    "a size that is needed": "[0] * x.shape[0]",
}


@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize("name", CHANGES)
def test_a_capture_that_fails_takes_back_what_native_code_changed(name: str, failing: str) -> None:
    make, code = CHANGES[name]
    source = f"def f(x):\n    s = STATE[0]\n    {code}\n    {FAILING[failing]}\n    return x + 1\n"
    found = []
    for through in (lambda f: f, jit):
        names = define(source, f"<failing {failing} {code} {len(found)}>")
        names["STATE"] = (make(),)
        function = through(names["f"])
        for size in (1, 2, 3):
            with contextlib.suppress(ValueError):
                function(Tensor([1.0] * size))
        value = names["STATE"][0]
        found.append(repr(value.tolist() if isinstance(value, memoryview) else value))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", CHANGES)
def test_a_tensor_decides_whether_native_code_changes_contents(name: str) -> None:
    make, code = CHANGES[name]
    body = f"    x = x * 2\n    if x.sum() > 0:\n        {code}\n        x = x + 1\n    return x\n"
    found = []
    for through in (lambda f: f, jit):
        names = define(f"def f(x):\n    s = STATE[0]\n{body}", f"<decided {code} {len(found)}>")
        names["STATE"] = (make(),)
        function = through(names["f"])
        results = [float(function(Tensor([v])).asnumpy()[0]) for v in (1.0, -1.0, -1.0, 2.0, 3.0)]
        value = names["STATE"][0]
        found.append((results, repr(value.tolist() if isinstance(value, memoryview) else value)))
    assert found[0] == found[1]


def test_explain_names_what_is_changed_natively() -> None:
    ring = collections.deque([1, 2])

    def f(x: Tensor) -> Tensor:
        ring.rotate(1)
        return x + ring[0]

    reasons = {True: "'ring' is changed by code that runs natively", False: "changing a deque"}
    for strict, reason in reasons.items():
        function = jit(f, fullgraph=strict)
        first = ring[1]
        assert [int(function(Tensor([0.0])).asnumpy()[0]) for _ in range(2)] == [first, 3 - first]
        assert reason in function.explain()


# ---- warnings -----------------------------------------------------------------------------------


def warn(x: Tensor) -> Tensor:
    warnings.warn("plain", stacklevel=1)
    warnings.warn(DeprecationWarning("old"), stacklevel=2)
    warnings.warn("own", FutureWarning, stacklevel=1)
    return x + 1


@pytest.mark.parametrize("mode", MODES)
def test_every_call_warns(mode: str) -> None:
    def warned(function: Any) -> list[Any]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for _ in range(3):
                function(Tensor([1.0]))
        return [(str(w.message), w.category, w.filename) for w in found]

    assert warned(jit(warn, capture_mode=mode)) == warned(warn)


def test_a_warning_that_is_an_error_is_raised_by_every_call() -> None:
    compiled = jit(warn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match="plain"):
                compiled(Tensor([1.0]))


def test_filters_of_warnings_are_not_set_by_a_graph() -> None:
    def f(x: Tensor) -> Tensor:
        warnings.simplefilter("ignore")
        return x

    with pytest.raises(CaptureError, match=r"warnings\.simplefilter"):
        jit(f, fullgraph=True)(Tensor([1.0]))


# ---- objects with a state in code that runs natively --------------------------------------------


class Native:
    """Properties run natively."""

    generator, python, lines = np.random.default_rng(0), random.Random(0), io.StringIO()

    @property
    def drawn(self) -> float:
        return float(self.generator.random())

    @property
    def chosen(self) -> float:
        return self.python.choice([1.0, 2.0])

    @property
    def read(self) -> float:
        return float(len(self.lines.readline()))

    @property
    def seeded(self) -> float:
        return float(np.random.default_rng(0).random())


NATIVE = Native()


@pytest.mark.parametrize("name", ["drawn", "chosen", "read"])
def test_methods_of_outside_objects_with_a_state_are_refused(name: str) -> None:
    names = define(f"def f(x):\n    return x + N.{name}\n", f"<native {name}>")
    names["N"] = NATIVE
    with pytest.raises(CaptureError, match="which plain Python would run at every call"):
        jit(names["f"], fullgraph=True)(Tensor([1.0]))


def test_a_generator_that_native_code_makes_is_its_own() -> None:
    def f(x: Tensor) -> Tensor:
        return x + NATIVE.seeded

    assert jit(f)(Tensor([1.0])).asnumpy() == f(Tensor([1.0])).asnumpy()


def test_copies_of_what_native_code_gets_are_not_kept() -> None:
    class Store:
        def __init__(self) -> None:
            self.rows = np.ones(9)

        @property
        def size(self) -> float:
            return float(self.rows.size)

    names = define("def f(x):\n    return x + STORE.size\n", "<store>")
    names["STORE"] = Store()
    compiled = jit(names["f"])
    compiled(Tensor([1.0]))
    kept = weakref.ref(names["STORE"].rows)
    names["STORE"].rows = np.ones(3)
    gc.collect()
    assert kept() is None
    assert compiled(Tensor([1.0])).asnumpy() == 4


class _Holder:
    def __init__(self) -> None:
        self.items: list[Any] = []


def _append_to_argument(items: list[Any], holder: _Holder, x: Tensor) -> Any:
    items.append(x * 2)
    return len(holder.items), x.sum() + len(holder.items)


def _append_to_attribute(items: list[Any], holder: _Holder, x: Tensor) -> Any:
    holder.items.append(x * 3)
    return len(items), x.sum() * len(items)


@pytest.mark.parametrize("function", [_append_to_argument, _append_to_attribute])
def test_a_list_that_is_an_argument_and_an_attribute(function: Any) -> None:
    run, x = jit(function), Tensor(np.ones(2, np.float32))
    found, wanted = _Holder(), _Holder()
    for alias in (False, True, False, True, True):
        results = []
        for call, holder in ((run, found), (function, wanted)):
            items = holder.items if alias else [x]
            count, total = call(items, holder, x)
            results.append((count, float(total), len(items), len(holder.items)))
        assert results[0] == results[1]


def test_a_list_that_is_passed_twice() -> None:
    def f(a: list[Any], b: list[Any], x: Tensor) -> Any:
        a.append(x)
        return x.sum() * len(b)

    run, x, both = jit(f), Tensor(np.ones(2, np.float32)), []
    assert float(run([], [], x)) == 0
    assert [float(run(both, both, x)) for _ in range(2)] == [2, 4]
    assert len(both) == 2


def test_equal_keys_of_other_classes_are_other_arguments() -> None:
    f = jit(lambda x, d: (x * 2, [type(k) for k in d]))
    for key in (1, True, 1.0, 1):
        assert f(Tensor([1.0]), {key: 2})[1] == [type(key)]
