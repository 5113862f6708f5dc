"""The NVIDIA GPUs of this machine, through the driver's and the runtime's C interfaces.

Nothing here loads TVM: whether there is a device, and which, is known in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path

from tvmgraph.errors import DeviceError
from tvmgraph.machine.targets import target_names, target_table

#: The driver must know at least the version of CUDA that the runtime library is of.
REQUIRED = (13, 0)
_REQUIRED_DRIVER = "580"
_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16  # CU_DEVICE_ATTRIBUTE_*
_SHARED_PER_BLOCK, _CLOCK, _L2 = 97, 13, 38
_NO_DEVICE, _DRIVER_TOO_OLD, _NO_MEMORY = 100, (35, 36, 803), 2
#: CUDA's runtime library.
RUNTIME = "libcudart.so.13"
_DRIVER = "libcuda.so.1"

_ON_CPU = "choose the CPU with set_context(device_target='CPU')"


@dataclass(frozen=True)
class Device:
    """One GPU.

    Attributes:
        index: Its number.
        name: The product.
        capability: Compute capability, ``(9, 0)``.
        memory: Bytes of device memory.
        multiprocessors: Streaming multiprocessors.
        l2_bytes: Second-level cache.
        shared_per_block: Bytes of shared memory that one block may ask for.
        clock: Highest clock of its multiprocessors in Hz.
    """

    index: int
    name: str
    capability: tuple[int, int]
    memory: int
    multiprocessors: int
    l2_bytes: int
    shared_per_block: int
    clock: float = 0.0

    def __str__(self) -> str:
        major, minor = self.capability
        return f"{self.name} (GPU:{self.index}, compute capability {major}.{minor})"


def fail(message: str, fix: str, got: str | None = None) -> DeviceError:
    """Returns the error for a device that cannot be used.

    Args:
        message: What is wrong.
        fix: What to do about it.
        got: What was found instead, if that says more.
    """
    return DeviceError(message, op="cuda", got=got, fix=fix)


# ---- what is there ------------------------------------------------------------------------------


@functools.cache
def _driver() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_DRIVER)
    except OSError as e:
        raise fail(
            f"no NVIDIA driver was found ({_DRIVER})",
            f"install NVIDIA's driver {_REQUIRED_DRIVER} or newer on a machine with a GPU, or "
            + _ON_CPU,
        ) from e
    status = library.cuInit(0)
    if status:
        raise _start_failure(library, status)
    version = c_int()
    library.cuDriverGetVersion(byref(version))
    if _version(version.value) < REQUIRED:
        raise _too_old(version.value)
    return library


def _start_failure(library: ctypes.CDLL, status: int) -> DeviceError:
    version = c_int()
    library.cuDriverGetVersion(byref(version))
    if status in _DRIVER_TOO_OLD:
        return _too_old(version.value)
    if status == _NO_DEVICE:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        hidden = f"CUDA_VISIBLE_DEVICES={visible!r}" if visible is not None else None
        fix = f"check nvidia-smi and CUDA_VISIBLE_DEVICES, or {_ON_CPU}"
        return fail("the NVIDIA driver sees no GPU", fix, hidden)
    return fail(
        f"the NVIDIA driver does not start: {_driver_text(library, status)}",
        "check nvidia-smi; after an update of the driver the machine must be restarted",
    )


def _driver_text(library: ctypes.CDLL, status: int) -> str:
    text = c_char_p()
    library.cuGetErrorString(status, byref(text))
    return f"{text.value.decode() if text.value else 'unknown error'} ({status})"


def _too_old(version: int) -> DeviceError:
    have, need = (".".join(map(str, v)) for v in (_version(version), REQUIRED))
    return fail(
        f"the NVIDIA driver is too old: it supports CUDA {have}, {need} is needed",
        f"update the driver to {_REQUIRED_DRIVER} or newer, or {_ON_CPU}",
    )


def _version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10


@functools.cache
def devices() -> tuple[Device, ...]:
    """Returns the GPUs of this machine.

    Raises:
        DeviceError: without a driver, or with one that is too old.
    """
    library, count = _driver(), c_int()
    _check(library, library.cuDeviceGetCount(byref(count)))
    return tuple(_describe(library, i) for i in range(count.value))


def _describe(library: ctypes.CDLL, index: int) -> Device:
    handle, name, memory = c_int(), ctypes.create_string_buffer(256), c_size_t()
    _check(library, library.cuDeviceGet(byref(handle), index))
    _check(library, library.cuDeviceGetName(name, len(name), handle))
    _check(library, library.cuDeviceTotalMem_v2(byref(memory), handle))

    def attribute(number: int) -> int:
        value = c_int()
        _check(library, library.cuDeviceGetAttribute(byref(value), number, handle))
        return value.value

    return Device(
        index, name.value.decode(), (attribute(_MAJOR), attribute(_MINOR)), memory.value,
        attribute(_MULTIPROCESSORS), attribute(_L2), attribute(_SHARED_PER_BLOCK),
        attribute(_CLOCK) * 1e3,
    )  # fmt: skip


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        raise fail(f"the NVIDIA driver failed: {_driver_text(library, status)}", "check nvidia-smi")


def device(index: int = 0) -> Device:
    """Returns one GPU.

    Args:
        index: Which GPU, from 0.

    Raises:
        DeviceError: if there is none of that number.
    """
    found = devices()
    if not found:
        raise fail("this machine has no NVIDIA GPU", _ON_CPU)
    if not 0 <= index < len(found):
        raise fail(
            f"there is no GPU:{index}", f"use device_id 0 to {len(found) - 1}",
            f"{len(found)} GPU(s)",
        )  # fmt: skip
    return found[index]


def is_available() -> bool:
    """Whether there is a GPU that can be used."""
    try:
        return bool(devices())
    except DeviceError:
        return False


# ---- which code fits ----------------------------------------------------------------------------


def fits(arch: str, capability: tuple[int, int]) -> bool:
    """Whether code for an architecture runs on a device.

    Machine code runs on devices of the same major version that are not older; the PTX beside it on
    any later one. Code with architecture-specific instructions (``sm_90a``) runs on that one only.

    Args:
        arch: Such as ``"sm_80"`` or ``"sm_90a"``.
        capability: The device's compute capability, such as ``(9, 0)``.
    """
    number = arch.removeprefix("sm_")
    made = int(number.rstrip("af"))
    have = capability[0] * 10 + capability[1]
    return have == made if number[-1] in "af" else have >= made


def check_arch(arch: str, device: Device) -> None:
    """Raises if code does not run on a device.

    Args:
        arch: The architecture it was made for, or several with commas between them.
        device: The device.

    Raises:
        DeviceError: if it does not fit.
    """
    if not any(fits(a, device.capability) for a in arch.split(",")):
        major, minor = device.capability
        raise fail(
            f"code for {arch} does not run on {device}",
            f"compile for sm_{major}{minor}: export with target='sm_{major}{minor}', or leave the "
            "target to the device",
        )


@functools.cache
def rows() -> dict[str, int]:
    """The CUDA rows of ``configs/targets.toml``: their names with their architectures' numbers."""
    table = target_table()
    arches = {name: table[name]["arch"] for name in target_names("cuda")}
    return {name: int(arch.removeprefix("sm_").rstrip("af")) for name, arch in arches.items()}


def row_of(device: Device) -> str:
    """Returns the name of the target whose code suits a device best.

    Args:
        device: The device.

    Raises:
        DeviceError: if the device is older than all of them.
    """
    fitting = [(number, name) for name, number in rows().items() if fits(name, device.capability)]
    if not fitting:
        raise fail(
            f"{device} is too old", f"compute capability {min(rows().values()) / 10:.1f} is needed"
        )
    return max(fitting)[1]


def target_of(index: int) -> str:
    """Returns the name of the target whose code suits one GPU of this machine best.

    Args:
        index: Which GPU.
    """
    return row_of(device(index))


# ---- CUDA's runtime library ---------------------------------------------------------------------


def runtime_folders() -> list[Path]:
    """Where CUDA's runtime may be if the loader does not know.

    PyPI packages, CUDA's folder, and beside TVM's runtime in a bundle.
    """
    folders: list[Path] = []
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folders += sorted(Path(place).glob("*/lib"))
    installed = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64"
    return [*folders, installed, Path(__file__).parent / "lib"]


@functools.cache
def runtime() -> ctypes.CDLL:
    """Returns CUDA's runtime library.

    Raises:
        DeviceError: if it is not installed, or the driver cannot be used.
    """
    _driver()
    for name in (RUNTIME, *(str(f / RUNTIME) for f in runtime_folders())):
        try:
            return ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    raise fail(
        f"CUDA's runtime library was not found ({RUNTIME})",
        "pip install 'tvmgraph[cuda]', or install CUDA 13",
    )


def call(name: str, *args: object) -> None:
    """Calls a function of CUDA's runtime library.

    Args:
        name: The function, such as ``"cudaMemcpyAsync"``.
        args: Its arguments as ctypes takes them.

    Raises:
        DeviceError: if it fails.
    """
    library = runtime()
    status = getattr(library, name)(*args)
    if status:
        library.cudaGetLastError()  # what was reported must not be reported again
        raise failure(name, status)


def failure(name: str, status: int) -> DeviceError:
    """Returns the error for a function of CUDA's runtime library that failed.

    Args:
        name: The function.
        status: What it returned, a ``cudaError_t``.
    """
    text = runtime().cudaGetErrorString
    text.restype = c_char_p
    message = f"{name} failed: {(text(status) or b'unknown error').decode()} ({status})"
    if status == _NO_MEMORY:
        return out_of_memory()
    if status in _DRIVER_TOO_OLD:
        return fail(message, f"update the NVIDIA driver to {_REQUIRED_DRIVER} or newer")
    return fail(
        message, "after an illegal access the process must be started again; run the kernel with "
        "compute-sanitizer to find it",
    )  # fmt: skip


def out_of_memory(wanted: int = 0) -> DeviceError:
    """Returns the error for memory that the device does not have.

    Args:
        wanted: Bytes that were asked for.
    """
    asked = f"{wanted / 2**20:.1f} MiB were asked for" if wanted else None
    return fail(
        "the GPU is out of memory",
        "use a smaller batch, half precision or recomputation; ms.runtime.empty_cache() returns "
        "blocks that are kept for reuse; ms.runtime.memory_summary() says who holds what",
        asked,
    )


def select(index: int) -> None:
    """Makes a device that of this thread.

    Args:
        index: Which GPU.
    """
    call("cudaSetDevice", c_int(index))


def memory_info(index: int) -> tuple[int, int]:
    """Returns free and total bytes of a device, as the driver sees them.

    Args:
        index: Which GPU.
    """
    free, total = c_size_t(), c_size_t()
    select(index)
    call("cudaMemGetInfo", byref(free), byref(total))
    return free.value, total.value


#: cudaStreamNonBlocking: it does not wait for the default stream.
NON_BLOCKING = 1
#: Kinds of cudaMemcpy.
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3


def copy(target: int, source: int, nbytes: int, kind: int, stream: int = 0) -> None:
    """Copies memory after everything that was given to a stream before.

    A copy from or to the host is finished when this returns; one on the device need not be.

    Args:
        target: Address to copy to.
        source: Address to copy from.
        nbytes: Bytes to copy.
        kind: CUDA's ``cudaMemcpyKind``: from host or device, to host or device.
        stream: Address of the stream.
    """
    call(
        "cudaMemcpyAsync", c_void_p(target), c_void_p(source), c_size_t(nbytes), c_int(kind),
        c_void_p(stream),
    )  # fmt: skip
    if kind != ON_DEVICE:
        call("cudaStreamSynchronize", c_void_p(stream))
