"""Formulas of the incomplete gamma functions and of Hurwitz' zeta, for :mod:`.gamma`.

The number of terms is fixed, so that the same formula runs on arrays and as a compiled kernel:
below ``_LARGE`` the power series (left of the peak) and Legendre's continued fraction (right of
it), above it Gauss-Legendre quadrature over the part of the integrand that matters.
"""

from __future__ import annotations

import math

import numpy as np

from tvmgraph.core.columns import Expr, Formulas
from tvmgraph.ops.math.special import log_gamma_right

_LARGE = 200.0
_TERMS = 140  # the series' terms fall like exp(-k^2 / 2 a)
_LEVELS = 100  # of the continued fraction
_NODES, _WEIGHTS = (v.tolist() for v in np.polynomial.legendre.leggauss(40))
_REACH = 9.5  # standard deviations from the peak to where the integrand is below 1e-17

#: B(2 j) / (2 j)!, the coefficients of the Euler-Maclaurin formula.
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000,
)  # fmt: skip
_SHIFT = 10  # terms of zeta's series summed before it


def _series(m: Formulas, a: Expr, x: Expr) -> Expr | float:
    """1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)), from the inside."""
    value = 1.0
    for k in range(_TERMS, 0, -1):
        value = 1 + x / (a + k) * value
    return value


def _fraction(m: Formulas, a: Expr, x: Expr) -> Expr:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), from the inside."""
    value = x + (2 * _LEVELS + 1) - a
    for k in range(_LEVELS, 0, -1):
        value = x + (2 * k - 1) - a - k * (k - a) / value
    return 1 / value


def _quadrature(m: Formulas, a: Expr, x: Expr, right: Expr) -> Expr:
    """The integral from x into the smaller tail, for a >= _LARGE."""
    peak = a - 1

    def integrate(width: Expr) -> Expr:
        end = m.where(right, peak + _REACH * width, peak - _REACH * width)
        far = m.where(right, x + 0.6 * _REACH * width, x - 0.6 * _REACH * width)
        stop = m.where(right, _maximum(m, end, far), _maximum(m, _minimum(m, end, far), 1e-300))
        return m.let((stop - x) * 0.5, lambda h: _sum(m, peak, x, h))

    log_peak = peak * m.log(peak) - peak - log_gamma_right(m, a)
    return m.let(m.sqrt(peak), integrate) * m.exp(log_peak)


def _sum(m: Formulas, peak: Expr, x: Expr, half: Expr) -> Expr:
    total = 0.0
    for node, weight in zip(_NODES, _WEIGHTS):
        t = x + half * (node + 1)
        ratio = (t - peak) / peak
        total = total + weight * m.exp(peak * (m.log1p(ratio) - ratio))
    return m.where(half < 0, -half, half) * total


def _maximum(m: Formulas, a: Expr, b: object) -> Expr:
    return m.where(a < b, b, a)


def _minimum(m: Formulas, a: Expr, b: Expr) -> Expr:
    return m.where(a < b, a, b)


def _tails(m: Formulas, a: Expr, x: Expr, upper: bool) -> Expr:
    """P or Q of numbers inside the domain, from whichever tail is computed without loss."""
    right = x >= a + 1
    large = a >= _LARGE
    low = m.where(large, 1.0, a)  # where the series is used
    high = m.where(large, a, _LARGE)
    u = m.where(large, 1.0, x)
    near = m.let(
        m.exp(low * m.log(u) - u - log_gamma_right(m, low + 1)),
        lambda prefix: prefix * m.where(
            u >= low + 1,
            low * _fraction(m, low, m.where(u < low + 1, low + 1, u)),
            _series(m, low, m.where(u < low + 1, u, low)),
        ),
    )  # fmt: skip
    v = m.where(large, x, _LARGE)
    small = m.where(large, _quadrature(m, high, v, v >= high + 1), near)
    return m.let(small, lambda t: m.where(right, t, 1 - t) if upper else m.where(right, 1 - t, t))


def _regularized(m: Formulas, a: Expr, x: Expr, upper: bool) -> Expr:
    at_zero, at_infinity = (1.0, 0.0) if upper else (0.0, 1.0)
    inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    value = m.let(
        m.where(inside, a, 1.0),
        lambda b: m.let(m.where(inside, x, 1.0), lambda y: _tails(m, b, y, upper)),
    )
    value = m.where(x == math.inf, at_infinity, m.where(x == 0, at_zero, value))
    valid = (a > 0) & (x >= 0) & (a < math.inf)
    return m.where(valid, value, m.const(math.nan))


def lower_gamma(m: Formulas, a: Expr, x: Expr) -> Expr:
    """The regularized lower incomplete gamma function :math:`P(a, x)`.

    Args:
        m: The functions of the formula.
        a: The shape.
        x: The upper end of the integral.
    """
    return _regularized(m, a, x, upper=False)


def upper_gamma(m: Formulas, a: Expr, x: Expr) -> Expr:
    """The regularized upper incomplete gamma function :math:`Q(a, x) = 1 - P(a, x)`.

    Args:
        m: The functions of the formula.
        a: The shape.
        x: The lower end of the integral.
    """
    return _regularized(m, a, x, upper=True)


def _euler_maclaurin(m: Formulas, s: Expr, q: Expr) -> Expr:
    """The first terms of the series, and what the formula gives for the others."""
    first = 0.0
    for k in range(_SHIFT):
        first = first + m.exp(-s * m.log(q + k))

    def rest(w: Expr) -> Expr:
        correction, rising, power = 0.0, s, 1 / w
        for j, b in enumerate(_BERNOULLI):
            correction = correction + b * rising * power
            rising = rising * (s + (2 * j + 1)) * (s + (2 * j + 2))
            power = power / (w * w)
        return m.exp(-s * m.log(w)) * (w / (s - 1) + 0.5 + correction)

    return first + m.let(q + _SHIFT, rest)


def zeta(m: Formulas, s: Expr, q: Expr) -> Expr:
    r""":math:`\zeta(s, q) = \sum_{k \ge 0} (q + k)^{-s}`.

    It is computed for s > 1 and q > 0, infinite on the boundary, and NaN outside.

    Args:
        m: The functions of the formula.
        s: The exponent.
        q: The first term's base.
    """
    inside = (s > 1) & (q > 0) & (s < math.inf) & (q < math.inf)
    value = m.let(
        m.where(inside, s, 2.0),
        lambda t: m.let(m.where(inside, q, 1.0), lambda p: _euler_maclaurin(m, t, p)),
    )
    beyond = m.where((q == 0) | (s == 1), math.inf, m.const(math.nan))
    valid = (s >= 1) & (q >= 0)
    at_infinity = m.where(s == math.inf, m.where(q < 1, math.inf, m.where(q == 1, 1.0, 0.0)), 0.0)
    boundary = m.where((q == 0) | (s == 1), math.inf, at_infinity)
    return m.where(inside, value, m.where(valid, boundary, beyond))
