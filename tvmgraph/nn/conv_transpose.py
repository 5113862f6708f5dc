"""Transposed convolution layers."""

from __future__ import annotations

from tvmgraph import dtypes
from tvmgraph.core.arguments import DTypeLike, PerAxis
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.nn._checks import choice, int_tuple
from tvmgraph.nn.conv import _Conv


class _ConvTranspose(_Conv):
    _transposed = True
    output_padding: PerAxis = 0

    def construct(self, x: Tensor) -> Tensor:
        self._check_input(x)
        weight, bias = self._weight_and_bias()
        return F.deconvolution(x, weight, bias, self.stride, self.pad_mode, self.padding,
                               self.dilation, self.group, self.output_padding)  # fmt: skip


class Conv1dTranspose(_ConvTranspose):
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
        weight_init: Initial weight of shape :math:`(in, out / group, 1, K)`.
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

    _axes = 1

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
        super().__init__(in_channels, out_channels, kernel_size, stride, pad_mode, padding,
                         dilation, group, has_bias, weight_init, bias_init, "NCW",
                         dtype)  # fmt: skip


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
        output_padding: Size added after every axis; only with ``"pad"``.
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


__all__ = ["Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose"]
