"""Code generation for CUDA: the passes over scheduled kernels, CUDA C++, and what a launch needs.

Like :mod:`tvmgraph.backend.cpu.codegen.pipeline`, with the passes that threads and shared memory
need, and with the same three differences from TVM's own pipeline: nothing rearranges floats,
vectors stay vectors, kernels trust their callers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from tvmgraph.backend.cuda import division
from tvmgraph.backend.cuda.constants import exact_constants
from tvmgraph.backend.loop_ir.types import FINAL
from tvmgraph.backend.passes import sequence
from tvmgraph.backend.tvm_private import private
from tvmgraph.passes.table import Stage, chosen_for
from tvmgraph.runtime.device_image import Kernel

_S, _X = s_tir.transform, tirx.transform
_HOST_KINDS = ("llvm", "c")
#: TVM asks this function for machine code as soon as a CUDA runtime is loaded.
_COMPILE_CALLBACK = "tvm_callback_cuda_compile"


@dataclass(frozen=True)
class DeviceSource:
    """CUDA C++ of some kernels.

    Attributes:
        text: The source of one translation unit.
        kernels: Its functions, with what a launch of each needs.
    """

    text: str
    kernels: tuple[Kernel, ...]


def split(kernels: tvm.IRModule, target: tvm.target.Target) -> tuple[tvm.IRModule, tvm.IRModule]:
    """Lowers scheduled kernels and separates what the host runs from what the device runs.

    Args:
        kernels: Scheduled functions.
        target: A CUDA target with a host.

    Returns:
        The host's functions, which launch those of the device, and the device's functions.
    """
    with target, tvm.transform.PassContext(opt_level=3):
        lowered = _passes(Stage.CODE)(_X.BindTarget(target)(kernels))
        host = _passes(Stage.HOST)(_X.Filter(_is_host)(lowered))
        device = _passes(Stage.DEVICE)(_X.Filter(lambda f: not _is_host(f))(lowered))
    return host, device


def generate_host(host: tvm.IRModule, target: tvm.target.Target) -> tvm.runtime.Module:
    """Returns the library of the functions that launch kernels.

    Args:
        host: The functions that run on the processor.
        target: TVM's target, which has the processor's as its host.

    Returns:
        A module of machine code.
    """
    return private("target.build.llvm")(host, target.host)


def generate_source(device: tvm.IRModule, target: tvm.target.Target) -> DeviceSource:
    """Writes some of the device's functions as CUDA C++.

    Args:
        device: The kernels.
        target: TVM's target.

    Returns:
        The text and the names of its kernels, not compiled yet.
    """
    text: list[str] = []

    def keep(code: str, *_: object) -> bytes:
        text.append(str(code))
        return b""

    # with a CUDA runtime at hand TVM would compile at once, one unit at a time
    before = tvm_ffi.get_global_func(_COMPILE_CALLBACK, allow_missing=True)
    tvm_ffi.register_global_func(_COMPILE_CALLBACK, keep, override=True)
    try:
        with target:
            made = private("target.build.cuda")
            module = made(exact_constants(device), target)
    finally:
        if before is not None:
            tvm_ffi.register_global_func(_COMPILE_CALLBACK, before, override=True)
    kernels = tuple(_kernel(f) for f in device.functions.values())
    source = text[0] if text else module.inspect_source()
    return DeviceSource(
        division.DEFINITION + source if division.NAME in source else source, kernels
    )


def _is_host(func: tirx.PrimFunc) -> bool:
    return func.attrs["target"].kind.name in _HOST_KINDS


def _kernel(func: tirx.PrimFunc) -> Kernel:
    tags = tuple(str(tag) for tag in func.attrs.get("tirx.kernel_launch_params", ()))
    types = tuple(_argument_type(p) for p in func.params)
    return Kernel(str(func.attrs["global_symbol"]), types, tags)


def _argument_type(param: tirx.Var) -> str:
    found = str(param.ty.dtype) if hasattr(param.ty, "dtype") else "handle"
    return "handle" if found == "void" else found


@tvm.transform.module_pass(opt_level=0, name="CompactBuffers")
def compact_buffers(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """Shrinks the buffers of kernels that TVM's rules scheduled.

    Those of the project's own kernels have their sizes already, and asking TVM for them takes many
    seconds where a convolution gathers its operands.

    Args:
        mod: A module with kernels of both kinds.
    """
    own = {v: f for v, f in mod.functions.items() if f.attrs and FINAL in f.attrs}
    rest = tvm.IRModule({v: f for v, f in mod.functions.items() if v not in own}, attrs=mod.attrs)
    rest = _S.CompactBufferAllocation()(rest)
    return tvm.IRModule({**dict(rest.functions), **own}, attrs=mod.attrs)


@functools.cache
def _passes(stage: Stage) -> tvm.transform.Pass:
    return sequence(chosen_for(stage, "cuda"))
