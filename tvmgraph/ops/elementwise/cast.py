"""The ``lower`` column of casts."""

from __future__ import annotations

import functools

from tvmgraph import dtypes
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.conversion import integer_bounds, largest_within
from tvmgraph.ops.common.pointwise import TirMath, pointwise


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
