"""Transforms that cut, border and resize, and those that make several images of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvmgraph.core.arguments import PerAxis
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.transforms import as_array
from tvmgraph.dataset.vision import pillow
from tvmgraph.dataset.vision.base import (
    Alike,
    ImageTransform,
    image_of,
    interval,
    is_pillow,
    number,
    sizes,
    to_pillow,
    uniform,
)
from tvmgraph.dataset.vision.kinds import Border, Fill, Inter, SliceMode
from tvmgraph.dataset.vision.pixels import resize, with_pillow
from tvmgraph.dataset.vision.warps import HorizontalFlip, VerticalFlip
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, reject

if TYPE_CHECKING:
    from PIL.Image import Image


class Resize(ImageTransform):
    """Resizes by interpolation.

    Args:
        size: Height and width; one number is the length of the shorter side, and the other one is
            cut to whole pixels.
        interpolation: A member of :class:`Inter`.

    Raises:
        ArgumentError: if the size is not positive.

    Note:
        Arrays are interpolated as OpenCV does, images of Pillow as Pillow does.

    Example:
        >>> vision.Resize((4, 6))(np.zeros((8, 8, 3), np.uint8)).shape
        (4, 6, 3)
    """

    def __init__(self, size: PerAxis, interpolation: Inter = Inter.LINEAR) -> None:
        self.keep_ratio = isinstance(size, int)
        self.size = sizes(type(self).__name__, "size", size)
        self.interpolation = Inter(interpolation)

    def __call__(self, value: object) -> object:
        if not is_pillow(value):
            return super().__call__(value)
        image = as_array(value)
        return to_pillow(with_pillow(image, *self.target(image), self.interpolation))

    def target(self, image: np.ndarray) -> tuple[int, int]:
        """Returns the height and width of the result.

        Args:
            image: Array (height, width, ...).
        """
        if not self.keep_ratio:
            return self.size
        height, width = image.shape[:2]
        side = self.size[0]
        if height <= width:
            return side, max(1, int(np.float32(width) / height * side))
        return max(1, int(np.float32(height) / width * side)), side

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the resized image."""
        return resize(image, *self.target(image), self.interpolation)


class RandomResize(Alike):
    """Resizes, one or more images, with an interpolation drawn at random; see :class:`Resize`."""

    def __init__(self, size: PerAxis) -> None:
        self.size = size
        Resize(size)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the resized image."""
        how = (Inter.NEAREST, Inter.LINEAR, Inter.CUBIC, Inter.AREA)
        return Resize(self.size, how[int(generator().integers(4))]).apply(image)


class Crop(ImageTransform):
    """Cuts out a part.

    Args:
        coordinates: Top and left.
        size: Height and width.

    Raises:
        ShapeError: when called, if the part leaves the image.
    """

    def __init__(self, coordinates: Sequence[int], size: PerAxis) -> None:
        if len(coordinates) != 2:
            reject(DTypeError, "vision.Crop", f"coordinates are a top and a left: {coordinates}")
        self.top, self.left = (number("Crop", "coordinates", c, 0, np.inf) for c in coordinates)
        self.size = sizes("Crop", "size", size)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the part."""
        bottom, right = self.top + self.size[0], self.left + self.size[1]
        if bottom > image.shape[0] or right > image.shape[1]:
            reject(ShapeError, f"vision.{type(self).__name__}",
                   f"the part ends at {(bottom, right)} of {image.shape[:2]}")  # fmt: skip
        return image[self.top : bottom, self.left : right]


class ResizedCrop(Crop):
    """Cuts out a part and resizes it.

    Args:
        top: First row of the part.
        left: First column of the part.
        height: Rows of the part.
        width: Columns of the part.
        size: Height and width of the result.
        interpolation: A member of :class:`Inter`.
    """

    def __init__(
        self, top: int, left: int, height: int, width: int, size: PerAxis,
        interpolation: Inter = Inter.BILINEAR,
    ) -> None:  # fmt: skip
        super().__init__((top, left), (height, width))
        self.resize = Resize(size, interpolation)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the resized part."""
        return self.resize.apply(super().apply(image))


class CenterCrop(ImageTransform):
    """Cuts out the middle; what lies outside the image is black.

    Args:
        size: Height and width.

    Example:
        >>> vision.CenterCrop(2)(np.zeros((4, 4, 3))).shape
        (2, 2, 3)
    """

    def __init__(self, size: PerAxis) -> None:
        self.size = sizes("CenterCrop", "size", size)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.centre(image, self.size)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the middle."""
        image = _grown(image, self.size)
        top, left = ((n - s) // 2 for n, s in zip(image.shape, self.size))
        return image[top : top + self.size[0], left : left + self.size[1]]


def _grown(
    image: np.ndarray, size: tuple[int, int], fill: Fill = 0, mode: object = "constant"
) -> np.ndarray:
    missing = [max(s - n, 0) for n, s in zip(image.shape, size)]
    if not any(missing):
        return image
    (top, bottom), (left, right) = ((m - m // 2, m // 2) for m in missing)
    return bordered(image, (left, top, right, bottom), fill, mode)


def bordered(
    image: np.ndarray, border: tuple[int, int, int, int], fill: Fill, mode: Any
) -> np.ndarray:
    """Adds a border.

    Args:
        image: (height, width) or (height, width, channels).
        border: Left, top, right and bottom.
        fill: A number, or one per channel.
        mode: A word of :func:`numpy.pad`.
    """
    left, top, right, bottom = border
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (image.ndim - 2)
    if mode != "constant":
        return np.pad(image, widths, mode=mode)
    if np.ndim(fill) == 0:
        return np.pad(image, widths, constant_values=fill)
    shape = (top + image.shape[0] + bottom, left + image.shape[1] + right, *image.shape[2:])
    found = np.empty(shape, image.dtype)
    found[:] = fill if image.ndim == 3 and image.shape[2] > 1 else np.asarray(fill)[0]
    found[top : top + image.shape[0], left : left + image.shape[1]] = image
    return found


class Pad(ImageTransform):
    """Adds a border.

    Args:
        padding: One number, (left and right, top and bottom), or left, top, right, bottom.
        fill_value: Value of the border, or one per channel.
        padding_mode: A member of :class:`Border`.

    Example:
        >>> vision.Pad(1)(np.zeros((2, 2, 3))).shape
        (4, 4, 3)
    """

    def __init__(
        self, padding: PerAxis, fill_value: Fill = 0, padding_mode: Border = Border.CONSTANT
    ) -> None:
        self.border = _border("Pad", padding)
        for value in np.atleast_1d(fill_value).tolist():
            number("Pad", "fill_value", value, 0, 255)
        self.fill_value, self.mode = fill_value, str(padding_mode)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image with its border."""
        return bordered(image, self.border, self.fill_value, self.mode)


def _border(op: str, padding: PerAxis) -> tuple[int, int, int, int]:
    """Returns left, top, right, bottom."""
    items = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
    if len(items) == 2:
        items = (items[0], items[1], items[0], items[1])
    if len(items) != 4 or any(v < 0 for v in items):
        reject(ArgumentError, f"vision.{op}", f"padding must be 1, 2 or 4 ints: {padding!r}")
    left, top, right, bottom = items
    return left, top, right, bottom


class PadToSize(ImageTransform):
    """Adds a border so that the image has a size.

    Args:
        size: Height and width.
        offset: Where the image begins: one number, or top and left; in the middle by default.
        fill_value: Value of the border, or one per channel.
        padding_mode: A member of :class:`Border`.

    Raises:
        ShapeError: when called, if the image is larger.
    """

    def __init__(
        self, size: PerAxis, offset: Sequence[int] | None = None, fill_value: Fill = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:  # fmt: skip
        self.size = sizes("PadToSize", "size", size)
        self.offset = (offset, offset) if isinstance(offset, int) else tuple(offset or ()) or None
        self.fill_value, self.mode = fill_value, str(padding_mode)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image with its border."""
        room = [s - n for s, n in zip(self.size, image.shape)]
        top, left = self.offset or [r // 2 for r in room]
        border = left, top, room[1] - left, room[0] - top
        if min(border) < 0:
            reject(ShapeError, "vision.PadToSize",
                   f"{image.shape[:2]} at {(top, left)} leaves {self.size}")  # fmt: skip
        return bordered(image, border, self.fill_value, self.mode)


class RandomCrop(Alike):
    """Cuts out a random part, the same of several images, such as one and its mask.

    Args:
        size: Height and width.
        padding: Border added before, see :class:`Pad`.
        pad_if_needed: Whether a smaller image grows; otherwise it is an error.
        fill_value: Value of the border.
        padding_mode: How the border is filled.

    Raises:
        ShapeError: when called, if the image is smaller than the part.

    Example:
        >>> vision.RandomCrop(2)(np.zeros((4, 4, 3))).shape
        (2, 2, 3)
    """

    _one_size = True

    def __init__(
        self,
        size: PerAxis,
        padding: PerAxis | None = None,
        pad_if_needed: bool = False,
        fill_value: Fill = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.size = sizes("RandomCrop", "size", size)
        self.pad = None if padding is None else Pad(padding, fill_value, padding_mode)
        self.pad_if_needed = pad_if_needed
        self.fill_value, self.mode = fill_value, str(padding_mode)

    def place(self, image: np.ndarray) -> tuple[np.ndarray, int, int]:
        """Returns the image with its border, and the first row and column of a part of it.

        Args:
            image: Array (height, width, ...).

        Raises:
            ShapeError: if it has no part of that size.
        """
        image = image if self.pad is None else self.pad.apply(image)
        if self.pad_if_needed:
            image = _grown(image, self.size, self.fill_value, self.mode)
        room = [n - s for n, s in zip(image.shape, self.size)]
        if min(room) < 0:
            reject(ShapeError, "vision.RandomCrop",
                   f"an image of {image.shape[:2]} has no part of {self.size}",
                   fix="resize before, or set pad_if_needed")  # fmt: skip
        top, left = (int(generator().integers(r + 1)) for r in room)
        return image, top, left

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the part."""
        image, top, left = self.place(image)
        return image[top : top + self.size[0], left : left + self.size[1]]


class RandomResizedCrop(Alike):
    """Cuts out a part of random size and shape and resizes it, the same of several images.

    Args:
        size: Height and width of the result.
        scale: Smallest and largest share of the area.
        ratio: Smallest and largest width over height.
        interpolation: A member of :class:`Inter`.
        max_attempts: How many parts are tried; if none fits, the middle is taken.

    Example:
        >>> vision.RandomResizedCrop(4)(np.zeros((8, 8, 3), np.uint8)).shape
        (4, 4, 3)
    """

    _one_size = True

    def __init__(
        self,
        size: PerAxis,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: Inter = Inter.LINEAR,
        max_attempts: int = 10,
    ) -> None:
        op = type(self).__name__
        self.size = sizes(op, "size", size)
        self.scale = interval(op, "scale", scale, 0)
        self.ratio = interval(op, "ratio", ratio, 1e-9)
        self.interpolation, self.max_attempts = Inter(interpolation), int(max_attempts)

    def place(self, image: np.ndarray) -> tuple[int, int, int, int]:
        """Returns top, left, height and width of a part.

        Args:
            image: Array (height, width, ...).
        """
        height, width = image.shape[:2]
        for _ in range(self.max_attempts):
            area = height * width * uniform(self.scale)
            ratio = np.exp(uniform((np.log(self.ratio[0]), np.log(self.ratio[1]))))
            h, w = round(np.sqrt(area / ratio)), round(np.sqrt(area * ratio))
            if 0 < h <= height and 0 < w <= width:
                top, left = (int(generator().integers(r + 1)) for r in (height - h, width - w))
                return top, left, h, w
        h = min(height, round(width / self.ratio[0]))
        w = min(width, round(height * self.ratio[1]))
        return (height - h) // 2, (width - w) // 2, h, w

    def _of_pillow(self, image: Image) -> Image:
        array = as_array(image)
        top, left, h, w = self.place(array)
        part = array[top : top + h, left : left + w]
        return to_pillow(with_pillow(part, *self.size, self.interpolation))

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the resized part."""
        top, left, h, w = self.place(image)
        return resize(image[top : top + h, left : left + w], *self.size, self.interpolation)


# ---- transforms of an image into several ---------------------------------------------------------


class FiveCrop:
    """Cuts out the corners and the middle: a tuple of five images.

    Args:
        size: Height and width.
    """

    def __init__(self, size: PerAxis) -> None:
        self.size = sizes(type(self).__name__, "size", size)

    def __call__(self, value: object) -> tuple[np.ndarray | Image, ...]:
        """Returns top left, top right, bottom left, bottom right and middle."""
        image = image_of(type(self).__name__, value)
        (height, width), (rows, columns) = image.shape[:2], self.size
        if rows > height or columns > width:
            reject(ShapeError, f"vision.{type(self).__name__}",
                   f"an image of {image.shape[:2]} has no part of {self.size}")  # fmt: skip
        middle = round((height - rows) / 2), round((width - columns) / 2)
        ends = [(y, x) for y in (0, height - rows) for x in (0, width - columns)]
        found = [image[y : y + rows, x : x + columns] for y, x in (*ends, middle)]
        return tuple(to_pillow(f) if is_pillow(value) else f for f in found)


class TenCrop(FiveCrop):
    """Cuts out the corners and the middle of an image and of its mirror image.

    Args:
        size: Height and width.
        use_vertical_flip: Whether top and bottom are mirrored instead of left and right.
    """

    def __init__(self, size: PerAxis, use_vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.flip = VerticalFlip() if use_vertical_flip else HorizontalFlip()

    def __call__(self, value: object) -> tuple[np.ndarray | Image, ...]:
        """Returns those of :class:`FiveCrop` of the image, then of its mirror image."""
        return super().__call__(value) + super().__call__(self.flip(value))


class SlicePatches:
    """Cuts an image into equal parts: a tuple, row by row.

    Args:
        num_height: Parts along the height.
        num_width: Parts along the width.
        slice_mode: Whether pixels that are left are dropped, or the image grows.
        fill_value: Value of what it grows by.
    """

    def __init__(
        self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD,
        fill_value: Fill = 0,
    ) -> None:  # fmt: skip
        self.count = sizes("SlicePatches", "num_height, num_width", (num_height, num_width))
        self.slice_mode, self.fill_value = SliceMode(slice_mode), fill_value

    def __call__(self, value: object) -> tuple[np.ndarray, ...]:
        """Returns the parts."""
        image = image_of("SlicePatches", value)
        rounded = np.floor if self.slice_mode == SliceMode.DROP else np.ceil
        rows, columns = (int(rounded(n / c)) for n, c in zip(image.shape, self.count))
        if self.slice_mode == SliceMode.PAD:
            more = rows * self.count[0] - image.shape[0], columns * self.count[1] - image.shape[1]
            image = bordered(image, (0, 0, more[1], more[0]), self.fill_value, "constant")
        return tuple(
            np.ascontiguousarray(image[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns])
            for i in range(self.count[0]) for j in range(self.count[1])
        )  # fmt: skip


__all__ = [
    "CenterCrop", "Crop", "FiveCrop", "Pad", "PadToSize", "RandomCrop", "RandomResize",
    "RandomResizedCrop", "Resize", "ResizedCrop", "SlicePatches", "TenCrop",
]  # fmt: skip
