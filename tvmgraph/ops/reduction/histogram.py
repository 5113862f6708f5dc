"""Histograms."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import Dim, TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, require_tensor
from tvmgraph.ops.common.rows import NOT_DIFFERENTIABLE, composed, widened
from tvmgraph.ops.reduction import rows
from tvmgraph.ops.reduction.rows import reduce_max
from tvmgraph.ops.reduction.statistics import as_float

__all__ = ["bincount", "histc"]


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
