"""Metrics of likeness: BLEU, Dice, cosine similarity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject
from tvmgraph.train.metrics.basic import ClearedMetric, MeanMetric, as_array


def _n_grams(words: Sequence[object], longest: int) -> Counter[tuple[object, ...]]:
    """Counts the runs of 1 to ``longest`` words."""
    return Counter(
        tuple(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)
    )


class BleuScore(ClearedMetric):
    r"""BLEU of translations: :math:`e^{\min(0, 1 - r/c)} \prod_n p_n^{1/N}`, with the shares
    :math:`p_n` of n-grams that a reference has as well.

    Args:
        n_gram: :math:`N`, from 1 to 4.
        smooth: Whether 1 is added to every count.

    Raises:
        ArgumentError: if ``n_gram`` is out of range.

    Reference:
        Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", 2002.

    Example:
        >>> m = nn.BleuScore(2)
        >>> m.update([["a", "b", "c", "d"]], [[["a", "b", "d", "e"]]])
        >>> round(float(m.eval()), 4)
        0.5
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        if type(n_gram) is not int or not 1 <= n_gram <= 4:
            reject(ArgumentError, "BleuScore", f"n_gram must be an int from 1 to 4, not {n_gram!r}")
        self.n_gram, self.smooth = n_gram, bool(smooth)
        super().__init__()

    def clear(self) -> None:
        """Forgets all batches."""
        self._matched = np.zeros(self.n_gram)
        self._all = np.zeros(self.n_gram)
        self._length, self._wanted = 0, 0

    def update(self, *inputs: Any) -> None:
        """Adds candidates (lists of words) and, for each, a list of references."""
        inputs = self._chosen(inputs)
        if len(inputs) != 2 or len(inputs[0]) != len(inputs[1]):
            reject(ShapeError, "BleuScore.update", "one list of references per candidate is needed")
        for candidate, references in zip(*inputs):
            self._length += len(candidate)
            lengths = [len(r) for r in references]
            self._wanted += min(lengths, key=lambda n: abs(n - len(candidate)))
            found, known = _n_grams(candidate, self.n_gram), Counter[tuple[Any, ...]]()
            for r in references:
                known |= _n_grams(r, self.n_gram)
            for counts, total in ((found & known, self._matched), (found, self._all)):
                for words, count in counts.items():
                    total[len(words) - 1] += count

    def eval(self) -> float:
        """Returns the score."""
        self._need(self._length)
        if not self._matched.all():
            return 0.0
        more = float(self.smooth)
        mean = float(np.exp(np.mean(np.log((self._matched + more) / (self._all + more)))))
        longer = self._length > self._wanted
        return mean if longer else float(np.exp(1 - self._wanted / self._length)) * mean


class Dice(MeanMetric):
    r"""Dice coefficient of batches, summed and divided by the number of samples:
    :math:`2 \sum x y / (\sum x^2 + \sum y^2 + s)`.

    Args:
        smooth: :math:`s`, positive.

    Raises:
        ArgumentError: if ``smooth`` is not positive.

    Example:
        >>> m = nn.Dice()
        >>> m.update(Tensor([[1.0, 0.0]]), Tensor([[1.0, 0.0]]))
        >>> round(m.eval(), 4)
        1.0
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        if isinstance(smooth, bool) or not isinstance(smooth, (int, float)) or smooth <= 0:
            reject(
                either(ArgumentError, TypeError),
                "Dice",
                f"smooth must be a positive number, not {smooth!r}",
            )
        self.smooth = float(smooth)
        super().__init__()

    def update(self, *inputs: object) -> None:
        """Adds a batch of predictions and truth of one shape (N, ...)."""
        x, y = self._pair(inputs)
        if x.shape != y.shape:
            reject(ShapeError, "Dice.update", f"shapes {x.shape} and {y.shape} differ")
        x, y = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
        share = 2 * float(x @ y) / (float(x @ x + y @ y) + self.smooth)
        self._add(share, as_array(inputs[1]).shape[0])


class CosineSimilarity(ClearedMetric):
    """Likeness of every row of a matrix to every other.

    Args:
        similarity: ``"cosine"``, or ``"dot"`` for plain products.
        reduction: ``"none"`` for the matrix, ``"sum"`` or ``"mean"`` over its rows.
        zero_diagonal: Whether the likeness of a row to itself counts as 0.

    Raises:
        ArgumentError: if a name is unknown.

    Example:
        >>> m = nn.CosineSimilarity()
        >>> m.update(Tensor([[1.0, 0.0], [3.0, 4.0]]))
        >>> m.eval()[0].tolist()
        [0.0, 0.6000000238418579]
    """

    def __init__(
        self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True
    ) -> None:
        for name, value, known in (
            ("similarity", similarity, ("cosine", "dot")),
            ("reduction", reduction, ("none", "sum", "mean")),
        ):
            if value not in known:
                reject(ArgumentError, "CosineSimilarity", f"{name} cannot be {value!r}",
                       fix=f"use one of {', '.join(known)}")  # fmt: skip
        self.similarity, self.reduction = similarity, reduction
        self.zero_diagonal = bool(zero_diagonal)
        super().__init__()

    def clear(self) -> None:
        """Forgets the matrix."""
        self._matrix: np.ndarray | None = None

    def update(self, *inputs: object) -> None:
        """Takes a matrix (N, C) in place of the one before."""
        inputs = self._chosen(inputs)
        if len(inputs) != 1:
            reject(DTypeError, "CosineSimilarity.update",
                   f"one matrix is needed, not {len(inputs)}")  # fmt: skip
        rows = self._convert_data(inputs[0])
        if rows.ndim != 2:
            reject(ShapeError, "CosineSimilarity.update", f"a matrix is needed, not {rows.shape}")
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._matrix = rows @ rows.T

    def eval(self) -> np.ndarray:
        """Returns the matrix, or one number per row."""
        self._need(self._matrix is not None)
        found = np.array(self._matrix)
        if self.zero_diagonal:
            np.fill_diagonal(found, 0)
        return found if self.reduction == "none" else getattr(np, self.reduction)(found, axis=-1)


__all__ = ["BleuScore", "CosineSimilarity", "Dice"]
