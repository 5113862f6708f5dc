"""Transformer encoder, decoder and the pair of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tvmgraph import dtypes
from tvmgraph.common.initializer import initializer
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError
from tvmgraph.nn._checks import boolean, layers, positive, real, reject
from tvmgraph.nn.basic import Dense, Dropout
from tvmgraph.nn.cell import Cell
from tvmgraph.nn.container import CellList
from tvmgraph.nn.normalization import LayerNorm
from tvmgraph.nn.transformer import MultiheadAttention


def _activation(op: str, activation: object) -> Any:
    """Returns the function of the feed-forward part: a name, a Cell or any callable."""
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            reject(ArgumentError, op, f"activation must be 'relu' or 'gelu', not {activation!r}",
                   fix="pass a Cell or function for any other")  # fmt: skip
        return getattr(F, activation)
    if not callable(activation):
        kind = type(activation).__name__
        reject(DTypeError, op, f"activation must be a name, Cell or function, not {kind}")
    return activation


def _clones(op: str, layer: Cell, count: int) -> CellList:
    if not isinstance(layer, Cell):
        reject(DTypeError, op, f"the layer must be a Cell, not {type(layer).__name__}")
    layers(op, "num_layers", count)
    return CellList([copy.deepcopy(layer) for _ in range(count)])


class _Layer(Cell):
    """The parts that encoder and decoder layers share."""

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        real(op, "dropout", dropout, 0, 1, "[)")
        positive(op, "dim_feedforward", dim_feedforward)
        self.norm_first = boolean(op, "norm_first", norm_first)
        self.d_model, self.nhead, self.dim_feedforward = d_model, nhead, dim_feedforward
        self.dropout_num, self.layernorm_eps = dropout, layer_norm_eps
        self.batch_first, self.dtype, self.activation1 = batch_first, dtype, activation
        for name in self._attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first,
                                           dtype=dtype)  # fmt: skip
            setattr(self, name, attention)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        parts = len(self._attentions) + 1
        for i in range(1, parts + 1):
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            setattr(self, f"norm{i}", norm)
        for i in range(1, parts + 1):
            setattr(self, f"dropout{i}", Dropout(p=dropout))
        self.activation = _activation(op, activation)

    def _residual(self, x: Tensor, part: int, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Adds ``function`` of ``x``, with the norm before it or behind the sum."""
        norm, drop = getattr(self, f"norm{part}"), getattr(self, f"dropout{part}")
        if self.norm_first:
            return x + drop(function(norm(x)))
        return norm(x + drop(function(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dense2(self.dropout(self.activation(self.dense1(x))))


class TransformerEncoderLayer(_Layer):
    r"""Self-attention and a feed-forward network, each with residual and layer norm.

    Args:
        d_model: Size of a token, :math:`E`.
        nhead: Number of attention heads.
        dim_feedforward: Size between the two dense layers.
        dropout: Probability of zeros in training.
        activation: ``"relu"``, ``"gelu"``, a Cell or a function.
        layer_norm_eps: Epsilon of the layer norms.
        batch_first: Whether inputs are (batch, time, size).
        norm_first: Whether the norms come before the parts instead of behind the sums.
        dtype: Type of the parameters.

    Inputs:
        - **src** (Tensor) - Shape :math:`(S, N, E)`.
        - **src_mask** (Tensor) - Shape :math:`(S, S)` or :math:`(N \cdot nhead, S, S)`; True hides.
        - **src_key_padding_mask** (Tensor) - Shape :math:`(N, S)`; True hides.

    Outputs:
        Tensor of the shape of ``src``.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the inputs do not fit.

    Example:
        >>> nn.TransformerEncoderLayer(8, 2, 16)(ops.ones((5, 2, 8))).shape
        (5, 2, 8)
    """

    _attentions = ("self_attn",)

    def construct(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask)[0]

        return self._residual(self._residual(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    r"""Self-attention, attention to a memory and a feed-forward network.

    Args:
        d_model: Size of a token, :math:`E`.
        nhead: Number of attention heads.
        dim_feedforward: Size between the two dense layers.
        dropout: Probability of zeros in training.
        activation: ``"relu"``, ``"gelu"``, a Cell or a function.
        layer_norm_eps: Epsilon of the layer norms.
        batch_first: Whether inputs are (batch, time, size).
        norm_first: Whether the norms come before the parts instead of behind the sums.
        dtype: Type of the parameters.

    Inputs:
        - **tgt** (Tensor) - Shape :math:`(T, N, E)`.
        - **memory** (Tensor) - Shape :math:`(S, N, E)`.
        - **tgt_mask** (Tensor) - Shape :math:`(T, T)` or :math:`(N \cdot nhead, T, T)`; True hides.
        - **memory_mask** (Tensor) - Shape :math:`(T, S)`; True hides.
        - **tgt_key_padding_mask** (Tensor) - Shape :math:`(N, T)`; True hides.
        - **memory_key_padding_mask** (Tensor) - Shape :math:`(N, S)`; True hides.

    Outputs:
        Tensor of the shape of ``tgt``.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the inputs do not fit.

    Example:
        >>> layer = nn.TransformerDecoderLayer(8, 2, 16)
        >>> layer(ops.ones((5, 2, 8)), ops.ones((7, 2, 8))).shape
        (5, 2, 8)
    """

    _attentions = ("self_attn", "multihead_attn")

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask)[0]

        def recall(x: Tensor) -> Tensor:
            mask, padding = memory_mask, memory_key_padding_mask
            return self.multihead_attn(x, memory, memory, padding, False, mask)[0]

        x = self._residual(self._residual(tgt, 1, attend), 2, recall)
        return self._residual(x, 3, self._feed_forward)


class TransformerEncoder(Cell):
    r"""A stack of copies of an encoder layer.

    Args:
        encoder_layer: The layer to copy.
        num_layers: Number of copies.
        norm: A layer applied to the result, or ``None``.

    Inputs:
        - **src** (Tensor) - Shape :math:`(S, N, E)`.
        - **src_mask** (Tensor) - As for :class:`TransformerEncoderLayer`.
        - **src_key_padding_mask** (Tensor) - As for :class:`TransformerEncoderLayer`.

    Outputs:
        Tensor of the shape of ``src``.

    Raises:
        DTypeError: if the layer is not a Cell.
        ArgumentError: if ``num_layers`` is not positive.

    Example:
        >>> layer = nn.TransformerEncoderLayer(8, 2, 16)
        >>> nn.TransformerEncoder(layer, 2)(ops.ones((5, 2, 8))).shape
        (5, 2, 8)
    """

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.layers = _clones("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    r"""A stack of copies of a decoder layer.

    Args:
        decoder_layer: The layer to copy.
        num_layers: Number of copies.
        norm: A layer applied to the result, or ``None``.

    Inputs:
        - **tgt** (Tensor) - Shape :math:`(T, N, E)`.
        - **memory** (Tensor) - Shape :math:`(S, N, E)`.
        - **tgt_mask**, **memory_mask**, **tgt_key_padding_mask**, **memory_key_padding_mask**
          (Tensor) - As for :class:`TransformerDecoderLayer`.

    Outputs:
        Tensor of the shape of ``tgt``.

    Raises:
        DTypeError: if the layer is not a Cell.
        ArgumentError: if ``num_layers`` is not positive.

    Example:
        >>> layer = nn.TransformerDecoderLayer(8, 2, 16)
        >>> nn.TransformerDecoder(layer, 2)(ops.ones((5, 2, 8)), ops.ones((7, 2, 8))).shape
        (5, 2, 8)
    """

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.layers = _clones("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                        memory_key_padding_mask)  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    r"""Encoder and decoder; weights start Xavier uniform.

    Args:
        d_model: Size of a token, :math:`E`.
        nhead: Number of attention heads.
        num_encoder_layers: Layers of the encoder.
        num_decoder_layers: Layers of the decoder.
        dim_feedforward: Size between the dense layers.
        dropout: Probability of zeros in training.
        activation: ``"relu"``, ``"gelu"``, a Cell or a function.
        custom_encoder: Takes the place of the encoder.
        custom_decoder: Takes the place of the decoder.
        layer_norm_eps: Epsilon of the layer norms.
        batch_first: Whether inputs are (batch, time, size).
        norm_first: Whether the norms come before the parts instead of behind the sums.
        dtype: Type of the parameters.

    Inputs:
        - **src** (Tensor) - Shape :math:`(S, N, E)`.
        - **tgt** (Tensor) - Shape :math:`(T, N, E)`.
        - **src_mask**, **tgt_mask**, **memory_mask**, **src_key_padding_mask**,
          **tgt_key_padding_mask**, **memory_key_padding_mask** (Tensor) - As for the layers.

    Outputs:
        Tensor of the shape of ``tgt``.

    Raises:
        ArgumentError: if an argument is out of range.
        ShapeError: if the inputs do not fit.

    Example:
        >>> nn.Transformer(8, 2, 1, 1, 16)(ops.ones((7, 2, 8)), ops.ones((5, 2, 8))).shape
        (5, 2, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = "relu",
        custom_encoder: Cell | None = None,
        custom_decoder: Cell | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: DTypeLike = dtypes.float32,
    ) -> None:
        super().__init__()
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                  batch_first, norm_first, dtype)  # fmt: skip
        self.encoder: Any = custom_encoder
        if custom_encoder is None:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            layer = TransformerEncoderLayer(*shared)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.decoder: Any = custom_decoder
        if custom_decoder is None:
            norm = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
            layer = TransformerDecoderLayer(*shared)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        for p in self.get_parameters():
            if p.ndim > 1:
                p.set_data(initializer("xavier_uniform", p.shape, p.dtype))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        for name, t in (("src", src), ("tgt", tgt)):
            if t.shape[-1] != self.d_model:
                reject(ShapeError, "Transformer",
                       f"the last axis of {name} must have d_model={self.d_model} elements, "
                       f"not {t.shape[-1]}", f"{name}={t.aval}")  # fmt: skip
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                            memory_key_padding_mask)  # fmt: skip


__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip
