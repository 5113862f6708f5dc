"""Losses that compare vectors, and losses with labels of plus and minus one."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import int32
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.nn._checks import boolean, integer, real, reject
from tvmgraph.nn.loss import LossBase, same_shapes


class CosineEmbeddingLoss(LossBase):
    r"""Compares directions: :math:`1 - \cos(x_1, x_2)` for the label 1,
    :math:`\max(0, \cos(x_1, x_2) - margin)` for -1.

    Args:
        margin: In [-1, 1].
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits_x1** (Tensor) - Shape :math:`(N, D, *)`.
        - **logits_x2** (Tensor) - The same shape.
        - **labels** (Tensor) - 1 or -1, shape :math:`(N, *)`.

    Outputs:
        A 0-d tensor, or the losses of the pairs for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the shapes differ.

    Example:
        >>> x = ops.ones((2, 3))
        >>> nn.CosineEmbeddingLoss()(x, x, Tensor([1, -1])).shape
        ()
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = float(real("CosineEmbeddingLoss", "margin", margin, -1, 1))

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:
        same_shapes("CosineEmbeddingLoss", logits_x1=logits_x1, logits_x2=logits_x2)
        return F.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    r"""Ranks pairs: :math:`\max(0, -y (x_1 - x_2) + margin)`.

    Args:
        margin: What the better one must be ahead.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **input1** (Tensor) - Any shape.
        - **input2** (Tensor) - A shape that broadcasts with it.
        - **target** (Tensor) - 1 or -1, a shape that broadcasts, too.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> one = Tensor([1.0])
        >>> float(nn.MarginRankingLoss(0.5)(one, one, one))
        0.5
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = float(real("MarginRankingLoss", "margin", margin))

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return self.get_loss(F.relu((input2 - input1) * target + self.margin))


class HingeEmbeddingLoss(LossBase):
    r"""Hinge loss of a distance: :math:`x` for the label 1, :math:`\max(0, margin - x)` for -1.

    Args:
        margin: Distance beyond which pairs with label -1 cost nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Distances, any shape.
        - **labels** (Tensor) - 1 or -1, a shape that broadcasts.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> float(nn.HingeEmbeddingLoss()(Tensor([0.25]), Tensor([-1.0])))
        0.75
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = float(real("HingeEmbeddingLoss", "margin", margin))

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.hinge_embedding_loss(logits, labels, self.margin, self.reduction)


class SoftMarginLoss(LossBase):
    r"""Logistic loss of labels 1 and -1: :math:`\log(1 + e^{-y x})`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Any shape.
        - **labels** (Tensor) - 1 or -1, the same shape.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> nn.SoftMarginLoss()(Tensor([1.0]), Tensor([-1.0])).shape
        ()
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        same_shapes("SoftMarginLoss", logits=logits, labels=labels)
        return self.get_loss(F.softplus(-logits * F.cast(labels, logits.dtype)))


class TripletMarginLoss(LossBase):
    r"""Relative distance: :math:`\max(0, d(a, p) - d(a, n) + margin)` with the p-norm distance.

    Args:
        p: Degree of the norm.
        swap: Whether :math:`d(p, n)` counts instead of :math:`d(a, n)` when it is smaller.
        eps: Added to the differences.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        margin: What the negative sample must be farther away.

    Inputs:
        - **x** (Tensor) - Anchors, shape :math:`(N, D)` (or more axes).
        - **positive** (Tensor) - The same shape.
        - **negative** (Tensor) - The same shape.
        - **margin** (float) - Takes the place of the argument unless it is 1.

    Outputs:
        A 0-d tensor, or shape :math:`(N,)` for ``"none"``.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> x = ops.ones((2, 3))
        >>> float(nn.TripletMarginLoss()(x, x, x))
        1.0
    """

    def __init__(
        self,
        p: float = 2,
        swap: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
        margin: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        self.p = real("TripletMarginLoss", "p", p)
        self.swap = boolean("TripletMarginLoss", "swap", swap)
        self.eps = float(real("TripletMarginLoss", "eps", eps))
        self.margin = float(real("TripletMarginLoss", "margin", margin))

    def construct(
        self, x: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0
    ) -> Tensor:
        same_shapes("TripletMarginLoss", x=x, positive=positive, negative=negative)
        chosen = self.margin if margin == 1.0 else margin
        return F.triplet_margin_loss(x, positive, negative, chosen, self.p, self.eps, self.swap,
                                     self.reduction)  # fmt: skip


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    d = x - y + 1e-6
    return F.sqrt(F.sum(d * d, -1))


class TripletMarginWithDistanceLoss(LossBase):
    r"""Relative distance: :math:`\max(0, d(a, p) - d(a, n) + margin)` with any distance.

    Args:
        distance_function: Takes two tensors; the Euclidean distance by default.
        swap: Whether :math:`d(p, n)` counts instead of :math:`d(a, n)` when it is smaller.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        margin: What the negative sample must be farther away.

    Inputs:
        - **x** (Tensor) - Anchors, shape :math:`(N, *)`.
        - **positive** (Tensor) - A shape that broadcasts with it.
        - **negative** (Tensor) - A shape that broadcasts, too.

    Outputs:
        A 0-d tensor, or the losses of the samples for ``"none"``.

    Raises:
        DTypeError: if ``distance_function`` cannot be called.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> x = ops.ones((2, 3))
        >>> float(nn.TripletMarginWithDistanceLoss()(x, x, x))
        1.0
    """

    def __init__(
        self,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        swap: bool = False,
        reduction: str = "mean",
        margin: float = 1.0,
    ) -> None:
        super().__init__(reduction)
        op = "TripletMarginWithDistanceLoss"
        if distance_function is not None and not callable(distance_function):
            reject(DTypeError, op, "distance_function must be a function")
        self.distance_function: Callable[..., Tensor] = distance_function or _euclidean
        self.swap = boolean(op, "swap", swap)
        self.margin = float(real(op, "margin", margin))

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        near = self.distance_function(x, positive)
        far = self.distance_function(x, negative)
        if self.swap:
            far = F.minimum(far, self.distance_function(positive, negative))
        return self.get_loss(F.relu(near - far + self.margin))


class SampledSoftmaxLoss(LossBase):
    r"""The cross entropy of the right classes among a few sampled ones.

    Args:
        num_sampled: How many classes are sampled per batch.
        num_classes: Number of classes.
        num_true: Right classes per row.
        sampled_values: Sampled classes and how often the right and the sampled ones are expected,
            as :func:`ops.uniform_candidate_sampler` returns them; drawn by it when None.
        remove_accidental_hits: Whether right classes are not sampled.
        seed: Of the samples; 0 continues the package's random numbers.
        reduction: Kept for MindSpore programs, which get the losses of the rows.

    Inputs:
        - **weights** (Tensor) - Shape :math:`(C, D)`.
        - **biases** (Tensor) - Shape :math:`(C,)`.
        - **labels** (Tensor) - Right classes, shape :math:`(N, num\_true)` or :math:`(N,)`.
        - **logits** (Tensor) - What the last layer gets, shape :math:`(N, D)`.

    Outputs:
        Tensor of shape :math:`(N,)`.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> loss = nn.SampledSoftmaxLoss(num_sampled=2, num_classes=5)
        >>> loss(ops.ones((5, 3)), ops.zeros(5), Tensor([0, 1]), ops.ones((2, 3))).shape
        (2,)
    """

    def __init__(
        self,
        num_sampled: int,
        num_classes: int,
        num_true: int = 1,
        sampled_values: tuple[Tensor, Tensor, Tensor] | None = None,
        remove_accidental_hits: bool = True,
        seed: int = 0,
        reduction: str = "none",
    ) -> None:
        super().__init__(reduction)
        op = "SampledSoftmaxLoss"
        self.num_classes = integer(op, "num_classes", num_classes, 1)
        self.num_sampled = integer(op, "num_sampled", num_sampled, 1)
        self.num_true = integer(op, "num_true", num_true, 1)
        if max(num_sampled, num_true) > num_classes:
            reject(ArgumentError, op, "num_sampled and num_true must be at most num_classes",
                   f"{num_sampled}, {num_true} and {num_classes}")  # fmt: skip
        self.seed = integer(op, "seed", seed, 0)
        self.sampled_values = sampled_values
        self.remove_accidental_hits = boolean(op, "remove_accidental_hits", remove_accidental_hits)
        if sampled_values is not None and len(sampled_values) != 3:
            reject(ArgumentError, op, "sampled_values must be 3 tensors", f"{len(sampled_values)}")

    def construct(self, weights: Tensor, biases: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
        labels = F.reshape(F.cast(labels, int32), (-1, self.num_true))
        sampled, expected_true, expected = self.sampled_values or F.uniform_candidate_sampler(
            labels, self.num_true, self.num_sampled, True, self.num_classes, self.seed,
            self.remove_accidental_hits,
        )  # fmt: skip
        right = F.sum(F.expand_dims(logits, 1) * F.gather(weights, labels, 0), -1)
        right = right + F.gather(biases, labels, 0) - F.log(expected_true)
        others = F.matmul(logits, F.transpose(F.gather(weights, sampled, 0), (1, 0)))
        others = others + F.gather(biases, sampled, 0) - F.log(expected)
        shares = F.softmax(F.concat((right, others), 1), 1)[:, : self.num_true]
        return -F.sum(F.log(shares + 1e-20), 1) / self.num_true


__all__ = [
    "CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "SampledSoftmaxLoss",
    "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip
