"""What the functions of :mod:`tvmgraph.numpy` do with their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes, ops
from tvmgraph.core import rules
from tvmgraph.core.arguments import DTypeLike
from tvmgraph.core.tensor import Tensor
from tvmgraph.errors import DTypeError, TvmgraphError, user_source

#: NumPy's defaults of 64 bits are 32 bits wide here, as in MindSpore.
NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}


def dtype_of(dtype: DTypeLike) -> dtypes.DType:
    """Returns the dtype that a user's name, Python type or dtype stands for.

    Args:
        dtype: The dtype.
    """
    words = {"float": "float32", "int": "int32", float: "float32", int: "int32"}
    known = isinstance(dtype, (str, type))
    return dtypes.dtype_of(words.get(dtype, dtype) if known else dtype)


def as_dtype(value: Any, dtype: DTypeLike | None) -> Any:
    """Returns a tensor, or a tuple of them, in the dtype asked for; None leaves it.

    Args:
        value: A tensor or a tuple of them.
        dtype: The dtype.
    """
    if dtype is None:
        return value
    if isinstance(value, tuple):
        return tuple(as_dtype(v, dtype) for v in value)
    return ops.cast(value, dtype_of(dtype))


def array_of(value: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a tensor of numbers, (nested) sequences, an array or a tensor.

    Args:
        value: The numbers.
        dtype: Dtype wanted; else that of a tensor or array, and int32 or float32 for Python's.
    """
    if isinstance(value, Tensor):
        return as_dtype(value, dtype)
    if _holds_tensors(value):
        return as_dtype(ops.stack([array_of(v) for v in value]), dtype)
    if not isinstance(value, (bool, int, float, complex, list, tuple, np.ndarray, np.generic)):
        raise DTypeError(
            f"an array is needed, not {type(value).__name__}", at=user_source(),
            fix="give a Tensor, a number, or a list of numbers",
        )  # fmt: skip
    found = np.asarray(value)
    if dtype is None and not isinstance(value, (np.ndarray, np.generic)):
        dtype = NARROW.get(str(found.dtype))
    return Tensor(found, None if dtype is None else dtype_of(dtype))


def _holds_tensors(value: object) -> bool:
    return isinstance(value, (list, tuple)) and any(
        isinstance(v, Tensor) or _holds_tensors(v) for v in value
    )


def arrays_of(values: Any) -> list[Tensor]:
    """Returns the tensors of a sequence, or the slices of one tensor along its first axis.

    Args:
        values: A sequence of arrays, or one array.
    """
    return [array_of(v) for v in values]


def is_float(x: Tensor) -> bool:
    """Whether ``x`` has a dtype of floats.

    Args:
        x: An array.
    """
    return x.dtype.kind == "f"


def floats(x: Tensor) -> Tensor:
    """Returns ``x`` in float32 unless it holds floats.

    Args:
        x: An array.
    """
    return x if is_float(x) else ops.cast(x, dtypes.float32)


def axis_of(axis: int, ndim: int) -> int:
    """Returns an axis counted from the front.

    Args:
        axis: Axis or axes; negative ones count from the end.
        ndim: Number of axes of the array.

    Raises:
        AxisError: when there is no such axis.
    """
    try:
        if ndim == 0:
            raise rules.AxisError(f"axis {axis} of an array without axes")
        return rules.normalize_axis(axis, ndim)
    except TvmgraphError as e:
        raise e.locate("numpy", f"axis={axis!r}", user_source()) from None


def axes_of(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Returns axes counted from the front; None stands for all.

    Args:
        axis: Axis or axes; negative ones count from the end.
        ndim: Number of axes of the array.
    """
    if axis is None:
        return tuple(range(ndim))
    return tuple(axis_of(a, ndim) for a in ((axis,) if isinstance(axis, int) else axis))
