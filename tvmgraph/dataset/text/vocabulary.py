"""Vocabularies and tables of word vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvmgraph.core.arguments import PathLike
from tvmgraph.dataset.base import Dataset, names_of
from tvmgraph.dataset.checks import count_of
from tvmgraph.errors import ArgumentError, DTypeError, either, reject


def words_of(value: object) -> list[str]:
    """Returns the strings of a string, a list or an array, as one list.

    Args:
        value: The words.
    """
    return [str(w) for w in np.asarray(value).reshape(-1)]


def _lines(op: str, file_path: PathLike) -> list[str]:
    path = Path(file_path)
    if not path.is_file():
        reject(either(ArgumentError, RuntimeError), op, f"there is no file {file_path}")
    return path.read_text("utf-8").splitlines()


class Vocab:
    """Words and their numbers; made by :meth:`from_list` and the like.

    Example:
        >>> text.Vocab.from_list(["a", "b"], ["<pad>"]).tokens_to_ids(["b", "c"])
        [2, -1]
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    @classmethod
    def from_list(
        cls, word_list: Sequence[str], special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:  # fmt: skip
        """Numbers the words of a list.

        Args:
            word_list: Different words.
            special_tokens: Words such as ``"<pad>"`` that stand before or behind them.
            special_first: Whether they stand before.

        Raises:
            ArgumentError: if a word comes twice.
            DTypeError: if a word is no string.
        """
        if isinstance(word_list, str):
            reject(DTypeError, "Vocab.from_list", f"a list of words is needed, not {word_list!r}")
        special, words = list(special_tokens or ()), list(word_list)
        listed = special + words if special_first else words + special
        for word in listed:
            if not isinstance(word, str):
                reject(DTypeError, "Vocab.from_list", f"a word is a str, not {word!r}")
        twice = [w for w, n in Counter(listed).items() if n > 1]
        if twice:
            reject(either(ArgumentError, RuntimeError), "Vocab.from_list",
                   f"{twice[0]!r} comes more than once")  # fmt: skip
        return cls.from_dict({w: i for i, w in enumerate(listed)})

    @classmethod
    def from_dict(cls, word_dict: Mapping[str, int]) -> Vocab:
        """Takes words with their numbers.

        Args:
            word_dict: Numbers by word.
        """
        found = cls()
        for word in word_dict:
            if not isinstance(word, str):
                reject(DTypeError, "Vocab.from_dict", f"a word is a str, not {word!r}")
        found._ids = {w: count_of("Vocab.from_dict", w, i, 0) for w, i in word_dict.items()}
        return found

    @classmethod
    def from_file(
        cls, file_path: PathLike, delimiter: str = "", vocab_size: int | None = None,
        special_tokens: Sequence[str] | None = None, special_first: bool = True,
    ) -> Vocab:  # fmt: skip
        """Numbers the first words of the lines of a file.

        Args:
            file_path: Its path.
            delimiter: What ends the word; the whole line is it by default.
            vocab_size: How many lines are read.
            special_tokens: See :meth:`from_list`.
            special_first: See :meth:`from_list`.
        """
        if vocab_size is not None:
            count_of("Vocab.from_file", "vocab_size", vocab_size, 1)
        lines = _lines("Vocab.from_file", file_path)[:vocab_size]
        words = [line.split(delimiter)[0] if delimiter else line for line in lines]
        return cls.from_list([w for w in words if w], special_tokens, special_first)

    @classmethod
    def from_dataset(
        cls, dataset: Dataset, columns: object = None, freq_range: Any = None,
        top_k: int | None = None, special_tokens: Sequence[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:  # fmt: skip
        """Numbers the words of a dataset, the most frequent first, equal ones by the alphabet.

        Args:
            dataset: The dataset.
            columns: The columns with words; all by default.
            freq_range: Least and largest frequency of a word; None is no limit.
            top_k: How many words are kept.
            special_tokens: See :meth:`from_list`.
            special_first: See :meth:`from_list`.
        """
        names = dataset.columns if columns is None else names_of("Vocab.from_dataset", columns)
        where = dataset._columns_at("Vocab.from_dataset", names)
        low, high = freq_range or (None, None)
        if low is not None and high is not None and not 0 <= low <= high:
            reject(ArgumentError, "Vocab.from_dataset", f"freq_range cannot be {freq_range}")
        if top_k is not None:
            count_of("Vocab.from_dataset", "top_k", top_k, 1)
        counts = Counter(
            w for row in dataset.rows(0) for c in where for w in words_of(row[c])
        )  # fmt: skip
        kept = sorted(
            (w for w, n in counts.items() if (low or 0) <= n <= (high or n)),
            key=lambda w: (-counts[w], w),
        )[:top_k]
        return cls.from_list(kept, special_tokens, special_first)

    def vocab(self) -> dict[str, int]:
        """Returns the numbers by word."""
        return dict(self._ids)

    def tokens_to_ids(self, tokens: str | Sequence[str]) -> int | list[int]:
        """Returns the number of a word, or of each of a list; -1 for unknown ones.

        Args:
            tokens: A word or a list of words.
        """
        if not all(isinstance(w, str) for w in np.ravel(np.asarray(tokens, object))):
            reject(DTypeError, "Vocab.tokens_to_ids", f"words are needed, not {tokens!r}")
        if np.ndim(tokens) > 1:
            reject(DTypeError, "Vocab.tokens_to_ids", f"one list is needed, not {tokens!r}")
        found = [self._ids.get(w, -1) for w in words_of(tokens)]
        return found[0] if np.ndim(tokens) == 0 else found

    def ids_to_tokens(self, ids: int | Sequence[int]) -> str | list[str]:
        """Returns the word of a number, or of each of a list; an empty one for unknown ones.

        Args:
            ids: A number or a list of numbers.
        """
        words = {i: w for w, i in self._ids.items()}
        for number in np.ravel(np.asarray(ids, object)):
            count_of("Vocab.ids_to_tokens", "an id", number, 0)
        found = [words.get(int(i), "") for i in np.asarray(ids).reshape(-1)]
        return found[0] if np.ndim(ids) == 0 else found


class Vectors:
    """Vectors of words from a file; made by :meth:`from_file`."""

    def __init__(self, table: dict[str, np.ndarray], size: int) -> None:
        self.table, self.size = table, size

    @classmethod
    def from_file(cls, file_path: PathLike, max_vectors: int | None = None) -> Vectors:
        """Reads lines ``word number number ...``; a first line of two numbers is a header.

        Args:
            file_path: Its path.
            max_vectors: How many lines are read.

        Raises:
            ArgumentError: if a line has another number of numbers.
        """
        op = f"{cls.__name__}.from_file"
        if max_vectors is not None:
            count_of(op, "max_vectors", max_vectors, 1)
        lines = [line.split() for line in _lines(op, file_path) if line.strip()]
        lines = lines[1:] if lines and len(lines[0]) == 2 else lines
        lines = lines[:max_vectors]
        widths = {len(line) for line in lines}
        if len(widths) > 1 or not lines:
            reject(either(ArgumentError, RuntimeError), op,
                   f"lines have {sorted(widths)} parts", fix="a word and its vector")  # fmt: skip
        table = {line[0]: np.array(line[1:], np.float32) for line in lines}
        return cls(table, widths.pop() - 1)

    def find(self, word: str) -> np.ndarray | None:
        """Returns the vector of a word, or None.

        Args:
            word: The word.
        """
        return self.table.get(word)


class GloVe(Vectors):
    """Vectors of words in GloVe's files."""


class FastText(Vectors):
    """Vectors of words in fastText's ``.vec`` files."""


class CharNGram(Vectors):
    """Vectors of words as the mean of those of their 2- to 4-grams of letters."""

    def find(self, word: str) -> np.ndarray | None:
        """Returns the mean of the vectors of the known n-grams, or None."""
        letters = ["#BEGIN#", *word, "#END#"]
        grams = [
            f"{n}gram-{''.join(letters[i : i + n])}"
            for n in (2, 3, 4) for i in range(len(letters) - n + 1)
        ]  # fmt: skip
        known = [self.table[g] for g in grams if g in self.table]
        return np.asarray(np.mean(known, 0, dtype=np.float32)) if known else None


def checked_words(op: str, value: object) -> Iterable[str]:
    """Returns strings, one per row.

    Args:
        op: Name of the transform.
        value: The strings, texts or bytes.

    Raises:
        DTypeError: if they are none.
    """
    array = np.asarray(value)
    if array.dtype.kind not in "US":
        reject(
            either(DTypeError, RuntimeError), f"text.{op}", f"strings are needed, not {array.dtype}"
        )
    return [w.decode() if isinstance(w, bytes) else str(w) for w in array.reshape(-1)]


__all__ = ["CharNGram", "FastText", "GloVe", "Vectors", "Vocab"]
