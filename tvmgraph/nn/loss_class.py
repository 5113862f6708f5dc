"""Classification losses."""

from __future__ import annotations

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, integer, real, reject
from tvmgraph.nn.basic import activation_of
from tvmgraph.nn.loss import LossBase, optional_tensor, same_shapes
from tvmgraph.ops.loss.regression import widened


class CrossEntropyLoss(LossBase):
    r"""Cross entropy of logits: :math:`-w_{y} \log softmax(x)_{y}`.

    Args:
        weight: Weight of every class, shape :math:`(C,)`, or ``None``.
        ignore_index: A label that does not count.
        reduction: ``"mean"`` (weighted), ``"sum"`` or ``"none"``.
        label_smoothing: Share of the uniform distribution in the target, in [0, 1].

    Inputs:
        - **logits** (Tensor) - Shape :math:`(C,)`, :math:`(N, C)` or :math:`(N, C, *)`.
        - **labels** (Tensor) - Class indices of shape :math:`()`, :math:`(N,)` or :math:`(N, *)`,
          or probabilities of the shape of ``logits``.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the shapes do not fit.

    Example:
        >>> nn.CrossEntropyLoss()(ops.ones((2, 3)), Tensor([0, 2])).shape
        ()
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = optional_tensor("CrossEntropyLoss", "weight", weight)
        self.ignore_index = integer("CrossEntropyLoss", "ignore_index", ignore_index)
        smoothing = real("CrossEntropyLoss", "label_smoothing", label_smoothing, 0, 1)
        self.label_smoothing = float(smoothing)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction,
                               self.label_smoothing)  # fmt: skip


class SoftmaxCrossEntropyWithLogits(LossBase):
    r"""Cross entropy of logits with class indices or probabilities:
    :math:`-\sum_c y_c \log softmax(x)_c`.

    Args:
        sparse: Whether labels are class indices.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Shape :math:`(N, C)`, a float dtype.
        - **labels** (Tensor) - Integers of shape :math:`(N,)` when sparse, otherwise
          probabilities of shape :math:`(N, C)`; they have no gradient, as in MindSpore.

    Outputs:
        Tensor of shape :math:`(N,)` for ``"none"``, otherwise a 0-d tensor.

    Raises:
        ShapeError: if the shapes do not fit.

    Example:
        >>> nn.SoftmaxCrossEntropyWithLogits(sparse=True)(ops.ones((2, 3)), Tensor([0, 2])).shape
        (2,)
    """

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = boolean("SoftmaxCrossEntropyWithLogits", "sparse", sparse)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        op = "SoftmaxCrossEntropyWithLogits"
        if logits.ndim != 2:
            reject(ShapeError, op, f"logits must have 2 axes, not {logits.ndim}",
                   f"logits={logits.aval}")  # fmt: skip
        if self.sparse:
            if labels.shape != logits.shape[:1]:
                reject(ShapeError, op, f"labels must have the shape {logits.shape[:1]}",
                       f"labels={labels.aval}, logits={logits.aval}",
                       "pass sparse=False for probabilities")  # fmt: skip
            return F.cross_entropy(logits, labels, reduction=self.reduction)
        same_shapes(op, logits=logits, labels=labels)
        labels = F.stop_gradient(F.cast(labels, logits.dtype))
        return self.get_loss(-F.sum(F.log_softmax(logits, -1) * labels, -1))


class NLLLoss(LossBase):
    r"""Negative log-likelihood: :math:`-w_y x_y` for log-probabilities :math:`x`.

    Args:
        weight: Weight of every class, shape :math:`(C,)`, or ``None``.
        ignore_index: A label that does not count.
        reduction: ``"mean"`` (weighted), ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Log-probabilities, shape :math:`(N, C)` or :math:`(N, C, *)`.
        - **labels** (Tensor) - Class indices, shape :math:`(N,)` or :math:`(N, *)`.

    Outputs:
        A 0-d tensor, or the element losses for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the shapes do not fit.

    Example:
        >>> float(nn.NLLLoss()(Tensor([[-1.0, -2.0]]), Tensor([1])))
        2.0
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.weight = optional_tensor("NLLLoss", "weight", weight)
        self.ignore_index = integer("NLLLoss", "ignore_index", ignore_index)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class MultiMarginLoss(LossBase):
    r"""Hinge loss over classes: :math:`\sum_{j \ne y} \max(0, w_y (m - x_y + x_j))^p / C`.

    Args:
        p: 1 or 2.
        margin: :math:`m`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: Weight of every class, shape :math:`(C,)`, or ``None``.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C)`.
        - **target** (Tensor) - Class indices, shape :math:`(N,)`.
        - **weight** (Tensor) - Takes the place of the argument of the same name.

    Outputs:
        A 0-d tensor, or shape :math:`(N,)` for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> nn.MultiMarginLoss()(ops.ones((2, 3)), Tensor([0, 2])).shape
        ()
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Tensor | None = None
    ) -> None:
        super().__init__(reduction)
        if p not in (1, 2):
            reject(ArgumentError, "MultiMarginLoss", f"p must be 1 or 2, not {p!r}")
        self.p = p
        self.margin = float(real("MultiMarginLoss", "margin", margin))
        self.weight = optional_tensor("MultiMarginLoss", "weight", weight)

    def construct(self, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        weight = self.weight if weight is None else weight
        return F.multi_margin_loss(x, target, self.p, self.margin, weight, self.reduction)


class MultiLabelSoftMarginLoss(LossBase):
    r"""Binary cross entropy over classes, averaged over them.

    Args:
        weight: Weight of every class, shape :math:`(C,)`, or ``None``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C)`.
        - **target** (Tensor) - Zeros and ones, a shape that broadcasts with it.

    Outputs:
        A 0-d tensor, or shape :math:`(N,)` for ``"none"``.

    Raises:
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> nn.MultiLabelSoftMarginLoss()(ops.ones((2, 3)), ops.ones((2, 3))).shape
        ()
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = optional_tensor("MultiLabelSoftMarginLoss", "weight", weight)

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class MultilabelMarginLoss(LossBase):
    r"""Hinge loss between the classes that belong to a sample and the others.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **x** (Tensor) - Shape :math:`(C,)` or :math:`(N, C)`.
        - **target** (Tensor) - Class indices, the same shape; -1 ends the list of a sample.

    Outputs:
        A 0-d tensor, or shape :math:`(N,)` for ``"none"``.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> nn.MultilabelMarginLoss()(ops.ones((1, 2)), Tensor([[0, -1]])).shape
        ()
    """

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        same_shapes("MultilabelMarginLoss", x=x, target=target)
        return F.multilabel_margin_loss(x, target, self.reduction)


class DiceLoss(LossBase):
    r"""Dice loss: :math:`1 - 2 \sum x y / (\sum x^2 + \sum y^2 + s)`.

    Args:
        smooth: :math:`s`, which avoids a division by zero.

    Inputs:
        - **logits** (Tensor) - Any shape.
        - **label** (Tensor) - The same shape.

    Outputs:
        A 0-d tensor.

    Raises:
        ArgumentError: if ``smooth`` is not positive.
        ShapeError: if the shapes differ.

    Example:
        >>> round(float(nn.DiceLoss()(Tensor([1.0]), Tensor([1.0]))), 4)
        0.0
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = float(real("DiceLoss", "smooth", smooth, 0, bounds="(]"))

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        same_shapes("DiceLoss", logits=logits, label=label)
        common = F.sum(logits * label)
        total = F.sum(logits * logits) + F.sum(label * label)
        return 1 - 2 * common / (total + self.smooth)


class MultiClassDiceLoss(LossBase):
    r"""Average of the Dice losses of all classes but one that is ignored.

    Args:
        weights: Weights of shape :math:`(C, K)` of the classes, or ``None``.
        ignore_indiex: Class that does not count, or ``None``.
        activation: Name or Cell of what is applied to the logits.

    Inputs:
        - **logits** (Tensor) - Shape :math:`(N, C, *)`.
        - **label** (Tensor) - The same shape.

    Outputs:
        A 0-d tensor.

    Raises:
        DTypeError: if an argument has the wrong class.
        ShapeError: if the shapes do not fit.

    Example:
        >>> nn.MultiClassDiceLoss()(ops.ones((2, 3)), ops.ones((2, 3))).shape
        ()
    """

    def __init__(
        self,
        weights: Tensor | None = None,
        ignore_indiex: int | None = None,
        activation: object = "softmax",
    ) -> None:
        super().__init__()
        op = "MultiClassDiceLoss"
        self.weights = optional_tensor(op, "weights", weights)
        if weights is not None and weights.ndim != 2:
            reject(ShapeError, op, f"weights must have 2 axes, not {weights.ndim}")
        self.ignore_indiex = ignore_indiex
        if ignore_indiex is not None:
            integer(op, "ignore_indiex", ignore_indiex)
        self.binarydiceloss = DiceLoss()
        name = activation.lower() if isinstance(activation, str) else activation
        self.activation = activation_of(op, name)

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        same_shapes("MultiClassDiceLoss", logits=logits, label=label)
        if logits.ndim < 2:
            reject(ShapeError, "MultiClassDiceLoss", "the input must have at least 2 axes",
                   f"logits={logits.aval}")  # fmt: skip
        if self.activation is not None:
            logits = self.activation(logits)
        classes = logits.shape[1]
        total: Tensor | float = 0.0
        for i in range(classes):
            if i != self.ignore_indiex:
                loss = self.binarydiceloss(logits[:, i], label[:, i])
                total = total + (loss if self.weights is None else loss * self.weights[i])
        return F.mean(total / classes)


class FocalLoss(LossBase):
    r"""Focal loss: :math:`-w_y (1 - p_y)^\gamma \log p_y` with :math:`p = softmax(x)`.

    Args:
        weight: Weight of every class, shape :math:`(C,)`, or ``None``.
        gamma: How much easy samples are weighted down.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        - **logits** (Tensor) - Shape :math:`(N, C)`, :math:`(N, C, H)` or :math:`(N, C, H, W)`.
        - **labels** (Tensor) - Class indices with a channel axis of size 1, or zeros and ones of
          the shape of ``logits``. One sample, or one place, serves all with zeros and ones; as
          class indices it is the first.

    Outputs:
        A 0-d tensor; for ``"none"`` the mean over places: :math:`(N,)` with class indices, else
        :math:`(N, C)`.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the shapes do not fit.

    Example:
        >>> nn.FocalLoss()(ops.ones((2, 3)), Tensor([[0], [2]])).shape
        ()
    """

    def __init__(
        self, weight: Tensor | None = None, gamma: float = 2.0, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.gamma = float(real("FocalLoss", "gamma", gamma, 0, 20))
        self.weight = optional_tensor("FocalLoss", "weight", weight)
        if weight is not None and weight.ndim != 1:
            reject(ShapeError, "FocalLoss", f"weight must have 1 axis, not {weight.ndim}")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        self._check(logits, labels)
        logits = widened(logits, labels)
        n, c = logits.shape[:2]
        x = F.reshape(logits, (n, c, -1))
        labels = F.reshape(labels, (*labels.shape[:2], -1))
        logp = F.log_softmax(x, 1)
        weight = None
        if self.weight is not None:
            weight = F.reshape(F.cast(self.weight, x.dtype), (1, c, 1))
        if labels.shape[1] == 1:
            if weight is not None:
                weight = F.gather_elements(F.broadcast_to(weight, x.shape), 1, labels)
            logp = F.gather_elements(logp, 1, labels)
            loss = -F.pow(1 - F.exp(logp), self.gamma) * logp
            loss = F.squeeze(loss if weight is None else loss * weight, 1)
        else:
            loss = -F.pow(1 - F.exp(logp), self.gamma) * logp * F.cast(labels, x.dtype)
            loss = loss if weight is None else loss * weight
        return self.get_loss(F.mean(loss, -1))

    def _check(self, logits: Tensor, labels: Tensor) -> None:
        got = f"logits={logits.aval}, labels={labels.aval}"
        if logits.ndim not in (2, 3, 4) or labels.ndim != logits.ndim:
            reject(ShapeError, "FocalLoss", "logits and labels must both have 2, 3 or 4 axes", got,
                   "give the labels a channel axis of size 1")  # fmt: skip
        indexed = (logits.shape[0], 1, *logits.shape[2:])
        spread = labels.shape[0] in (1, logits.shape[0]) and labels.shape[1] in (1, logits.shape[1])
        if not spread or labels.shape[2:] not in (logits.shape[2:], (1,) * (logits.ndim - 2)):
            reject(ShapeError, "FocalLoss",
                   f"labels must have the shape {indexed} or {logits.shape}", got)  # fmt: skip
        if self.weight is not None and self.weight.shape[0] != logits.shape[1]:
            reject(ShapeError, "FocalLoss", f"weight must have {logits.shape[1]} elements",
                   f"weight={self.weight.aval}")  # fmt: skip
        if labels.shape[1] == 1 and not labels.dtype.is_integer:
            reject(DTypeError, "FocalLoss", "class indices must be integers", got)


class CTCLoss(LossBase):
    r"""Connectionist temporal classification: the negative log-probability of a label sequence
    summed over all its alignments.

    Args:
        blank: Index of the blank label.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        zero_infinity: Whether infinite losses count as zero.

    Inputs:
        - **log_probs** (Tensor) - Log-probabilities, shape :math:`(T, N, C)` or :math:`(T, C)`.
        - **targets** (Tensor) - Labels, shape :math:`(N, S)` or :math:`(\sum lengths,)`.
        - **input_lengths** (Tensor) - Steps of every sequence, shape :math:`(N,)`.
        - **target_lengths** (Tensor) - Labels of every sequence, shape :math:`(N,)`.

    Outputs:
        A 0-d tensor, or shape :math:`(N,)` for ``"none"``.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> loss = nn.CTCLoss()
        >>> loss(ops.zeros((4, 1, 3)), Tensor([[1, 2]]), Tensor([4]), Tensor([2])).shape
        ()
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction)
        self.blank = integer("CTCLoss", "blank", blank, 0)
        self.zero_infinity = boolean("CTCLoss", "zero_infinity", zero_infinity)

    def construct(
        self, log_probs: Tensor, targets: Tensor, input_lengths: object, target_lengths: object
    ) -> Tensor:
        single = log_probs.ndim == 2
        if single:
            log_probs = F.expand_dims(log_probs, 1)
            targets = F.expand_dims(targets, 0) if targets.ndim == 1 else targets
        result = F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank,
                            self.reduction, self.zero_infinity)  # fmt: skip
        loss = result[0] if isinstance(result, tuple) else result
        return F.squeeze(loss, 0) if single and loss.ndim == 1 else loss


__all__ = [
    "CTCLoss", "CrossEntropyLoss", "DiceLoss", "FocalLoss", "MultiClassDiceLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "MultilabelMarginLoss", "NLLLoss",
    "SoftmaxCrossEntropyWithLogits",
]  # fmt: skip
