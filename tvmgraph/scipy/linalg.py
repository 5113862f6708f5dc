"""Linear algebra with SciPy's names and arguments.

``overwrite_a``, ``overwrite_b``, ``check_finite``, ``turbo`` and ``debug`` are taken as there and
change nothing: tensors that are given are never overwritten.
"""

from __future__ import annotations

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject


def _matrix(op: str, value: object, name: str = "a", square: bool = False) -> Tensor:
    """Returns a matrix of floats; integers become float64."""
    if not isinstance(value, Tensor):
        raise DTypeError(f"{name} must be a Tensor, not {type(value).__name__}", op=op)
    if value.ndim != 2 or (square and value.shape[0] != value.shape[1]):
        kind = "square matrix" if square else "matrix"
        raise ShapeError(f"{name} must be a {kind}, not {value.shape}", op=op)
    return value if value.dtype.kind in "fc" else F.cast(value, dtypes.float64)


def _flags(op: str, **flags: object) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise DTypeError(f"{name} must be a bool, not {type(flag).__name__}", op=op)


def block_diag(*arrs: Tensor) -> Tensor:
    """Returns a matrix with matrices on its diagonal.

    Args:
        arrs: Matrices; vectors are rows. Of none comes a row without elements.

    Example:
        >>> ms.scipy.linalg.block_diag(Tensor([[1.0]]), Tensor([[2.0, 3.0]])).shape
        (2, 3)
    """
    return F.block_diag(*(arrs or (F.zeros((1, 0), dtypes.float32),)))


def inv(a: Tensor, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Returns the inverse of a square matrix.

    Args:
        a: The matrix.
        overwrite_a: See above.
        check_finite: See above.

    Raises:
        ArgumentError: if it is singular.
    """
    _flags("scipy.linalg.inv", overwrite_a=overwrite_a, check_finite=check_finite)
    return F.inverse(_matrix("scipy.linalg.inv", a, square=True))


def cholesky(
    a: Tensor, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Tensor:
    """Returns the triangle T with ``T @ T.T`` (lower) or ``T.T @ T`` equal to a matrix.

    Args:
        a: A positive definite matrix.
        lower: Whether the lower triangle is returned.
        overwrite_a: See above.
        check_finite: See above.
    """
    op = "scipy.linalg.cholesky"
    _flags(op, lower=lower, overwrite_a=overwrite_a, check_finite=check_finite)
    return F.cholesky(_matrix(op, a, square=True), not lower)


def cho_factor(
    a: Tensor, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """Returns what :func:`cho_solve` takes: the triangle of :func:`cholesky`, and which one it is.

    Args:
        a: A positive definite matrix.
        lower: Whether it is the lower one.
        overwrite_a: See above.
        check_finite: See above.
    """
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(
    c_and_lower: tuple[Tensor, bool], b: Tensor, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """Solves a linear system whose matrix was factorized by :func:`cho_factor`.

    Args:
        c_and_lower: The triangle, and whether it is the lower one.
        b: Right-hand sides (n,) or (n, k).
        overwrite_b: See above.
        check_finite: See above.
    """
    _flags("scipy.linalg.cho_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    triangle, lower = c_and_lower
    first = solve_triangular(triangle, b, 0 if lower else 1, lower)
    return solve_triangular(triangle, first, 1 if lower else 0, lower)


def solve_triangular(
    a: Tensor, b: Tensor, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, debug: object = None, check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """Solves linear systems of triangular matrices.

    Args:
        a: Matrices (..., n, n), of which one triangle is read.
        b: Right-hand sides (..., n) or (..., n, k).
        trans: 0 or ``"N"``; 1 or ``"T"`` solves with the transposed matrix, 2 or ``"C"`` with the
            transposed conjugate one.
        lower: Whether the lower triangle is read.
        unit_diagonal: Whether the diagonal counts as ones.
        overwrite_b: See above.
        debug: See above.
        check_finite: See above.

    Raises:
        ArgumentError: if ``trans`` is something else.

    Example:
        >>> a = Tensor([[2.0, 0.0], [1.0, 4.0]])
        >>> ms.scipy.linalg.solve_triangular(a, Tensor([2.0, 9.0]), lower=True).asnumpy().tolist()
        [1.0, 2.0]
    """
    op = "scipy.linalg.solve_triangular"
    _flags(op, lower=lower, unit_diagonal=unit_diagonal)  # MindSpore takes anything for the rest
    if trans not in (0, 1, 2, "N", "T", "C"):
        reject(either(ArgumentError, RuntimeError), op,
               f"trans must be one of 0, 1, 2, 'N', 'T', 'C', not {trans!r}")  # fmt: skip
    turned = trans in (1, 2, "T", "C")
    a = F.conj(a) if trans in (2, "C") and a.dtype.kind == "c" else a
    vector = b.ndim == a.ndim - 1
    right = F.expand_dims(b, -1) if vector else b
    x = F.triangular_solve(right, a, not lower, turned, unit_diagonal)[0]
    return F.squeeze(x, -1) if vector else x


def eigh(
    a: Tensor, b: None = None, lower: bool = True, eigvals_only: bool = False,
    overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
    eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Returns the eigenvalues of a symmetric matrix, ascending, and its eigenvectors as columns.

    Args:
        a: The matrix, of which one triangle is read.
        b: Only None: generalized problems are not solved.
        lower: Whether the lower triangle is read.
        eigvals_only: Whether the vectors are left out.
        overwrite_a: See above.
        overwrite_b: See above.
        turbo: See above.
        eigvals: Only None: all values are returned.
        type: Which generalized problem; without ``b`` any integer means the same.
        check_finite: See above.

    Raises:
        ArgumentError: if an argument has another value than the only one.
    """
    op = "scipy.linalg.eigh"
    _flags(op, lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a,
           overwrite_b=overwrite_b, turbo=turbo, check_finite=check_finite)  # fmt: skip
    if type.__class__ is not int:
        raise DTypeError(f"type must be an int, not {type!r}", op=op)
    if b is not None or eigvals is not None:
        raise ArgumentError("b and eigvals must be None", op=op)
    matrix = _matrix(op, a, square=True)
    values, vectors = F._eigh(matrix if lower else F.swapaxes(matrix, -1, -2))
    return values if eigvals_only else (values, vectors)


def lu_factor(
    a: Tensor, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, Tensor]:
    """Returns the triangles of a matrix in one, and the row that each row was exchanged with.

    Args:
        a: The matrix.
        overwrite_a: See above.
        check_finite: See above.
    """
    _flags("scipy.linalg.lu_factor", overwrite_a=overwrite_a, check_finite=check_finite)
    packed, pivots, _ = F._lu(_matrix("scipy.linalg.lu_factor", a))
    return packed, pivots


def lu_solve(
    lu_and_piv: tuple[Tensor, Tensor], b: Tensor, trans: int = 0, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """Solves a linear system whose matrix was factorized by :func:`lu_factor`.

    Args:
        lu_and_piv: The triangles (n, n) and the exchanges of rows (n,).
        b: Right-hand sides (n,) or (n, k).
        trans: 0 for the matrix itself, 1 or 2 for the transposed one.
        overwrite_b: See above.
        check_finite: See above.

    Raises:
        ArgumentError: for another ``trans``.

    Example:
        >>> factors = ms.scipy.linalg.lu_factor(Tensor([[0.0, 2.0], [4.0, 0.0]]))
        >>> ms.scipy.linalg.lu_solve(factors, Tensor([2.0, 4.0])).asnumpy().tolist()
        [1.0, 1.0]
    """
    op = "scipy.linalg.lu_solve"
    _flags(op, overwrite_b=overwrite_b, check_finite=check_finite)
    if trans not in (0, 1, 2):
        raise ArgumentError(f"trans must be 0, 1 or 2, not {trans!r}", op=op)
    packed, pivots = lu_and_piv
    order, lower, upper = F.lu_unpack(packed, pivots + 1)
    if trans:
        first = solve_triangular(upper, b, 1)
        return F.matmul(order, solve_triangular(lower, first, 1, True, True))
    moved = F.matmul(F.swapaxes(order, -1, -2), b)
    return solve_triangular(upper, solve_triangular(lower, moved, 0, True, True))


def det(a: Tensor, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Returns the determinant of a matrix.

    Args:
        a: The matrix (n, n).
        overwrite_a: See above.
        check_finite: See above.

    Example:
        >>> ms.scipy.linalg.det(Tensor([[1.0, 2.0], [3.0, 4.0]])).item()
        -2.0
    """
    _flags("scipy.linalg.det", overwrite_a=overwrite_a, check_finite=check_finite)
    return F.det(_matrix("scipy.linalg.det", a, square=True))


def lu(
    a: Tensor, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, ...]:
    """Returns P, L and U with ``P @ L @ U`` equal to a matrix; P exchanges rows.

    Args:
        a: The matrix (m, n).
        permute_l: Whether ``P @ L`` and U are returned.
        overwrite_a: See above.
        check_finite: See above.

    Example:
        >>> p, l, u = ms.scipy.linalg.lu(Tensor([[1.0, 2.0], [2.0, 6.0]]))
        >>> (p @ l @ u).asnumpy().tolist()
        [[1.0, 2.0], [2.0, 6.0]]
    """
    _flags("scipy.linalg.lu", permute_l=permute_l, overwrite_a=overwrite_a,
           check_finite=check_finite)  # fmt: skip
    matrix = _matrix("scipy.linalg.lu", a)
    packed, _, order = F._lu(matrix)
    rows, least = matrix.shape[0], min(matrix.shape)
    lower = F.tril(packed[:, :least], -1) + F.eye(rows, least, matrix.dtype)
    upper = F.triu(packed[:least])
    numbers = F.expand_dims(F.arange(0, rows, dtype=order.dtype), -1)
    exchange = F.cast(F.equal(numbers, order), matrix.dtype)
    return (F.matmul(exchange, lower), upper) if permute_l else (exchange, lower, upper)


def lstsq(
    A: Tensor,  # noqa: N803  (SciPy's name)
    B: Tensor,  # noqa: N803
    rcond: float | None = None,
    driver: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the least-squares solution of ``A @ x = B``, and the rank of A.

    Args:
        A: Matrix (m, n).
        B: Right-hand sides (m,) or (m, k).
        rcond: Singular values below this share of the largest one count as 0.
        driver: Kept for SciPy programs.

    Returns:
        The solution; an empty tensor; the rank; an empty tensor, as in MindSpore.
    """
    matrix = _matrix("scipy.linalg.lstsq", A, "A")
    share = max(matrix.shape) * float(np.finfo(matrix.dtype.numpy).eps) if rcond is None else rcond
    values = F.singular_values(matrix)
    rank = F.sum(F.cast(values > F.amax(values) * share, dtypes.int64))
    nothing = F.zeros((0,), matrix.dtype)
    return F.matmul(F.pinv(matrix, rtol=share), B), nothing, rank, nothing


__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "inv", "lstsq", "lu",
    "lu_factor", "lu_solve", "solve_triangular",
]  # fmt: skip


def __dir__() -> list[str]:
    return list(__all__)


_guard_module(globals(), "scipy.linalg")
