"""Machine code that calls kernels, as a codegen unit of its own.

The function that calls the kernels of a graph is one long straight line: optimizing it takes LLVM
longer than the kernels (more than linearly so), and makes nothing faster, because all the work is
done by what it calls. So it is translated apart from them, without optimization, and the linker
joins the two.

TVM calls by symbol only within one module; between modules stands a forwarder per kernel. Several
of them may lead to one kernel, see :mod:`.sharing`.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.cpu.codegen.sharing import share_kernels

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
        there is nothing to divide. A kernel that another one stands for is a forwarder to it.
    """
    callers = {v: f for v, f in kernels.functions.items() if v.name_hint.startswith(_HOST)}
    rest = {v: f for v, f in kernels.functions.items() if v not in callers}
    shared, instead = share_kernels(tvm.IRModule(rest, attrs=kernels.attrs))
    counts = {str(f.attrs["global_symbol"]): len(f.params) for f in rest.values()}
    called = {name: _FORWARD + instead.get(name, name) for name in counts}
    moved = {v: _redirect(f, called) for v, f in callers.items()}
    wanted = counts.keys() - instead.keys() if callers else set(instead.values())
    forwarders = [(_FORWARD + name, _SYMBOL + name, counts[name]) for name in sorted(wanted)]
    if not callers:  # bytecode finds kernels by their names
        forwarders += [(name, called[name], counts[name]) for name in instead]
    moved |= {ir.GlobalVar(name): _forwarder(name, *to) for name, *to in forwarders}
    if not moved or not rest:
        return kernels, None
    return shared, tvm.IRModule(moved, attrs=kernels.attrs)


def _redirect(func: tirx.PrimFunc, called: Mapping[str, str]) -> tirx.PrimFunc:
    """Lets a function call the forwarders of kernels."""

    def visit(call: ir.Call) -> ir.Call:
        if call.op.same_as(_CALL) and str(call.args[0].value) in called:
            target = ir.StringImm(called[str(call.args[0].value)])
            return ir.Call(call.op, [target, *call.args[1:]], call.attrs, ret_ty=call.ty)
        return call

    return func.with_body(tvm_ffi.structural_map(func.body, (ir.Call, visit)))


def _forwarder(name: str, kernel: str, count: int) -> ir.BaseFunc:
    """A function that hands the arguments of a packed call on to a kernel with ``count`` of them.

    A kernel of another module is known by its symbol, a forwarder of this one by its name. The
    kernel's status is returned; its result belongs behind the arguments, as in the caller.
    """
    kinds = {"self_handle": "handle", "args": "handle", "num_args": "int32", "result": "handle"}
    params = [tirx.Var(parameter, kind) for parameter, kind in kinds.items()]
    given = [ir.StringImm(kernel), params[1], tirx.IntImm("int32", 0)]
    call = ir.Call(_CALL_LOWERED, [*given, tirx.IntImm("int32", count)], ret_ty="int32")
    func = tirx.PrimFunc(params, tirx.Evaluate(call), ret_type=ir.PrimType("int32"))
    return func.with_attr(
        {
            "global_symbol": _SYMBOL + name,
            "calling_conv": ir.CallingConv.C_PACKED_FUNC,
        }
    )
