"""Removes what TVM's own operator library leaves behind in loop nests."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import tirx

# groups statements while TVM builds a kernel; its code generator warns about every one it meets
_SCOPE = "pragma_scope"


def drop_scope_pragmas(mod: tvm.IRModule) -> tvm.IRModule:
    """Returns the module without the grouping pragmas of TVM's sorts and scatters.

    Args:
        mod: A module of loop nests; its functions are replaced in it.
    """
    changed: dict[object, object] = {}
    for name, function in mod.functions.items():  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(function, tirx.PrimFunc):
            body = tvm_ffi.structural_map(function.body, (tirx.AttrStmt, _unwrap))
            if not body.same_as(function.body):
                changed[name] = function.with_body(body)
    for name, function in changed.items():
        mod[name] = function
    return mod


def _unwrap(statement: tirx.AttrStmt) -> tirx.Stmt:
    return statement.body if statement.attr_key == _SCOPE else statement
