"""What operator classes of layers compute: convolution, pooling, normalisation, resizing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvmgraph.compat.primitives.helpers import ints
from tvmgraph.core import rules
from tvmgraph.core.arguments import DTypeLike, PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.random import Seed
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.dtypes import float32, int32
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops import compositions_sequences
from tvmgraph.ops.common.window import resolve_padding, spatial_of
from tvmgraph.ops.image.interpolate import resize as resampled


def _pair(value: Any, count: int = 2) -> tuple[int, ...]:
    """Returns spatial sizes: an int, one per axis, or with leading batch and channel ones."""
    items = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    return items[-count:]


def _channels_first(x: Tensor) -> Tensor:
    return F.transpose(x, (0, 3, 1, 2))


def _channels_last(x: Tensor) -> Tensor:
    return F.transpose(x, (0, 2, 3, 1))


# ---- convolution ---------------------------------------------------------------------------------


def conv2d(
    x: Tensor, weight: Tensor, out_channel: int, kernel_size: PerAxis, pad_mode: str, pad: object,
    stride: PerAxis, dilation: PerAxis, group: int, data_format: str,
) -> Tensor:  # fmt: skip
    """Convolves images in either layout.

    Args:
        x: Images [N, C, H, W] or [N, H, W, C].
        weight: Kernels [O, C / group, h, w] or [O, h, w, C / group].
        out_channel: Number O of output channels.
        kernel_size: Height and width of the kernels.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        pad: Padding where the mode is ``"pad"``.
        stride: Steps of the window, one number or one per axis.
        dilation: Distance of a window's elements, one number or one per axis.
        group: Into how many groups channels are split.
        data_format: ``"NCHW"`` or ``"NHWC"``.
    """
    if data_format == "NHWC":
        x, weight = _channels_first(x), _channels_first(weight)
    if weight.shape[0] != out_channel or weight.shape[2:] != _pair(kernel_size):
        raise ShapeError(
            f"the weight must have {out_channel} output channels and kernel {_pair(kernel_size)}",
            op="ops.Conv2D", got=f"weight={weight.aval}",
        )  # fmt: skip
    y = F.conv2d(x, weight, None, _pair(stride), pad_mode.lower(), pad, _pair(dilation), group)
    return _channels_last(y) if data_format == "NHWC" else y


def conv2d_input_grad(
    dout: Tensor, weight: Tensor, input_size: object, pad_mode: str, pad: object, stride: PerAxis,
    dilation: PerAxis, group: int,
) -> Tensor:  # fmt: skip
    """Transposed convolution to images of shape ``input_size``: ``[N, C, H, W]``.

    Args:
        dout: Gradient of the convolution's result [N, O, H', W'].
        weight: Kernels [O, C / group, h, w].
        input_size: Shape of the images.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        pad: Padding where the mode is ``"pad"``.
        stride: Steps of the window, one number or one per axis.
        dilation: Distance of a window's elements, one number or one per axis.
        group: Into how many groups channels are split.
    """
    size = ints(input_size)
    kernel, step, gap = weight.shape[2:], _pair(stride), _pair(dilation)
    target = F.zeros(size, dout.dtype)
    pairs = resolve_padding(pad_mode, pad, target, kernel, step, gap, "Conv2DTranspose")
    extra = tuple(
        n - ((o - 1) * s - lo - hi + d * (k - 1) + 1)
        for n, o, s, (lo, hi), d, k in zip(size[2:], dout.shape[2:], step, pairs, gap, kernel)
    )
    return F.conv_transpose(
        dout, weight, stride=step, padding=pairs, output_padding=extra, dilation=gap, groups=group
    )


def depthwise_conv2d(
    x: Tensor, weight: Tensor, pad_mode: str, pad: object, stride: PerAxis, dilation: PerAxis
) -> Tensor:
    """Convolves every channel on its own; weight is ``[multiplier, C, H, W]``.

    Args:
        x: Images [N, C, H, W].
        weight: Kernels.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        pad: Padding where the mode is ``"pad"``.
        stride: Steps of the window, one number or one per axis.
        dilation: Distance of a window's elements, one number or one per axis.
    """
    multiplier, channels, *kernel = weight.shape
    weight = F.reshape(F.transpose(weight, (1, 0, 2, 3)), (multiplier * channels, 1, *kernel))
    mode = pad_mode.lower()
    return F.conv2d(x, weight, None, _pair(stride), mode, pad, _pair(dilation), channels)


def im2col(x: Tensor, ksizes: object, strides: PerAxis, dilations: object, pads: object) -> Tensor:
    """Lays windows out as ``[N, C, window, position]``.

    Args:
        x: Images [N, C, H, W].
        ksizes: Height and width of the window.
        strides: Steps of the window.
        dilations: Distance of a window's elements.
        pads: Zeros on every side.
    """
    cols = F.unfold(x, ksizes, dilations, pads, strides)
    window = math.prod(_pair(ksizes))
    return F.reshape(cols, (x.shape[0], x.shape[1], window, -1))


# ---- pooling -------------------------------------------------------------------------------------


def pool(
    fn: Callable[..., Tensor],
    x: Tensor,
    kernel: object,
    stride: PerAxis,
    pad_mode: str,
    data_format: str,
) -> Tensor:
    """Pools images in either layout.

    Args:
        fn: The function ``fn(x, kernel, stride, pad_mode)``.
        x: Images [N, C, H, W] or [N, H, W, C].
        kernel: Size of the window, one number or one per axis.
        stride: Steps of the window, one number or one per axis.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        data_format: ``"NCHW"`` or ``"NHWC"``.
    """
    if data_format == "NHWC":
        return _channels_last(fn(_channels_first(x), _pair(kernel), _pair(stride), pad_mode))
    return fn(x, _pair(kernel), _pair(stride), pad_mode)


def max_pool(x: Tensor, kernel: Any, stride: Any, pad_mode: str, pad: Any = 0) -> Tensor:
    """Maximum pooling over any number of spatial axes.

    Args:
        x: Tensor [N, C, ...].
        kernel: Size of the window, one number per axis.
        stride: Steps of the window, one number per axis.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        pad: Padding where the mode is ``"pad"``.
    """
    ones = (1,) * len(kernel)
    pairs = resolve_padding(pad_mode.lower(), pad, x, kernel, stride, ones, "MaxPool")
    return F.max_pool(x, kernel=kernel, stride=stride, padding=pairs, dilation=ones)


def avg_pool(x: Tensor, kernel: Any, stride: Any, pad_mode: str) -> Tensor:
    """Average pooling; padding does not count.

    Args:
        x: Tensor [N, C, ...].
        kernel: Size of the window, one number per axis.
        stride: Steps of the window, one number per axis.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
    """
    pairs = resolve_padding(pad_mode.lower(), 0, x, kernel, stride, (1,) * len(kernel), "AvgPool")
    average = getattr(F, f"avg_pool{len(kernel)}d")
    if not any(lo or hi for lo, hi in pairs):
        return average(x, kernel, stride)
    flat = tuple(p for pair in reversed(pairs) for p in pair)
    inside = average(F.pad(F.ones((1, 1, *x.shape[2:]), x.dtype), flat), kernel, stride)
    return F.div(average(F.pad(x, flat), kernel, stride), inside)


def avg_pool3d(
    x: Tensor, kernel: object, stride: PerAxis, pad_mode: str, pad: object, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int,
) -> Tensor:  # fmt: skip
    """Average pooling of volumes.

    Args:
        x: Volumes [N, C, D, H, W].
        kernel: Size of the window, one number or one per axis.
        stride: Steps of the window, one number or one per axis.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        pad: Padding where the mode is ``"pad"``.
        ceil_mode: Whether a window that is cut off at the end counts.
        count_include_pad: Whether padding counts in the divisor.
        divisor_override: The divisor, unless 0.
    """
    kernel, stride = _pair(kernel, 3), _pair(stride, 3)
    if pad_mode.lower() == "same":
        return avg_pool(x, kernel, stride, pad_mode)
    return F.avg_pool3d(x, kernel, stride, pad, ceil_mode, count_include_pad, divisor_override)


def max_pool3d(
    x: Tensor, kernel: object, stride: PerAxis, pad_mode: str, pad: object, ceil_mode: bool | None
) -> Tensor:
    """Maximum pooling of volumes.

    Args:
        x: Volumes [N, C, D, H, W].
        kernel: Size of the window, one number or one per axis.
        stride: Steps of the window, one number or one per axis.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        pad: Padding where the mode is ``"pad"``.
        ceil_mode: Whether a window that is cut off at the end counts.
    """
    kernel, stride = _pair(kernel, 3), _pair(stride, 3)
    if ceil_mode:
        return F.max_pool3d(x, kernel, stride, pad, 1, True)
    return max_pool(x, kernel, stride, pad_mode, pad)


def max_pool_argmax(
    x: Tensor,
    kernel: object,
    stride: PerAxis,
    pads: object,
    dilation: PerAxis,
    ceil_mode: bool,
    dtype: DTypeLike,
) -> tuple[Tensor, Tensor]:
    """Maximum pooling with the position of every maximum in its image.

    Args:
        x: Images [N, C, H, W].
        kernel: Size of the window, one number or one per axis.
        stride: Steps of the window, one number or one per axis.
        pads: Cells on every side that are never the maximum.
        dilation: Distance of a window's elements, one number or one per axis.
        ceil_mode: Whether a window that is cut off at the end counts.
        dtype: dtype of the positions.
    """
    y, index = F.max_pool2d(x, kernel, stride, pads, dilation, True, ceil_mode)
    return y, F.cast(index, dtype)


# ---- normalisation -------------------------------------------------------------------------------


def batch_norm(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, is_training: bool,
    epsilon: float, momentum: float, data_format: str,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Normalises channels; returns the result, then batch mean and variance twice.

    In inference the statistics are not computed and those four are zero.

    Args:
        x: Tensor [N, C, ...], or [N, ..., C].
        scale: Factor per channel [C].
        bias: What is added per channel [C].
        mean: Running mean [C].
        variance: Running variance [C].
        is_training: Whether the statistics are those of the batch.
        epsilon: What is added to the variance.
        momentum: Share of the batch in the running statistics.
        data_format: ``"NCHW"`` or ``"NHWC"``.
    """
    if data_format == "NHWC":
        y, *rest = batch_norm(
            _channels_first(x), scale, bias, mean, variance, is_training, epsilon, momentum, "NCHW"
        )
        return (_channels_last(y), *rest)
    if is_training:
        axes = tuple(i for i in range(x.ndim) if i != 1)
        stats = (F.mean(x, axes), F.var(x, axes))
    else:
        stats = (F.zeros_like(mean), F.zeros_like(variance))
    y = F.batch_norm(x, mean, variance, scale, bias, is_training, momentum, epsilon)
    return (y, *stats, *stats)


def layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, begin_norm_axis: int, begin_params_axis: int,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalises the last axes; returns the result, and mean and variance.

    These are float32 and have no gradients.

    Args:
        x: Tensor of any shape.
        gamma: Factors, of the shape of the axes from ``begin_params_axis`` on.
        beta: What is added, of the same shape.
        begin_norm_axis: The first axis that is normalised.
        begin_params_axis: The first axis of the parameters.
        epsilon: What is added to the variance.
    """
    first = rules.normalize_axis(begin_norm_axis, x.ndim, "begin_norm_axis")
    params = rules.normalize_axis(begin_params_axis, x.ndim, "begin_params_axis")
    axes = tuple(range(first, x.ndim))
    wide = F.cast(x, float32)
    mean = F.mean(wide, axes, True)
    centred = F.sub(wide, mean)
    variance = F.mean(F.square(centred), axes, True)
    if params == first:
        y = F.layer_norm(x, x.shape[first:], gamma, beta, epsilon)
    else:
        y = F.cast(F.mul(centred, F.rsqrt(F.add(variance, epsilon))), x.dtype)
        y = F.add(F.mul(y, gamma), beta)
    return y, F.stop_gradient(mean), F.stop_gradient(variance)


# ---- resizing ------------------------------------------------------------------------------------


def resize(image: Tensor, size: object, mode: str, align_corners: bool, half_pixel: bool) -> Tensor:
    """Resizes images ``[N, C, H, W]``.

    Without ``align_corners`` and ``half_pixel_centers`` output pixel i samples position i·in/out.

    Args:
        image: Images [N, C, H, W].
        size: Height and width of the result.
        mode: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
        align_corners: Whether the centres of the corner pixels coincide.
        half_pixel: Whether pixel centres lie at half numbers.
    """
    pair = ints(size)
    if image.ndim != 4 or not isinstance(pair, tuple) or len(pair) != 2:
        raise ShapeError("an image of 4 axes and a size of 2 numbers are needed",
                         op=f"ops.Resize{mode.capitalize()}",
                         got=f"{image.aval}, size={pair}")  # fmt: skip
    height, width = pair
    if mode == "bilinear" and not (align_corners or half_pixel):
        rows = _linear_weights(image.shape[2], height, image)
        columns = _linear_weights(image.shape[3], width, image)
        return F.matmul(F.matmul(rows, image), F.transpose(columns, (1, 0)))
    if mode == "nearest":
        rows = _nearest(image.shape[2], height, align_corners, half_pixel)
        columns = _nearest(image.shape[3], width, align_corners, half_pixel)
        return F.gather(F.gather(image, rows, 2), columns, 3)
    if mode == "bicubic" and align_corners and half_pixel:
        raise ArgumentError("align_corners and half_pixel_centers exclude each other",
                            op="ops.ResizeBicubic")  # fmt: skip
    if mode == "bicubic" and not (align_corners or half_pixel):
        return resampled(
            image,
            spatial_of(image, 2, "ResizeBicubic"),
            (height, width),
            "cubic_asymmetric",
            False,
            (0, 0),
        )
    return F.interpolate(image, (height, width), mode=mode, align_corners=align_corners)


def _linear_weights(size: int, count: int, like: Tensor) -> Tensor:
    position = np.arange(count) * (size / count)
    low = np.minimum(position.astype(int), size - 1)
    weights = np.zeros((count, size))
    rest = position - low
    np.add.at(weights, (np.arange(count), low), 1 - rest)
    np.add.at(weights, (np.arange(count), np.minimum(low + 1, size - 1)), rest)
    return tensor_from_numpy(weights.astype(like.dtype.numpy))


def _nearest(size: int, count: int, align_corners: bool, half_pixel: bool) -> Tensor:
    steps = np.arange(count)
    if align_corners:
        # halves go up, as in MindSpore's kernels; NumPy's would go to even numbers
        position = np.floor(steps * ((size - 1) / max(count - 1, 1)) + 0.5)
    else:
        position = np.floor((steps + 0.5 * half_pixel) * (size / count))
    return tensor_from_numpy(np.minimum(position, size - 1).astype(np.int64))


# ---- losses, random numbers ----------------------------------------------------------------------


def multilabel_margin(x: Tensor, target: Tensor, reduction: str) -> tuple[Tensor, Tensor]:
    """Returns the loss of sets of classes, and which classes are right.

    Args:
        x: Scores [N, C] or [C].
        target: The right classes, ended by -1, of that shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
    loss = F.multilabel_margin_loss(x, target, reduction)
    ended = F.cumsum(F.cast(target < 0, float32), -1) > 0
    classes = F.where(ended, -1, target)
    right = F.equal(F.expand_dims(classes, -1), F.arange(x.shape[-1]))
    return loss, F.cast(F.reduce_any(right, (-2,), False), target.dtype)


def _drawn_shape(op: str, shape: object, *parameters: Tensor) -> tuple[int, ...]:
    sizes = shape.asnumpy().tolist() if isinstance(shape, Tensor) else ints(shape)
    try:
        return np.broadcast_shapes(tuple(sizes), *(p.shape for p in parameters))
    except ValueError:
        raise ShapeError(
            "the shape and those of the parameters do not broadcast", op=op,
            got=f"shape={tuple(sizes)}, " + ", ".join(str(p.shape) for p in parameters),
        ) from None  # fmt: skip


def gamma(shape: object, alpha: Tensor, beta: Tensor, seed: object) -> Tensor:
    """Draws one number of each gamma distribution, whose parameters broadcast with a shape.

    Args:
        shape: The shape.
        alpha: Orders.
        beta: Rates.
        seed: Where the numbers come from.
    """
    wanted = _drawn_shape("ops.Gamma", shape, alpha, beta)
    return F.gamma((), F.broadcast_to(alpha, wanted), F.broadcast_to(beta, wanted), seed)


def poisson_of(shape: object, mean: Tensor, seed: Seed) -> Tensor:
    """Draws one int32 of each Poisson distribution, whose means broadcast with a shape.

    Args:
        shape: The shape.
        mean: Means.
        seed: Where the numbers come from.
    """
    wanted = _drawn_shape("ops.Poisson", shape, mean)
    return compositions_sequences.poisson((), F.broadcast_to(mean, wanted), int32, seed)
