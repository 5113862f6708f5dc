"""What transforms do to images of Pillow where Pillow's results differ from those for arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.dataset.vision.kinds import Inter

if TYPE_CHECKING:
    from PIL.Image import Image

#: Transforms whose results are arrays, whatever they are given.
TO_ARRAYS = frozenset(
    {
        "AdjustSharpness", "Affine", "AutoAugment", "ConvertColor", "Crop", "CutOut",
        "Erase", "GaussianBlur", "HorizontalFlip", "PadToSize", "Posterize", "RandAugment",
        "RandomAdjustSharpness", "RandomAutoContrast", "RandomEqualize", "RandomInvert",
        "RandomPosterize", "RandomResize", "RandomSolarize", "ResizedCrop", "Rotate",
        "Solarize", "TrivialAugmentWide", "VerticalFlip",
    }
)  # fmt: skip


def enhanced(image: Image, kind: str, factor: float) -> Image:
    """Blends an image with its plain form.

    Args:
        image: The image.
        kind: ``"Brightness"``, ``"Contrast"``, ``"Color"`` or ``"Sharpness"``.
        factor: 0 is the plain form, 1 the image.
    """
    from PIL import ImageEnhance

    return getattr(ImageEnhance, kind)(image).enhance(factor)


def turned(image: Image, share: float) -> Image:
    """Turns the wheel of colors.

    Args:
        image: The image; one without colors stays.
        share: Share of a full turn.
    """
    from PIL.Image import fromarray, merge

    if image.mode in ("L", "1", "I", "F"):
        return image
    hue, *others = image.convert("HSV").split()
    moved = np.asarray(hue) + np.uint8(int(share * 255) % 256)
    return merge("HSV", (fromarray(moved, "L"), *others)).convert(image.mode)


def stretched(image: Image, cutoff: float, ignore: np.ndarray) -> Image:
    """Stretches every channel to the whole range.

    Args:
        image: The image.
        cutoff: Percent of pixels that are left out at both ends.
        ignore: Values that are left out.
    """
    from PIL import ImageOps

    return ImageOps.autocontrast(image, cutoff, ignore.tolist() or None)


def equalized(image: Image) -> Image:
    """Spreads the values of every channel evenly.

    Args:
        image: The image.
    """
    from PIL import ImageOps

    return ImageOps.equalize(image)


def centre(image: Image, size: Sequence[int]) -> Image:
    """Cuts out the middle, rounded to the nearest even pixel.

    Args:
        image: The image.
        size: Height and width.
    """
    height, width = size
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def in_perspective(image: Image, matrix: np.ndarray, interpolation: Inter) -> Image:
    """Moves the points of an image.

    Args:
        image: The image.
        matrix: From points to where they go, 3 x 3.
        interpolation: How values between pixels are made.
    """
    from PIL.Image import Resampling, Transform

    filters = {
        Inter.NEAREST: Resampling.NEAREST, Inter.BILINEAR: Resampling.BILINEAR,
        Inter.BICUBIC: Resampling.BICUBIC,
    }  # fmt: skip
    back = np.linalg.inv(matrix)
    data = (back / back[2, 2]).ravel()[:8].tolist()
    how = filters.get(interpolation, Resampling.BILINEAR)
    return image.transform(image.size, Transform.PERSPECTIVE, data, how)
