"""Transforms that mix the images and labels of a batch."""

from __future__ import annotations

import numpy as np

from tvmgraph.dataset.config import generator
from tvmgraph.dataset.transforms import as_array
from tvmgraph.dataset.vision.base import number
from tvmgraph.dataset.vision.kinds import ImageBatchFormat
from tvmgraph.errors import ShapeError, reject


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


__all__ = ["CutMixBatch", "MixUp", "MixUpBatch"]
