"""This machine as compiled modules see it: architecture, vector features, TVM's runtime library."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tvmgraph.errors import DeviceError, LoadError, reject
from tvmgraph.machine.processor import missing_features
from tvmgraph.machine.targets import CPU_VARIABLE, HOST, resolve, target_table

if TYPE_CHECKING:
    import tvm_ffi

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
_NATIVE = "x86_64"  # of targets without a triple
_LIBRARIES = ("tvm_runtime", "tvm_runtime_extra")  # the second sorts, searches, draws
#: Drives CUDA devices; needs the driver.
CUDA_LIBRARY = "libtvm_runtime_cuda.so"
_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def architecture() -> str:
    """Returns the processor architecture, such as ``x86_64``."""
    machine = platform.machine().lower()
    return _ARCHITECTURES.get(machine, machine)


def system() -> str:
    """Returns the operating system, such as ``linux``."""
    return platform.system().lower()


def runnable(target: str) -> str:
    """Resolves the name of a target whose code shall run here.

    Args:
        target: A name in ``configs/targets.toml``, or the alias of one.

    Raises:
        DeviceError: This is a processor of another architecture, or one without the features.
    """
    name = resolve(target)
    row = target_table().get(name, {})
    if row.get("kind") != "llvm" or name == HOST:
        return name
    wanted = str(row.get("mtriple", _NATIVE)).split("-")[0]
    missing = missing_features(row["features"]) if wanted == architecture() else [wanted]
    if missing:
        reject(DeviceError, "targets",
               f"this processor cannot run code for {name}: it lacks {', '.join(missing)}",
               fix=f"leave cpu and {CPU_VARIABLE} out, or export with target={name!r}")  # fmt: skip
    return name


def package_versions() -> dict[str, str]:
    """Returns the versions that compiled code depends on."""
    import importlib.metadata  # it parses them as e-mail, and takes long to import

    versions = {}
    for name in ("apache-tvm", "apache-tvm-ffi"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def library_folders() -> list[Path]:
    """Returns where TVM's runtime library may be: ``TVM_LIBRARY_PATH``, here, TVM's package."""
    folders = [Path(p) for p in os.environ.get("TVM_LIBRARY_PATH", "").split(os.pathsep) if p]
    folders.append(Path(__file__).parent / "lib")
    spec = importlib.util.find_spec("tvm")  # finds the package without importing it
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folders.append(Path(place) / "lib")
    return folders


@functools.cache
def ffi() -> ModuleType:
    """Loads TVM's runtime library and returns the module ``tvm_ffi``.

    Raises:
        LoadError: if the library cannot be found or loaded.
    """
    from tvmgraph.runtime.ffi import tvm_ffi

    folders = library_folders()
    for name in _LIBRARIES:
        file = f"lib{name}{_SUFFIX}"
        found = next((f / file for f in folders if (f / file).is_file()), None)
        if found is None and name == _LIBRARIES[0]:
            reject(LoadError, "runtime.load", f"{file} was not found", ", ".join(map(str, folders)),
                   "install apache-tvm, or name its folder in TVM_LIBRARY_PATH")  # fmt: skip
        if found is not None:  # global, as TVM does, so that modules find its symbols
            ctypes.CDLL(str(found), ctypes.RTLD_GLOBAL if name == _LIBRARIES[0] else 0)
    return tvm_ffi


def view(tensor: tvm_ffi.Tensor, dtype: str) -> tvm_ffi.Tensor:
    """Returns a tensor's elements as another type of the same size, without a copy.

    TVM's runtime library must be loaded.

    Args:
        tensor: A tensor of TVM's on the CPU.
        dtype: The other type.
    """
    import tvm_ffi

    return _create_view()(tensor, tvm_ffi.Shape(tensor.shape), tvm_ffi.dtype(dtype), 0)


@functools.cache
def _create_view() -> tvm_ffi.Function:
    import tvm_ffi

    return tvm_ffi.get_global_func("runtime.TVMTensorCreateView")


@functools.cache
def load_cuda() -> ModuleType:
    """Loads the part of TVM's runtime library that drives CUDA devices; returns ``tvm_ffi``.

    Raises:
        DeviceError: if it cannot be loaded, or there is no usable driver.
    """
    from tvmgraph.runtime import cuda
    from tvmgraph.runtime.ffi import tvm_ffi

    if "tvm" not in sys.modules:
        ffi()
    cuda.runtime()
    if tvm_ffi.get_global_func("ffi.Module.load_from_bytes.cuda", allow_missing=True) is not None:
        return tvm_ffi
    folders = library_folders()
    file = next((f / CUDA_LIBRARY for f in folders if (f / CUDA_LIBRARY).is_file()), None)
    try:
        ctypes.CDLL(str(file or CUDA_LIBRARY))
    except OSError as e:
        raise cuda.fail(
            f"TVM's runtime for CUDA was not loaded: {e}",
            "install apache-tvm, or name the folder of its libraries in TVM_LIBRARY_PATH",
        ) from e
    return tvm_ffi
