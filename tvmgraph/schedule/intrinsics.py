"""Vectorizable float32 transcendental functions for the LLVM back end.

TVM lowers ``exp``, ``erf`` ... to calls of the C library, one element at a time. The rules here
replace such a call, whether scalar or of vector type, by straight-line arithmetic: argument
reduction, a polynomial, and selects for the special values. Every function is within 4 units in the
last place of the exact result over its whole domain, and follows IEEE 754 for NaN, infinities,
signed zeros and denormal results. float16 is computed in float32; float64 stays with the C library.

Polynomials are minimax fits of our own, coefficients in ascending order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import tvm
from tvm import tirx
from tvm.tirx import op

from tvmgraph.schedule import emit
from tvmgraph.schedule import intrinsics_avx512 as avx512
from tvmgraph.schedule.lanes import Lanes, keep_nan, let
from tvmgraph.schedule.types import Expr, dtype_of

#: Above the priority of TVM's own rules (10), so that these win.
_LEVEL = 99

_LOG2E = 1.4426950408889634
#: ln 2 in two parts; n * _LN2_HI is exact for the integers n that occur.
_LN2_HI, _LN2_LO = 0.693359375, -2.12194440054690583e-4
#: Beyond these exp is 0 and infinity in float32.
_EXP_MIN, _EXP_MAX = -104.0, 89.0
#: 1 - tanh(x) is below half a unit in the last place from here on.
_TANH_MAX = 9.02
#: erf is 1 in float32 from here on; below _ERF_SPLIT its power series is used.
_ERF_MAX, _ERF_SPLIT = 4.0, 0.9
_MIN_NORMAL, _MAX_FINITE = 1.17549435e-38, 3.4028234663852886e38
#: Bits of sqrt(0.5): taking exponents relative to it puts mantissas in [sqrt(.5), sqrt(2)).
_SQRT_HALF_BITS = 0x3F3504F3
_SQRT_HALF_BITS64 = 0x3FE6A09E667F3BCD

#: (exp(r) - 1 - r) / r^2 on |r| <= ln(2)/2
_EXP_POLY = (4.99999935e-1, 1.66665207e-1, 4.1668387e-2, 8.36871e-3, 1.381461e-3)
#: (log(1+u) - u + u^2/2) / u^3 on sqrt(.5) <= 1+u < sqrt(2)
_LOG_POLY = (
    3.33333317e-1, -2.5000821e-1, 2.00012268e-1, -1.66233571e-1,
    1.42017595e-1, -1.31601866e-1, 1.27615681e-1, -7.6344742e-2,
)  # fmt: skip
#: erf(sqrt(z)) / sqrt(z) - 1 on 0 <= z <= _ERF_SPLIT^2
_ERF_POLY = (
    1.283791664e-1, -3.761263161e-1, 1.1283664e-1, -2.68577051e-2,
    5.196952076e-3, -8.097703261e-4, 8.185092726e-5,
)  # fmt: skip
#: -log(1 - erf(t)) / t on _ERF_SPLIT <= t <= _ERF_MAX
_ERFC_POLY = (
    1.128637074, 6.351980406e-1, 1.061590381e-1, -2.369455586e-2,
    3.610336887e-3, -3.148567953e-4, 1.043297567e-5,
)  # fmt: skip
#: Taylor series of exp(r), and of atanh(s)/s in s^2: both exact to 1e-10 where pow uses them.
_EXP_SERIES64 = tuple(1.0 / math.factorial(k) for k in range(11))
_ATANH_SERIES64 = tuple(1.0 / (2 * k + 1) for k in range(9))


def _reduce_exp(v: Lanes, x: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """Calls ``body(n, r)`` with x = n ln 2 + r, n integral, |r| <= ln(2)/2."""

    def with_n(n: Expr) -> Expr:
        r = (x - n * v.f32(_LN2_HI)) - n * v.f32(_LN2_LO)
        return let(v.cast(n, "int32"), lambda i: let(r, lambda r: body(i, r)))

    return let(op.nearbyint(x * v.f32(_LOG2E)), with_n)


def _expm1_core(v: Lanes, r: Expr) -> Expr:
    """exp(r) - 1 for a reduced argument."""
    return r * r * v.poly(r, _EXP_POLY) + r


def exp(x: Expr) -> Expr:
    """exp(x) = 2^n exp(r). 2^n is applied in two factors, so denormal results come out right."""
    v = Lanes(x)
    if v.lanes == avx512.LANES:
        return avx512.exp(x)

    def scaled(n: Expr, r: Expr) -> Expr:
        value = _expm1_core(v, r) + v.f32(1)
        half = op.shift_right(n, v.i32(1))
        return let(half, lambda h: value * v.pow2(h) * v.pow2(n - h))

    def body(x: Expr) -> Expr:
        clamped = tirx.max(tirx.min(x, v.f32(_EXP_MAX)), v.f32(_EXP_MIN))
        return keep_nan(x, let(clamped, lambda c: _reduce_exp(v, c, scaled)))

    return let(x, body)


def tanh(x: Expr) -> Expr:
    """tanh(x) = e / (e + 2) with e = exp(2|x|) - 1, which has no cancellation anywhere."""
    v = Lanes(x)

    def quotient(n: Expr, r: Expr) -> Expr:
        def body(scale: Expr) -> Expr:
            e = scale * _expm1_core(v, r) + (scale - v.f32(1))
            return let(e, lambda e: e / (e + v.f32(2)))

        return let(v.pow2(n), body)

    def body(x: Expr) -> Expr:
        twice = tirx.min(v.abs(x), v.f32(_TANH_MAX)) * v.f32(2)
        value = let(twice, lambda t: _reduce_exp(v, t, quotient))
        return keep_nan(x, v.with_sign_of(value, x))

    return let(x, body)


def erf(x: Expr) -> Expr:
    """erf(x): x + x P(x^2) near 0, sign(x) (1 - exp(-|x| Q(|x|))) elsewhere."""
    v = Lanes(x)
    if v.lanes == avx512.LANES:
        return avx512.erf(x)

    def body(x: Expr, t: Expr) -> Expr:
        near = x * v.poly(t * t, _ERF_POLY) + x
        exponent = v.f32(0) - t * v.poly(t, _ERFC_POLY)

        def far(n: Expr, r: Expr) -> Expr:
            scale = v.pow2(n)
            return v.f32(1) - (_expm1_core(v, r) * scale + scale)

        tail = let(exponent, lambda e: _reduce_exp(v, e, far))
        return tirx.Select(t < v.f32(_ERF_SPLIT), near, v.with_sign_of(tail, x))

    def clamped(x: Expr) -> Expr:
        bound = tirx.min(v.abs(x), v.f32(_ERF_MAX))
        return keep_nan(x, let(bound, lambda t: body(x, t)))

    return let(x, clamped)


def sigmoid(x: Expr) -> Expr:
    """sigmoid(x) = (x >= 0 ? 1 : e) / (1 + e) with e = exp(-|x|), exact down to the denormals."""
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        e = exp(v.f32(0) - v.abs(x))
        return let(e, lambda e: tirx.Select(x < v.f32(0), e, v.f32(1)) / (v.f32(1) + e))

    return let(x, body)


def log(x: Expr) -> Expr:
    """log(x) = e ln 2 + log(m) with sqrt(.5) <= m < sqrt(2)."""
    v = Lanes(x)

    def mantissa(u: Expr, e: Expr) -> Expr:
        square = u * u
        y = u * square * v.poly(u, _LOG_POLY) + e * v.f32(_LN2_LO)
        return (y - v.f32(0.5) * square + u) + e * v.f32(_LN2_HI)

    def split(bits: Expr, offset: Expr) -> Expr:
        exponent = op.shift_right(bits - v.i32(_SQRT_HALF_BITS), v.i32(23))

        def body(e: Expr) -> Expr:
            u = v.bits(bits - op.shift_left(e, v.i32(23)), "float32") - v.f32(1)
            scale = v.cast(e, "float32") - offset
            return let(u, lambda u: let(scale, lambda s: mantissa(u, s)))

        return let(exponent, body)

    def body(x: Expr) -> Expr:
        tiny = x < v.f32(_MIN_NORMAL)
        scaled = v.bits(tirx.Select(tiny, x * v.f32(2.0**24), x), "int32")
        offset = tirx.Select(tiny, v.f32(24), v.f32(0))
        value = let(scaled, lambda b: split(b, offset))
        value = tirx.Select(x > v.f32(_MAX_FINITE), x, value)
        value = tirx.Select(x == v.f32(0), v.f32(-math.inf), value)
        value = tirx.Select(x < v.f32(0), v.f32(math.nan), value)
        return keep_nan(x, value)

    return let(x, body)


def log10(x: Expr) -> Expr:
    """log(x) / ln 10."""
    return log(x) * Lanes(x).f32(1 / math.log(10))


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


_RULES: dict[str, Callable[..., Expr]] = {
    "exp": exp,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "erf": erf,
    "log": log,
    "log10": log10,
    "pow": pow,
}


#: Functions of single lanes that TVM does not know as such: it would leave vectors for them.
_BY_LANE = ("erf", "isnan", "nearbyint", "rsqrt")


def _lowering(name: str, function: Callable[..., Expr]) -> Callable[[tvm.ir.Call], Expr]:
    """TVM's form of a rule, which must give an expression for every dtype."""

    def lower(call: tvm.ir.Call) -> Expr:
        scalar = dtype_of(call).partition("x")[0]
        if scalar == "float32":
            return function(*call.args)
        lanes = Lanes(call)
        if scalar == "float16":
            wide = [lanes.cast(arg, "float32") for arg in call.args]
            return lanes.cast(function(*wide), "float16")
        return _library(lanes, name, call.args)

    return lower


def _library(lanes: Lanes, name: str, args: Sequence[Expr]) -> Expr:
    """A call of the C library in float64, one for each lane."""
    if name == "sigmoid":
        one = lanes.f64(1.0)
        return one / (one + _library(lanes, "exp", [lanes.f64(0.0) - args[0]]))
    if lanes.lanes == 1:
        return op.call_pure_extern("float64", name, *args)
    each = [
        op.call_pure_extern("float64", name, *[emit.shuffle([arg], [i]) for arg in args])
        for i in range(lanes.lanes)
    ]
    return emit.shuffle(each, range(lanes.lanes))


@functools.cache
def install() -> None:
    """Makes every later LLVM build of this process use the rules; repeated calls do nothing."""
    for name in _BY_LANE:
        tvm.ir.register_op_attr(f"tirx.{name}", "TVectorizable", True)
    for name, function in _RULES.items():
        tvm.tirx.op.register_intrin_lowering(
            f"tirx.{name}", target="llvm", f=_lowering(name, function), level=_LEVEL
        )
