"""Sampling at computed positions: grids, crops."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.ops.common.arguments import bad
from tvmgraph.ops.common.window import Ints, ints, spatial_of

__all__ = ["affine_grid", "crop_and_resize", "grid_sample"]

#: Indices of an axis, and whether they lie within it.
Place = tuple[Tensor, Tensor]
#: Coordinates of every axis, and their weights.
Tap = tuple[Sequence[Tensor], Sequence[Tensor]]
_MAX_INT32 = 2**31 - 1


def _pixels(x: Tensor, size: int, align_corners: bool) -> Tensor:
    """Maps [-1, 1] to pixel coordinates of an axis."""
    return (x + 1) * ((size - 1) / 2) if align_corners else ((x + 1) * size - 1) * 0.5


def _clip(x: Tensor, size: int) -> Tensor:
    return F.minimum(F.maximum(x, 0.0), float(size - 1))


def _reflect(x: Tensor, size: int, align_corners: bool) -> Tensor:
    """Reflects coordinates at the centres or at the outer edges of the border pixels."""
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return F.zeros_like(x)
    away = F.abs(x - low)
    flips = F.floor(away / span)
    rest = away - flips * span
    even = F.equal(flips - 2 * F.floor(flips / 2), 0)
    return _clip(F.where(even, rest + low, high - rest), size)


def _inside(x: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    if padding_mode == "border":
        return _clip(x, size)
    return _reflect(x, size, align_corners) if padding_mode == "reflection" else x


def _places(at: Sequence[Tensor], sizes: Ints) -> list[Place]:
    """Whole coordinates of every axis as indices, and whether they exist."""
    kind = dtypes.int32 if prod(sizes) <= _MAX_INT32 else dtypes.int64
    places = []
    for a, n in zip(at, sizes):
        exists = F.logical_and(a >= 0, a <= n - 1)
        places.append((F.cast(F.where(exists, a, 0.0), kind), exists))
    return places


def _take(flat: Tensor, places: Sequence[Place], sizes: Ints) -> Tensor:
    """Reads ``flat[N, C, prod(sizes)]`` at places ``[N, P]``; outside it is zero."""
    index, exists = places[0]
    for (inner, too), n in zip(places[1:], sizes[1:]):
        index, exists = index * n + inner, F.logical_and(exists, too)
    lead = (*flat.aval.shape[:2], index.aval.shape[1])
    where = F.broadcast_to(F.expand_dims(index, 1), lead)
    return F.where(F.expand_dims(exists, 1), F.gather_elements(flat, 2, where), 0.0)


def _weighted(flat: Tensor, taps: Sequence[Tap], sizes: Ints) -> Tensor:
    """Sum of the values at all combinations of taps, one per axis, times the taps' weights."""
    places = [_places(at, sizes) for at, _ in taps]
    values = []
    for chosen in np.ndindex(*(len(taps),) * len(sizes)):
        weights = [taps[tap][1][axis] for axis, tap in enumerate(chosen)]
        value = _take(flat, [places[tap][axis] for axis, tap in enumerate(chosen)], sizes)
        values.append(value * F.expand_dims(functools.reduce(operator.mul, weights), 1))
    return functools.reduce(operator.add, values)


def _linear(flat: Tensor, at: list[Tensor], sizes: Ints) -> Tensor:
    """Weighted mean of the corners of the cell around every coordinate."""
    lows = [F.floor(a) for a in at]
    highs = [low + 1 for low in lows]
    below = [high - a for high, a in zip(highs, at)]
    above = [a - low for low, a in zip(lows, at)]
    return _weighted(flat, [(lows, below), (highs, above)], sizes)


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Weights of the 4 neighbours at fraction ``t`` (a = -0.75)."""
    a = -0.75

    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic(flat: Tensor, at: list[Tensor], sizes: Ints, padding_mode: str, align: bool) -> Tensor:
    lows = [F.floor(a) for a in at]
    weights = zip(*[_cubic_weights(a - low) for a, low in zip(at, lows)])
    spots = [
        [_inside(low + (t - 1), n, padding_mode, align) for low, n in zip(lows, sizes)]
        for t in range(4)
    ]
    return _weighted(flat, list(zip(spots, weights)), sizes)


def _check_grid(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    op, got = "grid_sample", f"input={input.aval}, grid={grid.aval}"
    modes = ("bilinear", "nearest", "bicubic")
    if mode not in modes or (mode == "bicubic" and input.ndim != 4):
        raise bad(ArgumentError, "mode must be 'bilinear', 'nearest' or (4 axes) 'bicubic'", op,
                   f"mode={mode!r}, {got}")  # fmt: skip
    if padding_mode not in ("zeros", "border", "reflection"):
        raise bad(ArgumentError, "padding_mode must be 'zeros', 'border' or 'reflection'", op,
                   f"padding_mode={padding_mode!r}")  # fmt: skip
    fits = input.ndim in (4, 5) and grid.ndim == input.ndim
    if not fits or grid.shape[-1] != input.ndim - 2 or grid.shape[0] != input.shape[0]:
        raise bad(
            ShapeError, "input must be (N, C, *sizes) and grid (N, *out, number of sizes)", op, got
        )
    if input.dtype is not grid.dtype or not input.dtype.is_float:
        raise bad(DTypeError, "input and grid must have the same float dtype", op, got)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    r"""Reads an image or volume at the positions of a grid.

    Args:
        input: Tensor of shape :math:`(N, C, H, W)` or :math:`(N, C, D, H, W)`, a float dtype.
        grid: Positions in [-1, 1], the last spatial axis of ``input`` first: shape
            :math:`(N, H_{out}, W_{out}, 2)` or :math:`(N, D_{out}, H_{out}, W_{out}, 3)`.
        mode: ``"bilinear"`` (trilinear for volumes), ``"nearest"`` or ``"bicubic"`` (images).
        padding_mode: Outside is zero (``"zeros"``), the border pixel (``"border"``) or the mirror
            image (``"reflection"``).
        align_corners: Whether -1 and 1 are the centres of the corner pixels or their outer edges.

    Returns:
        Tensor of shape :math:`(N, C, *out)`.

    Raises:
        ShapeError: if the shapes do not fit.
        DTypeError: if the dtypes differ or are no floats.
        ArgumentError: if a mode is unknown.

    Example:
        >>> x = Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> ops.grid_sample(x, Tensor([[[[0.0, 0.0]]]]))
        Tensor(shape=[1, 1, 1, 1], dtype=Float32, value=
        [[[[ 2.50000000e+00]]]])
    """
    mode, padding_mode = str(mode).lower(), str(padding_mode).lower()
    _check_grid(input, grid, mode, padding_mode)
    return _sampled(input, grid, mode, padding_mode, bool(align_corners))


@fusible
def _sampled(input: Tensor, grid: Tensor, mode: str, padding_mode: str, align: bool) -> Tensor:
    count = input.ndim - 2
    sizes = spatial_of(input, count, "grid_sample")
    n, channels = input.aval.shape[:2]
    flat = F.reshape(input, (n, channels, prod(sizes)))
    out = spatial_of(F.squeeze(grid[..., 0:1], -1), count, "grid_sample")
    points = F.reshape(grid, (n, prod(out), count))
    at = [_pixels(points[:, :, count - 1 - i], s, align) for i, s in enumerate(sizes)]
    if mode == "bicubic":
        y = _cubic(flat, at, sizes, padding_mode, align)
    else:
        at = [_inside(a, s, padding_mode, align) for a, s in zip(at, sizes)]
        if mode == "nearest":
            y = _take(flat, _places([F.round(a) for a in at], sizes), sizes)
        else:
            y = _linear(flat, at, sizes)
    return F.reshape(y, (n, channels, *out))


def affine_grid(theta: Tensor, size: Any, align_corners: bool = False) -> Tensor:
    r"""Builds the sampling grid of affine maps: :math:`grid = theta \cdot (x, y, 1)^T`.

    Args:
        theta: Maps of shape :math:`(N, 2, 3)` or :math:`(N, 3, 4)`, a float dtype.
        size: Shape of the image to sample: :math:`(N, C, H, W)` or :math:`(N, C, D, H, W)`.
        align_corners: Whether -1 and 1 are the centres of the corner pixels or their outer edges.

    Returns:
        Tensor of shape :math:`(N, H, W, 2)` or :math:`(N, D, H, W, 3)`.

    Raises:
        ShapeError: if ``theta`` does not fit ``size``.

    Example:
        >>> theta = Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
        >>> ops.affine_grid(theta, (1, 1, 2, 2)).shape
        (1, 2, 2, 2)
    """
    op = "affine_grid"
    sizes = ints(size, len(size), "size", op)
    count = len(sizes) - 2
    if count not in (2, 3) or theta.aval.shape != (sizes[0], count, count + 1):
        raise bad(
            ShapeError, "theta must be (N, 2, 3) for 4 sizes, or (N, 3, 4) for 5", op,
            f"theta={theta.aval}, size={sizes}",
        )  # fmt: skip
    axes = []
    for n in sizes[2:]:
        line = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
        axes.append(line if align_corners else line * ((n - 1) / n))
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*mesh[::-1], np.ones_like(mesh[0])], -1).reshape(-1, count + 1)
    grid = F.matmul(Tensor(base, theta.dtype), F.transpose(theta, (0, 2, 1)))
    return F.reshape(grid, (sizes[0], *sizes[2:], count))


# ---- crops ------------------------------------------------------------------------------------


def _crop_lines(start: Tensor, stop: Tensor, size: int, count: int, method: str) -> Tensor:
    """Pixel coordinates ``[boxes, count]`` of a crop along one axis."""
    start, stop = F.expand_dims(start, 1), F.expand_dims(stop, 1)
    steps = F.cast(F.arange(count), start.dtype)
    if method == "bilinear_v2":  # whole pixels, which are areas, from the first to the last
        first, last = F.trunc(start * size), F.trunc(stop * size)
        at = first + (steps + 0.5) * ((last - first + 1) / count) - 0.5
        return F.maximum(F.minimum(at, last), first)
    if count == 1:
        return (start + stop) * ((size - 1) / 2)
    return start * (size - 1.0) + steps * ((stop - start) * ((size - 1.0) / (count - 1)))


def crop_and_resize(
    image: Tensor, boxes: Tensor, box_indices: Tensor, crop_size: object, method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:  # fmt: skip
    r"""Cuts boxes out of images and resizes them.

    Args:
        image: Tensor of shape :math:`(N, H, W, C)`; computed in float32.
        boxes: Corners :math:`(y_1, x_1, y_2, x_2)` in units of the image, :math:`(B, 4)`.
        box_indices: Which image every box belongs to, :math:`(B,)`, an integer dtype.
        crop_size: Size ``(h, w)`` of the results.
        method: ``"bilinear"``, ``"nearest"`` or ``"bilinear_v2"`` (bilinear between the centres of
            the whole pixels that a box touches, edges repeated).
        extrapolation_value: Value of points outside the image (not for ``"bilinear_v2"``).

    Returns:
        float32 Tensor of shape :math:`(B, h, w, C)`.

    Raises:
        ShapeError: if the shapes do not fit.
        ArgumentError: if ``method`` is unknown or ``crop_size`` is not positive.

    Example:
        >>> x, box = ops.ones((1, 4, 4, 1)), Tensor([[0.0, 0.0, 1.0, 1.0]])
        >>> ops.crop_and_resize(x, box, Tensor([0]), (2, 2)).shape
        (1, 2, 2, 1)
    """
    op = "crop_and_resize"
    got = f"image={image.aval}, boxes={boxes.aval}, box_indices={box_indices.aval}"
    if image.ndim != 4 or boxes.ndim != 2 or boxes.shape[1] != 4 or box_indices.ndim != 1:
        raise bad(ShapeError, "image must be (N, H, W, C), boxes (B, 4) and box_indices (B,)", op,
                   got)  # fmt: skip
    if method not in ("bilinear", "nearest", "bilinear_v2"):
        raise bad(ArgumentError, "method must be 'bilinear', 'nearest' or 'bilinear_v2'", op,
                   f"method={method!r}")  # fmt: skip
    height, width = ints(crop_size, 2, "crop_size", op)
    x = F.transpose(F.cast(image, dtypes.float32), (0, 3, 1, 2))
    sizes = spatial_of(x, 2, op)
    boxes, count = F.cast(boxes, dtypes.float32), boxes.shape[0]
    ys = _crop_lines(boxes[:, 0], boxes[:, 2], sizes[0], height, method)
    xs = _crop_lines(boxes[:, 1], boxes[:, 3], sizes[1], width, method)
    shape = (count, height, width)
    at = [F.broadcast_to(F.expand_dims(ys, 2), shape), F.broadcast_to(F.expand_dims(xs, 1), shape)]
    at = [F.reshape(a, (count, height * width)) for a in at]
    flat = F.gather(F.reshape(x, (*x.shape[:2], prod(sizes))), box_indices, 0)
    inside = [_clip(a, n) for a, n in zip(at, sizes)]
    if method == "nearest":  # halves go up
        y = _take(flat, _places([F.floor(a + 0.5) for a in inside], sizes), sizes)
    else:
        y = _linear(flat, inside, sizes)
    if method != "bilinear_v2":
        ok = None
        for a, n in zip(at, sizes):
            part = F.logical_and(a >= 0, a <= n - 1)
            ok = part if ok is None else F.logical_and(ok, part)
        assert ok is not None
        y = F.where(F.expand_dims(ok, 1), y, float(extrapolation_value))
    return F.transpose(F.reshape(y, (count, x.shape[1], height, width)), (0, 2, 3, 1))
