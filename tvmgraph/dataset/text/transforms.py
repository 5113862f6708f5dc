"""Transforms of text: strings and arrays of strings; tokenizers, which make words of a string."""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.compat.paths import as_package
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.shown import Shown
from tvmgraph.dataset.checks import count_of
from tvmgraph.dataset.text.vocabulary import Vectors, Vocab, checked_words
from tvmgraph.dataset.transforms import as_array
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject

__all__ = [
    "AddToken", "BasicTokenizer", "BertTokenizer", "CaseFold", "Lookup", "Ngram", "NormalizeForm",
    "NormalizeUTF8", "PythonTokenizer", "RegexReplace", "RegexTokenizer", "SlidingWindow",
    "ToNumber", "ToVectors", "Truncate", "TruncateSequencePair", "UnicodeCharTokenizer",
    "UnicodeScriptTokenizer", "WhitespaceTokenizer", "WordpieceTokenizer", "to_bytes", "to_str",
]  # fmt: skip


class NormalizeForm(enum.IntEnum):
    """Forms of Unicode."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


def _strings(op: str, value: object) -> np.ndarray:
    array = np.asarray(value)
    found = np.array(list(checked_words(op, array)) or [""], np.str_)
    return found.reshape(array.shape) if array.size else found


def _string(op: str, value: object) -> str:
    words = list(checked_words(op, value))
    if len(words) != 1:
        reject(either(ArgumentError, RuntimeError), f"text.{op}",
               f"one string is needed, not {len(words)}")  # fmt: skip
    return words[0]


def _list(words: Iterable[str]) -> np.ndarray:
    return np.array(list(words) or [""], np.str_)


class _PerString:
    """A transform of every string on its own."""

    def __call__(self, value: object) -> np.ndarray:
        """Returns the changed strings."""
        found = _strings(type(self).__name__, value)
        return np.array([self.change(w) for w in found.reshape(-1)], np.str_).reshape(found.shape)

    def change(self, word: str) -> str:
        """Returns one changed string.

        Args:
            word: The string.
        """
        raise NotImplementedError


class CaseFold(_PerString):
    """Makes letters small, so that equal words are equal strings."""

    def change(self, word: str) -> str:
        """Returns one changed string."""
        return word.casefold()


class NormalizeUTF8(_PerString):
    """Brings strings into a form of Unicode.

    Args:
        normalize_form: A member of :class:`NormalizeForm`.
    """

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        self.form = NormalizeForm(normalize_form)

    def change(self, word: str) -> str:
        """Returns one changed string."""
        if self.form == NormalizeForm.NONE:
            return word
        form: object = self.form.name
        return unicodedata.normalize(form, word)


class RegexReplace(_PerString):
    """Replaces what a pattern finds.

    Args:
        pattern: A regular expression of Python.
        replace: What stands there instead; ``$1`` is the first group, and what follows a
            backslash stands for itself.
        replace_all: Whether all places are replaced, else the first.
    """

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        self.pattern = _compiled("RegexReplace", pattern)
        self.replace = re.sub(
            r"\\(.)|\$(\d)", lambda m: f"\\{m[2]}" if m[2] else m[1].replace("\\", r"\\"), replace
        )
        self.count = 0 if replace_all else 1

    def change(self, word: str) -> str:
        """Returns one changed string."""
        return self.pattern.sub(self.replace, word, count=self.count)


def _compiled(op: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as e:
        reject(ArgumentError, f"text.{op}", f"{pattern!r} is no regular expression: {e}")


class AddToken:
    """Puts a word before or behind a list, or every row of a table, of words.

    Args:
        token: The word.
        begin: Whether it stands before.
    """

    def __init__(self, token: str, begin: bool = True) -> None:
        if not isinstance(token, str):
            reject(DTypeError, "text.AddToken", f"token must be a str, not {token!r}")
        self.token, self.begin = token, bool(begin)

    def __call__(self, value: object) -> np.ndarray:
        """Returns the longer list."""
        words = _strings("AddToken", value)
        token = np.broadcast_to(np.array(self.token), (*words.shape[:-1], 1))
        return np.concatenate([token, words] if self.begin else [words, token], -1)


class Lookup:
    """Replaces words by their numbers.

    Args:
        vocab: The vocabulary.
        unknown_token: The word that stands for unknown ones; without it they are an error.
        data_type: dtype of the numbers.
    """

    def __init__(
        self, vocab: Vocab, unknown_token: str | None = None, data_type: DTypeLike = dtypes.int32
    ) -> None:
        self.known, self.dtype = vocab.vocab(), dtypes.dtype_of(data_type).numpy
        self.unknown = None if unknown_token is None else self.known.get(unknown_token)
        if unknown_token is not None and self.unknown is None:
            reject(ArgumentError, "text.Lookup",
                   f"unknown_token {unknown_token!r} is not in the vocabulary")  # fmt: skip

    def __call__(self, value: object) -> np.ndarray:
        """Returns the numbers."""
        words = _strings("Lookup", value)
        found = [self.known.get(w, self.unknown) for w in words.reshape(-1)]
        if None in found:
            reject(either(ArgumentError, RuntimeError), "text.Lookup",
                   f"{str(words.reshape(-1)[found.index(None)])!r} is not in the vocabulary",
                   fix="give unknown_token")  # fmt: skip
        return np.array(found, self.dtype).reshape(words.shape)


class Ngram:
    """Joins neighbouring words.

    Args:
        n: How many, or a list of numbers.
        left_pad: A word, and how often it stands before the first one.
        right_pad: A word, and how often it stands behind the last one.
        separator: What stands between the words of an n-gram.
    """

    def __init__(
        self,
        n: int | Sequence[int],
        left_pad: tuple[str, int] = ("", 0),
        right_pad: tuple[str, int] = ("", 0),
        separator: str = " ",
    ) -> None:
        self.sizes = [count_of("Ngram", "n", k, 1) for k in ([n] if isinstance(n, int) else n)]
        self.left, self.right, self.separator = left_pad, right_pad, separator
        if not self.sizes or any(len(pad) != 2 for pad in (left_pad, right_pad)):
            reject(ArgumentError, "text.Ngram", "n needs a number, a pad a word and a number")
        for word, times in (left_pad, right_pad):
            count_of("Ngram", f"how often {word!r} is repeated", times, 0)
        if not isinstance(separator, str):
            reject(DTypeError, "text.Ngram", f"separator must be a str, not {separator!r}")

    def __call__(self, value: object) -> np.ndarray:
        """Returns the n-grams, those of the first size first; "" where the words are too few."""
        words = list(checked_words("Ngram", value))
        found = []
        for n in self.sizes:
            padded = [self.left[0]] * min(self.left[1], n - 1) + words
            padded += [self.right[0]] * min(self.right[1], n - 1)
            grams = (padded[i : i + n] for i in range(len(padded) - n + 1))
            found += [self.separator.join(g) for g in grams] or [""]
        return _list(found)


class SlidingWindow:
    """Returns all parts of a length, one per row.

    Args:
        width: The length.
        axis: Only the first.
    """

    def __init__(self, width: int, axis: int = 0) -> None:
        self.width = count_of("SlidingWindow", "width", width, 1)
        if axis not in (0, -1):
            reject(
                either(ArgumentError, RuntimeError),
                "text.SlidingWindow",
                f"axis must be 0 or -1, not {axis!r}",
            )

    def __call__(self, value: object) -> np.ndarray:
        """Returns (length - width + 1, width) elements, or none if there are fewer."""
        found = as_array(value)
        if found.ndim != 1:
            reject(ShapeError, "text.SlidingWindow",
                   f"elements have one axis, not {found.ndim}")  # fmt: skip
        if self.width > len(found):
            return found[:0]
        return np.lib.stride_tricks.sliding_window_view(found, self.width).copy()


class ToNumber:
    """Reads strings as numbers.

    Args:
        data_type: dtype of the numbers.
    """

    def __init__(self, data_type: DTypeLike) -> None:
        self.dtype = dtypes.dtype_of(data_type).numpy
        if self.dtype.kind not in "iuf":
            reject(DTypeError, "text.ToNumber", f"{self.dtype} is no dtype of numbers")

    def __call__(self, value: object) -> np.ndarray:
        """Returns the numbers."""
        words = _strings("ToNumber", value)
        kind = float if self.dtype.kind == "f" else int
        try:
            with np.errstate(over="ignore"):
                found = [self.dtype.type(kind(w)) for w in words.reshape(-1)]
        except (ValueError, OverflowError) as e:
            reject(either(ArgumentError, RuntimeError), "text.ToNumber", f"no {self.dtype}: {e}")
        for number, word in zip(found, words.reshape(-1)):
            if np.isinf(number) and "inf" not in word.lower():
                reject(either(ArgumentError, RuntimeError), "text.ToNumber",
                       f"{word} is outside of the range of {self.dtype}")  # fmt: skip
        return np.array(found, self.dtype).reshape(words.shape)


class ToVectors:
    """Replaces words by their vectors.

    Args:
        vectors: Of :class:`Vectors` or a class like it.
        unk_init: The vector of unknown words; zeros by default.
        lower_case_backup: Whether the small letters of unknown words are tried.
    """

    def __init__(
        self, vectors: Vectors, unk_init: object = None, lower_case_backup: bool = False
    ) -> None:
        self.vectors, self.lower = vectors, bool(lower_case_backup)
        zeros = np.zeros(vectors.size, np.float32)
        self.unknown = zeros if unk_init is None else np.asarray(unk_init, np.float32)
        if self.unknown.shape != zeros.shape:
            reject(either(ArgumentError, RuntimeError), "text.ToVectors",
                   f"unk_init has {self.unknown.size} elements, vectors {zeros.size}")  # fmt: skip

    def __call__(self, value: Any) -> np.ndarray:
        """Returns a row per word."""
        rows = [self._find(w) for w in checked_words("ToVectors", value)]
        return rows[0] if np.ndim(value) == 0 else np.stack(rows)

    def _find(self, word: str) -> np.ndarray:
        found = self.vectors.find(word)
        if found is None and self.lower:
            found = self.vectors.find(word.lower())
        return self.unknown if found is None else found


class Truncate:
    """Keeps the first elements.

    Args:
        max_seq_len: How many.
    """

    def __init__(self, max_seq_len: int) -> None:
        self.most = count_of("Truncate", "max_seq_len", max_seq_len, 1)

    def __call__(self, value: object) -> np.ndarray:
        """Returns the elements."""
        return np.asarray(value)[..., : self.most]


class TruncateSequencePair:
    """Drops last elements of the longer of two lists until both together are short enough.

    Args:
        max_length: Of both together.
    """

    def __init__(self, max_length: int) -> None:
        self.most = count_of("TruncateSequencePair", "max_length", max_length, 0)

    def __call__(self, first: object, second: object) -> tuple[np.ndarray, np.ndarray]:
        """Returns both lists."""
        first, second = as_array(first), as_array(second)
        a, b = len(first), len(second)
        over = max(a + b - self.most, 0)
        level = min(over, abs(a - b))
        a, b = (a - level, b) if a > b else (a, b - level)
        rest = over - level
        return first[: a - rest // 2], second[: b - (rest - rest // 2)]


def to_bytes(array: object, encoding: str = "utf8") -> np.ndarray:
    """Encodes strings.

    Args:
        array: Strings.
        encoding: How.
    """
    return np.char.encode(_strings("to_bytes", array), encoding)


def to_str(array: object, encoding: str = "utf8") -> np.ndarray:
    """Decodes bytes.

    Args:
        array: Bytes.
        encoding: How.
    """
    found = np.asarray(array)
    if found.dtype.kind != "S":
        reject(DTypeError, "text.to_str", f"bytes are needed, not {found.dtype}")
    return np.char.decode(found, encoding)


__path__, __getattr__ = as_package(__name__, "dataset.text")  # MindSpore has tokenizers here


# ---- tokenizers ---------------------------------------------------------------------------------


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
