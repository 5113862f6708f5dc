"""Compositions that sample images: resampling by kernels, fractional pooling, boxes of objects."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.dtypes import float32, float64, int64
from tvmgraph.errors import ArgumentError
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.compositions_regions import _kept, _overlaps, resampled

# ---- resampling ----------------------------------------------------------------------------------

#: Kernel -> its radius and its value at a distance within the radius.
KERNELS: dict[str, tuple[float, Callable[[Tensor], Tensor]]] = {
    **{f"lanczos{r}": (r, lambda x, r=r: F.sinc(x) * F.sinc(x / r)) for r in (1, 3, 5)},
    "gaussian": (1.5, lambda x: F.exp(x * x * -2.0)),
    "box": (1, lambda x: F.where(x < 0.5, 1.0, F.where(x == 0.5, 0.5, F.zeros_like(x)))),
    "triangle": (1, lambda x: 1 - x),
    "keyscubic": (2, lambda x: F.where(
        x < 1, (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2)),
    "mitchellcubic": (2, lambda x: F.where(
        x < 1, (7 / 6 * x - 2) * x * x + 8 / 9, ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9)),
}  # fmt: skip


def scale_and_translate(
    images: Tensor,
    size: Sequence[int],
    scale: Tensor,
    translation: Tensor,
    kernel: str,
    antialias: bool,
) -> Tensor:
    """Resamples [N, H, W, C] to a size, scaled and then moved along both axes.

    Args:
        images: Tensor of shape [N, H, W, C].
        size: Height and width of the result.
        scale: Factors of height and width, of shape [2].
        translation: By how many pixels of the result both are moved then, of shape [2].
        kernel: Name of the resampling kernel, as ``"lanczos3"``.
        antialias: Whether the kernel widens where images shrink.

    Returns:
        float32 tensor of shape [N, height, width, C].
    """
    down, across = (
        _resampling(images.shape[k + 1], count, scale[k], translation[k], kernel, antialias)
        for k, count in enumerate(size)
    )
    return resampled(images, down, across)


def _resampling(
    size: int, count: int, scale: Tensor, move: Tensor, kernel: str, antialias: bool
) -> Tensor:
    """Returns the weights [count, size] of the pixels of an axis."""
    radius, value = KERNELS[kernel]
    inverse = 1.0 / F.cast(scale, float32)
    wide = F.maximum(inverse, 1.0) if antialias else F.ones_like(inverse)
    at = (np.arange(count, dtype=np.float32)[:, None] + 0.5) * inverse - inverse * move
    far = F.abs(tensor_from_numpy(np.arange(size, dtype=np.float32) + 0.5) - at) / wide
    within = F.logical_and(far < radius, F.logical_and(at >= 0, at <= size))
    weights = F.where(within, value(far), 0.0)
    total = F.sum(weights, 1, True)
    tiny = F.abs(total) < 1000 * float(np.finfo(np.float32).tiny)
    return weights / F.where(tiny, F.ones_like(total), total)


# ---- fractional pooling --------------------------------------------------------------------------


def fractional_pool(
    x: Tensor,
    ratio: Sequence[float],
    pseudo: bool,
    overlapping: bool,
    fixed: bool,
    seed: int,
    mean: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Pools [N, H, W, C] by windows of random sizes; also returns where these begin and end.

    Args:
        x: Tensor of shape [N, H, W, C].
        ratio: How much smaller every axis gets: [1, h, w, 1], at least 1.
        pseudo: Whether the sizes of windows come from one drawn number rather than a permutation.
        overlapping: Whether windows share the pixels at their edges.
        fixed: Whether ``seed`` decides the draw.
        seed: Seed of NumPy's generator.
        mean: Whether windows are averaged rather than their largest element taken.

    Returns:
        The pooled tensor, and the edges of rows and columns.

    Raises:
        ArgumentError: if ``x`` or ``ratio`` has another form.
    """
    if x.ndim != 4 or len(ratio) != 4 or ratio[0] != 1 or ratio[3] != 1 or min(ratio) < 1:
        raise bad(ArgumentError, "images have four axes, and pooling_ratio is [1, h, w, 1], at "
                  "least 1", "FractionalPool", f"x={x.aval}, pooling_ratio={ratio!r}")  # fmt: skip
    draw = np.random.default_rng(seed)
    edges = []
    for axis in (1, 2):
        size = x.shape[axis]
        count = int(size / ratio[axis])
        drawn = draw.random(count, np.float32) if fixed else F.rand(count, dtype=float32)
        edges.append(_window_edges(size, count, pseudo, F.cast(drawn, float32) if not fixed
                                   else tensor_from_numpy(drawn)))  # fmt: skip
    return pool_windows(x, edges[0], edges[1], overlapping, mean), edges[0], edges[1]


def pool_windows(x: Tensor, rows: Tensor, columns: Tensor, overlapping: bool, mean: bool) -> Tensor:
    """Returns means, or the largest elements, of windows of [N, H, W, C] between edges.

    Args:
        x: Tensor of shape [N, H, W, C].
        rows: Edges of the windows along H, one more than there are windows.
        columns: Edges along W.
        overlapping: Whether windows share the pixels at their edges.
        mean: Whether to average.
    """
    found = F.cast(x, float64) if x.dtype.is_integer else x
    for axis, begins in ((1, rows), (2, columns)):
        size, count = x.shape[axis], begins.shape[0] - 1
        last = F.minimum(begins[1:] - (0 if overlapping else 1), size - 1).expand_dims(1)
        first = begins[:-1].expand_dims(1)
        if mean:
            pixels = tensor_from_numpy(np.arange(size, dtype=np.int64))
            inside = F.cast(F.logical_and(pixels >= first, pixels <= last), found.dtype)
            turned = F.swapaxes(found, axis, 3)  # the axis comes last
            mean_of = F.matmul(turned, F.swapaxes(inside, 0, 1)) / F.sum(inside, 1)
            found = F.swapaxes(mean_of, axis, 3)
        else:
            steps = tensor_from_numpy(np.arange(math.ceil(size / count) + 2, dtype=np.int64))
            places = F.minimum(first + steps, last)
            windows = F.gather(found, F.reshape(places, (-1,)), axis)
            split = (*found.shape[:axis], count, len(steps.array), *found.shape[axis + 1 :])
            found = F.amax(F.reshape(windows, split), axis + 1)
    return F.cast(found, x.dtype)


def _window_edges(size: int, count: int, pseudo: bool, drawn: Tensor) -> Tensor:
    """Returns where ``count`` windows of an axis begin, and where the last one ends."""
    alpha = size / count
    if pseudo and count > 1 and count < size:
        k = int(alpha)
        most = min((k + 2) / alpha - 1, (size + 1 - k) / alpha - (count - 1))
        steps = tensor_from_numpy(np.arange(1, count, dtype=np.float32))
        inner = F.cast(F.ceil((steps + drawn[0] * most) * alpha), int64) - 1
    else:
        rank = F.argsort(F.argsort(drawn))
        lengths = size // count + F.cast(rank < size % count, int64)
        inner = F.cumsum(lengths, 0)[:-1]
    ends = (tensor_from_numpy(np.array([v], np.int64)) for v in (0, size))
    return F.concat((next(ends), inner, next(ends)), 0)


# ---- boxes ---------------------------------------------------------------------------------------


def combined_nms(
    boxes: Tensor, scores: Tensor, per_class: int, total: int, overlap: float, least: float,
    pad_per_class: bool, clip: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Suppresses per class [N, boxes, classes], then keeps the best of all classes.

    Args:
        boxes: Tensor of shape [N, boxes, 1 or classes, 4]: (y1, x1, y2, x2).
        scores: Tensor of shape [N, boxes, classes].
        per_class: Boxes that are kept of a class, at most.
        total: Boxes that are kept of an image, at most.
        overlap: Share of common area (intersection over union) above which the lower score is
            dropped.
        least: Scores up to this are dropped.
        pad_per_class: Whether the result has at most ``per_class * classes`` rows.
        clip: Whether boxes are clipped to :math:`[0, 1]`.

    Returns:
        Boxes, scores and classes of every image, filled with zeros, and how many there are.
    """
    places, values = boxes.asnumpy(), scores.asnumpy()
    n, _, classes = values.shape
    rows, per_class = int(total), int(per_class)
    rows = min(rows, per_class * classes) if pad_per_class else rows
    kept = np.zeros((n, rows, 6), np.float32)
    counts = np.zeros(n, np.int32)
    for i in range(n):
        found: list[np.ndarray] = []
        for c in range(classes):
            score, own = values[i, :, c], places[i, :, c if places.shape[2] > 1 else 0]
            order = np.argsort(-score, kind="stable")
            order = order[score[order] > float(least)]
            order = order[_kept(_overlaps(own[order]), float(overlap))][:per_class]
            given = own[order].clip(0, 1) if clip else own[order]
            found.append(np.column_stack((given, score[order], np.full(len(order), c))))
        best = np.concatenate(found)
        best = best[np.argsort(-best[:, 4], kind="stable")][:rows]
        kept[i, : len(best)], counts[i] = best, len(best)
    return (*(tensor_from_numpy(np.ascontiguousarray(v))
              for v in (kept[..., :4], kept[..., 4], kept[..., 5])),
            tensor_from_numpy(counts))  # fmt: skip


def distorted_box(
    size: Tensor,
    boxes: Tensor,
    covered: Tensor,
    ratios: Sequence[float],
    areas: Sequence[float],
    attempts: int,
    whole: bool,
    seed: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Draws a part of an image that shows a share of one of its boxes (y1, x1, y2, x2).

    Args:
        size: Height, width and channels of the image, integers of shape [3].
        boxes: Boxes relative to the image, of shape [N, boxes, 4].
        covered: Share of a box that must be visible, of shape [1].
        ratios: Least and largest width over height.
        areas: Least and largest share of the image.
        attempts: How often is drawn before the whole image is taken.
        whole: Whether the image is taken as the box where there is none.
        seed: Seed of NumPy's generator; 0 draws from the global stream.

    Returns:
        Where the part begins, its size, and the part as a box of shape [1, 1, 4].

    Raises:
        ShapeError: if ``size`` or ``covered`` has another shape.
        ArgumentError: if there is no box and ``whole`` is false.
    """
    require(covered.shape == (1,) and size.shape == (3,),
            "image_size has 3 elements and min_object_covered one", "SampleDistortedBoundingBoxV2",
            image_size=size, min_object_covered=covered)  # fmt: skip
    h, w, _ = (int(v) for v in size.asnumpy())
    objects = boxes.asnumpy().reshape(-1, 4) * np.array([h, w, h, w], np.float32)
    if not len(objects):
        require(whole, "there is no box; use_image_if_no_bounding_boxes takes the image",
                "SampleDistortedBoundingBoxV2", ArgumentError, bounding_boxes=boxes)  # fmt: skip
        objects = np.array([[0, 0, h, w]], np.float32)
    drawn = np.random.default_rng(seed).random((attempts, 5)) if seed else (
        F.rand(attempts, 5).asnumpy().astype(np.float64))  # fmt: skip
    top, left, height, width = 0, 0, h, w
    for ratio, tall, up, aside, _ in drawn:
        ratio = ratios[0] + ratio * (ratios[1] - ratios[0])
        most = min(round(math.sqrt(areas[1] * h * w / ratio)), h, int(w / ratio))
        fewest = min(round(math.sqrt(areas[0] * h * w / ratio)), most)
        tall = fewest + int(tall * (most - fewest + 1))
        wide = round(tall * ratio)
        if not (0 < tall <= h and 0 < wide <= w
                and areas[0] * h * w <= tall * wide <= areas[1] * h * w):  # fmt: skip
            continue
        y, x = int(up * (h - tall + 1)), int(aside * (w - wide + 1))
        shown = np.maximum(np.minimum(objects[:, 2:], (y + tall, x + wide))
                           - np.maximum(objects[:, :2], (y, x)), 0).prod(1)  # fmt: skip
        if (shown >= covered.item() * (objects[:, 2:] - objects[:, :2]).prod(1)).any():
            top, left, height, width = y, x, tall, wide
            break
    box = np.array([[[top / h, left / w, (top + height) / h, (left + width) / w]]], np.float32)
    begin, part = ([top, left, 0], [height, width, -1])
    return Tensor(begin, size.dtype), Tensor(part, size.dtype), tensor_from_numpy(box)
