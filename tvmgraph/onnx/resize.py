"""ONNX's Resize: one sparse matrix per axis, made of known numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.table import NodeCall, to_tensor


def resize(n: NodeCall, x: Tensor) -> Tensor:
    """Resizes the axes one after the other, each with a matrix of weights.

    Args:
        n: The node.
        x: Input of any shape.

    Returns:
        Tensor of ``x``'s dtype; axes that the node does not name keep their sizes.
    """
    axes = [a % x.ndim for a in n.get("axes") or range(x.ndim)]
    sizes, scales, boxes = _targets(n, x, axes)
    outside: Any = None
    for i, axis in enumerate(axes):
        if sizes[i] == x.shape[axis] and scales[i] == 1 and boxes is None:
            continue
        box = None if boxes is None else (boxes[i], boxes[i + len(axes)])
        points = _points(n, x.shape[axis], sizes[i], scales[i], box)
        matrix = _weights(n, points, x.shape[axis], scales[i])
        if box is not None:
            out = (points < 0) | (points > x.shape[axis] - 1)
            shape = [1] * x.ndim
            shape[axis] = len(points)
            outside = out.reshape(shape) if outside is None else outside | out.reshape(shape)
        x = _apply(x, matrix, axis)
    if outside is not None and n.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        fill = F.full_like(x, n.get("extrapolation_value", 0.0))
        x = F.where(to_tensor(outside), fill, x)
    return x


def _apply(x: Tensor, matrix: np.ndarray, axis: int) -> Tensor:
    kind = x.dtype
    if not kind.is_float:  # nearest of integers: every row picks one element
        return F.gather(x, to_tensor(matrix.argmax(1)), axis)
    order = [a for a in range(x.ndim) if a != axis]
    moved = F.transpose(x, (*order, axis))
    y = F.matmul(moved, to_tensor(np.ascontiguousarray(matrix.T).astype(kind.numpy)))
    back = np.argsort([*order, axis])
    return F.transpose(y, tuple(int(b) for b in back))


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


def _points(n: NodeCall, have: int, size: int, scale: float, box: Any) -> np.ndarray:
    """Where the new elements lie between the old ones."""
    i = np.arange(size, dtype=np.float64)
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
