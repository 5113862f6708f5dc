"""Kronecker and cross products, powers of matrices, Vandermonde matrices, distances."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, countable, describe, require
from tvmgraph.ops.linalg.solve import matrix_row, square, square_samples
from tvmgraph.ops.reduction.norms import p_norm

__all__ = [
    "adjoint", "cdist", "cond", "cross", "dist", "kron", "log_matrix_determinant", "lu_solve",
    "matrix_determinant", "matrix_exp", "matrix_power", "vander",
]  # fmt: skip


def kron(input: Tensor, other: Tensor) -> Tensor:
    r"""Kronecker product: every element of ``input`` times the whole of ``other``.

    Args:
        input: Tensor of shape :math:`(a_1, ..., a_n)`.
        other: Tensor of shape :math:`(b_1, ..., b_n)`; missing leading axes count as size 1.

    Returns:
        Tensor of shape :math:`(a_1 b_1, ..., a_n b_n)`.

    Example:
        >>> ops.kron(Tensor([1, 2]), Tensor([1, 10]))
        Tensor(shape=[4], dtype=Int64, value= [ 1, 10,  2, 20])
    """
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + input.shape
    b = (1,) * (ndim - other.ndim) + other.shape
    left = F.reshape(input, tuple(itertools.chain.from_iterable((d, 1) for d in a)))
    right = F.reshape(other, tuple(itertools.chain.from_iterable((1, d) for d in b)))
    return F.reshape(left * right, tuple(x * y for x, y in zip(a, b)))


@fusible
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    r"""Cross product of vectors with three elements.

    Args:
        input: Tensor with an axis of size 3.
        other: Tensor whose shape broadcasts with that of ``input``.
        dim: The axis of the vectors; by default the first of size 3.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ShapeError: if the shapes do not broadcast or the axis does not have size 3.

    Example:
        >>> ops.cross(Tensor([1.0, 0.0, 0.0]), Tensor([0.0, 1.0, 0.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00,  1.00000000e+00])
    """
    if input.aval.shape != other.aval.shape:
        shape = rules.broadcast_shapes(input.aval.shape, other.aval.shape)
        input, other = F.broadcast_to(input, shape), F.broadcast_to(other, shape)
    axis = next((i for i, d in enumerate(input.shape) if d == 3), None) if dim is None else dim
    if axis is None or not -input.ndim <= axis < input.ndim or input.shape[axis] != 3:
        raise bad(ShapeError, "the axis of the vectors must have size 3", "cross",
                  describe(input=input, other=other, dim=dim))  # fmt: skip
    axis %= input.ndim

    def rolled(x: Tensor, by: int) -> Tensor:
        return F.roll(x, -by, axis)

    return rolled(input, 1) * rolled(other, 2) - rolled(input, 2) * rolled(other, 1)


def adjoint(x: Tensor) -> Tensor:
    """Exchanges the last two axes and takes complex conjugates.

    Args:
        x: Tensor of shape :math:`(..., M, N)`.

    Returns:
        Tensor of shape :math:`(..., N, M)`.

    Example:
        >>> ops.adjoint(Tensor([[1.0, 2.0]]))
        Tensor(shape=[2, 1], dtype=Float32, value=
        [[ 1.00000000e+00],
         [ 2.00000000e+00]])
    """
    return F.swapaxes(F.conj(x), -1, -2)


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Power of square matrices by repeated squaring.

    Args:
        input: Tensor of shape :math:`(..., m, m)`.
        n: The exponent; 0 gives the identity, a negative one inverts first.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if the matrices are not square.

    Example:
        >>> ops.matrix_power(Tensor([[[1.0, 1.0], [0.0, 1.0]]]), 3)
        Tensor(shape=[1, 2, 2], dtype=Float32, value=
        [[[ 1.00000000e+00,  3.00000000e+00],
          [ 0.00000000e+00,  1.00000000e+00]]])
    """
    square = input.ndim >= 2 and input.aval.shape[-1] == input.aval.shape[-2]
    require(square, "input must hold square matrices", "matrix_power", input=input)
    exponent = as_int(n, "matrix_power", "n")
    base = F.inverse(input) if exponent < 0 else input
    result, exponent = None, abs(exponent)
    while exponent:
        if exponent & 1:
            result = base if result is None else F.matmul(result, base)
        exponent >>= 1
        if exponent:
            base = F.matmul(base, base)
    if result is None:
        return F.broadcast_to(F.eye(input.shape[-1], None, input.dtype), input.aval.shape)
    return result


def vander(x: Tensor, N: int | None = None) -> Tensor:
    r"""Vandermonde matrix: column :math:`j` holds :math:`x^{N - 1 - j}`.

    Args:
        x: Tensor of shape :math:`(n,)`.
        N: Number of columns, :math:`n` by default.

    Returns:
        Tensor of shape :math:`(n, N)`; int64 where ``x`` holds integers.

    Raises:
        ShapeError: if ``x`` does not have one axis.
        ArgumentError: if ``N`` is not positive.

    Example:
        >>> ops.vander(Tensor([1.0, 2.0, 3.0]))
        Tensor(shape=[3, 3], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00,  1.00000000e+00],
         [ 4.00000000e+00,  2.00000000e+00,  1.00000000e+00],
         [ 9.00000000e+00,  3.00000000e+00,  1.00000000e+00]])
    """
    require(x.ndim == 1, f"x must have 1 axis, not {x.ndim}", "vander", x=x)
    count = x.shape[0] if N is None else countable(as_int(N, "vander", "N"), "vander", "N")
    require(count >= 1, "N must be positive", "vander", ArgumentError, x=x, N=N)
    x = F.cast(x, dtypes.int64) if x.dtype.kind in "bui" else x
    columns = [F.ones_like(x)]
    for _ in range(count - 1):
        columns.append(columns[-1] * x)  # exact for integers, unlike a power
    return F.stack(columns[::-1], 1)


# ---- distances ----------------------------------------------------------------------------------


@precise
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0) -> Tensor:
    r"""Distances between all pairs of rows: :math:`\|x1_i - x2_j\|_p`.

    Args:
        x1: Float tensor of shape :math:`(..., P, M)`.
        x2: Float tensor of shape :math:`(..., R, M)`.
        p: Order of the norm, at least 0; may be infinite.

    Returns:
        Tensor of shape :math:`(..., P, R)`.

    Raises:
        ShapeError: if the rows differ in length.
        ArgumentError: if ``p`` is negative.

    Example:
        >>> ops.cdist(Tensor([[0.0, 0.0]]), Tensor([[3.0, 4.0]]))
        Tensor(shape=[1, 1], dtype=Float32, value=
        [[ 5.00000000e+00]])
    """
    fits = x1.ndim > 1 and x2.ndim > 1 and x1.aval.shape[-1] == x2.aval.shape[-1]
    require(fits, "both operands must hold rows of one length", "cdist", x1=x1, x2=x2)
    require(p >= 0, "p must not be negative", "cdist", ArgumentError, p=p)
    require(x1.dtype.is_float and x2.dtype.is_float, "both operands must be float tensors", "cdist",
            DTypeError, x1=x1, x2=x2)  # fmt: skip
    return _pair_distances(x1, x2, float(p))


@fusible
def _pair_distances(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    difference = F.expand_dims(x1, -2) - F.expand_dims(x2, -3)
    return p_norm(difference, p, (difference.ndim - 1,))


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    r"""Norm of a difference: :math:`\|input - other\|_p` over all elements.

    Args:
        input: Float tensor.
        other: Tensor that broadcasts with ``input``.
        p: Order of the norm, at least 0; may be infinite.

    Returns:
        0-d tensor.

    Raises:
        ArgumentError: if ``p`` is negative.

    Example:
        >>> ops.dist(Tensor([0.0, 0.0]), Tensor([3.0, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 5)
    """
    require(p >= 0, "p must not be negative", "dist", ArgumentError, p=p)
    return _distance(input, other, float(p))


@fusible
def _distance(input: Tensor, other: Tensor, p: float) -> Tensor:
    difference = input - other
    return p_norm(difference, p, tuple(range(difference.ndim)))


# ---- functions of whole matrices: exponential, condition number, solving with a factorisation ----


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


@matrix_row(
    infer=square,
    eager=_eager_exp,
    vjp=_vjp_exp,
    lower=Reason("the number of squarings depends on the norm of the matrix"),
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
        require(count != 0, "A must not be empty", "cond", A=A)
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
    require(p in (1, -1, math.inf, -math.inf),
            "p must be None, 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'", "cond", ArgumentError,
            p=p)  # fmt: skip
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


@matrix_row(
    infer=_infer_lu,
    eager=_eager_lu,
    vjp=Reason("the derivative by a packed factorisation is not implemented; use ops.solve"),
    traits=Traits(Pattern.OPAQUE, "... . n, ... . ., ... . -> ... . n"),
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
