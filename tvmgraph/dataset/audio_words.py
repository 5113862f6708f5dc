"""Words and matrices of sounds, which their transforms take."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from tvmgraph.errors import ArgumentError, DTypeError, reject


def _words(name: str, what: str, words: str, spelt: str = "lower") -> type[enum.Enum]:
    members = {word: getattr(word, spelt)() for word in words.split()}
    made: Any = enum.Enum(name, members, type=str, module="tvmgraph.dataset.audio")
    made.__doc__ = f"{what}: {', '.join(f'``{word}``' for word in members)}."
    return made


BorderType = _words("BorderType", "How a border is filled", "CONSTANT EDGE REFLECT SYMMETRIC")
DensityFunction = _words("DensityFunction", "Density of added noise", "TPDF RPDF GPDF", "upper")
FadeShape = _words("FadeShape", "Course of a fade",
                   "QUARTER_SINE HALF_SINE LINEAR LOGARITHMIC EXPONENTIAL")  # fmt: skip
GainType = _words("GainType", "What a gain counts", "AMPLITUDE POWER DB")
Interpolation = _words("Interpolation", "How values between are found", "LINEAR QUADRATIC")
MelType = _words("MelType", "Formula of the mel scale", "HTK SLANEY")
Modulation = _words("Modulation", "Shape of a modulation", "SINUSOIDAL TRIANGULAR")
NormMode = _words("NormMode", "Scale of a cosine transform", "ORTHO NONE")
NormType = _words("NormType", "Scale of bands", "SLANEY NONE")
ResampleMethod = _words("ResampleMethod", "How rates are changed",
                        "SINC_INTERPOLATION KAISER_WINDOW")  # fmt: skip
ScaleType = _words("ScaleType", "What a spectrum counts", "POWER MAGNITUDE")
WindowType = _words("WindowType", "Form of a window", "BARTLETT BLACKMAN HAMMING HANN KAISER")


def _require_counts(op: str, **counts: int) -> None:
    for name, value in counts.items():
        if not isinstance(value, int):
            reject(DTypeError, op, f"{name} must be an int, not {value!r}")
        if value <= 0:
            reject(ArgumentError, op, f"{name} must be positive, not {value}")


def create_dct(n_mfcc: int, n_mels: int, norm: enum.Enum = NormMode["NONE"]) -> np.ndarray:
    r"""Returns the cosine transform (type 2) of mel bands as a matrix of float32.

    Args:
        n_mfcc: How many coefficients are kept.
        n_mels: How many bands there are.
        norm: ``NormMode.ORTHO`` for orthonormal columns.

    Returns:
        Array of shape :math:`(n_{mels}, n_{mfcc})`, to be multiplied from the right.

    Raises:
        DTypeError: if a number is no int, or ``norm`` no NormMode.
        ArgumentError: if a number is not positive.

    Example:
        >>> ms.dataset.audio.create_dct(1, 4).tolist()
        [[2.0], [2.0], [2.0], [2.0]]
    """
    _require_counts("create_dct", n_mfcc=n_mfcc, n_mels=n_mels)
    row = np.arange(n_mfcc)
    matrix = np.cos(np.pi / n_mels * (np.arange(n_mels)[:, None] + 0.5) * row)
    if norm is NormMode["ORTHO"]:
        matrix *= np.sqrt(np.where(row == 0, 1, 2) / n_mels)
    else:
        matrix *= 2
    return matrix.astype(np.float32)


#: The HTK formula, and Slaney's: linear up to 1000 Hz, then 27 steps per factor of 6.4.
_STEP, _BREAK = 200 / 3, 1000.0
_LOG_STEP = np.log(6.4) / 27


def _mel(hertz: float, kind: enum.Enum) -> float:
    if kind is MelType["HTK"]:
        return 2595 * np.log10(1 + hertz / 700)
    return hertz / _STEP if hertz < _BREAK else _BREAK / _STEP + np.log(hertz / _BREAK) / _LOG_STEP


def _hertz(mel: np.ndarray, kind: enum.Enum) -> np.ndarray:
    if kind is MelType["HTK"]:
        return 700 * (10 ** (mel / 2595) - 1)
    above = mel - _BREAK / _STEP
    return np.where(above >= 0, _BREAK * np.exp(_LOG_STEP * above), _STEP * mel)


def _triangles(points: np.ndarray, n_freqs: int, sample_rate: int) -> np.ndarray:
    """Returns the bands that rise from one point to the next and fall to the one after it."""
    frequencies = np.linspace(0, sample_rate / 2, n_freqs)[:, None]
    rise = (frequencies - points[:-2]) / (points[1:-1] - points[:-2])
    fall = (points[2:] - frequencies) / (points[2:] - points[1:-1])
    return np.maximum(0, np.minimum(rise, fall))


def melscale_fbanks(
    n_freqs: int, f_min: float, f_max: float, n_mels: int, sample_rate: int,
    norm: enum.Enum = NormType["NONE"], mel_type: enum.Enum = MelType["HTK"],
) -> np.ndarray:  # fmt: skip
    r"""Returns the bands of the mel scale as a matrix of float32.

    Args:
        n_freqs: How many frequencies a spectrum has.
        f_min: Where the first band begins, in Hz.
        f_max: Where the last band ends, in Hz.
        n_mels: How many bands there are.
        sample_rate: Samples of the sound per second.
        norm: ``NormType.SLANEY`` divides by the width of a band.
        mel_type: The formula of the scale.

    Returns:
        Array of shape :math:`(n_{freqs}, n_{mels})`.

    Raises:
        DTypeError: if a number is no int, or a word of another kind.
        ArgumentError: if a number is not positive.

    Example:
        >>> ms.dataset.audio.melscale_fbanks(5, 0.0, 8000.0, 2, 16000).argmax(0).tolist()
        [1, 2]
    """
    op = "melscale_fbanks"
    _require_counts(op, n_freqs=n_freqs, n_mels=n_mels, sample_rate=sample_rate)
    mels = np.linspace(_mel(f_min, mel_type), _mel(f_max, mel_type), n_mels + 2)
    points = _hertz(mels, mel_type)
    bands = _triangles(points, n_freqs, sample_rate)
    if norm is NormType["SLANEY"]:
        bands *= 2 / (points[2:] - points[:-2])
    return bands.astype(np.float32)


def linear_fbanks(
    n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int
) -> np.ndarray:
    r"""Returns bands of equal width as a matrix of float32.

    Args:
        n_freqs: How many frequencies a spectrum has.
        f_min: Where the first band begins, in Hz.
        f_max: Where the last band ends, in Hz.
        n_filter: How many bands there are.
        sample_rate: Samples of the sound per second.

    Returns:
        Array of shape :math:`(n_{freqs}, n_{filter})`.

    Raises:
        DTypeError: if a number is no int.
        ArgumentError: if a number is not positive.

    Example:
        >>> ms.dataset.audio.linear_fbanks(5, 0.0, 8000.0, 3, 16000).argmax(0).tolist()
        [1, 2, 3]
    """
    _require_counts("linear_fbanks", n_freqs=n_freqs, n_filter=n_filter, sample_rate=sample_rate)
    points = np.linspace(f_min, f_max, n_filter + 2)
    return _triangles(points, n_freqs, sample_rate).astype(np.float32)


__all__ = [
    "BorderType", "DensityFunction", "FadeShape", "GainType", "Interpolation", "MelType",
    "Modulation", "NormMode", "NormType", "ResampleMethod", "ScaleType", "WindowType",
    "create_dct", "linear_fbanks", "melscale_fbanks",
]  # fmt: skip
