"""Runs scheduled kernels by themselves."""

from __future__ import annotations

import tvm
from tvm import tirx

from tvmgraph.backend.cuda import codegen
from tvmgraph.backend.cuda.codegen import exact_constants
from tvmgraph.backend.target import make_target
from tvmgraph.backend.tvm_private import private


def compiled(functions: dict[str, tirx.PrimFunc], architecture: str) -> tvm.runtime.Module:
    """Returns machine code of kernels, made by the passes that those of a graph go through.

    Args:
        functions: Scheduled functions by the names that they get.
        architecture: Target.
    """
    target = make_target(architecture)
    named = {
        name: f.with_attr("global_symbol", name).with_attr("tirx.noalias", True)
        for name, f in functions.items()
    }
    host, device = codegen.split(tvm.IRModule(named), target)
    library = codegen.generate_host(host, target)
    with target:
        library.import_module(private("target.build.cuda")(exact_constants(device), target))
    return library
