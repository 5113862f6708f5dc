"""Where speech begins in a sound.

Source: the effect ``vad`` of SoX: periods of the spectrum, as voices have them, are peaks of the
cepstrum of a spectrum from which an estimate of the noise is taken.
"""

from __future__ import annotations

import math

import numpy as np

from tvmgraph.dataset.audio_spectra import require_positive
from tvmgraph.dataset.audio_transforms import Formula
from tvmgraph.dataset.transforms import as_array
from tvmgraph.errors import ArgumentError, reject

__all__ = ["Vad"]

_FLOOR = 21.0  # what makes the logarithm of a quiet measurement about 0


def _decay(seconds: float, frequency: float) -> float:
    """Returns what is left after one measurement of what fades with a time constant."""
    return math.exp(-1 / (seconds * frequency)) if seconds else 0.0


def _window(size: int) -> np.ndarray:
    """Returns a periodic Hann window, scaled for a spectrum that does not grow with its size."""
    return 2 / math.sqrt(size) * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size))


class Vad(Formula):
    """Cuts off what comes before the first speech in a sound of shape (..., time).

    Args:
        sample_rate: Samples of the sound per second.
        trigger_level: The level of a measurement that counts as speech.
        trigger_time: Seconds over which levels are averaged, so that short noises do not count.
        search_time: Seconds before the speech in which quieter speech is sought.
        allowed_gap: Seconds of silence that may lie between quieter speech and the rest.
        pre_trigger_time: Seconds that are kept before the speech.
        boot_time: Seconds at the beginning from which the noise is estimated.
        noise_up_time: Seconds in which the estimate follows noise that becomes louder.
        noise_down_time: Seconds in which it follows noise that becomes quieter.
        noise_reduction_amount: How much of the noise is taken off.
        measure_freq: Measurements per second.
        measure_duration: Seconds of one measurement; twice the time between two of them if absent.
        measure_smooth_time: Seconds over which spectra are averaged.
        hp_filter_freq: Lowest frequency that is looked at.
        lp_filter_freq: Highest one.
        hp_lifter_freq: Lowest pitch of a voice.
        lp_lifter_freq: Highest one.

    Returns:
        The sound from the beginning of the speech on; nothing of it where there is no speech.

    Raises:
        ArgumentError: if a number has a wrong sign, or noise is followed faster up than down.
    """

    def __init__(
        self, sample_rate: int, trigger_level: float = 7.0, trigger_time: float = 0.25,
        search_time: float = 1.0, allowed_gap: float = 0.25, pre_trigger_time: float = 0.0,
        boot_time: float = 0.35, noise_up_time: float = 0.1, noise_down_time: float = 0.01,
        noise_reduction_amount: float = 1.35, measure_freq: float = 20.0,
        measure_duration: float | None = None, measure_smooth_time: float = 0.4,
        hp_filter_freq: float = 50.0, lp_filter_freq: float = 6000.0,
        hp_lifter_freq: float = 150.0, lp_lifter_freq: float = 2000.0,
    ) -> None:  # fmt: skip
        require_positive("Vad", sample_rate=sample_rate, measure_freq=measure_freq,
                         hp_filter_freq=hp_filter_freq, lp_filter_freq=lp_filter_freq,
                         hp_lifter_freq=hp_lifter_freq, lp_lifter_freq=lp_lifter_freq)  # fmt: skip
        for name, value in {
            "trigger_time": trigger_time, "search_time": search_time, "allowed_gap": allowed_gap,
            "pre_trigger_time": pre_trigger_time, "boot_time": boot_time,
            "noise_up_time": noise_up_time, "noise_down_time": noise_down_time,
            "noise_reduction_amount": noise_reduction_amount,
            "measure_duration": measure_duration or 0, "measure_smooth_time": measure_smooth_time,
        }.items():  # fmt: skip
            if value < 0:
                reject(ArgumentError, "Vad", f"{name} must not be negative, not {value}")
        if noise_up_time < noise_down_time:
            reject(ArgumentError, "Vad", "noise_up_time must not be less than noise_down_time",
                   f"noise_up_time={noise_up_time}, noise_down_time={noise_down_time}")  # fmt: skip
        seconds = 2 / measure_freq if measure_duration is None else measure_duration
        self.level, self.noise_amount = trigger_level, noise_reduction_amount
        self.length = int(sample_rate * seconds + 0.5)
        self.period = int(sample_rate / measure_freq + 0.5)
        self.count = math.ceil(search_time * measure_freq)
        self.gap = int(allowed_gap * measure_freq + 0.5)
        self.kept = int(pre_trigger_time * sample_rate + 0.5)
        self.boot = int(boot_time * measure_freq - 0.5)
        self.smooth = _decay(measure_smooth_time, measure_freq)
        self.trigger = _decay(trigger_time, measure_freq)
        self.up, self.down = (_decay(t, measure_freq) for t in (noise_up_time, noise_down_time))
        self.size = 1 << max(4, (self.length - 1).bit_length())
        low = int(hp_filter_freq / sample_rate * self.size + 0.5)
        high = int(lp_filter_freq / sample_rate * self.size + 0.5)
        self.band = slice(max(low, 1), min(high, self.size // 2))
        longest = int(sample_rate * 0.5 / hp_lifter_freq)
        shortest = math.ceil(sample_rate * 0.5 / lp_lifter_freq)
        self.pitches = slice(shortest, min(longest, self.size // 4))

    def __call__(self, value: object) -> np.ndarray:
        x = as_array(value)
        return super().__call__(x.astype(np.float32) if x.dtype.kind in "iu" else x)

    def _changed(self, x: np.ndarray) -> np.ndarray:
        channels = x.reshape(-1, x.shape[-1])
        levels = np.zeros((len(channels), self.count))  # the last ones, in a ring
        mean = np.zeros(len(channels))
        spectra = _Spectra(self, len(channels))
        for turn, end in enumerate(range(self.length, x.shape[-1], self.period)):
            place = turn % self.count
            for i, sound in enumerate(channels):
                levels[i, place] = spectra.level(i, sound[end - self.length : end], turn)
                mean[i] = mean[i] * self.trigger + levels[i, place] * (1 - self.trigger)
            heard = [
                self._back(np.roll(row[::-1], place + 1)) for row in levels[mean >= self.level]
            ]
            if heard:
                first = end - self.length - self.kept - max(heard) * self.period
                return x[..., max(first, 0) :]
        return x[..., :0]

    def _back(self, levels: np.ndarray) -> int:
        """Returns how many measurements, the newest first, belong to the speech."""
        last = silent = len(levels)
        for age, level in enumerate(levels):
            if level >= self.level and age <= last + self.gap:
                last = silent = age
            elif level == 0 and last >= silent:
                silent = age
        return min(len(levels) - 1, silent)


class _Spectra:
    """What is known of every channel: its smoothed spectrum, and that of the noise."""

    def __init__(self, vad: Vad, channels: int) -> None:
        self.vad = vad
        self.window = _window(vad.length)
        width = max(vad.band.stop - vad.band.start, 0)
        self.spectrum, self.noise = np.zeros((channels, width)), np.zeros((channels, width))
        self.cepstrum_window = _window(width)

    def level(self, channel: int, sound: np.ndarray, turn: int) -> float:
        """Returns how much a part of a sound is like a voice, at least 0."""
        vad, booting = self.vad, turn <= self.vad.boot
        heard = np.abs(np.fft.rfft(sound * self.window, vad.size))[vad.band]
        share = turn / (1 + turn) if booting else vad.smooth
        spectrum = self.spectrum[channel] = self.spectrum[channel] * share + heard * (1 - share)
        power, noise = spectrum**2, self.noise[channel]
        share = 0 if booting else np.where(power > noise, vad.up, vad.down)
        noise = self.noise[channel] = noise * share + power * (1 - share)
        voice = np.sqrt(np.maximum(power - vad.noise_amount * noise, 0)) * self.cepstrum_window
        placed = np.zeros(vad.size // 2)
        placed[vad.band] = voice
        peaks = np.abs(np.fft.rfft(placed))[vad.pitches] ** 2
        total = peaks.sum() / max(vad.pitches.stop - vad.pitches.start, 1)
        return max(0.0, _FLOOR + math.log(total)) if total > 0 else 0.0
