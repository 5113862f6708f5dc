"""Transforms of a string into words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tvmgraph.core.shown import Shown
from tvmgraph.dataset.checks import count_of
from tvmgraph.dataset.text.transforms import NormalizeForm, NormalizeUTF8, _compiled, _list, _string
from tvmgraph.dataset.text.vocabulary import Vocab, checked_words
from tvmgraph.errors import DTypeError, reject

Token = tuple[str, int, int]  # a word, and where it begins and ends, in bytes of UTF-8


class Tokenizer(Shown):
    """A transform of a string into a list of words.

    Args:
        with_offsets: Whether the places where words begin and end, in bytes of UTF-8, come too.
    """

    def __init__(self, with_offsets: bool = False) -> None:
        self.with_offsets = bool(with_offsets)

    def __call__(self, value: object) -> Any:
        """Returns the words, or words, begins and ends."""
        found = self.tokens(_string(type(self).__name__, value))
        words = _list(w for w, _, _ in found)
        if not self.with_offsets:
            return words
        ends = np.array([t[1:] for t in found] or [(0, 0)], np.uint32)
        return words, ends[:, 0].copy(), ends[:, 1].copy()

    def tokens(self, text: str) -> list[Token]:
        """Returns the words with their places.

        Args:
            text: The string.
        """
        raise NotImplementedError


def _placed(text: str, spans: Iterable[tuple[int, int]]) -> list[Token]:
    """Returns the parts of a string between places, those in bytes."""
    length = np.concatenate([[0], np.cumsum([len(c.encode()) for c in text])]).astype(int)
    return [(text[a:b], int(length[a]), int(length[b])) for a, b in spans if b > a]


class WhitespaceTokenizer(Tokenizer):
    """Splits at white space.

    Args:
        with_offsets: See :class:`Tokenizer`.
    """

    def tokens(self, text: str) -> list[Token]:
        """Returns the words with their places."""
        return _placed(text, (m.span() for m in re.finditer(r"\S+", text)))


class UnicodeCharTokenizer(Tokenizer):
    """Splits into characters.

    Args:
        with_offsets: See :class:`Tokenizer`.
    """

    def tokens(self, text: str) -> list[Token]:
        """Returns the characters with their places."""
        return _placed(text, ((i, i + 1) for i in range(len(text))))


class UnicodeScriptTokenizer(Tokenizer):
    """Splits where the script (Latin, Greek, Han, ...) changes, and at white space.

    Args:
        keep_whitespace: Whether white space is kept as words.
        with_offsets: See :class:`Tokenizer`.
    """

    def __init__(self, keep_whitespace: bool = False, with_offsets: bool = False) -> None:
        super().__init__(with_offsets)
        self.keep = bool(keep_whitespace)

    def tokens(self, text: str) -> list[Token]:
        """Returns the words with their places."""
        kinds = [_script(c) for c in text]
        cuts = [i for i in range(1, len(text)) if kinds[i] != kinds[i - 1]]
        spans = zip([0, *cuts], [*cuts, len(text)])
        return _placed(text, (s for s in spans if self.keep or not text[s[0]].isspace()))


def _script(letter: str) -> str:
    """Returns the first word of a letter's name, which names its script."""
    if letter.isspace():
        return "space"
    if unicodedata.category(letter)[0] not in "LM":
        return "common"
    return unicodedata.name(letter, "common").split()[0]


class RegexTokenizer(Tokenizer):
    """Splits at what a pattern finds.

    Args:
        delim_pattern: A regular expression of Python.
        keep_delim_pattern: What is found and is found by this one as well is kept as a word.
        with_offsets: See :class:`Tokenizer`.
    """

    def __init__(
        self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False
    ) -> None:
        super().__init__(with_offsets)
        self.pattern = _compiled("RegexTokenizer", delim_pattern)
        self.kept = _compiled("RegexTokenizer", keep_delim_pattern)

    def tokens(self, text: str) -> list[Token]:
        """Returns the words with their places."""
        spans, last = [], 0
        for match in self.pattern.finditer(text):
            spans.append((last, match.start()))
            if self.kept.pattern and self.kept.fullmatch(match.group()):
                spans.append(match.span())
            last = match.end()
        return _placed(text, [*spans, (last, len(text))])


_UNUSED = r"\[(?:CLS|SEP|UNK|PAD|MASK|unused\d+)\]"


class BasicTokenizer(Tokenizer):
    """Splits at white space, around punctuation and around Chinese characters, as BERT does.

    Args:
        lower_case: Whether letters become small and lose their accents.
        keep_whitespace: Whether white space is kept as words.
        normalization_form: The form of Unicode; without effect when ``lower_case``.
        preserve_unused_token: Whether words such as ``[CLS]`` and ``[unused1]`` stay whole.
        with_offsets: See :class:`Tokenizer`; they are places in the normalized string.
    """

    def __init__(
        self, lower_case: bool = False, keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True, with_offsets: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(with_offsets)
        self.lower, self.keep = bool(lower_case), bool(keep_whitespace)
        self.normalize = NormalizeUTF8(normalization_form)
        self.preserve = bool(preserve_unused_token)

    def tokens(self, text: str) -> list[Token]:
        """Returns the words with their places."""
        parts = re.split(f"({_UNUSED})", text) if self.preserve else [text]
        whole = {i for i in range(1, len(parts), 2)}
        parts = [p if i in whole else self._normal(p) for i, p in enumerate(parts)]
        spans, start = [], 0
        for i, part in enumerate(parts):
            own = [(0, len(part))] if i in whole else self._split(part)
            spans += [(start + a, start + b) for a, b in own]
            start += len(part)
        return _placed("".join(parts), spans)

    def _normal(self, text: str) -> str:
        if self.lower:
            text = unicodedata.normalize("NFD", text.casefold())
            text = "".join(c for c in text if unicodedata.category(c) != "Mn")
        else:
            text = self.normalize.change(text)
        return "".join(
            " " if unicodedata.category(c) in ("Cc", "Cf") and not c.isspace() else c for c in text
        )

    def _split(self, text: str) -> list[tuple[int, int]]:
        kinds = [_basic_kind(i, c) for i, c in enumerate(text)]
        cuts = [i for i in range(1, len(text)) if kinds[i] != kinds[i - 1]]
        spans = zip([0, *cuts], [*cuts, len(text)])
        return [s for s in spans if s[1] > s[0] and (self.keep or not text[s[0]].isspace())]


def _basic_kind(place: int, letter: str) -> object:
    """Returns what neighbours of one word share; punctuation and Chinese share nothing."""
    if letter.isspace():
        return "space"
    punctuation = unicodedata.category(letter)[0] == "P" or (
        letter.isascii() and not letter.isalnum()
    )
    return place if punctuation or unicodedata.name(letter, "").startswith("CJK") else "word"


class WordpieceTokenizer(Tokenizer):
    """Splits words into the longest parts that a vocabulary has.

    Args:
        vocab: The vocabulary.
        suffix_indicator: What stands before parts that do not begin a word.
        max_bytes_per_token: Longer words stay as they are.
        unknown_token: What a word becomes that cannot be split; the word itself if empty.
        with_offsets: See :class:`Tokenizer`.
    """

    def __init__(
        self, vocab: Vocab, suffix_indicator: str = "##", max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]", with_offsets: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(with_offsets)
        self.known, self.indicator = vocab.vocab(), suffix_indicator
        self.most = count_of("WordpieceTokenizer", "max_bytes_per_token", max_bytes_per_token, 0)
        self.unknown = unknown_token

    def __call__(self, value: object) -> Any:
        """Returns the parts of every word, or parts, begins and ends within the word."""
        found = [t for w in checked_words("WordpieceTokenizer", value) for t in self.tokens(w)]
        words = _list(w for w, _, _ in found)
        if not self.with_offsets:
            return words
        return words, *(np.array([t[i] for t in found], np.uint32) for i in (1, 2))

    def tokens(self, text: str) -> list[Token]:
        """Returns the parts of one word.

        Args:
            text: One word.
        """
        size = len(text.encode())
        if size > self.most:
            return [(self.unknown or text, 0, size)]
        found, start = [], 0
        while start < len(text):
            prefix = self.indicator if start else ""
            end = next(
                (e for e in range(len(text), start, -1) if prefix + text[start:e] in self.known), 0
            )
            if not end:
                return [(self.unknown or text, 0, size)]
            [(part, a, b)] = _placed(text, [(start, end)])
            found.append((prefix + part, a, b))
            start = end
        return found


class BertTokenizer(Tokenizer):
    """Splits as :class:`BasicTokenizer`, then as :class:`WordpieceTokenizer`.

    Args:
        vocab: The vocabulary.
        suffix_indicator: See :class:`WordpieceTokenizer`.
        max_bytes_per_token: See :class:`WordpieceTokenizer`.
        unknown_token: See :class:`WordpieceTokenizer`.
        lower_case: See :class:`BasicTokenizer`.
        keep_whitespace: See :class:`BasicTokenizer`.
        normalization_form: See :class:`BasicTokenizer`.
        preserve_unused_token: See :class:`BasicTokenizer`.
        with_offsets: See :class:`Tokenizer`.
    """

    def __init__(
        self, vocab: Vocab, suffix_indicator: str = "##", max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]", lower_case: bool = False, keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True, with_offsets: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(with_offsets)
        self.basic = BasicTokenizer(
            lower_case, keep_whitespace, normalization_form, preserve_unused_token
        )
        self.pieces = WordpieceTokenizer(
            vocab, suffix_indicator, max_bytes_per_token, unknown_token
        )

    def tokens(self, text: str) -> list[Token]:
        """Returns the words with their places.

        Args:
            text: The string.
        """
        return [
            (part, start + a, start + b)
            for word, start, _ in self.basic.tokens(text)
            for part, a, b in self.pieces.tokens(word)
        ]


class PythonTokenizer:
    """Splits a string by a function.

    Args:
        tokenizer: A function from a string to a list of strings.
    """

    def __init__(self, tokenizer: Callable[[str], Sequence[str]]) -> None:
        if not callable(tokenizer):
            reject(DTypeError, "text.PythonTokenizer", "tokenizer must be callable")
        self.tokenizer = tokenizer

    def __call__(self, value: object) -> np.ndarray:
        """Returns the words."""
        return _list(self.tokenizer(_string("PythonTokenizer", value)))


__all__ = [
    "BasicTokenizer", "BertTokenizer", "PythonTokenizer", "RegexTokenizer", "UnicodeCharTokenizer",
    "UnicodeScriptTokenizer", "WhitespaceTokenizer", "WordpieceTokenizer",
]  # fmt: skip
