"""Transforms that change brightness, contrast, colors and sharpness."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.core.arguments import PerAxis
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.vision import pillow, pixels
from tvmgraph.dataset.vision.base import ImageTransform, Randomly, around, interval, number, uniform
from tvmgraph.dataset.vision.kinds import Around
from tvmgraph.dataset.vision.values import HsvToRgb, RgbToHsv
from tvmgraph.errors import ArgumentError, ShapeError, either, reject

if TYPE_CHECKING:
    from PIL.Image import Image


def _color(op: str, image: np.ndarray) -> np.ndarray:
    if image.ndim != 3 or image.shape[-1] != 3:
        reject(ShapeError, f"vision.{op}",
               f"the image must have three channels, not {image.shape}")  # fmt: skip
    return image


class _Adjust(ImageTransform):
    """A transform of an image and a factor."""

    low, high = 0.0, np.inf

    def __init__(self, factor: float) -> None:
        self.factor = number(type(self).__name__, "the factor", factor, self.low, self.high)


class AdjustBrightness(_Adjust):
    """Multiplies by a factor.

    Args:
        brightness_factor: 0 is black, 1 the image.
    """

    def __init__(self, brightness_factor: float) -> None:
        super().__init__(brightness_factor)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.enhanced(image, "Brightness", self.factor)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the brighter or darker image."""
        return pixels.saturated(image * np.float32(self.factor), image.dtype)


class AdjustContrast(_Adjust):
    """Blends with the mean of the luminance.

    Args:
        contrast_factor: 0 is gray, 1 the image.
    """

    def __init__(self, contrast_factor: float) -> None:
        super().__init__(contrast_factor)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.enhanced(image, "Contrast", self.factor)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image of more or less contrast."""
        mean = pixels.gray(_color("AdjustContrast", image)).mean(dtype=np.float64)
        whole = int(mean + 0.5) if image.dtype == np.uint8 else mean
        return pixels.blend(image, np.full_like(image, whole), self.factor, other_first=True)


class AdjustSaturation(_Adjust):
    """Blends with the luminance.

    Args:
        saturation_factor: 0 is gray, 1 the image.
    """

    _gray_first = True  # as MindSpore sums, which decides how halves are rounded

    def __init__(self, saturation_factor: float) -> None:
        super().__init__(saturation_factor)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.enhanced(image, "Color", self.factor)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image of more or less color."""
        gray = np.repeat(pixels.gray(_color("AdjustSaturation", image))[..., None], 3, -1)
        return pixels.blend(image, gray, self.factor, self._gray_first)


class AdjustHue(_Adjust):
    """Turns the wheel of colors.

    Args:
        hue_factor: Share of a full turn, from -0.5 to 0.5.
    """

    low, high = -0.5, 0.5

    def __init__(self, hue_factor: float) -> None:
        super().__init__(hue_factor)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.turned(image, self.factor)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image in other colors."""
        if _color("AdjustHue", image).dtype != np.uint8:
            h, s, v = RgbToHsv.convert(*np.moveaxis(image.astype(np.float64), -1, 0))
            return np.stack(HsvToRgb.convert((h + self.factor) % 1, s, v), -1).astype(image.dtype)
        hsv = pixels.hue_of(image)
        hsv[..., 0] += np.uint8(int(self.factor * 255) % 256)
        return pixels.rgb_of(hsv)


class AdjustSharpness(_Adjust):
    """Blends with the smoothed image.

    Args:
        sharpness_factor: 0 is smooth, 1 the image, 2 sharper.
    """

    def __init__(self, sharpness_factor: float) -> None:
        super().__init__(sharpness_factor)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the sharper or smoother image."""
        return pixels.sharpened(image, self.factor)


class AdjustGamma(ImageTransform):
    """Computes :math:`gain \\cdot x^\\gamma` of bytes, where white is 1, and
    :math:`(gain \\cdot x)^\\gamma` of floats.

    Args:
        gamma: The exponent.
        gain: The factor.
    """

    def __init__(self, gamma: float, gain: float = 1) -> None:
        self.gamma = number("AdjustGamma", "gamma", gamma, 0, np.inf)
        self.gain = number("AdjustGamma", "gain", gain, -np.inf, np.inf)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the corrected image."""
        if image.dtype != np.uint8:
            return np.clip((image * self.gain) ** self.gamma, 0, 1).astype(image.dtype)
        levels = 255.999 * self.gain * (np.arange(256) / 255) ** self.gamma  # as Pillow's users do
        return np.clip(levels, 0, 255).astype(np.uint8)[image]


def _by_table(image: np.ndarray, tables: Sequence[np.ndarray]) -> np.ndarray:
    """Replaces the bytes of every channel by those of its table."""
    planes = image if image.ndim == 3 else image[..., None]
    found = np.stack([t[planes[..., c]] for c, t in enumerate(tables)], -1)
    return found.reshape(image.shape).astype(np.uint8)


def _bytes(op: str, image: np.ndarray) -> np.ndarray:
    if image.dtype != np.uint8:
        reject(either(ArgumentError, RuntimeError), f"vision.{op}",
               f"pixels must be uint8, not {image.dtype}")  # fmt: skip
    return image


def _histograms(op: str, image: np.ndarray) -> list[np.ndarray]:
    image = _bytes(op, image)
    planes = image if image.ndim == 3 else image[..., None]
    return [np.bincount(p.ravel(), minlength=256) for p in np.moveaxis(planes, -1, 0)]


class AutoContrast(ImageTransform):
    """Stretches every channel to the whole range.

    Args:
        cutoff: Percent of the darkest and of the brightest pixels that are left out.
        ignore: Values that are left out.
    """

    def __init__(self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None) -> None:
        self.cutoff = number("AutoContrast", "cutoff", cutoff, 0, 50)
        self.ignore = np.atleast_1d([] if ignore is None else ignore).astype(int)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.stretched(image, self.cutoff, self.ignore)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the stretched image."""
        return _by_table(image, [self._table(h) for h in _histograms("AutoContrast", image)])

    def _table(self, histogram: np.ndarray) -> np.ndarray:
        histogram = histogram.copy()
        histogram[self.ignore] = 0
        cut = int(histogram.sum() * self.cutoff / 100)
        kept = [np.cumsum(h) > cut for h in (histogram, histogram[::-1])]
        low, high = int(kept[0].argmax()), 255 - int(kept[1].argmax())
        levels = np.arange(256)
        if high <= low or not histogram.any():
            return levels
        scale = np.float32(255) / np.float32(high - low)
        found = levels.astype(np.float32) * scale - np.float32(low) * scale
        return np.clip(found, 0, 255).astype(np.uint8)


class Equalize(ImageTransform):
    """Spreads the values of every channel evenly."""

    def _of_pillow(self, image: Image) -> Image:
        return pillow.equalized(image)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the equalized image."""
        return pixels.equalized(_bytes("Equalize", image))


class Invert(ImageTransform):
    """Computes 255 less every value."""

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the negative."""
        return (255 - image).astype(image.dtype)


class Posterize(ImageTransform):
    """Keeps the highest bits of every value.

    Args:
        bits: How many, from 0 to 8.
    """

    def __init__(self, bits: int) -> None:
        self.bits = number("Posterize", "bits", bits, 0, 8)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image of fewer levels."""
        return image & np.uint8(256 - (1 << (8 - self.bits)))


class Solarize(ImageTransform):
    """Inverts the values of an interval.

    Args:
        threshold: Its ends. One number, or an empty interval, reaches to white.
    """

    def __init__(self, threshold: Around) -> None:
        pair = (threshold, threshold) if isinstance(threshold, (int, float)) else threshold
        self.low, high = interval("Solarize", "threshold", pair, 0, 255)
        self.high = 255 if high == self.low else high

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image with those values inverted."""
        return np.where((image >= self.low) & (image <= self.high), 255 - image, image)


class GaussianBlur(ImageTransform):
    """Smooths with a Gaussian.

    Args:
        kernel_size: Odd width and height of the kernel.
        sigma: Deviations along the width and height; by default both are
            :math:`0.3 ((width - 1) / 2 - 1) + 0.8`.
    """

    def __init__(self, kernel_size: PerAxis, sigma: float | Sequence[float] | None = None) -> None:
        given = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(given) != 2 or any(k < 1 or k % 2 == 0 for k in given):
            reject(ArgumentError, "vision.GaussianBlur", f"kernel_size must be odd: {kernel_size}")
        self.sizes = (given[0], given[1])
        sigma = 0.15 * given[0] + 0.35 if sigma is None else sigma
        wide = (sigma,) * 2 if isinstance(sigma, (int, float)) else tuple(sigma)
        across, down = (s if s > 0 else 0.15 * k + 0.35 for s, k in zip(wide, given))
        self.sigmas = (across, down)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the smoothed image."""
        return pixels.gaussian(image, self.sizes, self.sigmas)


# ---- transforms that change colors at random -----------------------------------------------------


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

    def _of_pillow(self, image: Image) -> object:
        found: object = image
        for step in self._drawn():
            found = step(found)
        return found

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the changed image."""
        for step in self._drawn():
            image = step.apply(image)
        return image

    def _drawn(self) -> Iterator[ImageTransform]:
        for i in generator().permutation(len(self.steps)):
            kind, bounds = self.steps[i]
            yield kind(uniform(bounds))


class _RandomFactor(ImageTransform):
    """A transform of a random factor."""

    kind: Callable[[float], ImageTransform]
    enhanced: str
    degrees: tuple[float, float]

    def _of_pillow(self, image: Image) -> Image:
        return pillow.enhanced(image, self.enhanced, uniform(self.degrees))

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the changed image."""
        return self.kind(uniform(self.degrees)).apply(image)


class _Saturation(AdjustSaturation):
    _gray_first = False


class RandomColor(_RandomFactor):
    """Changes the saturation by a random factor.

    Args:
        degrees: Least and largest factor.
    """

    kind, enhanced = _Saturation, "Color"

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self.degrees = interval("RandomColor", "degrees", degrees, 0)


class RandomSharpness(_RandomFactor):
    """Changes the sharpness by a random factor.

    Args:
        degrees: Least and largest factor.
    """

    kind, enhanced = AdjustSharpness, "Sharpness"

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
    "AdjustBrightness", "AdjustContrast", "AdjustGamma", "AdjustHue", "AdjustSaturation",
    "AdjustSharpness", "AutoContrast", "Equalize", "GaussianBlur", "Invert", "Posterize",
    "RandomAdjustSharpness", "RandomAutoContrast", "RandomColor", "RandomColorAdjust",
    "RandomEqualize", "RandomInvert", "RandomLighting", "RandomPosterize", "RandomSharpness",
    "RandomSolarize", "Solarize",
]  # fmt: skip
