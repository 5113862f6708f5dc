"""``x[index]`` and ``x[index] = value``: NumPy's indexing written with the rows of this family.

An index is split in two steps: a *basic* one of integers, ranges and new axes, and then the
*advanced* one by integer tensors on some axes of what the basic step left.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from tvmgraph import dtypes
from tvmgraph.core import rules
from tvmgraph.core.arguments import is_sequence
from tvmgraph.core.dispatch import at_least
from tvmgraph.core.op import F
from tvmgraph.core.sizes import is_one
from tvmgraph.core.state import state
from tvmgraph.core.symbols import assuming, bound, contains_symbol, large_enough, narrowing, scope
from tvmgraph.core.tensor import Tensor, tensor_from_numpy, to_array
from tvmgraph.core.types import Dim, Shape
from tvmgraph.errors import (
    ArgumentError,
    DTypeError,
    OutOfRangeError,
    TvmgraphError,
    either,
    user_source,
)
from tvmgraph.ops.common.arguments import is_unknown, tensor_in
from tvmgraph.ops.indexing.advanced import check_range, gathered_shape, index_get, index_update
from tvmgraph.ops.indexing.basic import (
    WHOLE,
    Entry,
    Range,
    basic_index,
    basic_update,
    is_position,
    is_whole,
    selected_shape,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["getitem", "setitem"]

_SCALARS = (bool, np.bool_)
#: One entry of an index as users give it, converted.
Given: TypeAlias = int | Dim | slice | bool | np.bool_ | Tensor | np.ndarray | None
#: The start, stop or step of a slice.
Bound: TypeAlias = int | Dim | Tensor | None


def getitem(x: Tensor, index: Any) -> Tensor:
    r"""Takes elements: ``x[index]`` with NumPy's rules.

    Args:
        x: Tensor of any shape and dtype.
        index: An int, slice, ``None``, ``Ellipsis``, bool or integer tensor, list or NumPy array,
            or a tuple of these; so is a list of lists. Negative positions count from the end. The
            shape of what a bool tensor selects depends on its values, which compiled code cannot
            express.

    Returns:
        Tensor of ``x``'s dtype.

    Raises:
        OutOfRangeError: if a position lies outside its axis or there are too many indices.
        DTypeError: if an index is no integer, slice, ``None``, ``Ellipsis``, bool or tensor.

    Example:
        >>> ops.getitem(Tensor([[1, 2], [3, 4]]), (slice(None), -1))
        Tensor(shape=[2], dtype=Int64, value= [2, 4])
    """
    shape = x.aval.shape
    if index.__class__ is int and shape and shape[0].__class__ is int:
        if 0 <= index < shape[0]:
            return basic_index(x, (index,))
        if -shape[0] <= index < 0:
            return basic_index(x, (index + shape[0],))
    try:
        if _has_unknown_slice(index):
            return _getitem_bound(*_slice_bound(x, index))
        if index.__class__ in _PLAIN_CLASSES:
            plain = _plain_index(shape, index if index.__class__ is tuple else (index,))
            if plain is not None:
                return basic_index(x, plain)
        elif index.__class__ is list and any(e.__class__ in (list, tuple) for e in index):
            # one list per axis, as in MindSpore; where elements are stored it is an array
            index = tuple(index)
        if index.__class__ is tuple:
            fits = 0 < len(index) <= len(shape) and x.aval.is_static
            if fits and all(map(_is_integer_tensor, index)):
                return index_get(x, *index, axes=_FIRST[: len(index)])
        elif _is_integer_tensor(index) and shape and x.aval.is_static:
            return index_get(x, index, axes=_FIRST[:1])
        elif _is_mask_of_axes(x, index):  # one index instead of one per axis
            axes = index.ndim
            index = F.reshape(index, (-1,))
            x = F.reshape(x, (*index.shape, *shape[axes:]))
        if not x.aval.is_static and bound(x.aval.roots):
            return _getitem_bound(*_slice_bound(x, index))
        return _getitem(x, index)
    except TvmgraphError as e:
        raise e.locate("ops.getitem", _got(x, index), user_source()) from None


_FIRST = tuple(range(64))  # axes, of which NumPy has no more


def _is_integer_tensor(index: object) -> TypeGuard[Tensor]:
    return isinstance(index, Tensor) and index.aval.dtype.is_integer


def _is_mask_of_axes(x: Tensor, index: object) -> TypeGuard[Tensor]:
    """Whether an index of eager code is a mask of several first axes."""
    return (
        state.interpreter is None and isinstance(index, Tensor)
        and index.aval.dtype is dtypes.bool_ and index.ndim > 1
        and index.aval.is_static and x.aval.is_static
        and x.aval.shape[: index.ndim] == index.aval.shape
    )  # fmt: skip


def _getitem(x: Tensor, index: object) -> Tensor:
    basic, advanced = _Parser(x.aval.shape, index).split()
    y = x if _is_trivial(basic) else basic_index(x, tuple(basic))
    if not advanced:
        return y if y is not x else basic_index(x, ())
    axes, indices = _as_integers(advanced, y.aval.shape)
    return index_get(y, *indices, axes=axes)


def _getitem_bound(x: Tensor, index: object) -> Tensor:
    """Takes elements at positions that exist if there are enough, which is checked."""
    least = large_enough(lambda: _Parser(x.aval.shape, index).split())
    with assuming(least):
        return _getitem(at_least(x, least), index)


def _slice_bound(x: Tensor, index: object) -> tuple[Tensor, tuple[object, ...]]:
    """Slices the axes whose size only the values decide, by computing the positions."""
    entries, axis = _Parser(x.aval.shape, index).entries, 0
    for i, e in enumerate(entries):
        size = x.aval.shape[axis] if axis < x.ndim else 0
        computed = isinstance(size, Dim) and bound(size.roots)
        if isinstance(e, slice) and (computed or _has_unknown_slice(e)):
            x, entries[i] = _slice_axis(x, axis, e), slice(None)
        axis += _axes_used(e)
    return x, tuple(entries)


def _with_positions(x: Tensor, index: object, value: Tensor) -> object:
    """Returns an index with positions for slices that the graph computes, and what is beside them.

    Args:
        x: What is indexed.
        index: The index.
        value: What is stored there; where it has sizes, the slices must have them, too.
    """
    entries = _Parser(x.aval.shape, index).entries
    if any(isinstance(e, _SCALARS) or (_is_array(e) and _is_bool(e)) for e in entries):
        return index
    while _is_whole(entries[-1]):
        entries.pop()
    joint = [i for i, e in enumerate(entries) if e is not None and not isinstance(e, slice)]
    batch = [-1] * max([len(e.shape) for e in entries if _is_array(e)], default=0)
    ahead = bool(batch) and joint[-1] - joint[0] >= len(joint)  # their axes are the first ones
    kept = next(i for i, e in enumerate(entries) if ahead or not _is_whole(e))
    layout = [*batch] if ahead else []  # the entry that an axis of the region comes from
    for i in range(kept, len(entries)):
        if i not in joint:
            layout.append(i)
        elif i == joint[0] and not ahead:
            layout += batch
    places: list[object] = [slice(None)] * kept
    for i, e in enumerate(entries[kept:], kept):
        if e is None:
            continue
        axis = len(places)
        if isinstance(e, slice):
            behind = len(layout) - 1 - layout.index(i)
            at = x.ndim - sum(v is not None for v in entries) + behind
            given = value if at < value.ndim and not is_one(value.aval.shape[-1 - at]) else None
            found = _slice_positions(x, axis, e, given, -1 - at)
        else:
            behind = len(layout) - layout.index(-1) - len(batch) if batch else 0
            found = e if isinstance(e, Tensor) else Tensor(e)
        places.append(F.reshape(found, (*found.aval.shape, *[1] * behind)))
    return tuple(places)


def _slice_positions(
    x: Tensor, axis: int, index: slice, value: Tensor | None, value_axis: int
) -> Tensor:
    """Returns the positions of a slice, checked to be as many as a value has in the graph."""
    length = x.aval.shape[axis]
    if isinstance(length, int) and not _has_unknown_slice(index):
        return Tensor(np.arange(length)[index])
    first, by, count = _range(x, axis, *map(_computed, (index.start, index.stop, index.step)))
    if value is None:
        return F.count_up(count, "taken") * by + first
    size = value.aval.shape[value_axis]
    fits = F.equal(count, F.size_value(value, size=size, dtype=dtypes.int64))
    one = F.count_up(F.cast(fits, dtypes.int64), "fitting")
    taken = F.at_least(F.arange_values(0, 1, size, dtypes.int64), one, size=one.shape[0], least=1)
    return taken * by + first


def _is_array(entry: object) -> TypeIs[Tensor | np.ndarray]:
    return isinstance(entry, (Tensor, np.ndarray))


def _is_whole(entry: object) -> bool:
    return isinstance(entry, slice) and entry.start is entry.stop is entry.step is None


def _has_unknown_slice(index: object) -> bool:
    """Whether a tensor of the graph is the bound of a slice in an index."""
    return state.interpreter is not None and any(
        isinstance(e, slice) and any(map(is_unknown, (e.start, e.stop, e.step)))
        for e in (index if is_sequence(index) else (index,))
    )


def _slice_axis(x: Tensor, axis: int, index: slice) -> Tensor:
    start, stop, step = map(_computed, (index.start, index.stop, index.step))
    if start is None and stop is None:
        if step is None or (step.__class__ is int and step == 1):
            return x
        if step.__class__ is int and step == -1:
            return F.flip(x, (axis,))
    return index_get(x, _slice_positions(x, axis, index, None, 0), axes=(axis,))


def _range(
    x: Tensor, axis: int, start: Bound, stop: Bound, step: Bound
) -> tuple[Tensor, Tensor | int | Dim, Tensor]:
    """Returns start, step and length of a slice; a step that the graph computes leads forward."""
    if isinstance(step, Tensor):
        step = F.maximum(step, 1)
    by = 1 if step is None else step
    n = F.size_value(x, size=x.aval.shape[axis], dtype=dtypes.int64)
    forward = isinstance(by, Tensor) or by > 0
    low, high = (n * 0, n) if forward else (n * 0 - 1, n - 1)

    def inside(at: int | Dim | Tensor) -> Tensor:
        if isinstance(at, Tensor):
            at = F.where(at < 0, at + n, at)
        else:
            at = at + n if at < 0 else n * 0 + at
        return F.minimum(F.maximum(at, low), high)

    first = (low if forward else high) if start is None else inside(start)
    last = (high if forward else low) if stop is None else inside(stop)
    distance, width = (last - first, by) if forward else (first - last, -by)
    count = F.maximum(F.floor_div(distance + width - 1, width), 0)
    return first, by, count


def _computed(value: object) -> Bound:
    """Returns a slice bound: what the graph computes as an int64 tensor, others as they are."""
    if not is_unknown(value):
        return _position(value)
    value = tensor_in(value)
    if not value.dtype.is_integer or value.size != 1:
        raise DTypeError(f"slice bounds must be integers, not {value.aval}")
    return F.cast(F.reshape(value, ()), dtypes.int64)


_PLAIN: dict[tuple[object, ...], tuple[Entry, ...]] = {}
_PLAIN_LIMIT = 4096
_PLAIN_CLASSES = (tuple, slice, type(None), EllipsisType)


def _plain_index(shape: Shape, index: tuple[Any, ...]) -> tuple[Entry, ...] | None:
    """Returns the basic index of a tuple of ints, slices, ``None`` and ``Ellipsis``, remembered."""
    if scope() is not None and contains_symbol((*shape, *index)):  # no keys of a look-up
        return None
    key: list[object] = [shape]
    for e in index:
        if e.__class__ is slice:
            key.append((e.start, e.stop, e.step))
        elif e.__class__ is int or e is None or e is Ellipsis:
            key.append(e)
        else:
            return None
    try:
        found = _PLAIN.get(tuple(key))
    except TypeError:  # a slice bound is a tensor
        return None
    if found is None:
        found = tuple(_Parser(shape, index).split()[0])
        if len(_PLAIN) >= _PLAIN_LIMIT:
            _PLAIN.clear()
        _PLAIN[tuple(key)] = found
    return found


def setitem(x: Tensor, index: object, value: object) -> Tensor:
    r"""Returns ``x`` with ``value`` stored at ``index``, with NumPy's rules.

    Args:
        x: Tensor of any shape and dtype; it is not changed.
        index: As in :func:`getitem`. A bool tensor with a value that does not depend on the
            number of selected elements compiles.
        value: Tensor, array, list or number that broadcasts to the region; it is converted to
            ``x``'s dtype.

    Returns:
        Tensor of ``x``'s type.

    Raises:
        OutOfRangeError: if a position lies outside its axis or there are too many indices.
        ShapeError: if ``value`` does not broadcast to the region.
        DTypeError: if an index is no integer, slice, ``None``, ``Ellipsis``, bool or tensor.

    Example:
        >>> ops.setitem(Tensor([[1, 2], [3, 4]]), (slice(None), -1), 0)
        Tensor(shape=[2, 2], dtype=Int64, value=
        [[1, 0],
         [3, 0]])
    """
    return put_at("setitem", x, index, value, "set")


def put_at(name: str, x: Tensor, index: object, value: object, mode: str) -> Tensor:
    """Sets (or with the mode ``"add"`` adds to) what an index addresses.

    Args:
        name: Name of the function, for errors.
        x: The tensor.
        index: What stands in the brackets.
        value: A tensor or number that broadcasts to what is addressed.
        mode: ``"set"``, ``"add"`` or another mode of ``index_update``.
    """
    if index is False:  # which addresses nothing
        return x
    try:
        new = _as_value(value, x.aval.dtype)
        if _has_unknown_slice(index):
            index = _with_positions(x, index, new)
        if x.aval.is_static or not bound(x.aval.roots):
            return _put_at(x, index, new, mode)
        least = large_enough(lambda: _Parser(x.aval.shape, index, new.ndim == 0).split())
        with assuming(least):
            return _put_at(at_least(x, least), index, new, mode)
    except TvmgraphError as e:
        shown = value.aval if isinstance(value, Tensor) else value
        got = f"{_got(x, index)}, value={shown!s:.60}"
        raise e.locate(f"ops.{name}", got, user_source()) from None


def _put_at(x: Tensor, index: object, new: Tensor, mode: str) -> Tensor:
    basic, advanced = _Parser(x.aval.shape, index, new.ndim == 0).split()
    if not advanced:
        region = selected_shape(x.aval.shape, tuple(basic))
        new = _drop_leading(new, len(region))
        new = basic_index(x, tuple(basic)) + new if mode == "add" else new
        return basic_update(x, new, tuple(basic))
    if _is_trivial(basic):
        return _update_advanced(x, advanced, new, mode)
    part = _update_advanced(basic_index(x, tuple(basic)), advanced, new, mode)
    return basic_update(x, part, tuple(basic))


def _got(x: Tensor, index: object) -> str:
    entries = index if isinstance(index, tuple) else (index,)
    text = ", ".join(str(e.aval) if isinstance(e, Tensor) else f"{e!r:.40}" for e in entries)
    return f"x={x.aval}, index=[{text}]"


def _is_trivial(basic: Sequence[Entry]) -> bool:
    return all(is_whole(e) for e in basic)


def _range_entry(index: slice, size: int | Dim) -> Range:
    """Returns the normalised entry of a slice of an axis."""
    start, stop, step = index.start, index.stop, index.step
    if step is None and stop is None and (start is None or (start.__class__ is int and start == 0)):
        return WHOLE
    bounds = [_position(v) for v in (start, stop, step)]
    if bounds[2] == 0:
        raise ArgumentError("a slice step cannot be zero")
    if isinstance(size, Dim) or contains_symbol(bounds):
        step = 1 if bounds[2] is None else bounds[2]
        with narrowing(ends=not isinstance(size, Dim)):
            return _symbolic_entry(bounds[0], bounds[1], step, size)
    begin, end, step = slice(*bounds).indices(size)
    if step > 0:
        if begin == 0 and end >= size and step == 1:
            return WHOLE
        return (begin, max(begin, end), step)
    return (max(begin, 0), None if end < 0 else min(begin, end), step) if begin >= 0 else (0, 0, 1)


def _symbolic_entry(
    start: int | Dim | None, stop: int | Dim | None, step: int | Dim, size: int | Dim
) -> Range:
    """Does what ``slice.indices`` does, deciding by comparisons of the symbolic sizes."""
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def inside(bound: int | Dim) -> int | Dim:
        bound = bound if bound >= 0 else bound + size
        if bound < low:
            return low
        return high if bound > high else bound

    begin = (low if step > 0 else high) if start is None else inside(start)
    if stop is None:
        return (begin, None, step) if step > 0 or begin != -1 else (0, 0, 1)
    end = inside(stop)
    if step > 0:
        if step == 1 and begin is low and end is high:
            return WHOLE
        return (begin, end if end >= begin else begin, step)
    if begin <= end:
        return (0, 0, 1)
    return (begin, None if end == -1 else end, step)


def _position(value: Any) -> int | Dim | None:
    """Returns a slice bound as an int (0-d integer tensors are read)."""
    if value is None or value.__class__ is int or isinstance(value, Dim):
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise DTypeError(
            f"slice bounds must be integers, not {type(value).__name__}",
            fix="convert it with int()",
        ) from None


class _Parser:
    """Turns an index expression into a basic index and the advanced indices on its result.

    Args:
        shape: Shape of the indexed tensor.
        index: What stands between the brackets.
        keep_ints: Whether integers next to a single bool tensor stay basic, which gives the same
            region in another order and is enough for storing a single number.
    """

    def __init__(self, shape: Shape, index: object, keep_ints: bool = False) -> None:
        self.shape = shape
        entries = tuple(index) if _is_tuple(index) else (index,)
        self.entries = self._expand([_classify(e) for e in entries])
        tensors = [e for e in self.entries if isinstance(e, (Tensor, np.ndarray))]
        only_mask = len(tensors) == 1 and _is_bool(tensors[0])
        self.ints_join = bool(tensors) and not (keep_ints and only_mask)

    def _expand(self, entries: list[Given | EllipsisType]) -> list[Given]:
        """Replaces ``Ellipsis`` by whole ranges and checks the number of entries."""
        used = sum(_axes_used(e) for e in entries)
        ndim = len(self.shape)
        if used > ndim:
            raise (OutOfRangeError if ndim else either(OutOfRangeError, TypeError))(
                f"{used} indices were given, but the tensor has {ndim} axes", fix="remove an index"
            )
        dots = [i for i, e in enumerate(entries) if e is Ellipsis]
        if len(dots) > 1:
            raise OutOfRangeError("an index can only have a single Ellipsis ('...')")
        if dots:
            entries[dots[0] : dots[0] + 1] = [slice(None)] * (ndim - used)
        return [e for e in entries if e is not ...]

    def split(self) -> tuple[list[Entry], list[tuple[int, Tensor | np.ndarray]]]:
        """Returns the basic entries, and pairs of an axis of their result and an index tensor."""
        basic: list[Entry] = []
        advanced: list[tuple[int, Tensor | np.ndarray]] = []
        axis = kept = 0  # of the input, of the basic step's result
        for e in self.entries:
            if e is None or isinstance(e, _SCALARS) or _axes_used(e) == 0:
                basic.append(None)
                if isinstance(e, Tensor):  # a mask of the new axis
                    advanced.append((kept, F.reshape(e, (1,))))
                elif e is not None and self.ints_join:
                    advanced.append((kept, np.zeros(1, np.int64)))
                kept += 1
                continue
            if is_position(e) and not self.ints_join:
                basic.append(self._checked(e, axis))
            elif isinstance(e, slice):
                basic.append(_range_entry(e, self.shape[axis]))
                kept += 1
            else:
                index = np.asarray(self._checked(e, axis), np.int64) if is_position(e) else e
                width = _axes_used(e)
                basic += [WHOLE] * width
                advanced.append((kept, index))
                kept += width
                axis += width - 1
            axis += 1
        return basic, advanced

    def _checked(self, index: int | Dim, axis: int) -> int | Dim:
        size = self.shape[axis]
        with narrowing():
            there = -size <= index < size
        if not there:
            raise OutOfRangeError(
                f"index {index} is out of range for axis {axis} of size {size}",
                fix=f"use an index in [{-size}, {size})",
            )
        return index if index >= 0 else index + size


def _is_bool(index: Tensor | np.ndarray) -> bool:
    return index.dtype == dtypes.bool_ if isinstance(index, Tensor) else index.dtype == np.bool_


def _axes_used(entry: object) -> int:
    """Returns how many axes of the input an entry covers."""
    if entry is None or entry is Ellipsis or isinstance(entry, _SCALARS):
        return 0
    if isinstance(entry, (Tensor, np.ndarray)) and _is_bool(entry):
        return entry.ndim
    return 1


def _is_tuple(index: object) -> TypeGuard[Iterable[object]]:
    """Whether an index has one entry per axis: a tuple, or a list with more than numbers in it."""
    if isinstance(index, list):
        if any(e is None or e is Ellipsis or isinstance(e, (Tensor, slice)) for e in index):
            return True
        return len({len(e) if isinstance(e, (list, tuple)) else -1 for e in index}) > 1
    return isinstance(index, tuple)


def _classify(entry: Any) -> Given | EllipsisType:
    """Returns an entry as int, slice, ``None``, ``Ellipsis``, bool, Tensor or NumPy array."""
    if entry is None or entry is Ellipsis or isinstance(entry, (slice, *_SCALARS)):
        if isinstance(entry, _SCALARS) and not entry:
            raise OutOfRangeError("False is no index", fix="leave it out, or take a slice [:0]")
        return entry
    if isinstance(entry, Tensor):
        d = entry.aval.dtype
        if not (d.is_integer or d is dtypes.bool_):
            raise either(DTypeError, IndexError)(
                f"an index tensor must hold integers or bools, not {d.name}"
            )
        return entry
    if isinstance(entry, (list, tuple, range)):
        if any(isinstance(e, Tensor) for e in entry):
            return F.stack([e if isinstance(e, Tensor) else Tensor(e) for e in entry])
        entry = np.asarray(entry) if len(entry) else np.zeros(0, np.int64)
    if isinstance(entry, np.ndarray):
        if not entry.ndim and entry.dtype == np.bool_:
            return _classify(bool(entry))
        if entry.dtype.kind not in "iub":
            raise DTypeError(f"an index array must hold integers or bools, not {entry.dtype}")
        return entry
    if isinstance(entry, Dim):
        return entry
    try:
        return operator.index(entry)
    except TypeError:
        raise either(DTypeError, IndexError)(
            f"{type(entry).__name__} is no index",
            fix="use ints, slices, None, ..., bools, or integer and bool tensors",
        ) from None


def _as_integers(
    advanced: list[tuple[int, Tensor | np.ndarray]], shape: Shape
) -> tuple[tuple[int, ...], list[Tensor]]:
    """Returns the axes and integer tensors of advanced indices (a mask becomes its positions)."""
    axes: list[int] = []
    tensors: list[Tensor] = []
    for axis, index in advanced:
        if not _is_bool(index):
            axes.append(axis)
            tensors.append(_integers(index, shape[axis], axis))
            continue
        sizes = shape[axis : axis + index.ndim]
        if tuple(index.shape) != tuple(sizes):
            raise either(OutOfRangeError, ValueError)(
                f"a bool index of shape {list(index.shape)} does not fit axes of {list(sizes)}",
                fix="give the mask the sizes of the axes it selects from",
            )
        axes += range(axis, axis + index.ndim)
        if isinstance(index, Tensor):
            tensors += F.nonzero_positions(index)
        else:
            tensors += [tensor_from_numpy(p) for p in np.nonzero(index)]
    return tuple(axes), tensors


def _integers(index: Tensor | np.ndarray, size: int | Dim, axis: int) -> Tensor:
    if isinstance(index, Tensor):
        return index
    if isinstance(size, int):
        check_range(index, size, axis)
        index = index.astype(np.int64)
        index = np.where(index < 0, index + size, index)
    return tensor_from_numpy(index.astype(np.int64))


# ---- storing ------------------------------------------------------------------------------------


def _as_value(value: object, dtype: dtypes.DType) -> Tensor:
    """Returns what is stored as a tensor of ``dtype``."""
    if isinstance(value, Tensor):
        return value if value.aval.dtype is dtype else F.cast(value, dtype)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return F.stack([_as_value(v, dtype) for v in value])
    if value.__class__ in (int, float, bool):
        return tensor_from_numpy(np.asarray(value).astype(dtype.numpy))
    return tensor_from_numpy(to_array(value, dtype))


def _drop_leading(value: Tensor, ndim: int) -> Tensor:
    """Removes leading axes of size 1 that the region does not have, as NumPy does."""
    extra = value.ndim - ndim
    if extra > 0 and all(d == 1 for d in value.aval.shape[:extra]):
        return basic_index(value, (0,) * extra)
    return value


def _update_advanced(
    x: Tensor, advanced: list[tuple[int, Tensor | np.ndarray]], value: Tensor, mode: str
) -> Tensor:
    """Stores at advanced indices of ``x``."""
    if mode == "set" and len(advanced) == 1 and _is_bool(advanced[0][1]):
        axis, mask = advanced[0]
        found = _update_masked(x, axis, mask, value)
        if found is not None:
            return found
    axes, indices = _as_integers(advanced, x.aval.shape)
    batch = rules.broadcast_shapes(*(i.aval.shape for i in indices))
    ndim = len(gathered_shape(x.aval.shape, batch, axes)) if axes else x.ndim
    return index_update(x, _drop_leading(value, ndim), *indices, axes=axes, mode=mode)


def _update_masked(x: Tensor, axis: int, mask: Tensor | np.ndarray, value: Tensor) -> Tensor | None:
    """Stores where a mask is set, when the value is the same for every selected position.

    Returns ``None`` when the value has one entry per selected position.
    """
    sizes = x.aval.shape[axis : axis + mask.ndim]
    if tuple(mask.shape) != tuple(sizes):
        return None  # the general path raises
    after = x.ndim - axis - mask.ndim
    if value.ndim > after and not is_one(value.aval.shape[value.ndim - after - 1]):
        return None
    mask = mask if isinstance(mask, Tensor) else tensor_from_numpy(mask)
    if after:
        mask = basic_index(mask, (*[WHOLE] * mask.ndim, *[None] * after))
    if value.ndim > after:
        value = _drop_leading(value, axis + 1 + after)
        before = value.ndim - after - 1
        value = basic_index(value, (*[WHOLE] * before, *[None] * (mask.ndim - after), 0))
    return F.where(mask, F.broadcast_to(value, x.shape), x)
