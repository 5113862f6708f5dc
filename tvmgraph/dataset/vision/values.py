"""Transforms that change what numbers stand for: scales, dtypes, orders and kinds of colors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph import dtypes
from tvmgraph.dataset.transforms import as_array
from tvmgraph.dataset.vision import pixels
from tvmgraph.dataset.vision.base import ImageTransform, Randomly, image_of, to_pillow
from tvmgraph.dataset.vision.kinds import ConvertMode
from tvmgraph.errors import ArgumentError, ShapeError, reject

if TYPE_CHECKING:
    from PIL.Image import Image


class Rescale:
    """Computes :math:`x \\cdot rescale + shift` in float32.

    Args:
        rescale: Factor.
        shift: Summand.

    Example:
        >>> vision.Rescale(1 / 255, 0)(np.full((1, 1, 1), 255, np.uint8)).item()
        1.0
    """

    def __init__(self, rescale: float, shift: float) -> None:
        self.rescale, self.shift = np.float32(rescale), np.float32(shift)

    def __call__(self, value: object) -> np.ndarray:
        """Returns the numbers."""
        image = value if isinstance(value, np.ndarray) else image_of("Rescale", value)
        return image.astype(np.float32) * self.rescale + self.shift


class Normalize(ImageTransform):
    """Computes :math:`(x - mean) / std` per channel in float32.

    Of bytes it makes one plane of memory per channel, which :class:`HWC2CHW` need not copy.

    Args:
        mean: One number per channel.
        std: One positive number per channel.
        is_hwc: Whether the channels are the last axis, else the first.

    Raises:
        ArgumentError: if the lengths differ, a ``mean`` is outside [0, 255] or a ``std`` outside
            (0, 255].
        ShapeError: when called, if the image has another number of channels.

    Example:
        >>> vision.Normalize((1.0,), (2.0,))(np.full((1, 1, 1), 5.0)).item()
        2.0
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        op = f"vision.{type(self).__name__}"
        wrong = any(not 0 <= m <= 255 for m in mean) or any(not 0 < s <= 255 for s in std)
        if len(mean) != len(std) or wrong:
            reject(ArgumentError, op, "mean and std need an entry per channel, in [0, 255] and "
                   f"(0, 255]: {mean}, {std}")  # fmt: skip
        shape = (1, 1, -1) if is_hwc else (-1, 1, 1)
        self.is_hwc = is_hwc
        self.mean = np.asarray(mean, np.float32).reshape(shape)
        self.std = np.asarray(std, np.float32).reshape(shape)

    def __call__(self, value: object) -> object:
        """Returns the numbers, always as an array."""
        return super().__call__(image_of(type(self).__name__, value))

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the numbers of one image, of as many axes."""
        found = self._normalized(image)
        return found if image.ndim == 3 else found[..., 0] if self.is_hwc else found[0]

    def _normalized(self, image: np.ndarray) -> np.ndarray:
        """Returns the numbers of one image, of three axes."""
        if image.ndim == 2:
            image = image[..., None] if self.is_hwc else image[None]
        channels = image.shape[-1 if self.is_hwc else 0]
        if self.mean.size not in (1, channels):
            reject(ShapeError, f"vision.{type(self).__name__}",
                   f"{self.mean.size} means for an image with {channels} channels",
                   fix="check is_hwc")  # fmt: skip
        if self.is_hwc and image.dtype == np.uint8:
            return np.moveaxis(pixels.planes_by_tables(image, self._tables(channels)), 0, -1)
        found = np.ascontiguousarray(image).astype(np.float32)
        mean, std, rows = self.mean, self.std, found
        if self.is_hwc:  # a row of pixels with their channels is one axis
            rows = found.reshape(len(found), -1)
            mean, std = (np.tile(np.broadcast_to(v, (1, 1, channels)), (1, image.shape[1], 1)
                                 ).reshape(1, -1) for v in (mean, std))  # fmt: skip
        rows -= mean
        rows /= std
        return found

    def _tables(self, channels: int) -> list[np.ndarray]:
        """Returns what becomes of every byte, by channel."""
        tables = (np.arange(256, dtype=np.float32)[:, None] - self.mean[0]) / self.std[0]
        return list(np.broadcast_to(tables, (256, channels)).T)


class NormalizePad(Normalize):
    """Normalizes as :class:`Normalize` and adds a channel of zeros.

    Args:
        mean: One number per channel.
        std: One positive number per channel.
        dtype: ``"float32"`` or ``"float16"``.
        is_hwc: Whether the channels are the last axis, else the first.
    """

    def __init__(
        self, mean: Sequence[float], std: Sequence[float], dtype: str = "float32",
        is_hwc: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(mean, std, is_hwc)
        if dtype not in ("float32", "float16"):
            reject(ArgumentError, "vision.NormalizePad", f"dtype cannot be {dtype!r}")
        self.dtype = dtype

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the numbers of one image."""
        found = self._normalized(image)
        axis = -1 if self.is_hwc else 0
        zeros = np.zeros_like(np.take(found, [0], axis))
        return np.concatenate([found, zeros], axis).astype(self.dtype)


class HWC2CHW(ImageTransform):
    """Moves the channels to the front.

    Example:
        >>> vision.HWC2CHW()(np.zeros((4, 5, 3))).shape
        (3, 4, 5)
    """

    def __call__(self, value: object) -> object:
        """Returns an array, also for an image of Pillow."""
        return super().__call__(image_of("HWC2CHW", value))

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns one image with its channels in front; one of two axes has none to move."""
        return np.ascontiguousarray(image.transpose(2, 0, 1)) if image.ndim == 3 else image


class ToTensor:
    """Moves the channels to the front and divides by 255.

    Args:
        output_type: dtype of the result.

    Example:
        >>> vision.ToTensor()(np.full((2, 2, 1), 255, np.uint8)).max().item()
        1.0
    """

    def __init__(self, output_type: object = np.float32) -> None:
        self.output_type = dtypes.dtype_of(output_type).numpy

    def __call__(self, value: object) -> np.ndarray:
        """Returns an array (channels, height, width)."""
        image = as_array(image_of("ToTensor", value))
        image = as_array(HWC2CHW()(image if image.ndim > 2 else image[..., None]))
        return (image.astype(np.float32) / np.float32(255)).astype(self.output_type)


class ToType:
    """Converts to another dtype.

    Args:
        data_type: A dtype of this package or of NumPy.
    """

    def __init__(self, data_type: object) -> None:
        self.data_type = dtypes.dtype_of(data_type).numpy

    def __call__(self, value: object) -> np.ndarray:
        """Returns the array of that dtype."""
        return as_array(value).astype(self.data_type)


class ToPIL:
    """Makes an image of Pillow of an array of bytes."""

    def __call__(self, value: object) -> Image:
        """Returns the image."""
        image = image_of("ToPIL", value)
        if image.ndim > 3:
            reject(ShapeError, "vision.ToPIL", f"an image has 2 or 3 axes, not {image.ndim}")
        return to_pillow(image)


class ToNumpy:
    """Makes an array of an image of Pillow."""

    def __call__(self, value: object) -> np.ndarray:
        """Returns a copy of its pixels."""
        return np.array(as_array(value))


class ConvertColor(ImageTransform):
    """Reorders, adds or drops channels.

    Args:
        convert_mode: A member of :class:`ConvertMode`.
    """

    def __init__(self, convert_mode: ConvertMode) -> None:
        self.mode = ConvertMode(convert_mode)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the image of other channels."""
        return pixels.converted(image, self.mode)


class Grayscale(ImageTransform):
    """Replaces colors by their luminance.

    Args:
        num_output_channels: 1 or 3.
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            reject(ArgumentError, "vision.Grayscale",
                   f"num_output_channels is 1 or 3, not {num_output_channels!r}")  # fmt: skip
        self.channels = num_output_channels

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the gray image, (height, width) or (height, width, 3)."""
        if image.ndim == 3:
            weights = np.array([19595, 38470, 7471])  # Pillow's, of 16 bits
            image = ((image[..., :3].astype(np.int64) @ weights + 0x8000) >> 16).astype(np.uint8)
        return image if self.channels == 1 else np.repeat(image[..., None], 3, -1)


class RandomGrayscale(Randomly):
    """Makes an image gray with a probability; its number of channels stays.

    Args:
        prob: The probability.
    """

    def __init__(self, prob: float = 0.1) -> None:
        super().__init__(prob, self._gray)

    @staticmethod
    def _gray(value: object) -> object:
        return Grayscale(3 if as_array(value).ndim == 3 else 1)(value)


class RgbToHsv:
    """Computes hue, saturation and value, each of [0, 1] when the colors are.

    Args:
        is_hwc: Whether the channels are the last axis, else the first.
    """

    def __init__(self, is_hwc: bool = False) -> None:
        self.axis = -1 if is_hwc else -3

    def __call__(self, value: object) -> np.ndarray:
        """Returns float64 numbers."""
        image = np.moveaxis(image_of(type(self).__name__, value), self.axis, 0)
        return np.stack(self.convert(*image.astype(np.float64)), self.axis)

    @staticmethod
    def convert(r: np.ndarray, g: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        """Returns hue, saturation and value, all in :math:`[0, 1]`.

        Args:
            r: Red, in :math:`[0, 1]`.
            g: Green.
            b: Blue.
        """
        value = np.maximum(np.maximum(r, g), b)
        span = value - np.minimum(np.minimum(r, g), b)
        with np.errstate(invalid="ignore", divide="ignore"):
            sector = np.where(
                r == value, (g - b) / span,
                np.where(g == value, 2 + (b - r) / span, 4 + (r - g) / span),
            )  # fmt: skip
            return [np.where(span == 0, 0, sector / 6 % 1), np.where(span == 0, 0, span / value),
                    value]  # fmt: skip


class HsvToRgb(RgbToHsv):
    """Computes red, green and blue of hue, saturation and value.

    Args:
        is_hwc: Whether the channels are the last axis, else the first.
    """

    @staticmethod
    def convert(r: np.ndarray, g: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        """Returns red, green and blue.

        Args:
            r: Hue, in :math:`[0, 1]`.
            g: Saturation.
            b: Value.
        """
        h, s, v = r, g, b
        sector = np.trunc(h * 6)
        rest = h * 6 - sector
        p, q, t = v * (1 - s), v * (1 - s * rest), v * (1 - s * (1 - rest))
        kind = sector.astype(int) % 6
        return [np.choose(kind, parts) for parts in
                ([v, q, p, p, t, v], [t, v, v, q, p, p], [p, p, t, v, v, q])]  # fmt: skip


class LinearTransformation:
    """Multiplies the elements of an image, less a mean, by a square matrix (whitening).

    Args:
        transformation_matrix: (n, n), where n is the number of elements.
        mean_vector: (n,).
    """

    def __init__(self, transformation_matrix: np.ndarray, mean_vector: np.ndarray) -> None:
        self.matrix, self.mean = np.asarray(transformation_matrix), np.asarray(mean_vector)
        if self.matrix.shape != (self.mean.size, self.mean.size):
            reject(ShapeError, "vision.LinearTransformation",
                   f"a matrix {self.matrix.shape} and a mean {self.mean.shape}")  # fmt: skip

    def __call__(self, value: object) -> np.ndarray:
        """Returns an array of the shape of the image."""
        image = as_array(value)
        if image.size != self.mean.size:
            reject(ShapeError, "vision.LinearTransformation",
                   f"{image.size} elements for a matrix {self.matrix.shape}")  # fmt: skip
        return ((image.reshape(-1) - self.mean) @ self.matrix).reshape(image.shape)


__all__ = [
    "HWC2CHW", "ConvertColor", "Grayscale", "HsvToRgb", "LinearTransformation", "Normalize",
    "NormalizePad", "RandomGrayscale", "Rescale", "RgbToHsv", "ToNumpy", "ToPIL", "ToTensor",
    "ToType",
]  # fmt: skip
