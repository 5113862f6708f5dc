"""Triangles of matrices: tril, triu and their indices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import MATRIX, Pattern
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, require

__all__ = ["matrix_band_part", "tril", "tril_indices", "triu", "triu_indices"]


def _infer_triangle(input: TensorType, *, diagonal: int) -> TensorType:
    if input.ndim < 2:
        raise ShapeError(f"input must have at least 2 axes, not {input.ndim}")
    if isinstance(diagonal, bool) or not isinstance(diagonal, int):
        raise DTypeError(f"diagonal must be an int, not {type(diagonal).__name__}")
    return input


def _triangle_samples() -> list[Sample]:
    nan = np.array([[np.nan, np.inf], [-np.inf, np.nan]], np.float32)
    return [
        sample((3, 4)),
        sample((2, 17, 3), diagonal=-1),
        sample((4, 3), diagonal=2, dtype="int32"),
        sample((3, 3), diagonal=7, dtype="bool"),
        sample((2, 0, 3), grad=False),
        sample((3, 3), diagonal=1, dtype="float16", grad=False),
        sample(nan, grad=False),
        sample((3,), raises=ShapeError),
        sample((3, 3), attrs={"diagonal": 0.5}, raises=DTypeError),
    ]


def _onnx_triangle(upper: int) -> Callable[..., OnnxNamed]:
    def column(O: OnnxOps, x: OnnxNamed, *, diagonal: int) -> OnnxNamed:
        d = x.type.dtype
        if d in (dtypes.bool_, dtypes.float32, dtypes.float64, dtypes.int64):
            return O.Trilu(x, np.array(diagonal), upper=upper)
        # ONNX Runtime has Trilu for few dtypes only
        if not x.type.with_shape(x.type.shape[-2:]).is_static:
            wide = dtypes.float32 if d.is_float else dtypes.int64
            kept = O.Trilu(O.Cast(x, to=O.dtype(wide)), np.array(diagonal), upper=upper)
            return O.Cast(kept, to=O.dtype(d))
        rows, cols = x.type.static_shape[-2:]
        mask = (np.triu if upper else np.tril)(np.ones((rows, cols), bool), diagonal)
        return O.Where(O.const(mask), x, O.const(0, d))

    return column


def _lower_triangle(upper: bool) -> Callable[..., Expr]:
    def column(R: Builder, x: Expr, *, diagonal: int) -> Expr:
        def triangle(a: Expr) -> Expr:
            def element(*index: Expr) -> Expr:
                row, col = index[-2:]
                kept = col - row >= diagonal if upper else col - row <= diagonal
                return R.tir.Select(kept, a(*index), R.tir.const(0, a.dtype))

            return R.te.compute(a.shape, element, name="triu" if upper else "tril")

        return R.emit_te(triangle, x)

    return column


@primitive(
    infer=_infer_triangle,
    traits=replace(MATRIX, pattern=Pattern.GATHER),
    eager=lambda x, *, diagonal: np.tril(x, diagonal),
    lower=_lower_triangle(upper=False),
    vjp=lambda g, y, x, *, diagonal: (F.tril(g, diagonal),),
    onnx=_onnx_triangle(0),
    samples=_triangle_samples(),
)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Keeps the lower triangle of the last two axes and sets the rest to zero.

    Args:
        input: Tensor with at least two axes.
        diagonal: The last diagonal to keep; positive lies above the main one.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``input`` has fewer than two axes.

    Example:
        >>> ops.tril(Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 0],
         [3, 4]])
    """
    ...


@primitive(
    infer=_infer_triangle,
    traits=replace(MATRIX, pattern=Pattern.GATHER),
    eager=lambda x, *, diagonal: np.triu(x, diagonal),
    lower=_lower_triangle(upper=True),
    vjp=lambda g, y, x, *, diagonal: (F.triu(g, diagonal),),
    onnx=_onnx_triangle(1),
    samples=_triangle_samples(),
)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Keeps the upper triangle of the last two axes and sets the rest to zero.

    Args:
        input: Tensor with at least two axes.
        diagonal: The first diagonal to keep; negative lies below the main one.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if ``input`` has fewer than two axes.

    Example:
        >>> ops.triu(Tensor([[1, 2], [3, 4]]))
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [0, 4]])
    """
    ...


def matrix_band_part(x: Tensor, lower: int | Tensor, upper: int | Tensor) -> Tensor:
    """Keeps a band around the main diagonal of the last two axes, zeros elsewhere.

    Args:
        x: Tensor with at least two axes.
        lower: Number of diagonals to keep below the main one; negative keeps all. A tensor of
            integers broadcasts with the matrices.
        upper: Number of diagonals to keep above the main one, in the same way.

    Returns:
        Tensor of ``x``'s type.

    Example:
        >>> ops.matrix_band_part(Tensor([[1, 2], [3, 4]]), 0, -1)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 2],
         [0, 4]])
    """
    if isinstance(lower, Tensor) or isinstance(upper, Tensor):
        apart = F.sub(F.reshape(F.arange(x.shape[-2]), (-1, 1)), F.arange(x.shape[-1]))
        kept = F.ones_like(apart, dtype=dtypes.bool_)
        for n, distance in ((lower, apart), (upper, F.neg(apart))):
            n = F.cast(n, dtypes.int64) if isinstance(n, Tensor) else Tensor(n, dtypes.int64)
            kept = F.logical_and(kept, F.logical_or(F.less(n, 0), F.less_equal(distance, n)))
        return F.where(kept, x, F.zeros_like(x))
    below, above = (as_int(v, "matrix_band_part", "the band") for v in (lower, upper))
    y = x if below < 0 else triu(x, -below)
    return y if above < 0 else tril(y, above)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = dtypes.int64) -> Tensor:
    """Returns the indices of the lower triangle of a matrix, row by row.

    Args:
        row: Number of rows.
        col: Number of columns.
        offset: The last diagonal included.
        dtype: int32 or int64.

    Returns:
        Tensor of shape :math:`(2, N)`: row numbers and column numbers.

    Raises:
        ArgumentError: if a size is negative.

    Example:
        >>> ops.tril_indices(2, 2)
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[0, 1, 1],
         [0, 0, 1]])
    """
    return _triangle_indices(np.tril_indices, row, col, offset, dtype, "tril_indices")


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = dtypes.int64) -> Tensor:
    """Returns the indices of the upper triangle of a matrix, row by row.

    Args:
        row: Number of rows.
        col: Number of columns.
        offset: The first diagonal included.
        dtype: int32 or int64.

    Returns:
        Tensor of shape :math:`(2, N)`: row numbers and column numbers.

    Raises:
        ArgumentError: if a size is negative.

    Example:
        >>> ops.triu_indices(2, 2)
        Tensor(shape=[2, 3], dtype=Int64, value=
        [[0, 0, 1],
         [0, 1, 1]])
    """
    return _triangle_indices(np.triu_indices, row, col, offset, dtype, "triu_indices")


def _triangle_indices(
    find: Callable[..., tuple[np.ndarray, ...]],
    row: object,
    col: object,
    offset: object,
    dtype: DTypeLike,
    op: str,
) -> Tensor:
    n, m, k = (as_int(v, op, "row, col and offset") for v in (row, col, offset))
    require(n >= 0 and m >= 0, "row and col must not be negative", op, ArgumentError, row=n, col=m)
    wanted = dtypes.dtype_of(dtype)
    if wanted not in (dtypes.int32, dtypes.int64):
        raise bad(DTypeError, "dtype must be int32 or int64", op, f"dtype={dtype}")
    return Tensor(np.stack(find(n, k, m)).astype(wanted.numpy))
