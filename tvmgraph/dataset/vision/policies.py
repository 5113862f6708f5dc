"""Automatic augmentation: pairs that were searched for, and random choices of operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tvmgraph.data import table
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.vision import color, warps
from tvmgraph.dataset.vision.base import ImageTransform, number
from tvmgraph.dataset.vision.kinds import AutoAugmentPolicy, Fill, Inter
from tvmgraph.errors import ArgumentError, DTypeError, reject

#: Policy -> pairs of (operation, probability, magnitude of 10).
_POLICIES: dict[str, str] = table("dataset/vision/policies.toml")
_SIGNED = {"Brightness", "Color", "Contrast", "Rotate", "Sharpness", "ShearX", "ShearY",
           "TranslateX", "TranslateY"}  # fmt: skip
_PLAIN: Mapping[str, Callable[[], ImageTransform]] = {
    "AutoContrast": color.AutoContrast, "Equalize": color.Equalize, "Invert": color.Invert,
}  # fmt: skip
_FACTORS: Mapping[str, Callable[[float], ImageTransform]] = {
    "Brightness": color.AdjustBrightness, "Color": color.AdjustSaturation,
    "Contrast": color.AdjustContrast, "Sharpness": color.AdjustSharpness,
}  # fmt: skip


def magnitudes(bins: int, height: int, width: int, wide: bool = False) -> dict[str, np.ndarray]:
    """Returns the magnitudes of every operation that has one.

    Args:
        bins: How many.
        height: Rows of the image.
        width: Columns of the image.
        wide: Whether they are those of TrivialAugment, which reach further.
    """
    steps = np.linspace(0, 1, bins)
    found = dict.fromkeys(("ShearX", "ShearY"), steps * (0.99 if wide else 0.3))
    found |= dict.fromkeys(_FACTORS, steps * (0.99 if wide else 0.9))
    found["Rotate"] = steps * (135 if wide else 30)
    found["TranslateX"] = steps * (32 if wide else 150 / 331 * width)
    found["TranslateY"] = steps * (32 if wide else 150 / 331 * height)
    found["Posterize"] = 8 - np.rint(steps * (6 if wide else 4))
    found["Solarize"] = 255 - steps * 255
    return found


def augment(
    name: str, magnitude: float, image: np.ndarray, interpolation: Inter, fill: Fill
) -> np.ndarray:
    """Applies the operation of a name.

    Args:
        name: Such as ``"ShearX"``.
        magnitude: An angle of shear in radians or of rotation in degrees, a distance in pixels, a
            factor less 1, a number of bits, or a threshold.
        image: (height, width, channels) uint8.
        interpolation: A member of :class:`Inter`.
        fill: What stands outside the image.
    """
    if name in _PLAIN:
        return _PLAIN[name]().apply(image)
    if name in _FACTORS:
        return _FACTORS[name](1 + magnitude).apply(image)
    if name == "Posterize":
        return color.Posterize(int(magnitude)).apply(image)
    if name == "Solarize":
        return color.Solarize((magnitude, 255)).apply(image)
    if name == "Rotate":
        return warps.Rotate(magnitude, interpolation, fill_value=fill).apply(image)
    if name == "Identity":
        return image
    angle, height, width = np.rad2deg(magnitude), *image.shape[:2]
    moves: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
        "ShearX": ((0, 0), (angle, 0)), "ShearY": ((0, 0), (0, angle)),
        "TranslateX": ((np.clip(magnitude / width, -1, 1), 0), (0, 0)),
        "TranslateY": ((0, np.clip(magnitude / height, -1, 1)), (0, 0)),
    }  # fmt: skip
    translate, shear = moves[name]
    return warps.Affine(0, translate, 1, shear, interpolation, fill).apply(image)


class _Augment(ImageTransform):
    """What the policies share: their interpolation and what stands outside."""

    def __init__(self, interpolation: Inter, fill_value: Fill) -> None:
        self.interpolation, self.fill_value = Inter(interpolation), fill_value

    def _apply(self, name: str, magnitude: float, image: np.ndarray) -> np.ndarray:
        if name in _SIGNED and generator().random() < 0.5:
            magnitude = -magnitude
        return augment(name, magnitude, image, self.interpolation, self.fill_value)


class AutoAugment(_Augment):
    """Applies one of 25 pairs of operations that were found for a set of images.

    Args:
        policy: A member of :class:`AutoAugmentPolicy`.
        interpolation: A member of :class:`Inter`.
        fill_value: What stands outside: a number, or one per channel.
    """

    def __init__(
        self, policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Inter = Inter.NEAREST, fill_value: Fill = 0,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill_value)
        self.pairs = [pair.split() for pair in _POLICIES[AutoAugmentPolicy(policy)].split(",")]

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the augmented image."""
        pair = self.pairs[int(generator().integers(len(self.pairs)))]
        levels = magnitudes(10, *image.shape[:2])
        for name, prob, level in (pair[:3], pair[3:]):
            if generator().random() < float(prob):
                image = self._apply(name, levels.get(name, np.zeros(10))[int(level)], image)
        return image


class RandAugment(_Augment):
    """Applies several random operations of one magnitude (Cubuk et al., 2020).

    Args:
        num_ops: How many.
        magnitude: Number of the magnitude.
        num_magnitude_bins: Number of magnitudes.
        interpolation: A member of :class:`Inter`.
        fill_value: What stands outside: a number, or one per channel.
    """

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31,
        interpolation: Inter = Inter.NEAREST, fill_value: Fill = 0,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill_value)
        self.num_ops = number("RandAugment", "num_ops", num_ops, 0, np.inf)
        self.bins = number("RandAugment", "num_magnitude_bins", num_magnitude_bins, 2, np.inf)
        self.magnitude = number("RandAugment", "magnitude", magnitude, 0, self.bins - 1)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the augmented image."""
        levels = magnitudes(self.bins, *image.shape[:2])
        names = ["Identity", "AutoContrast", "Equalize", *levels]
        for _ in range(self.num_ops):
            name = names[int(generator().integers(len(names)))]
            level = float(levels[name][self.magnitude]) if name in levels else 0.0
            image = self._apply(name, level, image)
        return image


class TrivialAugmentWide(_Augment):
    """Applies one random operation of a random magnitude (Müller and Hutter, 2021).

    Args:
        num_magnitude_bins: Number of magnitudes.
        interpolation: A member of :class:`Inter`.
        fill_value: What stands outside: a number, or one per channel.
    """

    def __init__(
        self, num_magnitude_bins: int = 31, interpolation: Inter = Inter.NEAREST,
        fill_value: Fill = 0,
    ) -> None:  # fmt: skip
        super().__init__(interpolation, fill_value)
        self.bins = number(
            "TrivialAugmentWide", "num_magnitude_bins", num_magnitude_bins, 2, np.inf
        )

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the augmented image."""
        levels = magnitudes(self.bins, *image.shape[:2], wide=True)
        names = ["Identity", "AutoContrast", "Equalize", *levels]
        name = names[int(generator().integers(len(names)))]
        level = levels[name][int(generator().integers(self.bins))] if name in levels else 0.0
        return self._apply(name, level, image)


class RandomSelectSubpolicy:
    """Applies one of several lists of transforms, each with a probability of its own.

    Args:
        policy: Lists of pairs (transform, probability).

    Raises:
        ArgumentError: if a list is empty, or a probability outside of [0, 1].
        DTypeError: for what cannot be called.
    """

    def __init__(self, policy: Sequence[Sequence[tuple[Callable[..., object], float]]]) -> None:
        op = "RandomSelectSubpolicy"
        if not policy or not all(policy):
            reject(ArgumentError, f"vision.{op}", "policy, or a list in it, is empty")
        for transform, prob in (pair for sub in policy for pair in sub):
            number(op, "a probability", prob, 0, 1)
            if not callable(transform):
                reject(DTypeError, f"vision.{op}", f"{transform!r} is no transform")
        self.policy = [list(sub) for sub in policy]

    def __call__(self, *values: object) -> object:
        """Returns the transformed image, or what a transform of several values gives."""
        for transform, prob in self.policy[int(generator().integers(len(self.policy)))]:
            if generator().random() < prob:
                found = transform(*values)
                values = found if isinstance(found, tuple) else (found,)
        return values[0] if len(values) == 1 else values


class UniformAugment:
    """Applies some of several transforms, each with a random probability.

    Args:
        transforms: The transforms.
        num_ops: How many of them are chosen.
    """

    def __init__(self, transforms: Sequence[Callable[[object], object]], num_ops: int = 2) -> None:
        if not 0 < num_ops <= len(transforms):
            reject(ArgumentError, "vision.UniformAugment",
                   f"num_ops is {num_ops}, but there are {len(transforms)} transforms")  # fmt: skip
        self.transforms, self.num_ops = list(transforms), num_ops

    def __call__(self, value: object) -> object:
        """Returns the transformed image."""
        for i in generator().choice(len(self.transforms), self.num_ops, replace=False):
            if generator().random() < generator().random():
                value = self.transforms[i](value)
        return value


__all__ = [
    "AutoAugment", "RandAugment", "RandomSelectSubpolicy", "TrivialAugmentWide", "UniformAugment",
]  # fmt: skip
