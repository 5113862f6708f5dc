"""Metrics of segmentations give what MindSpore 2.10 gave, which computes them by SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tvmgraph import Tensor, nn
from tvmgraph.errors import ArgumentError, DTypeError

FOUND = Tensor(np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]]))
TRUE = Tensor(np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]]))
LOW, HIGH = np.zeros((5, 5)), np.zeros((5, 5))
LOW[1:4, 1:4] = HIGH[2:5, 1:4] = 1
VALUES = [
    (nn.HausdorffDistance(), FOUND, TRUE, 0, math.sqrt(2)),
    (nn.HausdorffDistance("euclidean", 95.0, directed=True, crop=False), FOUND, TRUE, 1, 0.9),
    (nn.HausdorffDistance("chessboard"), LOW, HIGH, 1, 1.0),
    (nn.MeanSurfaceDistance(), FOUND, TRUE, 0, 0.8047378541243649),
    (nn.MeanSurfaceDistance(symmetric=True, distance_metric="chessboard"), LOW, HIGH, 1, 0.5),
    (nn.RootMeanSquareDistance(), FOUND, TRUE, 0, 1.0),
    (nn.RootMeanSquareDistance(True, "taxicab"), LOW, HIGH, 1, math.sqrt(0.5)),
    (nn.RootMeanSquareDistance(), LOW, HIGH * 0, 1, math.inf),
    (nn.MeanSurfaceDistance(), LOW * 0, HIGH, 1, math.inf),
]


@pytest.mark.parametrize("case", range(len(VALUES)))
def test_the_distance_is_that_of_mindspore(case: int) -> None:
    metric, found, true, label, wanted = VALUES[case]
    metric.update(found, true, label)
    assert math.isclose(float(metric.eval()), wanted) or metric.eval() == wanted


def test_many_places_are_compared_in_blocks() -> None:
    found = np.zeros((120, 120), np.int32)
    found[::2, ::2] = 1  # 3,600 places
    metric = nn.HausdorffDistance(directed=True)
    metric.update(found, np.pad(np.ones((1, 1), np.int32), (0, 119)), 1)
    assert math.isclose(float(metric.eval()), 118 * math.sqrt(2))


def test_what_is_hidden_lowers_the_score() -> None:
    net = nn.Dense(4, 2, weight_init=Tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]]))
    metric = nn.OcclusionSensitivity(margin=1, n_batch=3)
    metric.update(net, Tensor([[1.0, 1.0, 1.0, 1.0]]), Tensor([0]))
    np.testing.assert_allclose(metric.eval(), [1.0, 3.0, 5.0, 7.0], rtol=1e-5)
    boxed = nn.OcclusionSensitivity(margin=1, b_box=[1, -1])
    boxed.update(net, Tensor([[1.0, 1.0, 1.0, 1.0]]), Tensor([0]))
    np.testing.assert_allclose(boxed.eval(), [3.0, 5.0, 7.0], rtol=1e-5)


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match="euclidean, chessboard, taxicab"):
        nn.HausdorffDistance("x")
    with pytest.raises(DTypeError, match="percentile"):
        nn.HausdorffDistance(percentile="a")
    with pytest.raises(DTypeError, match="symmetric"):
        nn.MeanSurfaceDistance(1)
    with pytest.raises(ArgumentError, match="no element of class 5"):
        nn.HausdorffDistance().update(FOUND, TRUE, 5)
    with pytest.raises(RuntimeError, match="call update first"):
        nn.RootMeanSquareDistance().eval()
    with pytest.raises(RuntimeError, match="call update first"):
        nn.OcclusionSensitivity().eval()


def test_a_vector_of_losses_counts_by_its_mean() -> None:
    metric = nn.Loss()
    metric.update(Tensor([1.0, 2.0]))
    assert metric.eval() == 1.5
