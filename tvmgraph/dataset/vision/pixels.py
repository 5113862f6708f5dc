"""Arithmetic of images by OpenCV, whose kernels are MindSpore's: the pixels come out equal.

Images are arrays (height, width, channels), uint8 or float. Pillow's filters give other pixels.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

import numpy as np

from tvmgraph.dataset.vision.kinds import ConvertMode, Fill, Inter
from tvmgraph.errors import ArgumentError, either, reject

#: OpenCV's numbers of the interpolations.
_FLAGS = {Inter.NEAREST: 0, Inter.LINEAR: 1, Inter.CUBIC: 2, Inter.AREA: 3}


@functools.cache
def _library() -> ModuleType:
    """Returns OpenCV, imported when the first image asks for it.

    It works in the thread that calls it: several at a time are the pipeline's workers, and threads
    of its own would not live in forked ones.
    """
    library = importlib.import_module("cv2")
    library.setNumThreads(0)
    return library


def opencv(name: str, *args: object, **options: object) -> np.ndarray:
    """Returns what a function of OpenCV makes of an image.

    Args:
        name: Name of the function.
        args: The image and what else the function takes.
        options: Its arguments by name.

    Raises:
        ArgumentError: (and RuntimeError) if it refuses them.
    """
    library = _library()
    image = next((a for a in args if isinstance(a, np.ndarray)), np.zeros(1))
    kind = f"{image.dtype}{list(image.shape)}"
    if image.dtype.itemsize > 4 and image.dtype.kind in "iu":
        reject(either(ArgumentError, RuntimeError), "dataset.vision", f"no image has {kind}",
               fix="vision.ToType(np.uint8) or (np.float32) casts")  # fmt: skip
    library.ipp.setUseIPP(False)  # of this thread: Intel's kernels round differently
    try:
        return getattr(library, name)(*args, **options)
    except library.error as e:
        reject(either(ArgumentError, RuntimeError), "dataset.vision",
               f"OpenCV's {name} refuses {kind}: {e.err}")  # fmt: skip


def _filtered(name: str, image: np.ndarray, *args: object, **options: object) -> np.ndarray:
    """Returns an image with as many axes as it had: OpenCV drops a single channel."""
    if image.dtype == bool:
        return _filtered(name, image.view(np.uint8), *args, **options).astype(bool)
    found = opencv(name, image, *args, **options)
    return found if found.ndim == image.ndim else found[..., None]


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
    return opencv("cvtColor", image, _library().COLOR_RGB2GRAY)


def converted(image: np.ndarray, mode: ConvertMode) -> np.ndarray:
    """Reorders, adds or drops channels.

    Args:
        image: Array (height, width, channels).
        mode: From which order to which; OpenCV has the same names.
    """
    return opencv("cvtColor", image, getattr(_library(), mode.name))


def hue_of(image: np.ndarray) -> np.ndarray:
    """Returns hue (256 for a full turn), saturation and value of RGB bytes as bytes.

    Args:
        image: uint8 array (height, width, 3).
    """
    return opencv("cvtColor", image, _library().COLOR_RGB2HSV_FULL)


def rgb_of(hsv: np.ndarray) -> np.ndarray:
    """Returns RGB bytes of what :func:`hue_of` gives; there, 255 is a full turn.

    Args:
        hsv: uint8 array (height, width, 3).
    """
    return opencv("cvtColor", hsv, _library().COLOR_HSV2RGB_FULL)


def blend(
    image: np.ndarray, other: np.ndarray, factor: float, other_first: bool = False
) -> np.ndarray:
    """Returns ``factor * image + (1 - factor) * other``.

    Args:
        image: Array of any shape.
        other: Array of that shape and dtype.
        factor: Share of ``image``; it may be above 1 or below 0.
        other_first: Whether ``other`` is the first summand, which decides how halves are rounded.
    """
    own = np.float32(factor)
    parts = (image, float(own)), (other, float(1 - own))
    first, second = parts[::-1] if other_first else parts
    return opencv("addWeighted", *first, *second, 0).reshape(image.shape)


def planes_by_tables(image: np.ndarray, tables: list[np.ndarray]) -> np.ndarray:
    """Replaces the bytes of every channel by those of its table: (channels, height, width).

    Args:
        image: uint8 array (height, width, channels).
        tables: 256 float32 numbers per channel.
    """
    planes = np.empty((len(tables), *image.shape[:2]), np.float32)
    for plane, part, table in zip(planes, _library().split(image), tables):
        opencv("LUT", part, np.ascontiguousarray(table), plane)
    return planes


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
    if image.shape[:2] == (height, width):
        return image
    return _filtered("resize", image, (width, height), interpolation=_FLAGS[how])


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
        fill: What stands outside the image: a number, or one per channel; none is opaque.
    """
    border = (fill,) * 3 if isinstance(fill, (int, float)) else tuple(fill)
    return _filtered("warpAffine", image, matrix, size[::-1], flags=_flag(how), borderValue=border)


def warp_perspective(image: np.ndarray, matrix: np.ndarray, how: Inter) -> np.ndarray:
    """Moves pixels by a (3, 3) map between homogeneous coordinates; the outside is black.

    Args:
        image: Array (height, width, ...).
        matrix: The map from places of the image to those of the result.
        how: How pixels are read between places.
    """
    return _filtered("warpPerspective", image, matrix, image.shape[1::-1], flags=_flag(how))


def _flag(how: Inter) -> int:
    return _FLAGS.get(how, _FLAGS[Inter.LINEAR])


def flipped(image: np.ndarray, axis: int) -> np.ndarray:
    """Mirrors an image.

    Args:
        image: (height, width) or (height, width, channels).
        axis: 0 to exchange top and bottom, 1 for left and right.
    """
    if image.dtype.char not in "?BbHhfd":
        return np.ascontiguousarray(np.flip(image, axis))
    return _filtered("flip", image, axis)


def rotation(angle: float, center: tuple[float, float]) -> np.ndarray:
    """Returns the (2, 3) map that turns counter-clockwise by degrees.

    Args:
        angle: Degrees.
        center: The point (x, y) that stays.
    """
    return opencv("getRotationMatrix2D", center, angle, 1.0)


def perspective(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Returns the (3, 3) map that moves four points.

    Args:
        start: (4, 2), their (x, y).
        end: (4, 2), where they go.
    """
    return opencv("getPerspectiveTransform", start.astype(np.float32), end.astype(np.float32))


# ---- filters ----------------------------------------------------------------------------------


def sharpened(image: np.ndarray, factor: float) -> np.ndarray:
    """Blends an image with its smoothed self; the outermost pixels stay.

    Args:
        image: Array (height, width, channels).
        factor: 0 for the smoothed image, 1 for the image itself, more for a sharper one.
    """
    kernel = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13
    smooth = image.copy()
    smooth[1:-1, 1:-1] = _filtered("filter2D", image, -1, kernel)[1:-1, 1:-1]
    return blend(image, smooth, factor)


def gaussian(image: np.ndarray, sizes: tuple[int, int], sigmas: tuple[float, float]) -> np.ndarray:
    """Smooths with a Gaussian.

    Args:
        image: (height, width) or (height, width, channels).
        sizes: Odd width and height of the kernel.
        sigmas: Deviations along the width and the height, in pixels.
    """
    return _filtered("GaussianBlur", image, sizes, sigmaX=sigmas[0], sigmaY=sigmas[1])


def equalized(image: np.ndarray) -> np.ndarray:
    """Spreads the values of every channel evenly.

    Args:
        image: uint8 array (height, width) or (height, width, channels).
    """
    planes = np.moveaxis(image[..., None] if image.ndim == 2 else image, -1, 0)
    return np.stack([opencv("equalizeHist", p) for p in planes], -1).reshape(image.shape)


# ---- files ------------------------------------------------------------------------------------


def decoded(raw: bytes) -> np.ndarray | None:
    """Returns the pixels of an image file, (height, width, 3), or None where Pillow must look.

    Args:
        raw: Bytes of a file.
    """
    if raw[:2] == b"\xff\xd8" and (raw[-2:] != b"\xff\xd9" or b"Adobe\0" in raw):
        return None  # a JPEG file that was cut off, or one whose colors may be inks
    library = _library()
    flags = library.IMREAD_COLOR_RGB | library.IMREAD_IGNORE_ORIENTATION
    return library.imdecode(np.frombuffer(raw, np.uint8), flags) if raw else None


__all__ = ["resize"]
