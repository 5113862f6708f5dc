"""Losses and similarities between embeddings, and distances of rows."""

from __future__ import annotations

import numpy as np

from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.precision import precise
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.ops.common.arguments import require
from tvmgraph.ops.loss.regression import reduce_loss, same_shape, wide
from tvmgraph.ops.reduction.norms import p_norm

__all__ = [
    "cosine_embedding_loss", "cosine_similarity", "hinge_embedding_loss", "margin_ranking_loss",
    "pdist", "triplet_margin_loss",
]  # fmt: skip


def _length(d: Tensor, p: float) -> Tensor:
    return p_norm(d, p, (d.ndim - 1,))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    r"""Cosine of the angle along an axis: :math:`x_1 \cdot x_2 / (\|x_1\| \|x_2\|)`.

    Args:
        x1: Tensor of any shape, a float dtype.
        x2: Tensor whose shape broadcasts with ``x1``'s.
        dim: The axis along which the vectors lie.
        eps: Smallest length that is divided by.

    Returns:
        Tensor of the broadcast shape without axis ``dim``.

    Raises:
        ShapeError: if the shapes do not broadcast.
        OutOfRangeError: if ``dim`` is no axis.

    Example:
        >>> ops.cosine_similarity(Tensor([[1.0, 0.0]]), Tensor([[1.0, 1.0]]))
        Tensor(shape=[1], dtype=Float32, value= [ 7.07106769e-01])
    """
    return _cosine(x1, x2, dim, float(eps))


@fusible
def _cosine(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    a, b = wide(x1), wide(x2)

    def lengths(x: Tensor) -> Tensor:
        return F.sqrt(F.maximum(F.sum(x * x, dim), eps * eps))

    y = F.sum(a * b, dim) / (lengths(a) * lengths(b))
    return F.cast(y, x1.dtype) if x1.dtype.is_float else y


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    r"""Loss of a cosine: :math:`1 - \cos` for target 1, :math:`\max(0, \cos - margin)` for -1.

    Args:
        input1: Vectors along axis 1: :math:`(N, D)` (or one vector, :math:`(D,)`).
        input2: Vectors of the same shape.
        target: 1 or -1 for every pair, :math:`(N,)`.
        margin: Cosine up to which a pair of target -1 costs nothing, in [-1, 1].
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of shape :math:`(N,)`, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes do not fit.
        ArgumentError: if ``margin`` or ``reduction`` is not valid.

    Example:
        >>> ops.cosine_embedding_loss(
        ...     Tensor([[1.0, 0.0]]), Tensor([[1.0, 1.0]]), Tensor([1]))
        Tensor(shape=[], dtype=Float32, value= 0.292893)
    """
    op = "cosine_embedding_loss"
    same_shape(input1, input2, ("input1", "input2"), op)
    require(-1 <= margin <= 1, "margin must lie in [-1, 1]", op, ArgumentError, margin=margin)
    cos = cosine_similarity(input1, input2, 1 if input1.ndim > 1 else 0)
    require(cos.aval.shape == target.aval.shape, "target must have one entry per pair of vectors",
            op, input1=input1, target=target)  # fmt: skip
    near = F.where(F.equal(target, 1), 1 - cos, 0.0)
    loss = near + F.where(F.equal(target, -1), F.relu(cos - margin), 0.0)
    return reduce_loss(loss, reduction, op)


@fusible
def hinge_embedding_loss(
    inputs: Tensor, targets: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    r"""Loss of a distance: :math:`x` for target 1, :math:`\max(0, margin - x)` for target -1.

    The sign of the target counts; 0 adds nothing.

    Args:
        inputs: Distances :math:`x`, any shape, a float dtype.
        targets: 1 or -1, broadcast with ``inputs``.
        margin: Distance from which a target of -1 costs nothing.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of the broadcast shape, or a 0-d Tensor.

    Raises:
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> ops.hinge_embedding_loss(Tensor([0.3, 0.7]), Tensor([1.0, -1.0]))
        Tensor(shape=[], dtype=Float32, value= 0.3)
    """
    near = F.where(F.greater(targets, 0), inputs, 0.0)
    far = F.where(F.less(targets, 0), F.maximum(margin - inputs, 0.0), 0.0)
    return reduce_loss(near + far, reduction, "hinge_embedding_loss")


@fusible
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    r"""Loss of an order: :math:`\max(0, -target (input_1 - input_2) + margin)`.

    Args:
        input1: Scores of any shape, a float dtype.
        input2: Scores, broadcast with ``input1``.
        target: 1 where ``input1`` should be larger, -1 where ``input2`` should.
        margin: Required difference.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of the broadcast shape, or a 0-d Tensor.

    Raises:
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> ops.margin_ranking_loss(Tensor([1.0]), Tensor([2.0]), Tensor([1.0]))
        Tensor(shape=[], dtype=Float32, value= 1)
    """
    d = input1 - input2
    loss = F.clamp(margin - F.cast(target, d.dtype) * d, 0.0)
    return reduce_loss(loss, reduction, "margin_ranking_loss")


@precise
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    r"""Loss of two distances: :math:`\max(0, d(a, p) - d(a, n) + margin)`.

    Args:
        anchor: Vectors :math:`a` along the last axis, a float dtype.
        positive: Vectors that should be near, broadcast with ``anchor``.
        negative: Vectors that should be far, broadcast with ``anchor``.
        margin: Required difference of the distances.
        p: Norm of :math:`d(x, y) = \|x - y + eps\|_p`.
        eps: Keeps the norm away from zero.
        swap: Whether :math:`d(p, n)` replaces :math:`d(a, n)` where it is smaller.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor without the last axis, or a 0-d Tensor.

    Raises:
        ArgumentError: if ``reduction`` is unknown.
        ShapeError: if the shapes do not broadcast or have no axis.

    Example:
        >>> ops.triplet_margin_loss(Tensor([[0.0]]), Tensor([[1.0]]), Tensor([[3.0]]))
        Tensor(shape=[], dtype=Float32, value= 0)
    """
    op = "triplet_margin_loss"
    require(anchor.ndim, "anchor must have at least one axis", op, anchor=anchor)
    if isinstance(margin, Tensor):
        margin = F.cast(margin, anchor.dtype)
    return _distances_apart(anchor, positive, negative, margin, p, eps, swap, reduction)


@fusible
def _distances_apart(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: Tensor | float, p: float,
    eps: float, swap: bool, reduction: str,
) -> Tensor:  # fmt: skip
    near = _length(anchor - positive + eps, p)
    far = _length(anchor - negative + eps, p)
    if swap:
        far = F.minimum(far, _length(positive - negative + eps, p))
    return reduce_loss(F.relu(near - far + margin), reduction, "triplet_margin_loss")


@precise
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    r"""Distances of all pairs of rows: :math:`\|x_i - x_j\|_p` for :math:`i < j`.

    Args:
        input: Tensor of shape :math:`(*, N, M)`, a float dtype.
        p: The norm, at least 0.

    Returns:
        Tensor of shape :math:`(*, N (N - 1) / 2)`, in the order (0, 1), (0, 2), ...

    Raises:
        ShapeError: if ``input`` has fewer than 2 axes.
        ArgumentError: if ``p`` is negative.
        DTypeError: if ``input`` does not have a float dtype.

    Example:
        >>> ops.pdist(Tensor([[0.0, 0.0], [3.0, 4.0]]))
        Tensor(shape=[1], dtype=Float32, value= [ 5.00000000e+00])
    """
    op = "pdist"
    require(input.ndim >= 2, "input must have at least 2 axes", op, input=input)
    require(p >= 0, "p must not be negative", op, ArgumentError, p=p)
    require(input.dtype.is_float, "input must have a float dtype", op, DTypeError, input=input)
    rows = input.aval.with_shape(input.aval.shape[-2:-1]).static_shape[0]
    axis = input.ndim - 2
    first, second = [F.gather(input, Tensor(i), axis) for i in np.triu_indices(rows, 1)]
    return _length(first - second, p)
