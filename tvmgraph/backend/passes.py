"""Runs the passes of the table that take TVM's modules."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import tvm
from tvm import relax, s_tir, tirx

from tvmgraph.config.options import CompileOptions
from tvmgraph.passes.table import Pass, function_of

#: Where TVM's own passes are, by the first word of their paths.
_TVM = {
    "relax": relax.transform,
    "relax_backend": relax.backend,
    "tir": tirx.transform,
    "s_tir": s_tir.transform,
}


def run_passes(mod: tvm.IRModule, rows: Iterable[Pass], options: CompileOptions) -> tvm.IRModule:
    """Returns what some passes make of a module.

    TVM's own are run as it runs them: one whose level is above that of the context is left out.

    Args:
        mod: The module; it is not changed.
        rows: The passes, in order.
        options: What the compile may depend on; passes get it that read it.
    """
    functions = [(f, row.reads_options) for row in rows for f in map(function_at, row.run)]
    for is_tvm, group in itertools.groupby(functions, lambda f: _is_pass(f[0])):
        if is_tvm:
            mod = tvm.transform.Sequential([f for f, _ in group])(mod)
            continue
        for function, reads_options in group:
            mod = function(mod, options) if reads_options else function(mod)
    return mod


def sequence(rows: Iterable[Pass]) -> tvm.transform.Pass:
    """Returns passes of TVM's kind as one.

    Args:
        rows: The passes, in order; none of them reads options.

    Returns:
        A pass of TVM.
    """
    return tvm.transform.Sequential([function_at(path) for row in rows for path in row.run])


def function_at(path: str | Callable[..., Any]) -> Any:
    """What runs for a path of a row: a pass of TVM's kind, or a function of modules.

    Args:
        path: ``"relax.FuseOps(0)"`` for TVM's own with its arguments, a module and name of this
            package, or the function itself.
    """
    room, dot, call = path.partition(".") if isinstance(path, str) else ("", "", "")
    if dot and room in _TVM:
        name, _, arguments = call.rstrip(")").partition("(")
        return getattr(_TVM[room], name)(*ast.literal_eval(f"[{arguments}]"))
    found = function_of(path)
    return found() if isinstance(found, type) else found


def _is_pass(function: object) -> bool:
    return isinstance(function, tvm.transform.Pass)
