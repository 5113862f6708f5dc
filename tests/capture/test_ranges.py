"""Integers of Python that a tensor decides: a graph holds those that fit 64 bits, Python the rest.

A loop whose end a tensor decides stays in the graph where no integer can outgrow it.
"""

from __future__ import annotations

import linecache
import random
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.capture.test_fuzz import in_numpy
from tvmgraph import JitConfig, Tensor, jit, nn
from tvmgraph.errors import CaptureError

#: Bodies of ``while x.sum() < 130``, of one iteration each.
GROWS = """
n = n * 3
n = (n * n + 1) % 2 ** 62
n += n
n <<= 1
n = n ** 2 + 1 if n < 10 ** 10 else n
a, b = b, a + b
n = n * 3 + k
n = max(n * 2, 5)
n, a = n + a, a + b; b = n
n = n * (3 if x.sum() > 5 else 4)
n = -n * 2
a = a + n; n = n + b; b = b + 1; k = k + a
for i in range(70): n = n * (2 if x.sum() < i else 1)
n = n * 3 if n > 0 else n - 1
n = n * 3; a = n & 255
""".strip().splitlines()
STAYS = """
n += 1
n += 7; k = n * 3
n = n + k
a += 1; n += a
n = n * 3 % 1000
n = (n * 1103515245 + 12345) % 2 ** 31
n ^= (n << 13) & 0xffffffff; n ^= n >> 17; n ^= (n << 5) & 0xffffffff
n = min(n * 3, 10 ** 15)
n = max(n * -3, -50)
n = n * 3; n = 1 if n > 1000 else n
n = n * 3 if n < 10 ** 9 else n - 5
n = 10 - n
a, b = b, a + 1
a, b, n = b, n, a
n = n // 2 if n % 2 == 0 else (3 * n + 1) % 100000
n = abs(n - 3) & 1023 | 5
n -= (n > 3) * 2; n += not n
for i in range(20): n = n % 10 * (2 if x.sum() < i else 1)
""".strip().splitlines()
LOOP = """
def f(x, k):
    n, a, b = 1, 0, 1
    while x.sum() < 130:
        {}
        x = x + 1
    return n, a, b, k
"""
O0 = JitConfig(jit_level="O0")


def define(source: str) -> Any:
    name = f"<ranges {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    module = types.ModuleType("numbers_of_users")
    exec(compile(source, name, "exec"), vars(module))
    return vars(module)["f"]


def tensor(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


def compare(function: Callable[..., Any], compiled: Any, *others: Any) -> None:
    for first in (0.0, -5.0, 90.0, 200.0, 1.0):
        expected, got = function(tensor(first, 0), *others), compiled(tensor(first, 0), *others)
        assert got == expected and [*map(type, got)] == [*map(type, expected)]


def bodies(lines: Sequence[str]) -> list[str]:
    return ["\n        ".join(line.split("; ")) for line in lines]


@pytest.mark.parametrize("body", bodies(GROWS))
def test_python_computes_what_may_outgrow_the_graph(body: str) -> None:
    function = define(LOOP.format(body))
    strict = jit(function, fullgraph=True, jit_config=O0)
    with in_numpy():
        compiled = jit(function, jit_config=O0)
        compare(function, compiled, 1)
        assert "an integer that a tensor decides, and that may need more" in compiled.explain()
        with pytest.raises(CaptureError, match="more than 64 bits") as error:
            strict(tensor(0, 0), 1)
    assert "<ranges" in str(error.value) and "`n % m`" in str(error.value)


@pytest.mark.parametrize("body", bodies(STAYS))
def test_a_loop_whose_integers_stay_small_is_a_graph(body: str) -> None:
    function = define(LOOP.format(body))
    with in_numpy():
        compiled = jit(function, jit_config=O0)
        compare(function, compiled, 1)
        assert compiled.compile_count == 1 and "graph break" not in compiled.explain()


def adding(x: Tensor, k: int) -> tuple[Any, ...]:
    n = 0
    while x.sum() < 200:
        n, x = n + k, x + 1
    return n, k


def test_a_number_that_varies_is_added_in_the_graph_while_it_is_small() -> None:
    with in_numpy():
        compiled = jit(adding, jit_config=O0)
        for k in (1, 2, -3, 5):
            compare(adding, compiled, k)
        assert "graph break" not in compiled.explain() and compiled.compile_count == 2
        for k in (2**40, 2**62, 2**63 - 1, -(2**63), 2**64, 7, 2**9000, -(2**9000)):
            compare(adding, compiled, k)


def power(x: Tensor) -> Any:
    n = 7 if x.sum() > 0 else -9
    return n**15, n**40, x


def test_arithmetic_without_a_loop_is_left_to_python_where_it_must() -> None:
    compiled = jit(power, jit_config=O0)
    for value in (3.0, -3.0):
        assert compiled(tensor(value))[:2] == power(tensor(value))[:2]
    assert "n**40" in compiled.explain()


class Counter(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.scale = self.steps = 1

    def construct(self, x: Tensor) -> Tensor:
        while x.sum() < 60:
            self.scale, self.steps = self.scale * 3, self.steps + 1
            x = x + 1
        return x * (self.scale % 5)


@pytest.mark.parametrize("mode", ["ast", "bytecode"])
def test_an_attribute_that_grows(mode: str) -> None:
    plain, cell = Counter(), Counter()
    compiled = jit(cell, capture_mode=mode)
    with in_numpy():
        for first in (0.0, 3.0, -9.0):
            expected, got = plain(tensor(first, 0)), compiled(tensor(first, 0))
            assert got.asnumpy().tolist() == expected.asnumpy().tolist()
            assert (cell.scale, cell.steps) == (plain.scale, plain.steps)
    assert cell.scale > 2**64


def random_body(rng: random.Random) -> str:
    """Returns statements that compute integers, most of which stay small."""

    def value(depth: int) -> str:
        if depth == 0 or rng.random() < 0.25:
            return rng.choice(["n", "a", "b", "k", str(rng.choice([0, 1, 2, 3, 7, 1000, 10**6]))])
        left, right = value(depth - 1), value(depth - 1)
        return rng.choice(
            [
                f"({left} + {right})", f"({left} - {right})", f"({left} * {right})",
                f"{left} % {rng.choice([7, 1000, 2**31, -5])}", f"{left} // {rng.choice([2, -3])}",
                f"({left} & {rng.choice([7, 1023, 2**40])})", f"({left} ^ {right})",
                f"min({left}, {right})", f"max({left}, {right})", f"abs({left})",
                f"({left} if {test()} else {right})", f"{left} ** {rng.choice([0, 1, 2, 3])}",
                f"({left} << {rng.choice([1, 5])})", f"({left} >> {rng.choice([1, 3])})",
            ]
        )  # fmt: skip

    def test() -> str:
        found = [
            f"{rng.choice('nabk')} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} "
            f"{rng.choice(['n', 'a', '5', '1000', '-3', '10**9'])}",
            f"x.sum() < {rng.choice([20, 60, 100])}",
        ]
        return rng.choice([*found, " and ".join(found), " or ".join(found), f"not {found[0]}"])

    def statement() -> str:
        name = rng.choice("nab")
        kind = rng.random()
        if kind < 0.6:
            before = rng.choice(["", f"{name} + ", f"{name} * ", f"7 - {name} * "])
            return f"{name} = {before}{value(2)}"
        if kind < 0.7:
            return "a, b = b, " + value(1)
        if kind < 0.85:
            return f"if {test()}: {name} = {value(1)}"
        return f"for i in range({rng.choice([3, 9])}): {name} = {value(1)} if {test()} else {name}"

    return "\n        ".join(statement() for _ in range(rng.randint(2, 4)))


def explodes(body: str) -> bool:
    """Whether integers become so large that plain Python takes long."""
    check = "\n        assert max(n, -n, a, -a, b, -b).bit_length() < 3000"
    try:
        define(LOOP.format(body + check))(tensor(-5, 0), 3)
    except AssertionError:
        return True
    return False


def test_random_loops() -> None:
    graphs = programs = 0
    for seed in range(40):
        body = random_body(random.Random(seed))
        if explodes(body):
            continue
        function = define(LOOP.format(body))
        with in_numpy():
            compiled = jit(function, jit_config=O0)
            compare(function, compiled, 3)
        programs += 1
        graphs += "graph break" not in compiled.explain()
    assert programs > 25 and 5 < graphs < programs - 5
