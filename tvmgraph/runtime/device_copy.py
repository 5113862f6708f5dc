"""Memory on a GPU: blocks, copies, and the errors that TVM's runtime reports about them."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from tvmgraph.runtime import cuda, host

if TYPE_CHECKING:
    import tvm_ffi

_CUDA = 2  # DLPack's number
_VECTOR = 16  # bytes: kernels access memory in vectors of this size
_inside = threading.local()


def current_handle(index: int) -> int:
    """Returns the address of the stream that this thread's work on a GPU goes to.

    Args:
        index: Which GPU.
    """
    import tvm_ffi

    return int(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda", index)) or 0)


def set_current(index: int, handle: int) -> int:
    """Sends this thread's later work on a GPU to a stream; returns that of before.

    Args:
        index: Which GPU.
        handle: The address of the stream, 0 for the default one.
    """
    from tvm_ffi.core import _env_set_current_stream

    return int(_env_set_current_stream(_CUDA, index, handle) or 0)


def allocate(shape: tuple[int, ...], dtype: str, index: int) -> tvm_ffi.Tensor:
    """Returns uninitialised memory on a GPU as TVM's tensor.

    Args:
        shape: Its shape.
        dtype: NumPy's name of its type.
        index: Which GPU.

    Raises:
        DeviceError: if there is not that much memory, or no usable GPU.
    """
    ffi = host.load_cuda()
    make = ffi.get_global_func("runtime.TVMTensorAllocWithScope")
    try:
        return make(ffi.Shape(shape), ffi.dtype(dtype), ffi.device("cuda", index), None)
    except Exception as e:
        raise translated(e, math.prod(shape) * ffi.dtype(dtype).itemsize) from e


def upload(array: np.ndarray, index: int) -> tvm_ffi.Tensor:
    """Copies an array to a GPU; returns TVM's tensor.

    Args:
        array: Elements on the host, in row-major order.
        index: Which GPU.
    """
    array = np.require(array, requirements="C")  # ascontiguousarray lifts 0-d to 1-d
    handle = allocate(array.shape, array.dtype.name, index)
    if array.nbytes:
        source, stream = array.ctypes.data, current_handle(index)
        cuda.copy(handle.data_ptr(), source, array.nbytes, cuda.TO_DEVICE, stream)
    return handle


def download(handle: tvm_ffi.Tensor) -> np.ndarray:
    """Copies a tensor on a GPU to the host, after everything that computes it.

    Args:
        handle: TVM's view of the tensor.
    """
    array = np.empty(tuple(handle.shape), _numpy_dtype(str(handle.dtype)))
    if array.nbytes:
        index = handle.device.index
        cuda.select(index)  # the default stream is that of the thread's device
        stream = current_handle(index)
        cuda.copy(array.ctypes.data, handle.data_ptr(), array.nbytes, cuda.TO_HOST, stream)
    return array


def duplicate(handle: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    """Copies a tensor on a GPU to other memory of the same GPU.

    Args:
        handle: TVM's view of the tensor.
    """
    index = handle.device.index
    made = allocate(tuple(handle.shape), str(handle.dtype), index)
    nbytes = math.prod(handle.shape) * made.dtype.itemsize
    if nbytes:
        stream = current_handle(index)
        cuda.copy(made.data_ptr(), handle.data_ptr(), nbytes, cuda.ON_DEVICE, stream)
    return made


def aligned(handle: tvm_ffi.Tensor) -> tvm_ffi.Tensor:
    """Returns another library's tensor where kernels can read it, as a copy if they cannot.

    Memory begins at multiples of 256 bytes, but a slice of it need not.

    Args:
        handle: A tensor that came by DLPack.
    """
    return duplicate(handle) if handle.data_ptr() % _VECTOR else handle


def _numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def keep_error(error: Exception) -> None:
    """Keeps an error of Python code that compiled code calls: TVM only hands on its text.

    Args:
        error: What it raised; :func:`translated` hands it on.
    """
    _inside.error = error


def translated(error: Exception, wanted: int = 0) -> Exception:
    """Returns the error to raise for one of TVM's runtime.

    Args:
        error: What TVM raised.
        wanted: Bytes that were asked for, if memory was.
    """
    inside = _inside.__dict__.pop("error", None)
    if inside is not None:
        return inside
    text = str(error)
    if "out of memory" in text or "OUT_OF_MEMORY" in text:
        return cuda.out_of_memory(wanted)
    if "NO_BINARY_FOR_GPU" in text or "no kernel image" in text:
        return cuda.fail(
            "the compiled code has no machine code for this GPU",
            "compile it for this GPU's architecture; ms.hal.get_device_capability() says which",
        )
    if "CUDA" in text or "cuda" in text:
        lines = [line.strip() for line in text.splitlines() if "CUDA" in line or "cuda" in line]
        return cuda.fail(
            f"the GPU failed: {lines[-1]}",
            "the process must be started again; compute-sanitizer finds illegal accesses",
        )
    return error
