"""Transforms of sounds and spectra; the last axis of both is time."""

from __future__ import annotations

import enum
import math

import numpy as np

from tvmgraph.core.shown import Shown
from tvmgraph.dataset.audio_filters import floats_of, padded
from tvmgraph.dataset.audio_words import (
    BorderType,
    FadeShape,
    GainType,
    MelType,
    NormType,
    ScaleType,
    WindowType,
    melscale_fbanks,
)
from tvmgraph.dataset.config import generator
from tvmgraph.dataset.transforms import as_array
from tvmgraph.errors import ArgumentError, ShapeError, reject

__all__ = [
    "AmplitudeToDB", "Angle", "ComplexNorm", "ComputeDeltas", "Contrast", "DBToAmplitude",
    "DCShift", "Fade", "FrequencyMasking", "Gain", "Magphase", "MaskAlongAxis",
    "MaskAlongAxisIID", "MelScale", "MelSpectrogram", "MuLawDecoding", "MuLawEncoding",
    "Spectrogram", "TimeMasking", "Vol",
]  # fmt: skip


class Formula(Shown):
    """A transform of floats that keeps their dtype; what else there is becomes float32, except that
    ``half`` keeps every dtype."""

    half = False

    def __call__(self, value: object) -> np.ndarray:
        x = floats_of(type(self).__name__, value, self.half)
        kept = as_array(value) if self.half else x
        return np.asarray(self._changed(x)).astype(kept.dtype, copy=False)

    def _changed(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError


# ---- loudness -----------------------------------------------------------------------------------


class AmplitudeToDB(Formula):
    r"""Turns powers or amplitudes into decibels: :math:`10 \log_{10}(x / ref)`, 20 of amplitudes.

    Args:
        stype: Whether ``ScaleType.POWER`` or ``ScaleType.MAGNITUDE`` is given.
        ref_value: What becomes 0 dB.
        amin: The smallest value that is told from 0.
        top_db: How far below the loudest element the others are kept at least.
    """

    def __init__(
        self, stype: enum.Enum = ScaleType["POWER"], ref_value: float = 1.0, amin: float = 1e-10,
        top_db: float = 80.0,
    ) -> None:  # fmt: skip
        if ref_value <= 0 or amin <= 0 or top_db <= 0:
            reject(ArgumentError, "AmplitudeToDB", "ref_value, amin and top_db must be positive")
        self.factor = 10.0 if stype is ScaleType["POWER"] else 20.0
        self.amin, self.top_db = amin, top_db
        self.zero = self.factor * math.log10(max(amin, ref_value))

    def _changed(self, x: np.ndarray) -> np.ndarray:
        db = self.factor * np.log10(np.maximum(x, self.amin)) - self.zero
        loudest = db.max(axis=tuple(range(max(-3, -x.ndim), 0)), keepdims=True)
        return np.maximum(db, loudest - self.top_db)


class DBToAmplitude(Formula):
    r"""Turns decibels into amplitudes: :math:`ref \cdot (10^{x / 10})^{power}`.

    Args:
        ref: What 0 dB becomes.
        power: 1 for powers, 0.5 for amplitudes.
    """

    def __init__(self, ref: float, power: float) -> None:
        self.ref, self.power = ref, power

    def _changed(self, x: np.ndarray) -> np.ndarray:
        return self.ref * (10 ** (x * 0.1)) ** self.power


class Gain(Formula):
    """Makes a sound louder.

    Args:
        gain_db: By how many decibels.
    """

    def __init__(self, gain_db: float = 1.0) -> None:
        if not abs(gain_db) <= 2**24:
            reject(ArgumentError, "Gain", f"gain_db must be within {2**24}, not {gain_db}")
        self.gain_db = gain_db

    def _changed(self, x: np.ndarray) -> np.ndarray:
        return x * 10 ** (self.gain_db / 20)


class Vol(Formula):
    """Makes a sound louder and cuts it off at -1 and 1.

    Args:
        gain: By how much.
        gain_type: Whether that is an amplitude, a power or decibels.

    Raises:
        ArgumentError: if an amplitude is negative or a power not positive.
    """

    def __init__(self, gain: float, gain_type: enum.Enum = GainType["AMPLITUDE"]) -> None:
        if gain < 0 and gain_type is GainType["AMPLITUDE"]:
            reject(ArgumentError, "Vol", f"an amplitude must not be negative: {gain}")
        if gain <= 0 and gain_type is GainType["POWER"]:
            reject(ArgumentError, "Vol", f"a power must be positive: {gain}")
        self.factor = {
            GainType["AMPLITUDE"]: lambda: gain, GainType["POWER"]: lambda: math.sqrt(gain),
            GainType["DB"]: lambda: 10 ** (gain / 20),
        }[gain_type]()  # fmt: skip

    def _changed(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x * self.factor, -1, 1)


class Contrast(Formula):
    """Makes a sound seem louder by bending its wave.

    Args:
        enhancement_amount: How much, from 0 to 100.

    Raises:
        ArgumentError: for another amount.
    """

    def __init__(self, enhancement_amount: float = 75.0) -> None:
        if not 0 <= enhancement_amount <= 100:
            reject(ArgumentError, "Contrast", "enhancement_amount must be in [0, 100]")
        self.amount = enhancement_amount / 750

    def _changed(self, x: np.ndarray) -> np.ndarray:
        bent = x * np.pi / 2
        return np.sin(bent + self.amount * np.sin(4 * bent))


class DCShift(Formula):
    """Shifts a sound up or down and cuts it off at -1 and 1.

    Args:
        shift: By how much, from -2 to 2.
        limiter_gain: What is left of the part that the shift would cut off.

    Raises:
        ArgumentError: for a larger shift.
    """

    def __init__(self, shift: float, limiter_gain: float | None = None) -> None:
        if not -2 <= shift <= 2:
            reject(ArgumentError, "DCShift", f"shift must be in [-2, 2], not {shift}")
        self.shift, self.limiter_gain = shift, limiter_gain

    def _changed(self, x: np.ndarray) -> np.ndarray:
        plain = np.clip(x + self.shift, -1, 1)
        if self.limiter_gain is None or self.shift == 0:
            return plain
        side = math.copysign(1, self.shift)
        most = 1 - (abs(self.shift) - self.limiter_gain)
        beyond = (side * x - most) * self.limiter_gain / (1 - most)
        limited = side * np.minimum(beyond + most + abs(self.shift), most)
        return np.where(side * x > most, limited, plain)


_COURSES = {
    "LINEAR": lambda t: t,
    "EXPONENTIAL": lambda t: 2 ** (t - 1) * t,
    "LOGARITHMIC": lambda t: np.log10(0.1 + t) + 1,
    "QUARTER_SINE": lambda t: np.sin(t * np.pi / 2),
    "HALF_SINE": lambda t: np.sin(t * np.pi - np.pi / 2) / 2 + 0.5,
}


class Fade(Formula):
    """Lets a sound begin and end softly.

    Args:
        fade_in_len: Samples of the beginning.
        fade_out_len: Samples of the end.
        fade_shape: How the loudness goes.

    Raises:
        ArgumentError: for a negative length; when called, for one above that of the sound.
    """

    def __init__(
        self, fade_in_len: int = 0, fade_out_len: int = 0,
        fade_shape: enum.Enum = FadeShape["LINEAR"],
    ) -> None:  # fmt: skip
        if fade_in_len < 0 or fade_out_len < 0:
            reject(ArgumentError, "Fade", "the lengths must not be negative")
        course = _COURSES[fade_shape.name]
        lengths = (fade_in_len, fade_out_len)
        self.begin, self.end = (course(np.linspace(0, 1, n)) for n in lengths)
        if fade_out_len == 1:  # where it begins, not where it ends
            self.end = course(np.ones(1))

    def _changed(self, x: np.ndarray) -> np.ndarray:
        if max(len(self.begin), len(self.end)) > x.shape[-1]:
            reject(ArgumentError, "Fade", f"the sound has only {x.shape[-1]} samples")
        loudness = np.ones(x.shape[-1])
        loudness[: len(self.begin)] *= self.begin
        loudness[x.shape[-1] - len(self.end) :] *= self.end[::-1]
        return x * loudness


class _MuLaw(Shown):
    def __init__(self, quantization_channels: int = 256) -> None:
        if quantization_channels < 1:
            reject(ArgumentError, type(self).__name__, "quantization_channels must be positive")
        self.most = quantization_channels - 1.0


class MuLawEncoding(_MuLaw):
    r"""Rounds samples of -1 to 1 on a logarithmic scale to int32 of 0 to ``channels - 1``.

    Args:
        quantization_channels: How many values there are.
    """

    def __call__(self, value: object) -> np.ndarray:
        x = floats_of("MuLawEncoding", value)
        y = np.sign(x) * np.log1p(self.most * np.abs(x)) / np.log1p(self.most)
        return ((y + 1) / 2 * self.most + 0.5).astype(np.int32)


class MuLawDecoding(_MuLaw):
    """Turns what :class:`MuLawEncoding` gave back into samples.

    Args:
        quantization_channels: How many values there are.
    """

    def __call__(self, value: object) -> np.ndarray:
        y = as_array(value)
        y = y.astype(np.float32 if y.dtype.kind != "f" else y.dtype) / self.most * 2 - 1
        x = np.sign(y) * (np.exp(np.abs(y) * np.log1p(self.most)) - 1) / self.most
        return x.astype(y.dtype)


# ---- spectra ------------------------------------------------------------------------------------


def parts_of(op: str, value: object) -> tuple[np.ndarray, np.ndarray]:
    """Returns real and imaginary parts, which are the last axis.

    Args:
        op: Name of the transform.
        value: An array of floats [..., 2].

    Raises:
        ShapeError: for another last axis.
    """
    x = floats_of(op, value, whole=False)
    if x.ndim < 2 or x.shape[-1] != 2:
        reject(ShapeError, op,
               f"the last axis must be real and imaginary part, not {x.shape}")  # fmt: skip
    return x[..., 0], x[..., 1]


class Angle(Shown):
    """Returns the phases of complex numbers, whose parts are the last axis."""

    def __call__(self, value: object) -> np.ndarray:
        real, imaginary = parts_of("Angle", value)
        return np.arctan2(imaginary, real)


class ComplexNorm(Shown):
    """Returns the size of complex numbers, whose parts are the last axis.

    Args:
        power: To which power.

    Raises:
        ArgumentError: for a negative power.
    """

    def __init__(self, power: float = 1.0) -> None:
        if power < 0:
            reject(ArgumentError, type(self).__name__, f"power must not be negative: {power}")
        self.power = power

    def __call__(self, value: object) -> np.ndarray:
        real, imaginary = parts_of(type(self).__name__, value)
        return (real * real + imaginary * imaginary) ** (0.5 * self.power)


class Magphase(ComplexNorm):
    """Returns size and phase of complex numbers, whose parts are the last axis.

    Args:
        power: To which power the size is given.
    """

    def __call__(self, value: object) -> tuple[np.ndarray, np.ndarray]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().__call__(value), Angle()(value)


class MaskAlongAxis(Formula):
    """Fills a range of one axis of a spectrum.

    Args:
        mask_start: Where it begins.
        mask_width: How long it is.
        mask_value: What is put there.
        axis: 1 for frequencies, 2 for time.

    Raises:
        ArgumentError: for another axis or a negative range.
    """

    def __init__(self, mask_start: int, mask_width: int, mask_value: float, axis: int) -> None:
        if axis not in (1, 2) or mask_start < 0 or mask_width < 0:
            reject(ArgumentError, type(self).__name__,
                   f"axis {axis} must be 1 or 2, start and width not negative")  # fmt: skip
        self.range, self.value, self.axis = (mask_start, mask_width), mask_value, axis - 3

    def _changed(self, x: np.ndarray) -> np.ndarray:
        start, width = self.range
        if start + width > x.shape[self.axis]:
            reject(ArgumentError, type(self).__name__,
                   f"the axis has only {x.shape[self.axis]} elements")  # fmt: skip
        found = np.moveaxis(x.copy(), self.axis, 0)
        found[start : start + width] = self.value
        return np.moveaxis(found, 0, self.axis)


class MaskAlongAxisIID(Formula):
    """Fills a range of one axis of every spectrum, of random place and length.

    Args:
        mask_param: How long the range is at most.
        mask_value: What is put there.
        axis: 1 for frequencies, 2 for time.

    Raises:
        ArgumentError: for another axis or a negative length.
    """

    def __init__(self, mask_param: int, mask_value: float, axis: int) -> None:
        if axis not in (1, 2) or mask_param < 0:
            reject(ArgumentError, "MaskAlongAxisIID",
                   f"axis {axis} must be 1 or 2, mask_param not negative")  # fmt: skip
        self.most, self.value, self.axis = mask_param, mask_value, axis - 3

    def _changed(self, x: np.ndarray) -> np.ndarray:
        found = np.moveaxis(x, self.axis, -1).copy()
        size = found.shape[-1]
        if self.most > size:
            reject(ArgumentError, "MaskAlongAxisIID", f"the axis has only {size} elements")
        random = generator()
        for spectrum in found.reshape(-1, *found.shape[-2:]):  # views, as the copy is whole
            width = random.uniform(0, self.most)
            start = int(random.uniform(0, size - width))
            spectrum[:, start : start + int(width)] = self.value
        return np.moveaxis(found, -1, self.axis)


def _mask(iid: bool, width: int, start: int, value: float, axis: int) -> Formula:
    return MaskAlongAxisIID(width, value, axis) if iid else MaskAlongAxis(start, width, value, axis)


class _Masking(Formula):
    """Applies the mask that its constructor chose."""

    mask: Formula

    def _changed(self, x: np.ndarray) -> np.ndarray:
        return self.mask(x)


class FrequencyMasking(_Masking):
    """Fills a range of the frequencies of a spectrum.

    Args:
        iid_masks: Whether every channel has a random range of its own.
        freq_mask_param: How long the range is, at most if it is random.
        mask_start: Where it begins if it is not.
        mask_value: What is put there.
    """

    def __init__(
        self, iid_masks: bool = False, freq_mask_param: int = 0, mask_start: int = 0,
        mask_value: float = 0.0,
    ) -> None:  # fmt: skip
        self.mask = _mask(iid_masks, freq_mask_param, mask_start, mask_value, 1)


class TimeMasking(_Masking):
    """Fills a range of the time of a spectrum.

    Args:
        iid_masks: Whether every channel has a random range of its own.
        time_mask_param: How long the range is, at most if it is random.
        mask_start: Where it begins if it is not.
        mask_value: What is put there.
    """

    def __init__(
        self, iid_masks: bool = False, time_mask_param: int = 0, mask_start: int = 0,
        mask_value: float = 0.0,
    ) -> None:  # fmt: skip
        self.mask = _mask(iid_masks, time_mask_param, mask_start, mask_value, 2)


class ComputeDeltas(Formula):
    r"""Returns slopes over time: :math:`\sum_n n (x_{t+n} - x_{t-n}) / (2 \sum_n n^2)`.

    Args:
        win_length: Over how many elements, an odd number of at least 3.
        pad_mode: What stands beyond both ends.
    """

    def __init__(self, win_length: int = 5, pad_mode: enum.Enum = BorderType["EDGE"]) -> None:
        if win_length < 3:
            reject(
                ArgumentError, "ComputeDeltas", f"win_length must be at least 3, not {win_length}"
            )
        self.reach, self.mode = (win_length - 1) // 2, pad_mode.value

    def _changed(self, x: np.ndarray) -> np.ndarray:
        n, length = self.reach, x.shape[-1]
        wide = padded(x, n, n, self.mode)
        slopes = [k * wide[..., n + k : n + k + length] for k in range(-n, n + 1)]
        return np.sum(slopes, 0) / (n * (n + 1) * (2 * n + 1) / 3)


_WINDOWS = {
    "BARTLETT": np.bartlett, "BLACKMAN": np.blackman, "HAMMING": np.hamming, "HANN": np.hanning,
    "KAISER": lambda n: np.kaiser(n, 12.0),
}  # fmt: skip


class Spectrogram(Shown):
    """Returns how loud every frequency is over time.

    Args:
        n_fft: Samples that one transform takes.
        win_length: Samples of the window; ``n_fft`` by default.
        hop_length: Samples between two windows; half a window by default.
        pad: Zeros to put at both ends.
        window: Its form.
        power: To which power sizes are given; 0 gives complex numbers as a last axis of 2.
        normalized: Whether the window has the norm 1.
        center: Whether the first window is centered at the first sample.
        pad_mode: What stands beyond both ends if it is.
        onesided: Whether only the frequencies up to half the rate are returned.

    Returns:
        When called with [..., time]: an array [..., frequencies, windows].
    """

    def __init__(
        self, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None,
        pad: int = 0, window: enum.Enum = WindowType["HANN"], power: float = 2.0,
        normalized: bool = False, center: bool = True,
        pad_mode: enum.Enum = BorderType["REFLECT"], onesided: bool = True,
    ) -> None:  # fmt: skip
        length = n_fft if win_length is None else win_length
        self.hop = length // 2 if hop_length is None else hop_length
        if n_fft < 1 or not 1 <= length <= n_fft or self.hop < 1 or pad < 0 or power < 0:
            reject(ArgumentError, type(self).__name__, "the lengths do not fit")
        form = _WINDOWS[window.name](length + 1)[:-1]  # periodic
        left = (n_fft - length) // 2
        self.window = np.pad(form, (left, n_fft - length - left))
        self.scale = np.sqrt((form**2).sum()) if normalized else 1.0
        self.n_fft, self.pad, self.power = n_fft, pad, power
        self.center, self.mode, self.onesided = center, pad_mode.value, onesided

    def __call__(self, value: object) -> np.ndarray:
        x = floats_of(type(self).__name__, value)
        wide = padded(x.astype(np.float64), self.pad, self.pad)
        if self.center:
            wide = padded(wide, self.n_fft // 2, self.n_fft // 2, self.mode)
        if wide.shape[-1] < self.n_fft:
            reject(ShapeError, type(self).__name__, f"the sound has only {x.shape[-1]} samples")
        frames = np.lib.stride_tricks.sliding_window_view(wide, self.n_fft, -1)[..., :: self.hop, :]
        transform = np.fft.rfft if self.onesided else np.fft.fft
        found = np.swapaxes(transform(frames * self.window), -1, -2) / self.scale
        if self.power == 0:
            return np.stack([found.real, found.imag], -1).astype(x.dtype)
        return (np.abs(found) ** self.power).astype(x.dtype)


class MelScale(Formula):
    """Turns frequencies of a spectrum into bands of the mel scale.

    Args:
        n_mels: How many bands there are.
        sample_rate: Samples of the sound per second.
        f_min: Where the first band begins, in Hz.
        f_max: Where the last band ends; half the rate by default.
        n_stft: Frequencies of the spectrum.
        norm: ``NormType.SLANEY`` divides by the width of a band.
        mel_type: The formula of the scale.
    """

    def __init__(
        self, n_mels: int = 128, sample_rate: int = 16000, f_min: float = 0.0,
        f_max: float | None = None, n_stft: int = 201, norm: enum.Enum = NormType["NONE"],
        mel_type: enum.Enum = MelType["HTK"],
    ) -> None:  # fmt: skip
        most = sample_rate // 2 if f_max is None else f_max
        if f_min >= most:
            reject(ArgumentError, type(self).__name__, f"f_min {f_min} must be below {most}")
        self.bands = melscale_fbanks(n_stft, f_min, most, n_mels, sample_rate, norm, mel_type)

    def _changed(self, x: np.ndarray) -> np.ndarray:
        if x.ndim < 2 or x.shape[-2] != len(self.bands):
            wanted = f"[..., {len(self.bands)}, time]"
            reject(ShapeError, "MelScale", f"the spectrum must be {wanted}, not {x.shape}")
        return self.bands.T @ x


class MelSpectrogram(Shown):
    """Returns how loud every band of the mel scale is over time.

    Args:
        sample_rate: Samples of the sound per second.
        n_fft: Samples that one transform takes.
        win_length: Samples of the window; ``n_fft`` by default.
        hop_length: Samples between two windows; half a window by default.
        f_min: Where the first band begins, in Hz.
        f_max: Where the last band ends; half the rate by default.
        pad: Zeros to put at both ends.
        n_mels: How many bands there are.
        window: Form of the window.
        power: To which power sizes are given.
        normalized: Whether the window has the norm 1.
        center: Whether the first window is centered at the first sample.
        pad_mode: What stands beyond both ends if it is.
        onesided: Whether only the frequencies up to half the rate are used.
        norm: ``NormType.SLANEY`` divides by the width of a band.
        mel_scale: The formula of the scale.
    """

    def __init__(
        self, sample_rate: int = 16000, n_fft: int = 400, win_length: int | None = None,
        hop_length: int | None = None, f_min: float = 0.0, f_max: float | None = None,
        pad: int = 0, n_mels: int = 128, window: enum.Enum = WindowType["HANN"],
        power: float = 2.0, normalized: bool = False, center: bool = True,
        pad_mode: enum.Enum = BorderType["REFLECT"], onesided: bool = True,
        norm: enum.Enum = NormType["NONE"], mel_scale: enum.Enum = MelType["HTK"],
    ) -> None:  # fmt: skip
        self.spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, power,
                                       normalized, center, pad_mode, onesided)  # fmt: skip
        count = n_fft // 2 + 1 if onesided else n_fft
        self.mel = MelScale(n_mels, sample_rate, f_min, f_max, count, norm, mel_scale)

    def __call__(self, value: object) -> np.ndarray:
        return self.mel(self.spectrogram(value))
