"""Losses between a prediction and a target of the same shape."""

from __future__ import annotations

import functools
import math

from tvmgraph import dtypes
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.precision import precise
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.common.rows import LOW_PRECISION

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss",
    "kl_div", "l1_loss", "mse_loss", "smooth_l1_loss", "soft_margin_loss",
]  # fmt: skip

#: Smallest probability whose logarithm a cross entropy takes, MindSpore's constant.
_TINY = 1e-12


def reduce_loss(loss: Tensor, reduction: str, op: str) -> Tensor:
    """Applies a loss function's ``reduction``: ``"none"``, ``"mean"`` or ``"sum"``.

    Args:
        loss: The loss of every element.
        reduction: The word.
        op: Name of the function, for errors.

    Raises:
        ArgumentError: if ``reduction`` is something else.
    """
    check_reduction(reduction, op)
    if reduction == "none":
        return loss
    function = F.reduce_mean if reduction == "mean" else F.reduce_sum
    return function(loss, axis=tuple(range(loss.ndim)), keep_dims=False)


def check_reduction(
    reduction: str, op: str, allowed: tuple[str, ...] = ("none", "mean", "sum")
) -> None:
    """Makes sure that a loss function knows a ``reduction``.

    Args:
        reduction: The word.
        op: Name of the function.
        allowed: The words it knows.

    Raises:
        ArgumentError: if it is another one.
    """
    if reduction not in allowed:
        raise bad(
            ArgumentError, f"reduction must be one of {', '.join(map(repr, allowed))}", op,
            f"reduction={reduction!r}",
        )  # fmt: skip


def widened(x: Tensor, *others: Tensor | None) -> Tensor:
    """Returns ``x`` in the common float dtype of some tensors: half scores of float32 labels.

    Args:
        x: The tensor, a float dtype.
        *others: Labels or weights; integers and None change nothing.
    """
    floats = [t.dtype for t in others if t is not None and t.dtype.is_float]
    dtype = functools.reduce(dtypes.promote, floats, x.dtype)
    return x if dtype is x.dtype else F.cast(x, dtype)


def same_shape(a: Tensor, b: Tensor, names: tuple[str, str], op: str) -> None:
    """Makes sure that two arguments have the same shape.

    Args:
        a: The first argument.
        b: The second one.
        names: Their names.
        op: Name of the function.

    Raises:
        ShapeError: if the shapes differ.
    """
    if a.aval.shape != b.aval.shape:
        raise bad(
            ShapeError, f"{names[0]} and {names[1]} must have the same shape", op,
            f"{names[0]}={a.aval}, {names[1]}={b.aval}",
        )  # fmt: skip


def wide(x: Tensor) -> Tensor:
    """Returns half precision, integers and bools as float32.

    Args:
        x: Tensor of any dtype.
    """
    narrow = x.dtype in LOW_PRECISION or x.dtype.kind not in "fc"
    return F.cast(x, dtypes.float32) if narrow else x


def _difference(input: Tensor, target: Tensor) -> Tensor:
    d = input - target
    return d if d.dtype.kind in "fc" else F.cast(d, dtypes.float32)


@fusible
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    r"""Squared error: :math:`|input - target|^2`.

    Args:
        input: Tensor of any shape.
        target: Tensor whose shape broadcasts with ``input``'s.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of the broadcast shape, or a 0-d Tensor.

    Raises:
        ArgumentError: if ``reduction`` is unknown.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.mse_loss(Tensor([1.0, 2.0]), Tensor([1.0, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 2)
    """
    d = _difference(input, target)
    return reduce_loss(F.real(d * F.conj(d)), reduction, "mse_loss")


@fusible
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    r"""Absolute error: :math:`|input - target|`.

    Args:
        input: Tensor of any shape.
        target: Tensor whose shape broadcasts with ``input``'s.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of the broadcast shape, or a 0-d Tensor.

    Raises:
        ArgumentError: if ``reduction`` is unknown.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.l1_loss(Tensor([1.0, 2.0]), Tensor([1.0, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 1)
    """
    return reduce_loss(F.abs(_difference(input, target)), reduction, "l1_loss")


@precise
def smooth_l1_loss(
    input: Tensor, target: Tensor, beta: float = 1.0, reduction: str = "none"
) -> Tensor:
    r"""Squared error near zero, absolute error beyond: :math:`d^2 / 2\beta` or :math:`d - \beta/2`.

    Args:
        input: Tensor of any shape.
        target: Tensor whose shape broadcasts with ``input``'s.
        beta: Distance :math:`d = |input - target|` at which the two meet; 0 gives ``l1_loss``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of the broadcast shape, or a 0-d Tensor.

    Raises:
        ArgumentError: if ``reduction`` is unknown or ``beta`` is negative.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.smooth_l1_loss(Tensor([1.0, 2.0]), Tensor([1.5, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.25000000e-01,  1.50000000e+00])
    """
    op = "smooth_l1_loss"
    require(beta >= 0, "beta must not be negative", op, ArgumentError, beta=beta)
    return _smooth_error(input, target, float(beta), reduction)


@fusible
def _smooth_error(input: Tensor, target: Tensor, beta: float, reduction: str) -> Tensor:
    d = F.abs(_difference(input, target))
    loss = d if beta == 0 else F.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta)
    return reduce_loss(loss, reduction, "smooth_l1_loss")


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    r"""Squared error near zero, scaled absolute error beyond.

    With :math:`d = |input - target|` it is :math:`d^2 / 2` up to ``delta``, then
    :math:`delta (d - delta / 2)`.

    Args:
        input: Tensor of any shape.
        target: Tensor whose shape broadcasts with ``input``'s.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        delta: Distance at which the two meet, positive.

    Returns:
        Tensor of the broadcast shape, or a 0-d Tensor.

    Raises:
        ArgumentError: if ``reduction`` is unknown or ``delta`` is not positive.
        ShapeError: if the shapes do not broadcast.

    Example:
        >>> ops.huber_loss(Tensor([1.0, 2.0]), Tensor([1.5, 4.0]))
        Tensor(shape=[], dtype=Float32, value= 0.8125)
    """
    op = "huber_loss"
    require(delta > 0, "delta must be positive", op, ArgumentError, delta=delta)
    return _huber_error(input, target, float(delta), reduction)


@fusible
def _huber_error(input: Tensor, target: Tensor, delta: float, reduction: str) -> Tensor:
    d = F.abs(_difference(input, target))
    loss = F.where(d <= delta, d * d * 0.5, (d - 0.5 * delta) * delta)
    return reduce_loss(loss, reduction, "huber_loss")


@fusible
def binary_cross_entropy(
    logits: Tensor, labels: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    r"""Cross entropy of probabilities: :math:`-w (y \log x + (1 - y) \log(1 - x))`.

    Args:
        logits: Probabilities :math:`x` in [0, 1], any shape, a float dtype.
        labels: Targets :math:`y` of the same shape.
        weight: Weight of every element, broadcast to that shape, or ``None``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of ``logits``' shape, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if ``reduction`` is unknown.

    Note:
        Probabilities below 1e-12 count as 1e-12, which keeps the loss finite.

    Example:
        >>> ops.binary_cross_entropy(Tensor([0.2, 0.7]), Tensor([0.0, 1.0]))
        Tensor(shape=[], dtype=Float32, value= 0.289909)
    """
    op = "binary_cross_entropy"
    same_shape(logits, labels, ("logits", "labels"), op)
    x, y = wide(logits), wide(labels)
    yes, no = F.log(F.maximum(x, _TINY)), F.log(F.maximum(1 - x, _TINY))
    loss = -(y * yes + (1 - y) * no)
    if weight is not None:
        loss = loss * weight
    return F.cast(reduce_loss(loss, reduction, op), logits.dtype)


@precise
@fusible
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    r"""Cross entropy of logits: :math:`-w (p\,y \log \sigma(x) + (1 - y) \log(1 - \sigma(x)))`.

    Args:
        input: Logits :math:`x`, any shape, a float dtype.
        target: Targets :math:`y` of the same shape.
        weight: Weight :math:`w` of every element, broadcast to that shape, or ``None``.
        pos_weight: Weight :math:`p` of positive targets, broadcast to that shape, or ``None``.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of ``input``'s shape, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> ops.binary_cross_entropy_with_logits(Tensor([-1.0, 2.0]), Tensor([0.0, 1.0]))
        Tensor(shape=[], dtype=Float32, value= 0.220095)
    """
    op = "binary_cross_entropy_with_logits"
    same_shape(input, target, ("input", "target"), op)
    kept = target.dtype if target.dtype.is_float else input.dtype
    input = widened(input, target)
    softplus = -F.logsigmoid(input)
    if pos_weight is not None:
        softplus = softplus * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input + softplus
    if weight is not None:
        loss = loss * weight
    return F.cast(reduce_loss(loss, reduction, op), kept)


@precise
@fusible
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    r"""Logistic loss of labels 1 and -1: :math:`\log(1 + \exp(-target \cdot input))`.

    Args:
        input: Tensor of any shape, a float dtype.
        target: Labels 1 or -1 of the same shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of ``input``'s shape, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> ops.soft_margin_loss(Tensor([0.3, 0.7]), Tensor([-1.0, 1.0]))
        Tensor(shape=[], dtype=Float32, value= 0.628771)
    """
    op = "soft_margin_loss"
    same_shape(input, target, ("input", "target"), op)
    return reduce_loss(-F.logsigmoid(input * F.cast(target, input.dtype)), reduction, op)


@precise
@fusible
def kl_div(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    r"""Kullback-Leibler divergence: :math:`labels \cdot (\log labels - logits)`.

    Args:
        logits: Logarithms of the predicted probabilities, any shape, a float dtype.
        labels: Target probabilities of the same shape; entries that are not positive count 0.
        reduction: ``"none"``, ``"mean"``, ``"sum"`` or ``"batchmean"`` (sum over the first axis'
            size).

    Returns:
        Tensor of ``logits``' shape, or a 0-d Tensor.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if ``reduction`` is unknown.

    Example:
        >>> ops.kl_div(Tensor([-0.7, -0.7]), Tensor([0.5, 0.5]))
        Tensor(shape=[], dtype=Float32, value= 0.0034264)
    """
    op = "kl_div"
    check_reduction(reduction, op, ("none", "mean", "batchmean", "sum"))
    same_shape(logits, labels, ("logits", "labels"), op)
    positive = labels > 0
    log_labels = F.log(F.where(positive, labels, 1.0))
    loss = F.where(positive, labels * (log_labels - logits), 0.0)
    if reduction != "batchmean":
        return reduce_loss(loss, reduction, op)
    if loss.ndim < 2:
        return reduce_loss(loss, "mean" if loss.ndim else "sum", op)
    rows = F.reduce_sum(loss, axis=tuple(range(1, loss.ndim)), keep_dims=False)
    return reduce_loss(rows, "mean", op)


@fusible
def gaussian_nll_loss(
    x: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    r"""Negative log likelihood of a normal distribution: :math:`(\log v + (x - t)^2 / v) / 2`.

    Args:
        x: Predicted means, any shape; integers are computed in float32.
        target: Observations, broadcast with ``x``.
        var: Predicted variances :math:`v`: ``x``'s shape, without its last axis, or broadcast.
        full: Whether the constant :math:`\log(2 \pi) / 2` is added.
        eps: Smallest variance.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        Tensor of the broadcast shape, or a 0-d Tensor.

    Raises:
        ArgumentError: if ``reduction`` is unknown or ``eps`` is not positive.
        DTypeError: if ``x`` is complex or holds bools.

    Example:
        >>> ops.gaussian_nll_loss(Tensor([1.0, 2.0]), Tensor([1.0, 3.0]), Tensor([1.0, 2.0]))
        Tensor(shape=[], dtype=Float32, value= 0.298287)
    """
    op = "gaussian_nll_loss"
    require(eps > 0, "eps must be positive", op, ArgumentError, eps=eps)
    x, target, var = (F.cast(t, dtypes.float32) if t.dtype.is_integer else t
                      for t in (x, target, var))  # fmt: skip
    require(x.dtype.is_float, "x must hold real numbers", op, DTypeError, x=x)
    if var.aval.shape != x.aval.shape and var.aval.shape == x.aval.shape[:-1]:
        var = F.expand_dims(var, -1)
    var = F.maximum(var, eps)
    d = x - target
    loss = (F.log(var) + d * d / var) * 0.5
    if not isinstance(full, bool):
        raise bad(DTypeError, "full must be a bool", op, f"full={full!r}")
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction, op)
