"""Making text with a language model: choosing tokens, beams, and the cache of keys and values."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.common._sampling import generator
from tvmgraph.core.storage import aligned_empty, aligned_zeros, is_ready
from tvmgraph.core.tensor import Tensor, tensor_from_numpy
from tvmgraph.errors import ArgumentError, ShapeError, reject
from tvmgraph.jit.api import jit
from tvmgraph.models.language import LanguageModel

#: Tokens by which the room of a cache grows.
_ROOM = 64


@dataclass
class Settings:
    """The arguments of :meth:`.LanguageModel.generate`."""

    max_new_tokens: int
    do_sample: bool
    temperature: float
    top_k: int
    top_p: float
    num_beams: int
    length_penalty: float
    eos_token_id: Any
    pad_token_id: int | None
    stop: Any
    streamer: Any

    def check(self) -> None:
        """Raises ArgumentError where a value is not allowed."""
        for name, least in (("max_new_tokens", 1), ("top_k", 0), ("num_beams", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                _reject(f"{name} must be an int of at least {least}", f"{name}={value!r}")
        if self.streamer is not None and not callable(getattr(self.streamer, "put", self.streamer)):
            _reject("streamer must be a function, or have put and end", f"{self.streamer!r}"[:80])
        if not self.temperature > 0:
            _reject("temperature must be positive", f"temperature={self.temperature}",
                    "leave do_sample=False to take the likeliest token")  # fmt: skip
        if not 0 < self.top_p <= 1:
            _reject("top_p must lie in (0, 1]", f"top_p={self.top_p}")
        for name, given in (("do_sample", self.do_sample), ("stop", self.stop),
                            ("streamer", self.streamer is not None)):  # fmt: skip
            if self.num_beams > 1 and given:
                _reject(f"{name} does not go with num_beams > 1", f"num_beams={self.num_beams}",
                        f"leave out {name} or num_beams")  # fmt: skip


class DynamicCache:
    """Keys and values of a text that goes on, for ``generate(..., past_key_values=cache)``.

    A call reads the tokens of its prompt from the first on that is another one than in the call
    before, and leaves here what it read and wrote. The result is the same as without; a cache of
    other weights than now does not fit, make a new one after training or rounding.

    Example:
        >>> from tvmgraph.models import DynamicCache, Gpt2, Gpt2Config
        >>> net = Gpt2(Gpt2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=2)).set_train(False)
        >>> cache = DynamicCache()
        >>> text = net.generate([[1, 2, 3]], 4, past_key_values=cache).asnumpy()
        >>> longer = [[*text[0].tolist(), 5, 6]]
        >>> net.generate(longer, 4, past_key_values=cache).shape
        (1, 13)
        >>> cache.get_seq_length()
        12
    """

    def __init__(self) -> None:
        self.net: Any = None
        self.array, self.first, self.tokens = _NOTHING, _NOTHING, _NOTHING

    def get_seq_length(self) -> int:
        """Returns how many tokens it holds."""
        return self.tokens.shape[-1]

    def reset(self) -> None:
        """Forgets all of them."""
        self.__init__()

    def shared(self, net: object, ids: np.ndarray, first: np.ndarray) -> int:
        """How many tokens of prompts need not be read; one must be, for its logits.

        Args:
            net: The network that reads.
            ids: Tokens of the prompts (N, T).
            first: Number of the first token of each prompt that is no padding (N,).
        """
        if self.net is not None and self.net() is not net:
            _reject("past_key_values must be of the same network", "a cache of another one",
                    "make a DynamicCache for every network and text")  # fmt: skip
        if len(self.tokens) != len(ids) or (self.first != first).any():
            return 0
        most = min(self.tokens.shape[1], ids.shape[1] - 1)
        differ = (self.tokens[:, :most] != ids[:, :most]).any(0)
        return int(differ.argmax()) if differ.any() else most

    def keep(self, reader: _Reader, text: np.ndarray) -> None:
        """Takes over what was read of a text.

        Args:
            reader: What read the text.
            text: Its tokens (N, T).
        """
        self.net, self.array = weakref.ref(reader.net), reader.array
        self.first = reader.span[:, 0].copy()
        self.tokens = text[:, : reader.span[0, 1]]


_NOTHING = np.zeros((0, 0), np.int32)


def generate(
    net: LanguageModel, input_ids: object, attention_mask: object, how: Settings, past: Any = None
) -> Tensor:
    """Continues texts, see :meth:`.LanguageModel.generate`.

    Args:
        net: The network.
        input_ids: Tokens of the prompts (N, T).
        attention_mask: 1 for tokens and 0 for padding (N, T), or None.
        how: How tokens are chosen, and how many.
        past: A :class:`DynamicCache` of what was read before.
    """
    how.check()
    if past is not None and (not isinstance(past, DynamicCache) or how.num_beams > 1):
        _reject("past_key_values must be a DynamicCache, and num_beams 1",
                f"a {type(past).__name__}, num_beams={how.num_beams}")  # fmt: skip
    ends = _ends(net, how.eos_token_id)
    pad = how.pad_token_id
    if pad is None:
        pad = getattr(net.config, "pad_token_id", None)
    if pad is None:
        pad = ends[0] if ends else 0
    ids, first = _prompts(input_ids, attention_mask, pad)
    longest = ids.shape[1] + how.max_new_tokens
    if longest > net.most_tokens:
        _reject(f"the text would be of {longest} tokens, the network reads {net.most_tokens}",
                f"{ids.shape[1]} tokens, max_new_tokens={how.max_new_tokens}",
                "shorten the prompts or max_new_tokens")  # fmt: skip
    if ids.min() < 0 or ids.max() >= net.embedding_table.shape[0]:
        _reject(f"tokens must lie in [0, {net.embedding_table.shape[0]})", f"{ids.max()}")
    ids = ids.astype(np.int32)
    training = net.training
    net.set_train(False)
    try:
        reader = _Reader(net, ids, first, longest, past)
        if how.num_beams > 1:
            found = _search(reader, ids, how, ends, pad)
        else:
            found = _continue(reader, ids, how, ends, pad)
            if past is not None:
                past.keep(reader, found)
    finally:
        net.set_train(training)
    return tensor_from_numpy(np.ascontiguousarray(found, np.int32))


def _reject(rule: str, got: str, fix: str | None = None) -> None:
    raise ArgumentError(rule, op="generate", got=got, fix=fix)


def _ends(net: LanguageModel, given: int | Sequence[int] | None) -> list[int]:
    """The tokens that end a text."""
    found = getattr(net.config, "eos_token_id", None) if given is None else given
    return [] if found is None else [int(token) for token in np.atleast_1d(found)]


def _prompts(given: object, mask: object, pad: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (N, T), and where the prompts begin."""
    if isinstance(given, Sequence) and given and not isinstance(given, str):
        if mask is not None:
            _reject("prompts of several lengths are padded here", "attention_mask and lists",
                    "leave attention_mask out, or give a Tensor")  # fmt: skip
        texts = [_tokens(text, 1, "input_ids") for text in given]
        length = max(map(len, texts))
        rows = [np.pad(text, (length - len(text), 0), constant_values=pad) for text in texts]
        return np.stack(rows), np.array([length - len(text) for text in texts], np.int32)
    ids = _tokens(given, 2, "input_ids")
    first = np.zeros(len(ids), np.int32)
    if mask is not None:
        seen = np.asarray(mask.asnumpy() if isinstance(mask, Tensor) else mask) != 0
        if seen.shape != ids.shape:
            raise ShapeError("attention_mask must have the shape of input_ids", op="generate",
                             got=f"{seen.shape} and {ids.shape}")  # fmt: skip
        first = np.argmax(seen, 1).astype(np.int32)
        if not seen[:, -1].all() or (np.diff(seen.astype(np.int8), axis=1) < 0).any():
            _reject("prompts must be padded on the left", "attention_mask with other zeros",
                    "give the tokens as lists")  # fmt: skip
    return ids, first


def _tokens(given: object, axes: int, name: str) -> np.ndarray:
    """Reads whole numbers; axes of a text are 1, of several 2."""
    try:
        found = np.asarray(given.asnumpy() if isinstance(given, Tensor) else given)
    except (ValueError, OverflowError):  # rows of several lengths, numbers beyond all types
        found = np.asarray(None)
    if found.ndim != axes or not found.size or found.dtype.kind not in "iu":
        reject(ShapeError, "generate", f"{name} must be lists of whole numbers, one list per text",
               f"{given!r}"[:80], "give tokens, such as [[1, 2, 3], [4]]")  # fmt: skip
    return found.astype(np.int64)


# ---- reading ------------------------------------------------------------------------------------

#: The compiled functions of a network, for every size of a batch.
_compiled: weakref.WeakKeyDictionary[object, dict[int, tuple[object, ...]]] = (
    weakref.WeakKeyDictionary()
)


def _functions(net: LanguageModel, batch: int) -> tuple[Any, ...]:
    """What reads prompts, a token, and the rest of a prompt; sizes that grow are symbolic."""
    made = _compiled.setdefault(net, {})
    if batch not in made:
        held = weakref.proxy(net)
        cache = (len(net.layers_of), 2, None, batch, net.kept_heads, net.head_size)
        rows = Tensor(shape=[batch, None], dtype=dtypes.int32)
        first = Tensor(shape=[batch], dtype=dtypes.int32)
        span = Tensor(shape=[batch, 2], dtype=dtypes.int32)
        room = Tensor(shape=list(cache), dtype=dtypes.float32)

        def read_prompt(ids: Tensor, first: Tensor) -> Any:
            return held.read_prompt(ids, first)

        def read_token(ids: Tensor, span: Tensor, cache: Tensor) -> Any:
            return held.read_token(ids, span, cache)

        def read_more(ids: Tensor, span: Tensor, cache: Tensor) -> Any:
            return held.read_more(ids, span, cache)

        made[batch] = (
            jit(read_prompt, input_signature=(rows, first)),
            jit(read_token, input_signature=(first, span, room)),
            jit(read_more, input_signature=(rows, span, room)),
        )
    return made[batch]


class _Reader:
    """Reads texts into a cache, and gives the logits of what comes next.

    Args:
        net: The network.
        ids: Prompts (N, T).
        first: Where they begin.
        longest: Tokens of a text at most.
        past: What was read before.
    """

    def __init__(
        self,
        net: LanguageModel,
        ids: np.ndarray,
        first: np.ndarray,
        longest: int,
        past: DynamicCache | None = None,
    ) -> None:
        self.net = net
        self.read_prompt, self.read_token, self.read_more = _functions(net, len(ids))
        shared = 0 if past is None else past.shared(net, ids, first)
        if past is not None and shared:
            past.tokens = past.tokens[:, :shared]  # what follows is written over, to the end or not
            self.span = np.stack([first, np.full_like(first, shared)], 1)
            self._make_room(past.array, shared, longest)
            self._read_rest(ids[:, shared:])
            return
        if ids.shape[1] == 1:  # a size of 1 is no size that varies: other code would be made for it
            ids, first, longest = np.repeat(ids, 2, 1), first + 1, longest + 1
        logits, kept = self.read_prompt(tensor_from_numpy(ids), tensor_from_numpy(first))
        self.logits, prompt = logits.asnumpy(), kept.asnumpy()
        self.span = np.stack([first, np.full_like(first, ids.shape[1])], 1)
        self._make_room(prompt, ids.shape[1], longest)

    def _make_room(self, before: np.ndarray, count: int, longest: int) -> None:
        """Makes the cache, with so many tokens of another one."""
        room = -(-longest // _ROOM) * _ROOM
        if room > before.shape[2] or not is_ready(before):
            shape = (*before.shape[:2], room, *before.shape[3:])
            self.array = aligned_zeros(shape, before.dtype)  # 0 times what is hidden must be 0
            self.array[:, :, :count] = before[:, :, :count]
        else:
            self.array = before
        self.cache = tensor_from_numpy(self.array)

    def _read_rest(self, ids: np.ndarray) -> None:
        if ids.shape[1] == 1:
            self.read(ids[:, 0])
            return
        now, end = tensor_from_numpy(self.span.copy()), self.span[0, 1] + ids.shape[1]
        ids = np.ascontiguousarray(ids)
        logits, kept = self.read_more(tensor_from_numpy(ids), now, self.cache)
        self.array[:, :, self.span[0, 1] : end] = kept.asnumpy()
        self.span[:, 1] = end
        self.logits = logits.asnumpy()

    def read(self, tokens: np.ndarray) -> np.ndarray:
        """Reads one more token of every text; returns the next logits (N, vocabulary)."""
        now = tensor_from_numpy(self.span.copy())
        logits, kept = self.read_token(tensor_from_numpy(tokens), now, self.cache)
        self.array[:, :, self.span[0, 1]] = kept.asnumpy()
        self.span[:, 1] += 1
        self.logits = logits.asnumpy()
        return self.logits

    def repeat(self, times: int) -> None:
        """Makes so many copies of every text."""
        _, self.read_token, _ = _functions(self.net, len(self.span) * times)
        self.span = np.repeat(self.span, times, 0)
        before = self.array
        shape = (*before.shape[:3], len(self.span), *before.shape[4:])
        self.array = aligned_empty(shape, before.dtype)  # what is not aligned would be copied
        for copy in range(times):
            self.array[:, :, :, copy::times] = before
        self.cache = tensor_from_numpy(self.array)

    def take(self, texts: np.ndarray) -> None:
        """Goes on with other texts, by their numbers."""
        end = self.span[0, 1]
        self.array[:, :, :end] = self.array[:, :, :end, texts]
        self.span = self.span[texts]


# ---- choosing -----------------------------------------------------------------------------------


def _continue(
    reader: _Reader, ids: np.ndarray, how: Settings, ends: list[int], pad: int
) -> np.ndarray:
    stops = [_tokens(np.atleast_1d(words), 1, "stop") for words in how.stop]
    put = _receiver(how.streamer)
    random = generator(how.max_new_tokens * len(ids)) if how.do_sample else None
    text = [ids]
    over, logits = np.zeros(len(ids), bool), reader.logits
    for step in range(how.max_new_tokens):
        tokens = logits.argmax(1) if random is None else _draw(logits, how, random)
        tokens = np.where(over, pad, tokens).astype(np.int32)
        text.append(tokens[:, None])
        put(tokens)
        over |= np.isin(tokens, ends)
        if stops:
            new = np.concatenate(text[1:], 1)
            for words in stops:
                if len(words) <= new.shape[1]:
                    over |= (new[:, new.shape[1] - len(words) :] == words).all(1)
        if over.all() or step == how.max_new_tokens - 1:
            break
        logits = reader.read(tokens)
    if hasattr(how.streamer, "end"):
        how.streamer.end()
    return np.concatenate(text, 1)


def _receiver(streamer: Any) -> Callable[[np.ndarray], Any]:
    if streamer is None:
        return lambda tokens: None
    return streamer.put if hasattr(streamer, "put") else streamer


def _draw(logits: np.ndarray, how: Settings, random: np.random.Generator) -> np.ndarray:
    """One token of every text, of the likeliest ones."""
    scores = logits / np.float32(how.temperature)
    if 0 < how.top_k < scores.shape[1]:
        least = np.partition(scores, -how.top_k, 1)[:, -how.top_k, None]
        scores = np.where(scores < least, -np.inf, scores)
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    if how.top_p < 1:
        order = np.argsort(-chances, 1)
        ranked = np.take_along_axis(chances, order, 1)
        ranked[np.cumsum(ranked, 1) - ranked >= how.top_p] = 0  # the likeliest one always stays
        np.put_along_axis(chances, order, ranked, 1)
        chances /= chances.sum(1, keepdims=True)
    # the largest of -log(u) / p as a race of exponential clocks: one pass, and no sums to round
    clocks = random.exponential(size=chances.shape).astype(np.float32)
    with np.errstate(divide="ignore"):
        return np.argmin(clocks / chances, 1)


def _search(
    reader: _Reader, ids: np.ndarray, how: Settings, ends: list[int], pad: int
) -> np.ndarray:
    """The likeliest texts that a search with beams finds."""
    logits = np.repeat(reader.logits, how.num_beams, 0)
    reader.repeat(how.num_beams)
    beams = _Beams(ids, how, ends, pad)
    for step in range(1, how.max_new_tokens + 1):
        texts = beams.go_on(logits, step)
        if step == how.max_new_tokens or beams.is_done(step):
            break
        reader.take(texts)
        logits = reader.read(beams.text[:, -1].copy())
    return beams.best()


class _Beams:
    """The texts that a search goes on with, and those that ended.

    Args:
        ids: Prompts.
        how: The settings.
        ends: Tokens that end a text.
        pad: What follows an end.
    """

    def __init__(self, ids: np.ndarray, how: Settings, ends: list[int], pad: int) -> None:
        self.count, self.penalty, self.ends, self.pad = how.num_beams, how.length_penalty, ends, pad
        self.text, self.length = np.repeat(ids, self.count, 0), ids.shape[1]
        self.scores = np.full((len(ids), self.count), -np.inf)
        self.scores[:, 0] = 0  # the copies of a prompt are one text
        self.found: list[list[tuple[float, np.ndarray]]] = [[] for _ in ids]

    def go_on(self, logits: np.ndarray, step: int) -> np.ndarray:
        """Adds a token to the likeliest texts; returns which texts those were."""
        best = logits.max(1, keepdims=True)
        chances = logits - best - np.log(np.exp(logits - best).sum(1, keepdims=True))
        ranked = self.scores[..., None] + chances.reshape(*self.scores.shape, -1)
        chosen, tokens = np.zeros(self.scores.shape, np.int64), np.full(self.scores.shape, self.pad)
        scores = np.full(self.scores.shape, -np.inf)
        for row, of_row in enumerate(ranked):
            kept = self._likeliest(row, of_row, step)
            for place, (beam, token, score) in enumerate(kept):
                chosen[row, place], tokens[row, place], scores[row, place] = beam, token, score
        texts = (chosen + np.arange(len(chosen))[:, None] * self.count).reshape(-1)
        self.text = np.concatenate([self.text[texts], tokens.reshape(-1, 1)], 1).astype(np.int32)
        self.scores = scores
        return texts

    def _likeliest(self, row: int, ranked: np.ndarray, step: int) -> list[tuple[int, int, float]]:
        """Beam, token and score of the texts of a prompt to go on with; keeps those that end."""
        words, flat = ranked.shape[1], ranked.reshape(-1)
        most = min(len(flat), self.count * (1 + len(self.ends)))
        order = np.argpartition(-flat, most - 1)[:most]
        kept: list[tuple[int, int, float]] = []
        for rank, place in enumerate(order[np.argsort(-flat[order], kind="stable")]):
            beam, token = divmod(int(place), words)
            if len(kept) == self.count or flat[place] == -np.inf:
                break
            if token not in self.ends:
                kept.append((beam, token, float(flat[place])))
            elif rank < self.count:
                whole = np.append(self.text[row * self.count + beam], token)
                self.found[row].append((float(flat[place]) / step**self.penalty, whole))
        self.found[row] = sorted(self.found[row], key=lambda f: -f[0])[: self.count]
        return kept

    def is_done(self, step: int) -> bool:
        """Whether no text can become better than those that ended."""
        return all(
            len(f) == self.count and f[-1][0] >= self.scores[row, 0] / step**self.penalty
            for row, f in enumerate(self.found)
        )

    def best(self) -> np.ndarray:
        """The best text of every prompt, of those that ended and those that did not."""
        texts, step = [], self.text.shape[1] - self.length
        for row, found in enumerate(self.found):
            open_ = [(float(score) / step**self.penalty, self.text[row * self.count + beam])
                     for beam, score in enumerate(self.scores[row])]  # fmt: skip
            texts.append(max([*found, *open_], key=lambda pair: pair[0])[1])
        longest = max(map(len, texts))
        return np.stack(
            [np.pad(t, (0, longest - len(t)), constant_values=self.pad) for t in texts]
        ).astype(np.int32)
