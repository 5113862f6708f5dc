"""Sums, means, products, extremes and truth over axes, as users call them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.precision import precise
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import DType
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.common.arguments import bad, require_tensor, resolve_axes, resolve_axis
from tvmgraph.ops.reduction import rows

__all__ = [
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmax_with_value", "argmin",
    "argmin_with_value", "count_nonzero", "max", "mean", "min", "prod", "ptp", "sum",
]  # fmt: skip


def accumulated(x: Tensor, dtype: DTypeLike | None = None) -> Tensor:
    """Converts to ``dtype``, or integers and bools to the int64 that sums and products use.

    Args:
        x: Tensor of any shape.
        dtype: The dtype.
    """
    d = x.aval.dtype
    if dtype is not None:
        return F.cast(x, dtypes.dtype_of(dtype))
    return x if d.is_float or d.kind == "c" or d is dtypes.uint64 else F.cast(x, dtypes.int64)


@precise
def sum(
    input: Tensor,
    dim: AxisLike | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Sums over axes: :math:`out = \sum_{i \in dim} input_i`.

    Args:
        input: Tensor of any shape.
        dim: Axis or axes; ``None`` or ``()`` for all.
        keepdim: Whether reduced axes stay with size 1.
        dtype: dtype of sum and result; by default ``input``'s, and int64 for integers and bools.

    Returns:
        Tensor of ``input``'s shape without (or with 1 in) the reduced axes. No elements give 0.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Note:
        float16 and bfloat16 accumulate in float32.

    Example:
        >>> ops.sum(Tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  7.00000000e+00])
    """
    axes = resolve_axes("sum", input, dim, "dim")
    if dtype is not None and dtypes.dtype_of(dtype) is dtypes.bool_:
        return F.cast(rows.reduce_sum(accumulated(input), axes, bool(keepdim)), dtypes.bool_)
    return rows.reduce_sum(accumulated(input, dtype), axes, bool(keepdim))


def mean(x: Tensor, axis: AxisLike | None = None, keep_dims: bool = False) -> Tensor:
    r"""Averages over axes: :math:`out = \frac{1}{n} \sum_{i \in axis} x_i`.

    Args:
        x: Tensor of any shape.
        axis: Axis or axes; ``None`` or ``()`` for all.
        keep_dims: Whether reduced axes stay with size 1.

    Returns:
        Tensor of ``x``'s dtype; the mean of integers is rounded towards zero, that of bools is
        float32.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.mean(Tensor([[1.0, 2.0], [3.0, 4.0]]), 0)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  3.00000000e+00])
    """
    axes = resolve_axes("mean", x, axis)
    d = x.aval.dtype
    if d.kind in "fc":
        return rows.reduce_mean(x, axes, bool(keep_dims))
    if d is dtypes.bool_:
        return rows.reduce_mean(F.cast(x, dtypes.float32), axes, bool(keep_dims))
    count = 1
    for a in axes:
        count *= x.aval.static_shape[a]
    total = rows.reduce_sum(F.cast(x, dtypes.int64), axes, bool(keep_dims))
    return F.cast(F.truncate_div(total, count), d) if count != 1 else F.cast(total, d)


def prod(
    input: Tensor,
    axis: AxisLike | None = None,
    keep_dims: bool = False,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Multiplies over axes: :math:`out = \prod_{i \in axis} input_i`.

    Args:
        input: Tensor of any shape.
        axis: Axis or axes; ``None`` or ``()`` for all.
        keep_dims: Whether reduced axes stay with size 1.
        dtype: dtype of product and result; by default ``input``'s, and int64 for integers and
            bools.

    Returns:
        Tensor of ``input``'s shape without (or with 1 in) the reduced axes. No elements give 1.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.prod(Tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  1.20000000e+01])
    """
    axes = resolve_axes("prod", input, axis)
    return rows.reduce_prod(accumulated(input, dtype), axes, bool(keep_dims))


# ---- extremes -----------------------------------------------------------------------------------


def _masked(name: str, x: Tensor, initial: object, where: object) -> Tensor:
    """Replaces what ``where`` leaves out by ``initial``."""
    if where is None:
        return x
    if initial is None:
        raise bad(
            ArgumentError,
            "where needs an initial value for what it leaves out",
            name,
            f"input={x.aval}, where={getattr(where, 'type', where)}",
            "pass initial=...",
        )
    return F.where(where, x, F.cast(Tensor(initial), x.aval.dtype))


def _with_initial(y: Tensor, initial: object, combine: Callable[..., Tensor]) -> Tensor:
    return y if initial is None else combine(y, F.cast(Tensor(initial), y.aval.dtype))


def amax(
    input: Tensor,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    initial: object = None,
    where: object = None,
) -> Tensor:
    r"""Returns the largest element over axes: :math:`out = \max_{i \in axis} input_i`.

    Args:
        input: Tensor of any shape.
        axis: Axis or axes; ``None`` or ``()`` for all.
        keepdims: Whether reduced axes stay with size 1.
        initial: Number the result is at least.
        where: bool Tensor of the elements to consider; it needs ``initial``.

    Returns:
        Tensor of ``input``'s dtype; NaN where an element is NaN.

    Raises:
        OutOfRangeError: if an axis does not exist.
        ShapeError: if there are no elements.

    Example:
        >>> ops.amax(Tensor([[1.0, 5.0], [3.0, 4.0]]), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  4.00000000e+00])
    """
    axes = resolve_axes("amax", input, axis)
    y = rows.reduce_max(_masked("amax", input, initial, where), axes, bool(keepdims))
    return _with_initial(y, initial, F.maximum)


def amin(
    input: Tensor,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    initial: object = None,
    where: object = None,
) -> Tensor:
    r"""Returns the smallest element over axes: :math:`out = \min_{i \in axis} input_i`.

    Args:
        input: Tensor of any shape.
        axis: Axis or axes; ``None`` or ``()`` for all.
        keepdims: Whether reduced axes stay with size 1.
        initial: Number the result is at most.
        where: bool Tensor of the elements to consider; it needs ``initial``.

    Returns:
        Tensor of ``input``'s dtype; NaN where an element is NaN.

    Raises:
        OutOfRangeError: if an axis does not exist.
        ShapeError: if there are no elements.

    Example:
        >>> ops.amin(Tensor([[1.0, 5.0], [3.0, 4.0]]), 1)
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  3.00000000e+00])
    """
    axes = resolve_axes("amin", input, axis)
    y = rows.reduce_min(_masked("amin", input, initial, where), axes, bool(keepdims))
    return _with_initial(y, initial, F.minimum)


@fusible
def arg_and_value(x: Tensor, axis: int, keep_dims: bool, largest: bool) -> tuple[Tensor, Tensor]:
    """Returns the int64 position of an extreme along an axis, and the extreme.

    The cotangent of the extreme goes to that position alone.

    Args:
        x: Tensor of any shape.
        axis: The axis, not negative.
        keep_dims: Whether it stays with size 1.
        largest: Whether the largest element is looked for rather than the smallest.
    """
    if x.ndim == 0:
        return F.zeros((), dtypes.int64), rows.reduce_max(x, (), False)
    position = rows.arg_extreme(x, axis, True, largest)
    value = F.gather_along(x, position, axis)
    return (position, value) if keep_dims else (F.squeeze(position, axis), F.squeeze(value, axis))


def _extreme(
    name: str, input: Tensor, axis: AxisLike | None, keepdims: bool, initial: object, where: object
) -> tuple[Tensor, Tensor]:
    largest = name == "max"
    combine = F.maximum if largest else F.minimum
    require_tensor(name, input)
    # what is beyond the initial value gives way to it first, which decides about the places
    x = _masked(name, _with_initial(input, initial, combine), initial, where)
    if axis is None:
        reduce = rows.reduce_max if largest else rows.reduce_min
        return reduce(x, tuple(range(x.ndim)), False), F.zeros((), dtypes.int64)
    at, y = arg_and_value(x, resolve_axis(name, input, axis), bool(keepdims), largest)
    return y, at


def max(
    input: Tensor,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    initial: object = None,
    where: object = None,
) -> tuple[Tensor, Tensor]:
    r"""Returns the largest elements along an axis and their positions.

    Args:
        input: Tensor of any shape.
        axis: Axis; ``None`` takes the largest of all elements, and 0 for its position.
        keepdims: Whether the axis stays with size 1.
        initial: Number the values are at least.
        where: bool Tensor of the elements to consider; it needs ``initial``.

    Returns:
        Tuple of the values, of ``input``'s dtype (NaN where an element is), and the int64
        positions of their first occurrence.

    Raises:
        OutOfRangeError: if the axis does not exist.
        ShapeError: if there are no elements.

    Example:
        >>> ops.max(Tensor([[1.0, 5.0], [3.0, 4.0]]), 1)
        (Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  4.00000000e+00]),
         Tensor(shape=[2], dtype=Int64, value= [1, 1]))
    """
    return _extreme("max", input, axis, keepdims, initial, where)


def min(
    input: Tensor,
    axis: AxisLike | None = None,
    keepdims: bool = False,
    *,
    initial: object = None,
    where: object = None,
) -> tuple[Tensor, Tensor]:
    r"""Returns the smallest elements along an axis and their positions.

    Args:
        input: Tensor of any shape.
        axis: Axis; ``None`` takes the smallest of all elements, and 0 for its position.
        keepdims: Whether the axis stays with size 1.
        initial: Number the values are at most.
        where: bool Tensor of the elements to consider; it needs ``initial``.

    Returns:
        Tuple of the values, of ``input``'s dtype (NaN where an element is), and the int64
        positions of their first occurrence.

    Raises:
        OutOfRangeError: if the axis does not exist.
        ShapeError: if there are no elements.

    Example:
        >>> ops.min(Tensor([[1.0, 5.0], [3.0, 4.0]]), 1)
        (Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  3.00000000e+00]),
         Tensor(shape=[2], dtype=Int64, value= [0, 0]))
    """
    return _extreme("min", input, axis, keepdims, initial, where)


def _argument(name: str, x: Tensor, axis: AxisLike | None, keep: bool, dtype: DType) -> Tensor:
    require_tensor(name, x)
    largest = name == "argmax"
    if x.ndim == 0 or axis is None:
        y = rows.arg_extreme(F.reshape(x, (-1,)), 0, False, largest)
    else:
        y = rows.arg_extreme(x, resolve_axis(name, x, axis), bool(keep), largest)
    return F.cast(y, dtype)


def argmax(input: Tensor, dim: AxisLike | None = None, keepdim: bool = False) -> Tensor:
    r"""Returns the position of the first largest element.

    Args:
        input: Tensor of any shape.
        dim: Axis; ``None`` counts positions in row-major order over all elements.
        keepdim: Whether the axis stays with size 1; without ``dim`` there is none to stay.

    Returns:
        int64 Tensor of ``input``'s shape without (or with 1 in) the axis. NaN counts as largest.

    Raises:
        OutOfRangeError: if the axis does not exist.
        ShapeError: if there are no elements.

    Example:
        >>> ops.argmax(Tensor([[1.0, 5.0], [3.0, 4.0]]), 1)
        Tensor(shape=[2], dtype=Int64, value= [1, 1])
    """
    return _argument("argmax", input, dim, keepdim, dtypes.int64)


def argmin(input: Tensor, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    r"""Returns the position of the first smallest element.

    Args:
        input: Tensor of any shape.
        axis: Axis; ``None`` counts positions in row-major order over all elements.
        keepdims: Whether the axis stays with size 1; without ``axis`` there is none to stay.

    Returns:
        int32 Tensor of ``input``'s shape without (or with 1 in) the axis. NaN counts as smallest.

    Raises:
        OutOfRangeError: if the axis does not exist.
        ShapeError: if there are no elements.

    Example:
        >>> ops.argmin(Tensor([[1.0, 5.0], [3.0, 4.0]]), 1)
        Tensor(shape=[2], dtype=Int32, value= [0, 0])
    """
    return _argument("argmin", input, axis, keepdims, dtypes.int32)


def argmax_with_value(
    input: Tensor, axis: int = 0, keep_dims: bool = False
) -> tuple[Tensor, Tensor]:
    r"""Returns the positions of the first largest elements along an axis, and the elements.

    Args:
        input: Tensor of any shape.
        axis: Axis.
        keep_dims: Whether the axis stays with size 1.

    Returns:
        Tuple of int64 positions and values of ``input``'s dtype.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.argmax_with_value(Tensor([[1.0, 5.0], [3.0, 4.0]]), 1)
        (Tensor(shape=[2], dtype=Int64, value= [1, 1]), Tensor(shape=[2], dtype=Float32, value= [
         5.00000000e+00,  4.00000000e+00]))
    """
    axis = resolve_axis("argmax_with_value", input, axis)
    return arg_and_value(input, axis, bool(keep_dims), True)


def argmin_with_value(
    input: Tensor, axis: int = 0, keep_dims: bool = False
) -> tuple[Tensor, Tensor]:
    r"""Returns the positions of the first smallest elements along an axis, and the elements.

    Args:
        input: Tensor of any shape.
        axis: Axis.
        keep_dims: Whether the axis stays with size 1.

    Returns:
        Tuple of int64 positions and values of ``input``'s dtype.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.argmin_with_value(Tensor([[1.0, 5.0], [3.0, 4.0]]), 1)
        (Tensor(shape=[2], dtype=Int64, value= [0, 0]), Tensor(shape=[2], dtype=Float32, value= [
         1.00000000e+00,  3.00000000e+00]))
    """
    axis = resolve_axis("argmin_with_value", input, axis)
    return arg_and_value(input, axis, bool(keep_dims), False)


def aminmax(input: Tensor, *, axis: AxisLike = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    r"""Returns the smallest and the largest elements over an axis.

    Args:
        input: Tensor of any shape.
        axis: Axis; ``None`` for all.
        keepdims: Whether the axis stays with size 1.

    Returns:
        Tuple of two tensors of ``input``'s dtype.

    Raises:
        OutOfRangeError: if the axis does not exist.

    Example:
        >>> ops.aminmax(Tensor([[1.0, 5.0], [3.0, 4.0]]), axis=1)
        (Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  3.00000000e+00]),
         Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  4.00000000e+00]))
    """
    return amin(input, axis, keepdims), amax(input, axis, keepdims)


def ptp(input: Tensor, axis: AxisLike | None = None, keepdims: bool = False) -> Tensor:
    r"""Returns the range of values over axes: :math:`\max - \min`.

    Args:
        input: Tensor of any shape.
        axis: Axis or axes; ``None`` for all.
        keepdims: Whether reduced axes stay with size 1.

    Returns:
        Tensor of ``input``'s dtype.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.ptp(Tensor([1.0, 5.0, 3.0]))
        Tensor(shape=[], dtype=Float32, value= 4)
    """
    return amax(input, axis, keepdims) - amin(input, axis, keepdims)


# ---- truth --------------------------------------------------------------------------------------


def all(input: Tensor, axis: AxisLike | None = None, keep_dims: bool = False) -> Tensor:
    r"""Returns whether no element over the axes is zero.

    Args:
        input: Tensor of any shape and dtype.
        axis: Axis or axes; ``None`` or ``()`` for all.
        keep_dims: Whether reduced axes stay with size 1.

    Returns:
        bool Tensor; true for no elements.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.all(Tensor([[True, False], [True, True]]), 1)
        Tensor(shape=[2], dtype=Bool, value= [False,  True])
    """
    return rows.reduce_all(input, resolve_axes("all", input, axis), bool(keep_dims))


def any(input: Tensor, axis: AxisLike | None = None, keep_dims: bool = False) -> Tensor:
    r"""Returns whether an element over the axes is not zero.

    Args:
        input: Tensor of any shape and dtype.
        axis: Axis or axes; ``None`` or ``()`` for all.
        keep_dims: Whether reduced axes stay with size 1.

    Returns:
        bool Tensor, or 0 and 1 in uint8 for an input of uint8; false for no elements.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.any(Tensor([[True, False], [False, False]]), 1)
        Tensor(shape=[2], dtype=Bool, value= [ True, False])
    """
    found = rows.reduce_any(input, resolve_axes("any", input, axis), bool(keep_dims))
    return F.cast(found, input.dtype) if input.dtype is dtypes.uint8 else found


def count_nonzero(
    x: Tensor, axis: AxisLike = (), keep_dims: bool = False, dtype: DTypeLike = dtypes.int32
) -> Tensor:
    r"""Counts the elements over axes that are not zero.

    Args:
        x: Tensor of any shape and dtype.
        axis: Axis or axes; ``()`` or ``None`` for all.
        keep_dims: Whether reduced axes stay with size 1.
        dtype: dtype of the result.

    Returns:
        Tensor of counts.

    Raises:
        OutOfRangeError: if an axis does not exist.

    Example:
        >>> ops.count_nonzero(Tensor([[0, 3], [4, 5]]), 1)
        Tensor(shape=[2], dtype=Int32, value= [1, 2])
    """
    axes = resolve_axes("count_nonzero", x, axis)
    d = dtypes.dtype_of(dtype)
    truth = x if x.aval.dtype is dtypes.bool_ else F.not_equal(x, np.zeros((), x.aval.dtype.numpy))
    wide = d if d.is_integer else dtypes.int64
    return F.cast(rows.reduce_sum(F.cast(truth, wide), axes, bool(keep_dims)), d)
