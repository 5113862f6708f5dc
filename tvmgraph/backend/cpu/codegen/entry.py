"""Removes the checks of arguments that compiled functions begin with.

TVM checks class, dtype, rank and shape of every parameter at every call, 0.2 microseconds each. A
call from :mod:`tvmgraph.jit` has compared the interned types of all of them before, so only what
binds a symbolic dimension stays.
"""

from __future__ import annotations

import tvm
from tvm import relax

_CHECK, _MATCH = "vm.builtin.check_tensor_info", "vm.builtin.match_shape"
_BINDS = 1  # code of a dimension that is stored under its name
_FIRST_CODE = 3  # of match_shape's arguments: tensor, heap, rank, then (code, value) per axis


@tvm.transform.module_pass(opt_level=0, name="DropEntryChecks")
def drop_entry_checks(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
    """Returns the module without the checks; to be run after ``VMShapeLower``.

    Args:
        mod: The Relax module; its functions are replaced in it.
    """
    changed: dict[object, object] = {}
    for name, function in mod.functions.items():  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            changed[name] = _without_checks(function)
    for name, function in changed.items():
        mod[name] = function
    return mod


def _without_checks(function: relax.Function) -> relax.Function:
    if not function.body.blocks:
        return function
    first, *rest = function.body.blocks
    kept = [b for b in first.bindings if not _is_check(b.value)]
    if len(kept) == len(first.bindings):
        return function
    body = relax.SeqExpr([relax.BindingBlock(kept), *rest], function.body.body)
    return relax.Function(
        function.params, body, function.ret_ty, function.is_pure, function.attrs, function.span
    )


def _is_check(value: object) -> bool:
    if not isinstance(value, relax.Call) or not isinstance(value.op, relax.ExternFunc):
        return False
    if value.op.global_symbol == _CHECK:
        return True
    if value.op.global_symbol != _MATCH:
        return False
    codes = value.args[_FIRST_CODE:-1:2]  # the last argument is the text of the error
    return all(int(c) != _BINDS for c in codes)
