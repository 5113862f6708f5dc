"""Formulas of the Bessel functions of orders 0 and 1; the rows are in :mod:`.bessel`.

Near the origin the power series are summed; far from it the functions are an exponential or an
oscillation times a smooth function of 1/x, which is a polynomial fitted with 40 digits (relative
error below 4e-16). Everything is computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tvmgraph.core.columns import Expr, Formulas
from tvmgraph.ops.common.numpy_math import polynomial

_GAMMA = 0.5772156649015329  # the Euler-Mascheroni constant
_NEAR_I = _NEAR_J = 8.0  # the series are used up to here
_NEAR_K = 2.0
_TERMS = 26  # (x / 2)^(2 k) / (k!)^2 is below 1e-20 from here on for x = 8

#: exp(-x) sqrt(x) I(x) for x >= 8, in 16 / x - 1.
_I0 = (
    -1.7166164938175488e-10, -8.853076246050108e-11, 1.0915893161016653e-09,
    6.702584046528111e-10, -3.1868021662287506e-09, -2.5824509003351837e-09,
    5.492774410203639e-09, 6.905503273684613e-09, -4.522137715543013e-09, -1.3113874879941897e-08,
    -7.004556901394248e-09, 7.468652718445711e-09, 2.1593921284189837e-08, 3.9341151967621574e-08,
    8.871772134958215e-08, 2.973583433473054e-07, 1.4838477678808023e-06, 1.1143033860495017e-05,
    0.00013621607438931758, 0.0033605519836669103, 0.4021765094450081,
)  # fmt: skip
_I1 = (
    1.79708076202127e-10, 8.556534373260018e-11, -1.1459875492084381e-09, -6.563550610824565e-10,
    3.364402906942886e-09, 2.575022015245385e-09, -5.872315764049016e-09, -7.045449593614895e-09,
    5.056045544132708e-09, 1.3761872558441389e-08, 7.0017870784877524e-09, -8.34829836133379e-09,
    -2.3421321386723802e-08, -4.314332246730572e-08, -1.0000822498071297e-07,
    -3.483841753091222e-07, -1.8349103429663388e-06, -1.5038547264883471e-05,
    -0.0002192357638311702, -0.009749577193234856, 0.38939845902587233,
)  # fmt: skip
#: exp(x) sqrt(x) K(x) for x >= 2, in 4 / x - 1.
_K0 = (
    -1.5869915340278063e-10, 2.8621152776054687e-10, 3.4902723333410547e-10,
    -6.001265682715459e-10, -1.0347633956849988e-09, 1.934023143487487e-09,
    -9.171077661103289e-10, 2.2461449296532357e-09, -7.831427757725499e-09,
    1.7877994022076155e-08, -4.115047857595318e-08, 1.0267107342235164e-07,
    -2.689475930495757e-07, 7.428402833965886e-07, -2.1911725471550125e-06, 7.002238201255268e-06,
    -2.473520491312846e-05, 9.956054789199718e-05, -0.0004797690567564277, 0.0030328918102636862,
    -0.031071461824889582, 1.2185953385133905,
)  # fmt: skip
_K1 = (
    1.7392609215952031e-10, -3.145455278920714e-10, -3.7917045211910943e-10,
    6.527051008519092e-10, 1.141693901870685e-09, -2.1434292269089625e-09, 1.0718338984465426e-09,
    -2.625846421132203e-09, 9.002864628585638e-09, -2.0724529834790288e-08, 4.825643590588109e-08,
    -1.2172251669359815e-07, 3.2302579610742373e-07, -9.06774470658052e-07, 2.730035728169913e-06,
    -8.961199256397943e-06, 3.284386594101113e-05, -0.00013959022007797642, 0.000735724154897484,
    -0.005566729880061879, 0.1033497377538653, 1.363151890371342,
)  # fmt: skip
#: The amplitude of the cosine, and x times that of the sine, for x >= 8, in 128 / x^2 - 1.
_P0 = (
    3.3715266679787027e-13, -1.2969352268199892e-12, 4.695090892783958e-12,
    -2.4631193427474074e-11, 1.5504597197599842e-10, -1.212231927513999e-09,
    1.2803754179834385e-08, -2.052744609259914e-07, 6.137416080485309e-06, -0.0005363673192140434,
    0.9994572757882519,
)  # fmt: skip
_Q0 = (
    7.660588700004678e-13, -2.4959955008932025e-12, 6.607770877051606e-12,
    -2.7923981952762326e-11, 1.3641381507528205e-10, -7.580593880943547e-10,
    5.146189381541954e-09, -4.5349625953814164e-08, 5.684971918787548e-07,
    -1.1817110670086365e-05, 0.0005466519279474679, -0.12444091103610802,
)  # fmt: skip
_P1 = (
    -3.608605547577502e-13, 1.3951041528127422e-12, -5.0935811696162e-12, 2.6935859497280777e-11,
    -1.7135355304623532e-10, 1.3604270469793975e-09, -1.4708505282683516e-08,
    2.4536764022725565e-07, -7.959694698837206e-06, 0.000898804941671665, 1.0009070262780821,
)  # fmt: skip
_Q1 = (
    2.789203537560468e-13, -8.401208738069145e-13, 1.828906065466445e-12, -7.031097818821853e-12,
    3.110817879111466e-11, -1.4842507670096497e-10, 8.315770668743603e-10, -5.720815729915534e-09,
    5.1361063866241454e-08, -6.633568654309039e-07, 1.456961480970388e-05, -0.0007697167057640408,
    0.3742149922195918,
)  # fmt: skip


def _harmonic(k: int) -> float:
    return math.fsum(1 / i for i in range(1, k + 1))


def _series(coefficient: Callable[[int], float]) -> tuple[float, ...]:
    """Coefficients of a power series in (x / 2)^2, highest power first."""
    return tuple(coefficient(k) for k in reversed(range(_TERMS)))


def _square_factorial(k: int, order: int) -> float:
    return float(math.factorial(k) * math.factorial(k + order))


def _log_weight(k: int) -> float:
    """psi(k + 1) + psi(k + 2)."""
    return _harmonic(k) + _harmonic(k + 1) - 2 * _GAMMA


_I0_NEAR = _series(lambda k: 1 / _square_factorial(k, 0))
_I1_NEAR = _series(lambda k: 1 / _square_factorial(k, 1))
_J0_NEAR = _series(lambda k: (-1) ** k / _square_factorial(k, 0))
_J1_NEAR = _series(lambda k: (-1) ** k / _square_factorial(k, 1))
_K0_NEAR = _series(lambda k: (_harmonic(k) - _GAMMA) / _square_factorial(k, 0))
_K1_NEAR = _series(lambda k: _log_weight(k) / _square_factorial(k, 1))
_Y0_NEAR = _series(lambda k: (-1) ** k * (_GAMMA - _harmonic(k)) / _square_factorial(k, 0))
_Y1_NEAR = _series(lambda k: (-1) ** k * _log_weight(k) / _square_factorial(k, 1))


def _near(m: Formulas, x: Expr, limit: float, coefficients: tuple[float, ...]) -> Expr:
    """Sums a series for arguments up to ``limit``; what lies beyond is computed elsewhere."""
    half = m.where(x < limit, x, limit) * 0.5
    return m.let(half * half, lambda q: polynomial(q, coefficients))


def _far(m: Formulas, x: Expr, limit: float, power: int, coefficients: tuple[float, ...]) -> Expr:
    """Evaluates a polynomial in (limit / x)^power mapped to [-1, 1], for arguments from limit."""
    u = limit / m.where(x > limit, x, limit)
    return m.let((u if power == 1 else u * u) * 2 - 1, lambda t: polynomial(t, coefficients))


def _scaled_i(m: Formulas, x: Expr, near: Expr, far: Expr, scaled: bool) -> Expr:
    """exp(-x) I(x), or I(x), of an even function for x >= 0."""
    factor = 1.0 if scaled else m.exp(x)
    small = near * (m.exp(-x) if scaled else 1.0)
    # an infinite exponential times the vanishing 1 / sqrt(x) would be NaN
    large = far / m.sqrt(m.where(x < _NEAR_I, _NEAR_I, x)) * factor
    infinite = 0.0 if scaled else math.inf
    return m.where(x < _NEAR_I, small, m.where(x == math.inf, infinite, large))


def i0(scaled: bool) -> Callable[..., Expr]:
    """I0, or exp(-abs(x)) I0(x) where ``scaled``.

    Args:
        scaled: Whether it is multiplied by exp(-abs(x)).
    """

    def formula(m: Formulas, x: Expr) -> Expr:
        def even(a: Expr) -> Expr:
            near, far = _near(m, a, _NEAR_I, _I0_NEAR), _far(m, a, _NEAR_I, 1, _I0)
            return _scaled_i(m, a, near, far, scaled)

        return m.let(m.where(x < 0, -x, x), even)

    return formula


def i1(scaled: bool) -> Callable[..., Expr]:
    """I1, or exp(-abs(x)) I1(x) where ``scaled``.

    Args:
        scaled: Whether it is multiplied by exp(-abs(x)).
    """

    def formula(m: Formulas, x: Expr) -> Expr:
        def odd(a: Expr) -> Expr:
            near = _near(m, a, _NEAR_I, _I1_NEAR) * a * 0.5
            y = _scaled_i(m, a, near, _far(m, a, _NEAR_I, 1, _I1), scaled)
            return m.let(y, lambda y: m.where(x < 0, -y, y))

        return m.let(m.where(x < 0, -x, x), odd)

    return formula


def _oscillation(m: Formulas, x: Expr, order: int, second: bool) -> Expr:
    """J(x), or Y(x) where ``second``, for x >= 8: sqrt(2 / (pi x)) times a rotated (P, Q)."""
    p = _far(m, x, _NEAR_J, 2, _P1 if order else _P0)
    q = _far(m, x, _NEAR_J, 2, _Q1 if order else _Q0)
    safe = m.where(x > _NEAR_J, x, _NEAR_J)
    # sin and cos of infinity are NaN, but the amplitude vanishes there
    finite = m.where(safe == math.inf, _NEAR_J, safe)
    phase = finite - (2 * order + 1) * (math.pi / 4)
    c, s = m.cos(phase), m.sin(phase)
    wave = p * s + q * c / finite if second else p * c - q * s / finite
    amplitude = m.sqrt(2 / math.pi / safe)
    return m.where(m.isnan(x), x, wave * amplitude)


def j0(m: Formulas, x: Expr) -> Expr:
    """:math:`J_0(x)`.

    Args:
        m: The functions of the formula.
        x: An element.
    """

    def even(a: Expr) -> Expr:
        return m.where(a < _NEAR_J, _near(m, a, _NEAR_J, _J0_NEAR), _oscillation(m, a, 0, False))

    return m.let(m.where(x < 0, -x, x), even)


def j1(m: Formulas, x: Expr) -> Expr:
    """:math:`J_1(x)`.

    Args:
        m: The functions of the formula.
        x: An element.
    """

    def odd(a: Expr) -> Expr:
        near = _near(m, a, _NEAR_J, _J1_NEAR) * a * 0.5
        y = m.where(a < _NEAR_J, near, _oscillation(m, a, 1, False))
        return m.let(y, lambda y: m.where(x < 0, -y, y))

    return m.let(m.where(x < 0, -x, x), odd)


def _right_of_zero(m: Formulas, x: Expr, y: Expr, at_zero: float) -> Expr:
    """Gives the limit at zero also left of it, as MindSpore does."""
    return m.where(x <= 0, at_zero, y)


def _log_half(m: Formulas, x: Expr, limit: float) -> Expr:
    """log(x / 2) where 0 < x < limit, and some number elsewhere."""
    return m.log(m.where((x > 0) & (x < limit), x, 1.0) * 0.5)


def y0(m: Formulas, x: Expr) -> Expr:
    """:math:`Y_0(x)`.

    Args:
        m: The functions of the formula.
        x: An element; -infinity is returned where it is not positive.
    """
    log_half = _log_half(m, x, _NEAR_J)
    near = log_half * _near(m, x, _NEAR_J, _J0_NEAR) + _near(m, x, _NEAR_J, _Y0_NEAR)
    y = m.where(x < _NEAR_J, near * (2 / math.pi), _oscillation(m, x, 0, True))
    return _right_of_zero(m, x, y, -math.inf)


def y1(m: Formulas, x: Expr) -> Expr:
    """:math:`Y_1(x)`.

    Args:
        m: The functions of the formula.
        x: An element; -infinity is returned where it is not positive.
    """
    inner = m.where((x > 0) & (x < _NEAR_J), x, 1.0)
    log_half = _log_half(m, x, _NEAR_J)
    series = log_half * _near(m, x, _NEAR_J, _J1_NEAR) - 0.5 * _near(m, x, _NEAR_J, _Y1_NEAR)
    near = (series * inner - 2 / inner) / math.pi
    y = m.where(x < _NEAR_J, near, _oscillation(m, x, 1, True))
    return _right_of_zero(m, x, y, -math.inf)


def k0(scaled: bool) -> Callable[..., Expr]:
    """K0, or exp(x) K0(x) where ``scaled``.

    Args:
        scaled: Whether it is multiplied by exp(x).
    """

    def formula(m: Formulas, x: Expr) -> Expr:
        log_half = _log_half(m, x, _NEAR_K)
        near = _near(m, x, _NEAR_K, _K0_NEAR) - log_half * _near(m, x, _NEAR_K, _I0_NEAR)
        return _scaled_k(m, x, near, _K0, scaled)

    return formula


def k1(scaled: bool) -> Callable[..., Expr]:
    """K1, or exp(x) K1(x) where ``scaled``.

    Args:
        scaled: Whether it is multiplied by exp(x).
    """

    def formula(m: Formulas, x: Expr) -> Expr:
        inner = m.where((x > 0) & (x < _NEAR_K), x, 1.0)
        log_half = _log_half(m, x, _NEAR_K)
        series = log_half * _near(m, x, _NEAR_K, _I1_NEAR) - 0.5 * _near(m, x, _NEAR_K, _K1_NEAR)
        return _scaled_k(m, x, 1 / inner + 0.5 * inner * series, _K1, scaled)

    return formula


def _scaled_k(m: Formulas, x: Expr, near: Expr, table: tuple[float, ...], scaled: bool) -> Expr:
    outer = m.where(x > _NEAR_K, x, _NEAR_K)
    far = _far(m, x, _NEAR_K, 1, table) / m.sqrt(outer)
    if scaled:
        y = m.where(x < _NEAR_K, near * m.exp(m.where(x < _NEAR_K, x, 0.0)), far)
    else:
        y = m.where(x < _NEAR_K, near, far * m.exp(-outer))
    return _right_of_zero(m, x, m.where(m.isnan(x), x, y), math.inf)
