"""Forms of the vectorizable functions for full vectors of AVX-512: 16 lanes of float32.

Two instructions make them short. ``vscalefps`` multiplies by a power of two, with overflow and
denormal results as they should be. ``vpermps`` looks up 16 values at once and ``vpermi2ps`` chooses
among 32, so that a function can be a polynomial of low degree on each of as many intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.tirx import op

from tvmgraph.schedule import emit
from tvmgraph.schedule.intrinsics.lanes import Lanes, let
from tvmgraph.schedule.types import Expr

#: Lanes of a vector that only processors with AVX-512 are given.
LANES = 16

_LOG2E = 1.4426950408889634
_LN2_HI, _LN2_LO = 0.693359375, -2.12194440054690583e-4
#: Beyond these exp is 0 and infinity in float32, half of it included.
_EXP_MIN, _EXP_MAX = -104.0, 90.0
#: (exp(r) - 1) / r on |r| <= ln(2)/64
_EXP_POLY = (1.0000146, 0.5)
#: 2^(k/32) for every k.
_EXP_TABLE = tuple(2 ** (k / 32) for k in range(2 * LANES))
#: Adding it leaves the nearest integer in the lowest bits of a float32.
_ROUND = 12582912.0
#: Adding it leaves the nearest multiple of 1/32, counted in such parts.
_ROUND_PARTS = _ROUND / len(_EXP_TABLE)
#: erf is 1 in float32 from here on; the last number whose nearest quarter is the 15th.
_ERF_MAX = 3.8749998
#: erf(k/4 + r) on |r| <= 1/8: the coefficient of r^d in row d, for every k.
_ERF_POLY = (
    (
        0.0,
        0.276326388,
        0.520499885,
        0.711155653,
        0.842700779,
        0.92290014,
        0.966105163,
        0.986671686,
        0.995322287,
        0.998537302,
        0.999593019,
        0.999899387,
        0.999977887,
        0.999995708,
        0.999999285,
        0.999999881,
    ),
    (
        1.12837911,
        1.06001425,
        0.87878263,
        0.642931104,
        0.415107489,
        0.236521125,
        0.118930295,
        0.0527749956,
        0.0206669867,
        0.00714231934,
        0.00217825477,
        0.000586277281,
        0.000139229858,
        2.91886154e-05,
        5.39942721e-06,
        1.02590002e-06,
    ),
    (
        0.0,
        -0.264998764,
        -0.439388335,
        -0.482198328,
        -0.415101171,
        -0.295652479,
        -0.178395942,
        -0.0923562571,
        -0.0413339734,
        -0.0160702225,
        -0.00543077989,
        -0.00161226303,
        -0.000405980449,
        -9.50807444e-05,
        -1.89016209e-05,
        -4.95795916e-07,
    ),
    (
        -0.376122713,
        -0.309191763,
        -0.146478713,
        0.026785899,
        0.138370663,
        0.167535722,
        0.138752252,
        0.0901573598,
        0.0482219271,
        0.0217231829,
        0.00835574698,
        0.0027599032,
        0.000793520303,
        0.000190718813,
        4.10234206e-05,
        9.02934153e-06,
    ),
    (
        0.0,
        0.126076788,
        0.182121173,
        0.150117025,
        0.0688504279,
        -0.00585733866,
        -0.0444006622,
        -0.048083663,
        -0.0345277563,
        -0.0192045216,
        -0.00962162763,
        -0.00332201575,
        -0.00180983427,
        -0.000322916458,
        -0.000182752323,
        -0.000193966247,
    ),
    (
        0.112210549,
        0.0808861926,
        0.00826441497,
        -0.0529507212,
        -0.0690445155,
        -0.0471451096,
        -0.0149770807,
        0.00651813531,
        0.0123783424,
        0.0101248939,
        0.00588408252,
        0.00249280455,
        0.000834801584,
        0.000275474304,
        -0.000747905811,
        -2.65335002e-05,
    ),
)


def _least(bound: float, x: Expr, v: Lanes) -> Expr:
    """min(bound, x), NaN for NaN, as ``vminps`` has it."""
    return tirx.Select(v.f32(bound) < x, v.f32(bound), x)


def _greatest(bound: float, x: Expr, v: Lanes) -> Expr:
    """max(bound, x), NaN for NaN, as ``vmaxps`` has it."""
    return tirx.Select(v.f32(bound) > x, v.f32(bound), x)


def scale(x: Expr, n: Expr) -> Expr:
    """x 2^n for the integral part of a float32 n, rounded once."""
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    every, current_rounding = tirx.IntImm("int16", -1), tirx.IntImm("int32", 4)
    return _intrinsic(name, x, n, Lanes(x).f32(0), every, current_rounding)


def exp(x: Expr, offset: int = 0) -> Expr:
    """2^offset exp(x) = 2^(n + offset) exp(r) with x = n ln 2 + r, n the nearest multiple of 1/32.

    2^n is a power of two, by the integral part of n, times an entry of a table of 32, and
    exp(r) = 1 + r P(r). Where exp is no float32, x is taken to the border of where it is.
    """
    v = Lanes(x)

    def body(x: Expr, shifted: Expr, n: Expr) -> Expr:
        r = (x - n * v.f32(_LN2_HI)) - n * v.f32(_LN2_LO)
        part = _choose(v.bits(shifted, "int32"), _EXP_TABLE)

        def value(part: Expr, r: Expr) -> Expr:
            result = part * r * v.poly(r, _EXP_POLY) + part
            return scale(result, n + v.f32(offset) if offset else n)

        return let(part, lambda part: let(r, lambda r: value(part, r)))

    def rounded(x: Expr, shifted: Expr) -> Expr:
        return let(shifted - v.f32(_ROUND_PARTS), lambda n: body(x, shifted, n))

    def bounded(x: Expr) -> Expr:
        return let(x * v.f32(_LOG2E) + v.f32(_ROUND_PARTS), lambda shifted: rounded(x, shifted))

    below = let(x, lambda x: _least(_EXP_MAX, x, v))
    return let(below, lambda x: let(_greatest(_EXP_MIN, x, v), bounded))


def erf(x: Expr) -> Expr:
    """erf(x): the polynomial in the distance to the nearest quarter, with the sign of x."""
    v = Lanes(x)

    def body(x: Expr, t: Expr, shifted: Expr) -> Expr:
        r = t - (shifted - v.f32(_ROUND)) * v.f32(0.25)
        nearest = v.bits(shifted, "int32")  # vpermps takes the lowest four bits
        return v.with_sign_of(let(r, lambda r: _by_interval(v, r, nearest, _ERF_POLY)), x)

    def bounded(x: Expr, t: Expr) -> Expr:
        return let(t * v.f32(4) + v.f32(_ROUND), lambda shifted: body(x, t, shifted))

    return let(x, lambda x: let(_least(_ERF_MAX, v.abs(x), v), lambda t: bounded(x, t)))


def _by_interval(v: Lanes, r: Expr, interval: Expr, rows: Sequence[Sequence[float]]) -> Expr:
    """A polynomial whose coefficients depend on the interval."""

    def coefficient(row: Sequence[float]) -> Expr:
        return _intrinsic("llvm.x86.avx512.permvar.sf.512", _table(row), interval)

    result = coefficient(rows[-1])
    for row in rows[-2::-1]:
        result = result * r + coefficient(row)
    return result


def _choose(place: Expr, table: Sequence[float]) -> Expr:
    """The entries of a table of 32 at the places that the lowest five bits name."""
    low, high = _table(table[:LANES]), _table(table[LANES:])
    return _intrinsic("llvm.x86.avx512.vpermi2var.ps.512", low, place, high)


def _table(values: Sequence[float]) -> Expr:
    return emit.shuffle([tirx.FloatImm("float32", value) for value in values], range(LANES))


def _intrinsic(name: str, *args: Any) -> Expr:
    return op.call_llvm_pure_intrin(f"float32x{LANES}", name, *args)
