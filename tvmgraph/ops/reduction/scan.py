"""Running sums, products and extremes along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import along_axis
from tvmgraph.core.types import TensorType
from tvmgraph.errors import OutOfRangeError
from tvmgraph.ops.common.arguments import require_tensor, resolve_axis
from tvmgraph.ops.common.rows import LOW_PRECISION, NOT_DIFFERENTIABLE, lower_wide, widen
from tvmgraph.ops.control_flow import onnx as _control_onnx
from tvmgraph.ops.reduction.functions import accumulated
from tvmgraph.ops.reduction.rows import NUMBERS, is_empty
from tvmgraph.ops.reduction.statistics import as_float

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


def _infer_scan(x: TensorType, *, axis: int, **attrs: object) -> TensorType:
    rules.require_dtype(x, NUMBERS)
    rules.require_ndim(x, range(1, 65))
    rules.normalize_axis(axis, x.ndim)
    return x


def _eager_scan(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    def scan(
        x: np.ndarray, *, axis: int, exclusive: bool = False, reverse: bool = False
    ) -> np.ndarray:
        v = np.flip(x, axis) if reverse else x
        wide = widen(v)
        y = ufunc.accumulate(wide, axis=axis, dtype=wide.dtype)
        if exclusive:
            y = np.roll(ufunc(ufunc.identity, y), 1, axis)  # it starts there, not with an element
            if y.size:
                np.moveaxis(y, axis, 0)[0] = ufunc.identity
        y = y.astype(x.dtype, copy=False)
        return np.flip(y, axis) if reverse else y

    return scan


def _lower_scan(name: str) -> Callable[..., Expr]:
    def lower(
        R: Builder, x: Expr, *, axis: int, exclusive: bool = False, reverse: bool = False
    ) -> Expr:
        t = R.type(x)
        if is_empty(t):
            return x
        if t.is_static:
            kind = name.removeprefix("cum")
            return R.write("scan", f"{kind} {axis % t.ndim} {exclusive:d} {reverse:d}", [x], [t])

        def scan(v: Expr) -> Expr:
            if reverse:
                v = R.emit(R.op.flip(v, axis))
            dtype = R.type(v).dtype.name
            y = R.emit(getattr(R.op, name)(v, axis=axis, dtype=dtype, exclusive=exclusive))
            return R.op.flip(y, axis) if reverse else y

        return lower_wide(R, scan, x)

    return lower


def _onnx_cumsum(
    O: OnnxOps, x: OnnxNamed, *, axis: int, exclusive: bool, reverse: bool
) -> OnnxNamed:
    d = x.type.dtype
    through = dtypes.float32 if d in LOW_PRECISION else dtypes.int64 if d.is_integer else d
    v = x if through is d else O.Cast(x, to=O.dtype(through))
    y = O.CumSum(v, np.array(axis, np.int64), exclusive=int(exclusive), reverse=int(reverse))
    return y if through is d else O.Cast(y, to=O.dtype(d))


def _scan_samples(**kwargs: Any) -> list[Sample]:
    return [
        sample((3, 4), axis=1, **kwargs),
        sample((3, 5, 2), axis=1, **kwargs),
        sample((1,), axis=0, **kwargs),
        sample((3, 0), axis=0, grad=False, **kwargs),
        sample((17,), axis=0, dtype="float64", **kwargs),
        sample((5, 3), axis=0, dtype="float16", grad=False, **kwargs),
        sample((3, 4), axis=2, raises=OutOfRangeError, **kwargs),
    ]


@precise
@primitive(
    infer=_infer_scan,
    traits=along_axis(),
    eager=_eager_scan(np.add),
    lower=_lower_scan("cumsum"),
    vjp=lambda g, y, x, *, axis, exclusive, reverse: (
        F.running_sum(g, axis=axis, exclusive=exclusive, reverse=not reverse),
    ),
    onnx=_onnx_cumsum,
    samples=[
        *_scan_samples(exclusive=False, reverse=False),
        sample((3, 4), axis=0, exclusive=True, reverse=False),
        sample((3, 4), axis=1, exclusive=True, reverse=True),
        sample((3, 4), axis=1, exclusive=False, reverse=True),
        sample((3, 4), axis=1, exclusive=False, reverse=True, dtype="int32", low=-9, high=9),
        sample((2, 9), axis=1, exclusive=False, reverse=False, dtype="int8", low=-9, high=9),
    ],
)
def running_sum(x: Tensor, axis: int, exclusive: bool, reverse: bool) -> Tensor:
    r"""Sums the elements up to each one along an axis: :math:`y_i = \sum_{j \le i} x_j`.

    Args:
        x: Tensor of at least one axis.
        axis: Non-negative axis.
        exclusive: Whether an element itself is left out.
        reverse: Whether to sum from the end.

    Returns:
        Tensor of ``x``'s type.
    """
    ...


def _vjp_running_product(g: Tensor, y: Tensor, x: Tensor, *, axis: int) -> tuple[Tensor]:
    """Divides by the element, except at the first zero, where the product skips that element."""

    def total(v: Tensor) -> Tensor:
        return F.running_sum(v, axis=axis, exclusive=False, reverse=True)

    zero = F.equal(x, 0)
    count = F.running_sum(F.cast(zero, dtypes.int32), axis=axis, exclusive=False, reverse=False)
    first = F.logical_and(zero, F.equal(count, 1))
    skipping = F.running_product(F.where(first, 1, x), axis=axis)
    before = F.equal(count, 0)
    plain = total(g * y) / F.where(zero, 1, x)
    # what lies before the first zero must not enter the sum of the zero, and it does not:
    # the sum runs from the zero to the end
    return (F.where(before, plain, F.where(first, total(g * skipping), 0)),)


@precise
@primitive(
    infer=_infer_scan,
    traits=along_axis(),
    eager=_eager_scan(np.multiply),
    lower=_lower_scan("cumprod"),
    vjp=_vjp_running_product,
    onnx=lambda O, x, *, axis: _control_onnx.running(O, x, axis, 1, O.Mul),
    samples=[
        *_scan_samples(),
        sample(np.array([[2.0, 0, 3, 0, 5], [1, 2, 3, 4, 5], [0, 1, 2, 3, 4]]), axis=1),
        sample((3, 4), axis=1, dtype="int64", low=-9, high=9),
    ],
)
def running_product(x: Tensor, axis: int) -> Tensor:
    r"""Multiplies the elements up to each one along an axis: :math:`y_i = \prod_{j \le i} x_j`.

    Args:
        x: Tensor of at least one axis.
        axis: The axis, not negative.
    """
    ...


def emit_scan(R: Builder, x: Expr, combine: object, start: object, axis: int) -> Expr:
    """Emits ``y[i] = combine(y[i - 1], x[i])`` along an axis.

    Args:
        R: The builder.
        x: A tensor.
        combine: Combines two elements.
        start: What ``y[-1]`` is.
        axis: The axis, not negative.
    """
    return R.emit_te(lambda v: R.topi.scan.scanop(v, combine, start, "scan", axis), x)


def _lower_running_log(R: Builder, x: Expr, *, axis: int, reverse: bool) -> Expr:
    t = R.type(x)
    if is_empty(t):
        return x

    def scan(v: Expr) -> Expr:
        if t.is_static:
            return R.write("scan", f"logsumexp {axis % t.ndim} 0 {reverse:d}", [v], [R.type(v)])
        if reverse:
            v = R.emit(R.op.flip(v, axis))
        kind = R.type(v).dtype.name
        ln2, least = (R.tir.const(c, kind) for c in (math.log(2), -math.inf))

        def combine(a: Expr, b: Expr) -> Expr:
            top = R.tir.max(a, b)
            y = top + R.tir.log(1 + R.tir.exp(R.tir.min(a, b) - top))
            y = R.tir.if_then_else(a == b, a + ln2, y)  # equal infinities differ by NaN
            return R.tir.if_then_else(R.tir.isnan(a), a, R.tir.if_then_else(R.tir.isnan(b), b, y))

        y = emit_scan(R, v, combine, least, axis)
        return R.op.flip(y, axis) if reverse else y

    return lower_wide(R, scan, x)


def _vjp_running_log(g: Tensor, y: Tensor, x: Tensor, *, axis: int, reverse: bool) -> tuple[Tensor]:
    r"""Sums :math:`g_j e^{x_i - y_j}` in logarithms, the two signs of ``g`` apart."""
    parts = []
    for sign in (1, -1):
        weight = F.where(F.greater(g * sign, 0), g * sign, 0)
        terms = F.running_logsumexp(F.log(weight) - y, axis=axis, reverse=not reverse)
        parts.append(F.exp(terms + x))
    return (parts[0] - parts[1],)


@primitive(
    infer=_infer_scan,
    traits=along_axis(),
    promote="float",
    eager=_eager_scan(np.logaddexp),
    lower=_lower_running_log,
    vjp=_vjp_running_log,
    onnx=Reason("ONNX has no running log-sum-exp, and shifting by the largest element underflows"),
    samples=[
        *_scan_samples(reverse=False),
        sample((3, 4), axis=1, reverse=True),
        sample(np.array([[-np.inf, -np.inf, 1], [1e3, 1, np.inf], [1, np.nan, 2]]), axis=1,
               reverse=False, grad=False),
    ],
)  # fmt: skip
def running_logsumexp(x: Tensor, axis: int, reverse: bool) -> Tensor:
    r"""Returns :math:`y_i = \log \sum_{j \le i} e^{x_j}` along an axis.

    Args:
        x: Floating-point tensor of at least one axis.
        axis: The axis, not negative.
        reverse: Whether to go from the last element to the first.
    """
    ...


def _eager_extreme(x: np.ndarray, *, axis: int, largest: bool) -> np.ndarray:
    wide = widen(x)
    best = (np.maximum if largest else np.minimum).accumulate(wide, axis=axis)
    return best.astype(x.dtype, copy=False)


def _eager_positions(x: np.ndarray, *, axis: int, largest: bool) -> np.ndarray:
    shape = [1] * x.ndim
    shape[axis] = -1
    position = np.arange(x.shape[axis]).reshape(shape)
    hit = (x == _eager_extreme(x, axis=axis, largest=largest)) | (x != x)
    return np.maximum.accumulate(np.where(hit, position, 0), axis=axis)


def _lower_extreme(R: Builder, x: Expr, *, axis: int, largest: bool) -> Expr:
    t = R.type(x)
    if is_empty(t):
        return x
    low = t.dtype in LOW_PRECISION
    wide = R.emit(R.op.astype(x, "float32")) if low else x
    name = "max" if largest else "min"
    if t.is_static:
        best = R.write("scan", f"{name} {axis % t.ndim} 0 0", [wide], [R.type(wide)])
    else:
        best = emit_scan(R, wide, _extreme_of_two(R, largest, t.dtype.is_float), 0, axis)
    return R.emit(R.op.astype(best, t.dtype.name)) if low else best


def _extreme_of_two(R: Builder, largest: bool, is_float: bool) -> Callable[[Expr, Expr], Expr]:
    pick = R.tir.max if largest else R.tir.min

    def combine(a: Expr, b: Expr) -> Expr:
        y = pick(a, b)
        if not is_float:
            return y
        return R.tir.if_then_else(R.tir.isnan(a), a, R.tir.if_then_else(R.tir.isnan(b), b, y))

    return combine


def _lower_positions(R: Builder, x: Expr, *, axis: int, largest: bool) -> Expr:
    t = R.type(x)
    if is_empty(t):
        return R.op.astype(x, "int64")
    is_float = t.dtype.is_float
    wide = R.emit(R.op.astype(x, "float32")) if t.dtype in LOW_PRECISION else x

    def mark(v: Expr, best: Expr) -> Expr:
        def element(*i: Expr) -> Expr:
            hit = v[i] == best[i]
            hit = R.tir.any(hit, R.tir.isnan(v[i])) if is_float else hit
            return R.tir.Select(hit, i[axis], R.tir.IntImm("int64", 0))

        return R.te.compute(v.shape, element, name="mark")

    marks = R.emit_te(mark, wide, _lower_extreme(R, wide, axis=axis, largest=largest))
    if t.is_static:
        marked = t.with_dtype(dtypes.int64)
        return R.write("scan", f"max {axis % t.ndim} 0 0", [marks], [marked])
    return emit_scan(R, marks, R.tir.max, 0, axis)


_EXTREMES = [
    sample((3, 4), axis=1, largest=True),
    sample((3, 5, 2), axis=1, largest=False),
    sample((3, 0), axis=0, largest=True),
    sample((17,), axis=0, largest=True, dtype="float64"),
    sample((6, 3), axis=0, largest=False, dtype="int32", low=-2, high=2),
    sample((6, 3), axis=0, largest=True, dtype="float16"),
    sample(np.array([[1.0, 3, np.nan, 2, np.nan], [3, 3, 1, np.inf, 1]]), axis=1, largest=True,
           grad=False),
    sample((3, 4), axis=2, largest=True, raises=OutOfRangeError),
]  # fmt: skip


@primitive(
    infer=lambda x, *, axis, largest: _infer_scan(x, axis=axis).with_dtype(dtypes.int64),
    traits=along_axis(),
    eager=_eager_positions,
    lower=_lower_positions,
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=Reason("ONNX has no running maximum or minimum"),
    samples=_EXTREMES,
)
def running_arg_extreme(x: Tensor, axis: int, largest: bool) -> Tensor:
    """Returns the int64 position of the last extreme up to each element along an axis; NaN wins.

    Args:
        x: Tensor of at least one axis.
        axis: The axis, not negative.
        largest: Whether the largest element is looked for rather than the smallest.
    """
    ...


def _vjp_running_extreme(
    g: Tensor, y: Tensor, x: Tensor, *, axis: int, largest: bool
) -> tuple[Tensor]:
    at = running_arg_extreme(x, axis, largest)
    return (F.scatter_along(F.zeros_like(x), at, g, axis=axis, mode="add"),)


@primitive(
    infer=_infer_scan,
    traits=along_axis(),
    eager=_eager_extreme,
    lower=_lower_extreme,
    vjp=_vjp_running_extreme,
    onnx=Reason("ONNX has no running maximum or minimum"),
    samples=_EXTREMES,
)
def running_extreme(x: Tensor, axis: int, largest: bool) -> Tensor:
    """Returns the extreme up to each element along an axis; NaN wins.

    Args:
        x: Tensor of at least one axis.
        axis: The axis, not negative.
        largest: Whether the largest element is looked for rather than the smallest.
    """
    ...


# ---- public functions ---------------------------------------------------------------------------


def cumsum(x: Tensor, axis: int, dtype: DTypeLike | None = None) -> Tensor:
    r"""Sums the elements up to each one along an axis: :math:`y_i = \sum_{j \le i} x_j`.

    Args:
        x: Tensor of at least one axis.
        axis: Axis.
        dtype: dtype of sums and result; by default ``x``'s, int64 for bools.

    Returns:
        Tensor of ``x``'s shape.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.cumsum(Tensor([1.0, 2.0, 4.0]), 0)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  3.00000000e+00,  7.00000000e+00])
    """
    axis = resolve_axis("cumsum", x, axis)
    if dtype is not None or x.aval.dtype is dtypes.bool_:
        x = accumulated(x, dtype)
    return running_sum(x, axis, False, False)


def cumprod(input: Tensor, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    r"""Multiplies the elements up to each one along an axis: :math:`y_i = \prod_{j \le i} x_j`.

    Args:
        input: Tensor of at least one axis.
        dim: Axis.
        dtype: dtype of products and result; by default ``input``'s, int64 for integers and bools.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.cumprod(Tensor([1.0, 2.0, 4.0]), 0)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00,  8.00000000e+00])
    """
    axis = resolve_axis("cumprod", input, dim, "dim")
    return running_product(accumulated(input, dtype), axis)


def logcumsumexp(input: Tensor, axis: int) -> Tensor:
    r"""Returns :math:`y_i = \log \sum_{j \le i} e^{x_j}` along an axis, without overflow.

    Args:
        input: Tensor of at least one axis; integers are computed in float32.
        axis: Axis.

    Returns:
        Tensor of ``input``'s shape.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.logcumsumexp(Tensor([1.0, 2.0, 4.0]), 0)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  2.31326175e+00,  4.16984606e+00])
    """
    axis = resolve_axis("logcumsumexp", input, axis)
    return running_logsumexp(as_float(input), axis, False)


def _running_extreme(name: str, x: Tensor, axis: AxisLike) -> tuple[Tensor, Tensor]:
    require_tensor(name, x)
    return _extreme_and_place(x, resolve_axis(name, x, axis), name == "cummax")


@fusible
def _extreme_and_place(x: Tensor, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    return running_extreme(x, axis, largest), running_arg_extreme(x, axis, largest)


def cummax(input: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    r"""Returns the largest element up to each one along an axis, and its last position.

    Args:
        input: Tensor of at least one axis.
        axis: Axis.

    Returns:
        Tuple of the values and their int64 positions.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.cummax(Tensor([1.0, 3.0, 2.0]), 0)
        (Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  3.00000000e+00,
         3.00000000e+00]), Tensor(shape=[3], dtype=Int64, value= [0, 1, 1]))
    """
    return _running_extreme("cummax", input, axis)


def cummin(input: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    r"""Returns the smallest element up to each one along an axis, and its last position.

    Args:
        input: Tensor of at least one axis.
        axis: Axis.

    Returns:
        Tuple of the values and their int32 positions.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.cummin(Tensor([3.0, 1.0, 2.0]), 0)
        (Tensor(shape=[3], dtype=Float32, value= [ 3.00000000e+00,  1.00000000e+00,
         1.00000000e+00]), Tensor(shape=[3], dtype=Int32, value= [0, 1, 1]))
    """
    values, at = _running_extreme("cummin", input, axis)
    return values, F.cast(at, dtypes.int32)
