"""Metrics of classification and regression; each collects batches and evaluates them together."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from tvmgraph.core.shown import Shown
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, TypeOrValueError, either, reject

T = TypeVar("T")


class MetricError(ArgumentError, RuntimeError):
    """A metric is evaluated before it got a batch."""


def as_array(value: object) -> np.ndarray:
    """Returns a Tensor, list or number as an array.

    Args:
        value: A Tensor, list or number.
    """
    return value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)


class Metric(Shown):
    """Base class: ``clear``, ``update`` with a batch, ``eval`` for the result so far.

    Example:
        >>> class Count(nn.Metric):
        ...     def clear(self):
        ...         self.n = 0
        ...     def update(self, *inputs):
        ...         self.n += len(inputs[0])
        ...     def eval(self):
        ...         return self.n
    """

    _indexes: list[int] | None = None

    def __init__(self) -> None:
        """Does nothing: a class of your own is cleared when it has set what ``clear`` reads."""

    def _convert_data(self, data: object) -> np.ndarray:
        """Returns a Tensor or list as an array.

        Raises:
            DTypeError: if it is something else.
        """
        if not isinstance(data, (Tensor, list, np.ndarray)):
            reject(DTypeError, type(self).__name__,
                   f"inputs are tensors, lists or arrays, not a {type(data).__name__}")  # fmt: skip
        return as_array(data)

    @property
    def indexes(self) -> list[int] | None:
        """Which inputs of ``update`` count, in which order; all of them for None."""
        return self._indexes

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Chooses which inputs of ``update`` count, in which order.

        A class of your own does so if its ``update`` is decorated by ``rearrange_inputs``.

        Args:
            indexes: Numbers of the inputs.

        Raises:
            DTypeError: if they are no list of ints.
        """
        if not isinstance(indexes, list) or not all(isinstance(i, int) for i in indexes):
            reject(TypeOrValueError, type(self).__name__,
                   f"indexes must be a list of ints: {indexes!r}")  # fmt: skip
        self._indexes = indexes
        return self

    def __call__(self, *inputs: object) -> object:
        """Returns the metric of one batch alone."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    def clear(self) -> None:
        """Forgets all batches."""
        raise NotImplementedError

    def update(self, *inputs: object) -> None:
        """Adds a batch.

        Args:
            *inputs: What the metric compares: predictions and labels, as a rule.
        """
        raise NotImplementedError

    def eval(self) -> object:
        """Returns the metric of all batches."""
        raise NotImplementedError

    def _need(self, count: int | float) -> None:
        if not count:
            reject(MetricError, type(self).__name__, "there is no batch to evaluate",
                   fix="call update first")  # fmt: skip

    def _chosen(self, inputs: tuple[T, ...]) -> tuple[T, ...]:
        """Returns the inputs that ``set_indexes`` names, in its order."""
        order = range(len(inputs)) if self._indexes is None else self._indexes
        return tuple(inputs[i] for i in order)

    def _pair(self, inputs: tuple[object, ...]) -> tuple[np.ndarray, np.ndarray]:
        inputs = self._chosen(inputs)
        if len(inputs) != 2:
            reject(ArgumentError, type(self).__name__,
                   f"update needs predictions and labels, not {len(inputs)} inputs")  # fmt: skip
        return self._convert_data(inputs[0]), self._convert_data(inputs[1])


class ClearedMetric(Metric):
    """Base of the metrics here, which are ready when they are made."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()


class MeanMetric(ClearedMetric):
    """Base of the metrics that are a sum over a count."""

    def clear(self) -> None:
        """Forgets all batches."""
        self._sum, self._count = 0.0, 0

    def _add(self, total: float, count: int) -> None:
        self._sum += float(total)
        self._count += int(count)

    def eval(self) -> float:
        """Returns the mean."""
        self._need(self._count)
        return self._sum / self._count


class Loss(MeanMetric):
    """Mean of the losses of all batches.

    Example:
        >>> m = nn.Loss()
        >>> m.update(Tensor(1.0)), m.update(Tensor(2.0))
        (None, None)
        >>> m.eval()
        1.5
    """

    def update(self, *inputs: object) -> None:
        """Adds a loss, or the mean of a vector of them."""
        inputs = self._chosen(inputs)
        if len(inputs) != 1:
            reject(ArgumentError, "Loss", f"update needs one loss, not {len(inputs)} inputs")
        loss = as_array(inputs[0])
        if loss.ndim > 1 or not loss.size:
            reject(ShapeError, "Loss", f"a loss has at most one axis, not the shape {loss.shape}")
        self._add(float(np.mean(loss)), 1)


class _Error(MeanMetric):
    """A sum of errors per sample."""

    def _errors(self, difference: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def update(self, *inputs: object) -> None:
        """Adds a batch of predictions and labels of one shape."""
        y, label = self._pair(inputs)
        if y.size != label.size:
            reject(ShapeError, type(self).__name__,
                   f"predictions {y.shape} and labels {label.shape} differ")  # fmt: skip
        difference = y.astype(np.float64) - label.reshape(y.shape)
        self._add(self._errors(difference).sum(), label.shape[0] if label.ndim else 1)


class MAE(_Error):
    r"""Mean absolute error: :math:`\frac{1}{n} \sum |y - label|` over n samples.

    Example:
        >>> m = nn.MAE()
        >>> m.update(Tensor([1.0, 2.0]), Tensor([2.0, 4.0]))
        >>> m.eval()
        1.5
    """

    def _errors(self, difference: np.ndarray) -> np.ndarray:
        return np.abs(difference)


class MSE(_Error):
    r"""Mean squared error: :math:`\frac{1}{n} \sum (y - label)^2` over n samples.

    Example:
        >>> m = nn.MSE()
        >>> m.update(Tensor([1.0, 2.0]), Tensor([2.0, 4.0]))
        >>> m.eval()
        2.5
    """

    def _errors(self, difference: np.ndarray) -> np.ndarray:
        return difference**2


def class_numbers(op: str, y: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Returns predicted and true class numbers and the number of classes.

    Args:
        op: Name of the metric, for errors.
        y: Scores (..., classes).
        label: Class numbers, or one-hot rows, one for each of ``y``.

    Raises:
        ShapeError: if the shapes do not fit.
    """
    if y.ndim == label.ndim > 1:
        label = label.argmax(-1)
    if y.shape[:-1] != label.shape:
        reject(ShapeError, op, f"scores {y.shape} and labels {label.shape} do not fit",
               fix="give scores (N, C) with labels (N,) or one-hot labels (N, C)")  # fmt: skip
    return y.argmax(-1).ravel(), label.astype(np.int64).ravel(), y.shape[-1]


def binary(op: str, y: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Checks multilabel predictions: zeros and ones of one shape.

    Args:
        op: Name of the metric.
        y: Predictions.
        label: Labels.

    Returns:
        Both as bools.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if there is another value.
    """
    if y.shape != label.shape:
        reject(ShapeError, op, f"predictions {y.shape} and labels {label.shape} differ")
    if not np.isin(y, (0, 1)).all() or not np.isin(label, (0, 1)).all():
        reject(ArgumentError, op, "multilabel predictions and labels must be 0 or 1")
    return y.astype(bool), label.astype(bool)


class _Classified(ClearedMetric):
    """Base of the metrics of classes."""

    def __init__(self, eval_type: str = "classification") -> None:
        if eval_type not in ("classification", "multilabel"):
            reject(either(ArgumentError, TypeError), type(self).__name__,
                   f"eval_type cannot be {eval_type!r}",
                   fix='use "classification" or "multilabel"')  # fmt: skip
        self._type = eval_type
        super().__init__()


class Accuracy(MeanMetric, _Classified):
    """Share of samples that are classified correctly.

    Args:
        eval_type: ``"classification"``, or ``"multilabel"`` where a sample is right when all its
            labels are.

    Example:
        >>> m = nn.Accuracy()
        >>> m.update(Tensor([[0.2, 0.8], [0.7, 0.3]]), Tensor([1, 1]))
        >>> m.eval()
        0.5
    """

    def update(self, *inputs: object) -> None:
        """Adds a batch of scores (N, C) and labels."""
        y, label = self._pair(inputs)
        if self._type == "multilabel":
            found, wanted = binary("Accuracy", y, label)
            right = (found == wanted).reshape(len(y), -1).all(1)
        else:
            found, wanted, _ = class_numbers("Accuracy", y, label)
            right = found == wanted
        self._add(right.sum(), right.size)


class _Counts(_Classified):
    """True positives, predicted positives and actual positives: of every class, or of every
    sample if it has several labels.
    """

    def clear(self) -> None:
        """Forgets all batches."""
        self._counts: np.ndarray | None = None

    def update(self, *inputs: object) -> None:
        """Adds a batch of scores (N, C) and labels."""
        y, label = self._pair(inputs)
        if self._type == "multilabel":
            found, wanted = (m.T for m in binary(type(self).__name__, y, label))
        else:
            a, b, classes = class_numbers(type(self).__name__, y, label)
            if b.size and b.max() >= classes:
                reject(ArgumentError, type(self).__name__,
                       f"label {b.max()} is outside the {classes} classes")  # fmt: skip
            found, wanted = np.eye(classes, dtype=bool)[a], np.eye(classes, dtype=bool)[b]
        new = np.stack([(found & wanted).sum(0), found.sum(0), wanted.sum(0)]).astype(np.float64)
        if self._counts is None:
            self._counts = new
        elif self._type == "multilabel":
            self._counts = np.concatenate([self._counts, new], axis=1)
        else:
            self._counts = self._counts + new

    def _found(self) -> np.ndarray:
        self._need(0 if self._counts is None else 1)
        assert self._counts is not None
        return self._counts


class Precision(_Counts):
    """Share of the predictions of a class that are right.

    Args:
        eval_type: ``"classification"`` or ``"multilabel"``.

    Example:
        >>> m = nn.Precision()
        >>> m.update(Tensor([[0.2, 0.8], [0.7, 0.3]]), Tensor([1, 1]))
        >>> m.eval()
        array([0., 1.])
    """

    def eval(self, average: bool = False) -> float | np.ndarray:
        """Returns one number per class (``"multilabel"``: per sample), or their mean.

        Args:
            average: Whether to take the mean.
        """
        true, predicted, _ = self._found()
        result = true / np.maximum(predicted, 1e-12)
        return float(result.mean()) if average else result


class Recall(_Counts):
    """Share of the samples of a class that are found.

    Args:
        eval_type: ``"classification"`` or ``"multilabel"``.

    Example:
        >>> m = nn.Recall()
        >>> m.update(Tensor([[0.2, 0.8], [0.7, 0.3]]), Tensor([1, 1]))
        >>> m.eval()
        array([0. , 0.5])
    """

    def eval(self, average: bool = False) -> float | np.ndarray:
        """Returns one number per class, or their mean.

        Args:
            average: Whether to take the mean.
        """
        true, _, actual = self._found()
        result = true / np.maximum(actual, 1e-12)
        return float(result.mean()) if average else result


class Fbeta(_Counts):
    r"""Weighted harmonic mean of precision and recall:
    :math:`\frac{(1 + \beta^2) TP}{\beta^2 P + \hat P}`.

    Args:
        beta: :math:`\beta`, positive.

    Example:
        >>> m = nn.Fbeta(2.0)
        >>> m.update(Tensor([[0.2, 0.8], [0.7, 0.3]]), Tensor([1, 1]))
        >>> round(float(m.eval()[1]), 4)
        0.5556
    """

    def __init__(self, beta: float) -> None:
        if not beta > 0:
            reject(ArgumentError, "Fbeta", f"beta must be positive, not {beta}")
        self.beta = float(beta)
        super().__init__()

    def eval(self, average: bool = False) -> float | np.ndarray:
        """Returns one number per class, or their mean.

        Args:
            average: Whether to take the mean.
        """
        true, predicted, actual = self._found()
        square = self.beta**2
        result = (1 + square) * true / np.maximum(square * actual + predicted, 1e-12)
        return float(result.mean()) if average else result


class F1(Fbeta):
    """Harmonic mean of precision and recall.

    Example:
        >>> m = nn.F1()
        >>> m.update(Tensor([[0.2, 0.8], [0.7, 0.3]]), Tensor([1, 1]))
        >>> round(float(m.eval()[1]), 4)
        0.6667
    """

    def __init__(self) -> None:
        super().__init__(1.0)


__all__ = ["F1", "MAE", "MSE", "Accuracy", "Fbeta", "Loss", "Metric", "Precision", "Recall"]
