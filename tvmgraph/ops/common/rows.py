"""Helpers shared by the rows: cotangent broadcasting and common sample sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import F, Sample, sample
from tvmgraph.core.sizes import is_one, same_form
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DTypeError, ShapeError

LOW_PRECISION = (dtypes.float16, dtypes.bfloat16)
NOT_DIFFERENTIABLE = "the result is not a differentiable function of the inputs"


def composed(function: Callable[..., object]) -> Callable[..., Expr]:
    """Returns the lowering of a row that other rows express.

    Args:
        function: Takes the row's tensors and attributes, and applies operators.
    """

    def lower(R: Builder, *args: Expr, **attrs: object) -> Expr:
        return R.inline(function, args, attrs)

    return lower


def sum_to(g: Tensor, x: Tensor) -> Tensor:
    """Sums a cotangent over the axes along which ``x`` was broadcast.

    Args:
        g: The cotangent, of the broadcast shape.
        x: The operand.

    Returns:
        Tensor of ``x``'s shape.
    """
    if same_form(g.aval.shape, x.aval.shape):
        return g
    lead = g.ndim - x.ndim
    axes = tuple(range(lead)) + tuple(
        lead + i
        for i, d in enumerate(x.aval.shape)
        if is_one(d) and not is_one(g.aval.shape[lead + i])
    )
    if axes:
        g = F.reduce_sum(g, axis=axes, keep_dims=False)
    return g if same_form(g.aval.shape, x.aval.shape) else F.reshape(g, x.aval.shape)


def wide_dtype(dtype: dtypes.DType) -> dtypes.DType:
    """Returns the dtype that elements of a dtype are computed in: float32 for half precision.

    Args:
        dtype: Any dtype.
    """
    return dtypes.float32 if dtype in LOW_PRECISION else dtype


def widen(x: np.ndarray) -> np.ndarray:
    """Returns half precision as float32, everything else unchanged.

    Args:
        x: Array of any dtype.
    """
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def widened(x: Tensor) -> Tensor:
    """Returns half precision as float32, everything else unchanged.

    Args:
        x: Tensor of any dtype.
    """
    return F.cast(x, dtypes.float32) if x.aval.dtype in LOW_PRECISION else x


def lower_wide(R: Builder, build: Callable[..., Expr], *xs: Expr) -> Expr:
    """Lowers a computation that half precision takes in float32, rounded once at the end.

    Args:
        R: The builder.
        build: Emits the computation of operands of full precision.
        *xs: The operands, of one dtype.
    """
    dtype = R.type(xs[0]).dtype
    if dtype not in LOW_PRECISION:
        return build(*xs)
    y = R.emit(build(*[R.emit(R.op.astype(x, "float32")) for x in xs]))
    return R.op.astype(y, dtype.name)


def unary_samples(low: float = -2.0, high: float = 2.0, **kwargs: Any) -> list[Sample]:
    """Samples of a unary elementwise row: usual, 0-d, empty, odd sizes, half precision.

    Args:
        low: Smallest value.
        high: Largest value.
        **kwargs: More arguments of :func:`tvmgraph.core.op.sample`.
    """
    return [
        sample((3, 4), low=low, high=high, **kwargs),
        sample((), low=low, high=high, **kwargs),
        sample((0, 2), low=low, high=high, grad=False, **kwargs),
        sample((17, 1, 3), low=low, high=high, grad=False, **kwargs),
        sample((5,), dtype="float16", low=low, high=high, grad=False, **kwargs),
        sample((5,), dtype="float64", low=low, high=high, **kwargs),
    ]


def binary_samples(low: float = -2.0, high: float = 2.0, **kwargs: Any) -> list[Sample]:
    """Samples of a binary broadcasting row, with the error it must raise.

    Args:
        low: Smallest value.
        high: Largest value.
        **kwargs: More arguments of :func:`tvmgraph.core.op.sample`.
    """
    return [
        sample((2, 3), (2, 3), low=low, high=high, **kwargs),
        sample((4, 1, 3), (5, 1), low=low, high=high, **kwargs),
        sample((), (3,), low=low, high=high, **kwargs),
        sample((0, 3), (1, 3), low=low, high=high, grad=False, **kwargs),
        sample((2, 3), (2, 4), raises=ShapeError, **kwargs),
    ]


def extreme_values(dtype: str = "float32") -> np.ndarray:
    """An array of zeros, infinities, NaN, denormals and large values.

    Args:
        dtype: Name of a floating-point dtype.
    """
    tiny = np.finfo(dtype).tiny
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, tiny / 2, -tiny, 1e30, -1e30, 88.0, -100.0]
    return np.array(values, dtype)


__all__ = [
    "NOT_DIFFERENTIABLE", "DTypeError", "F", "ShapeError", "binary_samples", "composed",
    "extreme_values", "sample", "sum_to", "unary_samples",
]  # fmt: skip


def on_diagonal(R: Builder, row: Expr, col: Expr, offset: int) -> Expr:
    """Emits whether an element lies on a diagonal, in the narrow integers that vectors are for.

    Args:
        R: The builder.
        row: Index of the row.
        col: Index of the column.
        offset: Which diagonal: that many columns to the right of the main one.
    """
    row, col = (R.tir.Cast("int32", index) for index in (row, col))
    return col == row + offset


def lower_full(R: Builder, x: Expr, t: TensorType, value: object = 0) -> Expr:
    """Emits a tensor of type ``t`` filled with ``value``.

    It takes ``x``, any tensor at hand, as an operand that it does not read: TVM would otherwise
    fold it to a constant, and cannot store empty ones. ``relax.op.full`` also rejects NaN.

    Args:
        R: The builder.
        x: Any tensor at hand.
        t: Type of the result.
        value: The number.
    """

    def element(*_index: Expr) -> Expr:
        return R.tir.const(value, t.dtype.name)

    def full(_: Expr, shape: Expr) -> Expr:
        return R.te.compute(shape, element, name="full")

    return R.emit_te(full, x, [*R.shape(t.shape)])
