"""Structural similarity of images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, ShapeError
from tvmgraph.nn._checks import positive, real, reject, same_images
from tvmgraph.nn.cell import Cell


def _gaussian(size: int, sigma: float) -> Tensor:
    """Returns a normalized window of shape (1, 1, size, size)."""
    places = np.arange(-size // 2 + 1, size // 2 + 1, dtype=np.float32)
    line = np.exp(-(places**2) / (2 * sigma**2))
    window = np.outer(line, line)
    return Tensor((window / window.sum()).astype(np.float32)[None, None])


class SSIM(Cell):
    r"""Mean structural similarity of two images, 1 for equal ones.

    Args:
        max_val: The largest value a pixel can have.
        filter_size: Size of the Gaussian window.
        filter_sigma: Its standard deviation.
        k1: Steadies the quotient of means.
        k2: Steadies the quotient of variances.

    Inputs:
        - **img1** (Tensor) - Shape :math:`(N, C, H, W)`.
        - **img2** (Tensor) - The same shape.

    Outputs:
        Tensor of shape :math:`(N,)`.

    Raises:
        ArgumentError: if a number is outside its range.
        ShapeError: if the shapes differ or an image is smaller than the window.

    Example:
        >>> x = ops.ones((2, 1, 4, 4))
        >>> nn.SSIM(filter_size=3)(x, x).asnumpy().tolist()
        [1.0, 1.0]
    """

    def __init__(self, max_val: float = 1.0, filter_size: int = 11, filter_sigma: float = 1.5,
                 k1: float = 0.01, k2: float = 0.03) -> None:  # fmt: skip
        super().__init__()
        name = self.cls_name
        self.max_val = real(name, "max_val", max_val, 0, bounds="(]")
        self.filter_size = positive(name, "filter_size", filter_size)
        self.filter_sigma = real(name, "filter_sigma", filter_sigma, 0, bounds="(]")
        self.k1, self.k2 = real(name, "k1", k1), real(name, "k2", k2)
        self.window = _gaussian(self.filter_size, self.filter_sigma)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        return F.mean(self._parts(*self._scaled(img1, img2))[0], -1)

    def _scaled(self, img1: Tensor, img2: Tensor) -> tuple[Tensor, Tensor, float]:
        """Returns both images in float32 and the largest value, of integers as shares of theirs."""
        same_images(self.cls_name, img1, img2)
        whole = img1.dtype.kind in "iu"
        most = float(np.iinfo(img1.dtype.numpy).max) if whole else 1.0
        first, second = (F.cast(i, dtypes.float32) / most for i in (img1, img2))
        return first, second, self.max_val / most

    def _blurred(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        if min(h, w) < self.filter_size:
            reject(ShapeError, self.cls_name, f"images must be at least {self.filter_size} wide "
                   "and high", f"{x.type}", "use a smaller filter_size")  # fmt: skip
        found = F.conv2d(F.reshape(x, (n * c, 1, h, w)), self.window)
        return F.reshape(found, (n, c, *found.shape[2:]))

    def _parts(self, img1: Tensor, img2: Tensor, most: float) -> tuple[Tensor, Tensor]:
        """Returns the similarity and that of the contrasts, per image and channel."""
        c1, c2 = (self.k1 * most) ** 2, (self.k2 * most) ** 2
        mean1, mean2 = self._blurred(img1), self._blurred(img2)
        spread = self._blurred(img1 * img1 + img2 * img2) - (mean1 * mean1 + mean2 * mean2)
        shared = self._blurred(img1 * img2) - mean1 * mean2
        contrast = (2 * shared + c2) / (spread + c2)
        means = (2 * mean1 * mean2 + c1) / (mean1 * mean1 + mean2 * mean2 + c1)
        return F.mean(means * contrast, (2, 3)), F.mean(contrast, (2, 3))


class MSSSIM(SSIM):
    r"""Product of the structural similarities at several scales, each half as large.

    Args:
        max_val: The largest value a pixel can have.
        power_factors: Exponent of each scale.
        filter_size: Size of the Gaussian window.
        filter_sigma: Its standard deviation.
        k1: Steadies the quotient of means.
        k2: Steadies the quotient of variances.

    Inputs:
        - **img1** (Tensor) - Shape :math:`(N, C, H, W)`.
        - **img2** (Tensor) - The same shape.

    Outputs:
        Tensor of shape :math:`(N,)`.

    Raises:
        ShapeError: if an image is smaller than the window at a scale.

    Example:
        >>> net = nn.MSSSIM(power_factors=(0.5, 0.5), filter_size=3)
        >>> float(net(ops.ones((1, 1, 8, 8)), ops.ones((1, 1, 8, 8))))
        1.0
    """

    def __init__(self, max_val: float = 1.0,
                 power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
                 filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01,
                 k2: float = 0.03) -> None:  # fmt: skip
        super().__init__(max_val, filter_size, filter_sigma, k1, k2)
        if not isinstance(power_factors, (tuple, list)):
            reject(DTypeError, "MSSSIM",
                   f"power_factors cannot be a {type(power_factors).__name__}")  # fmt: skip
        self.power_factors = tuple(real("MSSSIM", "power_factors", p) for p in power_factors)

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        img1, img2, most = self._scaled(img1, img2)
        found = 1.0
        last = len(self.power_factors) - 1
        for level, power in enumerate(self.power_factors):
            similarity, contrast = self._parts(img1, img2, most)
            found = found * F.pow(F.relu(similarity if level == last else contrast), power)
            if level < last:
                img1, img2 = (F.avg_pool2d(i, 2, 2) for i in (img1, img2))
        return F.mean(found, -1)


__all__ = ["MSSSIM", "SSIM"]
