"""The matrix product with weights that were rearranged ahead of time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.op import Reason, primitive, sample
from tvmgraph.core.storage import aligned_empty
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError

__all__ = ["matmul_panels"]


def to_panels(weight: np.ndarray, width: int) -> np.ndarray:
    """Cuts the columns of a (K, N) matrix into panels (N / width rounded up, K, width)."""
    depth, columns = weight.shape
    count = -(-columns // width)
    panels = aligned_empty((count, depth, width), weight.dtype)
    whole = columns // width
    body = weight[:, : whole * width].reshape(depth, whole, width)
    np.copyto(panels[:whole], body.transpose(1, 0, 2))
    if count > whole:
        panels[whole] = 0
        panels[whole, :, : columns - whole * width] = weight[:, whole * width :]
    return panels


def _infer(input: TensorType, panels: TensorType, *, columns: int) -> TensorType:
    rules.require_dtype(input, (dtypes.float32, dtypes.float64))
    rules.require_same_dtype(input, panels)
    if input.ndim < 1 or panels.ndim != 3 or input.shape[-1] != panels.shape[1]:
        raise ShapeError("the depth of the panels must be the last extent of the input")
    count, width = panels.shape[0], panels.shape[2]
    if not isinstance(width, int) or -(-columns // width) != count:
        raise ShapeError(f"{columns} columns do not make {count} panels of {width}")
    return input.with_shape((*input.shape[:-1], columns))


def _eager(input: np.ndarray, panels: np.ndarray, *, columns: int) -> np.ndarray:
    weight = panels.transpose(1, 0, 2).reshape(panels.shape[1], -1)[:, :columns]
    return np.matmul(input, weight)


def _lower(R: Any, input: Any, panels: Any, *, columns: int) -> Any:
    def product(a: Any, b: Any) -> Any:
        k = R.te.reduce_axis((0, b.shape[1]), name="k")
        width, extent = b.shape[2], R.tir.IntImm("int64", columns)

        def element(*at: Any) -> Any:
            panel, member = R.tir.floordiv(at[-1], width), R.tir.floormod(at[-1], width)
            return R.te.sum(a[(*at[:-1], k)] * b[panel, k, member], axis=k)

        return R.te.compute((*a.shape[:-1], extent), element, name="matmul_panels")

    return R.emit_te(product, input, panels)


@primitive(
    infer=_infer,
    eager=_eager,
    lower=_lower,
    vjp=Reason("only compiled graphs hold it; the graph it was made from is differentiated"),
    onnx=Reason("only compiled graphs hold it; the graph it was made from is exported"),
    samples=[
        sample((3, 4), (2, 4, 16), attrs={"columns": 32}, grad=False),
        sample((7, 33), (3, 33, 16), attrs={"columns": 37}, grad=False),
        sample((2, 3, 5), (1, 5, 64), attrs={"columns": 64}, grad=False),
        sample((70, 20), (2, 20, 48), attrs={"columns": 90}, dtype="float64", grad=False),
    ],
)
def matmul_panels(input: Tensor, panels: Tensor, *, columns: int) -> Tensor:
    r"""Product of a tensor with a matrix that is stored in panels of columns.

    :math:`y_{...n} = \sum_k x_{...k} \, p_{\lfloor n / w \rfloor, k, n \bmod w}`. Compiled code
    reads such a matrix without rearranging it first; frozen graphs use it for their weights.

    Args:
        input: Shape (..., K); float32 or float64.
        panels: Shape (P, K, w); columns beyond ``columns`` are not used.
        columns: The number of columns N, with P = N / w rounded up.

    Returns:
        Tensor of shape (..., N).

    Raises:
        ShapeError: if the extents do not fit.

    Example:
        >>> x, p = ops.ones((2, 3)), ops.ones((1, 3, 4))
        >>> ops.matmul_panels(x, p, columns=4).shape
        (2, 4)
    """
    ...
