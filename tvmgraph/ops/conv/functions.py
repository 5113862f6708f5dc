"""MindSpore's convolution functions, on top of the convolution rows."""

from __future__ import annotations

from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.ops.common.arguments import bad, require
from tvmgraph.ops.common.window import Ints, Pairs, ints, padding_pairs, resolve_padding

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv3d_transpose", "conv_transpose2d", "deconvolution",
]  # fmt: skip


def _add_bias(y: Tensor, bias: Tensor | None, op: str) -> Tensor:
    if bias is None:
        return y
    if bias.ndim != 1 or bias.aval.shape[0] != y.aval.shape[1]:
        raise bad(ShapeError, f"bias must have shape ({y.shape[1]},)", op, f"bias={bias.aval}")
    return y + F.reshape(bias, (bias.shape[0], *(1,) * (y.ndim - 2)))


def _conv(
    op: str, count: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: PerAxis,
    pad_mode: str, padding: object, dilation: PerAxis, groups: int,
) -> Tensor:  # fmt: skip
    require(weight.ndim == count + 2, f"weight must have {count + 2} axes", op, weight=weight)
    steps = ints(stride, count, "stride", op)
    gaps = ints(dilation, count, "dilation", op)
    kernel = weight.shape[2:]
    pads = resolve_padding(pad_mode, padding, input, kernel, steps, gaps, op)
    (blocks,) = ints(groups, 1, "groups", op)
    y = F.convolution(input, weight, stride=steps, padding=pads, dilation=gaps, groups=blocks)
    return _add_bias(y, bias, op)


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
    pad_mode: str = "valid", padding: object = 0, dilation: PerAxis = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    r"""Convolves sequences: :math:`out_{n,o} = bias_o + \sum_c weight_{o,c} \star input_{n,c}`.

    Args:
        input: Tensor of shape :math:`(N, C_{in}, L)`, a float dtype.
        weight: Tensor of shape :math:`(C_{out}, C_{in} / groups, K)`.
        bias: Tensor of shape :math:`(C_{out},)`, or ``None``.
        stride: Step of the window.
        pad_mode: ``"valid"`` (no padding), ``"same"`` (:math:`\lceil L / stride \rceil` outputs) or
            ``"pad"`` (by ``padding``).
        padding: Zeros on both sides, or ``(left, right)``; only with ``pad_mode="pad"``.
        dilation: Distance between kernel taps.
        groups: Number of blocks into which the channels are split.

    Returns:
        Tensor of shape :math:`(N, C_{out}, L_{out})`.

    Raises:
        ShapeError: if channels or bias do not fit, or the kernel exceeds the padded input.
        ArgumentError: if ``pad_mode`` is unknown or contradicts ``padding``.

    Example:
        >>> ops.conv1d(ops.ones((1, 1, 4)), ops.ones((1, 1, 2)), stride=2)
        Tensor(shape=[1, 1, 2], dtype=Float32, value=
        [[[ 2.00000000e+00,  2.00000000e+00]]])
    """
    return _conv("conv1d", 1, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
    pad_mode: str = "valid", padding: object = 0, dilation: PerAxis = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    r"""Convolves images: :math:`out_{n,o} = bias_o + \sum_c weight_{o,c} \star input_{n,c}`.

    Args:
        input: Tensor of shape :math:`(N, C_{in}, H, W)`, a float dtype.
        weight: Tensor of shape :math:`(C_{out}, C_{in} / groups, K_h, K_w)`.
        bias: Tensor of shape :math:`(C_{out},)`, or ``None``.
        stride: Step of the window: an int or one per axis.
        pad_mode: ``"valid"`` (no padding), ``"same"`` (:math:`\lceil size / stride \rceil` outputs)
            or ``"pad"`` (by ``padding``).
        padding: An int, ``(h, w)`` or ``(top, bottom, left, right)``; only with
            ``pad_mode="pad"``.
        dilation: Distance between kernel taps: an int or one per axis.
        groups: Number of blocks into which the channels are split.

    Returns:
        Tensor of shape :math:`(N, C_{out}, H_{out}, W_{out})`.

    Raises:
        ShapeError: if channels or bias do not fit, or the kernel exceeds the padded input.
        ArgumentError: if ``pad_mode`` is unknown or contradicts ``padding``.

    Example:
        >>> ops.conv2d(ops.ones((1, 1, 4, 4)), ops.ones((2, 1, 3, 3)), pad_mode="same").shape
        (1, 2, 4, 4)
    """
    return _conv("conv2d", 2, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
    pad_mode: str = "valid", padding: object = 0, dilation: PerAxis = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    r"""Convolves volumes: :math:`out_{n,o} = bias_o + \sum_c weight_{o,c} \star input_{n,c}`.

    Args:
        input: Tensor of shape :math:`(N, C_{in}, D, H, W)`, a float dtype.
        weight: Tensor of shape :math:`(C_{out}, C_{in} / groups, K_d, K_h, K_w)`.
        bias: Tensor of shape :math:`(C_{out},)`, or ``None``.
        stride: Step of the window: an int or one per axis.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``, as in :func:`conv2d`.
        padding: An int, one per axis, or ``(before, after)`` for each axis; only with
            ``pad_mode="pad"``.
        dilation: Distance between kernel taps: an int or one per axis.
        groups: Number of blocks into which the channels are split.

    Returns:
        Tensor of shape :math:`(N, C_{out}, D_{out}, H_{out}, W_{out})`.

    Raises:
        ShapeError: if channels or bias do not fit, or the kernel exceeds the padded input.
        ArgumentError: if ``pad_mode`` is unknown or contradicts ``padding``.

    Example:
        >>> ops.conv3d(ops.ones((1, 1, 3, 3, 3)), ops.ones((1, 1, 2, 2, 2))).shape
        (1, 1, 2, 2, 2)
    """
    return _conv("conv3d", 3, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: PerAxis = 1,
    padding: object = 0,
    output_padding: PerAxis = 0,
    groups: int = 1,
    dilation: PerAxis = 1,
) -> Tensor:
    r"""Transposed convolution of images.

    Args:
        input: Tensor of shape :math:`(N, C_{in}, H, W)` or :math:`(C_{in}, H, W)`.
        weight: Tensor of shape :math:`(C_{in}, C_{out} / groups, K_h, K_w)`.
        bias: Tensor of shape :math:`(C_{out},)`, or ``None``.
        stride: Distance between the windows in the output.
        padding: How much is cut from both sides of every axis.
        output_padding: Size added after every axis; smaller than ``stride`` or ``dilation``.
        groups: Number of blocks into which the channels are split.
        dilation: Distance between kernel taps.

    Returns:
        Tensor whose axes have size :math:`(size - 1) \cdot stride - 2 \cdot padding +
        dilation (kernel - 1) + output\_padding + 1`.

    Raises:
        ShapeError: if channels or bias do not fit.
        ArgumentError: if an argument is out of range.

    Example:
        >>> ops.conv_transpose2d(ops.ones((1, 2, 3, 3)), ops.ones((2, 1, 3, 3)), stride=2).shape
        (1, 1, 7, 7)
    """
    op = "conv_transpose2d"
    steps, gaps = ints(stride, 2, "stride", op), ints(dilation, 2, "dilation", op)
    extra = ints(output_padding, 2, "output_padding", op, 0)
    if any(e >= max(s, d) for e, s, d in zip(extra, steps, gaps)):
        raise bad(
            ArgumentError, "output_padding must be smaller than stride or dilation", op,
            f"output_padding={extra}, stride={steps}, dilation={gaps}",
        )  # fmt: skip
    single = input.ndim == 3
    x = F.expand_dims(input, 0) if single else input
    pads = tuple((p, p) for p in ints(padding, 2, "padding", op, 0))
    y = F.conv_transpose(
        x, weight, stride=steps, padding=pads, output_padding=extra, dilation=gaps,
        groups=ints(groups, 1, "groups", op)[0],
    )  # fmt: skip
    y = _add_bias(y, bias, op)
    return F.reshape(y, y.shape[1:]) if single else y


def _deconv_padding(
    pad_mode: str, padding: object, kernel: Ints, stride: Ints, dilation: Ints, extra: Ints, op: str
) -> tuple[Pairs, Ints]:
    """Returns what is cut and what is added, so that every window of the output is covered."""
    mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
    require(mode in ("valid", "same", "pad"), "pad_mode must be 'same', 'valid' or 'pad'", op,
            ArgumentError, pad_mode=pad_mode)  # fmt: skip
    pairs = padding_pairs(padding, len(kernel), op)
    if mode == "pad":
        return pairs, extra
    if any(lo or hi for lo, hi in pairs) or any(extra):
        raise bad(
            ArgumentError, f"padding and output_padding must be 0 when pad_mode is {mode!r}", op,
            f"padding={padding!r}, output_padding={extra}", "pass pad_mode='pad'",
        )  # fmt: skip
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    extra = tuple(max(s - r, 0) for s, r in zip(stride, reach))
    if mode == "valid":
        return pairs, extra
    totals = [max(r - s, 0) for s, r in zip(stride, reach)]
    return tuple((t // 2, t - t // 2) for t in totals), extra


def deconvolution(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
    pad_mode: str = "same", padding: object = 0, dilation: PerAxis = 1, group: int = 1,
    output_padding: PerAxis = 0,
) -> Tensor:  # fmt: skip
    r"""Transposed convolution with MindSpore's pad modes, in 1, 2 or 3 spatial dimensions.

    Args:
        x: Tensor of shape :math:`(N, C_{in}, *spatial)`.
        weight: Tensor of shape :math:`(C_{in}, C_{out} / group, *kernel)`.
        bias: Tensor of shape :math:`(C_{out},)`, or ``None``.
        stride: Distance between the windows in the output.
        pad_mode: ``"same"`` gives :math:`size \cdot stride`, ``"valid"`` cuts nothing, ``"pad"``
            cuts ``padding``.
        padding: An int, one per axis, or ``(before, after)`` for each axis; only for ``"pad"``.
        dilation: Distance between kernel taps.
        group: Number of blocks into which the channels are split.
        output_padding: Size added after every axis; only for ``"pad"``.

    Returns:
        Tensor of shape :math:`(N, C_{out}, *out)`.

    Raises:
        ShapeError: if channels or bias do not fit.
        ArgumentError: if ``pad_mode`` is unknown or contradicts the paddings.

    Example:
        >>> ops.deconvolution(ops.ones((1, 1, 3, 3)), ops.ones((1, 1, 3, 3)), stride=2).shape
        (1, 1, 6, 6)
    """
    return _deconv("deconvolution", x, weight, bias, stride, pad_mode, padding, dilation, group,
                   output_padding)  # fmt: skip


def _deconv(
    op: str, x: Tensor, weight: Tensor, bias: Tensor | None, stride: PerAxis, pad_mode: str,
    padding: object, dilation: PerAxis, group: int, output_padding: PerAxis,
) -> Tensor:  # fmt: skip
    count = weight.ndim - 2
    steps, gaps = ints(stride, count, "stride", op), ints(dilation, count, "dilation", op)
    extra = ints(output_padding, count, "output_padding", op, 0)
    pads, extra = _deconv_padding(pad_mode, padding, weight.shape[2:], steps, gaps, extra, op)
    (blocks,) = ints(group, 1, "group", op)
    y = F.conv_transpose(x, weight, stride=steps, padding=pads, output_padding=extra,
                         dilation=gaps, groups=blocks)  # fmt: skip
    return _add_bias(y, bias, op)


def conv3d_transpose(
    inputs: Tensor,
    weight: Tensor,
    pad_mode: str = "valid",
    padding: object = 0,
    stride: PerAxis = 1,
    dilation: PerAxis = 1,
    group: int = 1,
    output_padding: PerAxis = 0,
) -> Tensor:
    r"""Transposed convolution of volumes.

    Args:
        inputs: Tensor of shape :math:`(N, C_{in}, D, H, W)`.
        weight: Tensor of shape :math:`(C_{in}, C_{out} / group, K_d, K_h, K_w)`.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        padding: An int, one per axis, or ``(before, after)`` for each axis; only for ``"pad"``.
        stride: Distance between the windows in the output.
        dilation: Distance between kernel taps.
        group: Number of blocks into which the channels are split.
        output_padding: Size added after every axis; only for ``"pad"``.

    Returns:
        Tensor of shape :math:`(N, C_{out}, D_{out}, H_{out}, W_{out})`.

    Raises:
        ShapeError: if channels do not fit.
        ArgumentError: if ``pad_mode`` is unknown or contradicts the paddings.

    Example:
        >>> ops.conv3d_transpose(ops.ones((1, 1, 2, 2, 2)), ops.ones((1, 1, 2, 2, 2))).shape
        (1, 1, 3, 3, 3)
    """
    return _deconv("conv3d_transpose", inputs, weight, None, stride, pad_mode, padding, dilation,
                   group, output_padding)  # fmt: skip
