"""From loops to machine code: nothing rearranges floats, vectors stay vectors, no spare checks."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.script import tirx as T

import tvmgraph as ms
from tvmgraph import JitConfig, Tensor, jit, ops
from tvmgraph.backend.cpu.codegen.outer_loops import keep_outer_loops
from tvmgraph.backend.cpu.codegen.pipeline import generate
from tvmgraph.backend.cpu.codegen.sharing import split_calls
from tvmgraph.backend.cpu.intrinsics import install as install_intrinsics
from tvmgraph.backend.cpu.schedule import schedule_cpu
from tvmgraph.backend.target import make_target
from tvmgraph.machine.processor import cpu_model

NUMBERS = np.array([1, 0, -2, 1e-30, 1e30, np.inf, -np.inf, np.nan], np.float32)
FORMULAS = {
    "x / (x - x)": lambda x: x / (x - x),
    "1 / (x - x)": lambda x: 1 / (x - x),
    "(x - x) ** -1": lambda x: (x - x) ** -1,
    "log(x - x)": lambda x: ops.log(x - x),
    "(x + c) - c": lambda x: (x + 1e8) - 1e8,
    "x * 0": lambda x: x * 0.0,
    "x - x, segments": lambda x: ops.concat((x - x, x / (x - x), x[:1] * 0.0)),
    "x - x, padded": lambda x: ops.pad(x / (x - x), [1, 2]),
    "x == x": lambda x: ops.select(x == x, x, x * 0.0),
}


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("name", FORMULAS)
def test_floats_are_no_reals(name, level):
    x = Tensor(NUMBERS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = FORMULAS[name](x).asnumpy()
        found = jit(FORMULAS[name], jit_level=level)(x).asnumpy()
    assert np.array_equal(found, expected, equal_nan=True)


REPEATED = {
    "fill": lambda x: ops.ones_like(x),
    "spread a number": lambda x: ops.broadcast_to(x[:1, :1], x.shape),
    "spread rows": lambda x: ops.broadcast_to(x[:, :1], x.shape),
    "repeat": lambda x: ops.tile(x[0, :1], (70000,)),
    "derivative of a sum": ms.grad(lambda x: x.sum()),
}


@pytest.mark.parametrize("name", REPEATED)
def test_vectors_of_one_bfloat16(name):
    x = Tensor(np.linspace(-3, 3, 300 * 300).reshape(300, 300), ms.bfloat16)
    found = jit(REPEATED[name])(x)
    assert found.dtype == ms.bfloat16
    assert np.array_equal(found.asnumpy(), REPEATED[name](x).asnumpy())


def _product(m=48, n=64, k=32) -> tvm.IRModule:
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    i = te.reduce_axis((0, k), name="i")
    c = te.compute((m, n), lambda r, s: te.sum(a[r, i] * b[i, s], axis=i), name="c")
    func = te.create_prim_func([a, b, c]).with_attr("global_symbol", "product")
    install_intrinsics()
    return schedule_cpu(tvm.IRModule({"product": func}), cpu_model(), 2)


def test_vectors_stay_vectors():
    """A vector that LLVM is given in pieces costs it more time than all the rest."""
    text = generate(_product(), make_target("host", 0)).inspect_source("ll")
    assert text.count("insertelement") < text.count("\n") // 10
    assert text.count("llvm.fmuladd.v") > 4


def _weak_symbols(target) -> list[str]:
    lines = generate(_product(), target).inspect_source("ll").splitlines()
    return [line.split("@")[1].split("(")[0] for line in lines if line.startswith("define weak")]


def test_processors_that_convert_half_precision_get_no_functions_for_it():
    """They took longer to compile than a small kernel."""
    converting = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v3", "mattr": ["+f16c"]})
    assert not _weak_symbols(converting)
    plain = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64-v2"})
    assert sorted(_weak_symbols(plain)) == ["__extendhfsf2", "__truncsfhf2"]


def test_kernels_check_arguments_only_for_strangers():
    trusting = generate(_product(), make_target("host", 1)).inspect_source("ll")
    checked = generate(_product(), make_target("host", 1), checked=True).inspect_source("ll")
    assert "Mismatched" not in trusting
    assert "Mismatched" in checked


@T.prim_func(s_tir=True)
def positive(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "positive"})
    assert x[0] > T.float32(0), "the first element must be positive"
    for i in range(4):
        with T.sblock("copy"):
            j = T.axis.remap("S", [i])
            y[j] = x[j]


def test_assertions_of_a_kernel_are_kept():
    run = generate(tvm.IRModule({"positive": positive}), make_target())["positive"]
    x, y = (tvm.runtime.tensor(np.full(4, v, np.float32)) for v in (1, 0))
    run(x, y)
    assert np.array_equal(y.numpy(), np.ones(4))
    with pytest.raises(RuntimeError, match="must be positive"):
        run(tvm.runtime.tensor(-np.ones(4, np.float32)), y)


def test_calls_are_a_part_of_their_own():
    part = _product()
    same, nothing = split_calls(part)
    assert nothing is None
    assert same.same_as(part)
    kernel = tirx.Evaluate(tirx.call_cpacked("product", 1))
    caller = tirx.PrimFunc([], kernel).with_attr("global_symbol", "__vmtir__main")
    kernels, callers = split_calls(tvm.IRModule({**part.functions, "__vmtir__main": caller}))
    assert callers is not None
    assert [v.name_hint for v in kernels.functions] == ["product"]
    assert {v.name_hint for v in callers.functions} == {"__vmtir__main", "forward_product"}
    assert "forward_product" in callers["__vmtir__main"].script()


def test_native_calls_compute_the_same():
    def chain(x):
        for i in range(12):
            x = ops.softmax(x * (i + 1)) + x.sum(1, keepdims=True)
        return x

    x = Tensor(np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32))
    native = jit(chain, jit_config=JitConfig(exec_mode="sink"))
    assert np.allclose(native(x).asnumpy(), chain(x).asnumpy(), rtol=1e-5)
    assert "native host code" in native.explain()


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize(
    "formula",
    [
        lambda x: ops.mish(ops.mish(ops.mish(x))),
        lambda x: ops.log(1 + ops.exp(ops.tanh(ops.log(1 + ops.exp(x))))),
        lambda x: ops.pad(ops.logsigmoid(ops.exp(ops.tanh(x))), [1, 2]),
        ops.erfinv,
        lambda x: ops.igamma(ops.exp(x), ops.exp(2 * x)),
        lambda x: ops.zeta(2 + ops.exp(x), ops.exp(x)),
    ],
)
@pytest.mark.parametrize("size", [1, 37])
def test_formulas_of_formulas_take_no_time_to_compile(formula, level, size):
    """Every one of them took half a second to some minutes when bindings stayed bindings."""
    x = Tensor(np.linspace(-0.9, 0.9, size, dtype=np.float32))
    compiled = jit(formula, jit_level=level)
    np.testing.assert_allclose(compiled(x).asnumpy(), formula(x).asnumpy(), rtol=2e-5, atol=1e-6)
    assert compiled.history[0].compile_seconds < 30  # on a busy machine, TVM's import included


# ---- what random programs found -----------------------------------------------------------------


BACKWARDS = {
    "repeated": lambda x: ops.tile(x, (1, 2))[:, ::-1],
    "repeated, cut": lambda x: ops.relu(ops.tile(x.reshape(-1), (2,))[:11])[::-1],
    "repeated, rolled": lambda x: ops.roll(ops.tile(x, (1, 2)), 3, -1)[:, ::-1],
    "repeated, every second": lambda x: ops.tile(x, (1, 3))[::-1, 9::-2] * 2,
}


@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("name", BACKWARDS)
def test_remainders_that_run_backwards(name, level):
    x = Tensor(np.arange(8, dtype=np.float32).reshape(2, 4))
    found = jit(BACKWARDS[name], jit_level=level)(x).asnumpy()
    np.testing.assert_array_equal(found, BACKWARDS[name](x).asnumpy())


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_one_formula_in_two_kernels_that_become_one(level):
    def f(x):
        y = ops.bessel_i1(ops.cast(x, ms.float32))
        return 2 - y, y * x

    x = Tensor(np.arange(17, dtype=np.uint8))
    for found, expected in zip(jit(f, jit_level=level)(x), f(x)):
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=2e-5)


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_booleans_between_the_loops_of_a_kernel(level):
    def f(x):
        mask = x != 2
        mask[mask > 0] = 0
        return mask, ops.where(mask > 0, x == x, mask)

    x = Tensor(np.arange(5, dtype=np.uint32))
    for found, expected in zip(jit(f, jit_level=level)(x), f(x)):
        np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_numbers_wrap_when_they_are_negated(dtype):
    x = Tensor(np.array([0, 1, 2, np.iinfo(dtype).max], dtype))
    for f in (lambda x: -x, lambda x: ops.abs(-x), lambda x: ops.maximum(-x, x)):
        for level in ("O0", "O2"):
            found = jit(f, jit_level=level)(x).asnumpy()
            np.testing.assert_array_equal(found, f(x).asnumpy())


def test_truth_of_bfloat16():
    x = Tensor(np.array([[0, 1, 2], [np.nan, 1, 1], [0, 0, 0]]), ms.bfloat16)
    for f in (lambda x: ops.all(x, 1), lambda x: ops.any(x, 1)):
        np.testing.assert_array_equal(jit(f)(x).asnumpy(), f(x).asnumpy())


@T.prim_func(s_tir=True)
def image_sums(x: T.Buffer((8, 6, 98), "float32"), y: T.Buffer((1,), "float32")):
    T.func_attr({"global_symbol": "image_sums"})
    y[0] = T.float32(0)
    for i in range(8):
        for j in range(6):
            for k in range(98):
                y[0] = y[0] + x[i, j, k]
    for i in range(8):
        for j in range(6):
            y[0] = y[0] + x[i, j, 0]


def test_loops_around_long_loops_stay_loops():
    kept = keep_outer_loops(tvm.IRModule({"image_sums": image_sums}))["image_sums"]
    extents = []
    tvm_ffi.structural_walk(kept.body, (tirx.For, lambda loop: extents.append(loop.extent)))
    constant = {e.value for e in extents if isinstance(e, tirx.IntImm)}
    assert constant == {98, 8, 6} and len(extents) == 5
    assert sum(not isinstance(e, tirx.IntImm) for e in extents) == 2  # around the first sum
    library = generate(tvm.IRModule({"image_sums": image_sums}), make_target())
    x = np.random.default_rng(0).standard_normal((8, 6, 98)).astype(np.float32)
    y = tvm.runtime.tensor(np.zeros(1, np.float32))
    library["image_sums"](tvm.runtime.tensor(x), y)
    np.testing.assert_allclose(y.numpy()[0], x.sum() + x[..., 0].sum(), rtol=1e-4, atol=1e-4)
    assert library.inspect_source("ll").count('asm ""') == 2  # and LLVM has not copied them
