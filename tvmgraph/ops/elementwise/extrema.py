"""Maximum, minimum and limits, elementwise; NaN propagates unless a name says otherwise.

Of two zeros -0 is the lesser one, whatever their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Array
from tvmgraph.core.columns import Expr, Formulas, OnnxNamed, OnnxOps
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import RowDecorator, primitive
from tvmgraph.core.symbols import Symbol
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import CHEAP
from tvmgraph.errors import ArgumentError, DTypeError, reject
from tvmgraph.ops.common.pointwise import TirMath, numpy_formula, pointwise
from tvmgraph.ops.common.rows import binary_samples, sum_to

__all__ = [
    "clamp", "clip", "clip_by_value", "fmax", "fmin", "maximum", "minimum", "nan_to_num",
    "replace_nonfinite",
]  # fmt: skip


def _extreme(least: bool, drops_nan: bool) -> Callable[..., Expr]:
    """A formula: the extremum of two numbers, NaN of either operand, or of both operands.

    Of two zeros the sign decides, as IEEE 754 has it. One choice follows the other: without mask
    registers LLVM packs the bools of a disjunction of the three conditions, of which one may be the
    same for a whole vector.
    """

    def formula(m: TirMath, a: Expr, b: Expr) -> Expr:
        chosen = m.where(b < a if least else a < b, b, a)
        if not m.dtype.startswith("float"):
            return chosen
        bits = m.bits(a) | m.bits(b) if least else m.bits(a) & m.bits(b)
        chosen = m.where(a == b, m.from_bits(bits), chosen)
        return m.where(m.isnan(a if drops_nan else b), b, chosen)

    return formula


def _signed(
    ufunc: Callable[..., np.ndarray], of_zeros: Callable[..., np.ndarray]
) -> Callable[..., np.ndarray]:
    """An eager column: NumPy's function, whose zero of two would depend on the array's size."""

    def eager(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        y = ufunc(a, b)
        if a.dtype.kind in "biu" or _has_no_zero(b if b.ndim == 0 else y):
            return y
        return np.where((a == 0) & (b == 0), of_zeros(a, b), y)

    return eager


def _negative_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -(np.negative(a) - b)


_FEW = 32  # elements up to which Python looks faster than a reduction


def _has_no_zero(x: np.ndarray) -> bool:
    return 0 not in x.ravel().tolist() if x.size <= _FEW else bool(x.all())


def _vjp_extremum(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The operand that was taken gets the cotangent, equal ones half each; beside NaN both do."""
    half = g * 0.5
    tie = a == b
    ga = F.where(tie, half, F.where(y == b, 0, g))
    gb = F.where(tie, half, F.where(y == a, 0, g))
    return sum_to(ga, a), sum_to(gb, b)


def _vjp_number(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The operand that was taken gets the cotangent; of equal ones the first, as in MindSpore."""
    first = y == a
    gb = F.where(F.logical_and(y == b, F.logical_not(first)), g, 0)
    return sum_to(F.where(first, g, 0), a), sum_to(gb, b)


def _onnx_extremum(op_type: str, of_bool: str, drops_nan: bool) -> Callable[..., OnnxNamed]:
    def onnx(O: OnnxOps, a: OnnxNamed, b: OnnxNamed) -> OnnxNamed:
        d = a.type.dtype
        if d is dtypes.bool_:
            return O.add(of_bool, [a, b], 1, {})
        y = O.add(op_type, [a, b], 1, {})
        if drops_nan and d.is_float:
            return O.Where(O.IsNaN(a), b, O.Where(O.IsNaN(b), a, y))
        return y

    return onnx


_NAN, _INF = math.nan, math.inf


def _extremum(ufunc: Callable[..., Array], op_type: str, of_bool: str) -> RowDecorator:
    """Adds the row of an elementwise extremum."""
    name = ufunc.__name__
    least, drops_nan = name.endswith("min") or name == "minimum", name.startswith("f")
    return primitive(
        infer=rules.elementwise(dtypes.ALL),
        traits=CHEAP,
        promote="common",
        eager=_signed(ufunc, _negative_zero if least else np.add),
        lower=pointwise(name, _extreme(least, drops_nan)),
        vjp=_vjp_number if drops_nan else _vjp_extremum,
        onnx=_onnx_extremum(op_type, of_bool, drops_nan),
        samples=[
            *binary_samples(),
            sample((9,), (9,), dtype="int32", low=-2, high=2),
            sample((9,), (9,), dtype=("uint8", "int8"), low=0, high=3),
            sample((9,), (9,), dtype="bool"),
            sample((9,), (9,), dtype=("int64", "float16"), low=0, high=2, grad=False),
            sample((9,), (9,), dtype="bfloat16", grad=False),
            sample(
                np.array([_NAN, 1, _NAN, _INF, -_INF, 0], np.float32),
                np.array([1, _NAN, _NAN, 1, 1, 0], np.float32), grad=False,
            ),
        ],
    )  # fmt: skip


@_extremum(np.maximum, "Max", "Or")
def maximum(input: Tensor, other: Tensor) -> Tensor:
    r"""The greater of two elements: :math:`out_i = \max(input_i, other_i)`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; NaN where either element is NaN.

    Example:
        >>> ops.maximum(Tensor([1.0, 5.0]), Tensor([4.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 4.00000000e+00,  5.00000000e+00])
    """
    ...


@_extremum(np.minimum, "Min", "And")
def minimum(input: Tensor, other: Tensor) -> Tensor:
    r"""The lesser of two elements: :math:`out_i = \min(input_i, other_i)`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Returns:
        Tensor of the broadcast shape and promoted dtype; NaN where either element is NaN.

    Example:
        >>> ops.minimum(Tensor([1.0, 5.0]), Tensor([4.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    ...


@_extremum(np.fmax, "Max", "Or")
def fmax(input: Tensor, other: Tensor) -> Tensor:
    r"""The greater of two elements, NaN only where both are NaN: :math:`\max(input_i, other_i)`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Example:
        >>> ops.fmax(Tensor([1.0, float("nan")]), Tensor([4.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 4.00000000e+00,  2.00000000e+00])
    """
    ...


@_extremum(np.fmin, "Min", "And")
def fmin(input: Tensor, other: Tensor) -> Tensor:
    r"""The lesser of two elements, NaN only where both are NaN: :math:`\min(input_i, other_i)`.

    Args:
        input: Tensor or number.
        other: Tensor or number; the shapes broadcast and the dtypes are promoted.

    Example:
        >>> ops.fmin(Tensor([1.0, float("nan")]), Tensor([4.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    ...


def _raise(x: Tensor, bound: object) -> Tensor:
    return F.where(x < bound, bound, x)


def _lower(x: Tensor, bound: object) -> Tensor:
    return F.where(x > bound, bound, x)


@fusible
def _limit(x: Tensor, low: object, high: object, op: str, by_extrema: bool = False) -> Tensor:
    """Limits elements.

    At a bound the whole cotangent belongs to ``x``; ``by_extrema`` it is shared, and ``x`` keeps
    its dtype.
    """
    if low is None and high is None:
        reject(ArgumentError, op, "at least one bound must be given",
               f"input={x.aval}, both bounds None", "give a minimum or a maximum")  # fmt: skip
    d = x.aval.dtype
    if not by_extrema:
        for bound in (low, high):
            number = bound.kind(1) if isinstance(bound, Symbol) else bound
            if isinstance(bound, Tensor):
                d = dtypes.promote(d, bound.aval.dtype)
            elif isinstance(number, float) or type(number) in (np.float32, np.float16):
                d = dtypes.promote_scalar(d, number)
        x = F.cast(x, d)
    limits = (F.maximum, F.minimum) if by_extrema else (_raise, _lower)
    for bound, choose in zip((low, high), limits):
        if isinstance(bound, Tensor):
            x = choose(x, F.cast(bound, d))
        elif dtypes.is_number(bound) or isinstance(bound, Symbol):
            number: Any = bound
            kept = d.is_float or (isinstance(bound, Symbol) and bound.kind is not float)
            x = choose(x, number if kept else int(number))
        elif bound is not None:
            reject(DTypeError, op,
                   f"a bound must be a Tensor or a number, not {type(bound).__name__}",
                   repr(bound)[:80])  # fmt: skip
    return x


def clamp(input: Tensor, min: object = None, max: object = None) -> Tensor:
    r"""Limits elements to an interval: :math:`out_i = \min(\max(input_i, min), max)`.

    Args:
        input: Tensor of any shape.
        min: Lower bound, a number or a tensor that broadcasts, or ``None`` for no bound.
        max: Upper bound, a number or a tensor that broadcasts, or ``None`` for no bound; where it
            lies below ``min``, the result is ``max``.

    Returns:
        Tensor of the promoted dtype (a number counts as in arithmetic), and of ``input``'s shape
        broadcast with the bounds'.

    Raises:
        ArgumentError: if neither bound is given.
        DTypeError: if a bound is neither a number nor a Tensor.

    Example:
        >>> ops.clamp(Tensor([1, 25, 5]), 5, 20)
        Tensor(shape=[3], dtype=Int64, value= [ 5, 20,  5])
    """
    return _limit(input, min, max, "ops.clamp")


def clip(input: Tensor, min: object = None, max: object = None) -> Tensor:
    r"""Limits elements to an interval; the same as :func:`clamp`.

    Args:
        input: Tensor of any shape.
        min: Lower bound, a number or a tensor that broadcasts, or ``None`` for no bound.
        max: Upper bound, a number or a tensor that broadcasts, or ``None`` for no bound.

    Returns:
        Tensor of the promoted dtype (a number counts as in arithmetic), and of ``input``'s shape
        broadcast with the bounds'.

    Raises:
        ArgumentError: if neither bound is given.
        DTypeError: if a bound is neither a number nor a Tensor.

    Example:
        >>> ops.clip(Tensor([1, 25, 5]), 5, 20)
        Tensor(shape=[3], dtype=Int64, value= [ 5, 20,  5])
    """
    return _limit(input, min, max, "ops.clip")


def clip_by_value(
    x: Tensor | Sequence[Tensor], clip_value_min: object = None, clip_value_max: object = None
) -> Tensor | tuple[Tensor, ...]:
    r"""Limits elements to an interval: :math:`out_i = \min(\max(x_i, min), max)`.

    Args:
        x: Tensor of any shape, or a tuple or list of tensors.
        clip_value_min: Lower bound, a number or a tensor that broadcasts, or ``None``.
        clip_value_max: Upper bound, a number or a tensor that broadcasts, or ``None``.

    Returns:
        Tensor of ``x``'s dtype, or a tuple of such tensors.

    Raises:
        ArgumentError: if neither bound is given.
        DTypeError: if a bound is neither a number nor a Tensor.

    Example:
        >>> ops.clip_by_value(Tensor([1.0, 25.0, 5.0]), 5, 20)
        Tensor(shape=[3], dtype=Float32, value= [ 5.00000000e+00,  2.00000000e+01,  5.00000000e+00])
    """

    def clipped(v: Tensor) -> Tensor:
        return _limit(v, clip_value_min, clip_value_max, "ops.clip_by_value", True)

    return clipped(x) if isinstance(x, Tensor) else tuple(map(clipped, x))


def _replace(m: Formulas, x: Expr, *, nan: float, posinf: float, neginf: float) -> Expr:
    """The comparisons are false for NaN, which the outer choice replaces."""
    infinite = m.isinf(x)
    finite = m.where(infinite & (x > 0), posinf, m.where(infinite & (x < 0), neginf, x))
    return m.where(m.isnan(x), nan, finite)


def _onnx_replace(
    O: OnnxOps, x: OnnxNamed, *, nan: float, posinf: float, neginf: float
) -> OnnxNamed:
    a, b, c = (O.const(v, x.type.dtype) for v in (nan, posinf, neginf))
    y = O.Where(O.IsInf(x, detect_negative=0), b, x)
    y = O.Where(O.IsInf(x, detect_positive=0), c, y)
    return O.Where(O.IsNaN(x), a, y)


def _vjp_replace(
    g: Tensor, y: Tensor, x: Tensor, *, nan: float, posinf: float, neginf: float
) -> tuple[Tensor]:
    return (F.where(F.isfinite(x), g, 0),)


@primitive(
    infer=rules.elementwise(dtypes.FLOATS),
    eager=numpy_formula(_replace),
    lower=pointwise("replace_nonfinite", _replace),
    vjp=_vjp_replace,
    onnx=_onnx_replace,
    samples=[
        sample((3, 4), nan=0.0, posinf=9.0, neginf=-9.0),
        sample((), nan=0.0, posinf=9.0, neginf=-9.0),
        sample((0, 2), nan=0.0, posinf=9.0, neginf=-9.0, grad=False),
        sample(np.array([_NAN, _INF, -_INF, 1], np.float32), nan=2.0, posinf=9.0, neginf=-9.0,
               grad=False),
        sample(np.array([_NAN, _INF, -_INF, 1], np.float16), nan=2.0, posinf=9.0, neginf=-9.0,
               grad=False),
    ],
)  # fmt: skip
def replace_nonfinite(x: Tensor, nan: float, posinf: float, neginf: float) -> Tensor:
    """Replaces NaN and the infinities by numbers.

    Args:
        x: Floating-point tensor of any shape.
        nan: What replaces NaN.
        posinf: What replaces positive infinity.
        neginf: What replaces negative infinity.

    Returns:
        Tensor of ``x``'s shape and dtype.
    """
    ...


def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:  # fmt: skip
    """Replaces NaN and the infinities by finite numbers.

    Args:
        input: Tensor of any shape.
        nan: What replaces NaN; 0 by default.
        posinf: What replaces positive infinity; by default the greatest number of the dtype.
        neginf: What replaces negative infinity; by default the least number of the dtype.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.nan_to_num(Tensor([1.0, float("nan")]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  0.00000000e+00])
    """
    d = input.dtype
    if d.kind == "c":  # both parts, as in NumPy
        parts = [nan_to_num(p, nan, posinf, neginf) for p in (F.real(input), F.imag(input))]
        return F.complex(*parts)
    if not d.is_float:
        return input
    limit = float(dtypes.float_limits(d).max)
    return replace_nonfinite(
        input,
        0.0 if nan is None else float(nan),
        limit if posinf is None else float(posinf),
        -limit if neginf is None else float(neginf),
    )
