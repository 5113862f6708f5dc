"""Undoing a maximum pooling: the maxima go back to their positions."""

from __future__ import annotations

from math import prod
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.common.window import Ints, ints, spatial_of
from tvmgraph.ops.pooling.functions import batched, unbatched

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


def _output_sizes(
    spatial: Ints, kernel: Ints, stride: Ints, padding: Ints, output_size: Any, op: str
) -> Ints:
    sizes = tuple((n - 1) * s - 2 * p + k for n, k, s, p in zip(spatial, kernel, stride, padding))
    if not output_size:
        return sizes
    wanted = tuple(int(v) for v in output_size)[-len(sizes) :]
    if len(wanted) != len(sizes) or any(abs(w - n) >= s for w, n, s in zip(wanted, sizes, stride)):
        raise bad(
            ArgumentError, f"output_size must be within one stride of {sizes}", op,
            f"output_size={output_size}",
        )  # fmt: skip
    return wanted


def _unpool(
    op: str,
    x: Tensor,
    indices: Tensor,
    count: int,
    kernel_size: PerAxis,
    stride: PerAxis | None,
    padding: object,
    output_size: object,
) -> Tensor:
    kernel = ints(kernel_size, count, "kernel_size", op)
    unset = stride in (None, 0, (0,))
    steps = kernel if unset else ints(stride, count, "stride", op)
    pads = ints(padding, count, "padding", op, 0)
    if not indices.dtype.is_integer:
        raise bad(DTypeError, "indices must have an integer dtype", op, f"indices={indices.aval}")
    require(indices.aval.shape == x.aval.shape, "x and indices must have the same shape", op, x=x,
            indices=indices)  # fmt: skip
    x, added = batched(x, count, op)
    spatial = spatial_of(x, count, op)
    out = _output_sizes(spatial, kernel, steps, pads, output_size, op)
    lead = x.aval.shape[:2]
    at = F.cast(F.reshape(indices, (*lead, prod(spatial))), dtypes.int64)
    values = F.reshape(x, (*lead, prod(spatial)))
    empty = F.broadcast_to(F.full((1, 1, prod(out)), 0, dtype=x.dtype), (*lead, prod(out)))
    y = F.tensor_scatter_elements(empty, at, values, 2)
    return unbatched(F.reshape(y, (*lead, *out)), added)


def max_unpool1d(
    x: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    output_size: object = None,
) -> Tensor:
    r"""Puts the maxima of :func:`max_pool1d` back; everything else is zero.

    Args:
        x: Maxima of shape :math:`(N, C, L)` or :math:`(C, L)`.
        indices: Their positions, of the same shape, an integer dtype.
        kernel_size: Window size of the pooling.
        stride: Step of its window; ``None`` for the window size.
        padding: Its padding.
        output_size: Shape or length of the result where the pooling left elements out.

    Returns:
        Tensor of length :math:`(L - 1) \cdot stride - 2 \cdot padding + kernel\_size`, or
        ``output_size``.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if ``output_size`` does not belong to such a pooling.
        OutOfRangeError: if a position lies outside the result (eagerly).

    Example:
        >>> ops.max_unpool1d(Tensor([[[2.0, 4.0]]]), Tensor([[[1, 3]]]), 2)
        Tensor(shape=[1, 1, 4], dtype=Float32, value=
        [[[ 0.00000000e+00,  2.00000000e+00,  0.00000000e+00,  4.00000000e+00]]])
    """
    return _unpool("max_unpool1d", x, indices, 1, kernel_size, stride, padding, output_size)


def max_unpool2d(
    x: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    output_size: object = None,
) -> Tensor:
    r"""Puts the maxima of :func:`max_pool2d` back; everything else is zero.

    Args:
        x: Maxima of shape :math:`(N, C, H, W)` or :math:`(C, H, W)`.
        indices: Their positions through :math:`H \times W`, of the same shape, an integer dtype.
        kernel_size: Window size of the pooling.
        stride: Step of its window; ``None`` for the window size.
        padding: Its padding.
        output_size: Shape or spatial sizes of the result where the pooling left elements out.

    Returns:
        Tensor whose spatial axes have :math:`(size - 1) \cdot stride - 2 \cdot padding +
        kernel\_size` elements, or ``output_size``.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if ``output_size`` does not belong to such a pooling.
        OutOfRangeError: if a position lies outside the result (eagerly).

    Example:
        >>> ops.max_unpool2d(Tensor([[[[4.0]]]]), Tensor([[[[3]]]]), 2)
        Tensor(shape=[1, 1, 2, 2], dtype=Float32, value=
        [[[[ 0.00000000e+00,  0.00000000e+00],
           [ 0.00000000e+00,  4.00000000e+00]]]])
    """
    return _unpool("max_unpool2d", x, indices, 2, kernel_size, stride, padding, output_size)


def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    output_size: object = None,
) -> Tensor:
    r"""Puts the maxima of :func:`max_pool3d` back; everything else is zero.

    Args:
        x: Maxima of shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`.
        indices: Their positions through :math:`D \times H \times W`, of the same shape, an integer
            dtype.
        kernel_size: Window size of the pooling.
        stride: Step of its window; ``None`` for the window size.
        padding: Its padding.
        output_size: Shape or spatial sizes of the result where the pooling left elements out.

    Returns:
        Tensor whose spatial axes have :math:`(size - 1) \cdot stride - 2 \cdot padding +
        kernel\_size` elements, or ``output_size``.

    Raises:
        ShapeError: if the shapes differ.
        ArgumentError: if ``output_size`` does not belong to such a pooling.
        OutOfRangeError: if a position lies outside the result (eagerly).

    Example:
        >>> ops.max_unpool3d(ops.ones((1, 1, 1, 1, 1)), Tensor([[[[[5]]]]]), 2).shape
        (1, 1, 2, 2, 2)
    """
    return _unpool("max_unpool3d", x, indices, 3, kernel_size, stride, padding, output_size)
