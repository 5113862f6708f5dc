"""Filters of sounds: recursive filters, and those of second order by what they shall do.

Every filter computes :math:`a_0 y_n = \\sum_i b_i x_{n-i} - \\sum_{i>0} a_i y_{n-i}` along the last
axis; a class of the table has the coefficients :math:`b, a` of its function.
"""

# ruff: noqa: N803  (Q is MindSpore's name)

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np

from tvmgraph.core.shown import Shown
from tvmgraph.dataset.transforms import as_array
from tvmgraph.errors import ArgumentError, DTypeError, either, reject

Coefficients = tuple[Sequence[float], Sequence[float]]
Border = Literal["constant", "edge", "reflect", "symmetric"]


def floats_of(op: str, value: object, half: bool = False, whole: bool = True) -> np.ndarray:
    """Returns a sound as an array of floats; integers become float32.

    Args:
        op: Name of the transform.
        value: The sound.
        half: Whether float16 stays, else it becomes float32.
        whole: Whether integers are taken.

    Raises:
        DTypeError: if it holds no numbers, or integers that are not taken; in MindSpore's
            pipelines it is a RuntimeError, too.
    """
    array = as_array(value)
    if array.dtype.kind not in ("fiub" if whole else "f"):
        reject(either(DTypeError, RuntimeError), op,
               f"the sound must hold floats, not {array.dtype}")  # fmt: skip
    if array.dtype.kind != "f":
        return array.astype(np.float32)
    return array if half or array.dtype.itemsize > 2 else array.astype(np.float32)


def padded(x: np.ndarray, before: int, after: int, mode: Border = "constant") -> np.ndarray:
    """Returns a sound or spectrum with more samples or windows at both ends of the last axis.

    Args:
        x: Any number of axes.
        before: How many come before it.
        after: How many come after it.
        mode: What they are, as :func:`numpy.pad` says it; zeros by default.
    """
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, after)], mode)


def recursive(x: np.ndarray, b: Sequence[float], a: Sequence[float]) -> np.ndarray:
    """Returns a sound after a recursive filter, in float64.

    Args:
        x: Samples along the last axis.
        b: Coefficients of the inputs, that of the newest first.
        a: Coefficients of the results, that of the newest first; it divides all others.
    """
    from scipy.signal import lfilter  # here, because it takes long to import

    return np.asarray(lfilter(b, a, x.astype(np.float64)))


class LFilter(Shown):
    """A recursive filter.

    Args:
        a_coeffs: Weights of the results, from the newest on; the first is not 0.
        b_coeffs: Weights of the samples, as many.
        clamp: Whether the result is cut off at -1 and 1.

    Raises:
        ArgumentError: if the first of ``a_coeffs`` is 0, or there are more of one kind.
        DTypeError: when called with something else than floats.

    Example:
        >>> dataset.audio.LFilter([1.0, -0.5], [1.0, 0.0])(np.array([0.5, 0.0, 0.0])).tolist()
        [0.5, 0.25, 0.125]
    """

    def __init__(
        self, a_coeffs: Sequence[float], b_coeffs: Sequence[float], clamp: bool = True
    ) -> None:
        if len(a_coeffs) != len(b_coeffs) or not a_coeffs[0]:
            reject(ArgumentError, type(self).__name__,
                   "a_coeffs and b_coeffs must be as many, and a_coeffs[0] not 0")  # fmt: skip
        self.a_coeffs, self.b_coeffs, self.clamp = a_coeffs, b_coeffs, clamp

    def _filtered(self, x: np.ndarray) -> np.ndarray:
        return recursive(x, self.b_coeffs, self.a_coeffs)

    def __call__(self, value: object) -> np.ndarray:
        x = floats_of(type(self).__name__, value, half=True, whole=False)
        y = self._filtered(x)
        return (np.clip(y, -1, 1) if self.clamp else y).astype(x.dtype)


class Filtfilt(LFilter):
    """A recursive filter that is applied forwards, then backwards, and so moves no phase.

    Args:
        a_coeffs: Weights of the results, from the newest on; the first is not 0.
        b_coeffs: Weights of the samples, as many.
        clamp: Whether the result is cut off at -1 and 1.

    Example:
        >>> smooth = dataset.audio.Filtfilt([1.0, 0.0], [0.5, 0.5])
        >>> smooth(np.array([0.0, 1.0, 0.0, 0.0])).tolist()
        [0.25, 0.5, 0.25, 0.0]
    """

    def _filtered(self, x: np.ndarray) -> np.ndarray:
        return super()._filtered(super()._filtered(x)[..., ::-1])[..., ::-1]


# ---- coefficients of second order ---------------------------------------------------------------


def _angle(sample_rate: int, frequency: float, Q: float = 0.707) -> tuple[float, float]:
    """Returns the cosine of a frequency, and the sine over 2 Q: half the width of its band."""
    w = 2 * math.pi * frequency / sample_rate
    return math.cos(w), math.sin(w) / 2 / Q


def _around(cos: float, alpha: float, *b: float) -> Coefficients:
    return b, (1 + alpha, -2 * cos, 1 - alpha)


def _lowpass(sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> Coefficients:
    """Lets frequencies below ``cutoff_freq`` pass."""
    cos, alpha = _angle(sample_rate, cutoff_freq, Q)
    return _around(cos, alpha, (1 - cos) / 2, 1 - cos, (1 - cos) / 2)


def _highpass(sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> Coefficients:
    """Lets frequencies above ``cutoff_freq`` pass."""
    cos, alpha = _angle(sample_rate, cutoff_freq, Q)
    return _around(cos, alpha, (1 + cos) / 2, -1 - cos, (1 + cos) / 2)


def _allpass(sample_rate: int, central_freq: float, Q: float = 0.707) -> Coefficients:
    """Moves phases and keeps the loudness of all frequencies."""
    cos, alpha = _angle(sample_rate, central_freq, Q)
    return _around(cos, alpha, 1 - alpha, -2 * cos, 1 + alpha)


def _bandpass(
    sample_rate: int, central_freq: float, Q: float = 0.707, const_skirt_gain: bool = False
) -> Coefficients:
    """Lets frequencies around ``central_freq`` pass."""
    cos, alpha = _angle(sample_rate, central_freq, Q)
    peak = alpha * Q if const_skirt_gain else alpha
    return _around(cos, alpha, peak, 0, -peak)


def _bandreject(sample_rate: int, central_freq: float, Q: float = 0.707) -> Coefficients:
    """Takes frequencies around ``central_freq`` out."""
    cos, alpha = _angle(sample_rate, central_freq, Q)
    return _around(cos, alpha, 1, -2 * cos, 1)


def _equalizer(sample_rate: int, center_freq: float, gain: float, Q: float = 0.707) -> Coefficients:
    """Makes frequencies around ``center_freq`` louder by ``gain`` decibels."""
    cos, alpha = _angle(sample_rate, center_freq, Q)
    root = 10 ** (gain / 40)
    return _around(cos, alpha / root, 1 + alpha * root, -2 * cos, 1 - alpha * root)


def _band(
    sample_rate: int, central_freq: float, Q: float = 0.707, noise: bool = False
) -> Coefficients:
    """Lets frequencies around ``central_freq`` pass, with slopes for speech or, else, noise."""
    a2 = math.exp(-2 * math.pi * central_freq / Q / sample_rate)
    a1 = -4 * a2 / (1 + a2) * math.cos(2 * math.pi * central_freq / sample_rate)
    b0 = math.sqrt(1 - a1 * a1 / (4 * a2)) * (1 - a2)
    if noise:
        b0 = math.sqrt(((1 + a2) ** 2 - a1 * a1) * (1 - a2) / (1 + a2))
    return (b0, 0, 0), (1, a1, a2)


def _shelf(cos: float, alpha: float, root: float, side: int) -> Coefficients:
    """Makes one side louder: low frequencies for 1, high ones for -1."""
    slope, less, more = 2 * math.sqrt(root) * alpha, side * (root - 1) * cos, (root + 1) * cos
    above, below = root + 1, side * (root - 1)
    b = (root * (above - less + slope), side * 2 * root * (root - 1 - side * more),
         root * (above - less - slope))  # fmt: skip
    return b, (above + less + slope, -2 * (below + more), above + less - slope)


def _bass(
    sample_rate: int, gain: float, central_freq: float = 100.0, Q: float = 0.707
) -> Coefficients:
    """Makes frequencies below ``central_freq`` louder by ``gain`` decibels."""
    return _shelf(*_angle(sample_rate, central_freq, Q), 10 ** (gain / 40), 1)


def _treble(
    sample_rate: int, gain: float, central_freq: float = 3000, Q: float = 0.707
) -> Coefficients:
    """Makes frequencies above ``central_freq`` louder by ``gain`` decibels."""
    return _shelf(*_angle(sample_rate, central_freq, Q), 10 ** (gain / 40), -1)


#: Sample rate -> frequency, slope and decibels of the shelf by which CDs are read.
_EMPHASIS = {44100: (5283, 0.4845, -9.477), 48000: (5356, 0.479, -9.62)}


def _deemph(sample_rate: int) -> Coefficients:
    """Takes the emphasis of high frequencies out that CDs have."""
    if sample_rate not in _EMPHASIS:
        reject(
            ArgumentError, "DeemphBiquad", f"sample_rate must be 44100 or 48000, not {sample_rate}"
        )
    frequency, width, gain = _EMPHASIS[sample_rate]
    root = 10 ** (gain / 40)
    cos, half = _angle(sample_rate, frequency, 1)
    return _shelf(cos, half * math.sqrt((root + 1 / root) * (1 / width - 1) + 2), root, -1)


#: Sample rate -> zeros and poles of the curve by which records are played.
_RECORD = {
    44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)),
    48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
    88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)),
    96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
}


def _riaa(sample_rate: int) -> Coefficients:
    """Plays records by the RIAA's curve, which leaves 1 kHz as it is."""
    if sample_rate not in _RECORD:
        reject(ArgumentError, "RiaaBiquad", f"sample_rate must be one of {[*_RECORD]}")
    b, a = (np.poly(roots) for roots in _RECORD[sample_rate])
    at = np.exp(2j * np.pi * 1000 / sample_rate)
    gain = abs(np.polyval(a, at) / np.polyval(b, at))
    return (b * gain).tolist(), a.tolist()


def _given(b0: float, b1: float, b2: float, a0: float, a1: float, a2: float) -> Coefficients:
    """A filter of second order."""
    return (b0, b1, b2), (a0, a1, a2)


_FILTERS: dict[str, Callable[..., Coefficients]] = {
    "AllpassBiquad": _allpass, "BandBiquad": _band, "BandpassBiquad": _bandpass,
    "BandrejectBiquad": _bandreject, "BassBiquad": _bass, "Biquad": _given,
    "DeemphBiquad": _deemph, "EqualizerBiquad": _equalizer, "HighpassBiquad": _highpass,
    "LowpassBiquad": _lowpass, "RiaaBiquad": _riaa, "TrebleBiquad": _treble,
}  # fmt: skip


#: What the arguments of the filters mean.
_ARGUMENTS = {
    "sample_rate": "Samples of the sound per second.",
    "cutoff_freq": "The frequency, in Hz.",
    "central_freq": "The frequency, in Hz.",
    "center_freq": "The frequency, in Hz.",
    "gain": "Decibels.",
    "Q": "Narrowness of the band, above 0 and at most 1.",
    "noise": "Whether the sound is noise.",
    "const_skirt_gain": "Whether the slopes, not the peak, are as loud for every ``Q``.",
    **{f"b{i}": f"Weight of the sample {i} before." for i in range(3)},
    **{f"a{i}": f"Weight of the result {i} before." for i in range(3)},
}


def _doc(coefficients: Callable[..., Coefficients], names: Iterable[str]) -> str:
    lines = "".join(f"    {name}: {_ARGUMENTS[name]}\n" for name in names)
    return f"""{coefficients.__doc__}

Args:
{lines}
Raises:
    DTypeError: for an argument, or a sound, of another type.
    ArgumentError: for a number that is not possible.
"""


_MOST, _LARGEST = 2**31 - 1, 2**24  # of a count, of a number


def _check(op: str, values: dict[str, object]) -> None:
    for name, value in values.items():
        kind = bool if name in ("noise", "const_skirt_gain") else (int, float)
        kind = int if name == "sample_rate" else kind
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            reject(DTypeError, op, f"{name} cannot be {value!r}")
        if isinstance(value, (int, float)) and abs(value) > (_MOST if kind is int else _LARGEST):
            reject(ArgumentError, op, f"{name} is too large: {value}")
        if name in ("sample_rate", "a0") and value == 0:
            reject(ArgumentError, op, f"{name} must not be 0")
        if name == "Q" and not 0 < value <= 1:  # pyright: ignore[reportOperatorIssue]
            reject(ArgumentError, op, f"Q must be in (0, 1], not {value}")


def _class_of(name: str, coefficients: Callable[..., Coefficients]) -> type[LFilter]:
    signature = inspect.signature(coefficients)

    @functools.wraps(coefficients)
    def init(self: LFilter, *args: object, **kwargs: object) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        _check(name, bound.arguments)
        b, a = coefficients(*bound.args)
        LFilter.__init__(self, a, b)

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    init.__signature__ = signature.replace(  # pyright: ignore
        parameters=[own, *signature.parameters.values()], return_annotation=None
    )
    methods = {"__init__": init, "__module__": __name__}
    methods["__doc__"] = _doc(coefficients, signature.parameters)
    return type(name, (LFilter,), methods)


CLASSES: dict[str, type[LFilter]] = {
    "LFilter": LFilter, "Filtfilt": Filtfilt, **{n: _class_of(n, c) for n, c in _FILTERS.items()},
}  # fmt: skip
