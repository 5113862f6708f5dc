"""Trigonometric functions of float32 and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, keep_nan, keep_zero, let
from tvmgraph.backend.loop_ir.types import Expr

#: pi/2 in three parts of 24 bits each.
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
#: Up to here three parts are enough, also next to multiples of pi/2; the C library does the rest.
_MAX_ANGLE = float(1 << 17)
#: (sin(r) - r) / r^3 and (cos(r) - 1 + r^2/2) / r^4 in r^2 for |r| <= pi/4
_SIN_POLY = (-1.66666549e-1, 8.33217768e-3, -1.95172339e-4)
_COS_POLY = (4.16666469e-2, -1.38873669e-3, 2.44383792e-5)
#: (atan(a) - a) / a^3 in a^2 for a <= 1
_ATAN_POLY = (
    -3.33332991e-1, 1.99985483e-1, -1.42642416e-1, 1.09521854e-1, -8.40344857e-2,
    5.79575542e-2, -3.11777985e-2, 1.09145766e-2, -1.79361446e-3,
)  # fmt: skip
#: (asin(a) - a) / a^3 in a^2 for a <= 1/2
_ASIN_POLY = (1.6666754e-1, 7.4952395e-2, 4.54774092e-2, 2.41459518e-2, 4.22215566e-2)


def sin(x: Expr) -> Expr:
    """sin(x) = sin(r), cos(r), -sin(r) or -cos(r) with x = n pi/2 + r."""
    return let(x, lambda x: keep_zero(x, _of_angle("sinf", x, _quarter)))


def cos(x: Expr) -> Expr:
    """cos(x) = sin(x + pi/2)."""
    return _of_angle("cosf", x, lambda v, n, r: _quarter(v, n + v.i32(1), r))


def tan(x: Expr) -> Expr:
    """tan(x) = sin(r) / cos(r), or -cos(r) / sin(r) where n is odd."""

    def quotient(v: Lanes, n: Expr, r: Expr) -> Expr:
        def body(s: Expr, c: Expr) -> Expr:
            odd = op.bitwise_and(n, v.i32(1)) != v.i32(0)
            return tirx.Select(odd, v.f32(0) - c, s) / tirx.Select(odd, s, c)

        return let(_sin(v, r), lambda s: let(_cos(v, r), lambda c: body(s, c)))

    return let(x, lambda x: keep_zero(x, _of_angle("tanf", x, quotient)))


def _of_angle(library: str, x: Expr, body: Callable[[Lanes, Expr, Expr], Expr]) -> Expr:
    """Calls ``body(v, n, r)`` with x = n pi/2 + r, |r| <= pi/4, if no lane is beyond the limit."""
    v = Lanes(x)

    def reduced(x: Expr, n: Expr) -> Expr:
        r = x
        for part in _HALF_PI:  # rounded once each, which is exact where much cancels
            r = v.multiply_add(n, v.f32(-part), r)
        return let(r, lambda r: let(v.cast(n, "int32"), lambda i: body(v, i, r)))

    def usual(x: Expr) -> Expr:
        return let(op.nearbyint(x * v.f32(2 / math.pi)), lambda n: reduced(x, n))

    def guarded(x: Expr) -> Expr:
        large = v.largest(v.abs(x)) > tirx.FloatImm("float32", _MAX_ANGLE)
        return op.if_then_else(large, v.each(library, x), usual(x))

    return let(x, guarded)


def _sin(v: Lanes, r: Expr) -> Expr:
    return let(r * r, lambda z: r * z * v.poly(z, _SIN_POLY) + r)


def _cos(v: Lanes, r: Expr) -> Expr:
    return let(r * r, lambda z: z * z * v.poly(z, _COS_POLY) - v.f32(0.5) * z + v.f32(1))


def _quarter(v: Lanes, n: Expr, r: Expr) -> Expr:
    """sin(n pi/2 + r)."""

    def body(n: Expr) -> Expr:
        odd = op.bitwise_and(n, v.i32(1)) != v.i32(0)
        sign = op.shift_left(op.bitwise_and(n, v.i32(2)), v.i32(30))
        value = tirx.Select(odd, _cos(v, r), _sin(v, r))
        return v.bits(op.bitwise_xor(v.bits(value, "int32"), sign), "float32")

    return let(n, body)


def atan(x: Expr) -> Expr:
    """atan(x) = a + a^3 P(a^2) with a = |x|, and pi/2 less that of 1/a beyond 1; sign of x."""
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
    """The angle of the point (x, y): atan of the smaller over the larger, put where it belongs."""
    v = Lanes(x)

    def body(y: Expr, x: Expr, b: Expr, a: Expr) -> Expr:
        steep = b > a
        below, above = tirx.Select(steep, a, b), tirx.Select(steep, b, a)
        infinite = below > v.f32(3.4028234663852886e38)  # then both are
        ratio = tirx.Select(infinite, v.f32(1), below / above)
        ratio = tirx.Select(above == v.f32(0), v.f32(0), ratio)
        angle = let(ratio, lambda q: _complement(v, steep, _atan(v, q)))
        left = v.bits(x, "int32") < v.i32(0)
        turned = let(angle, lambda w: tirx.Select(left, _straight(v, w), w))
        unknown = tirx.Or(op.isnan(x), op.isnan(y))
        return tirx.Select(unknown, v.f32(math.nan), v.with_sign_of(turned, y))

    def magnitudes(y: Expr, x: Expr) -> Expr:
        return let(v.abs(y), lambda b: let(v.abs(x), lambda a: body(y, x, b, a)))

    return let(y, lambda y: let(x, lambda x: magnitudes(y, x)))


def _straight(v: Lanes, angle: Expr) -> Expr:
    """pi - angle."""
    return v.f32(2 * _HALF_PI[0]) - (angle - v.f32(2 * _HALF_PI[1]))


def asin(x: Expr) -> Expr:
    """asin(x) = a + a^3 P(a^2) with a = |x|, beyond 1/2 pi/2 - 2 asin(sqrt((1 - a) / 2))."""
    v = Lanes(x)

    def body(x: Expr, t: Expr) -> Expr:
        def angle(a: Expr, above: Expr) -> Expr:
            near = _asin(v, a)
            return let(near, lambda y: tirx.Select(above, _right(v, y + y), y))

        value = _halved(v, t, angle)
        return v.with_sign_of(value, x)

    return let(x, lambda x: keep_nan(x, let(v.abs(x), lambda t: body(x, t))))


def acos(x: Expr) -> Expr:
    """acos(x) = pi/2 - asin(x), beyond 1/2 2 asin(sqrt((1 - |x|) / 2)), from pi for x < 0."""
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


__all__ = ["acos", "asin", "atan", "atan2", "cos", "sin", "tan"]
