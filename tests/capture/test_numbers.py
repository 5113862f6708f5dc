"""Python numbers that a tensor decides: class, value and errors are those of plain Python."""

from __future__ import annotations

import linecache
import math
import types
from typing import Any

import numpy as np
import pytest

from tvmgraph import JitConfig, Tensor, jit, mint, ops
from tvmgraph import dtypes as ms

#: Results of a function in which a tensor decides about an int, a float and a bool.
ONE_GRAPH = """
-s, +s, ~s, abs(-s), -f, abs(f), -b, +b
s > 1, f > 0.5, s == 2, s != 2, f <= 0.5, s == f, s != None
s + 1, s - 1, s * 2, s / 2, s // 2, s % 2, s ** 2, 1 + s, 1 - s, 2 * s
f + 1, f * 2, f / 2, (f * 10) // 0.1, (f * 10) % 0.1, f ** 2, s + f, s * f
b + 1, b * 2, b + b, b & True, b | s, b ^ True, b / 2, s & 1, s | 4, s ^ 1
not s, not b, bool(s), bool(f), int(s), float(s), float(f), type(s), type(b)
isinstance(s, int), isinstance(s, Tensor), isinstance(f, float), s is None
max(s, 2), min(s, 2), s and 2, (s > 1) + 1, sum([s, s, 1]), sum([f, f])
x + s, x * f, x / s, x ** s, x % f, s + x, f * x, s / x, x > s, x + b
k + s, k * f, k / s, k // s, s - k, f - k, k > f, k == s, k + b, k.astype(ms.int8) * s
h + s, h * f, h / s, h - f, x.astype(ms.float64) * f
ops.add(x, s), ops.mul(h, f), ops.add(k, f), ops.sub(k, s), ops.pow(x, s)
mint.clamp(x, f, s), ops.clamp(k, 1, s), ops.where(x > 0, x, f), ops.where(x > 0, f, x)
x.masked_fill(x > 0, f), ops.stop_gradient(x * s), ops.lerp(x, x + 1, f), x * (s == 1)
[s, f, b], (s, (f,)), {"a": s}, [i * s for i in range(3)]
""".strip().splitlines()  # fmt: skip
#: What Python must do, since a number decides about more than values, or may raise.
BREAKS = """
7 // (s - 1), s / (s - 3)
~b, ~f, s + 2 ** 70, 2 ** (s - 2), (s - 2) ** 0.5, (-f) ** f, s ** -1
str(s), f"{s} {f:.2f}", "%d" % s
(s, f) == (1, 0.1), [1, 2, 3, 4][s], [10] * s, x[:s], {1: "a", 2: "b", 3: "c"}.get(s), s in (1, 2)
round(f), round(f, 1), math.floor(f), math.sqrt(s), divmod(s, 2), complex(s, 1), s * 1j
max(s, 1.5), s if s > 1 else f, s or f, x if b else 2, x.sum() if s > 1 else s
np.float32(f) + s, s.bit_length(), f.is_integer(), f.nothing
Tensor(s), Tensor([s, 2]), ops.zeros(s), x.reshape(s // s, -1), mint.full((2,), f), ops.eye(s)
""".strip().splitlines()  # fmt: skip
INPUTS = ([1.0, 2.0], [-1.0, -2.0], [3.0, 0.5])


def define(result: str) -> Any:
    source = (
        "def f(x, k, h):\n    if x.sum() > 0:\n        s, f, b = 1, 0.1, True\n"
        f"    else:\n        s, f, b = 3, 0.7, False\n    return ({result},)\n"
    )
    name = f"<{result}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    module = types.ModuleType("numbers_of_users")
    vars(module).update(Tensor=Tensor, ops=ops, mint=mint, math=math, np=np, ms=ms)
    exec(compile(source, name, "exec"), vars(module))
    return vars(module)["f"]


def outcome(function: Any, values: list[float]) -> Any:
    given = [Tensor(np.array(values, d)) for d in (np.float32, np.int32, np.float16)]
    try:
        return shown(function(*given))
    except Exception as e:
        return type(e), str(e).splitlines()[0]


def shown(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.dtype, value.shape, value.asnumpy().tolist()
    if isinstance(value, (tuple, list)):
        return [type(value), *map(shown, value)]
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    return type(value), value


@pytest.mark.parametrize("result", ONE_GRAPH)
def test_arithmetic_stays_in_the_graph(result: str) -> None:
    function = define(result)
    compiled = jit(function, jit_config=JitConfig(jit_level="O0"))
    for values in INPUTS:
        assert outcome(compiled, values) == outcome(function, values)
    assert compiled.compile_count == 1 and "graph break" not in compiled.explain()


@pytest.mark.parametrize("result", BREAKS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_needs_the_number_is_left_to_python(result: str) -> None:
    function = define(result)
    compiled = jit(function, jit_config=JitConfig(jit_level="O0"))
    for values in INPUTS:
        assert outcome(compiled, values) == outcome(function, values)


def changing(x: Tensor) -> Any:
    s = 0
    while x.sum() < 5:
        x = x + 1
        s = s + 0.5
    return s, x.astype(ms.int32) * s


def beside_a_tensor(x: Tensor) -> Any:
    s = 0
    if x.sum() > 0:
        s = x.sum()
    return x * s


def counted(x: Tensor) -> Any:
    n, step = 0, 1.0
    while x.sum() < 10:
        x = x + step
        n, step = n + 1, step * 0.9
    return n, n * 0.5, step, [x, x * n]


def chosen(x: Tensor) -> Any:
    return 1 if x.sum() > 0 else 0.5


def returned(x: Tensor) -> Any:
    for i in range(4):
        if x.sum() > i:
            return i
    return 0.1


@pytest.mark.parametrize("function", [changing, beside_a_tensor, counted, chosen, returned])
def test_a_number_keeps_its_class(function: Any) -> None:
    compiled = jit(function, jit_config=JitConfig(jit_level="O0"))
    for values in ([1.0, 2.0], [-1.0, -2.0], [3.0, 4.0], [0.0, 0.0]):
        x = Tensor(np.array(values, np.float32))
        assert shown(compiled(x)) == shown(function(x))


def test_strict_code_takes_a_tensor_for_a_number_beside_one() -> None:
    strict = jit(beside_a_tensor, fullgraph=True)
    for values in INPUTS:
        x = Tensor(np.array(values, np.float32))
        assert shown(strict(x)) == shown(beside_a_tensor(x))
    assert strict.compile_count == 1


def test_constants_alone_decide_a_number() -> None:
    def sizes(x: Tensor) -> Any:
        k = Tensor([2, 3])
        return [x] * int(k[0]), x.sum(axis=k[1] - 2), x.reshape(k[1], k[0]), (k + 1).tolist()

    def inside(x: Tensor) -> Tensor:
        k, axis = Tensor([1.5, 0.5]), ops.zeros((2,), ms.int64)
        axis[1] += 1
        if x.sum() > 3:
            return ops.concat((x, x), axis[1].item()) * float(k[0])
        return ops.concat((x, x), axis[1].item()) * float(k.sum())

    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for function in (sizes, inside):
        compiled = jit(function, fullgraph=True)
        for value in (x, x * 0):
            assert str(compiled(value)) == str(function(value))
        assert compiled.compile_count == 1
