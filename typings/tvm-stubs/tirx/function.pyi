"""Functions of loops, as a type checker should see them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.ir import BaseFunc, Expr, Var
from tvm.runtime import Object
from tvm.tirx.stmt import Stmt

class PrimFunc(BaseFunc):
    params: Sequence[Var]
    body: Any  # a statement; of a function as legalization leaves it, a SBlockRealize
    ret_type: Any
    def __init__(
        self,
        params: Sequence[Var],
        body: Stmt,
        ret_type: Any = None,
        attrs: Mapping[str, Any] | None = None,
        span: Any = None,
    ) -> None: ...
    def with_body(self, new_body: Stmt, span: Any = None) -> PrimFunc: ...
    def specialize(self, param_map: Mapping[Var, Expr]) -> PrimFunc: ...

class IndexMap(Object):
    def __getattr__(self, name: str) -> Any: ...
