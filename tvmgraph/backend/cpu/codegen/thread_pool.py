"""The code that divides parallel loops among threads: ``thread_pool.ll``, for a target.

It is LLVM's own language because it needs what TVM's has no words for (atomic operations), and
because the process that compiles may have no other compiler.
"""

from __future__ import annotations

import functools
import os
import platform
import re
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from tvmgraph.backend.tvm_private import private

if TYPE_CHECKING:
    import tvm

_SOURCE = Path(__file__).with_suffix(".ll")
#: By architecture: the instruction that waits a little, the numbers of Linux's calls.
_WORDS = {
    "x86_64": {"pause": "pause", "futex": 202, "gettid": 186},
    "aarch64": {"pause": "isb", "futex": 98, "gettid": 178},
}


def thread_pool(target: tvm.target.Target) -> tvm.runtime.Module | None:
    """Returns the pool's code for a target, or ``None`` where TVM's own pool has to do.

    Args:
        target: The processor.
    """
    own = f"{platform.machine()}-{platform.system()}"
    triple = str(target.attrs.get("mtriple", own))  # pyright: ignore[reportAttributeAccessIssue] - a field of the FFI
    architecture = triple.split("-")[0]
    if architecture not in _WORDS or "linux" not in triple.lower():
        return None
    return _library(str(target), architecture)


@functools.cache
def _library(target: str, architecture: str) -> tvm.runtime.Module:
    quoted = target.replace("\\", "\\5C").replace('"', "\\22")
    text = Template(_SOURCE.read_text()).substitute(_WORDS[architecture], target=quoted)
    # in memory LLVM runs only code that names the layout of data of its target
    empty = private("codegen.LLVMModuleCreate")(target, _SOURCE.stem).inspect_source("ll")
    text = "\n".join([*re.findall(r"^target .*$", empty, re.MULTILINE), text])
    with open(os.memfd_create(_SOURCE.name), "r+") as memory:
        memory.write(text)
        memory.flush()
        return private("ffi.Module.load_from_file.ll")(f"/proc/self/fd/{memory.fileno()}", "ll")


__all__ = ["thread_pool"]
