"""Softmax, its logarithm, and gates made of two halves of a tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Array, AxisLike, DTypeLike, is_sequence
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps, VjpColumn
from tvmgraph.core.fusible import fusible
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import Result, RowDecorator, primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import along_axis
from tvmgraph.core.types import TensorType
from tvmgraph.errors import OutOfRangeError, ShapeError
from tvmgraph.ops.common.pointwise import onnx_float32
from tvmgraph.ops.common.rows import lower_wide, widen

__all__ = ["glu", "log_softmax", "rrelu", "softmax", "softmin", "swiglu"]


def _infer(x: TensorType, *, axis: int) -> TensorType:
    rules.require_dtype(x, dtypes.FLOATS)
    if x.ndim == 0:
        raise ShapeError("the input must have at least one axis", fix="reshape it to one element")
    rules.normalize_axis(axis, x.ndim)
    return x


def _shifted(x: np.ndarray, axis: int) -> np.ndarray:
    """The largest element is moved to 0, so that no exponential overflows."""
    wide = widen(x)
    return wide - np.maximum.reduce(wide, axis=axis, keepdims=True)


def _numpy_softmax(x: np.ndarray, *, axis: int) -> np.ndarray:
    if not x.size:
        return x
    e = np.exp(_shifted(x, axis))
    e /= np.add.reduce(e, axis=axis, keepdims=True)
    return e if e.dtype == x.dtype else e.astype(x.dtype)


def _numpy_log_softmax(x: np.ndarray, *, axis: int) -> np.ndarray:
    if not x.size:
        return x
    z = _shifted(x, axis)
    z -= np.log(np.add.reduce(np.exp(z), axis=axis, keepdims=True))
    return z if z.dtype == x.dtype else z.astype(x.dtype)


def _lower(name: str) -> Callable[..., Expr]:
    """Half precision is summed in float32."""

    def lower(R: Builder, x: Expr, *, axis: int) -> Expr:
        t = R.type(x)
        if t.is_static and t.size == 0:
            return x
        return lower_wide(R, functools.partial(getattr(R.nn, name), axis=axis), x)

    return lower


def _sum(x: Tensor, axis: int) -> Tensor:
    return F.reduce_sum(x, axis=(axis % x.ndim,), keep_dims=True)


def _vjp_softmax(g: Tensor, y: Tensor, x: Tensor, *, axis: int) -> tuple[Tensor]:
    return ((g - _sum(g * y, axis)) * y,)


def _vjp_log_softmax(g: Tensor, y: Tensor, x: Tensor, *, axis: int) -> tuple[Tensor]:
    return (g - F.exp(y) * _sum(g, axis),)


_SAMPLES = [
    sample((3, 4), axis=-1),
    sample((3, 4), axis=0),
    sample((2, 17, 3), axis=1),
    sample((5,), axis=0),
    sample((1, 1), axis=1),
    sample((0, 3), axis=1, grad=False),
    sample((3, 0), axis=1, grad=False),
    sample((2, 3000), dtype="float16", axis=-1, grad=False),
    sample((2, 300), dtype="bfloat16", axis=-1, grad=False),
    sample((3, 4), dtype="float64", axis=-1),
    sample((3, 5), low=-1e4, high=1e4, axis=-1, grad=False),
    sample(
        np.array([[1, np.nan, 2], [-np.inf, 0, 1], [-np.inf] * 3, [np.inf, 0, 1]], np.float32),
        axis=-1, grad=False,
    ),
    sample((), axis=-1, raises=ShapeError),
    sample((3, 4), axis=2, raises=OutOfRangeError),
]  # fmt: skip


def _row(eager: Callable[..., Array], name: str, vjp: VjpColumn, op_type: str) -> RowDecorator:
    def onnx(O: OnnxOps, x: OnnxNamed, *, axis: int) -> OnnxNamed:
        return O.add(op_type, [x], 1, {"axis": axis})

    def add_row(function: Callable[..., Result]) -> Callable[..., Result]:
        function.__name__ = name
        return primitive(
            infer=_infer, traits=replace(along_axis(), precise=True), promote="float", eager=eager,
            lower=_lower(name), vjp=vjp, onnx=onnx_float32(onnx), samples=_SAMPLES,
        )(function)  # fmt: skip

    return add_row


@_row(_numpy_softmax, "softmax", _vjp_softmax, "Softmax")
def _softmax(input: Tensor, axis: int) -> Tensor:
    """Softmax over one axis."""
    ...


@_row(_numpy_log_softmax, "log_softmax", _vjp_log_softmax, "LogSoftmax")
def _log_softmax(input: Tensor, axis: int) -> Tensor:
    """Logarithm of softmax over one axis."""
    ...


def _over_axes(x: Tensor, axis: Sequence[object]) -> Tensor:
    """Softmax over several axes: moved last and merged, so that one row serves all."""
    axes = rules.normalize_axes(axis, x.ndim)
    order = (*(i for i in range(x.ndim) if i not in axes), *axes)
    moved = F.transpose(x, order)
    merged = F.reshape(moved, (*moved.shape[: x.ndim - len(axes)], -1))
    back = tuple(order.index(i) for i in range(x.ndim))
    return F.transpose(F.reshape(_softmax(merged, -1), moved.shape), back)


def softmax(input: Tensor, axis: object = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""Softmax over an axis: :math:`y_i = e^{x_i} / \sum_j e^{x_j}`.

    Args:
        input: Tensor with at least one axis; integers are computed in float32.
        axis: The axis whose elements sum to 1, or a tuple of axes.
        dtype: ``input`` is converted to this dtype first, unless it is ``None``.

    Returns:
        Tensor of ``input``'s shape; float16 and bfloat16 are summed in float32.

    Raises:
        ShapeError: if ``input`` has no axis.
        OutOfRangeError: if ``axis`` lies outside the axes.

    Example:
        >>> ops.softmax(Tensor([1.0, 2.0, 3.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 9.00305733e-02,  2.44728461e-01,  6.65240943e-01])
    """
    if dtype is not None:
        input = F.cast(input, dtypes.dtype_of(dtype))
    if is_sequence(axis):
        return _softmax(input, axis[0]) if len(axis) == 1 else _over_axes(input, axis)
    return _softmax(input, axis)


def softmin(x: Tensor, axis: AxisLike = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""Softmax of the negated elements: :math:`y_i = e^{-x_i} / \sum_j e^{-x_j}`.

    Args:
        x: Tensor with at least one axis.
        axis: The axis whose elements sum to 1, or a tuple of axes.
        dtype: ``x`` is converted to this dtype first, unless it is ``None``.

    Returns:
        Tensor of ``x``'s shape.

    Raises:
        ShapeError: if ``x`` has no axis.
        OutOfRangeError: if ``axis`` lies outside the axes.

    Example:
        >>> ops.softmin(Tensor([1.0, 2.0, 3.0]))
        Tensor(shape=[3], dtype=Float32, value= [ 6.65240943e-01,  2.44728461e-01,  9.00305733e-02])
    """
    if dtype is not None:
        x = F.cast(x, dtypes.dtype_of(dtype))
    return softmax(-x, axis)


def log_softmax(logits: Tensor, axis: int = -1) -> Tensor:
    r"""Logarithm of softmax over an axis: :math:`y_i = x_i - \ln \sum_j e^{x_j}`.

    Args:
        logits: Tensor with at least one axis; integers are computed in float32.
        axis: The axis over which probabilities sum to 1.

    Returns:
        Tensor of ``logits``'s shape.

    Raises:
        ShapeError: if ``logits`` has no axis.
        OutOfRangeError: if ``axis`` lies outside the axes.

    Example:
        >>> ops.log_softmax(Tensor([1.0, 2.0, 3.0]))
        Tensor(shape=[3], dtype=Float32, value= [-2.40760612e+00, -1.40760601e+00, -4.07606006e-01])
    """
    return _log_softmax(logits, axis)


def _halves(x: Tensor, axis: int, op: str) -> tuple[Tensor, Tensor]:
    i = rules.normalize_axis(axis, x.ndim)
    if x.ndim == 0 or x.shape[i] % 2:
        raise ShapeError(
            f"axis {axis} cannot be divided into two halves", op=op, got=str(x.aval),
            fix="make its size even",
        )  # fmt: skip
    first, second = F.split(x, (x.shape[i] // 2,) * 2, i)
    return first, second


@fusible
def glu(x: Tensor, axis: int = -1) -> Tensor:
    r"""Gated linear unit: :math:`a \cdot \sigma(b)`, a and b being the halves of ``x``.

    Args:
        x: Tensor whose ``axis`` has an even size.
        axis: The axis to divide.

    Returns:
        Tensor of ``x``'s shape with ``axis`` halved.

    Raises:
        ShapeError: if the size of ``axis`` is odd.

    Example:
        >>> ops.glu(Tensor([1.0, 2.0, 3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 9.52574134e-01,  1.96402752e+00])
    """
    a, b = _halves(x, axis, "ops.glu")
    return a * F.sigmoid(b)


@fusible
def swiglu(input: Tensor, dim: int = -1) -> Tensor:
    r"""Swish-gated linear unit: :math:`silu(a) \cdot b`, a and b being the halves of ``input``.

    Args:
        input: Tensor whose axis ``dim`` has an even size.
        dim: The axis to divide.

    Returns:
        Tensor of ``input``'s shape with ``dim`` halved.

    Raises:
        ShapeError: if the size of ``dim`` is odd.

    Example:
        >>> ops.swiglu(Tensor([1.0, 2.0, 3.0, 4.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 2.19317579e+00,  7.04637718e+00])
    """
    a, b = _halves(input, dim, "ops.swiglu")
    return F.silu(a) * b


def _uniform(like: Tensor, low: float, high: float) -> Tensor:
    shape = like.shape
    u = F.uniform(shape, Tensor(low, dtypes.float32), Tensor(high, dtypes.float32))
    return F.cast(u, like.dtype)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    r"""Rectified linear unit with random slopes below zero: :math:`y = x` or :math:`a x`.

    Args:
        input: Floating-point tensor of any shape.
        lower: Smallest slope :math:`a`.
        upper: Largest slope; every element draws its own from the uniform distribution.

    Returns:
        Tensor of ``input``'s shape and dtype.

    Example:
        >>> ops.rrelu(Tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])
    """
    return F.relu(input) + F.where(input < 0, input * _uniform(input, lower, upper), 0.0)
