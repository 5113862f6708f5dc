"""x^y: of float32 computed in float64, of float64 with a logarithm in two parts."""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics import exponential
from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, keep_nan, let
from tvmgraph.backend.loop_ir.types import Expr, scalar_of

_LOG2E = 1.4426950408889634
#: Bits of sqrt(0.5): taking exponents relative to it puts mantissas in [sqrt(.5), sqrt(2)).
_SQRT_HALF_BITS64 = 0x3FE6A09E667F3BCD
#: Taylor series of exp(r), and of atanh(s)/s in s^2: both exact to 1e-10 where pow uses them.
_EXP_SERIES64 = tuple(1.0 / math.factorial(k) for k in range(11))
_ATANH_SERIES64 = tuple(1.0 / (2 * k + 1) for k in range(9))
#: (atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2 for |s| <= 0.1716, to 2^-66 of atanh(s) / s
_ATANH_POLY = (
    0.20000000000001134, 0.14285714285047216, 0.11111111260393092, 0.09090892147485141,
    0.07693380270551095, 0.06628372493942311, 0.06598494967693704,
)  # fmt: skip
#: 1/3 in two parts.
_THIRD, _THIRD_LO = 1 / 3, 1.850371707708594e-17


def _log64(v: Lanes, x: Expr) -> Expr:
    """Natural logarithm of a positive normal float64: exponent plus 2 atanh((m-1)/(m+1))."""

    def body(bits: Expr) -> Expr:
        exponent = op.shift_right(bits - v.i64(_SQRT_HALF_BITS64), v.i64(52))

        def reduced(e: Expr) -> Expr:
            m = v.bits(bits - op.shift_left(e, v.i64(52)), "float64")
            s = let(m, lambda m: (m - v.f64(1)) / (m + v.f64(1)))
            series = let(s, lambda s: s * v.f64(2) * v.poly(s * s, _ATANH_SERIES64))
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
            series = let(r, lambda r: v.poly(r, _EXP_SERIES64))
            return series * v.bits(power, "float64")

        return let(n, scaled)

    return let(tirx.max(tirx.min(x, v.f64(120)), v.f64(-120)), body)


def _log_in_two(v: Lanes, x: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """Calls ``body(high, low)`` with the logarithm of a positive float64, to about 2^-66."""

    def finish(f: Expr, e: Expr) -> Expr:
        def total(h: Expr, low: Expr) -> Expr:
            """Adds what the exponent brings, whose product with the upper part is exact."""
            power, part = e * v.f64(exponential.LN2_HI), h + h
            low = low + low + e * v.f64(exponential.LN2_LO)
            return let(power + part, lambda sum: body(sum, (power - sum) + part + low))

        def quotient(d: Expr) -> Expr:
            return let(f / d, lambda s: let(left(d, s), lambda low: _atanh(v, s, low, total)))

        def left(d: Expr, s: Expr) -> Expr:  # what is missing of f / (2 + f)
            d_lo = f - (d - v.f64(2))
            return (v.multiply_add(v.f64(0) - s, d, f) - s * d_lo) / d

        return let(v.f64(2) + f, quotient)

    return exponential.mantissa(v, x, finish)


def _atanh(v: Lanes, s: Expr, s_lo: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """Calls ``body(high, low)`` with (s + s_lo) (1 + z/3 + z^2 P(z)) in two parts, z = s^2."""

    def series(z: Expr) -> Expr:
        z_lo = v.multiply_add(s, s, v.f64(0) - z) + v.f64(2) * s * s_lo
        tail = z * z * v.poly(z, _ATANH_POLY)
        third = z * v.f64(_THIRD)
        third_lo = v.multiply_add(z, v.f64(_THIRD), v.f64(0) - third)
        third_lo = third_lo + z * v.f64(_THIRD_LO) + z_lo * v.f64(_THIRD)

        def in_two(third: Expr, tail: Expr) -> Expr:
            t = third + tail
            return let(t, lambda t: product(t, (third - t) + tail + third_lo))

        return let(third, lambda third: let(tail, lambda tail: in_two(third, tail)))

    def product(t: Expr, t_lo: Expr) -> Expr:
        a = s * t
        a_lo = v.multiply_add(s, t, v.f64(0) - a) + s * t_lo + s_lo * t
        return let(a, lambda a: let(s + a, lambda h: body(h, (s - h) + a + a_lo + s_lo)))

    return let(s * s, series)


def _power64(v: Lanes, x: Expr, y: Expr) -> Expr:
    """x^y = exp(y log x) of positive float64."""

    def of_log(high: Expr, low: Expr) -> Expr:
        return let(
            high, lambda h: let(low, lambda low: let(y * h, lambda p: of_product(h, low, p)))
        )

    def of_product(high: Expr, low: Expr, product: Expr) -> Expr:
        rest = v.multiply_add(y, high, v.f64(0) - product) + y * low

        def bounded(p: Expr) -> Expr:
            kept = tirx.Select(p == product, rest, v.f64(0))
            return let(kept, lambda rest: exponential.exp_of(v, p, rest))

        return let(exponential.exp_bounded(v, product), bounded)

    return _log_in_two(v, x, of_log)


def _power32(v: Lanes, x: Expr, y: Expr) -> Expr:
    """x^y of positive float32, in float64."""
    product = v.cast(y, "float64") * _log64(v, v.cast(x, "float64"))
    return v.cast(_exp64(v, product), "float32")


def pow(x: Expr, y: Expr) -> Expr:
    """x^y = exp(y log|x|), with the sign and special cases of C's pow.

    Args:
        x: float32 or float64, scalar or vector.
        y: The same. Of constants 1, 2, 3 and their negatives products are written.
    """
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
        return value if exponent > 0 else Lanes(x).of(1.0, scalar_of(x)) / value

    return let(x, product)


def _general_power(v: Lanes, x: Expr, y: Expr) -> Expr:
    dtype = scalar_of(x)
    single = dtype == "float32"
    zero, half, one, infinity, largest = (
        v.f(value) for value in (0.0, 0.5, 1.0, math.inf, v.format.max_finite)
    )

    def magnitude(m: Expr) -> Expr:
        value = (_power32 if single else _power64)(v, m, y)
        above, below = (
            tirx.Select(y < zero, *pair) for pair in ((zero, infinity), (infinity, zero))
        )
        value = tirx.Select(m > largest, above, value)
        value = tirx.Select(m == zero, below, value)
        return tirx.Select(m == one, one, value)

    def signed(value: Expr) -> Expr:
        integral = op.floor(y) == y
        odd_value = tirx.Select(op.floor(y * half) == y * half, value, v.f(-0.0) - value)
        negative = tirx.Select(integral, odd_value, off_the_integers(value))
        return tirx.Select(v.bits_of(x) < v.i(0), negative, value)

    def off_the_integers(value: Expr) -> Expr:
        """For x with a sign bit and y no integer: NaN, but for -0 and -infinity the magnitude."""
        finite = tirx.Select(x < zero - largest, value, v.f(math.nan))
        return tirx.Select(x == zero, value, finite)

    def special(value: Expr) -> Expr:
        value = tirx.Select(op.isnan(y), y, keep_nan(x, value))
        value = tirx.Select(y == zero, one, value)
        return tirx.Select(x == one, one, value)

    return special(let(let(v.abs(x), magnitude), signed))
