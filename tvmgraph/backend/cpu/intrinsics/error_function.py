"""The error function of float32 and float64 (of which it is within 3 units in the last place).

The polynomials are minimax fits of our own, coefficients in ascending order.
"""

from __future__ import annotations

from tvm import tirx

from tvmgraph.backend.cpu.intrinsics import avx512
from tvmgraph.backend.cpu.intrinsics.exponential import exp_of
from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, clamp, keep_nan, let
from tvmgraph.backend.loop_ir.types import Expr

#: erf is 1 in float32 from here on.
_MAX = 3.9375
#: erf(sqrt(z)) / sqrt(z) - 1/2 on 0 <= z <= 3.75^2, a quotient; relative error of erf 2^-24.9.
_NUMERATOR = (
    0.6283791065216064, -0.06326135247945786, -0.005846897605806589, -0.0034469228703528643,
    -0.0002841903187800199, -2.0226827928127022e-06, 2.2119172271573007e-08,
)  # fmt: skip
_DENOMINATOR = (
    1.0, 0.4978899657726288, 0.10915578156709671, 0.013178391382098198, 0.0008332306169904768,
)  # fmt: skip
#: erf is 1 in float64 from here on, and x + x P(x^2) below the other.
_DOUBLE_MAX, _DOUBLE_SPLIT = 6.0, 0.92
#: erf(sqrt(z)) / sqrt(z) - 1 on z <= 0.95^2; relative error 2^-58.
_DOUBLE_NEAR = (
    0.12837916709551256, -0.37612638903183676, 0.11283791670951066,
    -0.026866170644299893, 0.00522397761662429, -0.0008548326470089453,
    0.00012055310901285896, -1.492506821097385e-05, 1.6451822532187565e-06,
    -1.6244662947048694e-07, 1.3887981958726256e-08, -8.131969491677188e-10,
)  # fmt: skip
#: -log(1 - erf(t)) / t from 0.9 on; relative error of erf 2^-61.
_DOUBLE_TAIL = (
    1.1283792014304528, 0.6366193625990845, 0.1027749031798708, -0.019136519990701942,
    -0.0001893166080610997, 0.0016597129708879124, -0.0005383181236332309,
    -3.229242917032e-05, 0.00011682655051230402, -6.762100989147828e-05,
    2.5370229535102994e-05, -7.117253642059269e-06, 1.5506095945040093e-06,
    -2.6352545187510054e-07, 3.4433444441623924e-08, -3.3484488403437057e-09,
    2.284247958561527e-10, -9.754132797954949e-12, 1.961052496671212e-13,
)  # fmt: skip


def erf(x: Expr) -> Expr:
    """erf(x) of float32: x/2 + x N(x^2) / D(x^2), within 5 units in the last place.

    The quotient is at most half as large as the result, and so are its errors. Of float64
    x + x P(x^2) near 0 and sign(x) (1 - exp(-|x| Q(|x|))) elsewhere; with AVX-512 by a table.

    Args:
        x: float32 or float64, scalar or vector.
    """
    v = Lanes(x)
    if v.scalar == "float64":
        return _of_float64(v, x)
    if avx512.serves(v):
        return avx512.erf(x)

    def of_square(x: Expr, z: Expr) -> Expr:
        value = x * (v.poly(z, _NUMERATOR) / v.poly(z, _DENOMINATOR)) + x * v.f(0.5)
        return clamp(value, v.f(-1), v.f(1))

    return let(clamp(x, v.f(-_MAX), v.f(_MAX)), lambda x: let(x * x, lambda z: of_square(x, z)))


def _of_float64(v: Lanes, x: Expr) -> Expr:
    def body(x: Expr, t: Expr) -> Expr:
        near = x * v.poly(t * t, _DOUBLE_NEAR) + x
        tail = let(v.f(0) - t * v.poly(t, _DOUBLE_TAIL), lambda e: v.f(1) - exp_of(v, e))
        return tirx.Select(t < v.f(_DOUBLE_SPLIT), near, v.with_sign_of(tail, x))

    def bounded(x: Expr) -> Expr:
        bound = tirx.min(v.abs(x), v.f(_DOUBLE_MAX))
        return keep_nan(x, let(bound, lambda t: body(x, t)))

    return let(x, bounded)
