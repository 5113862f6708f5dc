"""Task heads on BERT and GPT-2, as Hugging Face stores them."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.models.attention import activation
from tvmgraph.models.bert import Bert, BertConfig
from tvmgraph.models.gpt2 import Gpt2, Gpt2Config
from tvmgraph.nn import Cell, Dense, Dropout, LayerNorm


class _BertHead(Cell):
    """BERT with a head on what it returns."""

    _head: Callable[..., Tensor | tuple[Tensor, Tensor]]  # of the hidden states

    def __init__(self, config: BertConfig, pooler: bool = False) -> None:
        super().__init__()
        self.config = config
        self.bert = Bert(config, pooler)

    def construct(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        return self._head(self.bert(input_ids, attention_mask, token_type_ids))


class BertForSequenceClassification(_BertHead):
    """BERT with a classifier on its pooled first token.

    Args:
        config: The sizes; ``num_labels`` classes.

    Inputs:
        As of :class:`Bert`.

    Outputs:
        Logits :math:`(N, labels)`.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config, pooler=True)
        self.dropout = Dropout(p=config.hidden_dropout_prob)
        self.classifier = Dense(config.hidden_size, config.num_labels)

    def _head(self, found: tuple[Tensor, Tensor]) -> Tensor:
        return self.classifier(self.dropout(found[1]))


class BertForTokenClassification(_BertHead):
    """BERT with a classifier on every token.

    Args:
        config: The sizes; ``num_labels`` classes.

    Inputs:
        As of :class:`Bert`.

    Outputs:
        Logits :math:`(N, T, labels)`.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.dropout = Dropout(p=config.hidden_dropout_prob)
        self.classifier = Dense(config.hidden_size, config.num_labels)

    def _head(self, found: Tensor) -> Tensor:
        return self.classifier(self.dropout(found))


class BertForQuestionAnswering(_BertHead):
    """BERT with scores of every token as the start and as the end of an answer.

    Args:
        config: The sizes.

    Inputs:
        As of :class:`Bert`.

    Outputs:
        Start logits and end logits, both :math:`(N, T)`.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.qa_outputs = Dense(config.hidden_size, 2)

    def _head(self, found: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.qa_outputs(found)
        return logits[:, :, 0], logits[:, :, 1]


class BertForMaskedLM(_BertHead):
    """BERT with logits of the word at every place; the head shares the word embedding's table.

    Args:
        config: The sizes.

    Inputs:
        As of :class:`Bert`.

    Outputs:
        Logits :math:`(N, T, vocab)`.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        size = config.hidden_size
        self.transform = Dense(size, size)
        self.transform_norm = LayerNorm((size,), epsilon=config.layer_norm_eps)
        self.bias = Parameter(F.zeros((config.vocab_size,)), name="bias")

    def _head(self, found: Tensor) -> Tensor:
        hidden = activation(self.config.hidden_act, self.transform(found))
        table = self.bert.embeddings.word_embeddings.embedding_table
        return F.matmul(self.transform_norm(hidden), F.transpose(table, (1, 0))) + self.bias


class Gpt2ForSequenceClassification(Cell):
    """GPT-2 with a classifier on the last token that is no padding.

    Args:
        config: The sizes; ``num_labels`` classes.

    Inputs:
        As of :class:`Gpt2`.

    Outputs:
        Logits :math:`(N, labels)`.
    """

    def __init__(self, config: Gpt2Config) -> None:
        super().__init__()
        self.config = config
        self.transformer = Gpt2(config)
        self.score = Dense(config.n_embd, config.num_labels, has_bias=False)

    def construct(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        logits = self.score(self.transformer.hidden_states(input_ids, attention_mask))
        if self.config.pad_token_id is None:
            return logits[:, -1]
        places = F.arange(input_ids.shape[1])
        last = F.argmax(F.where(input_ids != self.config.pad_token_id, places, 0), 1)
        return F.squeeze(F.gather_elements(logits, 1, _wide(last, logits)), 1)


def _wide(index: Tensor, logits: Tensor) -> Tensor:
    """Repeats ``(N,)`` to ``(N, 1, labels)``."""
    return F.broadcast_to(F.reshape(index, (-1, 1, 1)), (logits.shape[0], 1, logits.shape[2]))
