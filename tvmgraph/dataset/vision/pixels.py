"""Arithmetic of images, as OpenCV does it: integers where pixels are bytes.

Images are arrays (height, width, channels), uint8 or float. MindSpore's transforms of arrays are
OpenCV's, so their pixels come out equal; Pillow's filters give other ones.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

import numpy as np

from tvmgraph.dataset.vision.kinds import Fill, Inter

Taps = tuple[np.ndarray, np.ndarray]  # (size, k) places and float32 weights

_CUBIC = -0.75  # the parameter of the cubic kernel
_STEPS = 32  # places between two pixels that warps know


def saturated(values: np.ndarray, dtype: np.dtype | type) -> np.ndarray:
    """Rounds to the nearest value (halves to even) that ``dtype`` has; floats stay as they are.

    Args:
        values: Array of numbers.
        dtype: dtype of the result.
    """
    if np.dtype(dtype).kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def gray(image: np.ndarray) -> np.ndarray:
    """Returns the luminance of RGB, (height, width): 0.299 R + 0.587 G + 0.114 B.

    Args:
        image: Array (height, width, channels), at least three of them.
    """
    if image.dtype == np.uint8:
        weights = np.array([9798, 19235, 3735])
        return ((image[..., :3].astype(np.int32) @ weights + (1 << 14)) >> 15).astype(np.uint8)
    return image[..., :3] @ np.array([0.299, 0.587, 0.114], image.dtype)


def hue_of(image: np.ndarray) -> np.ndarray:
    """Returns hue (256 for a full turn), saturation and value of RGB bytes as bytes.

    Args:
        image: uint8 array (height, width, 3).
    """
    r, g, b = np.moveaxis(image.astype(np.int32), -1, 0)
    value = image.max(-1).astype(np.int32)
    span = value - image.min(-1)
    numbers = np.maximum(np.arange(256), 1)
    of_value = np.rint((255 << 12) / numbers).astype(np.int32) * (np.arange(256) > 0)
    of_span = np.rint((256 << 12) / (6.0 * numbers)).astype(np.int32) * (np.arange(256) > 0)
    saturation = (span * of_value[value] + (1 << 11)) >> 12
    sector = np.where(value == r, g - b, np.where(value == g, b - r + 2 * span, r - g + 4 * span))
    hue = (sector * of_span[span] + (1 << 11)) >> 12
    return np.stack([hue + 256 * (hue < 0), saturation, value], -1).astype(np.uint8)


def rgb_of(hsv: np.ndarray) -> np.ndarray:
    """Returns RGB bytes of what :func:`hue_of` gives; there, 255 is a full turn.

    Args:
        hsv: uint8 array (height, width, 3).
    """
    h, s, v = np.moveaxis(hsv.astype(np.float32), -1, 0) / np.float32(255)
    place = h * np.float32(6)
    sector = np.floor(place)
    rest = place - sector
    parts = np.stack([v, v * (1 - s), v * (1 - s * rest), v * (1 - s * (1 - rest))], -1)
    order = np.array([[0, 3, 1], [2, 0, 1], [1, 0, 3], [1, 2, 0], [3, 1, 0], [0, 1, 2]])
    picked = np.take_along_axis(parts, order[sector.astype(int) % 6], -1)
    return saturated(picked * np.float32(255), np.uint8)


def blend(
    image: np.ndarray, other: np.ndarray | float, factor: float, other_first: bool = False
) -> np.ndarray:
    """Returns ``factor * image + (1 - factor) * other``.

    Args:
        image: Array of any shape.
        other: Array of that shape, or a number.
        factor: Share of ``image``; it may be above 1 or below 0.
        other_first: Whether ``other`` is the first summand, whose product is not rounded before
            the sum; otherwise ``image`` is.
    """
    own, rest = np.float32(factor), np.float32(1 - np.float64(np.float32(factor)))
    if np.ndim(other) == 0:
        return saturated(image * own + np.float32(other) * rest, image.dtype)
    if other_first:
        total = (image * own).astype(np.float64) + np.asarray(other, np.float64) * rest
    else:
        total = image * np.float64(own) + np.float32(other) * rest
    return saturated(total.astype(np.float32), image.dtype)


# ---- resizing ---------------------------------------------------------------------------------


def resize(image: np.ndarray, height: int, width: int, how: Inter) -> np.ndarray:
    """Resizes an image.

    Args:
        image: (height, width) or (height, width, channels).
        height: The new height.
        width: The new width.
        how: The interpolation; for ``ANTIALIAS`` and ``PILCUBIC`` see :func:`with_pillow`.
    """
    if how in (Inter.ANTIALIAS, Inter.PILCUBIC):
        return with_pillow(image, height, width, how)
    planes = image if image.ndim == 3 else image[..., None]
    opencv = _opencv() if _is_exact(planes, how) else None
    if planes.shape[:2] != (height, width) and opencv is not None:
        planes = opencv.resize(planes, (width, height), interpolation=_OPENCVS[how])
        planes = planes.reshape(height, width, -1)
    elif planes.shape[:2] != (height, width):
        shrinks = height <= planes.shape[0] and width <= planes.shape[1]
        halves = planes.shape[:2] == (2 * height, 2 * width)
        if how == Inter.AREA and not shrinks:
            taps = _area_linear(planes.shape[0], height), _area_linear(planes.shape[1], width)
            planes = _separable(planes, *taps, Inter.LINEAR)
        elif how == Inter.LINEAR and halves:
            planes = resize(planes, height, width, Inter.AREA)
        else:
            rows = _linear_rows if how == Inter.LINEAR else _TAPS[how]
            taps = rows(planes.shape[0], height), _TAPS[how](planes.shape[1], width)
            planes = _separable(planes, *taps, how)
    return planes if image.ndim == 3 else planes[..., 0]


#: OpenCV's numbers of the interpolations that it is asked for.
_OPENCVS = {Inter.NEAREST: 0, Inter.LINEAR: 1, Inter.AREA: 3}


@functools.cache
def _opencv() -> ModuleType | None:
    """Returns OpenCV where it is installed, or None.

    It works in the thread that calls it: several at a time are the pipeline's workers, and threads
    of its own would not live in forked ones.
    """
    try:
        opencv = importlib.import_module("cv2")
    except ImportError:
        return None
    opencv.setNumThreads(0)
    return opencv


def _is_exact(planes: np.ndarray, how: Inter) -> bool:
    """Whether OpenCV gives the same pixels, which takes it less time.

    They are not the same of its cubic kernel, of floats, and where two channels are halved.
    """
    exact = how in _OPENCVS and planes.shape[2] in (1, 3, 4)
    return exact and planes.dtype == np.uint8 and planes.size > 0


def _scale(old: int, new: int) -> float:
    return 1 / (new / old)


def _nearest(old: int, new: int) -> Taps:
    place = np.floor(np.arange(new) * _scale(old, new)).astype(np.intp)
    return np.minimum(place, old - 1)[:, None], np.ones((new, 1), np.float32)


def _between(old: int, new: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pixel before each place, and how far behind it the place is."""
    place = ((np.arange(new) + 0.5) * _scale(old, new) - 0.5).astype(np.float32)
    before = np.floor(place)
    return before.astype(np.intp), place - before


def _linear_rows(old: int, new: int) -> Taps:
    before, rest = _between(old, new)  # at the border, both are the same row
    return np.clip(np.stack([before, before + 1], 1), 0, old - 1), np.stack([1 - rest, rest], 1)


def _linear(old: int, new: int) -> Taps:
    before, rest = _between(old, new)
    rest = np.where((before < 0) | (before >= old - 1), np.float32(0), rest)
    before = np.clip(before, 0, old - 1)
    places = np.minimum(np.stack([before, before + 1], 1), old - 1)
    return places, np.stack([1 - rest, rest], 1)


def _area_linear(old: int, new: int) -> Taps:
    before = np.floor(np.arange(new) * _scale(old, new)).astype(np.intp)
    rest = ((np.arange(new) + 1) - (before + 1) * (new / old)).astype(np.float32)
    rest = np.where(rest <= 0, np.float32(0), rest - np.floor(rest))
    rest = np.where(before >= old - 1, np.float32(0), rest)
    places = np.clip(np.stack([before, before + 1], 1), 0, old - 1)
    return places, np.stack([1 - rest, rest], 1)


def _cubic(old: int, new: int) -> Taps:
    before, rest = _between(old, new)
    return np.clip(before[:, None] + np.arange(-1, 3), 0, old - 1), _cubic_weights(rest)


def _cubic_weights(x: np.ndarray) -> np.ndarray:
    a, x = np.float32(_CUBIC), x.astype(np.float32)
    first = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    second = ((a + 2) * x - (a + 3)) * x * x + 1
    third = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1
    return np.stack([first, second, third, 1 - first - second - third], -1)


def _area(old: int, new: int) -> Taps:
    scale = _scale(old, new)
    start = np.arange(new) * scale
    stop = np.minimum(start + scale, old)
    places = np.floor(start).astype(np.intp)[:, None] + np.arange(int(np.ceil(scale)) + 1)
    inside = np.minimum(stop[:, None], places + 1) - np.maximum(start[:, None], places)
    weights = np.where(inside > 1e-3, inside, 0) / (stop - start)[:, None]
    return np.minimum(places, old - 1), weights.astype(np.float32)


_TAPS = {Inter.NEAREST: _nearest, Inter.LINEAR: _linear, Inter.CUBIC: _cubic, Inter.AREA: _area}


def _separable(planes: np.ndarray, rows: Taps, columns: Taps, how: Inter) -> np.ndarray:
    """Sums pixels with weights, along rows first; bytes with weights of 11 bits."""
    if how == Inter.NEAREST:
        return planes[rows[0][:, 0][:, None], columns[0][:, 0]]
    exact = planes.dtype == np.uint8 and how != Inter.AREA
    kind = np.int32 if exact else np.float32
    scale = 2048 if exact else 1
    used, where = np.unique(rows[0], return_inverse=True)
    where = where.reshape(rows[0].shape)
    source = planes[used].reshape(len(used), -1)
    down, along = (
        np.rint(w * np.float32(scale)).astype(kind) if exact else w for w in (rows[1], columns[1])
    )
    channels = np.arange(planes.shape[2])
    across: Any = 0
    for k in range(along.shape[1]):  # pixels of a row, with their channels, are one axis
        places = (columns[0][:, k, None] * planes.shape[2] + channels).reshape(-1)
        weights = np.repeat(along[:, k], planes.shape[2])
        across = across + np.take(source, places, 1, mode="clip") * weights
    if exact and how == Inter.LINEAR:
        across >>= 4  # bytes keep few bits between the two sums
    parts = [(down[:, k, None], across[where[:, k]]) for k in range(down.shape[1])]
    shape = len(down), len(along), planes.shape[2]
    return _rounded(parts, how, planes).reshape(shape)


def _rounded(
    parts: list[tuple[np.ndarray, np.ndarray]], how: Inter, planes: np.ndarray
) -> np.ndarray:
    """Sums products and returns numbers of the dtype of ``planes``."""
    if planes.dtype != np.uint8 or how == Inter.AREA:
        total: Any = sum(w * s for w, s in parts)
        halved = planes.size == 4 * total.size and planes.shape[0] == 2 * len(total)
        if planes.dtype == np.uint8 and halved:
            total = np.floor(total + np.float32(0.5))  # of four pixels, halves are rounded up
        return saturated(total, planes.dtype)
    if how == Inter.LINEAR:
        total = sum((w * s) >> 16 for w, s in parts)
        return ((total + 2) >> 2).astype(np.uint8)
    total = sum(w * s for w, s in parts)
    return np.clip((total + (1 << 21)) >> 22, 0, 255).astype(np.uint8)


def with_pillow(image: np.ndarray, height: int, width: int, how: Inter) -> np.ndarray:
    """Resizes with Pillow's filters, which look at more pixels the smaller the result is.

    Args:
        image: Array (height, width) or (height, width, channels).
        height: Height of the result.
        width: Width of the result.
        how: The filter.
    """
    from PIL import Image

    filters = {
        Inter.NEAREST: Image.Resampling.NEAREST, Inter.LINEAR: Image.Resampling.BILINEAR,
        Inter.CUBIC: Image.Resampling.BICUBIC, Inter.PILCUBIC: Image.Resampling.BICUBIC,
        Inter.AREA: Image.Resampling.BOX, Inter.ANTIALIAS: Image.Resampling.LANCZOS,
    }  # fmt: skip
    if image.dtype == np.uint8 and image.ndim == 3 and image.shape[-1] == 3:
        return np.asarray(Image.fromarray(image).resize((width, height), filters[how]))
    planes = image[..., None] if image.ndim == 2 else image
    done = []
    for plane in np.moveaxis(planes, -1, 0):
        source = np.ascontiguousarray(plane if plane.dtype == np.uint8 else plane.astype("f4"))
        done.append(np.asarray(Image.fromarray(source).resize((width, height), filters[how])))
    result = np.stack(done, -1).astype(image.dtype)
    return result[..., 0] if image.ndim == 2 else result


# ---- warping ----------------------------------------------------------------------------------


def warp_affine(
    image: np.ndarray, matrix: np.ndarray, size: tuple[int, int], how: Inter, fill: Fill
) -> np.ndarray:
    """Moves pixels by an affine map.

    Args:
        image: (height, width) or (height, width, channels).
        matrix: (2, 3): from (x, y, 1) of the image to (x, y) of the result.
        size: Height and width of the result.
        how: The interpolation.
        fill: What stands outside the image: a number, or one per channel.
    """
    back = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))
    x, y = np.arange(size[1]), np.arange(size[0])[:, None]
    unit = 1024  # places are integers: 10 bits behind the point
    half = unit // 2 if how == Inter.NEAREST else unit // _STEPS // 2
    shift = 10 if how == Inter.NEAREST else 5
    places = [
        (np.rint((b * y + c) * unit).astype(np.int64) + half
         + np.rint(a * x * unit).astype(np.int64)) >> shift
        for a, b, c in back[:2]
    ]  # fmt: skip
    return _remap(image, places[0], places[1], how, fill)


def warp_perspective(image: np.ndarray, matrix: np.ndarray, how: Inter) -> np.ndarray:
    """Moves pixels by a (3, 3) map between homogeneous coordinates; the outside is black.

    Args:
        image: Array (height, width, ...).
        matrix: The map from places of the image to those of the result.
        how: How pixels are read between places.
    """
    back = np.linalg.inv(matrix)
    height, width = image.shape[:2]
    at = np.stack(np.broadcast_arrays(np.arange(width), np.arange(height)[:, None], 1), -1)
    x, y, w = np.moveaxis(at @ back.T, -1, 0)
    scale = (1 if how == Inter.NEAREST else _STEPS) / np.where(w == 0, np.inf, w)
    places = [np.clip(np.rint(v * scale), -(2**30), 2**30).astype(np.int64) for v in (x, y)]
    return _remap(image, places[0], places[1], how, 0)


def _remap(image: np.ndarray, x: np.ndarray, y: np.ndarray, how: Inter, fill: Fill) -> np.ndarray:
    """Reads pixels at (x, y), in thirty-seconds of a pixel unless the nearest is wanted."""
    planes = image if image.ndim == 3 else image[..., None]
    height, width, channels = planes.shape
    framed = np.empty((height + 2, width + 2, channels), planes.dtype)
    framed[:] = np.resize(np.asarray(fill), channels) if np.ndim(fill) else fill
    framed[1:-1, 1:-1] = planes

    def at(dx: int, dy: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return framed[np.clip(y + dy + 1, 0, height + 1), np.clip(x + dx + 1, 0, width + 1)]

    if how == Inter.NEAREST:
        found = at(0, 0, x, y)
    else:
        table = _weights(how == Inter.CUBIC)
        taps = table.shape[-1]
        weights = table[y & 31, x & 31]
        first = 0 if taps == 2 else -1
        kind = np.int64 if planes.dtype == np.uint8 else np.float32
        total: Any = sum(
            at(j + first, i + first, x >> 5, y >> 5).astype(kind) * weights[..., i, j, None]
            for i in range(taps) for j in range(taps)
        )  # fmt: skip
        if planes.dtype == np.uint8:
            found = np.clip((total + (1 << 14)) >> 15, 0, 255).astype(np.uint8)
        else:
            found = (total / 32768).astype(planes.dtype)
    return found if image.ndim == 3 else found[..., 0]


@functools.cache
def _weights(cubic: bool) -> np.ndarray:
    """Returns weights by the thirty-seconds of y and x, (32, 32, k, k), which sum to 32768."""
    rest = np.arange(_STEPS) / np.float32(_STEPS)
    single = _cubic_weights(rest) if cubic else np.stack([1 - rest, rest], -1)
    table = np.rint(single[:, None, :, None] * single[None, :, None, :] * 32768).astype(np.int64)
    if cubic:  # what rounding left over goes to the largest or smallest of four
        for y, x in np.ndindex(_STEPS, _STEPS):
            over = table[y, x].sum() - 32768
            part = table[y, x, 2:, 2:]
            pick = part.argmax() if over < 0 else part.argmin()
            part[np.unravel_index(pick, (2, 2))] -= over
    return table


def rotation(angle: float, center: tuple[float, float]) -> np.ndarray:
    """Returns the (2, 3) map that turns counter-clockwise by degrees.

    Args:
        angle: Degrees.
        center: The point (x, y) that stays.
    """
    turn = np.deg2rad(angle)
    a, b = np.cos(turn), np.sin(turn)
    x, y = center
    return np.array([[a, b, (1 - a) * x - b * y], [-b, a, b * x + (1 - a) * y]])


# ---- filters ----------------------------------------------------------------------------------


def sharpened(image: np.ndarray, factor: float) -> np.ndarray:
    """Blends an image with its smoothed self; the outermost pixels stay.

    Args:
        image: Array (height, width, channels).
        factor: 0 for the smoothed image, 1 for the image itself, more for a sharper one.
    """
    wide = image.astype(np.float64)
    sums = sum(
        wide[1 + i : wide.shape[0] - 1 + i, 1 + j : wide.shape[1] - 1 + j]
        * (5 if i == j == 0 else 1)
        for i in (-1, 0, 1) for j in (-1, 0, 1)
    )  # fmt: skip
    smooth = image.copy()
    smooth[1:-1, 1:-1] = saturated(np.asarray(sums) / 13, image.dtype)
    return blend(image, smooth.astype(np.float64), factor)


def gaussian(image: np.ndarray, sizes: tuple[int, int], sigmas: tuple[float, float]) -> np.ndarray:
    """Smooths with a Gaussian.

    Args:
        image: (height, width) or (height, width, channels).
        sizes: Odd width and height of the kernel.
        sigmas: Deviations along the width and the height, in pixels.
    """
    exact = image.dtype == np.uint8
    kernels = [_gaussian_kernel(n, s, exact) for n, s in zip(sizes, sigmas)]
    found: np.ndarray = image.astype(np.int64 if exact else np.float64)
    for axis, kernel in zip((1, 0), kernels):
        half = len(kernel) // 2
        widths = [(half, half) if a == axis else (0, 0) for a in range(image.ndim)]
        padded = np.pad(found, widths, mode="reflect")
        length = found.shape[axis]
        found = np.asarray(sum(
            w * np.take(padded, np.arange(k, k + length), axis) for k, w in enumerate(kernel)
        ))  # fmt: skip
    return ((found + (1 << 15)) >> 16).astype(np.uint8) if exact else found.astype(image.dtype)


def _gaussian_kernel(size: int, sigma: float, exact: bool) -> np.ndarray:
    """Returns weights that sum to 1, or to 256 with the rounding carried on to the middle."""
    x = np.arange(size) - (size - 1) / 2
    kernel = np.exp(-(x**2) / (2 * sigma**2))
    kernel /= kernel.sum()
    if not exact:
        return kernel
    found, carried = np.zeros(size, np.int64), 0.0
    for i in range(size // 2):
        wanted = kernel[i] * 256 + carried
        found[i] = found[-1 - i] = np.rint(wanted)
        carried = wanted - found[i]
    found[size // 2] = 256 - found.sum()
    return found


__all__ = ["resize"]
