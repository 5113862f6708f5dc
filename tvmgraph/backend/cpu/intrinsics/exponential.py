"""Exponential, logarithmic, hyperbolic and error functions of float32."""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics import avx512
from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, keep_nan, let, with_nearest
from tvmgraph.backend.loop_ir.types import Expr

_LOG2E = 1.4426950408889634
#: ln 2 in two parts; n * _LN2_HI is exact for the integers n that occur.
_LN2_HI, _LN2_LO = 0.693359375, -2.12194440054690583e-4
#: Beyond these exp, half of it included, and 2^x are 0 and infinity in float32.
_EXP_MIN, _EXP_MAX = -104.0, 90.0
_EXP2_MIN, _EXP2_MAX = -151.0, 129.0
#: 1 - tanh(x) is below half a unit in the last place from here on.
_TANH_MAX = 9.02
#: erf is 1 in float32 from here on; below _ERF_SPLIT its power series is used.
_ERF_MAX, _ERF_SPLIT = 4.0, 0.9
_MIN_NORMAL, _MAX_FINITE = 1.17549435e-38, 3.4028234663852886e38
#: Bits of sqrt(0.5): taking exponents relative to it puts mantissas in [sqrt(.5), sqrt(2)).
_SQRT_HALF_BITS = 0x3F3504F3
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
#: (sinh(x) - x) / x^3 in x^2 for |x| < 1
_SINH_POLY = (1.66666665e-1, 8.3333506e-3, 1.98360663e-4, 2.8174395e-6)


def _reduce_exp(v: Lanes, x: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """Calls ``body(n, r)`` with x = n ln 2 + r, n integral, |r| <= ln(2)/2."""

    def with_n(n: Expr) -> Expr:
        r = (x - n * v.f32(_LN2_HI)) - n * v.f32(_LN2_LO)
        return let(v.cast(n, "int32"), lambda i: let(r, lambda r: body(i, r)))

    return let(op.nearbyint(x * v.f32(_LOG2E)), with_n)


def _expm1_core(v: Lanes, r: Expr) -> Expr:
    """exp(r) - 1 for a reduced argument."""
    return r * r * v.poly(r, _EXP_POLY) + r


def _exp_times(v: Lanes, x: Expr, offset: int = 0) -> Expr:
    """2^offset exp(x) = 2^(n + offset) exp(r), also where exp(x) alone would overflow."""
    if avx512.serves(v):
        return avx512.exp(x, offset)

    def scaled(n: Expr, r: Expr) -> Expr:
        return _times_pow2(v, _expm1_core(v, r) + v.f32(1), n + v.i32(offset))

    def body(x: Expr) -> Expr:
        clamped = tirx.max(tirx.min(x, v.f32(_EXP_MAX)), v.f32(_EXP_MIN))
        return keep_nan(x, let(clamped, lambda c: _reduce_exp(v, c, scaled)))

    return let(x, body)


def _times_pow2(v: Lanes, value: Expr, n: Expr) -> Expr:
    """2^n is applied in two factors, so that denormal results come out right."""

    def halves(n: Expr) -> Expr:
        half = op.shift_right(n, v.i32(1))
        return let(half, lambda h: value * v.pow2(h) * v.pow2(n - h))

    return let(n, halves)


def exp(x: Expr) -> Expr:
    """exp(x) = 2^n exp(r)."""
    return _exp_times(Lanes(x), x)


def exp2(x: Expr) -> Expr:
    """2^x = 2^n exp((x - n) ln 2) with n the nearest integer."""
    v = Lanes(x)

    def body(x: Expr, n: Expr) -> Expr:
        value = let((x - n) * v.f32(math.log(2)), lambda r: _expm1_core(v, r) + v.f32(1))
        return _times_pow2(v, value, v.cast(n, "int32"))

    return with_nearest(x, v.f32(_EXP2_MIN), v.f32(_EXP2_MAX), body)


def cosh(x: Expr) -> Expr:
    """cosh(x) = h + 1/(4h) with h = exp(|x|) / 2."""
    v = Lanes(x)
    half = _exp_times(v, v.abs(x), -1)
    return let(half, lambda h: h + v.f32(0.25) / h)


def sinh(x: Expr) -> Expr:
    """sinh(x) = x + x^3 P(x^2) near 0, sign(x) (h - 1/(4h)) with h = exp(|x|) / 2 elsewhere."""
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        square = x * x
        near = x + x * square * let(square, lambda z: v.poly(z, _SINH_POLY))
        far = let(_exp_times(v, v.abs(x), -1), lambda h: h - v.f32(0.25) / h)
        return tirx.Select(v.abs(x) < v.f32(1), near, v.with_sign_of(far, x))

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
    if avx512.serves(v):
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


def _log(x: Expr, finish: Callable[[Expr, Expr], Expr]) -> Expr:
    """A logarithm of x = 2^e (1 + u) with sqrt(.5) <= 1 + u < sqrt(2).

    Args:
        x: The argument.
        finish: Computes it from u and the float32 e.
    """
    v = Lanes(x)

    def split(bits: Expr, offset: Expr) -> Expr:
        exponent = op.shift_right(bits - v.i32(_SQRT_HALF_BITS), v.i32(23))

        def body(e: Expr) -> Expr:
            u = v.bits(bits - op.shift_left(e, v.i32(23)), "float32") - v.f32(1)
            scale = v.cast(e, "float32") - offset
            return let(u, lambda u: let(scale, lambda s: finish(u, s)))

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


def log(x: Expr) -> Expr:
    """log(x) = e ln 2 + log(1 + u)."""
    v = Lanes(x)

    def finish(u: Expr, e: Expr) -> Expr:
        square = u * u
        y = u * square * v.poly(u, _LOG_POLY) + e * v.f32(_LN2_LO)
        return (y - v.f32(0.5) * square + u) + e * v.f32(_LN2_HI)

    return _log(x, finish)


def log2(x: Expr) -> Expr:
    """log2(x) = e + log(1 + u) / ln 2, exact for powers of two."""
    v = Lanes(x)

    def finish(u: Expr, e: Expr) -> Expr:
        square = u * u
        natural = u * square * v.poly(u, _LOG_POLY) - v.f32(0.5) * square + u
        return natural * v.f32(_LOG2E) + e

    return _log(x, finish)


def log10(x: Expr) -> Expr:
    """log(x) / ln 10."""
    return log(x) * Lanes(x).f32(1 / math.log(10))


def log1p(x: Expr) -> Expr:
    """log(1 + x) = log(s) + (x - (s - 1)) / s with s = 1 + x rounded."""
    v = Lanes(x)

    def body(x: Expr, s: Expr) -> Expr:
        lost = (x - (s - v.f32(1))) / s
        lost = tirx.Select(s > v.f32(0), tirx.Select(s > v.f32(_MAX_FINITE), s, lost), s)
        return tirx.Select(s == v.f32(1), x, log(s) + lost)

    return let(x, lambda x: let(v.f32(1) + x, lambda s: body(x, s)))
