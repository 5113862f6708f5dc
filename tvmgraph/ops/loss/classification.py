"""Losses between scores of classes and the right class or classes."""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.core.fusible import fusible, may_fuse
from tvmgraph.core.op import F
from tvmgraph.core.precision import precise
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.loss.regression import check_reduction, reduce_loss, same_shape, widened

__all__ = [
    "cross_entropy", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss",
]  # fmt: skip


def _class_count(x: Tensor, op: str) -> int:
    count = x.aval.shape[1] if x.ndim > 1 else None
    if not isinstance(count, int):
        raise bad(
            ShapeError, "the scores must have a static class axis: (N, C) or (N, C, ...)", op,
            f"scores={x.aval}",
        )  # fmt: skip
    return count


def _check(
    x: Tensor, target: Tensor, weight: Tensor | None, label_smoothing: float, op: str
) -> None:
    """Checks what both kinds of targets share."""
    require(0 <= label_smoothing <= 1, "label_smoothing must lie in [0, 1]", op, ArgumentError,
            label_smoothing=label_smoothing)  # fmt: skip
    count = _class_count(x, op)
    if weight is not None and weight.aval.shape != (count,):
        raise bad(ShapeError, f"weight must have shape ({count},)", op, f"weight={weight.aval}")
    if target.dtype.is_float:
        same_shape(x, target, ("the scores", "the probabilities"), op)
    elif target.aval.shape != (x.aval.shape[0], *x.aval.shape[2:]):
        raise bad(
            ShapeError, "class indices must have the shape of the scores without the class axis",
            op, f"scores={x.aval}, target={target.aval}",
        )  # fmt: skip


def _index_loss(
    logp: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str,
    smoothing: float, op: str,
) -> Tensor:  # fmt: skip
    """Negative log likelihood of class indices, ``logp`` having its classes on axis 1."""
    check_reduction(reduction, op)
    if target.dtype.itemsize < 4:  # ignore_index may not fit
        target = F.cast(target, dtypes.int32)
    counted = F.not_equal(target, ignore_index)
    safe = F.where(counted, target, 0)
    loss = -F.squeeze(F.gather_elements(logp, 1, F.expand_dims(safe, 1)), 1)
    share = F.cast(counted, logp.dtype)
    if weight is not None:
        weight = F.cast(weight, logp.dtype)
        share = share * F.gather(weight, safe, 0)
    # not a product: a score of -inf of an ignored target must not give NaN
    loss = F.where(counted, loss * share, 0.0)
    if smoothing:
        scaled = logp
        if weight is not None:
            scaled = logp * F.reshape(weight, (weight.shape[0], *(1,) * (logp.ndim - 2)))
        smooth = -F.reduce_sum(scaled, axis=(1,), keep_dims=False)
        smooth = F.where(counted, smooth, 0.0)
        loss = loss * (1 - smoothing) + smooth * (smoothing / logp.shape[1])
    if reduction == "none":
        return loss
    total = reduce_loss(loss, "sum", op)
    return total if reduction == "sum" else total / reduce_loss(share, "sum", op)


def _probability_loss(
    logp: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, op: str
) -> Tensor:
    classes = logp.shape[1]
    target = F.cast(target, logp.dtype)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    product = logp * target
    if weight is not None:
        shape = (classes, *(1,) * (logp.ndim - 2))
        product = product * F.reshape(F.cast(weight, logp.dtype), shape)
    return reduce_loss(-F.reduce_sum(product, axis=(1,), keep_dims=False), reduction, op)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    r"""Cross entropy of logits: :math:`-w_y \log softmax(input)_y`.

    Args:
        input: Logits of shape :math:`(N, C)`, :math:`(N, C, *)` or :math:`(C,)`, a float dtype.
        target: Class indices of that shape without the class axis (an integer dtype), or
            probabilities of that shape (a float dtype).
        weight: Weight :math:`w` of every class, :math:`(C,)`, or ``None``.
        ignore_index: Class index that contributes nothing.
        reduction: ``"none"``, ``"mean"`` (over class indices: weighted) or ``"sum"``.
        label_smoothing: Share of the target that is spread evenly over all classes.

    Returns:
        Tensor of the class indices' shape, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes do not fit.
        ArgumentError: if ``reduction`` or ``label_smoothing`` is not valid.
        OutOfRangeError: if a class index lies outside :math:`[0, C)` (eagerly).

    Example:
        >>> ops.cross_entropy(Tensor([[2.0, 1.0, 0.0]]), Tensor([0]))
        Tensor(shape=[], dtype=Float32, value= 0.407606)
    """
    op = "cross_entropy"
    require(input.dtype.is_float, "input must have a float dtype", op, DTypeError, input=input)
    if input.ndim == 1:
        y = cross_entropy(F.expand_dims(input, 0), F.expand_dims(target, 0), weight, ignore_index,
                          reduction, label_smoothing)  # fmt: skip
        return F.squeeze(y, 0) if reduction == "none" else y
    _check(input, target, weight, label_smoothing, op)
    input = widened(input, target, weight)
    if target.dtype.is_float:
        logp = F.log_softmax(input, 1)
        return _probability_loss(logp, target, weight, reduction, label_smoothing, op)
    fuses = may_fuse() and _are_known(target, input.shape[1], ignore_index)
    loss = _index_entropy_fused if fuses else _index_entropy
    return loss(input, target, weight, ignore_index, reduction, label_smoothing)


def _are_known(target: Tensor, classes: int, ignore_index: int) -> bool:
    """Whether class indices are in range; what is told of others is told by the operators."""
    index = target.array
    if index.min(initial=0) >= -classes and index.max(initial=0) < classes:
        return True
    within = (index >= -classes) & (index < classes)
    return bool((within | (index == ignore_index)).all())


def _index_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str,
    smoothing: float,
) -> Tensor:  # fmt: skip
    logp = F.log_softmax(input, 1)
    return _index_loss(logp, target, weight, ignore_index, reduction, smoothing, "cross_entropy")


_index_entropy_fused = fusible(_index_entropy)


@precise
def nll_loss(
    inputs: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    r"""Negative log likelihood: :math:`-w_y \cdot inputs_y`.

    Args:
        inputs: Log-probabilities of shape :math:`(N, C)`, :math:`(N, C, *)` or :math:`(C,)`, a
            float dtype.
        target: Class indices of that shape without the class axis, an integer dtype.
        weight: Weight :math:`w` of every class, :math:`(C,)`, or ``None``.
        ignore_index: Class index that contributes nothing.
        reduction: ``"none"``, ``"mean"`` (weighted) or ``"sum"``.
        label_smoothing: Share of the target that is spread evenly over all classes.

    Returns:
        Tensor of ``target``'s shape, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if ``target`` is not an integer tensor.
        ArgumentError: if ``reduction`` or ``label_smoothing`` is not valid.
        OutOfRangeError: if a class index lies outside :math:`[0, C)` (eagerly).

    Example:
        >>> ops.nll_loss(Tensor([[-0.1, -2.4]]), Tensor([0]))
        Tensor(shape=[], dtype=Float32, value= 0.1)
    """
    op = "nll_loss"
    if not target.dtype.is_integer:
        raise bad(DTypeError, "target must have an integer dtype", op, f"target={target.aval}")
    if inputs.ndim == 1:
        y = nll_loss(F.expand_dims(inputs, 0), F.expand_dims(target, 0), weight, ignore_index,
                     reduction, label_smoothing)  # fmt: skip
        return F.squeeze(y, 0) if reduction == "none" else y
    _check(inputs, target, weight, label_smoothing, op)
    inputs = widened(inputs, weight)
    fuses = may_fuse() and _are_known(target, inputs.shape[1], ignore_index)
    loss = _index_loss_fused if fuses else _index_loss
    return loss(inputs, target, weight, ignore_index, reduction, label_smoothing, op)


_index_loss_fused = fusible(_index_loss)


@precise
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1, weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    r"""Hinge loss of classes: :math:`\sum_{i \ne y} w_y \max(0, margin - x_y + x_i)^p / C`.

    Args:
        input: Scores :math:`x` of shape :math:`(N, C)`, a float dtype.
        target: Class indices :math:`y` of shape :math:`(N,)`.
        p: The power, 1 or 2.
        margin: The margin.
        weight: Weight :math:`w` of every class, :math:`(C,)`, or ``None``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of shape :math:`(N,)`, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes do not fit.
        ArgumentError: if ``p`` or ``reduction`` is not valid.
        OutOfRangeError: if a class index lies outside :math:`[0, C)` (eagerly).

    Example:
        >>> ops.multi_margin_loss(Tensor([[0.2, 0.7]]), Tensor([0]))
        Tensor(shape=[], dtype=Float32, value= 0.75)
    """
    op = "multi_margin_loss"
    require(p in (1, 2), "p must be 1 or 2", op, ArgumentError, p=p)
    _check(input, target, weight, 0, op)
    classes = input.shape[1]
    at = F.expand_dims(target, 1)
    hinge = F.relu(input - F.gather_elements(input, 1, at) + margin)
    hinge = hinge * hinge if p == 2 else hinge
    other = F.not_equal(F.arange(classes), at)
    loss = F.reduce_sum(F.where(other, hinge, 0.0), axis=(1,), keep_dims=False) / classes
    if weight is not None:
        loss = loss * F.gather(F.cast(weight, input.dtype), target, 0)
    return reduce_loss(loss, reduction, op)


@precise
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    r"""Hinge loss of sets of classes: :math:`\sum_{j, i} \max(0, 1 - x_{y_j} + x_i) / C`.

    Args:
        input: Scores :math:`x` of shape :math:`(N, C)` or :math:`(C,)`, a float dtype.
        target: The right classes :math:`y` of that shape, ended by -1; :math:`i` runs over all
            others.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of shape :math:`(N,)` or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> ops.multilabel_margin_loss(Tensor([[0.1, 0.2, 0.4]]), Tensor([[2, -1, 0]]))
        Tensor(shape=[], dtype=Float32, value= 0.5)
    """
    op = "multilabel_margin_loss"
    same_shape(input, target, ("input", "target"), op)
    if input.ndim == 1:
        one = multilabel_margin_loss(F.expand_dims(input, 0), F.expand_dims(target, 0), "none")
        return F.squeeze(one, 0)
    classes = _class_count(input, op)
    ended = F.cumsum(F.cast(target < 0, input.dtype), 1) > 0
    safe = F.where(ended, 0, target)
    # which classes are right: any label j that names class i
    names = F.equal(F.expand_dims(safe, 2), F.arange(classes))
    names = F.logical_and(names, F.logical_not(F.expand_dims(ended, 2)))
    right = F.reduce_sum(F.cast(names, input.dtype), axis=(1,), keep_dims=False) > 0
    picked = F.expand_dims(F.gather_elements(input, 1, safe), 2)
    hinge = F.relu(1 - picked + F.expand_dims(input, 1))
    hinge = F.where(F.expand_dims(right, 1), 0.0, hinge)
    hinge = F.where(F.expand_dims(ended, 2), 0.0, hinge)
    loss = F.reduce_sum(hinge, axis=(1, 2), keep_dims=False) / classes
    return reduce_loss(loss, reduction, op)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | float | None = None, reduction: str = "mean"
) -> Tensor:
    r"""Binary cross entropy of every class, averaged over the classes.

    Args:
        input: Logits of shape :math:`(N, C)` (or :math:`(*, C)`), a float dtype.
        target: 0 or 1 for every class, broadcast with ``input``.
        weight: Weight of every class, broadcast to that shape, or ``None``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor without the class axis, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes do not broadcast.
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> ops.multilabel_soft_margin_loss(Tensor([[0.3, 0.6]]), Tensor([[0.0, 1.0]]))
        Tensor(shape=[], dtype=Float32, value= 0.645922)
    """
    op = "multilabel_soft_margin_loss"
    require(input.ndim != 0, "input must have a class axis", op, input=input)
    input = widened(input, target)
    target = F.cast(target, input.dtype)
    loss = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    mean = F.reduce_mean(loss, axis=(loss.ndim - 1,), keep_dims=False)
    return reduce_loss(mean, reduction, op)
