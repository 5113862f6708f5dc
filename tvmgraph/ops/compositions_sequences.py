"""Compositions on sequences, sets and samples, which classes and functions of operators share.

Those that give as many elements as values say are of eager code: compiled code has no such shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import hooks
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.columns import Expr, NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.random import Seed
from tvmgraph.core.state import state
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.dtypes import float32, int32, int64, uint8
from tvmgraph.errors import ArgumentError, either, reject
from tvmgraph.ops.common.arguments import bad, is_unknown, require
from tvmgraph.ops.effects.assignment import values_of


def ctc_loss_and_gradient(
    x: Tensor, indices: Tensor, values: Tensor, lengths: Tensor, op: str, collapses: bool = False,
    merges: bool = True, ignores_longer: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns losses [N] of logits [T, N, C] whose last class is the blank, and their gradient.

    Labels follow each other from sequence to sequence; those at the end of a sequence that are no
    class, or the blank, are none.

    Args:
        x: Logits of shape [T, N, C].
        indices: Positions of the labels (sequence, place), of shape [L, 2].
        values: The labels, of shape [L].
        lengths: Steps of every sequence, of shape [N].
        op: Name of the function, for errors.
        collapses: Whether a label that follows itself counts once.
        merges: Must be True: what follows itself in the outputs is one label.
        ignores_longer: Whether sequences with more labels than steps have no loss.

    Raises:
        ArgumentError: if there is no label, a label follows one that is no class, or ``merges`` is
            False.
    """
    require(merges, "ctc_merge_repeated=False is not offered", op, ArgumentError)
    require(values.size, "there are no labels", op, ArgumentError)
    steps, batch, classes = x.shape
    labels = F.cast(values, int32)
    if is_unknown(indices):  # of no more places than a sequence could align, and one beyond
        places = values.size if collapses else min(values.size, steps + 1)
        rows, inside = _rows_in_graph(indices[:, 0], labels, batch, places)
    else:
        rows, inside = _label_rows(indices.asnumpy()[:, 0], labels, batch)
    fits = F.logical_and(inside, F.logical_and(rows >= 0, rows < classes - 1))
    if state.interpreter is None and (fits.array[:, 1:] > fits.array[:, :-1]).any():
        raise bad(either(ArgumentError, RuntimeError), "a label follows one that is no class", op,
                  f"labels={rows.asnumpy().tolist()}, num_classes={classes}")  # fmt: skip
    if collapses:
        rows, fits = _without_repeats(rows, fits)
    counts = F.sum(F.cast(fits, int32), -1)
    rows = F.where(fits, rows, 0)

    def losses(logits: Tensor) -> Tensor:
        return F.ctc_loss(
            F.log_softmax(logits, -1), rows, F.cast(lengths, int32), counts, classes - 1, "none",
            ignores_longer,
        )[0]  # fmt: skip

    return losses(x), hooks.grad(lambda t: F.sum(losses(t)))(x)


def _label_rows(sequences: np.ndarray, values: Tensor, batch: int) -> tuple[Tensor, Tensor]:
    """Returns the labels of every sequence [N, S], and where there are any."""
    counts = np.bincount(sequences, minlength=batch)[:batch]
    places = np.arange(max(counts.max(), 1))
    starts = (np.cumsum(counts) - counts)[:, None]
    rows = values[Tensor(np.minimum(starts + places, len(sequences) - 1))]
    return rows, Tensor(places < counts[:, None])


def _rows_in_graph(
    sequences: Tensor, values: Tensor, batch: int, size: int
) -> tuple[Tensor, Tensor]:
    """Returns what :func:`_label_rows` does, of ``size`` places, as a part of a graph."""
    numbers, places = (Tensor(np.arange(n, dtype=np.int32)) for n in (batch, size))
    counts = F.sum(F.cast(F.cast(sequences, int32) == numbers[:, None], int32), -1)
    starts = F.cumsum(counts, 0) - counts
    last = Tensor(values.size - 1, int32)
    rows = F.gather(values, F.minimum(starts[:, None] + places, last), 0)
    return rows, places < counts[:, None]


def _without_repeats(rows: Tensor, fits: Tensor) -> tuple[Tensor, Tensor]:
    """Returns rows in which labels that follow themselves come once, and where labels are."""
    before = F.concat((F.full_like(rows[:, :1], -1), rows[:, :-1]), 1)
    kept = F.logical_and(fits, rows != before)
    places = Tensor(np.arange(rows.shape[1], dtype=np.int32))
    rank = F.cumsum(F.cast(kept, int32), 1) - 1
    moved = F.logical_and(kept[:, None], rank[:, None] == places[:, None])
    return F.sum(F.where(moved, rows[:, None], 0), -1), F.any(moved, -1)


def ctc_greedy_decoder(
    inputs: Tensor, sequence_length: Tensor, merge_repeated: bool = True
) -> tuple[Tensor, ...]:
    """Returns the most likely classes of sequences, without blanks (the last class).

    Args:
        inputs: Logits [T, N, C].
        sequence_length: Lengths [N].
        merge_repeated: Whether equal neighbours are one.

    Returns:
        Places [M, 2], classes [M], size of the table, and the negative sums of the logits [N, 1].

    Raises:
        ArgumentError: if a length is larger than T.
    """
    scores, sizes = inputs.asnumpy(), sequence_length.asnumpy()
    if sizes.max(initial=0) > len(scores):
        reject(either(ArgumentError, RuntimeError), "ops.CTCGreedyDecoder",
               f"sequence_length should be less than or equal to {len(scores)}",
               f"sequence_length={sizes.tolist()}")  # fmt: skip
    best = scores.argmax(-1)
    blank = scores.shape[-1] - 1
    rows, total = [], np.zeros((scores.shape[1], 1), scores.dtype)
    for n, size in enumerate(sizes):
        path = best[:size, n]
        total[n] = -scores[np.arange(size), n, path].sum()
        new = np.ones(size, bool)
        new[1:] = path[1:] != path[:-1]
        rows.append(path[(path != blank) & (new | (not merge_repeated))])
    longest = max(map(len, rows), default=0)
    places = [(n, i) for n, row in enumerate(rows) for i in range(len(row))]
    found = np.array(places, np.int64).reshape(-1, 2), np.concatenate(rows).astype(np.int64)
    return Tensor(found[0]), Tensor(found[1]), Tensor([len(rows), longest], int64), Tensor(total)


def edit_distance(
    hypothesis: tuple[Tensor, Tensor, Tensor], truth: tuple[Tensor, Tensor, Tensor], relative: bool
) -> Tensor:
    """Returns Levenshtein distances of sequences given by places, values and shape.

    Args:
        hypothesis: Places, values and shape of the sequences.
        truth: Those that they are compared with.
        relative: Whether distances are divided by the lengths of ``truth``.

    Returns:
        float32 tensor of the sequences' shape without its last axis.
    """
    guesses, wanted = (_sequences(*(t.asnumpy() for t in s)) for s in (hypothesis, truth))
    shape = np.maximum(*(s[2].asnumpy()[:-1] for s in (hypothesis, truth)))
    found = np.zeros(shape, np.float32)
    for place in np.ndindex(*shape):
        a, b = guesses.get(place, []), wanted.get(place, [])
        distance = float(_levenshtein(a, b))
        if relative:
            distance = distance / len(b) if b else (np.inf if a else 0.0)
        found[place] = distance
    return Tensor(found)


def _sequences(places: np.ndarray, values: np.ndarray, _: np.ndarray) -> dict[object, list[object]]:
    found: dict[object, list[object]] = {}
    for place, value in zip(places, values):
        found.setdefault(tuple(place[:-1].tolist()), []).append(value)
    return found


def _levenshtein(a: Sequence[object], b: Sequence[object]) -> int:
    last = list(range(len(b) + 1))
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            row.append(min(last[j] + (x != y), last[j + 1] + 1, row[j] + 1))
        last = row
    return last[-1]


def list_diff(x: Tensor, y: Tensor, dtype: DTypeLike) -> tuple[Tensor, Tensor]:
    """Returns the elements of ``x`` that are not in ``y``, and where they are.

    Args:
        x: Tensor of shape [N].
        y: Tensor of shape [M].
        dtype: dtype of the positions.
    """
    where = np.flatnonzero(~np.isin(x.asnumpy(), y.asnumpy()))
    return F.gather(x, Tensor(where), 0), F.cast(Tensor(where), dtype)


def accidental_hits(true: Tensor, sampled: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns where sampled classes are true ones: rows, places, and a weight that hides them.

    Args:
        true: Classes of shape [rows, true ones].
        sampled: Classes of shape [S].
    """
    rows, _, places = np.nonzero(true.asnumpy()[:, :, None] == sampled.asnumpy())
    hidden = np.full(len(rows), -np.finfo(np.float32).max, np.float32)
    dtype = true.dtype
    return F.cast(Tensor(rows), int32), F.cast(Tensor(places), dtype), Tensor(hidden)


def candidates(
    true: Tensor, count: int, unique: bool, limit: int, seed: int, logarithmic: bool, op: str,
    avoid: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns sampled classes [S] and how often the true and the sampled ones are expected.

    Classes come with probability 1/R, or log((k + 2) / (k + 1)) / log(R + 1) when ``logarithmic``.

    Args:
        true: Classes of any shape; their dtype is the sampled ones'.
        count: How many classes are sampled.
        unique: Whether no class is sampled twice.
        limit: Number R of classes.
        seed: Seed of NumPy's generator; 0 draws one from the global stream.
        logarithmic: Whether lower classes are more frequent.
        op: Name of the function, for errors.
        avoid: Whether the true classes are left out.

    Raises:
        ArgumentError: if more unique classes are sampled than there are.
    """
    every = np.arange(limit)
    allowed = np.full(limit, 1 / limit)
    if logarithmic:
        allowed = np.log((every + 2) / (every + 1)) / np.log(limit + 1)
    if avoid:
        allowed[np.isin(every, true.asnumpy())] = 0
    if unique and count > np.count_nonzero(allowed):
        raise bad(ArgumentError, "more classes are sampled than there are", op,
                  f"num_sampled={count}, range_max={limit}")  # fmt: skip
    random = np.random.default_rng(seed or int(F.randint(0, 2**31 - 1, (1,)).asnumpy()[0]))
    found, tries = _drawn(random, allowed / allowed.sum(), count, unique)

    def expected(classes: Tensor) -> Tensor:
        k = F.cast(classes, float32)
        p = F.full_like(k, 1 / limit)
        if logarithmic:
            p = F.log((k + 2.0) / (k + 1.0)) / float(np.log(limit + 1))
        return -F.expm1(F.log1p(-p) * tries) if unique and logarithmic else p * count

    drawn = F.cast(Tensor(found), true.dtype)
    return drawn, expected(true), expected(drawn)


def _drawn(
    random: np.random.Generator, share: np.ndarray, count: int, unique: bool
) -> tuple[np.ndarray, int]:
    """Returns numbers drawn with given probabilities, and how many draws it took."""
    found: list[int] = []
    tries = 0
    while len(found) < count:
        number = int(random.choice(len(share), p=share))
        tries += 1
        if not unique or number not in found:
            found.append(number)
    return np.array(found), tries


def no_repeat_ngram(state: Tensor, scores: Tensor, size: int) -> Tensor:
    """Makes words impossible that would repeat an n-gram: [B, K, L] words, [B, K, V] scores.

    Args:
        state: The words so far, integers of shape [B, K, L].
        scores: Scores of the next word, of shape [B, K, V].
        size: Words of an n-gram.
    """
    length, words = state.shape[-1], scores.shape[-1]
    least = float(np.finfo(scores.dtype.numpy).min)
    vocabulary = tensor_from_numpy(np.arange(words, dtype=np.int64))
    forbidden: object = F.full_like(F.cast(scores, float32), 0) > 1
    for start in range(length - size + 1):
        end = start + size - 1
        word = F.cast(state[..., end], int64).expand_dims(-1)
        hit = F.equal(word, vocabulary)
        if size > 1:
            same = F.equal(state[..., start:end], state[..., length - size + 1 :])
            hit = F.logical_and(hit, F.all(same, -1, True))
        forbidden = F.logical_or(forbidden, hit)
    return F.where(forbidden, F.full_like(scores, least), scores)


def bitpack(x: Tensor, threshold: NumberLike) -> Tensor:
    """Packs eight comparisons ``x > threshold`` of the last axis into a byte.

    Args:
        x: Tensor whose last axis is a multiple of 8.
        threshold: What elements are compared with.

    Returns:
        uint8 tensor; the first element of eight is the highest bit.
    """
    bits = F.cast(x > threshold, int32)
    bits = F.reshape(bits, (*x.shape[:-1], x.shape[-1] // 8, 8))
    powers = tensor_from_numpy(2 ** np.arange(7, -1, -1, dtype=np.int32))
    return F.cast(F.sum(bits * powers, -1), uint8)


def confusion(
    labels: Tensor, predictions: Tensor, count: int, weights: object, dtype: DTypeLike
) -> Tensor:
    """Counts pairs of a label and a prediction: [count, count].

    Args:
        labels: Classes of shape [N].
        predictions: Classes of shape [N].
        count: Number of classes.
        weights: What every pair counts, of shape [N]; ``None`` for 1.
        dtype: dtype of the result.
    """
    numbers = tensor_from_numpy(np.arange(count, dtype=np.int64))
    rows, columns = (
        F.cast(F.equal(F.cast(v, int64).expand_dims(-1), numbers), float32)
        for v in (labels, predictions)
    )
    if weights is not None:
        columns = columns * F.cast(weights, float32).expand_dims(-1)
    return F.cast(F.matmul(F.swapaxes(rows, 0, 1), columns), dtype)


def fixed_histogram(x: Tensor, bounds: Tensor, count: int, dtype: DTypeLike) -> Tensor:
    """Counts elements in equal parts of an interval; those outside are in the outermost parts.

    Args:
        x: Tensor of any shape.
        bounds: Ends of the interval, of shape [2].
        count: Number of parts.
        dtype: dtype of the counts.
    """
    low, high = bounds[0], bounds[1]
    place = F.floor((F.reshape(x, (-1,)) - low) / (high - low) * count)
    place = F.cast(F.clamp(place, 0, count - 1), int64)
    numbers = tensor_from_numpy(np.arange(count, dtype=np.int64))
    return F.cast(F.sum(F.cast(F.equal(place.expand_dims(-1), numbers), int32), 0), dtype)


def checked_numbers(x: Tensor) -> Tensor:
    """Returns ``x``, or raises where it holds NaN or infinite elements.

    Args:
        x: Tensor of any shape.

    Raises:
        ArgumentError: if it does.
    """
    require(bool(F.all(F.isfinite(x)).asnumpy()), "there are NaN or infinite elements",
            "CheckNumerics", ArgumentError, x=x)  # fmt: skip
    return x


def adam_delta(
    m: Tensor, v: Tensor, beta1_power: Expr, beta2_power: Expr, lr: Expr, beta1: Expr, beta2: Expr,
    epsilon: Expr, grad: Tensor, nesterov: bool,
) -> Tensor:  # fmt: skip
    r"""Updates the means of Adam and returns by what the weights change.

    Args:
        m: Mean of the gradients, which is updated.
        v: Mean of their squares, which is updated.
        beta1_power: :math:`\beta_1^t` of step :math:`t`.
        beta2_power: :math:`\beta_2^t` of step :math:`t`.
        lr: Learning rate.
        beta1: Decay of ``m``.
        beta2: Decay of ``v``.
        epsilon: What is added to the root.
        grad: The gradient.
        nesterov: Whether the step looks ahead.
    """
    mean = F.assign(m, m * beta1 + grad * (1 - beta1))
    square = F.assign(v, v * beta2 + F.square(grad) * (1 - beta2))
    rate = lr * F.sqrt(F.cast(1 - beta2_power, float32)) / (1 - beta1_power)
    step = mean * beta1 + grad * (1 - beta1) if nesterov else mean
    return F.neg(rate * step / (F.sqrt(square) + epsilon))


def keras_momentum(
    var: Tensor, accum: Tensor, lr: NumberLike, grad: Tensor, momentum: NumberLike, nesterov: bool
) -> tuple[Tensor, Tensor]:
    r"""A step with a velocity that holds the learning rate: :math:`v = m v - lr\, g`, :math:`w = w
    + v`.

    Args:
        var: The Parameter :math:`w`.
        accum: The velocity :math:`v`, a Parameter.
        lr: Learning rate.
        grad: The gradient :math:`g`.
        momentum: :math:`m`.
        nesterov: Whether the step looks ahead: :math:`w = w + m v - lr\, g`.

    Returns:
        Both as they are after the step.
    """
    new = F.assign(accum, accum * momentum - grad * lr)
    F.assign_add(var, new * momentum - grad * lr if nesterov else new)
    return values_of(var, accum)


def least_squares(matrix: Tensor, rhs: Tensor, l2: object) -> Tensor:
    """Returns x with the least ``|matrix x - rhs|^2 + l2 |x|^2``.

    Args:
        matrix: Tensor of shape [*, M, N].
        rhs: Tensor of shape [*, M, K].
        l2: Weight of the regularization.

    Returns:
        Tensor of shape [*, N, K].
    """
    turned = F.swapaxes(matrix, -1, -2)
    square = F.matmul(turned, matrix)
    size = square.shape[-1]
    return F.matrix_solve(square + F.cast(l2, square.dtype) * F.eye(size, size, square.dtype),
                          F.matmul(turned, rhs))  # fmt: skip


def padded_permutation(n: Tensor, length: int, pad: int, dtype: DTypeLike) -> Tensor:
    """Returns the first numbers in random order, then ``pad`` up to a length.

    Args:
        n: How many numbers, an integer tensor of one element.
        length: Size of the result.
        pad: What follows the numbers.
        dtype: dtype of the result.
    """
    count = int(n.asnumpy().reshape(-1)[0])
    rest = F.full((length - count,), pad, dtype=int64)
    return F.cast(F.concat((F.cast(F.randperm(count), int64), rest), 0), dtype)


def ragged_range(
    starts: Tensor, limits: Tensor, deltas: Tensor, dtype: DTypeLike
) -> tuple[Tensor, Tensor]:
    """Returns where each range begins among all of them, and their numbers.

    Args:
        starts: First number of every range.
        limits: Where every range ends, excluded.
        deltas: Distances of neighbouring numbers.
        dtype: dtype of the positions.
    """
    parts = [
        np.arange(*row)
        for row in zip(*(t.asnumpy().reshape(-1).tolist() for t in (starts, limits, deltas)))
    ]
    ends = np.concatenate([[0], np.cumsum([len(p) for p in parts])])
    return F.cast(Tensor(ends), dtype), F.cast(Tensor(np.concatenate(parts)), starts.dtype)


def poisson(shape: Any, rate: object, dtype: DTypeLike, seed: Seed = None) -> Tensor:
    """Draws numbers of Poisson distributions, [*shape, *rate.shape], by the inverse of their sums.

    The sum of probabilities up to k is the upper incomplete gamma function of k + 1. Rates above
    500 take the normal distribution of their mean and deviation, which is within 0.02 of it.

    Args:
        shape: The leading sizes of the result, a sequence or tensor.
        rate: Rates, a number or tensor of any shape.
        dtype: dtype of the result.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.
    """
    rates = F.cast(rate if isinstance(rate, Tensor) else Tensor(rate, float32), float32)
    sizes = shape.asnumpy() if isinstance(shape, Tensor) else np.atleast_1d(shape)
    u = F.rand(*(int(s) for s in sizes), *rates.shape, seed=seed)
    small = F.minimum(rates, 500.0)
    most = float(small.asnumpy().max(initial=0))
    steps = np.arange(1, most + 12 * np.sqrt(most) + 13, dtype=np.float32)
    count = tensor_from_numpy(steps.reshape(-1, *[1] * rates.ndim))
    sums = F.igammac(count, small)
    found: Any = F.zeros_like(u)
    for k in range(len(steps)):
        found = found + F.cast(u > sums[k], float32)
    normal = rates + F.sqrt(rates) * 2**0.5 * F.erfinv(2 * u - 1)
    return F.cast(F.where(rates > small, F.round(normal), found), dtype)


def truncated_normal_between(
    shape: Sequence[int], mean: object, stdevs: object, low: object, high: object, seed: object
) -> Tensor:
    """Draws normal numbers within bounds by the inverse of their distribution.

    Args:
        shape: Sizes of the result, a sequence or tensor.
        mean: Means of the distributions, one per slice of the first axis or one for all.
        stdevs: Standard deviations.
        low: Lower bounds.
        high: Upper bounds.
        seed: ``None`` continues the global stream; an int gives the same numbers every time.
    """
    sizes = [int(s) for s in (shape.asnumpy() if isinstance(shape, Tensor) else shape)]
    column = [F.reshape(F.cast(v, float32), (-1,) + (1,) * (len(sizes) - 1))
              for v in (mean, stdevs, low, high)]  # fmt: skip
    center, wide, *ends = column
    below, above = (0.5 * (1 + F.erf((e - center) / wide / 2**0.5)) for e in ends)
    place = below + (above - below) * F.rand(*sizes, seed=seed)
    found = center + wide * 2**0.5 * F.erfinv(F.clamp(2 * place - 1, -1 + 1e-7, 1 - 1e-7))
    return F.minimum(F.maximum(found, ends[0]), ends[1])


def fft_with_size(
    x: Tensor, ndim: int, inverse: bool, real: bool, norm: str, onesided: bool, sizes: Sequence[int]
) -> Tensor:
    """Transforms the last axes by Fourier's sums.

    Args:
        x: Tensor whose last ``ndim`` axes are transformed.
        ndim: Number of axes, 1 to 3.
        inverse: Whether to transform back.
        real: Whether ``x``, or what is transformed back to, is real.
        norm: ``"forward"``, ``"backward"`` or ``"ortho"``.
        onesided: Whether only half of the spectrum of real numbers is kept.
        sizes: Sizes of the axes of the inverse transform of half a spectrum; ``()`` for even ones.
    """
    axes = tuple(range(-ndim, 0))
    if not real:
        return (F.ifftn if inverse else F.fftn)(x, None, axes, norm)
    if inverse:
        given = tuple(sizes) or None
        return F.irfftn(x, given, axes, norm) if onesided else F.real(F.ifftn(x, None, axes, norm))
    return F.rfftn(x, None, axes, norm) if onesided else F.fftn(x, None, axes, norm)
