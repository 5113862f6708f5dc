"""Rates of true and false positives: :class:`ConfusionMatrixMetric`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph.errors import ArgumentError, ShapeError, either, reject
from tvmgraph.nn._checks import boolean
from tvmgraph.train.metrics.basic import ClearedMetric


class _Counts:
    """The counts (true, false) x (positive, negative) and what follows from them."""

    def __init__(self, tp: np.ndarray, fp: np.ndarray, tn: np.ndarray, fn: np.ndarray) -> None:
        self.tp, self.fp, self.tn, self.fn = tp, fp, tn, fn
        self.tpr, self.tnr = tp / (tp + fn), tn / (tn + fp)
        self.ppv, self.npv = tp / (tp + fp), tn / (tn + fn)


def _correlation(c: _Counts) -> Any:
    places = (c.tp + c.fp) * (c.tp + c.fn) * (c.tn + c.fp) * (c.tn + c.fn)
    return (c.tp * c.tn - c.fp * c.fn) / np.sqrt(places)


def _prevalence(c: _Counts) -> Any:
    return (np.sqrt(c.tpr * (1 - c.tnr)) + c.tnr - 1) / (c.tpr + c.tnr - 1)


# names, the first of which is the common one -> formula
_FORMULAS: tuple[tuple[str, Callable[[_Counts], Any]], ...] = (
    ("sensitivity, recall, hit rate, true positive rate, tpr", lambda c: c.tpr),
    ("specificity, selectivity, true negative rate, tnr", lambda c: c.tnr),
    ("precision, positive predictive value, ppv", lambda c: c.ppv),
    ("negative predictive value, npv", lambda c: c.npv),
    ("miss rate, false negative rate, fnr", lambda c: 1 - c.tpr),
    ("fall out, false positive rate, fpr", lambda c: 1 - c.tnr),
    ("false discovery rate, fdr", lambda c: 1 - c.ppv),
    ("false omission rate, for", lambda c: 1 - c.npv),
    ("prevalence threshold, pt", _prevalence),
    ("threat score, critical success index, ts, csi", lambda c: c.tp / (c.tp + c.fn + c.fp)),
    ("accuracy, acc", lambda c: (c.tp + c.tn) / (c.tp + c.fp + c.tn + c.fn)),
    ("balanced accuracy, ba", lambda c: (c.tpr + c.tnr) / 2),
    ("f1 score, f1", lambda c: 2 * c.tp / (2 * c.tp + c.fn + c.fp)),
    ("matthews correlation coefficient, mcc", _correlation),
    ("fowlkes mallows index, fm", lambda c: np.sqrt(c.ppv * c.tpr)),
    ("informedness, bookmaker informedness, bm", lambda c: c.tpr + c.tnr - 1),
    ("markedness, deltap, mk", lambda c: c.ppv + c.npv - 1),
)
RATES = {name: formula for names, formula in _FORMULAS for name in names.split(", ")}
_REDUCTIONS = ("none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel")


class ConfusionMatrixMetric(ClearedMetric):
    """A rate that follows from the counts of true and false positives and negatives.

    Args:
        skip_channel: False leaves out the first channel, the background, where there are several.
            (That is what MindSpore 2.10 computes, though the name says the opposite.)
        metric_name: ``"sensitivity"``, ``"specificity"``, ``"precision"``, ``"miss rate"``,
            ``"accuracy"``, ``"f1 score"`` and the like, or a short form such as ``"tpr"``; ``_``
            is a space.
        calculation_method: Whether the rate is that of every channel of every sample, where it is
            defined, and then averaged; otherwise it is that of the sums of all counts.
        decrease: ``"mean"``, ``"sum"``, ``"none"`` or one of them for ``"_batch"`` and
            ``"_channel"``: MindSpore's choice, which changes no quotient of sums. Averages of
            rates need ``"mean"``.

    Raises:
        ArgumentError: if a name is unknown, or the choices contradict each other.

    Example:
        >>> m = nn.ConfusionMatrixMetric(metric_name="tpr")
        >>> m.update(Tensor([[[0], [1]], [[0], [0]]]), Tensor([[[0], [1]], [[1], [0]]]))
        >>> m.eval().tolist()
        [0.5]
    """

    def __init__(
        self,
        skip_channel: bool = True,
        metric_name: str = "sensitivity",
        calculation_method: bool = False,
        decrease: str = "mean",
    ) -> None:
        op = "ConfusionMatrixMetric"
        self.skip_channel = boolean(op, "skip_channel", skip_channel)
        self.calculation_method = boolean(op, "calculation_method", calculation_method)
        self.metric_name = str(metric_name).replace("_", " ").lower()
        if self.metric_name not in RATES:
            reject(either(ArgumentError, NotImplementedError), op,
                   f"metric_name cannot be {metric_name!r}",
                   fix=f"use one of {', '.join(RATES)}")  # fmt: skip
        if decrease not in _REDUCTIONS:
            reject(ArgumentError, op, f"decrease cannot be {decrease!r}",
                   fix=f"use one of {', '.join(_REDUCTIONS)}")  # fmt: skip
        if calculation_method and decrease != "mean":
            reject(ArgumentError, op, f"rates of samples have no decrease={decrease!r}",
                   fix='use "mean", or calculation_method=False')  # fmt: skip
        self.decrease = decrease
        super().__init__()

    def clear(self) -> None:
        """Forgets all batches."""
        self._counts: list[np.ndarray] = []

    def update(self, *inputs: Any) -> None:
        """Adds predictions and truth of one shape (N, C, ...), each element 0 or 1."""
        y, label = self._pair(inputs)
        if y.shape != label.shape or y.ndim < 2:
            reject(ShapeError, "ConfusionMatrixMetric.update",
                   f"shapes {y.shape} and {label.shape} are not one (N, C, ...)")  # fmt: skip
        if not np.isin(y, (0, 1)).all() or not np.isin(label, (0, 1)).all():
            reject(ArgumentError, "ConfusionMatrixMetric.update", "elements must be 0 or 1",
                   fix="give one-hot classes")  # fmt: skip
        if not self.skip_channel and y.shape[1] > 1:
            y, label = y[:, 1:], label[:, 1:]
        found, wanted = (a.reshape(*a.shape[:2], -1).astype(bool) for a in (y, label))
        counts = (found & wanted, found & ~wanted, ~found & ~wanted, ~found & wanted)
        self._counts.append(np.stack([c.sum(-1) for c in counts]).astype(np.float64))

    def eval(self) -> Any:
        """Returns the rate: an array of one element, or a number where rates are averaged."""
        self._need(len(self._counts))
        formula = RATES[self.metric_name]
        with np.errstate(divide="ignore", invalid="ignore"):
            if not self.calculation_method:
                total = np.sum([c.sum((1, 2)) for c in self._counts], axis=0)[:, None]
                return formula(_Counts(*total))
            samples = [row for c in self._counts for row in formula(_Counts(*c))]
        means = [row[~np.isnan(row)].mean() for row in samples if not np.isnan(row).all()]
        return float(np.mean(means)) if means else float("nan")


__all__ = ["ConfusionMatrixMetric"]
