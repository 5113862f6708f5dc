"""Transforms of an image into several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.core.arguments import PerAxis
from tvmgraph.dataset.base import reject
from tvmgraph.dataset.vision.base import (
    image_of,
    is_pillow,
    sizes,
    to_pillow,
)
from tvmgraph.dataset.vision.geometry import bordered
from tvmgraph.dataset.vision.kinds import Fill, SliceMode
from tvmgraph.dataset.vision.warps import HorizontalFlip, VerticalFlip
from tvmgraph.errors import ShapeError

if TYPE_CHECKING:
    from PIL.Image import Image


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


__all__ = ["FiveCrop", "SlicePatches", "TenCrop"]
