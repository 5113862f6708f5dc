"""The blocked layout goes through normalization of groups, reshapes and padding."""

from collections.abc import Callable

import numpy as np
import pytest

from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.passes.freeze import freeze

N, C, H, W = 2, 64, 10, 7


def fill(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def normalized(x: Tensor, groups: int, scale: object = 1.0) -> Tensor:
    """By hand, of groups of channels, as exporters write it."""
    rows = ops.reshape(x, (N, groups, -1))
    centered = rows - ops.mean(rows, 2, True)
    rows = centered * ops.rsqrt(ops.mean(ops.square(centered), 2, True) + 1e-5)
    return ops.reshape(rows * scale, x.shape)


def split(x: Tensor) -> Tensor:
    """The axes of an image stay apart, as other programs write it."""
    rows = ops.reshape(x, (N, 4, C // 4, H, W))
    return ops.reshape(rows / ops.sqrt(ops.mean(rows * rows, (2, 3, 4), True)), (N, C, H, W))


PER_GROUP, PER_CHANNEL = fill(1, 4, 1, seed=5), fill(C, 1, seed=6)
KEPT: dict[str, Callable[[Tensor], Tensor]] = {
    "one group": lambda x: normalized(x, 1),
    "groups of whole blocks": lambda x: normalized(x, 4, PER_GROUP),
    "channels": lambda x: normalized(x, C, PER_CHANNEL),
    "a layer": nn.GroupNorm(4, C),
    "axes apart": split,
    "whole images": lambda x: x - ops.mean(x, (1, 2, 3), True) * ops.amax(x, (1, 2, 3), True),
    "padding": lambda x: ops.pad(x, (1, 2, 0, 3), "constant", 0.5),
    "resampled": lambda x: ops.interpolate(x, size=(2 * H, W), mode="bilinear"),
    "reshaped twice": lambda x: ops.reshape(
        ops.exp(ops.reshape(ops.relu(ops.reshape(x, (N, C, -1))), (N, C, W, H))), x.shape
    ),
}
PUT_BACK: dict[str, Callable[[Tensor], Tensor]] = {
    "groups of parts of blocks": lambda x: normalized(x, 32),
    "a number per pixel": lambda x: normalized(x, C, fill(H * W, seed=7)),
    "part of a group": lambda x: ops.reshape(
        ops.reshape(x, (N, 4, C // 4, H, W)) - ops.reshape(x, (N, 4, C // 4, H, W)).mean(2, True),
        x.shape,
    ),
    "padded channels": lambda x: ops.pad(x, (0, 0, 0, 0, 0, 32), "constant", 0.5)[:, :C],
    "tokens": lambda x: ops.reshape(
        ops.swapaxes(ops.softmax(ops.swapaxes(ops.reshape(x, (N, C, -1)), 1, 2)), 1, 2), x.shape
    ),
    "joined": lambda x: ops.reshape(
        ops.concat([ops.reshape(x, (N, C, -1)), ops.reshape(x, (N, C, -1))], 1)[:, :C], x.shape
    ),
    "convolved": lambda x: ops.reshape(
        ops.conv2d(ops.reshape(x, (N, 4, C // 4, H * W)), fill(4, 4, 1, 1, seed=8)), x.shape
    ),
}


class Around(nn.Cell):
    """Convolutions that want blocks around what is looked at."""

    def __init__(self, inner: Callable[[Tensor], Tensor]):
        super().__init__()
        self.first = nn.Conv2d(C, C, 1)
        self.inner = inner
        self.last = nn.Conv2d(C, C, 1)

    def construct(self, x):
        return self.last(self.inner(self.first(x)))


def transposes(inner: Callable[[Tensor], Tensor], x: Tensor) -> int:
    """How often an image changes its order, where the result equals eager's."""
    net = Around(inner).set_train(False)
    compiled = jit(net)
    np.testing.assert_allclose(
        compiled(x).asnumpy(), net(x).asnumpy(), rtol=2e-4, atol=2e-4, equal_nan=False
    )
    frozen = freeze(compiled.graph(x))
    assert frozen is not None
    names = [node.op.name for node in frozen.main.nodes]
    assert names.count("conv_nchwc") == 2
    return names.count("transpose")


@pytest.mark.parametrize("name", KEPT)
def test_blocks_are_kept(name):
    x = fill(N, C, H, W)
    assert transposes(KEPT[name], x) == transposes(lambda x: x, x)


@pytest.mark.parametrize("name", PUT_BACK)
def test_what_minds_the_order_gets_plain_images(name):
    x = fill(N, C, H, W)
    assert transposes(PUT_BACK[name], x) > transposes(lambda x: x, x)


class Rows(nn.Cell):
    """Convolutions along one axis around what is computed of each element, or across them."""

    def __init__(self, inner: Callable[[Tensor], Tensor]):
        super().__init__()
        self.first = nn.Conv1d(C, C, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.inner = inner
        self.last = nn.Conv1d(C, C, 3, pad_mode="pad", padding=2, dilation=2)

    def construct(self, x):
        return self.last(self.inner(self.first(x)))


@pytest.mark.parametrize(
    ("inner", "changes"),
    [
        (lambda x: ops.gelu(x, approximate="none"), 2),
        (lambda x: x * ops.sigmoid(x) + fill(C, 1, seed=3), 2),
        (lambda x: x - ops.mean(x, 2, True), 2),
        (lambda x: x + fill(W, seed=4), 4),
    ],
    ids=["elements", "per channel", "mean of a channel", "per position"],
)
def test_convolutions_along_one_axis_are_in_blocks(inner, changes):
    x = fill(N, C, 2 * W)
    net = Rows(inner).set_train(False)
    compiled = jit(net)
    np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), rtol=2e-4, atol=2e-4)
    frozen = freeze(compiled.graph(x))
    assert frozen is not None
    names = [node.op.name for node in frozen.main.nodes]
    assert names.count("conv_nchwc") == 2
    assert names.count("transpose") == changes


class Volumes(nn.Cell):
    """Convolutions of volumes around what is computed of each element."""

    def __init__(self, kernel: tuple[int, int, int], stride: int, dilation: int):
        super().__init__()
        pad = tuple(k // 2 * dilation for k in kernel for _ in range(2))
        self.first = nn.Conv3d(16, C, kernel, stride, "pad", pad, dilation, has_bias=True)
        self.norm = nn.BatchNorm3d(C)
        self.last = nn.Conv3d(C, 32, kernel, stride, "pad", pad, dilation)

    def construct(self, x):
        y = self.norm(self.first(x))
        return self.last(ops.relu(y) + y)


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"),
    [((3, 3, 3), 1, 1), ((3, 3, 3), 2, 1), ((1, 3, 3), 1, 1), ((3, 1, 1), 1, 2), ((2, 2, 2), 1, 1)],
)
def test_convolutions_of_volumes_are_of_their_slices(kernel, stride, dilation):
    x = fill(2, 16, 6, H, W)
    net = Volumes(kernel, stride, dilation).set_train(False)
    compiled = jit(net)
    np.testing.assert_allclose(compiled(x).asnumpy(), net(x).asnumpy(), rtol=2e-4, atol=2e-4)
    frozen = freeze(compiled.graph(x))
    assert frozen is not None
    convolutions = [n for n in frozen.main.nodes if n.op.name.startswith("conv")]
    assert "convolution" not in {n.op.name for n in convolutions if n.inputs[0].type.ndim == 5}
    assert len(convolutions) == 2
    names = [n.op.name for n in frozen.main.nodes]
    assert names.count("concat") == (2 if kernel[0] > 1 else 0)


def test_a_number_per_volume_is_no_number_per_slice():
    scale = fill(2, 1, 1, 1, 1, seed=9)
    net = nn.Conv3d(16, C, 3).set_train(False)

    def scaled(x: Tensor) -> Tensor:
        return net(x) * scale

    x = fill(2, 16, 6, H, W)
    np.testing.assert_allclose(jit(scaled)(x).asnumpy(), scaled(x).asnumpy(), rtol=2e-4, atol=2e-4)
