"""Named arrays as safetensors bytes, all dtypes included; needs neither TVM nor the front end."""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import safetensors.numpy

_NUMPY: dict[str, np.dtype | type] = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16,
    "BF16": ml_dtypes.bfloat16, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
}  # fmt: skip
ALIGNMENT = 64  # bytes: generated vector code uses aligned loads
_LENGTH_BYTES = 8  # in front of the header stands its length
_NAMES = {np.dtype(kind).name for kind in _NUMPY.values()}


def aligned_bytes(size: int) -> np.ndarray:
    """Returns ``uint8[size]`` at an aligned address, its elements undefined.

    Args:
        size: Bytes.
    """
    raw = np.empty(size + ALIGNMENT, np.uint8)
    offset = -raw.ctypes.data % ALIGNMENT
    return raw[offset : offset + size]


def mapped_bytes(path: Path) -> np.ndarray:
    """Returns the content of a file, ``uint8[size]``, as memory.

    Pages are those of the system's cache of files until they are written to, which does not change
    the file: nothing is copied, and processes that map one file share its memory.

    Args:
        path: The file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is empty.
    """
    with path.open("rb") as file:
        access = {"flags": mmap.MAP_PRIVATE, "prot": mmap.PROT_READ | mmap.PROT_WRITE}
        return np.frombuffer(mmap.mmap(file.fileno(), 0, **access), np.uint8)


class BadTensors(ValueError):
    """Bytes that are no safetensors."""


def to_bytes(arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    """Serializes arrays by name.

    Args:
        arrays: Name -> array.
        metadata: Texts by name that are stored beside them.

    Raises:
        BadTensors: if an array has a dtype the format lacks.
    """
    for name, array in arrays.items():
        if array.dtype.name not in _NAMES:
            raise BadTensors(f"{name}: safetensors has no {array.dtype.name}")
    # it would write the elements in memory order, whatever the strides are
    plain = {k: np.ascontiguousarray(a).reshape(a.shape) for k, a in arrays.items()}
    return _padded(safetensors.numpy.save(plain, metadata))


def _padded(data: bytes) -> bytes:
    """Lengthens the header by blanks, so that the elements start at an aligned place."""
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    blanks = b" " * (-end % ALIGNMENT)
    size = (end - _LENGTH_BYTES + len(blanks)).to_bytes(_LENGTH_BYTES, "little")
    return b"".join((size, data[_LENGTH_BYTES:end], blanks, memoryview(data)[end:]))


def views(raw: np.ndarray) -> dict[str, np.ndarray]:
    """Returns arrays by name without copying them.

    Args:
        raw: The bytes, ``uint8[size]``.

    Raises:
        BadTensors: if they are damaged.
    """
    start = _LENGTH_BYTES + int.from_bytes(raw[:_LENGTH_BYTES].tobytes(), "little")
    try:
        if start > raw.size:
            raise BadTensors("the header is longer than the file")
        header = json.loads(raw[_LENGTH_BYTES:start].tobytes())
        header.pop("__metadata__", None)
        return {name: _view(raw[start:], entry) for name, entry in header.items()}
    except BadTensors:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as e:
        raise BadTensors(f"these are no safetensors: {type(e).__name__}: {e}") from None


def _view(elements: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    kind, shape = np.dtype(_NUMPY[entry["dtype"]]), entry["shape"]
    first, last = entry["data_offsets"]
    if not all(type(n) is int and n >= 0 for n in (first, last, *shape)):
        raise BadTensors("sizes and offsets must be natural numbers")
    if last > elements.size or last - first != math.prod(shape) * kind.itemsize:
        raise BadTensors(f"an array of {shape} does not fit its place")
    return elements[first:last].view(kind).reshape(shape)


def from_bytes(data: bytes) -> dict[str, np.ndarray]:
    """Reads arrays by name; they own their memory.

    Args:
        data: What :func:`to_bytes` returned, or a file in safetensors format.

    Raises:
        BadTensors: if the bytes are damaged.
    """
    try:
        entries = safetensors.deserialize(data)
    except Exception as e:
        raise BadTensors(f"these are no safetensors: {e}") from None
    arrays = {}
    for name, entry in entries:
        kind = _NUMPY.get(entry["dtype"])
        if kind is None:
            raise BadTensors(f"{name}: unknown dtype {entry['dtype']}")
        arrays[name] = np.frombuffer(entry["data"], kind).reshape(entry["shape"]).copy()
    return arrays
