"""Functions of whole matrices: exponential, condition number, solving with a factorisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import MATRIX, Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, OutOfRangeError, ShapeError
from tvmgraph.ops.common.arguments import bad, describe
from tvmgraph.ops.linalg.solve import NO_LOWERING, NO_ONNX, lapack, square, square_samples

__all__ = ["cond", "log_matrix_determinant", "lu_solve", "matrix_determinant", "matrix_exp"]


def matrix_determinant(input: Tensor) -> Tensor:
    """Determinant of square matrices; another name of :func:`det`.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Tensor of shape :math:`(...)`.

    Example:
        >>> ops.matrix_determinant(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[], dtype=Float32, value= 8)
    """
    return F.det(input)


def log_matrix_determinant(input: Tensor) -> tuple[Tensor, Tensor]:
    """Sign and logarithm of absolute determinants; another name of :func:`slogdet`.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Two tensors of shape :math:`(...)`.

    Example:
        >>> ops.log_matrix_determinant(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        (Tensor(shape=[], dtype=Float32, value= 1), Tensor(shape=[], dtype=Float32, value= 2.07944))
    """
    return F.slogdet(input)


# ---- exponential --------------------------------------------------------------------------------

_TAYLOR_TERMS = 18  # enough for float64 where the norm is at most 1/2


def _eager_exp(x: np.ndarray) -> np.ndarray:
    """Scaling and squaring: :math:`e^A = (e^{A / 2^s})^{2^s}`, in float64."""
    a = x.astype(np.float64)
    norm = float(np.max(np.sum(np.abs(a), axis=-2), initial=0.0))
    if not math.isfinite(norm):
        return np.full(x.shape, np.nan, x.dtype)
    squarings = max(0, math.ceil(math.log2(norm)) + 1) if norm else 0
    a = a / 2.0**squarings
    eye = np.eye(x.shape[-1])
    y = np.broadcast_to(eye, a.shape)
    for k in range(_TAYLOR_TERMS, 0, -1):
        y = eye + a @ y / k
    for _ in range(squarings):
        y = y @ y
    return y.astype(x.dtype)


def _vjp_exp(g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor]:
    """The derivative is a block of the exponential of a matrix of twice the size."""
    n = x.shape[-1]
    xt = F.swapaxes(x, -1, -2)
    top = F.concat((xt, g), -1)
    bottom = F.concat((F.zeros_like(g), xt), -1)
    full = F.matrix_exp(F.concat((top, bottom), -2))
    return (F.split_at(F.split_at(full, (n,), x.ndim - 2)[0], (n,), x.ndim - 1)[1],)


@primitive(
    infer=square,
    traits=MATRIX,
    eager=lapack(_eager_exp),
    lower=Reason("the number of squarings depends on the norm of the matrix"),
    vjp=_vjp_exp,
    onnx=NO_ONNX,
    samples=[
        *square_samples(),
        sample(np.array([[0.0, 30.0], [-30.0, 0.0]])),
        sample(np.array([[np.nan, 0.0], [0.0, 1.0]], np.float32), grad=False),
    ],
)
def matrix_exp(input: Tensor) -> Tensor:
    r"""Exponential of square matrices: :math:`\sum_k input^k / k!`.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if the matrices are not square.

    Example:
        >>> ops.matrix_exp(Tensor([[0.0, 1.0], [0.0, 0.0]]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00],
         [ 0.00000000e+00,  1.00000000e+00]])
    """
    ...


# ---- condition ----------------------------------------------------------------------------------


def cond(A: Tensor, p: object = None) -> Tensor:
    r"""Condition number: :math:`\|A\|_p \cdot \|A^{-1}\|_p`.

    Args:
        A: float32 or float64 tensor of shape :math:`(..., m, n)`; square unless ``p`` is None, 2
            or -2.
        p: Order of the norm: None (2), 1, -1, 2, -2, inf, -inf, ``"fro"`` or ``"nuc"``.

    Returns:
        float32 Tensor of shape :math:`(...)`.

    Raises:
        ArgumentError: if the order is unknown.

    Example:
        >>> ops.cond(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[], dtype=Float32, value= 2)
    """
    if p in (None, 2, -2):
        s = F.svd(A, compute_uv=False)
        count = s.shape[-1]
        if count == 0:
            raise bad(ShapeError, "A must not be empty", "cond", describe(A=A))
        parts = F.split_at(s, (1, count - 1), s.ndim - 1) if count > 1 else (s, s, s)
        ratio = parts[2] / parts[0] if p == -2 else parts[0] / parts[2]
        return F.cast(F.squeeze(ratio, -1), dtypes.float32)
    number = _norm(A, p) * _norm(F.inverse(A), p)
    return number if number.dtype.kind == "c" else F.cast(number, dtypes.float32)


def _norm(x: Tensor, p: Any) -> Tensor:
    if p == "fro":
        return F.sqrt(F.reduce_sum(x * x, axis=(x.ndim - 2, x.ndim - 1), keep_dims=False))
    if p == "nuc":
        s = F.svd(x, compute_uv=False)
        return F.reduce_sum(s, axis=(s.ndim - 1,), keep_dims=False)
    if p not in (1, -1, math.inf, -math.inf):
        raise bad(ArgumentError, "p must be None, 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'", "cond",
                  f"p={p!r}")  # fmt: skip
    axis = x.ndim - (2 if abs(p) == 1 else 1)
    sums = F.reduce_sum(F.abs(x), axis=(axis,), keep_dims=False)
    return F.amax(sums, -1) if p > 0 else F.amin(sums, -1)


# ---- solving with a factorisation ---------------------------------------------------------------


def _infer_lu(b: TensorType, lu: TensorType, pivots: TensorType) -> TensorType:
    square(lu)
    rules.require_same_dtype(b, lu)
    rules.require_dtype(pivots, (dtypes.int32, dtypes.int64), "LU_pivots")
    if b.ndim < 2 or b.shape[-2] != lu.shape[-1] or pivots.shape != lu.shape[:-1]:
        raise ShapeError(f"b {b}, LU_data {lu} and LU_pivots {pivots} do not fit")
    if b.shape[:-2] != lu.shape[:-2]:
        raise ShapeError("b and LU_data must have the same batch axes")
    return b


def _eager_lu(b: np.ndarray, lu: np.ndarray, pivots: np.ndarray) -> np.ndarray:
    n = lu.shape[-1]
    if pivots.size and (pivots.min() < 1 or pivots.max() > n):
        raise OutOfRangeError(f"LU_pivots must be in [1, {n}]")
    y = b.copy()
    for at in np.ndindex(*lu.shape[:-2]):
        for i, p in enumerate(pivots[at]):  # row exchanges, in the order of the factorisation
            y[at][[i, p - 1]] = y[at][[p - 1, i]]
    lower = np.tril(lu, -1) + np.eye(n, dtype=lu.dtype)
    try:
        return np.linalg.solve(np.triu(lu), np.linalg.solve(lower, y))
    except np.linalg.LinAlgError:
        raise ArgumentError("LU_data is singular") from None


@primitive(
    infer=_infer_lu,
    traits=Traits(Pattern.OPAQUE, "... . n, ... . ., ... . -> ... . n"),
    eager=lapack(_eager_lu),
    lower=NO_LOWERING,
    vjp=Reason("the derivative by a packed factorisation is not implemented; use ops.solve"),
    onnx=NO_ONNX,
    samples=[
        sample(
            np.array([[1.0], [3.0], [3.0]], np.float32),
            np.array([[2.0, 1, 1], [0.5, 1, 1.5], [0.5, 0, 2.5]], np.float32),
            np.array([2, 2, 3], np.int32),
        ),
        sample((0, 2, 1), (0, 2, 2), (0, 2), dtype=("float64", "float64", "int32")),
        sample(
            (2, 3, 4), np.array([[[2.0, 1, 1], [0.5, 1, 1.5], [0.5, 0, 2.5]]] * 2),
            np.array([[2, 2, 3], [1, 3, 3]]), dtype="float64",
        ),
        sample((2, 1), (2, 2), np.array([1, 3]), dtype="float64", raises=OutOfRangeError),
        sample((3, 1), (2, 2), np.array([1, 2]), dtype="float64", raises=ShapeError),
    ],
)  # fmt: skip
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    r"""Solves :math:`P L U x = b` with a packed LU factorisation.

    Args:
        b: Right-hand side of shape :math:`(..., n, k)`.
        LU_data: Factors of shape :math:`(..., n, n)`: U above, L (with a diagonal of ones) below.
        LU_pivots: Integer tensor of shape :math:`(..., n)`: the row, counted from 1, that row
            :math:`i` was exchanged with.

    Returns:
        Tensor of ``b``'s type.

    Raises:
        ShapeError: if the shapes do not fit.
        OutOfRangeError: if a pivot is no row.

    Example:
        >>> ops.lu_solve(Tensor([[2.0]]), Tensor([[4.0]]), Tensor([1]))
        Tensor(shape=[1, 1], dtype=Float32, value=
        [[ 5.00000000e-01]])
    """
    ...
