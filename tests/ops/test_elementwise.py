"""Elementwise functions against NumPy and the math module, eager, compiled and differentiated.

Rows are checked by ``test_rows``; here are the values of special functions, which eager and
compiled code compute by one formula, and the functions that are made of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, ops
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

NAN, INF = math.nan, math.inf
X = np.array([-3.0, -1.0, -0.4, 0.0, 0.4, 1.0, 3.0], np.float32)
Y = np.array([2.0, -1.0, 0.5, 4.0, -0.3, 1.0, 3.0], np.float32)


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 3e-7), (np.float64, 2e-14)])
@pytest.mark.parametrize("name", ["erf", "erfc", "lgamma"])
def test_special_function_is_exact(name: str, dtype: Any, rtol: float) -> None:
    low = 0.01 if name == "lgamma" else -6
    x = np.concatenate([np.linspace(low, 9, 501), [1e-8, 25.0]]).astype(dtype)
    expected = np.array([getattr(math, name)(v) for v in x.astype(np.float64)])
    actual = getattr(ops, name)(Tensor(x)).asnumpy().astype(np.float64)
    normal = np.abs(expected) > np.finfo(dtype).tiny
    near_zero = 4e-7 if dtype == np.float32 else 4e-15  # lgamma vanishes at 1 and 2
    np.testing.assert_allclose(actual[normal], expected[normal], rtol=rtol * 2, atol=near_zero)


def test_digamma_trigamma_and_erfinv_have_known_values() -> None:
    euler = 0.5772156649015329
    x = Tensor(np.array([1.0, 2.0, 0.5, -0.5]))
    expected = [-euler, 1 - euler, -euler - 2 * math.log(2), 2 - euler - 2 * math.log(2)]
    np.testing.assert_allclose(ops.digamma(x).asnumpy(), expected, rtol=1e-13)
    x = Tensor(np.array([1.0, 2.0, 0.5]))
    expected = [math.pi**2 / 6, math.pi**2 / 6 - 1, math.pi**2 / 2]
    np.testing.assert_allclose(ops.trigamma(x).asnumpy(), expected, rtol=1e-12)
    p = np.array([-0.999999, -0.5, 1e-9, 0.3, 0.9999999999])
    back = [math.erf(v) for v in ops.erfinv(Tensor(p)).asnumpy()]
    np.testing.assert_allclose(back, p, rtol=1e-15)


def test_erfinv_next_to_one() -> None:
    x = 1 - 10.0 ** -np.arange(1, 16)
    for function in (ops.erfinv, ms.jit(lambda x: ops.erfinv(x))):
        left = [math.erfc(v) for v in function(Tensor(x)).asnumpy()]
        np.testing.assert_allclose(left, 1 - x, rtol=1e-12)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


def _shrink(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)


COMPOSITES: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
    ("div_floor", lambda x, y: ops.div(x, y, rounding_mode="floor"), lambda x, y: np.floor(x / y)),
    ("div_trunc", lambda x, y: ops.div(x, y, rounding_mode="trunc"), lambda x, y: np.trunc(x / y)),
    ("subtract", lambda x, y: ops.subtract(x, y, alpha=2), lambda x, y: x - 2 * y),
    ("pow_square", lambda x, y: x**2 + y**3.0, lambda x, y: x**2 + y**3),
    ("rpow", lambda x, y: 2**x, lambda x, y: 2**x),
    ("float_power", lambda x, y: ops.float_power(x, 2), lambda x, y: x.astype(np.float64) ** 2),
    ("round_2", lambda x, y: ops.round(x / 7, decimals=2), lambda x, y: np.round(x / 7, 2)),
    ("frac", lambda x, y: ops.frac(x), lambda x, y: x - np.trunc(x)),
    ("clamp", lambda x, y: ops.clamp(x, -1, 0.5), lambda x, y: np.clip(x, -1, 0.5)),
    ("clamp_tensor", lambda x, y: ops.clamp(x, max=y), lambda x, y: np.minimum(x, y)),
    ("hardtanh", lambda x, y: ops.hardtanh(x), lambda x, y: np.clip(x, -1, 1)),
    ("hardshrink", lambda x, y: ops.hardshrink(x), lambda x, y: np.where(np.abs(x) > 0.5, x, 0)),
    ("softshrink", lambda x, y: ops.softshrink(x), lambda x, y: _shrink(x)),
    ("softsign", lambda x, y: ops.softsign(x), lambda x, y: x / (1 + np.abs(x))),
    ("tanhshrink", lambda x, y: ops.tanhshrink(x), lambda x, y: x - np.tanh(x)),
    ("threshold", lambda x, y: ops.threshold(x, 0.4, 9), lambda x, y: np.where(x > 0.4, x, 9)),
    ("fast_gelu", lambda x, y: ops.fast_gelu(x), lambda x, y: x / (1 + np.exp(-1.702 * x))),
    ("softmin", lambda x, y: ops.softmin(x), lambda x, y: np.exp(-x) / np.exp(-x).sum()),
    ("lerp", lambda x, y: ops.lerp(x, y, 0.25), lambda x, y: x + 0.25 * (y - x)),
    ("addcmul", lambda x, y: ops.addcmul(x, x, y, 2), lambda x, y: x + 2 * x * y),
    ("addcdiv", lambda x, y: ops.addcdiv(x, x, y, 2), lambda x, y: x + 2 * x / y),
    ("heaviside", lambda x, y: ops.heaviside(x, y), lambda x, y: np.heaviside(x, y)),
    ("ldexp", lambda x, y: ops.ldexp(x, y), lambda x, y: x * 2**y),
    ("logaddexp2", lambda x, y: ops.logaddexp2(x, y), lambda x, y: np.logaddexp2(x, y)),
    ("xdivy", lambda x, y: ops.xdivy(x, y), lambda x, y: x / y),
    ("deg2rad", lambda x, y: ops.rad2deg(ops.deg2rad(x)), lambda x, y: x),
    ("logit", lambda x, y: ops.logit(ops.sigmoid(x)), lambda x, y: x),
    ("addn", lambda x, y: ops.addn([x, y, x]), lambda x, y: 2 * x + y),
    ("prelu", lambda x, y: ops.prelu(x, ops.abs(y[:1])), lambda x, y: np.where(x > 0, x, 2 * x)),
    ("swiglu", lambda x, y: ops.swiglu(ops.concat((x, y))), lambda x, y: x / (1 + np.exp(-x)) * y),
    ("glu", lambda x, y: ops.glu(ops.concat((x, y))), lambda x, y: x / (1 + np.exp(-y))),
]


@pytest.mark.parametrize("name, function, reference", COMPOSITES, ids=[c[0] for c in COMPOSITES])
def test_composite_is_numpy_eager_and_compiled(
    name: str, function: Callable[..., Any], reference: Callable[..., Any]
) -> None:
    expected = reference(X, Y)
    eager = function(Tensor(X), Tensor(Y))
    compiled = ms.jit(function)(Tensor(X), Tensor(Y))
    assert eager.dtype == compiled.dtype
    np.testing.assert_allclose(eager.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(compiled.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_nan_reaches_the_result() -> None:
    x = Tensor(np.array([NAN, 1.0], np.float32))
    for f in (ops.relu, ops.relu6, ops.softshrink, ops.hardshrink, ops.hardtanh,
              lambda x: ops.clamp(x, 0, 2), lambda x: ops.threshold(x, 0, 1)):  # fmt: skip
        for call in (f, ms.jit(lambda x, f=f: f(x))):
            assert math.isnan(call(x).asnumpy()[0])


def test_comparisons_made_of_rows() -> None:
    x = Tensor(np.array([1.0, INF, -INF, NAN, INF], np.float32))
    y = Tensor(np.array([1.0 + 1e-6, INF, INF, NAN, 1.0], np.float32))
    assert ops.isclose(x, y).asnumpy().tolist() == [True, True, False, False, False]
    assert ops.isclose(x, y, equal_nan=True).asnumpy().tolist() == [True, True, False, True, False]
    assert ops.isposinf(x).asnumpy().tolist() == [False, True, False, False, True]
    assert ops.isneginf(x).asnumpy().tolist() == [False, False, True, False, False]
    assert ops.signbit(x).asnumpy().tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_linear_part_of_a_hard_sigmoid_is_rounded_twice_at_most(compiled: bool) -> None:
    x = np.linspace(-2.999, 2.999, 1001, dtype=np.float32)
    found = (ms.jit(ops.hardsigmoid) if compiled else ops.hardsigmoid)(Tensor(x)).asnumpy()
    exact = (x.astype(np.float64) + 3) / 6
    assert np.max(np.abs(found - exact) / exact) < 1.3e-7  # 2e-5 where x / 6 + 1 / 2 cancels
    assert found[0] == np.float32((x[0] + np.float32(3)) / np.float32(6))


def test_kinks_have_the_documented_derivatives() -> None:
    x = Tensor(np.array([0.0, 1.0, 2.0], np.float32))
    limit = ms.grad(lambda x: ops.clip_by_value(x, 0.0, 1.0).sum())(x)
    assert limit.asnumpy().tolist() == [0.5, 0.5, 0.0]
    assert ms.grad(lambda x: ops.relu(x).sum())(x).asnumpy().tolist() == [0.0, 1.0, 1.0]
    assert ms.grad(lambda x: (ops.stop_gradient(x) * x).sum())(x).asnumpy().tolist() == [0, 1, 2]
    assert ms.grad(lambda x: (x**0 + x**1).sum())(x).asnumpy().tolist() == [1, 1, 1]


def test_integer_division_by_zero_gives_zero_in_both_modes() -> None:
    x, zero = Tensor(np.array([7, -7], np.int32)), Tensor(np.array([0, 0], np.int32))
    for f in (ops.floor_divide, ops.truncate_div, ops.floor_mod, ops.fmod):
        assert f(x, zero).asnumpy().tolist() == [0, 0]
        assert ms.jit(lambda a, b, f=f: f(a, b))(x, zero).asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_inverses_of_integers_are_rounded_towards_zero(dtype: Any) -> None:
    x = Tensor(np.array([1, -1, 2, -7, 0], dtype))
    for f in (ops.inv, ms.jit(ops.inv), ops.Inv()):
        found = f(x)
        assert found.asnumpy().dtype == dtype and found.asnumpy().tolist() == [1, -1, 0, 0, 0]


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: ops.div(x, x, rounding_mode="up"), ArgumentError),
        (lambda x: ops.clamp(x), ArgumentError),
        (lambda x: ops.clamp(x, "a"), DTypeError),
        (lambda x: ops.addn(x), DTypeError),
        (lambda x: ops.addn([]), ArgumentError),
        (lambda x: ops.prelu(x, Tensor([1.0, 2.0])), ArgumentError),
        (lambda x: ops.glu(x), ShapeError),
        (lambda x: x & x, DTypeError),
    ],
)
def test_bad_arguments_name_what_where_and_how(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as info:
        call(Tensor([1.0, 2.0, 3.0]))
    text = str(info.value)
    assert text.startswith("ops.") and "got:" in text and "test_elementwise.py:" in text


def test_broadcast_bool_inside_a_reduction() -> None:
    """TVM mixes bits and bytes when one bool operand of a vector operation is broadcast."""
    rng = np.random.default_rng(0)
    a, b = rng.random((4, 5)) < 0.5, rng.random((4, 5)).astype(np.float32)

    def f(a: Tensor, b: Tensor) -> Tensor:
        mask = ops.logical_or(ops.expand_dims(a, 2), ops.expand_dims(b > 0.5, 1))
        return ops.sum(ops.where(mask, 0.0, ops.expand_dims(b, 1)), (1, 2))

    expected = np.where(a[:, :, None] | (b[:, None] > 0.5), 0, b[:, None]).sum((1, 2))
    for level in ("O0", "O1", "O2"):
        actual = ms.jit(f, jit_level=level)(Tensor(a), Tensor(b)).asnumpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("extremum", [ops.maximum, ops.minimum])
@pytest.mark.parametrize("compiled", [False, True])
def test_operands_beside_a_nan_get_the_whole_gradient(extremum: Any, compiled: bool) -> None:
    x = Tensor(np.array([np.nan, 1, np.nan, 2, 1], np.float32))
    y = Tensor(np.array([1, np.nan, np.nan, 2, 3], np.float32))
    gradients = ms.grad(ms.jit(extremum) if compiled else extremum, (0, 1))(x, y)
    taken = 1.0 if extremum is ops.minimum else 0.0
    assert [g.asnumpy().tolist() for g in gradients] == [
        [1.0, 1.0, 1.0, 0.5, taken], [1.0, 1.0, 1.0, 0.5, 1 - taken],
    ]  # fmt: skip
