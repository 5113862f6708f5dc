"""The error function, the gamma function and their relatives, elementwise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.columns import Builder, Expr, Formulas
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.tensor import Tensor
from tvmgraph.ops.common.numpy_math import polynomial
from tvmgraph.ops.common.pointwise import (
    Formula,
    float_samples,
    formula_row,
    numpy_formula,
    pointwise,
    unary,
)

__all__ = ["digamma", "erf", "erfc", "erfinv", "lgamma", "logit", "trigamma"]

_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)

#: erfinv(x) / x with w = -ln(1 - x^2) (after Giles, "Approximating the erfinv function"), highest
#: power first: in w - 2.5 for w < 5, and in sqrt(w) - _ERFINV_MIDDLE up to w = 17, where x is the
#: float32 next to 1. Relative error 2e-8. Doubles reach w = 37: they start from a fit over all of
#: that, 3e-5 off, and Newton steps do the rest.
_ERFINV_NEAR = (
    4.67193250903866e-10, -8.73901070283012e-09, 1.59843061339001e-08, 4.65417410502317e-07,
    -3.42341427422205e-06, -4.95969179421594e-06, 0.000218257723963833, -0.00125274850284166,
    -0.00417732004054012, 0.246640289427455, 1.50140935111079,
)  # fmt: skip
_ERFINV_FAR = (
    -3.46924967075509e-05, 0.000106599596161153, -4.97206243794179e-05, -0.00035110477658045,
    0.00113695307907156, -0.00213031063328944, 0.00315987362047185, -0.00454320174739195,
    0.00624374650440765, 1.00444308984823, 3.01313011427905,
)  # fmt: skip
_ERFINV_MIDDLE = 3.179586801558725
_ERFINV_WIDE = (
    -5.6497821e-05, 0.00013145106, 5.6874926e-05, -4.0735652e-05, -0.00079143653, 0.0010132989,
    1.0099435, 4.0417022,
)  # fmt: skip
_ERFINV_WIDE_MIDDLE = 4.2
_NEWTON_STEPS = 2

#: Lanczos' series with g = 7, 15 digits, as one quotient of polynomials, highest power first.
_LANCZOS_P = (
    0.9999999999998099, 60.45833333334203, 1599.0425347220457, 24165.510665029535,
    228235.2154997145, 1379496.2658786706, 5210869.017760831, 11246929.484659927,
    10619610.099075994,
)  # fmt: skip
_LANCZOS_Q = (1.0, 36.0, 546.0, 4536.0, 22449.0, 67284.0, 118124.0, 109584.0, 40320.0)
_LANCZOS_G = 7.0
#: sin(pi r) / r in r^2 for |r| <= 1/2, highest power first.
_SINE_SERIES = tuple(
    (-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(12)[::-1]
)
#: Polynomials of larger numbers would overflow; their quotients are constant by then.
_LARGE = 1e15
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

#: Coefficients in 1/x^2 of the asymptotic series of digamma and trigamma, highest power first.
_DIGAMMA_SERIES = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_TRIGAMMA_SERIES = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
_SHIFT = 8  # the series are used from here on: 15 digits
#: x (x + 1) ... (x + 7), highest power first, and its derivative: their quotient sums 1 / (x + k).
_RISING = (1.0, 28.0, 322.0, 1960.0, 6769.0, 13132.0, 13068.0, 5040.0, 0.0)
_RISING_SLOPE = (8.0, 196.0, 1932.0, 9800.0, 27076.0, 39396.0, 26136.0, 5040.0)


def _erf(m: Formulas, x: Expr) -> Expr:
    return m.erf(x)


def _erfc(m: Formulas, x: Expr) -> Expr:
    return m.erfc(x)


@unary(
    numpy_formula(_erf, long=True),
    "erf",
    lambda g, y, x: (g * (F.exp(-x * x) * _TWO_OVER_SQRT_PI),),
    "Erf",
)
def erf(input: Tensor) -> Tensor:
    r"""Error function, elementwise: :math:`y = \frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.erf(Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  5.20499885e-01])
    """
    ...


@unary(
    numpy_formula(_erfc, np.dtype("float64")),
    pointwise("erfc", _erfc),
    lambda g, y, x: (g * (F.exp(-x * x) * -_TWO_OVER_SQRT_PI),),
    lambda O, x: O.Sub(O.const(1, x.type.dtype), O.Erf(x)),
)
def erfc(input: Tensor) -> Tensor:
    r"""Complementary error function, elementwise: :math:`y = 1 - erf(x)`, exact for large x too.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Note:
        ONNX has no erfc; the exported form ``1 - Erf(x)`` loses relative accuracy for large x.

    Example:
        >>> ops.erfc(Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  4.79500115e-01])
    """
    ...


def _erfinv_log(m: Formulas, x: Expr) -> Expr:
    """-ln(1 - x^2), and a finite number beyond 1."""
    a = m.where(x < 0, -x, x)
    return m.let(m.where(a < 1, a, 0.5), lambda a: -m.log((1 - a) * (1 + a)))


def _erfinv_start(m: Formulas, x: Expr, w: Expr, wide: bool = False) -> Expr:
    middle, far = (_ERFINV_WIDE_MIDDLE, _ERFINV_WIDE) if wide else (_ERFINV_MIDDLE, _ERFINV_FAR)
    inner = polynomial(m.where(w < 5, w, 5.0) - 2.5, _ERFINV_NEAR)
    outer = polynomial(m.sqrt(m.where(w < 5, 5.0, w)) - middle, far)
    return x * m.where(w < 5, inner, outer)


def _erfinv_step(m: Formulas, a: Expr, y: Expr) -> Expr:
    """A step of Newton on erf, or on erfc where erf is close to 1 and would cancel."""
    error = m.where(a < 0.5, m.erf(y) - a, (1 - a) - m.erfc(y))
    return y - error / (m.exp(-y * y) * _TWO_OVER_SQRT_PI)


def _erfinv_edges(m: Formulas, x: Expr, value: Expr) -> Expr:
    edge = m.where(x == 1, math.inf, m.where(x == -1, -math.inf, m.const(math.nan)))
    return m.where((x < 1) & (x > -1), value, edge)


def _erfinv_magnitude(m: Formulas, x: Expr) -> Expr:
    """|x|, and a number below 1 beyond."""
    a = m.where(x < 0, -x, x)
    return m.where(a < 1, a, 0.5)


def _erfinv_result(m: Formulas, x: Expr, y: Expr) -> Expr:
    return _erfinv_edges(m, x, m.where(x < 0, -y, y))


def _erfinv(m: Formulas, x: Expr) -> Expr:
    a = _erfinv_magnitude(m, x)
    y = _erfinv_start(m, a, _erfinv_log(m, a), wide=True)
    for _ in range(_NEWTON_STEPS):
        y = _erfinv_step(m, a, y)
    return _erfinv_result(m, x, y)


def _converted(R: Builder, x: Expr, lower: Callable[[Expr], Expr]) -> Expr:
    """Calls ``lower`` with float64, converted apart: TVM takes long over it inside of formulas."""
    dtype = R.type(x).dtype.name
    return R.op.astype(R.emit(lower(R.emit(R.op.astype(x, "float64")))), dtype)


def _lower_erfinv(R: Builder, x: Expr) -> Expr:
    """Each step apart, so that its result is computed once; of less than float64 without Newton."""

    def emit(step: str, formula: Formula, *operands: Expr) -> Expr:
        return R.emit(pointwise(f"erfinv_{step}", formula)(R, *operands))

    def rounded(m: Formulas, x: Expr) -> Expr:
        return m.let(_erfinv_log(m, x), lambda w: _erfinv_edges(m, x, _erfinv_start(m, x, w)))

    if R.type(x).dtype is not dtypes.float64:
        return emit("result", rounded, x)
    a = emit("magnitude", _erfinv_magnitude, x)
    wide = functools.partial(_erfinv_start, wide=True)
    y = emit("start", wide, a, emit("log", _erfinv_log, a))
    for _ in range(_NEWTON_STEPS):
        y = emit("step", _erfinv_step, a, y)
    return emit("result", _erfinv_result, x, y)


@precise
@unary(
    numpy_formula(_erfinv, np.dtype("float64")),
    _lower_erfinv,
    lambda g, y, x: (g * (F.exp(y * y) / _TWO_OVER_SQRT_PI),),
    Reason("ONNX has no inverse error function"),
    samples=[
        *float_samples(-0.95, 0.95),
        sample(np.array([1, -1, 0.999999, -0.999, 1e-8, 2], np.float32), grad=False),
    ],
    name="erfinv",
)
def erfinv(input: Tensor) -> Tensor:
    r"""Inverse of the error function, elementwise: :math:`erf(y) = x`.

    Args:
        input: Tensor of any shape with elements in (-1, 1).

    Returns:
        Tensor of ``input``'s shape; infinite at -1 and 1, NaN outside.

    Example:
        >>> ops.erfinv(Tensor([0.0, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  4.76936281e-01])
    """
    ...


def _lanczos(m: Formulas, z: Expr) -> tuple[Expr, Expr, Expr]:
    """The parts of ln Gamma(z + 1) = main + ln(p / q) for z >= -0.5."""
    bounded = m.where(z < _LARGE, z, _LARGE)
    p, q = polynomial(bounded, _LANCZOS_P), polynomial(bounded, _LANCZOS_Q)
    t = z + (_LANCZOS_G + 0.5)
    return (z + 0.5) * m.log(t) - t + _HALF_LOG_2PI, p, q


def log_gamma_right(m: Formulas, x: Expr) -> Expr:
    r""":math:`\ln \Gamma(x)` for x >= 0.5.

    Args:
        m: The functions of the formula.
        x: An element.
    """
    main, p, q = _lanczos(m, x - 1)
    return main + m.log(p / q)


def _lgamma(m: Formulas, x: Expr) -> Expr:
    """For x < 0.5 by reflection: ln(pi / |sin(pi x)|) less that of 1 - x; one logarithm for all."""
    left = x < 0.5
    r = x - m.rint(x)  # the distance from the nearest integer, which is exact
    sine = r * polynomial(r * r, _SINE_SERIES)
    main, p, q = _lanczos(m, m.where(left, -x, x - 1))
    ratio = m.where(left, math.pi * q, p) / m.where(left, p * m.where(sine < 0, -sine, sine), q)
    value = main * m.where(left, -1.0, 1.0) + m.log(ratio)
    infinite = m.isinf(x) | (left & (m.floor(x) == x))
    return m.where(infinite, math.inf, value)


def _lower_lgamma(R: Builder, x: Expr) -> Expr:
    lower = pointwise("lgamma", _lgamma)
    return (
        lower(R, x)
        if R.type(x).dtype is dtypes.float64
        else _converted(R, x, lambda x: lower(R, x))
    )


@unary(
    numpy_formula(_lgamma, np.dtype("float64")),
    _lower_lgamma,
    lambda g, y, x: (g * F.digamma(x),),
    Reason("ONNX has no gamma function"),
    samples=[*float_samples(0.2, 5.0), sample((9,), low=-3.9, high=-3.1)],
    name="lgamma",
)
def lgamma(input: Tensor) -> Tensor:
    r"""Logarithm of the gamma function's absolute value, elementwise: :math:`y = \ln|\Gamma(x)|`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape; infinite at 0 and the negative integers.

    Example:
        >>> ops.lgamma(Tensor([0.5, 3.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 5.72364926e-01,  6.93147182e-01])
    """
    ...


def _digamma_right(m: Formulas, x: Expr) -> Expr:
    """psi(x) for x >= 0.5: by recurrence to x + _SHIFT, then by the asymptotic series."""
    shift = m.let(
        m.where(x < _LARGE, x, _LARGE),
        lambda x: polynomial(x, _RISING_SLOPE) / polynomial(x, _RISING),
    )
    y = x + _SHIFT
    series = m.let(1 / (y * y), lambda z: z * polynomial(z, _DIGAMMA_SERIES))
    return m.log(y) - 0.5 / y - series - shift


def _digamma(m: Formulas, x: Expr) -> Expr:
    left = x < 0.5
    angle = (x - m.rint(x)) * math.pi
    safe = m.where(left & (angle * angle > 0), angle, 1.0)
    cotangent = m.let(safe, lambda a: m.cos(a) / m.sin(a))
    right = m.let(m.where(left, 1 - x, x), lambda z: _digamma_right(m, z))
    value = m.let(right, lambda y: m.where(left, y - math.pi * cotangent, y))
    pole = m.where(x == 0, -math.inf, m.const(math.nan))
    return m.where(left & (m.floor(x) == x), pole, value)


@formula_row(
    "digamma",
    _digamma,
    lambda g, y, x: (g * F.trigamma(x),),
    Reason("ONNX has no gamma function"),
    samples=[*float_samples(0.2, 5.0, extremes=False), sample((9,), low=-3.9, high=-3.1)],
    wide="float64",
)
def digamma(input: Tensor) -> Tensor:
    r"""Derivative of :func:`lgamma`, elementwise: :math:`y = \Gamma'(x) / \Gamma(x)`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape; NaN at the negative integers, -inf at 0.

    Example:
        >>> ops.digamma(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [-5.77215672e-01,  4.22784328e-01])
    """
    ...


def _trigamma_right(m: Formulas, x: Expr) -> Expr:
    shift = 1 / (x * x)
    for k in range(1, _SHIFT):
        shift = shift + 1 / ((x + k) * (x + k))
    y = x + _SHIFT
    series = m.let(1 / (y * y), lambda z: 0.5 * z + z / y * polynomial(z, _TRIGAMMA_SERIES))
    return 1 / y + series + shift


def _trigamma(m: Formulas, x: Expr) -> Expr:
    left = x < 0.5
    ratio = math.pi / m.sin((x - m.rint(x)) * math.pi)
    right = m.let(m.where(left, 1 - x, x), lambda z: _trigamma_right(m, z))
    square = m.let(ratio, lambda r: r * r)
    return m.let(right, lambda y: m.where(left, square - y, y))


@formula_row(
    "trigamma",
    _trigamma,
    Reason("the third derivative of the gamma function's logarithm is not in the table"),
    Reason("ONNX has no gamma function"),
    samples=[*float_samples(0.2, 5.0, extremes=False), sample((9,), low=-3.9, high=-3.1)],
    wide="float64",
)
def trigamma(input: Tensor) -> Tensor:
    r"""Derivative of :func:`digamma`, elementwise: :math:`y = \frac{d^2}{dx^2} \ln \Gamma(x)`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Example:
        >>> ops.trigamma(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.64493406e+00,  6.44934058e-01])
    """
    ...


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    r"""Inverse of the sigmoid, elementwise: :math:`y = \ln(z / (1 - z))`, z being x or x clamped.

    Args:
        input: Tensor of any shape.
        eps: Elements are limited to ``[eps, 1 - eps]`` first, unless it is ``None``.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.logit(Tensor([0.1, 0.5]))
        Tensor(shape=[2], dtype=Float32, value= [-2.19722462e+00,  0.00000000e+00])
    """
    z = input if input.dtype.kind in "fc" else F.cast(input, dtypes.float32)
    if eps is not None:
        z = F.clamp(z, eps, 1 - eps)
    return F.log(z / (1 - z))
