"""BERT's encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.models.attention import activation, attend, join_heads, split_heads
from tvmgraph.nn import Cell, CellList, Dense, Dropout, Embedding, LayerNorm


@dataclass(frozen=True)
class BertConfig:
    """Sizes of a BERT encoder, named as in its ``config.json``."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = 0.1
    hidden_act: str = "gelu"
    num_labels: int = 2


class BertEmbeddings(Cell):
    """Sum of word, position and segment embeddings, normalized."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.word_embeddings = Embedding(config.vocab_size, size)
        self.position_embeddings = Embedding(config.max_position_embeddings, size)
        self.token_type_embeddings = Embedding(config.type_vocab_size, size)
        self.layer_norm = LayerNorm((size,), epsilon=config.layer_norm_eps)
        self.dropout = Dropout(p=config.hidden_dropout_prob)

    def construct(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        positions = F.arange(input_ids.shape[1])
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.layer_norm(x + self.position_embeddings(positions)))


class BertLayer(Cell):
    """One encoder layer, normalized after each of its two residual sums."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size, eps = config.hidden_size, config.layer_norm_eps
        self.heads = config.num_attention_heads
        self.hidden_act = config.hidden_act
        self.query = Dense(size, size)
        self.key = Dense(size, size)
        self.value = Dense(size, size)
        self.attention_output = Dense(size, size)
        self.attention_norm = LayerNorm((size,), epsilon=eps)
        self.intermediate = Dense(size, config.intermediate_size)
        self.output = Dense(config.intermediate_size, size)
        self.output_norm = LayerNorm((size,), epsilon=eps)
        self.dropout = Dropout(p=config.hidden_dropout_prob)

    def construct(self, x: Tensor, hidden: Tensor | None) -> Tensor:
        q, k, v = (split_heads(p(x), self.heads) for p in (self.query, self.key, self.value))
        attended = self.attention_output(join_heads(attend(q, k, v, hidden)))
        x = self.attention_norm(x + self.dropout(attended))
        wide = activation(self.hidden_act, self.intermediate(x))
        return self.output_norm(x + self.dropout(self.output(wide)))


class Bert(Cell):
    """BERT's encoder with its pooler.

    Args:
        config: The sizes.
        pooler: Whether the first token is pooled; some heads do without.

    Inputs:
        - **input_ids** (Tensor) - Integers :math:`(N, T)`.
        - **attention_mask** (Tensor) - :math:`(N, T)`, 0 where a token does not count.
        - **token_type_ids** (Tensor) - Integers :math:`(N, T)`; zeros by default.

    Outputs:
        Hidden states :math:`(N, T, E)`, and the pooled first token :math:`(N, E)`.

    Example:
        >>> from tvmgraph.models import Bert, BertConfig
        >>> net = Bert(BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
        ...                       num_attention_heads=2, intermediate_size=16))
        >>> [y.shape for y in net(ops.ones((2, 3), ms.int32))]
        [(2, 3, 8), (2, 8)]
    """

    def __init__(self, config: BertConfig, pooler: bool = True) -> None:
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.encoder = CellList([BertLayer(config) for _ in range(config.num_hidden_layers)])
        self.pooler = Dense(config.hidden_size, config.hidden_size) if pooler else None

    def construct(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Any:
        if token_type_ids is None:
            token_type_ids = F.zeros_like(input_ids)
        hidden = None
        if attention_mask is not None:
            n, t = attention_mask.shape
            hidden = F.reshape(attention_mask == 0, (n, 1, 1, t))
        x = self.embeddings(input_ids, token_type_ids)
        for layer in self.encoder:
            x = layer(x, hidden)
        return x if self.pooler is None else (x, F.tanh(self.pooler(x[:, 0])))
