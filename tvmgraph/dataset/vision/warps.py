"""Transforms that move pixels: flips, turns, shears, perspectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tvmgraph.dataset.config import generator
from tvmgraph.dataset.vision import pillow
from tvmgraph.dataset.vision.base import (
    Alike,
    ImageTransform,
    Randomly,
    around,
    image_of,
    interval,
    number,
    uniform,
)
from tvmgraph.dataset.vision.kinds import Around, Fill, Inter
from tvmgraph.dataset.vision.pixels import (
    flipped,
    perspective,
    rotation,
    warp_affine,
    warp_perspective,
)
from tvmgraph.errors import ArgumentError, reject

if TYPE_CHECKING:
    from PIL.Image import Image


class HorizontalFlip(ImageTransform):
    """Mirrors left and right."""

    axis = 1

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the mirrored image."""
        return flipped(image, self.axis)


class VerticalFlip(HorizontalFlip):
    """Mirrors top and bottom."""

    axis = 0


class RandomHorizontalFlip(Alike, Randomly):
    """Mirrors left and right with a probability; several images all or none.

    Args:
        prob: The probability.

    Example:
        >>> vision.RandomHorizontalFlip(1.0)(np.array([[1, 2]]))
        array([[2, 1]])
    """

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob, HorizontalFlip())


class RandomVerticalFlip(Alike, Randomly):
    """Mirrors top and bottom with a probability; several images all or none.

    Args:
        prob: The probability.

    Example:
        >>> vision.RandomVerticalFlip(1.0)(np.array([[1], [2]]))
        array([[2],
               [1]])
    """

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob, VerticalFlip())


class Rotate(ImageTransform):
    """Turns an image counter-clockwise.

    Args:
        degrees: The angle.
        resample: A member of :class:`Inter`.
        expand: Whether the result grows so that it holds the whole image.
        center: (x, y) that stays; the middle by default.
        fill_value: What stands outside: a number, or one per channel.
    """

    def __init__(
        self, degrees: float, resample: Inter = Inter.NEAREST, expand: bool = False,
        center: tuple[float, float] | None = None, fill_value: Fill = 0,
    ) -> None:  # fmt: skip
        self.degrees = number("Rotate", "degrees", degrees, -np.inf, np.inf)
        self.resample, self.expand = Inter(resample), bool(expand)
        self.center, self.fill_value = center, fill_value

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the turned image."""
        height, width = image.shape[:2]
        center = self.center or ((width - 1) / 2, (height - 1) / 2)
        matrix, size = rotation(self.degrees, center), (height, width)
        if self.expand:
            turn = np.deg2rad(self.degrees)
            a, b = abs(np.cos(turn)), abs(np.sin(turn))
            box = np.float32(width * a + height * b), np.float32(width * b + height * a)
            matrix[:, 2] += [box[0] / 2 - width / 2, box[1] / 2 - height / 2]
            size = (int(np.rint(box[1])), int(np.rint(box[0])))
        return warp_affine(image, matrix, size, self.resample, self.fill_value)


class RandomRotation(ImageTransform):
    """Turns an image by a random angle.

    Args:
        degrees: Least and largest angle; one number stands for both directions.
        resample: A member of :class:`Inter`.
        expand: Whether the result grows so that it holds the whole image.
        center: (x, y) that stays; the middle by default.
        fill_value: What stands outside: a number, or one per channel.
    """

    def __init__(
        self, degrees: Around, resample: Inter = Inter.NEAREST, expand: bool = False,
        center: tuple[float, float] | None = None, fill_value: Fill = 0,
    ) -> None:  # fmt: skip
        self.degrees = around("RandomRotation", "degrees", degrees, 0, -np.inf, np.inf)
        self.options = (resample, expand, center, fill_value)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.rotated(image, uniform(self.degrees), *self.options)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the turned image."""
        return Rotate(uniform(self.degrees), *self.options).apply(image)


class Affine(ImageTransform):
    """Turns, moves, scales and shears an image around its middle.

    Args:
        degrees: Angle, clockwise.
        translate: Shares of the width and height by which it moves.
        scale: Factor of both sides.
        shear: Angle of the x axis, or of both axes, in degrees.
        resample: A member of :class:`Inter`.
        fill_value: What stands outside: a number, or one per channel.
    """

    def __init__(
        self, degrees: float, translate: Sequence[float], scale: float, shear: Around,
        resample: Inter = Inter.NEAREST, fill_value: Fill = 0,
    ) -> None:  # fmt: skip
        self.degrees = number("Affine", "degrees", degrees, -np.inf, np.inf)
        self.translate = tuple(number("Affine", "translate", t, -1, 1) for t in translate)
        self.scale = number("Affine", "scale", scale, 1e-9, np.inf)
        self.shear = (shear, 0.0) if isinstance(shear, (int, float)) else tuple(shear)
        self.resample, self.fill_value = Inter(resample), fill_value

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the moved image."""
        height, width = image.shape[:2]
        # In float32, as MindSpore counts: a last bit decides where a pixel goes.
        turn, across, down = np.deg2rad([self.degrees, *self.shear]).astype(np.float32)
        scale, cos, sin = np.float32(self.scale), np.cos(turn - down), np.sin(turn - down)
        a = scale * cos / np.cos(down)
        b = scale * (-cos * np.tan(across) / np.cos(down) - np.sin(turn))
        c = scale * sin / np.cos(down)
        d = scale * (-sin * np.tan(across) / np.cos(down) + np.cos(turn))
        x, y = np.array([(width - 1) / 2, (height - 1) / 2], np.float32)
        right, under = np.array(self.translate, np.float32) * np.array([width, height], np.float32)
        matrix = np.array(
            [[a, b, (1 - a) * x - b * y + right], [c, d, (1 - d) * y - c * x + under]]
        )
        return warp_affine(image, matrix, (height, width), self.resample, self.fill_value)


class RandomAffine(ImageTransform):
    """Applies :class:`Affine` with random numbers.

    Args:
        degrees: Least and largest angle; one number stands for both directions.
        translate: Least and largest share of the width by which it moves, then of the height.
        scale: Least and largest factor.
        shear: Least and largest angle of the x axis, and of the y axis when there are four; one
            number stands for both directions of the x axis.
        resample: A member of :class:`Inter`.
        fill_value: What stands outside: a number, or one per channel.
    """

    def __init__(
        self, degrees: Around, translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None, shear: Around | None = None,
        resample: Inter = Inter.NEAREST, fill_value: Fill = 0,
    ) -> None:  # fmt: skip
        op = "RandomAffine"
        self.degrees = around(op, "degrees", degrees, 0, -np.inf, np.inf)
        moves = tuple(translate or (0, 0, 0, 0))
        moves = moves if len(moves) == 4 else (*moves, 0, 0)
        self.moves = [interval(op, "translate", moves[i : i + 2], -1, 1) for i in (0, 2)]
        self.scale = interval(op, "scale", scale or (1, 1), 1e-9)
        angles = (-shear, shear) if isinstance(shear, (int, float)) else tuple(shear or (0, 0))
        angles = (*angles, 0, 0)[:4]
        self.shear = [interval(op, "shear", angles[i : i + 2]) for i in (0, 2)]
        self.options = (resample, fill_value)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.moved(image, *self._drawn(), *self.options)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the moved image."""
        return Affine(*self._drawn(), *self.options).apply(image)

    def _drawn(self) -> tuple[float, list[float], float, list[float]]:
        """Draws the angle, the shares of the sides, the factor and the angles of the axes."""
        return (uniform(self.degrees), [uniform(m) for m in self.moves], uniform(self.scale),
                [uniform(s) for s in self.shear])  # fmt: skip


class Perspective(ImageTransform):
    """Moves four points to four others; straight lines stay straight.

    Args:
        start_points: (x, y) of the four points.
        end_points: Where they go.
        interpolation: A member of :class:`Inter`.
    """

    def __init__(
        self, start_points: object, end_points: object, interpolation: Inter = Inter.BILINEAR
    ) -> None:
        points = [np.asarray(p, np.float64) for p in (start_points, end_points)]
        if any(p.shape != (4, 2) for p in points):
            reject(ArgumentError, "vision.Perspective", "four pairs of (x, y) are needed")
        self.points = points
        self.interpolation = Inter(interpolation)

    def _of_pillow(self, image: Image) -> Image:
        return pillow.in_perspective(image, perspective(*self.points), self.interpolation)

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Returns the moved image."""
        return warp_perspective(image, perspective(*self.points), self.interpolation)


class RandomPerspective(Randomly):
    """Moves the corners inwards at random, with a probability.

    Args:
        distortion_scale: Up to which share of half a side a corner moves.
        prob: The probability.
        interpolation: A member of :class:`Inter`.
    """

    def __init__(
        self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC
    ) -> None:
        super().__init__(prob, self._move)
        self.distortion = number("RandomPerspective", "distortion_scale", distortion_scale, 0, 1)
        self.interpolation = Inter(interpolation)

    def _move(self, value: object) -> object:
        height, width = image_of("RandomPerspective", value).shape[:2]
        right, bottom = width - 1, height - 1
        start = [(0, 0), (right, 0), (right, bottom), (0, bottom)]
        most = int(width / 2 * self.distortion), int(height / 2 * self.distortion)
        end = [
            [abs(c - int(generator().integers(m + 1))) for c, m in zip(corner, most)]
            for corner in start
        ]
        return Perspective(start, end, self.interpolation)(value)


__all__ = [
    "Affine", "HorizontalFlip", "Perspective", "RandomAffine", "RandomHorizontalFlip",
    "RandomPerspective", "RandomRotation", "RandomVerticalFlip", "Rotate", "VerticalFlip",
]  # fmt: skip
