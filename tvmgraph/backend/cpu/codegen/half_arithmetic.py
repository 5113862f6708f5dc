"""Arithmetic of float16 in float32, each result rounded, on processors without one of float16.

LLVM would do so itself where it finds instructions that convert (F16C, NEON), and call a function
of its library for every element elsewhere. Written out, conversions are formulas where they must
be, see :mod:`tvmgraph.backend.cpu.intrinsics.half`.
"""

from __future__ import annotations

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.cpu.intrinsics.lanes import Lanes
from tvmgraph.backend.loop_ir.half_rounding import has_type
from tvmgraph.backend.loop_ir.types import Binary, Comparison, dtype_of, scalar_of
from tvmgraph.backend.target import has_feature

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.Min, tirx.Max)
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
#: Functions of numbers that are neither formulas of ours nor movements of bits.
_FUNCTIONS = frozenset((
    "ceil", "copysign", "fabs", "floor", "fma", "isfinite", "isinf", "isnan", "nearbyint", "round",
    "rsqrt", "sqrt", "trunc",
))  # fmt: skip


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.ComputeHalfInSingle")
def compute_half_in_single(
    func: tirx.PrimFunc, _mod: ir.IRModule, _context: ir.transform.PassContext
) -> tirx.PrimFunc:
    """Computes float16 in float32 unless the processor compiled for computes it itself.

    Args:
        func: A function of loops; it is returned as it is if it has no float16, and for processors
            with arithmetic of it.
    """
    if has_feature("fullfp16") or not has_type(func, "float16"):
        return func
    callbacks = [
        *((kind, _binary) for kind in (*_ARITHMETIC, *_COMPARISONS)), (ir.Call, _call),
        (tirx.Cast, _cast),
    ]  # fmt: skip
    return func.with_body(tvm_ffi.structural_map(func.body, callbacks))


def _binary(node: Binary | Comparison) -> ir.Expr:
    if not _is_half(node.a):
        return node
    result = type(node)(_single(node.a), _single(node.b))
    return result if isinstance(node, _COMPARISONS) else _half(result)


def _call(node: ir.Call) -> ir.Expr:
    name = str(getattr(node.op, "name", "")).removeprefix("tirx.")
    if name not in _FUNCTIONS or not _is_half(node.args[0]):
        return node
    args = [_single(arg) for arg in node.args]
    if not _is_half(node):
        return ir.Call(node.op, args, node.attrs, ret_ty=node.ty)
    like = Lanes(node)
    return _half(tirx.call_intrin(like.type("float32"), node.op, *args))


def _cast(node: tirx.Cast) -> ir.Expr:
    """Conversions but those of floats take two steps."""
    kinds = {scalar_of(node), scalar_of(node.value)}
    if "float16" not in kinds or kinds <= {"float16", "float32", "float64"}:
        return node
    if _is_half(node):
        return _half(Lanes(node).cast(node.value, "float32"))
    return tirx.Cast(dtype_of(node), _single(node.value))


def _is_half(value: ir.Expr) -> bool:
    return scalar_of(value) == "float16"


def _single(value: ir.Expr) -> ir.Expr:
    return Lanes(value).cast(value, "float32")


def _half(value: ir.Expr) -> ir.Expr:
    return Lanes(value).cast(value, "float16")
