"""GPT-2's decoder with its language-model head."""

from __future__ import annotations

from dataclasses import dataclass

from tvmgraph.core.op import F
from tvmgraph.core.tensor import Tensor
from tvmgraph.models.attention import activation, split_heads
from tvmgraph.models.language import LanguageModel, Layer
from tvmgraph.nn import CellList, Dense, Dropout, Embedding, LayerNorm


@dataclass(frozen=True)
class Gpt2Config:
    """Sizes of a GPT-2, named as in its ``config.json``."""

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    layer_norm_epsilon: float = 1e-5
    resid_pdrop: float = 0.1
    activation_function: str = "gelu_new"
    num_labels: int = 2
    pad_token_id: int | None = None
    eos_token_id: int | None = None


class Gpt2Block(Layer):
    """One decoder layer, normalized before attention and before the wide layer."""

    def __init__(self, config: Gpt2Config) -> None:
        super().__init__()
        size, eps = config.n_embd, config.layer_norm_epsilon
        self.heads = config.n_head
        self.activation_function = config.activation_function
        self.ln_1 = LayerNorm((size,), epsilon=eps)
        self.c_attn = Dense(size, 3 * size)
        self.c_proj = Dense(size, size)
        self.ln_2 = LayerNorm((size,), epsilon=eps)
        self.mlp_fc = Dense(size, config.n_inner or 4 * size)
        self.mlp_proj = Dense(config.n_inner or 4 * size, size)
        self.dropout = Dropout(p=config.resid_pdrop)

    def project(self, x: Tensor, turn: object) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        q, k, v = F.split(self.c_attn(self.ln_1(x)), x.shape[-1], -1)
        return tuple(split_heads(part, self.heads) for part in (q, k, v))  # pyright: ignore[reportReturnType]

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """The rest of the layer.

        Args:
            x: The layer's input (N, T, E).
            mixed: What its attention gives (N, T, E).
        """
        x = x + self.dropout(self.c_proj(mixed))
        wide = activation(self.activation_function, self.mlp_fc(self.ln_2(x)))
        return x + self.dropout(self.mlp_proj(wide))


class Gpt2(LanguageModel):
    """GPT-2: the logits of the next token at every place.

    Args:
        config: The sizes.

    Inputs:
        - **input_ids** (Tensor) - Integers :math:`(N, T)`.
        - **attention_mask** (Tensor) - :math:`(N, T)`, 0 where a token does not count.

    Outputs:
        Logits :math:`(N, T, vocab)`; the head shares the word embedding's table.

    Example:
        >>> from tvmgraph.models import Gpt2, Gpt2Config
        >>> net = Gpt2(Gpt2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=2))
        >>> net(ops.ones((2, 3), ms.int32)).shape
        (2, 3, 9)
    """

    _embedding, _layers, _norm = "wte", "h", "ln_f"

    def __init__(self, config: Gpt2Config) -> None:
        super().__init__()
        self.config = config
        self.wte = Embedding(config.vocab_size, config.n_embd)
        self.wpe = Embedding(config.n_positions, config.n_embd)
        self.dropout = Dropout(p=config.resid_pdrop)
        self.h = CellList([Gpt2Block(config) for _ in range(config.n_layer)])
        self.ln_f = LayerNorm((config.n_embd,), epsilon=config.layer_norm_epsilon)
        self.lm_head = None
        self.most_tokens, self.kept_heads = config.n_positions, config.n_head
        self.head_size = config.n_embd // config.n_head

    def embed(self, ids: Tensor, places: Tensor) -> Tensor:
        """Words and places.

        Args:
            ids: Tokens (N, T).
            places: Their places in the text, which broadcast to (N, T).
        """
        return self.dropout(self.wte(ids) + self.wpe(places))
