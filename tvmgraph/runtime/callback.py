"""Python functions that compiled code calls."""

from __future__ import annotations

import ast
import ctypes
import functools
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import tvm_ffi

from tvmgraph.core.op import get_op
from tvmgraph.distributed.engine import scratch
from tvmgraph.runtime import native

NAME = "tvmgraph.host_call"
COLUMN = "tvmgraph.numpy_column"
_WORD = 7  # characters of a text in one integer
_functions: dict[str, Callable[..., object]] = {}


def register(key: str, function: Callable[..., object]) -> None:
    """Makes a function known to compiled code of this process.

    Args:
        key: What the code calls it; functions of one key do the same.
        function: Takes arrays, which it must not change.
    """
    _functions[key] = function


def _call(key: str, *tensors: tvm_ffi.Tensor) -> object:
    _functions[key](*map(_array, tensors))
    return tensors[0]


def _array(tensor: tvm_ffi.Tensor) -> np.ndarray:
    if tensor.device.type != "cpu":  # a function that only looks, as that which prints
        from tvmgraph.runtime.device_copy import download  # here, as it needs CUDA's modules

        return download(tensor)
    if str(tensor.dtype) == "bfloat16":  # NumPy's DLPack does not know it
        return np.from_dlpack(native.view(tensor, "uint16")).view(ml_dtypes.bfloat16)
    return np.from_dlpack(tensor)


tvm_ffi.register_global_func(NAME, _call, override=True)


def encoded(name: str, attrs: Mapping[str, object], inputs: int) -> list[int]:
    """Returns integers that say which row is asked, with which attributes and operands.

    Args:
        name: The row.
        attrs: The attributes of the node.
        inputs: How many operands it has.
    """
    text = repr((name, inputs, attrs)).encode()
    return [int.from_bytes(text[i : i + _WORD]) for i in range(0, len(text), _WORD)] + [len(text)]


@functools.cache
def _decoded(words: tuple[int, ...]) -> tuple[Callable[..., Any], int, dict[str, Any], bool]:
    *words_, length = words
    sizes = [_WORD] * (length // _WORD) + [length % _WORD] * bool(length % _WORD)
    text = b"".join(w.to_bytes(n) for w, n in zip(words_, sizes)).decode()
    name, inputs, attrs = ast.literal_eval(text)
    op = get_op(name)
    return op.eager, inputs, attrs, op.multi


def _call_column(*operands: object) -> None:
    """Computes a node in NumPy: operands, which row it is, and memory for the results."""
    at = next(i for i, o in enumerate(operands) if isinstance(o, tvm_ffi.Shape))
    eager, _, attrs, multi = _decoded(tuple(operands[at]))
    results = [_writable(out) for out in operands[at + 1 :]]
    scratch.in_use = True  # results are copied below
    scratch.wanted = results[0] if len(results) == 1 else None
    try:
        found = eager(*map(_array, operands[:at]), **attrs)
        for out, value in zip(results, found if multi else (found,), strict=True):
            if _address(value) != _address(out):
                np.copyto(out, value)
    finally:
        scratch.in_use, scratch.wanted = False, None


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _writable(tensor: object) -> np.ndarray:
    seen = _array(tensor)
    if seen.flags.writeable or not seen.size:
        return seen
    memory: Any = (ctypes.c_char * seen.nbytes).from_address(seen.ctypes.data)
    return np.frombuffer(memory, seen.dtype).reshape(seen.shape)


tvm_ffi.register_global_func(COLUMN, _call_column, override=True)
