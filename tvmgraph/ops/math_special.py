"""The error function, the gamma function and their relatives, elementwise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.ops._numpy_math import polynomial
from tvmgraph.ops._pointwise import float_samples, formula_row, numpy_formula, unary

__all__ = ["digamma", "erf", "erfc", "erfinv", "lgamma", "logit", "trigamma"]

_TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)

#: Giles, "Approximating the erfinv function": 7 digits, then improved by Newton steps.
_ERFINV_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_ERFINV_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
_NEWTON_STEPS = 2

#: Lanczos' series with g = 7: 15 digits.
_LANCZOS = (
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
_LANCZOS_0, _LANCZOS_G = 0.99999999999980993, 7.0
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

#: Coefficients in 1/x^2 of the asymptotic series of digamma and trigamma, highest power first.
_DIGAMMA_SERIES = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_TRIGAMMA_SERIES = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
_SHIFT = 8  # the series are used from here on: 15 digits


@unary(
    numpy_formula(lambda m, x: m.erf(x), long=True),
    "erf",
    lambda g, y, x: (g * (F.exp(-x * x) * _TWO_OVER_SQRT_PI),),
    "Erf",
)
def erf(input: Tensor) -> Tensor:
    r"""Error function, elementwise: :math:`y = \frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.erf(Tensor([0.0, 0.5]))
    """
    ...


@formula_row(
    "erfc",
    lambda m, x: m.erfc(x),
    lambda g, y, x: (g * (F.exp(-x * x) * -_TWO_OVER_SQRT_PI),),
    lambda O, x: O.Sub(O.const(1, x.type.dtype), O.Erf(x)),
    wide="float64",
)
def erfc(input: Tensor) -> Tensor:
    r"""Complementary error function, elementwise: :math:`y = 1 - erf(x)`, exact for large x too.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape.

    Note:
        ONNX has no erfc; the exported form ``1 - Erf(x)`` loses relative accuracy for large x.

    Example:
        >>> ops.erfc(Tensor([0.0, 0.5]))
    """
    ...


def _erfinv_start(m: Any, x: Any) -> Any:
    def branches(w: Any) -> Any:
        near = m.let(m.where(w < 5, w, 5.0) - 2.5, lambda v: polynomial(v, _ERFINV_NEAR))
        far = m.let(m.sqrt(m.where(w < 5, 5.0, w)) - 3.0, lambda v: polynomial(v, _ERFINV_FAR))
        return x * m.where(w < 5, near, far)

    return m.let(-m.log((1 - x) * (1 + x)), branches)


def _erfinv_steps(m: Any, a: Any, y: Any, steps: int) -> Any:
    """Newton on erf, or on erfc where erf is close to 1 and would cancel."""
    if not steps:
        return y
    error = m.where(a < 0.5, m.erf(y) - a, (1 - a) - m.erfc(y))
    better = y - error / (m.exp(-y * y) * _TWO_OVER_SQRT_PI)
    return m.let(better, lambda y: _erfinv_steps(m, a, y, steps - 1))


def _erfinv(m: Any, x: Any) -> Any:
    def inside(a: Any) -> Any:
        steps = 0 if m.coarse else _NEWTON_STEPS  # 7 digits are plenty for bfloat16
        y = m.let(_erfinv_start(m, a), lambda y: _erfinv_steps(m, a, y, steps))
        return m.let(y, lambda y: m.where(x < 0, -y, y))

    magnitude = m.where(x < 0, -x, x)
    value = m.let(m.where(magnitude < 1, magnitude, 0.5), inside)
    edge = m.where(x == 1, math.inf, m.where(x == -1, -math.inf, m.const(math.nan)))
    return m.where(magnitude < 1, value, edge)


@formula_row(
    "erfinv",
    _erfinv,
    lambda g, y, x: (g * (F.exp(y * y) / _TWO_OVER_SQRT_PI),),
    Reason("ONNX has no inverse error function"),
    samples=[
        *float_samples(-0.95, 0.95),
        sample(np.array([1, -1, 0.999999, -0.999, 1e-8, 2], np.float32), grad=False),
    ],
    wide="float64",
)
def erfinv(input: Tensor) -> Tensor:
    r"""Inverse of the error function, elementwise: :math:`erf(y) = x`.

    Args:
        input: Tensor of any shape with elements in (-1, 1).

    Returns:
        Tensor of ``input``'s shape; infinite at -1 and 1, NaN outside.

    Example:
        >>> ops.erfinv(Tensor([0.0, 0.5]))
    """
    ...


def log_gamma_right(m: Any, x: Any) -> Any:
    """ln Gamma(x) for x >= 0.5."""
    z = x - 1
    series = _LANCZOS_0
    for i, c in enumerate(_LANCZOS):
        series = c / (z + (i + 1)) + series
    tail = m.let(z + (_LANCZOS_G + 0.5), lambda t: (z + 0.5) * m.log(t) - t)
    return tail + _HALF_LOG_2PI + m.log(series)


def _lgamma(m: Any, x: Any) -> Any:
    left = x < 0.5

    def reflected(y: Any) -> Any:
        sine = m.sin((x - m.floor(x)) * math.pi)  # of the fraction: exact for large x
        log_sine = m.let(sine, lambda s: m.log(m.where(s < 0, -s, s)))
        return m.where(left, math.log(math.pi) - log_sine - y, y)

    right = m.let(m.where(left, 1 - x, x), lambda z: log_gamma_right(m, z))
    infinite = m.isinf(x) | (left & (m.floor(x) == x))
    return m.where(infinite, math.inf, m.let(right, reflected))


@formula_row(
    "lgamma",
    _lgamma,
    lambda g, y, x: (g * F.digamma(x),),
    Reason("ONNX has no gamma function"),
    samples=[*float_samples(0.2, 5.0), sample((9,), low=-3.9, high=-3.1)],
    wide="float64",
)
def lgamma(input: Tensor) -> Tensor:
    r"""Logarithm of the gamma function's absolute value, elementwise: :math:`y = \ln|\Gamma(x)|`.

    Args:
        input: Tensor of any shape; integers are computed in float32.

    Returns:
        Tensor of ``input``'s shape; infinite at 0 and the negative integers.

    Example:
        >>> ops.lgamma(Tensor([0.5, 3.0]))
    """
    ...


def _digamma_right(m: Any, x: Any) -> Any:
    """psi(x) for x >= 0.5: by recurrence to x + _SHIFT, then by the asymptotic series."""
    shift = 1 / x
    for k in range(1, _SHIFT):
        shift = shift + 1 / (x + k)
    y = x + _SHIFT
    series = m.let(1 / (y * y), lambda z: z * polynomial(z, _DIGAMMA_SERIES))
    return m.log(y) - 0.5 / y - series - shift


def _digamma(m: Any, x: Any) -> Any:
    left = x < 0.5
    angle = (x - m.floor(x)) * math.pi
    safe = m.where(left & (angle > 0), angle, 1.0)
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
    """
    ...


def _trigamma_right(m: Any, x: Any) -> Any:
    shift = 1 / (x * x)
    for k in range(1, _SHIFT):
        shift = shift + 1 / ((x + k) * (x + k))
    y = x + _SHIFT
    series = m.let(1 / (y * y), lambda z: 0.5 * z + z / y * polynomial(z, _TRIGAMMA_SERIES))
    return 1 / y + series + shift


def _trigamma(m: Any, x: Any) -> Any:
    left = x < 0.5
    ratio = math.pi / m.sin((x - m.floor(x)) * math.pi)
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

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.trigamma(Tensor([1.0, 2.0]))
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
    """
    z = F.cast(input, dtypes.float32) if not input.dtype.is_float else input
    if eps is not None:
        z = F.clamp(z, eps, 1 - eps)
    return F.log(z / (1 - z))
