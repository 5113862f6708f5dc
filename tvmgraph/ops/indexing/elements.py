"""Reading and updating along one axis, with an index for every element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive, without_warnings
from tvmgraph.core.storage import aligned_copy
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Pattern, Traits, equation, letters
from tvmgraph.core.types import TensorType
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError, either
from tvmgraph.ops.common.rows import LOW_PRECISION, lower_full
from tvmgraph.ops.indexing.advanced import (
    MODES,
    UFUNCS,
    check_range,
    int_or_none,
    lower_scatter,
    require_indices,
    vjp_scatter,
    wrapped,
)

__all__: list[str] = []


def _infer_gather(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    require_indices(index)
    rules.require_ndim(x, range(1, 65))
    rules.normalize_axis(axis, x.ndim)
    if index.ndim != x.ndim:
        raise ShapeError(f"index must have {x.ndim} axes like the input, not {index.ndim}")
    for a, (size, taken) in enumerate(zip(x.shape, index.shape)):
        if a != axis and rules.known((size, taken)) and taken > size:  # pyright: ignore[reportOperatorIssue]
            raise ShapeError(f"index has size {taken} on axis {a}, but the input only {size}")
    shared = any(d is x.shape[axis] for d in index.shape)
    if not shared and x.shape[axis] == 0 and 0 not in index.shape:
        raise either(OutOfRangeError, RuntimeError)(f"axis {axis} of size 0 cannot be indexed")
    return x.with_shape(index.shape)


def _check_along(x: np.ndarray, index: np.ndarray, *_: object, axis: int, **__: object) -> None:
    check_range(index, x.shape[axis], axis)


def _cropped(x: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray:
    """Returns the part of ``x`` that an index of this shape can reach."""
    return x[tuple(slice(None) if a == axis else slice(n) for a, n in enumerate(shape))]


def _eager_gather(x: np.ndarray, index: np.ndarray, *, axis: int) -> np.ndarray:
    check_range(index, x.shape[axis], axis)
    return np.take_along_axis(_cropped(x, index.shape, axis), index.astype(np.int64), axis)


def _narrow_places(R: Builder, index: Expr, size: int) -> Expr:
    """Places as int32, of which vectors have more; TVM computes all indices in int64."""
    extent = R.tir.IntImm("int32", size)
    return R.te.compute(index.shape, lambda *i: wrapped(R, index[i], extent, "int32"), name="safe")


def _lower_gather(R: Builder, x: Expr, index: Expr, *, axis: int) -> Expr:
    result = _infer_gather(R.type(x), R.type(index), axis=axis)
    if 0 in result.shape:
        return lower_full(R, x, result)

    def gather(x: Expr, index: Expr) -> Expr:
        size = int_or_none(x.shape[axis]) or 0
        narrow = index.dtype == "int32" and 0 < size < 2**31
        places = _narrow_places(R, index, size) if narrow else index

        def element(*i: Expr) -> Expr:
            at = places[i]
            at = R.tir.Cast("int64", at) if narrow else wrapped(R, at, x.shape[axis])
            return x[(*i[:axis], at, *i[axis + 1 :])]

        return R.te.compute(index.shape, element, name="gather_along")

    return R.emit_te(gather, x, index)


_I = np.array([[0, -1, 2, 1], [2, 2, 0, -3]])


def _gather_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Axes beside the named one that are read whole, and the positions along it."""
    x, index = types
    words = [n if a == b else "." for n, a, b in zip(letters(x.ndim), x.shape, index.shape)]
    axis = attrs["axis"] % x.ndim
    inputs = [[*words[:axis], w, *words[axis + 1 :]] for w in (".", "z")]
    return equation(inputs, inputs[1:])


@primitive(
    infer=_infer_gather,
    traits=Traits(Pattern.GATHER, _gather_factors, batch=Batch.AXIS),
    eager=_eager_gather,
    check_values=_check_along,
    lower=_lower_gather,
    vjp=lambda g, y, x, index, *, axis: (
        F.scatter_along(F.zeros_like(x), index, g, axis=axis, mode="add"), None,
    ),
    onnx=lambda O, x, index, *, axis: O.GatherElements(
        x, O.Cast(index, to=O.dtype(dtypes.int64)), axis=axis
    ),
    samples=[
        sample((3, 4), _I, axis=0),
        sample((2, 5), _I.astype(np.int32), axis=1),
        sample((4,), np.array([3, 3, 0, -4, 1]), axis=0),
        sample((2, 3, 2), np.array([[[1], [0]]]), axis=1),
        sample((3, 4), np.zeros((0, 4), np.int64), axis=0, grad=False),
        sample((3, 4), _I, axis=0, dtype="int32", low=-9, high=9),
        sample((3, 4), np.array([[3, 0, 0, 0]]), axis=0, raises=OutOfRangeError),
        sample((2, 4), np.zeros((3, 4), np.int64), axis=1, raises=ShapeError),
        sample((2, 4), np.zeros((3,), np.int64), axis=1, raises=ShapeError),
        sample((2, 4), (2, 4), axis=1, raises=DTypeError),
    ],
)  # fmt: skip
def gather_along(x: Tensor, index: Tensor, axis: int) -> Tensor:
    r"""Takes :math:`y_{i..k..j} = x_{i..index_{i..k..j}..j}` along one axis.

    Args:
        x: Tensor of at least one axis.
        index: Integer Tensor of as many axes, nowhere larger than ``x`` except along ``axis``.
            Negative entries count from the end.
        axis: Non-negative axis.

    Returns:
        Tensor of ``index``'s shape and ``x``'s dtype.

    Raises:
        OutOfRangeError: if an index lies outside the axis (outside compiled code).
    """
    ...


def _infer_scatter(
    x: TensorType, index: TensorType, value: TensorType, *, axis: int, mode: str
) -> TensorType:
    _infer_gather(x, index, axis=axis)
    if mode not in MODES:
        raise ArgumentError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    if value.shape != index.shape:
        raise ShapeError(
            f"values of shape {list(value.shape)} do not fit index {list(index.shape)}"
        )
    if value.dtype is not x.dtype:
        raise DTypeError(f"{value.dtype.name} values cannot update {x.dtype.name}")
    return x


@without_warnings
def _eager_scatter(
    x: np.ndarray, index: np.ndarray, value: np.ndarray, *, axis: int, mode: str
) -> np.ndarray:
    check_range(index, x.shape[axis], axis)
    wide = np.float32 if dtypes.dtype_of(x.dtype) in LOW_PRECISION and mode != "set" else x.dtype
    out = aligned_copy(x, wide)
    key = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    key[axis] = index.astype(np.int64)
    if mode == "set":
        out[tuple(key)] = value
    else:
        UFUNCS[mode].at(out, tuple(key), value.astype(wide, copy=False))
    return out.astype(x.dtype, copy=False)


def _lower_scatter_along(
    R: Builder, x: Expr, index: Expr, value: Expr, *, axis: int, mode: str
) -> Expr:
    if 0 in R.type(index).shape or 0 in R.type(x).shape:
        return x
    size = R.shape(R.type(x).shape)[axis]
    count = R.type(x).ndim

    def safe(index: Expr, size: Expr) -> Expr:
        return R.te.compute(index.shape, lambda *i: wrapped(R, index[i], size), name="safe")

    def places(index: Expr, size: Expr) -> Expr:
        def coordinate(*i: Expr) -> Expr:
            *at, number = i
            found = wrapped(R, index[tuple(at)], size)
            for a in range(count):
                if a != axis:
                    found = R.tir.Select(number == a, R.tir.Cast("int64", at[a]), found)
            return found

        return R.te.compute((*index.shape, count), coordinate, name="places")

    at = R.emit_te(safe if axis == count - 1 else places, index, size)

    def scatter(x: Expr, value: Expr, how: str) -> Expr:
        if axis == count - 1:
            return R.op.scatter_elements(x, at, value, axis, how)
        return R.op.scatter_nd(x, at, value, how)  # TVM's loops run along the axis, far apart

    return lower_scatter(R, x, value, mode, scatter)


def _onnx_scatter(
    O: OnnxOps, x: OnnxNamed, index: OnnxNamed, value: OnnxNamed, *, axis: int, mode: str
) -> OnnxNamed:
    dtype, low = x.type.dtype, x.type.dtype in LOW_PRECISION
    if low:
        x, value = (O.Cast(v, to=O.dtype(dtypes.float32)) for v in (x, value))
    index = O.Cast(index, to=O.dtype(dtypes.int64))
    reduction = None if mode == "set" else mode
    y = O.ScatterElements(x, index, value, axis=axis, reduction=reduction)
    return O.Cast(y, to=O.dtype(dtype)) if low else y


def _vjp_scatter_along(
    g: Tensor, y: Tensor, x: Tensor, index: Tensor, value: Tensor, *, axis: int, mode: str
) -> tuple[Tensor | None, ...]:
    def put(base: Tensor, values: Tensor, how: str) -> Tensor:
        return F.scatter_along(base, index, values, axis=axis, mode=how)

    dx, dv = vjp_scatter(g, y, x, value, mode, put, lambda t: F.gather_along(t, index, axis=axis))
    return dx, None, dv


def _scatter_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Axes beside the named one that are written whole."""
    x, index = types[:2]
    words = [n if a == b else "." for n, a, b in zip(letters(x.ndim), x.shape, index.shape)]
    words[attrs["axis"] % x.ndim] = "."
    return equation([words] * 3, [words])


@primitive(
    infer=_infer_scatter,
    traits=Traits(Pattern.GATHER, _scatter_factors, batch=Batch.AXIS),
    eager=_eager_scatter,
    check_values=_check_along,
    lower=_lower_scatter_along,
    vjp=_vjp_scatter_along,
    onnx=_onnx_scatter,
    samples=[
        sample((3, 4), np.array([[0, -1, 2, 1]]), (1, 4), axis=0, mode="set"),
        sample((3, 4), _I, (2, 4), axis=0, mode="add"),
        sample((2, 5), _I.astype(np.int32), (2, 4), axis=1, mode="mul", low=0.5),
        sample((2, 5), _I, (2, 4), axis=1, mode="max"),
        sample((2, 5), _I, (2, 4), axis=1, mode="min"),
        sample((4,), np.array([3, 0]), (2,), axis=0, mode="set", dtype="bool"),
        sample((3, 4), np.zeros((0, 4), np.int64), (0, 4), axis=0, mode="add", grad=False),
        sample(
            (3,), np.zeros((9,), np.int64), (9,), axis=0, mode="add", dtype="float16", grad=False
        ),
        sample((3, 4), _I, (2, 4), axis=0, mode="add", dtype="int64", low=-9, high=9),
        sample(
            (3, 4), np.array([[3, 0, 0, 0]]), (1, 4), axis=0, mode="set", raises=OutOfRangeError
        ),
        sample((3, 4), np.array([[1, 0, 0, 0]]), (2, 4), axis=0, mode="set", raises=ShapeError),
        sample((3,), np.array([1]), (1,), axis=0, mode="pow", raises=ArgumentError),
    ],
)
def scatter_along(x: Tensor, index: Tensor, value: Tensor, axis: int, mode: str) -> Tensor:
    r"""Updates :math:`x_{i..index_{i..k..j}..j}` with :math:`value_{i..k..j}` along one axis.

    Args:
        x: Tensor of at least one axis.
        index: Integer Tensor of as many axes, nowhere larger than ``x`` except along ``axis``.
            Negative entries count from the end.
        value: Tensor of ``index``'s shape and ``x``'s dtype.
        axis: Non-negative axis.
        mode: ``"set"`` (the last of repeated positions wins), ``"add"``, ``"mul"``, ``"max"`` or
            ``"min"``.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        OutOfRangeError: if an index lies outside the axis (outside compiled code).
    """
    ...
