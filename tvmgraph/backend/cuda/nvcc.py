"""From CUDA C++ to machine code, by NVIDIA's compiler."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tvmgraph.errors import CompileError
from tvmgraph.runtime.device_image import DeviceImage

if TYPE_CHECKING:
    from tvmgraph.backend.cuda.codegen import DeviceSource

#: Environment variable: the compiler to use.
VARIABLE = "TVMGRAPH_NVCC"
_FLAGS = ("-O3", "--std=c++17", "-w", "--threads=1")
_NO_COMPILER = (
    "pip install 'tvmgraph[cuda]' (a CUDA compiler without a driver), or put nvcc on the PATH"
)


@functools.cache
def find() -> Path | None:
    """Returns ``nvcc``: of ``TVMGRAPH_NVCC``, the PATH, ``CUDA_HOME`` or the PyPI packages."""
    given = os.environ.get(VARIABLE)
    found = given or shutil.which("nvcc")
    candidates = [Path(found)] if found else []
    candidates += [Path(p) / "bin" / "nvcc" for p in (os.environ.get("CUDA_HOME"),) if p]
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        candidates += sorted(Path(place).glob("*/bin/nvcc"))
    return next((c for c in candidates if c.is_file()), None)


@functools.cache
def version() -> str:
    """Returns the compiler's version, such as ``13.0.88``; empty without a compiler."""
    compiler = find()
    if compiler is None:
        return ""
    done = subprocess.run([str(compiler), "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"\bV(\d[\d.]*)", done.stdout)
    return match[1] if match else ""


def compile_all(
    sources: Sequence[DeviceSource], archs: Sequence[str], workers: int, fast_math: bool = False
) -> tuple[DeviceImage, ...]:
    """Compiles translation units at the same time.

    Args:
        sources: The units.
        archs: Architectures to make machine code for, such as ``("sm_80", "sm_90")``. PTX of the
            first one is added, from which a driver makes code for any later device; architectures
            with a suffix (``sm_90a``) have no such form.
        workers: Compilers that run at once.
        fast_math: Whether arithmetic may be inexact (``--use_fast_math``).

    Raises:
        CompileError: without a compiler, or if it rejects a unit.
    """
    if find() is None:
        raise CompileError("no CUDA compiler (nvcc) was found", op="cuda", fix=_NO_COMPILER)
    with ThreadPoolExecutor(max(1, workers)) as pool:
        codes = pool.map(lambda s: compile_unit(s.text, archs, fast_math), sources)
        return tuple(DeviceImage(code, s.kernels) for code, s in zip(codes, sources))


def compile_unit(source: str, archs: Sequence[str], fast_math: bool) -> bytes:
    """Compiles one translation unit to a fat binary; arguments as :func:`compile_all`.

    Args:
        source: CUDA C++.
        archs: Compute capabilities, such as ``"sm_90a"``.
        fast_math: Whether NVIDIA's approximate functions may be used.
    """
    command = [str(find()), "-fatbin", *_FLAGS, *_generate(archs)]
    if fast_math:
        command.append("--use_fast_math")
    with tempfile.TemporaryDirectory(prefix="tvmgraph-cuda-") as folder:
        text, binary = Path(folder) / "kernels.cu", Path(folder) / "kernels.fatbin"
        text.write_text(source)
        done = subprocess.run(
            [*command, "-o", str(binary), str(text)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line]
            raise CompileError(
                f"nvcc {version()} failed: {(lines or ['no message'])[0].strip()}", op="cuda",
                got=f"{len(source.splitlines())} lines of CUDA C++, {', '.join(archs)}",
                fix="TVMGRAPH_DEBUG=4 shows the source; a newer nvcc may know the architecture",
            )  # fmt: skip
        return binary.read_bytes()


def _generate(archs: Sequence[str]) -> list[str]:
    options = [f"-gencode=arch={a.replace('sm_', 'compute_')},code={a}" for a in archs]
    lowest = archs[0].replace("sm_", "compute_")
    if lowest[-1].isdigit():
        options.append(f"-gencode=arch={lowest},code={lowest}")
    return options


def fingerprint() -> str:
    """What of the compiler decides about the machine code, for the key of a cache."""
    return hashlib.sha256("\n".join((version(), *_FLAGS)).encode()).hexdigest()
