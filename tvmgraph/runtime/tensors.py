"""Named arrays as safetensors bytes, all dtypes included; needs neither TVM nor the front end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import safetensors.numpy

_NUMPY: dict[str, Any] = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "U32": np.uint32, "I32": np.int32, "U64": np.uint64, "I64": np.int64, "F16": np.float16,
    "BF16": ml_dtypes.bfloat16, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
}  # fmt: skip
_NAMES = {np.dtype(kind).name for kind in _NUMPY.values()}


class BadTensors(ValueError):
    """Bytes that are no safetensors."""


def to_bytes(arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    """Serializes arrays by name.

    Raises:
        BadTensors: if an array has a dtype the format lacks.
    """
    for name, array in arrays.items():
        if array.dtype.name not in _NAMES:
            raise BadTensors(f"{name}: safetensors has no {array.dtype.name}")
    # it would write the elements in memory order, whatever the strides are
    plain = {k: np.ascontiguousarray(a).reshape(a.shape) for k, a in arrays.items()}
    return safetensors.numpy.save(plain, metadata)


def from_bytes(data: bytes) -> dict[str, np.ndarray]:
    """Reads arrays by name; they own their memory.

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
