"""Steps that several rows of :mod:`.rows` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes, ops
from tvmgraph.core import rules
from tvmgraph.core.arguments import AxisLike, DTypeLike
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import float16, float32, int32, int64
from tvmgraph.errors import (
    DTypeError,
    NoTensorError,
    ShapeError,
    TvmgraphError,
    user_source,
)

#: The largest float32.
MOST = float(np.finfo(np.float32).max)


def extreme(
    reduce: Callable[..., Tensor],
    a: Tensor,
    axis: AxisLike,
    keepdims: bool,
    initial: object,
    where: object,
) -> Tensor:
    """Returns the largest or smallest elements, of those that ``where`` selects.

    Args:
        reduce: ``ops.amax`` or ``ops.amin``.
        a: An array, of any shape.
        axis: Axis or axes; None for all.
        keepdims: Whether reduced axes stay with size 1.
        initial: A number that counts as an element, too.
        where: Bools that broadcast to ``a``; True selects all.
    """
    if isinstance(where, Tensor):
        a = ops.where(where, a, ops.full_like(a, initial))
    found = reduce(a, axis, keepdims)
    if initial is None:
        return found
    if not isinstance(initial, (int, float)):
        raise DTypeError(f"initial must be a number, not {initial!r}", at=user_source())
    pick = ops.maximum if reduce.__name__ in ("amax", "max") else ops.minimum
    return ops.cast(pick(found, array_of(initial, found.dtype)), a.dtype)


def array_equiv(a: Tensor, b: Tensor) -> Tensor:
    """Whether two arrays are equal after broadcasting; False where they do not broadcast.

    Args:
        a: An array, of any shape.
        b: Another array.
    """
    try:
        np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    except ValueError:
        return Tensor(False)
    return ops.all(ops.equal(a, b))


def parts(x: Tensor, indices_or_sections: Any, axis: int) -> Sequence[Tensor]:
    """Cuts ``x`` along ``axis`` into a tuple of parts of like sizes, or a list before indices.

    Args:
        x: An array, of any shape.
        indices_or_sections: The number of parts, or the indices before which parts begin.
        axis: The axis.
    """
    if isinstance(indices_or_sections, int):
        return ops.tensor_split(x, indices_or_sections, axis)
    return list(ops.tensor_split(x, tuple(int(i) for i in indices_or_sections), axis))


def split(x: Tensor, indices_or_sections: object, axis: int) -> Sequence[Tensor]:
    """Cuts ``x`` along ``axis`` into equal parts, or before each of the indices; see :func:`parts`.

    Args:
        x: An array, of any shape.
        indices_or_sections: The number of parts, or the indices before which parts begin.
        axis: The axis.

    Raises:
        ShapeError: when the parts would not be equal.
    """
    axis = axis_of(axis, x.ndim)
    if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
        raise ShapeError(
            f"axis {axis} of size {x.shape[axis]} does not split into {indices_or_sections} equal"
            " parts", at=user_source(), fix="use array_split",
        )  # fmt: skip
    return parts(x, indices_or_sections, axis)


def cross(a: Tensor, b: Tensor, axisa: int, axisb: int, axisc: int, axis: int | None) -> Tensor:
    """Returns the vector products; vectors of two elements lie in a plane.

    Args:
        a: Vectors along ``axisa``, of 2 or 3 elements.
        b: Vectors along ``axisb``; the other axes broadcast.
        axisa, axisb: The axis of the vectors.
        axisc: The axis of the vectors in the result.
        axis: The axis of all three, if it is no None.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (ops.moveaxis(t, i, -1) for t, i in ((a, axisa), (b, axisb)))
    flat = a.shape[-1] == 2 and b.shape[-1] == 2
    x, y = (_parts(t) for t in (a, b))
    third = x[0] * y[1] - x[1] * y[0]
    if flat:
        return third
    first, second = x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2]
    return ops.stack(ops_broadcast(first, second, third), axisc)


def _parts(t: Tensor) -> list[Tensor]:
    found = [t[..., i] for i in range(t.shape[-1])]
    return found if len(found) == 3 else [*found, ops.zeros_like(found[0])]


def ops_broadcast(*arrays: Tensor) -> list[Tensor]:
    """Returns the arrays in their common shape.

    Args:
        *arrays: Arrays of shapes that broadcast.
    """
    shape = np.broadcast_shapes(*(tuple(a.shape) for a in arrays))
    return [ops.broadcast_to(a, shape) for a in arrays]


def scan(run: Callable[..., Tensor], a: Tensor, axis: int | None, dtype: DTypeLike) -> Tensor:
    """Returns running sums or products; small integers are counted in 32 bits.

    Args:
        run: ``ops.cumsum`` or ``ops.cumprod``.
        a: An array, of any shape.
        axis: The axis; None for the flat array.
        dtype: dtype of the result.
    """
    if axis is None:
        a, axis = ops.reshape(a, (-1,)), 0
    if dtype is None:
        kind, size = a.dtype.kind, a.dtype.itemsize
        narrow = kind == "b" or (kind in "iu" and size < 4)
        signed = kind != "u" or (size == 1 and run.__name__ == "cumsum")  # as in MindSpore
        dtype = ("int32" if signed else "uint32") if narrow else a.dtype
    whole = int64 if 8 in (a.dtype.itemsize, dtype_of(dtype).itemsize) else int32
    exact = a if a.dtype.kind in "fc" else ops.cast(a, whole)
    return as_dtype(run(exact, axis_of(axis, a.ndim)), dtype)


def sum(
    a: object,
    axis: AxisLike | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    initial: object = None,
) -> Tensor:
    """Returns sums, those of integers and bools in int64, unless told another dtype.

    Args:
        a: An array, of any shape.
        axis: Axis or axes; None for all.
        dtype: dtype of the result.
        keepdims: Whether reduced axes stay with size 1.
        initial: A number that is added.
    """
    a = array_of(a)
    found = ops.sum(a, axis, keepdims)
    return as_dtype(found if initial is None else ops.add(found, initial), dtype)


def filled(a: Tensor, value: float) -> Tensor:
    """Returns the array with ``value`` where it is NaN.

    Args:
        a: An array, of any shape.
        value: The number.
    """
    return ops.where(ops.isnan(a), ops.full_like(a, value), a) if is_inexact(a) else a


def nanvar(a: Tensor, axis: AxisLike, ddof: int, keepdims: bool) -> Tensor:
    """Returns the variance of what is not NaN.

    Args:
        a: An array, of any shape.
        axis: Axis or axes; None for all.
        ddof: What is taken from the number of elements in the divisor.
        keepdims: Whether reduced axes stay with size 1.
    """
    a = floats(a)
    number = ops.logical_not(ops.isnan(a))
    off = filled(a - ops.nanmean(a, axis, True), 0)
    count = ops.sum(ops.cast(number, float32), axis, keepdims)
    return ops.sum(ops.square(ops.abs(off)), axis, keepdims) / (count - ddof)


def rows_alike(m: Tensor) -> Tensor:
    """Returns matrices as they are; of a vector the square matrix that has it in every row.

    Args:
        m: A vector or matrices.
    """
    return ops.broadcast_to(m, (m.shape[0],) * 2) if m.ndim == 1 else m


def expand_dims(a: Tensor, axis: int | Sequence[int]) -> Tensor:
    """Inserts axes of one element at places of the result.

    Args:
        a: An array, of any shape.
        axis: The places.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for place in sorted(axes_of(axes, a.ndim + len(axes))):
        a = ops.expand_dims(a, place)
    return a


def full(shape: Any, value: object, dtype: DTypeLike | None) -> Tensor:
    """Returns an array of one value, which may be an array that broadcasts.

    Args:
        shape: Sizes, an int or a sequence.
        value: A number or an array.
        dtype: The dtype; that of the value by default.
    """
    shape = shape.tolist() if isinstance(shape, Tensor) else shape
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return ops.broadcast_to(array_of(value, dtype), shape)


def clip(x: Tensor, low: object, high: object) -> Tensor:
    """Limits elements to an interval; bounds are numbers, arrays or None.

    Args:
        x: An array, of any shape.
        low: The lower bound.
        high: The upper bound.
    """
    x = x if low is None else picked(ops.maximum, x, array_of(low))
    return x if high is None else picked(ops.minimum, x, array_of(high))


def picked(pick: Callable[[Tensor, Tensor], Tensor], x1: Tensor, x2: Tensor) -> Tensor:
    """Returns the larger or smaller elements, in the dtype of what has axes beside what has none.

    Args:
        pick: ``ops.maximum`` or ``ops.minimum``.
        x1: An array, of any shape.
        x2: Another one.
    """
    found = pick(x1, x2)
    if (x1.ndim == 0) == (x2.ndim == 0):
        return found
    return ops.cast(found, (x1 if x1.ndim else x2).dtype)


def single(x: Tensor) -> Tensor:
    """Returns ``x`` in float32 unless it holds float16 or complex elements.

    Args:
        x: An array, of any shape.
    """
    return x if x.dtype is float16 or x.dtype.kind == "c" else ops.cast(x, float32)


def promoted(x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
    """Returns both arrays in the dtype of both, also where one of them has no axes.

    Args:
        x1: An array.
        x2: Another one.
    """
    dtype = dtypes.promote(x1.dtype, x2.dtype)
    return ops.cast(x1, dtype), ops.cast(x2, dtype)


def quotient(x1: Tensor, x2: Tensor) -> Tensor:
    """Divides in float32 unless an array holds float16, float32 or complex elements.

    Args:
        x1: An array.
        x2: Another one.
    """
    if any(x.dtype in (float16, float32) or x.dtype.kind == "c" for x in (x1, x2)):
        return ops.div(*promoted(x1, x2))
    return ops.div(single(x1), single(x2))


def wide(x: Tensor) -> dtypes.DType:
    """Returns float64 and complex dtypes for themselves, otherwise float32.

    Args:
        x: An array, of any shape.
    """
    return x.dtype if x.dtype is dtypes.float64 or x.dtype.kind == "c" else float32


def angles(x: Tensor) -> Tensor:
    """Returns integers as floats, those of one byte in half precision.

    Args:
        x: An array, of any shape.
    """
    return x if is_inexact(x) else ops.cast(x, float16 if x.dtype.itemsize == 1 else float32)


def divisors(op: Callable[..., Tensor], x1: Tensor, x2: Tensor) -> Tensor:
    """Returns ``op`` of whole numbers, which may be held as floats.

    Args:
        op: The operator.
        x1: An array.
        x2: Another one.
    """
    kinds = [t.dtype for t in (x1, x2) if is_float(t)]
    whole = (ops.cast(t, int32) if is_float(t) else t for t in (x1, x2))
    return as_dtype(op(*whole), kinds[0] if kinds else None)


def roll(a: Tensor, shift: int | Sequence[int], axis: AxisLike | None) -> Tensor:
    """Moves elements around; one shift counts for all axes, and one axis for all shifts.

    Args:
        a: An array, of any shape.
        shift: By how many places, one number or one per axis.
        axis: Axis or axes; None for the flat array.
    """
    if axis is None:
        return ops.roll(a, shift)
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    return ops.roll(a, tuple(shifts.tolist()), tuple(axes.tolist()))


def contains(element: object, test: object, invert: bool) -> Tensor:
    """Whether each element is among the elements of ``test``.

    Args:
        element, test: An array, of any shape.
        invert: Whether the answers are turned round.
    """
    element = array_of(element)
    found = ops.any(ops.equal(ops.expand_dims(element, -1), ops.ravel(array_of(test))), -1)
    return ops.logical_not(found) if invert else found


def rollaxis(x: Tensor, axis: int, start: int) -> Tensor:
    """Moves ``axis`` before the axis ``start``.

    Args:
        x: An array, of any shape.
        axis: The axis.
        start: Before which axis it comes.
    """
    axis = axis_of(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    return ops.moveaxis(x, axis, start - (axis < start))


def alike(a: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Returns both arrays in float32 unless they have one dtype.

    Args:
        a: An array, of any shape.
        v: Another array.
    """
    if a.dtype == v.dtype:
        return a, v
    return ops.cast(a, float32), ops.cast(v, float32)


def take_along_axis(arr: Tensor, indices: Tensor, axis: int | None) -> Tensor:
    """Picks elements along an axis; the other axes of both broadcast.

    Args:
        arr: An array, of any shape.
        indices: Places along the axis, of as many axes as ``arr``.
        axis: The axis; None for the flat array.
    """
    if axis is None:
        arr, axis = ops.ravel(arr), 0
    axis = axis_of(axis, arr.ndim)
    shapes = [list(t.shape) for t in (arr, indices)]
    for shape in shapes:
        shape[axis] = 1
    common = list(np.broadcast_shapes(*map(tuple, shapes)))
    sized = []
    for t in (arr, indices):
        common[axis] = t.shape[axis]
        sized.append(ops.broadcast_to(t, tuple(common)))
    return ops.gather_elements(sized[0], axis, sized[1])


# ---- what the functions of :mod:`tvmgraph.numpy` do with their arguments -------------------------

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
        is_one = dtype is None or value.dtype == dtype_of(dtype)
        return value if is_one else as_dtype(value, dtype)
    if _holds_tensors(value):
        return as_dtype(ops.stack([array_of(v) for v in value]), dtype)
    if not isinstance(value, (bool, int, float, complex, list, tuple, np.ndarray, np.generic)):
        raise NoTensorError(
            f"an array is needed, not {type(value).__name__}", at=user_source(),
            fix="give a Tensor, a number, or a list of numbers",
        )  # fmt: skip
    found = np.asarray(value)
    if dtype is None and (  # NumPy's float64 is one of Python's floats, too
        isinstance(value, float) or not isinstance(value, (np.ndarray, np.generic))
    ):
        dtype = NARROW.get(str(found.dtype))
    return Tensor(found, None if dtype is None else dtype_of(dtype))


def array_of_long(value: object) -> Tensor:
    """Returns an array as :func:`array_of` does, of Python's ints in int64.

    Args:
        value: The numbers.
    """
    found = array_of(value)
    is_python = isinstance(value, (int, list, tuple)) and found.dtype == int32
    return array_of(value, int64) if is_python and not _holds_tensors(value) else found


def array_with_axes(value: object) -> Tensor:
    """Returns an array as :func:`array_of` does; a plain number, which has no axes, is none.

    Args:
        value: The numbers.

    Raises:
        DTypeError: if it is a plain number.
    """
    if isinstance(value, (bool, int, float, complex)):
        raise DTypeError(
            f"an array is needed, not {type(value).__name__}", at=user_source(),
            fix="give a Tensor or a list of numbers",
        )  # fmt: skip
    return array_of(value)


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


def is_inexact(x: Tensor) -> bool:
    """Whether ``x`` has a dtype of floats or complex numbers.

    Args:
        x: An array, of any shape.
    """
    return x.dtype.kind in "fc"


def floats(x: Tensor) -> Tensor:
    """Returns ``x`` in float32 unless it holds floats or complex numbers.

    Args:
        x: An array.
    """
    return x if is_inexact(x) else ops.cast(x, dtypes.float32)


def wide_floats(x: Tensor) -> Tensor:
    """Returns ``x`` in float32 unless it holds wider floats or complex numbers.

    Args:
        x: An array.
    """
    return ops.cast(x, float32) if x.dtype in (float16, dtypes.bfloat16) else floats(x)


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
