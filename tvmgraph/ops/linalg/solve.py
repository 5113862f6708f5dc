"""Inverses, determinants and linear systems: LAPACK through NumPy, outside compiled graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.columns import EagerColumn, InferColumn, VjpColumn
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import RowDecorator, primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import MATRIX, Traits
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, describe, named, require
from tvmgraph.ops.common.rows import sum_to

__all__ = [
    "det", "geqrf", "inverse", "logdet", "lstsq", "matrix_solve", "orgqr", "ormqr", "slogdet",
    "solve", "triangular_solve",
]  # fmt: skip

REAL = (dtypes.float16, dtypes.float32, dtypes.float64)
NO_LOWERING = Reason("pivoting chooses rows by value; no Relax operator factorises matrices")
NO_ONNX = Reason("ONNX has no operator that factorises or inverts matrices")


def square(t: TensorType) -> TensorType:
    """Checks that a type holds square matrices of a dtype that LAPACK knows.

    Args:
        t: The type.

    Raises:
        DTypeError: if the dtype is another one.
        ShapeError: if the last two axes differ.
    """
    rules.require_dtype(t, REAL + dtypes.COMPLEX)
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise ShapeError(f"input must hold square matrices (..., n, n), not {t}")
    return t


def real_like(t: TensorType) -> TensorType:
    """Returns a type with the dtype of real parts.

    Args:
        t: A type.
    """
    return t.with_dtype(
        {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}.get(t.dtype, t.dtype)
    )


def _lapack(function: Callable[..., object]) -> Callable[..., object]:
    """Computes halves, which LAPACK does not know, in float32, and turns NumPy's LinAlgError into
    an error that says which rule was broken.

    Args:
        function: A function of ``numpy.linalg``.
    """

    def run(*arrays: np.ndarray, **attrs: object) -> object:
        half = arrays[0].dtype == np.float16
        given = [a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays]
        try:
            found = function(*given, **attrs)
        except np.linalg.LinAlgError as e:
            raise ArgumentError(f"the matrix is unsuitable: {str(e).lower()}") from None
        return _halved(found) if half else found

    return run


def _halved(found: object) -> object:
    if isinstance(found, tuple):
        return tuple(_halved(a) for a in found)
    if isinstance(found, np.ndarray) and found.dtype == np.float32:
        return found.astype(np.float16)
    return found


def matrix_row(
    *, infer: InferColumn, eager: EagerColumn, vjp: VjpColumn | Reason, samples: Sequence[Sample],
    factors: str = "... . . -> ... . .", traits: Traits | None = None, multi: bool = False,
    lower: Reason = NO_LOWERING, onnx: str | Reason = NO_ONNX,
) -> RowDecorator:  # fmt: skip
    """Adds a row that LAPACK computes, of every matrix of a batch.

    Args:
        infer: Its column of that name, as all others.
        eager: What it calls, see :func:`_lapack`.
        vjp: Its derivative.
        samples: Its samples.
        factors: What of the operands is in the results.
        traits: What kind of operator it is, where factors do not say it.
        multi: Whether it has several results.
        lower: Why it has no lowering.
        onnx: Its form in ONNX.
    """
    return primitive(
        infer=infer, traits=traits or replace(MATRIX, factors=factors), eager=_lapack(eager),
        lower=lower, vjp=vjp, onnx=onnx, samples=samples, multi=multi,
    )  # fmt: skip


SYMMETRIC = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]])


def square_samples(**kwargs: Any) -> list[Sample]:
    """Samples of a row that takes square matrices."""
    eye = np.eye(3)
    return [
        sample(SYMMETRIC.astype(np.float32), **kwargs),
        sample((2, 3, 3), low=-1, high=1, dtype="float64", **kwargs),
        sample(np.stack([eye, 2 * eye, -eye]).astype(np.float32) + 0.1, **kwargs),
        sample((0, 2, 2), **({"grad": False} | kwargs)),  # pyright: ignore[reportArgumentType]
        sample((2, 3), raises=ShapeError),
        sample((3, 3), dtype="int32", raises=DTypeError),
    ]


# ---- inverse and determinant --------------------------------------------------------------------


@matrix_row(
    infer=square,
    eager=np.linalg.inv,
    vjp=lambda g, y, x: (-F.matmul(F.matmul(y, g, transpose_a=True), y, transpose_b=True),),
    samples=[*square_samples(), sample(np.zeros((2, 2), np.float32), raises=ArgumentError)],
)
def inverse(input: Tensor) -> Tensor:
    r"""Inverse of square matrices.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Tensor of ``input``'s type.

    Raises:
        ShapeError: if the matrices are not square.
        ArgumentError: if one is singular.

    Example:
        >>> ops.inverse(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 5.00000000e-01,  0.00000000e+00],
         [ 0.00000000e+00,  2.50000000e-01]])
    """
    ...


def _infer_det(t: TensorType) -> TensorType:
    return square(t).with_shape(t.shape[:-2])


def _matrix_like(g: Tensor) -> Tensor:
    return F.expand_dims(F.expand_dims(g, -1), -1)


@matrix_row(
    infer=_infer_det,
    eager=lambda x: np.asarray(np.linalg.det(x), x.dtype),
    vjp=lambda g, y, x: (F.adjoint(F.inverse(x)) * _matrix_like(g * F.conj(y)),),
    factors="... . . -> ...",
    onnx="Det",
    samples=square_samples(),
)
def det(input: Tensor) -> Tensor:
    r"""Determinant of square matrices.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Tensor of shape :math:`(...)`.

    Raises:
        ShapeError: if the matrices are not square.

    Note:
        The derivative needs the inverse and fails for singular matrices.

    Example:
        >>> ops.det(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[], dtype=Float32, value= 8)
    """
    ...


def _vjp_slogdet(g: tuple[Tensor, Tensor], y: tuple[Tensor, Tensor], x: Tensor) -> tuple[Tensor]:
    """d log det = tr(inv(x) dx); its imaginary part is the angle by which a complex sign turns."""
    slope = g[1]
    if x.dtype.kind == "c":
        slope = F.complex(slope, F.imag(g[0] * F.conj(y[0])))
    return (F.adjoint(F.inverse(x)) * _matrix_like(slope),)


@matrix_row(
    infer=lambda t: (_infer_det(t), real_like(_infer_det(t))),
    eager=lambda x: tuple(map(np.asarray, np.linalg.slogdet(x))),
    vjp=_vjp_slogdet,
    factors="... . . -> ..., ...",
    multi=True,
    samples=square_samples(),
)
def slogdet(input: Tensor) -> tuple[Tensor, Tensor]:
    r"""Sign and logarithm of the absolute value of determinants.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Two tensors of shape :math:`(...)`: the sign and :math:`\log |\det|`.

    Raises:
        ShapeError: if the matrices are not square.

    Example:
        >>> ops.slogdet(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        (Tensor(shape=[], dtype=Float32, value= 1), Tensor(shape=[], dtype=Float32, value= 2.07944))
    """
    ...


def logdet(input: Tensor) -> Tensor:
    r"""Logarithm of determinants; NaN where the determinant is negative.

    Args:
        input: float32 or float64 tensor of shape :math:`(..., n, n)`.

    Returns:
        Tensor of shape :math:`(...)`.

    Raises:
        ShapeError: if the matrices are not square.

    Example:
        >>> ops.logdet(Tensor([[2.0, 0.0], [0.0, 4.0]]))
        Tensor(shape=[], dtype=Float32, value= 2.07944)
    """
    sign, value = slogdet(input)
    return F.where(sign < 0, F.full_like(value, float("nan")), value)


# ---- linear systems -----------------------------------------------------------------------------


def _infer_solve(a: TensorType, b: TensorType) -> TensorType:
    square(a)
    rules.require_same_dtype(a, b)
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError(f"the right-hand side {b} does not fit {a}")
    batch = rules.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return b.with_shape((*batch, *b.shape[-2:]))


def _vjp_solve(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    gb = F.solve(F.swapaxes(a, -1, -2), g)
    return sum_to(-F.matmul(gb, y, transpose_b=True), a), sum_to(gb, b)


@matrix_row(
    infer=_infer_solve,
    eager=np.linalg.solve,
    vjp=_vjp_solve,
    factors="... . ., ... . n -> ... . n",
    samples=[
        sample(SYMMETRIC.astype(np.float32), (3, 2)),
        sample(SYMMETRIC.astype(np.float32), (2, 3, 1)),
        sample((2, 0, 0), (2, 0, 3), grad=False),
        sample((3, 3), (2, 2), raises=ShapeError),
        sample(np.zeros((2, 2), np.float32), (2, 2), raises=ArgumentError),
    ],
)
def solve(a: Tensor, b: Tensor) -> Tensor:
    r"""Solves linear systems: the :math:`x` with :math:`a \cdot x = b`.

    Args:
        a: float32 or float64 tensor of shape :math:`(..., n, n)`.
        b: Tensor of ``a``'s dtype and shape :math:`(..., n, k)`.

    Returns:
        Tensor of shape :math:`(..., n, k)`.

    Raises:
        ShapeError: if the shapes do not fit.
        ArgumentError: if a matrix is singular.

    Example:
        >>> ops.solve(Tensor([[2.0, 0.0], [0.0, 4.0]]), Tensor([[2.0], [2.0]]))
        Tensor(shape=[2, 1], dtype=Float32, value=
        [[ 1.00000000e+00],
         [ 5.00000000e-01]])
    """
    ...


def matrix_solve(matrix: Tensor, rhs: Tensor, adjoint: bool = False) -> Tensor:
    r"""Solves linear systems: the :math:`x` with :math:`matrix \cdot x = rhs`.

    Args:
        matrix: float32 or float64 tensor of shape :math:`(..., n, n)`.
        rhs: Tensor of shape :math:`(..., n, k)`.
        adjoint: Whether to solve with the transposed matrix, of complex numbers the conjugate one.

    Returns:
        Tensor of shape :math:`(..., n, k)`.

    Raises:
        ShapeError: if the shapes do not fit.
        ArgumentError: if a matrix is singular.

    Example:
        >>> ops.matrix_solve(Tensor([[2.0, 0.0], [0.0, 4.0]]), Tensor([[2.0], [2.0]]))
        Tensor(shape=[2, 1], dtype=Float32, value=
        [[ 1.00000000e+00],
         [ 5.00000000e-01]])
    """
    if adjoint:
        matrix = F.swapaxes(F.conj(matrix) if matrix.dtype.kind == "c" else matrix, -1, -2)
    return solve(matrix, rhs)


def lstsq(input: Tensor, A: Tensor) -> Tensor:
    r"""Least squares: the smallest :math:`y` that minimises :math:`\|input \cdot y - A\|_2`.

    Args:
        input: Tensor of shape :math:`(m, n)` and full rank.
        A: Tensor of shape :math:`(m, k)` or :math:`(m,)`.

    Returns:
        Tensor of shape :math:`(n, k)`.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> ops.lstsq(Tensor([[1.0], [1.0]]), Tensor([[1.0], [3.0]]))
        Tensor(shape=[1, 1], dtype=Float32, value=
        [[ 1.99999988e+00]])
    """
    require(input.ndim == 2 and A.ndim in (1, 2) and input.shape[0] == A.shape[0],
            "input must have shape (m, n) and A (m, k) or (m,)", "lstsq", input=input,
            A=A)  # fmt: skip
    return F.matmul(F.pinv(input), F.expand_dims(A, 1) if A.ndim == 1 else A)


# ---- products of Householder reflections, and triangular systems ---------------------------------


def _infer_geqrf(input: TensorType) -> tuple[TensorType, TensorType]:
    rules.require_dtype(input, REAL)
    if input.ndim < 2:
        raise ShapeError(f"input must have at least 2 axes, not {input.ndim}")
    *batch, m, n = input.static_shape
    return input, input.with_shape((*batch, min(m, n)))


def _eager_geqrf(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    h, tau = np.linalg.qr(x, "raw")
    return np.swapaxes(h, -1, -2).astype(x.dtype), tau.astype(x.dtype)


@matrix_row(
    infer=_infer_geqrf,
    eager=_eager_geqrf,
    vjp=Reason("the derivative of the reflections is not implemented"),
    factors="... . . -> ... . ., ... .",
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
    require(input.dtype.kind != "c", "ormqr is for real tensors", "ormqr", DTypeError, input=input)
    if other.ndim < 2 or other.shape[-2 if left else -1] != input.shape[-2]:
        rule = "the matrix must have as many rows (columns from the right) as the reflections"
        raise bad(ShapeError, rule, "ormqr", describe(input=input, other=other))
    if left:
        return _reflect(input, tau, other, backwards=not transpose)
    swapped = _reflect(input, tau, F.swapaxes(other, -1, -2), backwards=transpose)
    return F.swapaxes(swapped, -1, -2)


def _eager_triangle(a: np.ndarray, b: np.ndarray, *, upper: bool, unit: bool) -> np.ndarray:
    if not unit and not np.diagonal(a, axis1=-2, axis2=-1).all():
        raise np.linalg.LinAlgError("Singular matrix")
    batch, n = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-1]
    a, b = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (a, b))
    x = np.empty(b.shape, b.dtype)
    if np.prod(batch) > n:  # row by row in all matrices at once
        for i in reversed(range(n)) if upper else range(n):
            row, known = slice(i, i + 1), slice(i + 1, None) if upper else slice(i)
            rest = b[..., row, :] - a[..., row, known] @ x[..., known, :]
            x[..., row, :] = rest if unit else rest / a[..., row, row]
        return x
    from scipy.linalg import blas  # here, as it takes half a second

    (trsm,) = blas.get_blas_funcs(("trsm",), (a,))
    for i in np.ndindex(batch if x.size else (0,)):
        # x^T a^T = b^T is as BLAS wants matrices to lie
        x[i] = trsm(1, a[i].T, b[i].T, side=1, lower=upper, diag=unit).T
    return x


def _vjp_triangle(
    g: Tensor, y: Tensor, a: Tensor, b: Tensor, *, upper: bool, unit: bool
) -> tuple[Tensor, Tensor]:
    gb = _triangle_solve(F.swapaxes(a, -1, -2), g, upper=not upper, unit=unit)
    ga = F.neg(F.matmul(gb, y, transpose_b=True))
    return sum_to(F.triu(ga, int(unit)) if upper else F.tril(ga, -int(unit)), a), sum_to(gb, b)


@matrix_row(
    infer=lambda a, b, upper, unit: _infer_solve(a, b),
    eager=_eager_triangle,
    vjp=_vjp_triangle,
    factors="... . ., ... . n -> ... . n",
    samples=[
        sample(SYMMETRIC.astype(np.float32), (3, 2), upper=True, unit=False),
        sample(SYMMETRIC, (2, 3, 1), upper=False, unit=True, dtype="float64"),
        sample((2, 0, 0), (2, 0, 3), upper=False, unit=False, grad=False),
        sample((3, 3), (2, 2), upper=False, unit=False, raises=ShapeError),
        sample(np.zeros((2, 2), np.float32), (2, 2), upper=True, unit=False, raises=ArgumentError),
    ],
)
@named("triangular_solve")
def _triangle_solve(a: Tensor, b: Tensor, *, upper: bool, unit: bool) -> Tensor:
    r"""Solves linear systems with one triangle of real matrices.

    Args:
        a: Tensor of shape :math:`(..., n, n)`, of which one triangle is read.
        b: Tensor of ``a``'s dtype and shape :math:`(..., n, k)`.
        upper: Whether it is the upper triangle.
        unit: Whether the diagonal counts as ones.
    """
    ...


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
    if A.dtype.kind != "c":
        matrix = F.swapaxes(A, -1, -2) if transpose else A
        return _triangle_solve(matrix, b, upper=upper != transpose, unit=unitriangular), A
    offset = int(unitriangular)
    matrix = F.triu(A, offset) if upper else F.tril(A, -offset)
    if unitriangular:
        matrix = matrix + F.eye(A.shape[-1], dtype=A.dtype)
    if transpose:
        matrix = F.swapaxes(matrix, -1, -2)
    return F.matrix_solve(matrix, b), A
