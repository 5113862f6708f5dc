"""What kinds of kernels :class:`tvmgraph.ops.Custom` takes, and how C functions are called.

MindSpore's convention for C functions is::

    int f(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
          void *stream, void *extra)

with the inputs first and the outputs after them; 0 means success.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph.core.storage import aligned_copy, aligned_empty
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import ArgumentError, CompileError

#: Every kind, and what it means.
KINDS = {
    "te": "a function of TVM tensor expressions",
    "tvmscript": "a TVMScript function, or a function of the input types that returns one",
    "pyfunc": "a function of NumPy arrays",
    "aot": "'library.so:function' with MindSpore's C signature",
}
#: MindSpore's kinds for other devices and for its own kernel languages.
_ELSEWHERE = {
    "akg": "write the kernel as a tensor expression (func_type='te')",
    "tbe": "write the kernel as a tensor expression (func_type='te')",
    "hybrid": "write the kernel in TVMScript (func_type='tvmscript')",
    "aicpu": "use func_type='aot' with a C function for the CPU",
    "julia": "use func_type='aot' with a C function, or 'pyfunc'",
}


def kind_of(func: object, given: str) -> str:
    """Returns the kind of a kernel.

    Args:
        func: The kernel.
        given: What the user said; empty to go by ``func``.

    Raises:
        ArgumentError: if there is no such kind, or ``func`` is not of that kind.
    """
    given = "pyfunc" if given == "numpy" else given
    if given and given not in KINDS:
        known = "; ".join(f"{name!r}: {meaning}" for name, meaning in KINDS.items())
        first = f"{_ELSEWHERE[given]}. " if given in _ELSEWHERE else ""
        raise ArgumentError(f"func_type cannot be {given!r}", fix=f"{first}use one of {known}")
    kind = given or ("aot" if isinstance(func, str) else "tvmscript" if is_script(func) else "te")
    if kind == "aot" and not isinstance(func, str):
        raise ArgumentError(f"'aot' needs 'library.so:function', not {type(func).__name__}")
    if kind != "aot" and not (callable(func) or is_script(func)):
        raise ArgumentError(
            f"func must be callable, not {type(func).__name__}", fix="pass a function"
        )
    return kind


def is_script(func: object) -> bool:
    """Whether a kernel is a TVMScript function.

    Args:
        func: What a user gave as a kernel.
    """
    return all(hasattr(func, name) for name in ("script", "params", "body"))


def parameter_types(func: Any) -> tuple[TensorType, ...] | None:
    """Returns the types that a TVMScript function is made for; None if its sizes vary.

    Args:
        func: A TVMScript function.
    """
    try:
        return tuple(tensor_type([int(d) for d in p.shape], str(p.dtype)) for p in func.params)
    except (TypeError, ValueError, AttributeError, RuntimeError):
        return None


def load_function(text: str, infer: Callable[..., tuple[TensorType, ...]]) -> Callable[..., object]:
    """Returns a function of NumPy arrays that calls a C function.

    Args:
        text: ``"library.so:function"``.
        infer: Output types of input types.

    Raises:
        ArgumentError: if the library cannot be loaded or lacks the function.
    """
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise ArgumentError(f"{text!r} is not 'library.so:function'")
    try:
        function = getattr(ctypes.CDLL(os.path.abspath(path)), name)
    except OSError as e:
        raise ArgumentError(
            f"{path} cannot be loaded: {e}",
            fix="compile it with: g++ --shared -fPIC -O3 -o library.so source.cc",
        ) from None
    except AttributeError:
        raise ArgumentError(
            f"{path} has no function {name!r}", fix='declare it extern "C"'
        ) from None
    function.restype = ctypes.c_int

    def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        types = infer(*[tensor_type(a.shape, a.dtype) for a in arrays])
        given = [aligned_copy(a) for a in arrays]
        results = [aligned_empty(t.static_shape, t.dtype.numpy) for t in types]
        status = function(*_c_arguments([*given, *results]))
        if status != 0:
            raise CompileError(f"the C function returned {status}", fix="0 means success")
        return tuple(results)

    return call


def _c_arguments(arrays: Sequence[np.ndarray]) -> tuple[object, ...]:
    count = len(arrays)
    shapes = [(ctypes.c_int64 * max(1, a.ndim))(*a.shape) for a in arrays]
    pointers = [ctypes.cast(s, ctypes.POINTER(ctypes.c_int64)) for s in shapes]
    return (
        ctypes.c_int(count),
        (ctypes.c_void_p * count)(*[a.ctypes.data for a in arrays]),
        (ctypes.c_int * count)(*[a.ndim for a in arrays]),
        (ctypes.POINTER(ctypes.c_int64) * count)(*pointers),
        (ctypes.c_char_p * count)(*[str(a.dtype).encode() for a in arrays]),
        None,
        None,
    )
