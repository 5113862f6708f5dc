"""Containers from outside, as attributes, globals, defaults and arguments: every call is Python's."""
# ruff: noqa: E501

from __future__ import annotations

import copy
import dataclasses
import subprocess
import sys
import warnings
from collections import OrderedDict, deque
from typing import Any

import numpy as np
import pytest

from tests.capture.any_python import MODES, seen
from tests.capture.test_fuzz import assert_same, define, in_numpy
from tvmgraph import JitConfig, Tensor, jit
from tvmgraph.jit import function

#: Numbers of the calls; after two equal ones the third is the quick one.
CALLS = (1, 1, 1, 2, 3, 1, 2)
HEADER = """
import array, collections
from tvmgraph import Parameter, nn
SEEN, o = [], None
def change(n): pass
def state(): return SEEN, o
"""
CACHE = """
class Net(nn.Cell):
    def __init__(self): super().__init__(); self.cache = None
    def construct(self, x, n, o):
        CODE
f = o = Net()
def state(): return [vars(o).get(name) for name in ("cache", "late")]
"""
TAKING = """
class Box:
    def __init__(self): self.rows = []; self.table = {}; self.known = set()
o = Box()
def state(): return o.rows, o.table, o.known
def f(x, n, o):
    CODE
    return x * (len(o.rows) + len(o.table) + len(o.known))
"""
ARGUMENT = """
o = MAKE
def f(x, n, o): return x * sum(v if isinstance(v, int) else len(v) for v in o), next(iter(o)), len(o)
"""
#: By name, code of a module. ``f(x, n, o)`` is compiled; ``change(n)`` happens before a call.
PROGRAMS = {
    "an attribute of a Cell becomes a dict": CACHE.replace("CODE", """
        if self.cache is None: self.cache = {"k": x * 0}
        self.cache["k"] = self.cache["k"] + x
        return self.cache["k"]"""),
    "an attribute of a Cell becomes a list": CACHE.replace("CODE", """
        if self.cache is None: self.cache = []
        self.cache.append(x)
        return x * len(self.cache)"""),
    "an attribute of a Cell becomes a set": CACHE.replace("CODE", """
        self.cache = (self.cache or set()) | {len(self.cache or ())}
        return x * len(self.cache)"""),
    "a Cell gets an attribute": CACHE.replace("CODE", """
        if not hasattr(self, "late"): self.late = {"k": x * 0}
        self.late["k"] = self.late["k"] + x
        return self.late["k"]"""),
    "an attribute of a Cell becomes a list before a break": CACHE.replace("CODE", """
        v = x.sum().item()
        if self.cache is None: self.cache = [x * 0]
        self.cache[0] = self.cache[0] + v
        return self.cache[0]"""),
    "an attribute of a Cell becomes a number, a dict and None": CACHE.replace("CODE", """
        return x * (1 if self.cache is None else 2 if isinstance(self.cache, float) else 3)""") + """
def change(n): o.cache = [None, 2.0, {"k": 1}, None][n]
""",
    "a list takes what a generator gives": TAKING.replace("CODE", """
    o.rows.extend(x[i] for i in range(2)); o.rows += (x * i for i in range(2))
    o.rows[1:2] = (t + 1 for t in (x, x)); o.rows.extend(map(lambda i: i * 2, (n, 2)))
    o.rows.extend(zip((n,), (x,))); o.rows.extend({"a": 1}.items()); o.rows.extend("ab")"""),
    "a dict takes what a generator gives": TAKING.replace("CODE", """
    o.table.update((str(i), x[i]) for i in range(2)); o.table.update(zip("ab", (x, n)), c=n)
    more = {"d": n}; o.table.update(more); more["d"] = 9"""),
    "a set takes what a generator gives": TAKING.replace("CODE", """
    o.known.update(i for i in range(n)); o.known.update(map(str, (n,)), {7})
    o.known.difference_update(i for i in (1, n))"""),
    "a list is looked at while it takes items": TAKING.replace("CODE", """
    o.rows.extend(len(o.rows) for _ in range(3)); o.rows += (len(o.rows) for _ in range(2))"""),
    "a generator changes something while a list takes its items": TAKING.replace("CODE", """
    o.rows.extend([o.known.add(i), o.table.update(k=i), i][2] for i in range(n))
    o.rows.extend(print(i) for i in range(n))"""),
    "a generator changes the list that takes its items": TAKING.replace("CODE", """
    o.rows.extend([o.rows.append(9), i][1] for i in range(n))"""),
    "what a list took of another list is that of then": TAKING.replace("CODE", """
    row = [1, n]; o.rows.extend(row); row.append(3)
    row = [1, [n]]; o.rows[:] = row; row[0] = 5; row[1].append(4)
    o.rows.extend([row]); o.rows[-1].append(6)
    o.rows.extend(o.rows); o.rows += o.rows[::2]"""),
    "an argument is a set that changes": ARGUMENT.replace("MAKE", "set()") + """
def change(n): o.add(n)
""",
    "an argument is a set that changes its order": ARGUMENT.replace("MAKE", "{1, 9}") + """
def change(n): o.clear(); o.update((9, 1) if n == 2 else (1, 9))
""",
    "an argument is a deque that changes": ARGUMENT.replace("MAKE", "collections.deque([[1]])") + """
def change(n): o[0].append(n); o.appendleft([-n])
""",
    "an argument is an array that changes": ARGUMENT.replace("MAKE", "array.array('i')") + """
def change(n): o.append(n)
""",
    "an argument is a bytearray that changes": ARGUMENT.replace("MAKE", "bytearray()") + """
def change(n): o.append(n)
""",
    "a function that is called changes its defaults": """
def acc(t, rows=[]): rows.append(t); return len(rows)
def memo(t, k, *, table={}):
    if k not in table: table[k] = t * 2
    return table[k]
def state(): return acc.__defaults__, memo.__kwdefaults__
def f(x, n, o): return x * acc(x) + memo(x, n)
""",
}  # fmt: skip


def calls(source: str, name: str, mode: str | None) -> list[Any]:
    """Returns all that can be seen of the calls of a program."""
    names = define(HEADER + source, f"<{name}, {mode}>")
    function = names["f"]
    if mode is not None:
        config = JitConfig(jit_level="O0")
        function = jit(function, jit_config=config, capture_mode=mode, global_writes="replay")
    found: list[Any] = []
    for n in CALLS:
        names["change"](n)
        try:
            result = seen(function(Tensor(np.ones(2, np.float32)), n, names["o"]))
        except Exception as e:
            result = [type(e).__name__, str(e)]
        found.append([result, seen(names["state"]())])
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_contents_of_containers_are_those_of_python(name: str, mode: str) -> None:
    source = PROGRAMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted, found = (calls(source, name, m) for m in (None, mode))
    for call, (a, b) in enumerate(zip(wanted, found, strict=True)):
        assert_same(a, b, f"{name}, {mode}, call {call}\n{source}")


GROWING = {
    "set": (set, lambda s, k: s.add(k)),
    "list": (list, lambda s, k: s.append(k)),
    "dict": (dict, lambda s, k: s.update({k: k})),
    "array": (lambda: np.zeros(2), lambda s, k: s.fill(k)),
}


@pytest.mark.parametrize("kind", GROWING)
def test_argument_that_grows_is_left_to_python_after_a_dozen_captures(kind: str) -> None:
    make, grow = GROWING[kind]
    f = jit(lambda x, s: x * len(s) + 1, jit_config=JitConfig(jit_level="O0"))
    held = make()
    for k in range(20):
        grow(held, k)
        assert f(Tensor([1.0]), held).item() == len(held) + 1
    assert f.compile_count == 12 and f.churned is not None


def test_code_that_raises_at_every_call_is_captured_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = jit(raising, jit_config=JitConfig(jit_level="O0"))
    captured: list[object] = []
    whole = function.capture
    monkeypatch.setattr(function, "capture", lambda *args: captured.append(args[0]) or whole(*args))
    x = Tensor([1.0, 2.0])
    for _ in range(12):
        with pytest.raises(ValueError, match="7"):
            f(x, 7)
    assert captured.count(raising) == 3
    assert f(x, 2).asnumpy().tolist() == [3, 5]


def raising(x: Tensor, n: int) -> Tensor:
    y = x * 2 + 1
    return y.reshape(n)


class Held:
    def __init__(self, v: Any) -> None:
        self.v = v
        self.log = [v]

    def twice(self) -> Any:
        return self.v * 2


class Table(dict[str, Any]):
    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.count = len(self)


@dataclasses.dataclass
class Data:
    a: Any
    b: int = 2


def makes_objects(x: Tensor) -> Tensor:
    held, table, data = Held(x), Table(t=x), Data(x)
    copied, other = copy.copy(held), dataclasses.replace(data, b=3)
    held.v = held.v + 1
    return held.twice() + table["t"] * table.count + data.a * other.b + len(copied.log)


@pytest.mark.parametrize("fullgraph", [False, True])
def test_function_that_makes_objects_is_captured_once(fullgraph: bool) -> None:
    f = jit(makes_objects, jit_config=JitConfig(jit_level="O0"), fullgraph=fullgraph)
    for k in range(4):
        x = Tensor([float(k)])
        assert f(x).item() == makes_objects(x).item()
    assert f.compile_count == 1


# ---- classes that count what is asked of them ---------------------------------------------------

ASKED: list[str] = []


def counting(base: Any) -> Any:
    """Returns a subclass of a container that notes every look at what it holds."""

    def method(name: str) -> Any:
        inherited = getattr(base, name)

        def look(self: Any, *args: Any) -> Any:
            ASKED.append(name)
            return inherited(self, *args)

        return look

    names = [
        "__iter__",
        "__len__",
        "__getitem__",
        "__contains__",
        "__eq__",
        "__ne__",
        "items",
        "keys",
        "values",
        "get",
    ]
    members = {n: method(n) for n in names if n in dir(base)}
    return type(f"Counting{base.__name__}", (base,), {**members, "__hash__": None})


KEPT = {kind: counting(kind) for kind in (list, tuple, dict, set, deque, OrderedDict)}
HELD = [
    KEPT[list]([1, 2]), KEPT[tuple]([1, 2]), KEPT[dict](a=1), KEPT[set]([3]), KEPT[deque]([1]),
    KEPT[OrderedDict](a=1),
]  # fmt: skip


def looks(x: Tensor, rows: Any, pair: Any, table: Any, members: Any, queue: Any, order: Any) -> Any:
    y = x.asnumpy().sum() * x
    for v in rows:
        y = y + v
    for v in pair:
        y = y + v
    return y + table["a"] + order["a"] + len(members) + len(queue) + len(rows)


def looks_outside(x: Tensor) -> Any:
    rows, pair, table, members, queue, order = HELD
    for v in rows:
        x = x + v
    return x + pair[0] + table["a"] + order["a"] + len(members) + len(queue)


@pytest.mark.parametrize("function", [looks, looks_outside])
def test_nothing_but_the_code_itself_asks_containers(function: Any) -> None:
    args = (*HELD,) if function is looks else ()
    ASKED.clear()
    expected = [function(Tensor([1.0, 2.0]), *args) for _ in range(4)]
    asked = ASKED.copy()
    ASKED.clear()
    with in_numpy():
        compiled = jit(function)
        found = [compiled(Tensor([1.0, 2.0]), *args) for _ in range(4)]
    assert [str(v) for v in found] == [str(v) for v in expected]
    assert len(ASKED) <= len(asked)  # a graph asks once


#: Functions of the user's that run as they are see the globals of others, and so the builtins.
HOOKED = """
import builtins
from tvmgraph import Tensor, jit, ops

known = builtins.__import__
def noticed(name, globals=None, locals=None, fromlist=(), level=0):
    return known(name, globals, locals, fromlist, level)
builtins.__import__ = noticed

@jit
def wrong(x):
    return ops.matmul(Tensor([2.0]) * x, x)

try:
    wrong(ops.ones((2, 3)))
except ValueError as e:
    print(type(e).__name__, len([e]))
"""


def test_a_capture_that_fails_leaves_the_builtins_alone() -> None:
    run = subprocess.run([sys.executable, "-c", HOOKED], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("ShapeError 1\n", "")
