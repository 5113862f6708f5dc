"""Transforms of sounds; their results beside MindSpore's are in tests/compat/test_dataset.py."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest

import tvmgraph as ms
from tvmgraph import dataset
from tvmgraph.dataset import audio
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


SOUND = np.random.default_rng(2).uniform(-1, 1, (3, 2, 500)).astype(np.float32)


@pytest.mark.parametrize("a", [[2.0, -1.8, 0.9], [1.0, -0.9, 0.2, 0.1, 0.0], [1.0]])
def test_a_recursive_filter_is_its_recursion(a: list[float]) -> None:
    b = list(np.random.default_rng(3).uniform(-0.3, 0.3, len(a)))
    x = SOUND[0, 0].astype(np.float64)
    y = np.zeros_like(x)
    for n in range(len(x)):
        past = [
            (b[i] * x[n - i] - (a[i] * y[n - i] if i else 0)) for i in range(min(n + 1, len(a)))
        ]
        y[n] = sum(past) / a[0]
    np.testing.assert_allclose(audio.LFilter(a, b, clamp=False)(x), y, 1e-9, 1e-12)
    found = audio.LFilter(a, b)(SOUND)
    assert found.dtype == np.float32 and np.abs(found).max() <= 1
    np.testing.assert_allclose(found[0, 0], np.clip(y, -1, 1), 1e-4, 1e-5)


def test_random_masks_differ_per_spectrum() -> None:
    ms.set_seed(4)
    spectra = np.ones((6, 40, 50), np.float32)
    for mask, axis in (
        (audio.FrequencyMasking(True, 20, 0, 7.0), 2),
        (audio.TimeMasking(True, 20), 1),
    ):
        found = mask(spectra)
        masked = (found != 1).all(axis)
        assert (spectra == 1).all()
        widths = masked.sum(1)
        assert widths.max() <= 20 and len(set(widths)) > 1
        for row in masked:  # one range
            assert np.count_nonzero(np.diff(row.astype(int)) == 1) <= 1


def test_sounds_are_transformed_in_a_pipeline() -> None:
    data = dataset.NumpySlicesDataset({"sound": SOUND.reshape(6, 500)}, shuffle=False)
    data = data.map([audio.LowpassBiquad(8000, 1000.0), audio.MelSpectrogram(8000, 64, n_mels=9)],
                    "sound", python_multiprocessing=True, num_parallel_workers=2)  # fmt: skip
    found = [row[0] for row in data.create_tuple_iterator(output_numpy=True)]
    want = audio.MelSpectrogram(8000, 64, n_mels=9)(audio.LowpassBiquad(8000, 1000.0)(SOUND[0, 1]))
    assert len(found) == 6 and found[0].shape == (9, 16)
    np.testing.assert_allclose(found[1], want, 1e-6)


def test_frequencies_are_found_again() -> None:
    """What is random in MindSpore, or too long for float32: by what it is for."""
    at = np.arange(4000) / 8000
    tone = np.sin(2 * np.pi * 500 * at)
    for steps, wanted in ((12, 1000), (-12, 250), (0, 500)):
        shifted = audio.PitchShift(8000, steps)(tone)
        assert shifted.shape == tone.shape
        assert abs(np.abs(np.fft.rfft(shifted)).argmax() * 2 - wanted) <= 2
    bands = audio.MelScale(20, 8000, n_stft=101)
    spectrum = np.abs(np.random.default_rng(1).normal(size=(2, 101, 5)))
    found = audio.InverseMelScale(101, 20, 8000)(bands(spectrum))
    assert found.shape == spectrum.shape and (found >= 0).all()
    np.testing.assert_allclose(bands(found), bands(spectrum), 0.35)
    sizes = audio.Spectrogram(64)(tone)
    heard = audio.Spectrogram(64)(audio.GriffinLim(64, 50)(sizes))
    assert np.abs(np.sqrt(heard) - np.sqrt(sizes)).mean() < 0.1 * np.sqrt(sizes).mean()
    # Six samples of the sound (at most 6), half a step of rounding, 2 of scaling by 32766 / 32768.
    for noise in audio.DensityFunction:
        assert np.abs(audio.Dither(noise)(tone) - tone).max() <= 8.5 / 32768


def test_halves_become_single() -> None:
    half = SOUND.astype(np.float16)
    assert audio.Overdrive()(half).dtype == audio.Gain()(half).dtype == np.float32
    assert audio.Flanger(8000)(half).dtype == audio.LFilter([1.0], [1.0])(half).dtype == half.dtype


def test_whole_samples_become_single_floats() -> None:
    sound = np.array([[-2, -3, 0], [2, 2, 3]])
    assert audio.Gain(20.0)(sound).tolist() == [[-20, -30, 0], [20, 20, 30]]
    assert audio.Gain()(sound).dtype == audio.Spectrogram(2)(sound).dtype == np.float32
    assert audio.Fade(0, 1)(sound).tolist() == sound.tolist()
    kept = audio.Flanger(44100, modulation=audio.Modulation.TRIANGULAR)(sound)
    assert kept.dtype == sound.dtype and kept.tolist() == [[-1, -1, 0], [1, 1, 1]]


def test_a_window_without_a_least_size() -> None:
    frames = np.array([[1.0], [2.0], [6.0]])
    found = audio.SlidingWindowCmn(3, 0, center=True)(frames)
    np.testing.assert_allclose(found, frames - [[3.0], [3.0], [3.0]])


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (ValueError, lambda: audio.Overdrive(200.0)),
        (ValueError, lambda: audio.Phaser(44100, 2.0)),
        (ValueError, lambda: audio.Flanger(44100, 40.0)),
        (RuntimeError, lambda: audio.Flanger(44100)(SOUND[0, 0])),
        (TypeError, lambda: audio.Dither("TPDF")),
        (RuntimeError, lambda: audio.DetectPitchFrequency(8000)(SOUND)),
        (ValueError, lambda: audio.MFCC(dct_type=3)),
        (ValueError, lambda: audio.GriffinLim(momentum=-1.0)),
        (ValueError, lambda: audio.Resample(0, 10)),
        (ValueError, lambda: audio.TimeStretch(n_freq=0)),
        (ValueError, lambda: audio.PitchShift(8000, 4, 0)),
        (ValueError, lambda: audio.LowpassBiquad(8000, 1000.0, 1.5)),
        (ValueError, lambda: audio.LowpassBiquad(0, 1000.0)),
        (TypeError, lambda: audio.LowpassBiquad(8000.0, 1000.0)),
        (TypeError, lambda: audio.BandBiquad(8000, 100.0, noise=1)),
        (ValueError, lambda: audio.DeemphBiquad(8000)),
        (ValueError, lambda: audio.RiaaBiquad(8000)),
        (ValueError, lambda: audio.LFilter([0.0, 1.0], [1.0, 1.0])),
        (RuntimeError, lambda: audio.LowpassBiquad(8000, 1000.0)(np.arange(4))),
        (TypeError, lambda: audio.Angle()(np.ones((3, 2), np.int32))),
        (ValueError, lambda: audio.LowpassBiquad(2**40, 1000.0)),
        (ValueError, lambda: audio.EqualizerBiquad(8000, 1000.0, -(2.0**30))),
        (TypeError, lambda: audio.Flanger(8000, interpolation="linear")),
        (TypeError, lambda: audio.AmplitudeToDB(None)),
        (ValueError, lambda: audio.SlidingWindowCmn(600, 2**40)),
        (ValueError, lambda: audio.Gain(2.0**30)),
        (ValueError, lambda: audio.Vol(-1.0)),
        (ValueError, lambda: audio.Vol(0.0, audio.GainType.POWER)),
        (ValueError, lambda: audio.Fade(600)(SOUND)),
        (ValueError, lambda: audio.MaskAlongAxis(0, 3, 0.0, 3)),
        (ValueError, lambda: audio.TimeMasking(False, 600)(SOUND)),
        (ValueError, lambda: audio.MelScale(n_stft=9)(SOUND)),
        (ValueError, lambda: audio.Angle()(SOUND)),
    ],
)
def test_wrong_arguments_of_transforms(error: type[Exception], make: Any) -> None:
    with pytest.raises(error):
        make()


def _speech(rate: int, begins: float, seconds: float = 3.0) -> np.ndarray:
    """Noise, and from some moment on a voice of 120 Hz with its overtones."""
    time = np.arange(int(rate * seconds)) / rate
    voice = sum(np.sin(2 * np.pi * 120 * k * time) / k for k in range(1, 12))
    noise = np.random.default_rng(1).normal(scale=0.01, size=time.size)
    return noise + np.where(time > begins, voice * 0.5, 0)


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
@pytest.mark.parametrize("begins", [0.8, 1.7])
def test_what_comes_before_speech_is_cut_off(rate: int, begins: float) -> None:
    sound = _speech(rate, begins)
    left = audio.Vad(rate)(sound)
    assert np.array_equal(left, sound[len(sound) - len(left) :])
    cut = (len(sound) - len(left)) / rate
    assert begins - 0.2 < cut <= begins
    earlier = audio.Vad(rate, pre_trigger_time=0.25)(sound)
    assert len(earlier) - len(left) == int(0.25 * rate + 0.5)
    both = audio.Vad(rate)(np.stack([_speech(rate, begins + 0.5), sound]).astype(np.float32))
    assert both.shape == (2, len(left)) and both.dtype == np.float32


def test_short_noises_and_silence_are_no_speech() -> None:
    sound = _speech(8000, 2.0)
    sound[4000:4400] += _speech(8000, 0.0)[4000:4400]
    full = audio.Vad(8000, search_time=2.0, allowed_gap=2.0)(sound)
    late = audio.Vad(8000, search_time=2.0, allowed_gap=0.1)(sound)
    assert len(late) < 9200 < len(full)  # the noise belongs to the speech only if the gap may be
    assert audio.Vad(8000)(_speech(8000, 9.0)).size == audio.Vad(8000)(np.zeros(8000)).size == 0
    assert audio.Vad(8000)(np.zeros((2, 10), np.int16)).shape == (2, 0)
    assert len(audio.Vad(8000, trigger_level=-1.0)(sound)) == len(sound)
    with pytest.raises(ValueError, match="search_time"):
        audio.Vad(8000, search_time=-1.0)
    with pytest.raises(ValueError, match="noise_up_time"):
        audio.Vad(8000, noise_up_time=0.001)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_pitches_are_float32_whatever_the_sound_is(dtype: type) -> None:
    tone = np.sin(2 * np.pi * 200 * np.arange(4000) / 8000).astype(dtype)
    found = audio.DetectPitchFrequency(8000, 0.02, 5, 100, 1000)(tone)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 200, rtol=0.02)
