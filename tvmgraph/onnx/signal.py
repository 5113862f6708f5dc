"""ONNX operators of signals, boxes and quantized networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.network import convolve, with_bias
from tvmgraph.onnx.table import NodeCall, converter, to_tensor


@converter("DFT")
def _dft(n: NodeCall, x: Tensor, length: object = None, axis: AxisLike | None = None) -> Tensor:
    """The last axis holds real and imaginary parts (or real parts only)."""
    along = n.number(2, -2) if n.opset >= 20 else n.get("axis", 1)
    along %= x.ndim
    inverse, one_sided = bool(n.get("inverse", 0)), bool(n.get("onesided", 0))
    size = x.shape[along]
    if inverse and one_sided:
        wanted = n.number(1, 2 * (size - 1))
        return _real_inverse(x, along, int(wanted))
    count = int(n.number(1, size))
    x = _resized(x, along, count)
    return _transform(x, along, count, count // 2 + 1 if one_sided else count, inverse)


def _resized(x: Tensor, axis: int, size: int) -> Tensor:
    pairs = [(0, 0)] * x.ndim
    pairs[axis] = (0, max(0, size - x.shape[axis]))
    return F.pad_constant(x[(slice(None),) * axis + (slice(0, size),)], tuple(pairs), 0.0)


def _waves(rows: int, count: int, sign: int, kind: np.dtype) -> tuple[Tensor, Tensor]:
    angles = 2 * np.pi * np.outer(np.arange(rows), np.arange(count)) / count
    return to_tensor(np.cos(angles).astype(kind)), to_tensor((sign * np.sin(angles)).astype(kind))


def _transform(x: Tensor, axis: int, count: int, rows: int, inverse: bool) -> Tensor:
    cos, sin = _waves(rows, count, 1 if inverse else -1, x.dtype.numpy)
    real = F.moveaxis(x[..., 0], axis, -1)
    parts = [F.matmul(real, F.transpose(m, (1, 0))) for m in (cos, sin)]
    if x.shape[-1] == 2:
        imaginary = F.moveaxis(x[..., 1], axis, -1)
        parts[0] = parts[0] - F.matmul(imaginary, F.transpose(sin, (1, 0)))
        parts[1] = parts[1] + F.matmul(imaginary, F.transpose(cos, (1, 0)))
    y = F.stack([F.moveaxis(p, -1, axis) for p in parts], -1)
    return y / count if inverse else y


def _real_inverse(x: Tensor, axis: int, count: int) -> Tensor:
    """From the first half of a symmetric spectrum to real values."""
    half = count // 2 + 1
    x = _resized(x, axis, half)
    twice = np.full(half, 2.0)
    twice[0] = 1
    if count % 2 == 0:
        twice[-1] = 1
    shape = [1] * x.ndim
    shape[axis] = half
    x = x * to_tensor(twice.reshape(shape).astype(x.dtype.numpy))
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(half)) / count
    cos, sin = (to_tensor(m.T.astype(x.dtype.numpy)) for m in (np.cos(angles), np.sin(angles)))
    real, imaginary = (F.moveaxis(x[..., k], axis, -1) for k in (0, 1))
    y = F.matmul(real, cos) - F.matmul(imaginary, sin)
    return F.expand_dims(F.moveaxis(y, -1, axis), -1) / count


@converter("STFT")
def _stft(
    n: NodeCall, x: Tensor, step: object, window: Any = None, length: object = None
) -> Tensor:
    hop = int(n.number(1))
    size = int(n.number(3)) if n.has(3) else window.shape[0]
    frames = 1 + (x.shape[1] - size) // hop
    parts = F.stack([x[:, i * hop : i * hop + size] for i in range(frames)], 1)
    if window is not None:
        parts = parts * F.reshape(window, (1, 1, -1, 1))
    rows = size // 2 + 1 if n.get("onesided", 1) else size
    return _transform(parts, 2, size, rows, False)


@converter("MelWeightMatrix")
def _mel_weights(n: NodeCall, *_: object) -> np.ndarray:
    bands, length, rate, low, high = (n.number(i) for i in range(5))
    kind = n.dtype("output_datatype", dtypes.float32)
    edges = np.linspace(2595 * np.log10(1 + low / 700), 2595 * np.log10(1 + high / 700), bands + 2)
    # the standard's own definition steps by (high - low) / (bands + 2)
    first, last = edges[0], edges[-1]
    edges = first + np.arange(bands + 2) * (last - first) / (bands + 2)
    bins = np.floor((length + 1) * (700 * (10 ** (edges / 2595) - 1)) / rate).astype(np.int64)
    out = np.zeros((length // 2 + 1, bands))
    for i in range(bands):
        left, centre, right = bins[i : i + 3]
        if centre == left:
            out[centre, i] = 1
        else:
            rising = np.arange(left, centre + 1)
            out[rising, i] = (rising - left) / (centre - left)
        if right > centre:
            falling = np.arange(centre, right)
            out[falling, i] = (right - falling) / (right - centre)
    return out.astype(kind.numpy)


@converter("NonMaxSuppression")
def _nms(n: NodeCall, *_: object) -> np.ndarray:
    """How many boxes are left depends on values, so it runs on known boxes only."""
    boxes, scores = n.known(0), n.known(1)
    limit, overlap, least = (n.number(i, d) for i, d in ((2, 0), (3, 0.0), (4, None)))
    kept = []
    for batch, image in enumerate(boxes):
        corners = _corners(image, n.get("center_point_box"))
        for group, values in enumerate(scores[batch]):
            order = np.argsort(-values, kind="stable")
            if least is not None:
                order = order[~(values[order] <= least)]
            chosen = _without_overlaps(corners, order, overlap, int(limit))
            kept += [(batch, group, i) for i in chosen]
    return np.asarray(kept, np.int64).reshape(-1, 3)


def _without_overlaps(
    corners: np.ndarray, order: np.ndarray, overlap: float, limit: int
) -> list[int]:
    """The first boxes in an order that overlap none before them.

    Sorted along an axis, those that a box may overlap follow one another.
    """
    sorting = np.argsort(corners[0, order], kind="stable")
    boxes = corners[:, order[sorting]]
    low, high = boxes[:2], boxes[2:]
    longest = np.max(high[0] - low[0], initial=0)
    first, end = np.searchsorted(low[0], low[0] - longest), np.searchsorted(low[0], high[0])
    area, free = np.prod(high - low, 0), np.ones(len(order), np.bool_)
    chosen: list[int] = []
    with np.errstate(divide="ignore", invalid="ignore"):  # boxes without an area overlap none
        for number, at in zip(order.tolist(), np.argsort(sorting).tolist()):
            if len(chosen) >= limit:
                break
            if not free[at]:
                continue
            chosen.append(number)
            near = slice(first[at], end[at])
            if near.stop - near.start > 1:
                joint = _common(low[0, at], high[0, at], low[0, near], high[0, near])
                joint *= _common(low[1, at], high[1, at], low[1, near], high[1, near])
                shares = joint / (area[at] + area[near] - joint)
                free[near] &= ~(shares > overlap)
    return chosen


def _common(start: np.floating, stop: np.floating, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Length that an interval has in common with others."""
    common = np.minimum(stop, high)
    common -= np.maximum(start, low)
    return np.maximum(common, 0, out=common)


def _corners(boxes: np.ndarray, centred: int) -> np.ndarray:
    if centred:
        x, y, w, h = boxes.T
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2])
    first, second = boxes.T[:2], boxes.T[2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)])


# ---- quantized ----------------------------------------------------------------------------------


def _requantize(y: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    info = np.iinfo(zero.dtype.numpy)
    rounded = F.round(y / F.cast(scale, y.dtype)) + F.cast(zero, y.dtype)
    return F.cast(F.minimum(F.maximum(rounded, float(info.min)), float(info.max)), zero.dtype)


def _real(x: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    wide = F.cast(x, dtypes.float64) - F.cast(zero, dtypes.float64)
    return wide * F.cast(scale, dtypes.float64)


@converter("QLinearMatMul")
def _q_mat_mul(n: NodeCall, *xs: Tensor) -> Tensor:
    """The inputs are both factors, each with scale and zero point, and those of the result."""
    return _requantize(F.matmul(_real(*xs[:3]), _real(*xs[3:6])), *xs[6:])


@converter("QLinearConv")
def _q_conv(
    n: NodeCall, x: Tensor, sx: Tensor, zx: Tensor, w: Tensor, sw: Tensor, zw: Tensor, s: Tensor,
    z: Tensor, b: object = None,
) -> Tensor:  # fmt: skip
    column = (-1, *(1,) * (w.ndim - 1))
    sw_wide = F.reshape(sw, column) if sw.ndim else sw
    zw_wide = F.reshape(zw, column) if zw.ndim else zw
    y = convolve(n, _real(x, sx, zx), _real(w, sw_wide, zw_wide), None)
    if b is not None:
        real = F.cast(b, dtypes.float64) * F.cast(sx, dtypes.float64) * F.cast(sw, dtypes.float64)
        y = with_bias(y, real)
    return _requantize(y, s, z)
