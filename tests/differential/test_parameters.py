"""Parameters are leaves, whatever they are assigned: eager, compiled and differentiated each way.

The reference has no Parameter: what is read of one is its value, through which nothing flows, plus
a zero by which is differentiated.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.differential.harness import (
    LEVELS,
    MANY,
    SEED,
    arrays,
    assert_same,
    at,
    compiling,
    defined,
)
from tvmgraph import Parameter, Tensor, nn, ops
from tvmgraph.config.options import CompileOptions
from tvmgraph.passes.run import run_graph_passes

COUNT, COMPILED_EVERY = 48 * MANY, 16
READ = "(ops.stop_gradient(cur) + zero)"
WRITES = ("self.p = {}", "ops.assign(self.p, {})", "self.p += {}", "self.p.set_data({})",
          "ops.assign_add(self.p, {})", "self.p[:] = {}")  # fmt: skip


class Program:
    """Writes a Cell that reads and writes a Parameter, and the function it must equal."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.cell: list[str] = []
        self.plain: list[str] = []

    def source(self) -> str:
        self.block(2, self.r.randint(3, 6))
        result = "x * y + {}" if self.r.random() < 0.5 else "x, y * {}"
        self.emit(2, f"return {result}")
        head = "class Net(nn.Cell):\n    def __init__(self, p):\n        super().__init__()\n"
        head += "        self.p = p\n    def construct(self, x, y):\n"
        return (
            head + "\n".join(self.cell)
            + "\n\nif True:\n    def plain(x, y, zero, cur):\n" + "\n".join(self.plain)
        )  # fmt: skip

    def emit(self, depth: int, line: str) -> None:
        """Writes a line to both, with braces where the Parameter is read."""
        self.cell.append("    " * depth + line.replace("{}", "self.p"))
        line = line.replace("lambda v,", "lambda v, cur=cur,")  # it is called again, much later
        self.plain.append("    " * depth + line.replace("{}", READ))

    def block(self, depth: int, count: int) -> None:
        for _ in range(count):
            kinds = [self.step, self.step, self.write, self.write]
            self.r.choice(kinds + ([self.branch, self.loop] if depth < 5 else []))(depth)

    def value(self) -> str:
        return self.r.choice(["x * {}", "y + {}", "x * y", "ops.tanh({}) * y", "x", "{} * 0.5"])

    def step(self, depth: int) -> None:
        name = self.r.choice("xy")
        self.emit(depth, self.r.choice([
            f"{name} = ops.tanh({self.value()})", f"{name} = {name} + {self.value()}",
            f"{name} = ms.recompute(lambda v, w={name}: v * w * {{}}, x)",
            f"{name} = {name} * {{}}.mean()",
        ]))  # fmt: skip

    def write(self, depth: int) -> None:
        how, what = self.r.choice(WRITES), f"ops.tanh({self.value()})"
        pad = "    " * depth
        self.cell.append(pad + how.format(what.replace("{}", "self.p")))
        old = f"{READ} + " if "+=" in how or "add" in how else ""
        self.plain.append(f"{pad}cur = {old}{what.replace('{}', READ)}")

    def branch(self, depth: int) -> None:
        self.emit(depth, f"if {self.r.choice(['x.sum() > 0', '{}.sum() > y.sum()'])}:")
        self.block(depth + 1, 2)
        if self.r.random() < 0.5:
            self.emit(depth, "else:")
            self.block(depth + 1, 1)

    def loop(self, depth: int) -> None:
        self.emit(depth, f"for i in range({self.r.randint(2, 3)}):")
        self.emit(depth + 1, "if x.sum() > 2:")
        self.emit(depth + 2, "break")
        self.block(depth + 1, 2)


def given(seed: int) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [Tensor(rng.uniform(-1, 1, 3).astype(np.float32)) for _ in range(3)]


def run(seed: int, level: str | None) -> None:
    source = Program(seed).source()
    where = f"seed {seed}, {level}\n{source}"
    with defined(source) as names, compiling(level is not None):
        x, y, p = given(seed)
        outputs = names["plain"](x, y, ops.zeros_like(p), p)
        wanted = ms.grad(names["plain"], (0, 1, 2))(x, y, ops.zeros_like(p), p)

        def net() -> Any:
            return names["Net"](Parameter(p, name="p"))

        first, again, inside, outside = net(), net(), net(), net()
        both = ms.value_and_grad(first, (0, 1), [first.p])
        value, (dx, dp) = both(x, y)
        assert_same((outputs, *wanted), (value, *dx, *dp), where, 1e-5)
        ones = [ops.ones_like(o) for o in ([outputs] if isinstance(outputs, Tensor) else outputs)]
        dx, dp = ms.vjp(again, x, y, weights=[again.p])[1](*ones)
        assert_same(wanted, (*dx, *dp), where, 1e-5)
        whole = at(ms.value_and_grad(inside, (0, 1), [inside.p]), level or "O0")
        found = ms.value_and_grad(at(outside, level or "O0"), (0, 1), [outside.p])
        for compiled in (whole(x, y), found(x, y)):
            assert_same((outputs, wanted), compiled, where, 1e-5)
        for cell in (inside, outside):
            assert_same(first.p.value(), cell.p.value(), where, 1e-5)


def test_programs() -> None:
    for i in range(COUNT):
        run(SEED + i, LEVELS[i // COMPILED_EVERY % 3] if i % COMPILED_EVERY == 0 else None)


class Scale(nn.Cell):
    def __init__(self, write: Any) -> None:
        super().__init__()
        self.p = Parameter(Tensor([1.0, 1.0]), name="p")
        self.write = write

    def construct(self, x: Tensor) -> Tensor:
        self.write(self, x)
        return x * self.p


def set_attribute(cell: Any, x: Tensor) -> None:
    cell.p = 2 * x


def add_in_place(cell: Any, x: Tensor) -> None:
    cell.p += 2 * x - 1


def set_item(cell: Any, x: Tensor) -> None:
    cell.p[0] = 2 * x[0]
    cell.p[1] = 2 * x[1]


def assign(cell: Any, x: Tensor) -> None:
    ops.assign(cell.p, 2 * x)


def set_data(cell: Any, x: Tensor) -> None:
    cell.p.set_data(2 * x)


@pytest.mark.parametrize("write", [set_attribute, add_in_place, set_item, assign, set_data])
def test_what_a_parameter_was_computed_from_gets_nothing(write: Any) -> None:
    x = Tensor([3.0, 4.0])
    for make in (lambda c: ms.grad(c), lambda c: ms.jit(ms.grad(c)), lambda c: ms.grad(ms.jit(c))):
        np.testing.assert_allclose(make(Scale(write))(x).asnumpy(), [6, 8])
    by_all = ops.GradOperation(get_all=True, get_by_list=True)
    cell = Scale(write)
    dx, dp = by_all(cell, cell.trainable_params())(x)
    np.testing.assert_allclose([*arrays(dx), *arrays(dp)], [[6, 8], [3, 4]])
    np.testing.assert_allclose(ms.jvp(Scale(write), x, ops.ones_like(x))[1].asnumpy(), [6, 8])
    jacobian = ms.jacrev(Scale(write))(x)
    np.testing.assert_allclose(jacobian.asnumpy(), np.diag([6.0, 8.0]))


def test_a_parameter_given_as_an_argument_is_a_leaf_and_a_tensor_is_not() -> None:
    def f(p: Tensor, x: Tensor) -> Tensor:
        ops.assign(p, 2 * x)
        return x * p

    g, x = ms.jit(f), Tensor(3.0)
    for function in (f, g, ms.jit(f)):
        assert float(ms.grad(function, 1)(Parameter(Tensor(1.0)), x)) == 6
        assert float(ms.grad(function, 1)(Tensor(1.0), x)) == 12


def test_a_parameter_set_outside_is_not_the_tensor_it_was_set_to() -> None:
    x, p = Tensor(3.0), Parameter(Tensor(1.0), name="p")
    p.set_data(x)
    assert float(ms.grad(lambda x: x * p)(x)) == 3


def test_what_a_custom_derivative_assigns_stays_a_leaf() -> None:
    p = Parameter(Tensor(1.0), name="p")

    @ms.custom_vjp(lambda x, out, dout: (dout * 10,))
    def keep(x: Tensor) -> Tensor:
        ops.assign(p, 2 * x)
        return x * 1

    def f(x: Tensor) -> Tensor:
        return keep(x) + x * p

    for function in (f, ms.jit(f)):
        ops.assign(p, 1.0)
        dx, dp = ms.grad(function, 0, weights=[p])(Tensor(3.0))
        assert (float(dx), float(dp[0])) == (16, 3)


def test_a_step_in_place_costs_no_operator() -> None:
    net = nn.SequentialCell(nn.Dense(4, 4), nn.BatchNorm1d(4)).set_train()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())

    @ms.jit
    def step(x: Tensor) -> Tensor:
        loss, found = gradient(x)
        optimizer(found)
        return loss

    graph = run_graph_passes(step.graph(Tensor(np.ones((3, 4), np.float32))), CompileOptions())
    assert not [node for node in graph.walk() if node.op.name == "leaf_value"]
