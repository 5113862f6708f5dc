"""The kernel of Fourier transforms against NumPy, over sizes, axes, kinds and types."""

import math

import numpy as np
import pytest

from tvmgraph import Tensor, jit, ops
from tvmgraph.core.op import F
from tvmgraph.ops.fourier.stockham import radices_of, twiddles

_SHAPES = [
    ((3, 64), 1), ((2, 100), 1), ((5, 225), 1), ((1, 1024), 1), ((7, 88), 1), ((2, 26), 1),
    ((2, 48, 5), 1), ((16, 9), 0), ((2, 16, 33), 1), ((35, 8), 0), ((60, 3, 2), 0),
    ((40, 300), 1), ((256, 40), 0),
]  # fmt: skip


def _signal(shape, dtype):
    parts = np.random.default_rng(0).standard_normal((2, *shape))
    kind = np.dtype(dtype)
    return parts[0].astype(kind) if kind.kind == "f" else (parts[0] + 1j * parts[1]).astype(kind)


def _check(run, x, want):
    got = run(Tensor(x)).asnumpy()
    assert got.dtype.itemsize in (x.dtype.itemsize, 2 * x.dtype.itemsize, x.dtype.itemsize // 2)
    tolerance = 1e-6 if x.dtype in (np.float32, np.complex64) else 1e-14
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * abs(want).max())
    return run.kernels()


@pytest.mark.parametrize("shape, axis", _SHAPES)
@pytest.mark.parametrize("dtype", ["complex64", "float32", "complex128"])
def test_spectrum_as_in_numpy(shape, axis, dtype):
    x = _signal(shape, dtype)
    run = jit(lambda x: ops.fft(x, dim=axis))
    kernels = _check(run, x, np.fft.fft(x.astype("complex128"), axis=axis))
    assert ("fourier" in kernels) is (shape[axis] >= 16)


@pytest.mark.parametrize("shape, axis", _SHAPES)
def test_halves_as_in_numpy(shape, axis):
    x = _signal(shape, "float32")
    half = np.fft.rfft(x.astype("float64"), axis=axis)
    _check(jit(lambda x: ops.rfft(x, dim=axis)), x, half)
    run = jit(lambda h: ops.irfft(h, n=shape[axis], dim=axis))
    _check(run, half.astype("complex64"), x)


def test_inverse_with_a_factor():
    x = _signal((4, 3, 96), "complex64")
    run = jit(lambda x: F.spectrum(x, axis=2, inverse=True, of="complex", scale=0.25))
    _check(run, x, np.fft.ifft(x.astype("complex128"), axis=2) * 24)


@pytest.mark.parametrize("n", [257, 331, 2 * 263])
def test_large_primes_are_convolutions_of_other_sizes(n):
    x = _signal((3, n), "complex64")
    _check(jit(lambda x: ops.fft(x)), x, np.fft.fft(x.astype("complex128")))


def test_infinities_do_not_reach_other_rows():
    x = _signal((2, 32), "float32")
    x[0, 3] = np.inf
    got = jit(lambda x: ops.fft(x))(Tensor(x)).asnumpy()
    assert np.isfinite(got[1]).all()
    assert not np.isfinite(got[0]).any()


@pytest.mark.any_processor
@pytest.mark.parametrize("n", [16, 48, 64, 100, 182, 225, 1024, 1000, 4096])
@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("is_last_axis", [False, True])
def test_passes_make_the_size_and_each_has_its_roots(n, itemsize, is_last_axis):
    radices = radices_of(n, itemsize, is_last_axis)
    assert math.prod(radices) == n
    assert set(radices) <= {2, 3, 4, 5, 7, 8, 11, 13}
    found = twiddles(radices, 1, is_last_axis)
    assert found.shape == (2 * (n - 1),)
    np.testing.assert_allclose(np.hypot(*found[2 * (n - n // radices[0]) :].reshape(-1, 2).T), 1)
    assert radices_of(17 * n, itemsize, is_last_axis) == []
