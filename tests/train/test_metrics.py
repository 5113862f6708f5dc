"""Metrics against direct computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, train
from tvmgraph.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
SCORES = RNG.random((40, 3)).astype(np.float32)
LABELS = RNG.integers(0, 3, 40)
FOUND = SCORES.argmax(1)


def updated(metric: nn.Metric) -> nn.Metric:
    for i in (0, 15):
        metric.update(
            Tensor(SCORES[i : i + 15 + 10 * (i > 0)]), Tensor(LABELS[i : i + 15 + 10 * (i > 0)])
        )
    return metric


def test_classification() -> None:
    assert updated(nn.Accuracy()).eval() == pytest.approx((FOUND == LABELS).mean())
    tp = np.array([((c == FOUND) & (c == LABELS)).sum() for c in range(3)])
    precision = tp / np.array([(c == FOUND).sum() for c in range(3)])
    recall = tp / np.array([(c == LABELS).sum() for c in range(3)])
    np.testing.assert_allclose(updated(nn.Precision()).eval(), precision)
    np.testing.assert_allclose(updated(nn.Recall()).eval(), recall)
    assert updated(nn.Recall()).eval(average=True) == pytest.approx(recall.mean())
    f1 = 2 * precision * recall / (precision + recall)
    np.testing.assert_allclose(updated(nn.F1()).eval(), f1)
    f2 = 5 * precision * recall / (4 * precision + recall)
    np.testing.assert_allclose(updated(nn.Fbeta(2.0)).eval(), f2)
    top2 = np.mean([label in row.argsort()[-2:] for row, label in zip(SCORES, LABELS)])
    assert updated(nn.TopKCategoricalAccuracy(2)).eval() == pytest.approx(top2)
    narrow = nn.Top1CategoricalAccuracy()  # labels need no column for classes that nobody has
    narrow.update(Tensor([[0.1, 0.7, 0.2], [0.3, 0.2, 0.5]]), Tensor([[0, 1], [1, 0]]))
    assert narrow.eval() == 0.5
    assert updated(nn.Top1CategoricalAccuracy()).eval() == updated(nn.Accuracy()).eval()
    matrix = updated(nn.ConfusionMatrix(3)).eval()
    assert matrix[1, 2] == ((LABELS == 1) & (FOUND == 2)).sum() and matrix.sum() == 40
    np.testing.assert_allclose(updated(nn.ConfusionMatrix(3, "target")).eval().sum(1), 1)


def test_one_hot_and_multilabel() -> None:
    one_hot = nn.Accuracy()
    one_hot.update(Tensor(SCORES), Tensor(np.eye(3, dtype=np.float32)[LABELS]))
    assert one_hot.eval() == pytest.approx((FOUND == LABELS).mean())
    a, b = RNG.integers(0, 2, (9, 4)), RNG.integers(0, 2, (9, 4))
    multi = nn.Accuracy("multilabel")
    multi.update(Tensor(a), Tensor(b))
    assert multi.eval() == pytest.approx((a == b).all(1).mean())


def test_regression_and_loss() -> None:
    a, b = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 2))
    for metric, expected in (
        (nn.MAE(), np.abs(a - b).sum() / 6), (nn.MSE(), ((a - b) ** 2).sum() / 6)
    ):  # fmt: skip
        metric.update(Tensor(a[:4]), Tensor(b[:4]))
        metric.update(Tensor(a[4:]), Tensor(b[4:]))
        assert metric.eval() == pytest.approx(expected)
        metric.clear()
        with pytest.raises(ArgumentError, match="no batch"):
            metric.eval()
    with pytest.raises(ShapeError):
        nn.MSE().update(Tensor(a), Tensor(b[:3]))


def test_roc_and_perplexity() -> None:
    scores = np.array([0.9, 0.8, 0.8, 0.3, 0.1])
    labels = np.array([1, 1, 0, 1, 0])
    roc = nn.ROC()
    roc.update(Tensor(scores), Tensor(labels))
    fpr, tpr, _ = roc.eval()
    pairs = [(s > t) + 0.5 * (s == t) for s in scores[labels == 1] for t in scores[labels == 0]]
    assert nn.auc(fpr, tpr) == pytest.approx(np.mean(pairs))  # the probability of the right order
    p = np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
    perplexity = nn.Perplexity(ignore_label=0)
    perplexity.update(Tensor(p), Tensor([1, 1, 0]))
    assert perplexity.eval() == pytest.approx(np.exp(-np.log([0.8, 0.5]).mean()))
    with pytest.raises(ArgumentError, match="no metric"):
        nn.get_metric_fn("beauty")


def test_bleu_dice_and_cosine_similarity() -> None:
    bleu = nn.BleuScore()
    desk = list("ihapomd")
    others = [list("ihapimd"), list("tiapotd")]
    bleu.update([desk], [others])
    assert float(bleu.eval()) == pytest.approx(0.5946035575, rel=1e-6)
    short = nn.BleuScore(1)
    short.update([["a"]], [[["a", "b"]]])
    assert short.eval() == pytest.approx(np.exp(-1))  # shorter than its reference
    dice = nn.Dice()
    for _ in range(2):
        dice.update(Tensor([[0.5, 1.0], [0.0, 1.0]]), Tensor([[1.0, 1.0], [0.0, 0.0]]))
    assert dice.eval() == pytest.approx(2 * 2 * 1.5 / (2.25 + 2) / 4, rel=1e-5)
    rows = Tensor([[1.0, 0.0], [3.0, 4.0]])
    for kind, reduction, expected in (("cosine", "sum", [0.6, 0.6]), ("dot", "mean", [1.5, 1.5])):
        likeness = nn.CosineSimilarity(kind, reduction)
        likeness.update(rows)
        np.testing.assert_allclose(likeness.eval(), expected, rtol=1e-6)
    assert nn.get_metric_fn("auc", [0.0, 1.0], [0.0, 1.0]) == 0.5 and "auc" in train.names()
    assert "dice" in train.names() and type(nn.get_metric_fn("bleu_score")) is nn.BleuScore


def test_several_labels_are_counted_per_sample() -> None:
    found, wanted = Tensor([[1, 1, 0], [0, 1, 0]]), Tensor([[1, 0, 1], [0, 1, 0]])
    for metric in (nn.Precision("multilabel"), nn.Recall("multilabel")):
        metric.update(found, wanted)
        metric.update(found, wanted)
        np.testing.assert_allclose(metric.eval(), [0.5, 1, 0.5, 1])


@pytest.mark.parametrize(
    "name", ["accuracy", "mse", "loss", "dice", "bleu_score", "cosine_similarity"]
)
def test_nothing_to_evaluate(name: str) -> None:
    with pytest.raises(RuntimeError, match="call update first"):
        nn.get_metric_fn(name).eval()


def test_indexes_pick_what_update_uses() -> None:
    metric = nn.Accuracy().set_indexes([2, 0])
    metric.update(Tensor([1, 0]), "ignored", Tensor([[0.1, 0.9], [0.2, 0.8]]))
    assert metric.eval() == 0.5


def test_indexes_pick_what_every_metric_uses() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([2.0, 4.0])
    assert nn.MAE().set_indexes([1, 0])(x, y) == nn.MAE()(y, x) == 1.5
    assert nn.Recall("classification").set_indexes([1, 0]).indexes == [1, 0]
    assert nn.Loss().set_indexes([2])(1.0, 2.0, Tensor(5.0)) == 5.0
    wanted = nn.BleuScore()([["a"] * 5], [[["a"] * 4]])
    assert nn.BleuScore().set_indexes([1, 0])([[["a"] * 4]], [["a"] * 5]) == wanted
    rows = Tensor([[1.0, 2.0], [2.0, 1.0]])
    found = nn.CosineSimilarity().set_indexes([1])(None, rows)
    assert (np.asarray(found) == nn.CosineSimilarity()(rows)).all()


def test_scale_managers_follow_overflows() -> None:
    manager = ms.amp.DynamicLossScaleManager(16.0, 2, 3)
    seen = []
    for overflow in (True, False, False, False, False):
        manager.update_loss_scale(overflow)
        seen.append(manager.get_loss_scale())
    assert seen == [8, 8, 8, 16, 16]


def test_what_metrics_refuse() -> None:
    for call, kind in (
        (lambda: train.Accuracy().set_indexes([0.5]), ValueError),  # pyright: ignore
        (lambda: train.Loss().update(np.ones((2, 2))), ValueError),
        (lambda: train.ConfusionMatrix(2, threshold=1), TypeError),
        (lambda: train.Perplexity().update(np.ones((3, 3)), np.ones(2)), RuntimeError),
    ):
        with pytest.raises(kind):
            call()


def test_a_metric_of_one_s_own_sets_what_it_clears_first() -> None:
    class Totals(train.Metric):
        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count
            self.clear()

        def clear(self) -> None:
            self.totals = np.zeros(self.count)

        def update(self, *inputs: Any) -> None:
            self.totals += self._convert_data(inputs[0]).sum()

        def eval(self) -> Any:
            return self.totals.tolist()

    metric = Totals(2)
    for batch in (Tensor([1.0, 2.0]), [3.0], np.ones(4)):
        metric.update(batch)
    assert metric.eval() == [10.0, 10.0] and metric.indexes is None
    with pytest.raises(TypeError, match="inputs are tensors, lists or arrays, not a int"):
        metric.update(3)


# 1 true positive, 1 false negative, 2 true negatives of channel 0; of channel 1: 1, 1, 1, 1 false
PREDICTED = np.array([[[1, 0, 0, 0], [1, 1, 0, 0]]])
TRUTH = np.array([[[1, 1, 0, 0], [1, 0, 1, 0]]])


@pytest.mark.parametrize(
    ("name", "all_channels", "second", "averaged"),
    [
        ("sensitivity", 2 / 4, 1 / 2, (1 / 2 + 1 / 2) / 2),
        ("specificity", 3 / 4, 1 / 2, (1 + 1 / 2) / 2),
        ("ppv", 2 / 3, 1 / 2, (1 + 1 / 2) / 2),
        ("npv", 3 / 5, 1 / 2, (2 / 3 + 1 / 2) / 2),
        ("fnr", 2 / 4, 1 / 2, 1 / 2),
        ("fall_out", 1 / 4, 1 / 2, 1 / 4),
        ("fdr", 1 / 3, 1 / 2, 1 / 4),
        ("false omission rate", 2 / 5, 1 / 2, (1 / 3 + 1 / 2) / 2),
        ("pt", (np.sqrt(1 / 2 * 1 / 4) - 1 / 4) / (1 / 4), np.nan, 0.0),
        ("threat score", 2 / 5, 1 / 3, (1 / 2 + 1 / 3) / 2),
        ("acc", 5 / 8, 1 / 2, (3 / 4 + 1 / 2) / 2),
        ("ba", 5 / 8, 1 / 2, (3 / 4 + 1 / 2) / 2),
        ("f1 score", 4 / 7, 1 / 2, (2 / 3 + 1 / 2) / 2),
        ("mcc", (2 * 3 - 1 * 2) / np.sqrt(3 * 4 * 4 * 5), 0.0, 1 / np.sqrt(3) / 2),
        ("fm", np.sqrt(2 / 3 * 1 / 2), 1 / 2, (np.sqrt(1 / 2) + 1 / 2) / 2),
        ("bm", 1 / 4, 0.0, (1 / 2 + 0) / 2),
        ("mk", 2 / 3 + 3 / 5 - 1, 0.0, (1 + 2 / 3 - 1 + 0) / 2),
    ],
)
def test_rates(name: str, all_channels: float, second: float, averaged: float) -> None:
    of_all = nn.ConfusionMatrixMetric(metric_name=name)
    of_second = nn.ConfusionMatrixMetric(False, name)
    of_each = nn.get_metric_fn("confusion_matrix_metric", True, name, True)
    for metric in (of_all, of_second, of_each):
        metric.update(Tensor(PREDICTED), Tensor(TRUTH))
    np.testing.assert_allclose(of_all.eval(), [all_channels], rtol=1e-12)
    np.testing.assert_allclose(of_second.eval(), [second], rtol=1e-12)
    np.testing.assert_allclose(of_each.eval(), averaged, rtol=1e-12)


def test_rates_of_wrong_arguments() -> None:
    with pytest.raises(NotImplementedError, match="metric_name cannot be 'recal'"):
        nn.ConfusionMatrixMetric(metric_name="recal")
    with pytest.raises(ArgumentError, match="decrease cannot be 'all'"):
        nn.ConfusionMatrixMetric(decrease="all")
    with pytest.raises(ArgumentError, match="no decrease='sum'"):
        nn.ConfusionMatrixMetric(calculation_method=True, decrease="sum")
    metric = nn.ConfusionMatrixMetric()
    with pytest.raises(ArgumentError, match="0 or 1"):
        metric.update(Tensor([[2]]), Tensor([[1]]))
    with pytest.raises(ShapeError, match="not one"):
        metric.update(Tensor([[1, 0]]), Tensor([[1]]))
