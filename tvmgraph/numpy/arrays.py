"""Joining, choosing, padding, sets and histograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvmgraph import ops
from tvmgraph.core.guard import guard_module as _guard_module
from tvmgraph.core.guard import public_names as _public_names
from tvmgraph.core.tensor import Tensor
from tvmgraph.dtypes import DType, float32, int32
from tvmgraph.errors import ArgumentError, DTypeError, ShapeError, user_source
from tvmgraph.numpy import helpers
from tvmgraph.numpy.creation import linspace
from tvmgraph.numpy.helpers import array_of, arrays_of, as_dtype, axis_of


def _promoted(arrays: list[Tensor]) -> list[Tensor]:
    dtype = result_type(*arrays)
    return [as_dtype(a, dtype) for a in arrays]


def result_type(*arrays_and_dtypes: object) -> DType:
    """Returns the dtype to which arrays and dtypes promote.

    Args:
        *arrays_and_dtypes: Arrays, numbers and dtypes.
    """
    kinds = [a if isinstance(a, Tensor) else ops.zeros((1,), dtype=_dtype_of_code(a))
             for a in arrays_and_dtypes]  # fmt: skip
    found = ops.zeros((1,), dtype=kinds[0].dtype)
    for k in kinds[1:]:
        found = ops.add(found, ops.zeros((1,), dtype=k.dtype)) if k.dtype != found.dtype else found
    return found.dtype


def _dtype_of_code(kind: Any) -> DType:
    """Returns a dtype, also for NumPy's codes such as ``"i2"`` and for the numbers of Python."""
    if isinstance(kind, (bool, int, float)):
        return helpers.dtype_of(type(kind))
    try:
        return helpers.dtype_of(kind)
    except DTypeError:
        try:
            return helpers.dtype_of(np.dtype(kind))
        except TypeError:
            raise DTypeError(f"{kind!r} is not a supported dtype", at=user_source()) from None


def promote_types(type1: object, type2: object) -> DType:
    """Returns the dtype to which two dtypes promote.

    Args:
        type1: A dtype, or its name.
        type2: Another one.
    """
    return result_type(type1, type2)


def concatenate(arrays: object, axis: int | None = 0) -> Tensor:
    """Joins arrays along ``axis``; None flattens them first.

    Args:
        arrays: A sequence of arrays, or one array, whose slices are joined.
        axis: The axis.
    """
    parts = _promoted(arrays_of(arrays))
    if axis is None:
        return ops.concat([ops.ravel(p) for p in parts])
    return ops.concat(parts, axis)


def stack(arrays: object, axis: int = 0) -> Tensor:
    """Joins arrays of one shape along a new axis.

    Args:
        arrays: A sequence of arrays, or one array, whose slices are joined.
        axis: The axis.
    """
    return ops.stack(_promoted(arrays_of(arrays)), axis)


def append(arr: object, values: object, axis: int | None = None) -> Tensor:
    """Joins ``values`` to the end of an array, both flattened unless an axis is given.

    Args:
        arr: An array, of any shape.
        values: An array; with an axis of the same sizes but for that axis.
        axis: The axis.
    """
    return concatenate((arr, values), axis)


def column_stack(tup: object) -> Tensor:
    """Joins vectors as the columns of a matrix.

    Args:
        tup: Vectors of one length, and matrices of as many rows.
    """
    parts = arrays_of(tup)
    return concatenate([p if p.ndim > 1 else ops.reshape(p, (-1, 1)) for p in parts], 1)


def vstack(tup: Sequence[object]) -> Tensor:
    """Joins arrays row by row.

    Args:
        tup: Arrays.
    """
    return concatenate(_as_list(atleast_2d(*tup)), 0)


def hstack(tup: Sequence[object]) -> Tensor:
    """Joins arrays along the second axis, vectors along their only one.

    Args:
        tup: Arrays.
    """
    parts = _as_list(atleast_1d(*tup))
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)


def dstack(tup: Sequence[object]) -> Tensor:
    """Joins arrays along the third axis.

    Args:
        tup: Arrays.
    """
    return concatenate(_as_list(atleast_3d(*tup)), 2)


def _as_list(found: Any) -> list[Tensor]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _at_least(
    arys: tuple[object, ...], shaped: Callable[[Tensor], Tensor]
) -> Tensor | list[Tensor]:
    found = [shaped(array_of(a)) for a in arys]
    return found[0] if len(found) == 1 else found


def atleast_1d(*arys: object) -> Tensor | list[Tensor]:
    """Returns arrays of at least one axis.

    Args:
        *arys: Arrays, or one.
    """
    return _at_least(arys, lambda a: a if a.ndim else ops.reshape(a, (1,)))


def atleast_2d(*arys: object) -> Tensor | list[Tensor]:
    """Returns arrays of at least two axes; a vector becomes a row.

    Args:
        *arys: Arrays, or one.
    """
    return _at_least(arys, lambda a: a if a.ndim > 1 else ops.reshape(a, (1, -1)))


def atleast_3d(*arys: object) -> Tensor | list[Tensor]:
    """Returns arrays of at least three axes; a vector lies along the second.

    Args:
        *arys: Arrays, or one.
    """

    def shaped(a: Tensor) -> Tensor:
        if a.ndim > 2:
            return a
        return ops.reshape(a, (1, -1, 1) if a.ndim < 2 else (*a.shape, 1))

    return _at_least(arys, shaped)


def broadcast_arrays(*args: object) -> list[Tensor]:
    """Returns the arrays in their common shape.

    Args:
        *args: Arrays of shapes that broadcast.
    """
    return helpers.ops_broadcast(*arrays_of(args))


def where(condition: object, x: Any = None, y: Any = None) -> Tensor:
    """Returns elements of ``x`` where the condition holds and of ``y`` elsewhere.

    Args:
        condition: Bools.
        x: An array or a number; all three broadcast. Without both, the places of True are returned.
        y: An array or a number.
    """
    x, y = _promoted([array_of(x), array_of(y)])
    return ops.where(ops.cast(array_of(condition), helpers.dtype_of("bool")), x, y)


def take(a: object, indices: object, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Picks slices of an array by their places.

    Args:
        a: The array.
        indices: The places.
        axis: Axis along which slices are picked; None picks elements of the flat array.
        mode: What a place outside means: "clip" the last one, "wrap" counting around, "raise".
    """
    a, indices = array_of(a), array_of(indices)
    if axis is None:
        a, axis = ops.ravel(a), 0
    axis = axis_of(axis, a.ndim)
    return ops.gather(a, _inside(indices, a.shape[axis], mode), axis)


def _inside(indices: Tensor, size: int, mode: str) -> Tensor:
    if mode == "clip":
        return ops.clamp(indices, 0, size - 1)
    if mode == "wrap":
        return ops.floor_mod(indices, size)
    if mode == "raise":
        return indices
    raise ArgumentError(f"mode must be 'clip', 'wrap' or 'raise', not {mode!r}", at=user_source())


def choose(a: object, choices: object, mode: str = "clip") -> Tensor:
    """Returns for each element of ``a`` that of the choice it names.

    Args:
        a: Integers, of any shape.
        choices: Arrays, of shapes that broadcast with that of ``a``.
        mode: What is done with integers outside: ``"clip"``, ``"wrap"`` or ``"raise"``.
    """
    parts = helpers.ops_broadcast(array_of(a), *arrays_of(choices))
    picked = _inside(parts[0], len(parts) - 1, mode)
    return ops.gather_elements(ops.stack(_promoted(parts[1:])), 0, ops.expand_dims(picked, 0))[0]


def select(condlist: object, choicelist: object, default: object = 0) -> Tensor:
    """Returns the elements of the first choice whose condition holds, else ``default``.

    Args:
        condlist: Arrays of bools.
        choicelist: As many arrays.
        default: A number.
    """
    conditions, choices = arrays_of(condlist), _promoted(arrays_of(choicelist))
    if len(conditions) != len(choices):
        raise ShapeError("as many conditions as choices are needed", at=user_source())
    found = array_of(default, choices[0].dtype)
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        found = ops.where(ops.cast(condition, helpers.dtype_of("bool")), choice, found)
    return found


def piecewise(
    x: object, condlist: object, funclist: Sequence[object], *args: object, **kw: object
) -> Tensor:
    """Returns for each element what the function (or number) of its condition gives.

    Args:
        x: An array, of any shape.
        condlist: Arrays of bools, of the shape of ``x``; the last that holds counts.
        funclist: As many functions or numbers, or one more, for where no condition holds.
        *args: Arguments of the functions, after ``x``.
        **kw: Arguments of the functions by name.
    """
    x, condlist = array_of(x), [condlist] if isinstance(condlist, bool) else condlist
    made = [f(x, *args, **kw) if callable(f) else f for f in funclist]
    parts = [ops.broadcast_to(array_of(m), x.shape) for m in made]
    conditions = arrays_of(condlist)
    default = parts.pop() if len(parts) == len(conditions) + 1 else 0
    return select(conditions, parts, default)


def apply_along_axis(func1d: Callable[..., object], axis: int, arr: object, *args: object,
                     **kwargs: object) -> Tensor:  # fmt: skip
    """Applies a function to each vector along an axis.

    Args:
        func1d: A function of a vector.
        axis: The axis.
        arr: An array, of any shape.
        *args: Its other arguments.
        **kwargs: Its arguments by name.
    """
    arr = array_of(arr)
    axis = axis_of(axis, arr.ndim)
    rows = ops.moveaxis(arr, axis, -1)
    outer = tuple(rows.shape[:-1])
    flat = ops.reshape(rows, (-1, rows.shape[-1]))
    made = ops.stack([array_of(func1d(flat[i], *args, **kwargs)) for i in range(flat.shape[0])])
    found = ops.reshape(made, outer + tuple(made.shape[1:]))
    more = found.ndim - len(outer)
    return ops.moveaxis(
        found, tuple(range(len(outer), found.ndim)), tuple(range(axis, axis + more))
    )


def apply_over_axes(func: Callable[..., Tensor], a: object, axes: int | Sequence[int]) -> Tensor:
    """Applies a function along each of several axes, which stay with one element.

    Args:
        func: A function ``func(a, axis)``.
        a: An array, of any shape.
        axes: Axis or axes.
    """
    found = array_of(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        made = func(found, axis=axis)
        found = ops.expand_dims(made, axis) if made.ndim != found.ndim else made
    return found


def array_equal(a1: object, a2: object, equal_nan: bool = False) -> Tensor:
    """Whether two arrays have one shape and equal elements.

    Args:
        a1: An array.
        a2: Another one.
        equal_nan: Whether two NaN count as equal.
    """
    a1, a2 = array_of(a1), array_of(a2)
    if tuple(a1.shape) != tuple(a2.shape):
        return Tensor(False)
    same = ops.equal(a1, a2)
    if equal_nan:
        same = ops.logical_or(same, ops.logical_and(ops.isnan(a1), ops.isnan(a2)))
    return ops.all(same)


def array_str(a: Tensor) -> str:
    """Returns the text of an array.

    Args:
        a: An array, of any shape.
    """
    return str(a.asnumpy())


def isscalar(element: object) -> bool:
    """Whether ``element`` is a number or a string.

    Args:
        element: Any object.
    """
    return isinstance(element, (int, float, bool, complex, str))


def _narrow_pairs(value: object, ndim: int) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]


def pad(
    arr: object,
    pad_width: object,
    mode: str | Callable[..., object] = "constant",
    stat_length: object = None,
    constant_values: object = 0,
    end_values: object = 0,
    reflect_type: str = "even",
    **kwargs: object,
) -> Tensor:
    """Adds elements before and after each axis.

    Args:
        arr: The array.
        pad_width: How many: one number, ``(before, after)``, or a pair per axis.
        mode: "constant", "edge", "wrap", "reflect", "symmetric", "linear_ramp", "maximum",
            "minimum", "mean", "empty", or a function of ``(vector, pads, axis, kwargs)`` that
            returns the vector.
        stat_length: How many elements at the edge the statistics look at; all unless told.
        constant_values: Value, or values as in ``pad_width``.
        end_values: Last values of the ramps.
        reflect_type: "even", or "odd": reflected about the edge's value.
        kwargs: For the function.
    """
    arr = array_of(arr)
    widths = _narrow_pairs(pad_width, arr.ndim)
    if callable(mode):
        arr = pad(arr, pad_width)
        for axis, width in enumerate(widths):
            arr = apply_along_axis(mode, axis, arr, width, axis, kwargs)
        return arr
    values = end_values if mode == "linear_ramp" else constant_values
    ends = _narrow_pairs(0 if mode == "empty" else values, arr.ndim)
    kept = None if stat_length is None else _narrow_pairs(stat_length, arr.ndim)
    for axis, width in enumerate(widths):
        if any(width):
            kinds = {"ends": ends[axis], "kept": kept and kept[axis], "reflect": reflect_type}
            arr = _pad_axis(arr, axis, width, mode, **kinds)
    return arr


def _pad_axis(
    arr: Tensor,
    axis: int,
    width: tuple[int, int],
    mode: str,
    ends: tuple[object, object],
    kept: tuple[int, int],
    reflect: str,
) -> Tensor:
    size = arr.shape[axis]
    if mode in ("edge", "wrap", "reflect", "symmetric") and reflect == "even":
        places = np.pad(np.arange(size), width, mode=mode)
        return ops.gather(arr, Tensor(places), axis)
    if mode in ("reflect", "symmetric"):  # linear in the elements: a matrix says it
        matrix = np.pad(np.eye(size), (width, (0, 0)), mode=mode, reflect_type="odd")
        moved = ops.matmul(ops.moveaxis(arr, axis, -1), Tensor(matrix.T, float32))
        return as_dtype(ops.moveaxis(moved, -1, axis), arr.dtype)
    parts = [_pad_block(arr, axis, width[i], mode, i, ends[i], kept and kept[i]) for i in (0, 1)]
    return ops.concat([p for p in (parts[0], arr, parts[1]) if p.shape[axis]], axis)


def _pad_block(arr: Tensor, axis: int, count: int, mode: str, after: int, end: object,
               kept: int | None) -> Tensor:  # fmt: skip
    """Returns what is added at one side of an axis."""
    size = arr.shape[axis]
    block = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    if mode in ("constant", "empty") or count == 0:
        return ops.broadcast_to(array_of(end, arr.dtype), block)
    if mode == "linear_ramp":
        edge = ops.gather(arr, Tensor(size - 1 if after else 0), axis)
        ramp = linspace(edge, end, count + 1, axis=axis)
        order = np.arange(1, count + 1) if after else np.arange(count, 0, -1)
        return as_dtype(ops.gather(ramp, Tensor(order.copy()), axis), arr.dtype)
    reduce = {"maximum": ops.amax, "minimum": ops.amin, "mean": ops.mean}.get(mode)
    if reduce is None:
        raise ArgumentError(f"mode={mode!r} is not known", at=user_source())
    look = min(kept or size, size)
    near = ops.narrow(arr, axis, size - look if after else 0, look)
    return ops.broadcast_to(as_dtype(reduce(near, axis, True), arr.dtype), block)


def unravel_index(indices: object, shape: Sequence[int], order: str = "C") -> tuple[Tensor, ...]:
    """Returns the places along each axis of flat indices into an array of ``shape``.

    Args:
        indices: Integers, of any shape.
        shape: Shape of the array.
        order: ``"C"``, the only one.
    """
    indices = array_of(indices)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    total = int(np.prod(shape))
    flat = ops.floor_mod(ops.clamp(indices, -total, total - 1), total)
    found = []
    for size in shape[::-1] if order == "C" else shape:
        found.append(ops.floor_mod(flat, size))
        flat = ops.floor_div(flat, size)
    return tuple(found[::-1] if order == "C" else found)


def ravel_multi_index(
    multi_index: object, dims: Sequence[int], mode: str = "clip", order: str = "C"
) -> Tensor:
    """Returns the flat indices of places along each axis of an array of shape ``dims``.

    Args:
        multi_index: Integers, one array per axis.
        dims: Shape of the array.
        mode: What is done with places outside: ``"clip"``, ``"wrap"`` or ``"raise"``.
        order: ``"C"``, the only one.
    """
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    places = arrays_of(multi_index)
    if len(places) != len(dims):
        raise ArgumentError(f"{len(dims)} index arrays are needed", at=user_source())
    axes = range(len(dims)) if order == "C" else reversed(range(len(dims)))
    found = ops.zeros_like(places[0])
    for i in axes:
        found = found * dims[i] + _inside(places[i], dims[i], mode)
    return ops.cast(found, float32)


def unique(x: Tensor, return_inverse: bool = False) -> Any:
    """Returns the elements without repetition, and with ``return_inverse`` where each went.

    Args:
        x: An array, of any shape.
        return_inverse: Whether the place in the result of every element follows.
    """
    found = ops.unique(ops.ravel(array_of(x)))
    return found if return_inverse else found[0]


def _sorted_unique(x: object) -> Tensor:
    return ops.sort(ops.unique(ops.ravel(array_of(x)))[0])[0]


def setdiff1d(ar1: object, ar2: object, assume_unique: bool = False) -> Tensor:
    """Returns the elements of the first array that the second lacks.

    Args:
        ar1: An array, of any shape.
        ar2: Another one.
        assume_unique: Whether neither array repeats an element.
    """
    first = ops.ravel(array_of(ar1)) if assume_unique else _sorted_unique(ar1)
    return ops.masked_select(first, helpers.contains(first, ar2, True))


def intersect1d(ar1: object, ar2: object, assume_unique: bool = False,
                return_indices: bool = False) -> Any:  # fmt: skip
    """Returns the sorted elements that two arrays share, and on demand where each has them.

    Args:
        ar1: An array, of any shape.
        ar2: Another one.
        assume_unique: Whether neither array repeats an element.
        return_indices: Whether the places of the elements in both arrays follow.
    """
    if not (isinstance(assume_unique, bool) and isinstance(return_indices, bool)):
        raise DTypeError("assume_unique and return_indices must be bools", at=user_source())
    first = ops.ravel(array_of(ar1)) if assume_unique else _sorted_unique(ar1)
    shared = ops.masked_select(first, helpers.contains(first, ar2, False))
    shared = as_dtype(ops.sort(shared)[0], result_type(array_of(ar1), array_of(ar2)))
    if not return_indices:
        return shared
    places = [_first_place(ops.ravel(array_of(a)), shared) for a in (ar1, ar2)]
    return (shared, *places)


def _first_place(array: Tensor, values: Tensor) -> Tensor:
    same = ops.equal(ops.expand_dims(values, 1), ops.expand_dims(array, 0))
    return ops.cast(ops.argmax(ops.cast(same, int32), 1), int32)


def digitize(x: object, bins: object, right: bool = False) -> Tensor:
    """Returns the number of the bin in which each element lies; bins rise or fall.

    Args:
        x: An array, of any shape.
        bins: Edges of the bins [N].
        right: Whether bins include their right edge instead of the left one.
    """
    x, edges = helpers.alike(array_of(x), array_of(bins))
    side = "left" if right else "right"
    rising = ops.searchsorted(edges, x, side=side)
    falling = edges.shape[0] - ops.searchsorted(ops.flip(edges, (0,)), x, side=side)
    return ops.cast(ops.where(edges[0] <= edges[-1], rising, falling), int32)


def bincount(
    x: object, weights: object = None, minlength: int = 0, length: int | None = None
) -> Tensor:
    """Counts each of the integers 0, 1, ...

    Args:
        x: Vector of integers; negative ones count as 0.
        weights: What each counts instead of 1.
        minlength: At least how many counts there are.
        length: How many there are; without it the largest integer says.

    Raises:
        DTypeError: if ``x`` holds no integers.
    """
    x = array_of(x)
    if not x.dtype.is_integer:
        raise DTypeError(f"x must hold integers, not {x.dtype.name}", at=user_source())
    x = ops.clamp(x, 0, None)
    size = length or max(int(ops.amax(x)) + 1, minlength)
    same = ops.cast(
        ops.equal(ops.expand_dims(x, 0), ops.reshape(ops.arange(size), (-1, 1))), float32
    )
    return ops.sum(same if weights is None else same * array_of(weights), 1)


def histogram_bin_edges(
    a: object, bins: object = 10, range: Any = None, weights: object = None
) -> Tensor:
    """Returns the edges of equal bins between the extremes of ``a``, or in ``range``.

    Args:
        a: An array, of any shape.
        bins: Number of bins, or their edges.
        range: Lower and upper edge of all bins; by default the extremes.
        weights: What each element counts, of the same shape; 1 by default.
    """
    if not isinstance(bins, int):
        return array_of(bins)
    a = ops.cast(ops.ravel(array_of(a)), float32)
    start, end = (ops.amin(a), ops.amax(a)) if range is None else map(array_of, range)
    flat = ops.equal(start, end)
    return linspace(ops.where(flat, start - 0.5, start), ops.where(flat, end + 0.5, end), bins + 1)


def histogram(a: object, bins: object = 10, range: object = None, weights: object = None,
              density: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Counts the elements in bins; the last bin has both its edges.

    Args:
        a: An array, of any shape.
        bins: Number of bins, or their edges.
        range: Lower and upper edge of all bins; by default the extremes.
        weights: What each element counts, of the same shape; 1 by default.
        density: Whether the counts are divided so that they integrate to 1.

    Returns:
        Counts (weights where given; with ``density`` their share per unit), and the edges.
    """
    edges = histogram_bin_edges(a, bins, range, weights)
    a = ops.ravel(array_of(a))
    count = edges.shape[0]
    places = _bin_of(edges, a)
    weights = None if weights is None else ops.ravel(array_of(weights))
    counts = bincount(places, weights, length=count)[1:]
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / ops.sum(counts)
    return counts, edges


def _bin_of(edges: Tensor, a: Tensor) -> Tensor:
    edges, a = helpers.alike(edges, a)
    count = edges.shape[0]
    places = ops.cast(ops.searchsorted(edges, a, side="right"), int32)
    # beyond the last edge: no bin, which bincount of that length leaves out
    return ops.where(ops.equal(a, edges[-1]), ops.full_like(places, count - 1), places)


def histogramdd(sample: object, bins: Any = 10, range: Any = None, weights: object = None,
                density: bool = False) -> tuple[Tensor, list[Tensor]]:  # fmt: skip
    """Counts points of several coordinates in boxes; see :func:`histogram`.

    Args:
        sample: Points [N, D], or D arrays of coordinates.
        bins: Number of bins, or one per coordinate, or their edges.
        range: Lower and upper edge per coordinate.
        weights: What each element counts, of the same shape; 1 by default.
        density: Whether the counts are divided so that they integrate to 1.
    """
    points = sample if isinstance(sample, Tensor) else stack(sample, -1)
    ndim = points.shape[1]
    bins = [bins] * ndim if isinstance(bins, int) else list(bins)
    range = [None] * ndim if range is None else range
    columns = [points[:, i] for i in np.arange(ndim).tolist()]
    edges = [histogram_bin_edges(c, b, r) for c, b, r in zip(columns, bins, range)]
    sizes = [e.shape[0] + 1 for e in edges]
    flat = ops.zeros_like(_bin_of(edges[0], columns[0]))
    for column, edge, size in zip(columns, edges, sizes):
        flat = flat * size + _bin_of(edge, column)
    counts = ops.reshape(bincount(flat, weights, length=int(np.prod(sizes))), tuple(sizes))
    counts = counts[(slice(1, -1),) * ndim]
    if density:
        share = ops.sum(counts)
        for axis, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            counts = counts / ops.reshape(width, (-1,) + (1,) * (ndim - axis - 1))
        counts = counts / share
    return counts, edges


def histogram2d(
    x: object,
    y: object,
    bins: object = 10,
    range: object = None,
    weights: object = None,
    density: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Counts points of a plane in rectangles; see :func:`histogram`.

    Args:
        x: First coordinates [N].
        y: Second coordinates [N].
        bins: Number of bins, or one per coordinate, or their edges.
        range: Lower and upper edge per coordinate.
        weights: What each element counts, of the same shape; 1 by default.
        density: Whether the counts are divided so that they integrate to 1.
    """
    counts, edges = histogramdd((x, y), bins, range, weights, density)
    return counts, edges[0], edges[1]


__all__ = _public_names(globals())

_guard_module(globals(), "numpy")
