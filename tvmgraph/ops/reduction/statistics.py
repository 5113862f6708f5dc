"""Moments, order statistics, norms and histograms, written with other operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import Dim, TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, TypeOrValueError
from tvmgraph.ops.common.arguments import bad, require, require_tensor, resolve_axes, resolve_axis
from tvmgraph.ops.common.rows import LOW_PRECISION, NOT_DIFFERENTIABLE, composed, widened
from tvmgraph.ops.reduction import rows
from tvmgraph.ops.reduction.rows import reduce_max

__all__ = [
    "bincount", "histc", "logsumexp", "median", "nanmean", "nanmedian", "nanquantile", "nansum",
    "quantile", "reduce_sum", "std", "std_mean", "var", "var_mean",
]  # fmt: skip


def reduce_sum(x: Tensor, axis: object = None, keep_dims: bool | None = None) -> Tensor:
    """Returns the sum over some axes, in the tensor's dtype.

    Args:
        x: Tensor of any shape.
        axis: The axes; None means all, and so does ``()`` without ``keep_dims``.
        keep_dims: Whether reduced axes stay with size 1.

    Returns:
        Tensor of ``x``'s shape without (or with 1 in) the reduced axes.

    Example:
        >>> ops.reduce_sum(ops.ones((2, 3)), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  3.00000000e+00])
    """
    if keep_dims is None or axis != ():
        axis = resolve_axes("reduce_sum", x, axis)
    return rows.reduce_sum(x, axis, bool(keep_dims))


def as_float(x: Tensor) -> Tensor:
    """Converts integers and bools to float32.

    Args:
        x: Tensor of any dtype.
    """
    return x if x.aval.dtype.kind in "fc" else F.cast(x, dtypes.float32)


def _moments(
    name: str, input: Tensor, axis: AxisLike | None, ddof: object, keepdims: bool
) -> tuple[Tensor, Tensor, object]:
    """Returns variance and mean in float32 or wider, and the dtype of the result."""
    axes = resolve_axes(name, input, axis)
    if not isinstance(ddof, int):
        raise bad(TypeOrValueError, "ddof must be an int or bool", name,
                  f"input={input.aval}, ddof={ddof!r}")  # fmt: skip
    x = as_float(input)
    d = x.aval.dtype
    wide = widened(x)
    count = math.prod(x.aval.shape[a] for a in axes)  # pyright: ignore[reportArgumentType]
    center = rows.reduce_mean(wide, axes, True)
    away = wide - center
    total = rows.reduce_sum(F.real(away * F.conj(away)), axes, bool(keepdims))
    # like NumPy, too few elements give NaN (0 / 0) or infinity
    variance = total / max(count - int(ddof), 0)
    if not keepdims and axes:
        center = F.squeeze(center, axes)
    return variance, center, d


def _narrow(x: Tensor, d: object) -> Tensor:
    return F.cast(x, d) if d in LOW_PRECISION else x


@fusible
def var(
    input: Tensor, axis: AxisLike | None = None, ddof: object = 0, keepdims: bool = False
) -> Tensor:
    r"""Returns the variance: :math:`\frac{1}{N - ddof} \sum_i (x_i - \bar{x})^2`.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        axis: Axis or axes; ``None`` for all.
        ddof: What is subtracted from the number of elements; a bool counts as 0 or 1.
        keepdims: Whether reduced axes stay with size 1.

    Returns:
        Tensor of ``input``'s shape without (or with 1 in) the reduced axes.

    Raises:
        OutOfRangeError: if an axis does not exist.
        ArgumentError: if ``ddof`` is no integer.

    Example:
        >>> ops.var(Tensor([1.0, 2.0, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 1.55556)
    """
    variance, _, d = _moments("var", input, axis, ddof, keepdims)
    return _narrow(variance, d)


@fusible
def std(
    input: Tensor, axis: AxisLike | None = None, ddof: object = 0, keepdims: bool = False
) -> Tensor:
    r"""Returns the standard deviation, the square root of :func:`var`.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        axis: Axis or axes; ``None`` for all.
        ddof: What is subtracted from the number of elements; a bool counts as 0 or 1.
        keepdims: Whether reduced axes stay with size 1.

    Returns:
        Tensor of ``input``'s shape without (or with 1 in) the reduced axes.

    Raises:
        OutOfRangeError: if an axis does not exist.
        ArgumentError: if ``ddof`` is no integer.

    Example:
        >>> ops.std(Tensor([1.0, 2.0, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 1.24722)
    """
    variance, _, d = _moments("std", input, axis, ddof, keepdims)
    return _narrow(F.sqrt(variance), d)


@fusible
def var_mean(
    input: Tensor, axis: AxisLike | None = None, ddof: object = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    r"""Returns variance and mean in one pass over the elements.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        axis: Axis or axes; ``None`` for all.
        ddof: What is subtracted from the number of elements; a bool counts as 0 or 1.
        keepdims: Whether reduced axes stay with size 1.

    Returns:
        Tuple of two tensors.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.var_mean(Tensor([1.0, 2.0, 4.0]))
        (Tensor(shape=[], dtype=Float32, value= 1.55556), Tensor(shape=[], dtype=Float32, value=
         2.33333))
    """
    variance, center, d = _moments("var_mean", input, axis, ddof, keepdims)
    return _narrow(variance, d), _narrow(center, d)


@fusible
def std_mean(
    input: Tensor, axis: AxisLike | None = None, ddof: object = 0, keepdims: bool = False
) -> tuple[Tensor, Tensor]:
    r"""Returns standard deviation and mean in one pass over the elements.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        axis: Axis or axes; ``None`` for all.
        ddof: What is subtracted from the number of elements; a bool counts as 0 or 1.
        keepdims: Whether reduced axes stay with size 1.

    Returns:
        Tuple of two tensors.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.std_mean(Tensor([1.0, 2.0, 4.0]))
        (Tensor(shape=[], dtype=Float32, value= 1.24722), Tensor(shape=[], dtype=Float32, value=
         2.33333))
    """
    variance, center, d = _moments("std_mean", input, axis, ddof, keepdims)
    return _narrow(F.sqrt(variance), d), _narrow(center, d)


def nansum(
    input: Tensor,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Sums over axes, counting NaN as 0.

    Args:
        input: Tensor of any shape.
        axis: Axis or axes; ``None`` for all.
        keepdims: Whether reduced axes stay with size 1.
        dtype: dtype of sum and result; by default ``input``'s, int64 for bools.

    Returns:
        Tensor of ``input``'s shape without (or with 1 in) the reduced axes.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.nansum(Tensor([1.0, float("nan")]))
        Tensor(shape=[], dtype=Float32, value= 1)
    """
    axes = resolve_axes("nansum", input, axis)
    if dtype is not None:
        input = F.cast(input, dtypes.dtype_of(dtype))
    elif input.aval.dtype is dtypes.bool_:
        input = F.cast(input, dtypes.int64)
    if input.aval.dtype.is_float:
        return _sum_of_numbers(input, axes, bool(keepdims))
    return rows.reduce_sum(input, axes, bool(keepdims))


@fusible
def _sum_of_numbers(x: Tensor, axes: tuple[int, ...], keep_dims: bool) -> Tensor:
    return rows.reduce_sum(F.where(F.isnan(x), 0, x), axes, keep_dims)


def nanmean(
    input: Tensor,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Averages over axes, leaving NaN out.

    Args:
        input: Float Tensor of any shape.
        axis: Axis or axes; ``None`` for all.
        keepdims: Whether reduced axes stay with size 1.
        dtype: dtype of the result; by default ``input``'s.

    Returns:
        Tensor of ``input``'s shape without (or with 1 in) the reduced axes; NaN where all
        elements are.

    Raises:
        DTypeError: if ``input`` holds no floats.
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.nanmean(Tensor([1.0, float("nan"), 3.0]))
        Tensor(shape=[], dtype=Float32, value= 2)
    """
    axes = resolve_axes("nanmean", input, axis)
    d = input.aval.dtype
    require(d.is_float, "input must hold floats", "nanmean", DTypeError, input=input, fix="cast it")
    wide = widened(input)
    keep = bool(keepdims)
    count = rows.reduce_sum(F.cast(F.logical_not(F.isnan(input)), wide.dtype), axes, keep)
    return F.cast(nansum(wide, axes or None, keep) / count, d if dtype is None else dtype)


@precise
def logsumexp(input: Tensor, dim: AxisLike, keepdim: bool = False) -> Tensor:
    r"""Returns :math:`\log \sum_{i \in dim} e^{input_i}`, computed without overflow.

    Args:
        input: Tensor of any shape; integers are computed in float32.
        dim: Axis or axes; ``()`` or ``None`` for all.
        keepdim: Whether reduced axes stay with size 1.

    Returns:
        Tensor of ``input``'s shape without (or with 1 in) the reduced axes.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.logsumexp(Tensor([1.0, 2.0]), 0)
        Tensor(shape=[], dtype=Float32, value= 2.31326)
    """
    return _log_sum(input, resolve_axes("logsumexp", input, dim, "dim"), bool(keepdim))


@fusible
def _log_sum(input: Tensor, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    x = as_float(input)
    d = x.aval.dtype
    wide = widened(x)
    known = [n for a in axes if isinstance(n := wide.aval.shape[a], int)]
    if 0 in known:  # the logarithm of an empty sum; sizes that values decide are not compared
        y = F.log(rows.reduce_sum(wide, axes, True))
        return F.cast(y if keepdim else F.squeeze(y, axes), d)
    top = F.stop_gradient(rows.reduce_max(wide, axes, True))
    top = F.where(F.isfinite(top), top, 0)  # infinities must not meet: inf - inf is NaN
    y = F.log(rows.reduce_sum(F.exp(wide - top), axes, True)) + top
    return F.cast(y if keepdim or not axes else F.squeeze(y, axes), d)


# ---- order statistics ---------------------------------------------------------------------------


def _median(
    name: str, input: Tensor, axis: AxisLike, keepdims: bool, skip_nan: bool
) -> tuple[Tensor, Tensor]:
    axis = resolve_axis(name, input, axis)
    if input.ndim == 0:
        return F.identity(input), F.zeros((), dtypes.int64)
    count = input.aval.static_shape[axis]
    require(count, "the median of no elements does not exist", name, input=input)
    order = F.cast(F.argsort(input, axis), dtypes.int64)  # NaN comes last
    if input.aval.dtype.is_float:
        nan = rows.reduce_sum(F.cast(F.isnan(input), dtypes.int64), (axis,), True)
        middle = F.full((), (count - 1) // 2, dtype=dtypes.int64)
        if skip_nan:
            rank = F.maximum(F.floor_div(count - 1 - nan, 2), 0)
        else:
            rank = F.where(F.equal(nan, 0), middle, count - 1)
        at = F.gather_along(order, rank, axis)
    else:
        middle_entry = ((count - 1) // 2, (count - 1) // 2 + 1, 1)
        at = F.basic_index(order, index=((0, None, 1),) * axis + (middle_entry,))
    value = F.gather_along(input, at, axis)
    return (value, at) if keepdims else (F.squeeze(value, axis), F.squeeze(at, axis))


def median(input: Tensor, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    r"""Returns the medians along an axis (the lower of two middle elements) and their positions.

    Args:
        input: Tensor of any shape.
        axis: Axis.
        keepdims: Whether the axis stays with size 1.

    Returns:
        Tuple of the medians (NaN where an element is NaN) and their int64 positions.

    Raises:
        OutOfRangeError: if the axis does not exist.
        ShapeError: if there are no elements.

    Example:
        >>> ops.median(Tensor([4.0, 1.0, 3.0, 2.0]))
        (Tensor(shape=[], dtype=Float32, value= 2), Tensor(shape=[], dtype=Int64, value= 3))
    """
    return _median("median", input, axis, keepdims, False)


def nanmedian(input: Tensor, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    r"""Returns the medians along an axis, leaving NaN out, and their positions.

    Args:
        input: Tensor of any shape.
        axis: Axis.
        keepdims: Whether the axis stays with size 1.

    Returns:
        Tuple of the medians (NaN where all elements are) and their int64 positions.

    Raises:
        OutOfRangeError: if the axis does not exist.
        ShapeError: if there are no elements.

    Example:
        >>> ops.nanmedian(Tensor([4.0, 1.0, float("nan"), 2.0]))
        (Tensor(shape=[], dtype=Float32, value= 2), Tensor(shape=[], dtype=Int64, value= 3))
    """
    return _median("nanmedian", input, axis, keepdims, True)


def _quantile(
    name: str, input: Tensor, q: Any, axis: AxisLike | None, keepdims: bool, skip_nan: bool
) -> Tensor:
    require_tensor(name, input)
    if not input.aval.dtype.is_float:
        raise bad(DTypeError, "input must hold floats", name, f"input={input.aval}", "cast it")
    if not isinstance(q, Tensor):
        if not all(0 <= v <= 1 for v in np.ravel(q)):
            raise bad(ArgumentError, "q must lie in [0, 1]", name, f"q={q!r}")
        q = Tensor(q, input.aval.dtype)
    require(q.ndim <= 1, "q must be a number or 1-d", name, q=q)
    ndim = input.ndim
    x = F.reshape(input, (-1,)) if axis is None else input
    at = 0 if axis is None else resolve_axis(name, input, axis)
    x = F.moveaxis(F.reshape(x, (1,)) if x.ndim == 0 else x, at, -1)
    y = _quantiles_of_rows(x, F.cast(F.reshape(q, (-1,)), x.aval.dtype), skip_nan)
    if keepdims:
        y = F.reshape(y, (q.size,) + (1,) * ndim) if axis is None else F.expand_dims(y, at + 1)
    return F.squeeze(y, 0) if q.ndim == 0 else y


def _quantiles_of_rows(x: Tensor, q: Tensor, skip_nan: bool) -> Tensor:
    """Interpolates between sorted neighbours; the quantiles become the first axis."""
    ordered = F.sort(x, -1)[0]
    count = x.aval.static_shape[-1]
    nan = rows.reduce_sum(F.cast(F.isnan(x), x.aval.dtype), (x.ndim - 1,), True)
    last = count - 1 - nan if skip_nan else F.full((), count - 1, dtype=x.aval.dtype)
    rank = q * F.maximum(last, 0)
    low = F.floor(rank)
    at = F.cast(low, dtypes.int64)
    shape = (*x.shape[:-1], q.size)
    at = F.broadcast_to(at, shape)
    above = F.minimum(at + 1, count - 1)
    a, b = F.gather_along(ordered, at, x.ndim - 1), F.gather_along(ordered, above, x.ndim - 1)
    weight = rank - low
    y = F.where(F.equal(weight, 0), a, a + weight * (b - a))
    bad = F.equal(nan, count) if skip_nan else F.not_equal(nan, 0)
    return F.moveaxis(F.where(bad, math.nan, y), -1, 0)


def quantile(
    input: Tensor, q: object, axis: AxisLike | None = None, keepdims: bool = False
) -> Tensor:
    r"""Returns quantiles, interpolated linearly between neighbouring elements.

    Args:
        input: Float Tensor of any shape.
        q: Number, or 1-d Tensor of size :math:`m`, in [0, 1].
        axis: Axis; ``None`` for all elements.
        keepdims: Whether the reduced axes stay with size 1.

    Returns:
        Tensor of ``input``'s dtype, without the axis; for a 1-d ``q``, with a first axis of size
        :math:`m`. NaN where an element is NaN.

    Raises:
        DTypeError: if ``input`` holds no floats.
        ArgumentError: if ``q`` lies outside [0, 1].

    Example:
        >>> ops.quantile(Tensor([1.0, 2.0, 4.0]), 0.25)
        Tensor(shape=[], dtype=Float32, value= 1.5)
    """
    return _quantile("quantile", input, q, axis, keepdims, False)


def nanquantile(
    input: Tensor, q: object, axis: AxisLike | None = None, keepdims: bool = False
) -> Tensor:
    r"""Returns quantiles as :func:`quantile` does, leaving NaN out.

    Args:
        input: Float Tensor of any shape.
        q: Number, or 1-d Tensor of size :math:`m`, in [0, 1].
        axis: Axis; ``None`` for all elements.
        keepdims: Whether the reduced axes stay with size 1.

    Returns:
        Tensor as of :func:`quantile`; NaN where all elements are.

    Raises:
        DTypeError: if ``input`` holds no floats.
        ArgumentError: if ``q`` lies outside [0, 1].

    Example:
        >>> ops.nanquantile(Tensor([1.0, float("nan"), 4.0]), 0.5)
        Tensor(shape=[], dtype=Float32, value= 2.5)
    """
    return _quantile("nanquantile", input, q, axis, keepdims, True)


# ---- histograms ---------------------------------------------------------------------------------


def histc(input: Tensor, bins: int = 100, min: NumberLike = 0.0, max: NumberLike = 0.0) -> Tensor:
    r"""Counts the elements in ``bins`` bins of equal width between ``min`` and ``max``.

    Args:
        input: Tensor of any shape.
        bins: Number of bins.
        min: Lower end of the first bin.
        max: Upper end of the last bin, which belongs to it. When both ends are 0, the smallest
            and largest elements are the ends.

    Returns:
        Tensor of shape :math:`(bins,)` and ``input``'s dtype, float32 where that is narrower.

    Raises:
        ArgumentError: if ``bins`` is not positive, or ``min`` exceeds ``max``.

    Example:
        >>> ops.histc(Tensor([1.0, 2.0, 1.0]), bins=4, min=0.0, max=3.0)
        Tensor(shape=[4], dtype=Float32, value= [ 0.00000000e+00,  2.00000000e+00,  1.00000000e+00,
        0.00000000e+00])
    """
    require_tensor("histc", input)
    if bins < 1 or min > max:
        raise bad(ArgumentError, "bins must be positive and min at most max", "histc",
                  f"bins={bins}, min={min}, max={max}")  # fmt: skip
    return _counts_of_bins(input, int(bins), float(min), float(max))


@fusible
def _counts_of_bins(input: Tensor, bins: int, min: float, max: float) -> Tensor:
    x = widened(F.reshape(as_float(input), (-1,)))
    low, high = (F.full((), v, dtype=x.aval.dtype) for v in (min, max))
    if min == max == 0 and x.size:
        low, high = rows.reduce_min(x, (0,), False), rows.reduce_max(x, (0,), False)
    flat = F.equal(low, high)  # all in one place: a bin of width 1 around it
    low, high = F.where(flat, low - 1, low), F.where(flat, high + 1, high)
    slot = F.cast(F.floor((x - low) * bins / (high - low)), dtypes.int64)
    slot = F.where(F.equal(x, high), bins - 1, slot)
    inside = F.logical_and(F.greater_equal(x, low), F.less_equal(x, high))
    slot = F.where(inside, F.minimum(F.maximum(slot, 0), bins - 1), bins)
    counts = F.index_update(
        F.zeros((bins + 1,), dtypes.int64), F.ones_like(slot), slot, axes=(0,), mode="add"
    )
    whole = input.dtype if input.dtype.is_integer else x.dtype
    return F.cast(F.basic_index(counts, index=((0, bins, 1),)), whole)


def _infer_bincount(x: TensorType, weights: TensorType, *, minlength: int, size: str) -> TensorType:
    for t, what in ((x, "input"), (weights, "weights")):
        if t.ndim != 1:
            raise ShapeError(f"{what} must be 1-d, not of shape {list(t.shape)}")
    if not x.dtype.is_integer:
        raise DTypeError(f"input must hold integers, not {x.dtype.name}", fix="cast it to int64")
    if x.shape != weights.shape:
        raise ShapeError(f"weights of shape {list(weights.shape)} do not fit {list(x.shape)}")
    if minlength < 0:
        raise ArgumentError(f"minlength must not be negative, but is {minlength}")
    return tensor_type((Dim(size),), weights.dtype, x.device)


def _eager_bincount(x: np.ndarray, weights: np.ndarray, *, minlength: int, size: str) -> np.ndarray:
    if x.size and x.min() < 0:
        raise ArgumentError(f"input must not be negative, but holds {x.min()}")
    if weights.dtype.kind in "iu":
        if weights.strides == (0,) and x.size:  # one weight, seen everywhere
            counts = np.bincount(x.astype(np.int64, copy=False), minlength=minlength)
            return (counts * weights[0]).astype(weights.dtype, copy=False)
        out = np.zeros(max(int(x.max(initial=-1)) + 1, minlength), weights.dtype)
        np.add.at(out, x.astype(np.int64), weights)
        return out
    return np.bincount(x.astype(np.int64), weights, minlength).astype(weights.dtype)


def _count_bins(x: Tensor, weights: Tensor, minlength: int, size: str) -> Tensor:
    least = F.full((1,), minlength - 1, dtype=dtypes.int64)
    count = reduce_max(F.concat([F.cast(x, dtypes.int64), least], 0), axis=(0,), keep_dims=False)
    wide = dtypes.float64 if weights.aval.dtype.is_float else weights.aval.dtype
    zeros = F.cast(F.count_up(count + 1, size) * 0, wide)
    sums = F.index_update(zeros, F.cast(weights, wide), x, axes=(0,), mode="add")
    return F.cast(sums, weights.aval.dtype)


@primitive(
    infer=_infer_bincount,
    traits=Traits(
        Pattern.OPAQUE, Reason("how many bins there are depends on the values"), binds="size"
    ),
    eager=_eager_bincount,
    lower=composed(_count_bins),
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=Reason("no ONNX operator gives one bin per value, and the number of bins depends on them"),
    samples=[
        sample((7,), (7,), dtype=("int64", "float32"), low=0, high=4, minlength=0),
        sample((7,), (7,), dtype=("int32", "int64"), low=0, high=4, minlength=9),
        sample((0,), (0,), dtype=("int32", "float64"), minlength=0),
        sample((3,), (3,), dtype=("int64", "int64"), low=-2, high=-1, minlength=0,
               raises=ArgumentError),
        sample((3,), (3,), minlength=0, raises=DTypeError),
        sample((3,), (4,), dtype=("int64", "float32"), minlength=0, raises=ShapeError),
    ],
)  # fmt: skip
def count_bins(x: Tensor, weights: Tensor, minlength: int, size: str = "bins") -> Tensor:
    """Returns, for every value from 0 to the largest, the sum of the weights of its occurrences.

    Args:
        x: 1-d integer tensor.
        weights: Tensor of the same shape.
        minlength: The least number of results.
        size: What the number of results is called in a graph.
    """
    ...


def bincount(input: Tensor, weights: object = None, minlength: int = 0) -> Tensor:
    r"""Counts how often every integer from 0 to the largest element occurs.

    Args:
        input: 1-d Tensor without negative elements; floats count as the integers next to 0.
        weights: Tensor of the same shape; occurrences add their weight instead of 1.
        minlength: The result has at least this many entries.

    Returns:
        1-d float32 Tensor of counts, or of sums of weights.

    Raises:
        ArgumentError: if an element is negative.

    Example:
        >>> ops.bincount(Tensor([0, 1, 1]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    require_tensor("bincount", input)
    whole = input if input.dtype.is_integer else F.cast(input, dtypes.int64)
    return F.cast(bin_sums(whole, weights, minlength), dtypes.float32)


def bin_sums(input: Tensor, weights: object, minlength: int) -> Tensor:
    """Returns what :func:`bincount` does as int64 counts, or as sums of ``weights``'s dtype.

    Args:
        input: Non-negative integers of shape :math:`(N)`.
        weights: What every element counts, of shape :math:`(N)`; ``None`` for 1.
        minlength: Number of bins, at least.
    """
    require_tensor("bincount", input)
    if weights is None:
        weights = F.broadcast_to(F.ones((), dtypes.int64), input.shape)
    return count_bins(input, weights, int(minlength))
