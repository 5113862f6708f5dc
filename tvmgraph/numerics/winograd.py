"""The three matrices of Winograd's convolution with a 3 x 3 window, and the transformed weights.

An m x m piece of the result is :math:`A^T [(G g G^T) \\odot (B^T d B)] A` of the window g and an
(m + 2) x (m + 2) piece d of the image: :math:`(m + 2)^2` products instead of :math:`9 m^2`. The
matrices follow from evaluating polynomials at m + 1 points and at infinity (S. Winograd, Arithmetic
Complexity of Computations, 1980; A. Lavin and S. Gray, arXiv:1509.09308).

The points decide the rounding error. With 0, +-3/4, +-3/2 for m = 4 the largest error over normally
distributed data and 64 to 512 channels is 2 to 4e-6 of the largest result in float32, where plain
sums of products are off by 1 to 3e-6; with the customary 0, +-1, +-2 it is four times as large. For
m = 2, with 0, +-1, it is below 1e-6.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Extent of the window.
WINDOW = 3
_POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.75, -0.75, 1.5, -1.5)}
#: Operations per transformed element, in vectors like the sums of products; slowdown of the small
#: products; and the largest share of the direct convolution's time that is worth the memory.
_TRANSFORM, _SLOWER, _GAIN = 12, 1.25, 0.98


@dataclass(frozen=True)
class Matrices:
    """Transforms of one tile size.

    Attributes:
        tile: m, rows and columns of the result per tile.
        output: A^T, (m, m + 2).
        weight: G, (m + 2, 3).
        input: B^T, (m + 2, m + 2).
    """

    tile: int
    output: np.ndarray
    weight: np.ndarray
    input: np.ndarray

    @property
    def patch(self) -> int:
        """Rows and columns of the image that a tile reads."""
        return self.tile + WINDOW - 1


@functools.cache
def matrices(tile: int) -> Matrices:
    """The matrices for tiles of ``tile`` x ``tile`` results.

    Args:
        tile: Results along one axis, 2 or 4.
    """
    points = np.array(_POINTS[tile])
    patch = tile + WINDOW - 1
    output, weight, data = (np.zeros((rows, patch)) for rows in (tile, WINDOW, patch))
    for j, point in enumerate(points):
        others = np.delete(points, j)
        output[:, j] = point ** np.arange(tile)
        weight[:, j] = point ** np.arange(WINDOW) / np.prod(point - others)
        data[:-1, j] = np.poly(others)[::-1]
    output[-1, -1] = weight[-1, -1] = 1.0
    data[:, -1] = np.poly(points)[::-1]
    return Matrices(tile, output, weight.T, data.T)


def best_tile(
    tiles: Callable[[int], int], inputs: int, outputs: int, plain: int, per_byte: float,
    prepared: bool = True,
) -> int | None:  # fmt: skip
    """Chooses the tile size of a convolution, or None where plain sums are faster.

    Counts multiplications and additions: those of the products, which run at about 80 % of the
    speed of a direct convolution; those of the transforms; and, for every byte of weights, as many
    as the machine does while it reads the byte from memory.

    Args:
        tiles: Number of tiles of a size.
        inputs: Input channels.
        outputs: Output channels.
        plain: Positions of the result.
        per_byte: Operations that the processor does meanwhile, ``CpuModel.flops_per_byte``.
        prepared: Whether the weights were transformed beforehand. Else a call also computes them,
            writes them, and puts the image and the result into another order.
    """

    def preparation(products: int) -> float:
        if prepared:
            return 0
        taps = WINDOW**2
        weights = 4 * products * taps + per_byte * 4 * (2 * products + 3 * taps)
        return weights * inputs * outputs + per_byte * 8 * plain * (inputs + outputs)

    def cost(tile: int) -> float:
        products = matrices(tile).patch ** 2
        sums = 2 * _SLOWER * tiles(tile) * products * inputs * outputs
        transforms = _TRANSFORM * tiles(tile) * products * (inputs + outputs)
        weights = per_byte * 4 * products * inputs * outputs
        return sums + transforms + weights + preparation(products)

    window = WINDOW**2 * inputs * outputs
    best = min(_POINTS, key=cost)
    return best if cost(best) < _GAIN * (2 * window * plain + per_byte * 4 * window) else None


def window_transform(tile: int) -> np.ndarray:
    """The matrix ((m + 2)^2, 9) that makes :math:`G g G^T` of a window that is one column of 9.

    Args:
        tile: Results :math:`m` along one axis.
    """
    g = matrices(tile).weight
    return np.kron(g, g)


def transform_weight(weight: np.ndarray, tile: int, block: int) -> np.ndarray:
    """Transforms the windows of a weight.

    Args:
        weight: Shape (O, I, 3, 3).
        tile: The tile size m.
        block: Output channels per block.

    Returns:
        Array of shape ((m + 2)^2, O / block, I, block).
    """
    outputs, inputs = weight.shape[:2]
    both = window_transform(tile).astype(weight.dtype)
    columns = weight.reshape(outputs // block, block, inputs, WINDOW**2).transpose(3, 0, 2, 1)
    turned = both @ columns.reshape(WINDOW**2, -1)
    return turned.reshape(-1, outputs // block, inputs, block)
