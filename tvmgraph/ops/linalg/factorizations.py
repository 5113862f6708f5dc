"""Factorizations that :mod:`tvmgraph.scipy.linalg` is made of: LAPACK's and NumPy's, eagerly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import MATRIX, Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ShapeError
from tvmgraph.ops.linalg.solve import (
    NO_LOWERING,
    NO_ONNX,
    lapack,
    square,
    square_samples,
)

__all__: list[str] = []


def _vjp_eigh(g: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor], x: Tensor) -> tuple[Tensor]:
    values, vectors = y
    distance = F.expand_dims(values, -2) - F.expand_dims(values, -1)
    eye = F.eye(values.shape[-1], dtype=x.dtype)
    turned = F.matmul(F.swapaxes(vectors, -1, -2), g[1]) * (1 - eye) / (distance + eye)
    inner = turned + F.expand_dims(g[0], -1) * eye
    whole = F.matmul(F.matmul(vectors, inner), F.swapaxes(vectors, -1, -2))
    symmetric = (whole + F.swapaxes(whole, -1, -2)) * 0.5
    return (F.tril(symmetric, -1) * 2.0 + F.tril(symmetric) - F.tril(symmetric, -1),)


@primitive(
    infer=lambda t: (square(t).with_shape(t.shape[:-1]), t),
    traits=replace(MATRIX, factors="... . . -> ... ., ... . ."),
    eager=lapack(np.linalg.eigh),
    lower=NO_LOWERING,
    vjp=_vjp_eigh,
    onnx=NO_ONNX,
    multi=True,
    samples=[s for i, s in enumerate(square_samples()) if i != 2],  # equal eigenvalues
)
def _eigh(input: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices, of which the lower
    triangle is read.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Raises:
        ShapeError: if the matrices are not square.
    """
    ...


def _infer_lu(t: TensorType) -> tuple[TensorType, ...]:
    if t.ndim != 2:
        raise ShapeError(f"a matrix is needed, not {t}")
    rules.require_dtype(t, (dtypes.float32, dtypes.float64), "input")
    rows, columns = t.static_shape
    pivots = t.with_dtype(dtypes.int32).with_shape((min(rows, columns),))
    return t, pivots, pivots.with_shape((rows,))


def _eager_lu(x: np.ndarray) -> tuple[np.ndarray, ...]:
    lu, rows = x.copy(), np.arange(len(x), dtype=np.int32)
    pivots = np.zeros(min(x.shape), np.int32)
    for i in range(len(pivots)):
        pivots[i] = p = i + int(np.argmax(np.abs(lu[i:, i])))
        lu[[i, p]], rows[[i, p]] = lu[[p, i]], rows[[p, i]]
        if lu[i, i] != 0:
            lu[i + 1 :, i] /= lu[i, i]
            lu[i + 1 :, i + 1 :] -= np.outer(lu[i + 1 :, i], lu[i, i + 1 :])
    return lu, pivots, rows


@primitive(
    infer=_infer_lu,
    traits=Traits(Pattern.OPAQUE, Reason("any two rows may be exchanged")),
    eager=lapack(_eager_lu),
    lower=NO_LOWERING,
    vjp=Reason("the derivative of a factorization into triangles is not implemented"),
    onnx=NO_ONNX,
    multi=True,
    samples=[sample((3, 3)), sample((2, 4), dtype="float64"), sample((3,), raises=ShapeError)],
)
def _lu(input: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Triangles of a matrix whose rows were exchanged.

    Args:
        input: float32 or float64 tensor of shape (m, n).

    Returns:
        U above the diagonal with L (whose diagonal is ones) below; the row that each row was
        exchanged with in turn, from 0; the rows in their new order.

    Raises:
        ShapeError: if it is no matrix.
    """
    ...
