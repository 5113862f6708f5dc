"""Reading and updating regions given by integers, slices and new axes.

An index is a tuple with one entry per axis of the result or the input: an ``int`` takes one
position and drops the axis, ``None`` adds an axis, and ``(begin, end, step)`` takes a range, where
``begin`` is not negative and ``end`` is ``None`` for "to the end in the direction of ``step``".
Axes that the index does not mention are taken whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tvmgraph.core import rules
from tvmgraph.core.arguments import Attrs
from tvmgraph.core.columns import Builder, Expr, OnnxNamed, OnnxOps
from tvmgraph.core.op import F, sample
from tvmgraph.core.primitive import primitive
from tvmgraph.core.sizes import same_form
from tvmgraph.core.storage import aligned_copy
from tvmgraph.core.symbols import needed, roots_of, scope
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.traits import Pattern, Traits, equation, letters
from tvmgraph.core.types import Dim, Shape, TensorType
from tvmgraph.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError, either
from tvmgraph.ops.common.rows import lower_full, sum_to

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__: list[str] = []

WHOLE = (0, None, 1)  # the entry that takes a whole axis
#: Begin, end and step of the positions taken from an axis.
Range: TypeAlias = tuple[int | Dim, int | Dim | None, int | Dim]
#: First position, number and distance of those.
Span: TypeAlias = tuple[int | Dim, int | Dim, int | Dim]
Entry: TypeAlias = int | Dim | Range | None
Index: TypeAlias = tuple[Entry, ...]


def range_of(entry: Range, size: int) -> range:
    """Returns the positions that a range entry takes from an axis.

    Args:
        entry: Begin, end and step, as a slice has them.
        size: Size of the axis.
    """
    return range(*slice(*entry).indices(size))


def is_position(entry: object) -> TypeIs[int | Dim]:
    """Whether an entry takes one position and drops the axis.

    Args:
        entry: An entry of an index.
    """
    return isinstance(entry, (int, Dim))


def is_whole(entry: object) -> bool:
    """Whether an entry takes an axis as it is; it is not asked whether a size happens to be 0.

    Args:
        entry: The entry.
    """
    return isinstance(entry, tuple) and entry[0].__class__ is int and entry == WHOLE


def span_of(entry: Range, size: int | Dim) -> Span:
    """Returns first position, number and distance of the positions that a range entry takes.

    Args:
        entry: Begin, end and step; begin and end are no longer negative where sizes are symbolic.
        size: Size of the axis.

    Raises:
        Specialise: while a function is captured, if symbolic bounds lie outside the axis.
    """
    begin, end, step = entry
    if step == 0:
        raise ArgumentError("a slice step cannot be zero")
    if all(isinstance(v, int) or v is None for v in (begin, end, size)):
        taken = range_of(entry, size)  # pyright: ignore[reportArgumentType]
        return taken.start, len(taken), step
    if step > 0:
        stop = size if end is None else end
        length, ordered = stop - begin, (begin, stop, size)
    else:
        stop = -1 if end is None else end
        length, ordered = begin - stop, (stop, begin, size - 1)
    if scope() is not None and not ordered[0] <= ordered[1] <= ordered[2]:
        raise needed(roots_of(begin, stop, size))
    return begin, -(-length // abs(step)), step


def _dim_taken(entry: int | Dim | Range, size: int | Dim, axis: int) -> int | Dim | None:
    """Returns the size of the axis a non-``None`` entry leaves, or ``None`` when it drops it."""
    if is_position(entry):
        known = scope() is not None or (isinstance(entry, int) and isinstance(size, int))
        if known and not 0 <= entry < size:
            raise OutOfRangeError(f"index {entry} is out of range for axis {axis} of size {size}")
        return None
    return size if is_whole(entry) else span_of(entry, size)[1]


def selected_shape(shape: Shape, index: Index) -> Shape:
    """Returns the shape that ``index`` takes from ``shape``.

    Args:
        shape: Shape of the tensor.
        index: An entry per axis: a position, a range, or ``None`` for a new axis.

    Raises:
        OutOfRangeError: if there are more entries than axes, or an integer is out of range.
    """
    used = len(index) - index.count(None)
    if used > len(shape):
        raise (OutOfRangeError if shape else either(OutOfRangeError, TypeError))(
            f"{used} indices were given, but the tensor has {len(shape)} axes",
            fix="remove an index",
        )
    out: list[int | Dim] = []
    axis = 0
    for entry in index:
        if entry is None:
            out.append(1)
            continue
        dim = _dim_taken(entry, shape[axis], axis)
        axis += 1
        if dim is not None:
            out.append(dim)
    return (*out, *shape[axis:])


@lru_cache(maxsize=4096)
def _numpy_key(index: Index) -> tuple[slice | int | Dim | None, ...]:
    return tuple(slice(*e) if isinstance(e, tuple) else e for e in index)


def _entries_by_axis(index: Index) -> list[int | Dim | Range]:
    return [e for e in index if e is not None]


def _slice_arguments(index: Index, shape: Shape) -> tuple[list[int], ...]:
    """Returns axes, begins, ends and steps in the form shared by Relax and ONNX."""
    axes, begins, ends, steps = [], [], [], []
    for axis, e in enumerate(_entries_by_axis(index)):
        if e == WHOLE:
            continue
        begin, end, step = (e, e + 1, 1) if is_position(e) else e
        if end is None:  # an end before the first element, or after the last one
            size = shape[axis]
            end = -(size + 1) if step < 0 else size
        axes.append(axis)
        begins.append(begin)
        ends.append(end)
        steps.append(step)
    return axes, begins, ends, steps


def _dropped_axes(index: Index) -> list[int]:
    return [a for a, e in enumerate(_entries_by_axis(index)) if is_position(e)]


def _new_axes(index: Index) -> list[int]:
    kept = [e for e in index if not is_position(e)]
    return [i for i, e in enumerate(kept) if e is None]


def _lower_basic_index(R: Builder, x: Expr, *, index: Index) -> Expr:
    t = R.type(x)
    result = t.with_shape(selected_shape(t.shape, index))
    if result.is_static and result.size == 0:
        return lower_full(R, x, result)
    if not t.is_static or not result.is_static:
        return _lower_symbolic_index(R, x, index)
    axes, begins, ends, steps = _slice_arguments(index, t.shape)
    if axes:
        x = R.emit(R.op.strided_slice(x, axes, begins, ends, steps))
    if dropped := _dropped_axes(index):
        x = R.emit(R.op.squeeze(x, dropped))
    if added := _new_axes(index):
        x = R.op.expand_dims(x, added)
    return x


def _lower_symbolic_index(R: Builder, x: Expr, index: Index) -> Expr:
    """A kernel of its own: the shape is then the very expression that inference found."""
    shape = R.type(x).shape
    result = [R.extent(d) for d in selected_shape(shape, index)]
    entries = _entries_by_axis(index)
    firsts = [R.extent(_first(e, d)) for e, d in zip(entries, shape)]

    def take(x: Expr, result: list[Expr], firsts: Expr) -> Expr:
        def element(*at: Expr) -> Expr:
            rest, position = iter(at), []
            for entry in index:
                if entry is None:
                    next(rest)
                    continue
                first = firsts[len(position)]
                position.append(first if is_position(entry) else first + next(rest) * entry[2])
            position += rest
            return x[tuple(position)] if position else x()

        return R.te.compute([*map(R.int64, result)], element, name="basic_index")

    return R.emit_te(take, x, result, firsts)


def _first(entry: int | Dim | Range, size: int | Dim) -> int | Dim:
    return entry if is_position(entry) else span_of(entry, size)[0]


def _onnx_basic_index(O: OnnxOps, x: OnnxNamed, *, index: Index) -> OnnxNamed:
    axes, begins, ends, steps = _slice_arguments(index, x.type.shape)
    if axes:
        x = O.Slice(x, *(O.shape(v) for v in (begins, ends, axes, steps)))
    if dropped := _dropped_axes(index):
        x = O.Squeeze(x, np.array(dropped, np.int64))
    if added := _new_axes(index):
        x = O.Unsqueeze(x, np.array(added, np.int64))
    return O.Identity(x)


def _words(ndim: int, index: Index) -> tuple[list[str], list[str]]:
    """The factors of a tensor and of the region that an index takes: axes that it takes whole."""
    names = letters(ndim)
    region: list[str] = []
    axis = 0
    for entry in index:
        if entry is None:
            region.append(".")
            continue
        if entry != WHOLE:
            names[axis] = "."
        if not is_position(entry):
            region.append(names[axis])
        axis += 1
    return names, [*region, *names[axis:]]


def _index_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Axes that are taken whole."""
    names, region = _words(types[0].ndim, attrs["index"])
    return equation([names], [region])


@primitive(
    infer=lambda x, *, index: x.with_shape(selected_shape(x.shape, index)),
    traits=Traits(Pattern.GATHER, _index_factors),
    eager=lambda x, *, index: x[_numpy_key(index)],
    lower=_lower_basic_index,
    vjp=lambda g, y, x, *, index: (F.basic_update(F.zeros_like(x), g, index=index),),
    onnx=_onnx_basic_index,
    samples=[
        sample((3, 4), index=(1,)),
        sample((5, 4), index=((1, 4, 2), (3, None, -1))),
        sample((5, 3, 4), index=(None, (4, 0, -2), None, 2)),
        sample((5, 3), index=(WHOLE, (0, 2, 1))),
        sample((), index=(None, None)),
        sample((3,), index=(2,)),
        sample((7,), index=((5, 2, 1),), grad=False),
        sample((0, 3), index=(WHOLE, 1), grad=False),
        sample((4, 3), dtype="bool", index=((3, 1, -1), 0)),
        sample((4, 3), dtype="int64", low=-9, high=9, index=((0, 3, 3),)),
        sample((3, 4), index=(3,), raises=OutOfRangeError),
        sample((3,), index=(0, 0), raises=OutOfRangeError),
        sample((3,), index=((0, 2, 0),), raises=ArgumentError),
    ],
)
def basic_index(x: Tensor, index: Index) -> Tensor:
    r"""Takes the region that integers, ranges and new axes describe.

    Args:
        x: Tensor of any shape and dtype.
        index: Normalised entries, see the module's documentation.

    Returns:
        Tensor with one axis per range and new axis, then the axes that were not mentioned.

    Raises:
        OutOfRangeError: if an integer lies outside its axis or there are too many entries.
    """
    ...


def _infer_basic_update(x: TensorType, value: TensorType, *, index: Index) -> TensorType:
    shape = selected_shape(x.shape, index)
    if value.dtype is not x.dtype:
        raise DTypeError(f"a {value.dtype.name} value cannot be stored in {x.dtype.name}")
    if rules.broadcast_shapes(value.shape, shape) != shape:
        raise ShapeError(
            f"a value of shape {list(value.shape)} does not broadcast to the region {list(shape)}"
        )
    return x


def _eager_basic_update(x: np.ndarray, value: np.ndarray, *, index: Index) -> np.ndarray:
    out = aligned_copy(x)
    out[_numpy_key(index)] = value
    return out


def _value_position(
    index: Index, coordinates: Sequence[Expr], spans: Sequence[Sequence[Expr]], R: Builder
) -> tuple[list[object], list[object]]:
    """Returns when an element of ``x`` lies in the region, and its position there.

    Args:
        index: The index.
        coordinates: Where the element is.
        spans: First position and number of the positions that every entry takes.
        R: The builder.
    """
    conditions: list[object] = []
    position: list[object] = []
    axis = 0
    for entry in index:
        if entry is None:
            position.append(0)
            continue
        i = coordinates[axis]
        axis += 1
        first, count = spans[axis - 1]
        if is_position(entry):
            conditions.append(i == first)
        elif entry == WHOLE:
            position.append(i)
        else:
            offset = i - first if entry[2] > 0 else first - i
            step = abs(entry[2])
            inside = [offset >= 0, offset < count * step]
            conditions += inside if step == 1 else [*inside, R.tir.floormod(offset, step) == 0]
            position.append(offset if step == 1 else R.tir.floordiv(offset, step))
    return conditions, position + list(coordinates[axis:])


def _lower_basic_update(R: Builder, x: Expr, value: Expr, *, index: Index) -> Expr:
    t, v = R.type(x), R.type(value)
    region = t.with_shape(selected_shape(t.shape, index))
    if (region.is_static and region.size == 0) or (v.is_static and v.size == 0):
        return x

    entries = zip(_entries_by_axis(index), t.shape)
    spans = [(e, 1) if is_position(e) else span_of(e, d)[:2] for e, d in entries]
    spans = [tuple(map(R.extent, span)) for span in spans]

    def update(x: Expr, value: Expr, spans: Sequence[Sequence[Expr]]) -> Expr:
        def element(*i: Expr) -> Expr:
            conditions, position = _value_position(index, i, spans, R)
            position = position[len(position) - v.ndim :]
            at = [0 if d == 1 else p for d, p in zip(v.shape, position)]
            new = value[tuple(at)] if at else value()
            if not conditions:
                return new
            return R.tir.if_then_else(R.tir.all(*conditions), new, x[i] if i else x())

        return R.te.compute(x.shape, element, name="basic_update")

    return R.emit_te(update, x, value, spans)


def _onnx_write(
    O: OnnxOps, x: OnnxNamed, value: OnnxNamed, ranges: list[tuple[int, range | Span, int | Dim]]
) -> OnnxNamed:
    """Writes ``value`` (rank of ``x``) into the ranges, one axis after the other."""
    if not ranges:
        return value
    axis, taken, size = ranges[0]
    positions = np.array(taken, np.int64) if isinstance(taken, range) else _onnx_range(O, taken)
    if len(ranges) > 1:
        value = _onnx_write(O, O.Gather(x, positions, axis=axis), value, ranges[1:])
    if isinstance(taken, range) and isinstance(size, int):
        order = np.arange(size)
        order[np.array(taken, np.int64)] = size + np.arange(len(taken))
    else:
        order = _onnx_range(O, (0, size, 1))
        begin, count, step = (
            (taken.start, len(taken), taken.step) if isinstance(taken, range) else taken
        )
        steps = O.Sub(order, O.size(begin))
        if step < 0:
            steps = O.Neg(steps)
        at = O.Div(steps, np.asarray(abs(step), np.int64))
        inside = O.And(O.GreaterOrEqual(steps, np.asarray(0, np.int64)), O.Less(at, O.size(count)))
        exact = O.Equal(O.Mul(at, np.asarray(abs(step), np.int64)), steps)
        order = O.Where(O.And(inside, exact), O.Add(at, O.size(size)), order)
    return O.Gather(O.Concat(x, value, axis=axis), order, axis=axis)


def _onnx_range(O: OnnxOps, taken: Span) -> OnnxNamed:
    """The positions of a range: where it begins, how many there are, and its step."""
    begin, count, step = taken
    return O.Add(O.Mul(O.positions(count), np.asarray(step, np.int64)), O.size(begin))


def _taken(entry: int | Dim | Range, size: int | Dim) -> range | Span:
    """Returns the range of positions of an entry, or begin, count and step of a symbolic one."""
    if is_position(entry):
        return range(entry, entry + 1) if isinstance(entry, int) else (entry, 1, 1)
    if isinstance(size, Dim) or any(isinstance(p, Dim) for p in entry):
        return span_of(entry, size)
    return range_of(entry, size)


def _onnx_basic_update(O: OnnxOps, x: OnnxNamed, value: OnnxNamed, *, index: Index) -> OnnxNamed:
    shape = x.type.shape
    region = x.type.with_shape(selected_shape(shape, index))
    if region.is_static and region.size == 0:
        return O.Identity(x)
    ranges = []
    for axis, e in enumerate(_entries_by_axis(index)):
        if e != WHOLE:
            ranges.append((axis, _taken(e, shape[axis]), shape[axis]))
    full = list(shape)
    for axis, taken, _ in ranges:
        full[axis] = len(taken) if isinstance(taken, range) else taken[1]
    if not same_form(value.type.shape, region.shape):
        value = O.Expand(value, O.shape(region.shape))
    if not same_form(full, region.shape):
        value = O.Reshape(value, O.shape(full), allowzero=1)
    return O.Identity(_onnx_write(O, x, value, ranges))


def _update_factors(types: Sequence[TensorType], attrs: Attrs) -> str:
    """Axes that are written whole."""
    names, region = _words(types[0].ndim, attrs["index"])
    return equation([names, region[len(region) - types[1].ndim :]], [names])


@primitive(
    infer=_infer_basic_update,
    traits=Traits(Pattern.GATHER, _update_factors),
    eager=_eager_basic_update,
    lower=_lower_basic_update,
    vjp=lambda g, y, x, value, *, index: (
        F.basic_update(g, F.full((), 0, dtype=g.dtype), index=index),
        sum_to(F.basic_index(g, index=index), value),
    ),
    onnx=_onnx_basic_update,
    samples=[
        sample((3, 4), (4,), index=(1,)),
        sample((3, 4), (), index=()),
        sample((5, 4), (2, 1), index=((1, 4, 2), (3, None, -1))),
        sample((5, 3, 4), (1, 2, 1, 4), index=(None, (4, 0, -2), None, 2)),
        sample((5, 3), (5, 2), index=(WHOLE, (0, 2, 1))),
        sample((), (), index=()),
        sample((3,), (), index=(2,)),
        sample((7,), (1,), index=((5, 2, 1),), grad=False),
        sample((0, 3), (), index=(WHOLE, 1), grad=False),
        sample((4, 3), (2,), dtype="bool", index=((3, 1, -1), 0)),
        sample((9,), (3,), dtype="int64", low=-9, high=9, index=((1, None, 3),)),
        sample((5,), (2,), dtype="float16", index=((0, 2, 1),), grad=False),
        sample((3, 4), (3,), index=(1,), raises=ShapeError),
        sample((3,), (), index=(3,), raises=OutOfRangeError),
        sample((3,), (), dtype=("float32", "float64"), index=(0,), raises=DTypeError),
    ],
)
def basic_update(x: Tensor, value: Tensor, index: Index) -> Tensor:
    r"""Returns ``x`` with ``value`` in the region that ``index`` describes.

    Args:
        x: Tensor of any shape and dtype.
        value: Tensor of ``x``'s dtype whose shape broadcasts to the region.
        index: Normalised entries, see the module's documentation.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        ShapeError: if ``value`` does not broadcast to the region.
        OutOfRangeError: if an integer lies outside its axis.
    """
    ...
