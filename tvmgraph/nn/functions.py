"""Layers without parameters that compute one expression of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvmgraph.compat.sparse import COOTensor
from tvmgraph.compat.sparse_functions import sparse_dense_matmul
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, is_int, reject
from tvmgraph.nn.cell import Cell


class LGamma(Cell):
    """Logarithm of the absolute gamma function.

    Inputs:
        - **x** (Tensor) - Any shape; elements above 0 for a finite result.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> round(float(nn.LGamma()(Tensor(3.0))), 4)
        0.6931
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.lgamma(x)


class DiGamma(Cell):
    """Derivative of the logarithm of the gamma function.

    Inputs:
        - **x** (Tensor) - Any shape.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> round(float(nn.DiGamma()(Tensor(1.0))), 4)
        -0.5772
    """

    def construct(self, x: Tensor) -> Tensor:
        return F.digamma(x)


class IGamma(Cell):
    """Lower incomplete gamma function, regularized.

    Inputs:
        - **a** (Tensor) - The shape parameter, above 0.
        - **x** (Tensor) - Upper end of the integral, at least 0; the shapes broadcast.

    Outputs:
        Tensor of the broadcast shape.

    Example:
        >>> round(float(nn.IGamma()(Tensor(1.0), Tensor(1.0))), 4)
        0.6321
    """

    def construct(self, a: Tensor, x: Tensor) -> Tensor:
        return F.igamma(a, x)


class LBeta(Cell):
    r"""Logarithm of the beta function: :math:`\ln \Gamma(x) + \ln \Gamma(y) - \ln \Gamma(x + y)`.

    Inputs:
        - **x** (Tensor) - Any shape, above 0.
        - **y** (Tensor) - Above 0; the shapes broadcast.

    Outputs:
        Tensor of the broadcast shape.

    Example:
        >>> round(float(nn.LBeta()(Tensor(2.0), Tensor(3.0))), 4)
        -2.4849
    """

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return F.lgamma(x) + F.lgamma(y) - F.lgamma(x + y)


class MatMul(Cell):
    """Matrix product, broadcast over leading axes.

    Args:
        transpose_x1: Whether the first matrices are transposed.
        transpose_x2: Whether the second ones are.

    Inputs:
        - **x1** (Tensor) - Shape :math:`(*, N, M)`, or :math:`(*, M, N)` if transposed.
        - **x2** (Tensor) - Shape :math:`(*, M, K)`, or :math:`(*, K, M)` if transposed.

    Outputs:
        Tensor of shape :math:`(*, N, K)`.

    Raises:
        DTypeError: if an argument is no bool.

    Example:
        >>> nn.MatMul(transpose_x2=True)(ops.ones((2, 3)), ops.ones((4, 3))).shape
        (2, 4)
    """

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        self.transpose_x1 = boolean("MatMul", "transpose_x1", transpose_x1)
        self.transpose_x2 = boolean("MatMul", "transpose_x2", transpose_x2)

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        x1 = F.swapaxes(x1, -1, -2) if self.transpose_x1 and x1.ndim > 1 else x1
        x2 = F.swapaxes(x2, -1, -2) if self.transpose_x2 and x2.ndim > 1 else x2
        return F.matmul(x1, x2)


class MatDet(Cell):
    """Determinant of symmetric positive definite matrices.

    Inputs:
        - **a** (Tensor) - Shape :math:`(*, N, N)`.

    Outputs:
        Tensor of shape :math:`(*)`.

    Example:
        >>> float(nn.MatDet()(Tensor([[2.0, 0.0], [0.0, 3.0]])))
        6.0
    """

    def construct(self, a: Tensor) -> Tensor:
        return F.det(a)


class MatInverse(Cell):
    """Inverse of symmetric positive definite matrices.

    Inputs:
        - **a** (Tensor) - Shape :math:`(*, N, N)`.

    Outputs:
        Tensor of the same shape.

    Example:
        >>> nn.MatInverse()(Tensor([[2.0, 0.0], [0.0, 4.0]])).asnumpy().tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """

    def construct(self, a: Tensor) -> Tensor:
        return F.inverse(a)


class MatrixDiag(Cell):
    """Matrices with the last axis of a tensor as their diagonal.

    Inputs:
        - **input_x** (Tensor) - Shape :math:`(*, N)`.

    Outputs:
        Tensor of shape :math:`(*, N, N)`.

    Example:
        >>> nn.MatrixDiag()(Tensor([1, 2])).asnumpy().tolist()
        [[1, 0], [0, 2]]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        return F.diag_embed(input_x)


class MatrixDiagPart(Cell):
    r"""Diagonals of matrices.

    Inputs:
        - **input_x** (Tensor) - Shape :math:`(*, N, M)`.

    Outputs:
        Tensor of shape :math:`(*, \min(N, M))`.

    Example:
        >>> nn.MatrixDiagPart()(Tensor([[1, 2], [3, 4]])).asnumpy().tolist()
        [1, 4]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        return F.diagonal(input_x, 0, -2, -1)


class MatrixSetDiag(Cell):
    r"""Matrices with another diagonal.

    Inputs:
        - **input_x** (Tensor) - Shape :math:`(*, N, M)`.
        - **diagonal** (Tensor) - Shape :math:`(*, \min(N, M))`.

    Outputs:
        Tensor of ``input_x``'s shape.

    Example:
        >>> nn.MatrixSetDiag()(Tensor([[1, 2], [3, 4]]), Tensor([0, 0])).asnumpy().tolist()
        [[0, 2], [3, 0]]
    """

    def construct(self, input_x: Tensor, diagonal: Tensor) -> Tensor:
        return F.diagonal_scatter(input_x, diagonal, 0, -2, -1)


class ImageGradients(Cell):
    """Differences of neighbouring pixels, downwards and to the right; 0 at the last ones.

    Inputs:
        - **images** (Tensor) - Shape :math:`(N, C, H, W)`.

    Outputs:
        Tuple of two tensors of that shape.

    Raises:
        ShapeError: if the images have not four axes.

    Example:
        >>> dy, dx = nn.ImageGradients()(Tensor([[[[1, 2], [4, 8]]]]))
        >>> dy.asnumpy().tolist(), dx.asnumpy().tolist()
        ([[[[3, 6], [0, 0]]]], [[[[1, 0], [4, 0]]]])
    """

    def construct(self, images: Tensor) -> tuple[Tensor, Tensor]:
        if images.ndim != 4:
            reject(ShapeError, "ImageGradients", "images must have 4 axes", f"{images.aval}")
        return _differences(images, 2), _differences(images, 3)


def _differences(images: Tensor, axis: int) -> Tensor:
    size = images.shape[axis]
    first = F.narrow(images, axis, 0, 1)
    rise = F.narrow(images, axis, 1, size - 1) - F.narrow(images, axis, 0, size - 1)
    return F.concat((rise, F.zeros_like(first)), axis)


class TimeDistributed(Cell):
    """Applies a layer at every place of a time axis.

    Args:
        layer: A Cell or operator.
        time_axis: The time axis.
        reshape_with_axis: An axis with which the time axis is merged so that the layer runs once;
            None runs it step by step.

    Inputs:
        - **inputs** (Tensor) - At least three axes.

    Outputs:
        Tensor with the same time axis.

    Raises:
        DTypeError: if an argument has the wrong class.
        ArgumentError: if both axes are the same.

    Example:
        >>> net = nn.TimeDistributed(nn.Dense(3, 4), time_axis=1, reshape_with_axis=0)
        >>> net(ops.ones((2, 5, 3))).shape
        (2, 5, 4)
    """

    def __init__(
        self,
        layer: Callable[[Tensor], Tensor],
        time_axis: int,
        reshape_with_axis: int | None = None,
    ) -> None:
        super().__init__()
        if not callable(layer):
            reject(DTypeError, "TimeDistributed", "layer must be a Cell or an operator")
        for name, axis in (("time_axis", time_axis), ("reshape_with_axis", reshape_with_axis or 0)):
            if not is_int(axis):
                reject(DTypeError, "TimeDistributed", f"{name} must be an int", f"{axis!r}")
        if time_axis == reshape_with_axis:
            reject(ArgumentError, "TimeDistributed", "the two axes must differ", f"{time_axis}")
        self.layer, self.time_axis = layer, time_axis
        self.reshape_with_axis = reshape_with_axis

    def construct(self, inputs: Tensor) -> Tensor:
        time = self.time_axis % inputs.ndim
        if self.reshape_with_axis is None:
            return F.stack([self.layer(item) for item in F.unstack(inputs, time)], time)
        beside = self.reshape_with_axis % inputs.ndim
        if beside == inputs.ndim - 1:
            place = inputs.ndim - 2
        else:
            place = beside + 1 if time > beside else beside - 1
        moved = F.moveaxis(inputs, time, place)
        at = min(place, beside)
        pair = tuple(moved.shape[at : at + 2])
        merged = (*moved.shape[:at], pair[0] * pair[1], *moved.shape[at + 2 :])
        found: Any = self.layer(F.reshape(moved, merged))
        return F.reshape(found, (*found.shape[:at], *pair, *found.shape[at + 1 :]))


class SparseToDense(Cell):
    """Returns a sparse matrix as a dense tensor.

    Inputs:
        - **sparse_tensor** (COOTensor) - The matrix.

    Outputs:
        Tensor of its shape.

    Example:
        >>> x = ms.COOTensor(Tensor([[0, 1]]), Tensor([5.0]), (1, 2))
        >>> nn.SparseToDense()(x).asnumpy().tolist()
        [[0.0, 5.0]]
    """

    def construct(self, sparse_tensor: COOTensor) -> Tensor:
        return sparse_tensor.to_dense()


class SparseTensorDenseMatmul(Cell):
    """Product of a sparse matrix, given by places and values, and a dense one.

    Args:
        adjoint_st: Whether the sparse matrix is transposed and conjugated.
        adjoint_dt: Whether the dense one is.

    Inputs:
        - **indices** (Tensor) - Places of the values, integers of shape :math:`(nnz, 2)`.
        - **values** (Tensor) - Shape :math:`(nnz)`.
        - **sparse_shape** (tuple[int, int]) - Rows and columns of the sparse matrix.
        - **dense** (Tensor) - The dense matrix.

    Outputs:
        Tensor of two axes.

    Raises:
        DTypeError: if an argument is no bool.

    Example:
        >>> places, values, dense = Tensor([[0, 1]]), Tensor([5.0]), ops.ones((2, 1))
        >>> nn.SparseTensorDenseMatmul()(places, values, (1, 2), dense).asnumpy().tolist()
        [[5.0]]
    """

    def __init__(self, adjoint_st: bool = False, adjoint_dt: bool = False) -> None:
        super().__init__()
        self.adjoint_st = boolean(type(self).__name__, "adjoint_st", adjoint_st)
        self.adjoint_dt = boolean(type(self).__name__, "adjoint_dt", adjoint_dt)

    def construct(
        self, indices: Tensor, values: Tensor, sparse_shape: Sequence[int], dense: Tensor
    ) -> Tensor:
        return sparse_dense_matmul(
            indices, values, sparse_shape, dense, self.adjoint_st, self.adjoint_dt
        )


__all__ = [
    "DiGamma", "IGamma", "ImageGradients", "LBeta", "LGamma", "MatDet", "MatInverse", "MatMul",
    "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag", "SparseTensorDenseMatmul",
    "SparseToDense", "TimeDistributed",
]  # fmt: skip
