"""Text: mistakes are of MindSpore's classes; results beside its own are in tests/compat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph.dataset import text

WORDS = text.Vocab.from_list(["a", "b"])


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (TypeError, lambda: text.Vocab.from_list("abc")),
        (RuntimeError, lambda: text.Vocab.from_list(["a"], ["a"])),
        (TypeError, lambda: text.Vocab.from_dict({1: 2})),
        (RuntimeError, lambda: text.Vocab.from_file("no such file")),
        (ValueError, lambda: text.Vocab.from_file(__file__, vocab_size=0)),
        (ValueError, lambda: text.Vectors.from_file(__file__, -1)),
        (TypeError, lambda: WORDS.tokens_to_ids(3)),
        (TypeError, lambda: WORDS.tokens_to_ids([["a"]])),
        (ValueError, lambda: WORDS.ids_to_tokens([-1])),
        (RuntimeError, lambda: text.Lookup(WORDS)(np.array([1]))),
        (RuntimeError, lambda: text.WhitespaceTokenizer()(np.array(["a b", "c"]))),
        (RuntimeError, lambda: text.ToNumber(ms.int8)(np.array(["200"]))),
        (TypeError, lambda: text.ToNumber(ms.bool_)),
        (ValueError, lambda: text.Ngram([])),
        (TypeError, lambda: text.Ngram(2, separator=1)),
        (TypeError, lambda: text.AddToken(1)),
        (ValueError, lambda: text.Truncate(0)),
    ],
)
def test_mistakes_are_those_of_mindspore(error: type[Exception], make: Any) -> None:
    with pytest.raises(error):
        make()


def test_groups_are_named_with_dollars() -> None:
    assert text.RegexReplace("(a)(b)", "$2$1")("abab") == "baba"
    assert text.RegexReplace("(a)(b)", r"\2\1")("abab") == "2121"
    assert text.RegexReplace("a", r"\\")("aba") == r"\b" + "\\"


def test_windows_longer_than_the_list_are_none() -> None:
    assert text.SlidingWindow(5)(np.array([1, 2])).shape == (0,)


def test_words_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("w1,x\nw2,y\nw3,z\n")
    found = text.Vocab.from_file(path, ",", 2, ["<pad>"], False)
    assert found.vocab() == {"w1": 0, "w2": 1, "<pad>": 2}


def test_words_beside_the_first_are_counted() -> None:
    with pytest.raises(ValueError, match="'str' is repeated must be an int of at least 0, not -1"):
        text.Ngram(1, ("str", -1))


def test_windows_slide_over_one_axis() -> None:
    window = text.SlidingWindow(2)
    assert window(["a", "b", "c"]).tolist() == [["a", "b"], ["b", "c"]]
    with pytest.raises(RuntimeError, match="one axis, not 2"):
        window([["a", "b"]])
