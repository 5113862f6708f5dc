"""Transforms that change colors at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tvmgraph.core.arguments import PerAxis
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.vision import pixels
from tvmgraph.dataset.vision.base import (
    ImageTransform,
    Randomly,
    around,
    interval,
    number,
    uniform,
)
from tvmgraph.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    Invert,
    Posterize,
    Solarize,
    _color,
)
from tvmgraph.dataset.vision.kinds import Around


class RandomColorAdjust(ImageTransform):
    """Changes brightness, contrast, saturation and hue at random, in random order.

    Args:
        brightness: Least and largest factor; one number is the distance from 1.
        contrast: The same for the contrast.
        saturation: The same for the saturation.
        hue: Least and largest share of a turn; one number stands for both directions.
    """

    def __init__(
        self, brightness: Around = (1, 1), contrast: Around = (1, 1), saturation: Around = (1, 1),
        hue: Around = (0, 0),
    ) -> None:  # fmt: skip
        op, kinds = "RandomColorAdjust", (AdjustBrightness, AdjustContrast, AdjustSaturation)
        names = ("brightness", "contrast", "saturation")
        bounds: list[tuple[type[ImageTransform], tuple[float, float], int]] = [
            (k, around(op, n, v, 1, 0, np.inf), 1)
            for k, n, v in zip(kinds, names, (brightness, contrast, saturation))
        ]
        bounds.append((AdjustHue, around(op, "hue", hue, 0, -0.5, 0.5), 0))
        self.steps = [(k, b) for k, b, same in bounds if b != (same, same)]

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the changed image."""
        for i in generator().permutation(len(self.steps)):
            kind, bounds = self.steps[i]
            image = kind(uniform(bounds)).apply(image)
        return image


class _RandomFactor(ImageTransform):
    """A transform of a random factor."""

    kind: Callable[[float], ImageTransform]
    degrees: tuple[float, float]

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the changed image."""
        return self.kind(uniform(self.degrees)).apply(image)


class RandomColor(_RandomFactor):
    """Changes the saturation by a random factor.

    Args:
        degrees: Least and largest factor.
    """

    kind = AdjustSaturation

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self.degrees = interval("RandomColor", "degrees", degrees, 0)


class RandomSharpness(_RandomFactor):
    """Changes the sharpness by a random factor.

    Args:
        degrees: Least and largest factor.
    """

    kind = AdjustSharpness

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self.degrees = interval("RandomSharpness", "degrees", degrees, 0)


class RandomPosterize(ImageTransform):
    """Keeps a random number of bits.

    Args:
        bits: Least and largest number; one number is both.
    """

    def __init__(self, bits: PerAxis = (8, 8)) -> None:
        pair = (bits, bits) if isinstance(bits, int) else bits
        self.bits = interval("RandomPosterize", "bits", pair, 1, 8)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image of fewer levels."""
        return Posterize(int(generator().integers(self.bits[0], self.bits[1] + 1))).apply(image)


class RandomSolarize(ImageTransform):
    """Inverts the values of a random part of an interval.

    Args:
        threshold: The ends of the interval.
    """

    def __init__(self, threshold: Sequence[int] = (0, 255)) -> None:
        self.threshold = interval("RandomSolarize", "threshold", threshold, 0, 255)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image with some values inverted."""
        low, high = self.threshold
        ends = sorted(int(v) for v in generator().integers(low, high + 1, 2))
        return Solarize(ends).apply(image)


class RandomLighting(ImageTransform):
    """Adds noise along the principal colors of ImageNet, as AlexNet did.

    Args:
        alpha: Deviation of the noise.
    """

    _colors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140],
                        [-0.5836, -0.6948, 0.4203]]) * [55.46, 4.794, 1.148]  # fmt: skip

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = number("RandomLighting", "alpha", alpha, 0, np.inf)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image with noise."""
        shift = self._colors @ generator().normal(0, self.alpha, 3)
        return pixels.saturated(_color("RandomLighting", image) + shift, image.dtype)


class RandomInvert(Randomly):
    """Inverts an image with a probability.

    Args:
        prob: The probability.
    """

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob, Invert())


class RandomEqualize(Randomly):
    """Equalizes an image with a probability.

    Args:
        prob: The probability.
    """

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob, Equalize())


class RandomAutoContrast(Randomly):
    """Stretches an image with a probability; see :class:`AutoContrast`.

    Args:
        cutoff: Percent of the darkest and of the brightest pixels that are left out.
        ignore: Values that are left out.
        prob: The probability.
    """

    def __init__(
        self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None, prob: float = 0.5
    ) -> None:
        super().__init__(prob, AutoContrast(cutoff, ignore))


class RandomAdjustSharpness(Randomly):
    """Changes the sharpness with a probability; see :class:`AdjustSharpness`.

    Args:
        degree: The factor.
        prob: The probability.
    """

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        super().__init__(prob, AdjustSharpness(degree))


__all__ = [
    "RandomAdjustSharpness", "RandomAutoContrast", "RandomColor", "RandomColorAdjust",
    "RandomEqualize", "RandomInvert", "RandomLighting", "RandomPosterize", "RandomSharpness",
    "RandomSolarize",
]  # fmt: skip
