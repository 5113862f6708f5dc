"""Loading and starting compiled modules with nothing but TVM's runtime library.

``import tvm`` takes most of a second and loads the compiler. To run a module that is there already
only ``tvm_ffi`` and ``libtvm_runtime`` are needed, which take a few hundredths of a second.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tvmgraph.errors import TooFewElements, require_size
from tvmgraph.forking import enters_compiled
from tvmgraph.machine.tiles import permit_tiles
from tvmgraph.runtime import host, pool
from tvmgraph.runtime.ffi import tvm_ffi
from tvmgraph.runtime.workers import affinity

if TYPE_CHECKING:
    import tvm_ffi

T = TypeVar("T")

#: What compiled code calls to check a size that varies; it gives its first argument back.
AT_LEAST = "tvmgraph.at_least"
tvm_ffi.register_error("KeyboardInterrupt", KeyboardInterrupt)  # raised in a callback of TVM's
tvm_ffi.register_error(TooFewElements.__name__, TooFewElements)

_HOST = 1  # DLPack's number of the CPU
_POOLED_ALLOCATOR = 2  # keeps freed blocks for the next call


def _at_least(tensor: T, sizes: tvm_ffi.Shape, *likes: T) -> T:
    require_size(*sizes)
    return tensor


tvm_ffi.register_global_func(AT_LEAST, _at_least, override=True)


@functools.cache
def use_runtime() -> None:
    """Loads TVM's runtime library, unless the whole of TVM is loaded already."""
    if "tvm" not in sys.modules:
        host.ffi()


def use_cuda_runtime() -> None:
    """Loads TVM's runtime library and the part of it that drives CUDA devices.

    Raises:
        DeviceError: if it is missing, or there is no usable driver.
    """
    use_runtime()
    host.load_cuda()


@enters_compiled
def load(path: str | Path) -> tvm_ffi.Module:
    """Returns the module in a shared library.

    Args:
        path: The library's file.
    """
    use_runtime()
    permit_tiles()  # its code may use them
    return pool.load(str(path))


@enters_compiled
def start(module: tvm_ffi.Module, device: tvm_ffi.Device) -> tvm_ffi.Module:
    """Returns a virtual machine over a module; one thread at a time may use it.

    Args:
        module: A loaded module, or what the compiler built in memory.
        device: Where its tensors live.
    """
    # Not through Executable.jit(): the empty source that stands for no kernels would take a linker.
    machine = getattr(module, "mod", module)["vm_load_executable"]()
    devices = [(device.dlpack_device_type(), device.index)]
    if devices[0][0] != _HOST:  # shapes live on the host
        devices.append((_HOST, 0))
    machine["vm_initialization"](*[x for d in devices for x in (*d, _POOLED_ALLOCATOR)])
    affinity()  # starts the workers
    return machine


def view(tensor: tvm_ffi.Tensor, dtype: str) -> tvm_ffi.Tensor:
    """Returns a tensor's elements as another type of the same size, without a copy.

    Args:
        tensor: A tensor of TVM's on the CPU.
        dtype: The other type.
    """
    use_runtime()
    return host.view(tensor, dtype)
