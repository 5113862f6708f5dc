"""Dilated convolutions whose taps read padding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import Tensor, jit, nn, ops
from tvmgraph.passes import dilation
from tvmgraph.passes.dilation import ranges_of, skip_padding


def test_ranges_hold_every_position_with_the_taps_that_see_the_image() -> None:
    for size, taps, stride, low, high, apart in itertools.product(
        (1, 5, 9), (1, 2, 3), (1, 2), (0, 3), (0, 4), (1, 2, 4, 9)
    ):
        if size + low + high < apart * (taps - 1) + 1:
            continue
        windows = (size + low + high - apart * (taps - 1) - 1) // stride + 1
        seen = [
            [t for t in range(taps) if 0 <= i * stride - low + t * apart < size]
            for i in range(windows)
        ]
        found = ranges_of(size, taps, stride, (low, high), apart)
        if not all(seen):
            assert found is None
            continue
        assert found is not None
        assert [list(range(taps)[r.taps]) for r in found for _ in range(r.length)] == seen
        begins = np.cumsum([0, *(r.length for r in found)])
        for begin, r in zip(begins, found):
            first = begin * stride - low + r.taps.start * apart
            last = (begin + r.length - 1) * stride - low + (r.taps.stop - 1) * apart
            assert (r.image.start, r.image.stop) == (first, last + 1)


@pytest.mark.parametrize(
    "shape, out, kernel, attrs, kernels",
    [
        ((1, 64, 14, 14), 64, (3, 3), {"dilation": 6, "padding": 6}, 9),
        ((2, 64, 14, 14), 64, (3, 3), {"dilation": 12, "padding": 12}, 9),
        ((1, 160, 14, 13), 128, (3, 3), {"dilation": 18, "padding": 18}, 1),
        ((1, 64, 16, 16), 64, (3, 3), {"dilation": (8, 1), "padding": (8, 8, 1, 1)}, 2),
        ((1, 64, 21, 21), 64, (3, 3), {"dilation": 9, "padding": 9, "stride": 2}, 9),
        ((1, 64, 14, 14), 64, (3, 3), {"dilation": 2, "padding": 2}, 0),  # most taps see the image
        ((1, 64, 14, 14), 64, (3, 3), {"dilation": 6, "padding": 6, "group": 2}, 0),
    ],
)
def test_convolutions_by_ranges_are_the_same(
    shape: tuple[int, ...], out: int, kernel: tuple[int, int], attrs: dict, kernels: int
) -> None:
    ms.set_seed(3)
    net = nn.Conv2d(shape[1], out, kernel, pad_mode="pad", has_bias=True, **attrs)
    x = Tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    want = net(x).asnumpy()
    graph = skip_padding(ms.jit(net).graph(x))
    parts = [n for n in graph.nodes if n.op.name == "convolution"]
    assert len(parts) == max(kernels, 1)
    assert (parts[0].attrs["padding"][0] == (0, 0)) == (kernels > 0)
    for level in ("O1", "O2"):
        got = jit(net, jit_level=level)(x).asnumpy()
        assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


def test_weights_that_are_arguments_and_derivatives() -> None:
    rng = np.random.default_rng(1)
    x = Tensor(rng.normal(size=(1, 64, 14, 14)).astype(np.float32))
    w = Tensor(rng.normal(size=(64, 64, 3, 3)).astype(np.float32))

    def loss(x: Tensor, w: Tensor) -> Tensor:
        y = ops.conv2d(x, w, padding=8, dilation=8, pad_mode="pad")
        return (y * y).sum()

    want = ms.value_and_grad(loss, (0, 1))(x, w)
    got = jit(ms.value_and_grad(loss, (0, 1)))(x, w)
    for a, b in zip((got[0], *got[1]), (want[0], *want[1])):
        assert np.abs((a - b).asnumpy()).max() <= 1e-5 * np.abs(b.asnumpy()).max()


def test_a_position_that_sees_padding_alone_is_left() -> None:
    assert ranges_of(4, 1, 1, (3, 3), 2) is None
    assert dilation._MIN_SKIPPED < 14**2 * 64 * 64 * 9  # the cases above are large enough
