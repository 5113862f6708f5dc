"""Products of bfloat16 and int8 by instructions that sum several products per lane."""

import re

import numpy as np
import pytest
from driver import THREADS, arrays, call, check, compile_module, kernels, module
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.relax import op

import tvmgraph as ms
from tvmgraph import Tensor, jit, ops
from tvmgraph.machine.processor import cpu_model


def _build(turned, out):
    def build(bb, x, w):
        w = bb.emit(op.permute_dims(w)) if turned else w
        return op.matmul(x, w, out_dtype=out)

    return build


def _specs(m, k, n, turned, dtype):
    return ((m, k), dtype), ((n, k) if turned else (k, n), dtype)


def _expected(rows, dtype):
    """What a product is made of: tiles where the processor has them and the rows fill one."""
    model = cpu_model("host", THREADS)
    if dtype in model.tile_types and rows >= 16:
        return {"tile_dot"}
    pairs = dtype == "int8" and model.sums_pairs_of_bytes
    return {"dot"} if pairs or dtype in model.dot_types else set()


def _found(text, dtype):
    return set(re.findall(rf"tvmgraph_(tile_dot|dot)_{dtype}", text))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    st.sampled_from([8, 9, 17, 40]), st.sampled_from([4, 12, 64, 76, 130]),
    st.sampled_from([16, 17, 48, 65, 100]), st.booleans(), st.sampled_from(["bfloat16", "int8"]),
)  # fmt: skip
def test_any_size(m, k, n, turned, dtype):
    out = "float32" if dtype == "bfloat16" else "int32"
    check(
        _build(turned, out),
        lambda x, w: x.astype("float64") @ (w.T if turned else w).astype("float64"),
        *_specs(m, k, n, turned, dtype),
        tolerance=1e-6,
    )


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype, out", [("bfloat16", "float32"), ("int8", "int32")])
def test_many_columns_in_wide_panels(turned, dtype, out):
    check(
        _build(turned, out),
        lambda x, w: x.astype("float64") @ (w.T if turned else w).astype("float64"),
        *_specs(17, 44, 805, turned, dtype),
        tolerance=1e-6,
    )


@pytest.mark.parametrize("turned", [False, True])
def test_whole_range_of_bytes(turned):
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape).astype("int8") for shape in ((33, 200), (200, 70)))
    w = np.ascontiguousarray(w.T) if turned else w
    specs = _specs(33, 200, 70, turned, "int8")
    got = call(compile_module(module(_build(turned, "int32"), *specs)), [x, w])[0]
    np.testing.assert_array_equal(got, x.astype("int64") @ (w.T if turned else w).astype("int64"))


@pytest.mark.parametrize("dtype, out", [("bfloat16", "float32"), ("int8", "int32")])
def test_the_instruction_is_used_where_the_processor_has_it(dtype, out):
    text = kernels(module(_build(False, out), *_specs(32, 64, 64, False, dtype)))
    assert _found(text, dtype) == _expected(32, dtype)


def test_values_that_are_not_finite():
    x, w = arrays(*_specs(16, 32, 32, False, "bfloat16"))
    x[3, 4], x[5, 6], w[7, 8] = np.nan, np.inf, -np.inf
    got = call(compile_module(module(_build(False, "float32"), *_specs(16, 32, 32, False,
               "bfloat16"))), [x, w])[0]  # fmt: skip
    want = x.astype("float64") @ w.astype("float64")
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def test_products_of_bytes_in_a_graph():
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape).astype("int8") for shape in ((40, 64), (48, 64)))

    def product(a, b):
        return ops.matmul(a.astype(ms.int32), b.astype(ms.int32).T) + 1

    def bytes_of(a, b):
        return ops.matmul_integer(a, b.T) + 1

    for function in (product, bytes_of):
        compiled = jit(function)
        got = compiled(Tensor(x), Tensor(w)).asnumpy()
        np.testing.assert_array_equal(got, x.astype("int64") @ w.T.astype("int64") + 1)
        assert len(compiled.kernels()) == 1


@pytest.mark.parametrize("m, k", [(1, 32), (1, 100), (4, 70), (3, 20), (9, 300), (70, 257)])
@pytest.mark.parametrize("dtype, out, least", [("bfloat16", "float32", 32), ("int8", "int32", 64)])
def test_few_rows_along_the_depth(m, k, dtype, out, least):
    specs = _specs(m, k, 37, True, dtype)
    build = _build(True, out)
    inputs = None
    if dtype == "int8":
        rng = np.random.default_rng(0)
        inputs = [rng.integers(-128, 128, shape).astype("int8") for shape, _ in specs]
    check(
        build, lambda x, w: x.astype("float64") @ w.T.astype("float64"), *specs,
        tolerance=1e-6 if dtype == "bfloat16" else 0, inputs=inputs,
    )  # fmt: skip
    one = relax.transform.FuseTransposeMatmul()(module(build, *specs))
    least = 32 if cpu_model("host", THREADS).sums_pairs_of_bytes else least
    assert _found(kernels(one), dtype) == (_expected(m, dtype) if k >= least else set())
