"""Complex operands: NumPy's columns of them against the formulas of their parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.testing.samples import Case, all_cases

CASES = [c for c in all_cases() if c.op.of_complex is not None]


def complex_call(case: Case) -> tuple[list[Tensor], dict[str, Any]]:
    """Gives a sample's data an imaginary part."""
    draw = np.random.default_rng(1)
    tensors = list(case.tensors())
    for i, t in enumerate(tensors):
        if i not in case.op.indices and t.dtype.is_float:
            real = t.asnumpy().astype(np.float32)
            tensors[i] = Tensor((real + 1j * draw.standard_normal(t.shape)).astype(np.complex64))
    to = {"dtype": ms.complex64} if "dtype" in case.sample.attrs else {}
    return tensors, dict(case.sample.attrs) | to


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_numpy_column_is_the_form(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    args, attrs = complex_call(case)
    if not any(a.dtype == ms.complex64 for a in args) and "dtype" not in attrs:
        return
    calls: list[bool] = []
    column = case.op.of_complex
    assert column is not None

    def counted(*arrays: np.ndarray, **attrs: object) -> Any:
        calls.append(True)
        return column(*arrays, **attrs)

    monkeypatch.setattr(case.op, "of_complex", counted)
    monkeypatch.setattr(case.op, "cache", {})
    found = case.op.fn(*args, **attrs)
    mixed = {a.dtype for i, a in enumerate(args) if i not in case.op.indices} - {ms.complex64}
    assert calls or mixed
    monkeypatch.setattr(case.op, "of_complex", None)
    monkeypatch.setattr(case.op, "cache", {})
    expected = case.op.fn(*args, **attrs)
    for a, b in zip(*[r if case.op.multi else (r,) for r in (found, expected)], strict=True):
        assert a.aval is b.aval
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)


def test_errors_are_those_of_the_form() -> None:
    z = Tensor(np.ones((2, 3), np.complex64))
    with pytest.raises(ShapeError, match="broadcast"):
        z + Tensor(np.ones((2, 2), np.complex64))
    with pytest.raises(ShapeError):
        ops.reshape(z, (4,))


def test_others_see_the_operators_on_parts() -> None:
    z = Tensor(np.array([1 + 2j, 3 - 1j], np.complex64))
    gradient = ms.grad(lambda z: ops.real(z * z).sum())(z)
    np.testing.assert_allclose(gradient.asnumpy(), 2 * np.conj(z.asnumpy()))
    compiled = ms.jit(lambda z: ops.conj(z * z) - z)(z)
    expected = np.conj(z.asnumpy() ** 2) - z.asnumpy()
    np.testing.assert_allclose(compiled.asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("function", [ops.real, ops.imag, ops.view_as_real])
def test_parts_are_views_that_writes_do_not_reach(function: Any) -> None:
    z = Tensor((np.arange(6).reshape(2, 3) * (1 + 2j)).astype(np.complex64))
    part = function(z)
    assert np.shares_memory(part.array, z.array)
    before = part.asnumpy().copy()
    z[0] = 9.0
    np.testing.assert_array_equal(part.asnumpy(), before)
    part = function(z)
    whole = z.asnumpy().copy()
    part[1] = 5.0
    np.testing.assert_array_equal(z.asnumpy(), whole)


def test_complex_indices_are_errors() -> None:
    with pytest.raises(DTypeError):
        ops.gather_elements(Tensor([1.0, 2.0]), 0, Tensor(np.zeros(1, np.complex64)))


def test_half_a_spectrum_of_complex_elements_is_cut_off() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.complex64) * (1 + 2j)
    for compiled in (False, True):
        apply = ms.jit if compiled else lambda f: f
        got = apply(lambda t: ops.rfft(t, norm="ortho"))(Tensor(x)).asnumpy()
        np.testing.assert_allclose(got, np.fft.fft(x, norm="ortho")[..., :3], rtol=1e-5, atol=1e-5)
        got = apply(lambda t: ops.rfft2(t))(Tensor(x)).asnumpy()
        np.testing.assert_allclose(got, np.fft.fft2(x)[..., :3], rtol=1e-5, atol=1e-5)
        got = apply(ops.ihfft)(Tensor(x)).asnumpy()
        np.testing.assert_allclose(got, np.fft.ifft(x)[..., :3], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [64, 65, 250, 257, 1018, 4096])
def test_long_transforms_are_compiled_without_their_matrix(n: int) -> None:
    """Lengths are divided down to small matrices; of large primes it is a convolution."""
    draw = np.random.default_rng(n)
    z = draw.standard_normal((2, n, 3)) + 1j * draw.standard_normal((2, n, 3))
    half = z[:, : n // 2 + 1]

    def all_kinds(z: Tensor, half: Tensor) -> tuple[Tensor, ...]:
        x = ops.real(z)
        return (
            ops.fft(z, dim=1), ops.ifft(z, dim=1), ops.fft(x, dim=1), ops.rfft(x, dim=1),
            ops.irfft(half, n, dim=1),
        )  # fmt: skip

    compiled = ms.jit(all_kinds)
    found = compiled(Tensor(z), Tensor(half))
    wanted = (
        np.fft.fft(z, axis=1), np.fft.ifft(z, axis=1), np.fft.fft(z.real, axis=1),
        np.fft.rfft(z.real, axis=1), np.fft.irfft(half, n, axis=1),
    )  # fmt: skip
    for got, want in zip(found, wanted):
        np.testing.assert_allclose(got.asnumpy(), want, rtol=0, atol=1e-13 * np.abs(want).max() * n)


def test_numbers_that_tensors_are_filled_with_fit_their_dtype() -> None:
    x = Tensor([1, 2])
    for number, dtype in ((300, ms.uint8), (-1, ms.uint8), (1e10, ms.int32), (2**70, ms.int64)):
        with pytest.raises(ValueError, match=f"is no {dtype.name}, which is"):
            ops.full((2,), number, dtype=dtype)
        with pytest.raises(ValueError, match=f"is no {dtype.name}, which is"):
            ops.full_like(x, number, dtype=dtype)
    with pytest.raises(DTypeError, match="is no float32"):
        ops.full((2,), 1 + 2j, dtype=ms.float32)
    assert ops.full_like(x, -1.5).tolist() == [-1, -1]
    assert ops.full((1,), 1 + 2j, dtype=ms.complex64).asnumpy()[0] == 1 + 2j


_ON_AXES = np.array([1 + 2j, 0.5 - 1j, -1.3 + 0.2j, 0.5j, -0.6j, 2j, 0.5 + 0j, -0.3 + 0j, 3 + 0j])


@pytest.mark.parametrize("name", ["sqrt", "acosh", "asinh", "acos", "asin", "atan", "atanh"])
@pytest.mark.parametrize("seed", [1, 1j])
def test_derivatives_hold_on_the_real_and_imaginary_axes(name: str, seed: complex) -> None:
    """There a part is 0, where the absolute value of it would have no slope."""
    function, step = getattr(np, name.replace("a", "arc", 1) if name != "sqrt" else name), 1e-6
    along = (function(_ON_AXES + step) - function(_ON_AXES - step)) / (2 * step)
    across = (function(_ON_AXES + 1j * step) - function(_ON_AXES - 1j * step)) / (2j * step)
    smooth = abs(along - across) < 1e-4  # not on a branch cut
    assert smooth.sum() >= 6
    _, pull = ms.vjp(getattr(ops, name), Tensor(_ON_AXES))
    found = pull(Tensor(np.full_like(_ON_AXES, seed)))[0].asnumpy()
    np.testing.assert_allclose(found[smooth], (np.conj(along) * seed)[smooth], rtol=1e-6)


def test_parts_that_are_no_numbers_are_replaced() -> None:
    z = np.array([complex(1, np.nan), complex(np.inf, 2), complex(-np.inf, np.nan)], np.complex64)
    np.testing.assert_array_equal(ops.nan_to_num(Tensor(z)).asnumpy(), np.nan_to_num(z))
    found = ops.nan_to_num(Tensor(z), 3.0, 4.0, 5.0).asnumpy()
    np.testing.assert_array_equal(found, [1 + 3j, 4 + 2j, 5 + 3j])


@pytest.mark.parametrize("shape", [(), (5,), (0, 2), (3, 4)])
def test_compiled_code_shares_memory_of_complex_tensors(
    shape: tuple[int, ...],
) -> None:
    double = ms.jit(lambda x: x + x)
    values = np.arange(2 * np.prod(shape, dtype=int)).reshape(*shape, 2) @ np.array([1, 1j])
    for given in (values, values.T.copy().T, np.repeat(values[..., None], 2, -1)[..., 1]):
        x = Tensor(given.astype(np.complex64))
        y = double(x)
        np.testing.assert_array_equal(y.asnumpy(), 2 * values)
        np.testing.assert_array_equal(double(y).asnumpy(), 4 * values)
        x.array[...] = 1j  # the handle that is kept refers to it
        np.testing.assert_array_equal(double(x).asnumpy(), np.full(shape, 2j))
        if values.size:
            assert np.shares_memory(np.from_dlpack(x._ffi), x.array)  # pyright: ignore
            assert np.shares_memory(np.from_dlpack(y._ffi), y.array)  # pyright: ignore
