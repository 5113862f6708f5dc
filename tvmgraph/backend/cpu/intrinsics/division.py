"""The remainder of a division of float32."""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, let
from tvmgraph.backend.loop_ir.types import Expr

#: Up to here a quotient, and what is left, are exact; the C library does the rest.
_MAX_QUOTIENT = float(1 << 22)


def fmod(x: Expr, y: Expr) -> Expr:
    """What truncated division leaves of x: |x| - q |y| with the sign of x, without rounding.

    Quotients too large to be exact go to the C library.

    Args:
        x: float32, scalar or vector.
        y: The same.
    """
    v = Lanes(x)

    def left(a: Expr, b: Expr, q: Expr) -> Expr:
        def corrected(r: Expr) -> Expr:
            # a quotient that was rounded up to the next integer took away one too many
            r = tirx.Select(r < v.f32(0), r + b, r)
            whole = tirx.Select(a > v.f32(v.format.max_finite), v.f32(float("nan")), a)
            return tirx.Select(b > v.f32(v.format.max_finite), whole, r)

        return let(v.multiply_add(v.f32(0) - q, b, a), corrected)

    def guarded(x: Expr, y: Expr, a: Expr, b: Expr, q: Expr) -> Expr:
        large = v.largest(q) > tirx.FloatImm("float32", _MAX_QUOTIENT)
        usual = v.with_sign_of(left(a, b, q), x)
        return op.if_then_else(large, v.each("fmodf", x, y), usual)

    def divided(x: Expr, y: Expr, a: Expr, b: Expr) -> Expr:
        return let(op.trunc(a / b), lambda q: guarded(x, y, a, b, q))

    def magnitudes(x: Expr, y: Expr) -> Expr:
        return let(v.abs(x), lambda a: let(v.abs(y), lambda b: divided(x, y, a, b)))

    return let(x, lambda x: let(y, lambda y: magnitudes(x, y)))
