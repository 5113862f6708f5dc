"""The layer whose name :mod:`tvmgraph.nn` has for a metric; it is ``nn.layer.CosineSimilarity``."""

from __future__ import annotations

from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.nn.cell import Cell

__all__ = ["CosineSimilarity"]


class CosineSimilarity(Cell):
    r"""Cosine of the angle along an axis: :math:`x_1 \cdot x_2 / (\|x_1\| \|x_2\|)`.

    Args:
        dim: The axis along which the vectors lie.
        eps: The least that the lengths count as.

    Inputs:
        - **x1** (Tensor) - Vectors, a float dtype.
        - **x2** (Tensor) - As many vectors.

    Outputs:
        Tensor without the axis.

    Example:
        >>> nn.layer.CosineSimilarity()(Tensor([[1.0, 0.0]]), Tensor([[2.0, 0.0]]))
        Tensor(shape=[1], dtype=Float32, value= [ 1.00000000e+00])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def construct(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


_guard_module(globals(), "nn.layer")
