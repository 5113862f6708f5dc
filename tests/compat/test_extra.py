"""Operators that MindSpore has no kernel for on a CPU, or that draw: against NumPy and formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops
from tvmgraph.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_blocks_and_batches() -> None:
    x = Tensor(floats(2, 3, 4, 6))
    there = ops.SpaceToBatch(2, [[0, 0], [1, 1]])(x)
    assert there.shape == (8, 3, 2, 4)
    padded = np.pad(x.asnumpy(), ((0, 0), (0, 0), (0, 0), (1, 1)))
    np.testing.assert_array_equal(there.asnumpy()[2:4], padded[:, :, ::2, 1::2])
    back = ops.BatchToSpace(2, [[0, 0], [1, 1]])(there)
    np.testing.assert_array_equal(back.asnumpy(), x.asnumpy())
    by_tensors = ops.BatchToSpaceNDV2()(there, Tensor([2, 2]), Tensor([[0, 0], [1, 1]]))
    np.testing.assert_array_equal(by_tensors.asnumpy(), x.asnumpy())


def test_windows() -> None:
    x, kernel = floats(1, 2, 5, 6), floats(2, 2, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))
    for call in (ops.Dilation2D(1, 1, "VALID"), ms.jit(ops.Dilation2D(1, 1, "VALID"))):
        found = call(Tensor(x), Tensor(kernel)).asnumpy()
        want = (windows + kernel[:, None, None]).max((-1, -2))
        np.testing.assert_allclose(found, want, 1e-6)
    parts = ops.ExtractImagePatches([1, 1, 2, 3], [1, 1, 1, 1], [1, 1, 1, 1])(Tensor(x)).asnumpy()
    assert parts.shape == (1, 12, 4, 4)
    want = windows.transpose(0, 4, 5, 1, 2, 3).reshape(1, 12, 4, 4)
    np.testing.assert_array_equal(parts, want)


def test_counts() -> None:
    labels, guesses = Tensor([0, 1, 1, 3]), Tensor([1, 2, 1, 3])
    want = np.zeros((4, 4))
    np.add.at(want, ([0, 1, 1, 3], [1, 2, 1, 3]), 1)
    np.testing.assert_array_equal(ops.ConfusionMatrix(4)(labels, guesses).asnumpy(), want)
    x = np.array([-5, -0.9, 0.1, 0.2, 0.99, 7], np.float32)
    found = ops.HistogramFixedWidth(4)(Tensor(x), Tensor([-1.0, 1.0], ms.float32))
    assert found.tolist() == [2, 0, 2, 2]
    rows, places, weights = ops.ComputeAccidentalHits(2)(
        Tensor([[1, 2], [0, 4]]), Tensor([4, 1, 7])
    )
    assert (rows.tolist(), places.tolist()) == ([0, 1], [1, 0]) and weights.asnumpy().max() < -1e38
    with pytest.raises(ArgumentError, match="NaN"):
        ops.CheckNumerics()(Tensor([1.0, np.nan]))


def test_boxes_are_suppressed() -> None:
    boxes = Tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 1, 9, 9]], ms.float32)
    scores = Tensor([0.5, 0.9, 0.6, 0.1], ms.float32)
    suppress = ops.NonMaxSuppressionV3()
    assert suppress(boxes, scores, 4, 0.5, 0.2).tolist() == [1, 2]
    assert suppress(boxes, scores, 4, 0.95, 0.0).tolist() == [1, 2, 0, 3]
    assert suppress(boxes, scores, 3, 0.95, 0.0).tolist() == [1, 2, 0]


def test_keras_momentum() -> None:
    start, velocity, grad = (floats(3) for _ in range(3))
    for nesterov in (False, True):
        var, accum = ms.Parameter(Tensor(start)), ms.Parameter(Tensor(velocity))
        ops.ApplyKerasMomentum(use_nesterov=nesterov)(var, accum, 0.1, Tensor(grad), 0.9)
        new = velocity * 0.9 - 0.1 * grad
        np.testing.assert_allclose(accum.asnumpy(), new, 1e-5, 1e-6)
        step = new * 0.9 - 0.1 * grad if nesterov else new
        np.testing.assert_allclose(var.asnumpy(), start + step, 1e-5, 1e-6)


def test_jets() -> None:
    x, first, second = floats(2, 3), floats(2, 3), floats(2, 3)
    value, series = ops.jet(ops.sin, Tensor(x), Tensor(np.stack([first, second])))
    np.testing.assert_allclose(value.asnumpy(), np.sin(x), 1e-5)
    want = [np.cos(x) * first, np.cos(x) * second - np.sin(x) * first**2]
    np.testing.assert_allclose(series.asnumpy(), want, 1e-4, 1e-5)
    _, third = ops.jet(
        lambda a, b: a * b, (Tensor(2.0), Tensor(3.0)),
        (Tensor([1.0, 0, 0]), Tensor([0.0, 4, 0])),
    )  # fmt: skip
    np.testing.assert_allclose(third.asnumpy(), [3, 8, 12], 1e-5)  # (2 + t)(3 + 2 t^2)
    value, change = ops.linearize(lambda a, b: a * b, (Tensor(2.0), Tensor(3.0)))
    assert value.item() == 6 and change(Tensor(1.0), Tensor(10.0)).item() == 23
    with pytest.raises(ArgumentError, match="derivatives"):
        ops.jet(ops.mul, (Tensor(1.0), Tensor(1.0)), (Tensor([1.0]), Tensor([1.0, 2.0])))


def test_draws() -> None:
    ms.set_seed(1)
    rate = Tensor([0.5, 4.0, 30.0], ms.float32)
    drawn = ops.random_poisson(Tensor([4000]), rate, dtype=ms.float32).asnumpy()
    assert drawn.shape == (4000, 3) and np.all(drawn == np.floor(drawn))
    np.testing.assert_allclose(drawn.mean(0), [0.5, 4, 30], 0.08)
    np.testing.assert_allclose(drawn.var(0), [0.5, 4, 30], 0.12)
    assert ops.Poisson()(Tensor([5, 1]), rate).dtype == ms.int32
    assert ops.poisson((2,), 3.0).shape == (2,)
    large = ops.poisson((4000,), 1e6).asnumpy()
    assert abs(large.mean() - 1e6) < 100 and abs(large.std() - 1e3) < 50
    cut = ops.ParameterizedTruncatedNormal()(
        Tensor([2, 3000]), *(Tensor(v, ms.float32) for v in ([0, 5], [1, 2], [-1, 5], [1, 9]))
    ).asnumpy()
    assert cut[0].min() >= -1 and cut[0].max() <= 1 and cut[1].min() >= 5 and cut[1].max() <= 9
    np.testing.assert_allclose(cut.mean(1), [0, 6.49], atol=0.06)  # 5 + 2 phi(0) / (1/2 - tail)
    mixed = ops.Randperm(6)(Tensor([4])).tolist()
    assert sorted(mixed[:4]) == [0, 1, 2, 3] and mixed[4:] == [-1, -1]
    flips = ops.bernoulli_ext(ops.full((2000,), 0.3, dtype=ms.float32)).asnumpy()
    assert set(np.unique(flips)) == {0, 1} and abs(flips.mean() - 0.3) < 0.05


def test_candidates() -> None:
    true = Tensor([[0], [3]])
    drawn, expected, of_drawn = ops.uniform_candidate_sampler(true, 1, 4, True, 6, 5, True)
    numbers = drawn.tolist()
    assert len(set(numbers)) == 4 and not {0, 3} & set(numbers)
    np.testing.assert_allclose(expected.asnumpy(), 4 / 6, 1e-6)
    assert of_drawn.shape == (4,)
    many = ops.log_uniform_candidate_sampler(true, 1, 3000, False, 9, 7)[0].asnumpy()
    share = np.log((np.arange(9) + 2) / (np.arange(9) + 1)) / np.log(10)
    np.testing.assert_allclose(np.bincount(many, minlength=9) / 3000, share, atol=0.03)
    with pytest.raises(ArgumentError, match="more classes"):
        ops.uniform_candidate_sampler(true, 1, 9, True, 6)


@pytest.mark.parametrize("sample", [
    ops.uniform_candidate_sampler, ops.log_uniform_candidate_sampler,
])  # fmt: skip
def test_candidates_of_a_batch(sample: Any) -> None:
    batch = np.array([[[1], [3]], [[4], [0]]], np.int32)
    many = ms.vmap(lambda true: sample(true, 1, 3, True, 8, 5))
    for found in (many(Tensor(batch)), ms.jit(many)(Tensor(batch))):
        for k, true in enumerate(batch):
            alone = sample(Tensor(true), 1, 3, True, 8, 5)
            for one, wanted in zip(found, alone, strict=True):
                np.testing.assert_allclose(one[k].asnumpy(), wanted.asnumpy(), rtol=1e-6)


def test_functions_that_change_their_argument() -> None:
    x = Tensor(floats(2, 3))
    before = x.asnumpy().copy()
    assert ops.clamp_(x, -0.5, 0.5) is x
    np.testing.assert_array_equal(x.asnumpy(), before.clip(-0.5, 0.5))
    ops.tanh_(x)
    np.testing.assert_allclose(x.asnumpy(), np.tanh(before.clip(-0.5, 0.5)), 1e-5)
    ops.put_(x, Tensor([0, 5]), Tensor([9.0, 8.0]))
    assert x.asnumpy()[0, 0] == 9 and x.asnumpy()[1, 2] == 8
    ops.zero_(x)
    assert not x.asnumpy().any()
    ops.erfinv_(x)
    assert not x.asnumpy().any()
    for fill, low, high in (
        (lambda: ops.uniform_(x, 2, 3), 2, 3), (lambda: ops.random_(x, 1, 4), 1, 3),
        (lambda: ops.bernoulli_(x, 1.0), 1, 1), (lambda: ops.exponential_(x), 0, 60),
        (lambda: ops.normal_(x, 100, 1), 90, 110),
    ):  # fmt: skip
        values = fill().asnumpy()
        assert values is not None and np.all((values >= low) & (values <= high))
        np.testing.assert_array_equal(values, x.asnumpy())


def test_fractional_pools_draw_their_windows() -> None:
    x = Tensor(floats(2, 7, 7))
    values, where = ops.fractional_max_pool2d(x, 2, (3, 3), return_indices=True)
    flat = x.asnumpy().reshape(2, -1)
    found = np.take_along_axis(flat, where.asnumpy().reshape(2, -1), 1)
    np.testing.assert_array_equal(values.asnumpy().reshape(2, -1), found)
    with pytest.raises(ArgumentError, match="one of them"):
        ops.fractional_max_pool2d(x, 2)


def test_samples_of_fractional_volumes_are_depth_height_and_width() -> None:
    x = ops.arange(64).reshape((1, 1, 4, 4, 4)).to(ms.float32)
    samples = Tensor([[[0.5, 0.5, 0.8]]], ms.float32)
    found = ops.fractional_max_pool3d(x, 1, (2, 2, 3), _random_samples=samples)
    assert found.flatten().tolist() == [0, 1, 3, 12, 13, 15, 48, 49, 51, 60, 61, 63]


@pytest.mark.parametrize("lower", [True, False])
def test_adjoint_triangular_systems_are_conjugate(lower: bool) -> None:
    full = np.array([[3, 2j, 3j], [1 + 1j, 1, 2j], [4, 5j, 1 - 1j]], np.complex64)
    right = np.array([[4j], [2], [1 + 3j]], np.complex64)
    triangle = np.tril(full) if lower else np.triu(full)
    solve = ops.MatrixTriangularSolve(lower=lower, adjoint=True)
    found = solve(Tensor(full), Tensor(right)).asnumpy()
    np.testing.assert_allclose(triangle.conj().T @ found, right, atol=1e-5)


def test_region_features_are_compiled_and_differentiated() -> None:
    features, rois = Tensor(floats(1, 2, 6, 6)), Tensor([[0, 1, 1, 4, 5]], ms.float32)
    align = ops.ROIAlign(2, 2, 1.0, 2)
    found = ms.jit(align)(features, rois)
    np.testing.assert_allclose(found.asnumpy(), align(features, rois).asnumpy(), 1e-5, 1e-6)
    grad = ms.grad(lambda f: align(f, rois).sum())(features)
    assert abs(grad.asnumpy().sum() - 8) < 1e-4  # every result is a mean of pixels


def test_labels_have_no_gradient() -> None:
    logits, labels = Tensor([[1.0, 2, 3]]), Tensor([[0.5, 0.5, 0]])
    for loss in (nn.SoftmaxCrossEntropyWithLogits(), ops.SoftmaxCrossEntropyWithLogits()):
        by = ms.grad(lambda a, b, f=loss: f(a, b)[0], 1)(logits, labels)
        assert not by.asnumpy().any()


def test_parts_of_images_show_an_object() -> None:
    size, boxes = Tensor([40, 30, 3], ms.int32), Tensor([[[0.2, 0.2, 0.6, 0.7]]], ms.float32)
    for seed in range(1, 9):
        sample = ops.SampleDistortedBoundingBoxV2(seed, area_range=(0.3, 1.0))
        begin, part, box = sample(size, boxes, Tensor([0.5], ms.float32))
        (y, x, _), (h, w, _) = begin.tolist(), part.tolist()
        np.testing.assert_allclose(box.asnumpy().ravel() * [40, 30, 40, 30], [y, x, y + h, x + w])
        shown = (min(y + h, 24) - max(y, 8)) * (min(x + w, 21) - max(x, 6))
        assert h * w >= 0.3 * 1200 and shown >= 0.5 * 16 * 15


def test_pools_of_random_windows() -> None:
    x = Tensor(np.arange(35, dtype=np.float32).reshape(1, 7, 5, 1))
    for pseudo in (False, True):
        y, rows, columns = ops.FractionalMaxPool([1.0, 1.5, 1.4, 1.0], pseudo)(x)
        found, edges = y.asnumpy()[0, :, :, 0], (rows.tolist(), columns.tolist())
        assert found.shape == (4, 3) and [edges[0][-1], edges[1][-1]] == [7, 5]
        np.testing.assert_array_equal(  # the last element of a window is its largest
            found, [[(a - 1) * 5 + b - 1 for b in edges[1][1:]] for a in edges[0][1:]])  # fmt: skip


def test_position_sensitive_pooling_says_what_it_needs() -> None:
    pooling = ops.operations.nn_ops.PSROIPooling
    for scale in (0, -0.5):
        with pytest.raises(ValueError, match="spatial_scale must be above 0"):
            pooling(scale, 3, 2)
    with pytest.raises(TypeError, match="spatial_scale must be a number"):
        pooling("1", 3, 2)
    for shapes in (((2, 19, 8, 9), (2, 5, 1)), ((2, 18, 8, 9), (2, 4, 1)), ((2, 18, 8), (2, 5, 1))):
        for kind in (RuntimeError, ValueError):
            with pytest.raises(kind, match=r"shape \(N, 18, H, W\), and rois \(N, 5, R\)") as e:
                pooling(0.5, 3, 2)(*map(ops.ones, shapes))
            assert "test_extra.py" in str(e.value)


def test_position_sensitive_pooling() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((2, 2 * 3 * 3, 8, 9)).astype(np.float32)
    boxes = np.array([[[0, 1, 0, 9, 8], [0, 2.4, 1.5, 15, 3]], [[1, -3, 0, 9, 8], [1, 0, 7, 6, 7]]])
    pool = ops.operations.nn_ops.PSROIPooling(0.5, 3, 2)
    rois = Tensor(np.swapaxes(boxes, 1, 2).astype(np.float32))
    found = pool(Tensor(features), rois)
    want = np.zeros((4, 2, 3, 3), np.float32)
    for n, (image, *ends) in enumerate(boxes.reshape(-1, 5)):
        x1, y1, x2, y2 = (math.copysign(math.floor(abs(e * 0.5) + 0.5), e) for e in ends)
        wide, high = max(x2 - x1, 0.1) / 3, max(y2 - y1, 0.1) / 3
        for c, i, j in np.ndindex(2, 3, 3):
            rows = slice(max(math.floor(y1 + i * high), 0), max(math.ceil(y1 + (i + 1) * high), 0))
            columns = slice(
                max(math.floor(x1 + j * wide), 0), max(math.ceil(x1 + (j + 1) * wide), 0)
            )
            part = features[int(image), (c * 3 + i) * 3 + j, rows, columns]
            want[n, c, i, j] = part.mean() if part.size else 0
    np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)
    by = ops.operations._grad_ops.PSROIPoolingGrad((8, 9), 0.5, 3, 2)
    weights = rng.standard_normal(want.shape).astype(np.float32)
    gradient = ms.grad(lambda f: (pool(f, rois) * Tensor(weights)).sum())(Tensor(features))
    np.testing.assert_allclose(
        by(Tensor(weights), rois).asnumpy(), gradient.asnumpy(), rtol=1e-5, atol=1e-6
    )  # fmt: skip


def test_triangles_of_a_vector_have_it_in_every_row() -> None:
    x = np.array([1, 2, 3])
    for name, k in (("triu", 0), ("tril", 1)):
        got = getattr(ms.numpy, name)(Tensor(x), k)
        np.testing.assert_array_equal(got.asnumpy(), getattr(np, name)(x, k))


def test_draws_of_shapes_that_broadcast() -> None:
    alpha, beta = Tensor([[3.0, 4.0], [5.0, 6.0]]), Tensor([1.0])
    assert ops.Gamma()((3, 1, 2), alpha, beta).shape == (3, 2, 2)
    assert ops.Poisson()((2, 1), Tensor([0.5, 4.0, 30.0])).shape == (2, 3)
    with pytest.raises(ShapeError, match="do not broadcast"):
        ops.Poisson()((2,), Tensor([1.0, 2.0, 3.0]))


def test_which_classes_are_right() -> None:
    x = Tensor([[0.1, 0.2, 0.4, 0.8], [0.2, 0.3, 0.5, 0.7]])
    target = Tensor([[1, 2, 0, 3], [2, 3, -1, 1]], ms.int32)
    loss, right = ops.MultilabelMarginLoss()(x, target)
    assert abs(loss.item() - 0.325) < 1e-6 and right.dtype == ms.int32
    assert right.asnumpy().tolist() == [[1, 1, 1, 1], [0, 0, 1, 1]]
