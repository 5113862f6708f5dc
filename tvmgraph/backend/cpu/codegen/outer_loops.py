"""Loops around long loops stay loops.

LLVM writes out a loop of few iterations even where its body is another loop: a sum over eight
images becomes eight loops over an image, each of which is then unrolled by itself. That saves
nothing where the inner loops take their time, and is the larger part of the code of a
normalization. So the number of iterations of such loops is not told to LLVM: it passes through an
empty piece of assembly.
"""

from __future__ import annotations

import tvm_ffi
from tvm import ir, tirx

from tvmgraph.backend.loop_ir.emit import ROLLED
from tvmgraph.backend.loop_ir.types import Expr

#: Iterations from which on a loop takes its time.
_LONG = 16
#: Iterations up to which LLVM may write out a loop.
_FEW = 64
_NAME = "tvmgraph_opaque"
_TEXT = """
define internal {kind} @{name}_{kind}({kind} %count) alwaysinline {{
  %same = call {kind} asm "", "=r,0"({kind} %count)
  ret {kind} %same
}}
"""
_KINDS = {"int32": "i32", "int64": "i64"}


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.KeepOuterLoops")
def keep_outer_loops(
    func: tirx.PrimFunc, _mod: ir.IRModule, _context: ir.transform.PassContext
) -> tirx.PrimFunc:
    """Hides from LLVM how often loops around long loops run.

    Args:
        func: A function of loops, after those are written out that are meant to be.
    """
    kinds: set[str] = set()

    def loop(node: tirx.For) -> tirx.For:
        extent = node.extent
        if node.kind != tirx.ForKind.SERIAL or not isinstance(extent, tirx.IntImm):
            return node
        if not 1 < extent.value <= _FEW:
            return node
        if ROLLED not in node.annotations and not _has_long_loop(node.body):
            return node
        dtype = str(extent.ty.dtype)
        kinds.add(_KINDS[dtype])

        def hidden(value: Expr) -> Expr:
            return tirx.call_pure_extern(dtype, f"{_NAME}_{_KINDS[dtype]}", value)

        body = node.body
        if ROLLED in node.annotations and not _has_loop(body):  # nor shall it become vectors
            same = hidden(node.loop_var)
            var = node.loop_var
            body = tvm_ffi.structural_map(
                body, (tirx.Var, lambda other: same if other.same_as(var) else other)
            )
        return tirx.For(node.loop_var, node.min, hidden(extent), node.kind, body)

    body = tvm_ffi.structural_map(func.body, (tirx.For, loop))
    if not kinds:
        return func
    text = "".join(_TEXT.format(kind=kind, name=_NAME) for kind in sorted(kinds))
    zero = tirx.IntImm("int32", 0)
    return func.with_body(tirx.AttrStmt(zero, "pragma_import_llvm", ir.StringImm(text), body))


def _has_long_loop(body: tirx.Stmt) -> bool:
    def is_long(extent: Expr) -> bool:
        return not isinstance(extent, tirx.IntImm) or extent.value >= _LONG

    return any(map(is_long, _extents(body)))


def _has_loop(body: tirx.Stmt) -> bool:
    return bool(_extents(body))


def _extents(body: tirx.Stmt) -> list[Expr]:
    """Of the loops in a statement."""
    found: list[Expr] = []

    def visit(node: tirx.For) -> None:
        found.append(node.extent)

    tvm_ffi.structural_walk(body, (tirx.For, visit))
    return found
