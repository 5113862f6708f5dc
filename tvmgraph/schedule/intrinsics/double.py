"""Exponential, logarithmic, hyperbolic and trigonometric functions of float64.

Within 2 units in the last place. The logarithm and the polynomials of sine and cosine are those of
Sun's fdlibm (e_log.c, k_sin.c, k_cos.c); the exponential is a Taylor polynomial, which is exact to
2^-57 on the reduced argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import tirx
from tvm.tirx import op

from tvmgraph.schedule.intrinsics.lanes import Lanes, keep_nan, let
from tvmgraph.schedule.types import Expr

_LOG2E = 1.4426950408889634
#: ln 2 in two parts; n * _LN2_HI is exact for the integers n that occur.
_LN2_HI, _LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Beyond these exp is 0 and infinity.
_EXP_MIN, _EXP_MAX = -746.0, 710.0
#: 1 - tanh(x) is below half a unit in the last place from here on.
_TANH_MAX = 19.1
#: Below this tanh is its power series.
_TANH_SPLIT = 0.35
_EXP_SERIES = tuple(1.0 / math.factorial(k) for k in range(14))
_MIN_NORMAL, _MAX_FINITE = 2.2250738585072014e-308, 1.7976931348623157e308
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


def _abs(v: Lanes, x: Expr) -> Expr:
    return v.bits(op.bitwise_and(v.bits(x, "int64"), v.i64(2**63 - 1)), "float64")


def _multiply_add(v: Lanes, a: Expr, b: Expr, c: Expr) -> Expr:
    """a b + c, rounded once."""
    return op.call_llvm_pure_intrin(v.type("float64"), "llvm.fma", a, b, c)


def _largest(v: Lanes, x: Expr) -> Expr:
    """The largest lane, NaN left out."""
    if v.lanes == 1:
        return x
    return op.call_llvm_pure_intrin("float64", "llvm.vector.reduce.fmax", x)


def exp(x: Expr) -> Expr:
    """exp(x) = 2^n exp(r) with x = n ln 2 + r, |r| <= ln(2)/2."""
    v = Lanes(x)

    def scaled(value: Expr, n: Expr) -> Expr:
        # in two factors, so that denormal results come out right
        def halves(n: Expr) -> Expr:
            half = op.shift_right(n, v.i64(1))
            return let(half, lambda h: value * _pow2(v, h) * _pow2(v, n - h))

        return let(v.cast(n, "int64"), halves)

    def reduced(x: Expr, n: Expr) -> Expr:
        r = (x - n * v.f64(_LN2_HI)) - n * v.f64(_LN2_LO)
        return let(r, lambda r: scaled(v.poly(r, _EXP_SERIES, "float64"), n))

    def body(x: Expr) -> Expr:
        clamped = tirx.max(tirx.min(x, v.f64(_EXP_MAX)), v.f64(_EXP_MIN))

        def rounded(c: Expr) -> Expr:
            return let(op.nearbyint(c * v.f64(_LOG2E)), lambda n: reduced(c, n))

        return keep_nan(x, let(clamped, rounded))

    return let(x, body)


def tanh(x: Expr) -> Expr:
    """tanh(x) = e / (e + 2) with e = exp(2|x|) - 1, and its power series near 0."""
    v = Lanes(x)

    def quotient(r: Expr, scale: Expr) -> Expr:
        e = scale * (r * r * v.poly(r, _EXP_SERIES[2:], "float64") + r) + (scale - v.f64(1))
        return let(e, lambda e: e / (e + v.f64(2)))

    def reduced(t: Expr, n: Expr) -> Expr:
        r = (t - n * v.f64(_LN2_HI)) - n * v.f64(_LN2_LO)
        scale = _pow2(v, v.cast(n, "int64"))
        return let(r, lambda r: let(scale, lambda scale: quotient(r, scale)))

    def near(x: Expr, z: Expr) -> Expr:
        return x * z * v.poly(z, _TANH_SERIES[1:], "float64") + x

    def body(x: Expr) -> Expr:
        a = _abs(v, x)
        twice = tirx.min(a, v.f64(_TANH_MAX)) * v.f64(2)
        far = let(twice, lambda t: let(op.nearbyint(t * v.f64(_LOG2E)), lambda n: reduced(t, n)))
        value = tirx.Select(a < v.f64(_TANH_SPLIT), let(a * a, lambda z: near(a, z)), far)
        sign = op.bitwise_and(v.bits(x, "int64"), v.i64(-(2**63)))
        return keep_nan(x, v.bits(op.bitwise_or(v.bits(value, "int64"), sign), "float64"))

    return let(x, body)


def sigmoid(x: Expr) -> Expr:
    """sigmoid(x) = (x >= 0 ? 1 : e) / (1 + e) with e = exp(-|x|), exact down to the denormals."""
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        e = exp(v.f64(0) - _abs(v, x))
        return let(e, lambda e: tirx.Select(x < v.f64(0), e, v.f64(1)) / (v.f64(1) + e))

    return let(x, body)


def log(x: Expr) -> Expr:
    """log(x) = e ln 2 + log(1 + f) with x = 2^e (1 + f)."""
    v = Lanes(x)

    def finish(f: Expr, e: Expr) -> Expr:
        def body(s: Expr) -> Expr:
            half = f * f * v.f64(0.5)
            z = s * s
            series = let(z, lambda z: z * v.poly(z, _LOG_POLY, "float64"))
            return e * v.f64(_LN2_HI) - ((half - (s * (half + series) + e * v.f64(_LN2_LO))) - f)

        return let(f / (v.f64(2) + f), body)

    def split(bits: Expr, offset: Expr) -> Expr:
        exponent = op.shift_right(bits - v.i64(_SQRT_HALF_BITS), v.i64(52))

        def body(e: Expr) -> Expr:
            f = v.bits(bits - op.shift_left(e, v.i64(52)), "float64") - v.f64(1)
            return let(f, lambda f: let(v.cast(e, "float64") - offset, lambda e: finish(f, e)))

        return let(exponent, body)

    def body(x: Expr) -> Expr:
        tiny = x < v.f64(_MIN_NORMAL)
        bits = v.bits(tirx.Select(tiny, x * v.f64(2.0**54), x), "int64")
        offset = tirx.Select(tiny, v.f64(54), v.f64(0))
        value = let(bits, lambda b: split(b, offset))
        value = tirx.Select(x > v.f64(_MAX_FINITE), x, value)
        value = tirx.Select(x == v.f64(0), v.f64(-math.inf), value)
        value = tirx.Select(x < v.f64(0), v.f64(math.nan), value)
        return keep_nan(x, value)

    return let(x, body)


def log1p(x: Expr) -> Expr:
    """log(1 + x) = log(s) + (x - (s - 1)) / s with s = 1 + x rounded."""
    v = Lanes(x)

    def body(x: Expr, s: Expr) -> Expr:
        lost = (x - (s - v.f64(1))) / s
        lost = tirx.Select(s > v.f64(0), tirx.Select(s > v.f64(_MAX_FINITE), s, lost), s)
        return tirx.Select(s == v.f64(1), x, log(s) + lost)

    return let(x, lambda x: let(v.f64(1) + x, lambda s: body(x, s)))


def sin(x: Expr) -> Expr:
    """sin(x) = sin(r), cos(r), -sin(r) or -cos(r) with x = n pi/2 + r."""
    return _of_angle("sin", x, lambda v, n, r: _quarter(v, n, r))


def cos(x: Expr) -> Expr:
    """cos(x) = sin(x + pi/2)."""
    return _of_angle("cos", x, lambda v, n, r: _quarter(v, n + v.i64(1), r))


def _of_angle(library: str, x: Expr, body: Callable[[Lanes, Expr, Expr], Expr]) -> Expr:
    """Calls ``body(v, n, r)`` with x = n pi/2 + r, |r| <= pi/4, if no lane is beyond the limit."""
    v = Lanes(x)

    def reduced(x: Expr, n: Expr) -> Expr:
        r = x
        for part in _HALF_PI:
            r = _multiply_add(v, n, v.f64(-part), r)
        return let(r, lambda r: let(v.cast(n, "int64"), lambda i: body(v, i, r)))

    def usual(x: Expr) -> Expr:
        return let(op.nearbyint(x * v.f64(2 / math.pi)), lambda n: reduced(x, n))

    def guarded(x: Expr) -> Expr:
        large = _largest(v, _abs(v, x)) > tirx.FloatImm("float64", _MAX_ANGLE)
        return op.if_then_else(large, v.each(library, x, dtype="float64"), usual(x))

    return let(x, guarded)


def _quarter(v: Lanes, n: Expr, r: Expr) -> Expr:
    """sin(n pi/2 + r)."""

    def sine(z: Expr) -> Expr:
        return r * z * v.poly(z, _SIN_POLY, "float64") + r

    def cosine(z: Expr) -> Expr:
        half = z * v.f64(0.5)
        whole = v.f64(1) - half
        rest = (v.f64(1) - whole) - half  # what rounding took from 1 - z/2
        return let(whole, lambda w: w + (rest + z * z * v.poly(z, _COS_POLY, "float64")))

    def body(n: Expr, z: Expr) -> Expr:
        odd = op.bitwise_and(n, v.i64(1)) != v.i64(0)
        sign = op.shift_left(op.bitwise_and(n, v.i64(2)), v.i64(62))
        value = tirx.Select(odd, cosine(z), sine(z))
        return v.bits(op.bitwise_xor(v.bits(value, "int64"), sign), "float64")

    return let(n, lambda n: let(r * r, lambda z: body(n, z)))
