"""Dtypes, values and classes of errors where MindSpore 2.10 was asked what it does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
import tvmgraph.numpy as mnp
from tvmgraph import Parameter, Tensor, mint, nn, ops
from tvmgraph.ops.operations import _grad_ops

I, U = Tensor([1, 2], ms.int32), Tensor([1, 0], ms.uint8)
B, F, H = Tensor([True, False]), Tensor([1.0, 2.0]), Tensor([1.0, 2.0], ms.float16)
SQUARE = ops.ones((3, 3))
EDGES = Tensor([0, 2, 4])
PIXELS = Tensor(np.arange(1, 17, dtype=np.int32).reshape(1, 4, 4, 1))
ROI = Tensor([[0, 0.2, 0.3, 6.2, 6.3]], ms.float32)

#: Call -> dtype and elements of its result.
CASES: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "clamp by a fraction": (lambda: ops.clamp(I, 1.5, 9), ms.float32, [1.5, 2]),
    "bounds of two kinds": (lambda: mint.clamp(F, Tensor(0.0), 1), ms.float32, [1, 1]),
    "any of bytes": (lambda: ops.any(U), ms.uint8, 1),
    "any of bytes by rows": (lambda: U[None].any(1), ms.uint8, [1]),
    "the sign of wider numbers": (lambda: ops.copysign(H, -F), ms.float16, [-1, -2]),
    "integers with a sign": (lambda: ops.copysign(I, -H.double()), ms.float32, [-1, -2]),
    "the largest sum of a column": (lambda: ops.norm(Tensor([[1, -2], [3, 4]], ms.int32), ord=1),
                                    ms.int64, 6),
    "the least sum of a row": (lambda: ops.matrix_norm(Tensor([[1, -2], [3, 4]], ms.int32),
                                                       -math.inf), ms.int32, 3),
    "a count of bytes": (lambda: ops.norm(U, ord=0), ms.int64, 1),
    "the largest byte": (lambda: ops.vector_norm(U, math.inf), ms.uint8, 1),
    "a slice along a tensor": (lambda: SQUARE.select(Tensor(0), Tensor(1)), ms.float32, [1, 1, 1]),
    "shared by two kinds": (lambda: mnp.intersect1d(I, F), ms.float32, [1, 2]),
    "sums of logarithms of two kinds": (
        lambda: ops.logaddexp2(Tensor([1, 2], ms.float64), H), ms.float64, [2, 3]),
    "sums of short logarithms": (lambda: mnp.logaddexp2(H, I), ms.float16, [2, 3]),
    "running sums of large integers": (
        lambda: mnp.cumsum(Tensor([2**31, 1])), ms.int64, [2**31, 2**31 + 1]),
    "running products in another dtype": (
        lambda: mnp.cumprod(Tensor([2**30, 4], ms.int32), dtype=ms.int64), ms.int64,
        [2**30, 2**32]),
    "slopes of short floats": (lambda: mnp.gradient(H), ms.float32, [1, 1]),
    "an integral of short floats": (lambda: mnp.polyint(H), ms.float16, [0.5, 2, 0]),
    "roots of short floats": (lambda: mnp.cbrt(8 * H - 8), ms.float32, [0, 2]),
    "a triangle of a list": (lambda: mnp.tril_indices_from([[3, 1], [2, 4]])[0], ms.int32,
                             [0, 1, 1]),
    "a vector and a number": (lambda: mnp.convolve(I, 2), ms.int32, [2, 4]),
    "clip_by_value": (lambda: ops.clip_by_value(I, 1.5, 9), ms.int32, [1, 2]),
    "clip_by_norm": (lambda: ops.clip_by_norm(I, 9.0), ms.float32, [1, 2]),
    "diff of bools": (lambda: ops.diff(B), ms.bool_, [True]),
    "bools less bools": (lambda: B - Tensor([True, True]), ms.bool_, [False, True]),
    "bools subtracted": (lambda: ops.subtract(B, Tensor([True, True])), ms.int64, [0, -1]),
    "the least of integers": (lambda: mnp.minimum(I, 1.5), ms.int32, [1, 1]),
    "the least of fractions": (lambda: mnp.minimum(I, Tensor([1.5])), ms.float32, [1, 1.5]),
    "the largest small integer": (lambda: mnp.maximum(U, -1), ms.uint8, [1, 0]),
    "integers in an interval": (lambda: mnp.clip(I, 0.5, 1.5), ms.int32, [1, 1]),
    "integers below fractions": (lambda: mnp.clip(I, Tensor([1.5, 0.5]), 5), ms.float32, [1.5, 2]),
    "mean of integers": (lambda: mnp.mean([1, 2, 4]), ms.int32, 2),
    "average of integers": (lambda: mnp.average(Tensor([1, 2, 4], ms.int32)), ms.int32, 2),
    "ones of a size in a tensor": (lambda: mnp.ones(Tensor(2)), ms.float32, [1, 1]),
    "a word in capitals": (lambda: ops.irfft(F, norm="ORTHO"), ms.float32, [2.1213202, -0.7071068]),
    "capitals of a grid": (lambda: ops.grid_sample(
        ops.ones((1, 1, 2, 2)), ops.zeros((1, 1, 1, 2)), mode="BILINEAR", padding_mode="ZEROS"),
        ms.float32, [[[[1]]]]),
    "capitals of axes": (lambda: ops.meshgrid(I, I, indexing="IJ")[0], ms.int32, [[1, 1], [2, 2]]),
    "capitals of a sum": (lambda: ops.tensor_scatter_elements(
        F, Tensor([0]), Tensor([3.0]), 0, "ADD"), ms.float32, [4, 2]),
    "filled by its kind": (lambda: ops.fill(None, (2,), 1.5), ms.float32, [1.5, 1.5]),
    "no numbers of powers": (lambda: ops.logspace(Tensor(0.0), Tensor(2.0), 0), ms.float32, []),
    "one size for both axes": (lambda: ops.unfold(ops.ones((1, 1, 2, 2)), [2], stride=(1,)),
                               ms.float32, [[[1], [1], [1], [1]]]),
    "a number and a product": (lambda: ops.addmm(1, SQUARE, SQUARE)[0], ms.float32, [4, 4, 4]),
    "a number and products": (lambda: ops.addbmm(1, SQUARE[None], SQUARE[None])[0], ms.float32,
                              [4, 4, 4]),
    "no dropout outside of training": (lambda: nn.Dropout2d(0.5).set_train(False)(F), ms.float32,
                                       [1, 2]),
    "above an integer of NumPy": (lambda: ops.triu(SQUARE, np.int64(2))[0], ms.float32, [0, 0, 1]),
    "an order of NumPy": (lambda: ops.norm(F, ord=np.int64(1)), ms.float32, 3),
    "half normal": (lambda: nn.probability.distribution.HalfNormal(1.0, 2.0).log_prob(
        Tensor([-1.0, 0.0])), ms.float32, [-np.inf, -1.0439385]),
    "sum of bools": (lambda: ops.ReduceSum()(B), ms.bool_, True),
    "product of small integers": (lambda: ops.ReduceProd()(Tensor([2, 3], ms.int8)), ms.int8, 6),
    "product without NaN": (lambda: ops.MulNoNan()(F, Tensor(2.0, ms.float64)), ms.float64, [2, 4]),
    "counts of bools": (lambda: ops.bincount(B), ms.float32, [1, 1]),
    "powers of bools": (lambda: ops.vander(B), ms.int64, [[1, 1], [0, 1]]),
    "trace of bools": (lambda: ops.trace(Tensor([[True, False], [False, True]])), ms.bool_, True),
    "a matrix of one axis": (lambda: ops.Flatten()(F), ms.float32, [[1], [2]]),
    "mean by its name in ops": (
        lambda: ops.auto_generate.mean_ext(F, axis=0, keep_dims=True), ms.float32, [1.5]
    ),
    "the layer of a metric's name": (
        lambda: nn.layer.CosineSimilarity()(
            Tensor([[1.0, 3, 4], [2, 4, 2]]), Tensor([[2.0, 4, 2], [3, 1, 5]])
        ), ms.float32, [0.8807048, 0.6900656],
    ),
    "half scores of probabilities": (lambda: ops.cross_entropy(H[None], Tensor([[0.0, 1.0]])),
                                     ms.float32, 0.3132617),
    "half scores of weights": (lambda: nn.CrossEntropyLoss(F)(H[None], Tensor([1], ms.int32)),
                               ms.float32, 0.3132617),
    "half likelihoods of weights": (lambda: ops.nll_loss(H[None], Tensor([1], ms.int32), F),
                                    ms.float32, -2),
    "half scores of labels": (lambda: ops.binary_cross_entropy_with_logits(H, Tensor([0.0, 1.0])),
                              ms.float32, 0.7200948),
    "scores of half labels": (lambda: ops.binary_cross_entropy_with_logits(
        F, Tensor([0.0, 1.0], ms.float16)), ms.float16, 0.72021484),
    "half scores of many labels": (lambda: ops.multilabel_soft_margin_loss(
        H[None], Tensor([[0.0, 1.0]])), ms.float32, 0.7200948),
    "half scores in focus": (lambda: nn.FocalLoss()(H[None], Tensor([[0.0, 1.0]])),
                             ms.float32, 0.0113289),
    "integers of complex numbers": (lambda: Tensor([False, 0j, 1, 2.1, 1 + 2j], ms.int32), ms.int32,
                                    [0, 0, 1, 2, 1]),
    "softmax without an axis": (lambda: ops.function.nn_func.softmax_ext(Tensor([1.0, 1.0])),
                                ms.float32, [0.5, 0.5]),
    "axes of a view": (lambda: ops.auto_generate.transpose_view(Tensor([[1, 2]]), (1, 0)),
                       ms.int64, [[1], [2]]),
    "fft of half": (lambda: ops.fft(H), ms.complex64, [3, -1]),
    "shift of one": (lambda: ops.ifftshift(Tensor(3)), ms.int64, 3),
    "running product": (lambda: ops.CumProd()(I, 0), ms.int32, [1, 2]),
    "single matrices": (lambda: SQUARE.addbmm(SQUARE, SQUARE)[0], ms.float32, [10, 10, 10]),
    "size in a tensor": (lambda: F.reshape((1, 2)).expand(Tensor([2, 2])), ms.float32,
                         [[1, 2], [1, 2]]),
    "a band by tensors": (lambda: ops.matrix_band_part(SQUARE, Tensor(0), 1), ms.float32,
                          [[1, 1, 0], [0, 1, 1], [0, 0, 1]]),
    "the conjugate system": (lambda: ops.matrix_solve(Tensor([[2j]]), Tensor([[2 + 0j]]), True),
                             ms.complex128, [[1j]]),
    "gates of nothing": (lambda: ops.glu(ops.zeros((2, 0, 4)), 1), ms.float32,
                         np.zeros((2, 0, 4))),
    "spectra of complex": (lambda: ops.stft(Tensor(np.full(6, 1j, np.complex64)), 4,
                                            center=False)[0], ms.complex64, [4j, 4j, 4j]),
    "one element added": (lambda: ops.AssignAdd()(Parameter(Tensor(1, ms.int32)),
                                                  Tensor([2], ms.int32)), ms.int32, 3),
    "as many samples as pixels": (lambda: ops.ROIAlign(1, 1, 0.5, -1)(
        ops.ones((1, 1, 4, 4)), ROI), ms.float32, [[[[1]]]]),
    "mean windows": (lambda: _grad_ops.FractionalAvgPoolGrad()(
        Tensor([1, 4, 4, 1]), ops.ones((1, 2, 2, 1)), EDGES, EDGES)[0, 0, :, 0], ms.float32,
        [0.25] * 4),
    "largest of windows": (lambda: _grad_ops.FractionalMaxPoolGrad(True)(
        PIXELS, PIXELS[:, :2, :2], ops.ones((1, 2, 2, 1), ms.int32), EDGES, EDGES)[0, 3, :, 0],
        ms.int32, [0, 0, 1, 1]),
    "places along each axis": (lambda: ops.UnravelIndex()(Tensor([2, 5, 7]), Tensor([3, 3])),
                               ms.int64, [[0, 1, 2], [2, 2, 1]]),
    "where an initial value is least": (lambda: ops.min(
        Tensor([[2, 5, 1, 6], [3, -7, -2, 4]]), 1, initial=0,
        where=Tensor([[True, False, True, False], [False, False, True, True]]))[1],
        ms.int64, [0, 2]),
    "numpy: small angles": (lambda: mnp.sin(U * 0), ms.float16, [0, 0]),
    "numpy: angles": (lambda: mnp.arctan2(I * 0, I), ms.float32, [0, 0]),
    "numpy: ceil": (lambda: mnp.ceil(I), ms.float32, [1, 2]),
    "numpy: copysign": (lambda: mnp.copysign(I, -1), ms.int32, [-1, -2]),
    "numpy: exp2": (lambda: mnp.exp2(I), ms.int32, [2, 4]),
    "numpy: float_power": (lambda: mnp.float_power(F.double(), 2), ms.float32, [1, 4]),
    "numpy: gcd": (lambda: mnp.gcd(F * 4, F * 6), ms.float32, [2, 4]),
    "numpy: lcm": (lambda: mnp.lcm(I * 4, I * 6), ms.int32, [12, 24]),
    "numpy: nanmean": (lambda: mnp.nanmean(H), ms.float32, 1.5),
    "numpy: reciprocal": (lambda: mnp.reciprocal(I), ms.int32, [1, 0]),
    "scaled by a number": (lambda: ops.ldexp(F, 1), ms.float32, [2, 4]),
    "numpy: roll": (lambda: mnp.roll(mnp.array([[1, 2, 3]]), [-2, -3], 1), ms.int32, [[3, 1, 2]]),
    "numpy: sign": (lambda: mnp.sign(I), ms.float32, [1, 1]),
    "numpy: trace": (lambda: mnp.trace(mnp.eye(2, dtype=ms.int32)), ms.int64, 2),
    "numpy: no differences": (lambda: mnp.diff(I, 0, append=3), ms.int32, [1, 2]),
    "more than a power left of 0": (lambda: ops.polygamma(Tensor(2), Tensor([-0.5, -2.25])),
                                    ms.float32, [-0.828797, 123.896957]),
    "an order for each": (lambda: ops.polygamma(Tensor([1, 2, 3]), Tensor([-0.5] * 3)), ms.float32,
                          [8.934803, -0.828797, 193.409088]),
    "distances of half powers": (lambda: ms.grad(
        lambda x: ops.cdist(x, Tensor([[1.0, 2.5]]), 0.5).sum())(F[None]), ms.float32, [[0, -1]]),
    "divided by a number": (lambda: ops.DivNoNan()(H, 2), ms.float16, [0.5, 1]),
    "divided by no number": (lambda: ops.DivNoNan()(U, 0.0), ms.float32, [0, 0]),
    "remainder by a tensor of a number": (lambda: ops.fmod(U, Tensor(2)), ms.uint8, [1, 0]),
    "samples like halves": (lambda: ops.randn_like(H)[:0], ms.float32, []),
    "halves of a matrix": (lambda: ops.det(Tensor([[2.0, 1], [1, 2]], ms.float16)), ms.float16, 3),
    "logarithm of halves": (lambda: ops.slogdet(Tensor([[1.0]], ms.float16))[1], ms.float16, 0),
    "system of halves": (lambda: ops.lu_solve(Tensor([[2.0]], ms.float16), Tensor(
        [[4.0]], ms.float16), Tensor([1], ms.int32)), ms.float16, [[0.5]]),
    "area of doubles": (lambda: ops.trapz(F.double(), F.double()), ms.float32, 1.5),
    "area of halves": (lambda: ops.trapz(H), ms.float16, 1.5),
    "covariance of halves": (lambda: ops.cov(H), ms.float32, 0.5),
    "bins of halves": (lambda: ops.histc(H, 2, 1.0, 2.0), ms.float32, [1, 1]),
    "condition of doubles": (lambda: ops.cond(SQUARE.double() + ops.eye(3)), ms.float32, 4),
    "powers of pixels": (lambda: ops.vander(U), ms.int64, [[1, 1], [0, 1]]),
    "products of pixels": (lambda: ops.vecdot(U, U), ms.int64, 1),
    "trace of pixels": (lambda: U.reshape((1, 2)).trace(), ms.int64, 1),
    "sum of singular halves": (lambda: ops.norm(H.reshape((1, 2)), ord="nuc"), ms.float32, 5**0.5),
    "the largest of integers": (lambda: ops.vector_norm(I, ord=math.inf), ms.int32, 2),
    "a fraction of a number": (lambda: mint.add(H, 2.5, alpha=2), ms.float16, [6, 7]),
    "a fraction of integers": (lambda: mint.sub(H, I, alpha=0.5), ms.float16, [0.5, 1]),
    "counts of floats": (lambda: ops.bincount(Tensor([1.0, 2.9])), ms.float32, [0, 1, 1]),
    "derivative for halves": (lambda: ops.polygamma(1, H), ms.float16, [1.644531, 0.64502]),
    "pixels repeated": (lambda: ops.interpolate(PIXELS[..., 0].astype(ms.uint8), size=(2,),
                                                mode="nearest"), ms.uint8,
                        [[[1, 3], [5, 7], [9, 11], [13, 15]]]),
    "power mean of integers": (lambda: ops.lp_pool1d(I.reshape((1, 1, 2)), 1, 2), ms.float32,
                               [[[3]]]),
    "likelihood of integers": (lambda: ops.gaussian_nll_loss(I, I * 0, I * 0 + 1), ms.float32,
                               1.25),
    "one target for all": (lambda: nn.MarginRankingLoss()(F, F * 0, Tensor(-1.0)), ms.float32, 1.5),
    "labels of all rows": (lambda: nn.MultiLabelSoftMarginLoss()(SQUARE * 0, ops.zeros(3)),
                           ms.float32, math.log(2)),
    "a sequence of halves": (lambda: nn.GRU(2, 1)(H.reshape((1, 1, 2)))[1] * 0, ms.float16,
                             [[[0]]]),
    "logarithms before the first": (lambda: ops.CumulativeLogsumexp(exclusive=True)(F, Tensor(0)),
                                    ms.float32, [np.finfo(np.float32).min, 1]),
    "variance of halves": (lambda: ops.LayerNorm()(H.reshape((1, 2)), H, H)[2], ms.float32,
                           [[0.25]]),
    "lognormal halves": (lambda: H.log_normal() * 0, ms.float16, [0, 0]),
    "Cauchy integers": (lambda: Tensor([1, 2], ms.int32).cauchy(7.0, 0.0), ms.int32, [7, 7]),
    "numpy: quotient of doubles": (lambda: mnp.divide(F.double(), 2), ms.float32, [0.5, 1]),
    "numpy: quotient by a fraction": (lambda: mnp.divide(H, 2.5), ms.float32, [0.4, 0.8]),
    "numpy: trunc of doubles": (lambda: mnp.trunc(F.double()), ms.float32, [1, 2]),
    "numpy: pixels between": (lambda: mnp.clip(U, 0, 2), ms.uint8, [1, 0]),
    "numpy: mean of doubles": (lambda: mnp.nanmean(F.double()), ms.float64, 1.5),
    "numpy: remainder of pixels": (lambda: mnp.fmod(U, 2), ms.int32, [1, 0]),
    "numpy: one condition": (lambda: mnp.piecewise(2, True, [lambda x: x - 1]), ms.int32, 1),
}  # fmt: skip

#: Call -> the built-in class of its error.
MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "a number for a tensor": (lambda: ops.sin(1.5), TypeError),
    "an array for a tensor": (lambda: mint.tanh(np.ones(2)), TypeError),
    "a number for a matrix": (lambda: ops.cholesky(1.0), TypeError),
    "None for an operator class": (lambda: ops.Flatten()(None), TypeError),
    "a length below 0": (lambda: ops.fft(F, -1), ValueError),
    "a slice before the start": (lambda: ops.slice(F, (-1,), (1,)), ValueError),
    "random integers like": (lambda: ops.rand_like(I, dtype=ms.int32), ValueError),
    "an order of another kind": (lambda: ops.norm(F, "bogus"), TypeError),
    "repeated less than never": (lambda: ops.repeat_interleave(F, -1), RuntimeError),
    "a sequence too long": (lambda: ops.CTCGreedyDecoder()(ops.ones((2, 2, 3)), I + 2),
                            RuntimeError),
    "likelihood of complex": (lambda: ops.gaussian_nll_loss(*[Tensor([1j])] * 3), TypeError),
    "power mean of complex numbers": (lambda: ops.lp_pool1d(Tensor([[[1j]]]), 1, 1), TypeError),
    "segments of bools": (lambda: ops.unsorted_segment_min(B, I, 2), TypeError),
    "numpy: counts of floats": (lambda: mnp.bincount(F), TypeError),
    "numpy: random integers": (lambda: mnp.randn(dtype=ms.int32), ValueError),
    "numpy: a shape of floats": (lambda: mnp.rand(1, 1.5), TypeError),
    "numpy: bounds in a list": (lambda: mnp.amax(F, initial=[1.0]), TypeError),
    "numpy: a flag": (lambda: mnp.intersect1d(I, I, assume_unique=1), TypeError),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_result(name: str, compiled: bool) -> None:
    compute, dtype, wanted = CASES[name]
    found = ms.jit(compute)() if compiled else compute()
    assert found.dtype == dtype
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    compute, wanted = MISTAKES[name]
    with pytest.raises(wanted) as caught:
        compute()
    assert isinstance(caught.value, ms.errors.TvmgraphError)


def test_parameters_keep_what_vmap_assigns() -> None:
    """As one call on the whole, whatever the axis, also twice around and compiled."""
    start, gradient = np.arange(8, dtype=np.float32).reshape(2, 2, 2), ops.ones((2, 2, 2))

    def after(run: Callable[..., Any]) -> np.ndarray:
        parameters = [Parameter(Tensor(start), name=f"p{i}") for i in range(2)]
        run(ops.ApplyAdagrad())(*parameters, 0.1, gradient)
        return parameters[0].asnumpy()

    wanted = after(lambda f: f)
    for axis in (0, 2):
        axes = (axis, axis, None, axis)
        np.testing.assert_allclose(after(lambda f: ms.vmap(f, axes, axis)), wanted)  # noqa: B023
    inner = (0, 0, None, 0)
    np.testing.assert_allclose(after(lambda f: ms.vmap(ms.vmap(f, inner), inner)), wanted)
    np.testing.assert_allclose(after(lambda f: ms.jit(ms.vmap(f, inner))), wanted, rtol=1e-6)


def test_loss_scales_keep_their_type() -> None:
    for manager in (ms.FixedLossScaleManager, ms.DynamicLossScaleManager):
        assert type(manager(16).get_loss_scale()) is int
    assert type(nn.FixedLossScaleUpdateCell(16).get_loss_scale()) is int
    assert type(nn.DynamicLossScaleUpdateCell(16.0, 2, 3).get_loss_scale()) is float
