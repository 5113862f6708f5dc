"""Selecting the first few of a row without sorting it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvmgraph import Tensor, jit, ops


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.sampled_from([1, 2, 7]),
    st.sampled_from([4, 17, 64, 1003]),
    st.booleans(),
    st.sampled_from(["float32", "float64", "int32", "int8"]),
    st.sampled_from([1, 3, 16]),
)
def test_as_sorting_all(rows, size, largest, dtype, count):
    count = min(count, int((size / 2) ** 0.5))
    values = np.random.default_rng(size).integers(-9, 9, (rows, size)).astype(dtype)  # many ties
    x = Tensor(values)
    compiled = jit(lambda x: ops.topk(x, count, largest=largest))
    found, order = compiled(x)
    want = ops.argsort(x, -1, largest).asnumpy()[:, :count]
    np.testing.assert_array_equal(order.asnumpy(), want)
    np.testing.assert_array_equal(found.asnumpy(), np.take_along_axis(values, want, 1))
    assert "topk" in compiled.kernels()


@pytest.mark.parametrize("largest", [True, False])
def test_values_that_are_not_finite(largest):
    values = np.tile(np.array([0.0, -np.inf, np.nan, 1e-45, -0.0, np.inf, -3], np.float32), 6)
    found, order = jit(lambda x: ops.topk(x, 10, largest=largest))(Tensor(values))
    want, places = ops.topk(Tensor(values), 10, largest=largest)
    np.testing.assert_array_equal(found.asnumpy(), want.asnumpy())
    np.testing.assert_array_equal(order.asnumpy(), places.asnumpy())
