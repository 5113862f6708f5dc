"""Exponential, logarithmic and hyperbolic functions of float32 and float64.

Of float64 within 2 units in the last place; log10 within 3. Its logarithm is that of Sun's
fdlibm (e_log.c), its exponential a Taylor polynomial, which is exact to 2^-57 on the reduced
argument; the polynomials of float32 are fits of our own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics import avx512
from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, clamp, keep_nan, let, with_nearest
from tvmgraph.backend.loop_ir.types import Expr

_LOG2E = 1.4426950408889634


def _tanh_series(count: int) -> list[float]:
    """Coefficients of x, x^3, ... from tanh' = 1 - tanh^2."""
    series = [1.0]
    for k in range(1, count):
        square = sum(series[i] * series[k - 1 - i] for i in range(k))
        series.append(-square / (2 * k + 1))
    return series


@dataclass(frozen=True)
class _Fits:
    """The polynomials of a type of floats, coefficients in ascending order, and their limits.

    Attributes:
        ln2: ln 2 in two parts; n ln2[0] is exact for the integers n that occur.
        exp_range: Beyond these exp is 0 and infinity, half of it included.
        exp2_range: Beyond these 2^x is 0 and infinity.
        exp: (exp(r) - 1 - r) / r^2 on |r| <= ln(2)/2.
        sinh: (sinh(x) - x) / x^3 in x^2 for |x| < 1.
        tanh_max: 1 - tanh(x) is below half a unit in the last place from here on.
        tanh_split: Below it tanh is its power series; 0 where that is not needed.
        tanh: (tanh(x) - x) / x^3 in x^2.
        scale: The power of two that makes denormal numbers normal.
        sqrt_half: Bits of sqrt(0.5): exponents relative to it put mantissas in [sqrt(.5), sqrt(2)).
        log: Of float32 (log(1+u) - u + u^2/2) / u^3 on sqrt(.5) <= 1+u < sqrt(2); of float64
            (log(1+f) - 2s) / s in s^2, with s = f / (2 + f).
    """

    ln2: tuple[float, float]
    exp_range: tuple[float, float]
    exp2_range: tuple[float, float]
    exp: Sequence[float]
    sinh: Sequence[float]
    tanh_max: float
    tanh_split: float
    tanh: Sequence[float]
    scale: int
    sqrt_half: int
    log: Sequence[float]


_FITS = {
    "float32": _Fits(
        ln2=(0.693359375, -2.12194440054690583e-4),
        exp_range=(-104.0, 90.0),
        exp2_range=(-151.0, 129.0),
        exp=(4.99999935e-1, 1.66665207e-1, 4.1668387e-2, 8.36871e-3, 1.381461e-3),
        sinh=(1.66666665e-1, 8.3333506e-3, 1.98360663e-4, 2.8174395e-6),
        tanh_max=9.02,
        tanh_split=0.0,
        tanh=(),
        scale=24,
        sqrt_half=0x3F3504F3,
        log=(
            3.33333317e-1, -2.5000821e-1, 2.00012268e-1, -1.66233571e-1,
            1.42017595e-1, -1.31601866e-1, 1.27615681e-1, -7.6344742e-2,
        ),
    ),
    "float64": _Fits(
        ln2=(6.93147180369123816490e-01, 1.90821492927058770002e-10),
        exp_range=(-746.0, 711.0),
        exp2_range=(-1076.0, 1025.0),
        exp=tuple(1.0 / math.factorial(k + 2) for k in range(12)),
        sinh=tuple(1.0 / math.factorial(2 * k + 3) for k in range(9)),
        tanh_max=19.1,
        tanh_split=0.35,
        tanh=_tanh_series(14)[1:],
        scale=54,
        sqrt_half=0x3FE6A09E667F3BCD,
        log=(
            6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
            2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
            1.479819860511658591e-01,
        ),
    ),
}  # fmt: skip
#: ln 2 of float64 in two parts.
LN2_HI, LN2_LO = _FITS["float64"].ln2


def _reduce_exp(
    v: Lanes, x: Expr, body: Callable[[Expr, Expr], Expr], rest: Expr | None = None
) -> Expr:
    """Calls ``body(n, r)`` with x + rest = n ln 2 + r, n integral, |r| <= ln(2)/2.

    A sum so large that its unit in the last place is 1 has the nearest integer in its lowest bits.
    """
    high, low = _FITS[v.scalar].ln2
    rounding = 1.5 * 2**v.format.fraction
    offset = v.format.bias + v.format.fraction << v.format.fraction | 1 << v.format.fraction - 1

    def with_n(shifted: Expr) -> Expr:
        n = shifted - v.f(rounding)
        r = let(n, lambda n: (x - n * v.f(high)) - n * v.f(low))
        r = r if rest is None else r + rest
        return let(v.bits_of(shifted) - v.i(offset), lambda i: let(r, lambda r: body(i, r)))

    return let(x * v.f(_LOG2E) + v.f(rounding), with_n)


def _expm1_core(v: Lanes, r: Expr) -> Expr:
    """exp(r) - 1 for a reduced argument."""
    return r * r * v.poly(r, _FITS[v.scalar].exp) + r


def _exp_core(v: Lanes, r: Expr) -> Expr:
    """exp(r) for a reduced argument; of float32 in pairs of terms, which do not wait for others."""
    fits = _FITS[v.scalar].exp
    if v.scalar == "float64":
        return v.poly(r, (1.0, 1.0, *fits))
    pairs = (v.poly(r, fits[:2]), v.poly(r, fits[2:4]), v.f(fits[4]))
    return let(r * r, lambda s: ((pairs[2] * s + pairs[1]) * s + pairs[0]) * s + (r + v.f(1)))


def exp(x: Expr) -> Expr:
    """exp(x) = 2^n exp(r) with x = n ln 2 + r, |r| <= ln(2)/2.

    Args:
        x: float32 or float64, scalar or vector.
    """
    return _exp_times(Lanes(x), x)


def _exp_times(v: Lanes, x: Expr, offset: int = 0) -> Expr:
    """2^offset exp(x) = 2^(n + offset) exp(r), also where exp(x) alone would overflow."""
    if v.scalar == "float32" and avx512.serves(v):
        return avx512.exp(x, offset)

    def body(x: Expr) -> Expr:
        low, high = _FITS[v.scalar].exp_range
        zero, is_zero = v.f(0), x < v.f(low)  # what underflows takes Intel's much longer
        least = tirx.Select(v.f(high) < x, v.f(high), x)  # NaN stays NaN
        value = let(tirx.Select(is_zero, zero, least), lambda c: exp_of(v, c, offset=offset))
        return tirx.Select(is_zero, zero, value)

    return let(x, body)


def exp_nonpositive(x: Expr) -> Expr:
    """exp(x) of x <= 0, with two thirds of the operations of :func:`exp`: nothing overflows.

    Args:
        x: float32 or float64, scalar or vector; at most 0, or NaN.
    """
    v = Lanes(x)
    if v.scalar == "float64" or avx512.serves(v):
        return exp(x)

    def kept(x: Expr) -> Expr:
        zero, is_zero = v.f(0), x < v.f(_FITS[v.scalar].exp_range[0])  # or Intel's take long
        value = let(tirx.Select(is_zero, zero, x), lambda c: _exp_down_to_denormals(v, c))
        return tirx.Select(is_zero, zero, value)

    return let(x, kept)


def exp_of_minus_square(x: Expr) -> Expr:
    """exp(x) of x <= 0 whose underflow is rare, so that it may take long on Intel's processors.

    Args:
        x: float32 or float64, scalar or vector; at most 0, or NaN.
    """
    v = Lanes(x)
    if v.scalar == "float64" or avx512.serves(v):
        return exp(x)
    low = v.f(_FITS[v.scalar].exp_range[0])  # whose exp is rounded to 0; NaN stays NaN
    bounded = let(x, lambda x: tirx.Select(x < low, low, x))
    return let(bounded, lambda c: _exp_down_to_denormals(v, c))


def _exp_down_to_denormals(v: Lanes, x: Expr) -> Expr:
    """exp(x) of float32 for -104 <= x <= 0."""
    spare = v.format.fraction + 1  # powers of two that keep the factor normal where exp(x) is not
    return exp_scaled(v, x, spare) * v.f(2.0**-spare)


def exp_scaled(v: Lanes, x: Expr, offset: int) -> Expr:
    """2^offset exp(x) where that is a normal number of float32.

    The sum that rounds to the nearest integer n has n + offset + bias in its lowest bits, which
    are 2^(n + offset) where the exponent is.

    Args:
        v: Type of ``x``.
        x: float32, scalar or vector.
        offset: Exponent of a power of two that the result is multiplied by.
    """
    high, low = _FITS[v.scalar].ln2
    rounding = 1.5 * 2**v.format.fraction + v.format.bias + offset

    def scaled(shifted: Expr) -> Expr:
        n = shifted - v.f(rounding)
        r = let(n, lambda n: (x - n * v.f(high)) - n * v.f(low))
        power = op.shift_left(v.bits_of(shifted), v.i(v.format.fraction))
        return let(r, lambda r: _exp_core(v, r)) * v.float_of(power)

    return let(x * v.f(_LOG2E) + v.f(rounding), scaled)


def exp_bounded(v: Lanes, x: Expr) -> Expr:
    """The nearest number to ``x`` that :func:`exp_of` takes.

    Args:
        v: Type of ``x``.
        x: float32 or float64, scalar or vector.
    """
    low, high = _FITS[v.scalar].exp_range
    return tirx.max(tirx.min(x, v.f(high)), v.f(low))


def exp_of(v: Lanes, x: Expr, rest: Expr | None = None, offset: int = 0) -> Expr:
    """2^offset exp(x + rest) of a bounded ``x`` and a ``rest`` that is small beside 1.

    Args:
        v: Type of ``x``.
        x: What :func:`exp_bounded` gave.
        rest: What was lost of it by rounding.
        offset: Exponent of a power of two that the result is multiplied by.
    """
    offsets = v.i(offset)
    return _reduce_exp(v, x, lambda n, r: _times_pow2(v, _exp_core(v, r), n + offsets), rest)


def _times_pow2(v: Lanes, value: Expr, n: Expr) -> Expr:
    """2^n is applied in two factors, so that denormal results come out right.

    The second one is a quarter of all exponents up or down, as n is.
    """
    quarter = v.format.bias + 1 >> 1

    def factors(n: Expr) -> Expr:
        down = n < v.i(0)
        first = n - tirx.Select(down, v.i(-quarter), v.i(quarter))
        second = tirx.Select(down, v.f(2.0**-quarter), v.f(2.0**quarter))
        return value * v.pow2(first) * second

    return let(n, factors)


def exp2(x: Expr) -> Expr:
    """2^x = 2^n exp((x - n) ln 2) with n the nearest integer.

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)
    low, high = _FITS[v.scalar].exp2_range

    def body(x: Expr, n: Expr) -> Expr:
        value = let((x - n) * v.f(math.log(2)), lambda r: _exp_core(v, r))
        return _times_pow2(v, value, v.integral(n))

    return with_nearest(x, v.f(low), v.f(high), body)


def cosh(x: Expr) -> Expr:
    """cosh(x) = h + 1/(4h) with h = exp(|x|) / 2.

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)
    half = let(x, lambda x: _exp_times(v, v.abs(x), -1))
    return let(half, lambda h: h + v.f(0.25) / h)


def sinh(x: Expr) -> Expr:
    """sinh(x) = x + x^3 P(x^2) near 0, sign(x) (h - 1/(4h)) with h = exp(|x|) / 2 elsewhere.

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        near = let(x * x, lambda z: x * z * v.poly(z, _FITS[v.scalar].sinh) + x)
        far = let(_exp_times(v, v.abs(x), -1), lambda h: h - v.f(0.25) / h)
        return tirx.Select(v.abs(x) < v.f(1), near, v.with_sign_of(far, x))

    return let(x, body)


def tanh(x: Expr) -> Expr:
    """tanh(x) = e / (e + 2) with e = exp(2|x|) - 1; of float64 its power series near 0.

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)
    fits = _FITS[v.scalar]

    def quotient(n: Expr, r: Expr) -> Expr:
        def body(scale: Expr) -> Expr:
            e = scale * _expm1_core(v, r) + (scale - v.f(1))
            return let(e, lambda e: e / (e + v.f(2)))

        return let(v.pow2(n), body)

    def body(x: Expr) -> Expr:
        a = v.abs(x)
        twice = tirx.min(a, v.f(fits.tanh_max)) * v.f(2)
        value = let(twice, lambda t: _reduce_exp(v, t, quotient))
        if fits.tanh:
            near = let(a * a, lambda z: x * z * v.poly(z, fits.tanh) + x)
            value = tirx.Select(a < v.f(fits.tanh_split), near, value)
        return keep_nan(x, v.with_sign_of(value, x))

    return let(x, body)


def _of_mantissa(x: Expr, finish: Callable[[Expr, Expr], Expr]) -> Expr:
    """A logarithm of x = 2^e (1 + f) with sqrt(.5) <= 1 + f < sqrt(2), by ``finish(f, e)``."""
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        value = mantissa(v, x, finish)
        value = tirx.Select(x > v.f(v.format.max_finite), x, value)
        value = tirx.Select(x == v.f(0), v.f(-math.inf), value)
        value = tirx.Select(x < v.f(0), v.f(math.nan), value)
        return keep_nan(x, value)

    return let(x, body)


def mantissa(v: Lanes, x: Expr, finish: Callable[[Expr, Expr], Expr]) -> Expr:
    """``finish(f, e)`` of a positive x = 2^e (1 + f) with sqrt(.5) <= 1 + f < sqrt(2).

    Args:
        v: Type of ``x``.
        x: Positive and finite; denormals are scaled first.
        finish: Takes f, and e as a float of the same type.
    """
    fits, fraction = _FITS[v.scalar], v.i(v.format.fraction)

    def split(bits: Expr, offset: Expr) -> Expr:
        exponent = op.shift_right(bits - v.i(fits.sqrt_half), fraction)

        def body(e: Expr) -> Expr:
            f = v.float_of(bits - op.shift_left(e, fraction)) - v.f(1)
            return let(f, lambda f: let(v.cast(e, v.scalar) - offset, lambda e: finish(f, e)))

        return let(exponent, body)

    tiny = x < v.f(v.format.min_normal)
    bits = v.bits_of(tirx.Select(tiny, x * v.f(2.0**fits.scale), x))
    offset = tirx.Select(tiny, v.f(fits.scale), v.f(0))
    return let(bits, lambda b: split(b, offset))


def log(x: Expr) -> Expr:
    """log(x) = e ln 2 + log(1 + f) with x = 2^e (1 + f).

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)
    high, low = _FITS[v.scalar].ln2

    def single(f: Expr, e: Expr) -> Expr:
        half, series = _single_log_terms(v, f)
        return (series + e * v.f(low) - half + f) + e * v.f(high)

    def double(f: Expr, e: Expr) -> Expr:
        def body(half: Expr, rest: Expr) -> Expr:
            return e * v.f(high) - ((half - (rest + e * v.f(low))) - f)

        return _with_log_terms(v, f, body)

    return _of_mantissa(x, single if v.scalar == "float32" else double)


def log2(x: Expr) -> Expr:
    """log2(x) = e + log(1 + f) / ln 2, exact for powers of two.

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)

    def finish(f: Expr, e: Expr) -> Expr:
        if v.scalar == "float32":
            half, series = _single_log_terms(v, f)
            natural = series - half + f
        else:
            natural = _with_log_terms(v, f, lambda half, rest: f - (half - rest))
        return natural * v.f(_LOG2E) + e

    return _of_mantissa(x, finish)


def log10(x: Expr) -> Expr:
    """log(x) / ln 10.

    Args:
        x: float32 or float64, scalar or vector.
    """
    return log(x) * Lanes(x).f(1 / math.log(10))


def _single_log_terms(v: Lanes, f: Expr) -> tuple[Expr, Expr]:
    """f^2/2, and what log(1 + f) of float32 is beside f less that."""
    square = f * f
    return v.f(0.5) * square, f * square * v.poly(f, _FITS[v.scalar].log)


def _with_log_terms(v: Lanes, f: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """``body(half, rest)`` with log(1 + f) = f - (half - rest) and half = f^2/2."""
    half = f * f * v.f(0.5)

    def terms(s: Expr) -> Expr:
        series = let(s * s, lambda z: z * v.poly(z, _FITS[v.scalar].log))  # log(1 + f) / s - 2
        return body(half, s * (half + series))

    return let(f / (v.f(2) + f), terms)


def log1p(x: Expr) -> Expr:
    """log(1 + x) = log(s) + (x - (s - 1)) / s with s = 1 + x rounded.

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)

    def body(x: Expr, s: Expr) -> Expr:
        lost = (x - (s - v.f(1))) / s
        largest = v.f(v.format.max_finite)
        lost = tirx.Select(s > v.f(0), tirx.Select(s > largest, s, lost), s)
        return tirx.Select(s == v.f(1), x, log(s) + lost)

    return let(x, lambda x: let(v.f(1) + x, lambda s: body(x, s)))


# ---- the logistic function of float32 and float64 ------------------------------------------------

#: Power of two that numerator and denominator of sigmoid are scaled by: exp(-x) of
#: -104 <= x <= 64 is normal then, and the quotient as small as sigmoid is.
_SCALE = -32
#: Beyond these sigmoid is 0 and 1, half of it included.
_RANGE = (-104.0, 64.0)


def sigmoid(x: Expr) -> Expr:
    """sigmoid(x) = s / (s + s exp(-x)) with a power of two s, exact down to the denormals.

    Of float64 (x >= 0 ? 1 : e) / (1 + e) with e = exp(-|x|), and of full vectors of AVX-512.

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)
    if v.scalar == "float64" or avx512.serves(v):
        return let(x, lambda x: _sigmoid_by_sign(v, x))
    low, high = (v.f(bound) for bound in _RANGE)
    scale = v.f(2.0**_SCALE)

    def quotient(negative: Expr) -> Expr:
        return scale / (scale + exp_scaled(v, negative, _SCALE))

    # a multiply-add may negate its factors
    return let(clamp(x, low, high) * v.f(-1), quotient)


def _sigmoid_by_sign(v: Lanes, x: Expr) -> Expr:
    e = exp_nonpositive(v.f(0) - v.abs(x))
    return let(e, lambda e: tirx.Select(x < v.f(0), e, v.f(1)) / (v.f(1) + e))
