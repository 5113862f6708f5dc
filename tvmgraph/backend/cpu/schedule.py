"""Gives every PrimFunc of a module the kernel that the table of the processor chooses.

Expects a module after ``LegalizeOps``, ``AnnotateTIROpPattern``, ``FuseOps`` and ``FuseTIR``;
returns one with the same functions and signatures.
"""

from __future__ import annotations

from tvm import ir, tirx

from tvmgraph.backend.cpu import intrinsics
from tvmgraph.backend.cpu.fallback import hoist_inits
from tvmgraph.backend.cpu.kernels.whole import write_function
from tvmgraph.backend.cpu.table import KERNELS
from tvmgraph.backend.loop_ir.addresses import straighten
from tvmgraph.backend.loop_ir.nest import Nest
from tvmgraph.backend.loop_ir.types import SCHEDULED, Func, Module
from tvmgraph.backend.table import Writer, naming
from tvmgraph.machine.processor import CpuModel

#: The level from which on kernels for sums of products are asked.
_PRODUCTS = 2


def schedule_cpu(mod: Module, model: CpuModel, level: int) -> Module:
    """Replaces the naive loops of every PrimFunc by a kernel for ``model``.

    Args:
        mod: A fused module.
        model: The processor.
        level: 0 keeps the loops; 1 applies the general rules (elementwise, rows, fallback);
            2 also uses the kernels for matrix products, convolutions and pooling.

    Returns:
        The module with new functions; types, names and attributes stay.
    """
    intrinsics.install()  # TVM has no remainder of floats for LLVM at all
    functions = dict(mod.functions.items())
    for var, func in functions.items():
        if isinstance(func, Func) and level <= 0:
            functions[var] = hoist_inits(func) if _is_dynamic(func) else func
        elif isinstance(func, Func):
            with naming(var.name_hint):
                functions[var] = schedule_func(func, model, level)
    return ir.IRModule(functions, attrs=mod.attrs)


def _is_dynamic(func: Func) -> bool:
    extents = [extent for p in func.params for extent in getattr(p, "shape", ())]
    return not all(isinstance(extent, tirx.IntImm) for extent in extents)


def schedule_func(func: Func, model: CpuModel, level: int) -> Func:
    """The kernel for one function; one that has a kernel stays as it is.

    Args:
        func: The function.
        model: The processor.
        level: As for :func:`schedule_cpu`.
    """
    if func.attrs and SCHEDULED in func.attrs:
        return func
    nest = Nest(func, level >= _PRODUCTS, arrange=straighten)
    return write_function(nest, Writer(KERNELS, model))
