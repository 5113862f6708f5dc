"""Host storage: 64-byte aligned NumPy arrays.

Generated vector code uses aligned loads, and NumPy only promises 16 bytes, so tensors built from
user data are copied into aligned memory and any other array is moved there the first time it
meets compiled code.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from tvmgraph.core.types import TensorType
from tvmgraph.errors import OutOfMemoryError

ALIGNMENT = 64  # bytes: one AVX-512 vector, and a cache line
_WAY, _WAYS = 4096, 8  # bytes of a way of the first cache, and ways of the smallest


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype | type) -> np.ndarray:
    """Returns an uninitialised C-contiguous array whose data starts on a 64-byte boundary.

    Args:
        shape: Its shape.
        dtype: Its dtype.
    """
    return _aligned(np.empty, shape, np.dtype(dtype))


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype | type) -> np.ndarray:
    """Returns such an array of zeros, which takes no memory before it is written to.

    Args:
        shape: Its shape.
        dtype: Its dtype.
    """
    return _aligned(np.zeros, shape, np.dtype(dtype))


def _aligned(
    make: Callable[..., np.ndarray], shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    nbytes = math.prod(shape) * dtype.itemsize
    raw = make(nbytes + ALIGNMENT, np.uint8)
    offset = -raw.ctypes.data % ALIGNMENT
    return raw[offset : offset + nbytes].view(dtype).reshape(shape)


def aligned_copy(array: np.ndarray, dtype: np.dtype | type | None = None) -> np.ndarray:
    """Copies ``array`` (converting to ``dtype``) into aligned, contiguous memory.

    Args:
        array: An array of any layout.
        dtype: dtype of the copy; by default the array's.
    """
    out = aligned_empty(array.shape, array.dtype if dtype is None else dtype)
    step = _columns(array)
    if step:
        for i in range(0, array.shape[-1], step):
            np.copyto(out[..., i : i + step], array[..., i : i + step], casting="unsafe")
    else:
        np.copyto(out, array, casting="unsafe")
    return out


def _columns(array: np.ndarray) -> int:
    """Returns how many columns of a transposed array are copied at a time, 0 for all.

    NumPy reads one element of every column, row by row: the cache must keep a line of each, and
    keeps few where their distance is a multiple of its ways.
    """
    if array.ndim < 2 or not array.strides[-1] > array.strides[-2] > 0:
        return 0
    kept = min(_WAY // ALIGNMENT, _WAY // math.gcd(array.strides[-1], _WAY)) * _WAYS
    step = min(max(1, ALIGNMENT // array.itemsize), kept)
    return step if array.shape[-1] > kept and array.shape[-2] >= step else 0


def is_ready(array: np.ndarray) -> bool:
    """Whether compiled code may read ``array`` as it is.

    Args:
        array: Any array.
    """
    flags = array.flags
    return flags.c_contiguous and flags.writeable and array.ctypes.data % ALIGNMENT == 0


# Arrays that NumPy code may write to at any time, by identity.
_lent: dict[int, weakref.ref[np.ndarray]] = {}
#: Size of the table at which the arrays that are gone are dropped from it. They are not as they go:
#: Ctrl-C that comes while Python code does that is lost.
_crowded = 1 << 10
#: How many arrays have been lent so far.
lendings = 0


def lend(array: np.ndarray) -> None:
    """Notes that code outside of this package holds ``array`` and may write to it.

    Args:
        array: The array.
    """
    global lendings
    if not is_lent(array):
        if len(_lent) >= _crowded:
            _drop_gone()
        _lent[id(array)] = weakref.ref(array)
        lendings += 1


def _drop_gone() -> None:
    global _crowded
    for key, ref in list(_lent.items()):
        if ref() is None and _lent.get(key) is ref:
            del _lent[key]
    _crowded = max(_crowded, 2 * len(_lent))


def take_back(array: np.ndarray) -> None:
    """Notes that no code outside of this package holds ``array`` any more.

    Args:
        array: The array; one that was never lent is left as it is.
    """
    _lent.pop(id(array), None)


def is_lent(array: np.ndarray) -> bool:
    """Whether :func:`lend` was called for this very array.

    Args:
        array: The array.
    """
    found = _lent.get(id(array))
    return found is not None and found() is array


# ---- whether there is memory for a result, asked before it is allocated --------------------------
# Systems that overcommit give out more than they have and end the process when it is used.

_SMALL = 1 << 28  # bytes that nobody asks about
_LARGEST = 1 << 62  # elements that can be counted


def require_memory(types: Iterable[TensorType]) -> None:
    """Makes sure that results fit the memory that is free.

    Args:
        types: Types of the results; those of unknown size are left out.

    Raises:
        OutOfMemoryError: if one of them does not.
    """
    for t in types:
        if t.is_static:
            require_bytes(math.prod(t.shape) * t.dtype.itemsize, f"a result of type {t}")


def require_bytes(count: int, what: str) -> None:
    """Raises :class:`OutOfMemoryError` if there is no memory for something.

    Args:
        count: Its bytes.
        what: What the message calls it.
    """
    if count > _SMALL and count > (free := _available()):
        size = f"{count / 2**30:,.1f} GiB" if count < _LARGEST else "more than any memory"
        raise OutOfMemoryError(f"{what} needs {size}; {free / 2**30:.1f} GiB are free")


def _available() -> int:
    """Returns how many bytes can be used without ending a process."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines)
        return int(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
