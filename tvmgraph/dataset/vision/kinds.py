"""Words for how images are interpolated, bordered, converted, read and cut."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TypeAlias

#: What stands where no pixel was: a number, or one per channel.
Fill: TypeAlias = float | Sequence[float]
#: Least and largest of a random number; one number stands for both directions.
Around: TypeAlias = float | Sequence[float]


class Inter(enum.IntEnum):
    """How pixels are interpolated.

    All but ``ANTIALIAS`` work on arrays, with OpenCV's arithmetic; ``PILCUBIC`` is Pillow's bicubic
    filter. Images of Pillow take ``NEAREST``, ``BILINEAR``, ``BICUBIC`` and ``ANTIALIAS``
    (Lanczos), with Pillow's arithmetic.
    """

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = 2
    LINEAR = 2
    BICUBIC = 3
    CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(enum.StrEnum):
    """What stands outside an image; the words are those of :func:`numpy.pad`."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ConvertMode(enum.IntEnum):
    """From which order of channels to which."""

    COLOR_BGR2BGRA = 0
    COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = 1
    COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = 2
    COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = 3
    COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = 4
    COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = 5
    COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = 8
    COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = 9
    COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ImageBatchFormat(enum.IntEnum):
    """Order of the axes of a batch of images."""

    NHWC = 0
    NCHW = 1


class ImageReadMode(enum.IntEnum):
    """Which channels an image that is read has."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class SliceMode(enum.IntEnum):
    """What happens to pixels that are left when an image is cut into equal parts."""

    PAD = 0
    DROP = 1


class AutoAugmentPolicy(enum.StrEnum):
    """For which images the pairs of :class:`AutoAugment` were found."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


__all__ = [
    "AutoAugmentPolicy", "Border", "ConvertMode", "ImageBatchFormat", "ImageReadMode", "Inter",
    "SliceMode",
]  # fmt: skip
