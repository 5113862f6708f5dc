"""Which parameters compiled code may write to in place.

Storage that anybody else can see is never written to: arrays given out, snapshots, views. A
parameter whose storage was made by compiled code, and that nobody has looked at since, is written
to in place; of any other a copy is, which then becomes the parameter's storage.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from tvmgraph.core.storage import aligned_copy
from tvmgraph.core.tensor import Tensor, has_array, tensor_from_numpy

#: Who refers to such storage: the parameter, and the machine whose result it was.
_OWNERS = 2


def for_writing(args: Sequence[Tensor], places: Sequence[int], consume: bool) -> list[Tensor]:
    """Returns arguments of which those at ``places`` may be written to.

    Args:
        args: The arguments of compiled code.
        places: Which of them it writes to.
        consume: Whether the caller drops their present values; otherwise all are copied.
    """
    given = list(args)
    for i in places:
        if not (consume and _is_exclusive(given[i])):
            given[i] = tensor_from_numpy(aligned_copy(given[i].array), given[i].aval)
    return given


def for_writing_on(
    args: Sequence[Tensor], places: Sequence[int], consume: bool, index: int
) -> list[Tensor]:
    """The same for code that runs on a GPU, where the arguments then are.

    Args:
        args: The arguments of a call.
        places: Numbers of those that the code overwrites.
        consume: Whether their memory may be overwritten, because nobody reads the old values.
        index: Which GPU.
    """
    from tvmgraph.runtime.device_tensor import copy_on

    given = list(args)
    for i in places:
        if not (consume and given[i].on_gpu and _is_exclusive(given[i])):
            given[i] = copy_on(given[i], index)
    return given


def share(tensors: Sequence[Tensor]) -> None:
    """Notes that a call reads tensors which may go on while another one writes to them.

    Args:
        tensors: The arguments of the call.
    """
    for tensor in tensors:
        if tensor._exclusive is not None:
            tensor._exclusive = None


def _is_exclusive(tensor: Tensor) -> bool:
    handle = tensor._exclusive
    stored = tensor._device.handle if tensor._device is not None else tensor._ffi
    if handle is None or handle is not stored or has_array(tensor):
        return False
    # the object starts with its reference count, see TVMFFIObject in tvm/ffi/c_api.h
    return ctypes.c_uint32.from_address(handle.__chandle__()).value <= _OWNERS
