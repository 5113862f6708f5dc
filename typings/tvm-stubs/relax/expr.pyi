"""Expressions of Relax, as a type checker should see them.

TVM defines the value of a binding at run time, and types a function's body, always a sequence of
bindings, as any expression.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm.ir import Expr as Expr
from tvm.ir import GlobalVar as GlobalVar
from tvm.ir import Span as Span
from tvm.ir import Tuple as Tuple
from tvm.ir import TupleGetItem as TupleGetItem
from tvm.ir import Type as Type
from tvm.ir import Var as Var
from tvm.ir.base import Node
from tvm.ir.expr import GenericConst, _CallableExprWithOp
from tvm.ir.function import BaseFunc
from tvm.runtime import Tensor

class If(_CallableExprWithOp):
    cond: Expr
    true_branch: SeqExpr
    false_branch: SeqExpr
    def __init__(
        self, cond: Expr, true_branch: Expr, false_branch: Expr, span: Span | None = None
    ) -> None: ...

class ShapeExpr(_CallableExprWithOp):
    values: Sequence[Expr]
    def __init__(self, values: Sequence[Expr | int], span: Span | None = None) -> None: ...
    def __len__(self) -> int: ...

class DataflowVar(Var): ...

class Binding(Node):
    var: Var
    value: Expr  # of both kinds of bindings
    span: Span | None

class MatchCast(Binding):
    ty: Type
    def __init__(self, var: Var, value: Expr, ty: Type, span: Span | None = None) -> None: ...

class VarBinding(Binding):
    def __init__(self, var: Var, value: Expr, span: Span | None = None) -> None: ...

class BindingBlock(Node):
    bindings: Sequence[Binding]
    span: Span | None
    def __init__(self, bindings: Sequence[Binding], span: Span | None = None) -> None: ...

class DataflowBlock(BindingBlock): ...

class SeqExpr(_CallableExprWithOp):
    blocks: Sequence[BindingBlock]
    body: Expr
    def __init__(
        self, blocks: Sequence[BindingBlock], body: Expr, span: Span | None = None
    ) -> None: ...

class Function(BaseFunc):
    params: Sequence[Var]
    body: SeqExpr
    ret_ty: Type
    is_pure: bool
    def __init__(
        self,
        params: Sequence[Var],
        body: Expr,
        ret_ty: Type | None = None,
        is_pure: bool = True,
        attrs: Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None: ...
    def bind_params(self, binding_map: Mapping[Any, Any]) -> Function: ...
    def bind_symbolic_vars(self, binding_map: Mapping[Any, Expr]) -> Function: ...
    def script(self, *args: Any, **kwargs: Any) -> str: ...

class ExternFunc(BaseFunc):
    global_symbol: str
    def __init__(
        self, global_symbol: str, ty: Type | None = None, span: Span | None = None
    ) -> None: ...

def prim_value(value: Expr | int | float, dtype: str | None = None) -> Expr: ...
def extern(name: str, ty: Type | None = None, span: Span | None = None) -> ExternFunc: ...
def const(
    value: bool | int | float | np.ndarray | Tensor, dtype: str | None = None
) -> GenericConst: ...
def get_shape_of(expr: Expr) -> Expr: ...
