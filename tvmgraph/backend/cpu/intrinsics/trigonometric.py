"""Trigonometric functions of float32 and float64, and the inverses of float32.

Of float64 within 2 units in the last place, tan within 3, with the polynomials of Sun's fdlibm
(k_sin.c, k_cos.c).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, keep_nan, keep_zero, let
from tvmgraph.backend.loop_ir.types import Expr


@dataclass(frozen=True)
class _Fits:
    """What sine and cosine of a type of floats are made of.

    Attributes:
        half_pi: pi/2 in three parts of the fraction's bits each.
        max_angle: Up to here three parts are enough, also next to multiples of pi/2; the C library
            does the rest.
        sin: (sin(r) - r) / r^3 in r^2 for |r| <= pi/4.
        cos: (cos(r) - 1 + r^2/2) / r^4 in r^2.
        suffix: Ends the names of the C library's functions.
    """

    half_pi: tuple[float, float, float]
    max_angle: float
    sin: Sequence[float]
    cos: Sequence[float]
    suffix: str = ""


_FITS = {
    "float32": _Fits(
        (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        float(1 << 17),
        (-1.66666549e-1, 8.33217768e-3, -1.95172339e-4),
        (4.16666469e-2, -1.38873669e-3, 2.44383792e-5),
        "f",
    ),
    "float64": _Fits(
        (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
        float(1 << 27),
        (
            -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
            2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
        ),
        (
            4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
            -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
        ),
    ),
}  # fmt: skip
_HALF_PI = _FITS["float32"].half_pi
#: (atan(a) - a) / a^3 in a^2 for a <= 1
_ATAN_POLY = (
    -3.33332991e-1, 1.99985483e-1, -1.42642416e-1, 1.09521854e-1, -8.40344857e-2,
    5.79575542e-2, -3.11777985e-2, 1.09145766e-2, -1.79361446e-3,
)  # fmt: skip
#: (asin(a) - a) / a^3 in a^2 for a <= 1/2
_ASIN_POLY = (1.6666754e-1, 7.4952395e-2, 4.54774092e-2, 2.41459518e-2, 4.22215566e-2)


def sin(x: Expr) -> Expr:
    """sin(x) = sin(r), cos(r), -sin(r) or -cos(r) with x = n pi/2 + r.

    Args:
        x: Radians, float32 or float64, scalar or vector.
    """
    return let(x, lambda x: keep_zero(x, _of_angle("sin", x, _quarter)))


def cos(x: Expr) -> Expr:
    """cos(x) = sin(x + pi/2).

    Args:
        x: Radians, float32 or float64, scalar or vector.
    """
    return _of_angle("cos", x, lambda v, n, r: _quarter(v, n + v.i(1), r))


def tan(x: Expr) -> Expr:
    """tan(x) = sin(r) / cos(r), or -cos(r) / sin(r) where n is odd.

    Args:
        x: Radians, float32 or float64, scalar or vector.
    """

    def quotient(v: Lanes, n: Expr, r: Expr) -> Expr:
        def body(s: Expr, c: Expr) -> Expr:
            odd = op.bitwise_and(n, v.i(1)) != v.i(0)
            return tirx.Select(odd, v.f(0) - c, s) / tirx.Select(odd, s, c)

        def both(z: Expr) -> Expr:
            return let(_sine(v, r, z), lambda s: let(_cosine(v, z), lambda c: body(s, c)))

        return let(r * r, both)

    return let(x, lambda x: keep_zero(x, _of_angle("tan", x, quotient)))


def _of_angle(library: str, x: Expr, body: Callable[[Lanes, Expr, Expr], Expr]) -> Expr:
    """Calls ``body(v, n, r)`` with x = n pi/2 + r, |r| <= pi/4, if no lane is beyond the limit."""
    v = Lanes(x)
    fits = _FITS[v.scalar]

    def reduced(x: Expr, n: Expr) -> Expr:
        r = x
        for part in fits.half_pi:  # rounded once each, which is exact where much cancels
            r = v.multiply_add(n, v.f(-part), r)
        return let(r, lambda r: let(v.integral(n), lambda i: body(v, i, r)))

    def usual(x: Expr) -> Expr:
        return let(op.nearbyint(x * v.f(2 / math.pi)), lambda n: reduced(x, n))

    def guarded(x: Expr) -> Expr:
        large = v.largest(v.abs(x)) > tirx.FloatImm(v.scalar, fits.max_angle)
        return op.if_then_else(large, v.each(library + fits.suffix, x), usual(x))

    return let(x, guarded)


def _sine(v: Lanes, r: Expr, z: Expr) -> Expr:
    """sin(r) with z = r^2."""
    return r * z * v.poly(z, _FITS[v.scalar].sin) + r


def _cosine(v: Lanes, z: Expr) -> Expr:
    """cos(r) with z = r^2."""
    series = z * z * v.poly(z, _FITS[v.scalar].cos)
    if v.scalar == "float32":
        return series - v.f(0.5) * z + v.f(1)
    half = z * v.f(0.5)
    whole = v.f(1) - half
    rest = (v.f(1) - whole) - half  # what rounding took from 1 - z/2
    return let(whole, lambda w: w + (rest + series))


def _quarter(v: Lanes, n: Expr, r: Expr) -> Expr:
    """sin(n pi/2 + r)."""

    def body(n: Expr, z: Expr) -> Expr:
        odd = op.bitwise_and(n, v.i(1)) != v.i(0)
        sign = op.shift_left(op.bitwise_and(n, v.i(2)), v.i(v.format.width - 2))
        value = tirx.Select(odd, _cosine(v, z), _sine(v, r, z))
        return v.float_of(op.bitwise_xor(v.bits_of(value), sign))

    return let(n, lambda n: let(r * r, lambda z: body(n, z)))


def atan(x: Expr) -> Expr:
    """atan(x) = a + a^3 P(a^2) with a = |x|, and pi/2 less that of 1/a beyond 1; sign of x.

    Args:
        x: float32, scalar or vector.

    Returns:
        Radians.
    """
    v = Lanes(x)

    def body(x: Expr, t: Expr) -> Expr:
        above = t > v.f32(1)
        a = tirx.Select(above, v.f32(1), t) / tirx.Select(above, t, v.f32(1))
        value = let(a, lambda a: _complement(v, above, _atan(v, a)))
        return v.with_sign_of(value, x)

    return let(x, lambda x: keep_nan(x, let(v.abs(x), lambda t: body(x, t))))


def _atan(v: Lanes, a: Expr) -> Expr:
    return let(a * a, lambda z: a * z * v.poly(z, _ATAN_POLY) + a)


def _complement(v: Lanes, condition: Expr, angle: Expr) -> Expr:
    """pi/2 - angle where the condition holds."""
    return let(angle, lambda y: tirx.Select(condition, _right(v, y), y))


def atan2(y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y): atan of the smaller over the larger, put where it belongs.

    Args:
        y: float32, scalar or vector.
        x: The same.

    Returns:
        Radians, from -pi to pi.
    """
    v = Lanes(x)

    def body(y: Expr, x: Expr, b: Expr, a: Expr) -> Expr:
        steep = b > a
        below, above = tirx.Select(steep, a, b), tirx.Select(steep, b, a)
        infinite = below > v.f32(v.format.max_finite)  # then both are
        ratio = tirx.Select(infinite, v.f32(1), below / above)
        ratio = tirx.Select(above == v.f32(0), v.f32(0), ratio)
        angle = let(ratio, lambda q: _complement(v, steep, _atan(v, q)))
        left = v.bits(x, "int32") < v.i32(0)
        reflected = let(angle, lambda w: tirx.Select(left, _straight(v, w), w))
        unknown = tirx.Or(op.isnan(x), op.isnan(y))
        return tirx.Select(unknown, v.f32(math.nan), v.with_sign_of(reflected, y))

    def magnitudes(y: Expr, x: Expr) -> Expr:
        return let(v.abs(y), lambda b: let(v.abs(x), lambda a: body(y, x, b, a)))

    return let(y, lambda y: let(x, lambda x: magnitudes(y, x)))


def _straight(v: Lanes, angle: Expr) -> Expr:
    """pi - angle."""
    return v.f32(2 * _HALF_PI[0]) - (angle - v.f32(2 * _HALF_PI[1]))


def asin(x: Expr) -> Expr:
    """asin(x) = a + a^3 P(a^2) with a = |x|, beyond 1/2 pi/2 - 2 asin(sqrt((1 - a) / 2)).

    Args:
        x: float32, scalar or vector.

    Returns:
        Radians; NaN beyond 1.
    """
    v = Lanes(x)

    def body(x: Expr, t: Expr) -> Expr:
        def angle(a: Expr, above: Expr) -> Expr:
            near = _asin(v, a)
            return let(near, lambda y: tirx.Select(above, _right(v, y + y), y))

        value = _halved(v, t, angle)
        return v.with_sign_of(value, x)

    return let(x, lambda x: keep_nan(x, let(v.abs(x), lambda t: body(x, t))))


def acos(x: Expr) -> Expr:
    """acos(x) = pi/2 - asin(x), beyond 1/2 2 asin(sqrt((1 - |x|) / 2)), from pi for x < 0.

    Args:
        x: float32, scalar or vector.

    Returns:
        Radians; NaN beyond 1.
    """
    v = Lanes(x)

    def body(x: Expr, t: Expr) -> Expr:
        def angle(a: Expr, above: Expr) -> Expr:
            def choose(y: Expr) -> Expr:
                near = _right(v, v.with_sign_of(y, x))
                far = tirx.Select(x < v.f32(0), _straight(v, y + y), y + y)
                return tirx.Select(above, far, near)

            return let(_asin(v, a), choose)

        return _halved(v, t, angle)

    return let(x, lambda x: keep_nan(x, let(v.abs(x), lambda t: body(x, t))))


def _asin(v: Lanes, a: Expr) -> Expr:
    return let(a * a, lambda z: a * z * v.poly(z, _ASIN_POLY) + a)


def _halved(v: Lanes, t: Expr, body: Callable[[Expr, Expr], Expr]) -> Expr:
    """Calls ``body(a, above)`` with an argument of asin that is at most 1/2; NaN beyond 1."""
    above = t > v.f32(0.5)
    rest = op.sqrt((v.f32(1) - t) * v.f32(0.5))
    return let(tirx.Select(above, rest, t), lambda a: body(a, above))


def _right(v: Lanes, angle: Expr) -> Expr:
    """pi/2 - angle."""
    high, low, _ = _HALF_PI
    return v.f32(high) - (angle - v.f32(low))
