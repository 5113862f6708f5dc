"""Norms of vectors and matrices, written with other operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.precision import precise
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, OutOfRangeError, TypeOrValueError
from tvmgraph.ops.common.arguments import bad, require, require_tensor, resolve_axes, resolve_axis
from tvmgraph.ops.common.rows import LOW_PRECISION
from tvmgraph.ops.reduction import rows
from tvmgraph.ops.reduction.statistics import as_float

__all__ = ["matrix_norm", "norm", "renorm", "vector_norm"]

_EXTREMES = (math.inf, -math.inf)

MATRIX_ORDERS = ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)


def _safe_root(total: Tensor, power: object) -> Tensor:
    """Returns ``total ** power`` with the cotangent 0, not infinity, where ``total`` is 0."""
    zero = F.equal(total, 0)
    filled = F.where(zero, 1, total)
    return F.where(zero, 0, F.sqrt(filled) if power == 0.5 else F.pow(filled, power))


@fusible
def _vector_norm(x: Tensor, order: Any, axes: tuple[int, ...], keep: bool) -> Tensor:
    x = F.abs(x) if x.aval.dtype.kind == "c" else x
    d = x.aval.dtype
    if d in LOW_PRECISION:
        return F.cast(_vector_norm(F.cast(x, dtypes.float32), order, axes, keep), d)
    if order == 2:
        return _safe_root(rows.reduce_sum(x * x, axes, keep), 0.5)
    if order == 0:
        counted = d if d in dtypes.FLOATS else dtypes.int64
        return rows.reduce_sum(F.cast(F.not_equal(x, 0), counted), axes, keep)
    size = F.abs(x)
    if order == math.inf:
        return rows.reduce_max(size, axes, keep)
    if order == -math.inf:
        return rows.reduce_min(size, axes, keep)
    if order == 1:
        return rows.reduce_sum(size, axes, keep)
    if order < 0:  # zero elements make the norm zero
        return F.pow(rows.reduce_sum(F.pow(size, order), axes, keep), 1 / order)
    return _safe_root(rows.reduce_sum(F.pow(size, order), axes, keep), 1 / order)


def _matrix_norm(x: Tensor, order: Any, first: int, second: int, keep: bool) -> Tensor:
    d = x.aval.dtype
    if d in LOW_PRECISION:
        y = _matrix_norm(F.cast(x, dtypes.float32), order, first, second, keep)
        return y if order in ("nuc", 2, -2) else F.cast(y, d)
    if order == "fro":
        return _vector_norm(x, 2, tuple(sorted((first, second))), keep)
    if order in ("nuc", 2, -2):
        values = F.svd(F.moveaxis(x, (first, second), (-2, -1)), False, compute_uv=False)
        last = (values.ndim - 1,)
        reduce = {"nuc": rows.reduce_sum, 2: rows.reduce_max, -2: rows.reduce_min}[order]
        y = reduce(values, last, False)
    else:
        inner, outer = (first, second) if abs(order) == 1 else (second, first)
        sums = rows.reduce_sum(F.abs(x), (inner,), True)
        reduce = rows.reduce_max if order > 0 else rows.reduce_min
        y = F.squeeze(reduce(sums, (outer,), True), (first, second))
    if not keep:
        return y
    low, high = sorted((first, second))
    return F.expand_dims(F.expand_dims(y, low), high)


def p_norm(difference: Tensor, p: float, axis: tuple[int, ...]) -> Tensor:
    r"""Returns :math:`(\sum_i |d_i|^p)^{1/p}`, with a zero gradient at zero.

    Args:
        difference: Tensor of floats.
        p: The exponent; 0 counts elements that are not zero, infinity takes the largest.
        axis: The axes that are summed over.
    """
    size = F.abs(difference)
    if p == 0:
        counted = F.cast(size != 0, difference.dtype)
        return F.reduce_sum(counted, axis=axis, keep_dims=False)
    if p == math.inf:
        return F.amax(size, axis)
    if p == 1:
        return F.reduce_sum(size, axis=axis, keep_dims=False)
    if p == 2:
        total = F.reduce_sum(difference * difference, axis=axis, keep_dims=False)
        return _smooth(total, F.sqrt)
    total = F.reduce_sum(_smooth(size, lambda s: F.pow(s, p)), axis=axis, keep_dims=False)
    return _smooth(total, lambda t: F.pow(t, 1.0 / p))


def _smooth(x: Tensor, power: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies a power that keeps 0, with the derivative 0 there, as that of a norm."""
    zero = x == 0
    safe = F.where(zero, F.ones_like(x), x)
    return F.where(zero, F.zeros_like(x), power(safe))


def _prepared(x: Tensor, dtype: DTypeLike | None, order: object = None) -> Tensor:
    if dtype is not None:
        return F.cast(x, dtypes.dtype_of(dtype))
    is_whole = order == 0 or (order in _EXTREMES and x.dtype.kind in "iu")
    return x if is_whole else as_float(x)


def _prepared_matrix(x: Tensor, dtype: DTypeLike | None, order: object) -> Tensor:
    """Sums of columns of integers are int64, those of rows what they were, as in MindSpore."""
    if dtype is None and order in (1, -1) and x.dtype.kind in "iub":
        return F.cast(x, dtypes.int64)
    holds_sums = x.dtype in (dtypes.int32, dtypes.int64)
    return x if dtype is None and order in _EXTREMES and holds_sums else _prepared(x, dtype)


def _require_order(name: str, order: object, x: Tensor) -> None:
    if isinstance(order, bool) or not isinstance(order, (int, float, np.number)):
        raise bad(TypeOrValueError, "ord must be a number", name, f"input={x.aval}, ord={order!r}")


def vector_norm(
    x: Tensor,
    ord: object = 2,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Returns :math:`(\sum |x_i|^{ord})^{1 / ord}` over axes.

    Args:
        x: Tensor of any shape; integers are computed in float32 unless ``ord`` is infinite or 0,
            which counts in int64.
        ord: Order: a number, where 0 counts the elements that are not zero, and plus or minus
            infinity give the largest or smallest :math:`|x_i|`.
        axis: Axis or axes; ``None`` for all.
        keepdims: Whether reduced axes stay with size 1.
        dtype: dtype of computation and result; by default ``x``'s.

    Returns:
        Tensor of ``x``'s shape without (or with 1 in) the reduced axes.

    Raises:
        ArgumentError: if ``ord`` is no number.
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.vector_norm(Tensor([3.0, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 5)
    """
    axes = resolve_axes("vector_norm", x, axis)
    _require_order("vector_norm", ord, x)
    return _vector_norm(_prepared(x, dtype, ord), ord, axes, bool(keepdims))


def matrix_norm(
    A: Tensor,
    ord: object = "fro",
    axis: AxisLike = (-2, -1),
    keepdims: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Returns a norm of the matrices that lie in two axes.

    Args:
        A: Tensor of at least two axes; integers are computed in float32, but those of 1 and -1
            in int64, and int32 and int64 of plus and minus infinity as they are.
        ord: ``"fro"`` (root of the sum of squares), ``"nuc"`` (sum of singular values), 1 or -1
            (largest or smallest absolute column sum), infinity or minus infinity (row sum), 2 or
            -2 (largest or smallest singular value).
        axis: The axes of rows and columns.
        keepdims: Whether the two axes stay with size 1.
        dtype: dtype of computation and result; by default ``A``'s.

    Returns:
        Tensor of ``A``'s shape without (or with 1 in) the two axes.

    Raises:
        ArgumentError: if ``ord`` is none of these, or ``axis`` does not name two axes.
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.matrix_norm(Tensor([[3.0, 4.0], [1.0, 2.0]]), 1)
        Tensor(shape=[], dtype=Float32, value= 6)
    """
    return _checked_matrix_norm("matrix_norm", A, ord, axis, keepdims, dtype)


def _checked_matrix_norm(
    name: str, x: Tensor, order: object, axis: AxisLike, keepdims: bool, dtype: DTypeLike | None
) -> Tensor:
    require_tensor(name, x, "A")
    got = f"A={x.aval}, ord={order!r}, axis={axis!r}"
    if order not in MATRIX_ORDERS:
        raise bad(ArgumentError, "ord must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2", name, got)
    if not isinstance(axis, (tuple, list)) or len(axis) != 2 or x.ndim < 2:
        raise bad(ArgumentError, "a matrix norm needs two axes", name, got)
    first, second = (resolve_axis(name, x, a) for a in axis)
    if first == second:
        raise bad(ArgumentError, "the two axes must differ", name, got)
    return _matrix_norm(_prepared_matrix(x, dtype, order), order, first, second, bool(keepdims))


def norm(
    A: Tensor,
    ord: object = None,
    dim: AxisLike | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Returns a norm of vectors (one axis) or matrices (two axes).

    Args:
        A: Tensor of any shape; integers are computed in float32 unless ``ord`` needs no roots.
        ord: Kind of norm, see :func:`vector_norm` and :func:`matrix_norm`; ``None`` gives the
            root of the sum of squares.
        dim: Axis of vectors, or the two axes of matrices; ``None`` takes all axes, of which there
            must be one or two when ``ord`` is given.
        keepdim: Whether the axes stay with size 1.
        dtype: dtype of computation and result; by default ``A``'s.

    Returns:
        Tensor of ``A``'s shape without (or with 1 in) the axes.

    Raises:
        ArgumentError: if ``ord`` does not fit the number of axes.
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.norm(Tensor([[3.0, 4.0], [1.0, 2.0]]), dim=1)
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  2.23606801e+00])
    """
    require_tensor("norm", A, "A")
    if ord is None:
        axes = resolve_axes("norm", A, dim, "dim")
        return _vector_norm(_prepared(A, dtype), 2, axes, bool(keepdim))
    if dim is None:
        require(A.ndim in (1, 2), "without dim, a given ord needs a 1-d or 2-d tensor", "norm",
                ArgumentError, A=A, ord=ord, fix="pass dim=...")  # fmt: skip
        dim = tuple(range(A.ndim))
    if isinstance(dim, (tuple, list)) and len(dim) == 2:
        return _checked_matrix_norm("norm", A, ord, dim, keepdim, dtype)
    axes = resolve_axes("norm", A, dim, "dim")
    _require_order("norm", ord, A)
    return _vector_norm(_prepared(A, dtype, ord), ord, axes, bool(keepdim))


@precise
def renorm(input: Tensor, p: float, axis: int, maxnorm: float) -> Tensor:
    r"""Scales the slices along an axis whose norm exceeds ``maxnorm`` down to it.

    Args:
        input: Float Tensor of at least two axes.
        p: Order of the norm.
        axis: Axis whose positions are the slices.
        maxnorm: Largest norm that stays.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        OutOfRangeError: if the axis does not exist.
        ArgumentError: if ``p`` or ``maxnorm`` is not positive.

    Example:
        >>> ops.renorm(Tensor([[1.0, 2.0], [3.0, 4.0]]), 2, 0, 2.0)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 8.94427180e-01,  1.78885436e+00],
         [ 1.20000005e+00,  1.60000002e+00]])
    """
    axis = resolve_axis("renorm", input, axis)
    got = f"input={input.aval}, p={p!r}, axis={axis}, maxnorm={maxnorm!r}"
    if input.ndim < 2:
        raise bad(OutOfRangeError, "input must have at least two axes", "renorm", got)
    if p <= 0 or maxnorm <= 0:
        raise bad(ArgumentError, "p and maxnorm must be positive", "renorm", got)
    return _limited_slices(input, p, axis, float(maxnorm))


@fusible
def _limited_slices(x: Tensor, order: float, axis: int, longest: float) -> Tensor:
    others = tuple(a for a in range(x.ndim) if a != axis)
    size = _vector_norm(x, order, others, True)
    too_long = F.greater(size, longest)
    scale = F.where(too_long, longest / F.where(too_long, size, 1), 1)
    return x * F.cast(scale, x.aval.dtype)
