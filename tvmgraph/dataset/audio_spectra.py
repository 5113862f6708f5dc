"""Transforms of sounds by their spectra: cepstra, pitches, other lengths, and the way back."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tvmgraph.core.shown import Shown
from tvmgraph.dataset.audio_filters import floats_of, padded
from tvmgraph.dataset.audio_transforms import (
    AmplitudeToDB,
    Formula,
    MelScale,
    MelSpectrogram,
    Spectrogram,
    parts_of,
)
from tvmgraph.dataset.audio_words import (
    BorderType,
    MelType,
    NormMode,
    NormType,
    ResampleMethod,
    WindowType,
    create_dct,
    linear_fbanks,
)
from tvmgraph.dataset.config import generator
from tvmgraph.errors import ArgumentError, ShapeError, reject

_HANN = WindowType["HANN"]
_TINY = 1e-9  # keeps silence from being divided by nothing


def require_positive(op: str, **numbers: float) -> None:
    """Makes sure that numbers are above 0.

    Args:
        op: Name of the transform.
        numbers: They, by name.

    Raises:
        ArgumentError: naming the first that is not.
    """
    for name, value in numbers.items():
        if not value > 0:
            reject(ArgumentError, op, f"{name} must be positive, not {value}")


# ---- cepstra and summaries ----------------------------------------------------------------------


class _Cepstrum(Shown):
    """The cosine transform of the logarithm of a spectrum's bands."""

    dct: np.ndarray
    log: bool

    def _bands(self, value: object) -> np.ndarray:
        raise NotImplementedError

    def __call__(self, value: object) -> np.ndarray:
        bands = self._bands(value)
        loud = np.log(bands + 1e-6) if self.log else AmplitudeToDB()(bands)
        return (self.dct.T @ loud).astype(np.float32)


class MFCC(_Cepstrum):
    """Returns the cepstrum of a sound by bands of the mel scale: [..., n_mfcc, windows].

    Args:
        sample_rate: Samples of the sound per second.
        n_mfcc: How many coefficients are kept.
        dct_type: 2.
        norm: Scale of the cosine transform.
        log_mels: Whether logarithms are taken of the bands instead of decibels.
        melkwargs: Arguments of :class:`MelSpectrogram`.

    Raises:
        ArgumentError: for another ``dct_type``, or more coefficients than bands.
    """

    def __init__(
        self, sample_rate: int = 16000, n_mfcc: int = 40, dct_type: int = 2,
        norm: enum.Enum = NormMode["ORTHO"], log_mels: bool = False,
        melkwargs: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.mel = MelSpectrogram(sample_rate, **(melkwargs or {}))
        count = self.mel.mel.bands.shape[1]
        if dct_type != 2 or n_mfcc > count:
            reject(ArgumentError, "MFCC", f"dct_type must be 2, and n_mfcc at most {count}")
        self.dct, self.log = create_dct(n_mfcc, count, norm), log_mels

    def _bands(self, value: object) -> np.ndarray:
        return self.mel(value)


class LFCC(_Cepstrum):
    """Returns the cepstrum of a sound by bands of equal width: [..., n_lfcc, windows].

    Args:
        sample_rate: Samples of the sound per second.
        n_filter: How many bands there are.
        n_lfcc: How many coefficients are kept.
        f_min: Where the first band begins, in Hz.
        f_max: Where the last band ends; half the rate by default.
        dct_type: 2.
        norm: Scale of the cosine transform.
        log_lf: Whether logarithms are taken of the bands instead of decibels.
        speckwargs: Arguments of :class:`Spectrogram`.

    Raises:
        ArgumentError: for another ``dct_type``, or more coefficients than frequencies.
    """

    def __init__(
        self, sample_rate: int = 16000, n_filter: int = 128, n_lfcc: int = 40, f_min: float = 0.0,
        f_max: float | None = None, dct_type: int = 2, norm: enum.Enum = NormMode["ORTHO"],
        log_lf: bool = False, speckwargs: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.spectrogram = Spectrogram(**(speckwargs or {}))
        count = self.spectrogram.n_fft // 2 + 1
        if dct_type != 2 or n_lfcc > self.spectrogram.n_fft:
            reject(ArgumentError, "LFCC", "dct_type must be 2, and n_lfcc at most n_fft")
        most = sample_rate // 2 if f_max is None else f_max
        self.bands = linear_fbanks(count, f_min, most, n_filter, sample_rate)
        self.dct, self.log = create_dct(n_lfcc, n_filter, norm), log_lf

    def _bands(self, value: object) -> np.ndarray:
        return self.bands.T @ self.spectrogram(value)


class SpectralCentroid(Shown):
    """Returns the mean frequency of every window, weighed by loudness: [..., 1, windows].

    Args:
        sample_rate: Samples of the sound per second.
        n_fft: Samples that one transform takes.
        win_length: Samples of the window; ``n_fft`` by default.
        hop_length: Samples between two windows; half a window by default.
        pad: Zeros to put at both ends.
        window: Form of the window.
    """

    def __init__(
        self, sample_rate: int, n_fft: int = 400, win_length: int | None = None,
        hop_length: int | None = None, pad: int = 0, window: enum.Enum = _HANN,
    ) -> None:  # fmt: skip
        require_positive("SpectralCentroid", sample_rate=sample_rate)
        self.spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, 1.0)
        self.frequencies = np.linspace(0, sample_rate // 2, n_fft // 2 + 1)

    def __call__(self, value: object) -> np.ndarray:
        loud = self.spectrogram(value)
        return ((self.frequencies @ loud) / loud.sum(-2))[..., None, :].astype(loud.dtype)


class SlidingWindowCmn(Formula):
    """Takes the mean of the frames around away from every frame of features (..., time, feature).

    Args:
        cmn_window: How many frames the mean is of.
        min_cmn_window: How many at least, at the beginning; only if not ``center``.
        center: Whether the frames lie around the frame, else before it.
        norm_vars: Whether the deviation of the frames becomes 1, too.
    """

    def __init__(
        self, cmn_window: int = 600, min_cmn_window: int = 100, center: bool = False,
        norm_vars: bool = False,
    ) -> None:  # fmt: skip
        for name, value in (("cmn_window", cmn_window), ("min_cmn_window", min_cmn_window)):
            if not 0 <= value < 2**31:
                reject(ArgumentError, "SlidingWindowCmn", f"{name} cannot be {value}")
        self.window, self.least = cmn_window, min_cmn_window
        self.center, self.norm_vars = center, norm_vars

    def _range(self, t: int, count: int) -> tuple[int, int]:
        start = t - self.window // 2 if self.center else t - self.window
        stop = start + self.window if self.center else t + 1
        start, stop = max(start, 0), stop - min(start, 0)
        if not self.center and stop > t:
            stop = max(t + 1, self.least)
        return max(start - max(stop - count, 0), 0), min(stop, count)

    def _changed(self, x: np.ndarray) -> np.ndarray:
        found, wide = np.empty(x.shape), x.astype(np.float64)
        for t in range(x.shape[-2]):
            start, stop = self._range(t, x.shape[-2])
            around = wide[..., start:stop, :]
            found[..., t, :] = wide[..., t, :] - around.mean(-2)
            if self.norm_vars:
                spread = around.std(-2)
                found[..., t, :] = 0 if stop - start == 1 else found[..., t, :] / spread
        return found


class DetectPitchFrequency(Formula):
    """Returns the pitch of every frame in float32, by the lag after which a sound is most like
    itself.

    Args:
        sample_rate: Samples of the sound per second.
        frame_time: Seconds of a frame.
        win_length: Over how many frames the median is taken.
        freq_low: The lowest frequency that is found, in Hz.
        freq_high: The highest one.
    """

    def __init__(
        self, sample_rate: int, frame_time: float = 0.01, win_length: int = 30,
        freq_low: int = 85, freq_high: int = 3400,
    ) -> None:  # fmt: skip
        require_positive("DetectPitchFrequency", sample_rate=abs(sample_rate),
                         frame_time=frame_time, win_length=win_length, freq_low=freq_low,
                         freq_high=freq_high)  # fmt: skip
        self.rate, self.win_length = sample_rate, win_length
        self.frame = math.ceil(sample_rate * frame_time)
        self.first, self.last = (math.ceil(sample_rate / f) for f in (freq_high, freq_low))

    def __call__(self, value: object) -> np.ndarray:
        return super().__call__(value).astype(np.float32, copy=False)

    def _likeness(self, x: np.ndarray) -> np.ndarray:
        """Returns how alike frames are to those that come 1, 2, ... samples later."""
        count = -(-x.shape[-1] // self.frame)
        more = self.last + count * self.frame - x.shape[-1]
        wide = padded(x.astype(np.float64), 0, more)

        def frames(lag: int) -> np.ndarray:
            part = wide[..., lag : lag + count * self.frame]
            return part.reshape(*x.shape[:-1], count, self.frame)

        own = frames(0)
        sizes = [(_TINY + np.linalg.norm(frames(k), axis=-1)) ** 2 for k in range(self.last + 1)]
        alike = [(own * frames(k)).sum(-1) / sizes[0] / sizes[k] for k in range(1, self.last + 1)]
        return np.stack(alike, -1)

    def _changed(self, x: np.ndarray) -> np.ndarray:
        alike = self._likeness(x)
        whole = alike[..., self.first :]
        half = whole[..., : max(self.last // 2 - self.first, 1)]
        shorter = half.max(-1) > 0.99 * whole.max(-1)  # not twice the period
        lag = np.where(shorter, half.argmax(-1), whole.argmax(-1)) + self.first + 1
        before = (self.win_length - 1) // 2
        lag = np.concatenate([np.repeat(lag[..., :1], before, -1), lag], -1)
        if self.win_length > lag.shape[-1]:
            reject(
                ShapeError,
                "DetectPitchFrequency",
                "the sound has too few frames",
            )
        near = np.lib.stride_tricks.sliding_window_view(lag, self.win_length, -1)
        return self.rate / (_TINY + np.sort(near, -1)[..., (self.win_length - 1) // 2])


# ---- from spectra to sounds ---------------------------------------------------------------------


def _complex(op: str, value: object) -> np.ndarray:
    real, imaginary = parts_of(op, value)
    return real.astype(np.float64) + 1j * imaginary


def _sound(spectrum: np.ndarray, by: Spectrogram, length: int | None) -> np.ndarray:
    """Returns the sound whose spectrum is nearest to the given one.

    Args:
        spectrum: Complex numbers [..., frequencies, windows].
        by: How the spectrum was made.
        length: Samples of the sound.
    """
    spectrum = np.swapaxes(spectrum, -1, -2) * by.scale
    if by.onesided:
        frames = np.fft.irfft(spectrum, by.n_fft)
    else:
        frames = np.fft.ifft(spectrum, by.n_fft).real
    count = frames.shape[-2]
    total = np.zeros((*frames.shape[:-2], by.n_fft + by.hop * (count - 1)))
    weight = np.zeros(total.shape[-1])
    for k in range(count):
        place = slice(k * by.hop, k * by.hop + by.n_fft)
        total[..., place] += frames[..., k, :] * by.window
        weight[place] += by.window**2
    start = by.n_fft // 2 if by.center else 0
    stop = start + (by.hop * (count - 1) if length is None else length)
    total, weight = total[..., start:stop], weight[start:stop]
    total = total / np.where(weight > 1e-11, weight, 1)
    short = max(0, stop - start - total.shape[-1])
    return padded(total, 0, short)


class InverseSpectrogram(Shown):
    """Returns the sound of a spectrum of complex numbers, whose parts are the last axis.

    Args:
        length: Samples of the sound; by default as many as there are.
        n_fft: Samples that one transform took.
        win_length: Samples of the window; ``n_fft`` by default.
        hop_length: Samples between two windows; half a window by default.
        pad: Zeros that were put at both ends.
        window: Its form.
        normalized: Whether the window had the norm 1.
        center: Whether the first window was centered at the first sample.
        pad_mode: What stood beyond both ends if it was.
        onesided: Whether only the frequencies up to half the rate are given.
    """

    def __init__(
        self, length: int | None = None, n_fft: int = 400, win_length: int | None = None,
        hop_length: int | None = None, pad: int = 0, window: enum.Enum = _HANN,
        normalized: bool = False, center: bool = True,
        pad_mode: enum.Enum = BorderType["REFLECT"], onesided: bool = True,
    ) -> None:  # fmt: skip
        self.length, self.pad = length, pad
        self.by = Spectrogram(n_fft, win_length, hop_length, 0, window, 0.0, normalized, center,
                              pad_mode, onesided)  # fmt: skip

    def __call__(self, value: object) -> np.ndarray:
        spectrum = _complex("InverseSpectrogram", value)
        length = None if self.length is None else self.length + 2 * self.pad
        found = _sound(spectrum, self.by, length)
        if self.length is not None:
            found = found[..., self.pad : self.pad + self.length]
        return found.astype(floats_of("InverseSpectrogram", value).dtype)


class GriffinLim(Formula):
    """Returns a sound of the sizes of a spectrum, whose phases it finds step by step.

    Args:
        n_fft: Samples that one transform took.
        n_iter: How many steps are made.
        win_length: Samples of the window; ``n_fft`` by default.
        hop_length: Samples between two windows; half a window by default.
        window_type: Its form.
        power: To which power the sizes are given.
        momentum: How much of the last step is made again.
        length: Samples of the sound; by default as many as there are.
        rand_init: Whether the first phases are random, else 0.
    """

    def __init__(
        self, n_fft: int = 400, n_iter: int = 32, win_length: int | None = None,
        hop_length: int | None = None, window_type: enum.Enum = _HANN, power: float = 2.0,
        momentum: float = 0.99, length: int | None = None, rand_init: bool = True,
    ) -> None:  # fmt: skip
        require_positive("GriffinLim", n_fft=n_fft, n_iter=n_iter, power=power)
        if momentum < 0:
            reject(ArgumentError, "GriffinLim", f"momentum must not be negative: {momentum}")
        self.by = Spectrogram(n_fft, win_length, hop_length, 0, window_type, 0.0)
        self.n_iter, self.power, self.length = n_iter, power, length
        self.momentum, self.rand_init = momentum / (1 + momentum), rand_init

    def _changed(self, x: np.ndarray) -> np.ndarray:
        sizes = x.astype(np.float64) ** (1 / self.power)
        turn, last = np.ones(x.shape, complex), np.zeros(x.shape, complex)
        if self.rand_init:
            turn = generator().random(x.shape) + 1j * generator().random(x.shape)
        for _ in range(self.n_iter):
            found = _complex("GriffinLim", self.by(_sound(sizes * turn, self.by, self.length)))
            found = self._cut(found, x.shape[-1])
            turn = found + self.momentum * (found - last)
            turn, last = turn / (np.abs(turn) + 1e-16), found
        return _sound(sizes * turn, self.by, self.length)

    @staticmethod
    def _cut(spectrum: np.ndarray, count: int) -> np.ndarray:
        """Returns as many windows as were given, where ``length`` makes more or fewer."""
        return padded(spectrum[..., :count], 0, max(count - spectrum.shape[-1], 0))


class InverseMelScale(Formula):
    """Returns frequencies whose bands of the mel scale are nearest to the given ones.

    They are those of least squares, negative ones cut off; MindSpore walks towards them from a
    random start, with ``max_iter``, the tolerances and ``sgdargs``, which have no meaning here.

    Args:
        n_stft: Frequencies of the spectrum.
        n_mels: How many bands there are.
        sample_rate: Samples of the sound per second.
        f_min: Where the first band begins, in Hz.
        f_max: Where the last band ends; half the rate by default.
        max_iter: Not used.
        tolerance_loss: Not used.
        tolerance_change: Not used.
        sgdargs: Not used.
        norm: ``NormType.SLANEY`` if the bands were divided by their width.
        mel_type: The formula of the scale.
    """

    def __init__(
        self, n_stft: int, n_mels: int = 128, sample_rate: int = 16000, f_min: float = 0.0,
        f_max: float | None = None, max_iter: int = 100000, tolerance_loss: float = 1e-5,
        tolerance_change: float = 1e-8, sgdargs: Mapping[str, Any] | None = None,
        norm: enum.Enum = NormType["NONE"], mel_type: enum.Enum = MelType["HTK"],
    ) -> None:  # fmt: skip
        require_positive("InverseMelScale", max_iter=max_iter, tolerance_loss=tolerance_loss,
                         tolerance_change=tolerance_change)  # fmt: skip
        self.mel = MelScale(n_mels, sample_rate, f_min, f_max, n_stft, norm, mel_type)

    def _changed(self, x: np.ndarray) -> np.ndarray:
        bands = self.mel.bands
        if x.ndim < 2 or x.shape[-2] != bands.shape[1]:
            reject(ShapeError, "InverseMelScale",
                   f"the bands must be [..., {bands.shape[1]}, time], not {x.shape}")  # fmt: skip
        return np.maximum(np.linalg.pinv(bands.T.astype(np.float64)) @ x, 0)


# ---- other lengths, pitches and rates -----------------------------------------------------------


def _stretched(spectrum: np.ndarray, rate: float, advance: np.ndarray) -> np.ndarray:
    """Returns a complex spectrum [..., frequencies, windows] that is ``rate`` times as fast."""
    steps = np.arange(0, spectrum.shape[-1], rate)
    wide = padded(spectrum, 0, 2)
    here, after = (wide[..., steps.astype(int) + k] for k in (0, 1))
    turn = np.angle(after) - np.angle(here) - advance
    turn = turn - 2 * np.pi * np.rint(turn / (2 * np.pi)) + advance
    turn = np.concatenate([np.angle(spectrum[..., :1]), turn[..., :-1]], -1)
    size = np.abs(here) + steps % 1 * (np.abs(after) - np.abs(here))
    return size * np.exp(1j * np.cumsum(turn, -1))


class PhaseVocoder(Shown):
    """Makes a spectrum of complex numbers, whose parts are the last axis, faster or slower.

    Args:
        rate: How many times as fast.
        phase_advance: By how much every frequency turns from window to window, (frequencies, 1).
    """

    def __init__(self, rate: float, phase_advance: np.ndarray) -> None:
        require_positive("PhaseVocoder", rate=rate)
        self.rate, self.advance = rate, np.asarray(phase_advance)

    def __call__(self, value: object) -> np.ndarray:
        spectrum = _complex(type(self).__name__, value)
        found = _stretched(spectrum, self.rate, self._advance(spectrum.shape[-2]))
        kind = floats_of(type(self).__name__, value).dtype
        return np.stack([np.real(found), np.imag(found)], -1).astype(kind)

    def _advance(self, count: int) -> np.ndarray:
        """Returns the advance of so many frequencies."""
        if self.advance.shape != (count, 1):
            reject(ShapeError, type(self).__name__,
                   f"{count} frequencies, not {self.advance.shape[0]}")  # fmt: skip
        return self.advance


class TimeStretch(PhaseVocoder):
    """Makes a spectrum faster or slower and keeps the pitch.

    Args:
        hop_length: Samples between two windows; one less than the frequencies by default.
        n_freq: How many frequencies there are; a spectrum of others is stretched all the same.
        fixed_rate: How many times as fast.
    """

    def __init__(
        self, hop_length: int | None = None, n_freq: int = 201, fixed_rate: float | None = None
    ) -> None:
        require_positive("TimeStretch", n_freq=n_freq, hop_length=hop_length or 1)
        hop = n_freq - 1 if hop_length is None else hop_length
        rate = 1.0 if fixed_rate is None else fixed_rate
        super().__init__(rate, np.linspace(0, np.pi * hop, n_freq)[:, None])

    def _advance(self, count: int) -> np.ndarray:
        return np.linspace(0, self.advance[-1], count)


class Resample(Formula):
    """Changes the samples per second of a sound.

    Args:
        orig_freq: Its samples per second.
        new_freq: Those of the result.
        resample_method: The window of the sinc function between samples.
        lowpass_filter_width: How many of its zeros are kept on either side.
        rolloff: Share of the frequencies that pass.
        beta: Form of the Kaiser window; 14.77 by default.
    """

    def __init__(
        self, orig_freq: float = 16000, new_freq: float = 16000,
        resample_method: enum.Enum = ResampleMethod["SINC_INTERPOLATION"],
        lowpass_filter_width: int = 6, rolloff: float = 0.99, beta: float | None = None,
    ) -> None:  # fmt: skip
        require_positive("Resample", orig_freq=orig_freq, new_freq=new_freq,
                         lowpass_filter_width=lowpass_filter_width)  # fmt: skip
        if not 0 < rolloff <= 1:
            reject(ArgumentError, "Resample", f"rolloff must be in (0, 1], not {rolloff}")
        common = math.gcd(int(orig_freq), int(new_freq))
        self.old, self.new = int(orig_freq) // common, int(new_freq) // common
        cutoff = min(self.old, self.new) * rolloff
        self.width = math.ceil(lowpass_filter_width * self.old / cutoff)
        at = np.arange(-self.width, self.width + self.old) / self.old
        at = (at - np.arange(self.new)[:, None] / self.new) * cutoff
        share = np.clip(at, -lowpass_filter_width, lowpass_filter_width) / lowpass_filter_width
        if resample_method is ResampleMethod["KAISER_WINDOW"]:
            form = 14.769656459379492 if beta is None else beta
            window = np.i0(form * np.sqrt(1 - share**2)) / np.i0(form)
        else:
            window = np.cos(share * np.pi / 2) ** 2
        self.kernel = np.sinc(share * lowpass_filter_width) * window * cutoff / self.old

    def _changed(self, x: np.ndarray) -> np.ndarray:
        if self.old == self.new:
            return x
        wide = padded(x.astype(np.float64), self.width, self.width + self.old)
        near = np.lib.stride_tricks.sliding_window_view(wide, self.kernel.shape[1], -1)
        found = near[..., :: self.old, :] @ self.kernel.T
        length = math.ceil(self.new * x.shape[-1] / self.old)
        return found.reshape(*x.shape[:-1], -1)[..., :length]


class PitchShift(Formula):
    """Makes a sound higher or lower and keeps its length.

    Args:
        sample_rate: Samples of the sound per second.
        n_steps: By how many steps.
        bins_per_octave: Steps of an octave.
        n_fft: Samples that one transform takes.
        win_length: Samples of the window; ``n_fft`` by default.
        hop_length: Samples between two windows; a quarter of a window by default.
        window: Its form.
    """

    def __init__(
        self, sample_rate: int, n_steps: int, bins_per_octave: int = 12, n_fft: int = 512,
        win_length: int | None = None, hop_length: int | None = None, window: enum.Enum = _HANN,
    ) -> None:  # fmt: skip
        require_positive(
            "PitchShift", sample_rate=sample_rate, bins_per_octave=abs(bins_per_octave)
        )
        length = n_fft if win_length is None else win_length
        hop = length // 4 if hop_length is None else hop_length
        self.by = Spectrogram(n_fft, length, hop, 0, window, 0.0)
        self.rate = 2.0 ** (-n_steps / bins_per_octave)
        self.advance = np.linspace(0, np.pi * hop, n_fft // 2 + 1)[:, None]
        self.resample = Resample(int(sample_rate / self.rate), sample_rate)

    def _changed(self, x: np.ndarray) -> np.ndarray:
        spectrum = _complex("PitchShift", self.by(x.astype(np.float64)))
        spectrum = _stretched(spectrum, self.rate, self.advance)
        length = round(x.shape[-1] / self.rate)
        found = self.resample(_sound(spectrum, self.by, length))[..., : x.shape[-1]]
        short = x.shape[-1] - found.shape[-1]
        return padded(found, 0, short)


__all__ = [
    "LFCC", "MFCC", "DetectPitchFrequency", "GriffinLim", "InverseMelScale", "InverseSpectrogram",
    "PhaseVocoder", "PitchShift", "Resample", "SlidingWindowCmn", "SpectralCentroid",
    "TimeStretch",
]  # fmt: skip
