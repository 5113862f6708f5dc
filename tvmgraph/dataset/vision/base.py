"""What every transform of images shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeGuard, TypeVar

import numpy as np

from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.shown import Shown
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.transforms import as_array
from tvmgraph.dataset.vision.kinds import Around
from tvmgraph.dataset.vision.pillow import TO_ARRAYS
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject

if TYPE_CHECKING:
    from PIL.Image import Image

N = TypeVar("N", bound=float)


def is_pillow(value: object) -> TypeGuard[Image]:
    """Whether a value is an image of Pillow.

    Args:
        value: Any object.
    """
    return type(value).__module__.startswith("PIL.")


def to_pillow(image: np.ndarray) -> Image:
    """Returns an array of bytes as an image of Pillow.

    Args:
        image: uint8 array (height, width) or (height, width, channels).
    """
    from PIL.Image import fromarray

    return fromarray(image[..., 0] if image.ndim == 3 and image.shape[-1] == 1 else image)


def image_of(op: str, value: object) -> np.ndarray:
    """Returns an image, or a batch of images, as an array.

    Args:
        op: Name of the transform.
        value: A Tensor, image of Pillow or array.

    Raises:
        ShapeError: if it has fewer than two axes; what is no array is a TypeError, too, and an
            array a RuntimeError, as in MindSpore.
        DTypeError: if it is a list or a tuple.
    """
    if isinstance(value, (list, tuple)):
        reject(DTypeError, f"vision.{op}", f"an image is no {type(value).__name__}",
               fix="give an array or an image of Pillow")  # fmt: skip
    image = as_array(value)
    if image.ndim < 2:
        is_array = isinstance(value, np.ndarray)
        reject(either(ShapeError, RuntimeError if is_array else TypeError),
               f"vision.{op}", f"an image has 2 or 3 axes, not {image.ndim}",
               fix="give (height, width) or (height, width, channels); Decode reads files",
               )  # fmt: skip
    return image


class ImageTransform(Shown):
    """A function of an image (height, width) or (height, width, channels).

    Axes before these count images, which are transformed one by one. An image of Pillow gives one
    of Pillow, or an array where MindSpore gives one.
    """

    def __call__(self, value: object) -> object:
        if is_pillow(value):
            return self._of_pillow(value)
        image = image_of(type(self).__name__, value)
        if image.ndim > 3:
            parts = [self.apply(one) for one in image.reshape(-1, *image.shape[-3:])]
            return np.stack(parts).reshape(*image.shape[:-3], *parts[0].shape)
        return self.apply(image)

    def _of_pillow(self, image: Image) -> object:
        """Returns the transformed image of Pillow."""
        found = self.apply(image_of(type(self).__name__, image))
        return found if type(self).__name__ in TO_ARRAYS else to_pillow(found)

    def device(self, device_target: str = "CPU") -> ImageTransform:
        """Returns the transform itself, which runs on the CPU.

        Args:
            device_target: ``"CPU"``.

        Raises:
            ArgumentError: for another device.
        """
        if device_target != "CPU":
            reject(ArgumentError, f"vision.{type(self).__name__}.device",
                   f"images are transformed on the CPU, not on {device_target!r}",
                   fix="leave .device() out")  # fmt: skip
        return self

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the transformed image.

        Args:
            image: Two or three axes.
        """
        raise NotImplementedError


class Alike(ImageTransform):
    """A random transform that does the same to several images, such as one and its mask."""

    _one_size = False  # whether the images must be as large as each other

    def __call__(self, value: object, *others: object) -> object:
        if not others:
            return super().__call__(value)
        sizes = {image_of(type(self).__name__, v).shape[:2] for v in (value, *others)}
        if self._one_size and len(sizes) > 1:
            reject(ShapeError, f"vision.{type(self).__name__}",
                   f"the images have different sizes: {sorted(sizes)}")  # fmt: skip
        drawn, found = generator().bit_generator.state, []
        for one in (value, *others):
            generator().bit_generator.state = drawn
            found.append(super().__call__(one))
        return tuple(found)


class Randomly(ImageTransform):
    """Applies another transform with a probability.

    Args:
        prob: The probability.
        transform: What is applied.
    """

    def __init__(self, prob: float, transform: Callable[[object], object]) -> None:
        self.prob = number(type(self).__name__, "prob", prob, 0, 1)
        self.transform = transform

    def __call__(self, value: object) -> object:
        name = type(self).__name__
        if not is_pillow(value) or name in TO_ARRAYS:
            image = image_of(name, value)
            return self.transform(image) if generator().random() < self.prob else image
        if generator().random() >= self.prob:
            return value
        found = self.transform(value)
        return found if is_pillow(found) else to_pillow(as_array(found))


def number(op: str, name: str, value: N, low: float, high: float) -> N:
    """Returns a number from a closed interval.

    Args:
        op: Name of the transform.
        name: Name of the argument.
        value: What was given.
        low: Lower end of the interval.
        high: Upper end of the interval.

    Raises:
        ArgumentError: if it is outside.
        DTypeError: if it is no number.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        reject(DTypeError, f"vision.{op}", f"{name} must be a number, not {value!r}")
    if not low <= value <= high:
        reject(ArgumentError, f"vision.{op}", f"{name} is {value}, not in [{low}, {high}]")
    return value


def interval(
    op: str, name: str, value: Sequence[N], low: float = -np.inf, high: float = np.inf
) -> tuple[N, N]:
    """Returns an increasing pair of numbers.

    Args:
        op: Name of the transform.
        name: Name of the argument.
        value: What was given.
        low: What the pair must not be below.
        high: What the pair must not be above.

    Raises:
        ArgumentError: if it is none, or leaves [low, high].
    """
    items = tuple(value) if isinstance(value, (tuple, list, np.ndarray)) else ()
    if len(items) != 2 or not low <= items[0] <= items[1] <= high:
        kind = ArgumentError if len(items) == 2 else either(ArgumentError, TypeError)
        reject(kind, f"vision.{op}",
               f"{name} must be (least, largest) in [{low}, {high}], not {value!r}")  # fmt: skip
    return items[0], items[1]


def around(
    op: str, name: str, value: Around, center: float, low: float, high: float
) -> tuple[float, float]:
    """Returns an interval; one number is its half length around ``center``, cut at ``low``.

    Args:
        op: Name of the transform.
        name: Name of the argument.
        value: A number, at least 0, or a pair.
        center: The middle of the interval.
        low: What the pair must not be below.
        high: What the pair must not be above.
    """
    if isinstance(value, (int, float)):
        number(op, name, value, 0, np.inf)
        value = (max(low, center - value), min(high, center + value))
    return interval(op, name, value, low, high)


def sizes(op: str, name: str, value: PerAxis) -> tuple[int, int]:
    """Returns (height, width); one number stands for both.

    Args:
        op: Name of the transform.
        name: Name of the argument.
        value: One number or two.

    Raises:
        ArgumentError: if they are not positive.
    """
    items = (value, value) if isinstance(value, (int, np.integer)) else tuple(value)
    are_ints = len(items) == 2 and all(isinstance(v, (int, np.integer)) for v in items)
    if not are_ints or min(items) < 1:
        kind = ArgumentError if are_ints else either(ArgumentError, TypeError)
        reject(kind, f"vision.{op}", f"{name} must be one or two positive ints: {value!r}")
    return int(items[0]), int(items[1])


def uniform(bounds: tuple[float, float]) -> float:
    """Draws a number of an interval.

    Args:
        bounds: Lower and upper end.
    """
    return float(generator().uniform(*bounds))
