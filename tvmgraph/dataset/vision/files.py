"""Images as files: decoding, encoding, reading and writing."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.core.arguments import PathLike
from tvmgraph.dataset.transforms import as_array
from tvmgraph.dataset.vision.base import image_of, number, to_pillow
from tvmgraph.dataset.vision.geometry import RandomResizedCrop
from tvmgraph.dataset.vision.kinds import ImageReadMode
from tvmgraph.dataset.vision.pixels import decoded
from tvmgraph.errors import ArgumentError, DTypeError, either, reject
from tvmgraph.partial import replacing

if TYPE_CHECKING:
    from PIL.Image import Image


def _opened(op: str, raw: bytes) -> Image:
    from PIL import UnidentifiedImageError
    from PIL.Image import open as open_image

    try:
        image = open_image(BytesIO(raw))
        image.load()
    except (UnidentifiedImageError, OSError) as e:
        kind = either(either(ArgumentError, TypeError), RuntimeError)  # of bytes and of arrays
        reject(kind, op, f"the bytes are no image: {e}")
    return image


class Decode:
    """Reads an image file's bytes (JPEG, PNG, ...) as (height, width, 3) uint8.

    Args:
        to_pil: Whether it becomes an image of Pillow.

    Raises:
        ArgumentError: when called, if the bytes are no image.

    Example:
        >>> vision.Decode()(b"no image")
        Traceback (most recent call last):
        tvmgraph.errors.ArgumentError: ...
    """

    def __init__(self, to_pil: bool = False) -> None:
        self.to_pil = bool(to_pil)

    def __call__(self, value: object) -> np.ndarray | Image:
        """Returns the image."""
        raw = value if isinstance(value, bytes) else as_array(value).tobytes()
        found = None if self.to_pil else decoded(raw)
        if found is not None:
            return found
        image = _opened("vision.Decode", raw).convert("RGB")
        return image if self.to_pil else np.asarray(image)


class RandomCropDecodeResize(RandomResizedCrop):
    """Decodes a file's bytes, cuts out a random part and resizes it; see its base class."""

    def __call__(self, value: object, *others: object) -> object:
        """Returns the resized part."""
        return super().__call__(*map(Decode(), (value, *others)))


def encode_jpeg(image: object, quality: int = 75) -> np.ndarray:
    """Returns an image as the bytes of a JPEG file.

    Args:
        image: (height, width) or (height, width, channels) uint8.
        quality: From 1 to 100.
    """
    return _encoded(image, "JPEG", quality=number("encode_jpeg", "quality", quality, 1, 100))


def encode_png(image: object, compression_level: int = 6) -> np.ndarray:
    """Returns an image as the bytes of a PNG file.

    Args:
        image: (height, width) or (height, width, channels) uint8.
        compression_level: From 0 to 9.
    """
    level = number("encode_png", "compression_level", compression_level, 0, 9)
    return _encoded(image, "PNG", compress_level=level)


def _encoded(image: object, kind: str, **options: object) -> np.ndarray:
    file, name = BytesIO(), f"encode_{kind.lower()}"
    pixels = image_of(name, image)
    if pixels.dtype != np.uint8 or pixels.ndim > 3:
        got = f"{pixels.dtype} of shape {pixels.shape}"
        reject(DTypeError, f"vision.{name}", f"image must be uint8 of 2 or 3 axes, not {got}",
               fix="vision.ToType(np.uint8) casts")  # fmt: skip
    to_pillow(pixels).save(file, kind, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def read_file(filename: PathLike) -> np.ndarray:
    """Returns the bytes of a file.

    Args:
        filename: Its path.
    """
    return np.fromfile(_existing("read_file", filename), np.uint8)


def _existing(op: str, filename: PathLike) -> Path:
    path = Path(filename)
    if not path.is_file():
        kind = either(ArgumentError, RuntimeError)
        reject(kind, f"vision.{op}", f"there is no file {filename}")
    return path


def write_file(filename: PathLike, data: object) -> None:
    """Writes bytes to a file.

    Args:
        filename: Its path.
        data: One axis of uint8.
    """
    raw = as_array(data)
    if raw.dtype != np.uint8 or raw.ndim != 1:
        reject(ArgumentError, "vision.write_file",
               f"data must be one axis of uint8, not {raw.dtype}{list(raw.shape)}")  # fmt: skip
    with replacing(filename) as path:
        path.write_bytes(raw.tobytes())


def write_jpeg(filename: PathLike, image: object, quality: int = 75) -> None:
    """Writes a JPEG file; see :func:`encode_jpeg`.

    Args:
        filename: Path of the file.
        image: uint8 array (height, width) or (height, width, channels).
        quality: From 1 to 100, the best.
    """
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename: PathLike, image: object, compression_level: int = 6) -> None:
    """Writes a PNG file; see :func:`encode_png`.

    Args:
        filename: Path of the file.
        image: uint8 array (height, width) or (height, width, channels).
        compression_level: From 0, none, to 9.
    """
    write_file(filename, encode_png(image, compression_level))


def read_image(filename: PathLike, mode: ImageReadMode = ImageReadMode.UNCHANGED) -> np.ndarray:
    """Returns the pixels of a file, (height, width, channels) uint8.

    Args:
        filename: Its path.
        mode: A member of :class:`ImageReadMode`.
    """
    image = _opened("vision.read_image", read_file(filename).tobytes())
    if mode != ImageReadMode.UNCHANGED:
        image = image.convert("L" if mode == ImageReadMode.GRAYSCALE else "RGB")
    pixels = np.array(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]


def get_image_size(image: object) -> list[int]:
    """Returns the height and width of an image (..., height, width, channels).

    Args:
        image: An array or image of Pillow.
    """
    pixels = image_of("get_image_size", image)
    return list(pixels.shape[:2] if pixels.ndim == 2 else pixels.shape[-3:-1])


def get_image_num_channels(image: object) -> int:
    """Returns the number of channels of an image (..., height, width, channels).

    Args:
        image: An array or image of Pillow.
    """
    bands = getattr(image, "getbands", None)
    if bands is not None:  # of Pillow
        return len(bands())
    pixels = image_of("get_image_num_channels", image)
    return 1 if pixels.ndim == 2 else pixels.shape[-1]


__all__ = [
    "Decode", "RandomCropDecodeResize", "encode_jpeg", "encode_png", "get_image_num_channels",
    "get_image_size", "read_file", "read_image", "write_file", "write_jpeg", "write_png",
]  # fmt: skip
