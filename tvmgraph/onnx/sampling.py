"""ONNX operators that read images at computed positions."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.network import pad_pairs, window_of, with_bias
from tvmgraph.onnx.table import CONVERTERS, NodeCall, converter, to_tensor
from tvmgraph.ops.image.resample import axis_order, resampling_matrix
from tvmgraph.ops.image.roi_align import Ends, align_by_size, align_regions


@converter("GridSample")
def _grid_sample(n: NodeCall, x: Tensor, grid: Tensor) -> Tensor:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(n.get("mode"), n.get("mode"))
    if mode == "bicubic" and x.ndim != 4:
        raise n.fail("cubic sampling of volumes is not supported")
    return F.grid_sample(x, grid, mode, n.get("padding_mode"), bool(n.get("align_corners")))


CONVERTERS["AffineGrid"] = lambda n, theta, size: F.affine_grid(
    theta, n.ints(1), bool(n.get("align_corners"))
)


def _sample(x: Tensor, at: list[Tensor], mode: str, padding_mode: str = "zeros") -> Tensor:
    """Reads ``x`` at pixel coordinates, one tensor ``(N, *out)`` per spatial axis."""
    scaled = [(2 * a + 1) / s - 1 for a, s in zip(at, x.shape[2:])]
    return F.grid_sample(x, F.stack(scaled[::-1], -1), mode, padding_mode, False)


# ---- deformable convolution ---------------------------------------------------------------------


@converter("DeformConv")
def _deform_conv(
    n: NodeCall, x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    kernel, out, count = w.shape[2:], offset.shape[2:], math.prod(w.shape[2:])
    groups, parts = n.get("offset_group"), n.get("group")
    batch, channels = x.shape[:2]
    stride, dilation, extent = window_of(n, kernel)
    pairs = pad_pairs(n, x.shape[2:], extent, stride)
    moves = F.reshape(offset, (batch * groups, count, len(kernel), *out))
    at = []
    for axis, (s, d, (before, _)) in enumerate(zip(stride, dilation, pairs)):
        place = np.indices((*kernel, *out))  # tap and output position along every axis
        fixed = place[axis] * d + place[len(kernel) + axis] * s - before
        fixed = fixed.reshape(1, count, *out).astype(x.dtype.numpy)
        moved = F.squeeze(moves[:, :, axis : axis + 1], 2) + Tensor(fixed)
        at.append(F.reshape(moved, (batch * groups, count * out[0], *out[1:])))
    images = F.reshape(x, (batch * groups, channels // groups, *x.shape[2:]))
    read = F.reshape(_sample(images, at, "bilinear"), (batch, groups, -1, count, *out))
    if mask is not None:
        read = read * F.reshape(mask, (batch, groups, 1, count, *out))
    columns = F.reshape(read, (batch, parts, channels // parts * count, math.prod(out)))
    y = F.matmul(F.reshape(w, (1, parts, w.shape[0] // parts, -1)), columns)
    return with_bias(F.reshape(y, (batch, w.shape[0], *out)), b)


# ---- regions of interest ------------------------------------------------------------------------


@converter("RoiAlign")
def _roi_align(n: NodeCall, x: Tensor, rois: Tensor, batch: Tensor) -> Tensor:
    out = (n.get("output_height"), n.get("output_width"))
    half = n.get("coordinate_transformation_mode", "output_half_pixel") == "half_pixel"
    corners = F.cast(rois, x.dtype) * n.get("spatial_scale") - (0.5 if half else 0.0)
    ends = []
    for k in (1, 0):  # regions are (x, y)
        span = corners[:, k + 2] - corners[:, k]
        ends.append((corners[:, k], span if half else F.maximum(span, 1.0)))
    images, each = F.cast(batch, dtypes.int64), n.get("sampling_ratio")
    if each <= 0:
        n.known(1)  # the regions decide how many points are read, so they must be known
    if n.get("mode", "avg") == "max":
        return _largest_in_regions(n, x, images, ends, out)
    if each <= 0:
        return align_by_size(x, images, ends, out)
    return align_regions(x, images, ends, out, (each, each))


def _largest_in_regions(
    n: NodeCall, x: Tensor, images: Tensor, ends: list[Ends], out: tuple[int, int]
) -> Tensor:
    """Takes the largest of the points of every bin, region by region."""
    parts, each = [], n.get("sampling_ratio")
    for i in range(images.shape[0]):
        row = slice(i, i + 1)
        own = [(start[row], span[row]) for start, span in ends]
        spans = [float(span.asnumpy()[0]) for _, span in own] if each <= 0 else ()
        points = [max(1, math.ceil(s / o)) for s, o in zip(spans, out)] or [each, each]
        parts.append(_largest_points(F.gather(x, images[row], 0), own, out, points))
    return F.concat(parts, 0)


def _largest_points(x: Tensor, ends: list[Ends], out: tuple[int, int], points: list[int]) -> Tensor:
    lines = []
    for (start, span), bins, each in zip(ends, out, points):
        steps = (np.arange(bins * each, dtype=np.float64) + 0.5) / (bins * each)
        places = to_tensor(steps.astype(x.dtype.numpy))
        lines.append(F.expand_dims(start, 1) + F.expand_dims(span, 1) * places)
    shape = (1, out[0] * points[0], out[1] * points[1])
    at = [F.broadcast_to(F.expand_dims(a, 2 - i), shape) for i, a in enumerate(lines)]
    valid = None
    for a, size in zip(at, x.shape[2:]):
        ok = F.logical_and(a >= -1, a <= size)
        valid = ok if valid is None else F.logical_and(valid, ok)
    inside = [F.minimum(F.maximum(a, 0.0), s - 1.0) for a, s in zip(at, x.shape[2:])]
    read = F.where(F.expand_dims(valid, 1), _largest_corner(x, inside), 0.0)
    bins = F.reshape(read, (1, x.shape[1], out[0], points[0], out[1], points[1]))
    return F.amax(bins, (3, 5))


def _largest_corner(x: Tensor, at: list[Tensor]) -> Tensor:
    """The largest weighted corner of the cell around every point, as the standard has it."""
    lows = [F.floor(a) for a in at]
    best = None
    for corner in np.ndindex(2, 2):
        weight = None
        for c, a, low in zip(corner, at, lows):
            part = a - low if c else low + 1 - a
            weight = part if weight is None else weight * part
        value = _sample(x, [low + c for c, low in zip(corner, lows)], "nearest", "border")
        value = value * F.expand_dims(weight, 1)
        best = value if best is None else F.maximum(best, value)
    assert best is not None
    return best


@converter("MaxRoiPool")
def _max_roi_pool(n: NodeCall, x: Tensor, rois: Tensor) -> Tensor:
    out, scale = n.get("pooled_shape"), n.get("spatial_scale")
    pooled = []
    for row in n.known(1):
        image = int(row[0])
        x1, y1, x2, y2 = (math.floor(v * scale + 0.5) for v in row[1:])  # halves go up
        bins = [_bins(y1, y2, out[0], x.shape[2]), _bins(x1, x2, out[1], x.shape[3])]
        pooled.append(F.stack([_largest(x[image], ys, xs) for ys in bins[0] for xs in bins[1]], -1))
    return F.reshape(F.stack(pooled, 0), (len(pooled), x.shape[1], *out))


def _bins(first: int, last: int, count: int, size: int) -> list[slice]:
    """Pixels of the bins of a region along one axis."""
    step = max(last - first + 1, 1) / count

    def clip(edge: int) -> int:
        return min(max(edge + first, 0), size)

    return [
        slice(clip(math.floor(i * step)), clip(math.ceil((i + 1) * step))) for i in range(count)
    ]


def _largest(image: Tensor, ys: slice, xs: slice) -> Tensor:
    if ys.start >= ys.stop or xs.start >= xs.stop:
        return F.zeros((image.shape[0],), image.dtype)
    return F.amax(image[:, ys, xs], (1, 2))


# ---- ONNX's Resize: one sparse matrix per axis, made of known numbers ----------------------------
# Most are maps that ``resample`` knows, which reads the few elements that count; of others with few
# the elements are gathered and summed.

_GRIDS = (
    ("nearest", False), ("nearest_exact", False), ("linear", False), ("linear", True),
    ("cubic_exact", False), ("cubic_exact", True),
)  # fmt: skip
#: Elements of a sum that are gathered rather than multiplied with a matrix: those of a cubic one.
#: Measured: 3 x 256 x 256 to 1.7 times the size, linear, 1.0 ms instead of 7.0 (AVX2, Zen 3).
_FEW_TAPS = 4


@converter("Resize", "Upsample")
def _resize(n: NodeCall, x: Tensor, *_: object) -> Tensor:
    """Resizes the axes one after the other, each with a matrix of weights."""
    if not x.dtype.is_float and n.get("mode") != "nearest":
        return F.cast(_resize(n, F.cast(x, dtypes.float32)), x.dtype)
    axes = [a % x.ndim for a in n.get("axes") or range(x.ndim)]
    sizes, scales, boxes = _targets(n, x, axes)
    outside: Any = None
    for i in axis_order([x.shape[a] for a in axes], sizes):
        axis = axes[i]
        if sizes[i] == x.shape[axis] and scales[i] == 1 and boxes is None:
            continue
        box = None if boxes is None else (boxes[i], boxes[i + len(axes)])
        points = _positions(n, x.shape[axis], sizes[i], scales[i], box)
        matrix = _weights(n, points, x.shape[axis], scales[i])
        if box is not None:
            out = (points < 0) | (points > x.shape[axis] - 1)
            shape = [1] * x.ndim
            shape[axis] = len(points)
            outside = out.reshape(shape) if outside is None else outside | out.reshape(shape)
        x = _apply(x, matrix, axis, scales[i])
    if outside is not None and n.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        fill = F.full_like(x, n.get("extrapolation_value", 0.0))
        x = F.where(to_tensor(outside), fill, x)
    return x


def _apply(x: Tensor, matrix: np.ndarray, axis: int, scale: float) -> Tensor:
    kind, step = x.dtype, 1 / scale
    size, have = matrix.shape
    for mode, align in _GRIDS if kind.is_float else ():
        if np.allclose(resampling_matrix(have, size, mode, align, step), matrix, 0, 1e-6):
            return F.resample(x, axis=axis, size=size, mode=mode, align_corners=align,
                              scale=step, transposed=False)  # fmt: skip
    taps = int((matrix != 0).sum(1).max())
    if taps <= _FEW_TAPS:
        places = np.argsort(matrix == 0, 1, kind="stable")[:, :taps]
        return _sum_of_taps(x, places, np.take_along_axis(matrix, places, 1), axis)
    weights = to_tensor(np.ascontiguousarray(matrix.T).astype(kind.numpy))
    return F.moveaxis(F.matmul(F.moveaxis(x, axis, -1), weights), -1, axis)


def _sum_of_taps(x: Tensor, places: np.ndarray, weights: np.ndarray, axis: int) -> Tensor:
    shape = [-1 if a == axis else 1 for a in range(x.ndim)]

    def tap(place: np.ndarray, weight: np.ndarray) -> Tensor:
        part = F.gather(x, to_tensor(place), axis)
        if (weight == 1).all():
            return part
        return part * to_tensor(weight.reshape(shape).astype(x.dtype.numpy))

    return functools.reduce(F.add, map(tap, places.T, weights.T))


def _targets(n: NodeCall, x: Tensor, axes: list[int]) -> tuple[list[int], list[float], Any]:
    have = [x.shape[a] for a in axes]
    if n.opset < 11:
        given = n.get("scales") if n.node.op_type == "Upsample" and n.opset < 9 else n.known(1)
        scales = [float(s) for s in given]
        return [math.floor(d * s) for d, s in zip(have, scales)], scales, None
    boxes = None
    if n.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        boxes = n.known(1).tolist()
    if n.has(3):
        sizes = list(n.ints(3))
        scales = [s / d for s, d in zip(sizes, have)]
        policy = n.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scale = (min if policy == "not_larger" else max)(scales)
            scales = [scale] * len(axes)
            sizes = [math.floor(scale * d + 0.5) for d in have]
        return sizes, scales, boxes
    scales = [float(s) for s in n.known(2)]
    if boxes is not None:
        spans = [boxes[i + len(axes)] - boxes[i] for i in range(len(axes))]
        return [math.floor(d * w * s) for d, w, s in zip(have, spans, scales)], scales, boxes
    return [math.floor(d * s) for d, s in zip(have, scales)], scales, boxes


def _positions(
    n: NodeCall, have: int, size: int, scale: float | np.floating, box: Any
) -> np.ndarray:
    """Where the new elements lie between the old ones."""
    # rounding decides which is the nearest: in single precision, as in ONNX Runtime
    kind = np.float32 if n.get("mode") == "nearest" else np.float64
    i = np.arange(size, dtype=kind)
    scale = i.dtype.type(scale)
    mode = n.get("coordinate_transformation_mode")
    if n.opset < 11 or mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        whole = scale * have  # not rounded
        return i * (have - 1) / (whole - 1) if whole != 1 else np.zeros(size)
    if mode == "tf_crop_and_resize":
        start, end = box
        if size > 1:
            return start * (have - 1) + i * (end - start) * (have - 1) / (size - 1)
        return np.full(size, 0.5 * (start + end) * (have - 1))
    if mode == "pytorch_half_pixel" and size == 1:
        return np.full(size, -0.5)
    if mode == "half_pixel_symmetric":
        adjustment = size / (scale * have)
        centre = have / 2
        return centre * (1 - adjustment) + (i + 0.5) / scale - 0.5
    return (i + 0.5) / scale - 0.5


def _weights(n: NodeCall, points: np.ndarray, have: int, scale: float) -> np.ndarray:
    """Returns a matrix with one row of weights per new element."""
    mode = n.get("mode")
    if mode == "nearest":
        places = np.clip(_rounded(n, points), 0, have - 1).astype(np.int64)
        return np.eye(have)[places]
    wide = max(1.0, 1 / scale) if n.get("antialias", 0) else 1.0
    radius = 1 if mode == "linear" else 2
    reach = math.ceil(radius * wide)  # a wider kernel takes the mean of what it covers
    matrix = np.zeros((len(points), have))
    for row, point in enumerate(points):
        first = math.floor(point) - reach + 1
        taps = np.arange(first, first + 2 * reach)
        weights = _kernel(n, mode, (point - taps) / wide)
        if n.get("exclude_outside", 0):
            weights = np.where((taps < 0) | (taps >= have), 0, weights)
        weights = weights / weights.sum()
        np.add.at(matrix[row], np.clip(taps, 0, have - 1), weights)
    return matrix


def _kernel(n: NodeCall, mode: str, t: np.ndarray) -> np.ndarray:
    t = np.abs(t)
    if mode == "linear":
        return np.maximum(1 - t, 0)
    a = n.get("cubic_coeff_a", -0.75)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _rounded(n: NodeCall, points: np.ndarray) -> np.ndarray:
    mode = n.get("nearest_mode", "floor") if n.opset >= 11 else "floor"
    if mode == "floor":
        return np.floor(points)
    if mode == "ceil":
        return np.ceil(points)
    if mode == "round_prefer_ceil":
        return np.floor(points + 0.5)
    return np.ceil(points - 0.5)
