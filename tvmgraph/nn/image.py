"""Layers that rearrange and resize images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

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
                   f"input_x={input_x.type}")  # fmt: skip
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
                   f"input_x={input_x.type}")  # fmt: skip
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
                   f"image={image.type}")  # fmt: skip
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


__all__ = [
    "PSNR", "CentralCrop", "ChannelShuffle", "PixelShuffle", "PixelUnshuffle",
    "ResizeBilinear", "Unfold", "Upsample",
]  # fmt: skip
