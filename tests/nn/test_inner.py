"""Primitives that layers hold for subclasses, and members that training cells offer to them."""

from __future__ import annotations

import numpy as np
import pytest

from tvmgraph import Parameter, Tensor, jit, nn, ops
from tvmgraph.nn.inner import MEMBERS

RNG = np.random.default_rng(0)


def _tensor(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape).astype(np.float32))


def _with_bias(layer, found):
    return layer.bias_add(found, layer.bias) if layer.has_bias else found


#: A layer, its input, and what MindSpore's layer computes with its Primitives.
LAYERS = {
    "Conv2d": (
        lambda: nn.Conv2d(3, 4, 3, 2, "pad", (1, 2, 3, 0), has_bias=True), (2, 3, 8, 9),
        lambda c, x: _with_bias(c, c.conv2d(x, c.weight)),
    ),
    "grouped Conv2d": (
        lambda: nn.Conv2d(4, 4, 3, dilation=2, group=2), (2, 4, 8, 9),
        lambda c, x: c.conv2d(x, c.weight),
    ),
    "Conv1d": (
        lambda: nn.Conv1d(3, 4, 3, 2, "pad", 1, has_bias=True), (2, 3, 8),
        lambda c, x: _with_bias(c, c.squeeze(c.conv2d(c.expand_dims(x, 2), c.weight))),
    ),
    "Conv3d": (lambda: nn.Conv3d(3, 4, 3), (1, 3, 4, 5, 4), lambda c, x: c.conv3d(x, c.weight)),
    "Dense": (
        lambda: nn.Dense(5, 3), (4, 5),
        lambda c, x: c.bias_add(c.matmul(x, c.weight), c.bias),
    ),
    "LayerNorm": (
        lambda: nn.LayerNorm((5,)), (4, 5), lambda c, x: c.layer_norm(x, c.gamma, c.beta)[0],
    ),
    "BatchNorm2d": (
        lambda: nn.BatchNorm2d(3), (2, 3, 4, 4),
        lambda c, x: c.bn_infer(x, c.gamma, c.beta, c.moving_mean, c.moving_variance)[0],
    ),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2, "same"), (1, 2, 7, 7), lambda c, x: c.max_pool(x)),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2), (1, 2, 7, 7), lambda c, x: c.avg_pool(x)),
    "Softmax": (lambda: nn.Softmax(0), (3, 4), lambda c, x: c.softmax(x)),
    "ELU": (lambda: nn.ELU(0.5), (3, 4), lambda c, x: c.elu(x)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_its_primitives(name: str) -> None:
    make, shape, construct = LAYERS[name]
    layer = make()
    x = _tensor(*shape)
    expected = layer(x).asnumpy()
    np.testing.assert_allclose(construct(layer, x).asnumpy(), expected, rtol=1e-5, atol=1e-6)


def _made(name: str):
    made = {
        "Conv1d": lambda c: c(3, 4, 3), "Conv2d": lambda c: c(3, 4, 3),
        "Conv3d": lambda c: c(3, 4, 3), "Conv2dTranspose": lambda c: c(3, 4, 3),
        "Dense": lambda c: c(3, 4), "LayerNorm": lambda c: c((4,)), "BatchNorm3d": lambda c: c(4),
        "Embedding": lambda c: c(5, 4), "AdaptiveAvgPool2d": lambda c: c(2),
        "Pad": lambda c: c(((1, 1),)),
    }  # fmt: skip
    cls = nn.BatchNorm2d if name == "_BatchNorm" else getattr(nn, name)
    return cls(3) if name == "_BatchNorm" else made.get(name, lambda c: c())(cls)


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_can_be_made(name: str) -> None:
    layer = _made(name)
    for member in MEMBERS[name]:
        assert getattr(layer, member) is not None


def test_a_subclass_calls_what_its_layer_holds() -> None:
    class Standardized(nn.Conv2d):
        def construct(self, x):
            w = self.weight - self.weight.mean((1, 2, 3), keep_dims=True)
            return self.bias_add(self.conv2d(x, w), self.bias)

    layer, x = Standardized(3, 4, 3, has_bias=True), _tensor(1, 3, 6, 6)
    np.testing.assert_allclose(jit(layer)(x).asnumpy(), layer(x).asnumpy(), rtol=1e-4, atol=1e-5)


def test_loss_classes_of_users_reduce_with_what_the_base_holds() -> None:
    class Squared(nn.LossBase):
        def construct(self, a, b):
            return self.reduce_mean(self.mul(a - b, a - b)) if self.average else a

    a, b = _tensor(3, 4), _tensor(3, 4)
    np.testing.assert_allclose(
        float(Squared()(a, b)), np.mean((a.asnumpy() - b.asnumpy()) ** 2), rtol=1e-6
    )


_scale_gradient = ops.MultitypeFuncGraph("scale_gradient")


@_scale_gradient.register("Tensor", "Tensor")
def _scaled(scale, gradient):
    return gradient * ops.cast(ops.Reciprocal()(scale), ops.dtype(gradient))


class ClippedStep(nn.TrainOneStepWithLossScaleCell):
    """The training cell that detection zoos write."""

    def construct(self, *inputs):
        loss = self.network(*inputs)
        status, scale = self.start_overflow_check(loss, self.scale_sense)
        filled = ops.ones_like(loss) * ops.cast(scale, ops.dtype(loss))
        gradients = self.grad(self.network, self.weights)(*inputs, filled)
        gradients = self.hyper_map(ops.partial(_scale_gradient, scale), gradients)
        overflow = self.get_overflow_status(status, self.grad_reducer(gradients))
        if not self.process_loss_scale(overflow):
            loss = ops.depend(loss, self.optimizer(ops.clip_by_global_norm(gradients, 1.0)))
        return loss, overflow, scale


@pytest.mark.parametrize("factor", [2, 1.5])
def test_a_loss_scale_changes_by_any_factor_above_one(factor: float) -> None:
    update = nn.DynamicLossScaleUpdateCell(16.0, factor, 2)
    scale = Parameter(Tensor(update.get_loss_scale()), "scale")
    update(scale, Tensor(True))
    assert float(scale) == pytest.approx(16 / factor)
    for _ in range(2):
        update(scale, Tensor(False))
    assert float(scale) == pytest.approx(16)
    with pytest.raises(ValueError, match="scale_factor must be above 1"):
        nn.DynamicLossScaleUpdateCell(16.0, 1.0, 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_training_cell_of_a_zoo_skips_steps_that_overflow(compiled: bool) -> None:
    net = nn.Dense(3, 1)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    scale = nn.DynamicLossScaleUpdateCell(2.0**10, 2, 3)
    step = ClippedStep(nn.WithLossCell(net, nn.MSELoss()), optimizer, scale).set_train()
    run = jit(step) if compiled else step
    y, finite = Tensor(np.ones((2, 1), np.float32)), _tensor(2, 3)
    assert not bool(run(finite, y)[1])
    before = net.weight.asnumpy().copy()
    assert bool(run(Tensor(np.full((2, 3), np.inf, np.float32)), y)[1])
    np.testing.assert_array_equal(net.weight.asnumpy(), before)
    assert float(step.scale_sense) == 2.0**9
    flags = step.reduce_sum(Tensor([0.0, 1.0]))
    assert bool(step.less_equal(step.base, flags))
    assert not bool(step.less_equal(step.base, 0 * flags))
