"""Convolution layers, plain and transposed."""

from __future__ import annotations

from typing import Any

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike, PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, ShapeError
from tvmgraph.nn._checks import boolean, choice, float_dtype, int_tuple, is_int, positive, reject
from tvmgraph.nn._parameters import default_bias, default_weight, new_parameter
from tvmgraph.nn.cell import Cell


def _paddings(op: str, padding: Any, count: int) -> Any:
    """Checks a padding: an int, one int per axis, or two per axis."""
    if not is_int(padding):
        size = len(padding) if isinstance(padding, (tuple, list)) else count
        int_tuple(op, "padding", padding, size if size in (1, count, 2 * count) else 2 * count, 0)
        padding = tuple(padding)
    elif padding < 0:
        reject(ArgumentError, op, f"padding must not be negative, not {padding}")
    return padding


def _deconv_output_length(
    is_valid: bool, is_same: bool, is_pad: bool, input_length: int, filter_size: int,
    stride_size: int, dilation_size: int, padding: int,
) -> int:  # fmt: skip
    """Returns the size of one axis of a transposed convolution's result.

    Args:
        is_valid: Whether the mode is ``"valid"``.
        is_same: Whether it is ``"same"``.
        is_pad: Whether it is ``"pad"``.
        input_length: Size of the axis before.
        filter_size: Size of the kernel.
        stride_size: Steps of the kernel.
        dilation_size: Distance of the kernel's elements.
        padding: What ``"pad"`` cuts off, of both ends together.
    """
    reach = dilation_size * (filter_size - 1) + 1 - stride_size  # beyond the last step
    grown = input_length * stride_size
    if is_valid:
        return grown + max(reach, 0)
    return grown if is_same else grown + reach - padding if is_pad else 0


class _Conv(Cell):
    """What all convolutions share: arguments, weight and bias."""

    _axes = 2
    _formats: tuple[str, ...] = ("NCHW", "NHWC")
    _transposed = False
    _shown = (
        "input_channels=in_channels output_channels=out_channels kernel_size stride pad_mode "
        "padding dilation group has_bias weight_init bias_init format=data_format"
    )

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        pad_mode: str = "same",
        padding: object = 0,
        dilation: PerAxis = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: object = None,
        bias_init: object = None,
        data_format: str = "NCHW",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        op, axes = type(self).__name__, self._axes
        choice(op, "data_format", data_format, self._formats)
        self.in_channels = positive(op, "in_channels", in_channels)
        self.out_channels = positive(op, "out_channels", out_channels)
        self.kernel_size = int_tuple(op, "kernel_size", kernel_size, axes)
        self.stride = int_tuple(op, "stride", stride, axes)
        self.dilation = int_tuple(op, "dilation", dilation, axes)
        self.group = positive(op, "group", group)
        self.has_bias = boolean(op, "has_bias", has_bias)
        self.pad_mode = choice(op, "pad_mode", pad_mode, ("same", "valid", "pad"))
        self.padding = _paddings(op, padding, axes)
        self.data_format = "NCHW" if axes == 1 else data_format
        if axes == 1:  # they tell of images of one row
            self.kernel_size, self.stride = (1, *self.kernel_size), (1, *self.stride)
            self.dilation, ends = (1, *self.dilation), self.padding
            self.padding = (0, 0, *((ends, ends) if is_int(ends) else ends[:1] + ends[-1:]))
        if in_channels % group or out_channels % group:
            reject(ArgumentError, op, f"group={group} must divide the channels",
                   f"in_channels={in_channels}, out_channels={out_channels}")  # fmt: skip
        padded = self.padding if is_int(self.padding) else any(self.padding)
        if pad_mode != "pad" and padded:
            reject(ArgumentError, op, f"padding must be 0 when pad_mode is {pad_mode!r}",
                   f"padding={padding!r}", "pass pad_mode='pad'")  # fmt: skip
        self._build(weight_init, bias_init, float_dtype(op, dtype))

    def _build(self, weight_init: object, bias_init: object, dtype: dtypes.DType) -> None:
        op = type(self).__name__
        if self._transposed:
            channels = (self.in_channels, self.out_channels // self.group)
        else:
            channels = (self.out_channels, self.in_channels // self.group)
        kernel, fan_in = self.kernel_size, channels[1]
        for k in kernel:
            fan_in *= k
        shape = (*channels, *kernel)
        if self.data_format in ("NHWC", "NDHWC"):
            shape = (channels[0], *kernel, channels[1])
        self.weight_init = default_weight() if weight_init is None else weight_init
        self.weight = new_parameter(op, "weight", self.weight_init, shape, dtype)
        self.bias_init = self.bias = None
        if self.has_bias:
            self.bias_init = default_bias(fan_in) if bias_init is None else bias_init
            self.bias = new_parameter(op, "bias", self.bias_init, (self.out_channels,), dtype)

    def _steps(self) -> tuple[tuple[int, ...], str, object, tuple[int, ...], int]:
        """Stride, mode, padding, dilation and group as the functions take them."""
        first = 1 if self._axes == 1 else 0
        padding = self.padding[2:] if first else self.padding
        return self.stride[first:], self.pad_mode, padding, self.dilation[first:], self.group

    def _weight_and_bias(self) -> tuple[Tensor, Tensor | None]:
        weight = self.compute(self.weight)
        if self._axes == 1:
            weight = F.reshape(weight, (*weight.shape[:2], *self.kernel_size[1:]))
        # a bias that is assigned to a layer made without one is not added, as in MindSpore
        bias = self.bias if self.has_bias else None
        return weight, None if bias is None else self.compute(bias)

    def _check_input(self, x: Tensor) -> None:
        op, rank = type(self).__name__, self._axes + 2
        if x.ndim != rank:
            reject(ShapeError, op, f"the input must have {rank} axes, not {x.ndim}",
                   f"x={x.aval}", "add a batch axis with ops.expand_dims(x, 0)")  # fmt: skip
        axis = -1 if self.data_format in ("NHWC", "NDHWC") else 1
        if x.shape[axis] not in (self.in_channels, -1):
            reject(ShapeError, op, f"the input must have in_channels={self.in_channels} channels, "
                   f"not {x.shape[axis]}", f"x={x.aval}")  # fmt: skip


class _Sequences(_Conv):
    """What convolutions of sequences share."""

    _axes = 1
    _formats = ("NCW",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: object = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: object = None,
        bias_init: object = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        if isinstance(weight_init, Tensor) and weight_init.ndim == 3:
            weight_init = F.expand_dims(weight_init, 2)
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding,
                         dilation, group, has_bias, weight_init, bias_init, "NCW",
                         dtype)  # fmt: skip


class Conv1d(_Sequences):
    r"""Convolves sequences: :math:`y_o = b_o + \sum_c W_{o,c} \star x_c`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window.
        stride: Step of the window.
        pad_mode: ``"same"`` (:math:`\lceil L / stride \rceil` outputs), ``"valid"`` (no padding)
            or ``"pad"`` (by ``padding``).
        padding: Zeros on both sides, or ``(left, right)``; only with ``"pad"``.
        dilation: Distance between kernel taps.
        group: Blocks into which the channels are split.
        has_bias: Whether there is a bias.
        weight_init: Initial weight of shape :math:`(out, in / group, K)`, or with a 1 before K.
        bias_init: Initial bias of shape :math:`(out,)`.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, in, L)`.

    Outputs:
        Tensor of shape :math:`(N, out, L_{out})`.

    Raises:
        ArgumentError: if an argument is out of range or contradicts another.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.Conv1d(2, 4, 3)(ops.ones((1, 2, 8))).shape
        (1, 4, 8)
    """

    def construct(self, x: Tensor) -> Tensor:
        self._check_input(x)
        weight, bias = self._weight_and_bias()
        return F.conv1d(x, weight, bias, *self._steps())


class Conv2d(_Conv):
    r"""Convolves images: :math:`y_o = b_o + \sum_c W_{o,c} \star x_c`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window: an int or ``(h, w)``.
        stride: Step of the window: an int or ``(h, w)``.
        pad_mode: ``"same"`` (:math:`\lceil size / stride \rceil` outputs), ``"valid"`` (no
            padding) or ``"pad"`` (by ``padding``).
        padding: An int or ``(top, bottom, left, right)``; only with ``"pad"``.
        dilation: Distance between kernel taps: an int or ``(h, w)``.
        group: Blocks into which the channels are split.
        has_bias: Whether there is a bias.
        weight_init: Initial weight of shape :math:`(out, in / group, K_h, K_w)`.
        bias_init: Initial bias of shape :math:`(out,)`.
        data_format: ``"NCHW"`` or ``"NHWC"``.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, in, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, out, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if an argument is out of range or contradicts another.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.Conv2d(3, 4, 3, stride=2)(ops.ones((1, 3, 8, 8))).shape
        (1, 4, 4, 4)
    """

    def construct(self, x: Tensor) -> Tensor:
        self._check_input(x)
        weight, bias = self._weight_and_bias()
        last = self.data_format == "NHWC"
        if last:
            x, weight = F.transpose(x, (0, 3, 1, 2)), F.transpose(weight, (0, 3, 1, 2))
        y = F.conv2d(x, weight, bias, *self._steps())
        return F.transpose(y, (0, 2, 3, 1)) if last else y


class Conv3d(_Conv):
    r"""Convolves volumes: :math:`y_o = b_o + \sum_c W_{o,c} \star x_c`.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window: an int or ``(d, h, w)``.
        stride: Step of the window: an int or ``(d, h, w)``.
        pad_mode: ``"same"``, ``"valid"`` or ``"pad"``.
        padding: An int, one per axis or six ints; only with ``"pad"``.
        dilation: Distance between kernel taps: an int or ``(d, h, w)``.
        group: Blocks into which the channels are split.
        has_bias: Whether there is a bias.
        weight_init: Initial weight of shape :math:`(out, in / group, K_d, K_h, K_w)`.
        bias_init: Initial bias of shape :math:`(out,)`.
        data_format: Only ``"NCDHW"``.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, in, D, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, out, D_{out}, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if an argument is out of range or contradicts another.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.Conv3d(1, 2, 2)(ops.ones((1, 1, 3, 3, 3))).shape
        (1, 2, 3, 3, 3)
    """

    _axes = 3
    _formats = ("NCDHW",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        pad_mode: str = "same",
        padding: object = 0,
        dilation: PerAxis = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: object = None,
        bias_init: object = None,
        data_format: str = "NCDHW",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding,
                         dilation, group, has_bias, weight_init, bias_init, data_format,
                         dtype)  # fmt: skip

    def construct(self, x: Tensor) -> Tensor:
        self._check_input(x)
        weight, bias = self._weight_and_bias()
        return F.conv3d(x, weight, bias, *self._steps())


# ---- transposed convolution layers ---------------------------------------------------------------


class _ConvTranspose(_Conv):
    _transposed = True
    output_padding: PerAxis = 0

    def construct(self, x: Tensor) -> Tensor:
        self._check_input(x)
        weight, bias = self._weight_and_bias()
        return F.deconvolution(x, weight, bias, *self._steps(), self.output_padding)


class Conv1dTranspose(_Sequences, _ConvTranspose):
    r"""Transposed convolution of sequences.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window.
        stride: Distance between windows in the output.
        pad_mode: ``"same"`` (:math:`L \cdot stride` outputs), ``"valid"`` (cuts nothing) or
            ``"pad"`` (cuts ``padding``).
        padding: What is cut from both sides; only with ``"pad"``.
        dilation: Distance between kernel taps.
        group: Blocks into which the channels are split.
        has_bias: Whether there is a bias.
        weight_init: Initial weight of shape :math:`(in, out / group, K)`, or with a 1 before K.
        bias_init: Initial bias of shape :math:`(out,)`.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, in, L)`.

    Outputs:
        Tensor of shape :math:`(N, out, L_{out})`.

    Raises:
        ArgumentError: if an argument is out of range or contradicts another.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.Conv1dTranspose(2, 4, 3, stride=2)(ops.ones((1, 2, 8))).shape
        (1, 4, 16)
    """


class Conv2dTranspose(_ConvTranspose):
    r"""Transposed convolution of images.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window: an int or ``(h, w)``.
        stride: Distance between windows in the output: an int or ``(h, w)``.
        pad_mode: ``"same"`` (:math:`size \cdot stride` outputs), ``"valid"`` (cuts nothing) or
            ``"pad"`` (cuts ``padding``).
        padding: An int or ``(top, bottom, left, right)``; only with ``"pad"``.
        output_padding: Zeros that are added after every axis; only with ``"pad"``.
        dilation: Distance between kernel taps: an int or ``(h, w)``.
        group: Blocks into which the channels are split.
        has_bias: Whether there is a bias.
        weight_init: Initial weight of shape :math:`(in, out / group, K_h, K_w)`.
        bias_init: Initial bias of shape :math:`(out,)`.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, in, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, out, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if an argument is out of range or contradicts another.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.Conv2dTranspose(3, 4, 3, stride=2)(ops.ones((1, 3, 4, 4))).shape
        (1, 4, 8, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        pad_mode: str = "same",
        padding: object = 0,
        output_padding: PerAxis = 0,
        dilation: PerAxis = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: object = None,
        bias_init: object = None,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding,
                         dilation, group, has_bias, weight_init, bias_init, "NCHW",
                         dtype)  # fmt: skip
        self.output_padding = int_tuple("Conv2dTranspose", "output_padding", output_padding, 2, 0)

    def construct(self, x: Tensor) -> Tensor:
        y = super().construct(x)
        given = self.output_padding
        rows, columns = (given, given) if isinstance(given, int) else given
        if not rows and not columns:
            return y
        y = y[:, :, : y.shape[2] - rows, : y.shape[3] - columns]
        return F.pad(y, (0, columns, 0, rows))  # zeros, as in MindSpore


class Conv3dTranspose(_ConvTranspose):
    r"""Transposed convolution of volumes.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window: an int or ``(d, h, w)``.
        stride: Distance between windows in the output: an int or ``(d, h, w)``.
        pad_mode: ``"same"``, ``"valid"`` or ``"pad"``.
        padding: An int, one per axis or six ints; only with ``"pad"``.
        dilation: Distance between kernel taps: an int or ``(d, h, w)``.
        group: Blocks into which the channels are split.
        output_padding: Size added after every axis; only with ``"pad"``.
        has_bias: Whether there is a bias.
        weight_init: Initial weight of shape :math:`(in, out / group, K_d, K_h, K_w)`.
        bias_init: Initial bias of shape :math:`(out,)`.
        data_format: Only ``"NCDHW"``.
        dtype: Type of the parameters.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, in, D, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, out, D_{out}, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if an argument is out of range or contradicts another.
        ShapeError: if the input does not fit.

    Example:
        >>> nn.Conv3dTranspose(1, 2, 2, stride=2)(ops.ones((1, 1, 2, 2, 2))).shape
        (1, 2, 4, 4, 4)
    """

    _axes = 3
    _formats = ("NCDHW",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        pad_mode: str = "same",
        padding: object = 0,
        dilation: PerAxis = 1,
        group: int = 1,
        output_padding: PerAxis = 0,
        has_bias: bool = False,
        weight_init: object = None,
        bias_init: object = None,
        data_format: str = "NCDHW",
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        choice("Conv3dTranspose", "data_format", data_format, ("NCDHW",))
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding,
                         dilation, group, has_bias, weight_init, bias_init, data_format,
                         dtype)  # fmt: skip
        self.output_padding = int_tuple("Conv3dTranspose", "output_padding", output_padding, 3, 0)


__all__ = ["Conv1d", "Conv1dTranspose", "Conv2d", "Conv2dTranspose", "Conv3d", "Conv3dTranspose"]
