"""Eager changes of tensors in place: elements are written over where nobody else sees them.

An in-place operation gives a tensor new elements, and whoever took the old ones before keeps them:
a tape, a compiled call, a view, NumPy code. Where there is nobody, which reference counts tell, a
part is written without copying the rest.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Protocol, TypeGuard

import numpy as np

from tvmgraph import dtypes
from tvmgraph.config.flag_registry import active
from tvmgraph.core.arguments import is_tuple
from tvmgraph.core.op import OPS, F
from tvmgraph.core.state import note_write, state, turn
from tvmgraph.core.storage import aligned_copy, aligned_empty
from tvmgraph.core.types import TensorType
from tvmgraph.errors import TvmgraphError


class Stored(Protocol):
    """What a tensor is for those who write to it; see :class:`~tvmgraph.core.tensor.Tensor`."""

    array: np.ndarray
    aval: TensorType

    @property
    def _device(self) -> object: ...

    def _bind(self, array: np.ndarray) -> None: ...

    def _forget(self) -> None: ...


class _UnknownError(Exception):
    """An index or a value that operators have to look at."""


def write_at(tensor: Stored, index: object, value: object) -> bool:
    """Stores a value at an index of a tensor's own elements, with NumPy's rules.

    Args:
        tensor: What is changed.
        index: Integers, slices, ``None``, ``...``, integer and bool tensors or arrays, or a tuple
            of these.
        value: Tensor, NumPy array or number that broadcasts to the region.

    Returns:
        Whether it was stored. It was not where operators must do it because somebody follows
        them, and where the index or the value is wrong, which operators say.
    """
    if not _is_eager(tensor):
        return False
    try:
        key, given = _key(index, tensor), _elements(value, tensor.aval.dtype)
    except (_UnknownError, TvmgraphError):
        return False
    if given.ndim == 0 and isinstance(key, np.ndarray) and key.dtype == np.bool_:
        return False  # `where` of all elements takes less than looking which ones are meant
    with turn:
        shared = _own(tensor)
        try:
            tensor.array[key] = given  # pyright: ignore
        except (IndexError, ValueError):
            if shared is not None:
                tensor._bind(shared)  # pyright: ignore[reportPrivateUsage]
            return False
    return True


def fill(tensor: Stored, value: object) -> bool:
    """Gives all elements of a tensor the value of a number; returns whether it could.

    Args:
        tensor: What is changed.
        value: The number.
    """
    if value.__class__ not in _NUMBERS or not _is_eager(tensor):
        return False
    given = _elements(value, tensor.aval.dtype)
    with turn:
        _own(tensor, kept=False)
        tensor.array.fill(given)
    return True


def compute_over(tensor: Stored, name: str, args: tuple[object, ...]) -> bool:
    """Stores the result of an operator on a tensor over its elements.

    Args:
        tensor: The first operand.
        name: The operator.
        args: Further operands.

    Returns:
        Whether it was stored, as of :func:`write_at`.
    """
    op, dtype = OPS.get(name), tensor.aval.dtype
    ufunc = getattr(op and op.eager, "__wrapped__", None)
    if op is None or not op.traits.cheap or not isinstance(ufunc, np.ufunc):
        return False  # machine code may round what takes more than an instruction differently
    if dtype not in (dtypes.float32, dtypes.float64) or not _is_eager(tensor):
        return False
    try:
        others = [_elements(a, dtype) for a in args if getattr(a, "dtype", dtype) is dtype]
    except _UnknownError:
        return False
    if len(others) != ufunc.nin - 1 or not all([_fits(o.shape, tensor) for o in others]):
        return False
    with turn, np.errstate(all="ignore"):
        _own(tensor)
        ufunc(tensor.array, *others, out=tensor.array)
    return True


def _fits(shape: tuple[int, ...], tensor: Stored) -> bool:
    """Whether a shape broadcasts to that of a tensor."""
    whole = tensor.aval.shape
    if not shape or shape == whole:
        return True
    last = whole[-len(shape) :]
    return len(last) == len(shape) and all([a in (1, b) for a, b in zip(shape, last)])


def is_held(tensor: Stored) -> bool:
    """Whether others than a tensor refer to its array or, as every view of it does, its base.

    Args:
        tensor: A tensor with an array.
    """
    array, base, of_base = _references(tensor)
    if base is None:
        return array > _ALONE[0]
    owns = base.__class__ is np.ndarray and base.base is None
    return not owns or array > _ALONE[0] or of_base > _ALONE[2]


def _references(tensor: Stored | _Alone) -> tuple[int, np.ndarray | None, int]:
    """How many refer to a tensor's array, what the array is a view of, how many refer to that."""
    array = tensor.array
    base = array.base
    return getrefcount(array), base, getrefcount(base)


class _Alone:
    """Refers to an array as a tensor does."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


_ALONE = _references(_Alone(aligned_copy(np.zeros(1))))

_NUMBERS = (int, float, bool)


def _is_eager(tensor: Stored) -> bool:
    """Whether a change is nobody's business, and the elements are the host's and the tensor's."""
    followed = state.interpreter is not None or state.tapes or state.paused or active.watches_eager
    return not followed and _is_on_host(tensor) and not _is_view(tensor)


def _is_view(tensor: Stored) -> bool:
    """Whether a change of a tensor is one of the tensor that it was taken out of, too."""
    return isinstance(getattr(tensor, "_base", None), tuple)


def _is_on_host(value: object) -> TypeGuard[Stored]:
    """Whether this is a tensor with elements on the host."""
    kind = getattr(value, "aval", None)
    if kind.__class__ is not TensorType or value._device is not None:  # pyright: ignore
        return False
    return kind.is_static  # pyright: ignore


def _own(tensor: Stored, kept: bool = True) -> np.ndarray | None:
    """Gives a tensor elements that it alone has, to be written to.

    Args:
        tensor: The tensor; it gets storage of its own where others see its elements.
        kept: Whether the elements must stay as they are.

    Returns:
        The elements that it shared until now, if it did.
    """
    bind = tensor._bind  # pyright: ignore[reportPrivateUsage]
    flags = tensor.array.flags  # may view what compiled code returned, which is dropped then
    tensor._forget()  # pyright: ignore[reportPrivateUsage]
    fits = flags.c_contiguous and flags.writeable
    del flags
    shared = None
    if not fits or is_held(tensor):
        shared = tensor.array
        bind(aligned_copy(shared) if kept else aligned_empty(shared.shape, shared.dtype))
    note_write()
    return shared


def _elements(value: object, dtype: dtypes.DType) -> np.ndarray:
    """Returns what is stored, as an array of a dtype."""
    if _is_on_host(value):
        return (value if value.aval.dtype is dtype else F.cast(value, dtype)).array
    if value.__class__ in _NUMBERS:
        return np.asarray(value).astype(dtype.numpy)
    if isinstance(value, np.ndarray) and value.dtype == dtype.numpy:
        return value
    raise _UnknownError


def _key(index: object, tensor: Stored) -> object:
    """Returns an index as NumPy takes it."""
    if is_tuple(index):
        return tuple([_key(i, tensor) for i in index])
    if index.__class__ is int or index is None or index is ...:
        return index
    if isinstance(index, slice):
        if all([b is None or b.__class__ is int for b in (index.start, index.stop, index.step)]):
            return index
    elif _is_on_host(index):
        if index is not tensor:
            return _positions(index.array)
    elif isinstance(index, np.ndarray):
        return _positions(index)
    raise _UnknownError


def _positions(index: np.ndarray) -> np.ndarray:
    """Returns an index array; bools and floats of no axes are errors, which operators raise."""
    if index.dtype.kind in "iu" or (index.dtype.kind == "b" and index.ndim):
        return index
    raise _UnknownError
