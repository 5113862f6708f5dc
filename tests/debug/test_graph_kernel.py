"""Graph-kernel rewriting and fusion: right results, fewer operators, fewer kernels, flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, nn, ops
from tvmgraph.capture import record
from tvmgraph.config.graph_kernel import RULE_NAMES, GraphKernel, at_level, parse_flags
from tvmgraph.config.options import CompileOptions
from tvmgraph.core.op import F
from tvmgraph.eager import evaluate
from tvmgraph.errors import ConfigError, DTypeError
from tvmgraph.graph import Graph, check
from tvmgraph.passes.rules import RULES
from tvmgraph.passes.run import Show, run_graph_passes
from tvmgraph.passes.table import switches


@pytest.fixture(autouse=True)
def fresh_context() -> Iterator[None]:
    yield
    ms.reset_context()


def values(*shape: int, dtype: type = np.float32) -> np.ndarray:
    """Awkward numbers: zeros of both signs, infinities and NaN among ordinary ones."""
    array = np.random.default_rng(3).normal(size=shape).astype(dtype)
    flat = array.reshape(-1)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38]
    if array.dtype.kind == "f":
        flat[: len(special)] = special[: flat.size]
    return array


# ---- rules --------------------------------------------------------------------------------------

Body = Callable[..., Tensor]


def optimize(graph: Graph, kernels: GraphKernel, show: Show) -> Graph:
    """The graph after its passes."""
    return run_graph_passes(graph, CompileOptions(kernels=kernels), show)


F32, I32 = np.float32, np.int32

#: rule, function, dtype, operators that are left
CASES: list[tuple[str, Body, type, tuple[str, ...]]] = [
    ("mul_one", lambda x: x * 1.0, F32, ()),
    ("div_one", lambda x: x / 1.0, F32, ()),
    ("sub_zero", lambda x: x - 0.0, F32, ()),
    ("add_zero", lambda x: x + 0, I32, ()),
    ("add_positive_zero", lambda x: x + 0.0, F32, ()),
    ("mul_minus_one", lambda x: x * -1.0, F32, ("neg",)),
    ("neg_neg", lambda x: ops.neg(ops.neg(x)), F32, ()),
    ("add_neg", lambda x: ops.exp(x) + (-x), F32, ("exp", "sub")),
    ("sub_neg", lambda x: ops.exp(x) - (-x), F32, ("exp", "add")),
    ("even_of_neg", lambda x: ops.abs(-x), F32, ("abs",)),
    ("idempotent", lambda x: ops.relu(ops.relu(x)), F32, ("relu",)),
    ("pow_to_mul", lambda x: x**2, F32, ("mul",)),
    ("pow_to_root", lambda x: x**0.5, F32, ("sqrt",)),
    ("div_by_power_of_two", lambda x: x / 8.0, F32, ("mul",)),
    ("div_to_mul", lambda x: x / 3.0, F32, ("mul",)),
    ("reciprocal_of_sqrt", lambda x: ops.reciprocal(ops.sqrt(x)), F32, ("rsqrt",)),
    ("div_by_sqrt", lambda x: x / ops.sqrt(x), F32, ("rsqrt", "mul")),
    ("mul_constants", lambda x: (x * 3.0) * 5.0, F32, ("mul",)),
    ("add_constants", lambda x: (x + 3.0) + 5.0, F32, ("add",)),
    ("common_factor", lambda x: x * ops.sin(x) + x * ops.cos(x), F32, ("sin", "cos", "add", "mul")),
    ("transpose_chain", lambda x: ops.transpose(ops.transpose(x, (1, 0)), (1, 0)), F32, ()),
    ("reshape_chain", lambda x: ops.reshape(ops.reshape(x, (-1,)), (8, 3)), F32, ("reshape",)),
    ("no_change", lambda x: ops.broadcast_to(x, (4, 6)), F32, ()),
    ("value_of_leaf", lambda x: F.leaf_value(x, x * x), F32, ("mul",)),
    ("part_of_complex", lambda x: ops.real(ops.complex(x, x * x)), F32, ()),
    ("cast_chain", lambda x: x.astype(ms.float64).astype(ms.float16), F32, ("cast",)),
    (
        "integer_product",
        lambda x: ops.matmul(x.astype(ms.int32), x.astype(ms.int32).T),
        np.int8,
        ("matmul_integer",),
    ),
    ("where_same", lambda x: ops.where(x > 0, x, x), F32, ()),
    ("extreme_of_same", lambda x: ops.maximum(x, x), F32, ()),
]


def test_every_rule_has_a_case() -> None:
    assert [c[0] for c in CASES] == list(RULES)
    assert sorted(RULE_NAMES) == sorted(RULES)


@pytest.mark.parametrize(("name", "body", "dtype", "left"), CASES, ids=[c[0] for c in CASES])
def test_rule(name: str, body: Body, dtype: type, left: tuple[str, ...]) -> None:
    array = values(4, 6, dtype=dtype)
    graph = record(body, Tensor(array))
    kernel = parse_flags(f"--opt_level={1 if RULES[name].exact else 3}")
    shown: list[str] = []
    new = optimize(graph, kernel, lambda title, g: shown.append(title) or check(g))
    assert tuple(n.op.name for n in new.nodes) == left
    assert shown
    before, after = evaluate(graph, [array])[0], evaluate(new, [array])[0]
    assert before.dtype == after.dtype
    if RULES[name].exact:  # the same bits, but for the sign of NaN
        np.testing.assert_array_equal(after, before)
        finite = ~np.isnan(before)
        np.testing.assert_array_equal(np.signbit(after[finite]), np.signbit(before[finite]))
    else:
        ordinary = np.isfinite(before)
        np.testing.assert_allclose(after[ordinary], before[ordinary], rtol=2e-6)


@pytest.mark.parametrize("name", list(RULES))
def test_a_rule_can_be_switched_off(name: str) -> None:
    _, body, dtype, left = next(c for c in CASES if c[0] == name)
    graph = record(body, Tensor(values(4, 6, dtype=dtype)))
    others = [n for n in RULES if n != name and set(RULES[n].ops) & set(RULES[name].ops)]
    flags = parse_flags(f"--opt_level=3 --disable_pass={','.join([name, *others])}")
    assert tuple(n.op.name for n in optimize(graph, flags, lambda _, g: g).nodes) != left


def test_rules_enable_each_other_and_constants_fold_through() -> None:
    def f(x: Tensor) -> Tensor:
        return (((x * 2.0) * 0.5) + 0.0) ** 1 - ops.neg(ops.neg(ops.sin(x * 0.0)))

    graph = record(f, Tensor(values(3)))
    new = optimize(graph, at_level(3), lambda _, g: check(g))
    assert [n.op.name for n in new.nodes] == ["mul", "sin", "sub"]  # x may be inf


def test_what_is_not_exact_stays() -> None:
    graph = record(lambda x: (x + 0.0) / 3.0 * 5.0 * 7.0, Tensor(values(3)))
    new = optimize(graph, at_level(2), lambda _, g: g)
    assert [n.op.name for n in new.nodes] == ["add", "real_div", "mul", "mul"]
    lossy = record(lambda x: x.astype(ms.float16).astype(ms.float32), Tensor(values(3)))
    assert len(optimize(lossy, at_level(3), lambda _, g: g).nodes) == 2


# ---- fusion -------------------------------------------------------------------------------------


def layer_norm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    """A normalization written by hand."""
    d = x - x.mean(-1, keep_dims=True)
    return d * ops.rsqrt((d * d).mean(-1, keep_dims=True) + 1e-5) * g + b


def siblings(x: Tensor) -> tuple[Tensor, ...]:
    return ops.exp(x), ops.tanh(x), x * 2.0


def row_statistics(x: Tensor) -> tuple[Tensor, ...]:
    return x.sum(-1), (x * x).sum(-1), ops.amax(x, -1)


FUSED: list[tuple[str, Callable[..., object], int]] = [
    ("hand-written norm", lambda x: layer_norm(x, x[0], x[1]), 1),
    ("exp -> mean", lambda x: ops.exp(x).mean(-1), 1),
    ("multiply -> softmax", lambda x: ops.softmax(x * 0.125, -1), 1),
    ("softmax -> multiply", lambda x: ops.softmax(x, -1) * x, 1),
    ("elementwise siblings", siblings, 1),
    ("row siblings", row_statistics, 1),
    ("value used twice", lambda x: (ops.exp(x), ops.exp(x).sum(-1)), 1),
    ("different rows", lambda x: (x.sum(-1), x.sum(0)), 2),
    ("unit rows", lambda x: (x * 2) / ops.sqrt((x * x).sum(-1, keepdims=True)) + 1, 1),
    ("deviations", lambda x: (x - ops.std(x * 2, 1, keepdims=True)) * x, 1),
    ("composites between", lambda x: ops.gelu(ops.layer_norm(x * 2, (48,), x[0], x[1])) + x, 1),
    ("softmax between", lambda x: ops.silu(ops.log_softmax(x + 1, -1)) * x, 1),
    ("product between", lambda x: ops.softmax(ops.matmul(ops.exp(x), x), -1), 3),
]


@pytest.mark.parametrize(("name", "body", "kernels"), FUSED, ids=[c[0] for c in FUSED])
def test_fusion(name: str, body: Callable[..., object], kernels: int) -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(48, 48)).astype(np.float32))
    compiled, plain = jit(body), jit(body, jit_level="O1")
    found, wanted = compiled(x), body(x)
    plain(x)
    pair: Any = zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]
    for a, b in pair:
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-5, atol=2e-6)
    assert len(compiled.kernels()) == kernels, compiled.kernels()
    assert len(plain.kernels()) >= len(compiled.kernels())


def test_user_written_composite_becomes_one_kernel() -> None:
    class MyOp(nn.Cell):
        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            return ops.sub(ops.pow(x, 2.0), y)

    class MyNet(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.op = MyOp()

        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            a = ops.mul(x, 2.0)
            return ops.mul(a, self.op(a, y))

    x, y = Tensor(values(16, 16)[1:]), Tensor(values(16, 16)[1:])
    fused, plain = jit(MyNet()), jit(MyNet(), jit_level="O0")
    np.testing.assert_allclose(fused(x, y).asnumpy(), plain(x, y).asnumpy(), rtol=1e-6)
    assert (len(fused.kernels()), len(plain.kernels())) == (1, 4)


def test_gradients_of_fused_kernels() -> None:
    x = Tensor(np.random.default_rng(1).normal(size=(8, 32)).astype(np.float32))
    g, b = Tensor(np.ones(32, np.float32)), Tensor(np.zeros(32, np.float32))

    def loss(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
        return (layer_norm(x, g, b) ** 3).sum()

    for a, e in zip(ms.grad(jit(loss), (0, 1, 2))(x, g, b), ms.grad(loss, (0, 1, 2))(x, g, b)):
        np.testing.assert_allclose(a.asnumpy(), e.asnumpy(), rtol=1e-3, atol=1e-4)


# ---- settings -----------------------------------------------------------------------------------


def test_levels_switch_passes_on() -> None:
    assert [len(at_level(n).passes) for n in range(4)] == [0, 1, 4, 5]
    assert at_level(3).passes == set(switches())


def test_o3_does_what_o2_must_not() -> None:
    left = {}
    for level in ("O0", "O1", "O2", "O3"):
        f = jit(lambda x: (x * 3.0) * 5.0 / 7.0 + 0.0 * 1.0, jit_level=level)
        f(Tensor(values(8)))
        left[level] = len(f.fused_graph()[0].nodes)
    assert left["O2"] > left["O3"]
    assert left["O1"] == left["O2"] <= left["O0"]


def test_flags_change_kernels() -> None:
    x = Tensor(values(32, 32))
    counts = {}
    for flags in ("", "--disable_pass=rows,parallel", "--enable_parallel_fusion=false"):
        ms.set_context(enable_graph_kernel=True, graph_kernel_flags=flags)
        f = jit(lambda x: (*siblings(x), ops.exp(x).sum(-1)))
        f(x)
        counts[flags] = len(f.kernels())
    assert list(counts.values()) == [2, 4, 3]


def test_single_rules_can_be_left_out() -> None:
    x = Tensor(values(4, 4))
    for option in ("--disable_simplify_exprs", "--disable_pass"):
        settings = parse_flags(f"{option}=mul_one,sub_zero")
        assert settings.off == {"mul_one", "sub_zero"}
        graph = record(lambda x: (x * 1.0) - 0.0, x)
        assert len(optimize(graph, settings, lambda _, shown: shown).nodes) == 2
        assert not optimize(graph, parse_flags(""), lambda _, shown: shown).nodes


def test_changed_flags_compile_again_and_say_why() -> None:
    f = jit(lambda x: siblings(x))
    x = Tensor(values(8, 8))
    f(x)
    ms.set_context(enable_graph_kernel=True, graph_kernel_flags="--opt_level=1")
    f(x)
    f(x)
    assert f.compile_count == 2
    assert "--opt_level=1" in f.history[1].why
    assert len(f.kernels()) == 3


def test_enable_graph_kernel_lifts_o0() -> None:
    f = jit(lambda x: ops.exp(x).mean(-1), jit_level="O0")
    x = Tensor(np.ones((32, 32), np.float32))
    f(x)
    before = len(f.kernels())
    ms.set_context(enable_graph_kernel=True)
    f(x)
    assert len(f.kernels()) == 1 < before


def test_flags_as_backend_option() -> None:
    config = JitConfig(options={"graph_kernel_flags": "--opt_level=0"})
    f = jit(lambda x: siblings(x), jit_config=config)
    f(Tensor(values(8, 8)))
    assert len(f.kernels()) == 3


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--opt_levle=2", "--opt_level, --enable_pass"),
        ("--opt_level=7", "0, 1, 2 or 3"),
        ("--opt_level", "needs a value"),
        ("--disable_pass=bogus", "rows, parallel, .*freeze, .*mul_one"),
        ("--enable_pass=rows --disable_pass=rows", "enabled and disabled"),
        ("--enable_parallel_fusion=maybe", "true or false"),
        ("--opt_level=1 --opt_level=2", "twice"),
        ("--disable_simplify_exprs=rows", "names 'rows'"),
        ("--disable_expand_ops=Softmax", "composite operators are always split"),
        ("--enable_cluster_ops=Add", "decided by the loops"),
        ("--enable_horizontal_fusion=true", "--enable_parallel_fusion"),
        ("--online_tuning=1", "use jit_level O3"),
    ],
)
def test_wrong_flags(flags: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ms.set_context(graph_kernel_flags=flags)
    with pytest.raises(ConfigError, match=message):
        JitConfig(options={"graph_kernel_flags": flags})
    with pytest.raises(DTypeError):
        ms.set_context(graph_kernel_flags=3)
