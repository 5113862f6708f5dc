"""Logical and bitwise operators, and what ``&``, ``|``, ``^`` and ``~`` mean on tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Array
from tvmgraph.core.columns import Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import Column, Reason, sample
from tvmgraph.core.primitive import RowDecorator, primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import CHEAP
from tvmgraph.dtypes import DType
from tvmgraph.errors import DTypeError
from tvmgraph.ops.common.pointwise import TirMath, pointwise
from tvmgraph.ops.common.rows import ShapeError

__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "invert", "logical_and", "logical_not", "logical_or", "logical_xor",
    "operator_and", "operator_or", "operator_xor",
]  # fmt: skip

_NO_GRADIENT = Reason("bool and integer results have no derivative")
_BITS = (dtypes.bool_, *dtypes.INTEGERS)


def _logical(eager: Callable[..., Array], lower: Column, op_type: str) -> RowDecorator:
    """Adds the row of a logical operator; every dtype is read as "is not zero".

    It is computed on bytes: TVM mixes up bits and bytes when one bool operand is broadcast.
    """
    return primitive(
        infer=rules.elementwise((dtypes.bool_,)),
        traits=CHEAP,
        promote="bool",
        eager=eager,
        lower=lower,
        vjp=_NO_GRADIENT,
        onnx=op_type,
        samples=[
            sample((3, 4), (3, 4), dtype="bool"),
            sample((4, 1, 3), (5, 1), dtype="bool"),
            sample((), (3,), dtype="bool"),
            sample((0, 3), (1, 3), dtype="bool"),
            sample((9,), (9,), dtype=("int32", "float32"), low=-1, high=1),
            sample((2, 3), (2, 4), dtype="bool", raises=ShapeError),
        ],
    )


@_logical(np.logical_and, pointwise("logical_and", lambda m, a, b: a & b), "And")
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    r"""Logical and, elementwise: :math:`out_i = input_i \wedge other_i`.

    Args:
        input: Tensor or bool; numbers count as true unless they are 0.
        other: Tensor or bool; the two shapes broadcast.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.logical_and(Tensor([True, True]), Tensor([True, False]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    ...


@_logical(np.logical_or, pointwise("logical_or", lambda m, a, b: a | b), "Or")
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    r"""Logical or, elementwise: :math:`out_i = input_i \vee other_i`.

    Args:
        input: Tensor or bool; numbers count as true unless they are 0.
        other: Tensor or bool; the two shapes broadcast.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.logical_or(Tensor([True, False]), Tensor([False, False]))
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    ...


@_logical(np.logical_xor, pointwise("logical_xor", lambda m, a, b: a ^ b), "Xor")
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    r"""Exclusive or, elementwise: :math:`out_i = input_i \oplus other_i`.

    Args:
        input: Tensor or bool; numbers count as true unless they are 0.
        other: Tensor or bool; the two shapes broadcast.

    Returns:
        bool tensor of the broadcast shape.

    Example:
        >>> ops.logical_xor(Tensor([True, False]), Tensor([True, True]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    ...


@primitive(
    infer=rules.elementwise((dtypes.bool_,)),
    traits=CHEAP,
    promote="bool",
    eager=np.logical_not,
    lower=pointwise("logical_not", lambda m, x: x ^ 1),
    vjp=_NO_GRADIENT,
    onnx="Not",
    samples=[
        sample((3, 4), dtype="bool"),
        sample((), dtype="bool"),
        sample((0, 2), dtype="bool"),
        sample((9,), dtype="float32", low=-1, high=1),
        sample((9,), dtype="int64", low=-1, high=1),
    ],
)
def logical_not(input: Tensor) -> Tensor:
    r"""Logical not, elementwise: :math:`out_i = \neg input_i`.

    Args:
        input: Tensor or bool; numbers count as true unless they are 0.

    Returns:
        bool tensor of ``input``'s shape.

    Example:
        >>> ops.logical_not(Tensor([True, False]))
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    ...


def _onnx_bits(name: str, of_bool: str) -> Callable[..., OnnxNamed]:
    def onnx(O: OnnxOps, *xs: OnnxNamed) -> OnnxNamed:
        return O.add(of_bool if xs[0].type.dtype is dtypes.bool_ else name, xs, 1, {})

    return onnx


def _bitwise(eager: Callable[..., Array], lower: Column, onnx: Column) -> RowDecorator:
    """Adds the row of a bitwise operator; on bool it is the logical one."""
    return primitive(
        infer=rules.elementwise(_BITS),
        promote="common",
        eager=eager,
        lower=lower,
        vjp=_NO_GRADIENT,
        onnx=onnx,
        samples=[
            sample((3, 4), (3, 4), dtype="int32", low=-99, high=99),
            sample((4, 1, 3), (5, 1), dtype="uint8", low=0, high=200),
            sample((), (3,), dtype="int64", low=-9, high=9),
            sample((0, 3), (1, 3), dtype="int16", low=0, high=9),
            sample((9,), (9,), dtype=("bool", "int32"), low=-9, high=9),
            sample((9,), (9,), dtype="bool"),
            sample((2, 3), (2, 4), dtype="int32", raises=ShapeError),
            sample((2,), (2,), raises=DTypeError),
        ],
    )


@_bitwise(
    np.bitwise_and, pointwise("bitwise_and", lambda m, a, b: a & b), _onnx_bits("BitwiseAnd", "And")
)
def bitwise_and(input: Tensor, other: Tensor) -> Tensor:
    r"""Bitwise and, elementwise: :math:`out_i = input_i \wedge other_i`.

    Args:
        input: Integer or bool tensor, or a number.
        other: Integer or bool tensor, or a number; shapes broadcast, dtypes are promoted.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: if a tensor is floating-point.

    Example:
        >>> ops.bitwise_and(Tensor([6, 7]), Tensor([3, 8]))
        Tensor(shape=[2], dtype=Int64, value= [2, 0])
    """
    ...


@_bitwise(
    np.bitwise_or, pointwise("bitwise_or", lambda m, a, b: a | b), _onnx_bits("BitwiseOr", "Or")
)
def bitwise_or(input: Tensor, other: Tensor) -> Tensor:
    r"""Bitwise or, elementwise: :math:`out_i = input_i \vee other_i`.

    Args:
        input: Integer or bool tensor, or a number.
        other: Integer or bool tensor, or a number; shapes broadcast, dtypes are promoted.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: if a tensor is floating-point.

    Example:
        >>> ops.bitwise_or(Tensor([6, 7]), Tensor([3, 8]))
        Tensor(shape=[2], dtype=Int64, value= [ 7, 15])
    """
    ...


@_bitwise(
    np.bitwise_xor, pointwise("bitwise_xor", lambda m, a, b: a ^ b), _onnx_bits("BitwiseXor", "Xor")
)
def bitwise_xor(input: Tensor, other: Tensor) -> Tensor:
    r"""Bitwise exclusive or, elementwise: :math:`out_i = input_i \oplus other_i`.

    Args:
        input: Integer or bool tensor, or a number.
        other: Integer or bool tensor, or a number; shapes broadcast, dtypes are promoted.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: if a tensor is floating-point.

    Example:
        >>> ops.bitwise_xor(Tensor([6, 7]), Tensor([3, 8]))
        Tensor(shape=[2], dtype=Int64, value= [ 5, 15])
    """
    ...


@primitive(
    infer=rules.elementwise(_BITS),
    eager=np.invert,
    lower="bitwise_not",
    vjp=_NO_GRADIENT,
    onnx=_onnx_bits("BitwiseNot", "Not"),
    samples=[
        sample((3, 4), dtype="int32", low=-99, high=99),
        sample((), dtype="int64", low=-9, high=9),
        sample((0, 2), dtype="int16", low=-9, high=9),
        sample((7,), dtype="uint8", low=0, high=255),
        sample((7,), dtype="bool"),
        sample((2,), raises=DTypeError),
    ],
)
def bitwise_not(input: Tensor) -> Tensor:
    r"""Flips every bit: :math:`out_i = \neg input_i`; on bool the logical not.

    Args:
        input: Integer or bool tensor of any shape.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Raises:
        DTypeError: if ``input`` is floating-point.

    Example:
        >>> ops.bitwise_not(Tensor([0, 5]))
        Tensor(shape=[2], dtype=Int64, value= [-1, -6])
    """
    ...


def invert(x: Tensor) -> Tensor:
    r"""Flips every bit; the same as :func:`bitwise_not`: :math:`out_i = \neg x_i`.

    Args:
        x: Integer or bool tensor of any shape.

    Returns:
        Tensor of ``x``'s shape and dtype.

    Raises:
        DTypeError: if ``x`` is floating-point.

    Example:
        >>> ops.invert(Tensor([25, 4]))
        Tensor(shape=[2], dtype=Int64, value= [-26,  -5])
    """
    return bitwise_not(x)


operator_and, operator_or, operator_xor = bitwise_and, bitwise_or, bitwise_xor


def _bit_count(m: TirMath) -> int:
    return int("".join(c for c in m.dtype if c.isdigit()))


def _in_range(m: TirMath, count: Expr) -> tuple[Expr, Expr]:
    """Whether a shift is below the width, and a count that is safe to shift by."""
    bits = _bit_count(m)
    good = (count >= 0) & (count < bits)
    return good, m.tir.bitwise_and(count, m.const(bits - 1))


def _left_shift(m: TirMath, x: Expr, count: Expr) -> Expr:
    good, safe = _in_range(m, count)
    return m.where(good, m.tir.shift_left(x, safe), 0)


def _right_shift(m: TirMath, x: Expr, count: Expr) -> Expr:
    good, safe = _in_range(m, count)
    gone = 0 if m.dtype.startswith("uint") else m.where(x < 0, -1, m.const(0))
    return m.where(good, m.tir.shift_right(x, safe), gone)


def _shift(eager: Callable[..., Array], lower: Column, onnx: Column) -> RowDecorator:
    """Adds the row of a shift; counts outside [0, bits) shift everything out."""
    far = np.array([1, -7, 5, 3], np.int32), np.array([31, 40, -1, 32], np.int32)
    return primitive(
        infer=rules.elementwise(dtypes.INTEGERS),
        promote="common",
        eager=eager,
        lower=lower,
        vjp=_NO_GRADIENT,
        onnx=onnx,
        samples=[
            sample((3, 4), (3, 4), dtype="int32", low=0, high=9),
            sample((4, 1, 3), (5, 1), dtype="uint8", low=0, high=7),
            sample((), (3,), dtype="int64", low=0, high=9),
            sample((0, 3), (1, 3), dtype="int16", low=0, high=9),
            sample(*far),
            sample((2, 3), (2, 4), dtype="int32", raises=ShapeError),
            sample((2,), (2,), raises=DTypeError),
        ],
    )


def _onnx_left(O: OnnxOps, x: OnnxNamed, count: OnnxNamed) -> OnnxNamed:
    """Signed integers are multiplied: ONNX shifts unsigned ones only."""
    kind = x.type.dtype
    if kind.kind == "u":
        shifted = O.BitShift(x, count, direction="LEFT")
    else:
        wide = O.Mul(O.Cast(x, to=O.dtype(dtypes.int64)), _onnx_power(O, count))
        shifted = O.Cast(wide, to=O.dtype(kind))
    return O.Where(_onnx_in_range(O, count, kind), shifted, O.const(0, kind))


def _onnx_right(O: OnnxOps, x: OnnxNamed, count: OnnxNamed) -> OnnxNamed:
    """Signed integers are divided; -1 - x of a negative one is not negative and rounds down."""
    kind = x.type.dtype
    good = _onnx_in_range(O, count, kind)
    if kind.kind == "u":
        return O.Where(good, O.BitShift(x, count, direction="RIGHT"), O.const(0, kind))
    wide, minus = O.Cast(x, to=O.dtype(dtypes.int64)), O.const(np.int64(-1))
    negative = O.Less(wide, O.const(np.int64(0)))
    size = O.Div(O.Where(negative, O.Sub(minus, wide), wide), _onnx_power(O, count))
    shifted = O.Where(negative, O.Sub(minus, size), size)
    gone = O.Where(negative, minus, O.const(np.int64(0)))
    return O.Cast(O.Where(good, shifted, gone), to=O.dtype(kind))


def _onnx_in_range(O: OnnxOps, count: OnnxNamed, kind: DType) -> OnnxNamed:
    """Counts below the width; an int64 shifted right by 63 is what shifting it out gives."""
    bits = 8 * kind.itemsize - (kind is dtypes.int64)
    wide = O.Cast(count, to=O.dtype(dtypes.int64))
    not_negative = O.GreaterOrEqual(wide, O.const(np.int64(0)))
    return O.And(O.Less(wide, O.const(np.int64(bits))), not_negative)


def _onnx_power(O: OnnxOps, count: OnnxNamed) -> OnnxNamed:
    """2 to the power of a count as int64; for counts out of range some other number but 0."""
    safe = O.Where(_onnx_in_range(O, count, dtypes.int64), count, O.const(0, count.type.dtype))
    safe = O.Cast(safe, to=O.dtype(dtypes.uint64))
    power = O.BitShift(O.const(np.uint64(1)), safe, direction="LEFT")
    return O.Cast(power, to=O.dtype(dtypes.int64))


@_shift(np.left_shift, pointwise("left_shift", _left_shift), _onnx_left)
def bitwise_left_shift(input: Tensor, other: Tensor) -> Tensor:
    r"""Shifts bits to the left: :math:`out_i = input_i \cdot 2^{other_i}`.

    Args:
        input: Integer tensor or number.
        other: Integer tensor or number; shapes broadcast, dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; counts outside the width give 0.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: if a tensor is floating-point.

    Example:
        >>> ops.bitwise_left_shift(Tensor([1, 3]), 2)
        Tensor(shape=[2], dtype=Int64, value= [ 4, 12])
    """
    ...


@_shift(np.right_shift, pointwise("right_shift", _right_shift), _onnx_right)
def bitwise_right_shift(input: Tensor, other: Tensor) -> Tensor:
    r"""Shifts bits to the right: :math:`out_i = \lfloor input_i / 2^{other_i} \rfloor`.

    Args:
        input: Integer tensor or number.
        other: Integer tensor or number; shapes broadcast, dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; counts outside the width leave the sign.

    Raises:
        ShapeError: if the shapes do not broadcast.
        DTypeError: if a tensor is floating-point.

    Example:
        >>> ops.bitwise_right_shift(Tensor([8, -8]), 2)
        Tensor(shape=[2], dtype=Int64, value= [ 2, -2])
    """
    ...
