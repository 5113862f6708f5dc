"""Dense layers whose weights are integers of 8 or 4 bits."""

from __future__ import annotations

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.storage import aligned_empty
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.errors import ArgumentError
from tvmgraph.nn._checks import boolean, positive, reject
from tvmgraph.nn.basic import Dense, Linear, check_last_axis
from tvmgraph.nn.cell import Cell
from tvmgraph.ops.linalg.quantized import PER_WORD, WIDTH, quantize_rows


class QuantizedDense(Cell):
    r"""Fully connected layer with weights of a few bits: :math:`y = x (s W)^T + b`.

    The weights are integers of a few bits, with one factor for every group of a row; everything
    else is float32. Compiled code reads the integers, so that a network that waits for its weights
    (text, a token at a time) is as much faster as they are smaller. :meth:`of` rounds a layer,
    :func:`tvmgraph.amp.quantize_weights` all layers of a network.

    Args:
        in_channels: Size of the input's last axis.
        out_channels: Size of the output's last axis.
        bits: 8 or 4.
        group: Weights of a row that share a factor, a divisor of ``in_channels``; a multiple of 8
            for 4 bits. 0: all of a row.
        has_bias: Whether there is a bias.

    Inputs:
        - **x** (Tensor) - Shape :math:`(*, in)`.

    Outputs:
        Tensor of shape :math:`(*, out)`.

    Raises:
        ArgumentError: if ``bits`` is another number, or ``group`` does not divide the weights.

    Example:
        >>> layer = nn.QuantizedDense.of(nn.Dense(64, 4), bits=4, group=32)
        >>> layer(ops.ones((2, 64))).shape
        (2, 4)
    """

    _shown = "input_channels=in_channels output_channels=out_channels bits group has_bias"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        bits: int = 8,
        group: int = 0,
        has_bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels = positive("QuantizedDense", "in_channels", in_channels)
        self.out_channels = positive("QuantizedDense", "out_channels", out_channels)
        self.has_bias = boolean("QuantizedDense", "has_bias", has_bias)
        self.bits, self.group = bits, group or in_channels
        if bits not in (4, 8):
            reject(ArgumentError, "QuantizedDense", "bits must be 8 or 4", f"bits={bits}")
        unit = PER_WORD if bits == 4 else 1
        if self.group < 1 or in_channels % self.group or self.group % unit:
            rule = f"group must divide in_channels={in_channels}"
            reject(ArgumentError, "QuantizedDense", rule + (f" and be a multiple of {unit}"
                   if unit > 1 else ""), f"group={group}", "choose 32, 64 or 128")  # fmt: skip
        panels = -(-out_channels // WIDTH)
        shape = (panels, in_channels // unit, WIDTH)
        self.words = _fixed(_zeros(shape, np.int8 if bits == 8 else np.int32), "words")
        scales = _zeros((panels, in_channels // self.group, WIDTH), np.float16)
        self.scales = _fixed(scales, "scales")
        self.bias = _fixed(_zeros((out_channels,), np.float32), "bias") if has_bias else None

    @classmethod
    def of(cls, layer: Dense | Linear, bits: int = 8, group: int = 0) -> QuantizedDense:
        """Rounds the weights of a dense layer without an activation.

        Args:
            layer: The layer; it is not changed.
            bits: 8 or 4.
            group: See the class.

        Returns:
            The rounded layer.

        Raises:
            ArgumentError: if the class does, or if the layer has an activation.
        """
        if getattr(layer, "activation", None) is not None:
            reject(ArgumentError, "QuantizedDense.of", "layer must have no activation",
                   f"layer={layer}", "apply the activation after the layer")  # fmt: skip
        bias = None if layer.bias is None else layer.bias.asnumpy()
        return cls.of_weight(layer.weight.asnumpy(), bias, bits, group)

    @classmethod
    def of_weight(
        cls, weight: np.ndarray, bias: np.ndarray | None = None, bits: int = 8, group: int = 0
    ) -> QuantizedDense:
        """Rounds a matrix.

        Args:
            weight: Shape (out, in).
            bias: Shape (out,), or None.
            bits: 8 or 4.
            group: See the class.

        Returns:
            The layer.

        Raises:
            ArgumentError: if the class does.
        """
        columns, depth = weight.shape
        made = cls(depth, columns, bits, group, bias is not None)
        words, scales = quantize_rows(weight, bits, made.group)
        made.words.set_data(tensor_from_numpy(words))
        made.scales.set_data(tensor_from_numpy(scales))
        if bias is not None and made.bias is not None:
            made.bias.set_data(tensor_from_numpy(np.ascontiguousarray(bias, np.float32)))
        return made

    def construct(self, x: Tensor) -> Tensor:
        check_last_axis("QuantizedDense", x, self.in_channels, "in_channels")
        rows = F.reshape(x, (-1, self.in_channels))
        y = F.quantized_dense(rows, self.words, self.scales, columns=self.out_channels)
        y = F.reshape(y, (*x.shape[:-1], self.out_channels))
        return y if self.bias is None else y + self.bias


def _zeros(shape: tuple[int, ...], dtype: type) -> Tensor:
    array = aligned_empty(shape, dtype)
    array[...] = 0
    return tensor_from_numpy(array)


def _fixed(value: Tensor, name: str) -> Parameter:
    return Parameter(value, name=name, requires_grad=False)


__all__ = ["QuantizedDense"]
