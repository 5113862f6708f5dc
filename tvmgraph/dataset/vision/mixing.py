"""Transforms that mix the images and labels of a batch, or fill rectangles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmgraph.dataset.config import generator
from tvmgraph.dataset.transforms import as_array
from tvmgraph.dataset.vision.base import ImageTransform, image_of, interval, number, uniform
from tvmgraph.dataset.vision.kinds import Fill, ImageBatchFormat
from tvmgraph.errors import ShapeError, reject

__all__ = ["CutMixBatch", "CutOut", "Erase", "MixUp", "MixUpBatch", "RandomErasing"]


def _batch(op: str, images: object, labels: object) -> tuple[np.ndarray, np.ndarray]:
    image, label = as_array(images), as_array(labels)
    if image.ndim != 4 or label.ndim not in (2, 3) or len(label) != len(image):
        reject(ShapeError, f"vision.{op}",
               f"images {image.shape} and labels {label.shape}",
               fix="batch the images, and give their labels as rows of OneHot")  # fmt: skip
    return image, label


class MixUp:
    """Adds every image and label of a batch to another one with a random share.

    Args:
        batch_size: Images per batch.
        alpha: Of the beta distribution of the share.
        is_single: Whether the other one is the next of the batch, else that of the last batch.
    """

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True) -> None:
        self.batch_size = number("MixUp", "batch_size", batch_size, 1, np.inf)
        self.alpha = number("MixUp", "alpha", alpha, 1e-9, np.inf)
        self.is_single = is_single
        self.last: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, image: object, label: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns the mixed images and labels, as many as the larger of batch and batch_size."""
        image, label = as_array(image), as_array(label)
        share = generator().beta(self.alpha, self.alpha, self.batch_size)
        turned = [*range(1, self.batch_size), 0]
        others = (0.0, 0.0) if self.last is None else self.last
        if not self.is_single and self.last is None:
            share = np.ones(self.batch_size)
        elif self.is_single:
            if image.ndim != 4 or min(len(image), len(label)) < self.batch_size:
                reject(ShapeError, "vision.MixUp",
                       f"a batch of {self.batch_size} images, not {image.shape} and {label.shape}",
                       fix="batch the images, or use is_single=False")  # fmt: skip
            others = image[turned], label[turned]
        for_images, for_labels = share.reshape(-1, 1, 1, 1), share.reshape(-1, 1)
        if label.ndim == 3:
            for_labels = for_images[..., 0]
        self.last = (for_images * image + (1 - for_images) * others[0],
                     for_labels * label + (1 - for_labels) * others[1])  # fmt: skip
        return self.last


class MixUpBatch:
    """Adds every image and label of a batch to a random other one, all with one random share.

    Args:
        alpha: Of the beta distribution of the share.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = number("MixUpBatch", "alpha", alpha, 1e-9, np.inf)

    def __call__(self, image: object, label: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns the mixed images (of their dtype) and labels (float32)."""
        image, label = _batch("MixUpBatch", image, label)
        share = generator().beta(self.alpha, self.alpha)
        others = generator().permutation(len(image))
        mixed = share * image + (1 - share) * image[others]
        return mixed.astype(image.dtype), _shared(label, label[others], share)


def _shared(label: np.ndarray, other: np.ndarray, share: float | np.ndarray) -> np.ndarray:
    return (share * label + (1 - share) * other).astype(np.float32)


class CutMixBatch:
    """Replaces a random rectangle of every image by that of another one; labels by its area.

    Args:
        image_batch_format: A member of :class:`ImageBatchFormat`.
        alpha: Of the beta distribution of the area that stays.
        prob: Probability with which an image is changed.
    """

    def __init__(
        self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0
    ) -> None:
        self.format = ImageBatchFormat(image_batch_format)
        self.alpha = number("CutMixBatch", "alpha", alpha, 1e-9, np.inf)
        self.prob = number("CutMixBatch", "prob", prob, 0, 1)

    def __call__(self, image: object, label: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns the mixed images (of their dtype) and labels (float32)."""
        image, label = _batch("CutMixBatch", image, label)
        found, mixed = image.copy(), label.astype(np.float32)
        first = 1 if self.format == ImageBatchFormat.NHWC else 2
        height, width = image.shape[first : first + 2]
        for i, other in enumerate(generator().permutation(len(image))):
            if generator().random() >= self.prob:
                continue
            rows, columns = self._rectangle(height, width)
            where = (rows, columns) if first == 1 else (slice(None), rows, columns)
            found[i][where] = image[other][where]
            area = (rows.stop - rows.start) * (columns.stop - columns.start)
            mixed[i] = _shared(label[i], label[other], 1 - area / (height * width))
        return found, mixed

    def _rectangle(self, height: int, width: int) -> tuple[slice, slice]:
        side = np.sqrt(1 - generator().beta(self.alpha, self.alpha))
        found = []
        for length in (height, width):
            middle, half = int(generator().integers(length)), int(length * side) // 2
            found.append(slice(max(middle - half, 0), min(middle + half, length)))
        return found[0], found[1]


# ---- erasing ------------------------------------------------------------------------------------


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
