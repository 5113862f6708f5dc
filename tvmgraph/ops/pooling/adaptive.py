"""Pooling to a given output size."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, TypeOrValueError, either
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.common.window import Ints, spatial_of
from tvmgraph.ops.pooling.functions import batched, unbatched

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d",
]  # fmt: skip


def _sizes(value: Any, spatial: Ints, op: str) -> Ints:
    """Returns the output sizes; ``None`` keeps the size of an axis."""
    count = len(spatial)
    items = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    require(len(items) == count, f"output_size must have {count} entries", op,
            either(ArgumentError, TypeError), output_size=value)  # fmt: skip
    sizes = tuple(n if v is None else v for v, n in zip(items, spatial))
    if any(isinstance(v, bool) or not hasattr(v, "__index__") for v in sizes):
        raise bad(TypeOrValueError, f"output_size must be an int, None or {count} of them", op,
                   f"output_size={value!r}")  # fmt: skip
    if any(v < 1 for v in sizes):
        raise bad(ArgumentError, "output_size must be positive", op, f"output_size={value!r}")
    return tuple(int(v) for v in sizes)


def _uniform(spatial: Ints, out: Ints) -> dict[str, object] | None:
    """The windows of an ordinary pooling, where all of them have the same size."""
    if any(n % o for n, o in zip(spatial, out)):
        return None
    kernel = tuple(n // o for n, o in zip(spatial, out))
    return {"kernel": kernel, "stride": kernel, "padding": ((0, 0),) * len(out)}


def _average(input: Tensor, output_size: object, count: int, op: str) -> Tensor:
    x, added = batched(input, count, op)
    spatial = spatial_of(x, count, op)
    out = _sizes(output_size, spatial, op)
    windows = _uniform(spatial, out)
    if prod(out) == 1:
        y = F.reduce_mean(x, axis=tuple(range(2, x.ndim)), keep_dims=True)
    elif windows:
        y = F.avg_pool(x, counted=((0, 0),) * count, divisor=0, **windows)
    else:
        y = x
        for i, (n, o) in enumerate(zip(spatial, out), start=2):
            if n != o:
                y = F.resample(y, axis=i, size=o, mode="mean", align_corners=False, scale=0.0,
                               transposed=False)  # fmt: skip
    return unbatched(y, added)


def _window_table(size: int, out: int) -> np.ndarray:
    """Positions ``[out, taps]`` of every window's elements; short windows repeat their first."""
    i = np.arange(out)
    start, stop = i * size // out, -(-(i + 1) * size // out)
    index = start[:, None] + np.arange(int((stop - start).max()))
    return np.where(index < stop[:, None], index, start[:, None])


def _windows(x: Tensor, tables: list[np.ndarray]) -> Tensor:
    """Copies all windows: ``[N, C, *spatial]`` to ``[N, C, points, taps]``."""
    count = len(tables)
    for axis, table in enumerate(tables, start=2):
        x = F.gather(x, Tensor(table.reshape(-1), dtypes.int64), axis)
    split = [size for table in tables for size in table.shape]
    x = F.reshape(x, (*x.aval.shape[:2], *split))
    order = (0, 1, *range(2, 2 + 2 * count, 2), *range(3, 3 + 2 * count, 2))
    x = F.transpose(x, order)
    points, taps = prod(t.shape[0] for t in tables), prod(t.shape[1] for t in tables)
    return F.reshape(x, (*x.aval.shape[:2], points, taps))


def _axis_maximum(x: Tensor, axis: int, table: np.ndarray) -> Tensor:
    """The largest elements of windows along one spatial axis."""
    x = F.gather(x, Tensor(table.reshape(-1), dtypes.int64), 2 + axis)
    kernel = tuple(table.shape[1] if i == axis else 1 for i in range(x.ndim - 2))
    whole = (1,) * len(kernel)
    return F.max_pool(
        x, kernel=kernel, stride=kernel, padding=((0, 0),) * len(kernel), dilation=whole
    )


def _maximum(
    input: Tensor, output_size: object, count: int, op: str, indices: bool
) -> tuple[Tensor, Tensor | None]:
    x, added = batched(input, count, op)
    spatial = spatial_of(x, count, op)
    out = _sizes(output_size, spatial, op)
    uniform = _uniform(spatial, out)
    if uniform:
        uniform |= {"dilation": (1,) * count}
        y = F.max_pool(x, **uniform)
        index = F.max_pool_index(x, **uniform) if indices else None
    elif not indices:
        y, index = x, None
        for axis in reversed(range(count)):  # of equal elements the first row's stays the largest
            y = _axis_maximum(y, axis, _window_table(spatial[axis], out[axis]))
    else:
        tables = [_window_table(n, o) for n, o in zip(spatial, out)]
        windows = _windows(x, tables)
        best = F.expand_dims(F.argmax(windows, -1), -1)
        shape = (*x.aval.shape[:2], *out)
        y = F.reshape(F.gather_elements(windows, 3, best), shape)
        places = Tensor(np.arange(prod(spatial)).reshape(1, 1, *spatial), dtypes.int64)
        places = F.broadcast_to(_windows(places, tables), windows.aval.shape)
        index = F.reshape(F.gather_elements(places, 3, best), shape)
    return unbatched(y, added), None if index is None else unbatched(index, added)


def adaptive_avg_pool1d(input: Tensor, output_size: int) -> Tensor:
    r"""Mean over ``output_size`` windows that cover the axis evenly.

    Args:
        input: Tensor of shape :math:`(N, C, L)` or :math:`(C, L)`, a float dtype.
        output_size: Number of windows.

    Returns:
        Tensor with ``output_size`` elements along the last axis; window :math:`i` reaches from
        :math:`\lfloor i L / out \rfloor` to :math:`\lceil (i + 1) L / out \rceil`.

    Raises:
        ShapeError: if the number of axes does not fit.
        ArgumentError: if ``output_size`` is not positive.

    Example:
        >>> ops.adaptive_avg_pool1d(Tensor([[[1.0, 2.0, 3.0]]]), 2)
        Tensor(shape=[1, 1, 2], dtype=Float32, value=
        [[[ 1.50000000e+00,  2.50000000e+00]]])
    """
    return _average(input, output_size, 1, "adaptive_avg_pool1d")


def adaptive_avg_pool2d(input: Tensor, output_size: object) -> Tensor:
    r"""Mean over windows that cover the image evenly.

    Args:
        input: Tensor of shape :math:`(N, C, H, W)` or :math:`(C, H, W)`, a float dtype.
        output_size: Number of windows: an int or ``(h, w)``; ``None`` keeps the size of an axis.

    Returns:
        Tensor of shape :math:`(N, C, *output\_size)`.

    Raises:
        ShapeError: if the number of axes does not fit.
        ArgumentError: if ``output_size`` is not positive.

    Example:
        >>> ops.adaptive_avg_pool2d(ops.ones((1, 3, 7, 7)), (1, None)).shape
        (1, 3, 1, 7)
    """
    return _average(input, output_size, 2, "adaptive_avg_pool2d")


def adaptive_avg_pool3d(input: Tensor, output_size: object) -> Tensor:
    r"""Mean over windows that cover the volume evenly.

    Args:
        input: Tensor of shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`, a float dtype.
        output_size: Number of windows: an int or ``(d, h, w)``; ``None`` keeps the size of an axis.

    Returns:
        Tensor of shape :math:`(N, C, *output\_size)`.

    Raises:
        ShapeError: if the number of axes does not fit.
        ArgumentError: if ``output_size`` is not positive.

    Example:
        >>> ops.adaptive_avg_pool3d(ops.ones((1, 3, 4, 4, 4)), 2).shape
        (1, 3, 2, 2, 2)
    """
    return _average(input, output_size, 3, "adaptive_avg_pool3d")


def adaptive_max_pool1d(input: Tensor, output_size: int, return_indices: bool = False) -> Any:
    r"""Maximum over ``output_size`` windows that cover the axis evenly.

    Args:
        input: Tensor of shape :math:`(N, C, L)` or :math:`(C, L)`, a float dtype.
        output_size: Number of windows.
        return_indices: Whether the int64 positions are returned too.

    Returns:
        Tensor with ``output_size`` elements along the last axis.

    Raises:
        ShapeError: if the number of axes does not fit.
        ArgumentError: if ``output_size`` is not positive.

    Example:
        >>> ops.adaptive_max_pool1d(Tensor([[[1.0, 2.0, 3.0]]]), 2)
        Tensor(shape=[1, 1, 2], dtype=Float32, value=
        [[[ 2.00000000e+00,  3.00000000e+00]]])
    """
    found = _maximum(input, output_size, 1, "adaptive_max_pool1d", return_indices)
    return found if return_indices else found[0]


def adaptive_max_pool2d(
    input: Tensor, output_size: object, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor | None]:
    r"""Maximum over windows that cover the image evenly.

    Args:
        input: Tensor of shape :math:`(N, C, H, W)` or :math:`(C, H, W)`, a float dtype.
        output_size: Number of windows: an int or ``(h, w)``; ``None`` keeps the size of an axis.
        return_indices: Whether the int64 positions are returned too.

    Returns:
        Tensor of shape :math:`(N, C, *output\_size)`, with ``return_indices`` followed by the
        positions, counted through :math:`H \times W`.

    Raises:
        ShapeError: if the number of axes does not fit.
        ArgumentError: if ``output_size`` is not positive.

    Example:
        >>> ops.adaptive_max_pool2d(ops.ones((1, 3, 7, 7)), 3).shape
        (1, 3, 3, 3)
    """
    y, index = _maximum(input, output_size, 2, "adaptive_max_pool2d", return_indices)
    return y if index is None else (y, index)


def adaptive_max_pool3d(
    input: Tensor, output_size: object, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Maximum over windows that cover the volume evenly.

    Args:
        input: Tensor of shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`, a float dtype.
        output_size: Number of windows: an int or ``(d, h, w)``; ``None`` keeps the size of an axis.
        return_indices: Whether the int32 positions are returned too.

    Returns:
        Tensor of shape :math:`(N, C, *output\_size)`, with ``return_indices`` followed by the
        positions, counted through :math:`D \times H \times W`.

    Raises:
        ShapeError: if the number of axes does not fit.
        ArgumentError: if ``output_size`` is not positive.

    Example:
        >>> ops.adaptive_max_pool3d(ops.ones((1, 3, 4, 4, 4)), 3).shape
        (1, 3, 3, 3, 3)
    """
    y, index = _maximum(input, output_size, 3, "adaptive_max_pool3d", return_indices)
    return y if index is None else (y, F.cast(index, dtypes.int32))
