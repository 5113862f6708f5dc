"""ONNX operators of networks: convolution, pooling, normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.reductions import worst
from tvmgraph.onnx.table import NodeCall, converter, to_tensor

Pairs = tuple[tuple[int, int], ...]


def pad_pairs(
    n: NodeCall, sizes: tuple[int, ...], window: tuple[int, ...], step: tuple[int, ...]
) -> Pairs:
    """Returns the padding before and after every spatial axis.

    Args:
        n: The node: its ``auto_pad`` or ``pads`` decide.
        sizes: Sizes of the spatial axes.
        window: Extents of the window, counting dilation.
        step: Strides.
    """
    rank = len(sizes)
    auto = n.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pairs = []
        for size, w, s in zip(sizes, window, step):
            total = max((-(-size // s) - 1) * s + w - size, 0)
            small = total // 2
            upper = auto == "SAME_UPPER"
            pairs.append((small, total - small) if upper else (total - small, small))
        return tuple(pairs)
    pads = n.get("pads") if auto == "NOTSET" else None
    pads = pads or (0,) * (2 * rank)
    return tuple(zip(pads[:rank], pads[rank:]))


def window_of(n: NodeCall, kernel: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Returns stride, dilation and the window's extent.

    Args:
        n: The node with ``strides`` and ``dilations``, both 1 by default.
        kernel: Sizes of the window without dilation.
    """
    ones = (1,) * len(kernel)
    stride, dilation = n.get("strides") or ones, n.get("dilations") or ones
    return stride, dilation, tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation))


def with_bias(y: Tensor, b: Tensor | None) -> Tensor:
    """Adds one number per channel.

    Args:
        y: Tensor of shape :math:`(N, C, *)`.
        b: Bias of shape :math:`(C)`, or ``None``.
    """
    return y if b is None else y + _channelwise(b, y.ndim)


def _channelwise(v: Tensor, rank: int) -> Tensor:
    return F.reshape(v, (1, -1, *(1,) * (rank - 2)))


@converter("Conv")
def convolve(n: NodeCall, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """A convolution with the window settings of a node.

    Args:
        n: The node.
        x: Input of shape :math:`(N, C_{in}, *)`.
        w: Weight of shape :math:`(C_{out}, C_{in} / group, *)`.
        b: Bias of shape :math:`(C_{out})`, or ``None``.
    """
    kernel = w.shape[2:]
    stride, dilation, extent = window_of(n, kernel)
    pairs = pad_pairs(n, x.shape[2:], extent, stride)
    return with_bias(F.convolution(x, w, stride, pairs, dilation, n.get("group")), b)


@converter("ConvInteger")
def _conv_integer(n: NodeCall, x: Tensor, w: Tensor, zx: object = None, zw: Any = None) -> Tensor:
    exact = dtypes.float64  # sums of products leave what float32 counts from 258 products on
    x, w = F.cast(x, exact), F.cast(w, exact)
    x = x if zx is None else x - F.cast(zx, exact)
    if zw is not None:
        zw = F.cast(zw, exact)
        w = w - (F.reshape(zw, (-1, *(1,) * (w.ndim - 1))) if zw.ndim else zw)
    return F.cast(convolve(n, x, w), dtypes.int32)


@converter("ConvTranspose")
def _conv_transpose(n: NodeCall, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    kernel = w.shape[2:]
    stride, dilation, extent = window_of(n, kernel)
    extra = n.get("output_padding") or (0,) * len(kernel)
    sizes, shape = x.shape[2:], n.get("output_shape")
    natural = [s * (d - 1) + o + e for s, d, o, e in zip(stride, sizes, extra, extent)]
    auto = n.get("auto_pad", "NOTSET")
    if shape is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        shape = [d * s for d, s in zip(sizes, stride)]
    if shape is None:
        pairs = pad_pairs(n, sizes, extent, stride)
    else:
        cuts = [a - b for a, b in zip(natural, shape)]
        low = auto == "SAME_UPPER"
        pairs = tuple((c // 2, c - c // 2) if low else (c - c // 2, c // 2) for c in cuts)
    grown = tuple((max(0, a), max(0, b)) for a, b in pairs)
    y = F.conv_transpose(x, w, stride, grown, extra, dilation, n.get("group"))
    widen = ((0, 0), (0, 0), *((max(0, -a), max(0, -b)) for a, b in pairs))
    return with_bias(F.pad_constant(y, widen, 0.0), b)


def _pool_pairs(n: NodeCall, x: Tensor, kernel: tuple[int, ...]) -> tuple[Any, Any, Pairs, Pairs]:
    """Stride, dilation, padding, and padding with what ``ceil_mode`` reaches beyond it."""
    stride, dilation, extent = window_of(n, kernel)
    sizes = x.shape[2:]
    pairs = pad_pairs(n, sizes, extent, stride)
    reach = []
    for (before, after), size, w, s in zip(pairs, sizes, extent, stride):
        rest = (size + before + after - w) % s
        more = s - rest if n.get("ceil_mode", 0) and rest else 0
        steps = (size + before + after - w) // s + 1
        if more and steps * s >= size + before:  # the last window would start in the padding
            more = 0
        reach.append((before, after + more))
    return stride, dilation, pairs, tuple(reach)


@converter("MaxPool")
def _max_pool(n: NodeCall, x: Tensor) -> tuple[Tensor, Tensor] | Tensor:
    kernel = n.get("kernel_shape")
    stride, dilation, _, reach = _pool_pairs(n, x, kernel)
    padded = F.pad_constant(x, ((0, 0), (0, 0), *reach), worst("amax", x.dtype))
    none = ((0, 0),) * len(kernel)
    y = F.max_pool(padded, kernel, stride, none, dilation)
    if not n.wants(1):
        return y
    place = F.max_pool_index(padded, kernel, stride, none, dilation)
    return y, _flat_index(n, place, x.shape, padded.shape[2:], reach)


def _flat_index(
    n: NodeCall, place: Tensor, shape: Sequence[int], padded: Sequence[int], reach: Pairs
) -> Tensor:
    """Turns places in the padded image into places in the whole input."""
    sizes = shape[2:]
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    if n.get("storage_order", 0):
        strides = [math.prod(sizes[:i]) for i in range(len(sizes))]
    total: Any = 0
    for i in reversed(range(len(sizes))):
        total = total + (F.floor_mod(place, padded[i]) - reach[i][0]) * strides[i]
        place = F.floor_div(place, padded[i])
    image = math.prod(sizes)
    planes = np.arange(shape[0] * shape[1], dtype=np.int64) * image
    offset = to_tensor(planes.reshape(*shape[:2], *(1,) * len(sizes)))
    return total + offset


@converter("AveragePool")
def _average_pool(n: NodeCall, x: Tensor) -> Tensor:
    kernel = n.get("kernel_shape")
    stride, dilation, pairs, reach = _pool_pairs(n, x, kernel)
    counted = pairs if n.get("count_include_pad", 0) else ((0, 0),) * len(kernel)
    padded = F.pad_constant(_wide(x), ((0, 0), (0, 0), *reach), 0.0)
    y = _window_sums(padded, kernel, stride, dilation)
    ones = np.pad(np.ones(x.shape[2:]), counted, constant_values=1)
    rest = [(b - cb, a - ca) for (b, a), (cb, ca) in zip(reach, counted)]
    counts = _numpy_sums(np.pad(ones, rest), kernel, stride, dilation)
    return F.cast(y / to_tensor(counts.astype(y.dtype.numpy)), x.dtype)


def _wide(x: Tensor) -> Tensor:
    """Half precision as float32: a sum may be too large for it where the mean is not."""
    return F.cast(x, dtypes.float32) if x.dtype.is_float and x.dtype.itemsize == 2 else x


def _window_sums(x: Tensor, kernel: tuple[int, ...], stride: PerAxis, dilation: PerAxis) -> Tensor:
    """Sums of all windows, as one depthwise convolution with ones."""
    ones = F.ones((1, 1, *kernel), x.dtype)
    n, c, *sizes = x.shape
    none = ((0, 0),) * len(kernel)
    y = F.convolution(F.reshape(x, (n * c, 1, *sizes)), ones, stride, none, dilation, 1)
    return F.reshape(y, (n, c, *y.shape[2:]))


def _numpy_sums(
    x: np.ndarray, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> np.ndarray:
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    windows = np.lib.stride_tricks.sliding_window_view(x, extent)
    rank = len(kernel)
    windows = windows[tuple(slice(None, None, s) for s in stride)]
    windows = windows[(slice(None),) * rank + tuple(slice(None, None, d) for d in dilation)]
    return windows.sum(tuple(range(rank, 2 * rank)))


@converter("LpPool")
def _lp_pool(n: NodeCall, x: Tensor) -> Tensor:
    kernel, p = n.get("kernel_shape"), n.get("p")
    stride, dilation, _, reach = _pool_pairs(n, x, kernel)
    powers = F.pow(F.abs(F.pad_constant(_wide(x), ((0, 0), (0, 0), *reach), 0.0)), float(p))
    return F.cast(F.pow(_window_sums(powers, kernel, stride, dilation), 1.0 / p), x.dtype)


@converter("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(n: NodeCall, x: Tensor) -> Tensor:
    axes, kind = tuple(range(2, x.ndim)), n.node.op_type
    if kind == "GlobalMaxPool":
        return F.amax(x, axes, True)
    if kind == "GlobalAveragePool":
        return F.mean(x, axes, True)
    p = float(n.get("p", 2))
    return F.pow(F.reduce_sum(F.pow(F.abs(x), p), axes, True), 1.0 / p)


@converter("MaxUnpool")
def _max_unpool(n: NodeCall, x: Tensor, places: Tensor, shape: object = None) -> Tensor:
    kernel = n.get("kernel_shape")
    stride, _, extent = window_of(n, kernel)
    pairs = pad_pairs(n, x.shape[2:], extent, stride)
    natural = [
        (d - 1) * s + k - a - b for d, s, k, (a, b) in zip(x.shape[2:], stride, kernel, pairs)
    ]
    sizes = n.ints(2) if n.has(2) else (*x.shape[:2], *natural)
    # places count through the natural output, whatever size is asked for
    inner = (*x.shape[:2], *natural)
    flat = F.zeros((math.prod(inner),), x.dtype)
    flat = F.tensor_scatter_update(flat, F.reshape(places, (-1, 1)), F.reshape(x, (-1,)))
    widen = tuple((0, b - a) for a, b in zip(inner, sizes))
    return F.pad_constant(F.reshape(flat, inner), widen, 0.0)


# ---- normalization ------------------------------------------------------------------------------


@converter("BatchNormalization")
def _batch_norm(
    n: NodeCall, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> Tensor | tuple[Tensor, ...]:
    eps = n.get("epsilon")
    if n.get("training_mode", 0):
        axes = tuple(i for i in range(x.ndim) if i != 1)
        now_mean = F.mean(x, axes, False)
        now_var = F.mean(F.square(x - _channelwise(now_mean, x.ndim)), axes, False)
        m = n.get("momentum")
        kept = (mean * m + now_mean * (1 - m), var * m + now_var * (1 - m))
        return _normalize(x, scale, bias, now_mean, now_var, eps), *kept
    return _normalize(x, scale, bias, mean, var, eps)


def _normalize(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor, eps: float
) -> Tensor:
    factor = scale / F.sqrt(var + eps)
    y = (x - _channelwise(mean, x.ndim)) * _channelwise(factor, x.ndim)
    return F.cast(y + _channelwise(bias, x.ndim), x.dtype)


@converter("InstanceNormalization")
def _instance_norm(n: NodeCall, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    axes = tuple(range(2, x.ndim))
    centred = x - F.mean(x, axes, True)
    y = centred / F.sqrt(F.mean(F.square(centred), axes, True) + n.get("epsilon"))
    return y * _channelwise(scale, x.ndim) + _channelwise(bias, x.ndim)


@converter("LayerNormalization")
def _layer_norm(
    n: NodeCall, x: Tensor, scale: Tensor, bias: Tensor | None = None
) -> Tensor | tuple[Tensor, ...]:
    kind = x.dtype
    x = F.cast(x, dtypes.float32) if kind is not dtypes.float64 else x
    axes = tuple(range(n.get("axis") % x.ndim, x.ndim))
    mean = F.mean(x, axes, True)
    factor = F.reciprocal(F.sqrt(F.mean(F.square(x - mean), axes, True) + n.get("epsilon")))
    y = F.cast((x - mean) * factor, kind) * scale
    y = y if bias is None else y + bias
    return (y, mean, factor)[: max(n.count, 1)] if n.count > 1 else y


@converter("LRN")
def _lrn(n: NodeCall, x: Tensor) -> Tensor:
    size = n.get("size")
    before = (size - 1) // 2
    squares = F.square(x)
    padded = F.pad_constant(
        squares, ((0, 0), (before, size - 1 - before), *((0, 0),) * (x.ndim - 2)), 0.0
    )
    total: Any = 0
    for i in range(size):
        total = total + padded[:, i : i + x.shape[1]]
    return x / F.pow(n.get("bias") + n.get("alpha") / size * total, n.get("beta"))


@converter("LpNormalization")
def _lp_normalization(n: NodeCall, x: Tensor) -> Tensor:
    axis = (n.get("axis") % x.ndim,)
    if n.get("p") == 1:
        size = F.reduce_sum(F.abs(x), axis, True)
    else:
        size = F.sqrt(F.reduce_sum(F.square(x), axis, True))
    return F.where(size == 0, F.zeros_like(x), x / F.where(size == 0, F.ones_like(size), size))


@converter("Col2Im")
def _col2im(n: NodeCall, x: Tensor, *_: object) -> Tensor:
    sizes, kernel = n.ints(1), n.ints(2)
    stride, dilation, extent = window_of(n, kernel)
    pairs = pad_pairs(n, sizes, extent, stride)
    return F.columns_to_image(x, sizes, kernel, stride, pairs, dilation)
