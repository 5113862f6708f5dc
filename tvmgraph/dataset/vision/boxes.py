"""Transforms of an image together with its boxes: rows (x, y, width, height, ...)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvmgraph.core.arguments import PerAxis
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.transforms import as_array
from tvmgraph.dataset.vision.base import image_of, number
from tvmgraph.dataset.vision.geometry import RandomCrop, RandomResize, RandomResizedCrop, Resize
from tvmgraph.dataset.vision.kinds import Border, Fill, Inter
from tvmgraph.dataset.vision.warps import HorizontalFlip, VerticalFlip
from tvmgraph.errors import ShapeError, reject


def _checked(op: str, image: object, boxes: object) -> tuple[np.ndarray, np.ndarray]:
    image, boxes = image_of(op, image), as_array(boxes)
    if boxes.ndim != 2 or boxes.shape[-1] < 4:
        reject(ShapeError, f"vision.{op}",
               f"boxes must be rows of x, y, width and height, not {boxes.shape}")  # fmt: skip
    return image, boxes.copy()


def _cut(boxes: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """Returns the boxes within a part, those outside left out; one of zeros if none is left."""
    x, y, w, h = (boxes[:, i] for i in range(4))
    right, bottom = np.minimum(x + w, left + width), np.minimum(y + h, top + height)
    x, y = np.maximum(x, left), np.maximum(y, top)
    kept = (right > x) & (bottom > y)
    boxes[:, :4] = np.stack([x - left, y - top, right - x, bottom - y], 1)
    return boxes[kept] if kept.any() else np.zeros_like(boxes[:1])


def _scaled(boxes: np.ndarray, y: float, x: float) -> np.ndarray:
    boxes[:, :4] = boxes[:, :4] * np.array([x, y, x, y], np.float32)  # as MindSpore counts
    return boxes


class RandomHorizontalFlipWithBBox:
    """Mirrors left and right with a probability.

    Args:
        prob: The probability.
    """

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = number(type(self).__name__, "prob", prob, 0, 1)

    def __call__(self, image: object, boxes: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns the image and its boxes."""
        image, boxes = _checked(type(self).__name__, image, boxes)
        if generator().random() >= self.prob:
            return image, boxes
        return self._flip(image, boxes)

    def _flip(self, image: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        boxes[:, 0] = image.shape[1] - boxes[:, 0] - boxes[:, 2]
        return HorizontalFlip().apply(image), boxes


class RandomVerticalFlipWithBBox(RandomHorizontalFlipWithBBox):
    """Mirrors top and bottom with a probability.

    Args:
        prob: The probability.
    """

    def _flip(self, image: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        boxes[:, 1] = image.shape[0] - boxes[:, 1] - boxes[:, 3]
        return VerticalFlip().apply(image), boxes


class ResizeWithBBox:
    """Resizes; see :class:`Resize`.

    Args:
        size: Height and width; one number is the length of the shorter side.
        interpolation: A member of :class:`Inter`.
    """

    def __init__(self, size: PerAxis, interpolation: Inter = Inter.LINEAR) -> None:
        self.transform: Resize | RandomResize = Resize(size, interpolation)

    def __call__(self, image: object, boxes: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns the image and its boxes."""
        image, boxes = _checked(type(self).__name__, image, boxes)
        found = self.transform.apply(image)
        return found, _scaled(boxes, *(n / o for n, o in zip(found.shape, image.shape[:2])))


class RandomResizeWithBBox(ResizeWithBBox):
    """Resizes with an interpolation drawn at random.

    Args:
        size: Height and width; one number is the length of the shorter side.
    """

    def __init__(self, size: PerAxis) -> None:
        self.transform = RandomResize(size)


class RandomCropWithBBox:
    """Cuts out a random part; boxes outside are left out. See :class:`RandomCrop`.

    Args:
        size: Height and width.
        padding: Border added before.
        pad_if_needed: Whether a smaller image grows.
        fill_value: Value of the border.
        padding_mode: How the border is filled.
    """

    def __init__(
        self,
        size: PerAxis,
        padding: PerAxis | None = None,
        pad_if_needed: bool = False,
        fill_value: Fill = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.crop = RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)

    def __call__(self, image: object, boxes: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns the part and its boxes."""
        image, boxes = _checked("RandomCropWithBBox", image, boxes)
        grown, top, left = self.crop.place(image)
        if self.crop.pad is not None:
            boxes[:, :2] += self.crop.pad.border[:2]
        if self.crop.pad_if_needed:
            before = image.shape if self.crop.pad is None else self.crop.pad.apply(image).shape
            boxes[:, :2] += [-((b - g) // 2) for g, b in zip(grown.shape[1::-1], before[1::-1])]
        height, width = self.crop.size
        part = grown[top : top + height, left : left + width]
        return part, _cut(boxes, top, left, height, width)


class RandomResizedCropWithBBox:
    """Cuts out a part of random size and resizes it. See :class:`RandomResizedCrop`.

    Args:
        size: Height and width of the result.
        scale: Smallest and largest share of the area.
        ratio: Smallest and largest width over height.
        interpolation: A member of :class:`Inter`.
        max_attempts: How many parts are tried.
    """

    def __init__(
        self, size: PerAxis, scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: Inter = Inter.BILINEAR, max_attempts: int = 10,
    ) -> None:  # fmt: skip
        self.crop = RandomResizedCrop(size, scale, ratio, interpolation, max_attempts)

    def __call__(self, image: object, boxes: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns the resized part and its boxes."""
        image, boxes = _checked("RandomResizedCropWithBBox", image, boxes)
        top, left, height, width = self.crop.place(image)
        boxes = _cut(boxes, top, left, height, width)
        size = self.crop.size
        part = image[top : top + height, left : left + width]
        resized = Resize(size, self.crop.interpolation).apply(part)
        return resized, _scaled(boxes, size[0] / height, size[1] / width)


class BoundingBoxAugment:
    """Transforms the pixels of some boxes; the boxes stay.

    Args:
        transform: A transform that keeps the size.
        ratio: Share of the boxes.
    """

    def __init__(self, transform: Callable[[np.ndarray], np.ndarray], ratio: float = 0.3) -> None:
        self.transform = transform
        self.ratio = number("BoundingBoxAugment", "ratio", ratio, 0, 1)

    def __call__(self, image: object, boxes: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns the image and its boxes."""
        image, boxes = _checked("BoundingBoxAugment", image, boxes)
        found = image.copy()
        count = int(len(boxes) * self.ratio)
        for i in generator().choice(len(boxes), count, replace=False):
            x, y, w, h = (int(v) for v in boxes[i, :4])
            part = self.transform(found[y : y + h, x : x + w])
            found[y : y + h, x : x + w] = Resize((h, w)).apply(part)
        return found, boxes


__all__ = [
    "BoundingBoxAugment", "RandomCropWithBBox", "RandomHorizontalFlipWithBBox",
    "RandomResizeWithBBox", "RandomResizedCropWithBBox", "RandomVerticalFlipWithBBox",
    "ResizeWithBBox",
]  # fmt: skip
