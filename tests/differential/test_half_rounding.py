"""Half precision is rounded where eager code rounds it; with "fast" where a kernel stores it."""

from __future__ import annotations

import math
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tvmgraph as ms
from tests.differential.harness import LEVELS, MANY, SEED, arrays, at, defined
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.errors import ConfigError

TOGETHER = 8  # programs that are compiled as one function
KINDS = (ms.bfloat16, ms.float16)


class Program:
    """Writes functions ``f0(x, y, c)``, ... of tensors of half precision.

    Their operators are exact functions, rounded once, so that results must be equal bit by bit.
    """

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def source(self) -> str:
        functions = "\n".join(self.function(i) for i in range(TOGETHER))
        calls = ", ".join(f"f{i}(x, y, c)" for i in range(TOGETHER))
        return f"{functions}\ndef f(x, y, c):\n    return {calls}\n"

    def function(self, number: int) -> str:
        lines = [f"def f{number}(x, y, c):", "    z = x"]
        lines += [
            f"    {self.r.choice('xyz')} = {self.value()}" for _ in range(self.r.randint(3, 9))
        ]
        return "\n".join([*lines, f"    return {self.r.choice(['z', 'x, z', 'z + y', 'z * x'])}\n"])

    def value(self) -> str:
        a, b, k = self.r.choice("xyz"), self.r.choice("xyz"), self.r.choice(["0.3", "3", "0.125"])
        return self.r.choice([
            f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"{a} * {b} + {a}", f"{a} - {b} * {a}",
            f"{a} / ({b} * {b} + 1)", f"{a} * {k}", f"{a} + {k}", f"{a} / {k}", f"-{a}",
            f"ops.maximum({a}, {b})", f"ops.relu({a}) * {k}", f"ops.abs({a}) + {b}",
            f"ops.where({a} > {b}, {a} * {b}, {b})", f"ops.square({a})", f"{a} ** 3",
            f"ops.sqrt(ops.abs({a}))", f"({a}.astype(ms.float32) * {k}).astype(x.dtype)",
            f"({a}.astype(ms.float32) * {k}).astype(x.dtype).astype(ms.float32).astype(x.dtype)",
            f"{a} * c", f"{a} - c", f"ops.minimum({a} * {b}, {k})", f"{a}.T.T * {b}",
            f"{a} + {b}.max(-1, keepdims=True)", f"({a} * c).astype(ms.float32).astype(x.dtype)",
        ])  # fmt: skip


def given(seed: int, kind: Any) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    shapes = ((5, 33), (5, 33), (33,))
    return [Tensor(rng.uniform(-2, 2, s).astype(np.float32)).astype(kind) for s in shapes]


def bits_differ(a: np.ndarray, b: np.ndarray) -> bool:
    return not np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_programs_round_as_eager_code_does(level: str, kind: Any) -> None:
    for seed in range(SEED, SEED + MANY):
        source, xs = Program(seed).source(), given(seed, kind)
        with defined(source) as names, np.errstate(all="ignore"):
            found = at(names["f"], level)(*xs)
            for i in range(TOGETHER):
                pairs = zip(arrays((names[f"f{i}"](*xs),)), arrays((found[i],)), strict=True)
                where = f"seed {seed}, f{i}, {level}, {kind}\n{source}"
                assert not any(bits_differ(a, b) for a, b in pairs), where


@pytest.mark.parametrize("rounding", ["eager", "fast"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_an_explicit_cast_rounds(level: str, kind: Any, rounding: str) -> None:
    def f(x: Tensor) -> Tensor:
        return (x * 3).astype(kind).astype(ms.float32) * 0.1

    x = Tensor(np.random.default_rng(0).normal(size=(64,)).astype(np.float32))
    config = JitConfig(jit_level=level, options={"half_rounding": rounding})
    found = jit(f, jit_config=config)(x).asnumpy()
    np.testing.assert_array_equal(found, f(x).asnumpy())


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_fast_keeps_float32_inside_of_a_kernel(kind: Any) -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        return (x * y + y) * x - y

    x, y, _ = given(0, kind)
    exact, fast = (
        jit(f, jit_config=JitConfig(options={"half_rounding": r})) for r in ("eager", "fast")
    )
    wide = f(x.astype(ms.float32), y.astype(ms.float32)).astype(kind)
    assert not bits_differ(arrays((fast(x, y),))[0], arrays((wide,))[0])
    assert not bits_differ(arrays((exact(x, y),))[0], arrays((f(x, y),))[0])
    assert bits_differ(arrays((wide,))[0], arrays((f(x, y),))[0])
    assert len(fast.graph(x, y).nodes) == 4


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_round_between_each_other_and_not_inside(kind: Any) -> None:
    """Within the error of float32: one step of the last place of the result at most."""

    def f(x: Tensor, y: Tensor, c: Tensor) -> Any:
        n = ops.layer_norm(x * y, (33,), c, c)
        return n, ops.softmax(x + y, -1), ops.gelu(x * y) + y, ops.mean(x * y - c, -1)

    xs = given(1, kind)
    step = float(np.spacing(np.float16(1))) if kind is ms.float16 else 2.0**-7
    for level in LEVELS:
        for a, b in zip(arrays(f(*xs)), arrays(at(f, level)(*xs)), strict=True):
            np.testing.assert_allclose(b.astype(np.float32), a.astype(np.float32), step, step / 64)
            assert np.mean(a != b) < 0.05


@pytest.mark.parametrize("level", LEVELS)
def test_nan_with_any_bits_stays_nan(level: str) -> None:
    bits = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800000, 0x7F7FFFFF, 1], np.uint32)
    x = Tensor(bits.view(np.float32))

    def f(x: Tensor) -> Any:
        low = x.astype(ms.bfloat16)
        return low, low.astype(ms.float32), (low + low).astype(ms.float32)

    with np.errstate(all="ignore"):
        for a, b in zip(arrays(f(x)), arrays(at(f, level)(x)), strict=True):
            np.testing.assert_array_equal(b, a)


def test_a_wrong_setting_names_the_right_ones() -> None:
    with pytest.raises(ConfigError, match="half_rounding cannot be 'slow'"):
        JitConfig(options={"half_rounding": "slow"})


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
@np.errstate(all="ignore")  # the largest numbers have no next one
def test_gelu_of_every_number(kind: Any, approximate: str) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(kind)
    x = every[np.isfinite(every.astype(np.float64))]

    def gelu(t: Tensor) -> Tensor:
        return ops.gelu(t, approximate=approximate)

    found, eager = (f(Tensor(x)).asnumpy() for f in (jit(gelu), gelu))
    apart = np.abs(found.astype(np.float64) - eager.astype(np.float64))
    assert np.all(apart <= np.abs(np.spacing(eager)).astype(np.float64))
    if approximate == "none":
        wide = [0.5 * v * math.erfc(-v * math.sqrt(0.5)) for v in x.astype(np.float64).tolist()]
        exact = np.array(wide).astype(kind)
        least = np.abs(np.spacing(exact)).astype(np.float64)
        assert np.all(np.abs(eager.astype(np.float64) - exact.astype(np.float64)) <= least)
