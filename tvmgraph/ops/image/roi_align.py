"""Features averaged over the bins of regions: RoI Align."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.ops.indexing.embedding_bag import embedding_bag

__all__: list[str] = []

Pair = tuple[int, int]
#: First coordinates and lengths of the regions, in pixels of the features.
Ends = tuple[Tensor, Tensor]


def align_regions(
    features: Tensor, images: Tensor, ends: Sequence[Ends], bins: Pair, samples: Pair
) -> Tensor:
    """Averages the features at evenly spaced places of every bin, linearly between pixels.

    Places further than a pixel outside of the image count as zeros.

    Args:
        features: Tensor [N, C, H, W].
        images: Integer Tensor [R]: the image of every region.
        ends: Start and length of the regions, Tensors [R], along y and x.
        bins: Rows and columns of the result.
        samples: Places per bin along y and x.

    Returns:
        Tensor [R, C, rows, columns] of the features' dtype.

    Reference:
        He et al., Mask R-CNN (2017).
    """
    channels, height, width = features.shape[1:]
    pixels = F.reshape(F.transpose(features, (0, 2, 3, 1)), (-1, channels))
    (rows, down), (columns, across) = (
        _corners(*ends[axis], size, bins[axis], samples[axis])
        for axis, size in enumerate((height, width))
    )
    first = F.reshape(F.cast(images, dtypes.int64), (-1, 1, 1, 1, 1)) * (height * width)
    places = first + _each_row(rows * width) + _each_column(columns)
    weights = _each_row(down) * _each_column(across)
    one = (-1, math.prod(bins), 4 * math.prod(samples))
    found = embedding_bag(
        pixels, F.reshape(places, one), F.cast(F.reshape(weights, one), pixels.dtype)
    )
    return F.reshape(F.transpose(found, (0, 2, 1)), (-1, channels, *bins))


def _each_row(x: Tensor) -> Tensor:
    """Turns [R, rows, corners] into [R, rows, 1, corners, 1]."""
    return F.expand_dims(F.expand_dims(x, 2), -1)


def _each_column(x: Tensor) -> Tensor:
    """Turns [R, columns, corners] into [R, 1, columns, 1, corners]."""
    return F.expand_dims(F.expand_dims(x, 1), 3)


def _corners(
    start: Tensor, length: Tensor, size: int, bins: int, samples: int
) -> tuple[Tensor, Tensor]:
    """Returns the two pixels next to every place along an axis, and their shares of the average.

    Both are of shape [R, bins, 2 * samples].
    """
    steps = (np.arange(bins * samples) + 0.5) / (bins * samples)
    steps = tensor_from_numpy(steps.astype(start.dtype.numpy))
    at = F.expand_dims(start, 1) + F.expand_dims(length, 1) * steps
    inside = F.logical_and(at >= -1.0, at <= float(size))
    at = F.clamp(at, 0.0, size - 1.0)
    low = F.floor(at)
    far = F.where(inside, at - low, 0.0)
    near = F.where(inside, low + 1.0 - at, 0.0)
    pixel = F.cast(low, dtypes.int64)
    pixels = F.stack([pixel, F.minimum(pixel + 1, size - 1)], -1)
    shares = F.stack([near, far], -1) * (1 / samples)
    shape = (-1, bins, 2 * samples)
    return F.reshape(pixels, shape), F.reshape(shares, shape)


def align_by_size(features: Tensor, images: Tensor, ends: Sequence[Ends], bins: Pair) -> Tensor:
    """Averages features with about one place per pixel: as many as the size of a region asks for.

    Args:
        features: Tensor [N, C, H, W].
        images: Integer Tensor [R]: the image of every region.
        ends: Start and length of the regions, Tensors [R] whose values are known, along y and x.
        bins: Rows and columns of the result.

    Returns:
        Tensor [R, C, rows, columns] of the features' dtype.
    """
    lengths = np.stack([length.asnumpy() for _, length in ends], -1)
    counts = np.maximum(np.ceil(lengths / bins), 1).astype(int)
    found, order = [], []
    for pair in sorted(set(map(tuple, counts.tolist()))):
        rows = np.flatnonzero((counts == pair).all(-1))
        order.append(rows)
        own = tensor_from_numpy(rows)
        parts = [tuple(F.gather(v, own, 0) for v in pair_of_ends) for pair_of_ends in ends]
        found.append(align_regions(features, F.gather(images, own, 0), parts, bins, pair))
    if len(found) < 2:
        return found[0] if found else align_regions(features, images, ends, bins, (1, 1))
    back = np.argsort(np.concatenate(order))
    return F.gather(F.concat(found, 0), tensor_from_numpy(back), 0)
