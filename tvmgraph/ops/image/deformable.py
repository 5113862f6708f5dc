"""Convolutions that read their input at places of their own: offsets say where."""

from __future__ import annotations

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import bad, describe

__all__ = ["deformable_conv2d"]


def deformable_offsets(
    x: Tensor, offsets: Tensor, strides: tuple[int, ...], pads: tuple[int, ...],
    ksize: tuple[int, ...], dilations: tuple[int, ...] = (1, 1, 1, 1), deformable_groups: int = 1,
    modulated: bool = True,
) -> Tensor:  # fmt: skip
    """Returns the elements that every window of a convolution reads, window beside window.

    Args:
        x: Images (N, C, H, W).
        offsets: (N, 3 G kh kw, OH, OW): how far to the right and down of its place in the window
            each element is read, between the pixels, and what it is multiplied by.
        strides: Of the windows, over all four axes.
        pads: Zeros above, below, left and right.
        ksize: Sizes kh and kw of the window.
        dilations: Distances within the window, over all four axes.
        deformable_groups: Number G of groups of channels with offsets of their own.
        modulated: Must be true, as in MindSpore.

    Returns:
        Tensor (N, C, OH kh, OW kw).

    Raises:
        ShapeError: if the offsets do not fit the windows.
        ArgumentError: if ``modulated`` is false.
    """
    if not modulated:
        raise bad(ArgumentError, "modulated must be True", "deformable_conv2d", "modulated=False")
    n, c, height, width = x.shape
    (kh, kw), groups = ksize, deformable_groups
    top, bottom, left, right = pads
    rows = (height + top + bottom - (kh - 1) * dilations[2] - 1) // strides[2] + 1
    columns = (width + left + right - (kw - 1) * dilations[3] - 1) // strides[3] + 1
    if tuple(offsets.shape) != (n, 3 * groups * kh * kw, rows, columns) or c % groups:
        raise bad(
            ShapeError, f"offsets must be [{n}, {3 * groups * kh * kw}, {rows}, {columns}]",
            "deformable_conv2d", describe(x=x, offsets=offsets),
        )  # fmt: skip
    parts = F.reshape(offsets, (n, 3, groups, kh, kw, rows, columns))
    y = np.arange(rows) * strides[2] - top + np.arange(kh)[:, None, None, None] * dilations[2]
    y = np.moveaxis(np.broadcast_to(y, (kh, 1, 1, rows)), -1, 2)
    z = np.arange(columns) * strides[3] - left + np.arange(kw)[:, None, None] * dilations[3]
    kind = x.dtype.numpy
    across, down = parts[:, 0] + Tensor(z.astype(kind)), parts[:, 1] + Tensor(y.astype(kind))
    images = F.reshape(x, (n, groups, c // groups, height * width))
    read = _between(images, down, across, height, width) * F.expand_dims(parts[:, 2], 2)
    read = F.reshape(read, (n, c, kh, kw, rows, columns))
    return F.reshape(F.permute(read, (0, 1, 4, 2, 5, 3)), (n, c, rows * kh, columns * kw))


def _between(images: Tensor, y: Tensor, x: Tensor, height: int, width: int) -> Tensor:
    """Returns the bilinear mean of the four pixels around places; outside there are zeros."""
    y0, x0 = F.floor(y), F.floor(x)
    total = None
    for dy in (0, 1):
        for dx in (0, 1):
            row, column = y0 + dy, x0 + dx
            weight = (1 - F.abs(y - row)) * (1 - F.abs(x - column))
            inside = F.logical_and(
                F.logical_and(row >= 0, row < height), F.logical_and(column >= 0, column < width)
            )
            place = F.clamp(row, 0, height - 1) * width + F.clamp(column, 0, width - 1)
            n, groups = place.shape[:2]
            flat = F.reshape(F.cast(place, "int64"), (n, groups, 1, -1))
            flat = F.broadcast_to(flat, (n, groups, images.shape[2], flat.shape[-1]))
            found = F.reshape(
                F.gather_elements(images, 3, flat), (n, groups, images.shape[2], *place.shape[2:])
            )
            weight = F.where(inside, weight, F.zeros_like(weight))
            part = found * F.expand_dims(weight, 2)
            total = part if total is None else total + part
    assert total is not None
    return total


def deformable_conv2d(
    x: Tensor, weight: Tensor, offsets: Tensor, kernel_size: tuple[int, int],
    strides: tuple[int, ...], padding: tuple[int, ...], bias: Tensor | None = None,
    dilations: tuple[int, ...] = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1,
    modulated: bool = True,
) -> Tensor:  # fmt: skip
    r"""Convolution whose windows read between the pixels, where offsets say.

    .. math::
        y(p) = \sum_k w_k \, x(p + p_k + \Delta p_k) \, \Delta m_k

    Args:
        x: Images :math:`(N, C_{in}, H, W)`.
        weight: :math:`(C_{out}, C_{in} / groups, k_h, k_w)`.
        offsets: :math:`(N, 3 G k_h k_w, H_{out}, W_{out})`: for every element of the window how
            far right and how far down it is read, and its factor :math:`\Delta m`.
        kernel_size: :math:`k_h` and :math:`k_w`.
        strides: Of the windows, over all four axes.
        padding: Zeros above, below, left and right.
        bias: Added to every channel of the result.
        dilations: Distances within the window, over all four axes.
        groups: Groups of channels of the convolution.
        deformable_groups: Number :math:`G` of groups of channels with offsets of their own.
        modulated: Must be true.

    Returns:
        Tensor :math:`(N, C_{out}, H_{out}, W_{out})`.

    Raises:
        ShapeError: if the offsets do not fit the windows.
        ArgumentError: if ``modulated`` is false.

    Example:
        >>> ops.deformable_conv2d(ops.ones((1, 1, 3, 3)), ops.ones((1, 1, 2, 2)),
        ...     ops.ones((1, 12, 2, 2)), (2, 2), (1, 1, 1, 1), (0, 0, 0, 0))
        Tensor(shape=[1, 1, 2, 2], dtype=Float32, value=
        [[[[ 4.00000000e+00,  2.00000000e+00],
           [ 2.00000000e+00,  1.00000000e+00]]]])
    """
    read = deformable_offsets(
        x, offsets, strides, padding, kernel_size, dilations, deformable_groups, modulated
    )
    y = F.conv2d(read, weight, stride=tuple(kernel_size), groups=groups)
    return y if bias is None else y + F.reshape(bias, (1, -1, 1, 1))
