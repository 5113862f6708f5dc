"""What the compiler uses of TVM that TVM does not promise: one place, checked by name.

Another TVM may lack one of these or mean something else by it; each is looked up when it is first
needed, and what is missing is an error that names it and the versions that have it.
"""

from __future__ import annotations

import functools
from pkgutil import resolve_name
from typing import Any

import tvm
import tvm_ffi

from tvmgraph.errors import TvmgraphError, reject

_VERSIONS = "apache-tvm>=0.27,<0.28"

#: Python functions, by module, and what they are for.
FUNCTIONS = {
    "tvm.relax.vm_build:_vmcodegen": "the program of the virtual machine",
    "tvm.relax.vm_build:_ffi_api.VMLink": "an executable of a program and its kernels",
    "tvm.runtime:_ffi_api.ModulePackImportsToLLVM": "programs as object files",
}
#: Functions of TVM's C++ libraries, and what they are for.
GLOBALS = {
    "codegen.LLVMModuleCreate": "how LLVM lays out data for a target",
    "ffi.ArrayGetItem": "the elements of lists, without checks",
    "ffi.Module.load_from_file.ll": "the code that divides loops among threads",
    "ffi.StructuralMap": "rewritten expressions, without checks",
    "ffi.StructuralWalk": "walks over expressions, without checks",
    "ir.RegisterOp": "operators of the project's own in loops",
    "target.build.llvm": "machine code of one codegen unit",
    "tvm.codegen.llvm.GetHostCPUFeatures": "what this processor can do",
    "tvm.codegen.llvm.GetHostCPUName": "LLVM's name of this processor",
}
#: The same, in TVMs that were built with CUDA.
CUDA_GLOBALS = {"target.build.cuda": "CUDA C++ of kernels"}


@functools.cache
def private(name: str) -> Any:
    """Returns a function of TVM's by its name in one of the tables.

    Args:
        name: Module and attribute, or the name of a global function, as the tables of this file
            have it.

    Raises:
        TvmgraphError: This TVM has none of that name.
    """
    purpose = (FUNCTIONS | GLOBALS | CUDA_GLOBALS)[name]
    found = _function(name) if name in FUNCTIONS else _global(name)
    if found is None:
        reject(TvmgraphError, "compile",
               f"TVM {tvm.__version__} has no {name}, which makes {purpose}",
               fix=f"install {_VERSIONS}")  # fmt: skip
    return found


def _function(name: str) -> Any:
    try:
        return resolve_name(name)
    except (AttributeError, ImportError):
        return None


def _global(name: str) -> Any:
    return tvm_ffi.get_global_func(name, allow_missing=True)
