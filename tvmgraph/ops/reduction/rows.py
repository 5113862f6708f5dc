"""Rows of the reductions: ``axis`` is a sorted tuple, and an empty one reduces nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, Sample, sample
from tvmgraph.core.precision import precise
from tvmgraph.core.primitive import RowDecorator, primitive
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Batch, Pattern, Traits, equation, letters, reduction
from tvmgraph.core.types import Dim, Shape, TensorType, tensor_type
from tvmgraph.dtypes import DType
from tvmgraph.errors import OutOfRangeError, ShapeError
from tvmgraph.ops.common.pointwise import pointwise
from tvmgraph.ops.common.rows import LOW_PRECISION, NOT_DIFFERENTIABLE, lower_full, lower_wide

__all__ = []

_MOST_OF_HALF = 65504  # what float16 holds
NUMBERS = dtypes.INTEGERS + dtypes.FLOATS
Axes = tuple[int, ...]


def expand_reduced(g: Tensor, x: Tensor, axis: Axes, keep_dims: bool) -> Tensor:
    """Broadcasts a result of a reduction back to the shape of its input.

    Args:
        g: The result.
        x: The input.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1 in the result.
    """
    if not keep_dims and axis:
        kept: list[object] = [None if a in axis else (0, None, 1) for a in range(x.ndim)]
        g = F.basic_index(g, index=tuple(kept))
    return F.broadcast_to(g, x.aval.shape)


def in_float32(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Wraps a NumPy reduction so that half precision is accumulated in float32.

    Args:
        function: Takes an array, ``axis`` and ``keepdims``.
    """

    def reduce(x: np.ndarray, *, axis: Axes, keep_dims: bool) -> np.ndarray:
        if x.dtype.itemsize != 2 or dtypes.dtype_of(x.dtype) not in LOW_PRECISION:
            return function(x, axis=axis, keepdims=keep_dims)
        result = function(x.astype(np.float32), axis=axis, keepdims=keep_dims)
        return np.asarray(result).astype(x.dtype)

    return reduce


def is_empty(t: TensorType) -> bool:
    """Whether the tensor certainly has no elements.

    Args:
        t: The type of the tensor.
    """
    return 0 in t.shape


def reduced(t: TensorType, axis: Axes, keep_dims: bool) -> TensorType:
    """Returns the type of a reduction that keeps the dtype.

    Args:
        t: Type of the input.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1.
    """
    return t.with_shape(rules.reduced_shape(t.shape, axis, keep_dims))


#: The sum of one element and the 0 that sums start from: there is no negative zero among them.
_from_zero = pointwise("from_zero", lambda m, x: m.where(x == 0, 0, x))


def _lower(name: str, empty: object) -> Callable[..., Expr]:
    """Lowers to the Relax reduction ``name``; ``empty`` is its value over no elements."""

    def lower(R: Builder, x: Expr, *, axis: Axes, keep_dims: bool) -> Expr:
        t = R.type(x)
        if not axis:
            return _from_zero(R, x) if name in ("sum", "mean") and t.dtype.is_float else x
        if is_empty(t):
            return lower_full(R, x, reduced(t, axis, keep_dims), empty)
        function = getattr(R.op, name)
        return lower_wide(R, lambda v: function(v, axis=list(axis), keepdims=keep_dims), x)

    return lower


def _onnx(op_type: str) -> Callable[..., OnnxNamed]:
    """Maps to an ONNX reduction that takes its axes as an input."""

    def build(O: OnnxOps, x: OnnxNamed, *, axis: Axes, keep_dims: bool) -> OnnxNamed:
        if not axis:
            return O.Identity(x)
        t, axes = x.type, np.array(axis, np.int64)
        through = _ONNX_THROUGH.get(op_type, {}).get(t.dtype)
        if through is not None:
            x = O.Cast(x, to=O.dtype(through))
        count = math.prod(t.shape[a] for a in axis)
        if op_type == "ReduceMean" and isinstance(count, Dim):  # runtimes: no elements give 0
            y = O.ReduceSum(x, axes, keepdims=int(keep_dims))
            y = O.Div(y, O.Cast(O.size(count), to=O.dtype(through or t.dtype)))
        else:
            y = O.add(op_type, (x, axes), 1, {"keepdims": int(keep_dims)})
        return y if through is None else O.Cast(y, to=O.dtype(t.dtype))

    return build


_SMALL = {d: dtypes.int64 for d in (*dtypes.INTEGERS, dtypes.bool_) if d is not dtypes.int64}
_HALF = dict.fromkeys(LOW_PRECISION, dtypes.float32)
_ONNX_THROUGH: dict[str, dict[DType, DType]] = {
    "ReduceSum": _HALF | _SMALL, "ReduceMean": _HALF, "ReduceProd": _HALF | _SMALL,
    "ReduceMax": _HALF | _SMALL, "ReduceMin": _HALF | _SMALL,
}  # fmt: skip


def reduction_samples(**kwargs: Any) -> list[Sample]:
    """Samples every reduction shares."""
    no_grad: Attrs = kwargs | {"grad": False}
    return [
        sample((3, 4), axis=(1,), keep_dims=False, **kwargs),
        sample((3, 1, 5), axis=(0, 2), keep_dims=True, **kwargs),
        sample((2, 3), axis=(), keep_dims=False, **kwargs),
        sample((), axis=(), keep_dims=False, **kwargs),
        sample((17,), axis=(0,), keep_dims=False, dtype="float64", **kwargs),
        sample((3, 0), axis=(0,), keep_dims=False, **no_grad),
        sample((3, 5), axis=(0, 1), keep_dims=False, dtype="float16", **no_grad),
        sample((3, 4), axis=(2,), keep_dims=False, raises=OutOfRangeError),
    ]


@primitive(
    infer=rules.reduction(NUMBERS),
    traits=reduction("sum"),
    eager=in_float32(
        lambda x, axis, keepdims: np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)
    ),
    lower=_lower("sum", 0),
    vjp=lambda g, y, x, *, axis, keep_dims: (expand_reduced(g, x, axis, keep_dims),),
    onnx=_onnx("ReduceSum"),
    samples=[
        *reduction_samples(),
        sample((0, 3), axis=(0,), keep_dims=False, grad=False),
        sample((5, 3000), dtype="float16", low=0, high=1, axis=(1,), keep_dims=False, grad=False),
        sample((4, 3), dtype="int64", low=-9, high=9, axis=(0,), keep_dims=False),
        sample((4, 3), dtype="uint8", low=0, high=9, axis=(0,), keep_dims=False),
        sample((3, 2), dtype="bfloat16", axis=(0,), keep_dims=False, grad=False),
    ],
)
def reduce_sum(x: Tensor, axis: Axes, keep_dims: bool) -> Tensor:
    r"""Sums over ``axis``; float16 and bfloat16 accumulate in float32.

    Args:
        x: Tensor of any shape.
        axis: Sorted non-negative axes; an empty tuple sums over none.
        keep_dims: Whether reduced axes stay with size 1.

    Returns:
        Tensor of ``x``'s shape without (or with 1 in) the reduced axes.
    """
    ...


def _count(shape: Shape, axis: Axes) -> int | Dim:
    return math.prod(shape[a] for a in axis)


def _numpy_mean(x: np.ndarray, *, axis: Axes, keepdims: bool) -> np.ndarray:
    total = np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)
    return total / x.dtype.type(_count(x.shape, axis))


def _vjp_mean(g: Tensor, y: Tensor, x: Tensor, *, axis: Axes, keep_dims: bool) -> tuple[Tensor]:
    count = _count(x.aval.shape, axis)
    count = max(count, 1) if isinstance(count, int) else count
    if g.dtype is dtypes.float16 and isinstance(count, int) and count > _MOST_OF_HALF:
        share = F.cast(F.cast(g, dtypes.float32) / count, g.dtype)
    else:
        share = g / count
    return (expand_reduced(share, x, axis, keep_dims),)


@primitive(
    infer=rules.reduction(dtypes.FLOATS),
    traits=reduction("mean"),
    eager=in_float32(_numpy_mean),
    lower=_lower("mean", math.nan),
    vjp=_vjp_mean,
    onnx=_onnx("ReduceMean"),
    samples=[
        *reduction_samples(),
        sample((5, 3000), dtype="float16", low=0, high=99, axis=(1,), keep_dims=False, grad=False),
    ],
)
def reduce_mean(x: Tensor, axis: Axes, keep_dims: bool) -> Tensor:
    """Averages over ``axis``; half precision accumulates in float32, no elements give NaN.

    Args:
        x: Floating-point tensor of any shape.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1.
    """
    ...


def _vjp_prod(g: Tensor, y: Tensor, x: Tensor, *, axis: Axes, keep_dims: bool) -> tuple[Tensor]:
    """The product of the other elements, also when one of them is zero."""
    zero = F.equal(x, 0)
    filled = F.where(zero, 1, x)
    others = F.reduce_prod(filled, axis=axis, keep_dims=keep_dims)
    zeros = F.reduce_sum(F.cast(zero, dtypes.int32), axis=axis, keep_dims=keep_dims)
    none, one = (F.cast(F.equal(zeros, n), x.dtype) for n in (0, 1))
    at_zero = expand_reduced(g * others * one, x, axis, keep_dims)
    elsewhere = expand_reduced(g * others * none, x, axis, keep_dims) / filled
    return (F.where(zero, at_zero, elsewhere),)


@precise
@primitive(
    infer=rules.reduction(NUMBERS),
    traits=reduction("prod"),
    eager=in_float32(
        lambda x, axis, keepdims: np.multiply.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)
    ),
    lower=_lower("prod", 1),
    vjp=_vjp_prod,
    onnx=_onnx("ReduceProd"),
    samples=[
        *reduction_samples(),
        sample(np.array([[0.0, 2, 3], [0, 0, 4], [1, 2, 5]]), axis=(1,), keep_dims=False),
        sample((4, 3), dtype="int32", low=-9, high=9, axis=(0,), keep_dims=False),
    ],
)
def reduce_prod(x: Tensor, axis: Axes, keep_dims: bool) -> Tensor:
    """Multiplies over ``axis``; half precision accumulates in float32, no elements give 1.

    Args:
        x: Tensor of any shape.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1.
    """
    ...


# ---- extremes -----------------------------------------------------------------------------------


def require_elements(x: TensorType, axis: Axes) -> None:
    """Makes sure that no extreme of no elements is asked for.

    Args:
        x: Type of the input.
        axis: The reduced axes, sorted.

    Raises:
        ShapeError: if one is.
    """
    if any(x.shape[a] == 0 for a in axis):
        raise ShapeError(
            f"an extreme over axis {list(axis)} of no elements does not exist",
            fix="check for an empty tensor first",
        )


def _infer_extreme(x: TensorType, *, axis: Axes, keep_dims: bool) -> TensorType:
    result = rules.reduction(dtypes.ALL)(x, axis=axis, keep_dims=keep_dims)
    require_elements(x, axis)
    return result


def _extreme_of_floats(R: Builder, name: str, axis: Axes, keep_dims: bool) -> Callable[..., Expr]:
    """Starts from an infinity; TVM's own reduction starts from the largest finite number."""
    combine, start = (R.tir.max, -math.inf) if name == "max" else (R.tir.min, math.inf)
    reducer = R.te.comm_reducer(
        lambda a, b: combine(a, b), lambda dtype: R.tir.const(start, dtype), name=name
    )

    def extreme(v: Expr) -> Expr:
        run = {a: R.te.reduce_axis((0, v.shape[a]), name=f"k{a}") for a in axis}

        def element(*i: Expr) -> Expr:
            rest = iter([d for a, d in enumerate(i) if a not in run] if keep_dims else i)
            at = tuple(run[a] if a in run else next(rest) for a in range(len(v.shape)))
            return reducer(v[at], axis=list(run.values()))

        shape = rules.reduced_shape(tuple(v.shape), axis, keep_dims)
        return R.te.compute(shape, element, name=name)

    return extreme


def lower_extreme(R: Builder, x: Expr, name: str, axis: Axes, keep_dims: bool) -> Expr:
    """Emits a maximum or minimum that is NaN where an element is; TVM's own drops NaN.

    Args:
        R: The builder.
        x: A tensor.
        name: ``"max"`` or ``"min"``.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1.
    """
    t = R.type(x)
    if not axis:
        return x
    if is_empty(t):
        return lower_full(R, x, reduced(t, axis, keep_dims), 0)

    def extreme(v: Expr) -> Expr:
        kind = R.type(v).dtype
        if not kind.is_float:
            return getattr(R.op, name)(v, axis=list(axis), keepdims=keep_dims)
        y = R.emit_te(_extreme_of_floats(R, name, axis, keep_dims), v)
        flags = R.emit(R.op.astype(R.emit(R.op.isnan(v)), kind.name))
        count = R.emit(R.op.sum(flags, axis=list(axis), keepdims=keep_dims))
        bad = R.emit(R.op.greater(count, R.const(0, kind.name)))
        return R.op.where(bad, R.const(math.nan, kind.name), y)

    if t.dtype is dtypes.bool_:
        return R.op.astype(R.emit(extreme(R.emit(R.op.astype(x, "int8")))), "bool")
    return lower_wide(R, extreme, x)


def _vjp_extreme(g: Tensor, y: Tensor, x: Tensor, *, axis: Axes, keep_dims: bool) -> tuple[Tensor]:
    """Equal extremes share the cotangent."""
    hit = F.cast(F.equal(x, expand_reduced(y, x, axis, keep_dims)), x.dtype)
    count = F.reduce_sum(hit, axis=axis, keep_dims=keep_dims)
    return (hit * expand_reduced(g / count, x, axis, keep_dims),)


def _extreme(ufunc: np.ufunc, name: str, op_type: str) -> RowDecorator:
    """Adds the row of the largest or the smallest elements."""
    usual = [s for s in reduction_samples() if s.shapes != ((3, 0),)]
    wide = np.array([[1.0, 7e37, 3], [np.inf, 2, -np.inf], [-np.inf] * 3], np.float32)
    return primitive(
        infer=_infer_extreme,
        traits=reduction(name),
        eager=lambda x, *, axis, keep_dims: ufunc.reduce(x, axis=axis, keepdims=keep_dims),
        lower=lambda R, x, *, axis, keep_dims: lower_extreme(R, x, name, axis, keep_dims),
        vjp=_vjp_extreme,
        onnx=_onnx(op_type),
        samples=[
            *usual,
            sample((3, 0), axis=(0,), keep_dims=True, grad=False),
            sample(wide, axis=(1,), keep_dims=False, grad=False),
            sample(np.array([[1.0, 1.0, 0.5]]), axis=(0,), keep_dims=False),
            sample((4, 3), dtype="int64", low=-9, high=9, axis=(0,), keep_dims=False),
            sample((4, 3), dtype="uint8", low=0, high=9, axis=(0,), keep_dims=False),
            sample((4, 3), dtype="bool", axis=(0,), keep_dims=False),
            sample((4, 3), dtype="bfloat16", axis=(0,), keep_dims=False, grad=False),
            sample((3, 0), axis=(1,), keep_dims=False, raises=ShapeError),
        ],
    )


@_extreme(np.maximum, "max", "ReduceMax")
def reduce_max(x: Tensor, axis: Axes, keep_dims: bool) -> Tensor:
    """Returns the largest element over ``axis``; NaN wins.

    Args:
        x: Tensor of any shape.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1.
    """
    ...


@_extreme(np.minimum, "min", "ReduceMin")
def reduce_min(x: Tensor, axis: Axes, keep_dims: bool) -> Tensor:
    """Returns the smallest element over ``axis``; NaN wins.

    Args:
        x: Tensor of any shape.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1.
    """
    ...


def _infer_arg(x: TensorType, *, axis: int, keep_dims: bool, largest: bool) -> TensorType:
    rules.require_dtype(x, dtypes.ALL)
    rules.require_ndim(x, range(1, 65))
    axis = rules.normalize_axis(axis, x.ndim)
    require_elements(x, (axis,))
    shape = rules.reduced_shape(x.shape, (axis,), keep_dims)
    return tensor_type(shape, dtypes.int64, x.device)


def _eager_arg(x: np.ndarray, *, axis: int, keep_dims: bool, largest: bool) -> np.ndarray:
    wide = x.astype(np.float32) if dtypes.dtype_of(x.dtype) is dtypes.bfloat16 else x
    return (np.argmax if largest else np.argmin)(wide, axis=axis, keepdims=keep_dims)


def _lower_arg(R: Builder, x: Expr, *, axis: int, keep_dims: bool, largest: bool) -> Expr:
    """The smallest position of an extreme: two reductions that vectorise, unlike one over pairs."""
    t = R.type(x)
    result = tensor_type(rules.reduced_shape(t.shape, (axis,), keep_dims), dtypes.int64)
    if is_empty(result):
        return lower_full(R, x, result, 0)
    if t.dtype is dtypes.bool_:
        x = R.emit(R.op.astype(x, "int8"))
    elif t.dtype in LOW_PRECISION:
        x = R.emit(R.op.astype(x, "float32"))
    best = R.emit(lower_extreme(R, x, "max" if largest else "min", (axis,), True))
    hit = R.emit(R.op.equal(x, best))
    if t.dtype.is_float:
        hit = R.emit(R.op.logical_or(hit, R.emit(R.op.isnan(x))))

    def positions(hit: Expr) -> Expr:
        def element(*i: Expr) -> Expr:
            size = R.tir.Cast("int32", hit.shape[axis])
            return R.tir.Select(hit[i], R.tir.Cast("int32", i[axis]), size)

        return R.te.compute(hit.shape, element, name="positions")

    first = R.emit(R.op.min(R.emit_te(positions, hit), axis=[axis], keepdims=keep_dims))
    return R.op.astype(first, "int64")


def _onnx_arg(O: OnnxOps, x: OnnxNamed, *, axis: int, keep_dims: bool, largest: bool) -> OnnxNamed:
    through = (_HALF | _SMALL).get(x.type.dtype)
    if through is not None:  # ONNX Runtime has kernels for few dtypes
        x = O.Cast(x, to=O.dtype(dtypes.int32 if through is dtypes.int64 else through))
    op_type = "ArgMax" if largest else "ArgMin"
    return O.add(op_type, (x,), 1, {"axis": axis, "keepdims": int(keep_dims)})


def _arg_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """All axes but the one that is searched."""
    names = letters(types[0].ndim)
    axis = attrs["axis"] % types[0].ndim
    one = ["."] if attrs["keep_dims"] else []
    before, after = names[:axis], names[axis + 1 :]
    return equation([[*before, ".", *after]], [[*before, *one, *after]])


@primitive(
    infer=_infer_arg,
    traits=Traits(Pattern.OPAQUE, _arg_factors, batch=Batch.AXIS),
    eager=_eager_arg,
    lower=_lower_arg,
    vjp=Reason(NOT_DIFFERENTIABLE),
    onnx=_onnx_arg,
    samples=[
        sample((3, 4), axis=1, keep_dims=False, largest=True),
        sample((3, 4), axis=0, keep_dims=True, largest=False),
        sample((17,), axis=0, keep_dims=False, largest=False),
        sample((2, 3, 4), dtype="int32", low=-2, high=2, axis=1, keep_dims=False, largest=True),
        sample((3, 5), dtype="float16", axis=1, keep_dims=False, largest=True),
        sample((3, 5), dtype="bfloat16", axis=1, keep_dims=False, largest=False),
        sample((3, 5), dtype="bool", axis=1, keep_dims=False, largest=True),
        sample(np.array([[2.0, 2, 1], [-np.inf] * 3]), axis=1, keep_dims=False, largest=True),
        sample((0, 4), axis=1, keep_dims=False, largest=True),
        sample((3, 4), axis=2, keep_dims=False, largest=True, raises=OutOfRangeError),
        sample((3, 0), axis=1, keep_dims=False, largest=True, raises=ShapeError),
        sample((), axis=0, keep_dims=False, largest=True, raises=ShapeError),
    ],
)
def arg_extreme(x: Tensor, axis: int, keep_dims: bool, largest: bool) -> Tensor:
    """Returns the first int64 position of the largest or smallest element; NaN wins.

    Args:
        x: Tensor of at least one axis.
        axis: The axis, not negative.
        keep_dims: Whether it stays with size 1.
        largest: Whether the largest element is looked for rather than the smallest.
    """
    ...


# ---- truth --------------------------------------------------------------------------------------


def lower_truth(R: Builder, x: Expr) -> Expr:
    """Emits ``x != 0``; TVM's comparison is false for NaN, which counts as true.

    Args:
        R: The builder.
        x: A tensor.
    """
    t = R.type(x)
    if t.dtype is dtypes.bool_:
        return x
    if t.dtype is dtypes.bfloat16:  # TVM has no isnan of it
        x, t = R.emit(R.op.astype(x, "float32")), t.with_dtype(dtypes.float32)
    y = R.emit(R.op.not_equal(x, R.const(0, t.dtype.name)))
    return R.emit(R.op.logical_or(y, R.emit(R.op.isnan(x)))) if t.dtype.is_float else y


def _truth(name: str, function: Callable[..., np.ndarray], op_type: str) -> RowDecorator:
    """Adds the row of whether all elements, or any, are true."""
    is_all = name == "all"

    def lower(R: Builder, x: Expr, *, axis: Axes, keep_dims: bool) -> Expr:
        t = R.type(x)
        if is_empty(t):
            return lower_full(R, x, reduced(t.with_dtype(dtypes.bool_), axis, keep_dims), is_all)
        truth = lower_truth(R, x)
        if not axis:
            return truth
        bits = R.emit(R.op.astype(truth, "int8"))
        reduce = R.op.min if is_all else R.op.max
        found = R.emit(reduce(bits, axis=list(axis), keepdims=keep_dims))
        return R.op.greater(found, R.const(0, "int8"))  # of no elements it is the type's extreme

    def onnx(O: OnnxOps, x: OnnxNamed, *, axis: Axes, keep_dims: bool) -> OnnxNamed:
        truth = O.Cast(x, to=O.dtype(dtypes.bool_))
        if not axis:
            return truth
        bits, axes = O.Cast(truth, to=O.dtype(dtypes.int32)), np.array(axis, np.int64)
        # no elements: ReduceMin and ReduceMax give the type's extremes, so the sign decides
        y = O.add(op_type, (bits, axes), 1, {"keepdims": int(keep_dims)})
        return O.Greater(y, np.array(0, np.int32))

    return primitive(
        infer=rules.reduction(dtypes.ALL, dtypes.bool_),
        traits=reduction(name),
        eager=lambda x, *, axis, keep_dims: function(x != 0, axis=axis, keepdims=keep_dims),
        lower=lower,
        vjp=Reason(NOT_DIFFERENTIABLE),
        onnx=onnx,
        samples=[
            sample((3, 4), dtype="bool", axis=(1,), keep_dims=False),
            sample((3, 1, 5), dtype="int32", low=0, high=1, axis=(0, 2), keep_dims=True),
            sample((2, 3), dtype="float32", axis=(), keep_dims=False),
            sample((3, 0), dtype="bool", axis=(1,), keep_dims=False),
            sample((0, 3), dtype="bool", axis=(1,), keep_dims=False),
            sample(np.array([[0.0, np.nan], [0, -0.0]], np.float32), axis=(1,), keep_dims=False),
            sample((3, 4), dtype="bool", axis=(2,), keep_dims=False, raises=OutOfRangeError),
        ],
    )


@_truth("all", np.all, "ReduceMin")
def reduce_all(x: Tensor, axis: Axes, keep_dims: bool) -> Tensor:
    """Returns whether no element over ``axis`` is zero.

    Args:
        x: Tensor of any shape.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1.
    """
    ...


@_truth("any", np.any, "ReduceMax")
def reduce_any(x: Tensor, axis: Axes, keep_dims: bool) -> Tensor:
    """Returns whether an element over ``axis`` is not zero.

    Args:
        x: Tensor of any shape.
        axis: The reduced axes, sorted.
        keep_dims: Whether they stay with size 1.
    """
    ...
