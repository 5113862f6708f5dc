"""Constants as CUDA C++ that compiles and keeps their value.

TVM writes a float64 with 15 digits behind the point, which leaves nothing of 1e-16 and changes most
others. It writes float32 in hexadecimal, exactly: a float64 becomes a sum of three of those, times
a power of two where they would not reach, which NVIDIA's compiler folds into one constant again.
The bits of a constant it reads through the constant's address, which there is not: they become an
integer.
"""

from __future__ import annotations

import math

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, tirx

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
    if body.same_as(func.body):
        return func
    return tirx.PrimFunc(func.params, body, func.ret_type, func.attrs)


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
