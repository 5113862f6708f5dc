"""Rewriting calls of Relax modules that are compiled for the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax


def rewrite_on_processor(
    mod: tvm.IRModule, make_mutator: Callable[[tvm.IRModule], Any]
) -> tvm.IRModule:
    """Lets a mutator change every function of a module, unless the target is a GPU.

    Args:
        mod: A Relax module.
        make_mutator: Makes a ``relax.PyExprMutator`` for the module.
    """
    target = tvm.target.Target.current(allow_none=True)
    if target is not None and target.kind.name != "llvm":
        return mod
    mutator = make_mutator(mod)
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            mutator.builder_.update_func(name, mutator.visit_expr(function))
    return mutator.builder_.get()


__all__ = ["rewrite_on_processor"]
