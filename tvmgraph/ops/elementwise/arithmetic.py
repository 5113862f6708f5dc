"""Sums, differences and products, elementwise, and what passes values through."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import DTypeLike, is_sequence
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.conversion import converted, integer_bounds, largest_within
from tvmgraph.core.op import OPS, F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import CHEAP, ELEMENTWISE, Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, reject
from tvmgraph.ops.common.arguments import named, require_tensor
from tvmgraph.ops.common.pointwise import (
    NUMBERS,
    Formula,
    TirMath,
    number_samples,
    pointwise,
    unary,
)
from tvmgraph.ops.common.rows import binary_samples, sum_to, unary_samples

# ---- the ``lower`` column of casts ---------------------------------------------------------------


def lower_cast(R: Builder, x: Expr, *, dtype: dtypes.DType) -> Expr:
    """Emits the conversion of :func:`tvmgraph.core.conversion.converted`.

    Args:
        R: The builder.
        x: A tensor.
        dtype: dtype of the result.
    """
    if R.type(x).dtype.is_float and dtype.is_integer:
        return _LOWER_SATURATED[dtype](R, x)
    return R.cast(x, dtype.name)


def _saturated(m: TirMath, x: Expr, dtype: dtypes.DType) -> Expr:
    """The integer nearest to a float that lost its fraction; see :mod:`.core.conversion`."""
    low, end = integer_bounds(dtype.numpy)
    largest = largest_within(m.dtype, dtype.name)
    inside = m.max(m.min(m.where(m.isnan(x), 0, x), m.const(largest)), m.const(low))
    y = m.tir.Cast(dtype.name, inside)
    if largest == end - 1:
        return y
    return m.tir.Select(x >= m.const(end), m.tir.const(end - 1, dtype.name), y)


_LOWER_SATURATED = {
    dtype: pointwise("cast", functools.partial(_saturated, dtype=dtype), out=dtype.name)
    for dtype in dtypes.INTEGERS
}


__all__ = [
    "abs", "absolute", "accumulate_n", "add", "addn", "cast", "depend", "identity", "mul",
    "multiply", "neg", "negative", "positive", "sgn", "sign", "stop_gradient", "sub", "subtract",
    "tensor_add", "tensor_mul", "tensor_muls", "tensor_sub",
]  # fmt: skip


def _infer_cast(x: TensorType, *, dtype: dtypes.DType) -> TensorType:
    return x.with_dtype(dtypes.dtype_of(dtype))


def _as_it_is(x: np.ndarray) -> np.ndarray:
    return x


def _vjp_cast(g: Tensor, y: Tensor, x: Tensor, *, dtype: dtypes.DType) -> tuple[Tensor | None]:
    # integers have a gradient when an integer argument is differentiated by
    return (F.cast(g, x.dtype) if x.dtype.kind in "fciu" else None,)


def _onnx_cast(O: OnnxOps, x: OnnxNamed, *, dtype: dtypes.DType) -> OnnxNamed:
    return O.Cast(x, to=O.dtype(dtype))


@primitive(
    infer=_infer_cast,
    promote="each",
    traits=CHEAP,
    eager=converted,
    lower=lower_cast,
    vjp=_vjp_cast,
    onnx=_onnx_cast,
    samples=[
        sample((3, 4), attrs={"dtype": dtypes.float64}),
        sample((3,), attrs={"dtype": dtypes.int32}),
        sample((2, 2), attrs={"dtype": dtypes.bool_}),
        sample((), attrs={"dtype": dtypes.float16}, grad=False),
        sample((0, 2), attrs={"dtype": dtypes.bfloat16}, grad=False),
        sample((5,), dtype="int64", attrs={"dtype": dtypes.float32}),
        sample((5,), dtype="bool", attrs={"dtype": dtypes.int32}),
        sample((5,), dtype="bfloat16", attrs={"dtype": dtypes.float32}, grad=False),
        sample((9,), dtype="int32", low=-300, high=300, attrs={"dtype": dtypes.uint8}),
    ],
)
@named("cast")
def _cast(input: Tensor, dtype: dtypes.DType) -> Tensor:
    r"""Converts every element to ``dtype``.

    Args:
        input: Tensor of any shape.
        dtype: The new dtype.

    Returns:
        Tensor of ``input``'s shape.
    """
    ...


def cast(input: Tensor, dtype: DTypeLike) -> Tensor:
    r"""Converts every element to ``dtype``.

    Floats lose their fraction when they become integers; those that do not fit become the least
    or the largest value of the integer, and NaN becomes 0. Of integers that are too wide the low
    bits remain. Everything but 0 is true.

    Args:
        input: Tensor of any shape, or a number.
        dtype: The new dtype, or its name.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        DTypeError: if ``dtype`` names no dtype.

    Example:
        >>> ops.cast(Tensor([1.7]), ms.int32)
        Tensor(shape=[1], dtype=Int32, value= [1])
    """
    dtype = dtypes.dtype_of(dtype)
    # numbers are cast, too
    if isinstance(input, Tensor) and input.aval.dtype is dtype:  # pyright: ignore[reportUnnecessaryIsInstance]
        return input.snapshot()  # no copy and no node, but assigning to the result leaves input
    return _cast(input, dtype)


def _lower_arithmetic(name: str, of_bool: Formula) -> Callable[..., Expr]:
    """A relax operator, or a formula for bool, on which TIR has no arithmetic."""
    bools = pointwise(name, of_bool)

    def lower(R: Builder, a: Expr, b: Expr) -> Expr:
        if R.type(a).dtype is dtypes.bool_:
            return bools(R, a, b)
        return R.unfolded(lambda R, a, b: getattr(R.op, name)(a, b), a, b)

    return lower


def _onnx_arithmetic(op_type: str, of_bool: str) -> Callable[..., OnnxNamed]:
    def onnx(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
        return O.add(of_bool if a.type.dtype is dtypes.bool_ else op_type, [a, b], 1, {})

    return onnx


_ARITHMETIC_SAMPLES = [
    *binary_samples(),
    sample((2, 3), (3,), dtype="int32", low=-9, high=9),
    sample((4,), (4,), dtype=("int8", "uint8"), low=0, high=99),
    sample((4,), (4,), dtype=("int64", "float16"), grad=False),
    sample((4,), (4,), dtype="bfloat16", grad=False),
    sample((4,), (4,), dtype="bool"),
]


@primitive(
    infer=rules.elementwise(dtypes.ALL),
    traits=replace(CHEAP, linear=True),
    promote="common",
    eager=np.add,
    lower=_lower_arithmetic("add", lambda m, a, b: a + b),
    vjp=lambda g, y, a, b: (sum_to(g, a), sum_to(g, b)),
    onnx=_onnx_arithmetic("Add", "Or"),
    samples=_ARITHMETIC_SAMPLES,
)
def add(input: Tensor, other: Tensor) -> Tensor:
    r"""Adds elementwise: :math:`out_i = input_i + other_i`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Example:
        >>> ops.add(Tensor([1.0, 2.0]), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  3.00000000e+00])
    """
    ...


@primitive(
    infer=rules.elementwise(NUMBERS),
    traits=replace(CHEAP, linear=True),
    promote="no_bool",
    eager=np.subtract,
    lower=lambda R, a, b: R.unfolded(lambda R, a, b: R.op.subtract(a, b), a, b),
    vjp=lambda g, y, a, b: (sum_to(g, a), sum_to(-g, b)),
    onnx="Sub",
    samples=_ARITHMETIC_SAMPLES[:-1],  # bools are those of another row
)
def sub(input: Tensor, other: Tensor) -> Tensor:
    r"""Subtracts elementwise: :math:`out_i = input_i - other_i`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; of two bools whether they differ.

    Example:
        >>> ops.sub(Tensor([1.0, 2.0]), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  1.00000000e+00])
    """
    ...


@primitive(
    infer=rules.elementwise(dtypes.ALL),
    traits=CHEAP,
    promote="scaled",
    eager=np.multiply,
    lower=_lower_arithmetic("multiply", lambda m, a, b: a * b),
    vjp=lambda g, y, a, b: (sum_to(g * b, a), sum_to(g * a, b)),
    onnx=_onnx_arithmetic("Mul", "And"),
    samples=_ARITHMETIC_SAMPLES,
)
def mul(input: Tensor, other: Tensor) -> Tensor:
    r"""Multiplies elementwise: :math:`out_i = input_i \cdot other_i`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Example:
        >>> ops.mul(Tensor([1.0, 2.0]), 3)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  6.00000000e+00])
    """
    ...


tensor_add, tensor_sub, tensor_mul, tensor_muls, multiply = add, sub, mul, mul, mul


OPS["sub"].of_bools = "not_equal"


def subtract(input: object, other: object, *, alpha: float = 1) -> Tensor:
    r"""Subtracts a multiple, elementwise: :math:`out_i = input_i - \alpha \cdot other_i`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the two shapes broadcast and the dtypes are promoted.
        alpha: Factor of ``other``.

    Returns:
        Tensor of the broadcast shape and promoted dtype; two bools give int64.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.subtract(Tensor([4.0, 5.0]), Tensor([1.0, 2.0]), alpha=2)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  1.00000000e+00])
    """
    if isinstance(other, Tensor) and other.dtype is dtypes.bool_:
        other = F.cast(other, dtypes.int64)
    return F.sub(input, other if alpha == 1 else F.mul(other, alpha))


def _lower_neg(R: Builder, x: Expr) -> Expr:
    d = R.type(x).dtype
    if d not in dtypes.UNSIGNED:
        return R.op.negative(x)
    # LLVM is told that unsigned numbers do not wrap, so that 0 - x could only be 0
    signed = R.emit(R.op.negative(R.emit(R.op.astype(x, "int64"))))
    return R.op.astype(signed, d.name)


@unary(
    np.negative,
    _lower_neg,
    lambda g, y, x: (-g,),
    lambda O, x: (
        O.Sub(O.const(0, x.type.dtype), x) if x.type.dtype in dtypes.UNSIGNED else O.Neg(x)
    ),
    allowed=NUMBERS,
    promote="no_bool",
    samples=number_samples(),
    traits=replace(CHEAP, linear=True),
)
def neg(input: Tensor) -> Tensor:
    r"""Negates elementwise: :math:`y = -x`.

    Args:
        input: Tensor of any shape.

    Returns:
        Tensor of ``input``'s shape and dtype (bool becomes int64; unsigned integers wrap around).

    Example:
        >>> ops.neg(Tensor([1.0, -2.0]))
        Tensor(shape=[2], dtype=Float32, value= [-1.00000000e+00,  2.00000000e+00])
    """
    ...


negative = neg


def _is_signed(d: dtypes.DType) -> bool:
    return d.is_float or d in dtypes.SIGNED


@unary(
    np.abs,
    lambda R, x: R.op.abs(x) if _is_signed(R.type(x).dtype) else x,
    lambda g, y, x: (g * F.sign(x),),
    lambda O, x: O.Abs(x) if _is_signed(x.type.dtype) else O.Identity(x),
    allowed=dtypes.ALL,
    promote=None,
    samples=[*number_samples(), sample((3,), dtype="bool")],
    traits=CHEAP,
)
def abs(input: Tensor) -> Tensor:
    r"""Absolute value, elementwise: :math:`y = |x|`.

    Args:
        input: Tensor of any shape and real dtype.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.abs(Tensor([1.0, -2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    ...


absolute = abs


def _sign(m: TirMath, x: Expr) -> Expr:
    """All comparisons are false for NaN."""
    if m.dtype.startswith("uint"):
        return m.where(x > 0, 1, x)
    return m.where(x > 0, 1, m.where(x < 0, -1, 0 if m.dtype.startswith("float") else x))


def _onnx_sign(O: OnnxOps, x: OnnxNamed) -> OnnxNamed:
    if not x.type.dtype.is_float:
        return O.Sign(x)
    return O.Where(O.IsNaN(x), O.const(0, x.type.dtype), O.Sign(x))


def _eager_sign(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "iu":
        return np.sign(x)
    # that of bfloat16 keeps the sign of a zero, where that of other floats drops it
    wide = x.astype(np.float32) if x.dtype.kind == "V" else x
    return np.where(np.isnan(wide), 0, np.sign(wide)).astype(x.dtype)


@unary(
    _eager_sign,
    pointwise("sign", _sign),
    lambda g, y, x: (None,),
    _onnx_sign,
    allowed=NUMBERS,
    promote="no_bool",
    samples=number_samples(),
)
def sign(input: Tensor) -> Tensor:
    r"""Sign, elementwise: -1, 0 or 1; that of NaN is 0.

    Args:
        input: Tensor of any shape and real dtype.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.sign(Tensor([3.0, 0.0, -2.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  0.00000000e+00, -1.00000000e+00])
    """
    ...


sgn = sign


def positive(input: Tensor) -> Tensor:
    r"""Returns the input itself: :math:`y = +x`.

    Args:
        input: Tensor of any shape.

    Returns:
        ``input``.

    Example:
        >>> ops.positive(Tensor([-1.0]))
        Tensor(shape=[1], dtype=Float32, value= [-1.00000000e+00])
    """
    return require_tensor("positive", input)


@primitive(
    infer=rules.same_as_first,
    promote="each",
    traits=replace(ELEMENTWISE, alias=True),
    eager=_as_it_is,
    lower=lambda R, x: x,
    vjp=lambda g, y, x: (g,),
    onnx="Identity",
    samples=unary_samples(),
)
def identity(x: Tensor) -> Tensor:
    """Returns its input as a value of its own.

    Args:
        x: Tensor of any shape and dtype.

    Returns:
        Tensor of ``x``'s shape and dtype.

    Example:
        >>> ops.identity(Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """
    ...


@primitive(
    infer=rules.same_as_first,
    promote="each",
    traits=ELEMENTWISE,
    eager=_as_it_is,
    lower=lambda R, x: x,
    vjp=rules.flat,
    onnx="Identity",
    samples=[replace(s, grad=False) for s in unary_samples()],
)
def gradient_barrier(x: Tensor) -> Tensor:
    """Returns its input, through which no cotangent flows back.

    Args:
        x: Tensor of any shape and dtype.

    Returns:
        Tensor of ``x``'s shape and dtype.
    """
    ...


@primitive(
    infer=rules.same_as_first,
    traits=Traits(Pattern.VIEW, "..., * -> ..."),
    eager=lambda x, after: x,
    lower=lambda R, x, after: x,
    vjp=lambda g, y, x, after: (g, None),
    onnx=lambda O, x, after: O.Identity(x),
    samples=[sample((3, 4), (2,)), sample((), (3,)), sample((0, 2), ())],
)
def computed_after(x: Tensor, after: Tensor) -> Tensor:
    """Returns ``x``; what is computed from it comes after ``after``.

    Expressions of it are not those of ``x``: they are computed again instead of being kept.

    Args:
        x: Tensor of any shape.
        after: Tensor that has to be there first.

    Returns:
        Tensor of ``x``'s shape and dtype.
    """
    ...


def stop_gradient(value: object) -> Any:
    """Returns its input as a constant: no derivative flows through it.

    Args:
        value: Tensor, or a (nested) tuple or list of tensors; anything else is returned as is.

    Returns:
        What was given, with every tensor cut off.

    Example:
        >>> ops.stop_gradient(Tensor([1.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """
    if isinstance(value, Tensor):
        return gradient_barrier(value)
    if is_sequence(value):
        return type(value)(stop_gradient(v) for v in value)
    return value


def depend(value: object, expr: object) -> Any:
    """Returns ``value``; ``expr`` counts as computed before it.

    Operators have no hidden effects here, so no order needs to be enforced: assignments to
    parameters and random draws keep their program order anyway.

    Args:
        value: Tensor, or any other value.
        expr: Anything that was computed before.

    Returns:
        ``value``.

    Example:
        >>> ops.depend(Tensor([1.0]), Tensor([2.0]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """
    return value


def addn(x: object) -> Tensor:
    r"""Adds any number of tensors, elementwise: :math:`out = \sum_k x_k`.

    Args:
        x: A tuple or list of tensors whose shapes broadcast.

    Returns:
        Tensor of the broadcast shape and promoted dtype.

    Raises:
        DTypeError: if ``x`` is no tuple or list.
        ArgumentError: if it is empty.

    Example:
        >>> ops.addn([Tensor([1.0]), Tensor([2.0]), Tensor([3.0])])
        Tensor(shape=[1], dtype=Float32, value= [ 6.00000000e+00])
    """
    if not is_sequence(x):
        reject(DTypeError, "ops.addn",
               f"x must be a tuple or list of tensors, not {type(x).__name__}", f"x={x!r}"[:80],
               "pass [a, b, ...]")  # fmt: skip
    if not x:
        reject(ArgumentError, "ops.addn", "there is nothing to add", "x=[]",
               "pass at least one tensor")  # fmt: skip
    return functools.reduce(F.add, x)


accumulate_n = addn
