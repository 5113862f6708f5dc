"""Transforms of text: strings and arrays of strings."""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.compat.paths import as_package
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.dataset.checks import count_of
from tvmgraph.dataset.text.vocabulary import Vectors, Vocab, checked_words
from tvmgraph.dataset.transforms import as_array
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, either, reject


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


__all__ = [
    "AddToken", "CaseFold", "Lookup", "Ngram", "NormalizeForm", "NormalizeUTF8", "RegexReplace",
    "SlidingWindow", "ToNumber", "ToVectors", "Truncate", "TruncateSequencePair", "to_bytes",
    "to_str",
]  # fmt: skip
