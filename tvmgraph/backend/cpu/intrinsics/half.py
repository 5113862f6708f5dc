"""Conversions of float16 for processors that have no instruction for them.

Source: Fabian Giesen's conversions with rounding to the nearest even; what is denormal in float16
is rounded by an addition in float32. LLVM would call a function of its library for every lane.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import op

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes, let
from tvmgraph.backend.loop_ir.types import Expr, scalar_of
from tvmgraph.backend.target import has_feature

#: Bits between the fractions of float16 and float32, and between the biases of their exponents.
_FRACTION, _BIAS = 13, (127 - 15) << 23
#: Bits of float32: 2^-14, the first normal float16; 2^16, beyond all of them; infinity; 1/2, whose
#: last place is that of the denormal float16.
_NORMAL, _BEYOND, _INFINITY, _HALF = 0x38800000, 0x47800000, 0x7F800000, 0x3F000000
#: float16's infinity and one that is not a number.
_INFINITY16, _NAN16 = 0x7C00, 0x7E00


def convert(cast: tirx.Cast) -> Expr:
    """The formula of a conversion from or to float16; a conversion of the processor's as it is.

    Args:
        cast: A conversion, scalar or of a vector.
    """
    source, wanted = map(scalar_of, (cast.value, cast))
    if "float16" not in (source, wanted) or has_feature("neon"):
        return cast
    if (source, wanted) == ("float64", "float16"):
        return convert(Lanes(cast).cast(_to_odd(cast.value), "float16"))
    if has_feature("f16c") or source == wanted:
        return cast
    v = Lanes(cast)
    if wanted == "float16":
        return _narrow(cast.value if source == "float32" else v.cast(cast.value, "float32"))
    wide = _widen(cast.value)
    return wide if wanted == "float32" else v.cast(wide, wanted)


def _widen(x: Expr) -> Expr:
    """float32 of float16: bits moved, the exponent's bias changed."""
    v = Lanes(x)

    def body(bits: Expr, size: Expr) -> Expr:
        normal = size + v.i32(_BIAS)
        special = tirx.Select(
            size >= v.i32(_INFINITY16 << _FRACTION), size + v.i32(2 * _BIAS), normal
        )
        scaled = v.bits(size + v.i32(_NORMAL), "float32") - v.bits(v.i32(_NORMAL), "float32")
        tiny = size < v.i32(1 << 23)
        value = tirx.Select(tiny, v.bits(scaled, "int32"), special)
        sign = op.shift_left(op.bitwise_and(bits, v.i32(0x8000)), v.i32(16))
        return v.bits(op.bitwise_or(value, sign), "float32")

    def sized(bits: Expr) -> Expr:
        size = op.shift_left(op.bitwise_and(bits, v.i32(0x7FFF)), v.i32(_FRACTION))
        return let(size, lambda size: body(bits, size))

    return let(v.cast(v.bits(x, "uint16"), "int32"), sized)


def _narrow(x: Expr) -> Expr:
    """float16 of float32, rounded to the nearest even."""
    v = Lanes(x)

    def body(bits: Expr, size: Expr) -> Expr:
        odd = op.bitwise_and(op.shift_right(size, v.i32(_FRACTION)), v.i32(1))
        rounded = size + odd + v.i32((1 << _FRACTION - 1) - 1 - _BIAS)
        normal = op.shift_right(rounded, v.i32(_FRACTION))
        half = v.i32(_HALF)
        scaled = v.bits(v.bits(size, "float32") + v.bits(half, "float32"), "int32") - half
        above = tirx.Select(size > v.i32(_INFINITY), v.i32(_NAN16), v.i32(_INFINITY16))
        value = tirx.Select(size < v.i32(_NORMAL), scaled, normal)
        value = tirx.Select(size < v.i32(_BEYOND), value, above)
        sign = op.bitwise_and(op.shift_right(bits, v.i32(16)), v.i32(0x8000))
        return v.bits(v.cast(op.bitwise_or(value, sign), "uint16"), "float16")

    def sized(bits: Expr) -> Expr:
        return let(op.bitwise_and(bits, v.i32(0x7FFFFFFF)), lambda size: body(bits, size))

    return let(v.bits(x, "int32"), sized)


def _to_odd(x: Expr) -> Expr:
    """float32 of float64, an inexact one rounded to the neighbour whose last bit is set.

    Rounding that to float16 gives what rounding once gives, because more than two bits follow.
    """
    v = Lanes(x)

    def body(x: Expr, near: Expr, back: Expr) -> Expr:
        size, back_size = (op.bitwise_and(v.bits(y, "int64"), v.i64(2**63 - 1)) for y in (x, back))
        one, zero = v.i32(1), v.i32(0)
        bits = v.bits(near, "int32")
        down = bits - tirx.Select(back_size > size, one, zero)  # towards zero
        changed = tirx.Or(back < x, x < back)  # no NaN
        return v.bits(tirx.Select(changed, op.bitwise_or(down, one), bits), "float32")

    def returned(x: Expr, near: Expr) -> Expr:
        return let(v.cast(near, "float64"), lambda back: body(x, near, back))

    return let(x, lambda x: let(v.cast(x, "float32"), lambda near: returned(x, near)))
