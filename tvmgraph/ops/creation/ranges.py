"""Evenly spaced values: arange, range, linspace, logspace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.columns import Builder, Expr, NumberLike, OnnxNamed, OnnxOps
from tvmgraph.core.conversion import converted
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import Dim, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.ops.common.arguments import bad, describe, is_unknown, sizes, tensor_in
from tvmgraph.ops.creation.filled import CONSTANT, dtype_or

__all__ = ["arange", "arange_values", "linspace", "logspace", "range"]


def _eager_range(
    *, start: int | float, step: int | float, count: int, dtype: dtypes.DType
) -> np.ndarray:
    return converted(start + np.arange(count) * step, dtype)


def _lower_range(R: Builder, *, start: Expr, step: Expr, count: int, dtype: dtypes.DType) -> Expr:
    """Computes in float64 (or int64) like the NumPy column, so that the last bits agree."""
    wide = "float64" if isinstance(start, float) or isinstance(step, float) else "int64"

    def arange(extent: Expr, start: Expr) -> Expr:
        def element(i: Expr) -> Expr:
            value = i.astype(wide) * R.tir.const(step, wide) + (
                start.astype(wide) if hasattr(start, "astype") else R.tir.const(start, wide)
            )
            return value.astype(dtype.name)

        return R.te.compute((R.int64(extent),), element, name="arange")

    first = R.dim(start) if isinstance(start, Dim) else start
    return R.emit_te(arange, R.extent(count), first)


def _onnx_range(
    O: OnnxOps, *, start: Any, step: Any, count: int | Dim, dtype: dtypes.DType
) -> OnnxNamed:
    if not isinstance(count, Dim) and not isinstance(start, Dim):
        return O.const(_eager_range(start=start, step=step, count=count, dtype=dtype))
    places = O.positions(count)
    if isinstance(start, float) or isinstance(step, float):
        places = O.Cast(places, to=O.dtype(dtypes.float64))
    kind = np.float64 if isinstance(start, float) or isinstance(step, float) else np.int64
    first = O.size(start) if isinstance(start, Dim) else np.asarray(start, kind)
    if isinstance(start, Dim) and kind is np.float64:
        first = O.Cast(first, to=O.dtype(dtypes.float64))
    values = O.Add(O.Mul(places, np.asarray(step, kind)), first)
    return O.Cast(values, to=O.dtype(dtype))


@primitive(
    infer=lambda *, start, step, count, dtype: tensor_type((count,), dtype),
    traits=Traits(Pattern.OPAQUE, Reason("a value depends on its place")),
    eager=_eager_range,
    lower=_lower_range,
    vjp=CONSTANT,
    onnx=_onnx_range,
    samples=[
        sample(attrs={"start": 0, "step": 1, "count": 7, "dtype": dtypes.int64}),
        sample(attrs={"start": 5, "step": -2, "count": 3, "dtype": dtypes.int32}),
        sample(attrs={"start": 0.1, "step": 0.3, "count": 17, "dtype": dtypes.float32}),
        sample(attrs={"start": 1, "step": 1, "count": 0, "dtype": dtypes.float32}),
        sample(attrs={"start": 1, "step": 1, "count": 5, "dtype": dtypes.float16}),
    ],
)
def arange_values(start: object, step: object, count: int, dtype: dtypes.DType) -> Tensor:
    r"""Returns :math:`start + i \cdot step` for :math:`i < count`.

    Args:
        start: First value.
        step: Difference of neighbours.
        count: Number of values.
        dtype: Element type.

    Returns:
        Tensor of shape ``(count,)``.
    """
    ...


def _number(value: object, op: str, name: str) -> int | float | Dim:
    if isinstance(value, Tensor):
        value = value.item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, Dim)):
        raise bad(
            DTypeError, f"{name} must be an int or a float, not {type(value).__name__}", op,
            f"{name}={value!r}"[:80],
        )  # fmt: skip
    return value


def arange(
    start: object = 0, end: object = None, step: object = 1, *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Returns the values from ``start`` to ``end`` (exclusive) in steps of ``step``.

    Args:
        start: First value, or the end if ``end`` is missing; a number or a one-element tensor.
        end: Where to stop.
        step: Difference of neighbours, not 0.
        dtype: Element type; by default int64, or float32 if a number is a float.

    Returns:
        Tensor of shape :math:`(\lceil (end - start) / step \rceil,)`.

    Raises:
        ArgumentError: if ``step`` is 0 or leads away from ``end``.

    Example:
        >>> ops.arange(1, 7, 2)
        Tensor(shape=[3], dtype=Int64, value= [1, 3, 5])
    """
    return _range("arange", *((0, start) if end is None else (start, end)), step, dtype)


def _range(op: str, start: object, end: object, step: object, dtype: DTypeLike | None) -> Tensor:
    if any(map(is_unknown, (start, end, step))):
        return _computed(op, start, end, step, dtype)
    got = describe(start=start, end=end, step=step)
    tensors = _floats(start, end, step)
    start, end = _number(start, op, "start"), _number(end, op, "end")
    step = _number(step, op, "step")
    if step == 0:
        raise bad(ArgumentError, "step must not be 0", op, got)
    if (end - start) * step < 0:
        raise bad(ArgumentError, f"step {step} leads away from end", op, got, "change its sign")
    is_float = any(isinstance(v, float) for v in (start, end, step))
    wanted = dtype_or(dtype, dtypes.float32 if is_float else dtypes.int64)
    if _counted_in_float32(tensors):
        count = math.ceil((np.float32(end) - np.float32(start)) / np.float32(step))
    else:
        count = math.ceil((end - start) / step) if is_float else -((start - end) // step)
    return arange_values(start, step, max(count, 0), wanted)


def _floats(*values: object) -> list[dtypes.DType]:
    return [v.dtype for v in values if isinstance(v, Tensor) and v.dtype.is_float]


def _counted_in_float32(floats: list[dtypes.DType]) -> bool:
    """Whether the tensors' dtypes say so: 0.01 in float32 fits a hundred times into 1."""
    return bool(floats) and dtypes.float64 not in floats


def _computed(op: str, start: object, end: object, step: object, dtype: DTypeLike | None) -> Tensor:
    """Counts as tensors of a graph decide; nothing where the step leads away from the end."""
    given = [_known(v, op) for v in (start, end, step)]
    if any(t.ndim and t.size != 1 for t in given):
        raise bad(ArgumentError, "start, end and step are numbers", op,
                  describe(start=start, end=end, step=step))  # fmt: skip
    is_float = any(t.dtype.is_float for t in given)
    wide = dtypes.float64 if is_float else dtypes.int64
    first, last, by = ends = [F.cast(F.reshape(t, ()), wide) for t in given]
    if _counted_in_float32(_floats(start, end, step)):
        ends = [F.cast(t, dtypes.float32) for t in ends]
    count = F.cast(F.ceil((ends[1] - ends[0]) / ends[2]), dtypes.int64) if is_float else (
        F.neg(F.floor_div(first - last, by))
    )  # fmt: skip
    places = F.count_up(F.maximum(count, 0), "counted")
    wanted = dtype_or(dtype, dtypes.float32 if is_float else dtypes.int64)
    return F.cast(first + F.cast(places, wide) * by, wanted)


def _known(value: object, op: str) -> Tensor:
    if is_unknown(value):
        return tensor_in(value)
    return Tensor(_number(value, op, "start, end and step"))


def range(start: NumberLike, end: NumberLike, step: NumberLike, maxlen: int = 1000000) -> Tensor:
    """Returns the values from ``start`` to ``end`` (exclusive) in steps of ``step``.

    Args:
        start: First value, a number or a one-element tensor.
        end: Where to stop.
        step: Difference of neighbours, not 0.
        maxlen: Largest accepted number of values.

    Returns:
        Tensor with one axis: int64, or float32 if a number is a float.

    Raises:
        ArgumentError: if ``step`` is 0 or there are more than ``maxlen`` values.

    Example:
        >>> ops.range(0, 6, 2)
        Tensor(shape=[3], dtype=Int64, value= [0, 2, 4])
    """
    result = _range("range", start, end, step, None)
    if result.aval.is_static and result.size > maxlen:
        raise bad(ArgumentError, f"{result.size} values are more than maxlen ({maxlen})", "range",
                  describe(start=start, end=end, step=step))  # fmt: skip
    return result


def linspace(
    start: Any, end: Any, steps: int | Tensor, *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Returns ``steps`` evenly spaced values: :math:`start + i \frac{end - start}{steps - 1}`.

    Args:
        start: First value, a number or a 0-d tensor.
        end: Last value.
        steps: Number of values, at least 1.
        dtype: Element type; by default that of ``start`` if it is a float tensor, else float32.

    Returns:
        Tensor of shape ``(steps,)``.

    Raises:
        ArgumentError: if ``steps`` is not positive.

    Example:
        >>> ops.linspace(0, 1, 5)
        Tensor(shape=[5], dtype=Float32, value= [ 0.00000000e+00,  2.50000000e-01,  5.00000000e-01,
        7.50000000e-01,  1.00000000e+00])
    """
    (count,) = sizes(steps, "linspace", "steps")
    if count.__class__ is int and count < 1:
        raise bad(ArgumentError, "steps must be positive", "linspace", describe(steps=steps))
    like = start if isinstance(start, Tensor) else end
    floats = isinstance(like, Tensor) and like.dtype.is_float
    wanted = dtype_or(dtype, like.dtype if floats else dtypes.float32)
    first, last = (_as_scalar(v, wanted, "linspace") for v in (start, end))
    if isinstance(count, Dim):
        return _evenly_computed(first, last, count, wanted)
    if count == 1:
        return F.reshape(first, (1,))
    return _evenly_spaced(first, last, count, wanted)


def _evenly_computed(first: Tensor, last: Tensor, count: Dim, dtype: dtypes.DType) -> Tensor:
    """Spaces as many values evenly as the values of the graph decide."""
    places = arange_values(0, 1, count, dtypes.int64)
    number = F.size_value(places, size=count, dtype=dtypes.int64)
    gaps = F.maximum(number - 1, 1)
    step = (last - first) / F.cast(gaps, dtype)
    behind = last - F.cast(gaps - places, dtype) * step
    return F.where(places * 2 < number, first + F.cast(places, dtype) * step, behind)


@fusible
def _evenly_spaced(first: Tensor, last: Tensor, count: int, dtype: dtypes.DType) -> Tensor:
    step = (last - first) / (count - 1)
    i = arange_values(0.0, 1.0, count, dtype)
    # counting from the nearer end keeps both ends exact
    return F.where(i < count / 2, first + i * step, last - (count - 1 - i) * step)


def _as_scalar(value: object, dtype: dtypes.DType, op: str) -> Tensor:
    if isinstance(value, Tensor):
        return F.cast(F.reshape(value, ()), dtype)
    return F.full((), float(_number(value, op, "start and end")), dtype=dtype)


def logspace(
    start: object, end: object, steps: int, base: int = 10, *, dtype: DTypeLike = dtypes.float32
) -> Tensor:
    r"""Returns powers with evenly spaced exponents: :math:`base^{linspace(start, end)_i}`.

    Args:
        start: First exponent, a number or a 0-d tensor.
        end: Last exponent.
        steps: Number of values.
        base: The base.
        dtype: Element type.

    Returns:
        Tensor of shape ``(steps,)``.

    Example:
        >>> ops.logspace(0, 2, 3)
        Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  1.00000000e+01,  1.00000000e+02])
    """
    wanted = dtypes.dtype_of(dtype)
    wide = dtypes.float32 if wanted in (dtypes.float16, dtypes.bfloat16) else wanted
    if steps.__class__ is int and steps == 0:
        return F.zeros((0,), dtype=wanted)
    exponents = linspace(start, end, steps, dtype=wide)
    return F.cast(F.pow(F.full((), float(base), dtype=wide), exponents), wanted)
