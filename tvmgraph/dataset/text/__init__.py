"""Transforms of text, vocabularies and word vectors."""

from typing import Any

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.dataset.checks import of_one_value as _of_one_value
from tvmgraph.dataset.text.transforms import *  # noqa: F403
from tvmgraph.dataset.text.vocabulary import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return look(__name__, name, __all__)


__all__ = _public_names(globals())

_of_one_value(globals())
_guard_module(globals(), "dataset.text")


def __dir__() -> list[str]:
    return list(__all__)
