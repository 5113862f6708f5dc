"""Metrics of segmentations: distances between the surfaces of two regions, and occlusion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject
from tvmgraph.train.metrics.basic import ClearedMetric, MetricError, as_array

#: Length of a vector of differences between two places, along the last axis.
_LENGTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "euclidean": lambda d: np.sqrt((d.astype(np.float64) ** 2).sum(-1)),
    "chessboard": lambda d: np.abs(d).max(-1),
    "taxicab": lambda d: np.abs(d).sum(-1),
}
_ROWS = 1024  # places of one surface that are compared with all of the other at once


def _surface(region: np.ndarray) -> np.ndarray:
    """Returns where the elements of a region lie that have a neighbour outside."""
    inside = np.pad(region, 1)
    core = inside.copy()
    for axis in range(region.ndim):
        core &= np.roll(inside, 1, axis) & np.roll(inside, -1, axis)
    return np.argwhere(inside & ~core) - 1


class _SurfaceDistance(ClearedMetric):
    """Base of what compares the surfaces of a predicted region and the true one.

    Args:
        distance_metric: ``"euclidean"``, ``"chessboard"`` or ``"taxicab"``.

    Raises:
        DTypeError: if it is no string.
        ArgumentError: if it is none of these.
    """

    def __init__(self, distance_metric: str) -> None:
        op = type(self).__name__
        if not isinstance(distance_metric, str):
            reject(DTypeError, op, f"distance_metric must be a string, not {distance_metric!r}")
        if distance_metric not in _LENGTHS:
            reject(ArgumentError, op, f"distance_metric must be one of {', '.join(_LENGTHS)}, "
                   f"not {distance_metric!r}")  # fmt: skip
        self.distance_metric = distance_metric
        super().__init__()

    def clear(self) -> None:
        """Forgets the regions."""
        self._surfaces: tuple[np.ndarray, np.ndarray] | None = None

    def update(self, *inputs: object) -> None:
        """Takes predicted classes, the true ones, and the class whose region counts."""
        op = f"{type(self).__name__}.update"
        inputs = self._chosen(inputs)
        if len(inputs) != 3:
            reject(ArgumentError, op, f"predictions, truth and a class are needed, not {inputs!r}")
        found, true, label = self._convert_data(inputs[0]), self._convert_data(inputs[1]), inputs[2]
        if not isinstance(label, (int, float)):
            reject(either(ArgumentError, TypeError), op, f"the class is no number: {label!r:.60}")
        if not found.size or found.shape != true.shape:
            reject(ShapeError, op, f"shapes {found.shape} and {true.shape} differ, or are empty")
        if label not in found and label not in true:
            reject(ArgumentError, op, f"there is no element of class {label}")
        self._surfaces = _surface(found == label), _surface(true == label)

    def _distances(self, back: bool = False) -> np.ndarray:
        """Returns how far every place of the predicted surface is from the true one, or back."""
        if self._surfaces is None:
            reject(MetricError, type(self).__name__, "there is no region", fix="call update first")
        source, goal = self._surfaces[::-1] if back else self._surfaces
        if not len(goal):
            return np.full(len(source), np.inf)
        length = _LENGTHS[self.distance_metric]
        blocks = [source[i : i + _ROWS, None] - goal for i in range(0, len(source), _ROWS)]
        return np.concatenate([length(b).min(-1) for b in blocks] or [np.zeros(0)])


class HausdorffDistance(_SurfaceDistance):
    r"""Largest distance from a place of one surface to the other surface,
    :math:`\max(\max_a d(a, B), \max_b d(b, A))`.

    Args:
        distance_metric: ``"euclidean"``, ``"chessboard"`` or ``"taxicab"``.
        percentile: This percentile of the distances instead of their maximum.
        directed: Whether only distances from the predicted surface count.
        crop: Kept for MindSpore programs, where it saves memory; here only surfaces are compared.

    Raises:
        DTypeError: if an argument has the wrong type.
        ArgumentError: if an argument is out of range.

    Example:
        >>> m = nn.HausdorffDistance()
        >>> m.update(Tensor([[1, 0, 0]]), Tensor([[0, 0, 1]]), 1)
        >>> float(m.eval())
        2.0
    """

    def __init__(
        self,
        distance_metric: str = "euclidean",
        percentile: float | None = None,
        directed: bool = False,
        crop: bool = True,
    ) -> None:
        op = "HausdorffDistance"
        if percentile is not None and not isinstance(percentile, float):
            reject(DTypeError, op, f"percentile must be a float, not {percentile!r}")
        if percentile is not None and not 0 <= percentile <= 100:
            reject(ArgumentError, op, f"percentile must be in [0, 100], not {percentile}")
        for name, value in (("directed", directed), ("crop", crop)):
            if value is not None and not isinstance(value, bool):
                reject(DTypeError, op, f"{name} must be a bool, not {value!r}")
        self.percentile, self.directed, self.crop = percentile, directed, crop
        super().__init__(distance_metric)

    def eval(self) -> float:
        """Returns the distance; infinite if there is only one region."""
        forth = self._of(self._distances())
        return forth if self.directed else max(forth, self._of(self._distances(back=True)))

    def _of(self, distances: np.ndarray) -> float:
        if not len(distances):
            return np.inf
        if self.percentile:
            return float(np.percentile(distances, self.percentile))
        return distances.max()


class _MeanDistance(_SurfaceDistance):
    """Base of means over the places of a surface.

    Args:
        symmetric: Whether the mean of both directions is taken.
        distance_metric: As for :class:`HausdorffDistance`.

    Raises:
        DTypeError: if an argument has the wrong type.
        ArgumentError: if the name is unknown.
    """

    power = 1

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        if not isinstance(symmetric, bool):
            reject(DTypeError, type(self).__name__, f"symmetric must be a bool, not {symmetric!r}")
        self.symmetric = symmetric
        super().__init__(distance_metric)

    def eval(self) -> float:
        """Returns the mean; infinite if there is only one region."""
        ways = [self._distances(), *([self._distances(back=True)] if self.symmetric else [])]
        if not all(map(len, ways)):
            return np.inf
        return float(np.mean([(d**self.power).mean() for d in ways])) ** (1 / self.power)


class MeanSurfaceDistance(_MeanDistance):
    r"""Mean distance from the places of the predicted surface to the true one,
    :math:`\frac{1}{|A|} \sum_a d(a, B)`.

    Example:
        >>> m = nn.MeanSurfaceDistance()
        >>> m.update(Tensor([[1, 1, 0, 0]]), Tensor([[0, 1, 0, 0]]), 1)
        >>> float(m.eval())
        0.5
    """


class RootMeanSquareDistance(_MeanDistance):
    r"""Root of the mean squared distance from the places of the predicted surface to the true
    one, :math:`\sqrt{\frac{1}{|A|} \sum_a d(a, B)^2}`.

    Example:
        >>> m = nn.RootMeanSquareDistance()
        >>> m.update(Tensor([[1, 1, 0, 0]]), Tensor([[0, 0, 1, 0]]), 1)
        >>> round(float(m.eval()), 4)
        1.5811
    """

    power = 2


class OcclusionSensitivity(ClearedMetric):
    """How much a class's score sinks when a part of an image is hidden, for every part.

    Args:
        pad_val: What a hidden part is filled with.
        margin: How far a part reaches from its middle.
        n_batch: How many images are given to the network at once.
        b_box: Least and largest index of the middles along every axis but the first,
            ``[low, high, low, high, ...]``; all of them by default.

    Raises:
        DTypeError: if an argument has the wrong type.
        ArgumentError: if the box does not lie in the image.

    Example:
        >>> m = nn.OcclusionSensitivity(margin=1)
        >>> net = nn.Dense(3, 2, weight_init="ones")
        >>> m.update(net, Tensor([[1.0, 2.0, 3.0]]), Tensor([0]))
        >>> m.eval().shape
        (3,)
    """

    def __init__(
        self,
        pad_val: float = 0.0,
        margin: int = 2,
        n_batch: int = 128,
        b_box: list[int] | None = None,
    ) -> None:
        for name, value, kind in (
            ("pad_val", pad_val, float), ("margin", margin, int), ("n_batch", n_batch, int),
            ("b_box", b_box or [], list),
        ):  # fmt: skip
            if not isinstance(value, kind) or isinstance(value, bool):
                reject(DTypeError, "OcclusionSensitivity",
                       f"{name} must be of type {kind.__name__}, not {value!r}")  # fmt: skip
        self.pad_val, self.margin, self.n_batch, self.b_box = pad_val, margin, n_batch, b_box
        super().__init__()

    def clear(self) -> None:
        """Forgets the image."""
        self._result: np.ndarray | None = None

    def update(self, *inputs: object) -> None:
        """Takes a network, one image (1, ...), and its class."""
        op = "OcclusionSensitivity.update"
        inputs = self._chosen(inputs)
        if len(inputs) != 3:
            reject(ArgumentError, op, f"a network, an image and a class are needed: {inputs!r}")
        network, image = inputs[0], self._convert_data(inputs[1])
        label = as_array(inputs[2])
        if not callable(network):
            reject(DTypeError, op, f"the network is a {type(network).__name__}")
        if len(image) != 1 or label.size != 1:
            reject(ShapeError, op,
                   f"one image and one class, not {len(image)} and {label.size}")  # fmt: skip
        of_class = int(label.item())

        def scores(images: np.ndarray) -> np.ndarray:
            return np.asarray(as_array(network(Tensor(images))))[:, of_class]

        low, shape = self._middles(np.array(image.shape[1:]))
        hidden = [self._hidden(image[0], low + at) for at in np.ndindex(*shape)]
        batches = [hidden[i : i + self.n_batch] for i in range(0, len(hidden), self.n_batch)]
        found = np.concatenate([scores(np.stack(batch)) for batch in batches])
        self._result = scores(image)[0] - np.squeeze(found.reshape(shape))

    def _hidden(self, image: np.ndarray, middle: np.ndarray) -> np.ndarray:
        part = tuple(slice(max(0, m - self.margin), m + self.margin) for m in middle)
        new = image.copy()
        new[part] = self.pad_val
        return new

    def _middles(self, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the first middle, and how many there are along every axis."""
        if self.b_box is None:
            return np.zeros_like(sizes), sizes
        if len(self.b_box) != 2 * len(sizes):
            reject(ArgumentError, "OcclusionSensitivity",
                   f"b_box {self.b_box} needs two numbers per axis: {len(sizes)}")  # fmt: skip
        low, high = np.maximum(self.b_box[::2], 0), np.array(self.b_box[1::2])
        high = np.where(high < 0, sizes - 1, high)
        if (high >= sizes).any() or (low > high).any():
            reject(ArgumentError, "OcclusionSensitivity",
                   f"b_box {self.b_box} does not lie in {sizes.tolist()}")  # fmt: skip
        return low, high - low + 1

    def eval(self) -> np.ndarray:
        """Returns the score of the whole image minus those of the images with a hidden part."""
        if self._result is None:
            reject(MetricError, "OcclusionSensitivity", "there is no image",
                   fix="call update first")  # fmt: skip
        return self._result


__all__ = [
    "HausdorffDistance", "MeanSurfaceDistance", "OcclusionSensitivity", "RootMeanSquareDistance",
]  # fmt: skip
