"""Inverse trigonometric functions of float64, within 3 units in the last place."""

from __future__ import annotations

import math

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, keep_nan, let
from tvmgraph.backend.loop_ir.types import Expr

#: The tangents of pi/8 and 3 pi/8.
_LOW, _HIGH = math.sqrt(2) - 1, math.sqrt(2) + 1
#: What pi/2 has beyond 53 bits.
_HALF_PI_REST = 6.123233995736766e-17
_LARGE = 1e300
#: (atan(t) - t) / t^3 in t^2 for |t| <= tan(pi/8); relative error of atan 2^-59
_ATAN_POLY = (
    -0.3333333333333319, 0.1999999999995303, -0.14285714280145734, 0.11111110781147099,
    -0.09090897696929894, 0.07692059222192536, -0.06663093647657274, 0.05847819257351525,
    -0.05039011574805867, 0.038057625054931286, -0.017900120671874933,
)  # fmt: skip


def atan(x: Expr) -> Expr:
    """The angle whose tangent is x.

    Args:
        x: float64, scalar or vector.

    Returns:
        Radians.
    """
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        angle = let(v.abs(x), lambda a: _angle(v, a, v.f64(1)))
        return keep_nan(x, v.with_sign_of(angle, x))

    return let(x, body)


def asin(x: Expr) -> Expr:
    """asin(x) = atan(x / sqrt((1 - x) (1 + x))); NaN beyond 1.

    Args:
        x: float64, scalar or vector.

    Returns:
        Radians.
    """
    v = Lanes(x)

    def body(x: Expr, a: Expr) -> Expr:
        rest = op.sqrt((v.f64(1) - a) * (v.f64(1) + a))
        angle = let(rest, lambda b: keep_nan(b, _angle(v, a, b)))
        return v.with_sign_of(angle, x)

    return let(x, lambda x: let(v.abs(x), lambda a: body(x, a)))


def acos(x: Expr) -> Expr:
    """acos(x) = 2 atan(sqrt(1 - x) / sqrt(1 + x)); NaN beyond 1.

    Args:
        x: float64, scalar or vector.

    Returns:
        Radians.
    """
    v = Lanes(x)

    def body(x: Expr) -> Expr:
        above, below = op.sqrt(v.f64(1) - x), op.sqrt(v.f64(1) + x)
        half = let(above, lambda a: let(below, lambda b: _angle(v, a, b)))
        outside = v.abs(x) > v.f64(1)
        return keep_nan(x, tirx.Select(outside, v.f64(math.nan), half * v.f64(2)))

    return let(x, body)


def atan2(y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y).

    Args:
        y: float64, scalar or vector.
        x: The same.

    Returns:
        Radians, from -pi to pi.
    """
    v = Lanes(x)

    def body(y: Expr, x: Expr, b: Expr, a: Expr) -> Expr:
        both = tirx.And(a > v.f64(v.format.max_finite), b > v.f64(v.format.max_finite))
        zero = tirx.And(a == v.f64(0), b == v.f64(0))
        # their sum must not overflow
        scale = tirx.Select(tirx.max(a, b) > v.f64(_LARGE), v.f64(0.25), v.f64(1))
        above = tirx.Select(both, v.f64(1), b * scale)
        below = tirx.Select(tirx.Or(both, zero), v.f64(1), a * scale)
        angle = let(above, lambda b: let(below, lambda a: _angle(v, b, a)))
        left = v.bits(x, "int64") < v.i64(0)

        def reflected(w: Expr) -> Expr:  # pi less the angle
            return tirx.Select(left, v.f64(math.pi) - (w - v.f64(2 * _HALF_PI_REST)), w)

        unknown = tirx.Or(op.isnan(x), op.isnan(y))
        return tirx.Select(unknown, v.f64(math.nan), v.with_sign_of(let(angle, reflected), y))

    def magnitudes(y: Expr, x: Expr) -> Expr:
        return let(v.abs(y), lambda b: let(v.abs(x), lambda a: body(y, x, b, a)))

    return let(y, lambda y: let(x, lambda x: magnitudes(y, x)))


def _angle(v: Lanes, a: Expr, b: Expr) -> Expr:
    """atan(a / b) of positive numbers: 0, pi/4 or pi/2 and a small angle, by one division."""
    middle, high = a > b * v.f64(_LOW), a > b * v.f64(_HIGH)
    above = tirx.Select(high, v.f64(0) - b, tirx.Select(middle, a - b, a))
    below = tirx.Select(high, a, tirx.Select(middle, a + b, b))
    part = tirx.Select(middle, v.f64(0.5), v.f64(0))
    part = tirx.Select(high, v.f64(1), part)

    def angle(t: Expr) -> Expr:
        series = let(t * t, lambda z: t * z * v.poly(z, _ATAN_POLY))
        return part * v.f64(math.pi / 2) + (t + (series + part * v.f64(_HALF_PI_REST)))

    return let(above / below, angle)
