"""Exponential, logarithmic, hyperbolic, trigonometric and error functions of float64.

Within 2 units in the last place; tan, log10 and erf within 3. The logarithm and the polynomials of
sine and cosine are those of Sun's fdlibm (e_log.c, k_sin.c, k_cos.c); the exponential is a Taylor
polynomial, which is exact to 2^-57 on the reduced argument; those of erf are fits of our own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, keep_nan, keep_zero, let, with_nearest
from tvmgraph.backend.loop_ir.types import Expr

_LOG2E = 1.4426950408889634
#: ln 2 in two parts; n * LN2_HI is exact for the integers n that occur.
LN2_HI, LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Beyond these exp is 0 and infinity, half of it included.
_EXP_MIN, _EXP_MAX = -746.0, 711.0
#: 1 - tanh(x) is below half a unit in the last place from here on.
_TANH_MAX = 19.1
#: Below this tanh is its power series.
_TANH_SPLIT = 0.35
#: Beyond these 2^x is 0 and infinity.
_EXP2_MIN, _EXP2_MAX = -1076.0, 1025.0
_EXP_SERIES = tuple(1.0 / math.factorial(k) for k in range(14))
#: (sinh(x) - x) / x^3 in x^2
_SINH_SERIES = tuple(1.0 / math.factorial(2 * k + 3) for k in range(9))
#: erf is 1 from here on; below _ERF_SPLIT it is x + x P(x^2).
_ERF_MAX, _ERF_SPLIT = 6.0, 0.92
#: erf(sqrt(z)) / sqrt(z) - 1 on 0 <= z <= 0.95^2; relative error 2^-58
_ERF_POLY = (
    0.12837916709551256, -0.37612638903183676, 0.11283791670951066, -0.026866170644299893,
    0.00522397761662429, -0.0008548326470089453, 0.00012055310901285896, -1.492506821097385e-05,
    1.6451822532187565e-06, -1.6244662947048694e-07, 1.3887981958726256e-08,
    -8.131969491677188e-10,
)  # fmt: skip
#: -log(1 - erf(t)) / t on 0.9 <= t <= 6; relative error of erf 2^-61
_ERFC_POLY = (
    1.1283792014304528, 0.6366193625990845, 0.1027749031798708, -0.019136519990701942,
    -0.0001893166080610997, 0.0016597129708879124, -0.0005383181236332309, -3.229242917032e-05,
    0.00011682655051230402, -6.762100989147828e-05, 2.5370229535102994e-05, -7.117253642059269e-06,
    1.5506095945040093e-06, -2.6352545187510054e-07, 3.4433444441623924e-08,
    -3.3484488403437057e-09, 2.284247958561527e-10, -9.754132797954949e-12, 1.961052496671212e-13,
)  # fmt: skip
_MIN_NORMAL, MAX_FINITE = 2.2250738585072014e-308, 1.7976931348623157e308
#: Bits of sqrt(0.5): taking exponents relative to it puts mantissas in [sqrt(.5), sqrt(2)).
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
#: (log(1+f) - 2s) / s in s^2, with s = f / (2 + f)
_LOG_POLY = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
    2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
    1.479819860511658591e-01,
)  # fmt: skip
#: pi/2 in three parts of 53 bits each.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
#: Up to here three parts are enough, also next to multiples of pi/2; the C library does the rest.
_MAX_ANGLE = float(1 << 27)
#: (sin(r) - r) / r^3 and (cos(r) - 1 + r^2/2) / r^4 in r^2 for |r| <= pi/4
_SIN_POLY = (
    -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
    2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
)  # fmt: skip
_COS_POLY = (
    4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
)  # fmt: skip


def _tanh_series(count: int) -> list[float]:
    """Coefficients of x, x^3, ... from tanh' = 1 - tanh^2."""
    series = [1.0]
    for k in range(1, count):
        square = sum(series[i] * series[k - 1 - i] for i in range(k))
        series.append(-square / (2 * k + 1))
    return series


_TANH_SERIES = _tanh_series(14)


def _pow2(v: Lanes, n: Expr) -> Expr:
    """2^n of an int64 for -1023 < n < 1024."""
    return v.bits(op.shift_left(n + v.i64(1023), v.i64(52)), "float64")


def magnitude_of(v: Lanes, x: Expr) -> Expr:
    """|x|, the sign bit cleared."""
    return v.bits(op.bitwise_and(v.bits(x, "int64"), v.i64(2**63 - 1)), "float64")


def _largest(v: Lanes, x: Expr) -> Expr:
    """The largest lane, NaN left out."""
    if v.lanes == 1:
        return x
    return op.call_llvm_pure_intrin("float64", "llvm.vector.reduce.fmax", x)


def exp(x: Expr) -> Expr:
    """exp(x) = 2^n exp(r) with x = n ln 2 + r, |r| <= ln(2)/2."""
    return _exp_times(x)


def _exp_times(x: Expr, offset: int = 0) -> Expr:
    """2^offset exp(x), also where exp(x) alone would overflow."""
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        return keep_nan(x, let(exp_bounded(v, x), lambda c: exp_of(v, c, offset=offset)))

    return let(x, body)


def exp_bounded(v: Lanes, x: Expr) -> Expr:
    """The nearest number to ``x`` that :func:`exp_of` takes."""
    return tirx.max(tirx.min(x, v.f64(_EXP_MAX)), v.f64(_EXP_MIN))


def exp_of(v: Lanes, x: Expr, rest: Expr | None = None, offset: int = 0) -> Expr:
    """2^offset exp(x + rest) of a bounded ``x`` and a ``rest`` that is small beside 1."""

    def reduced(n: Expr) -> Expr:
        r = (x - n * v.f64(LN2_HI)) - n * v.f64(LN2_LO)
        value = let(r if rest is None else r + rest, lambda r: v.poly(r, _EXP_SERIES, "float64"))
        return _times_pow2(v, value, v.cast(n, "int64") + v.i64(offset))

    return let(op.nearbyint(x * v.f64(_LOG2E)), reduced)


def _times_pow2(v: Lanes, value: Expr, n: Expr) -> Expr:
    """2^n is applied in two factors, so that denormal results come out right."""

    def halves(n: Expr) -> Expr:
        half = op.shift_right(n, v.i64(1))
        return let(half, lambda h: value * _pow2(v, h) * _pow2(v, n - h))

    return let(n, halves)


def exp2(x: Expr) -> Expr:
    """2^x = 2^n exp((x - n) ln 2) with n the nearest integer."""
    v = Lanes(x)

    def body(x: Expr, n: Expr) -> Expr:
        r = (x - n) * v.f64(math.log(2))
        value = let(r, lambda r: v.poly(r, _EXP_SERIES, "float64"))
        return _times_pow2(v, value, v.cast(n, "int64"))

    return with_nearest(x, v.f64(_EXP2_MIN), v.f64(_EXP2_MAX), body)


def cosh(x: Expr) -> Expr:
    """cosh(x) = h + 1/(4h) with h = exp(|x|) / 2."""
    v = Lanes(x)
    half = let(x, lambda x: _exp_times(magnitude_of(v, x), -1))
    return let(half, lambda h: h + v.f64(0.25) / h)


def sinh(x: Expr) -> Expr:
    """sinh(x) = x + x^3 P(x^2) near 0, sign(x) (h - 1/(4h)) with h = exp(|x|) / 2 elsewhere."""
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        near = let(x * x, lambda z: x * z * v.poly(z, _SINH_SERIES, "float64") + x)
        far = let(_exp_times(magnitude_of(v, x), -1), lambda h: h - v.f64(0.25) / h)
        return tirx.Select(magnitude_of(v, x) < v.f64(1), near, with_sign_of(v, far, x))

    return let(x, body)


def erf(x: Expr) -> Expr:
    """erf(x): x + x P(x^2) near 0, sign(x) (1 - exp(-|x| Q(|x|))) elsewhere."""
    v = Lanes(x)

    def body(x: Expr, t: Expr) -> Expr:
        near = x * v.poly(t * t, _ERF_POLY, "float64") + x
        exponent = v.f64(0) - t * v.poly(t, _ERFC_POLY, "float64")
        far = v.f64(1) - let(exponent, lambda e: exp_of(v, e))
        return tirx.Select(t < v.f64(_ERF_SPLIT), near, with_sign_of(v, far, x))

    def bounded(x: Expr) -> Expr:
        bound = tirx.min(magnitude_of(v, x), v.f64(_ERF_MAX))
        return keep_nan(x, let(bound, lambda t: body(x, t)))

    return let(x, bounded)


def with_sign_of(v: Lanes, magnitude: Expr, x: Expr) -> Expr:
    """A magnitude with the sign bit of ``x``."""
    sign = op.bitwise_and(v.bits(x, "int64"), v.i64(-(2**63)))
    return v.bits(op.bitwise_or(v.bits(magnitude, "int64"), sign), "float64")


def tanh(x: Expr) -> Expr:
    """tanh(x) = e / (e + 2) with e = exp(2|x|) - 1, and its power series near 0."""
    v = Lanes(x)

    def quotient(r: Expr, scale: Expr) -> Expr:
        e = scale * (r * r * v.poly(r, _EXP_SERIES[2:], "float64") + r) + (scale - v.f64(1))
        return let(e, lambda e: e / (e + v.f64(2)))

    def reduced(t: Expr, n: Expr) -> Expr:
        r = (t - n * v.f64(LN2_HI)) - n * v.f64(LN2_LO)
        scale = _pow2(v, v.cast(n, "int64"))
        return let(r, lambda r: let(scale, lambda scale: quotient(r, scale)))

    def near(x: Expr, z: Expr) -> Expr:
        return x * z * v.poly(z, _TANH_SERIES[1:], "float64") + x

    def body(x: Expr) -> Expr:
        a = magnitude_of(v, x)
        twice = tirx.min(a, v.f64(_TANH_MAX)) * v.f64(2)
        far = let(twice, lambda t: let(op.nearbyint(t * v.f64(_LOG2E)), lambda n: reduced(t, n)))
        value = tirx.Select(a < v.f64(_TANH_SPLIT), let(a * a, lambda z: near(a, z)), far)
        return keep_nan(x, with_sign_of(v, value, x))

    return let(x, body)


def sigmoid(x: Expr) -> Expr:
    """sigmoid(x) = (x >= 0 ? 1 : e) / (1 + e) with e = exp(-|x|), exact down to the denormals."""
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        e = exp(v.f64(0) - magnitude_of(v, x))
        return let(e, lambda e: tirx.Select(x < v.f64(0), e, v.f64(1)) / (v.f64(1) + e))

    return let(x, body)


def log(x: Expr) -> Expr:
    """log(x) = e ln 2 + log(1 + f) with x = 2^e (1 + f)."""
    v = Lanes(x)

    def finish(f: Expr, e: Expr) -> Expr:
        def body(half: Expr, rest: Expr) -> Expr:
            return e * v.f64(LN2_HI) - ((half - (rest + e * v.f64(LN2_LO))) - f)

        return _with_log_terms(v, f, body)

    return _of_mantissa(x, finish)


def log2(x: Expr) -> Expr:
    """log2(x) = e + log(1 + f) / ln 2, exact for powers of two."""
    v = Lanes(x)

    def finish(f: Expr, e: Expr) -> Expr:
        return _with_log_terms(v, f, lambda half, rest: f - (half - rest)) * v.f64(_LOG2E) + e

    return _of_mantissa(x, finish)


def log10(x: Expr) -> Expr:
    """log(x) / ln 10."""
    return log(x) * Lanes(x).f64(1 / math.log(10))


def _with_log_terms(v: Lanes, f: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """``body(half, rest)`` with log(1 + f) = f - (half - rest) and half = f^2/2."""
    half = f * f * v.f64(0.5)

    def terms(s: Expr) -> Expr:
        series = let(s * s, lambda z: z * v.poly(z, _LOG_POLY, "float64"))  # log(1 + f) / s - 2
        return body(half, s * (half + series))

    return let(f / (v.f64(2) + f), terms)


def _of_mantissa(x: Expr, finish: Callable[[Expr, Expr], Expr]) -> Expr:
    """A logarithm of x = 2^e (1 + f) with sqrt(.5) <= 1 + f < sqrt(2), by ``finish(f, e)``."""
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        value = mantissa(v, x, finish)
        value = tirx.Select(x > v.f64(MAX_FINITE), x, value)
        value = tirx.Select(x == v.f64(0), v.f64(-math.inf), value)
        value = tirx.Select(x < v.f64(0), v.f64(math.nan), value)
        return keep_nan(x, value)

    return let(x, body)


def mantissa(v: Lanes, x: Expr, finish: Callable[[Expr, Expr], Expr]) -> Expr:
    """``finish(f, e)`` of a positive x = 2^e (1 + f) with sqrt(.5) <= 1 + f < sqrt(2)."""

    def split(bits: Expr, offset: Expr) -> Expr:
        exponent = op.shift_right(bits - v.i64(_SQRT_HALF_BITS), v.i64(52))

        def body(e: Expr) -> Expr:
            f = v.bits(bits - op.shift_left(e, v.i64(52)), "float64") - v.f64(1)
            return let(f, lambda f: let(v.cast(e, "float64") - offset, lambda e: finish(f, e)))

        return let(exponent, body)

    tiny = x < v.f64(_MIN_NORMAL)
    bits = v.bits(tirx.Select(tiny, x * v.f64(2.0**54), x), "int64")
    offset = tirx.Select(tiny, v.f64(54), v.f64(0))
    return let(bits, lambda b: split(b, offset))


def log1p(x: Expr) -> Expr:
    """log(1 + x) = log(s) + (x - (s - 1)) / s with s = 1 + x rounded."""
    v = Lanes(x)

    def body(x: Expr, s: Expr) -> Expr:
        lost = (x - (s - v.f64(1))) / s
        lost = tirx.Select(s > v.f64(0), tirx.Select(s > v.f64(MAX_FINITE), s, lost), s)
        return tirx.Select(s == v.f64(1), x, log(s) + lost)

    return let(x, lambda x: let(v.f64(1) + x, lambda s: body(x, s)))


def sin(x: Expr) -> Expr:
    """sin(x) = sin(r), cos(r), -sin(r) or -cos(r) with x = n pi/2 + r."""
    return let(x, lambda x: keep_zero(x, _of_angle("sin", x, _quarter)))


def cos(x: Expr) -> Expr:
    """cos(x) = sin(x + pi/2)."""
    return _of_angle("cos", x, lambda v, n, r: _quarter(v, n + v.i64(1), r))


def tan(x: Expr) -> Expr:
    """tan(x) = sin(r) / cos(r) or -cos(r) / sin(r) with x = n pi/2 + r."""
    return let(x, lambda x: keep_zero(x, _of_angle("tan", x, _tangent)))


def _of_angle(library: str, x: Expr, body: Callable[[Lanes, Expr, Expr], Expr]) -> Expr:
    """Calls ``body(v, n, r)`` with x = n pi/2 + r, |r| <= pi/4, if no lane is beyond the limit."""
    v = Lanes(x)

    def reduced(x: Expr, n: Expr) -> Expr:
        r = x
        for part in _HALF_PI:
            r = v.multiply_add(n, v.f64(-part), r)
        return let(r, lambda r: let(v.cast(n, "int64"), lambda i: body(v, i, r)))

    def usual(x: Expr) -> Expr:
        return let(op.nearbyint(x * v.f64(2 / math.pi)), lambda n: reduced(x, n))

    def guarded(x: Expr) -> Expr:
        large = _largest(v, magnitude_of(v, x)) > tirx.FloatImm("float64", _MAX_ANGLE)
        return op.if_then_else(large, v.each(library, x, dtype="float64"), usual(x))

    return let(x, guarded)


def _sine(v: Lanes, r: Expr, z: Expr) -> Expr:
    """sin(r) with z = r^2."""
    return r * z * v.poly(z, _SIN_POLY, "float64") + r


def _cosine(v: Lanes, z: Expr) -> Expr:
    """cos(r) with z = r^2."""
    half = z * v.f64(0.5)
    whole = v.f64(1) - half
    rest = (v.f64(1) - whole) - half  # what rounding took from 1 - z/2
    return let(whole, lambda w: w + (rest + z * z * v.poly(z, _COS_POLY, "float64")))


def _quarter(v: Lanes, n: Expr, r: Expr) -> Expr:
    """sin(n pi/2 + r)."""

    def body(n: Expr, z: Expr) -> Expr:
        odd = op.bitwise_and(n, v.i64(1)) != v.i64(0)
        sign = op.shift_left(op.bitwise_and(n, v.i64(2)), v.i64(62))
        value = tirx.Select(odd, _cosine(v, z), _sine(v, r, z))
        return v.bits(op.bitwise_xor(v.bits(value, "int64"), sign), "float64")

    return let(n, lambda n: let(r * r, lambda z: body(n, z)))


def _tangent(v: Lanes, n: Expr, r: Expr) -> Expr:
    """tan(n pi/2 + r)."""

    def body(n: Expr, sine: Expr, cosine: Expr) -> Expr:
        odd = op.bitwise_and(n, v.i64(1)) != v.i64(0)
        above = tirx.Select(odd, v.f64(0) - cosine, sine)
        return above / tirx.Select(odd, sine, cosine)

    def both(z: Expr) -> Expr:
        return let(_sine(v, r, z), lambda s: let(_cosine(v, z), lambda c: body(n, s, c)))

    return let(r * r, both)
