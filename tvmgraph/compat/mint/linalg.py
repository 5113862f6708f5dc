"""MindSpore's ``mindspore.mint.linalg``."""

from __future__ import annotations

from tvmgraph import ops
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.tensor import Tensor


def inv(input: Tensor) -> Tensor:
    """Returns the inverse of square matrices.

    Args:
        input: Matrices [..., N, N].
    """
    return ops.inverse(input)


def qr(A: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:  # noqa: N803
    """Returns the factors Q and R of matrices.

    Args:
        A: Matrices [..., M, N].
        mode: ``"reduced"`` (Q has min(M, N) columns) or ``"complete"`` (M columns).
    """
    return ops.qr(A, mode)


def norm(A: Tensor, ord: object = None, dim: AxisLike | None = None, keepdim: bool = False, *,  # noqa: N803
         dtype: DTypeLike | None = None) -> Tensor:  # fmt: skip
    """Returns a norm of vectors or matrices.

    Args:
        A: Tensor of any shape.
        ord: Order of the norm: a number, or ``"fro"`` or ``"nuc"`` of matrices; 2 by default.
        dim: One axis for vectors, two for matrices; the flat tensor by default.
        keepdim: Whether reduced axes stay with size 1.
        dtype: The dtype of the computation and the result; that of the input by default.
    """
    return ops.norm(A, ord, dim=dim, keepdim=keepdim, dtype=dtype)


def vector_norm(x: Tensor, ord: float = 2, dim: AxisLike | None = None, keepdim: bool = False, *,
                dtype: DTypeLike | None = None) -> Tensor:  # fmt: skip
    """Returns the norm of all elements along axes, as of one vector.

    Args:
        x: Tensor of any shape.
        ord: Order of the norm.
        dim: Axis or axes; all of them by default.
        keepdim: Whether reduced axes stay with size 1.
        dtype: The dtype of the computation and the result; that of the input by default.
    """
    return ops.vector_norm(x, ord, dim, keepdim, dtype=dtype)


def matrix_norm(A: Tensor, ord: object = "fro", dim: AxisLike = (-2, -1), keepdim: bool = False, *,  # noqa: N803
                dtype: DTypeLike | None = None) -> Tensor:  # fmt: skip
    """Returns a norm of matrices.

    Args:
        A: Matrices, of two axes or more.
        ord: ``"fro"``, ``"nuc"``, or one of 1, -1, 2, -2, inf and -inf.
        dim: The two axes of a matrix.
        keepdim: Whether reduced axes stay with size 1.
        dtype: The dtype of the computation and the result; that of the input by default.
    """
    return ops.matrix_norm(A, ord, dim, keepdim, dtype=dtype)


__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]

_guard_module(globals(), "mint.linalg")
