"""Syntax that only newer versions of Python read, captured from source and from bytecode."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tvmgraph as ms
from tests.capture.syntax_page import define
from tvmgraph import Tensor, jit

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))

#: By name: the version that reads it, and a function ``f``.
PROGRAMS = {
    "type parameters": ((3, 12), """
def f[T](x: T, n: int = 2) -> T:
    def inner[S: float](y: S) -> S:
        return y + n
    return inner(x) * n
"""),
    "type alias": ((3, 12), """
def f(x):
    type Pair = tuple[int, int]
    p: Pair = (1, 2)
    return x * p[0] + p[1]
"""),
    "quotes of an f-string inside of it": ((3, 12), """
def f(x):
    d = {"a": 3}
    return x * len(f"{d["a"]} {f"{x.shape!r:>{10}}"}")
"""),
    "comprehensions without frames": ((3, 12), """
def f(x):
    i = 5
    parts = [x * i for i in range(3) if i]
    named = {k: v for k, v in zip("ab", parts)}
    return sum([a + i for a in (b + 1 for b in named.values())]) * i
"""),
    "locals": ((3, 13), """
def f(x):
    a = 1
    found = locals()
    a = 2
    return x * found["a"] + a
"""),
    "template string": ((3, 14), """
def f(x):
    t = t"a{x.shape[0]}b"
    return x * t.interpolations[0].value + len(t.strings)
"""),
    "exceptions without parentheses": ((3, 14), """
def f(x):
    try:
        raise KeyError("a")
    except ValueError, KeyError:
        return x + 1
"""),
    "annotations that name nothing": ((3, 14), """
def f(x: Nothing) -> Nothing:
    def inner(y: Nothing, n: x.nothing = 2) -> Nothing:
        return y * n
    z: Nothing = 4
    return inner(x) + z
"""),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["ast", "bytecode"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_newer_syntax_equals_python(name: str, mode: str) -> None:
    since, source = PROGRAMS[name]
    if sys.version_info < since:
        pytest.skip(f"Python {'.'.join(map(str, since))} reads it")
    function = define(name, source)
    compiled = jit(function, capture_mode=mode)
    for x in (X, X + 1):
        np.testing.assert_array_equal(compiled(x).asnumpy(), function(x).asnumpy())


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python 3.14 defers annotations")
def test_annotations_of_cells_may_name_nothing() -> None:
    net = define("cell", """
class f(__import__("tvmgraph").nn.Cell):
    def construct(self, x: Nothing, n: Nothing = 2) -> Nothing:
        return x * n
""")()  # fmt: skip
    for call in (net, jit(net), jit(net.construct)):
        np.testing.assert_array_equal(call(X, n=3).asnumpy(), X.asnumpy() * 3)
        with pytest.raises(TypeError):
            call(X, m=3)
    np.testing.assert_array_equal(ms.grad(net)(X).asnumpy(), np.full((2, 3), 2))
