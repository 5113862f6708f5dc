"""The complementary error function, in arithmetic that processors have vectors of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvmgraph.core.columns import Expr, Formulas
from tvmgraph.ops.common.numpy_math import polynomial

#: (1 + 2a) exp(a^2) erfc(a) in u = (9a/7 - 4) / (a + 4), on -1 <= u <= 1 for 0 <= a <= 28; highest
#: power first. A Chebyshev interpolation with an error below 2^-53.
_SCALED_POLY = (
    1.1810281311298875e-11, 5.701715004910485e-11, -1.6448475973780824e-10, -8.529233660704607e-10,
    1.6652124102185668e-09, 8.355991494838862e-09, -1.849319422692417e-08, -7.032610102642964e-08,
    2.3712161527009406e-07, 4.5316673350388675e-07, -3.125364178122722e-06, 6.694352838086534e-07,
    3.414612723890797e-05, -0.00010246350842849849, -8.368080572402221e-05, 0.0017257044655721579,
    -0.007665324198094414, 0.022129789677086262, -0.04793111599501418, 0.0808385707291274,
    -0.10434370398529631, 0.09124356129722531, -0.01663582317882339, -0.12193736651647731,
    1.2505272632390394,
)  # fmt: skip
#: (2a exp(a^2) erfc(a) - 1) / u in u = (a - k) / (a + k) for 0.45 <= a <= 10.06, k being where it
#: vanishes; highest power first. Relative error of the whole: 2^-27.
_SCALED_POLY32 = (
    -0.0008285084518096284, 0.000261886596954456, 0.004672409670258757, 0.0016383050214640775,
    -0.025397475722764327, -0.01132534841719799, 0.20106311699758456, -0.42631828527027704,
    0.38462095272056773,
)  # fmt: skip
_MIDDLE32 = 1.7736173868179321
#: Below this erfc of float32 is 1 - erf, which does not cancel.
_SPLIT32 = 0.65
#: erfc is 0 from here on.
_MAX, _MAX32 = 28.0, 10.06


def complementary_error(m: Any, x: Any) -> Expr:
    """erfc(x) by a formula in a = |x|, and 2 less that for x < 0.

    Args:
        m: A :class:`~tvmgraph.ops.common.pointwise.Formulas` of float32 (within 4 ulp) or float64.
        x: The argument.
    """
    single = m.dtype == "float32"
    limit, formula = (_MAX32, _single) if single else (_MAX, _double)

    def signed(y: Expr) -> Expr:
        value = m.where(x < 0, 2.0 - y, y)
        if single:
            value = m.where(m.tir.abs(x) < _SPLIT32, 1.0 - m.erf(x), value)
        return m.where(m.isnan(x), x, value)

    magnitude = m.where(x < 0, -x, x)
    bounded = m.where(magnitude < limit, magnitude, limit)

    def value_of(a: Expr) -> Expr:
        return m.let(formula(m, a), signed)

    return m.let(bounded, value_of)


def _scaled(u: Expr) -> Expr:
    return polynomial(u, _SCALED_POLY)


def _double(m: Any, a: Expr) -> Expr:
    """erfc(a) = exp(-a^2) P(u(a)) / (1 + 2a)."""
    u = (a * (9 / 7) - 4.0) / (a + 4.0)
    scaled = m.let(u, _scaled)

    def body(h: Expr, d: Expr) -> Expr:  # exp(-d) by its series: d < 1e-4
        return m.exp(-h * h) * (1.0 - d * (1.0 - d * (0.5 - d * (1 / 6))))

    square = _split_square(m, a, m.tir.Cast("float64", m.tir.Cast("float32", a)), body)
    return square * scaled / (a * 2.0 + 1.0)


def _single(m: Formulas, a: Expr) -> Expr:
    """erfc(a) = exp(-h^2) / 2a (1 + uT(u)) exp(-d): what is close to 1 is added to it last."""
    u = (a - _MIDDLE32) / (a + _MIDDLE32)
    scaled = m.let(u, lambda u: u * polynomial(u, _SCALED_POLY32))

    def body(h: Expr, d: Expr) -> Expr:  # exp(-d) by its series: d < 0.04
        series = -d * (1.0 - d * (0.5 - d * (1 / 6 - d * (1 / 24))))
        small = m.let(scaled, lambda s: m.let(series, lambda e: s * e + e + s))
        return m.let(m.exp(-h * h) * 0.5 / a, lambda q: small * q + q)

    return _split_square(m, a, m.from_bits((m.bits(a) + 0x800) & ~0xFFF), body)


def _split_square(m: Formulas, a: Expr, half: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """Calls ``body(h, d)`` with a^2 = h^2 + d, h having half the bits so that h^2 is exact."""
    return m.let(half, lambda h: m.let((a - h) * (a + h), lambda d: body(h, d)))
