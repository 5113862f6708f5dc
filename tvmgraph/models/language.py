"""What language models have in common: a forward pass with a cache, and ``generate``."""

from __future__ import annotations

from typing import Any

from tvmgraph.core.op import F
from tvmgraph.core.parameter import Parameter
from tvmgraph.core.tensor import Tensor
from tvmgraph.models.attention import attend, join_heads
from tvmgraph.nn import Cell


class Layer(Cell):
    """A decoder layer, apart into what comes before its attention and what comes after."""

    def project(self, x: Tensor, turn: object) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (N, heads, T, D), keys and values (N, kept heads, T, D) of the tokens.

        Args:
            x: What the layer before gave, (N, T, E).
            turn: What :meth:`LanguageModel.turn` gave for their places.
        """
        raise NotImplementedError

    def finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        """The layer's result from its input and its mixed values, both (N, T, E).

        Args:
            x: The layer's input (N, T, E).
            mixed: What its attention gives (N, T, E).
        """
        raise NotImplementedError

    def construct(self, x: Tensor, hidden: Tensor, turn: Tensor | None = None) -> Tensor:
        q, k, v = self.project(x, turn)
        return self.finish(x, join_heads(attend(q, k, v, hidden)))


class LanguageModel(Cell):
    """A decoder that gives the logits of the next token at every place.

    Attributes:
        lm_head: The head, where it does not share the table of the embedding.
    """

    lm_head: Cell | None

    config: Any
    #: Tokens of a text at most, heads of keys and values, and the size of a head.
    most_tokens: int
    kept_heads: int
    head_size: int

    #: Names of the members that are the embedding, the layers and the last normalization.
    _embedding: str
    _layers: str
    _norm: str

    @property
    def layers_of(self) -> Any:
        """The decoder layers."""
        return getattr(self, self._layers)

    @property
    def embedding_table(self) -> Parameter:
        """The table of the embedding, (vocabulary, E)."""
        return getattr(self, self._embedding).embedding_table

    def embed(self, ids: Tensor, places: Tensor) -> Tensor:
        """What the first layer gets, (N, T, E), of tokens (N, T) at places that broadcast to it.

        Args:
            ids: Tokens (N, T).
            places: Their places in the text, which broadcast to (N, T).
        """
        raise NotImplementedError

    def turn(self, places: Tensor) -> Any:
        """What layers need to know of the places of tokens.

        Args:
            places: Their places in the text, which broadcast to (N, T).
        """
        return None

    def norm_of(self, x: Tensor) -> Tensor:
        """The last normalization.

        Args:
            x: Result of the last layer (N, T, E).
        """
        return getattr(self, self._norm)(x)

    def head(self, x: Tensor) -> Tensor:
        """The logits, from what the last normalization gives.

        Args:
            x: Tensor (N, T, E).
        """
        if self.lm_head is not None:
            return self.lm_head(x)
        return F.matmul(x, F.transpose(self.embedding_table, (1, 0)))

    def hidden_states(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Returns what the head sees: :math:`(N, T, E)`.

        Args:
            input_ids: Tokens (N, T).
            attention_mask: 1 for tokens and 0 for padding (N, T).
        """
        places = F.arange(input_ids.shape[1])
        future = F.expand_dims(places, 0) > F.expand_dims(places, 1)
        if attention_mask is not None:
            n, t = attention_mask.shape
            future = F.logical_or(future, F.reshape(attention_mask == 0, (n, 1, 1, t)))
        x, turn = self.embed(input_ids, places), self.turn(places)
        for layer in self.layers_of:
            x = layer(x, future, turn)
        return self.norm_of(x)

    def construct(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.head(self.hidden_states(input_ids, attention_mask))

    # ---- text, a token at a time --------------------------------------------------------------

    def read_prompt(self, ids: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """The logits after prompts, and the keys and values of their tokens.

        Args:
            ids: Tokens (N, T), padded on the left.
            first: Where every prompt begins, (N,).

        Returns:
            Logits (N, vocabulary) and (layers, 2, T, N, kept heads, D).
        """
        n, t = ids.shape
        order, first = F.arange(t), F.reshape(first, (n, 1))
        places = F.maximum(F.expand_dims(order, 0) - first, 0)
        future = F.expand_dims(order, 0) > F.expand_dims(order, 1)
        padding = F.reshape(F.expand_dims(order, 0) < first, (n, 1, 1, t))
        hidden = F.logical_or(future, padding)
        x, turn, kept = self.embed(ids, places), self.turn(places), []
        for layer in self.layers_of:
            q, k, v = layer.project(x, turn)
            kept += [F.transpose(k, (2, 0, 1, 3)), F.transpose(v, (2, 0, 1, 3))]
            x = layer.finish(x, join_heads(attend(q, k, v, hidden)))
        return self.head(self.norm_of(x[:, -1])), self._stacked(kept)

    def read_more(self, ids: Tensor, span: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """The logits after several more tokens of every text, and their keys and values.

        Args:
            ids: The tokens (N, T).
            span: As :meth:`read_token` takes it.
            cache: Likewise.

        Returns:
            Logits (N, vocabulary) and (layers, 2, T, N, kept heads, D).
        """
        (n, t), room = ids.shape, cache.shape[2]
        first, end = (F.reshape(span[:, i], (n, 1, 1, 1)) for i in (0, 1))
        order, old = F.arange(t), F.reshape(F.arange(room), (1, 1, 1, room))
        gone = F.broadcast_to(F.logical_or(old < first, old >= end), (n, 1, t, room))
        future = F.expand_dims(order, 0) > F.expand_dims(order, 1)
        hidden = F.concat((gone, F.broadcast_to(F.reshape(future, (1, 1, t, t)), (n, 1, t, t))), -1)
        places = F.expand_dims(order, 0) + F.expand_dims(span[:, 1] - span[:, 0], 1)
        x, turn, kept = self.embed(ids, places), self.turn(places), []
        for number, layer in enumerate(self.layers_of):
            q, *new = layer.project(x, turn)
            past = (F.transpose(cache[number, i], (1, 2, 0, 3)) for i in (0, 1))
            k, v = (F.concat(pair, 2) for pair in zip(past, new))
            kept += [F.transpose(part, (2, 0, 1, 3)) for part in new]
            x = layer.finish(x, join_heads(attend(q, k, v, hidden)))
        return self.head(self.norm_of(x[:, -1])), self._stacked(kept)

    def read_token(self, ids: Tensor, span: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """The logits after one more token of every text, and its keys and values.

        Args:
            ids: The tokens (N,).
            span: int32 (N, 2): where every text begins in the cache, and where it ends.
            cache: Keys and values so far, (layers, 2, room, N, kept heads, D).

        Returns:
            Logits (N, vocabulary) and (layers, 2, N, kept heads, D).
        """
        places = F.expand_dims(span[:, 1] - span[:, 0], 1)
        x, turn, kept = self.embed(F.expand_dims(ids, 1), places), self.turn(places), []
        for number, layer in enumerate(self.layers_of):
            q, k, v = (F.squeeze(part, 2) for part in layer.project(x, turn))
            scale = q.shape[-1] ** -0.5
            mixed = F.cached_attention(q, k, v, cache, span, layer=number, scale=scale)
            x = layer.finish(x, F.reshape(mixed, (*x.shape[:1], 1, -1)))
            kept += [k, v]
        return self.head(self.norm_of(x[:, 0])), self._stacked(kept)

    def _stacked(self, kept: list[Tensor]) -> Tensor:
        return F.reshape(F.stack(kept), (len(kept) // 2, 2, *kept[0].shape))

    def generate(
        self,
        input_ids: object,
        max_new_tokens: int = 20,
        *,
        attention_mask: object = None,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        num_beams: int = 1,
        length_penalty: float = 1.0,
        eos_token_id: object = None,
        pad_token_id: int | None = None,
        stop: object = (),
        streamer: object = None,
        past_key_values: object = None,
    ) -> Tensor:
        """Continues texts, a token at a time.

        The keys and values of the tokens are kept, so that a step reads one token. The first call
        compiles two functions, one for prompts and one for tokens; texts of any length use them,
        batches of another size their own.

        Args:
            input_ids: Tokens (N, T): a Tensor, an array, or a list of lists of any lengths, which
                are padded on the left.
            max_new_tokens: Tokens that are added at most.
            attention_mask: (N, T), 0 where a prompt is padded, which is on its left.
            do_sample: Whether tokens are drawn, instead of the likeliest one taken;
                :func:`tvmgraph.set_seed` makes that repeatable.
            temperature: Divides the logits that are drawn from.
            top_k: Draws from so many of the likeliest tokens; 0: all.
            top_p: Draws from the fewest likeliest tokens that have this probability together.
            num_beams: More than 1: searches for the likeliest text, so many at a time.
            length_penalty: What the log probability of a text is divided by in a search: its
                length to this power.
            eos_token_id: A token, or several, that end a text; by default as in the configuration.
            pad_token_id: What follows the end of a text; by default the configuration's, else the
                token that ends a text, else 0.
            stop: Sequences of tokens that end a text too.
            streamer: Gets the tokens of every step, (N,), as soon as they are known: a function,
                or an object with ``put`` and ``end``.
            past_key_values: A :class:`DynamicCache` that stays with a conversation: of a prompt
                that begins with the text before only the rest is read. For that once another
                function is compiled.

        Returns:
            int32 Tensor (N, T + new tokens), with the prompts.

        Raises:
            ArgumentError: if the arguments contradict each other, or the text would be longer than
                the network can read.
            ShapeError: if a shape is wrong.

        Example:
            >>> from tvmgraph.models import Gpt2, Gpt2Config
            >>> net = Gpt2(Gpt2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=2))
            >>> net.set_train(False).generate([[1, 2, 3], [4]], max_new_tokens=2).shape
            (2, 5)
        """
        from tvmgraph.models.generation import Settings, generate

        settings = Settings(
            max_new_tokens, do_sample, temperature, top_k, top_p, num_beams, length_penalty,
            eos_token_id, pad_token_id, stop, streamer,
        )  # fmt: skip
        return generate(self, input_ids, attention_mask, settings, past_key_values)
