"""Transforms that mix the images and labels of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvmgraph.dataset.base import reject
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.transforms import as_array
from tvmgraph.dataset.vision.base import number
from tvmgraph.dataset.vision.kinds import ImageBatchFormat
from tvmgraph.errors import ShapeError


def _batch(op: str, images: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    image, label = as_array(images), as_array(labels)
    if image.ndim != 4 or label.ndim not in (2, 3) or len(label) != len(image):
        reject(ShapeError, f"vision.{op}",
               f"images {image.shape} and labels {label.shape}",
               "batch the images, and give their labels as rows of OneHot")  # fmt: skip
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

    def __call__(self, image: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns the mixed images and labels."""
        image, label = _batch("MixUp", image, label)
        share = generator().beta(self.alpha, self.alpha, len(image))
        if self.is_single:
            others = np.roll(image, -1, 0), np.roll(label, -1, 0)
        elif self.last is None:
            share, others = np.ones(len(image)), (image, label)
        else:
            others = self.last
        mixed = tuple(
            s * own + (1 - s) * other
            for own, other in zip((image, label), others)
            for s in (share.reshape(-1, *[1] * (own.ndim - 1)),)
        )
        self.last = mixed[0], mixed[1]
        return self.last


class MixUpBatch:
    """Adds every image and label of a batch to a random other one, all with one random share.

    Args:
        alpha: Of the beta distribution of the share.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = number("MixUpBatch", "alpha", alpha, 1e-9, np.inf)

    def __call__(self, image: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns the mixed images (of their dtype) and labels (float32)."""
        image, label = _batch("MixUpBatch", image, label)
        share = generator().beta(self.alpha, self.alpha)
        others = generator().permutation(len(image))
        mixed = share * image + (1 - share) * image[others]
        return mixed.astype(image.dtype), _shared(label, label[others], share)


def _shared(label: np.ndarray, other: np.ndarray, share: Any) -> np.ndarray:
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

    def __call__(self, image: Any, label: Any) -> tuple[np.ndarray, np.ndarray]:
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
