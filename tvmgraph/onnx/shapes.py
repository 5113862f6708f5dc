"""ONNX operators that move, join, cut and pick elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core.arguments import AxisLike
from tvmgraph.core.onnx_library import numpy_helper
from tvmgraph.core.op import F
from tvmgraph.core.rules import broadcast_shapes
from tvmgraph.core.tensor import Tensor
from tvmgraph.onnx.shape_values import NO_END, Sizes, has_sizes, values_of_sizes
from tvmgraph.onnx.table import CONVERTERS, NodeCall, constant_of, converter, known, to_tensor

# one formula each
CONVERTERS |= {
    "Concat": lambda n, *xs: xs[0] if len(xs) == 1 else F.concat(xs, n.get("axis", 1)),
    "Gather": lambda n, x, index: F.gather(x, index, n.get("axis") % x.ndim),
    "NonZero": lambda n, x: np.stack(np.nonzero(n.known(0))).astype(np.int64),
    "Optional": lambda n, x=None: x,
    "OptionalGetElement": lambda n, x: x,
    "OptionalHasElement": lambda n, x=None: np.asarray(n.has(0)),
    "SequenceAt": lambda n, xs, i: xs[n.number(1)],
    "SequenceConstruct": lambda n, *xs: list(xs),  # a list is a sequence, a tuple several outputs
    "SequenceEmpty": lambda n: [],
    "SequenceLength": lambda n, xs: np.asarray(len(xs), np.int64),
    "Size": lambda n, x: values_of_sizes(math.prod(x.shape)),
    "Transpose": lambda n, x: F.transpose(x, n.get("perm") or tuple(reversed(range(x.ndim)))),
}


@converter("Constant")
def _constant(n: NodeCall) -> object:
    if "value" in n.attrs:
        return constant_of(n.attrs["value"])
    for name, kind in (("value_float", np.float32), ("value_int", np.int64)):
        for key in (name, name + "s"):
            if key in n.attrs:
                return np.asarray(n.attrs[key], kind)
    raise n.fail("constants of this kind are not supported")


@converter("ConstantOfShape")
def _constant_of_shape(n: NodeCall, shape: Tensor) -> np.ndarray | Tensor:
    value = n.attrs.get("value")
    fill = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    sizes = n.ints(0)
    n.require_memory(sizes)
    if has_sizes(sizes):
        return F.broadcast_to(to_tensor(fill.reshape(())), sizes)
    return np.full(sizes, fill.reshape(-1)[0], fill.dtype)


@converter("Shape")
def _shape(n: NodeCall, x: Tensor) -> np.ndarray | Sizes:
    return values_of_sizes(x.shape[slice(n.get("start", 0), n.get("end"))])


@converter("Reshape")
def _reshape(n: NodeCall, x: Tensor, shape: object = None) -> Tensor:
    wanted = list(n.get("shape") if n.opset < 5 else n.ints(1))
    if not n.get("allowzero", 0):
        wanted = [x.shape[i] if d == 0 else d for i, d in enumerate(wanted)]
    if -1 in wanted:  # zero elements leave the size open otherwise
        rest = math.prod(d for d in wanted if d != -1)
        wanted[wanted.index(-1)] = 0 if rest == 0 else math.prod(x.shape) // rest
    return F.reshape(x, tuple(wanted))


@converter("Flatten")
def _flatten(n: NodeCall, x: Tensor) -> Tensor:
    axis = n.get("axis") + (x.ndim if n.get("axis") < 0 else 0)
    return F.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@converter("Squeeze")
def _squeeze(n: NodeCall, x: Tensor, axes: AxisLike | None = None) -> Tensor:
    chosen = n.get("axes") if n.opset < 13 else n.ints(1)
    if chosen is None:
        chosen = [i for i, d in enumerate(x.shape) if d == 1]
    gone = {a % x.ndim for a in chosen}
    return F.reshape(x, tuple(d for i, d in enumerate(x.shape) if i not in gone))


@converter("Unsqueeze")
def _unsqueeze(n: NodeCall, x: Tensor, axes: AxisLike | None = None) -> Tensor:
    chosen = n.get("axes") if n.opset < 13 else n.ints(1)
    rank = x.ndim + len(chosen)
    new = {a % rank for a in chosen}
    old = iter(x.shape)
    return F.reshape(x, tuple(1 if i in new else next(old) for i in range(rank)))


@converter("Expand")
def _expand(n: NodeCall, x: Tensor, shape: object) -> Tensor:
    wide = broadcast_shapes(x.shape, n.ints(1))
    n.require_memory(wide)
    return F.broadcast_to(x, wide)


@converter("Tile")
def _tile(n: NodeCall, x: Tensor, repeats: object) -> Tensor:
    counts = n.ints(1)
    n.require_memory((*x.shape, *counts))
    if not has_sizes(counts):
        return F.tile(x, counts)
    each = [size for pair in zip(counts, x.shape) for size in pair]
    apart = F.reshape(x, tuple(1 if i % 2 == 0 else d for i, d in enumerate(each)))
    whole = tuple(count * d for count, d in zip(counts, x.shape))
    return F.reshape(F.broadcast_to(apart, tuple(each)), whole)


@converter("Split")
def _split(n: NodeCall, x: Tensor, sizes: object = None) -> tuple[Tensor, ...]:
    axis = n.get("axis", 0) % x.ndim
    parts = n.ints(1) if n.opset >= 13 else n.get("split")
    if parts is None:
        count = n.get("num_outputs") or n.count
        step = -(-x.shape[axis] // count)
        parts = [min(step, x.shape[axis] - step * i) for i in range(count)]
    return tuple(_cut(x, axis, parts))


def _cut(x: Tensor, axis: int, parts: Sequence[int]) -> list[Tensor]:
    ends = itertools.accumulate(parts)
    return [x[(slice(None),) * axis + (slice(e - p, e),)] for p, e in zip(parts, ends)]


@converter("Slice")
def _slice(n: NodeCall, x: Tensor, *_: object) -> Tensor:
    if n.opset < 10:
        starts, ends, axes, steps = n.get("starts"), n.get("ends"), n.get("axes"), None
    else:
        starts, ends, axes, steps = n.ints(1), n.ints(2), n.ints(3), n.ints(4)
    axes = range(len(starts)) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, steps):
        x = _slice_axis(x, axis % x.ndim, start, end, step)
    return x


def _slice_axis(x: Tensor, axis: int, start: int, end: int, step: int) -> Tensor:
    size = x.shape[axis]
    low, high = (0, size) if step > 0 else (0, size - 1)
    start = min(max(start + size if start < 0 else start, low), high)
    if step > 0 and end >= NO_END:
        return x[(slice(None),) * axis + (slice(start, None, step),)]
    if step > 0:
        end = min(max(end + size if end < 0 else end, 0), size)
        return x[(slice(None),) * axis + (slice(start, max(end, start), step),)]
    end = min(max(end + size if end < 0 else end, -1), size - 1)
    places = np.arange(start, end, step, dtype=np.int64)
    return F.gather(x, to_tensor(places), axis)


@converter("GatherElements")
def _gather_elements(n: NodeCall, x: Tensor, index: Tensor) -> Tensor:
    axis = n.get("axis") % x.ndim
    cut = tuple(slice(0, d) if i != axis else slice(None) for i, d in enumerate(index.shape))
    return F.gather_elements(x[cut], axis, index)


@converter("GatherND")
def _gather_nd(n: NodeCall, x: Tensor, index: Tensor) -> Tensor:
    batch = n.get("batch_dims", 0)
    if not batch:
        return F.gather_nd(x, index)
    shape = index.shape[:batch]
    grids = np.indices(shape).reshape(batch, *shape, *(1,) * (index.ndim - batch))
    wide = [np.broadcast_to(g, (*index.shape[:-1], 1)).astype(np.int64) for g in grids]
    return F.gather_nd(x, F.concat([*map(to_tensor, wide), F.cast(index, dtypes.int64)], -1))


_ND = {"none": "tensor_scatter_update", "add": "tensor_scatter_add", "mul": "tensor_scatter_mul",
       "max": "tensor_scatter_max", "min": "tensor_scatter_min"}  # fmt: skip


@converter("ScatterND")
def _scatter_nd(n: NodeCall, x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    sizes = to_tensor(np.asarray(x.shape[: index.shape[-1]], np.int64))
    index = F.where(index < 0, index + sizes, index)
    return getattr(F, _ND[n.get("reduction", "none")])(x, index, updates)


@converter("ScatterElements", "Scatter")
def _scatter_elements(n: NodeCall, x: Tensor, index: Tensor, updates: Tensor) -> Tensor:
    mode = {"none": "set"}.get(how := n.get("reduction", "none"), how)
    return F.scatter_along(x, index, updates, axis=n.get("axis", 0) % x.ndim, mode=mode)


@converter("TensorScatter")
def _tensor_scatter(n: NodeCall, past: Tensor, update: Tensor, start: object = None) -> Tensor:
    axis = n.get("axis", -2) % past.ndim
    size = update.shape[axis]
    first = F.zeros((past.shape[0],), dtypes.int64) if start is None else start
    place = F.reshape(first, (-1, 1)) + F.arange(size)
    if n.get("mode", "linear") == "circular":
        place = F.floor_mod(place, past.shape[axis])
    shape = [1] * past.ndim
    shape[0], shape[axis] = past.shape[0], size
    index = F.broadcast_to(F.reshape(place, tuple(shape)), update.shape)
    return F.scatter_along(past, index, update, axis=axis, mode="set")


@converter("Pad")
def _pad(
    n: NodeCall, x: Tensor, pads: object = None, value: object = None, axes: AxisLike | None = None
) -> Tensor:
    flat = n.ints(1) if n.opset >= 11 else n.get("pads") or n.get("paddings")
    chosen = [a % x.ndim for a in n.ints(3, range(x.ndim))]
    pairs = [(0, 0)] * x.ndim
    for i, axis in enumerate(chosen):
        pairs[axis] = (flat[i], flat[i + len(chosen)])
    for axis, (before, after) in enumerate(pairs):  # negative pads cut
        cut = slice(max(0, -before), x.shape[axis] - max(0, -after))
        x = x[(slice(None),) * axis + (cut,)]
    pairs = [(max(0, b), max(0, a)) for b, a in pairs]
    n.require_memory(tuple(d + b + a for d, (b, a) in zip(x.shape, pairs)))
    mode = n.get("mode")
    if mode == "constant":
        return _filled(n, x, tuple(pairs), value)
    names = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}
    return F.pad_index(x, tuple(pairs), names[mode])


def _filled(n: NodeCall, x: Tensor, pairs: tuple[tuple[int, int], ...], value: object) -> Tensor:
    """Pads with a number, which may be computed by the model."""
    if n.opset < 11:
        return F.pad_constant(x, pairs, n.get("value", 0.0))
    if value is None or known(n.values[2]) is not None:
        return F.pad_constant(x, pairs, n.number(2, 0))
    inside = F.pad_constant(F.ones(x.shape, dtypes.bool_), pairs, False)
    return F.where(inside, F.pad_constant(x, pairs, 0), F.reshape(value, ()))


@converter("CenterCropPad")
def _center_crop_pad(n: NodeCall, x: Tensor, shape: object) -> Tensor:
    for axis, size in zip(n.get("axes") or range(x.ndim), n.ints(1)):
        axis %= x.ndim
        have = x.shape[axis]
        if have >= size:
            start = (have - size) // 2
            x = x[(slice(None),) * axis + (slice(start, start + size),)]
        else:
            before = (size - have) // 2
            pairs = [(0, 0)] * x.ndim
            pairs[axis] = (before, size - have - before)
            x = F.pad_constant(x, tuple(pairs), 0)
    return x


@converter("DepthToSpace")
def _depth_to_space(n: NodeCall, x: Tensor) -> Tensor:
    b, (m, c, h, w) = n.get("blocksize"), x.shape
    if n.get("mode", "DCR") == "DCR":
        x = F.transpose(F.reshape(x, (m, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = F.transpose(F.reshape(x, (m, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return F.reshape(x, (m, c // b**2, h * b, w * b))


@converter("SpaceToDepth")
def _space_to_depth(n: NodeCall, x: Tensor) -> Tensor:
    b, (m, c, h, w) = n.get("blocksize"), x.shape
    parts = F.reshape(x, (m, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if n.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return F.reshape(F.transpose(parts, order), (m, c * b**2, h // b, w // b))


@converter("OneHot")
def _one_hot(n: NodeCall, index: Tensor, depth: object, values: Tensor) -> Tensor:
    size = int(n.number(1))
    n.require_memory((*index.shape, size))
    axis = n.get("axis") % (index.ndim + 1)
    index = F.cast(index, dtypes.int64)
    index = F.where(index < 0, index + size, index)
    return F.where(is_chosen(index, size, axis), values[1], values[0])


def is_chosen(index: Tensor, size: int, axis: int) -> Tensor:
    """Whether each place along a new axis is the one that an index names.

    Args:
        index: The places.
        size: How many there are.
        axis: Where the new axis goes.
    """
    shape = [1] * (index.ndim + 1)
    shape[axis] = size
    return F.expand_dims(index, axis) == F.reshape(F.arange(size), tuple(shape))


@converter("Trilu")
def _trilu(n: NodeCall, x: Tensor, k: object = None) -> Tensor:
    rows, cols = (F.arange(size) for size in x.shape[-2:])
    distance = cols - F.expand_dims(rows, 1) - n.number(1, 0)
    kept = distance >= 0 if n.get("upper") else distance <= 0
    return F.where(kept, x, F.zeros_like(x))


@converter("EyeLike")
def _eye_like(n: NodeCall, x: Tensor) -> np.ndarray:
    kind = n.dtype("dtype", x.dtype)
    return np.eye(*x.shape, k=n.get("k", 0), dtype=kind.numpy)


@converter("Range")
def _range(n: NodeCall, start: object, limit: object, delta: object) -> object:
    first, last, step = (n.number(i) for i in range(3))
    kinds = [v.dtype for v in n.values if isinstance(v, Sizes)]
    if kinds:
        return F.cast(F.arange(first, last, step), kinds[0])
    kind = n.known(0).dtype
    count = max(int(np.ceil((last - first) / step)), 0)
    n.require_memory((count,))
    return (first + step * np.arange(count)).astype(kind)


@converter("Compress")
def _compress(n: NodeCall, x: Tensor, condition: object) -> Tensor:
    axis = n.get("axis")
    x = F.reshape(x, (-1,)) if axis is None else x
    places = np.flatnonzero(n.known(1)).astype(np.int64)
    return F.gather(x, to_tensor(places), 0 if axis is None else axis % x.ndim)


@converter("Unique")
def _unique(n: NodeCall, x: Tensor) -> object:
    axis = n.get("axis")
    values, first, inverse, counts = np.unique(n.known(0), True, True, True, axis=axis)
    order = np.arange(len(first)) if n.get("sorted", 1) else np.argsort(first)
    rank = np.argsort(order)
    taken = np.take(values, order, 0 if axis is None else axis)
    results = (taken, first[order], rank[inverse.reshape(-1)], counts[order])
    return tuple(r if not i else r.astype(np.int64) for i, r in enumerate(results))


@converter("ReverseSequence")
def _reverse_sequence(n: NodeCall, x: Tensor, lengths: Tensor) -> Tensor:
    time, batch = n.get("time_axis"), n.get("batch_axis")
    place = F.reshape(F.arange(x.shape[time]), (-1, 1))
    length = F.reshape(lengths, (1, -1))
    source = F.where(place < length, length - 1 - place, place)
    source = source if time < batch else F.transpose(source, (1, 0))
    shape = [x.shape[i] if i in (time, batch) else 1 for i in range(x.ndim)]
    return F.gather_elements(x, time, F.broadcast_to(F.reshape(source, tuple(shape)), x.shape))


@converter("SequenceInsert")
def _sequence_insert(
    n: NodeCall, xs: Sequence[object], x: Tensor, place: object = None
) -> list[object]:
    at = n.number(2, len(xs))
    at += len(xs) if at < 0 else 0
    return [*xs[:at], x, *xs[at:]]


@converter("SequenceErase")
def _sequence_erase(n: NodeCall, xs: Sequence[object], place: object = None) -> list[object]:
    at = n.number(1, -1) % len(xs)
    return [*xs[:at], *xs[at + 1 :]]


@converter("SplitToSequence")
def _split_to_sequence(n: NodeCall, x: Tensor, split: object = None) -> list[Tensor]:
    axis = n.get("axis") % x.ndim
    size = x.shape[axis]
    if not n.has(1):
        parts = _cut(x, axis, [1] * size)
        keep = n.get("keepdims", 1)
        return parts if keep else [F.squeeze(p, axis) for p in parts]
    given = n.known(1)
    if given.ndim:
        return _cut(x, axis, given.tolist())
    step = int(given)
    return _cut(x, axis, [min(step, size - i) for i in range(0, size, step)])


@converter("ConcatFromSequence")
def _concat_from_sequence(n: NodeCall, xs: Any) -> Tensor:
    xs = [to_tensor(x) for x in xs]
    return (F.stack if n.get("new_axis") else F.concat)(xs, n.get("axis"))
