"""Code generation for CUDA: the passes over scheduled kernels, CUDA C++, and what a launch needs.

Like :mod:`tvmgraph.compiler.codegen`, with the passes that threads and shared memory need, and with
the same three differences from TVM's own pipeline: nothing rearranges floats, vectors stay vectors,
kernels trust their callers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from tvmgraph.compiler.device_constants import exact_doubles
from tvmgraph.compiler.memory import apply_offsets
from tvmgraph.compiler.remainders import keep_remainders
from tvmgraph.runtime.device_image import Kernel
from tvmgraph.schedule.half_rounding import separate_products
from tvmgraph.schedule.types import WRITTEN_OUT

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


def split(kernels: tvm.IRModule, target: Any) -> tuple[tvm.IRModule, tvm.IRModule]:
    """Lowers scheduled kernels and separates what the host runs from what the device runs.

    Args:
        kernels: Scheduled functions.
        target: A CUDA target with a host.

    Returns:
        The host's functions, which launch those of the device, and the device's functions.
    """
    with target, tvm.transform.PassContext(opt_level=3):
        lowered = _passes()(_X.BindTarget(target)(kernels))
        host = _finish_host()(_X.Filter(_is_host)(lowered))
        device = _finish_device()(_X.Filter(lambda f: not _is_host(f))(lowered))
    return host, device


def generate_host(host: tvm.IRModule, target: Any) -> Any:
    """Returns the library of the functions that launch kernels."""
    return tvm_ffi.get_global_func("target.build.llvm")(host, target.host)


def generate_source(device: tvm.IRModule, target: Any) -> DeviceSource:
    """Writes some of the device's functions as CUDA C++."""
    text: list[str] = []

    def keep(code: str, *_: Any) -> bytes:
        text.append(str(code))
        return b""

    # with a CUDA runtime at hand TVM would compile at once, one unit at a time
    before = tvm_ffi.get_global_func(_COMPILE_CALLBACK, allow_missing=True)
    tvm_ffi.register_global_func(_COMPILE_CALLBACK, keep, override=True)
    try:
        with target:
            made = tvm_ffi.get_global_func("target.build.cuda")
            module = made(exact_doubles(device), target)
    finally:
        if before is not None:
            tvm_ffi.register_global_func(_COMPILE_CALLBACK, before, override=True)
    kernels = tuple(_kernel(f) for f in device.functions.values())
    return DeviceSource(text[0] if text else module.inspect_source(), kernels)


def _is_host(func: tirx.PrimFunc) -> bool:
    return func.attrs["target"].kind.name in _HOST_KINDS


def _kernel(func: tirx.PrimFunc) -> Kernel:
    tags = tuple(str(tag) for tag in func.attrs.get("tirx.kernel_launch_params", ()))
    types = tuple(_argument_type(p) for p in func.params)
    return Kernel(str(func.attrs["global_symbol"]), types, tags)


def _argument_type(param: Any) -> str:
    found = str(param.ty.dtype) if hasattr(param.ty, "dtype") else "handle"
    return "handle" if found == "void" else found


@tvm.transform.module_pass(opt_level=0, name="CompactBuffers")
def _compact_buffers(mod: tvm.IRModule, _context: Any) -> tvm.IRModule:
    """Shrinks the buffers of kernels that TVM's rules scheduled.

    Those of the project's own kernels have their sizes already, and asking TVM for them takes many
    seconds where a convolution gathers its operands.
    """
    own = {v: f for v, f in mod.functions.items() if f.attrs and WRITTEN_OUT in f.attrs}
    rest = tvm.IRModule({v: f for v, f in mod.functions.items() if v not in own}, attrs=mod.attrs)
    rest = _S.CompactBufferAllocation()(rest)
    return tvm.IRModule({**dict(rest.functions), **own}, attrs=mod.attrs)


@functools.cache
def _passes() -> Any:
    loops = [
        _S.CanonicalizeLoop(), _S.LowerCrossThreadReduction(), _S.LowerInitBlock(),
        _S.PlanAndUpdateBufferAllocationLocation(), _S.ConvertBlocksToOpaque(), keep_remainders,
        _S.LiftThreadBinding(), _S.ManifestSharedMemoryLocalStage(), _compact_buffers,
        _S.LowerAutoCopy(), _S.UnifyThreadBinding(), _S.LowerMatchBuffer(),
        _S.InjectPermutedLayout(), _S.AnnotateIrregularLoop(), _S.InjectSoftwarePipeline(),
        _S.TransformMmaBufferLayout(), _S.LowerOpaqueBlock(), _X.FlattenBuffer(),
        separate_products, _X.BF16ComputeLegalize(), _X.NarrowDataType(32), _S.LoopPartition(),
        _X.VectorizeLoop(), _S.InjectVirtualThread(), _S.InjectDoubleBuffer(),
        _X.StorageRewrite(), _S.HoistIfThenElse(), _X.UnrollLoop(),
        _S.RenormalizeSplitPattern(), _X.RemoveNoOp(), _S.RewriteUnsafeSelect(),
    ]  # fmt: skip
    threads = [
        _X.FP8ComputeLegalize(), _X.VerifyMemory(), _X.AnnotateEntryFunc(),
        _S.ThreadSync("shared"), _S.ThreadSync("shared.dyn"), _S.ThreadSync("warp"),
        _S.InferFragment(), _S.LowerThreadAllreduce(), _S.MergeSharedMemoryAllocations(),
        _X.SplitHostDevice(), _X.MakePackedAPI(), apply_offsets, _X.FP8StorageLegalize(),
        _X.BF16StorageLegalize(),
    ]  # fmt: skip
    return tvm.transform.Sequential([*loops, *threads])


@functools.cache
def _finish_host() -> Any:
    return tvm.transform.Sequential([_X.LowerTVMBuiltin(), _X.LowerIntrin(), _X.SkipAssert()])


@functools.cache
def _finish_device() -> Any:
    return tvm.transform.Sequential([_X.LowerWarpMemory(), _X.LowerIntrin()])
