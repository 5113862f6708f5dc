"""The logistic function of float32 and float64."""

from __future__ import annotations

from tvm import tirx

from tvmgraph.backend.cpu.intrinsics import avx512
from tvmgraph.backend.cpu.intrinsics.exponential import exp_nonpositive, exp_scaled
from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, let
from tvmgraph.backend.loop_ir.types import Expr

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

    def bounded(x: Expr) -> Expr:  # NaN stays NaN
        least = tirx.Select(high < x, high, x)
        most = let(least, lambda x: tirx.Select(x < low, low, x))
        return let(most * v.f(-1), quotient)  # a multiply-add may negate its factors

    return let(x, bounded)


def _sigmoid_by_sign(v: Lanes, x: Expr) -> Expr:
    e = exp_nonpositive(v.f(0) - v.abs(x))
    return let(e, lambda e: tirx.Select(x < v.f(0), e, v.f(1)) / (v.f(1) + e))
