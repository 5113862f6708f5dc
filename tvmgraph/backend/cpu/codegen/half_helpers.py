"""Keeps TVM's conversions of float16 out of machine code that cannot call them.

TVM puts two functions, ``__truncsfhf2`` and ``__extendhfsf2``, into every LLVM module, for
processors that cannot convert float16. They are as long as a small kernel, weak, and therefore
optimized and translated each time: 8 ms per codegen unit. A processor with instructions for it
(F16C) never calls them.

LLVM's linker joins modules before they are optimized, and of two definitions of a name drops the
weak one. So a module that has to go without them imports two numbers of the same names. These are
common symbols: every object file may have its own, and the linker of the object files makes one of
them; and hidden: nobody outside of the library sees it.

Source: LLVM Language Reference, "Linkage Types"; ``CodeGenLLVM::EmitFloat16ConversionBuiltins``.
"""

from __future__ import annotations

import tvm
from tvm import ir, tirx

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


__all__ = ["without_half_helpers"]
