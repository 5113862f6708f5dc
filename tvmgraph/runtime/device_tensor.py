"""Tensors on a CUDA device: their storage, the copies to and from it, and what is counted.

A tensor's storage is never written to, so it may be in two places at once: what compiled code reads
is copied to the device when it is needed there and kept beside the host's copy, and elements that
Python looks at are copied back. Every copy is counted, by whether somebody asked for it.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import tvm_ffi

from tvmgraph.core.lending import may_change
from tvmgraph.core.tensor import Tensor
from tvmgraph.core.types import TensorType, tensor_type
from tvmgraph.errors import DeviceError, reject
from tvmgraph.runtime import native
from tvmgraph.runtime.device_copy import aligned, download, duplicate, upload

_new = object.__new__


@dataclass
class CopyCounts:
    """Copies between host and device.

    Attributes:
        to_device: Number of copies to the device.
        to_device_bytes: Their size.
        to_host: Number of copies to the host.
        to_host_bytes: Their size.
        implicit: How many of all nobody asked for.
    """

    to_device: int = 0
    to_device_bytes: int = 0
    to_host: int = 0
    to_host_bytes: int = 0
    implicit: int = 0


@dataclass
class _Use:
    """Bytes of one device's memory that tensors hold.

    Blocks go away at any time, also while one is counted; they queue up until the next count.
    """

    held: int = 0
    peak: int = 0
    gone: deque[int] = field(default_factory=deque)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, nbytes: int) -> None:
        """Counts a block."""
        with self.lock:
            while self.gone:
                self.held -= self.gone.popleft()
            self.held += nbytes
            if self.held > self.peak:
                self.peak = self.held

    @property
    def now(self) -> int:
        """What is held now."""
        self.add(0)
        return self.held


copies = CopyCounts()
_use: dict[int, _Use] = {}


def use_of(index: int) -> _Use:
    """Returns what tensors hold of a device.

    Args:
        index: Which GPU.
    """
    found = _use.get(index)
    return _use.setdefault(index, _Use()) if found is None else found


class DeviceStorage:
    """Elements on a device.

    Args:
        handle: TVM's view of them.
        type: Their shape and dtype.
        index: The device.
        copied: Whether they are only a copy of the host's, where the tensor lives.

    Attributes:
        handle: TVM's view of them.
        type: Their shape and dtype.
        index: The device.
        copied: Whether they are only a copy.
    """

    __slots__ = ("_gone", "_nbytes", "copied", "handle", "index", "type")

    def __init__(
        self, handle: tvm_ffi.Tensor, type: TensorType, index: int, copied: bool = False
    ) -> None:
        self.handle, self.type, self.index, self.copied = handle, type, index, copied
        use = use_of(index)
        self._nbytes, self._gone = type.size * type.dtype.itemsize, use.gone
        use.add(self._nbytes)

    def __del__(self) -> None:
        self._gone.append(self._nbytes)

    def numpy(self, implicit: bool = True) -> np.ndarray:
        """Copies the elements to the host, after everything that computes them.

        Args:
            implicit: Whether nobody asked for the copy.
        """
        array = download(self.handle)
        copies.to_host += 1
        copies.to_host_bytes += array.nbytes
        copies.implicit += implicit
        return array


def to_device(tensor: Tensor, index: int, implicit: bool = True) -> DeviceStorage:
    """Copies a tensor's elements to a device.

    Args:
        tensor: The tensor; it keeps a copy that nobody asked for, for the next time.
        index: The device.
        implicit: Whether nobody asked for the copy.

    Raises:
        DeviceError: if the tensor lives on another device and nobody asked, or there is no memory.
    """
    home = tensor._device
    if implicit and home is not None and not home.copied:
        reject(DeviceError, "cuda", f"operands are on GPU:{home.index} and GPU:{index}",
               fix=f"move one with .to('GPU:{index}')")  # fmt: skip
    handle = upload(tensor.array, index)
    copies.to_device += 1
    copies.to_device_bytes += tensor.nbytes
    copies.implicit += implicit
    storage = DeviceStorage(handle, tensor.aval, index, copied=implicit)
    if implicit and not may_change(tensor):  # others may write to an array that they hold
        tensor._device = storage
    return storage


def copy_on(tensor: Tensor, index: int) -> Tensor:
    """Returns a tensor on a device whose memory nothing else refers to.

    Args:
        tensor: A tensor anywhere.
        index: Which GPU.
    """
    if not tensor.on_gpu or tensor._device.index != index:
        return wrap(to_device(tensor, index, implicit=False).handle, tensor.aval)
    return wrap(duplicate(tensor._device.handle), tensor.aval)


def handle_on(tensor: Tensor, index: int) -> tvm_ffi.Tensor:
    """Returns TVM's view of a tensor's elements on a device, copying them there if need be.

    Args:
        tensor: A tensor anywhere.
        index: Which GPU.
    """
    found = tensor._device
    if found is None or found.index != index or (found.copied and may_change(tensor)):
        return to_device(tensor, index).handle
    return found.handle


def wrap(handle: tvm_ffi.Tensor, type: TensorType) -> Tensor:
    """Returns a tensor of what compiled code returned on a device.

    Args:
        handle: A tensor of TVM's.
        type: Its type in the graph.
    """
    if not type.is_static:
        type = type.with_shape(tuple(handle.shape))
    tensor = _new(Tensor)
    tensor.aval, tensor._token, tensor._ffi = type, None, None
    tensor._device = DeviceStorage(handle, type, handle.device.index)
    return tensor


def adopt(capsule: object) -> Tensor:
    """Returns a tensor over another library's memory on a GPU, without a copy.

    Memory that is not aligned to 16 bytes, such as most slices, is copied: kernels read vectors.

    Args:
        capsule: Any object with ``__dlpack__``.

    Raises:
        DeviceError: if the memory is not contiguous.
    """
    native.use_cuda_runtime()
    handle = tvm_ffi.from_dlpack(capsule)
    if not handle.is_contiguous():
        reject(DeviceError, "from_dlpack", "a tensor on a GPU must be contiguous",
               f"shape={tuple(handle.shape)}, strides={tuple(handle.strides)}",
               "make it contiguous in the other library first")  # fmt: skip
    return wrap(aligned(handle), tensor_type(tuple(handle.shape), str(handle.dtype)))
