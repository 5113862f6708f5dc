"""MindSpore's ``mindspore.common.dtype``: the dtypes and their conversions."""

from __future__ import annotations

import enum

from tvmgraph.compat.typing import Bool, Float, Int, ObjectKind, list_, tuple_, type_none
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType
from tvmgraph.dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype_of,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tvmgraph.dtypes import qint4x2 as qint4x2
from tvmgraph.dtypes import string as string

#: What annotations of programs call the class of dtypes, and that of a tensor's shape and dtype.
Type, tensor_type = DType, TensorType

int_, float_ = int32, float32  # what MindSpore's operators make of a kind without a size
half, single, double = float16, float32, float64
byte, short, intc, intp, long = int8, int16, int32, int64, int64
cfloat, cdouble = complex64, complex128
ubyte, ushort, uintc, uintp = uint8, uint16, uint32, uint64

int_type, uint_type = (int8, int16, int32, int64), (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16)
complex_type = (complex64, complex128)
signed_type = (*int_type, *float_type, *complex_type)
number_type = (*int_type, *uint_type, *float_type, *complex_type)
all_types = (bool_, *number_type)
number = "Number"  # any of Python's, where a MultitypeFuncGraph registers a function


class QuantDtype(enum.Enum):
    """Widths of quantized integers, by which algorithms of quantization name what they make.

    ``INT1`` to ``INT16`` are 0 to 15, ``UINT1`` to ``UINT16`` are 100 to 115, as in MindSpore.
    """

    _ignore_ = "bits"
    for bits in range(16):
        vars()[f"INT{bits + 1}"] = bits
    for bits in range(16):
        vars()[f"UINT{bits + 1}"] = 100 + bits

    def __str__(self) -> str:
        return self.name

    def value(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Returns the number of a width, which files of MindSpore hold."""
        return self._value_


#: What would hide Python's in this file, as globals.
_BUILTINS = {"bool": bool_, "int": int32, "float": float32}


def __getattr__(name: str) -> DType:
    if name in _BUILTINS:
        return _BUILTINS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_PYTHON = {"b": bool, "u": int, "i": int, "f": float, "c": complex}
_KINDS = {str: string, list: list_, tuple: tuple_, type(None): type_none}


def dtype_to_nptype(type_: DType) -> type:
    """Returns the NumPy scalar class that stores a dtype.

    Args:
        type_: The dtype or its name.

    Example:
        >>> dtype_to_nptype(float32).__name__
        'float32'
    """
    return dtype_of(type_).numpy.type


def dtype_to_pytype(type_: DType) -> type:
    """Returns the Python class of a dtype's elements.

    Args:
        type_: The dtype or its name.

    Example:
        >>> dtype_to_pytype(int8)
        <class 'int'>
    """
    return _PYTHON[dtype_of(type_).kind]


def pytype_to_dtype(obj: type) -> DType | ObjectKind:
    """Returns the dtype that a Python or NumPy class denotes, or the kind of its objects.

    Args:
        obj: The class.

    Note:
        ``float`` is float64 here, as in MindSpore; as a ``dtype=`` argument it is float32.

    Example:
        >>> pytype_to_dtype(int)
        tvmgraph.int64
    """
    return float64 if obj is float else _KINDS.get(obj) or dtype_of(obj)


def get_py_obj_dtype(obj: object) -> DType | ObjectKind:
    """Returns the dtype of a tensor or number, or the kind of a string, tuple, list or ``None``.

    Args:
        obj: A tensor, a Python or NumPy number, or one of these.
    """
    return obj.dtype if isinstance(obj, Tensor) else pytype_to_dtype(type(obj))


def type_size_in_bytes(dtype: DType) -> int:
    """Returns the size of one element.

    Args:
        dtype: The dtype or its name.

    Example:
        >>> type_size_in_bytes(float16)
        2
    """
    return dtype_of(dtype).itemsize


__all__ = [
    "Bool", "DType", "Float", "Int", "bfloat16", "bool_", "byte", "complex64", "complex128",
    "double", "dtype_of", "dtype_to_nptype", "dtype_to_pytype", "float16", "float32", "float64",
    "get_py_obj_dtype", "half", "int8", "int16", "int32", "int64", "intc", "intp", "list_",
    "pytype_to_dtype", "short", "single", "tuple_", "type_none", "type_size_in_bytes", "ubyte",
    "uint8", "uint16", "uint32", "uint64", "uintc", "uintp", "ushort",
]  # fmt: skip
