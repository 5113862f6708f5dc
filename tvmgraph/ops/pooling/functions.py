"""MindSpore's pooling functions, on top of the pooling rows.

Unpooling undoes a maximum pooling: the maxima go back to their positions.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.common.window import (
    Ints,
    ceil_padding,
    ints,
    resolve_padding,
    spatial_of,
)

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "avg_pooling", "lp_pool1d", "lp_pool2d", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_pooling", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def batched(x: Tensor, count: int, op: str) -> tuple[Tensor, bool]:
    """Adds the batch axis that an input of ``count + 1`` axes leaves out.

    Args:
        x: The input.
        count: Number of spatial axes.
        op: Name of the function, for errors.

    Returns:
        The tensor of ``count + 2`` axes, and whether the axis was added.

    Raises:
        ShapeError: if the input has another number of axes.
    """
    if x.ndim == count + 1:
        return F.expand_dims(x, 0), True
    require(x.ndim == count + 2,
            f"input must have {count + 2} axes, or {count + 1} without a batch", op,
            input=x)  # fmt: skip
    return x, False


def unbatched(y: Tensor, added: bool) -> Tensor:
    """Drops the batch axis again where :func:`batched` added it.

    Args:
        y: The result of ``count + 2`` axes.
        added: What :func:`batched` returned.
    """
    return F.squeeze(y, 0) if added else y


def _stride(stride: PerAxis, kernel: Ints, op: str) -> Ints:
    return kernel if stride is None else ints(stride, len(kernel), "stride", op)


# ---- maximum ----------------------------------------------------------------------------------


def _max(
    op: str,
    x: Tensor,
    count: int,
    kernel_size: PerAxis,
    stride: Any,
    pad_mode: str,
    padding: object,
    dilation: PerAxis,
    return_indices: bool,
    ceil_mode: bool,
) -> Any:
    kernel = ints(kernel_size, count, "kernel_size", op)
    steps, gaps = _stride(stride, kernel, op), ints(dilation, count, "dilation", op)
    x, added = batched(x, count, op)
    pads = resolve_padding(pad_mode, padding, x, kernel, steps, gaps, op)
    for k, (lo, hi) in zip(kernel, pads):
        if pad_mode == "pad" and 2 * max(lo, hi) > k:
            raise bad(
                ArgumentError, f"padding {max(lo, hi)} is more than half of kernel_size {k}", op,
                f"padding={padding}, kernel_size={kernel_size}", "use less padding",
            )  # fmt: skip
    if ceil_mode:
        pads = ceil_padding(spatial_of(x, count, op), kernel, steps, pads, gaps)
    attrs = {"kernel": kernel, "stride": steps, "padding": pads, "dilation": gaps}
    y = unbatched(F.max_pool(x, **attrs), added)
    return (y, unbatched(F.max_pool_index(x, **attrs), added)) if return_indices else y


def max_pooling(
    x: Tensor,
    spatial: int,
    kernel_size: PerAxis = 1,
    stride: PerAxis = 1,
    pad_mode: str = "valid",
    padding: object = 0,
    dilation: PerAxis = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor] | Tensor:
    r"""Maximum pooling with MindSpore's pad modes: what the pooling layers compute.

    Args:
        x: Tensor of shape :math:`(N, C, *)` or :math:`(C, *)` with ``spatial`` more axes.
        spatial: Number of spatial axes: 1, 2 or 3.
        kernel_size: Window size: an int or one per axis.
        stride: Step of the window; ``None`` for the window size.
        pad_mode: ``"valid"``, ``"same"`` (:math:`\lceil size / stride \rceil` outputs) or
            ``"pad"``.
        padding: An int, one per axis, or ``(before, after)`` for each axis; only for ``"pad"``.
        dilation: Distance between window elements.
        return_indices: Whether the positions are returned too.
        ceil_mode: Whether a partial last window counts.

    Returns:
        Tensor of the maxima, with ``return_indices`` followed by the int64 positions.

    Raises:
        ShapeError: if a window does not fit.
        ArgumentError: if ``pad_mode`` is unknown or a padding exceeds half a window.

    Example:
        >>> ops.max_pooling(ops.ones((1, 3, 5, 5)), 2, 3, 2, "same").shape
        (1, 3, 3, 3)
    """
    return _max("max_pooling", x, spatial, kernel_size, stride, pad_mode, padding, dilation,
                return_indices, ceil_mode)  # fmt: skip


def max_pool1d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    dilation: PerAxis = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor] | Tensor:
    r"""Largest element of every window of a sequence.

    Args:
        x: Tensor of shape :math:`(N, C, L)` or :math:`(C, L)`.
        kernel_size: Window size.
        stride: Step of the window; ``None`` for the window size.
        padding: Padding of both sides, at most half a window; it never wins.
        dilation: Distance between window elements.
        return_indices: Whether the positions are returned too.
        ceil_mode: Whether a partial last window counts.

    Returns:
        Tensor of shape :math:`(N, C, L_{out})`, with ``return_indices`` followed by the int64
        positions.

    Raises:
        ShapeError: if a window does not fit.
        ArgumentError: if the padding exceeds half a window.

    Example:
        >>> ops.max_pool1d(Tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
        Tensor(shape=[1, 1, 2], dtype=Float32, value=
        [[[ 3.00000000e+00,  2.00000000e+00]]])
    """
    return _max("max_pool1d", x, 1, kernel_size, stride, "pad", padding, dilation, return_indices,
                ceil_mode)  # fmt: skip


def max_pool2d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    dilation: PerAxis = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor] | Tensor:
    r"""Largest element of every window of an image.

    Args:
        x: Tensor of shape :math:`(N, C, H, W)` or :math:`(C, H, W)`, a number dtype.
        kernel_size: Window size: an int or ``(h, w)``.
        stride: Step of the window; ``None`` for the window size.
        padding: Padding of both sides, at most half a window; it never wins.
        dilation: Distance between window elements.
        return_indices: Whether the positions are returned too.
        ceil_mode: Whether a partial last window counts.

    Returns:
        Tensor of shape :math:`(N, C, H_{out}, W_{out})`, with ``return_indices`` followed by the
        int64 positions, counted through :math:`H \times W`.

    Raises:
        ShapeError: if a window does not fit.
        ArgumentError: if the padding exceeds half a window.

    Example:
        >>> ops.max_pool2d(ops.ones((1, 3, 4, 4)), 2).shape
        (1, 3, 2, 2)
    """
    return _max("max_pool2d", x, 2, kernel_size, stride, "pad", padding, dilation, return_indices,
                ceil_mode)  # fmt: skip


def max_pool3d(
    x: Tensor,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    padding: object = 0,
    dilation: PerAxis = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor] | Tensor:
    r"""Largest element of every window of a volume.

    Args:
        x: Tensor of shape :math:`(N, C, D, H, W)` or :math:`(C, D, H, W)`, a number dtype.
        kernel_size: Window size: an int or ``(d, h, w)``.
        stride: Step of the window; ``None`` for the window size.
        padding: Padding of both sides, at most half a window; it never wins.
        dilation: Distance between window elements.
        ceil_mode: Whether a partial last window counts.
        return_indices: Whether the positions are returned too.

    Returns:
        Tensor of shape :math:`(N, C, D_{out}, H_{out}, W_{out})`, with ``return_indices`` followed
        by the int64 positions.

    Raises:
        ShapeError: if a window does not fit.
        ArgumentError: if the padding exceeds half a window.

    Example:
        >>> ops.max_pool3d(ops.ones((1, 3, 4, 4, 4)), 2).shape
        (1, 3, 2, 2, 2)
    """
    return _max("max_pool3d", x, 3, kernel_size, stride, "pad", padding, dilation, return_indices,
                ceil_mode)  # fmt: skip


# ---- average ----------------------------------------------------------------------------------


def _avg(
    op: str,
    x: Tensor,
    count: int,
    kernel_size: PerAxis,
    stride: PerAxis,
    pad_mode: str,
    padding: object,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    kernel, ones = ints(kernel_size, count, "kernel_size", op), (1,) * count
    steps = _stride(stride, kernel, op)
    x, added = batched(x, count, op)
    pads = resolve_padding(pad_mode, padding, x, kernel, steps, ones, op)
    include = count_include_pad and str(pad_mode).lower() != "same"
    counted = pads if include else ((0, 0),) * count
    if ceil_mode:
        pads = ceil_padding(spatial_of(x, count, op), kernel, steps, pads, ones)
    y = F.avg_pool(x, kernel=kernel, stride=steps, padding=pads, counted=counted,
                   divisor=divisor_override or 0)  # fmt: skip
    return unbatched(y, added)


def avg_pooling(
    x: Tensor, spatial: int, kernel_size: PerAxis = 1, stride: PerAxis = 1, pad_mode: str = "valid",
    padding: object = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    r"""Average pooling with MindSpore's pad modes: what the pooling layers compute.

    Args:
        x: Tensor of shape :math:`(N, C, *)` or :math:`(C, *)` with ``spatial`` more axes.
        spatial: Number of spatial axes: 1, 2 or 3.
        kernel_size: Window size: an int or one per axis.
        stride: Step of the window; ``None`` for the window size.
        pad_mode: ``"valid"``, ``"same"`` (the padding does not count as elements) or ``"pad"``.
        padding: An int, one per axis, or ``(before, after)`` for each axis; only for ``"pad"``.
        ceil_mode: Whether a partial last window counts.
        count_include_pad: Whether ``padding`` counts as elements of the mean.
        divisor_override: What sums are divided by instead of the number of elements.

    Returns:
        Tensor of the means.

    Raises:
        ShapeError: if a window does not fit.
        ArgumentError: if ``pad_mode`` is unknown.

    Example:
        >>> ops.avg_pooling(ops.ones((1, 3, 5, 5)), 2, 3, 2, "same").shape
        (1, 3, 3, 3)
    """
    return _avg("avg_pooling", x, spatial, kernel_size, stride, pad_mode, padding, ceil_mode,
                count_include_pad, divisor_override)  # fmt: skip


def avg_pool1d(
    input_x: Tensor, kernel_size: int = 1, stride: PerAxis = 1, padding: object = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    r"""Mean of every window of a sequence.

    Args:
        input_x: Tensor of shape :math:`(N, C, L)`, a float dtype.
        kernel_size: Window size.
        stride: Step of the window.
        padding: Zeros on both sides.
        ceil_mode: Whether a partial last window counts.
        count_include_pad: Whether the padding counts as elements of the mean.

    Returns:
        Tensor of shape :math:`(N, C, L_{out})`.

    Raises:
        ShapeError: if a window does not fit.

    Example:
        >>> ops.avg_pool1d(Tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2, 2)
        Tensor(shape=[1, 1, 2], dtype=Float32, value=
        [[[ 2.00000000e+00,  1.00000000e+00]]])
    """
    return _avg("avg_pool1d", input_x, 1, kernel_size, stride, "pad", padding, ceil_mode,
                count_include_pad, 0)  # fmt: skip


def avg_pool2d(
    input_x: Tensor, kernel_size: PerAxis = 1, stride: PerAxis = 1, padding: object = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0,
) -> Tensor:  # fmt: skip
    r"""Mean of every window of an image.

    Args:
        input_x: Tensor of shape :math:`(N, C, H, W)`, a float dtype.
        kernel_size: Window size: an int or ``(h, w)``.
        stride: Step of the window: an int or ``(h, w)``.
        padding: Zeros: an int, ``(h, w)`` or ``(top, bottom, left, right)``.
        ceil_mode: Whether a partial last window counts.
        count_include_pad: Whether the padding counts as elements of the mean.
        divisor_override: What sums are divided by instead, unless 0.

    Returns:
        Tensor of shape :math:`(N, C, H_{out}, W_{out})`.

    Raises:
        ShapeError: if a window does not fit.

    Example:
        >>> ops.avg_pool2d(ops.ones((1, 3, 4, 4)), 2, 2).shape
        (1, 3, 2, 2)
    """
    return _avg("avg_pool2d", input_x, 2, kernel_size, stride, "pad", padding, ceil_mode,
                count_include_pad, divisor_override)  # fmt: skip


def avg_pool3d(
    input_x: Tensor, kernel_size: PerAxis = 1, stride: PerAxis = 1, padding: object = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int = 0,
) -> Tensor:  # fmt: skip
    r"""Mean of every window of a volume.

    Args:
        input_x: Tensor of shape :math:`(N, C, D, H, W)`, a float dtype.
        kernel_size: Window size: an int or ``(d, h, w)``.
        stride: Step of the window: an int or one per axis.
        padding: Zeros: an int, one per axis, or ``(before, after)`` for each axis.
        ceil_mode: Whether a partial last window counts.
        count_include_pad: Whether the padding counts as elements of the mean.
        divisor_override: What sums are divided by instead, unless 0.

    Returns:
        Tensor of shape :math:`(N, C, D_{out}, H_{out}, W_{out})`.

    Raises:
        ShapeError: if a window does not fit.

    Example:
        >>> ops.avg_pool3d(ops.ones((1, 3, 4, 4, 4)), 2, 2).shape
        (1, 3, 2, 2, 2)
    """
    return _avg("avg_pool3d", input_x, 3, kernel_size, stride, "pad", padding, ceil_mode,
                count_include_pad, divisor_override)  # fmt: skip


# ---- power average ----------------------------------------------------------------------------


def _lp(op: str, x: Tensor, count: int, norm_type: float, kernel_size: PerAxis, stride: Any,
        ceil_mode: bool) -> Tensor:  # fmt: skip
    require(norm_type != 0 and dtypes.is_number(norm_type),
            "norm_type must be a number other than 0", op, ArgumentError,
            norm_type=norm_type)  # fmt: skip
    kernel = ints(kernel_size, count, "kernel_size", op)
    steps = _stride(stride, kernel, op)
    if norm_type == float("inf"):
        return _max(op, x, count, kernel, steps, "pad", 0, 1, False, ceil_mode)
    x = x if x.dtype.kind in "fc" else F.cast(x, dtypes.float32)
    powers = x if norm_type == 1 else F.pow(x, norm_type)
    mean = _avg(op, powers, count, kernel, steps, "pad", 0, ceil_mode, True, 0)
    taps = 1
    for k in kernel:
        taps *= k
    total = mean * taps
    return total if norm_type == 1 else F.pow(total, 1.0 / norm_type)


def lp_pool1d(
    x: Tensor, norm_type: float, kernel_size: int, stride: int | None = None,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    r"""Power pooling of a sequence: :math:`y = (\sum_{x \in window} x^p)^{1/p}`.

    Args:
        x: Tensor of shape :math:`(N, C, L)` or :math:`(C, L)`, a float dtype.
        norm_type: The power :math:`p`; infinity gives the maximum.
        kernel_size: Window size.
        stride: Step of the window; ``None`` for the window size.
        ceil_mode: Whether a partial last window counts (scaled up to a full one).

    Returns:
        Tensor of shape :math:`(N, C, L_{out})` or :math:`(C, L_{out})`.

    Raises:
        ArgumentError: if ``norm_type`` is 0.
        ShapeError: if a window does not fit.

    Example:
        >>> ops.lp_pool1d(Tensor([[[3.0, 4.0]]]), 2, 2)
        Tensor(shape=[1, 1, 1], dtype=Float32, value=
        [[[ 5.00000000e+00]]])
    """
    return _lp("lp_pool1d", x, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    x: Tensor,
    norm_type: float,
    kernel_size: PerAxis,
    stride: PerAxis | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    r"""Power pooling of an image: :math:`y = (\sum_{x \in window} x^p)^{1/p}`.

    Args:
        x: Tensor of shape :math:`(N, C, H, W)`, a float dtype.
        norm_type: The power :math:`p`; infinity gives the maximum.
        kernel_size: Window size: an int or ``(h, w)``.
        stride: Step of the window; ``None`` for the window size.
        ceil_mode: Whether a partial last window counts (scaled up to a full one).

    Returns:
        Tensor of shape :math:`(N, C, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if ``norm_type`` is 0.
        ShapeError: if a window does not fit.

    Example:
        >>> ops.lp_pool2d(ops.ones((1, 1, 4, 4)), 2, 2).shape
        (1, 1, 2, 2)
    """
    return _lp("lp_pool2d", x, 2, norm_type, kernel_size, stride, ceil_mode)


# ---- putting maxima back ------------------------------------------------------------------------


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
