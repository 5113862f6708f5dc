"""Sorting rows: by ranks where they are short, else by digits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvmgraph import Tensor, jit, ops


def _order(values: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(values, axis, kind="stable")
    turned = np.argsort(np.flip(values, axis), axis, kind="stable")
    return values.shape[axis] - 1 - np.flip(turned, axis)


def _check(values: np.ndarray, axis: int, descending: bool) -> None:
    compiled = jit(lambda x: ops.sort(x, axis, descending))
    found, order = compiled(Tensor(values))
    want = _order(values, axis, descending)
    np.testing.assert_array_equal(order.asnumpy(), want)
    np.testing.assert_array_equal(found.asnumpy(), np.take_along_axis(values, want, axis))
    assert "sort" in compiled.kernels()


@settings(max_examples=14, deadline=None, derandomize=True)
@given(
    st.sampled_from([1, 3]),
    st.sampled_from([1, 2, 17, 64, 159, 160, 161, 1003]),
    st.booleans(),
    st.sampled_from(["float32", "float64", "int32", "int64", "uint8"]),
    st.sampled_from([3, 2**30]),
)
def test_any_length(rows, size, descending, dtype, most):
    random = np.random.default_rng(size)
    if dtype.startswith("float"):
        values = random.integers(-most, most, (rows, size)) * 1.5
    else:
        info = np.iinfo(dtype)
        values = random.integers(max(info.min, -most), min(info.max, most), (rows, size))
    _check(values.astype(dtype), -1, descending)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_row_that_the_workers_share(dtype):
    values = np.random.default_rng(0).integers(-(2**30), 2**30, 40_003).astype(dtype)
    values[::7] = values[0]
    _check(values, 0, descending=False)


@pytest.mark.parametrize("descending", [True, False])
def test_inner_axes(descending):
    values = np.random.default_rng(0).standard_normal((2, 203, 3)).astype(np.float32)
    _check(values, 1, descending)


@pytest.mark.parametrize("repeats", [3, 40])
def test_values_that_are_not_finite(repeats):
    special = [0.0, -np.inf, np.nan, 1e-45, -1e-45, -0.0, np.inf, -3]
    _check(np.tile(np.array(special, np.float32), repeats), 0, descending=False)


def test_extreme_integers():
    bounds = np.iinfo(np.int64)
    values = np.array([bounds.max, bounds.min, 0, -1, 1, 1 << 40, -(1 << 40)] * 30)
    _check(values, 0, descending=True)
