"""An NVIDIA GPU in software, so that programs for the device run in tests without one.

:func:`install` puts stand-ins for ``libcuda.so.1`` and ``libcudart.so.13`` into the process and
lets g++ compile the CUDA C that TVM writes. A kernel then runs on the processor, every thread of a
block as a fiber, with barriers, warp exchanges, shared memory, tensor core instructions and
asynchronous copies. What the hardware would let pass is an error: accesses outside of allocations
and arrays, misaligned vectors, barriers that not all threads reach, copies read before they are
waited for and, with :attr:`Device.races`, results that depend on the order of threads.

What it does not model: time, caches, bank conflicts and tensor maps; products of warp groups are
complete at once.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cuda.emulator.source import to_host

_HERE = Path(__file__).parent
#: Codes of failures that tests ask for.
FAILURES = {"out of memory": 2, "old driver": 35, "no device": 100, "invalid device": 101}
FAILURES |= {"invalid image": 200, "wrong architecture": 209, "illegal address": 700}
_COMPILE = ["-std=c++20", "-fPIC", "-shared", "-march=native", "-fno-strict-aliasing", "-w"]
_CHECKS = [
    "-fsanitize=alignment,bounds,integer-divide-by-zero",
    "-fsanitize-undefined-trap-on-error",
    "-fstack-clash-protection",
]
#: Characters of code that g++ takes longer to optimize than it then saves.
_LONG = 500_000


@dataclass(frozen=True)
class KernelLaunch:
    """One launch: the kernel, its grid and block, and its bytes of dynamic shared memory."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


class Device:
    """The emulated device of this process."""

    def __init__(self, driver: ctypes.CDLL) -> None:
        self._driver = driver
        driver.emulator_get.restype = ctypes.c_longlong
        driver.emulator_set.argtypes = [ctypes.c_char_p, ctypes.c_longlong]
        driver.emulator_message.restype = driver.emulator_log.restype = ctypes.c_char_p

    def reset(self) -> None:
        """One healthy H100 again; forgets failures and counts."""
        self._driver.emulator_reset()

    def set(self, **values: int) -> None:
        """Changes the device: memory (bytes), devices, driver_version, capability, races, dry."""
        for name, value in values.items():
            self._driver.emulator_set(name.encode(), int(value))

    def get(self, name: str) -> int:
        """A count: launches, graph_launches, allocations; bytes: used, peak, to_device, to_host."""
        return self._driver.emulator_get(name.encode())

    @property
    def message(self) -> str:
        """What went wrong last."""
        return self._driver.emulator_message().decode()

    @property
    def launches(self) -> list[KernelLaunch]:
        """The kernels launched since the last reset."""
        found = []
        for line in self._driver.emulator_log().decode().splitlines():
            name, *rest = line.split()
            gx, gy, gz, bx, by, bz, shared = map(int, rest)
            found.append(KernelLaunch(name, (gx, gy, gz), (bx, by, bz), shared))
        return found

    @contextmanager
    def failing(self, function: str, failure: str, after: int = 0) -> Iterator[None]:
        """Lets a function of the driver or the runtime fail, after some calls that succeed."""
        self._driver.emulator_set_failure(function.encode(), FAILURES[failure], after)
        try:
            yield
        finally:
            self._driver.emulator_set_failure(function.encode(), 0, 0)


def missing() -> str:
    """Why no device can be emulated here, or nothing."""
    if sys.platform != "linux":
        return "the emulated GPU needs Linux"
    if os.environ.get("TVMGRAPH_TEST_GPU") == "real":
        return "the real GPU is tested; both in one process would be mistaken for one another"
    return "" if shutil.which("g++") else "the emulated GPU needs g++"


@functools.cache
def install() -> Device:
    """Emulates a device in this process, for TVM and for whoever loads the driver's libraries."""
    folder = libraries()
    driver = ctypes.CDLL(str(folder / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(str(folder / "libcudart.so.13"), mode=ctypes.RTLD_GLOBAL)
    import tvm
    import tvm_ffi

    if tvm.get_global_func("ffi.Module.create.cuda", allow_missing=True) is None:
        library = Path(tvm.__file__).parent / "lib" / "libtvm_runtime_cuda.so"
        ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL)
    tvm_ffi.register_global_func("tvm_callback_cuda_compile", compile_cuda, override=True)
    return Device(driver)


def libraries() -> Path:
    """The folder of the emulated libraries, built when it is not there yet."""
    parts = ["engine.cpp", "driver.cpp", "libcuda.cpp"]
    files = sorted([*_HERE.glob("*.cpp"), *_HERE.glob("*.h"), *_HERE.glob("include/*")])
    folder = _cache() / _digest(*(path.read_bytes() for path in files))
    if (folder / "libcudart.so.13").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    build = Path(tempfile.mkdtemp(dir=folder.parent))
    common = ["-O1", f"-I{_HERE}", f"-I{_HERE / 'include'}", "-Wl,-z,defs", "-pthread"]
    sources = [str(_HERE / part) for part in parts]
    _gxx([*sources, *common, "-ldl", "-Wl,-soname,libcuda.so.1"], build / "libcuda.so.1")
    runtime = [str(_HERE / "libcudart.cpp"), *common, f"-L{build}", "-l:libcuda.so.1"]
    version = f"-Wl,--version-script={_HERE / 'libcudart.map'}"
    _gxx([*runtime, version, "-Wl,-soname,libcudart.so.13"], build / "libcudart.so.13")
    try:
        build.rename(folder)
    except OSError:  # somebody else was faster
        shutil.rmtree(build)
    return folder


def compile_cuda(source: str, *_target: object, capability: int = 90) -> bytes:
    """Compiles CUDA C for the emulated device.

    Args:
        source: What TVM's code generator wrote.
        capability: Compute capability that the module claims to be for.

    Returns:
        The bytes that ``cuModuleLoadData`` of the emulated driver takes.
    """
    text = to_host(str(source))
    text += f"EMULATOR_CAPABILITY({capability})\n"
    headers = [path.read_bytes() for path in sorted(_HERE.glob("include/*"))]
    kept = _cache() / "kernels" / _digest(text.encode(), *headers)
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            path = Path(folder) / "kernel.cpp"
            path.write_text(text)
            include = f"-I{_HERE / 'include'}"
            level = "-O0" if len(text) > _LONG else "-O1"
            _gxx(
                [level, *_CHECKS, "-fvisibility=hidden", include, str(path)],
                path.with_suffix(".so"),
            )
            os.replace(path.with_suffix(".so"), kept)
    return kept.read_bytes()


def _gxx(arguments: list[str], output: Path) -> None:
    command = ["g++", *_COMPILE, *arguments, "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = "\n".join(re.findall(r"^.*error:.*$", done.stderr, re.M)[:5]) or done.stderr[:2000]
        raise RuntimeError(f"g++ cannot compile for the emulated GPU:\n{errors}")


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256(" ".join(_COMPILE + _CHECKS).encode())
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:24]


def _cache() -> Path:
    return Path(os.environ.get("TVMGRAPH_CACHE_DIR", tempfile.gettempdir())) / "emulated-gpu"
