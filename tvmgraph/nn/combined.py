"""A dense or convolution layer with batch normalisation and activation."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.core.arguments import PerAxis
from tvmgraph.core.tensor import Tensor
from tvmgraph.nn._checks import boolean, real
from tvmgraph.nn.activation import LeakyReLU
from tvmgraph.nn.basic import Dense, activation_of
from tvmgraph.nn.cell import Cell
from tvmgraph.nn.conv import Conv2d
from tvmgraph.nn.normalization import BatchNorm1d, BatchNorm2d


def _activation(op: str, activation: object, alpha: float) -> Callable[..., Tensor] | None:
    if activation == "leakyrelu":
        return LeakyReLU(real(op, "alpha", alpha))
    return activation_of(op, activation)


class Conv2dBnAct(Cell):
    r"""Convolution, then batch normalisation and an activation, both optional.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window.
        stride: Step of the window.
        pad_mode: As for :class:`Conv2d`.
        padding: As for :class:`Conv2d`.
        dilation: As for :class:`Conv2d`.
        group: As for :class:`Conv2d`.
        has_bias: As for :class:`Conv2d`.
        weight_init: As for :class:`Conv2d`.
        bias_init: As for :class:`Conv2d`.
        has_bn: Whether there is a batch normalisation.
        momentum: As for :class:`BatchNorm2d`.
        eps: As for :class:`BatchNorm2d`.
        activation: Name or Cell of the activation, or ``None``.
        alpha: Slope of ``"leakyrelu"``.
        after_fake: Kept for MindSpore programs.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, in, H, W)`.

    Outputs:
        Tensor of shape :math:`(N, out, H_{out}, W_{out})`.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> nn.Conv2dBnAct(1, 2, 3, has_bn=True, activation="relu")(ops.ones((1, 1, 4, 4))).shape
        (1, 2, 4, 4)
    """

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
        weight_init: object = "normal",
        bias_init: object = "zeros",
        has_bn: bool = False,
        momentum: float = 0.997,
        eps: float = 1e-5,
        activation: object = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(in_channels, out_channels, kernel_size, stride, pad_mode, padding,
                           dilation, group, has_bias, weight_init, bias_init)  # fmt: skip
        self.has_bn = boolean("Conv2dBnAct", "has_bn", has_bn)
        self.batchnorm = BatchNorm2d(out_channels, eps, momentum) if has_bn else None
        self.activation = _activation("Conv2dBnAct", activation, alpha)

    def construct(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        x = x if self.batchnorm is None else self.batchnorm(x)
        return x if self.activation is None else self.activation(x)


class DenseBnAct(Cell):
    r"""Dense layer, then batch normalisation and an activation, both optional.

    Args:
        in_channels: Size of the input.
        out_channels: Size of the output.
        weight_init: As for :class:`Dense`.
        bias_init: As for :class:`Dense`.
        has_bias: As for :class:`Dense`.
        has_bn: Whether there is a batch normalisation.
        momentum: As for :class:`BatchNorm1d`.
        eps: As for :class:`BatchNorm1d`.
        activation: Name or Cell of the activation, or ``None``.
        alpha: Slope of ``"leakyrelu"``.
        after_fake: Kept for MindSpore programs.

    Inputs:
        - **x** (Tensor) - Shape :math:`(N, in)`.

    Outputs:
        Tensor of shape :math:`(N, out)`.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> nn.DenseBnAct(3, 2, activation="relu")(ops.ones((4, 3))).shape
        (4, 2)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: object = "normal",
        bias_init: object = "zeros",
        has_bias: bool = True,
        has_bn: bool = False,
        momentum: float = 0.9,
        eps: float = 1e-5,
        activation: object = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self.has_bn = boolean("DenseBnAct", "has_bn", has_bn)
        self.batchnorm = BatchNorm1d(out_channels, eps, momentum) if has_bn else None
        self.activation = _activation("DenseBnAct", activation, alpha)

    def construct(self, x: Tensor) -> Tensor:
        x = self.dense(x)
        x = x if self.batchnorm is None else self.batchnorm(x)
        return x if self.activation is None else self.activation(x)


__all__ = ["Conv2dBnAct", "DenseBnAct"]
