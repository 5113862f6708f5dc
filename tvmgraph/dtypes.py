"""Data types: one object per dtype, and the promotion rules of MindSpore 2.x."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tvmgraph.errors import DTypeError

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class DType:
    """The element type of a tensor; compare with ``==`` or ``is``.

    Attributes:
        name: The lower-case name, such as ``"float32"`` (also TVM's name).
        numpy: The NumPy dtype that stores it.
        kind: ``"b"`` bool, ``"u"`` unsigned, ``"i"`` signed, ``"f"`` float, ``"c"`` complex.
        itemsize: Bytes per element.
    """

    __slots__ = ("itemsize", "kind", "name", "numpy")

    def __init__(self, name: str, numpy_type: Any, kind: str) -> None:
        self.name = name
        self.numpy = np.dtype(numpy_type)
        self.kind = kind
        self.itemsize = self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type (bfloat16 included)."""
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer type (bool excluded)."""
        return self.kind in "iu"

    def __str__(self) -> str:
        display = {"bool": "Bool", "uint": "UInt", "bfloat16": "BFloat16"}
        for prefix, text in display.items():
            if self.name.startswith(prefix):
                return text + self.name[len(prefix) :]
        return self.name.capitalize()

    def __repr__(self) -> str:
        return f"tvmgraph.{self.name}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, str):
            return self.name == other
        return isinstance(other, (np.dtype, type)) and _BY_NUMPY.get(_np_key(other)) is self

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...] | str:
        if self in (string, qint4x2):
            return "string" if self is string else "qint4x2"
        return (dtype_of, (self.name,))


bool_ = DType("bool", np.bool_, "b")
int8 = DType("int8", np.int8, "i")
int16 = DType("int16", np.int16, "i")
int32 = DType("int32", np.int32, "i")
int64 = DType("int64", np.int64, "i")
uint8 = DType("uint8", np.uint8, "u")
uint16 = DType("uint16", np.uint16, "u")
uint32 = DType("uint32", np.uint32, "u")
uint64 = DType("uint64", np.uint64, "u")
float16 = DType("float16", np.float16, "f")
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, "f")
float32 = DType("float32", np.float32, "f")
float64 = DType("float64", np.float64, "f")
complex64 = DType("complex64", np.complex64, "c")
complex128 = DType("complex128", np.complex128, "c")
string = DType("string", np.str_, "s")  # of columns of datasets only; no tensor holds text
qint4x2 = DType("int4", np.int8, "q")  # a name for two weights in a byte; no tensor has it

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (float16, bfloat16, float32, float64)
ALL = (bool_, *INTEGERS, *FLOATS)
COMPLEX = (complex64, complex128)

_BY_NAME: dict[str, DType] = {d.name: d for d in (*ALL, *COMPLEX)}
_BY_NAME |= {str(d): d for d in (*ALL, *COMPLEX)}
_BY_NAME |= {"bool_": bool_, "float": float32, "half": float16, "double": float64}
_BY_NUMPY: dict[np.dtype | None, DType] = {d.numpy: d for d in (*ALL, *COMPLEX)}
_BY_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float32, complex: complex64}


def _np_key(value: Any) -> np.dtype | None:
    try:
        return np.dtype(value)
    except (TypeError, ValueError):  # NumPy asks objects for a dtype, and tensors have another
        return None


def dtype_of(value: object) -> DType:
    """Converts a DType, name, NumPy dtype or Python type to a :class:`DType`.

    Args:
        value: What stands for a dtype.

    Raises:
        DTypeError: if ``value`` names no supported dtype; the message lists the valid ones.
    """
    if isinstance(value, DType) and value.kind not in "sq":
        return value
    found = _BY_NAME.get(value) if isinstance(value, str) else None
    if found is None and isinstance(value, type):
        found = _BY_PYTHON.get(value)
    if found is None and not isinstance(value, str) and value is not None:
        found = _BY_NUMPY.get(_np_key(value))
    if found is None:
        valid = ", ".join(d.name for d in ALL)
        raise DTypeError(f"{value!r} is not a supported dtype", fix=f"use one of {valid}")
    return found


def scalar_dtype(value: object) -> DType:
    """Returns the dtype a Python number gets as a tensor: bool, int64, float32 or complex64.

    Args:
        value: A Python or NumPy number; those of NumPy keep their dtype.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, np.generic):
        return dtype_of(value.dtype)
    if isinstance(value, numbers.Integral):
        return int64
    if isinstance(value, numbers.Real):
        return float32
    return complex64


_FLOAT_RANK = {float16: 1, bfloat16: 1, float32: 2, float64: 3}
_KIND_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_SIGNED_BY_SIZE = {d.itemsize: d for d in SIGNED}


def promote(a: DType, b: DType) -> DType:
    """Returns the common dtype of two tensors.

    Floats win over integers whatever their width (``int64 * float16`` is float16), float16 with
    bfloat16 gives float32, and a signed with an unsigned integer gives the smallest signed type
    that holds both (uint64 with a signed type gives float32).

    Args:
        a: dtype of one tensor.
        b: dtype of the other.
    """
    if a is b:
        return a
    if a.kind == "c" or b.kind == "c":
        wide = complex128 in (a, b) or float64 in (a, b)
        return complex128 if wide else complex64
    if a.is_float and b.is_float:
        rank_a, rank_b = _FLOAT_RANK[a], _FLOAT_RANK[b]
        return float32 if rank_a == rank_b else (a if rank_a > rank_b else b)
    if a.is_float or b.is_float:
        return a if a.is_float else b
    if a is bool_ or b is bool_:
        return b if a is bool_ else a
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    return _promote_mixed_sign(a, b)


def _promote_mixed_sign(a: DType, b: DType) -> DType:
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if unsigned is uint64:
        return float32
    return _SIGNED_BY_SIZE[max(signed.itemsize, 2 * unsigned.itemsize)]


def promote_scalar(tensor: DType, value: object) -> DType:
    """Returns the common dtype of a tensor and a Python number.

    The tensor's dtype wins unless the number is of a higher kind: an integer lifts bool to int64,
    a float lifts bool and integers to float32.

    Args:
        tensor: dtype of the tensor.
        value: The number; one of NumPy counts as the Python number that it is.
    """
    scalar = scalar_dtype(value.item() if isinstance(value, np.generic) else value)
    return scalar if _KIND_RANK[scalar.kind] > _KIND_RANK[tensor.kind] else tensor


def float_limits(dtype: DType) -> np.finfo:
    """Returns the largest and least numbers and the precision of a floating-point type.

    Args:
        dtype: The dtype.
    """
    return ml_dtypes.finfo(dtype.numpy)


def is_number(value: object) -> TypeIs[int | float | complex | np.generic]:
    """Whether ``value`` is a Python or NumPy scalar (bool included).

    Args:
        value: Any object.
    """
    return isinstance(value, (int, float, complex, np.generic))
