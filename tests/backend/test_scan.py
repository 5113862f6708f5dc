"""Running sums and products against NumPy, over odd sizes, axes and types."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvmgraph import Tensor, jit, ops
from tvmgraph.core.op import F

_SHAPES = [(1,), (17,), (5, 64), (3, 100), (2, 33, 5), (4, 3, 40), (3, 21, 1), (70_003,)]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.sampled_from(_SHAPES),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["float32", "float64", "float16", "int32", "int64", "int8"]),
)
def test_running_sum_as_in_numpy(shape, axis, exclusive, reverse, dtype):
    axis %= len(shape)
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    run = jit(lambda x: F.running_sum(x, axis=axis, exclusive=exclusive, reverse=reverse))
    got = run(Tensor(x)).asnumpy()
    turned = np.flip(x, axis) if reverse else x
    want = turned.astype("float64").cumsum(axis) - (turned if exclusive else 0)
    want = (np.flip(want, axis) if reverse else want).astype(dtype)
    np.testing.assert_array_equal(got, want)
    assert "scan" in run.kernels()


@pytest.mark.parametrize("shape, axis", [((6, 50), 1), ((50, 6), 0), ((40_000,), 0)])
def test_running_product_as_in_numpy(shape, axis):
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype("float32")
    got = jit(lambda x: F.running_product(x, axis=axis))(Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, x.astype("float64").cumprod(axis), rtol=1e-3)


def test_half_precision_is_summed_in_float32():
    x = np.ones(4096, np.float16)
    got = jit(lambda x: F.running_sum(x, axis=0, exclusive=False, reverse=False))(Tensor(x))
    assert got.asnumpy()[-1] == 4096  # a float16 sum of ones stops growing at 2048


def test_results_larger_than_the_caches():
    x = np.ones((3, 1 << 22), np.float32)
    got = jit(lambda x: F.running_sum(x, axis=1, exclusive=False, reverse=True))(Tensor(x))
    want = np.arange(1 << 22, 0, -1, dtype=np.float32)
    np.testing.assert_array_equal(got.asnumpy(), np.broadcast_to(want, x.shape))


@pytest.mark.parametrize(
    "shape, axis", [((2, 64), 1), ((256, 1024), 1), ((64, 33), 0), ((33_003,), 0)]
)
def test_running_log_sum_exp_as_in_numpy(shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    x.flat[:2], x.flat[-3:] = -np.inf, (np.inf, np.inf, np.nan)
    got = jit(lambda x: ops.logcumsumexp(x, axis))(Tensor(x)).asnumpy()
    with np.errstate(invalid="ignore"):
        want = np.logaddexp.accumulate(x.astype("float64"), axis)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes_need_no_places(name):
    x = np.random.default_rng(5).integers(-9, 9, (5, 37)).astype("float32")
    x[2, 11] = np.nan
    largest = jit(lambda x: getattr(ops, name)(x, 1)[0])
    ufunc = np.maximum if name == "cummax" else np.minimum
    np.testing.assert_array_equal(largest(Tensor(x)).asnumpy(), ufunc.accumulate(x, 1))
    assert largest.kernels() == ("scan",)
