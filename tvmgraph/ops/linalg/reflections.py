"""Products of Householder reflections, and triangular systems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import MATRIX
from tvmgraph.core.types import TensorType
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, describe
from tvmgraph.ops.linalg.solve import NO_LOWERING, NO_ONNX, REAL, lapack

__all__ = ["geqrf", "orgqr", "ormqr", "triangular_solve"]


def _infer_geqrf(input: TensorType) -> tuple[TensorType, TensorType]:
    rules.require_dtype(input, REAL)
    if input.ndim < 2:
        raise ShapeError(f"input must have at least 2 axes, not {input.ndim}")
    *batch, m, n = input.static_shape
    return input, input.with_shape((*batch, min(m, n)))


def _eager_geqrf(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    h, tau = np.linalg.qr(x, "raw")
    return np.swapaxes(h, -1, -2).astype(x.dtype), tau.astype(x.dtype)


@primitive(
    infer=_infer_geqrf,
    traits=replace(MATRIX, factors="... . . -> ... . ., ... ."),
    eager=lapack(_eager_geqrf),
    lower=NO_LOWERING,
    vjp=Reason("the derivative of the reflections is not implemented"),
    onnx=NO_ONNX,
    multi=True,
    samples=[
        sample((3, 4)),
        sample((2, 4, 3), dtype="float64"),
        sample((0, 3, 3)),
        sample((1, 1)),
        sample((3,), raises=ShapeError),
        sample((2, 2), dtype="int32", raises=DTypeError),
    ],
)
def geqrf(input: Tensor) -> tuple[Tensor, Tensor]:
    r"""QR decomposition in compact form: R above reflections :math:`H_j = I - \tau_j v_j v_j^T`.

    Args:
        input: float32 or float64 tensor of shape (..., m, n).

    Returns:
        A tensor of ``input``'s type with R on and above the diagonal and the vectors :math:`v_j`
        below it (their leading 1 is left out), and the factors :math:`\tau` of shape
        (..., min(m, n)).

    Raises:
        ShapeError: if ``input`` has fewer than two axes.
        DTypeError: if ``input`` is neither float32 nor float64.

    Example:
        >>> ops.geqrf(Tensor([[-2.0, -1.0], [1.0, 2.0]]))
        (Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 2.23606801e+00,  1.78885436e+00],
         [-2.36067981e-01,  1.34164083e+00]]), Tensor(shape=[2], dtype=Float32, value= [
         1.89442718e+00,  0.00000000e+00]))
    """
    ...


def _reflect(vectors: Tensor, tau: Tensor, other: Tensor, backwards: bool) -> Tensor:
    """Applies H_1 H_2 ... H_k, or the product in reverse order, from the left."""
    rows, count = vectors.shape[-2], tau.shape[-1]
    lower = F.tril(vectors, -1) + F.eye(rows, vectors.shape[-1], vectors.dtype)
    for j in reversed(range(count)) if backwards else range(count):
        v = lower[..., :, j : j + 1]
        factor = F.expand_dims(tau[..., j : j + 1], -1)
        other = other - v * factor * F.matmul(F.adjoint(v), other)
    return other


def _check(vectors: Tensor, tau: Tensor, op: str) -> None:
    if vectors.ndim < 2 or tau.shape[-1] > min(vectors.shape[-2:]) or (
        tau.shape[:-1] != vectors.shape[:-2]
    ):  # fmt: skip
        rule = "the reflections must be (..., m, n) and their factors (..., k) with k <= min(m, n)"
        raise bad(ShapeError, rule, op, describe(input=vectors, tau=tau))


def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    r"""The first columns of a product of reflections: what :func:`geqrf` calls Q.

    .. math::
        Q = H_1 H_2 \dots H_k, \qquad H_j = I - \tau_j v_j v_j^H

    Args:
        input: Tensor of shape (..., m, n), :math:`n \le m`, with the vectors below the diagonal.
        input2: The factors :math:`\tau`, of shape (..., k), :math:`k \le n`.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.orgqr(*ops.geqrf(Tensor([[-2.0, -1.0], [1.0, 2.0]])))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[-8.94427180e-01,  4.47213590e-01],
         [ 4.47213590e-01,  8.94427180e-01]])
    """
    _check(input, input2, "orgqr")
    start = F.eye(input.shape[-2], input.shape[-1], input.dtype)
    return _reflect(input, input2, F.broadcast_to(start, input.shape), backwards=True)


def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    r"""Product of a matrix with the orthogonal Q of :func:`geqrf`.

    Args:
        input: Reflections, of shape (..., mn, k), mn being the rows of Q.
        tau: Their factors, of shape (..., min(mn, k)).
        other: Matrix of shape (..., m, n).
        left: Whether to compute :math:`Q \cdot other`, else :math:`other \cdot Q`.
        transpose: Whether to take :math:`Q^T` for Q.

    Returns:
        Tensor of ``other``'s shape.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> y, tau = ops.geqrf(Tensor([[-2.0, -1.0], [1.0, 2.0]]))
        >>> ops.ormqr(y, tau, ops.eye(2))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[-8.94427180e-01,  4.47213590e-01],
         [ 4.47213590e-01,  8.94427180e-01]])
    """
    _check(input, tau, "ormqr")
    if input.dtype.kind == "c":
        raise bad(DTypeError, "ormqr is for real tensors", "ormqr", describe(input=input))
    if other.ndim < 2 or other.shape[-2 if left else -1] != input.shape[-2]:
        rule = "the matrix must have as many rows (columns from the right) as the reflections"
        raise bad(ShapeError, rule, "ormqr", describe(input=input, other=other))
    if left:
        return _reflect(input, tau, other, backwards=not transpose)
    swapped = _reflect(input, tau, F.swapaxes(other, -1, -2), backwards=transpose)
    return F.swapaxes(swapped, -1, -2)


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    r"""Solves :math:`A X = b` with a triangular A.

    Args:
        b: Tensor of shape (..., n, k).
        A: Tensor of shape (..., n, n); only one triangle is read.
        upper: Whether that is the upper one.
        transpose: Whether to solve :math:`A^T X = b`.
        unitriangular: Whether the diagonal counts as ones.

    Returns:
        The solution, of ``b``'s shape, and ``A``.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.triangular_solve(Tensor([[3.0], [2.0]]), Tensor([[1.0, 1.0], [0.0, 2.0]]))
        (Tensor(shape=[2, 1], dtype=Float32, value=
        [[ 2.00000000e+00],
         [ 1.00000000e+00]]), Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00],
         [ 0.00000000e+00,  2.00000000e+00]]))
    """
    offset = int(unitriangular)
    matrix = F.triu(A, offset) if upper else F.tril(A, -offset)
    if unitriangular:
        matrix = matrix + F.eye(A.shape[-1], dtype=A.dtype)
    if transpose:
        matrix = F.swapaxes(matrix, -1, -2)
    return F.matrix_solve(matrix, b), A
