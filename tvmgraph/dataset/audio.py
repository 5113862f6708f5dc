"""Transforms of sounds for ``Dataset.map``, and words and matrices that they take."""

from __future__ import annotations

from tvmgraph.compat.paths import look
from tvmgraph.core.guard import guard_module
from tvmgraph.dataset import (
    audio_activity,
    audio_effects,
    audio_spectra,
    audio_transforms,
    audio_words,
)
from tvmgraph.dataset.audio_filters import CLASSES
from tvmgraph.dataset.checks import of_one_value as _of_one_value

__path__: list[str] = []  # a package in MindSpore
_ROOMS = (audio_activity, audio_effects, audio_spectra, audio_transforms, audio_words)
_PUBLIC = {**CLASSES, **{name: getattr(r, name) for r in _ROOMS for name in r.__all__}}
globals().update(_PUBLIC)
_of_one_value(_PUBLIC)
guard_module(_PUBLIC, "dataset.audio")


def __getattr__(name: str) -> object:
    return look(__name__, name, __all__)


__all__ = sorted(_PUBLIC)  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__() -> list[str]:
    return list(__all__)
