"""Scatters of rows against NumPy, over widths, repeated and negative indices, modes and types."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvmgraph as ms
from tvmgraph import Parameter, Tensor, jit, ops
from tvmgraph.core.op import F

_UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _reference(x, at, values, mode):
    out = x.copy()
    if mode == "set":
        for place, value in zip(at, np.broadcast_to(values, (len(at), *x.shape[1:]))):
            out[place] = value
    else:
        _UFUNCS[mode].at(out, at, values)
    return out


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.sampled_from([(), (1,), (3,), (17,), (32,), (100,), (5, 33)]),
    st.sampled_from([1, 7, 700]),
    st.sampled_from([1, 4, 301]),
    st.sampled_from(["set", *_UFUNCS]),
    st.sampled_from(["float32", "float64", "float16", "int32", "int64", "int8"]),
)
def test_rows(row, rows, updates, mode, dtype):
    random = np.random.default_rng(updates)
    x = random.integers(1, 3, (rows, *row)).astype(dtype)
    values = random.integers(0, 2, (updates, *row)).astype(dtype)
    at = random.integers(-rows, rows, updates)
    run = jit(lambda x, at, v: F.index_update(x, v, at, axes=(0,), mode=mode))
    got = run(Tensor(x), Tensor(at), Tensor(values)).asnumpy()
    np.testing.assert_array_equal(got, _reference(x, at, values, mode))
    assert "scatter" in run.kernels()


@pytest.mark.parametrize("width", [1, 36, 52, 130])
def test_numbers_are_added_in_their_order(width):
    """Sums of float32 depend on the order: it is that of the updates on any number of workers."""
    random = np.random.default_rng(0)
    values = random.standard_normal((3001, width)).astype(np.float32)
    at = random.integers(0, 9, 3001)
    want = np.zeros((9, width), np.float32)
    np.add.at(want, at, values)
    run = jit(lambda at, v: ops.scatter_nd(ops.reshape(at, (-1, 1)), v, (9, width)))
    np.testing.assert_array_equal(run(Tensor(at), Tensor(values)).asnumpy(), want)


def test_several_coordinates_and_broadcast_values():
    random = np.random.default_rng(0)
    x = random.standard_normal((4, 5, 3, 7)).astype(np.float32)
    at = random.integers(0, 4, (6, 2)), random.integers(0, 5, (1, 2))
    value = random.standard_normal((3, 1)).astype(np.float32)
    run = jit(lambda x, v, i, j: F.index_update(x, v, i, j, axes=(0, 1), mode="add"))
    want = x.astype(np.float64)
    np.add.at(want, at, value)
    got = run(*map(Tensor, (x, value, *at))).asnumpy()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_the_gradient_of_a_lookup_writes_no_separate_zeros():
    table = np.random.default_rng(0).standard_normal((70_001, 100)).astype(np.float32)
    at = np.random.default_rng(1).integers(0, len(table), 500)
    at[::3] = 7
    gradient = jit(ms.grad(lambda w, at: ops.sum(ops.square(ops.gather(w, at, 0)))))
    want = np.zeros(table.shape)
    np.add.at(want, at, 2.0 * table[at])
    got = gradient(Tensor(table), Tensor(at)).asnumpy()
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert not any("full" in name or "zeros" in name for name in gradient.kernels())


def test_a_parameter_is_updated_and_its_operand_kept():
    random = np.random.default_rng(0)
    x = random.standard_normal((300, 64)).astype(np.float32)
    at, values = random.integers(0, 300, 900), np.ones((900, 64), np.float32)
    weight, other = Parameter(Tensor(x)), Tensor(x)

    @jit
    def step(at, values, other):
        new = ops.index_add(weight, at, values, 0)
        return new, ops.tensor_scatter_add(other, ops.reshape(at, (-1, 1)), values)

    first, second = step(Tensor(at), Tensor(values), other)
    once, twice = _reference(x, at, values, "add"), x
    np.testing.assert_allclose(first.asnumpy(), once, rtol=1e-6)
    np.testing.assert_allclose(second.asnumpy(), once, rtol=1e-6)
    np.testing.assert_array_equal(other.asnumpy(), x)
    step(Tensor(at), Tensor(values), other)
    twice = _reference(once, at, values, "add")
    np.testing.assert_allclose(weight.asnumpy(), twice, rtol=1e-5)


@pytest.mark.parametrize("row", [(), (40,)])
def test_as_many_updates_as_a_call_brings(row):
    x = np.random.default_rng(0).standard_normal((90, *row)).astype(np.float32)
    signature = (
        Tensor(shape=x.shape, dtype=ms.float32), Tensor(shape=["n", 2], dtype=ms.int64),
        Tensor(shape=["n", 2, *row], dtype=ms.float32),
    )  # fmt: skip
    run = jit(
        lambda x, at, v: F.index_update(x, v, at, axes=(0,), mode="add"),
        input_signature=signature,
    )
    for count in (1, 3, 500):
        at = np.random.default_rng(count).integers(-90, 90, (count, 2))
        values = np.ones((count, 2, *row), np.float32)
        got = run(*map(Tensor, (x, at, values))).asnumpy()
        np.testing.assert_allclose(got, _reference(x, at, values, "add"), rtol=1e-5, atol=1e-5)
    assert "scatter" in run.kernels()


def test_additions_past_the_ends_change_nothing_and_copy_nothing():
    x = Tensor(np.array([-0.0, 1.0, np.nan], np.float32))
    add = jit(lambda x, at, v: ops.tensor_scatter_elements(x, at, v, 0, "add"))
    got = add(x, Tensor([3, -4, -2]), Tensor(np.array([5.0, np.inf, 2.0], np.float32))).asnumpy()
    np.testing.assert_array_equal(got, [0.0, 3.0, np.nan])
    assert np.signbit(got[0])
    assert not any("concatenate" in kernel for kernel in add.kernels())
