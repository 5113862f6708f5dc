"""Arrays of tensors that NumPy code got: whether it may still write to them."""

from __future__ import annotations

from tvmgraph.core.in_place import is_held
from tvmgraph.core.state import note_write
from tvmgraph.core.storage import is_lent, take_back
from tvmgraph.core.tensor import Tensor, has_array, renew


def may_change(tensor: Tensor) -> bool:
    """Whether NumPy code holds the elements and may write to them at any time.

    Elements that nobody holds any more are the tensor's own again, with whatever was written.

    Args:
        tensor: Any tensor.
    """
    if not has_array(tensor) or not is_lent(tensor.array):
        return False
    if tensor._device is not None or is_held(tensor):  # pyright: ignore[reportPrivateUsage]
        return True
    take_back(tensor.array)
    renew(tensor)
    note_write()
    return False
