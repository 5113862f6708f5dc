"""Llama's decoder with its language-model head; also TinyLlama and others stored alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.models.attention import activation, split_heads
from tvmgraph.models.language import LanguageModel, Layer
from tvmgraph.nn import Cell, CellList, Dense, Embedding


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a Llama, named as in its ``config.json``."""

    vocab_size: int = 32000
    hidden_size: int = 2048
    intermediate_size: int = 5632
    num_hidden_layers: int = 22
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    hidden_act: str = "silu"
    tie_word_embeddings: bool = False
    pad_token_id: int | None = None
    eos_token_id: object = None


class RootMeanSquare(Cell):
    """Normalization by the root mean square of the last axis."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.gamma = Parameter(Tensor(np.ones(size, np.float32)), name="gamma")
        self.epsilon = epsilon

    def construct(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.gamma, self.epsilon)[0]


class LlamaLayer(Layer):
    """One decoder layer: queries and keys turned by their places, a gated wide layer."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        size, wide = config.hidden_size, config.intermediate_size
        self.heads = config.num_attention_heads
        self.kept_heads = config.num_key_value_heads or self.heads
        self.hidden_act = config.hidden_act
        kept = size // self.heads * self.kept_heads
        self.input_norm = RootMeanSquare(size, config.rms_norm_eps)
        self.q_proj = Dense(size, size, has_bias=False)
        self.k_proj = Dense(size, kept, has_bias=False)
        self.v_proj = Dense(size, kept, has_bias=False)
        self.o_proj = Dense(size, size, has_bias=False)
        self.output_norm = RootMeanSquare(size, config.rms_norm_eps)
        self.gate_proj = Dense(size, wide, has_bias=False)
        self.up_proj = Dense(size, wide, has_bias=False)
        self.down_proj = Dense(wide, size, has_bias=False)

    def project(self, x: Tensor, turn: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys, turned, and values."""
        x = self.input_norm(x)
        q, k = split_heads(self.q_proj(x), self.heads), split_heads(self.k_proj(x), self.kept_heads)
        return _turned(q, turn), _turned(k, turn), split_heads(self.v_proj(x), self.kept_heads)

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """The rest of the layer.

        Args:
            x: The layer's input (N, T, E).
            mixed: What its attention gives (N, T, E).
        """
        x = x + self.o_proj(mixed)
        y = self.output_norm(x)
        return x + self.down_proj(activation(self.hidden_act, self.gate_proj(y)) * self.up_proj(y))


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Turns the pairs of a head, element i with element i + D / 2."""
    cos, sin = turn
    half = x.shape[-1] // 2
    low, high = x[..., :half], x[..., half:]
    return F.concat((low * cos - high * sin, high * cos + low * sin), -1)


class Llama(LanguageModel):
    """Llama: the logits of the next token at every place.

    Args:
        config: The sizes.

    Inputs:
        - **input_ids** (Tensor) - Integers :math:`(N, T)`.
        - **attention_mask** (Tensor) - :math:`(N, T)`, 0 where a token does not count.

    Outputs:
        Logits :math:`(N, T, vocab)`.

    Example:
        >>> from tvmgraph.models import Llama, LlamaConfig
        >>> net = Llama(LlamaConfig(9, 8, 16, num_hidden_layers=1, num_attention_heads=2))
        >>> net(ops.ones((2, 3), ms.int32)).shape
        (2, 3, 9)
    """

    _embedding, _layers, _norm = "embed_tokens", "layers", "norm"

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = CellList([LlamaLayer(config) for _ in range(config.num_hidden_layers)])
        self.norm = RootMeanSquare(config.hidden_size, config.rms_norm_eps)
        self.lm_head = None
        if not config.tie_word_embeddings:
            self.lm_head = Dense(config.hidden_size, config.vocab_size, has_bias=False)
        self.most_tokens = config.max_position_embeddings
        self.kept_heads = config.num_key_value_heads or config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads

    def embed(self, ids: Tensor, places: Tensor) -> Tensor:
        """Words; places are what layers turn by.

        Args:
            ids: Tokens (N, T).
            places: Their places in the text, which broadcast to (N, T).
        """
        return self.embed_tokens(ids)

    def turn(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of the angles, which broadcast to (N, heads, T, D / 2).

        Args:
            places: Their places in the text, which broadcast to (N, T).
        """
        rates = self.config.rope_theta ** -(np.arange(0, self.head_size, 2) / self.head_size)
        angles = F.expand_dims(F.cast(places, "float32"), -1) * Tensor(rates.astype(np.float32))
        if places.ndim == 2:
            angles = F.expand_dims(angles, 1)
        return F.cos(angles), F.sin(angles)
