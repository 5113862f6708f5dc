"""More metrics: top-k, confusion matrix, ROC, perplexity; metrics by name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tvmgraph.core.notebook import fragment, heading, table
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject
from tvmgraph.train.metrics import basic, surfaces
from tvmgraph.train.metrics.basic import ClearedMetric, MeanMetric, Metric, as_array, class_numbers
from tvmgraph.train.metrics.rates import ConfusionMatrixMetric
from tvmgraph.train.metrics.similarity import BleuScore, CosineSimilarity, Dice
from tvmgraph.train.plots import confusion


class TopKCategoricalAccuracy(MeanMetric):
    """Share of samples whose class is among the k highest scores.

    Args:
        k: Number of scores, at least 1.

    Example:
        >>> m = nn.TopKCategoricalAccuracy(2)
        >>> m.update(Tensor([[0.1, 0.5, 0.4], [0.9, 0.1, 0.0]]), Tensor([2, 2]))
        >>> m.eval()
        0.5
    """

    def __init__(self, k: int) -> None:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            reject(ArgumentError, type(self).__name__, f"k must be an int of at least 1, not {k!r}")
        self.k = k
        super().__init__()

    def update(self, *inputs: object) -> None:
        """Adds a batch of scores (N, C) and labels."""
        y, label = self._pair(inputs)
        _, wanted, _ = class_numbers(type(self).__name__, y, label)
        best = np.argsort(-y.reshape(-1, y.shape[-1]), axis=1, kind="stable")[:, : self.k]
        self._add((best == wanted[:, None]).any(1).sum(), wanted.size)


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of samples whose class has the highest score.

    Example:
        >>> nn.Top1CategoricalAccuracy().k
        1
    """

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """Share of samples whose class is among the five highest scores.

    Example:
        >>> nn.Top5CategoricalAccuracy().k
        5
    """

    def __init__(self) -> None:
        super().__init__(5)


class ConfusionMatrix(ClearedMetric):
    """Counts of (true class, predicted class).

    Args:
        num_classes: Number of classes.
        normalize: ``"no_norm"``, ``"target"`` (rows sum to 1), ``"prediction"`` (columns) or
            ``"all"``.
        threshold: Scores above count as class 1 where the predictions are one score per sample.

    Example:
        >>> m = nn.ConfusionMatrix(2)
        >>> m.update(Tensor([1, 0, 1]), Tensor([1, 0, 0]))
        >>> m.eval()
        array([[1., 1.],
               [0., 1.]])
    """

    def __init__(
        self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5
    ) -> None:
        if normalize not in ("no_norm", "target", "prediction", "all"):
            reject(ArgumentError, "ConfusionMatrix", f"normalize cannot be {normalize!r}",
                   fix="use no_norm, target, prediction or all")  # fmt: skip
        if not isinstance(threshold, float):
            reject(DTypeError, "ConfusionMatrix", f"threshold must be a float, not {threshold!r}")
        self.num_classes, self.normalize, self.threshold = num_classes, normalize, threshold
        super().__init__()

    def clear(self) -> None:
        """Forgets all batches."""
        self._matrix = np.zeros((self.num_classes, self.num_classes))

    def update(self, *inputs: object) -> None:
        """Adds a batch of scores (N, C), class numbers (N,) or scores of class 1 (N,)."""
        y, label = self._pair(inputs)
        if y.ndim > label.ndim:
            y = y.argmax(-1)
        elif y.dtype.kind == "f":
            y = y > self.threshold
        pairs = np.stack([label.ravel(), y.ravel()]).astype(np.int64)
        if pairs.size and not 0 <= pairs.min() <= pairs.max() < self.num_classes:
            reject(ArgumentError, "ConfusionMatrix",
                   f"class {pairs.max()} is outside the {self.num_classes} classes")  # fmt: skip
        np.add.at(self._matrix, tuple(pairs), 1)

    def plot(self, labels: Sequence[str] | None = None, ax: object = None) -> Any:
        """Draws the matrix by matplotlib: true classes down, predicted ones across.

        Args:
            labels: Names of the classes; their numbers by default.
            ax: Axes of matplotlib to draw into; new ones by default.

        Returns:
            The axes.

        Raises:
            NotFoundError: if matplotlib is not installed.
            ArgumentError: if there are not as many labels as classes.
        """
        return confusion(self.eval(), labels, ax)

    def _repr_html_(self) -> str:
        numbers = self._matrix.astype(int).tolist()
        rows = [(f"true {i}", *row) for i, row in enumerate(numbers)]
        heads = ("", *(f"predicted {i}" for i in range(self.num_classes)))
        return fragment(heading("ConfusionMatrix", f"{self._matrix.sum():,.0f} samples")
                        + table(heads, rows))  # fmt: skip

    def eval(self) -> np.ndarray:
        """Returns the matrix."""
        self._need(self._matrix.sum())
        axes: dict[str, int | None] = {"target": 1, "prediction": 0, "all": None}
        if self.normalize == "no_norm":
            return self._matrix
        total = self._matrix.sum(axis=axes[self.normalize], keepdims=True)
        return np.divide(self._matrix, total, out=np.zeros_like(self._matrix), where=total != 0)


class ROC(ClearedMetric):
    """Curve of true positives over false positives.

    Args:
        class_num: Number of classes; None or 1 for binary scores.
        pos_label: The positive class of binary labels, 1 by default.

    Example:
        >>> m = nn.ROC()
        >>> m.update(Tensor([0.1, 0.8, 0.4]), Tensor([0, 1, 1]))
        >>> fpr, tpr, thresholds = m.eval()
        >>> nn.auc(fpr, tpr)
        1.0
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        self.class_num, self.pos_label = class_num, 1 if pos_label is None else pos_label
        super().__init__()

    def clear(self) -> None:
        """Forgets all batches."""
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    def update(self, *inputs: object) -> None:
        """Adds a batch of scores, (N,) or (N, C), and labels (N,); or a label for every score."""
        y, label = self._pair(inputs)
        if len(y) != label.size and y.shape != label.shape:
            reject(ShapeError, "ROC", f"scores {y.shape} and labels {label.shape} do not fit")
        self._scores.append(y.ravel() if y.shape == label.shape else y)
        self._labels.append(label.ravel())

    def eval(self) -> tuple[object, object, object]:
        """Returns false positive rates, true positive rates and thresholds (lists by class)."""
        self._need(len(self._scores))
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        if scores.ndim == 1 or scores.shape[1] == 1:
            return _curve(scores.ravel(), labels == self.pos_label)
        curves = [_curve(scores[:, c], labels == c) for c in range(scores.shape[1])]
        fpr, tpr, thresholds = zip(*curves)
        return list(fpr), list(tpr), list(thresholds)


def _curve(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last = np.flatnonzero(np.append(np.diff(scores) != 0, True))
    tp = np.cumsum(positive)[last]
    fp = 1 + last - tp
    tp, fp = np.append(0, tp), np.append(0, fp)
    thresholds = np.append(scores[0] + 1, scores[last])
    return fp / max(fp[-1], 1), tp / max(tp[-1], 1), thresholds


def auc(x: object, y: object, reorder: bool = False) -> float:
    """Returns the area under a curve by the trapezoidal rule.

    Args:
        x: Increasing or decreasing positions, (n,).
        y: Heights, (n,).
        reorder: Whether the points are sorted by position first.

    Raises:
        ShapeError: if the lengths differ or there are fewer than two points.
        ArgumentError: if the positions are not sorted.

    Example:
        >>> nn.auc([0.0, 1.0], [0.0, 1.0])
        0.5
    """
    a, b = as_array(x).astype(np.float64), as_array(y).astype(np.float64)
    if a.ndim != 1 or a.shape != b.shape or a.size < 2:
        reject(ShapeError, "auc", f"x {a.shape} and y {b.shape} need one length of at least 2")
    if reorder:
        order = np.lexsort((b, a))
        a, b = a[order], b[order]
    steps = np.diff(a)
    if (steps < 0).any() and (steps > 0).any():
        reject(ArgumentError, "auc", "x must be sorted", fix="pass reorder=True")
    return float(abs(np.trapezoid(b, a)))


class Perplexity(MeanMetric):
    r"""Perplexity: :math:`\exp(-\frac{1}{n} \sum \log p_{label})`.

    Args:
        ignore_label: A class that does not count.

    Example:
        >>> m = nn.Perplexity()
        >>> m.update(Tensor([[0.5, 0.5]]), Tensor([1]))
        >>> round(m.eval(), 4)
        2.0
    """

    def __init__(self, ignore_label: int | None = None) -> None:
        self.ignore_label = ignore_label
        super().__init__()

    def update(self, *inputs: object) -> None:
        """Adds a batch of probabilities (..., C) and labels (...)."""
        y, label = self._pair(inputs)
        label = label.ravel().astype(np.int64)
        rows = y.reshape(-1, y.shape[-1])
        if len(rows) != label.size:
            reject(ShapeError, "Perplexity",
                   f"{y.shape} and {label.size} labels do not fit")  # fmt: skip
        keep = (
            np.ones(label.size, bool) if self.ignore_label is None else label != self.ignore_label
        )
        chosen = rows[keep, label[keep]]
        self._add(-np.log(np.maximum(chosen, 1e-10)).sum(), keep.sum())

    def eval(self) -> float:
        """Returns the perplexity."""
        return math.exp(super().eval())


_BY_NAME: dict[str, Callable[..., object]] = {
    "accuracy": basic.Accuracy, "acc": basic.Accuracy, "precision": basic.Precision,
    "recall": basic.Recall, "F1": basic.F1, "f1": basic.F1, "fbeta": basic.Fbeta,
    "mae": basic.MAE, "mse": basic.MSE, "loss": basic.Loss, "perplexity": Perplexity,
    "top_1_accuracy": Top1CategoricalAccuracy, "top_5_accuracy": Top5CategoricalAccuracy,
    "topk": TopKCategoricalAccuracy, "roc": ROC, "roc_curve": ROC,
    "confusion_matrix": ConfusionMatrix, "bleu_score": BleuScore, "dice": Dice,
    "cosine_similarity": CosineSimilarity, "confusion_matrix_metric": ConfusionMatrixMetric,
    "hausdorff_distance": surfaces.HausdorffDistance,
    "mean_surface_distance": surfaces.MeanSurfaceDistance,
    "root_mean_square_distance": surfaces.RootMeanSquareDistance,
    "occlusion_sensitivity": surfaces.OcclusionSensitivity, "auc": auc,
}  # fmt: skip


def names() -> list[str]:
    """Returns the names that :func:`get_metric_fn` knows."""
    return sorted(_BY_NAME)


def get_metric_fn(name: str, *args: object, **kwargs: object) -> Any:
    """Returns a metric by name; of ``"auc"``, which is a function, its value.

    Args:
        name: ``"accuracy"``, ``"loss"``, ``"mse"`` and so on.
        args: Arguments of the metric.
        kwargs: Keyword arguments of the metric.

    Raises:
        ArgumentError: if there is no such name.

    Example:
        >>> type(nn.get_metric_fn("accuracy")).__name__
        'Accuracy'
    """
    if name not in _BY_NAME:
        reject(either(ArgumentError, KeyError), "get_metric_fn", f"there is no metric {name!r}",
               fix=f"use one of {', '.join(names())}")  # fmt: skip
    return _BY_NAME[name](*args, **kwargs)


def rearrange_inputs(func: Callable[..., object]) -> Callable[..., object]:
    """Decorates a metric's ``update``: its inputs come in the order that ``set_indexes`` gave.

    Args:
        func: The method ``update``.
    """

    @functools.wraps(func)
    def rearranged(self: object, *inputs: object) -> object:
        order = getattr(self, "indexes", None)
        return func(self, *(inputs if order is None else [inputs[i] for i in order]))

    return rearranged


def get_metrics(metrics: object) -> dict[str, Metric]:
    """Returns metrics by name, of names or of a dict; None gives none of them.

    Args:
        metrics: Names of metrics, or metrics by name.

    Raises:
        DTypeError: if it is neither.
    """
    return metrics_of(metrics)


def metrics_of(value: object) -> dict[str, Metric]:
    """Reads the ``metrics`` argument of a Model: names, or a dict of metrics by name.

    Args:
        value: The argument.

    Raises:
        DTypeError: if it is neither.
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        found: dict[str, Any] = {
            n: get_metric_fn(m) if isinstance(m, str) else m for n, m in value.items()
        }
    elif isinstance(value, Iterable) and not isinstance(value, str):
        found = {n: get_metric_fn(n) for n in map(str, value)}
    else:
        reject(DTypeError, "Model", f"metrics cannot be a {type(value).__name__}",
                       fix='use {"accuracy"} or {"name": nn.Accuracy()}')  # fmt: skip
    for name, metric in found.items():
        if not all(hasattr(metric, a) for a in ("clear", "update", "eval")):
            reject(DTypeError, "Model", f"metric {name!r} is a {type(metric).__name__}, no Metric")
    return found


__all__ = [
    "ROC", "ConfusionMatrix", "Perplexity", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "auc", "get_metric_fn", "get_metrics",
    "names", "rearrange_inputs",
]  # fmt: skip
