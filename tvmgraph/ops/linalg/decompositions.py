"""Decompositions of matrices: LAPACK through NumPy, outside compiled graphs."""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, NoGradientError, ShapeError, reject
from tvmgraph.ops.common.arguments import named
from tvmgraph.ops.linalg.solve import (
    REAL,
    SYMMETRIC,
    matrix_row,
    real_like,
    square,
    square_samples,
)

__all__ = [
    "cholesky", "cholesky_inverse", "cholesky_solve", "eig", "eigvals", "pinv", "qr",
    "singular_values", "svd",
]  # fmt: skip


def _vjp_cholesky(g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor]:
    """Murray, Differentiation of the Cholesky decomposition (2016)."""
    phi = F.tril(F.matmul(F.adjoint(y), F.tril(g)))
    half = phi - F.diag_embed(F.diagonal(phi, 0, -2, -1)) * 0.5
    inverted = F.inverse(y)
    s = F.matmul(F.matmul(F.adjoint(inverted), half), inverted)
    return ((s + F.adjoint(s)) * 0.5,)


def _eager_cholesky(x: np.ndarray) -> np.ndarray:
    # only the Hermitian part counts, so that the derivative is that of a function of all elements
    return np.linalg.cholesky((x + np.swapaxes(x, -1, -2).conj()) * x.dtype.type(0.5))


@matrix_row(
    infer=square,
    eager=_eager_cholesky,
    vjp=_vjp_cholesky,
    samples=[
        sample(SYMMETRIC.astype(np.float32)),
        sample(np.stack([SYMMETRIC, 2 * SYMMETRIC])),
        sample((0, 2, 2), grad=False),
        sample((2, 3), raises=ShapeError),
        sample(-np.eye(2, dtype=np.float32), raises=ArgumentError),
    ],
)
@named("cholesky")
def _cholesky(input: Tensor) -> Tensor:
    r"""Lower triangular factor :math:`L` with :math:`L L^H = (input + input^H) / 2`.

    Args:
        input: Tensor of positive definite matrices, a float or complex dtype.

    Returns:
        Tensor of ``input``'s type.
    """
    ...


def cholesky(input_x: Tensor, upper: bool = False) -> Tensor:
    r"""Cholesky factor of Hermitian positive definite matrices: :math:`L L^H = input`.

    Args:
        input_x: Tensor of shape :math:`(..., n, n)`, a float or complex dtype.
        upper: Whether to return :math:`L^H`, the upper triangular factor.

    Returns:
        Tensor of ``input_x``'s type.

    Raises:
        ShapeError: if the matrices are not square.
        ArgumentError: if one is not positive definite.

    Example:
        >>> ops.cholesky(Tensor([[4.0, 0.0], [0.0, 9.0]]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 2.00000000e+00,  0.00000000e+00],
         [ 0.00000000e+00,  3.00000000e+00]])
    """
    factor = _cholesky(input_x)
    return F.adjoint(factor) if upper else factor


def cholesky_inverse(input_x: Tensor, upper: bool = False) -> Tensor:
    r"""Inverse of a positive definite matrix from its Cholesky factor: :math:`(L L^H)^{-1}`.

    Args:
        input_x: Triangular factor of shape :math:`(n, n)`.
        upper: Whether the factor is upper triangular.

    Returns:
        Tensor of ``input_x``'s type.

    Raises:
        ShapeError: if the factor is no square matrix.

    Example:
        >>> ops.cholesky_inverse(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 2.50000000e-01,  0.00000000e+00],
         [ 0.00000000e+00,  6.25000000e-02]])
    """
    inverted = F.inverse(F.triu(input_x) if upper else F.tril(input_x))
    turned = F.adjoint(inverted)
    return F.matmul(inverted, turned) if upper else F.matmul(turned, inverted)


def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    r"""Solves :math:`L L^H x = input` with a given Cholesky factor.

    Args:
        input: Right-hand side of shape :math:`(..., n, k)`.
        input2: Triangular factor of shape :math:`(..., n, n)`.
        upper: Whether the factor is upper triangular.

    Returns:
        Tensor of shape :math:`(..., n, k)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.cholesky_solve(Tensor([[4.0], [8.0]]), Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[2, 1], dtype=Float32, value=
        [[ 1.00000000e+00],
         [ 5.00000000e-01]])
    """
    factor = F.adjoint(input2) if upper else input2
    half = F.triangular_solve(input, factor, False)[0]
    return F.triangular_solve(half, F.adjoint(factor), True)[0]


def _infer_svd(t: TensorType, *, full_matrices: bool) -> tuple[TensorType, ...]:
    rules.require_dtype(t, REAL + dtypes.COMPLEX)
    if t.ndim < 2:
        raise ShapeError(f"input must have at least 2 axes, not {t.ndim}")
    *batch, m, n = t.static_shape
    p = min(m, n)
    u, v = (m, m if full_matrices else p), (n, n if full_matrices else p)
    return real_like(t.with_shape((*batch, p))), *(t.with_shape((*batch, *s)) for s in (u, v))


def _require_finite(x: np.ndarray) -> None:
    if not np.isfinite(x).all():  # of infinities some libraries' iterations never end
        raise np.linalg.LinAlgError("SVD did not converge")


def _eager_svd(x: np.ndarray, *, full_matrices: bool) -> tuple[np.ndarray, ...]:
    _require_finite(x)
    u, s, vt = np.linalg.svd(x, full_matrices=full_matrices)
    return s, u, np.swapaxes(vt, -1, -2).conj()


def _vjp_svd(
    g: tuple[Tensor, ...], y: tuple[Tensor, ...], x: Tensor, *, full_matrices: bool
) -> tuple[Tensor]:
    """Townsend's formula; repeated singular values, whose vectors may turn, have none."""
    (values, u, v), (gvalues, gu, gv) = y, g
    if x.dtype.kind == "c":
        raise NoGradientError("complex singular vectors have no derivative", op="ops.svd")
    count = values.shape[-1]
    squares = F.square(values)
    apart = F.sub(F.expand_dims(squares, -2), F.expand_dims(squares, -1))
    same = F.eye(count, count, dtypes.bool_)
    share = F.where(same, 0.0, F.reciprocal(F.where(same, 1.0, apart)))

    def turned(w: Tensor, gw: Tensor) -> Tensor:
        product = F.matmul(F.adjoint(w[..., :count]), gw[..., :count])
        return share * (product - F.adjoint(product))

    def left(w: Tensor, gw: Tensor) -> Tensor:
        """What moves the first vectors out of the space that they span."""
        first, gfirst, rest = w[..., :count], gw[..., :count], w[..., count:]
        out = gfirst - F.matmul(first, F.matmul(F.adjoint(first), gfirst))
        if rest.shape[-1]:
            out = out - F.matmul(rest, F.matmul(F.adjoint(gw[..., count:]), first))
        return out / F.expand_dims(values, -2)

    middle = (
        turned(u, gu) * F.expand_dims(values, -2)
        + F.expand_dims(values, -1) * turned(v, gv)
        + F.diag_embed(gvalues)
    )
    u1, v1 = u[..., :count], v[..., :count]
    total = F.matmul(F.matmul(u1, middle), F.adjoint(v1))
    if x.shape[-2] > count:
        total = total + F.matmul(left(u, gu), F.adjoint(v1))
    if x.shape[-1] > count:
        total = total + F.matmul(u1, F.adjoint(left(v, gv)))
    return (total,)


@matrix_row(
    infer=_infer_svd,
    eager=_eager_svd,
    vjp=_vjp_svd,
    factors="... . . -> ... ., ... . ., ... . .",
    multi=True,
    samples=[
        sample((3, 4), full_matrices=False),
        sample((5, 3), full_matrices=False),
        sample((2, 4, 3), full_matrices=True, dtype="float64"),
        sample((0, 3, 3), full_matrices=False, grad=False),
        sample((3,), full_matrices=False, raises=ShapeError),
        sample((3, 3), full_matrices=False, dtype="int32", raises=DTypeError),
    ],
)
@named("svd")
def _svd(input: Tensor, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    r"""Singular values and vectors: :math:`input = U \cdot diag(S) \cdot V^T`.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., m, n)`.
        full_matrices: Whether U and V are square.

    Returns:
        The tensors S, U and V.
    """
    ...


def _eager_svdvals(x: np.ndarray) -> np.ndarray:
    _require_finite(x)
    return np.linalg.svd(x, compute_uv=False)


def _vjp_values(g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor]:
    _, u, v = _svd(x, False)
    return (F.matmul(u * F.expand_dims(g, -2), F.adjoint(v)),)


@matrix_row(
    infer=lambda t: _infer_svd(t, full_matrices=False)[0],
    eager=_eager_svdvals,
    vjp=_vjp_values,
    factors="... . . -> ... .",
    samples=[
        sample((3, 4)),
        sample((2, 3, 3), dtype="float64"),
        sample((0, 3, 3), grad=False),
        sample((3,), raises=ShapeError),
    ],
)
def singular_values(input: Tensor) -> Tensor:
    """Singular values in decreasing order.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., m, n)`.

    Returns:
        Tensor of shape :math:`(..., min(m, n))`.
    """
    ...


def svd(
    input: Tensor, full_matrices: bool = False, compute_uv: bool = True
) -> tuple[Tensor, Tensor, Tensor] | Tensor:
    r"""Singular value decomposition: :math:`input = U \cdot diag(S) \cdot V^T`.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., m, n)`.
        full_matrices: Whether U and V are square.
        compute_uv: Whether U and V are wanted.

    Returns:
        The tensors S, U and V, or S alone.

    Raises:
        ShapeError: if ``input`` has fewer than two axes.

    Note:
        The vectors of repeated singular values, and complex ones, have no derivative.

    Example:
        >>> ops.svd(Tensor([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
        Tensor(shape=[2], dtype=Float32, value= [ 4.00000000e+00,  3.00000000e+00])
    """
    return _svd(input, full_matrices) if compute_uv else singular_values(input)


def pinv(
    x: Tensor, *, atol: float | None = None, rtol: float | None = None, hermitian: bool = False
) -> Tensor:
    r"""Pseudo-inverse: :math:`V \cdot diag(1 / S) \cdot U^T` over the singular values that count.

    Args:
        x: float32 or float64 tensor of shape :math:`(..., m, n)`.
        atol: Singular values up to ``max(atol, rtol * largest)`` count as zero.
        rtol: Relative bound; by default :math:`max(m, n) \epsilon`, or 0 if ``atol`` is given.
        hermitian: Whether only the lower triangle of Hermitian matrices is read.

    Returns:
        Tensor of shape :math:`(..., n, m)`.

    Raises:
        ShapeError: if ``x`` has fewer than two axes.

    Example:
        >>> ops.pinv(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 5.00000000e-01,  0.00000000e+00],
         [ 0.00000000e+00,  2.50000000e-01]])
    """
    if hermitian:
        lower = F.tril(x, -1)
        x = x - F.triu(x, 1) + F.adjoint(lower)
    s, u, v = _svd(x, False)
    if rtol is None:
        rtol = 0.0 if atol else max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps)
    largest = F.amax(s, -1, True)
    bound = F.maximum(largest * rtol, F.full_like(largest, atol or 0.0))
    counts = s > bound
    reciprocal = F.where(counts, 1 / F.where(counts, s, F.ones_like(s)), F.zeros_like(s))
    return F.matmul(v * F.expand_dims(reciprocal, -2), F.adjoint(u))


def _infer_qr(t: TensorType, *, mode: str) -> tuple[TensorType, TensorType]:
    rules.require_dtype(t, REAL + dtypes.COMPLEX)
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"mode {mode!r} is not one of 'reduced' and 'complete'")
    if t.ndim < 2:
        raise ShapeError(f"input must have at least 2 axes, not {t.ndim}")
    *batch, m, n = t.static_shape
    p = m if mode == "complete" else min(m, n)
    return t.with_shape((*batch, m, p)), t.with_shape((*batch, p, n))


def _vjp_qr(
    g: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor], x: Tensor, *, mode: str
) -> tuple[Tensor]:
    r"""Of a tall matrix, with B = gR R^T - Q^T gQ, (gQ + Q (triu(B) + triu(B, 1)^T)) R^{-T}.

    Columns beyond a square are Q^T times those of the input.
    """
    (q, r), (gq, gr) = y, g
    rows, columns = x.shape[-2:]
    if x.dtype.kind == "c":
        raise NoGradientError("complex factors have no derivative", op="ops.qr")
    if mode == "complete" and rows > columns:
        reject(NoGradientError, "ops.qr",
               "columns of Q beyond those of the input have no derivative",
               fix='use mode="reduced"')  # fmt: skip
    gq = gq + F.matmul(x[..., rows:], F.adjoint(gr[..., rows:])) if rows < columns else gq
    first, gfirst = r[..., :rows], gr[..., :rows]
    inner = F.triu(F.matmul(gfirst, F.adjoint(first)) - F.matmul(F.adjoint(q), gq))
    both = inner + F.adjoint(F.triu(inner, 1))
    square = F.adjoint(F.solve(first, F.adjoint(gq + F.matmul(q, both))))
    beyond = [F.matmul(q, gr[..., rows:])] if rows < columns else []
    return (F.concat([square, *beyond], -1),)


@matrix_row(
    infer=_infer_qr,
    eager=lambda x, *, mode: tuple(np.linalg.qr(x, mode)),
    vjp=_vjp_qr,
    factors="... . . -> ... . ., ... . .",
    multi=True,
    samples=[
        sample((3, 4)),
        sample((2, 4, 3)),
        sample((2, 4, 3), mode="complete", dtype="float64", grad=False),
        sample((2, 3, 3), mode="complete"),
        sample((0, 3, 3)),
        sample((3,), raises=ShapeError),
        sample((3, 3), mode="raw", raises=ArgumentError),
    ],
)
def qr(input: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    r"""QR decomposition: :math:`input = Q \cdot R` with orthonormal Q and upper triangular R.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., m, n)`.
        mode: ``"reduced"`` for :math:`p = min(m, n)` columns of Q, ``"complete"`` for :math:`m`.

    Returns:
        The tensors Q of shape :math:`(..., m, p)` and R of shape :math:`(..., p, n)`.

    Raises:
        ShapeError: if ``input`` has fewer than two axes.
        ArgumentError: if the mode is unknown.

    Example:
        >>> ops.qr(Tensor([[3.0, 0.0], [4.0, 5.0]]))
        (Tensor(shape=[2, 2], dtype=Float32, value=
        [[-6.00000024e-01, -8.00000012e-01],
         [-8.00000012e-01,  6.00000024e-01]]), Tensor(shape=[2, 2], dtype=Float32, value=
        [[-5.00000000e+00, -4.00000000e+00],
         [ 0.00000000e+00,  3.00000000e+00]]))
    """
    ...


def _complex(t: TensorType) -> TensorType:
    wide = t.dtype in (dtypes.float64, dtypes.complex128)
    return t.with_dtype(dtypes.complex128 if wide else dtypes.complex64)


def _eager_eig(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eig(x)
    wanted = np.result_type(x.dtype, np.complex64)
    return values.astype(wanted), vectors.astype(wanted)


@matrix_row(
    infer=lambda t: (_complex(square(t).with_shape(t.shape[:-1])), _complex(t)),
    eager=_eager_eig,
    vjp=Reason("the derivative of complex eigenvectors is not implemented"),
    factors="... . . -> ... ., ... . .",
    multi=True,
    samples=square_samples(),
)
def eig(A: Tensor) -> tuple[Tensor, Tensor]:
    r"""Eigenvalues and eigenvectors of square matrices.

    Args:
        A: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Complex tensors: the values of shape :math:`(..., n)` and, as columns of unit length, the
        vectors of shape :math:`(..., n, n)`.

    Raises:
        ShapeError: if the matrices are not square.

    Example:
        >>> ops.eig(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        (Tensor(shape=[2], dtype=Complex64, value= [2+0j, 4+0j]), Tensor(shape=[2, 2],
         dtype=Complex64, value=
        [[1+0j, 0+0j],
         [0+0j, 1+0j]]))
    """
    ...


def eigvals(A: Tensor) -> Tensor:
    """Eigenvalues of square matrices.

    Args:
        A: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Complex tensor of shape :math:`(..., n)`.

    Raises:
        ShapeError: if the matrices are not square.

    Example:
        >>> ops.eigvals(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[2], dtype=Complex64, value= [2+0j, 4+0j])
    """
    return eig(A)[0]


# ---- factorizations that scipy.linalg is made of: LAPACK's and NumPy's, eagerly -----------------


def _vjp_eigh(g: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor], x: Tensor) -> tuple[Tensor]:
    values, vectors = y
    distance = F.expand_dims(values, -2) - F.expand_dims(values, -1)
    eye = F.eye(values.shape[-1], dtype=x.dtype)
    turned = F.matmul(F.adjoint(vectors), g[1]) * (1 - eye) / (distance + eye)
    inner = turned + F.expand_dims(g[0], -1) * eye
    whole = F.matmul(F.matmul(vectors, inner), F.adjoint(vectors))
    symmetric = (whole + F.adjoint(whole)) * 0.5
    return (F.tril(symmetric, -1) * 2.0 + F.tril(symmetric) - F.tril(symmetric, -1),)


@matrix_row(
    infer=lambda t: (square(t).with_shape(t.shape[:-1]), t),
    eager=np.linalg.eigh,
    vjp=_vjp_eigh,
    factors="... . . -> ... ., ... . .",
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


@matrix_row(
    infer=_infer_lu,
    eager=_eager_lu,
    vjp=Reason("the derivative of a factorization into triangles is not implemented"),
    traits=Traits(Pattern.OPAQUE, Reason("any two rows may be exchanged")),
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
