"""Convolution, pooling, normalization, losses and images against slow NumPy definitions.

Every case runs eagerly and compiled, is compared with its definition, and, where it is
differentiable, with central differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.networks import references as ref
from tvmgraph import Tensor, ops
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError, TvmgraphError

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


IMAGE, SIGNAL, VOLUME = normal(2, 4, 6, 5), normal(2, 3, 7), normal(1, 2, 4, 3, 5)
X, Y = normal(4, 5), np.abs(normal(4, 5)) + 0.1
P = np.exp(ref.log_softmax(normal(4, 5), 1))
LABELS, WEIGHT = np.array([0, 4, 2, 1]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
DENSE, DENSE_LABELS = normal(2, 3, 4), np.array([[0, 1, 2, 0], [2, 1, 0, 1]])
MULTI = np.array([[1, 2, -1, 0, 3], [0, 1, 2, 3, 4], [-1, 0, 0, 0, 0], [4, 3, -1, 1, 3]])
LOGP = ref.log_softmax(normal(4, 3, 3), 2)
BOXES = np.array([[0.1, 0.1, 0.8, 0.9], [0.0, 0.2, 1.0, 0.6]])


@dataclass(frozen=True)
class Case:
    """A call, the arrays it gets and what the definition says."""

    name: str
    call: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    expected: Callable[..., Any]
    differentiable: bool = True


def case(name: str, call: Any, *arrays: Any, np_: Any, grad: bool = True) -> Case:
    return Case(name, call, tuple(np.asarray(a) for a in arrays), np_, grad)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def picked(x: np.ndarray, labels: np.ndarray = LABELS) -> np.ndarray:
    return -ref.log_softmax(x, 1)[np.arange(len(x)), labels]


def smoothed(x: np.ndarray, a: float) -> np.ndarray:
    return (1 - a) * picked(x) + a * -ref.log_softmax(x, 1).mean(1)


def multi_margin(x: np.ndarray, p: int, margin: float, w: np.ndarray) -> float:
    total = [
        sum(w[y] * max(0, margin - row[y] + row[i]) ** p for i in range(5) if i != y) / 5
        for row, y in zip(x, LABELS)
    ]
    return float(np.mean(total))


def multilabel_margin(x: np.ndarray) -> float:
    total = 0.0
    for row, labels in zip(x, MULTI):
        right = [int(j) for j in labels[: np.argmin(np.append(labels, -1) >= 0)]]
        wrong = [i for i in range(5) if i not in right]
        total += sum(max(0, 1 - row[j] + row[i]) for j in right for i in wrong) / 5
    return total / len(x)


def distance(a: np.ndarray, b: np.ndarray, p: float) -> np.ndarray:
    return (np.abs(a - b + 1e-6) ** p).sum(-1) ** (1 / p)


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def keys_cubic(x: np.ndarray, size: int) -> np.ndarray:
    """Cubic convolution of a vector, a = -0.5, weights outside dropped and renormalized."""
    y = np.zeros(size)
    for i in range(size):
        at = (i + 0.5) * len(x) / size - 0.5
        d = np.abs(at - np.arange(len(x)))
        w = np.where(d <= 1, 1.5 * d**3 - 2.5 * d**2 + 1,
                     np.where(d < 2, -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2, 0))  # fmt: skip
        y[i] = (w * x).sum() / w.sum()
    return y


def lrn(x: np.ndarray) -> np.ndarray:
    sums = np.stack([(x[:, max(c - 2, 0) : c + 3] ** 2).sum(1) for c in range(x.shape[1])], 1)
    return x / (1.5 + 0.3 * sums) ** 0.75


W22, W3 = normal(6, 2, 3, 2), normal(4, 3, 3)

CASES = [
    # ---- convolution
    case("conv2d", lambda x, w, b: ops.conv2d(x, w, b, groups=2), IMAGE, W22, normal(6),
         np_=lambda x, w, b: ref.conv(x, w, groups=2) + b[:, None, None]),
    case("conv2d-same", lambda x, w: ops.conv2d(x, w, stride=2, pad_mode="same"),
         normal(1, 2, 6, 5), normal(3, 2, 3, 2),
         np_=lambda x, w: ref.conv(x, w, 2, [(0, 1), (0, 1)])),
    case("conv2d-pad", lambda x, w: ops.conv2d(x, w, None, 2, "pad", (1, 0, 2, 1), 2),
         normal(1, 2, 6, 6), normal(3, 2, 2, 2),
         np_=lambda x, w: ref.conv(x, w, 2, [(1, 0), (2, 1)], 2)),
    case("conv1d", lambda x, w, b: ops.conv1d(x, w, b, 2, "pad", (1,)), SIGNAL, W3, normal(4),
         np_=lambda x, w, b: ref.conv(x, w, 2, [(1, 1)]) + b[:, None]),
    case("conv3d", ops.conv3d, VOLUME, normal(3, 2, 2, 2, 3), np_=ref.conv),
    case("conv_transpose2d",
         lambda x, w, b: ops.conv_transpose2d(x, w, b, 3, 1, 1, 2, 2), normal(2, 4, 3, 2),
         normal(4, 3, 2, 3), normal(6),
         np_=lambda x, w, b: ref.conv_transpose(x, w, 3, 1, 1, 2, 2) + b[:, None, None]),
    case("conv3d_transpose", lambda x, w: ops.conv3d_transpose(x, w, stride=2),
         normal(1, 2, 2, 3, 2), normal(2, 2, 2, 2, 3),
         np_=lambda x, w: ref.conv_transpose(x, w, 2)),
    case("deconvolution-same", lambda x, w: ops.deconvolution(x, w, stride=2),
         normal(1, 2, 3, 3), normal(2, 2, 3, 3),
         np_=lambda x, w: ref.conv_transpose(x, w, 2)[:, :, :6, :6]),
    # ---- pooling
    case("max_pool2d", lambda x: ops.max_pool2d(x, 2), IMAGE,
         np_=lambda x: ref.pool(x, 2, 2, np.max)),
    case("max_pool2d-ceil", lambda x: ops.max_pool2d(x, 3, 2, ceil_mode=True), IMAGE,
         np_=lambda x: ref.pool(x, 3, 2, np.max, True)),
    case("max_pool2d-indices", lambda x: ops.max_pool2d(x, 6, 1, return_indices=True),
         normal(1, 2, 6, 6),
         np_=lambda x: (x.max((2, 3), keepdims=True),
                        x.reshape(1, 2, 36).argmax(2).reshape(1, 2, 1, 1))),
    case("max_pool3d", lambda x: ops.max_pool3d(x, 2, 1), VOLUME,
         np_=lambda x: ref.pool(x, 2, 1, np.max)),
    case("max_pool1d-unbatched", lambda x: ops.max_pool1d(x, 2), SIGNAL[0],
         np_=lambda x: ref.pool(x[None], 2, 2, np.max)[0]),
    case("max_pooling-same", lambda x: ops.max_pooling(x, 2, 2, 2, "same"), IMAGE,
         np_=lambda x: ref.pool(x, 2, 2, np.max, True)),
    case("avg_pool2d", lambda x: ops.avg_pool2d(x, 2, 2), IMAGE,
         np_=lambda x: ref.pool(x, 2, 2, np.mean)),
    case("avg_pool2d-ceil", lambda x: ops.avg_pool2d(x, 3, 2, ceil_mode=True), IMAGE,
         np_=lambda x: ref.pool(x, 3, 2, np.mean, True)),
    case("avg_pool2d-padded", lambda x: ops.avg_pool2d(x, 3, 1, 1), IMAGE,
         np_=lambda x: ref.pool(ref.padded(x, [(1, 1), (1, 1)]), 3, 1, np.mean)),
    case("avg_pool2d-divisor", lambda x: ops.avg_pool2d(x, 2, divisor_override=3), IMAGE,
         np_=lambda x: ref.pool(x, 2, 1, np.sum) / 3),
    case("avg_pooling-same", lambda x: ops.avg_pooling(x, 2, 2, 2, "same"), IMAGE,
         np_=lambda x: ref.pool(x, 2, 2, np.mean, True)),
    case("avg_pool1d", lambda x: ops.avg_pool1d(x, 3, 2), SIGNAL,
         np_=lambda x: ref.pool(x, 3, 2, np.mean)),
    case("avg_pool3d", lambda x: ops.avg_pool3d(x, 2, 1), VOLUME,
         np_=lambda x: ref.pool(x, 2, 1, np.mean)),
    case("lp_pool2d", lambda x: ops.lp_pool2d(x, 3, 2), np.abs(IMAGE),
         np_=lambda x: ref.pool(x, 2, 2, lambda w: (w**3).sum() ** (1 / 3))),
    case("lp_pool1d", lambda x: ops.lp_pool1d(x, 2, 3, 2), SIGNAL,
         np_=lambda x: ref.pool(x, 3, 2, lambda w: (w**2).sum() ** 0.5)),
    case("adaptive_avg_pool2d", lambda x: ops.adaptive_avg_pool2d(x, (4, None)), IMAGE,
         np_=lambda x: ref.adaptive(x, (4, 5), np.mean)),
    case("adaptive_avg_pool2d-even", lambda x: ops.adaptive_avg_pool2d(x, (3, 1)), IMAGE,
         np_=lambda x: ref.adaptive(x, (3, 1), np.mean)),
    case("adaptive_avg_pool2d-one", lambda x: ops.adaptive_avg_pool2d(x, 1), IMAGE,
         np_=lambda x: x.mean((2, 3), keepdims=True)),
    case("adaptive_avg_pool1d", lambda x: ops.adaptive_avg_pool1d(x, 3), SIGNAL,
         np_=lambda x: ref.adaptive(x, (3,), np.mean)),
    case("adaptive_avg_pool3d", lambda x: ops.adaptive_avg_pool3d(x, 2), VOLUME,
         np_=lambda x: ref.adaptive(x, (2, 2, 2), np.mean)),
    case("adaptive_max_pool2d", lambda x: ops.adaptive_max_pool2d(x, (4, 3)), IMAGE,
         np_=lambda x: ref.adaptive(x, (4, 3), np.max)),
    case("adaptive_max_pool2d-indices",
         lambda x: ops.adaptive_max_pool2d(x, 4, True)[1], IMAGE, grad=False,
         np_=lambda x: _adaptive_places(x, (4, 4))),
    case("adaptive_max_pool1d", lambda x: ops.adaptive_max_pool1d(x, 7), SIGNAL, np_=lambda x: x),
    case("adaptive_max_pool3d", lambda x: ops.adaptive_max_pool3d(x, (2, 2, 2)), VOLUME,
         np_=lambda x: ref.adaptive(x, (2, 2, 2), np.max)),
    case("max_unpool2d", lambda x: ops.max_unpool2d(*ops.max_pool2d(x, 2, return_indices=True), 2),
         normal(1, 2, 4, 4),
         np_=lambda x: np.where(np.kron(ref.pool(x, 2, 2, np.max), np.ones((2, 2))) == x, x, 0)),
    # ---- normalization
    case("layer_norm", lambda x, w, b: ops.layer_norm(x, (6, 5), w, b, 1e-3), IMAGE, normal(6, 5),
         normal(6, 5), np_=lambda x, w, b: ref.normalized(x, (2, 3), 1e-3) * w + b),
    case("group_norm", lambda x, w, b: ops.group_norm(x, 2, w, b), IMAGE, normal(4), normal(4),
         np_=lambda x, w, b: ref.normalized(x.reshape(2, 2, 60), (2,), 1e-5).reshape(x.shape)
         * w[:, None, None] + b[:, None, None]),
    case("rms_norm", lambda x, w: ops.rms_norm(x, w, 1e-3), X, WEIGHT,
         np_=lambda x, w: (x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-3) * w,
                           1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-3))),
    case("batch_norm", lambda x, m, v, w, b: ops.batch_norm(x, m, v, w, b, eps=1e-3), IMAGE,
         normal(4), np.abs(normal(4)), normal(4), normal(4),
         np_=lambda x, m, v, w, b: np.moveaxis(
             (np.moveaxis(x, 1, -1) - m) / np.sqrt(v + 1e-3) * w + b, -1, 1)),
    case("lrn", lambda x: ops.lrn(x, 2, 1.5, 0.3, 0.75), IMAGE, np_=lrn),
    case("l2_normalize", lambda x: ops.l2_normalize(x, 1), X,
         np_=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)),
    # ---- losses
    case("mse_loss", ops.mse_loss, X, Y, np_=lambda x, y: ((x - y) ** 2).mean()),
    case("l1_loss", lambda x, y: ops.l1_loss(x, y, "sum"), X, Y,
         np_=lambda x, y: np.abs(x - y).sum()),
    case("smooth_l1_loss", lambda x, y: ops.smooth_l1_loss(x, y, 0.5), X, Y,
         np_=lambda x, y: np.where(np.abs(x - y) < 0.5, (x - y) ** 2, np.abs(x - y) - 0.25)),
    case("huber_loss", lambda x, y: ops.huber_loss(x, y, "none", 0.5), X, Y,
         np_=lambda x, y: np.where(np.abs(x - y) < 0.5, (x - y) ** 2 / 2,
                                   0.5 * (np.abs(x - y) - 0.25))),
    case("binary_cross_entropy", ops.binary_cross_entropy, sigmoid(X), P, WEIGHT + X * 0,
         np_=lambda x, y, w: (-w * (y * np.log(x) + (1 - y) * np.log(1 - x))).mean()),
    case("binary_cross_entropy_with_logits", ops.binary_cross_entropy_with_logits, X, P, Y, WEIGHT,
         np_=lambda x, y, w, p: (-w * (p * y * np.log(sigmoid(x))
                                       + (1 - y) * np.log(1 - sigmoid(x)))).mean()),
    case("soft_margin_loss", ops.soft_margin_loss, X[:, 0], SIGNS,
         np_=lambda x, y: np.log(1 + np.exp(-x * y)).mean()),
    case("kl_div", ops.kl_div, X, P, np_=lambda x, p: (p * (np.log(p) - x)).mean()),
    case("kl_div-batchmean", lambda x, p: ops.kl_div(x, p, "batchmean"), X, P,
         np_=lambda x, p: (p * (np.log(p) - x)).sum() / 4),
    case("gaussian_nll_loss", lambda x, t, v: ops.gaussian_nll_loss(x, t, v, True), X, P, Y[:, 0],
         np_=lambda x, t, v: ((np.log(v)[:, None] + (x - t) ** 2 / v[:, None]) / 2
                              + np.log(2 * np.pi) / 2).mean()),
    case("cross_entropy", ops.cross_entropy, X, LABELS, np_=lambda x, y: picked(x).mean()),
    case("cross_entropy-weight", lambda x, y, w: ops.cross_entropy(x, y, w, 4), X, LABELS, WEIGHT,
         np_=lambda x, y, w: (picked(x) * w[y])[y != 4].sum() / w[y][y != 4].sum()),
    case("cross_entropy-smooth",
         lambda x, y: ops.cross_entropy(x, y, reduction="none", label_smoothing=0.2), X, LABELS,
         np_=lambda x, y: smoothed(x, 0.2)),
    case("cross_entropy-dense", lambda x, y: ops.cross_entropy(x, y, reduction="sum"), DENSE,
         DENSE_LABELS,
         np_=lambda x, y: -np.take_along_axis(ref.log_softmax(x, 1), y[:, None], 1).sum()),
    case("cross_entropy-probabilities", lambda x, p, w: ops.cross_entropy(x, p, w), X, P, WEIGHT,
         np_=lambda x, p, w: -(ref.log_softmax(x, 1) * p * w).sum(1).mean()),
    case("cross_entropy-single", lambda x: ops.cross_entropy(x, Tensor(2)), X[0],
         np_=lambda x: -ref.log_softmax(x, 0)[2]),
    case("nll_loss", lambda x, y, w: ops.nll_loss(x, y, w), X, LABELS, WEIGHT,
         np_=lambda x, y, w: -(x[range(4), y] * w[y]).sum() / w[y].sum()),
    case("multi_margin_loss", lambda x, y, w: ops.multi_margin_loss(x, y, 2, 0.7, w), X, LABELS,
         WEIGHT, np_=lambda x, y, w: multi_margin(x, 2, 0.7, w)),
    case("multilabel_margin_loss", ops.multilabel_margin_loss, X, MULTI,
         np_=lambda x, y: multilabel_margin(x)),
    case("multilabel_soft_margin_loss", ops.multilabel_soft_margin_loss, X, P > 0.2,
         np_=lambda x, y: -np.where(y, np.log(sigmoid(x)), np.log(1 - sigmoid(x))).mean()),
    case("hinge_embedding_loss", ops.hinge_embedding_loss, X[:, 0], SIGNS,
         np_=lambda x, y: np.where(y == 1, x, np.maximum(0, 1 - x)).mean()),
    case("margin_ranking_loss", lambda a, b, y: ops.margin_ranking_loss(a, b, y, 0.5), X[:, 0],
         X[:, 1], SIGNS, np_=lambda a, b, y: np.maximum(0, -y * (a - b) + 0.5).mean()),
    case("cosine_similarity", ops.cosine_similarity, X, Y, np_=cosine),
    case("cosine_embedding_loss", lambda a, b, y: ops.cosine_embedding_loss(a, b, y, 0.1), X, Y,
         SIGNS, np_=lambda a, b, y: np.where(y == 1, 1 - cosine(a, b),
                                             np.maximum(0, cosine(a, b) - 0.1)).mean()),
    case("triplet_margin_loss", lambda a, p, n: ops.triplet_margin_loss(a, p, n, p=3, swap=True),
         X, Y, P, np_=lambda a, p, n: np.maximum(
             0, distance(a, p, 3) - np.minimum(distance(a, n, 3), distance(p, n, 3)) + 1).mean()),
    case("pdist", ops.pdist, X,
         np_=lambda x: np.array([np.linalg.norm(x[i] - x[j])
                                 for i in range(4) for j in range(i + 1, 4)])),
    case("ctc_loss",
         lambda x: ops.ctc_loss(x, Tensor([[1, 2], [1, 1], [2, 0]]), (4, 3, 4), (2, 2, 1),
                                reduction="none")[0], LOGP,
         np_=lambda x: np.array([ref.ctc(x[:, 0], (1, 2), 0), ref.ctc(x[:3, 1], (1, 1), 0),
                                 ref.ctc(x[:, 2], (2,), 0)])),
    case("ctc_loss-mean", lambda x: ops.ctc_loss(x, Tensor([[1, 0], [0, 0], [0, 1]]), (4, 4, 2),
                                                 (2, 0, 2), blank=2)[0], LOGP,
         np_=lambda x: (ref.ctc(x[:, 0], (1, 0), 2) / 2 + ref.ctc(x[:, 1], (), 2)
                        + ref.ctc(x[:2, 2], (0, 1), 2) / 2) / 3),
    # ---- images
    case("interpolate-bilinear", lambda x: ops.interpolate(x, (9, 3), mode="bilinear"), IMAGE,
         np_=lambda x: ref.linear(x, (9, 3), False)),
    case("interpolate-aligned",
         lambda x: ops.interpolate(x, 9, mode="linear", align_corners=True), SIGNAL,
         np_=lambda x: ref.linear(x, (9,), True)),
    case("interpolate-nearest", lambda x: ops.interpolate(x, scale_factor=2.0), IMAGE,
         np_=lambda x: np.kron(x, np.ones((2, 2)))),
    case("interpolate-bicubic", lambda x: ops.interpolate(x, (6, 8), mode="bicubic"), IMAGE,
         np_=lambda x: np.apply_along_axis(keys_cubic, 3, x, 8)),
    case("interpolate-area", lambda x: ops.interpolate(x, (4, 2), mode="area"), IMAGE,
         np_=lambda x: ref.adaptive(x, (4, 2), np.mean)),
    case("interpolate-trilinear", lambda x: ops.interpolate(x, (2, 6, 5), mode="trilinear"),
         VOLUME, np_=lambda x: ref.linear(x, (2, 6, 5), False)),
    case("grid_sample", ops.grid_sample, IMAGE[:1], RNG.uniform(-1.3, 1.3, (1, 3, 4, 2)),
         np_=ref.grid_sample),
    case("grid_sample-affine",
         lambda x, t: ops.grid_sample(x, ops.affine_grid(t, (1, 4, 6, 5)), "bilinear", "border"),
         IMAGE[:1], [[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], np_=lambda x, t: x[..., ::-1],
         grad=False),
    case("unfold-fold",
         lambda x: ops.fold(ops.unfold(x, 2, stride=2), (6, 4), 2, stride=2), IMAGE[..., :4],
         np_=lambda x: x),
    case("unfold", lambda x: ops.unfold(x, (2, 3), padding=1), IMAGE,
         np_=lambda x: np.stack([
             ref.padded(x, [(1, 1), (1, 1)])[:, c, i : i + 7, j : j + 5].reshape(2, 35)
             for c in range(4) for i in range(2) for j in range(3)], 1)),
    case("crop_and_resize",
         lambda b: ops.cast(ops.crop_and_resize(
             Tensor(np.arange(5.0)[None, :, None, None] + np.zeros((1, 1, 6, 1))), b,
             Tensor([0, 0]), (3, 2)), ms.float64), BOXES, grad=False,
         np_=lambda b: np.repeat((b[:, [0]] * 4 + np.arange(3) * (b[:, [2]] - b[:, [0]]) * 2),
                                 2).reshape(2, 3, 2, 1)),
    case("iou", ops.iou, [[0.0, 0.0, 9.0, 9.0]], [[0.0, 5.0, 9.0, 14.0]],
         np_=lambda a, b: np.array([[50 / 150]])),
    case("bounding_box_round_trip",
         lambda a, b: ops.bounding_box_decode(a, ops.bounding_box_encode(a, b), (40, 40)),
         [[1.0, 2.0, 9.0, 12.0]], [[3.0, 1.0, 8.0, 20.0]], np_=lambda a, b: b),
]  # fmt: skip


def _adaptive_places(x: np.ndarray, out: tuple[int, int]) -> np.ndarray:
    values = ref.adaptive(x, out, np.max)
    flat = x.reshape(*x.shape[:2], -1)
    return np.array([
        [[[int(np.flatnonzero(flat[n, c] == v)[0]) for v in row] for row in values[n, c]]
         for c in range(x.shape[1])] for n in range(x.shape[0])
    ])  # fmt: skip


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def assert_equal(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    for f, e in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert f.shape == np.shape(e)
        np.testing.assert_allclose(f.asnumpy(), e, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_eager_is_the_definition(c: Case) -> None:
    loose = 1e-6 if c.name.startswith(("crop", "triplet")) else 1e-9
    assert_equal(c.call(*map(Tensor, c.arrays)), c.expected(*c.arrays), loose)


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_compiled_is_eager(c: Case) -> None:
    inputs = [Tensor(a) for a in c.arrays]
    expected = tuple(t.asnumpy() for t in as_tuple(c.call(*inputs)))
    assert_equal(ms.jit(c.call)(*inputs), expected)


@pytest.mark.parametrize("c", [c for c in CASES if c.differentiable], ids=lambda c: c.name)
def test_gradient_is_central_difference(c: Case) -> None:
    results = as_tuple(c.call(*map(Tensor, c.arrays)))
    weights = [np.random.default_rng(i).standard_normal(t.shape) for i, t in enumerate(results)]

    def loss(*inputs: Tensor) -> Tensor:
        total = Tensor(np.float64(0))
        for t, w in zip(as_tuple(c.call(*inputs)), weights, strict=True):
            if t.dtype.is_float:
                total = total + ops.sum(t * Tensor(w))
        return total

    floats = tuple(i for i, a in enumerate(c.arrays) if a.dtype.kind == "f")
    found = as_tuple(ms.grad(loss, grad_position=floats)(*map(Tensor, c.arrays)))
    rng = np.random.default_rng(7)
    for position, gradient in zip(floats, found, strict=True):
        # one random direction per input: cheap, and a wrong derivative shows in almost all
        direction = rng.standard_normal(c.arrays[position].shape)
        ends = []
        for step in (1e-6, -1e-6):
            moved = list(c.arrays)
            moved[position] = moved[position] + step * direction
            ends.append(loss(*map(Tensor, moved)).item())
        numeric = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(
            float((gradient.asnumpy() * direction).sum()), numeric, rtol=1e-5, atol=1e-6
        )


def test_training_updates_running_statistics() -> None:
    x = np.array([[0.0, 1.0], [2.0, 5.0], [4.0, 3.0]], np.float32)
    for wrap in (lambda f: f, ms.jit):
        mean, var = ms.Parameter(Tensor([0.0, 0.0])), ms.Parameter(Tensor([1.0, 1.0]))
        call = wrap(lambda t, m=mean, v=var: ops.batch_norm(t, m, v, None, None, True, 0.25))
        y = call(Tensor(x))
        np.testing.assert_allclose(y.asnumpy(), ref.normalized(x, (0,), 1e-5), rtol=1e-5)
        np.testing.assert_allclose(mean.asnumpy(), 0.25 * x.mean(0), rtol=1e-6)
        np.testing.assert_allclose(var.asnumpy(), 0.75 + 0.25 * x.var(0, ddof=1), rtol=1e-6)


@pytest.mark.parametrize("kernel", [2, 3, 5])
def test_nan_wins_a_maximum_pooling(kernel: int) -> None:
    x = normal(1, 1, 10, 10).astype(np.float32)
    x[0, 0, 4, 5] = np.nan
    eager, where = ops.max_pool2d(Tensor(x), kernel, 1, return_indices=True)
    jitted = ms.jit(lambda t: ops.max_pool2d(t, kernel, 1, return_indices=True))(Tensor(x))
    np.testing.assert_array_equal(jitted[0].asnumpy(), eager.asnumpy())
    np.testing.assert_array_equal(jitted[1].asnumpy(), where.asnumpy())
    assert np.isnan(eager.asnumpy()).sum() == kernel * kernel
    assert (where.asnumpy()[np.isnan(eager.asnumpy())] == 45).all()


def test_equal_maxima_send_their_gradient_to_the_first() -> None:
    x = Tensor(np.ones((1, 1, 4, 4), np.float32))
    run = ms.grad(lambda t: ops.sum(ops.max_pool2d(t, 2)))
    for gradient in (run(x), ms.jit(run)(x)):
        expected = np.zeros((4, 4))
        expected[::2, ::2] = 1
        np.testing.assert_array_equal(gradient.asnumpy()[0, 0], expected)


def test_losses_stay_finite_at_the_edges() -> None:
    bce = ops.binary_cross_entropy(Tensor([0.0, 1.0]), Tensor([1.0, 0.0]), reduction="none")
    np.testing.assert_allclose(bce.asnumpy(), -np.log(1e-12), rtol=1e-5)
    large = Tensor([1000.0, -1000.0])
    logits = ops.binary_cross_entropy_with_logits(large, Tensor([1.0, 0.0]), reduction="sum")
    assert logits.item() == 0
    zero = ms.grad(lambda t: ops.binary_cross_entropy_with_logits(t, Tensor([1.0])))
    assert zero(Tensor([0.0])).item() == -0.5
    same = ms.grad(lambda t: ops.sum(ops.pdist(t)))(Tensor(np.ones((3, 2), np.float32)))
    np.testing.assert_array_equal(same.asnumpy(), 0)


def test_an_impossible_alignment_costs_infinity_or_nothing() -> None:
    x, y = Tensor(LOGP[:1, :1]), Tensor([[1, 2]])
    assert ops.ctc_loss(x, y, (1,), (2,))[0].item() == np.inf
    assert ops.ctc_loss(x, y, (1,), (2,), zero_infinity=True)[0].item() == 0
    gradient = ms.grad(lambda t: ops.ctc_loss(t, y, (1,), (2,), zero_infinity=True)[0])(x)
    np.testing.assert_array_equal(gradient.asnumpy(), 0)


def test_half_precision_statistics_do_not_overflow() -> None:
    x = Tensor((np.arange(4096).reshape(1, 1, 64, 64) % 7 * 1000 + 30000).astype(np.float16))
    mean = float(x.asnumpy().astype(np.float64).mean())
    for run in (ops.adaptive_avg_pool2d, ms.jit(ops.adaptive_avg_pool2d)):
        assert abs(run(x, 1).item() - mean) < 32  # a float16 step up there
    y = ops.layer_norm(x, (64, 64)).asnumpy().astype(np.float64)
    assert abs(y.std() - 1) < 1e-2


BAD: list[tuple[type[TvmgraphError], Callable[[], Any]]] = [
    (ArgumentError, lambda: ops.conv2d(ops.ones((1, 1, 4, 4)), ops.ones((1, 1, 2, 2)), padding=1)),
    (ArgumentError, lambda: ops.conv2d(ops.ones((1, 1, 4, 4)), ops.ones((1, 1, 2, 2)),
                                       pad_mode="full")),
    (ShapeError, lambda: ops.conv2d(ops.ones((1, 1, 4, 4)), ops.ones((1, 1, 2, 2)), ops.ones(2))),
    (ShapeError, lambda: ops.conv1d(ops.ones((1, 1, 4)), ops.ones((1, 1, 2, 2)))),
    (ArgumentError, lambda: ops.max_pool2d(ops.ones((1, 1, 4, 4)), 2, padding=2)),
    (ShapeError, lambda: ops.max_pool2d(ops.ones((4, 4)), 2)),
    (DTypeError, lambda: ops.avg_pool2d(ops.ones((1, 1, 4, 4)), 2.5)),
    (ArgumentError, lambda: ops.adaptive_avg_pool2d(ops.ones((1, 1, 4, 4)), (1, 2, 3))),
    (ShapeError, lambda: ops.layer_norm(ops.ones((2, 3)), (2,))),
    (ArgumentError, lambda: ops.group_norm(ops.ones((2, 3, 4)), 2)),
    (ShapeError, lambda: ops.cross_entropy(ops.ones((2, 3)), Tensor([1, 2, 0]))),
    (OutOfRangeError, lambda: ops.cross_entropy(ops.ones((2, 3)), Tensor([1, 3]))),
    (ArgumentError, lambda: ops.mse_loss(ops.ones(2), ops.ones(2), "avg")),
    (ShapeError, lambda: ops.kl_div(ops.ones(2), ops.ones(3))),
    (ArgumentError, lambda: ops.interpolate(ops.ones((1, 1, 4)), 8, 2.0)),
    (ShapeError, lambda: ops.interpolate(ops.ones((1, 1, 4)), 8, mode="bilinear")),
    (ArgumentError, lambda: ops.interpolate(ops.ones((1, 1, 4)), 8, align_corners=True)),
    (ShapeError, lambda: ops.grid_sample(ops.ones((1, 1, 4, 4)), ops.ones((1, 2, 2, 3)))),
    (ArgumentError, lambda: ops.ctc_loss(ops.ones((2, 1, 3)), Tensor([[1]]), (2,), (1,), 3)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "call"), BAD)
def test_bad_arguments_say_what_and_where(
    kind: type[TvmgraphError], call: Callable[[], Any]
) -> None:
    with pytest.raises(kind) as info:
        call()
    text = str(info.value)
    assert text.startswith("ops.")
    assert "\n  got: " in text
    assert "\n  at:  test_network.py:" in text


def test_the_steps_of_ctc_loss_are_one_loop_of_a_graph() -> None:
    steps, n, classes = 9, 3, 5
    x = Tensor(RNG.standard_normal((steps, n, classes)).astype(np.float32))
    labels = Tensor(np.array([[1, 2, 3], [2, 2, 0], [4, 0, 0]]))

    def loss(x: Tensor) -> tuple[Tensor, Tensor]:
        logp = ops.log_softmax(x, -1)
        return ops.ctc_loss(logp, labels, (9, 7, 4), (3, 2, 1), reduction="sum")

    both = ms.value_and_grad(lambda x: loss(x)[0])
    compiled = ms.jit(lambda x: (*both(x), loss(x)[1]), fullgraph=True)
    want = (*both(x), loss(x)[1])
    for ours, eager in zip(compiled(x), want):
        np.testing.assert_allclose(ours.asnumpy(), eager.asnumpy(), 1e-5, 1e-5)
    assert any(node.op.name == "while_" for node in compiled.graph().nodes)
    assert len(compiled.graph().nodes) < 400  # the longer loop of more steps has as many
    batch = ops.stack((x, x + 1))
    for ours, alone in zip(ms.vmap(lambda x: loss(x)[0])(batch), batch):
        np.testing.assert_allclose(ours.asnumpy(), loss(alone)[0].asnumpy(), 1e-5)


@pytest.mark.parametrize("shape, out", [((2, 3, 9, 7), (4, 3)), ((1, 2, 3, 4), (5, 7))])
def test_adaptive_max_pool2d_takes_the_first_of_equal_elements(
    shape: tuple[int, ...], out: tuple[int, ...]
) -> None:
    x = Tensor(np.maximum(np.random.default_rng(0).integers(-3, 3, shape), 0).astype("float32"))
    index = ops.adaptive_max_pool2d(x, out, True)[1].asnumpy().reshape(-1, math.prod(out))
    want = np.zeros((len(index), math.prod(shape[2:])), np.float32)
    for row, places in zip(want, index):
        np.add.at(row, places, 3.0)
    slope = ms.grad(lambda x: (ops.adaptive_max_pool2d(x, out) * 3).sum())
    for run in (slope, ms.jit(slope)):
        np.testing.assert_array_equal(run(x).asnumpy(), want.reshape(shape))


@pytest.mark.parametrize(
    ("size", "order"), [((12, 15), [3, 2]), ((2, 3), [2, 3]), ((12, 3), [3, 2]), ((2, 15), [2, 3])]
)
def test_the_last_axis_is_resampled_while_the_others_are_small(
    size: tuple[int, int], order: list[int]
) -> None:
    resized = ms.jit(lambda x: ops.interpolate(x, size, mode="bilinear"))
    resized(ops.ones((1, 2, 4, 5)))
    nodes = [n for n in resized.graph().nodes if n.op.name == "resample"]
    assert [n.attrs["axis"] for n in nodes] == order
