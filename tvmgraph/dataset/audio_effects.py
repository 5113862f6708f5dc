"""Effects of sounds: distortion, delays that go up and down, noise that hides rounding."""

from __future__ import annotations

import enum
import math

import numpy as np

from tvmgraph.dataset.audio_filters import recursive
from tvmgraph.dataset.audio_spectra import require_positive
from tvmgraph.dataset.audio_transforms import Formula
from tvmgraph.dataset.audio_words import DensityFunction, Interpolation, Modulation
from tvmgraph.dataset.config import generator
from tvmgraph.errors import ArgumentError, ShapeError, reject


def _require_within(op: str, bounds: dict[str, tuple[float, float, float]]) -> None:
    for name, (value, low, high) in bounds.items():
        if not low <= value <= high:
            reject(ArgumentError, op, f"{name} must be in [{low}, {high}], not {value}")


class Overdrive(Formula):
    """Distorts a sound and keeps it within -1 and 1.

    Args:
        gain: Decibels, from 0 to 100.
        color: How uneven the halves of the wave become, from 0 to 100.

    Raises:
        ArgumentError: for other numbers.
    """

    def __init__(self, gain: float = 20.0, color: float = 20.0) -> None:
        _require_within("Overdrive", {"gain": (gain, 0, 100), "color": (color, 0, 100)})
        self.factor, self.shift = 10 ** (gain / 20), color / 200

    def _changed(self, x: np.ndarray) -> np.ndarray:
        bent = np.clip(x.astype(np.float64) * self.factor + self.shift, -1, 1)
        bent -= bent**3 / 3
        return np.clip(x * 0.5 + recursive(bent, (1, -1), (1, -0.995)) * 0.75, -1, 1)


def _course(sine: bool, size: int, low: float, high: float, phase: float) -> np.ndarray:
    """Returns one period of a wave between two numbers, that begins at a share of it."""
    point = (np.arange(size) + int(phase * size + 0.5)) % size
    if sine:
        wave = (np.sin(2 * np.pi * point / size) + 1) / 2
    else:  # in float32, as MindSpore counts: a last bit decides how a delay is rounded
        rise, quarter = (2 * point).astype(np.float32) / np.float32(size), 4 * point // size
        wave = np.select([quarter == 0, quarter == 3], [rise + 0.5, rise - 1.5], 1.5 - rise)
    return wave * (high - low) + low


class Phaser(Formula):
    """Adds what a sound was a little before, by a delay that goes up and down.

    Args:
        sample_rate: Samples of the sound per second.
        gain_in: Loudness of the sound, from 0 to 1.
        gain_out: Loudness of the result.
        delay_ms: The longest delay in milliseconds, up to 5.
        decay: Loudness of what is added, from 0 to 0.99.
        mod_speed: How often per second the delay goes up and down, from 0.1 to 2.
        sinusoidal: Whether it follows a sine, else a triangle.

    Raises:
        ArgumentError: for other numbers.
    """

    def __init__(
        self, sample_rate: int, gain_in: float = 0.4, gain_out: float = 0.74,
        delay_ms: float = 3.0, decay: float = 0.4, mod_speed: float = 0.5,
        sinusoidal: bool = True,
    ) -> None:  # fmt: skip
        _require_within("Phaser", {
            "gain_in": (gain_in, 0, 1), "gain_out": (gain_out, 0, 1e9),
            "delay_ms": (delay_ms, 0, 5), "decay": (decay, 0, 0.99),
            "mod_speed": (mod_speed, 0.1, 2),
        })  # fmt: skip
        self.gain_in, self.gain_out, self.decay = gain_in, gain_out, decay
        self.longest = int(delay_ms * 0.001 * sample_rate + 0.5)
        size = int(sample_rate / mod_speed + 0.5)
        course = _course(sinusoidal, size, 1, self.longest, 0.25)
        self.lag = self.longest + 1 - (course + 0.5).astype(int)

    def _changed(self, x: np.ndarray) -> np.ndarray:
        before = self.longest
        done = np.zeros((before + x.shape[-1], *x.shape[:-1]))
        driven = np.moveaxis(x, -1, 0) * self.gain_in
        for i, now in enumerate(driven):
            lag = self.lag[i % len(self.lag)]
            done[before + i] = now + self.decay * done[before + i - lag]
        return np.clip(np.moveaxis(done[before:], 0, -1) * self.gain_out, -1, 1)


class Flanger(Formula):
    """Adds a sound (..., channel, time) to itself by delays that go up and down.

    Args:
        sample_rate: Samples of the sound per second.
        delay: The shortest delay in milliseconds, up to 30.
        depth: By how much it grows, up to 10.
        regen: Percent of what is added that is added again, from -95 to 95.
        width: Percent of the sound that is added.
        speed: How often per second the delay goes up and down, from 0.1 to 10.
        phase: By how many percent of a period a channel is behind the one before it.
        modulation: Whether the delay follows a sine or a triangle.
        interpolation: How values between samples are found.

    Raises:
        ArgumentError: for other numbers.
        ShapeError: when called with a sound of one axis, or more than four channels.
    """

    def __init__(
        self, sample_rate: int, delay: float = 0.0, depth: float = 2.0, regen: float = 0.0,
        width: float = 71.0, speed: float = 0.5, phase: float = 25.0,
        modulation: enum.Enum = Modulation["SINUSOIDAL"],
        interpolation: enum.Enum = Interpolation["LINEAR"],
    ) -> None:  # fmt: skip
        _require_within("Flanger", {
            "delay": (delay, 0, 30), "depth": (depth, 0, 10), "regen": (regen, -95, 95),
            "width": (width, 0, 100), "speed": (speed, 0.1, 10), "phase": (phase, 0, 100),
        })  # fmt: skip
        require_positive("Flanger", sample_rate=abs(sample_rate))
        self.again, share, self.phase = regen / 100, width / 100, phase / 100
        self.own = 1 / (1 + share)
        self.added = share / (1 + share) * (1 - abs(self.again))
        self.longest = int((delay + depth) / 1000 * sample_rate + 0.5) + 2
        sine = modulation is Modulation["SINUSOIDAL"]
        low, size = math.floor(delay / 1000 * sample_rate + 0.5), int(sample_rate / speed)
        self.lags = _course(sine, size, low, self.longest - 2, 0.75)
        self.quadratic = interpolation is Interpolation["QUADRATIC"]

    half = True

    def _between(self, first: np.ndarray, second: np.ndarray, third: np.ndarray, rest: np.ndarray
                 ) -> np.ndarray:  # fmt: skip
        if not self.quadratic:
            return first + (second - first) * rest
        near, far = second - first, third - first
        return first + ((far / 2 - near) * rest + near * 2 - far / 2) * rest

    def _changed(self, x: np.ndarray) -> np.ndarray:
        if x.ndim < 2 or x.shape[-2] > 4:
            reject(ShapeError, "Flanger",
                   f"the sound must be [..., channel <= 4, time]: {x.shape}")  # fmt: skip
        channels, size = np.arange(x.shape[-2]), len(self.lags)
        behind = (channels * size * self.phase + 0.5).astype(int)
        sound = np.moveaxis(x.reshape(-1, *x.shape[-2:]).astype(np.float64), -1, 0)
        before = self.longest
        heard = np.zeros((before + len(sound), *sound.shape[1:]))
        late = np.zeros(sound.shape)
        for i, now in enumerate(sound):
            heard[before + i] = now + (late[i - 1] * self.again if i else 0)
            lag = self.lags[(i + behind) % size]
            at = before + i - np.floor(lag).astype(int)
            first, second, third = (heard[at - k, :, channels].T for k in range(3))
            late[i] = self._between(first, second, third, lag % 1)
        found = np.moveaxis(sound * self.own + late * self.added, 0, -1)
        return np.clip(found.reshape(x.shape), -1, 1)


class Dither(Formula):
    """Rounds a sound to 16 bits after noise that keeps rounding from being heard.

    Args:
        density_function: How the noise is distributed.
        noise_shaping: Whether the error of a sample is added to the next one.
    """

    def __init__(
        self, density_function: enum.Enum = DensityFunction["TPDF"], noise_shaping: bool = False
    ) -> None:
        self.density, self.noise_shaping = density_function, noise_shaping

    def _changed(self, x: np.ndarray) -> np.ndarray:
        length = x.shape[-1]
        if self.density is DensityFunction["TPDF"]:
            noise = np.bartlett(length + 1)[:-1]
        else:  # of samples of the sound itself
            count = 1 if self.density is DensityFunction["RPDF"] else 6
            noise = generator().choice(x.reshape(-1), count).sum() - (0.5 if count == 1 else 0)
        found = np.rint(x * 32766.0 + noise) / 32768
        if not self.noise_shaping:
            return found
        error = found - x
        found[..., 1:] += error[..., :-1]
        return found


__all__ = ["Dither", "Flanger", "Overdrive", "Phaser"]
