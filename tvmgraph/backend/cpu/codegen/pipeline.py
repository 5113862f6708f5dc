"""From scheduled loops to machine code: the passes over one codegen unit, then LLVM.

TVM's default pipeline serves every kind of device. This one holds what a kernel of the CPU needs,
in the same order, and differs in three ways:

* nothing in it rearranges floats. TVM's simplifier treats them as reals ((x + c) - c becomes x, NaN
  and rounding are lost), so only indices are simplified, by :func:`tidy_vectors`;
* vectors stay vectors: an index that is not plainly ``base + (0 .. lanes)`` makes TVM write every
  lane on its own, which LLVM puts together again at great expense;
* kernels do not check their arguments. The virtual machine checks those of the whole graph at its
  entry and makes all others itself; half of the code of a small kernel would be such checks.
"""

from __future__ import annotations

import functools
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, s_tir, sym, tirx

from tvmgraph.backend.passes import sequence
from tvmgraph.backend.tvm_private import private
from tvmgraph.passes.table import Stage, chosen_for


def generate(
    module: tvm.IRModule, target: tvm.target.Target, checked: bool = False
) -> tvm.runtime.Module:
    """Returns the library of some kernels.

    Args:
        module: Scheduled functions.
        target: The processor.
        checked: Whether kernels check their arguments themselves, because strangers may call them.
    """
    with target, tvm.transform.PassContext(opt_level=3):
        bound = tirx.transform.BindTarget(target.with_host(target))
        module = bound(without_half_helpers(module, target))
        module = _passes(checked or bool(_all(module, tirx.AssertStmt)), _has_blocks(module))(
            module
        )
        return private("target.build.llvm")(module, target)


@functools.cache
def _passes(checked: bool, blocks: bool) -> tvm.transform.Pass:
    """The passes.

    Args:
        checked: Whether assertions stay.
        blocks: Whether there are blocks, whose buffers have to find their places and sizes.
    """
    facts = [name for name, holds in (("checked", checked), ("blocks", blocks)) if holds]
    return sequence(chosen_for(Stage.CODE, "cpu", facts))


@tirx.transform.prim_func_pass(opt_level=0, name="tvmgraph.Tidy")
def tidy_vectors(
    func: tirx.PrimFunc, _mod: tvm.IRModule, _context: tvm.transform.PassContext
) -> tirx.PrimFunc:
    """Simplifies the indices of vectors, such as ``broadcast(0) + ramp``; spreads bfloat16.

    Args:
        func: A function of flat buffers, after vectors are made.
    """
    analyzer = sym.Analyzer()

    def load(node: ir.TensorLoad) -> ir.Expr:
        index = node.indices[0]  # buffers are flat by now
        if not _is_untidy(index):
            return node
        return tirx.BufferLoad(node.source, [analyzer.simplify(index)])

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        index = node.indices[0]
        if not _is_untidy(index):
            return node
        return tirx.BufferStore(node.buffer, node.value, [analyzer.simplify(index)])

    callbacks = [(ir.TensorLoad, load), (tirx.BufferStore, store), (tirx.Broadcast, _spread)]
    return func.with_body(tvm_ffi.structural_map(func.body, callbacks))


def _spread(node: tirx.Broadcast) -> ir.Expr:
    """Repeats a bfloat16 by its bits: TVM leaves the vector's type when it stores bits instead."""
    if str(node.value.ty.dtype) != "bfloat16":
        return node
    bits = tirx.Broadcast(tirx.reinterpret("uint16", node.value), node.lanes)
    return tirx.reinterpret(str(node.ty.dtype), bits)


def _is_untidy(index: tirx.Expr) -> bool:
    return not isinstance(index, (tirx.Ramp, tirx.Var)) and "x" in str(index.ty.dtype)


def _has_blocks(module: tvm.IRModule) -> bool:
    """Whether a kernel is more than loops: has blocks but the root, or buffers of the root."""
    blocks = _all(module, s_tir.SBlock)
    return len(blocks) > len(module.functions) or any(block.alloc_buffers for block in blocks)


def _all(module: tvm.IRModule, kind: type) -> list[Any]:
    """The statements of a kind in all kernels."""
    found: list[object] = []
    for func in module.functions.values():
        tvm_ffi.structural_walk(func.body, (kind, found.append))
    return found


# ---- keeps TVM's conversions of float16 out of machine code that cannot call them ----------------
# TVM puts two functions, ``__truncsfhf2`` and ``__extendhfsf2``, into every LLVM module, for
# processors that cannot convert float16. They are as long as a small kernel, weak, and therefore
# optimized and translated each time: 8 ms per codegen unit. A processor with instructions for it
# (F16C) never calls them.
#
# LLVM's linker joins modules before they are optimized, and of two definitions of a name drops the
# weak one. So a module that has to go without them imports two numbers of the same names. These are
# common symbols: every object file may have its own, and the linker of the object files makes one
# of them; and hidden: nobody outside of the library sees it.
#
# Source: LLVM Language Reference, "Linkage Types"; ``CodeGenLLVM::EmitFloat16ConversionBuiltins``.

_NAMES = ("__truncsfhf2", "__extendhfsf2")
_IMPORT = "\n".join(f"@{name} = common hidden global i32 0" for name in _NAMES)
_CONVERTS = "+f16c"


def without_half_helpers(module: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    """The kernels of a codegen unit, which has no conversions where the target needs none.

    Args:
        module: Kernels that become one LLVM module.
        target: The processor; one with a triple may have object files without common symbols.
    """
    attrs = target.attrs
    if "mtriple" in attrs or _CONVERTS not in attrs.get("mattr", ()):  # pyright: ignore[reportAttributeAccessIssue] - a field of the FFI
        return module
    var, func = next(iter(module.functions.items()))
    text = ir.StringImm(_IMPORT)
    body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", text, func.body)
    return tvm.IRModule({**module.functions, var: func.with_body(body)}, attrs=module.attrs)
