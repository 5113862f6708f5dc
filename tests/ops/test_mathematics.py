"""Special functions, series, reflections, spectra and choices against NumPy and known values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

RNG = np.random.default_rng(7)


def floats(*shape: int) -> Tensor:
    return Tensor(RNG.uniform(-2, 2, shape).astype(np.float32))


def both(f: Callable[..., Any], *args: Tensor) -> np.ndarray:
    """Runs eagerly and compiled, checks that they agree, and returns the elements."""
    eager, compiled = f(*args), ms.jit(f)(*args)
    assert eager.aval is compiled.aval
    np.testing.assert_allclose(compiled.asnumpy(), eager.asnumpy(), rtol=1e-5, atol=1e-6)
    return eager.asnumpy()


# ---- Bessel functions ----------------------------------------------------------------------------


def _integral(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Mean over the half circle by the midpoint rule, which is exact for periodic functions."""
    t = (np.arange(400) + 0.5) * np.pi / 400
    return f(np.multiply.outer(x, np.ones_like(t)), t).mean(-1)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("name", "integrand"),
    [
        ("bessel_j0", lambda x, t: np.cos(x * np.sin(t))),
        ("bessel_j1", lambda x, t: np.cos(t - x * np.sin(t))),
        ("bessel_i0", lambda x, t: np.exp(x * np.cos(t))),
        ("bessel_i1", lambda x, t: np.exp(x * np.cos(t)) * np.cos(t)),
        ("bessel_i0e", lambda x, t: np.exp(x * np.cos(t) - np.abs(x))),
        ("bessel_i1e", lambda x, t: np.exp(x * np.cos(t) - np.abs(x)) * np.cos(t)),
    ],
)
def test_bessel_is_its_integral(name: str, integrand: Any) -> None:
    x = np.linspace(-30, 30, 241)
    y = getattr(ops, name)(Tensor(x)).asnumpy()
    np.testing.assert_allclose(y, _integral(integrand, x), rtol=1e-12, atol=1e-13)


def test_wronskians_of_bessel_functions() -> None:
    x = Tensor(np.linspace(0.05, 40, 300))
    kind1 = ops.bessel_j1(x) * ops.bessel_y0(x) - ops.bessel_j0(x) * ops.bessel_y1(x)
    np.testing.assert_allclose((kind1 * x).asnumpy(), 2 / np.pi, rtol=1e-11)
    modified = ops.bessel_i0e(x) * ops.bessel_k1e(x) + ops.bessel_i1e(x) * ops.bessel_k0e(x)
    np.testing.assert_allclose((modified * x).asnumpy(), 1, rtol=1e-12)
    np.testing.assert_allclose(
        (ops.bessel_k0e(x) * ops.exp(-x)).asnumpy(), ops.bessel_k0(x).asnumpy(), rtol=1e-12
    )
    np.testing.assert_array_equal(ops.i0(x).asnumpy(), ops.bessel_i0(x).asnumpy())


def test_bessel_at_the_ends() -> None:
    x = Tensor([0.0, -1.0, math.inf])
    for name in ("bessel_k0", "bessel_k1"):
        np.testing.assert_array_equal(getattr(ops, name)(x).asnumpy(), [np.inf, np.inf, 0])
    for name in ("bessel_y0", "bessel_y1"):
        np.testing.assert_array_equal(getattr(ops, name)(x).asnumpy(), [-np.inf, -np.inf, 0])


# ---- gamma functions and zeta --------------------------------------------------------------------


def test_incomplete_gamma_of_integer_order() -> None:
    x = np.linspace(0.1, 30, 100)
    for n in (1, 3, 12):
        terms = [x**k / math.factorial(k) for k in range(n)]
        tail = np.exp(-x) * sum(terms)
        order = Tensor(np.full_like(x, n))
        np.testing.assert_allclose(ops.igammac(order, Tensor(x)).asnumpy(), tail, rtol=1e-12)
        total = ops.igamma(order, Tensor(x)) + ops.igammac(order, Tensor(x))
        np.testing.assert_allclose(total.asnumpy(), 1, rtol=1e-13)


def test_incomplete_gamma_is_continuous_where_the_method_changes() -> None:
    a = np.nextafter(200.0, [0, 400])
    for x in (150.0, 199.0, 201.5, 260.0):
        y = ops.igamma(Tensor(a), Tensor(np.array([x, x]))).asnumpy()
        np.testing.assert_allclose(y[0], y[1], rtol=1e-11)


def test_zeta_of_known_values() -> None:
    s, one = Tensor(np.array([2.0, 4.0, 30.0])), Tensor(np.array(1.0))
    known = [np.pi**2 / 6, np.pi**4 / 90, 1 + 2.0**-30 + 3.0**-30]
    np.testing.assert_allclose(ops.zeta(s, one).asnumpy(), known, rtol=1e-14)


def test_polygamma() -> None:
    x = Tensor(np.array([0.3, 1.0, 4.5]))
    step = 1e-4
    for n in range(4):
        lower = ops.polygamma(n, x)
        np.testing.assert_allclose(lower.asnumpy(), ops.polygamma(Tensor(n), x).asnumpy(), 1e-12)
        slope = (ops.polygamma(n, x + step) - ops.polygamma(n, x - step)) / (2 * step)
        np.testing.assert_allclose(ops.polygamma(n + 1, x).asnumpy(), slope.asnumpy(), rtol=1e-5)
    with pytest.raises(ArgumentError, match="n must not be negative"):
        ops.polygamma(-1, x)
    with pytest.raises(DTypeError, match="n must hold integers"):
        ops.polygamma(Tensor(1.0), x)


def test_mvlgamma() -> None:
    x = Tensor([3.0, 4.0])
    expected = ops.lgamma(x) + ops.lgamma(x - 0.5) + 0.5 * math.log(math.pi)
    np.testing.assert_allclose(ops.mvlgamma(x, 2).asnumpy(), expected.asnumpy(), rtol=1e-6)
    with pytest.raises(ArgumentError):
        ops.mvlgamma(x, 0)


# ---- integers and complex numbers ----------------------------------------------------------------


def test_divisors() -> None:
    a, b = RNG.integers(-60, 60, (2, 50))
    np.testing.assert_array_equal(ops.gcd(Tensor(a), Tensor(b)).asnumpy(), np.gcd(a, b))
    np.testing.assert_array_equal(ops.lcm(Tensor(a), Tensor(b)).asnumpy(), np.lcm(a, b))
    with pytest.raises(DTypeError):
        ops.gcd(Tensor([1.5]), 2)


def test_complex_numbers() -> None:
    z = np.array([1 + 2j, -3j, -2.5], np.complex64)
    made = ops.complex(Tensor(z.real.copy()), Tensor(z.imag.copy()))
    for name in ("real", "imag", "conj", "angle"):
        np.testing.assert_allclose(getattr(ops, name)(made).asnumpy(), getattr(np, name)(z))
    back = ops.polar(ops.ComplexAbs()(made), ops.angle(made))
    np.testing.assert_allclose(back.asnumpy(), z, atol=1e-6)
    for name in ("sum", "mean"):
        np.testing.assert_allclose(getattr(ops, name)(made).asnumpy(), getattr(np, name)(z))
    x = Tensor([1.0, -2.0, 0.0])
    assert ops.real(x) is x and ops.conj(x) is x
    np.testing.assert_array_equal(both(ops.imag, x), [0, 0, 0])
    np.testing.assert_allclose(both(ops.angle, x), [0, np.pi, 0])


# ---- series --------------------------------------------------------------------------------------


def test_diff() -> None:
    x = floats(3, 5)
    for n, axis in ((1, -1), (2, 0), (0, 1), (3, 1)):
        expected = np.diff(x.asnumpy(), n, axis)
        got = both(lambda x, n=n, axis=axis: ops.diff(x, n, axis), x)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    more = floats(3, 2)
    got = ops.diff(x, prepend=more, append=more).asnumpy()
    expected = np.diff(x.asnumpy(), prepend=more.asnumpy(), append=more.asnumpy())
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    with pytest.raises(ArgumentError, match="n must lie between 0"):
        ops.diff(x, 6)
    with pytest.raises(ShapeError):
        ops.diff(Tensor(1.0))


def test_trapz() -> None:
    y, x = floats(4, 5), np.sort(RNG.uniform(0, 3, 5)).astype(np.float32)
    got = both(lambda y, x: ops.trapz(y, x), y, Tensor(x))
    np.testing.assert_allclose(got, np.trapezoid(y.asnumpy(), x), rtol=1e-5)
    got = both(lambda y: ops.trapz(y, dx=0.5, dim=0), y)
    np.testing.assert_allclose(got, np.trapezoid(y.asnumpy(), dx=0.5, axis=0), rtol=1e-5)
    assert ops.trapz(ops.zeros((2, 0))).asnumpy().tolist() == [0.0, 0.0]


def test_cov() -> None:
    x = floats(3, 6)
    np.testing.assert_allclose(both(ops.cov, x), np.cov(x.asnumpy()), rtol=1e-4)
    counts, importance = np.array([1, 2, 3, 1, 1, 4]), RNG.uniform(0.5, 1, 6).astype(np.float32)
    weights = {"fweights": counts, "aweights": importance}
    for names in (("fweights",), ("aweights",), ("fweights", "aweights")):
        chosen = {n: weights[n] for n in names}
        expected = np.cov(x.asnumpy(), **chosen)
        got = ops.cov(x, **{n: Tensor(w) for n, w in chosen.items()})
        np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-4)
    np.testing.assert_allclose(ops.cov(x[0]).asnumpy(), np.cov(x[0].asnumpy()), rtol=1e-5)
    assert ops.cov(x[0]).shape == ()
    with pytest.raises(ShapeError):
        ops.cov(floats(2, 2, 2))


def test_bidense() -> None:
    a, b, w, bias = floats(2, 3), floats(2, 4), floats(5, 3, 4), floats(5)
    expected = np.einsum("bi,oij,bj->bo", a.asnumpy(), w.asnumpy(), b.asnumpy()) + bias.asnumpy()
    np.testing.assert_allclose(both(ops.bidense, a, b, w, bias), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError):
        ops.bidense(a, b, floats(5, 4, 3))


def test_clipping_by_norm() -> None:
    x = Tensor([3.0, 4.0])
    np.testing.assert_allclose(ops.clip_by_norm(x, 1.0).asnumpy(), [0.6, 0.8], rtol=1e-5)
    assert ops.clip_by_norm([x], 10.0)[0].tolist() == [3.0, 4.0]
    a, b = ops.clip_by_global_norm((x[:1], x[1:]), 1.0)
    np.testing.assert_allclose([a.item(), b.item()], [0.6, 0.8], rtol=1e-6)
    with pytest.raises(ArgumentError, match="the norm is inf"):
        ops.clip_by_norm(Tensor([math.inf]), 1.0, error_if_nonfinite=True)
    with pytest.raises(ArgumentError, match="must be positive"):
        ops.clip_by_global_norm((x,), 0)
    one: Any = ops.clip_by_global_norm(x, 1.0)
    np.testing.assert_allclose(one.asnumpy(), np.concatenate([a.asnumpy(), b.asnumpy()]), rtol=1e-6)


# ---- reflections ---------------------------------------------------------------------------------


def test_reflections_rebuild_the_matrix() -> None:
    x = floats(2, 4, 3)
    h, tau = ops.geqrf(x)
    q = ops.orgqr(h, tau)
    np.testing.assert_allclose(ops.matmul(q, ops.triu(h)[:, :3]).asnumpy(), x.asnumpy(), atol=1e-5)
    full = ops.ormqr(h, tau, ops.broadcast_to(ops.eye(4), (2, 4, 4)))
    np.testing.assert_allclose(full[..., :3].asnumpy(), q.asnumpy(), atol=1e-6)
    other = floats(2, 5, 4)
    for transpose in (False, True):
        factor = full.swapaxes(-1, -2) if transpose else full
        right = ops.ormqr(h, tau, other, left=False, transpose=transpose)
        np.testing.assert_allclose(right.asnumpy(), ops.matmul(other, factor).asnumpy(), atol=1e-5)
        left = ops.ormqr(h, tau, other.swapaxes(1, 2), transpose=transpose)
        expected = ops.matmul(factor, other.swapaxes(1, 2))
        np.testing.assert_allclose(left.asnumpy(), expected.asnumpy(), atol=1e-5)
    np.testing.assert_allclose(both(ops.orgqr, h, tau), q.asnumpy(), atol=1e-6)
    with pytest.raises(ShapeError):
        ops.orgqr(h, tau[:1])


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve(upper: bool, transpose: bool, unit: bool) -> None:
    a, b = floats(3, 3) + 4 * ops.eye(3), floats(3, 2)
    x, same = b.triangular_solve(a, upper, transpose, unit)
    t = np.triu(a.asnumpy()) if upper else np.tril(a.asnumpy())
    if unit:
        np.fill_diagonal(t, 1)
    np.testing.assert_allclose((t.T if transpose else t) @ x.asnumpy(), b.asnumpy(), atol=1e-5)
    assert same is a
    many = ops.tile(a, (9, 1, 1))  # more matrices than rows are solved together
    got = ops.triangular_solve(ops.tile(b, (9, 1, 1)), many, upper, transpose, unit)[0]
    np.testing.assert_allclose(got[8].asnumpy(), x.asnumpy(), rtol=1e-5, atol=1e-6)
    solve = ms.jit(lambda b, a: ops.triangular_solve(b, a, upper, False, unit)[0])
    np.testing.assert_allclose(t @ solve(b, a).asnumpy(), b.asnumpy(), atol=1e-5)
    assert [node.op.name for node in solve.fused_graph()[0].nodes] == ["triangular_solve"]


# ---- spectra -------------------------------------------------------------------------------------


def test_frequencies() -> None:
    for n in (1, 4, 5):
        np.testing.assert_allclose(ops.fftfreq(n, 0.5).asnumpy(), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(ops.rfftfreq(n).asnumpy(), np.fft.rfftfreq(n))
    x = floats(4, 5)
    np.testing.assert_array_equal(both(ops.fftshift, x), np.fft.fftshift(x.asnumpy()))
    got = both(lambda x: ops.ifftshift(x, 1), x)
    np.testing.assert_array_equal(got, np.fft.ifftshift(x.asnumpy(), 1))
    with pytest.raises(ArgumentError):
        ops.fftfreq(0)


@pytest.mark.parametrize("onesided", [True, False])
def test_stft(onesided: bool) -> None:
    x, window = floats(2, 40), Tensor(np.hanning(8).astype(np.float32))
    got = both(lambda x, w: ops.stft(x, 8, 3, window=w, onesided=onesided), x, window)
    padded = np.pad(x.asnumpy(), ((0, 0), (4, 4)), "reflect")
    pieces = np.stack([padded[:, i : i + 8] for i in range(0, 41, 3)], 1) * window.asnumpy()
    spectrum = np.swapaxes((np.fft.rfft if onesided else np.fft.fft)(pieces), 1, 2)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], spectrum, atol=1e-5)
    z = ops.stft(x, 8, 3, window=window, onesided=onesided, return_complex=True)
    np.testing.assert_allclose(z.asnumpy(), spectrum, atol=1e-5)
    short = ops.stft(x, 8, 3, 6, center=False, normalized=True)
    assert short.shape == (2, 5, 11, 2)
    with pytest.raises(ShapeError, match="fewer than n_fft"):
        ops.stft(x, 64, center=False)


# ---- random --------------------------------------------------------------------------------------


def test_gamma_has_its_moments() -> None:
    ms.set_seed(3)
    order = Tensor([0.4, 1.0, 7.5])
    x = ops.random_gamma((20000,), order).asnumpy().astype(np.float64)
    np.testing.assert_allclose(x.mean(0), order.asnumpy(), rtol=0.03)
    np.testing.assert_allclose(x.var(0), order.asnumpy(), rtol=0.06)
    scaled = ops.gamma((20000,), order, 2.0).asnumpy()
    np.testing.assert_allclose(scaled.mean(0), order.asnumpy() / 2, rtol=0.03)
    ms.set_seed(5)
    eager = ops.gamma((7,), order, 2.0)
    ms.set_seed(5)
    compiled = ms.jit(lambda a: ops.gamma((7,), a, 2.0))(order)
    np.testing.assert_allclose(compiled.asnumpy(), eager.asnumpy(), rtol=1e-4)
    same = [ops.gamma((4,), order, 1.0, seed=9).asnumpy() for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_choice_with_mask() -> None:
    x = np.zeros((4, 5), bool)
    x[[0, 2, 3], [1, 4, 0]] = True
    index, mask = ops.choice_with_mask(Tensor(x), 5)
    assert (index.shape, index.dtype, mask.dtype) == ((5, 2), ms.int32, ms.bool_)
    assert mask.tolist() == [True, True, True, False, False]
    assert sorted(map(tuple, index.tolist()[:3])) == [(0, 1), (2, 4), (3, 0)]
    assert index.tolist()[3:] == [[0, 0], [0, 0]]
    assert ops.choice_with_mask(Tensor(x), 25)[1].asnumpy().sum() == 3
    seen = {tuple(ops.choice_with_mask(Tensor(x), 1)[0].tolist()[0]) for _ in range(60)}
    assert len(seen) == 3
    with pytest.raises(DTypeError):
        ops.choice_with_mask(Tensor([1.0]))


def test_eps() -> None:
    for dtype in (ms.float16, ms.bfloat16, ms.float32, ms.float64):
        one = ops.ones((2,), dtype)
        e = ops.eps(one)
        assert e.dtype is dtype and bool(((one + e) != one).all())
        assert bool(((one + e * 0.25) == one).all())
    with pytest.raises(DTypeError):
        ops.eps(Tensor([1]))


# ---- kernels with several results ----------------------------------------------------------------


def test_a_result_that_two_later_results_read_is_not_read_back() -> None:
    """One kernel stores the mask, the index made of it and what the index chooses."""
    x, weight = floats(2, 3), Tensor([0.5, 1.0, 2.0])

    def loss(x: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        return ops.nll_loss(x, target, weight=weight)

    compiled = ms.jit(loss)
    for labels in ([-100, 2], [1, 2], [-100, -100], [2, 1]):  # no mask of an earlier call is used
        target = Tensor(np.array(labels, np.int32))
        expected, got = loss(x, target, weight), compiled(x, target, weight)
        np.testing.assert_allclose(got.asnumpy(), expected.asnumpy(), rtol=1e-5)


# ---- eager formulas on large arrays --------------------------------------------------------------


@pytest.mark.parametrize("name", ["gelu", "softplus", "mish", "erf", "lgamma", "leaky_relu", "elu"])
@pytest.mark.parametrize("dtype", [ms.float16, ms.float32, ms.float64])
def test_large_arrays_are_computed_like_small_ones(name: str, dtype: Any) -> None:
    values = RNG.uniform(-6, 6, (3, 33001)).astype(np.float32)
    values[1, 7::100] = np.nan
    x = Tensor(values, dtype)
    function = getattr(ops, name)
    whole = function(x).asnumpy()
    parts = [function(x[i, j : j + 1000]) for i in range(3) for j in range(0, 33001, 1000)]
    expected = np.concatenate([p.asnumpy() for p in parts]).reshape(x.shape)
    rtol = 1e-3 if dtype is ms.float16 else 1e-5  # a few elements take other functions than many
    np.testing.assert_allclose(whole, expected, rtol=rtol, atol=1e-6)
    turned = function(x.T).asnumpy()
    np.testing.assert_allclose(turned.T, whole, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int16", "bool"])
def test_selections_of_many_elements(dtype: str) -> None:
    condition = RNG.random((70, 60)) < 0.5
    a, b = (RNG.integers(-9, 9, (70, 60)).astype(dtype) for _ in range(2))
    if a.dtype.kind == "f":
        a[:, 0], b[:, 1] = np.nan, -np.inf
    for first, second in ((a, b), (a[:, ::-1], b), (a, b[:1]), (a[:, :1], b), (a, b[0, 0])):
        args = [Tensor(np.asarray(v)) for v in (condition, first, second)]
        got = ops.where(*args).asnumpy()
        np.testing.assert_array_equal(got, np.where(condition, first, second))
    got = ops.where(Tensor(condition), Tensor(a), 0.5).asnumpy()
    np.testing.assert_array_equal(got, np.where(condition, a, np.float32(0.5)))
