"""Forms of the vectorizable functions for full vectors of AVX-512, each 16 lanes of float32.

Two instructions make them short. ``vscalefps`` multiplies by a power of two, with overflow and
denormal results as they should be. ``vpermi2ps`` looks up 16 values at once in a table of 32, so
that a function can be a polynomial of low degree on each of as many intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, let
from tvmgraph.backend.loop_ir import emit
from tvmgraph.backend.loop_ir.types import Expr
from tvmgraph.backend.target import has_feature

#: Lanes of a full vector.
LANES = 16

_LOG2E = 1.4426950408889634
_LN2_HI, _LN2_LO = 0.693359375, -2.12194440054690583e-4
#: Beyond these exp is 0 and infinity in float32, half of it included.
_EXP_MIN, _EXP_MAX = -104.0, 90.0
#: (exp(r) - 1) / r on |r| <= ln(2)/64
_EXP_POLY = (1.0000146, 0.5)
#: 2^(k/32) for every k.
_EXP_TABLE = tuple(2 ** (k / 32) for k in range(2 * LANES))
#: Adding it leaves the nearest multiple of 1/32, counted in such parts, in the lowest bits.
_ROUND_EXP = 1.5 * 2**18
#: Adding it leaves the nearest multiple of 1/8 in the lowest bits.
_ROUND_ERF = 1.5 * 2**20
#: The last number whose nearest multiple of 1/8 is the 31st; erf is 1 in float32 from there on.
_ERF_MAX = 3.9374998
#: erf(k/8 + r) on |r| <= 1/16: the coefficient of r^d in row d, for every k.
_ERF_POLY = (
    (
        0.0, 0.140316203, 0.276326388, 0.404116899,
        0.520499885, 0.623240888, 0.711155653, 0.784075081,
        0.842700779, 0.888388216, 0.92290014, 0.948170066,
        0.966105163, 0.978443742, 0.986671686, 0.99199003,
        0.995322287, 0.997345984, 0.998537302, 0.999217033,
        0.999593019, 0.999794602, 0.999899387, 0.999952137,
        0.999977887, 0.999990106, 0.999995708, 0.999998212,
        0.999999285, 0.999999702, 0.999999881, 1.0,
    ),
    (
        1.12837911, 1.11088479, 1.06001377, 0.980352581,
        0.87878257, 0.763499677, 0.642931342, 0.524745345,
        0.415107816, 0.31827426, 0.236521348, 0.170359924,
        0.118930362, 0.0804722682, 0.0527749658, 0.0335457735,
        0.0206669234, 0.0123407608, 0.00714226812, 0.00400643796,
        0.002178255, 0.00114785496, 0.000586264068, 0.000290220109,
        0.000139248194, 6.47559282e-05, 2.9187524e-05, 1.27509575e-05,
        5.39903385e-06, 2.21573077e-06, 8.81344135e-07, 3.39783014e-07,
    ),
    (
        6.86728526e-06, -0.138860464, -0.265003175, -0.367631882,
        -0.439390868, -0.477186859, -0.48219806, -0.459151834,
        -0.415107548, -0.358058333, -0.295651585, -0.234244883,
        -0.178395599, -0.130767539, -0.0923563167, -0.0628984645,
        -0.0413339734, -0.0262242276, -0.0160701927, -0.00951535814,
        -0.00544568663, -0.00301315286, -0.00161224825, -0.000834396516,
        -0.000417752803, -0.000202366995, -9.48620655e-05, -4.30358668e-05,
        -1.88973245e-05, -8.03237072e-06, -3.30520493e-06, -1.31673414e-06,
    ),
    (
        -0.376676023, -0.358215153, -0.308780223, -0.234654263,
        -0.1464279, -0.0558054186, 0.0265291892, 0.092595771,
        0.138031647, 0.162153095, 0.167305484, 0.157788232,
        0.138679326, 0.114830069, 0.0901895091, 0.0674969628,
        0.0482868105, 0.033098381, 0.0217765793, 0.013771344,
        0.00837997068, 0.00491103483, 0.00277385768, 0.00151091209,
        0.000794072053, 0.000402842328, 0.000197345333, 9.3384675e-05,
        4.26976367e-05, 1.88676986e-05, 8.05964555e-06, 3.32873401e-06,
    ),
    (
        0.0140822139, 0.0685744584, 0.126743615, 0.166290089,
        0.182786763, 0.17621778, 0.150529578, 0.112335764,
        0.069211483, 0.0280641727, -0.00603474397, -0.0303708725,
        -0.0444856808, -0.0496344157, -0.0480496734, -0.042235788,
        -0.0344422422, -0.0263714641, -0.0191003755, -0.0131514445,
        -0.00863876566, -0.00542745786, -0.00326782698, -0.00188844383,
        -0.00104872591, -0.000560227199, -0.000288115611, -0.000142747318,
        -6.81742385e-05, -3.14007266e-05, -1.39544154e-05, -5.98549195e-06,
    ),
)  # fmt: skip


def serves(v: Lanes) -> bool:
    """Whether values are full vectors of AVX-512, on a processor that has them.

    Args:
        v: Their type: lanes and dtype.
    """
    return v.lanes % LANES == 0 and has_feature("avx512f")


def _by_vector(x: Expr, function: Callable[[Expr], Expr]) -> Expr:
    """A function of one full vector, of each of those that ``x`` consists of."""
    lanes = Lanes(x).lanes
    if lanes == LANES:
        return function(x)

    def joined(x: Expr) -> Expr:
        firsts = range(0, lanes, LANES)
        parts = [emit.shuffle([x], range(first, first + LANES)) for first in firsts]
        return emit.shuffle([function(part) for part in parts], range(lanes))

    return let(x, joined)


def _least(bound: float, x: Expr, v: Lanes) -> Expr:
    """min(bound, x), NaN for NaN, as ``vminps`` has it."""
    return tirx.Select(v.f32(bound) < x, v.f32(bound), x)


def scale(x: Expr, n: Expr) -> Expr:
    """x 2^n for the integral part of a float32 n, rounded once.

    Args:
        x: float32 of whole vectors.
        n: float32 of as many lanes.
    """
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    every, current_rounding = tirx.IntImm("int16", -1), tirx.IntImm("int32", 4)
    return _intrinsic(name, x, n, Lanes(x).f32(0), every, current_rounding)


def exp(x: Expr, offset: int = 0) -> Expr:
    """2^offset exp(x) = 2^(n + offset) exp(r) with x = n ln 2 + r, n the nearest multiple of 1/32.

    2^n is a power of two, by the integral part of n, times an entry of a table of 32, and
    exp(r) = 1 + r P(r). Where exp is more than any float32, x is taken to where that begins.

    Args:
        x: float32 of whole vectors.
        offset: Exponent of a power of two that the result is multiplied by.
    """
    return _by_vector(x, lambda x: _exp(x, offset))


def _exp(x: Expr, offset: int) -> Expr:
    v = Lanes(x)

    def body(x: Expr, shifted: Expr, n: Expr) -> Expr:
        r = (x - n * v.f32(_LN2_HI)) - n * v.f32(_LN2_LO)
        part = _choose(v.bits(shifted, "int32"), _EXP_TABLE)

        def value(part: Expr, r: Expr) -> Expr:
            result = part * r * v.poly(r, _EXP_POLY) + part
            return scale(result, n + v.f32(offset) if offset else n)

        return let(part, lambda part: let(r, lambda r: value(part, r)))

    def rounded(x: Expr, shifted: Expr) -> Expr:
        return let(shifted - v.f32(_ROUND_EXP), lambda n: body(x, shifted, n))

    def bounded(x: Expr) -> Expr:
        return let(x * v.f32(_LOG2E) + v.f32(_ROUND_EXP), lambda shifted: rounded(x, shifted))

    def kept(x: Expr) -> Expr:
        zero, is_zero = v.f32(0), x < v.f32(_EXP_MIN)  # what underflows takes Intel's much longer
        return tirx.Select(is_zero, zero, let(tirx.Select(is_zero, zero, x), bounded))

    return let(x, lambda x: let(_least(_EXP_MAX, x, v), kept))


def erf(x: Expr) -> Expr:
    """erf(x): the polynomial in the distance to the nearest eighth, with the sign of x.

    Args:
        x: float32 of whole vectors.
    """
    return _by_vector(x, _erf)


def _erf(x: Expr) -> Expr:
    v = Lanes(x)

    def body(x: Expr, t: Expr, shifted: Expr) -> Expr:
        nearest = v.bits(shifted, "int32")
        r = t - (shifted - v.f32(_ROUND_ERF))
        return v.with_sign_of(let(r, lambda r: _by_interval(r, nearest, _ERF_POLY)), x)

    def bounded(x: Expr, t: Expr) -> Expr:
        return let(t + v.f32(_ROUND_ERF), lambda shifted: body(x, t, shifted))

    return let(x, lambda x: let(_least(_ERF_MAX, v.abs(x), v), lambda t: bounded(x, t)))


def _by_interval(r: Expr, interval: Expr, rows: Sequence[Sequence[float]]) -> Expr:
    """A polynomial whose coefficients depend on the interval."""
    result = _choose(interval, rows[-1])
    for row in rows[-2::-1]:
        result = result * r + _choose(interval, row)
    return result


def _choose(place: Expr, table: Sequence[float]) -> Expr:
    """The entries of a table of 32 at the places that the lowest five bits name."""
    low, high = _table(table[:LANES]), _table(table[LANES:])
    return _intrinsic("llvm.x86.avx512.vpermi2var.ps.512", low, place, high)


def _table(values: Sequence[float]) -> Expr:
    return emit.shuffle([tirx.FloatImm("float32", value) for value in values], range(LANES))


def _intrinsic(name: str, *args: object) -> Expr:
    return op.call_llvm_pure_intrin(f"float32x{LANES}", name, *args)
