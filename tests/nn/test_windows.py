"""Convolution, pooling, padding and image layers against plain NumPy loops."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tests.nn.helpers import close, rand, randomize, t
from tvmgraph import Tensor, nn, ops
from tvmgraph.common import set_seed
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError

Pads = list[tuple[int, int]]


def same_pads(sizes: Any, kernel: Any, stride: Any, dilation: Any) -> Pads:
    """MindSpore's "same": ceil(size / stride) positions, the odd element goes after."""
    result = []
    for n, k, s, d in zip(sizes, kernel, stride, dilation):
        total = max((math.ceil(n / s) - 1) * s + d * (k - 1) + 1 - n, 0)
        result.append((total // 2, total - total // 2))
    return result


def conv(
    x: np.ndarray, w: np.ndarray, stride: Any, pads: Pads, dilation: Any, group: int = 1
) -> np.ndarray:
    """Convolution, one output position at a time."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    out_channels, per_group, kernel = w.shape[0], w.shape[1], w.shape[2:]
    sizes = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation)
    ]
    y = np.zeros((x.shape[0], out_channels, *sizes))
    for o in range(out_channels):
        first = o // (out_channels // group) * per_group
        for position in product(*map(range, sizes)):
            window = tuple(
                slice(p * s, p * s + d * (k - 1) + 1, d)
                for p, s, d, k in zip(position, stride, dilation, kernel)
            )
            part = x[(slice(None), slice(first, first + per_group), *window)]
            axes = tuple(range(1, x.ndim))
            y[(slice(None), o, *position)] = (part * w[o]).sum(axes)
    return y


@pytest.mark.parametrize(
    ("kwargs", "stride", "dilation"),
    [
        ({}, (1, 1), (1, 1)),
        ({"stride": 2}, (2, 2), (1, 1)),
        ({"stride": (2, 3), "dilation": 2}, (2, 3), (2, 2)),
        ({"group": 2, "has_bias": True}, (1, 1), (1, 1)),
        ({"pad_mode": "valid", "stride": 2}, (2, 2), (1, 1)),
        ({"pad_mode": "pad", "padding": 1}, (1, 1), (1, 1)),
        ({"pad_mode": "pad", "padding": (1, 0, 2, 1)}, (1, 1), (1, 1)),
    ],
)
def test_conv2d(kwargs: dict[str, Any], stride: Any, dilation: Any) -> None:
    net = randomize(nn.Conv2d(2, 4, (3, 2), **kwargs))
    x = rand(2, 2, 7, 6)
    pads: Pads = [(0, 0), (0, 0)]
    if kwargs.get("pad_mode", "same") == "same":
        pads = same_pads((7, 6), (3, 2), stride, dilation)
    elif kwargs["pad_mode"] == "pad":
        p = kwargs["padding"]
        pads = [(p, p)] * 2 if isinstance(p, int) else [p[:2], p[2:]]
    expected = conv(x, net.weight.asnumpy(), stride, pads, dilation, kwargs.get("group", 1))
    if net.bias is not None:
        expected = expected + net.bias.asnumpy()[:, None, None]
    close(net(Tensor(x)), expected, rtol=1e-4, atol=1e-5)


def test_conv1d_and_conv3d() -> None:
    net = randomize(nn.Conv1d(2, 3, 4, 2, has_bias=True))
    x = rand(1, 2, 9)
    w = net.weight.asnumpy()[:, :, 0]
    expected = conv(x, w, (2,), same_pads((9,), (4,), (2,), (1,)), (1,))
    close(net(Tensor(x)), expected + net.bias.asnumpy()[:, None], rtol=1e-4, atol=1e-5)
    volume = randomize(nn.Conv3d(1, 2, 2, pad_mode="valid"))
    x = rand(1, 1, 3, 4, 3)
    expected = conv(x, volume.weight.asnumpy(), (1, 1, 1), [(0, 0)] * 3, (1, 1, 1))
    close(volume(Tensor(x)), expected, rtol=1e-4, atol=1e-5)


def test_channels_last_is_channels_first() -> None:
    last = randomize(nn.Conv2d(2, 3, 3, data_format="NHWC"))
    assert last.weight.shape == (3, 3, 3, 2)
    x = rand(1, 5, 5, 2)
    w = last.weight.asnumpy().transpose(0, 3, 1, 2)
    expected = conv(x.transpose(0, 3, 1, 2), w, (1, 1), [(1, 1)] * 2, (1, 1))
    close(last(Tensor(x)), expected.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


def scatter(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """Transposed convolution that cuts nothing: every input element adds a window."""
    h, k = x.shape[2], w.shape[2]
    size = (h - 1) * stride + max(k, stride)
    y = np.zeros((x.shape[0], w.shape[1], size, size))
    for i, j in product(range(h), repeat=2):
        window = np.einsum("nc,cokl->nokl", x[:, :, i, j], w)
        y[:, :, i * stride : i * stride + k, j * stride : j * stride + k] += window
    return y


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (2, 2), (4, 3)])
def test_conv2d_transpose(kernel: int, stride: int) -> None:
    x = rand(1, 2, 3, 3)
    whole = randomize(nn.Conv2dTranspose(2, 3, kernel, stride, "valid", has_bias=True))
    w, b = whole.weight.asnumpy(), whole.bias.asnumpy()[:, None, None]
    expected = scatter(x, w, stride)
    close(whole(Tensor(x)), expected + b, rtol=1e-4, atol=1e-5)
    same = nn.Conv2dTranspose(2, 3, kernel, stride, weight_init=Tensor(w))
    total = max(kernel - stride, 0)
    inner = slice(total // 2, total // 2 + 3 * stride)
    close(same(Tensor(x)), expected[:, :, inner, inner], rtol=1e-4, atol=1e-5)
    cut = nn.Conv2dTranspose(2, 3, kernel, stride, "pad", 1, weight_init=Tensor(w))
    if kernel >= stride:
        inner = slice(1, (3 - 1) * stride + kernel - 1)
        close(cut(Tensor(x)), expected[:, :, inner, inner], rtol=1e-4, atol=1e-5)


def test_convolution_parameters_and_defaults() -> None:
    set_seed(0)
    net = nn.Conv2d(30, 50, 3, has_bias=True)
    bound = 1 / math.sqrt(270)
    for p in net.get_parameters():
        assert 0.9 * bound < np.abs(p.asnumpy()).max() <= bound
    shapes = {
        nn.Conv1d(3, 4, 5): (4, 3, 1, 5),
        nn.Conv2d(4, 6, (3, 5), group=2): (6, 2, 3, 5),
        nn.Conv3d(2, 3, 2): (3, 2, 2, 2, 2),
        nn.Conv1dTranspose(2, 3, 4): (2, 3, 1, 4),
        nn.Conv2dTranspose(4, 6, 3, group=2): (4, 3, 3, 3),
        nn.Conv3dTranspose(2, 3, 2): (2, 3, 2, 2, 2),
    }
    for layer, shape in shapes.items():
        assert [(n, p.shape) for n, p in layer.parameters_and_names()] == [("weight", shape)]
    assert repr(nn.Conv1d(3, 4, 3, weight_init="ones")) == (
        "Conv1d(input_channels=3, output_channels=4, kernel_size=(1, 3), stride=(1, 1), "
        "pad_mode=same, padding=(0, 0, 0, 0), dilation=(1, 1), group=1, has_bias=False, "
        "weight_init=ones, bias_init=None, format=NCHW)"
    )


def pool(
    x: np.ndarray, kernel: Any, stride: Any, pads: Pads, reduce: Any, fill: float
) -> np.ndarray:
    x = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    sizes = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], kernel, stride)]
    y = np.zeros((*x.shape[:2], *sizes), x.dtype)
    for position in product(*map(range, sizes)):
        window = tuple(slice(p * s, p * s + k) for p, s, k in zip(position, stride, kernel))
        y[(..., *position)] = reduce(x[(..., *window)], axis=tuple(range(2, x.ndim)))
    return y


@pytest.mark.parametrize(
    ("build", "shape", "kernel", "stride", "pads"),
    [
        (lambda: nn.MaxPool1d(3, 2), (1, 2, 8), (3,), (2,), [(0, 0)]),
        (lambda: nn.MaxPool1d(3, 2, "same"), (1, 2, 7), (3,), (2,), [(1, 1)]),
        (lambda: nn.MaxPool2d((2, 3), (1, 2)), (2, 2, 5, 7), (2, 3), (1, 2), [(0, 0)] * 2),
        (lambda: nn.MaxPool2d(3, 2, "same"), (1, 1, 4, 5), (3, 3), (2, 2), [(0, 1), (1, 1)]),
        (lambda: nn.MaxPool2d(3, 2, "pad", 1), (1, 1, 4, 5), (3, 3), (2, 2), [(1, 1)] * 2),
        (lambda: nn.MaxPool2d(2, 2, "pad", ceil_mode=True), (1, 1, 5, 4), (2, 2), (2, 2),
         [(0, 1), (0, 0)]),
        (lambda: nn.MaxPool2d(), (1, 1, 4, 4), (1, 1), (1, 1), [(0, 0)] * 2),
        (lambda: nn.MaxPool3d(2, 1), (1, 1, 3, 3, 3), (2, 2, 2), (1, 1, 1), [(0, 0)] * 3),
    ],
)  # fmt: skip
def test_max_pool(build: Any, shape: Any, kernel: Any, stride: Any, pads: Pads) -> None:
    x = rand(*shape)
    close(build()(Tensor(x)), pool(x, kernel, stride, pads, np.max, -np.inf))
    close(build()(Tensor(x[0])), pool(x[:1], kernel, stride, pads, np.max, -np.inf)[0])


def test_max_pool_positions() -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    y, where = nn.MaxPool2d(2, 2, "pad", return_indices=True)(Tensor(x))
    assert where.dtype is ms.int64
    np.testing.assert_array_equal(where.asnumpy().ravel(), y.asnumpy().ravel())
    back = nn.MaxUnpool2d(2)(y, where).asnumpy()
    np.testing.assert_array_equal(back, np.where(np.isin(x, y.asnumpy()), x, 0))


def nan_mean(x: np.ndarray, axis: Any) -> Any:
    return np.nanmean(x, axis=axis)


@pytest.mark.parametrize(
    ("build", "shape", "kernel", "stride", "pads", "reduce", "fill"),
    [
        (lambda: nn.AvgPool1d(2, 2), (1, 2, 7), (2,), (2,), [(0, 0)], np.mean, 0),
        (lambda: nn.AvgPool1d(3, 2, "same"), (1, 2, 7), (3,), (2,), [(1, 1)], nan_mean, np.nan),
        (lambda: nn.AvgPool2d(3, 2, "same"), (1, 1, 4, 5), (3, 3), (2, 2), [(0, 1), (1, 1)],
         nan_mean, np.nan),
        (lambda: nn.AvgPool2d(3, 2, "pad", 1), (1, 1, 4, 5), (3, 3), (2, 2), [(1, 1)] * 2,
         np.mean, 0),
        (lambda: nn.AvgPool2d(3, 2, "pad", 1, count_include_pad=False), (1, 1, 4, 5), (3, 3),
         (2, 2), [(1, 1)] * 2, nan_mean, np.nan),
        (lambda: nn.AvgPool2d(2, 2, "pad", ceil_mode=True), (1, 1, 5, 5), (2, 2), (2, 2),
         [(0, 1)] * 2, nan_mean, np.nan),
        (lambda: nn.AvgPool2d(2, 2, ceil_mode=True), (1, 1, 5, 5), (2, 2), (2, 2),
         [(0, 1)] * 2, nan_mean, np.nan),
        (lambda: nn.AvgPool2d(2, 2, "same", ceil_mode=True), (1, 1, 5, 5), (2, 2), (2, 2),
         [(0, 1)] * 2, np.mean, 0),
        (lambda: nn.AvgPool2d(2, 1, divisor_override=3), (1, 1, 3, 3), (2, 2), (1, 1),
         [(0, 0)] * 2, lambda x, axis: x.sum(axis) / 3, 0),
        (lambda: nn.AvgPool3d(2, 2), (1, 1, 4, 4, 4), (2, 2, 2), (2, 2, 2), [(0, 0)] * 3,
         np.mean, 0),
    ],
)  # fmt: skip
def test_avg_pool(
    build: Any, shape: Any, kernel: Any, stride: Any, pads: Pads, reduce: Any, fill: float
) -> None:
    x = rand(*shape)
    close(build()(Tensor(x)), pool(x, kernel, stride, pads, reduce, fill), rtol=1e-4)


def adaptive(x: np.ndarray, sizes: Any, reduce: Any) -> np.ndarray:
    """Windows from floor(i * n / m) to ceil((i + 1) * n / m)."""
    lead = x.ndim - len(sizes)
    y = np.zeros((*x.shape[:lead], *sizes), x.dtype)
    for position in product(*map(range, sizes)):
        window = tuple(
            slice(p * n // m, -(-(p + 1) * n // m))
            for p, n, m in zip(position, x.shape[lead:], sizes)
        )
        y[(..., *position)] = reduce(x[(..., *window)], axis=tuple(range(lead, x.ndim)))
    return y


@pytest.mark.parametrize(("name", "reduce"), [("Avg", np.mean), ("Max", np.max)])
@pytest.mark.parametrize(
    ("size", "shape", "expected"),
    [
        (2, (1, 2, 5), (2,)),
        ((None, 3), (2, 1, 4, 7), (4, 3)),
        (2, (2, 5, 5), (2, 2)),
        ((1, None, 2), (1, 2, 3, 2, 5), (1, 2, 2)),
    ],
)
def test_adaptive_pool(name: str, reduce: Any, size: Any, shape: Any, expected: Any) -> None:
    layer = getattr(nn, f"Adaptive{name}Pool{len(expected)}d")(size)
    x = rand(*shape)
    close(layer(Tensor(x)), adaptive(x, expected, reduce), rtol=1e-4)


def test_lp_pool() -> None:
    x = rand(1, 2, 6, low=0.1)
    close(nn.LPPool1d(3, 2)(Tensor(x)), (x.reshape(1, 2, 3, 2) ** 3).sum(-1) ** (1 / 3), 1e-4)
    x = rand(1, 1, 4, 4, low=0.1)
    blocks = x.reshape(1, 1, 2, 2, 2, 2)
    close(nn.LPPool2d(2, 2)(Tensor(x)), np.sqrt((blocks**2).sum((3, 5))), 1e-4)


@pytest.mark.parametrize(
    ("build", "shape", "pads", "mode"),
    [
        (lambda: nn.Pad(((1, 0), (2, 3))), (2, 3), [(1, 0), (2, 3)], {"mode": "constant"}),
        (lambda: nn.Pad(((1, 1), (1, 2)), "REFLECT"), (2, 3), [(1, 1), (1, 2)],
         {"mode": "reflect"}),
        (lambda: nn.Pad(((1, 1), (1, 2)), "SYMMETRIC"), (2, 3), [(1, 1), (1, 2)],
         {"mode": "symmetric"}),
        (lambda: nn.ConstantPad1d((1, 2), 3.0), (2, 3), [(0, 0), (1, 2)],
         {"constant_values": 3}),
        (lambda: nn.ConstantPad2d((1, 0, 2, 0), 5.0), (1, 2, 2), [(0, 0), (2, 0), (1, 0)],
         {"constant_values": 5}),
        (lambda: nn.ConstantPad3d(1, 5.0), (2, 2, 2, 2), [(0, 0), *[(1, 1)] * 3],
         {"constant_values": 5}),
        (lambda: nn.ZeroPad2d((1, 2, 0, 1)), (1, 2, 3), [(0, 0), (0, 1), (1, 2)],
         {"mode": "constant"}),
        (lambda: nn.ReflectionPad1d((1, 2)), (1, 3), [(0, 0), (1, 2)], {"mode": "reflect"}),
        (lambda: nn.ReflectionPad2d(1), (1, 3, 3), [(0, 0), (1, 1), (1, 1)], {"mode": "reflect"}),
        (lambda: nn.ReflectionPad3d(1), (1, 2, 3, 3), [(0, 0), *[(1, 1)] * 3],
         {"mode": "reflect"}),
        (lambda: nn.ReplicationPad1d(2), (1, 2, 3), [(0, 0), (0, 0), (2, 2)], {"mode": "edge"}),
        (lambda: nn.ReplicationPad2d((0, 1, 2, 3)), (1, 2, 3), [(0, 0), (2, 3), (0, 1)],
         {"mode": "edge"}),
        (lambda: nn.ReplicationPad3d(1), (1, 2, 3, 3), [(0, 0), *[(1, 1)] * 3], {"mode": "edge"}),
    ],
)  # fmt: skip
def test_padding(build: Any, shape: Any, pads: Pads, mode: dict[str, Any]) -> None:
    x = rand(*shape)
    close(build()(Tensor(x)), np.pad(x, pads, **mode))


def test_negative_padding_cuts_off() -> None:
    x = rand(1, 4, 4)
    close(nn.ConstantPad2d((-1, 0, 0, -2), 0.0)(Tensor(x)), x[:, :2, 1:])
    wanted = np.pad(x[:, :2, 1:], [(0, 0), (1, 0), (0, 2)], mode="edge")
    close(nn.ReplicationPad2d((-1, 2, 1, -2))(Tensor(x)), wanted)
    close(nn.ReplicationPad1d(-1)(Tensor(x)), x[:, :, 1:-1])
    deep = rand(1, 3, 4, 5)
    close(ms.jit(nn.ReplicationPad3d(-1))(Tensor(deep)), deep[:, 1:-1, 1:-1, 1:-1])
    with pytest.raises(ValueError, match="cuts more than axis 1 has"):
        nn.ReplicationPad2d(-3)(Tensor(x))
    with pytest.raises(ValueError, match="at least 0"):
        nn.ReflectionPad2d(-1)


def test_pixel_layers() -> None:
    x = rand(2, 8, 2, 3)
    up = x.reshape(2, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 4, 6)
    close(nn.PixelShuffle(2)(Tensor(x)), up)
    close(nn.PixelUnshuffle(2)(Tensor(up)), x)
    mixed = x.reshape(2, 2, 4, 2, 3).swapaxes(1, 2).reshape(x.shape)
    close(nn.ChannelShuffle(2)(Tensor(x)), mixed)


def test_unfold_lays_windows_out() -> None:
    x = rand(1, 2, 5, 5)
    y = nn.Unfold((1, 2, 2, 1), (1, 2, 1, 1), (1, 2, 1, 1))(Tensor(x)).asnumpy()
    assert y.shape == (1, 8, 2, 4)
    for i, j in product(range(2), range(4)):
        window = x[0, :, 2 * i : 2 * i + 3 : 2, j : j + 2]
        close(y[0, :, i, j], window.transpose(1, 2, 0).ravel())
    assert nn.Unfold((1, 3, 3, 1), (1, 2, 2, 1), (1, 1, 1, 1), "same")(Tensor(x)).shape[2] == 3


def test_image_layers() -> None:
    x = rand(1, 1, 2, 3)
    nearest = x.repeat(2, 2).repeat(2, 3)
    close(nn.Upsample(size=(4, 6))(Tensor(x)), nearest)
    line = np.array([[[[0.0, 1.0]]]], np.float32)
    twice = nn.ResizeBilinear()(Tensor(x), scale_factor=2)
    close(twice, ops.ResizeBilinearV2()(Tensor(x), tuple(2 * n for n in x.shape[2:])).asnumpy())
    corners = nn.Upsample(size=(1, 3), mode="bilinear", align_corners=True)
    close(corners(Tensor(line)), [[[[0, 0.5, 1]]]])
    crop = rand(3, 8, 6)
    close(nn.CentralCrop(0.5)(Tensor(crop)), crop[:, 2:6, 1:5])
    a, b = rand(2, 1, 3, 3), rand(2, 1, 3, 3, seed=1)
    error = ((a - b) ** 2).mean((1, 2, 3))
    close(nn.PSNR(2.0)(Tensor(a), Tensor(b)), 10 * np.log10(4 / error))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.Conv2d(1, 1, 0), ArgumentError, "kernel_size must be at least 1"),
        (lambda: nn.Conv2d(1, 1, (1, 2, 3)), ArgumentError, "2 elements, not 3"),
        (lambda: nn.Conv2d(1, 1, "a"), DTypeError, "an int or a tuple"),
        (lambda: nn.Conv2d(1, 1, 3, 0), ArgumentError, "stride"),
        (lambda: nn.Conv2d(1, 1, 3, pad_mode="foo"), ArgumentError, "'same', 'valid', 'pad'"),
        (lambda: nn.Conv2d(1, 1, 3, padding=1), ArgumentError, "padding must be 0 when pad_mode"),
        (lambda: nn.Conv2d(1, 1, 3, pad_mode="pad", padding=-1), ArgumentError, "negative"),
        (lambda: nn.Conv2d(3, 4, 3, group=2), ArgumentError, "group=2 must divide"),
        (lambda: nn.Conv2d(2, 1, 3)(t(1, 1, 4, 4)), ShapeError, "in_channels=2"),
        (lambda: nn.Conv2d(1, 1, 3)(t(1, 4, 4)), ShapeError, "4 axes, not 3"),
        (lambda: nn.Conv2d(1, 1, 3, data_format="HWCN"), ArgumentError, "'NHWC'"),
        (lambda: nn.MaxPool2d(0), ArgumentError, "kernel_size"),
        (lambda: nn.MaxPool2d("a"), DTypeError, "an int or a tuple"),
        (lambda: nn.MaxPool2d(2, 2, "foo"), ArgumentError, "'same', 'valid', 'pad'"),
        (lambda: nn.MaxPool2d(2, 2, padding=1), ArgumentError, "need pad_mode='pad'"),
        (lambda: nn.MaxPool2d(2, 2, ceil_mode=True), ArgumentError, "need pad_mode='pad'"),
        (lambda: nn.MaxPool2d(2, 2, return_indices=True), ArgumentError, "pad_mode='pad'"),
        (lambda: nn.MaxPool2d(2, 2, "pad", 2), ArgumentError, "half the kernel"),
        (lambda: nn.MaxPool2d(2, 2)(t(4, 4)), ShapeError, "4 or 3 axes, not 2"),
        (lambda: nn.MaxPool2d(2, 2)(t(1, 1, 1, 1)), ShapeError, "does not fit"),
        (lambda: nn.AvgPool2d(divisor_override=0), ArgumentError, "divisor_override"),
        (lambda: nn.AdaptiveAvgPool2d("a"), DTypeError, "output_size"),
        (lambda: nn.AdaptiveAvgPool2d((1, 2, 3)), ArgumentError, "2 elements"),
        (lambda: nn.LPPool1d(0, 2), ArgumentError, "norm_type must not be 0"),
        (lambda: nn.Pad(1), DTypeError, "pairs"),
        (lambda: nn.Pad(((1, 1),), "foo"), ArgumentError, "'SYMMETRIC'"),
        (lambda: nn.Pad(((1, 1),))(t(2, 3)), ShapeError, "1 pairs for an input with 2 axes"),
        (lambda: nn.ReflectionPad1d((1, 2, 3)), ArgumentError, "pairs"),
        (lambda: nn.ReflectionPad1d(-1), ArgumentError, "at least 0"),
        (lambda: nn.ConstantPad1d("a", 1), DTypeError, "an int or a tuple"),
        (lambda: nn.ReflectionPad2d(1)(t(3)), ShapeError, "4 or 3 axes"),
        (lambda: nn.PixelShuffle(0), ArgumentError, "upscale_factor"),
        (lambda: nn.ResizeBilinear()(t(1, 1, 2, 2)), ArgumentError, "size and scale_factor"),
        (lambda: nn.Upsample(), ArgumentError, "size or scale_factor is needed"),
        (lambda: nn.Unfold(2, 1, 1), DTypeError, "ksizes must be a tuple"),
        (lambda: nn.Unfold((2, 2, 2, 1), (1,) * 4, (1,) * 4), ArgumentError, "(1, h, w, 1)"),
        (lambda: nn.CentralCrop(0), ArgumentError, "(0, 1]"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as e:
        call()
    assert text in str(e.value)
    assert "test_windows.py" in str(e.value)


def test_output_padding_of_images_is_zeros() -> None:
    """As in MindSpore, also beside a bias; volumes get what the kernel reaches there."""
    x = Tensor(np.random.default_rng(0).normal(size=(1, 2, 4, 5)).astype(np.float32))
    net = randomize(nn.Conv2dTranspose(2, 3, 3, 2, "pad", 1, output_padding=(1, 0), has_bias=True))
    without = nn.Conv2dTranspose(2, 3, 3, 2, "pad", 1, has_bias=True)
    ms.load_param_into_net(without, net.parameters_dict())
    for call in (net, ms.jit(net)):
        y = call(x)
        assert y.shape == (1, 3, 8, 9) and not y[:, :, -1].asnumpy().any()
        np.testing.assert_allclose(y[:, :, :-1].asnumpy(), without(x).asnumpy(), 1e-5, 1e-5)
    assert ms.grad(lambda x: net(x).sum())(x).shape == x.shape
