"""Code generation for CUDA: the passes over scheduled kernels, CUDA C++, and what a launch needs.

Like :mod:`tvmgraph.backend.cpu.codegen.pipeline`, with the passes that threads and shared memory
need, and with the same three differences from TVM's own pipeline: nothing rearranges floats,
vectors stay vectors, kernels trust their callers.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, s_tir, tirx

from tvmgraph.backend.cuda.kernels.iteration import uses
from tvmgraph.backend.loop_ir.program import loads_of
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
    return DeviceSource(DEFINITION + source if NAME in source else source, kernels)


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


# ---- constants as CUDA C++ that compiles and keeps their value -----------------------------------
# TVM writes a float64 with 15 digits behind the point, which leaves nothing of 1e-16 and changes
# most others. It writes float32 in hexadecimal, exactly: a float64 becomes a sum of three of those,
# times a power of two where they would not reach, which NVIDIA's compiler folds into one constant
# again. The bits of a constant it reads through the constant's address, which there is not: they
# become an integer.

#: Exponents within which three float32, of 24 bits each, hold the 53 bits of a float64.
_LOWEST, _HIGHEST = -60, 120
_STEP = 100
_REINTERPRET = tvm.ir.Op.get("tirx.reinterpret")


def exact_constants(mod: tvm.IRModule) -> tvm.IRModule:
    """Rewrites the constants of a module whose next step is to be written as CUDA C++.

    Args:
        mod: Scheduled kernels.
    """
    functions = {var: _exact(func) for var, func in mod.functions.items()}
    return tvm.IRModule(functions, attrs=mod.attrs)


def _exact(func: tirx.PrimFunc) -> tirx.PrimFunc:
    body = tvm_ffi.structural_map(func.body, (tvm.ir.Call, _bits))
    body = tvm_ffi.structural_map(body, (tirx.FloatImm, _constant))
    return func if body.same_as(func.body) else func.with_body(body)


def _bits(node: tvm.ir.Call) -> tvm.ir.Call | tirx.IntImm:
    """The integer that ``reinterpret`` of a float constant is."""
    if not node.op.same_as(_REINTERPRET) or not isinstance(node.args[0], tirx.FloatImm):
        return node
    kind, wanted = str(node.args[0].ty.dtype), str(node.ty.dtype)
    if kind not in ("float32", "float64") or not wanted.startswith(("int", "uint")):
        return node
    value = np.array(node.args[0].value, kind).view(wanted)
    return tirx.IntImm(wanted, int(value))


def _constant(node: tirx.FloatImm) -> ir.Expr:
    value = float(node.value)
    if str(node.ty.dtype) != "float64" or not math.isfinite(value) or _is_short(value):
        return node
    return _sum(value)


def _is_short(value: float) -> bool:
    """Whether few digits say it all, as for 0.5."""
    return float(f"{value:.15f}") == value


def _sum(value: float) -> ir.Expr:
    exponent = math.frexp(value)[1]
    if exponent < _LOWEST:
        return _sum(math.ldexp(value, _STEP)) * _wide(math.ldexp(1.0, -_STEP))
    if exponent > _HIGHEST:
        return _sum(math.ldexp(value, -_STEP)) * _wide(math.ldexp(1.0, _STEP))
    first = float(np.float32(value))
    total, rest = _wide(first), value - first
    while rest:
        part = float(np.float32(rest))
        total, rest = total + _wide(part), rest - part
    return total


def _wide(value: float) -> tirx.Cast:
    return tirx.Cast("float64", tirx.FloatImm("float32", value))


# ---- quotients that are rounded to 16 bits, by a few instructions --------------------------------
# A division of float32 that is right to the last bit is a subroutine on a GPU, with branches for
# operands that are hardly ever seen; the kernel of a product with GELU spent five times the product
# there. PTX's ``div.full`` is within 2 ulp for all operands, and what it is short of is gone when
# the result becomes float16 or bfloat16.

#: The function in CUDA C++.
DEFINITION = """
static inline __device__ float tvmgraph_quotient(float a, float b) {
  float q;
  asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
  return q;
}
"""
NAME = "tvmgraph_quotient"
_NARROW = ("float16", "bfloat16")
#: Functions of a quotient that its last bit can decide.
_ROUNDING = ("floor", "ceil", "trunc", "round", "nearbyint", "rint", "fmod")


@tvm.transform.module_pass(opt_level=0, name="ShortQuotients")
def short_quotients(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """Divides by ``div.full`` where float16 or bfloat16 is made of the result.

    Args:
        mod: The kernels of a device.
    """
    functions = {var: _rewritten(func) for var, func in mod.functions.items()}
    return tvm.IRModule(functions, attrs=mod.attrs)


def _rewritten(func: tirx.PrimFunc) -> tirx.PrimFunc:
    body = tvm_ffi.structural_map(func.body, (tirx.Cast, _narrow))
    return func if body.same_as(func.body) else func.with_body(body)


def _narrow(node: tirx.Cast) -> tirx.Cast:
    if str(node.ty.dtype) not in _NARROW or _needs_last_bit(node.value):
        return node
    value = _named(node.value)
    return node if value.same_as(node.value) else tirx.Cast(node.ty.dtype, value)


def _needs_last_bit(value: ir.Expr) -> bool:
    found: list[ir.Expr] = []

    def call(node: ir.Call) -> None:
        name = getattr(node.op, "name", "").rsplit(".", 1)[-1]
        if name == "call_pure_extern" and isinstance(node.args[0], ir.StringImm):
            name = str(node.args[0].value).removesuffix("f")
        if name in _ROUNDING:
            found.append(node)

    def cast(node: tirx.Cast) -> None:
        if "int" in str(node.ty.dtype):
            found.append(node)

    tvm_ffi.structural_walk(value, [(ir.Call, call), (tirx.Cast, cast)])
    return bool(found)


def _named(value: ir.Expr) -> ir.Expr:
    """The value with every quotient computed once: nvcc does not see that two are the same."""
    known: list[tuple[ir.Expr, tirx.Var]] = []
    bound: list[tirx.Let] = []
    tvm_ffi.structural_walk(value, (tirx.Let, bound.append))

    def visit(node: tirx.Div) -> ir.Expr:
        if str(node.ty.dtype) != "float32":
            return node
        quotient = tirx.call_pure_extern("float32", NAME, node.a, node.b)
        if not all(load.source.scope() == "local" for load in loads_of(quotient)):
            return quotient  # which a condition may guard
        if uses(quotient, [let.var for let in bound]):
            return quotient  # of a name that is not known ahead of the value
        for seen, var in known:
            if tvm_ffi.structural_equal(seen, quotient):
                return var
        known.append((quotient, tirx.Var("quotient", node.ty)))
        return known[-1][1]

    value = tvm_ffi.structural_map(value, (tirx.Div, visit))
    for quotient, var in reversed(known):
        value = tirx.Let(var, quotient, value)
    return value
