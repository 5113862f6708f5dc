"""Compositions on images and boxes, which classes and functions of operators share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import hooks
from tvmgraph.core.arguments import DTypeLike, PerAxis
from tvmgraph.core.columns import NumberLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.dtypes import float32, int32, int64
from tvmgraph.errors import ShapeError, reject
from tvmgraph.ops.common.window import Ints, out_sizes, same_padding, tap
from tvmgraph.ops.image.roi_align import align_by_size, align_regions

# ---- boxes: rows (x1, y1, x2, y2) or (y1, x1, y2, x2), which gives the same overlaps ------------


def _overlaps(boxes: np.ndarray, offset: float = 0.0) -> np.ndarray:
    """Returns intersection over union of all pairs; sides are ``offset`` longer."""
    lows, highs = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    sides = np.maximum(
        np.minimum(highs[:, None], highs) - np.maximum(lows[:, None], lows) + offset, 0
    )
    common, areas = sides.prod(-1), (highs - lows + offset).prod(-1)
    union = areas[:, None] + areas - common
    return np.where(union > 0, common / np.where(union > 0, union, 1), 0)


def _kept(overlaps: np.ndarray, threshold: float) -> np.ndarray:
    """Returns which rows, best first, overlap no better one that is kept."""
    kept = np.ones(len(overlaps), bool)
    for i in range(len(overlaps)):
        if kept[i]:
            kept[i + 1 :] &= overlaps[i, i + 1 :] <= threshold
    return kept


def nms_with_mask(bboxes: Tensor, threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the rows sorted by their last element, numbers of these, and which are kept.

    Args:
        bboxes: Tensor of shape [N, 5]: two corners and the score.
        threshold: Share of common area (intersection over union) above which the lower score is
            dropped.
    """
    count = bboxes.shape[0]
    order = F.argsort(-bboxes[:, 4], 0)
    rows = F.gather(bboxes, order, 0)
    boxes = F.cast(rows[:, :4], float32)
    lows, highs = F.minimum(boxes[:, :2], boxes[:, 2:]), F.maximum(boxes[:, :2], boxes[:, 2:])
    inner = F.minimum(highs.expand_dims(1), highs) - F.maximum(lows.expand_dims(1), lows)
    common, areas = F.prod(F.relu(inner), -1), F.prod(highs - lows, -1)
    union = areas.expand_dims(1) + areas - common
    later = tensor_from_numpy(np.triu(np.ones((count, count), np.bool_), 1))
    above = F.logical_and(common > union * threshold, later)

    # Whether the first k rows are kept is known after k rounds: there is one answer that a round
    # leaves as it is, and as many rounds as rows that suppress one another in turn find it.
    def next_round(kept: Tensor) -> Tensor:
        return ~F.logical_and(above, kept.expand_dims(1)).any(0)

    def differ(state: Sequence[Tensor]) -> list[Tensor]:
        return [(state[0] != state[1]).any()]

    def advance(state: Sequence[Tensor]) -> list[Tensor]:
        return [state[1], next_round(state[1])]

    state = [tensor_from_numpy(np.ones(count, np.bool_)), ~above.any(0)]
    found = hooks.loop(state, differ, advance)
    while found is None and differ(state)[0]:
        state = advance(state)
    kept = (state if found is None else found)[1]
    return rows, tensor_from_numpy(np.arange(count, dtype=np.int32)), kept


def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    limit: int,
    threshold: NumberLike,
    least: float,
    overlaps: bool = False,
) -> Tensor:
    """Returns the numbers of the boxes (or rows of a table of overlaps) that are kept.

    Args:
        boxes: Boxes of shape [N, 4], or overlaps of shape [N, N].
        scores: Tensor of shape [N].
        limit: Boxes that are kept, at most.
        threshold: Overlap above which the lower score is dropped.
        least: Scores up to this are dropped.
        overlaps: Whether ``boxes`` are overlaps.

    Returns:
        int32 numbers, the best score first.
    """
    table, values = boxes.asnumpy().astype(np.float32), scores.asnumpy()
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > float(least)]
    pairs = table[np.ix_(order, order)] if overlaps else _overlaps(table[order])
    return Tensor(order[_kept(pairs, float(threshold))][: int(limit)], int32)


def roi_align(
    features: Tensor, rois: Tensor, size: tuple[int, int], scale: float, samples: int, end: int
) -> Tensor:
    """Averages features at places within regions: rows (image, x1, y1, x2, y2).

    Args:
        features: Tensor of shape [N, C, H, W].
        rois: Tensor of shape [regions, 5].
        size: Height and width of the result.
        scale: Factor from the regions' coordinates to those of the features.
        samples: Places per axis of a bin; 0 takes as many as the size of the region asks for.
        end: What is added to the far corner of a region, 0 or 1.

    Returns:
        Tensor of shape [regions, C, height, width].
    """
    boxes = F.cast(rois, float32)
    ends = []
    for axis in (2, 1):  # y, then x
        low = boxes[:, axis] * scale
        length = (boxes[:, axis + 2] + end) * scale - low
        ends.append((low, F.maximum(length, 0.0) if end else length))
    images, wide = F.cast(boxes[:, 0], int64), F.cast(features, float32)
    if samples > 0:
        found = align_regions(wide, images, ends, size, (samples, samples))
    else:
        found = align_by_size(wide, images, ends, size)
    return F.cast(found, features.dtype)


# ---- patches and pools --------------------------------------------------------------------------


def position_sensitive_pool(
    features: Tensor, rois: Tensor, scale: float, channels: int, bins: int
) -> Tensor:
    """Averages features over the bins of regions, each bin in channels of its own.

    Args:
        features: Tensor [N, channels * bins * bins, H, W].
        rois: Tensor [N, 5, R] with rows (image, x1, y1, x2, y2).
        scale: Size of the features divided by that of the image.
        channels: Channels of the result.
        bins: Rows and columns of bins per region.

    Returns:
        Tensor [N * R, channels, bins, bins]; a bin without features is 0.

    Raises:
        ShapeError: if the features have not as many channels as bins need, or a region not 5
            numbers; a RuntimeError, too, as of MindSpore's kernel.

    Reference:
        Dai et al., R-FCN: Object Detection via Region-based Fully Convolutional Networks (2016).
    """
    needed = channels * bins * bins
    if features.ndim != 4 or features.shape[1] != needed or rois.ndim != 3 or rois.shape[1] != 5:
        reject(ShapeError, "PSROIPooling",
               f"features must have the shape (N, {needed}, H, W), and rois (N, 5, R)",
               f"features={features.aval}, rois={rois.aval}",
               "give output_dim * group_size ** 2 channels, and the image and 4 ends per region",
        )  # fmt: skip
    boxes = np.swapaxes(rois.asnumpy(), 1, 2).reshape(-1, 5).astype(np.float32)
    height, width = features.shape[2:]
    shares = []
    for axis, size in ((2, height), (1, width)):
        ends = boxes[:, [axis, axis + 2]] * np.float32(scale)
        start, end = np.copysign(np.floor(np.abs(ends) + 0.5), ends).T
        step = np.maximum(end - start, np.float32(0.1)) / bins
        edges = np.arange(bins, dtype=np.float32)
        first = np.floor(edges * step[:, None] + start[:, None])[..., None]
        last = np.ceil((edges + 1) * step[:, None] + start[:, None])[..., None]
        inside = (np.arange(size) >= first) & (np.arange(size) < last)
        shares.append(inside / np.maximum(inside.sum(-1, keepdims=True), 1))
    weights = shares[0][:, :, None, :, None] * shares[1][:, None, :, None, :]
    images = Tensor(boxes[:, 0].astype(np.int32))
    parted = F.reshape(F.gather(features, images, 0), (-1, channels, bins, bins, height, width))
    return F.sum(parted * Tensor(weights[:, None], features.dtype), (-2, -1))


def _windows(x: Tensor, kernel: Ints, stride: Ints, rates: Ints) -> list[Tensor]:
    """Returns, for every place of a window, the elements of all windows; last axes slide."""
    out = out_sizes(x.shape[-len(kernel) :], kernel, stride, ((0, 0),) * len(kernel), rates)
    places = itertools.product(*map(range, kernel))
    return [x[tap(place, out, stride, rates)] for place in places]


def _spatial(value: Any, count: int) -> tuple[int, ...]:
    """Returns the numbers of the sliding axes, without those of batch and channels."""
    items = (value,) * count if isinstance(value, int) else tuple(value)
    return items[-count:]


def _bordered(x: Tensor, kernel: Ints, stride: Ints, rates: Ints, mode: str, fill: float) -> Tensor:
    """Adds what the mode ``"SAME"`` adds before and behind each axis."""
    if mode.upper() != "SAME":
        return x
    pads = same_padding(x.shape[2:], kernel, stride, rates)
    flat = [n for pair in reversed(pads) for n in pair]
    return F.pad(x, flat, "constant", fill) if any(flat) else x


def extract_patches(
    x: Tensor, kernel: object, stride: PerAxis, rates: object, padding: str
) -> Tensor:
    """Puts the elements of every window along the channels: [..., places * C, out...].

    Args:
        x: Tensor of shape [N, C, *spatial].
        kernel: Sizes of the windows.
        stride: Distances of neighbouring windows.
        rates: Distances of neighbouring elements of a window.
        padding: ``"SAME"`` or ``"VALID"``.
    """
    count = x.ndim - 2
    kernel, stride, rates = (_spatial(v, count) for v in (kernel, stride, rates))
    x = _bordered(x, kernel, stride, rates, padding, 0.0)
    return F.concat(_windows(x, kernel, stride, rates), 1)


def dilation2d(x: Tensor, kernel: Tensor, stride: PerAxis, rates: object, pad_mode: str) -> Tensor:
    """Returns the largest sum of a window and a kernel [C, h, w].

    Args:
        x: Tensor of shape [N, C, H, W].
        kernel: What is added to a window.
        stride: Distances of neighbouring windows.
        rates: Distances of neighbouring elements of a window.
        pad_mode: ``"SAME"`` or ``"VALID"``.
    """
    size = kernel.shape[1:]
    stride, rates = _spatial(stride, 2), _spatial(rates, 2)
    x = _bordered(x, size, stride, rates, pad_mode, float("-inf"))
    weights = F.reshape(kernel, (kernel.shape[0], -1))
    parts = _windows(x, size, stride, rates)
    sums = [p + F.reshape(weights[:, i], (-1, 1, 1)) for i, p in enumerate(parts)]
    return F.amax(F.stack(sums, 0), 0)


def max_pool_with_argmax(
    x: Tensor, kernel: object, stride: PerAxis, pad_mode: str, data_format: str
) -> tuple[Tensor, Tensor]:
    """Returns the largest elements of windows and where they are in an image (int32).

    Args:
        x: Tensor of shape [N, C, H, W], or [N, H, W, C].
        kernel: Sizes of the windows.
        stride: Distances of neighbouring windows.
        pad_mode: ``"SAME"`` or ``"VALID"``.
        data_format: ``"NCHW"`` or ``"NHWC"``.
    """
    if data_format == "NHWC":
        x = F.transpose(x, (0, 3, 1, 2))
    kernel, stride = _spatial(kernel, 2), _spatial(stride, 2)
    same = pad_mode.upper() == "SAME"
    pads = same_padding(x.shape[2:], kernel, stride, (1, 1)) if same else ((0, 0), (0, 0))
    window = {"kernel": kernel, "stride": stride, "padding": pads, "dilation": (1, 1)}
    planes = np.arange(x.shape[1]).reshape(-1, 1, 1) * math.prod(x.shape[2:])
    where = F.max_pool_index(x, **window) + tensor_from_numpy(planes)
    found = F.max_pool(x, **window), F.cast(where, int32)
    if data_format == "NHWC":
        return F.transpose(found[0], (0, 2, 3, 1)), F.transpose(found[1], (0, 2, 3, 1))
    return found


def max_pool3d_argmax(
    x: Tensor,
    ksize: object,
    strides: PerAxis,
    pads: object,
    dilation: PerAxis,
    ceil_mode: bool,
    dtype: DTypeLike,
) -> tuple[Tensor, Tensor]:
    """Returns the largest elements of windows and where they are in a volume.

    Args:
        x: Tensor of shape [N, C, D, H, W].
        ksize: Sizes of the windows.
        strides: Distances of neighbouring windows.
        pads: Padding of every axis.
        dilation: Distances of neighbouring elements of a window.
        ceil_mode: Whether windows that reach beyond the end count.
        dtype: dtype of the positions.
    """
    values, where = F.max_pool3d(
        x, _spatial(ksize, 3), _spatial(strides, 3), _spatial(pads, 3), _spatial(dilation, 3),
        ceil_mode, return_indices=True,
    )  # fmt: skip
    return values, F.cast(where, dtype)


def fractional_max_pool(
    x: Tensor, samples: Tensor, ksize: object, size: object
) -> tuple[Tensor, Tensor]:
    """Returns the largest elements of windows that samples [N, C, axes] of [0, 1) place.

    They come with where they are in an image or volume (int64). As in PyTorch, the samples of an
    image are those of width and height, those of a volume of depth, height and width.

    Args:
        x: Tensor of shape [N, C, H, W] or [N, C, D, H, W].
        samples: Tensor of shape [N, C, axes].
        ksize: Sizes of the windows.
        size: Sizes of the result.
    """
    count = x.ndim - 2
    kernel, size = _spatial(ksize, count), _spatial(size, count)
    starts = [
        _fractional_starts(samples[..., i], n, k, s)
        for i, n, k, s in zip((1, 0) if count == 2 else (0, 1, 2), x.shape[2:], kernel, size)
    ]
    values, flat = [], F.reshape(x, (*x.shape[:2], -1))
    numbers = []
    for place in itertools.product(*map(range, kernel)):
        index: Any = None
        for axis, (start, p) in enumerate(zip(starts, place)):
            shape = (*x.shape[:2], *[1] * axis, size[axis], *[1] * (count - 1 - axis))
            own = F.reshape(start + p, shape)
            index = own if index is None else index * x.shape[2 + axis] + own
        index = F.broadcast_to(index, (*x.shape[:2], *size))
        numbers.append(index)
        found = F.gather_elements(flat, 2, F.reshape(index, (*x.shape[:2], -1)))
        values.append(F.reshape(found, (*x.shape[:2], *size)))
    stacked = F.stack(values, 0)
    best = F.argmax(stacked, 0).expand_dims(0)
    return F.amax(stacked, 0), F.gather_elements(F.stack(numbers, 0), 0, best)[0]


def _fractional_starts(sample: Tensor, size: int, kernel: int, count: int) -> Tensor:
    """Returns where windows begin, [N, C, count]."""
    last = size - kernel
    if count == 1:
        return F.full((*sample.shape, 1), last, dtype=int64)
    alpha = last / (count - 1)
    steps = tensor_from_numpy(np.arange(count - 1, dtype=np.float32))
    u = F.cast(sample, float32).expand_dims(-1)
    found = F.cast(F.floor((steps + u) * alpha) - F.floor(u * alpha), int64)
    return F.concat((found, F.full((*sample.shape, 1), last, dtype=int64)), -1)


def resize_area(images: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Averages the area of [N, H, W, C] that every pixel of the result covers.

    Args:
        images: Tensor of shape [N, H, W, C].
        size: Height and width of the result.
        align_corners: Whether the first and last points of both grids coincide; otherwise pixels
            are areas.

    Returns:
        float32 tensor.
    """
    height, width = (int(v) for v in (size.asnumpy() if isinstance(size, Tensor) else size))
    sizes = zip(images.shape[1:], (height, width))
    return resampled(images, *(_area(n, m, align_corners) for n, m in sizes))


def resampled(images: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Multiplies the columns and rows of [N, H, W, C] by a matrix each, in float32.

    Args:
        images: Tensor of shape [N, H, W, C].
        down: Matrix of shape [rows of the result, H].
        across: Matrix of shape [columns of the result, W].
    """
    x = F.transpose(F.cast(images, float32), (0, 3, 1, 2))
    return F.transpose(F.matmul(F.matmul(down, x), F.swapaxes(across, 0, 1)), (0, 2, 3, 1))


def _area(size: int, count: int, align_corners: bool) -> Tensor:
    scale = (size - 1) / (count - 1) if align_corners and count > 1 else size / count
    low = np.arange(count)[:, None] * scale
    ends = np.append(np.arange(1, size), np.inf)  # the last pixel goes on for ever
    cover = np.minimum(low + scale, ends) - np.maximum(low, np.arange(size))
    return tensor_from_numpy((np.maximum(cover, 0) / scale).astype(np.float32))


def adjust_hsv(
    images: Tensor,
    turn: object,
    factor: Tensor,
    to_hsv: Callable[[Tensor], Tensor],
    to_rgb: Callable[[Tensor], Tensor],
) -> Tensor:
    """Adds to the hue and multiplies the saturation of colours along the last axis.

    Args:
        images: Tensor of shape [*, 3] with elements in :math:`[0, 1]`.
        turn: What is added to the hue, 1 being once around.
        factor: Factor of the saturation.
        to_hsv: Converts RGB to HSV.
        to_rgb: Converts it back.
    """
    hsv = to_hsv(images)
    hue = F.floor_mod(hsv[..., 0] + turn, 1.0)
    return to_rgb(F.stack((hue, F.clamp(hsv[..., 1] * factor, 0.0, 1.0), hsv[..., 2]), -1))


# ---- glimpses -----------------------------------------------------------------------------------


def extract_glimpse(
    x: Tensor, size: Sequence[int], offsets: Tensor, centered: bool, normalized: bool, noise: str
) -> Tensor:
    """Returns windows of images (N, H, W, C) at places that offsets (N, 2) give.

    Args:
        x: The images.
        size: Height and width of the windows.
        offsets: Row and column of their middles.
        centered: Whether these count from the middle of the image.
        normalized: Whether they count in images, centered ones from -1 to 1.
        noise: What lies outside: ``"zero"``, or random ``"uniform"`` or ``"gaussian"`` numbers.
    """
    n, height, width, channels = x.shape
    rows, columns = (int(v) for v in (size.asnumpy() if isinstance(size, Tensor) else size))
    places = []
    for axis, (whole, part) in enumerate(((height, rows), (width, columns))):
        at = offsets[:, axis] * whole if normalized else offsets[:, axis]
        at = at / 2 + whole / 2 if centered else at
        start = F.cast(at - part / 2, int64)
        places.append(F.expand_dims(start, 1) + F.arange(part))
    row, column = F.expand_dims(places[0], 2), F.expand_dims(places[1], 1)
    inside = F.logical_and(
        F.logical_and(row >= 0, row < height), F.logical_and(column >= 0, column < width)
    )
    flat = F.clamp(row, 0, height - 1) * width + F.clamp(column, 0, width - 1)
    index = F.broadcast_to(F.reshape(flat, (n, -1, 1)), (n, rows * columns, channels))
    found = F.gather_elements(F.reshape(x, (n, height * width, channels)), 1, index)
    found = F.reshape(found, (n, rows, columns, channels))
    outside = {"zero": F.zeros, "uniform": F.rand, "gaussian": F.randn}[noise]
    return F.where(F.expand_dims(inside, 3), found, F.cast(outside(found.shape), x.dtype))


def matrix_logarithm(x: Tensor) -> Tensor:
    """Returns the logarithm of complex matrices that can be diagonalized.

    Args:
        x: complex64 or complex128 tensor of shape [*, n, n].
    """
    values, vectors = F.eig(x)
    return F.matmul(vectors * F.expand_dims(F.log(values), -2), F.inverse(vectors))
