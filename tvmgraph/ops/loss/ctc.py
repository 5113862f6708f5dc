"""Connectionist temporal classification: the loss of a sequence without an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvmgraph import dtypes, hooks
from tvmgraph.core.fusible import fusible, may_fuse
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.loss.regression import check_reduction, reduce_loss

__all__ = ["ctc_loss"]

#: Time steps of one fused chunk in eager code: their number differs from batch to batch.
_STEPS = 4
#: Steps of a graph from which on they are one loop: every step beside others takes a second to
#: compile with its derivative (10 steps: 14 s of the processor, as a loop 1).
_ROLLED = 4
#: Log-probability of the impossible; finite, so that differences and gradients stay defined.
_NEVER = -1e30


def _lengths(value: Any, batch: int, name: str, op: str) -> Tensor:
    lengths = value if isinstance(value, Tensor) else Tensor(list(value), dtypes.int64)
    if not lengths.dtype.is_integer:
        raise bad(DTypeError, f"{name} must hold integers", op, f"{name}={lengths.aval}")
    if lengths.aval.shape != (batch,):
        raise bad(ShapeError, f"{name} must have shape ({batch},)", op, f"{name}={lengths.aval}")
    return F.cast(lengths, dtypes.int64)


def _check_arguments(log_probs: Tensor, targets: Tensor, blank: int, op: str) -> None:
    require(log_probs.ndim == 3 and targets.ndim == 2,
            "log_probs must be (T, N, C) and targets (N, S)", op, log_probs=log_probs,
            targets=targets)  # fmt: skip
    require(log_probs.dtype.is_float and targets.dtype.is_integer,
            "log_probs must have a float dtype and targets an integer dtype", op, DTypeError,
            log_probs=log_probs, targets=targets)  # fmt: skip
    require(targets.aval.shape[0] == log_probs.aval.shape[1],
            "log_probs and targets differ in batch size", op, log_probs=log_probs,
            targets=targets)  # fmt: skip
    log_probs.aval.static_shape  # noqa: B018  (raises when symbolic)
    if not 0 <= blank < log_probs.shape[2]:
        raise bad(ArgumentError, f"blank must lie in [0, {log_probs.shape[2]})", op,
                   f"blank={blank}")  # fmt: skip


def _log_add(*terms: Tensor) -> Tensor:
    """Logarithm of a sum of exponentials; the maximum is a constant of the derivative."""
    top = terms[0]
    for t in terms[1:]:
        top = F.maximum(top, t)
    top = F.stop_gradient(top)
    total = F.exp(terms[0] - top)
    for t in terms[1:]:
        total = total + F.exp(t - top)
    return top + F.log(total)


def _shifted(x: Tensor, by: int) -> Tensor:
    """Moves states ``by`` places on, and fills with the impossible."""
    n, states = x.shape
    front = F.full((n, min(by, states)), _NEVER, dtype=x.dtype)
    return front if by >= states else F.concat((front, x[:, : states - by]), 1)


def _with_blanks(targets: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """Puts a blank before, between and behind the labels; padding becomes blank."""
    n, size = targets.shape
    targets = F.cast(targets, dtypes.int64)
    inside = F.arange(size) < F.expand_dims(lengths, 1)
    labels = F.where(inside, targets, blank)
    blanks = F.full((n, size), blank, dtype=dtypes.int64)
    mixed = F.reshape(F.stack((blanks, labels), -1), (n, 2 * size))
    return F.concat((mixed, F.full((n, 1), blank, dtype=dtypes.int64)), 1)


def _prepared(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, ...]:
    """Returns what the steps take, see :func:`_advanced`, with the state after the first."""
    steps, n, _ = log_probs.shape
    labels = _with_blanks(targets, target_lengths, blank)
    states = labels.shape[1]
    position = F.arange(states)
    reachable = position <= F.expand_dims(2 * target_lengths, 1)
    at = F.broadcast_to(F.expand_dims(labels, 0), (steps, n, states))
    scores = F.gather_elements(log_probs, 2, at)
    # a label may follow the one before last when a blank between them is not needed
    front = F.full((n, min(2, states)), blank, dtype=dtypes.int64)
    before = F.concat((front, labels[:, : states - 2]), 1) if states > 2 else front[:, :states]
    skips = F.logical_and(F.not_equal(labels, blank), F.not_equal(labels, before))
    times = F.reshape(F.arange(steps), (steps, 1, 1))
    running = times < F.reshape(input_lengths, (n, 1))
    alpha = F.where(F.logical_and(position < 2, reachable), scores[0], _NEVER)
    return alpha, scores, running, skips, reachable


_prepared_fused = fusible(_prepared)


@fusible
def _advanced(
    alpha: Tensor, scores: Tensor, running: Tensor, skips: Tensor, reachable: Tensor
) -> tuple[Tensor, ...]:
    """The log-probabilities after each of the next steps."""
    never = F.full(alpha.shape, _NEVER, dtype=alpha.dtype)
    alphas: list[Tensor] = []
    for t in range(scores.shape[0]):
        jump = F.where(skips, _shifted(alpha, 2), never)
        new = _log_add(alpha, _shifted(alpha, 1), jump) + scores[t]
        new = F.where(reachable, F.maximum(new, _NEVER), never)
        # a sequence that has ended keeps its last state
        alpha = F.where(running[t], new, alpha)
        alphas.append(alpha)
    return tuple(alphas)


def _unrolled(
    first: Tensor, scores: Tensor, running: Tensor, skips: Tensor, reachable: Tensor
) -> tuple[Tensor, Tensor]:
    """The state after the last step, and those after all of them."""
    alphas, steps = [first], scores.shape[0]
    while (t := len(alphas)) < steps:
        end = t + (_STEPS if steps - t >= _STEPS else 1)
        alphas += _advanced(alphas[-1], scores[t:end], running[t:end], skips, reachable)
    return alphas[-1], F.stack(tuple(alphas), 0)


def _rolled(first: Tensor, scores: Tensor, *fixed: Tensor) -> tuple[Tensor, Tensor] | None:
    """The state after the last step and, without derivative, those after all, by loops of a graph.

    Args:
        first: The state after the first step, (N, 2 S + 1).
        scores: Of the labels at every step, (T, N, 2 S + 1).
        fixed: What else :func:`_prepared` returns.

    Returns:
        ``None`` where no graph is captured.
    """
    steps, running = scores.shape[0], fixed[0]

    def test(state: Sequence[Tensor]) -> list[Tensor]:
        return [F.less(state[0], steps)]

    def step(state: Sequence[Tensor]) -> list[Tensor]:
        t, alpha, *tables = state
        now = [F.expand_dims(F.index_get(x, t, axes=(0,)), 0) for x in (scores, running)]
        (new,) = _advanced(alpha, *now, *fixed[1:])
        kept = [F.index_update(x, new, t, axes=(0,), mode="set") for x in tables]
        return [t + 1, new, *kept]

    start = F.cast(F.ones(()), dtypes.int64)
    found = hooks.loop([start, first], test, step)
    if found is None:
        return None
    first, scores = F.stop_gradient(first), F.stop_gradient(scores)
    table = F.broadcast_to(F.expand_dims(first, 0), scores.shape)
    return found[1], hooks.loop([start, first, table], test, step)[2]


def _loss(alpha: Tensor, target_lengths: Tensor, impossible: float) -> Tensor:
    """The loss of every sequence, of the state after its last step."""
    ends = F.expand_dims(2 * target_lengths, 1)
    last = F.gather_elements(alpha, 1, ends)
    label = F.gather_elements(alpha, 1, F.maximum(ends - 1, 0))
    label = F.where(ends > 0, label, _NEVER)
    loss = -F.squeeze(_log_add(last, label), 1)
    return F.where(loss > -_NEVER / 2, impossible, loss)


_loss_fused = fusible(_loss)


@fusible
def _table(alphas: Tensor, running: Tensor) -> Tensor:
    """The log-probabilities of all partial alignments, (N, T, 2 S + 1)."""
    possible = F.logical_and(F.swapaxes(running, 0, 1), alphas > _NEVER / 2)
    return F.where(possible, alphas, float("-inf"))


def _are_known(targets: Tensor, classes: int, lengths: Tensor) -> bool:
    """Whether labels and their numbers are in range; the operators tell what is not."""
    label, length = targets.array, lengths.array
    return bool(
        label.min(initial=0) >= 0 and label.max(initial=0) < classes
        and length.min(initial=0) >= 0 and length.max(initial=0) <= targets.shape[1]
    )  # fmt: skip


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: object, target_lengths: object,
    blank: int = 0, reduction: str = "mean", zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    r"""Negative log likelihood of label sequences, summed over all their alignments.

    Args:
        log_probs: Log-probabilities of shape :math:`(T, N, C)`, a float dtype.
        targets: Labels of shape :math:`(N, S)`, an integer dtype; entries beyond a sequence's
            length are not read.
        input_lengths: Number of time steps of every sequence, :math:`(N,)`.
        target_lengths: Number of labels of every sequence, :math:`(N,)`.
        blank: The blank label.
        reduction: ``"none"``, ``"mean"`` (of the losses per label) or ``"sum"``.
        zero_infinity: Whether impossible sequences cost 0 instead of infinity.

    Returns:
        The loss, :math:`(N,)` or 0-d, and the log-probabilities of the partial alignments,
        :math:`(N, T, 2 S + 1)`, through which no gradient flows.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if a dtype does not fit.
        ArgumentError: if ``blank`` or ``reduction`` is not valid.

    Example:
        >>> logp = ops.log_softmax(ops.ones((3, 1, 4)), -1)
        >>> loss, _ = ops.ctc_loss(logp, Tensor([[1, 2]]), (3,), (2,))
    """
    op = "ctc_loss"
    check_reduction(reduction, op)
    _check_arguments(log_probs, targets, blank, op)
    steps, n, _ = log_probs.shape
    input_lengths = _lengths(input_lengths, n, "input_lengths", op)
    target_lengths = _lengths(target_lengths, n, "target_lengths", op)
    fuses = may_fuse() and _are_known(targets, log_probs.shape[2], target_lengths)
    prepare, loss_of = (_prepared_fused, _loss_fused) if fuses else (_prepared, _loss)
    first, scores, running, skips, reachable = prepare(
        log_probs, targets, input_lengths, target_lengths, blank
    )
    fixed = (running, skips, reachable)
    rolled = _rolled(first, scores, *fixed) if steps > _ROLLED else None
    last, alphas = _unrolled(first, scores, *fixed) if rolled is None else rolled
    loss = loss_of(last, target_lengths, 0.0 if zero_infinity else float("inf"))
    table = _table(F.swapaxes(F.stop_gradient(alphas), 0, 1), running)
    if reduction == "mean":
        loss = loss / F.cast(F.maximum(target_lengths, 1), loss.dtype)
    return reduce_loss(loss, reduction, op), table
