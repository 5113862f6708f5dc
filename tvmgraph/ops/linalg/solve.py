"""Inverses, determinants and linear systems: LAPACK through NumPy, outside compiled graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import MATRIX
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, describe
from tvmgraph.ops.common.rows import sum_to

__all__ = ["det", "inverse", "logdet", "lstsq", "matrix_solve", "slogdet", "solve"]

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


def lapack(function: Callable[..., object]) -> Callable[..., object]:
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


def _vjp_inverse(g: Tensor, y: Tensor, x: Tensor) -> tuple[Tensor]:
    return (-F.matmul(F.matmul(y, g, transpose_a=True), y, transpose_b=True),)


@primitive(
    infer=square,
    traits=MATRIX,
    eager=lapack(np.linalg.inv),
    lower=NO_LOWERING,
    vjp=_vjp_inverse,
    onnx=NO_ONNX,
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


@primitive(
    infer=_infer_det,
    traits=replace(MATRIX, factors="... . . -> ..."),
    eager=lapack(lambda x: np.asarray(np.linalg.det(x), x.dtype)),
    lower=NO_LOWERING,
    vjp=lambda g, y, x: (F.adjoint(F.inverse(x)) * _matrix_like(g * F.conj(y)),),
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


@primitive(
    infer=lambda t: (_infer_det(t), real_like(_infer_det(t))),
    traits=replace(MATRIX, factors="... . . -> ..., ..."),
    eager=lapack(lambda x: tuple(map(np.asarray, np.linalg.slogdet(x)))),
    lower=NO_LOWERING,
    vjp=lambda g, y, x: (F.adjoint(F.inverse(x)) * _matrix_like(g[1]),),
    onnx=NO_ONNX,
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


@primitive(
    infer=_infer_solve,
    traits=replace(MATRIX, factors="... . ., ... . n -> ... . n"),
    eager=lapack(np.linalg.solve),
    lower=NO_LOWERING,
    vjp=_vjp_solve,
    onnx=NO_ONNX,
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
    if input.ndim != 2 or A.ndim not in (1, 2) or input.shape[0] != A.shape[0]:
        raise bad(ShapeError, "input must have shape (m, n) and A (m, k) or (m,)", "lstsq",
                  describe(input=input, A=A))  # fmt: skip
    return F.matmul(F.pinv(input), F.expand_dims(A, 1) if A.ndim == 1 else A)
