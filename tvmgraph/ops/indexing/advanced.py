"""Reading and updating the elements that integer tensors address."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, Reason, sample
from tvmgraph.core.primitive import primitive, without_warnings
from tvmgraph.core.sizes import proven
from tvmgraph.core.storage import aligned_copy
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation, letters
from tvmgraph.core.types import Shape, TensorType, tensor_type
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError, either
from tvmgraph.ops.common.rows import LOW_PRECISION, lower_full, sum_to
from tvmgraph.ops.common.window import Point

__all__: list[str] = []

UFUNCS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
MODES = ("set", *UFUNCS)
RELAX_MODES = {"set": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def are_adjacent(axes: tuple[int, ...]) -> bool:
    """Whether sorted axes follow each other without a gap.

    Args:
        axes: The axes, at least one.
    """
    return axes[-1] - axes[0] == len(axes) - 1


def gathered_shape(shape: Shape, batch: Shape, axes: tuple[int, ...]) -> Shape:
    """Returns NumPy's result shape: the batch stands where adjacent axes stood, else in front.

    Args:
        shape: Shape of the tensor.
        batch: Shape of the indices.
        axes: The axes that are indexed, sorted.
    """
    rest = [d for a, d in enumerate(shape) if a not in axes]
    at = axes[0] if are_adjacent(axes) else 0
    return (*rest[:at], *batch, *rest[at:])


def require_indices(*types: TensorType) -> None:
    """Makes sure that all indices are integers.

    Args:
        *types: Types of the indices.

    Raises:
        DTypeError: if one is of another dtype.
    """
    for t in types:
        if not t.dtype.is_integer:
            raise DTypeError(
                f"indices must be integers, not {t.dtype.name}", fix="cast them to int64"
            )


def _batch(x: TensorType, indices: tuple[TensorType, ...], axes: tuple[int, ...]) -> Shape:
    require_indices(*indices)
    if len(indices) != len(axes) or not axes or any(a >= x.ndim for a in axes):
        raise ArgumentError(f"{len(indices)} index tensors do not fit the axes {list(axes)}")
    batch = rules.broadcast_shapes(*(i.shape for i in indices))
    if all(proven(">", d, 0) for d in batch) and 0 in [x.shape[a] for a in axes]:
        raise either(OutOfRangeError, RuntimeError)("an axis of size 0 cannot be indexed")
    return batch


def _infer_index_get(*xs: TensorType, axes: tuple[int, ...]) -> TensorType:
    x, indices = xs[0], xs[1:]
    return x.with_shape(gathered_shape(x.shape, _batch(x, indices, axes), axes))


def numpy_key(x: np.ndarray, indices: tuple[np.ndarray, ...], axes: tuple[int, ...]) -> Any:
    """Returns the NumPy index.

    Args:
        x: The array.
        indices: Integer arrays.
        axes: The axes that they index, sorted.
    """
    key: list[object] = [slice(None)] * (axes[-1] + 1)
    for a, i in zip(axes, indices):
        if i.dtype == np.uint64:  # of which NumPy would count some from the end
            check_range(i, x.shape[a], a)
        key[a] = i.astype(np.int64, copy=False)
    return tuple(key)


def check_indices(*xs: np.ndarray, axes: tuple[int, ...], mode: str | None = None) -> None:
    """Raises :class:`OutOfRangeError` unless all indices are inside of their axes.

    Args:
        *xs: The tensor, a value if there is a ``mode``, and the indices.
        axes: Their axes.
        mode: How the value updates the tensor.
    """
    for a, i in zip(axes, xs[1 if mode is None else 2 :]):
        check_range(i, xs[0].shape[a], a)


def check_range(index: np.ndarray, size: int, axis: int) -> None:
    """Makes sure that all entries lie in ``[-size, size)``.

    Args:
        index: The entries.
        size: Size of the axis.
        axis: The axis, for the message.

    Raises:
        OutOfRangeError: if one lies outside.
    """
    if index.size and (index.min() < -size or index.max() >= size):
        bad = index[(index < -size) | (index >= size)].flat[0]
        raise either(OutOfRangeError, RuntimeError)(
            f"index {bad} is out of range for axis {axis} of size {size}"
        )


def _eager_index_get(*xs: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    x, indices = xs[0], xs[1:]
    try:
        if len(axes) == 1:
            return np.take(x, indices[0].astype(np.int64, copy=False), axis=axes[0])
        return x[numpy_key(x, indices, axes)]
    except IndexError:
        check_indices(*xs, axes=axes)
        raise


def wrapped(R: Builder, value: Expr, size: Expr, kind: str = "int64") -> Expr:
    """Returns an index, counted from the end when negative, and never out of bounds.

    Args:
        R: The builder.
        value: The index.
        size: Size of the axis.
        kind: The dtype of the result and of ``size``.
    """
    value = R.tir.Cast(kind, value)
    value = R.tir.Select(value < 0, value + size, value)
    return R.tir.max(R.tir.min(value, size - 1), R.tir.IntImm(kind, 0))


def _at(tensor: Expr, batch: Point) -> Expr:
    """Reads a broadcast tensor at a position of the full batch."""
    position = batch[len(batch) - len(tensor.shape) :]
    at = [0 if int_or_none(d) == 1 else p for d, p in zip(tensor.shape, position)]
    return tensor[tuple(at)] if at else tensor()


def int_or_none(d: object) -> int | None:
    """Returns a static TIR dimension as an integer.

    Args:
        d: An extent; ``None`` is returned if it is no number.
    """
    value = getattr(d, "value", d)
    return value if isinstance(value, int) else None


def _lower_index_get(R: Builder, *xs: Expr, axes: tuple[int, ...]) -> Expr:
    types = [R.type(x) for x in xs]
    result = _infer_index_get(*types, axes=axes)
    if result.is_static and result.size == 0:
        return lower_full(R, xs[0], result)
    count = len(rules.broadcast_shapes(*(t.shape for t in types[1:])))
    lead = axes[0] if are_adjacent(axes) else 0

    def gather(shape: Expr, x: Expr, *indices: Expr) -> Expr:
        def element(*i: Expr) -> Expr:
            batch = i[lead : lead + count]
            rest = iter((*i[:lead], *i[lead + count :]))
            found = {a: wrapped(R, _at(v, batch), x.shape[a]) for a, v in zip(axes, indices)}
            return x[tuple(found[a] if a in found else next(rest) for a in range(len(x.shape)))]

        return R.te.compute(shape, element, name="index_get")

    return R.emit_te(gather, [*R.shape(result.shape)], *xs)


def _leading(x: TensorType, axes: tuple[int, ...], batch_ndim: int) -> tuple[list[int], list[int]]:
    """Returns the permutations that bring ``x``'s indexed axes, and the batch, to the front."""
    rest = [a for a in range(x.ndim) if a not in axes]
    lead = axes[0] if are_adjacent(axes) else 0
    batch = list(range(lead, lead + batch_ndim))
    ndim = len(rest) + batch_ndim
    return [*axes, *rest], [*batch, *(a for a in range(ndim) if a not in batch)]


def _onnx_columns(O: OnnxOps, indices: Sequence[OnnxNamed], batch: Shape) -> OnnxNamed:
    """Stacks broadcast index tensors along a new last axis, as GatherND wants them."""
    last = np.array([len(batch)], np.int64)
    columns = []
    for i in indices:
        v = O.Cast(i, to=O.dtype(dtypes.int64))
        if i.type.shape != batch:
            v = O.Expand(v, O.shape(batch))
        columns.append(O.Unsqueeze(v, last))
    return O.Concat(*columns, axis=-1)


def _transpose(O: OnnxOps, x: OnnxNamed, order: list[int]) -> OnnxNamed:
    return x if order == sorted(order) else O.Transpose(x, perm=order)


def _onnx_index_get(O: OnnxOps, *xs: OnnxNamed, axes: tuple[int, ...]) -> OnnxNamed:
    x, indices = xs[0], xs[1:]
    if len(axes) == 1:
        return O.Gather(x, O.Cast(indices[0], to=O.dtype(dtypes.int64)), axis=axes[0])
    batch = rules.broadcast_shapes(*(i.type.shape for i in indices))
    to_front, batch_first = _leading(x.type, axes, len(batch))
    y = O.GatherND(_transpose(O, x, to_front), _onnx_columns(O, indices, batch))
    return O.Identity(_transpose(O, y, [int(a) for a in np.argsort(batch_first)]))


def _vjp_index_get(
    g: Tensor, y: Tensor, *xs: Tensor, axes: tuple[int, ...]
) -> tuple[Tensor | None, ...]:
    zeros = F.zeros_like(xs[0])
    return (F.index_update(zeros, g, *xs[1:], axes=axes, mode="add"), *(None for _ in xs[1:]))


_I3 = np.array([2, -1, 0])
_I21 = np.array([[1], [0]])


def _get_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Axes that are not indexed, and those of the indices."""
    axes, names = attrs["axes"], letters(types[0].ndim)
    count = max((t.ndim for t in types[1:]), default=0)
    batch = [f"i{i}" for i in range(count)]
    rest = [n for a, n in enumerate(names) if a not in axes]
    lead = axes[0] if are_adjacent(axes) else 0
    names = ["." if a in axes else n for a, n in enumerate(names)]
    indices = [batch[count - t.ndim :] for t in types[1:]]
    return equation([names, *indices], [[*rest[:lead], *batch, *rest[lead:]]])


@primitive(
    infer=_infer_index_get,
    traits=Traits(Pattern.GATHER, _get_factors),
    eager=_eager_index_get,
    check_values=check_indices,
    lower=_lower_index_get,
    vjp=_vjp_index_get,
    onnx=_onnx_index_get,
    samples=[
        sample((3, 4), _I3, axes=(0,)),
        sample((3, 4), np.array([[1, 1], [0, -4]], np.int32), axes=(1,)),
        sample((3, 4), np.array(2), axes=(0,)),
        sample((3, 4, 2), _I3, _I21, axes=(0, 1)),
        sample((2, 3, 4), _I3, _I21, axes=(1, 2)),
        sample((3, 4, 2), _I3, _I21, axes=(0, 2)),
        sample((3, 2), np.zeros((0, 2), np.int64), axes=(0,), grad=False),
        sample((0, 3), np.array([1]), axes=(1,), grad=False),
        sample((4,), _I3, dtype="bool", axes=(0,)),
        sample((5, 17), np.array([4, 4, 1], np.uint8), dtype="float16", axes=(0,), grad=False),
        sample((3, 4), np.array([3]), axes=(0,), raises=OutOfRangeError),
        sample((3, 4), np.array([0]), np.array([-5]), axes=(0, 1), raises=OutOfRangeError),
        sample((3, 4), (2,), axes=(0,), raises=DTypeError),
    ],
)
def index_get(*xs: Tensor, axes: tuple[int, ...]) -> Tensor:
    r"""Takes the elements that integer tensors address along some axes.

    Args:
        xs: The tensor, then one integer tensor per entry of ``axes``; these broadcast. Negative
            entries count from the end.
        axes: Sorted non-negative axes.

    Returns:
        Tensor in which the broadcast shape of the indices replaces the axes: where they stood
        when they are adjacent, in front when they are not.

    Raises:
        OutOfRangeError: if an index lies outside its axis (outside compiled code).
    """
    ...


# ---- updates ------------------------------------------------------------------------------------


def _infer_index_update(*xs: TensorType, axes: tuple[int, ...], mode: str) -> TensorType:
    x, value = xs[0], xs[1]
    if mode not in MODES:
        raise ArgumentError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    region = _infer_index_get(x, *xs[2:], axes=axes).shape
    if value.dtype is not x.dtype:
        raise DTypeError(f"a {value.dtype.name} value cannot update {x.dtype.name}")
    if rules.broadcast_shapes(value.shape, region) != region:
        raise ShapeError(
            f"a value of shape {list(value.shape)} does not broadcast to the region {list(region)}"
        )
    return x


def accumulate(out: np.ndarray, slots: np.ndarray, values: np.ndarray, ufunc: np.ufunc) -> None:
    """Combines rows of ``values`` into the rows ``slots`` of ``out``, repeated slots included.

    Args:
        out: The array that is changed.
        slots: Numbers of rows, at least one.
        values: A row per entry of ``slots``.
        ufunc: What combines two rows.
    """
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    totals = values if len(starts) == len(slots) else None
    rows = slots if totals is not None else ordered[starts]
    if totals is None:
        totals = ufunc.reduceat(values[order], starts, axis=0)
    out[rows] = ufunc(out[rows], totals)


@without_warnings
def _eager_index_update(*xs: np.ndarray, axes: tuple[int, ...], mode: str) -> np.ndarray:
    x, value, indices = xs[0], xs[1], xs[2:]
    check_indices(*xs, axes=axes, mode=mode)
    key = numpy_key(x, indices, axes)
    if mode == "set":
        out = aligned_copy(x)
        out[key] = value
        return out
    wide = np.float32 if dtypes.dtype_of(x.dtype) in LOW_PRECISION else x.dtype
    batch = np.broadcast_shapes(*(i.shape for i in indices))
    to_front, batch_first = _leading_numpy(x, axes, len(batch))
    rows = math.prod(x.shape[a] for a in axes)
    out = np.array(x.transpose(to_front), wide, order="C")
    region: Any = gathered_shape(x.shape, batch, axes)
    full = np.broadcast_to(value, region).transpose(batch_first).astype(wide, copy=False)
    slots: Any = np.ravel_multi_index(
        tuple(np.broadcast_to(i, batch).ravel() % x.shape[a] for a, i in zip(axes, indices)),
        tuple(x.shape[a] for a in axes),
    ) if math.prod(batch) else np.zeros(0, np.int64)  # fmt: skip
    width = out.size // rows if rows else 0
    if slots.size and width:
        accumulate(out.reshape(rows, width), slots, full.reshape(len(slots), width), UFUNCS[mode])
    return np.ascontiguousarray(out.transpose(np.argsort(to_front)).astype(x.dtype, copy=False))


def _leading_numpy(x: np.ndarray, axes: tuple[int, ...], ndim: int) -> tuple[list[int], list[int]]:
    return _leading(tensor_type(x.shape, dtypes.float32), axes, ndim)


def lower_scatter(
    R: Builder, x: Expr, value: Expr, mode: str, scatter: Callable[..., Expr]
) -> Expr:
    """Calls ``scatter(x, value, relax_mode)`` with wide accumulators and propagating NaN.

    Args:
        R: The builder.
        x: The tensor.
        value: What is combined with it.
        mode: A key of ``RELAX_MODES``.
        scatter: Emits the update of one tensor with another.
    """
    t = R.type(x)
    low = t.dtype in LOW_PRECISION
    if low:
        x, value = (R.emit(R.op.astype(v, "float32")) for v in (x, value))
    if t.dtype is dtypes.bool_:
        x, value = (R.emit(R.op.astype(v, "uint8")) for v in (x, value))
    y = R.emit(scatter(x, value, RELAX_MODES[mode]))
    if mode in ("max", "min") and t.dtype.is_float:  # TVM's maximum drops NaN
        kind = "float32" if low else t.dtype.name
        flags = [R.emit(R.op.astype(R.emit(R.op.isnan(v)), kind)) for v in (x, value)]
        count = R.emit(scatter(flags[0], flags[1], "add"))
        bad = R.emit(R.op.greater(count, R.const(0, kind)))
        y = R.emit(R.op.where(bad, R.const(np.nan, kind), y))
    return R.op.astype(y, t.dtype.name) if low or t.dtype is dtypes.bool_ else y


def _lower_index_update(R: Builder, *xs: Expr, axes: tuple[int, ...], mode: str) -> Expr:
    types = [R.type(x) for x in xs]
    x, value, indices = xs[0], xs[1], xs[2:]
    batch = rules.broadcast_shapes(*(t.shape for t in types[2:]))
    region = types[0].with_shape(gathered_shape(types[0].shape, batch, axes))
    if (region.is_static and region.size == 0) or (types[0].is_static and types[0].size == 0):
        return x
    to_front, batch_first = _leading(types[0], axes, len(batch))
    sizes = [R.shape(types[0].shape)[a] for a in axes]

    def columns(shape: Expr, *args: Expr) -> Expr:
        indices, sizes = args[: len(axes)], args[len(axes) :]

        def element(*i: Expr) -> Expr:
            parts = [wrapped(R, _at(v, i[:-1]), n) for v, n in zip(indices, sizes)]
            chosen = parts[-1]
            for j in range(len(parts) - 2, -1, -1):
                chosen = R.tir.Select(i[-1] == j, parts[j], chosen)
            return chosen

        return R.te.compute(shape, element, name="columns")

    at = R.emit_te(columns, [*R.shape((*batch, len(axes)))], *indices, *sizes)
    if types[1].shape != region.shape:
        value = R.emit(R.op.broadcast_to(value, R.shape(region.shape)))
    if to_front != sorted(to_front):
        x = R.emit(R.op.permute_dims(x, to_front))
    if batch_first != sorted(batch_first):
        value = R.emit(R.op.permute_dims(value, batch_first))
    y = lower_scatter(R, x, value, mode, lambda x, v, m: R.op.scatter_nd(x, at, v, m))
    if to_front == sorted(to_front):
        return y
    return R.op.permute_dims(R.emit(y), [int(a) for a in np.argsort(to_front)])


def _onnx_index_update(O: OnnxOps, *xs: OnnxNamed, axes: tuple[int, ...], mode: str) -> OnnxNamed:
    x, value, indices = xs[0], xs[1], xs[2:]
    batch = rules.broadcast_shapes(*(i.type.shape for i in indices))
    region = gathered_shape(x.type.shape, batch, axes)
    to_front, batch_first = _leading(x.type, axes, len(batch))
    if value.type.shape != region:
        value = O.Expand(value, O.shape(region))
    dtype, low = x.type.dtype, x.type.dtype in LOW_PRECISION
    if low:
        x, value = (O.Cast(v, to=O.dtype(dtypes.float32)) for v in (x, value))
    y = O.ScatterND(
        _transpose(O, x, to_front), _onnx_columns(O, indices, batch),
        _transpose(O, value, batch_first), reduction=None if mode == "set" else mode,
    )  # fmt: skip
    y = _transpose(O, y, [int(a) for a in np.argsort(to_front)])
    return O.Cast(y, to=O.dtype(dtype)) if low else O.Identity(y)


def vjp_scatter(
    g: Tensor,
    y: Tensor,
    x: Tensor,
    value: Tensor,
    mode: str,
    put: Callable[..., Tensor],
    get: Callable[..., Tensor],
) -> tuple[Tensor, Tensor]:
    """Cotangents of base and values of every kind of scatter.

    Args:
        g: Cotangent of the result ``y``.
        y: The result.
        x: What was updated.
        value: The values, of the shape of the region.
        mode: ``"set"``, ``"add"``, ``"mul"``, ``"max"`` or ``"min"``.
        put: ``(base, values, mode)`` updates the same positions of another tensor.
        get: Reads the same positions of a tensor.
    """
    if mode == "add":
        return g, get(g)
    if mode == "mul":
        return g * put(F.ones_like(x), value, "mul"), get(g * y) / value
    if mode == "set":  # only the value that was written last has a cotangent
        order = F.reshape(F.arange(0, value.size, 1), value.shape)
        last = F.equal(get(put(F.full(x.shape, 0, dtype=dtypes.int64), order, "set")), order)
        return put(g, F.zeros_like(value), "set"), F.where(last, get(g), F.zeros_like(value))
    here, there = F.cast(F.equal(x, y), g.dtype), F.cast(F.equal(value, get(y)), g.dtype)
    share = g / put(here, there, "add")  # ties share the cotangent
    return share * here, get(share) * there


def _vjp_index_update(
    g: Tensor, y: Tensor, *xs: Tensor, axes: tuple[int, ...], mode: str
) -> tuple[Tensor | None, ...]:
    x, value, indices = xs[0], xs[1], xs[2:]

    def put(base: Tensor, values: Tensor, how: str) -> Tensor:
        return F.index_update(base, values, *indices, axes=axes, mode=how)

    def get(t: Tensor) -> Tensor:
        return F.index_get(t, *indices, axes=axes)

    batch = rules.broadcast_shapes(*(i.aval.shape for i in indices))
    full = F.broadcast_to(value, gathered_shape(x.aval.shape, batch, axes))
    dx, dv = vjp_scatter(g, y, x, full, mode, put, get)
    return (dx, sum_to(dv, value), *(None for _ in indices))


@primitive(
    infer=_infer_index_update,
    traits=Traits(Pattern.GATHER, Reason("an index may point to every position")),
    eager=_eager_index_update,
    check_values=check_indices,
    lower=_lower_index_update,
    vjp=_vjp_index_update,
    onnx=_onnx_index_update,
    samples=[
        sample((3, 4), (3, 4), _I3, axes=(0,), mode="set"),
        sample((3, 4), (2, 4), np.array([1, 1]), axes=(0,), mode="add"),
        sample((3, 4), (3, 2), np.array([1, -1], np.int32), axes=(1,), mode="mul", low=0.5),
        sample((3, 4), (3,), np.array([0, 0, 2]), np.array([1, 1, 3]), axes=(0, 1), mode="max"),
        sample((2, 3, 4), (2, 1), _I3, _I21, axes=(1, 2), mode="min"),
        sample((3, 4, 2), (2, 3, 4), _I3, _I21, axes=(0, 2), mode="add"),
        sample((3, 4), (), np.array(2), axes=(0,), mode="set"),
        sample((3, 2), (), np.zeros(0, np.int64), axes=(0,), mode="add", grad=False),
        sample((3, 0), (), np.array([1]), axes=(0,), mode="add", grad=False),
        sample((3, 4), (3, 1), _I3, axes=(0,), mode="set", dtype="bool"),
        sample((4,), (3,), np.array([1, 1, 1]), axes=(0,), mode="add", dtype="float16", grad=False),
        sample((4,), np.array([1, np.nan, 3], np.float32), _I3, axes=(0,), mode="max", grad=False),
        sample((4,), (3,), _I3, axes=(0,), mode="mul", dtype="int32", low=-9, high=9),
        sample((3, 4), (4,), np.array([3]), axes=(0,), mode="add", raises=OutOfRangeError),
        sample((3, 4), (3,), np.array([0]), axes=(0,), mode="add", raises=ShapeError),
        sample((3, 4), (), np.array([0]), axes=(0,), mode="pow", raises=ArgumentError),
    ],
)
def index_update(*xs: Tensor, axes: tuple[int, ...], mode: str) -> Tensor:
    r"""Sets, or combines values with, the elements that integer tensors address.

    Args:
        xs: The tensor, the values (of its dtype, broadcast to the region), then one integer
            tensor per entry of ``axes``; these broadcast. Negative entries count from the end.
        axes: Sorted non-negative axes.
        mode: ``"set"`` (the last of repeated positions wins), ``"add"``, ``"mul"``, ``"max"`` or
            ``"min"``.

    Returns:
        Tensor of the first tensor's type.

    Raises:
        OutOfRangeError: if an index lies outside its axis (outside compiled code).
        ShapeError: if the values do not broadcast to the region.
    """
    ...
