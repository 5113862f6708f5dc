"""MindSpore's operators of gradients are the gradients of the operators they belong to."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, nn, ops

P = Tensor(np.array([[0.2, 0.5, 0.8], [0.3, 0.6, 0.7]], np.float32))
X = Tensor(np.array([[-1.5, -0.2, 0.1], [0.4, 1.2, 7.0]], np.float32))
DY = Tensor(np.array([[1.0, -2, 3], [0.5, 0.1, -1]], np.float32))
G: Any = importlib.import_module("tvmgraph.ops.operations._grad_ops")
#: Name, forward function, its operand, and arguments of the operator from operand and result.
CASES: list[tuple[str, Any, Tensor, Any]] = [
    *((f"{n}Grad", f, P, lambda x, y: (x, DY)) for n, f in
      (("Abs", ops.abs), ("ACos", ops.acos), ("Asin", ops.asin), ("Atan", ops.atan))),
    *((f"{n}Grad", f, P, lambda x, y: (y, DY)) for n, f in
      (("Acosh", lambda x: ops.acosh(x + 1)), ("Asinh", ops.asinh), ("Inv", ops.reciprocal),
       ("Reciprocal", ops.reciprocal), ("Rsqrt", ops.rsqrt), ("Sigmoid", ops.sigmoid),
       ("Sqrt", ops.sqrt), ("Tanh", ops.tanh), ("Softmax", lambda x: ops.softmax(x, -1)),
       ("LogSoftmax", lambda x: ops.log_softmax(x, -1)))),
    *((f"{n}Grad", f, X, lambda x, y: (DY, x)) for n, f in
      (("FastGeLU", ops.fast_gelu), ("Relu", ops.relu), ("ReLU6", ops.relu6),
       ("HSigmoid", ops.hardsigmoid), ("HSwish", ops.hardswish), ("SiLU", ops.silu),
       ("Softplus", ops.softplus), ("HShrink", ops.hardshrink), ("SoftShrink", ops.softshrink))),
    ("EluGrad", ops.elu, X, lambda x, y: (DY, y)),
    ("GeLUGrad", lambda x: ops.gelu(x, "tanh"), X, lambda x, y: (DY, x, y)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "forward", "x", "args"), CASES, ids=[c[0] for c in CASES])
def test_gradient(name: str, forward: Any, x: Tensor, args: Any) -> None:
    want = ms.grad(lambda t: (forward(t) * DY).sum())(x)
    found = getattr(G, name)()(*args(x, forward(x)))
    np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
def test_pools(kind: str) -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32))
    pool = getattr(ops, kind)(2, 2)
    y = pool(x)
    want = ms.grad(lambda t: (pool(t) * y).sum())(x)
    found = getattr(G, f"{kind}Grad")(2, 2)(x, y, y)
    np.testing.assert_allclose(found.asnumpy(), want.asnumpy(), rtol=2e-6)


IMAGE = Tensor(np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32))
SHIFT = Tensor(np.array([1, 2, 3], np.float32))
LABELS, MARKED = Tensor([2, 0]), Tensor(np.array([[0, -1, 1], [2, 0, -1]], np.int32))
#: Operator, forward function of an operand, the operand, arguments from operand, cotangent, result.
MORE: list[tuple[Any, Any, Tensor, Any]] = [
    (G.AdaptiveAvgPool2DGrad(), lambda x: ops.adaptive_avg_pool2d(x, 3), IMAGE,
     lambda x, dy, y: (dy, Tensor(x.shape))),
    (G.AdaptiveAvgPool3DGrad(), lambda x: ops.adaptive_avg_pool3d(x, (1, 3, 2)), IMAGE[None],
     lambda x, dy, y: (dy, x.shape)),
    (G.AdaptiveMaxPool2DGrad(), lambda x: ops.adaptive_max_pool2d(x, 2), IMAGE,
     lambda x, dy, y: (dy, x, ops.adaptive_max_pool2d(x, 2, True)[1])),
    (G.AffineGridGrad(True), lambda t: ops.affine_grid(t, (1, 1, 3, 4), True), X[None],
     lambda x, dy, y: (dy, (1, 1, 3, 4))),
    (G.CholeskyGrad(), ops.cholesky, ops.matmul(X, X.T), lambda x, dy, y: (y, dy)),
    (G.GatherDGradV2(), lambda x: ops.gather_d(x, 1, Tensor([[0, 0], [1, 2]])), X,
     lambda x, dy, y: (x, 1, Tensor([[0, 0], [1, 2]]), dy)),
    (G.MaxPool3DGrad((1, 1, 1, 2, 2), (1, 1, 1, 2, 2)),
     ops.MaxPool3D((1, 2, 2), (1, 2, 2)), IMAGE[None], lambda x, dy, y: (x, y, dy)),
    (G.MirrorPadGrad("SYMMETRIC"),
     lambda x: ops.MirrorPad("SYMMETRIC")(x, Tensor([[1, 0], [2, 1]])), X,
     lambda x, dy, y: (dy, Tensor([[1, 0], [2, 1]]))),
    (G.MultiMarginLossGrad(2, 0.5), lambda x: ops.multi_margin_loss(x, LABELS, 2, 0.5, SHIFT), X,
     lambda x, dy, y: (dy, x, LABELS, SHIFT)),
    (G.MultilabelMarginLossGrad("sum"),
     lambda x: ops.multilabel_margin_loss(x, MARKED, "sum"), X,
     lambda x, dy, y: (dy, x, MARKED, MARKED)),
    (G.MvlgammaGrad(2), lambda x: ops.mvlgamma(x + 2, 2), P, lambda x, dy, y: (dy, x + 2)),
    (G.PdistGrad(3.0), lambda x: ops.pdist(x, 3.0), X, lambda x, dy, y: (dy, x, y)),
    (G.SeluGrad(), ops.selu, X, lambda x, dy, y: (dy, y)),
    (G.CdistGrad(3.0), lambda x: ops.cdist(x, X, 3.0), P, lambda x, dy, y: (dy, x, X, y)),
    (G.Conv2DBackpropFilter(3, 2), lambda w: ops.conv2d(IMAGE, w),
     Tensor(np.ones((3, 2, 2, 2), np.float32)), lambda w, dy, y: (dy, IMAGE, w.shape)),
    (G.DropoutGrad(0.5), lambda x: x * DY / 0.5, P, lambda x, dy, y: (dy, DY)),
    (G.KLDivLossGrad("batchmean"), lambda x: ops.kl_div(x, P, "batchmean"), X,
     lambda x, dy, y: (dy, x, P)),
    (G.LRNGrad(1), ops.LRN(1), IMAGE, lambda x, dy, y: (dy, x, y)),
    (G.L2NormalizeGrad(1), ops.L2Normalize(1), X, lambda x, dy, y: (x, y, dy)),
    (G.NLLLossGrad("sum"), lambda x: ops.nll_loss(x, Tensor([0, 2]), SHIFT, reduction="sum"), X,
     lambda x, dy, y: (x, dy, Tensor([0, 2]), SHIFT, None)),
    (G.PadV3Grad("reflect"), lambda x: ops.pad(x, (1, 2), "reflect"), X,
     lambda x, dy, y: (dy, (1, 2))),
    (G.ResizeBilinearGrad(True), lambda x: ops.ResizeBilinearV2(True)(x, (6, 7)), IMAGE,
     lambda x, dy, y: (dy, x)),
    (G.ResizeNearestNeighborV2Grad(), lambda x: ops.ResizeNearestNeighborV2()(x, (6, 7)), IMAGE,
     lambda x, dy, y: (dy, x.shape[2:])),
    (G.SliceGrad(), lambda x: ops.slice(x, (0, 1), (2, 2)), X,
     lambda x, dy, y: (dy, x, (0, 1), (2, 2))),
    (G.SoftmaxBackward(), lambda x: ops.softmax(x, 0), X, lambda x, dy, y: (dy, y, 0)),
    (G.FlattenGrad(), lambda x: x.reshape(-1), X, lambda x, dy, y: (dy, x.shape)),
    (G.GluGrad(0), lambda x: ops.glu(x, 0), X, lambda x, dy, y: (dy, x)),
    (G.LogitGrad(), ops.logit, P, lambda x, dy, y: (dy, x)),
    (G.MaskedSelectGrad(), lambda x: x[P > 0.4], X, lambda x, dy, y: (x, P > 0.4, dy)),
    (G.ResizeLinear1DGrad(), lambda x: ops.ResizeLinear1D()(x, (7,)), IMAGE[0],
     lambda x, dy, y: (dy, x)),
    (G.SoftMarginLossGrad("sum"), lambda x: ops.soft_margin_loss(x, DY, "sum"), X,
     lambda x, dy, y: (x, DY, dy)),
    (G.BinaryCrossEntropyGrad("none"), lambda x: ops.binary_cross_entropy(x, P, DY, "none"), P,
     lambda x, dy, y: (x, P, dy, DY)),
    (G.TraceGrad(), ops.trace, X, lambda x, dy, y: (dy, x.shape)),
    (G.StridedSliceGrad(), lambda x: x[:, ::2], X,
     lambda x, dy, y: (dy, x.shape, (0, 0), (2, 3), (1, 2))),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "forward", "x", "args"), MORE, ids=[c[0].name for c in MORE])
def test_gradient_of_other_arguments(operator: Any, forward: Any, x: Tensor, args: Any) -> None:
    y, back = ops.vjp(forward, x)
    dy = ops.cos(y)
    found = operator(*args(x, dy, y))
    np.testing.assert_allclose(found.asnumpy(), back(dy)[0].asnumpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("reduction", ["none", "mean", "batchmean", "sum"])
def test_the_divergence_of_single_numbers(reduction: str) -> None:
    found = G.KLDivLossGrad(reduction)(Tensor(2.0), Tensor(0.3), Tensor(0.5))
    assert (found.shape, found.item()) == ((), -1.0)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_layer_norm_grad_takes_the_mean_and_the_variance_given(axis: int) -> None:
    r = np.random.default_rng(3)
    x, dy, gamma = (r.standard_normal((3, 2, 4)).astype(np.float32) for _ in range(3))
    over = tuple(range(axis % 3, 3))
    gamma = gamma.reshape(-1, *x.shape[axis:])[0] if axis else gamma
    mean, var = (r.uniform(0.5, 1, (*x.shape[: axis % 3], *(1,) * len(over))) for _ in range(2))
    each, away = dy * gamma, x - mean  # the derivative of the sums that make mean and variance
    of_var = (-0.5 * each * away * var**-1.5).sum(over, keepdims=True)
    of_mean = -(each * var**-0.5).sum(over, keepdims=True)
    of_mean = of_mean + of_var * (-2 * away).mean(over, keepdims=True)
    count = np.prod([x.shape[a] for a in over])
    want = each * var**-0.5 + of_var * 2 * away / count + of_mean / count
    args = (Tensor(x), Tensor(dy), *(Tensor(t, ms.float32) for t in (var, mean)))
    for call in (G.LayerNormGrad(axis, axis), ms.jit(G.LayerNormGrad(axis, axis))):
        dx, dgamma, dbeta = call(*args, Tensor(gamma))
        rest = tuple(range(axis % 3))
        np.testing.assert_allclose(dx.asnumpy(), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(dbeta.asnumpy(), dy.sum(rest), rtol=1e-4, atol=1e-5)
        of_gamma = (dy * away * var**-0.5).sum(rest)
        np.testing.assert_allclose(dgamma.asnumpy(), of_gamma, rtol=1e-4, atol=1e-5)


def test_gradients_of_normalisations() -> None:
    norm = ops.LayerNorm()
    (_, mean, variance), dy = norm(X, SHIFT, SHIFT), ops.cos(X)
    want = ops.vjp(lambda *t: norm(*t)[0], X, SHIFT, SHIFT)[1](dy)
    for a, b in zip(G.LayerNormGrad()(X, dy, variance, mean, SHIFT), want, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)
    assert len(G.LayerNormGradGrad()(X, dy, variance, mean, SHIFT, X, SHIFT, SHIFT)) == 3
    mean, variance = ops.mean(X, 0), ops.var(X, 0, False)

    def batch(x: Tensor, scale: Tensor) -> Tensor:
        return scale * (x - x.mean(0)) / ops.sqrt(ops.var(x, 0, False) + 1e-5)

    want = ops.vjp(batch, X, SHIFT)[1](dy)
    for a, b in zip(G.BatchNormGrad(True)(dy, X, SHIFT, mean, variance, None), want, strict=False):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-5)


def test_pools_by_the_elements_they_chose() -> None:
    y, chosen = ops.max_pool2d(IMAGE, 2, 2, return_indices=True)
    dx = G.MaxPoolGradWithArgmax(2, 2)(IMAGE, y, chosen)
    np.testing.assert_allclose(dx.asnumpy(), G.MaxPoolGrad(2, 2)(IMAGE, y, y).asnumpy())
    again = G.MaxPoolGradGrad(2, 2)(IMAGE, y, dx)
    np.testing.assert_allclose(again.asnumpy(), y.asnumpy())
    per_image = chosen + 16 * ops.arange(2).reshape(1, 2, 1, 1)
    again = G.MaxPoolGradGradWithArgmax(2, 2)(IMAGE, dx, per_image)
    np.testing.assert_allclose(again.asnumpy(), y.asnumpy())
    offsets = G.ConcatOffset(2, 1)((X, P))
    assert offsets.tolist() == [[0, 0], [0, 3]]


def test_the_gradient_of_igamma_by_its_order() -> None:
    # (igamma(a + h) - igamma(a - h)) / 2h in double precision, of a = 1 and 2, x = 1.5 and 0.5
    found = G.IgammaGradA()(Tensor([1.0, 2.0]), Tensor([1.5, 0.5]))
    np.testing.assert_allclose(found.asnumpy(), [-0.3192853, -0.1510342], rtol=1e-5)


def test_inputs_may_be_declared_without_a_number_of_axes() -> None:
    class Sum(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x.sum()

    declared = Tensor(shape=None, dtype=ms.float32)
    assert declared.shape == (-2,)
    net = Sum()
    net.set_inputs(declared)
    function = ms.jit(net)
    found = [function(ops.ones(shape)).item() for shape in ((2, 3), (4,), (2, 2, 2))]
    assert found == [6.0, 4.0, 8.0]
    with pytest.raises(TypeError):
        function(ops.ones((2, 3), ms.float64))


def test_what_came_through_positions_is_added_there() -> None:
    found = G.SparseSegmentSumGrad()(X, Tensor([0, 2, 0]), Tensor([0, 0, 1]), 4)
    rows = X.asnumpy()
    want = np.stack([rows[0] + rows[1], 0 * rows[0], rows[0], 0 * rows[0]])
    np.testing.assert_array_equal(found.asnumpy(), want)
    assert G.UniqueGrad()((SHIFT, SHIFT), Tensor([0, 2, 1, 1])).tolist() == [1, 3, 2, 2]
