"""x^y of float32, computed in float64."""

from __future__ import annotations

import math

from tvm import tirx
from tvm.tirx import op

from tvmgraph.schedule.intrinsics.lanes import Lanes, keep_nan, let
from tvmgraph.schedule.types import Expr

_LOG2E = 1.4426950408889634
_MAX_FINITE = 3.4028234663852886e38
#: Bits of sqrt(0.5): taking exponents relative to it puts mantissas in [sqrt(.5), sqrt(2)).
_SQRT_HALF_BITS64 = 0x3FE6A09E667F3BCD
#: Taylor series of exp(r), and of atanh(s)/s in s^2: both exact to 1e-10 where pow uses them.
_EXP_SERIES64 = tuple(1.0 / math.factorial(k) for k in range(11))
_ATANH_SERIES64 = tuple(1.0 / (2 * k + 1) for k in range(9))


def _log64(v: Lanes, x: Expr) -> Expr:
    """Natural logarithm of a positive normal float64: exponent plus 2 atanh((m-1)/(m+1))."""

    def body(bits: Expr) -> Expr:
        exponent = op.shift_right(bits - v.i64(_SQRT_HALF_BITS64), v.i64(52))

        def reduced(e: Expr) -> Expr:
            m = v.bits(bits - op.shift_left(e, v.i64(52)), "float64")
            s = let(m, lambda m: (m - v.f64(1)) / (m + v.f64(1)))
            series = let(s, lambda s: s * v.f64(2) * v.poly(s * s, _ATANH_SERIES64, "float64"))
            return v.cast(e, "float64") * v.f64(math.log(2)) + series

        return let(exponent, reduced)

    return let(v.bits(x, "int64"), body)


def _exp64(v: Lanes, x: Expr) -> Expr:
    """exp of a float64 whose float32 result may overflow or vanish."""

    def body(x: Expr) -> Expr:
        n = op.nearbyint(x * v.f64(_LOG2E))

        def scaled(n: Expr) -> Expr:
            r = x - n * v.f64(math.log(2))
            power = op.shift_left(v.cast(n, "int64") + v.i64(1023), v.i64(52))
            series = let(r, lambda r: v.poly(r, _EXP_SERIES64, "float64"))
            return series * v.bits(power, "float64")

        return let(n, scaled)

    return let(tirx.max(tirx.min(x, v.f64(120)), v.f64(-120)), body)


def pow(x: Expr, y: Expr) -> Expr:
    """x^y = exp(y log|x|) computed in float64, with the sign and special cases of C's powf."""
    exponent = _constant(y)
    if exponent is not None and exponent == int(exponent) and 1 <= abs(exponent) <= 3:
        return _integer_power(x, int(exponent))
    v = Lanes(x)
    return let(x, lambda x: let(y, lambda y: _general_power(v, x, y)))


def _constant(value: Expr) -> float | None:
    if isinstance(value, tirx.Broadcast):
        value = value.value
    return float(value.value) if isinstance(value, tirx.FloatImm) else None


def _integer_power(x: Expr, exponent: int) -> Expr:
    def product(x: Expr) -> Expr:
        value = x
        for _ in range(abs(exponent) - 1):
            value = value * x
        return value if exponent > 0 else Lanes(x).f32(1) / value

    return let(x, product)


def _general_power(v: Lanes, x: Expr, y: Expr) -> Expr:
    zero, one, infinity = v.f32(0), v.f32(1), v.f32(math.inf)

    def magnitude(m: Expr) -> Expr:
        product = v.cast(y, "float64") * _log64(v, v.cast(m, "float64"))
        value = v.cast(_exp64(v, product), "float32")
        above, below = (
            tirx.Select(y < zero, *pair) for pair in ((zero, infinity), (infinity, zero))
        )
        value = tirx.Select(m > v.f32(_MAX_FINITE), above, value)
        value = tirx.Select(m == zero, below, value)
        return tirx.Select(m == one, one, value)

    def signed(value: Expr) -> Expr:
        integral = op.floor(y) == y
        half = y * v.f32(0.5)
        odd_value = tirx.Select(op.floor(half) == half, value, zero - value)
        negative = tirx.Select(integral, odd_value, _off_the_integers(v, x, value))
        return tirx.Select(v.bits(x, "int32") < v.i32(0), negative, value)

    def special(value: Expr) -> Expr:
        value = tirx.Select(op.isnan(y), y, keep_nan(x, value))
        value = tirx.Select(y == zero, one, value)
        return tirx.Select(x == one, one, value)

    return special(let(let(v.abs(x), magnitude), signed))


def _off_the_integers(v: Lanes, x: Expr, value: Expr) -> Expr:
    """x^y for x with a sign bit and y no integer: NaN, but for -0 and -infinity the magnitude."""
    finite = tirx.Select(x < v.f32(-_MAX_FINITE), value, v.f32(math.nan))
    return tirx.Select(x == v.f32(0), value, finite)
