"""Words and matrices of sounds."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from tvmgraph.dataset.audio import (
    BorderType,
    MelType,
    NormMode,
    NormType,
    create_dct,
    linear_fbanks,
    melscale_fbanks,
)
from tvmgraph.dataset.audio.utils import WindowType  # pyright: ignore


def test_words_are_their_texts() -> None:
    assert WindowType.HANN == "hann" and BorderType("edge") is BorderType["EDGE"]


@pytest.mark.parametrize("norm", ["NONE", "ORTHO"])
def test_dct(norm: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 8))
    found = x @ create_dct(5, 8, NormMode[norm])
    table = 2 * np.cos(np.pi / 8 * np.outer(np.arange(8) + 0.5, np.arange(5)))
    if norm == "ORTHO":
        table *= np.sqrt(1 / 16) * np.where(np.arange(5) == 0, np.sqrt(0.5), 1)
    np.testing.assert_allclose(np.asarray(found), x @ table, atol=1e-5)


@pytest.mark.parametrize("kind", list(MelType))
def test_mel_bands(kind: enum.Enum) -> None:
    bands = melscale_fbanks(2001, 0.0, 8000.0, 20, 16000, mel_type=kind)
    assert bands.shape == (2001, 20) and bands.dtype == np.float32
    assert (np.diff(bands.argmax(0)) > 0).all() and (bands.max(0) > 0.95).all()
    inside = bands[bands[:, 0].argmax() + 1 : bands[:, -1].argmax()]
    np.testing.assert_allclose(inside.sum(1), 1, atol=1e-5)  # one falls as the next one rises
    scaled = melscale_fbanks(2001, 0.0, 8000.0, 20, 16000, NormType["SLANEY"], kind)
    np.testing.assert_allclose(scaled.sum(0) * 4, 1, atol=0.02)  # the area, in steps of 4 Hz


def test_mel_of_a_thousand_hertz() -> None:
    """Both scales are known at 1000 Hz: 1000 mel (HTK) and 15 (Slaney)."""
    for kind, mel in (("HTK", 1000.0), ("SLANEY", 15.0)):
        top = {"HTK": 700 * (10 ** (2 * mel / 2595) - 1), "SLANEY": 1000 * 6.4 ** (15 / 27)}[kind]
        bands = melscale_fbanks(16001, 0.0, top, 1, 32000, mel_type=MelType[kind])
        assert bands.argmax() == 1000


def test_linear_bands() -> None:
    np.testing.assert_allclose(linear_fbanks(9, 0.0, 8.0, 3, 16).argmax(0), [2, 4, 6])


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="n_mels must be an int"):
        create_dct(3, 4.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="n_mfcc must be positive"):
        create_dct(0, 4)
    with pytest.raises(TypeError, match="norm must be a NormMode"):
        create_dct(3, 4, "ortho")  # pyright: ignore[reportArgumentType]
