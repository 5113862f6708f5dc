"""Quotients and remainders, elementwise.

Integer division by zero gives 0, eagerly and compiled alike: a processor would trap, and stop the
program, where NumPy warns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import CHEAP
from tvmgraph.errors import ArgumentError, reject
from tvmgraph.ops.common.pointwise import NUMBERS, TirMath, pointwise
from tvmgraph.ops.common.rows import binary_samples, sum_to

__all__ = [
    "div", "divide", "floor_div", "floor_divide", "floor_mod", "floordiv", "fmod", "mod",
    "real_div", "remainder", "tensor_div", "tensor_floordiv", "tensor_mod", "true_divide",
    "trunc_div", "truncate_div", "truncate_mod",
]  # fmt: skip


_divide = pointwise("divide", lambda m, a, b: a / b)


@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    traits=CHEAP,
    promote="scaled_float",
    eager=np.divide,
    # relax's refuses a constant 0
    lower=lambda R, a, b: R.unfolded(_divide, a, b),
    vjp=lambda g, y, a, b: (sum_to(g / b, a), sum_to(-g * y / b, b)),
    onnx="Div",
    samples=[
        *binary_samples(low=0.5, high=2.0),
        sample((5,), (5,), dtype="int64", low=1, high=9),
        sample((5,), (5,), dtype=("bool", "bfloat16"), low=1, high=9, grad=False),
        sample(
            np.array([1, -1, 0, np.inf, np.nan], np.float32),
            np.array([0, 0, 0, np.inf, 1], np.float32), grad=False,
        ),
    ],
)  # fmt: skip
def real_div(input: Tensor, other: Tensor) -> Tensor:
    r"""Divides elementwise: :math:`out_i = input_i / other_i`.

    Args:
        input: Tensor or number.
        other: Tensor or number, the divisor; the shapes broadcast, and two integers are divided in
            float32.
    """
    ...


def _whole_floor(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.logical_and(a, b) if a.dtype.kind == "b" else np.floor_divide(a, b)


def _whole_trunc(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    q = _whole_floor(a, b)
    if a.dtype.kind != "i":
        return q
    inexact = (q * b != a) & (b != 0) & ((a < 0) ^ (b < 0))
    return q + inexact.astype(a.dtype)


def _floor_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind in "biu":
        return _whole_floor(a, b)
    if a.dtype.itemsize > 2:
        return np.floor_divide(a, b)
    return np.floor_divide(a, b, dtype=np.float32).astype(a.dtype)


def _trunc_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind in "biu":
        return _whole_trunc(a, b)
    wide = np.float32 if a.dtype.itemsize == 2 else a.dtype
    return np.trunc(np.divide(a, b, dtype=wide)).astype(a.dtype)


def _safe_divisor(m: TirMath, b: Expr) -> tuple[object, object]:
    """A divisor that never traps (0 does, and so does the least integer by -1); is it -1?"""
    if not m.dtype.startswith("int"):
        return m.where(b == 0, 1, b), None
    minus = b == -1
    return m.where((b == 0) | minus, 1, b), minus


def _divide_whole(m: TirMath, a: Expr, b: Expr, floor: bool) -> Expr:
    safe, minus = _safe_divisor(m, b)
    q = _quotient_of_safe(m, a, safe, floor)
    if minus is not None:
        q = m.where(minus, m.const(0) - a, q)
    return m.where(b == 0, 0, q)


def _quotient_of_safe(m: TirMath, a: Expr, b: object, floor: bool) -> Expr:
    """A quotient of integers, of less than 8 bytes by a float64 reciprocal.

    No processor has vectors of integer division. Half a unit of the numerator keeps exact quotients
    at a distance of 1 / (2 b) from the integers, which is more than all rounding: a < 2^51.
    """
    if m.dtype.endswith("64"):
        return (m.tir.floordiv if floor else m.tir.truncdiv)(a, b)
    one, half = (m.tir.const(value, "float64") for value in (1, 0.5))
    wide, reciprocal = m.tir.Cast("float64", a), one / m.tir.Cast("float64", b)

    def quotient(wide: Expr, reciprocal: Expr) -> Expr:
        if floor:
            q = m.floor(wide * reciprocal + half * m.tir.abs(reciprocal))
        else:
            magnitude = m.tir.abs(reciprocal)
            q = m.let(wide * reciprocal, lambda q: _toward_zero(m, q, half * magnitude))
        return m.tir.Cast(m.dtype, q)

    return m.let(wide, lambda wide: m.let(reciprocal, lambda r: quotient(wide, r)))


def _toward_zero(m: TirMath, q: Expr, margin: Expr) -> Expr:
    return m.trunc(m.tir.Select(q < m.tir.const(0, "float64"), q - margin, q + margin))


def _is_whole(m: TirMath) -> bool:
    return not m.dtype.startswith("float")


def _floor_divide(m: TirMath, a: Expr, b: Expr) -> Expr:
    if _is_whole(m):
        return _divide_whole(m, a, b, floor=True)
    return m.let(a / b, lambda x: _floor_of_float(m, a, b, x))


def _floor_of_float(m: TirMath, a: Expr, b: Expr, x: Expr) -> Expr:
    """NumPy's quotient: that of the exact one, though a / b may round up to the next integer."""
    if m.dtype == "float32":
        q = m.tir.Cast("float32", m.floor(m.tir.Cast("float64", a) / m.tir.Cast("float64", b)))
    else:
        q = m.let(m.floor(x), lambda q: m.where(_is_above(m, q, a, b), q - 1, q))
    # a / b may also be -0 where the quotient is between -1 and 0
    q = m.where((x == 0) & (a != 0) & (m.bits(x) < m.tir.const(0, m.bits(x).ty.dtype)), -1, q)
    return m.where(m.isinf(a) & (b != 0), math.nan, q)


def _is_above(m: TirMath, q: Expr, a: Expr, b: Expr) -> Expr:
    """Whether q b exceeds a in the direction of b; the remainder is rounded once."""
    r = m.library("fma", -q, b, a)
    return (r != 0) & ((r < 0) ^ (b < 0)) & (m.tir.abs(q) < m.const(2.0**53))


def _trunc_divide(m: TirMath, a: Expr, b: Expr) -> Expr:
    if _is_whole(m):
        return _divide_whole(m, a, b, floor=False)
    return m.trunc(a / b)


def _onnx_floor_whole(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
    """ONNX divides integers towards zero."""
    d = a.type.dtype
    zero = O.const(0, d)
    q = O.Div(a, b)
    r = O.Sub(a, O.Mul(q, b))
    below = O.And(O.Not(O.Equal(r, zero)), O.Xor(O.Less(r, zero), O.Less(b, zero)))
    return O.Sub(q, O.Cast(below, to=O.dtype(d)))


def _onnx_floor_divide(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
    d = a.type.dtype
    if d is dtypes.bool_:
        return O.And(a, b)
    return _onnx_rounded(O, O.Floor, a, b) if d.is_float else _onnx_floor_whole(O, a, b)


def _onnx_trunc_divide(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
    d = a.type.dtype
    if d is dtypes.bool_:
        return O.And(a, b)
    if not d.is_float:
        return O.Div(a, b)
    return _onnx_rounded(O, lambda q: O.Mul(O.Sign(q), O.Floor(O.Abs(q))), a, b)


def _onnx_rounded(
    O: OnnxOps, rounding: Callable[[OnnxNamed], OnnxNamed], a: OnnxNamed, b: OnnxNamed
) -> OnnxNamed:
    """A rounded quotient; that of half precision is not rounded to half precision before."""
    d = a.type.dtype
    if d.itemsize > 2:
        return rounding(O.Div(a, b))
    wide = [O.Cast(x, to=O.dtype(dtypes.float32)) for x in (a, b)]
    return O.Cast(rounding(O.Div(*wide)), to=O.dtype(d))


_SIGNS = (
    np.array([7, -7, 7, -7, 6, -6, 0, 5, -128], np.int8),
    np.array([2, 2, -2, -2, 3, -3, 4, -1, -1], np.int8),
)
_FLOATS = tuple(x.astype(np.float32) for x in _SIGNS)


def _division_samples(grad: bool = True) -> list[Sample]:
    """Signs, odd dtypes and extreme quotients of a rounding division or a remainder."""
    return [
        *[replace(s, grad=grad and s.grad) for s in binary_samples(low=0.3, high=2.0)],
        sample(*_SIGNS),
        sample(*_FLOATS, grad=False),
        sample((5,), (5,), dtype="uint8", low=1, high=20),
        sample((6,), (6,), dtype="float16", low=0.3, high=9, grad=False),
        sample((6,), (6,), dtype="bfloat16", low=0.3, high=9, grad=False),
        sample((6,), (6,), dtype=("int64", "float64"), low=1, high=9, grad=False),
    ]


@primitive(
    infer=rules.elementwise(dtypes.ALL),
    promote="common",
    eager=_floor_quotient,
    lower=pointwise("floor_divide", _floor_divide),
    vjp=rules.flat,
    onnx=_onnx_floor_divide,
    samples=[*_division_samples(grad=False), sample((4,), (4,), dtype="bool")],
)
def floor_divide(input: Tensor, other: Tensor) -> Tensor:
    r"""Divides and rounds down, elementwise: :math:`out_i = \lfloor input_i / other_i \rfloor`.

    Args:
        input: Tensor or number.
        other: Tensor or number, the divisor; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; an integer divided by 0 gives 0.

    Example:
        >>> ops.floor_divide(Tensor([7, -7]), 2)
        Tensor(shape=[2], dtype=Int64, value= [ 3, -4])
    """
    ...


floordiv = tensor_floordiv = floor_divide


def floor_div(x: object, y: object) -> Tensor:
    r"""Divides and rounds down, as :func:`floor_divide` does: :math:`\lfloor x_i / y_i \rfloor`.

    Args:
        x: Tensor or number.
        y: Tensor or number; the two shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; an integer divided by 0 gives 0.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.floor_div(Tensor([7, -7]), 2)
        Tensor(shape=[2], dtype=Int64, value= [ 3, -4])
    """
    return floor_divide(x, y)


@primitive(
    infer=rules.elementwise(dtypes.ALL),
    promote="common",
    eager=_trunc_quotient,
    lower=pointwise("trunc_divide", _trunc_divide),
    vjp=rules.flat,
    onnx=_onnx_trunc_divide,
    samples=[*_division_samples(grad=False), sample((4,), (4,), dtype="bool")],
)
def trunc_div(x: Tensor, y: Tensor) -> Tensor:
    r"""Divides and rounds towards zero, elementwise: :math:`out_i = trunc(x_i / y_i)`.

    Args:
        x: Tensor or number.
        y: Tensor or number, the divisor; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; an integer divided by 0 gives 0.

    Example:
        >>> ops.truncate_div(Tensor([7, -7]), Tensor([2, 2]))
        Tensor(shape=[2], dtype=Int64, value= [ 3, -3])
    """
    ...


truncate_div = trunc_div


def _floor_mod(m: TirMath, a: Expr, b: Expr) -> Expr:
    """The remainder with the divisor's sign."""
    if _is_whole(m):
        safe, _ = _safe_divisor(m, b)
        return m.where(b == 0, 0, a - _quotient_of_safe(m, a, safe, floor=True) * safe)
    r = m.fmod(a, b)
    moved = m.where((r < 0) ^ (b < 0), r + b, r)
    return m.where(r == 0, m.copysign(m.const(0), b), moved)


def _fmod(m: TirMath, a: Expr, b: Expr) -> Expr:
    """The remainder with the dividend's sign."""
    if _is_whole(m):
        safe, _ = _safe_divisor(m, b)
        return m.where(b == 0, 0, a - _quotient_of_safe(m, a, safe, floor=False) * safe)
    return m.fmod(a, b)


def _onnx_floor_mod(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
    if not a.type.dtype.is_float:
        return O.Mod(a, b)
    zero = O.const(0, a.type.dtype)
    r = O.Mod(a, b, fmod=1)
    wrong = O.And(O.Not(O.Equal(r, zero)), O.Xor(O.Less(r, zero), O.Less(b, zero)))
    return O.Where(wrong, O.Add(r, b), r)


_REMAINDER_SAMPLES = [
    *_division_samples(),
    sample(
        np.array([1, -1, np.inf, np.nan, 5, -5], np.float32),
        np.array([0, np.inf, 2, 1, -3, 3], np.float32), grad=False,
    ),
]  # fmt: skip


@primitive(
    infer=rules.elementwise(NUMBERS),
    promote="no_bool",
    eager=np.remainder,
    lower=pointwise("floor_mod", _floor_mod),
    vjp=lambda g, y, a, b: (sum_to(g, a), sum_to(-g * F.floor_divide(a, b), b)),
    onnx=_onnx_floor_mod,
    samples=_REMAINDER_SAMPLES,
)
def floor_mod(x: Tensor, y: Tensor) -> Tensor:
    r"""Remainder of floor division: :math:`out_i = x_i - \lfloor x_i / y_i \rfloor \cdot y_i`.

    Args:
        x: Tensor or number.
        y: Tensor or number, the divisor; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype, with the sign of ``y``; an integer
        divided by 0 leaves 0.

    Example:
        >>> ops.floor_mod(Tensor([7, -7]), 3)
        Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """
    ...


tensor_mod = floor_mod


@primitive(
    infer=rules.elementwise(NUMBERS),
    promote="scaled_no_bool",
    eager=np.fmod,
    lower=pointwise("fmod", _fmod),
    vjp=lambda g, y, a, b: (sum_to(g, a), sum_to(-g * F.trunc_div(a, b), b)),
    onnx=lambda O, a, b: O.Mod(a, b, fmod=1),
    samples=_REMAINDER_SAMPLES,
)
def fmod(input: Tensor, other: Tensor) -> Tensor:
    r"""Remainder of truncated division: :math:`out_i = input_i - trunc(input_i/other_i) other_i`.

    Args:
        input: Tensor or number.
        other: Tensor or number, the divisor; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype, with the sign of ``input``; an integer
        divided by 0 leaves 0.

    Example:
        >>> ops.fmod(Tensor([7, -7]), 3)
        Tensor(shape=[2], dtype=Int64, value= [ 1, -1])
    """
    ...


mod = fmod


def truncate_mod(x: object, y: object) -> Tensor:
    r"""Remainder of truncated division; the same as :func:`fmod`.

    Args:
        x: Tensor or number.
        y: Tensor or number; the two shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype, with the sign of ``x``.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.truncate_mod(Tensor([7, -7]), 3)
        Tensor(shape=[2], dtype=Int64, value= [ 1, -1])
    """
    return fmod(x, y)


def remainder(input: object, other: object) -> Tensor:
    r"""Remainder of floor division: :math:`input_i - \lfloor input_i / other_i \rfloor other_i`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the two shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype, with the sign of ``other``.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.remainder(Tensor([-4.0, 5.0]), 3)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  2.00000000e+00])
    """
    return F.floor_mod(input, other)


def div(input: object, other: object, *, rounding_mode: str | None = None) -> Tensor:
    r"""Divides elementwise: :math:`out_i = input_i / other_i`, rounded on request.

    Args:
        input: Tensor or number.
        other: Tensor or number; the two shapes broadcast and the dtypes are promoted.
        rounding_mode: ``None`` for the quotient, ``"floor"`` to round it down, ``"trunc"`` to
            round it towards zero.

    Returns:
        Tensor of the broadcast shape; integers give float32, but stay integers if
        they are rounded.

    Raises:
        ShapeError: if the shapes do not broadcast.
        ArgumentError: if ``rounding_mode`` is none of the three.

    Example:
        >>> ops.div(Tensor([7.0, -7.0]), 2, rounding_mode="floor")
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00, -4.00000000e+00])
    """
    if rounding_mode is None:
        return real_div(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        whole = all(
            v.dtype.is_integer if isinstance(v, Tensor) else isinstance(v, int)
            for v in (input, other)
        )
        return truncate_div(input, other) if whole else F.trunc(real_div(input, other))
    reject(ArgumentError, "ops.div",
           f"rounding_mode must be None, 'floor' or 'trunc', not {rounding_mode!r}",
           f"rounding_mode={rounding_mode!r}", "use one of the three")  # fmt: skip


divide = div


def tensor_div(x: object, y: object) -> Tensor:
    r"""Divides elementwise: :math:`out_i = x_i / y_i`.

    Args:
        x: Tensor or number; integers are computed in float32.
        y: Tensor or number; the two shapes broadcast and the dtypes are promoted.

    Returns:
        Floating-point tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.tensor_div(Tensor([1.0, 2.0]), 4)
        Tensor(shape=[2], dtype=Float32, value= [ 2.50000000e-01,  5.00000000e-01])
    """
    return real_div(x, y)


def true_divide(dividend: object, divisor: object) -> Tensor:
    r"""Divides elementwise: :math:`out_i = dividend_i / divisor_i`.

    Args:
        dividend: Tensor or number; integers are computed in float32.
        divisor: Tensor or number; the two shapes broadcast and the dtypes are promoted.

    Returns:
        Floating-point tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.true_divide(Tensor([1, 2]), 4)
        Tensor(shape=[2], dtype=Float32, value= [ 2.50000000e-01,  5.00000000e-01])
    """
    return real_div(dividend, divisor)
