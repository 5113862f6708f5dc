"""Loop nests of arithmetic on tensors, each built once per module.

TVM builds the loop nest of every operator anew and then finds out that it has it already. An
optimizer applies the same dozen operators to every parameter, and layers repeat, so that most of
this work is done again and again. Here operators of equal types and attributes share the first
one's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import relax, tirx

from tvmgraph.backend.walks import elements

_OPERATORS = (
    "add", "broadcast_to", "divide", "greater", "maximum", "mean", "minimum", "multiply",
    "negative", "reshape", "rsqrt", "sqrt", "subtract", "sum", "where",
)  # fmt: skip
_Legalize = Callable[[relax.BlockBuilder, relax.Call], relax.Expr]


def legalize_operators(mod: tvm.IRModule) -> tvm.IRModule:
    """Returns the module with Relax operators as calls of loop nests.

    Args:
        mod: A module of Relax operators.
    """
    names = (f"relax.{name}" for name in _OPERATORS)
    return relax.transform.LegalizeOps({name: _once_per_type(name) for name in names})(mod)


@dataclass(frozen=True)
class _Loops:
    """A loop nest.

    Attributes:
        function: Its name in the module.
        type: The type of its result.
        operands: Positions of the arguments that it reads; literals are a part of it.
    """

    function: Any
    type: Any
    operands: tuple[int, ...]


def _once_per_type(name: str) -> _Legalize:
    build: _Legalize = tvm.ir.Op.get(name).get_attr("FLegalize")
    known: dict[Hashable, _Loops] = {}

    def legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        args = list(call.args)
        attrs = None if call.attrs is None else tvm_ffi.structural.StructuralKey(call.attrs)
        kinds = (tuple(map(_kind, args)), _positions(args, args), attrs)
        if kinds in known:
            loops = known[kinds]
            operands = relax.Tuple([args[i] for i in loops.operands])
            return relax.call_tir(loops.function, operands, loops.type)
        first = build(builder, call)
        if None not in kinds[0]:
            assert isinstance(first, relax.Call)
            operands = _positions(first.args[1].fields, args)
            known[kinds] = _Loops(first.args[0], first.ty_args[0], operands)
        return first

    return legalize


def _positions(operands: Sequence[relax.Expr], args: Sequence[relax.Expr]) -> tuple[int, ...]:
    """Where each operand stands first among the arguments."""
    return tuple(next(i for i, a in enumerate(args) if a.same_as(o)) for o in operands)


def _kind(arg: relax.Expr) -> Hashable | None:
    """What the loops depend on, None where their extents are known at run time only."""
    shape = arg.values if isinstance(arg, relax.ShapeExpr) else getattr(arg.ty, "shape", None)
    extents = None if shape is None else elements(shape)
    if extents is None or not all(isinstance(extent, tirx.IntImm) for extent in extents):
        return None
    if isinstance(arg, relax.ShapeExpr):
        return tuple(map(int, extents))
    value = None
    if isinstance(arg, tvm.ir.GenericConst) and not extents:
        value = arg.value.numpy().tobytes()
    return str(arg.ty.dtype), tuple(map(int, extents)), value


# ---- removes what TVM's own operator library leaves behind in loop nests -------------------------

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
