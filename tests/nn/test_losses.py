"""Losses and wrapping cells against NumPy formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.nn.helpers import close, rand, t
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

A, B = rand(4, 3, low=-3, high=3), rand(4, 3, seed=1, low=-3, high=3)
P, Q = rand(4, 3, low=0.05, high=0.95), rand(4, 3, seed=1, low=0.05, high=0.95)
SIGNS = np.where(B > 0, 1, -1).astype(np.float32)
D = abs(A - B)
LABELS = np.array([0, 2, 1, 2], np.int32)
WEIGHT = np.array([1.0, 2.0, 3.0], np.float32)


def log_softmax(x: np.ndarray, axis: int = 1) -> np.ndarray:
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))


LOGP = log_softmax(A)
PICKED = -LOGP[np.arange(4), LABELS]
ONE_HOT = np.eye(3, dtype=np.float32)[LABELS]

ELEMENTWISE: list[tuple[Callable[[str], nn.Cell], tuple[np.ndarray, ...], np.ndarray]] = [
    (nn.L1Loss, (A, B), D),
    (nn.MAELoss, (A, B), D),
    (nn.MSELoss, (A, B), D * D),
    (lambda r: nn.SmoothL1Loss(0.5, r), (A, B), np.where(D < 0.5, D * D, D - 0.25)),
    (lambda r: nn.HuberLoss(r, 2.0), (A, B), np.where(D <= 2, D * D / 2, 2 * (D - 1))),
    (lambda r: nn.BCELoss(reduction=r), (P, Q), -(Q * np.log(P) + (1 - Q) * np.log(1 - P))),
    (lambda r: nn.BCELoss(Tensor(WEIGHT), r), (P, Q),
     -WEIGHT * (Q * np.log(P) + (1 - Q) * np.log(1 - P))),
    (nn.BCEWithLogitsLoss, (A, Q), np.log1p(np.exp(A)) - Q * A),
    (lambda r: nn.BCEWithLogitsLoss(r, Tensor(WEIGHT), Tensor(2 * WEIGHT)), (A, Q),
     WEIGHT * (2 * WEIGHT * Q * np.log1p(np.exp(-A)) + (1 - Q) * np.log1p(np.exp(A)))),
    (nn.KLDivLoss, (A, Q), Q * (np.log(Q) - A)),
    (lambda r: nn.GaussianNLLLoss(reduction=r), (A, B, P), 0.5 * (np.log(P) + D * D / P)),
    (lambda r: nn.GaussianNLLLoss(full=True, eps=0.5, reduction=r), (A, B, P),
     0.5 * (np.log(P.clip(0.5)) + D * D / P.clip(0.5) + math.log(2 * math.pi))),
    (lambda r: nn.PoissonNLLLoss(reduction=r), (A, Q), np.exp(A) - Q * A),
    (lambda r: nn.PoissonNLLLoss(False, reduction=r), (P, Q), P - Q * np.log(P + 1e-8)),
    (lambda r: nn.PoissonNLLLoss(full=True, reduction=r), (A, 5 * Q),
     np.exp(A) - 5 * Q * A + np.where(
         5 * Q > 1, 5 * Q * np.log(5 * Q) - 5 * Q + 0.5 * np.log(2 * math.pi * 5 * Q), 0)),
    (lambda r: nn.MarginRankingLoss(0.5, r), (A, B, SIGNS),
     np.maximum(0, -SIGNS * (A - B) + 0.5)),
    (lambda r: nn.HingeEmbeddingLoss(1.5, r), (A, SIGNS),
     np.where(SIGNS == 1, A, np.maximum(0, 1.5 - A))),
    (nn.SoftMarginLoss, (A, SIGNS), np.log1p(np.exp(-SIGNS * A))),
    (lambda r: nn.CosineEmbeddingLoss(0.1, r), (A, B, SIGNS[:, 0]),
     np.where(SIGNS[:, 0] == 1, 1 - cosine(A, B), np.maximum(0, cosine(A, B) - 0.1))),
    (lambda r: nn.SoftmaxCrossEntropyWithLogits(True, r), (A, LABELS), PICKED),
    (lambda r: nn.SoftmaxCrossEntropyWithLogits(False, r), (A, Q), -(LOGP * Q).sum(1)),
    (lambda r: nn.CrossEntropyLoss(reduction=r), (A, LABELS), PICKED),
    (lambda r: nn.CrossEntropyLoss(reduction=r, label_smoothing=0.3), (A, LABELS),
     0.7 * PICKED - 0.3 * LOGP.mean(1)),
    (lambda r: nn.NLLLoss(reduction=r), (LOGP, LABELS), PICKED),
    (lambda r: nn.MultiLabelSoftMarginLoss(reduction=r), (A, ONE_HOT),
     (np.log1p(np.exp(A)) - ONE_HOT * A).mean(1)),
    (lambda r: nn.FocalLoss(gamma=3.0, reduction=r), (A, LABELS[:, None]),
     (1 - np.exp(-PICKED)) ** 3 * PICKED),
    (lambda r: nn.FocalLoss(Tensor(WEIGHT), 2.0, r), (A, ONE_HOT),
     -WEIGHT * (1 - np.exp(LOGP)) ** 2 * LOGP * ONE_HOT),
    (lambda r: nn.MultiMarginLoss(2, 0.5, r), (A, LABELS.astype(np.int64)),
     (np.maximum(0, 0.5 - A[np.arange(4), LABELS][:, None] + A) ** 2 * (1 - ONE_HOT)).mean(1)),
    (lambda r: nn.TripletMarginLoss(margin=0.7, eps=0.0, reduction=r), (A, B, P),
     np.maximum(0, np.sqrt(((A - B) ** 2).sum(1)) - np.sqrt(((A - P) ** 2).sum(1)) + 0.7)),
]  # fmt: skip


def tensors(arrays: tuple[np.ndarray, ...]) -> list[Tensor]:
    return [Tensor(a) for a in arrays]


@pytest.mark.parametrize("case", range(len(ELEMENTWISE)))
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_formula(case: int, reduction: str) -> None:
    build, arrays, expected = ELEMENTWISE[case]
    if reduction != "none":
        expected = getattr(expected, reduction)()
    close(build(reduction)(*tensors(arrays)), expected, rtol=1e-4, atol=1e-5)


def test_default_reductions() -> None:
    close(nn.MSELoss()(Tensor(A), Tensor(B)), (D * D).mean())
    assert nn.SmoothL1Loss()(Tensor(A), Tensor(B)).shape == A.shape
    assert nn.SoftmaxCrossEntropyWithLogits(True)(Tensor(A), Tensor(LABELS)).shape == (4,)
    close(nn.KLDivLoss("batchmean")(Tensor(A), Tensor(Q)), (Q * (np.log(Q) - A)).sum() / 4, 1e-4)
    close(nn.RMSELoss()(Tensor(A), Tensor(B)), math.sqrt((D * D).mean()))


@pytest.mark.parametrize("loss", [nn.NLLLoss, nn.CrossEntropyLoss])
def test_class_weights_and_ignored_labels(loss: Any) -> None:
    x = Tensor(LOGP)  # log-probabilities are their own logits
    w = WEIGHT[LABELS]
    close(loss(Tensor(WEIGHT))(x, Tensor(LABELS)), (PICKED * w).sum() / w.sum(), 1e-4)
    keep = LABELS != 2
    close(loss(ignore_index=2)(x, Tensor(LABELS)), PICKED[keep].mean(), 1e-4)


def test_cross_entropy_of_images_and_probabilities() -> None:
    x = rand(2, 3, 4, 5)
    labels = np.random.default_rng(0).integers(0, 3, (2, 4, 5)).astype(np.int32)
    logp = log_softmax(x)
    picked = -np.take_along_axis(logp, labels[:, None], 1)[:, 0]
    close(nn.CrossEntropyLoss()(Tensor(x), Tensor(labels)), picked.mean(), 1e-4)
    close(nn.CrossEntropyLoss()(Tensor(A), Tensor(Q)), -(LOGP * Q).sum(1).mean(), 1e-4)


def test_one_sample_without_a_batch_axis() -> None:
    label = Tensor(np.int32(2))
    for reduction in ("none", "mean", "sum"):
        close(ops.nll_loss(Tensor(LOGP[0]), label, reduction=reduction), -LOGP[0, 2])
        close(nn.CrossEntropyLoss(reduction=reduction)(Tensor(A[0]), label), -LOGP[0, 2], 1e-4)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.uint16])
def test_labels_of_any_integer_dtype(dtype: Any) -> None:
    close(nn.CrossEntropyLoss()(Tensor(A), Tensor(LABELS.astype(dtype))), PICKED.mean(), 1e-4)


def test_focal_loss_of_images_averages_over_places() -> None:
    x, labels = rand(2, 3, 2, 2), np.random.default_rng(0).integers(0, 3, (2, 1, 2, 2))
    picked = -np.take_along_axis(log_softmax(x), labels, 1).reshape(2, 4)
    expected = ((1 - np.exp(-picked)) ** 2 * picked).mean(1)
    found = nn.FocalLoss(reduction="none")(Tensor(x), Tensor(labels.astype(np.int32)))
    close(found, expected, 1e-4)


def test_labels_of_one_sample_or_one_place_serve_the_focal_loss_of_all() -> None:
    x, hot = rand(2, 3, 2, 2), np.random.default_rng(0).integers(0, 2, (2, 3, 2, 2))
    logp = log_softmax(x)
    for given in (hot[:1], hot[:, :, :1, :1], hot[:1, :, :1, :1]):
        expected = (-((1 - np.exp(logp)) ** 2) * logp * given).mean((2, 3))
        found = nn.FocalLoss(reduction="none")(Tensor(x), Tensor(given.astype(np.int32)))
        close(found, expected, 1e-4)
    picked = -logp[:1, 1, 0, 0]  # class indices choose: one choice is one value
    found = nn.FocalLoss(reduction="none")(Tensor(x), Tensor(np.ones((1, 1, 1, 1), np.int32)))
    close(found, (1 - np.exp(-picked)) ** 2 * picked, 1e-4)


def test_hinge_embedding_looks_at_the_sign_of_the_target() -> None:
    found = ops.hinge_embedding_loss(Tensor([0.2, 0.3, 0.4]), Tensor([0.5, -3.0, 0.0]), 1.0, "none")
    close(found, np.float32([0.2, 0.7, 0.0]))


def dice(a: np.ndarray, b: np.ndarray) -> float:
    return 1 - 2 * (a * b).sum() / ((a * a).sum() + (b * b).sum() + 1e-5)


def test_dice_losses() -> None:
    close(nn.DiceLoss()(Tensor(P), Tensor(ONE_HOT)), dice(P, ONE_HOT), 1e-4)
    probabilities = np.exp(LOGP)
    each = [dice(probabilities[:, i], ONE_HOT[:, i]) for i in range(3)]
    close(nn.MultiClassDiceLoss()(Tensor(A), Tensor(ONE_HOT)), np.mean(each), 1e-4)
    ignoring = nn.MultiClassDiceLoss(ignore_indiex=1, activation=None)
    each = [dice(P[:, i], ONE_HOT[:, i]) for i in (0, 2)]
    close(ignoring(Tensor(P), Tensor(ONE_HOT)), np.sum(each) / 3, 1e-4)


def test_triplet_loss_swaps_and_takes_any_distance() -> None:
    a, p, n = rand(4, 3), rand(4, 3, seed=1), rand(4, 3, seed=2)

    def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return abs(x - y).sum(1)

    far = np.minimum(distance(a, n), distance(p, n))
    expected = np.maximum(0, distance(a, p) - far + 1).mean()
    loss = nn.TripletMarginLoss(1, True, 0.0)
    close(loss(Tensor(a), Tensor(p), Tensor(n)), expected, 1e-4)
    other = nn.TripletMarginWithDistanceLoss(lambda x, y: (x - y).abs().sum(1), True)
    close(other(Tensor(a), Tensor(p), Tensor(n)), expected, 1e-4)


def test_ctc_loss_sums_over_alignments() -> None:
    logp = log_softmax(rand(4, 1, 3), 2)
    p = np.exp(logp[:, 0])
    total = 0.0  # all ways to write "1 2" in four steps, blanks (0) and repeats removed
    for path in np.ndindex(3, 3, 3, 3):
        merged = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
        if [c for c in merged if c] == [1, 2]:
            total += math.prod(p[i, c] for i, c in enumerate(path))
    args = (Tensor(np.array([[1, 2]], np.int32)), Tensor(np.array([4], np.int32)),
            Tensor(np.array([2], np.int32)))  # fmt: skip
    close(nn.CTCLoss(reduction="sum")(Tensor(logp), *args), -math.log(total), 1e-4)
    close(nn.CTCLoss()(Tensor(logp), *args), -math.log(total) / 2, 1e-4)


def test_extremes_stay_finite() -> None:
    big = Tensor([1000.0, -1000.0])
    assert np.isfinite(nn.SoftMarginLoss()(big, Tensor([1.0, -1.0])).asnumpy())
    assert np.isfinite(nn.BCEWithLogitsLoss()(big, Tensor([1.0, 0.0])).asnumpy())
    assert np.isfinite(nn.BCELoss()(Tensor([0.0, 1.0]), Tensor([1.0, 0.0])).asnumpy())


def test_own_loss() -> None:
    class Weighted(nn.LossBase):
        def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
            return self.get_loss((logits - labels).abs(), 2.0)

    close(Weighted("sum")(Tensor(A), Tensor(B)), 2 * D.sum(), 1e-4)
    close(Weighted()(Tensor(A), Tensor(B)), 2 * D.mean(), 1e-4)
    assert Weighted()(Tensor(A, ms.float16), Tensor(B, ms.float16)).dtype is ms.float16
    assert nn.LossBase().get_axis(Tensor(A)) == (0, 1)


def test_wrapping_cells() -> None:
    backbone = nn.Dense(2, 1, "ones", "zeros")
    net = nn.WithLossCell(backbone, nn.MSELoss())
    x, y = Tensor([[1.0, 2.0]]), Tensor([[1.0]])
    close(net(x, y), 4.0)
    assert net.backbone_network is backbone
    assert [p.name for p in net.trainable_params()] == ["weight", "bias"]
    paths = [path for path, _ in net.parameters_and_names()]
    assert paths == ["_backbone.weight", "_backbone.bias"]
    loss, output, label = nn.WithEvalCell(backbone, nn.MSELoss(), True)(x, y)
    close(loss, 4.0)
    close(output, [[3.0]])
    assert label.dtype is ms.float32
    function = nn.WithLossCell(backbone, lambda a, b: (a - b).sum())
    close(function(x, y), 2.0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.MSELoss("foo"), ArgumentError, "'mean', 'sum', 'none'"),
        (lambda: nn.MSELoss(3), ArgumentError, "reduction must be one of"),
        (lambda: nn.KLDivLoss("foo"), ArgumentError, "'batchmean'"),
        (lambda: nn.SmoothL1Loss(0.0), ArgumentError, "beta must be in (0, inf]"),
        (lambda: nn.SmoothL1Loss()(t(2), t(3)), ShapeError, "logits and labels must have the same"),
        (lambda: nn.BCELoss(3), DTypeError, "weight must be a Tensor or None"),
        (lambda: nn.CrossEntropyLoss(label_smoothing=2.0), ArgumentError, "label_smoothing"),
        (lambda: nn.SoftmaxCrossEntropyWithLogits()(t(2, 3, 1), t(2)), ShapeError, "2 axes, not 3"),
        (lambda: nn.SoftmaxCrossEntropyWithLogits(True)(t(2, 3), t(3)), ShapeError, "shape (2,)"),
        (lambda: nn.MultiMarginLoss(3), ArgumentError, "p must be 1 or 2"),
        (lambda: nn.CosineEmbeddingLoss(2.0), ArgumentError, "margin must be in [-1, 1]"),
        (lambda: nn.DiceLoss(0.0), ArgumentError, "smooth"),
        (lambda: nn.MultiClassDiceLoss(activation="foo"), ArgumentError, "no activation 'foo'"),
        (lambda: nn.FocalLoss(gamma=30.0), ArgumentError, "gamma must be in [0, 20]"),
        (lambda: nn.FocalLoss()(t(2, 3), t(2)), ShapeError, "2, 3 or 4 axes"),
        (lambda: nn.FocalLoss()(t(2, 3), t(2, 2)), ShapeError, "(2, 1) or (2, 3)"),
        (lambda: nn.TripletMarginWithDistanceLoss(3), DTypeError, "must be a function"),
        (lambda: nn.WithLossCell(3, nn.MSELoss()), DTypeError, "backbone must be a Cell"),
        (lambda: nn.WithEvalCell(nn.ReLU(), 3), DTypeError, "loss_fn must be a Cell"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_losses.py" in str(e.value)
