"""What transforms do to images of Pillow where Pillow's results differ from those for arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.dataset.vision.kinds import Fill, Inter

if TYPE_CHECKING:
    from PIL.Image import Image, Resampling

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
    from PIL.Image import Transform

    back = np.linalg.inv(matrix)
    data = (back / back[2, 2]).ravel()[:8].tolist()
    return image.transform(image.size, Transform.PERSPECTIVE, data, _filter(interpolation))


def _filter(how: Inter) -> Resampling:
    """Returns Pillow's name of an interpolation; where it has none, the linear one."""
    from PIL.Image import Resampling

    filters = {
        Inter.NEAREST: Resampling.NEAREST, Inter.BILINEAR: Resampling.BILINEAR,
        Inter.BICUBIC: Resampling.BICUBIC,
    }  # fmt: skip
    return filters.get(how, Resampling.BILINEAR)


def _color_of(image: Image, fill: Fill) -> float | tuple[float, ...]:
    """Returns a color of the image's mode."""
    if isinstance(fill, (int, float)):
        return int(fill) if len(image.getbands()) == 1 else (int(fill),) * len(image.getbands())
    return tuple(fill)


def rotated(
    image: Image, degrees: float, how: Inter, expand: bool, center: tuple[float, float] | None,
    fill: Fill,
) -> Image:  # fmt: skip
    """Turns an image counter-clockwise.

    Args:
        image: The image.
        degrees: The angle.
        how: How values between pixels are made.
        expand: Whether the result grows so that it holds the whole image.
        center: (x, y) that stays; the middle by default.
        fill: What stands outside.
    """
    return image.rotate(degrees, _filter(how), expand, center, fillcolor=_color_of(image, fill))


def moved(
    image: Image, degrees: float, translate: Sequence[float], scale: float, shear: Sequence[float],
    how: Inter, fill: Fill,
) -> Image:  # fmt: skip
    """Turns, moves by whole pixels, scales and shears an image around its middle.

    Args:
        image: The image.
        degrees: Angle, clockwise.
        translate: Shares of the width and height by which it moves.
        scale: Factor of both sides.
        shear: Angles of both axes.
        how: How values between pixels are made.
        fill: What stands outside.
    """
    from PIL.Image import Transform

    turn, across, down = np.deg2rad([degrees, *shear])
    back = np.array([[np.cos(turn + across), np.sin(turn + across)],
                     [-np.sin(turn + down), np.cos(turn + down)]])  # fmt: skip
    back /= scale * np.cos(across - down)
    middle = np.array(image.size) / 2 + 0.5
    shift = np.rint(np.array(translate) * image.size)
    data = np.column_stack([back, middle - back @ (middle + shift)]).ravel().tolist()
    color = _color_of(image, fill)
    return image.transform(image.size, Transform.AFFINE, data, _filter(how), fillcolor=color)
