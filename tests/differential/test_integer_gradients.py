"""Gradients by integers through branches, loops and compiled functions: as in eager code."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.differential.harness import LEVELS, MANY, SEED, assert_same, at, compiling, defined
from tvmgraph import Tensor, ops

HEADER = """
@jit
def inner(a, x):
    if a.sum() > 4:
        x = x * a
    return a * 2, x

@ms.custom_vjp(lambda a, b, out, dout: (dout * 3, dout))
def tripled(a, b):
    return a * 3 + b
"""
COUNT, COMPILED_EVERY = 48 * MANY, 16


class Program:
    """Writes ``f(a, b, x)``: two integer tensors and a float one."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []

    def source(self) -> str:
        self.block(1, self.r.randint(3, 6))
        result = self.r.choice(["a * b, x", "a, b, x", "a", "x", "(x * a).sum(), b"])
        lines = "\n".join([*self.lines, f"    return {result}"])
        return f"{HEADER}\ndef f(a, b, x):\n{lines}\n"

    def block(self, depth: int, count: int) -> None:
        for _ in range(count):
            kinds = [self.step] * 3 + ([self.branch, self.loop, self.call] if depth < 4 else [])
            self.r.choice(kinds)(depth)

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def step(self, depth: int) -> None:
        self.emit(depth, self.r.choice([
            "a = a + b", "b = b * 2 - a", "a = a % 7 * b", "x = x * a.astype(x.dtype)",
            "x = x + b * 0.5", "a += 1", "b = ops.maximum(a, b)", "a = -a",
            "a = x.astype(a.dtype) + b", "x = ops.tanh(x)", "b = ops.where(a > b, a, b)",
        ]))  # fmt: skip

    def test(self) -> str:
        return self.r.choice(["a.sum() < b.sum()", "x.sum() > 0", "a.sum() > 2", "b.max() < 6"])

    def branch(self, depth: int) -> None:
        self.emit(depth, f"if {self.test()}:")
        self.block(depth + 1, 2)
        if self.r.random() < 0.6:
            self.emit(depth, "else:")
            self.block(depth + 1, 1)

    def loop(self, depth: int) -> None:
        self.emit(depth, f"for i in range({self.r.randint(2, 3)}):")
        self.emit(depth + 1, f"if {self.test()}:")
        self.emit(depth + 2, "break")
        self.block(depth + 1, 2)

    def call(self, depth: int) -> None:
        self.emit(depth, self.r.choice([
            "a, x = inner(a, x)", "a = tripled(a, b)", "x = ms.recompute(lambda v, w=b: v * w, x)",
            "x = x + ms.grad(lambda v: v * v * 2)(a)",
        ]))  # fmt: skip


def run(seed: int, level: str | None) -> None:
    source = Program(seed).source()
    rng = np.random.default_rng(seed)
    shape = [(), (1,), (3,)][seed % 3]
    kind = [np.int32, np.int64, np.int8][seed // 3 % 3]
    a, b = rng.integers(-3, 6, (2, *shape)).astype(kind)
    given = [Tensor(a), Tensor(b), Tensor(rng.uniform(-1, 1, shape).astype(np.float32))]
    by = ops.GradOperation(get_all=True)
    where = f"seed {seed}, {level}: {[t.asnumpy() for t in given]}\n{source}"
    with defined(source) as names, compiling(level is not None), np.errstate(all="ignore"):
        wanted = by(names["f"])(*given)
        assert_same(wanted, by(at(names["f"], level or "O0"))(*given), where, 1e-5)
        assert_same(wanted, at(by(names["f"]), level or "O0")(*given), where, 1e-5)


def test_programs() -> None:
    for i in range(COUNT):
        run(SEED + i, LEVELS[i // COMPILED_EVERY % 3] if i % COMPILED_EVERY == 0 else None)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_branch_that_a_tensor_decides(level: str, shape: tuple[int, ...]) -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        if x < y:
            y += x
        return x * y

    given = [Tensor(np.full(shape, v, np.int32)) for v in (2, 3)]
    dx, dy = ops.GradOperation(get_all=True)(at(f, level))(*given)
    assert (dx.asnumpy(), dy.asnumpy()) == (7, 2)
    assert dx.dtype is given[0].dtype


def test_derivatives_of_derivatives_through_a_loop() -> None:
    def f(n: Tensor, x: Tensor) -> Tensor:
        while (n * x).sum() < 50:
            x = x * n
            n = n + 1
        return x * n

    given = Tensor([2], dtype="int32"), Tensor([1.5])
    by = ops.GradOperation(get_all=True)
    twice = by(lambda n, x: by(f)(n, x)[1])
    compiled = by(lambda n, x: by(at(f, "O1"))(n, x)[1])
    assert_same(twice(*given), compiled(*given), "", 1e-5)
    assert_same(twice(*given), at(twice, "O1")(*given), "", 1e-5)
