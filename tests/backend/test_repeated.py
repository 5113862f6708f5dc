"""Integer powers and divisors, and bisection: kernels whose lanes take steps of their own."""

import numpy as np
import pytest

from tvmgraph import Tensor, jit, ops

_DTYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64")


def _whole_range(dtype, size, most):
    """Numbers up to ``most``, and the ends of the range."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(size)
    low, high = max(limits.min, -most), min(limits.max, most)
    values = rng.integers(low, high, size, dtype, endpoint=True)
    values[:5] = [0, 1, limits.max, limits.min, 3][:size]
    return rng.permutation(values)


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("size", [5, 9001])
def test_powers_wrap_around(dtype, size):
    a, b = _whole_range(dtype, size, 2**62), _whole_range(dtype, size, 70)
    compiled = jit(ops.pow)
    found = compiled(Tensor(a), Tensor(b)).asnumpy()
    assert "repeated" in compiled.kernels()
    natural = b >= 0
    np.testing.assert_array_equal(found[natural], np.power(a[natural], b[natural]))
    np.testing.assert_array_equal(found, ops.pow(Tensor(a), Tensor(b)).asnumpy())


@pytest.mark.parametrize("dtype", _DTYPES)
def test_divisors_of_any_integers(dtype):
    a, b = _whole_range(dtype, 1003, 2**62), _whole_range(dtype, 1003, 1000)
    compiled = jit(ops.gcd)
    np.testing.assert_array_equal(compiled(Tensor(a), Tensor(b)).asnumpy(), np.gcd(a, b))
    np.testing.assert_array_equal(compiled(Tensor(a[:1]), Tensor(b)).asnumpy(), np.gcd(a[:1], b))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("size", [1, 2, 17, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_bisection_as_numpy(dtype, size, right):
    rng = np.random.default_rng(size)
    row, values = (rng.integers(-20, 20, n).astype(dtype) for n in (size, 1501))
    if dtype.startswith("float"):
        row[: size // 4], values[::7], values[::11] = np.nan, np.nan, -np.inf
    row.sort()
    found = jit(lambda s, v: ops.searchsorted(s, v, right=right))(Tensor(row), Tensor(values))
    np.testing.assert_array_equal(
        found.asnumpy(), np.searchsorted(row, values, "right" if right else "left")
    )


def test_bisection_in_rows_of_its_own():
    rng = np.random.default_rng(0)
    rows, values = np.sort(rng.standard_normal((3, 2, 9)), -1), rng.standard_normal((3, 2, 21))
    found = jit(ops.searchsorted)(Tensor(rows), Tensor(values)).asnumpy()
    np.testing.assert_array_equal(found, (rows[..., None, :] < values[..., None]).sum(-1))


def test_sizes_that_vary():
    @jit(dynamic=1)
    def both(row, values):
        return ops.searchsorted(row, values) + ops.pow(values, 3) + ops.gcd(values, 6)

    for size, count in ((1, 5), (40, 1), (7, 9001)):
        row, values = np.arange(size) * 3, np.arange(count) % 97
        found = both(Tensor(row), Tensor(values)).asnumpy()
        wanted = np.searchsorted(row, values) + values**3 + np.gcd(values, 6)
        np.testing.assert_array_equal(found, wanted)
