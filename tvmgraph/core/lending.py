"""Arrays of tensors that NumPy code got: whether it may still write to them."""

from __future__ import annotations

from sys import getrefcount

import numpy as np

from tvmgraph.core.state import note_write
from tvmgraph.core.storage import aligned_copy, is_lent, take_back
from tvmgraph.core.tensor import Tensor, has_array, renew, stored_array, tensor_from_numpy


def may_change(tensor: Tensor) -> bool:
    """Whether NumPy code holds the elements and may write to them at any time.

    Elements that nobody holds any more are the tensor's own again, with whatever was written.
    """
    if not has_array(tensor) or not is_lent(tensor.array):
        return False
    if tensor._device is not None or _is_held(tensor):  # pyright: ignore[reportPrivateUsage]
        return True
    take_back(tensor.array)
    renew(tensor)
    note_write()
    return False


def _is_held(tensor: Tensor) -> bool:
    """Whether others than the tensor refer to its array or, as every view of it does, its base."""
    array, base, of_base = _references(tensor)
    if base is None:
        return array > _ALONE[0]
    owns = base.__class__ is np.ndarray and base.base is None
    return not owns or array > _ALONE[0] or of_base > _ALONE[2]


def _references(tensor: Tensor) -> tuple[int, np.ndarray | None, int]:
    """How many refer to a tensor's array, what the array is a view of, how many refer to that."""
    array = stored_array(tensor)
    base = array.base
    return getrefcount(array), base, getrefcount(base)


_ALONE = _references(tensor_from_numpy(aligned_copy(np.zeros(1))))

__all__ = ["may_change"]
