"""Tensors from nothing: constants, the identity matrix, conversions of Python numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import Attrs, DTypeLike
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation, letters
from tvmgraph.core.types import Dim, Shape, TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, NoTensorError, ShapeError
from tvmgraph.ops.common.arguments import as_int, bad, describe, has_unknown, named, require, sizes
from tvmgraph.ops.common.rows import on_diagonal

__all__ = [
    "empty", "empty_like", "eps", "eye", "fill", "fills", "full", "full_like", "new_empty",
    "new_full", "new_ones", "new_zeros", "ones", "ones_like", "scalar_to_tensor", "tuple_to_array",
    "zeros", "zeros_like",
]  # fmt: skip

CONSTANT = Reason("a constant depends on no tensor")


def _infer_full(*, size: Shape, fill_value: object, dtype: dtypes.DType) -> TensorType:
    if any(d < 0 for d in size if not isinstance(d, Dim)):
        raise ShapeError(f"size {list(size)} has a negative entry")
    return tensor_type(size, dtype)


def _lower_full(R: Builder, *, size: Shape, fill_value: object, dtype: dtypes.DType) -> Expr:
    value = R.const(fill_value, dtype.name)
    if isinstance(fill_value, float) and not math.isfinite(fill_value):
        return R.op.broadcast_to(value, R.shape(size))  # topi.full fails on infinities
    return R.op.full(R.shape(size), value, dtype.name)


def _onnx_full(O: OnnxOps, *, size: Shape, fill_value: object, dtype: dtypes.DType) -> OnnxNamed:
    return O.full(size, fill_value, dtype)


def _full_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Every dimension of the result."""
    return equation([], [letters(len(attrs["size"]))])


@primitive(
    infer=_infer_full,
    traits=Traits(Pattern.BROADCAST, _full_factors, sized="size"),
    eager=lambda *, size, fill_value, dtype: np.full(size, fill_value, dtype.numpy),
    lower=_lower_full,
    vjp=CONSTANT,
    onnx=_onnx_full,
    samples=[
        sample(attrs={"size": (2, 3), "fill_value": 1.5, "dtype": dtypes.float32}),
        sample(attrs={"size": (), "fill_value": True, "dtype": dtypes.bool_}),
        sample(attrs={"size": (0, 2), "fill_value": 3, "dtype": dtypes.int64}),
        sample(attrs={"size": (3,), "fill_value": float("-inf"), "dtype": dtypes.float16}),
        sample(attrs={"size": (17, 1), "fill_value": -7, "dtype": dtypes.int8}),
        sample(attrs={"size": (-1,), "fill_value": 0, "dtype": dtypes.int8}, raises=ShapeError),
    ],
)
@named("full")
def _full(size: object, fill_value: object, dtype: dtypes.DType) -> Tensor:
    """Returns a tensor whose elements are all ``fill_value``.

    Args:
        size: The shape.
        fill_value: The number.
        dtype: Element type.

    Returns:
        Tensor of shape ``size``.
    """
    ...


def full(size: object, fill_value: Any, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a tensor whose elements are all ``fill_value``.

    Args:
        size: The shape, an int, ints or an integer tensor.
        fill_value: The number, or a tensor of one.
        dtype: Element type; int64 by default, as in MindSpore, also for a float.

    Returns:
        Tensor of shape ``size``.

    Raises:
        ShapeError: if an entry of ``size`` is negative.
        ArgumentError: if the number does not fit the dtype.

    Note:
        ``mint.full`` and ``numpy.full`` take the dtype of the number.

    Example:
        >>> ops.full((2, 2), 0.5, dtype=ms.float32)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 5.00000000e-01,  5.00000000e-01],
         [ 5.00000000e-01,  5.00000000e-01]])
    """
    wanted = dtype_or(dtype, dtypes.int64)
    shape = sizes(size, "full", "size")
    if isinstance(fill_value, Tensor) and fill_value.ndim == 0:
        return F.broadcast_to(F.cast(fill_value, wanted), shape)
    if not dtypes.is_number(fill_value):
        raise bad(
            DTypeError, f"fill_value must be a number, not {type(fill_value).__name__}", "full",
            describe(size=size, fill_value=fill_value),
        )  # fmt: skip
    return _full(shape, _fitting("full", fill_value, wanted), wanted)


def _fitting(op: str, number: Any, dtype: dtypes.DType) -> object:
    """Returns a number of a dtype, to which floats are rounded towards zero.

    Raises:
        DTypeError: if it is complex and the dtype is not.
        ArgumentError: if the dtype has integers, and it is out of their range.
    """
    value: Any = number.item() if isinstance(number, np.generic) else number
    if value.__class__ is complex and dtype.kind != "c":
        raise bad(DTypeError, f"{value!r} is no {dtype.name}", op, f"fill_value={value!r}",
                  "give a complex dtype")  # fmt: skip
    if not dtype.is_integer:
        return value
    limits = np.iinfo(dtype.numpy)
    if not math.isfinite(value) or not limits.min <= int(value) <= limits.max:
        raise bad(ArgumentError, f"{value!r} is no {dtype.name}, which is {limits.min} to "
                  f"{limits.max}", op, f"fill_value={value!r}", "give a wider dtype")  # fmt: skip
    return int(value)


def zeros(size: object, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a tensor of zeros.

    Args:
        size: The shape, an int, ints or an integer tensor.
        dtype: Element type, float32 by default.

    Returns:
        Tensor of shape ``size``.

    Example:
        >>> ops.zeros((2, 3), ms.int32)
        Tensor(shape=[2, 3], dtype=Int32, value=
        [[0, 0, 0],
         [0, 0, 0]])
    """
    return _full(sizes(size, "zeros", "size"), 0, dtype_or(dtype, dtypes.float32))


def ones(shape: object, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a tensor of ones.

    Args:
        shape: The shape, an int, ints or an integer tensor.
        dtype: Element type, float32 by default.

    Returns:
        Tensor of shape ``shape``.

    Example:
        >>> ops.ones((2, 3))
        Tensor(shape=[2, 3], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00,  1.00000000e+00],
         [ 1.00000000e+00,  1.00000000e+00,  1.00000000e+00]])
    """
    return _full(sizes(shape, "ones", "shape"), 1, dtype_or(dtype, dtypes.float32))


def dtype_or(dtype: DTypeLike | None, default: dtypes.DType) -> dtypes.DType:
    """Returns ``dtype`` as a DType, or the default where it is ``None``.

    Args:
        dtype: A dtype, its name, or ``None``.
        default: What stands for ``None``.
    """
    return default if dtype is None else dtypes.dtype_of(dtype)


def empty(*size: object, dtype: DTypeLike | None = None, device: object = None) -> Tensor:
    """Returns a tensor whose elements the caller will overwrite; they are zeros here.

    Args:
        size: The shape, as ints or one tuple.
        dtype: Element type, float32 by default.
        device: Accepted for compatibility.

    Returns:
        Tensor of shape ``size``.

    Example:
        >>> ops.empty((2, 3)).shape
        (2, 3)
    """
    return zeros(size[0] if len(size) == 1 else size, dtype)


def eps(x: Tensor) -> Tensor:
    r"""Fills ``x``'s shape with the distance from 1 to the next number of its dtype.

    Args:
        x: float tensor of any shape.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        DTypeError: if ``x`` holds no floats.

    Example:
        >>> ops.eps(Tensor([4.0, 1.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.19209290e-07,  1.19209290e-07])
    """
    _require_tensor(x, "eps")
    require(x.dtype.is_float, "x must hold floats", "eps", DTypeError, x=x)
    return full_like(x, float(dtypes.float_limits(x.dtype).eps))


def full_like(input: Tensor, fill_value: object, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a tensor of ``input``'s shape whose elements are all ``fill_value``.

    Args:
        input: Tensor that gives the shape.
        fill_value: The number.
        dtype: Element type, by default that of ``input``.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.full_like(Tensor([1, 2]), 7)
        Tensor(shape=[2], dtype=Int64, value= [7, 7])
    """
    _require_tensor(input, "full_like")
    if not dtypes.is_number(fill_value):
        raise bad(
            DTypeError, f"fill_value must be a number, not {type(fill_value).__name__}",
            "full_like", describe(input=input, fill_value=fill_value),
        )  # fmt: skip
    wanted = dtype_or(dtype, input.dtype)
    return _full(input.aval.shape, _fitting("full_like", fill_value, wanted), wanted)


def _require_tensor(value: object, op: str) -> None:
    if not isinstance(value, Tensor):
        raise bad(
            NoTensorError,
            f"input must be a Tensor, not {type(value).__name__}",
            op,
            repr(value)[:80],
        )


def zeros_like(input: Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns zeros of ``input``'s shape.

    Args:
        input: Tensor that gives the shape.
        dtype: Element type, by default that of ``input``.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.zeros_like(Tensor([1, 2]))
        Tensor(shape=[2], dtype=Int64, value= [0, 0])
    """
    _require_tensor(input, "zeros_like")
    return _full(input.aval.shape, 0, dtype_or(dtype, input.dtype))


def ones_like(input: Tensor, *, dtype: DTypeLike | None = None) -> Tensor:
    """Returns ones of ``input``'s shape.

    Args:
        input: Tensor that gives the shape.
        dtype: Element type, by default that of ``input``.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.ones_like(Tensor([1, 2]))
        Tensor(shape=[2], dtype=Int64, value= [1, 1])
    """
    _require_tensor(input, "ones_like")
    return _full(input.aval.shape, 1, dtype_or(dtype, input.dtype))


def empty_like(input: Tensor, *, dtype: DTypeLike | None = None, device: object = None) -> Tensor:
    """Returns a tensor of ``input``'s shape for the caller to overwrite; zeros here.

    Args:
        input: Tensor that gives the shape.
        dtype: Element type, by default that of ``input``.
        device: Accepted for compatibility.

    Returns:
        Tensor of ``input``'s shape.

    Example:
        >>> ops.empty_like(Tensor([1, 2])).shape
        (2,)
    """
    return zeros_like(input, dtype=dtype)


def fill(type: object, shape: object, value: object) -> Tensor:
    """Returns a tensor of dtype ``type`` whose elements are all ``value``.

    Args:
        type: Element type; None for that of the value.
        shape: The shape.
        value: A number, or a tensor with one element.

    Returns:
        Tensor of shape ``shape``.

    Example:
        >>> ops.fill(ms.float32, (2, 2), 1)
        Tensor(shape=[2, 2], dtype=Float32, value=
        [[ 1.00000000e+00,  1.00000000e+00],
         [ 1.00000000e+00,  1.00000000e+00]])
    """
    if type is None:
        type = value.dtype if isinstance(value, Tensor) else dtypes.scalar_dtype(value)
    wanted = dtypes.dtype_of(type)
    if isinstance(value, Tensor):
        scalar = F.cast(F.reshape(value, ()), wanted)
        return F.broadcast_to(scalar, shape)
    return full(shape, value, dtype=wanted)


def fills(x: Tensor, value: object) -> Tensor:
    """Returns a tensor of ``x``'s shape and dtype whose elements are all ``value``.

    Args:
        x: Tensor that gives shape and dtype.
        value: A number, or a tensor with one element.

    Returns:
        Tensor of ``x``'s type.

    Example:
        >>> ops.fills(Tensor([1.0, 2.0]), 3)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  3.00000000e+00])
    """
    _require_tensor(x, "fills")
    return fill(x.dtype, x.aval.shape, value)


def new_full(
    input: Tensor, size: object, fill_value: object, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Returns ``fill_value`` in shape ``size``, with ``input``'s dtype by default.

    Args:
        input: Tensor that gives the dtype.
        size: The shape.
        fill_value: The number.
        dtype: Element type, by default that of ``input``.

    Returns:
        Tensor of shape ``size``.

    Example:
        >>> ops.new_full(Tensor([1.0]), (2,), 3)
        Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00,  3.00000000e+00])
    """
    return full(size, fill_value, dtype=dtype_or(dtype, input.dtype))


def new_zeros(input: Tensor, size: object, dtype: DTypeLike | None = None) -> Tensor:
    """Returns zeros in shape ``size``, with ``input``'s dtype by default.

    Args:
        input: Tensor that gives the dtype.
        size: The shape.
        dtype: Element type, by default that of ``input``.

    Returns:
        Tensor of shape ``size``.

    Example:
        >>> ops.new_zeros(Tensor([1]), (2,))
        Tensor(shape=[2], dtype=Int64, value= [0, 0])
    """
    return zeros(size, dtype_or(dtype, input.dtype))


def new_ones(input: Tensor, size: object, dtype: DTypeLike | None = None) -> Tensor:
    """Returns ones in shape ``size``, with ``input``'s dtype by default.

    Args:
        input: Tensor that gives the dtype.
        size: The shape.
        dtype: Element type, by default that of ``input``.

    Returns:
        Tensor of shape ``size``.

    Example:
        >>> ops.new_ones(Tensor([1]), (2,))
        Tensor(shape=[2], dtype=Int64, value= [1, 1])
    """
    return ones(size, dtype_or(dtype, input.dtype))


new_empty = new_zeros


# ---- matrices and conversions -------------------------------------------------------------------


def _infer_eye(*, n: int, m: int, dtype: dtypes.DType) -> TensorType:
    if n < 0 or m < 0:
        raise ShapeError(f"n and m must not be negative ({n} and {m})")
    return tensor_type((n, m), dtype)


def _lower_eye(R: Builder, *, n: int, m: int, dtype: dtypes.DType) -> Expr:
    one, zero = (R.tir.const(value, dtype.name) for value in (1, 0))

    def eye() -> Expr:
        def element(row: Expr, col: Expr) -> Expr:
            return R.tir.Select(on_diagonal(R, row, col, 0), one, zero)

        return R.te.compute(R.shape((n, m)), element, name="eye")

    return R.emit_te(eye)


@primitive(
    infer=_infer_eye,
    traits=Traits(Pattern.OPAQUE, Reason("which elements are 1 depends on their places")),
    eager=lambda *, n, m, dtype: np.eye(n, m, dtype=dtype.numpy),
    lower=_lower_eye,
    vjp=CONSTANT,
    onnx=lambda O, *, n, m, dtype: O.const(np.eye(n, m, dtype=dtype.numpy)),
    samples=[
        sample(attrs={"n": 3, "m": 4, "dtype": dtypes.float32}),
        sample(attrs={"n": 1, "m": 1, "dtype": dtypes.int64}),
        sample(attrs={"n": 0, "m": 2, "dtype": dtypes.float32}),
        sample(attrs={"n": 17, "m": 3, "dtype": dtypes.bool_}),
        sample(attrs={"n": -1, "m": 3, "dtype": dtypes.int8}, raises=ShapeError),
    ],
)
@named("eye")
def _eye(n: int, m: int, dtype: dtypes.DType) -> Tensor:
    """Returns ones on the main diagonal of an ``n`` by ``m`` matrix, zeros elsewhere.

    Args:
        n: Number of rows.
        m: Number of columns.
        dtype: Element type.

    Returns:
        Tensor of shape ``(n, m)``.
    """
    ...


def eye(n: int | Tensor, m: int | Tensor | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Returns a matrix with ones on the main diagonal and zeros elsewhere.

    Args:
        n: Number of rows.
        m: Number of columns, ``n`` by default.
        dtype: Element type, float32 by default.

    Returns:
        Tensor of shape ``(n, m)``.

    Raises:
        ShapeError: if a size is negative.

    Example:
        >>> ops.eye(2, 3)
        Tensor(shape=[2, 3], dtype=Float32, value=
        [[ 1.00000000e+00,  0.00000000e+00,  0.00000000e+00],
         [ 0.00000000e+00,  1.00000000e+00,  0.00000000e+00]])
    """
    wanted = dtype_or(dtype, dtypes.float32)
    if has_unknown((n, m)) or isinstance(n, Dim) or isinstance(m, Dim):
        count = sizes((n, n if m is None else m), "eye", "n")
        row, col = (F.arange_values(0, 1, size, dtypes.int64) for size in count)
        return F.cast(F.equal(F.expand_dims(row, 1), col), wanted)
    rows = as_int(n, "eye", "n")
    cols = rows if m is None else as_int(m, "eye", "m")
    return _eye(rows, cols, wanted)


def scalar_to_tensor(input_x: object, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """Returns a number as a 0-d tensor.

    Args:
        input_x: A number.
        dtype: Element type.

    Returns:
        Tensor of shape ``()``.

    Example:
        >>> ops.scalar_to_tensor(3, ms.int32)
        Tensor(shape=[], dtype=Int32, value= 3)
    """
    return full((), input_x, dtype=dtype)


def tuple_to_array(input_x: object) -> Tensor:
    """Returns a tuple of numbers as a tensor.

    Args:
        input_x: Tuple of numbers and tensors of one shape, or a range.

    Returns:
        Tensor of shape ``(len(input_x), ...)``: int32 if the first element is an int, else float32.

    Example:
        >>> ops.tuple_to_array((1, 2, 3))
        Tensor(shape=[3], dtype=Int32, value= [1, 2, 3])
    """
    if isinstance(input_x, (range, list)):
        input_x = tuple(input_x)
    if not isinstance(input_x, tuple) or not all(
        dtypes.is_number(v) or isinstance(v, Tensor) for v in input_x
    ):
        raise bad(DTypeError, "input_x must be a tuple of numbers", "tuple_to_array",
                  repr(input_x)[:80])  # fmt: skip
    is_int = bool(input_x) and isinstance(input_x[0], int)
    kind = dtypes.int32 if is_int else dtypes.float32
    if not any(isinstance(v, Tensor) for v in input_x):
        return Tensor(np.array(input_x, np.int32 if is_int else np.float32))
    return F.stack([F.cast(v if isinstance(v, Tensor) else Tensor(v), kind) for v in input_x])
