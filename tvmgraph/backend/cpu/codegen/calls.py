"""Machine code that calls kernels, as a part of its own.

The function that calls the kernels of a graph is one long straight line: optimizing it takes LLVM
longer than the kernels (more than linearly so), and makes nothing faster, because all the work is
done by what it calls. So it is translated apart from them, without optimization, and the linker
joins the two.

TVM calls by symbol only within one module; between modules stands a forwarder per kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

import tvm
import tvm_ffi
from tvm import ir, tirx

_HOST = "__vmtir__"  # TVM's prefix of functions that call kernels
_SYMBOL = "__tvm_ffi_"  # and that of everything called the packed way
_FORWARD = "forward_"
_CALL, _CALL_LOWERED = (ir.Op.get(f"tirx.tvm_call_cpacked{suffix}") for suffix in ("", "_lowered"))


def split_calls(kernels: tvm.IRModule) -> tuple[tvm.IRModule, tvm.IRModule | None]:
    """Divides functions into kernels and what calls them.

    Args:
        kernels: All functions of a program that become machine code.

    Returns:
        The kernels, and the callers with a forwarder for every kernel they call, or None when
        there is nothing to divide.
    """
    callers = {v: f for v, f in kernels.functions.items() if v.name_hint.startswith(_HOST)}
    rest = {v: f for v, f in kernels.functions.items() if v not in callers}
    if not callers or not rest:
        return kernels, None
    counts = {str(f.attrs["global_symbol"]): len(f.params) for f in rest.values()}
    moved = {v: _redirect(f, counts) for v, f in callers.items()}
    for name, count in counts.items():
        moved[ir.GlobalVar(_FORWARD + name)] = _forwarder(name, count)
    return tvm.IRModule(rest, attrs=kernels.attrs), tvm.IRModule(moved, attrs=kernels.attrs)


def _redirect(func: tirx.PrimFunc, names: Iterable[str]) -> tirx.PrimFunc:
    """Lets a function call the forwarders of kernels."""

    def visit(call: ir.Call) -> ir.Call:
        if call.op.same_as(_CALL) and str(call.args[0].value) in names:
            target = ir.StringImm(_FORWARD + str(call.args[0].value))
            return ir.Call(call.op, [target, *call.args[1:]], call.attrs, ret_ty=call.ty)
        return call

    return func.with_body(tvm_ffi.structural_map(func.body, (ir.Call, visit)))


def _forwarder(name: str, count: int) -> ir.BaseFunc:
    """A function that hands the arguments of a packed call on to a kernel with ``count`` of them.

    The kernel's status is returned; its result belongs behind the arguments, as in the caller.
    """
    kinds = {"self_handle": "handle", "args": "handle", "num_args": "int32", "result": "handle"}
    params = [tirx.Var(parameter, kind) for parameter, kind in kinds.items()]
    given = [ir.StringImm(_SYMBOL + name), params[1], tirx.IntImm("int32", 0)]
    call = ir.Call(_CALL_LOWERED, [*given, tirx.IntImm("int32", count)], ret_ty="int32")
    func = tirx.PrimFunc(params, tirx.Evaluate(call), ret_type=ir.PrimType("int32"))
    return func.with_attr(
        {
            "global_symbol": _SYMBOL + _FORWARD + name,
            "calling_conv": ir.CallingConv.C_PACKED_FUNC,
        }
    )
