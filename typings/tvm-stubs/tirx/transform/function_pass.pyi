"""Passes over functions of loops, as a type checker should see them."""

from collections.abc import Callable

from tvm.ir import IRModule
from tvm.ir.transform import Pass, PassContext
from tvm.tirx import PrimFunc

class PrimFuncPass(Pass): ...

def prim_func_pass(
    pass_func: None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: list[str] | None = None,
    traceable: bool = False,
) -> Callable[[Callable[[PrimFunc, IRModule, PassContext], PrimFunc]], PrimFuncPass]: ...
