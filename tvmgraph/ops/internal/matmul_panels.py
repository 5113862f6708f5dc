"""The matrix product with weights that were rearranged ahead of time."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import Builder, Expr
from tvmgraph.core.op import sample
from tvmgraph.core.storage import aligned_empty
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.dtypes import DType
from tvmgraph.errors import ShapeError
from tvmgraph.ops.internal.rows import internal_row

__all__ = ["matmul_panels"]


#: Elements along K that lie side by side in a panel (VNNI layout), for types of which processors
#: sum several products per 32 bits.
VNNI_SIZES = {dtypes.bfloat16: 2, dtypes.int8: 4}
#: Panels in VNNI layout have a multiple of so many words along K, those beyond it 0: a tile's
#: (AMX).
_STEP = 16
_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)


def panel_shape(k_size: int, columns: int, width: int, dtype: DType) -> tuple[int, ...]:
    """The shape of the panels of a (K, columns) matrix.

    Args:
        k_size: Rows K of the matrix.
        columns: Its columns.
        width: Columns of a panel.
        dtype: dtype of the matrix; of some, neighbours along K make words.
    """
    vnni_size = VNNI_SIZES.get(dtype)
    count = -(-columns // width)
    if vnni_size is None:
        return (count, k_size, width)
    return (count, -(-k_size // (vnni_size * _STEP)) * _STEP, width, vnni_size)


def to_panels(weight: np.ndarray, width: int) -> np.ndarray:
    """Cuts the columns of a (K, N) matrix into panels, of the shape :func:`panel_shape` gives.

    Args:
        weight: Array of shape (K, N).
        width: Columns of a panel.
    """
    k_size, columns = weight.shape
    dtype = dtypes.dtype_of(weight.dtype)
    panels = aligned_empty(panel_shape(k_size, columns, width, dtype), weight.dtype)
    whole = columns // width
    if whole < len(panels) or dtype in VNNI_SIZES:
        panels[...] = 0
    for first in range(VNNI_SIZES.get(dtype, 1)):  # one member of every word after the other
        part = weight[first :: VNNI_SIZES.get(dtype, 1)]
        to = panels[:, : len(part), :, first] if dtype in VNNI_SIZES else panels
        body = part[:, : whole * width].reshape(len(part), whole, width)
        np.copyto(to[:whole], body.transpose(1, 0, 2))
        if whole < len(panels):
            to[whole, :, : columns - whole * width] = part[:, whole * width :]
    return panels


def _infer(input: TensorType, panels: TensorType, *, columns: int) -> TensorType:
    rules.require_dtype(input, (*_FLOATS, *VNNI_SIZES))
    rules.require_same_dtype(input, panels)
    if input.ndim < 1 or panels.ndim != 3 + (input.dtype in VNNI_SIZES):
        raise ShapeError("panels have 3 axes, and a fourth one for the members of a word")
    k_size, width = input.shape[-1], panels.shape[2]
    if not isinstance(width, int) or not isinstance(k_size, int):
        raise ShapeError("the extents of panels are fixed")
    if panels.shape != panel_shape(k_size, columns, width, input.dtype):
        raise ShapeError(f"these are no panels of a matrix of {k_size} x {columns}")
    result = input.with_shape((*input.shape[:-1], columns))
    return result.with_dtype(dtypes.int32) if input.dtype is dtypes.int8 else result


def _eager(input: np.ndarray, panels: np.ndarray, *, columns: int) -> np.ndarray:
    dtype = dtypes.dtype_of(input.dtype)
    order = (1, 3, 0, 2) if dtype in VNNI_SIZES else (1, 0, 2)
    k_size = panels.shape[1] * VNNI_SIZES.get(dtype, 1)
    weight = panels.transpose(order).reshape(k_size, -1)[: input.shape[-1], :columns]
    if dtype is dtypes.int8:
        return np.matmul(input.astype(np.int32), weight.astype(np.int32))
    if dtype.itemsize == 2:
        input, weight = input.astype(np.float32), weight.astype(np.float32)
    return np.matmul(input, weight).astype(dtype.numpy)


def _lower(R: Builder, input: Expr, panels: Expr, *, columns: int) -> Expr:
    dtype = R.type(input).dtype
    vnni_size = VNNI_SIZES.get(dtype)
    wide = "int32" if dtype is dtypes.int8 else "float64" if dtype.itemsize == 8 else "float32"

    def product(a: Expr, b: Expr) -> Expr:
        k = R.te.reduce_axis((0, a.shape[-1]), name="k")
        width, extent = b.shape[2], R.tir.IntImm("int64", columns)

        def element(*at: Expr) -> Expr:
            place = [R.tir.floordiv(at[-1], width), k, R.tir.floormod(at[-1], width)]
            if vnni_size is not None:
                place[1:2] = [R.tir.floordiv(k, vnni_size)]
                place.append(R.tir.floormod(k, vnni_size))
            left, right = a[(*at[:-1], k)], b[tuple(place)]
            return R.te.sum(left.astype(wide) * right.astype(wide), axis=k)

        return R.te.compute((*a.shape[:-1], extent), element, name="matmul_panels")

    y = R.emit_te(product, input, panels)
    narrow = wide == "float32" and dtype is not dtypes.float32
    return R.op.astype(R.emit(y), dtype.name) if narrow else y


@internal_row(
    _infer,
    _eager,
    _lower,
    samples=[
        sample((3, 4), (2, 4, 16), attrs={"columns": 32}, grad=False),
        sample((7, 33), (3, 33, 16), attrs={"columns": 37}, grad=False),
        sample((2, 3, 5), (1, 5, 64), attrs={"columns": 64}, grad=False),
        sample((70, 20), (2, 20, 48), attrs={"columns": 90}, dtype="float64", grad=False),
        sample((9, 20), (2, 20, 64), attrs={"columns": 70}, dtype="float16", grad=False),
        sample((3, 21), (2, 16, 64, 2), attrs={"columns": 70}, dtype="bfloat16", grad=False),
        sample((40, 70), (1, 32, 64, 4), attrs={"columns": 50}, dtype="int8", grad=False),
    ],
)
def matmul_panels(input: Tensor, panels: Tensor, *, columns: int) -> Tensor:
    r"""Product of a tensor with a matrix that is stored in panels of columns.

    :math:`y_{...n} = \sum_k x_{...k} \, p_{\lfloor n / w \rfloor, k, n \bmod w}`. Compiled code
    reads such a matrix without rearranging it first; frozen graphs use it for their weights.

    Args:
        input: Shape (..., K); a float or int8.
        panels: Shape (P, K, w); columns beyond ``columns`` are not used. Of bfloat16 and int8 the
            neighbours along K lie side by side, (P, K / g, w, g) with words of g = 2 and 4
            and K / g rounded up to a multiple of 16.
        columns: The number of columns N, with P = N / w rounded up.

    Returns:
        Tensor of shape (..., N), int32 for int8.

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, p = ops.ones((2, 3)), ops.ones((1, 3, 4))
        >>> ops.matmul_panels(x, p, columns=4).shape
        (2, 4)
    """
    ...
