"""Layers that rearrange, resize and compare images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.compat.primitives.layers import resize
from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, choice, int_tuple, positive, real, reject, same_images
from tvmgraph.nn.cell import Cell
from tvmgraph.ops.common.window import resolve_padding


class PixelShuffle(Cell):
    r"""Moves channels into space: :math:`(*, C r^2, H, W) \to (*, C, H r, W r)`.

    Args:
        upscale_factor: :math:`r`.

    Inputs:
        - **input** (Tensor) - Shape :math:`(*, C r^2, H, W)`.

    Outputs:
        Tensor of shape :math:`(*, C, H r, W r)`.

    Raises:
        ArgumentError: if the factor is not positive.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.PixelShuffle(2)(ops.ones((1, 4, 3, 3))).shape
        (1, 1, 6, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = positive("PixelShuffle", "upscale_factor", upscale_factor)

    def construct(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Cell):
    r"""Moves space into channels: :math:`(*, C, H r, W r) \to (*, C r^2, H, W)`.

    Args:
        downscale_factor: :math:`r`.

    Inputs:
        - **input** (Tensor) - Shape :math:`(*, C, H r, W r)`.

    Outputs:
        Tensor of shape :math:`(*, C r^2, H, W)`.

    Raises:
        ArgumentError: if the factor is not positive.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.PixelUnshuffle(2)(ops.ones((1, 1, 6, 6))).shape
        (1, 4, 3, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = positive("PixelUnshuffle", "downscale_factor", downscale_factor)

    def construct(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Cell):
    r"""Interleaves groups of channels.

    Args:
        groups: Number of groups; it divides the channels.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)`.

    Outputs:
        Tensor of the same shape.

    Raises:
        ArgumentError: if ``groups`` is not positive.
        ShapeError: if the groups do not divide the channels.

    Example:
        >>> nn.ChannelShuffle(2)(ops.ones((1, 4, 2, 2))).shape
        (1, 4, 2, 2)
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = positive("ChannelShuffle", "groups", groups)

    def construct(self, x: Tensor) -> Tensor:
        return F.channel_shuffle(x, self.groups)


class ResizeBilinear(Cell):
    r"""Resizes images linearly; a layer of MindSpore 1.x, whose successor is :class:`Upsample`.

    Args:
        half_pixel_centers: Whether pixels are squares around their positions.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, H, W)`.
        - **size** (tuple) - New height and width.
        - **scale_factor** (int) - Factor of both, instead of ``size``.
        - **align_corners** (bool) - Whether the corner elements keep their places.

    Outputs:
        Tensor of shape :math:`(N, C, *size)`.

    Raises:
        ArgumentError: if not one of size and factor is given.

    Example:
        >>> nn.ResizeBilinear()(ops.ones((1, 1, 2, 2)), scale_factor=2).shape
        (1, 1, 4, 4)
    """

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = half_pixel_centers

    def construct(
        self, x: Tensor, size: object = None, scale_factor: Any = None, align_corners: bool = False
    ) -> Tensor:
        if (size is None) == (scale_factor is None):
            reject(ArgumentError, "ResizeBilinear", "one of size and scale_factor is needed")
        if size is None:
            size = tuple(n * scale_factor for n in x.shape[2:])
        align_corners = boolean("ResizeBilinear", "align_corners", align_corners)
        return resize(x, size, "bilinear", align_corners, self.half_pixel_centers)


class Upsample(Cell):
    r"""Resizes the spatial axes by interpolation.

    Args:
        size: New sizes.
        scale_factor: Factors, instead of sizes.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"trilinear"``, ``"bicubic"`` or
            ``"area"``.
        align_corners: Whether the corner elements keep their places.
        recompute_scale_factor: Whether the factor is recomputed from the sizes.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, C, *spatial)`.

    Outputs:
        Tensor of shape :math:`(N, C, *size)`.

    Raises:
        ArgumentError: if the arguments contradict each other.

    Example:
        >>> nn.Upsample(size=(4, 4))(ops.ones((1, 1, 2, 2))).shape
        (1, 1, 4, 4)
    """

    def __init__(
        self,
        size: PerAxis | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        if size is None and scale_factor is None:
            reject(ArgumentError, "Upsample", "size or scale_factor is needed")
        if size is not None and scale_factor is not None:
            reject(ArgumentError, "Upsample", "size and scale_factor exclude each other",
                   f"size={size!r}, scale_factor={scale_factor!r}")  # fmt: skip
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def construct(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)  # fmt: skip


class Unfold(Cell):
    r"""Lays the windows of images out as channels.

    Args:
        ksizes: ``(1, h, w, 1)``: size of the window.
        strides: ``(1, h, w, 1)``: step of the window.
        rates: ``(1, h, w, 1)``: distance between window elements.
        padding: ``"valid"`` (no padding) or ``"same"`` (:math:`\lceil size / stride \rceil`
            positions).

    Inputs:
        - **input_x** (Tensor) - Shape :math:`(N, C, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, h \cdot w \cdot C, H_{out}, W_{out})`, the channels of the
        first window element first.

    Raises:
        DTypeError: if an argument is no tuple.
        ArgumentError: if an argument is out of range.
        ShapeError: if the input does not fit.

    Example:
        >>> ones = (1, 1, 1, 1)
        >>> nn.Unfold((1, 2, 2, 1), ones, ones)(ops.ones((1, 3, 4, 4))).shape
        (1, 12, 3, 3)
    """

    def __init__(
        self, ksizes: object, strides: PerAxis, rates: object, padding: str = "valid"
    ) -> None:
        super().__init__()
        for name, value in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if not isinstance(value, (tuple, list)):
                reject(DTypeError, "Unfold", f"{name} must be a tuple, not {type(value).__name__}")
            sizes = int_tuple("Unfold", name, value, 4)
            if sizes[0] != 1 or sizes[3] != 1:
                reject(ArgumentError, "Unfold", f"{name} must have the form (1, h, w, 1)",
                       f"{name}={value!r}")  # fmt: skip
            setattr(self, name, sizes[1:3])
        mode = padding.lower() if isinstance(padding, str) else padding
        self.padding = choice("Unfold", "padding", mode, ("same", "valid"))

    def construct(self, input_x: Tensor) -> Tensor:
        if input_x.ndim != 4:
            reject(ShapeError, "Unfold", f"the input must have 4 axes, not {input_x.ndim}",
                   f"input_x={input_x.aval}")  # fmt: skip
        (kh, kw), (sh, sw), (rh, rw) = self.ksizes, self.strides, self.rates
        (top, bottom), (left, right) = resolve_padding(
            self.padding, 0, input_x, self.ksizes, self.strides, self.rates, "unfold"
        )
        x = input_x
        if top or bottom or left or right:
            x = F.pad(x, (left, right, top, bottom))
        reach_h, reach_w = (kh - 1) * rh + 1, (kw - 1) * rw + 1
        if x.shape[2] < reach_h or x.shape[3] < reach_w:
            reject(ShapeError, "Unfold", f"a window of ({reach_h}, {reach_w}) does not fit",
                   f"input_x={input_x.aval}")  # fmt: skip
        out_h, out_w = (x.shape[2] - reach_h) // sh + 1, (x.shape[3] - reach_w) // sw + 1
        taps = [
            x[:, :, i * rh : i * rh + (out_h - 1) * sh + 1 : sh,
              j * rw : j * rw + (out_w - 1) * sw + 1 : sw]
            for i in range(kh) for j in range(kw)
        ]  # fmt: skip
        return F.concat(taps, 1)


class CentralCrop(Cell):
    r"""Cuts the central part out of images.

    Args:
        central_fraction: Share of height and width that is kept, in (0, 1].

    Inputs:
        - **image** (Tensor) - Shape :math:`(C, H, W)` or :math:`(N, C, H, W)`.

    Outputs:
        Tensor with the central rows and columns.

    Raises:
        ArgumentError: if the fraction is out of range.
        ShapeError: if the input has another number of axes.

    Example:
        >>> nn.CentralCrop(0.5)(ops.ones((1, 4, 4))).shape
        (1, 2, 2)
    """

    def __init__(self, central_fraction: float) -> None:
        super().__init__()
        self.central_fraction = real("CentralCrop", "central_fraction", central_fraction, 0, 1,
                                     "(]")  # fmt: skip

    def construct(self, image: Tensor) -> Tensor:
        if image.ndim not in (3, 4):
            reject(ShapeError, "CentralCrop", f"the image must have 3 or 4 axes, not {image.ndim}",
                   f"image={image.aval}")  # fmt: skip
        h, w = image.shape[-2:]
        top = int((h - h * self.central_fraction) / 2)
        left = int((w - w * self.central_fraction) / 2)
        return image[..., top : h - top, left : w - left]


class PSNR(Cell):
    r"""Peak signal-to-noise ratio: :math:`10 \log_{10}(max^2 / MSE)` of every image.

    Args:
        max_val: The largest value a pixel can have.

    Inputs:
        - **img1** (Tensor) - Shape :math:`(N, C, H, W)`.
        - **img2** (Tensor) - The same shape.

    Outputs:
        Tensor of shape :math:`(N,)`.

    Raises:
        ArgumentError: if ``max_val`` is not positive.
        ShapeError: if the shapes differ.

    Example:
        >>> nn.PSNR()(ops.ones((2, 1, 2, 2)), ops.zeros((2, 1, 2, 2))).asnumpy().tolist()
        [0.0, 0.0]
    """

    def __init__(self, max_val: float = 1.0) -> None:
        super().__init__()
        self.max_val = real("PSNR", "max_val", max_val, 0, bounds="(]")

    def construct(self, img1: Tensor, img2: Tensor) -> Tensor:
        same_images("PSNR", img1, img2)
        error = F.mean(F.square(img1 - img2), (1, 2, 3))
        return 10.0 / math.log(10.0) * F.log(self.max_val * self.max_val / error)


# ---- structural similarity of images -------------------------------------------------------------


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
                   "and high", f"{x.aval}", "use a smaller filter_size")  # fmt: skip
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


__all__ = [
    "MSSSIM", "PSNR", "SSIM", "CentralCrop", "ChannelShuffle", "PixelShuffle", "PixelUnshuffle",
    "ResizeBilinear", "Unfold", "Upsample",
]  # fmt: skip
