"""Transforms of text, vocabularies and word vectors."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.dataset.checks import of_one_value as _of_one_value
from tvmgraph.dataset.text.tokenizers import (
    BasicTokenizer,
    BertTokenizer,
    PythonTokenizer,
    RegexTokenizer,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from tvmgraph.dataset.text.transforms import (
    AddToken,
    CaseFold,
    Lookup,
    Ngram,
    NormalizeForm,
    NormalizeUTF8,
    RegexReplace,
    SlidingWindow,
    ToNumber,
    ToVectors,
    Truncate,
    TruncateSequencePair,
    to_bytes,
    to_str,
)
from tvmgraph.dataset.text.vocabulary import CharNGram, FastText, GloVe, Vectors, Vocab


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = [
    "AddToken", "BasicTokenizer", "BertTokenizer", "CaseFold", "CharNGram", "FastText", "GloVe",
    "Lookup", "Ngram", "NormalizeForm", "NormalizeUTF8", "PythonTokenizer", "RegexReplace",
    "RegexTokenizer", "SlidingWindow", "ToNumber", "ToVectors", "Truncate", "TruncateSequencePair",
    "UnicodeCharTokenizer", "UnicodeScriptTokenizer", "Vectors", "Vocab", "WhitespaceTokenizer",
    "WordpieceTokenizer", "to_bytes", "to_str",
]  # fmt: skip

_of_one_value(globals())
_guard_module(globals(), "dataset.text")
