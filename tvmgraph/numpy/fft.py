"""MindSpore's ``mindspore.numpy.fft``: NumPy's Fourier transforms over tensors."""

from __future__ import annotations

from collections.abc import Callable

from tvmgraph.compat.absent import not_found
from tvmgraph.numpy import rows as _rows

_ONE = "fft ifft rfft irfft hfft ihfft".split()  # noqa: SIM905
_TWO, _MANY = ([name + end for name in _ONE] for end in ("2", "n"))
_ROWS = {
    **{n: ("a, n=None, axis=-1, norm=None", f"F.{n}(a, n, axis, norm)") for n in _ONE},
    **{n: ("a, s=None, axes=(-2, -1), norm=None", f"F.{n}(a, s, axes, norm)") for n in _TWO},
    **{n: ("a, s=None, axes=None, norm=None", f"F.{n}(a, s, axes, norm)") for n in _MANY},
    **{n: ("x, axes=None", f"F.{n}(x, axes)") for n in ("fftshift", "ifftshift")},
    **{n: ("n, d=1.0, dtype=None", f"F.{n}(n, d, dtype=dtype)") for n in ("fftfreq", "rfftfreq")},
}

__all__ = sorted(_ROWS)


def __getattr__(name: str) -> Callable[..., object]:
    if name not in _ROWS:
        raise not_found("tvmgraph.numpy.fft", name, __all__)
    globals()[name] = found = _rows.build(name, *_ROWS[name], {})
    return found


def __dir__() -> list[str]:
    return list(__all__)
