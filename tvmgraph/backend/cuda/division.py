"""Quotients that are rounded to 16 bits, by a few instructions.

A division of float32 that is right to the last bit is a subroutine on a GPU, with branches for
operands that are hardly ever seen; the kernel of a product with GELU spent five times the product
there. PTX's ``div.full`` is within 2 ulp for all operands, and what it is short of is gone when the
result becomes float16 or bfloat16.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.loop_ir.program import loads_of

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
        if _uses(quotient, [let.var for let in bound]):
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


def _uses(value: ir.Expr, names: list[tirx.Var]) -> bool:
    found: list[tirx.Var] = []
    tvm_ffi.structural_walk(value, (tirx.Var, found.append))
    return any(var.same_as(name) for var in found for name in names)
