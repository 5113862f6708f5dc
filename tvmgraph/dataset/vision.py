"""Transforms of images: arrays of shape (height, width, channels), uint8 or float."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.compat.paths import look
from tvmgraph.dataset.base import reject
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.transforms import as_array
from tvmgraph.errors import ArgumentError, ShapeError


class Inter(enum.IntEnum):
    """How pixels are interpolated."""

    NEAREST = 0
    LINEAR = 1
    BILINEAR = 1
    BICUBIC = 2
    AREA = 3
    ANTIALIAS = 4


def _image(op: str, value: Any) -> np.ndarray:
    image = as_array(value)
    if image.ndim not in (2, 3):
        reject(ShapeError, f"vision.{op}", f"an image has 2 or 3 axes, not {image.ndim}",
               "give (height, width) or (height, width, channels)")  # fmt: skip
    return image


def _pair(op: str, name: str, value: Any) -> tuple[int, int]:
    items = (value, value) if isinstance(value, int) else tuple(value)
    if len(items) != 2 or any(not isinstance(v, int) or v < 1 for v in items):
        reject(ArgumentError, f"vision.{op}", f"{name} must be one or two positive ints: {value!r}")
    return items[0], items[1]


def _border(op: str, padding: Any) -> tuple[int, int, int, int]:
    """Returns left, top, right, bottom."""
    items = (padding,) * 4 if isinstance(padding, int) else tuple(padding)
    if len(items) == 2:
        items = (items[0], items[1], items[0], items[1])
    if len(items) != 4 or any(v < 0 for v in items):
        reject(ArgumentError, f"vision.{op}", f"padding must be 1, 2 or 4 ints: {padding!r}")
    left, top, right, bottom = items
    return left, top, right, bottom


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

    def __call__(self, value: Any) -> np.ndarray:
        return as_array(value).astype(np.float32) * self.rescale + self.shift


class Normalize:
    """Computes :math:`(x - mean) / std` per channel in float32.

    Args:
        mean: One number per channel.
        std: One positive number per channel.
        is_hwc: Whether the channels are the last axis, else the first.

    Raises:
        ArgumentError: if the lengths differ or a ``std`` is not positive.
        ShapeError: when called, if the image has another number of channels.

    Example:
        >>> vision.Normalize((1.0,), (2.0,))(np.full((1, 1, 1), 5.0)).item()
        2.0
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        if len(mean) != len(std) or any(s <= 0 for s in std):
            reject(
                ArgumentError,
                "vision.Normalize",
                f"mean and std need one entry per channel, std above 0: {mean}, {std}",
            )
        shape = (1, 1, -1) if is_hwc else (-1, 1, 1)
        self.is_hwc = is_hwc
        self.mean = np.asarray(mean, np.float32).reshape(shape)
        self.std = np.asarray(std, np.float32).reshape(shape)

    def __call__(self, value: Any) -> np.ndarray:
        image = _image("Normalize", value)
        if image.ndim == 2:
            image = image[..., None] if self.is_hwc else image[None]
        channels = image.shape[-1 if self.is_hwc else 0]
        if self.mean.size not in (1, channels):
            reject(ShapeError, "vision.Normalize",
                   f"{self.mean.size} means for an image with {channels} channels",
                   "check is_hwc")  # fmt: skip
        return (image.astype(np.float32) - self.mean) / self.std


class HWC2CHW:
    """Moves the channels to the front.

    Example:
        >>> vision.HWC2CHW()(np.zeros((4, 5, 3))).shape
        (3, 4, 5)
    """

    def __call__(self, value: Any) -> np.ndarray:
        image = _image("HWC2CHW", value)
        return np.ascontiguousarray(
            (image if image.ndim == 3 else image[..., None]).transpose(2, 0, 1)
        )


class ToTensor:
    """Moves the channels to the front and divides by 255.

    Args:
        output_type: dtype of the result.

    Example:
        >>> vision.ToTensor()(np.full((2, 2, 1), 255, np.uint8)).max().item()
        1.0
    """

    def __init__(self, output_type: Any = np.float32) -> None:
        self.output_type = dtypes.dtype_of(output_type).numpy

    def __call__(self, value: Any) -> np.ndarray:
        return (HWC2CHW()(value).astype(np.float32) / np.float32(255)).astype(self.output_type)


class Resize:
    """Resizes by interpolation (Pillow's).

    Args:
        size: Height and width; one number is the length of the shorter side.
        interpolation: A member of :class:`Inter`.

    Raises:
        ArgumentError: if the size is not positive.

    Example:
        >>> vision.Resize((4, 6))(np.zeros((8, 8, 3), np.uint8)).shape
        (4, 6, 3)
    """

    def __init__(self, size: Any, interpolation: Inter = Inter.LINEAR) -> None:
        self.keep_ratio = isinstance(size, int)
        self.size = _pair("Resize", "size", size)
        self.interpolation = Inter(interpolation)

    def __call__(self, value: Any) -> np.ndarray:
        image = _image("Resize", value)
        height, width = self.size
        if self.keep_ratio:
            short = min(image.shape[:2])
            height, width = (max(1, round(s * height / short)) for s in image.shape[:2])
        return resize(image, height, width, self.interpolation)


def resize(image: np.ndarray, height: int, width: int, how: Inter) -> np.ndarray:
    """Resizes channel by channel, so that any dtype and number of channels works.

    Args:
        image: (height, width) or (height, width, channels).
        height: The new height.
        width: The new width.
        how: The interpolation.
    """
    from PIL import Image

    filters = {
        Inter.NEAREST: Image.Resampling.NEAREST, Inter.LINEAR: Image.Resampling.BILINEAR,
        Inter.BICUBIC: Image.Resampling.BICUBIC, Inter.AREA: Image.Resampling.BOX,
        Inter.ANTIALIAS: Image.Resampling.LANCZOS,
    }  # fmt: skip
    planes = image[..., None] if image.ndim == 2 else image
    if planes.dtype == np.uint8 and planes.shape[-1] == 3:
        found = np.asarray(Image.fromarray(planes).resize((width, height), filters[how]))
        return found
    done = []
    for c in range(planes.shape[-1]):
        plane = planes[..., c]
        source = plane if plane.dtype == np.uint8 else plane.astype(np.float32)
        done.append(np.asarray(Image.fromarray(source).resize((width, height), filters[how])))
    result = np.stack(done, -1).astype(image.dtype)
    return result[..., 0] if image.ndim == 2 else result


class CenterCrop:
    """Cuts out the middle; what lies outside the image is black.

    Args:
        size: Height and width.

    Example:
        >>> vision.CenterCrop(2)(np.zeros((4, 4, 3))).shape
        (2, 2, 3)
    """

    def __init__(self, size: Any) -> None:
        self.size = _pair("CenterCrop", "size", size)

    def __call__(self, value: Any) -> np.ndarray:
        image = _grown(_image("CenterCrop", value), self.size)
        top, left = ((n - s) // 2 for n, s in zip(image.shape, self.size))
        return image[top : top + self.size[0], left : left + self.size[1]]


def _grown(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    missing = [max(s - n, 0) for n, s in zip(image.shape, size)]
    if not any(missing):
        return image
    widths = [(m // 2, m - m // 2) for m in missing] + [(0, 0)] * (image.ndim - 2)
    return np.pad(image, widths)


class Pad:
    """Adds a border.

    Args:
        padding: One number, (left and right, top and bottom), or left, top, right, bottom.
        fill_value: Value of the border.
        padding_mode: ``"constant"``, ``"edge"``, ``"reflect"`` or ``"symmetric"``.

    Example:
        >>> vision.Pad(1)(np.zeros((2, 2, 3))).shape
        (4, 4, 3)
    """

    def __init__(self, padding: Any, fill_value: float = 0, padding_mode: str = "constant") -> None:
        self.border = _border("Pad", padding)
        self.fill_value = fill_value
        self.mode: Any = padding_mode
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            reject(ArgumentError, "vision.Pad", f"padding_mode cannot be {padding_mode!r}")

    def __call__(self, value: Any) -> np.ndarray:
        image = _image("Pad", value)
        left, top, right, bottom = self.border
        widths = [(top, bottom), (left, right)] + [(0, 0)] * (image.ndim - 2)
        if self.mode == "constant":
            return np.pad(image, widths, constant_values=self.fill_value)
        return np.pad(image, widths, mode=self.mode)


class RandomCrop:
    """Cuts out a random part.

    Args:
        size: Height and width.
        padding: Border added before, see :class:`Pad`.
        pad_if_needed: Whether a smaller image grows; otherwise it is an error.
        fill_value: Value of the border.
        padding_mode: How the border is filled.

    Raises:
        ShapeError: when called, if the image is smaller than the part.

    Example:
        >>> vision.RandomCrop(2)(np.zeros((4, 4, 3))).shape
        (2, 2, 3)
    """

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill_value: float = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.size = _pair("RandomCrop", "size", size)
        self.pad = None if padding is None else Pad(padding, fill_value, padding_mode)
        self.pad_if_needed = pad_if_needed

    def __call__(self, value: Any) -> np.ndarray:
        image = _image("RandomCrop", value)
        image = image if self.pad is None else self.pad(image)
        image = _grown(image, self.size) if self.pad_if_needed else image
        room = [n - s for n, s in zip(image.shape, self.size)]
        if min(room) < 0:
            reject(ShapeError, "vision.RandomCrop",
                   f"an image of {image.shape[:2]} has no part of {self.size}",
                   "resize before, or set pad_if_needed")  # fmt: skip
        top, left = (int(generator().integers(r + 1)) for r in room)
        return image[top : top + self.size[0], left : left + self.size[1]]


class RandomResizedCrop:
    """Cuts out a part of random size and shape and resizes it.

    Args:
        size: Height and width of the result.
        scale: Smallest and largest share of the area.
        ratio: Smallest and largest width over height.
        interpolation: A member of :class:`Inter`.

    Example:
        >>> vision.RandomResizedCrop(4)(np.zeros((8, 8, 3), np.uint8)).shape
        (4, 4, 3)
    """

    def __init__(
        self,
        size: Any,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: Inter = Inter.LINEAR,
    ) -> None:
        self.size = _pair("RandomResizedCrop", "size", size)
        self.scale, self.ratio, self.interpolation = scale, ratio, Inter(interpolation)

    def __call__(self, value: Any) -> np.ndarray:
        image, rng = _image("RandomResizedCrop", value), generator()
        height, width = image.shape[:2]
        area = height * width * rng.uniform(*self.scale)
        ratio = np.exp(rng.uniform(*np.log(self.ratio)))
        h = int(np.clip(round(np.sqrt(area / ratio)), 1, height))
        w = int(np.clip(round(np.sqrt(area * ratio)), 1, width))
        top, left = int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1))
        return resize(image[top : top + h, left : left + w], *self.size, self.interpolation)


class _RandomFlip:
    """Flips an axis with a probability."""

    axis = 1

    def __init__(self, prob: float = 0.5) -> None:
        if not 0 <= prob <= 1:
            reject(ArgumentError, f"vision.{type(self).__name__}", f"prob is {prob}, not in [0, 1]")
        self.prob = prob

    def __call__(self, value: Any) -> np.ndarray:
        image = _image(type(self).__name__, value)
        if generator().random() < self.prob:
            return np.ascontiguousarray(np.flip(image, self.axis))
        return image


class RandomHorizontalFlip(_RandomFlip):
    """Mirrors left and right with a probability.

    Args:
        prob: The probability.

    Example:
        >>> vision.RandomHorizontalFlip(1.0)(np.array([[1, 2]]))
        array([[2, 1]])
    """


class RandomVerticalFlip(_RandomFlip):
    """Mirrors top and bottom with a probability.

    Args:
        prob: The probability.

    Example:
        >>> vision.RandomVerticalFlip(1.0)(np.array([[1], [2]]))
        array([[2],
               [1]])
    """

    axis = 0


class Decode:
    """Reads an image file's bytes (JPEG, PNG, ...) as (height, width, 3) uint8.

    Raises:
        ArgumentError: when called, if the bytes are no image.

    Example:
        >>> vision.Decode()(b"no image")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    def __call__(self, value: Any) -> np.ndarray:
        from PIL import Image, UnidentifiedImageError

        raw = value if isinstance(value, bytes) else as_array(value).tobytes()
        try:
            return np.asarray(Image.open(BytesIO(raw)).convert("RGB"))
        except (UnidentifiedImageError, OSError) as e:
            reject(ArgumentError, "vision.Decode", f"the bytes are no image: {e}")


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "HWC2CHW",
    "CenterCrop",
    "Decode",
    "Inter",
    "Normalize",
    "Pad",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Rescale",
    "Resize",
    "ToTensor",
    "resize",
]  # fmt: skip
