"""Python functions that compiled code calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import tvm_ffi

from tvmgraph.runtime import native

NAME = "tvmgraph.host_call"
_functions: dict[str, Callable[..., Any]] = {}


def register(key: str, function: Callable[..., Any]) -> None:
    """Makes a function known to compiled code of this process.

    Args:
        key: What the code calls it; functions of one key do the same.
        function: Takes arrays, which it must not change.
    """
    _functions[key] = function


def _call(key: str, *tensors: Any) -> Any:
    _functions[key](*map(_array, tensors))
    return tensors[0]


def _array(tensor: Any) -> np.ndarray:
    if str(tensor.dtype) == "bfloat16":  # NumPy's DLPack does not know it
        return np.from_dlpack(native.view(tensor, "uint16")).view(ml_dtypes.bfloat16)
    return np.from_dlpack(tensor)


tvm_ffi.register_global_func(NAME, _call, override=True)
