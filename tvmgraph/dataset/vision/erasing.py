"""Transforms that fill rectangles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmgraph.dataset.config import generator
from tvmgraph.dataset.vision.base import ImageTransform, image_of, interval, number, uniform
from tvmgraph.dataset.vision.kinds import Fill
from tvmgraph.errors import ShapeError, reject


class Erase(ImageTransform):
    """Fills a rectangle.

    Args:
        top: Its first row.
        left: Its first column.
        height: Its rows.
        width: Its columns.
        value: What it is filled with: a number, or one per channel.
        inplace: Whether the given array is written to.
    """

    def __init__(
        self, top: int, left: int, height: int, width: int, value: Fill = 0.0, inplace: bool = False
    ) -> None:
        self.place = slice(top, top + height), slice(left, left + width)
        self.value, self.inplace = value, bool(inplace)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image with the rectangle."""
        found = image if self.inplace else image.copy()
        found[self.place] = self.value
        return found


class RandomErasing:
    """Fills a random rectangle of an image (channels, height, width), with a probability.

    Args:
        prob: The probability.
        scale: Least and largest share of the area.
        ratio: Least and largest height over width.
        value: A number, one per channel, or ``"random"`` for noise.
        inplace: Whether the given array is written to.
        max_attempts: How many rectangles are tried; if none fits, the image stays.
    """

    def __init__(
        self, prob: float = 0.5, scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3), value: Fill | str = 0,
        inplace: bool = False, max_attempts: int = 10,
    ) -> None:  # fmt: skip
        self.prob = number("RandomErasing", "prob", prob, 0, 1)
        self.scale = interval("RandomErasing", "scale", scale, 0)
        self.ratio = interval("RandomErasing", "ratio", ratio, 0)
        self.value, self.inplace, self.max_attempts = value, bool(inplace), int(max_attempts)

    def __call__(self, value: object) -> np.ndarray:
        """Returns the image with the rectangle, or as it is."""
        image = image_of("RandomErasing", value)
        if generator().random() >= self.prob:
            return image
        channels, height, width = image.shape
        for _ in range(self.max_attempts):
            area, ratio = height * width * uniform(self.scale), uniform(self.ratio)
            h, w = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
            if h < height and w < width:
                top, left = (int(generator().integers(r + 1)) for r in (height - h, width - w))
                found = image if self.inplace else image.copy()
                fill = np.reshape(self.value, (-1, 1, 1)) if self.value != "random" else (
                    generator().standard_normal((channels, h, w))
                )  # fmt: skip
                found[:, top : top + h, left : left + w] = fill
                return found
        return image


class CutOut(ImageTransform):
    """Blackens random squares.

    Args:
        length: Side of a square, at most that of the image.
        num_patches: How many.
        is_hwc: Whether the channels are the last axis, else the first.
    """

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        self.length = number("CutOut", "length", length, 1, np.inf)
        self.num_patches = number("CutOut", "num_patches", num_patches, 1, np.inf)
        self.is_hwc = is_hwc

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image with black squares."""
        found = image.copy()
        view = found if self.is_hwc else np.moveaxis(found, 0, -1)
        if self.length > min(view.shape[:2]):
            reject(ShapeError, "vision.CutOut",
                   f"{self.length} is longer than a side of {view.shape[:2]}")  # fmt: skip
        half = self.length // 2
        for _ in range(self.num_patches):
            y, x = (int(generator().integers(n + 1)) for n in view.shape[:2])
            view[max(0, y - half) : y + half, max(0, x - half) : x + half] = 0
        return found


__all__ = ["CutOut", "Erase", "RandomErasing"]
